"""What a fit is about: everything public of it as one value, and the same with encoded records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.models.moments.measured import Layout
from onedraw.models.moments.stage import MomentColumns
from onedraw.models.row_model import Encoded, EncodedRecords
from onedraw.models.sums.noise_law import deviation

from . import constants as constant
from .aside import Aside
from .classes import ClassLoss
from .losses import FitLoss
from .published import Coordinates, Measuring, Published, coordinates

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FitProblem:
    """All that is public before the records are read.

    ``numbers`` are those of `mechanisms.fit_numbers`, by name. ``response_scale`` brings responses that are numbers into
    [−1, 1]. ``prior``, if it counts, is a Gaussian on the coefficients of encoded rows.
    """

    n: int
    layout: Layout
    loss: FitLoss | ClassLoss
    numbers: Mapping[str, float]
    measuring: Measuring
    pure: bool
    robust: bool
    response_scale: float
    prior: Any = None

    @property
    def size(self) -> int:
        """Numbers in a mode."""
        return self.loss.blocks * self.layout.width

    @property
    def moment_columns(self) -> MomentColumns:
        return MomentColumns(self.layout, self.measuring.response)

    def coordinates(self, published: Published) -> Coordinates:
        return coordinates(self.layout, self.measuring, self.n, published.mean, published.moments)

    def encoded_coefficients(self, where: Coordinates) -> Array:
        """The matrix that turns a mode into coefficients of encoded rows in the response's declared unit; the centre of
        measured responses is added to the intercept by `encoded_shift`."""
        change = self.layout.encoded_coefficients(where.mean, where.root, where.stretch)
        if isinstance(self.loss, ClassLoss):
            return np.asarray(np.kron(self.loss.contrasts, change), dtype=np.float64)
        scale = where.unit * self.response_scale if self.loss.unit == "measured" else 1.0
        return np.asarray(scale * change, dtype=np.float64)

    def encoded_shift(self, where: Coordinates) -> Array:
        classes = self.loss.classes if isinstance(self.loss, ClassLoss) else 1
        shift = np.zeros(classes * self.layout.width)
        if self.loss.unit == "measured" and self.layout.intercept:
            shift[-1] = where.centre * self.response_scale
        return shift

    def set_aside(self, published: Published) -> Aside:
        """Levels whose published count is within its noise of 0, in the coordinates of the mode."""
        where = self.coordinates(published)
        noise = deviation(self.numbers["mean_noise"], self.moment_columns.count, pure=self.pure) / self.n
        change = self.layout.encoded_coefficients(where.mean, where.root, where.stretch)
        return Aside.of(self.layout, published.mean, noise, change, self.loss.blocks)

    @property
    def largest_coefficient(self) -> float:
        """Of a level, where nothing is known: of log-odds and log-rates, or the half-range of the responses."""
        return self.response_scale if self.loss.unit == "measured" else constant.LARGEST_COEFFICIENT

    def penalty(self, where: Coordinates) -> tuple[Array, Array]:
        """(Q, q): the quadratic ½θᵀQθ + qᵀθ that ridge and prior add in the mode's coordinates; Q ⪰ Λ."""
        ridge = self.numbers["ridge"] * np.eye(self.size)
        if self.prior is None:
            return ridge, np.zeros(self.size)
        change, shift = self.encoded_coefficients(where), self.encoded_shift(where)
        precision = np.asarray(self.prior.precision(len(change)))
        away = np.asarray(self.prior.location(len(change))) - shift
        return ridge + change.T @ (precision[:, None] * change), -change.T @ (precision * away)


@dataclass(frozen=True, eq=False)
class FitTarget:
    """A problem with its records. As private as they are: never printed or written."""

    problem: FitProblem
    encoded: Encoded | EncodedRecords

    def __repr__(self) -> str:
        return f"FitTarget(n={self.encoded.n}, columns={self.problem.layout.columns}, records=<private>)"

    @cached_property
    def records(self) -> Any:
        from onedraw.models.sums.exact_sums import Scaled

        return self.encoded.records.read_as(Scaled(self.problem.response_scale))

    def sum(self, statistic: Any, *public: Any) -> NDArray[np.int64]:
        """Σ over the records, in whole numbers: the only way they are read."""
        return np.asarray(self.records.sum(statistic, *public))

    def measured(self, where: Coordinates) -> Any:
        """The records in these coordinates, for as many sums as a fit takes."""
        from .statistics import Measured

        bound = self.problem.numbers["row_bound"]
        return self.records.read_as(
            Measured(self.problem.layout), where.mean, where.root, where.stretch, bound, where.frame
        )
