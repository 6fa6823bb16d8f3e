"""Rényi curves of one draw from a conjugate posterior (Geumlek, Song, Chaudhuri, NIPS 2017, supplement A.1–A.6).

For an exponential family with log-partition function C, (14) of the paper can be written with the Bregman
distance B(η; η_P) = C(η) − C(η_P) − ∇C(η_P)·(η − η_P) ≥ 0, whose linear terms cancel:

    D_λ(P‖Q) = B(η_Q; η_P) + B(η_L; η_P)/(λ−1),        η_L = λη_P + (1−λ)η_Q,

infinite when η_L is not normalizable. Each term is positive, so nothing is lost to cancellation at any n or
λ. In one coordinate, moving up from x to x+s or down from y+s to y (P is where the move ends),

    up(x)   = B(x; x+s)  + B(x+λs; x+s)/(λ−1),
    down(y) = B(y+s; y)  + B(y−(λ−1)s; y)/(λ−1),       finite iff λ < 1 + y/s.

The supremum over neighbours is one closed expression per family; why, is proved in
methods/exponential_family/proof.md and searched for exceptions in the tests. ``weight`` is the r of Diffused and
``prior_factor`` the m of Concentrated sampling: η' = η₀/m + r Σ (S(x_i), 1).

| family | one record moves | supremum of D_λ |
| --- | --- | --- |
| Dirichlet–Categorical, d ≥ 3 | two parameters by r | down(α₁) + up(α₂), the smallest two of α/m |
| Beta–Bernoulli, d = 2 | two parameters by r | down(α₁) + up(α₂ + r(n−1)) |
| Gamma–Poisson | the shape by rB | down(a/m) |
| Gamma–Exponential | the rate by rB | down(b/m) with C(b) = −(a/m + rn) log b |

**How far log Γ rises above its tangent, to the last digits.** For C = log Γ the Bregman distance is

    M(x, v) = log Γ(x+v) − log Γ(x) − v ψ(x)  =  Σ_{k≥0} φ(v/(x+k)),      φ(t) = t − log(1+t) ≥ 0,

from Γ's product formula. Three differences of log Γ near 1e9 lose half of all digits; this sum loses none,
since every term is positive. The first `SHIFT` terms are summed as they stand; the rest is Stirling's series
rearranged so that it, too, has positive terms: with X = x + SHIFT and Z = X + v,

    M(X, v) = Z φ(−v/Z) + ½ φ(v/X) + Σ_j c_j · [Bregman distance of x^(1−2j) from X to Z],

c_j = 1/12, −1/360, …. The remainder after an odd number of terms is minus a completely monotone function
(Alzer, Math. Comp. 66 (1997), Theorem 8), whose Bregman distances are positive: breaking off there rounds
upward. Breaking off costs less than 1e-15 of M, rounding less than 64 units in the last place;
`RELATIVE_ERROR` covers both four times over, and the tests compare with 80 digits.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidBudget

from .curves import Curve
from .numbers import TINY, fraction_down, positive, positive_integer, text

Bregman = Callable[[Array, Array, Array], Array]
"""(step, start, end) ↦ B(end; start), where end = start + step."""


@dataclass(frozen=True)
class _Posterior(Curve):
    """What the families share: the ranges, the limit λ*, and that less weight or more prior is more private."""

    title: ClassVar[str]

    def __post_init__(self) -> None:
        """A weight and a prior factor in (0, 1]."""
        super().__post_init__()
        scaling = {name: positive(words, getattr(self, name)) for name, words in _SCALING.items()}
        if not all(2.0**-100 <= value <= 1.0 for value in scaling.values()):
            weight, prior_factor = scaling.values()
            raise InvalidBudget(
                f"the weight r and the prior factor m lie in (0, 1], not r = {weight!r}, m = {prior_factor!r}. Above 1 "
                "the draw would trust the records more than Bayes' rule does, and near 0 they would not matter."
            )
        self._set(**scaling)

    @property
    def below(self) -> float:
        """λ* = 1 + (nearest parameter)/(its step), rounded down only if no float is equal to it."""
        base, step = self._nearest()
        return fraction_down(1 + base / step)

    @abc.abstractmethod
    def _nearest(self) -> tuple[Fraction, Fraction]:
        """The exact parameter nearest to the edge of normalizability, and how far one record moves it."""

    def at_most(self, other: Curve) -> bool:
        """The divergence increases in r and in m (methods/exponential_family/proof.md), all else equal."""
        if type(self) is not type(other):
            return False
        names = [field.name for field in fields(self)]
        mine, theirs = ({name: getattr(curve, name) for name in names} for curve in (self, other))
        smaller = all(mine.pop(name) <= theirs.pop(name) for name in _SCALING)
        return smaller and mine == theirs

    def __str__(self) -> str:
        """The parameters in which a draw differs from the plain posterior's, and where the curve ends."""
        weight, prior_factor = (float(getattr(self, name)) for name in _SCALING)
        parts = [f"r = {text(weight)}"] if weight < 1.0 else []
        parts += [f"m = {text(prior_factor)}"] if prior_factor < 1.0 else []
        shown = ", ".join([*(parts or ["r = m = 1"]), f"finite below order {text(self.below)}"])
        return f"{self.title} posterior draw, {shown}"


