"""Which mechanism? The eligible one whose expected error is smallest, from public numbers only.

`choices` ranks mechanisms for one model. `choose` answers a person's question: it takes a fit (`PerturbedMode`) wherever
there is one for the question and the budget, because it measures the design that all others have to guess, and real
columns neither fill their declared ranges nor are uncorrelated (benchmarks/results/estimators_table.md). Elsewhere it
ranks models and mechanisms by expected error, those alone whose promise is proven for what will really run (its sampler
included). It says what it took and why.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from onedraw import samplers
from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.mechanisms import (
    BetaDivergence,
    Concentrated,
    Diffused,
    Direct,
    Measured,
    NoisyGradient,
    PerturbedMode,
    Plan,
    calibrate,
)
from onedraw.privacy import ApproxDP, Promise
from onedraw.privacy.conversions import total_variation_within
from onedraw.release.display import shown_as_html
from onedraw.release.intervals.replicated import LEAST_INFORMED, expected_half_width, informed
from onedraw.release.release import accepted_words, promise_of

from .expected_errors import Expectation, expected_error
from .fit_expectation import BEYOND, DesignError, expected_fit_errors
from .regression import Regression, Variant

CANDIDATES = (Direct(), Diffused(), Concentrated())

MOST_SECONDS = 60.0
"""A mechanism whose draws would take longer, estimated from public numbers, is not taken unless it is named."""

TOLERATED = 1.15
"""Of paths whose interval is at most this many times the narrowest, the longest is taken: it remembers least of its start."""

LONGER = (12.0, 16.0, 20.0)
"""… where several draws are to give an interval, which the start must not shift: the longest whose interval is not much
wider than the narrowest. A longer path forgets its start on slower records too, and its draws can show that it did."""

AS_GOOD = 1.15
"""In the reference design columns fill their ranges and do not go together, which suits declared coordinates best; a
mechanism that measures them and is expected to be at most this much worse there is taken, for it depends on no such guess."""

WIDER = 4.0
"""There the prior, which shifts it too, is as much wider, unless its scale was declared: a path's promise does not rest
on it."""


@dataclass(frozen=True, repr=False)
class Choice:
    """A plan and what may be expected of it; for a regression the variant's name and the seconds its draws take."""

    plan: Plan
    expected: Expectation
    name: str = ""
    seconds: float = math.nan
    designs: tuple[DesignError, ...] = ()
    """Of a fit, what to expect in several designs; ``expected`` is the first."""

    @property
    def by_design(self) -> list[tuple[str, Expectation]]:
        """(name, what to expect): of a fit once for each design."""
        name = self.name or self.plan.heading
        return [(f"{name}: {design.words}", design.expected) for design in self.designs] or [(name, self.expected)]

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
        """Of a fit, the error to expect: a range over designs, since nobody has looked at the columns; else empty.

        It is the plan's. A fit that was made has standard errors of its own, and they replace it.
        """
        designs = self.eligible[0].designs
        if not designs:
            return ""
        first, *_, last = sorted(designs, key=lambda design: design.expected.private)
        return (
            f"Expected error per coefficient: {first.expected.private:.3g} ({first.words}) to {last.expected.private:.3g} "
            f"({last.words}); without privacy {first.expected.sampling:.3g} to {last.expected.sampling:.3g}. Predicted before "
            "any record was read."
        )

    @property
    def beyond(self) -> str:
        """What that range does not hold for; empty where there is none."""
        return BEYOND if self.eligible[0].designs else ""

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


def choices(
    model: Any,
    budget: Promise,
    *,
    n: int,
    draws: int = 1,
    records_per_person: int = 1,
    mechanisms: Iterable[Any] = CANDIDATES,
) -> Choices:
    """Calibrate every mechanism that can keep ``budget`` and rank them; `PromiseRefused` if none can."""
    eligible, refused = [], {}
    for mechanism in mechanisms:
        try:
            plan = calibrate(mechanism, model, budget, n=n, draws=draws, records_per_person=records_per_person)
        except PromiseRefused as error:
            refused[type(mechanism).__name__.lower()] = error
            continue
        eligible.append(Choice(plan, expected_error(plan)))
    if not eligible:
        raise next(iter(refused.values()))
    eligible.sort(key=lambda choice: choice.expected.private)
    return Choices(tuple(eligible), {name: str(error) for name, error in refused.items()})


# ── a person's question ──────────────────────────────────────────────────────────────────────────────────────


