"""Losses of numbers and counts: φ(u, y) = ρ(u − y) of residuals, and A(u) − yu of generalised linear models.

What a loss has to say of itself, and what follows from it, is in `losses`.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from scipy import special

from onedraw.models.compute import jax
from onedraw.privacy.numbers import down, fraction_up, sum_up, up
from onedraw.privacy.perturbed_mode import count_curvature

from .losses import Interval, LinearLoss, array_module, difference_up, least_variance, logistic, product_up, softplus

# ── residuals: φ(u, y) = ρ(u − y), lower ≤ y ≤ upper ─────────────────────────────────────────────────────────


class ResidualLoss(LinearLoss):
    """ρ(t), t = u − y, convex with its minimum at ``bottom``.

    Δ: t fills [−B − upper, B − lower]; a convex function is largest at an end, least at the point nearest to
    its bottom. ϱ/2: for one y, t fills the window of half-width B around −y; the oscillation over a window
    grows as the window moves away from the bottom, and is convex in the window's place while it contains the
    bottom, so the worst y is ``lower`` or ``upper``.
    """

    bottom: float = 0.0

    @abc.abstractmethod
    def of_residual(self, residual: Any) -> Any:
        """ρ(t)."""

    def value(self, predictor: Any, response: Any) -> Any:
        return self.of_residual(predictor - response)

    def spread(self, reach: float, responses: Interval) -> float:
        lower, upper = responses
        return self._width(-reach - upper, reach - lower)

    def oscillation(self, reach: float, responses: Interval) -> float:
        return max(self._width(-reach - y, reach - y) for y in responses)

    def _width(self, left: float, right: float) -> float:
        """sup − inf of ρ over [left, right], rounded up."""
        lowest = self.of_residual(min(max(self.bottom, left), right))
        return difference_up(max(self.of_residual(left), self.of_residual(right)), lowest)


@dataclass(frozen=True)
class SquaredLoss(ResidualLoss):
    """½t². |ρ'| = |t| ≤ Y + B for |y| ≤ Y, ρ'' = 1. Δ = (Y+B)²/2; ϱ = 4YB if B ≤ Y, (Y+B)² otherwise."""

    def of_residual(self, residual: Any) -> Any:
        return 0.5 * residual * residual

    def slope(self, predictor: Any, response: Any) -> Any:
        return predictor - response

    def curvature(self, predictor: Any, response: Any) -> Any:
        return array_module(predictor).ones_like(predictor - response)

    def slopes(self, reach: float, responses: Interval) -> Interval:
        lower, upper = responses
        return (-sum_up((reach, upper)), sum_up((reach, -lower)))

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (1.0, 1.0)


@dataclass(frozen=True)
class HuberLoss(ResidualLoss):
    """½t² for |t| ≤ τ, τ|t| − τ²/2 beyond. |ρ'| ≤ min(τ, Y + B), ρ'' ≤ 1; Δ = H_τ(Y + B)."""

    threshold: float

    @classmethod
    def example(cls) -> Self:
        return cls(0.7)

    def of_residual(self, residual: Any) -> Any:
        xp, size = array_module(residual), abs(residual)
        bent = xp.minimum(size, self.threshold)
        return bent * (size - 0.5 * bent)

    def slope(self, predictor: Any, response: Any) -> Any:
        return array_module(predictor).clip(predictor - response, -self.threshold, self.threshold)

    def curvature(self, predictor: Any, response: Any) -> Any:
        return 1.0 * (abs(predictor - response) < self.threshold)

    def slopes(self, reach: float, responses: Interval) -> Interval:
        lower, upper = responses
        return (-min(self.threshold, sum_up((reach, upper))), min(self.threshold, sum_up((reach, -lower))))

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        lower, upper = responses
        inside = max(sum_up((reach, upper)), sum_up((reach, -lower))) < self.threshold
        return (1.0 if inside else 0.0, 1.0)


