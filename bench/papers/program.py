"""The program under measurement: one call, one JSON object; and who measured where."""
import datetime
import json
import os
import subprocess

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

INFEASIBLE = 3  # exit code: no plan fits the budget


class Failed(Exception):
    """A call that ended with another code than 0; the text is what it said."""


class Thimble:
    """Runs from the repository's root, where recipes have the names that commands give them."""

    def __init__(self, path, device="cpu", threads=0):
        self.path = os.path.abspath(path)
        self.device = device
        self.threads = threads
        self._plans = {}

    def ask(self, words):
        """The JSON object of a call; of a budget that nothing fits: {"infeasible": true, ...}."""
        done = subprocess.run([self.path, *words, "--json"], capture_output=True, text=True,
                              cwd=REPOSITORY)
        if done.returncode not in (0, INFEASIBLE):
            raise Failed(said(done.stderr))
        return json.loads(done.stdout)

    def start(self, words, stdout, stderr):
        return subprocess.Popen([self.path, *words, "--json"], stdout=stdout, stderr=stderr,
                                cwd=REPOSITORY)

    def plans(self, words):
        """Whether the program knows such a net: families come, and with them their flags."""
        if words not in self._plans:
            try:
                self.ask(["plan", *words, "--device", "null"])
                self._plans[words] = True
            except Failed:
                self._plans[words] = False
        return self._plans[words]

    def on_device(self):
        """Flags that say where a run computes."""
        threads = ["--threads", str(self.threads)] if self.device == "cpu" and self.threads else []
        return ["--device", self.device, *threads]

    def version(self):
        lines = subprocess.run([self.path, "--version"], capture_output=True,
                               text=True).stdout.splitlines()
        commit = [line.split()[1] for line in lines if line.startswith("commit")]
        return " ".join(lines[:1] + commit[:1])

    def machine(self):
        return card() if self.device == "cuda" else processor()


def said(stderr):
    """The sentence of a failed call: what stands after the program's name in its last lines."""
    lines = [line for line in stderr.strip().splitlines() if line.startswith("thimble: ")]
    return lines[-1][len("thimble: "):] if lines else stderr.strip()[-500:]


def today():
    return datetime.date.today().isoformat()


def card():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        name, _, driver = subprocess.run(query, capture_output=True,
                                         text=True).stdout.split("\n")[0].partition(", ")
    except OSError:
        name, driver = "", ""
    return f"{name or 'unknown card'}, driver {driver or 'unknown'}"


def has_card():
    try:
        return subprocess.run(["nvidia-smi"], capture_output=True).returncode == 0
    except OSError:
        return False


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1] for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return f"{names[0].strip() if names else 'unknown processor'}, {os.cpu_count()} cores"
