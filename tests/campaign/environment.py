"""Surroundings that clusters, containers, full disks and other users make.

usage: environment.py THIMBLE [--count 8] [--seconds 600]
`--count`: how often what depends on chance is repeated; 1: on two nets in place of four.
"""
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

from parts import arguments_of, finish

MLP = ["mlp", "--hidden", "32", "--batch", "32", "--steps", "5"]
NETS = [["mlp", "--steps", "5"],
        ["wrn-10-1", "--batch", "8", "--steps", "2"],
        ["unet", "--layers", "1", "--hidden", "4", "--batch", "4", "--steps", "2"],
        ["lstm", "--hidden", "16", "--length", "4", "--batch", "8", "--steps", "2"]]
QUIET = ["--no-eval", "--save-every", "0"]
SAVING = ["mlp", "--hidden", "32", "--batch", "16", "--steps", "200", "--threads", "1", "--no-eval",
          "--save-every", "0.1"]


def fewer_threads(program, report, count):
    """Fewer threads than asked for: refused, or the bits of a run with those that there are."""
    for net in NETS[::2] if count == 1 else NETS:
        out = ["--out", str(program.folder / "threads"), "--overwrite"]
        bits = {program.train([*net, *QUIET, *out, "--threads", n], seconds=120)["weights_sha256"]
                for n in ("1", "2")}
        for setting in ("OMP_THREAD_LIMIT=1", "OMP_DYNAMIC=true", "OMP_MAX_ACTIVE_LEVELS=0",
                        "OMP_NUM_THREADS=1", "OMP_NUM_THREADS=3"):
            words = ["train", *net, *QUIET, *out, "--threads", "2", "--json"]
            outcome = program.run(words, env=dict([setting.split("=")]), seconds=30)
            wrong = (outcome.fault() or outcome.code == 0
                     and outcome.json()["weights_sha256"] not in bits and "other weights, exit 0")
            report.check(not wrong, f"{setting}: {wrong}", f"{setting} {program.command(words)}")


def instruction_sets(program, report, count):
    """Older processors: the same losses to rounding (sums in another order: 1e-5 over few steps)."""
    for net in NETS[::2] if count == 1 else NETS:
        words = ["train", *net, *QUIET, "--threads", "1", "--losses", "--json", "--out",
                 str(program.folder / "isa"), "--overwrite"]
        here = program.run(words, seconds=120).json()["losses"]
        for isa in ("AVX2", "SSE41"):
            for _ in range(count):
                outcome = program.run(words, env={"ONEDNN_MAX_CPU_ISA": isa}, seconds=120)
                wrong = outcome.code != 0 and outcome.ending()
                if not wrong:
                    far = max(abs(a - b) / abs(b) for a, b in zip(outcome.json()["losses"], here))
                    wrong = far > 1e-5 and f"losses differ by {far:.1e}"
                report.check(not wrong, f"ONEDNN_MAX_CPU_ISA={isa}: {wrong}",
                             f"ONEDNN_MAX_CPU_ISA={isa} {program.command(words)}")
                if wrong:
                    break


def output_that_fails(program, report, count):
    """A log that cannot be written does not harm a run; a result that cannot be is no success."""
    whole = program.folder / "whole"
    program.train([*SAVING, "--out", str(whole)])
    wanted = (whole / "latest" / "weights.safetensors").read_bytes()
    broken_pipe = os.pipe()
    os.close(broken_pipe[0])
    full = open("/dev/full", "wb", buffering=0)

    def closing(*descriptors):
        return f"exec {' '.join(f'{d}>&-' for d in descriptors)}; exec \"$0\" \"$@\""

    for name, shell, streams in [
            ("2>/dev/full", None, {"stderr": full}),
            ("a log into a pipe that nobody reads", None, {"stderr": broken_pipe[1]}),
            ("2>&-", closing(2), {}), (">&- 2>&-", closing(1, 2), {})]:
        out = program.folder / "log"
        shutil.rmtree(out, ignore_errors=True)
        words = ["train", *SAVING, "--out", str(out)]
        outcome = through_shell(program, shell, words, streams)
        path = out / "latest" / "weights.safetensors"
        expected = 2 if name.startswith(">&-") else 0  # the result cannot be printed, but is saved
        wrong = (outcome.code != expected and outcome.ending()
                 or (not path.exists() or path.read_bytes() != wanted) and "other weights saved")
        report.check(not wrong, f"{name}: {wrong}", f"{program.command(words)} # {name}")
    for words in (["plan", *MLP[:5], "--json"], ["list"], ["plan", *MLP[:5]]):
        for name, shell, streams in [(">/dev/full", None, {"stdout": full}),
                                     (">&-", closing(1), {})]:
            outcome = through_shell(program, shell, words, streams)
            report.check(outcome.code == 2, f"{outcome.ending()} where the result is lost",
                         f"{program.command(words)} {name}")
    outcome = through_shell(program, None, ["plan", "no-such-model"], {"stderr": full})
    report.check(outcome.code == 2, f"a mistake told to a full stderr: {outcome.ending()}",
                 f"{program.command(['plan', 'no-such-model'])} 2>/dev/full")
    os.close(broken_pipe[1])
    full.close()


def through_shell(program, shell, words, streams):
    if shell is None:
        return program.run(words, **streams)
    inner = type(program)("/bin/sh", program.folder)
    return inner.run(["-c", shell, program.path, *words], **streams)


