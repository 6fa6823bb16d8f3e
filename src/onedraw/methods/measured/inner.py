"""What differs between the mechanisms that draw in measured coordinates: columns, losses, noise and what promises add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods.beta_divergence.mechanism import BetaDivergence
from onedraw.methods.calibration import MARGIN
from onedraw.methods.candidates.mechanism import Candidates
from onedraw.methods.convex_bounds import gdp_mu
from onedraw.methods.fits import layout_of
from onedraw.methods.gibbs.mechanism import Gibbs
from onedraw.methods.gibbs.noisy_gradient import NoisyGradient
from onedraw.methods.stages import (
    LEAST_SPREAD,
    Categories,
    row_bound,
)
from onedraw.models import BinaryRegression, GaussianRegression
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.models.fit.losses import FitLoss
from onedraw.models.likelihood import Bernoulli, GaussianNoise
from onedraw.models.likelihood.likelihood_model import Linear, WithLikelihood
from onedraw.models.moments.measured import MomentColumns
from onedraw.models.moments.measured_model import MeasuredModel
from onedraw.models.priors import Gaussian
from onedraw.plans import Request
from onedraw.privacy import ApproxDP, GaussianDP, Promise, PureDP
from onedraw.privacy.numbers import fraction_down, root_up, sum_up

if TYPE_CHECKING:
    pass

MOMENTS_SHARE, PURE_SHARE = 0.15, 0.25
"""Of μ², or of ε, for the moments. The noise of a pure promise grows with the number of columns squared: there they need more."""


PREDICTOR_DEVIATION = 2.0
"""Under the default prior the predictor of a row of norm r has this standard deviation, as in declared coordinates."""


def kind_of(of: Any) -> Weighted | Unweighted:
    """By the inner mechanism; `WrongCall` for one that has none."""
    if isinstance(of, NoisyGradient) or (isinstance(of, Gibbs) and of.rule == "gdp"):
        return Weighted(of)
    if isinstance(of, BetaDivergence) and of.proven:
        return Unweighted(of)
    if isinstance(of, Candidates) and isinstance(of.of, BetaDivergence) and of.publish != "picks":
        return Unweighted(of)
    gibbs, candidates = "Gibbs() with rule gdp", "Candidates() of a β-divergence, one estimate"
    instead = gibbs if isinstance(of, Gibbs) else candidates if isinstance(of, Candidates) else "NoisyGradient()"
    raise WrongCall(
        "Measured(of=…) takes NoisyGradient(), Gibbs(), Candidates() or BetaDivergence(), the last two by the "
        f"β-divergence, but {type(of).__name__} is another mechanism, has other settings, or publishes all its picks. "
        f"Use {instead}, or leave out Measured: then it keeps the columns' declared coordinates."
    )


@dataclass(frozen=True)
class Weighted:
    """A convex loss of one predictor with Mallows' weights, and Gaussian noise throughout."""

    pure: ClassVar[bool] = False

    of: Any

    def columns(self, model: Any, categories: Categories) -> MomentColumns:
        """What is measured; a model that has no place in measured coordinates is refused."""
        loss = model.measured_loss if isinstance(model, ConvexModel) else None
        if not isinstance(loss, FitLoss):
            raise UnsupportedBudget(
                f"{type(model).__name__} has no loss of one predictor, convex, smooth and of bounded slope, that could "
                "be put into measured coordinates. Use Logistic, LogCoshRegression, HuberRegression, Quantile, "
                "HuberisedHinge or CountRegression."
            )
        return MomentColumns(layout_of(model, categories), loss.unit == "measured")

    def total(self, budget: Promise) -> float:
        """μ, or ε: what both stages may spend together."""
        return gdp_mu(budget)

    def share(self, model: Any) -> float:
        """The usual part of it for the moments."""
        return MOMENTS_SHARE

    def row_bound(self, model: Any, columns: MomentColumns, n: int, total: float, share: float) -> float:
        """r, or 0 where rows are not weighted."""
        return row_bound(columns.layout, n, total * math.sqrt(1.0 - share), measured=share > 0.0) * (1.0 + 1e-12)

    def prior_deviation(self, model: Any, row: float) -> float:
        """Of each coefficient of measured columns, unless one was asked for."""
        return PREDICTOR_DEVIATION / row

    def model(
        self, model: Any, columns: MomentColumns, row: float, deviation: float, *, measured: bool
    ) -> MeasuredModel:
        """The inner model."""
        layout, prior = columns.layout, Gaussian(scale=deviation)
        variance = 1.0 if measured else LEAST_SPREAD
        return MeasuredModel(model.measured_loss, layout.columns, layout.intercept, row, prior, variance)

    def left(self, budget: Promise, ratios: Sequence[float]) -> Promise:
        """What the inner mechanism is calibrated to; refused where the moments leave nothing."""
        left = gdp_mu(budget) ** 2 - sum(ratio**2 for ratio in ratios)
        if left <= 0.0:
            raise _nothing_left(budget)
        return GaussianDP(math.sqrt(left) * (1.0 - MARGIN))

    def within(self, request: Request, model: Any, left: Promise) -> Request:
        """The whole's budget, which a part keeps as well: its δ carries the variates, its γ a chain's distance."""
        return replace(request, model=model)

    def together(self, ratios: Sequence[float], inner: Promise) -> Promise:
        """The adaptive composition of the moments and what keeps ``inner`` whatever they are."""
        assert isinstance(inner, GaussianDP)
        return GaussianDP(root_up(sum((Fraction(ratio) ** 2 for ratio in (*ratios, inner.mu)), Fraction(0))))


