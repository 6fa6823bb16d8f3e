"""Exact draws from a Gaussian with any covariance, and from one cut to a ball by rejection that never hangs.

A Gibbs posterior with a quadratic loss is Gaussian: A = w XᵀX + Λ, b = w Xᵀy + Λa, from one pass over the records. On a ball it
is that Gaussian cut off there; plain rejection from the Gaussian can take for ever. The geometry serves NumPy and JAX values alike.

In the eigenbasis of its precision, and with lengths measured in radii, the law is ∝ exp(−½Σ p_i x_i² + Σ b_i x_i)
on ‖x‖ ≤ 1. For every λ ≥ 0 and every unit vector v (ball.md; without v this is the tilt alone):

    propose from N(b/(p+λ), 1/(p+λ)) restricted to the half-space v·x ≤ 1, which contains the ball;
    reject outside the ball;  accept with probability exp(−λ(1 − ‖x‖²)/2)

is exact: the last factor takes the tilt back, and the half-space cuts off nothing of the ball. The fewer tries, the
smaller the mass under the proposal,

    E(λ, v) = λ/2 + ½Σ b_i²/(p_i+λ) − ½Σ log(p_i+λ) + log Φ((1 − v·mean)/σ_v)      (up to a constant).

Both parts are needed. Without λ a ball much smaller than the Gaussian is hardly ever hit; without the half-space a
Gaussian centred t standard deviations outside costs √(2π)·t tries at the best λ and e^{t²/2} at λ = 0. With v the
outward normal where the density is largest on the ball, E is convex in λ and its least value is searched for by a number of steps
that is always the same. **Then a try hits with probability at least** `least_hit` **whatever the law is: 6.4 + 3.2d tries are the most
on average** (theorem and proof: ball.md; the most that were found are e(d+1)/2). So tries can be padded (padding.md).

**Numbers.** With the point u = b/(p+κ) where the density is largest (κ its multiplier), s = ‖u‖ and v = u/s,
everything is written in differences from u, so that nothing cancels however far outside the Gaussian is centred:

    E = λ(1−s²)/2 + (λ−κ)²s²σ_v²/2 − ½Σ log(p_i+λ) + log Φ(room),      room = (1−s)/σ_v + (λ−κ)·s·σ_v,

and λ is searched for by the sign of dE/dλ. Where room < 0 its square, which the second and the last term share, is taken out of both.
These are identities for every κ ≥ 0: an inaccurate one, and a coarse choice of λ, cost tries and no exactness.

**Guarantee.** No records make a draw fail, or be NaN: A is as positive definite as the prior's precision, its
eigenvalues are cut below at the float64 rounding of the largest, and tries go on until one is accepted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy import special

from onedraw.arrays import Array
from onedraw.models.compute import jax
from onedraw.models.conjugate.distributions import BallGaussian, Gaussian
from onedraw.privacy.numbers import down
from onedraw.private import Private
from onedraw.samplers.padding import tries_for

HALVINGS, NEWTON_STEPS = 8, 6
"""Of the search for the multiplier of the largest density: a bracket, then full accuracy, for every law (ball.md)."""

NEAREST = -42.0
"""log of the least distance from its lower bound at which that multiplier is looked for, relative to ‖b‖: below rounding."""

TILT_HALVINGS = 23
"""Of the search for √λ, by the sign of dE/dλ: 0.3 % of the tries are lost at most where λ is up to 10¹¹ (ball.md)."""

BATCH = 256
"""The least number of tries made at once."""

FAR = -30.0
"""Below this many standard deviations the tail of a normal law is exponential to a relative 1e-3."""

HIT, SPREAD, SEARCHED = 0.2, 0.41, 0.99
"""q, the constant beside d, and what the searches leave of the best proposal: the numbers of ball.md."""


class Tilt(NamedTuple):
    """A proposal for the law on the unit ball."""

    multiplier: Any
    """λ."""
    peak: Any
    """u, where the density is (nearly) largest."""
    normal: Any
    """v."""
    variance: Any
    """1/(p+λ)."""
    spread: Any
    """σ_v, the standard deviation of v·x."""
    room: Any
    """How many of them the half-space's edge lies above the mean; negative if the mean is outside."""


def least_hit(dimension: int) -> float:
    """The probability that a try hits, at least, for every Gaussian on a ball: q/(1 + (d + 0.41)/2ψ), ψ = log(1/q) − 1 + q."""
    room = -math.log(HIT) - 1.0 + HIT
    return down(SEARCHED * HIT / (1.0 + (dimension + SPREAD) / (2.0 * room)))


