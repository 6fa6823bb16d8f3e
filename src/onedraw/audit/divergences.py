"""How far two laws are apart, over cells: δ at an ε, the largest log-ratio, Rényi divergences.

**∫(p − e^ε q)₊**: what an event chosen against ε gains, in three readings.

By cells, from the two masses of each: a lower bound, because merging outcomes hides information. By nodes: the best
estimate. And what cells may hide: only those count through which the level log p/q = ε passes, and halving them makes
them small. The same thing seen as a test is Neyman and Pearson's curve.

**The largest log-ratio**: over atoms a maximum, over a box a search that also looks towards its ends.
The low end of the answer is a value that was seen, less its rounding and the error of the normalisers. The high end
adds what the last magnitudes towards an end of the domain suggest is still missing; where each further magnitude adds
as much as the one before, the supremum is taken to be infinite.

**Rényi divergences**: of masses by summation, of densities by a quadrature of p^λ q^{1−λ} of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from onedraw.arrays import Array
from onedraw.audit.densities import Pair, sides_of, tensor
from onedraw.audit.quadrature import ROUNDING, Cells, Integrator, integrate, splittable
from onedraw.errors import WrongCall

_REFINEMENT = {1: 60_000, 2: 200_000}
"""Evaluations of the densities spent on one ε and one direction, by dimension."""


class Found(NamedTuple):
    """A number: what was surely seen, the best estimate, and what it may be at most."""

    low: float
    value: float
    high: float


@dataclass(frozen=True, eq=False)
class OneWay:
    """One law against another, in one direction: their cells, and what halves them; atoms cannot be halved."""

    cells: Cells
    integrator: Integrator | None

    def reversed(self) -> OneWay:
        return OneWay(self.cells.reversed(), None if self.integrator is None else self.integrator.reversed())

    @property
    def slack(self) -> float:
        """The relative errors of both normalisers."""
        return 0.0 if self.integrator is None else self.integrator.slack

    def delta(self, epsilon: float, *, tolerance: float = math.inf) -> Found:
        """∫(p − e^ε q)₊; with a ``tolerance`` the cells that the level passes through are halved."""
        cells = self.cells
        crossing = cells.take((cells.low < epsilon) & (cells.high > epsilon))
        halved = self.integrator is not None and tolerance < math.inf
        total = _settled(cells, epsilon)
        total += self._refined(crossing, epsilon, tolerance) if halved else _hockey_stick(crossing, epsilon)
        by_cells, by_nodes, hidden, error = map(float, total)
        error += self.slack + 2.0**-48
        low, high = max(0.0, by_cells - error), min(1.0, by_cells + hidden + error)
        return Found(low, min(max(by_nodes, low), high), high)

    def _refined(self, cells: Cells, epsilon: float, tolerance: float) -> Array:
        """Halve the cells the level ε passes through until they matter no more."""
        assert self.integrator is not None
        budget, total = _REFINEMENT[self.integrator.dimension], np.zeros(4)
        for _ in range(60):
            gaps = _gap(cells, epsilon)
            total += _hockey_stick(cells.take(gaps <= 0.0), epsilon)
            cells, gaps = cells.take(gaps > 0.0), gaps[gaps > 0.0]
            budget -= cells.nodes.size
            if len(cells) == 0 or budget < 0 or gaps.sum() < tolerance / 4.0 or not np.any(splittable(cells)):
                break
            small = (gaps < tolerance / (8.0 * len(cells))) | ~splittable(cells)
            total += _hockey_stick(cells.take(small), epsilon)
            cells = self.integrator.split(cells.take(~small))
        return total + _hockey_stick(cells, epsilon)

    @cached_property
    def largest_log_ratio(self) -> Found:
        if self.integrator is None:
            return _largest_of_atoms(self.cells)
        return _largest_of_densities(self.integrator, self.cells)

    @cached_property
    def curve(self) -> tuple[Array, Array]:
        """Type I errors under the first law and the least type II errors under the second, at the curve's corners."""
        (first, second), ratio = self.cells.nodes.swapaxes(0, 1).reshape(2, -1), self.cells.ratio.ravel()
        known = ~np.isnan(ratio) & ((first > 0.0) | (second > 0.0))
        order = np.argsort(ratio[known], kind="stable")
        alpha = np.concatenate([[0.0], np.cumsum(first[known][order])])
        beta = np.concatenate([[1.0], 1.0 - np.cumsum(second[known][order])])
        alpha, beta = np.clip(alpha / alpha[-1], 0.0, 1.0), np.clip(beta, 0.0, 1.0)
        beta[-1] = 0.0
        last = np.append(np.diff(alpha) > 0.0, True)  # of several points at one α the last is the lowest
        return alpha[last], beta[last]

    def renyi(self, order: float) -> Found:
        """D_λ."""
        masses, errors = self.cells.masses.T, self.cells.errors.T
        if self.integrator is None:
            merged = _divergence(masses[0], masses[1], order)
            slack = 2.0**-44 * (1.0 + abs(merged)) if merged < math.inf else 0.0
            return Found(max(0.0, merged - slack), max(0.0, merged), merged + slack)
        # the least the cells can mean: in the tails their errors are not small beside their masses
        merged = _divergence(np.maximum(masses[0] - errors[0], 0.0), masses[1] + errors[1], order)
        floor = max(0.0, merged - order / (order - 1.0) * self.slack - 1e-12)
        return Found(*(max(one, floor) for one in _tilted_divergence(self.integrator, order)))


