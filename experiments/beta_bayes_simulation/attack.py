"""The membership attack of Jewson et al. (Section 5), exactly: two data sets of two records, one parameter, by quadrature.

D = {(1, 1), (0, 0)} and D′ = {(−1, 1), (0, 0)} with feature first, θ ~ N(0, 9), no intercept. The record (0, 0) says nothing of θ
and the pair is symmetric, p(θ | D′) = p(−θ | D): so the best attacker guesses by the sign, and the log-ratio of the pair stays
below ε/2, half of what the mechanism may lose, and comes near it as θ grows. No draw and no published score is needed (errata 6
lists what is wrong with those).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import integrate

import onedraw as od

MODEL = od.models.Logistic(1, bounds=(-1.0, 1.0), intercept=False, prior=od.Gaussian(scale=3.0))
THETAS = np.linspace(-40.0, 40.0, 160_001)
"""Thirteen prior standard deviations. The largest log-ratio is taken over these: at ε = 20 that is 9.817, and beyond them 10."""


def log_posterior(plan: Any, feature: float) -> Any:
    """Of θ on the grid, normalised, for the records (feature, 1) and (0, 0)."""
    target = plan.target(MODEL.summarise((np.array([[feature], [0.0]]), np.array([1.0, -1.0]))))
    losses = np.concatenate([target.losses(part[:, None]).sum(axis=1) for part in np.array_split(THETAS, 16)])
    logs = -plan.parameters["weight"] * losses - THETAS**2 / 18.0
    return logs - np.log(integrate.simpson(np.exp(logs), x=THETAS))


def run(*, seeds: tuple[int, ...], rule: str, epsilon: float) -> Iterator[dict[str, Any]]:
    """The accuracy of the Bayes-optimal attacker, (1 + total variation)/2, and the largest |log ratio|."""
    plan = od.calibrate(od.BetaDivergence(rule=rule), MODEL, od.PureDP(epsilon), n=2)
    first, second = log_posterior(plan, 1.0), log_posterior(plan, -1.0)
    variation = 0.5 * integrate.simpson(np.abs(np.exp(first) - np.exp(second)), x=THETAS)
    yield {"accuracy": 0.5 + 0.5 * variation, "log_ratio": np.abs(first - second).max()}
