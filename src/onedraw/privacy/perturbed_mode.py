"""What the minimum of a randomly tilted convex loss promises (perturbed_mode.md).

    θ* = argmin Σ a(z_i) φ(z_iᵀθ) + (Λ/2)‖θ‖² + bᵀθ,        a(z) = min(1, r²/‖z‖²),  b of density ∝ e^{−‖b‖/s}

Replacing a record moves the gradient by at most 2Lr and the volume by at most e^κ, so ε = 2Lr/s + κ. Nothing here sees data.

| loss | L | M |
| --- | --- | --- |
| exp-linear | ½ | ½ |
| logistic | 1 | ¼ |
| huberised hinge over h | 1 | 1/h |
| log-cosh | 1 | 1 |
| quantile τ over h | max(τ, 1−τ) | 1/2h |
| counts up to Y | Y | ``count_curvature(Y)`` |
| K classes, softmax | √2 | ½, and κ = ``softmax_volume_cost(K, …)`` |
"""

from __future__ import annotations

import math
from fractions import Fraction

from scipy import special

from onedraw.errors import InvalidBudget

from .numbers import fraction_up, not_negative, positive, positive_integer, up


def tilted_epsilon(pull: float, scale: float, kappa: float, *, records: int = 1) -> float:
    """ε = k(2·pull/s + κ), rounded up: k records of a person, each of whose gradients has norm at most ``pull`` = L·r."""
    moved = 2 * Fraction(positive("L·r", pull)) / Fraction(positive("the scale of the tilt", scale))
    return fraction_up(positive_integer("records", records) * (moved + Fraction(not_negative("κ", kappa))))


def volume_cost(*, curvature: float, radius_squared: float, ridge: float) -> float:
    """κ = log(1 + Mr²/Λ): how much one record can change the volume, rounded up."""
    return up(math.log1p(positive("M", curvature) * positive("r²", radius_squared) / positive("Λ", ridge)))


def ridge_for(kappa: float, *, curvature: float, radius_squared: float) -> float:
    """The smallest Λ whose volume costs at most κ, rounded up."""
    return up(positive("M", curvature) * positive("r²", radius_squared) / math.expm1(positive("κ", kappa)))


def softmax_volume_cost(classes: int, *, radius_squared: float, ridge: float) -> float:
    """κ = (K−1)·log(1 + r²/(KΛ)), rounded up: a Hessian of rank K−1 and trace at most (1 − 1/K)r²."""
    others = _classes(classes) - 1
    return up(others * math.log1p(positive("r²", radius_squared) / (classes * positive("Λ", ridge))))


def softmax_ridge_for(kappa: float, classes: int, *, radius_squared: float) -> float:
    """The smallest Λ whose softmax volume costs at most κ, rounded up."""
    others = _classes(classes) - 1
    return up(positive("r²", radius_squared) / (classes * math.expm1(positive("κ", kappa) / others)))


def count_curvature(largest: int) -> float:
    """M = sup over λ of λ·P(Poisson(λ) ≤ Y−1), rounded up: how much a record's slope can bend. One hill."""
    from scipy import optimize

    bound = positive_integer("the largest count", largest)
    found = optimize.minimize_scalar(
        lambda rate: -rate * float(special.gammaincc(bound, rate)), bounds=(0.0, 2.0 * bound + 2.0), method="bounded"
    )
    return up(-float(found.fun), relative=1e-7)


def _classes(value: int) -> int:
    if positive_integer("classes", value) < 2:
        raise InvalidBudget("a classification has at least two classes")
    return int(value)
