"""The six promises as frozen values: pure, bounded range, zero-concentrated, Gaussian, Rényi and (ε, δ) (promises.md).

The names ``epsilon`` and ``delta`` are questions, asked of every promise (``promise``); the numbers one was made with are
``stated_epsilon``, ``stated_delta``, ``mu``, ``rho``, ``curve``, ``below``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, ClassVar

from onedraw.errors import InvalidBudget, PromiseRefused

from . import conversions
from .curves import AtOrderCurve, BoundedRangeCurve, Curve, LinearCurve, PureCurve, curve_at_most
from .numbers import down, positive, probability, real, sum_up, text, text_up, up
from .promise import Promise as Promise
from .stored import frozen_value, stored_as


class _OneNumber(Promise):
    """A promise of one number: it follows from what is worth no more in the ``currency`` of that number."""

    currency: ClassVar[str]
    words: ClassVar[str]

    def _follows_from(self, stronger: Promise) -> bool:
        return float(getattr(stronger, self.currency)) <= self.number

    def __str__(self) -> str:
        return self.words.format(text_up(self.number))


@frozen_value
class _OfEpsilon(_OneNumber):
    """A promise whose one number is an ε."""

    stated_epsilon: float = stored_as("epsilon")

    states = "stated_epsilon"
    pure_epsilon = Promise.number

    def __init__(self, epsilon: float) -> None:
        self._set(stated_epsilon=positive("ε", epsilon))


@frozen_value
class PureDP(_OfEpsilon):
    """The log-ratio of densities is at most ε."""

    currency, words, quoted_delta = "pure_epsilon", "ε = {}", 0.0

    @property
    def _allowed(self) -> Mapping[Callable[[float], Promise], float]:
        return {PureDP: self.stated_epsilon, BoundedRange: self.stated_epsilon}

    @property
    def renyi(self) -> RenyiDP:
        return RenyiDP(PureCurve(self.stated_epsilon))

    def divergence(self, order: float) -> float:
        return conversions.pure_renyi_at(self.stated_epsilon, order)

    def _epsilon(self, delta: float) -> float:
        return conversions.pure_epsilon(self.stated_epsilon, delta)

    def _delta(self, epsilon: float) -> float:
        return conversions.pure_delta(self.stated_epsilon, epsilon)


@frozen_value
class BoundedRange(_OfEpsilon):
    """The largest minus the smallest log-ratio is at most ε: every exponential mechanism's promise.

    A log-ratio of densities takes both signs, so its size is at most its range: the same ε is pure.
    """

    currency, words = "range_epsilon", "bounded range ε = {}"

    @property
    def _allowed(self) -> Mapping[Callable[[float], Promise], float]:
        return {BoundedRange: self.stated_epsilon, PureDP: self.stated_epsilon / 2.0}

    @property
    def range_epsilon(self) -> float:
        return self.stated_epsilon

    @property
    def renyi(self) -> RenyiDP:
        return RenyiDP(BoundedRangeCurve(self.stated_epsilon))

    def _epsilon(self, delta: float) -> float:
        return conversions.bounded_range_epsilon(self.stated_epsilon, delta)

    def _delta(self, epsilon: float) -> float:
        return conversions.bounded_range_delta(self.stated_epsilon, epsilon)


@dataclass(frozen=True)
class ZCDP(_OneNumber):
    """D_α ≤ ρα for every order α > 1."""

    states, currency, words = "rho", "zcdp_rho", "zCDP with ρ = {}"
    rho: Annotated[float, partial(positive, "ρ")]

    @property
    def renyi(self) -> RenyiDP:
        return RenyiDP(LinearCurve(self.rho))

    def _epsilon(self, delta: float) -> float:
        return self.renyi._epsilon(delta)

    def _delta(self, epsilon: float) -> float:
        return self.renyi._delta(epsilon)


@dataclass(frozen=True)
class GaussianDP(_OneNumber):
    """Neighbours are no easier to tell apart than N(0, 1) from N(μ, 1)."""

    states, currency, words = "mu", "gaussian_mu", "Gaussian DP with μ = {}"
    gaussian_mu = Promise.number
    mu: Annotated[float, partial(positive, "μ")]

    @property
    def renyi(self) -> RenyiDP:
        return RenyiDP(LinearCurve(conversions.square_up(self.mu, 2)))  # of N(0,1) and N(μ,1), exactly

    def _epsilon(self, delta: float) -> float:
        return conversions.gaussian_epsilon(self.mu, delta)

    def _delta(self, epsilon: float) -> float:
        return conversions.gaussian_delta(self.mu, epsilon)


@dataclass(frozen=True)
class RenyiDP(Promise):
    """D_α ≤ curve(α) at every order α below both ``below`` and the curve's own limit."""

    curve: Curve
    below: float = math.inf

    def __post_init__(self) -> None:
        if not isinstance(self.curve, Curve):
            raise InvalidBudget(
                f"RenyiDP is made of a named curve, which a certificate can show, not a {type(self.curve).__name__}. "
                "Use RenyiDP.at(order, epsilon) or a Curve."
            )
        below = real("below", self.below)
        if not below > 1.0:
            raise InvalidBudget(f"below must be above 1, not {below!r}: no order would be left")
        self._set(below=below)

    @classmethod
    def at(cls, order: float, epsilon: float) -> RenyiDP:
        """One pair: D_α ≤ ε at every order α ≤ λ."""
        return cls(AtOrderCurve(order, epsilon))

    @property
    def number(self) -> float:
        return self.curve.epsilon if isinstance(self.curve, AtOrderCurve) else 0.0

    @property
    def limit(self) -> float:
        """λ*: the promise says something at orders strictly below it."""
        return min(self.below, self.curve.below)

    def at_order(self, order: float) -> float:
        """The bound on D_α at one order; +∞ at λ* and beyond."""
        return self.curve(order) if order < self.limit else math.inf

    @property
    def pure_epsilon(self) -> float:
        return self.curve.limit if self.limit == math.inf else math.inf

    @property
    def renyi(self) -> RenyiDP:
        return self

    def best_order(self, delta: float) -> float:
        """The order at which the conversion to (ε, δ) is smallest."""
        return conversions.renyi_epsilon(self.curve, probability("δ", delta), below=self.limit).order

    def _epsilon(self, delta: float) -> float:
        converted = conversions.renyi_epsilon(self.curve, delta, below=self.limit).value
        return min(converted, conversions.pure_epsilon(self.pure_epsilon, delta))

    def _delta(self, epsilon: float) -> float:
        converted = conversions.renyi_delta(self.curve, epsilon, below=self.limit).value
        return min(converted, conversions.pure_delta(self.pure_epsilon, epsilon))

    def _follows_from(self, stronger: Promise) -> bool:
        given = stronger.renyi
        if given is None:
            return False
        if given.limit >= self.limit and curve_at_most(given.curve, self.curve):
            return True
        match self.curve:
            case AtOrderCurve(order=order, epsilon=epsilon):
                # D_α never decreases in α, so the largest order promised is enough.
                largest, slope = min(order, self.below), given.curve.slope
                on_line = largest < given.limit and slope < math.inf  # decided without rounding
                exactly = on_line and Fraction(slope) * Fraction(largest) <= epsilon
                return exactly or given.at_order(largest) <= epsilon
            case LinearCurve(rho=rho):
                # Below a finite order, D_α ≤ D_below ≤ ρ ≤ ρα.
                known = given.at_order(self.below) if self.below < math.inf else math.inf
                return min(stronger.zcdp_rho, known) <= rho
            case PureCurve(epsilon=epsilon):
                return stronger.pure_epsilon <= epsilon
            case BoundedRangeCurve(epsilon=epsilon):
                return stronger.range_epsilon <= epsilon
        return False

    def __str__(self) -> str:
        if isinstance(self.curve, AtOrderCurve) and self.below == math.inf:
            return f"(λ = {text(self.curve.order)}, ε = {text(self.curve.epsilon)}) Rényi DP"
        end = "" if self.limit == math.inf else f", for orders below {text(self.limit)}"
        return f"Rényi DP, {self.curve}{end}"


