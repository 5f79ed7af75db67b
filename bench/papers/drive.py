"""The command line that all experiments share: what to run, where, for how long."""
import argparse
import collections
import dataclasses
import importlib
import os
import sys

import program
from cells import share_of
from records import FOLDER, Records
from sitting import Sitting, pack, unpack

# In the order of running: the headline, what its techniques do one by one and together, the rest.
EXPERIMENTS = {"S2-g": "headline", "S2-a": "s2_a", "S2-b": "s2_b", "S2-c": "s2_c", "S2-d": "s2_d",
               "S2-e": "s2_e", "S2-f": "s2_f", "S2-h": "s2_h", "S1-a": "s1_a", "S1-b": "s1_b", "S1-c": "s1_c",
               "S1-d": "s1_d"}
SWEEPS = ["S2-b", "S2-c", "S2-d", "S2-e", "S2-f"]


def cells_of(names, quick):
    return [cell for name in names
            for cell in importlib.import_module(EXPERIMENTS[name]).cells(quick)]


def one_of_many(text):
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"'{text}' is no share; 2/3 is the second of three")
    return int(number) - 1, int(count)


def main(names, usage):
    parser = argparse.ArgumentParser(description=usage,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thimble", default=os.path.join(program.REPOSITORY,
                                                          "build/release/thimble"))
    parser.add_argument("--device", default="cuda" if program.has_card() else "cpu")
    parser.add_argument("--threads", type=int, default=0, help="of runs on the CPU")
    parser.add_argument("--data-dir", help="folder of CIFAR-10 in its binary form")
    parser.add_argument("--pairs-dir", help="folder of Multi30k, as `thimble data` leaves it")
    parser.add_argument("--minutes", type=float, help="stop cleanly before they are over")
    parser.add_argument("--calibrate", type=float, metavar="SECONDS",
                        help="measure the kernels of each command first; 8 on a GPU, else 0")
    parser.add_argument("--only", default="", help="experiments (S1-a) or names of cells, joined "
                                                   "by ;")
    parser.add_argument("--planned", action="store_true", help="only what needs no training")
    parser.add_argument("--again", action="store_true",
                        help="plan again what is planned; replace figures that are others now")
    parser.add_argument("--list", action="store_true", help="print what has no figures yet")
    parser.add_argument("--seeds", help="of trainings, joined by commas: others than usual")
    parser.add_argument("--share", type=one_of_many, metavar="I/N",
                        help="of trainings, the I-th of N parts: N sittings at once fill the same "
                             "folders")
    parser.add_argument("--shared", action="store_true",
                        help="others are at work on the card: records say so, pages leave times out")
    parser.add_argument("--sweeps", action="store_true", help="then S2-b to S2-f")
    parser.add_argument("--quick", action="store_true", help="small nets, minutes on a CPU")
    parser.add_argument("--work", help="folder of unfinished runs; build/papers")
    parser.add_argument("--records", help="folder of results; results/papers")
    parser.add_argument("--from", dest="source", metavar="FILE", help="a file of --to; may be "
                                                                      "absent")
    parser.add_argument("--to", metavar="FILE", help="what the next sitting needs, as one file")
    args = parser.parse_args()

    base = os.path.join(program.REPOSITORY, "build", "papers" + ("-quick" if args.quick else ""))
    args.work = args.work or base
    args.records = args.records or (os.path.join(base, "records") if args.quick else FOLDER)
    if args.calibrate is None:
        args.calibrate = 8 if args.device == "cuda" else 0

    names = names + [name for name in SWEEPS if args.sweeps]
    only = [word for word in args.only.split(";") if word]
    wanted = [cell for cell in cells_of(names, args.quick)
              if (not only or cell.experiment in only or cell.name in only)
              and (not args.planned or cell.verb != "train")]
    if args.seeds:
        seeds = tuple(int(seed) for seed in args.seeds.split(","))
        wanted = [dataclasses.replace(cell, seeds=seeds) if cell.verb == "train" else cell
                  for cell in wanted]
    if args.share:
        if args.source or args.to or args.again:
            parser.error("--share fills folders that others fill, too: without --from, --to, --again")
        mine, shares = args.share
        wanted = [cell for cell in wanted
                  if cell.verb != "train" or share_of(cell, shares) == mine]
    if not wanted and not args.share and args.only != "none":
        parser.error(f"--only {args.only}: no such experiment or cell; there are "
                     + ", ".join(dict.fromkeys(names)))

    records = Records(args.records)
    if args.source and os.path.exists(args.source):
        unpack(args.source, args.work, records)
    if args.list:
        missing = [(cell, seed) for cell in wanted for seed in cell.seeds
                   if seed not in [r["seed"] for r in records.of(cell.experiment, cell.name)]]
        for cell, seed in missing:
            print(f"{cell.experiment}  {cell.name}" + (f", seed {seed}" if seed else ""))
        print(f"{len(missing)} without figures")
        return 0

    def save():
        if args.to:
            pack(args.to, args.work, records)

    sitting = Sitting(program.Thimble(args.thimble, args.device, args.threads), records, args.work,
                      args.minutes, {"cifar10": args.data_dir, "multi30k": args.pairs_dir},
                      args.calibrate, lambda text: print(text, flush=True), save)
    sitting.again = args.again
    sitting.shared = args.shared or bool(args.share)
    try:
        done = all([sitting.run([cell for cell in wanted if cell.experiment == name])
                    for name in dict.fromkeys(cell.experiment for cell in wanted)])
    except program.Failed as failure:
        sys.exit(f"{failure}")
    finally:
        save()
    for (name, why), count in collections.Counter(
            (cell.experiment, why) for cell, _, why in sitting.not_run).items():
        print(f"not run: {name}, {count} of its figures: {why}")
    print(f"{len(records.all)} figures in {args.records}")
    return 0 if done else 75  # as sysexits.h: try again later
