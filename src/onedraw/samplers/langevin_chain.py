"""Langevin chains, compiled: a fixed number of steps, the same whatever the records are; their noise is drawn ahead (`ahead`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models.compute import jax, jnp
from onedraw.models.convex.potential import gradient
from onedraw.samplers.ahead import AHEAD, advanced
from onedraw.samplers.columns import arguments_for
from onedraw.samplers.preconditioner import minimum, plain_frame
from onedraw.samplers.variates import normal

AT_ONCE = 2**16
"""Records times chains advanced side by side; more chains than that go one group after the other."""


def from_location(target: Any, key: Any, *, steps: int, step_size: float, size: int) -> NDArray[np.float64]:
    """The last iterates from the prior's location, which lies in the ball if there is one."""
    starts = jnp.broadcast_to(jnp.asarray(target.location), (size, target.dimension))
    return _last_iterates(target, key, starts, steps=steps, step_size=step_size)


def from_minimum(
    target: Any, key: Any, *, steps: int, step_size: float, size: int, share: float
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """The last iterates from N(x̂, I/M), within total variation ``share`` of N(θ*, I/M).

    Two such laws are within √M‖x̂ − θ*‖/√(2π) of each other, and ‖x̂ − θ*‖ ≤ ‖∇U(x̂)‖/m; a step brings laws no
    further apart. So ‖∇U(x̂)‖²/(2m) ≤ π·m·share²/M will do.
    """
    strong, smooth = target.strong_convexity, target.smoothness
    nearest, noticed = minimum(
        plain_frame(target), target, strong_convexity=strong, smoothness=smooth,
        tolerance=np.pi * strong * share**2 / smooth,
    )  # fmt: skip
    start_key, chain_key = jax.random.split(key)
    starts = nearest + normal(start_key, (size, target.dimension)) / np.sqrt(smooth)
    return _last_iterates(target, chain_key, starts, steps=steps, step_size=step_size), noticed


def _last_iterates(target: Any, key: Any, starts: Any, *, steps: int, step_size: float) -> NDArray[np.float64]:
    size = len(starts)
    at_once = max(1, min(size, AT_ONCE // max(1, target.encoded.n)))
    radius = np.inf if target.radius is None else target.radius
    keys = jax.random.split(key, size)
    return np.asarray(_chains(target.kernel, at_once, keys, starts, steps, step_size, radius, arguments_for(target)))


@partial(jax.jit, static_argnums=(0, 1))
def _chains(
    kernel: Any, at_once: int, keys: Any, starts: Any, steps: Any, step_size: Any, radius: Any, arguments: Any
) -> Any:
    deviation = jnp.sqrt(2.0 * step_size)

    def step(theta: Any, noise: Any) -> Any:
        moved = theta - step_size * gradient(kernel, theta, *arguments) + deviation * noise
        return moved * jnp.minimum(1.0, radius / jnp.sqrt(moved @ moved))

    def chain(key_and_start: Any) -> Any:
        key, start = key_and_start
        return stepped(key, start, steps, step)

    # One chain alone stays matrix–vector products, which are faster than products with a one-column matrix.
    return jax.lax.map(chain, (keys, starts), batch_size=at_once if at_once > 1 else None)


def noise_ahead(key: Any, first: Any, shape: tuple[int, ...]) -> Any:
    """The noise of `AHEAD` steps from the one numbered ``first``."""
    return jax.vmap(lambda number: normal(jax.random.fold_in(key, number), shape))(first + jnp.arange(AHEAD))


def stepped(key: Any, start: Any, steps: Any, step: Callable[[Any, Any], Any]) -> Any:
    """``steps`` times θ ← step(θ, noise), inside compiled code."""
    return advanced(start, steps, draw=lambda number: normal(jax.random.fold_in(key, number), start.shape), step=step)
