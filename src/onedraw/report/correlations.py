"""Which columns go together: correlations that were released, or read off the second moments that a fit published on its way.

A release of moments has a correlation matrix with an interval for each entry. A fit's are free: its moments are Σ x̄x̄ᵀ about the published mean, a lower triangle row by row, the response last where it was measured, with
noise on every entry (mathematics-3 §1). A correlation is a quotient of them: clipped to [−1, 1], and not known where noise
has left a column no variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.mechanisms import Measured, Moments, PerturbedMode
from onedraw.models.fit.published import symmetric
from onedraw.models.moments.result import MomentsResult
from onedraw.models.sums.noise_law import matrix_deviation
from onedraw.release import Certificate
from onedraw.release.reading import moments_of

LEVEL = 0.95

MOST_COLUMNS = 24
"""More columns than this make a picture that nobody can read; the certificate has the moments."""


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


def words_of(found: Correlations | None) -> dict[str, Any] | None:
    """For the page: a row for each column but the first, with a picture and the numbers."""
    from . import pictures

    if found is None:
        return None
    strips = pictures.heat_strips(found.values)
    last = len(found.names) - 1
    return {
        "lines": [
            {"number": k + 1, "name": name, "picture": strips[k - 1] if k else None, "values": cells(found, k)}
            for k, name in enumerate(found.names)
        ],
        "level": f"{100 * LEVEL:g} %" if found.intervals else None,
        "axis": pictures.heat_axis(last),
        "last": last,
        "noise": None if math.isnan(found.noise) else f"{found.noise:.1g}",
        "strongest": strongest(found),
    }  # fmt: skip


def cells(found: Correlations, row: int) -> list[str]:
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
