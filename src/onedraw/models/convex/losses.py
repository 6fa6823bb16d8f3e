"""Losses of one linear predictor: φ(u, y), convex in u = θᵀx, with the constants every promise is made of.

A record's loss is ℓ(θ, (x, y)) = φ(θᵀx, y), so ∇ℓ = φ'(u, y)·x and ∇²ℓ = φ''(u, y)·xxᵀ. With ‖x‖ ≤ r̃ (the
intercept's 1 counted in):

    Lipschitz   L = r̃·sup|φ'|          smoothness  r̃²·sup φ''
    on a ball   |u| ≤ B = R·r̃,   Δ = sup φ − inf φ,   ϱ = 2·sup_y osc_{|u|≤B} φ(u, y)

ϱ bounds osc_θ[ℓ(θ,z) − ℓ(θ,z')] because the two records' losses can each move by no more than their own
oscillation. Three classes prove the last two for all their members: `MarginLoss` here, and `ResidualLoss` and
`CanonicalLoss` in `number_losses`.

Formulas are written once, for NumPy and JAX values alike; NumPy alone is used for the constants, so that a plan
can be made without loading JAX. Constants that pass through exp or log are rounded up by `rounding.up`.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from scipy import special

from onedraw.models.compute import jax, jnp
from onedraw.privacy.numbers import down, fraction_up, sum_up, up

Interval = tuple[float, float]

SIGNS: Interval = (-1.0, 1.0)
"""The responses of a margin loss: −1 and +1 (not what lies between)."""


def array_module(value: Any) -> Any:
    """NumPy for NumPy's own values, otherwise jax.numpy."""
    if isinstance(value, np.ndarray | np.generic | float | int):
        return np
    return jnp


class LinearLoss(abc.ABC):
    """φ with its two derivatives in u, and bounds of them over |u| ≤ ``reach`` and all responses."""

    @classmethod
    def example(cls) -> Self:
        """Make the loss, or one with usual numbers. The tests check its derivatives and bounds on it."""
        return cls()

    @abc.abstractmethod
    def value(self, predictor: Any, response: Any) -> Any:
        """φ(u, y), elementwise."""

    @abc.abstractmethod
    def slope(self, predictor: Any, response: Any) -> Any:
        """φ'(u, y): at a kink one of the subgradients."""

    @abc.abstractmethod
    def curvature(self, predictor: Any, response: Any) -> Any:
        """φ''(u, y), where it exists."""

    @abc.abstractmethod
    def slopes(self, reach: float, responses: Interval) -> Interval:
        """An interval that φ' never leaves; ``reach`` may be infinite."""

    @abc.abstractmethod
    def curvatures(self, reach: float, responses: Interval) -> Interval:
        """The least and the largest φ''; the largest is infinite where there is a kink."""

    @abc.abstractmethod
    def spread(self, reach: float, responses: Interval) -> float:
        """sup φ − inf φ over |u| ≤ reach and all responses: Δ."""

    def oscillation(self, reach: float, responses: Interval) -> float:
        """The largest sup − inf of φ(·, y) over |u| ≤ reach for one response y: ϱ/2, never above Δ."""
        return self.spread(reach, responses)

    # What a whole data set needs: two matrix–vector products, and one weighted Gram matrix.

    def losses(self, theta: Any, X: Any, y: Any) -> Any:
        """One number per record."""
        return self.value(X @ theta, y)

    def total(self, theta: Any, X: Any, y: Any) -> Any:
        return self.losses(theta, X, y).sum()

    def gradient_total(self, theta: Any, X: Any, y: Any) -> Any:
        """Xᵀφ'(Xθ, y)."""
        return self.slope(X @ theta, y) @ X

    def hessian_total(self, theta: Any, X: Any, y: Any) -> Any:
        """Xᵀ diag(φ''(Xθ, y)) X."""
        return (X * self.curvature(X @ theta, y)[:, None]).T @ X


# ── margins: φ(u, y) = ψ(yu), y = ±1, ψ decreasing ───────────────────────────────────────────────────────────


