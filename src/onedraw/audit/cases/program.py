"""The program's own draws, and attacks on them: plan, summary, target and sampler as a release runs them.

`release` draws once and charges the ledger each time. Here the same steps run with a seeded generator and many draws at
a go, without ledger and certificate: an attack needs thousands of draws of synthetic records, and none of them is
private.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from onedraw import audit, samplers
from onedraw.audit.results import AttackResult
from onedraw.mechanisms import Candidates, Plan
from onedraw.privacy import Promise, PureDP
from onedraw.release.certificate import snap, spacing_for
from onedraw.samplers.selection import select

from .case import Array, LogDensity, Pair

Draw = Callable[[int, np.random.Generator, int], Array]


def program_draws(plan: Plan, records: Any, sampler: Any, *, size: int, seed: int) -> Array:
    """``size`` independent draws (size, d), rounded to the lattice as a release would."""
    target = plan.target(plan.model.summarise(records))
    source = samplers.seeded_key(seed) if sampler.randomness == "jax" else samplers.seeded_generator(seed)
    draws = sampler.run(target, source, size=size).draws
    return snap(draws, spacing_for(plan.model.prior_scale, None)).reshape(size, -1)


def draws_of(case: Any, pair: Pair, *, factor: float = 1.0, sampler: Any = None) -> Draw | None:
    """``draw(which, generator, size)`` of the program with the planted fault; None where nothing proven can be run."""
    if isinstance(case, RandomisedResponse):
        return lambda which, generator, size: case.draws(which, factor, generator, size)
    plan = case.faulty(factor)
    chosen = case.sampler(plan) if sampler is None else sampler
    if chosen is None:
        return None

    def draw(which: int, generator: np.random.Generator, size: int) -> Array:
        records, seed = (pair.first, pair.second)[which], int(generator.integers(2**62))
        if not isinstance(plan.mechanism, Candidates):
            return program_draws(plan, records, chosen, size=size, seed=seed)
        # which candidate was picked, from one public layout: BoundedRange holds given the candidates
        target, source = plan.target(plan.model.summarise(records)), samplers.seeded_generator(seed)
        thetas, public_costs = target.propose(0, [], np.random.default_rng(case.layout_seed))
        costs = target.costs(0, thetas) + public_costs
        return np.array([[float(select(costs, source, bits=target.bits))] for _ in range(size)])

    return draw


@dataclass(frozen=True)
class RandomisedResponse:
    """The yardstick: tells the truth with probability e^ε/(1 + e^ε). Its ε is its weight, and attained exactly."""

    epsilon: float
    name: str = "randomised response"
    model: str = "one bit"
    mechanism: str = "randomised response"
    key: str = "randomised-response"
    reason: str = "the definition of ε"
    attained: bool = True
    pairs: tuple[Pair, ...] = (Pair("0 and 1", [0], [1]),)
    plan: None = None
    delta: float = 0.0
    orders: tuple[float, ...] = ()

    @property
    def promise(self) -> Promise:
        return PureDP(self.epsilon)

    def replayed(self) -> None:
        return None

    def truth(self, factor: float) -> float:
        return float(special.expit(factor * self.epsilon))

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        law = np.array([self.truth(factor), 1.0 - self.truth(factor)])
        return audit.finite_profile(*(law if records == [0] else law[::-1] for records in (pair.first, pair.second)))

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        truth = self.truth(factor)
        return lambda draws: np.log(np.where(draws.reshape(-1) == records[0], truth, 1.0 - truth))

    def draws(self, bit: int, factor: float, generator: np.random.Generator, size: int) -> Array:
        return np.where(generator.random((size, 1)) < self.truth(factor), bit, 1.0 - bit)


BLACK_BOX = ("histogram", "classifier")
THRESHOLDS: dict[str, Any] = {"membership": "held-out", "bayes": 0.5}
"""Of the membership attack: the one that shows the largest ε, chosen on held-out rounds; and the Bayes rule, which
tells two data sets apart most often and so is the one to break a Gaussian or Rényi promise with."""


def attack_program(
    case: Any, pair: Pair, *, rounds: int, methods: tuple[str, ...] = ("membership",), factor: float = 1.0,
    delta: float, confidence: float = 0.95, generator: np.random.Generator, sampler: Any = None,
) -> tuple[AttackResult, ...]:  # fmt: skip
    """Attacks on what the library really draws, at ``factor`` times the weight; none where nothing proven can be run.

    Every method shares the failure probability, so that all bounds hold together. Without a formula for the density the
    membership attack is replaced by the histogram.
    """
    draw = draws_of(case, pair, factor=factor, sampler=sampler)
    if draw is None:
        return ()
    # the attacker's formulas are those of the plan: nobody tells the attacker about a fault
    logs = [case.logdensity(records) for records in (pair.first, pair.second)]
    known = logs[0] is not None
    chosen = dict.fromkeys(method if known or method in BLACK_BOX else "histogram" for method in methods)
    each = 1.0 - (1.0 - confidence) / len(chosen)

    def attack(method: str) -> Any:
        if method in BLACK_BOX:
            return audit.blackbox_lower_bound(
                draw, 0, 1, rounds=rounds, delta=delta, confidence=each, method=method, generator=generator
            )
        return audit.membership_attack(
            draw, *logs, rounds=rounds, calibration_rounds=max(200, rounds // 5), threshold=THRESHOLDS[method],
            delta=delta, confidence=each, generator=generator,
        )  # fmt: skip

    return tuple(attack(method) for method in chosen)
