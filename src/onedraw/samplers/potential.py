"""One potential for both kinds of target: U(θ) of a Gibbs or of a β-divergence posterior, infinite outside a ball.

The loss (``kernel``) is the static argument of what is compiled; records, weights and priors are arguments, so that one
compilation serves all data sets of a model and size, and many of them stacked. Where to start and what a large step is
come from the prior, which is public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import ExactnessRefused
from onedraw.models.compute import jax, jnp
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.models.convex.losses import LinearLoss
from onedraw.models.likelihood.beta_target import BetaTarget
from onedraw.models.likelihood.likelihood_model import BetaKernel, LossKernel
from onedraw.models.likelihood.predictors import Linear
from onedraw.models.priors import Gaussian
from onedraw.samplers.columns import Columns

Array = NDArray[np.float64]

STARTS = 4
"""Points from which the mode of a target without a linear predictor is looked for."""

PUBLIC_SEED = 20_240_301  # starts drawn from a public prior: the seed protects nothing and makes runs reproducible

LARGEST_POTENTIAL = 1e300


def arguments_of(target: Any) -> tuple[Any, ...]:
    """What follows theta in `potential`; the last is the squared radius of the ball."""
    return tuple(jax.tree.map(jnp.asarray, _arguments(target)))


def stacked(targets: Sequence[Any]) -> tuple[Any, ...]:
    """Those of several targets of one kernel and size along a first axis."""
    # NumPy's: JAX would compile a concatenation for every number of targets
    return tuple(jax.tree.map(lambda *parts: jnp.asarray(np.stack(parts)), *map(_arguments, targets)))


def _arguments(target: Any) -> tuple[Any, ...]:
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
    rows: Any = target.encoded.X
    if _one_linear_predictor(target.kernel):
        rows = Columns(np.ascontiguousarray(rows.T))
    return (rows, np.asarray(target.encoded.y), *(np.asarray(number, dtype=np.float64) for number in numbers))


def _one_linear_predictor(kernel: Any) -> bool:
    """Whether rows are only ever multiplied by a vector: then they are kept by column, which is faster (`columns`)."""
    if isinstance(kernel, BetaKernel):
        return isinstance(kernel.function, Linear) and kernel.function.outputs == 1
    return isinstance(kernel, LinearLoss)


def potential(kernel: Any, theta: Any, arguments: tuple[Any, ...]) -> Any:
    """U(θ), never NaN: what cannot be computed counts as outside."""
    *rest, squared_radius = arguments
    if isinstance(kernel, LossKernel):
        X, y, weight, beta, *prior = rest
        value = weight * kernel.losses(theta, X, y, beta).sum() + kernel.negative_log_prior(theta, *prior)
    else:
        X, y, weight, precision, location = rest
        away = theta - location
        value = weight * kernel.total(theta, X, y) + 0.5 * (precision * away) @ away
    inside = (theta @ theta <= squared_radius) & (value < LARGEST_POTENTIAL)
    return jnp.where(inside, value, jnp.inf)


def gradient(kernel: Any, theta: Any, arguments: tuple[Any, ...]) -> Any:
    """∇U(θ), with 0 for what cannot be computed."""
    return jnp.nan_to_num(jax.grad(potential, argnums=1)(kernel, theta, arguments), posinf=1e150, neginf=-1e150)


def prior_picture(target: Any) -> tuple[Array, Array, Array]:
    """(location, scale, starts) from the prior alone, the same for every data set."""
    generator = np.random.default_rng(PUBLIC_SEED)
    if isinstance(target, GibbsTarget):
        location, scale = target.location, 1.0 / np.sqrt(target.precision)
        return location, scale, location[None, :]
    model = target.model
    prior = getattr(model, "prior", None)
    draws = model.draw_prior(generator, 512)
    if isinstance(prior, Gaussian):
        location, scale = prior.location(target.dimension), 1.0 / np.sqrt(prior.precision(target.dimension))
    else:  # quartiles: a heavy tail must not set the scale
        low, location, high = np.quantile(draws, (0.25, 0.5, 0.75), axis=0)
        scale = np.maximum((high - low) / 1.349, 1e-12)
    linear = isinstance(getattr(model, "predictor_function", None), Linear)
    others = draws[: 0 if linear else STARTS - 1]
    return location, scale, np.concatenate([location[None, :], others])