class MarginLoss(LinearLoss):
    """ψ(m), m = yu, convex and decreasing. Over |m| ≤ B its values fill [ψ(B), ψ(−B)] for either label, so
    Δ = ψ(−B) − ψ(B) is the oscillation too, and ϱ = 2Δ (a flipped label attains it: ψ(u) − ψ(−u)).
    By convexity |ψ'| is largest at the left: sup|ψ'| = lim |ψ'(−∞)| = ``steepest``.
    """

    steepest: float

    def slopes(self, reach: float, responses: Interval) -> Interval:
        return (-self.steepest, self.steepest)

    def spread(self, reach: float, responses: Interval) -> float:
        return difference_up(self.value(-reach, 1.0), self.value(reach, 1.0))


@dataclass(frozen=True)
class LogisticLoss(MarginLoss):
    """log(1 + e^{−m}). |ψ'| = σ(−m) ≤ 1; ψ'' = pq ≤ ¼, at least p_B q_B = 1/(4cosh²(B/2)) for |m| ≤ B;
    ψ(−B) − ψ(B) = B exactly.
    """

    steepest = 1.0

    def value(self, predictor: Any, response: Any) -> Any:
        return softplus(-response * predictor)

    def slope(self, predictor: Any, response: Any) -> Any:
        return -response * logistic(-response * predictor)

    def curvature(self, predictor: Any, response: Any) -> Any:
        return logistic(predictor) * logistic(-predictor)

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (least_variance(reach), 0.25)

    def spread(self, reach: float, responses: Interval) -> float:
        return reach


@dataclass(frozen=True)
class ExpLinearLoss(MarginLoss):
    """ψ' = −q·s with s = ((1 + e^{−|m|})/2)^c, 0 < c ≤ 1: consistent for the logit because s is even.

    c = 1 is the exp-linear loss: ½e^{−m} for m ≥ 0, ½ − m/2 for m < 0. sup|ψ'| = s(−∞) = 2^{−c}.
    (log s)' = −cq for m > 0 and cp for m < 0, so ψ'' = qs(p + cq) and (1−c)pqs: largest at 0+, (1+c)/4, since
    q − (1−c)q² and s both fall with m; least at −B.
    Integrated: with t = e^{−m}, ψ = 2^{−c}((1+t)^c − 1)/c for m ≥ 0; for m < 0, with z = p, ψ(m) − ψ(0) =
    2^{−c}∫_z^½ (1−v)^{−c} dv/v, a series in powers of z ≤ ½.
    """

    exponent: float = 1.0

    TERMS = 52
    """2^{−52}/52 of the series is left out, less than its rounding."""

    @property
    def steepest(self) -> float:  # type: ignore[override]  # a constant of the other margin losses
        return 0.5 if self.exponent == 1.0 else up(2.0**-self.exponent)

    def value(self, predictor: Any, response: Any) -> Any:
        xp, c = array_module(predictor), self.exponent
        margin = response * predictor
        right, left = xp.maximum(margin, 0.0), xp.minimum(margin, 0.0)
        above = xp.expm1(c * xp.log1p(xp.exp(-right))) / c
        return 2.0**-c * (above + (-left if c == 1.0 else self._left_part(left)))

    def _left_part(self, margin: Any) -> Any:
        """∫_z^½ (1−v)^{−c} dv/v for z = p(m), m ≤ 0; zero at m = 0."""
        z = logistic(margin)
        coefficients, rising = [], 1.0
        for k in range(1, self.TERMS + 1):
            rising *= (self.exponent + k - 1) / k
            coefficients.append(rising / k)
        series = 0.0 * z
        at_half = 0.0
        for coefficient in reversed(coefficients):
            series = (series + coefficient) * z
            at_half = (at_half + coefficient) * 0.5
        return softplus(-margin) - math.log(2.0) + at_half - series

    def slope(self, predictor: Any, response: Any) -> Any:
        margin = response * predictor
        return -response * logistic(-margin) * self._evenness(margin)

    def curvature(self, predictor: Any, response: Any) -> Any:
        xp, c = array_module(predictor), self.exponent
        margin = response * predictor
        p, q = logistic(margin), logistic(-margin)
        return xp.where(margin > 0, q * (p + c * q), (1.0 - c) * p * q) * self._evenness(margin)

    def _evenness(self, margin: Any) -> Any:
        xp = array_module(margin)
        return (0.5 * (1.0 + xp.exp(-abs(margin)))) ** self.exponent

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        c = self.exponent
        least = 0.0 if c == 1.0 else (1.0 - c) * least_variance(reach) * float(self._evenness(reach))
        return (down(least) if least > 0.0 else 0.0, fraction_up((1 + Fraction(c)) / 4))


