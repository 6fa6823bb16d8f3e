"""What is publicly known of a convex model, and so of its Gibbs posterior ∝ exp(−w Σ ℓ(θ, x_i)) π(θ)^{1/m}.

The mechanisms for convex losses and their samplers rest on the same few bounds; here they are read off the model once,
with their provenance, and rounded outward where n and the weight enter. Every ℓ(·, x) is convex and m_ℓ-strongly convex
(m_ℓ ≥ 0), −log π is m_π-strongly convex, m = n·w·m_ℓ + m_π, and ℓ(·, x) − ℓ(·, x') is G-Lipschitz, G ≤ 2L. One exact
draw is then GaussianDP(μ), μ(w) = wG/√m (arXiv:2203.00263). The mean of Gaussian records belongs here too: ‖x −
θ‖²/(2v) is 1/v-strongly convex, and two records differ by a linear function of slope at most 2B/v (Minami et al.,
supplement B, Theorem 15).

Promises are rounded up, weights down: μ is computed in rational arithmetic and rounded once. Proofs: methods/gibbs/proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from onedraw.errors import InvalidModel, PromiseRefused, UnsupportedBudget
from onedraw.methods.calibration import largest_number
from onedraw.models import GaussianMean
from onedraw.models.conjugate.distributions import BallGaussian
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.models.convex.number_losses import SquaredLoss
from onedraw.models.sums.gradient_sums import square_units
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import ZCDP, ApproxDP, Assumption, GaussianDP, Promise, RenyiDP
from onedraw.privacy.numbers import fraction_down, fraction_up, positive, root_up, text

SHARE = 0.01
"""Of δ, kept back for a sampler that is not exact."""

TINY_DELTA = 1e-10
"""The δ offered to someone who asked for a pure promise where no exact draw is within reach."""

_ON_A_BALL = ("predictor_bound", "sensitivity", "range", "curvature_ratio")
_NAMED = ("lipschitz", "gradient_difference", "smoothness", "strong_convexity", *_ON_A_BALL)


@dataclass(frozen=True)
class Curvature:
    """The public numbers a Lipschitz rule rests on; ``reach`` is k·√J for k records in J draws together.

    Several records of one person add their gradients, and J independent draws are one draw from a product,
    along which the log-ratio is √J times as steep: both only stretch G.
    """

    gradient_difference: float
    prior_strong_convexity: float
    strong_convexity: float = 0.0
    """m_ℓ, for one record."""
    n: int = 1
    records_per_person: int = 1
    draws: int = 1

    def __post_init__(self) -> None:
        positive("the gradient difference G", self.gradient_difference)
        if not (self.prior_strong_convexity >= 0.0 and self.strong_convexity >= 0.0):
            raise InvalidModel("Strong convexity is never below 0: a loss or prior that is not convex has no promise.")
        if not self.prior_strong_convexity + self.strong_convexity > 0.0:
            raise InvalidModel(
                "The prior has a flat coordinate (m_π = 0) and the loss has no curvature of its own, so nothing "
                "keeps two neighbouring posteriors together: no promise exists. Use a prior of finite scale."
            )

    @property
    def reach_squared(self) -> Fraction:
        """(G·k)²·J: the squared slope of the log-ratio per unit of weight."""
        return (Fraction(self.gradient_difference) * self.records_per_person) ** 2 * self.draws

    def total(self, weight: float) -> Fraction:
        """m = n·w·m_ℓ + m_π, exactly."""
        return self.n * Fraction(weight) * Fraction(self.strong_convexity) + Fraction(self.prior_strong_convexity)

    def mu_squared(self, weight: float) -> Fraction:
        """w²G²/m, exactly; it increases in the weight."""
        return Fraction(positive("the weight", weight)) ** 2 * self.reach_squared / self.total(weight)


def weight_at(mu: float, curvature: Curvature) -> float:
    """The largest w with wG/√m ≤ μ, rounded down.

    w²G² = μ²(n·m_ℓ·w + m_π) has the positive root w = [μ²nm_ℓ + √(μ⁴n²m_ℓ² + 4G²μ²m_π)]/(2G²); at G = 2L this is
    [μ²nm_ℓ + √(μ⁴n²m_ℓ² + 16L²μ²m_π)]/(8L²), and μ√m_π/G where m_ℓ = 0.
    """
    square, reach = Fraction(mu) ** 2, curvature.reach_squared
    linear = square * curvature.n * Fraction(curvature.strong_convexity)
    root = root_up(linear**2 + 4 * reach * square * Fraction(curvature.prior_strong_convexity))
    weight = fraction_down((linear + Fraction(root)) / (2 * reach))
    while weight > 0.0 and curvature.mu_squared(weight) > square:
        weight = math.nextafter(weight, 0.0)
    if not weight > 0.0:
        raise PromiseRefused(
            f"No weight that a floating-point number can hold keeps μ = {text(mu)} with these bounds: the records "
            "would not matter. Use a larger budget, tighter bounds on the records, or a narrower prior."
        )
    return weight


def gdp_weight(budget: Promise, curvature: Curvature) -> float:
    """The largest weight whose GaussianDP(wG/√m) implies the budget."""
    return weight_at(gdp_mu(budget), curvature)


def gdp_promise(weight: float, curvature: Curvature) -> GaussianDP:
    """GaussianDP(wG/√m), exact draw, no differentiability needed (arXiv:2203.00263)."""
    return GaussianDP(root_up(curvature.mu_squared(weight)))


def gdp_mu(budget: Promise) -> float:
    """The largest μ with GaussianDP(μ) ⇒ budget, rounded down."""
    return largest_number(GaussianDP, budget)


# ── what a model says ────────────────────────────────────────────────────────────────────────────────────────


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

    def curvature(self, request: Request) -> Curvature:
        """What the Lipschitz rules need, for a person's records in all draws together."""
        return Curvature(
            self.gradient_difference, self.prior_strong_convexity, self.strong_convexity,
            request.n, request.records_per_person, request.draws,
        )  # fmt: skip

    def numbers(self, weight: float, n: int, *, prior_factor: float = 1.0) -> dict[str, float]:
        """The plan's public numbers: what rests on the whole potential, then what rests on one record."""
        records, prior = n * Fraction(weight), Fraction(prior_factor)
        strong = fraction_down(Fraction(self.prior_strong_convexity) / prior)
        smooth = fraction_up(Fraction(self.prior_smoothness) / prior)
        whole = None if self.smoothness is None else fraction_up(records * Fraction(self.smoothness) + Fraction(smooth))
        total = fraction_down(records * Fraction(self.strong_convexity) + Fraction(strong))
        found: dict[str, float | None] = {
            "weight": weight, "strong_convexity": total, "smoothness": whole, "prior_strong_convexity": strong,
            "prior_smoothness": smooth, "lipschitz": self.lipschitz, "gradient_difference": self.gradient_difference,
            "radius": self.radius, **{name: getattr(self, name) for name in _ON_A_BALL},
        }  # fmt: skip
        return {name: value for name, value in found.items() if value is not None}


