"""What follows from published moments: means, standard deviations and correlations with their errors. Free post-processing.

For whom it is: means and variances are those of the records clamped to their bounds, unbiased. Correlations rest on rows
shortened to R in standard deviations. How much of a column's variance that took away is known, since its variance was also
measured without cutting; the estimate gives it back and the interval allows for not knowing how it went together.

| part | sampling error | noise for privacy |
| --- | --- | --- |
| mean | √(variance/n) | published |
| variance | from fourth moments | published, with the mean's |
| correlation | delta method, fourth moments | of the product, of both columns' second moments, of what was lost |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.models.fit.problem import positive
from onedraw.models.sums.exact_sums import matrix_deviation, symmetric
from onedraw.privacy.numbers import crossing

from . import columns as constant
from .columns import MomentsProblem

PROJECTIONS = 100
"""Alternating projections onto positive and unit-diagonal matrices, at most."""


@dataclass(frozen=True, eq=False)
class MomentsResult:
    """Everything in encoded columns: numbers in [−1, 1], categories as 0 and 1."""

    problem: MomentsProblem
    mean: Array
    squares: Array
    products: Array
    fourth: Array
    scale: Array = field(default_factory=lambda: np.ones(1))
    shift: Array = field(default_factory=lambda: np.zeros(1))
    """Of the columns' own units."""

    @classmethod
    def of(cls, problem: MomentsProblem, stages: Mapping[str, Any]) -> MomentsResult:
        size, n = problem.columns.count, problem.n
        found = {name: np.asarray(values, dtype=np.float64) for name, values in stages.items()}
        products = symmetric(found["moments"], size) / n if "moments" in found else np.eye(size)
        squares, fourth = found.get("squares", np.zeros(0)), symmetric(found["fourth"], size) / n
        return cls(problem, found["mean"], squares, products, fourth, np.ones(size), np.zeros(size))

    # ── means and variances ────────────────────────────────────────────────────────────────────────────────

    @property
    def location(self) -> Array:
        return self.shift + self.scale * self.problem.columns.centre(self.mean)

    @cached_property
    def _variances(self) -> tuple[Array, Array]:
        return self.problem.variances(self.mean, self.squares)

    @cached_property
    def _unit(self) -> Array:
        """The variance by which each column was divided."""
        return self.problem.units(self.mean, self.squares)[1]

    @property
    def variance(self) -> Array:
        """In the columns' units, at least 0 and at most what their range allows."""
        return self.scale**2 * np.clip(self._variances[0], 0.0, self._largest)

    @property
    def deviation(self) -> Array:
        return np.sqrt(self.variance)

    @property
    def _largest(self) -> Array:
        """The largest variance there can be: half of the range, squared."""
        largest = np.full(self.problem.columns.count, 0.25)
        largest[self.problem.columns.layout.number_places] = 1.0
        return largest

    @cached_property
    def location_errors(self) -> tuple[Array, Array]:
        """(sampling, privacy) standard errors of the means."""
        spread = np.maximum(self._variances[0], self._variances[1])
        noise = np.hypot(np.full(len(spread), self.problem.deviation("sums")), self.mean * self.problem.known_error)
        return self.scale * np.sqrt(spread / self.problem.n), self.scale * noise

    @property
    def variance_errors(self) -> tuple[Array, Array]:
        sampling, privacy = self._variance_errors
        return self.scale**2 * sampling, self.scale**2 * privacy

    @cached_property
    def _variance_errors(self) -> tuple[Array, Array]:
        value, noise = self._variances
        # what was lost has a fourth moment of at most so many times its second: the largest square of a standardised column
        fourth = np.diag(self.fourth) + self.problem.deviation("fourth") + self._seconds[1] * self._furthest
        return self._unit * np.sqrt(np.maximum(fourth - (value / self._unit) ** 2, 0.0) / self.problem.n), noise

    @property
    def _spread(self) -> Array:
        """The standard deviation that errors are reckoned with: not below what the variance's noise leaves open."""
        value, noise = self._variances
        return np.asarray(np.sqrt(np.clip(np.maximum(value, noise), 0.0, np.maximum(self._largest, noise))))

    # ── correlations ───────────────────────────────────────────────────────────────────────────────────────

    @property
    def _seconds(self) -> tuple[Array, Array, Array]:
        """(what rows shortened to R have of each standardised second moment, what was lost, the latter's noise)."""
        kept, lost, noise = self._measured_seconds
        return kept, np.maximum(lost, 0.0), noise

    @cached_property
    def _measured_seconds(self) -> tuple[Array, Array, Array]:
        """`_seconds` with what was lost as it was measured, maybe below 0. It is the difference to the variance, which was measured without cutting; since far rows are far in all
        columns, single columns are drawn towards their mean by as much as their noise asks for.
        """
        noise = self.problem.deviation("moments")
        kept = np.maximum(np.diag(self.products), 3.0 * noise)
        raw = self._variances[0] / self._unit - kept
        own = noise**2 + (self._variances[1] / self._unit) ** 2 + (kept * self.problem.known_error) ** 2
        together = np.sum(raw / own) / np.sum(1.0 / own)
        spread = max(0.0, float(np.mean((raw - together) ** 2 / own)) - 1.0) / float(np.mean(1.0 / own))
        lost = together + (raw - together) * spread / (spread + own)
        error = np.sqrt(own * spread / (spread + own) + 1.0 / np.sum(1.0 / own))
        radius = self.problem.numbers["moments_radius"]
        if radius:  # no row is shortened further than the longest that the bounds allow
            most = kept * max(float(self._furthest.sum()) / radius**2 - 1.0, 0.0)
            lost, error = np.clip(lost, -most, most), np.minimum(error, most)
        return kept, lost, error

    @cached_property
    def measured_correlation(self) -> Array:
        """Before it is made a correlation matrix: clipped to [−1, 1], entry by entry."""
        kept, lost, _ = self._seconds
        cut = np.clip(self.products / np.sqrt(np.outer(kept, kept)), -1.0, 1.0)
        share = np.sqrt(np.outer(lost / (kept + lost), lost / (kept + lost)))
        found = np.clip(cut + share * cut * (1.0 - np.abs(cut)), -1.0, 1.0)
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)

    @cached_property
    def known(self) -> Mask:
        """(columns,): whether enough of a column is left beside the noise for its correlations to be given."""
        if self.problem.columns.count == 1:
            return np.ones(1, dtype=bool)
        clear = np.diag(self.products) >= constant.GIVEN * self.problem.deviation("moments")
        return np.asarray(clear & self.problem.gives_correlations)

    @cached_property
    def correlation(self) -> Array:
        """The nearest correlation matrix to what was measured: positive, 1 on its diagonal; 0 where nothing is known."""
        return nearest_correlation(np.where(self._given, self.measured_correlation, np.eye(len(self.known))))

    @property
    def _given(self) -> Mask:
        return np.asarray(np.outer(self.known, self.known))

    @property
    def covariance(self) -> Array:
        return np.asarray(self.correlation * np.outer(self.deviation, self.deviation))

    @cached_property
    def correlation_errors(self) -> tuple[Array, Array]:
        """(sampling, privacy) standard errors; NaN where a correlation is not given, 0 on the diagonal."""
        r = self.measured_correlation
        kept, lost, unsure = self._seconds
        whole = kept + lost
        both = np.outer(whole, whole)
        noise = self.problem.deviation("moments")
        fourth = np.maximum(self.fourth + self.problem.deviation("fourth"), 0.0) / both
        own = np.diag(fourth)
        # Var(z_j z_k − r(z_j² + z_k²)/2), with E z_j³z_k = r·E z_j⁴ as for columns that depend on each other linearly
        linear = fourth * (1.0 + r**2 / 2.0) - 0.75 * r**2 * (own[:, None] + own[None, :])
        elliptic = fourth / (1.0 + 2.0 * r**2) * (1.0 - r**2) ** 2
        sampling = np.maximum(np.maximum(linear, elliptic), 0.5 * (1.0 - r**2) ** 2) / self.problem.n
        relative = np.where(lost > 0.0, unsure / whole, 0.0) ** 2
        privacy = (
            noise**2 / 2.0 / both
            + (r * noise / 2.0) ** 2 * np.add.outer(whole**-2, whole**-2)
            # of the estimate and of what is allowed for
            + ((1.0 - np.abs(r)) / 2.0) ** 2 * np.add.outer(relative, relative)
        )
        parts = [_off_diagonal(np.where(self._given, np.sqrt(part), np.nan)) for part in (sampling, privacy)]
        return parts[0], parts[1]

    @cached_property
    def _between(self) -> tuple[Array, Array]:
        """(middle, reach) of where correlations of the clamped records lie: what was lost adds at most √(ℓ_j·ℓ_k) either way."""
        kept, lost, _ = self._seconds
        whole = kept + lost
        share = np.sqrt(lost / whole)
        return np.clip(self.products / np.sqrt(np.outer(whole, whole)), -1.0, 1.0), _off_diagonal(
            np.outer(share, share)
        )

    @cached_property
    def _lost_shares(self) -> tuple[Array, Array]:
        """Means over two columns: (how far below 0 the share that was lost was measured, its error: noise, and far rows)."""
        kept, lost, noise = self._measured_seconds
        found = np.maximum(lost, 0.0)
        fourth = found * np.minimum(self._furthest, self.problem.n * found)  # lost squares sum to n·lost
        errors = np.sqrt(noise**2 + fourth / self.problem.n)
        below, error = (part / (kept + found) for part in (np.minimum(lost, 0.0), errors))
        return np.add.outer(below, below) / 2.0, np.add.outer(error, error) / 2.0

    @property
    def _furthest(self) -> Array:
        """(columns,): the largest square that a standardised column can have."""
        (lower, upper), centre = self._bounds, self.problem.columns.centre(self.mean)
        return np.asarray(np.maximum(upper - centre, centre - lower) ** 2 / self._unit)

    @cached_property
    def covariance_errors(self) -> tuple[Array, Array]:
        """(sampling, privacy) standard errors of r·s_j·s_k; of a variance on the diagonal. NaN where not given."""
        r, s = self.correlation, self._spread
        kept, lost, _ = self._seconds
        fourth = np.maximum(self.fourth + self.problem.deviation("fourth"), 0.0) / np.outer(kept + lost, kept + lost)
        relative = (self._variance_errors[1] / (2.0 * s**2)) ** 2
        sampling = np.sqrt(np.maximum(fourth - r**2, 0.5 * (1.0 - r**2) ** 2) / self.problem.n)  # Var(z_j z_k)
        privacy = np.sqrt(self.correlation_errors[1] ** 2 + r**2 * np.add.outer(relative, relative))
        found = []
        for part, own in zip((sampling, privacy), self.variance_errors, strict=True):
            matrix = np.where(self._given, np.outer(self.scale * s, self.scale * s) * part, np.nan)
            np.fill_diagonal(matrix, own)
            found.append(matrix)
        return found[0], found[1]

    # ── intervals ──────────────────────────────────────────────────────────────────────────────────────────

    def half_width(self, errors: tuple[Array, Array], level: float, stage: str) -> Array:
        """Of an interval: sampling is taken for normal, the noise has its own quantile."""
        sampling, privacy = errors
        normal, columns = normal_quantile(level), self.problem.columns
        if not self.problem.pure:
            return np.hypot(normal * sampling, normal * privacy)
        pure = pure_quantile(columns.powers, level) if stage == "sums" else matrix_quantile(columns.count, level)
        return np.hypot(normal * sampling, pure * privacy)

    @property
    def _bounds(self) -> tuple[Array, Array]:
        lower, upper = np.zeros(self.problem.columns.count), np.ones(self.problem.columns.count)
        lower[self.problem.columns.layout.number_places] = -1.0
        return lower, upper

    def variance_interval(self, level: float = 0.95) -> Array:
        """(columns, 2), from 0 to what the range allows; from 0 where noise leaves no more to say."""
        centre = self.scale**2 * self._variances[0]
        ends = centre[:, None] + np.outer(self.half_width(self.variance_errors, level, "sums"), (-1.0, 1.0))
        found = np.clip(ends, 0.0, (self.scale**2 * self._largest)[:, None])
        return np.column_stack([np.minimum(found[:, 0], self.variance), np.maximum(found[:, 1], self.variance)])

    def correlation_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """(low, high), each (columns, columns); NaN where none is given. They hold the published matrix.

        A share e that was lost moves the middle by −r·e and the reach by e, so each end by (1 ∓ r)·e.
        """
        half = self.half_width(self.correlation_errors, level, "moments")
        (middle, reach), (below, error) = self._between, self._lost_shares
        shown = np.where(self._given, self.correlation, np.nan)

        def end(side: float) -> Array:
            moved = 1.0 - side * middle
            away = reach + moved * below + np.hypot(half, normal_quantile(level) * moved * error)
            return np.asarray(np.clip(middle + side * np.maximum(half, away), -1.0, 1.0))

        return np.fmin(end(-1.0), shown) + 0.0 * half, np.fmax(end(1.0), shown) + 0.0 * half

    # ── one list of numbers ────────────────────────────────────────────────────────────────────────────────

    @property
    def values(self) -> Array:
        """Means, standard deviations, correlations below the diagonal row by row: what is released, by the model's names."""
        return np.concatenate([self.location, self.deviation, self.correlation[self._below]])

    @property
    def _below(self) -> tuple[Any, Any]:
        return np.tril_indices(self.problem.columns.count, -1)

    @property
    def errors(self) -> tuple[Array, Array]:
        """(sampling, privacy) standard errors of `values`."""
        spreads = (self.scale * own / (2.0 * self._spread) for own in self._variance_errors)
        pairs = (part[self._below] for part in self.correlation_errors)
        found = [np.concatenate(parts) for parts in zip(self.location_errors, spreads, pairs, strict=True)]
        return found[0], found[1]

    def conf_int(self, level: float = 0.95) -> Array:
        """(values, 2), means inside the bounds; NaN where a correlation is not given."""
        ends = self.location[:, None] + np.outer(self.half_width(self.location_errors, level, "sums"), (-1.0, 1.0))
        lower, upper = (self.shift + self.scale * end for end in self._bounds)
        means = np.clip(ends, lower[:, None], upper[:, None])
        pairs = np.column_stack([end[self._below] for end in self.correlation_interval(level)])
        return np.concatenate([means, np.sqrt(self.variance_interval(level)), pairs])

    @property
    def p_values(self) -> Array:
        """Of "these columns do not go together"; NaN for means and deviations, and where a correlation is not given."""
        (middle, reach), (below, error) = self._between, self._lost_shares
        moved = 1.0 + np.abs(middle)
        size = np.maximum(np.abs(middle) - np.maximum(reach + moved * below, 0.0), 0.0)[self._below]
        errors = np.sqrt(sum(part**2 for part in (*self.correlation_errors, moved * error)))[self._below]
        return np.concatenate([np.full(2 * len(self.known), np.nan), 2.0 * special.ndtr(-size / errors)])

    def refused(self, names: Sequence[str]) -> str:
        """What is not given, in a sentence; empty if all is."""
        without = [repr(name) for name, known in zip(names, self.known, strict=True) if not known]
        if not without:
            return ""
        which = "any column" if len(without) == len(names) else ", ".join(without)
        return (
            f"the noise leaves too little of the variance of {which} to say what it goes together with at this n and ε"
        )

    @property
    def encoded(self) -> MomentsResult:
        """For encoded rows, in which 0/1 columns are −1 and 1."""
        scale, shift = np.full(self.problem.columns.count, 2.0), np.full(self.problem.columns.count, -1.0)
        places = self.problem.columns.layout.number_places
        scale[places], shift[places] = 1.0, 0.0
        return self.in_units(scale, shift)

    def in_units(self, scale: Array, shift: Array) -> MomentsResult:
        """The same for v ↦ scale·v + shift."""
        return MomentsResult(
            self.problem, self.mean, self.squares, self.products, self.fourth, self.scale * scale, shift + scale * self.shift
        )  # fmt: skip


