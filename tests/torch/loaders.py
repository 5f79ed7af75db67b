"""Batches as loaders give them, through thimble.torch.train, beside PyTorch's own training on the same batches.

usage: THIMBLE_LIBRARY=build/release/lib/libthimble.so.0 loaders.py
"""

import collections
import copy
import dataclasses
import unittest
from collections import UserDict

import make_nets  # first: it finds the package
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import thimble
from train import SMALL, Case, pictures

MOST = 1e-6  # of a tensor: a few steps of SGD of a small net


class Named(UserDict):
    """As transformers' BatchEncoding is one."""


@dataclasses.dataclass(frozen=True)
class Pair:
    left: torch.Tensor
    right: torch.Tensor


Both = collections.namedtuple("Both", "left right")


class Two(nn.Module):
    """Of two arrays, however they come."""

    def __init__(self):
        super().__init__()
        self.left, self.right, self.head = nn.Linear(6, 8), nn.Linear(4, 8), nn.Linear(8, 3)

    def of(self, left, right, mask=None):
        states = torch.tanh(self.left(left) + self.right(right))
        return self.head(states if mask is None else states * mask)


class Apart(Two):
    def forward(self, left, right, mask=None):
        return self.of(left, right, mask)


class Together(Two):
    def forward(self, pair):
        left, right, *mask = pair
        return self.of(left, right, *mask)


class ByKey(Two):
    def forward(self, batch):
        return self.of(batch["left"], batch["inner"][0])


class ByAttribute(Two):
    def forward(self, batch):
        return self.of(batch.left, batch.right)


class WithLoss(Two):
    def forward(self, left, right, labels):
        logits = self.of(left, *right)
        return {"loss": F.cross_entropy(logits, labels["class"]), "logits": logits}


def parts(rows, seed):
    draw = torch.Generator().manual_seed(seed)
    made = [torch.randn(rows, 6, generator=draw), torch.randn(rows, 4, generator=draw)]
    return *made, torch.randint(0, 3, (rows,), generator=draw)


def of_parts(wrap, sizes=(6, 6, 6)):
    return [wrap(*parts(rows, seed)) for seed, rows in enumerate(sizes)]


def sgd(model):
    return torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


