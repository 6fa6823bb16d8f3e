"""Pairs of Hamiltonian chains that meet, compiled: each moves exactly as `hamiltonian_chain` moves one.

A step shares everything random between the two: the factor on the step size, momentum and uniform of the trajectory
(BlackJAX's coupled HMC, which contracts distances on a nearly normal law), then noise and uniform of the random walk, by
the reflection-maximal coupling of Bou-Rabee, Eberle and Zimmer (Annals of Applied Probability 30, 2020), which proposes
the same point to both as often as any coupling can. Where both accept it they are one, exactly and for good.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onedraw.models.compute import jax, jnp
from onedraw.samplers import blackjax_kernels as kernels
from onedraw.samplers.ahead import advanced
from onedraw.samplers.hamiltonian_chain import (
    Settings,
    chosen,
    drawn,
    hamiltonian_step,
    jitter,
    log_density_in,
    started,
)
from onedraw.samplers.laplace import LaplaceFrame


@partial(jax.jit, static_argnums=0)
def meeting_times(
    kernel: Any, keys: Any, frames: LaplaceFrame, settings: Settings, lag: Any, most_steps: Any, arguments: Any
) -> Any:
    """For each of several stacked targets the coupled steps until a pair met; most_steps + 1 if it did not."""

    def one(key: Any, frame: LaplaceFrame, own: Any) -> Any:
        return meeting_time(key, log_density_in(kernel, frame, own), frame.mode.shape[0], settings, lag, most_steps)

    return jax.vmap(one)(keys, frames, arguments)


@partial(jax.jit, static_argnums=0)
def meeting_times_on_one(
    kernel: Any, keys: Any, frame: LaplaceFrame, settings: Settings, lag: Any, most_steps: Any, arguments: Any
) -> Any:
    """The same for several pairs on one target."""
    log_density = log_density_in(kernel, frame, arguments)
    size = frame.mode.shape[0]
    return jax.vmap(lambda key: meeting_time(key, log_density, size, settings, lag, most_steps))(keys)


def meeting_time(key: Any, log_density: Any, dimension: int, settings: Settings, lag: Any, most_steps: Any) -> Any:
    """τ − L: the first chain runs ``lag`` steps alone, then both together until they are one."""
    first_key, second_key, alone, together = jax.random.split(key, 4)

    def draw(number: Any) -> Any:
        return drawn(jax.random.fold_in(alone, number), dimension, walks=True)

    def lead(state: Any, given: Any) -> Any:
        return hamiltonian_step(given, state, log_density, settings)[0]

    def apart(carried: Any) -> Any:
        _, _, met, steps = carried
        return ~met & (steps < most_steps)

    def step(carried: Any) -> Any:
        first, second, _, steps = carried
        pair = coupled_step(jax.random.fold_in(together, steps), first, second, log_density, settings)
        return *pair, steps + 1

    first = advanced(started(first_key, log_density, dimension), lag, draw=draw, step=lead)
    second = started(second_key, log_density, dimension)
    _, _, met, steps = jax.lax.while_loop(apart, step, (first, second, False, 0))
    return jnp.where(met, steps, most_steps + 1)


def coupled_step(key: Any, first: Any, second: Any, log_density: Any, settings: Settings) -> Any:
    """(first, second, met) after one step each, `hamiltonian_step` for either of them alone."""
    jitter_key, hmc_key, walk_key = jax.random.split(key, 3)
    step_size = settings.step_size * jitter(jitter_key)
    first, second = kernels.coupled_hmc_step(
        hmc_key, first, second, log_density, step_size=step_size, leapfrog=settings.leapfrog
    )
    return _walked_together(walk_key, first, second, log_density, settings.walk)


def _walked_together(key: Any, first: Any, second: Any, log_density: Any, walk: Any) -> Any:
    """Maximally coupled proposals, one uniform for both acceptances."""
    noise_key, same_key, chance_key = jax.random.split(key, 3)
    noise = jax.random.normal(noise_key, first.position.shape)
    apart = (first.position - second.position) / walk
    # the same point with probability min(1, φ(noise + apart)/φ(noise)), else the noise mirrored along their difference
    same = _log_uniform(same_key) <= -(noise @ apart) - 0.5 * (apart @ apart)
    along = apart / jnp.maximum(jnp.sqrt(apart @ apart), 1e-300)
    mirrored = second.position + walk * (noise - 2.0 * (along @ noise) * along)
    to_first = kernels.state_at(first.position + walk * noise, log_density)
    to_second = chosen(same, to_first, kernels.state_at(mirrored, log_density))
    chance = _log_uniform(chance_key)
    moves_first = chance <= to_first.logdensity - first.logdensity
    moves_second = chance <= to_second.logdensity - second.logdensity
    first, second = chosen(moves_first, to_first, first), chosen(moves_second, to_second, second)
    return first, second, jnp.all(first.position == second.position)


def _log_uniform(key: Any) -> Any:
    return jnp.log(jax.random.uniform(key, minval=np.finfo(np.float64).tiny))
