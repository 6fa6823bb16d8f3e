"""Rejection from a public envelope, whose running time tells the records: an example for teaching, and no mechanism.

The exponential mechanism draws θ ∝ π(θ)·exp(−(ε/2)·Σ ℓ(θ, x_i)), losses in [0, 1]. The simplest exact program for it proposes from the
prior and accepts with probability exp(−(ε/2)Σℓ), again and again. The draw *is* (ε, 0)-private, whatever the records are. But a
try succeeds with a probability a that depends on them, so that the tries are Geometric(a), and for two data sets

    P(more than t tries) on one / on the other = ((1 − a)/(1 − a'))^t,        unbounded in t:

draw and running time together are ε-private for no ε. Nor does the envelope help: the only bound on the tries that holds for every
data set is e^{nε/2}, 148 for n = 10 and ε = 1, 2.2·10⁴ for 20, 4.9·10⁸ for 40. (Artificial atoms, arXiv:2204.01132 and 1407.5770, pay
the same for our targets.) What to do instead: `timing="padded"`, docs/limitations.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from onedraw.arrays import Array
from onedraw.errors import WrongCall


def most_tries(n: int, epsilon: float) -> float:
    """e^{nε/2}: the tries expected on the worst data set of n records, and what hiding the time by waiting would take."""
    return math.exp(n * epsilon / 2.0)


def time_ratio(acceptance: float, other: float, tries: int) -> float:
    """How many times as often the first program takes more than so many tries as the second."""
    if not (0.0 < acceptance < 1.0 and 0.0 < other < 1.0):
        raise WrongCall(f"Acceptance rates lie between 0 and 1; {acceptance:g} and {other:g} were given.")
    return math.exp(tries * (math.log1p(-acceptance) - math.log1p(-other)))


@dataclass(frozen=True, eq=False)
class PriorEnvelope:
    """The program on one data set: ``losses`` has a row for each record and a column for each of finitely many parameters."""

    prior: Array
    losses: Array
    epsilon: float

    def __post_init__(self) -> None:
        prior, losses = np.asarray(self.prior, dtype=np.float64), np.asarray(self.losses, dtype=np.float64)
        if not (prior.ndim == 1 and losses.ndim == 2 and losses.shape[1] == len(prior)):
            raise WrongCall("The losses need a row for each record and a column for each parameter of the prior.")
        if not (((losses >= 0.0) & (losses <= 1.0)).all() and (prior >= 0.0).all() and math.isclose(prior.sum(), 1.0)):
            raise WrongCall("Losses lie in [0, 1] and the prior's chances add up to 1; some given do not.")
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "losses", losses)

    @property
    def accepts(self) -> Array:
        """With which probability each parameter is accepted once it is proposed."""
        return np.asarray(np.exp(-0.5 * self.epsilon * self.losses.sum(axis=0)))

    @property
    def acceptance(self) -> float:
        """a: of a try."""
        return float(self.prior @ self.accepts)

    @property
    def law(self) -> Array:
        """Of the draw: the exponential mechanism's."""
        weights = self.prior * self.accepts
        return np.asarray(weights / weights.sum())

    def run(self, generator: Generator) -> tuple[int, int]:
        """(the parameter drawn, how many tries it took). For demonstrations: neither whole numbers nor a cipher."""
        tries = 0
        while True:
            tries += 1
            proposed = int(generator.choice(len(self.prior), p=self.prior))
            if generator.random() < self.accepts[proposed]:
                return proposed, tries
