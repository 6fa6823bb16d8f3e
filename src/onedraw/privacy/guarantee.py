"""A promise with everything it rests on: neighbours, unit, theorem, and assumptions with their provenance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from onedraw.errors import InvalidBudget
from onedraw.privacy.promises import Promise
from onedraw.privacy.stored import Stored
from onedraw.privacy.validation import positive_integer


class Neighbours(StrEnum):
    """Which data sets must be hard to tell apart. Add/remove-one is another promise and never mixed in."""

    REPLACE_ONE = "replace-one, n public"


class Provenance(StrEnum):
    """How far a statement can be relied on."""

    PROVED = "proved"
    ENFORCED = "enforced"
    DECLARED = "declared"
    ASSUMED = "assumed"
    INFERRED = "inferred"


@dataclass(frozen=True)
class Unit(Stored, noun="unit", refuses=InvalidBudget):
    """Who is protected: a person, who contributes at most ``records_per_person`` records."""

    records_per_person: int = 1

    def __post_init__(self) -> None:
        count = positive_integer("records_per_person", self.records_per_person)
        self._set(records_per_person=count)

    @property
    def sentence(self) -> str:
        if self.records_per_person == 1:
            return "one person, who contributes one record"
        return f"one person, who contributes at most {self.records_per_person} records"


@dataclass(frozen=True)
class Assumption(Stored, noun="assumption", refuses=InvalidBudget):
    """A statement the theorem needs, and who answers for it."""

    statement: str
    provenance: Provenance

    def __post_init__(self) -> None:
        self._set(statement=_words("an assumption's statement", self.statement))
        self._set(provenance=_member(Provenance, self.provenance))

    def __str__(self) -> str:
        return f"{self.statement} ({self.provenance})"


@dataclass(frozen=True)
class Guarantee(Stored, noun="guarantee", refuses=InvalidBudget):
    """What is promised, between whom, about whom, by which theorem, on which assumptions."""

    promise: Promise
    neighbours: Neighbours
    unit: Unit
    theorem: str
    assumptions: tuple[Assumption, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.promise, Promise) or not isinstance(self.unit, Unit):
            raise InvalidBudget("a guarantee is made of a promise and a unit; see onedraw.privacy")
        self._set(neighbours=_member(Neighbours, self.neighbours))
        self._set(theorem=_words("the theorem of a guarantee", self.theorem))
        self._set(assumptions=tuple(self.assumptions))
        if not all(isinstance(assumption, Assumption) for assumption in self.assumptions):
            raise InvalidBudget("every assumption of a guarantee is an Assumption(statement, provenance)")

    def __str__(self) -> str:
        return f"{self.promise}; neighbours: {self.neighbours}; unit: {self.unit.sentence}; by {self.theorem}"


def _words(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidBudget(f"{name} must be a sentence that a reader can check, not {value!r}")
    return value


def _member(values: type[Any], value: Any) -> Any:
    try:
        return values(value)
    except ValueError:
        known = ", ".join(repr(member.value) for member in values)
        raise InvalidBudget(f"{values.__name__} is one of {known}, not {value!r}") from None
