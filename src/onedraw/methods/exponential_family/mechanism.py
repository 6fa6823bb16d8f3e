"""Direct, Diffused and Concentrated sampling from conjugate posteriors (Geumlek, Song, Chaudhuri, NIPS 2017).

One draw from η' = η₀/m + r Σ (S(x_i), 1). Direct draws from the plain posterior (r = m = 1) and can only be
checked against a budget; Diffused turns the records down (r < 1), Concentrated the prior up (m < 1), each to
the largest value whose worst divergence between neighbours the budget allows. Convex models have the same three
(Theorems 16, 17; Lemma 1 of A.7.1), with exp(−r Σ ℓ) and π^{1/m}. Theorem, proof, numerics and where we depart
from the paper: proof.md; for convex models methods/gibbs/proof.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from onedraw.errors import OrderTooHigh, PromiseRefused, UnsupportedBudget
from onedraw.methods import convex_bounds
from onedraw.methods.base import Mechanism
from onedraw.methods.calibration import SMALLEST, largest
from onedraw.methods.convex_bounds import Curvature, gdp_promise, gibbs_law
from onedraw.models import ConjugateModel, Law
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import ZCDP, ApproxDP, Assumption, GaussianDP, Promise, Provenance, RenyiDP, group, ungroup
from onedraw.privacy.curves import AtOrderCurve
from onedraw.privacy.numbers import fraction_down, text

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

PAPER = "Geumlek, Song, Chaudhuri (NIPS 2017)"


@dataclass(frozen=True)
class Scaling:
    """The two numbers of η' = η₀/m + r Σ (S(x_i), 1); at most one of them is below 1."""

    weight: float = 1.0
    prior_factor: float = 1.0


def posterior_promise(model: Any, scaling: Scaling, *, n: int, draws: int = 1) -> RenyiDP | GaussianDP:
    """The promise, for one record, of ``draws`` draws together: a Rényi curve, or GaussianDP (a mean, a convex loss).

    Of convex losses μ = rG/√(n·r·m_ℓ + m_π/m): its Rényi curve is the line 2r²L²/(…) of Lemma 1, with G for 2L.
    """
    if isinstance(model, ConjugateModel):
        return model.promise(n=n, weight=scaling.weight, prior_factor=scaling.prior_factor, draws=draws)
    if not isinstance(model, ConvexModel):
        raise UnsupportedBudget(
            f"{type(model).__name__} is not a model whose posteriors' divergence is known in closed form. "
            "Direct, Diffused and Concentrated are for the conjugate and convex models of onedraw.models only."
        )
    known = convex_bounds.bounds_of(model)
    strong = fraction_down(Fraction(known.prior_strong_convexity) / Fraction(scaling.prior_factor))
    curvature = Curvature(known.gradient_difference, strong, strong_convexity=known.strong_convexity, n=n, draws=draws)
    return gdp_promise(scaling.weight, curvature)


def person_promise(request: Request, scaling: Scaling) -> Promise | None:
    """The promise for one person and all draws; None where none is known that could imply the budget.

    A Rényi curve says nothing about two records at once. For several records per person it is therefore used
    only through the (ε, δ) that one record would need, which then grows by group privacy to the person's.
    """
    record = posterior_promise(request.model, scaling, n=request.n, draws=request.draws)
    if request.records_per_person == 1:
        return record
    if isinstance(record, GaussianDP):
        return group(record, request.records_per_person)
    needed = ungroup(request.exact_budget, request.records_per_person)
    return group(needed, request.records_per_person) if record.implies(needed) else None


# ── the three algorithms ───────────────────────────────────────────────────────────────────────────────────


