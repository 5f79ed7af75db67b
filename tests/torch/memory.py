"""The memory of a process that trains a module: one copy of the weights, and never more than the budget and a little.

usage: THIMBLE_LIBRARY=build/release/lib/libthimble.so.0 memory.py
"""

import copy
import gc
import json
import mmap
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import train as common  # first: it finds the package
import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import thimble
from thimble._process import FilePages, resident
from thimble.exporter import eager
from thimble.exporter.apart import apart
from thimble.exporter.spill import Spill
from thimble.exporter.values import CannotExport

MIB = 1 << 20
BESIDE = 64 * MIB  # of the process, next to the budget

GROWS = """
import sys
sys.path[:0] = {path!r}
import json
import memory
print(json.dumps(memory.grown({kind!r}, {share!r})))
"""


class Wide(nn.Module):
    """Weights of 48 MiB, and activations of as much for each of its rows."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(part for _ in range(3) for part in (nn.Linear(2048, 2048), nn.GELU())))
        self.out = nn.Linear(2048, 10)

    def forward(self, x):
        return self.out(self.layers(x)).mean(1)


def adam(model):
    return torch.optim.AdamW(model.parameters(), 1e-4)


def last_layer(model):
    model.layers.requires_grad_(False)
    return torch.optim.AdamW(model.out.parameters(), 1e-3)


KINDS = {"adam": adam, "last layer": last_layer}


def peak_since():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return resident()


def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def grown(kind, share):
    """In a process of its own: how far it grew over a training run in that share of what keeps everything."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Wide().train()
    records = [(torch.randn(4, 512, 2048), torch.randint(0, 10, (4,))) for _ in range(3)]
    optimizer = KINDS[kind](model)
    whole = thimble.torch.plan(model, F.cross_entropy, records[0], optimizer=optimizer, threads=1)
    budget = int(whole.bytes * share)
    gc.collect()
    before = peak_since()
    run = thimble.torch.train(model, F.cross_entropy, records, optimizer=optimizer, memory=budget, threads=1)
    return {
        "budget": budget,
        "arena": run.result["measured_arena_bytes"],
        "grown": peak() - before,
        "said": run.result["process_growth_bytes"],
        "steps": run.steps,
    }


class Budget(unittest.TestCase):
    def grown(self, kind, share):
        code = GROWS.format(path=sys.path, kind=kind, share=share)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        made = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(made["steps"], 3)
        self.assertLessEqual(made["arena"], made["budget"])
        self.assertLessEqual(made["grown"], made["budget"] + BESIDE, made)
        # Both are of the same system, but this one cannot begin to count anew.
        self.assertLessEqual(abs(made["said"] - made["grown"]), 8 * MIB, made)

    def test_all_of_it_trained(self):
        self.grown("adam", 1.0)

    def test_in_less_than_it_would_take(self):
        self.grown("adam", 0.85)

    def test_of_frozen_weights_there_is_one_copy(self):
        self.grown("last layer", 0.8)


