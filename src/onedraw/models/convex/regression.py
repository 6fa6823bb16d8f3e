"""Numbers from a linear predictor: least squares, Huber, quantiles, and GLMs with a bounded residual.

A response enters through public bounds only. The Huber and pinball losses are linear in u once y is far enough
away: on a ball, where |u| ≤ B, a response beyond B + τ (Huber) or B + h (quantiles) acts exactly like one at that
distance, since ℓ changes by a constant in θ. Responses are therefore clamped there without changing the law, and
one of 1e300 cannot swallow the others in floating-point sums. Without a ball they are clamped at a distance no
predictor of plausible size comes near (`FAR` prior standard deviations).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from onedraw.errors import InvalidModel
from onedraw.models.fit.losses import FitLoss
from onedraw.models.model import POSITIVE, RATES, Bound, count, number
from onedraw.models.priors import Gaussian
from onedraw.models.responses import Clamped
from onedraw.privacy.numbers import fraction_down, fraction_up, sum_up, text
from onedraw.privacy.perturbed_mode import count_curvature
from onedraw.privacy.stored import frozen_value

from . import number_losses as losses
from .linear_model import LinearModel, enforced_bounds
from .losses import LinearLoss, product_up

QUANTILE_WIDTH = 0.25
"""A quantile's kink is rounded over this many measured residual deviations."""

FAR = 2.0**20
"""Prior standard deviations of the predictor beyond which a response is not told apart from a farther one."""


def between_0_and_1(name: str, value: Any) -> float:
    """A level of a quantile."""
    level = number(name, value)
    if not 0.0 < level < 1.0:
        raise InvalidModel(f"{name} must lie strictly between 0 and 1, such as 0.5 for the median, not {level!r}.")
    return level


@dataclass(frozen=True, repr=False, kw_only=True)
class LeastSquares(LinearModel):
    """½(y − θᵀx)² with |y| ≤ ``response_bound`` Y, on a ball: without one no θ-free bound of anything exists.

    |φ'| = |u − y| ≤ Y + B gives L = (Y + B)r̃. The gradients of two records differ by
    (xxᵀ − x'x'ᵀ)θ − (yx − y'x'), and ‖xxᵀ − x'x'ᵀ‖ ≤ r̃² for two positive matrices of that size, so
    G = (B + 2Y)r̃ < 2L. Smoothness r̃². Δ = (Y+B)²/2; ϱ = 4YB if B ≤ Y, (Y+B)² otherwise.
    """

    kind, title, predicts = "linear", "Linear regression", "number"
    changes = "the expected response"
    kernel = losses.SquaredLoss()

    response_bound: float = field(metadata=POSITIVE)

    @classmethod
    def example(cls, **options: Any) -> Self:
        return super().example(**{"response_bound": 2.0} | options)

    def _check(self) -> None:
        super()._check()
        if self.radius is None:
            raise InvalidModel(
                "LeastSquares needs a prior restricted to a ball: on all of R^d a squared residual has no bound, and no rule "
                "gives a promise. Pass prior=Gaussian(scale=…, radius=R), or use HuberRegression."
            )

    @property
    def response(self) -> Clamped:
        return Clamped(-self.response_bound, self.response_bound)

    @property
    def gradient_difference(self) -> float:
        return product_up(sum_up((self.predictor_bound, 2.0 * self.response_bound)), self.features.reach)


@dataclass(frozen=True, repr=False, kw_only=True)
class OrdinaryLeastSquares(LinearModel):
    """Least squares for |y| ≤ ``response_bound`` Y, on all of R^d: for methods that limit a record's score themselves.

    A squared residual has no bound without a ball, so no rule for posteriors applies; see `LeastSquares` for those.
    """

    kind, title, predicts = "linear", "Linear regression", "number"
    changes = "the expected response"
    kernel = losses.SquaredLoss()

    response_bound: float = field(metadata=POSITIVE)

    @classmethod
    def example(cls, **options: Any) -> Self:
        return super().example(**{"response_bound": 2.0} | options)

    @property
    def response_scale(self) -> float:
        return self.response_bound

    @property
    def response(self) -> Clamped:
        return Clamped(-self.response_bound, self.response_bound)

    @property
    def _bounds(self) -> dict[str, Bound]:
        return enforced_bounds(self)


