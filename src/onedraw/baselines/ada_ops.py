"""AdaOPS: one posterior sample of a linear regression, with a ridge and a temperature that adapt to the records.

    λ̃    a lower bound of λ₁(XᵀX), from its noisy value                         λ    the best ridge for it
    S     an upper bound of 2Y + B‖θ̂‖, θ̂ = (XᵀX + λI)⁻¹Xᵀy, from its noisy logarithm
    θ ~ ∝ exp(−γ/2·(‖y − Xθ‖² + λ‖θ‖²)) on ‖θ‖ ≤ S/B,        γ = μ²(λ + λ̃)/G²,  G = B(2Y + B·S/B)

Y.-X. Wang, "Revisiting differentially private linear regression" (UAI 2018, arXiv:1803.02596), AdaOPS. The paper's draw
has no ball and its proof is for a record more or less: a difference of two quadratic losses has no slope that holds
everywhere. Cut to the ball that was just published it has one, G, for every data set, and Gopi, Lee, Liu
(arXiv:2203.00263) applies. Theorem, proof, departures: ada_ops.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy import special

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.errors import PromiseRefused, UnsupportedBudget
from onedraw.methods.base import Mechanism
from onedraw.methods.stages import MARGIN, Numbers, check_lattice, discrete_mu
from onedraw.models.conjugate.distributions import BallGaussian
from onedraw.plans import Plan, Request
from onedraw.privacy import ApproxDP, GaussianDP
from onedraw.privacy.conversions import gaussian_delta
from onedraw.privacy.numbers import root_up, sum_up, up
from onedraw.samplers.ball import ball_gaussian_draws
from onedraw.samplers.exact import NUMERIC_MODEL
from onedraw.samplers.noise import Noise
from onedraw.samplers.randomness import BOTH
from onedraw.samplers.sampler import Sample, Sampler
from onedraw.samplers.variates import TRIES, check_delta

from .ada_ssp import RegressionTarget, check_failure, enforced
from .regression_sums import RegressionSums

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

SHARES = (0.25, 0.25, 0.5)
"""Of μ²: the eigenvalue, the length, the draw. The paper gives a quarter of ε to each of the first two."""

MISSED = 0.25
"""Of δ, for the event that the lower bound of the eigenvalue is none."""

LENGTH_STEPS = 2.0**50
"""Lattice steps to a unit of the noisy logarithm; its noise is at least `LEAST_LENGTH_NOISE`."""

LEAST_LENGTH_NOISE, MOST_LENGTH_NOISE = 2.0**-20, 2.0**9

SOLUTION_ERROR = 2.0**-46
"""Of a solution of p equations whose condition is at most 2n, relatively, times n·p²."""

DRAW_BITS = 30
"""A draw is published on multiples of about so many bits of its ball's radius."""


@dataclass(frozen=True)
class OpsNumbers(Numbers):
    """What runs: the eigenvalue's noise, the chance that its bound is none, and μ of the other two stages."""

    eigenvalue_noise: float
    missed: float
    length_mu: float
    draw_mu: float

    @property
    def complete(self) -> bool:
        return bool(self.eigenvalue_noise and self.missed and self.length_mu and self.draw_mu)

    def promise(self, sums: RegressionSums, records: int, epsilon: float) -> ApproxDP:
        """(ε, δ): one Gaussian mechanism of three stages, and the event that its second and third rest on."""
        first = Fraction(discrete_mu(up(sums.eigenvalue_reach(records) / self.eigenvalue_noise)))
        rest = (Fraction(discrete_mu(self.length_mu)), Fraction(self.draw_mu))
        mu = root_up(sum((ratio**2 for ratio in (first, *rest)), Fraction(0)))
        return ApproxDP(epsilon, min(1.0, sum_up((gaussian_delta(mu, epsilon), self.missed))))


class Ball(NamedTuple):
    """What the draw is made of besides the records: all of it follows from what was published before."""

    radius: float
    precision: float
    """γ."""