def multiplier_of_peak(precision: Any, linear: Any, *, xp: Any) -> Any:
    """κ ≥ 0 with ‖b/(p+κ)‖ = 1, or 0 if the norm is below 1 there already.

    Above its lower bound max(|b_i| − p_i) it is bracketed within 18 %, then found by Newton's method on 1/‖b/(p+κ)‖, concave in κ
    (Moré and Sorensen, 1983), from the left: 3ε² is left of a relative distance ε.
    """
    least = xp.maximum(0.0, (xp.abs(linear) - precision).max())
    sharp, scale = precision + least, xp.sqrt((linear * linear).sum())

    def norm(more: Any) -> Any:
        return xp.sqrt(((linear / (sharp + more)) ** 2).sum())

    def halved(bracket: Any) -> Any:
        low, high = bracket
        middle = 0.5 * (low + high)
        outside = norm(scale * xp.exp(middle)) > 1.0
        return xp.where(outside, middle, low), xp.where(outside, high, middle)

    def better(more: Any) -> Any:
        length = norm(more)
        slope = (linear**2 / (sharp + more) ** 3).sum()
        outside = length > 1.0
        return more + xp.where(outside, length * length * (length - 1.0) / xp.where(outside, slope, 1.0), 0.0)

    low, _ = _repeated(halved, (0.0 * scale + NEAREST, 0.0 * scale), HALVINGS, xp=xp)
    more = _repeated(better, scale * xp.exp(low), NEWTON_STEPS, xp=xp)
    return least + xp.where(norm(0.0) > 1.0, more, 0.0)


def peak_on_ball(precision: Any, linear: Any, *, xp: Any) -> Any:
    """The point of the unit ball with the largest density."""
    point = linear / (precision + multiplier_of_peak(precision, linear, xp=xp))
    return point / xp.maximum(1.0, xp.sqrt((point * point).sum()))


def best_tilt(precision: Any, linear: Any, *, xp: Any, ndtr: Any) -> Tilt:
    """The proposal with (nearly) the least mass of all; the search takes as many steps for every law."""
    kappa = multiplier_of_peak(precision, linear, xp=xp)
    peak = linear / (precision + kappa)
    norm = xp.sqrt((peak * peak).sum())
    normal = xp.where(norm > 0.0, peak / xp.where(norm > 0.0, norm, 1.0), precision.size**-0.5)

    def tilt(multiplier: Any) -> Tilt:
        variance = 1.0 / (precision + multiplier)
        spread = xp.sqrt((normal * normal * variance).sum())
        room = (1.0 - norm) / spread + (multiplier - kappa) * norm * spread
        return Tilt(multiplier, peak, normal, variance, spread, room)

    def halved(bracket: Any) -> Any:
        low, width = bracket
        falls = _slope(tilt((low + 0.5 * width) ** 2), kappa, norm, xp=xp, ndtr=ndtr) < 0.0
        return xp.where(falls, low + 0.5 * width, low), 0.5 * width

    d = precision.size
    largest = 2.0 * kappa + 2.0 * d + xp.sqrt(2.0 * d * precision.max())  # from here on E grows (ball.md)
    low, width = _repeated(halved, (0.0 * largest, xp.sqrt(largest)), TILT_HALVINGS, xp=xp)
    return tilt((low + width) ** 2)


def _slope(tilt: Tilt, kappa: Any, norm: Any, *, xp: Any, ndtr: Any) -> Any:
    """dE/dλ = ½(1 − E‖x‖²) under the proposal: positive terms less ½Σ 1/(p+λ), on either side of room = 0."""
    square, turn = tilt.spread**2, ((tilt.normal * tilt.variance) ** 2).sum()
    more, gap = tilt.multiplier - kappa, 1.0 - norm
    widening = norm * tilt.spread + 0.5 * turn / tilt.spread * (gap / square - more * norm)  # d room/dλ
    ratio = _mills(xp.maximum(tilt.room, FAR), xp=xp, ndtr=ndtr)
    inside = 0.5 * gap * (1.0 + norm) + more * norm * norm * (square - 0.5 * more * turn) + ratio * widening
    outside = 0.5 * gap**2 * (1.0 - turn / square**2) + _beyond(tilt.room, ratio, xp=xp) * widening
    return xp.where(tilt.room < 0.0, outside, inside) - 0.5 * tilt.variance.sum()


def _mills(room: Any, *, xp: Any, ndtr: Any) -> Any:
    """φ(room)/Φ(room)."""
    return xp.exp(-0.5 * room * room) / (math.sqrt(2.0 * math.pi) * ndtr(room))


def _beyond(room: Any, ratio: Any, *, xp: Any) -> Any:
    """room + φ(room)/Φ(room) for room ≤ 0; far out, where the two would cancel, its series."""
    far = 1.0 / xp.minimum(room, FAR)
    return xp.where(room < FAR, -far * (1.0 - far * far * (2.0 - 10.0 * far * far)), room + ratio)


def _repeated(function: Any, value: Any, times: int, *, xp: Any) -> Any:
    """The function applied so many times; as a loop in JAX too, which compiles faster than it would unrolled."""
    if xp is np:
        for _ in range(times):
            value = function(value)
        return value
    return jax.lax.fori_loop(0, times, lambda _, value: function(value), value)


