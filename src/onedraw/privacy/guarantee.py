"""What stands on a certificate: a promise with everything it rests on, and how exact the draw is.

A `Guarantee` is a promise with its neighbours, unit, theorem, and assumptions with their provenance. An `Exactness` is what
a sampler says before it runs, and what a release pays for it (architecture.md). Strongest first: ``Exact``, ``LastIterate``
(the law actually sampled carries its own promise), ``WithinTV(γ)`` (proven total variation distance), ``Estimated``
(evidence), ``Assumed`` (a named assumption). A draw that is only nearly exact turns (ε, δ) into (ε, δ + (1+e^ε)γ)
(mathematics.md §1; errata 12).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from onedraw.errors import InvalidBudget, PromiseRefused
from onedraw.privacy import conversions
from onedraw.privacy.numbers import positive, positive_integer, probability, sum_up, text
from onedraw.privacy.promises import ApproxDP, Promise
from onedraw.privacy.stored import Stored


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


class Exactness(Stored, key="kind", noun="exactness", refuses=InvalidBudget):
    """The relation between the law a theorem is about and the law a sampler draws from."""

    words: ClassVar[str]
    """For a certificate, with the fields in braces."""

    @property
    def sentence(self) -> str:
        """The words for a certificate."""
        values = self._values().items()
        return self.words.format(**{name: text(value) if name == "gamma" else value for name, value in values})


@dataclass(frozen=True)
class Exact(Exactness, tag="exact"):
    """A draw from the very law the theorem is about; ``numeric`` names the number model it is exact in."""

    numeric: str = ""

    @property
    def sentence(self) -> str:
        return f"exact draw ({self.numeric})" if self.numeric else "exact draw"


@dataclass(frozen=True)
class WithinTV(Exactness, tag="within-tv"):
    """The law drawn from is proven to be within total variation ``gamma``, for every data set."""

    words = "proven to be within total variation {gamma} of an exact draw"
    gamma: float

    def __post_init__(self) -> None:
        self._set(gamma=probability("γ", self.gamma))


@dataclass(frozen=True)
class LastIterate(Exactness, tag="last-iterate"):
    """The last iterate of a noisy algorithm: its own law is proven to keep ``promise``."""

    words = "last iterate, itself proven to keep {promise}"
    promise: Promise


@dataclass(frozen=True)
class AsRun(Exactness, tag="as-run"):
    """The theorem is about the program itself, its rounding and early stopping included: what ran keeps ``promise``."""

    words = "the program that ran is itself proven to keep {promise}"
    promise: Promise


@dataclass(frozen=True)
class Estimated(Exactness, tag="estimated"):
    """Estimated to be within total variation ``gamma`` for every data set: evidence, not proof.

    Never pure: even where the estimate is right, a promise pays for γ as it does for `WithinTV`.
    """

    words = "estimated, not proven, to be within total variation {gamma} of an exact draw ({evidence})"
    gamma: float
    evidence: str

    def __post_init__(self) -> None:
        self._set(gamma=probability("γ", self.gamma))


@dataclass(frozen=True)
class Assumed(Exactness, tag="assumed"):
    """Taken to be exact on the strength of a statement the caller accepted in so many words."""

    words = "assumed, not proven: {statement}"
    statement: str


def with_total_variation(promise: Promise, gamma: float, epsilon: float | None = None) -> ApproxDP:
    """The (ε, δ) kept by a law within total variation γ of one that keeps ``promise``, for every data set.

    ``epsilon`` says at which ε; it may be left out for PureDP, BoundedRange and ApproxDP, which have their
    own.
    """
    gamma = probability("γ", gamma)
    if epsilon is None:
        epsilon = promise.stated_epsilon if isinstance(promise, ApproxDP) else promise.pure_epsilon
        if epsilon == math.inf:
            raise InvalidBudget(
                f"{promise} holds at every ε with its own δ, and what γ costs depends on ε: pass epsilon=…"
            )
    epsilon = positive("ε", epsilon)
    delta = sum_up([promise.delta(epsilon), conversions.total_variation_delta(epsilon, gamma)])
    if not delta < 1.0:
        raise PromiseRefused(
            f"a draw within total variation {text(gamma)} promises nothing at ε = {text(epsilon)}: δ would "
            f"be {delta:.3g}. Run the sampler longer, so that γ is smaller."
        )
    return ApproxDP(epsilon, delta)


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
