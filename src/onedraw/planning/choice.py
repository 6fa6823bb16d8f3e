"""Which mechanism? The eligible one whose expected error is smallest, from public numbers only.

`choices` ranks mechanisms for one model. A `Question` is answered by its own choices; a regression takes a fit (`AveragedSteps`, for a
pure ε `PerturbedMode`) wherever there is one for the question and the budget, because it measures the design that all others have to guess, and real
columns neither fill their declared ranges nor are uncorrelated (benchmarks/results/estimators_table.md). Elsewhere it
ranks models and mechanisms by expected error, those alone whose promise is proven for what will really run (its sampler
included). It says what it took and why.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from onedraw import samplers
from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.methods import (
    Concentrated,
    Diffused,
    Direct,
    Plan,
    calibrate,
)
from onedraw.methods.base import REMEDY_OF_SKIP
from onedraw.methods.draws.replicated import LEAST_INFORMED, expected_half_width, informed
from onedraw.methods.expectation import Expectation
from onedraw.plain_text import known, shown_as_html
from onedraw.privacy import Promise
from onedraw.release.statement import accepted_words, promise_of

from .designs import ColumnError, DesignError, design_errors, designs_words, intervals_words
from .estimands import estimand_refused
from .expected_errors import expected_error
from .options import RESIDUALS
from .predictors import predictor_of, why_predicted
from .reasons import is_chain, why_taken
from .rules import (
    MAX_SECONDS,
    REPLICATED_RELAXATIONS,
    choose_path,
    is_quick_enough,
    prior_of_replicates,
    ranking_error,
)
from .variants import fits_under

if TYPE_CHECKING:
    from .regression import Regression
    from .variants import Variant

CANDIDATES = (Direct(), Diffused(), Concentrated())


@dataclass(frozen=True)
class Terms:
    """What a question is to be answered under, all of it public."""

    budget: Promise
    n: int
    draws: int
    mechanism: str
    accepted: frozenset[str]
    records_per_person: int
    compare: bool

    def calibrated(self, mechanism: Any, model: Any, gamma: float | None = None) -> Plan:
        return calibrate(
            mechanism, model, self.budget, n=self.n, draws=self.draws, gamma=gamma, records_per_person=self.records_per_person
        )  # fmt: skip


class Question(abc.ABC):
    """What the command line and the estimators ask alike: a public value that finds the plans for its answer.

    ``question.choices(budget, n=5000, draws=1, mechanism="auto", accept=())`` has them, best first, and says why.
    """

    def choices(
        self, budget: Promise, *, n: int, draws: int = 1, mechanism: str = "auto", accept: Collection[str] | str = (),
        records_per_person: int = 1, compare: bool = False,
    ) -> Choices:  # fmt: skip
        """The plans that answer it under ``budget``, best first; `PromiseRefused` if there is none.

        ``mechanism`` is a name, or "auto". ``accept`` names promises short of a proof, "estimated" or "assumed"; without it only those
        count that are proven for the draw and its sampler. ``compare`` calibrates all mechanisms even where the answer is
        clear. Nothing here depends on a record.
        """
        return self._choices(Terms(budget, n, draws, mechanism, accepted_words(accept), records_per_person, compare))

    @abc.abstractmethod
    def _choices(self, terms: Terms) -> Choices: ...

    def why_no_interval(self, plan: Plan) -> str:
        """Why a release by ``plan`` will have none, as far as public numbers say; empty if it will."""
        return ""


rank_plans = Question.choices
"""The same as a function of the question."""


@dataclass(frozen=True, repr=False)
class Choice:
    """A plan and what may be expected of it; for a regression the variant's name and the seconds its draws take."""

    plan: Plan
    found: Expectation | None = None
    """None: of a fit, whose errors in several designs are found when somebody asks. A release brings its own."""
    name: str = ""
    seconds: float = math.nan
    question: Regression | None = field(default=None, compare=False)
    """Of a fit, what it answers."""
    unit: float = 1.0
    """The response's."""

    @cached_property
    def designs(self) -> tuple[DesignError, ...]:
        """Of a fit, what to expect in a typical and in a worst design; ``expected`` is the first."""
        if self.found is not None or self.question is None:
            return ()
        declared = self.question.effect is not None
        errors = design_errors(self.plan, **self.question.sizes, declared=declared)
        return tuple(design.times(self.unit) for design in errors)

    @property
    def by_column(self) -> tuple[tuple[ColumnError, ColumnError], ...]:
        """Of a fit, the (typical, worst) error of each column's coefficient, in its own units."""
        return tuple(zip(*(design.columns for design in self.designs), strict=True)) if self.designs else ()

    @property
    def designs_in_words(self) -> str:
        """Of a fit, what the designs are, and how far numbers are taken to scatter if that was not declared."""
        question, words = self.question, designs_words(self.designs)
        if question is None or question.noise is not None or question.kind not in RESIDUALS:
            return words
        scatter = self.unit * question.sizes["noise"]
        return f"{words} Responses are taken to scatter about the line by {scatter:.3g}, unless --noise says better."

    @property
    def intervals(self) -> str:
        """Of a fit, which columns are expected to be given intervals, in a sentence; empty for others."""
        if not self.designs or self.plan.mechanism.why_no_interval(self.plan):
            return ""
        return intervals_words(*self.designs)

    @cached_property
    def expected(self) -> Expectation:
        return self.designs[0].expected if self.found is None else self.found.times(self.unit)

    @property
    def named(self) -> str:
        """What people type as --mechanism."""
        return self.name or type(self.plan.mechanism).__name__.lower()

    def to_dict(self) -> dict[str, Any]:
        """As `onedraw plan --json` prints it."""
        plan, expected = self.plan, self.expected
        return {
            "mechanism": self.named, "parameters": dict(plan.parameters), "promise": plan.guarantee.promise.to_dict(),
            "expected_rmse": known(expected.private), "rmse_without_privacy": known(expected.sampling),
            "bias": known(expected.bias), "seconds": known(self.seconds),
            "designs": [design.to_dict() for design in self.designs],
        } | ({"intervals": self.intervals} if self.intervals else {})  # fmt: skip

    @property
    def by_design(self) -> list[tuple[str, Expectation]]:
        """(name, what to expect): of a fit once for each design."""
        name = self.name or self.plan.heading
        return [(f"{name}, {design.name} design", design.expected) for design in self.designs] or [
            (name, self.expected)
        ]

    def __repr__(self) -> str:
        errors = [expected.private for _, expected in self.by_design]
        most = f" to {max(errors):.3g}" if len(errors) > 1 else ""
        return f"<Choice {self.name or self.plan.heading}, expected error {min(errors):.3g}{most}>"


