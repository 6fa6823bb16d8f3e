"""The proximal sampler: exact up to a total variation γ that is proven for every data set.

Chen, Chewi, Salim, Wibisono, "Improved analysis for a proximal algorithm for sampling" (arXiv:2202.06386), after Lee,
Shen, Tian. From a law ∝ exp(−U) on K (R^d or a ball), U m-strongly convex there, alternate

    y ~ N(x, η·metric⁻¹)          x ~ ∝ exp(−U(x) − ‖x − y‖²/2η) on K, exactly.

Each half contracts the divergence from the target by 1/(1 + ηm): only the log-Sobolev constant 1/m is needed, which
restricting a law to a convex set keeps. With KL(start) or, from a point x₀, the distance to the minimum x*,

    from N(x̂, I/M), R^d only:   KL_k ≤ [(d/2)·log(M/m) + ‖∇U(x̂)‖²/2m] · (1+ηm)^{−2k}
    from a point of K:          KL_k ≤ (‖x₀ − x*‖ + √(d/m))²/(2η) · (1+ηm)^{−(2k−1)},        γ = √(KL_k/2).

**The inner draw.** For any x̂ in K, m-strong convexity gives U(x) ≥ U(x̂) + ∇U(x̂)·(x − x̂) + (m/2)‖x − x̂‖² on K. The
right side plus ‖x − y‖²/2η is a quadratic: draw x from its Gaussian (cut to the ball by `ball`, where that takes a
few tries without touching the records) and accept with the probability exp(−excess),

    excess = U(x) − U(x̂) − ∇U(x̂)·(x − x̂) − (m/2)‖x − x̂‖² ≥ 0:          one pass over the records per try.

x̂, from a quadratic picture of U, sets only the speed. With η = 1/(Md) a step takes at most √e tries on average if x̂
is the minimiser. There is no cap on tries: a cap would change the law. On a ball mathematics.md has the smaller
η = min(1/(Md), (ρ/d)²), because rejection from the uncut Gaussian hardly ever hits a small ball; cutting the Gaussian
first removes the reason, and γ is proven for every η.

Where the predictor is bounded the metric is that of P = Λ + w·c·XᵀX (`preconditioner`): M = 1, m = 1/κ, and the number of
iterations is the same whatever n and the records are. How many tries a step takes depends on the records: it stays with the
curator. Compiled once for a loss, a shape and a number of chains at once; all else is an argument.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onedraw import privacy
from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.models.compute import jax, jit, jnp
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.plans import Plan
from onedraw.privacy.numbers import text, up
from onedraw.samplers.ball import Tilt, best_tilt, into_ball, log_acceptance, peak_on_ball, proposed
from onedraw.samplers.chains import (
    PublicNumbers,
    advanced,
    arguments_for,
    chains_at_once,
    checked_gamma,
    mapped,
    numbers_of_plan,
    numbers_of_target,
    smooth,
    whole_number,
)
from onedraw.samplers.preconditioner import (
    Frame,
    Surroundings,
    minimum,
    plain_frame,
    preconditioned_frame,
    slope_in,
    surroundings,
    value_in,
)
from onedraw.samplers.sampler import NUMBERS_A_SECOND, Sample, Sampler
from onedraw.samplers.variates import TRIES, check_gamma, normal, variates

START = 0.01
"""How far from the minimum a chain on a ball may start, in units of √(d/m); it enters the number of iterations."""

START_KL = 0.01
"""The same on R^d: the largest ‖∇U(x̂)‖²/2m."""

STEP_SECONDS = 1e-4
"""Of one iteration, however few records there are."""

NO_ITERATIONS = " Without any the start would be released. Use Proximal(gamma=…) to have the number worked out."

FAR = -30.0
"""From here on the tail of a normal law is drawn as an exponential one, corrected by rejection."""

WIDE = 4.0
"""From here on nearly nothing is cut off: an uncut normal variate is drawn, and another where it is beyond the edge."""


@dataclass(frozen=True)
class Geometry:
    """The public numbers that decide γ, in the metric of the chain."""

    dimension: int
    strong_convexity: float
    smoothness: float
    ball: bool
    preconditioned: bool = False

    @property
    def step(self) -> float:
        """η = 1/(Md)."""
        return 1.0 / (self.smoothness * self.dimension)

    @property
    def variates(self) -> int:
        """Of one iteration; a try on a ball takes about e(d+1)/2 to hit it."""
        attempt = 1 + 2 * (self.dimension + 2) ** 2 if self.ball else 1 + self.dimension
        return self.dimension + TRIES * attempt

    @property
    def public(self) -> dict[str, Any]:
        """The arguments of `gamma_after` for a chain of this sampler, its start included."""
        m, d = self.strong_convexity, self.dimension
        start = START * math.sqrt(d / m) if self.ball else math.sqrt(2.0 * m * START_KL)
        return {"dimension": d, "strong_convexity": m, "smoothness": self.smoothness, "ball": self.ball, "start": start}


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
            check_gamma(self.gamma, self._iterations(geometry) * geometry.variates)
            return privacy.WithinTV(self.gamma)
        assert self.iterations is not None
        gamma = gamma_after(self.iterations, **geometry.public)
        if not gamma < 0.5:
            raise ExactnessRefused(
                f"After {self.iterations:,} iterations no useful bound on the total variation is known (it is {gamma:.3g}). "
                f"γ = 1e-9 takes {iterations_of(1e-9, geometry):,}. Use more iterations, or Proximal(gamma=…)."
            )
        check_gamma(gamma, self.iterations * geometry.variates)
        return privacy.WithinTV(gamma)

    def passes(self, plan: Plan) -> int:
        """Two an iteration."""
        return 2 * self._iterations_of(plan) * plan.draws

    def seconds(self, plan: Plan) -> float:
        size = plan.n * len(plan.model.parameter_names)
        return float(plan.draws * self._iterations_of(plan) * (STEP_SECONDS + 4.0 * size / NUMBERS_A_SECOND))

    def seconds_each(self, plan: Plan) -> float:
        return 1e-6 * self._iterations_of(plan) * (1.0 + plan.n / 50.0)

    def _iterations_of(self, plan: Plan) -> int:
        return self._iterations(geometry_of(numbers_of_plan(plan, sampler="Proximal")))

    def run(self, target: GibbsTarget, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains, each from its own start to its last iterate."""
        geometry = geometry_of(numbers_of_target(target))
        m, M, iterations = geometry.strong_convexity, geometry.smoothness, self._iterations(geometry)
        frame = preconditioned_frame(target) if geometry.preconditioned else plain_frame(target)
        # how far above its minimum U may be at the start: then ‖x₀ − x*‖ ≤ START·√(d/m) on a ball
        tolerance = 0.5 * START**2 * geometry.dimension if geometry.ball else START_KL
        u, noticed = minimum(frame, target, strong_convexity=m, smoothness=M, tolerance=tolerance)
        frame, around = surroundings(frame, target, u, rotate=not geometry.preconditioned)
        settings = Settings(geometry.step, geometry.step, m, M, iterations)
        static = (target.kernel, target.radius is not None, chains_at_once(size, target.encoded.n))
        keys = jax.random.split(randomness, size)
        draws, tries = _chains(*static, keys, frame, around, settings, arguments_for(target))
        noticed |= {
            "iterations": iterations,
            "tries_per_step": float(tries.records.sum()) / (size * iterations),
            "ball_tries_per_step": float(tries.ball.sum()) / (size * iterations),
        }
        return Sample(into_ball(np.asarray(draws), target.radius), noticed)

    def _iterations(self, geometry: Geometry) -> int:
        if self.iterations is not None:
            return self.iterations
        assert self.gamma is not None
        return iterations_of(self.gamma, geometry)


