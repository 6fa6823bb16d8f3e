"""The minima of many simulated fits side by side, each by the very steps that `onedraw.models.fit.sums.minimum` takes for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.arrays import Array, Integers
from onedraw.models.fit.sums import DOUBTED, FIRST, OVERSHOT, TRUSTED, NewtonSums, Objective


def minima(sums: Callable[..., Any], loss: Any, objectives: Sequence[Objective]) -> tuple[Array, Integers]:
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
        first = gradient.copy()
        while len(which := self._unfinished(gradient, self.public.most_passes)):
            damped = hessian[which] + added[which, None, None] * np.eye(theta.shape[1])
            step = np.linalg.solve(damped, gradient[which][..., None])[..., 0]
            ahead, bent = self._derivatives(which, theta[which] - step)
            before, after = _dot(gradient[which], step), _dot(ahead, step)
            overshot = after < -OVERSHOT * before
            doubted, taken = which[overshot], which[~overshot]
            added[doubted] = np.maximum(DOUBTED * added[doubted], 1e-6 * most[doubted])
            theta[taken], gradient[taken], hessian[taken] = (theta[which] - step)[~overshot], ahead[~overshot], bent[~overshot]  # fmt: skip
            trusted = which[~overshot & (after >= -OVERSHOT / 2.0 * before)]
            added[trusted] = np.where(added[trusted] > 1e-9 * most[trusted], added[trusted] / TRUSTED, 0.0)
        led_away = (_dot(gradient, gradient) > _dot(first, first))[
            :, None
        ]  # then the way back is shorter from the start
        return np.where(led_away, 0.0, theta), np.where(led_away, first, gradient)

    def descent(self, theta: Array, gradient: Array) -> Array:
        """Accelerated gradient steps from where Newton's ended, none if that was small enough."""
        low, high = np.sqrt(self.least), np.sqrt(self.most)
        momentum, ahead = (high - low) / (high + low), theta.copy()
        while len(which := self._unfinished(gradient)):
            moved = ahead[which] - gradient[which] / self.most[which, None]
            ahead[which] = moved + momentum[which, None] * (moved - theta[which])
            theta[which] = moved
            gradient[which], _ = self._derivatives(which, ahead[which])
        return ahead

    def _unfinished(self, gradient: Array, most_passes: float = np.inf) -> NDArray[np.intp]:
        """The data sets whose gradient is still too long."""
        far = np.sqrt(_dot(gradient, gradient)) > self.public.certified
        return np.flatnonzero(far & (self.passes < most_passes))

    def _derivatives(self, which: NDArray[np.intp], theta: Array) -> tuple[Array, Array]:
        """Gradients and Hessians of the objectives of these data sets."""
        self.passes[which] += 1
        summed = self.sums(which, self.statistic, self.public.coarse, self.public.row_bound, theta)
        gradient, hessian = self.statistic.split(summed, self.public.coarse, theta.shape[1])
        Q = self.Q[which]
        return gradient + (Q @ theta[..., None])[..., 0] + self.q[which], hessian + Q


def _dot(a: Any, b: Any) -> Array:
    """aᵀb of every two rows."""
    return np.asarray((a[:, None, :] @ b[:, :, None])[:, 0, 0])
