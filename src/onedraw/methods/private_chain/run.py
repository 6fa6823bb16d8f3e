"""Carrying out a private chain: T steps, one pass over the records each, whatever the records are.

Two sources of randomness that share nothing. Directions come from a **public** seed, fresh from the operating system
and published; decisions and noise from the release's **secret** generator, of which nothing is ever written down. The
number of steps is the plan's: nothing is stopped, restarted or dropped by looking at the records.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import privacy
from onedraw.arrays import Array, Integers
from onedraw.models.public_directions import SEED_BYTES
from onedraw.plans import Plan
from onedraw.private import Private
from onedraw.samplers.noise import Noise
from onedraw.samplers.padding import Padding, constant_work, no_padding
from onedraw.samplers.randomness import BOTH, OPERATING_SYSTEM, is_secure
from onedraw.samplers.sampler import Sample, Sampler
from onedraw.samplers.selection import FIRST_PRECISION, accepts, exponential_bounds, random_bits, select


@dataclass(frozen=True)
class PrivatePath(Sampler):
    """The sampler of every private chain, and of nothing else; it has no options."""

    randomness: ClassVar[str] = "numpy"
    why: ClassVar[str] = "private decisions along public directions"
    compiling: ClassVar[float] = 1.0

    def exactness(self, plan: Plan) -> privacy.AsRun:
        """Of what runs; sums that could leave their whole numbers are refused before anything is spent."""
        self.check_own(plan, "walks the path that a private chain's plan lays out")
        plan.mechanism.check_room(plan)
        return privacy.AsRun(plan.guarantee.promise)

    def entropy(self, plan: Plan) -> str:
        """Noise is OpenDP's where a kernel asks for it; decisions are the generator's."""
        return BOTH if plan.mechanism.kernel.noisy else OPERATING_SYSTEM

    def whole_numbers(self, plan: Plan) -> bool:
        return bool(plan.mechanism.sums_exactly(plan))

    def passes(self, plan: Plan) -> int:
        return int(plan.parameters["steps"]) * plan.draws * int(plan.mechanism.kernel.passes)

    def padding(self, plan: Plan) -> Padding:
        """Nothing to pad where a kernel makes its passes at every step."""
        if not plan.mechanism.kernel.constant_work:
            raise no_padding("PrivatePath", f"a step of {plan.mechanism.kernel.title} may leave out a pass")
        return constant_work(self.passes(plan))

    def seconds(self, plan: Plan) -> float:
        return self.passes(plan) * (3e-4 + super().seconds(plan))

    def seconds_each(self, plan: Plan) -> float:
        return self.seconds(plan) / plan.draws

    def run(self, target: Any, randomness: Generator, *, size: int = 1) -> Sample:
        """``size`` paths, each under a public seed of its own; for the curator, the share of proposals taken."""
        seeds, decisions, draws, taken = [], [], [], []
        for _ in range(size):
            seeds.append(public_seed(randomness))
            states, made = walk(target, seeds[-1], Secret(randomness))
            draws.append(target.published(states))
            decisions.append(made)
            taken.append(float(np.mean(np.any(np.diff(states, axis=0) != 0.0, axis=1))))
        return Sample(np.array(draws), {"acceptance": taken}, target.stages(seeds, decisions))


def walk(target: Any, seed: bytes, secret: Secret) -> tuple[Array, list[int]]:
    """(every state, every decision) of one path."""
    public = target.public(seed)
    states, decisions = [target.kernel.start(public)], []
    for _ in range(target.steps):
        state, decision = target.kernel.step(states[-1], target.records, public, secret)
        states.append(state)
        decisions.append(decision)
    return np.array(states), decisions


def public_seed(generator: Generator) -> bytes:
    """Fresh, and no part of the secret stream; of a seeded run, which is not private, reproducible."""
    return os.urandom(SEED_BYTES) if is_secure(generator) else generator.bytes(SEED_BYTES)


@dataclass(frozen=True, repr=False)
class Secret(Private):
    """Decisions and noise from the secret generator."""

    generator: Generator

    def accepts(self, cost: int, bits: int) -> bool:
        return barker_accepts(cost, bits, self.generator)

    def select(self, costs: Integers, bits: int) -> int:
        return select(costs, self.generator, bits=bits)

    def coin(self, cost: int, bits: int) -> bool:
        return accepts(cost, bits, 0, self.generator)

    def noise(self, deviations: Array) -> Integers:
        return Noise(self.generator, pure=False).alone(deviations)

    def normal(self, size: int) -> Array:
        return self.generator.standard_normal(size)

    def uniform(self) -> float:
        return float(1.0 - self.generator.random())


def barker_accepts(cost: int, bits: int, generator: Generator) -> bool:
    """True with probability exactly 1/(1 + exp(cost·2^−bits)): no proposal is made and taken back, bits are compared
    once.

    With E = exp(−|cost|·2^−bits) between whole numbers low and high of 2^precision, E/(1 + E) is the smaller
    probability, and it increases in E. 64 bits decide but once in 2^60 times, when as many more are drawn."""
    precision = FIRST_PRECISION
    uniform = random_bits(precision, generator)
    while True:
        one = 1 << precision
        low, high = exponential_bounds(abs(cost), bits, precision)
        if (uniform + 1) * (one + low) <= low << precision:
            return cost > 0
        if uniform * (one + high) >= high << precision:
            return cost <= 0
        uniform = (uniform << precision) | random_bits(precision, generator)
        precision *= 2
