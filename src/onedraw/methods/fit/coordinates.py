"""The coordinates and the start that published moments give. Everything here is post-processing of published numbers.

The first moments give z₀ = W(v − m) and a line θ₀ for the response. Moments of (z₀, residual) give coordinates along their
own axes, z = (Tᵀz₀, 1): second moments are then diagonal with known noise, and directions in which noise decides are seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.methods.noisy_moments import known_records
from onedraw.methods.stages import LARGEST_MEAN_NOISE, MEAN_SHARE
from onedraw.models.moments.measured import Layout, MomentColumns
from onedraw.models.priors import Gaussian
from onedraw.models.sums.exact_sums import symmetric

from .class_scores import ClassScore
from .scores import Score
from .sizes import STEPS, StepNumbers, choose_factor, stretch_for

DESIGN_FLOOR, LEAST_VARIANCE = 0.7, 0.02
"""Eigenvalues of the second ones are raised to this share of their edge, and to this variance at least."""

LEAST_DEVIATIONS = 2.0
"""Deviations of its own noise by which a direction's second moment must exceed 0, or noise alone would often seem to be one. With
eight columns or more `DESIGN_FLOOR` of the edge is farther."""

LEAST_SPREAD = 0.25
"""… and a direction's second moment is taken to be at least this share of the edge."""

RARE_LEVEL = 0.02
"""A 0/1 column of a category is left out, so that its level counts with the first one, if its published second moment is below
this and below the edge: it cannot be told from noise, and would blur the directions of all other columns."""

LEAST_RESIDUAL = 0.1
"""A residual variance is taken to be at least this share of the variance it is the rest of."""

PLAUSIBLE, PLAUSIBLE_LEVEL, LARGEST_PRIOR = 0.7, 2.0, 0.3
"""A coefficient has no interval if a prior of the first deviation on effects of standardized columns (the second on the intercept)
would still carry more than the third of its variance: the records then say too little."""

LEAST_SHARE = 0.3
"""The rate of a first class is kept at least this far above 0, in units of 1/√n, so that its log-odds exist."""


@dataclass(frozen=True)
class StepsProblem:
    """All that is public before the records are read."""

    n: int
    layout: Layout
    score: Score
    sizes: StepNumbers
    records: int = 1
    """Of one person."""
    persons: bool = False
    """Whether their scores are added up before they are squared."""
    factor: float = 1.0
    """The share of the longest bound to which `sizes` shorten scores."""
    effects: tuple[int, ...] = ()
    """Encoded columns whose coefficients are of interest: the steps' noise is smaller along them (effects.py)."""
    prior: Gaussian | None = None
    """On the coefficients of encoded rows, in the response's unit, if it is to count."""
    rows: int | None = None
    """The public number of records, where ``n`` is the noisy number of those with all cells: the others contribute nothing."""

    pure = False

    size: int = field(init=False, repr=False, compare=False)
    moment_columns: MomentColumns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.score.blocks * self.layout.width)
        object.__setattr__(self, "moment_columns", MomentColumns(self.layout, self.score.in_moments))

    def estimand_of(self, target: str | None = None) -> str:
        """Return what is estimated about this column, in words."""
        under = ", at their posterior mode under the declared prior" if self.prior is not None else ""
        return self.score.estimand_of(target) + under

    @property
    def loss(self) -> float:
        """Return how many times its variance the noise of coefficients has that are not of interest."""
        return stretch_for(len(self.effects) / self.size)[1]

    @property
    def response_scale(self) -> float:
        """Return the declared unit of responses that are numbers."""
        return self.score.scale if self.score.continuous else 1.0

    @property
    def shortage(self) -> float:
        """Return how many times more records columns that vary as usual would need to be given intervals; at most 1 if none.

        For numbers and quantiles their moments must stand out of the noise, in measured coordinates, and about their mean: where that is
        not measured, slopes and intercept cannot be told apart, and intervals miss (benchmarks/results/regression_coverage.md). Otherwise a standardized
        effect must be known better than a weak prior says it (`PLAUSIBLE`, `LARGEST_PRIOR`).
        """
        sizes, score = self.sizes, self.score
        if score.continuous:
            if not sizes.design_noise:
                return DESIGN_FLOOR * score.constants.largest_design_edge
            return max(float(least_told(sizes.design_noise / self.n, self.layout.columns)), self._uncentered)
        noise = sizes.step_noise / math.sqrt(STEPS) / (self.n * score.information)
        return noise / (PLAUSIBLE * math.sqrt(LARGEST_PRIOR / (1.0 - LARGEST_PRIOR)))

    @property
    def _uncentered(self) -> float:
        """Return how many times more records a mean would need that is left out because it would drown; 0 if it is measured."""
        sizes = self.sizes
        if sizes.mean_noise or not self.layout.intercept:
            return 0.0
        moments = sizes.moments_noise / (math.sqrt(2.0) * sizes.moment_radius**2)  # over what one record can move
        return float(self.moment_columns.spread * moments / math.sqrt(MEAN_SHARE) / (self.n * LARGEST_MEAN_NOISE))

    @property
    def all_rows(self) -> int:
        """Return the public number of records, by which the lattice of sums is chosen."""
        return self.n if self.rows is None else self.rows

    def with_known(self, count: Array | None) -> StepsProblem:
        """Return the problem about so many records as the published number of complete ones says; itself if all contribute."""
        if count is None:
            return self
        return replace(self, n=known_records(count, self.all_rows, self.sizes.known_noise), rows=self.all_rows)

    def with_bound(self, counts: Array | None) -> StepsProblem:
        """Return the problem with the bound of scores that published counts of long ones choose."""
        if counts is None:
            return self
        answers = iter(counts)
        return self.at(choose_factor(lambda _: float(next(answers)), self.sizes.tail_target))

    def at(self, factor: float) -> StepsProblem:
        """Return the problem with scores shortened to this share of their longest bound."""
        return replace(self, sizes=self.sizes.at(factor), factor=factor)

    @cached_property
    def numbers(self) -> dict[str, float]:
        """Return the plan's numbers by name."""
        return self.sizes.to_dict()


