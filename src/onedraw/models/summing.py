"""Exact sums of clamped records.

A floating-point sum depends on the order of its terms, and its rounding can move by more than one record may
(Casacuberta et al., "Widespread underestimation of sensitivity", CCS 2022). Here every record is first
clamped and rounded to a public lattice, so that it is an integer, and integers are added: the sum of
neighbours differs by exactly what one record may move, and permuting the records changes nothing.

Speed comes from staying in float64: a batch of up to 2^20 integers of at most 2^32 adds up exactly there, in
any order, because every partial sum is an integer below 2^53.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .reading import BATCH_ROWS, Batch

STEPS = 1 << 32
"""Lattice steps across a continuous range."""

RADIUS_STEPS = 1 << 31
"""Lattice steps from the centre of a ball to its surface."""


def sum_on_lattice(values: Iterable[Batch], lower: float, upper: float, *, missing: float) -> tuple[int, int]:
    """n and Σ k_i, k_i ∈ {0, …, STEPS} the record's place in [lower, upper]; NaN counts as ``missing``."""
    rows, total = 0, 0
    scale = STEPS / (upper - lower)
    substitute = float(np.clip(np.rint((missing - lower) * scale), 0, STEPS))
    buffer = np.empty(BATCH_ROWS)
    for batch in values:
        rows += len(batch)
        if batch.dtype.kind in "bui" and (lower, upper) == (0.0, 1.0):
            total += int(np.count_nonzero(batch > 0)) * STEPS
            continue
        work = buffer[: len(batch)]
        with np.errstate(all="ignore"):  # infinities are clamped below
            np.subtract(batch, lower, out=work, dtype=np.float64)
            np.multiply(work, scale, out=work)
            np.rint(work, out=work)
            np.clip(work, 0.0, STEPS, out=work)
        total += _exact_sum(work, substitute)
    return rows, total


def sum_of_counts(values: Iterable[Batch], cap: int, *, missing: int) -> tuple[int, int]:
    """n and the sum of the records rounded to whole numbers in [0, cap]; NaN counts as ``missing``."""
    rows, total = 0, 0
    for batch in values:
        rows += len(batch)
        if batch.dtype.kind in "ui":
            total += int(np.clip(batch, 0, min(cap, np.iinfo(batch.dtype).max)).sum(dtype=np.int64))
        else:
            total += _exact_sum(np.clip(np.rint(batch.astype(np.float64)), 0.0, cap), float(missing))
    return rows, total


def tally(values: Iterable[Batch], categories: int, *, missing: int) -> tuple[int, NDArray[np.int64]]:
    """n and how many records have each code 0, …, categories − 1; all else counts as code ``missing``."""
    rows, counts = 0, np.zeros(categories, dtype=np.int64)
    for batch in values:
        rows += len(batch)
        if batch.dtype.kind == "f":
            known = (batch >= 0) & (batch < categories) & (batch == np.floor(batch))
            codes = np.where(known, batch, missing).astype(np.int64)
        else:
            codes = batch.astype(np.int64, copy=False)
            if codes.min() < 0 or codes.max() >= categories:
                codes = np.where((codes >= 0) & (codes < categories), codes, missing)
        counts += np.bincount(codes, minlength=categories)
    return rows, counts


def sum_in_ball(
    values: Iterable[Batch], centre: NDArray[np.float64], radius: float, *, missing: NDArray[np.float64]
) -> tuple[int, NDArray[np.int64]]:
    """n and Σ k_i, where k_i is an integer vector of norm at most RADIUS_STEPS: (x_i −
    centre)·RADIUS_STEPS/radius.

    A record outside the ball is scaled onto it; coordinates are cut off towards zero, so no vector leaves it
    again. The margin is larger than the rounding of the norm, and 2^-40 of the radius in any dimension met in
    practice.
    """
    rows, total = 0, np.zeros(len(centre), dtype=np.int64)
    margin = 1.0 - max(2.0**-40, (len(centre) + 8) * 2.0**-52)
    for batch in values:
        rows += len(batch)
        points = np.where(np.isnan(batch), missing, batch)
        with np.errstate(all="ignore"):  # infinities are brought to a finite size next
            points = np.clip((points - centre) / radius, -(2.0**400), 2.0**400)
        norms = np.sqrt(np.einsum("ij,ij->i", points, points))
        points *= (margin / np.maximum(norms, margin))[:, np.newaxis]
        total += np.trunc(points * RADIUS_STEPS).astype(np.int64).sum(axis=0)
    return rows, total


def _exact_sum(integers: NDArray[np.float64], substitute: float) -> int:
    """The sum of a batch of integers held as floats; NaN counts as ``substitute``."""
    total = float(integers.sum())
    if math.isnan(total):
        total = float(np.where(np.isnan(integers), substitute, integers).sum())
    return int(total)
