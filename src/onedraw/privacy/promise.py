"""What a promise is, what every promise answers, and what stands with it on a certificate; the values themselves are in
``promises``, their meanings in promises.md.

Always rounded against ourselves: ``epsilon(delta)``, ``delta(epsilon)`` and ``implies(other)``. To answer the last one each
promise says what it is worth in each of the other currencies (``pure_epsilon``, ``range_epsilon``, ``gaussian_mu``,
``zcdp_rho``, ``renyi``), +∞ or None where nothing is proven. A promise that is asked for, a *budget*, also says what it
allows: ``is_pure``, ``allows(kind)``, ``total_variation(share)``. Neighbours are replace-one with n public, for all of them.

**On a certificate.** A `Guarantee` is a promise with its neighbours, unit, theorem, and assumptions with their provenance.
An `Exactness` is what a sampler says before it runs, and what a release pays for it (docs/exactness.md). Strongest first:
``Exact``, ``LastIterate`` (the law actually sampled carries its own promise), ``WithinTV(γ)`` (proven total variation
distance), ``Estimated`` (evidence), ``Assumed`` (a named assumption).
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from onedraw.defaults import DELTA
from onedraw.errors import InvalidBudget

from . import conversions
from .numbers import epsilon_argument, largest, positive_integer, probability, text
from .stored import Stored

if TYPE_CHECKING:
    from .promises import RenyiDP


class Promise(Stored, key="kind", noun="promise", refuses=InvalidBudget):
    """A statement about every pair of neighbouring data sets.

    **Guarantee.** ``epsilon`` and ``delta`` are never below the true value for a mechanism that keeps the
    promise; ``implies`` is True only when a proof is known, so False means "not proven", not "false".
    """

    states: ClassVar[str] = ""
    """The field that holds its `number`."""
    quoted_delta: float = DELTA
    """The δ at which ε is quoted: its own, 0 of a pure promise, the public default where it names none."""
    failure: float = 0.0
    """An upper bound on the probability of the event outside which ``outside_failure`` is kept: an (ε, δ)'s δ."""

    def epsilon(self, delta: float) -> float:
        """The smallest ε at this δ, rounded up; ``math.inf`` if there is none."""
        return self._epsilon(probability("δ", delta))

    def delta(self, epsilon: float) -> float:
        """The smallest δ at this ε, rounded up."""
        return self._delta(epsilon_argument(epsilon))

    @abc.abstractmethod
    def _epsilon(self, delta: float) -> float: ...

    @abc.abstractmethod
    def _delta(self, epsilon: float) -> float: ...

    @property
    def pure_epsilon(self) -> float:
        """The smallest ε for which PureDP(ε) is proven to follow."""
        return math.inf

    @property
    def range_epsilon(self) -> float:
        """The smallest ε for which BoundedRange(ε) is proven to follow."""
        return 2.0 * self.pure_epsilon  # the log-ratio lies in [−ε, ε]

    @property
    def gaussian_mu(self) -> float:
        """The smallest μ for which GaussianDP(μ) is proven to follow."""
        return conversions.pure_to_gaussian(self.pure_epsilon)

    @property
    def zcdp_rho(self) -> float:
        """The smallest ρ for which ZCDP(ρ) is proven to follow."""
        return self.renyi.curve.slope if self.renyi is not None and self.renyi.limit == math.inf else math.inf

    @property
    def renyi(self) -> RenyiDP | None:
        """The best Rényi curve that is proven to follow."""
        return None

    @property
    def outside_failure(self) -> Promise:
        """What is kept outside that event: (ε, δ) is no worse than PureDP(ε) there (arXiv:1311.0776)."""
        return self

    @property
    def counted(self) -> tuple[tuple[Promise, int], ...]:
        """The single promises it is made of, with their multiplicities: itself, unless it is a composition."""
        return ((self, 1),)

    @property
    def is_pure(self) -> bool:
        """Whether it bounds log-ratios themselves, so that a budget of it has no use for anything but a sum of ε."""
        return self.pure_epsilon < math.inf

    @property
    def number(self) -> float:
        """The number it states (ε, μ, ρ); 0 where there is no single one."""
        return float(getattr(self, self.states)) if self.states else 0.0

    def allows(self, kind: Callable[[float], Promise]) -> float:
        """The largest number with which ``kind(number)`` is proven to imply this promise, rounded down; 0 where none is."""
        known = self._allowed.get(kind)
        return _largest_allowed(kind, self) if known is None else known

    @property
    def _allowed(self) -> Mapping[Callable[[float], Promise], float]:
        """What it allows in closed form."""
        return {type(self): self.number} if self.number else {}

    def total_variation(self, share: float = 1.0) -> float:
        """The γ that this share of its δ can pay for at its ε, rounded down; 0 where it has no δ to pay with."""
        return 0.0

    def less(self, gamma: float) -> Promise | None:
        """What exact draws must keep so that draws within total variation γ of them keep this; None if nothing would do."""
        return None if gamma else self

    def divergence(self, order: float) -> float:
        """The bound on D_λ that is proven to follow at one order; +∞ where none is."""
        return self.renyi.at_order(order) if self.renyi is not None else math.inf

    def implies(self, other: Promise) -> bool:
        """Whether every mechanism that keeps this promise is proven to keep ``other``."""
        if not isinstance(other, Promise):
            raise InvalidBudget(f"a promise can only imply another promise, not a {type(other).__name__}")
        return self == other or other._follows_from(self)

    @abc.abstractmethod
    def _follows_from(self, stronger: Promise) -> bool: ...

    def _keeps(self, epsilon: float, delta: float) -> bool:
        """Whether (ε, δ) is proven to follow. Both profiles are asked: each rounds in its own direction."""
        return self._delta(epsilon) <= delta or self._epsilon(delta) <= epsilon


