"""One step of a private chain as a frozen value, and what it may see.

``public`` (`PublicStep`) holds the model, the plan's numbers and a stream of uniform directions that anyone can draw
again; ``records`` adds up statistics of `onedraw.data.sums` and holds the encoded rows; ``secret`` (the sampler's)
gives exact decisions and noise under a key that nobody knows. Proposals must come from ``public`` alone where Lemma 1
(privacy/averaged_directions.md) is counted on. What T steps promise together, and how many there are: mechanism.py.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.models.public_directions import PublicDirections
from onedraw.models.sums.exact_sums import Scaled
from onedraw.plans import Request
from onedraw.privacy import Promise
from onedraw.private import Private


def two_sources(public: str, secret: str) -> str:
    """Where a chain's randomness comes from, for the certificate."""
    return f"{public} come from a public seed, drawn at the release when the records are fixed; {secret} from another key, a secret one"


class Secret(Protocol):
    """What only the release knows: fresh randomness, spent on exact decisions and on noise."""

    def accepts(self, cost: int, bits: int) -> bool:
        """True with probability exactly 1/(1 + exp(cost·2^−bits))."""

    def select(self, costs: Integers, bits: int) -> int:
        """k with probability exactly ∝ exp(−costs[k]·2^−bits)."""

    def coin(self, cost: int, bits: int) -> bool:
        """True with probability exactly exp(−cost·2^−bits), a cost of at least 0."""

    def noise(self, deviations: Array) -> Integers:
        """Discrete Gaussian numbers, independent, each of its deviation in whole steps: OpenDP's exact ones."""

    def normal(self, size: int) -> Array:
        """Independent standard normal numbers, in floating point."""

    def uniform(self) -> float:
        """In (0, 1), in floating point."""


@dataclass(frozen=True, eq=False)
class PublicStep:
    """What everybody knows of every step: the model, the plan's numbers, and the directions in their order."""

    model: Any
    numbers: Mapping[str, float]
    n: int
    source: PublicDirections

    def direction(self) -> Array:
        """The next one, uniform on the unit sphere of all coefficients."""
        return self.source.direction()

    def directions(self, count: int) -> Array:
        return self.source.directions(count)


@dataclass(frozen=True, eq=False, repr=False)
class ChainRecords(Private):
    """The records as a step reads them: by sums of whole numbers, or as encoded rows. As private as they are."""

    encoded: Any

    @cached_property
    def _blocks(self) -> Any:
        return self.encoded.records.read_as(Scaled())

    def sum(self, statistic: Any, *public: Any) -> Integers:
        """Σ over the records, in whole numbers."""
        return np.asarray(self._blocks.sum(statistic, *public))


class Kernel(abc.ABC):
    """One step of a private chain; a frozen value."""

    title: ClassVar[str]
    theorem: ClassVar[str]
    """Of T steps together, for the certificate."""
    invariant: ClassVar[str] = "exact"
    """"exact": a step leaves π·exp(−wΣℓ) unchanged; "unknown": no stationary law is known."""
    outcomes: ClassVar[int] = 2
    """Decisions to choose from in a step, which are published; 0 where the path does not follow from them."""
    passes: ClassVar[int] = 1
    """Over the records, in a step."""
    constant_work: ClassVar[bool] = False
    """Whether every step makes them, whatever it proposes."""
    noisy: ClassVar[bool] = False
    """Whether it draws noise of OpenDP's."""
    whole_sums: ClassVar[bool] = False
    """Whether the records enter by sums of whole numbers alone, and decisions are exact."""
    enforced: ClassVar[tuple[str, ...]] = ()
    """What the program makes true, for the certificate."""

    def check(self, request: Request) -> None:  # noqa: B027  # nothing to refuse is a kernel's right
        """Refuse what the kernel cannot keep, with the number that is too large and what to use instead."""

    def check_room(self, model: Any, numbers: Mapping[str, float], n: int) -> None:  # noqa: B027
        """Refuse a plan whose sums could leave their whole numbers."""

    def check_steps(self, model: Any, numbers: Mapping[str, float], n: int) -> None:  # noqa: B027
        """Refuse public numbers with which a path cannot move, before anything is paid for it."""

    @abc.abstractmethod
    def numbers(self, model: Any, weight: float, n: int) -> dict[str, float]:
        """What a step at this weight goes by: public numbers by name, ``weight`` among them, which the plan stores."""

    @abc.abstractmethod
    def promise(self, model: Any, numbers: Mapping[str, float], n: int, *, records_per_person: int = 1) -> Promise:
        """Of one step, given all before it."""

    @abc.abstractmethod
    def relaxations(self, model: Any, numbers: Mapping[str, float], n: int, steps: int) -> float:
        """How many relaxation times so many steps last; proportional to the steps."""

    @abc.abstractmethod
    def start(self, public: PublicStep) -> Array:
        """A public state to begin with."""

    @abc.abstractmethod
    def step(self, state: Array, records: ChainRecords, public: PublicStep, secret: Secret) -> tuple[Array, int]:
        """(the next state, the decision that led to it)."""

    def moved(self, state: Array, decision: int, public: PublicStep) -> Array:
        """The next state again, from what was published."""
        raise NotImplementedError(f"{self.title} does not publish its decisions")
