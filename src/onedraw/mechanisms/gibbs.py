"""One draw from a Gibbs posterior with a convex loss: the records' weight calibrated by one of six rules.

    p(θ) ∝ exp(−w Σ ℓ(θ, x_i)) π(θ)        on R^d, or on a ball if the prior has a radius

Sources: Minami, Arai, Sato, Nakagawa, *Differential privacy without sensitivity* (NIPS 2016); Gopi, Lee, Liu
(arXiv:2203.00263) for the default; Geumlek, Song, Chaudhuri (NIPS 2017), A.7.1; McSherry and Talwar for bounded
losses. The formulas are in gibbs_rules.py, statements, preconditions and departures in gibbs.md. What is promised
here is about an exact draw; what a chain's draw promises is worked out at the release, from its exactness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.models import GaussianMean
from onedraw.plans import Mechanism, Plan, Request
from onedraw.privacy import (
    ZCDP,
    ApproxDP,
    Assumption,
    BoundedRange,
    GaussianDP,
    Guarantee,
    Neighbours,
    Promise,
    Provenance,
    PureDP,
    RenyiDP,
)
from onedraw.privacy.conversions import gaussian_delta
from onedraw.privacy.rounding import text
from onedraw.privacy.validation import positive

from . import gibbs_rules as rules
from .calibration import MARGIN
from .convex_bounds import SHARE, ConvexBounds, assumptions, bounds_of, has_closed_form, reserve
from .convex_target import gibbs_law

THEOREMS = {
    "gdp": "GaussianDP(wG/√m) of strongly log-concave posteriors whose potentials differ by a G-Lipschitz function "
    "(arXiv:2203.00263)",
    "theorem7": "Theorem 7, Minami et al. (NIPS 2016), with G for 2L",
    "corollary8": "Corollary 8, Minami et al. (NIPS 2016), where the exact Gaussian profile confirms it (errata 16)",
    "theorem10": "Theorem 10, Minami et al. (NIPS 2016), sharpened: GaussianDP(wG/√m) on a ball (arXiv:2203.00263)",
    "rdp": "Lemma 1 of A.7.1, Geumlek et al. (NIPS 2017): ZCDP(2w²L²/m), with G for 2L",
    "bounded": "the exponential mechanism with a bounded loss, Theorems 3 and 4 of Minami et al. (NIPS 2016), as a "
    "bounded range",
}
NOT_PROVEN = "Corollary 8, Minami et al. (NIPS 2016), as published; NOT PROVEN (errata 16)"
TINY_DELTA = 1e-10
"""The δ offered to someone who asked for a pure promise that only a chain could keep."""

RESERVE = {"bounded": 0.99}
"""The share of δ left to an approximate sampler where it is not the usual one: a bounded loss itself needs no δ."""


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
    | ``bounded`` | BoundedRange(wϱ), on a ball | (ε, tiny δ) by a chain; pure where the draw is exact |

    ``as_published=True`` lets ``corollary8`` use the paper's weight where it is not true; `proven` is then False.
    """

    title: ClassVar[str] = "Gibbs posterior sampling"

    rule: str = "gdp"
    weight: float | None = None
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.rule not in THEOREMS:
            raise WrongCall(f"The rules of Gibbs are {', '.join(map(repr, THEOREMS))}, but {self.rule!r} came.")
        if self.as_published not in (True, False) or (self.as_published and self.rule != "corollary8"):
            raise WrongCall(
                "as_published=True asks for Corollary 8 outside its valid range and belongs to rule='corollary8' alone; "
                "every other rule is proven as it stands."
            )
        if self.weight is not None:
            self._set(weight=positive("the weight", self.weight))

    @property
    def proven(self) -> bool:
        """False for Corollary 8 where it is not true; a plan that lies within its range is proven."""
        return not self.as_published

    def default_gamma(self, model: Any, budget: Promise) -> float:
        """A share of δ: γ with (1 + e^ε)γ = 1 % of it, 99 % for ``bounded``; 0 where the draw is exact."""
        return reserve(model, budget, RESERVE.get(self.rule, SHARE))

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
        within = self.as_published and self._corollary8_true_at(request, weight, bounds)
        return (replace(self, as_published=False) if within else self)._plan(request, weight, bounds)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        bounds, weight = self._checked(request), parameters.get("weight", math.nan)
        if not 0.0 < weight < math.inf or self.weight not in (None, weight):
            raise PromiseRefused(f"{self.title} needs the weight it was calibrated to, but {weight!r} came.")
        return self._plan(request, weight, bounds)

    def promise(
        self,
        model: Any,
        weight: float,
        *,
        n: int,
        draws: int = 1,
        records_per_person: int = 1,
        budget: Promise | None = None,
    ) -> Promise:
        """What ``draws`` exact draws of this weight promise. Theorem 7 and Corollary 8 are asked at ``budget``'s (ε, δ)."""
        asked = GaussianDP(1.0) if budget is None else budget
        if budget is None and self.rule in ("theorem7", "corollary8"):
            raise WrongCall(f"{self.rule} gives a δ for each ε: pass budget=ApproxDP(epsilon, delta) to say where.")
        request = Request(model, asked, n=n, draws=draws, records_per_person=records_per_person)
        return self._promise(request, positive("the weight", weight), self._bounds(request))

    def target(self, plan: Plan, summary: Any) -> Any:
        """The posterior of the plan's weight: a closed-form law where there is one, otherwise a `GibbsTarget`."""
        return gibbs_law(plan, summary, weight=plan.parameters["weight"])

    # ── the rules ──────────────────────────────────────────────────────────────────────────────────────────

    def _largest_weight(self, request: Request, bounds: ConvexBounds) -> float:
        """Rounded down; by a margin where μ, ρ or δ passed through functions another machine may round otherwise."""
        budget, curvature = request.exact_budget, bounds.curvature(request)
        match self.rule, budget:
            case (("gdp" | "theorem10"), _):
                weight = rules.gdp_weight(budget, curvature)
            case "rdp", _:
                weight = rules.rdp_weight(budget, curvature)
            case "theorem7", ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
                weight = rules.theorem7_weight(epsilon, delta, curvature)
            case "corollary8", ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
                weight = rules.corollary8_weight(epsilon, delta, self._as_printed(request, bounds))
            case _, (PureDP() | BoundedRange() | ApproxDP()):
                return self._bounded_weight(request, bounds, budget.stated_epsilon)
            case _:
                weight = self._bounded_weight(request, bounds, rules.largest_number(BoundedRange, budget))
        return self._less_a_margin(request, weight, bounds)

    def _less_a_margin(self, request: Request, weight: float, bounds: ConvexBounds) -> float:
        """A larger margin where δ is so small that the rounding of its own profile is a part of it (δ = 1e-12, ε = 1e-8)."""

        def kept(margin: float) -> bool:
            return self._promise(request, weight * (1.0 - margin), bounds).implies(request.exact_budget)

        margin = MARGIN
        while margin < 0.1 and not (kept(margin) and kept(4.0 * margin)):  # twice, for one may be kept by chance
            margin *= 16.0
        return weight * (1.0 - (margin if margin == MARGIN else 4.0 * margin))

    def _bounded_weight(self, request: Request, bounds: ConvexBounds, epsilon: float) -> float:
        return rules.bounded_weight(
            epsilon, self._range(request, bounds), records_per_person=request.records_per_person, draws=request.draws
        )

    def _promise(self, request: Request, weight: float, bounds: ConvexBounds) -> Promise:
        budget, curvature = request.exact_budget, bounds.curvature(request)
        match self.rule, budget:
            case (("gdp" | "theorem10"), _):
                return rules.gdp_promise(weight, curvature)
            case "rdp", _:
                return rules.rdp_promise(weight, curvature)
            case "theorem7", ApproxDP(stated_epsilon=epsilon):
                return rules.theorem7_promise(weight, epsilon, curvature)
            case "corollary8", ApproxDP():
                return self._corollary8(request, weight, bounds)
        return rules.bounded_promise(
            weight,
            self._range(request, bounds),
            records_per_person=request.records_per_person,
            draws=request.draws,
        )

    def _corollary8(self, request: Request, weight: float, bounds: ConvexBounds) -> ApproxDP:
        budget = request.exact_budget
        assert isinstance(budget, ApproxDP)
        epsilon, delta = budget.stated_epsilon, budget.stated_delta
        printed = rules.corollary8_promise(weight, delta, self._as_printed(request, bounds))
        if not (self.as_published or self._corollary8_true_at(request, weight, bounds)):
            true_delta = gaussian_delta(rules.corollary8_mu(printed.stated_epsilon, delta), printed.stated_epsilon)
            raise PromiseRefused(
                f"Corollary 8 claims (ε = {epsilon:.6g}, δ = {delta:.3g}) for weight {weight:.6g}, and that is false: a "
                f"linear loss with these bounds has δ = {true_delta:.3g} there. The corollary does not follow from "
                "Theorem 7 beyond ε ≈ 1 and fails from ε ≈ 9 on (errata 16). Use rule='gdp', which allows the largest "
                "weight that is true, or as_published=True to release the paper's figure marked as not proven."
            )
        return budget if printed.implies(budget) else printed

    def _corollary8_true_at(self, request: Request, weight: float, bounds: ConvexBounds) -> bool:
        """The (ε, δ) the corollary claims of this very weight, put to the exact Gaussian profile."""
        budget = request.exact_budget
        assert isinstance(budget, ApproxDP)
        printed = rules.corollary8_promise(weight, budget.stated_delta, self._as_printed(request, bounds))
        return rules.corollary8_holds(printed.stated_epsilon, budget.stated_delta)

    @staticmethod
    def _as_printed(request: Request, bounds: ConvexBounds) -> rules.Curvature:
        """The paper's own constants: 2L, and the prior's curvature alone."""
        if bounds.lipschitz is None:
            raise UnsupportedBudget(
                f"Corollary 8 needs a Lipschitz loss, and that of {type(request.model).__name__} is not: only the "
                "difference of two records is. Use rule='gdp' or 'theorem7' (Theorem 15 here)."
            )
        return replace(bounds.curvature(request), gradient_difference=2.0 * bounds.lipschitz)

    @staticmethod
    def _range(request: Request, bounds: ConvexBounds) -> float:
        if bounds.sensitivity is None:
            raise UnsupportedBudget(
                f"The loss of {type(request.model).__name__} is unbounded: without a ball two records may differ by any "
                "amount, so rule='bounded' has no weight. Restrict the prior to a ball, for example Gaussian(scale=1, "
                "radius=2), or use rule='gdp', which needs no ball."
            )
        return rules.loss_range(bounds.sensitivity, bounds.range)

    # ── checks, and the plan ───────────────────────────────────────────────────────────────────────────────

    def _bounds(self, request: Request) -> ConvexBounds:
        bounds = bounds_of(request.model)
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
            self._range(request, bounds)
            exact = has_closed_form(request.model)
            if not (exact or (isinstance(budget, ApproxDP) and budget.stated_delta > 0)):
                raise UnsupportedBudget(
                    f"A chain's draw is never pure, so rule='bounded' cannot keep {budget} for "
                    f"{type(request.model).__name__}: its sampler is within a total variation γ > 0 of the bounded "
                    f"posterior. {pure_offer(budget)}"
                )
            return bounds
        if isinstance(budget, PureDP | BoundedRange) or (isinstance(budget, ApproxDP) and budget.stated_delta == 0):
            raise UnsupportedBudget(
                f"rule={self.rule!r} cannot keep {budget}: with an unbounded loss the log-ratio of two posteriors is "
                f"unbounded too, and only a δ above 0 can pay for its tail. {pure_offer(budget)}"
            )
        if not isinstance(budget, _BUDGETS.get(self.rule, ApproxDP)):
            kinds = ", ".join(kind.__name__ for kind in _BUDGETS.get(self.rule, (ApproxDP,)))
            raise UnsupportedBudget(f"rule={self.rule!r} keeps budgets of kind {kinds} (δ > 0), but {budget} came.")
        return bounds

    def _plan(self, request: Request, weight: float, bounds: ConvexBounds) -> Plan:
        promise = self._promise(request, weight, bounds)
        if not promise.implies(request.exact_budget):
            raise PromiseRefused(
                f"A draw of weight {text(weight)} under rule={self.rule!r} promises {promise}, which is not proven to "
                f"imply {request.exact_budget} (the budget, less what is kept back for the sampler). Leave the weight "
                "out to have it calibrated, or use a larger budget."
            )
        numbers = bounds.numbers(weight, request.n)
        if self.rule == "bounded":
            numbers["range"] = self._range(request, bounds)
        else:
            one = bounds.curvature(replace(request, draws=1, records_per_person=1))
            numbers["mu"] = rules.gdp_promise(weight, one).mu
        found = assumptions(request)
        if not self.proven:
            claim = "Corollary 8 holds at this budget, though the exact Gaussian profile contradicts it"
            found = (Assumption(claim, Provenance.ASSUMED), *found)
        guarantee = Guarantee(promise, Neighbours.REPLACE_ONE, request.unit, self._theorem(request), found)
        return Plan(self, request, tuple(numbers.items()), guarantee)

    def _theorem(self, request: Request) -> str:
        if not self.proven:
            return NOT_PROVEN
        if isinstance(request.model, GaussianMean):
            if self.rule == "theorem7":
                return "Theorem 15, Minami et al. (NIPS 2016), supplement B"
            return f"{THEOREMS[self.rule]}; exact for the Gaussian mean: neighbours are Gaussians of equal variance"
        return THEOREMS[self.rule]


_BUDGETS: dict[str, tuple[type[Promise], ...]] = {
    "gdp": (ApproxDP, GaussianDP, ZCDP, RenyiDP),
    "theorem10": (ApproxDP, GaussianDP, ZCDP, RenyiDP),
    "rdp": (ApproxDP, ZCDP, RenyiDP),
}


def pure_offer(budget: Promise) -> str:
    """The ways to a pure promise, or to one with a δ that is as good as none."""
    epsilon = text(budget.pure_epsilon) if math.isfinite(budget.pure_epsilon) else "ε"
    return (
        "For δ = 0 use Candidates(), the finite mechanism, or LeastSquares on a ball, whose draw is exact; or take "
        f"rule='bounded' with a tiny δ, ApproxDP({epsilon}, {TINY_DELTA:g})."
    )
