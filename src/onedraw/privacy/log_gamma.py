"""How far log Γ rises above its tangent, to the last digits.

Every divergence between conjugate posteriors is a sum of Bregman distances of the log-partition function (see
posterior_curves.py). For log Γ that distance is

    M(x, v) = log Γ(x+v) − log Γ(x) − v ψ(x)  =  Σ_{k≥0} φ(v/(x+k)),      φ(t) = t − log(1+t) ≥ 0,

from Γ's product formula. Three differences of log Γ near 1e9 lose half of all digits; this sum loses none,
since every term is positive. The first `SHIFT` terms are summed as they stand; the rest is Stirling's series
rearranged so that it, too, has positive terms: with X = x + SHIFT and Z = X + v,

    M(X, v) = Z φ(−v/Z) + ½ φ(v/X) + Σ_j c_j · [Bregman distance of x^(1−2j) from X to Z],

c_j = 1/12, −1/360, …. The remainder after an odd number of terms is minus a completely monotone function
(Alzer, Math. Comp. 66 (1997), Theorem 8), whose Bregman distances are positive: breaking off there rounds
upward. Breaking off costs less than 1e-15 of M, rounding less than 64 units in the last place;
`RELATIVE_ERROR` covers both four times over, and the tests compare with 80 digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHIFT = 16
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
"""The coefficients of x^-1, x^-3, …, x^-9; odd in number, see above."""
RELATIVE_ERROR = 2.0**-44


def excess(step: Array, start: Array, end: Array) -> Array:
    """φ(step/start) = step/start − log(end/start).

    ``end`` = start + step is passed, not computed: where it is a tiny difference, only the caller can know it.
    """
    ratio, half = step / start, step / (start + end)
    return np.where(np.abs(half) < 0.2, _near_excess(ratio, half), ratio - np.log(end / start))


def _near_excess(ratio: Array, half: Array) -> Array:
    """φ by log(1+t) = 2 artanh(s), s = t/(2+t): the two leading terms, which cancel, are left out."""
    square = half * half
    series = np.full_like(square, 1 / 25)
    for power in range(23, 1, -2):
        series *= square
        series += 1 / power
    return half * ratio - 2 * half * square * series


def log_gamma_excess(step: Array, start: Array, end: Array) -> Array:
    """M(start, step) ≥ 0, for end = start + step > 0, relative error below `RELATIVE_ERROR`.

    Arguments broadcast. ``end`` must be known to a few units in the last place (of itself, not of start).
    """
    step, start, end = np.broadcast_arrays(step, start, end)
    shift = np.arange(SHIFT, dtype=np.float64).reshape((SHIFT,) + (1,) * start.ndim)
    peeled = excess(step[np.newaxis], start + shift, end + shift).sum(axis=0)
    far_start, far_end = start + SHIFT, end + SHIFT
    leading = far_end * excess(-step, far_end, far_start) + 0.5 * excess(step, far_start, far_end)
    return np.asarray(peeled + leading + _stirling_excess(step, far_start, far_end), dtype=np.float64)


def _stirling_excess(step: Array, start: Array, end: Array) -> Array:
    """Bregman distance of Σ c_j x^(1−2j), by (1+t)^-q − 1 + qt = t² Σ_{i=1..q} (q−i+1) (1+t)^-i.

    With a = 1/start, b = 1/end the distance of x^-q is (step·a)² P_q, where P_q = a P_{q−1} + H_q and
    H_q = a H_{q−1} + b^q: again sums of positive terms.
    """
    a, b = 1 / start, 1 / end
    power, homogeneous, polynomial = b, b, b
    total = STIRLING[0] * polynomial
    for coefficient in STIRLING[1:]:
        for _ in range(2):
            power = power * b
            homogeneous = a * homogeneous + power
            polynomial = a * polynomial + homogeneous
        total += coefficient * polynomial
    return total * (step * a) ** 2
