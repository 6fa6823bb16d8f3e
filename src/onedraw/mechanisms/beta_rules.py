"""Weight and β of a β-divergence posterior: what they promise, and how good the draw will be.

Jewson, Ghalebikesabi, Holmes, *Differentially private statistical inference through β-divergence one posterior
sampling* (NeurIPS 2023). The target is ∝ π(θ) exp(−w Σ ℓ_β(x_i, θ)), with

    ℓ_β(x, θ) = −f(x; θ)^{β−1}/(β−1) + (1/β) ∫ f(·; θ)^β,        Δ(β) = sup |ℓ_β(x, θ) − ℓ_β(x', θ)|.

One exact draw is BoundedRange(2wΔ(β)), whatever β and w: at a given ε every pair (β, ε/(2Δ(β))) is equally private,
but not equally useful. n times the draw's covariance tends to H⁻¹KH⁻¹ + H⁻¹/w, where per record, with the score
s = ∂ log f/∂u of the predictor u,

    H(u) = ∫ f^β s²,        K(u) = ∫ f^{2β−1} s² − (∫ f^β s)².

Pure functions of public numbers. Promises are rounded up and weights down, in rational arithmetic, once.
Proofs, preconditions and departures from the paper: beta_divergence.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from onedraw.errors import PromiseRefused
from onedraw.models.likelihood.densities import LARGEST_BETA
from onedraw.privacy import ApproxDP, BoundedRange, Promise, PureDP, compose, search
from onedraw.privacy.rounding import fraction_down, fraction_up, text, up
from onedraw.privacy.validation import positive

from .calibration import MARGIN, SMALLEST, largest_number

Array = NDArray[np.float64]
Sensitivity = Callable[[float], float]
"""Δ as a function of β, rounded up."""

BINARY_OPTIMUM = 1.0 + 1.0 / math.log(2.0)
"""β* at p = ½: (β−1)·2^{−(β−1)} is largest there."""

PRECISION = 2.0**-20
"""Relative; how close several draws come to the budget. Each step may need a privacy-loss distribution."""


# ── the promise ────────────────────────────────────────────────────────────────────────────────────────────


def draw_range(weight: float, sensitivity: float, *, records_per_person: int = 1) -> float:
    """2wΔ·k, rounded up: the range of the log-ratio of one draw when a person's k records are replaced."""
    exact = 2 * Fraction(positive("the weight", weight)) * Fraction(positive("the sensitivity Δ", sensitivity))
    return fraction_up(exact * records_per_person)


def weight_within(largest_range: float, sensitivity: float, *, records_per_person: int = 1) -> float:
    """The largest w with 2wΔ·k at most this range, rounded down; refused where the records would not matter."""
    exact = Fraction(positive("the range", largest_range)) / (2 * records_per_person * Fraction(sensitivity))
    weight = fraction_down(exact)
    if not weight >= SMALLEST:
        raise PromiseRefused(
            f"A bounded range of {text(largest_range)} leaves the weight w = {weight:.3g}, below 2^−60: in floating-point "
            "arithmetic the records would not matter, and the draw would be one from the prior. Use a larger budget."
        )
    return weight


def promise_of_draws(one_draw: float, draws: int, budget: Promise) -> Promise:
    """``draws`` independent draws of this range each, described in the budget's own currency.

    Ranges of independent draws add, which is the best for budgets without a δ; every other budget gains from
    composition, as a draw's log-ratio is rarely at either end of its range.
    """
    if draws == 1 or _counts_ranges(budget):
        return BoundedRange(fraction_up(Fraction(one_draw) * draws))
    return compose(*[BoundedRange(one_draw)] * draws)