@dataclass(frozen=True, eq=False)
class First:
    """What the first moments give."""

    mean: Array
    root: Array
    slopes: Array
    centre: float
    unit: float
    noise: float
    """Standard deviation of an entry on the diagonal of the second moments."""
    values: Array
    axes: Array
    stretch: Array
    """What brings each direction to unit variance, 0 for one that no record has."""
    across: Array
    """Second moments of the columns with the response."""
    merged: Mask
    """Which columns are left out because few records have their level."""
    level: Array | None = None
    """Shares of several classes."""

    @property
    def edge(self) -> float:
        return self.noise * math.sqrt(len(self.mean))

    @property
    def absent(self) -> Mask:
        """Return which directions no record has: the last, one for each column that is left out."""
        count = int(self.merged.sum())
        return np.arange(len(self.merged)) >= len(self.merged) - count


@dataclass(frozen=True, eq=False)
class Where:
    """The coordinates of the steps, and where these begin.

    z = ((v − mean) @ root, 1), responses as (r − centre)/unit where they are numbers, scores over ``score_scale``.
    """

    mean: Array
    root: Array
    centre: float
    unit: float
    score_scale: float
    start: Array
    spread: Array
    """Second moments of z without the intercept, in its own axes."""
    doubt: Array
    """Noise of those, as a share of the information, one for each coefficient; of several classes once for each block."""
    spread_noise: Array
    """Standard deviation of the noise of each `spread`."""
    weak: Array
    """Whether a direction's moments may be noise alone."""
    absent: Mask
    """Directions that no record has, one for each column that is left out: the last ones before the intercept."""
    merged: Mask
    """Those columns."""
    level: Array
    """The coefficients of the response's published level alone, without slopes."""


def centre_of(problem: StepsProblem, mean: Array | None, level: Array | None) -> Array:
    """Return the point that the first moments are about: the published mean, or the public middle of the columns with the
    response's published level."""
    centre = problem.moment_columns.centre(mean)
    if level is not None and problem.score.in_moments:
        centre[-1] = min(max(float(level[0]), -1.0), 1.0)
    return centre


def first_of(problem: StepsProblem, centre: Array, moments: Array, level: Array | None = None) -> First:
    """Return the first coordinates and a line for the response, from moments about ``centre``."""
    d, sizes, n, m = problem.layout.columns, problem.sizes, problem.n, problem.moment_columns.count
    second = symmetric(moments, m) / n
    noise = sizes.moments_noise / n
    floor = problem.score.constants.moment_floor * noise * math.sqrt(m)
    merged = rare_levels(problem, np.diag(second)[:d], noise * math.sqrt(m))
    values, axes, stretch = _axes(second[:d, :d], merged, floor)
    root = np.asarray((axes * stretch) @ axes.T)
    if not problem.moment_columns.response:
        none = np.zeros(d)
        return First(centre, root, none, 0.0, 1.0, noise, values, axes, stretch, none, merged, level)
    across = root @ second[:d, d]
    kept = _shrink(across, noise**2 / 2.0 * float(np.sum(stretch**2)))
    total = float(max(second[d, d], floor))
    if problem.score.continuous:
        left = max(total - float(kept @ across), LEAST_RESIDUAL * total, floor / 3.0)
        unit, slopes = math.sqrt(left), kept
    else:
        unit, slopes = _response_deviation(problem, float(centre[d]), total), np.zeros(d)
    return First(centre, root, slopes, float(centre[d]), unit, noise, values, axes, stretch, second[:d, d], merged)


