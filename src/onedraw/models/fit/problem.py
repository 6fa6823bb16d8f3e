"""What a fit is about and what it publishes: everything public as one value, the same with encoded records, and the coordinates
that follow from what was published. All post-processing, the same for whoever holds it.

Five parts are published, each absent where its stage did not run: the columns' mean, their second moments about it, the mode with
its noise, the information and the variability at it. From the first two follow the coordinates in which the others are.

**Levels of categories that are set aside**: their published count may be 0, so the records may say nothing about them.

The mode solves H(θ̃ − θ) = −(Λθ̃ + score + noise). Let N be the directions that change the coefficients set aside and
no other, and Q a basis of the directions that change none of them: every direction is a sum of both. H·N is a sum over the
records of those levels alone, of which there are few or none; without it

    θ̃ − θ = N·(what is wrong about those levels) − Q(QᵀHQ)⁻¹Qᵀ(Λθ̃ + score + noise)

and the other coefficients see the second part only. So information and ridge count within Q: a level without records costs
the others nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from onedraw.arrays import Array, Mask
from onedraw.models.moments.measured import Layout, MomentColumns
from onedraw.models.row_model import Encoded, EncodedRecords
from onedraw.models.sums.exact_sums import SummedTarget, symmetric

from .losses import ClassLoss, FitLoss
from .sums import FitRows

# ── what is published ────────────────────────────────────────────────────────────────────────────────────────────────


PARTS = ("mean", "moments", "mode", "information", "variability")


@dataclass(frozen=True, eq=False)
class Published:
    """The numbers as they leave; matrices as lower triangles, row by row."""

    mode: Array
    mean: Array | None = None
    moments: Array | None = None
    information: Array | None = None
    variability: Array | None = None

    def to_dict(self) -> dict[str, list[float]]:
        found = {name: getattr(self, name) for name in PARTS}
        return {name: value.tolist() for name, value in found.items() if value is not None}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Published:
        return cls(**{name: np.asarray(value, dtype=np.float64) for name, value in stored.items()})


@dataclass(frozen=True, eq=False)
class Coordinates:
    """z = stretch·(W(v − m), 1) for rows, (y − centre)/unit for responses in [−1, 1]."""

    mean: Array
    root: Array
    stretch: float = 1.0
    centre: float = 0.0
    unit: float = 1.0


FLOOR = 0.4
"""Eigenvalues of the second moments are raised to this share of the spectral edge of their noise: at 0.05 noise directions are blown up."""

LEAST_RESIDUAL = 0.05
"""The residual variance is taken to be at least this share of the response's: noise in the moments may say 0 or less."""

UNMEASURED_UNIT = 0.25
"""The unit of responses where nothing was measured: a quarter of their half-range."""


@dataclass(frozen=True)
class Measuring:
    """How moments are read: the floor of their eigenvalues, the plan's r, and whether the response is among the columns."""

    floor: float
    row_bound: float
    response: bool

    def stretch(self, layout: Layout, size: float) -> float:
        """The plan's r is for rows of squared norm d + 1. Where the floor flattened directions, rows are shorter, and are stretched until
        a typical one is as far inside r as the plan meant: the same noise then matters less."""
        one, left = float(layout.intercept), min(max(size, 1.0), float(layout.columns))
        return math.sqrt(self.row_bound**2 / ((self.row_bound**2 - one) / layout.columns * left + one))


def coordinates(problem: Any, published: Published) -> Coordinates:
    """Centre, scaling and unit from what was published; the declared columns where nothing was. ``problem`` is that of a fit or of a
    draw in measured coordinates."""
    layout, how, columns = problem.layout, problem.measuring, problem.layout.columns
    mean = MomentColumns(layout, how.response).centre(published.mean)
    if published.moments is None:
        return Coordinates(mean[:columns], np.eye(columns), unit=UNMEASURED_UNIT if how.response else 1.0)
    second = symmetric(published.moments, columns + how.response) / problem.n
    # W = C^{−1/2}, the eigenvalues of C raised to the floor, since what noise alone could have made is not trusted; a row then has
    # a squared norm of this size on average, the number of columns less those the floor flattened
    values, axes = np.linalg.eigh(second[:columns, :columns])
    raised = np.maximum(values, how.floor)
    root, size = np.asarray((axes / np.sqrt(raised)) @ axes.T), float(np.sum(np.maximum(values, 0.0) / raised))
    stretch = how.stretch(layout, size)
    if not how.response:
        return Coordinates(mean, root, stretch)
    across = root @ second[:columns, columns]
    total = max(float(second[columns, columns]), how.floor)
    residual = max(total - float(across @ across), LEAST_RESIDUAL * total, how.floor**2)
    return Coordinates(mean[:columns], root, stretch, float(mean[columns]), math.sqrt(residual))


