"""Evaluations, written down again: noise on counts of class by score, or on sums of responses and squared errors.

The worst record of a table leaves one cell for another. Of a regressor's sums it is the one that moves the response from an end of
its range to where 2|Δv| + 3|Δv²| is largest (Laplace), or to the other end (Gaussian), and its error from none to the largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.mechanisms import AddedNoise, Plan, calibrate
from onedraw.models.tables.scores import ClassifierScores, Judged, RegressorScores
from onedraw.privacy import Promise

from .case import Array, Case, Pair
from .noise import ATTAINED, RANGE, NoiseCase


@dataclass(frozen=True)
class ScoreCase(NoiseCase):
    """Records are rows: what was, and what the model said."""

    def moved(self, pair: Pair) -> Array:
        first, second = (self._added(*np.asarray(data.read())[-1]) for data in (pair.first, pair.second))
        return np.asarray(first - second, dtype=np.float64)

    def _added(self, true: float, said: float) -> Array:
        """What one record adds to the weighted sums."""
        table = self.plan.model
        if isinstance(table, RegressorScores):
            v = 2.0 * (true - table.lower) / (table.upper - table.lower) - 1.0
            error = min(abs(true - said) / float(table.largest_error or 1.0), 1.0)
            weights = (2.0, 3.0, 5.0) if self.plan.mechanism.law == "laplace" else (2.0, 3.0, 4.0)  # type: ignore[attr-defined]
            return np.array([weight * RANGE * part for weight, part in zip(weights, (v, v * v, error**2), strict=True)])
        column = sum(said >= edge for edge in table.edges) if table.edges else int(said)
        cells = np.zeros((len(table.classes), len(table.edges) + 1 if table.edges else len(table.classes)))
        cells[int(true), column] = 1.0
        return cells.reshape(-1)


def score_case(plan: Plan, *, label: str = "") -> ScoreCase:
    """The case of any plan of an evaluation."""
    table = plan.model
    if isinstance(table, ClassifierScores):
        rows, label = ((0.0, 0.0), (1.0, 0.999 if table.edges else 1.0)), label or "counts"
    else:
        middle = table.lower + (table.upper - table.lower) * (1.0 / 3.0 if plan.mechanism.law == "laplace" else 0.0)  # type: ignore[attr-defined]
        rows, label = ((table.upper, table.upper), (middle, _far(table, middle))), label or "errors"
    sure = isinstance(table, ClassifierScores) or abs(rows[1][1] - rows[1][0]) >= float(table.largest_error or 0.0)
    reason = ATTAINED if sure else "no record has the largest error and the response that moves its sums most"
    first, second = (Judged(plan.n, _reader(plan.n, rows[0], last)) for last in rows)
    return ScoreCase(plan, (Pair("one record from one cell, or end, to another", first, second),), reason, sure, label)


def _far(table: RegressorScores, true: float) -> float:
    """A prediction that is off by as much as there is room for, towards the farther end."""
    return table.upper if table.upper - true >= true - table.lower else table.lower


def _reader(n: int, others: Any, last: Any) -> Any:
    rows = np.array([others] * (n - 1) + [last], dtype=np.float64)
    return lambda: rows


def score_cases(budget: Promise) -> list[Case]:
    tables = {"counts": ClassifierScores(("no", "yes"), (0.3, 0.5, 0.7)), "errors": RegressorScores(0.0, 1.0, 0.5)}
    return [
        score_case(calibrate(AddedNoise("laplace"), table, budget, n=10), label=label)
        for label, table in tables.items()
    ]
