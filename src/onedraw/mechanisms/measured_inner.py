"""What a posterior mechanism needs in measured coordinates, by its kind: the moments' noise, its model and its budget.

| inner mechanism | a record's loss | rows | the moments' noise | together |
| --- | --- | --- | --- | --- |
| NoisyGradient, Gibbs("gdp") | a(z)·φ(zᵀθ, y): convex, gradient at most L·r | weighted to r | Gaussian | μ² adds up |
| Candidates, BetaDivergence | the β-divergence, within Δ whatever the row | as they are | pure | ε adds up |

Both constants hold for every value of the published moments, so each kind composes with them adaptively (measured_first.md).
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.models import BinaryRegression, GaussianRegression
from onedraw.models.fit import constants as constant
from onedraw.models.fit.losses import FitLoss
from onedraw.models.likelihood.densities import Bernoulli, GaussianNoise
from onedraw.models.likelihood.predictors import Linear
from onedraw.models.moments.measured_model import MeasuredModel
from onedraw.models.moments.stage import MomentColumns
from onedraw.models.priors import Gaussian
from onedraw.plans import Request
from onedraw.privacy import ApproxDP, GaussianDP, Promise, PureDP
from onedraw.privacy.rounding import fraction_down, root_up, sum_up

from .beta_divergence import BetaDivergence
from .candidates import Candidates
from .fit_numbers import Setting, row_bound
from .gibbs import Gibbs
from .gibbs_rules import gdp_mu
from .noisy_gradient import NoisyGradient
from .perturbed_mode import MARGIN, layout_of

Categories = tuple[tuple[int, int], ...]

PREDICTOR_DEVIATION = 2.0
"""Under the default prior the predictor of a row of norm r has this standard deviation, as in declared coordinates."""


class Kind(abc.ABC):
    """One row of the table above, for one inner mechanism."""

    pure: ClassVar[bool]

    def __init__(self, of: Any) -> None:
        self.of = of

    @abc.abstractmethod
    def columns(self, model: Any, categories: Categories) -> MomentColumns:
        """What is measured; a model that has no place in measured coordinates is refused."""

    @abc.abstractmethod
    def total(self, budget: Promise) -> float:
        """μ, or ε: what both stages may spend together."""

    @abc.abstractmethod
    def share(self, model: Any) -> float:
        """The usual part of it for the moments."""

    @abc.abstractmethod
    def row_bound(self, model: Any, columns: MomentColumns, n: int, total: float, share: float) -> float:
        """r, or 0 where rows are not weighted."""

    @abc.abstractmethod
    def prior_deviation(self, model: Any, row: float) -> float:
        """Of each coefficient of measured columns, unless one was asked for."""

    @abc.abstractmethod
    def model(self, model: Any, columns: MomentColumns, row: float, deviation: float, *, measured: bool) -> Any:
        """The inner model."""

    @abc.abstractmethod
    def left(self, budget: Promise, ratios: Sequence[float]) -> Promise:
        """What the inner mechanism is calibrated to; refused where the moments leave nothing."""

    @abc.abstractmethod
    def within(self, request: Request, model: Any, left: Promise) -> Request:
        """What the inner plan is asked for."""

    @abc.abstractmethod
    def together(self, ratios: Sequence[float], inner: Promise) -> Promise:
        """The adaptive composition of the moments and what keeps ``inner`` whatever they are."""


def kind_of(of: Any) -> Kind:
    """By the inner mechanism; `WrongCall` for one that has none."""
    if isinstance(of, NoisyGradient) or (isinstance(of, Gibbs) and of.rule == "gdp"):
        return Weighted(of)
    if isinstance(of, BetaDivergence) and of.proven:
        return Unweighted(of)
    if isinstance(of, Candidates) and isinstance(of.of, BetaDivergence) and of.publish != "picks":
        return Unweighted(of)
    instead: dict[Any, str] = {
        Gibbs: "Gibbs() with its usual rule, gdp",
        Candidates: "Candidates() of a β-divergence, one estimate published",
    }
    raise WrongCall(
        "Measured(of=…) takes NoisyGradient(), Gibbs(), Candidates() or BetaDivergence(), the last two by the β-divergence, "
        f"but {type(of).__name__} came with other settings, or publishes all its picks. Use "
        f"{instead.get(type(of), 'NoisyGradient()')}, or leave out Measured: then it keeps the columns' declared coordinates."
    )


class Weighted(Kind):
    """A convex loss of one predictor with Mallows' weights, and Gaussian noise throughout."""

    pure = False

    def columns(self, model: Any, categories: Categories) -> MomentColumns:
        loss = getattr(model, "measured_loss", None)
        if not isinstance(loss, FitLoss):
            raise UnsupportedBudget(
                f"{type(model).__name__} has no loss of one predictor, convex, smooth and of bounded slope, that could be put "
                "into measured coordinates. Use Logistic, LogCoshRegression, HuberRegression, Quantile, HuberisedHinge or CountRegression."
            )
        return MomentColumns(layout_of(model, categories), loss.unit == "measured")

    def total(self, budget: Promise) -> float:
        return gdp_mu(budget)

    def share(self, model: Any) -> float:
        return constant.SHARES[model.measured_loss.unit][0]

    def row_bound(self, model: Any, columns: MomentColumns, n: int, total: float, share: float) -> float:
        setting = Setting(columns.layout, model.measured_loss, n, 1, intervals=False)
        return row_bound(setting, total * math.sqrt(1.0 - share), measured=share > 0.0) * (1.0 + 1e-12)

    def prior_deviation(self, model: Any, row: float) -> float:
        return PREDICTOR_DEVIATION / row

    def model(
        self, model: Any, columns: MomentColumns, row: float, deviation: float, *, measured: bool
    ) -> MeasuredModel:
        layout, variance = columns.layout, 1.0 if measured else constant.LEAST_SPREAD
        prior = Gaussian(scale=deviation)
        return MeasuredModel(model.measured_loss, layout.columns, layout.intercept, row, prior, variance)

    def left(self, budget: Promise, ratios: Sequence[float]) -> Promise:
        left = gdp_mu(budget) ** 2 - sum(ratio**2 for ratio in ratios)
        if left <= 0.0:
            raise _nothing_left(budget)
        return GaussianDP(math.sqrt(left) * MARGIN)

    def within(self, request: Request, model: Any, left: Promise) -> Request:
        """The whole's budget, which a part of it keeps as well: its δ must carry the draw's variates, its γ a chain's distance."""
        return replace(request, model=model)

    def together(self, ratios: Sequence[float], inner: Promise) -> Promise:
        assert isinstance(inner, GaussianDP)
        return GaussianDP(root_up(sum((Fraction(ratio) ** 2 for ratio in (*ratios, inner.mu)), Fraction(0))))


