"""Whole runs under a hard limit of arena + 48 MiB: training, tests and checkpoints.

usage: hard_limit.py THIMBLE [--count 3] [--seconds 600]
The limit is a control group's (memory_group.py), on everything that the process touches; the kernel
kills what does not fit. Where none can be made, the part is skipped. Prints the process's peak beside
its arena.
"""
import sys
import time

from memory_group import MemoryGroup
from parts import arguments_of, finish
from program import MIB

AROUND = 48 * MIB

# An epoch of the built-in digits for small nets; a few steps, and the generated images' whole test,
# for one that would take an hour.
RUNS = [
    ["mlp", "--data", "digits", "--epochs", "1"],
    ["wrn-10-1", "--data", "digits", "--batch", "100", "--epochs", "1"],
    ["wrn-28-2", "--batch", "100", "--data", "generated", "--steps", "2", "--save-every", "1 steps"],
]


def run(program, report, count=3, seconds=600):
    until = time.monotonic() + seconds
    for words in RUNS[:count]:
        left = until - time.monotonic()
        if left < 0:
            report.skip(f"out of time before {words[0]}")
            break
        planned = program.run(["plan", *plan_words(words), "--json"], seconds=left)
        if not report.check(planned.code == 0, f"{planned.ending()}; {planned.last_words()}",
                            program.command(plan_words(words), "plan")):
            continue
        arena = planned.json()["arena_bytes"]
        limited = [*words, "--threads", "2", "--out", str(program.folder / "out"), "--overwrite"]
        command = program.command(limited, "train")
        try:
            with MemoryGroup(arena + AROUND) as group:
                outcome = program.run(["train", *limited, "--json"], seconds=left, memory=None,
                                      enter=group.enter)
                peak = group.peak()
        except PermissionError as error:
            report.skip(str(error))
            return
        taken = "" if peak is None else (f", {peak / MIB:.1f} MiB at most: "
                                         f"{(peak - arena) / MIB:.1f} around it")
        if not report.check(outcome.code == 0,
                            f"arena {arena / MIB:.1f} MiB{taken}: {outcome.ending()}; "
                            f"{outcome.last_words()}", command):
            continue
        result = outcome.json()
        report.check(result["arena_bytes"] == arena,
                     f"an arena of {result['arena_bytes']} bytes, {arena} planned", command)
        report.check("test_accuracy" in result, "it was not tested", command)
        resident = result["rss_peak_bytes"]  # pages of libraries, too, which others may have loaded
        report.check(resident <= arena + AROUND, f"{resident} bytes are resident", command)
        print(f"  {words[0]}: arena {arena / MIB:.1f} MiB{taken}; "
              f"{(resident - arena) / MIB:.1f} around it resident; {outcome.seconds:.0f} s",
              flush=True)


def plan_words(words):
    """Of a run, what its plan depends on."""
    kept, skip = [], False
    for word in words:
        if skip or word in ("--epochs", "--steps", "--save-every"):
            skip = not skip
            continue
        kept.append(word)
    return [*kept, "--threads", "2"]


if __name__ == "__main__":
    arguments = arguments_of(__doc__, count=3, seconds=600.0)
    sys.exit(finish("hard limit", run, arguments))
