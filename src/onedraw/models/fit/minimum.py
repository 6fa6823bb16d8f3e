"""The minimum of a tilted convex loss over records in measured coordinates, to a certified gradient.

Newton steps, shortened where the curvature at hand says too little of the way ahead (Levenberg 1944, Marquardt 1963): losses
with straight parts have none there, and a plain Newton step would leap by n times too far. Some twelve passes, whatever n is. Where
those have not arrived after 100 passes, accelerated gradient steps with public constants, which arrive for every data set
(Nesterov 2004, §2.2): no failure depends on the records.
Gradients are exact sums (`exact_sums`), so what is certified holds in any order of the records, and the search takes the
same steps on every engine: its own arithmetic is done here, on d numbers. Simulated data sets are searched side by side
(`minima`), of which one alone is a case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .statistics import NewtonSums

Array = NDArray[np.float64]

FIRST = 0.01
"""Added to the curvature at the start, as a share of its public bound: a hundred steps of the gradient method in one."""

TRUSTED, DOUBTED = 16.0, 8.0
"""By how much less, or more, is added after a step that did, or did not, lead downwards."""

OVERSHOT = 0.5
"""A step is taken unless it climbs again, at its end, at this share of the slope it began with."""


class Objective(NamedTuple):
    """What is public of it: ½θᵀQθ + qᵀθ beside the loss (the tilt is in q), the lattice, and when to stop."""

    Q: Any
    q: Any
    coarse: Any
    row_bound: Any
    certified: Any
    """The norm of the gradient to reach."""
    least: Any
    most: Any
    """Between which all eigenvalues of the Hessian lie, whatever the records."""
    most_passes: Any


def minimum(records: Any, loss: Any, objective: Objective) -> tuple[Array, int]:
    """(θ̂, passes over the records), from the public start 0."""

    def sums(_: Any, statistic: Any, coarse: Any, row_bound: Any, thetas: Array) -> Any:
        return records.sum(statistic, coarse, row_bound, thetas[0])[np.newaxis]

    (found,), (passes,) = minima(sums, loss, [objective])
    return found, int(passes)


def minima(sums: Callable[..., Any], loss: Any, objectives: Sequence[Objective]) -> tuple[Array, NDArray[np.int64]]:
    """Those of many data sets side by side, each by its own steps: what one finds does not depend on the others.

    ``sums(which, statistic, coarse, row_bound, thetas)`` are the sums of the data sets ``which``, each at its own row of thetas;
    the lattice, the row's bound and when to stop are the same for all.
    """
    search = _Search(sums, NewtonSums(loss), objectives)
    return search.descent(*search.newton()), search.passes


class _Search:
    """Every array has a first axis: the data sets. Products are made one data set at a time (`_times`), so that the last bits of
    one are what they are alone."""

    def __init__(self, sums: Callable[..., Any], statistic: NewtonSums, objectives: Sequence[Objective]) -> None:
        self.sums, self.statistic, self.public = sums, statistic, objectives[0]
        self.Q, self.q, self.least, self.most = (
            np.stack([np.asarray(getattr(one, name)) for one in objectives]) for name in ("Q", "q", "least", "most")
        )
        self.passes = np.zeros(len(objectives), dtype=np.int64)

    def newton(self) -> tuple[Array, Array]:
        """(θ, its gradient) as far as Newton steps lead."""
        theta, added, most = np.zeros_like(self.q), FIRST * self.most, self.most
        gradient, hessian = self._derivatives(np.arange(len(theta)), theta)
        while len(which := np.flatnonzero(self._goes_on(gradient) & (self.passes < self.public.most_passes))):
            damped = hessian[which] + added[which, None, None] * np.eye(theta.shape[1])
            step = np.linalg.solve(damped, gradient[which][..., None])[..., 0]
            ahead, bent = self._derivatives(which, theta[which] - step)
            before, after = _times(gradient[which], step), _times(ahead, step)
            overshot = after < -OVERSHOT * before
            doubted, taken = which[overshot], which[~overshot]
            added[doubted] = np.maximum(DOUBTED * added[doubted], 1e-6 * most[doubted])
            theta[taken], gradient[taken], hessian[taken] = (theta[which] - step)[~overshot], ahead[~overshot], bent[~overshot]  # fmt: skip
            trusted = which[~overshot & (after >= -OVERSHOT / 2.0 * before)]
            added[trusted] = np.where(added[trusted] > 1e-9 * most[trusted], added[trusted] / TRUSTED, 0.0)
        return theta, gradient

    def descent(self, theta: Array, gradient: Array) -> Array:
        """Accelerated gradient steps from where Newton's ended, none if that was small enough."""
        low, high = np.sqrt(self.least), np.sqrt(self.most)
        momentum, ahead = (high - low) / (high + low), theta.copy()
        while len(which := np.flatnonzero(self._goes_on(gradient))):
            moved = ahead[which] - gradient[which] / self.most[which, None]
            ahead[which] = moved + momentum[which, None] * (moved - theta[which])
            theta[which] = moved
            gradient[which], _ = self._derivatives(which, ahead[which])
        return ahead

    def _goes_on(self, gradient: Array) -> NDArray[np.bool_]:
        return np.asarray(np.sqrt(_times(gradient, gradient)) > self.public.certified)

    def _derivatives(self, which: NDArray[np.intp], theta: Array) -> tuple[Array, Array]:
        """Gradients and Hessians of the objectives of these data sets."""
        self.passes[which] += 1
        summed = self.sums(which, self.statistic, self.public.coarse, self.public.row_bound, theta)
        gradient, hessian = self.statistic.split(summed, self.public.coarse, theta.shape[1])
        Q = self.Q[which]
        return gradient + (Q @ theta[..., None])[..., 0] + self.q[which], hessian + Q


def _times(a: Any, b: Any) -> Array:
    """aᵀb of every two rows."""
    return np.asarray((a[:, None, :] @ b[:, :, None])[:, 0, 0])
