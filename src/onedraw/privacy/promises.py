"""What a promise is: six frozen values, and when one is at least as strong as another (mathematics.md §1).

Every promise answers the same three questions, always rounded against ourselves: ``epsilon(delta)``,
``delta(epsilon)`` and ``implies(other)``. To answer the last one each promise says what it is worth in each
of the other currencies (``pure_epsilon``, ``range_epsilon``, ``gaussian_mu``, ``zcdp_rho``, ``renyi``), +∞
or None where nothing is proven. Neighbours are replace-one with n public, for all of them.

The names ``epsilon`` and ``delta`` are questions; the numbers a promise was made with are
``stated_epsilon``, ``stated_delta``, ``mu``, ``rho``, ``curve``, ``below``.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from fractions import Fraction

from onedraw.defaults import DELTA
from onedraw.errors import InvalidBudget
from onedraw.privacy import conversions
from onedraw.privacy.curves import (
    AtOrderCurve,
    BoundedRangeCurve,
    Curve,
    LinearCurve,
    PureCurve,
    curve_at_most,
)
from onedraw.privacy.rounding import down, text, up
from onedraw.privacy.stored import Stored, stored_as
from onedraw.privacy.validation import epsilon_argument, positive, probability, real


class Promise(Stored, key="kind", noun="promise", refuses=InvalidBudget):
    """A statement about every pair of neighbouring data sets.

    **Guarantee.** ``epsilon`` and ``delta`` are never below the true value for a mechanism that keeps the
    promise; ``implies`` is True only when a proof is known, so False means "not proven", not "false".
    """

    def epsilon(self, delta: float) -> float:
        """The smallest ε at this δ, rounded up; ``math.inf`` if there is none."""
        return self._epsilon(probability("δ", delta))

    def delta(self, epsilon: float) -> float:
        """The smallest δ at this ε, rounded up."""
        return self._delta(epsilon_argument(epsilon))

    @abc.abstractmethod
    def _epsilon(self, delta: float) -> float: ...

    @abc.abstractmethod
    def _delta(self, epsilon: float) -> float: ...

    @property
    def pure_epsilon(self) -> float:
        """The smallest ε for which PureDP(ε) is proven to follow."""
        return math.inf

    @property
    def range_epsilon(self) -> float:
        """The smallest ε for which BoundedRange(ε) is proven to follow."""
        return conversions.pure_to_bounded_range(self.pure_epsilon)

    @property
    def gaussian_mu(self) -> float:
        """The smallest μ for which GaussianDP(μ) is proven to follow."""
        return conversions.pure_to_gaussian(self.pure_epsilon)

    @property
    def zcdp_rho(self) -> float:
        """The smallest ρ for which ZCDP(ρ) is proven to follow."""
        return self.renyi.curve.slope if self.renyi is not None and self.renyi.limit == math.inf else math.inf

    @property
    def renyi(self) -> RenyiDP | None:
        """The best Rényi curve that is proven to follow."""
        return None

    @property
    def failure(self) -> float:
        """An upper bound on the probability of the event outside which ``outside_failure`` is kept: an (ε, δ)'s δ."""
        return 0.0

    @property
    def outside_failure(self) -> Promise:
        """What is kept outside that event: (ε, δ) is no worse than PureDP(ε) there (arXiv:1311.0776)."""
        return self

    @property
    def quoted_delta(self) -> float:
        """The δ at which ε is quoted: its own, 0 of a pure promise, the public default where it names none."""
        return DELTA

    def divergence(self, order: float) -> float:
        """The bound on D_λ that is proven to follow at one order; +∞ where none is."""
        return self.renyi.at_order(order) if self.renyi is not None else math.inf

    def implies(self, other: Promise) -> bool:
        """Whether every mechanism that keeps this promise is proven to keep ``other``."""
        if not isinstance(other, Promise):
            raise InvalidBudget(f"a promise can only imply another promise, but a {type(other).__name__} came")
        return self == other or other._follows_from(self)

    @abc.abstractmethod
    def _follows_from(self, stronger: Promise) -> bool: ...

    def _keeps(self, epsilon: float, delta: float) -> bool:
        """Whether (ε, δ) is proven to follow. Both profiles are asked: each rounds in its own direction."""
        return self._delta(epsilon) <= delta or self._epsilon(delta) <= epsilon


def _at_most(slope: float, order: float, epsilon: float) -> bool:
    """slope·order ≤ epsilon, decided without rounding."""
    return slope < math.inf and Fraction(slope) * Fraction(order) <= Fraction(epsilon)


@dataclass(frozen=True, init=False, repr=False)
class PureDP(Promise):
    """The log-ratio of densities is at most ε."""

    stated_epsilon: float = stored_as("epsilon")

    def __init__(self, epsilon: float) -> None:
        self._set(stated_epsilon=positive("ε", epsilon))

    @property
    def quoted_delta(self) -> float:
        return 0.0

    @property
    def pure_epsilon(self) -> float:
        return self.stated_epsilon

    @property
    def renyi(self) -> RenyiDP:
        return RenyiDP(PureCurve(self.stated_epsilon))

    def divergence(self, order: float) -> float:
        return conversions.pure_renyi_at(self.stated_epsilon, order)

    def _epsilon(self, delta: float) -> float:
        return conversions.pure_epsilon(self.stated_epsilon, delta)

    def _delta(self, epsilon: float) -> float:
        return conversions.pure_delta(self.stated_epsilon, epsilon)

    def _follows_from(self, stronger: Promise) -> bool:
        return stronger.pure_epsilon <= self.stated_epsilon

    def __str__(self) -> str:
        return f"ε = {text(self.stated_epsilon)}"


