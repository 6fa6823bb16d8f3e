"""Two densities integrated together over a box in one or two dimensions, cell by cell, with an error bound.

Each cell carries the Gauss–Kronrod rule of 7 and 15 points (Piessens et al., QUADPACK, 1983; the constants are
``qk15``'s), in two dimensions its tensor product. The error of a cell is the plain difference of the two rules, which
overstates that of the better one by orders of magnitude for anything smooth. Cells are halved until the errors, and
what the two densities' ratio varies over a cell, are small.

Everything is computed from logarithms, so densities may be unnormalised and as small as they like.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from onedraw.arrays import Array, Integers, Mask
from onedraw.audit.densities import Pair, tensor
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
    """n cells of m nodes: at each node two masses, (n, 2, m), and the log-ratio; of each cell two errors and a range.

    ``low`` and ``high`` of the ratio reach a little beyond its nodes.
    """

    corner: Array
    width: Array
    nodes: Array
    ratio: Array
    low: Array
    high: Array
    errors: Array
    axis: Integers

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def masses(self) -> Array:
        """(n, 2): all that matters of a cell that a level of the ratio does not pass through."""
        return np.asarray(self.nodes.sum(axis=2))

    def take(self, which: Array | Mask) -> Cells:
        return Cells(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Cells:
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))

    def reversed(self) -> Cells:
        """The same, the second law first."""
        nodes, errors = self.nodes[:, ::-1], self.errors[:, ::-1]
        return replace(self, nodes=nodes, ratio=-self.ratio, low=-self.high, high=-self.low, errors=errors)


@dataclass(frozen=True, eq=False)
class Integrator:
    """Evaluates cells of a pair of densities, each over e^shift; ``slack``: relative errors of what these stand for."""

    pair: Pair
    shift: Array
    slack: float = 0.0

    @property
    def dimension(self) -> int:
        return len(self.pair.sides)

    def reversed(self) -> Integrator:
        return replace(self, pair=self.pair.reversed(), shift=self.shift[::-1])

    def start(self) -> Cells:
        edges = [np.linspace(*side.span, _INITIAL[self.dimension] + 1) for side in self.pair.sides]
        corner = tensor([edge[:-1] for edge in edges])
        width = np.repeat(np.array([[edge[1] - edge[0] for edge in edges]]), len(corner), axis=0)
        return self.evaluate(corner, width)

    def evaluate(self, corner: Array, width: Array) -> Cells:
        best, coarse, partial = _RULES[self.dimension]
        t = corner[:, None, :] + width[:, None, :] * tensor([NODES] * self.dimension)
        points, jacobian = self.pair.at(t.reshape(-1, self.dimension))
        logs = np.stack(self.pair.values(points)).reshape(2, len(corner), -1).swapaxes(0, 1)
        relative = logs - self.shift[:, None]
        volume = np.log(np.prod(width, axis=1))[:, None] + jacobian.reshape(len(corner), -1)
        density = np.exp(relative + volume[:, None, :])
        with np.errstate(invalid="ignore"):
            ratio = relative[:, 0] - relative[:, 1]
        errors = np.abs(density @ best - density @ coarse) + 2.0**-50 * (density @ best)
        if self.dimension == 1:
            errors = np.maximum(errors, _end_errors(density, corner[:, 0], width[:, 0], self.pair.sides[0].span))
        low, high = _range(ratio, ROUNDING * np.abs(logs).sum(axis=1))
        axis = _worse_axis(density.sum(axis=1), ratio, best, partial)
        return Cells(corner, width, density * best, ratio, low, high, errors, axis)

    def split(self, cells: Cells) -> Cells:
        """Each cell halved along the axis where it errs more.

        By accident the two rules may agree on a kink. So a half also carries half of what the two halves together
        differ from the whole they came from.
        """
        rows = np.arange(len(cells))
        width = cells.width.copy()
        width[rows, cells.axis] /= 2.0
        upper = cells.corner.copy()
        upper[rows, cells.axis] += width[rows, cells.axis]
        halves = self.evaluate(np.concatenate([cells.corner, upper]), np.concatenate([width, width]))
        lower, higher = np.split(halves.masses, 2)
        surprise = np.abs(lower + higher - cells.masses) / 2.0
        return replace(halves, errors=np.maximum(halves.errors, np.tile(surprise, (2, 1))))

    def normalised(self, cells: Cells) -> tuple[Integrator, Cells]:
        """The same with a total of 1 for both laws."""
        totals = cells.masses.sum(axis=0)
        errors, logs = cells.errors / totals, np.log(totals)
        moved = logs[0] - logs[1]
        return replace(self, shift=self.shift + logs, slack=float(errors.sum())), replace(
            cells, nodes=cells.nodes / totals[:, None], ratio=cells.ratio - moved, low=cells.low - moved,
            high=cells.high - moved, errors=errors,
        )  # fmt: skip


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
    mass = np.zeros(2)  # of the settled cells
    spent = active.nodes.size // 2
    for _ in range(_ROUNDS):
        totals = np.maximum(mass + active.masses.sum(axis=0), 1e-300)
        shares, error = active.masses / totals, (active.errors / totals).sum(axis=1)
        with np.errstate(invalid="ignore"):  # a cell on which one law vanishes has no range, and δ no kink
            varies = np.nan_to_num(-np.expm1(-np.maximum(active.high - active.low, 0.0)))
        inexact = error > np.maximum(tolerance / 400.0, 2.0**-46 * shares.sum(axis=1))
        wanted = (inexact | (shares.max(axis=1) * varies > variation)) & splittable(active)
        spent += int(wanted.sum()) * active.nodes[0].size
        if not np.any(wanted) or spent > evaluations:
            break
        done = active.take(~wanted)
        mass += done.masses.sum(axis=0)
        settled.append(done)
        active = integrator.split(active.take(wanted))
    return Cells.joined([*settled, active]), integrator


def _shifts(pair: Pair) -> Array:
    """The largest values seen, with the volume element: what exp must not overflow at."""
    number = 403 if len(pair.sides) == 1 else 83
    points, jacobian = pair.at(tensor([np.linspace(*side.span, number)[1:-1] for side in pair.sides]))
    tops = np.max(np.stack(pair.values(points)) + jacobian, axis=1)
    if not np.all(np.isfinite(tops)):
        raise WrongCall("a log density is −∞ wherever it was looked at: nothing to integrate. Is the domain right?")
    return np.asarray(tops)


def _end_errors(density: Array, corner: Array, width: Array, span: tuple[float, float]) -> Array:
    """The error at the ends of a side, where a density may be infinite: both rules miss most of such a mass alike.

    With the power law through the two nodes nearest the end the mass is g·u/ν·(h/u)^ν, u being the distance from the
    end; ν ≤ 0 is a mass without bound. At ν ≥ 1 the density is finite and the rules can be trusted.
    """
    found = np.zeros(density.shape[:2])
    for place, node, following in ((corner <= span[0], 0, 1), (corner + width >= span[1], -1, -2)):
        if not place.any():
            continue
        near, next_one = density[place, :, node], density[place, :, following]
        with np.errstate(all="ignore"):
            exponent = 1.0 + np.log(near / next_one) / math.log(NODES[0] / NODES[1])
            whole = np.where(exponent > 0.0, near * NODES[0] ** (1.0 - exponent) / exponent, math.inf)
        infinite = (near > 0.0) & (next_one > 0.0) & (exponent < 0.99)
        found[place] = np.where(infinite, np.abs(whole - density[place] @ KRONROD), 0.0)
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
