"""A convex loss in measured coordinates: what a posterior mechanism is given once the columns' moments are published.

    ℓ(θ, (x, y)) = a(z)·φ(zᵀθ, y),        z = g·(W(v − m), 1),    a(z) = min(1, r²/‖z‖²)        (`measured`, `fit.losses`)

Mallows' weight depends on the record's row and on published numbers alone, so this is a convex loss of one record
like any other, for every m, W and g: ‖∇ℓ‖ = a|φ'|‖z‖ ≤ L·r and ∇²ℓ = aφ''zzᵀ ⪯ M·r². These two constants are all that
the theorems of Gibbs posteriors and noisy gradients ask of a record; r is fixed before the records are read, and so is
the prior, which is on the coefficients of z. Weights, unlike shortened rows, leave a well specified model consistent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.models.convex.losses import Interval, LinearLoss, product_up
from onedraw.models.convex.number_losses import LogCoshLoss
from onedraw.models.features import Features
from onedraw.models.fit.losses import FitLoss
from onedraw.models.fit.problem import Coordinates, Measuring, Published, coordinates
from onedraw.models.fit.sums import MeasuredRows
from onedraw.models.model import Bound, Model
from onedraw.models.priors import Gaussian
from onedraw.models.row_model import Encoded, EncodedRecords
from onedraw.models.sums.exact_sums import SummedTarget
from onedraw.privacy import Provenance
from onedraw.privacy.numbers import fraction_up

from .measured import INSIDE, Layout, MomentColumns


@dataclass(frozen=True)
class WeightedLoss(LinearLoss):
    """a·φ(u, y): a response is a pair (y, a) of the response and its row's weight, 0 ≤ a ≤ 1."""

    of: Any

    @classmethod
    def example(cls) -> Self:
        return cls(LogCoshLoss.example())

    def value(self, predictor: Any, response: Any) -> Any:
        return response[..., 1] * self.of.value(predictor, response[..., 0])

    def slope(self, predictor: Any, response: Any) -> Any:
        return response[..., 1] * self.of.slope(predictor, response[..., 0])

    def curvature(self, predictor: Any, response: Any) -> Any:
        return response[..., 1] * self.of.curvature(predictor, response[..., 0])

    def slopes(self, reach: float, responses: Interval) -> Interval:
        lower, upper = self.of.slopes(reach, responses)
        return min(lower, 0.0), max(upper, 0.0)

    def curvatures(self, reach: float, responses: Interval) -> Interval:
        return 0.0, self.of.curvatures(reach, responses)[1]

    def spread(self, reach: float, responses: Interval) -> float:
        raise NotImplementedError("a weighted row may be long: its loss is bounded by its slope, not by its reach")


@dataclass(frozen=True, init=True, repr=False)
class MeasuredModel(ConvexModel):
    """The loss of a fit for rows z, weighted to ``row_bound`` r; it reads no records itself."""

    quantity: ClassVar[str] = "coefficients of measured columns"
    response = None

    loss: FitLoss
    columns: int
    intercept: bool
    row_bound: float
    prior: Gaussian
    variance: float = 1.0
    """Of a column, as a plan expects it: 1 where columns were measured."""

    @classmethod
    def example(cls) -> Self:
        loss = FitLoss(LogCoshLoss(1.0), 1.0, 1.0, "measured")
        return cls(loss, columns=2, intercept=True, row_bound=1.5, prior=Gaussian(scale=1.0))

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        raise InvalidModel("A model of measured coordinates is made by a plan and never stored.")

    @property
    def kernel(self) -> WeightedLoss:
        return WeightedLoss(self.loss.kernel)

    @property
    def dimension(self) -> int:
        return self.features.width

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(f"direction {index}" for index in range(self.dimension))

    @property
    def features(self) -> Features:  # type: ignore[override]  # computed, for a model that is never stored
        """Rows as a plan's design has them: on a sphere, all directions alike. No promise rests on it."""
        return Features(self.columns, math.sqrt(self.variance * self.columns), intercept=self.intercept)

    @property
    def slope_interval(self) -> tuple[float, float]:
        return -self.loss.slope_bound, self.loss.slope_bound

    @property
    def column_bounds(self) -> tuple[float, ...]:
        """Of a·z, which a record's gradient is a multiple of."""
        return (self.row_bound,) * self.dimension

    @property
    def row_reach(self) -> float:
        return self.row_bound

    @property
    def _bounds(self) -> dict[str, Bound]:
        proved, row = Provenance.PROVED, self.row_bound
        steepest = product_up(self.loss.slope_bound, row)
        return {
            "row": Bound(row, Provenance.ENFORCED, "rows in measured coordinates enter with weight min(1, r²/‖z‖²)"),
            "lipschitz": Bound(steepest, proved, "L·r: a·‖z‖ ≤ r, whatever was measured"),
            "gradient_difference": Bound(2.0 * steepest, proved, "G: two records' gradients, 2L·r"),
            "strong_convexity": Bound(0.0, proved, "one record's loss is flat across its row"),
            "smoothness": Bound(
                fraction_up(Fraction(self.loss.curvature_bound) * Fraction(row) ** 2), proved, "M·r²: a·‖z‖² ≤ r²"
            ),
        }


@dataclass(frozen=True)
class MeasuredProblem:
    """Everything public of the stage before, and of the way back to the columns.

    ``numbers`` are the plan's.
    """

    n: int
    moment_columns: MomentColumns
    numbers: Mapping[str, float]
    measuring: Measuring
    pure: bool
    response_scale: float

    @property
    def layout(self) -> Layout:
        return self.moment_columns.layout

    def coordinates(self, published: Published) -> Coordinates:
        return coordinates(self, published)

    def encoded_draws(self, published: Published, draws: Array) -> Array:
        """Draws of coefficients of z, one row each, as those of encoded rows."""
        where, width = self.coordinates(published), self.layout.width
        change = self.layout.encoded_coefficients(where.mean, where.root, where.stretch)
        result = np.asarray(draws @ change.T) * (where.unit * self.response_scale)  # responses were divided by these
        if self.layout.intercept:
            result[:, width - 1] += where.centre * self.response_scale
        return result


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredTarget(SummedTarget):
    """A release in measured coordinates with its records: first the design, then the draw.

    ``model`` is that of measured rows, and ``law`` what its own plan draws from, given them.
    """

    problem: MeasuredProblem
    encoded: Encoded | EncodedRecords
    model: Model
    law: Callable[[EncodedRecords], Any]

    def within(self, where: Coordinates) -> Any:
        """The inner plan's law for the records in published coordinates; what a record becomes depends on it alone."""
        problem = self.problem
        weights = (INSIDE * problem.numbers["row_bound"], problem.response_scale, where.centre, where.unit)
        public = (where.mean, where.root, where.stretch, *weights)
        rows = EncodedRecords(self.encoded.records, MeasuredRows(problem.layout), public)
        return self.law(rows)
