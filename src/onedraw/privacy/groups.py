"""From one record to one person: what a promise for one record is worth for k of them (mathematics.md §0)."""

from __future__ import annotations

from fractions import Fraction

from onedraw.errors import PromiseRefused
from onedraw.privacy import conversions
from onedraw.privacy.composition import Composed
from onedraw.privacy.numbers import fraction_down, fraction_up, narrowed, positive_integer
from onedraw.privacy.promises import ZCDP, ApproxDP, BoundedRange, GaussianDP, Promise, PureDP

_POWER = {PureDP: 1, BoundedRange: 1, GaussianDP: 1, ZCDP: 2}
"""By which power of k the one number of a promise grows."""

_REFUSED = (
    "{promise} says nothing about {size} records at once: group privacy of a Rényi curve or a composition "
    "does not follow from its numbers. Declare one record per person, or use a PureDP, GaussianDP, ZCDP or "
    "(ε, δ) budget."
)


def group(promise: Promise, records: int) -> Promise:
    """The promise for data sets that differ in at most ``records`` records, rounded up.

    Pure and BoundedRange kε; Gaussian kμ; ZCDP k²ρ; (ε, δ) becomes (kε, δ(e^{kε} − 1)/(e^ε − 1)); a
    composition part by part. Refused for RenyiDP: no bound at the same order follows from a curve.
    """
    size = positive_integer("records", records)
    if size == 1:
        return promise
    match promise:
        case PureDP() | BoundedRange() | GaussianDP() | ZCDP():
            return type(promise)(fraction_up(Fraction(promise.number) * size ** _POWER[type(promise)]))
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            grouped = conversions.group_approx_delta(epsilon, delta, size)
            if not grouped < 1.0:
                raise PromiseRefused(
                    f"{promise} for one record leaves no promise for {size}: δ grows to {grouped:.3g}. "
                    "Use a smaller δ, a smaller ε, or fewer records per person."
                )
            return ApproxDP(fraction_up(Fraction(epsilon) * size), grouped)
        case Composed(parts=parts, gamma=gamma):
            return Composed(tuple(group(part, size) for part in parts), gamma)
    raise PromiseRefused(_REFUSED.format(promise=promise, size=size))


def ungroup(budget: Promise, records: int) -> Promise:
    """The largest promise for one record whose ``group(…, records)`` implies the budget, rounded down."""
    size = positive_integer("records", records)
    if size == 1:
        return budget
    match budget:
        case PureDP() | BoundedRange() | GaussianDP() | ZCDP():
            return type(budget)(fraction_down(Fraction(budget.number) / size ** _POWER[type(budget)]))
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            single = fraction_down(Fraction(epsilon) / size)

            def keeps(one: float) -> bool:
                return conversions.group_approx_delta(single, one, size) <= delta

            return ApproxDP(single, delta if keeps(delta) else narrowed(keeps, true=0.0, false=delta)[0])
    raise PromiseRefused(_REFUSED.format(promise=budget, size=size))