@dataclass(frozen=True)
class AdaOPS(Mechanism):
    """One draw of a linear regression's posterior with an adaptive ridge and temperature, for `LeastSquares`. Of its
    prior the ball is used alone, where that is the smaller one.

    **Guarantee.** The noisy eigenvalue, the noisy length and the draw keep the plan's (ε, δ) together. ``failure`` is
    the paper's ϱ, the chance that the length is more than what is allowed for: no promise depends on it.
    """

    title: ClassVar[str] = "AdaOPS"
    whole_sums: ClassVar[bool] = True
    requires: ClassVar[str] = "ada-ops"

    failure: Annotated[float, check_failure] = 0.05

    def heading(self, plan: Plan) -> str:
        return "one posterior sample with an adaptive ridge and temperature (AdaOPS)"

    def calibrate(self, request: Request) -> Plan:
        sums, budget = RegressionSums.of(request, self.title), request.exact_budget
        epsilon, delta = _pair(budget)
        missed = MISSED * delta
        mu = ApproxDP(epsilon, (1.0 - MISSED) * delta).allows(GaussianDP)
        left = max(mu * (1.0 - 2.0**-30) - 4.0 * float(MARGIN), mu / 2.0)
        first, length, draw = (left * math.sqrt(share) for share in SHARES)
        noise = sums.eigenvalue_reach(request.records_per_person) / first * (1.0 + 1e-12)
        return self._plan(request, sums, OpsNumbers(noise, missed * (1.0 - 1e-9), length, draw))

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        return self._plan(request, RegressionSums.of(request, self.title), OpsNumbers.from_dict(parameters, self.title))

    def _plan(self, request: Request, sums: RegressionSums, numbers: OpsNumbers) -> Plan:
        epsilon, _ = _pair(request.exact_budget)
        check_lattice(sums.stages(numbers.eigenvalue_noise), request.n, request.budget)
        k = request.records_per_person
        if not (math.log1p(k) + 1.0) / numbers.length_mu < MOST_LENGTH_NOISE or not numbers.missed < 0.5:
            raise PromiseRefused(
                f"{request.budget} asks AdaOPS for more noise than its lattice holds. Use a larger budget."
            )
        named = {**numbers.to_dict(), "row_bound": sums.reach, "response_bound": sums.bound}
        theorem = (
            "Gaussian noise on λ₁ and log(2Y + B‖θ̂‖), then Gopi, Lee, Liu (arXiv:2203.00263) on a ball (ada_ops.md), after "
            "Wang (UAI 2018)"
        )
        return Plan.of(self, request, named, numbers.promise(sums, k, epsilon), theorem, enforced(request, sums))

    def target(self, plan: Plan, summary: Any) -> RegressionTarget:
        return RegressionTarget(RegressionSums.of(plan.request, self.title), plan, summary)

    def own_sampler(self) -> type[AdaptiveDraw]:
        return AdaptiveDraw

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        return {"eigenvalue": 1, "length": 1, "draw": len(plan.model.parameter_names)}

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array:
        return np.asarray(stages["draw"], dtype=np.float64)

    # ── what follows from what was published, each step public to the next ────────────────────────────────────────────

    def least_eigenvalue(self, plan: Plan, published: float) -> float:
        """λ̃: at most λ₁ of the records and of all their neighbours, but for a chance of ``missed``."""
        sums, numbers = RegressionSums.of(plan.request, self.title), plan.parameters
        away = -float(special.ndtri(numbers["missed"])) * (1.0 + 2.0**-20) * numbers["eigenvalue_noise"]
        return max(0.0, published - away - sums.eigenvalue_reach(plan.request.records_per_person))

    def ridge(self, plan: Plan, least: float) -> float:
        """λ, the paper's: where what the draw's spread costs and what the ridge biases add up to least; λ + λ̃ ≥ B²."""
        sums, (length, draw) = RegressionSums.of(plan.request, self.title), _mus(plan)
        square, p, rare = sums.reach**2, sums.width, math.log(1.0 / self.failure)
        spread = (p / 2.0 + math.sqrt(p * rare) + rare) / draw**2
        power = 2.0 * math.sqrt(2.0 * rare) * plan.request.records_per_person / length
        together = square * np.geomspace(1.0, 4.0 * sums.n + 4.0, 2000)
        together = np.append(max(least, square), together[together > max(least, square)])
        with np.errstate(over="ignore"):
            cost = square**2 * spread * np.exp(power * np.log1p(square / together)) / together + (together - least)
        return max(0.0, float(together[int(np.argmin(cost))]) - least)

    def length_noise(self, plan: Plan, together: float) -> float:
        """Of the logarithm, ``together`` being λ + λ̃: what a person's records move it by, over μ."""
        sums, k = RegressionSums.of(plan.request, self.title), plan.request.records_per_person
        rounding = 2.0 * SOLUTION_ERROR * sums.n * sums.width**2 + 2.0 / LENGTH_STEPS
        reach = up(math.log1p(up(k * sums.reach**2 / together)) + rounding)
        return max(LEAST_LENGTH_NOISE, up(reach / _mus(plan)[0]))

    def ball(self, plan: Plan, together: float, length: float) -> Ball:
        """From λ + λ̃ and the noisy logarithm: the radius S/B, or the prior's where it is smaller, and γ."""
        sums = RegressionSums.of(plan.request, self.title)
        allowed = length + math.sqrt(2.0 * math.log(1.0 / self.failure)) * self.length_noise(plan, together)
        far = max(2.0 * sums.bound, math.exp(min(allowed, 600.0)))
        radius = min(far / sums.reach, plan.model.radius)
        pull = plan.request.records_per_person * sums.reach * (2.0 * sums.bound + sums.reach * radius)
        return Ball(radius, _mus(plan)[1] ** 2 * together / pull**2 * (1.0 - 2.0**-30))

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.adaptive import ada_ops_case

        return ada_ops_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.adaptive import ada_ops_cases

        return {"baselines": ada_ops_cases}