@dataclass(frozen=True, repr=False)
class Choices:
    """The eligible plans, best first, and why the others are not eligible."""

    eligible: tuple[Choice, ...]
    refused: dict[str, str]
    why: str = ""
    """What was picked, and why, in a sentence."""

    @property
    def best(self) -> Plan:
        return self.eligible[0].plan

    @property
    def expectation(self) -> str:
        """Of a fit, the error to expect in a typical and a worst design, since nobody has looked at the columns; else empty.

        It is the plan's. A fit that was made has standard errors of its own, and they replace it.
        """
        designs = self.eligible[0].designs
        if not designs:
            return ""
        errors = " and ".join(f"{design.expected.private:.3g} in a {design.name} design" for design in designs)
        plain = " and ".join(f"{design.expected.sampling:.3g}" for design in designs)
        people = self.best.request.records_per_person
        alike = (
            f" Sampling errors are up to {math.sqrt(people):.2g} times as large where one person's records are alike."
        )
        return (
            f"Expected error per coefficient, columns scaled to [-1, 1]: {errors}; without privacy {plain}. "
            f"{self.eligible[0].designs_in_words} Predicted before any record was read.{alike if people > 1 else ''}"
        )

    @property
    def intervals(self) -> str:
        """Which columns the fit is expected to give intervals, in a sentence; empty for other mechanisms."""
        return self.eligible[0].intervals

    def __repr__(self) -> str:
        return f"<Choices: {self.why or ', '.join(map(repr, self.eligible))}>"

    def _repr_html_(self) -> str:
        rows = [
            (name, f"{expected.private:.3g}", f"{expected.sampling:.3g}")
            for choice in self.eligible
            for name, expected in choice.by_design
        ]
        refused = f"Not used: {', '.join(self.refused)}; refused has the reasons." if self.refused else ""
        return shown_as_html(self.why, ("mechanism", "expected error", "without privacy"), rows, more=refused)


