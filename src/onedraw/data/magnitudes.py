"""The magnitude of a number: between which powers of two it lies, on one public grid for all columns.

The grid is 0 and ±2^k for k from -10 to 40. Every cell has one of `LEVELS` levels, which are fixed before any record is read:

| level | a cell that is |
| --- | --- |
| 0 … 50 | negative: from the largest magnitude to the smallest; -2^k ≤ x < -2^(k-1) |
| 51 | 0 |
| 52 … 102 | positive: 2^(k-1) < x ≤ 2^k, from the smallest k to the largest |
| 103 | missing: no finite number |

A magnitude below 2^-10 counts as 2^-10, one above 2^40 as 2^40. The exponent comes from the bits of the number (`frexp`), so there is
no rounding: 1024 is at most 2^10, and the next larger number is not.

Histograms of magnitudes need no bounds. That is how private bounds of a column are found (`onedraw.release.private_bounds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.data.cells import number_of
from onedraw.data.columns import Encoded, Encoder, Numbers, Wanted

SMALLEST, LARGEST = -10, 40
"""Exponents of the grid."""

POWERS = LARGEST - SMALLEST + 1
PLACES = 2 * POWERS + 1
"""Levels that are numbers; the one of missing cells follows."""

MISSING = PLACES
LEVELS = PLACES + 1


def magnitudes_of(values: Array) -> Integers:
    """Return the level of each number; NaN and infinities are missing."""
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0)
    fraction, exponent = np.frexp(np.abs(known))
    power = np.clip(np.where(fraction == 0.5, exponent - 1, exponent), SMALLEST, LARGEST).astype(np.int64)
    signed = np.where(known > 0.0, POWERS + 1 + power - SMALLEST, LARGEST - power)
    return np.where(finite, np.where(known == 0.0, POWERS, signed), MISSING)


def ends_of(level: int) -> tuple[float, float]:
    """Return the grid's numbers around a level: the nearest bounds that contain all its cells on the grid."""
    if level == POWERS:
        return 0.0, 0.0
    power = LARGEST - level if level < POWERS else level - POWERS - 1 + SMALLEST
    near, far = 0.0 if power == SMALLEST else 2.0 ** (power - 1), 2.0**power
    return (-far, -near) if level < POWERS else (near, far)


def _label(level: int) -> str:
    low, high = (f"{end:.12g}" for end in ends_of(level))
    return "0" if level == POWERS else f"{low} to below {high}" if level < POWERS else f"above {low} to {high}"


LABELS = (*map(_label, range(PLACES)), "missing")


@final
class MagnitudeEncoder(Encoder):
    """Encodes cells as the level of their magnitude."""

    wanted = Wanted.NUMBERS
    missing = MISSING

    def _encode_numbers(self, chunk: Numbers) -> Encoded:
        return magnitudes_of(chunk.floats())

    def _encode_cells(self, values: Sequence[Any]) -> Encoded:
        return magnitudes_of(np.fromiter(map(number_of, values), np.float64, len(values)))
