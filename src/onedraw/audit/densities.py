"""Two unnormalised log densities on one box: its sides, mapped to finite ones, and where the mass lies.

An infinite side (lo, ∞) or (−∞, ∞) is seen through t/(1 − t) or t/(1 − t²), around a place and at a scale that are
found first: the best of a grid over all magnitudes, then uphill. Logarithms fall smoothly however narrow a density is,
so uphill leads to the mode from far away; of several modes far apart it leads to one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from onedraw.arrays import Array
from onedraw.errors import WrongCall

LogDensity = Callable[[Array], ArrayLike]


@dataclass(frozen=True)
class Side:
    """One side (lo, hi) of the box, seen from t ∈ (0, 1) or (−1, 1) around ``centre`` at ``scale``."""

    lo: float
    hi: float
    centre: float = 0.0
    scale: float = 1.0

    @property
    def open_ends(self) -> int:
        return int(self.lo == -math.inf) + int(self.hi == math.inf)

    @property
    def span(self) -> tuple[float, float]:
        return (-1.0, 1.0) if self.open_ends == 2 else (0.0, 1.0)

    def at(self, t: Array) -> tuple[Array, Array]:
        """x(t) and log dx/dt."""
        with np.errstate(divide="ignore"):
            if self.open_ends == 2:
                inside = (1.0 - t) * (1.0 + t)
                return self.centre + self.scale * t / inside, np.log(self.scale * (1.0 + t * t)) - 2.0 * np.log(inside)
            if self.open_ends == 1:
                distance, jacobian = self.scale * t / (1.0 - t), math.log(self.scale) - 2.0 * np.log1p(-t)
                return (self.lo + distance if self.hi == math.inf else self.hi - distance), jacobian
        width = self.hi - self.lo
        # from the nearer end, so that an end point at 0 keeps its digits
        return np.where(t < 0.5, self.lo + width * t, self.hi - width * (1.0 - t)), np.full_like(t, math.log(width))

    def probes(self, per_decade: int = 4, evenly: int = 20) -> Array:
        """Places t in all magnitudes towards both ends and the middle, and some at even distances."""
        near = np.geomspace(1e-10, 0.5, 10 * per_decade)
        shares = [near, 0.5 - near, 0.5 + near, 1.0 - near, np.linspace(0.0, 1.0, evenly)]
        t = self.span[0] + (self.span[1] - self.span[0]) * np.concatenate(shares)
        return np.unique(t[(t > self.span[0]) & (t < self.span[1])])


def sides_of(domain: Sequence[tuple[float, float]] | tuple[float, float]) -> tuple[Side, ...]:
    """The sides of a domain given as (lo, hi) pairs, or as one pair."""
    try:
        ends = np.asarray(domain, dtype=float)
        ends = ends.reshape(1, 2) if ends.ndim == 1 else ends
        if ends.ndim != 2 or ends.shape[1] != 2:
            raise ValueError
    except (TypeError, ValueError):
        raise WrongCall("a domain is a list of (lo, hi) pairs, one per coordinate; ends may be infinite") from None
    if not 1 <= len(ends) <= 2:
        raise WrongCall(
            f"exact profiles are computed in one or two dimensions, but the domain has {len(ends)}. "
            "In more dimensions use membership_attack or blackbox_lower_bound."
        )
    if not np.all(ends[:, 0] < ends[:, 1]):
        raise WrongCall("each side (lo, hi) of a domain has lo < hi")
    return tuple(Side(float(lo), float(hi)) for lo, hi in ends)


@dataclass(frozen=True)
class Pair:
    """Two unnormalised log densities on the same box."""

    first: LogDensity
    second: LogDensity
    sides: tuple[Side, ...]

    def at(self, t: Array) -> tuple[Array, Array]:
        """Points of the box, and the log volume element there, from (N, d) places in the sides' finite spans."""
        mapped = [side.at(t[:, axis]) for axis, side in enumerate(self.sides)]
        return np.stack([x for x, _ in mapped], axis=1), np.sum([jacobian for _, jacobian in mapped], axis=0)

    def scout(self, points: Array) -> tuple[Array, Array]:
        """The same far from where the mass is: what overflows to NaN or +∞ there is passed over, as −∞."""
        first, second = self.values(points, strict=False)
        return np.where(first < math.inf, first, -math.inf), np.where(second < math.inf, second, -math.inf)

    def values(self, points: Array, *, strict: bool = True) -> tuple[Array, Array]:
        """Both log densities at (N, d) points; −∞ is a density of zero, NaN and +∞ are refused."""
        with np.errstate(all="ignore"):
            found = [np.asarray(density(points), dtype=float) for density in (self.first, self.second)]
        for values in found:
            if values.shape != (len(points),):
                raise WrongCall(
                    f"a log density takes (N, d) points to N numbers: {points.shape} points gave an array of shape "
                    f"{values.shape}. Write it for many points at once, with one row each."
                )
            if strict and not np.all(values < math.inf):
                raise WrongCall(
                    "a log density is NaN or +∞ inside its domain, so it has no integral. Let it be −∞ where the density is "
                    "zero, infinite only at an end of the domain, and give a smaller domain if it overflows far out."
                )
        return found[0], found[1]

    def located(self) -> Pair:
        """The same, with infinite sides centred where the mass is."""
        modes = [_mode(self, which) for which in (0, 1)]
        sides = []
        for axis, side in enumerate(self.sides):
            first, second = (mode[axis] for mode in modes)
            widths = [_width(self, which, modes[which], axis) for which in (0, 1)] if side.open_ends else []
            if side.open_ends == 2:
                scale = max(*widths, abs(second - first) / 2.0)
                side = replace(side, centre=(first + second) / 2.0, scale=scale)
            elif side.open_ends == 1:
                end = side.lo if side.hi == math.inf else side.hi
                side = replace(side, scale=max(abs(first - end), abs(second - end), *widths))
            sides.append(side)
        return replace(self, sides=tuple(sides))

    def reversed(self) -> Pair:
        return replace(self, first=self.second, second=self.first)

    def climbed(self, height: Callable[[Array], Array], start: Array, *, step: float, **options: Any) -> Array:
        """The highest point found uphill from one inside the box, by Nelder and Mead; ``step`` is relative to it."""

        def depth(point: Array) -> float:
            inside = all(side.lo < x < side.hi for side, x in zip(self.sides, point, strict=True))
            return -max(float(height(point[None, :])[0]), -1e300) if inside else math.inf

        simplex = np.vstack([start, start + np.diag(np.maximum(np.abs(start) * step, 1e-3))])
        with np.errstate(all="ignore"):
            options = {**options, "initial_simplex": simplex}
            found = optimize.minimize(depth, start, method="Nelder-Mead", options=options)
        return np.asarray(found.x if found.fun <= depth(start) else start)