@frozen_value
class ApproxDP(Promise):
    """(ε, δ): the log-ratio is at most ε except on events of probability δ."""

    stated_epsilon: float = stored_as("epsilon")
    stated_delta: float = stored_as("delta")
    states = "stated_epsilon"

    def __init__(self, epsilon: float, delta: float) -> None:
        epsilon, delta = positive("ε", epsilon), probability("δ", delta)
        self._set(stated_epsilon=epsilon, stated_delta=delta, quoted_delta=delta, failure=delta)

    @property
    def _allowed(self) -> Mapping[Callable[[float], Promise], float]:
        mu = conversions.gaussian_mu(self.stated_epsilon, self.stated_delta)
        known: dict[Callable[[float], Promise], float] = {PureDP: self.stated_epsilon, GaussianDP: mu}
        return known if self.stated_delta else known | {BoundedRange: self.stated_epsilon}

    def total_variation(self, share: float = 1.0) -> float:
        if self.stated_epsilon >= 700.0:  # e^ε is beyond what can be computed
            return 0.0
        return max(0.0, down(share * self.stated_delta / (1.0 + math.exp(self.stated_epsilon))))

    def less(self, gamma: float) -> Promise | None:
        if not gamma:
            return self
        cost = conversions.total_variation_delta(self.stated_epsilon, gamma)
        left = math.nextafter(self.stated_delta - cost, -math.inf)
        return ApproxDP(self.stated_epsilon, left) if left > 0.0 else None

    @property
    def pure_epsilon(self) -> float:
        return self.stated_epsilon if self.stated_delta == 0.0 else math.inf

    @property
    def renyi(self) -> RenyiDP | None:
        return RenyiDP(PureCurve(self.stated_epsilon)) if self.stated_delta == 0.0 else None

    @property
    def outside_failure(self) -> Promise:
        return PureDP(self.stated_epsilon)

    def _epsilon(self, delta: float) -> float:
        if delta <= self.stated_delta:
            return self.stated_epsilon if delta == self.stated_delta else math.inf
        rest = down((delta - self.stated_delta) / (1.0 - self.stated_delta))
        return conversions.pure_epsilon(self.stated_epsilon, max(rest, 0.0))

    def _delta(self, epsilon: float) -> float:
        """With probability δ everything is revealed, else it is randomised response (arXiv:1311.0776)."""
        rest = conversions.pure_delta(self.stated_epsilon, epsilon)
        if rest == 0.0:
            return self.stated_delta
        return min(1.0, up(self.stated_delta + (1.0 - self.stated_delta) * rest))

    def _follows_from(self, stronger: Promise) -> bool:
        return stronger._keeps(self.stated_epsilon, self.stated_delta)

    def __str__(self) -> str:
        return f"(ε = {text(self.stated_epsilon)}, δ = {text(self.stated_delta)})"


