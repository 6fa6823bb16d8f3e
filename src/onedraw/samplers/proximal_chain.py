"""The compiled chain of the proximal sampler (`proximal`): y around x, then x given y by rejection, so many times.

Compiled once for a loss, a shape, a number of chains at once, and whether work is padded; all else is an argument. Padded, a
guess is refined by x̂ ← Proj(x̂ − ∇V(x̂)/a), V = U + ‖· − y‖²/2η, as often as a public number says, and tries go on after the last
step until there were as many as the quota says, then tries that only hit the ball: their keys are their own, and what they find is
thrown away, but for how often they succeeded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from onedraw.models.compute import jax, jit, jnp
from onedraw.samplers.ball import Tilt, best_tilt, log_acceptance, peak_on_ball, proposed
from onedraw.samplers.chains import advanced, mapped
from onedraw.samplers.preconditioner import LocalQuadratic, Preconditioner, slope_in, value_in
from onedraw.samplers.variates import normal, variates

FAR = -30.0
"""From here on the tail of a normal law is drawn as an exponential one, corrected by rejection."""

WIDE = 4.0
"""From here on nearly nothing is cut off: an uncut normal variate is drawn, and another where it is beyond the edge."""


class Quota(NamedTuple):
    """Of a padded chain: how often a guess is refined, and how many tries are made at least, those at the records and at the ball."""

    refinements: Any = 0
    tries: Any = 0
    at_ball: Any = 0


class ProximalSettings(NamedTuple):
    """The numbers of a chain. ``forward`` and ``backward`` are both η; they differ only in a test's planted fault."""

    forward: Any
    backward: Any
    strong_convexity: Any
    smoothness: Any
    iterations: Any
    quota: Quota = Quota()


class Tries(NamedTuple):
    """Tries that read the records, and tries to hit the ball, over a whole chain."""

    records: Any
    ball: Any


class Idle(NamedTuple):
    """Tries after the last step, and how many of them succeeded: nobody knows that who did not make them."""

    records: Any
    accepted: Any
    ball: Any
    hits: Any
    """Of those at the ball alone, made after the last one that read the records."""


class ChainContext(NamedTuple):
    """What every step of a chain has: the loss, whether there is a ball, whether guesses are refined, and the numbers."""

    kernel: Any
    on_ball: bool
    padded: bool
    preconditioner: Preconditioner
    quadratic: LocalQuadratic
    numbers: ProximalSettings
    arguments: tuple[Any, ...]

    def value(self, u: Any) -> Any:
        return value_in(self.preconditioner, self.kernel, u, self.arguments)

    def slope(self, u: Any) -> Any:
        return slope_in(self.preconditioner, self.kernel, u, self.arguments)


@jit(0, 1, 2, 3)
def chains(
    kernel: Any, on_ball: bool, padded: bool, at_once: int, keys: Any, preconditioner: Preconditioner,
    quadratic: LocalQuadratic, settings: ProximalSettings, arguments: tuple[Any, ...],
) -> Any:  # fmt: skip
    """(last points, tries, idle tries after them), one for each key."""
    context = ChainContext(kernel, on_ball, padded, preconditioner, quadratic, settings, arguments)

    def chain(key: Any) -> Any:
        first, rest = jax.random.split(key)
        start = jnp.asarray(quadratic.start)
        if not on_ball:
            start = start + normal(first, start.shape) / jnp.sqrt(settings.smoothness * preconditioner.metric)

        def draw(number: Any) -> Any:
            forward_key, backward_key = jax.random.split(jax.random.fold_in(rest, number))
            return normal(forward_key, start.shape), backward_key

        def step(state: Any, drawn: Any) -> Any:
            point, tries = state
            point, more = _step(context, drawn, point)
            return point, Tries(tries.records + more.records, tries.ball + more.ball)

        point, tries = advanced((start, Tries(0, 0)), settings.iterations, draw=draw, step=step)
        idle = _idle(context, first, point, tries) if padded else Idle(0, 0, 0, 0)
        return preconditioner.theta(point), tries, idle

    return mapped(chain, keys, at_once)


def _step(context: ChainContext, drawn: Any, point: Any) -> Any:
    """y around the point, then a new point given y: (point, tries)."""
    noise, backward_key = drawn
    y = point + jnp.sqrt(context.numbers.forward / jnp.asarray(context.preconditioner.metric)) * noise
    attempt, _ = _attempt(context, y)

    def again(state: Any) -> Any:
        _, tries, _ = state
        proposal, ball_tries, accepted = attempt(jax.random.fold_in(backward_key, tries.records))
        return proposal, Tries(tries.records + 1, tries.ball + ball_tries), accepted

    new, tries, _ = jax.lax.while_loop(lambda state: ~state[2], again, (point, Tries(0, 0), False))
    return new, tries


