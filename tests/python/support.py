"""Tools that the tests of the Python package share: a small net, and records that it can learn."""

import os
import shutil
import tempfile
import unittest

import numpy as np

import thimble

# Alone on a core, so that tests can run beside each other.
SMALL = dict(image=[8, 8, 1], classes=4, batch=16, threads=1, seed=7, schedule="constant", lr=0.05)


def records(count, seed=0):
    """Pictures of four kinds, one bright quarter each, and which."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 4, count)
    pixels = draw.integers(0, 60, (count, 8, 8, 1))
    for picture, label in zip(pixels, labels):
        top, left = 4 * (label // 2), 4 * (label % 2)
        picture[top:top + 4, left:left + 4] += 150
    return pixels.astype(np.uint8), labels.astype(np.int32)


def batches(count, rows=16, seed=0):
    pixels, labels = records(count * rows, seed)
    return [(pixels[i * rows:(i + 1) * rows], labels[i * rows:(i + 1) * rows])
            for i in range(count)]


def plan(**more):
    return thimble.plan("mlp", **{**SMALL, **more})


class Case(unittest.TestCase):
    """With a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="thimble-python-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def assertSays(self, kind, *words):
        """A context in which `kind` is raised, with all of the words in its sentence."""
        pattern = "(?s)" + "".join(f"(?=.*{word})" for word in words)
        return self.assertRaisesRegex(kind, pattern)