def choose(
    question: Regression,
    budget: Promise,
    *,
    n: int,
    draws: int = 1,
    records_per_person: int = 1,
    mechanism: str = "auto",
    accept: Collection[str] | str = (),
) -> Choices:
    """The plans that answer ``question`` under ``budget``, best first; `PromiseRefused` if there is none.

    ``mechanism`` names one variant, or is "auto": a fit, or where there is none (networks, Gaussian and concentrated
    budgets, several draws) all of them, ranked by expected error under the reference design. Only promises that are proven for the draw and its sampler count, unless ``accept`` names "estimated" or "assumed".
    Nothing here depends on a record.
    """
    accepted = accepted_words(accept)
    variants = question.variants() if mechanism == "auto" else (question.variant(mechanism),)
    if mechanism == "auto" and (fit := _fit(question, budget, n, draws, records_per_person)) is not None:
        return Choices((fit,), {}, why_taken([fit], mechanism, budget, n))
    if mechanism == "auto" and draws > 1:  # asked for because their spread gives an interval
        variants = tuple(variant for variant in variants if not isinstance(variant.mechanism, Measured))
    found: list[Choice] = []
    refused: dict[str, PromiseRefused | InvalidModel] = {}
    for variant in variants:
        try:
            plans = _plans(question, variant, budget, n, draws, records_per_person, accepted)
            found += plans if mechanism != "auto" else _within_time(plans)
        except (PromiseRefused, InvalidModel) as error:
            refused[variant.name] = error
    if not found:
        raise PromiseRefused(_none_left(question, budget, n, refused))
    best = {choice.name: choice for choice in sorted(found, key=_rank, reverse=True)}  # the last of a name is its best
    eligible = sorted(best.values(), key=_rank)
    reasons = {name: str(error) for name, error in refused.items()}
    return Choices(tuple(eligible), reasons, why_taken(eligible, mechanism, budget, n))


def _fit(question: Regression, budget: Promise, n: int, draws: int, records_per_person: int) -> Choice | None:
    """The fit that answers the question, or None where there is none for it, or for this budget or number of draws."""
    variant = question.fit
    if variant is None or draws > 1:
        return None
    try:
        plan = calibrate(variant.mechanism, variant.model, budget, n=n, records_per_person=records_per_person)
    except (PromiseRefused, InvalidModel):
        return None
    return _fit_choice(question, variant, plan)


def _fit_choice(question: Regression, variant: Variant, plan: Plan) -> Choice:
    sampler, _ = samplers.default_sampler(plan)
    promise_of(plan, sampler.exactness(plan))
    sizes = {"effect": question.expected_effect, "noise": question.unit}
    designs = expected_fit_errors(plan, **sizes, declared=question.effect is not None)
    return Choice(plan, designs[0].expected, variant.name, sampler.seconds(plan), designs)


def _plans(
    question: Regression,
    variant: Variant,
    budget: Promise,
    n: int,
    draws: int,
    records_per_person: int,
    accepted: Collection[str],
) -> list[Choice]:
    """The variant's plans: one, or noisy-gradient paths of several lengths; for replicated draws the narrowest interval."""
    if isinstance(_drawing(variant.mechanism), BetaDivergence) and not accepted:
        raise PromiseRefused(
            "No chain is proven to draw from a β-divergence posterior. Candidates, which select exactly, need none; or take "
            'the risk by name with accept="estimated" or accept="assumed".'
        )
    if isinstance(variant.mechanism, PerturbedMode):
        plan = calibrate(
            variant.mechanism, variant.model, budget, n=n, draws=draws, records_per_person=records_per_person
        )
        return [_fit_choice(question, variant, plan)]
    lengths: tuple[float | None, ...] = (None,)
    if isinstance(variant.mechanism, NoisyGradient) and draws > 1:
        lengths = LONGER
        if question.prior_scale is None:
            wide = replace(question, prior_scale=WIDER * question.scale, radius=question.ball)
            variant = wide.variant(variant.name)
    sizes = {"effect": question.expected_effect, "noise": question.unit}
    found = []
    for length in lengths:
        mechanism = variant.mechanism if length is None else replace(variant.mechanism, relaxations=length)
        plan = calibrate(
            mechanism, variant.model, budget, n=n, draws=draws, gamma=_reserve(mechanism, budget, accepted),
            records_per_person=records_per_person,
        )  # fmt: skip
        sampler, _ = samplers.default_sampler(plan, accept=accepted)
        promise_of(plan, sampler.exactness(plan), accept=accepted)
        found.append(Choice(plan, expected_error(plan, **sizes), variant.name, sampler.seconds(plan)))
    if len(found) > 1 and draws > 1:
        possible = [choice for choice in found if informed(choice.plan, **sizes) >= LEAST_INFORMED]
        if possible:
            widths = [expected_half_width(choice.plan, **sizes) for choice in possible]
            return [choice for choice, width in zip(possible, widths, strict=True) if width <= TOLERATED * min(widths)][
                -1:
            ]
    return found