def epsilon_delta(epsilon: float, delta: float = 0.0) -> Promise:
    """The budget most people ask for: (ε, δ), or pure ε where there is no δ."""
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def with_total_variation(promise: Promise, gamma: float, epsilon: float | None = None) -> ApproxDP:
    """The (ε, δ) kept by a law within total variation γ of one that keeps ``promise``, for every data set.

    ``epsilon`` says at which ε; it may be left out for PureDP, BoundedRange and ApproxDP, which have their own.
    """
    gamma = probability("γ", gamma)
    if epsilon is None:
        epsilon = promise.stated_epsilon if isinstance(promise, ApproxDP) else promise.pure_epsilon
        if epsilon == math.inf:
            raise InvalidBudget(
                f"{promise} holds at every ε with its own δ, and what γ costs depends on ε: pass epsilon=…"
            )
    epsilon = positive("ε", epsilon)
    delta = sum_up([promise.delta(epsilon), conversions.total_variation_delta(epsilon, gamma)])
    if not delta < 1.0:
        raise PromiseRefused(
            f"a draw within total variation {text(gamma)} promises nothing at ε = {text(epsilon)}: δ would "
            f"be {delta:.3g}. Run the sampler longer, so that γ is smaller."
        )
    return ApproxDP(epsilon, delta)
