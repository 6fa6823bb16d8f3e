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
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from onedraw.arrays import Array, Mask
from onedraw.audit.densities import Pair, Side, sides_of
from onedraw.audit.quadrature import ROUNDING, Cells, Normalised, integrate, splittable
from onedraw.errors import WrongCall

_REFINEMENT = {1: 60_000, 2: 200_000}
"""Evaluations of the densities spent on one ε and one direction, by dimension."""


class Sum(NamedTuple):
    """Parts of a hockey-stick integral: by cells (low), by nodes, what cells may hide, and errors of masses."""

    by_cells: float = 0.0
    by_nodes: float = 0.0
    hidden: float = 0.0
    error: float = 0.0

    def plus(self, other: Sum) -> Sum:
        return Sum(*(one + another for one, another in zip(self, other, strict=True)))

    def bracket(self, normaliser_error: float) -> tuple[float, float, float]:
        error = self.error + normaliser_error + 2.0**-48
        low, high = max(0.0, self.by_cells - error), min(1.0, self.by_cells + self.hidden + error)
        return low, min(max(self.by_nodes, low), high), high


@dataclass(frozen=True, eq=False)
class Masses:
    """The two masses of each cell: all that matters of a cell that the level ε does not pass through."""

    first: Array
    second: Array
    low: Array
    high: Array
    first_error: Array
    second_error: Array

    @classmethod
    def of(cls, cells: Cells) -> Masses:
        first, second = cells.first.sum(axis=1), cells.second.sum(axis=1)
        return cls(first, second, cells.low, cells.high, cells.first_error, cells.second_error)

    def reversed(self) -> Masses:
        return Masses(self.second, self.first, -self.high, -self.low, self.second_error, self.first_error)

    def settled(self, epsilon: float, crossing: Mask) -> Sum:
        """∫(p − e^ε q)₊ over the cells that lie wholly above the level."""
        scale = math.exp(min(epsilon, 700.0))
        above = (self.low >= epsilon) & ~crossing
        excess = float(np.sum(np.maximum(self.first[above] - scale * self.second[above], 0.0)))
        scaled = np.minimum(scale * self.second_error[above], self.first[above] + self.first_error[above])
        return Sum(excess, excess, 0.0, float(np.sum(self.first_error[above] + scaled)))


def directed(cells: Cells, sign: float) -> Cells:
    """The cells as seen from D (+1) or from D' (−1)."""
    if sign > 0.0:
        return cells
    return replace(
        cells, first=cells.second, second=cells.first, ratio=-cells.ratio, low=-cells.high, high=-cells.low,
        first_error=cells.second_error, second_error=cells.first_error,
    )  # fmt: skip


def hockey_stick(cells: Cells, epsilon: float) -> Sum:
    """∫(p − e^ε q)₊ over these cells. p − e^ε q is written −p·expm1(ε − log p/q), which keeps its digits."""
    if len(cells) == 0:
        return Sum()
    with np.errstate(over="ignore", invalid="ignore"):
        excess = np.where(cells.first > 0.0, -cells.first * np.expm1(epsilon - cells.ratio), -math.inf)
        lost = math.exp(min(epsilon, 700.0)) * cells.second
        excess = np.where(np.isnan(excess) | ~np.isfinite(excess), np.where(cells.second > 0.0, -lost, 0.0), excess)
    whole = excess.sum(axis=1)
    positive_cells = whole > 0.0
    mass = cells.first.sum(axis=1)
    scaled = np.minimum(math.exp(min(epsilon, 700.0)) * cells.second_error, mass + cells.first_error)
    # a cell that is thrown away may still hide what its error allows
    uncertain = positive_cells | (cells.high > epsilon)
    error = float(np.sum((cells.first_error + scaled)[uncertain]))
    above, below = np.maximum(excess, 0.0).sum(axis=1), np.maximum(-excess, 0.0).sum(axis=1)
    # what merging a cell hides is the lesser of its parts; the nodes show it, up to what lies between them
    hidden = np.minimum(_gap(cells, epsilon), 2.0 * np.minimum(above, below) + 0.02 * _gap(cells, epsilon))
    return Sum(float(whole[positive_cells].sum()), float(above.sum()), float(hidden.sum()), error)


