"""Every experiment of the two papers, resumable.

usage: run.py --thimble PROGRAM [--only "S1-a;S2-e"] [--planned] [--quick] [--data-dir CIFAR10] ...
A cell with a record under results/papers is not run again. Trainings want a GPU (--device cuda,
the default where there is one) and CIFAR-10; without them they are left out and marked so on the
page, which `page.py` writes.
Small runs leave most of a GPU idle: `--share 1/3`, `2/3` and `3/3` at once, under NVIDIA's MPS
(`nvidia-cuda-mps-control -d`; without it they take turns, and are slower together than one by one),
train different cells. Times of such runs are not those of a card alone.
`headline.py --help` has the rest: stopping on the clock, carrying a sitting to another machine.
"""
import sys

import drive

if __name__ == "__main__":
    sys.exit(drive.main(list(drive.EXPERIMENTS), __doc__))
