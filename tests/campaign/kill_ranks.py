"""One of several ranks killed at random moments: the others end, each with a sentence, and the run that
goes on has the bits of one that was left alone.

usage: kill_ranks.py THIMBLE [--count 20] [--seconds 900] [--seed 1]

Every other kill comes before training begins (while processes start, MPI joins them, ranks compare what
they were told, plan, load). The rest come anywhere in the run. A rank that has not come as far as main() cannot
speak; what mpirun says has to do then, and the table calls it "unborn". Needs mpirun.
"""
import dataclasses
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from parts import arguments_of, finish

PATIENCE = 10.0  # seconds that the others may take
LINGERING = 3.0  # seconds after which mpirun, which may wait for one that was killed as it started, is left alone
NET = ["wrn-10-1", "--norm", "group", "--image", "8,8,1", "--batch", "24", "--data", "digits",
       "--threads", "1", "--steps", "100", "--save-every", "10 steps", "--no-eval", "--json"]
KINDS = [(2, "state"), (2, "none"), (4, "weights"), (2, "gradients")]
KILLS_A_RUN = 5  # then it is left to end
SAID = re.compile(r"^\[\d+,(\d+)\]<stderr>:\s*(thimble: .*)$", re.MULTILINE)


@dataclasses.dataclass
class Rank:
    number: int
    pid: int

    def there(self):
        try:
            return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def born(self):
        """Whether it listens to SIGTERM, or holds it back: it has come as far as main()."""
        bit = 1 << (signal.SIGTERM - 1)
        try:
            status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return False
        return any(int(re.search(rf"{key}:\s*(\w+)", status)[1], 16) & bit
                   for key in ("SigCgt", "SigBlk"))


def mpirun(ranks):
    return [shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
            "--tag-output", "-np", str(ranks)]


def ranks_of(launcher):
    """The ranks that mpirun has started so far."""
    found = []
    try:
        children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    except OSError:
        return found
    for pid in children:
        try:
            environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for variable in environ:
            if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
                found.append(Rank(int(variable.split(b"=")[1]), int(pid)))
    return sorted(found, key=lambda rank: rank.number)


def saved(folder):
    try:
        return int(os.readlink(folder / "latest").split("-")[1])
    except (OSError, IndexError, ValueError):
        return 0


class Job:
    """A run of several ranks."""

    def __init__(self, program, kind, folder):
        self.count, shard = kind
        self.folder = folder
        self.words = ["train", *NET, "--shard", shard, "--out", str(folder), "--resume=auto"]
        self.log = program.folder / "log"
        self.out = program.folder / "out"
        with open(self.log, "wb") as err, open(self.out, "wb") as out:
            # As users start it: how threads wait is left to the program.
            self.process = program.start(self.words, launcher=mpirun(self.count), memory=None,
                                         env={"OMP_WAIT_POLICY": None}, stdout=out, stderr=err)
        self.began = time.monotonic()

    def age(self):
        return time.monotonic() - self.began

    def ended(self):
        return self.process.poll() is not None

    def wait(self, seconds=300):
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def said(self):
        """The first sentence of each rank, by its number."""
        words = {}
        for rank, line in SAID.findall(self.log.read_text(errors="replace")):
            words.setdefault(int(rank), line)
        return words

    def weights(self):
        found = re.search(r'"weights_sha256": ?"(\w+)"', self.out.read_text(errors="replace"))
        return found and found[1]


def kill_one(job, rng, moment):
    """Kills a rank at that age of the job: (rank, survivors, unborn, seconds until all ended), or None:
    the job was through."""
    victim = rng.randrange(job.count)
    while not job.ended():
        ranks = ranks_of(job.process.pid)
        if job.age() >= moment and len(ranks) > victim:
            break
        time.sleep(0.001)
    else:
        return None
    others = [rank for rank in ranks if rank.number != victim]
    unborn = {rank.number for rank in others if not rank.born()}
    unborn |= set(range(job.count)) - {rank.number for rank in ranks}
    try:
        os.kill(ranks[victim].pid, signal.SIGKILL)
    except ProcessLookupError:
        return None
    killed, gone = time.monotonic(), None
    while time.monotonic() - killed < 3 * PATIENCE:
        # Ranks that were started meanwhile end, too.
        started = [rank for rank in ranks_of(job.process.pid) if rank.number != victim]
        if any(rank.there() for rank in (*others, *started)):
            gone = None
        elif gone is None:
            gone = time.monotonic()
        elif job.ended() or time.monotonic() - gone > LINGERING:
            break
        time.sleep(0.005)
    return victim, [rank.number for rank in others], unborn, (gone or time.monotonic()) - killed


def undisturbed(program, kind, number):
    """(weights, seconds until the first checkpoint, seconds) of a run that is left alone."""
    job = Job(program, kind, program.folder / f"whole-{number}")
    first = None
    while not job.ended() and job.age() < 300:
        if first is None and saved(job.folder) > 0:
            first = job.age()
        time.sleep(0.01)
    if job.wait(1) != 0:
        raise RuntimeError(f"{kind} does not end well: {job.log.read_text()}")
    return job.weights(), first, job.age()


def run(program, report, count=20, seconds=900, seed=1):
    if shutil.which("mpirun") is None:
        report.skip("no mpirun: install openmpi-bin")
        return
    rng = random.Random(seed)
    until = time.monotonic() + seconds
    alone, kills, number, slowest = {}, 0, 0, 0.0
    print("  kill ranks shard      victim  after s   saved  others gone after s  said by")
    while kills < count and time.monotonic() < until:
        which = number % len(KINDS)
        kind = KINDS[which]
        if which not in alone:
            alone[which] = undisturbed(program, kind, which)
        weights, first, length = alone[which]
        folder = program.folder / f"killed-{number}"
        number += 1
        mine = 0
        while True:
            job = Job(program, kind, folder)
            if mine == KILLS_A_RUN or kills == count or time.monotonic() >= until:
                break
            moment = rng.uniform(0, first if kills % 2 == 0 else 0.9 * length)
            at = kill_one(job, rng, moment)
            if at is None:
                break
            kills, mine = kills + 1, mine + 1
            victim, others, unborn, took = at
            slowest = max(slowest, took)
            said = job.said()
            print(f"  {kills:>4} {kind[0]:>5} {kind[1]:<10} {victim:>6} {moment:>8.2f} {saved(folder):>7}"
                  f" {took:>20.2f}  {sorted(said)}"
                  + (f" unborn {sorted(unborn)}" if unborn else ""), flush=True)
            command = f"{kind}, seed {seed}, kill {kills} of rank {victim} after {moment:.3f} s"
            report.check(took < PATIENCE, f"the others took {took:.1f} s to end", command)
            for other in others:
                report.check(other in said or other in unborn,
                             f"rank {other} ended without a word:\n{job.log.read_text()}", command)
            if job.process.poll() is None:
                job.wait(0)
        code = job.wait()
        command = program.command(job.words)
        if report.check(code == 0, f"{kind} does not end well after {mine} kills: {code}\n"
                        f"{job.log.read_text()}", command):
            report.check(job.weights() == weights, f"other weights after {mine} kills", command)
    print(f"  {kills} kills in {number} runs, the slowest end {slowest:.2f} s", flush=True)
    if kills < count:
        report.skip(f"out of time after {kills} of {count} kills")


if __name__ == "__main__":
    arguments = arguments_of(__doc__, count=20, seconds=900.0, seed=1)
    sys.exit(finish("ranks", run, arguments))
