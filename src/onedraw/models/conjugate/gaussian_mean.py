"""The mean of numbers or vectors, with known variance and a Gaussian prior (Geumlek et al., A.6.2).

Records are clipped to [centre − bound, centre + bound], vectors scaled onto the ball of that radius. The
variance is declared: it says how noisy the model believes a record to be, and so how wide the draw is.
Replacing a record moves the sum by up to 2·bound, not by the bound as A.6.2 has it (from −Δ to Δ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from onedraw.errors import InvalidModel
from onedraw.models.model import (
    MOST_PARTS,
    Bound,
    ConjugateModel,
    Summary,
    count,
    number,
    positive_number,
    register_model,
    set_fields,
    shown,
)
from onedraw.models.sums.clamped_sums import RADIUS_STEPS, BallSum, LatticeSum, summed
from onedraw.privacy import Provenance
from onedraw.privacy.rounding import fraction_down, fraction_up

from .distributions import Normal


@register_model
@dataclass(frozen=True)
class GaussianMean(ConjugateModel):
    """Normal records of known ``variance`` around a mean whose prior is worth ``prior_count`` records.

    ``prior_mean`` is measured from ``centre``, so that 0 is the middle of the range. For dim > 1 both may be
    one number for all coordinates, or one each.

    | record | counts as |
    | --- | --- |
    | outside the range or ball | its nearest end, or the point of the sphere in its direction |
    | NaN, ±inf, None, not a number, a row of the wrong length | ``centre`` (dim > 1: in the missing coordinates) |
    """

    quantity: ClassVar[str] = "mean"
    title = "Mean"
    error_is_telling = True
    kinds: ClassVar[tuple[str, ...]] = ("number", "count", "binary")

    bound: float
    variance: float
    prior_count: float
    prior_mean: float | tuple[float, ...] = 0.0
    dim: int = 1
    centre: float | tuple[float, ...] = 0.0
    public_records: int = 0

    def __post_init__(self) -> None:
        dim = count("dim", self.dim, least=1, most=MOST_PARTS)
        if number("prior_count", self.prior_count) <= 0:
            raise InvalidModel(
                f"A Gaussian prior worth {self.prior_count!r} records is not normalizable. prior_count must "
                "be above 0, for example 1: a prior worth one record."
            )
        set_fields(
            self,
            bound=positive_number("bound", self.bound),
            variance=positive_number("variance", self.variance),
            prior_count=positive_number("prior_count", self.prior_count),
            prior_mean=_coordinates("prior_mean", self.prior_mean, dim),
            dim=dim,
            centre=_coordinates("centre", self.centre, dim),
            public_records=count("public_records", self.public_records),
        )
        if dim == 1 and not math.isfinite(2 * self.bound + abs(self._centres[0])):
            raise InvalidModel("The range centre ± bound is too large for floating-point numbers.")

    @property
    def meaning(self) -> str:
        if self.public_range is None:
            return super().meaning
        low, high = map(shown, self.public_range)
        return f"The mean of the column, declared to lie between {low} and {high}."

    @property
    def public_range(self) -> tuple[float, float] | None:
        (centre, *others), bound = self._centres, self.bound
        return None if others else (centre - bound, centre + bound)

    @property
    def prior_law(self) -> Normal:
        centred = zip(self._centres, self._prior_means, strict=True)
        return Normal(tuple(centre + mean for centre, mean in centred), self.variance / self.prior_count)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("mean",) if self.dim == 1 else tuple(f"mean {index}" for index in range(self.dim))

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {
            "norm": Bound(self.bound, Provenance.ENFORCED, "records are clipped to this distance from the centre"),
            "sensitivity": Bound(
                2 * self.bound, Provenance.PROVED, "replacing a record moves the exact sum by at most this"
            ),
            "variance": Bound(self.variance, Provenance.DECLARED, "part of the model; the draw's width comes from it"),
            **self._gibbs_bounds,
        }

    @property
    def _gibbs_bounds(self) -> dict[str, Bound]:
        """As a Gibbs posterior: ℓ(θ, x) = ‖x − θ‖²/2σ² has ∇ℓ(θ, x) − ∇ℓ(θ, x') = (x' − x)/σ² and Hessian I/σ².

        With m = (nw + n₀)/σ² the GDP rule wG/√m is 2wB/(σ√(nw + n₀)): Theorem 15 of Minami et al., and exact.
        """
        curvature = 1 / Fraction(self.variance)
        difference = fraction_up(2 * Fraction(self.bound) * curvature)
        return {
            "gradient_difference": Bound(difference, Provenance.PROVED, "G = 2·bound/variance, the same for every θ"),
            "strong_convexity": Bound(fraction_down(curvature), Provenance.PROVED, "1/variance for every record"),
            "smoothness": Bound(fraction_up(curvature), Provenance.PROVED, "1/variance for every record"),
        }

    @property
    def _centres(self) -> tuple[float, ...]:
        return self.centre if isinstance(self.centre, tuple) else (self.centre,)

    @property
    def _prior_means(self) -> tuple[float, ...]:
        return self.prior_mean if isinstance(self.prior_mean, tuple) else (self.prior_mean,)

    def _summarise(self, data: Any) -> Summary:
        """The total is Σ (x_i − centre), clipped."""
        unit = Fraction(self.bound) / RADIUS_STEPS
        if self.dim == 1:
            (centre,) = self._centres
            rows, steps = summed(data, LatticeSum(centre - self.bound, centre + self.bound, centre))
            return Summary(rows, ((int(steps[0]) - rows * RADIUS_STEPS) * unit,))
        rows, sums = summed(data, BallSum(self._centres, self.bound), dim=self.dim)
        return Summary(rows, tuple(int(value) * unit for value in sums))

    def posterior(self, summary: Summary, *, weight: float = 1.0, prior_factor: float = 1.0) -> Normal:
        r, pseudo_records = Fraction(weight), Fraction(self.prior_count) / Fraction(prior_factor)
        records = pseudo_records + r * summary.n
        parts = zip(self._centres, self._prior_means, summary.total, strict=True)
        mean = tuple(
            float(Fraction(centre) + (pseudo_records * Fraction(prior) + r * total) / records)
            for centre, prior, total in parts
        )
        return Normal(mean, float(Fraction(self.variance) / records))

    def _with_prior_from(self, summary: Summary) -> GaussianMean:
        mean = tuple(m - c for m, c in zip(self.posterior(summary).mean, self._centres, strict=True))
        return replace(self, prior_count=self.prior_count + summary.n, prior_mean=mean)


def _coordinates(name: str, value: Any, dim: int) -> float | tuple[float, ...]:
    """One number in one dimension, otherwise ``dim`` of them."""
    given = tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,) * dim
    if len(given) != dim:
        raise InvalidModel(f"{name} must be one number or {dim} of them, but {len(given)} came.")
    numbers = tuple(number(name, coordinate) for coordinate in given)
    return numbers[0] if dim == 1 else numbers
