"""Holds the drivers to what they promise, on nets that take seconds.

usage: self_test.py PROGRAM
- A training that is cut off, packed, unpacked elsewhere and gone on with has the weights of one
  that was not.
- What has a record is not run again; the same command of another experiment is taken over, not run.
- The first rung of a ladder that has a plan is taken. A line cut short by a crash does not count.
"""
import os
import pathlib
import sys
import tempfile
import threading
import time
import unittest

from cells import Cell, share_of, step_of
from drive import EXPERIMENTS, cells_of
from program import Thimble
from records import Records
from sitting import Sitting, pack, unpack

STEP = ("wrn-10-1", "--data", "digits", "--batch", "50", "--density", "0.3", "--microbatch", "10")
LONG = Cell("T-a", "long", "train", STEP, ("--epochs", "4"), (1,))


class Drivers(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.said = []

    def tearDown(self):
        self.place.cleanup()

    def folder(self, name):
        return os.path.join(self.place.name, name)

    def sitting(self, name):
        records = Records(self.folder(name + "-records"))
        return Sitting(Thimble(PROGRAM, "cpu", 1), records, self.folder(name), say=self.said.append)

    def test_goes_on_elsewhere_to_the_same_bits(self):
        whole = self.sitting("whole")
        self.assertTrue(whole.run([LONG]))
        first = self.sitting("first")
        stop = threading.Thread(target=self.stop_under_way, args=(first,))
        stop.start()
        self.assertFalse(first.run([LONG]))
        stop.join()
        self.assertEqual(first.records.all, [])
        pack(self.folder("carried.tar"), first.work, first.records)
        second = self.sitting("second")
        unpack(self.folder("carried.tar"), second.work, second.records)
        self.assertTrue(second.run([LONG]))
        ours, theirs = (s.records.all[0]["figures"] for s in (second, whole))
        self.assertEqual(ours["sittings"], 2)
        self.assertEqual(ours["weights_sha256"], theirs["weights_sha256"])
        self.assertEqual(os.listdir(os.path.join(second.work, "runs")), [])

    @staticmethod
    def stop_under_way(sitting):
        """After the first steps: when its log has said something of them."""
        while not (sitting.child and any(
                "step " in pathlib.Path(root, "log").read_text(encoding="utf-8")
                for root, _, files in os.walk(sitting.work) if "log" in files)):
            time.sleep(0.02)
        sitting._stop()

    def test_runs_nothing_twice(self):
        sitting = self.sitting("twice")
        cell = Cell("T-a", "planned", "plan", ("mlp", "--device", "null"))
        sitting.run([cell])
        spoken = len(self.said)
        sitting.run([cell])
        self.assertEqual(len(self.said), spoken)
        sitting.run([Cell("T-b", "again", "plan", cell.words)])
        self.assertIn("  as in T-a", self.said)
        self.assertEqual([r["experiment"] for r in Records(sitting.records.folder).all],
                         ["T-a", "T-b"])

    def test_plans_again_what_a_new_program_may_plan_otherwise(self):
        sitting = self.sitting("again")
        cell = Cell("T-a", "planned", "plan", ("mlp", "--device", "null"))
        sitting.run([cell])
        right = sitting.records.all[0]
        wrong = {**right, "figures": {**right["figures"], "arena_bytes": 1}}
        sitting.records.replace(wrong)
        sitting.again = True
        sitting.run([cell])
        found = Records(sitting.records.folder).all
        self.assertEqual([r["figures"]["arena_bytes"] for r in found],
                         [right["figures"]["arena_bytes"]])

    def test_keeps_one_plan_of_a_cell_whose_budget_is_another_now(self):
        sitting = self.sitting("budget")

        def cell(memory):
            return Cell("T-a", "between", "plan", ("mlp", "--device", "null", "--memory", memory))

        sitting.run([cell("3MB"), Cell("T-a", "other", "plan", ("mlp", "--device", "null"))])
        sitting.again = True
        sitting.run([cell("2MB")])
        found = [(r["cell"], "2MB" in r["command"]) for r in Records(sitting.records.folder).all]
        self.assertEqual(sorted(found), [("between", True), ("other", False)])

    def test_says_what_shared_a_card_and_no_score_of_timed_steps(self):
        sitting = self.sitting("shared")
        sitting.shared = True
        steps = Cell("T-a", "timed", "train", ("mlp", "--data", "digits"), ("--steps", "2"),
                     seeds=(1,), timed=True)
        sitting.run([steps, Cell("T-a", "planned", "plan", ("mlp", "--device", "null"))])
        timed, planned = sitting.records.all
        self.assertTrue(timed["shared"])
        self.assertNotIn("test_accuracy", timed["figures"])
        self.assertIn("step_ms", timed["figures"])
        self.assertNotIn("shared", planned)

    def test_shares_trainings_out(self):
        cells = cells_of(list(EXPERIMENTS), quick=False)
        trained = [cell for cell in cells if cell.verb == "train"]
        counts = [sum(share_of(cell, 3) == mine for cell in trained) for mine in range(3)]
        self.assertEqual(sum(counts), len(trained))
        self.assertGreater(min(counts), len(trained) // 5)
        # Measured times belong to a step: whoever else needs them is in the same share.
        by_step = {}
        for cell in trained:
            if not cell.ladder:
                by_step.setdefault(" ".join(step_of(cell.words)), []).append(cell)
        several = [cells for cells in by_step.values() if len({c.words for c in cells}) > 1]
        self.assertTrue(several)
        for cells in several:
            self.assertEqual(len({share_of(cell, 3) for cell in cells}), 1)

    def test_takes_the_first_rung_with_a_plan(self):
        sitting = self.sitting("ladder")
        sitting.run([Cell("T-a", "small", "plan", ("mlp", "--device", "null"),
                          ladder=(("--memory", "1kB"), ("--memory", "9MB"), ("--memory", "1GB")))])
        self.assertIn("--memory 9MB", sitting.records.all[0]["command"])

    def test_takes_budgets_from_other_cells(self):
        sitting = self.sitting("budget")
        kept = Cell("T-a", "kept", "plan", ("mlp", "--device", "null"))
        sitting.run([kept, Cell("T-a", "same", "plan", kept.words, budget=("kept",))])
        arena = sitting.records.of("T-a", "kept")[0]["figures"]["arena_bytes"]
        self.assertIn(f"--memory {arena}", sitting.records.of("T-a", "same")[0]["command"])

    def test_leaves_out_what_a_crash_cut_short(self):
        folder = self.folder("torn")
        records = Records(folder)
        records.add({"experiment": "T-a", "cell": "c", "command": "x", "seed": 1, "figures": {}})
        with open(os.path.join(folder, "T-a.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"experiment": "T-a", "ce')
        records = Records(folder)
        self.assertEqual(len(records.all), 1)
        records.add({**records.all[0], "seed": 2})
        self.assertEqual([r["seed"] for r in Records(folder).all], [1, 2])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
