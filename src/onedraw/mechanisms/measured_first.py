"""The columns' moments first, then a posterior mechanism in the coordinates they give: one budget, two stages.

    mean and second moments of the columns, with noise  →  z = (W(v − m), 1)  →  the inner mechanism on rows z, its
    prior and all its numbers fixed beforehand  →  coefficients of the columns as declared

Real columns neither fill their ranges nor are uncorrelated, and a posterior mechanism pays for the longest row there
could be, or lays out its candidates for rows that never come; in measured coordinates rows are about as long as
expected in every direction. The inner promise holds for every value of the published moments, so the two compose
adaptively. What differs between inner mechanisms (both constants hold for every value of the published moments):

| inner mechanism | a record's loss | rows | the moments' noise | together |
| --- | --- | --- | --- | --- |
| NoisyGradient, Gibbs("gdp") | a(z)·φ(zᵀθ, y): convex, gradient at most L·r | weighted to r | Gaussian | μ² adds up |
| Candidates, BetaDivergence | the β-divergence, within Δ whatever the row | as they are | pure | ε adds up |

Statement, proof and limits: measured_first.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.models import BinaryRegression, GaussianRegression
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.models.fit import constants as constant
from onedraw.models.fit.losses import FitLoss
from onedraw.models.fit.problem import Measuring, Published
from onedraw.models.likelihood import Bernoulli, GaussianNoise
from onedraw.models.likelihood.likelihood_model import Linear, WithLikelihood
from onedraw.models.moments.measured import MomentColumns
from onedraw.models.moments.measured_model import MeasuredModel, MeasuredProblem, MeasuredTarget
from onedraw.models.priors import Gaussian
from onedraw.models.sums import exact_sums
from onedraw.plans import Mechanism, Plan, Request
from onedraw.privacy import ApproxDP, Assumption, GaussianDP, Promise, Provenance, PureDP
from onedraw.privacy.numbers import fraction_down, positive, root_up, sum_up

from .beta_divergence import BetaDivergence
from .calibration import MARGIN
from .candidates import Candidates
from .convex_bounds import gdp_mu
from .fit_numbers import Setting, row_bound
from .fits import layout_of
from .gibbs import Gibbs
from .noisy_gradient import NoisyGradient
from .stages import Categories, MomentsStage, Spending, check_lattice, stage_before, stage_ratios

PREDICTOR_DEVIATION = 2.0
"""Under the default prior the predictor of a row of norm r has this standard deviation, as in declared coordinates."""


@dataclass(frozen=True)
class DesignNumbers(MomentsStage):
    """What runs before the inner mechanism; noises are 0 where columns are as declared, r where rows have no weight."""

    row_bound: float = 0.0
    prior_deviation: float = 0.0

    @property
    def complete(self) -> bool:
        return bool(self.prior_deviation and (self.moment_radius or not self.moments_noise))


@dataclass(frozen=True)
class Measured(Mechanism):
    """``of`` in privately measured coordinates: NoisyGradient, Gibbs, Candidates or BetaDivergence.

    ``share`` of the budget (of μ², or of ε) measures the columns; None: the usual one where public numbers say that the
    moments will stand out of their noise, and none otherwise. 0 takes the columns as declared, and weights their rows
    all the same. ``categories`` are the (start, stop) of 0/1 columns that code one category. The prior is on the
    coefficients of measured columns, N(0, ``prior_scale``²) each (None: 2/r; of a likelihood the number its model has):
    what the model says of declared columns is not used.
    """

    title: ClassVar[str] = "in measured coordinates"
    requires: ClassVar[str] = "measured"
    """The plan *is* an algorithm: `samplers.MeasuredFirst` carries it out."""

    of: Mechanism = field(default_factory=NoisyGradient)
    share: float | None = None
    categories: Categories = ()
    prior_scale: Annotated[float | None, partial(positive, "the prior's scale")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        kind_of(self.of)
        if self.share is not None and not (isinstance(self.share, float | int) and 0.0 <= self.share < 1.0):
            raise WrongCall(
                "share is the part of the budget that measures the columns, from 0 up to less than 1, but "
                f"{self.share!r} was given. Leave it out for the usual one."
            )

    @property
    def _kind(self) -> Weighted | Unweighted:
        return kind_of(self.of)

    def default_gamma(self, model: Any, budget: Promise) -> float:
        return float(self.of.default_gamma(model, budget))

    def heading(self, plan: Plan) -> str:
        where = "in measured coordinates" if plan.parameters["moments_noise"] else "with weighted rows"
        return f"{self.of.heading(self.inner(plan))}, {where}"

    def _columns(self, model: Any) -> MomentColumns:
        return self._kind.columns(model, self.categories)

    def calibrate(self, request: Request) -> Plan:
        columns = self._columns(request.model)
        numbers = self._numbers(request, columns)
        left = self._kind.left(request.exact_budget, self._ratios(request, numbers))
        asked = replace(request, model=self._model(request, columns, numbers), budget=left, gamma=0.0)
        return self._plan(request, numbers, self.of.calibrate(asked).parameters)

    def _numbers(self, request: Request, columns: MomentColumns) -> DesignNumbers:
        """Noise, r and prior; without the stage before where its noise would drown most columns."""
        kind, model = self._kind, request.model
        total = kind.total(request.exact_budget)
        share, stage, edge = kind.share(model) if self.share is None else float(self.share), MomentsStage(), 0.0
        if share:
            spending, people = Spending(total, kind.pure), request.records_per_person
            stage, edge = stage_before(columns, spending, n=request.n, records=people, share=share)
        if self.share is None and edge > constant.LARGEST_EDGE:
            share, stage = 0.0, MomentsStage()
        row = kind.row_bound(model, columns, request.n, total, share)
        if not (share or row):
            raise PromiseRefused(
                f"With n = {request.n:,} and {request.budget} the columns' moments would drown in their noise, so there "
                "is nothing to measure. Leave out Measured: the mechanism in declared coordinates has the whole budget."
            )
        prior = self.prior_scale or kind.prior_deviation(model, row)
        return DesignNumbers(stage.mean_noise, stage.moments_noise, stage.moment_radius, row, prior)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        numbers = _numbers_of(parameters)
        if (numbers.row_bound > 0.0) is self._kind.pure or self.prior_scale not in (None, numbers.prior_deviation):
            raise PromiseRefused("The prior or the bound on rows stated are not those of the mechanism as it was made.")
        return self._plan(request, numbers, parameters)

    def _plan(self, request: Request, numbers: DesignNumbers, parameters: Mapping[str, float]) -> Plan:
        inner, pure = self._inner(request, numbers, parameters), self._kind.pure
        stages = numbers.stages(self._columns(request.model), pure=pure)
        if stages:
            check_lattice([] if pure else stages, request.n, request.budget)
        claim = f"prior of deviation {numbers.prior_deviation:.6g} on coefficients of measured columns"
        found, before = [Assumption(claim, Provenance.ENFORCED)], ""
        if numbers.moments_noise:
            lattice = f"moments of the columns: {exact_sums.in_words(request.n)}"
            found.append(Assumption(lattice, Provenance.ENFORCED))
            before = f"the columns' moments ({'pure' if pure else 'Gaussian'} noise), then, adaptively: "
        promise, named = self._together(request, numbers, inner.guarantee.promise), numbers.to_dict()
        theorem, assumed = before + inner.guarantee.theorem, (*found, *inner.guarantee.assumptions)
        return Plan.of(self, request, named | dict(inner.parameters), promise, theorem, assumed)

    def inner(self, plan: Plan) -> Plan:
        """The plan of the mechanism within, about measured rows."""
        return self._inner(plan.request, _numbers_of(plan.parameters), plan.parameters)

    def promise_with(self, plan: Plan, inner: Promise) -> Promise:
        """What the moments and something that keeps ``inner`` for all values of theirs promise together."""
        return self._together(plan.request, _numbers_of(plan.parameters), inner)

    def _inner(self, request: Request, numbers: DesignNumbers, parameters: Mapping[str, float]) -> Plan:
        left = self._kind.left(request.exact_budget, self._ratios(request, numbers))
        within = self._kind.within(request, self._model(request, self._columns(request.model), numbers), left)
        own = set(numbers.to_dict())
        inner: Plan = self.of.plan(within, {name: value for name, value in parameters.items() if name not in own})
        return inner

    def _together(self, request: Request, numbers: DesignNumbers, inner: Promise) -> Promise:
        ratios = self._ratios(request, numbers)
        return self._kind.together(ratios, inner) if ratios else inner

    def _ratios(self, request: Request, numbers: DesignNumbers) -> list[float]:
        """What mean and second moments spend, for a person's records."""
        stages = numbers.stages(self._columns(request.model), pure=self._kind.pure)
        return stage_ratios(stages, request.records_per_person, pure=self._kind.pure)

    def sums_exactly(self, plan: Plan) -> bool:
        """The moments always; the draw if it does by itself."""
        inner = self.inner(plan)
        return bool(inner.mechanism.sums_exactly(inner))

    def target(self, plan: Plan, summary: Any) -> MeasuredTarget:
        inner = self.inner(plan)
        return MeasuredTarget(self.problem(plan), summary, inner.model, partial(inner.mechanism.target, inner))

    def problem(self, plan: Plan) -> MeasuredProblem:
        """Everything public of the stage before, and of the way back to the columns."""
        numbers, columns, pure = _numbers_of(plan.parameters), self._columns(plan.model), self._kind.pure
        how = Measuring(
            floor=constant.FLOOR * numbers.edge(columns, plan.n, pure=pure),
            row_bound=numbers.row_bound or math.sqrt(columns.layout.width),
            response=columns.response, unmeasured_unit=constant.UNMEASURED_THRESHOLD, threshold=constant.THRESHOLD,
            least_residual=constant.LEAST_RESIDUAL,
        )  # fmt: skip
        scale = plan.model.response_scale if isinstance(plan.model, ConvexModel) else 1.0
        return MeasuredProblem(plan.n, columns, numbers.to_dict(), how, pure, scale)

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        numbers, columns = plan.parameters, self._columns(plan.model)
        sizes = {"mean": columns.count, "moments": columns.entries}
        drawn = {"draws": plan.draws * len(plan.model.parameter_names)}
        return {name: size for name, size in sizes.items() if numbers[f"{name}_noise"]} | drawn

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        """All draws, for encoded rows."""
        found = {name: np.asarray(values, dtype=np.float64) for name, values in stages.items()}
        published = Published(np.zeros(0), found.get("mean"), found.get("moments"))
        return self.problem(plan).encoded_draws(published, found["draws"].reshape(plan.draws, -1))

    def _model(self, request: Request, columns: MomentColumns, numbers: DesignNumbers) -> Any:
        measured = numbers.moments_noise > 0.0
        return self._kind.model(request.model, columns, numbers.row_bound, numbers.prior_deviation, measured=measured)


def _numbers_of(parameters: Mapping[str, float]) -> DesignNumbers:
    return DesignNumbers.from_dict(parameters, "A draw in measured coordinates")


# ── what differs between inner mechanisms ────────────────────────────────────────────────────────────────────


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
        return constant.SHARES[model.measured_loss.unit][0]

    def row_bound(self, model: Any, columns: MomentColumns, n: int, total: float, share: float) -> float:
        """r, or 0 where rows are not weighted."""
        setting = Setting(columns.layout, model.measured_loss, n, 1, intervals=False)
        return row_bound(setting, total * math.sqrt(1.0 - share), measured=share > 0.0) * (1.0 + 1e-12)

    def prior_deviation(self, model: Any, row: float) -> float:
        """Of each coefficient of measured columns, unless one was asked for."""
        return PREDICTOR_DEVIATION / row

    def model(
        self, model: Any, columns: MomentColumns, row: float, deviation: float, *, measured: bool
    ) -> MeasuredModel:
        """The inner model."""
        layout, prior = columns.layout, Gaussian(scale=deviation)
        variance = 1.0 if measured else constant.LEAST_SPREAD
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
        return constant.PURE_MOMENTS

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
