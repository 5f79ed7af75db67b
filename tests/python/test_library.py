"""libthimble.so as a file."""

import os
import pathlib
import re
import subprocess

from support import Case


class Library(Case):
    def test_exports_the_functions_of_its_header_and_nothing_else(self):
        path = os.environ["THIMBLE_LIBRARY"]
        said = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                              check=True).stdout
        exported = {line.split()[-1].split("@")[0] for line in said.splitlines()}
        header = pathlib.Path(__file__).parents[2] / "include" / "thimble" / "thimble.h"
        declared = set(re.findall(r"^THIMBLE_API .*?(thimble_\w+)\(", header.read_text(), re.M))
        self.assertEqual({name for name in exported if not name.startswith("THIMBLE_")}, declared)
        self.assertTrue(any("@@THIMBLE_0.1" in line for line in said.splitlines()))

    def test_has_a_versioned_name(self):
        said = subprocess.run(["readelf", "-d", os.environ["THIMBLE_LIBRARY"]],
                              capture_output=True, text=True, check=True).stdout
        self.assertIn("[libthimble.so.0]", said)
