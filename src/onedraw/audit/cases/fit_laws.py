"""The laws of a fit's stages on a pair, written down again: cells of a grid, compared cell by cell.

A pair moves what a stage publishes along one direction. Across it the noise says nothing if it is Gaussian, and only its
length ρ counts if it has density ∝ e^{−‖v‖/s} in q numbers: ρ^{q−2}·e^{−√(x² + ρ²)/s}. So a stage is a law on a line or
on a half-plane. For a sum the pair shifts x. For a perturbed mode (mathematics-3 §2), with w what ridge and other records add,

    x = w + (one record's slope)·(its row),        volume 1 + φ''·r²/Λ

in the coordinate w, in which no minimum has to be found. Two rows in nearly opposite directions, a long way out along
what they have in common, leave each record's place on its loss free: its ``bend`` may lie anywhere.

Under a pure promise a sum of p×p matrices is noised by c·(U − U') (`models.noise_law`). Rows x and y that are orthogonal move it from
ρyyᵀ to ρxxᵀ, and T = xᵀAx − yᵀAy by 2ρ. Of U the two entries and what is left of 1 are shares of gamma numbers, so T = c·(Q − Q'),
Q = S(2B − 1) with beta numbers S and B: three integrals. Its tails fall like e^{−|T|/2}, so the promise is attained far out.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import interpolate, special

from onedraw import audit
from onedraw.errors import WrongCall
from onedraw.mechanisms import PerturbedMode, Plan
from onedraw.models import (
    CountRegression,
    HuberisedHinge,
    HuberRegression,
    LogCoshRegression,
    Logistic,
    Quantile,
    Softmax,
)
from onedraw.models.fit.constants import QUANTILE_WIDTH

from .case import Array

POINTS, FEWEST, ACROSS, BINS = 1501, 40, 60, 500
"""Cells along the pair's direction, at least where a loss bends; cells across it, and cells kept when laws are multiplied."""

UNSEEN = 1e-4
"""Share of an outcome added to both laws, which takes up what the grid misses: log-ratios stay exact, and something is hidden."""


def fit_of(plan: Plan) -> PerturbedMode:
    """The mechanism of a plan in stages."""
    assert isinstance(plan.mechanism, PerturbedMode)
    return plan.mechanism


# ── losses ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Slope:
    """A loss of one record, turned so that its steepest slope, −``steepest``, is at u = −∞."""

    slope: Callable[[Array], Array]
    curvature: Callable[[Array], Array]
    steepest: float
    most: float
    """The largest curvature."""
    information: float
    """The largest curvature expected under the model; of several classes the largest Frobenius norm of its matrix."""
    kinks: tuple[float, ...] = ()
    variability: float | None = None
    """The largest square of a slope expected under the model; None where no model is assumed."""


def slope_of(model: Any) -> Slope:
    """φ' and φ'' from the definition of the loss."""
    match model:
        case Logistic(loss="logistic"):
            return Slope(lambda u: -special.expit(-u), lambda u: special.expit(u) * special.expit(-u), 1.0, 0.25, 0.25, variability=0.25)  # fmt: skip
        case Logistic(loss="exp-linear", exponent=power):
            return exp_linear(power)
        case Softmax():
            return between_two()
        case HuberisedHinge(width=h):
            bent = Slope(lambda u: -np.clip((1.0 - u) / h, 0.0, 1.0), lambda u: _within(u, 1.0 - h, 1.0) / h, 1.0, 1.0 / h, 1.0 / h)  # fmt: skip
            return _kinked(bent, 1.0 - h, 1.0)
        case HuberRegression():  # in measured coordinates, in units of its threshold
            bent = Slope(lambda u: np.clip(u, -1.0, 1.0), lambda u: _within(u, -1.0, 1.0), 1.0, 1.0, 1.0)
            return _kinked(bent, -1.0, 1.0)
        case LogCoshRegression():
            return Slope(np.tanh, lambda u: 1.0 - np.tanh(u) ** 2, 1.0, 1.0, 1.0)
        case Quantile(level=level) if model.fit_loss is not None:
            h, steep = QUANTILE_WIDTH, max(level, 1.0 - level)
            bent = Slope(lambda u: np.clip((u + h) / (2 * h), 0.0, 1.0) - steep, lambda u: _within(u, -h, h) / (2 * h), steep, 0.5 / h, 0.5 / h)  # fmt: skip
            return _kinked(bent, -h, h)
        case CountRegression(largest=largest):
            return counts(largest)
    raise WrongCall(
        f"The audit has no formula for the loss of {type(model).__name__}, so its fit cannot be attacked. It knows the "
        "fits of Logistic, Softmax, HuberisedHinge, LogCoshRegression, Quantile and CountRegression."
    )


