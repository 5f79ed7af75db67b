"""Writes docs/results/papers.md and its pictures, whole, from the records.

usage: page.py [--records results/papers] [--page docs/results/papers.md] [--check]
--check writes nothing and fails where the page is not what the records say.
"""
import argparse
import importlib
import os
import pathlib
import re
import sys

from book import Book
from drive import EXPERIMENTS, cells_of
from program import REPOSITORY
from records import FOLDER, Records

HEAD = """# The papers' figures and tables

Chen, Xu, Zhang, Guestrin 2016, "Training deep nets with sublinear memory cost" (S1), and Sohoni, Aberger, Leszczynski, Zhang, Ré 2019,
"Low-memory neural network training" (S2): what they measured, measured here. `make papers` fills what is missing and writes this page
(`ONLY=S1-a`: one of them; `make papers-quick`: small nets, minutes, into `build/papers-quick`); trainings want a GPU and
`DATA_DIR=FOLDER` of CIFAR-10. Nothing on it is written by hand: every figure is a line of [results/papers/*.jsonl](../../results/papers), with command, seed, date,
machine and version. **not run** means just that. MB = 10^6 bytes, MiB and GiB are of 1024.
"""


def files_of(records, page, quick=False):
    """The page and its pictures: text by path."""
    pictures = os.path.join(os.path.dirname(page), "papers")
    book = Book(records, pictures, cells_of(EXPERIMENTS, quick))
    lines = [HEAD]
    for name in sorted(EXPERIMENTS):
        module = importlib.import_module(EXPERIMENTS[name])
        lines += [f"## {name}: {module.TITLE}", *module.page(book, quick), "",
                  book.provenance(name), ""]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"
    return {page: text, **book.drawn}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", default=FOLDER)
    parser.add_argument("--page", default=os.path.join(REPOSITORY, "docs", "results", "papers.md"))
    parser.add_argument("--quick", action="store_true", help="of the small nets")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    for path, text in files_of(Records(args.records), args.page, args.quick).items():
        if not args.check:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            pathlib.Path(path).write_text(text, encoding="utf-8")
        elif not os.path.exists(path) or pathlib.Path(path).read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is not what the records say: run bench/papers/page.py")


if __name__ == "__main__":
    main()