class Unweighted(Kind):
    """The β-divergence of a likelihood, bounded whatever the row; no Gaussian enters any stage."""

    pure = True

    def columns(self, model: Any, categories: Categories) -> MomentColumns:
        likelihood = getattr(model, "likelihood", None)
        linear = isinstance(getattr(model, "predictor_function", None), Linear) and model.row_blocks == 1
        if not (linear and isinstance(likelihood, Bernoulli | GaussianNoise)):
            raise UnsupportedBudget(
                f"{type(model).__name__} has no likelihood of one predictor that could be put into measured coordinates. Use "
                "Logistic, BinaryRegression or GaussianRegression(variance_floor=…), with bounds on their features."
            )
        if not model.features.bounded:
            raise UnsupportedBudget(
                "Columns without bounds cannot be measured privately: one record could move their moments by any amount. "
                "Pass bounds=(lo, hi) and scaled=True to the model, or leave out Measured, which such a model does not need."
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
        return constant.PURE_MOMENTS

    def row_bound(self, model: Any, columns: MomentColumns, n: int, total: float, share: float) -> float:
        return 0.0

    def prior_deviation(self, model: Any, row: float) -> float:
        """The number the model has for declared columns, which are no longer than measured ones."""
        if getattr(model.prior, "scale", None) is None:
            raise UnsupportedBudget(
                "The prior has a scale for each declared column, which means nothing for measured ones. Pass Measured(…, "
                "prior_scale=…)."
            )
        return float(model.prior.scale)

    def model(self, model: Any, columns: MomentColumns, row: float, deviation: float, *, measured: bool) -> Any:
        rows: dict[str, Any] = {"features": columns.layout.columns, "intercept": columns.layout.intercept}
        if isinstance(model.likelihood, Bernoulli):
            return BinaryRegression(**rows, prior=Gaussian(scale=deviation))
        known = model.variance
        prior: Any = Gaussian(scale=deviation) if known is not None else replace(model.prior, scale=deviation)
        return GaussianRegression(**rows, variance_floor=None if known is not None else model.variance_floor, variance=known, prior=prior)  # fmt: skip

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
        f"Measuring the columns leaves nothing of {budget} for the draw. Calibrate with a smaller share, or leave it out."
    )
