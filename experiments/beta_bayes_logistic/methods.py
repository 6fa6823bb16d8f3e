"""Every method of the comparison: what it publishes for given records. Posteriors, weights and noise are those of onedraw's plans.

| method | what is published | promise |
| --- | --- | --- |
| jewson, optimal | a draw of a β-divergence posterior: w = 1 and β = 1 + 2/ε; both free | ε |
| corollary8, gdp | a draw of a Gibbs posterior: Minami et al.'s weight as published, ours | (ε, 10⁻⁵); the first is false from ε ≈ 9 on |
| output … published | a ridge fit with Laplace noise, as Jewson et al. have it | none (errata 2) |
| output … | a ridge fit with noise in the norm, as Chaudhuri et al. prove it | ε |
| posterior mean, posterior draw, minimum … | the same without a promise: ε = ∞ | none |

"shrinking" is λ = 1/(9n), the prior N(0, 9) itself; "fixed" is λ = 1/9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from experiments.beta_bayes_logistic.data_sets import Array, Split
from experiments.simulated_fits import simulated_minima
from experiments.simulation import draws

import onedraw as od

DELTA = 1e-5
POSTERIORS = ("jewson", "optimal", "corollary8", "gdp")
OUTPUTS = ("output shrinking published", "output shrinking", "output fixed published", "output fixed")
TWINS = ("posterior mean", "posterior draw", "minimum shrinking", "minimum fixed")
PRIVATE = (*POSTERIORS, *OUTPUTS)

MOST_DRAWS, LEAST_DRAWS, ROWS = 10, 2, 40_000
"""Draws of each posterior, so many that they read about 40,000 rows: what is reported is their mean error, that of one draw."""

NOISES = 50
"""Of each fit; they cost nothing."""

AVERAGED = 20
"""Draws in a posterior mean, as published."""


def estimates(method: str, splits: Sequence[Split], seeds: Sequence[int], epsilon: float = math.inf) -> Array:
    """(data sets, estimates of each, parameters)."""
    n, features = splits[0].X.shape
    if method in OUTPUTS:
        plan = plan_of(method, features, n, epsilon)
        fits = _minima(plan, splits)
        return np.stack([fit + _noise(plan, seed, len(fit)) for fit, seed in zip(fits, seeds, strict=True)])
    if method.startswith("minimum"):
        return _minima(plan_of(method.replace("minimum", "output"), features, n, 1.0), splits)[:, None]
    each = AVERAGED if method == "posterior mean" else min(max(ROWS // n, LEAST_DRAWS), MOST_DRAWS)
    found = _drawn(plan_of(method, features, n, epsilon), splits, seeds, each)
    return found.mean(axis=1, keepdims=True) if method == "posterior mean" else found


@cache
def plan_of(method: str, features: int, n: int, epsilon: float) -> Any:
    return calibrated(method, model_of(features, n, fixed="fixed" in method), n, epsilon)


def calibrated(method: str, shown: Any, n: int, epsilon: float) -> Any:
    """Pure ε, and (ε, 10⁻⁵) for Gibbs posteriors, whose draws count as exact here (γ = 0)."""
    if method in ("jewson", "optimal"):
        return od.calibrate(od.BetaDivergence(rule=method), shown, od.PureDP(epsilon), n=n)
    if method in OUTPUTS:
        published = method.endswith("published")
        law = "laplace" if published else "norm"
        mechanism = od.baselines.OutputPerturbation(noise=law, as_published=published)
        return od.calibrate(mechanism, shown, od.PureDP(epsilon), n=n)
    if method in ("corollary8", "gdp"):
        gibbs = od.Gibbs(rule=method, as_published=method == "corollary8")
        return od.calibrate(gibbs, shown, od.ApproxDP(epsilon, DELTA), n=n, gamma=0.0)
    return od.calibrate(od.Gibbs(weight=1.0), shown, od.GaussianDP(1e6), n=n, gamma=0.0)  # the plain posterior


def model_of(features: int, n: int, *, fixed: bool = False) -> Any:
    """The paper's prior, N(0, 9); or of precision nλ with λ = 1/9."""
    prior = od.Gaussian(scale=3.0 / math.sqrt(n) if fixed else 3.0)
    return od.models.Logistic(features, bounds=(0.0, 1.0), prior=prior)


def _drawn(plan: Any, splits: Sequence[Split], seeds: Sequence[int], each: int) -> Array:
    encoded = [plan.target(plan.model.summarise((split.X, split.y))) for split in splits]
    targets = [target for target in encoded for _ in range(each)]
    own = [1000 * seed + number for seed in seeds for number in range(each)]
    return draws(targets, own, single=True).thetas.reshape(len(splits), each, -1)


def _minima(plan: Any, splits: Sequence[Split]) -> Array:
    """What noise is added to: it depends on the prior alone, not on ε."""
    X, y = (np.stack(parts) for parts in zip(*((split.X, split.y) for split in splits), strict=True))
    return np.asarray(simulated_minima(plan, X, y))


def _noise(plan: Any, seed: int, width: int) -> Array:
    """In each coordinate as published; of density ∝ e^{−‖b‖/s} as proven: a direction, and a Gamma(p) length."""
    generator, scale = np.random.default_rng(seed), plan.parameters["noise"]
    if plan.mechanism.as_published:
        return generator.laplace(scale=scale, size=(NOISES, width))
    direction = generator.standard_normal((NOISES, width))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * generator.gamma(width, scale, size=(NOISES, 1))