@dataclass(frozen=True, init=False, repr=False)
class BoundedRange(Promise):
    """The largest minus the smallest log-ratio is at most ε: every exponential mechanism's promise."""

    stated_epsilon: float = stored_as("epsilon")

    def __init__(self, epsilon: float) -> None:
        self._set(stated_epsilon=positive("ε", epsilon))

    @property
    def pure_epsilon(self) -> float:
        return conversions.bounded_range_to_pure(self.stated_epsilon)

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

    def _follows_from(self, stronger: Promise) -> bool:
        return stronger.range_epsilon <= self.stated_epsilon

    def __str__(self) -> str:
        return f"bounded range ε = {text(self.stated_epsilon)}"


@dataclass(frozen=True)
class ZCDP(Promise):
    """D_α ≤ ρα for every order α > 1."""

    rho: float

    def __post_init__(self) -> None:
        self._set(rho=positive("ρ", self.rho))

    @property
    def renyi(self) -> RenyiDP:
        return RenyiDP(LinearCurve(self.rho))

    def _epsilon(self, delta: float) -> float:
        return self.renyi._epsilon(delta)

    def _delta(self, epsilon: float) -> float:
        return self.renyi._delta(epsilon)

    def _follows_from(self, stronger: Promise) -> bool:
        return stronger.zcdp_rho <= self.rho

    def __str__(self) -> str:
        return f"zCDP with ρ = {text(self.rho)}"


@dataclass(frozen=True)
class GaussianDP(Promise):
    """Neighbours are no easier to tell apart than N(0, 1) from N(μ, 1)."""

    mu: float

    def __post_init__(self) -> None:
        self._set(mu=positive("μ", self.mu))

    @classmethod
    def from_epsilon_delta(cls, epsilon: float, delta: float) -> GaussianDP:
        """μ(ε, δ), rounded down: the weakest GaussianDP that still implies ApproxDP(ε, δ)."""
        epsilon, delta = positive("ε", epsilon), probability("δ", delta)
        mu = conversions.gaussian_mu(epsilon, delta)
        if mu == 0.0:
            raise InvalidBudget(
                f"no Gaussian promise implies (ε = {text(epsilon)}, δ = {text(delta)}): a Gaussian tail "
                "always leaves some δ, and this one is too small to reach. Choose a δ above 0."
            )
        return cls(mu)

    @property
    def gaussian_mu(self) -> float:
        return self.mu

    @property
    def renyi(self) -> RenyiDP:
        return RenyiDP(LinearCurve(conversions.gaussian_to_zcdp(self.mu)))

    def _epsilon(self, delta: float) -> float:
        return conversions.gaussian_epsilon(self.mu, delta)

    def _delta(self, epsilon: float) -> float:
        return conversions.gaussian_delta(self.mu, epsilon)

    def _follows_from(self, stronger: Promise) -> bool:
        return stronger.gaussian_mu <= self.mu

    def __str__(self) -> str:
        return f"Gaussian DP with μ = {text(self.mu)}"


@dataclass(frozen=True)
class RenyiDP(Promise):
    """D_α ≤ curve(α) at every order α below both ``below`` and the curve's own limit."""

    curve: Curve
    below: float = math.inf

    def __post_init__(self) -> None:
        if not isinstance(self.curve, Curve):
            raise InvalidBudget(
                f"RenyiDP is made of a named curve, but a {type(self.curve).__name__} came: a bare function "
                "cannot be written on a certificate. Use RenyiDP.at(order, epsilon) or a Curve."
            )
        below = real("below", self.below)
        if not below > 1.0:
            raise InvalidBudget(f"below must be above 1, but {below!r} came: no order would be left")
        self._set(below=below)

    @classmethod
    def at(cls, order: float, epsilon: float) -> RenyiDP:
        """One pair: D_α ≤ ε at every order α ≤ λ."""
        return cls(AtOrderCurve(order, epsilon))

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
                largest = min(order, self.below)
                on_a_line = largest < given.limit and _at_most(given.curve.slope, largest, epsilon)
                return on_a_line or given.at_order(largest) <= epsilon
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


@dataclass(frozen=True, init=False, repr=False)
class ApproxDP(Promise):
    """(ε, δ): the log-ratio is at most ε except on events of probability δ."""

    stated_epsilon: float = stored_as("epsilon")
    stated_delta: float = stored_as("delta")

    def __init__(self, epsilon: float, delta: float) -> None:
        self._set(stated_epsilon=positive("ε", epsilon), stated_delta=probability("δ", delta))

    @property
    def quoted_delta(self) -> float:
        return self.stated_delta

    @property
    def pure_epsilon(self) -> float:
        return self.stated_epsilon if self.stated_delta == 0.0 else math.inf

    @property
    def renyi(self) -> RenyiDP | None:
        return RenyiDP(PureCurve(self.stated_epsilon)) if self.stated_delta == 0.0 else None

    @property
    def failure(self) -> float:
        return self.stated_delta

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