def _gap(cells: Cells, epsilon: float) -> Array:
    """How much a cell's own positive part can exceed that of its masses: nothing unless the level passes through it."""
    with np.errstate(over="ignore", invalid="ignore"):
        above = cells.first.sum(axis=1) * -np.expm1(np.minimum(epsilon - cells.high, 0.0))
        scaled = math.exp(min(epsilon, 700.0)) * cells.second.sum(axis=1)
        below = scaled * -np.expm1(np.minimum(cells.low - epsilon, 0.0))
    crossing = (cells.low < epsilon) & (cells.high > epsilon)
    return np.where(crossing, np.minimum(np.nan_to_num(above), np.nan_to_num(below)), 0.0)


def refined(normalised: Normalised, cells: Cells, epsilon: float, *, sign: float, tolerance: float) -> Sum:
    """Halve the cells the level ε passes through until they matter no more."""
    budget = _REFINEMENT[normalised.dimension]
    total = Sum()
    for _ in range(60):
        seen = directed(cells, sign)
        crossing = (seen.low < epsilon) & (seen.high > epsilon) & (_gap(seen, epsilon) > 0.0)
        total = total.plus(hockey_stick(seen.take(~crossing), epsilon))
        cells = cells.take(crossing)
        gaps = _gap(directed(cells, sign), epsilon)
        budget -= 2 * cells.first.size
        if len(cells) == 0 or budget < 0 or gaps.sum() < tolerance / 4.0 or not np.any(splittable(cells)):
            break
        small = (gaps < tolerance / (8.0 * len(cells))) | ~splittable(cells)
        total = total.plus(hockey_stick(directed(cells.take(small), sign), epsilon))
        cells = normalised.split(cells.take(~small))
    return total.plus(hockey_stick(directed(cells, sign), epsilon))


def neyman_pearson(cells: Cells) -> tuple[Array, Array]:
    """Type I errors under the first law and the least type II errors under the second, at the corners of the curve."""
    first, second, ratio = cells.first.ravel(), cells.second.ravel(), cells.ratio.ravel()
    known = ~np.isnan(ratio) & ((first > 0.0) | (second > 0.0))
    order = np.argsort(ratio[known], kind="stable")
    alpha = np.concatenate([[0.0], np.cumsum(first[known][order])])
    beta = np.concatenate([[1.0], 1.0 - np.cumsum(second[known][order])])
    alpha, beta = np.clip(alpha / alpha[-1], 0.0, 1.0), np.clip(beta, 0.0, 1.0)
    beta[-1] = 0.0
    last = np.append(np.diff(alpha) > 0.0, True)  # of several points at one α the last is the lowest
    return alpha[last], beta[last]


# ── the largest log-ratio ──

_BELIEVED = 1e-7
"""Log-ratios with more rounding than this are not used: far out, two huge logarithms cancel."""

_CLIMBS = 10
"""How many of the highest places are climbed."""

_NEGLIGIBLE = 1e-12
"""Mass on which the other law may seem to vanish without being believed to: it may only have underflowed."""


class Extreme(NamedTuple):
    """A supremum: what was surely seen, the best estimate, and what it may be at most."""

    low: float
    value: float
    high: float


def of_atoms(cells: Cells, sign: float) -> Extreme:
    """The largest signed log-ratio over atoms; one that the first law does not have is at −∞ and never the largest.

    Masses are not asked: an atom of probability e^{−2000} is rare and counts all the same.
    """
    top = float(np.max(sign * cells.ratio))
    slack = 2.0**-46 * (1.0 + abs(top)) if top < math.inf else 0.0
    return Extreme(top - slack, top, top + slack)


