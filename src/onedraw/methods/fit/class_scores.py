"""Several classes: the score of the softmax model, in contrasts.

Scores of K classes count by their differences alone, so steps go in K − 1 *contrasts*: u = C·contrasts, the columns of C orthonormal
and adding up to 0 (models/fit/losses.py). A record's score is z ⊗ ψ with ψ = Cᵀ(unit vector of y − P). Since unit vector − P
adds up to 0, ‖ψ‖ = ‖unit vector − P‖ ≤ √2, and over the classes that a record could have it is longest for the least likely one:

    max ‖ψ‖² = ΣP² + 1 − 2·min P.

A record's information is W ⊗ zzᵀ with W = Cᵀ(diag P − PPᵀ)C = Σ_j P_j·f_j f_jᵀ, f_j = Cᵀ(unit vector of j − P); ‖W‖ ≤ ½ in
Frobenius's norm (privacy/perturbed_mode.md §1).

**Expected information.** For normal rows the contrasts t = Θz are normal, and given t a row is normal about its regression on t, with a
known covariance. So E[W ⊗ zzᵀ] needs points in K − 1 dimensions alone: a fixed public set of them (`points`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.methods.stages import ROOT_TWO
from onedraw.models.compute import jax, jnp
from onedraw.models.fit.losses import ClassLoss
from onedraw.models.moments.measured import Layout

from .scores import Score

POINTS = 512
"""Points in the space of contrasts, half of them the others' opposites."""


@lru_cache(maxsize=16)
def points(dimension: int) -> Array:
    """Return fixed points that stand for the normal law: their mean is 0 and their second moments are 1, exactly.

    Half of them are opposites of the others, so that all odd moments are 0 too.
    """
    from scipy.stats import qmc  # which loads slowly, and few questions need

    engine = qmc.Sobol(dimension, scramble=False)
    engine.fast_forward(1)  # the origin has no normal deviate
    half = special.ndtri(engine.random(POINTS // 2))
    both = np.concatenate([half, -half])
    values, axes = np.linalg.eigh(both.T @ both / len(both))
    found = np.asarray(both @ ((axes / np.sqrt(np.maximum(values, 1e-12))) @ axes.T))
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class ClassScore(Score):
    """The score of K classes, whose kernel is a `ClassLoss`; coefficients are K − 1 vectors one after the other."""

    @property
    def classes(self) -> int:
        return int(self.kernel.classes)

    @property
    def blocks(self) -> int:
        return self.classes - 1

    @property
    def level_size(self) -> int:
        return self.classes

    @property
    def level_reach(self) -> float:
        return ROOT_TWO

    @property
    def in_moments(self) -> bool:
        return False

    @property
    def longest(self) -> float:
        return 1.0  # about that of even odds: ‖ψ‖ is √(1 − 1/K) where all classes are alike

    @cached_property
    def contrasts(self) -> Array:
        """Return C."""
        found: Array = self.kernel.contrasts
        return found

    def respond(self, response: Any, centre: Any, unit: Any) -> Any:
        return jnp.rint((response + self.shift) * self.scale)

    # Of records: contrasts and slopes are (K − 1, records).

    def predictor(self, theta: Any, z: Any) -> Any:
        return theta.reshape(self.blocks, -1) @ z

    def _chances(self, u: Any) -> Any:
        return jax.nn.softmax(self.contrasts @ u, axis=0)

    def slope(self, u: Any, y: Any, score_scale: Any) -> Any:
        own = jnp.where(jnp.arange(float(self.classes))[:, None] == y, 1.0, 0.0)
        return self.contrasts.T @ (own - self._chances(u))

    def longest_at(self, u: Any, psi: Any) -> Any:
        chances = self._chances(u)
        return jnp.sqrt((chances**2).sum(axis=0) + 1.0 - 2.0 * chances.min(axis=0))

    def factors(self, u: Any) -> tuple[list[Any], Any]:
        """Return √P_j·f_j for every class j, and Frobenius's norm of the sum of their squares."""
        chances = self._chances(u)
        middle = self.contrasts.T @ chances
        found = [jnp.sqrt(chances[j]) * (self.contrasts[j][:, None] - middle) for j in range(self.classes)]
        squares, cubes = (chances**2).sum(axis=0), (chances**3).sum(axis=0)
        return found, jnp.sqrt(jnp.maximum(squares - 2.0 * cubes + squares**2, 0.0))

    def times(self, psi: Any, z: Any) -> Any:
        return (psi[:, None, :] * z[None, :, :]).reshape(-1, z.shape[1])

    # What published numbers imply.

    def start(self, shares: Array | None, layout: Layout, least: float) -> Array:
        """Return the coefficients of a model without slopes that has these shares, each kept this far above 0."""
        theta = np.zeros((self.blocks, layout.width))
        if layout.intercept and shares is not None:
            least = min(least, 0.5 / self.classes)
            theta[:, -1] = self.contrasts.T @ np.log(np.clip(shares, least, 1.0))
        return theta.ravel()

    def expected_information(self, theta: Array, spread: Array, intercept: bool, score_scale: float) -> Array:
        blocks, d, width = self.blocks, len(spread), len(theta) // self.blocks
        slopes = theta.reshape(blocks, -1)[:, :d]
        level = theta.reshape(blocks, -1)[:, -1] if intercept else np.zeros(blocks)
        values, axes = np.linalg.eigh((slopes * spread) @ slopes.T)
        deviation = np.sqrt(np.maximum(values, 1e-12))
        at = points(blocks)
        chances = special.softmax((level + (at * deviation) @ axes.T) @ self.contrasts.T, axis=1)
        middle = chances @ self.contrasts
        weights = (
            np.einsum("qj,ja,jb->qab", chances, self.contrasts, self.contrasts)
            - middle[:, :, None] * middle[:, None, :]
        )
        # a row is (along·g, 1) and what is left of it, for the normal deviates g of its contrasts
        along = np.zeros((width, blocks + 1))
        along[:d, :blocks] = (spread[:, None] * slopes.T) @ (axes / deviation)
        along[:d, :blocks][:, values <= 1e-12] = 0.0
        along[d:, blocks] = 1.0
        left = np.zeros((width, width))
        left[:d, :d] = np.diag(spread) - along[:d, :blocks] @ along[:d, :blocks].T
        both = np.column_stack([at, np.ones(len(at))])
        products = np.einsum("qab,qi,qj->aibj", weights, both, both, optimize=True) / len(at)
        found = np.einsum("wi,aibj,vj->awbv", along, products, along, optimize=True)
        found += weights.mean(axis=0)[:, None, :, None] * left[None, :, None, :]
        return np.asarray(found.reshape(len(theta), len(theta)))

    def mean_information(self, effect: float) -> float:
        """Return a record's mean information along a contrast if these have standard deviation ``effect``."""
        chances = special.softmax(effect * points(self.blocks) @ self.contrasts.T, axis=1)
        return float((1.0 - (chances**2).sum(axis=1)).mean() / self.blocks)

    def mean_weight(self, information: Array, spread: Array, intercept: bool) -> float:
        weights = np.diag(information).reshape(self.blocks, -1)
        return float(weights[:, -1].mean() if intercept else weights.sum() / self.blocks / max(spread.sum(), 1e-9))


def class_score(classes: int, *, robust: bool = False) -> ClassScore:
    """Return the score of so many classes."""
    loss = ClassLoss(classes)
    half = (classes - 1.0) / 2.0
    information = loss.expected_information
    return ClassScore("classes", loss, half, 1.0, information, information, robust)
