"""The program under test: run within hard limits, judged by how it ended, findings kept to repeat.

Every run has a limit on time, address space and open doors to the user's own files: a home of its
own, no core files. Code 0, 2 or 3 is an answer; a signal, exit code 1, any other code or running
out of time is a finding.
"""
import ctypes
import dataclasses
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import time

ANSWERS = (0, 2, 3)
MIB = 1 << 20
PR_SET_PDEATHSIG = 1


@dataclasses.dataclass
class Outcome:
    code: int | None  # None: ran out of time; negative: the signal that ended it
    out: str
    err: str
    seconds: float

    def ending(self):
        if self.code is None:
            return f"no end within {self.seconds:.0f} s"
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}"
        return f"exit {self.code}"

    def fault(self):
        """The fault of how it ended, or None."""
        if self.code not in ANSWERS:
            return self.ending()
        if self.code != 0 and not self.err.strip():
            return f"exit {self.code} without a word"
        if "bug in thimble" in self.err:
            return "calls itself a bug"
        return None

    def json(self):
        return json.loads(self.out)

    def last_words(self):
        lines = [line for line in self.err.splitlines() if line.strip()]
        return lines[-1][:200] if lines else ""


class Program:
    def __init__(self, path, folder):
        self.path = str(pathlib.Path(path).resolve())
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def environment(self, more=None):
        base = {k: v for k, v in os.environ.items()
                if not k.startswith(("OMP_", "ONEDNN_", "DNNL_", "KMP_", "GOMP_"))}
        base["HOME"] = base["XDG_CACHE_HOME"] = base["THIMBLE_CACHE"] = str(self.folder)
        base["OMP_WAIT_POLICY"] = "passive"  # others work on this machine, too
        return {k: v for k, v in (base | (more or {})).items() if v is not None}

    def start(self, words, *, env=None, limits=None, memory=4096 * MIB, enter=None, launcher=(),
              **popen):
        """The running process. `memory`: of address space; None: not limited. `enter`: what it does
        before all else. `launcher`: what starts it. `env`: None as a value leaves the variable out."""
        limits = {resource.RLIMIT_CORE: 0} | (limits or {})
        if memory is not None:
            limits[resource.RLIMIT_AS] = memory

        def in_child():
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # nothing outlives us
            if enter is not None:
                enter()
            for what, most in limits.items():
                resource.setrlimit(what, (most, most))

        popen.setdefault("cwd", self.folder)
        popen.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([*launcher, self.path, *words], env=self.environment(env),
                                preexec_fn=in_child, **popen)

    def run(self, words, *, seconds=30, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more):
        began = time.monotonic()
        process = self.start(words, stdout=stdout, stderr=stderr, **more)
        try:
            out, err = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            code = None
        text = [(part or b"").decode("utf-8", "replace") for part in (out, err)]
        return Outcome(code, *text, time.monotonic() - began)

    def train(self, words, **more):
        """A run that must succeed; its JSON."""
        outcome = self.run(["train", *words, "--json"], **more)
        if outcome.code != 0:
            raise RuntimeError(f"{outcome.ending()}: {self.command(words, 'train')}\n{outcome.err}")
        return outcome.json()

    def command(self, words, subcommand=None):
        words = ([subcommand] if subcommand else []) + list(words)
        return shlex.join([self.path, *(os.fsdecode(word) for word in words)])


class Report:
    """Findings of one part. Files that make one happen are kept in a folder named in its command."""

    def __init__(self, part, kept):
        self.part, self.checks, self.findings, self.skipped = part, 0, [], []
        self.kept = pathlib.Path(kept)
        self.began, self.seconds = time.monotonic(), 0.0

    def check(self, good, what, command=""):
        self.checks += 1
        if not good:
            self.findings.append((what, command))
            print(f"  FOUND {self.part}: {what}\n        {command}", flush=True)
        return good

    def skip(self, why):
        self.skipped.append(why)
        print(f"  skipped {self.part}: {why}", flush=True)

    def keep(self, path):
        """A copy of a file or folder that stays; its path."""
        self.kept.mkdir(parents=True, exist_ok=True)
        path = pathlib.Path(path)
        target = self.kept / f"{self.part}-{len(self.findings):03}-{path.name}"
        if path.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(path, target, symlinks=True)
        else:
            shutil.copyfile(path, target)
        return target

    def close(self):
        self.seconds = time.monotonic() - self.began

    def line(self):
        state = "no findings" if not self.findings else f"{len(self.findings)} FINDINGS"
        more = f", {len(self.skipped)} skipped" if self.skipped else ""
        return (f"{self.part:<12} {self.checks:>6} checks  {self.seconds:>7.1f} s"
                f"  {state}{more}")
