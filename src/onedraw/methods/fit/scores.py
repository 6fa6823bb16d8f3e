"""Scores: what a record adds to the equations that a regression solves.

    Σ z·ψ(zᵀθ, y) = 0,        ψ = −φ'(u, y), the loss's slope in the linear predictor u

| kind | response | ψ | solved by |
| --- | --- | --- | --- |
| number | a number within public bounds | y − u | least squares |
| label | ±1 | y·P(other class) | maximum likelihood |
| count | 0 … Y, larger ones read as Y | y − eᵘ | maximum likelihood of a Poisson count |
| quantile | a number within public bounds | τ if y > u, otherwise τ − 1 | the quantile |
| margin | ±1 | y·min(1, (1 − yu)/h), at least 0 | a support vector classifier, its kink rounded over h |
| classes | 0 … K − 1 | unit vector of y − P, in contrasts (class_scores.py) | maximum likelihood of several classes |

Responses enter moments as r = y/scale − shift in [−1, 1]; several classes do not.

**Robust lines** limit ψ of numbers and counts to t·tanh(ψ/t), which for numbers is the slope of log-cosh, and shorten all rows by
a rule that is the same at every n and ε: kinds.py, which has the constants of each kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import UnsupportedBudget
from onedraw.models import (
    CountRegression,
    HuberisedHinge,
    LogCoshRegression,
    Logistic,
    OrdinaryLeastSquares,
    Quantile,
    Softmax,
)
from onedraw.models.convex.losses import SIGNS, Interval, LogisticLoss, array_module
from onedraw.models.convex.number_losses import PinballLoss, PoissonLoss, SquaredLoss
from onedraw.privacy.numbers import down, up

from .kinds import FIXED_LENGTH, LIMITS, Constants, Kind, constants_of

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


ROBUST_INFORMATION = 0.606
"""Mean of sech² of a standard normal residual: the information of log-cosh at one deviation; its ψ² has the rest of 1."""


ROBUST_LINES = {
    "number": "a robust line for{}", "label": "a robust line for the log-odds of{}",
    "count": "a robust line for the logarithm of the rate of{}", "classes": "robust lines for the scores of the classes of{}",
}  # fmt: skip
"""What fixed lengths and limits estimate, in words; {} is what is explained."""

USUAL = {"number": "least squares", "quantile": "the unweighted quantile", "margin": "the unweighted loss"}
"""What people usually mean instead; for others maximum likelihood."""


@dataclass(frozen=True)
class Score:
    """A score with the constants that sizes are chosen by.

    Parameters
    ----------
    kind : str
        "number", "label", "count", "quantile", "margin" or "classes".
    kernel : LinearLoss
        The loss whose slope the score is.
    scale, shift : float
        Bring responses into [−1, 1].
    information, variance : float
        Of a record in standardized coordinates, what sizes are chosen for: its information, and ψ².
    robust : bool
        Whether it estimates a robust line: lengths are fixed, and ψ of numbers and counts is limited.
    """

    kind: Kind
    kernel: Any
    scale: float = 1.0
    shift: float = 0.0
    information: float = 1.0
    variance: float = 1.0
    robust: bool = False

    @property
    def of_classes(self) -> bool:
        """Return whether the response is one of several classes."""
        return self.kind == "classes"

    @property
    def blocks(self) -> int:
        """Return the number of coefficient vectors: one, or the contrasts of several classes."""
        return 1

    @property
    def level_size(self) -> int:
        """Return how many numbers the response's level is."""
        return 1

    @property
    def level_reach(self) -> float:
        """Return what one record moves the sum of its level by."""
        return LEVEL_REACH

    @cached_property
    def constants(self) -> Constants:
        return constants_of(self.kind, fixed=self.fixed)

    @property
    def fixed(self) -> bool:
        """Return whether scores are shortened to the same length at every n and ε."""
        return self.robust or self.kind == "margin"

    @property
    def limit(self) -> float:
        """Return the deviations at which ψ is made to end; infinity where it is left as it is."""
        return LIMITS.get(self.kind, math.inf) if self.robust else math.inf

    @property
    def longest(self) -> float:
        """Return the largest |ψ| that any record can have; infinity if there is none."""
        if self.kind == "quantile":
            level = float(self.kernel.level)
            return max(level, 1.0 - level)
        return 1.0 if self.kind in ("label", "margin") else self.limit

    @property
    def fixed_beta(self) -> float:
        """Return the fixed length of scores, over √p."""
        return FIXED_LENGTH * self.longest

    @property
    def continuous(self) -> bool:
        """Return whether responses are numbers that are standardized by their residual deviation."""
        return self.kind in ("number", "quantile")

    @property
    def in_moments(self) -> bool:
        """Return whether the response is measured with the columns' moments."""
        return True

    @property
    def estimand(self) -> str:
        """Return what solving for the score estimates, in words."""
        return self.estimand_of()

    def estimand_of(self, target: str | None = None) -> str:
        """Return what solving for the score estimates about this column, in words."""
        of = f" of {target}" if target else ""
        if self.kind == "margin":
            return f"coefficients{of} that minimize a hinge loss over rows that count less far out"
        line = "a robust line for the " if self.robust else "the "
        if self.kind == "quantile":
            level = float(self.kernel.level)
            return f"coefficients of {line}{'median' if level == 0.5 else f'{level:g}-quantile'}{of}"
        if self.robust:
            words = ROBUST_LINES[self.kind].format(f" {target}" if target else "")
            return f"coefficients of {words.removesuffix(' for').removesuffix(' of')}"
        if self.kind == "count":
            cut = f"counts above {2.0 * self.scale:g} read as that"
            return f"maximum-likelihood coefficients of a Poisson regression, {cut}{of}"
        return f"{'least-squares' if self.kind == 'number' else 'maximum-likelihood'} coefficients{of}"

    @property
    def estimand_note(self) -> str:
        """Return how that differs from what people usually mean, in words; empty where it does not."""
        if not self.fixed:
            return ""
        far = "Rows and residuals" if self.limit < math.inf else "Rows"
        return (
            f"{far} far out count less, by a rule that does not depend on n or ε. Where the model does not hold, these coefficients "
            f"differ from those of {USUAL.get(self.kind, 'maximum likelihood')} by an amount that does not shrink with n. It can be several standard errors."
        )

    @property
    def linear(self) -> bool:
        """Return whether the expected information is the same at every coefficient vector."""
        return self.continuous

    @property
    def likelihood(self) -> bool:
        """Return whether it is the score of a likelihood that is not linear in the coefficients."""
        return self.kind in ("label", "count", "classes") and not self.fixed

    @property
    def variance_follows(self) -> bool:
        """Return whether a response's variance follows from its mean: that of a class does, and counts may scatter more or less."""
        return self.likelihood and self.kind != "count"

    @property
    def quadratic(self) -> bool:
        """Return whether the score itself is linear in the coefficients."""
        return self.kind == "number" and not self.robust

    @property
    def flat(self) -> bool:
        """Return whether ψ² and the information vary alike for all rows, as far as public numbers say."""
        return self.kind in ("quantile", "margin") or (self.kind == "number" and self.robust)

    @property
    def largest_curvature(self) -> float:
        """Return the largest information of a record, in units of the score."""
        if self.kind == "margin":
            return float(self.kernel.curvatures(math.inf, SIGNS)[1])
        found = {"number": 1.0, "label": 0.25, "count": LARGEST_INFORMATION, "quantile": 0.5 / WINDOW, "classes": 0.5}
        return found[self.kind]

    def respond(self, response: Any, centre: Any, unit: Any) -> Any:
        """Return the response as the loss reads it, from r in [−1, 1]."""
        if self.continuous:
            return (response - centre) / unit
        return response if self.kind in ("label", "margin") else (response + self.shift) * self.scale

    # Of records, as JAX arrays: one record a column.

    def predictor(self, theta: Any, z: Any) -> Any:
        """Return the linear predictors of rows z."""
        return theta @ z

    def slope(self, u: Any, y: Any, score_scale: Any) -> Any:
        """Return ψ."""
        psi = -self.kernel.slope(u, y) / score_scale
        return psi if self.limit == math.inf else self.limit * array_module(psi).tanh(psi / self.limit)

    def longest_at(self, u: Any, psi: Any) -> Any:
        """Return the largest |ψ| over the responses that a record with this predictor could have; None if its row is not weighted."""
        if self.kind == "label":
            return array_module(psi).maximum(abs(psi), 1.0 - abs(psi))
        return self.longest if self.fixed else None

    def curvature(self, u: Any, y: Any, score_scale: Any) -> Any:
        """Return the information of records."""
        xp = array_module(u)
        if self.kind == "quantile":
            return xp.where(abs(y - u) <= WINDOW, 0.5 / WINDOW, 0.0)
        found = self.kernel.curvature(u, y) / score_scale
        if self.limit == math.inf:
            return found
        return found * (1.0 - xp.tanh(self.kernel.slope(u, y) / (score_scale * self.limit)) ** 2)

    def times(self, psi: Any, z: Any) -> Any:
        """Return z·ψ."""
        return z * psi

    # What published moments imply.

    def expected_information(self, theta: Array, spread: Array, intercept: bool, score_scale: float) -> Array:
        """Return a record's mean information for normal rows with these second moments and, last, an intercept."""
        size, slopes = len(theta), theta[: len(spread)]
        moments = np.append(spread, np.ones(size - len(spread)))
        if self.linear or self.flat:
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

    def mean_weight(self, information: Array, spread: Array, intercept: bool) -> float:
        """Return the mean weight of a record in an expected information."""
        return float(information[-1, -1] if intercept else np.trace(information) / max(spread.sum(), 1e-9))


