"""One draw from a β-divergence posterior: any model with a bounded density, pure ε, at the best β.

    p(θ) ∝ π(θ) exp(−w Σ ℓ_β(x_i, θ)),        ℓ_β(x, θ) = −f(x; θ)^{β−1}/(β−1) + (1/β) ∫ f(·; θ)^β

Source: Jewson, Ghalebikesabi, Holmes, *Differentially private statistical inference through β-divergence one
posterior sampling* (NeurIPS 2023). A bounded density bounds the loss, so that neither features nor responses nor
parameters need bounds. With Δ(β) = sup |ℓ_β(x, θ) − ℓ_β(x', θ)| one exact draw is BoundedRange(2wΔ(β)), whatever β and
w: at a given ε every pair (β, ε/(2Δ(β))) is equally private, but not equally useful. The paper fixes w = 1 and lets ε
choose β (methods/published_rules.py); here w carries ε and β is free to be the best one under a public reference design
(models/likelihood/reference_design.py). Statement, preconditions and departures: proof.md. The promise is about an exact draw; what
a chain's draw is worth is worked out at the release, from its exactness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods import published_rules as literature
from onedraw.methods.base import Mechanism
from onedraw.methods.calibration import MARGIN, SMALLEST, check_effect, largest_number
from onedraw.models import Bound
from onedraw.models.design import EFFECT
from onedraw.models.likelihood import LARGEST_BETA, LEAST_BETA, check_beta
from onedraw.models.likelihood.likelihood_model import WithLikelihood
from onedraw.models.likelihood.reference_design import ReferenceDesign, Sensitivity
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import Assumption, BoundedRange, Promise, Provenance, compose, numbers
from onedraw.privacy.numbers import fraction_down, fraction_up, positive, text

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

RULES = ("optimal", "jewson")

THEOREM = (
    "the exponential mechanism with a bounded loss, as a bounded range: Theorem 1 of Jewson et al. (NeurIPS 2023) with "
    "a weight, and with the sensitivity proved for losses whose integral depends on the covariates (errata 4)"
)
NOT_PROVEN = (
    "Theorem 1, Jewson et al. (NeurIPS 2023), calibrated as in its published code, with the prior's variance in place "
    "of the floor of the residual variance; NOT PROVEN (errata 3)"
)

RANGE_PRECISION = 2.0**-20
"""Relative; how close several draws come to the budget. Each step may need a privacy-loss distribution."""

SAME = 2.0**-48
"""Two machines may round the last digits of a sensitivity differently; its own outward rounding is larger."""


@dataclass(frozen=True)
class BetaDivergence(Mechanism):
    """The β-divergence posterior of a model with a bounded density; BoundedRange(2wΔ(β)) for each exact draw.

    | rule | β | weight |
    | --- | --- | --- |
    | ``optimal`` | smallest trace of the asymptotic covariance under the public reference design | ε/(2Δ(β)) |
    | ``jewson`` | smallest with 2Δ(β) ≤ ε; 1 + 2/ε for discrete responses | 1 |

    ``beta`` and ``weight`` replace what ``optimal`` would choose; the other one is then calibrated, or both are only
    checked. ``as_published=True`` calibrates ``jewson`` on a Gaussian model as the published code does; `proven` is
    then False. ``effect`` and ``noise`` declare the standard deviation of the linear predictor, and that of a response
    about it (None: 1). They tune, and must not be computed from the records: wrong ones cost accuracy, never privacy.
    """

    needs_chain: ClassVar[bool] = True  # type: ignore[misc]
    title: ClassVar[str] = "β-divergence posterior sampling"

    rule: str = "optimal"
    beta: Annotated[float | None, partial(positive, "beta")] = None
    weight: Annotated[float | None, partial(positive, "weight")] = None
    as_published: bool = False
    effect: Annotated[float | None, partial(positive, "effect")] = None
    noise: Annotated[float | None, partial(positive, "noise")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule not in RULES:
            raise WrongCall(f"The rules of BetaDivergence are {', '.join(map(repr, RULES))}, not {self.rule!r}.")
        if self.as_published not in (True, False) or (self.as_published and self.rule != "jewson"):
            raise WrongCall("as_published=True is the calibration of the paper's own code, of rule='jewson' alone.")
        if self.rule == "jewson" and not self.beta is self.weight is None:
            raise WrongCall(
                "rule='jewson' is w = 1 with the β that ε then asks for, so beta= and weight= leave it nothing to "
                "choose. Leave them out, or leave out the rule."
            )
        if self.beta is not None:
            check_beta(self.beta)
        check_effect(self.effect, "beta=…")

    def heading(self, plan: Plan) -> str:
        return f"{self.title}, β = {plan.parameters['beta']:.6g}, rule {self.rule}"

    def calibrate(self, request: Request) -> Plan:
        sensitivity = sensitivity_of(request.model)
        largest, people = largest_range(request.exact_budget, request.draws), request.records_per_person
        if self.beta is not None:
            beta = self.beta
        elif self.rule == "jewson":
            beta = literature.jewson_beta(self._believed(request.model), largest, records_per_person=people)
        else:
            beta = self._design(request.model).optimal_beta(sensitivity, largest / people, weight=self.weight)
        kept = self.as_published and _promise(request, 1.0, sensitivity(beta)).implies(request.exact_budget)
        mechanism = replace(self, as_published=False) if kept else self
        weight = 1.0 if self.rule == "jewson" else self.weight
        if weight is None:
            weight = weight_within(largest, sensitivity(beta), records_per_person=people)
        return mechanism._plan(request, beta, weight)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        beta, weight = (parameters.get(name, math.nan) for name in ("beta", "weight"))
        if not (LEAST_BETA <= beta <= LARGEST_BETA and 0.0 < weight < math.inf):
            raise PromiseRefused(f"A {self.title} needs a β above 1 and a positive weight; those stated are not.")
        if self.beta not in (None, beta) or self.weight not in (None, weight):
            raise PromiseRefused("The β and weight stated are not those the mechanism was made with.")
        if self.rule == "jewson" and weight != 1.0:
            raise PromiseRefused("rule='jewson' has the weight 1, and the weight stated is another.")
        return self._plan(request, beta, weight, parameters)

    def promise(
        self, model: Any, *, beta: float, weight: float, draws: int = 1, records_per_person: int = 1
    ) -> Promise:
        """What ``draws`` exact draws of this β and weight promise together, as a bounded range."""
        delta = sensitivity_of(model)(beta)
        one = draw_range(weight, delta, records_per_person=records_per_person)
        return promise_of_draws(one, draws, BoundedRange(one))

    def target(self, plan: Plan, summary: Any) -> Any:
        """The posterior as a potential."""
        from onedraw.models.likelihood.beta_target import BetaTarget

        return BetaTarget(plan.model, summary, plan.parameters["weight"], plan.parameters["beta"])

    def _believed(self, model: Any) -> Sensitivity:
        """Δ as this rule computes it: as published, with the prior's variance in place of the floor."""
        variance = literature.published_variance(model) if self.as_published else None
        return sensitivity_of(model) if variance is None else literature.normal_sensitivity(variance)

    def _design(self, model: Any) -> ReferenceDesign:
        return ReferenceDesign(model, self.effect or EFFECT, self.noise)

    def _plan(self, request: Request, beta: float, weight: float, stated: Mapping[str, float] | None = None) -> Plan:
        value, bound = sensitivity_bound(request.model, beta)
        true = _agreed(stated, "sensitivity", value, SAME)
        believed = true if self.proven else self._believed(request.model)(beta)
        numbers = {"weight": weight, "beta": beta, "sensitivity": true, "range": draw_range(weight, believed)}
        if not self.proven:
            numbers["true_range"] = draw_range(weight, true)
        curvature = self._design(request.model).curvature(beta)
        if curvature is not None:
            numbers["curvature"] = _agreed(stated, "curvature", curvature, 1e-6)
            numbers["effect"] = self.effect or EFFECT
        loss = Assumption(f"sensitivity {text(true)} of the loss: {bound.why}", bound.provenance)
        found, promise = (*fixed_in_advance(request, "prior, β, weight"), loss), _promise(request, weight, believed)
        if self.proven:
            return Plan.of(self, request, numbers, promise, THEOREM, found)
        claim = (
            "the residual variance never falls below the prior's variance, though its floor is lower: the range of one "
            f"draw is {numbers['true_range']:.6g}, not {numbers['range']:.6g}"
        )
        assumed = Assumption(claim, Provenance.ASSUMED)
        return Plan.of(self, request, numbers, promise, NOT_PROVEN, (assumed, *found))

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import divergence_case

        return divergence_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import audit_cases

        return audit_cases()