def choices(model: Any, budget: Promise, *, n: int, draws: int = 1, records_per_person: int = 1) -> Choices:
    """Calibrate every mechanism that can keep ``budget`` and rank them; `PromiseRefused` if none can."""
    return ranked(model, Terms(budget, n, draws, "auto", frozenset(), records_per_person, True))


def ranked(model: Any, terms: Terms, mechanisms: Iterable[Any] = CANDIDATES) -> Choices:
    """The same under terms."""
    eligible, refused = [], {}
    for mechanism in mechanisms:
        try:
            plan = terms.calibrated(mechanism, model)
        except PromiseRefused as error:
            refused[type(mechanism).__name__.lower()] = error
            continue
        eligible.append(Choice(plan, expected_error(plan)))
    if not eligible:
        raise next(iter(refused.values()))
    eligible.sort(key=lambda choice: choice.expected.private)
    return Choices(tuple(eligible), {name: str(error) for name, error in refused.items()})


# ── regressions ──────────────────────────────────────────────────────────────────────────────────────────────


def for_regression(question: Regression, terms: Terms) -> Choices:
    """By "auto" a fit, clipped gradients where they predict better and a fit has no intervals to give (predictors.py), or where there is
    neither (networks, pure budgets, several draws) all variants, ranked by expected error under the reference design; errors in
    the unit of the response."""
    fit = _fit(question, terms) if terms.mechanism in ("auto", "fit") else None
    if terms.mechanism == "auto" and (predicted := _predicted(question, terms, None if fit is None else fit.plan)):
        return predicted
    eligible, refused = ([fit], {}) if fit is not None else _ranked_variants(question, terms)
    unit = 1.0 if question.measure is None else question.measure.unit
    eligible = [replace(choice, unit=unit) for choice in eligible]
    return Choices(tuple(eligible), refused, why_taken(eligible, terms))


def _predicted(question: Regression, terms: Terms, fit: Plan | None) -> Choices | None:
    """Return clipped gradients in place of a fit; None where the fit is to be taken, or they do not keep the budget."""
    predictor = predictor_of(question, terms, fit)
    if predictor is None:
        return None
    try:
        choice = _drawn(question, predictor, predictor.mechanism, terms)
    except (PromiseRefused, InvalidModel):
        return None
    return Choices((choice,), {}, why_predicted(question, terms, fit))


def _ranked_variants(question: Regression, terms: Terms) -> tuple[list[Choice], dict[str, str]]:
    found: list[Choice] = []
    refused: dict[str, str] = {}
    auto = terms.mechanism == "auto"
    for variant in question.variants() if auto else (question.variant(terms.mechanism),):
        if auto and terms.draws > 1 and variant.mechanism.measures_columns_first:
            continue  # several were asked for because their spread gives an interval, and theirs gives none
        try:
            plans = _plans(question, variant, terms)
            found += _within_time(plans) if auto else plans
        except (PromiseRefused, InvalidModel) as error:
            refused[variant.name] = str(error)
    if not found:
        told = {name: why for name, why in refused.items() if REMEDY_OF_SKIP not in why}
        reasons = " ".join(f"{name}: {error}" for name, error in told.items())
        if len(told) < len(refused):
            others = "All other methods have" if told else "The methods for it have"
            reasons += f" {others} to know how many records contribute, and a record with a missing cell does not. {REMEDY_OF_SKIP}"
        raise PromiseRefused(
            f"No mechanism answers a {question.kind} regression under {terms.budget} with n = {terms.n:,}. {reasons.strip()}"
        )
    best = {choice.name: choice for choice in sorted(found, key=_rank, reverse=True)}  # the last of a name is its best
    return sorted(best.values(), key=_rank), refused


