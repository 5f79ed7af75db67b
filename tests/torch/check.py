"""Checks against PyTorch before anything is trained: gradients that an export does not see are refused with
the line they come from, and the module, its optimizer and the random numbers to come are as they were.

usage: THIMBLE_LIBRARY=build/release/lib/libthimble.so.0 check.py
"""

import copy
import json
import os
import unittest
from unittest import mock

import make_nets  # first: it finds the package
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import thimble
from torch.utils.data import TensorDataset
from train import SMALL, Case, grouped, loaded, made, momentum, pictures, trained, words

CannotExport = thimble.torch.CannotExport


class Doubled(torch.autograd.Function):
    """Passes on what it is given, and twice its gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class Clamped(torch.autograd.Function):
    """Passes on what it is given, and as much of its gradient as is small."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clamp(-1e-4, 1e-4)


class Square(torch.autograd.Function):
    """A backward of its own, and the right one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


doubled = Doubled.apply  # as many write it, so that nobody who comes later can look in between


class Around(nn.Module):
    """A function between two layers, and whatever else a test does to them."""

    def __init__(self, function=torch.relu):
        super().__init__()
        self.first, self.second, self.function = nn.Linear(192, 16), nn.Linear(16, 5), function

    def forward(self, x):
        return self.second(self.function(self.first(x.flatten(1))))


class Noting(nn.Module):
    """Keeps what it saw, and counts."""

    def __init__(self):
        super().__init__()
        self.inner, self.seen, self.calls = Around(), [], 0
        self.norm = nn.BatchNorm2d(3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        self.calls += 1
        self.seen.append(x)
        return self.inner(self.drop(self.norm(x)))


class Clamps(Around):
    def forward(self, x):
        with torch.no_grad():
            self.second.weight.clamp_(-0.01, 0.01)
        return super().forward(x)


class Deep(nn.Module):
    """Everything that draws: dropout of three kinds, attention's, an LSTM's, stochastic depth of two kinds, and noise."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(24, 16)
        self.attention = nn.MultiheadAttention(16, 2, dropout=0.3, batch_first=True)
        self.lstm = nn.LSTM(16, 16, 2, dropout=0.4, batch_first=True)
        self.drop, self.channels, self.head = nn.Dropout(0.5), nn.Dropout1d(0.2), nn.Linear(16, 5)
        self.noise = nn.Parameter(torch.ones(16))

    def forward(self, x):
        x = self.drop(self.enter(x.reshape(-1, 8, 24)))
        x = x + self.attention(x, x, x, need_weights=False)[0]
        x = x + F.dropout(self.lstm(x)[0], 0.1, self.training)
        kept = torch.empty(x.shape[0], 1, 1).bernoulli_(0.8)
        x = x + self.channels(x) * kept.div_(0.8)
        x = x * (torch.rand_like(x) < 0.6) + self.noise * torch.randn_like(x) + F.rrelu(x, training=True)
        x = x + torch.bernoulli(torch.sigmoid(x)) - torch.empty_like(x).uniform_(-1, 1)
        floor = (0.7 + torch.rand(x.shape[0], 1, 1)).floor_()
        return self.head((x + torch.tanh(x).div(0.7) * floor).mean(1))


def sgd(model, rate=0.05):
    return torch.optim.SGD(model.parameters(), rate, momentum=0.9)


def state_of(model, optimizer):
    """All that a failure has to leave alone."""
    return copy.deepcopy(
        (
            model.state_dict(),
            [part.training for part in model.modules()],
            [(p.requires_grad, p.grad) for p in model.parameters()],
            optimizer.state_dict(),
            torch.get_rng_state(),
        )
    )