@dataclass(frozen=True)
class LogCoshLoss(ResidualLoss):
    """τ²·log cosh(t/τ): |ρ'| = τ|tanh(t/τ)| < τ, ρ'' = 1 − tanh² ≤ 1, smooth everywhere."""

    threshold: float

    @classmethod
    def example(cls) -> Self:
        return cls(0.7)

    def of_residual(self, residual: Any) -> Any:
        xp, size = array_module(residual), abs(residual) / self.threshold
        return self.threshold**2 * (size + xp.log1p(xp.exp(-2.0 * size)) - math.log(2.0))

    def slope(self, predictor: Any, response: Any) -> Any:
        return self.threshold * array_module(predictor).tanh((predictor - response) / self.threshold)

    def curvature(self, predictor: Any, response: Any) -> Any:
        return 1.0 - array_module(predictor).tanh((predictor - response) / self.threshold) ** 2

    def slopes(self, reach: float, responses: Interval) -> Interval:
        return (-self.threshold, self.threshold)

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (0.0, 1.0)


@dataclass(frozen=True)
class PinballLoss(ResidualLoss):
    """max(q·(y−u), (q−1)·(y−u)), whose minimiser is the q-quantile. φ' ∈ {−q, 1−q}: sup|φ'| = max(q, 1−q)."""

    level: float

    @classmethod
    def example(cls) -> Self:
        return cls(0.9)

    def of_residual(self, residual: Any) -> Any:
        return array_module(residual).maximum(-self.level * residual, (1.0 - self.level) * residual)

    def slope(self, predictor: Any, response: Any) -> Any:
        return 1.0 * (predictor > response) - self.level

    def curvature(self, predictor: Any, response: Any) -> Any:
        return 0.0 * (predictor - response)

    def slopes(self, reach: float, responses: Interval) -> Interval:
        return (-self.level, fraction_up(1 - Fraction(self.level)))

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (0.0, math.inf)


@dataclass(frozen=True)
class SmoothedPinballLoss(ResidualLoss):
    """The pinball loss averaged over a uniform shift in [−h, h] (convolution smoothing, arXiv:2012.05187).

    (½ − q)t + ½|t| with |t| replaced by t²/2h + h/2 for |t| < h. The slopes stay within [−q, 1−q]; φ'' ≤ 1/2h.
    Its bottom, where (½ − q) + t/2h = 0, is t = h(2q − 1).
    """

    level: float
    width: float

    @classmethod
    def example(cls) -> Self:
        return cls(0.9, 0.5)

    @property
    def bottom(self) -> float:  # type: ignore[override]  # zero for the other residual losses
        return self.width * (2.0 * self.level - 1.0)

    def of_residual(self, residual: Any) -> Any:
        xp, h = array_module(residual), self.width
        bent = xp.minimum(abs(residual), h)
        rounded = bent * bent / (2.0 * h) + 0.5 * h + xp.maximum(abs(residual) - h, 0.0)
        return (0.5 - self.level) * residual + 0.5 * rounded

    def slope(self, predictor: Any, response: Any) -> Any:
        xp = array_module(predictor)
        return 0.5 - self.level + 0.5 * xp.clip((predictor - response) / self.width, -1.0, 1.0)

    def curvature(self, predictor: Any, response: Any) -> Any:
        return (abs(predictor - response) < self.width) / (2.0 * self.width)

    def slopes(self, reach: float, responses: Interval) -> Interval:
        return (-self.level, fraction_up(1 - Fraction(self.level)))

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (0.0, fraction_up(1 / (2 * Fraction(self.width))))


# ── generalised linear models: φ(u, y) = A(u) − yu ───────────────────────────────────────────────────────────