@dataclass(frozen=True)
class HingeLoss(MarginLoss):
    """max(0, 1 − m): 1-Lipschitz, not smooth. Δ = 1 + B − max(0, 1 − B) = min(2B, B + 1)."""

    steepest = 1.0

    def value(self, predictor: Any, response: Any) -> Any:
        return array_module(predictor).maximum(0.0, 1.0 - response * predictor)

    def slope(self, predictor: Any, response: Any) -> Any:
        return -response * (response * predictor < 1.0)

    def curvature(self, predictor: Any, response: Any) -> Any:
        return 0.0 * predictor * response

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (0.0, math.inf if reach >= 1.0 else 0.0)

    def spread(self, reach: float, responses: Interval) -> float:
        return min(2.0 * reach, sum_up((reach, 1.0)))


@dataclass(frozen=True)
class HuberisedHingeLoss(MarginLoss):
    """The hinge with its kink replaced by a parabola over [1 − h, 1]: with t = 1 − m, 0 for t ≤ 0, t²/2h up to
    h, t − h/2 beyond. Same Lipschitz constant 1; ψ'' ≤ 1/h.
    """

    width: float

    steepest = 1.0

    @classmethod
    def example(cls) -> Self:
        return cls(0.4)

    def value(self, predictor: Any, response: Any) -> Any:
        xp, h = array_module(predictor), self.width
        short = 1.0 - response * predictor
        bent = xp.clip(short, 0.0, h)
        return bent * bent / (2.0 * h) + xp.maximum(short - h, 0.0)

    def slope(self, predictor: Any, response: Any) -> Any:
        xp = array_module(predictor)
        return -response * xp.clip((1.0 - response * predictor) / self.width, 0.0, 1.0)

    def curvature(self, predictor: Any, response: Any) -> Any:
        short = 1.0 - response * predictor
        return ((short > 0.0) & (short < self.width)) / self.width

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (0.0, fraction_up(1 / Fraction(self.width)))


def logistic(value: Any) -> Any:
    """1/(1 + e^{−v})."""
    if array_module(value) is np:
        return special.expit(value)
    return jax.nn.sigmoid(value)


def softplus(value: Any) -> Any:
    """log(1 + e^v), without overflow."""
    xp = array_module(value)
    return xp.maximum(value, 0.0) + xp.log1p(xp.exp(-abs(value)))


def difference_up(top: Any, bottom: Any) -> float:
    """top − bottom rounded up: each may be off by some units of its own last place, which cancellation keeps."""
    top, bottom = float(top), float(bottom)
    return up(top - bottom, absolute=2.0**-48 * (abs(top) + abs(bottom)))


def least_variance(reach: float) -> float:
    """pq at the predictor ``reach``, rounded down: 1/(4cosh²(B/2)); 0 where it underflows or reach is infinite."""
    if reach > 700.0:
        return 0.0
    return down(math.exp(-reach) / (1.0 + math.exp(-reach)) ** 2)


def product_up(*factors: float) -> float:
    """The product, exact, then rounded up once; ∞ if a factor is."""
    if any(math.isinf(factor) for factor in factors):
        return math.inf
    result = Fraction(1)
    for factor in factors:
        result *= Fraction(factor)
    return fraction_up(result)