_SCALING = {"weight": "the weight r", "prior_factor": "the prior factor m"}


def _moderate(name: str, value: float) -> float:
    """A positive number for which no intermediate result overflows."""
    number = positive(name, value)
    if not 2.0**-900 <= number <= 2.0**900:
        raise InvalidBudget(f"{name} must be a number of moderate size, not {number!r}. Choose other units.")
    return number


_count = partial(positive_integer, most=2**100)
"""A number of records that can exist."""


@dataclass(frozen=True)
class DirichletPosterior(_Posterior, tag="dirichlet-posterior"):
    """Dirichlet prior, categorical records; with two parameters also any statistic in [0, 1]."""

    title = "Dirichlet"
    prior: tuple[float, ...]
    n: Annotated[int, partial(_count, "n")]
    weight: float = 1.0
    prior_factor: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.prior, list | tuple) or len(self.prior) < 2:
            raise InvalidBudget(f"a Dirichlet prior has two parameters or more, not {self.prior!r}")
        self._set(prior=tuple(_moderate("a prior parameter α", value) for value in self.prior))
        super().__post_init__()

    def _nearest(self) -> tuple[Fraction, Fraction]:
        return Fraction(min(self.prior)) / Fraction(self.prior_factor), Fraction(self.weight)

    def values(self, orders: Array) -> Array:
        smallest, second = (Fraction(value) / Fraction(self.prior_factor) for value in sorted(self.prior)[:2])
        step = Fraction(self.weight)
        if len(self.prior) == 2:
            second += step * (self.n - 1)  # no third category is left for the other records
        moves = _Move(smallest, step, upward=False), _Move(second, step, upward=True)
        return _divergence(log_gamma_excess, moves, orders)


@dataclass(frozen=True)
class GammaPoissonPosterior(_Posterior, tag="gamma-poisson-posterior"):
    """Gamma prior, counts clipped to [0, cap]: a record moves the shape, and the rate's terms are linear.

    Free of n and of the rate: the worst pair has every other record at 0.
    """

    title = "Gamma–Poisson"
    shape: Annotated[float, partial(_moderate, "the prior's shape")]
    cap: Annotated[float, partial(_moderate, "the cap")]
    weight: float = 1.0
    prior_factor: float = 1.0

    def _nearest(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.shape) / Fraction(self.prior_factor), Fraction(self.weight) * Fraction(self.cap)

    def values(self, orders: Array) -> Array:
        return _divergence(log_gamma_excess, (_Move(*self._nearest(), upward=False),), orders)


@dataclass(frozen=True)
class GammaExponentialPosterior(_Posterior, tag="gamma-exponential-posterior"):
    """Gamma prior, durations clipped to [0, cap]: a record moves the rate, and the shape is a/m + rn."""

    title = "Gamma–Exponential"
    shape: Annotated[float, partial(_moderate, "the prior's shape")]
    rate: Annotated[float, partial(_moderate, "the prior's rate")]
    cap: Annotated[float, partial(_moderate, "the cap")]
    n: Annotated[int, partial(_count, "n")]
    weight: float = 1.0
    prior_factor: float = 1.0

    def _nearest(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.rate) / Fraction(self.prior_factor), Fraction(self.weight) * Fraction(self.cap)

    def values(self, orders: Array) -> Array:
        shape = float(Fraction(self.shape) / Fraction(self.prior_factor) + Fraction(self.weight) * self.n)
        return shape * _divergence(excess, (_Move(*self._nearest(), upward=False),), orders)