@lru_cache(maxsize=1024)
def _largest_allowed(kind: Callable[[float], Promise], promise: Promise) -> float:
    found = largest(lambda one: kind(one).implies(promise), least=2.0**-498, most=2.0**39, precision=2.0**-40)
    return found or 0.0


# ── on a certificate ──


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


@dataclass(frozen=True)
class Unit(Stored, noun="unit", refuses=InvalidBudget):
    """What is protected: one record, or all records of a person, who contributes at most ``records_per_person``."""

    records_per_person: Annotated[int, partial(positive_integer, "records_per_person")] = 1

    def words(self, *, person: bool) -> str:
        """Name the unit; ``person``: whether the schema says whose a record is."""
        if self.records_per_person > 1:
            return f"one person, who contributes at most {self.records_per_person} records"
        return "one person, who contributes one record" if person else "one record"

    @property
    def sentence(self) -> str:
        """The unit where no schema is known."""
        return self.words(person=False)


@dataclass(frozen=True)
class Assumption(Stored, noun="assumption", refuses=InvalidBudget):
    """A statement the theorem needs, and who answers for it."""

    statement: Annotated[str, partial(_words, "an assumption's statement")]
    provenance: Annotated[Provenance, partial(_member, Provenance)]

    def __str__(self) -> str:
        return f"{self.statement} ({self.provenance})"


@dataclass(frozen=True)
class Guarantee(Stored, noun="guarantee", refuses=InvalidBudget):
    """What is promised, between whom, about whom, by which theorem, on which assumptions."""

    promise: Promise
    neighbours: Annotated[Neighbours, partial(_member, Neighbours)]
    unit: Unit
    theorem: Annotated[str, partial(_words, "the theorem of a guarantee")]
    assumptions: tuple[Assumption, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.promise, Promise) or not isinstance(self.unit, Unit):
            raise InvalidBudget("a guarantee is made of a promise and a unit; see onedraw.privacy")
        super().__post_init__()
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
    gamma: Annotated[float, partial(probability, "γ")]


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
class Accounted(Exactness, tag="accounted"):
    """The theorem is about the program itself, step by step; what all steps keep together was added up numerically, roundings
    upwards."""

    words = "the program's own privacy loss, added up numerically over its steps and rounded up, gives {promise}"
    promise: Promise


@dataclass(frozen=True)
class Estimated(Exactness, tag="estimated"):
    """Estimated to be within total variation ``gamma`` for every data set: evidence, not proof.

    Never pure: even where the estimate is right, a promise pays for γ as it does for `WithinTV`.
    """

    words = "estimated, not proven, to be within total variation {gamma} of an exact draw ({evidence})"
    gamma: Annotated[float, partial(probability, "γ")]
    evidence: str


@dataclass(frozen=True)
class Assumed(Exactness, tag="assumed"):
    """Taken to be exact on the strength of a statement the caller accepted in so many words."""

    words = "assumed, not proven: {statement}"
    statement: str
