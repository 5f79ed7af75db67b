"""thimble.torch.train and thimble.torch.plan through the library, beside PyTorch's own training of the
same module on the same batches.

usage: THIMBLE_LIBRARY=build/release/lib/libthimble.so.0 train.py
"""

import copy
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import make_nets  # first: it finds the package
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import thimble

SMALL = dict(threads=1, seed=5)
MOST = 1e-5  # of a loss or a weight: rounding in another order over a few steps


def pictures(count=48, seed=1):
    draw = torch.Generator().manual_seed(seed)
    return TensorDataset(
        torch.randn(count, 3, 8, 8, generator=draw),
        torch.randint(0, 5, (count,), generator=draw),
    )


def words(count=36, seed=1):
    draw = torch.Generator().manual_seed(seed)
    return TensorDataset(
        torch.randint(0, 11, (count, 6), generator=draw),
        torch.randint(0, 11, (count, 6), generator=draw),
    )


def loaded(records, rows=6, **more):
    return DataLoader(records, batch_size=rows, **more)


def made(kind, **settings):
    torch.manual_seed(3)
    return kind(**settings).train()


def trained(model, loss, loader, optimizer, epochs=1, scheduler=None):
    """PyTorch's losses, step by step."""
    losses = []
    for _ in range(epochs):
        for *inputs, target in loader:
            optimizer.zero_grad()
            value = loss(model(*inputs), target)
            value.backward()
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            losses.append(value.item())
    return losses


class Means:
    """Losses of a run: `progress` has their mean since the epoch began."""

    def __init__(self):
        self.of_epochs = []

    def __call__(self, progress):
        if (progress.step - 1) % progress.steps_per_epoch == 0:
            self.of_epochs.append([])
        self.of_epochs[-1].append(progress.train.loss)

    def apart(self, losses):
        """The largest difference from the means of `losses`."""
        worst, at = 0.0, 0
        for means in self.of_epochs:
            for count, mean in enumerate(means, 1):
                worst = max(worst, abs(mean - sum(losses[at : at + count]) / count))
            at += len(means)
        assert at == len(losses), (at, len(losses))
        return worst


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="thimble-torch-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def same(self, ours, theirs, most=MOST):
        """Every parameter and buffer, counters too."""
        other = theirs.state_dict()
        self.assertEqual(list(ours.state_dict()), list(other))
        for name, tensor in ours.state_dict().items():
            apart = (tensor.double() - other[name].double()).abs().max().item()
            self.assertLessEqual(apart, most * max(1.0, other[name].abs().max().item()), name)

    def beside(self, kind, loss, records, optimizer_of, epochs=2, scheduler_of=None, **more):
        """Both train; their losses and what the modules have then are the same."""
        ours = made(kind)
        theirs = copy.deepcopy(ours)
        peer = optimizer_of(theirs)
        schedule = None if scheduler_of is None else scheduler_of(peer)
        losses = trained(theirs, loss, loaded(records), peer, epochs, schedule)
        means = Means()
        optimizer = optimizer_of(ours)
        if scheduler_of is not None:
            more["scheduler"] = scheduler_of(optimizer)
        run = thimble.torch.train(
            ours,
            loss,
            loaded(records),
            optimizer=optimizer,
            epochs=epochs,
            progress=means,
            **{**SMALL, **more},
        )
        self.assertLessEqual(means.apart(losses), MOST)
        self.same(ours, theirs)
        return run, ours


def grouped(model, kind=torch.optim.AdamW):
    """Two groups: matrices decay, the rest learns twice as fast and does not."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    return kind(
        [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.ndim <= 1], "lr": 2e-3, "weight_decay": 0.0},
        ],
        1e-3,
    )


def momentum(model):
    return torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True)


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(192, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 5)
        )

    def forward(self, x):
        return self.layers(x)


class Coded(nn.Module):
    """A variational autoencoder: a code is drawn around the mean that the encoder gives."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.mean, self.log_variance = nn.Linear(64, 4), nn.Linear(64, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 16))

    def forward(self, x):
        x = self.encoder(x)
        mean, log_variance = self.mean(x), self.log_variance(x)
        deviation = torch.exp(0.5 * log_variance)
        return self.decoder(mean + deviation * torch.randn_like(deviation)), mean, log_variance


def evidence(output, target):
    made, mean, log_variance = output
    apart = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()
    return 8 * F.mse_loss(made, target) + 0.1 * apart


