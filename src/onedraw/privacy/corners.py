"""Corner polynomials: a profile that is a sum of shifted Gaussian profiles (perturbed_mode.md §1).

A mechanism keeps ``CornerDP(terms)`` if for all neighbours and **every real ε**

    δ(ε) ≤ Σ times · δ_G(√square; ε − shift),        δ_G(μ; ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).

GaussianDP(μ) is one such term (1, μ², 0), PureDP(ε) another (1, 0, ε). Because the statement is about negative ε too,
compositions multiply like polynomials, times by product, squares and shifts by sum, whatever is chosen in view of what came
before; and a Rényi curve follows. The promise of a perturbed mode, whose privacy loss is at most the largest of a few Gaussian
ones: which terms, is in ``perturbed_mode``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidBudget

from . import conversions
from .curves import Curve
from .numbers import SLACK, fraction_up, narrowed, not_negative, positive_integer, root_up, sum_up, text, up
from .promises import Promise, RenyiDP
from .stored import check_names

Polynomial = Mapping[tuple[int, int], int]
"""(square, shift) ↦ times. Squares and shifts are whole multiples of ``_UNIT``, so that sums are exact and equal ones meet."""

_UNIT = Fraction(1, 2**200)

LARGEST_COUNT = 2**512
"""More corners than this (some 300 fits): their sum is no use any more, and the Rényi curve takes over."""

MOST_TERMS = 1024
"""Beyond, squares and shifts are rounded up onto a grid, so that a long ledger stays quick to read."""

_CELLS = {False: (1000, 1), True: (100, 8)}
"""Cells for squares and for shifts, by whether shifts differ: never more than ``MOST_TERMS`` together."""


class Corner(NamedTuple):
    """``times`` Gaussian losses of mean-shift √``square``, each raised by ``shift``."""

    times: int
    square: float
    shift: float


@dataclass(frozen=True)
class CornerDP(Promise):
    """δ(ε) ≤ Σ times·δ_G(√square; ε − shift) for every real ε, in both directions.

    | terms | what it is |
    | --- | --- |
    | all squares 0 | pure: ε = the largest shift |
    | a square above 0 | no ε at δ = 0 |
    """

    terms: Annotated[tuple[Corner, ...], _ordered]

    @property
    def pure_epsilon(self) -> float:
        return math.inf if self.terms[0].square else self.terms[0].shift  # the widest comes first

    @property
    def gaussian_mu(self) -> float:
        if len(self.terms) == 1 and self.terms[0].times == 1 and not self.terms[0].shift:
            return root_up(Fraction(self.terms[0].square))
        return super().gaussian_mu

    @property
    def renyi(self) -> RenyiDP:
        return RenyiDP(CornerCurve(self.terms))

    def divergence(self, order: float) -> float:
        return CornerCurve(self.terms)(order)

    def _delta(self, epsilon: float) -> float:
        return min(profile(self.terms, epsilon), conversions.pure_delta(self.pure_epsilon, epsilon))

    def _epsilon(self, delta: float) -> float:
        """By bisection on the rounded-up profile; δ_G(μ; e) ≤ exp(−(e/μ − μ/2)²/2) says where to stop looking."""
        if self.pure_epsilon < math.inf:
            return conversions.pure_epsilon(self.pure_epsilon, delta)
        if delta == 0.0:
            return math.inf
        if self._delta(0.0) <= delta:
            return 0.0
        log_delta, high = math.log(delta / (2.0 * len(self.terms))), 0.0
        for count, square, shift in self.terms:
            deviations = math.sqrt(2.0 * max(math.log(count) - log_delta, 0.0))
            end = shift + square / 2.0 + math.sqrt(square) * deviations
            high = max(high, up(end, relative=1e-6, absolute=1e-300))
        if not self._delta(high) <= delta:
            return math.inf
        return narrowed(lambda epsilon: self._delta(epsilon) <= delta, true=high, false=0.0, precision=SLACK)[0]

    def _follows_from(self, stronger: Promise) -> bool:
        return any(dominated(_rounded(given), self.terms) for given in polynomials(stronger))

    def __str__(self) -> str:
        return f"δ(ε) ≤ {_words(self.terms)}"


@dataclass(frozen=True)
class CornerCurve(Curve, tag="corners"):
    """D_α ≤ log Σ times·exp((α−1)(shift + α·square/2)) / (α−1), or the same at any larger order: D_α never decreases."""

    terms: Annotated[tuple[Corner, ...], _ordered]

    @property
    def limit(self) -> float:
        return math.inf if self.terms[0].square else self.terms[0].shift

    @property
    def slope(self) -> float:
        """At the order β where the bound is lowest: D_α ≤ bound(β) ≤ bound(β)·α below it; above it bound(α)/α falls."""
        return min(self.limit, float(self._ahead[1][0]))

    def values(self, orders: Array) -> Array:
        grid, smallest_ahead = self._ahead
        ahead = np.append(smallest_ahead, math.inf)[np.searchsorted(grid, orders)]
        return np.asarray(np.minimum(np.minimum(self._bound(orders), ahead), self.limit))

    @cached_property
    def _ahead(self) -> tuple[Array, Array]:
        """A grid of orders, and the smallest bound at each of them or beyond."""
        grid = 1.0 + np.geomspace(1e-4, 1e6, 401)
        return grid, np.minimum.accumulate(self._bound(grid)[::-1])[::-1]

    def _bound(self, orders: Array) -> Array:
        excess = orders - 1.0
        rows = [(math.log(times), square, shift) for times, square, shift in self.terms]
        logs, squares, shifts = np.asarray(rows).T[:, :, None]
        exponents = logs + excess * (shifts + orders * squares / 2.0)
        top = exponents.max(axis=0)
        total = (top + np.log(np.exp(exponents - top).sum(axis=0))) / excess
        return np.asarray(np.nextafter(total * (1.0 + 8.0 * SLACK) + len(self.terms) * 2.0**-50 / excess, math.inf))

    def at_most(self, other: Curve) -> bool:
        return isinstance(other, CornerCurve) and dominated(self.terms, other.terms)

    def __str__(self) -> str:
        return f"corners {_words(self.terms)}"


# ── the profile ────────────────────────────────────────────────────────────────────────────────────────────


def profile(terms: Iterable[Corner], epsilon: float) -> float:
    """Σ times·δ_G(√square; ε − shift), rounded up and at most 1; ε may be any real number."""
    if epsilon == math.inf:
        return 0.0
    parts: list[float] = []
    for count, square, shift in terms:
        # The difference of two floats has the right sign, and is zero only if they are equal.
        rest = epsilon - shift
        mu = up(math.sqrt(square)) if square else 0.0
        single = shifted_delta(mu, math.nextafter(rest, -math.inf) if rest else 0.0)
        if single and count > LARGEST_COUNT:
            return 1.0
        parts.append(up(count * single) if single else 0.0)
    return min(1.0, sum_up(parts))


def shifted_delta(mu: float, epsilon: float) -> float:
    """δ_G(μ; ε) for every real ε and μ ≥ 0, rounded up: δ_G(μ; −ε) = 1 − e^{−ε} + e^{−ε}·δ_G(μ; ε)."""
    opposite = conversions.gaussian_delta(mu, abs(epsilon)) if mu else 0.0
    if epsilon >= 0.0:
        return opposite
    return min(1.0, up(math.exp(epsilon) * opposite - math.expm1(epsilon)))


# ── products ───────────────────────────────────────────────────────────────────────────────────────────────


def composed_corners(parts: Iterable[tuple[Promise, int]]) -> list[CornerDP]:
    """What all parts together promise as corner polynomials; none if no part is one, or a part has none.

    Pure parts may enter as shifts or as Gaussians, and either may be the better: at most two are returned.
    """
    counted = tuple(parts)
    if not any(isinstance(part, CornerDP) for part, _ in counted):
        return []
    choices = [(polynomials(part), times) for part, times in counted]
    if not all(choice for choice, _ in choices):
        return []
    found: list[CornerDP] = []
    for prefer in (0, -1):
        product: Polynomial = {(0, 0): 1}
        for choice, times in choices:
            factor = choice[prefer]
            if sum(product.values()) * sum(factor.values()) ** min(times, 10**4) > LARGEST_COUNT:
                break
            product = _times(product, _power(factor, times))
        else:
            found.append(CornerDP(_rounded(product)))
    return found[:1] if found[:1] == found[1:] else found


def polynomials(promise: Promise) -> list[Polynomial]:
    """The corner polynomials known to follow from a promise; the pure one first, the Gaussian one last."""
    from .composition import Composed  # which itself asks for products

    if isinstance(promise, CornerDP):
        return [_polynomial(*promise.terms)]
    several = promise.counted if isinstance(promise, Composed) and not promise.gamma else ()
    found = [_polynomial(*product.terms) for product in composed_corners(several)]
    if promise.pure_epsilon < math.inf:
        found.append(_polynomial((1, 0.0, promise.pure_epsilon)))
    if promise.gaussian_mu < math.inf:
        found.append(_polynomial((1, Fraction(promise.gaussian_mu) ** 2, 0.0)))
    return found


def _power(base: Polynomial, times: int) -> Polynomial:
    if times == 1:
        return base
    half = _power(base, times // 2)
    return _times(_times(half, half), base) if times % 2 else _times(half, half)


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    total: dict[tuple[int, int], int] = {}
    for (square, shift), count in left.items():
        for (another, more), times in right.items():
            place = square + another, shift + more
            total[place] = total.get(place, 0) + count * times
    return _thinned(total)


def _thinned(polynomial: Polynomial) -> Polynomial:
    """The same if it is short; else with squares and shifts rounded up onto a grid."""
    if len(polynomial) <= MOST_TERMS:
        return polynomial
    squares, shifts = ([place[axis] for place in polynomial] for axis in (0, 1))
    lowest, spread = min(shifts), max(shifts) - min(shifts)
    fine, coarse = _CELLS[spread > 0]
    square_step, shift_step = max(1, -(-max(squares) // fine)), max(1, -(-spread // coarse))
    found: dict[tuple[int, int], int] = {}
    for (square, shift), count in polynomial.items():
        place = -(-square // square_step) * square_step, lowest - (lowest - shift) // shift_step * shift_step
        found[place] = found.get(place, 0) + count
    return found


def _polynomial(*terms: tuple[int, Fraction | float, Fraction | float]) -> Polynomial:
    units = ((count, *(math.ceil(Fraction(value) / _UNIT) for value in place)) for count, *place in terms)
    return {(square, shift): count for count, square, shift in units}


def _rounded(polynomial: Polynomial) -> tuple[Corner, ...]:
    return _ordered([(count, *(fraction_up(units * _UNIT) for units in place)) for place, count in polynomial.items()])


def dominated(smaller: Iterable[Corner], larger: Iterable[Corner]) -> bool:
    """Whether every corner on the left has one of its own on the right with no smaller square and no smaller shift.

    Largest squares first; of the corners wide enough the one with the least sufficient shift is used up.
    """
    waiting = sorted(larger, key=lambda corner: corner.square, reverse=True)
    room: dict[float, int] = {}
    for count, square, shift in sorted(smaller, key=lambda corner: corner.square, reverse=True):
        while waiting and waiting[0].square >= square:
            corner = waiting.pop(0)
            room[corner.shift] = room.get(corner.shift, 0) + corner.times
        needed = count
        for place in sorted(place for place in room if place >= shift):
            used = min(needed, room[place])
            room[place] -= used
            needed -= used
        if needed:
            return False
    return True


# ── values ─────────────────────────────────────────────────────────────────────────────────────────────────


def _ordered(stored: Any) -> tuple[Corner, ...]:
    """Corners as they come from JSON or from a caller: equal ones counted together, the widest first.

    Each number is refused unless a promise can be made of it.
    """
    if not isinstance(stored, list | tuple):
        raise InvalidBudget(f"the terms of a corner polynomial are a list, not a {type(stored).__name__}")
    counts: dict[tuple[float, float], int] = {}
    for term in stored:
        if isinstance(term, list | tuple) and len(term) == 3:
            count, square, shift = term
        else:
            check_names(term, Corner._fields, of="corner", refuses=InvalidBudget)
            count, square, shift = (term[name] for name in Corner._fields)
        place = not_negative("the square of a corner", square), not_negative("the shift of a corner", shift)
        counts[place] = counts.get(place, 0) + positive_integer("how often a corner counts", count)
    if not any(square or shift for square, shift in counts):
        raise InvalidBudget(
            "a corner polynomial has at least one corner with a square or a shift above 0; without one the release would "
            "not depend on the data, or nothing would be promised"
        )
    return tuple(Corner(counts[place], *place) for place in sorted(counts, reverse=True))


def _words(terms: tuple[Corner, ...]) -> str:
    if len(terms) > 6:
        corners = sum(term.times for term in terms)
        return f"a sum of {corners} shifted Gaussian profiles, the largest μ² = {text(terms[0].square)}"
    pieces = []
    for count, square, shift in terms:
        times, less = "" if count == 1 else f"{count}·", f" − {text(shift)}" if shift else ""
        pieces.append(f"{times}δ_G(√{text(square)}; ε{less})")
    return " + ".join(pieces)
