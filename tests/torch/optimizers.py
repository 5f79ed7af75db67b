"""thimble.torch.train with optimizers that made steps before, schedulers of every kind, and batches to test on: as
PyTorch, or refused before anything is trained.

usage: THIMBLE_LIBRARY=build/release/lib/libthimble.so.0 optimizers.py
"""

import copy
import os
import unittest
import warnings

import make_nets  # first: it finds the package
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

import thimble
from train import MOST, SMALL, Case, grouped, loaded, made, momentum, pictures, trained, words

CannotExport = thimble.torch.CannotExport
lr = torch.optim.lr_scheduler


def adam(model):
    return torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1)


def of_groups(model, rates=(1e-3, 2e-3)):
    parts = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.AdamW(
        [{"params": parts[:2], "lr": rates[0]}, {"params": parts[2:], "lr": rates[1]}], weight_decay=0.0
    )


class Tried(Case):
    """A call that is refused, and what it has to leave alone."""

    def refused(self, pattern, optimizer_of=adam, scheduler_of=None, kind=CannotExport, model=None, **more):
        model = made(make_nets.Pictures) if model is None else model
        optimizer = optimizer_of(model)
        scheduler = None if scheduler_of is None else scheduler_of(optimizer)
        kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        place = getattr(scheduler, "last_epoch", None)
        shown = []
        with self.assertRaisesRegex(kind, pattern):
            thimble.torch.train(
                model,
                F.cross_entropy,
                loaded(pictures()),
                optimizer=optimizer,
                scheduler=scheduler,
                progress=shown.append,
                **{**SMALL, **more},
            )
        self.assertEqual(shown, [])
        self.same(model, _Stated(kept[0]), 0)
        self.assertEqual(repr(optimizer.state_dict()), repr(kept[1]))
        self.assertEqual(getattr(scheduler, "last_epoch", None), place)


class _Stated:
    def __init__(self, state):
        self._state = state

    def state_dict(self):
        return self._state


class Schedulers(Tried):
    def test_as_pytorch_has_them(self):
        for scheduler_of in (
            lambda o: lr.LambdaLR(o, lambda step: min(1.0, step / 4)),  # from a rate of 0
            lambda o: lr.SequentialLR(
                o, [lr.LinearLR(o, 0.1, total_iters=3), lr.CosineAnnealingLR(o, 13)], milestones=[3]
            ),
            lambda o: lr.ChainedScheduler([lr.LinearLR(o, 0.2, total_iters=4), lr.ExponentialLR(o, 0.9)]),
            lambda o: lr.OneCycleLR(o, max_lr=2e-3, total_steps=16, cycle_momentum=False),
        ):
            self.beside(make_nets.Pictures, F.cross_entropy, pictures(), adam, scheduler_of=scheduler_of)

    def test_the_callers_own_is_moved_on_by_the_steps_of_the_run(self):
        for stop, steps in ((None, 8), (3, 3)):
            model = made(make_nets.Pictures)
            optimizer = grouped(model)
            scheduler = lr.CosineAnnealingLR(optimizer, 20)
            try:
                thimble.torch.train(
                    model, F.cross_entropy, loaded(pictures()), optimizer=optimizer, scheduler=scheduler,
                    progress=lambda p: p.step == stop, **SMALL,
                )
            except thimble.Stopped:
                self.assertIsNotNone(stop)
            self.assertEqual(scheduler.last_epoch, steps)

    def test_one_that_was_moved_on_before_goes_on(self):
        ours, theirs = made(make_nets.Pictures), made(make_nets.Pictures)
        peer = momentum(theirs)
        trained(theirs, F.cross_entropy, loaded(pictures()), peer, 1, _moved(lr.StepLR(peer, 3, 0.3), peer))
        optimizer = momentum(ours)
        thimble.torch.train(
            ours, F.cross_entropy, loaded(pictures()), optimizer=optimizer,
            scheduler=_moved(lr.StepLR(optimizer, 3, 0.3), optimizer), **SMALL,
        )
        self.same(ours, theirs)

    def test_those_that_cannot_go_with_a_run(self):
        for scheduler_of, pattern in (
            (lr.ReduceLROnPlateau, "ReduceLROnPlateau goes by a loss.*CosineAnnealingLR"),
            (
                lambda o: lr.LambdaLR(o, [lambda s: 0.9**s, lambda s: 0.8**s]),
                "different factors at step 1",
            ),
            (
                lambda o: lr.LambdaLR(o, [lambda s: 1.0, lambda s: 1.0 if s < 5 else 0.5]),
                "different factors at step 5",
            ),
            (
                lambda o: lr.OneCycleLR(o, max_lr=[1e-3, 2e-3], total_steps=20),
                "changes betas at step 1.*cycle_momentum=False",
            ),
            (
                lambda o: lr.OneCycleLR(o, max_lr=[1e-3, 2e-3], total_steps=4, cycle_momentum=False),
                "OneCycleLR fails at step 5",
            ),
            (lambda o: lr.StepLR(torch.optim.SGD([torch.zeros(1)], 0.1), 3), "of another optimizer"),
            (lambda o: {"warmup": "linear"}, "a function of the step, a list of numbers"),
            (lambda o: 0.5, "a function of the step, a list of numbers"),
            (lambda o: [1.0, "half"], "a function of the step, a list of numbers"),
            (lambda o: lambda step: None, "gives None at step 0"),
            (lambda o: [], "empty list"),
        ):
            self.refused(pattern, of_groups, scheduler_of)

    def test_a_rate_of_nothing(self):
        self.refused("rate is 0", lambda model: torch.optim.SGD(model.parameters(), 0.0))

    def test_a_group_that_stands_still_in_front(self):
        self.beside(
            make_nets.Pictures, F.cross_entropy, pictures(), lambda model: of_groups(model, (0.0, 1e-3))
        )


