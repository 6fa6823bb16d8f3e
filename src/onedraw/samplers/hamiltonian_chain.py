"""Hamiltonian chains, compiled: a fixed number of steps in the Laplace frame, whatever the records are.

Everything about the records, step sizes and lengths are arguments; one compilation serves all targets of a loss and
size. Keys and numbers of many steps are made ahead (`ahead`); what BlackJAX draws from a trajectory's key it draws in its step.
How often proposals were accepted depends on the records: it stays with the curator.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onedraw.models.compute import jax, jnp
from onedraw.samplers import blackjax_kernels as kernels
from onedraw.samplers.ahead import advanced
from onedraw.samplers.hamiltonian import HMC, NUTS, default_step_size
from onedraw.samplers.laplace import LaplaceFrame, laplace_frame, laplace_frames
from onedraw.samplers.potential import arguments_of, potential, stacked
from onedraw.samplers.sample import Sample

AT_ONCE = 2**16
"""Records times chains advanced side by side; more chains than that go one group after the other."""

JITTER = 0.2
"""Each trajectory's step size is the chain's times a factor in 1 ± this: no direction resonates."""


class Settings(NamedTuple):
    """The numbers of a Hamiltonian step."""

    step_size: Any
    leapfrog: Any
    walk: Any


def run_hmc(sampler: HMC, target: Any, key: Any, *, size: int) -> Sample:
    arguments = arguments_of(target)
    frame = laplace_frame(target, arguments)
    draws, accepted = _hmc_chains(
        target.kernel, sampler.walk > 0.0, chains_at_once(size, target.encoded.n), jax.random.split(key, size), frame,
        Settings(*sampler.settings(target.dimension)), sampler.steps, arguments,
    )  # fmt: skip
    return Sample(np.asarray(draws), {"acceptance": float(accepted.mean())})


def run_nuts(sampler: NUTS, target: Any, key: Any, *, size: int) -> Sample:
    arguments = arguments_of(target)
    frame = laplace_frame(target, arguments)
    step_size = sampler.step_size or default_step_size(target.dimension)
    draws, accepted, adapted = _nuts_chains(
        target.kernel, sampler.doublings, sampler.warmup > 0, chains_at_once(size, target.encoded.n),
        jax.random.split(key, size), frame, step_size, sampler.warmup, sampler.steps, arguments,
    )  # fmt: skip
    return Sample(np.asarray(draws), {"acceptance": float(accepted.mean()), "step_size": float(adapted.mean())})


def run_fits(sampler: HMC, targets: Any, key: Any) -> NDArray[np.float64]:
    """One draw for each of several targets of one model and size, all in one call."""
    arguments = stacked(targets)
    frames, first = laplace_frames(targets, arguments), targets[0]
    return np.asarray(
        _hmc_fits(
            first.kernel, sampler.walk > 0.0, jax.random.split(key, len(targets)), frames,
            Settings(*sampler.settings(first.dimension)), sampler.steps, arguments,
        )
    )  # fmt: skip


def chains_at_once(size: int, records: int) -> int:
    return max(1, min(size, AT_ONCE // max(1, records)))


def log_density_in(kernel: Any, frame: LaplaceFrame, arguments: tuple[Any, ...]) -> Any:
    """z ↦ −U(mode + root·z)."""
    return lambda z: -potential(kernel, frame.theta(z), arguments)


def started(key: Any, log_density: Any, dimension: int) -> Any:
    """A state drawn from the Laplace approximation; at the mode where that lies outside the prior's ball."""
    point = jax.random.normal(key, (dimension,))
    return kernels.state_at(jnp.where(jnp.isfinite(log_density(point)), point, 0.0), log_density)


class Drawn(NamedTuple):
    """What is random of a step: the step size's factor, the trajectory's key, and the walk's noise and log-uniform."""

    factor: Any
    trajectory: Any
    noise: Any = None
    chance: Any = None


def drawn(key: Any, dimension: int, *, walks: bool) -> Drawn:
    jitter_key, hmc_key, walk_key = jax.random.split(key, 3)
    factor = jitter(jitter_key)
    if not walks:
        return Drawn(factor, hmc_key)
    noise_key, chance_key = jax.random.split(walk_key)
    chance = jnp.log(jax.random.uniform(chance_key, minval=np.finfo(np.float64).tiny))
    return Drawn(factor, hmc_key, jax.random.normal(noise_key, (dimension,)), chance)


def hamiltonian_step(given: Drawn, state: Any, log_density: Any, settings: Settings) -> Any:
    """(state, acceptance probability): one jittered trajectory, then the random walk if noise for it was drawn."""
    step_size = settings.step_size * given.factor
    state, accepted = kernels.hmc_step(
        given.trajectory, state, log_density, step_size=step_size, leapfrog=settings.leapfrog
    )
    return (state if given.noise is None else _walked(given, state, log_density, settings.walk)), accepted


