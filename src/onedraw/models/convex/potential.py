"""The Gibbs potential U(θ) = w Σ ℓ(θ, z_i) + ½(θ − a)ᵀΛ(θ − a), its gradient and Hessian, compiled.

Everything that differs between data sets, weights and priors is an argument; the loss alone is static, so one
compilation serves all of them. ``model`` may be a model or its ``kernel``: inside a compiled function of one's own,
pass the kernel.
"""

from __future__ import annotations

from typing import Any

from onedraw.models.compute import jax, jit


def potential(model: Any, theta: Any, X: Any, y: Any, weight: Any, precision: Any, location: Any) -> Any:
    """U(θ)."""
    return _potential(_kernel(model), theta, X, y, weight, precision, location)


def gradient(model: Any, theta: Any, X: Any, y: Any, weight: Any, precision: Any, location: Any) -> Any:
    """∇U(θ): two matrix–vector products for a linear predictor."""
    return _gradient(_kernel(model), theta, X, y, weight, precision, location)


def hessian(model: Any, theta: Any, X: Any, y: Any, weight: Any, precision: Any, location: Any) -> Any:
    """∇²U(θ)."""
    return _hessian(_kernel(model), theta, X, y, weight, precision, location)


def _kernel(model: Any) -> Any:
    return getattr(model, "kernel", model)


@jit(0)
def _potential(kernel: Any, theta: Any, X: Any, y: Any, weight: Any, precision: Any, location: Any) -> Any:
    away = theta - location
    return weight * kernel.total(theta, X, y) + 0.5 * (precision * away) @ away


@jit(0)
def _gradient(kernel: Any, theta: Any, X: Any, y: Any, weight: Any, precision: Any, location: Any) -> Any:
    return weight * kernel.gradient_total(theta, X, y) + precision * (theta - location)


@jit(0)
def _hessian(kernel: Any, theta: Any, X: Any, y: Any, weight: Any, precision: Any, location: Any) -> Any:
    return weight * kernel.hessian_total(theta, X, y) + jax.numpy.diag(precision)
