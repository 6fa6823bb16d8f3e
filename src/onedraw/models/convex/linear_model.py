"""Models whose loss is convex in the parameter: what a Gibbs posterior ∝ π(θ) exp(−w Σ ℓ(θ, z_i)) needs to know.

Minami, Arai, Sato, "Differential Privacy without Sensitivity" (NIPS 2016): privacy follows from how far one
record's gradient reaches, not from a bounded loss. A model here is a frozen value: a convex loss, a Gaussian
prior, and public bounds that records are brought into. It encodes records (`summarise`) and states constants
(`bounds`); which promise follows is the business of `onedraw.methods`, how to draw that of `onedraw.samplers`.

| name in `bounds` | meaning, for every record and every θ of the prior's support |
| --- | --- |
| lipschitz | L: ‖∇ℓ‖ ≤ L |
| gradient_difference | G: ‖∇ℓ(θ, z) − ∇ℓ(θ, z')‖ ≤ G, at most 2L |
| smoothness | the largest eigenvalue of ∇²ℓ; absent where the loss has a kink |
| strong_convexity | the least eigenvalue of ∇²ℓ: 0 for one record in more than one dimension |
| predictor_bound | B = R·r̃: |θᵀx| ≤ B (with a radius R, as all that follow) |
| sensitivity | Δ: |ℓ(θ, z) − ℓ(θ, z')| ≤ Δ |
| range | ϱ: osc_θ[ℓ(θ, z) − ℓ(θ, z')] ≤ ϱ ≤ 2Δ; one exact draw is BoundedRange(wϱ) |
| curvature_ratio | κ: largest over least φ'' on |u| ≤ B; absent where the least is 0 |

All are rounded up (the strong convexity down).
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from onedraw.errors import InvalidModel
from onedraw.models.fit.losses import ClassLoss, FitLoss
from onedraw.models.model import Bound
from onedraw.models.priors import FLAT, Gaussian
from onedraw.models.row_model import DeclaredModel, RowModel
from onedraw.privacy import Provenance
from onedraw.privacy.numbers import fraction_up

from .losses import LinearLoss, product_up


class ConvexModel(RowModel):
    """A convex loss with public constants and a Gaussian prior.

    **Guarantee.** `summarise` never fails on the value of a record; row i of its result depends on record i
    alone and lies inside the declared bounds, so the constants in `bounds` hold for every data set.
    """

    quantity: ClassVar[str] = "coefficients"

    prior: Gaussian

    def _check(self) -> None:
        """The prior, last: it must fit the dimension that the other fields give."""
        prior: Any = self.prior
        if not isinstance(prior, Gaussian):
            got = "none was given" if prior is None else f"a {type(prior).__name__} was given"
            raise InvalidModel(
                f"{type(self).__name__} needs a Gaussian prior, but {got}. {FLAT} Pass prior=Gaussian(scale=1.0), say."
            )
        prior.check(self.dimension)

    @property
    @abc.abstractmethod
    def kernel(self) -> Any:
        """The loss alone, free of prior and bounds: hashable, with `losses`, `total`, `gradient_total` and
        `hessian_total`. Compiled functions take it as their static argument, so that models which differ in
        prior or bounds only share a compilation."""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """How many parameters there are."""

    @property
    def radius(self) -> float | None:
        """R of the prior's ball, or None."""
        return self.prior.radius

    @property
    def prior_scale(self) -> float:
        return self.prior.deviation(self.dimension)

    def float_error(self, n: int, parameters: Mapping[str, float]) -> float:
        """Bound the error as for any model, about the prior's mean."""
        return 2.0**-50 * self.prior.reach(self.dimension)

    @property
    def fit_loss(self) -> FitLoss | ClassLoss | None:
        """The loss of a perturbed mode, for models that have one: convex, smooth, of bounded slope."""
        return None

    @property
    def measured_loss(self) -> FitLoss | ClassLoss | None:
        """The loss of a posterior mechanism in measured coordinates, which asks for no more than that."""
        return self.fit_loss

    @property
    def response_scale(self) -> float:
        """What brings responses that are numbers into [−1, 1] for a fit; 1 for labels and counts."""
        return 1.0

    # What sums on a lattice rest on (`sums.gradient_sums`)

    @property
    def slope_interval(self) -> tuple[float, float] | None:
        """What a record's slopes never leave, where its gradient is slopes times its row; None for any other loss."""
        return None

    @property
    def column_bounds(self) -> tuple[float, ...]:
        """The largest size of each entry of an encoded row."""
        return self.features.column_bounds

    @property
    def row_reach(self) -> float:
        """The largest norm of an encoded row."""
        return self.features.reach


