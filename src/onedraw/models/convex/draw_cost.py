"""What a draw from a Gibbs posterior costs, in iterations or tries, from public numbers alone: it bounds chains and chooses among samplers.

Let U be m-strongly convex and M-smooth on R^d or on a ball, in some metric, and on a ball with a bounded predictor
c_low ≤ φ'' ≤ c_up, κ = c_up/c_low. Two samplers draw from ∝ exp(−U), or nearly, for every data set:

- the proximal chain (`samplers.proximal`) within total variation γ, after a number of iterations that grows with log(1/γ). Each
  half of an iteration contracts the divergence from the target by 1/(1 + ηm), η = 1/(Md) (Chen, Chewi, Salim, Wibisono,
  arXiv:2202.06386):

      from N(x̂, I/M), R^d only:   KL_k ≤ [(d/2)·log(M/m) + ‖∇U(x̂)‖²/2m] · (1+ηm)^{−2k}
      from a point of K:          KL_k ≤ (‖x₀ − x*‖ + √(d/m))²/(2η) · (1+ηm)^{−(2k−1)},        γ = √(KL_k/2);

- rejection from a Gaussian cut to the ball (`samplers.perfect`), exactly: a try is accepted with probability at least
  κ^{−d/2}·e^{−gap}, the gap that of the point the Gaussian touches U at (proof: samplers/perfect.md).

A try reads the records once, an iteration about four times: the second way is taken while κ^{d/2} ≤ 4·iterations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from onedraw.errors import WrongCall
from onedraw.privacy.numbers import down, text, up

START = 0.01
"""How far from the minimum a chain on a ball may start, in units of √(d/m); it enters the number of iterations."""

START_KL = 0.01
"""The same on R^d: the largest ‖∇U(x̂)‖²/2m."""

GAP = 0.05
"""By how much U may fall, to first order, between the point a rejection starts from and any point of the ball: e^0.05 < 1.1 times
the tries."""

PASSES = 4
"""Over the records in one proximal iteration."""

AS_GOOD_AS_EXACT = 1e-11
"""The γ of the chain that an exact draw is compared with where a plan keeps no reserve for one."""


@dataclass(frozen=True)
class Geometry:
    """The public numbers that decide γ, in the metric of the chain."""

    dimension: int
    strong_convexity: float
    smoothness: float
    ball: bool
    preconditioned: bool = False

    @classmethod
    def of(
        cls, dimension: int, strong_convexity: float, smoothness: float, *, ball: bool, curvature_ratio: float | None
    ) -> Geometry:
        """The better conditioned of the plain and the preconditioned metric, in which M = 1 and m = 1/κ."""
        if ball and curvature_ratio is not None and curvature_ratio * strong_convexity < smoothness:
            return cls(dimension, math.nextafter(1.0 / curvature_ratio, 0.0), 1.0, ball=True, preconditioned=True)
        return cls(dimension, strong_convexity, smoothness, ball=ball)

    @property
    def step(self) -> float:
        """η = 1/(Md)."""
        return 1.0 / (self.smoothness * self.dimension)

    @property
    def start(self) -> float:
        """How far off this sampler's chains may start: ‖x₀ − x*‖ on a ball, ‖∇U(x̂)‖ on R^d, in the metric."""
        m = self.strong_convexity
        return START * math.sqrt(self.dimension / m) if self.ball else math.sqrt(2.0 * m * START_KL)

    def divergence(self, start: float) -> float:
        """KL from the target of N(x̂, I/M) on R^d, (d/2)·log(M/m) + ‖∇U(x̂)‖²/(2m); on a ball of the first y from a point of
        it, (‖x₀ − x*‖ + √(d/m))²/(2η)."""
        m, d = self.strong_convexity, self.dimension
        if self.ball:
            return up((start + math.sqrt(d / m)) ** 2 / (2.0 * self.step))
        return up(0.5 * d * math.log(self.smoothness / m) + start**2 / (2.0 * m))


# ── exact draws by rejection ─────────────────────────────────────────────────────────────────────────────────────


def least_acceptance(curvature_ratio: float, dimension: int, *, gap: float = 0.0) -> float:
    """A try's probability to be accepted is at least κ^{−d/2}·e^{−gap}, for every data set; rounded down, and 0 where it
    underflows."""
    if not (curvature_ratio >= 1.0 and dimension >= 1 and gap >= 0.0):
        raise WrongCall(
            "Tries are bounded for a curvature ratio of at least 1, a dimension of at least 1 and a gap ≥ 0."
        )
    return max(0.0, down(math.exp(-0.5 * dimension * math.log(curvature_ratio) - gap)))


def most_tries(curvature_ratio: float, dimension: int) -> float:
    """κ^{d/2}: tries on average, at most, from the constrained minimum; ∞ where it is no number any more."""
    logarithm = 0.5 * dimension * math.log(curvature_ratio)
    return up(math.exp(logarithm)) if logarithm < 700.0 else math.inf


# ── γ and iterations of the proximal chain ─────────────────────────────────────────────────────────────────────────────────────────


def gamma_after(iterations: int, geometry: Geometry, start: float | None = None) -> float:
    """γ after so many iterations with η = 1/(Md), rounded up; ``start`` is `Geometry.start` unless another is known."""
    divergence, halves, rate = _contraction(geometry, start)
    logarithm = math.log(divergence) - (2 * iterations - halves) * rate
    # An absolute error of 2^-40 in a logarithm of at most some thousands is far above what rounding does.
    return up(math.exp(min(0.0, 0.5 * (logarithm - math.log(2.0)) + 2.0**-40)), absolute=5e-324)


def iterations_of(gamma: float, geometry: Geometry, start: float | None = None) -> int:
    """The least number of iterations with `gamma_after` at most ``gamma``, which lies in (0, 0.5)."""
    divergence, halves, rate = _contraction(geometry, start)
    needed = math.log(divergence) - math.log(2.0) - 2.0 * math.log(gamma)
    iterations = max(1, math.ceil(0.5 * (halves + needed / rate) * (1.0 - 1e-12)))
    while not gamma_after(iterations, geometry, start) <= gamma:
        iterations += 1 + int(1e-13 * iterations)
    return iterations


def tries_worth(gamma: float, geometry: Geometry) -> int:
    """The most tries that an exact draw may take instead of a chain within γ: as many as the chain reads the records."""
    return PASSES * iterations_of(gamma or AS_GOOD_AS_EXACT, geometry)


def _contraction(geometry: Geometry, start: float | None) -> tuple[float, int, float]:
    """KL at the start, the half-iterations it has cost already, log(1 + ηm) rounded down."""
    m, M, d = geometry.strong_convexity, geometry.smoothness, geometry.dimension
    if not (d >= 1 and 0.0 < m <= M < math.inf and (start is None or 0.0 <= start < math.inf)):
        raise WrongCall(
            "The proximal sampler needs a dimension of at least 1, 0 < m ≤ M < ∞ and a start at a finite distance; "
            f"d = {d}, m = {text(m)}, M = {text(M)}, start = {start} were given."
        )
    divergence = geometry.divergence(geometry.start if start is None else start)
    return max(divergence, 1e-300), int(geometry.ball), math.log1p(geometry.step * m) * (1.0 - 2.0**-50)
