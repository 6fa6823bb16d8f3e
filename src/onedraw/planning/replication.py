"""How many draws share the budget: eight or four for an interval, or one of full weight and none.

mathematics-2.md D. Splitting is free: J draws whose weights add up to that of one draw cost the same (for the exact GDP
rule √J times the weight each), and their spread shows how large the noise is. That is true in the regime in which draws
are nearly normal, which is checked on public numbers before any record is read: n·w·λ·s₀² ≥ 25 for one draw of weight w,
λ the smallest curvature of a record under the reference design and s₀ the prior's standard deviation, at most the usual
2/r̃ (beyond, the loss bends within a draw's spread, whatever the prior); and what is left
of the prior's pull or of a path's start must be small beside the noise, so that no interval has to be stretched by more
than 1.6.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from onedraw.errors import PromiseRefused
from onedraw.mechanisms import Plan
from onedraw.privacy import Promise

from .choice import Choices, choose
from .intervals import why_no_interval
from .regression import Regression

REPLICATES = (8, 4)
REMEDY = "More records, a larger ε or tighter bounds would help."

CLOSE = 1.25
"""A mechanism whose expected error is at most this many times the smallest is taken if it alone allows an interval."""


@dataclass(frozen=True)
class Replication:
    """How many draws to make, the plans for that many (the one to use first), and the reason."""

    draws: int
    choices: Choices
    reason: str

    @property
    def plan(self) -> Plan:
        return self.choices.best


def replication(
    question: Regression,
    budget: Promise,
    *,
    n: int,
    records_per_person: int = 1,
    mechanism: str = "auto",
    accept: Collection[str] | str = (),
    level: float = 0.95,
) -> Replication:
    """Eight draws, four, or one: the most for which an interval of this level can be vouched for."""
    reasons = []
    for draws in REPLICATES:
        try:
            found = choose(
                question, budget, n=n, draws=draws, records_per_person=records_per_person, mechanism=mechanism,
                accept=accept,
            )  # fmt: skip
        except PromiseRefused as error:
            reasons.append(f"{draws} draws: {error}")
            continue
        best = found.eligible[0].expected.private
        for choice in found.eligible:
            if not choice.expected.private <= CLOSE * best:
                break
            refusal = why_no_interval(choice.plan, level, effect=question.expected_effect, noise=question.unit)
            if refusal is None:
                others = tuple(other for other in found.eligible if other is not choice)
                reason = f"{draws} draws share the budget, so that their spread gives an interval"
                return Replication(draws, Choices((choice, *others), found.refused, found.why), reason)
            if choice is found.eligible[0]:
                reasons.append(f"{refusal} ({choice.name})")
    single = choose(
        question, budget, n=n, records_per_person=records_per_person, mechanism=mechanism, accept=accept
    )  # fmt: skip
    why = f"one draw of full weight and no interval: {'; '.join(reasons)}. {REMEDY}"
    return Replication(1, single, why)
