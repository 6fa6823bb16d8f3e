"""The laws of stages on a pair, written down again: cells of a grid, compared cell by cell.

A pair moves what a stage publishes along one direction. Across it the noise says nothing if it is Gaussian, and only
its length ρ counts if it has density ∝ e^{−‖v‖/s} in q numbers: ρ^{q−2}·e^{−√(x² + ρ²)/s}. So a stage is a law on a
line or on a half-plane. For a sum the pair shifts x. For a perturbed mode (privacy/perturbed_mode.md §1), with w what ridge and
other records add,

    x = w + (one record's slope)·(its row),        volume 1 + φ''·r²/Λ

in the coordinate w, in which no minimum has to be found. Two rows in nearly opposite directions, a long way out along
what they have in common, leave each record's place on its loss free: its ``bend`` may lie anywhere.

Under a pure promise a sum of p×p matrices is noised by c·(U − U') (`models.sums.exact_sums`). Rows x and y that are
orthogonal move it from ρyyᵀ to ρxxᵀ, and T = xᵀAx − yᵀAy by 2ρ. Of U the two entries and what is left of 1 are shares
of gamma numbers, so T = c·(Q − Q'), Q = S(2B − 1) with beta numbers S and B: three integrals. Its tails fall like
e^{−|T|/2}, so the promise is attained far out.
"""

from __future__ import annotations

import abc
import functools
import itertools
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import interpolate, special

from onedraw import audit
from onedraw.arrays import Array
from onedraw.errors import WrongCall

from .case import Case, Pair
from .losses import Slope

POINTS, FEWEST, ACROSS, BINS = 1501, 40, 60, 500
"""Cells along the pair's direction, and where a loss bends at least; across it; and kept when laws are multiplied."""

RARELY = 1e-3
"""The chance of an outcome that a record makes likelier: the smaller, the nearer its log-ratio comes to the range."""

UNSEEN = 1e-4
"""Share of an outcome added to both laws for what the grid misses: log-ratios stay exact, and something is hidden."""


@dataclass(frozen=True, eq=False)
class Law:
    """Log masses of the same cells under both data sets of a pair."""

    first: Array
    second: Array

    @staticmethod
    def together(laws: Iterable[Law]) -> Law:
        """All of them published, with noise of their own."""
        return functools.reduce(operator.mul, laws)

    def __mul__(self, other: Law) -> Law:
        """Both published, with noise of their own."""
        both = ((self.first, other.first), (self.second, other.second))
        return Law(*(np.add.outer(one, another).ravel() for one, another in both)).merged(BINS)

    def merged(self, bins: int) -> Law:
        """Cells of nearly equal log-ratio as one, which can only hide; those at its two ends are kept as they are."""
        ratio = self.first - self.second
        if len(ratio) <= bins:
            return self
        low, high = float(ratio.min()), float(ratio.max())
        place = 1 + np.floor((ratio - low) * ((bins - 2) / max(high - low, 1e-300))).astype(np.int64).clip(0, bins - 3)
        edge = (high - low) * 1e-7
        place[ratio <= low + edge], place[ratio >= high - edge] = 0, bins - 1
        first, second = (_added(masses, place, bins) for masses in (self.first, self.second))
        occupied = first > -math.inf
        return Law(first[occupied], second[occupied])

    def profile(self) -> audit.Profile:
        return audit.finite_profile(self.first, self.second, log=True)


def _added(logs: Array, place: Any, bins: int) -> Array:
    """log Σ e^{log} for each bin; −∞ for empty ones. Masses of e^{−2000} count as well as others."""
    top = np.full(bins, -np.inf)
    np.maximum.at(top, place, logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(np.bincount(place, np.exp(logs - top[place]), bins)) + top)


class LawCase(Case):
    """A case whose laws on a pair are made of cells."""

    @property
    def pure(self) -> bool:
        """Whether its noise is that of a pure promise."""
        return bool(self.plan.parameters["pure"])

    @abc.abstractmethod
    def law(self, pair: Pair, factor: float = 1.0) -> Law:
        """Of all that is published, with records ``factor`` times as heavy."""

    def profile(self, pair: Pair, factor: float = 1.0) -> audit.Profile:
        return self.law(pair, factor).profile()


def normal_cells(shift: float, *, reach: float = 10.0, cells: int = 600) -> tuple[Array, Array]:
    """Masses of N(0, 1) and N(``shift``, 1) over the same cells; what lies beyond ``reach`` is one of them."""
    edges = np.concatenate([[-np.inf], np.linspace(-reach, reach + shift, cells), [np.inf]])
    return normal_masses(edges), normal_masses(edges - shift)


def normal_masses(edges: Array) -> Array:
    """Of a standard normal law between neighbouring edges, from the side where the digits are."""
    upper = special.ndtr(-edges[:-1]) - special.ndtr(-edges[1:])
    return np.asarray(np.where(edges[:-1] > 0.0, upper, np.diff(special.ndtr(edges))))


