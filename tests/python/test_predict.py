"""run.predict: results of the net in evaluation, row by row."""

import pathlib
import unittest

import numpy as np

import thimble
from support import Case, batches, plan, records

PICTURES = pathlib.Path(__file__).parents[1] / "import" / "nets" / "pictures.json"


def softmax_loss(logits, labels):
    shifted = logits.astype(np.float64) - logits.max(1, keepdims=True)
    return np.mean(np.log(np.exp(shifted).sum(1)) - shifted[np.arange(len(labels)), labels])


class Predict(Case):
    def setUp(self):
        super().setUp()
        self.run_ = thimble.Run(plan(optimizer="sgd"))
        for batch in batches(20):
            self.run_.step(batch)

    def test_logits_are_those_of_the_test(self):
        pixels, labels = records(70, seed=3)
        logits = self.run_.predict({"pixels": pixels})["logits"]
        self.assertEqual(logits.shape, (70, 4))
        tested = self.run_.evaluate([(pixels, labels)])
        self.assertAlmostEqual(softmax_loss(logits, labels), tested.loss, places=6)
        self.assertEqual(float(np.mean(logits.argmax(1) == labels)), tested["accuracy"])

    def test_rows_are_what_they_are_however_they_come(self):
        pixels, labels = records(37, seed=4)
        whole = self.run_.predict(pixels)["logits"]
        for data in ((pixels,), (pixels, labels), {"pixels": pixels, "label": labels},
                     [pixels[:5], pixels[5:]], iter([{"pixels": pixels[:20]}, {"pixels": pixels[20:]}])):
            np.testing.assert_array_equal(self.run_.predict(data)["logits"], whole)

    def test_changes_nothing(self):
        before = self.run_.weights()
        self.run_.predict(records(20)[0])
        for name, weight in self.run_.weights().items():
            np.testing.assert_array_equal(weight, before[name])
        self.run_.step(batches(1)[0])

    def test_of_an_imported_net_has_its_axes(self):
        run = thimble.Run(thimble.plan(PICTURES, threads=1, steps=1))
        draw = np.random.default_rng(0)
        fields = {f.name: draw.integers(0, f.limit, (5, *f.shape[1:])) if f.limit else
                  draw.standard_normal((5, *f.shape[1:])).astype(np.float32) for f in run.plan.fields}
        made = run.predict(fields)
        ones = [run.predict({name: array[i:i + 1] for name, array in fields.items()}) for i in range(5)]
        for name, array in made.items():
            self.assertEqual(len(array), 5)
            np.testing.assert_allclose(np.concatenate([one[name] for one in ones]), array, rtol=1e-5, atol=1e-6)

    def test_refusals(self):
        with self.assertSays(thimble.UserError, "lacks pixels"):
            self.run_.predict({"label": records(3)[1]})
        with self.assertSays(thimble.UserError, "no records"):
            self.run_.predict([])

        def broken():
            yield records(16)[0]
            raise OSError("the disk is gone")
        with self.assertRaisesRegex(OSError, "the disk is gone"):
            self.run_.predict(broken())
        self.assertEqual(len(self.run_.predict(records(3)[0])["logits"]), 3)


if __name__ == "__main__":
    unittest.main()