class _ExponentialFamily(Mechanism):
    """What the three algorithms share: only the place of the one free number differs."""

    free: ClassVar[str | None]
    theorem: ClassVar[str]

    def calibrate(self, request: Request) -> Plan:
        self._check(request)
        value = largest(lambda value: self._keeps(request, value)) if self.free else 1.0
        if value is None or not self._keeps(request, value):
            raise self._refusal(request)
        return self._plan(request, value, order=_best_order(request, self.scaling(value)))

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        self._check(request)
        value = parameters.get(self.free, math.nan) if self.free else 1.0
        if not SMALLEST <= value <= 1.0:
            raise PromiseRefused(f"{self.title} needs {self.free} in (0, 1], not {value!r}.")
        order = parameters.get("order")
        if not _is_witness(request, self.scaling(value), order):
            raise PromiseRefused(f"The order {order!r} stated for {self.title} does not give the budget.")
        return self._plan(request, value, order=order)

    def promise(self, model: Any, value: float = 1.0, *, n: int, draws: int = 1) -> RenyiDP | GaussianDP:
        """The promise for one record when the free number (r, or the m of the prior) has this value."""
        return posterior_promise(model, self.scaling(value), n=n, draws=draws)

    def default_gamma(self, model: Any, budget: Promise) -> float:
        return convex_bounds.reserve(model, budget, convex_bounds.SHARE)

    def closed_form(self, model: Any) -> bool:
        return not isinstance(model, ConvexModel) or convex_bounds.has_closed_form(model)

    def sums_exactly(self, plan: Plan) -> bool:
        """Of statistics or of squares, which a closed form is made of."""
        return self.closed_form(plan.model)

    def target(self, plan: Plan, summary: Any) -> Any:
        numbers = plan.parameters
        if isinstance(plan.model, ConvexModel):
            return gibbs_law(plan, summary, weight=numbers["r"], prior_factor=numbers["prior_factor"])
        law: Law = plan.model.posterior(summary, weight=numbers["r"], prior_factor=numbers["prior_factor"])
        return law

    def scaling(self, value: float) -> Scaling:
        """Where the free number goes."""
        if self.free is None:
            return Scaling()
        return Scaling(weight=value) if self.free == "r" else Scaling(prior_factor=value)

    def _keeps(self, request: Request, value: float) -> bool:
        promise = person_promise(request, self.scaling(value))
        return promise is not None and promise.implies(request.exact_budget)

    def _plan(self, request: Request, value: float, *, order: float | None) -> Plan:
        scaling = self.scaling(value)
        promise = person_promise(request, scaling)
        if promise is None:
            raise self._refusal(request)
        numbers = {"r": scaling.weight, "prior_factor": scaling.prior_factor}
        match self.promise(request.model, value, n=request.n):
            case GaussianDP(mu=mu):
                numbers["mu"] = mu
            case RenyiDP(limit=limit):
                numbers["order_limit"] = limit
        if order is not None:
            numbers["order"] = order
        theorem, assumptions = f"{self.theorem}, {PAPER}; the worst neighbours by Theorem A.14", _assumptions
        if "mu" in numbers:
            theorem = f"{self.title}, {PAPER}, A.6.2: neighbouring posteriors are Gaussians of equal variance"
        if isinstance(request.model, ConvexModel):
            known = convex_bounds.bounds_of(request.model)
            numbers |= known.numbers(scaling.weight, request.n, prior_factor=scaling.prior_factor)
            theorem = f"{self.title}, {PAPER}, Lemma 1 of A.7.1, as Gaussian DP (arXiv:2203.00263)"
            assumptions = convex_bounds.assumptions
        return Plan.of(self, request, numbers, promise, theorem, assumptions(request))

    def _check(self, request: Request) -> None:
        """Refuse budgets this kind of posterior can never keep, whatever r and m are."""
        record, budget = self.promise(request.model, n=request.n), request.budget
        common = _order_of(budget) is not None or (isinstance(budget, ApproxDP) and budget.stated_delta > 0)
        if isinstance(record, GaussianDP):
            if not (common or isinstance(budget, ZCDP | GaussianDP)):
                raise UnsupportedBudget(
                    f"{self.title} of {type(request.model).__name__} cannot keep {budget}: the log-ratio of two such "
                    "posteriors is unbounded. Use GaussianDP, ZCDP, RenyiDP.at(order, epsilon) or ApproxDP(epsilon, "
                    "delta) with δ > 0."
                )
            return
        if not common:
            reach = f" (at {self.free} = 1; below 1 it moves out but stays finite)" if self.free else ""
            raise UnsupportedBudget(
                f"{self.title} of {type(request.model).__name__} cannot keep {budget}: the curve is infinite from "
                f"λ* = {text(record.limit)}{reach}; use RenyiDP.at(order, epsilon) or ApproxDP(epsilon, delta) with δ > 0."
            )
        if request.records_per_person > 1 and _order_of(budget) is not None:
            raise UnsupportedBudget(
                f"A Rényi promise for one record says nothing about a person with {request.records_per_person} records, so "
                f"{budget} cannot be kept per person. Use ApproxDP(epsilon, delta), or one record per person."
            )

    def _refusal(self, request: Request) -> PromiseRefused:
        return PromiseRefused(
            f"No {self.free} above {SMALLEST:.1g} lets {self.title} keep {request.budget} with "
            f"{request.draws} draw(s) and {request.records_per_person} record(s) per person. Use a larger "
            "budget, fewer draws or fewer records per person."
        )

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import posterior_case

        return posterior_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import posterior_cases

        return posterior_cases(cls)