def of_densities(pair: Pair, cells: Cells, sign: float, *, shift: float, slack: float) -> Extreme:
    """sup of sign·(log p/q); ``shift`` is log(Z_p/Z_q), ``slack`` the relative errors of both normalisers."""
    law = cells.first if sign > 0.0 else cells.second
    if law[sign * cells.ratio == math.inf].sum() > _NEGLIGIBLE:  # real mass where the other law has none
        return Extreme(math.inf, math.inf, math.inf)
    grid = pair.tensor([side.probes(64 if len(pair.sides) == 1 else 4) for side in pair.sides])
    values = _ratios(pair, grid, sign, shift)
    middles = pair.at(cells.corner + cells.width / 2.0)[0]  # of every cell: dense where the mass is
    points = np.concatenate([grid, middles, *([_evenly(pair)] if len(pair.sides) == 1 else [])])
    seen = np.concatenate([values, _ratios(pair, points[len(grid) :], sign, shift)])
    climb = _climb_on_a_line if len(pair.sides) == 1 else _climb_in_the_plane
    best = max(float(np.max(seen)), climb(pair, points, seen, sign, shift))
    # beyond the outermost probes: nothing, a geometric remainder, or ∞
    ends = [(axis, side, lower) for axis, side in enumerate(pair.sides) for lower in (True, False)]
    missing = max(_one_end(_decades(side, grid[:, axis], lower), values) for axis, side, lower in ends)
    error = slack + 1e-12 * (1.0 + abs(best))
    if missing == math.inf:
        return Extreme(best - error, math.inf, math.inf)
    return Extreme(best - error, best + missing, best + 2.0 * missing + error)


def _ratios(pair: Pair, points: Array, sign: float, shift: float) -> Array:
    """Signed log-ratios less their rounding; −∞ where they are not to be believed."""
    first, second = pair.scout(points)
    with np.errstate(invalid="ignore"):
        ratio = sign * (first - second - shift)
        rounding = ROUNDING * (np.abs(first) + np.abs(second))
    believed = np.isfinite(ratio) & (rounding < _BELIEVED)
    return np.where(believed, ratio - rounding, -math.inf)


def _evenly(pair: Pair) -> Array:
    """Points at even distances over a finite side, or fifty scales around the centre of an infinite one."""
    side = pair.sides[0]
    lo = side.lo if side.lo > -math.inf else (side.centre if side.hi == math.inf else side.hi) - 50.0 * side.scale
    hi = side.hi if side.hi < math.inf else (side.centre if side.lo == -math.inf else side.lo) + 50.0 * side.scale
    return np.linspace(lo, hi, 2003)[1:-1, None]


def _climb_on_a_line(pair: Pair, points: Array, values: Array, sign: float, shift: float) -> float:
    """The best of the highest local maxima, each sought between its neighbours."""
    order = np.argsort(points[:, 0], kind="stable")
    x, height = points[order, 0], values[order]
    left, inner, right = height[:-2], height[1:-1], height[2:]
    # of a plateau only the edges: there are better places to climb
    rises = (inner > left + 1e-10) | (inner > right + 1e-10)
    peaks = 1 + np.flatnonzero((inner >= left) & (inner >= right) & rises & np.isfinite(inner))
    best = -math.inf
    for peak in peaks[np.argsort(-height[peaks], kind="stable")][:_CLIMBS]:
        found = optimize.minimize_scalar(
            lambda z: -max(float(_ratios(pair, np.array([[z]]), sign, shift)[0]), -1e300),
            bounds=(x[peak - 1], x[peak + 1]), method="bounded", options={"xatol": 1e-12 * (1.0 + abs(x[peak]))},
        )  # fmt: skip
        best = max(best, -float(found.fun))
    return best


def _climb_in_the_plane(pair: Pair, points: Array, values: Array, sign: float, shift: float) -> float:
    """The best height reached from the highest points seen."""

    def height(point: Array) -> float:
        if not all(side.lo < x < side.hi for side, x in zip(pair.sides, point, strict=True)):
            return math.inf
        value = float(_ratios(pair, point[None, :], sign, shift)[0])
        return -value if value > -math.inf else 1e300

    best = -math.inf
    for start in points[np.argsort(-values, kind="stable")[: 4 * _CLIMBS : 4]]:  # not all of them from one place
        simplex = np.vstack([start, start + np.diag(np.maximum(np.abs(start) * 0.05, 1e-3))])
        options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 300, "initial_simplex": simplex}
        with np.errstate(all="ignore"):
            found = optimize.minimize(height, start, method="Nelder-Mead", options=options)
        best = max(best, -min(float(found.fun), height(start)))
    return best