def least_told(noise: Any, columns: int) -> Any:
    """Return the second moment that a direction needs, in measured coordinates, to be told from noise of this deviation."""
    return noise * max(DESIGN_FLOOR * math.sqrt(columns + 1.0), LEAST_DEVIATIONS)


def rare_levels(problem: StepsProblem, moments: Array, edge: float) -> Mask:
    """Return which columns code a level that few records have, by published second moments."""
    found = np.zeros(len(moments), dtype=bool)
    if problem.layout.intercept:
        for start, stop in problem.layout.categories:
            found[start:stop] = moments[start:stop] < min(edge, RARE_LEVEL)
    return found


def _axes(second: Array, merged: Mask, floor: float) -> tuple[Array, Array, Array]:
    """Return (values, axes, stretch) of second moments: eigenvalues of the columns that are kept, then zeros for the others, and
    what brings each direction to unit variance, 0 for those."""
    d, places = len(second), np.flatnonzero(~merged)
    values, axes, stretch = np.zeros(d), np.zeros((d, d)), np.zeros(d)
    k = len(places)
    values[:k], inner = np.linalg.eigh(second[np.ix_(places, places)])
    axes[np.ix_(places, np.arange(k))] = inner
    axes[np.flatnonzero(merged), np.arange(k, d)] = 1.0
    stretch[:k] = 1.0 / np.sqrt(np.maximum(values[:k], floor))
    return values, axes, stretch


def where_of(problem: StepsProblem, first: First, design: Array | None) -> Where:
    """Return the coordinates of the steps and their start."""
    d, sizes, score, m = problem.layout.columns, problem.sizes, problem.score, problem.moment_columns.count
    if design is None:
        values, axes, stretch, noise, edge = first.values, first.axes, first.stretch, first.noise, first.edge
        floor = score.constants.moment_floor * edge
        root, across = axes * stretch, (axes * stretch).T @ first.across / first.unit
        shrink_by = noise**2 / 2.0 * float(np.sum(stretch**2)) / first.unit**2
        residual = 1.0
    else:
        second = symmetric(design, m) / problem.n
        noise = sizes.design_noise / problem.n
        edge = noise * math.sqrt(m)
        floor = max(DESIGN_FLOOR * edge, LEAST_VARIANCE)
        values, axes, stretch = _axes(second[:d, :d], first.merged, floor)
        root, across, residual = first.root @ (axes * stretch), np.zeros(d), 1.0
        if m > d:
            across, residual = (axes * stretch).T @ second[:d, d], float(second[d, d])
        shrink_by = noise**2 / 2.0 * float(np.sum(stretch**2))
    raised = np.maximum(values, floor)
    spread = np.where(first.absent, 0.0, np.maximum(values, LEAST_SPREAD * edge) / raised)
    kept = _shrink(across, shrink_by)
    doubt = noise * math.sqrt((d + 1) / 2.0) / raised
    if not score.linear:
        doubt = np.full(d, min(float(doubt.max()) if design is not None else 0.3, 0.5))
    doubt = np.append(doubt, [0.05 if score.linear else doubt[0]] * problem.layout.intercept)
    last = np.zeros(int(problem.layout.intercept), dtype=bool)
    weak = np.append((values < least_told(noise, d)) & ~first.absent, last)
    unit, score_scale, start = _start(problem, first, kept, residual, np.sqrt(raised) * (axes.T @ first.slopes), design)
    blocks, flat = score.blocks, np.zeros(d)
    level = _start(problem, first, flat, 1.0, flat, None)[2][: problem.size]
    return Where(
        first.mean[:d], np.asarray(root), first.centre, unit, score_scale, start[: problem.size], spread, np.tile(doubt, blocks),
        np.where(first.absent, 0.0, noise / raised), np.tile(weak, blocks), np.tile(np.append(first.absent, last), blocks),
        first.merged, level,
    )  # fmt: skip


