"""A sitting: runs cells until all are done or the time is up, and can be carried on elsewhere.

A training that is cut off (the time is up, SIGTERM, SIGINT) saves a checkpoint and is resumed by
the next sitting, to the same bits. For this the working folder keeps, beside checkpoints, the
kernel times that each step was calibrated with: on a GPU they decide which kernels run.

  work/runs/NAME/       a run that is not finished: checkpoints, `log`, `seconds`
  work/costs/NAME.json  kernel times of a step, measured once before its first run
  work/choices.json     which rung of a ladder a cell has taken
  records/*.jsonl       results; records/logs/NAME.log  what a finished run printed
"""
import glob
import json
import math
import os
import re
import shutil
import signal
import tarfile
import tempfile
import time

import cells as cells_
from program import REPOSITORY, Failed, said, today

SAVING = 20  # seconds that are left for the last checkpoint, and for packing
# Fields of `train` and `plan` that are recorded, where they are there.
FIGURES = """arena_bytes measured_arena_bytes peak_live_bytes bytes min_bytes infeasible why flops
    extra_flops_ratio recomputed_calls predicted_step_ms costs tier planner parameters nodes calls
    density nonzeros plan_seconds steps epochs train_loss train_accuracy test_loss test_accuracy
    test_bleu step_ms device_overhead_bytes evaluation_arena_bytes loss_scale skipped_steps
    weights_sha256 techniques points""".split()
# Errors of a run that are a result, not a mistake: it does not learn with these settings.
DIVERGED = ("is not finite", "the loss scale fell")


NOW_AND_THEN = ["--save-every", "10", "--eval-every", "10"]
ONCE = ["--save-every", "0", "--no-eval"]
AVERAGED = "10"  # checkpoints of a translator
DATA = {"cifar10": "--data-dir", "multi30k": "--pairs-dir"}


# Figures that follow from command and program alone.
SETTLED = ("arena_bytes", "bytes", "flops", "extra_flops_ratio", "min_bytes", "failed", "techniques")


class TimeIsUp(Exception):
    pass


