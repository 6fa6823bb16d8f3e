"""Exact draws from a Gaussian with any covariance, and from one cut to a ball by rejection that never hangs.

A Gibbs posterior with a quadratic loss is Gaussian: A = w XᵀX + Λ, b = w Xᵀy + Λa, from one pass over the records. On a ball it
is that Gaussian cut off there; plain rejection from the Gaussian can take for ever. The geometry serves NumPy and JAX values alike.

In the eigenbasis of its precision, and with lengths measured in radii, the law is ∝ exp(−½Σ p_i x_i² + Σ b_i x_i)
on ‖x‖ ≤ 1. For every λ ≥ 0 and every unit vector v (mathematics.md §4.2 has λ alone):

    propose from N(b/(p+λ), 1/(p+λ)) restricted to the half-space v·x ≤ 1, which contains the ball;
    reject outside the ball;  accept with probability exp(−λ(1 − ‖x‖²)/2)

is exact: the last factor takes the tilt back, and the half-space cuts off nothing of the ball. The fewer tries, the
smaller the mass under the proposal,

    E(λ, v) = λ/2 + ½Σ b_i²/(p_i+λ) − ½Σ log(p_i+λ) + log Φ((1 − v·mean)/σ_v)      (up to a constant).

Both parts are needed. Without λ a ball much smaller than the Gaussian is hardly ever hit; without the half-space a
Gaussian centred t standard deviations outside costs √(2π)·t tries at the best λ and e^{t²/2} at λ = 0. With v the
outward normal where the density is largest on the ball and the best λ, about e(d+1)/2 tries are the most.

**Numbers.** With the point u = b/(p+κ) where the density is largest (κ its multiplier), s = ‖u‖ and v = u/s,
everything is written in differences from u, so that nothing cancels however far outside the Gaussian is centred:

    E = λ(1−s²)/2 + (λ−κ)²·Σ u_i²/(p_i+λ)/2 − ½Σ log(p_i+λ) + log Φ(room),   room = (1−s)/σ_v + (λ−κ)·s·σ_v.

These are identities for every κ ≥ 0: an inaccurate one, and a coarse choice of λ, cost tries and no exactness.

**Guarantee.** No records make a draw fail, or be NaN: A is as positive definite as the prior's precision, its
eigenvalues are cut below at the float64 rounding of the largest, and tries go on until one is accepted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy import special

from onedraw.arrays import Array
from onedraw.models.compute import jax
from onedraw.models.conjugate.distributions import BallGaussian, Gaussian

SECULAR_STEPS = 10
"""Newton steps for the multiplier of the largest density; 9 were the most needed for full accuracy."""

MOMENT_STEPS = 8

BATCH = 256
"""The least number of tries made at once."""

FAR = -30.0
"""Below this many standard deviations the tail of a normal law is exponential to a relative 1e-3."""


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


def multiplier_of_peak(precision: Any, linear: Any, *, xp: Any) -> Any:
    """κ ≥ 0 with ‖b/(p+κ)‖ = 1, or 0 if the norm is below 1 there already.

    Newton's method on 1/‖b/(p+κ)‖, nearly linear in κ (Moré and Sorensen, 1983), from a point left of the root.
    """

    def better(multiplier: Any) -> Any:
        point = linear / (precision + multiplier)
        norm = xp.sqrt((point * point).sum())
        slope = (point * point / (precision + multiplier)).sum()
        outside = norm > 1.0
        return multiplier + xp.where(outside, norm * norm * (norm - 1.0) / xp.where(outside, slope, 1.0), 0.0)

    return _repeated(better, xp.maximum(0.0, (xp.abs(linear) - precision).max()), SECULAR_STEPS, xp=xp)


def peak_on_ball(precision: Any, linear: Any, *, xp: Any) -> Any:
    """The point of the unit ball with the largest density."""
    point = linear / (precision + multiplier_of_peak(precision, linear, xp=xp))
    return point / xp.maximum(1.0, xp.sqrt((point * point).sum()))


def best_tilt(precision: Any, linear: Any, *, xp: Any, log_ndtr: Any) -> Tilt:
    """The proposal with the least mass among four multipliers, within 9 % of the best of all in 3000 random laws.

    No tilt; κ; the one that is best where the law is pressed against the sphere and j directions along it are flat,
    κ·j/(j+2); and the one that is best without a half-space.
    """
    kappa = multiplier_of_peak(precision, linear, xp=xp)
    peak = linear / (precision + kappa)
    norm = xp.sqrt((peak * peak).sum())
    normal = xp.where(norm > 0.0, peak / xp.where(norm > 0.0, norm, 1.0), precision.size**-0.5)
    flat = ((1.0 - normal * normal) * kappa / (precision + kappa)).sum()
    moment = multiplier_of_moment(precision, linear, xp=xp)
    multipliers = xp.stack([0.0 * kappa, kappa, kappa * flat / (flat + 2.0), moment])
    sharper = precision + multipliers[:, None]
    room = _room(multipliers, kappa, norm, xp.sqrt((normal * normal / sharper).sum(axis=1)))
    mass = (
        0.5 * multipliers * (1.0 - norm * norm)
        + 0.5 * (multipliers - kappa) ** 2 * (peak * peak / sharper).sum(axis=1)
        - 0.5 * xp.log(sharper).sum(axis=1)
        + log_ndtr(room)
    )
    multiplier = multipliers[xp.argmin(mass)]
    variance = 1.0 / (precision + multiplier)
    spread = xp.sqrt((normal * normal * variance).sum())
    return Tilt(multiplier, peak, normal, variance, spread, _room(multiplier, kappa, norm, spread))


def multiplier_of_moment(precision: Any, linear: Any, *, xp: Any) -> Any:
    """λ ≥ 0 at which the tilted Gaussian has mean square norm 1, or 0 if it is below that already.

    There dE/dλ = 0 without the last term. Newton's method on the inverse root of the mean square, nearly linear in λ.
    """

    def better(multiplier: Any) -> Any:
        variance = 1.0 / (precision + multiplier)
        square = (linear * variance) ** 2
        moment = (square + variance).sum()
        slope = ((2.0 * square + variance) * variance).sum()
        outside = moment > 1.0
        step = 2.0 * moment * (xp.sqrt(xp.where(outside, moment, 1.0)) - 1.0) / xp.where(outside, slope, 1.0)
        return multiplier + xp.where(outside, step, 0.0)

    return _repeated(better, 0.0 * precision[0], MOMENT_STEPS, xp=xp)


def _repeated(function: Any, value: Any, times: int, *, xp: Any) -> Any:
    """The function applied so many times; as a loop in JAX too, which compiles faster than it would unrolled."""
    if xp is np:
        for _ in range(times):
            value = function(value)
        return value
    return jax.lax.fori_loop(0, times, lambda _, value: function(value), value)


def _room(multiplier: Any, kappa: Any, norm: Any, spread: Any) -> Any:
    return (1.0 - norm) / spread + (multiplier - kappa) * norm * spread


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


def ball_gaussian_draws(law: BallGaussian, generator: Generator, *, size: int) -> tuple[Array, int]:
    """(size, d) draws, and how many tries they took (as private as the records)."""
    axes, precision = _eigenbasis(law.precision)
    tilt = best_tilt(law.radius**2 * precision, law.radius * (axes.T @ law.linear), xp=np, log_ndtr=special.log_ndtr)
    found, missing, tries = [], size, 0
    while missing > 0:
        batch = max(BATCH, 2 * missing)
        points = _accepted(tilt, generator, batch=batch)[:missing]
        found.append(points)
        missing -= len(points)
        tries += batch
    return into_ball(np.concatenate(found) @ axes.T * law.radius, law.radius), tries


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
