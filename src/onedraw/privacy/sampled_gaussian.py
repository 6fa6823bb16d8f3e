"""What T noisy sums of Poisson samples promise together: each record enters a sum with probability q, noise σ times its largest norm.

One step is dominated by the antipodal pair below, in any dimension (the proof is in baselines/dp_sgd.md), T adaptive steps by its
product (arXiv:2106.08567, Theorem 10). The product's profile has no closed form: dp_accounting convolves it on a grid,
every rounding upwards (`pld`). So the ε here is *accounted*: a theorem, and a numerical bound of what the theorem says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from onedraw.errors import WrongCall

from . import pld
from .numbers import geometric, positive_integer, probability, real, smallest

LEAST_MULTIPLIER, MOST_MULTIPLIER = 0.25, 2.0**20
"""Noise below the first is none: the loss of one step then leaves the grids."""

PRECISION = 2.0**-12
"""How near a multiplier comes to the smallest that is enough, relatively: each trial is a convolution."""


@dataclass(frozen=True)
class SampledGaussianPair:
    """(1−q)N(0, σ²) + qN(1, σ²) against (1−q)N(0, σ²) + qN(−1, σ²): one record is replaced by its opposite.

    dp_accounting's default relation is another, a record that is left out, and has about half of this ε.
    """

    multiplier: float
    rate: float

    @property
    def spread(self) -> float:
        """√E L² to first order in q, and never above what q = 1 has."""
        return min(2.0 * self.rate * math.sqrt(math.sinh(min(self.multiplier**-2, 700.0))), 2.0 / self.multiplier)

    @property
    def reach(self) -> float:
        """At least the loss 9 deviations above both means."""
        return 2.0 * (1.0 + 9.0 * self.multiplier) / self.multiplier**2

    def rounded_up(self, interval: float) -> Any:
        return pld.gaussian_loss(self.multiplier, interval, pessimistic=True, rate=self.rate)

    def rounded_down(self, interval: float) -> Any:
        return pld.gaussian_loss(self.multiplier, interval, pessimistic=False, rate=self.rate)


@lru_cache(maxsize=1024)
def sampled_gaussian_epsilon(multiplier: float, *, rate: float, steps: int, delta: float) -> float:
    """An upper bound on ε at this δ for T = ``steps`` steps; +∞ where there is none.

    | argument | meaning |
    | --- | --- |
    | multiplier | σ: the noise's deviation over the largest norm of *one* record's share (two records differ by twice that) |
    | rate | q: each record enters a step with this probability, independently of all others |
    | delta | above 0: the loss of a Gaussian is not bounded |
    """
    if not probability("δ", delta):
        return math.inf
    return _upper(multiplier, rate, steps).epsilon(delta, largest=pld.LARGEST_LOSS)


@lru_cache(maxsize=256)
def least_multiplier(epsilon: float, delta: float, *, rate: float, steps: int) -> float | None:
    """The smallest noise multiplier with which T steps keep (ε, δ), rounded up; None if none does."""
    # a little less, so that the ε found again from the multiplier is within the budget on another machine too
    least = epsilon * (1.0 - 2e-6)

    def keeps(multiplier: float) -> bool:
        return _upper(multiplier, rate, steps).delta(least) <= delta

    usual = 2.0 * rate * math.sqrt(2.0 * steps * math.log(1.0 / delta)) / epsilon  # as if all were one Gaussian
    start = min(max(usual, LEAST_MULTIPLIER), MOST_MULTIPLIER)
    ends = {"least": LEAST_MULTIPLIER, "start": start, "most": MOST_MULTIPLIER}
    return smallest(keeps, **ends, factor=1.3, precision=PRECISION, middle=geometric)


def _upper(multiplier: float, rate: float, steps: int) -> pld.LossProfile:
    """On a grid that adds at most 2⁻¹³ of the loss's variance; dp_accounting's time grows with the cells of one step."""
    parts = _parts(multiplier, rate, steps)
    return pld.upper_profile(parts, parts[0][0].spread / 45.0)


def _parts(multiplier: float, rate: float, steps: int) -> Any:
    sigma, share, times = real("the multiplier", multiplier), real("the rate", rate), positive_integer("steps", steps)
    if not (LEAST_MULTIPLIER <= sigma <= MOST_MULTIPLIER and 0.0 < share <= 1.0):
        raise WrongCall(
            f"A noise multiplier lies in [{LEAST_MULTIPLIER:g}, {MOST_MULTIPLIER:g}] and a sampling rate in (0, 1]; "
            f"{sigma:.6g} and {share:.6g} were given. Use a batch size of at most n and a larger budget."
        )
    return ((SampledGaussianPair(sigma, share), times),)
