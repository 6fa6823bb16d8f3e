"""Noisy-gradient draws: Langevin steps for a finite, public time, with weight and time calibrated together.

    θ ← θ − h(w Σ ∇ℓ(θ, x_i) + ∇(−log π)(θ)) + √(2h) ξ,        T steps, full batch, public start, τ = hT

One record moves a step's drift by at most hwG and the noise has standard deviation √(2h), so each step is
GaussianDP(wG√(h/2)) and the whole path GaussianDP(wG√(τ/2)): whatever T, convex or not. Sums over records are whole
numbers on a public lattice, and G counts their rounding. Of a caller's own convex smooth loss, which is not rounded,
the last iterate alone has the smaller bound of arXiv:2403.00278. What is drawn is not a draw from a posterior, and its
certificate says so. In exchange the error that privacy adds falls like 1/n, that of an exact draw like 1/√n. Statement,
calibration and limits: noisy_gradient.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods.base import Mechanism
from onedraw.methods.calibration import check_effect, known_curvature, largest, whole_number
from onedraw.methods.convex_bounds import ConvexBounds, assumptions, gdp_mu, gibbs_target, pure_offer, smooth_bounds_of
from onedraw.models import GaussianMean
from onedraw.models.convex.gibbs_target import PathTarget
from onedraw.models.convex.number_losses import ResidualLoss
from onedraw.models.design import EFFECT, NOISE, residual_information, smallest_curvature, usual_length
from onedraw.models.sums.gradient_sums import rounding
from onedraw.plans import Plan, Request
from onedraw.privacy import Assumption, GaussianDP, Provenance
from onedraw.privacy.last_iterate import last_iterate_mu, path_mu, rounded_difference
from onedraw.privacy.numbers import positive, root_up

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases
    from onedraw.samplers.langevin import LastIterateLangevin

RELAXATIONS = 3.0
"""c = nwλτ, at most: e^{−c} of the starting point is left. Chosen among 3, 6 and 10 (noisy_gradient.md)."""

SHORTEST = 0.1
"""… and at least: below, a draw is one noisy gradient at the start, longer or shorter."""

MOST_RELAXATIONS = 20.0
"""Beyond this nothing of the starting point is left, and the rest of the budget stays unspent."""

LARGEST_WEIGHT = 4.0
"""From here on the draw's own spread is small beside the sampling error, and time is the better use of budget."""

STEP = 0.1
"""h·M ≤ 0.1, M the smoothness of the whole potential: the discrete path follows the continuous one."""

MOST_STEPS = 1_000_000

LATTICE = (
    "sums over records are whole numbers on a public lattice; what rounding adds to two gradients' distance is counted"
)


@dataclass(frozen=True)
class _Path:
    """One choice of weight, step size and steps, and the constants of the potential at that weight."""

    weight: float
    step_size: float
    steps: int
    gradient_difference: float
    rounding: float
    strong_convexity: float
    smoothness: float

    @property
    def time(self) -> float:
        return self.step_size * self.steps

    @property
    def by_composition(self) -> float:
        """GaussianDP of everything the path shows, for one record and one draw."""
        reach = rounded_difference(self.gradient_difference, self.rounding)
        return path_mu(weight=self.weight, gradient_difference=reach, step_size=self.step_size, steps=self.steps)

    @property
    def by_last_iterate(self) -> float:
        """GaussianDP of the last iterate alone; +∞ if its step size is outside (0, 2/M), or gradients are rounded."""
        if self.rounding or not self.step_size * self.smoothness < 2.0:
            return math.inf
        return last_iterate_mu(
            weight=self.weight, gradient_difference=self.gradient_difference, strong_convexity=self.strong_convexity,
            smoothness=self.smoothness, step_size=self.step_size, steps=self.steps,
        )  # fmt: skip

    @property
    def mu(self) -> float:
        return min(self.by_composition, self.by_last_iterate)


