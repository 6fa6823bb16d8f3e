"""Rényi curves: for each order α > 1 an upper bound on D_α between neighbouring releases.

A curve is a frozen value with a family name and parameters, so that it can be written on a certificate and
read back. It is callable on one order or on an array of them, is never NaN, and is +∞ at orders from
``below`` on (λ* in methods/exponential_family/proof.md). Values are rounded up. Curves compose by addition, under adaptive
choice too (Mironov, arXiv:1702.07476, Proposition 1).

Two facts about the true divergence are used throughout: D_α never decreases in α, and D_α → the largest
log-ratio as α → ∞.
"""

from __future__ import annotations

import abc
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, overload

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidBudget

from . import conversions
from .numbers import SLACK, positive, positive_integer, strictly_above_one, text, weighted_sum_up
from .stored import Stored


class Curve(Stored, key="family", noun="curve", refuses=InvalidBudget):
    """An upper bound on D_α for every order α > 1, as a value.

    A family is a frozen dataclass whose fields are its parameters, named by its tag; its bounds are in ``values``.

    **Guarantee.** ``curve(α)`` ≥ D_α(M(D) ‖ M(D')) for all neighbours, floating-point error included.

    | order | value |
    | --- | --- |
    | ≤ 1 or NaN | ``InvalidBudget`` |
    | in (1, below) | finite or +∞, never NaN |
    | ≥ below, or ∞ | +∞ (see ``limit`` for α → ∞) |
    """

    @property
    def below(self) -> float:
        """λ*: the curve is finite only at orders strictly below it."""
        return math.inf

    @property
    def limit(self) -> float:
        """A bound on D_α for *every* order, so that PureDP(limit) is implied; +∞ where there is none."""
        return math.inf

    @property
    def slope(self) -> float:
        """The smallest proven ρ with curve(α) ≤ ρα at every order, so that ZCDP(ρ) is implied; +∞ if none."""
        return self.limit

    @abc.abstractmethod
    def values(self, orders: Array) -> Array:
        """Upper bounds at orders already known to lie in (1, below)."""

    @overload
    def __call__(self, order: float) -> float: ...
    @overload
    def __call__(self, order: Array) -> Array: ...
    def __call__(self, order: float | Array) -> float | Array:
        orders = np.asarray(order, dtype=np.float64)
        if not bool(np.all(orders > 1.0)):
            raise InvalidBudget("a Rényi order must be a number above 1, where D_α is a promise; one given is not")
        flat = np.atleast_1d(orders)
        bounds = np.full(flat.shape, math.inf)
        inside = np.isfinite(flat) & (flat < self.below)
        if bool(inside.any()):
            found = np.asarray(self.values(flat[inside]), dtype=np.float64)
            # Fail closed: whatever went wrong numerically must not look like a small divergence.
            bounds[inside] = np.where(np.isnan(found), math.inf, np.maximum(found, 0.0))
        return float(bounds[0]) if orders.ndim == 0 else bounds.reshape(orders.shape)

    def at_most(self, other: Curve) -> bool:
        """What this family knows: True only when self(α) ≤ other(α) is proven wherever ``other`` is finite.

        Callers use ``curve_at_most``, which adds what holds for all families.
        """
        return self == other


@dataclass(frozen=True)
class LinearCurve(Curve, tag="linear"):
    """D_α ≤ ρα: zero-concentrated DP as a curve (arXiv:1605.02065)."""

    rho: Annotated[float, partial(positive, "ρ")]

    @property
    def slope(self) -> float:
        return self.rho

    def values(self, orders: Array) -> Array:
        return _up(self.rho * orders, relative=0.0)

    def __str__(self) -> str:
        return f"D_α ≤ {text(self.rho)}·α"


@dataclass(frozen=True)
class AtOrderCurve(Curve, tag="at-order"):
    """One pair (λ, ε): D_α ≤ ε at every order up to λ, because D_α never decreases, and nothing above λ."""

    order: Annotated[float, partial(strictly_above_one, "the order λ")]
    epsilon: Annotated[float, partial(positive, "ε")]

    @property
    def below(self) -> float:
        return math.nextafter(self.order, math.inf)

    def values(self, orders: Array) -> Array:
        return np.full(orders.shape, self.epsilon)

    def at_most(self, other: Curve) -> bool:
        return isinstance(other, AtOrderCurve) and self.order >= other.order and self.epsilon <= other.epsilon

    def __str__(self) -> str:
        return f"D_{text(self.order)} ≤ {text(self.epsilon)}"


@dataclass(frozen=True)
class _OfEpsilon(Curve):
    """A curve whose one number is the ε it tends to."""

    epsilon: Annotated[float, partial(positive, "ε")]

    @property
    def limit(self) -> float:
        return self.epsilon


class PureCurve(_OfEpsilon, tag="pure"):
    """The largest D_α that PureDP(ε) allows: randomised response's, of which every other is a post-processing
    (Kairouz, Oh, Viswanath, arXiv:1311.0776)."""

    @property
    def slope(self) -> float:
        return conversions.pure_to_zcdp(self.epsilon)

    def values(self, orders: Array) -> Array:
        return conversions.pure_renyi_divergence(self.epsilon, orders)

    def at_most(self, other: Curve) -> bool:
        return isinstance(other, PureCurve) and self.epsilon <= other.epsilon

    def __str__(self) -> str:
        return f"randomised response at ε = {text(self.epsilon)}"


