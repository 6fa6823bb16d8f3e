"""Stages of noise on exact sums: how much each gets, what they promise together, and what whole numbers cost.

    mean        Σ x over the box, Euclidean sensitivity S, the largest distance of two rows
    moments     Σ x̄x̄ᵀ about the published mean, rows shortened to R: Frobenius sensitivity √2·R²; R² for the pure law

*Proof of the second.* ‖uuᵀ − vvᵀ‖² = ‖u‖⁴ + ‖v‖⁴ − 2⟨u, v⟩² ≤ 2R⁴, whatever the centre, which was published before. ∎
The pure law (of matrices): methods/moments/proof.md. A person's k records move each sum by at most k times as much. Stages have noise
of their own and each is adaptive on those before it only, so together they are GaussianDP(√Σ ratio²) or PureDP(Σ
ratio), ratio = k·sensitivity/noise (Dong, Roth, Su, arXiv:1905.02383, Corollary 2; the sum for pure ε). They compose
with whatever follows in the same way. Gaussian noise is drawn on whole numbers: each ratio has a margin, where noise is
many lattice steps wide (discrete_noise.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Annotated, NamedTuple, Self

from onedraw.errors import PromiseRefused
from onedraw.methods import calibration
from onedraw.models.moments.measured import Layout, MomentColumns
from onedraw.models.sums.exact_sums import (
    LEAST_SQUARE,
    MEAN_BITS,
    MOST_RECORDS,
    deviation,
    matrix_deviation,
    share_bits,
)
from onedraw.plans import Request
from onedraw.privacy import ApproxDP, GaussianDP, PureDP, numbers
from onedraw.privacy.numbers import fraction_up, root_up, sum_up, up

MARGIN, LARGEST_KAPPA = Fraction(1, 2**40), 2.0**-42
"""Added to a stage's ratio, if the discrete law is within e^{±κ} of the continuous one: 2.6κ is needed."""

FINE, TABLE_MARGIN = 2.0**21, Fraction(1, 2**30)
"""The lattice steps in a deviation of a table's noise, at least, and the margin for the six numbers a record moves."""

UNLIKE = 58.0
"""κ = 58q/σ² for q numbers with noise of σ lattice steps."""

LEAST_PART = 0.6
"""Of a stage's noise, that of a single number: √½ off a diagonal, 1/b of a square (methods/moments/proof.md)."""

MOST_STEPS = 2.0**60
"""Beyond, sums and noise do not fit into 64-bit whole numbers."""


MEAN_SHARE = 0.25
"""Of the moments' share, for the mean: d numbers against d(d+1)/2."""

LARGEST_MEAN_NOISE = 0.1
"""Beyond this deviation of the mean, in half-ranges, the middle of the range is as good a centre."""

LEAST_SPREAD, LARGEST_SPREAD = 0.16, 1.0 / 3.0
"""R² for each number column, from a standard deviation of 0.4, a fifth of the range, to that of a column that fills it."""

CATEGORY_SPREAD = 0.5
"""R² for each category: its columns have variance 1 − Σp² together, 0.5 where seven records of ten have one level."""

ROOMY_EDGE = 0.03
"""R grows up to LARGEST_SPREAD while the spectral edge of the noise stays below this, a tenth of the variance of a column that fills its
range."""

LARGEST_EDGE = 0.2
"""An edge beyond which the noise drowns the moments of most columns: they are better taken as declared. Among 0.1, 0.2 and 0.5 this had
the least regret over twelve small tables."""

Categories = Annotated[tuple[tuple[int, int], ...], numbers.whole_pairs]

ROOT_TWO = math.nextafter(math.sqrt(2.0), 2.0)


@dataclass(frozen=True)
class Numbers:
    """The numbers of a plan in stages, by name: finite, none negative, 0 for the noise of a stage that does not run."""

    @property
    def complete(self) -> bool:
        """Whether those a promise divides by are above 0."""
        return True

    def to_dict(self) -> dict[str, float]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, float], what: str) -> Self:
        """Refused unless every number is there and could be one."""
        values = {field.name: stored.get(field.name, math.nan) for field in fields(cls)}
        in_range = all(value == 0.0 or 1e-75 < value < 1e75 for value in values.values())
        if in_range and (found := cls(**values)).complete:
            return found
        raise PromiseRefused(f"{what} needs its noises, bounds and radii by name; those stated are not.")


def ways(request: Request, pure: bool | None) -> tuple[bool, ...]:
    """Pure, Gaussian, or both to be compared, as the caller leaves it open."""
    budget = request.exact_budget
    if budget.is_pure or not isinstance(budget, ApproxDP):
        return (budget.is_pure,)
    return (True, False) if pure is None else (pure,)


def largest_total(keeps: Callable[[float], bool], *, digits: float = 1e-9) -> float | None:
    """The largest μ or ε that keeps a budget, to nine digits or as many as asked; None if not even a tiny one does."""
    if not keeps(1e-6):
        return None
    found, _ = numbers.narrowed(keeps, true=1e-6, false=100.0, precision=digits, middle=numbers.geometric)
    return found * (1.0 - calibration.MARGIN)


class Stage(NamedTuple):
    """What one record can move, the noise on it, how many numbers there are, and how fine their lattice is."""

    reach: float
    noise: float
    entries: int
    unit: float = 1.0
    """A record's largest share, …"""
    columns: bool = False
    """… of a sum of columns or, as usual, of products."""
    of_person: bool = False
    """Whether ``reach`` is what all records of a person move together."""

    def bits(self, n: int) -> tuple[int, int]:
        """That share has 2 to the power of these lattice steps, at least and at most (`models.sums.exact_sums`)."""
        return (MEAN_BITS, MEAN_BITS) if self.columns else (share_bits(n) - 2, share_bits(n))


