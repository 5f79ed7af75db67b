"""Inputs chosen to hurt, one by one: each has to be refused (exit 2) with one sentence, soon.

usage: doors.py THIMBLE [--count 1000] [--seconds 600]
Where random mutants rarely get: numbers at the ends of what integers hold, stacks, files that are
no files, sizes beyond any memory, words that mean nothing. `--count`: how many of them, at most.
"""
import itertools
import json
import os
import sys
import time

import samples
from parts import arguments_of, finish
from program import MIB

MEMORY = 2048 * MIB
SECONDS = 30  # the slowest that is answered, the net of 10,000 blocks, takes a third of it
REFUSED, ANSWERED = (2,), (0, 2, 3)  # ANSWERED: either, but no crash, no hang


def with_recipe(program, path, words, **changes):
    """A plan file whose recipe says something else."""
    samples.plan_file(program, path, words)
    plan = json.loads(path.read_text())
    plan["recipe"] |= changes
    path.write_text(json.dumps(plan))
    return ["verify", str(path)]


def nested(path, before, after, left="[", right="]", depth=100_000):
    path.write_text(before + left * depth + right * depth + after)
    return str(path)


def hostile_flags():
    tiny, bare = samples.TINY, ["train", *samples.TINY, "--no-eval", "--save-every", "0"]
    # Into a folder of its own: else a run of the same second is the reason for a refusal.
    train = [*bare, "--out", "out", "--overwrite"]
    yield ANSWERED, ["plan", "mlp", "--batch", "2147483648"]
    for batch in ("4294967296000", "9223372036854775807"):
        yield REFUSED, ["plan", "mlp", "--batch", batch]
    yield ANSWERED, ["plan", "mlp", "--batch", "4294967296"]
    for classes in ("2147483647", "4294967296"):
        yield ANSWERED, ["plan", "mlp", "--classes", classes]
    for image in ("2147483647,1,1", "1,2147483647,1", "1,1,2147483647", "65536,65536,1"):
        yield ANSWERED, ["plan", "mlp", "--image", image]
        yield ANSWERED, ["plan", "wrn-10-1", "--image", image]
    yield REFUSED, ["plan", "mlp", "--hidden", "2147483647"]
    yield ANSWERED, ["plan", *tiny, "--clip-norm", "1e-320"]
    yield REFUSED, ["plan", *tiny, "--clip-norm", "0"]
    yield REFUSED, ["plan", *tiny, "--memory", ""]
    yield REFUSED, ["plan", *tiny, "--density", ""]
    yield REFUSED, ["plan", "mlp", "--batch", "010", "--threads", "x"]
    for steps in ("", "0", "010x"):
        yield REFUSED, [*train, "--steps", steps]
    yield REFUSED, [*train, "--steps", "1", "--seed", "-1"]
    yield REFUSED, [*train, "--epochs", "1e400"]
    yield ANSWERED, ["train", "mlp", "--steps", "1", "--threads", "1024", *train[-3:]]
    yield REFUSED, ["plan", *tiny, "--costs", "x" * 5000]
    yield REFUSED, ["plan", "x" * 5000 + ".toml"]
    yield REFUSED, [*bare, "--steps", "1", "--out", "x" * 300]
    yield REFUSED, [*train, "--steps", "1", "--export-initial", "no/such/folder/file"]
    for flag in ("--data", "--optimizer", "--keep", "--memory"):
        yield REFUSED, [*train, "--steps", "1", flag, b"\xff\xfe\x80"]
    yield ANSWERED, [*bare, "--steps", "1", "--out", b"\xff\xfe\x80"]
    yield REFUSED, ["plan", b"\xff\xfe.toml"]


def large_nets():
    """Last, since some take their time even where all is well."""
    yield REFUSED, ["plan", "lstm", "--layers", "10000", "--length", "100000"]
    yield REFUSED, ["plan", "lstm", "--length", "2147483647"]
    yield ANSWERED, ["plan", "resnet:[10000,1,1,1]", "--image", "32,32,3", "--batch", "2",
                     "--threads", "1", "--recompute", "*#*"]


