"""Many trainings by DP-SGD on simulated data sets side by side, and the twin without privacy. For studies, never private."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.baselines.dp_sgd import DPSGD, TrainingTarget, trainings_at_once
from onedraw.baselines.sgd_steps import Numbers, Steps, by_jax, drawn_steps, objective_of
from onedraw.errors import InvalidModel, WrongCall
from onedraw.plans import Plan


def without_privacy(mechanism: DPSGD) -> Numbers:
    """The same step without clip and noise: that of the twin."""
    return Numbers(math.inf, 0.0, mechanism.learning_rate / mechanism.batch_size)


def train_many(plan: Plan, X: Any, y: Any, seeds: Sequence[int], *, private: bool = True) -> Array:
    """m simulated data sets, X (m, n, columns) and y (m, n), each trained with its own seed side by side: θ (m, d).

    For studies: seeded, nothing is charged or certified. The very steps of a release, on JAX; with ``private=False`` those of
    the twin without clip and noise, on the same batches.
    """
    mechanism = plan.mechanism
    if not isinstance(mechanism, DPSGD):
        raise WrongCall(f"train_many repeats the trainings of a DPSGD; a {type(mechanism).__name__} was given.")
    if not len(seeds) == len(X) == len(y):
        raise WrongCall(
            f"train_many needs a seed for each data set: {len(seeds)} seeds, {len(X)} X and {len(y)} y were given."
        )
    at_once, found = trainings_at_once(plan), []
    for first in range(0, len(seeds), at_once):
        chosen = range(first, min(first + at_once, len(seeds)))
        targets = [plan.target(plan.model.summarise((X[index], y[index]))) for index in chosen]
        drawn = [one.drawn(np.random.default_rng(seeds[index]), 1) for one, index in zip(targets, chosen, strict=True)]
        numbers = mechanism.numbers(plan) if private else without_privacy(mechanism)
        found.append(_side_by_side(targets, drawn, numbers, mechanism.start))
    return np.concatenate(found)


def _side_by_side(targets: Sequence[TrainingTarget], drawn: Sequence[Steps], numbers: Numbers, start: int) -> Array:
    steps = tuple(np.stack([getattr(one, name) for one in drawn]) for name in ("rows", "present", "noise"))
    objective = targets[0].objective
    X, y = (np.stack([getattr(one.encoded, name) for one in targets]) for name in ("X", "y"))
    return by_jax(objective, X, y, objective.start(start), (steps[0], steps[1], steps[2]), numbers)


@dataclass(frozen=True)
class NotPrivate:
    """What a twin without privacy estimates: for comparison, never to be published."""

    coefficients: Array
    how: str

    def __str__(self) -> str:
        return f"NOT PRIVATE, ε = ∞: {self.how}. For comparison on data that may be shown; there is no certificate."


def sgd(mechanism: DPSGD, model: Any, data: Any, *, seed: int) -> NotPrivate:
    """The same training without clip and noise: the same batches, steps and learning rate, and no promise at all."""
    encoded, objective = model.summarise(data), objective_of(model)
    if mechanism.batch_size > encoded.n:
        raise InvalidModel(f"A batch of {mechanism.batch_size:,} cannot be drawn from n = {encoded.n:,} records.")
    drawn = drawn_steps(
        np.random.default_rng(seed), n=encoded.n, batch_size=mechanism.batch_size, steps=mechanism.steps(encoded.n),
        size=objective.size,
    )  # fmt: skip
    start = objective.start(mechanism.start)
    theta = by_jax(objective, encoded.X, encoded.y, start, drawn.split(1), without_privacy(mechanism))[0]
    return NotPrivate(theta, f"SGD, {mechanism.steps(encoded.n):,} steps without clip and noise")
