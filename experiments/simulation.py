"""Simulation at speed: one draw of each of thousands of posteriors, by Hamiltonian chains. Never private: seeds are given.

    thetas = draws(targets, seeds, NETWORK).thetas    # (m, d): one draw of each of m posteriors

A target is what a plan makes of records, `plan.target(model.summarise((X, y)))`: the very posterior that a release
draws from; `potentials.py` has what is compiled of it. Minima of convex targets are `simulated_fits.simulated_minima`, and
all of a posterior of two parameters is `grids.exact_posterior`.

Chunks are as large as memory asks for: on a processor so small that a chunk's work stays in the cache, where one
chain after the other is faster than many side by side; on an accelerator, which JAX finds by itself, as large as its
memory allows.

Chains (Neal 2011; Hoffman and Gelman 2014 for the step size): a descent from a draw of the prior, coordinates in
which the posterior is nearly N(0, I) there (the Hessian's eigenvalues made positive), warm-up; then such coordinates
where the chain is now, warm-up, and steps of a fixed size. The state after the last is the draw. In 32 bits where
asked for: that halves the time or better, and a potential of 10⁴ is then known to 10⁻², far below what decides a
step.

**Nothing proves that a chain has arrived.** Logistic posteriors are held against quadrature in the tests. Networks of
ten units, five features, 60 chains on one data set, `NETWORK` against chains of ten times as many gradients: test
errors agree within 2.2 standard errors at n = 1,000, ε = 1 and 20, and at n = 10,000, ε = 1. **At n = 10,000 and ε =
20 they do not**: RMSE 0.68 against 0.53 for regression (half of the long chains have found the curve, 5 % of the
short ones), accuracy 0.9084 against 0.9092; no length that was tried was enough. A study that goes there must say so,
and compare two efforts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.potentials import Array, chunk, height_of, mapped, stacked
from onedraw.models.compute import jax, jnp

CALL = 128
"""Chains of one call of a program."""

WORKING = 8
"""Arrays of a network's or a loss's size that a gradient keeps alive, about."""

LEAST_CURVATURE, LARGEST_CURVATURE = 0.25, 1e12
"""Of the potential in units of the prior's, along any direction."""

ACCEPTANCE, JITTER = 0.9, 0.2


class Effort(NamedTuple):
    """How much a chain does: steps of descent, Hamiltonian steps before and in between, and leapfrogs of each."""

    descent: int
    warmup: int
    steps: int
    leapfrog: int

    @property
    def gradients(self) -> int:
        return self.descent + (2 * self.warmup + self.steps) * self.leapfrog


GLM = Effort(descent=200, warmup=40, steps=60, leapfrog=8)
NETWORK = Effort(descent=800, warmup=100, steps=100, leapfrog=16)


class Draws(NamedTuple):
    """One draw of each posterior, in the model's unconstrained coordinates, and the share of accepted steps."""

    thetas: Array
    acceptance: Array


def draws(targets: Sequence[Any], seeds: Sequence[int], effort: Effort = GLM, *, single: bool = False) -> Draws:
    """A chain for each target, of its own seed; ``single``: in 32 bits."""
    rows, which, numbers = stacked(targets)
    floats = np.float32 if single else np.float64
    drawn = zip(*(_randomness(*one, effort) for one in zip(targets, seeds, strict=True)), strict=True)
    own = (jnp.asarray(which), *(jnp.asarray(np.array(one, dtype=floats)) for one in (*drawn, *numbers)))
    shared = [jnp.asarray(one, dtype=floats) for one in (rows.X, rows.y, *_prior(targets[0]))]
    prepared = (rows._replace(X=shared[0], y=shared[1]), *shared[2:])
    at_once = chunk(rows.X[0, 0].size * _blocks(targets[0]) * np.dtype(floats).itemsize * WORKING)
    calls = [range(first, min(first + CALL, len(targets))) for first in range(0, len(targets), CALL)]
    parts = [_call(targets[0].kernel, effort, at_once, prepared, own, np.array(places)) for places in calls]
    return Draws(*(np.concatenate(one) for one in zip(*parts, strict=True)))


