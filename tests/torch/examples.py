#!/usr/bin/env python3
"""The examples of examples/python that need PyTorch, each run in a folder of its own: `make test-torch`."""
import pathlib
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


def main():
    for path in sorted(EXAMPLES.glob("*.py")):
        if "import torch" not in path.read_text():
            continue
        with tempfile.TemporaryDirectory(prefix="thimble-example-") as folder:
            subprocess.run([sys.executable, path], cwd=folder, check=True)
        print(f"{path.name}: ok", flush=True)


if __name__ == "__main__":
    main()
