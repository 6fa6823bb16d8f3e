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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.mechanisms import Measured, Moments, PerturbedMode
from onedraw.models import Model, Table
from onedraw.models.fit.problem import symmetric
from onedraw.models.moments.result import MomentsResult
from onedraw.models.sums.noise_law import matrix_deviation
from onedraw.models.tables.table import Side
from onedraw.release import Certificate, Release
from onedraw.release.estimates import moments_of
from onedraw.release.intervals.evaluations import is_evaluation, scores_of

from . import pictures
from .formatting import brief, whole

MOST_CELLS = 240
"""More cells than this are a list."""

TONES = 5
"""Classes of the style sheet, from the faintest to the strongest colour."""

LEVEL = 0.95

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
    tones = tones_of(numbers, from_zero=model.form != "groups")
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
        "largest": largest(numbers, rows, columns, cells),
    }


def tones_of(numbers: Any, *, from_zero: bool) -> Any:
    low, high = (0.0 if from_zero else float(np.min(numbers))), float(np.max(numbers))
    if not high > low:
        return np.zeros(numbers.shape, dtype=np.int64)
    return np.clip(np.ceil(TONES * (numbers - low) / (high - low)), 0, TONES).astype(np.int64)


def largest(numbers: Any, rows: Sequence[str], columns: Sequence[str], cells: Any) -> str:
    """For whoever cannot see the colours."""
    i, j = divmod(int(np.argmax(numbers)), numbers.shape[1])
    return f"The largest is {cells[i, j]['value']}, of {rows[i]} and {columns[j]}."


# ── correlations ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Correlations:
    """Names in order; ``values`` row by row below the diagonal, NaN where not known; ``noise`` a typical one's deviation.
    ``intervals``, where there are any, are ends of each in the same order."""

    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    noise: float
    intervals: tuple[tuple[tuple[float, float], ...], ...] = ()


def correlations(certificate: Certificate, plan: Any) -> Correlations | None:
    """Of a release of moments, or of a fit or draw that measured them first; None where none did, or with too few columns or too many."""
    if isinstance(plan.mechanism, Moments):
        return released_correlations(moments_of(certificate, plan), plan.model.names)
    moments = (certificate.draw.stages or {}).get("moments")
    if moments is None or not isinstance(plan.mechanism, PerturbedMode | Measured):
        return None
    problem = plan.mechanism.problem(plan)
    response = [certificate.data.target or "response"] if problem.measuring.response else []
    names = (*plan.model.features.column_names[: problem.layout.columns], *response)
    if not 2 <= len(names) <= MOST_COLUMNS:
        return None
    entries = np.asarray(moments, dtype=np.float64)
    found, sizes = quotients(symmetric(entries, len(names)))
    noise = matrix_deviation(problem.numbers["moments_noise"], len(names), pure=problem.pure)
    below = np.tril_indices(len(names), -1)
    typical = (
        math.sqrt(0.5) * noise / float(np.nanmedian(sizes[below])) if np.isfinite(sizes[below]).any() else math.nan
    )
    return Correlations(names, tuple(tuple(map(float, row[:k])) for k, row in enumerate(found)), typical)


def released_correlations(moments: MomentsResult, names: tuple[str, ...]) -> Correlations | None:
    """With their intervals at LEVEL; not known where noise leaves too little of a column."""
    if not 2 <= len(names) <= MOST_COLUMNS:
        return None
    low, high = moments.correlation_interval(LEVEL)
    given = np.where(np.isfinite(low), moments.correlation, np.nan)
    errors = np.hypot(*moments.correlation_errors)[np.tril_indices(len(names), -1)]
    typical = float(np.nanmedian(errors)) if np.isfinite(errors).any() else math.nan
    return Correlations(
        names,
        tuple(tuple(map(float, row[:k])) for k, row in enumerate(given)),
        typical,
        tuple(tuple((float(low[k, j]), float(high[k, j])) for j in range(k)) for k in range(len(names))),
    )


def quotients(second: Any) -> tuple[Any, Any]:
    """(correlations in [−1, 1], √(V_jj·V_kk)); NaN for a column whose variance noise has made 0 or less."""
    diagonal = np.diag(second)
    deviation = np.sqrt(np.where(diagonal > 0.0, diagonal, np.nan))
    sizes = np.outer(deviation, deviation)
    return np.clip(second / sizes, -1.0, 1.0), sizes


def correlation_words(found: Correlations | None) -> dict[str, Any] | None:
    """For the page: a row for each column but the first, with a picture and the numbers."""
    if found is None:
        return None
    strips = pictures.heat_strips(found.values)
    last = len(found.names) - 1
    return {
        "lines": [
            {"number": k + 1, "name": name, "picture": strips[k - 1] if k else None, "values": correlation_cells(found, k)}
            for k, name in enumerate(found.names)
        ],
        "level": f"{100 * LEVEL:g} %" if found.intervals else None,
        "axis": pictures.heat_axis(last),
        "last": last,
        "noise": None if math.isnan(found.noise) else f"{found.noise:.1g}",
        "strongest": strongest(found),
    }  # fmt: skip


def correlation_cells(found: Correlations, row: int) -> list[str]:
    """A row of the table: a number, and its interval where there is one."""
    if not found.intervals:
        return [signed(value) for value in found.values[row]]
    return [
        signed(value) if math.isnan(value) else f"{signed(value)} ({signed(low)} to {signed(high)})"
        for value, (low, high) in zip(found.values[row], found.intervals[row], strict=True)
    ]


def strongest(found: Correlations) -> str:
    """For whoever cannot see the picture, and as its caption."""
    pairs = [
        (abs(value), value, found.names[j], found.names[k])
        for k, row in enumerate(found.values)
        for j, value in enumerate(row)
        if not math.isnan(value)
    ]
    if not pairs:
        return "No correlation can be told from the noise."
    _, value, one, other = max(pairs)
    return f"The strongest is {signed(value)}, of {one} and {other}."


def signed(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:+.2f}".replace("-", "−")


# ── evaluations ───────────────────────────────────────────────────────────────────────────────────────────────


def evaluation_words(release: Release) -> dict[str, Any] | None:
    """What the page shows of an evaluation; None for any other release."""
    if not is_evaluation(release.plan.model):
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