def geometry_of(numbers: PublicNumbers) -> Geometry:
    """The better conditioned of the plain and the preconditioned metric."""
    smoothness, ratio = smooth(numbers, sampler="Proximal"), numbers.curvature_ratio
    if not numbers.strong_convexity > 0.0:
        raise ExactnessRefused(
            "Proximal needs a strongly convex potential, and this plan has strong convexity 0: nothing bounds how far "
            "the chain still is from its law. Use a prior of finite scale."
        )
    ball = numbers.radius is not None
    if ball and ratio is not None and ratio * numbers.strong_convexity < smoothness:
        return Geometry(numbers.dimension, math.nextafter(1.0 / ratio, 0.0), 1.0, ball=True, preconditioned=True)
    return Geometry(numbers.dimension, numbers.strong_convexity, smoothness, ball=ball)


# ── γ and iterations ─────────────────────────────────────────────────────────────────────────────────────────


def divergence_of_gaussian_start(
    *, dimension: int, strong_convexity: float, smoothness: float, gradient_norm: float = 0.0
) -> float:
    """KL(N(x̂, I/M) ‖ target) ≤ (d/2)·log(M/m) + ‖∇U(x̂)‖²/(2m), on R^d."""
    spread = 0.5 * dimension * math.log(smoothness / strong_convexity)
    return up(spread + gradient_norm**2 / (2.0 * strong_convexity))


