"""DP-SGLD: Langevin steps on Poisson samples of the records, accounted for a replaced record.

    θ ← Π(θ − h((w/q) Σ_{i in the batch} ∇ℓ(θ, x_i) + ∇(−log π)(θ)) + √(2h) ξ),        T steps from a public start

Wang, Fienberg, Smola (arXiv:1502.07645); Li, Chen, Liu, Carin (arXiv:1712.09097). Each record is in a batch by its own coin of
probability q = B/n, and the divisor is q, never how many are in it. One record's share has a norm of at most C = hwL/q beside noise of
deviation √(2h): it is DP-SGD with σ = q√2/(wL√h), and promises what σ, q and T do. w and h are found from the budget for c
relaxation times. What is drawn follows neither the posterior nor a clipped one. Statement, and why q cancels: dp_sgld.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods import NoisyGradient
from onedraw.methods.base import Mechanism
from onedraw.methods.calibration import check_effect, known_curvature, whole_number
from onedraw.methods.convex_bounds import ConvexBounds, assumptions, smooth_bounds_of
from onedraw.methods.gibbs.noisy_gradient import LARGEST_WEIGHT, MOST_RELAXATIONS, STEP
from onedraw.models import GaussianMean
from onedraw.models.compute import jax, jit, jnp
from onedraw.models.design import EFFECT, NOISE, smallest_curvature
from onedraw.models.row_model import Encoded
from onedraw.plans import Plan, Request
from onedraw.privacy import Assumption, Provenance
from onedraw.privacy.numbers import positive, positive_integer, root_down
from onedraw.private import Private
from onedraw.samplers.sampler import NUMBERS_A_SECOND, Sample, Sampler
from onedraw.samplers.variates import check_delta

from .poisson_steps import MOST_STEPS, THEOREM, PoissonSteps
from .sgd_steps import AT_ONCE, capacity, drawn_steps, moved

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases

USUAL_BATCH = 1000
"""Records expected in a step where none are asked for and there are as many."""

LONGEST_STEP = 1.0
"""h·M at most: from 2 on a step overshoots by more than it was off."""

CLOSE = 1.0 - 2.0**-40
"""What a weight is multiplied by, so that the noise multiplier that follows from its last digits is not below the least one."""


@dataclass(frozen=True)
class DPSGLD(Mechanism):
    """Langevin steps on random batches; weight and step size are found from the budget.

    ``batch_size`` records are expected in a step; None: 1,000, or all where there are fewer. ``relaxations`` is how many relaxation times of the slowest direction the path lasts
    and ``steps`` how many steps that takes; None: as `NoisyGradient` plans them. ``effect`` and ``noise`` are its declarations too: public
    guesses, which cost accuracy and never privacy. Sampling saves passes over the records, never privacy.
    """

    title: ClassVar[str] = "DP-SGLD"
    noun: ClassVar[str] = "estimate"
    requires: ClassVar[str] = "dp-sgld"
    """The plan *is* an algorithm: only `SubsampledLangevin` carries it out."""

    batch_size: Annotated[int | None, partial(positive_integer, "batch_size")] = None
    relaxations: Annotated[float | None, partial(positive, "the relaxations")] = None
    steps: Annotated[int | None, partial(positive_integer, "steps")] = None
    effect: Annotated[float | None, partial(positive, "the effect")] = None
    noise: Annotated[float | None, partial(positive, "the noise")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_effect(self.effect, "steps=… and relaxations=…")
        if self.relaxations is not None and self.relaxations > MOST_RELAXATIONS:
            raise WrongCall(f"relaxations is at most {MOST_RELAXATIONS:g}, after which nothing of the start is left.")

    def expected_batch(self, n: int) -> int:
        """Return how many of n records are expected in a step: a public number."""
        return min(USUAL_BATCH, n) if self.batch_size is None else self.batch_size

    def heading(self, plan: Plan) -> str:
        numbers = plan.parameters
        lasting = f"{int(numbers['steps']):,} steps on samples, {numbers['relaxations']:.3g} relaxation times"
        return f"DP-SGLD, {lasting}; its law is neither the posterior nor a clipped posterior, not a posterior draw"

    # ── from a budget to a weight, and back ────────────────────────────────────────────────────────────────

    def calibrate(self, request: Request) -> Plan:
        bounds, curvature = self._checked(request), self._curvature(request)
        lasting = self.relaxations or self._planner.usual_relaxations(request, bounds, curvature)
        path = self._path(request, bounds, curvature, lasting)
        if path.weight > LARGEST_WEIGHT and self.relaxations is None:  # w ∝ 1/c: the surplus goes to time
            longer = min(MOST_RELAXATIONS, lasting * path.weight / LARGEST_WEIGHT)
            path = self._path(request, bounds, curvature, longer).at_most(LARGEST_WEIGHT)
        return self._plan(request, bounds, path, curvature)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        bounds, known = self._checked(request), self._curvature(request)
        curvature = parameters.get("curvature", math.nan)
        if not math.isclose(curvature, known, rel_tol=1e-6):
            raise PromiseRefused("The curvature stated is not that of the model's reference design at its effect.")
        weight, step_size, epsilon = (
            parameters.get(name, math.nan) for name in ("record_weight", "step_size", "epsilon")
        )
        steps = whole_number(parameters, "steps", 1, MOST_STEPS)
        if not (0.0 < weight < math.inf and 0.0 < step_size < math.inf and self.steps in (None, steps)):
            raise PromiseRefused(f"{self.title} needs the weight, steps and step size that it was planned with.")
        path = Path(weight, step_size, steps, request.n, self.expected_batch(request.n), _reach(bounds))
        self._sampled(request, steps).check(path.multiplier, epsilon)
        plan = self._plan(request, bounds, path, curvature, epsilon)
        if dict(parameters) != dict(plan.parameters):
            raise PromiseRefused("The noise stated is not that of this weight, step size and batch size.")
        return plan

    def _path(self, request: Request, bounds: ConvexBounds, curvature: float, lasting: float) -> Path:
        """The largest weight for so many relaxation times: σ² = 2q²nλT/(cwL²) at h = c/(nwλT)."""
        steps = self.steps or self._steps(request, bounds, curvature, lasting)
        sigma = self._sampled(request, steps).least_multiplier("fewer relaxations or another batch size")
        ratio = self.expected_batch(request.n) / (sigma * _reach(bounds))
        weight = 2.0 * ratio**2 * curvature * steps / (request.n * lasting) * CLOSE
        step_size = lasting / (request.n * weight * curvature * steps)
        longest = step_size * bounds.numbers(weight, request.n)["smoothness"]
        if not longest <= LONGEST_STEP:
            raise PromiseRefused(
                f"{steps:,} steps for {lasting:.3g} relaxation times are too long: h·M is {longest:.3g}, and beyond "
                f"{LONGEST_STEP:g} a path no longer follows its gradient. Use more steps, fewer relaxations or a larger batch."
            )
        return Path(weight, step_size, steps, request.n, self.expected_batch(request.n), _reach(bounds))

    def _steps(self, request: Request, bounds: ConvexBounds, curvature: float, lasting: float) -> int:
        """With which h·M ≤ 0.1 if the weight is half of what full batches would have; finite steps on samples have less."""
        single = privacy.ungroup(request.exact_budget, request.records_per_person)
        mu = single.allows(privacy.GaussianDP) / math.sqrt(request.draws)
        weight = min(LARGEST_WEIGHT, mu**2 * request.n * curvature / (4.0 * lasting * _reach(bounds) ** 2))
        assert bounds.smoothness is not None
        smoothness = bounds.smoothness + bounds.prior_smoothness / (request.n * weight)
        steps = math.ceil(lasting * smoothness / (STEP * curvature))
        if steps * request.draws > MOST_STEPS:
            raise PromiseRefused(
                f"{lasting:.3g} relaxation times take {steps * request.draws:,} steps, more than {MOST_STEPS:,}. Rescale the features "
                "to similar ranges around 0, use tighter bounds or fewer relaxations."
            )
        return steps

    def _sampled(self, request: Request, steps: int) -> PoissonSteps:
        return PoissonSteps(self.title, request, self.expected_batch(request.n), steps)

    @property
    def _planner(self) -> NoisyGradient:
        return NoisyGradient(effect=self.effect, noise=self.noise)

    def _curvature(self, request: Request) -> float:
        model = request.model
        return known_curvature(model, smallest_curvature(model, self.effect or EFFECT, self.noise or NOISE))

    def _checked(self, request: Request) -> ConvexBounds:
        """A budget, a batch or a model that no such path can be made with is refused."""
        self._sampled(request, 1)
        if isinstance(request.model, GaussianMean):
            raise UnsupportedBudget("The posterior of a Gaussian mean is drawn exactly, by Gibbs and Diffused.")
        bounds = smooth_bounds_of(request.model)
        if bounds.lipschitz is None:
            raise UnsupportedBudget(
                f"{type(request.model).__name__} has no bound on the slope of one record's loss, which a batch needs. Declare its "
                "lipschitz bound."
            )
        return bounds

    def _plan(
        self, request: Request, bounds: ConvexBounds, path: Path, curvature: float, epsilon: float | None = None
    ) -> Plan:
        sampled, multiplier = self._sampled(request, path.steps), path.multiplier
        stated = sampled.stated(multiplier) if epsilon is None else epsilon
        claims = (
            f"a record's gradient enters with norm at most {path.reach:.6g}, its bound; one that is no finite number counts as 0",
            sampled.coins,
            f"sums are divided by that probability, whoever is in them, and get {multiplier:.6g} times a record's share as noise",
        )
        found = (*assumptions(request), *(Assumption(claim, Provenance.ENFORCED) for claim in claims))
        numbers = {
            "record_weight": path.weight, "step_size": path.step_size, "steps": float(path.steps), "rate": sampled.rate,
            "lipschitz": path.reach, "noise_multiplier": multiplier, "epsilon": stated, "curvature": curvature,
            "relaxations": request.n * path.weight * curvature * path.step_size * path.steps,
        }  # fmt: skip
        return Plan.of(self, request, numbers, sampled.promise(stated), THEOREM, found)

    def target(self, plan: Plan, summary: Encoded) -> SubsampledTarget:
        return SubsampledTarget(plan, summary)

    def own_sampler(self) -> type[SubsampledLangevin]:
        return SubsampledLangevin

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.training import subsampled_case

        return subsampled_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.training import subsampled_cases

        return {"baselines": subsampled_cases}


def _reach(bounds: ConvexBounds) -> float:
    assert bounds.lipschitz is not None  # `_checked` has refused such a model
    return bounds.lipschitz


@dataclass(frozen=True)
class Path:
    """The public numbers of a path; ``reach`` is L."""

    weight: float
    step_size: float
    steps: int
    n: int
    batch_size: int
    reach: float

    @property
    def multiplier(self) -> float:
        """σ = q√2/(wL√h), rounded down."""
        share = Fraction(self.batch_size, self.n) / (Fraction(self.weight) * Fraction(self.reach))
        return root_down(2 * share**2 / Fraction(self.step_size))

    def at_most(self, weight: float) -> Path:
        """The same time with no more than this weight, which is more noise."""
        return replace(self, weight=min(self.weight, weight))


# ── what runs ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False, repr=False)
class SubsampledTarget(Private):
    """The records a path is about, encoded: as private as they are."""

    plan: Plan
    encoded: Encoded

    @property
    def public(self) -> tuple[Any, ...]:
        """(clip, σ·clip, hw/q) of a noisy sum, then h, the prior's precision and location, and the radius of its ball."""
        numbers, model = self.plan.parameters, self.plan.model
        step_size, reach = numbers["step_size"], numbers["lipschitz"]
        rate = step_size * numbers["record_weight"] * self.plan.n / self.batch_size
        prior, size = model.prior, model.dimension
        radius = math.inf if prior.radius is None else prior.radius
        sums = reach, math.sqrt(2.0 * step_size) / rate, rate
        return (*sums, step_size, prior.precision(size), prior.location(size), radius)

    @property
    def batch_size(self) -> int:
        assert isinstance(self.plan.mechanism, DPSGLD)
        return self.plan.mechanism.expected_batch(self.plan.n)


