"""Mechanisms with finitely many outcomes, by summation: two public candidates, and randomised response as a yardstick.

A candidate's cost is a whole number: Σ ⌊W·(ℓ − low)/(high − low)⌉, each term cut to [0, W], on the lattice 2^−b. One record
at each end moves the two costs by W in opposite directions, so the promise is attained as the other records agree
(McSherry and Talwar, FOCS 2007). The candidates are public; they are taken from the plan as the program lays them out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import special

from onedraw import audit
from onedraw.errors import WrongCall
from onedraw.mechanisms import Candidates, Gibbs, Plan
from onedraw.models import BinaryRegression, Gaussian, Logistic
from onedraw.privacy import Promise, PureDP

from .case import Array, Case, LogDensity, Pair
from .convex import eligible, encoded, longest_row, loss_of, opposite_responses, signed
from .divergence import bernoulli_loss, pure

LAYOUTS = 200
"""Candidates are public and drawn anew for each release: of so many layouts the worst one is looked at."""


@dataclass(frozen=True)
class CandidateCase(Case):
    """The first round of candidates; the profile is that of the pick, given the candidates."""

    weights: ClassVar[tuple[str, ...]] = ("width_1",)

    @property
    def promise(self) -> Promise:
        """That of the first round, given its candidates: 2·W·2^−b."""
        numbers = self.plan.parameters
        return PureDP(math.ldexp(2.0 * numbers["width_1"], -int(numbers["bits"])))

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        return audit.finite_profile(*(self.law(records, factor) for records in (pair.first, pair.second)))

    def law(self, records: Any, factor: float) -> Array:
        """The probabilities of the candidates."""
        thetas, public_costs = self.layout
        numbers, model = self.plan.parameters, self.plan.model
        width, lattice = numbers["width_1"], 2.0 ** -numbers["bits"]
        X, y = encoded(model, np.asarray(records[0], dtype=np.float64)), signed(model, records[1], len(records[1]))
        unique, counts = np.unique(X * y[:, None], axis=0, return_counts=True)
        margins = thetas @ unique.T
        if "beta" in numbers:
            beta = numbers["beta"]
            losses, low, high = bernoulli_loss(margins, beta), 1 / beta - 1 / (beta - 1), 1 / beta
        else:
            reach = model.prior.radius * math.sqrt(float(model.features.squared_reach))
            phi = loss_of(model)
            low, high = (float(phi(np.array(sign * reach), 1.0)) for sign in (1.0, -1.0))
            losses = phi(margins, 1.0)
        costs = np.clip(np.rint(factor * width * (losses - low) / (high - low)), 0.0, math.floor(factor * width))
        return np.asarray(special.softmax(-lattice * (costs @ counts + public_costs)))

    @cached_property
    def layout_seed(self) -> int:
        """The layout whose candidates differ most along the pair's row, among the first few."""
        target = self.plan.target(self.plan.model.summarise(self.pairs[0].first))
        row = encoded(self.plan.model, np.asarray(self.pairs[0].first[0], dtype=np.float64)[:1])[0]

        def contrast(seed: int) -> float:
            places = target.propose(0, [], np.random.default_rng(seed))[0] @ row
            return float(special.expit(places.max()) - special.expit(places.min()))

        return max(range(LAYOUTS), key=contrast)

    @cached_property
    def layout(self) -> tuple[Array, Array]:
        """The candidates and their public costs, as the program lays them out; the records have no part in it."""
        target = self.plan.target(self.plan.model.summarise(self.pairs[0].first))
        thetas, costs = target.propose(0, [], np.random.default_rng(self.layout_seed))
        return thetas, costs.astype(np.float64)

    def faulty(self, factor: float) -> Plan:
        """W times the factor; on a coarser lattice where it would not fit."""
        numbers, coarser = dict(self.plan.numbers), max(0, math.ceil(math.log2(factor)))
        numbers["width_1"] = float(math.floor(numbers["width_1"] * factor / 2**coarser))
        numbers["bits"] -= coarser
        return Plan(self.plan.mechanism, self.plan.request, tuple(numbers.items()), self.plan.guarantee)


@dataclass(frozen=True)
class RandomisedResponse:
    """The yardstick: tells the truth with probability e^ε/(1 + e^ε). Its ε is its weight, and it is attained exactly."""

    epsilon: float
    name: str = "randomised response"
    model: str = "one bit"
    mechanism: str = "randomised response"
    reason: str = "the definition of ε"
    attained: bool = True
    pairs: tuple[Pair, ...] = (Pair("0 and 1", [0], [1]),)
    plan: None = None

    @property
    def promise(self) -> Promise:
        return PureDP(self.epsilon)

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        truth = float(special.expit(factor * self.epsilon))
        laws = [
            np.array([truth, 1 - truth]) if records == [0] else np.array([1 - truth, truth])
            for records in (pair.first, pair.second)
        ]
        return audit.finite_profile(*laws)

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        truth = float(special.expit(factor * self.epsilon))
        return lambda draws: np.log(np.where(draws.reshape(-1) == records[0], truth, 1.0 - truth))


def candidate_case(plan: Plan, *, label: str = "") -> CandidateCase:
    """The case of any plan that selects by labels and a linear predictor: its first round."""
    model, n = plan.model, plan.n
    if not isinstance(model, BinaryRegression | Logistic):
        raise WrongCall(
            f"The audit knows how candidates are scored for two classes, not for {type(model).__name__}. Audit the law of its "
            "picks with onedraw.audit.finite_profile."
        )
    row, (yes, no) = longest_row(model, unbounded=1e6), opposite_responses(model)
    X = np.tile(row, (n, 1))
    crowds = {"all the first": [yes] * (n - 1), "all the second": [no] * (n - 1), "balanced": ([yes, no] * n)[: n - 1]}
    pairs = tuple(
        Pair(f"one label flipped, others {name}", (X, [*others, yes]), (X, [*others, no]))
        for name, others in crowds.items()
    )
    sure = not model.features.bounded
    reason = (
        "one candidate loses what the other gains, and the other records agree: the whole ε in one direction"
        if sure
        else "candidates drawn from the prior do not lie at the ends of the ball, where the losses differ most"
    )
    return CandidateCase(plan, pairs, reason, sure, label)


def two_candidates(budget: Promise) -> list[Case]:
    """β-losses on rows so long that each candidate is sure of every label, and enough of them to outvote one."""
    n = max(30, math.ceil(30.0 / pure(budget).stated_epsilon))
    binary = BinaryRegression(1, intercept=False, prior=Gaussian(scale=1.0))
    plan = eligible(Candidates(count=2, rounds=1), binary, pure(budget), n=n)
    return [] if plan is None else [candidate_case(plan, label="two candidates")]


def two_candidates_on_a_ball(budget: Promise, *, n: int = 30) -> list[Case]:
    margin = Logistic(1, bounds=(-1, 1), intercept=False, prior=Gaussian(scale=1.0, radius=2.0))
    plan = eligible(Candidates(of=Gibbs("bounded"), count=2, rounds=1), margin, pure(budget), n=n)
    return [] if plan is None else [candidate_case(plan, label="two candidates")]
