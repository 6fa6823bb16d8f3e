"""Losses of a fit: what a perturbed mode needs to know of φ(u, y) (mathematics-3 §2).

A `FitLoss` is a convex loss of one predictor with the constants of its theorem. Responses are in the fit's own unit:

| | classes (exp-linear, logistic, hinge) | numbers (log-cosh) | quantiles | counts |
| --- | --- | --- | --- | --- |
| response | ±1 | (y − centre)/t | (y − centre)/t | min(y, Y) |
| slopes | one-sided in the margin, L | two-sided, L = 1 | −τ … 1−τ | m_Y(e^u) − y, L = Y |
| curvature M | ½, ¼, 1/h | 1 | 1/2h | sup λ·P(Poisson(λ) ≤ Y−1) |

`information` is the expected curvature given the row where the model gives one (classes, counts), otherwise the
curvature itself: Σ a·information·zzᵀ is what standard errors are made of.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from scipy import optimize, special

from onedraw.privacy.rounding import up

from .losses import ExpLinearLoss, LogisticLoss, array_module

Sides = Literal["one-sided", "two-sided", "pinball", "counts"]


@dataclass(frozen=True)
class FitLoss:
    """A loss with ``slope(u, y)`` and ``curvature(u, y)``, and the constants L, M and shape of its slopes.

    ``unit``: "labels" (±1), "measured" (numbers, divided by a threshold that is measured) or "counts".
    ``level`` is the τ of a quantile.
    """

    kernel: Any
    sides: Sides
    slope_bound: float
    curvature_bound: float
    unit: Literal["labels", "measured", "counts"]
    level: float | None = None

    def slope(self, predictor: Any, response: Any) -> Any:
        return self.kernel.slope(predictor, response)

    def curvature(self, predictor: Any, response: Any) -> Any:
        return self.kernel.curvature(predictor, response)

    def information(self, predictor: Any, response: Any) -> Any:
        """E[φ'' | x] under the model: pq·s for the logistic model by either loss; φ'' itself where none is assumed."""
        if isinstance(self.kernel, ExpLinearLoss | LogisticLoss):
            xp = array_module(predictor)
            decay = xp.exp(-abs(predictor))
            certain = decay / (1.0 + decay) ** 2
            exponent = self.kernel.exponent if isinstance(self.kernel, ExpLinearLoss) else 0.0
            return certain * (0.5 * (1.0 + decay)) ** exponent
        return self.kernel.curvature(predictor, response)

    @property
    def information_bound(self) -> float:
        """The largest ``information``: ¼ for the logistic model, at u = 0."""
        return 0.25 if isinstance(self.kernel, ExpLinearLoss | LogisticLoss) else self.curvature_bound


@dataclass(frozen=True)
class CappedPoisson:
    """Counts cut at a declared largest one, Y: φ' = m_Y(e^u) − min(y, Y), m_Y(λ) = E min(Poisson(λ), Y).

    Consistent for the rate of the uncut counts, because cutting is built into the mean. With P_k = P(Poisson(λ) ≤ k):
    m_Y = λP_{Y−2} + Y(1 − P_{Y−1}) and m_Y' = P_{Y−1}, so φ'' = λP_{Y−1} ≥ 0 and 0 ≤ m_Y ≤ Y.
    """

    largest: int

    FARTHEST = 30.0
    """|u| beyond which the rate is taken at this end: there every count is 0, or at least Y."""

    def _rate(self, predictor: Any) -> Any:
        xp = array_module(predictor)
        return xp.exp(xp.clip(predictor, -self.FARTHEST, self.FARTHEST))

    def _below(self, rate: Any) -> Any:
        """P(Poisson(λ) ≤ Y − 1), the upper incomplete gamma function at Y."""
        if array_module(rate) is np:
            return special.gammaincc(self.largest, rate)
        from .compute import jax

        return jax.scipy.special.gammaincc(float(self.largest), rate)

    def slope(self, predictor: Any, response: Any) -> Any:
        xp, rate = array_module(predictor), self._rate(predictor)
        below = self._below(rate)
        at_largest = xp.exp(self.largest * xp.log(rate) - rate - math.lgamma(self.largest + 1))
        return rate * below - self.largest * at_largest + self.largest * (1.0 - below) - response

    def curvature(self, predictor: Any, response: Any) -> Any:
        rate = self._rate(predictor)
        return rate * self._below(rate)


@lru_cache(maxsize=64)
def largest_count_curvature(largest: int) -> float:
    """M = sup_λ λ·P(Poisson(λ) ≤ Y − 1), rounded up: one maximum, between 0 and 2Y + 2."""
    found = optimize.minimize_scalar(
        lambda rate: -rate * special.gammaincc(largest, rate), bounds=(0.0, 2.0 * largest + 2.0), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    return up(-float(found.fun) * (1.0 + 1e-9))