def draw_range(weight: float, sensitivity: float, *, records_per_person: int = 1) -> float:
    """2wΔ·k, rounded up: the range of the log-ratio of one draw when a person's k records are replaced."""
    exact = 2 * Fraction(positive("the weight", weight)) * Fraction(positive("the sensitivity Δ", sensitivity))
    return fraction_up(exact * records_per_person)


def weight_within(largest_range: float, sensitivity: float, *, records_per_person: int = 1) -> float:
    """The largest w with 2wΔ·k at most this range, rounded down; refused where the records would not matter."""
    exact = Fraction(positive("the range", largest_range)) / (2 * records_per_person * Fraction(sensitivity))
    weight = fraction_down(exact)
    if not weight >= SMALLEST:
        raise PromiseRefused(
            f"A bounded range of {text(largest_range)} leaves the weight w = {weight:.3g}, below 2^−60: the records "
            "would not matter, and the draw would be one from the prior. Use a larger budget."
        )
    return weight


def promise_of_draws(one_draw: float, draws: int, budget: Promise) -> Promise:
    """``draws`` independent draws of this range each, described in the budget's own currency.

    Ranges of independent draws add, which is the best for budgets without a δ; every other budget gains from
    composition, as a draw's log-ratio is rarely at either end of its range.
    """
    if draws == 1 or budget.is_pure:
        return BoundedRange(fraction_up(Fraction(one_draw) * draws))
    return compose(*[BoundedRange(one_draw)] * draws)


