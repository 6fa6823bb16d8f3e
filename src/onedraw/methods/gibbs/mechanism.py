"""One draw from a Gibbs posterior with a convex loss: the records' weight calibrated by one of six rules.

    p(θ) ∝ exp(−w Σ ℓ(θ, x_i)) π(θ)        on R^d, or on a ball if the prior has a radius

Sources: Minami, Arai, Sato, Nakagawa, *Differential privacy without sensitivity* (NIPS 2016); Gopi, Lee, Liu
(arXiv:2203.00263) for the default; Geumlek, Song, Chaudhuri (NIPS 2017), A.7.1; McSherry and Talwar for bounded
losses. Statements, preconditions and departures: proof.md; the literature's own rules: methods/published_rules.py. What is promised
here is about an exact draw; what a chain's draw promises is worked out at the release, from its exactness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods import convex_bounds
from onedraw.methods import published_rules as literature
from onedraw.methods.base import Mechanism
from onedraw.methods.calibration import MARGIN, largest_number
from onedraw.methods.convex_bounds import (
    GDP,
    ConvexBounds,
    Curvature,
    Rule,
    gdp_promise,
    gibbs_law,
    has_closed_form,
    instead,
    pure_offer,
    weight_at,
)
from onedraw.models import GaussianMean
from onedraw.models.convex import draw_cost
from onedraw.plans import Plan, Request
from onedraw.privacy import ZCDP, ApproxDP, Assumption, BoundedRange, GaussianDP, Promise, Provenance, PureDP, RenyiDP
from onedraw.privacy.numbers import down, fraction_down, fraction_up, positive

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

RESERVE = {"bounded": 0.99}
"""The share of δ left to an approximate sampler where it is not the usual one: a bounded loss itself needs no δ."""


def rdp_weight(budget: Promise, curvature: Curvature) -> float:
    """The largest weight whose ZCDP(2w²L²/m) implies the budget."""
    rho = largest_number(ZCDP, budget)
    weight = weight_at(down(math.sqrt(2.0 * rho)), curvature)
    while rdp_promise(weight, curvature).rho > rho:
        weight = math.nextafter(weight, 0.0)
    return weight


def rdp_promise(weight: float, curvature: Curvature) -> ZCDP:
    """ZCDP(w²G²/(2m)), which is 2w²L²/m at G = 2L (Geumlek et al., Lemma 1)."""
    return ZCDP(fraction_up(curvature.mu_squared(weight) / 2))


def bounded_weight(epsilon: float, loss_range: float, *, records_per_person: int = 1, draws: int = 1) -> float:
    """ε/(k·J·ϱ), rounded down; with ϱ = 2Δ this is the exponential mechanism's ε/(2Δ)."""
    copies = records_per_person * draws
    return fraction_down(Fraction(positive("ε", epsilon)) / (Fraction(positive("ϱ", loss_range)) * copies))


def bounded_promise(weight: float, loss_range: float, *, records_per_person: int = 1, draws: int = 1) -> BoundedRange:
    """BoundedRange(k·J·w·ϱ): the range of a sum of log-ratios is at most the sum of their ranges."""
    copies = records_per_person * draws
    return BoundedRange(fraction_up(Fraction(positive("the weight", weight)) * Fraction(loss_range) * copies))


def loss_range(sensitivity: float, known_range: float | None = None) -> float:
    """ϱ = sup over records of the oscillation of ℓ(·, x) − ℓ(·, x'): at most 2Δ, or a sharper known bound."""
    doubled = 2.0 * positive("the sensitivity Δ", sensitivity)
    return doubled if known_range is None else min(doubled, positive("the range ϱ", known_range))


def _range(request: Request, bounds: ConvexBounds) -> float:
    if bounds.sensitivity is None:
        raise UnsupportedBudget(
            f"The loss of {type(request.model).__name__} is unbounded: without a ball two records may differ by any "
            "amount, so rule='bounded' has no weight. Restrict the prior to a ball, for example Gaussian(scale=1, "
            "radius=2), or use rule='gdp', which needs no ball."
        )
    return loss_range(bounds.sensitivity, bounds.range)


def _bounded_weight(request: Request, bounds: ConvexBounds) -> float:
    budget, people = request.exact_budget, request.records_per_person
    stated = budget.stated_epsilon if isinstance(budget, PureDP | BoundedRange | ApproxDP) else None
    epsilon = largest_number(BoundedRange, budget) if stated is None else stated
    return bounded_weight(epsilon, _range(request, bounds), records_per_person=people, draws=request.draws)


