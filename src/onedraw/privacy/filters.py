"""Budgets that hold although each next promise is chosen in view of the draws before it: privacy filters.

``compose`` reads a *fixed* list of promises. When an analyst looks at a draw and then decides how much to spend next, the
list is not fixed, and an (ε, δ) read off the best Rényi order or off a privacy-loss distribution of what happens to stand in
the ledger may be exceeded (arXiv:2602.06756 shows it for trade-off curves, ``tests/ledger/test_accounts_adaptive.py`` attacks it).
What holds is a *filter*: charges that add up, a capacity fixed beforehand, and nothing accepted beyond it.

| filter | adds up | holds by |
| --- | --- | --- |
| `Sums` | ε, and δ with (1+e^ε)γ in it, each promise read at the δ it is stated with | Rogers, Roth, Ullman, Vadhan, arXiv:1605.08294, Section 5 (basic composition) |
| `ManySums` | the same, each promise read at a small δ | as above |
| `Squares` | μ² | Smith and Thakurta, arXiv:2210.17520; Koskela, Tobaben, Honkela, arXiv:2209.15596 |
| `Rhos` | ρ | Feldman and Zrnic, arXiv:2008.11193, at every order at once |
| `Order` | D_λ at one order λ | Feldman and Zrnic, arXiv:2008.11193, Theorem 3.1 |

**Several filters, one (ε, δ) budget.** Which filter keeps a history may itself depend on the draws, so their δ add up: stop
the interaction where filter k would be exceeded and it is (ε, δ_k); every history that is accepted in the end is kept by some k, so
P(E) ≤ Σ_k P(E, kept by k) ≤ e^ε Q(E) + Σ_k δ_k. The shares below therefore sum to 1; a δ of 0 costs nothing. For budgets in other
currencies there is one filter each.

**Outside an allowance.** In `Squares` and `Order` an (ε, δ) promise counts as PureDP(ε) outside an event of probability δ
(arXiv:1311.0776), and a draw within total variation γ of an exact one as exact. If Σδ + (1+e^ε)Σγ ≤ a on every path, both together cost at most
E_P[Σδ + Σγ] + e^ε E_Q[Σγ] ≤ 2a: P and Q may lead to different paths.

The proofs are written out in docs/adaptive-spending.md.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from . import conversions
from .composition import Composed, compose
from .curves import AtOrderCurve, LinearCurve
from .numbers import fraction_up, largest, root_up, sum_up, text
from .promises import ZCDP, ApproxDP, GaussianDP, Promise, PureDP, RenyiDP

Amount = Fraction | float
"""Exact (0 as an int: most spends have no δ), or ``math.inf`` where nothing is proven."""

Charge = tuple[Amount, Amount]
"""What one spend takes of a filter's capacity: its amount, and its δ or allowance."""

NOTHING: Charge = (0, 0)

# How an (ε, δ) budget's δ is shared out: 1/2 + 1/16 + 2·(5/32 + 2/32) = 1.
ROUNDED = Fraction(1, 2**20)
"""Moved from many sums to sums: five times the float 1e-9 is more than half of the float 1e-8."""
SUMS_SHARE = Fraction(1, 2) + ROUNDED
"""Half, so that a total is the plain sum of the stated ε as long as the stated δ add up to half of the budget's."""
MANY_SUMS_SHARE = Fraction(1, 16) - ROUNDED
CURVE_SHARE = Fraction(5, 32)
ALLOWANCE_SHARE = Fraction(1, 32)
ONE_OF_MANY = 16
"""`ManySums` reads a promise without a pure ε at this part of its δ."""


@dataclass(frozen=True)
class Spend:
    """Promises fixed together before the first of their draws: one release, or a declared list.

    ``gamma`` is the total variation distance of its draws from exact ones. ``delta`` is the δ at which `Sums` reads the
    promise as one (ε, δ): a release's stated δ, or the one that a declared list names. None: its pure ε, if it has one. A budget
    without δ always reads the pure ε.
    """

    promise: Promise
    gamma: float = 0.0
    delta: float | None = None

    @property
    def distance(self) -> float:
        """All of γ: what was said beside the promise, and what a composition brings with it."""
        inside = self.promise.gamma if isinstance(self.promise, Composed) else 0.0
        return sum_up([self.gamma, inside]) if inside else self.gamma

    @property
    def composed(self) -> Composed:
        return compose(self.promise, gammas=(self.gamma,))


