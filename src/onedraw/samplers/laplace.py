"""Where a posterior is densest, and coordinates in which it is nearly a standard normal law there.

θ = mode + root·z, root = S|SHS|^{−1/2} with S the prior's scales and H the Hessian at the mode, its eigenvalues made
positive and kept away from 0: the Laplace approximation. In z a posterior of many records is nearly N(0, I), so that a
chain needs no tuning by hand. The mode is found by Newton's method with a trust region and, for a non-convex
potential, eigenvalues replaced by their size (saddle-free: Dauphin et al., NeurIPS 2014); by L-BFGS where there are
many parameters.

`potential` is one for both kinds of target: U(θ) of a Gibbs or of a β-divergence posterior, infinite outside a ball. The loss
(``kernel``) is the static argument of what is compiled; records, weights and priors are arguments, so that one compilation
serves all data sets of a model and size, and many of them stacked. Where to start and what a large step is come from the
prior, which is public.

Mode and root depend on the records. They only set a start and a scale for chains of which nothing is proven. Nothing
here fails on any record: steps are bounded, and what is not finite gives the prior's own location and scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import ExactnessRefused
from onedraw.models.compute import jax, jit, jnp
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.models.convex.losses import LinearLoss
from onedraw.models.likelihood import beta_target
from onedraw.models.likelihood.beta_target import BetaTarget
from onedraw.models.likelihood.likelihood_model import BetaKernel, Linear, LossKernel, WithLikelihood
from onedraw.models.priors import Gaussian
from onedraw.plans import Potential
from onedraw.samplers.chains import by_column

STARTS = 4
"""Points from which the mode of a target without a linear predictor is looked for."""

PUBLIC_SEED = 20_240_301  # starts drawn from a public prior: the seed protects nothing and makes runs reproducible

LARGEST_POTENTIAL = 1e300

MOST_NEWTON = 60
"""Newton steps at most; from the prior's location a dozen is usual."""

NEWTON_DIMENSION = 64
"""With more parameters a Hessian in every step costs more than it saves."""

MOST_DESCENT = 400
"""L-BFGS iterations at most."""

DENSE_DIMENSION = 1000
"""With more parameters the prior's scales are used as they are."""

LEAST_CURVATURE, LARGEST_CURVATURE = 0.25, 1e16
"""Of the posterior in units of the prior's, along any direction. A Gaussian prior alone contributes 1."""

SETTLED = 1e-8
"""The Newton decrement, in units of the potential, below which the mode is found."""

AT_ONCE = 2**22
"""Records times directions of the Hessian computed side by side."""


class LaplaceApproximation(NamedTuple):
    """θ = mode + root·z."""

    mode: Any
    root: Any

    def theta(self, z: Any) -> Any:
        return self.mode + self.root @ z


def laplace_approximation(target: Potential, arguments: Any = None) -> LaplaceApproximation:
    """Mode and scale of one target, from public starts."""
    location, scale, starts = prior_summary(target)
    arguments = arguments_of(target) if arguments is None else arguments
    if target.dimension <= NEWTON_DIMENSION:
        return LaplaceApproximation(*one_by_newton(target.kernel, starts, location, scale, arguments))
    mode = _descended(target.kernel, starts, location, scale, arguments)
    if target.dimension > DENSE_DIMENSION:
        return LaplaceApproximation(jnp.asarray(mode), jnp.diag(jnp.asarray(scale)))
    return LaplaceApproximation(*_approximation_at(target.kernel, mode, scale, arguments))


def laplace_approximations(targets: Sequence[Potential], arguments: Any) -> LaplaceApproximation:
    """Those of several targets of one model and size, stacked like their ``arguments``."""
    if targets[0].dimension > NEWTON_DIMENSION:
        found = [laplace_approximation(target) for target in targets]
        return LaplaceApproximation(*(jnp.stack(parts) for parts in zip(*found, strict=True)))
    location, scale, starts = prior_summary(targets[0])
    return LaplaceApproximation(*many_by_newton(targets[0].kernel, starts, location, scale, arguments))


def _by_newton(kernel: Any, starts: Any, location: Any, scale: Any, arguments: Any) -> LaplaceApproximation:
    """From each start; the lowest point reached is the mode."""
    points, values, sizes, axes = jax.vmap(lambda start: _newton(kernel, start, scale, arguments))(jnp.asarray(starts))
    best = jnp.argmin(values)
    found = jnp.isfinite(points[best]).all() & (values[best] < jnp.inf)
    mode = jnp.where(found, points[best], jnp.asarray(location))
    return LaplaceApproximation(mode, _root(sizes[best], axes[best], scale))


