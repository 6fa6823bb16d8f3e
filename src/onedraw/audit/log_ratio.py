"""The largest log-ratio of two densities: over atoms a maximum, over a box a search that also looks towards its ends.

The low end of the answer is a value that was seen, less its rounding and the error of the normalisers. The high end
adds what the last magnitudes towards an end of the domain suggest is still missing; where each further magnitude adds
as much as the one before, the supremum is taken to be infinite.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from onedraw.audit.densities import Pair, Side
from onedraw.audit.quadrature import ROUNDING, Cells

Array = NDArray[np.float64]

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
