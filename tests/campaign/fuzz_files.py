"""Mutated files of every format, given to the commands that read them.

usage: fuzz_files.py THIMBLE [--count 300] [--seconds 600] [--seed 1] [--only FORMAT]
`--count` is per format. A mutant is named by seed, format and number. A mutant that makes the program
crash, hang, run out of memory or exit with 1 is kept, with the command that shows it.
"""
import hashlib
import json
import pathlib
import random
import shutil
import struct
import sys
import time

import samples
from mutate import EXTREMES, OTHER_TYPES, mutate_bytes, mutate_json, mutate_json_text
from parts import arguments_of, finish
from program import MIB

MEMORY = 2048 * MIB  # of address space; the same runs of whole files take a tenth
SECONDS = 20         # the same runs of whole files take a fiftieth


class Format:
    """Files to mutate and their readers: `mutant(rng)` writes into `folder` and returns the words."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        folder.mkdir(parents=True, exist_ok=True)


class PlanFile(Format):
    MORE = [[*samples.TINY, *flags] for flags in (
        ["--optimizer", "adam", "--clip-norm", "1"], ["--density", "0.5"], ["--microbatch", "3"])]

    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.texts = [samples.plan_file(program, folder / f"whole-{i}.json", words).read_text()
                      for i, words in enumerate(samples.NETS + self.MORE)]

    def mutant(self, rng):
        path = self.folder / "plan.json"
        below = rng.choice([(), ("recipe",), ("recipe",), ("plan",)])
        path.write_bytes(mutate_json_text(rng, rng.choice(self.texts), below))
        return ["verify", str(path)]


class CostTable(Format):
    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.text = samples.cost_table(program, folder / "whole.json").read_text()

    def mutant(self, rng):
        path = self.folder / "costs.json"
        path.write_bytes(mutate_json_text(rng, self.text))
        return ["plan", *samples.TINY, "--memory", "least", "--costs", str(path)]


class Recipe(Format):
    def mutant(self, rng):
        path = self.folder / "recipe.toml"
        lines = samples.RECIPE.splitlines()
        if rng.random() < 0.4:
            path.write_bytes(mutate_bytes(rng, samples.RECIPE.encode()))
        else:
            for _ in range(rng.choice([1, 1, 2])):
                at = rng.randrange(1, len(lines))
                key, _, value = lines[at].partition(" = ")
                value = rng.choice([rng.choice(EXTREMES), f'"{rng.choice(EXTREMES)}"', "nan",
                                    "-inf", "[" * 5000 + "]" * 5000, '{a = {b = 1}}', '""', "true",
                                    "2026-11-16", f'"{"x" * 100_000}"', rng.choice(OTHER_TYPES)])
                if rng.random() < 0.2:
                    key = rng.choice([key.upper(), key.replace("_", "-"), "a." * 50_000 + "b",
                                      f'"{key}"', "recipe", "json", "out", "help"])
                lines[at] = f"{key} = {value}"
            path.write_text("\n".join(lines))
        return ["plan", str(path)]


class Weights(Format):
    """safetensors through `--weights`."""

    def __init__(self, program, folder):
        super().__init__(program, folder)
        run = samples.run_folder(program, folder / "whole")
        self.data = (run / "latest" / "weights.safetensors").read_bytes()

    def mutant(self, rng):
        path = self.folder / "weights.safetensors"
        path.write_bytes(mutate_safetensors(rng, self.data))
        return ["train", *samples.TINY, *samples.SHORT, "--out", str(self.folder / "out"),
                "--overwrite", "--weights", str(path)]


class Checkpoint(Format):
    """state.json, weights or optimizer; the hashes of what changed are made right half of the time,
    else nothing behind them would be reached."""
    NETS = [samples.TINY, ["lstm", "--hidden", "4", "--length", "3", *samples.SMALL],
            [*samples.TINY, "--density", "0.5", "--optimizer", "adam"]]

    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.whole = [samples.run_folder(program, folder / f"whole-{i}", words)
                      for i, words in enumerate(self.NETS)]

    def mutant(self, rng):
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        net = rng.randrange(len(self.NETS))
        shutil.copytree(self.whole[net], run, symlinks=True)
        last = (run / "latest").resolve()
        state = last / "state.json"
        name = rng.choice(["state.json", "state.json", "weights.safetensors",
                           "optimizer.safetensors"])
        if name == "state.json":
            state.write_bytes(mutate_json_text(rng, state.read_text(),
                                               rng.choice([(), (), ("recipe",)])))
        else:
            data = mutate_safetensors(rng, (last / name).read_bytes())
            (last / name).write_bytes(data)
            if rng.random() < 0.5:
                value = json.loads(state.read_text())
                value["sha256"][name] = hashlib.sha256(data).hexdigest()
                state.write_text(json.dumps(value))
        return ["train", *self.NETS[net], "--steps", "2", "--no-eval", "--resume", "--out", str(run)]


class Folder(Format):
    """Data sets: one file of several is mutated."""
    words = []

    def mutant(self, rng):
        run = self.folder / "data"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(self.whole, run)
        path = rng.choice(sorted(run.iterdir()))
        path.write_bytes(mutate_bytes(rng, path.read_bytes()))
        return ["train", *samples.TINY, *samples.SHORT, "--out", str(self.folder / "out"),
                "--overwrite", *self.words, "--data-dir", str(run)]


class Idx(Folder):
    words = ["--data", "idx", "--classes", "10"]

    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.whole = samples.idx_folder(folder / "whole")


class PackedIdx(Idx):
    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.whole = samples.idx_folder(folder / "packed", packed=True)


class Cifar(Folder):
    words = ["--data", "cifar10"]

    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.whole = samples.cifar_folder(folder / "whole")


FORMATS = {"plan": PlanFile, "costs": CostTable, "recipe": Recipe, "weights": Weights,
           "checkpoint": Checkpoint, "idx": Idx, "idx.gz": PackedIdx, "cifar10": Cifar}


def mutate_safetensors(rng, data):
    if rng.random() < 0.4:
        return mutate_bytes(rng, data)
    length = struct.unpack("<Q", data[:8])[0]
    header = mutate_json(rng, data[8:8 + length].decode())
    return struct.pack("<Q", len(header)) + header + data[8 + length:]


def run(program, report, count=300, seconds=600, seed=1, only=None):
    names = [only] if only else list(FORMATS)
    for number, name in enumerate(names):
        until = time.monotonic() + (seconds - (time.monotonic() - report.began)) / (
            len(names) - number)
        whole = FORMATS[name](program, program.folder / name.replace(".", "-"))
        for i in range(count):
            if time.monotonic() > until:
                break
            words = whole.mutant(random.Random(f"{seed} {name} {i}"))
            outcome = program.run(words, seconds=SECONDS, memory=MEMORY)
            fault = outcome.fault()
            if fault:  # what it read stays; the command names the copies
                words = [str(report.keep(word)) if word.startswith(str(whole.folder))
                         and not word.endswith("/out") and pathlib.Path(word).exists() else word
                         for word in words]
            report.check(not fault, f"{name} {i}: {fault}; {outcome.last_words()}",
                         program.command(words))


if __name__ == "__main__":
    arguments = arguments_of(__doc__, count=300, seconds=600.0, seed=1, only=None)
    sys.exit(finish("files", run, arguments))