def _promise(request: Request, weight: float, sensitivity: float) -> Promise:
    one = draw_range(weight, sensitivity, records_per_person=request.records_per_person)
    return promise_of_draws(one, request.draws, request.exact_budget)


@lru_cache(maxsize=256)
def largest_range(budget: Promise, draws: int) -> float:
    """The largest range of one draw with which all of them together imply the budget, rounded down."""
    high = largest_number(BoundedRange, budget)
    if budget.is_pure:
        return fraction_down(Fraction(high) / draws)
    if draws == 1:
        return high * (1.0 - MARGIN)
    found = numbers.largest(
        lambda one_draw: promise_of_draws(one_draw, draws, budget).implies(budget),
        start=high / draws, most=high, precision=RANGE_PRECISION, factor=float(draws),
    )  # fmt: skip
    assert found is not None  # J draws of a J-th of the range keep at least what one draw does
    return found * (1.0 - RANGE_PRECISION)


def sensitivity_bound(model: Any, beta: float) -> tuple[float, Bound]:
    """Δ(β) of the model's loss, and where it comes from; refused where it is not known, or not positive and finite."""
    bound: Bound = _likelihood(model).sensitivity(beta)
    value: Any = bound.value
    if not 0.0 < value < math.inf:
        raise PromiseRefused(
            f"The sensitivity of {type(model).__name__} at β = {text(beta)} is not a positive finite number, so no "
            "weight is private. Use a smaller β, or a higher floor on the scale of the response."
        )
    return value, bound


def sensitivity_of(model: Any) -> Sensitivity:
    """Δ as a function of β; refused at once where the density has no known bound."""
    _likelihood(model)
    return lambda beta: sensitivity_bound(model, beta)[0]


def _likelihood(model: Any) -> Any:
    if not isinstance(model, WithLikelihood):
        raise UnsupportedBudget(
            f"{type(model).__name__} has no likelihood with a known bound on its density, so its β-divergence loss has "
            "no known sensitivity. Use Logistic, Softmax, GaussianRegression(variance_floor=…), PoissonRegression or "
            "another model with a likelihood."
        )
    return model.likelihood


def _agreed(stated: Mapping[str, float] | None, name: str, derived: float, tolerance: float) -> float:
    """The stated number where it is the derived one but for its last digits, which machines may round differently."""
    if stated is None:
        return derived
    value = stated.get(name, math.nan)
    if not math.isclose(value, derived, rel_tol=tolerance):
        raise PromiseRefused(f"The {name} stated is not the one that follows from model and β.")
    return value
