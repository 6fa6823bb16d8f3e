"""The proximal sampler: exact up to a total variation γ that is proven for every data set.

Chen, Chewi, Salim, Wibisono, "Improved analysis for a proximal algorithm for sampling" (arXiv:2202.06386), after Lee,
Shen, Tian. From a law ∝ exp(−U) on K (R^d or a ball), U m-strongly convex there, alternate

    y ~ N(x, η·metric⁻¹)          x ~ ∝ exp(−U(x) − ‖x − y‖²/2η) on K, exactly.

Each half contracts the divergence from the target by 1/(1 + ηm): only the log-Sobolev constant 1/m is needed, which
restricting a law to a convex set keeps. How many iterations that makes for a γ: `models.convex.draw_cost`.

**The inner draw.** For any x̂ in K, m-strong convexity gives U(x) ≥ U(x̂) + ∇U(x̂)·(x − x̂) + (m/2)‖x − x̂‖² on K. The
right side plus ‖x − y‖²/2η is a quadratic: draw x from its Gaussian (cut to the ball by `ball`, where that takes a
few tries without touching the records, 6.4 + 3.2d on average at most) and accept with the probability exp(−excess),

    excess = U(x) − U(x̂) − ∇U(x̂)·(x − x̂) − (m/2)‖x − x̂‖² ≥ 0:          one pass over the records per try.

x̂, from a quadratic picture of U, sets only the speed. With η = 1/(Md) a step takes at most √e tries on average if x̂
is the minimiser. There is no cap on tries: a cap would change the law. On a ball of smallest semi-axis ρ the usual step is the
smaller η = min(1/(Md), (ρ/d)²), because rejection from the uncut Gaussian hardly ever hits a small ball; cutting the Gaussian
first removes the reason, and γ is proven for every η.

Where the predictor is bounded the metric is that of P = Λ + w·c·XᵀX (`preconditioner`): M = 1, m = 1/κ, and the number of
iterations is the same whatever n and the records are. How many tries a step takes depends on the records: it stays with the
curator. On a ball the work can be padded: x̂ is refined so often that a try succeeds with a public probability at least, and a
quota of tries for the whole chain is used up whatever the records are, and another of those that hit the ball (padding.md). The chain itself: `proximal_chain`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.models.compute import jax
from onedraw.models.convex.draw_cost import START, START_KL, Geometry, gamma_after, iterations_of
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.plans import Plan
from onedraw.privacy.numbers import down
from onedraw.samplers.ball import into_ball, least_hit
from onedraw.samplers.chains import (
    PublicNumbers,
    arguments_for,
    chains_at_once,
    checked_gamma,
    numbers_of_plan,
    numbers_of_target,
    smooth,
    whole_number,
)
from onedraw.samplers.padding import AT_BALL, PASSES, TRIES_GAMMA, Padding, no_padding, tries_for
from onedraw.samplers.preconditioner import (
    LOCAL_QUADRATIC_PASSES,
    curvature_preconditioner,
    identity_preconditioner,
    local_quadratic,
    minimum,
    padded_descent,
)
from onedraw.samplers.proximal_chain import Idle, ProximalSettings, Quota, Tries, chains
from onedraw.samplers.sampler import NUMBERS_A_SECOND, Sample, Sampler
from onedraw.samplers.variates import TRIES, check_gamma

STEP_SECONDS = 1e-4
"""Of one iteration, however few records there are."""

NO_ITERATIONS = " Without any the start would be released. Use Proximal(gamma=…) to have the number worked out."


@dataclass(frozen=True)
class Proximal(Sampler):
    """Within total variation ``gamma`` of the posterior, or as near as ``iterations`` come: exactly one is given."""

    compiling: ClassVar[float] = 14.0

    gamma: float | None = None
    iterations: int | None = None

    def __post_init__(self) -> None:
        if (self.gamma is None) == (self.iterations is None):
            raise WrongCall(
                "Proximal needs gamma, the total variation it may be off by, or iterations: exactly one of them, since "
                "each follows from the other. Use Proximal(gamma=1e-9), say."
            )
        if self.gamma is not None:
            checked_gamma(self.gamma)
        else:
            whole_number("iterations", self.iterations, NO_ITERATIONS)

    def exactness(self, plan: Plan) -> privacy.Exactness:
        """WithinTV(γ), from the plan's public numbers."""
        geometry = geometry_of(numbers_of_plan(plan, sampler="Proximal"))
        if self.gamma is not None:
            check_gamma(self.gamma, self._iterations(geometry) * _variates(geometry))
            return privacy.WithinTV(self.gamma)
        assert self.iterations is not None
        gamma = gamma_after(self.iterations, geometry)
        if not gamma < 0.5:
            raise ExactnessRefused(
                f"After {self.iterations:,} iterations no useful bound on the total variation is known (it is {gamma:.3g}). "
                f"γ = 1e-9 takes {iterations_of(1e-9, geometry):,}. Use more iterations, or Proximal(gamma=…)."
            )
        check_gamma(gamma, self.iterations * _variates(geometry))
        return privacy.WithinTV(gamma)

    def passes(self, plan: Plan) -> int:
        """Two an iteration."""
        return 2 * self._iterations_of(plan) * plan.draws

    def padding(self, plan: Plan) -> Padding:
        """On a ball: refined guesses, one quota of tries for each chain, and a start after as many steps as theory asks for."""
        numbers = numbers_of_plan(plan, sampler="Proximal")
        geometry = geometry_of(numbers)
        quota = self._quota(numbers, geometry)
        descent = padded_descent("Proximal", geometry.strong_convexity, geometry.smoothness)
        before = descent + 1 + LOCAL_QUADRATIC_PASSES + geometry.preconditioned
        each = (self._iterations(geometry) + 1) * (quota.refinements + 2) + quota.tries
        work = {
            PASSES: before + plan.draws * each,
            "tries": plan.draws * quota.tries,
            AT_BALL: plan.draws * quota.at_ball,
        }
        return Padding(work, 2 * plan.draws * TRIES_GAMMA)

    def _quota(self, numbers: PublicNumbers, geometry: Geometry) -> Quota:
        if numbers.radius is None:
            raise no_padding(
                "Proximal", "on all of space no public number bounds how far off a guess is; a ball (radius=…) does"
            )
        scale = math.sqrt(smooth(numbers, sampler="Proximal")) if geometry.preconditioned else 1.0
        tries = tries_for(self._iterations(geometry), least_accepted(geometry), TRIES_GAMMA)
        at_ball = tries_for(tries, least_hit(geometry.dimension), TRIES_GAMMA)
        return Quota(refinements(geometry, diameter=2.0 * numbers.radius * scale), tries, at_ball)

    def seconds(self, plan: Plan) -> float:
        size = plan.n * len(plan.model.parameter_names)
        return float(plan.draws * self._iterations_of(plan) * (STEP_SECONDS + 4.0 * size / NUMBERS_A_SECOND))

    def seconds_each(self, plan: Plan) -> float:
        return 1e-6 * self._iterations_of(plan) * (1.0 + plan.n / 50.0)

    def _iterations_of(self, plan: Plan) -> int:
        return self._iterations(geometry_of(numbers_of_plan(plan, sampler="Proximal")))

    def run(self, target: GibbsTarget, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains, each from its own start to its last iterate."""
        return self._run(target, randomness, size, None)

    def run_padded(self, target: GibbsTarget, randomness: Any, padding: Padding, *, size: int = 1) -> Sample:
        """One chain after the other: side by side they would wait for whoever needs the most tries at each step."""
        numbers = numbers_of_target(target)
        return self._run(target, randomness, size, self._quota(numbers, geometry_of(numbers)))

    def _run(self, target: GibbsTarget, randomness: Any, size: int, quota: Quota | None) -> Sample:
        geometry, padded = geometry_of(numbers_of_target(target)), quota is not None
        m, M, iterations = geometry.strong_convexity, geometry.smoothness, self._iterations(geometry)
        preconditioner = (
            curvature_preconditioner(target) if geometry.preconditioned else identity_preconditioner(target)
        )
        # how far above its minimum U may be at the start: then ‖x₀ − x*‖ ≤ START·√(d/m) on a ball
        tolerance = 0.5 * START**2 * geometry.dimension if geometry.ball else START_KL
        public = {"strong_convexity": m, "smoothness": M, "tolerance": tolerance}
        u, noticed = minimum(preconditioner, target, **public, padded=padded)
        preconditioner, quadratic = local_quadratic(preconditioner, target, u, rotate=not geometry.preconditioned)
        settings = ProximalSettings(geometry.step, geometry.step, m, M, iterations, quota or Quota())
        at_once = 1 if padded else chains_at_once(size, target.encoded.n)
        static, keys = (target.kernel, target.radius is not None, padded, at_once), jax.random.split(randomness, size)
        draws, tries, idle = chains(*static, keys, preconditioner, quadratic, settings, arguments_for(target))
        noticed |= {
            "iterations": iterations,
            "tries_per_step": float(tries.records.sum()) / (size * iterations),
            "ball_tries_per_step": float(tries.ball.sum()) / (size * iterations),
        }
        if quota is not None:
            noticed["idle"] = {name: np.asarray(count) for name, count in idle._asdict().items()}
            noticed["work"] = _work_done(quota, noticed, tries, idle, geometry)
        return Sample(into_ball(np.asarray(draws), target.radius), noticed)

    def _iterations(self, geometry: Geometry) -> int:
        if self.iterations is not None:
            return self.iterations
        assert self.gamma is not None
        return iterations_of(self.gamma, geometry)


def geometry_of(numbers: PublicNumbers) -> Geometry:
    """The better conditioned of the plain and the preconditioned metric."""
    smoothness = smooth(numbers, sampler="Proximal")
    if not numbers.strong_convexity > 0.0:
        raise ExactnessRefused(
            "Proximal needs a strongly convex potential, and this plan has strong convexity 0: nothing bounds how far "
            "the chain still is from its law. Use a prior of finite scale."
        )
    d, ball, ratio = numbers.dimension, numbers.radius is not None, numbers.curvature_ratio
    return Geometry.of(d, numbers.strong_convexity, smoothness, ball=ball, curvature_ratio=ratio)


def _variates(geometry: Geometry) -> int:
    """Of one iteration; a try on a ball takes 3.2(d+2) to hit it on average at most (ball.md)."""
    d = geometry.dimension
    return d + TRIES * (1 + 4 * (d + 2) ** 2 if geometry.ball else 1 + d)


def _work_done(quota: Quota, noticed: dict[str, Any], tries: Tries, idle: Idle, geometry: Geometry) -> dict[str, int]:
    """What was done, counted: as `Proximal.padding` has it unless a quota was too small."""
    before = noticed["descent_steps"] + 1 + LOCAL_QUADRATIC_PASSES + geometry.preconditioned
    fixed = len(tries.records) * (noticed["iterations"] + 1) * (quota.refinements + 2)
    made, at_ball = int((tries.records + idle.records).sum()), int((tries.ball + idle.ball).sum())
    return {PASSES: int(before + fixed + made), "tries": made, AT_BALL: at_ball}


# ── tries that suffice for every data set (padding.md) ───────────────────────────────────────────────────────────────


def least_accepted(geometry: Geometry) -> float:
    """e^{−(9/8)·(M − m)d/(Md + m)} ≥ e^{−9/8}, rounded down: of a try from a guess within ½√(d/a) of its try's mode."""
    m, M, d = geometry.strong_convexity, geometry.smoothness, geometry.dimension
    return down(math.exp(-9.0 / 8.0 * (M - m) * d / (M * d + m)))


def refinements(geometry: Geometry, *, diameter: float) -> int:
    """J, after which x̂ ← Proj(x̂ − ∇V(x̂)/a) has brought any guess of the ball there: c^J·diameter ≤ ½√(d/a), c = (M − m)/a."""
    m, M, d = geometry.strong_convexity, geometry.smoothness, geometry.dimension
    a = M * d + m
    wanted = math.log(2.0 * diameter / math.sqrt(d / a))
    if wanted <= 0.0:
        return 0
    return 1 if m == M else math.ceil(wanted / -math.log((M - m) / a) * (1.0 + 1e-12))