class CanonicalLoss(LinearLoss):
    """The negative log-likelihood of an exponential family with canonical link, without log h(y), which is free
    of θ. φ' = A'(u) − y is the mean minus the response, φ'' = A''(u).

    For one y the oscillation is convex in y (a supremum of linear functions), so the worst y is an end. The
    infimum over both is at an end of y too: inf_u A(u) − yu is concave in y.
    """

    @abc.abstractmethod
    def mean(self, predictor: Any) -> Any:
        """g⁻¹(u) = A'(u)."""

    @abc.abstractmethod
    def link(self, mean: float) -> float:
        """The u with A'(u) = mean; ±∞ outside the range of means."""

    def slope(self, predictor: Any, response: Any) -> Any:
        return self.mean(predictor) - response

    def means(self, reach: float) -> Interval:
        """The least and the largest mean for |u| ≤ reach."""
        return (down(float(self.mean(-reach))), up(float(self.mean(reach))))

    def slopes(self, reach: float, responses: Interval) -> Interval:
        least, largest = self.means(reach)
        return (
            -fraction_up(Fraction(responses[1]) - Fraction(least)),
            fraction_up(Fraction(largest) - Fraction(responses[0])),
        )

    def spread(self, reach: float, responses: Interval) -> float:
        tops, bottoms = zip(*(self._ends(reach, y) for y in responses), strict=True)
        return difference_up(max(tops), min(bottoms))

    def oscillation(self, reach: float, responses: Interval) -> float:
        return max(difference_up(*self._ends(reach, y)) for y in responses)

    def _ends(self, reach: float, response: float) -> Interval:
        """sup and inf of φ(·, y) over |u| ≤ reach."""
        lowest = min(max(self.link(response), -reach), reach)
        return (
            float(max(self.value(-reach, response), self.value(reach, response))),
            float(self.value(lowest, response)),
        )


@dataclass(frozen=True)
class BernoulliLoss(CanonicalLoss):
    """log(1 + e^u) − yu for 0 ≤ y ≤ 1: the logistic loss, for fractions as well. A'' = pq ≤ ¼."""

    def value(self, predictor: Any, response: Any) -> Any:
        return softplus(predictor) - response * predictor

    def curvature(self, predictor: Any, response: Any) -> Any:
        return logistic(predictor) * logistic(-predictor)

    def mean(self, predictor: Any) -> Any:
        return logistic(predictor)

    def means(self, reach: float) -> Interval:
        least, largest = super().means(reach)
        return (max(least, 0.0), min(largest, 1.0))

    def link(self, mean: float) -> float:
        if not 0.0 < mean < 1.0:
            return -math.inf if mean <= 0.0 else math.inf
        return math.log(mean) - math.log1p(-mean)

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (least_variance(reach), 0.25)


@dataclass(frozen=True)
class PoissonLoss(CanonicalLoss):
    """e^u − yu. A'' = e^u lies between e^{−B} and e^B for |u| ≤ B: without a ball it has no smoothness."""

    def value(self, predictor: Any, response: Any) -> Any:
        return array_module(predictor).exp(predictor) - response * predictor

    def curvature(self, predictor: Any, response: Any) -> Any:
        return array_module(predictor).exp(predictor + 0.0 * response)

    def mean(self, predictor: Any) -> Any:
        return array_module(predictor).exp(predictor)

    def link(self, mean: float) -> float:
        return math.log(mean) if mean > 0.0 else -math.inf

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (down(math.exp(-reach)), up(math.exp(reach)))


@dataclass(frozen=True)
class GaussianLoss(CanonicalLoss):
    """½u² − yu: least squares without the constant ½y². A'' = 1."""

    def value(self, predictor: Any, response: Any) -> Any:
        return predictor * (0.5 * predictor - response)

    def curvature(self, predictor: Any, response: Any) -> Any:
        return array_module(predictor).ones_like(predictor - response)

    def mean(self, predictor: Any) -> Any:
        return 1.0 * predictor

    def link(self, mean: float) -> float:
        return mean

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (1.0, 1.0)


