"""Two densities integrated together over a box in one or two dimensions, cell by cell, with an error bound.

Each cell carries the Gauss–Kronrod rule of 7 and 15 points (Piessens et al., QUADPACK, 1983; the constants are
``qk15``'s), in two dimensions its tensor product. The error of a cell is the plain difference of the two rules, which
overstates that of the better one by orders of magnitude for anything smooth. Cells are halved until the errors, and
what the two densities' ratio varies over a cell, are small.

Everything is computed from logarithms, so densities may be unnormalised and as small as they like.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from onedraw.arrays import Array, Integers, Mask
from onedraw.audit.densities import Pair
from onedraw.errors import WrongCall

_QK15 = np.array([
    # node on [0, 1] of [−1, 1], weight of Kronrod's rule, weight of Gauss's
    (0.991455371120812639206854697526329, 0.022935322010529224963732008058970, 0.0),
    (0.949107912342758524526189684047851, 0.063092092629978553290700663189204, 0.129484966168869693270611432679082),
    (0.864864423359769072789712788640926, 0.104790010322250183839876322541518, 0.0),
    (0.741531185599394439863864773280788, 0.140653259715525918745189590510238, 0.279705391489276667901467771423780),
    (0.586087235467691130294144691258590, 0.169004726639267902826583426598550, 0.0),
    (0.405845151377397166906606412076961, 0.190350578064785409913256402421014, 0.381830050505118944950369775488975),
    (0.207784955007898467600689403773245, 0.204432940075298892414161999234649, 0.0),
    (0.0, 0.209482141084727828012999174891714, 0.417959183673469387755102040816327),
])  # fmt: skip
_MIRRORED = np.concatenate([_QK15[:-1] * [-1.0, 1.0, 1.0], _QK15[::-1]])

# On [0, 1]
NODES, KRONROD, GAUSS = (1.0 + _MIRRORED[:, 0]) / 2.0, _MIRRORED[:, 1] / 2.0, _MIRRORED[:, 2] / 2.0

_RULES: dict[int, tuple[Array, Array, list[Array]]] = {
    1: (KRONROD, GAUSS, [GAUSS]),
    2: (
        np.outer(KRONROD, KRONROD).ravel(), np.outer(GAUSS, GAUSS).ravel(),
        [np.outer(GAUSS, KRONROD).ravel(), np.outer(KRONROD, GAUSS).ravel()],
    ),
}  # fmt: skip
"""By dimension: weights of the better rule, of the coarser one, and of the mixed ones that say which axis errs."""

ROUNDING = 2.0**-46
"""Relative error granted to one evaluation of a log density, which may be a sum over many records."""

_ROUNDS = 200
_INITIAL = {1: 64, 2: 8}
"""Cells per axis to begin with."""


@dataclass(frozen=True, eq=False)
class Cells:
    """n cells of m nodes: at each node the two masses and the log-ratio, of each cell the errors and the ratio's range.

    Unnormalised until ``Partition`` divides by the totals; ``low`` and ``high`` reach a little beyond the nodes.
    """

    corner: Array
    width: Array
    first: Array
    second: Array
    ratio: Array
    low: Array
    high: Array
    first_error: Array
    second_error: Array
    axis: Integers

    def __len__(self) -> int:
        return len(self.low)

    def take(self, which: Array | Mask) -> Cells:
        return Cells(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Integrator:
    """Evaluates cells of a pair of densities: constant shifts keep exp from overflowing."""

    pair: Pair
    shift: tuple[float, float]

    def start(self) -> Cells:
        number = _INITIAL[len(self.pair.sides)] + 1
        edges = [np.linspace(*side.span, number) for side in self.pair.sides]
        corner = self.pair.tensor([edge[:-1] for edge in edges])
        width = np.repeat(np.array([[edge[1] - edge[0] for edge in edges]]), len(corner), axis=0)
        return self.evaluate(corner, width)

    def evaluate(self, corner: Array, width: Array) -> Cells:
        count, dimension = corner.shape
        unit = self.pair.tensor([NODES] * dimension)
        t = (corner[:, None, :] + width[:, None, :] * unit[None, :, :]).reshape(-1, dimension)
        points, jacobian = self.pair.at(t)
        logs = self.pair.values(points)
        volume = np.log(np.prod(width, axis=1))[:, None]
        shape = (count, len(unit))
        density = [np.exp((logs[i] + jacobian).reshape(shape) + volume - self.shift[i]) for i in (0, 1)]
        with np.errstate(invalid="ignore"):
            ratio = (logs[0] - self.shift[0] - logs[1] + self.shift[1]).reshape(shape)
        best, coarse, partial = _RULES[dimension]
        errors = [np.abs(d @ best - d @ coarse) + 2.0**-50 * (d @ best) for d in density]
        if dimension == 1:
            ends = [_end_errors(d, corner[:, 0], width[:, 0], self.pair.sides[0].span) for d in density]
            errors = [np.maximum(error, end) for error, end in zip(errors, ends, strict=True)]
        low, high = _range(ratio, ROUNDING * (np.abs(logs[0]) + np.abs(logs[1])).reshape(shape))
        return Cells(
            corner, width, density[0] * best, density[1] * best, ratio, low, high, errors[0], errors[1],
            _worse_axis(density[0] + density[1], ratio, best, partial),
        )  # fmt: skip

    def split(self, cells: Cells, *, totals: tuple[float, float] = (1.0, 1.0)) -> Cells:
        """Each cell halved along the axis where it errs more; ``totals`` is what its masses were divided by.

        By accident the two rules may agree on a kink. So a half also carries half of what the two halves together
        differ from the whole they came from.
        """
        rows = np.arange(len(cells))
        width = cells.width.copy()
        width[rows, cells.axis] /= 2.0
        upper = cells.corner.copy()
        upper[rows, cells.axis] += width[rows, cells.axis]
        halves = self.evaluate(np.concatenate([cells.corner, upper]), np.concatenate([width, width]))

        def error(own: Array, parts: Array, wholes: Array) -> Array:
            masses, count = parts.sum(axis=1), len(wholes)
            surprise = np.abs(masses[:count] + masses[count:] - wholes.sum(axis=1)) / 2.0
            return np.asarray(np.maximum(own, np.tile(surprise, 2)))

        first = error(halves.first_error, halves.first, cells.first * totals[0])
        second = error(halves.second_error, halves.second, cells.second * totals[1])
        return replace(halves, first_error=first, second_error=second)


@dataclass(frozen=True, eq=False)
class Normalised:
    """An integrator that knows the two totals and their relative errors: what is needed to look closer at any cell."""

    pair: Pair
    integrator: Integrator
    totals: tuple[float, float]
    errors: tuple[float, float]

    @property
    def dimension(self) -> int:
        return len(self.pair.sides)

    @property
    def log_totals(self) -> tuple[float, float]:
        (first, second), shift = self.totals, self.integrator.shift
        return math.log(first) + shift[0], math.log(second) + shift[1]

    def normalised(self, cells: Cells) -> Cells:
        first, second = self.totals
        shift = math.log(first) - math.log(second)
        return replace(
            cells, first=cells.first / first, second=cells.second / second, ratio=cells.ratio - shift,
            low=cells.low - shift, high=cells.high - shift, first_error=cells.first_error / first,
            second_error=cells.second_error / second,
        )  # fmt: skip

    def split(self, cells: Cells) -> Cells:
        return self.normalised(self.integrator.split(cells, totals=self.totals))


def splittable(cells: Cells) -> Mask:
    """Whether the halves of a cell are still told apart by floating point."""
    rows = np.arange(len(cells))
    corner, width = cells.corner[rows, cells.axis], cells.width[rows, cells.axis]
    return np.asarray(width > 2.0**-44 * np.maximum(np.abs(corner), 2.0**-900))


def integrate(pair: Pair, *, tolerance: float, variation: float, evaluations: int) -> tuple[Cells, Integrator]:
    """Cells with errors of about ``tolerance`` of the mass in all, over which δ varies by at most ``variation`` each.

    Stops at ``evaluations`` of the densities; what is left is in the errors of the cells.
    """
    integrator = Integrator(pair, _shifts(pair))
    active = integrator.start()
    settled: list[Cells] = []
    masses = np.zeros(2)  # of the settled cells
    spent = active.first.size
    for _ in range(_ROUNDS):
        totals = np.maximum(masses + np.array([active.first.sum(), active.second.sum()]), 1e-300)
        first, second = active.first.sum(axis=1) / totals[0], active.second.sum(axis=1) / totals[1]
        error = active.first_error / totals[0] + active.second_error / totals[1]
        with np.errstate(invalid="ignore"):  # a cell on which one law vanishes has no range, and δ no kink
            varies = np.nan_to_num(-np.expm1(-np.maximum(active.high - active.low, 0.0)))
        inexact = error > np.maximum(tolerance / 400.0, 2.0**-46 * (first + second))
        wanted = (inexact | (np.maximum(first, second) * varies > variation)) & splittable(active)
        spent += 2 * int(wanted.sum()) * active.first.shape[1]
        if not np.any(wanted) or spent > evaluations:
            break
        done = active.take(~wanted)
        masses += [done.first.sum(), done.second.sum()]
        settled.append(done)
        active = integrator.split(active.take(wanted))
    parts = [*settled, active]
    names = Cells.__dataclass_fields__
    return Cells(*(np.concatenate([getattr(part, name) for part in parts]) for name in names)), integrator


def _shifts(pair: Pair) -> tuple[float, float]:
    """The largest values seen, with the volume element: what exp must not overflow at."""
    number = 403 if len(pair.sides) == 1 else 83
    t = pair.tensor([np.linspace(*side.span, number)[1:-1] for side in pair.sides])
    points, jacobian = pair.at(t)
    tops = [float(np.max(log + jacobian)) for log in pair.values(points)]
    if not all(map(math.isfinite, tops)):
        raise WrongCall("a log density is −∞ wherever it was looked at: nothing to integrate. Is the domain right?")
    return tops[0], tops[1]


def _end_errors(density: Array, corner: Array, width: Array, span: tuple[float, float]) -> Array:
    """The error at the ends of a side, where a density may be infinite: both rules miss most of such a mass alike.

    With the power law through the two nodes nearest the end the mass is g·u/ν·(h/u)^ν, u being the distance from the
    end; ν ≤ 0 is a mass without bound. At ν ≥ 1 the density is finite and the rules can be trusted.
    """
    found = np.zeros(len(density))
    for place, node, following in ((corner <= span[0], 0, 1), (corner + width >= span[1], -1, -2)):
        for cell in np.flatnonzero(place):
            near, next_one = float(density[cell, node]), float(density[cell, following])
            if not (near > 0.0 and next_one > 0.0):
                continue
            exponent = 1.0 + math.log(near / next_one) / math.log(NODES[0] / NODES[1])
            if exponent < 0.99:
                whole = near * NODES[0] ** (1.0 - exponent) / exponent if exponent > 0.0 else math.inf
                found[cell] = abs(whole - float(density[cell] @ KRONROD))
    return found


def _worse_axis(density: Array, ratio: Array, best: Array, partial: list[Array]) -> Integers:
    """The axis along which the rules disagree most, or, where they agree, along which the ratio varies most."""
    if len(partial) == 1:
        return np.zeros(len(density), dtype=np.int64)
    total = density @ best
    differences = np.stack([np.abs(total - density @ weights) for weights in partial])
    grid = np.where(np.isfinite(ratio), ratio, 0.0).reshape(-1, len(NODES), len(NODES))
    variation = np.stack([np.ptp(grid, axis=axis).max(axis=1) for axis in (1, 2)])
    errs = differences.max(axis=0) > 1e-11 * total
    chosen = np.where(errs, np.argmax(differences, axis=0), np.argmax(variation, axis=0))
    return np.asarray(chosen, dtype=np.int64)


def _range(ratio: Array, rounding: Array) -> tuple[Array, Array]:
    """The range of the log-ratio over a cell: that of its nodes, and a fifth more for what lies between them.

    Where a density is zero at some nodes only, the range is unbounded on that side; where both are, there is nothing.
    """
    known = ~np.isnan(ratio)
    low = np.min(np.where(known, ratio, math.inf), axis=1)
    high = np.max(np.where(known, ratio, -math.inf), axis=1)
    slack = np.max(np.where(np.isfinite(rounding), rounding, 0.0), axis=1)
    finite = np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        spread = np.where(finite, high - low, 0.0)
    empty = ~known.any(axis=1)
    return np.where(empty, 0.0, low - 0.2 * spread - slack), np.where(empty, 0.0, high + 0.2 * spread + slack)
