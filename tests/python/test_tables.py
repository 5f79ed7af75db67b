"""--data FOLDER, which says what it takes a folder for; and tables of numbers (csv)."""

import os
import pathlib
import unittest
import warnings

import numpy as np

import thimble
from support import Case, records

PICTURES = pathlib.Path(__file__).parents[1] / "import" / "nets" / "pictures.json"
SMALL = dict(batch=16, threads=1, seed=7, epochs=2, image=[8, 8, 1], classes=4, hidden=8)


class Tables(Case):
    def write(self, name, lines):
        os.makedirs(self.path("table"), exist_ok=True)
        path = os.path.join(self.path("table"), name)
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")
        return path

    def lines(self, count, seed=0, separator=","):
        pixels, labels = records(count, seed)
        return [separator.join(map(str, [label, *picture.reshape(-1)])) for picture, label in zip(pixels, labels)]

    def header(self, separator=","):
        return separator.join(["label", *(f"p{k}" for k in range(64))])

    def trained(self, **more):
        return thimble.train("mlp", "csv", data_dir=self.path("table"), **{**SMALL, **more})

    def test_a_table_is_what_arrays_of_its_numbers_are(self):
        self.write("train.csv", [self.header(), *self.lines(96)])
        self.write("test.csv", [self.header(), *self.lines(32, seed=1)])
        run = self.trained()
        os.makedirs(self.path("arrays"))
        for split, count, seed in (("train", 96, 0), ("test", 32, 1)):
            pixels, labels = records(count, seed)
            np.save(os.path.join(self.path("arrays"), f"{split}_pixels.npy"), pixels)
            np.save(os.path.join(self.path("arrays"), f"{split}_label.npy"), labels)
        same = thimble.train("mlp", "npy", data_dir=self.path("arrays"), **SMALL)
        for name, weight in run.weights().items():
            np.testing.assert_array_equal(weight, same.weights()[name], err_msg=name)
        self.assertEqual(run.result["test_loss"], same.result["test_loss"])

    def test_columns_in_any_order_separator_and_quotes(self):
        self.write("train.csv", [self.header(), *self.lines(64)])
        expected = self.trained().weights()
        names, *lines = [self.header(";"), *self.lines(64, separator=";")]
        turned = ['"' + line.replace(";", '";"') + '"' for line in (";".join(reversed(l.split(";"))) for l in lines)]
        names = ";".join(["label", *(f"pixels.{k}" for k in range(64))])
        self.write("train.csv", [";".join(reversed(names.split(";"))), *turned])
        for name, weight in self.trained().weights().items():
            np.testing.assert_array_equal(weight, expected[name], err_msg=name)

    def test_refusals(self):
        good = self.lines(40)
        for lines, words in (
            ([self.header(), *good[:3], good[3].replace(",", ",x", 1)], ["line 5", "column 2", "no number"]),
            ([self.header(), good[0], good[1] + ",7"], ["line 3", "66 columns", "65"]),
            ([self.header(), good[0], "1.5" + good[1][1:]], ["line 3", "'label'", "whole numbers"]),
            ([self.header(), good[0], good[1].rsplit(",", 1)[0] + ",256"], ["line 3", "to 255"]),
            ([self.header().rsplit(",", 1)[0], *(l.rsplit(",", 1)[0] for l in good)], ["63 columns", "'pixels'"]),
            ([self.header(), good[0] + '"', good[1]], ["line 2"]),
            ([""], ["is empty"]),
        ):
            self.write("train.csv", lines)
            with self.assertSays(thimble.UserError, *words):
                self.trained()

    def test_a_folder_says_what_it_is(self):
        self.write("train.csv", [self.header(), *self.lines(64)])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            plan = thimble.plan("mlp", data=self.path("table"), **SMALL)
        self.assertEqual((plan.recipe["data"], plan.recipe["data_dir"]), ("csv", self.path("table")))
        self.assertIn("holds train.csv: read as --data csv", " ".join(str(w.message) for w in said))
        pixels, labels = records(40)
        os.makedirs(self.path("arrays/train"))
        np.save(self.path("arrays/train/pixels.npy"), pixels)
        np.save(self.path("arrays/train/label.npy"), labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(thimble.plan("mlp", data=self.path("arrays"), **SMALL).recipe["data"], "npy")
        os.makedirs(self.path("nothing"))
        with self.assertSays(thimble.UserError, "holds nothing", "train.csv", "--data-dir"):
            thimble.plan("mlp", data=self.path("nothing"), **SMALL)
        with self.assertSays(thimble.UserError, "--data-dir another"):
            thimble.plan("mlp", data=self.path("table"), data_dir=self.path("arrays"), **SMALL)


if __name__ == "__main__":
    unittest.main()
