"""What a chain along public directions must know of a model: a loss of linear predictors with a Lipschitz constant, and
bounded rows.

A record's loss is φ(θᵀx), |φ(u) − φ(u')| ≤ c·‖u − u'‖, one predictor or one for each of K' classes, ‖x‖ ≤ r. Then a
move by Re changes it by at most cR·‖ex‖, which is c·r·R along the worst direction e and 1/√d of that along a usual one
(privacy/averaged_directions.md). Convexity and smoothness are not needed.

| model | c |
| --- | --- |
| any loss of one linear predictor (`Logistic`, `Hinge`, `Quantile`, `HuberRegression`, …) | sup|φ'|, on the prior's ball if it has one |
| `Softmax` | √2, since ‖p − e_y‖ ≤ √2 |
| the β-divergence of two classes (`Bernoulli`) | sup of q(p^{β−1}q + pq^{β−1}), each term at its largest: equal at β = 2, 8/27 |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from onedraw.errors import UnsupportedBudget
from onedraw.models.convex.classification import Softmax
from onedraw.models.convex.linear_model import ConvexModel, LinearModel
from onedraw.models.convex.losses import HingeLoss, HuberisedHingeLoss
from onedraw.models.convex.number_losses import PinballLoss, SmoothedPinballLoss
from onedraw.models.design import EFFECT, NOISE, smallest_curvature
from onedraw.models.likelihood import Bernoulli
from onedraw.models.likelihood.density import check_beta
from onedraw.models.likelihood.likelihood_model import WithLikelihood
from onedraw.models.likelihood.reference_design import ReferenceDesign
from onedraw.privacy.numbers import fraction_up, up

HINGE_WIDTH, PINBALL_WIDTH = 0.5, 0.25
"""Over which a kink is rounded to plan by its curvature, the second in deviations of a residual; nothing is drawn with
it."""

INSTEAD = "Use Logistic, Softmax, Hinge, Quantile or HuberRegression with data_norm=… or bounds=…."


@dataclass(frozen=True)
class BetaLoss:
    """ℓ_β of a likelihood of one linear predictor, as other losses are written."""

    likelihood: Any
    beta: float

    def losses(self, theta: Any, X: Any, y: Any) -> Any:
        return self.likelihood.beta_loss(self.beta, X @ theta, y)


@dataclass(frozen=True)
class PathLoss:
    """``slope`` c, ``row_bound`` r, ``rows`` K'; ``curvature`` λ is the least of the public design, None where it is
    not known."""

    loss: Any
    slope: float
    row_bound: float
    rows: int
    width: int
    curvature: float | None

    @property
    def lipschitz(self) -> float:
        """L = c·r: 2L is how far the gradients of two records can be apart."""
        return fraction_up(Fraction(self.slope) * Fraction(self.row_bound))

    @property
    def dimension(self) -> int:
        return self.rows * self.width


def path_loss(
    model: Any, *, beta: float | None = None, effect: float | None = None, noise: float | None = None
) -> PathLoss:
    """Of a model's own loss, or of the β-divergence of its likelihood; refused where a bound is missing."""
    if not isinstance(model, LinearModel | Softmax):
        raise UnsupportedBudget(
            f"A path of private decisions needs a loss of linear predictors with bounded rows and a Gaussian prior, "
            f"and {type(model).__name__} is none: nothing bounds how far one record moves a decision. {INSTEAD}"
        )
    reach = float(model.row_reach)
    if not math.isfinite(reach):
        raise UnsupportedBudget(
            f"The rows of {type(model).__name__} have no bound (r = ∞), so one record could decide every step. Declare "
            "data_norm=… or bounds=…."
        )
    loss, slope = _own_loss(model) if beta is None else _beta_loss(model, check_beta(beta))
    if not 0.0 < slope < math.inf:
        raise UnsupportedBudget(
            f"The loss of {type(model).__name__} is steeper than any bound (c = {slope:g}) as the predictor grows, "
            "so no weight "
            "is private. Restrict the prior to a ball, Gaussian(scale=1, radius=2), or use HuberRegression."
        )
    rows = len(model.classes) if isinstance(model, Softmax) else 1
    curvature = _curvature(model, beta, effect, noise)
    return PathLoss(loss, slope, reach, rows, model.dimension // rows, curvature)


def _own_loss(model: ConvexModel) -> tuple[Any, float]:
    if isinstance(model, Softmax):
        return model.kernel, up(math.sqrt(2.0))
    lower, upper = model.slope_interval or (-math.inf, math.inf)
    return model.kernel, max(-lower, upper)


def _beta_loss(model: Any, beta: float) -> tuple[Any, float]:
    likelihood = model.likelihood if isinstance(model, WithLikelihood) else None
    if not isinstance(likelihood, Bernoulli):
        raise UnsupportedBudget(
            f"The slope of the β-divergence in the predictor is bounded here for two classes, and "
            f"{type(model).__name__} has "
            "another likelihood or none. Use Logistic, or leave out beta=."
        )
    return BetaLoss(likelihood, beta), bernoulli_slope(beta)


def bernoulli_slope(beta: float) -> float:
    """sup p^{β−1}q² + sup pq^β ≥ sup|dℓ_β/du|, at p = (β−1)/(β+1) and q = β/(β+1); rounded up."""
    first = ((beta - 1.0) / (beta + 1.0)) ** (beta - 1.0) * (2.0 / (beta + 1.0)) ** 2
    second = math.exp(beta * math.log(beta / (beta + 1.0))) / (beta + 1.0)
    return up(first + second)


def _rounded(kernel: Any, noise: float) -> Any:
    """A loss with its kink rounded as the smoothed models are: the curvature of many records, whose kinks lie here and
    there."""
    match kernel:
        case HingeLoss():
            return HuberisedHingeLoss(HINGE_WIDTH)
        case PinballLoss(level=level):
            return SmoothedPinballLoss(level, PINBALL_WIDTH * noise)
    return kernel


def _curvature(model: Any, beta: float | None, effect: float | None, noise: float | None) -> float | None:
    """λ: the least eigenvalue of a record's expected second derivative in the public design."""
    if beta is None:
        return smallest_curvature(
            model, effect or EFFECT, noise or NOISE, kernel=_rounded(model.kernel, noise or NOISE)
        )
    moments = ReferenceDesign(model, effect or EFFECT, noise).moments(beta)
    if moments is None:
        return None
    information = np.asarray(moments[0])
    varying = np.diag(information) > 0.0
    found = float(np.linalg.eigvalsh(information[np.ix_(varying, varying)])[0]) if varying.any() else 0.0
    return found if found > 0.0 else None