def _drawing(mechanism: Any) -> Any:
    """The mechanism that draws: of one in measured coordinates the inner one."""
    return mechanism.of if isinstance(mechanism, Measured) else mechanism


def _reserve(mechanism: Any, budget: Promise, accepted: Collection[str]) -> float | None:
    """Half of δ for a chain whose distance is estimated, which only a δ can pay for; None: the mechanism's own."""
    if not (
        isinstance(_drawing(mechanism), BetaDivergence) and "estimated" in accepted and isinstance(budget, ApproxDP)
    ):
        return None
    return total_variation_within(budget.stated_epsilon, 0.5 * budget.stated_delta)


def _rank(choice: Choice) -> tuple[bool, float]:
    measured = isinstance(choice.plan.mechanism, Measured) and choice.plan.parameters["moments_noise"]
    return math.isnan(choice.expected.private), choice.expected.private / (AS_GOOD if measured else 1.0)


def _within_time(plans: list[Choice]) -> list[Choice]:
    """Those whose draws take at most as long as "auto" allows; refused if there is none."""
    quick = [choice for choice in plans if choice.seconds <= MOST_SECONDS or math.isnan(choice.seconds)]
    if not quick:
        seconds = min(choice.seconds for choice in plans)
        raise PromiseRefused(
            f"Its draws would take about {seconds:,.0f} s (estimated from public numbers), more than the "
            f"{MOST_SECONDS:g} s that mechanism='auto' allows. Name it to have it all the same."
        )
    return quick


def why_taken(eligible: list[Choice], mechanism: str, budget: Promise, n: int) -> str:
    """What was picked, and why, in a sentence."""
    best = eligible[0]
    if best.designs:
        return _why_fit(best, budget, named=mechanism != "auto")
    if math.isnan(best.expected.private):
        error = "its error cannot be predicted"
    else:
        error = (
            f"expected error {best.expected.private:.3g} per coefficient ({best.expected.sampling:.3g} without privacy)"
        )
    if mechanism != "auto":
        return f"{best.name}: named by the caller; {error}."
    others = ", ".join(f"{choice.name} {choice.expected.private:.3g}" for choice in eligible[1:4])
    compared = f"; then {others}" if others else ""
    rank = "the first" if math.isnan(best.expected.private) else "the smallest"
    if any(choice.expected.private < best.expected.private for choice in eligible):
        rank = "nearly the smallest, and whatever the columns are like,"
    chains = any(
        isinstance(_drawing(choice.plan.mechanism), BetaDivergence) for choice in eligible
    )  # eligible only if accepted
    word = "proven, or accepted by name," if chains else "proven"
    return (
        f"{best.name}: {error}, {rank} of {len(eligible)} mechanism{'' if len(eligible) == 1 else 's'} {word} for {budget} with n = {n:,}{compared}. "
        "Decided from public numbers, before any record was read."
    )


def _why_fit(best: Choice, budget: Promise, *, named: bool) -> str:
    """What a fit measures and gives; what to expect of it is `Choices.expectation`."""
    numbers = best.plan.parameters
    measures = "first measures how the columns spread" if numbers["moments_noise"] else "takes the columns as declared"
    stronger = " and needs no δ" if numbers["pure"] and isinstance(budget, ApproxDP) else ""
    interval = "with standard errors" if numbers["information_noise"] else "without standard errors at this n and ε"
    return (
        f"{best.name}{': named by the caller; it' if named else ', which'} {measures}{stronger}; {interval}. "
        "Decided from public numbers, before any record was read."
    )


def _none_left(question: Regression, budget: Promise, n: int, refused: dict[str, Any]) -> str:
    reasons = " ".join(f"{name}: {error}" for name, error in refused.items())
    return f"No mechanism answers a {question.kind} regression under {budget} with n = {n:,}. {reasons}"
