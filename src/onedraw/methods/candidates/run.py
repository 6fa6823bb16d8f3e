"""Carry out `Candidates`: rounds of public candidates, and an exact pick from each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw.arrays import Array
from onedraw.models.candidates import passes
from onedraw.models.likelihood import CountLikelihood
from onedraw.models.likelihood.likelihood_model import WithLikelihood
from onedraw.plans import Plan
from onedraw.samplers.padding import PASSES, PICK_GAMMA, Padding
from onedraw.samplers.randomness import secure_generator
from onedraw.samplers.sampler import Sample
from onedraw.samplers.selection import PROPOSALS, Costs, Envelope, WholeNumbers, select

PAIRS_A_SECOND, COUNTS_A_SECOND = 8e7, 1e6
"""Records times candidates; of a likelihood of counts, whose loss is a sum over a hundred of them."""


@dataclass(frozen=True)
class Selection(WholeNumbers):
    """The sampler of `Candidates`, and of nothing else: rounds of public candidates, an exact pick from each."""

    why: ClassVar[str] = "exact selection from public candidates"
    each: ClassVar[float] = 6e-5
    of: ClassVar[str] = "picks from the public candidates that a Candidates() plan lays out"

    def passes(self, plan: Plan) -> int:
        """One for so many candidates of a round."""
        once = int(plan.parameters["rounds"]) * passes(int(plan.parameters["candidates"]))
        return once if plan.mechanism.publish == "picks" else once * plan.draws

    def padding(self, plan: Plan) -> Padding:
        """Of every pick as many proposals as suffice but once in 2^64; scoring takes always as many passes."""
        together = plan.mechanism.publish == "picks"
        picks = int(plan.parameters["rounds"]) * (1 if together else plan.draws)
        return Padding({PASSES: self.passes(plan), "proposals": picks * PROPOSALS}, picks * PICK_GAMMA)

    def seconds(self, plan: Plan) -> float:
        model, pairs = plan.model, plan.n * plan.parameters["rounds"] * plan.parameters["candidates"]
        counts = isinstance(model, WithLikelihood) and isinstance(model.likelihood, CountLikelihood)
        return float(plan.draws * pairs / (COUNTS_A_SECOND if counts else PAIRS_A_SECOND))

    def run(self, target: Any, randomness: Generator, *, size: int = 1) -> Sample:
        """What the target publishes of its picks; ``target.rounds`` candidates are laid out and picked from in turn.

        Candidates of a round depend on public numbers and on the picks before it, never on the records.
        """
        return self._run(target, randomness, partial(select, generator=randomness, bits=target.bits), size)

    def run_padded(self, target: Any, randomness: Generator, padding: Padding, *, size: int = 1) -> Sample:
        """The same picks: idle proposals are made by a generator of their own."""
        made: list[int] = []
        pick = partial(_padded, generator=randomness, idle=secure_generator(), bits=target.bits, made=made)
        return replace(self._run(target, randomness, pick, size), diagnostics={"proposals": sum(made)})

    def _run(self, target: Any, randomness: Generator, pick: Callable[[Costs], int], size: int) -> Sample:
        rows: list[Array] = []
        while len(rows) < size:
            picks: list[Array] = []
            for number in range(target.rounds):
                candidates, public_costs = target.propose(number, picks, randomness)
                costs = target.costs(number, candidates) + public_costs
                picks.append(candidates[pick(costs)])
            rows.extend(target.publish(picks))
        return Sample(np.array(rows[:size]))


def _padded(costs: Costs, *, generator: Generator, idle: Generator, bits: int, made: list[int]) -> int:
    """`select`, and idle proposals from the same envelope up to `PROPOSALS`; how many there were is appended to ``made``."""
    envelope, count, found = Envelope(costs, np.ones(costs.shape, dtype=np.int64), bits), 0, None
    while found is None:
        found, count = envelope.proposal(generator), count + 1
    while count < PROPOSALS:
        envelope.proposal(idle)
        count += 1
    made.append(count)
    return found[0]