def _pair(budget: Any) -> tuple[float, float]:
    if not isinstance(budget, ApproxDP) or not budget.stated_delta > 0.0:
        raise UnsupportedBudget(
            f"AdaOPS rests on a bound that holds but for a part of δ, so that it cannot keep {budget}. Use "
            "ApproxDP(epsilon, delta) with a δ above 0."
        )
    return budget.stated_epsilon, budget.stated_delta


def _mus(plan: Plan) -> tuple[float, float]:
    return plan.parameters["length_mu"], plan.parameters["draw_mu"]


# ── what runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AdaptiveDraw(Sampler):
    """The plan's own algorithm: the eigenvalue, the length, and a draw from the Gaussian cut to the ball. It has no
    options."""

    randomness: ClassVar[str] = "numpy"
    why: ClassVar[str] = "a noisy eigenvalue and length, and a draw by them"
    compiling: ClassVar[float] = 1.0
    each: ClassVar[float] = 2e-3

    def exactness(self, plan: Plan) -> privacy.Exactness:
        self.check_own(plan, "draws with a ridge and a temperature that adapt")
        variates = TRIES * (len(plan.model.parameter_names) + 2) ** 2
        check_delta(plan, plan.guarantee.promise, variates, randomness=self.randomness)
        return privacy.Exact(numeric=NUMERIC_MODEL)

    def entropy(self, plan: Plan) -> str:
        return BOTH

    def run(self, target: RegressionTarget, randomness: Generator, *, size: int = 1) -> Sample:
        """``size`` draws with stages of their own; those of the first are published."""
        sums = target.sums
        square, product = sums.matrices(*sums.whole(target.summary))
        found = [self.stages(target, square, product, randomness) for _ in range(size)]
        return Sample(np.array([one["draw"] for one in found]), {}, found[0])

    def stages(
        self, target: RegressionTarget, square: Array, product: Array, randomness: Generator
    ) -> dict[str, list[float]]:
        plan, sums, noise = target.plan, target.sums, Noise(randomness, pure=False)
        mechanism = _of(plan)
        whole = np.array([sums.whole_eigenvalue(square)])
        eigenvalue = noise.vector(whole, sums.row_unit**-2.0, plan.parameters["eigenvalue_noise"])
        least = mechanism.least_eigenvalue(plan, float(eigenvalue[0]))
        ridge = mechanism.ridge(plan, least)
        penalised = raised(square + ridge * np.eye(sums.width), ridge + least)
        size = float(np.linalg.norm(np.linalg.solve(penalised, product)))
        logarithm = round(math.log(2.0 * sums.bound + sums.reach * size) * LENGTH_STEPS)
        length = noise.vector(np.array([logarithm]), LENGTH_STEPS, mechanism.length_noise(plan, ridge + least))
        radius, precision = mechanism.ball(plan, ridge + least, float(length[0]))
        law = BallGaussian(precision * penalised, precision * product, radius)
        drawn, _ = ball_gaussian_draws(law, randomness, size=1)
        spacing = math.ldexp(1.0, math.floor(math.log2(radius)) - DRAW_BITS)
        draw = np.rint(drawn[0] / spacing) * spacing + 0.0
        return {"eigenvalue": eigenvalue.tolist(), "length": length.tolist(), "draw": draw.tolist()}


def raised(matrix: Array, least: float) -> Array:
    """With eigenvalues of at least λ + λ̃, which is so already unless λ̃ was missed: no records make a draw fail."""
    values, axes = np.linalg.eigh(matrix)
    return matrix if values[0] >= least else np.asarray((axes * np.maximum(values, least)) @ axes.T)


def _of(plan: Plan) -> AdaOPS:
    assert isinstance(plan.mechanism, AdaOPS)
    return plan.mechanism