@lru_cache(maxsize=256)
def largest_range(budget: Promise, draws: int) -> float:
    """The largest range of one draw with which all of them together imply the budget, rounded down."""
    if _counts_ranges(budget):
        assert isinstance(budget, PureDP | BoundedRange | ApproxDP)
        return fraction_down(Fraction(budget.stated_epsilon) / draws)
    high = largest_number(BoundedRange, budget)
    if draws == 1:
        return high * (1.0 - MARGIN)
    found = search.largest(
        lambda one_draw: promise_of_draws(one_draw, draws, budget).implies(budget),
        start=high / draws,
        most=high,
        precision=PRECISION,
        factor=float(draws),
    )
    assert found is not None  # J draws of a J-th of the range keep at least what one draw does
    return found * (1.0 - PRECISION)


def _counts_ranges(budget: Promise) -> bool:
    return isinstance(budget, PureDP | BoundedRange) or (isinstance(budget, ApproxDP) and budget.stated_delta == 0.0)


# ── the rule of the paper: w = 1 ───────────────────────────────────────────────────────────────────────────


def jewson_beta(sensitivity: Sensitivity, largest_range: float, *, records_per_person: int = 1) -> float:
    """The smallest β with 2Δ(β)·k within the range at w = 1: 1 + 2/ε for discrete models.

    Where the density exceeds 1, Δ has a least value and a small ε has no β at all (errata 3).
    """

    def reached(distance: float) -> float:
        return draw_range(1.0, sensitivity(1.0 + distance), records_per_person=records_per_person)

    low = high = 2.0**-19
    while reached(high) > largest_range:
        if reached(high) > reached(low):
            return 1.0 + _first_kept(reached, low / 2.0, _least(reached, low / 2.0, high, largest_range), largest_range)
        low, high = high, 2.0 * high
        if high >= LARGEST_BETA:
            raise PromiseRefused(
                f"With w = 1 a range of {text(largest_range)} needs a β above {LARGEST_BETA:g}, where the loss no longer "
                "sees the records. Use rule='optimal', which lowers the weight instead, or a larger budget."
            )
    return 1.0 + _first_kept(reached, low, high, largest_range)


def _least(reached: Callable[[float], float], low: float, high: float, largest_range: float) -> float:
    """Where Δ is least between the two, if that is small enough."""
    found = optimize.minimize_scalar(reached, bounds=(low, high), method="bounded", options={"xatol": 1e-12 * high})
    if reached(found.x) > largest_range:
        raise PromiseRefused(
            f"With w = 1 no β at all certifies a range of {text(largest_range)}: the density may exceed 1 and the least "
            f"range is {reached(found.x):.6g}, at β = {1.0 + found.x:.6g} (2e·ln M for a density of at most M). Use "
            "rule='optimal', whose weight makes every ε possible, a larger budget, or a higher variance floor."
        )
    return float(found.x)


def _first_kept(reached: Callable[[float], float], low: float, high: float, largest_range: float) -> float:
    """The smallest distance β − 1 that keeps the range, Δ decreasing between the two; kept at the end returned.

    β itself is what is stored, so β is searched for, and rounded as it will be.
    """
    if reached((1.0 + high) - 1.0) > largest_range:
        return high
    found, _ = search.narrowed(lambda beta: reached(beta - 1.0) <= largest_range, true=1.0 + high, false=1.0 + low)
    return found - 1.0


def normal_sensitivity(variance: float) -> Sensitivity:
    """Δ(β) = M^{β−1}/(β−1), M = 1/√(2πv), rounded up: of a normal density whose variance is at least v."""
    logarithm = -0.5 * math.log(2.0 * math.pi * positive("the variance", variance))

    def sensitivity(beta: float) -> float:
        exponent = (beta - 1.0) * logarithm
        size = math.exp(exponent) if exponent < 700.0 else math.inf
        return up(size / (beta - 1.0), relative=2.0**-44 * (1.0 + abs(exponent)), absolute=2.0**-1000)

    return sensitivity


# ── information per record ─────────────────────────────────────────────────────────────────────────────────