def positive(matrix: Array) -> Array:
    """The nearest positive semidefinite matrix, or matrices."""
    values, axes = np.linalg.eigh(matrix)
    return np.asarray((axes * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(axes, -1, -2))


# ── levels that are set aside ────────────────────────────────────────────────────────────────────────────────────────


SET_ASIDE = 3.0
"""Levels whose published count is at most this many deviations of its noise are set aside: there may be no record of them."""


@dataclass(frozen=True, eq=False)
class Aside:
    """What is set aside, in encoded coefficients (``moves`` as columns, ``sizes`` as rows: how far a coefficient vector went along
    each, 1 for the move itself) and in the mode's coordinates (``moved`` N, orthonormal ``kept`` Q)."""

    moves: Array
    sizes: Array
    moved: Array
    kept: Array

    @classmethod
    def of(cls, layout: Layout, counts: Array | None, noise: float, change: Array, blocks: int) -> Aside:
        """``counts`` are the published shares of the levels, of deviation ``noise``; ``change`` turns a mode into encoded
        coefficients, alike for each of ``blocks`` modes."""
        moves, sizes = np.zeros((2, 0, layout.width))
        for start, stop in layout.categories if counts is not None and layout.intercept else ():
            assert counts is not None
            # a 0/1 column is (x + 1)/2 of its encoded x, so a level's coefficient moves x's by ½ and the intercept by ½; that
            # of a first level, which has no column, moves all others
            levels = [([place], 0.0, counts[place], noise) for place in range(start, stop)]
            first = list(range(start, stop)), -1.0, 1.0 - counts[start:stop].sum(), noise * math.sqrt(stop - start)
            for places, intercept, share, spread in [*levels, first]:
                if share <= SET_ASIDE * spread:  # there may be no record of it
                    moves, sizes = (np.pad(part, ((0, 1), (0, 0))) for part in (moves, sizes))
                    moves[-1, places], moves[-1, -1] = 0.5, 0.5 * len(places) + intercept
                    sizes[-1, places] = 2.0 / len(places)
        moved = np.linalg.solve(change, moves.T)
        kept = np.linalg.qr((sizes @ change).T, mode="complete")[0][:, len(moves) :]
        moved, kept = (np.asarray(np.kron(np.eye(blocks), part), dtype=np.float64) for part in (moved, kept))
        return cls(moves.T, sizes, moved, kept)

    def implausible(self, coefficients: Array, largest: float) -> Array:
        """The part of encoded coefficients that went along a move by more than ``largest``."""
        vectors = coefficients.reshape(-1, len(self.moves))
        far = np.linalg.solve(self.sizes @ self.moves, self.sizes @ vectors.T)
        return np.asarray((self.moves @ np.where(np.abs(far) > largest, far, 0.0)).T.ravel())

    def spectrum(self, information: Array) -> tuple[Array, Array]:
        """Eigenvalues and axes of an information, or of many, within the directions that are kept."""
        values, axes = np.linalg.eigh(self.kept.T @ information @ self.kept)
        return values, np.asarray(self.kept @ axes)

    def within(self, information: Array) -> Array:
        """PᵀHP, P the projection onto what is kept along what is moved: the information of records that say nothing about
        the levels set aside."""
        both = np.linalg.inv(np.column_stack([self.kept, self.moved]))
        projection = self.kept @ both[: self.kept.shape[1]]
        return np.asarray(projection.T @ information @ projection)

    def touched(self, change: Array) -> Mask:
        """Which rows depend on what is set aside."""
        size = np.abs(change) @ np.abs(self.moved)
        return np.asarray((np.abs(change @ self.moved) > 1e-9 * np.maximum(size, 1e-300)).any(axis=1))


# ── the problem ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FitProblem:
    """All that is public before the records are read.

    ``numbers`` are those of `methods.perturbed_mode.numbers`, by name. ``response_scale`` brings responses that are numbers into
    [−1, 1]. ``prior``, if it counts, is a Gaussian on the coefficients of encoded rows.
    """

    n: int
    layout: Layout
    loss: FitLoss | ClassLoss
    numbers: Mapping[str, float]
    measuring: Measuring
    robust: bool
    response_scale: float
    prior: Any = None

    pure: ClassVar[bool] = True

    size: int = field(init=False, repr=False, compare=False)
    """Numbers in a mode."""
    moment_columns: MomentColumns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.loss.blocks * self.layout.width)
        object.__setattr__(self, "moment_columns", MomentColumns(self.layout, self.measuring.response))

    def encoded_map(self, where: Coordinates) -> tuple[Array, Array]:
        """(change, shift): change @ mode + shift are coefficients of encoded rows in the response's declared unit; the centre of
        measured responses is added to the intercept."""
        change = self.layout.encoded_coefficients(where.mean, where.root, where.stretch)
        if isinstance(self.loss, ClassLoss):
            change = np.asarray(np.kron(self.loss.contrasts, change), dtype=np.float64)
        shift = np.zeros(len(change))
        if self.loss.unit == "measured":
            change = where.unit * self.response_scale * change
            if self.layout.intercept:
                shift[-1] = where.centre * self.response_scale
        return change, shift

    def penalty(self, where: Coordinates) -> tuple[Array, Array]:
        """(Q, q): the quadratic ½θᵀQθ + qᵀθ that ridge and prior add in the mode's coordinates; Q ⪰ Λ."""
        ridge = self.numbers["ridge"] * np.eye(self.size)
        if self.prior is None:
            return ridge, np.zeros(self.size)
        change, shift = self.encoded_map(where)
        precision = np.asarray(self.prior.precision(len(change)))
        away = np.asarray(self.prior.location(len(change))) - shift
        return ridge + change.T @ (precision[:, None] * change), -change.T @ (precision * away)


@dataclass(frozen=True, eq=False, repr=False)
class FitTarget(SummedTarget):
    """A fit with its records."""

    problem: FitProblem
    encoded: Encoded | EncodedRecords

    def measured(self, where: Coordinates) -> Any:
        """The records in these coordinates, for as many sums as a fit takes."""
        public = (where.stretch, self.problem.numbers["row_bound"], np.array([where.centre, where.unit]))
        return self.records.read_as(FitRows(self.problem.layout), where.mean, where.root, *public)
