"""A convex loss in measured coordinates: what a posterior mechanism is given once the columns' moments are published.

    ℓ(θ, (x, y)) = a(z)·φ(zᵀθ, y),        z = g·(W(v − m), 1),    a(z) = min(1, r²/‖z‖²)        (`measured`, `fit_losses`)

Mallows' weight depends on the record's row and on published numbers alone, so this is a convex loss of one record
like any other, for every m, W and g: ‖∇ℓ‖ = a|φ'|‖z‖ ≤ L·r and ∇²ℓ = aφ''zzᵀ ⪯ M·r². These two constants are all that
the theorems of Gibbs posteriors and noisy gradients ask of a record; r is fixed before the records are read, and so is
the prior, which is on the coefficients of z. Weights, unlike shortened rows, leave a well specified model consistent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onedraw.privacy import Provenance
from onedraw.privacy.rounding import fraction_up

from .convex_model import ConvexModel
from .features import Features
from .fit_losses import FitLoss
from .fit_published import Coordinates, Published
from .fit_target import FitProblem, FitTarget
from .losses import Interval, LinearLoss, product_up
from .measured import INSIDE, mallows
from .model import Bound
from .priors import Gaussian
from .row_model import Encoded

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WeightedLoss(LinearLoss):
    """a·φ(u, y): a response is a pair (y, a) of the response and its row's weight, 0 ≤ a ≤ 1."""

    of: Any

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

    def oscillation(self, reach: float, responses: Interval) -> float:
        raise NotImplementedError("a weighted row may be long: its loss is bounded by its slope, not by its reach")


@dataclass(frozen=True, init=True, repr=False)
class MeasuredModel(ConvexModel):
    """The loss of a fit for rows z, weighted to ``row_bound`` r; it reads no records itself."""

    quantity: ClassVar[str] = "coefficients of measured columns"

    loss: FitLoss
    columns: int
    intercept: bool
    row_bound: float
    prior: Gaussian
    variance: float = 1.0
    """Of a column, as a plan expects it: 1 where columns were measured."""

    @property
    def kernel(self) -> WeightedLoss:
        return WeightedLoss(self.loss.kernel)

    @property
    def dimension(self) -> int:
        return self.features.width

    @property
    def response(self) -> None:
        return None

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(f"direction {index}" for index in range(self.dimension))

    @property
    def features(self) -> Features:  # type: ignore[override]  # computed, for a model that is never stored
        """Rows as a plan's design has them: on a sphere, all directions alike. No promise rests on it."""
        return Features(self.columns, math.sqrt(self.variance * self.columns), intercept=self.intercept)

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


@dataclass(frozen=True, eq=False)
class MeasuredTarget:
    """A release in measured coordinates with its records, as private as they are: first the design, then the draw.

    ``plan`` is the inner plan, about a `MeasuredModel`.
    """

    problem: FitProblem
    encoded: Encoded
    plan: Any

    def __repr__(self) -> str:
        return f"MeasuredTarget(n={self.encoded.n}, columns={self.problem.layout.columns}, records=<private>)"

    @property
    def design(self) -> FitTarget:
        """What the stage before is about."""
        return FitTarget(self.problem, self.encoded)

    def within(self, where: Coordinates) -> Any:
        """The inner plan's law for the records in published coordinates; what a record becomes depends on it alone."""
        problem, layout = self.problem, self.problem.layout
        z = np.asarray(layout.measured(self.encoded.X, where.mean, where.root, where.stretch))
        weights = np.asarray(mallows(z, INSIDE * problem.numbers["row_bound"]))
        responses = (self.encoded.y / problem.response_scale - where.centre) / where.unit
        inner = replace(self.encoded, X=z, y=np.column_stack([responses, weights]))
        return self.plan.mechanism.target(self.plan, inner)


def published_draws(problem: FitProblem, published: Published, draws: Array) -> Array:
    """Draws of coefficients of z, one row each, as those of encoded rows: post-processing of what was published."""
    where = problem.coordinates(published)
    return np.asarray(draws @ problem.encoded_coefficients(where).T + problem.encoded_shift(where))