RULES: dict[str, Rule] = {
    "gdp": GDP,
    "rdp": Rule(
        "Lemma 1 of A.7.1, Geumlek et al. (NIPS 2017): ZCDP(2w²L²/m), with G for 2L",
        (ApproxDP, ZCDP, RenyiDP),
        lambda request, bounds: rdp_weight(request.exact_budget, bounds.curvature(request)),
        lambda request, weight, bounds: rdp_promise(weight, bounds.curvature(request)),
    ),
    "bounded": Rule(
        "the exponential mechanism with a bounded loss, Theorems 3 and 4 of Minami et al. (NIPS 2016), as a bounded "
        "range",
        (Promise,),
        _bounded_weight,
        lambda request, weight, bounds: bounded_promise(
            weight, _range(request, bounds), records_per_person=request.records_per_person, draws=request.draws
        ),
    ),
    **literature.RULES,
}


@dataclass(frozen=True)
class Gibbs(Mechanism):
    """The Gibbs posterior of a convex model, calibrated by ``rule``; or of a given ``weight``, then only checked.

    | rule | promise of one exact draw | budgets |
    | --- | --- | --- |
    | ``gdp`` | GaussianDP(wG/√m) | (ε, δ), GaussianDP, ZCDP, Rényi |
    | ``theorem7`` | (ε, δ) by a tail bound | (ε, δ) |
    | ``corollary8`` | (ε, δ) by a simpler one, refused where it is false | (ε, δ) |
    | ``theorem10`` | ``gdp``, for a prior restricted to a ball | as ``gdp`` |
    | ``rdp`` | ZCDP(2w²L²/m) | (ε, δ), ZCDP, Rényi |
    | ``bounded`` | BoundedRange(wϱ), on a ball | all, pure ones too, by an exact draw; (ε, tiny δ) by a chain |

    An exact draw on a ball has a closed form (`LeastSquares`), or is made by rejection (`samplers.Perfect`) where the loss is
    curved everywhere on it and κ^{d/2} tries are not too many.

    ``as_published=True`` lets ``corollary8`` use the paper's weight where it is not true; `proven` is then False.
    """

    title: ClassVar[str] = "Gibbs posterior sampling"

    rule: str = "gdp"
    weight: Annotated[float | None, partial(positive, "the weight")] = None
    as_published: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule not in RULES:
            raise WrongCall(f"The rules of Gibbs are {', '.join(map(repr, RULES))}, but {self.rule!r} was given.")
        if self.as_published not in (True, False) or (self.as_published and self.rule != "corollary8"):
            raise WrongCall(
                "as_published=True asks for Corollary 8 outside its valid range and belongs to rule='corollary8' "
                "alone; every other rule is proven as it stands."
            )

    def default_gamma(self, model: Any, budget: Promise) -> float:
        """A share of δ: γ with (1 + e^ε)γ = 1 % of it, 99 % for ``bounded``; 0 where the draw is exact."""
        return convex_bounds.reserve(model, budget, RESERVE.get(self.rule, convex_bounds.SHARE))

    def heading(self, plan: Plan) -> str:
        return f"{self.title}, rule {self.rule}"

    def closed_form(self, model: Any) -> bool:
        return has_closed_form(model)

    def sums_exactly(self, plan: Plan) -> bool:
        """Of squares, which a closed form is made of."""
        return self.closed_form(plan.model)

    def calibrate(self, request: Request) -> Plan:
        bounds = self._checked(request)
        weight = self.weight or self._largest_weight(request, bounds)
        within = self.as_published and literature.corollary8_true_at(request, weight, bounds)
        return (replace(self, as_published=False) if within else self)._plan(request, weight, bounds)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        bounds, weight = self._checked(request), parameters.get("weight", math.nan)
        if not 0.0 < weight < math.inf or self.weight not in (None, weight):
            raise PromiseRefused(f"{self.title} needs the weight it was calibrated to, not {weight!r}.")
        return self._plan(request, weight, bounds)

    def promise(
        self, model: Any, weight: float, *, n: int, draws: int = 1, records_per_person: int = 1,
        budget: Promise | None = None,
    ) -> Promise:  # fmt: skip
        """What ``draws`` exact draws of this weight promise; Theorem 7 and Corollary 8 at ``budget``'s (ε, δ)."""
        if budget is None and self.rule in ("theorem7", "corollary8"):
            raise WrongCall(f"{self.rule} gives a δ for each ε: pass budget=ApproxDP(epsilon, delta) to say where.")
        asked = GaussianDP(1.0) if budget is None else budget
        request = Request(model, asked, n=n, draws=draws, records_per_person=records_per_person)
        return self._rule.promise(request, positive("the weight", weight), self._bounds(request))

    def target(self, plan: Plan, summary: Any) -> Any:
        """The posterior of the plan's weight: a closed-form law where there is one, otherwise a `GibbsTarget`."""
        return gibbs_law(plan, summary, weight=plan.parameters["weight"])

    @property
    def _rule(self) -> Rule:
        return literature.AS_PUBLISHED if self.as_published else RULES[self.rule]

    def _largest_weight(self, request: Request, bounds: ConvexBounds) -> float:
        """Rounded down; by a margin where μ, ρ or δ passed through functions another machine may round otherwise.

        A larger margin where δ is so small that the rounding of its own profile is a part of it (δ = 1e-12, ε = 1e-8).
        """
        weight, budget = self._rule.weight(request, bounds), request.exact_budget
        if self.rule == "bounded" and isinstance(budget, PureDP | BoundedRange | ApproxDP):
            return weight

        def kept(margin: float) -> bool:
            return self._rule.promise(request, weight * (1.0 - margin), bounds).implies(budget)

        margin = MARGIN
        while margin < 0.1 and not (kept(margin) and kept(4.0 * margin)):  # twice, for one may be kept by chance
            margin *= 16.0
        return weight * (1.0 - (margin if margin == MARGIN else 4.0 * margin))

    def _bounds(self, request: Request) -> ConvexBounds:
        bounds = convex_bounds.bounds_of(request.model)
        if self.rule == "theorem10" and bounds.radius is None:
            raise UnsupportedBudget(
                "Theorem 10 is about a posterior on a ball, and this prior has no radius. Pass prior=Gaussian(scale=…, "
                "radius=…), or use rule='gdp', the same promise on all of R^d."
            )
        return bounds

    def _checked(self, request: Request) -> ConvexBounds:
        """Refuse budgets that this rule can never keep, whatever the weight."""
        bounds, budget = self._bounds(request), request.budget
        if self.rule == "bounded":
            _range(request, bounds)
            if needs_exact_draw(request) and bounds.curvature_ratio is None:
                raise UnsupportedBudget(
                    f"rule='bounded' keeps {budget} by an exact draw alone, and the loss of {type(request.model).__name__} has a "
                    f"least curvature of 0 on the ball, so κ = ∞ and nothing bounds the tries. {instead(budget)}"
                )
            return bounds
        if budget.is_pure:
            raise UnsupportedBudget(
                f"rule={self.rule!r} cannot keep {budget}: with an unbounded loss the log-ratio of two posteriors is "
                f"unbounded too, and only a δ above 0 can pay for its tail. {pure_offer(budget)}"
            )
        if not isinstance(budget, self._rule.budgets):
            kinds = ", ".join(kind.__name__ for kind in self._rule.budgets)
            raise UnsupportedBudget(f"rule={self.rule!r} keeps budgets of kind {kinds} (δ > 0), not {budget}.")
        return bounds

    def _plan(self, request: Request, weight: float, bounds: ConvexBounds) -> Plan:
        promise = self._rule.promise(request, weight, bounds)
        numbers = bounds.numbers(weight, request.n)
        if self.rule == "bounded":
            numbers["range"] = _range(request, bounds)
            check_tries(request, numbers)
        else:
            one = bounds.curvature(replace(request, draws=1, records_per_person=1))
            numbers["mu"] = gdp_promise(weight, one).mu
        found = convex_bounds.assumptions(request)
        if not self.proven:
            claim = "Corollary 8 holds at this budget, though the exact Gaussian profile contradicts it"
            found = (Assumption(claim, Provenance.ASSUMED), *found)
        theorem = self._rule.theorem
        if self.proven and isinstance(request.model, GaussianMean):
            exact = f"{theorem}; exact for the Gaussian mean: neighbours are Gaussians of equal variance"
            theorem = self._rule.of_a_mean or exact
        return Plan.of(self, request, numbers, promise, theorem, found)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import gibbs_case

        return gibbs_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import gibbs_cases

        return gibbs_cases()


def needs_exact_draw(request: Request) -> bool:
    """Whether a sampler has to be exact by rejection: no closed form, and no δ that could pay for a chain."""
    return not (has_closed_form(request.model) or request.budget.total_variation())


def check_tries(request: Request, numbers: Mapping[str, float]) -> None:
    """Refuse an exact draw that would take more tries than a chain that is as good as exact reads the records."""
    if not needs_exact_draw(request):
        return
    d, ratio = len(request.model.parameter_names), numbers["curvature_ratio"]
    convexity, smoothness = numbers["strong_convexity"], numbers["smoothness"]
    tries = draw_cost.most_tries(ratio, d)
    most = draw_cost.tries_worth(0.0, draw_cost.Geometry.of(d, convexity, smoothness, ball=True, curvature_ratio=ratio))
    if not tries <= most:
        raise UnsupportedBudget(
            f"rule='bounded' keeps {request.budget} by an exact draw alone, which would take up to {tries:,.0f} tries "
            f"(κ^(d/2), κ = {ratio:.4g} at a predictor of ±{numbers['predictor_bound']:.4g}, d = {d}); at most {most:,} are "
            f"made. Use a smaller ball or fewer columns. {instead(request.budget)}"
        )
