"""Intervals by inversion: the truths at which a draw as small, and as large, as the one made is not too unlikely."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DEVIATIONS = 8.0
MOST_NODES = 4001

_NODES, _MASSES = np.polynomial.hermite_e.hermegauss(41)
_MASSES = _MASSES / _MASSES.sum()


def inverted(covered: Callable[[float], float], level: float, ends: tuple[float, float]) -> tuple[float, float]:
    """The truths at which F(draw; truth) is (1 + level)/2 and (1 − level)/2; F decreases in the truth."""
    from scipy import optimize

    def truth_at(wanted: float) -> float:
        if covered(ends[0]) <= wanted:
            return ends[0]
        if covered(ends[1]) >= wanted:
            return ends[1]
        return float(optimize.brentq(lambda truth: covered(truth) - wanted, *ends, xtol=1e-12))

    return truth_at((1.0 + level) / 2.0), truth_at((1.0 - level) / 2.0)


def binomial(n: int, p: float) -> tuple[Array, Array]:
    """Counts and their probabilities, those of less than 1e-15 in all left out; of very many every few only."""
    from scipy import special

    spread = DEVIATIONS * math.sqrt(n * p * (1.0 - p)) + 20.0
    first, last = max(0, math.floor(n * p - spread)), min(n, math.ceil(n * p + spread))
    counts = np.arange(first, last + 1, max(1, (last - first) // MOST_NODES), dtype=np.float64)
    logs = (
        special.gammaln(n + 1.0) - special.gammaln(counts + 1.0) - special.gammaln(n - counts + 1.0)
        + special.xlogy(counts, p) + special.xlog1py(n - counts, -p)
    )  # fmt: skip
    masses = np.exp(logs)
    return counts, masses / masses.sum()


def normal_sums(n: int, mean: float, variance: float, largest: float) -> tuple[Array, Array]:
    """Sums of n records in [0, largest] with these moments, and their probabilities, by quadrature of a normal law."""
    return np.clip(n * mean + math.sqrt(n * variance) * _NODES, 0.0, n * largest), _MASSES
