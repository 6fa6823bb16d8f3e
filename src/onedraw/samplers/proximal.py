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

Where the predictor is bounded the metric is that of P = Λ + w·c·XᵀX (`frame`): M = 1, m = 1/κ, and the number of
iterations is the same whatever n and the records are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.privacy.rounding import text, up
from onedraw.samplers.floating_point import TRIES, check_gamma
from onedraw.samplers.public_numbers import (
    PublicNumbers,
    checked_gamma,
    numbers_of_plan,
    numbers_of_target,
    smooth,
)
from onedraw.samplers.sample import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

START = 0.01
"""How far from the minimum a chain on a ball may start, in units of √(d/m); it enters the number of iterations."""

START_KL = 0.01
"""The same on R^d: the largest ‖∇U(x̂)‖²/2m."""


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


@dataclass(frozen=True)
class Proximal:
    """Within total variation ``gamma`` of the posterior, or as near as ``iterations`` come: exactly one is given."""

    randomness: ClassVar[str] = "jax"

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
            _checked_iterations(self.iterations)

    def exactness(self, plan: Any) -> privacy.Exactness:
        """WithinTV(γ), from the plan's public numbers."""
        geometry = geometry_of(numbers_of_plan(plan, sampler="Proximal"))
        if self.gamma is not None:
            check_gamma(self.gamma, self._iterations(geometry) * geometry.variates)
            return privacy.WithinTV(self.gamma)
        assert self.iterations is not None
        gamma = gamma_after(self.iterations, **_public(geometry))
        if not gamma < 0.5:
            raise ExactnessRefused(
                f"After {self.iterations:,} iterations no useful bound on the total variation is known (it is {gamma:.3g}). "
                f"γ = 1e-9 takes {iterations_of(1e-9, geometry):,}. Use more iterations, or Proximal(gamma=…)."
            )
        check_gamma(gamma, self.iterations * geometry.variates)
        return privacy.WithinTV(gamma)

    def passes(self, plan: Any) -> int:
        """Over the records, for all draws: two an iteration."""
        geometry = geometry_of(numbers_of_plan(plan, sampler="Proximal"))
        return 2 * self._iterations(geometry) * int(plan.draws)

    def to_dict(self) -> dict[str, object]:
        return {"name": "Proximal", "gamma": self.gamma, "iterations": self.iterations}

    def draw(self, target: Any, key: Any, *, size: int | None = None) -> NDArray[np.float64]:
        """One draw (d,), or ``size`` independent ones (size, d)."""
        draws = self.run(target, key, size=1 if size is None else size).draws
        return draws[0] if size is None else draws

    def run(self, target: Any, key: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains, each from its own start to its last iterate."""
        from onedraw.samplers import proximal_chain

        geometry = geometry_of(numbers_of_target(target))
        return proximal_chain.run(target, key, geometry=geometry, iterations=self._iterations(geometry), size=size)

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


def start_tolerance(geometry: Geometry) -> float:
    """How far above its minimum U may be at the start: then ‖x₀ − x*‖ ≤ START·√(d/m) on a ball."""
    return 0.5 * START**2 * geometry.dimension if geometry.ball else START_KL


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
    iterations = _checked_iterations(iterations)
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
    while not gamma_after(
        iterations, dimension=dimension, strong_convexity=strong_convexity, smoothness=smoothness, ball=ball, start=start
    ) <= gamma:  # fmt: skip
        iterations += 1 + int(1e-13 * iterations)
    return iterations


def iterations_of(gamma: float, geometry: Geometry) -> int:
    """`iterations_for` with the start of this sampler's chains."""
    return iterations_for(gamma, **_public(geometry))


def _contraction(
    dimension: int, strong_convexity: float, smoothness: float, ball: bool, start: float
) -> tuple[float, int, float]:
    """KL at the start, the half-iterations it has cost already, log(1 + ηm) rounded down."""
    if not (dimension >= 1 and 0.0 < strong_convexity <= smoothness < math.inf and 0.0 <= start < math.inf):
        raise WrongCall(
            "The proximal sampler needs a dimension of at least 1, 0 < m ≤ M < ∞ and a start at a finite distance; "
            f"d = {dimension}, m = {text(strong_convexity)}, M = {text(smoothness)}, {text(start)} came."
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


def _public(geometry: Geometry) -> dict[str, Any]:
    """The arguments of `gamma_after` for a chain of this sampler, its start included."""
    m, d = geometry.strong_convexity, geometry.dimension
    start = START * math.sqrt(d / m) if geometry.ball else math.sqrt(2.0 * m * START_KL)
    return {
        "dimension": d, "strong_convexity": m, "smoothness": geometry.smoothness, "ball": geometry.ball, "start": start,
    }  # fmt: skip


def _checked_iterations(iterations: Any) -> int:
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise WrongCall(
            f"iterations must be a whole number of at least 1, but {iterations!r} came. Without any the start would be "
            "released. Use Proximal(gamma=…) to have the number worked out."
        )
    return iterations