def codes(count=512):
    draw = torch.Generator().manual_seed(1)
    x = torch.tanh(torch.randn(count, 3, generator=draw) @ torch.randn(3, 16, generator=draw))
    return TensorDataset(x, x)


class Beside(Case):
    """A frozen stem, running statistics, tied weights, groups, schedules."""

    def test_groups_frozen_parameters_and_buffers(self):
        run, model = self.beside(make_nets.Pictures, F.cross_entropy, pictures(), grouped)
        self.assertEqual(run.steps, 16)
        self.assertEqual(model.norm.num_batches_tracked.item(), 16)
        self.assertFalse(model.stem.weight.requires_grad)

    def test_tied_weights(self):
        _, model = self.beside(make_nets.Words, make_nets.of_tokens, words(), momentum)
        self.assertIs(model.head.weight, model.table.weight)

    def test_adam_and_an_lstm(self):
        records = TensorDataset(torch.randn(24, 20, 3), torch.randn(24, 2))
        self.beside(
            make_nets.Series,
            F.smooth_l1_loss,
            records,
            lambda model: torch.optim.Adam(model.parameters(), 1e-3, weight_decay=0.01),
        )

    def test_schedulers_of_pytorch(self):
        lr = torch.optim.lr_scheduler
        for scheduler_of in (
            lambda optimizer: lr.CosineAnnealingLR(optimizer, 16),
            lambda optimizer: lr.LinearLR(optimizer, 0.1, total_iters=5),
            lambda optimizer: lr.OneCycleLR(
                optimizer, max_lr=[2e-3, 4e-3], total_steps=17, cycle_momentum=False
            ),
        ):
            self.beside(
                make_nets.Pictures, F.cross_entropy, pictures(), grouped, scheduler_of=scheduler_of
            )

    def test_schedules_as_lists_and_functions(self):
        factors = [1.0, 0.5, 0.25, 0.1]
        theirs = made(make_nets.Words)
        optimizer = momentum(theirs)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: factors[min(step, 3)])
        trained(theirs, make_nets.of_tokens, loaded(words()), optimizer, 1, schedule)
        for scheduler in (factors, lambda step: factors[min(step, 3)]):
            ours = made(make_nets.Words)
            thimble.torch.train(
                ours,
                make_nets.of_tokens,
                loaded(words()),
                optimizer=momentum(ours),
                scheduler=scheduler,
                **SMALL,
            )
            self.same(ours, theirs)

    def test_batches_that_are_dicts(self):
        """Of transformers: the module gives its loss itself."""
        import nets

        ours, loss, batch = nets.net("bert")
        self.assertIsNone(loss)
        theirs = copy.deepcopy(ours)
        peer = torch.optim.AdamW(theirs.parameters(), 1e-4)
        losses = []
        for _ in range(4):
            peer.zero_grad()
            value = theirs(**batch).loss
            value.backward()
            peer.step()
            losses.append(value.item())
        means = Means()
        thimble.torch.train(
            ours,
            None,
            [batch] * 4,
            optimizer=torch.optim.AdamW(ours.parameters(), 1e-4),
            progress=means,
            **SMALL,
        )
        self.assertLessEqual(means.apart(losses), MOST)
        self.same(ours, theirs)

    def test_evaluation_is_the_modules(self):
        run, model = self.beside(
            make_nets.Pictures, F.cross_entropy, pictures(), grouped, test=loaded(pictures(12, 2))
        )
        model.eval()
        with torch.no_grad():
            inputs, labels = pictures(12, 2).tensors
            loss = F.cross_entropy(model(inputs), labels).item()
        self.assertAlmostEqual(run.result["test_loss"], loss, delta=MOST)
        self.assertAlmostEqual(run.evaluate(loaded(pictures(12, 2))).loss, loss, delta=MOST)

    def test_dropout_is_drawn_in_training_alone(self):
        model = made(Dropping)
        means = Means()
        records = pictures(120)
        run = thimble.torch.train(
            model,
            F.cross_entropy,
            loaded(records, 20),
            optimizer=torch.optim.AdamW(model.parameters(), 1e-2),
            epochs=12,
            progress=means,
            **SMALL,
        )
        with torch.no_grad():
            inputs, labels = records.tensors
            plain = F.cross_entropy(model.eval()(inputs), labels).item()
        self.assertAlmostEqual(run.evaluate(loaded(records, 20)).loss, plain, delta=MOST)
        self.assertGreater(means.of_epochs[-1][-1], 1.5 * plain)  # half of the units were missing

    def test_random_numbers_of_the_net(self):
        ours = made(Coded)
        theirs = copy.deepcopy(ours)
        optimizer = torch.optim.Adam(theirs.parameters(), 3e-3)
        torch.manual_seed(7)
        losses = trained(theirs, evidence, loaded(codes(), 64), optimizer, 60)
        run = thimble.torch.train(
            ours,
            evidence,
            loaded(codes(), 64),
            optimizer=torch.optim.Adam(ours.parameters(), 3e-3),
            epochs=60,
            **SMALL,
        )
        tested = run.evaluate(loaded(codes(), 64)).loss
        self.assertEqual(tested, run.evaluate(loaded(codes(), 64)).loss)  # the same draws
        # Of other draws than PyTorch's: 480 steps of 64 leave a few per cent between two seeds of one program.
        self.assertAlmostEqual(tested / (sum(losses[-8:]) / 8), 1, delta=0.15)
        self.assertLess(tested, 0.5 * losses[0])

    def test_label_smoothing_and_several_losses(self):
        def loss(output, target):
            smooth = F.cross_entropy(output, target, label_smoothing=0.1)
            return smooth + 0.3 * F.mse_loss(output, torch.zeros_like(output))

        self.beside(make_nets.Pictures, loss, pictures(), grouped)


