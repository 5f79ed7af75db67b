"""The examples of docs/python.md, run from top to bottom."""

import os
import pathlib
import re

from support import Case

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


class Docs(Case):
    def test_examples_run(self):
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        names = {}
        blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
        self.assertGreater(len(blocks), 4)
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