def _decades(side: Side, x: Array, lower: bool) -> Array:
    """How many powers of ten a probe has gone towards one end; the more, the closer."""
    lo, hi, centre, scale = side.lo, side.hi, side.centre, side.scale
    with np.errstate(divide="ignore", invalid="ignore"):
        if lower and lo > -math.inf:
            return -np.log10((x - lo) / (hi - lo if hi < math.inf else scale))
        if not lower and hi < math.inf:
            return -np.log10((hi - x) / (hi - lo if lo > -math.inf else scale))
        base = centre if lo == -math.inf and hi == math.inf else (lo if not lower else hi)
        return np.log10((base - x if lower else x - base) / scale)


def _one_end(decades: Array, values: Array) -> float:
    """Compare the largest value up to each of the last decades that are believed."""
    known = np.isfinite(values) & np.isfinite(decades)
    if not np.any(known):
        return 0.0
    last = math.floor(float(np.max(decades[known])) * 4.0) / 4.0
    tops = []
    for back in (3.0, 2.0, 1.0, 0.0):
        inside = known & (decades <= last - back + 1e-9)
        if not np.any(inside):
            return 0.0
        tops.append(float(np.max(values[inside])))
    steps = np.diff(tops)
    if steps[-1] <= 1e-9:
        return 0.0
    shrinks = steps[-1] / steps[-2] if steps[-2] > 0.0 else math.inf
    if shrinks > 0.6:
        return math.inf
    return float(steps[-1] * shrinks / (1.0 - shrinks))


# ── Rényi divergences ──


def divergence(first: Array, second: Array, order: float) -> float:
    """D_λ of two vectors of masses."""
    kept = first > 0.0
    if np.any(second[kept] <= 0.0):
        # masses too small to be told from nothing are left out: less is shown, never more
        if first[kept & (second <= 0.0)].sum() > 1e-12:
            return math.inf
        kept &= second > 0.0
    terms = order * np.log(first[kept]) + (1.0 - order) * np.log(second[kept])
    return float(special.logsumexp(terms)) / (order - 1.0)


def tilted_divergence(normalised: Normalised, order: float, sign: float) -> tuple[float, float, float]:
    """D_λ by a quadrature of its own: p^λ q^{1−λ} has its mass elsewhere than p and q."""
    pair = normalised.pair
    first, second = (pair.first, pair.second) if sign > 0.0 else (pair.second, pair.first)
    log_first, log_second = normalised.log_totals if sign > 0.0 else normalised.log_totals[::-1]

    def tilted(points: Array) -> Array:
        a, b = np.asarray(first(points), dtype=float), np.asarray(second(points), dtype=float)
        return np.where(a == -math.inf, -math.inf, order * a + (1.0 - order) * np.where(a == -math.inf, 0.0, b))

    try:
        own = Pair(tilted, tilted, sides_of([(side.lo, side.hi) for side in pair.sides])).located()
        tolerance = 1e-11 if normalised.dimension == 1 else 1e-7
        cells, integrator = integrate(own, tolerance=tolerance, variation=math.inf, evaluations=200_000)
    except WrongCall:  # +∞ where q vanishes and p does not
        return 0.0, math.inf, math.inf
    total, error = float(cells.first.sum()), float(cells.first_error.sum())
    constant = integrator.shift[0] - order * log_first - (1.0 - order) * log_second
    slack = order / (order - 1.0) * sum(normalised.errors) + 1e-13
    low = (math.log(max(total - error, 1e-300)) + constant) / (order - 1.0) - slack
    if error > 1e-4 * total:
        return low, math.inf, math.inf
    value = (math.log(total) + constant) / (order - 1.0)
    return low, value, (math.log(total + error) + constant) / (order - 1.0) + slack