def proposed(tilt: Tilt, normals: Any, depth: Any, *, xp: Any) -> Any:
    """Points of the proposal, from standard normals (…, d) and depths (…) below the half-space's edge.

    A depth is room − τ ≥ 0 for a standard normal τ cut to τ ≤ room.
    """
    free = normals * xp.sqrt(tilt.variance)
    to_edge = 1.0 - xp.sqrt((tilt.peak * tilt.peak).sum())
    along = (to_edge - (free * tilt.normal).sum(axis=-1)) / tilt.spread**2 - depth / tilt.spread
    return tilt.peak + free + along[..., None] * (tilt.variance * tilt.normal)


def log_acceptance(tilt: Tilt, points: Any, *, xp: Any) -> Any:
    """log of the probability to accept a proposed point; −∞ outside the ball."""
    inside = 1.0 - (points * points).sum(axis=-1)
    return xp.where(inside >= 0.0, -0.5 * tilt.multiplier * inside, -xp.inf)


def into_ball(points: Array, radius: float | None) -> Array:
    """Undo the rounding of a rotation: what was in the ball ‖θ‖ ≤ radius stays in it."""
    if radius is None:
        return points
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return np.where(norms > radius, points * (radius / np.maximum(norms, radius)) * (1.0 - 2.0**-52), points)


# ── draws with NumPy ─────────────────────────────────────────────────────────────────────────────────────────────


def gaussian_draws(law: Gaussian, generator: Generator, *, size: int) -> Array:
    """(size, d) draws."""
    axes, precision = _eigenbasis(law.precision)
    return np.asarray(law.mean + (generator.standard_normal((size, len(axes))) / np.sqrt(precision)) @ axes.T)


@dataclass(frozen=True, eq=False, repr=False)
class Hitting(Private):
    """A Gaussian on a ball, ready to be drawn from."""

    tilt: Tilt
    axes: Array
    radius: float

    def draws(self, generator: Generator, *, size: int) -> tuple[Array, int]:
        """(size, d) draws, and how many tries they took."""
        found, missing, tries = [], size, 0
        while missing > 0:
            batch = max(BATCH, 2 * missing)
            points = _accepted(self.tilt, generator, batch=batch)[:missing]
            found.append(points)
            missing -= len(points)
            tries += batch
        return into_ball(np.concatenate(found) @ self.axes.T * self.radius, self.radius), tries

    def idle(self, generator: Generator, tries: int) -> int:
        """So many tries whose points are thrown away; how many were made."""
        made = 0
        while made < tries:
            batch = min(BATCH, tries - made)
            _accepted(self.tilt, generator, batch=batch)
            made += batch
        return made


def hitting(law: BallGaussian) -> Hitting:
    axes, precision = _eigenbasis(law.precision)
    linear = law.radius * (axes.T @ law.linear)
    return Hitting(best_tilt(law.radius**2 * precision, linear, xp=np, ndtr=special.ndtr), axes, law.radius)


def ball_gaussian_draws(law: BallGaussian, generator: Generator, *, size: int) -> tuple[Array, int]:
    """(size, d) draws, and how many tries they took (as private as the records)."""
    return hitting(law).draws(generator, size=size)


def most_made(calls: int, size: int, gamma: float, *, dimension: int) -> int:
    """Tries of so many calls of `Hitting.draws` for ``size`` each, but with probability ``gamma``: as many as needed, and what the last
    batch of each call has too many."""
    return tries_for(calls * size, least_hit(dimension), gamma) + calls * max(BATCH, 2 * size)


def _accepted(tilt: Tilt, generator: Generator, *, batch: int) -> Array:
    """The accepted ones among ``batch`` tries, in the order they were made.

    A depth is room − τ for a standard normal τ cut to τ ≤ room. Far in the tail it has density ∝ exp(room·e − e²/2): an exponential
    variate, kept with exp(−e²/2).
    """
    room, exponential = float(tilt.room), generator.standard_exponential(batch)
    if room < FAR:
        depths = exponential / -room
        likely = -0.5 * depths**2
    else:
        depths = np.maximum(0.0, room - special.ndtri_exp(special.log_ndtr(room) - exponential))
        likely = np.zeros(batch)
    points = proposed(tilt, generator.standard_normal((batch, tilt.normal.size)), depths, xp=np)
    chance = log_acceptance(tilt, points, xp=np) + likely
    return np.asarray(points[-generator.standard_exponential(batch) <= chance])


def _eigenbasis(precision: Array) -> tuple[Array, Array]:
    """Orthonormal axes (columns) and the precision along each, positive whatever rounding did to the matrix."""
    values, axes = np.linalg.eigh(0.5 * (precision + precision.T))
    return axes, np.maximum(values, values[-1] * np.finfo(np.float64).eps)