class Sitting:
    def __init__(self, thimble, records, work, minutes=None, data_dirs=None, calibrate=0,
                 say=print, after=lambda: None):
        self.thimble = thimble
        self.records = records
        self.work = os.path.abspath(work)
        self.data_dirs = {name: os.path.abspath(folder)
                          for name, folder in (data_dirs or {}).items() if folder}
        self.calibrate = calibrate
        self.say = say
        self.after = after  # every training that was finished
        self.deadline = time.monotonic() + 60 * minutes - SAVING if minutes else None
        self.again = False  # plan once more what has a record, and replace what is other now
        self.shared = False  # others are at work on the card: times are not those of a card alone
        self.stopped = False
        self.child = None
        self.not_run = []  # (cell, seed, why)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def _stop(self, *_):
        self.stopped = True
        if self.child:
            self.child.terminate()

    def time_is_up(self):
        return self.stopped or (self.deadline is not None and time.monotonic() > self.deadline)

    def run(self, cells):
        """True when every cell has its figures or a reason why it cannot have them here.
        The first seed of every cell comes before the second of any."""
        turns = [(turn, cell) for turn in range(max(len(cell.seeds) for cell in cells))
                 for cell in cells if turn < len(cell.seeds)]
        try:
            for turn, cell in turns:
                why = self.why_not(cell)
                if why:
                    self.not_run.append((cell, cell.seeds[turn], why))
                else:
                    self.fill(cell, cell.seeds[turn])
        except TimeIsUp:
            self.say("time is up: start again with the same folder to go on")
            return False
        return True

    def why_not(self, cell):
        if "cuda" in cell.needs and self.thimble.device != "cuda":
            return "no GPU here"
        if "cpu" in cell.needs and self.thimble.device != "cpu":
            return "of a CPU: make papers-cpu"
        for name, flag in DATA.items():
            if name in cell.needs and not self.data_dirs.get(name):
                return f"no {name} here ({flag})"
        if cell.model.endswith(".toml"):
            there = os.path.exists(os.path.join(REPOSITORY, cell.model))
            return "" if there else f"no {cell.model} yet"
        family = cell.family or (cell.model,)
        return "" if self.thimble.plans(family) else f"no {' '.join(family)} yet"

    def fill(self, cell, seed):
        if cell.ladder and cell.verb != "train" and self.records.of(cell.experiment, cell.name):
            return  # which rung it was does not matter any more
        words, why = self.settle(cell)
        if why:
            self.not_run.append((cell, seed, why))
            return
        text = cells_.command(cell.verb, words, cell.schedule)
        known = self.records.has(cell.experiment, text, seed)
        if known and not (self.again and cell.verb != "train"):
            return
        if self.time_is_up():
            raise TimeIsUp
        if known:
            self.compare(cell, words, text)
            return
        self.say(f"{cell.experiment}  {cell.name}" + (f", seed {seed}" if seed is not None else "")
                 + f"\n  {text}")
        twin = self.records.twin(text, seed)
        if twin:
            self.say(f"  as in {twin['experiment']}")
            self.records.add({**twin, "experiment": cell.experiment, "cell": cell.name})
            return
        if cell.verb == "train":
            try:
                answer = self.train(cell, words, text, seed)
            except Failed as failure:
                self.not_run.append((cell, seed, str(failure)))
                self.say(f"  {failure}")
                return
        else:
            answer = self.ask(cell, words)
        self.say("  " + summary(answer))
        record = self.record(cell, text, seed, answer)
        self.records.add(record)
        if self.again and cell.verb != "train":
            self.records.keep_only(record)  # its budget was another one
        if cell.verb == "train":
            self.after()

    def record(self, cell, text, seed, answer):
        return {
            "experiment": cell.experiment, "cell": cell.name, "command": text, "seed": seed,
            "date": today(), "machine": self.thimble.machine(), "version": self.thimble.version(),
            **({"shared": True} if self.shared and cell.verb == "train" else {}),
            "figures": {name: answer[name] for name in
                        [*FIGURES, "seconds", "sittings", "failed"] if name in answer
                        and not (cell.timed and name.endswith(("accuracy", "loss")))}}

    def compare(self, cell, words, text):
        """Plans again what has a record, and replaces it where the program plans otherwise now."""
        record = self.record(cell, text, None, self.ask(cell, words))
        old = self.records.of(cell.experiment, cell.name)[0]["figures"]
        ours = record["figures"]
        if any(ours.get(name) != old.get(name) for name in SETTLED):
            self.say(f"{cell.experiment}  {cell.name}: was {summary(old)}; is {summary(ours)}")
            self.records.replace(record)

    def settle(self, cell):
        """The words of a cell on this device, or why there are none."""
        words = self.choose(cell)
        if not words:
            return [], "no plan on this device"
        if cell.budget:
            sizes = [self.records.of(cell.experiment, name) for name in cell.budget]
            if not all(sizes) or any("arena_bytes" not in r[0]["figures"] for r in sizes):
                return [], "waits for " + " and ".join(cell.budget)
            mean = math.prod(r[0]["figures"]["arena_bytes"] for r in sizes) ** (1 / len(sizes))
            words += ["--memory", str(round(mean))]
        if "--memory" in words:  # recomputation alone: the techniques are the cell's
            words += ["--fit", "off"]
        return words + (self.thimble.on_device() if cell.verb == "train" else []), ""

    def ask(self, cell, words):
        started = time.monotonic()
        try:
            answer = self.thimble.ask([cell.verb, *words, "--costs", "modelled"])
        except Failed as failure:
            return {"failed": str(failure)}
        return {**answer, "seconds": round(time.monotonic() - started, 2)}

    def choose(self, cell):
        """The cell's flags. Of a ladder, the first rung with a plan, and that one ever after; None
        where no rung has one."""
        if not cell.ladder:
            return list(cell.words)
        path = os.path.join(self.work, "choices.json")
        choices = read_json(path, {})
        name = f"{cell.experiment} {cell.name} {self.thimble.device}"
        if name not in choices:
            for rung in cell.ladder:
                words = [*cell.words, *rung]
                if cell.verb == "train":  # measured times choose other kernels and scratch
                    where = self.thimble.on_device()
                    where += self.costs(cell, words + where)
                else:
                    where = []
                if "arena_bytes" in self.thimble.ask(["plan", *words, *where, *self.data(cell)]):
                    break
                self.say(f"{cell.experiment}  {cell.name}: no plan with {' '.join(rung)}")
            else:
                return None
            choices[name] = words
            os.makedirs(self.work, exist_ok=True)
            write(path, json.dumps(choices, indent=1))
        return list(choices[name])

    def data(self, cell):
        folders = [self.data_dirs[name] for name in DATA if name in cell.needs]
        return ["--data-dir", folders[0]] if folders else []

    def costs(self, cell, words):
        """Kernel times: measured once a step, before its first run, and never again."""
        if not self.calibrate:
            return ["--costs", "modelled"]
        step = cells_.step_of(words)
        path = os.path.join(self.work, "costs", cells_.run_name("step", step[0], " ".join(step),
                                                                None) + ".json")
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            partial = path + ".partial.json"
            if os.path.exists(partial):
                os.remove(partial)
            done = self.thimble.ask(["calibrate", *step, *self.data(cell), "--seconds",
                                     str(self.calibrate), "--costs", partial])
            self.say(f"  calibrated in {done['seconds']:.0f} s")
            os.rename(partial, path)
        return ["--costs", path]

    def train(self, cell, words, text, seed):
        name = cells_.run_name(cell.experiment, cell.name, text, seed)
        folder = os.path.join(self.work, "runs", name)
        os.makedirs(folder, exist_ok=True)
        restore_link(folder)
        clock = os.path.join(folder, "clock.json")
        before = read_json(clock, {"seconds": 0, "sittings": 0})
        costs = self.costs(cell, words)
        if self.time_is_up():
            raise TimeIsUp
        started = time.monotonic()
        with tempfile.TemporaryFile("w+") as out, \
                open(os.path.join(folder, "log"), "a", encoding="utf-8") as log:
            self.child = self.thimble.start(
                ["train", *words, *cell.schedule, "--seed", str(seed), *self.data(cell), *costs,
                 "--out", folder, "--resume", "auto", *saving(cell)], out, log)
            while self.child.poll() is None:
                if self.time_is_up():
                    self.child.terminate()
                    self.child.wait()
                time.sleep(0.1)
            code, self.child = self.child.returncode, None
            out.seek(0)
            answer = out.read()
        spent = {"seconds": round(before["seconds"] + time.monotonic() - started, 1),
                 "sittings": before["sittings"] + 1}
        write(clock, json.dumps(spent))
        with open(os.path.join(folder, "log"), encoding="utf-8") as log:
            text = log.read()
        if code != 0 and self.time_is_up():
            self.say("  stopped at " + last_progress(text))
            raise TimeIsUp
        if code != 0 and not any(words in said(text) for words in DIVERGED):
            raise Failed(f"exit code {code}: {said(text)}")
        result = json.loads(answer) if code == 0 else {"failed": said(text)}
        if code == 0 and cell.translates:
            result["test_bleu"] = self.bleu(cell, folder)
        os.makedirs(os.path.join(self.records.folder, "logs"), exist_ok=True)
        write(os.path.join(self.records.folder, "logs", name + ".log"), shown(text))
        shutil.rmtree(folder)
        return {**result, **spent}

    def bleu(self, cell, folder):
        """Of the test set of 2016, by the mean of the last checkpoints and a beam of 4."""
        data = self.data_dirs["multi30k"]
        test = os.path.join(data, "test_2016_flickr")
        return self.thimble.ask(
            ["translate", folder, "--average", AVERAGED, "--beam", "4", "--length-penalty", "1",
             "--data-dir", data, "--input", test + ".de", "--output",
             os.path.join(folder, "test.en"), "--reference", test + ".en", "--lower"])["bleu"]


