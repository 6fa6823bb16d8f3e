"""A step of a private chain as it is shipped, run for every answer that its secret could give.

`Told` stands in the place of the sampler's secret: it answers as told and knows how likely each answer was, so that a step's
law, given what is public, is found without a draw. Noise that a step asks for is written down and is 0: what follows is the
law given that noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from onedraw.arrays import Array, Integers
from onedraw.methods.private_chain.kernel import ChainRecords, Kernel, PublicStep
from onedraw.models.public_directions import PublicDirections
from onedraw.plans import Plan

Public = Callable[[], PublicStep]
"""What a step may know, from its beginning: every run of it reads the same directions."""


@dataclass
class Told:
    """Answers by their numbers: those given, then the first of each question; ``options`` is how many each question had."""

    answers: list[int]
    options: list[int] = field(default_factory=list)
    noises: list[Array] = field(default_factory=list)
    chance: float = 1.0

    def accepts(self, cost: int, bits: int) -> bool:
        return self._yes(float(special.expit(-math.ldexp(cost, -bits))))

    def coin(self, cost: int, bits: int) -> bool:
        return self._yes(math.exp(-math.ldexp(cost, -bits)))

    def select(self, costs: Integers, bits: int) -> int:
        return self._answer(special.softmax(-np.ldexp((costs - costs.min()).astype(np.float64), -bits)))

    def noise(self, deviations: Array) -> Integers:
        self.noises.append(np.asarray(deviations))
        return np.zeros(len(deviations), dtype=np.int64)

    def _yes(self, likely: float) -> bool:
        return self._answer((likely, 1.0 - likely)) == 0

    def _answer(self, chances: Sequence[float] | Array) -> int:
        if len(self.options) == len(self.answers):
            self.answers.append(0)
        said = self.answers[len(self.options)]
        self.options.append(len(chances))
        self.chance *= float(chances[said])
        return said


class Along(PublicDirections):
    """One direction, given by the audit."""

    def __init__(self, given: Array) -> None:
        super().__init__(b"", len(given))
        self.given = given

    def direction(self) -> Array:
        return self.given


class Outcome(NamedTuple):
    """One way in which a step's questions can be answered, and the deviations of the noise that it asked for."""

    state: Array
    decision: int
    chance: float
    noises: list[Array]


@dataclass(frozen=True)
class Program:
    """A kernel with the numbers that run and a data set: what a release would carry out."""

    kernel: Kernel
    model: Any
    numbers: Any
    records: ChainRecords

    @classmethod
    def of(cls, kernel: Kernel, model: Any, numbers: Any, records: Any) -> Program:
        return cls(kernel, model, numbers, ChainRecords(model.summarise(records)))

    @classmethod
    def of_plan(cls, plan: Plan, records: Any) -> Program:
        target: Any = plan.target(plan.model.summarise(records))
        return cls(target.kernel, plan.model, plan.parameters, target.records)

    def along(self, direction: Array) -> Public:
        return lambda: PublicStep(self.model, self.numbers, self.records.encoded.n, Along(direction))

    @property
    def start(self) -> Array:
        return self.kernel.start(self.along(np.zeros(self.model.dimension))())

    def outcomes(self, state: Array, public: Public) -> list[Outcome]:
        """Of a step from this state, every one."""
        found, left = [], [list[int]()]
        while left:
            answers = left.pop()
            known, secret = len(answers), Told(answers)
            reached, decision = self.kernel.step(state, self.records, public(), secret)  # type: ignore[arg-type]  # no floats asked for
            found.append(Outcome(reached, decision, secret.chance, secret.noises))
            asked = enumerate(secret.options)
            left += [[*answers[:place], other] for place, many in asked if place >= known for other in range(1, many)]
        return found

    def chances(self, state: Array, public: Public) -> Array:
        """That a step publishes each of its decisions."""
        found = self.outcomes(state, public)
        decisions, chances = [one.decision for one in found], [one.chance for one in found]
        return np.asarray(np.bincount(decisions, chances, self.kernel.outcomes), dtype=np.float64)
