"""The answers that only a card can give: the ordered list, most valuable first.

An item is a command, the minutes it takes, the files that its answer depends on, and how its output
becomes figures. Correctness comes first, then times beside the peers, then the papers' cells.
"""
import dataclasses
import json
import re

CORE = ("src/base/", "src/graph/", "src/ops/", "src/autodiff/", "src/transform/")
CUDA = ("src/backend/cuda/", "src/backend/*.h", "src/execute/", "src/base/", "src/graph/", "src/ops/")
WHOLE = (*CORE, "src/backend/cuda/", "src/backend/*.h", "src/execute/", "src/plan/", "src/pipeline/",
         "src/model/", "src/recipe/", "src/train/")


@dataclasses.dataclass(frozen=True)
class Item:
    name: str
    minutes: float  # An estimate, until a record has the real ones.
    command: tuple  # {build}, {program}, {python} and {work} are put in.
    sources: tuple  # Files and folders, with * in names, that the answer depends on.
    needs: tuple = ()  # files, as in `command`, or `python:MODULE`
    figures: callable = lambda output: {}  # output -> {name: number or text}
    timed: bool = False  # figures are times: wrong where others share the card
    waits_for: str = ""  # a capability that is not there yet: listed, never run


def passed_tests(output):
    """Counts of GoogleTest: how many passed, failed and were skipped."""
    counts = {"passed": re.search(r"\[  PASSED  \] (\d+) test", output),
              "failed": re.search(r"\[  FAILED  \] (\d+) test", output),
              "skipped": re.search(r"\[  SKIPPED \] (\d+) test", output)}
    return {name: int(match[1]) for name, match in counts.items() if match}