def _moved(scheduler, optimizer):
    """By two steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler.step()
        scheduler.step()
    return scheduler


class Parameters(Tried):
    def test_those_of_another_module(self):
        other = nn.Linear(3, 7)
        self.refused(
            "none of the optimizer's parameters is the module's", lambda _: torch.optim.SGD(other.parameters(), 0.1)
        )
        self.refused(
            r"group 1 of the optimizer has a parameter of shape \(7, 3\).*1 more",
            lambda model: torch.optim.SGD(
                [{"params": model.parameters()}, {"params": other.parameters()}], 0.1
            ),
        )

    def test_none_that_is_trained(self):
        self.refused(
            "nothing would be trained", lambda model: torch.optim.SGD([model.stem.weight], 0.1)
        )

    def test_some_of_the_modules(self):
        self.beside(
            make_nets.Pictures, F.cross_entropy, pictures(), lambda m: torch.optim.AdamW(m.head.parameters(), 1e-2)
        )


class States(Tried):
    """The state that an optimizer gathered before goes in, and comes back."""

    def both(self, optimizer_of, kind=make_nets.Pictures):
        """Two epochs of PyTorch's, or one of PyTorch's and one of ours, or one and two calls of ours, or our calls alone."""
        results = []
        for own, calls in ((2, 0), (1, 1), (1, 2), (0, 2)):
            model = made(kind)
            optimizer = optimizer_of(model)
            trained(model, F.cross_entropy, loaded(pictures()), optimizer, own)
            batches, more = list(loaded(pictures())), {}
            if own == 0:
                batches, more = batches * 2, {"fresh": False}
            for call in range(calls):
                half = len(batches) // calls
                thimble.torch.train(
                    model, F.cross_entropy, batches[call * half : (call + 1) * half], optimizer=optimizer, **SMALL, **more
                )
            results.append((model, optimizer))
        (whole, peer), *others = results
        for model, optimizer in others:
            self.same(model, whole)
            for entries, expected in zip(
                optimizer.state_dict()["state"].values(), peer.state_dict()["state"].values()
            ):
                for name, tensor in expected.items():
                    torch.testing.assert_close(entries[name], tensor, rtol=MOST, atol=MOST)

    def test_moments_of_adam(self):
        self.both(adam)
        self.both(lambda model: torch.optim.Adam(model.parameters(), 1e-3))

    def test_momentum_of_groups(self):
        self.both(lambda model: torch.optim.SGD(model.parameters(), 0.02, momentum=0.9))
        self.both(lambda model: grouped(model))

    def test_what_stays_with_a_run(self):
        """A second run would begin anew, where PyTorch goes on."""
        model = made(make_nets.Pictures)
        optimizer = adam(model)
        thimble.torch.train(model, F.cross_entropy, loaded(pictures()), optimizer=optimizer, **SMALL)
        self.assertFalse(optimizer.state)
        self.refused("8 steps in a run before.*fresh=False.*fresh=True", lambda _: optimizer, model=model)
        thimble.torch.train(model, F.cross_entropy, loaded(pictures()), optimizer=optimizer, fresh=True, **SMALL)
        plain = torch.optim.SGD(model.parameters(), 0.01)  # has nothing to keep
        for _ in range(2):
            thimble.torch.train(model, F.cross_entropy, loaded(pictures()), optimizer=plain, **SMALL)

    def test_a_checkpoint_knows_of_the_steps_before(self):
        models = []
        for parts in (1, 2):
            model = made(make_nets.Pictures)
            optimizer = adam(model)
            trained(model, F.cross_entropy, loaded(pictures()), optimizer)
            how = dict(optimizer=optimizer, out=os.path.join(self.folder, str(parts)), epochs=1, **SMALL)
            if parts == 2:
                with self.assertRaises(thimble.Stopped):
                    thimble.torch.train(
                        model, F.cross_entropy, loaded(pictures()), progress=lambda p: p.step == 3, **how
                    )
            thimble.torch.train(model, F.cross_entropy, loaded(pictures()), resume=parts == 2, **how)
            models.append(model)
        self.same(*models, 0)

    def test_left_behind_when_asked(self):
        one, other = made(make_nets.Pictures), made(make_nets.Pictures)
        optimizer = adam(one)
        trained(one, F.cross_entropy, loaded(pictures()), optimizer)
        other.load_state_dict(one.state_dict())
        kept = copy.deepcopy(optimizer.state_dict())
        thimble.torch.train(one, F.cross_entropy, loaded(pictures()), optimizer=optimizer, fresh=True, **SMALL)
        thimble.torch.train(other, F.cross_entropy, loaded(pictures()), optimizer=adam(other), **SMALL)
        self.same(one, other, 0)
        self.assertEqual(repr(optimizer.state_dict()), repr(kept))

    def test_moments_of_some_parameters(self):
        def stepped(model, parts=slice(None)):
            optimizer = adam(model)
            model(torch.randn(4, 3, 8, 8)).sum().backward()
            for parameter in list(model.parameters())[parts]:
                parameter.grad = None
            optimizer.step()
            return optimizer

        self.refused("none of 'head.bias'.*fresh=True", lambda model: stepped(model, slice(-1, None)))

        def uneven(model):
            optimizer = stepped(model, slice(0, 0))
            optimizer.state[model.head.bias]["step"] += 2
            return optimizer

        self.refused("1 steps with some parameters and 3 with others.*fresh=True", uneven)

    def test_state_that_is_kept_in_another_form(self):
        def stepped(model):
            optimizer = adam(model)
            trained(model, F.cross_entropy, list(loaded(pictures()))[:1], optimizer)
            return optimizer

        self.refused("first_moment.*--state-bits", stepped, kind=thimble.UserError, state_bits=8, model=_Wide())


class _Wide(nn.Module):
    """Enough weights for state in 8 bits."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 5))

    def forward(self, x):
        return self.layers(x)