one_by_newton = jit(0)(_by_newton)


@jit(0)
def many_by_newton(kernel: Any, starts: Any, location: Any, scale: Any, arguments: Any) -> LaplaceApproximation:
    """The same for stacked targets."""
    found: LaplaceApproximation = jax.vmap(lambda own: _by_newton(kernel, starts, location, scale, own))(arguments)
    return found


def _newton(kernel: Any, start: Any, scale: Any, arguments: Any) -> Any:
    """(point, value, sizes, axes) after saddle-free Newton steps in units of the prior's scale, no longer than a trust
    radius. The curvature is that of the last step's start: of the mode, once it is found."""

    def unfinished(state: Any) -> Any:
        _, _, _, _, radius, decrement, step = state
        return (step < MOST_NEWTON) & (radius > 1e-12) & (decrement > SETTLED)

    def body(state: Any) -> Any:
        point, value, _, _, radius, _, step = state
        slope = scale * gradient(kernel, point, arguments)
        sizes, axes = _curvature(kernel, point, scale, arguments)
        along = (axes.T @ slope) / sizes
        decrement = 0.5 * (sizes * along) @ along
        move = -axes @ along
        length = jnp.sqrt(move @ move)
        trial = point + scale * move * jnp.minimum(1.0, radius / jnp.maximum(length, 1e-300))
        there = potential(kernel, trial, arguments)
        better, taken = there < value, jnp.minimum(length, radius)
        point, value = jnp.where(better, trial, point), jnp.where(better, there, value)
        radius = jnp.where(better, jnp.maximum(radius, 3.0 * taken), 0.25 * taken)
        return point, value, sizes, axes, radius, decrement, step + 1

    size = start.shape[0]
    first = (start, potential(kernel, start, arguments), jnp.ones(size), jnp.eye(size), 1.0, jnp.inf, 0)
    return jax.lax.while_loop(unfinished, body, first)[:4]


@jit(0)
def _approximation_at(kernel: Any, mode: Any, scale: Any, arguments: Any) -> LaplaceApproximation:
    sizes, axes = _curvature(kernel, mode, scale, arguments)
    return LaplaceApproximation(mode, _root(sizes, axes, scale))


def _root(sizes: Any, axes: Any, scale: Any) -> Any:
    root = jnp.asarray(scale)[:, None] * ((axes / jnp.sqrt(sizes)) @ axes.T)
    return jnp.where(jnp.isfinite(root).all(), root, jnp.diag(jnp.asarray(scale)))


def _curvature(kernel: Any, point: Any, scale: Any, arguments: Any) -> Any:
    """(sizes, axes): eigenvalues of the Hessian in units of the prior, made positive and bounded, and eigenvectors."""
    matrix = hessian(kernel, point, arguments) * scale[:, None] * scale[None, :]
    matrix = jnp.nan_to_num(0.5 * (matrix + matrix.T), posinf=LARGEST_CURVATURE, neginf=-LARGEST_CURVATURE)
    matrix = jnp.clip(matrix, -1e120, 1e120)
    values, axes = jnp.linalg.eigh(matrix)
    found = jnp.isfinite(values).all() & jnp.isfinite(axes).all()
    sizes = jnp.clip(jnp.abs(values), LEAST_CURVATURE, LARGEST_CURVATURE)
    return jnp.where(found, sizes, 1.0), jnp.where(found, axes, jnp.eye(len(values)))


