"""Objective perturbation as its papers calibrate it: a random linear term, and a ridge if the regularisation is too
weak for it.

    θ* = argmin Σ φ(x_iᵀθ, y_i) + ½(θ − c)ᵀP(θ − c) + ½Δ‖θ‖² + bᵀθ

K. Chaudhuri, C. Monteleoni, A. Sarwate, JMLR 12 (2011), Algorithm 2: b of density ∝ e^{−β‖b‖}, pure ε, true as printed.
D. Kifer, A. Smith, A. Thakurta, COLT 2012, Algorithm 1: Gaussian b for (ε, δ), or the same pure law; true where
neighbours have one record more or less, false where one is replaced, and corrected here. For pure ε ours is the same minimum in
measured columns: `methods.PerturbedMode`. Theorems, proofs: objective_perturbation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods.stages import largest_total
from onedraw.models.convex.losses import MarginLoss
from onedraw.models.convex.number_losses import SquaredLoss
from onedraw.models.sums import exact_sums
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import ApproxDP, Assumption, Promise, Provenance, PureDP, conversions
from onedraw.privacy.numbers import fraction_down, fraction_up, narrowed, root_up, sum_up, up
from onedraw.privacy.perturbed_mode import tilted_epsilon, volume_cost
from onedraw.samplers.noise import Noise
from onedraw.samplers.sampler import Sample, Sampler

from .regularised_fit import PerturbedFit, RegularisedFit, RegularisedTarget, exactness_of, regularised_fit

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

VERSIONS = ("chaudhuri", "kifer")

CLOSE, CLOSING = 2.0**-32, 2.0**-7
"""The certified gradient, as a share of one record's pull, and the share of ε, or of μ, that hides what is left of
it."""

NUMBERS = ("ridge", "tilt_noise", "tolerance", "closing_noise")


@dataclass(frozen=True)
class ObjectivePerturbation(PerturbedFit):
    """The minimum of a randomly tilted, regularised loss. ``regularisation`` is λ, public and chosen without the
    records; None takes it from the model's prior, λ = 1/(n·scale²).

    | version | budget | calibration |
    | --- | --- | --- |
    | ``chaudhuri`` | pure ε; of (ε, δ) the ε | as printed in 2011, with the loss's own constants |
    | ``kifer`` | pure ε, or (ε, δ), Gaussian | as printed, at the largest ε₀ ≤ ε that a replaced record keeps |

    ``as_published=True``: ``kifer`` at ε itself, false when a record is replaced; ``chaudhuri`` as in their paper of
    2008 (NIPS), which leaves out what a record does to volume. Neither is ever proven.
    """

    title: ClassVar[str] = "objective perturbation"
    requires: ClassVar[str] = "objective-perturbation"

    version: str = "chaudhuri"
    regularisation: float | None = None
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.version not in VERSIONS or self.as_published not in (True, False):
            raise WrongCall(
                f"version must be 'chaudhuri' or 'kifer', and as_published True or False, but {self.version!r} and "
                f"{self.as_published!r} were given."
            )
        self._check_regularisation()

    def heading(self, plan: Plan) -> str:
        paper = {"chaudhuri": "Chaudhuri et al. 2011", "kifer": "Kifer et al. 2012"}[self.version]
        if not self.as_published:
            return f"{self.title} ({paper})"
        return f"{self.title} as published ({'Chaudhuri, Monteleoni 2008' if self.version == 'chaudhuri' else paper})"

    # ── from a budget to numbers ─────────────────────────────────────────────────────────────────────────────────────

    def calibrate(self, request: Request) -> Plan:
        fit, budget = self.fit(request), request.exact_budget
        epsilon = self._epsilon(budget)
        if self.as_published:
            return self._plan(request, fit, self._numbers(request, fit, epsilon))
        if self.version == "chaudhuri":
            least = (1.0 - 2.0**-36) * epsilon
            return self._plan(request, fit, self._numbers(request, fit, least))

        def keeps(total: float) -> bool:
            with suppress(PromiseRefused):
                return total <= epsilon and self._promise(request, fit, self._numbers(request, fit, total)).implies(
                    budget
                )
            return False

        found = largest_total(keeps)
        if found is None:
            raise PromiseRefused(f"No objective perturbation keeps {budget} for this model. Use a larger budget.")
        return self._plan(request, fit, self._numbers(request, fit, found))

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        fit = self.fit(request)
        numbers = {name: parameters.get(name, math.nan) for name in NUMBERS}
        if self.as_published:
            published = self._numbers(request, fit, self._epsilon(request.exact_budget))
            if not all(math.isclose(numbers[name], published[name], rel_tol=1e-9) for name in NUMBERS):
                raise PromiseRefused("The numbers stated are not those of the paper for this budget.")
        else:
            positive_ones = all(0.0 < numbers[name] < 1e75 for name in NUMBERS[1:])
            if not (positive_ones and 0.0 <= numbers["ridge"] < 1e75):
                raise PromiseRefused(
                    "Objective perturbation needs noise and a tolerance above 0; those stated are not."
                )
            certain = fit.stronger(numbers["ridge"]).tolerance_of(
                0.0, self._longest(request, fit, numbers["tilt_noise"])
            )
            if numbers["tolerance"] < certain:
                raise PromiseRefused(
                    f"A gradient of {numbers['tolerance']:.3g} cannot be certified: {certain:.3g} can."
                )
        return self._plan(request, fit, numbers)

    def fit(self, request: Request) -> RegularisedFit:
        """Everything public of the minimum, but for its ridge."""
        model: Any = request.model
        if getattr(model, "radius", None) is not None or isinstance(getattr(model, "kernel", None), SquaredLoss):
            raise UnsupportedBudget(
                "A tilted minimum may lie anywhere, so objective perturbation needs a loss of bounded slope without a "
                "ball. Leave out the prior's radius, or use HuberRegression for LeastSquares."
            )
        return regularised_fit(request, self.regularisation, "Objective perturbation")

    def pure(self, budget: Promise) -> bool:
        return self.version == "chaudhuri" or budget.is_pure

    def _epsilon(self, budget: Promise) -> float:
        if not isinstance(budget, PureDP | ApproxDP):
            raise UnsupportedBudget(
                f"Objective perturbation is calibrated for ε, or for ε and δ, not for {budget}. Use PureDP(epsilon) or "
                "ApproxDP(epsilon, delta)."
            )
        return budget.stated_epsilon

    def _numbers(self, request: Request, fit: RegularisedFit, epsilon: float) -> dict[str, float]:
        """The papers' Δ and noise at this ε, in sums over records (theirs are means: n·Δ, and b is the same); and what
        hides that a minimum is found to a tolerance only, which they leave out."""
        k, closing = request.records_per_person, 0.0 if self.as_published else CLOSING
        spent, bend, m, L = (1.0 - closing) * epsilon, fit.curvature * fit.reach**2, fit.strong_convexity, fit.lipschitz
        pure = self.pure(request.budget)
        if self.version == "kifer":
            ridge = 2.0 * bend / spent
            noise = (
                2.0 * L / spent if pure else L * math.sqrt(8.0 * math.log(2.0 / _delta(request)) + 4.0 * spent) / spent
            )
        elif self.as_published:  # of 2008
            ridge, noise = 0.0, 2.0 * L / epsilon
        else:  # a person's k records share ε: the theorem is about one
            ridge, left = 0.0, spent / k - 2.0 * math.log1p(bend / m)
            if left <= 0.0:
                ridge, left = max(bend / math.expm1(spent / k / 4.0) - m, 0.0), spent / k / 2.0
            noise = 2.0 * L / left
        strong = fit.stronger(ridge)
        tolerance = strong.tolerance_of(CLOSE, self._longest(request, fit, up(noise)))
        ratio = closing * (epsilon if pure else 2.0 * L / noise)
        closing_noise = up(2.0 * tolerance / strong.strong_convexity / ratio) if ratio else 0.0
        return {"ridge": ridge, "tilt_noise": up(noise), "tolerance": tolerance, "closing_noise": closing_noise}

    def _longest(self, request: Request, fit: RegularisedFit, noise: float) -> float:
        """No tilt is longer, but for one draw in 2⁹⁶: ‖b‖ is Gamma(p), or the root of a χ²_p, in units of the noise."""
        return noise * (2.0 * fit.width + 96.0 if self.pure(request.budget) else math.sqrt(fit.width) + 12.0)

    # ── from numbers to a promise ────────────────────────────────────────────────────────────────────────────────────

    def _promise(self, request: Request, fit: RegularisedFit, numbers: Mapping[str, float]) -> Promise:
        if self.as_published:
            return PureDP(self._epsilon(request.exact_budget)) if self.pure(request.budget) else request.exact_budget
        k, strong, noise = request.records_per_person, fit.stronger(numbers["ridge"]), numbers["tilt_noise"]
        kappa = volume_cost(curvature=fit.curvature, radius_squared=fit.reach**2, ridge=strong.strong_convexity)
        closing = (
            2 * Fraction(numbers["tolerance"]) / Fraction(strong.strong_convexity) / Fraction(numbers["closing_noise"])
        )
        if self.version == "chaudhuri":
            tilt = 2 * k * Fraction(fit.lipschitz) / Fraction(noise)
            return PureDP(sum_up([fraction_up(tilt + closing), 2.0 * k * kappa]))
        lower, upper = fit.kernel.slopes(math.inf, fit.responses)
        low, high = (max(-lower, upper), 0.0) if isinstance(fit.kernel, MarginLoss) else (-lower, upper)
        if self.pure(request.budget):
            return PureDP(sum_up([tilted_epsilon(fit.lipschitz, noise, kappa, records=k), fraction_up(closing)]))
        apart = partial(gaussian_delta, (low, high), kappa, ratio=up(fit.reach / noise), closing=fraction_up(closing), records=k)  # fmt: skip
        return ApproxDP(_least_epsilon(apart, _delta(request)), _delta(request))

    def _plan(self, request: Request, fit: RegularisedFit, numbers: Mapping[str, float]) -> Plan:
        strong = fit.stronger(numbers["ridge"])
        named = {
            "regularisation": fit.strong_convexity / request.n, "strong_convexity": strong.strong_convexity,
            "lipschitz": fit.lipschitz, "smoothness": up(fit.curvature * fit.reach**2),
            "pure": float(self.pure(request.budget)), **numbers,
        }  # fmt: skip
        claims = [f"rows have norm at most {fit.reach:.6g}, the intercept included", exact_sums.in_words(request.n)]
        if not self.as_published:
            claims.append(
                f"the gradient at what is published has norm at most {numbers['tolerance']:.3g}, checked on exact sums"
            )
        found = [Assumption(claim, Provenance.ENFORCED) for claim in claims]
        if self.as_published:
            false = "the paper's claim holds when a record is replaced, which is false (objective_perturbation.md)"
            found.append(Assumption(false, Provenance.ASSUMED))
        assumptions = (*fixed_in_advance(request, "bounds, regularisation"), *found)
        return Plan.of(self, request, named, self._promise(request, fit, numbers), self._theorem(), assumptions)

    def _theorem(self) -> str:
        if self.as_published:
            paper = (
                "Kifer, Smith, Thakurta (COLT 2012), Theorem 2"
                if self.version == "kifer"
                else "Chaudhuri, Monteleoni (NIPS 2008)"
            )
            return f"{paper}, as published; NOT PROVEN (objective_perturbation.md)"
        if self.version == "chaudhuri":
            return (
                "Chaudhuri, Monteleoni, Sarwate (JMLR 2011), Theorem 9, and closing noise (objective_perturbation.md)"
            )
        return "Kifer, Smith, Thakurta (COLT 2012), corrected for a replaced record (objective_perturbation.md)"

    def target(self, plan: Plan, summary: Any) -> RegularisedTarget:
        return RegularisedTarget(self.fit(plan.request).stronger(plan.parameters["ridge"]), summary, plan)

    def own_sampler(self) -> type[TiltedMinimum]:
        return TiltedMinimum

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.tilted import objective_case

        return objective_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.tilted import objective_cases

        return {"baselines": objective_cases}


def _least_epsilon(delta: Callable[[float], float], allowed: float) -> float:
    """The smallest ε at which δ is allowed, rounded up."""
    high = 1.0
    while delta(high) > allowed:
        if high > 1e6:
            raise PromiseRefused(
                f"This noise and ridge keep no ε that means anything at δ = {allowed:.3g}. Use more noise."
            )
        high *= 2.0
    return narrowed(lambda epsilon: delta(epsilon) <= allowed, true=high, false=0.0, precision=1e-12)[0]


def gaussian_delta(
    ends: tuple[float, float], kappa: float, epsilon: float, *, ratio: float, closing: float, records: int
) -> float:
    """δ(ε) of a tilt with ``ratio`` = r/σ and slopes in [−low, high], rounded up: the sum over all ends of a person's 2k slopes of the δ of a
    Gaussian mechanism that is as far apart, with the closing noise (objective_perturbation.md)."""
    left = Fraction(epsilon) - records * Fraction(kappa)
    if left <= 0:
        return 1.0
    low, high = ends
    total = []
    for steep in range(2 * records + 1):  # so many slopes are at the high end
        apart = (steep * Fraction(high) + (2 * records - steep) * Fraction(low)) * Fraction(ratio)
        mu = root_up(apart**2 + Fraction(closing) ** 2)
        count = math.comb(2 * records, steep)
        total.append(up(count * conversions.gaussian_delta(mu, fraction_down(left))) if mu else 0.0)
    return min(1.0, sum_up(total))


def _delta(request: Request) -> float:
    budget = request.exact_budget
    assert isinstance(budget, ApproxDP)
    return budget.stated_delta


# ── what runs ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class TiltedMinimum(Sampler):
    """The plan's own algorithm: a random tilt, the minimum to its certified gradient, and noise that hides what is
    left. It has no options."""

    randomness: ClassVar[str] = "numpy"
    why: ClassVar[str] = "the minimum of a tilted, regularised loss"
    compiling: ClassVar[float] = 1.0
    each: ClassVar[float] = 2e-3

    def exactness(self, plan: Plan) -> privacy.Exactness:
        self.check_own(plan, "minimises a tilted loss")
        return exactness_of(plan)

    def passes(self, plan: Plan) -> int:
        return 20

    def run(self, target: RegularisedTarget, randomness: Generator, *, size: int = 1) -> Sample:
        plan, passes, published = target.plan, 0, []
        for _ in range(size):
            tilt = self.tilt(plan, randomness)
            found, took = target.problem.minimum(target, plan.parameters["tolerance"], tilt)
            published.append(self.published(plan, found, randomness))
            passes += took
        return Sample(np.array(published), {"passes": passes})

    def tilt(self, plan: Plan, randomness: Generator) -> Array:
        """b."""
        return self._noise(plan, randomness).real(len(plan.model.parameter_names), plan.parameters["tilt_noise"])

    def published(self, plan: Plan, found: Array, randomness: Generator) -> Array:
        """A minimum with the noise that closes it, if it has any."""
        noise, size = self._noise(plan, randomness), plan.parameters["closing_noise"]
        return noise.rounded(found + noise.real(len(found), size), size) if size else found

    def _noise(self, plan: Plan, randomness: Generator) -> Noise:
        return Noise(randomness, pure=bool(plan.parameters["pure"]))