def sanitizer_errors(output):
    found = [int(n) for n in re.findall(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+)", output)]
    return {"errors": sum(found)} if found else {}


def largest_difference(output):
    """The largest relative difference that a parity script states."""
    found = re.findall(r"(?:worst relative|largest) difference (\d(?:\.\d+)?e-\d+)", output)
    return {"largest difference": max(map(float, found))} if found else {}


def row_of_bench(output):
    """The row that `bench/gpu.py --json` wrote; the command prints the file last."""
    rows = json.JSONDecoder().raw_decode(output, output.index("{\n"))[0]["rows"]
    if any(row.get("thimble") is None for row in rows):
        raise ValueError("Thimble failed")
    figures = {}
    for row in rows:
        ours = row.get("thimble") or {}
        for name, value in (("MiB", ours.get("measured_arena_bytes")),
                            ("beside MiB", ours.get("device_overhead_bytes"))):
            if value is not None:
                figures[name] = round(value / 2**20, 1)
        if ours:
            figures["ms"] = round(ours["step_ms"], 2)
            figures["predicted ms"] = round(ours["predicted_step_ms"], 2)
        for name in ("peer", "graph"):
            theirs = row.get(name)
            if theirs:
                figures[f"{name} ms"] = round(theirs["step_ms"], 2)
                figures[f"{name} MiB"] = round(theirs["peak_bytes"] / 2**20, 1)
    return figures


def tests(name, minutes, pattern, *sources):
    return Item(f"cuda_tests {name}", minutes,
                ("{build}/tests/cuda_tests", "--gtest_brief=1", f"--gtest_filter={pattern}"),
                (*CUDA, *sources), ("{build}/tests/cuda_tests",), passed_tests)


def bench(number, name, minutes):
    script = ("{python} bench/gpu.py --thimble {program} --python {python} --rows " + str(number) +
              " --calibrate 8 --json {work}/row.json && cat {work}/row.json")
    return Item(f"bench-gpu {name}", minutes, ("bash", "-c", script), (*WHOLE, "bench/gpu*.py"),
                ("{program}", "python:torch"), row_of_bench, timed=True)


def parity(name, minutes, *command):
    return Item(f"parity {name}", minutes, ("{python}", *command), (*WHOLE, command[0]),
                ("{program}", "python:torch"), largest_difference)


def sanitize(tool, minutes):
    return Item(f"compute-sanitizer {tool}", minutes,
                ("compute-sanitizer", "--tool", tool, "--error-exitcode", "1", "{build}/tests/cuda_tests",
                 "--gtest_brief=1", "--gtest_filter=Cuda/Conformance.IsNearTheReference*:CudaGatherFold.*"),
                ("src/backend/cuda/", "src/ops/"), ("{build}/tests/cuda_tests",), sanitizer_errors)


def papers(name, minutes, only):
    return Item(f"papers {name}", minutes,
                ("{python}", "bench/papers/run.py", "--thimble", "{program}", "--device", "cuda",
                 "--only", only, "--minutes", str(minutes), "--data-dir", "{work}/cifar10"),
                (*WHOLE, "bench/papers/"), ("{program}", "{work}/cifar10"), timed=True)


def imported(net, minutes):
    return Item(f"imported {net}", minutes,
                ("{python}", "bench/imported.py", "--thimble", "{program}", "--nets", net, "--calibrate", "8"),
                (*WHOLE, "src/import/", "bench/imported*.py"),
                ("{program}", "python:torch", "python:torchvision"), timed=True)


def language_model(name, shape, minutes, *flags):
    """A public model's shape, trained; the last line of the output is the figures."""
    return Item(f"fine-tuning {name}", minutes,
                ("{python}", "bench/card/language_model.py", "--thimble", "{program}", "--shape", shape,
                 "--work", "{work}", "--calibrate", "8", *flags),
                (*WHOLE, "src/weights/", "bench/card/language_model.py"), ("{program}",),
                lambda output: json.loads(output.strip().splitlines()[-1]), timed=True)


ITEMS = (
    tests("ops near the reference", 1.5, "Cuda/Conformance.*:CudaGatherFold.*", "tests/cuda/conformance_test.cpp"),
    tests("products, norms, attention, vocabulary", 1,
          "CudaBatchNorm.*:CudaAttention.*:CudaLongProduct.*:CudaVocabularyLoss.*:CudaCodedMatmul.*:"
          "CudaFirstLayers.*:CudaLstmSteps.*",
          "tests/cuda/"),
    tests("training", 2, "CudaTraining.*", "tests/cuda/training_test.cpp", *WHOLE),
    tests("ranks", 0.5, "CudaRanks.*", "tests/cuda/ranks_test.cpp", "src/comm/"),
    parity("dynamicconv", 0.5, "tools/parity_sequences.py", "--thimble", "{program}", "--device", "cuda",
           "--model", "dynamicconv"),
    parity("lightconv", 0.5, "tools/parity_sequences.py", "--thimble", "{program}", "--device", "cuda",
           "--model", "lightconv"),
    parity("lstm", 0.5, "tools/parity_sequences.py", "--thimble", "{program}", "--device", "cuda",
           "--model", "lstm"),
    Item("parity gpt2", 0.5, ("{python}", "tools/gpt2_twin.py", "--thimble", "{program}", "--device", "cuda"),
         (*WHOLE, "tools/gpt2_twin.py"), ("{program}", "python:transformers"), largest_difference),
    bench(1, "WRN-28-2 fp32", 1), bench(2, "WRN-28-2 fp16", 1), bench(3, "WRN-28-2 in 6.5 MB", 1.5),
    bench(5, "ResNet-1001 fp16", 3), bench(4, "ResNet-1001 fp32", 3),
    bench(8, "GPT-2 bf16", 1.5), bench(9, "GPT-2 in 1.9 GiB", 1), bench(10, "GPT-2 8-bit state in 1 GiB", 1),
    bench(11, "GPT-2 in 3.4 GiB", 1), bench(6, "LSTM T2048", 2.5), bench(7, "LSTM, a loss at every step", 2.5),
    imported("resnet50", 2), imported("convnext_t", 2), imported("vit_b16", 2),
    tests("recomputation to the bit", 6, "Cuda/Bits.*", "tests/cuda/bits_test.cpp", "src/plan/"),
    tests("recomputation of random graphs", 6, "Cuda/RandomBits.*", "tests/cuda/bits_test.cpp", "src/plan/"),
    sanitize("memcheck", 4), sanitize("racecheck", 8), sanitize("initcheck", 4),
    papers("S1-a timings", 8, "S1-a"), papers("S1-c timings", 8, "S1-c"), papers("S2-f cells", 20, "S2-f"),
    papers("4.5 MB, seeds 2 and 3", 25, "small, 100 epochs"),
    # At most 37.0 ms and 7.9 GiB, and 73.5 ms and 11.5 GiB: torch.compile's times, three quarters of its bytes.
    language_model("H1, Qwen2.5-0.5B 4 x 1024", "qwen2.5-0.5b", 2),
    language_model("H2, Llama-3.2-1B 2 x 2048", "llama-3.2-1b", 2),
    # LoRA in 16.2 GiB, NF4 in 7.4 GiB: what torchtune takes.
    language_model("H3, Llama-3.1-8B 2 x 2048, LoRA", "llama-3.1-8b", 6, "--lora"),
    Item("fine-tuning H4", 3, (), (), waits_for="llm.q beside it (at least 0.9 of its tokens a second)"),
)
