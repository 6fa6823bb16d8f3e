"""A convex model's public constants as plain numbers, for one weight on the records and n of them.

The rules of gibbs_rules.py, the samplers and the noisy-gradient path all rest on the same few bounds; here they are
read off the model once, with their provenance, and rounded outward where n and the weight enter. The mean of
Gaussian records belongs here too: ‖x − θ‖²/(2v) is 1/v-strongly convex, and two records differ by a linear function
of slope at most 2B/v (Minami et al., supplement B, Theorem 15).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from onedraw.errors import UnsupportedBudget
from onedraw.models import GaussianMean, Model
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.models.convex.losses import SquaredLoss
from onedraw.plans import Request, fixed_in_advance
from onedraw.privacy import ApproxDP, Assumption, Promise
from onedraw.privacy.conversions import total_variation_within
from onedraw.privacy.rounding import fraction_down, fraction_up, text

from .gibbs_rules import Curvature

SHARE = 0.01
"""Of δ, kept back for a sampler that is not exact."""

_NAMED = ("lipschitz", "gradient_difference", "smoothness", "strong_convexity")
_ON_A_BALL = ("predictor_bound", "sensitivity", "range", "curvature_ratio")


@dataclass(frozen=True)
class ConvexBounds:
    """What is known of every record's loss, and of the prior. None: not known, or not finite."""

    gradient_difference: float
    strong_convexity: float
    prior_strong_convexity: float
    prior_smoothness: float
    lipschitz: float | None = None
    smoothness: float | None = None
    radius: float | None = None
    predictor_bound: float | None = None
    sensitivity: float | None = None
    range: float | None = None
    curvature_ratio: float | None = None

    def curvature(self, request: Request, *, prior_factor: float = 1.0) -> Curvature:
        """What the Lipschitz rules need, for a person's records in all draws together."""
        return Curvature(
            self.gradient_difference,
            fraction_down(Fraction(self.prior_strong_convexity) / Fraction(prior_factor)),
            strong_convexity=self.strong_convexity,
            n=request.n,
            records_per_person=request.records_per_person,
            draws=request.draws,
        )

    def numbers(self, weight: float, n: int, *, prior_factor: float = 1.0) -> dict[str, float]:
        """The plan's public numbers: what rests on the whole potential, then what rests on one record."""
        records, prior = n * Fraction(weight), Fraction(prior_factor)
        strong = fraction_down(Fraction(self.prior_strong_convexity) / prior)
        smooth = fraction_up(Fraction(self.prior_smoothness) / prior)
        found: dict[str, float | None] = {
            "weight": weight,
            "strong_convexity": fraction_down(records * Fraction(self.strong_convexity) + Fraction(strong)),
            "smoothness": None
            if self.smoothness is None
            else fraction_up(records * Fraction(self.smoothness) + Fraction(smooth)),
            "prior_strong_convexity": strong,
            "prior_smoothness": smooth,
            "lipschitz": self.lipschitz,
            "gradient_difference": self.gradient_difference,
            "radius": self.radius,
            **{name: getattr(self, name) for name in _ON_A_BALL},
        }
        return {name: value for name, value in found.items() if value is not None}


def bounds_of(model: Any) -> ConvexBounds:
    """The constants of a convex model or a Gaussian mean; refused for any other, or where a bound is missing."""
    if isinstance(model, GaussianMean):
        return _gaussian_mean(model)
    if not isinstance(model, ConvexModel):
        raise UnsupportedBudget(
            f"{type(model).__name__} has no convex loss with a Gaussian prior on its parameter. Gibbs and NoisyGradient "
            "are for the convex models of onedraw.models, such as Logistic; for this model use Diffused()."
        )
    known = {name: _number(model, name) for name in (*_NAMED, *_ON_A_BALL)}
    lipschitz, difference = known["lipschitz"], known["gradient_difference"]
    if difference is None and lipschitz is not None:
        difference = 2.0 * lipschitz
    if difference is None:
        raise UnsupportedBudget(
            f"{type(model).__name__} has no bound on the slope of its loss over all of R^d, so no weight is private. "
            "Restrict the prior to a ball, for example Gaussian(scale=1, radius=2), or use a loss with bounded slope, "
            "such as HuberRegression."
        )
    return ConvexBounds(
        gradient_difference=difference,
        strong_convexity=known["strong_convexity"] or 0.0,
        prior_strong_convexity=model.prior.strong_convexity,
        prior_smoothness=model.prior.smoothness,
        radius=model.prior.radius,
        lipschitz=lipschitz,
        smoothness=known["smoothness"],
        **{name: known[name] for name in _ON_A_BALL},
    )


def _number(model: Model, name: str) -> float | None:
    bound = model.bounds.get(name)
    value = math.inf if bound is None or isinstance(bound.value, tuple) else bound.value
    return value if math.isfinite(value) else None


def _gaussian_mean(model: GaussianMean) -> ConvexBounds:
    variance = Fraction(model.variance)
    precision = Fraction(model.prior_count) / variance
    return ConvexBounds(
        gradient_difference=fraction_up(2 * Fraction(model.bound) / variance),
        strong_convexity=fraction_down(1 / variance),
        prior_strong_convexity=fraction_down(precision),
        prior_smoothness=fraction_up(precision),
        smoothness=fraction_up(1 / variance),
    )


def has_closed_form(model: Any) -> bool:
    """Whether every Gibbs posterior of this model is a Gaussian, or one cut to a ball: then the draw is exact."""
    quadratic = isinstance(model, ConvexModel) and isinstance(model.kernel, SquaredLoss)
    return quadratic or isinstance(model, GaussianMean)


def reserve(model: Any, budget: Promise, share: float) -> float:
    """γ with (1 + e^ε)γ = this share of δ, for draws by a chain; 0 where the draw is exact or there is no δ."""
    by_chain = isinstance(model, ConvexModel) and not has_closed_form(model)
    if not (by_chain and isinstance(budget, ApproxDP)):
        return 0.0
    return total_variation_within(budget.stated_epsilon, share * budget.stated_delta)


def assumptions(request: Request) -> tuple[Assumption, ...]:
    """What every rule for convex losses needs, and who answers for it."""
    found = [*fixed_in_advance(request, "prior, bounds")]
    for name, bound in request.model.bounds.items():
        values = bound.value if isinstance(bound.value, tuple) else (bound.value,)
        shown = ", ".join(map(text, values))
        found.append(Assumption(f"{name.replace('_', ' ')} {shown}: {bound.why}", bound.provenance))
    return tuple(found)
