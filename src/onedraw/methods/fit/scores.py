"""Scores: what a record adds to the equations that a regression solves.

    Σ z·ψ(zᵀθ, y) = 0,        ψ = −φ'(u, y), the loss's slope in the linear predictor u

| kind | response | ψ | solved by |
| --- | --- | --- | --- |
| number | a number within public bounds | y − u | least squares |
| label | ±1 | y·P(other class) | maximum likelihood |
| count | 0 … Y, larger ones read as Y | y − eᵘ | maximum likelihood of a Poisson count |
| quantile | a number within public bounds | τ if y > u, otherwise τ − 1 | the quantile |

Responses enter moments as r = y/scale − shift in [−1, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import UnsupportedBudget
from onedraw.models import CountRegression, Logistic, OrdinaryLeastSquares, Quantile
from onedraw.models.convex.losses import Interval, LinearLoss, LogisticLoss, array_module
from onedraw.models.convex.number_losses import PinballLoss, PoissonLoss
from onedraw.privacy.numbers import down, up

Kind = Literal["number", "label", "count", "quantile"]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
WEIGHTS = WEIGHTS / WEIGHTS.sum()

WINDOW = 0.5
"""Half-width, in residual deviations, of the window in which the density at a quantile is counted."""

LARGEST_INFORMATION = 4.0
"""Information of a count record, in units of the score's variance, beyond which its row is shortened."""


LARGEST_RATE = 8.0
"""Beyond this many times the largest count, which no count can have, Poisson's likelihood goes on as a parabola."""


@dataclass(frozen=True)
class RateLoss(PoissonLoss):
    """Poisson's negative log-likelihood e^u − yu, with its last curvature from e^u = 8·largest on: no slope overflows."""

    largest: int

    @classmethod
    def example(cls) -> Self:
        return cls(5)

    @property
    def farthest(self) -> float:
        return math.log(LARGEST_RATE * self.largest)

    def value(self, predictor: Any, response: Any) -> Any:
        beyond = array_module(predictor).maximum(predictor - self.farthest, 0.0)
        return self.curvature(predictor, response) * (1.0 + beyond + 0.5 * beyond**2) - response * predictor

    def mean(self, predictor: Any) -> Any:
        beyond = array_module(predictor).maximum(predictor - self.farthest, 0.0)
        return self.curvature(predictor, 0.0) * (1.0 + beyond)

    def curvature(self, predictor: Any, response: Any) -> Any:
        xp = array_module(predictor)
        return xp.exp(xp.minimum(predictor + 0.0 * response, self.farthest))

    def link(self, mean: float) -> float:
        last = LARGEST_RATE * self.largest
        return super().link(mean) if mean <= last else self.farthest + mean / last - 1.0

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return (down(math.exp(-reach)), up(math.exp(min(reach, self.farthest))))


@dataclass(frozen=True)
class Score:
    """A score with the constants that sizes are chosen by.

    Parameters
    ----------
    kind : str
        "number", "label", "count" or "quantile".
    kernel : LinearLoss
        The loss whose slope the score is.
    scale, shift : float
        Bring responses into [−1, 1].
    information : float
        Information of a record in standardized coordinates that sizes are chosen for.
    """

    kind: Kind
    kernel: LinearLoss
    scale: float = 1.0
    shift: float = 0.0
    information: float = 1.0

    @property
    def continuous(self) -> bool:
        """Return whether responses are numbers that are standardized by their residual deviation."""
        return self.kind in ("number", "quantile")

    @property
    def estimand(self) -> str:
        """Return what solving for the score estimates, in words."""
        if self.kind == "quantile":
            level = float(self.kernel.level)  # type: ignore[attr-defined]
            return "coefficients of the median" if level == 0.5 else f"coefficients of the {level:g}-quantile"
        if self.kind == "count":
            return f"maximum-likelihood coefficients of a Poisson regression, counts above {2.0 * self.scale:g} read as that"
        return "least-squares coefficients" if self.kind == "number" else "maximum-likelihood coefficients"

    @property
    def linear(self) -> bool:
        """Return whether the expected information is the same at every coefficient vector."""
        return self.continuous

    @property
    def largest_curvature(self) -> float:
        """Return the largest information of a record, in units of the score."""
        return {"number": 1.0, "label": 0.25, "count": LARGEST_INFORMATION, "quantile": 0.5 / WINDOW}[self.kind]

    def respond(self, response: Any, centre: Any, unit: Any) -> Any:
        """Return the response as the loss reads it, from r in [−1, 1]."""
        if self.continuous:
            return (response - centre) / unit
        return response if self.kind == "label" else (response + self.shift) * self.scale

    def expected_information(self, theta: Array, spread: Array, intercept: bool, score_scale: float) -> Array:
        """Return a record's mean information for normal rows with these second moments and, last, an intercept."""
        size, slopes = len(theta), theta[: len(spread)]
        moments = np.append(spread, np.ones(size - len(spread)))
        if self.kind == "number":
            return np.asarray(np.diag(moments))
        if self.kind == "quantile":
            return np.asarray(self.information * np.diag(moments))
        along = spread * slopes
        deviation = max(float(slopes @ along), 1e-12) ** 0.5
        level = theta[-1] if intercept else 0.0
        weights = WEIGHTS * self.kernel.curvature(level + deviation * NODES, np.zeros_like(NODES)) / score_scale
        mean, first, second = weights.sum(), weights @ NODES, weights @ (NODES**2 - 1.0)
        direction = along / deviation
        found = mean * np.diag(moments)
        found[: len(spread), : len(spread)] += second * np.outer(direction, direction)
        if intercept:
            found[: len(spread), -1] = found[-1, : len(spread)] = first * direction
        return np.asarray(found)


def score_of(model: Any) -> Score:
    """Return the score of a model; one that has none is refused with those that have."""
    match model:
        case OrdinaryLeastSquares():
            return Score("number", model.kernel, model.response_bound)
        case Logistic() if isinstance(model.kernel, LogisticLoss):
            return Score("label", model.kernel, information=0.15)
        case CountRegression():
            return Score("count", RateLoss(model.largest), model.largest / 2.0, 1.0)
        case Quantile() if model.response_bound is not None:
            return Score("quantile", PinballLoss(model.level), model.response_bound, information=0.4)
    raise UnsupportedBudget(
        f"{type(model).__name__} has no score that averaged steps can solve for. Use OrdinaryLeastSquares, "
        "Logistic(loss='logistic'), CountRegression, or Quantile with a response_bound."
    )
