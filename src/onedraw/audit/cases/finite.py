"""Selections with finitely many outcomes, by summation: two public candidates, and a choice among settings.

A candidate's cost is a whole number: Σ ⌊W·(ℓ − low)/(high − low)⌉, each term cut to [0, W], on the lattice 2^−b. One
record at each end moves the two costs by W in opposite directions, so the promise is attained as the other records
agree (McSherry and Talwar, FOCS 2007). The candidates are public; they are taken from the plan as the program lays them
out.

On a choice's worst pair all records but one favour the same setting, so the others have next to no chance, and the last
record takes its whole loss from one of them to the winner: that one's chance grows by e^{2η}.
"""

from __future__ import annotations

import abc
import math
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.methods import Candidates, ExponentialChoice, Gibbs, Plan, calibrate
from onedraw.models import BinaryRegression, Gaussian, Logistic
from onedraw.models.tables.scores import LOSS_STEPS, Losses, ModelChoice
from onedraw.privacy import Promise, PureDP

from .case import Case, FiniteCase, LogDensity, Pair, eligible, no_formula, pure
from .divergence import bernoulli_loss
from .losses import flips, loss_of, records_of
from .quantiles import SelectionCase, selection_law

AGREEING = "one candidate loses what the other gains, and the other records agree: the whole ε in one direction"
WITHIN = "candidates drawn from the prior do not lie at the ends of the ball, where the losses differ most"
SIDES = "the other records agree, so that the record that changes sides moves one chance by all of ε"


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


class ChoiceCase(FiniteCase, SelectionCase):
    """Records are rows of losses, one for each candidate: exp(−η·loss), or permute and flip."""

    def law(self, records: Any, factor: float = 1.0) -> Array:
        sums = np.sum(records.read(), axis=0)
        return selection_law(-self.eta("width", factor, LOSS_STEPS) * sums, np.ones(len(sums)), flip=self.flip)

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        chances = np.log(self.law(records, factor))
        return lambda draws: chances[np.asarray(draws).reshape(-1).astype(int)]


def choice_case(plan: Plan) -> ChoiceCase:
    """The case of any plan: one record changes sides among all, and among records in balance, where draws tell most."""
    size, n = len(plan.model.names), plan.n

    def rows(losers: int, last: bool) -> Losses:
        """The first candidate loses ``losers`` times, the second as often as not, all others always."""
        table = np.ones((n, size))
        lost = np.arange(n) < losers
        lost[-1] |= last
        table[:, 0], table[:, 1] = lost, ~lost
        return Losses(n, lambda: table)

    crowds = ("all agree but one", 0), ("in balance", (n - 1) // 2)
    pairs = tuple(Pair(name, rows(losers, False), rows(losers, True)) for name, losers in crowds)
    return ChoiceCase(plan, pairs, SIDES, True)


def choice_cases(budget: Promise) -> list[Case]:
    return [choice_case(calibrate(ExponentialChoice(), ModelChoice(("a", "b", "c")), budget, n=1000))]
