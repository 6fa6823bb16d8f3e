"""Rényi divergences: of masses by summation, of densities by a quadrature of p^λ q^{1−λ} of its own."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from onedraw.audit.densities import Pair, sides_of
from onedraw.audit.quadrature import Normalised, integrate
from onedraw.errors import WrongCall

Array = NDArray[np.float64]


def divergence(first: Array, second: Array, order: float) -> float:
    """D_λ of two vectors of masses."""
    kept = first > 0.0
    if np.any(second[kept] <= 0.0):
        # masses too small to be told from nothing are left out: less is shown, never more
        if first[kept & (second <= 0.0)].sum() > 1e-12:
            return math.inf
        kept &= second > 0.0
    terms = order * np.log(first[kept]) + (1.0 - order) * np.log(second[kept])
    return float(special.logsumexp(terms)) / (order - 1.0)


def tilted_divergence(normalised: Normalised, order: float, sign: float) -> tuple[float, float, float]:
    """D_λ by a quadrature of its own: p^λ q^{1−λ} has its mass elsewhere than p and q."""
    pair = normalised.pair
    first, second = (pair.first, pair.second) if sign > 0.0 else (pair.second, pair.first)
    log_first, log_second = normalised.log_totals if sign > 0.0 else normalised.log_totals[::-1]

    def tilted(points: Array) -> Array:
        a, b = np.asarray(first(points), dtype=float), np.asarray(second(points), dtype=float)
        return np.where(a == -math.inf, -math.inf, order * a + (1.0 - order) * np.where(a == -math.inf, 0.0, b))

    try:
        own = Pair(tilted, tilted, sides_of([(side.lo, side.hi) for side in pair.sides])).located()
        tolerance = 1e-11 if normalised.dimension == 1 else 1e-7
        cells, integrator = integrate(own, tolerance=tolerance, variation=math.inf, evaluations=200_000)
    except WrongCall:  # +∞ where q vanishes and p does not
        return 0.0, math.inf, math.inf
    total, error = float(cells.first.sum()), float(cells.first_error.sum())
    constant = integrator.shift[0] - order * log_first - (1.0 - order) * log_second
    slack = order / (order - 1.0) * sum(normalised.errors) + 1e-13
    low = (math.log(max(total - error, 1e-300)) + constant) / (order - 1.0) - slack
    if error > 1e-4 * total:
        return low, math.inf, math.inf
    value = (math.log(total) + constant) / (order - 1.0)
    return low, value, (math.log(total + error) + constant) / (order - 1.0) + slack
