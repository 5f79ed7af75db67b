"""A failure on the caller's side: it comes out as it is, and the run stays good."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np

import thimble
from support import Case, batches, plan


class MyOwn(Exception):
    pass


class Failures(Case):
    def test_an_exception_of_the_data_comes_out_as_it_is(self):
        def broken():
            yield from batches(3)
            raise MyOwn("of mine")

        run = thimble.Run(plan(steps=10, save_every="1 steps"), broken(), out=self.path("out"))
        with self.assertRaises(MyOwn):
            run.train()
        self.assertEqual(run.steps, 3)
        figures = run.step(batches(1)[0])  # goes on
        self.assertEqual(figures.steps, 4)
        run.close()
        again = thimble.Run(plan(steps=10, save_every="1 steps"), batches(10),
                            out=self.path("out"), resume=True)
        self.assertEqual(again.steps, 3)

    def test_a_failed_step_changes_nothing(self):
        for microbatch in (16, 5):
            data = batches(4)
            clean, failing = (thimble.Run(plan(microbatch=microbatch, optimizer="sgd"))
                              for _ in range(2))
            for batch in data:
                clean.step(batch)
                with self.assertRaises(thimble.UserError):
                    failing.step((batch[0][:, :7], batch[1]))
                with self.assertRaises(thimble.UserError):
                    failing.step()  # no data
                failing.step(batch)
            for name, weight in clean.weights().items():
                np.testing.assert_array_equal(weight, failing.weights()[name], err_msg=name)

    def test_a_setting_of_another_program_is_answered_with_ours(self):
        for theirs, ours in (("gradient_accumulation_steps", "--microbatch N"),
                             ("activation_checkpointing", "--memory BYTES"),
                             ("learning_rate", "its name here is --lr"),
                             ("optimizer_in_backward", "with --fold"),
                             ("numerics_tier", "--allow says")):
            with self.assertRaisesRegex(thimble.UserError, ours):
                plan(**{theirs: 2})

    def test_exceptions_of_other_callbacks(self):
        def fail(*_):
            raise MyOwn

        with self.assertRaises(MyOwn):
            thimble.Run(plan(steps=3), batches(3), rate=fail).train()
        run = thimble.Run(plan(steps=3), batches(3))
        with self.assertRaises(MyOwn):
            run.train(fail)
        with self.assertRaises(MyOwn):
            run.evaluate(iter(fail, None))

    def test_batches_that_end_early(self):
        with self.assertSays(thimble.UserError, "ended early", "iterator"):
            thimble.train(plan(steps=5), iter(batches(3)))
        with self.assertSays(thimble.UserError, "ended early", "16 rows"):
            thimble.train(plan(steps=5), [])
        with self.assertSays(thimble.UserError, "no records to test on"):
            thimble.Run(plan()).evaluate([])

    def test_a_rest_at_the_end_of_an_epoch_is_left_out(self):
        data = batches(3)
        short = (data[0][0][:5], data[0][1][:5])
        with self.assertWarnsRegex(UserWarning, "5 rows of 16"):
            run = thimble.train(plan(steps=6), [*data, short])
        same = thimble.train(plan(steps=6), data)
        for name, weight in same.weights().items():
            np.testing.assert_array_equal(weight, run.weights()[name])

    def test_batches_of_another_shape(self):
        data = batches(4)
        short = (data[0][0][:5], data[0][1][:5])
        with self.assertSays(thimble.UserError, "5 rows", "16 were planned", "drop_last"):
            thimble.train(plan(steps=6), [data[0], short, data[1]])
        wide = (np.zeros((16, 9, 8, 1), np.uint8), data[0][1])
        with self.assertSays(thimble.UserError, "pixels", r"\(16, 9, 8, 1\)", r"\(16, 8, 8, 1\)"):
            thimble.train(plan(steps=6), [data[0], wide])
        with self.assertSays(thimble.UserError, "different numbers of rows"):
            thimble.Run(plan()).step((data[0][0], data[0][1][:3]))

    def test_batches_of_other_things(self):
        pixels, labels = batches(1)[0]
        run = thimble.Run(plan())
        with self.assertSays(thimble.UserError, "float64", "uint8"):
            run.step((pixels / 255.0, labels))
        with self.assertSays(thimble.UserError, "3 arrays", "2 are read"):
            run.step((pixels, labels, labels))
        with self.assertSays(thimble.UserError, "lacks label"):
            run.step({"pixels": pixels})
        with self.assertSays(thimble.UserError, "'label' is 4", "0 to 3"):
            run.step((pixels, np.full(16, 4)))
        with self.assertSays(thimble.UserError, "int32 ends at"):
            run.step((pixels, np.full(16, 1 << 40)))
        self.assertEqual(run.step((pixels, labels)).steps, 1)

    def test_data_twice_or_not_at_all(self):
        with self.assertSays(thimble.UserError, "data set", "callback"):
            thimble.Run(thimble.plan("mlp", data="digits", steps=2), batches(2))
        with self.assertSays(thimble.UserError, "no data"):
            thimble.train(plan(steps=2))
        with self.assertSays(thimble.UserError, "how long", "--steps"):
            thimble.train(plan(schedule="cosine"), iter(batches(2)))
        with self.assertSays(thimble.UserError, "takes no batch"):
            thimble.Run(thimble.plan("mlp", data="digits")).step(batches(1)[0])

    def test_a_loss_that_is_not_finite(self):
        run = thimble.Run(plan(lr=1e30, optimizer="sgd"))
        with self.assertSays(thimble.UserError, "not finite", "--lr"):
            for batch in batches(20):
                run.step(batch)

    def test_a_closed_run(self):
        run = thimble.Run(plan())
        run.close()
        with self.assertSays(thimble.UserError, "closed"):
            run.step(batches(1)[0])

    def test_a_device_that_is_not_there(self):
        with self.assertRaises(thimble.Error):
            thimble.plan("mlp", device="cuda:99")


SLOW_RUN = """
import sys, time
sys.path[:0] = {path!r}
import thimble
from support import batches, plan

def slow():
    for batch in batches(1000):
        time.sleep(0.02)
        yield batch

def show(progress):
    if progress.step == 3:
        print("going", flush=True)

try:
    thimble.train(plan(steps=1000), slow(), out={out!r}, progress=show)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class Interrupts(Case):
    def test_ctrl_c_leaves_a_checkpoint_and_is_an_exception(self):
        code = SLOW_RUN.format(path=sys.path, out=self.path("out"))
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "going\n")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(said, "interrupted\n")
        run = thimble.Run(plan(steps=1000), batches(1000), out=self.path("out"), resume=True)
        self.assertGreaterEqual(run.steps, 3)

    def test_stop_from_another_thread(self):
        run = thimble.Run(plan(steps=10 ** 6), lambda step: batches(1)[0], out=self.path("out"))
        threading.Timer(0.5, run.stop).start()
        with self.assertRaises(thimble.Stopped):
            run.train()
        self.assertTrue(os.path.exists(self.path("out/latest")))
