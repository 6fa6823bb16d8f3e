"""AdaSSP: linear regression from noisy sums, with a ridge that adapts to how well conditioned the records are.

    λ̃ = (λ₁(XᵀX) + noise − what the noise can be)₊,    λ = (edge of the matrix's noise − λ̃)₊
    θ̃ = (XᵀX + noise + λI)⁻¹(Xᵀy + noise)

Y.-X. Wang, "Revisiting differentially private linear regression" (UAI 2018, arXiv:1803.02596), Algorithm 2, which is
about a record more or less and splits (ε, δ) in three. Here one record is replaced, the three noises have the
proportions of the paper, and together they are one Gaussian mechanism. Theorem, proof, and when anybody should still
use it: ada_ssp.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.errors import UnsupportedBudget, WrongCall
from onedraw.methods.base import Mechanism
from onedraw.methods.stages import MARGIN, Numbers, check_lattice, discrete_mu
from onedraw.models.sums import exact_sums
from onedraw.plans import Plan, Request, fixed_in_advance
from onedraw.privacy import Assumption, GaussianDP, Provenance
from onedraw.privacy.numbers import probability, root_up, up
from onedraw.private import Private
from onedraw.samplers.noise import Noise
from onedraw.samplers.randomness import OPENDP
from onedraw.samplers.sampler import Sample, Sampler

from .regression_sums import RegressionSums, both_moved

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases


@dataclass(frozen=True)
class SumNoises(Numbers):
    """Standard deviations: of λ₁, of XᵀX on its diagonal (√½ of it beside), of Xᵀy."""

    eigenvalue_noise: float
    squares_noise: float
    products_noise: float

    @property
    def complete(self) -> bool:
        return bool(self.eigenvalue_noise and self.squares_noise and self.products_noise)

    def promise(self, sums: RegressionSums, records: int) -> GaussianDP:
        """Of a person's records: λ₁, and then both sums as one vector, booked as noise on whole numbers."""
        first = up(sums.eigenvalue_reach(records) / self.eigenvalue_noise)
        both = up(records * both_moved(*self.relative(sums)))
        return GaussianDP(root_up(Fraction(discrete_mu(first)) ** 2 + Fraction(discrete_mu(both)) ** 2))

    def relative(self, sums: RegressionSums) -> tuple[float, float]:
        """Of XᵀX beside B², of Xᵀy beside BY."""
        return self.squares_noise / sums.reach**2, self.products_noise / (sums.reach * sums.bound)


@dataclass(frozen=True)
class AdaSSP(Mechanism):
    """Linear regression by noisy sums and an adaptive ridge, for `LeastSquares`. Its prior is not used.

    **Guarantee.** The noisy least eigenvalue, XᵀX and Xᵀy keep the plan's promise together; the estimate follows from
    them. ``failure`` is the paper's ϱ: the chance that the noise is larger than the ridge allows for. No promise
    depends on it.
    """

    title: ClassVar[str] = "AdaSSP"
    noun: ClassVar[str] = "estimate"
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "ada-ssp"

    failure: Annotated[float, check_failure] = 0.05

    def heading(self, plan: Plan) -> str:
        return "linear regression from noisy sums with an adaptive ridge (AdaSSP)"

    def calibrate(self, request: Request) -> Plan:
        sums, mu = RegressionSums.of(request, self.title), gaussian_budget(request, self.title)
        k, square = request.records_per_person, sums.reach**2
        left = max(mu * (1.0 - 2.0**-40) - 2.0 * float(MARGIN), mu / 2.0)
        least = math.hypot(sums.eigenvalue_reach(k) / square, k * both_moved(1.0, 1.0)) / left * (1.0 + 1e-12)
        noises = SumNoises(least * square, least * square, least * sums.reach * sums.bound)
        return self._plan(request, sums, noises)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        noises = SumNoises.from_dict(parameters, self.title)
        return self._plan(request, RegressionSums.of(request, self.title), noises)

    def _plan(self, request: Request, sums: RegressionSums, noises: SumNoises) -> Plan:
        check_lattice(sums.stages(*noises.to_dict().values()), request.n, request.budget)
        numbers = {**noises.to_dict(), "row_bound": sums.reach, "response_bound": sums.bound}
        theorem = "Gaussian noise on λ₁(XᵀX), XᵀX and Xᵀy (ada_ssp.md), after Wang (UAI 2018), Algorithm 2"
        promise = noises.promise(sums, request.records_per_person)
        return Plan.of(self, request, numbers, promise, theorem, enforced(request, sums))

    def target(self, plan: Plan, summary: Any) -> RegressionTarget:
        return RegressionTarget(RegressionSums.of(plan.request, self.title), plan, summary)

    def own_sampler(self) -> type[NoisyRegressionSums]:
        return NoisyRegressionSums

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        sums = RegressionSums.of(plan.request, self.title)
        return {"eigenvalue": 1, "squares": sums.entries, "products": sums.width}

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array:
        """θ̃ of what was published. Below the noise's own size an eigenvalue says nothing, and is raised to it."""
        sums, noise = RegressionSums.of(plan.request, self.title), plan.parameters["squares_noise"]
        squares, products = (np.asarray(stages[name], dtype=np.float64) for name in ("squares", "products"))
        square, product = sums.matrices(squares / sums.row_unit**2, products / (sums.row_unit * sums.response_unit))
        ridge = self.ridge(plan, float(stages["eigenvalue"][0]))
        values, axes = np.linalg.eigh(square + ridge * np.eye(sums.width))
        return np.asarray(axes @ ((axes.T @ product) / np.maximum(values, noise)))

    def ridge(self, plan: Plan, eigenvalue: float) -> float:
        """λ: what the noise of XᵀX can reach with probability 1 − ϱ, less what the records have themselves."""
        numbers, p = plan.parameters, len(plan.model.parameter_names)
        edge = numbers["squares_noise"] * math.sqrt(p * math.log(2.0 * p * p / self.failure))
        own = eigenvalue - numbers["eigenvalue_noise"] * math.sqrt(2.0 * math.log(1.0 / self.failure))
        return max(0.0, edge - max(0.0, own))

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.adaptive import ada_ssp_case

        return ada_ssp_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.adaptive import ada_ssp_cases

        return {"baselines": ada_ssp_cases}