# ── δ at an ε: (by cells, by nodes, what cells may hide, errors of masses) ──


def _settled(cells: Cells, epsilon: float) -> Array:
    """∫(p − e^ε q)₊ over the cells that lie wholly above the level."""
    scale, above = math.exp(min(epsilon, 700.0)), cells.low >= epsilon
    (first, second), (error, other) = cells.masses[above].T, cells.errors[above].T
    excess = np.maximum(first - scale * second, 0.0).sum()
    return np.array([excess, excess, 0.0, np.sum(error + np.minimum(scale * other, first + error))])


def _hockey_stick(cells: Cells, epsilon: float) -> Array:
    """∫(p − e^ε q)₊ over these cells. p − e^ε q is written −p·expm1(ε − log p/q), which keeps its digits."""
    if not len(cells):
        return np.zeros(4)
    first, second = cells.nodes.swapaxes(0, 1)
    scale = math.exp(min(epsilon, 700.0))
    with np.errstate(over="ignore", invalid="ignore"):
        excess = np.where(first > 0.0, -first * np.expm1(epsilon - cells.ratio), -math.inf)
        excess = np.where(np.isfinite(excess), excess, np.where(second > 0.0, -scale * second, 0.0))
    whole = excess.sum(axis=1)
    error, other = cells.errors.T
    # a cell that is thrown away may still hide what its error allows
    uncertain = (whole > 0.0) | (cells.high > epsilon)
    errors = error + np.minimum(scale * other, cells.masses[:, 0] + error)
    above, below = np.maximum(excess, 0.0).sum(axis=1), np.maximum(-excess, 0.0).sum(axis=1)
    # what merging a cell hides is the lesser of its parts; the nodes show it, up to what lies between them
    gap = _gap(cells, epsilon)
    hidden = np.minimum(gap, 2.0 * np.minimum(above, below) + 0.02 * gap)
    return np.array([whole[whole > 0.0].sum(), above.sum(), hidden.sum(), errors[uncertain].sum()])


def _gap(cells: Cells, epsilon: float) -> Array:
    """How much a cell's own positive part can exceed that of its masses: nothing unless the level passes through it."""
    first, second = cells.masses.T
    with np.errstate(over="ignore", invalid="ignore"):
        above = first * -np.expm1(np.minimum(epsilon - cells.high, 0.0))
        below = math.exp(min(epsilon, 700.0)) * second * -np.expm1(np.minimum(cells.low - epsilon, 0.0))
    crossing = (cells.low < epsilon) & (cells.high > epsilon)
    return np.where(crossing, np.minimum(np.nan_to_num(above), np.nan_to_num(below)), 0.0)


# ── the largest log-ratio ──

Height = Callable[[Array], Array]

_BELIEVED = 1e-7
"""Log-ratios with more rounding than this are not used: far out, two huge logarithms cancel."""

_CLIMBS = 10
"""How many of the highest places are climbed."""

_NEGLIGIBLE = 1e-12
"""Mass on which the other law may seem to vanish without being believed to: it may only have underflowed."""


def _largest_of_atoms(cells: Cells) -> Found:
    """Over atoms a maximum; one that the first law does not have is at −∞ and never the largest.

    Masses are not asked: an atom of probability e^{−2000} is rare and counts all the same.
    """
    top = float(np.max(cells.ratio))
    slack = 2.0**-46 * (1.0 + abs(top)) if top < math.inf else 0.0
    return Found(top - slack, top, top + slack)


def _largest_of_densities(integrator: Integrator, cells: Cells) -> Found:
    """Over a box a search: on grids, in every cell, uphill, and towards the ends."""
    if cells.nodes[:, 0][cells.ratio == math.inf].sum() > _NEGLIGIBLE:  # real mass where the other law has none
        return Found(math.inf, math.inf, math.inf)
    pair, line = integrator.pair, integrator.dimension == 1

    def height(points: Array) -> Array:
        return _ratios(pair, points, float(integrator.shift[0] - integrator.shift[1]))

    probes = tensor([side.probes(*((64, 2000) if line else (4, 20))) for side in pair.sides])
    places = np.concatenate([probes, cells.corner + cells.width / 2.0])  # the cells are dense where the mass is
    points = pair.at(places)[0]
    seen = height(points)
    best = max(float(np.max(seen)), (_climb_on_a_line if line else _climb_in_the_plane)(pair, height, points, seen))
    # beyond the outermost probes: nothing, a geometric remainder, or ∞
    ends = [np.abs(probes[:, axis] - end) for axis, side in enumerate(pair.sides) for end in side.span]
    missing = max(_beyond(-np.log10(distance), seen[: len(probes)]) for distance in ends)
    error = integrator.slack + 1e-12 * (1.0 + abs(best))
    if missing == math.inf:
        return Found(best - error, math.inf, math.inf)
    return Found(best - error, best + missing, best + 2.0 * missing + error)