@dataclass(frozen=True)
class NoisyGradient(Mechanism):
    """A finite-time Langevin draw for a convex, smooth model; ``time`` and ``weight`` are planned where None.

    ``relaxations`` is how many relaxation times of the slowest direction the path lasts (None: 3, fewer with few
    records, more where the weight has reached its largest useful value). ``effect`` declares the standard deviation of
    the linear predictor that the plan expects, ``noise`` that of a response about it (None: 1 each). They must not be
    computed from the records. Wrong ones cost accuracy, never privacy.
    """

    title: ClassVar[str] = "noisy-gradient draw"
    noun: ClassVar[str] = "estimate"
    requires: ClassVar[str] = "noisy-gradient"
    replicates: ClassVar[bool] = True
    """The plan *is* an algorithm: the only sampler is last-iterate Langevin with exactly its steps and step size."""
    later: ClassVar[frozenset[str]] = frozenset({"noise", "relaxations"})

    time: Annotated[float | None, partial(positive, "the time")] = None
    weight: Annotated[float | None, partial(positive, "the weight")] = None
    effect: Annotated[float | None, partial(positive, "the effect")] = None
    noise: Annotated[float | None, partial(positive, "the noise")] = None
    relaxations: Annotated[float | None, partial(positive, "the relaxations")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_effect(self.effect, "weight=… and time=…")
        if self.relaxations is not None and not (self.time is None and self.relaxations <= MOST_RELAXATIONS):
            raise WrongCall(
                f"relaxations is at most {MOST_RELAXATIONS:g}, after which nothing of the start is left, and says how "
                "long the path lasts, as time does: pass one of the two."
            )

    def heading(self, plan: Plan) -> str:
        return "noisy gradient steps"

    def calibrate(self, request: Request) -> Plan:
        bounds = self._checked(request)
        curvature = self._curvature(request)
        return self._plan(request, bounds, self._choose(request, bounds, curvature), curvature)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        bounds = self._checked(request)
        weight, step_size = (parameters.get(name, math.nan) for name in ("weight", "step_size"))
        steps = whole_number(parameters, "steps", 1, MOST_STEPS)
        if not (0 < weight < math.inf and 0 < step_size < math.inf):
            raise PromiseRefused(f"A {self.title} needs a positive weight and step size; those stated are not.")
        path = _path(request.model, bounds, request.n, weight, step_size, steps)
        if self.weight not in (None, weight) or not math.isclose(self.time or path.time, path.time, rel_tol=1e-9):
            raise PromiseRefused("The weight and time stated are not those the mechanism was made with.")
        curvature, known = parameters.get("curvature"), self._curvature(request)
        if (curvature is None) != (known is None) or not math.isclose(curvature or 1.0, known or 1.0, rel_tol=1e-6):
            raise PromiseRefused("The curvature stated is not that of the model's reference design at its effect.")
        return self._plan(request, bounds, path, curvature)

    def sums_exactly(self, plan: Plan) -> bool:
        """On a lattice, but for a loss of the caller's own."""
        return "rounding" in plan.parameters

    def target(self, plan: Plan, summary: Any) -> Any:
        """The potential whose noisy gradient is followed."""
        return gibbs_target(plan, summary, weight=plan.parameters["weight"], kind=PathTarget)

    def diffusion_time(self, plan: Plan) -> float:
        return float(plan.parameters["time"])

    def own_sampler(self) -> type[LastIterateLangevin]:
        from onedraw.samplers.langevin import LastIterateLangevin  # which only a draw needs

        return LastIterateLangevin

    def _curvature(self, request: Request) -> float | None:
        return smallest_curvature(request.model, self.effect or EFFECT, self.noise or NOISE)

    def _choose(self, request: Request, bounds: ConvexBounds, curvature: float | None) -> _Path:
        """So many relaxation times at the largest weight; above the largest useful weight, more relaxation times."""
        most, kernel = LARGEST_WEIGHT, request.model.kernel  # type: ignore[attr-defined]  # of a convex model
        if self.noise is not None and isinstance(kernel, ResidualLoss):
            # four times H/K of the design: 4 for a negative log-likelihood, 4/noise² for squared residuals
            information, variability = residual_information(kernel, self.noise)
            most *= information / variability if information > 0.0 else 1.0
        lasting = self.relaxations or self.usual_relaxations(request, bounds, curvature)

        def path(weight: float, time: float) -> _Path:
            return _path_of(request.model, bounds, request.n, weight, time)

        def keeps(weight: float, time: float) -> bool:
            return self._person(request, path(weight, time)) <= gdp_mu(request.exact_budget)

        def relaxed(weight: float, relaxations: float) -> float:
            """τ with this many relaxation times of the slowest direction."""
            rate = request.n * weight * (curvature or 0.0)
            return relaxations / (rate or bounds.prior_strong_convexity)

        def longest(weight: float) -> _Path:
            most = relaxed(weight, MOST_RELAXATIONS)
            return path(weight, self._most(request, lambda time: keeps(weight, time), most))

        if self.weight is not None:
            return longest(self.weight) if self.time is None else path(self.weight, self.time)
        if (time := self.time) is not None:
            return path(self._most(request, lambda weight: keeps(weight, time), most), time)
        known_curvature(request.model, curvature)
        weight = self._most(request, lambda weight: keeps(weight, relaxed(weight, lasting)), most)
        return path(weight, relaxed(weight, lasting)) if weight < most else longest(weight)

    def usual_relaxations(self, request: Request, bounds: ConvexBounds, curvature: float | None) -> float:
        """c with the smallest predicted squared error: with few records a short path, nearer its start, with less noise.

        A path of c relaxation times has the weight 2μ²nλ/(cG²) (noisy_gradient.md), so each of p directions the noise
        c(1 − e^{−2c})·G²/(2n²λ²μ²); and e^{−c} of the coefficients' norm is missing.
        """
        length = usual_length(request.model, self.effect, self.noise)
        if curvature is None or length is None:
            return RELAXATIONS
        mu = gdp_mu(request.exact_budget) / request.records_per_person  # of all draws, whose mean it is about
        reach = bounds.gradient_difference / (request.n * curvature * mu)
        times = np.linspace(SHORTEST, RELAXATIONS, 200)
        left = np.exp(-2.0 * times)
        noise = len(request.model.parameter_names) * reach**2 / 2.0
        return float(times[np.argmin(noise * times * (1.0 - left) + length**2 * left)])

    def _most(self, request: Request, keeps: Callable[[float], bool], most: float) -> float:
        """The largest number up to ``most`` that keeps the budget, or a little less where a step moved its last digits."""
        share = largest(lambda share: keeps(share * most))
        if share is None:
            raise PromiseRefused(
                f"No noisy-gradient path, however short or light, keeps {request.budget} with {request.draws} draw(s) "
                f"and {request.records_per_person} record(s) per person. Use a larger budget, fewer draws or tighter "
                "bounds."
            )
        for _ in range(64):
            if keeps(share * most):
                break
            share *= 1.0 - 2.0**-20
        return most * share

    def _person(self, request: Request, path: _Path) -> float:
        """μ for a person's records in all draws together: k·√J times that of one record in one draw."""
        return root_up((Fraction(path.mu) * request.records_per_person) ** 2 * request.draws)

    def _checked(self, request: Request) -> ConvexBounds:
        budget = request.budget
        if isinstance(request.model, GaussianMean):
            raise UnsupportedBudget("The posterior of a Gaussian mean is drawn exactly, by Gibbs and Diffused.")
        bounds = smooth_bounds_of(request.model)
        if not budget.allows(GaussianDP):
            raise UnsupportedBudget(
                f"A noisy-gradient path cannot keep {budget}: Gaussian noise always leaves some δ. {pure_offer(budget)}"
            )
        return bounds

    def _plan(self, request: Request, bounds: ConvexBounds, path: _Path, curvature: float | None) -> Plan:
        taken = {"time": path.time, "step_size": path.step_size, "steps": float(path.steps), "mu": path.mu}
        numbers = bounds.numbers(path.weight, request.n) | taken
        if path.rounding:
            numbers["rounding"] = path.rounding
        if curvature is not None:
            numbers["curvature"] = curvature
        last = path.by_last_iterate <= path.by_composition
        theorem = (
            "the last iterate of noisy gradient descent on strongly convex smooth potentials (arXiv:2403.00278)"
            if last
            else "composition of Gaussian steps: GaussianDP(wG√(τ/2)) for the whole path (arXiv:1905.02383)"
        )
        enforced = [
            "start, steps and step size are public; every step uses all records",
            *([LATTICE] if path.rounding else []),
            *(["only the last iterate is published"] if last else []),
        ]
        found = (*assumptions(request), *(Assumption(claim, Provenance.ENFORCED) for claim in enforced))
        return Plan.of(self, request, numbers, GaussianDP(self._person(request, path)), theorem, found)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audit import path_case

        return path_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audit import path_cases

        return path_cases()


def _path_of(model: Any, bounds: ConvexBounds, n: int, weight: float, time: float) -> _Path:
    """The path of this time with the fewest steps for which h·M ≤ 0.1."""
    smoothness = bounds.numbers(weight, n)["smoothness"]
    steps = math.ceil(time * smoothness / STEP) or 1
    if steps > MOST_STEPS:
        raise PromiseRefused(
            f"A path of weight {weight:.6g} and time {time:.6g} needs {steps:,} steps, more than {MOST_STEPS:,}: the "
            "smallest curvature under the reference design is tiny beside the largest one the bounds allow. Rescale "
            "the features to similar ranges around 0, use tighter bounds, or pass a shorter time."
        )
    return _path(model, bounds, n, weight, time / steps, steps)


def _path(model: Any, bounds: ConvexBounds, n: int, weight: float, step_size: float, steps: int) -> _Path:
    numbers = bounds.numbers(weight, n)
    return _Path(
        weight, step_size, steps, bounds.gradient_difference, rounding(model, n), numbers["strong_convexity"],
        numbers["smoothness"],
    )  # fmt: skip
