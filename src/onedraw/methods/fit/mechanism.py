"""Averaged steps: private regression coefficients with intervals, by noisy Newton steps whose iterates are averaged.

Moments in declared coordinates, moments in measured ones, early steps, steps, and what standard errors are made of: every
part adds Gaussian noise to a sum of vectors or matrices of bounded norm, and its coordinates were published before. So all of
it is GaussianDP(μ) with μ² the sum over the parts. Theorem and proof: proof.md.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods.fits import COMPLETE, FitMechanism, layout_of
from onedraw.methods.stages import Categories, check_lattice, largest_total, stage_ratios, together
from onedraw.models import OrdinaryLeastSquares
from onedraw.models.sums import exact_sums
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import Assumption, GaussianDP, Provenance, PureDP

from .coordinates import StepsProblem
from .effects import effects_words, named_effects
from .expected_error import expected_column_error, expected_errors
from .published import StepsPublished
from .result import StepsResult
from .run import FitBySteps, StepsTarget
from .scores import score_of
from .sizes import EARLY_STEPS, FACTORS, STEPS, TAIL_COUNTS, Setting, StepNumbers, numbers_for, stages_of

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

LARGEST_EDGE = 0.2
"""The spectral edge of the moments' noise, in squared half-ranges, beyond which most columns drown: a column that fills its range
evenly has variance 1/3."""

LARGEST_COUNT_NOISE, HIDDEN_COUNT_NOISE, COUNT_PREDICTOR_NOISE = 0.1, 0.5, 0.1
"""Standard deviation of the mean count's noise, up to which steps begin near rates below one. Up to the second they find their way from farther,
if noise of the logarithm of a rate is at most the third: with means of 0.2 to 1.9 deviances were then near the best and 92 to 99 % of intervals
covered. Beyond, tables with rates near 0.3 were predicted worse than by their mean alone."""

LARGEST_PREDICTOR_NOISE = 0.8
"""Standard deviation of the noise in a record's log-odds, about that of the log-odds themselves on many tables, beyond which
classes are often predicted worse than by their shares alone."""

INDEPENDENT = "standard errors take the records of one person for independent of each other"
"""What they rest on where nobody said whose a record is."""

FIXED = "the columns, their bounds and levels, the response's bounds or classes"
"""What the caller fixes without looking at the records."""

STRETCHED = "rows are stretched along the effects of interest, by published numbers alone, before scores are shortened"


def column_places(values: Any) -> tuple[int, ...]:
    """Return places of columns in order, each once."""
    try:
        places = {operator.index(value) for value in values}
    except TypeError:
        places = {-1}
    if min(places, default=0) < 0:
        raise WrongCall(f"effects are places of columns, whole numbers from 0 on, but {values!r} was given.")
    return tuple(sorted(places))


@dataclass(frozen=True)
class AveragedSteps(FitMechanism):
    """Estimate least squares, maximum likelihood or a quantile with standard errors, in one release.

    Parameters
    ----------
    categories : tuple of (int, int)
        (start, stop) of 0/1 columns that code one category: at most one of them is 1.
    persons : bool
        Add up each person's scores before standard errors are made of them, so that these hold where the records of one
        person are alike. Needs records whose schema names persons.
    effects : tuple of int
        Encoded columns whose coefficients are of interest: noise is smaller along them and larger along others (effects.py).
    robust : bool
        Estimate a robust line: rows far out, of numbers and counts also residuals, count less by a fixed rule (kinds.py).
    prior : bool
        Add the model's Gaussian prior on encoded coefficients, so that their posterior mode is estimated.
    """

    title: ClassVar[str] = "averaged steps"
    skips: ClassVar[bool] = True
    interval_words: ClassVar[str] = (
        "They are computed from what the release itself measured, and are about the coefficients named above, whether or not the "
        "model holds."
    )
    estimand_words: ClassVar[str] = (
        "The release says whether they were reached: records far out have limited influence."
    )
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "averaged-steps"
    later: ClassVar[frozenset[str]] = frozenset({"persons", "effects", "robust", "prior"})

    categories: Categories = ()
    persons: bool = False
    effects: Annotated[tuple[int, ...], column_places] = ()
    robust: bool = False
    prior: bool = False

    @property
    def by_person(self) -> bool:
        return self.persons

    def heading(self, plan: Plan) -> str:
        known = f", with less noise along {named_effects(plan)}" if self.effects else ""
        return f"averaged noisy Newton steps towards the {self.estimand(plan)}{known}"

    def effects_note(self, plan: Plan) -> str:
        return effects_words(self.problem(plan), named_effects(plan))

    def estimand_note(self, plan: Plan) -> str:
        score = self.problem(plan).score
        words = score.estimand_note if score.fixed else self.estimand_words
        return f"{words} {self.effects_note(plan)}".rstrip()

    def estimand(self, plan: Plan, target: str | None = None) -> str:
        return self.problem(plan).estimand_of(target)

    def calibrate(self, request: Request) -> Plan:
        setting = self.setting(request)
        total = largest_total(lambda mu: promise_of(setting, numbers_for(setting, mu)).implies(request.exact_budget))
        if total is None:
            raise PromiseRefused(
                f"No averaged steps keep {request.budget} with n = {request.n:,} and {request.records_per_person} "
                "record(s) per person. Use a larger budget."
            )
        numbers = numbers_for(setting, total)
        if not self.prior:  # under a declared prior noise leaves its mode
            refuse_drowned(request, setting, numbers)
        return self._plan(request, setting, numbers)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        numbers = StepNumbers.from_dict(parameters, "Averaged steps")
        return self._plan(request, self.setting(request), numbers, numbers.named_as(parameters))

    def setting(self, request: Request) -> Setting:
        """Return what the sizes depend on; what cannot be estimated so is refused."""
        score, layout = score_of(request.model, robust=self.robust), layout_of(request.model, self.categories)
        if isinstance(request.budget, PureDP):
            raise UnsupportedBudget(
                f"Averaged steps add Gaussian noise, which keeps no {request.budget}. Use a budget with a δ, GaussianDP or "
                f"ZCDP{_instead(request.model)}."
            )
        if request.draws != 1:
            raise UnsupportedBudget(
                "Averaged steps are published once: their normal posterior gives as many draws as anybody wants, at no "
                "privacy cost. Leave out draws, and call release.posterior(size)."
            )
        if self.effects and self.effects[-1] >= layout.columns:
            raise WrongCall(
                f"effects are places of columns, from 0 to {layout.columns - 1}, but {self.effects[-1]} was given."
            )
        if self.effects and (score.fixed or score.of_classes):
            raise WrongCall(
                "effects are for least squares, maximum likelihood of two classes or counts, and quantiles: how far rows are shortened "
                "would depend on them elsewhere. Leave out effects."
            )
        skips = request.model.skips
        return Setting(layout, score, request.n, request.records_per_person, self.persons, skips)

    def _plan(
        self, request: Request, setting: Setting, numbers: StepNumbers, parameters: dict[str, float] | None = None
    ) -> Plan:
        ends = numbers, numbers.at(FACTORS[0])  # the longest and the shortest bound that may be chosen
        check_lattice([stage for one in ends for stage in stages_of(setting, one)], request.n, request.budget)
        claims = [
            _shortening(numbers),
            *([STRETCHED] if self.effects else []),
            exact_sums.in_words(request.n),
            *(["columns of one category are at least 0 and of norm at most 1"] if self.categories else []),
        ]
        if self.persons:
            claims.append(
                f"a person's scores are added up and shortened to {numbers.covariance_radius:.6g} before they are squared"
            )
        enforced = [Assumption(claim, Provenance.ENFORCED) for claim in claims]
        if setting.skips:
            enforced.append(Assumption(COMPLETE, Provenance.ENFORCED))
        if request.records_per_person > 1 and not self.persons:
            enforced.append(Assumption(INDEPENDENT, Provenance.DECLARED))
        theorem = "averaged steps: Gaussian noise on sums of bounded norm, each adaptive on those before (methods/fit/proof.md)"
        fixed = f"{FIXED}, the effects of interest" if self.effects else FIXED
        promise, assumptions = promise_of(setting, numbers), (*fixed_in_advance(request, fixed), *enforced)
        return Plan.of(self, request, parameters or numbers.to_dict(), promise, theorem, assumptions)

    def own_sampler(self) -> type[FitBySteps]:
        return FitBySteps

    def target(self, plan: Plan, summary: Any) -> StepsTarget:
        return StepsTarget(self.problem(plan), summary)

    def problem(self, plan: Plan) -> StepsProblem:
        """Return everything public of the fit, from the plan alone."""
        setting = self.setting(plan.request)
        return StepsProblem(
            plan.n, setting.layout, setting.score, StepNumbers.from_dict(plan.parameters, "Averaged steps"),
            setting.records, setting.persons, effects=self.effects, prior=plan.model.prior if self.prior else None,
        )  # fmt: skip

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        setting, numbers = self.setting(plan.request), self.problem(plan).numbers
        sizes = {
            "known": 1, "level": setting.score.level_size, "mean": setting.columns.count, "moments": setting.columns.entries, "design": setting.columns.entries,
            "tail": TAIL_COUNTS, "early": setting.size, "step": setting.size, "count": 1,
            "information": setting.triangle, "covariance": setting.triangle,
        }  # fmt: skip
        return {name: size for name, size in sizes.items() if numbers.get(f"{name}_noise")}

    def result(self, plan: Plan, stages: Mapping[str, Any]) -> StepsResult:
        """Return the estimate with its errors, for encoded rows."""
        return StepsResult.of(self.problem(plan), StepsPublished.from_dict(stages))

    def expected_errors(self, plan: Plan, **design: float) -> tuple[float, float, float]:
        """Return the error to expect per coefficient in a design: see `expected_error`."""
        return expected_errors(self.problem(plan), **design)

    def expected_column_error(self, plan: Plan, **design: Any) -> tuple[float, float, float]:
        """Return what to expect of one column's coefficient in a design: see `expected_error`."""
        return expected_column_error(self.problem(plan), **design)

    def why_no_interval(self, plan: Plan) -> str | None:
        problem = self.problem(plan)
        if not problem.sizes.covariance_noise:
            return (
                f"the {problem.size:,} coefficients of all classes would need matrices of {problem.size * (problem.size + 1):,} numbers, "
                "megabytes of a certificate, so no standard errors are given. Intervals are for fewer columns or classes"
            )
        more = problem.shortage
        if more <= 1.0:
            return None
        return (
            "standard errors would drown in the noise at this n and ε, so none are given. Columns that vary as usual would have "
            f"them from about {float(f'{more * plan.n:.1e}'):,.0f} records on at this ε, or at about {more:.1f} times this ε"
        )

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import steps_case

        return steps_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


