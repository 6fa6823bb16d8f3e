"""Losses of several classes: what a perturbed mode needs to know of φ(u, y), u holding a score for each class (perturbed_mode.md §3).

Scores count by their differences alone, so a mode holds K − 1 *contrasts* of them: u = C·contrasts, the columns of C
orthonormal and adding up to 0. A record's pull is as long in either, and the coefficients of all classes add up to 0.

| | pull of a record | longest | largest eigenvalue of its Hessian | expected Hessian, Frobenius |
| --- | --- | --- | --- | --- |
| `SoftmaxClasses` | p − e_y | √2 | ½ | ½ |

Two classes are better fitted by `Logistic(loss="exp-linear")`, which pulls half as much for the same information. Comparing
every two of several classes by that loss, and each with the rest, lost more (benchmarks/results/class_fits.md).
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from onedraw.models.convex.losses import array_module
from onedraw.privacy.perturbed_mode import Corners, softmax, softmax_ridge_for, softmax_volume_cost
from onedraw.privacy.rounding import up

from .losses import Of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ClassLoss(abc.ABC):
    """φ(u, y) of K classes: ``slopes`` (n, K−1) and ``factors`` (n, parts, K−1) in contrasts, y the codes 0 … K−1.

    A record's Hessian, or the one expected of its row, is Σ ffᵀ over its factors f.
    """

    classes: int

    unit: ClassVar[Literal["labels"]] = "labels"
    level: ClassVar[None] = None
    relief: ClassVar[None] = None
    spends: ClassVar[str]
    """Which shares of a budget its stages have (`fit_constants.SHARES`)."""

    @property
    def blocks(self) -> int:
        """Coefficient vectors in a mode."""
        return self.classes - 1

    @cached_property
    def contrasts(self) -> Array:
        """C: each class in turn against the mean of those before it."""
        C = np.zeros((self.classes, self.blocks))
        for j in range(1, self.classes):
            C[:j, j - 1], C[j, j - 1] = 1.0, -float(j)
        return np.asarray(C / np.linalg.norm(C, axis=0))

    @property
    @abc.abstractmethod
    def slope_bound(self) -> float:
        """The longest pull of a record with ‖z‖ = 1."""

    @property
    @abc.abstractmethod
    def curvature_bound(self) -> float:
        """The largest eigenvalue of its Hessian."""

    @property
    @abc.abstractmethod
    def usual_information(self) -> float:
        """Of a record in measured coordinates, where scores have a standard deviation of about 1."""

    @property
    def expected_information(self) -> float:
        return self.usual_information

    @abc.abstractmethod
    def largest(self, of: Of, *, pure: bool) -> float:
        """The largest Frobenius norm of Σ ffᵀ ("information", "curvature"), or trace for a pure promise, or the pull's square."""

    @abc.abstractmethod
    def slopes(self, contrasts: Any, y: Any) -> Any:
        """The pull of each record."""

    @abc.abstractmethod
    def factors(self, contrasts: Any, y: Any, of: Of) -> Any:
        """Of the Hessian, or with "information" of the one that the model expects given the row."""

    @abc.abstractmethod
    def corners(self, row: float, ridge: float, records: int) -> Corners:
        """What the mode promises, in units of r²/σ²."""

    @abc.abstractmethod
    def ridge_for(self, kappa: float, row: float) -> float:
        """The ridge for which one record's volume costs κ."""

    def _own(self, y: Any) -> Any:
        """Classes as unit vectors."""
        return (y[:, None] == np.arange(self.classes)) * 1.0


@dataclass(frozen=True)
class SoftmaxClasses(ClassLoss):
    """log Σe^u − u_y."""

    spends: ClassVar[str] = "softmax"

    @property
    def slope_bound(self) -> float:
        return up(math.sqrt(2.0))

    @property
    def curvature_bound(self) -> float:
        return 0.5

    @property
    def usual_information(self) -> float:
        return 0.75 / self.classes

    def largest(self, of: Of, *, pure: bool) -> float:
        """Of diag p − ppᵀ: Frobenius's norm is at most ½, the trace 1 − Σp²."""
        if of not in ("information", "curvature"):
            return 2.0
        return up(1.0 - 1.0 / self.classes) if pure else 0.5

    def _probabilities(self, contrasts: Any) -> Any:
        xp, scores = array_module(contrasts), contrasts @ self.contrasts.T
        powers = xp.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def slopes(self, contrasts: Any, y: Any) -> Any:
        return (self._probabilities(contrasts) - self._own(y)) @ self.contrasts

    def factors(self, contrasts: Any, y: Any, of: Of) -> Any:
        """√p_j·(e_j − p): the Hessian does not depend on y."""
        p = self._probabilities(contrasts)
        xp = array_module(p)
        return xp.sqrt(p)[:, :, None] * (self.contrasts - (p @ self.contrasts)[:, None, :])

    def corners(self, row: float, ridge: float, records: int) -> Corners:
        kappa = softmax_volume_cost(self.classes, radius_squared=row**2, ridge=ridge)
        return softmax(self.classes, kappa, records=records)

    def ridge_for(self, kappa: float, row: float) -> float:
        return softmax_ridge_for(kappa, self.classes, radius_squared=row**2)