def check_failure(value: float) -> float:
    if not 0.0 < probability("failure", value) < 1.0:
        raise WrongCall(f"failure is the chance that noise exceeds what is allowed for, such as 0.05, not {value!r}.")
    return value


def gaussian_budget(request: Request, what: str) -> float:
    """The largest μ that keeps the budget; refused where there is none."""
    allowed = request.exact_budget.allows(GaussianDP)
    if not allowed:
        raise UnsupportedBudget(
            f"{what} has Gaussian noise, which cannot keep {request.budget}. Use ApproxDP(epsilon, delta) with a δ "
            "above 0, GaussianDP or ZCDP."
        )
    return allowed


def enforced(request: Request, sums: RegressionSums) -> tuple[Assumption, ...]:
    claims = (
        f"rows have norm at most {sums.reach:.6g}, the intercept included, and responses are clamped to "
        f"±{sums.bound:.6g}",
        exact_sums.in_words(request.n),
    )
    found = (Assumption(claim, Provenance.ENFORCED) for claim in claims)
    return (*fixed_in_advance(request, "bounds of rows and responses"), *found)


# ── what runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False, repr=False)
class RegressionTarget(Private):
    """The sums of a plan with its records, which are read by exact sums alone. As private as they are."""

    sums: RegressionSums
    plan: Plan
    summary: Any


@dataclass(frozen=True)
class NoisyRegressionSums(Sampler):
    """The plan's own algorithm: λ₁, XᵀX and Xᵀy with their noise. It has no options."""

    randomness: ClassVar[str] = "numpy"
    why: ClassVar[str] = "noise on the sums of a linear regression"
    compiling: ClassVar[float] = 1.0
    each: ClassVar[float] = 2e-4

    def exactness(self, plan: Plan) -> privacy.AsRun:
        self.check_own(plan, "adds noise to the sums of a linear regression")
        return privacy.AsRun(plan.guarantee.promise)

    def entropy(self, plan: Plan) -> str:
        return OPENDP

    def run(self, target: RegressionTarget, randomness: Generator, *, size: int = 1) -> Sample:
        """``size`` estimates, and the stages that the first follows from."""
        whole = target.sums.whole(target.summary)
        found = [self.stages(target, whole, Noise(randomness, pure=False)) for _ in range(size)]
        plan = target.plan
        return Sample(np.array([plan.mechanism.estimate(plan, one) for one in found]), {}, found[0])

    def stages(self, target: RegressionTarget, whole: Any, noise: Noise) -> dict[str, list[float]]:
        """In the sums' own units, each a whole number of steps."""
        (squares, products), sums, numbers = whole, target.sums, target.plan.parameters
        fine, steps = sums.row_unit**-2.0, 1.0 / (sums.row_unit * sums.response_unit)
        least = np.array([sums.whole_eigenvalue(sums.matrices(squares, products)[0])])
        return {
            "eigenvalue": noise.vector(least, fine, numbers["eigenvalue_noise"]).tolist(),
            "squares": noise.triangle(squares, fine, numbers["squares_noise"]).tolist(),
            "products": noise.vector(products, steps, numbers["products_noise"]).tolist(),
        }
