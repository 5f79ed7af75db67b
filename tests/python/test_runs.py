import gc
import os
import weakref

import numpy as np

import thimble
from support import Case, SMALL, batches, plan, records


class Runs(Case):
    def test_learns_from_batches_handed_over(self):
        run = thimble.Run(plan(optimizer="sgd"))
        first = None
        for batch in batches(60):
            figures = run.step(batch)
            first = figures.loss if first is None else first
        self.assertEqual(run.steps, 60)
        self.assertLess(figures.loss, 0.2 * first)
        self.assertGreater(run.evaluate(batches(4, seed=1))["accuracy"], 0.9)

    def test_the_same_batches_give_the_same_bits_however_they_come(self):
        data = batches(12)
        one = thimble.Run(plan())
        for batch in data:
            one.step(batch)
        others = [thimble.Run(plan(steps=12), data), thimble.Run(plan(steps=12), iter(data)),
                  thimble.Run(plan(steps=12), lambda step: data[step]),
                  thimble.Run(plan(steps=12), [{"label": y.astype(np.int64), "pixels": x}
                                               for x, y in data])]
        for run in others:
            run.train()
            for name, weight in one.weights().items():
                np.testing.assert_array_equal(weight, run.weights()[name], err_msg=name)

    def test_microbatches_take_their_rows_of_the_batch(self):
        data = batches(6)
        whole, parts = thimble.Run(plan()), thimble.Run(plan(microbatch=5))
        for batch in data:
            expected, got = whole.step(batch), parts.step(batch)
            self.assertAlmostEqual(expected.loss, got.loss, places=5)

    def test_the_arena_is_what_was_planned(self):
        run = thimble.train(plan(steps=3), batches(3))
        self.assertEqual(run.result["measured_arena_bytes"], run.plan.bytes)

    def test_trains_on_a_data_set_as_the_command_line_does(self):
        settings = dict(epochs=1, batch=50, threads=1, memory="200KiB", hidden=32)
        run = thimble.train("mlp", "digits", out=self.path("out"), **settings)
        self.assertLessEqual(run.plan.bytes, 200 * 1024)
        self.assertGreater(run.result["test_accuracy"], 0.5)
        stepped = thimble.Run(thimble.plan("mlp", data="digits", **settings))
        for _ in range(run.steps):
            stepped.step()
        for name, weight in run.weights().items():
            np.testing.assert_array_equal(weight, stepped.weights()[name], err_msg=name)
        self.assertEqual(stepped.evaluate().records, 355)

    def test_tests_take_batches_of_any_number_of_rows(self):
        run = thimble.Run(plan())
        pixels, labels = records(70)
        whole = run.evaluate([(pixels, labels)])
        parts = run.evaluate([(pixels[:3], labels[:3]), (pixels[3:41], labels[3:41]),
                              (pixels[41:], labels[41:])])
        self.assertEqual((whole.records, parts.records), (70, 70))
        self.assertEqual(whole.loss, parts.loss)
        self.assertEqual(whole["accuracy"], parts["accuracy"])

    def test_shows_its_progress_and_stops_when_told(self):
        seen = []

        def show(progress):
            seen.append((progress.step, progress.test is not None))
            return progress.step == 5

        run = thimble.Run(plan(steps=20, eval_every=2), batches(4), test=batches(2, seed=1))
        with self.assertRaises(thimble.Stopped):
            run.train(show)
        self.assertEqual(seen, [(1, False), (2, False), (3, False), (4, False), (5, False)])
        self.assertEqual(run.steps, 5)
        run.train()
        self.assertEqual(run.steps, 20)
        self.assertIn("test_accuracy", run.result)

    def test_rates_are_the_caller_s(self):
        data = batches(4)
        still = thimble.Run(plan(steps=4), data, rate=lambda step, scheduled: 0.0)
        before = still.weights()
        still.train()
        for name in (name for name in before if name.endswith("weight")):
            np.testing.assert_array_equal(before[name], still.weights()[name], err_msg=name)
        rated = thimble.Run(plan())
        self.assertEqual(rated.step(data[0]).rate, SMALL["lr"])
        rated.set_rate(0.25)
        self.assertEqual(rated.step(data[1]).rate, 0.25)
        rated.set_rate(None)
        self.assertEqual(rated.step(data[2]).rate, SMALL["lr"])


