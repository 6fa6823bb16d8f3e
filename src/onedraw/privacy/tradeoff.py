"""A promise as a trade-off curve, and what the best possible attacker could do.

The attacker knows every record but one, knows that this one is A or B, sees the release and guesses. A guess has two
errors: a false alarm (says B, it is A; rate α) and a miss (says A, it is B). A promise with profile δ(ε) keeps every
guess above

    f(α) = sup_ε max(0, 1 − δ(ε) − e^ε α, e^{−ε}(1 − δ(ε) − α))

(Dong, Roth and Su, arXiv:1905.02383, Proposition 2.12 and its converse). The supremum is taken over a finite grid of ε
and δ(ε) is rounded up, so the curve lies below the true one: the attacker is never made to look weaker than he may be,
and an attack whose two rates lie below the curve does break the promise, whichever of its names it was made under.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from onedraw.arrays import Array

from .promises import Promise

LARGEST_EXPONENT = 700.0
COMMON = 0.01
"""The odds are bounded for findings that come up with at least this probability; rarer ones are what δ is about."""


@dataclass(frozen=True, eq=False)
class TradeOff:
    """δ(ε) of a promise on a grid of ε, and the trade-off curve these pairs imply."""

    epsilons: Array
    deltas: Array

    @classmethod
    def at(cls, promise: Promise, epsilons: Iterable[float]) -> TradeOff:
        grid = np.fromiter(epsilons, dtype=np.float64)
        return cls(grid, np.array([promise.delta(float(epsilon)) for epsilon in grid]))

    @staticmethod
    @lru_cache(maxsize=64)
    def of(promise: Promise) -> TradeOff:
        """The curve of a promise as an audit needs it, computed once."""
        return TradeOff.at(promise, epsilon_grid(promise))

    def __call__(self, alphas: ArrayLike) -> Array:
        """f(α): the least rate of misses at each rate of false alarms, from below."""
        alpha = np.atleast_1d(np.asarray(alphas, dtype=float))[:, None]
        scale, kept = np.exp(np.minimum(self.epsilons, LARGEST_EXPONENT)), 1.0 - self.deltas
        found = np.maximum(kept - scale * alpha, (kept - alpha) / scale)
        return np.asarray(np.maximum(0.0, found.max(axis=1)))

    def excess(self, false_positive: float, false_negative: float) -> tuple[float, float, float]:
        """(ε, δ promised there, δ these two rates show there), at the ε where they differ most in ratio."""
        shown = shown_delta(self.epsilons, false_positive, false_negative)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(shown > 0.0, shown / self.deltas, 0.0)
        best = int(np.argmax(np.where(shown > self.deltas, ratio, shown - self.deltas - 1.0)))
        return float(self.epsilons[best]), float(self.deltas[best]), float(shown[best])


def shown_delta(epsilons: Array, false_positive: float, false_negative: float) -> Array:
    """The δ that two error rates rule anything smaller than, at each ε: both directions of 1 − δ ≤ FPR·e^ε + FNR."""
    scale = np.exp(np.minimum(epsilons, LARGEST_EXPONENT))
    first, second = 1.0 - false_negative - scale * false_positive, 1.0 - false_positive - scale * false_negative
    return np.asarray(np.maximum(0.0, np.maximum(first, second)))


def epsilon_grid(promise: Promise, points: int = 257) -> Array:
    """Values of ε from 0 to where nothing is left to promise, with the corners of the promise among them."""
    corners = (promise.pure_epsilon, promise.range_epsilon, promise.outside_failure.pure_epsilon)
    finite = [corner for corner in corners if corner < math.inf]
    ends = (promise.epsilon(delta) for delta in (1e-12, 1e-9, 1e-6, 1e-3, 0.1))
    last = min(next((end for end in ends if end < math.inf), 40.0), LARGEST_EXPONENT)
    return np.unique(np.concatenate([np.linspace(0.0, max(last, *finite, 0.0), points), finite]))


@dataclass(frozen=True)
class Attacker:
    """Everything a reader may want to know of the attacker, from the promise alone."""

    promise: Promise
    stated_delta: float = 0.0

    @cached_property
    def tradeoff(self) -> TradeOff:
        """On a grid of ε that is denser near 0, up to where δ is out of sight."""
        return TradeOff.at(self.promise, self._epsilons(96))

    def _epsilons(self, steps: int) -> list[float]:
        ends = (self.promise.epsilon(delta) for delta in (0.0, 1e-9, self.stated_delta))
        top = next((end for end in ends if end < LARGEST_EXPONENT), LARGEST_EXPONENT)
        return [top * (k / steps) ** 2 for k in range(steps + 1)]

    def misses(self, false_alarms: float) -> float:
        """f(α): the smallest rate of misses at this rate of false alarms."""
        return float(self.tradeoff(false_alarms)[0])

    @cached_property
    def right_guesses(self) -> float:
        """The largest share of right guesses when A and B are equally likely beforehand: 1 − α at f(α) = α.

        Every ε gives a bound, (1 − δ(ε))/(1 + e^ε) of wrong ones at least; a coarse grid and a finer one around its best
        find nearly the least, in a quarter of the profile.
        """

        def wrong(epsilons: Iterable[float]) -> list[float]:
            return [(1.0 - self.promise.delta(epsilon)) / (1.0 + math.exp(epsilon)) for epsilon in epsilons]

        coarse = self._epsilons(12)
        found = wrong(coarse)
        best = found.index(max(found))
        low, high = coarse[max(best - 1, 0)], coarse[min(best + 1, 12)]
        return 1.0 - max(*found, *wrong(low + (high - low) * k / 12 for k in range(1, 12)))

    @property
    def always(self) -> bool:
        """Whether the odds are bounded whatever comes out (δ = 0)."""
        return self.promise.epsilon(0.0) < LARGEST_EXPONENT

    @cached_property
    def odds_factor(self) -> float:
        """By how much a finding can raise the odds of B against A: for a pure promise always, otherwise for every
        finding of probability at least `COMMON`, where it is `COMMON`/f(1 − `COMMON`) since f is its own inverse."""
        if self.always:
            return math.exp(self.promise.epsilon(0.0))
        floor = self.misses(1.0 - COMMON)
        return COMMON / floor if floor > 0 else math.inf

    def curve(self, points: int = 101) -> list[tuple[float, float]]:
        """(α, f(α)) for drawing, denser near 0 where it bends."""
        alphas = np.array([(k / (points - 1)) ** 2 for k in range(points)])
        return list(zip(alphas.tolist(), self.tradeoff(alphas).tolist(), strict=True))
