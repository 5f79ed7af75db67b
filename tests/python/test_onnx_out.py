"""Nets that came as ONNX files, back in these files with trained weights."""

import pathlib
import unittest

import numpy as np

import thimble
from support import Case

NETS = pathlib.Path(__file__).parents[1] / "import" / "nets"


class OnnxOut(Case):
    def trained(self, name):
        plan = thimble.plan(NETS / name, batch=4, threads=1, optimizer="sgd", lr=0.05, schedule="constant", steps=3,
                            fuse="off")  # logits of a vocabulary stay a result
        run = thimble.Run(plan)
        draw = np.random.default_rng(0)
        for _ in range(3):
            run.step(self.batch(plan, draw))
        return run

    @staticmethod
    def batch(plan, draw):
        return {f.name: draw.integers(0, f.limit, f.shape) if f.limit else
                draw.standard_normal(f.shape).astype(np.float32) for f in plan.fields}

    def test_weights_and_results_are_those_of_the_run(self):
        for name in ("pictures.onnx", "words.onnx", "folded.onnx"):
            with self.subTest(name):
                run = self.trained(name)
                path = self.path("again-" + name)
                run.export(path)
                again = thimble.Run(thimble.plan(path, batch=4, threads=1, optimizer="sgd", steps=1, fuse="off"))
                weights = run.weights()
                self.assertEqual(sorted(again.weights()), sorted(weights))
                for key, weight in again.weights().items():
                    np.testing.assert_array_equal(weight, weights[key], err_msg=key)
                fields = self.batch(run.plan, np.random.default_rng(1))
                for key, made in run.predict(fields).items():
                    np.testing.assert_array_equal(again.predict(fields)[key], made)
                before = thimble.Run(thimble.plan(NETS / name, batch=4, threads=1, steps=1)).weights()
                self.assertTrue(any((before[key] != weights[key]).any() for key in weights))

    def test_onnxruntime_gives_the_same_results(self):
        try:
            import onnxruntime
        except ImportError:
            self.skipTest("no onnxruntime here")
        for name in ("pictures.onnx", "words.onnx", "folded.onnx"):
            with self.subTest(name):
                run = self.trained(name)
                path = self.path("again-" + name)
                run.export(path)
                session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
                fields = self.batch(run.plan, np.random.default_rng(1))
                kinds = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32}
                fed = {one.name: fields[one.name].astype(kinds[one.type]) for one in session.get_inputs()
                       if one.name in fields}
                names = [one.name for one in session.get_outputs()]
                theirs = dict(zip(names, session.run(None, fed)))
                for key, made in run.predict(fields).items():
                    np.testing.assert_allclose(made, theirs.get(key, theirs[names[0]]), rtol=1e-5, atol=1e-5)

    def test_a_net_of_another_kind_is_refused(self):
        run = thimble.Run(thimble.plan(NETS / "pictures.json", threads=1, steps=1))
        with self.assertSays(thimble.UserError, "did not come as an ONNX file", "safetensors"):
            run.export(self.path("net.onnx"))


if __name__ == "__main__":
    unittest.main()