@dataclass(frozen=True)
class SubsampledLangevin(Sampler):
    """The plan's own steps from the prior's location; coins and noise come from one cryptographic generator."""

    randomness: ClassVar[str] = "numpy"
    compiling: ClassVar[float] = 3.0

    @classmethod
    def chosen(cls, plan: Plan, accept: Any) -> tuple[Sampler, str]:
        return cls(), f"the plan's own algorithm: {int(plan.parameters['steps']):,} noisy steps on samples"

    def exactness(self, plan: Plan) -> privacy.Accounted:
        self.check_own(plan, "carries out the steps that a DPSGLD() plan has")
        variates = int(plan.parameters["steps"]) * len(plan.model.parameter_names) * plan.draws
        check_delta(plan, plan.guarantee.promise, variates, randomness=self.randomness)
        return privacy.Accounted(plan.guarantee.promise)

    def passes(self, plan: Plan) -> int:
        return math.ceil(plan.parameters["steps"] * plan.parameters["rate"]) * plan.draws

    def seconds(self, plan: Plan) -> float:
        """Mostly coins: one for each record and step."""
        numbers = plan.n * plan.parameters["steps"] * (1.0 + plan.parameters["rate"] * len(plan.model.parameter_names))
        return float(plan.draws * (plan.parameters["steps"] * 1e-5 + 10.0 * numbers / NUMBERS_A_SECOND))

    def seconds_each(self, plan: Plan) -> float:
        return float(plan.parameters["steps"] * (1e-6 + 1e-8 * plan.n))

    def run(self, target: SubsampledTarget, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` paths, several side by side where they fit; nothing but the last iterates is kept."""
        steps = int(target.plan.parameters["steps"])
        each = 4 * capacity(target.plan.n, target.batch_size) + target.plan.model.dimension
        side, together = max(1, AT_ONCE // (steps * each)), max(1, min(steps, AT_ONCE // each))
        parts = []
        for first in range(0, size, side):
            count = min(side, size - first)
            theta = np.tile(target.plan.model.prior.location(target.plan.model.dimension), (count, 1))
            for done in range(0, steps, together):
                theta = advanced(target, theta, randomness, min(together, steps - done))
            parts.append(theta)
        return Sample(np.concatenate(parts))


def advanced(target: SubsampledTarget, theta: Array, generator: Any, steps: int) -> Array:
    """Paths (m, d) so many steps on, each with coins and noise of its own."""
    drawn = drawn_steps(
        generator, n=target.plan.n, batch_size=target.batch_size, steps=steps * len(theta), size=theta.shape[1]
    )
    X, y = jnp.asarray(target.encoded.X), jnp.asarray(target.encoded.y)
    return np.asarray(_paths(target.plan.model.kernel, X, y, theta, *drawn.split(len(theta)), target.public))


@jit(0)
def _paths(kernel: Any, X: Any, y: Any, starts: Any, rows: Any, present: Any, noise: Any, public: Any) -> Any:
    *sums, step_size, precision, location, radius = public

    def of_record(theta: Any, x: Any, response: Any) -> Any:
        return kernel.gradient_total(theta, x[None], response[None])

    def step(theta: Any, drawn: Any) -> Any:
        chosen, there, normal = drawn
        gradients = jax.vmap(of_record, in_axes=(None, 0, 0))(theta, X[chosen], y[chosen])
        found = moved(theta, gradients, there, normal, sums) - step_size * precision * (theta - location)
        return found * jnp.minimum(1.0, radius / jnp.sqrt(found @ found)), None

    def path(start: Any, *drawn: Any) -> Any:
        return jax.lax.scan(step, start, drawn)[0]

    return jax.vmap(path)(starts, rows, present, noise)
