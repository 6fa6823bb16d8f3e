"""Privacy-loss distributions: a second route through compositions; the only file that meets dp_accounting.

The loss of each pair is put on a grid of multiples of one interval and the grids are convolved by
dp_accounting (version 0.6). Two sides, never mixed:

- ``upper_profile`` moves mass so that P and Q keep their masses in every cell ("connect the dots",
  arXiv:2207.04380): every δ(ε) can only grow. Used for bounds.
- ``lower_profile`` rounds losses down, for Gaussians with dp_accounting's own optimistic constructor:
  every δ(ε) can only shrink. Used for the second opinion.

Traps of dp_accounting 0.6 that are handled here. With ``REPLACE_ONE`` its accountants disagree on a
Gaussian's sensitivity by a factor of 2, so the standard deviation is normalised by our own sensitivity
(1/μ) and the relation left at its default. Convolution by FFT leaves noise of both signs, which can turn a
divergence negative or into δ = 0, so every δ read here is moved outward by ``_noise``. Truncated tails
count as infinite loss even in optimistic estimates; that mass is inside the noise too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from onedraw.privacy.pairs import GaussianPair, Pair, RangeEnvelope, TwoPointPair
from onedraw.privacy.rounding import down, up
from onedraw.privacy.search import narrowed

Array = NDArray[np.float64]
Parts = tuple[tuple[Pair, int], ...]

TAIL = 1e-15
"""Mass dp_accounting may cut from the ends of one convolution."""

LARGEST_LOSS = 600.0
"""e^loss must be a float64, with room for the factors beside it."""


@dataclass(frozen=True)
class LossProfile:
    """δ(ε) of a composition, read from its privacy-loss distribution and moved outward by ``noise``."""

    distribution: Any
    noise: float

    def delta(self, epsilon: float) -> float:
        """δ(ε) plus the noise, which may be negative for a lower profile; in [0, 1]."""
        if epsilon == math.inf:
            raw = float(self.distribution.get_delta_for_epsilon(1e300))
        else:
            raw = float(self.distribution.get_delta_for_epsilon(epsilon))
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


@lru_cache(maxsize=128)
def upper_profile(parts: Parts) -> LossProfile:
    """An upper bound on the profile of the composition of dominating pairs."""
    interval = _upper_interval(parts)
    distribution = _compose(parts, lambda pair: _discretise_up(pair, interval))
    return LossProfile(distribution, _noise(parts))


@lru_cache(maxsize=128)
def lower_profile(parts: Parts) -> LossProfile:
    """A lower bound on the profile of the composition of pairs that really occur."""
    interval = _lower_interval(parts)
    distribution = _compose(parts, lambda pair: _discretise_down(pair, interval))
    return LossProfile(distribution, -_noise(parts))


def representable(parts: Parts) -> bool:
    """Whether e^loss of every part is a float64. Beyond, no grid holds both tails, and other routes must do."""
    return all(_reach(pair) <= LARGEST_LOSS for pair, _ in parts)


def _reach(pair: Pair) -> float:
    return pair.mu**2 / 2.0 + 9.0 * pair.mu if isinstance(pair, GaussianPair) else _largest(pair)


def largest_loss(parts: Parts) -> float:
    """An ε beyond which no composition of these pairs can have a δ that matters."""
    gaussian = math.sqrt(sum(pair.mu**2 * times for pair, times in parts if isinstance(pair, GaussianPair)))
    bounded = sum(_largest(pair) * times for pair, times in parts if not isinstance(pair, GaussianPair))
    return 1.01 * (bounded + gaussian * gaussian / 2.0 + 40.0 * gaussian)


def _compose(parts: Parts, discretise: Callable[[Pair], Any]) -> Any:
    total: Any = None
    for pair, times in parts:
        single = discretise(pair)
        several = single.self_compose(times, tail_mass_truncation=TAIL) if times > 1 else single
        total = several if total is None else total.compose(several, tail_mass_truncation=TAIL)
    return total


def _noise(parts: Parts) -> float:
    """Absolute error of δ granted to the convolutions.

    By Parseval an FFT power of a probability vector errs by at most about times·2⁻⁵³·log₂(length) in
    Euclidean norm; what δ sums up is larger by the root of the number of cells that carry mass. The errors
    measured in the tests are about a hundredth of what is granted here.
    """
    times = sum(count for _, count in parts)
    return 2.0**-49 * (64 + times) + 2.0 * TAIL * len(parts)


def _upper_interval(parts: Parts) -> float:
    """Fine enough that rounding adds less than 10⁻⁴ of the variance, coarse enough for a few million cells.

    One part gains at most interval²/4 in variance. Where there are few kinds of parts, and so few
    convolutions, the grid is finer and also resolves the smallest part: next to one large bounded loss its
    tail is what decides at small δ. A smallest spread that is resolved is a whole number of intervals, so
    that the losses of equal randomised responses lie on the grid and lose nothing.
    """
    total, smallest, kinds = _total_spread(parts), min(pair.spread for pair, _ in parts), len(parts)
    resolved = max(min(smallest / 64.0, total * kinds * 2.0**-12), total * kinds * 2.0**-16)
    interval = max(min(total / (64.0 * math.sqrt(_count(parts))), resolved), total * 2.0**-18)
    return smallest / math.ceil(smallest / interval) if smallest > interval else interval


def _lower_interval(parts: Parts) -> float:
    """Rounding down costs half an interval per part: about 1 % of the total spread, if cells allow."""
    count = _count(parts)
    return _total_spread(parts) * max(1.0 / (50.0 * count * min(4.0, max(1.0, 1000.0 / count))), 2.0**-17)


def _total_spread(parts: Parts) -> float:
    return math.sqrt(sum(pair.spread**2 * times for pair, times in parts))


def _count(parts: Parts) -> int:
    return sum(times for _, times in parts)


def _largest(pair: TwoPointPair | RangeEnvelope) -> float:
    return pair.epsilon if isinstance(pair, RangeEnvelope) else max(pair.upper, -pair.lower)


# ── discretisation from above ──


def _discretise_up(pair: Pair, interval: float) -> Any:
    match pair:
        case TwoPointPair(leak=leak):
            masses, infinite = _split_atoms(pair, interval), leak
        case GaussianPair(mu=mu):
            masses, infinite = _split_gaussian(mu, interval)
        case RangeEnvelope(epsilon=epsilon):
            masses, infinite = _split_envelope(epsilon, interval), 0.0
    return _distribution(masses, infinite, interval, pessimistic=True)


def _split_atoms(pair: TwoPointPair, interval: float) -> dict[int, float]:
    """Each atom is shared by the two grid points around it so that its masses under P and Q are kept."""
    masses: dict[int, float] = defaultdict(float)
    share = pair.upper_mass
    for loss, mass in ((pair.upper, share), (pair.lower, 1.0 - share)):
        cell = math.floor(loss / interval)
        raised = min(1.0, max(0.0, math.expm1(cell * interval - loss) / math.expm1(-interval)))
        masses[cell + 1] += (1.0 - pair.leak) * mass * raised
        masses[cell] += (1.0 - pair.leak) * mass * (1.0 - raised)
    return dict(masses)


def _split_gaussian(mu: float, interval: float) -> tuple[dict[int, float], float]:
    """Loss ~ N(μ²/2, μ²) under P, N(−μ²/2, μ²) under Q; beyond 9 deviations up it counts as infinite."""
    reach = math.ceil((mu * mu / 2.0 + 9.0 * mu) / interval)
    cells = np.arange(-reach, reach + 1)
    edges = cells * interval
    upper_p = special.ndtr(-(edges - mu * mu / 2.0) / mu)
    upper_q = special.ndtr(-(edges + mu * mu / 2.0) / mu)
    lower_p = special.ndtr((edges - mu * mu / 2.0) / mu)
    lower_q = special.ndtr((edges + mu * mu / 2.0) / mu)
    # Differences are taken on the side where the tails are small, so that they keep their digits.
    mass_p = np.where(edges[:-1] > mu * mu / 2.0, upper_p[:-1] - upper_p[1:], lower_p[1:] - lower_p[:-1])
    mass_q = np.where(edges[:-1] > -mu * mu / 2.0, upper_q[:-1] - upper_q[1:], lower_q[1:] - lower_q[:-1])
    masses = _split_cells(cells, mass_p, mass_q, interval)
    masses[-reach] += float(lower_p[0])
    return masses, up(float(upper_p[-1]))


def _split_envelope(epsilon: float, interval: float) -> dict[int, float]:
    """The density (c/2)e^{(x−ε)/2} on [−ε, ε], cell by cell."""
    reach = math.ceil(epsilon / interval)
    cells = np.arange(-reach, reach + 1)
    edges = np.clip(cells * interval, -epsilon, epsilon)
    width = np.diff(edges)
    scale = -1.0 / math.expm1(-epsilon)
    mass_p = scale * np.exp((edges[:-1] - epsilon) / 2.0) * np.expm1(width / 2.0)
    mass_q = -scale * np.exp((-epsilon - edges[:-1]) / 2.0) * np.expm1(-width / 2.0)
    return _split_cells(cells, mass_p, mass_q, interval)


def _split_cells(cells: NDArray[np.int64], mass_p: Array, mass_q: Array, interval: float) -> dict[int, float]:
    """Share each cell's mass between its two ends so that the masses under P and under Q are kept."""
    left = cells[:-1] * interval
    raised = (mass_p - mass_q * np.exp(left)) / -math.expm1(-interval)
    raised = np.clip(raised, 0.0, mass_p)
    total = np.zeros(len(cells))
    total[1:] += raised
    total[:-1] += mass_p - raised
    return {int(cell): float(mass) for cell, mass in zip(cells, total, strict=True)}


# ── discretisation from below, and the foreign library ──


def _discretise_down(pair: Pair, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as foreign

    match pair:
        case GaussianPair(mu=mu):
            return foreign.from_gaussian_mechanism(
                standard_deviation=1.0 / mu,
                sensitivity=1.0,
                pessimistic_estimate=False,
                value_discretization_interval=interval,
                use_connect_dots=False,
            )
        case TwoPointPair():
            return _two_points_down(pair, interval)
    raise TypeError("an envelope does not occur, so it cannot support a lower bound")


def _two_points_down(pair: TwoPointPair, interval: float) -> Any:
    masses: dict[int, float] = defaultdict(float)
    kept = 1.0 - pair.leak
    masses[math.floor(pair.upper / interval)] += kept * pair.upper_mass
    masses[math.floor(pair.lower / interval)] += kept * (1.0 - pair.upper_mass)
    return _distribution(dict(masses), pair.leak, interval, pessimistic=False)


def _distribution(masses: dict[int, float], infinite: float, interval: float, *, pessimistic: bool) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as foreign

    return foreign.PrivacyLossDistribution.create_from_rounded_probability(
        masses, infinite, interval, pessimistic_estimate=pessimistic
    )