def _idle(context: ChainContext, key: Any, point: Any, tries: Tries) -> Idle:
    """Tries up to the quotas: from the law of a step that stays where it is. Successes are counted where they happen, so that
    compiled code cannot leave the work out, nor a count be right without it."""
    attempt, at_ball = _attempt(context, point)
    quota = context.numbers.quota

    def again(idle: Idle) -> Idle:
        _, ball_tries, accepted = attempt(jax.random.fold_in(key, idle.records))
        return Idle(idle.records + 1, idle.accepted + accepted, idle.ball + ball_tries, idle.hits)

    def aim(idle: Idle) -> Idle:
        _, hit = at_ball(jax.random.fold_in(key, idle.records + idle.ball))
        return idle._replace(ball=idle.ball + 1, hits=idle.hits + hit)

    idle = jax.lax.while_loop(lambda idle: idle.records < quota.tries - tries.records, again, Idle(0, 0, 0, 0))
    return jax.lax.while_loop(lambda idle: idle.ball < quota.at_ball - tries.ball, aim, idle)


def _attempt(context: ChainContext, y: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """One try at x given y, as a function of its key: (proposal, tries to hit the ball, whether it is accepted). And one of those
    that hit the ball."""
    numbers, on_ball, metric = context.numbers, context.on_ball, jnp.asarray(context.preconditioner.metric)
    eta, strong = numbers.backward, numbers.strong_convexity
    guess = _guess(context, y)
    value, slope = context.value(guess), context.slope(guess)
    # U's lower bound around the guess plus ‖x − y‖²/2η: −½ x·precision·x + linear·x, up to a constant.
    precision = (1.0 / eta + strong) * metric
    linear = strong * metric * guess - slope + metric * y / eta
    tilt = best_tilt(precision, linear, xp=jnp, ndtr=jax.scipy.special.ndtr) if on_ball else None

    def attempt(try_key: Any) -> Any:
        if tilt is None:
            (uniform, normals), ball_tries = variates(try_key, (y.size + 1,)), 0
            proposal, chance = (linear + normals[1:] * jnp.sqrt(precision)) / precision, uniform[0]
        else:
            proposal, ball_tries = _in_ball(try_key, tilt)
            chance, _ = variates(jax.random.fold_in(try_key, 0), ())
        away = proposal - guess
        bound = slope @ away + 0.5 * strong * (metric * away) @ away
        excess = context.value(proposal) - value - bound
        return proposal, ball_tries, jnp.log(chance) <= -excess

    return attempt, lambda try_key: _at_ball(try_key, tilt)


def _guess(context: ChainContext, y: Any) -> Any:
    """Where x given y is most likely, if U were its local quadratic; inside the ball, where U's bounds hold. Padded, refined."""
    numbers, quadratic, metric = context.numbers, context.quadratic, jnp.asarray(context.preconditioner.metric)
    sharp = quadratic.curvature + metric / numbers.backward
    pull = quadratic.curvature * quadratic.start - quadratic.slope + metric * y / numbers.backward
    guess = peak_on_ball(sharp, pull, xp=jnp) if context.on_ball else pull / sharp
    if not context.padded:
        return guess
    bent = (1.0 / numbers.backward + numbers.strong_convexity) * metric

    def better(_: Any, x: Any) -> Any:
        slope = context.slope(x) + metric * (x - y) / numbers.backward
        return peak_on_ball(bent, bent * x - slope, xp=jnp)

    return jax.lax.fori_loop(0, numbers.quota.refinements, better, guess)


def _in_ball(key: Any, tilt: Tilt) -> Any:
    """An exact draw from the Gaussian cut to the unit ball, and how many tries it took."""

    def again(state: Any) -> Any:
        _, tries, _ = state
        proposal, hit = _at_ball(jax.random.fold_in(key, tries + 1), tilt)
        return proposal, tries + 1, hit

    point, tries, _ = jax.lax.while_loop(lambda state: ~state[2], again, (tilt.peak, 0, False))
    return point, tries


def _at_ball(key: Any, tilt: Any) -> Any:
    """One try to hit the ball: the point, and whether it is kept."""
    numbers, normals = variates(key, (tilt.normal.size + 2,))
    depth, keep = _depth(numbers[1], normals[1], tilt.room)
    proposal = proposed(tilt, normals[2:], depth, xp=jnp)
    return proposal, jnp.log(numbers[0]) <= log_acceptance(tilt, proposal, xp=jnp) + keep


def _depth(number: Any, normal: Any, room: Any) -> Any:
    """room − τ for a standard normal τ cut to τ ≤ room, with the log-probability to keep it.

    From one variate, as a uniform or as a normal number: near 1 uniform numbers are too coarse for the upper tail.
    """
    special = jax.scipy.special
    far = -jnp.log(number) / jnp.maximum(-room, -FAR)
    near = jnp.maximum(0.0, room - special.ndtri(number * special.ndtr(jnp.clip(room, FAR, WIDE))))
    wide = jnp.maximum(0.0, room - normal)
    depth = jnp.where(room < FAR, far, jnp.where(room > WIDE, wide, near))
    kept = jnp.where((room > WIDE) & (normal > room), -jnp.inf, 0.0)
    return depth, jnp.where(room < FAR, -0.5 * far * far, kept)
