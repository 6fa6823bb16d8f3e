"""Numbers that run in two directions: cross tables, correlations, and how a fitted model does on held-out records.

**Cross tables** are heat maps, the number in each cell with its interval beside it. Their sides are the groups and the levels
counted in them, or, where one number is given for each group, the two columns that make the groups; the longer one runs down
the page, so that a table of two by six is readable on a phone. Counts of all levels have totals: sums of the cells that are
shown, which together are the public n.

**Correlations** were released, each with an interval, or are read off the second moments that a fit published on its way:
Σ x̄x̄ᵀ about the published mean, a lower triangle row by row, the response last where it was measured, with noise on every
entry (mathematics-3 §1). A correlation is a quotient of them: clipped to [−1, 1], and not known where noise has left a column
no variance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.defaults import LEVEL
from onedraw.mechanisms import Measured, Moments, PerturbedMode
from onedraw.models import Model, Table
from onedraw.models.sums.exact_sums import matrix_deviation, symmetric
from onedraw.models.tables.scores import ClassifierScores, RegressorScores
from onedraw.models.tables.table import Side
from onedraw.plain_text import brief, whole
from onedraw.plans import Plan
from onedraw.release import Certificate, Release
from onedraw.release.estimates import moments_of
from onedraw.release.intervals.evaluations import scores_of

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
    total = model.show == "counts" and bool(model.each_level)
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
    ``intervals``, where there are any, are ends of each in the same order."""

    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    noise: float
    intervals: tuple[tuple[tuple[float, float], ...], ...] = ()


def correlations(certificate: Certificate, plan: Plan) -> Correlations | None:
    """Of a release of moments, or of a fit or draw that measured them first; None where none did, or with too few columns or too many."""
    moments = (certificate.draw.stages or {}).get("moments")
    if isinstance(plan.mechanism, Moments):
        names = plan.model.names
    elif moments is not None and isinstance(plan.mechanism, PerturbedMode | Measured):
        problem = plan.mechanism.problem(plan)
        response = [certificate.data.target or "response"] if problem.measuring.response else []
        names = (*plan.model.features.column_names[: problem.layout.columns], *response)
    else:
        return None
    if not 2 <= len(names) <= MOST_COLUMNS:
        return None
    if isinstance(plan.mechanism, Moments):
        result = moments_of(certificate, plan)
        low, high = result.correlation_interval(LEVEL)
        given = np.where(np.isfinite(low), result.correlation, np.nan)  # NaN where noise leaves too little of a column
        intervals = tuple(tuple(zip(*ends, strict=True)) for ends in zip(below(low), below(high), strict=True))
        return Correlations(names, below(given), median(np.hypot(*result.correlation_errors)), intervals)
    second = symmetric(np.asarray(moments, dtype=np.float64), len(names))
    diagonal = np.diag(second)
    deviation = np.sqrt(np.where(diagonal > 0.0, diagonal, np.nan))  # NaN where noise has made a variance 0 or less
    sizes = np.outer(deviation, deviation)
    found = np.clip(second / sizes, -1.0, 1.0)
    noise = matrix_deviation(problem.numbers["moments_noise"], len(names), pure=problem.pure)
    return Correlations(names, below(found), math.sqrt(0.5) * noise / median(sizes))


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
        for row, name in zip(found.values, found.names, strict=True)
        for j, value in enumerate(row)
        if not math.isnan(value)
    ]
    strongest = "No correlation can be told from the noise."  # for whoever cannot see the picture, and as its caption
    if pairs:
        value, one, other = max(pairs, key=lambda pair: (abs(pair[0]), *pair))
        strongest = f"The strongest is {signed(value)}, of {one} and {other}."
    plot, ends, last = pictures.heat_map(found.values), found.intervals, len(found.names) - 1
    return {
        "lines": [
            {"number": k + 1, "name": name, "picture": plot.pictures[k - 1] if k else None, "values": [
                signed(value) + (f" ({signed(ends[k][j][0])} to {signed(ends[k][j][1])})" if ends and value == value else "")
                for j, value in enumerate(found.values[k])
            ]}
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