def _shortening(numbers: StepNumbers) -> str:
    """Return to which length scores are shortened, in words."""
    half, full = f"{numbers.early_bound:.6g} in {EARLY_STEPS} steps", f"{numbers.step_bound:.6g} in {STEPS}"
    if not numbers.tail_noise:
        return f"scores are shortened to {half} and to {full}"
    return (
        f"scores are shortened to at most {half} and {full}; {TAIL_COUNTS} noisy counts choose the length, down to "
        f"{FACTORS[0]:g} of that, and noise is smaller in the same ratio"
    )


def _instead(model: Any) -> str:
    """Return what fits a model under a pure ε, to be added to a remedy."""
    if model.fit_loss is not None:
        return ", or PerturbedMode()"
    return ", or LogCoshRegression with a perturbed mode" if isinstance(model, OrdinaryLeastSquares) else ""


def refuse_drowned(request: Request, setting: Setting, numbers: StepNumbers) -> None:
    """Refuse sizes at which noise would hide what is estimated, by public numbers, and say what works."""
    score, layout = setting.score, setting.layout
    if numbers.edge(setting.columns, request.n, pure=False) > LARGEST_EDGE:
        hidden = (
            f"noise hides the moments of {layout.columns} column(s) that averaged steps start from. Use more records"
        )
    elif score.kind == "count" and layout.intercept and _rates_drown(setting, numbers):
        hidden = "a mean count below one would drown in its noise. Use a smaller largest=, more records"
    elif not score.continuous and score.kind != "count" and predictor_noise(setting, numbers) > LARGEST_PREDICTOR_NOISE:
        hidden = (
            f"noise of {predictor_noise(setting, numbers):.2g} in the log-odds of every record would hide most effects of "
            f"{layout.columns} column(s). Use more records"
        )
    else:
        return
    predicted = score.kind in PREDICTED and layout.intercept
    instead = ", or ClippedGradients() for predictions without coefficients" if predicted else ""
    raise PromiseRefused(f"With n = {request.n:,} and {request.budget}, {hidden} or a larger ε{instead}.")


PREDICTED = ("number", "label", "count", "classes")
"""Kinds that clipped gradients predict."""


def _rates_drown(setting: Setting, numbers: StepNumbers) -> bool:
    """Return whether steps would begin too far from rates below one, for the noise that they have."""
    level = setting.score.scale * (numbers.mean_noise or numbers.level_noise) / setting.n
    near = predictor_noise(setting, numbers) <= COUNT_PREDICTOR_NOISE
    return not 0.0 < level <= (HIDDEN_COUNT_NOISE if near else LARGEST_COUNT_NOISE)


def predictor_noise(setting: Setting, numbers: StepNumbers) -> float:
    """Return the deviation of the noise in the linear predictor of a usual record."""
    noise = numbers.step_noise / math.sqrt(STEPS)
    return math.sqrt(setting.size) * noise / (setting.n * setting.score.information)


def promise_of(setting: Setting, numbers: StepNumbers) -> GaussianDP:
    """Return what these numbers promise for a person's records."""
    found = together(stage_ratios(stages_of(setting, numbers), setting.records, pure=False), pure=False)
    assert isinstance(found, GaussianDP)
    return found
