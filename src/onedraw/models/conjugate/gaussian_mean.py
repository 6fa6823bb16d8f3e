"""The mean of numbers or vectors, with known variance and a Gaussian prior (Geumlek et al., A.6.2).

Records are clipped to [centre − bound, centre + bound], vectors scaled onto the ball of that radius. The
variance is declared: it says how noisy the model believes a record to be, and so how wide the draw is.
Replacing a record moves the sum by up to 2·bound, not by the bound as A.6.2 has it (from −Δ to Δ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.models.model import MOST_PARTS, Bound, count, number, positive_number
from onedraw.models.sums.clamped_sums import RADIUS_STEPS, BallSum, LatticeSum, Summary, summed
from onedraw.plain_text import shown
from onedraw.privacy import GaussianDP, Promise, Provenance
from onedraw.privacy.numbers import fraction_down, fraction_up, root_up

from .distributions import Normal
from .family import ConjugateModel, Interval, Move, Simulated, pair


@dataclass(frozen=True)
class GaussianMean(ConjugateModel):
    """Normal records of known ``variance`` around a mean whose prior is worth ``prior_count`` records.

    ``prior_mean`` is measured from ``centre``, so that 0 is the middle of the range. For dim > 1 both may be
    one number for all coordinates, or one each.

    | record | counts as |
    | --- | --- |
    | outside the range or ball | its nearest end, or the point of the sphere in its direction |
    | NaN, ±inf, None, not a number, a row of the wrong length | ``centre`` (dim > 1: in the missing coordinates) |
    """

    kind, title, quantity = "mean", "Mean", "mean"
    asked_of, kinds = ("number",), ("number", "count", "binary")

    bound: float
    variance: float
    prior_count: float
    prior_mean: float | tuple[float, ...] = 0.0
    dim: int = 1
    centre: float | tuple[float, ...] = 0.0
    public_records: int = 0

    def __post_init__(self) -> None:
        dim = count("dim", self.dim, least=1, most=MOST_PARTS)
        if number("prior_count", self.prior_count) <= 0:
            given = f"A Gaussian prior worth {self.prior_count!r} records is not normalizable."
            raise InvalidModel(f"{given} prior_count must be above 0, for example 1: a prior worth one record.")
        self._set(
            bound=positive_number("bound", self.bound),
            variance=positive_number("variance", self.variance),
            prior_count=positive_number("prior_count", self.prior_count),
            prior_mean=_coordinates("prior_mean", self.prior_mean, dim),
            dim=dim,
            centre=_coordinates("centre", self.centre, dim),
        )
        super().__post_init__()
        if not math.isfinite(2 * self.bound + self._farthest):
            raise InvalidModel("The range centre ± bound is too large for floating-point numbers.")
        if self.bound < 4.0 * np.spacing(self._farthest):
            raise InvalidModel(
                f"Floating-point numbers near {self._farthest!r} are {np.spacing(self._farthest)!r} apart, so a range of "
                f"±{self.bound!r} there holds next to none. Measure the column from a public point in its range."
            )

    @classmethod
    def for_column(cls, column: Any, *, n: int, budget: Promise, prior: Sequence[float] | None = None) -> Self:
        """The known variance is the smallest the budget pays for at weight one.

        The draw's noise then has sd 2B/(μ(n₀+n)), that of the Gaussian mechanism; a larger declared variance would only
        add noise that no budget asked for. ``prior`` is (mean, pseudo-records), by default mid-range and one record.
        """
        half_range, centre = (column.upper - column.lower) / 2, (column.upper + column.lower) / 2
        location, records = pair(prior, (centre, 1.0))
        if not (mu := budget.allows(GaussianDP)):
            raise InvalidModel(
                f"A Gaussian mean cannot be released under {budget}: it needs δ > 0, zCDP or Gaussian DP."
            )
        scale = 2 * half_range / (mu * (records + n) ** 0.5)
        return cls(half_range, scale * scale, prior_count=records, prior_mean=location - centre, centre=centre)

    @classmethod
    def example(cls, strength: float = 1.0) -> Self:
        return cls(bound=1.0, variance=1.0, prior_count=strength)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("mean",) if self.dim == 1 else tuple(f"mean {index}" for index in range(self.dim))

    @property
    def _bounds(self) -> dict[str, Bound]:
        """The last three as of a Gibbs posterior: ℓ(θ, x) = ‖x − θ‖²/2σ² has ∇ℓ(θ, x) − ∇ℓ(θ, x') = (x' − x)/σ² and Hessian
        I/σ². With m = (nw + n₀)/σ² the GDP rule wG/√m is 2wB/(σ√(nw + n₀)): Theorem 15 of Minami et al., and exact.
        """
        curvature, moved = 1 / Fraction(self.variance), "replacing a record moves the exact sum by at most this"
        difference = fraction_up(2 * Fraction(self.bound) * curvature)
        return {
            "norm": Bound(self.bound, Provenance.ENFORCED, "records are clipped to this distance from the centre"),
            "sensitivity": Bound(2 * self.bound, Provenance.PROVED, moved),
            "variance": Bound(self.variance, Provenance.DECLARED, "part of the model; the draw's width comes from it"),
            "gradient_difference": Bound(difference, Provenance.PROVED, "G = 2·bound/variance, the same for every θ"),
            "strong_convexity": Bound(fraction_down(curvature), Provenance.PROVED, "1/variance for every record"),
            "smoothness": Bound(fraction_up(curvature), Provenance.PROVED, "1/variance for every record"),
        }

    @property
    def _centres(self) -> tuple[float, ...]:
        return self.centre if isinstance(self.centre, tuple) else (self.centre,)

    @property
    def _prior_means(self) -> tuple[float, ...]:
        return self.prior_mean if isinstance(self.prior_mean, tuple) else (self.prior_mean,)

    @property
    def _farthest(self) -> float:
        return max(map(abs, self._centres))

    def _float_error(self, n: int, weight: float, prior_factor: float) -> float:
        """Noise is added to an exact location, so only the noise is rounded."""
        records = Fraction(self.prior_count) / Fraction(prior_factor) + Fraction(weight) * n
        return 2.0**-48 * math.sqrt(Fraction(self.variance) / records)

    def _summarise(self, data: Any) -> Summary:
        """The total is Σ (x_i − centre), clipped."""
        unit = Fraction(self.bound) / RADIUS_STEPS
        if self.dim == 1:
            (centre,) = self._centres
            rows, steps = summed(data, LatticeSum(centre - self.bound, centre + self.bound, centre))
            return Summary(rows, ((int(steps[0]) - rows * RADIUS_STEPS) * unit,))
        rows, sums = summed(data, BallSum(self._centres, self.bound), dim=self.dim)
        return Summary(rows, tuple(int(value) * unit for value in sums))

    @property
    def prior_parameters(self) -> tuple[Fraction, ...]:
        """What the prior's pseudo-records sum to, measured from the centre, and how many they are."""
        records = Fraction(self.prior_count)
        return *(records * Fraction(mean) for mean in self._prior_means), records

    def added(self, summary: Summary) -> tuple[Fraction, ...]:
        return *summary.total, Fraction(summary.n)

    def share(self, record: Any) -> tuple[float, ...]:
        return *(np.atleast_1d(record) - np.array(self._centres)).tolist(), 1.0

    def law(self, parameters: Sequence[Fraction]) -> Normal:
        *sums, records = parameters
        centred = zip(self._centres, sums, strict=True)
        location = tuple(Fraction(centre) + total / records for centre, total in centred)
        return Normal(location, float(Fraction(self.variance) / records))

    def _prior_with(self, summary: Summary) -> dict[str, Any]:
        *sums, records = (
            prior + added for prior, added in zip(self.prior_parameters, self.added(summary), strict=True)
        )
        mean = tuple(float(total / records) for total in sums)
        return {"prior_count": self.prior_count + summary.n, "prior_mean": mean}

    def promise(self, *, n: int, weight: float = 1.0, prior_factor: float = 1.0, draws: int = 1) -> GaussianDP:
        """Exactly μ = 2rB/(σ√(n₀/m + rn)), times √draws, rounded up once."""
        records = Fraction(self.prior_count) / Fraction(prior_factor) + Fraction(weight) * n
        distance = 2 * Fraction(weight) * Fraction(self.bound)
        return GaussianDP(root_up(draws * distance**2 / (Fraction(self.variance) * records)))

    def clamped_moments(self, mean: Any) -> tuple[Any, Any]:
        """Of one record in one dimension, normal with this mean and clamped: mean and variance of its distance from the centre."""
        from scipy.special import ndtr

        sigma, (centre,), bound = math.sqrt(self.variance), self._centres, self.bound
        away = mean - centre
        low, high = (-bound - away) / sigma, (bound - away) / sigma
        below, above = ndtr(low), ndtr(-high)
        bell_low, bell_high = (np.exp(-0.5 * end**2) / math.sqrt(2.0 * math.pi) for end in (low, high))
        inside, slope = 1.0 - below - above, bell_low - bell_high
        first = bound * (above - below) + away * inside + sigma * slope
        square = bound**2 * (above + below) + (away**2 + self.variance) * inside + 2.0 * away * sigma * slope
        square = square + self.variance * (low * bell_low - high * bell_high)
        return first, np.maximum(square - first**2, 0.0)

    @property
    def worst_moves(self) -> tuple[Move, ...]:
        """From one end of the range to the other, or of the ball along its first axis."""
        centre, axis = np.array(self._centres), np.zeros(self.dim)
        axis[0] = self.bound
        low, high = (centre - axis).tolist(), (centre + axis).tolist()
        return (Move(low, low, high) if self.dim > 1 else Move(low[0], low[0], high[0]),)

    def simulate(self, n: int, generator: np.random.Generator) -> Simulated:
        """Truth in the middle half of the range, records with a standard deviation of half the bound.

        The model's own variance is a tuning number of the release, so it says nothing about real records.
        """
        middle = np.array(self._centres)
        offset = generator.uniform(-0.5, 0.5, size=self.dim) * self.bound / math.sqrt(self.dim)
        total = n * offset + math.sqrt(n / self.dim) * self.bound / 2 * generator.standard_normal(self.dim)
        return Simulated(middle + offset, total, middle + total / n)

    def interval(
        self, draw: Array, level: float, *, n: int, weight: float, prior_factor: float, noise: float | None = None
    ) -> Interval:
        """Per coordinate. Within ±B about the centre no records with mean c + t have a variance above B² − t²."""
        from scipy.special import ndtri

        prior_records = self.prior_count / prior_factor
        records = prior_records + weight * n
        z = float(ndtri(0.5 + level / 2.0))
        centres, pulls = np.array(self._centres), np.array(self._prior_means)
        unbiased = ((draw - centres) * records - prior_records * pulls) / (weight * n)
        own = math.sqrt(self.variance / records) * records / (weight * n)
        if noise is not None:
            sampling = np.full(draw.shape, noise / math.sqrt(n))
            middle, half = unbiased, z * np.hypot(sampling, own)
        else:
            # |x̂ − t| ≤ z√(own² + (B² − t²)/n) is a quadratic inequality in t
            square, bound = z**2 / n, self.bound
            middle = unbiased / (1.0 + square)
            inside = middle**2 - (unbiased**2 - z**2 * own**2 - square * bound**2) / (1.0 + square)
            half = np.sqrt(np.maximum(inside, 0.0))
            sampling = np.sqrt(np.maximum(bound**2 - np.clip(unbiased, -bound, bound) ** 2, 0.0) / n)
        half = half + np.spacing(np.abs(draw))  # the published draw is rounded to a float of the column's own size
        return Interval(centres + (middle - half), centres + (middle + half), sampling, np.full(draw.shape, own))

    @property
    def meaning(self) -> str:
        if self.public_range is None:
            return super().meaning
        low, high = map(shown, self.public_range)
        return f"The mean of the column, declared to lie between {low} and {high}."

    @property
    def public_range(self) -> tuple[float, float] | None:
        (centre, *_) = self._centres
        return (centre - self.bound, centre + self.bound) if self.dim == 1 else None


def _coordinates(name: str, value: Any, dim: int) -> float | tuple[float, ...]:
    """One number in one dimension, otherwise ``dim`` of them."""
    given = tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,) * dim
    if len(given) != dim:
        raise InvalidModel(f"{name} must be one number or {dim} of them, got {len(given)}.")
    numbers = tuple(number(name, coordinate) for coordinate in given)
    return numbers[0] if dim == 1 else numbers