class BoundedRangeCurve(_OfEpsilon, tag="bounded-range"):
    """The largest D_α that BoundedRange(ε) allows: that of the worst generalised randomised response."""

    @property
    def slope(self) -> float:
        return conversions.bounded_range_to_zcdp(self.epsilon)

    def values(self, orders: Array) -> Array:
        return conversions.bounded_range_renyi_divergence(self.epsilon, orders)

    def at_most(self, other: Curve) -> bool:
        # Range ε implies log-ratio ε, whose curve is PureCurve(ε); the range curve grows with ε.
        return isinstance(other, BoundedRangeCurve | PureCurve) and self.epsilon <= other.epsilon

    def __str__(self) -> str:
        return f"bounded range ε = {text(self.epsilon)}"


class _Several(Curve):
    """Curves added up, each so many times."""

    _parts: tuple[tuple[Curve, int], ...]

    @property
    def below(self) -> float:
        return min(curve.below for curve, _ in self._parts)

    @property
    def limit(self) -> float:
        return weighted_sum_up((curve.limit, times) for curve, times in self._parts)

    @property
    def slope(self) -> float:
        return weighted_sum_up((curve.slope, times) for curve, times in self._parts)

    def values(self, orders: Array) -> Array:
        total = np.zeros(orders.shape)
        for curve, times in self._parts:
            total = total + times * curve(orders)
        return _up(total, relative=SLACK * len(self._parts))

    def _set_parts(self, *parts: tuple[Curve, int]) -> None:
        if not all(isinstance(curve, Curve) for curve, _ in parts):
            raise InvalidBudget("a curve is made of curves; see onedraw.privacy for the named ones")
        self._set(_parts=parts)


@dataclass(frozen=True)
class RepeatedCurve(_Several, tag="repeated"):
    """The same curve ``times`` over."""

    curve: Curve
    times: int

    def __post_init__(self) -> None:
        self._set(times=positive_integer("times", self.times))
        self._set_parts((self.curve, self.times))

    def __str__(self) -> str:
        return f"{self.times} × [{self.curve}]"


@dataclass(frozen=True)
class SumCurve(_Several, tag="sum"):
    """The sum of several curves: what a composition promises."""

    curves: tuple[Curve, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.curves, list | tuple) or not self.curves:
            raise InvalidBudget("a sum of no curves promises nothing; give at least one curve")
        self._set(curves=tuple(self.curves))
        self._set_parts(*((curve, 1) for curve in self.curves))

    def __str__(self) -> str:
        return " + ".join(f"[{curve}]" for curve in self.curves)


def add_curves(curves: Iterable[tuple[Curve, int]]) -> Curve:
    """Σ curve·times as one curve: sums are flattened, equal curves counted, straight lines added exactly."""
    terms = _terms(curves)
    lines = [(term.rho, count) for term, count in terms.items() if isinstance(term, LinearCurve)]
    others = [(term, count) for term, count in terms.items() if not isinstance(term, LinearCurve)]
    parts: list[Curve] = [LinearCurve(weighted_sum_up(lines))] if lines else []
    parts += [RepeatedCurve(term, count) if count > 1 else term for term, count in others]
    return parts[0] if len(parts) == 1 else SumCurve(tuple(parts))


def _terms(curves: Iterable[tuple[Curve, int]]) -> Counter[Curve]:
    """As a multiset of curves that are neither sums nor repetitions."""
    total: Counter[Curve] = Counter()
    for curve, times in curves:
        inside = _terms(curve._parts) if isinstance(curve, _Several) else {curve: 1}
        total.update({term: count * times for term, count in inside.items()})
    return total


def curve_at_most(smaller: Curve, larger: Curve) -> bool:
    """True only when it is proven that smaller(α) ≤ larger(α) at every order where ``larger`` is finite.

    Sums are compared term by term: equal terms cancel, straight lines are added up, and each term left over
    needs a larger one of its own or room under the line.
    """
    if _single_at_most(smaller, larger):
        return True
    left, right = _terms([(smaller, 1)]), _terms([(larger, 1)])
    left, right = left - right, right - left
    room = Fraction(0)  # the slope left over by the straight lines of both sides, exactly
    for sign, terms in ((1, right), (-1, left)):
        room += sum(sign * Fraction(term.rho) * n for term, n in terms.items() if isinstance(term, LinearCurve))
    if room < 0:
        return False
    for term, count in left.items():
        if isinstance(term, LinearCurve):
            continue
        for bound in [bound for bound in right if _single_at_most(term, bound)]:
            used = min(count, right[bound])
            right[bound] -= used
            count -= used
        if count and term.slope == math.inf:
            return False
        room -= Fraction(term.slope) * count if count else 0
    return room >= 0


def _single_at_most(smaller: Curve, larger: Curve) -> bool:
    if isinstance(larger, AtOrderCurve) and smaller(larger.order) <= larger.epsilon:
        return True  # a divergence never decreases in its order
    return smaller == larger or smaller.at_most(larger)


def _up(values: Array, *, relative: float = SLACK) -> Array:
    return np.asarray(np.nextafter(values * (1.0 + relative), math.inf))