@dataclass(frozen=True)
class Allowance:
    """What may go wrong outside a filter of exact promises: Σδ + (1+e^ε)Σγ ≤ ``delta``; ``curve`` is left to the filter."""

    epsilon: float
    delta: Fraction
    curve: float


def lost(spend: Spend, epsilon: float) -> Amount:
    """The δ a promise states, and (1 + e^ε)γ."""
    failure, distance = spend.promise.failure, spend.distance
    if not failure and not distance:
        return 0
    return Fraction(failure) + _exact(conversions.total_variation_delta(epsilon, distance))


NONE = Allowance(0.0, Fraction(0), 0.0)


@dataclass(frozen=True)
class Filter(abc.ABC):
    """A capacity fixed beforehand, and what each spend takes of it: an amount, outside an allowance."""

    title: ClassVar[str]
    limit: Fraction
    allowance: Allowance = NONE

    @abc.abstractmethod
    def amount(self, promise: Promise) -> Amount:
        """What a promise with δ = 0 takes; infinite where it has nothing in this currency."""

    @abc.abstractmethod
    def epsilon_of(self, amount: Fraction, delta: float) -> float:
        """ε of the smallest budget of this kind that the amount is within; ``delta`` where the budget names none."""

    def charge(self, spend: Spend) -> Charge:
        """Exact sums of numbers rounded up."""
        return self.amount(spend.promise.outside_failure), lost(spend, self.allowance.epsilon)

    def epsilon(self, total: Charge, delta: float) -> float:
        """The ε that ``total`` is within; +∞ beyond the allowance."""
        if total[1] > self.allowance.delta or total[0] == math.inf:
            return math.inf
        return self.epsilon_of(Fraction(total[0]), self.allowance.curve or delta)

    def keeps(self, total: Charge) -> bool:
        return total[0] <= self.limit and total[1] <= self.allowance.delta

    def __str__(self) -> str:
        return self.title


def add(one: Charge, other: Charge) -> Charge:
    return one[0] + other[0], one[1] + other[1]


class Sums(Filter):
    """Σε ≤ ε and Σδ ≤ δ, as stated: a promise is read at the δ stated with it, or charged its pure ε if none is."""

    title = "sum of ε and δ"

    def amount(self, promise: Promise) -> Amount:
        return _exact(promise.pure_epsilon)

    def charge(self, spend: Spend) -> Charge:
        if spend.delta is None or not self.allowance.delta:  # a budget without δ has no use but for the pure ε
            return self.read(spend, spend.promise.quoted_delta)
        epsilon = spend.promise.epsilon(spend.delta)  # with the γ inside a composition
        return _exact(epsilon), Fraction(spend.delta) + _exact(conversions.total_variation_delta(epsilon, spend.gamma))

    def read(self, spend: Spend, delta: float | Fraction) -> Charge:
        """Charge the pure ε that holds outside an event of the promise's own δ; the ε at ``delta`` if there is none."""
        exact = spend.promise.outside_failure
        if (amount := self.amount(exact)) < math.inf:
            return amount, lost(spend, float(amount))  # of a hundred thousand pure promises no δ is added up
        epsilon = exact.epsilon(float(delta))
        return _exact(epsilon), Fraction(delta) + lost(spend, epsilon)

    def epsilon_of(self, amount: Fraction, delta: float) -> float:
        return fraction_up(amount)

    def __str__(self) -> str:
        return self.title if self.allowance.delta else "sum of ε"


class ManySums(Sums):
    """Σε ≤ ε and Σδ ≤ δ for more promises than their stated δ allow: each without a pure ε is read at 1/16 of this δ."""

    title = "sum of ε, each read at δ/256"

    def charge(self, spend: Spend) -> Charge:
        return self.read(spend, self.allowance.delta / ONE_OF_MANY)


