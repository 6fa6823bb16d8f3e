"""What the minimum of a randomly tilted convex loss promises: its corners (perturbed_mode.md).

    θ* = argmin Σ a(z_i) φ(z_iᵀθ) + (Λ/2)‖θ‖² + bᵀθ,        a(z) = min(1, r²/‖z‖²),  b ~ N(0, σ²I)

Replacing a record moves the gradient by a vector of a fixed parallelogram and the volume by at most e^κ, κ = log(1 + Mr²/Λ), so
the privacy loss is at most the largest of a few Gaussian losses, one for each corner. ``Corners`` holds them in units of r²/σ²
for one kind of loss; ``slopes``, ``count_slopes``, ``softmax``, ``one_against_rest``, ``relieved_slopes`` are the kinds.
How much noise a budget asks for is found by `mechanisms.perturbed_mode`. Nothing here sees data.

| loss | slopes | L | M | corners |
| --- | --- | --- | --- | --- |
| exp-linear | [−½, 0] | ½ | ½ | ``slopes(0.5, 0, …)`` |
| logistic | [−1, 0] | 1 | ¼ | ``slopes(1, 0, …)``, or relieved: c = r²/Λ |
| huberised hinge over h | [−1, 0] | 1 | 1/h | ``slopes(1, 0, …)`` |
| Huber at t | [−t, t] | t | 1 | ``slopes(t, t, …)`` |
| log-cosh at t | [−t, t] | t | 1 | relieved: c = 2r²/Λ, or any smaller c with κ₀ = ``relieved_base(…)`` |
| quantile τ over h | [−τ, 1−τ] | max(τ, 1−τ) | 1/2h | ``slopes(τ, 1−τ, …)`` |
| counts up to Y | [−y, Y−y], y the record's own | Y | ``count_curvature(Y)`` | ``count_slopes(Y, …)`` |
| K classes, softmax | p − e_y | √2 | ½ | ``softmax(K, …)`` |
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from scipy import optimize, special

from onedraw.errors import InvalidBudget

from .corners import Corner, CornerDP
from .numbers import fraction_up, not_negative, positive, positive_integer, up
from .promises import PureDP

# ── volume ─────────────────────────────────────────────────────────────────────────────────────────────────


def volume_cost(*, curvature: float, radius_squared: float, ridge: float) -> float:
    """κ = log(1 + Mr²/Λ): how much one record can change the volume, rounded up."""
    return up(math.log1p(positive("M", curvature) * positive("r²", radius_squared) / positive("Λ", ridge)))


def ridge_for(kappa: float, *, curvature: float, radius_squared: float) -> float:
    """The smallest Λ whose volume costs at most κ, rounded up."""
    return up(positive("M", curvature) * positive("r²", radius_squared) / math.expm1(positive("κ", kappa)))


def softmax_volume_cost(classes: int, *, radius_squared: float, ridge: float) -> float:
    """κ = (K−1)·log(1 + r²/(KΛ)), rounded up: a Hessian of rank K−1 and trace at most (1 − 1/K)r²."""
    others = _classes(classes) - 1
    return up(others * math.log1p(positive("r²", radius_squared) / (classes * positive("Λ", ridge))))


def softmax_ridge_for(kappa: float, classes: int, *, radius_squared: float) -> float:
    """The smallest Λ whose softmax volume costs at most κ, rounded up."""
    others = _classes(classes) - 1
    return up(positive("r²", radius_squared) / (classes * math.expm1(positive("κ", kappa) / others)))


def count_curvature(largest: int) -> float:
    """M = sup over λ of λ·P(Poisson(λ) ≤ Y−1), rounded up: how much a record's slope can bend. One hill."""
    bound = positive_integer("the largest count", largest)
    found = optimize.minimize_scalar(
        lambda rate: -rate * float(special.gammaincc(bound, rate)), bounds=(0.0, 2.0 * bound + 2.0), method="bounded"
    )
    return up(-float(found.fun), relative=1e-7)


