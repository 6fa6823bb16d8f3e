"""The loss whose posterior a plan draws from, as a function of the linear predictor: what moments of a draw are computed by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.models import ConvexModel
from onedraw.models.convex.losses import MarginLoss
from onedraw.models.convex.number_losses import ResidualLoss
from onedraw.models.design import Design
from onedraw.models.likelihood import Bernoulli, GaussianNoise
from onedraw.models.likelihood.likelihood_model import Linear
from onedraw.models.moments.measured_model import WeightedLoss
from onedraw.plans import Plan


@dataclass(frozen=True)
class BinaryBeta:
    """The β-loss of two classes: slope −(p^{β−1}q² + pq^β) in the margin yu, p = σ(yu)."""

    beta: float

    def slope(self, predictor: Array, response: Array) -> Array:
        p, q = special.expit(response * predictor), special.expit(-response * predictor)
        return np.asarray(-response * (p ** (self.beta - 1.0) * q**2 + p * q**self.beta))

    def curvature(self, predictor: Array, response: Array) -> Array:
        p, q = special.expit(response * predictor), special.expit(-response * predictor)
        first = p ** (self.beta - 1.0) * q**2 * ((self.beta - 1.0) * q - 2.0 * p)
        return np.asarray(-first - p * q**self.beta * (q - self.beta * p))


@dataclass(frozen=True)
class NormalBeta:
    """The β-loss of normal residuals of known scale: slope f^{β−1}r/σ², r = u − y."""

    beta: float
    scale: float

    def _level(self, residual: Array) -> Array:
        power, variance = self.beta - 1.0, self.scale**2
        return np.asarray((2.0 * math.pi * variance) ** (-power / 2) * np.exp(-power * residual**2 / (2.0 * variance)))

    def slope(self, predictor: Array, response: Array) -> Array:
        return np.asarray(self._level(predictor - response) * (predictor - response) / self.scale**2)

    def curvature(self, predictor: Array, response: Array) -> Array:
        ratio = (predictor - response) ** 2 / self.scale**2
        return np.asarray(self._level(predictor - response) * (1.0 - (self.beta - 1.0) * ratio) / self.scale**2)


@dataclass(frozen=True)
class Weighted:
    """A loss of rows of one length, and so of one weight."""

    of: Any
    weight: float

    def slope(self, predictor: Array, response: Array) -> Array:
        return np.asarray(self.weight * self.of.slope(predictor, response))

    def curvature(self, predictor: Array, response: Array) -> Array:
        return np.asarray(self.weight * self.of.curvature(predictor, response))


def loss_of(plan: Plan, design: Design) -> Any:
    model, numbers = plan.model, plan.parameters
    if "beta" in numbers:
        likelihood = model.likelihood
        if not isinstance(getattr(model, "predictor_function", None), Linear):
            return None
        if isinstance(likelihood, Bernoulli):
            return BinaryBeta(numbers["beta"])
        if isinstance(likelihood, GaussianNoise) and likelihood.variance is not None:
            return NormalBeta(numbers["beta"], math.sqrt(likelihood.variance))
        return None
    kernel = model.kernel if isinstance(model, ConvexModel) else None
    if isinstance(kernel, WeightedLoss):
        length = design.squared_length + design.features.intercept
        return Weighted(kernel.of, min(1.0, model.row_bound**2 / length))
    return kernel if isinstance(kernel, MarginLoss | ResidualLoss) else None
