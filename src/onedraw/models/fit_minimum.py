"""The minimum of a tilted convex loss over records in measured coordinates, to a certified gradient.

Newton steps, shortened where the curvature at hand says too little of the way ahead (Levenberg 1944, Marquardt 1963): losses
with straight parts have none there, and a plain Newton step would leap by n times too far. Some twelve passes, whatever n is. Where
those have not arrived after 100 passes, accelerated gradient steps with public constants, which arrive for every data set
(Nesterov 2004, §2.2): no failure depends on the records.
Gradients are exact sums (`exact_sums`), so what is certified holds in any order of the records, and the search takes the
same steps on every engine: its own arithmetic is done here, on d numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .fit_statistics import NewtonSums

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
    search = _Search(records, NewtonSums(loss), objective)
    theta, gradient = search.newton()
    return search.descent(theta, gradient), search.passes


@dataclass
class _Search:
    records: Any
    statistic: NewtonSums
    objective: Objective
    passes: int = 0

    def newton(self) -> tuple[Array, Array]:
        """(θ, its gradient) as far as Newton steps lead."""
        theta, added, most = np.zeros(len(self.objective.q)), FIRST * self.objective.most, self.objective.most
        gradient, hessian = self._derivatives(theta)
        while self._goes_on(gradient) and self.passes < self.objective.most_passes:
            step = np.linalg.solve(hessian + added * np.eye(len(theta)), gradient)
            ahead, bent = self._derivatives(theta - step)
            before, after = gradient @ step, ahead @ step
            if after < -OVERSHOT * before:
                added = max(DOUBTED * added, 1e-6 * most)
                continue
            theta, gradient, hessian = theta - step, ahead, bent
            if after >= -OVERSHOT / 2.0 * before:
                added = added / TRUSTED if added > 1e-9 * most else 0.0
        return theta, gradient

    def descent(self, theta: Array, gradient: Array) -> Array:
        """Accelerated gradient steps from where Newton's ended, none if that was small enough."""
        low, high = math.sqrt(self.objective.least), math.sqrt(self.objective.most)
        momentum, ahead = (high - low) / (high + low), theta
        while self._goes_on(gradient):
            moved = ahead - gradient / self.objective.most
            theta, ahead = moved, moved + momentum * (moved - theta)
            gradient, _ = self._derivatives(ahead)
        return ahead

    def _goes_on(self, gradient: Array) -> bool:
        return bool(np.linalg.norm(gradient) > self.objective.certified)

    def _derivatives(self, theta: Array) -> tuple[Array, Array]:
        """Gradient and Hessian of the objective."""
        public, self.passes = self.objective, self.passes + 1
        summed = self.records.sum(self.statistic, public.coarse, public.row_bound, theta)
        gradient, hessian = self.statistic.split(summed, public.coarse, theta.size)
        return gradient + public.Q @ theta + public.q, hessian + public.Q