def tensor(axes: Sequence[Array]) -> Array:
    """All points with a coordinate from each axis."""
    return np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")], axis=1)


def _mode(pair: Pair, which: int) -> Array:
    """The highest point: the best of a coarse grid over all magnitudes, then uphill."""
    grid = pair.at(tensor([side.probes() for side in pair.sides]))[0]
    values = pair.scout(grid)[which]
    if not np.any(values > -math.inf):
        raise WrongCall(
            "a log density is −∞ or NaN wherever it was looked at: nothing to integrate. Is the domain right?"
        )
    best = grid[int(np.argmax(values))]
    return pair.climbed(lambda at: pair.scout(at)[which], best, step=0.1, xatol=1e-9, fatol=1e-6, maxiter=400)


def _width(pair: Pair, which: int, mode: Array, axis: int) -> float:
    """How far from the mode the log density has fallen by 1, the wider of both sides."""
    steps = np.geomspace(1e-9, 1e9, 145)
    top = float(pair.scout(mode[None, :])[which][0])
    side, widths = pair.sides[axis], []
    for places in (mode[axis] - steps, mode[axis] + steps):
        points = np.tile(mode, (len(steps), 1))
        points[:, axis] = np.where((places > side.lo) & (places < side.hi), places, mode[axis])
        widths += steps[pair.scout(points)[which] < top - 1.0][:1].tolist()
    return float(max(widths, default=1.0))