class Weights(Case):
    def test_go_out_and_in(self):
        data = batches(8)
        run = thimble.Run(plan())
        for batch in data[:4]:
            run.step(batch)
        other = thimble.Run(plan(seed=99))
        other.load(run.weights())
        test = batches(2, seed=1)
        self.assertEqual(run.evaluate(test).loss, other.evaluate(test).loss)

    def test_views_are_the_run_s_own_memory(self):
        run = thimble.Run(plan())
        views = run.weights(copy=False)
        name = next(iter(views))
        views[name][...] = 0.125
        np.testing.assert_array_equal(run.weights()[name], views[name])
        view = views[name]
        gone = weakref.ref(run)
        del run, views
        gc.collect()
        self.assertIsNotNone(gone())  # the view keeps it
        self.assertEqual(view.flat[0], 0.125)
        del view
        gc.collect()
        self.assertIsNone(gone())

    def test_dlpack_takes_them_without_a_copy(self):
        run = thimble.Run(plan())
        name, view = next(iter(run.weights(copy=False).items()))
        shared = np.from_dlpack(view)
        view[...] = 3
        self.assertEqual(shared.flat[0], 3)

    def test_sixteen_bits(self):
        for precision, kind in [("bf16", np.float32), ("fp16", np.float16)]:
            run = thimble.Run(plan(precision=precision))
            weights = run.weights()
            name = max(weights, key=lambda name: weights[name].size)
            self.assertEqual(weights[name].dtype, kind)
            run.load({name: np.full(weights[name].shape, 0.5, np.float32)})
            np.testing.assert_array_equal(run.weights()[name], 0.5)

    def test_what_an_optimizer_keeps(self):
        data = batches(6)
        whole, begun = (thimble.Run(plan(optimizer="adam")) for _ in range(2))
        for batch in data:
            whole.step(batch)
        for batch in data[:3]:
            begun.step(batch)
        other = thimble.Run(plan(optimizer="adam", seed=99), optimizer_steps=3)
        other.load(begun.weights())
        for name in ("first_moment", "second_moment"):
            other.load_state(name, dict(begun.state(name)))
        for batch in data[3:]:
            other.step(batch)
        for name, weight in whole.weights().items():
            np.testing.assert_array_equal(weight, other.weights()[name], err_msg=name)
        self.assertEqual(dict(whole.state("momentum")), {})
        with self.assertSays(thimble.UserError, "no 'momentum' of"):
            whole.load_state("momentum", whole.weights())

    def test_a_file_of_them_starts_a_run(self):
        run = thimble.Run(plan())
        run.step(batches(1)[0])
        run.export(self.path("w.safetensors"))
        other = thimble.Run(plan(seed=3), weights=self.path("w.safetensors"))
        for name, weight in run.weights().items():
            np.testing.assert_array_equal(weight, other.weights()[name])

    def test_wrong_ones_are_refused(self):
        run = thimble.Run(plan())
        name, weight = next(iter(run.weights().items()))
        with self.assertSays(thimble.UserError, "nearest", name):
            run.load({name + "x": weight})
        with self.assertSays(thimble.UserError, name, "the model's is"):
            run.load({name: np.zeros(3, np.float32)})
        with self.assertSays(thimble.UserError, name, "complex"):
            run.load({name: np.zeros(weight.shape, complex)})


class Checkpoints(Case):
    def test_a_run_goes_on_where_it_was(self):
        data = batches(10)
        whole = thimble.train(plan(steps=10, optimizer="adam"), data)
        first = thimble.Run(plan(steps=10, optimizer="adam"), data, out=self.path("out"))
        for _ in range(4):
            first.step()
        folder = first.save()
        self.assertTrue(os.path.isdir(folder))
        first.step()  # after the checkpoint
        first.close()
        second = thimble.Run(plan(steps=10, optimizer="adam"), data, out=self.path("out"),
                             resume=True)
        self.assertEqual(second.steps, 4)
        second.train()
        for name, weight in whole.weights().items():
            np.testing.assert_array_equal(weight, second.weights()[name], err_msg=name)

    def test_a_folder_with_a_run_is_not_written_over(self):
        thimble.train(plan(steps=2), batches(2), out=self.path("out"))
        with self.assertSays(thimble.UserError, "already holds a checkpoint"):
            thimble.train(plan(steps=2), batches(2), out=self.path("out"))
        thimble.train(plan(steps=2), batches(2), out=self.path("out"), overwrite=True)
        with self.assertSays(thimble.UserError, "no checkpoint"):
            thimble.Run(plan(steps=2), batches(2), out=self.path("new"), resume=True)
        thimble.Run(plan(steps=2), batches(2), out=self.path("new"), resume="auto")