def exp_linear(power: float) -> Slope:
    """−q·s, s = ((1 + e^{−|u|})/2)^power; s'/s = −power·sign(u)·expit(−|u|)."""

    def even(u: Array) -> Array:
        return np.asarray((0.5 * (1.0 + np.exp(-np.abs(u)))) ** power)

    def curvature(u: Array) -> Array:
        falling = special.expit(u) + power * np.where(u > 0.0, 1.0, -1.0) * special.expit(-np.abs(u))
        return np.asarray(special.expit(-u) * even(u) * falling)

    return Slope(lambda u: -special.expit(-u) * even(u), curvature, 0.5**power, (1.0 + power) / 4.0, 0.25, (0.0,), 0.25)


def between_two() -> Slope:
    """Softmax along the line on which the own class leads one other, the rest being far behind: a logistic loss of √2·u."""
    root = math.sqrt(2.0)
    return Slope(lambda u: -root * special.expit(-root * u), lambda u: 2.0 * special.expit(root * u) * special.expit(-root * u), root, 0.5, 0.5)  # fmt: skip


def counts(largest: int) -> Slope:
    """E min(Poisson(e^u), Y) − Y for a record at the largest count: −Σ_{k<Y} (Y − k)·P(k)."""
    below = np.arange(largest)

    def chances(u: Array) -> tuple[Array, Array]:
        rate = np.exp(np.clip(u, -700.0, 30.0))
        logs = below * np.log(rate)[..., None] - rate[..., None] - special.gammaln(below + 1.0)
        return rate, np.exp(logs)

    def curvature(u: Array) -> Array:
        rate, chance = chances(u)
        return np.asarray(rate * chance.sum(axis=-1))

    most = float(curvature(np.log(np.linspace(1e-3, 2.0 * largest + 2.0, 20_001))).max())
    return Slope(
        lambda u: -(chances(u)[1] * (largest - below)).sum(axis=-1),
        curvature,
        float(largest),
        most,
        most,
        variability=most,
    )


def _within(u: Array, low: float, high: float) -> Array:
    return np.asarray((u > low) & (u < high), dtype=np.float64)


def _kinked(loss: Slope, *kinks: float) -> Slope:
    return Slope(loss.slope, loss.curvature, loss.steepest, loss.most, loss.information, kinks)


# ── laws ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Law:
    """Log masses of the same cells under both data sets of a pair."""

    first: Array
    second: Array

    def __mul__(self, other: Law) -> Law:
        """Both published, with noise of their own."""
        first, second = (
            np.add.outer(one, another).ravel()
            for one, another in ((self.first, other.first), (self.second, other.second))
        )
        return Law(first, second).merged(BINS)

    def merged(self, bins: int) -> Law:
        """Cells of nearly equal log-ratio as one, which can only hide; those at its two ends are kept as they are."""
        ratio = self.first - self.second
        if len(ratio) <= bins:
            return self
        low, high = float(ratio.min()), float(ratio.max())
        place = 1 + np.floor((ratio - low) * ((bins - 2) / max(high - low, 1e-300))).astype(np.int64).clip(0, bins - 3)
        edge = (high - low) * 1e-7
        place[ratio <= low + edge], place[ratio >= high - edge] = 0, bins - 1
        return Law(*(_added(masses, place, bins) for masses in (self.first, self.second))).occupied()

    def occupied(self) -> Law:
        kept = self.first > -math.inf
        return Law(self.first[kept], self.second[kept])

    def profile(self) -> audit.Profile:
        return audit.finite_profile(self.first, self.second, log=True)


