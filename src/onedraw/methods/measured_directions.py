"""Which coordinates published moments will give, predicted from public numbers, and what a record adds in them.

A stage one shortens rows to R, so that it sees columns of variance λ as if
theirs were λ·min(1, R²/E‖row‖²), and stretches a direction by w = g/√(what it saw), at most g/√floor (`models.fit.published`). Rows are then
about √Σλw² long, and where that is beyond r they count less. A record adds H·λw² to the information and K·λw² to the variability, and noise
σ, ω and ridge Λ are the plan's. Responses that are numbers are read in units of the residual it sees, which its
noise may make much smaller or larger. A design is one of equally correlated columns (`designs` has those a plan speaks of): one common direction and the
rest, all alike. The wider columns spread, the less they go together and the weaker their effects, the better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.models.fit.losses import ClassLoss, FitLoss
from onedraw.models.fit.problem import LEAST_RESIDUAL, UNMEASURED_UNIT
from onedraw.models.sums.exact_sums import matrix_deviation

KEPT = 0.9
"""The average Mallows weight of rows that are typically as long as r."""

NODES, MASSES = (-math.sqrt(3.0), 0.0, math.sqrt(3.0)), (1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0)
"""A normal law by its first five moments."""

PRECISE = 0.05
"""Relative deviation of a residual variance below which it is taken for known."""


def per_record(loss: FitLoss | ClassLoss, effect: float, residual: float = 1.0) -> tuple[float, float, float]:
    """(H, K, likelihood's information) of a record whose predictor has standard deviation ``effect``, and its residual too."""
    if isinstance(loss, ClassLoss):
        return _per_record_of_classes(loss, effect)
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    weights = weights / weights.sum()
    if loss.unit == "labels":
        predictor = effect * nodes
        positive = special.expit(predictor)
        pulls = positive * loss.squares(predictor, 1.0) + (1.0 - positive) * loss.squares(predictor, -1.0)
        found = loss.information(predictor, 1.0), pulls, positive * (1.0 - positive)
        return float(weights @ found[0]), float(weights @ found[1]), float(weights @ found[2])
    if loss.unit == "counts":
        rate = np.exp(np.minimum(effect * nodes, 6.0))
        curved = float(weights @ loss.curvature(effect * nodes, 0.0))
        return curved, curved, float(weights @ rate)
    zero, off = np.zeros_like(nodes), residual * nodes
    return float(weights @ loss.curvature(zero, off)), float(weights @ loss.squares(zero, off)), residual**-2


def _per_record_of_classes(loss: ClassLoss, effect: float) -> tuple[float, float, float]:
    """The average over directions, for scores of standard deviation ``effect``: 2,000 of them, from a fixed seed."""
    contrasts = effect * np.random.default_rng(1).standard_normal((2000, loss.blocks))
    chances = special.softmax(contrasts @ loss.contrasts.T, axis=1)
    expected = loss.factors(contrasts, np.zeros(len(contrasts)), "information")
    pulls = [(loss.slopes(contrasts, np.full(len(contrasts), float(label))) ** 2).sum(axis=1) for label in range(loss.classes)]  # fmt: skip
    return (
        float((expected**2).sum(axis=(1, 2)).mean()) / loss.blocks,
        float((chances * np.transpose(pulls)).sum(axis=1).mean()) / loss.blocks,
        float((1.0 - (chances**2).sum(axis=1)).mean()) / loss.blocks,
    )


@dataclass(frozen=True, eq=False)
class Directions:
    """The common one, those across it, and the intercept's: variance, how many there are, and the w² they are stretched by."""

    variance: Array
    count: Array
    stretched: Array
    kept: float
    """The average weight of a row."""
    units: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    """(probability, unit of the response): one, or several where its measurement is noisy."""

    @classmethod
    def expected(
        cls, problem: Any, *, effect: float, noise: float, filled: float = 1.0, correlation: float = 0.0
    ) -> Directions:
        """For columns that fill this share of their ranges; ``effect`` and ``noise`` are in the response's own unit.

        ``problem`` is that of a fit or of a draw in measured coordinates."""
        layout, how, numbers, d = problem.layout, problem.measuring, problem.numbers, problem.layout.columns
        spread = filled**2 / (3.0 if layout.ball is None else d)
        variance = spread * np.array([1.0 + (d - 1) * correlation, 1.0 - correlation])
        count, raised, stretch, seen, size = np.array([1.0, d - 1.0]), np.ones(2), 1.0, 1.0, float(d)
        if numbers["moments_noise"]:
            response = (effect**2 + noise**2) / problem.response_scale**2 if how.response else 0.0
            seen = min(1.0, numbers["moment_radius"] ** 2 / (d * spread + response))
            raised = np.maximum(seen * variance, how.floor)
            size = float(count @ (seen * variance / raised))
            stretch = how.stretch(layout, size) if numbers["row_bound"] else 1.0
        units: tuple[tuple[float, float], ...] = ((1.0, problem.response_scale),)
        if how.response:
            units = _units(problem, seen, float(count @ (1.0 / raised)), effect, noise)
        variance, count = np.append(variance, 1.0), np.append(count, float(layout.intercept))
        stretched = stretch**2 / np.append(raised, 1.0)
        row = numbers["row_bound"]
        kept = KEPT * min(1.0, row**2 / float(count @ (variance * stretched))) if row else 1.0
        return cls(variance, count, stretched, kept, units)


def _units(problem: Any, seen: float, inverse: float, effect: float, noise: float) -> tuple[tuple[float, float], ...]:
    """What the residual deviation will be taken for: Var y less what the columns explain of it, each with its noise and cut as
    `models.fit.problem` cuts it. ``inverse`` is the trace of W²."""
    how, scale = problem.measuring, problem.response_scale
    if not problem.numbers["moments_noise"]:
        return ((1.0, UNMEASURED_UNIT * scale),)
    explained, left = seen * (effect / scale) ** 2, seen * (noise / scale) ** 2
    measured = matrix_deviation(problem.numbers["moments_noise"], problem.moment_columns.count, pure=problem.pure)
    entry = measured / problem.n
    spread = entry * math.sqrt(1.0 + 2.0 * explained * inverse / problem.layout.columns)
    middle = left - 0.5 * inverse * entry**2
    least = max(LEAST_RESIDUAL * max(explained + left, how.floor), how.floor**2)
    nodes = zip(MASSES, NODES, strict=True) if spread > PRECISE * left else ((1.0, 0.0),)
    return tuple((mass, scale * math.sqrt(max(middle + node * spread, least))) for mass, node in nodes)
