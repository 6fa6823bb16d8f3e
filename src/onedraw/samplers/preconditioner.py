"""Coordinates in which a Gibbs potential is well conditioned, and its minimum in them.

θ = s·Q·u, with Q orthogonal: on a ball s is its radius, so that the ball is ‖u‖ ≤ 1 in every one of them. Distances are
measured by Σ D_i du_i². Two metrics are used:

- the plain one, s²‖u − u'‖² = ‖θ − θ'‖²: U is M-smooth and m-strongly convex with the constants of the plan;
- the preconditioned one, of P = Λ + w·c·XᵀX, c the largest curvature φ'' of the loss on the ball: there U is 1-smooth
  and 1/κ-strongly convex for every data set, κ = sup φ''/inf φ'': with
  c_low ≤ φ'' ≤ c, P/κ ⪯ Λ + w·c_low·XᵀX ⪯ ∇²U ⪯ P. For the logistic loss on |u| ≤ B κ ≤ cosh²(B/2). P depends on the records;
  the constants do not, and they alone enter the exactness.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from onedraw.models.compute import jax, jit, jnp
from onedraw.models.convex.gibbs_target import GibbsTarget, gradient, hessian, potential
from onedraw.models.convex.linear_model import LinearModel
from onedraw.samplers.ball import peak_on_ball
from onedraw.samplers.chains import arguments_for
from onedraw.samplers.padding import public_passes

MOST_DESCENT = 70.0
"""Steps of descent per M/m: each leaves 1 − m/M of what is above the minimum, so e^{−70} = 4e-31 of it remains."""

LOCAL_QUADRATIC_PASSES = 2
"""Passes that `local_quadratic` takes."""


def most_descent(strong_convexity: float, smoothness: float) -> int:
    """Steps after which theory alone says that the minimum is found."""
    return math.ceil(MOST_DESCENT * smoothness / strong_convexity) + 1


def padded_descent(name: str, strong_convexity: float, smoothness: float) -> int:
    """The same, where a sampler of that name makes all of them on every data set."""
    remedy = "a smaller ball (radius=…) or a narrower prior needs fewer"
    return public_passes(name, "descent to its start", most_descent(strong_convexity, smoothness), remedy)


class Preconditioner(NamedTuple):
    """``axes`` (d, d) orthogonal, ``scale`` s, ``metric`` (d,)."""

    axes: Any
    scale: Any
    metric: Any

    def theta(self, u: Any) -> Any:
        return self.scale * (self.axes @ u)


class LocalQuadratic(NamedTuple):
    """U to second order around the start, in these coordinates: it only guesses where to look."""

    start: Any
    slope: Any
    curvature: Any


def value_in(preconditioner: Preconditioner, kernel: Any, u: Any, arguments: tuple[Any, ...]) -> Any:
    return potential(kernel, preconditioner.theta(u), *arguments)


def slope_in(preconditioner: Preconditioner, kernel: Any, u: Any, arguments: tuple[Any, ...]) -> Any:
    return preconditioner.scale * (preconditioner.axes.T @ gradient(kernel, preconditioner.theta(u), *arguments))


def identity_preconditioner(target: GibbsTarget) -> Preconditioner:
    scale = 1.0 if target.radius is None else target.radius
    return Preconditioner(np.eye(target.dimension), scale, np.full(target.dimension, scale**2))


def curvature_preconditioner(target: GibbsTarget) -> Preconditioner:
    """The eigenbasis of P."""
    assert isinstance(target.model, LinearModel)  # another one states no ratio of curvatures
    rows, (_, curvature) = target.encoded.X, target.model.curvature_range
    values, axes = np.linalg.eigh(np.diag(target.precision) + (target.weight * curvature) * (rows.T @ rows))
    scale = 1.0 if target.radius is None else target.radius
    # Rounding may push a small eigenvalue below the prior's smallest precision, which it never is.
    return Preconditioner(axes, scale, scale**2 * np.maximum(values, target.precision.min()))


def minimum(
    preconditioner: Preconditioner,
    target: GibbsTarget,
    *,
    strong_convexity: float,
    smoothness: float,
    tolerance: float,
    padded: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """A point u with U(u) − min U ≤ tolerance on a ball, ‖∇U‖²/(2m) ≤ tolerance on R^d; (u, diagnostics).

    Projected gradient descent from the prior's location. It stops when the Frank–Wolfe gap (the gradient) shows
    that the point is good enough, or after so many steps that theory alone says so; padded, after as many in any case, of which
    those that were not needed lead nowhere.
    """
    start = preconditioner.axes.T @ (target.location / preconditioner.scale)
    most = most_descent(strong_convexity, smoothness)
    u, steps, gap = _descend(
        target.kernel, target.radius is not None, preconditioner, start, arguments_for(target),
        strong_convexity, smoothness, tolerance, most, padded,
    )  # fmt: skip
    return u, {"descent_steps": int(steps), "descent_gap": float(gap)}


@jit(0, 1)
def _descend(
    kernel: Any, on_ball: bool, preconditioner: Preconditioner, start: Any, arguments: tuple[Any, ...],
    strong_convexity: Any, smoothness: Any, tolerance: Any, most: Any, padded: Any,
) -> Any:  # fmt: skip
    def gap(u: Any, slope: Any) -> Any:
        if on_ball:
            return u @ slope + jnp.sqrt(slope @ slope)
        return (slope * slope / preconditioner.metric).sum() / (2.0 * strong_convexity)

    def body(state: Any) -> Any:
        u, slope, step = state
        metric = smoothness * preconditioner.metric
        moved = u - slope / metric
        moved = peak_on_ball(metric, metric * moved, xp=jnp) if on_ball else moved
        ahead, far = slope_in(preconditioner, kernel, moved, arguments), gap(u, slope) > tolerance
        return jnp.where(far, moved, u), jnp.where(far, ahead, slope), step + 1

    def unfinished(state: Any) -> Any:
        u, slope, step = state
        return (padded | (gap(u, slope) > tolerance)) & (step < most)

    start = jnp.asarray(start)
    slope = slope_in(preconditioner, kernel, start, arguments)
    u, slope, step = jax.lax.while_loop(unfinished, body, (start, slope, 0))
    return u, step, gap(u, slope)


def local_quadratic(
    preconditioner: Preconditioner, target: GibbsTarget, u: Any, *, rotate: bool
) -> tuple[Preconditioner, LocalQuadratic]:
    """Slope and curvature at u; with ``rotate`` (the plain metric has no axes of its own) along the Hessian's axes."""
    theta = preconditioner.theta(u)
    slope = np.asarray(gradient(target.kernel, theta, *target.arguments))
    curvature = np.asarray(hessian(target.kernel, theta, *target.arguments))
    if rotate:
        _, axes = np.linalg.eigh(curvature)
        preconditioner, u = preconditioner._replace(axes=axes), axes.T @ preconditioner.axes @ np.asarray(u)
    axes, scale = preconditioner.axes, preconditioner.scale
    along = np.einsum("ji,jk,ki->i", axes, curvature, axes)
    return preconditioner, LocalQuadratic(u, scale * (axes.T @ slope), scale**2 * np.maximum(along, 0.0))
