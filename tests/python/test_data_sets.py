"""The same pictures from a folder, from tar archives and from arrays: the same weights, to the bit."""

import io
import os
import struct
import tarfile
import zlib

import numpy as np

import thimble
from support import Case, records


def png(pixels):
    """A picture [H,W,3] as a file."""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)

    def chunk(kind, content):
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) +
            chunk(b"IEND", b""))


class DataSets(Case):
    def setUp(self):
        super().setUp()
        pixels, labels = records(220)
        self.pixels = np.repeat(pixels, 3, axis=3)  # grey in colour
        self.labels = labels
        by_class = np.argsort(labels, kind="stable")  # as folders have them
        tested = np.arange(220) % 11 == 0
        self.train, self.test = by_class[~tested], by_class[tested]

    def train_on(self, data, **more):
        return thimble.train("mlp", data, data_dir=self.path(data), image=[8, 8, 3], batch=20,
                             hidden=16, threads=1, epochs=2, **more)

    def write_images(self):
        for split, rows in (("train", self.train), ("val", self.test)):
            for place, row in enumerate(rows):
                folder = self.path(f"images/{split}/class{self.labels[row]}")
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(folder, f"{place:04}.png"), "wb") as file:
                    file.write(png(self.pixels[row]))

    def write_archives(self):
        os.makedirs(self.path("webdataset"))
        for name, rows in (("train-0", self.train[:90]), ("train-1", self.train[90:]),
                           ("val-0", self.test)):
            with tarfile.open(self.path(f"webdataset/{name}.tar"), "w") as archive:
                for place, row in enumerate(rows):
                    for suffix, content in (("png", png(self.pixels[row])),
                                            ("cls", str(self.labels[row]).encode())):
                        entry = tarfile.TarInfo(f"{name}/{place:05}.{suffix}")
                        entry.size = len(content)
                        archive.addfile(entry, io.BytesIO(content))

    def write_arrays(self):
        os.makedirs(self.path("npy"))
        for split, rows in (("train", self.train), ("test", self.test)):
            np.save(self.path(f"npy/{split}_pixels.npy"), self.pixels[rows])
            np.save(self.path(f"npy/{split}_label.npy"), self.labels[rows].astype(np.int64))

    def test_pictures_are_the_same_wherever_they_lie(self):
        self.write_images()
        self.write_archives()
        self.write_arrays()
        for augment in (False, True):
            runs = [self.train_on(data, augment=augment or None)
                    for data in ("npy", "images", "webdataset")]
            for other in runs[1:]:
                self.assertEqual(runs[0].result["test_accuracy"], other.result["test_accuracy"])
                for name, weight in runs[0].weights().items():
                    np.testing.assert_array_equal(weight, other.weights()[name], err_msg=name)

    def test_a_damaged_picture_ends_the_run_with_its_name(self):
        self.write_images()
        run = thimble.Run(thimble.plan("mlp", data="images", data_dir=self.path("images"),
                                       image=[8, 8, 3], batch=20, hidden=16, threads=1),
                          out=self.path("out"))
        run.step()
        run.save()
        bad = self.path(f"images/train/class{self.labels[self.train[100]]}/0100.png")
        with open(bad, "r+b") as file:
            file.truncate(60)
        with self.assertSays(thimble.UserError, "0100.png", "damaged or truncated"):
            for _ in range(20):
                run.step()
        self.assertTrue(os.path.exists(self.path("out/latest")))
