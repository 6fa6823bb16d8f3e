"""Selections among public candidates, attacked by summation.

A candidate's cost is a whole number: Σ ⌊W·(ℓ − low)/(high − low)⌉, each term cut to [0, W], on the lattice 2^−b. One
record at each end moves the two costs by W in opposite directions, so the promise is attained as the other records
agree (McSherry and Talwar, FOCS 2007). The candidates are public; they are taken from the plan as the program lays them
out.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from onedraw import samplers
from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, FiniteCase, no_formula, pure
from onedraw.audit.cases.losses import bernoulli_loss, flips, loss_of, records_of
from onedraw.methods.candidates import Candidates
from onedraw.methods.catalog import eligible
from onedraw.methods.gibbs import Gibbs
from onedraw.models import BinaryRegression, Gaussian, Logistic
from onedraw.plans import Plan
from onedraw.privacy import Promise, PureDP
from onedraw.samplers.selection import select

AGREEING = "one candidate loses what the other gains, and the other records agree: the whole ε in one direction"
WITHIN = "candidates drawn from the prior do not lie at the ends of the ball, where the losses differ most"


class ProposedCase(FiniteCase):
    """A pick among public candidates, drawn anew for each release: of many layouts the worst one is looked at."""

    layouts = 200

    @abc.abstractmethod
    def contrast(self, thetas: Array) -> float:
        """How far apart these candidates may take the two laws."""

    @cached_property
    def layout_seed(self) -> int:
        return max(range(self.layouts), key=lambda seed: self.contrast(self.proposed(seed)[0]))

    @cached_property
    def proposed(self) -> Any:
        """The candidates and their public costs by seed, as the program lays them out, without the records."""
        target = self.plan.target(self.plan.model.summarise(self.pairs[0].first))
        return lambda seed: target.propose(0, [], np.random.default_rng(seed))


class CandidateCase(ProposedCase):
    """The first round of candidates; the profile is that of the pick, given the candidates."""

    @property
    def promise(self) -> Promise:
        """That of the first round, given its candidates: 2·W·2^−b."""
        numbers = self.plan.parameters
        return PureDP(math.ldexp(2.0 * numbers["width_1"], -int(numbers["bits"])))

    def draws(self, plan: Plan, records: Any, sampler: Any, *, size: int, seed: int) -> Array:
        """Return which candidate was picked, from one public layout: the bounded range holds given the candidates."""
        target, source = plan.target(plan.model.summarise(records)), samplers.seeded_generator(seed)
        thetas, public_costs = target.propose(0, [], np.random.default_rng(self.layout_seed))
        costs = target.costs(0, thetas) + public_costs
        return np.array([[float(select(costs, source, bits=target.bits))] for _ in range(size)])

    def law(self, records: Any, factor: float = 1.0) -> Array:
        """The probabilities of the candidates."""
        thetas, public_costs = self.proposed(self.layout_seed)
        numbers, model = self.plan.parameters, self.plan.model
        width, lattice = numbers["width_1"], 2.0 ** -numbers["bits"]
        X, y = records_of(model, records)
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

    def contrast(self, thetas: Array) -> float:
        """Along the pair's row."""
        places = special.expit(thetas @ records_of(self.plan.model, self.pairs[0].first)[0][0])
        return float(np.ptp(places))

    def numbers(self, factor: float = 1.0) -> dict[str, float]:
        """W times the factor; on a coarser lattice where it would not fit."""
        numbers, coarser = self.planned, max(0, math.ceil(math.log2(factor)))
        width = float(math.floor(numbers["width_1"] * factor / 2**coarser))
        return {**numbers, "width_1": width, "bits": numbers["bits"] - coarser}


def candidate_case(plan: Plan, *, label: str = "") -> CandidateCase:
    """The case of any plan that selects by labels and a linear predictor: its first round."""
    model = plan.model
    if not isinstance(model, BinaryRegression | Logistic):
        raise no_formula("candidates scored by two classes, not for", model)
    sure = not model.features.bounded
    reason = AGREEING if sure else WITHIN
    return CandidateCase(plan, flips(model, plan.n, unbounded=1e6, both_sides=True), reason, sure, label)


def two_candidates(budget: Promise) -> list[Case]:
    """β-losses on rows so long that candidates are sure of every label, enough to outvote one; a margin loss on a ball."""
    asked = pure(budget)
    binary = BinaryRegression(1, intercept=False, prior=Gaussian(scale=1.0))
    margin = Logistic(1, bounds=(-1, 1), intercept=False, prior=Gaussian(scale=1.0, radius=2.0))
    plans = [
        *eligible(Candidates(count=2, rounds=1), binary, asked, n=max(30, math.ceil(30.0 / asked.stated_epsilon))),
        *eligible(Candidates(of=Gibbs("bounded"), count=2, rounds=1), margin, asked, n=30),
    ]
    return [candidate_case(plan, label="two candidates") for plan in plans]


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {"logistic": two_candidates}
