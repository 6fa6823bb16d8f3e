"""The norm of the records' gradient under each of many candidates, as a whole number that one record moves by at most 2V.

A record's gradient ∇ℓ = φ'(θᵀx, y)·x, ‖∇ℓ‖ ≤ L, becomes the vector of whole numbers

    v = ⌊(V − √d)·∇ℓ/L⌉,  and 0 where ‖v‖ > V or it is no number,

so that ‖v‖ ≤ V is *enforced*: whatever rounding or overflow there was, replacing a record moves S = Σ v by at most 2V in norm. The
prior's gradient, rounded alike, is public and added to S. The score of a candidate is ⌊√(S·S)⌋: for real numbers a ≤ b + 2V it
follows that ⌊a⌋ ≤ ⌊b⌋ + 2V, so the score moves by at most 2V too, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.models.candidates import UnderCandidates, sums_under
from onedraw.models.compute import jnp

LARGEST_STEPS = 2**17
"""V at most: whole numbers that single precision holds, with room for the squares' rounding."""

LEAST_STEPS = 64
"""… and at least: below, a gradient rounded to the lattice is no longer the gradient."""

SLIGHTLY_LESS = 1.0 - 2.0**-20
"""A sum of squares in single precision is off by less: what is below V² times this is below V²."""

FARTHEST = 2.0**52
"""Of the prior's gradient, in steps; it is public, and beyond this no candidate is chosen anyway."""


@dataclass(frozen=True)
class GradientSteps(UnderCandidates):
    """Σ v for each candidate, one entry for each coordinate."""

    loss: Any
    lipschitz: float
    together: int

    def block(self, X: Any, y: Any, weight: Any, thetas: Any, width: Any) -> Any:
        scale = (width - math.sqrt(X.shape[1])) / self.lipschitz
        slopes = self.loss.slope(thetas @ X.T, y) * scale.astype(X.dtype)
        steps = [jnp.rint(slopes * X[:, column]) for column in range(X.shape[1])]
        square = jnp.asarray(sum(step * step for step in steps))
        short = square <= (width**2 * SLIGHTLY_LESS).astype(X.dtype)
        return jnp.stack([(jnp.where(short, step, 0.0) * weight).sum(axis=1) for step in steps], axis=1)


@dataclass(frozen=True)
class GradientNorms:
    """What candidates are scored by: public numbers of a convex loss of one linear predictor and its Gaussian prior."""

    model: Any
    lipschitz: float
    largest: int
    """V."""

    @property
    def scale(self) -> float:
        """Steps to a unit of the gradient."""
        return (self.largest - math.sqrt(self.model.dimension)) / self.lipschitz

    def scores(self, thetas: Array, encoded: Any) -> Integers:
        """⌊‖S‖⌋ of each row of ``thetas``."""
        statistic = partial(GradientSteps, self.model.kernel, self.lipschitz)
        sums = sums_under(statistic, thetas, encoded, self.largest, precision=np.float32)
        return whole_norms(sums + self.of_prior(thetas))

    def of_prior(self, thetas: Array) -> Integers:
        """∇(−log π) in steps."""
        prior, size = self.model.prior, self.model.dimension
        gradient = prior.precision(size) * (thetas - prior.location(size))
        return np.asarray(np.rint(np.clip(self.scale * gradient, -FARTHEST, FARTHEST)), dtype=np.int64)


def whole_norms(sums: Integers) -> Integers:
    """⌊√(S·S)⌋ of each row, in Python's whole numbers: S·S passes 2^63."""
    return np.array([math.isqrt(sum(entry * entry for entry in row)) for row in sums.tolist()], dtype=np.int64)
