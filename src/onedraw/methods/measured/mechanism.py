"""The columns' moments first, then a posterior mechanism in the coordinates they give: one budget, two stages.

    mean and second moments of the columns, with noise  →  z = (W(v − m), 1)  →  the inner mechanism on rows z, its
    prior and all its numbers fixed beforehand  →  coefficients of the columns as declared

Real columns neither fill their ranges nor are uncorrelated, and a posterior mechanism pays for the longest row there
could be; in measured coordinates rows are about as long as
expected in every direction. A record's loss is a(z)·φ(zᵀθ, y), convex, with rows weighted to r, so that its gradient is
at most L·r for every value of the published moments. The inner promise holds for each of these values, so the two
compose adaptively: μ² adds up.

Statement, proof and limits: proof.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from onedraw.errors import CertificateRejected, PromiseRefused, WrongCall
from onedraw.methods.base import Mechanism, SecondMoments
from onedraw.methods.draws.law import design_of
from onedraw.methods.expectation import Expectation
from onedraw.methods.fits import second_moments_of
from onedraw.methods.gibbs.noisy_gradient import NoisyGradient
from onedraw.methods.measured.inner import EARLIER, Weighted, check_inner
from onedraw.methods.stages import (
    LARGEST_EDGE,
    Categories,
    MomentsStage,
    Spending,
    check_lattice,
    stage_before,
    stage_ratios,
)
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.models.fit.problem import FLOOR, Measuring, Published
from onedraw.models.moments.measured import MomentColumns
from onedraw.models.moments.measured_model import MeasuredProblem, MeasuredTarget
from onedraw.models.sums import exact_sums
from onedraw.plans import Plan, Request
from onedraw.privacy import Assumption, Promise, Provenance
from onedraw.privacy.numbers import positive

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

    from .run import MeasuredFirst


@dataclass(frozen=True)
class DesignNumbers(MomentsStage):
    """What runs before the inner mechanism; noises are 0 where columns are as declared."""

    row_bound: float = 0.0
    prior_deviation: float = 0.0

    @property
    def complete(self) -> bool:
        return bool(self.prior_deviation and (self.moment_radius or not self.moments_noise))


@dataclass(frozen=True)
class Measured(Mechanism):
    """A noisy gradient (``of``) in privately measured coordinates.

    ``share`` of the budget (of μ²) measures the columns; None: the usual one where public numbers say that the
    moments will stand out of their noise, and none otherwise. 0 takes the columns as declared, and weights their rows
    all the same. ``categories`` are the (start, stop) of 0/1 columns that code one category. The prior is on the
    coefficients of measured columns, N(0, ``prior_scale``²) each (None: 2/r):
    what the model says of declared columns is not used.
    """

    title: ClassVar[str] = "in measured coordinates"
    requires: ClassVar[str] = "measured"
    """The plan *is* an algorithm: `methods.measured.run` carries it out."""

    of: Mechanism = field(default_factory=NoisyGradient)
    share: float | None = None
    categories: Categories = ()
    prior_scale: Annotated[float | None, partial(positive, "the prior's scale")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_inner(self.of)
        if self.share is not None and not (isinstance(self.share, float | int) and 0.0 <= self.share < 1.0):
            raise WrongCall(
                "share is the part of the budget that measures the columns, from 0 up to less than 1, but "
                f"{self.share!r} was given. Leave it out for the usual one."
            )

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        """Refuse those of earlier versions with other mechanisms within, with the remedy."""
        inner = values.get("of")
        if isinstance(inner, Mapping) and inner.get("name") in ("Gibbs", "Candidates", "BetaDivergence"):
            raise CertificateRejected(EARLIER)
        return super()._from_values(values)

    @property
    def _kind(self) -> Weighted:
        return Weighted()

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
            spending, people = Spending(total, False), request.records_per_person
            stage, edge = stage_before(columns, spending, n=request.n, records=people, share=share)
        if self.share is None and edge > LARGEST_EDGE:
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
        if numbers.row_bound <= 0.0 or self.prior_scale not in (None, numbers.prior_deviation):
            raise PromiseRefused("The prior or the bound on rows stated are not those of the mechanism as it was made.")
        return self._plan(request, numbers, parameters)

    def _plan(self, request: Request, numbers: DesignNumbers, parameters: Mapping[str, float]) -> Plan:
        inner = self._inner(request, numbers, parameters)
        stages = numbers.stages(self._columns(request.model), pure=False)
        if stages:
            check_lattice(stages, request.n, request.budget)
        claim = f"prior of deviation {numbers.prior_deviation:.6g} on coefficients of measured columns"
        found, before = [Assumption(claim, Provenance.ENFORCED)], ""
        if numbers.moments_noise:
            lattice = f"moments of the columns: {exact_sums.in_words(request.n)}"
            found.append(Assumption(lattice, Provenance.ENFORCED))
            before = "the columns' moments (Gaussian noise), then, adaptively: "
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
        stages = numbers.stages(self._columns(request.model), pure=False)
        return stage_ratios(stages, request.records_per_person, pure=False)

    def sums_exactly(self, plan: Plan) -> bool:
        """The moments always; the draw if it does by itself."""
        inner = self.inner(plan)
        return bool(inner.mechanism.sums_exactly(inner))

    def target(self, plan: Plan, summary: Any) -> MeasuredTarget:
        inner = self.inner(plan)
        return MeasuredTarget(self.problem(plan), summary, inner.model, partial(inner.mechanism.target, inner))

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        from .expected_error import error_in_measured_coordinates

        return error_in_measured_coordinates(plan, design_of(plan, effect=effect, noise=noise))

    def own_sampler(self) -> type[MeasuredFirst]:
        from .run import MeasuredFirst  # which only a draw needs

        return MeasuredFirst

    def problem(self, plan: Plan) -> MeasuredProblem:
        """Everything public of the stage before, and of the way back to the columns."""
        numbers, columns = _numbers_of(plan.parameters), self._columns(plan.model)
        how = Measuring(
            floor=FLOOR * numbers.edge(columns, plan.n, pure=False),
            row_bound=numbers.row_bound,
            response=columns.response,
        )
        scale = plan.model.response_scale if isinstance(plan.model, ConvexModel) else 1.0
        return MeasuredProblem(plan.n, columns, numbers.to_dict(), how, False, scale)

    def second_moments(self, plan: Plan, stages: Mapping[str, Any]) -> SecondMoments | None:
        return second_moments_of(self.problem(plan), stages)

    @property
    def measures_columns_first(self) -> bool:
        return True

    def measures_columns(self, plan: Plan) -> bool:
        return plan.parameters["moments_noise"] > 0.0

    def why_no_interval(self, plan: Plan) -> str:
        return "neither one draw nor several in the same measured coordinates show how noisy they are; a fit has standard errors"

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

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import measured_case

        return measured_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


def _numbers_of(parameters: Mapping[str, float]) -> DesignNumbers:
    return DesignNumbers.from_dict(parameters, "A draw in measured coordinates")
