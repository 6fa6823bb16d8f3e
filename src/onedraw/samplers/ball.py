"""A Gaussian cut to a ball, by rejection that never hangs: the geometry, for NumPy and JAX values alike.

In the eigenbasis of its precision, and with lengths measured in radii, the law is ∝ exp(−½Σ p_i x_i² + Σ b_i x_i)
on ‖x‖ ≤ 1. For every λ ≥ 0 and every unit vector v (mathematics.md §4.2 has λ alone):

    propose N(b/(p+λ), 1/(p+λ)) restricted to the half-space v·x ≤ 1, which contains the ball;
    reject outside the ball;  accept with probability exp(−λ(1 − ‖x‖²)/2)

is exact: on the ball the tilt is undone and the half-space cuts off nothing. One try in exp(E)/Z succeeds,

    E(λ, v) = λ/2 + ½Σ b_i²/(p_i+λ) − ½Σ log(p_i+λ) + log Φ((1 − v·mean)/σ_v)      (up to a constant),

so λ is chosen to make E small. Both parts are needed. Without λ a small ball is hardly ever hit, (radius/√d)^d;
without the half-space a mean t standard deviations outside costs √(2π)·t tries even at the best λ, and e^{t²/2} at
λ = 0. With v the outward normal where the density is largest on the ball, about e·(d+1)/2 tries are the most seen.
λ and v only set the speed: they may depend on the records, and be inaccurate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

SECULAR_STEPS = 10
"""Newton steps for the multiplier; they converge quadratically, and what is left costs tries, not exactness."""

GRID = 48
GRID_RATIO = 0.7


class Tilt(NamedTuple):
    """A proposal for the law on the unit ball: N(mean, diag(variance)) with normal·x ≤ 1."""

    multiplier: Any
    mean: Any
    variance: Any
    normal: Any
    spread: Any
    """The standard deviation of normal·x."""
    room: Any
    """How many of them the half-space's edge lies above the mean; negative if the mean is outside."""


def largest_on_ball(precision: Any, linear: Any, *, xp: Any) -> Any:
    """Where the density is largest on the unit ball: b/(p+λ), λ = 0 or with norm 1.

    Newton's method on 1/‖x(λ)‖ (Moré and Sorensen, 1983), which is nearly linear in λ, from the left.
    """
    multiplier = 0.0 * precision[0]
    for _ in range(SECULAR_STEPS):
        point = linear / (precision + multiplier)
        norm = xp.sqrt((point * point).sum())
        slope = (point * point / (precision + multiplier)).sum()
        outside = norm > 1.0
        step = xp.where(outside, norm * norm * (norm - 1.0) / xp.where(outside, slope, 1.0), 0.0)
        multiplier = multiplier + step
    point = linear / (precision + multiplier)
    return point / xp.maximum(1.0, xp.sqrt((point * point).sum()))


def best_tilt(precision: Any, linear: Any, *, xp: Any, log_ndtr: Any) -> Tilt:
    """The proposal with the fewest expected tries among a grid of multipliers."""
    peak = largest_on_ball(precision, linear, xp=xp)
    norm = xp.sqrt((peak * peak).sum())
    normal = xp.where(norm > 0.0, peak / xp.where(norm > 0.0, norm, 1.0), 1.0 / precision.size**0.5)
    # At this λ the proposal's mean square norm is below 1, and E increases from there on.
    largest = 2.0 * xp.maximum(xp.sqrt((linear * linear).sum()), float(precision.size))
    grid = xp.append(largest * GRID_RATIO ** xp.arange(GRID), 0.0)
    sharper = precision + grid[:, None]
    mean, spread = _along(normal, linear, sharper, xp=xp)
    cost = 0.5 * (grid + (linear * linear / sharper - xp.log(sharper)).sum(axis=1)) + log_ndtr((1.0 - mean) / spread)
    multiplier = grid[xp.argmin(cost)]
    sharper = precision + multiplier
    mean, spread = _along(normal, linear, sharper, xp=xp)
    return Tilt(multiplier, linear / sharper, 1.0 / sharper, normal, spread, (1.0 - mean) / spread)


def _along(normal: Any, linear: Any, precision: Any, *, xp: Any) -> tuple[Any, Any]:
    """The mean and the standard deviation of normal·x."""
    return (normal * linear / precision).sum(axis=-1), xp.sqrt((normal * normal / precision).sum(axis=-1))


def proposed(tilt: Tilt, normals: Any, along: Any, *, xp: Any) -> Any:
    """Points of the proposal, from standard normals (…, d) and standard normals cut to ≤ room (…)."""
    free = normals * xp.sqrt(tilt.variance)
    excess = along * tilt.spread - (free * tilt.normal).sum(axis=-1)
    return tilt.mean + free + (excess / tilt.spread**2)[..., None] * (tilt.variance * tilt.normal)


def log_acceptance(tilt: Tilt, points: Any, *, xp: Any) -> Any:
    """log of the probability to accept a proposed point; −∞ outside the ball."""
    room = 1.0 - (points * points).sum(axis=-1)
    return xp.where(room >= 0.0, -0.5 * tilt.multiplier * room, -xp.inf)
