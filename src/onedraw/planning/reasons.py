"""What was picked among the ways to answer a regression, and why, in a sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .choice import Choice, Terms

DECIDED = "Decided from public numbers, before any record was read."


def is_chain(mechanism: Any) -> bool:
    """Whether it draws from a β-divergence posterior itself, in measured coordinates or not."""
    return bool(mechanism.needs_chain)


def why_taken(eligible: list[Choice], terms: Terms) -> str:
    """What was picked, and why, in a sentence."""
    best, named = eligible[0], terms.mechanism != "auto"
    decided = DECIDED
    if best.found is None:  # of a fit what it measures and gives; what to expect of it is `Choices.expectation`
        measured = best.plan.mechanism.measures_columns(best.plan)
        measures = "first measures how the columns spread" if measured else "takes the columns as declared"
        stronger = " and needs no δ" if best.plan.guarantee.promise.is_pure and not terms.budget.is_pure else ""
        none = best.plan.mechanism.why_no_interval(best.plan)
        interval = "gives no standard errors at this n and ε" if none else "may give standard errors"
        return f"{best.name}{': named by the caller; it' if named else ', which'} {measures}{stronger}. It {interval}. {decided}"
    private, sampling = best.expected.private, best.expected.sampling
    error = f"expected error {private:.3g} per coefficient ({sampling:.3g} without privacy)"
    if math.isnan(private):
        error = "its error cannot be predicted"
    if named:
        return f"{best.name}: named by the caller; {error}."
    others = ", ".join(f"{choice.name} {choice.expected.private:.3g}" for choice in eligible[1:4])
    compared = f"; then {others}" if others else ""
    rank = "the first" if math.isnan(private) else "the smallest"
    if any(choice.expected.private < private for choice in eligible):
        rank = "nearly the smallest, and whatever the columns are like,"
    chains = any(is_chain(choice.plan.mechanism) for choice in eligible)  # eligible only if accepted
    word = "proven, or accepted by name," if chains else "proven"
    return f"{best.name}: {error}, {rank} of {len(eligible)} mechanism{'' if len(eligible) == 1 else 's'} {word} for {terms.budget} with n = {terms.n:,}{compared}. {decided}"
