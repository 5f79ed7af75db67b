#!/usr/bin/env python3
"""Seconds from the question to a plan or a refusal, for many nets and budgets, on one core.

usage: search.py PROGRAM [--before OTHER] [--nets FOLDER] [--only TEXT,...] [--flags WORDS] [--limit S] [--lines FILE]

Each net is planned within 75, 50, 25 and 10 % of what keeping everything takes, and within 10 KiB. A plan is wanted
within 10 s, a refusal that a lower bound proves (its sentence says so) within 1 s. Nets are the zoo's, and every
graph in FOLDER (bench/search_nets.py exports them). Seconds are of processor time, so that a busy machine does not
count; --limit ends a search that takes longer. --before is asked in turn with PROGRAM, and stands beside it.
--lines keeps answers: what is there is not asked again. Exits 1 where an answer came too late.
"""
import argparse
import json
import os
import pathlib
import resource
import shlex
import statistics
import subprocess
import sys
import time

ZOO = ("mlp --batch 64", "wrn-10-1 --batch 30", "wrn-28-2 --batch 100", "wrn-28-10 --batch 32",
       "resnet-50 --batch 8", "resnet-101 --batch 32", "resnet-1001 --batch 32", "unet --batch 8",
       "lstm --length 32 --batch 16", "lstm --length 1000", "lstm --length 2048",
       "gpt:layers=2,width=64,heads=4,length=32 --batch 8", "gpt2-124m --batch 8",
       "dynamicconv:encoder=2,decoder=2,width=64 --batch 16 --length 24",
       "dynamicconv-iwslt --tokens 4000", "lightconv:encoder=2,decoder=2,width=64 --batch 16 --length 24")
SHARES = (0.75, 0.5, 0.25, 0.1)
TINY = 10 * 1024
SLOWEST, SLOWEST_PROVED = 10.0, 1.0
PLAN, REFUSAL, LATE = 0, 3, 124


def ask(program, words, limit):
    """Exit code, seconds of processor time, seconds of the clock, MiB resident, output."""
    def on_one_core():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 1))

    began = time.monotonic()
    child = subprocess.Popen([program, "plan", *words, "--json", "--threads", "1"], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, preexec_fn=on_one_core)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    code = LATE if child.returncode < 0 else child.returncode
    return code, usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss / 1024, out


class Answers:
    """Lines of a file: each is asked once."""

    def __init__(self, path):
        self.path, self.known = path and pathlib.Path(path), {}
        if self.path and self.path.exists():
            for line in self.path.read_text().splitlines():
                row = json.loads(line)
                self.known[row["who"], row["net"], row["budget"]] = row

    def of(self, who, program, net, words, budget, flags, limit):
        key = (who, net, budget)
        if key not in self.known:
            memory = ["--planner", "keep_all"] if budget == "all" else ["--memory", str(budget)]
            code, seconds, wall, mib, out = ask(program, [*words, *memory, *flags], limit)
            said = json.loads(out) if out.strip().startswith("{") else {}
            row = {"who": who, "net": net, "budget": budget, "code": code, "seconds": round(seconds, 3),
                   "wall": round(wall, 3), "mib": round(mib, 1), "arena": said.get("arena_bytes"),
                   "ms": said.get("predicted_step_ms"), "nodes": said.get("nodes"),
                   "least": said.get("min_bytes"), "proved": said.get("proved", code == REFUSAL and budget == TINY)}
            self.known[key] = row
            if self.path:
                with self.path.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        return self.known[key]


def summary(title, rows, slowest):
    if not rows:
        return 0
    seconds = sorted(row["seconds"] for row in rows)
    late = [row for row in rows if row["seconds"] > slowest or row["code"] == LATE]
    at = lambda share: seconds[min(len(seconds) - 1, int(share * len(seconds)))]
    print(f"{title:<28}{len(rows):>6}{statistics.median(seconds):>9.2f}{at(0.95):>9.2f}{seconds[-1]:>9.2f}"
          f"{len(late):>7}{max(row['mib'] for row in rows):>9.0f}")
    for row in sorted(late, key=lambda row: -row["seconds"])[:20]:
        print(f"    {row['net']} in {row['budget']}: {row['seconds']:.1f} s{', no answer' * (row['code'] == LATE)}")
    return len(late)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--before")
    parser.add_argument("--nets")
    parser.add_argument("--only", default="", help="nets whose words contain one of these")
    parser.add_argument("--flags", default="--costs modelled", help="further words of every question")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--lines")
    flags = parser.parse_args()
    nets = {words: shlex.split(words) for words in ZOO}
    for file in sorted(pathlib.Path(flags.nets).glob("*.json")) if flags.nets else []:
        nets[file.stem] = [str(file)]
    wanted = [net for net in nets if any(text in net for text in flags.only.split(","))]
    programs = {"now": os.path.abspath(flags.program)}
    if flags.before:
        programs["before"] = os.path.abspath(flags.before)
    answers, rows = Answers(flags.lines), {who: [] for who in programs}
    for net in wanted:
        budgets = [TINY]
        for who, program in programs.items():
            row = answers.of(who, program, net, nets[net], "all", flags.flags.split(), flags.limit)
            if who == "now" and row["arena"]:
                budgets = [int(share * row["arena"]) for share in SHARES] + budgets
            elif who == "now":
                print(f"{net}: no plan that keeps everything (exit {row['code']})")
        for budget in budgets:
            told = f"{net[:44]:<46}{budget:>13}"
            for who, program in programs.items():
                row = answers.of(who, program, net, nets[net], budget, flags.flags.split(), flags.limit)
                rows[who].append(row)
                what = {PLAN: "plan", REFUSAL: "refused", LATE: "LATE"}.get(row["code"], f"exit {row['code']}")
                told += f"{what:>9}{row['seconds']:>8.2f} s{row['ms'] or 0:>10.3f} ms"
            print(told, flush=True)
    print(f"\n{'seconds of one core':<28}{'asked':>6}{'median':>9}{'p95':>9}{'worst':>9}{'late':>7}{'MiB':>9}")
    late = 0
    for who, asked in rows.items():
        proved = [row for row in asked if row["code"] == REFUSAL and row["proved"]]
        late_here = summary(f"{who}: all", asked, SLOWEST)
        late_here += summary(f"{who}: refused by a bound", proved, SLOWEST_PROVED)
        late += late_here if who == "now" else 0
    sys.exit(1 if late else 0)


if __name__ == "__main__":
    main()