class Refusals(Case):
    def alike(self, one, other):
        if isinstance(one, torch.Tensor):
            self.assertTrue(torch.equal(one, other))
        elif isinstance(one, dict):
            self.assertEqual(list(one), list(other))
            for key in one:
                self.alike(one[key], other[key])
        elif isinstance(one, (list, tuple)):
            self.assertEqual(len(one), len(other))
            for pair in zip(one, other):
                self.alike(*pair)
        else:
            self.assertEqual(one, other)

    def refused(self, model, pattern, loss=F.cross_entropy, kind=CannotExport, **more):
        """With that sentence, by train and by export; nothing is otherwise than before."""
        optimizer = sgd(model)
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        batches = list(loaded(pictures()))
        for call in (
            lambda: thimble.torch.train(model, loss, batches, optimizer=optimizer, **{**SMALL, **more}),
            lambda: thimble.torch.export(model, loss, batches[0], os.path.join(self.folder, "n.json"), optimizer),
        ):
            before = state_of(model, optimizer)
            with self.assertRaisesRegex(kind, pattern):
                call()
            self.alike(state_of(model, optimizer), before)
            if more:  # settings of a run alone
                break

    def test_a_backward_of_its_own(self):
        self.refused(made(Around, function=Clamped.apply), r"'Clamped' \(check\.py:\d+\) has a gradient of its own")

    def test_a_backward_of_its_own_that_was_not_seen(self):
        """Where what looks for them is wrong, gradients tell, and the graph that they came through."""
        from thimble.exporter import functions

        with mock.patch.object(functions._Traced, "_kind", lambda *_: "derived"):
            self.refused(made(Around, function=doubled), "the gradient of 'first")
            self.refused(made(Around, function=doubled), r"Doubled \(check\.py:\d+\) has a backward of its own")

    def test_hooks_on_gradients(self):
        def hooked(x):
            if x.requires_grad:
                x.register_hook(lambda gradient: gradient * 0.5)
            return x

        self.refused(made(Around, function=hooked), r"register_hook \(check\.py:\d+\)")
        model = made(Around)
        model.first.weight.register_hook(lambda gradient: gradient.clamp(-1e-4, 1e-4))
        self.refused(model, "'first.weight'.*a hook on the gradient of 'first.weight'")
        model = made(Around)
        model.second.register_full_backward_hook(lambda _, given, __: (given[0] * 3,))
        self.refused(model, "'first.*a backward hook on module 'second'")
        model = made(Around)
        model.first.bias.register_post_accumulate_grad_hook(lambda p: None)
        self.refused(model, "'first.bias' has a hook.*register_post_accumulate_grad_hook")

    def test_a_forward_pass_that_changes_weights(self):
        self.refused(made(Clamps), "second.weight")

    def test_numbers_of_python_that_change(self):
        def otherwise(x):
            return torch.relu(x) if torch.compiler.is_exporting() else torch.tanh(x)

        self.refused(made(Around, function=otherwise), r"the loss .*an export fixes")

    def test_an_op_that_is_read_wrongly(self):
        """A fault of ours is seen, too, and said with the line."""
        from thimble.exporter import ops

        with mock.patch.dict(ops.HANDLERS, {"aten::relu": ops.HANDLERS["aten::tanh"]}):
            self.refused(made(Around), "the loss .*is not what PyTorch computes|is not what PyTorch computes: the loss")

    def test_a_loss_that_is_not_finite(self):
        self.refused(made(Around), "the loss is not finite in PyTorch itself", lambda output, target: (-output.abs() - 1).log().mean())

    def test_a_loss_that_mixes_rows_has_no_microbatches(self):
        def dice(output, target):
            shares = torch.sigmoid(output)
            return 1 - 2 * (shares * F.one_hot(target, 5)).sum() / (shares.sum() + target.shape[0])

        kinds = (CannotExport, thimble.UserError)  # by its numbers here, or by its graph before that
        self.refused(made(Around), "(?i)microbatch", dice, kinds, microbatch=2)
        model = made(Around)
        thimble.torch.train(model, dice, loaded(pictures()), optimizer=sgd(model), **SMALL)