def _call(kernel: Any, effort: Effort, at_once: int, shared: Any, own: Any, places: Any) -> Any:
    """Some of the chains, filled up to a power of two: how many there are is no part of a program."""
    filled = np.resize(places, 2 ** math.ceil(math.log2(len(places))))
    found = _chains(kernel, effort, at_once, shared, len(places), *(one[filled] for one in own))
    return tuple(np.asarray(one, dtype=np.float64)[: len(places)] for one in found)


def _prior(target: Any) -> tuple[Any, Any]:
    """Location and scale of each coordinate, of the prior alone."""
    if not hasattr(target.kernel, "negative_log_prior"):
        return np.asarray(target.location), 1.0 / np.sqrt(np.asarray(target.precision))
    low, middle, high = np.quantile(target.model.draw_prior(np.random.default_rng(0), 1024), (0.25, 0.5, 0.75), axis=0)
    return middle, (high - low) / 1.349


def _randomness(target: Any, seed: int, effort: Effort) -> tuple[Array, Array, Array]:
    """A start from the prior; of each step its momentum, its factor of the step size and its coin. Drawn here, since a generator
    inside would take longer to compile than everything else."""
    generator = np.random.default_rng(seed)
    if hasattr(target.kernel, "negative_log_prior"):
        start = target.model.draw_prior(generator, 1)[0]
    else:
        location, scale = _prior(target)
        start = location + scale * generator.standard_normal(target.dimension)
    count = 2 * effort.warmup + effort.steps
    factors = generator.uniform(1.0 - JITTER, 1.0 + JITTER, count)
    return start, generator.standard_normal((count, len(start))), np.column_stack([factors, generator.random(count)])


def _blocks(target: Any) -> int:
    """Numbers for each entry of a row that a gradient works with: the hidden units of a network."""
    return int(getattr(target.model, "hidden", 1))


# ── chains ───────────────────────────────────────────────────────────────────────────────────────────────────────


@partial(jax.jit, static_argnums=(0, 1, 2))
def _chains(kernel: Any, effort: Effort, at_once: int, shared: Any, count: Any, *own: Any) -> Any:
    rows, location, scale = shared

    def one(own: Any) -> Any:
        place, start, *drawn = own[:4]
        return _chain(height_of(kernel, rows, place, own[4:]), effort, drawn, start, location, scale)

    return mapped(one, own, at_once, count)


def _chain(height: Any, effort: Effort, drawn: Any, start: Any, location: Any, scale: Any) -> Any:
    """(the last state, the share of accepted steps of a fixed size). Both phases are one loop: compiled once."""
    theta = _descended(height, effort.descent, start, location, scale)
    size = jnp.asarray(0.5 * len(start) ** -0.25, dtype=start.dtype)

    def phase(carried: Any, given: Any) -> Any:
        (theta, size), (first, steps) = carried, given
        theta, size, accepted = _steps(height, effort, (first, steps, *drawn), theta, scale, size)
        return (theta, size), accepted

    lengths = jnp.array([effort.warmup, effort.warmup + effort.steps])
    (theta, _), accepted = jax.lax.scan(phase, (theta, size), (jnp.array([0, effort.warmup]), lengths))
    return theta, accepted[-1] / effort.steps


def _descended(height: Any, steps: int, start: Any, location: Any, scale: Any) -> Any:
    """Adam (Kingma and Ba 2015) in units of the prior, its rate falling from a tenth to nothing."""

    def step(number: Any, state: Any) -> Any:
        z, mean, square = state
        gradient = _finite(scale * height(location + scale * z)[1])
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        rate = 0.1 * (1.0 - number / steps)
        corrected = mean / (1.0 - 0.9 ** (number + 1.0)), square / (1.0 - 0.99 ** (number + 1.0))
        moved = z - rate * corrected[0] / (jnp.sqrt(corrected[1]) + 1e-8)
        return moved.astype(z.dtype), mean.astype(z.dtype), square.astype(z.dtype)

    begin = (start - location) / scale
    z, _, _ = jax.lax.fori_loop(0, steps, step, (begin, jnp.zeros_like(begin), jnp.zeros_like(begin)))
    return jnp.where(jnp.isfinite(z).all(), location + scale * z, start)