def _start(
    problem: StepsProblem, first: First, kept: Array, residual: float, carried: Array, design: Array | None
) -> tuple[float, float, Array]:
    """Return (unit of responses, scale of scores, coefficients to begin with, the intercept last)."""
    score, explained = problem.score, float(kept @ kept)
    if score.continuous:
        if design is None:
            left = max(1.0 - explained, LEAST_RESIDUAL) if score.kind == "number" else 1.0
            unit, slopes = first.unit * math.sqrt(left), kept * first.unit
        else:
            left = max(residual - explained, LEAST_RESIDUAL * max(residual, 0.1), 0.05)
            unit, slopes = first.unit * math.sqrt(left), carried + first.unit * kept
        level = float(special.ndtri(problem.score.kernel.level)) if score.kind == "quantile" else 0.0
        return unit, 1.0, np.append(slopes / unit, level)
    if isinstance(score, ClassScore):
        return 1.0, 1.0, score.start(first.level, problem.layout, LEAST_SHARE / math.sqrt(problem.n))
    if score.kind == "margin":  # the least-squares line for ±1
        return 1.0, 1.0, np.append(kept * first.unit, first.centre)
    if score.kind == "label":
        rate, deviation = (first.centre + 1.0) / 2.0, first.unit / 2.0
        least = LEAST_SHARE / math.sqrt(problem.n)
        rate = min(max(rate, least), 1.0 - least)
        variance = rate * (1.0 - rate)
        kept, explained = kept * deviation, explained * deviation**2
        slopes = kept / max(variance - explained, LEAST_SHARE * variance)
        spread = float(slopes @ slopes)
        return 1.0, 1.0, np.append(slopes, math.log(rate / (1.0 - rate)) * math.sqrt(1.0 + 0.35 * spread))
    least = LEAST_SHARE / math.sqrt(problem.n)
    rate = max((first.centre + 1.0) / 2.0, least) * 2.0 * score.scale
    deviation = first.unit * score.scale
    slopes = kept * deviation / rate
    slopes = slopes / max(1.0, float(np.linalg.norm(slopes)))
    level = math.log(rate) - float(slopes @ slopes) / 2.0
    return 1.0, math.sqrt(max(deviation**2, rate)), np.append(slopes, level)


def _response_deviation(problem: StepsProblem, centre: float, total: float) -> float:
    """Return the standard deviation of a label or count, in units of r."""
    if problem.score.kind in ("label", "margin"):
        least = LEAST_SHARE / math.sqrt(problem.n)
        rate = min(max((centre + 1.0) / 2.0, least), 1.0 - least)
        return 2.0 * math.sqrt(rate * (1.0 - rate))
    return math.sqrt(max(total, 4e-6))


def _shrink(vector: Array, noise: float) -> Array:
    """Return the vector shortened by its noise (James and Stein 1961), ``noise`` the sum of its entries' variances."""
    return np.asarray(vector * max(0.0, 1.0 - noise / max(float(vector @ vector), 1e-12)))


def encoded_map(problem: StepsProblem, where: Where) -> tuple[Array, Array]:
    """Return (change, shift): change @ θ + shift are coefficients of encoded rows in the response's declared unit."""
    change: Any = problem.layout.encoded_coefficients(where.mean, where.root, 1.0)
    if isinstance(problem.score, ClassScore):
        change = np.kron(problem.score.contrasts, change)
    shift = np.zeros(len(change))
    if problem.score.continuous:
        change = where.unit * problem.response_scale * change
        if problem.layout.intercept:
            shift[-1] = where.centre * problem.response_scale
    return np.asarray(change), shift


@dataclass(frozen=True, eq=False)
class Pull:
    """A declared prior in the coordinates of the steps: its gradient at θ is pull − precision @ θ, in units of scores."""

    precision: Array
    pull: Array

    def at(self, theta: Array) -> Array:
        return np.asarray(self.pull - self.precision @ theta)


def pull_of(problem: StepsProblem, where: Where) -> Pull:
    """Return the declared prior's pull, 0 if none counts: a function of the plan and of published coordinates."""
    if problem.prior is None:
        return Pull(np.zeros((problem.size, problem.size)), np.zeros(problem.size))
    change, shift = encoded_map(problem, where)
    weighted = change.T * problem.prior.precision(len(change)) / where.score_scale
    return Pull(weighted @ change, weighted @ (problem.prior.location(len(change)) - shift))
