"""Which mechanism? The eligible one whose expected error is smallest, from public numbers only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from onedraw.errors import PromiseRefused
from onedraw.mechanisms import Concentrated, Diffused, Direct, Plan, calibrate
from onedraw.privacy import Promise

from .expectation import Expectation, expected_error

CANDIDATES = (Direct(), Diffused(), Concentrated())


@dataclass(frozen=True)
class Choice:
    """A plan and what may be expected of it."""

    plan: Plan
    expected: Expectation


@dataclass(frozen=True)
class Choices:
    """The eligible plans, best first, and why the others are not eligible."""

    eligible: tuple[Choice, ...]
    refused: dict[str, str]

    @property
    def best(self) -> Plan:
        return self.eligible[0].plan


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