class Shared(common.Case):
    def trained(self, model, records=None, progress=None, **more):
        return thimble.torch.train(
            model,
            F.cross_entropy,
            common.loaded(common.pictures(18)) if records is None else records,
            optimizer=common.momentum(model),
            progress=progress,
            **{"memory": "64MiB", **common.SMALL, **more},
        )

    def test_the_module_has_the_runs_numbers_from_step_to_step(self):
        ours, seen = common.made(common.make_nets.Pictures), []
        theirs = copy.deepcopy(ours)
        self.trained(ours, progress=lambda p: seen.append(copy.deepcopy(ours.state_dict())) and None)
        peer = common.momentum(theirs)
        for at, (x, y) in enumerate(common.loaded(common.pictures(18))):
            peer.zero_grad()
            F.cross_entropy(theirs(x), y).backward()
            peer.step()
            for name, tensor in theirs.named_parameters():
                self.assertLessEqual((tensor - seen[at][name]).abs().max().item(), common.MOST, name)
        self.same(ours, theirs)

    def test_afterwards_its_tensors_are_its_own(self):
        model = common.made(common.make_nets.Pictures)
        run = self.trained(model)
        kept = copy.deepcopy(model.state_dict())
        for parameter in model.parameters():
            self.assertTrue(parameter.is_leaf and parameter.is_contiguous())
        for name, array in run.weights(copy=False).items():
            self.assertTrue(numpy.array_equal(array, kept[name].numpy()), name)
            array[...] = 0
        run.close()
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, kept[name]), name)

    def test_whoever_else_holds_a_tensor_sees_it_trained(self):
        model = common.made(common.make_nets.Pictures)
        held = model.state_dict()
        begun = {name: tensor.clone() for name, tensor in held.items()}
        self.trained(model)
        for name, parameter in model.named_parameters():
            self.assertEqual(held[name].data_ptr(), parameter.data_ptr(), name)
            self.assertEqual(torch.equal(held[name], begun[name]), not parameter.requires_grad, name)

    def test_what_ends_before_the_first_step_changes_nothing(self):
        model = common.made(common.make_nets.Pictures)
        begun = copy.deepcopy(model.state_dict())

        class Broken:
            def __len__(self):
                return 4

            def __iter__(self):
                yield next(iter(common.loaded(common.pictures(6))))[0:1]

        out = os.path.join(self.folder, "out")
        with self.assertRaises(Exception):
            self.trained(model, Broken())
        self.trained(common.made(common.make_nets.Pictures), out=out)
        with self.assertRaisesRegex(thimble.UserError, "resume"):  # after the arena has the weights
            self.trained(model, out=out)
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, begun[name]), name)

    def test_what_ends_after_two_steps_leaves_these(self):
        ours = common.made(common.make_nets.Pictures)
        theirs = copy.deepcopy(ours)
        records = list(common.loaded(common.pictures(18)))

        def broken():
            yield from records[:2]
            raise RuntimeError("no more")

        with self.assertRaisesRegex(RuntimeError, "no more"):
            self.trained(ours, broken(), steps=3)
        common.trained(theirs, F.cross_entropy, records[:2], common.momentum(theirs))
        self.same(ours, theirs)

    def test_a_plan_says_what_is_beside_the_arena(self):
        model = common.made(common.make_nets.Pictures)
        batch = next(iter(common.loaded(common.pictures(6))))
        planned = thimble.torch.plan(model, F.cross_entropy, batch, memory="64MiB", threads=1)
        weights = sum(4 * p.numel() for p in model.parameters())
        self.assertEqual(planned.process["arena_bytes"], planned.bytes)
        self.assertEqual(planned.process["handed_over_bytes"], weights)


