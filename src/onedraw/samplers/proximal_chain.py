"""The chain of the proximal sampler, compiled: the statements are in `proximal`, the frame in `frame`.

Compiled once for a loss, a shape and a number of chains at once; step, iterations and everything about the records
are arguments. How many tries a step takes depends on the records: it stays with the curator.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jax.scipy.special import log_ndtr, ndtr, ndtri

from onedraw.models.compute import jax, jnp
from onedraw.samplers.ahead import advanced
from onedraw.samplers.ball import Tilt, best_tilt, into_ball, log_acceptance, peak_on_ball, proposed
from onedraw.samplers.columns import arguments_for
from onedraw.samplers.preconditioner import (
    Frame,
    Surroundings,
    minimum,
    plain_frame,
    preconditioned_frame,
    slope_in,
    surroundings,
    value_in,
)
from onedraw.samplers.proximal import Geometry, start_tolerance
from onedraw.samplers.sample import Sample
from onedraw.samplers.variates import normal, variates

AT_ONCE = 2**16
"""Records times chains advanced side by side; more chains than that go one group after the other."""

FAR = -30.0
"""From here on the tail of a normal law is drawn as an exponential one, corrected by rejection."""


WIDE = 4.0
"""From here on nearly nothing is cut off: an uncut normal variate is drawn, and another where it is beyond the edge."""


class Settings(NamedTuple):
    """The numbers of a chain. ``forward`` and ``backward`` are both η; they differ only in a test's planted fault."""

    forward: Any
    backward: Any
    strong_convexity: Any
    smoothness: Any
    iterations: Any


class Tries(NamedTuple):
    """Tries that read the records, and tries to hit the ball, over a whole chain."""

    records: Any
    ball: Any


def run(target: Any, key: Any, *, geometry: Geometry, iterations: int, size: int) -> Sample:
    """``size`` independent draws."""
    frame = preconditioned_frame(target) if geometry.preconditioned else plain_frame(target)
    u, noticed = minimum(
        frame, target, strong_convexity=geometry.strong_convexity, smoothness=geometry.smoothness,
        tolerance=start_tolerance(geometry),
    )  # fmt: skip
    frame, around = surroundings(frame, target, u, rotate=not geometry.preconditioned)
    step = geometry.step
    settings = Settings(step, step, geometry.strong_convexity, geometry.smoothness, iterations)
    draws, tries = chains(target, key, frame, around, settings, size=size)
    taken = size * iterations
    return Sample(
        draws,
        {
            "iterations": iterations,
            "tries_per_step": float(tries.records.sum()) / taken,
            "ball_tries_per_step": float(tries.ball.sum()) / taken,
            **noticed,
        },
    )