def _added(logs: Array, place: Any, bins: int) -> Array:
    """log Σ e^{log} for each bin; −∞ for empty ones. Masses of e^{−2000} count as well as others."""
    top = np.full(bins, -np.inf)
    np.maximum.at(top, place, logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(np.bincount(place, np.exp(logs - top[place]), bins)) + top)


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
        """Cells of the length across the pair's direction, where it counts: fine near 0, where the log-ratio is largest."""
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
    """log of T's density as a function of |T|, up to a constant: of V = Q − Q' first, then of c·V, c ~ Gamma(p(p+1) + 1)."""
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
    """Log masses of Q = S(2B − 1) on equal cells of [−1, 1], S ~ Beta(p + 1, what is left) and B ~ Beta((p+1)/2, (p+1)/2)."""
    half = (size + 1) / 2.0
    left = size * (size + 1) / 2.0 - 2.0 * half + 1.0
    nodes, weights = np.polynomial.legendre.leggauss(100)
    z = np.abs(np.arange(-cells, cells) + 0.5)[:, None] / cells
    s = z + (1.0 - z) * (nodes + 1.0) / 2.0
    logs = (2.0 * half - 2.0) * np.log(s) + (left - 1.0) * np.log1p(-s) + (half - 1.0) * np.log1p(-((z / s) ** 2))
    return np.asarray(special.logsumexp(logs, axis=1, b=weights) + np.log1p(-z[:, 0]))


def moved(distance: float, entries: int, size: int | None) -> Law:
    """A sum under a pure promise that the pair moves by ``distance`` scales of its noise: of ``entries`` numbers, or a matrix with
    ``size`` rows of which one record's share, of that trace, is replaced by another's."""
    if size is None or size == 1:
        return shifted(distance, Noise(1.0, entries, True))
    return tilted(
        MatrixNoise(size), distance,
        lambda x: (x - distance, np.zeros_like(x)), lambda x: (x + distance, np.zeros_like(x)),
        stations=tuple(place * size for place in (-40.0, -12.0, -4.0, 0.0, 4.0, 12.0, 40.0)),
    )  # fmt: skip


def shifted(distance: float, noise: Noise) -> Law:
    """A sum that the pair moves by ``distance``."""
    if not distance:
        return Law(np.zeros(1), np.zeros(1))
    half = distance / 2.0
    return tilted(noise, half, lambda x: (x - half, np.zeros_like(x)), lambda x: (x + half, np.zeros_like(x)))


def tilted(
    noise: Noise | MatrixNoise,
    furthest: float,
    first: Any,
    second: Any,
    kinks: tuple[float, ...] = (),
    stations: tuple[float, ...] = (),
) -> Law:
    """The law of w, given x and log volume as functions of it; cells end at the kinks."""
    across = noise.across()
    w, width = _cells(noise.reach + furthest, kinks, stations, POINTS if across is None else POINTS // 5)
    points = w if across is None else w[:, None]

    def masses(record: Any) -> Array:
        x, volume = record(points)
        logs = noise.log(x, across) + volume
        return np.asarray((logs + (np.log(width) if across is None else np.log(width)[:, None])).ravel())

    logs = [masses(record) for record in (first, second)]
    totals = [float(special.logsumexp(one)) for one in logs]
    whole = max(totals)  # both have the noise's own total: the change of variables is one to one
    if whole - min(totals) > UNSEEN / 10.0:
        raise WrongCall("The grid is too coarse for this fit's numbers: its two laws do not add up to the same.")
    unseen = [math.log(UNSEEN - math.expm1(total - whole)) for total in totals]
    return Law(*(np.append(one - whole, rest) for one, rest in zip(logs, unseen, strict=True))).merged(BINS)


def _cells(end: float, kinks: tuple[float, ...], stations: tuple[float, ...], points: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss's rule of two points on cells of [−end, end]. None straddles a kink, those beside one are thin, because
    volume is largest right there, and between two ``stations`` there are always some."""
    thin = 1e-6 * end
    marks = {-end, end, *stations, *(kink + side for kink in kinks for side in (-thin, 0.0, thin))}
    edges = [
        np.linspace(low, high, 2 if high - low < 2.0 * thin else max(FEWEST, math.ceil(points * (high - low) / (2.0 * end))) + 1)
        for low, high in itertools.pairwise(sorted(mark for mark in marks if -end <= mark <= end))
    ]  # fmt: skip
    middles = np.concatenate([(one[1:] + one[:-1]) / 2.0 for one in edges])
    half = np.concatenate([np.diff(one) for one in edges]) / 2.0
    return np.concatenate([middles - half / math.sqrt(3.0), middles + half / math.sqrt(3.0)]), np.tile(half, 2)


@dataclass(frozen=True)
class Own:
    """The replaced record as the mode sees it: its row's direction, and where its loss bends, in deviations of the noise
    beyond the pair's own pull; ``None``: nowhere, it is far out where its slope is steepest."""

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
