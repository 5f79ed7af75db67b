import contextlib
import json
import os
import signal
import subprocess
import sys
import threading

import thimble
from support import Case, SMALL, plan


class Plans(Case):
    def test_has_the_bytes_that_the_command_line_plans(self):
        planned = thimble.plan("wrn-10-1", batch=8, image=[8, 8, 1], memory="least", threads=1)
        words = ["plan", "wrn-10-1", "--batch", "8", "--image", "8,8,1", "--memory", "least",
                 "--threads", "1", "--json"]
        said = subprocess.run([sys.executable, "-m", "thimble", *words], capture_output=True,
                              check=True)
        expected = json.loads(said.stdout)
        self.assertEqual(planned.bytes, expected["arena_bytes"])
        self.assertEqual(planned.tier, expected["tier"])
        self.assertEqual(planned.summary["calls"], expected["calls"])
        self.assertAlmostEqual(planned.step_ms, expected["predicted_step_ms"])

    def test_refuses_by_the_sentences_of_the_command_line(self):
        for name, value, typed in (("lr", float("nan"), "nan"), ("lr", float("-inf"), "-inf"),
                                   ("batch", 1.5, "1.5"), ("batch", -1, "-1"),
                                   ("memory", float("nan"), "nan"), ("precision", "fp23", "fp23"),
                                   ("lr", "x", "x"), ("bacth", 3, "3"), ("keep", "a,,b", "a,,b")):
            with self.assertRaises(thimble.UserError) as said:
                thimble.plan("mlp", **{name: value})
            words = ["train" if name == "lr" else "plan", "mlp", f"--{name}={typed}"]
            typed = subprocess.run([sys.executable, "-m", "thimble", *words], capture_output=True,
                                   text=True)
            self.assertIn(str(said.exception), typed.stderr)

    def test_refuses_what_is_said_twice_or_is_no_text(self):
        with self.assertSays(thimble.UserError, "lr is given twice, as lr and lr_"):
            thimble.plan("mlp", lr=0.1, lr_=0.2)
        for text in ("\ud800", "a\0b"):
            with self.assertSays(thimble.UserError, "data_dir is ", "which is no text"):
                thimble.plan("mlp", data_dir=text)

    def test_says_what_the_model_reads(self):
        pixels, label = plan().fields
        self.assertEqual((pixels.name, pixels.dtype, pixels.shape), ("pixels", "uint8", (16, 8, 8, 1)))
        self.assertEqual((label.name, label.dtype, label.shape), ("label", "int32", (16,)))
        self.assertEqual(label.limit, 4)

    def test_completes_the_recipe(self):
        recipe = plan().recipe
        self.assertEqual(recipe["batch"], 16)
        self.assertEqual(recipe["image"], [8, 8, 1])

    def test_says_whether_a_folder_fits(self):
        folder = self.path("decoder")
        os.mkdir(folder)
        config = {"model_type": "llama", "vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 2,
                  "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 64}
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(config, file)
        settings = {"lora": {"rank": 4}, "length": 16, "batch": 2, "threads": 1, "costs": "modelled"}
        whole = thimble.plan(folder, **settings)
        self.assertEqual(whole.recipe["model"], "hf:" + folder)
        for model in (folder, config):
            answer = thimble.fits(model, memory="1GiB", **settings)
            self.assertTrue(answer)
            self.assertEqual(answer.arena_bytes, whole.bytes)
            self.assertEqual(answer.process_bytes, whole.summary["process_bytes"])
            self.assertGreaterEqual(answer.longest_length, 63)
            self.assertLessEqual(answer.longest_length, 64)
            self.assertGreater(answer.largest_batch, 2)
            self.assertAlmostEqual(answer.tokens_per_second * answer.step_seconds, 32)
        none = thimble.fits(config, memory="10KiB", **settings)
        self.assertFalse(none)
        self.assertEqual((none.longest_length, none.largest_batch), (0, 0))
        self.assertIn("no plan fits 10.0 KiB", none.why)
        within = thimble.plan(folder, memory=none.arena_bytes, **settings)
        self.assertLessEqual(within.bytes, none.arena_bytes)
        free = thimble.fits(config, **settings)
        self.assertEqual((free.arena_bytes, free.longest_length), (whole.bytes, None))
        with self.assertSays(thimble.UserError, "is of the type 'mamba'", "thimble.torch.export"):
            thimble.fits({"model_type": "mamba"})

    def test_is_saved_and_verified(self):
        path = self.path("plan.json")
        plan().save(path)
        thimble.verify(path)
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text[:len(text) // 2])
        with self.assertSays(thimble.UserError, "plan.json"):
            thimble.verify(path)

    def test_a_recipe_file_is_a_model(self):
        path = self.path("small.toml")
        with open(path, "w") as file:
            file.write('model = "mlp"\nimage = [8, 8, 1]\nclasses = 4\nbatch = 16\nthreads = 1\n')
        self.assertEqual(thimble.plan(path).bytes, plan(lr=None, schedule=None, seed=None).bytes)

    def test_a_budget_that_is_too_small_says_what_would_do(self):
        with self.assertRaises(thimble.DoesNotFit) as raised:
            thimble.plan("wrn-10-1", batch=8, image=[8, 8, 1], memory="10KiB")
        self.assertIn("smallest found", str(raised.exception))
        needed = raised.exception.needed
        fits = thimble.plan("wrn-10-1", batch=8, image=[8, 8, 1], memory=needed)
        self.assertLessEqual(fits.bytes, needed)

    def test_a_search_is_as_long_as_asked_for(self):
        words = dict(batch=8, image=[8, 8, 1], memory="least", costs="modelled")
        short = thimble.plan("wrn-10-1", search_seconds=0, **words)
        self.assertGreaterEqual(short.bytes, thimble.plan("wrn-10-1", **words).bytes)
        for seconds in (-1, 601, "long"):
            with self.assertSays(thimble.UserError, "--search-seconds"):
                thimble.plan("wrn-10-1", search_seconds=seconds, **words)

    def test_control_c_ends_a_search(self):
        ring = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        usual = signal.getsignal(signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            ring.start()
            for memory in range(10_000):  # whichever search it meets
                with contextlib.suppress(thimble.DoesNotFit):
                    thimble.plan("wrn-10-1", batch=8, image=[8, 8, 1], memory=100_000 + memory)
        self.assertEqual(signal.getsignal(signal.SIGINT), usual)

    def test_mistakes_are_the_sentences_of_the_command_line(self):
        with self.assertSays(thimble.UserError, "--bacth", "--batch"):
            plan(bacth=3)
        with self.assertSays(thimble.UserError, "there is no model 'wrm-10-1'"):
            thimble.plan("wrm-10-1")
        with self.assertSays(thimble.UserError, "--batch", "-1"):
            plan(batch=-1)
        with self.assertSays(thimble.UserError, "a setting is text, a number"):
            plan(batch=object())
        with self.assertSays(thimble.UserError, "nosuch.toml"):
            thimble.plan("nosuch.toml")
        with self.assertSays(thimble.UserError, "--momentum"):
            plan(optimizer="adam", momentum=0.9)

    def test_a_setting_without_effect_in_a_file_is_a_warning(self):
        path = self.path("small.toml")
        with open(path, "w") as file:
            file.write('model = "mlp"\noptimizer = "adam"\nmomentum = 0.9\n')
        with self.assertWarns(UserWarning):
            thimble.plan(path)

    def test_version(self):
        self.assertRegex(thimble.__version__, r"^\d+\.\d+\.\d+")


class CommandLine(Case):
    def run_words(self, *words):
        return subprocess.run([sys.executable, "-m", "thimble", *words], capture_output=True,
                              text=True)

    def test_is_the_program(self):
        self.assertIn("Usage: thimble", self.run_words("--help").stdout)

    def test_exits_as_the_program_does(self):
        self.assertEqual(self.run_words("plan", "wrm-1").returncode, 2)
        tight = self.run_words("plan", "mlp", "--memory", "1KiB")
        self.assertEqual(tight.returncode, 3)
        self.assertIn("the smallest found is", tight.stderr)