def divergence_of_point_start(*, dimension: int, strong_convexity: float, step: float, distance: float = 0.0) -> float:
    """KL of the first y from a point at most ``distance`` from the minimum: (‖x₀ − x*‖ + √(d/m))²/(2η)."""
    return up((distance + math.sqrt(dimension / strong_convexity)) ** 2 / (2.0 * step))


def gamma_after(
    iterations: int, *, dimension: int, strong_convexity: float, smoothness: float, ball: bool, start: float = 0.0
) -> float:
    """γ after so many iterations with η = 1/(Md), rounded up.

    ``start`` is ‖x₀ − x*‖ on a ball, ‖∇U(x̂)‖ on R^d, in the metric in which m and M are stated.
    """
    iterations = whole_number("iterations", iterations, NO_ITERATIONS)
    divergence, halves, rate = _contraction(dimension, strong_convexity, smoothness, ball, start)
    logarithm = math.log(divergence) - (2 * iterations - halves) * rate
    # An absolute error of 2^-40 in a logarithm of at most some thousands is far above what rounding does.
    return up(math.exp(min(0.0, 0.5 * (logarithm - math.log(2.0)) + 2.0**-40)), absolute=5e-324)


def iterations_for(
    gamma: float, *, dimension: int, strong_convexity: float, smoothness: float, ball: bool, start: float = 0.0
) -> int:
    """The least number of iterations with `gamma_after` at most ``gamma``."""
    gamma = checked_gamma(gamma)
    divergence, halves, rate = _contraction(dimension, strong_convexity, smoothness, ball, start)
    needed = math.log(divergence) - math.log(2.0) - 2.0 * math.log(gamma)
    iterations = max(1, math.ceil(0.5 * (halves + needed / rate) * (1.0 - 1e-12)))
    public = {"dimension": dimension, "strong_convexity": strong_convexity, "smoothness": smoothness}
    while not gamma_after(iterations, **public, ball=ball, start=start) <= gamma:  # type: ignore[arg-type]
        iterations += 1 + int(1e-13 * iterations)
    return iterations


def iterations_of(gamma: float, geometry: Geometry) -> int:
    """`iterations_for` with the start of this sampler's chains."""
    return iterations_for(gamma, **geometry.public)


def _contraction(
    dimension: int, strong_convexity: float, smoothness: float, ball: bool, start: float
) -> tuple[float, int, float]:
    """KL at the start, the half-iterations it has cost already, log(1 + ηm) rounded down."""
    if not (dimension >= 1 and 0.0 < strong_convexity <= smoothness < math.inf and 0.0 <= start < math.inf):
        raise WrongCall(
            "The proximal sampler needs a dimension of at least 1, 0 < m ≤ M < ∞ and a start at a finite distance; "
            f"d = {dimension}, m = {text(strong_convexity)}, M = {text(smoothness)}, {text(start)} were given."
        )
    step = 1.0 / (smoothness * dimension)
    rate = math.log1p(step * strong_convexity) * (1.0 - 2.0**-50)
    if ball:
        point = divergence_of_point_start(
            dimension=dimension, strong_convexity=strong_convexity, step=step, distance=start
        )
        return point, 1, rate
    gaussian = divergence_of_gaussian_start(
        dimension=dimension, strong_convexity=strong_convexity, smoothness=smoothness, gradient_norm=start
    )
    return max(gaussian, 1e-300), 0, rate


# ── the chain ────────────────────────────────────────────────────────────────────────────────────────────────────


class Settings(NamedTuple):
    """The numbers of a chain. ``forward`` and ``backward`` are both η; they differ only in a test's planted fault."""

    forward: Any
    backward: Any
    strong_convexity: Any
    smoothness: Any
    iterations: Any


class Tries(NamedTuple):
    """Tries that read the records, and tries to hit the ball, over a whole chain."""

    records: Any
    ball: Any