def jitter(key: Any) -> Any:
    return jax.random.uniform(key, minval=1.0 - JITTER, maxval=1.0 + JITTER)


def _walked(given: Drawn, state: Any, log_density: Any, walk: Any) -> Any:
    """One step of random-walk Metropolis."""
    proposal = kernels.state_at(state.position + walk * given.noise, log_density)
    return chosen(given.chance <= proposal.logdensity - state.logdensity, proposal, state)


def chosen(condition: Any, first: Any, second: Any) -> Any:
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), first, second)


def _ended(frame: LaplaceFrame, state: Any) -> Any:
    """θ where the chain ended. No record may make it anything but a number."""
    theta = frame.theta(state.position)
    return jnp.where(jnp.isfinite(theta).all(), theta, frame.mode)


def _hmc_chain(
    kernel: Any, walks: bool, key: Any, frame: LaplaceFrame, settings: Settings, steps: Any, arguments: Any
) -> Any:
    log_density = log_density_in(kernel, frame, arguments)
    first, rest = jax.random.split(key)
    dimension = frame.mode.shape[0]

    def draw(number: Any) -> Drawn:
        return drawn(jax.random.fold_in(rest, number), dimension, walks=walks)

    def step(carried: Any, given: Drawn) -> Any:
        state, total = carried
        state, accepted = hamiltonian_step(given, state, log_density, settings)
        return state, total + accepted

    state, total = advanced((started(first, log_density, dimension), 0.0), steps, draw=draw, step=step)
    return _ended(frame, state), total / steps


@partial(jax.jit, static_argnums=(0, 1, 2))
def _hmc_chains(
    kernel: Any, walks: bool, at_once: int, keys: Any, frame: LaplaceFrame, settings: Settings, steps: Any,
    arguments: Any,
) -> Any:  # fmt: skip
    def chain(key: Any) -> Any:
        return _hmc_chain(kernel, walks, key, frame, settings, steps, arguments)

    # One chain alone stays matrix–vector products, which are faster than products with a one-column matrix.
    return jax.lax.map(chain, keys, batch_size=at_once if at_once > 1 else None)


@partial(jax.jit, static_argnums=(0, 1))
def _hmc_fits(
    kernel: Any, walks: bool, keys: Any, frames: LaplaceFrame, settings: Settings, steps: Any, arguments: Any
) -> Any:
    def fit(key: Any, frame: LaplaceFrame, own: Any) -> Any:
        return _hmc_chain(kernel, walks, key, frame, settings, steps, own)[0]

    return jax.vmap(fit)(keys, frames, arguments)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _nuts_chains(
    kernel: Any, doublings: int, adapts: bool, at_once: int, keys: Any, frame: LaplaceFrame, step_size: Any,
    warmup: Any, steps: Any, arguments: Any,
) -> Any:  # fmt: skip
    log_density = log_density_in(kernel, frame, arguments)

    def chain(key: Any) -> Any:
        first, warm, rest = jax.random.split(key, 3)
        state, size = started(first, log_density, frame.mode.shape[0]), jnp.asarray(step_size, dtype=float)
        if adapts:
            state, size = _warmed_up(warm, state, log_density, size, doublings=doublings, warmup=warmup)

        def draw(number: Any) -> Any:
            jitter_key, nuts_key = jax.random.split(jax.random.fold_in(rest, number))
            return jitter(jitter_key), nuts_key

        def step(carried: Any, given: Any) -> Any:
            (state, total), (factor, nuts_key) = carried, given
            state, accepted = kernels.nuts_step(
                nuts_key, state, log_density, step_size=size * factor, doublings=doublings
            )
            return state, total + accepted

        state, total = advanced((state, 0.0), steps, draw=draw, step=step)
        return _ended(frame, state), total / steps, size

    return jax.lax.map(chain, keys, batch_size=at_once if at_once > 1 else None)


def _warmed_up(key: Any, state: Any, log_density: Any, step_size: Any, *, doublings: int, warmup: Any) -> Any:
    """(state, step size) after dual averaging for a public number of steps."""

    def step(carried: Any, nuts_key: Any) -> Any:
        state, adaptation = carried
        state, accepted = kernels.nuts_step(
            nuts_key, state, log_density,
            step_size=kernels.current_step_size(adaptation), doublings=doublings,
        )  # fmt: skip
        return state, kernels.adaptation_update(adaptation, accepted)

    start = (state, kernels.adaptation_start(step_size))
    state, adaptation = advanced(start, warmup, draw=lambda number: jax.random.fold_in(key, number), step=step)
    return state, jnp.clip(kernels.adapted_step_size(adaptation), 1e-6, 2.0)