@dataclass(frozen=True, repr=False, kw_only=True)
class HuberRegression(LinearModel):
    """Squared residuals up to ``threshold`` τ, linear beyond: L = τr̃ (min(τ, Y + B)r̃ on a ball), smoothness r̃².

    ``response_bound`` Y is optional; see the head of this file for what responses are clamped to.
    """

    kind, title, predicts = "huber", "Linear regression (Huber)", "number"
    changes = "the expected response"
    # in units of the declared threshold: nothing of the responses is measured
    measured_loss = FitLoss(losses.HuberLoss(1.0), 1.0, 1.0, "labels")

    threshold: float = field(metadata=POSITIVE)
    response_bound: float | None = field(default=None, metadata=POSITIVE)

    @classmethod
    def example(cls, **options: Any) -> Self:
        return super().example(**{"threshold": 0.7} | options)

    @property
    def kernel(self) -> LinearLoss:
        return losses.HuberLoss(self.threshold)

    @property
    def response_scale(self) -> float:
        return self.threshold

    @property
    def response(self) -> Clamped:
        return _clamped_response(self, self.response_bound, margin=self.threshold)


@dataclass(frozen=True, repr=False, kw_only=True)
class LogCoshRegression(LinearModel):
    """A straight line through numbers by t²·log cosh((y − θᵀx)/t): least squares near it, absolute residuals far from it.

    |y| ≤ ``response_bound`` Y. A fit measures the threshold t; where a fixed one is needed it is Y/4.
    """

    kind, title, predicts = "linear", "Linear regression (robust)", "number"
    changes = "the response's centre"
    besides = "; far responses count less than in least squares"
    fit_loss = FitLoss(losses.LogCoshLoss(1.0), 1.0, 1.0, "measured")

    response_bound: float = field(metadata=POSITIVE)

    @classmethod
    def example(cls, **options: Any) -> Self:
        return super().example(**{"response_bound": 2.0} | options)

    @property
    def kernel(self) -> LinearLoss:
        return losses.LogCoshLoss(self.response_bound / 4.0)

    @property
    def response_scale(self) -> float:
        return self.response_bound

    @property
    def response(self) -> Clamped:
        return Clamped(-self.response_bound, self.response_bound)


@dataclass(frozen=True, repr=False, kw_only=True)
class Quantile(LinearModel):
    """The ``level`` q quantile by the pinball loss: L = max(q, 1−q)·r̃, not smooth.

    ``smoothing`` h averages the loss over shifts in [−h, h]: the same L, smoothness r̃²/2h, for gradient samplers.
    With an intercept G = max(r̃, 2·max(q, 1−q)·r): two records of slopes −q and 1−q differ by at most 1.
    """

    kind, title, predicts = "quantile", "Quantile regression", "number"
    changes = "the response's quantile"

    level: float = field(default=0.5, metadata={"check": between_0_and_1})
    smoothing: float | None = field(default=None, metadata=POSITIVE)
    response_bound: float | None = field(default=None, metadata=POSITIVE)

    @property
    def kernel(self) -> LinearLoss:
        if self.smoothing is None:
            return losses.PinballLoss(self.level)
        return losses.SmoothedPinballLoss(self.level, self.smoothing)

    @property
    def fit_loss(self) -> FitLoss | None:
        """With a declared range of responses; the kink is rounded over a quarter of the measured residual deviation."""
        if self.response_bound is None:
            return None
        steepest = max(self.level, fraction_up(1 - Fraction(self.level)))
        loss = losses.SmoothedPinballLoss(self.level, QUANTILE_WIDTH)
        return FitLoss(loss, steepest, loss.curvatures(math.inf, (-1.0, 1.0))[1], "measured", self.level)

    @property
    def response_scale(self) -> float:
        return self.response_bound or 1.0

    @property
    def response(self) -> Clamped:
        return _clamped_response(self, self.response_bound, margin=self.smoothing or 0.0)


@dataclass(frozen=True, repr=False, kw_only=True)
class CountRegression(LinearModel):
    """Counts whose rate is e^{θᵀx}, cut at a declared ``largest`` one, Y: consistent, because the mean is cut as well.

    φ' = E min(Poisson(e^u), Y) − min(y, Y), |φ'| ≤ Y; smooth. For fits; see `CappedPoissonLoss`.
    """

    kind, title, predicts = "poisson", "Regression of counts", "count"
    factor = RATES
    changes = "the logarithm of the expected count"

    largest: int = field(metadata={"check": partial(count, least=1)})

    @classmethod
    def example(cls, **options: Any) -> Self:
        return super().example(**{"largest": 3} | options)

    @property
    def besides(self) -> str:  # type: ignore[override]  # an attribute of all others
        return f". Counts above {self.largest:,} were read as {self.largest:,}"

    @property
    def kernel(self) -> LinearLoss:
        return losses.CappedPoissonLoss(self.largest)

    @property
    def fit_loss(self) -> FitLoss:
        return FitLoss(self.kernel, float(self.largest), count_curvature(self.largest), "counts")

    @property
    def response(self) -> Clamped:
        return Clamped(0.0, float(self.largest))


