"""S2-g, the headline: dense fp32, everything combined within 6.5 MB, and a point within 5.0 MB.

usage: headline.py --thimble PROGRAM --data-dir CIFAR10 [--device cuda] [--minutes 9]
                   [--from FILE.tar] [--to FILE.tar] [--only dense|combined|small]
WRN-28-2 on CIFAR-10, 200 epochs, one run after the other. With --minutes it stops cleanly before they
are over; started again it goes on to the same bits. --to packs all that takes (results, checkpoints,
kernel times) into one file, --from starts with such a file, on whatever machine. Then, time being
left, S2-b to S2-f follow at their short schedule (--sweeps). Exit code 75: not finished, go on.
"""
import sys

from cells import Cell

RECIPE = "recipes/wrn-28-2-cifar10.toml"
SPARSE = "recipes/wrn-28-2-cifar10-sparse.toml"
COMBINED = (SPARSE, "--microbatch", "10", "--precision", "fp16", "--memory", "6.5MB")
# Folded gradients: heavy ball, and a loss scale that is a number. Density: the most that fits.
SMALL = (SPARSE, "--microbatch", "10", "--precision", "fp16", "--optimizer", "sgd", "--fold",
         "--loss-scale", "1024", "--memory", "5.0MB")
DENSITIES = ("0.29", "0.28", "0.27", "0.26", "0.25", "0.24", "0.22", "0.2", "0.17", "0.14", "0.1")
BASELINE_BYTES = 399018984  # on paper: docs/cli.md#thimble-profile
GPU = ("cuda", "cifar10")


def cells(quick=False):
    if quick:
        return quick_cells()
    return [
        Cell("S2-g", "dense", "train", (RECIPE,), seeds=(1, 2, 3), needs=GPU),
        Cell("S2-g", "combined", "train", COMBINED, seeds=(1, 2), needs=GPU),
        Cell("S2-g", "small", "train", SMALL, seeds=(1,), needs=GPU,
             ladder=tuple(("--density", d) for d in DENSITIES)),
    ]


def quick_cells():
    """The same paths in seconds: a small net on the built-in digits."""
    small = ("wrn-10-1", "--data", "digits", "--batch", "50", "--weight-decay", "5e-4")
    combined = (*small, "--density", "0.3", "--microbatch", "10", "--precision", "fp16")
    folded = (*combined, "--optimizer", "sgd", "--fold", "--loss-scale", "1024")
    schedule = ("--epochs", "4")
    return [
        Cell("S2-g", "dense", "train", small, schedule, seeds=(1, 2)),
        Cell("S2-g", "combined", "train", (*combined, "--memory", "least"), schedule, seeds=(1,)),
        Cell("S2-g", "small", "train", folded, schedule, seeds=(1,),
             ladder=tuple(("--memory", m) for m in ("20kB", "600kB"))),
    ]


if __name__ == "__main__":
    import drive

    sys.exit(drive.main(["S2-g"], __doc__))