@dataclass(frozen=True)
class Direct(_ExponentialFamily):
    """Algorithm 1: one draw from the plain posterior. There is nothing to turn: a budget is only checked."""

    title: ClassVar[str] = "Direct sampling"
    free: ClassVar[str | None] = None
    theorem: ClassVar[str] = "Theorem A.10 (Algorithm 1, Direct Sampling)"

    def _check(self, request: Request) -> None:
        if isinstance(request.model, ConjugateModel) and request.model.plain_draw_is_useless:
            name = "–".join(re.findall("[A-Z][a-z]+", type(request.model).__name__))
            raise PromiseRefused(
                f"Direct sampling of a {name} posterior is refused: its divergence between neighbours grows in "
                f"proportion to n (here n = {request.n:,}), so it promises nothing of use. Use Diffused() or "
                "Concentrated()."
            )
        super()._check(request)
        order, record = _order_of(request.budget), self.promise(request.model, n=request.n)
        if order is not None and isinstance(record, RenyiDP) and order >= record.limit:
            raise OrderTooHigh(
                f"The budget asks for order λ = {text(order)}, but Direct sampling of this posterior has an "
                f"infinite divergence from λ* = {text(record.limit)} on. Ask for an order below λ*, use a "
                "stronger prior, or use Diffused(), which reaches every order.",
                limit=record.limit,
            )

    def _refusal(self, request: Request) -> PromiseRefused:
        order = _order_of(request.budget)
        promise = self.promise(request.model, n=request.n, draws=request.draws)
        known = f"it promises {promise}"
        if order is not None and isinstance(promise, RenyiDP):
            known = f"its divergence at order {text(order)} is {promise.at_order(order):.6g}"
        elif isinstance(request.budget, ApproxDP):
            delta = request.budget.stated_delta
            known = f"its ε at δ = {text(delta)} is {promise.epsilon(delta):.6g}"
        return PromiseRefused(
            f"Direct sampling adds nothing to a plain posterior draw, which is not private enough for {request.budget}: "
            f"for one record {known}. Use Diffused() or Concentrated(), or a larger budget."
        )


@dataclass(frozen=True)
class Diffused(_ExponentialFamily):
    """Algorithm 2: the records' part of the posterior is multiplied by r ∈ (0, 1]."""

    title: ClassVar[str] = "Diffused sampling"
    free: ClassVar[str | None] = "r"
    theorem: ClassVar[str] = "Theorem A.11 (Algorithm 2, Diffused Sampling)"


@dataclass(frozen=True)
class Concentrated(_ExponentialFamily):
    """Algorithm 3: the prior's part of the posterior is divided by m ∈ (0, 1]."""

    title: ClassVar[str] = "Concentrated sampling"
    free: ClassVar[str | None] = "prior_factor"
    theorem: ClassVar[str] = "Theorem A.13 (Algorithm 3, Concentrated Sampling)"


def _order_of(budget: Promise) -> float | None:
    """λ, if the budget is one pair (λ, ε) of Rényi DP."""
    if isinstance(budget, RenyiDP) and isinstance(budget.curve, AtOrderCurve) and budget.below == math.inf:
        return budget.curve.order
    return None


def _best_order(request: Request, scaling: Scaling) -> float | None:
    """The order at which the budget is met: its own, or that of the smallest ε; None if none is used."""
    if (order := _order_of(request.budget)) is not None:
        return order
    promise = posterior_promise(request.model, scaling, n=request.n, draws=request.draws)
    if not isinstance(promise, RenyiDP):
        return None
    needed = ungroup(request.exact_budget, request.records_per_person)  # what is left for one record
    return promise.best_order(needed.stated_delta if isinstance(needed, ApproxDP) else math.nan)


def _is_witness(request: Request, scaling: Scaling, order: float | None) -> bool:
    """Whether one value of the curve, at the stated order, proves the budget (None: no order is used)."""
    if (asked := _order_of(request.budget)) is not None:
        return order == asked
    promise = posterior_promise(request.model, scaling, n=request.n, draws=request.draws)
    if isinstance(promise, GaussianDP) or order is None or not 1.0 < order < promise.limit:
        return isinstance(promise, GaussianDP) and order is None
    needed = ungroup(request.exact_budget, request.records_per_person)
    return RenyiDP.at(order, promise.at_order(order)).implies(needed)


def _assumptions(request: Request) -> tuple[Assumption, ...]:
    """What the theorem needs, and who answers for it."""
    public: int = request.model.public_records  # type: ignore[attr-defined]  # of a conjugate model
    in_prior = Assumption(f"the {public:,} records in the prior are public", Provenance.DECLARED)
    return (
        *fixed_in_advance(request, "prior, bounds"),
        Assumption("every record lies in the model's range: it is clamped, then summed exactly", Provenance.ENFORCED),
        Assumption("the worst neighbours are extreme points of that range", Provenance.PROVED),
        *([in_prior] if public else []),
    )