class Budgets(Case):
    def planned(self, memory=None, **more):
        model = made(make_nets.Pictures)
        return thimble.torch.plan(
            model,
            F.cross_entropy,
            next(iter(loaded(pictures()))),
            optimizer=grouped(model),
            memory=memory,
            **{**SMALL, **more},
        )

    def test_a_budget_is_kept_and_changes_no_bit(self):
        kept = self.planned()
        with self.assertRaises(thimble.DoesNotFit) as raised:
            self.planned(1, fit="off")
        least = raised.exception.needed
        self.assertLess(least, kept.bytes)
        weights = []
        for memory in (None, least):
            model = made(make_nets.Pictures)
            run = thimble.torch.train(
                model,
                F.cross_entropy,
                loaded(pictures()),
                optimizer=grouped(model),
                **({} if memory is None else dict(memory=memory, fit="off")),
                **SMALL,
            )
            if memory is not None:
                self.assertLessEqual(run.result["measured_arena_bytes"], memory)
                self.assertEqual(self.planned(memory, fit="off").bytes, run.plan.bytes)
            weights.append(model.state_dict())
        for name, tensor in weights[0].items():
            self.assertTrue(torch.equal(tensor, weights[1][name]), name)

    def test_random_numbers_are_drawn_again_to_the_bit(self):
        weights, arenas = [], []
        for planner in ("keep_all", "sqrt_segments"):
            model = made(Coded)
            run = thimble.torch.train(
                model,
                evidence,
                loaded(codes(), 64),
                optimizer=grouped(model),
                planner=planner,
                **SMALL,
            )
            weights.append(model.state_dict())
            arenas.append(run.plan.bytes)
        self.assertLess(arenas[1], arenas[0])
        for name, tensor in weights[0].items():
            self.assertTrue(torch.equal(tensor, weights[1][name]), name)

    def test_a_budget_that_is_too_small_says_what_would_do(self):
        with self.assertRaisesRegex(thimble.DoesNotFit, "KiB|MiB|bytes") as raised:
            self.planned("1KiB")
        self.planned(raised.exception.needed)


