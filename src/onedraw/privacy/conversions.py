"""The conversions of the table of promises (promises.md): one small function each, rounded outward.

Plain numbers in, plain numbers out; the promises themselves are in ``promises``. Sources: Bun and Steinke
(arXiv:1605.02065) for ZCDP, Canonne, Kamath and Steinke (arXiv:2004.00010, Proposition 12) for Rényi to
(ε, δ), Dong, Roth and Su (arXiv:1905.02383) for GaussianDP, Dong, Durfee and Rogers (arXiv:1909.13830) and
Cesar and Rogers (arXiv:2004.07223) for BoundedRange.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from onedraw.arrays import Array

from .numbers import SLACK, TINY, down, fraction_up, largest, narrowed, root_up, up

# ── PureDP and BoundedRange ────────────────────────────────────────────────────────────────────────────────


def pure_to_zcdp(epsilon: float) -> float:
    """PureDP(ε) ⇒ ZCDP(ε²/2) (arXiv:1605.02065); also ZCDP(ε), since D_α ≤ ε ≤ εα."""
    return min(square_up(epsilon, 2), epsilon)


def bounded_range_to_zcdp(epsilon: float) -> float:
    """BoundedRange(ε) ⇒ ZCDP(ε²/8) (arXiv:2004.07223); also ZCDP(ε), since D_α ≤ ε."""
    return min(square_up(epsilon, 8), epsilon)


def pure_to_gaussian(epsilon: float) -> float:
    """PureDP(ε) ⇒ GaussianDP(2Φ⁻¹(e^ε/(1+e^ε))).

    The trade-off curve of randomised response is two chords, which meet where both errors are 1/(1+e^ε); the
    convex Gaussian curve through that point and through (0, 1), (1, 0) lies below them.
    """
    if epsilon == math.inf:
        return math.inf
    if epsilon < 1.0:
        # Φ(μ/2) = (1 + tanh(ε/2))/2, written so that a small ε keeps its digits.
        return up(2.0 * math.sqrt(2.0) * float(special.erfinv(math.tanh(epsilon / 2.0))))
    return up(-2.0 * float(special.ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon)))))


def pure_delta(epsilon_of_promise: float, epsilon: float) -> float:
    """δ(ε) of randomised response at ``epsilon_of_promise``, the worst case of PureDP; 0 from there on."""
    if epsilon >= epsilon_of_promise:
        return 0.0
    if epsilon_of_promise == math.inf:
        return 1.0
    return min(1.0, up(-math.expm1(epsilon - epsilon_of_promise) / (1.0 + math.exp(-epsilon_of_promise))))


def pure_epsilon(epsilon_of_promise: float, delta: float) -> float:
    """The inverse of ``pure_delta``: the ε of randomised response at a given δ, rounded up."""
    if delta == 0.0 or epsilon_of_promise == math.inf:
        return epsilon_of_promise
    spent = down(delta * (1.0 + math.exp(-epsilon_of_promise)))
    if spent >= -math.expm1(-epsilon_of_promise) * (1.0 + SLACK):
        return 0.0
    exact = epsilon_of_promise + math.log1p(-min(spent, 1.0 - 2.0**-53))
    return min(epsilon_of_promise, max(0.0, up(exact, absolute=SLACK * epsilon_of_promise)))


def bounded_range_delta(epsilon_of_promise: float, epsilon: float) -> float:
    """δ(ε) of BoundedRange: the envelope over t of generalised randomised response (log-ratio t or t − ε).

    At a given t the profile is (E − y)(1 − z/y)/(E − 1) with E = e^{range}, y = e^t and z = e^ε, largest at
    y = √(zE).
    """
    if epsilon >= epsilon_of_promise:
        return 0.0
    half = math.expm1((epsilon - epsilon_of_promise) / 2.0)
    return min(1.0, up(half * half / -math.expm1(-epsilon_of_promise)))


def bounded_range_epsilon(epsilon_of_promise: float, delta: float) -> float:
    """The inverse of ``bounded_range_delta``, rounded up."""
    if delta == 0.0:
        return epsilon_of_promise
    root = math.sqrt(down(-delta * math.expm1(-epsilon_of_promise)))
    exact = epsilon_of_promise + 2.0 * math.log1p(-min(root, 1.0 - 2.0**-53))
    return min(epsilon_of_promise, max(0.0, up(exact, absolute=SLACK * epsilon_of_promise)))


def pure_renyi_divergence(epsilon: float, orders: Array) -> Array:
    """D_α of randomised response, the largest PureDP(ε) allows; never above ε or ε²α/2.

    With h = (α−1)ε it is log[cosh(ε/2 + h)/cosh(ε/2)]/(α−1), here in forms that lose no digits.
    """
    excess = orders - 1.0
    step = np.minimum(excess, 2.0**900) * epsilon
    short = np.minimum(step, 1.0)
    small = np.log1p(2.0 * np.sinh(short / 2.0) ** 2 + np.sinh(short) * math.tanh(epsilon / 2.0))
    large = step - math.log1p(math.exp(-epsilon)) + np.log1p(np.exp(-2.0 * step - epsilon))
    divergence = np.where(step <= 1.0, small, large) / excess * (1.0 + 4.0 * SLACK)
    exact = np.where(excess < 2.0**900, divergence, epsilon)
    with np.errstate(over="ignore"):  # beyond every number there is: ε is the smaller one
        line = orders * pure_to_zcdp(epsilon) * (1.0 + SLACK)
    return np.asarray(np.minimum(np.minimum(exact, epsilon), line))


def pure_renyi_at(epsilon: float, order: float) -> float:
    """`pure_renyi_divergence` at one order, without arrays: a ledger may hold a hundred thousand promises."""
    excess = order - 1.0
    step = excess * epsilon
    if step <= 1.0:
        grown = math.log1p(2.0 * math.sinh(step / 2.0) ** 2 + math.sinh(step) * math.tanh(epsilon / 2.0))
    else:
        grown = step - math.log1p(math.exp(-epsilon)) + math.log1p(math.exp(-2.0 * step - epsilon))
    line = order * epsilon * epsilon / 2.0 * (1.0 + SLACK)
    return min(grown / excess * (1.0 + 4.0 * SLACK), epsilon, line)


def bounded_range_renyi_divergence(epsilon: float, orders: Array) -> Array:
    """The largest D_α that BoundedRange(ε) allows; never above ε or ε²α/8.

    E_P[e^{(α−1)L}] is convex in e^{−L}, so for L ∈ [t − ε, t] the two end points are worst; the maximum
    over t is at e^t = ((α−1)/α)(e^{αε} − 1)/(e^{(α−1)ε} − 1), which gives, with s(z) = log(sinh(z)/z),
    D_α = [α s(αε/2) − (α−1) s((α−1)ε/2) − s(ε/2)]/(α−1).
    """
    bounded = np.minimum(orders, 2.0**40)
    excess = bounded - 1.0
    upper = bounded * log_sinhc(bounded * epsilon / 2.0)
    lower = excess * log_sinhc(excess * epsilon / 2.0) + log_sinhc(np.asarray(epsilon / 2.0))
    error = (upper + lower) * 2.0**-49
    exact = np.where(orders == bounded, (upper - lower + error) / excess * (1.0 + SLACK), epsilon)
    line = orders * bounded_range_to_zcdp(epsilon) * (1.0 + SLACK)
    return np.asarray(np.minimum(np.minimum(exact, epsilon), line))


def log_sinhc(values: Array) -> Array:
    """log(sinh(z)/z) for z ≥ 0, to full relative precision."""
    square = np.minimum(values, 0.5) ** 2
    series = np.zeros_like(square)
    for term in range(8, 0, -1):  # sinh(z)/z − 1 = Σ z^{2k}/(2k+1)!, from its smallest term
        series = square / (2 * term * (2 * term + 1)) * (1.0 + series)
    large = np.maximum(values, 0.5)
    log_large = large - np.log(2.0 * large) + np.log1p(-np.exp(-2.0 * large))
    return np.asarray(np.where(values < 0.5, np.log1p(series), log_large))


def square_up(value: float, divisor: int) -> float:
    """value²/divisor, rounded up."""
    return math.inf if value == math.inf else fraction_up(Fraction(value) ** 2 / divisor)


# ── GaussianDP ─────────────────────────────────────────────────────────────────────────────────────────────


def compose_gaussian(parts: Iterable[tuple[float, int]]) -> float:
    """√(Σ times·μ²), exact before the one rounding (arXiv:1905.02383)."""
    total = Fraction(0)
    for mu, times in parts:
        if mu == math.inf:
            return math.inf
        total += Fraction(mu) ** 2 * times
    return root_up(total)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), rounded up (arXiv:1805.06530v2, Theorem 8).

    Because the two arguments a > b satisfy b² − a² = 2ε, both terms share the factor e^{−a²/2}; what is
    left is a difference of scaled error functions, which keeps its digits however small δ is. The stated
    error grows with the arguments because exp magnifies their rounding.
    """
    if epsilon == math.inf:
        return 0.0
    if mu == math.inf:
        return 1.0
    centre, shift = mu / 2.0, epsilon / mu
    if math.isinf(shift):
        return TINY
    a, b = centre - shift, -centre - shift
    scale = 0.5 * math.exp(-0.5 * a * a)
    second = scale * float(special.erfcx(-b / math.sqrt(2.0)))
    first = float(special.ndtr(a)) if a > 0.0 else scale * float(special.erfcx(-a / math.sqrt(2.0)))
    relative = 2.0**-50 * (8.0 + (1.0 + abs(a)) * (centre + shift))
    return min(1.0, up(first - second, absolute=(first + second) * relative + TINY))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest ε with δ(ε) ≤ δ, rounded up by bisection on the rounded-up profile."""
    if delta == 0.0 or mu == math.inf:
        return math.inf
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    # δ(ε) ≤ Φ(μ/2 − ε/μ) ≤ exp(−(ε/μ − μ/2)²/2), so the answer lies below this.
    high = up(mu * mu / 2.0 + mu * math.sqrt(-2.0 * math.log(delta)), relative=1e-6)
    if not gaussian_delta(mu, high) <= delta:
        return math.inf
    return narrowed(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, true=high, false=0.0)[0]


@lru_cache(maxsize=1024)  # ledgers ask again and again
def gaussian_mu(epsilon: float, delta: float) -> float:
    """μ(ε, δ): the largest μ whose rounded-up profile at ε is at most δ; 0.0 when δ is too small for any."""
    if delta == 0.0:
        return 0.0
    return largest(lambda mu: gaussian_delta(mu, epsilon) <= delta, least=1e-290) or 0.0


# ── RenyiDP and ZCDP ───────────────────────────────────────────────────────────────────────────────────────


class AtOrder(NamedTuple):
    """A value and the Rényi order it was found at."""

    value: float
    order: float


def renyi_epsilon(curve: Callable[[Array], Array], delta: float, *, below: float = math.inf) -> AtOrder:
    """min over α ∈ (1, below) of curve(α) + log((α−1)/α) − (log δ + log α)/(α−1), then max(0, ·), rounded up.

    Proposition 12 of arXiv:2004.00010. ε(α) is a convex function divided by α − 1, so it has one valley.
    """
    if delta == 0.0:
        return AtOrder(math.inf, math.nan)
    log_delta = down(math.log(delta))

    def epsilon(orders: Array) -> Array:
        excess = orders - 1.0
        gain = -np.log1p(1.0 / excess)
        cost = -(log_delta + np.log(orders)) / excess
        bound = curve(orders)
        error = SLACK * (np.abs(gain) + np.abs(np.log(orders) / excess) + abs(log_delta) / excess)
        return np.asarray(bound * (1.0 + SLACK) + gain + cost + error)

    found = _minimise_over_orders(epsilon, below)
    return AtOrder(max(0.0, up(found.value)), found.order)


def renyi_excess(order: float, delta: float) -> float:
    """How far ε lies above D_λ at one order: log((λ−1)/λ) − (log δ + log λ)/(λ−1), rounded up (the same proposition)."""
    excess = order - 1.0
    terms = (-math.log1p(1.0 / excess), -math.log(delta) / excess, -math.log(order) / excess)
    return up(math.fsum(terms), absolute=SLACK * math.fsum(map(abs, terms)))


def renyi_delta(curve: Callable[[Array], Array], epsilon: float, *, below: float = math.inf) -> AtOrder:
    """The inverse of ``renyi_epsilon``: min over α of exp((α−1)(curve(α) − ε + log((α−1)/α)))/α."""
    if epsilon == math.inf:
        return AtOrder(0.0, math.nan)

    def log_delta(orders: Array) -> Array:
        excess = orders - 1.0
        gain = -np.log1p(1.0 / excess)
        bound = curve(orders)
        error = SLACK * (excess * (np.abs(gain) + np.abs(bound) + epsilon) + np.log(orders))
        return np.asarray(excess * (bound - epsilon + gain) - np.log(orders) + error)

    found = _minimise_over_orders(log_delta, below)
    return AtOrder(min(1.0, up(math.exp(min(0.0, found.value)), absolute=TINY)), found.order)


def _minimise_over_orders(objective: Callable[[Array], Array], below: float) -> AtOrder:
    """A coarse scan of all magnitudes of α − 1, then repeated zooms around the best order.

    Every order gives a valid bound, so stopping early costs tightness and never safety.
    """
    orders, best, width = 1.0 + np.geomspace(1e-7, 1e9, 81), AtOrder(math.inf, math.nan), below - 1.0
    if width < math.inf:
        spread = np.geomspace(min(1e-7, width * 1e-4), width, 65)[:-1] if width > 0.0 else np.empty(0)
        towards_limit = width * (1.0 - np.geomspace(0.2, 1e-9, 16))
        orders = np.unique(np.concatenate([1.0 + spread, 1.0 + towards_limit, [math.nextafter(below, 1.0)]]))
        orders = orders[(orders > 1.0) & (orders < below)]
    for _ in range(6):
        if len(orders) == 0:  # no float lies between 1 and λ*
            break
        with np.errstate(invalid="ignore", over="ignore"):
            values = objective(orders)
        values = np.where(np.isnan(values), math.inf, values)
        index = int(np.argmin(values))
        if values[index] < best.value:
            best = AtOrder(float(values[index]), float(orders[index]))
        if not math.isfinite(values[index]):
            break
        left, right = orders[max(index - 1, 0)], orders[min(index + 1, len(orders) - 1)]
        orders = 1.0 + np.linspace(left - 1.0, right - 1.0, 17)
        orders = orders[(orders > 1.0) & (orders < below)]
    return best


# ── groups, and draws that are only nearly exact ───────────────────────────────────────────────────────────


def group_approx_delta(epsilon: float, delta: float, size: int) -> float:
    """δ(e^{kε} − 1)/(e^ε − 1) for k records, rounded up: the δ of Σ_{j<k} e^{jε}δ."""
    if delta == 0.0 or size == 1:
        return delta
    exponent = (size - 1) * epsilon
    if exponent > 700.0:
        return math.inf
    # (e^{kε} − 1)/(e^ε − 1) = e^{(k−1)ε}(1 − e^{−kε})/(1 − e^{−ε})
    factor = math.exp(exponent) * math.expm1(-size * epsilon) / math.expm1(-epsilon)
    return up(delta * factor, relative=SLACK * (1.0 + exponent))


def total_variation_delta(epsilon: float, gamma: float) -> float:
    """(1 + e^ε)γ, rounded up: what a law within total variation γ of the promised one adds to δ.

    Proposition 12 of seed 002, corrected (errata 12): γ = sup over events |P − Q|, on either data set.
    """
    if gamma == 0.0:
        return 0.0
    if epsilon > 700.0:
        return math.inf
    return up((1.0 + math.exp(epsilon)) * gamma)
