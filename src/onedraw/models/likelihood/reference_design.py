"""The best β before any record is read: the smallest trace of the draw's covariance under the reference design.

"Which β" in methods/beta_divergence/proof.md: n times the covariance of a draw tends to H⁻¹KH⁻¹ + H⁻¹/w with H = E[H(u)xxᵀ] and
K = E[K(u)xxᵀ]; at w = ε/(2Δ(β)) every β is equally private. The expectations are over the public design of
`models.design`, never over the records: a wrong design costs accuracy, never privacy. Where a model declares no
bounds on its features they are taken as standardised, E[xxᵀ] = I, and u as N(0, effect²).

Residuals have the standard deviation ``noise``, by default 1, at least the model's floor; a known scale is used as
it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, singledispatch
from typing import Any, cast

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.errors import PromiseRefused, UnsupportedBudget
from onedraw.models.design import Design, public_scores
from onedraw.models.features import Features
from onedraw.models.likelihood import Bernoulli, Categorical, Gamma, GaussianNoise, NegativeBinomial, Poisson, StudentT
from onedraw.models.likelihood.likelihood_model import Linear

Averages = tuple[Array, Array]
Sensitivity = Callable[[float], float]
"""Δ as a function of β, rounded up."""

BINARY_SEARCH = (1.5, 4.0)
"""A second optimum, near 1 + 1/p for rare outcomes, is ruinous at p = ½ (methods/beta_divergence/proof.md)."""

SEARCH = (1.02, 4.0)

DIGITS = 6
"""β is rounded to these decimals: the trace is flat at its minimum, and machines differ in the last ones."""

_FARTHEST = 5.0
_GRID = np.linspace(-_FARTHEST, _FARTHEST, 61)
_Z = np.linspace(-8.0, 8.0, 400)
_MASS = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()


@dataclass(frozen=True)
class ReferenceDesign:
    """The public design for one model: what β is chosen under."""

    model: Any
    effect: float
    noise: float | None = None

    def moments(self, beta: float) -> Averages | None:
        """H and K under the design; None for a likelihood whose information is not known."""

        def average(shares: Array) -> Averages | None:
            return mean_information(self.model.likelihood, self.effect**2 * shares, beta, self.noise)

        found = average(np.ones(1))
        if found is None:
            return None
        features = self._features
        if features is None or not features.bounded:
            return found[0][:, None], found[1][:, None]
        design = Design(features)
        information = design.second_moments(lambda shares: cast(Averages, average(shares))[0])
        variability = design.second_moments(lambda shares: cast(Averages, average(shares))[1])
        return cast(Array, information), cast(Array, variability)

    @property
    def _features(self) -> Features | None:
        """Those of a linear predictor; any other is described by u alone."""
        linear = isinstance(self.model.predictor_function, Linear)
        return self.model.features if linear else None

    def curvature(self, beta: float) -> float | None:
        """λ, the smallest eigenvalue of H; None where it is not known or the predictor is not linear."""
        found = None if self._features is None else self.moments(beta)
        value = 0.0 if found is None else float(np.linalg.eigvalsh(found[0])[0])
        return value if value > 0.0 else None

    def trace(self, beta: float, weight: float) -> float:
        """tr(H⁻¹KH⁻¹ + H⁻¹/w), n times the expected squared error of a draw; ∞ where H has no inverse."""
        found = self.moments(beta)
        if found is None:
            raise UnsupportedBudget(
                f"How informative a record of {type(self.model).__name__} is at each β is not known, so no β can be "
                "chosen for it. Pass BetaDivergence(beta=…), for example 1.5."
            )
        information, variability = found
        values, vectors = np.linalg.eigh(information)
        if not values[0] > 1e-14 * values[-1]:
            return math.inf
        across = np.einsum("ij,ik,kj->j", vectors, variability, vectors)
        # tr(H⁻¹KH⁻¹) = Σ_j v_jᵀKv_j/λ_j², v_j the eigenvectors of H
        return float((across / values**2).sum() + (1.0 / values).sum() / weight)

    def optimal_beta(self, sensitivity: Sensitivity, largest_range: float, *, weight: float | None = None) -> float:
        """β with the smallest trace among those that keep the range, at the largest weight or at the one given."""

        def error(distance: float) -> float:
            beta = 1.0 + math.exp(distance)
            allowed = largest_range / (2.0 * sensitivity(beta))
            if weight is not None and weight > allowed * (1.0 - 1e-9):
                return math.inf
            return self.trace(beta, weight or allowed)

        binary = weight is None and isinstance(self.model.likelihood, Bernoulli)
        low, high = BINARY_SEARCH if binary else SEARCH
        grid = np.linspace(math.log(low - 1.0), math.log(high - 1.0), 13)
        errors = [error(distance) for distance in grid]
        best = int(np.argmin(errors))
        if not math.isfinite(errors[best]):
            raise PromiseRefused(
                f"No β between {low:g} and {high:g} keeps a range of {largest_range:.6g} at this weight with a finite "
                "error. Leave out the weight to have it calibrated, or pass beta=… yourself."
            )
        ends = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)]))
        found = _golden(error, *ends)
        choice = found if error(found) < errors[best] else float(grid[best])
        rounded = round(1.0 + math.exp(choice), DIGITS)
        return rounded if math.isfinite(error(math.log(rounded - 1.0))) else 1.0 + math.exp(choice)


def _golden(error: Callable[[float], float], low: float, high: float) -> float:
    """The minimum of one valley by golden section, which bears a wall of ∞ on one side."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = error(left), error(right)
    while high - low > 1e-6:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = error(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = error(right)
    return left if at_left < at_right else right


@singledispatch
def variance_information(likelihood: Any, beta: float, noise: float | None) -> tuple[float, float] | None:
    """H and K of log σ² where the variance is a parameter; None for a likelihood the design does not know.

    Residuals are symmetric, so nothing is shared with the coefficients: the matrices have no entries between the two.
    """
    return None


@variance_information.register
def _(likelihood: GaussianNoise, beta: float, noise: float | None) -> tuple[float, float]:
    return normal_variance_information(likelihood.scale(noise), beta)


@variance_information.register
def _(likelihood: StudentT, beta: float, noise: float | None) -> tuple[float, float]:
    """By summation, at a floor low enough not to matter: the score is that of σ² itself."""
    scale, step = likelihood.scale(noise), 1e-4
    free = replace(likelihood, variance_floor=max(1e-3 * scale**2, 1e-30), variance=None)
    residuals = scale * np.arange(-64.0, 64.0, 1.0 / 64.0)[:, None]
    near = [free.log_density(np.zeros(1), residuals, scale**2 * math.exp(shift)) for shift in (-step, 0.0, step)]
    found = tabulated_information(near[1], (near[2] - near[0]) / (2.0 * step), beta, spacing=scale / 64.0)
    return float(found[0][0]), float(found[1][0])


@singledispatch
def mean_information(likelihood: Any, variances: Array, beta: float, noise: float | None) -> Averages | None:
    """E H(u) and E K(u), u ~ N(0, v), for each v; None for a likelihood the design does not know."""
    return None


@mean_information.register
def _(likelihood: Bernoulli, variances: Array, beta: float, noise: float | None) -> Averages:
    information, variability = binary_information(np.sqrt(variances)[:, None] * _Z, beta)
    return information @ _MASS, variability @ _MASS


@mean_information.register
def _(likelihood: Categorical, variances: Array, beta: float, noise: float | None) -> Averages:
    """Classes are exchangeable under the design: both averages are multiples of I − 11ᵀ/K, across which θ is free."""
    scores = public_scores(likelihood.classes)
    pairs = [categorical_information(math.sqrt(variance) * scores, beta) for variance in variances]
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


@mean_information.register
def _(likelihood: GaussianNoise, variances: Array, beta: float, noise: float | None) -> Averages:
    """The residual's law is the same at every u."""
    information, variability = normal_information(likelihood.scale(noise), beta)
    return np.full_like(variances, information), np.full_like(variances, variability)


@mean_information.register
def _(likelihood: StudentT, variances: Array, beta: float, noise: float | None) -> Averages:
    """As for normal noise, by summation over a grid of residuals; far out f^β leaves nothing."""
    scale = likelihood.scale(noise)
    residuals = scale * np.arange(-64.0, 64.0, 1.0 / 64.0)[:, None]
    found = _by_summation(likelihood, np.zeros(1), residuals, beta, spacing=scale / 64.0, variance=scale**2)
    return np.full_like(variances, found[0][0]), np.full_like(variances, found[1][0])


@mean_information.register(Poisson)
@mean_information.register(NegativeBinomial)
@mean_information.register(Gamma)
def _(likelihood: Any, variances: Array, beta: float, noise: float | None) -> Averages:
    """Predictors beyond ±5, means of 150 or 1/150, count as these: the design only tunes."""
    points = np.clip(np.sqrt(variances)[:, None] * _Z, -_FARTHEST, _FARTHEST)
    information, variability = (np.interp(points, _GRID, part) @ _MASS for part in _on_grid(likelihood, beta))
    return information, variability


@lru_cache(maxsize=128)
def _on_grid(likelihood: Any, beta: float) -> Averages:
    if isinstance(likelihood, Gamma):
        responses = np.exp(np.linspace(-25.0, 12.0, 1000))[:, None]  # evenly spaced in log y
        return _by_summation(likelihood, _GRID, responses, beta, spacing=responses * 37.0 / 999.0)
    return _by_summation(likelihood, _GRID, np.arange(0.0, 1500.0)[:, None], beta, spacing=1.0)


def _by_summation(
    likelihood: Any, predictor: Array, responses: Array, beta: float, *, spacing: float | Array, variance: Any = None
) -> Averages:
    """H and K at each predictor, the score by a central difference."""
    step = 1e-4
    near = [likelihood.log_density(predictor + shift, responses, variance) for shift in (-step, 0.0, step)]
    return tabulated_information(near[1], (near[2] - near[0]) / (2.0 * step), beta, spacing=spacing)


def binary_information(predictor: Array, beta: float) -> tuple[Array, Array]:
    """H = p²q²(p^{β−2} + q^{β−2}) and K = p³q³(p^{β−2} + q^{β−2})², p the logistic function of the predictor."""
    p, q = special.log_expit(predictor), special.log_expit(-predictor)
    first, second = np.exp(beta * p + 2.0 * q), np.exp(2.0 * p + beta * q)
    # K = H²/(pq), and both factors may underflow where p or q does: combine the exponents instead.
    mixed = np.logaddexp(beta * p + 2.0 * q, 2.0 * p + beta * q)
    return first + second, np.exp(2.0 * mixed - p - q)


def normal_information(deviation: float, beta: float) -> tuple[float, float]:
    """Of the mean, per xxᵀ: H = (2πσ²)^{−(β−1)/2} β^{−3/2}/σ², K = (2πσ²)^{−(β−1)} (2β−1)^{−3/2}/σ²."""
    size = (2.0 * math.pi * deviation**2) ** (-(beta - 1.0) / 2.0)
    return size * beta**-1.5 / deviation**2, size**2 * (2.0 * beta - 1.0) ** -1.5 / deviation**2


def normal_variance_information(deviation: float, beta: float) -> tuple[float, float]:
    """Of log σ²: H = ¼A(β)(2πσ²)^{−(β−1)/2}, K = ¼A(2β−1)(2πσ²)^{−(β−1)} − m².

    m = ½(1−β)β^{−3/2}(2πσ²)^{−(β−1)/2} is the mean score under f^β. The score is ½(z² − 1), and f^β is a normal density
    of variance σ²/β but for its mass (2πσ²)^{−(β−1)/2}β^{−½}, under which z² has the mean 1/β and the mean square 3/β²:
    A(β) = β^{−½}(3/β² − 2/β + 1). At β = 1 both are Fisher's ½.
    """
    size = (2.0 * math.pi * deviation**2) ** (-(beta - 1.0) / 2.0)

    def square(power: float) -> float:
        return 0.25 / math.sqrt(power) * (3.0 / power**2 - 2.0 / power + 1.0)

    mean = 0.5 * (1.0 - beta) * beta**-1.5
    return size * square(beta), size**2 * (square(2.0 * beta - 1.0) - mean**2)


def categorical_information(scores: Array, beta: float) -> tuple[float, float]:
    """Averages a_H, a_K over the rows of scores: E H = a_H·(I − 11ᵀ/K) where classes are exchangeable, and so K."""
    classes = scores.shape[1]
    p = special.softmax(scores, axis=1)

    def spread(weights: Array) -> Array:
        """Σ_y weight_y ‖e_y − p‖²."""
        size = (p * p).sum(axis=1)
        return np.asarray((weights * (1.0 - 2.0 * p)).sum(axis=1) + size * weights.sum(axis=1))

    mean = p**beta - p * (p**beta).sum(axis=1, keepdims=True)
    information = spread(p**beta).mean()
    variability = (spread(p ** (2.0 * beta - 1.0)) - (mean * mean).sum(axis=1)).mean()
    return float(information) / (classes - 1), float(variability) / (classes - 1)


def tabulated_information(
    log_density: Array, scores: Array, beta: float, *, spacing: float | Array = 1.0
) -> tuple[Array, Array]:
    """H and K by summation over the first axis: all counts, or a fine grid of responses ``spacing`` apart."""
    weighted = spacing * np.exp(beta * log_density)
    information = (weighted * scores**2).sum(axis=0)
    mean = (weighted * scores).sum(axis=0)
    variability = (spacing * np.exp((2.0 * beta - 1.0) * log_density) * scores**2).sum(axis=0) - mean**2
    return information, variability
