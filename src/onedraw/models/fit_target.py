"""What a fit is about: everything public of it as one value, and the same with encoded records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fit_losses import FitLoss
from .fit_published import Coordinates, Measuring, Published, coordinates
from .measured import Layout
from .moments import MomentColumns
from .row_model import Encoded

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FitProblem:
    """All that is public before the records are read.

    ``numbers`` are those of `mechanisms.fit_numbers`, by name. ``response_scale`` brings responses that are numbers into
    [−1, 1]. ``prior``, if it counts, is a Gaussian on the coefficients of encoded rows.
    """

    n: int
    layout: Layout
    loss: FitLoss
    numbers: Mapping[str, float]
    measuring: Measuring
    pure: bool
    robust: bool
    response_scale: float
    prior: Any = None
    modes: int = 1
    """Classes that are set against the rest, one mode each; 1 for all other fits."""

    @property
    def moment_columns(self) -> MomentColumns:
        return MomentColumns(self.layout, self.measuring.response)

    def coordinates(self, published: Published) -> Coordinates:
        return coordinates(self.layout, self.measuring, self.n, published.mean, published.moments)

    def encoded_coefficients(self, where: Coordinates) -> Array:
        """The matrix that turns a mode into coefficients of encoded rows in the response's declared unit; the centre of
        measured responses is added to the intercept by `encoded_shift`."""
        change = self.layout.encoded_coefficients(where.mean, where.root, where.stretch)
        scale = where.unit * self.response_scale if self.loss.unit == "measured" else 1.0
        return np.asarray(np.kron(np.eye(self.modes), scale * change), dtype=np.float64)

    def encoded_shift(self, where: Coordinates) -> Array:
        shift = np.zeros(self.modes * self.layout.width)
        if self.loss.unit == "measured" and self.layout.intercept:
            shift[-1] = where.centre * self.response_scale
        return shift

    def penalty(self, where: Coordinates) -> tuple[Array, Array]:
        """(Q, q): the quadratic ½θᵀQθ + qᵀθ that ridge and prior add in the mode's coordinates; Q ⪰ Λ."""
        ridge = self.numbers["ridge"] * np.eye(self.layout.width)
        if self.prior is None:
            return ridge, np.zeros(self.layout.width)
        size = self.layout.width
        change = self.encoded_coefficients(where)[:size, :size]
        precision = np.asarray(self.prior.precision(size))
        away = np.asarray(self.prior.location(size)) - self.encoded_shift(where)[:size]
        return ridge + change.T @ (precision[:, None] * change), -change.T @ (precision * away)


@dataclass(frozen=True, eq=False)
class FitTarget:
    """A problem with its records. As private as they are: never printed or written."""

    problem: FitProblem
    encoded: Encoded

    def __repr__(self) -> str:
        return f"FitTarget(n={self.encoded.n}, columns={self.problem.layout.columns}, records=<private>)"

    @cached_property
    def _arrays(self) -> tuple[Any, Any]:
        from .compute import jnp

        return jnp.asarray(self.encoded.X), jnp.asarray(self.encoded.y / self.problem.response_scale)

    def sum(self, statistic: Any, *public: Any) -> NDArray[np.int64]:
        """Σ over the records, in whole numbers: the only way they are read."""
        from .exact_sums import exact_sum

        return exact_sum(statistic, *self._arrays, *public)