def _fit(question: Regression, terms: Terms) -> Choice | None:
    """Return the first fit that answers the question, None if there is none; refuse if one was asked for by estimand or effects."""
    why = ""
    for variant in fits_under(question, terms.budget) if terms.draws == 1 else ():
        try:
            plan = terms.calibrated(variant.mechanism, variant.model)
        except (PromiseRefused, InvalidModel) as error:
            why = str(error)
            continue
        return _fitted(question, variant, plan)
    if question.estimand is not None or question.effects is not None:
        raise estimand_refused(question, terms, why)
    return None


def _fitted(question: Regression, variant: Variant, plan: Plan) -> Choice:
    sampler, _ = samplers.default_sampler(plan)
    promise_of(plan, sampler.exactness(plan))
    return Choice(plan, None, variant.name, sampler.seconds(plan), question)


def _plans(question: Regression, variant: Variant, terms: Terms) -> list[Choice]:
    """The variant's plans: one, or noisy-gradient paths of several lengths; for replicated draws the narrowest interval."""
    if is_chain(variant.mechanism) and not terms.accepted:
        raise PromiseRefused(
            "No chain is proven to draw from a β-divergence posterior. Candidates, which select exactly, need none; or take "
            'the risk by name with accept="estimated" or accept="assumed".'
        )
    if variant.mechanism.publishes_fit:
        return [_fitted(question, variant, terms.calibrated(variant.mechanism, variant.model))]
    if not variant.mechanism.replicates or terms.draws == 1:
        return [_drawn(question, variant, variant.mechanism, terms)]
    if question.prior_scale is None:
        wider = prior_of_replicates(usual=question.scale, declared=None)
        variant = replace(question, prior_scale=wider, radius=question.ball).variant(variant.name)
    longer = (replace(variant.mechanism, relaxations=length) for length in REPLICATED_RELAXATIONS)
    found = [_drawn(question, variant, mechanism, terms) for mechanism in longer]
    path = choose_path(
        informed=[informed(choice.plan, **question.sizes) for choice in found],
        half_widths=[expected_half_width(choice.plan, **question.sizes) for choice in found],
        least_informed=LEAST_INFORMED,
    )
    return found if path is None else [found[path]]


def _drawn(question: Regression, variant: Variant, mechanism: Any, terms: Terms) -> Choice:
    """Half of δ is kept for a chain whose distance is estimated, which only a δ can pay for."""
    estimated = is_chain(mechanism) and "estimated" in terms.accepted
    gamma = (terms.budget.total_variation(0.5) or None) if estimated else None
    plan = terms.calibrated(mechanism, variant.model, gamma)
    sampler, _ = samplers.default_sampler(plan, accept=terms.accepted)
    promise_of(plan, sampler.exactness(plan), accept=terms.accepted)
    return Choice(plan, expected_error(plan, **question.sizes), variant.name, sampler.seconds(plan))


def _rank(choice: Choice) -> tuple[bool, float]:
    return ranking_error(
        expected=choice.expected.private, measures_columns=choice.plan.mechanism.measures_columns(choice.plan)
    )


def _within_time(plans: list[Choice]) -> list[Choice]:
    """Those whose draws take at most as long as "auto" allows; refused if there is none."""
    quick = [choice for choice in plans if is_quick_enough(seconds=choice.seconds)]
    if quick:
        return quick
    raise PromiseRefused(
        f"Its draws would take about {min(choice.seconds for choice in plans):,.0f} s (estimated from public numbers), more than "
        f"the {MAX_SECONDS:g} s that mechanism='auto' allows. Name it to have it all the same."
    )