class Loaders(Case):
    def beside(self, kind, batches, step, loss=F.cross_entropy, loader=None, epochs=2, **more):
        """`step(model, batch)`: the loss as PyTorch's users would write it."""
        torch.manual_seed(1)
        ours = kind().train()
        theirs = copy.deepcopy(ours)
        peer = sgd(theirs)
        for _ in range(epochs):
            for batch in batches:
                peer.zero_grad()
                step(theirs, batch).backward()
                peer.step()
        run = thimble.torch.train(
            ours, loss, batches if loader is None else loader, optimizer=sgd(ours), **{"epochs": epochs, **SMALL, **more}
        )
        self.same(ours, theirs, MOST)
        self.assertEqual(run.steps, epochs * len(batches))
        return run

    def test_tuples_in_tuples(self):
        def step(model, batch):
            (left, right), target = batch
            return F.cross_entropy(model(left, right), target)

        self.beside(Apart, of_parts(lambda l, r, y: ((l, r), y)), step)
        self.beside(Together, of_parts(lambda l, r, y: ((l, r), y)), lambda m, b: F.cross_entropy(m(b[0]), b[1]))
        self.beside(Together, of_parts(lambda l, r, y: [[l, r], y]), lambda m, b: F.cross_entropy(m(b[0]), b[1]))
        self.beside(ByAttribute, of_parts(lambda l, r, y: (Both(l, r), y)), lambda m, b: F.cross_entropy(m(b[0]), b[1]))

    def test_dicts_and_dataclasses(self):
        by_name = of_parts(lambda l, r, y: ({"right": r, "left": l}, y))
        self.beside(Apart, by_name, lambda m, b: F.cross_entropy(m(**b[0]), b[1]))
        self.beside(Apart, of_parts(lambda l, r, y: {"right": r, "left": l, "y": y}),
                    lambda m, b: F.cross_entropy(m(b["left"], b["right"]), b["y"]))
        nested = of_parts(lambda l, r, y: (Named(left=l, inner=(r,)), y))
        self.beside(ByKey, nested, lambda m, b: F.cross_entropy(m(b[0]), b[1]))
        self.beside(ByAttribute, of_parts(lambda l, r, y: (Pair(l, r), y)), lambda m, b: F.cross_entropy(m(b[0]), b[1]))

    def test_the_modules_own_loss(self):
        batches = of_parts(lambda l, r, y: Named(left=l, right=(r,), labels={"class": y}))
        self.beside(WithLoss, batches, lambda m, b: m(**b)["loss"], loss=None)

    def test_targets_of_several(self):
        def loss(output, target):
            return F.cross_entropy(output, target["class"]) + 0.1 * (output * target["weight"]).mean()

        batches = of_parts(lambda l, r, y: ((l, r), {"class": y, "weight": y[:, None].float()}))
        self.beside(Apart, batches, lambda m, b: loss(m(*b[0]), b[1]), loss=loss)

    def test_arrays_of_numpy_and_lists(self):
        plain = of_parts(lambda l, r, y: (l, r, y))
        others = [(l.numpy(), r.tolist(), y.numpy()) for l, r, y in plain]
        self.beside(Apart, plain, lambda m, b: F.cross_entropy(m(*b[:2]), b[2]), loader=others)

    def test_what_is_absent_stays_so(self):
        self.beside(Together, of_parts(lambda l, r, y: ((l, r, None), y)), lambda m, b: F.cross_entropy(m(b[0]), b[1]))

    def test_a_loader_with_workers(self):
        records = pictures(24)
        net = lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.Tanh(), nn.Linear(16, 5))
        step = lambda m, b: F.cross_entropy(m(b[0]), b[1])
        working = DataLoader(records, batch_size=8, num_workers=2, persistent_workers=True)
        self.beside(net, list(DataLoader(records, batch_size=8)), step, loader=working)
        dropping = DataLoader(pictures(22), batch_size=8, drop_last=True)
        self.beside(net, list(dropping), step, loader=dropping)

    def test_iterable_sets(self):
        records = [(x, int(y)) for x, y in pictures(18)]

        class Stream(IterableDataset):
            def __iter__(self):
                return iter(records)

        net = lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 5))
        whole = list(DataLoader(pictures(18), batch_size=6))
        step = lambda m, b: F.cross_entropy(m(b[0]), b[1])
        self.beside(net, whole, step, loader=DataLoader(Stream(), batch_size=6), steps=6)
        generator = (batch for batch in whole)
        self.beside(net, whole, step, loader=generator, epochs=1, steps=3)

    def test_sets_of_hugging_face(self):
        try:
            import datasets
        except ImportError:
            self.skipTest("no datasets here")
        x, y = np.random.default_rng(0).standard_normal((16, 6)).astype(np.float32), np.arange(16) % 3
        records = datasets.Dataset.from_dict({"input": x.tolist(), "label": y.tolist()})
        net = lambda: nn.Sequential(collections.OrderedDict(head=nn.Linear(6, 3)))
        whole = [(torch.tensor(x[i : i + 4]), torch.tensor(y[i : i + 4])) for i in range(0, 16, 4)]
        step = lambda m, b: F.cross_entropy(m(b[0]), b[1])
        self.beside(net, whole, step, loader=records, batch=4)
        streamed = records.to_iterable_dataset()
        self.beside(net, whole, step, loader=streamed, batch=4, steps=4, epochs=1)
        with self.assertSays(thimble.UserError, "batch=32"):
            thimble.torch.train(net(), F.cross_entropy, records)
        words = records.add_column("text", ["a"] * 16)
        with self.assertSays(thimble.torch.CannotExport, "'text'", "remove_columns"):
            thimble.torch.train(net(), F.cross_entropy, words.select_columns(["text", "label"]), batch=4)

    # A failure leaves the module and its optimizer as they were, or as the steps before left them.

    def refused(self, loader, *words, kind=thimble.UserError, after=0, **more):
        torch.manual_seed(1)
        ours = Apart().train()
        theirs, optimizer = copy.deepcopy(ours), sgd(ours)
        peer = sgd(theirs)
        for l, r, y in of_parts(lambda *p: p)[:after]:
            peer.zero_grad()
            F.cross_entropy(theirs(l, r), y).backward()
            peer.step()
        with self.assertSays(kind, *words):
            thimble.torch.train(ours, F.cross_entropy, loader, optimizer=optimizer, **{"epochs": 1, **SMALL, **more})
        self.same(ours, theirs, MOST)
        self.assertEqual(optimizer.state_dict()["param_groups"], sgd(Apart()).state_dict()["param_groups"])
        if after == 0:
            self.assertEqual(optimizer.state_dict()["state"], {})

    def assertSays(self, kind, *words):
        return self.assertRaisesRegex(kind, "(?s)" + "".join(f"(?=.*{word})" for word in words))

    def test_a_loader_that_raises(self):
        def broken(after):
            yield from of_parts(lambda *p: p)[:after]
            raise OSError("the disk is gone")

        self.refused(broken(0), "the disk is gone", kind=OSError, steps=3)
        self.refused(broken(1), "the disk is gone", kind=OSError, after=1, steps=3)
        self.refused(broken(2), "the disk is gone", kind=OSError, after=2, steps=3)

    def test_a_loader_without_batches(self):
        self.refused([], "the loader has none")
        self.refused(DataLoader(TensorDataset(*parts(0, 0))), "the loader has none")

    def test_batches_that_change(self):
        first, second, _ = of_parts(lambda l, r, y: {"left": l, "right": r, "y": y})
        self.refused([first, {"left": second["left"], "y": second["y"]}], "lacks right", "left, right, y", after=1)
        self.refused([first, {**second, "mask": second["right"]}], "has mask", after=1)
        (one, two, three), _, _ = of_parts(lambda *p: p)
        self.refused([(one, two, three), ((one, two), three, three)], "a batch", after=1)
        self.refused([(one, two, three), (one[:, :5], two, three)], "'left' is", "was planned", after=1)

    def test_batches_that_are_none(self):
        left, right, y = parts(6, 0)
        self.refused([(left, ["a"] * 6, y)], "'right' of a batch is text", kind=thimble.torch.CannotExport)
        self.refused([(left, 3.0, y)], "'right' of a batch is a float", kind=thimble.torch.CannotExport)
        self.refused([(left, torch.tensor(3.0), y)], "'right' of a batch is one number", kind=thimble.torch.CannotExport)
        self.refused([(left, [[1.0], [2.0, 3.0]], y)], "different lengths", kind=thimble.torch.CannotExport)

    def test_predictions_and_tests(self):
        loader = of_parts(lambda *p: p, (6, 6))
        torch.manual_seed(1)
        model = Apart().train()
        run = thimble.torch.train(model, F.cross_entropy, loader, optimizer=sgd(model), epochs=1, **SMALL)
        left, right, y = parts(11, 9)
        with torch.no_grad():
            expected = model.eval()(left, right)
        made = run.predict({"left": left, "right": right})
        self.assertEqual(len(made), 1)
        np.testing.assert_allclose(next(iter(made.values())), expected.numpy(), rtol=1e-5, atol=1e-6)
        tested = run.evaluate([{"left": left[:6], "right": right[:6], "target": y[:6]}])
        self.assertAlmostEqual(tested.loss, F.cross_entropy(expected[:6], y[:6]).item(), places=5)

    def test_predictions_of_rows_that_depend_on_each_other(self):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6, track_running_stats=False), nn.Linear(6, 3)).train()
        x, y = torch.randn(15, 4), torch.arange(15) % 3
        run = thimble.torch.train(model, F.cross_entropy, [(x[:6], y[:6])], optimizer=sgd(model), epochs=1, **SMALL)
        with torch.no_grad():
            expected = torch.cat([model(part) for part in (x[:6], x[6:12])])
        made, = run.predict(x[:12].numpy()).values()
        np.testing.assert_allclose(made, expected.numpy(), rtol=1e-5, atol=1e-6)
        with self.assertRaisesRegex(thimble.UserError, "take 6 rows at a time.*3 are left"):
            run.predict(x.numpy())


if __name__ == "__main__":
    unittest.main()