@dataclass(frozen=True)
class Noise:
    """In ``entries`` numbers: Gaussian of deviation ``scale``, or of density ∝ e^{−‖v‖/scale}."""

    scale: float
    entries: int
    pure: bool

    @property
    def reach(self) -> float:
        """Beyond, nothing is to be seen."""
        if not self.pure:
            return 9.0 * self.scale
        return (self.entries + 12.0 * math.sqrt(self.entries) + 30.0) * self.scale

    def log(self, x: Array, across: tuple[Array, Array] | None) -> Array:
        if not self.pure:
            return np.asarray(-0.5 * (x / self.scale) ** 2)
        if across is None:
            return np.asarray(-np.abs(x) / self.scale)
        middle, width = across
        return np.asarray(-np.hypot(x, middle) / self.scale + (self.entries - 2) * np.log(middle) + np.log(width))

    def across(self) -> tuple[Array, Array] | None:
        """Cells of the length across, where it counts: fine near 0, where the log-ratio is largest."""
        if not self.pure or self.entries == 1:
            return None
        edges = np.append(0.0, self.reach * np.geomspace(1e-4, 1.0, ACROSS))
        return (edges[1:] + edges[:-1]) / 2.0, np.diff(edges)


@dataclass(frozen=True)
class MatrixNoise:
    """T of pure noise of scale 1 on a matrix with ``size`` rows; its density is found once and interpolated."""

    size: int

    @property
    def reach(self) -> float:
        """There the tails are as steep as they get, to one part in 300."""
        return 640.0 * self.size

    def log(self, x: Array, across: object) -> Array:
        return np.asarray(_matrix_density(self.size)(np.abs(x)))

    def across(self) -> None:
        return None


@functools.lru_cache(maxsize=32)
def _matrix_density(size: int) -> Any:
    """log of T's density by |T|, up to a constant: of V = Q − Q' first, then of c·V, c ~ Gamma(p(p+1) + 1)."""
    numbers, cells = size * (size + 1) // 2, 600
    shares = _share_masses(size, cells)
    of_v = [special.logsumexp(shares[lag:] + shares[: len(shares) - lag]) for lag in range(2 * cells)]
    between = interpolate.CubicSpline(np.arange(2 * cells) / cells, of_v, bc_type=((1, 0.0), "not-a-knot"))
    near, far = 4.0 * numbers + 40.0, 700.0 * size + 20.0 * numbers + 400.0
    c = np.concatenate([np.linspace(1e-3, near, 1500), np.geomspace(1.001 * near, near + far, 1500)])
    x = np.concatenate([np.linspace(0.0, 12.0 * size, 160), np.geomspace(12.0 * size, 700.0 * size, 161)[1:]])
    v = x[:, None] / c
    at = np.where(v < 2.0 - 1.0 / cells, between(np.minimum(v, 2.0 - 1.0 / cells)), -np.inf)
    logs = special.logsumexp(at + (2 * numbers - 1) * np.log(c) - c + np.log(np.gradient(c)), axis=1)
    return interpolate.CubicSpline(x, logs, bc_type=((1, 0.0), "not-a-knot"))


def _share_masses(size: int, cells: int) -> Array:
    """Log masses of Q = S(2B − 1) on equal cells of [−1, 1], S ~ Beta(p + 1, rest) and B ~ Beta((p+1)/2, (p+1)/2)."""
    half = (size + 1) / 2.0
    left = size * (size + 1) / 2.0 - 2.0 * half + 1.0
    nodes, weights = np.polynomial.legendre.leggauss(100)
    z = np.abs(np.arange(-cells, cells) + 0.5)[:, None] / cells
    s = z + (1.0 - z) * (nodes + 1.0) / 2.0
    logs = (2.0 * half - 2.0) * np.log(s) + (left - 1.0) * np.log1p(-s) + (half - 1.0) * np.log1p(-((z / s) ** 2))
    return np.asarray(special.logsumexp(logs, axis=1, b=weights) + np.log1p(-z[:, 0]))


def moved(distance: float, entries: int, size: int | None) -> Law:
    """A sum under a pure promise that the pair moves by ``distance`` scales of its noise: of ``entries`` numbers, or a
    matrix with ``size`` rows of which one record's share, of that trace, is replaced by another's."""
    if size is None or size == 1:
        return shifted(distance, Noise(1.0, entries, True))
    stations = tuple(place * size for place in (-40.0, -12.0, -4.0, 0.0, 4.0, 12.0, 40.0))
    return shifted(2.0 * distance, MatrixNoise(size), stations)


def independent(moves: Iterable[tuple[float, int, int | None]], *, pure: bool) -> list[Law]:
    """Sums with noise of their own that a pair moves by so many scales of it, of so many numbers, or of a matrix with
    so many rows; Gaussian ones are one Gaussian together."""
    if pure:
        return [moved(*one) for one in moves]
    return [shifted(math.hypot(*(distance for distance, *_ in moves)), Noise(1.0, 1, False))]


