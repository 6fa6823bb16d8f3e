"""Figures 4 and 11 of Jewson et al.: the best membership attack on each method, and the ε that its errors prove.

D = {(1, 1), (0, 0)} and D' = {(−1, 1), (0, 0)}, one parameter without an intercept, prior N(0, 9): p(θ | D') = p(−θ | D), so the best
attacker guesses by the sign. ``accuracy`` is exact: posteriors by quadrature, noise in closed form. Then 10,000 rounds are played and
ε is bounded from below at 95 %: from errors per data set (``per_class``), and from errors over all rounds as published (``published``,
errata 6c), which half the rates, so that a coin flip "proves" ε ≥ log 3 in the limit. The error in θ is that of n = 1000, d = 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from experiments.beta_bayes_logistic import logistic
from experiments.beta_bayes_logistic.data_sets import Array
from experiments.beta_bayes_logistic.methods import DELTA, OUTPUTS, calibrated
from experiments.potentials import log_density
from experiments.simulated_fits import simulated_minima
from scipy import special

import onedraw as od

ROUNDS = 10_000
THETAS: Array = np.linspace(-40.0, 40.0, 40_001)
COIN = "coin flip"


def run(*, seeds: tuple[int, ...], method: str, epsilon: float) -> Iterator[dict[str, Any]]:
    """A row for each seed of the simulated records, with what the attack on the method found."""
    attack = attacked(method, epsilon)
    if method == COIN:
        yield {"seed": 0, "log_rmse": math.nan, **attack}
        return
    for row in logistic.run(seeds=seeds, method=method, n=1000, d=2, epsilon=epsilon):
        yield {"seed": row["seed"], "log_rmse": row["log_rmse"], **attack}


def attacked(method: str, epsilon: float) -> dict[str, float]:
    generator = np.random.default_rng(15)
    neighbours = generator.uniform(size=ROUNDS) < 0.5
    accuracy, draw = COINS if method == COIN else law(method, epsilon)
    guesses = np.where(neighbours, -1.0, 1.0) * draw(generator, ROUNDS) < 0.0  # by symmetry D' is D with −θ
    false_positives, false_negatives = int((guesses & ~neighbours).sum()), int((~guesses & neighbours).sum())
    counts = (ROUNDS - int(neighbours.sum()), int(neighbours.sum()))
    delta = DELTA if method in ("corollary8", "gdp") else 0.0
    return {
        "accuracy": accuracy, "limit": math.log(accuracy / (1.0 - accuracy)),
        "per_class": od.audit.epsilon_lower_bound(false_positives, false_negatives, *counts, delta),
        "published": od.audit.epsilon_lower_bound(false_positives, false_negatives, ROUNDS, ROUNDS, delta),
    }  # fmt: skip


COINS: tuple[float, Any] = (0.5, lambda generator, size: generator.standard_normal(size))


def law(method: str, epsilon: float) -> tuple[float, Any]:
    """The probability that what is published for D is positive, and draws of it."""
    prior = od.Gaussian(scale=3.0 / math.sqrt(2.0) if "fixed" in method else 3.0)
    model = od.models.Logistic(1, bounds=(-1.0, 1.0), intercept=False, prior=prior)
    plan = calibrated(method, model, 2, epsilon)
    if method in OUTPUTS:
        fit, scale = _minimum(plan), plan.parameters["noise"]
        return 1.0 - 0.5 * math.exp(-fit / scale), lambda generator, size: fit + generator.laplace(0.0, scale, size)
    masses = special.softmax(log_density(plan.target(model.summarise(D)), THETAS[:, None]))
    at_zero = masses[len(THETAS) // 2]
    return float(masses[THETAS > 0.0].sum() + 0.5 * at_zero), _from_grid(masses)


D = np.array([[1.0], [0.0]]), np.array([1.0, -1.0])


def _minimum(plan: Any) -> float:
    return float(simulated_minima(plan, D[0][None], D[1][None])[0, 0])


def _from_grid(masses: Array) -> Any:
    below, step = np.cumsum(masses), THETAS[1] - THETAS[0]

    def draw(generator: np.random.Generator, size: int) -> Array:
        places = np.minimum(np.searchsorted(below, generator.uniform(size=size)), len(THETAS) - 1)
        drawn: Array = THETAS[places] + step * (generator.uniform(size=size) - 0.5)
        return drawn

    return draw
