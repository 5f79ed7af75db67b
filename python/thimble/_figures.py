"""Metrics of a step, an epoch or a test."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import _library as lib


@dataclass
class Figures:
    """Means over a step, an epoch or a test."""

    loss: float
    metrics: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    """Done so far."""
    records: int = 0
    """Of a test: how many."""
    rate: float = 0.0
    """Learning rate of the last step."""

    def __getitem__(self, metric: str) -> float:
        return self.loss if metric == "loss" else self.metrics[metric]


@dataclass
class Progress:
    """Progress of a run after a step."""

    step: int
    steps: int
    steps_per_epoch: int
    rate: float
    rows_per_second: float
    seconds_left: float
    train: Figures
    """Since the epoch began."""
    test: Figures | None
    """Of a test that has just been made."""


def figures_of(figures: lib.Figures) -> Figures:
    metrics = {}
    for m in range(figures.metric_count):
        metric = figures.metrics[m]
        metrics[metric.name.decode()] = metric.value
    return Figures(figures.loss, metrics, figures.steps, figures.records, figures.rate)


def progress_of(p: lib.Progress) -> Progress:
    return Progress(p.step, p.steps, p.steps_per_epoch, p.rate, p.rows_per_second, p.seconds_left,
                    figures_of(p.train), figures_of(p.test) if p.tested else None)