# ── corners ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Corners:
    """The corners of one kind of loss: squares in units of r²/σ², shifts as they are.

    ``noises`` is the number of modes with noise of their own. To Gaussian noise they are one long vector; noise ∝ e^{−η‖b‖}
    adds up their norms, Σ‖v_k‖ ≤ √noises·‖v‖.
    """

    terms: tuple[Corner, ...]
    noises: int = 1

    @property
    def widest(self) -> float:
        """The largest square: (‖v‖/r)² of the farthest corner."""
        return max(term.square for term in self.terms)

    def promise(self, ratio: float) -> CornerDP:
        """What a mode with Gaussian noise promises, ``ratio`` = r/σ."""
        scale = Fraction(positive("r/σ", ratio)) ** 2
        terms = (Corner(count, fraction_up(Fraction(square) * scale), shift) for count, square, shift in self.terms)
        return CornerDP(tuple(terms))

    def pure_promise(self, ratio: float) -> PureDP:
        """What a mode with noise of density ∝ e^{−η‖b‖} promises, ``ratio`` = ηr: at most the worst corner's η‖v‖ + shift."""
        scale = positive("ηr", ratio)
        return PureDP(max(up(scale * math.sqrt(self.noises * term.square) + term.shift) for term in self.terms))


@lru_cache(maxsize=256, typed=True)  # a calibration asks for the same ones at every step
def slopes(low: float, high: float, kappa: float, *, records: int = 1) -> Corners:
    """Slopes of every record in [−low, high]; a person has ``records`` of them (Theorems 1 and 3).

    With h ≥ l the two ends over their sum w: squares 4h², 1, h, l times w². One-sided (l = 0): 4, 1, 1, and the corner 0
    drops out; two-sided (h = l = ½): 4, 4, 2, 2 times L². Several records: 2k slopes, each at one end or the other.
    """
    ends = sorted((not_negative("low", low), not_negative("high", high)))
    width, shift = Fraction(ends[0]) + Fraction(ends[1]), _total_shift(kappa, records)
    if not width:
        raise InvalidBudget("slopes in [0, 0] mean a loss that never changes: give the largest slope of one record")
    near, far = Fraction(ends[0]) / width, Fraction(ends[1]) / width
    if records == 1:
        squares = [(1, 4 * far**2), (1, Fraction(1)), (1, far), (1, near)]
    else:
        reaches = [(math.comb(2 * records, j), j * far + (2 * records - j) * near) for j in range(2 * records + 1)]
        squares = [(count, reach**2) for count, reach in reaches]
    return _corners_of((count, square * width**2, shift) for count, square in squares if square)


@lru_cache(maxsize=256, typed=True)  # a calibration asks for the same ones at every step
def count_slopes(largest: float, kappa: float, *, records: int = 1) -> Corners:
    """Slopes in an interval of width Y that contains 0 and depends on the record (Theorem 2): squares 4, 5/4, 1, ½ times Y²."""
    square, shift = Fraction(positive("Y", largest)) ** 2, _total_shift(kappa, records)
    if records == 1:
        parts = [(1, Fraction(4)), (1, Fraction(5, 4)), (1, Fraction(1)), (1, Fraction(1, 2))]
    else:
        parts = [(4**records, Fraction(4 * records**2))]
    return _corners_of((count, part * square, shift) for count, part in parts)