def saving(cell):
    if cell.translates:  # every epoch, as its recipe says
        return ["--keep-checkpoints", AVERAGED]
    return ONCE if cell.timed else NOW_AND_THEN


def summary(answer):
    if "failed" in answer:
        return answer["failed"]
    if "infeasible" in answer:
        return f"no plan; the least is {answer['min_bytes']:,} bytes"
    parts = []
    if "arena_bytes" in answer:
        parts.append(f"{answer['arena_bytes']:,} bytes")
    if answer.get("extra_flops_ratio"):
        parts.append(f"{answer['extra_flops_ratio']:+.1%} FLOPs")
    if "test_bleu" in answer:
        parts.append(f"{answer['test_bleu']:.2f} BLEU")
    if "test_accuracy" in answer:
        parts.append(f"{answer['test_accuracy']:.2%} test accuracy, {answer['step_ms']:.2f} ms a "
                     "step")
    return ", ".join(parts) or "done"


def shown(log):
    """A log without lines that a terminal would have drawn over, and without where it was made."""
    lines = [line.rsplit("\r", 1)[-1] for line in log.split("\n")]
    return re.sub(r"[^\s']*/runs/", "runs/", "\n".join(line for line in lines if line)) + "\n"


def last_progress(log):
    lines = [line for line in shown(log).splitlines() if line.startswith("epoch")]
    return lines[-1] if lines else "its start"


def restore_link(folder):
    """`latest` is a link, which not every way of copying keeps: it names the last whole "
      "checkpoint."""
    link = os.path.join(folder, "latest")
    steps = sorted(name for name in os.listdir(folder) if name.startswith("step-"))
    if steps and not os.path.lexists(link):
        os.symlink(steps[-1], link)


def read_json(path, otherwise):
    if not os.path.exists(path):
        return otherwise
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path, text):
    """Whole or not at all."""
    with open(path + ".partial", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".partial", path)


def pack(path, work, records):
    """Everything that the next sitting needs, and all results, as one file."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with tarfile.open(path + ".partial", "w") as tar:
        for folder, name in ((work, "work"), (records.folder, "records")):
            if os.path.isdir(folder):
                tar.add(folder, name)
    os.replace(path + ".partial", path)


def unpack(path, work, records):
    """The other way round; results are merged into those that are here."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(path) as tar:
        tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else \
            tar.extractall(folder)
        for run in glob.glob(os.path.join(folder, "work", "runs", "*")):
            shutil.rmtree(os.path.join(work, "runs", os.path.basename(run)), ignore_errors=True)
        if os.path.isdir(os.path.join(folder, "work")):
            shutil.copytree(os.path.join(folder, "work"), work, symlinks=True, dirs_exist_ok=True)
        records.merge(os.path.join(folder, "records"))
        logs = os.path.join(folder, "records", "logs")
        if os.path.isdir(logs):
            shutil.copytree(logs, os.path.join(records.folder, "logs"), dirs_exist_ok=True)
