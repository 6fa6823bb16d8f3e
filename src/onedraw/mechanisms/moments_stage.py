"""The moments as a stage: how much noise its mean and second moments get, and what that promises.

    mean        Σ x over the box, Euclidean sensitivity S, the largest distance of two rows
    moments     Σ x̄x̄ᵀ about the published mean, rows shortened to R: Frobenius sensitivity √2·R²; R² for the pure law of matrices

*Proof of the second.* ‖uuᵀ − vvᵀ‖² = ‖u‖⁴ + ‖v‖⁴ − 2⟨u, v⟩² ≤ 2R⁴, whatever the centre, which was published before. ∎ The pure law: moments.md.
A person's k records move each sum by at most k times as much. Both stages have noise of their own and the second is
adaptive on the first only, so together they are GaussianDP(√Σ ratio²) or PureDP(Σ ratio), ratio = k·sensitivity/noise
(Dong, Roth, Su, arXiv:1905.02383, Corollary 2; the sum for pure ε). They compose with whatever follows in the same way.
Gaussian noise is drawn on whole numbers, for which each ratio has a margin (discrete_noise.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from onedraw.models.fit import constants as constant
from onedraw.models.moments.stage import MomentColumns
from onedraw.models.sums.noise_law import deviation, matrix_deviation
from onedraw.privacy.rounding import up

from .discrete_noise import Stage, booked

ROOT_TWO = math.nextafter(math.sqrt(2.0), 2.0)


@dataclass(frozen=True)
class Spending:
    """How a total turns into noise: Gaussian (``total`` is μ) or pure (``total`` is ε)."""

    total: float
    pure: bool

    def noise(self, share: float, sensitivity: float) -> float:
        """Standard deviation, or scale, that spends this share on a statistic of this sensitivity."""
        return sensitivity / (self.total * (share if self.pure else math.sqrt(share)))

    def deviation(self, noise: float, entries: int) -> float:
        """Standard deviation of one entry."""
        return deviation(noise, entries, pure=self.pure)

    def matrix_noise(self, share: float, largest: float) -> float:
        """The same for a sum of positive matrices, each of at most this norm (its trace under a pure promise)."""
        return self.noise(share, apart(largest, pure=self.pure))

    def matrix_deviation(self, noise: float, size: int) -> float:
        return matrix_deviation(noise, size, pure=self.pure)


def apart(largest: float, *, pure: bool) -> float:
    """How far two positive matrices of at most this norm are apart, as their noise sees it: in Frobenius's norm, or for the pure law in the
    larger of the traces of what one has more and of what it has less (moments.md)."""
    return largest if pure else ROOT_TWO * largest


@dataclass(frozen=True)
class MomentsStage:
    """What runs: noises as standard deviations or scales, 0 for what does not run, and the radius R."""

    mean_noise: float
    moments_noise: float
    moment_radius: float

    def ratios(self, columns: MomentColumns, records: int = 1, *, pure: bool) -> list[float]:
        """Sensitivity over noise of what runs, for a person's records, rounded up, and booked for whole numbers."""
        found = [up(records * stage.ratio) for stage in self.stages(columns, pure=pure)]
        return found if pure else [booked(ratio) for ratio in found]

    def stages(self, columns: MomentColumns, *, pure: bool) -> list[Stage]:
        """What runs, for one record."""
        square = self.moment_radius**2
        found = [
            Stage(columns.spread, self.mean_noise, columns.count, columns=True),
            Stage(apart(square, pure=pure), self.moments_noise, columns.entries, square),
        ]
        return [stage for stage in found if stage.noise]

    def edge(self, columns: MomentColumns, n: int, *, pure: bool) -> float:
        """s√d/n: the spectral edge of the noise in the second moments."""
        return matrix_deviation(self.moments_noise, columns.count, pure=pure) * math.sqrt(columns.count) / n


def squared_radius(columns: MomentColumns, spread: float) -> float:
    """R² at this share for each number column."""
    if columns.layout.ball is not None:
        return 1.0 + spread * columns.response
    return spread * columns.numbers + constant.CATEGORY_SPREAD * len(columns.layout.categories)


def stage_before(columns: MomentColumns, spending: Spending, *, n: int, records: int, share: float) -> MomentsStage:
    """The stage that gives another one its coordinates, for this share of the total: R grows where the noise is small, and
    the public middle is the centre where the mean would be noise."""
    mean_share = constant.MEAN_SHARE * share if columns.layout.intercept else 0.0
    mean_noise = spending.noise(mean_share, records * columns.spread) if mean_share else 0.0
    if not spending.deviation(mean_noise, columns.count) / n <= constant.LARGEST_MEAN_NOISE:
        mean_share = mean_noise = 0.0

    def at(spread: float) -> MomentsStage:
        square = squared_radius(columns, spread)
        noise = spending.matrix_noise(share - mean_share, records * square)
        return MomentsStage(mean_noise, noise, math.sqrt(square))

    least = at(constant.LEAST_SPREAD).edge(columns, n, pure=spending.pure)
    return at(min(constant.LARGEST_SPREAD, constant.LEAST_SPREAD * max(1.0, constant.ROOMY_EDGE / least)))
