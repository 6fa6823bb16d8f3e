"""Numbers that run in two directions: cross tables, correlations, and how a fitted model does on held-out records.

**Cross tables** are heat maps, the number in each cell with its interval beside it. Their sides are the groups and the levels
counted in them, or, where one number is given for each group, the two columns that make the groups; the longer one runs down
the page, so that a table of two by six is readable on a phone. Counts of all levels have totals: sums of the cells that are
shown, which together are the public n.

**Correlations** were released, each with an interval, or are read off the second moments that a fit published on its way:
Σ x̄x̄ᵀ about the published mean, a lower triangle row by row, the response last where it was measured, with noise on every
entry (methods/moments/proof.md). A correlation is a quotient of them: clipped to [−1, 1], and not known if a column's variance does not
exceed its noise. Each has a noise of its own, and only those that exceed it are painted and named.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.defaults import LEVEL
from onedraw.methods.base import SecondMoments
from onedraw.models import Model, Table
from onedraw.models.moments.result import matrix_quantile, normal_quantile
from onedraw.models.tables.scores import ClassifierScores, RegressorScores
from onedraw.models.tables.table import Side
from onedraw.plain_text import brief, whole
from onedraw.plans import Plan
from onedraw.release import Certificate, Release
from onedraw.release.estimates import moments_of
from onedraw.release.evaluations import scores_of

from . import pictures

MOST_CELLS = 240
"""More cells than this are a list."""

TONES = 5
"""Classes of the style sheet, from the faintest to the strongest colour."""

MOST_COLUMNS = 24
"""More columns than this make a picture that nobody can read; the certificate has the moments."""


# ── cross tables ──────────────────────────────────────────────────────────────────────────────────────────────


def sides_of(model: Model, target: str | None) -> tuple[Side, Side] | None:
    """What runs down and what runs across, each with its name; None where the numbers make no cross table."""
    sides = model.sides(target) if isinstance(model, Table) else None
    if sides is None:
        return None
    rows, columns = (len(levels) for _, levels in sides)
    return sides if min(rows, columns) >= 2 and rows * columns <= MOST_CELLS else None


def cross_of(model: Table, target: str | None, values: Sequence[float], words: Sequence[dict[str, Any]]) -> Any:
    """For the page; ``values`` and ``words`` are those of the cells, the last side fastest."""
    sides = sides_of(model, target)
    if sides is None:
        return None
    (down, rows), (across, columns) = sides
    shape = len(rows), len(columns)
    numbers = np.array(values[: shape[0] * shape[1]], dtype=np.float64).reshape(shape)
    cells = np.array(words[: numbers.size], dtype=object).reshape(shape)
    if len(columns) > len(rows):
        down, rows, across, columns, numbers, cells = across, columns, down, rows, numbers.T, cells.T
    low, high = float(np.min(numbers)) if model.form == "groups" else 0.0, float(np.max(numbers))
    shares = np.nan_to_num((numbers - low) / (high - low if high > low else math.inf))
    tones = np.clip(np.ceil(TONES * shares), 0, TONES)
    i, j = divmod(int(np.argmax(numbers)), numbers.shape[1])
    total = model.about_records and bool(model.each_level)
    return {
        "down": down,
        "across": across,
        "columns": columns,
        "rows": [
            {
                "name": name,
                "cells": [{**cells[i, j], "tone": int(tones[i, j])} for j in range(len(columns))],
                "total": whole(float(numbers[i].sum())) if total else None,
            }
            for i, name in enumerate(rows)
        ],
        "totals": [whole(float(sum_)) for sum_ in numbers.sum(axis=0)] if total else None,
        "all": whole(float(numbers.sum())) if total else None,
        "largest": f"The largest is {cells[i, j]['value']}, of {rows[i]} and {columns[j]}.",  # for whoever sees no colours
    }


# ── correlations ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Correlations:
    """Names in order; ``values`` row by row below the diagonal, NaN where not known; ``noise`` a typical one's deviation.

    In the same order, where there are any: ``intervals`` the ends of each, ``errors`` the noise of each, and ``doubtful``
    whether noise may be all of it, allowing for all pairs together (Bonferroni, 5 %).
    """

    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    noise: float
    intervals: tuple[tuple[tuple[float, float], ...], ...] = ()
    errors: tuple[tuple[float, ...], ...] = ()
    doubtful: tuple[tuple[float, ...], ...] = ()

    def is_clear(self, row: int, column: int) -> bool:
        """Return whether a correlation is known and exceeds its noise."""
        return not (math.isnan(self.values[row][column]) or (self.doubtful and self.doubtful[row][column]))


def correlations(certificate: Certificate, plan: Plan) -> Correlations | None:
    """Of a release of moments, or of a fit or draw that measured them first; None where none did, or with too few columns or too many."""
    stages = certificate.draw.stages or {}
    seconds: SecondMoments | None = plan.mechanism.second_moments(plan, stages)
    if plan.mechanism.publishes_moments:
        names = plan.model.names
    elif seconds is not None:
        response = [certificate.data.target or "response"] if seconds.response else []
        names = (*plan.model.features.column_names[: seconds.columns], *response)
    else:
        return None
    if not 2 <= len(names) <= MOST_COLUMNS:
        return None
    if seconds is None:
        result = moments_of(certificate, plan)
        low, high = result.correlation_interval(LEVEL)
        given = np.where(np.isfinite(low), result.correlation, np.nan)  # NaN where noise leaves too little of a column
        intervals = tuple(tuple(zip(*ends, strict=True)) for ends in zip(below(low), below(high), strict=True))
        errors, p_values = np.hypot(*result.correlation_errors), np.zeros(low.shape)
        p_values[np.tril_indices(len(names), -1)] = result.p_values[2 * len(names) :]
        doubtful = below(~(p_values * pair_count(names) < 1.0 - LEVEL))
        return Correlations(names, below(given), median(errors), intervals, doubtful=doubtful)
    return noisy_correlations(names, seconds.second, seconds.noise, plan.n, pure=seconds.pure)


def noisy_correlations(names: tuple[str, ...], second: Any, noise: float, n: int, *, pure: bool) -> Correlations:
    """Return the correlations in noisy second moments; ``noise`` is the deviation of an entry on the diagonal.

    A column has none if its variance does not exceed its noise, allowing for all columns. The noise of the others is
    that of the product, and of both variances.
    """

    def bound(count: int) -> float:
        level = 1.0 - (1.0 - LEVEL) / count
        return matrix_quantile(len(names), level) if pure else normal_quantile(level)

    diagonal = np.diag(second)
    variance = np.where(diagonal > bound(len(names)) * noise, diagonal, np.nan)
    sizes, relative = np.sqrt(np.outer(variance, variance)), (noise / variance) ** 2
    found = np.clip(second / sizes, -1.0, 1.0)
    errors = np.sqrt(0.5 * (noise / sizes) ** 2 + found**2 / 4.0 * np.add.outer(relative, relative))
    doubtful = ~(np.abs(found) > bound(pair_count(names)) * np.sqrt(errors**2 + 1.0 / n))
    return Correlations(names, below(found), median(errors), errors=below(errors), doubtful=below(doubtful))


def pair_count(names: Sequence[str]) -> int:
    return len(names) * (len(names) - 1) // 2


def below(matrix: Any) -> tuple[tuple[float, ...], ...]:
    """Row by row, what is below the diagonal."""
    return tuple(tuple(map(float, row[:k])) for k, row in enumerate(matrix))


def median(matrix: Any) -> float:
    """Of what is known below the diagonal."""
    known = [value for row in below(matrix) for value in row if not math.isnan(value)]
    return statistics.median(known) if known else math.nan


def correlation_words(found: Correlations | None) -> dict[str, Any] | None:
    """For the page: a row for each column but the first, with a picture and the numbers."""
    if found is None:
        return None
    pairs = [
        (value, found.names[j], name)
        for k, (row, name) in enumerate(zip(found.values, found.names, strict=True))
        for j, value in enumerate(row)
        if found.is_clear(k, j)
    ]
    strongest = "No correlation can be told from the noise."  # for whoever cannot see the picture, and as its caption
    if pairs:
        value, one, other = max(pairs, key=lambda pair: (abs(pair[0]), *pair))
        strongest = f"The strongest is {signed(value)}, of {one} and {other}."
    # a fit's correlations have no intervals: the picture leaves out those that noise may be all of
    painted = [
        [value if found.intervals or found.is_clear(k, j) else math.nan for j, value in enumerate(row)]
        for k, row in enumerate(found.values)
    ]
    plot, ends, last = pictures.heat_map(painted), found.intervals, len(found.names) - 1

    def words(k: int, j: int) -> str:
        value = found.values[k][j]
        if math.isnan(value):
            return signed(value)
        beside = f" ({signed(ends[k][j][0])} to {signed(ends[k][j][1])})" if ends else ""
        return signed(value) + beside + (f" ± {found.errors[k][j]:.2f}" if found.errors else "")

    return {
        "lines": [
            {"number": k + 1, "name": name, "picture": plot.pictures[k - 1] if k else None,
             "values": [words(k, j) for j in range(len(found.values[k]))]}
            for k, name in enumerate(found.names)
        ],
        "level": f"{100 * LEVEL:g} %" if found.intervals else None,
        "axis": plot.axis,
        "last": last,
        "noise": None if math.isnan(found.noise) else f"{found.noise:.1g}",
        "strongest": strongest,
    }  # fmt: skip


def signed(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:+.2f}".replace("-", "−")


# ── evaluations ───────────────────────────────────────────────────────────────────────────────────────────────


def evaluation_words(release: Release) -> dict[str, Any] | None:
    """What the page shows of an evaluation; None for any other release."""
    if not isinstance(release.plan.model, ClassifierScores | RegressorScores):
        return None
    found = scores_of(release.certificate, release.plan)
    return {
        "level": f"{100 * found.level:g} %",
        "figures": [
            (name, brief(one.value), f"{brief(one.low)} to {brief(one.high)}", brief(one.error))
            for name, one in found.figures.items()
        ],
        "classes": found.classes,
        "confusion": None if found.confusion is None else [
            (label, [f"{count:,.0f}" for count in row]) for label, row in zip(found.classes, found.confusion, strict=True)
        ],
        "within": "" if found.confusion is None else f"{found.confusion_error:,.0f}",
        "roc": None if found.roc is None else pictures.banded(
            found.roc, "roc", "ROC curve: true positives against false positives", across="false positives", up="true positives"
        ),
        "calibration": None if found.calibration is None else pictures.banded(
            found.calibration, "calibration", "Calibration: share of the second class against the predicted probability",
            across="predicted", up="observed", dots=True,
        ),
    }  # fmt: skip
