"""The simulated logistic regression of Jewson et al. (NeurIPS 2023), as their published code generates it: d = 2.

A constant and one feature, clip(N(0, 1), ±4) mapped to [0, 1]; coefficients of standard deviation 9 (the text says 3: errata 8) with
the intercept re-centred; 10,000 rows for each seed, of which n are taken. Errors are expectations over *exact* draws: a posterior of
two parameters is integrated on a grid, Laplace noise on its quantiles; nothing is simulated but the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from experiments.grids import exact_posterior
from experiments.simulated_fits import simulated_minima
from numpy.typing import NDArray
from scipy import special

import onedraw as od

Array = NDArray[np.float64]

ROWS = 10_000
DELTA = 1e-5
MODEL = od.models.Logistic(1, bounds=(0.0, 1.0), prior=od.Gaussian(scale=3.0))
"""One feature in [0, 1] and an intercept, which onedraw puts last: θ = (slope, intercept)."""

BOX = ((-20.0, 20.0), (-18.0, 18.0))
CENTRED = ((0.0, 1.0), (1.0, -0.5))
"""A grid in the predictor at the middle of the feature's range and in the slope, which are nearly independent; six prior deviations."""

QUANTILES = 600
"""Of the noise along each coordinate."""


def simulate(seed: int, *, spread: float, d: int = 2) -> tuple[Array, Array, Array]:
    """10,000 rows with a constant first column, labels ±1, and the true parameter; the calls are the published ones."""
    np.random.seed(seed)  # noqa: NPY002  # the reference is paired by the legacy generator's stream
    normal = np.random.multivariate_normal(np.zeros(d - 1), np.eye(d - 1), size=ROWS)  # noqa: NPY002
    X = np.column_stack([np.ones(ROWS), (np.clip(normal, -4.0, 4.0) + 4.0) / 8.0])
    theta = np.random.randn(d) * spread  # noqa: NPY002
    theta[0] -= (X @ theta).mean()
    labels = np.where(np.random.uniform(size=ROWS) < special.expit(X @ theta), 1.0, -1.0)  # noqa: NPY002
    return X, labels, theta


def subset(X: Array, labels: Array, n: int) -> tuple[Array, Array]:
    """n rows without replacement, drawn again until both classes are there."""
    while True:
        rows = np.random.choice(len(labels), n, replace=False)  # noqa: NPY002
        if len(np.unique(labels[rows])) == 2:
            return X[rows], labels[rows]


@cache
def plan_of(method: str, n: int, epsilon: float) -> Any:
    """What each method draws, as the paper has it and corrected: pure ε, and (ε, 10⁻⁵) for Minami. Minami corrected is the largest
    weight that is true, rule "gdp"; output perturbation corrected has Laplace noise for the true sensitivity (errata 16 and 2)."""
    mechanisms: dict[str, Callable[[], od.methods.Mechanism]] = {
        "jewson": lambda: od.BetaDivergence(rule="jewson"),
        "optimal": lambda: od.BetaDivergence(rule="optimal"),
        "minami": lambda: od.Gibbs(rule="corollary8", as_published=True),
        "minami-corrected": lambda: od.Gibbs(rule="gdp"),
        "output": lambda: od.baselines.OutputPerturbation(noise="laplace", as_published=True),
        "output-corrected": lambda: od.baselines.OutputPerturbation(noise="laplace"),
    }
    if method.startswith("minami"):
        return od.calibrate(mechanisms[method](), MODEL, od.ApproxDP(epsilon, DELTA), n=n, gamma=0.0)
    return od.calibrate(mechanisms[method](), MODEL, od.PureDP(epsilon), n=n)


def law(method: str, n: int, epsilon: float, X: Array, labels: Array) -> tuple[Array, Array]:
    """Points (slope, intercept) and their probabilities: the whole law of what is released."""
    plan = plan_of(method, n, epsilon)
    if not method.startswith("output"):
        return exact_posterior(plan.target(MODEL.summarise((X[:, 1:], labels))), BOX, coordinates=CENTRED)
    (fit,) = simulated_minima(plan, X[None, :, 1:], labels[None])  # λ = 1/(9n): the prior's own ridge
    chances = (np.arange(QUANTILES) + 0.5) / QUANTILES
    noise = plan.parameters["noise"] * np.sign(chances - 0.5) * -np.log1p(-np.abs(2.0 * chances - 1.0))
    first, second = np.meshgrid(noise, noise)
    return fit + np.column_stack([first.ravel(), second.ravel()]), np.full(QUANTILES**2, QUANTILES**-2.0)


def run(*, seeds: tuple[int, ...], method: str, n: int, epsilon: float, spread: float) -> Iterator[dict[str, Any]]:
    """E log RMSE and E‖θ̃ − θ₀‖²/d of one draw, for each seed."""
    for seed in seeds:
        X, labels, truth = simulate(seed, spread=spread)
        thetas, probabilities = law(method, n, epsilon, *subset(X, labels, n))
        square = ((thetas - truth[::-1]) ** 2).mean(axis=1)
        logs = 0.5 * np.log(np.maximum(square, 1e-12))
        yield {"seed": seed, "log_rmse": probabilities @ logs, "square": probabilities @ square}
