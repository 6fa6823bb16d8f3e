"""Privacy-loss distributions of pairs of laws that stand for a promise; the only file that meets dp_accounting.

A *dominating* pair (Zhu, Dong, Wang, arXiv:2106.08567) is at least as easy to tell apart as any two
neighbouring releases; products of dominating pairs dominate adaptive compositions (proved there), so it
gives upper bounds. A pair that *really occurs* is produced by some mechanism that keeps the promise; it
gives lower bounds: a certified figure below one is wrong, whatever its derivation (`second_opinion`).

The loss of each pair is put on a grid of multiples of one interval and the grids are convolved by
dp_accounting (version 0.6). Two sides, never mixed:

- ``upper_profile`` moves mass so that P and Q keep their masses in every cell ("connect the dots",
  arXiv:2207.04380): every δ(ε) can only grow. Used for bounds.
- ``lower_profile`` rounds losses down, for several Gaussians with dp_accounting's own optimistic constructor, for
  a single one on the same grid without it: every δ(ε) can only shrink. Used for the second opinion.

Traps of dp_accounting 0.6 that are handled here. With ``REPLACE_ONE`` its accountants disagree on a
Gaussian's sensitivity by a factor of 2, so the standard deviation is normalised by our own sensitivity
(1/μ) and the relation left at its default. Convolution by FFT leaves noise of both signs, which can turn a
divergence negative or into δ = 0, so every δ read here is moved outward by ``noise``. Truncated tails
count as infinite loss even in optimistic estimates; that mass is inside the noise too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array, Integers

from .numbers import down, narrowed, up
from .promises import ApproxDP, BoundedRange, GaussianDP, Promise

TAIL = 1e-15
"""Mass dp_accounting may cut from the ends of one convolution."""

LARGEST_LOSS = 600.0
"""e^loss must be a float64, with room for the factors beside it."""


@dataclass(frozen=True)
class GaussianPair:
    """N(0, 1) against N(μ, 1)."""

    mu: float

    @property
    def spread(self) -> float:
        """The scale of the privacy loss, by which a grid is chosen."""
        return self.mu

    @property
    def reach(self) -> float:
        """A loss beyond which there is nothing to speak of."""
        return self.mu**2 / 2.0 + 9.0 * self.mu

    def rounded_up(self, interval: float) -> Any:
        return gaussian_loss(1.0 / self.mu, interval, pessimistic=True)

    def rounded_down(self, interval: float) -> Any:
        return gaussian_loss(1.0 / self.mu, interval, pessimistic=False)


@dataclass(frozen=True)
class TwoPointPair:
    """Loss ``upper`` > 0 or ``lower`` < 0, and with probability ``leak`` everything is revealed.

    Randomised response has lower = −upper; generalised randomised response of range ε has lower = upper − ε.
    """

    upper: float
    lower: float
    leak: float = 0.0

    @property
    def upper_mass(self) -> float:
        """The probability p of the upper loss, from p·e^{−upper} + (1−p)·e^{−lower} = 1."""
        return math.expm1(self.lower) / math.expm1(self.lower - self.upper)

    @property
    def spread(self) -> float:
        return (self.upper - self.lower) / 2.0

    @property
    def reach(self) -> float:
        return max(self.upper, -self.lower)

    def rounded_up(self, interval: float) -> Any:
        """Each atom is shared by the two grid points around it so that its masses under P and Q are kept."""
        masses: dict[int, float] = defaultdict(float)
        share = self.upper_mass
        for loss, mass in ((self.upper, share), (self.lower, 1.0 - share)):
            cell = math.floor(loss / interval)
            raised = min(1.0, max(0.0, math.expm1(cell * interval - loss) / math.expm1(-interval)))
            masses[cell + 1] += (1.0 - self.leak) * mass * raised
            masses[cell] += (1.0 - self.leak) * mass * (1.0 - raised)
        return distribution(dict(masses), self.leak, interval, pessimistic=True)

    def rounded_down(self, interval: float) -> Any:
        masses: dict[int, float] = defaultdict(float)
        kept = 1.0 - self.leak
        masses[math.floor(self.upper / interval)] += kept * self.upper_mass
        masses[math.floor(self.lower / interval)] += kept * (1.0 - self.upper_mass)
        return distribution(dict(masses), self.leak, interval, pessimistic=False)


@dataclass(frozen=True)
class RangeEnvelope:
    """The largest profile over all generalised randomised responses of range ε.

    It is δ(x) = c(1 − e^{(x−ε)/2})² on [−ε, ε], c = 1/(1 − e^{−ε}) (see
    ``conversions.bounded_range_delta``): the loss has density (c/2)e^{(x−ε)/2} there. No single mechanism
    need attain it, so it is an upper bound only, and there is no ``rounded_down``.
    """

    epsilon: float

    @property
    def spread(self) -> float:
        return self.epsilon

    reach = spread

    def rounded_up(self, interval: float) -> Any:
        """The density (c/2)e^{(x−ε)/2} on [−ε, ε], cell by cell."""
        epsilon, reach = self.epsilon, math.ceil(self.epsilon / interval)
        cells = np.arange(-reach, reach + 1)
        edges = np.clip(cells * interval, -epsilon, epsilon)
        width = np.diff(edges)
        scale = -1.0 / math.expm1(-epsilon)
        mass_p = scale * np.exp((edges[:-1] - epsilon) / 2.0) * np.expm1(width / 2.0)
        mass_q = -scale * np.exp((-epsilon - edges[:-1]) / 2.0) * np.expm1(-width / 2.0)
        return distribution(_split_cells(cells, mass_p, mass_q, interval), 0.0, interval, pessimistic=True)


Pair = GaussianPair | TwoPointPair | RangeEnvelope
Parts = tuple[tuple[Pair, int], ...]


def randomised_response(epsilon: float, leak: float = 0.0) -> TwoPointPair:
    """The worst pair under PureDP(ε), and with a leak under ApproxDP(ε, leak) (arXiv:1311.0776)."""
    return TwoPointPair(epsilon, -epsilon, leak)


def dominating_pair(promise: Promise) -> Pair | None:
    """A pair at least as easy to tell apart as any the promise allows; None where none is known."""
    match promise:
        case GaussianDP(mu=mu):
            return GaussianPair(mu)
        case BoundedRange(stated_epsilon=epsilon):
            return RangeEnvelope(epsilon)
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            return randomised_response(epsilon, delta)
    return randomised_response(promise.pure_epsilon) if promise.pure_epsilon < math.inf else None


@dataclass(frozen=True)
class LossProfile:
    """δ(ε) of a composition, read from its privacy-loss distribution and moved outward by ``noise``."""

    distribution: Any
    noise: float

    def delta(self, epsilon: float) -> float:
        """δ(ε) plus the noise, which may be negative for a lower profile; in [0, 1]."""
        raw = float(self.distribution.get_delta_for_epsilon(min(epsilon, 1e300)))
        if math.isnan(raw):
            return 1.0 if self.noise > 0.0 else 0.0
        return min(1.0, max(0.0, max(raw, 0.0) + self.noise))

    def epsilon(self, delta: float, *, largest: float) -> float:
        """The smallest ε in [0, largest] with ``delta(ε)`` ≤ δ; +∞ if there is none."""
        if self.delta(0.0) <= delta:
            return 0.0
        if not self.delta(largest) <= delta:
            return math.inf
        high, low = narrowed(lambda one: self.delta(one) <= delta, true=largest, false=0.0, precision=1e-10)
        return up(high) if self.noise > 0.0 else max(0.0, down(low))


@dataclass(frozen=True)
class GaussianLosses:
    """The privacy loss of one Gaussian, N(μ²/2, μ²), on a grid, each loss rounded down.

    The numbers are those of dp_accounting's `from_gaussian_mechanism` without its optimistic cut (the tests compare them),
    whose import takes half a second, most of it for SciPy's statistics.
    """

    mu: float
    interval: float

    @cached_property
    def masses(self) -> tuple[Array, Array]:
        """The grid's losses within ten deviations, and the probability of each cell."""
        ends = (self.mu**2 / 2.0 + self.mu * np.array([-10.0, 10.0])) / self.interval
        cells = np.arange(math.floor(ends[0]), math.ceil(ends[1]) + 1)
        edges = cells * (self.interval / self.mu) - self.mu / 2.0
        # Above the mean by the upper tail, where differences of probabilities near 1 would have no digits.
        mass = np.where(edges[:-1] > 0.0, -np.diff(special.ndtr(-edges)), np.diff(special.ndtr(edges)))
        return cells[:-1] * self.interval, mass

    def get_delta_for_epsilon(self, epsilon: float) -> float:
        """Return Σ P(ℓ)(1 − e^{ε − ℓ}) over the losses ℓ above ε, by the name that dp_accounting gives it."""
        losses, mass = self.masses
        above = losses > epsilon
        return float(-(mass[above] * np.expm1(epsilon - losses[above])).sum())