@dataclass(frozen=True)
class Unweighted:
    """The β-divergence of a likelihood, bounded whatever the row; no Gaussian enters any stage."""

    pure: ClassVar[bool] = True

    of: Any

    def columns(self, model: Any, categories: Categories) -> MomentColumns:
        known = isinstance(model, WithLikelihood) and isinstance(model.likelihood, Bernoulli | GaussianNoise)
        if not (known and isinstance(model.predictor_function, Linear) and model.row_blocks == 1):
            raise UnsupportedBudget(
                f"{type(model).__name__} has no likelihood of one predictor that could be put into measured coordinates. "
                "Use Logistic, BinaryRegression or GaussianRegression(variance_floor=…), with bounds on their features."
            )
        if not model.features.bounded:
            raise UnsupportedBudget(
                "Columns without bounds cannot be measured privately: one record could move their moments by any "
                "amount. Pass bounds=(lo, hi) and scaled=True, or leave out Measured, which such a model does not need."
            )
        return MomentColumns(layout_of(model, categories))

    def total(self, budget: Promise) -> float:
        if not isinstance(budget, PureDP | ApproxDP):
            raise UnsupportedBudget(
                f"A β-divergence in measured coordinates counts in ε, and {budget} does not. Use PureDP(epsilon) or "
                "ApproxDP(epsilon, delta), or Measured(of=NoisyGradient()), which keeps this kind."
            )
        return budget.stated_epsilon

    def share(self, model: Any) -> float:
        return PURE_SHARE

    def row_bound(self, model: Any, columns: MomentColumns, n: int, total: float, share: float) -> float:
        return 0.0

    def prior_deviation(self, model: Any, row: float) -> float:
        """The number the model has for declared columns, which are no longer than measured ones."""
        if getattr(model.prior, "scale", None) is None:
            raise UnsupportedBudget(
                "The prior has a scale for each declared column, which means nothing for measured ones. Pass "
                "Measured(…, prior_scale=…)."
            )
        return float(model.prior.scale)

    def model(self, model: Any, columns: MomentColumns, row: float, deviation: float, *, measured: bool) -> Any:
        rows: dict[str, Any] = {"features": columns.layout.columns, "intercept": columns.layout.intercept}
        if isinstance(model.likelihood, Bernoulli):
            return BinaryRegression(**rows, prior=Gaussian(scale=deviation))
        if model.variance is not None:
            return GaussianRegression(**rows, variance=model.variance, prior=Gaussian(scale=deviation))
        return GaussianRegression(
            **rows, variance_floor=model.variance_floor, prior=replace(model.prior, scale=deviation)
        )

    def left(self, budget: Promise, ratios: Sequence[float]) -> Promise:
        left = Fraction(self.total(budget)) - sum((Fraction(ratio) for ratio in ratios), Fraction(0))
        if left <= 0:
            raise _nothing_left(budget)
        return PureDP(fraction_down(left))

    def within(self, request: Request, model: Any, left: Promise) -> Request:
        """A chain pays for its distance γ with the whole's δ."""
        if isinstance(self.of, Candidates) or not isinstance(request.budget, ApproxDP):
            return replace(request, model=model, budget=left, gamma=0.0)
        return replace(request, model=model, budget=ApproxDP(left.pure_epsilon, request.budget.stated_delta))

    def together(self, ratios: Sequence[float], inner: Promise) -> Promise:
        return PureDP(sum_up([*ratios, inner.pure_epsilon]))


def _nothing_left(budget: Promise) -> PromiseRefused:
    return PromiseRefused(
        f"Measuring the columns leaves nothing of {budget} for the draw. Use a smaller share, or none."
    )