def binary_information(predictor: Array, beta: float) -> tuple[Array, Array]:
    """H = p²q²(p^{β−2} + q^{β−2}) and K = p³q³(p^{β−2} + q^{β−2})², p the logistic function of the predictor."""
    p, q = special.log_expit(predictor), special.log_expit(-predictor)
    first, second = np.exp(beta * p + 2.0 * q), np.exp(2.0 * p + beta * q)
    # K = H²/(pq), and both factors may underflow where p or q does: combine the exponents instead.
    mixed = np.logaddexp(beta * p + 2.0 * q, 2.0 * p + beta * q)
    return first + second, np.exp(2.0 * mixed - p - q)


def normal_information(deviation: float, beta: float) -> tuple[float, float]:
    """Of the mean, per xxᵀ: H = (2πσ²)^{−(β−1)/2} β^{−3/2}/σ², K = (2πσ²)^{−(β−1)} (2β−1)^{−3/2}/σ²."""
    size = (2.0 * math.pi * deviation**2) ** (-(beta - 1.0) / 2.0)
    return size * beta**-1.5 / deviation**2, size**2 * (2.0 * beta - 1.0) ** -1.5 / deviation**2


def normal_variance_information(deviation: float, beta: float) -> tuple[float, float]:
    """Of log σ²: H = ¼A(β)(2πσ²)^{−(β−1)/2}, K = ¼A(2β−1)(2πσ²)^{−(β−1)} − m².

    m = ½(1−β)β^{−3/2}(2πσ²)^{−(β−1)/2} is the mean score under f^β. The score is ½(z² − 1), and f^β is a normal density of variance σ²/β but for its mass (2πσ²)^{−(β−1)/2}β^{−½}, under
    which z² has the mean 1/β and the mean square 3/β²: A(β) = β^{−½}(3/β² − 2/β + 1). At β = 1 both are Fisher's ½.
    """
    size = (2.0 * math.pi * deviation**2) ** (-(beta - 1.0) / 2.0)

    def square(power: float) -> float:
        return 0.25 / math.sqrt(power) * (3.0 / power**2 - 2.0 / power + 1.0)

    mean = 0.5 * (1.0 - beta) * beta**-1.5
    return size * square(beta), size**2 * (square(2.0 * beta - 1.0) - mean**2)


def categorical_information(scores: Array, beta: float) -> tuple[float, float]:
    """Averages a_H, a_K over the rows of scores: E H = a_H·(I − 11ᵀ/K) where classes are exchangeable, and so K."""
    classes = scores.shape[1]
    p = special.softmax(scores, axis=1)

    def spread(weights: Array) -> Array:
        """Σ_y weight_y ‖e_y − p‖²."""
        size = (p * p).sum(axis=1)
        return np.asarray((weights * (1.0 - 2.0 * p)).sum(axis=1) + size * weights.sum(axis=1))

    mean = p**beta - p * (p**beta).sum(axis=1, keepdims=True)
    information = spread(p**beta).mean()
    variability = (spread(p ** (2.0 * beta - 1.0)) - (mean * mean).sum(axis=1)).mean()
    return float(information) / (classes - 1), float(variability) / (classes - 1)


def tabulated_information(
    log_density: Array, scores: Array, beta: float, *, spacing: float | Array = 1.0
) -> tuple[Array, Array]:
    """H and K by summation over the first axis: all counts, or a fine grid of responses ``spacing`` apart."""
    weighted = spacing * np.exp(beta * log_density)
    information = (weighted * scores**2).sum(axis=0)
    mean = (weighted * scores).sum(axis=0)
    variability = (spacing * np.exp((2.0 * beta - 1.0) * log_density) * scores**2).sum(axis=0) - mean**2
    return information, variability


def normal_optimum(ratio: float) -> float:
    """β with the smallest private term H⁻¹/w of a normal model, σ/s = ``ratio`` ≥ 1: ln(σ/s) + 3/(2β) = 1/(β−1)."""
    logarithm = math.log(ratio)
    found = optimize.brentq(lambda beta: logarithm + 1.5 / beta - 1.0 / (beta - 1.0), 1.0 + 1e-9, 3.0 + 1e-9)
    return float(found)