def hessian(kernel: Any, theta: Any, arguments: tuple[Any, ...]) -> Any:
    """∇²U(θ), direction after direction where all at once would take too much memory."""
    size, records = theta.shape[0], arguments[1].shape[0]
    slope = jax.grad(lambda point: potential(kernel, point, arguments))

    def along(direction: Any) -> Any:
        return jax.jvp(slope, (theta,), (direction,))[1]

    at_once = max(1, AT_ONCE // max(1, records))
    if at_once >= size:
        return jax.vmap(along)(jnp.eye(size))
    return jax.lax.map(along, jnp.eye(size), batch_size=at_once)


@jit(0)
def _value_and_slope(kernel: Any, theta: Any, arguments: Any) -> Any:
    return potential(kernel, theta, arguments), gradient(kernel, theta, arguments)


def _descended(kernel: Any, starts: Any, location: Any, scale: Any, arguments: Any) -> Any:
    """The lowest point L-BFGS reaches, in units of the prior's scale."""

    def objective(point: Any) -> Any:
        value, slope = _value_and_slope(kernel, jnp.asarray(point * scale), arguments)
        return min(float(value), 1e300), np.asarray(slope) * scale

    best, lowest = np.asarray(location), np.inf
    for start in starts:
        from scipy import optimize

        found = optimize.minimize(
            objective, start / scale, jac=True, method="L-BFGS-B", options={"maxiter": MOST_DESCENT}
        )
        if np.isfinite(found.x).all() and found.fun < lowest:
            best, lowest = found.x * scale, float(found.fun)
    return best


# ── the potential ────────────────────────────────────────────────────────────────────────────────────────────────


def arguments_of(target: Potential) -> tuple[Any, ...]:
    """What follows theta in `potential`; the last is the squared radius of the ball."""
    return tuple(jax.tree.map(jnp.asarray, _arguments(target)))


def stacked(targets: Sequence[Potential]) -> tuple[Any, ...]:
    """Those of several targets of one kernel and size along a first axis."""
    # NumPy's: JAX would compile a concatenation for every number of targets
    return tuple(jax.tree.map(lambda *parts: jnp.asarray(np.stack(parts)), *map(_arguments, targets)))


def _arguments(target: Potential) -> tuple[Any, ...]:
    if isinstance(target, BetaTarget):
        numbers = (target.weight, target.beta, *target.model.prior_arguments, math.inf)
    elif isinstance(target, GibbsTarget):
        squared = math.inf if target.radius is None else target.radius**2
        numbers = (target.weight, target.precision, target.location, squared)
    else:
        raise ExactnessRefused(
            f"HMC and NUTS follow the potential of a Gibbs or β-divergence posterior; a {type(target).__name__} has none. "
            "Use Exact() for a law with a closed form, or leave the sampler out."
        )
    kernel: Any = target.kernel
    rows: Any = target.encoded.X
    beta = isinstance(kernel, BetaKernel) and isinstance(kernel.function, Linear) and kernel.function.outputs == 1
    if beta or isinstance(kernel, LinearLoss):  # only ever multiplied by a vector: faster by column (`chains.Columns`)
        rows = by_column(rows)
    return (rows, np.asarray(target.encoded.y), *(np.asarray(number, dtype=np.float64) for number in numbers))


def potential(kernel: Any, theta: Any, arguments: tuple[Any, ...]) -> Any:
    """U(θ), never NaN: what cannot be computed counts as outside."""
    *rest, squared_radius = arguments
    if isinstance(kernel, LossKernel):
        value = beta_target.potential(kernel, theta, *rest)
    else:
        X, y, weight, precision, location = rest
        away = theta - location
        value = weight * kernel.total(theta, X, y) + 0.5 * (precision * away) @ away
    inside = (theta @ theta <= squared_radius) & (value < LARGEST_POTENTIAL)
    return jnp.where(inside, value, jnp.inf)


def gradient(kernel: Any, theta: Any, arguments: tuple[Any, ...]) -> Any:
    """∇U(θ), with 0 for what cannot be computed."""
    return jnp.nan_to_num(jax.grad(potential, argnums=1)(kernel, theta, arguments), posinf=1e150, neginf=-1e150)


def prior_summary(target: Potential) -> tuple[Array, Array, Array]:
    """(location, scale, starts) from the prior alone, the same for every data set."""
    generator = np.random.default_rng(PUBLIC_SEED)
    if isinstance(target, GibbsTarget):
        location, scale = target.location, 1.0 / np.sqrt(target.precision)
        return location, scale, location[None, :]
    model = target.model
    prior = model.prior
    draws = model.draw_prior(generator, 512)
    if isinstance(prior, Gaussian):
        location, scale = prior.location(target.dimension), 1.0 / np.sqrt(prior.precision(target.dimension))
    else:  # quartiles: a heavy tail must not set the scale
        low, location, high = np.quantile(draws, (0.25, 0.5, 0.75), axis=0)
        scale = np.maximum((high - low) / 1.349, 1e-12)
    linear = isinstance(model, WithLikelihood) and isinstance(model.predictor_function, Linear)
    others = draws[: 0 if linear else STARTS - 1]
    return location, scale, np.concatenate([location[None, :], others])
