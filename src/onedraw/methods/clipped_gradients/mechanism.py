"""Clipped gradients: a private predictor of classes, counts or numbers, by averaged full-batch steps on clipped gradients.

The level, scales, steps and a temperature: every part adds Gaussian noise to a sum of vectors of bounded norm, and what it is
computed at was published before. So all of it is GaussianDP(μ) with μ² the sum over the parts. Theorem and proof: proof.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from onedraw.arrays import Array
from onedraw.errors import InvalidModel, PromiseRefused, UnsupportedBudget
from onedraw.methods.fits import COMPLETE, CompleteCases, layout_of
from onedraw.methods.stages import Categories, check_lattice, largest_total, stage_ratios, together
from onedraw.models.sums import exact_sums
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import Assumption, GaussianDP, Provenance, PureDP

from .coordinates import Problem
from .responses import response_of
from .result import ClippedResult, Published
from .run import ClippedSteps, ClippedTarget
from .sizes import TEMPERATURES, ClippedNumbers, Setting, numbers_for, stages_of

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

NAME = "Clipped gradients"

FIXED = "the columns, their bounds and levels, the response's bounds or classes"
"""What the caller fixes without looking at the records."""

NO_SLOPES = (
    "All coefficients of columns are 0 because the noise was larger than what the columns say: every record gets the same "
    "prediction. This does not show that the columns have no effect."
)
"""What a release says whose temperature is 0."""


@dataclass(frozen=True)
class ClippedGradients(CompleteCases):
    """Estimate a predictor of classes, counts or numbers; its coefficients are biased and have no intervals.

    Parameters
    ----------
    categories : tuple of (int, int)
        (start, stop) of 0/1 columns that code one category. A record has the level whose column is largest, and none if no column
        is above the middle of its range.
    """

    title: ClassVar[str] = "clipped gradients"
    noun: ClassVar[str] = "estimate"
    requires: ClassVar[str] = "clipped-gradients"
    whole_sums: ClassVar[bool] = True
    no_interval: ClassVar[str] = (
        "clipped gradients are for prediction: clipping biases coefficients, and nothing published says by how much. "
        "A fit has standard errors where n and ε allow them"
    )

    categories: Categories = ()

    def heading(self, plan: Plan) -> str:
        return "clipped gradient steps (for prediction: no intervals; clipping biases coefficients)"

    def calibrate(self, request: Request) -> Plan:
        setting = self.problem_setting(request)
        total = largest_total(lambda mu: promise_of(setting, numbers_for(setting, mu)).implies(request.exact_budget))
        if total is None:
            raise PromiseRefused(
                f"No clipped gradients keep {request.budget} with n = {request.n:,} and {request.records_per_person} record(s) "
                "per person. Use a larger budget."
            )
        return self._plan(request, setting, numbers_for(setting, total))

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        numbers = ClippedNumbers.from_dict(parameters, NAME)
        return self._plan(request, self.problem_setting(request), numbers, numbers.named_as(parameters))

    def problem_setting(self, request: Request) -> Setting:
        """Return what the sizes depend on; refuse what clipped gradients do not estimate."""
        response, layout = response_of(request.model), layout_of(request.model, self.categories)
        if not (layout.intercept and layout.columns):
            raise InvalidModel(
                "Clipped gradients begin with the level, which is the intercept of a model with columns. Pass intercept=True."
            )
        if isinstance(request.budget, PureDP):
            raise UnsupportedBudget(
                f"Clipped gradients add Gaussian noise, which keeps no {request.budget}. Use a budget with a δ, GaussianDP or "
                "ZCDP."
            )
        if request.draws != 1:
            raise UnsupportedBudget(
                "Clipped gradients publish one estimate, and several under one budget would each be worse. Leave out draws."
            )
        sensitivity = response.sensitivity
        people, skips = request.records_per_person, request.model.skips
        return Setting(layout, response.kind, response.outputs, sensitivity, request.n, people, skips)

    def _plan(
        self, request: Request, setting: Setting, numbers: ClippedNumbers, stated: dict[str, float] | None = None
    ) -> Plan:
        unfit = (numbers.square_noise and setting.kind != "count") or (
            numbers.center_noise and not setting.is_centered_last
        )
        if unfit:  # their sensitivities are those of one number
            raise PromiseRefused(
                f"{NAME} measure the square of counts and the mean score of two classes, and of nothing else."
            )
        check_lattice(stages_of(setting, numbers), request.n, request.budget)
        claims = [
            f"each record's gradient of the slopes is shortened to {numbers.slope_bound:.6g}, that of the intercepts to "
            f"{numbers.intercept_bound:.6g}, in each of {numbers.count} steps",
            exact_sums.in_words(request.n),
            *(["a record has at most one level of a category"] if self.categories else []),
            *([COMPLETE] if setting.skips else []),
        ]
        enforced = [Assumption(claim, Provenance.ENFORCED) for claim in claims]
        theorem = (
            "clipped gradients: Gaussian noise on sums of bounded norm, each adaptive on those before "
            "(methods/clipped_gradients/proof.md)"
        )
        assumptions = (*fixed_in_advance(request, FIXED), *enforced)
        return Plan.of(self, request, stated or numbers.to_dict(), promise_of(setting, numbers), theorem, assumptions)

    def own_sampler(self) -> type[ClippedSteps]:
        return ClippedSteps

    def target(self, plan: Plan, summary: Any) -> ClippedTarget:
        return ClippedTarget(self.problem(plan), summary)

    def problem(self, plan: Plan) -> Problem:
        """Return everything public, from the plan alone."""
        setting = self.problem_setting(plan.request)
        numbers = ClippedNumbers.from_dict(plan.parameters, NAME)
        return Problem(setting.layout, response_of(plan.model), plan.n, numbers, setting.records)

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        setting, numbers = self.problem_setting(plan.request), plan.parameters
        sizes = {
            "known": 1, "level": setting.outputs, "square": 1, "mean": setting.layout.columns, "spread": setting.columns,
            "slopes": setting.slopes, "intercepts": setting.outputs, "center": 1, "temperature": TEMPERATURES,
        }  # fmt: skip
        left_out = {
            name for name in ("known", "square", "mean", "spread", "center") if not numbers.get(f"{name}_noise")
        }
        return {name: size for name, size in sizes.items() if name not in left_out}

    def result(self, plan: Plan, stages: Mapping[str, Any]) -> ClippedResult:
        """Return the predictor for encoded rows."""
        return ClippedResult(self.problem(plan), Published.from_dict(stages))

    def note(self, plan: Plan, stages: Mapping[str, Any]) -> str:
        """Return that the slopes were set to 0, if they were: such zeros are no estimates."""
        return "" if not stages or self.result(plan, stages).temperature else NO_SLOPES

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array:
        return self.result(plan, stages).estimate

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import clipped_case

        return clipped_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


def promise_of(setting: Setting, numbers: ClippedNumbers) -> GaussianDP:
    """Return what these numbers promise for a person's records."""
    found = together(stage_ratios(stages_of(setting, numbers), setting.records, pure=False), pure=False)
    assert isinstance(found, GaussianDP)
    return found
