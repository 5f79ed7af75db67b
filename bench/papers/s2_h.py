"""S2-h: all combinations of a net that a CPU trains in minutes: the frontier that anyone can repeat."""
from nets import DIGITS, SMALL_WRN
from s2_f import Combination, cells_of, frontier

TITLE = "All combinations, on a CPU in an hour"
PRECISIONS = ("fp32", "bf16")
# In the order of running: the corners come first.
DENSITIES = ("1", "0.3", "0.1", "0.5")


def combinations(quick):
    net = DIGITS if quick else SMALL_WRN
    densities = DENSITIES[:2] if quick else DENSITIES
    return [Combination(net, precision, density, microbatch, experiment="S2-h")
            for density in densities for microbatch in net.microbatches[:2] for precision in PRECISIONS]


def cells(quick=False):
    return cells_of(combinations(quick))


def page(book, quick=False):
    return ["As S2-f, of a smaller net: five epochs of all 50,000 pictures, seed 1, on two cores of a CPU. "
            "`make papers-cpu DATA_DIR=FOLDER` trains it; bf16 rounds weights stochastically.",
            "", *frontier(book, combinations(quick))]