@dataclass(frozen=True)
class CappedPoissonLoss(LinearLoss):
    """Counts cut at a declared largest one, Y: φ' = m_Y(e^u) − min(y, Y), m_Y(λ) = E min(Poisson(λ), Y).

    Consistent for the rate of the uncut counts, because cutting is built into the mean. With P_k = P(Poisson(λ) ≤ k):
    m_Y = λP_{Y−2} + Y(1 − P_{Y−1}) and m_Y' = P_{Y−1}, so φ'' = λP_{Y−1} ≥ 0 and 0 ≤ m_Y ≤ Y.
    """

    largest: int

    @classmethod
    def example(cls) -> Self:
        return cls(5)

    FARTHEST = 30.0
    """|u| beyond which the rate is taken at this end: there every count is 0, or at least Y."""

    TAIL, NODES = 1e-17, 32
    """Chance of a count on the other side of Y from which on m_Y is e^u, or Y; and how many places between are looked at."""

    def value(self, predictor: Any, response: Any) -> Any:
        """∫₀^u m_Y(e^v) dv − yu: in closed form where m_Y is e^v or Y, by Gauss and Legendre where it turns from one into the other.

        Their places over the whole of [0, u] would step over the turn, which is some 1/√Y wide: 0.7 % of the slope at u = 39.5.
        """
        xp, (low, high) = array_module(predictor), self._turn
        start, end = min(max(0.0, low), high), xp.clip(predictor, low, high)
        area = xp.exp(xp.minimum(predictor, low)) - math.exp(min(0.0, low))
        area = area + self.largest * (xp.maximum(predictor - high, 0.0) - max(-high, 0.0))
        for node, weight in zip(*np.polynomial.legendre.leggauss(self.NODES), strict=True):
            area = area + 0.5 * weight * (end - start) * self._mean(start + 0.5 * (1.0 + node) * (end - start))
        return area - response * predictor

    @property
    def _turn(self) -> Interval:
        """The predictors below which every count is below Y, and above which none is, but for `TAIL`."""
        low, high = special.gammaincinv(self.largest, self.TAIL), special.gammainccinv(self.largest, self.TAIL)
        return (math.log(low), math.log(high))

    def _rate(self, predictor: Any) -> Any:
        xp = array_module(predictor)
        return xp.exp(xp.clip(predictor, -self.FARTHEST, self.FARTHEST))

    def _below(self, rate: Any) -> Any:
        """P(Poisson(λ) ≤ Y − 1), the upper incomplete gamma function at Y."""
        if array_module(rate) is np:
            return special.gammaincc(self.largest, rate)
        return jax.scipy.special.gammaincc(float(self.largest), rate)

    def _mean(self, predictor: Any) -> Any:
        rate = self._rate(predictor)
        below = self._below(rate)
        return rate * below + self.largest * (1.0 - below - self._chance(rate, self.largest))

    def _chance(self, rate: Any, count: int) -> Any:
        """P(Poisson(λ) = count), 0 below 0."""
        xp = array_module(rate)
        return xp.exp(count * xp.log(rate) - rate - math.lgamma(count + 1)) if count >= 0 else 0.0

    def variance(self, predictor: Any) -> Any:
        """Var min(N, Y) = λ²P_{Y−3} + λP_{Y−2} + Y²(1 − P_{Y−1}) − m_Y² of a Poisson N: the slope's, given the row. At
        most φ'', because Var min(N, Y) ≤ Cov(N, min(N, Y)) = λP_{Y−1}, N − min(N, Y) and min(N, Y) growing together."""
        xp, rate = array_module(predictor), self._rate(predictor)
        below = self._below(rate)
        once = below - self._chance(rate, self.largest - 1)
        twice = once - self._chance(rate, self.largest - 2)
        square = rate**2 * twice + rate * once + self.largest**2 * (1.0 - below)
        return xp.clip(square - self._mean(predictor) ** 2, 0.0, rate * below)

    def slope(self, predictor: Any, response: Any) -> Any:
        return self._mean(predictor) - response

    def curvature(self, predictor: Any, response: Any) -> Any:
        rate = self._rate(predictor)
        return rate * self._below(rate)

    def slopes(self, reach: float, responses: Interval) -> Interval:
        return (-float(self.largest), float(self.largest))

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (0.0, count_curvature(self.largest))

    def spread(self, reach: float, responses: Interval) -> float:
        """|φ'| ≤ Y, and φ(0, y) = 0 for every y."""
        return product_up(2.0 * self.largest, reach)