class Asked(unittest.TestCase):
    """Of a small net with batch norm, which has no variance of one row."""

    def trained(self, memory, loss=F.cross_entropy):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)).train()
        records = [(torch.randn(6, 8), torch.randint(0, 3, (6,))) for _ in range(2)]
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        run = thimble.torch.train(model, loss, records, optimizer=optimizer, memory=memory, threads=1)
        return run.steps

    def test_statistics_of_a_module_with_two_names_come_back(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(8)
                self.layers = nn.Sequential(nn.Linear(8, 8), self.norm, nn.ReLU(), nn.Linear(8, 3))

            def forward(self, x):
                return self.layers(x)

        torch.manual_seed(1)
        ours = Net().train()
        theirs = copy.deepcopy(ours)
        records = [(torch.randn(6, 8) + 1, torch.randint(0, 3, (6,))) for _ in range(2)]
        thimble.torch.train(ours, F.cross_entropy, records, optimizer=common.momentum(ours), threads=1)
        common.trained(theirs, F.cross_entropy, records, common.momentum(theirs))
        for name, tensor in theirs.state_dict().items():
            self.assertLessEqual((tensor - ours.state_dict()[name]).abs().max().item(), common.MOST, name)

    def test_a_refused_call_leaves_a_run_that_goes_on(self):
        def made(seed):
            torch.manual_seed(seed)
            model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).train()
            model[0].requires_grad_(False)
            return model

        records = [(torch.randn(6, 8), torch.randint(0, 3, (6,))) for _ in range(4)]
        with tempfile.TemporaryDirectory() as out:
            settings = {"optimizer": "sgd", "lr": 0.1, "schedule": "constant", "steps": 4, "threads": 1, "out": out}
            model = made(1)
            with self.assertRaises(thimble.Stopped):
                thimble.torch.train(model, F.cross_entropy, records, progress=lambda p: p.step >= 2, **settings)
            for more in ({}, {"resume": True}):
                with self.assertRaisesRegex(thimble.UserError, "resume=True|give the module these"):
                    thimble.torch.train(made(2), F.cross_entropy, records, **settings, **more)
            run = thimble.torch.train(model, F.cross_entropy, records, resume=True, **settings)
            self.assertEqual(run.steps, 4)

    def test_least_is_a_budget(self):
        self.assertEqual(self.trained("least"), 2)

    def test_what_is_no_size_is_refused_by_the_plan(self):
        for memory in ("1..5GiB", "lots"):
            with self.assertRaisesRegex(thimble.UserError, f"'{memory}' is not a size"):
                self.trained(memory)

    def test_sizes_are_those_of_plans(self):
        for said, size in (("64MiB", 64 << 20), ("6.5MB", 6500000), ("2G", 2 << 30), ("9 bytes", 9), (7, 7),
                           ("3 kB", 3000), ("least", 0), ("auto", None), (None, None), ("2 gb", None)):  # fmt: skip
            self.assertEqual(thimble.torch._bytes(said), size, said)

    def test_a_loss_that_changes_its_own_buffer_is_refused(self):
        class Centred(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(3, affine=False)

            def forward(self, output, target):
                return F.cross_entropy(self.norm(output), target)

        for memory in (None, "64MiB"):
            with self.assertRaisesRegex(CannotExport, "the loss changes a buffer of its own, 'loss.norm"):
                self.trained(memory, Centred())


class GivenBack(common.Case):
    def test_a_module_that_is_refused_has_its_own_storage(self):
        model = nn.Linear(64, 1).train()
        held = model.state_dict()
        batch = (torch.randn(4, 64), torch.randn(4, 1))
        refused = unittest.mock.patch("thimble.exporter.eager.run", side_effect=CannotExport("no gradient"))
        with refused, self.assertRaisesRegex(CannotExport, "no gradient"):
            thimble.torch.train(model, F.mse_loss, [batch], optimizer="sgd", lr=0.1, memory="least", threads=1)
        for name, tensor in held.items():
            self.assertEqual(tensor.data_ptr(), model.get_parameter(name).data_ptr(), name)

    def test_gradients_that_come_twice_are_added(self):
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(64, 64)

            def forward(self, x):
                for _ in range(2):
                    x = checkpoint(self.layer, x, use_reentrant=True)
                return x.sum()

        class Whole(nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model = model

            def forward(self, x):
                return self.model(x), None

        torch.manual_seed(1)
        model = Twice()
        x = torch.randn(4, 64, requires_grad=True)
        parameters = dict(model.named_parameters())
        plain = eager.run(Whole(model), [x], parameters).gradients
        spilt = eager.run(Whole(model), [x], parameters, spill=Spill()).gradients
        for name, gradient in plain.items():
            self.assertTrue(torch.equal(gradient, spilt[name]), name)


class Apart(unittest.TestCase):
    def test_what_is_made_there_comes_here(self):
        self.assertEqual(apart(lambda: (os.getpid() != os.getppid(), [1, 2])), (True, [1, 2]))
        self.assertNotEqual(apart(os.getpid), os.getpid())

    def test_what_is_refused_there_is_refused_here(self):
        def refuse():
            raise CannotExport("no such thing")

        with self.assertRaisesRegex(CannotExport, "^no such thing$"):
            apart(refuse)

    def test_where_there_is_an_end_it_is_made_here(self):
        here = os.getpid()
        self.assertEqual(apart(lambda: os.getpid() if os.getpid() == here else os._exit(3)), here)

    def test_threads_of_pytorch_that_ran_before_do_not_matter(self):
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            table = torch.randn(600, 600)
            table @ table  # the team of threads is there
            self.assertEqual(apart(lambda: tuple((table @ table).shape)), (600, 600))
        finally:
            torch.set_num_threads(threads)


class Files(unittest.TestCase):
    def test_what_was_written_to_a_mapped_file_stays(self):
        size = 64 * mmap.PAGESIZE
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(range(256)) * (size // 256))
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            array = numpy.frombuffer(mapped, numpy.uint8)
            expected = array.copy()
            for page in (0, 1, 7, 63):
                array[page * mmap.PAGESIZE + 9] = expected[page * mmap.PAGESIZE + 9] = 77
            FilePages().let_go(array.ctypes.data, size)
            self.assertTrue(numpy.array_equal(array, expected))

    def test_memory_without_a_file_is_left_alone(self):
        tensor = torch.arange(1 << 20)
        FilePages().let_go(tensor.data_ptr(), tensor.numel() * 8)
        self.assertTrue(torch.equal(tensor, torch.arange(1 << 20)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
