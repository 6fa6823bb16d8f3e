"""The columns' moments first, then a posterior mechanism in the coordinates they give: one budget, two stages.

    mean and second moments of the columns, with noise  →  z = (W(v − m), 1)  →  the inner mechanism on rows z, its prior
    and all its numbers fixed beforehand  →  coefficients of the columns as declared

Real columns neither fill their ranges nor are uncorrelated, and a posterior mechanism pays for the longest row there
could be, or lays out its candidates for rows that never come; in measured coordinates rows are about as long as expected
in every direction. The inner promise holds for every value of the published moments, so the two compose adaptively. What
differs between inner mechanisms: measured_inner.py. Statement, proof and limits: measured_first.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from onedraw.errors import PromiseRefused, WrongCall
from onedraw.models.fit import constants as constant
from onedraw.models.fit.published import Measuring, Published
from onedraw.models.moments.measured_model import MeasuredProblem, MeasuredTarget
from onedraw.models.moments.stage import MomentColumns
from onedraw.models.sums import sum_lattice
from onedraw.plans import Mechanism, Plan, Request
from onedraw.privacy import Assumption, Guarantee, Neighbours, Promise, Provenance
from onedraw.privacy.validation import positive

from .discrete_noise import check_lattice
from .measured_inner import Kind, kind_of
from .moments_stage import MomentsStage, Spending, stage_before
from .noisy_gradient import NoisyGradient
from .stored_plans import mechanism_from_dict, register_mechanism

NOTHING = MomentsStage(0.0, 0.0, 0.0)
"""The columns are taken as declared."""


@dataclass(frozen=True)
class DesignNumbers:
    """What runs before the inner mechanism. Noises are 0 where the columns are taken as declared, r where rows are not weighted."""

    mean_noise: float
    moments_noise: float
    moment_radius: float
    row_bound: float
    prior_deviation: float

    @property
    def moments(self) -> MomentsStage:
        return MomentsStage(self.mean_noise, self.moments_noise, self.moment_radius)

    def to_dict(self) -> dict[str, float]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, float]) -> DesignNumbers | None:
        """None unless every number is there, finite and not negative, and those a promise rests on are above 0."""
        values = {field.name: stored.get(field.name, math.nan) for field in fields(cls)}
        needed = ("prior_deviation", *(("moment_radius",) if values["moments_noise"] else ()))
        in_range = all(value == 0.0 or 1e-75 < value < 1e75 for value in values.values())
        return cls(**values) if in_range and all(values[name] for name in needed) else None


@register_mechanism
@dataclass(frozen=True)
class Measured(Mechanism):
    """``of`` in privately measured coordinates: NoisyGradient, Gibbs, Candidates or BetaDivergence.

    ``share`` of the budget (of μ², or of ε) measures the columns; None: the usual one where public numbers say that the
    moments will stand out of their noise, and none otherwise. 0 takes the columns as declared, and weights their rows all
    the same. ``categories`` are the (start, stop) of 0/1 columns that code one category. The prior is on the coefficients
    of measured columns, N(0, ``prior_scale``²) each (None: 2/r; of a likelihood the number its model has): what the model
    says of declared columns is not used.
    """

    title: ClassVar[str] = "in measured coordinates"
    requires: ClassVar[str] = "measured"
    """The plan *is* an algorithm: `samplers.MeasuredFirst` carries it out."""

    of: Any = field(default_factory=NoisyGradient)
    share: float | None = None
    categories: tuple[tuple[int, int], ...] = ()
    prior_scale: float | None = None

    def __post_init__(self) -> None:
        of = mechanism_from_dict(self.of) if isinstance(self.of, Mapping) else self.of
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "categories", tuple((int(start), int(stop)) for start, stop in self.categories))
        kind_of(of)
        if self.share is not None and not (isinstance(self.share, float | int) and 0.0 <= self.share < 1.0):
            raise WrongCall(
                f"share is the part of the budget that measures the columns, from 0 up to less than 1, but {self.share!r} "
                "came. Leave it out for the usual one."
            )
        if self.prior_scale is not None:
            object.__setattr__(self, "prior_scale", positive("the prior's scale", self.prior_scale))

    @property
    def _kind(self) -> Kind:
        return kind_of(self.of)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "of": self.of.to_dict(), "categories": [list(pair) for pair in self.categories]}

    def closed_form(self, model: Any) -> bool:
        return False

    def default_gamma(self, model: Any, budget: Promise) -> float:
        return float(self.of.default_gamma(model, budget))

    def heading(self, plan: Plan) -> str:
        where = "in measured coordinates" if plan.parameters["moments_noise"] else "with weighted rows"
        return f"{self.of.heading(self.inner(plan))}, {where}"

    # ── from a budget to numbers ───────────────────────────────────────────────────────────────────────────

    def calibrate(self, request: Request) -> Plan:
        kind, columns = self._kind, self._kind.columns(request.model, self.categories)
        numbers = self._numbers(request, columns)
        left = kind.left(request.exact_budget, self._ratios(request, columns, numbers))
        asked = Request(self._model(request, columns, numbers), left, n=request.n, draws=request.draws, records_per_person=request.records_per_person)  # fmt: skip
        return self._plan(request, numbers, self.of.calibrate(asked).parameters)

    def _numbers(self, request: Request, columns: MomentColumns) -> DesignNumbers:
        """Noise, r and prior; without the stage before where its noise would drown most columns."""
        kind, model = self._kind, request.model
        total = kind.total(request.exact_budget)
        share, stage, edge = kind.share(model) if self.share is None else float(self.share), NOTHING, 0.0
        if share:
            spending = Spending(total, kind.pure)
            stage = stage_before(columns, spending, n=request.n, records=request.records_per_person, share=share)
            edge = stage.edge(columns, request.n, pure=kind.pure)
        if self.share is None and edge > constant.LARGEST_EDGE:
            share, stage = 0.0, NOTHING
        row = kind.row_bound(model, columns, request.n, total, share)
        if not (share or row):
            raise PromiseRefused(
                f"With n = {request.n:,} and {request.budget} the columns' moments would drown in their noise, so there is "
                "nothing to measure. Leave out Measured: the mechanism in declared coordinates has the whole budget."
            )
        prior = self.prior_scale or kind.prior_deviation(model, row)
        return DesignNumbers(stage.mean_noise, stage.moments_noise, stage.moment_radius, row, prior)

    # ── from numbers to a promise ──────────────────────────────────────────────────────────────────────────

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        numbers = DesignNumbers.from_dict(parameters)
        if numbers is None or (numbers.row_bound > 0.0) is self._kind.pure:
            raise PromiseRefused(
                "A draw in measured coordinates needs its noises, radius, r and prior; those stated are not."
            )
        if self.prior_scale not in (None, numbers.prior_deviation):
            raise PromiseRefused("The prior stated is not the one the mechanism was made with.")
        return self._plan(request, numbers, parameters)

    def _plan(self, request: Request, numbers: DesignNumbers, parameters: Mapping[str, float]) -> Plan:
        inner = self._inner(request, numbers, parameters)
        stages = numbers.moments.stages(self._kind.columns(request.model, self.categories), pure=self._kind.pure)
        if stages:
            check_lattice([] if self._kind.pure else stages, request.n, request.budget)
        noise = "pure" if self._kind.pure else "Gaussian"
        before = f"the columns' moments ({noise} noise), then, adaptively: " if numbers.moments_noise else ""
        guarantee = Guarantee(
            self._together(request, numbers, inner.guarantee.promise), Neighbours.REPLACE_ONE, request.unit,
            before + inner.guarantee.theorem, (*self._assumptions(request, numbers), *inner.guarantee.assumptions),
        )  # fmt: skip
        return Plan(self, request, tuple({**numbers.to_dict(), **inner.parameters}.items()), guarantee)

    def inner(self, plan: Plan) -> Plan:
        """The plan of the mechanism within, about measured rows."""
        return self._inner(plan.request, _numbers_of(plan), plan.parameters)

    def promise_with(self, plan: Plan, inner: Promise) -> Promise:
        """What the moments and something that keeps ``inner`` for all values of theirs promise together."""
        return self._together(plan.request, _numbers_of(plan), inner)

    def _inner(self, request: Request, numbers: DesignNumbers, parameters: Mapping[str, float]) -> Plan:
        kind, columns = self._kind, self._kind.columns(request.model, self.categories)
        left = kind.left(request.exact_budget, self._ratios(request, columns, numbers))
        within = kind.within(request, self._model(request, columns, numbers), left)
        own = set(numbers.to_dict())
        inner: Plan = self.of.plan(within, {name: value for name, value in parameters.items() if name not in own})
        return inner

    def _together(self, request: Request, numbers: DesignNumbers, inner: Promise) -> Promise:
        columns = self._kind.columns(request.model, self.categories)
        ratios = self._ratios(request, columns, numbers)
        return self._kind.together(ratios, inner) if ratios else inner

    def _ratios(self, request: Request, columns: MomentColumns, numbers: DesignNumbers) -> list[float]:
        """What mean and second moments spend, for a person's records."""
        return numbers.moments.ratios(columns, request.records_per_person, pure=self._kind.pure)

    @staticmethod
    def _assumptions(request: Request, numbers: DesignNumbers) -> tuple[Assumption, ...]:
        enforced = Provenance.ENFORCED
        found = [
            Assumption(
                f"prior of deviation {numbers.prior_deviation:.6g} on coefficients of measured columns", enforced
            )
        ]
        if numbers.moments_noise:
            found.append(Assumption(f"moments of the columns: {sum_lattice.in_words(request.n)}", enforced))
        return tuple(found)

    def sums_exactly(self, plan: Plan) -> bool:
        """The moments always; the draw if it does by itself."""
        return self.inner(plan).sums_exactly

    # ── what runs ──────────────────────────────────────────────────────────────────────────────────────────

    def target(self, plan: Plan, summary: Any) -> MeasuredTarget:
        return MeasuredTarget(self.problem(plan), summary, self.inner(plan))

    def problem(self, plan: Plan) -> MeasuredProblem:
        """Everything public of the stage before, and of the way back to the columns."""
        numbers, columns, pure = _numbers_of(plan), self._kind.columns(plan.model, self.categories), self._kind.pure
        how = Measuring(
            floor=constant.FLOOR * numbers.moments.edge(columns, plan.n, pure=pure),
            row_bound=numbers.row_bound or math.sqrt(columns.layout.width),
            response=columns.response, unmeasured_unit=constant.UNMEASURED_THRESHOLD, threshold=constant.THRESHOLD,
            least_residual=constant.LEAST_RESIDUAL,
        )  # fmt: skip
        scale = float(getattr(plan.model, "response_scale", 1.0))
        return MeasuredProblem(plan.n, columns, numbers.to_dict(), how, pure, scale)

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        numbers, columns = _numbers_of(plan), self._kind.columns(plan.model, self.categories)
        sizes = {
            "mean": columns.count if numbers.mean_noise else 0,
            "moments": columns.entries if numbers.moments_noise else 0,
            "draws": plan.draws * len(plan.model.parameter_names),
        }
        return {name: size for name, size in sizes.items() if size}

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        """All draws, for encoded rows."""
        found = {name: np.asarray(values, dtype=np.float64) for name, values in stages.items()}
        published = Published(np.zeros(0), found.get("mean"), found.get("moments"))
        return self.problem(plan).encoded_draws(published, found["draws"].reshape(plan.draws, -1))

    def _model(self, request: Request, columns: MomentColumns, numbers: DesignNumbers) -> Any:
        measured = numbers.moments_noise > 0.0
        return self._kind.model(request.model, columns, numbers.row_bound, numbers.prior_deviation, measured=measured)


def _numbers_of(plan: Plan) -> DesignNumbers:
    numbers = DesignNumbers.from_dict(plan.parameters)
    assert numbers is not None
    return numbers
