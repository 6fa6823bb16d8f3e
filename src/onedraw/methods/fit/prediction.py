"""What predictions keep of a fit: slopes that are drawn back to the level as far as noise made them long.

Let θ be the estimate, θ₀ the published level alone (slopes of 0), H the information and N the covariance of the noise in the
equations that θ solves, of sampling and of privacy. About the solution θ* the loss of t·θ + (1 − t)·θ₀ on new records is, but for a
constant, half the mean of (θ₀ + t·(θ − θ₀) − θ*)ᵀH(θ₀ + t·(θ − θ₀) − θ*) over n, and

    E (θ − θ₀)ᵀH(θ − θ₀) = (θ* − θ₀)ᵀH(θ* − θ₀) + trace H⁻¹N.

So the loss is least at t = 1 − trace H⁻¹N / E (θ − θ₀)ᵀH(θ − θ₀). The number that was published takes the place of its mean, and t
is 0 where it is less than the noise alone would give: then every record gets the level (James and Stein 1961, positive part, but for
the 2 that their constant leaves off, which makes t larger). There is no constant to choose.

H is the information of the intervals, which is kept low where noise hides it. So t is rather too small than too large.
On the tables for deriving benchmarks/results/drawn_back.md compares it with other rules.
"""

from __future__ import annotations

import numpy as np

from onedraw.arrays import Array, Mask

from .coordinates import StepsProblem

DRAWN_BACK = ("number", "label", "count", "classes")
"""Kinds whose predictions are means or chances, of which the level is one."""


def is_drawn_back(problem: StepsProblem) -> bool:
    """Return whether predictions are drawn back at all.

    A robust line is asked for by those who want its coefficients, and a declared prior draws back already.
    """
    score = problem.score
    return score.kind in DRAWN_BACK and not score.fixed and problem.layout.intercept and problem.prior is None


def share_kept(moved: Array, information: Array, noise: Array, present: Mask) -> float:
    """Return t, for an estimate that is this far from the level.

    Parameters
    ----------
    moved : array
        θ − θ₀.
    information, noise : array
        H and N.
    present : array of bool
        Directions that records have; the others change no prediction.
    """
    among = np.ix_(present, present)
    seen = float(moved[present] @ information[among] @ moved[present])
    of_noise = float(np.trace(np.linalg.solve(information[among], noise[among])))
    return 1.0 - of_noise / seen if seen > of_noise else 0.0
