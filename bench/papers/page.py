"""Writes docs/results/papers.md and its pictures, whole, from the records.

usage: page.py [--records docs/results/papers] [--page docs/results/papers.md] [--check]
--check writes nothing and fails where the page is not what the records say.
"""
import argparse
import importlib
import os
import sys

from book import Book
from drive import EXPERIMENTS, cells_of
from records import FOLDER, Records

HEAD = """# The papers' figures and tables

Chen, Xu, Zhang, Guestrin 2016, "Training deep nets with sublinear memory cost" (S1), and Sohoni, Aberger, Leszczynski, Zhang, Ré 2019,
"Low-memory neural network training" (S2): what they measured, measured here. `make papers` fills what is missing and writes this page
(`ONLY=S1-a`: one of them; `make papers-quick`: small nets, minutes, into `build/papers-quick`); trainings want a GPU and
`DATA_DIR=FOLDER` of CIFAR-10. Nothing on it is written by hand: every figure is a line of [papers/*.jsonl](papers), with command, seed, date,
machine and version. **not run** means just that. MB = 10^6 bytes, MiB and GiB are of 1024.
"""


def write(records, page, quick=False, only_check=False):
    """True when the page on disk was, or now is, what the records say."""
    pictures = os.path.join(os.path.dirname(page), "papers")
    book = Book(records, pictures, cells_of(EXPERIMENTS, quick))
    lines = [HEAD]
    for name in sorted(EXPERIMENTS):
        module = importlib.import_module(EXPERIMENTS[name])
        lines += [f"## {name}: {module.TITLE}", *module.page(book, quick), "",
                  book.provenance(name), ""]
    text = "\n".join(lines).rstrip() + "\n"
    if only_check:
        with open(page, encoding="utf-8") as file:
            return file.read() == text
    with open(page, "w", encoding="utf-8") as file:
        file.write(text)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", default=FOLDER)
    parser.add_argument("--page", default=os.path.join(os.path.dirname(FOLDER), "papers.md"))
    parser.add_argument("--quick", action="store_true", help="of the small nets")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if not write(Records(args.records), args.page, args.quick, args.check):
        sys.exit(f"{args.page} is not what {args.records} says: run bench/papers/page.py")


if __name__ == "__main__":
    main()
