"""The minimum of a tilted convex loss over records in measured coordinates, to a certified gradient.

Newton steps, halved until they shorten the gradient; where those have not arrived after 100 passes, accelerated gradient
steps with public constants, which arrive for every data set (Nesterov 2004, §2.2): no failure depends on the records.
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

SHORTEST = 2.0**-10
"""The shortest damped Newton step that is tried before the gradient method takes over."""

DECREASE = 0.1
"""A Newton step of length s must shorten the gradient by this share of s: along it ‖g‖ falls at rate ‖g‖."""


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
        """(θ, its gradient) as far as damped Newton steps lead."""
        theta = there = np.zeros(len(self.objective.q))
        length = 1.0
        gradient, step = self._newton_step(there)
        while self._goes_on(gradient) and length >= SHORTEST and self.passes < self.objective.most_passes:
            there = theta - length * step
            found, onward = self._newton_step(there)
            if np.linalg.norm(found) <= (1.0 - DECREASE * length) * np.linalg.norm(gradient):
                theta, gradient, step, length = there, found, onward, 1.0
            else:
                length /= 2.0
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

    def _newton_step(self, theta: Array) -> tuple[Array, Array]:
        gradient, hessian = self._derivatives(theta)
        return gradient, np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)

    def _derivatives(self, theta: Array) -> tuple[Array, Array]:
        """Gradient and Hessian of the objective."""
        public, self.passes = self.objective, self.passes + 1
        summed = self.records.sum(self.statistic, public.coarse, public.row_bound, theta)
        gradient, hessian = self.statistic.split(summed, public.coarse, theta.size)
        return gradient + public.Q @ theta + public.q, hessian + public.Q