@lru_cache(maxsize=128)
def upper_profile(parts: Parts, interval: float | None = None) -> LossProfile:
    """An upper bound on the profile of the composition of dominating pairs, on a grid of this interval."""
    interval = interval or _upper_interval(parts)
    return _composed([(pair.rounded_up(interval), times) for pair, times in parts])


@lru_cache(maxsize=128)
def lower_profile(parts: tuple[tuple[Any, int], ...]) -> LossProfile:
    """A lower bound on the profile of the composition of pairs that really occur."""
    # Rounding down costs half an interval per part: about 1 % of the total spread, if cells allow.
    spread, count = _spread_and_count(parts)
    interval = spread * max(1.0 / (50.0 * count * min(4.0, max(1.0, 1000.0 / count))), 2.0**-17)
    if count == 1 and isinstance(parts[0][0], GaussianPair):  # what most fits promise: no convolution, so no library
        return LossProfile(GaussianLosses(parts[0][0].mu, interval), -_rounding(1, 1))
    return _composed([(pair.rounded_down(interval), times) for pair, times in parts], outward=-1.0)


def representable(parts: Parts) -> bool:
    """Whether e^loss of every part is a float64. Beyond, no grid holds both tails, and other routes must do."""
    return all(pair.reach <= LARGEST_LOSS for pair, _ in parts)