def discrete_mu(ratio: float | Fraction, margin: Fraction = MARGIN) -> float:
    """μ of discrete Gaussian noise, whose continuous one would have this."""
    return fraction_up(Fraction(ratio) + margin)


def stage_ratios(stages: Iterable[Stage], records: int, *, pure: bool) -> list[float]:
    """Sensitivity over noise for a person's records, rounded up; booked where noise is drawn on whole numbers."""
    found = [up((1 if stage.of_person else records) * up(stage.reach / stage.noise)) for stage in stages]
    return found if pure else [discrete_mu(ratio) for ratio in found]


def together(ratios: Iterable[float], *, pure: bool) -> PureDP | GaussianDP:
    """What stages of these ratios promise, each adaptive on those before it."""
    if pure:
        return PureDP(sum_up(ratios))
    return GaussianDP(root_up(sum((Fraction(ratio) ** 2 for ratio in ratios), Fraction(0))))


def check_lattice(stages: Iterable[Stage], n: int, budget: object) -> None:
    """Refuse, before anything is spent, noise too narrow for the lattice of n records or too wide for whole numbers."""
    if n >= MOST_RECORDS:
        raise PromiseRefused(
            f"Sums of {n:,} records may exceed 64-bit whole numbers. Use a public part of fewer than {MOST_RECORDS:,}."
        )
    for stage in stages:
        deviation, (least, most) = stage.noise / stage.unit, stage.bits(n)
        narrow = not UNLIKE * stage.entries <= LARGEST_KAPPA * (deviation * LEAST_PART * 2.0**least) ** 2
        narrow = narrow or stage.unit < LEAST_SQUARE  # so short a share has fewer steps than `Stage.bits` says
        if narrow or not deviation * 2.0**most < MOST_STEPS:
            size, fewer = ("small", ", or fewer columns or records") if narrow else ("large", "")
            raise PromiseRefused(
                f"{budget} asks for noise that whole numbers of 64 bits cannot carry exactly for {n:,} records: it is "
                f"too {size}. Use a budget nearer to ε = 1{fewer}."
            )


@dataclass(frozen=True)
class Spending:
    """How a total turns into noise: Gaussian (``total`` is μ) or pure (``total`` is ε)."""

    total: float
    pure: bool

    def noise(self, share: float, sensitivity: float) -> float:
        """Standard deviation, or scale, that spends this share on a statistic of this sensitivity."""
        return sensitivity / (self.total * (share if self.pure else math.sqrt(share)))


def apart(largest: float, *, pure: bool) -> float:
    """How far two positive matrices of at most this norm are apart, as their noise sees it: in Frobenius's norm, or for
    the pure law in the larger of the traces of what one has more and of what it has less (methods/moments/proof.md)."""
    return largest if pure else ROOT_TWO * largest


@dataclass(frozen=True)
class MomentsStage(Numbers):
    """What runs: noises as standard deviations or, under a pure promise, scales of its laws, and the radius R."""

    mean_noise: float = 0.0
    moments_noise: float = 0.0
    moment_radius: float = 0.0

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


def stage_before(
    columns: MomentColumns,
    spending: Spending,
    *,
    n: int,
    records: int,
    share: float,
    noisiest: float = LARGEST_MEAN_NOISE,
) -> tuple[MomentsStage, float]:
    """The stage that gives another one its coordinates, for this share of the total, and the edge of its noise: R grows
    where the noise is small, and the public middle is the centre where the mean's deviation would be more than ``noisiest``."""
    mean_share = MEAN_SHARE * share if columns.layout.intercept else 0.0
    mean_noise = spending.noise(mean_share, records * columns.spread) if mean_share else 0.0
    if not deviation(mean_noise, columns.count, pure=spending.pure) / n <= noisiest:
        mean_share = mean_noise = 0.0

    def at(spread: float) -> tuple[MomentsStage, float]:
        """With the R² of this share for each number column."""
        square = spread * columns.numbers + CATEGORY_SPREAD * len(columns.layout.categories)
        if columns.layout.ball is not None:
            square = 1.0 + spread * columns.response
        noise = spending.noise(share - mean_share, apart(records * square, pure=spending.pure))
        found = MomentsStage(mean_noise, noise, math.sqrt(square))
        return found, found.edge(columns, n, pure=spending.pure)

    _, least = at(LEAST_SPREAD)
    return at(min(LARGEST_SPREAD, LEAST_SPREAD * max(1.0, ROOMY_EDGE / least)))


def row_bound(layout: Layout, n: int, mu: float, *, measured: bool) -> float:
    """r: how long a row may be before its weight falls, where ``mu`` is spent on what rows are weighted for.

    In measured coordinates a row has a squared norm of d + 1 on average. With more information rows are shortened less: r² = c²d + 1,
    c = max(1, 1 + 0.4·log₁₀(0.3/ϑ)/√d), ϑ = d/(nμ²). The noise of an estimate grows with r, what weights cost in efficiency, and in nearness
    to the unweighted estimate, falls with it. Unmeasured rows are taken to be at 0.6 of their half-range in every column.
    """
    d, one = layout.columns, float(layout.intercept)
    if not measured:
        return math.sqrt((1.0 if layout.ball is not None else 0.36 * d) + one)
    growth = 1.0 + 0.4 * math.log10(0.3 * n * mu**2 / d) / math.sqrt(d)
    return math.sqrt(max(1.0, growth) ** 2 * d + one)
