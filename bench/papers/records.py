"""Results as JSON lines, one file an experiment: what was asked, what came out, when and where.

A record is found again by its experiment, command and seed, so a table can be filled over several
sittings and on several machines: files are only ever appended to, and merged line by line.
"""
import fcntl
import json
import os

from program import REPOSITORY

FOLDER = os.path.join(REPOSITORY, "results", "papers")


def key(record):
    return record["experiment"], record["command"], record["seed"]


class Records:
    def __init__(self, folder=FOLDER):
        self.folder = folder
        self.all = []
        if os.path.isdir(folder):
            for name in sorted(os.listdir(folder)):
                if name.endswith(".jsonl"):
                    self.all += read(os.path.join(folder, name))
        self._keys = {key(record) for record in self.all}

    def has(self, experiment, command, seed):
        return (experiment, command, seed) in self._keys

    def twin(self, command, seed):
        """The same command's record in another experiment: nothing is run twice."""
        return next((r for r in self.all if (r["command"], r["seed"]) == (command, seed)), None)

    def add(self, record):
        """Appends it, unless it is there; on disk before this returns."""
        if key(record) in self._keys:
            return
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, record["experiment"] + ".jsonl"), "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # two sittings may fill one folder
            file.seek(0)
            lines, _, _ = file.read().rpartition(b"\n")
            if key(record) not in {key(json.loads(line)) for line in lines.splitlines()}:
                file.truncate(len(lines) + 1 if lines else 0)  # less what a crash left
                file.write(json.dumps(record).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        self.all.append(record)
        self._keys.add(key(record))

    def replace(self, record):
        """In place of the one with its key: for figures that follow from the program alone."""
        path = os.path.join(self.folder, record["experiment"] + ".jsonl")
        self._write(path, [record if key(r) == key(record) else r for r in read(path)])
        self.all = [record if key(r) == key(record) else r for r in self.all]

    def keep_only(self, record):
        """Of its cell and seed, where another command was the cell's before."""
        def is_other(r):
            same = all(r[name] == record[name] for name in ("experiment", "cell", "seed"))
            return same and key(r) != key(record)

        if not any(is_other(r) for r in self.all):
            return
        path = os.path.join(self.folder, record["experiment"] + ".jsonl")
        self._write(path, [r for r in read(path) if not is_other(r)])
        self.all = [r for r in self.all if not is_other(r)]
        self._keys = {key(r) for r in self.all}

    @staticmethod
    def _write(path, lines):
        with open(path + ".partial", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        os.replace(path + ".partial", path)

    def merge(self, folder):
        """Adds what another folder has and this one has not."""
        for record in Records(folder).all:
            self.add(record)

    def of(self, experiment, cell):
        """Records of a cell under its latest command, one a seed, by seed."""
        mine = [r for r in self.all if r["experiment"] == experiment and r["cell"] == cell]
        if not mine:
            return []
        command = mine[-1]["command"]
        return sorted((r for r in mine if r["command"] == command), key=lambda r: r["seed"] or 0)


def read(path):
    """A last line that a crash cut short is left out."""
    result = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                result.append(json.loads(line))
    return result