LEVEL_REACH = 2.0
"""What a record moves the sum of responses in [−1, 1] by."""


def score_of(model: Any, *, robust: bool = False) -> Score:
    """Return the score of a model, or that of its robust line; a model that has none is refused with those that have."""
    match model:
        case OrdinaryLeastSquares() | LogCoshRegression():
            found = Score("number", SquaredLoss(), model.response_bound)
            if robust or isinstance(model, LogCoshRegression):
                return replace(found, information=ROBUST_INFORMATION, variance=1.0 - ROBUST_INFORMATION, robust=True)
            return found
        case Logistic() if isinstance(model.kernel, LogisticLoss):
            return Score("label", model.kernel, information=0.15, variance=0.15, robust=robust)
        case HuberisedHinge():
            return Score("margin", model.kernel, information=0.3, variance=0.5)
        case CountRegression():
            return Score("count", RateLoss(model.largest), model.largest / 2.0, 1.0, robust=robust)
        case Quantile() if model.response_bound is not None:
            level = model.level
            return Score(
                "quantile", PinballLoss(level), model.response_bound, information=0.4, variance=level * (1.0 - level), robust=robust
            )  # fmt: skip
        case Softmax():
            from .class_scores import class_score

            return class_score(len(model.classes), robust=robust)
    raise UnsupportedBudget(
        f"{type(model).__name__} has no score that averaged steps can solve for. Use OrdinaryLeastSquares, LogCoshRegression, "
        "Logistic(loss='logistic'), Softmax, HuberisedHinge, CountRegression, or Quantile with a response_bound."
    )