class Squares(Filter):
    """Σμ² ≤ μ², outside an allowance."""

    title = "sum of μ²"

    def amount(self, promise: Promise) -> Amount:
        mu = promise.gaussian_mu
        return mu if mu == math.inf else Fraction(mu) ** 2

    def epsilon_of(self, amount: Fraction, delta: float) -> float:
        return conversions.gaussian_epsilon(root_up(amount), delta) if amount else 0.0


class Rhos(Filter):
    """Σρ ≤ ρ: one Rényi filter at every order."""

    title = "sum of ρ"

    def amount(self, promise: Promise) -> Amount:
        return _exact(promise.zcdp_rho)

    def epsilon_of(self, amount: Fraction, delta: float) -> float:
        return ZCDP(fraction_up(amount)).epsilon(delta) if amount else 0.0


@dataclass(frozen=True)
class Order(Filter):
    """ΣD_λ ≤ D at one order λ fixed beforehand, outside an allowance."""

    title: ClassVar[str] = "one Rényi order"
    order: float = math.inf

    def amount(self, promise: Promise) -> Amount:
        return _exact(promise.divergence(self.order))

    def epsilon_of(self, amount: Fraction, delta: float) -> float:
        return max(0.0, fraction_up(amount + Fraction(conversions.renyi_excess(self.order, delta))))

    def __str__(self) -> str:
        return f"sum of D at Rényi order {text(self.order)}"


def filters_of(budget: Promise, order: float | None = None) -> Iterator[Filter]:
    """The filters that keep a budget, each with its share, as far as they are asked for; none for a Rényi curve that names no
    single order."""
    match budget:
        case PureDP(stated_epsilon=epsilon) | ApproxDP(stated_epsilon=epsilon, stated_delta=0.0):
            yield Sums(Fraction(epsilon))
        case GaussianDP(mu=mu):
            yield Squares(Fraction(mu) ** 2)
        case ZCDP(rho=rho):
            yield Rhos(Fraction(rho))
        case RenyiDP(curve=AtOrderCurve(order=at, epsilon=divergence), below=below) if at < below:
            yield Order(Fraction(divergence), order=at)
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            order = chosen_order(budget) if order is None else order
            yield Sums(Fraction(epsilon), Allowance(epsilon, Fraction(delta) * SUMS_SHARE, 0.0))
            yield ManySums(Fraction(epsilon), Allowance(epsilon, Fraction(delta) * MANY_SUMS_SHARE, 0.0))
            if order is None:
                return
            curve = float(Fraction(delta) * CURVE_SHARE)
            allowance = Allowance(epsilon, Fraction(delta) * ALLOWANCE_SHARE, curve)
            yield Squares(Fraction(conversions.gaussian_mu(epsilon, curve)) ** 2, allowance)
            left = Fraction(epsilon) - Fraction(conversions.renyi_excess(order, curve))
            yield Order(max(left, Fraction(0)), allowance, order)


@lru_cache(maxsize=64)  # accounts ask several times for the order of one budget
def chosen_order(budget: Promise) -> float | None:
    """The order at which a concentrated promise (zCDP, Gaussian) that uses up an (ε, δ) budget is read best.

    A filter needs one order, fixed before the first draw. Many small releases look like such a promise, whatever each
    is by itself. Three digits: any order is valid, and this one is to be shown.
    """
    delta = float(Fraction(budget.quoted_delta) * CURVE_SHARE)
    if not isinstance(budget, ApproxDP) or not delta > 0:
        return None
    kept = budget.stated_epsilon
    rho = largest(lambda rho: ZCDP(rho).epsilon(delta) <= kept, least=1e-300, precision=1e-6) or 1e-300
    order = RenyiDP(LinearCurve(rho)).best_order(delta)
    return float(f"{order:.3g}") if order >= 1.01 else order


def _exact(value: float) -> Amount:
    return value if value == math.inf else Fraction(value)