def _ratios(pair: Pair, points: Array, shift: float) -> Array:
    """Log-ratios less their rounding; −∞ where they are not to be believed. ``shift`` is log(Z_p/Z_q)."""
    first, second = pair.scout(points)
    with np.errstate(invalid="ignore"):
        ratio = first - second - shift
        rounding = ROUNDING * (np.abs(first) + np.abs(second))
    believed = np.isfinite(ratio) & (rounding < _BELIEVED)
    return np.where(believed, ratio - rounding, -math.inf)


def _climb_on_a_line(pair: Pair, height: Height, points: Array, values: Array) -> float:
    """The best of the highest local maxima, each sought between its neighbours."""
    order = np.argsort(points[:, 0], kind="stable")
    x, seen = points[order, 0], values[order]
    left, inner, right = seen[:-2], seen[1:-1], seen[2:]
    # of a plateau only the edges: there are better places to climb
    rises = (inner > left + 1e-10) | (inner > right + 1e-10)
    peaks = 1 + np.flatnonzero((inner >= left) & (inner >= right) & rises & np.isfinite(inner))
    best = -math.inf
    for peak in peaks[np.argsort(-seen[peaks], kind="stable")][:_CLIMBS]:
        found = optimize.minimize_scalar(
            lambda z: -max(float(height(np.array([[z]]))[0]), -1e300),
            bounds=(x[peak - 1], x[peak + 1]), method="bounded", options={"xatol": 1e-12 * (1.0 + abs(x[peak]))},
        )  # fmt: skip
        best = max(best, -float(found.fun))
    return best


def _climb_in_the_plane(pair: Pair, height: Height, points: Array, values: Array) -> float:
    """The best height reached from the highest points seen."""
    starts = points[np.argsort(-values, kind="stable")[: 4 * _CLIMBS : 4]]  # not all of them from one place
    options = {"step": 0.05, "xatol": 1e-10, "fatol": 1e-13, "maxiter": 300}
    return float(np.max(height(np.stack([pair.climbed(height, start, **options) for start in starts]))))


def _beyond(decades: Array, values: Array) -> float:
    """What is missing towards an end: the largest values up to each of the last powers of ten that are believed."""
    known = np.isfinite(values)
    if not np.any(known):
        return 0.0
    last = math.floor(float(np.max(decades[known])) * 4.0) / 4.0
    upto = [values[known & (decades <= last - back + 1e-9)] for back in (3.0, 2.0, 1.0, 0.0)]
    if len(upto[0]) == 0:
        return 0.0
    steps = np.diff([float(np.max(one)) for one in upto])
    if steps[-1] <= 1e-9:
        return 0.0
    shrinks = steps[-1] / steps[-2] if steps[-2] > 0.0 else math.inf
    if shrinks > 0.6:
        return math.inf
    return float(steps[-1] * shrinks / (1.0 - shrinks))


# ── Rényi divergences ──


def _divergence(first: Array, second: Array, order: float) -> float:
    """D_λ of two vectors of masses."""
    kept = first > 0.0
    if np.any(second[kept] <= 0.0):
        # masses too small to be told from nothing are left out: less is shown, never more
        if first[kept & (second <= 0.0)].sum() > 1e-12:
            return math.inf
        kept &= second > 0.0
    terms = order * np.log(first[kept]) + (1.0 - order) * np.log(second[kept])
    return float(special.logsumexp(terms)) / (order - 1.0)


def _tilted_divergence(integrator: Integrator, order: float) -> Found:
    """D_λ by a quadrature of its own: p^λ q^{1−λ} has its mass elsewhere than p and q."""
    pair = integrator.pair

    def tilted(points: Array) -> Array:
        a, b = np.asarray(pair.first(points), dtype=float), np.asarray(pair.second(points), dtype=float)
        return np.where(a == -math.inf, -math.inf, order * a + (1.0 - order) * np.where(a == -math.inf, 0.0, b))

    try:
        own = Pair(tilted, tilted, sides_of([(side.lo, side.hi) for side in pair.sides])).located()
        tolerance = 1e-11 if integrator.dimension == 1 else 1e-7
        cells, found = integrate(own, tolerance=tolerance, variation=math.inf, evaluations=200_000)
    except WrongCall:  # +∞ where q vanishes and p does not
        return Found(0.0, math.inf, math.inf)
    total, error = float(cells.masses[:, 0].sum()), float(cells.errors[:, 0].sum())
    constant = found.shift[0] - np.dot(integrator.shift, [order, 1.0 - order])
    slack = order / (order - 1.0) * integrator.slack + 1e-13

    def divergence(mass: float) -> float:
        return float(math.log(max(mass, 1e-300)) + constant) / (order - 1.0)

    if error > 1e-4 * total:
        return Found(divergence(total - error) - slack, math.inf, math.inf)
    return Found(divergence(total - error) - slack, divergence(total), divergence(total + error) + slack)
