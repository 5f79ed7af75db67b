"""A run's learning rate by step: a function, a list, or a scheduler of PyTorch's."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any, Callable

import torch

from .optimizers import rates_of
from .values import CannotExport

_LOOKED_AT = 10_000  # steps of a scheduler, before anything is trained
_SAME = 1e-6  # of a rate: groups by one factor, up to rounding


class Schedule:
    """Rates that depend on nothing but the step.

    rate    of the run, where nobody changes it: that of the first group with one above zero
    shares  of the groups' rates in it
    """

    def __init__(self, optimizer=None) -> None:
        rates = rates_of(optimizer) if isinstance(optimizer, torch.optim.Optimizer) else [1.0]
        self._set_shares([rates])

    def rate_at(self, step: int, rate: float) -> float:
        return rate

    def finish(self, steps: int) -> None:
        """The run is over, after so many steps of this call."""

    def _set_shares(self, rates: list[list[float]]) -> None:
        """By step and group; all rates of a step by one factor."""
        groups = range(len(rates[0]))
        self._base = next((g for g in groups if any(of_step[g] for of_step in rates)), 0)
        most = max(rates, key=lambda of_step: of_step[self._base])
        self.rate = most[self._base]
        self.shares = [rate / self.rate if self.rate > 0 else 1.0 for rate in most]


class _ByFactors(Schedule):
    def __init__(self, factor: Callable[[int], Any], optimizer) -> None:
        super().__init__(optimizer)
        self._factor = factor
        self.rate_at(0, 1.0)

    def rate_at(self, step: int, rate: float) -> float:
        factor = self._factor(step)
        try:
            number = float(factor)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise CannotExport(
                f"the scheduler gives {factor!r} at step {step}; have it give a finite number, which the rate is "
                "multiplied by"
            )
        return rate * number


class _OfPyTorch(Schedule):
    """A copy of the scheduler tells the rates; the caller's own is moved on when the run is over."""

    def __init__(self, scheduler, optimizer, steps: int) -> None:
        kind = type(scheduler).__name__
        if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            raise CannotExport(
                f"{kind} goes by a loss that the caller measures, and a run's rates go by its steps; choose a "
                "scheduler that needs no metrics, such as CosineAnnealingLR, or a function of the step"
            )
        if getattr(scheduler, "optimizer", None) is not optimizer:
            raise CannotExport("the scheduler is of another optimizer than the one that is given")
        self._scheduler = scheduler
        self._before = max(0, getattr(scheduler, "last_epoch", 0))
        self._settings = _settings_of(optimizer)
        ahead = self._copy(scheduler, optimizer)
        rates = [rates_of(ahead.optimizer)]
        for _ in range(1, min(max(2, steps), _LOOKED_AT)):
            self._move(ahead, len(rates))
            rates.append(rates_of(ahead.optimizer))
        self._set_shares(rates)
        for step, of_step in enumerate(rates):
            self._check_shares(of_step, step)
        self._running = self._copy(scheduler, optimizer)
        self._first: int | None = None  # step that the run asked about first
        self._ahead = 0  # steps of the run that the scheduler had made before
        self._moved = 0

    @staticmethod
    def _copy(scheduler, optimizer):
        stand_in = object.__new__(type(optimizer))
        stand_in.__dict__.update(optimizer.__dict__)
        stand_in.param_groups = [
            {**copy.deepcopy({k: v for k, v in group.items() if k != "params"}), "params": []}
            for group in optimizer.param_groups
        ]
        stand_in.state = {}
        try:
            return copy.deepcopy(scheduler, {id(optimizer): stand_in})
        except Exception as error:  # of many kinds, all of them about what the scheduler holds
            raise CannotExport(
                f"the {type(scheduler).__name__} cannot be copied ({type(error).__name__}: {error}); give a function "
                "of the step"
            ) from error

    def _move(self, scheduler, step) -> None:
        with warnings.catch_warnings():  # PyTorch's optimizer makes no steps of its own here
            warnings.simplefilter("ignore")
            try:
                scheduler.step()
            except Exception as error:  # of many kinds, all of them the scheduler's
                raise CannotExport(
                    f"the {type(scheduler).__name__} fails at step {step}: {type(error).__name__}: {error}; give one "
                    "that goes on for all steps of the run"
                ) from error
        changed = [
            key
            for before, now in zip(self._settings, _settings_of(scheduler.optimizer))
            for key in before
            if now.get(key) != before[key]
        ]
        if changed:
            raise CannotExport(
                f"the {type(scheduler).__name__} changes {', '.join(dict.fromkeys(changed))} at step {step}, and a "
                "run has one for all steps; rates may change (cycle_momentum=False)"
            )

    def _check_shares(self, rates, step) -> None:
        base = rates[self._base]
        if any(abs(r - s * base) > _SAME * max(abs(r), abs(s * base)) for r, s in zip(rates, self.shares)):
            raise CannotExport(
                f"the scheduler changes the rates of groups of parameters by different factors at step {step}; "
                "one factor for all can be"
            )

    def rate_at(self, step: int, rate: float) -> float:
        if self._first is None:
            # Of a run that goes on, the scheduler may be new, or have gone on with it.
            self._first, self._ahead = step, min(self._before, step)
        while self._moved < step - self._ahead:
            self._move(self._running, step)
            self._moved += 1
        rates = rates_of(self._running.optimizer)
        self._check_shares(rates, step)
        return rates[self._base]

    def finish(self, steps: int) -> None:
        if steps == 0 or self._first is None:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(self._first + steps - self._ahead):
                self._scheduler.step()


def _settings_of(optimizer) -> list[dict]:
    """All but rates, which schedulers are there to change."""
    rates = ("params", "lr", "initial_lr", "max_lr", "min_lr")
    return [{k: v for k, v in group.items() if k not in rates} for group in optimizer.param_groups]


def schedule_of(scheduler, optimizer, steps: int) -> Schedule:
    """`steps`: of the run, as far as they are known. CannotExport where it cannot go with the run."""
    if scheduler is None:
        return Schedule(optimizer)
    if hasattr(scheduler, "get_last_lr") or isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler):
        return _OfPyTorch(scheduler, optimizer, steps)
    if callable(scheduler):
        return _ByFactors(scheduler, optimizer)
    try:
        factors = [float(factor) for factor in scheduler]
    except (TypeError, ValueError) as error:
        raise CannotExport(
            f"a scheduler is a function of the step, a list of numbers, or one of torch.optim.lr_scheduler, not "
            f"{scheduler!r:.100} ({error})"
        ) from error
    if not factors:
        raise CannotExport("the schedule is an empty list")
    return _ByFactors(lambda step: factors[min(step, len(factors) - 1)], optimizer)