def smooth_bounds_of(model: Any) -> ConvexBounds:
    """The constants of a model whose gradient a path may follow; refused where the loss has a kink."""
    bounds = bounds_of(model)
    if bounds.smoothness is None:
        raise UnsupportedBudget(
            f"The loss of {type(model).__name__} has a kink, so no step size follows its gradient. Use its "
            "smoothed version: HuberisedHinge, or Quantile(smoothing=…)."
        )
    return bounds


def bounds_of(model: Any) -> ConvexBounds:
    """The constants of a convex model or a Gaussian mean; refused for any other, or where a bound is missing."""
    if isinstance(model, GaussianMean):
        variance = Fraction(model.variance)
        precision = Fraction(model.prior_count) / variance
        return ConvexBounds(
            gradient_difference=fraction_up(2 * Fraction(model.bound) / variance),
            strong_convexity=fraction_down(1 / variance), smoothness=fraction_up(1 / variance),
            prior_strong_convexity=fraction_down(precision), prior_smoothness=fraction_up(precision),
        )  # fmt: skip
    if not isinstance(model, ConvexModel):
        raise UnsupportedBudget(
            f"{type(model).__name__} has no convex loss with a Gaussian prior on its parameter. Gibbs and "
            "NoisyGradient are for convex models, such as Logistic."
        )
    declared = {name: bound.value for name, bound in model.bounds.items() if not isinstance(bound.value, tuple)}
    known = {name: value if math.isfinite(value := declared.get(name, math.inf)) else None for name in _NAMED}
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
        gradient_difference=difference, strong_convexity=known["strong_convexity"] or 0.0,
        prior_strong_convexity=model.prior.strong_convexity, prior_smoothness=model.prior.smoothness,
        radius=model.prior.radius, lipschitz=lipschitz, smoothness=known["smoothness"],
        **{name: known[name] for name in _ON_A_BALL},
    )  # fmt: skip