class Mistakes(Case):
    """Each is an exception with a sentence; the module keeps what came of the steps before."""

    def train(self, loader, model=None, **more):
        model = made(make_nets.Pictures) if model is None else model
        return thimble.torch.train(
            model,
            F.cross_entropy,
            loader,
            optimizer=grouped(model),
            **{**SMALL, **more},
        )

    def test_a_loader_that_ends_early(self):
        with self.assertRaisesRegex(thimble.UserError, "ended early.*iterator"):
            self.train(iter(list(loaded(pictures()))), steps=20)
        with self.assertRaisesRegex(thimble.UserError, "ended early"):
            self.train([])

    def test_an_iterator_loses_nothing(self):
        one, other = made(make_nets.Pictures), made(make_nets.Pictures)
        self.train(iter(list(loaded(pictures()))), one, steps=8)
        self.train(loaded(pictures()), other)
        self.same(one, other, 0)

    def test_a_shuffled_loader_is_gone_through_once_an_epoch(self):
        one, other = made(make_nets.Pictures), made(make_nets.Pictures)
        shuffled = dict(shuffle=True, generator=torch.Generator().manual_seed(4))
        self.train(loaded(pictures(), **shuffled), one, epochs=2)
        again = loaded(pictures(), shuffle=True, generator=torch.Generator().manual_seed(4))
        self.train([*again, *again], other)
        self.same(one, other, 0)

    def test_a_loader_that_changes_its_shape(self):
        batches = list(loaded(pictures()))
        wide = (torch.randn(6, 3, 9, 8), batches[0][1])
        with self.assertRaisesRegex(thimble.UserError, r"\(6, 3, 9, 8\).*\(6, 3, 8, 8\)"):
            self.train([batches[0], wide])
        with self.assertRaisesRegex(thimble.UserError, "4 rows.*6 were planned.*drop_last"):
            self.train([batches[0], (batches[1][0][:4], batches[1][1][:4]), batches[2]])

    def test_a_rest_is_left_out(self):
        model = made(make_nets.Pictures)
        with self.assertWarnsRegex(UserWarning, "4 rows of 6"):
            run = self.train(loaded(pictures(22)), model, epochs=2)
        self.assertEqual(run.steps, 6)

    def test_an_exception_of_the_loader_or_of_progress(self):
        class Mine(Exception):
            pass

        def broken():
            yield from list(loaded(pictures()))[:3]
            raise Mine

        model = made(make_nets.Pictures)
        with self.assertRaises(Mine):
            self.train(broken(), model, steps=8)
        other = made(make_nets.Pictures)
        self.train(list(loaded(pictures()))[:3], other)
        self.same(model, other, 0)

        def fail(_):
            raise Mine

        with self.assertRaises(Mine):
            self.train(loaded(pictures()), progress=fail)

    def test_labels_outside_of_the_classes(self):
        inputs, labels = next(iter(loaded(pictures())))
        with self.assertRaisesRegex(thimble.UserError, "target.*from 0 to 4"):
            self.train([(inputs, labels + 9)])

    def test_an_optimizer_that_is_not_there(self):
        model = made(make_nets.Pictures)
        with self.assertRaisesRegex(thimble.torch.CannotExport, "Adagrad.*AdamW"):
            thimble.torch.train(
                model,
                F.cross_entropy,
                loaded(pictures()),
                optimizer=torch.optim.Adagrad(model.parameters()),
            )


SLOW = """
import sys, time
sys.path[:0] = {path!r}
import train

def slow():
    for batch in list(train.loaded(train.pictures())) * 100:
        time.sleep(0.02)
        yield batch

def show(progress):
    if progress.step == 3:
        print("going", flush=True)

model = train.made(train.make_nets.Pictures)
try:
    train.thimble.torch.train(model, train.F.cross_entropy, slow(), optimizer=train.grouped(model),
                              out={out!r}, progress=show, steps=800, **train.SMALL)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class Interrupts(Case):
    def test_ctrl_c_leaves_a_checkpoint_to_go_on_from(self):
        out = os.path.join(self.folder, "run")
        code = SLOW.format(path=sys.path, out=out)
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "going\n")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)
        self.assertEqual(said, "interrupted\n")
        model = made(make_nets.Pictures)
        with self.assertRaisesRegex(thimble.UserError, "resume"):
            self.go_on(model, out, 8)
        with self.assertRaisesRegex(thimble.Stopped, "of 800"):
            self.go_on(model, out, 800, resume=True, progress=lambda p: self.assertGreater(p.step, 3) or True)

    def go_on(self, model, out, steps, **more):
        return thimble.torch.train(
            model,
            F.cross_entropy,
            loaded(pictures()),
            optimizer=grouped(model),
            out=out,
            steps=steps,
            **{**SMALL, **more},
        )

    def test_a_run_that_goes_on_ends_as_one_that_never_stopped(self):
        whole, parts = made(make_nets.Pictures), made(make_nets.Pictures)
        self.go_on(whole, os.path.join(self.folder, "whole"), 16)
        out = os.path.join(self.folder, "parts")
        with self.assertRaises(thimble.Stopped):
            self.go_on(parts, out, 16, progress=lambda p: p.step == 5)
        self.assertEqual(parts.norm.num_batches_tracked.item(), 5)
        self.go_on(parts, out, 16, resume=True)
        self.same(parts, whole, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