def largest_loss(parts: Sequence[tuple[Any, int]]) -> float:
    """An ε beyond which no composition of these pairs can have a δ that matters."""
    gaussian = math.sqrt(sum(pair.mu**2 * times for pair, times in parts if isinstance(pair, GaussianPair)))
    bounded = sum(pair.reach * times for pair, times in parts if not isinstance(pair, GaussianPair))
    return float(1.01 * (bounded + gaussian * gaussian / 2.0 + 40.0 * gaussian))


def _composed(singles: Sequence[tuple[Any, int]], *, outward: float = 1.0) -> LossProfile:
    """The distributions convolved, with the absolute error of δ granted to the convolutions.

    By Parseval an FFT power of a probability vector errs by at most about times·2⁻⁵³·log₂(length) in
    Euclidean norm; what δ sums up is larger by the root of the number of cells that carry mass. The errors
    measured in the tests are about a hundredth of what is granted here.
    """
    total: Any = None
    for single, times in singles:
        several = single.self_compose(times, tail_mass_truncation=TAIL) if times > 1 else single
        total = several if total is None else total.compose(several, tail_mass_truncation=TAIL)
    return LossProfile(total, outward * _rounding(sum(times for _, times in singles), len(singles)))


def _rounding(count: int, kinds: int) -> float:
    """Return the absolute error of δ that is granted to `_composed`."""
    return 2.0**-49 * (64 + count) + 2.0 * TAIL * kinds


def _spread_and_count(parts: Sequence[tuple[Any, int]]) -> tuple[float, int]:
    return math.sqrt(sum(pair.spread**2 * times for pair, times in parts)), sum(times for _, times in parts)


def _upper_interval(parts: Parts) -> float:
    """Fine enough that rounding adds less than 10⁻⁴ of the variance, coarse enough for a few million cells.

    One part gains at most interval²/4 in variance. Where there are few kinds of parts, and so few
    convolutions, the grid is finer and also resolves the smallest part: next to one large bounded loss its
    tail is what decides at small δ. A smallest spread that is resolved is a whole number of intervals, so
    that the losses of equal randomised responses lie on the grid and lose nothing.
    """
    (total, count), smallest, kinds = _spread_and_count(parts), min(pair.spread for pair, _ in parts), len(parts)
    resolved = max(min(smallest / 64.0, total * kinds * 2.0**-12), total * kinds * 2.0**-16)
    interval = max(min(total / (64.0 * math.sqrt(count)), resolved), total * 2.0**-18)
    return smallest / math.ceil(smallest / interval) if smallest > interval else interval


def _split_cells(cells: Integers, mass_p: Array, mass_q: Array, interval: float) -> dict[int, float]:
    """Share each cell's mass between its two ends so that the masses under P and under Q are kept."""
    left = cells[:-1] * interval
    raised = (mass_p - mass_q * np.exp(left)) / -math.expm1(-interval)
    raised = np.clip(raised, 0.0, mass_p)
    total = np.zeros(len(cells))
    total[1:] += raised
    total[:-1] += mass_p - raised
    return {int(cell): float(mass) for cell, mass in zip(cells, total, strict=True)}


def gaussian_loss(deviation: float, interval: float, *, pessimistic: bool, rate: float | None = None) -> Any:
    """Of a Gaussian with sensitivity 1 on a grid, every δ rounded up or every δ rounded down; of a sample of records at this
    ``rate``, of which one may be replaced."""
    from dp_accounting.pld import privacy_loss_distribution as foreign  # takes a second

    relation = foreign.NeighborRel.REPLACE_ONE
    sampled = {} if rate is None else {"sampling_prob": rate, "neighboring_relation": relation}
    return foreign.from_gaussian_mechanism(
        deviation, pessimistic_estimate=pessimistic, value_discretization_interval=interval, use_connect_dots=pessimistic, **sampled
    )  # fmt: skip


def distribution(masses: dict[int, float], infinite: float, interval: float, *, pessimistic: bool) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as foreign

    return foreign.PrivacyLossDistribution.create_from_rounded_probability(
        masses, infinite, interval, pessimistic_estimate=pessimistic
    )
