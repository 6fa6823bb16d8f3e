"""Has a noisy-gradient path forgotten where it started? Its draws show it: post-processing of what was published.

A plan counts on the curvature of its design. Where the records have less (a rare column, columns that move together) the path
is slower, and with x the relaxation times it
really lasted the variance of its draws is (1 − e^{−2x})/(2x) of the 2τ it would be without any curvature (proof.md).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.methods.draws.law import moments_of
from onedraw.models.design import Design
from onedraw.plans import Plan

LEAST_TIMES = 3.0
"""Relaxation times after which a path has forgotten its start as far as an interval needs: e⁻³ of it, 5 %, is left."""

SURE = 0.95
"""Confidence of the limit at which they are taken: eight draws show a variance only within a factor of three."""

SLOW = (
    "the spread of the draws shows that they may not have got far from where they started, so the estimate may be shifted by "
    "more than any interval would say. Columns that are rare, or that nearly repeat others, do this"
)


def remembers_start(draws: ArrayLike, plan: Plan, functional: ArrayLike | None = None) -> Mask:
    """For which coefficients (or functionals) the draws do not vouch that a noisy-gradient path has forgotten its start.

    A coefficient is refused where the lower confidence limit of its x is below three. All are, where the best estimate of
    any coefficient's x is: what that one lacks may be missing in the others too, and too few draws are there to say in which.
    """
    values = np.asarray(draws, dtype=np.float64).reshape(plan.draws, -1)
    rows = np.eye(values.shape[1]) if functional is None else np.atleast_2d(np.asarray(functional, dtype=np.float64))
    if not plan.mechanism.replicates:
        return np.zeros(len(rows), dtype=np.bool_)
    slow = _times(_uncertainty(plan.draws) * _shares(values @ _directions(rows, plan).T, plan)) < LEAST_TIMES
    stuck = bool((_times(_shares(values @ _directions(np.eye(len(values[0])), plan).T, plan)) < LEAST_TIMES).any())
    return np.asarray(slow | stuck)


def left_of_start(draws: Array, plan: Plan) -> Array:
    """How much of the distance to the start a noisy-gradient path may not have gone yet, per coefficient.

    With x the relaxation times it lasted, e^{−x} of the start is left, at most; the slowest coefficient speaks for all.
    """
    if not plan.mechanism.replicates:
        return np.zeros(draws.shape[1])
    slowest = _times(_shares(draws @ _directions(np.eye(draws.shape[1]), plan).T, plan)).min()
    gone = np.abs(draws.mean(axis=0) - plan.model.prior.location(draws.shape[1]))
    typical = math.sqrt(float((gone**2).mean()))  # what one coefficient lacks shifts the others along
    return np.asarray(np.maximum(gone, typical) / np.expm1(slowest))


def can_show(plan: Plan, design: Design) -> bool:
    """Whether draws of the expected spread, on the records the plan counts on, pass `remembers_start`."""
    law = moments_of(plan, design)
    if law is None:
        return True  # an interval is refused for that by itself
    directions = _directions(np.eye(law.drawing.shape[1]), plan)
    variances = np.einsum("ij,tjk,ik->i", directions, law.drawing, directions) / len(law.drawing)
    expected = variances / (2.0 * plan.parameters["time"])
    return bool((_times(_uncertainty(plan.draws) * expected) >= LEAST_TIMES).all())


def _directions(rows: Array, plan: Plan) -> Array:
    """Of unit length, and without what no record can show: of several classes only differences matter."""
    blocks = plan.model.row_blocks
    seen = rows.reshape(len(rows), blocks, -1)
    if blocks > 1:
        seen = seen - seen.mean(axis=1, keepdims=True)
    directions = seen.reshape(rows.shape)
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))


def _uncertainty(draws: int) -> float:
    """How many times its estimate a variance may be, at the confidence `SURE`."""
    return float((draws - 1) / special.chdtri(draws - 1, SURE))


def _shares(draws: Array, plan: Plan) -> Array:
    """The draws' variance as a share of what it would be without any curvature."""
    return np.asarray(draws.var(axis=0, ddof=1) / (2.0 * plan.parameters["time"]))


def _times(shares: Array) -> Array:
    """x with (1 − e^{−2x})/(2x) equal to each share."""
    return np.interp(-np.clip(shares, _SHARES[-1], _SHARES[0]), -_SHARES, _TIMES)


_TIMES = np.geomspace(0.1, 100.0, 2000)
_SHARES = -np.expm1(-2.0 * _TIMES) / (2.0 * _TIMES)