@jit(0, 1, 2)
def _chains(
    kernel: Any, on_ball: bool, at_once: int, keys: Any, frame: Frame, around: Surroundings, settings: Settings,
    arguments: tuple[Any, ...],
) -> Any:  # fmt: skip
    def chain(key: Any) -> Any:
        first, rest = jax.random.split(key)
        start = jnp.asarray(around.start)
        if not on_ball:
            start = start + normal(first, start.shape) / jnp.sqrt(settings.smoothness * frame.metric)

        def draw(number: Any) -> Any:
            forward_key, backward_key = jax.random.split(jax.random.fold_in(rest, number))
            return normal(forward_key, start.shape), backward_key

        def step(state: Any, drawn: Any) -> Any:
            point, tries = state
            point, more = _step(kernel, on_ball, drawn, point, frame, around, settings, arguments)
            return point, Tries(tries.records + more.records, tries.ball + more.ball)

        point, tries = advanced((start, Tries(0, 0)), settings.iterations, draw=draw, step=step)
        return frame.theta(point), tries

    return mapped(chain, keys, at_once)


def _step(
    kernel: Any, on_ball: bool, drawn: Any, point: Any, frame: Frame, around: Surroundings, settings: Settings,
    arguments: tuple[Any, ...],
) -> Any:  # fmt: skip
    """y around the point, then a new point given y: (point, tries)."""
    noise, backward_key = drawn
    metric, eta = jnp.asarray(frame.metric), settings.backward
    y = point + jnp.sqrt(settings.forward / metric) * noise
    # where x given y is most likely, if U were its quadratic picture; inside the ball, where U's bounds hold
    sharp = around.curvature + metric / eta
    pull = around.curvature * around.start - around.slope + metric * y / eta
    guess = peak_on_ball(sharp, pull, xp=jnp) if on_ball else pull / sharp
    value, slope = value_in(frame, kernel, guess, arguments), slope_in(frame, kernel, guess, arguments)
    # U's lower bound around the guess plus ‖x − y‖²/2η: −½ x·precision·x + linear·x, up to a constant.
    precision = (1.0 / eta + settings.strong_convexity) * metric
    linear = settings.strong_convexity * metric * guess - slope + metric * y / eta
    tilt = best_tilt(precision, linear, xp=jnp, log_ndtr=jax.scipy.special.log_ndtr) if on_ball else None

    def attempt(state: Any) -> Any:
        _, tries, _ = state
        try_key = jax.random.fold_in(backward_key, tries.records)
        if tilt is None:
            (numbers, normals), ball_tries = variates(try_key, (y.size + 1,)), 0
            proposal, chance = (linear + normals[1:] * jnp.sqrt(precision)) / precision, numbers[0]
        else:
            proposal, ball_tries = _in_ball(try_key, tilt)
            chance, _ = variates(jax.random.fold_in(try_key, 0), ())
        away = proposal - guess
        bound = slope @ away + 0.5 * settings.strong_convexity * (metric * away) @ away
        excess = value_in(frame, kernel, proposal, arguments) - value - bound
        return proposal, Tries(tries.records + 1, tries.ball + ball_tries), jnp.log(chance) <= -excess

    new, tries, _ = jax.lax.while_loop(lambda state: ~state[2], attempt, (point, Tries(0, 0), False))
    return new, tries


def _in_ball(key: Any, tilt: Tilt) -> Any:
    """An exact draw from the Gaussian cut to the unit ball, and how many tries it took."""

    def attempt(state: Any) -> Any:
        _, tries, _ = state
        numbers, normals = variates(jax.random.fold_in(key, tries + 1), (tilt.normal.size + 2,))
        depth, keep = _depth(numbers[1], normals[1], tilt.room)
        proposal = proposed(tilt, normals[2:], depth, xp=jnp)
        return proposal, tries + 1, jnp.log(numbers[0]) <= log_acceptance(tilt, proposal, xp=jnp) + keep

    point, tries, _ = jax.lax.while_loop(lambda state: ~state[2], attempt, (tilt.peak, 0, False))
    return point, tries


def _depth(number: Any, normal: Any, room: Any) -> Any:
    """room − τ for a standard normal τ cut to τ ≤ room, with the log-probability to keep it.

    From one variate, as a uniform or as a normal number: near 1 uniform numbers are too coarse for the upper tail.
    """
    special = jax.scipy.special
    far = -jnp.log(number) / jnp.maximum(-room, -FAR)
    near = jnp.maximum(0.0, room - special.ndtri(number * special.ndtr(jnp.clip(room, FAR, WIDE))))
    wide = jnp.maximum(0.0, room - normal)
    depth = jnp.where(room < FAR, far, jnp.where(room > WIDE, wide, near))
    kept = jnp.where((room > WIDE) & (normal > room), -jnp.inf, 0.0)
    return depth, jnp.where(room < FAR, -0.5 * far * far, kept)
