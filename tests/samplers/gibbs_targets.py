"""Small Gibbs posteriors with an independent potential in NumPy beside each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models.convex.classification import Logistic
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.models.convex.regression import HuberRegression
from onedraw.models.priors import Gaussian

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A target, and U written down again: points (..., d) to values (...)."""

    target: GibbsTarget
    potential: Callable[[Array], Array]


def gibbs_target(model: Any, X: Array, y: Array, weight: float) -> GibbsTarget:
    """What a plan of this weight would hand to a sampler."""
    dimension, prior = model.dimension, model.prior
    return GibbsTarget(
        model,
        model.summarise((X, y)),
        weight,
        prior.precision(dimension),
        prior.location(dimension),
        prior.radius,
        prior.strong_convexity,
        prior.smoothness + len(X) * weight * model.bounds["smoothness"].value,
    )


def rows(n: int, dimension: int) -> Array:
    """Rows of norm 1, correlated."""
    X = np.random.default_rng(11).standard_normal((n, dimension)) @ (np.eye(dimension) + 0.5)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def logistic(
    dimension: int, *, weight: float, radius: float | None = None, scale: float = 1.0, pull: bool = False
) -> Case:
    """Eight records; with ``pull`` their labels agree with one direction, so that the posterior leans against a ball."""
    X = rows(8, dimension)
    y = np.where(X @ np.ones(dimension) >= 0.0, 1.0, -1.0) if pull else np.tile([1.0, -1.0, 1.0, 1.0], 2)
    model = Logistic(dimension, data_norm=1.0, intercept=False, prior=Gaussian(scale=scale, radius=radius))

    def potential(theta: Array) -> Array:
        return weight * np.logaddexp(0.0, -y * (theta @ X.T)).sum(axis=-1) + 0.5 * (theta**2).sum(axis=-1) / scale**2

    return Case(gibbs_target(model, X, (y > 0).astype(int), weight), potential)


def huber(dimension: int, *, weight: float, threshold: float, radius: float | None = None, n: int = 8) -> Case:
    """Residuals on both sides of the threshold; with a huge one U is a quadratic."""
    X = rows(n, dimension)
    y = 1.5 * np.sin(1.0 + np.arange(n))
    model = HuberRegression(
        dimension, threshold=threshold, response_bound=2.0, data_norm=1.0, intercept=False,
        prior=Gaussian(scale=1.0, radius=radius),
    )  # fmt: skip

    def potential(theta: Array) -> Array:
        residual = np.abs(theta @ X.T - y)
        bent = np.minimum(residual, threshold)
        return weight * (bent * (residual - 0.5 * bent)).sum(axis=-1) + 0.5 * (theta**2).sum(axis=-1)

    return Case(gibbs_target(model, X, y, weight), potential)
