"""The perturbed mode: the minimum of a weighted convex loss with one random linear term, in measured coordinates, for pure ε.

    θ* = argmin Σ a(z_i)·φ(z_iᵀθ, y_i) + (Λ/2)‖θ‖² + bᵀθ,        b of density ∝ e^{−‖b‖/s}

One ε, up to three stages: the mean and second moments of the columns, the mode, and the information at it, each adaptive on what
was published before. What is published is an estimate with its covariance, not a posterior draw. Theorem, proof and what runs:
privacy/perturbed_mode.md; which numbers, and why those: numbers.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from onedraw.errors import CertificateRejected, PromiseRefused, UnsupportedBudget
from onedraw.methods.fits import FitMechanism, layout_of
from onedraw.methods.perturbed_mode.expected_error import mode_error
from onedraw.methods.perturbed_mode.numbers import (
    FitNumbers,
    Setting,
    least_ridge,
    least_tolerance,
    measuring,
    numbers_for,
)
from onedraw.methods.stages import LARGEST_EDGE, Categories, Stage, apart, check_lattice, largest_total, stage_ratios
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.models.fit.losses import robust_note, robust_words
from onedraw.models.fit.problem import FitProblem, FitTarget, Published
from onedraw.models.fit.result import FitResult
from onedraw.models.sums import exact_sums
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import ApproxDP, Assumption, Promise, Provenance, PureDP, RenyiDP
from onedraw.privacy.numbers import fraction_up, sum_up, up
from onedraw.privacy.perturbed_mode import tilted_epsilon

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

    from .run import Fit

FIXED = "the columns, their bounds and levels, the response's bounds or classes"
"""What the caller fixes without looking at the records."""

LARGEST_EDGE_OF_NUMBERS = 0.8
"""For numbers moments are measured up to this edge of their noise: they also give the response's centre and residual deviation, which
would have to be guessed."""

EARLIER = (
    "This fit is a perturbed mode of an earlier version of onedraw, with other noise and other rules, so this version cannot derive its "
    "promise again. Verify it with the version that made it, which the certificate names under software. Ledgers go on counting what it cost."
)


@dataclass(frozen=True)
class PerturbedMode(FitMechanism):
    """A fit with standard errors for one spend of pure ε.

    ``intervals``: None measures the information where public numbers say that it will stand out of its noise, True
    always, False never. ``robust`` measures the curvature itself instead of the model's expected one. ``measured``:
    None measures the columns' moments where public numbers say that they will stand out, False takes the columns as
    declared. ``categories`` are the (start, stop) of 0/1 columns that code one category: at most one of them is 1.
    ``prior`` adds the model's Gaussian prior. A budget with a δ is kept by pure ε as well; `AveragedSteps` makes better use of it.
    """

    title: ClassVar[str] = "perturbed mode"
    interval_words: ClassVar[str] = (
        "They are computed from what the release itself measured. If the model is wrong, they are about the coefficients of that "
        "kind of model that fit best, as the fit weighs the records."
    )
    whole_sums: ClassVar[bool] = True
    for_pure_budgets: ClassVar[bool] = True
    requires: ClassVar[str] = "perturbed-mode"
    """The plan *is* an algorithm: only `methods.perturbed_mode.run` carries it out."""

    intervals: bool | None = None
    robust: bool = False
    measured: bool | None = None
    categories: Categories = ()
    prior: bool = False

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        """Refuse those of earlier versions, which said whether noise was to be pure, with the remedy."""
        if "pure" in values:
            raise CertificateRejected(EARLIER)
        return super()._from_values(values)

    def heading(self, plan: Plan) -> str:
        return "noise in the equations it solves"

    def estimand(self, plan: Plan, target: str | None = None) -> str:
        return robust_words(self.problem(plan).loss, target)

    def estimand_note(self, plan: Plan) -> str:
        return robust_note(self.problem(plan).loss)

    def calibrate(self, request: Request) -> Plan:
        setting = self.setting(request)
        return self._plan(request, setting, self._numbers(setting, pure_epsilon(request.exact_budget)))

    def _numbers(self, setting: Setting, epsilon: float) -> FitNumbers:
        """The numbers that spend ε: without stage one where its noise would drown most columns, without standard errors where they
        would drown."""
        largest = LARGEST_EDGE_OF_NUMBERS if setting.moment_columns.response else LARGEST_EDGE
        intervals = self.intervals is not False
        numbers = numbers_for(setting, epsilon, measured=self.measured is not False, intervals=intervals)
        measured = self.measured is not False
        if self.measured is None and numbers.edge(setting.moment_columns, setting.n, pure=True) > largest:
            measured, numbers = False, numbers_for(setting, epsilon, measured=False, intervals=intervals)
        noise = exact_sums.matrix_deviation(numbers.information_noise, setting.width, pure=True)
        if self.intervals is None and setting.shortage(noise) > 1.0:  # its share is better spent elsewhere
            return numbers_for(setting, epsilon, measured=measured, intervals=False)
        return numbers

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        numbers, setting = FitNumbers.from_dict(parameters, "A perturbed mode"), self.setting(request)
        row = numbers.row_bound
        certain = least_tolerance(setting, row, numbers.ridge)
        if numbers.tolerance < certain * (1.0 - 1e-9) or numbers.ridge < least_ridge(setting, row) * (1.0 - 1e-9):
            raise PromiseRefused(
                f"A gradient of {numbers.tolerance:.3g} at a ridge of {numbers.ridge:.3g} cannot be certified in double "
                f"precision; {certain:.3g} can. State the plan's own numbers."
            )
        return self._plan(request, setting, numbers)

    def setting(self, request: Request) -> Setting:
        """Layout, loss and n of a request; what cannot be fitted so is refused."""
        model = request.model
        loss = model.fit_loss if isinstance(model, ConvexModel) else None
        if loss is None:
            raise UnsupportedBudget(
                f"{type(model).__name__} has no loss that a perturbed mode can minimise: it must be convex, smooth and "
                "of bounded slope. Use Logistic, LogCoshRegression, Quantile, HuberisedHinge or CountRegression."
            )
        if not isinstance(request.budget, PureDP | ApproxDP | RenyiDP):
            raise UnsupportedBudget(
                f"A perturbed mode keeps pure ε, which would waste most of {request.budget}. Use a budget in ε."
            )
        if request.draws != 1:
            raise UnsupportedBudget(
                "A perturbed mode is published once: its normal posterior gives as many draws as anybody wants, for "
                "nothing. Leave out draws, and call release.posterior(size)."
            )
        return Setting(layout_of(model, self.categories), loss, request.n, request.records_per_person, self.robust)

    def _plan(self, request: Request, setting: Setting, numbers: FitNumbers) -> Plan:
        check_lattice([], request.n, request.budget)
        kappa = setting.loss.volume_cost(numbers.row_bound, numbers.ridge)
        claims = [
            f"rows enter with weight min(1, r²/‖z‖²), r = {numbers.row_bound:.6g}",
            f"the mode is found to a gradient of norm at most {numbers.tolerance:.3g}, checked on exact sums",
            "a mode too far away to be checked in double precision is cut to a public ball",
            exact_sums.in_words(request.n),
            *(["columns of one category are at least 0 and of norm at most 1"] if self.categories else []),
        ]
        enforced = tuple(Assumption(claim, Provenance.ENFORCED) for claim in claims)
        return Plan.of(
            self, request, {**numbers.to_dict(), "kappa": setting.k * kappa}, promise_of(setting, numbers),
            "perturbed mode: ε = 2Lr/s + κ, the pull and the volume of a record (privacy/perturbed_mode.md)",
            (*fixed_in_advance(request, FIXED), *enforced),
        )  # fmt: skip

    def target(self, plan: Plan, summary: Any) -> FitTarget:
        return FitTarget(self.problem(plan), summary)

    def expected_errors(self, plan: Plan, **design: float) -> tuple[float, float, float]:
        expected = mode_error(self.problem(plan), **design)
        return expected.private, expected.sampling, expected.bias

    def expected_column_error(
        self, plan: Plan, *, named: bool = False, share: float | None = None, **design: float
    ) -> tuple[float, float, float]:
        """Return it for the slopes alone; no larger ε is known to give an interval that the plan does not."""
        expected = mode_error(self.problem(plan), True, **design)
        return expected.private, expected.sampling, math.inf if self.why_no_interval(plan) else math.nan

    def own_sampler(self) -> type[Fit]:
        from .run import Fit  # which only a draw needs

        return Fit

    def problem(self, plan: Plan) -> FitProblem:
        """Everything public of the fit, from the plan alone."""
        numbers, setting = FitNumbers.from_dict(plan.parameters, "A perturbed mode"), self.setting(plan.request)
        return FitProblem(
            plan.n, setting.layout, setting.loss, numbers.to_dict(), measuring(setting, numbers), self.robust,
            plan.model.response_scale, plan.model.prior if self.prior else None,
        )  # fmt: skip

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        setting, numbers = self.setting(plan.request), plan.parameters
        columns, entries = setting.moment_columns, setting.width * (setting.width + 1) // 2
        sizes = {"mean": columns.count, "moments": columns.entries, "mode": setting.width}
        sizes |= {"information": entries, "variability": entries}
        return {name: size for name, size in sizes.items() if numbers[f"{name}_noise"]}

    def result(self, plan: Plan, stages: Mapping[str, Any]) -> FitResult:
        """Estimate, covariance and all that follows from what was published, for encoded rows."""
        return FitResult.of(self.problem(plan), Published.from_dict(stages))

    def missing_records(self, plan: Plan) -> float:
        """How many times more records, or about how many times more ε, a plan without standard errors would need to
        have them; at most 1 where they were left out because nobody wanted them."""
        asked, setting, times = replace(self, intervals=True), self.setting(plan.request), 1.0
        for _ in range(20):  # more records change the coordinates and r, and so the noise: a few rounds settle it
            larger = replace(setting, n=round(times * setting.n))
            numbers = asked._numbers(larger, pure_epsilon(plan.request.exact_budget))
            noise = exact_sums.matrix_deviation(numbers.information_noise, setting.width, pure=True)
            short = larger.shortage(noise)
            if times == 1.0 and short <= 1.0:
                return short
            times *= short
            if abs(short - 1.0) < 0.01:
                break
        return times

    def why_no_interval(self, plan: Plan) -> str | None:
        """Why the plan has no standard errors, by public numbers; None where it measures what they are made of."""
        if plan.parameters["information_noise"]:
            return None
        more = self.missing_records(plan)
        if more <= 1.0:
            return "standard errors were left out of the plan; ask for intervals"
        return (
            "standard errors would drown in the noise at this n and ε, so none are computed. Columns that vary as usual would have "
            f"them from about {float(f'{more * plan.n:.1e}'):,.0f} records on at this ε, or at about {more:.1f} times this ε"
        )

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import fit_case

        return fit_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


@lru_cache(maxsize=256)
def pure_epsilon(budget: Promise) -> float:
    """Return the largest ε that keeps a budget."""
    if isinstance(budget, PureDP | ApproxDP):
        return budget.stated_epsilon
    found = largest_total(lambda epsilon: PureDP(epsilon).implies(budget))
    if found is None:
        raise PromiseRefused(f"No pure ε, however small, keeps {budget}. Use a larger budget.")
    return found


def promise_of(setting: Setting, numbers: FitNumbers) -> PureDP:
    """The theorem, applied to what will run: the sum over the stages, with the closing noise."""
    kappa = setting.loss.volume_cost(numbers.row_bound, numbers.ridge)
    pull = fraction_up(Fraction(setting.loss.slope_bound) * Fraction(numbers.row_bound))
    mode = tilted_epsilon(pull, numbers.mode_noise, kappa, records=setting.k)
    closing = up(2.0 * numbers.tolerance / numbers.ridge / numbers.closing_noise)
    return PureDP(sum_up([mode, closing, *stage_ratios(stages_of(setting, numbers), setting.k, pure=True)]))


def stages_of(setting: Setting, numbers: FitNumbers) -> list[Stage]:
    """Every sum that gets noise on whole numbers, for one record: moments before the mode, information and variability
    after it, where they are measured."""
    noises, entries = (numbers.information_noise, numbers.variability_noise), setting.width * (setting.width + 1) // 2
    squares = [square * numbers.row_bound**2 for square in setting.squares]
    after = [
        Stage(apart(square, pure=True), noise, entries, square)
        for square, noise in zip(squares, noises, strict=True)
        if noise
    ]
    return [*numbers.stages(setting.moment_columns, pure=True), *after]