def relieved_slopes(low: float, high: float, relief: float, *, base: float = 0.0) -> Corners:
    """Losses that bend only where they are not steep: log(1 + φ''r²/Λ) ≤ κ₀ + c(1 − |φ'|/L), κ₀ = base, c = relief (Theorem 4).

    log-cosh: c = 2r²/Λ; logistic: c = r²/Λ; both with κ₀ = 0, or a smaller c and `relieved_base`. The farthest corners pay κ₀ alone.
    """
    steep, flat = not_negative("base", base), up(not_negative("base", base) + positive("the relief c", relief))
    ends = sorted((not_negative("low", low), not_negative("high", high)))
    square = Fraction(positive("the largest slope", ends[1])) ** 2
    if ends[0] == 0.0:
        parts = [(1, 4, steep), (1, 1, steep), (1, 1, flat), (1, 0, flat)]
    elif ends[0] == ends[1]:
        parts = [(2, 4, steep), (2, 2, steep), (2, 1, flat)]
    else:
        raise InvalidBudget("relief is proven for slopes in [−L, 0] and [−L, L]; use slopes(…) for others")
    return _corners_of((count, part * square, shift) for count, part, shift in parts)


def relieved_base(relief: float, *, bend: float, least: float) -> float:
    """κ₀ for a chosen c where φ''r²/Λ = B(1 − ρ)(s + ρ), ρ = |φ'|/L: the largest log(1 + B(1 − ρ)(s + ρ)) − c(1 − ρ), rounded up.

    log-cosh: B = r²/Λ, s = 1; logistic: the same B, s = 0; ``bend`` = B, ``least`` = s. The function is concave in ρ, so any of its tangents
    bounds it: the one at the root of its slope, to whatever digits that was found.
    """
    c, B, s = not_negative("the relief c", relief), positive("B", bend), not_negative("s", least)
    if c >= (1.0 + s) * B:  # log(1 + x) ≤ x
        return 0.0
    linear, rest = B * (2.0 - c * (1.0 - s)), c * (1.0 + B * s) + B * (1.0 - s)
    root = math.sqrt(linear**2 + 4.0 * c * B * rest)
    rho = min(2.0 * rest / (linear + root) if linear > 0.0 else (root - linear) / (2.0 * c * B), 1.0)
    volume = B * (1.0 - rho) * (s + rho)
    tangent = c + B * (1.0 - s - 2.0 * rho) / (1.0 + volume)
    above = tangent * (1.0 - rho) if tangent > 0.0 else -tangent * rho
    return up(max(math.log1p(volume) - c * (1.0 - rho) + above, 0.0) + 1e-14 * (1.0 + c))


def softmax(classes: int, kappa: float, *, records: int = 1) -> Corners:
    """Softmax over K classes, one coefficient vector each; κ is the whole record's (Theorem 5)."""
    others, shift = _classes(classes) - 1, _total_shift(kappa, records)
    if records == 1:
        parts = [(others, 8), (others * (others - 1), 6), (2 * others, 2)]
    else:
        parts = [(math.comb(2 * records, j) * others**j, 2 * j**2) for j in range(1, 2 * records + 1)]
    return _corners_of((count, Fraction(square), shift) for count, square in parts if count)


def one_against_rest(classes: int, slope: float, kappa: float) -> Corners:
    """K one-sided modes with noise of their own; κ is one mode's: Kκ and (2x + x⁴)^K (Theorem 5)."""
    modes, square = _classes(classes), Fraction(positive("L", slope)) ** 2
    shift = fraction_up(Fraction(not_negative("κ", kappa)) * modes)
    parts = ((math.comb(modes, j) * 2**j, j + 4 * (modes - j)) for j in range(modes + 1))
    return _corners_of(((count, part * square, shift) for count, part in parts), noises=modes)


def _corners_of(parts: Iterable[tuple[int, Fraction, float]], *, noises: int = 1) -> Corners:
    terms = tuple(Corner(count, fraction_up(Fraction(square)), shift) for count, square, shift in parts)
    return Corners(CornerDP(terms).terms, noises)


def _total_shift(kappa: float, records: int) -> float:
    return fraction_up(Fraction(not_negative("κ", kappa)) * positive_integer("records", records))


def _classes(value: int) -> int:
    if positive_integer("classes", value) < 2:
        raise InvalidBudget("a classification has at least two classes")
    return int(value)