def chains(
    target: Any, key: Any, frame: Frame, around: Surroundings, settings: Settings, *, size: int
) -> tuple[Any, Tries]:
    """The last iterates, (size, d), and the tries of each chain."""
    at_once = max(1, min(size, AT_ONCE // max(1, target.encoded.n)))
    keys = jax.random.split(key, size)
    draws, tries = _chains(
        target.kernel, target.radius is not None, at_once, keys, frame, around, settings, arguments_for(target)
    )
    return into_ball(np.asarray(draws), target.radius), tries


@partial(jax.jit, static_argnums=(0, 1, 2))
def _chains(
    kernel: Any, on_ball: bool, at_once: int, keys: Any, frame: Frame, around: Surroundings, settings: Settings,
    arguments: tuple[Any, ...],
) -> Any:  # fmt: skip
    def chain(key: Any) -> Any:
        first, rest = jax.random.split(key)
        start = jnp.asarray(around.start)
        if not on_ball:
            start = start + normal(first, start.shape) / jnp.sqrt(settings.smoothness * frame.metric)

        def draw(number: Any) -> Any:
            forward_key, backward_key = jax.random.split(jax.random.fold_in(rest, number))
            return normal(forward_key, start.shape), backward_key

        def step(state: Any, drawn: Any) -> Any:
            point, tries = state
            point, more = _step(kernel, on_ball, drawn, point, frame, around, settings, arguments)
            return point, Tries(tries.records + more.records, tries.ball + more.ball)

        point, tries = advanced((start, Tries(0, 0)), settings.iterations, draw=draw, step=step)
        return frame.theta(point), tries

    # One chain alone stays matrix–vector products, which are faster than products with a one-column matrix.
    return jax.lax.map(chain, keys, batch_size=at_once if at_once > 1 else None)


def _step(
    kernel: Any, on_ball: bool, drawn: Any, point: Any, frame: Frame, around: Surroundings, settings: Settings,
    arguments: tuple[Any, ...],
) -> Any:  # fmt: skip
    """y around the point, then a new point given y: (point, tries)."""
    noise, backward_key = drawn
    metric, eta = jnp.asarray(frame.metric), settings.backward
    y = point + jnp.sqrt(settings.forward / metric) * noise
    guess = _guess(on_ball, y, around, metric, eta)
    value, slope = value_in(frame, kernel, guess, arguments), slope_in(frame, kernel, guess, arguments)
    # U's lower bound around the guess plus ‖x − y‖²/2η: −½ x·precision·x + linear·x, up to a constant.
    precision = (1.0 / eta + settings.strong_convexity) * metric
    linear = settings.strong_convexity * metric * guess - slope + metric * y / eta
    tilt = best_tilt(precision, linear, xp=jnp, log_ndtr=log_ndtr) if on_ball else None

    def attempt(state: Any) -> Any:
        _, tries, _ = state
        try_key = jax.random.fold_in(backward_key, tries.records)
        if tilt is None:
            (numbers, normals), ball_tries = variates(try_key, (y.size + 1,)), 0
            proposal, chance = (linear + normals[1:] * jnp.sqrt(precision)) / precision, numbers[0]
        else:
            proposal, ball_tries = _in_ball(try_key, tilt)
            chance, _ = variates(jax.random.fold_in(try_key, 0), ())
        away = proposal - guess
        bound = slope @ away + 0.5 * settings.strong_convexity * (metric * away) @ away
        excess = value_in(frame, kernel, proposal, arguments) - value - bound
        return proposal, Tries(tries.records + 1, tries.ball + ball_tries), jnp.log(chance) <= -excess

    new, tries, _ = jax.lax.while_loop(lambda state: ~state[2], attempt, (point, Tries(0, 0), False))
    return new, tries


def _guess(on_ball: bool, y: Any, around: Surroundings, metric: Any, eta: Any) -> Any:
    """Where x given y is most likely, if U were its quadratic picture; inside the ball, where U's bounds hold."""
    precision = around.curvature + metric / eta
    linear = around.curvature * around.start - around.slope + metric * y / eta
    return peak_on_ball(precision, linear, xp=jnp) if on_ball else linear / precision


def _in_ball(key: Any, tilt: Tilt) -> Any:
    """An exact draw from the Gaussian cut to the unit ball, and how many tries it took."""

    def attempt(state: Any) -> Any:
        _, tries, _ = state
        numbers, normals = variates(jax.random.fold_in(key, tries + 1), (tilt.normal.size + 2,))
        depth, keep = _depth(numbers[1], normals[1], tilt.room)
        proposal = proposed(tilt, normals[2:], depth, xp=jnp)
        return proposal, tries + 1, jnp.log(numbers[0]) <= log_acceptance(tilt, proposal, xp=jnp) + keep

    point, tries, _ = jax.lax.while_loop(lambda state: ~state[2], attempt, (tilt.peak, 0, False))
    return point, tries


def _depth(number: Any, normal: Any, room: Any) -> Any:
    """room − τ for a standard normal τ cut to τ ≤ room, with the log-probability to keep it.

    From one variate, as a uniform or as a normal number: near 1 uniform numbers are too coarse for the upper tail.
    """
    far = -jnp.log(number) / jnp.maximum(-room, -FAR)
    near = jnp.maximum(0.0, room - ndtri(number * ndtr(jnp.clip(room, FAR, WIDE))))
    wide = jnp.maximum(0.0, room - normal)
    depth = jnp.where(room < FAR, far, jnp.where(room > WIDE, wide, near))
    kept = jnp.where((room > WIDE) & (normal > room), -jnp.inf, 0.0)
    return depth, jnp.where(room < FAR, -0.5 * far * far, kept)
