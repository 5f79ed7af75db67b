"""Every experiment of the two papers, resumable.

usage: run.py --thimble PROGRAM [--only "S1-a;S2-e"] [--planned] [--quick] [--data-dir CIFAR10] ...
What has a record under docs/results/papers is not run again. Trainings want a GPU (--device cuda,
the default where there is one) and CIFAR-10; without them they are left out and marked so on the
page, which `page.py` writes.
`headline.py --help` has the rest: stopping on the clock, carrying a sitting to another machine.
"""
import sys

import drive

if __name__ == "__main__":
    sys.exit(drive.main(list(drive.EXPERIMENTS), __doc__))
