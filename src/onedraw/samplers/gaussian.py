"""Exact draws from a Gaussian with any covariance, and from one cut to a ball.

A Gibbs posterior with a quadratic loss is Gaussian: A = w XᵀX + Λ, b = w Xᵀy + Λa, from one pass over the records.
On a ball it is that Gaussian cut off there, drawn by the rejection of `ball`, which needs about e(d+1)/2 tries at
the most whatever A, b and the radius are; plain rejection from the Gaussian can take for ever.

**Guarantee.** No records make a draw fail, or be NaN: A is as positive definite as the prior's precision, its
eigenvalues are cut below at the float64 rounding of the largest, and tries go on until one is accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from onedraw.samplers.ball import Tilt, best_tilt, into_ball, log_acceptance, proposed

if TYPE_CHECKING:
    from onedraw.models.conjugate.distributions import BallGaussian, Gaussian

Array = NDArray[np.float64]

BATCH = 256
"""The least number of tries made at once."""

FAR = -30.0
"""Below this many standard deviations the tail of a normal law is exponential to a relative 1e-3."""


def gaussian_draws(law: Gaussian, generator: Generator, *, size: int) -> Array:
    """(size, d) draws."""
    axes, precision = _eigenbasis(law.precision)
    draws: Array = law.mean + (generator.standard_normal((size, len(axes))) / np.sqrt(precision)) @ axes.T
    return draws


def ball_gaussian_draws(law: BallGaussian, generator: Generator, *, size: int) -> tuple[Array, int]:
    """(size, d) draws, and how many tries they took (as private as the records)."""
    from scipy.special import log_ndtr

    axes, precision = _eigenbasis(law.precision)
    tilt = best_tilt(law.radius**2 * precision, law.radius * (axes.T @ law.linear), xp=np, log_ndtr=log_ndtr)
    found, missing, tries = [], size, 0
    while missing > 0:
        batch = max(BATCH, 2 * missing)
        points = _accepted(tilt, generator, batch=batch)[:missing]
        found.append(points)
        missing -= len(points)
        tries += batch
    return into_ball(np.concatenate(found) @ axes.T * law.radius, law.radius), tries


def _accepted(tilt: Tilt, generator: Generator, *, batch: int) -> Array:
    """The accepted ones among ``batch`` tries, in the order they were made."""
    depths, likely = _depths(float(tilt.room), generator, batch=batch)
    points = proposed(tilt, generator.standard_normal((batch, tilt.normal.size)), depths, xp=np)
    chance = log_acceptance(tilt, points, xp=np) + likely
    accepted: Array = points[-generator.standard_exponential(batch) <= chance]
    return accepted


def _depths(room: float, generator: Generator, *, batch: int) -> tuple[Array, Array]:
    """room − τ for a standard normal τ cut to τ ≤ room, each with the log-probability to keep it.

    Far in the tail room − τ has density ∝ exp(room·e − e²/2): an exponential variate, kept with exp(−e²/2).
    """
    from scipy.special import log_ndtr, ndtri_exp

    if room < FAR:
        depths = generator.standard_exponential(batch) / -room
        return depths, -0.5 * depths**2
    below = log_ndtr(room) - generator.standard_exponential(batch)
    return np.maximum(0.0, room - ndtri_exp(below)), np.zeros(batch)


def _eigenbasis(precision: Array) -> tuple[Array, Array]:
    """Orthonormal axes (columns) and the precision along each, positive whatever rounding did to the matrix."""
    values, axes = np.linalg.eigh(0.5 * (precision + precision.T))
    return axes, np.maximum(values, values[-1] * np.finfo(np.float64).eps)