def rare_outcome(largest: float) -> Law:
    """Two outcomes whose odds a record changes by e^``largest``."""
    odds = np.log(RARELY) - np.log1p(-RARELY)
    return Law(*(np.array([-np.logaddexp(0.0, -one), -np.logaddexp(0.0, one)]) for one in (odds, odds - largest)))


def shifted(distance: float, noise: Noise | MatrixNoise, stations: tuple[float, ...] = ()) -> Law:
    """A sum that the pair moves by ``distance``."""
    if not distance:
        return Law(np.zeros(1), np.zeros(1))
    half = distance / 2.0
    return tilted(
        noise, half, lambda x: (x - half, np.zeros_like(x)), lambda x: (x + half, np.zeros_like(x)), stations=stations
    )


def tilted(
    noise: Noise | MatrixNoise, furthest: float, first: Any, second: Any, kinks: tuple[float, ...] = (),
    stations: tuple[float, ...] = (), fewest: int = FEWEST,
) -> Law:  # fmt: skip
    """The law of w, given x and log volume as functions of it; cells end at the kinks."""
    across = noise.across()
    w, width = _cells(noise.reach + furthest, kinks, stations, fewest, POINTS if across is None else POINTS // 5)
    points = w if across is None else w[:, None]

    def masses(record: Any) -> Array:
        x, volume = record(points)
        logs = noise.log(x, across) + volume
        return np.asarray((logs + (np.log(width) if across is None else np.log(width)[:, None])).ravel())

    logs = [masses(record) for record in (first, second)]
    totals = [float(special.logsumexp(one)) for one in logs]
    whole = max(totals)  # both have the noise's own total: the change of variables is one to one
    if whole - min(totals) > UNSEEN / 10.0:
        if fewest < 1000:
            return tilted(noise, furthest, first, second, kinks, stations, 5 * fewest)
        raise WrongCall("The grid is too coarse for this fit's numbers: its two laws do not add up to the same.")
    unseen = [math.log(UNSEEN - math.expm1(total - whole)) for total in totals]
    return Law(*(np.append(one - whole, rest) for one, rest in zip(logs, unseen, strict=True))).merged(BINS)


def _cells(
    end: float, kinks: tuple[float, ...], stations: tuple[float, ...], fewest: int, points: int
) -> tuple[Array, Array]:
    """Nodes and weights of Gauss's rule of two points on cells of [−end, end]. None straddles a kink, those beside one
    are thin, because volume is largest right there, and between two ``stations`` there are always some."""
    thin = 1e-6 * end
    marks = {-end, end, *stations, *(kink + side for kink in kinks for side in (-thin, 0.0, thin))}

    def between(low: float, high: float) -> Array:
        cells = max(fewest, math.ceil(points * (high - low) / (2.0 * end)))
        return np.linspace(low, high, 2 if high - low < 2.0 * thin else cells + 1)

    edges = [between(*pair) for pair in itertools.pairwise(sorted(mark for mark in marks if -end <= mark <= end))]
    middles = np.concatenate([(one[1:] + one[:-1]) / 2.0 for one in edges])
    half = np.concatenate([np.diff(one) for one in edges]) / 2.0
    return np.concatenate([middles - half / math.sqrt(3.0), middles + half / math.sqrt(3.0)]), np.tile(half, 2)


@dataclass(frozen=True)
class Own:
    """The replaced record as the mode sees it: its row's direction, and where its loss bends, in deviations of the
    noise beyond the pair's own pull; ``None``: nowhere, it is far out where its slope is steepest."""

    direction: int
    bends_at: float | None = None


def mode(loss: Slope, first: Own, second: Own, *, row: float, ridge: float, noise: Noise) -> Law:
    """The perturbed mode on a pair of records with rows of norm ``row``."""
    furthest = loss.steepest * row

    def place(own: Own) -> float:
        assert own.bends_at is not None
        return own.direction * (furthest + own.bends_at * noise.scale)

    def record(own: Own) -> Any:
        def of(w: Array) -> tuple[Array, Array]:
            u = np.full_like(w, -1e9) if own.bends_at is None else own.direction * (row / ridge) * (w - place(own))
            return w + own.direction * row * loss.slope(u), np.log1p(loss.curvature(u) * row**2 / ridge)

        return of

    bent = [own for own in (first, second) if own.bends_at is not None]
    kinks = tuple(place(own) + own.direction * kink * ridge / row for own in bent for kink in loss.kinks)
    stations = tuple(place(own) + reach * ridge / row for own in bent for reach in (-12.0, -4.0, -1.0, 1.0, 4.0, 12.0))
    return tilted(noise, furthest, record(first), record(second), kinks, stations)