def _off_diagonal(matrix: Array) -> Array:
    matrix = np.array(matrix)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def normal_quantile(level: float) -> float:
    return float(special.ndtri(0.5 + level / 2.0))


@lru_cache(maxsize=256)
def pure_quantile(entries: int, level: float) -> float:
    """The two-sided quantile of one entry of noise ∝ e^{−‖v‖}, in its standard deviations: Laplace's for one entry, towards
    the normal one for many. One entry is Gamma(entries) times a coordinate u of a uniform direction, u² ~ Beta(½, …)."""
    if entries == 1:
        return -math.log1p(-level) / math.sqrt(2.0)
    lengths = special.gammaincinv(entries, (np.arange(4000) + 0.5) / 4000.0)

    def missed(bound: float) -> float:
        inside = special.betainc(0.5, (entries - 1) / 2.0, np.minimum((bound / lengths) ** 2, 1.0))
        return float(np.mean(inside)) - level

    deviation = math.sqrt(entries + 1.0)
    return crossing(missed, 0.1 * deviation, 20.0 * deviation, precision=1e-12 * deviation) / deviation


@lru_cache(maxsize=64)
def matrix_quantile(size: int, level: float) -> float:
    """The same of an entry off the diagonal of the pure law of matrices, from 200,000 draws with a fixed seed: half the difference of
    two entries on the diagonal has its law. Of U those two and the rest of 1 are shares of gamma numbers."""
    if size == 1:
        return pure_quantile(1, level)
    generator, half, numbers = np.random.default_rng(0), (size + 1) / 2.0, size * (size + 1) // 2

    def shares() -> Array:
        one, other, rest = (generator.gamma(shape, size=200_000) for shape in (half, half, numbers - 2.0 * half + 1.0))
        return np.asarray((one - other) / (one + other + rest))

    drawn = generator.gamma(2 * numbers + 1, size=200_000) * np.abs(shares() - shares()) / math.sqrt(2.0)
    return float(np.quantile(drawn, level)) / matrix_deviation(1.0, size, pure=True)


def nearest_correlation(matrix: Array) -> Array:
    """The nearest positive matrix with 1 on its diagonal, in Frobenius norm (Higham 2002: alternating projections with
    Dykstra's correction), exactly 1 there and positive to rounding at the end."""
    found, correction = matrix, np.zeros_like(matrix)
    for _ in range(PROJECTIONS):
        values, axes = np.linalg.eigh(found - correction)
        if values[0] >= 0.0 and not correction.any():
            return np.asarray(found)
        nearest = (axes * np.maximum(values, 0.0)) @ axes.T
        correction = nearest - (found - correction)
        found = nearest.copy()
        np.fill_diagonal(found, 1.0)
        if np.linalg.norm(found - nearest) <= 1e-8 * len(found):
            break
    nearest = positive(found)
    size = np.sqrt(np.diag(nearest))
    scaled = nearest / np.outer(size, size)
    scaled = np.clip((scaled + scaled.T) / 2.0, -1.0, 1.0)
    np.fill_diagonal(scaled, 1.0)
    return np.asarray(scaled)
