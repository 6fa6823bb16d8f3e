"""Noisy sums of Poisson samples, from a budget to a noise multiplier and back: what DP-SGD and DP-SGLD share.

Each of T steps adds up the records whose own coin of probability q = B/n shows heads; one record's share has a norm of at most C, the
noise a deviation of σC. What all of them promise is `privacy.sampled_gaussian`'s; why the antipodal pair is the worst, and why a step
may take nobody where too many came up: dp_sgd.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from onedraw import privacy
from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.plans import Request
from onedraw.privacy import ApproxDP, Promise
from onedraw.privacy.numbers import fraction_up
from onedraw.privacy.sampled_gaussian import (
    LEAST_MULTIPLIER,
    MOST_MULTIPLIER,
    least_multiplier,
    sampled_gaussian_epsilon,
)

from .sgd_steps import capacity

MOST_STEPS = 10**6

MARGIN = 1.0 + 1e-6
"""On the accountant's ε, so that another machine, whose convolutions round otherwise, finds no more than is stated."""

THEOREM = (
    "T Poisson-sampled Gaussian steps, each dominated by the antipodal pair (dp_sgd.md), composed by a privacy-loss accountant "
    "(arXiv:2106.08567)"
)


@dataclass(frozen=True)
class PoissonSteps:
    """``steps`` of one draw, ``batch_size`` records expected in each; the promise is about all draws of the request together."""

    title: str
    request: Request
    batch_size: int
    steps: int

    def __post_init__(self) -> None:
        request = self.request
        if self.batch_size > request.n:
            raise WrongCall(
                f"A batch of {self.batch_size:,} cannot be drawn from n = {request.n:,} records. Use a smaller one."
            )
        budget = request.exact_budget
        if not isinstance(budget, ApproxDP) or not budget.stated_delta:
            raise UnsupportedBudget(
                f"{self.title} cannot keep {request.budget}: its steps are accounted for in ε and δ together. Use "
                "ApproxDP(epsilon, delta) with δ above 0."
            )

    @property
    def single(self) -> ApproxDP:
        """What one record's promise may be."""
        found = privacy.ungroup(self.request.exact_budget, self.request.records_per_person)
        assert isinstance(found, ApproxDP)
        return found

    @property
    def rate(self) -> float:
        return min(1.0, fraction_up(Fraction(self.batch_size, self.request.n)))

    @property
    def coins(self) -> str:
        """How records come into a step, for the certificate."""
        n, places = self.request.n, capacity(self.request.n, self.batch_size)
        full = "" if places == n else f"; a step has {places:,} places, and takes nobody where more come up"
        return f"each record is in a step by its own coin of probability {self.batch_size:,}/{n:,}{full}"

    @property
    def all_steps(self) -> int:
        return self.steps * self.request.draws

    def least_multiplier(self, remedy: str) -> float:
        """The least noise with which the budget is kept; refused with this remedy where there is none."""
        single = self.single
        found = least_multiplier(single.stated_epsilon, single.stated_delta, rate=self.rate, steps=self.all_steps)
        if found is None:
            raise PromiseRefused(
                f"No noise keeps {self.request.budget} over {self.all_steps:,} steps with {self.request.records_per_person} "
                f"record(s) per person. Use a larger budget, {remedy}."
            )
        return found

    def epsilon(self, multiplier: float) -> float:
        """Of one record, at the budget's δ."""
        delta = self.single.stated_delta
        return sampled_gaussian_epsilon(multiplier, rate=self.rate, steps=self.all_steps, delta=delta)

    def stated(self, multiplier: float) -> float:
        """The ε that a plan states of this noise; refused where the budget's is smaller than the accountant's."""
        found = min(self.epsilon(multiplier) * MARGIN, self.single.stated_epsilon)
        self.check(multiplier, found)
        return found

    def check(self, multiplier: float, epsilon: float) -> None:
        """Refuse an ε that is smaller than the accountant's."""
        if not LEAST_MULTIPLIER <= multiplier <= MOST_MULTIPLIER:
            raise PromiseRefused(
                f"The noise multiplier of {self.title} lies in [{LEAST_MULTIPLIER:g}, {MOST_MULTIPLIER:g}]; the one stated does not."
            )
        if not self.epsilon(multiplier) <= epsilon < math.inf:
            raise PromiseRefused(
                f"{self.title} with the noise stated has a larger ε than the one stated. Use more noise."
            )

    def promise(self, epsilon: float) -> Promise:
        """Of a person's records, if one record's ε is this."""
        return privacy.group(ApproxDP(epsilon, self.single.stated_delta), self.request.records_per_person)