def has_closed_form(model: Any) -> bool:
    """Whether every Gibbs posterior of this model is a Gaussian, or one cut to a ball: then the draw is exact."""
    quadratic = isinstance(model, ConvexModel) and isinstance(model.kernel, SquaredLoss)
    return quadratic or isinstance(model, GaussianMean)


def reserve(model: Any, budget: Promise, share: float) -> float:
    """γ with (1 + e^ε)γ = this share of δ, for draws by a chain; 0 where the draw is exact or there is no δ."""
    by_chain = isinstance(model, ConvexModel) and not has_closed_form(model)
    return budget.total_variation(share) if by_chain else 0.0


def assumptions(request: Request) -> tuple[Assumption, ...]:
    """What every rule for convex losses needs, and who answers for it."""
    found = list(fixed_in_advance(request, "prior, bounds"))
    for name, bound in request.model.bounds.items():
        shown = ", ".join(map(text, bound.value if isinstance(bound.value, tuple) else (bound.value,)))
        found.append(Assumption(f"{name.replace('_', ' ')} {shown}: {bound.why}", bound.provenance))
    return tuple(found)


@dataclass(frozen=True)
class Rule:
    """One theorem that turns these bounds and a budget into a weight, and a weight into a promise."""

    theorem: str
    budgets: tuple[type[Promise], ...]
    """The kinds of budget it can keep, (ε, δ) with δ above 0 among them."""
    weight: Callable[[Request, ConvexBounds], float]
    promise: Callable[[Request, float, ConvexBounds], Promise]
    of_a_mean: str = ""
    """The theorem for the Gaussian mean, where it is another one."""


GDP = Rule(
    "GaussianDP(wG/√m) of strongly log-concave posteriors whose potentials differ by a G-Lipschitz function "
    "(arXiv:2203.00263)",
    (ApproxDP, GaussianDP, ZCDP, RenyiDP),
    lambda request, bounds: gdp_weight(request.exact_budget, bounds.curvature(request)),
    lambda request, weight, bounds: gdp_promise(weight, bounds.curvature(request)),
)


# ── the law, once the records are there ──────────────────────────────────────────────────────────────────────


def gibbs_law(plan: Plan, summary: Any, *, weight: float, prior_factor: float = 1.0) -> Any:
    """∝ exp(−w Σ ℓ(θ, x_i)) π(θ)^{1/m}: a Gaussian, or one cut to a ball, where the loss is quadratic."""
    model = plan.model
    if isinstance(model, GaussianMean):
        return model.posterior(summary, weight=weight, prior_factor=prior_factor)
    target = gibbs_target(plan, summary, weight=weight, prior_factor=prior_factor)
    if not has_closed_form(model):
        return target
    from onedraw.models.sums.gradient_sums import squares  # which loads JAX

    sums = squares(summary, square_units(model, summary.n))
    precision = weight * sums[:-1, :-1] + np.diag(target.precision)
    return BallGaussian(precision, weight * sums[:-1, -1] + target.precision * target.location, model.prior.radius)


def gibbs_target(
    plan: Plan, summary: Any, *, weight: float, prior_factor: float = 1.0, kind: type[GibbsTarget] = GibbsTarget
) -> GibbsTarget:
    """The same law as a potential, with the plan's public constants of it."""
    model, numbers = plan.model, plan.parameters
    precision, location = model.prior.precision(model.dimension) / prior_factor, model.prior.location(model.dimension)
    constants = numbers.get("radius"), numbers["strong_convexity"], numbers.get("smoothness", math.inf)
    return kind(model, summary, weight, precision, location, *constants)


def instead(budget: Promise) -> str:
    """What keeps a pure promise where no exact draw does, or one with a δ that is as good as none."""
    epsilon = text(budget.pure_epsilon) if math.isfinite(budget.pure_epsilon) else "ε"
    return f"With a tiny δ rule='bounded' needs no exact draw: ApproxDP({epsilon}, {TINY_DELTA:g})."


def pure_offer(budget: Promise) -> str:
    """The same where the rule is another one."""
    return f"On a ball rule='bounded' draws exactly (Logistic of few columns, LeastSquares). {instead(budget)}"