class Passes(Case):
    """A net that is right is trained, whatever it looks like."""

    def test_a_backward_that_is_right(self):
        self.beside(lambda: Around(Square.apply), F.cross_entropy, pictures(), lambda m: sgd(m, 1e-3))
        self.beside(lambda: Around(doubled), F.cross_entropy, pictures(), lambda m: sgd(m, 1e-3))

    def test_checkpoints_of_both_kinds(self):
        for reentrant in (False, True):
            self.beside(
                lambda: Around(lambda x: checkpoint(torch.tanh, x, use_reentrant=reentrant)),
                F.cross_entropy,
                pictures(),
                momentum,
            )

        class Part(nn.Module):
            """Weights inside of a checkpoint that is computed where gradients are off."""

            def __init__(self):
                super().__init__()
                self.net = Around()

            def forward(self, x):
                return checkpoint(self.net, x.requires_grad_(), use_reentrant=True)

        self.beside(Part, F.cross_entropy, pictures(), momentum)

    def test_whatever_draws(self):
        model, batch = made(Deep), next(iter(loaded(pictures())))
        draws = torch.get_rng_state()
        thimble.torch.export(model, F.cross_entropy, batch, os.path.join(self.folder, "n.json"))
        self.assertTrue(torch.equal(torch.get_rng_state(), draws))

    def test_a_check_that_is_left_out_is_said(self):
        for check, said in ((True, "against torch"), (False, "check=False")):
            model = made(Around)
            run = thimble.torch.train(
                model, F.cross_entropy, loaded(pictures()), optimizer=sgd(model), check=check, **SMALL,
                out=os.path.join(self.folder, said),
            )
            with open(os.path.join(self.folder, said, "net.json"), encoding="utf-8") as file:
                self.assertIn(said, json.load(file)["checked"])
            self.assertEqual(run.result["checked"], check)
            self.assertNotIn("net.check.json", os.listdir(os.path.join(self.folder, said)))

    def test_unstable_nets_are_no_fault(self):
        """Batch norms of a few numbers: PyTorch in fp32 is far from PyTorch in fp64, too."""
        layers = [layer for _ in range(12) for layer in (nn.Linear(192, 192), nn.BatchNorm1d(192), nn.ReLU())]
        model = made(lambda: nn.Sequential(nn.Flatten(), *layers, nn.Linear(192, 5)))
        batch = (torch.randn(2, 3, 8, 8), torch.tensor([1, 3]))
        thimble.torch.export(model, F.cross_entropy, batch, os.path.join(self.folder, "n.json"))


class Labels(Case):
    """No target counts: PyTorch's mean is none, and nothing can be learnt of it."""

    def train(self, batches, **more):
        model = made(make_nets.Words)
        optimizer = momentum(model)
        before = state_of(model, optimizer)

        def loss(output, target):
            return F.cross_entropy(output.flatten(0, 1), target.flatten())

        with self.assertRaisesRegex((CannotExport, thimble.UserError), "labels that count|all are -100"):
            thimble.torch.train(model, loss, batches, optimizer=optimizer, **SMALL, **more)
        return model, before

    def batches(self, without):
        """Of words, of which one has no label."""
        batches = list(loaded(words(24)))
        batches[without][1].fill_(-100)
        return batches

    def test_a_first_batch_without_any(self):
        for more in ({}, {"microbatch": 2}):
            model, before = self.train(self.batches(0), **more)
            self.same(model, _Stated(before[0]), 0)

    def test_a_later_batch_without_any(self):
        """Steps before it count, and it makes none."""
        other = made(make_nets.Words)
        optimizer = momentum(other)
        trained(other, lambda o, t: F.cross_entropy(o.flatten(0, 1), t.flatten()), self.batches(2)[:2], optimizer)
        for more in ({}, {"microbatch": 2}):
            model, _ = self.train(self.batches(2), **more)
            self.same(model, other)

    def test_microbatches_without_any(self):
        batches = list(loaded(words(24)))
        for _, target in batches:
            target[2:4] = -100
        self.beside(
            make_nets.Words,
            lambda o, t: F.cross_entropy(o.flatten(0, 1), t.flatten()),
            TensorDataset(*(torch.cat(parts) for parts in zip(*batches))),
            momentum,
            microbatch=2,
        )