def _bent(height: Any, theta: Any) -> Any:
    """(value, slope, Hessian)."""
    directions = jnp.eye(len(theta), dtype=theta.dtype)
    (values, slopes), (_, rows) = jax.lax.map(lambda one: jax.jvp(height, (theta,), (one,)), directions)
    return values[0], slopes[0], rows


def _root(rows: Any, scale: Any) -> Any:
    """S|SHS|^{−1/2}: the square root of a covariance, from the Hessian."""
    matrix = _finite(0.5 * (rows + rows.T) * scale[:, None] * scale[None, :])
    values, axes = jnp.linalg.eigh(matrix)
    sizes = jnp.clip(jnp.abs(values), LEAST_CURVATURE, LARGEST_CURVATURE)
    root = scale[:, None] * ((axes / jnp.sqrt(sizes)) @ axes.T)
    return jnp.where(jnp.isfinite(root).all(), root, jnp.diag(scale))


class _State(NamedTuple):
    """Of a chain in z = root⁻¹(θ − centre), and of its step size (Hoffman and Gelman, Algorithm 5)."""

    z: Any
    value: Any
    slope: Any
    log_size: Any
    average: Any
    error: Any
    accepted: Any


def _steps(height: Any, effort: Effort, drawn: Any, centre: Any, scale: Any, size: Any) -> Any:
    """(θ, step size, sum of acceptance) after so many Hamiltonian steps, which adapt their size for as long as warm-up lasts."""
    first, steps, momenta, coins = drawn
    value, slope, rows = _bent(height, centre)
    root, anchor = _root(rows, scale), jnp.log(10.0 * size)

    def in_coordinates(value: Any, slope: Any) -> tuple[Any, Any]:
        return jnp.where(jnp.isnan(value), jnp.inf, value), _finite(slope @ root)

    def along(z: Any) -> tuple[Any, Any]:
        return in_coordinates(*height(centre + root @ z))

    def step(number: Any, state: _State) -> _State:
        warm = number < effort.warmup
        momentum, (factor, coin) = momenta[first + number], coins[first + number]
        length = factor * jnp.exp(jnp.where(warm, state.log_size, state.average))
        z, ended, value, slope = _trajectory(along, effort.leapfrog, length, state, momentum)
        change = state.value - value + 0.5 * (momentum @ momentum - ended @ ended)
        probability = jnp.nan_to_num(jnp.exp(jnp.minimum(change, 0.0)))
        taken = coin < probability
        moved = [jnp.where(taken, new, old) for new, old in ((z, state.z), (value, state.value), (slope, state.slope))]
        fixed, new = (state.log_size, state.average, state.error), _adapted(state, probability, anchor, number)
        adapted = [jnp.where(warm, *pair) for pair in zip(new, fixed, strict=True)]
        accepted = state.accepted + jnp.where(warm, 0.0, probability)
        return _State._make([*moved, *adapted, accepted])

    zero = jnp.zeros((), dtype=centre.dtype)
    begin = _State(jnp.zeros_like(centre), *in_coordinates(value, slope), jnp.log(size), jnp.log(size), zero, zero)
    end = jax.lax.fori_loop(0, steps, step, begin)
    return centre + root @ end.z, jnp.exp(end.average), end.accepted


def _trajectory(along: Any, leapfrog: int, length: Any, state: _State, momentum: Any) -> Any:
    def leap(_: Any, carried: Any) -> Any:
        z, push, _, slope = carried
        push = push - 0.5 * length * slope
        z = z + length * push
        value, slope = along(z)
        return z, push - 0.5 * length * slope, value, slope

    return jax.lax.fori_loop(0, leapfrog, leap, (state.z, momentum, state.value, state.slope))


def _finite(slope: Any) -> Any:
    return jnp.nan_to_num(slope, posinf=0.0, neginf=0.0)


def _adapted(state: _State, probability: Any, anchor: Any, number: Any) -> Any:
    """Dual averaging: (log step size, its average, the error so far)."""
    count = (number + 1.0).astype(state.z.dtype)
    error = (1.0 - 1.0 / (count + 10.0)) * state.error + (ACCEPTANCE - probability) / (count + 10.0)
    log_size = jnp.clip(anchor - jnp.sqrt(count) / 0.05 * error, -12.0, 1.0)
    share = count**-0.75
    return log_size, share * log_size + (1.0 - share) * state.average, error