@frozen_value
class BoundedResidualGLM(LinearModel):
    """A generalised linear model with canonical link whose residual |y − g⁻¹(θᵀx)| is at most ``residual_bound``.

    Geumlek et al., Theorems 16 and 17: ∇ℓ = (g⁻¹(u) − y)x, so L = residual_bound·r̃. They assume the residual's
    bound; here it is enforced: the mean lies in [g⁻¹(−B), g⁻¹(B)] for |u| ≤ B = Rr̃, and responses are clamped to
    [g⁻¹(B) − residual_bound, g⁻¹(−B) + residual_bound]. A bound that leaves no response is refused.
    Smoothness r̃²·sup A'': ¼ (bernoulli), 1 (gaussian), e^B (poisson).

    ``family``: "bernoulli" (responses in [0, 1]; no ball needed for a residual of 1), "poisson", "gaussian".
    """

    title = "Generalised linear model"

    family: str
    residual_bound: float = field(metadata=POSITIVE)

    FAMILIES: ClassVar[dict[str, type[losses.CanonicalLoss]]] = {
        "bernoulli": losses.BernoulliLoss,
        "poisson": losses.PoissonLoss,
        "gaussian": losses.GaussianLoss,
    }
    SUPPORT: ClassVar[dict[str, tuple[float, float]]] = {
        "bernoulli": (0.0, 1.0),
        "poisson": (0.0, math.inf),
        "gaussian": (-math.inf, math.inf),
    }

    def __init__(
        self, family: str, features: int, *, residual_bound: float, data_norm: float | None = None, bounds: Any = None,
        scaled: bool = False, missing: Any = None, intercept: bool = True, feature_names: Any = None, prior: Gaussian | None = None,
    ) -> None:  # fmt: skip
        if family not in self.FAMILIES:
            raise InvalidModel(f"family must be one of {', '.join(self.FAMILIES)}, but {family!r} was given.")
        self._set(family=family, features=features, residual_bound=residual_bound, prior=prior)
        self.__post_init__(data_norm, bounds, scaled, missing, intercept, feature_names)

    @classmethod
    def example(cls, **options: Any) -> Self:
        declared: dict[str, Any] = {"family": "bernoulli", "residual_bound": 1.0} | options
        return cls(features=2, data_norm=1.5, intercept=False, prior=Gaussian(scale=2.0, radius=1.5), **declared)

    def _check(self) -> None:
        super()._check()
        reach = self.predictor_bound
        if self.family != "bernoulli" and not reach <= 500.0:
            raise InvalidModel(
                f"The means of a {self.family} model are bounded only if the predictor is: with |θᵀx| ≤ {text(reach)} no "
                "residual is. Pass prior=Gaussian(scale=…, radius=R), so that R times the row's norm is at most 500."
            )
        lower, upper = self._response_range()
        if not lower < upper:
            least, largest = self.kernel.means(reach)
            raise InvalidModel(
                f"With means between {least:.6g} and {largest:.6g} no response has a residual of at most "
                f"{text(self.residual_bound)} for every θ. Pass a residual_bound above {(largest - least) / 2:.6g}, or a "
                "smaller radius."
            )

    def _response_range(self) -> tuple[float, float]:
        least, largest = self.kernel.means(self.predictor_bound)
        support = self.SUPPORT[self.family]
        lower = max(support[0], fraction_up(Fraction(largest) - Fraction(self.residual_bound)))
        upper = min(support[1], fraction_down(Fraction(least) + Fraction(self.residual_bound)))
        return lower, upper

    @property
    def kernel(self) -> losses.CanonicalLoss:
        return self.FAMILIES[self.family]()

    @property
    def response(self) -> Clamped:
        return Clamped(*self._response_range())


def _clamped_response(model: LinearModel, declared: float | None, *, margin: float) -> Clamped:
    """±min(declared, B + margin), or ±(FAR + margin) where there is no ball."""
    if model.radius is not None:
        distance = sum_up((model.predictor_bound, margin))
    else:
        spread = float(np.linalg.norm(model.prior.location(model.dimension))) + model.prior.strong_convexity**-0.5
        distance = margin + FAR * spread * model.features.reach
    limit = distance if declared is None else min(declared, distance)
    return Clamped(-limit, limit)