def full_disks(program, report, count):
    """Files that may not grow, and a disk that fills: exit 2, and the checkpoint before is whole."""
    rng = random.Random(1)
    final = program.train([*SAVING, "--out", str(program.folder / "never-full")])["weights_sha256"]
    for most in [rng.randrange(100, 14_000) for _ in range(count)]:
        folder = program.folder / "limited"
        shutil.rmtree(folder, ignore_errors=True)
        words = ["train", *SAVING, "--out", str(folder)]
        outcome = program.run(words, limits={resource.RLIMIT_FSIZE: most})
        report.check(outcome.code in (0, 2) and not outcome.fault(),
                     f"files of {most} bytes at most: {outcome.ending()}; {outcome.last_words()}",
                     f"(ulimit -f {most // 1024}; {program.command(words)})")
        resume_ends(program, report, folder, final, f"after RLIMIT_FSIZE {most}")
    disk = program.folder / "disk"
    disk.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)]
    if subprocess.run(mounted, capture_output=True).returncode != 0:
        report.skip("a full disk: this user may not mount one")
        return
    try:
        for size in [rng.randrange(4, 200) for _ in range(count)]:
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            shutil.rmtree(disk / "run", ignore_errors=True)
            subprocess.run(["mount", "-o", f"remount,size={size}k", str(disk)], check=True)
            words = ["train", *SAVING, "--out", str(disk / "run")]
            outcome = program.run(words)
            report.check(outcome.code in (0, 2) and not outcome.fault(),
                         f"a disk of {size} KiB: {outcome.ending()}; {outcome.last_words()}",
                         program.command(words))
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            resume_ends(program, report, disk / "run", final, f"after a disk of {size} KiB")
    finally:
        subprocess.run(["umount", str(disk)])


def resume_ends(program, report, folder, sha, what):
    again = ["--resume"] if (folder / "latest").exists() else ["--overwrite"]
    words = ["train", *SAVING, "--out", str(folder), "--json", *again]
    outcome = program.run(words)
    report.check(outcome.code == 0 and sha in outcome.out,
                 f"does not go on {what}: {outcome.ending()}; {outcome.last_words()}",
                 program.command(words))


def signals(program, report, count):
    """SIGINT and SIGTERM save: the run goes on from there, and ends in the same bits."""
    words = [*SAVING[:-1], "0", "--steps", "10000"]
    words[words.index("200") - 1:words.index("200") + 1] = []
    whole = program.train([*words, "--out", str(program.folder / "long")], seconds=300)
    for number in (signal.SIGINT, signal.SIGTERM):
        folder = program.folder / number.name
        command = ["train", *words, "--out", str(folder)]
        process = program.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        process.stderr.readline()  # it has begun
        time.sleep(0.1)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        saved = (folder / "latest").exists()
        report.check(saved, f"{number.name}: nothing was saved ({process.returncode})",
                     program.command(command))
        if saved:
            outcome = program.run([*command, "--resume", "--json"], seconds=300)
            good = outcome.code == 0 and outcome.json()["weights_sha256"] == whole["weights_sha256"]
            report.check(good, f"{number.name}: goes on to {outcome.ending()}, other weights",
                         program.command([*command, "--resume"]))


def folders_in_use(program, report, count):
    """Two runs into one folder, two runs without one, and `latest` as a folder of its own."""
    for number in range(count):
        folder = program.folder / f"shared-{number}"
        words = ["train", *SAVING, "--out", str(folder), "--json"]
        runs = [program.start([*words, "--seed", str(seed)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) for seed in (1, 2)]
        ends = [(each.communicate(timeout=120)[0], each.returncode) for each in runs]
        done = [out for out, code in ends if code == 0]
        report.check(all(code in (0, 2) for _, code in ends) and len(done) == 1,
                     f"two runs into one folder exit with {[code for _, code in ends]}",
                     f"{program.command(words)} --seed 1 & {program.command(words)} --seed 2")
    home = program.folder / "unnamed"
    home.mkdir()
    words = ["train", *MLP, *QUIET, "--threads", "1", "--json"]
    runs = [program.start([*words, "--seed", str(seed)], cwd=home, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) for seed in (1, 2, 3)]
    codes = [(each.communicate(timeout=120), each.returncode)[1] for each in runs]
    saved = len(list(home.glob("runs/*/latest/weights.safetensors")))
    report.check(codes == [0, 0, 0] and saved == 3,
                 f"three runs without --out at once: exit {codes}, {saved} results",
                 f"{program.command(words)} & {program.command(words)}")
    copied = program.folder / "copied"
    program.train([*SAVING, "--out", str(program.folder / "original")])
    shutil.copytree(program.folder / "original", copied)  # follows links: `latest` is a folder now
    words = ["train", *SAVING, "--steps", "220", "--resume", "--out", str(copied), "--json"]
    words.remove("200"), words.remove("--steps")
    outcome = program.run(words)
    said = "is no link to a checkpoint" in outcome.err  # before anything was trained
    report.check(outcome.code == 2 and said or outcome.code == 0
                 and pathlib.Path(copied / "latest" / "state.json").read_text().count('"step": 220'),
                 f"`latest` as a real folder: {outcome.ending()}; {outcome.last_words()}",
                 program.command(words))


CHECKS = [fewer_threads, instruction_sets, output_that_fails, full_disks, signals, folders_in_use]


def run(program, report, count=8, seconds=600, only=None):
    until = time.monotonic() + seconds
    for check in CHECKS:
        if only and check.__name__ != only:
            continue
        if time.monotonic() > until:
            report.skip(f"{check.__name__}: out of time")
            continue
        print(f"  {check.__name__}: {check.__doc__.splitlines()[0]}", flush=True)
        check(program, report, count)


if __name__ == "__main__":
    arguments = arguments_of(__doc__, count=8, seconds=600.0, only=None)
    sys.exit(finish("environment", run, arguments))
