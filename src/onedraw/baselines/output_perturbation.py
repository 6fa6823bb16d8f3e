"""Output perturbation: the minimum of a ridge-regularised convex loss, with noise as large as one record can move it.

    θ̂ = argmin (1/n)Σ φ(x_iᵀθ, y_i) + (λ/2)‖θ‖²,        published θ̂ + b,        ‖θ̂ − θ̂'‖ ≤ G/(nλ) ≤ 2L/(nλ)

K. Chaudhuri, C. Monteleoni, A. Sarwate, JMLR 12 (2011), Algorithm 1, for noise of density ∝ e^{−ε‖b‖/Δ}; Gaussian noise
where the budget has a δ; Laplace noise in each coordinate as J. Jewson et al. (NeurIPS 2023) have it, corrected (errata
2) or ``as_published``. What runs stops at a certified gradient, and its promise says so. Theorem, proof, and when
anybody should still use it: output_perturbation.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods.added_noise.run import laplace_steps
from onedraw.methods.stages import LARGEST_KAPPA, MARGIN, MOST_STEPS, UNLIKE, discrete_mu
from onedraw.models.sums import exact_sums
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import Assumption, GaussianDP, Promise, Provenance, PureDP
from onedraw.privacy.numbers import fraction_up, root_up
from onedraw.samplers.noise import Noise, measurement
from onedraw.samplers.randomness import BOTH, OPENDP, OPERATING_SYSTEM, is_secure
from onedraw.samplers.sampler import Sample, Sampler

from .regularised_fit import PerturbedFit, RegularisedFit, RegularisedTarget, exactness_of, power_below, regularised_fit

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

LAWS = ("norm", "laplace", "gaussian")

FINEST = 2.0**40
"""Lattice steps in a sensitivity, at most: what is rounded to them is far finer than any noise."""

COARSEST = 2.0**20
"""… and at least."""


@dataclass(frozen=True)
class OutputPerturbation(PerturbedFit):
    """A regularised minimum with noise. ``noise``: "norm", of density ∝ e^{−‖b‖/s}, or "laplace" in each coordinate,
    both for a pure ε; "gaussian"; None takes "norm" for a pure budget and "gaussian" for any other. ``regularisation``
    is λ, public and chosen without the records; None takes it from the model's prior, λ = 1/(n·scale²).

    ``as_published=True`` (with "laplace") has the scale of Jewson et al., 2L/(√p·nλε): too small by a factor p, never
    proven.
    """

    title: ClassVar[str] = "output perturbation"
    requires: ClassVar[str] = "output-perturbation"

    noise: str | None = None
    regularisation: float | None = None
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.noise not in (None, *LAWS):
            raise WrongCall(f"noise must be one of {', '.join(map(repr, LAWS))} or None, but {self.noise!r} was given.")
        if self.as_published not in (True, False) or (self.as_published and self.noise != "laplace"):
            raise WrongCall(
                "as_published=True is the scale of Jewson et al. (2023) and belongs to noise='laplace' alone; the "
                "other laws are proven as published. Pass noise='laplace', or leave it out."
            )
        self._check_regularisation()

    def heading(self, plan: Plan) -> str:
        law = {"norm": "noise in the norm", "laplace": "Laplace noise", "gaussian": "Gaussian noise"}[
            self.law(plan.budget)
        ]
        width = len(plan.model.parameter_names)
        spread = {"norm": math.sqrt(width + 1.0), "laplace": math.sqrt(2.0), "gaussian": 1.0}[self.law(plan.budget)]
        size = f" of standard deviation {spread * plan.parameters['noise']:.3g} in each number"
        return f"{self.title} with {law}{' as published' if self.as_published else ''}{size}"

    # ── from a budget to numbers, and from numbers to a promise ──────────────────────────────────────────────────────

    def calibrate(self, request: Request) -> Plan:
        law = self.law(request.budget)
        fit = self.fit(request)
        kind = GaussianDP if law == "gaussian" else PureDP
        allowed = request.exact_budget.allows(kind)
        if not allowed:
            instead = (
                "noise=None, which is pure for a pure budget" if kind is GaussianDP else "noise=None or a pure budget"
            )
            raise UnsupportedBudget(
                f"Output perturbation with {law} noise cannot keep {request.budget}. Use {instead}."
            )
        steps = lattice(fit, request.records_per_person, allowed)
        reach = self._reach(request, fit, fit.tolerance, steps)
        ratio = Fraction(allowed)
        if kind is GaussianDP:  # less what whole numbers are booked with
            ratio = max(ratio * (1 - Fraction(1, 2**40)) - MARGIN, ratio / 2)
        noise = fraction_up(Fraction(reach) / ratio)
        return self.plan(request, {"tolerance": fit.tolerance, "steps": steps, "noise": noise})

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        fit, law = self.fit(request), self.law(request.budget)
        given = {name: parameters.get(name, math.nan) for name in ("tolerance", "steps", "noise")}
        tolerance, steps, noise = given.values()
        if not (all(0.0 < value < math.inf for value in given.values()) and power_below(steps) == steps):
            raise PromiseRefused(
                "Output perturbation needs a tolerance, lattice steps and noise; those stated are none."
            )
        if tolerance < fit.tolerance:
            raise PromiseRefused(
                f"A gradient of {tolerance:.3g} cannot be certified for this fit: {fit.tolerance:.3g} can."
            )
        reach = self._reach(request, fit, tolerance, steps)
        _check_steps(fit, law, noise * steps, reach * steps)
        numbers = {
            "regularisation": fit.strong_convexity / request.n, "strong_convexity": fit.strong_convexity,
            "lipschitz": fit.lipschitz, "gradient_difference": fit.pull, "sensitivity": reach, **given,
        }  # fmt: skip
        ratio = fraction_up(Fraction(reach) / Fraction(noise))
        promise = GaussianDP(discrete_mu(ratio)) if law == "gaussian" else PureDP(ratio)
        return Plan.of(self, request, numbers, promise, self._theorem(law), self._assumptions(request, fit, tolerance))

    def law(self, budget: Promise) -> str:
        return self.noise or ("norm" if budget.is_pure else "gaussian")

    def fit(self, request: Request) -> RegularisedFit:
        """Everything public of the minimum."""
        return regularised_fit(request, self.regularisation, "Output perturbation")

    def _reach(self, request: Request, fit: RegularisedFit, tolerance: float, steps: float) -> float:
        """How far a person's records move what the noise is added to: kG/m, the search's two ends and the lattice; in
        the sum of all coordinates, √p times that, for Laplace noise. As published: 2L/m over √p, and nothing else."""
        k, m, p = request.records_per_person, Fraction(fit.strong_convexity), fit.width
        if self.as_published:
            return fraction_up(2 * k * Fraction(fit.lipschitz) / m / Fraction(root_up(Fraction(p))))
        root = Fraction(root_up(Fraction(p)))
        euclidean = (k * Fraction(fit.pull) + 2 * Fraction(tolerance)) / m + root / Fraction(steps)
        return fraction_up(euclidean * root if self.noise == "laplace" else euclidean)

    def _theorem(self, law: str) -> str:
        if self.as_published:
            return "Theorem 4, Jewson et al. (NeurIPS 2023), as published; NOT PROVEN (errata 2)"
        how = {
            "norm": "Chaudhuri, Monteleoni, Sarwate (JMLR 2011), Theorem 6",
            "laplace": "Laplace noise for the sum of all coordinates, √p times the Euclidean sensitivity",
            "gaussian": "Gaussian noise (arXiv:1905.02383, Theorem 2.7)",
        }[law]
        return f"{how}, for a minimum that one record moves by at most G/(nλ) (output_perturbation.md)"

    def _assumptions(self, request: Request, fit: RegularisedFit, tolerance: float) -> tuple[Assumption, ...]:
        enforced = [
            f"rows have norm at most {fit.reach:.6g}, the intercept included",
            f"the gradient at what is published has norm at most {tolerance:.3g}, checked on exact sums",
            exact_sums.in_words(request.n),
        ]
        found = [Assumption(claim, Provenance.ENFORCED) for claim in enforced]
        if self.as_published:
            claim = (
                "the sum of all coordinates moves by at most 2L/(√p·nλ), which is false (errata 2): √p·2L/(nλ) is true"
            )
            found.append(Assumption(claim, Provenance.ASSUMED))
        return (*fixed_in_advance(request, "bounds, regularisation"), *found)

    def target(self, plan: Plan, summary: Any) -> RegularisedTarget:
        return RegularisedTarget(self.fit(plan.request), summary, plan)

    def own_sampler(self) -> type[NoisyMinimum]:
        return NoisyMinimum

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.regularised import output_case

        return output_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.regularised import output_cases

        return {"baselines": output_cases}


def lattice(fit: RegularisedFit, records: int, ratio: float) -> float:
    """Steps to a unit: a power of two, so many that neither the minimum nor the noise leaves 64 bits."""
    moved = records * fit.pull / fit.strong_convexity
    largest = max(fit.farthest * fit.step, 2.0**8 * math.sqrt(fit.width) * moved / ratio)
    return power_below(min(FINEST / moved, MOST_STEPS / largest))


def _check_steps(fit: RegularisedFit, law: str, noise: float, reach: float) -> None:
    """Refuse noise, in steps, for which whole numbers are too coarse or too short."""
    fine = reach >= COARSEST and (law != "gaussian" or UNLIKE * fit.width <= LARGEST_KAPPA * noise**2)
    if not (fine and max(noise, 1.0) < MOST_STEPS):
        raise PromiseRefused(
            "This budget, n and regularisation ask for noise that whole numbers of 64 bits cannot carry. Use a budget "
            "nearer to ε = 1, or a stronger regularisation."
        )


# ── what runs ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class NoisyMinimum(Sampler):
    """The plan's own algorithm: the minimum to its certified gradient, on the lattice, with noise. It has no
    options."""

    randomness: ClassVar[str] = "numpy"
    why: ClassVar[str] = "a regularised minimum, and noise on it"
    compiling: ClassVar[float] = 1.0
    each: ClassVar[float] = 3e-5

    def exactness(self, plan: Plan) -> privacy.Exactness:
        self.check_own(plan, "adds noise to a minimum")
        numbers, mechanism = plan.parameters, _of(plan)
        if mechanism.law(plan.budget) == "laplace" and mechanism.proven:
            reach = math.floor(Fraction(numbers["sensitivity"]) * Fraction(numbers["steps"]))
            noise = measurement("laplace", len(plan.model.parameter_names), numbers["noise"] * numbers["steps"])
            noise.check(plan.guarantee.promise, reach, epsilon=plan.guarantee.promise.number)
        return exactness_of(plan)

    def entropy(self, plan: Plan) -> str:
        return {"norm": OPERATING_SYSTEM, "laplace": OPENDP, "gaussian": BOTH}[_of(plan).law(plan.budget)]

    def passes(self, plan: Plan) -> int:
        return 20

    def run(self, target: RegularisedTarget, randomness: Generator, *, size: int = 1) -> Sample:
        """``size`` estimates: the minimum is the same, the noise is not."""
        plan, fit = target.plan, target.problem
        found, passes = fit.minimum(target, plan.parameters["tolerance"])
        return Sample(np.array([self.published(plan, found, randomness) for _ in range(size)]), {"passes": passes})

    def published(self, plan: Plan, found: Array, randomness: Generator) -> Array:
        """A minimum with its noise, on the lattice."""
        steps, noise, law = plan.parameters["steps"], plan.parameters["noise"], _of(plan).law(plan.budget)
        whole = np.rint(found * steps).astype(np.int64)
        if law != "laplace":
            return Noise(randomness, pure=law == "norm").vector(whole, steps, noise)
        if is_secure(randomness):
            return np.array(measurement("laplace", len(whole), noise * steps).release(whole)) / steps
        return np.asarray((whole + laplace_steps(noise * steps, len(whole), randomness)) / steps)


def _of(plan: Plan) -> OutputPerturbation:
    assert isinstance(plan.mechanism, OutputPerturbation)
    return plan.mechanism
