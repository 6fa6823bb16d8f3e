"""Figures 1 and 5 of Jewson et al.: what one record contributes to a posterior, and how far it moves one.

Figure 1: a label's f̃(y) ∝ exp(−ℓ(y)), normalised over the two labels, against the predictor m; and the Gaussian loss against the
residual. Figure 5: arccos ∫√(p q), the Fisher–Rao distance of the posteriors of (μ, σ) with and without one more observation, given
1000 from N(0, 1), by quadrature; priors N(0, 9σ²) and InvGamma(1, 1), which 1000 points outweigh.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

import onedraw as od

PREDICTORS = np.round(np.arange(-50.0, 50.25, 0.25), 2)
RESIDUALS = np.round(np.arange(0.0, 20.25, 0.25), 2)
DISTANCES = np.round(np.arange(0.0, 20.1, 0.1), 1)
WEIGHT, EPSILON = 0.09, 6.0
"""As the paper states them for the left panel; its β = 1.33 is 1 + 2/ε."""

POINTS, SIDE = 1000, 81


def curves(*, seeds: tuple[int, ...], kind: str) -> Iterator[dict[str, Any]]:
    """The curves of one panel: "classification" against m, "regression" against y − m(X)."""
    laws = {"Bayes": (1.0, 1.0), "Gibbs": (WEIGHT, 1.0), "jewson": _plan("jewson"), "optimal": _plan("optimal")}
    for method, (weight, beta) in laws.items():
        chosen = PREDICTORS if kind == "classification" else RESIDUALS
        height = _label if kind == "classification" else _gaussian_loss
        for x, value in zip(chosen, height(chosen, weight, beta), strict=True):
            yield {"method": method, "x": x, "value": value, "weight": weight, "beta": beta}


def _plan(rule: str) -> tuple[float, float]:
    """Weight and β at ε = 6, for two classes."""
    model = od.models.Logistic(1, bounds=(0.0, 1.0), prior=od.Gaussian(scale=3.0))
    numbers = od.calibrate(od.BetaDivergence(rule=rule), model, od.PureDP(EPSILON), n=1000).parameters
    return numbers["weight"], numbers["beta"]


def _label(m: Any, weight: float, beta: float) -> Any:
    """f̃(1)/(f̃(1) + f̃(0)): the integral of the loss is the same for both labels."""
    return special.expit(weight * (_power(special.log_expit(m), beta) - _power(special.log_expit(-m), beta)))


def _power(logarithm: Any, beta: float) -> Any:
    """f^{β−1}/(β−1), up to a constant: log f at β = 1."""
    return logarithm if beta == 1.0 else np.expm1((beta - 1.0) * logarithm) / (beta - 1.0)


def _gaussian_loss(residual: Any, weight: float, beta: float) -> Any:
    """Above its least value, at σ = 1."""
    logarithm = -0.5 * residual**2 - 0.5 * np.log(2.0 * np.pi)
    return weight * (_power(logarithm[0], beta) - _power(logarithm, beta))


# ── Figure 5 ─────────────────────────────────────────────────────────────────────────────────────────────────────


def influence(*, seeds: tuple[int, ...], beta: float) -> Iterator[dict[str, Any]]:
    """The distance between the posteriors with and without y, for y at each distance from the posterior's mean. ``floor`` is half the
    deviation of the loss of an observation that is infinitely far: its integral alone, which moves the posterior by so much."""
    for seed in seeds:
        points = np.random.default_rng(seed).standard_normal(POINTS)
        mu, sigma = _grid(points)
        logs = -sum(_loss(y, mu, sigma, beta) for y in points) + _log_prior(mu, sigma)
        masses = special.softmax(logs)
        centre, floor = masses @ mu, 0.5 * np.sqrt(_variance(masses, _loss(1e6, mu, sigma, beta)))
        for distance in DISTANCES:
            change = -_loss(centre + distance, mu, sigma, beta)
            change -= change.max()
            overlap = masses @ np.exp(0.5 * change) / np.sqrt(masses @ np.exp(change))
            yield {"seed": seed, "distance": distance, "influence": np.arccos(min(overlap, 1.0)), "floor": floor}


def _variance(masses: Any, values: Any) -> Any:
    return masses @ (values - masses @ values) ** 2


def _grid(points: Any) -> tuple[Any, Any]:
    """(μ, σ) over ±12 standard errors of the estimates, which hold the posteriors of every β here."""
    error = points.std() / np.sqrt(len(points))
    mu = points.mean() + np.linspace(-12.0, 12.0, SIDE) * error
    log_sigma = np.log(points.std()) + np.linspace(-12.0, 12.0, SIDE) / np.sqrt(2.0 * len(points))
    first, second = np.meshgrid(mu, log_sigma, indexing="ij")
    return first.ravel(), np.exp(second.ravel())


def _loss(y: float, mu: Any, sigma: Any, beta: float) -> Any:
    """(4) of the paper; ∫f^β = (2πσ²)^{(1−β)/2}/√β."""
    logarithm = -0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)
    if beta == 1.0:
        return -logarithm
    integral = (2.0 * np.pi * sigma**2) ** (0.5 * (1.0 - beta)) / np.sqrt(beta)
    return -np.exp((beta - 1.0) * logarithm) / (beta - 1.0) + integral / beta


def _log_prior(mu: Any, sigma: Any) -> Any:
    """In (μ, log σ)."""
    return -(mu**2) / (18.0 * sigma**2) - np.log(sigma) - 2.0 * np.log(sigma) - 1.0 / sigma**2
