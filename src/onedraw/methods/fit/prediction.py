"""What predictions keep of a fit: slopes that are drawn back to the level as far as noise made them long.

Let θ be the estimate, θ₀ the published level alone (slopes of 0), δ = θ − θ₀, H(t) the information at θ₀ + tδ and N the covariance of the
noise in the equations that θ solves, of sampling and of privacy. Along the way from θ to θ₀ the slope of the loss on these records, times n, is
∫ δᵀH(u)δ du from t to 1. On new records it is less by trace H⁻¹N in expectation, because δ leans towards the noise that is in
it. So the loss on new records is least where

    ∫ₜ¹ δᵀH(u)δ du = trace H⁻¹N,

and t is 0, the level for every record, where even the whole way is less than that. For lines H does not change and t = 1 − trace H⁻¹N/δᵀHδ (James and
Stein 1961, positive part, but for the 2 that their constant leaves off, which makes t larger). There is no constant to choose.

H(1) is the information of the intervals, which is kept low where noise hides it; so t is rather too small than too large. Along the way it
changes as published moments imply: where labels are told apart nearly without fault, the information at θ is small, and that on the
way is large. On the tables for deriving benchmarks/results/drawn_back.md compares it with other rules.
"""

from __future__ import annotations

import numpy as np

from onedraw.arrays import Array

from .coordinates import StepsProblem

POINTS = 33
"""Places along the way at which the information is computed."""

DRAWN_BACK = ("number", "label", "count", "classes")
"""Kinds whose predictions are means or chances, of which the level is one."""


def is_drawn_back(problem: StepsProblem) -> bool:
    """Return whether predictions are drawn back at all.

    A robust line is asked for by those who want its coefficients, and a declared prior draws back already.
    """
    score = problem.score
    return score.kind in DRAWN_BACK and not score.fixed and problem.layout.intercept and problem.prior is None


def share_kept(along: Array, by_noise: float) -> float:
    """Return t.

    Parameters
    ----------
    along : array
        δᵀH(u)δ at `POINTS` places u from 0 to 1, ends included, at equal distances.
    by_noise : float
        trace H⁻¹N.
    """
    pieces = (along[1:] + along[:-1]) / (2.0 * (len(along) - 1))
    left = np.append(np.cumsum(pieces[::-1])[::-1], 0.0)  # from each place to 1
    if not left[0] > by_noise:
        return 0.0
    return float(np.interp(by_noise, left[::-1], np.linspace(0.0, 1.0, len(along))[::-1]))
