"""Promises that nothing makes any more, and that ledgers and certificates of earlier versions hold: read, counted, never offered.

A fit with Gaussian noise kept ``CornerDP(terms)``: for all neighbours and **every real ε**

    δ(ε) ≤ Σ times · δ_G(√square; ε − shift),        δ_G(μ; ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).

GaussianDP(μ) is one such term (1, μ², 0), PureDP(ε) another (1, 0, ε). Alone it is worth its profile. Together with others it enters
by its Rényi curve: with E e^{(α−1)L} = ∫ α(α−1)e^{(α−1)x}(1 − e^{x−L})₊ dx and a loss ℓ ~ N(s/2, s),

    D_α ≤ log Σ times·e^{(α−1)(shift + α·square/2)} / (α − 1),        or the same at any larger order: D_α never decreases.

With all times ≥ 1 the bound over α falls in α, so at its lowest value ρ (order β) D_α ≤ ρ ≤ ρα below β and ≤ ρα above: ZCDP(ρ).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidBudget

from . import conversions
from .curves import Curve
from .numbers import SLACK, narrowed, not_negative, positive_integer, root_up, sum_up, text, up
from .promises import Promise, RenyiDP
from .stored import check_names

LARGEST_COUNT = 2**512
"""More corners than this are worth nothing: their count is no number."""


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
        return stronger == self

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

    def __str__(self) -> str:
        return f"corners {_words(self.terms)}"


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
