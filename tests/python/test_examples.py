"""The examples of examples/python that need no PyTorch, each in a folder of its own; tests/torch/examples.py has the others."""

import pathlib
import subprocess
import sys

from support import Case

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "python"


class Examples(Case):
    def test_run(self):
        ran = 0
        for path in sorted(EXAMPLES.glob("*.py")):
            if "import torch" in path.read_text():
                continue
            done = subprocess.run([sys.executable, path], cwd=self.folder, capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, f"{path.name}: {done.stderr}")
            ran += 1
        self.assertGreaterEqual(ran, 3)
