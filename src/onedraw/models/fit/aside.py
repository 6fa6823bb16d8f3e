"""Levels of categories that are set aside: their published count may be 0, so the records may say nothing about them.

The mode solves H(θ̃ − θ) = −(Λθ̃ + score + noise). Let N be the directions that change the coefficients set aside and
no other, and Q a basis of the directions that change none of them: every direction is a sum of both. H·N is a sum over the
records of those levels alone, of which there are few or none; without it

    θ̃ − θ = N·(what is wrong about those levels) − Q(QᵀHQ)⁻¹Qᵀ(Λθ̃ + score + noise)

and the other coefficients see the second part only. So information and ridge count within Q: a level without records costs
the others nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onedraw.models.moments.measured import Layout

from . import constants as constant

Array = NDArray[np.float64]


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
        found = [] if counts is None or not layout.intercept else list(_maybe_empty(layout, counts, noise))
        moves, sizes = (
            np.array(part).reshape(-1, layout.width) for part in (zip(*found, strict=True) if found else ([], []))
        )
        moved = np.linalg.solve(change, moves.T) if found else np.zeros((layout.width, 0))
        kept = np.linalg.qr((sizes @ change).T, mode="complete")[0][:, len(found) :] if found else np.eye(layout.width)
        moved, kept = (np.asarray(np.kron(np.eye(blocks), part), dtype=np.float64) for part in (moved, kept))
        return cls(moves.T, sizes, moved, kept)

    @property
    def empty(self) -> bool:
        return not self.moved.shape[1]

    def implausible(self, coefficients: Array, largest: float) -> Array:
        """The part of encoded coefficients that went along a move by more than ``largest``."""
        if self.empty:
            return np.zeros(len(coefficients))
        vectors = coefficients.reshape(-1, len(self.moves))
        far = np.linalg.solve(self.sizes @ self.moves, self.sizes @ vectors.T)
        return np.asarray((self.moves @ np.where(np.abs(far) > largest, far, 0.0)).T.ravel())

    def spectrum(self, information: Array) -> tuple[Array, Array]:
        """Eigenvalues and axes of an information, or of many, within the directions that are kept."""
        values, axes = np.linalg.eigh(self.kept.T @ information @ self.kept if not self.empty else information)
        return values, np.asarray(axes if self.empty else self.kept @ axes)

    def within(self, information: Array) -> Array:
        """PᵀHP, P the projection onto what is kept along what is moved: the information of records that say nothing about
        the levels set aside."""
        if self.empty:
            return information
        both = np.linalg.inv(np.column_stack([self.kept, self.moved]))
        projection = self.kept @ both[: self.kept.shape[1]]
        return np.asarray(projection.T @ information @ projection)

    def touched(self, change: Array) -> NDArray[np.bool_]:
        """Which rows depend on what is set aside."""
        size = np.abs(change) @ np.abs(self.moved)
        return np.asarray((np.abs(change @ self.moved) > 1e-9 * np.maximum(size, 1e-300)).any(axis=1))


def _maybe_empty(layout: Layout, counts: Array, noise: float) -> Iterator[tuple[Array, Array]]:
    """(move, size) of every level of which there may be no record. A 0/1 column is (x + 1)/2 of its encoded x, so a level's
    coefficient moves x's by ½ and the intercept by ½; that of a first level, which has no column, moves all others."""
    for start, stop in layout.categories:
        levels = [([place], 0.0, counts[place], noise) for place in range(start, stop)]
        first = list(range(start, stop)), -1.0, 1.0 - counts[start:stop].sum(), noise * math.sqrt(stop - start)
        for places, intercept, share, spread in [*levels, first]:
            if share <= constant.SET_ASIDE * spread:
                move, size = np.zeros(layout.width), np.zeros(layout.width)
                move[places], move[-1] = 0.5, 0.5 * len(places) + intercept
                size[places] = 2.0 / len(places)
                yield move, size