@dataclass(frozen=True)
class _Move:
    """One coordinate of η_P and η_Q: P is at the upper end if ``upward``, else at the lower."""

    lower: Fraction
    step: Fraction
    upward: bool

    def points(self, beyond: Array) -> tuple[float, float, Array]:
        """η_P, η_Q and, for each λ − 1 in ``beyond``, η_L = η_P + (λ−1)(η_P − η_Q)."""
        lower, upper = float(self.lower), float(self.lower + self.step)
        if self.upward:
            return upper, lower, upper + beyond * float(self.step)
        # lower − (λ−1)·step, rounded down: λ − 1 is exact in floats, only this difference can lose digits.
        rest = np.asarray(float(self.lower) - beyond * float(self.step))
        for index in np.flatnonzero(rest < float(self.lower) / 16):
            exact = self.lower - Fraction(float(beyond[index])) * self.step
            rest[index] = max(fraction_down(exact), 0.0)
        return lower, upper, rest


def _divergence(bregman: Bregman, moves: tuple[_Move, ...], orders: Array) -> Array:
    """Σ over the coordinates that move of B(η_Q; η_P) + B(η_L; η_P)/(λ−1), rounded up."""
    beyond = orders - 1.0
    steps, starts, ends = (np.empty((len(moves), 1 + len(orders))) for _ in range(3))
    for row, move in enumerate(moves):
        step = -float(move.step) if move.upward else float(move.step)
        steps[row, 0], steps[row, 1:] = step, -beyond * step
        starts[row], ends[row, 0], ends[row, 1:] = move.points(beyond)
    with np.errstate(divide="ignore"):  # η_L = 0 gives +∞, which is right
        found = bregman(steps, starts, ends)
    divergence = (found[:, :1] + found[:, 1:] / beyond).sum(axis=0)
    return np.asarray(divergence * (1.0 + RELATIVE_ERROR) + TINY)


# ── log Γ above its tangent ──

SHIFT = 16
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
"""The coefficients of x^-1, x^-3, …, x^-9; odd in number, see above."""
RELATIVE_ERROR = 2.0**-44


def excess(step: Array, start: Array, end: Array) -> Array:
    """φ(step/start) = step/start − log(end/start).

    ``end`` = start + step is passed, not computed: where it is a tiny difference, only the caller can know it.
    """
    ratio, half = step / start, step / (start + end)
    # Near 0 by log(1+t) = 2 artanh(s), s = t/(2+t): the two leading terms, which cancel, are left out.
    square = half * half
    series = np.full_like(square, 1 / 25)
    for power in range(23, 1, -2):
        series *= square
        series += 1 / power
    return np.where(np.abs(half) < 0.2, half * ratio - 2 * half * square * series, ratio - np.log(end / start))


def log_gamma_excess(step: Array, start: Array, end: Array) -> Array:
    """M(start, step) ≥ 0, for end = start + step > 0, relative error below `RELATIVE_ERROR`.

    Arguments broadcast. ``end`` must be known to a few units in the last place (of itself, not of start).
    """
    step, start, end = np.broadcast_arrays(step, start, end)
    shift = np.arange(SHIFT, dtype=np.float64).reshape((SHIFT,) + (1,) * start.ndim)
    peeled = excess(step[np.newaxis], start + shift, end + shift).sum(axis=0)
    far_start, far_end = start + SHIFT, end + SHIFT
    leading = far_end * excess(-step, far_end, far_start) + 0.5 * excess(step, far_start, far_end)
    return np.asarray(peeled + leading + _stirling_excess(step, far_start, far_end), dtype=np.float64)


def _stirling_excess(step: Array, start: Array, end: Array) -> Array:
    """Bregman distance of Σ c_j x^(1−2j), by (1+t)^-q − 1 + qt = t² Σ_{i=1..q} (q−i+1) (1+t)^-i.

    With a = 1/start, b = 1/end the distance of x^-q is (step·a)² P_q, where P_q = a P_{q−1} + H_q and
    H_q = a H_{q−1} + b^q: again sums of positive terms.
    """
    a, b = 1 / start, 1 / end
    power, homogeneous, polynomial = b, b, b
    total = STIRLING[0] * polynomial
    for coefficient in STIRLING[1:]:
        for _ in range(2):
            power = power * b
            homogeneous = a * homogeneous + power
            polynomial = a * polynomial + homogeneous
        total += coefficient * polynomial
    return total * (step * a) ** 2
