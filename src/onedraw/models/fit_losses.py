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

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from .losses import ExpLinearLoss, HuberisedHingeLoss, LogisticLoss, array_module

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

    blocks: ClassVar[int] = 1
    """Coefficient vectors in a mode; several classes have more (`fit_classes`)."""

    @property
    def spends(self) -> str:
        """Which shares of a budget its stages have (`fit_constants.SHARES`)."""
        if isinstance(self.kernel, HuberisedHingeLoss):
            return "hinge"
        return self.unit if self.level is None else "quantile"

    @property
    def relief(self) -> tuple[float, float] | None:
        """(m, s) of a loss that bends only where it is not steep, φ'' = m(1 − ρ)(s + ρ), ρ = |φ'|/L: 1 − ρ² for log-cosh, ρ(1 − ρ) for
        logistic (perturbed_mode.md, Theorem 4)."""
        if self.sides == "two-sided":
            return self.curvature_bound, 1.0
        return (1.0, 0.0) if isinstance(self.kernel, LogisticLoss) else None

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

    def largest(self, of: Literal["information", "curvature", "variability"]) -> float:
        """The largest ``information`` (¼ for the logistic model, at u = 0), curvature, or square of a slope."""
        if of == "variability":
            return self.slope_bound**2
        logistic = isinstance(self.kernel, ExpLinearLoss | LogisticLoss)
        return 0.25 if of == "information" and logistic else self.curvature_bound
