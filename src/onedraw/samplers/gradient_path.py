"""Paths of noisy gradients whose sums over records are whole numbers: T steps, the same whatever the records are.

    θ ← Π(θ − h(w·Σ∇ℓ + Λ(θ − a)) + √(2h) ξ),        Σ∇ℓ in steps of a public lattice (`onedraw.models.sums.row_lattice`)

Where the records are in memory, all steps are one compiled loop. Otherwise (a cluster, a file that is larger) each step is one
pass, `records.sum`: the same integers, the same noise, the same arithmetic on them, and so the same path.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models.compute import check_arithmetic, jax, jnp
from onedraw.models.sums.gradient_sums import GradientSums, steps_of
from onedraw.samplers.ahead import AHEAD
from onedraw.samplers.langevin_chain import AT_ONCE, noise_ahead, stepped


def last_iterates(target: Any, key: Any, *, steps: int, step_size: float, size: int) -> NDArray[np.float64]:
    """``size`` paths from the prior's location, each with a key of its own."""
    check_arithmetic()
    keys = jax.random.split(key, size)
    radius = np.inf if target.radius is None else target.radius
    public = (target.weight, target.precision, target.location, steps_of(target.lattice), step_size, radius)
    numbers = tuple(jnp.asarray(number) for number in public)
    if target.segments is None:
        return np.array([_by_passes(target, one, numbers, steps) for one in keys])
    at_once = max(1, min(size, AT_ONCE // max(1, target.encoded.n)))
    start = jnp.asarray(target.location)
    return np.asarray(_compiled(target.gradient_sums, at_once, keys, start, steps, numbers, target.segments))


def _by_passes(target: Any, key: Any, numbers: tuple[Any, ...], steps: int) -> NDArray[np.float64]:
    theta, noise = np.asarray(target.location), np.zeros((0, 0))
    for number in range(steps):
        if number % AHEAD == 0:
            noise = _noise(key, number, target.dimension)
        total = target.rows.sum(target.gradient_sums, theta)
        theta = np.asarray(_moved(theta, total.astype(np.float64), noise[number % AHEAD], *numbers))
    return theta


_noise = jax.jit(lambda key, first, dimension: noise_ahead(key, first, (dimension,)), static_argnums=2)


@jax.jit
def _moved(
    theta: Any, total: Any, noise: Any, weight: Any, precision: Any, location: Any, units: Any, step_size: Any, radius: Any
) -> Any:  # fmt: skip
    gradient = weight * (total * units) + precision * (theta - location)
    moved = theta - step_size * gradient + jnp.sqrt(2.0 * step_size) * noise
    return moved * jnp.minimum(1.0, radius / jnp.sqrt(moved @ moved))


@partial(jax.jit, static_argnums=(0, 1))
def _compiled(
    sums: GradientSums, at_once: int, keys: Any, start: Any, steps: Any, numbers: Any, records: Any
) -> Any:  # fmt: skip
    def total(theta: Any) -> Any:
        """Each segment's sum is exact as it is; several are added as integers, and rounded once."""
        first, *more = (sums.of_rows(rows, y, theta) for rows, y in records)
        if not more:
            return first
        return sum((part.astype(jnp.int64) for part in more), start=first.astype(jnp.int64)).astype(jnp.float64)

    def path(key: Any) -> Any:
        return stepped(key, start, steps, lambda theta, noise: _moved(theta, total(theta), noise, *numbers))

    return jax.lax.map(path, keys, batch_size=at_once if at_once > 1 else None)