@dataclass(frozen=True, repr=False, kw_only=True)
class LinearModel(ConvexModel, DeclaredModel):
    """A convex model whose loss depends on θ through one linear predictor u = θᵀx.

    L = c·r̃ with c = sup|φ'|, because ∇ℓ = φ'x. G: the gradients of two records differ by s·x − s'·x' with
    slopes s, s' ∈ [−a, b]. Without an intercept that is at most 2cr. With one, x = (z, 1), and
    ‖sx − s'x'‖² ≤ (|s| + |s'|)²r² + (s − s')², convex in (s, s') and so largest at a corner:
    G = max((a + b)·r̃, 2c·r) ≤ 2L. Smoothness r̃²·sup φ'', because ∇²ℓ = φ''xxᵀ. Δ, ϱ: see `losses`.
    """

    @classmethod
    def example(cls, **options: Any) -> Self:
        """Make a small one on a ball, where all bounds exist; `options` are the class's own."""
        return cls(2, data_norm=1.5, intercept=False, prior=Gaussian(scale=2.0, radius=1.5), **options)

    @property
    def dimension(self) -> int:
        return len(self.parameter_names)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        names: tuple[str, ...] = self.features.column_names
        return names

    @property
    @abc.abstractmethod
    def kernel(self) -> LinearLoss: ...

    @property
    def predictor_bound(self) -> float:
        """B = R·r̃, or ∞ without a radius."""
        return math.inf if self.radius is None else product_up(self.radius, self.features.reach)

    @property
    def responses(self) -> tuple[float, float]:
        """The ends of the encoded responses."""
        assert self.response is not None
        return self.response.interval

    @property
    def slope_interval(self) -> tuple[float, float]:
        return self.kernel.slopes(self.predictor_bound, self.responses)

    @property
    def curvature_range(self) -> tuple[float, float]:
        """The least and the largest φ'' for |u| ≤ B."""
        return self.kernel.curvatures(self.predictor_bound, self.responses)

    @property
    def gradient_difference(self) -> float:
        reach, norm = self.features.reach, self.features.norm
        lower, upper = self.slope_interval
        # between slopes of one sign the farthest pair is another: ((a+b)r)² + (b−a)² at the corner (a, b)
        assert lower <= 0.0 <= upper, "the slopes of a loss must reach from at most 0 to at least 0"
        steepest = max(-lower, upper)
        if not self.features.intercept:
            return 2.0 * product_up(steepest, norm)
        across = Fraction(upper) - Fraction(lower)
        return max(fraction_up(across * Fraction(reach)), 2.0 * product_up(steepest, norm))

    @property
    def _bounds(self) -> dict[str, Bound]:
        proved, reach = Provenance.PROVED, self.features.reach
        lower, upper = self.slope_interval
        found = {
            **enforced_bounds(self),
            "lipschitz": Bound(product_up(max(-lower, upper), reach), proved, "L = r̃·sup|φ'|"),
            "gradient_difference": Bound(
                self.gradient_difference, proved, "G: the largest difference of two records' gradients, at most 2L"
            ),
            "strong_convexity": Bound(0.0, proved, "one record's loss is flat across its row"),
        }
        if math.isfinite(largest := self.curvature_range[1]):
            found["smoothness"] = Bound(
                fraction_up(Fraction(largest) * self.features.squared_reach), proved, "r̃²·sup φ''"
            )
        return found | (self._bounds_on_ball() if self.radius is not None else {})

    def _bounds_on_ball(self) -> dict[str, Bound]:
        proved, bound, responses = Provenance.PROVED, self.predictor_bound, self.responses
        least, largest = self.curvature_range
        spread = self.kernel.spread(bound, responses)
        found = {
            "predictor_bound": Bound(bound, proved, "B = R·r̃: |θᵀx| on the ball, by Cauchy and Schwarz"),
            "sensitivity": Bound(spread, proved, "Δ = sup φ − inf φ over |u| ≤ B"),
            "range": Bound(
                2.0 * min(spread, self.kernel.oscillation(bound, responses)), proved, "ϱ = 2·sup_y osc φ(u, y), |u| ≤ B"
            ),
        }
        if least > 0.0 and math.isfinite(largest):
            found["curvature_ratio"] = Bound(
                fraction_up(Fraction(largest) / Fraction(least)), proved, "κ = sup φ''/inf φ'' over |u| ≤ B"
            )
        return found


def enforced_bounds(model: ConvexModel) -> dict[str, Bound]:
    """What encoding makes true of every record."""
    why = f"rows are {model.features.enforced_by}" + (
        "; r̃ counts the intercept's 1" if model.features.intercept else ""
    )
    found = {"feature_norm": Bound(model.features.reach, Provenance.ENFORCED, why)}
    if model.response is not None:
        found["response"] = Bound(
            model.response.interval, Provenance.ENFORCED, "responses are mapped or clamped into this"
        )
    return found