def of_places(output, target):
    return F.cross_entropy(output.flatten(0, 1), target.flatten())


class Tests(Case):
    """Batches to test on, in every form, of a net whose training and evaluation have other fields at an address."""

    def loss(self, model, records):
        model.eval()
        with torch.no_grad():
            inputs, labels = records.tensors
            return of_places(model(inputs), labels).item()

    def test_batches_of_every_form(self):
        records = words(12, 2)
        tokens, labels = records.tensors
        forms = {
            "a loader": (loaded(words()), loaded(records)),
            "pairs": (list(loaded(words())), [(tokens, labels)]),
            "lists": ([list(b) for b in loaded(words())], [[tokens, labels]]),
            "dicts": (
                [{"tokens": x, "target": y} for x, y in loaded(words())],
                [{"tokens": tokens, "target": labels}],
            ),
            "a generator": (list(loaded(words())), (batch for batch in [(tokens, labels)])),
        }
        for form, (batches, tests) in forms.items():
            for more in ({}, {"microbatch": 2}):
                if more and form == "a generator":
                    continue  # gone through
                model = made(make_nets.Words)
                run = thimble.torch.train(
                    model, of_places, batches, optimizer=momentum(model), test=tests, **SMALL, **more
                )
                self.assertAlmostEqual(
                    run.result["test_loss"], self.loss(model, records), delta=MOST, msg=(form, more)
                )

    def test_fields_of_other_types_at_one_address(self):
        """Targets that are numbers beside inputs that are labels, and the other way round."""

        class Numbers(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.head = nn.Embedding(7, 8), nn.Linear(8, 3)

            def forward(self, tokens):
                return self.head(self.table(tokens).mean(1))

        draw = torch.Generator().manual_seed(5)
        batches = [
            (torch.randint(0, 7, (6, 5), generator=draw), torch.randn(6, 3, generator=draw)) for _ in range(4)
        ]
        tests = [(torch.randint(0, 7, (4, 5), generator=draw), torch.randn(4, 3, generator=draw)) for _ in range(3)]
        for microbatch in (None, 1, 2, 3):
            model = made(Numbers)
            run = thimble.torch.train(
                model, F.mse_loss, batches, optimizer=momentum(model), test=tests, epochs=2, eval_every="2 steps",
                **SMALL, **({} if microbatch is None else {"microbatch": microbatch}),
            )
            model.eval()
            with torch.no_grad():
                expected = sum(F.mse_loss(model(x), y).item() for x, y in tests) / len(tests)
            self.assertAlmostEqual(run.result["test_loss"], expected, delta=MOST)

    def test_a_target_of_another_type_is_said_before_anything_is_trained(self):
        inputs, labels = next(iter(loaded(pictures())))
        for tests, pattern in (
            ([(inputs, labels.float())], "of the batches to test on, 'target' is float32, and int32"),
            ([(inputs[:, :, :7], labels)], r"of the batches to test on, 'x' is \(6, 3, 7, 8\)"),
            ([(inputs,)], "of the batches to test on, a batch has"),
            ([], "no batch to test on"),
        ):
            model = made(make_nets.Pictures)
            kept, shown = copy.deepcopy(model.state_dict()), []
            with self.assertRaisesRegex(thimble.UserError, pattern):
                thimble.torch.train(
                    model, F.cross_entropy, loaded(pictures()), optimizer=grouped(model), test=tests,
                    progress=shown.append, **SMALL,
                )
            self.assertEqual(shown, [])
            self.same(model, _Stated(kept), 0)

    def test_a_loader_that_changes_later_leaves_what_came_before(self):
        batches = list(loaded(pictures()))
        inputs, labels = batches[2]
        for bad, pattern in (
            ((inputs, labels.float()), "'target' is float32"),
            ((inputs[:, :, :7], labels), r"\(6, 3, 7, 8\)"),
        ):
            one, other = made(make_nets.Pictures), made(make_nets.Pictures)
            optimizer = grouped(one)
            kept = repr(optimizer.state_dict())
            with self.assertRaisesRegex(thimble.UserError, pattern):
                thimble.torch.train(
                    one, F.cross_entropy, [*batches[:2], bad, *batches[3:]], optimizer=optimizer, **SMALL
                )
            thimble.torch.train(other, F.cross_entropy, batches[:2], optimizer=grouped(other), **SMALL)
            self.same(one, other, 0)
            self.assertEqual(repr(optimizer.state_dict()), kept)

    def test_a_loader_with_workers_is_tested_on_from_its_beginning(self):
        model = made(make_nets.Pictures)
        tests = DataLoader(pictures(12, 2), batch_size=4)
        run = thimble.torch.train(
            model, F.cross_entropy, loaded(pictures()), optimizer=grouped(model), test=tests, epochs=2,
            eval_every=1, **SMALL,
        )
        model.eval()
        with torch.no_grad():
            inputs, labels = pictures(12, 2).tensors
            self.assertAlmostEqual(
                run.result["test_loss"], F.cross_entropy(model(inputs), labels).item(), delta=MOST
            )


if __name__ == "__main__":
    unittest.main(verbosity=2)