def hostile_files(program):
    folder = program.folder
    tiny, lstm = samples.TINY, samples.NETS[3]
    for number, (words, changes) in enumerate([
            (lstm, {"layers": -1}), (lstm, {"layers": 1 << 32}), (lstm, {"length": -1}),
            (lstm, {"length": 1 << 40}), (tiny, {"classes": "4294967296"}),
            (tiny, {"classes": 1 << 32}), (tiny, {"batch": 1 << 62}), (tiny, {"batch": -1}),
            (tiny, {"layers": 1 << 32}), (tiny, {"image": [1 << 31, 1 << 31, 4]}),
            (tiny, {"image": [8, 8]}), (tiny, {"hidden": 0}), (tiny, {"threads": 1 << 31}),
            (tiny, {"microbatch": -4}), (samples.NETS[2], {"layers": 64}),
            (samples.NETS[2], {"layers": -1}), (samples.NETS[4], {"hidden": -8})]):
        yield REFUSED, with_recipe(program, folder / f"recipe-{number}.json", words, **changes)

    plan = samples.plan_file(program, folder / "plan.json", tiny).read_text()
    yield REFUSED, ["verify", nested(folder / "deep-plan.json", '{"format":', ',"recipe":{}}')]
    yield REFUSED, ["verify", nested(folder / "deep-sources.json",
                                     *plan.split('"sources"')[0:1], "}}",
                                     left='"sources":[', right="]")]
    yield REFUSED, ["plan", *tiny, "--costs",
                    nested(folder / "deep-costs.json",
                           '{"format":"thimble-costs-1","machines":', "}", '{"a":', "}")]
    run = samples.run_folder(program, folder / "run")
    resume = ["train", *tiny, "--steps", "2", "--no-eval", "--resume", "--out", str(run)]
    nested(run / "latest" / "state.json", '{"format":1,"recipe":', "}")
    yield REFUSED, resume
    (folder / "dots.toml").write_text("a." * 1_000_000 + "b = 1\n")
    yield REFUSED, ["plan", str(folder / "dots.toml")]
    yield REFUSED, ["plan", nested(folder / "deep.toml", 'model = "mlp"\nkeep = ', "\n")]
    yield REFUSED, ["plan", nested(folder / "inline.toml", "model = ", "\n", "{a=", "}")]

    costs = samples.cost_table(program, folder / "costs.json")
    text = costs.read_text()
    for seconds in ("1e308", "-1", "0", "1e-320", "null"):
        words = [f'"seconds": {seconds}' if '"seconds":' in line else line
                 for line in text.splitlines()]
        path = folder / f"costs-{seconds}.json"
        path.write_text("\n".join(words))
        yield ANSWERED, ["plan", *tiny, "--memory", "least", "--costs", str(path)]

    for name in ("recipe.toml", "plan.json", "costs.json"):  # ten terabytes that take no disk
        path = folder / f"sparse-{name}"
        with open(path, "wb") as file:
            try:
                os.truncate(file.fileno(), 10 << 40)
            except OSError:  # a file system that has no such files
                os.truncate(file.fileno(), 10 << 30)
        yield REFUSED, {"recipe.toml": ["plan", str(path)], "plan.json": ["verify", str(path)],
                        "costs.json": ["plan", *tiny, "--costs", str(path)]}[name]
    os.symlink("loop.toml", folder / "loop.toml")
    os.mkfifo(folder / "fifo.toml")
    for path in ("loop.toml", "fifo.toml", "/dev/zero", ".", "/proc/self/mem"):
        path = str(folder / path)
        yield REFUSED, ["plan", path] if path.endswith(".toml") else ["verify", path]
        yield REFUSED, ["verify", path]
        yield REFUSED, ["plan", *tiny, "--costs", path]
        yield REFUSED, ["train", *tiny, "--steps", "1", "--weights", path, "--out",
                        str(folder / "never")]


def run(program, report, count=1000, seconds=600):
    until = time.monotonic() + seconds
    inputs = itertools.chain(hostile_flags(), hostile_files(program), large_nets())
    for allowed, words in itertools.islice(inputs, count):
        if time.monotonic() > until:
            report.skip("out of time")
            return
        outcome = program.run(words, seconds=SECONDS, memory=MEMORY)
        fault = outcome.fault()
        if not fault and outcome.code not in allowed:
            fault = f"{outcome.ending()} where it should be refused"
        if fault and len(words) > 1 and str(program.folder) in str(words):
            words = [str(report.keep(word)) if os.path.isfile(word) and os.path.getsize(word) < MIB
                     else word for word in words]
        report.check(not fault, f"{fault}; {outcome.last_words()}", program.command(words)[:400])


if __name__ == "__main__":
    arguments = arguments_of(__doc__, count=1000, seconds=600.0)
    sys.exit(finish("doors", run, arguments))