class _Stated:
    def __init__(self, state):
        self._state = state

    def state_dict(self):
        return self._state


class Modes(Case):
    """Parts of a module have modes of their own, which are theirs afterwards as well."""

    def frozen(self):
        model = make_nets.Pictures()
        model.norm.eval()
        return model

    def test_a_part_that_evaluates(self):
        ours = made(make_nets.Pictures)
        ours.norm.eval()
        theirs = copy.deepcopy(ours)
        trained(theirs, F.cross_entropy, loaded(pictures()), grouped(theirs), 2)
        thimble.torch.train(
            ours, F.cross_entropy, loaded(pictures()), optimizer=grouped(ours), epochs=2, **SMALL
        )
        self.same(ours, theirs)
        self.assertEqual(ours.norm.num_batches_tracked.item(), 0)

    def test_modes_stay(self):
        model = made(Noting)
        model.norm.eval()
        batch = next(iter(loaded(pictures())))
        loss = nn.CrossEntropyLoss().eval()
        before = [part.training for part in model.modules()]
        thimble.torch.plan(model, loss, batch, optimizer=grouped(model), **SMALL)
        thimble.torch.export(model, loss, batch, os.path.join(self.folder, "n.json"))
        self.assertEqual([part.training for part in model.modules()], before)
        thimble.torch.train(model, loss, [batch], optimizer=grouped(model), **SMALL)
        self.assertEqual([part.training for part in model.modules()], before)
        with self.assertRaises(CannotExport):
            thimble.torch.plan(model, lambda o, t: o.sort().values.mean(), batch, **SMALL)
        self.assertEqual([part.training for part in model.modules()], before)
        self.assertFalse(loss.training)

    def test_what_a_forward_pass_keeps_is_not_kept(self):
        model = made(Noting)
        batch = next(iter(loaded(pictures())))
        values = copy.deepcopy(model.state_dict())
        thimble.torch.export(model, F.cross_entropy, batch, os.path.join(self.folder, "n.json"))
        self.assertEqual((model.calls, model.seen), (0, []))
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, values[name]), name)


class Packed(Case):
    """Documents in one row, whose positions begin again."""

    def batch(self):
        torch.manual_seed(2)
        tokens = torch.randint(1, 50, (4, 12))
        places = torch.cat([torch.arange(5), torch.arange(7)]).expand(4, 12).contiguous()
        return {"input_ids": tokens, "position_ids": places, "labels": tokens.clone()}

    def model(self, **more):
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(3)
        config = LlamaConfig(
            vocab_size=50, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, max_position_embeddings=32, **more,
        )
        return LlamaForCausalLM(config).train()

    def train(self, model, batch):
        return thimble.torch.train(model, None, [batch], optimizer=momentum(model), **SMALL)

    def test_documents_that_reach_each_other(self):
        with self.assertRaisesRegex(CannotExport, "begin again in row 0 at 5.*use_cache = False"):
            self.train(self.model(), self.batch())

    def test_documents_apart(self):
        ours, batch = self.model(use_cache=False), self.batch()
        theirs = copy.deepcopy(ours)
        peer = momentum(theirs)
        theirs(**batch).loss.backward()
        peer.step()
        self.train(ours, batch)
        self.same(ours, theirs)

    def test_padding_is_no_document(self):
        batch = self.batch()
        for name, none in (("input_ids", 0), ("position_ids", 0), ("labels", -100)):
            batch[name][:, 9:] = none
        batch["position_ids"] = torch.cat([torch.arange(9), torch.zeros(3, dtype=torch.long)]).expand(4, 12)
        batch["attention_mask"] = (batch["labels"] >= 0).long()
        path = os.path.join(self.folder, "n.json")
        from thimble.exporter.packing import check_documents

        check_documents(self.model(), batch)
        with self.assertRaises(CannotExport):
            check_documents(self.model(), self.batch())
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main(verbosity=2)
