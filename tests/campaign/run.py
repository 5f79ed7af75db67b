"""The campaign: every part in turn, each within its bounds, and a table of what was found.

usage: run.py THIMBLE [--short] [--scale 1] [--seed 1] [--findings FOLDER] [--only PART ...]
--short is what runs with the fast tests: under a minute on one core, no PyTorch. --scale 0.1 or 10
makes every count and every limit on time that much smaller or larger. See docs/testing.md. Exit 1
if anything was found.
"""
import importlib
import sys
import time

from parts import parser_of, run_part

# name: (module, whole settings, short settings); a limit on time ends a part without a finding.
PARTS = {
    "twins": ("twins", {"count": 100, "seconds": 600.0}, None),
    "doors": ("doors", {"count": 1000, "seconds": 600.0}, {"count": 1000, "seconds": 15.0}),
    "files": ("fuzz_files", {"count": 1000, "seconds": 600.0}, {"count": 25, "seconds": 8.0}),
    "flags": ("fuzz_flags", {"count": 3000, "seconds": 600.0}, {"count": 100, "seconds": 6.0}),
    "kills": ("kill_loop", {"count": 100, "seconds": 600.0}, {"count": 5, "seconds": 20.0}),
    "ranks": ("kill_ranks", {"count": 20, "seconds": 600.0}, {"count": 2, "seconds": 30.0}),
    "budgets": ("budgets", {"count": 28, "budgets": 10, "seconds": 600.0},
                {"count": 4, "budgets": 4, "seconds": 6.0}),
    "folders": ("folders", {"count": 100, "seconds": 600.0}, {"count": 12, "seconds": 30.0}),
    "limit": ("hard_limit", {"count": 3, "seconds": 600.0}, {"count": 1, "seconds": 10.0}),
    "environment": ("environment", {"count": 8, "seconds": 600.0}, {"count": 1, "seconds": 30.0}),
}
SEEDED = {"files", "flags", "kills", "ranks", "budgets", "folders"}


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    began, reports = time.monotonic(), []
    for name in arguments.only:
        module, settings, short = PARTS[name]
        if arguments.short:
            settings = short
        if settings is None:
            continue
        settings = {key: type(value)(max(1, value * arguments.scale)) if key in ("count", "seconds")
                    else value for key, value in settings.items()}
        if name in SEEDED:
            settings["seed"] = arguments.seed
        print(f"{name}: {settings}", flush=True)
        reports.append(run_part(name, importlib.import_module(module).run, arguments.thimble,
                                arguments.findings, **settings))
    print(f"\nthe campaign, {time.monotonic() - began:.0f} s")
    for report in reports:
        print(f"  {report.line()}")
        for what, command in report.findings:
            print(f"    {what}\n      {command}")
    sys.exit(1 if any(report.findings for report in reports) else 0)


if __name__ == "__main__":
    main()
