"""Small β-posteriors for the Hamiltonian samplers, with potentials written down again in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models import BetaTarget, BinaryRegression, Gaussian, Network

Array = NDArray[np.float64]

BETA, WEIGHT = 1.5, 2.0


def logistic_records() -> tuple[Array, Array]:
    """Sixty records, the six clearest of them with the wrong label: how much they count depends on β."""
    generator = np.random.default_rng(3)
    X = generator.standard_normal((60, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    u = X @ np.array([3.0, -1.5])
    y = (generator.random(60) < 1.0 / (1.0 + np.exp(-u))).astype(float)
    wrong = np.argsort(-np.abs(u))[:6]
    y[wrong] = 1.0 - y[wrong]
    return X, y


def logistic_target(*, beta: float = BETA, radius: float | None = None) -> BetaTarget:
    """d = 2, no intercept."""
    model = BinaryRegression(2, intercept=False, prior=Gaussian(scale=2.0, radius=radius))
    return BetaTarget(model, model.summarise(logistic_records()), WEIGHT, beta)


def logistic_potential(theta: Array) -> Array:
    """U of `logistic_target` at points (..., 2), from the formula of the paper."""
    total = 0.125 * (theta**2).sum(axis=-1)
    for row, response in zip(*logistic_records(), strict=True):  # one at a time: there may be a million points
        p = 1.0 / (1.0 + np.exp(-(2.0 * response - 1.0) * (theta @ row)))
        total += WEIGHT * ((p**BETA + (1.0 - p) ** BETA) / BETA - p ** (BETA - 1.0) / (BETA - 1.0))
    return total


def network_target(n: int = 60) -> tuple[BetaTarget, Array]:
    """One hidden layer of three units; (target, encoded rows to predict at)."""
    generator = np.random.default_rng(5)
    X = generator.uniform(-2.0, 2.0, (n, 2))
    y = (X[:, 0] * X[:, 1] + 0.5 * generator.standard_normal(n) > 0.0).astype(float)
    model = Network(2, hidden=3)
    grid = np.array([[a, b] for a in (-1.5, 0.0, 1.5) for b in (-1.5, 1.5)])
    return BetaTarget(model, model.summarise((X, y)), 1.0, 2.0), model.features.enforce(grid)


def predictions(target: BetaTarget, draws: Array, rows: Array) -> Array:
    """Class probabilities (draws, rows): what is identifiable of a network."""
    u: Any = np.asarray(target.kernel.function.many(draws, rows))
    return 1.0 / (1.0 + np.exp(-u))
