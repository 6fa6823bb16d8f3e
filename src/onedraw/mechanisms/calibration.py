"""From a budget to a plan, without data: the one entry point, and the search all mechanisms share."""

from __future__ import annotations

from collections.abc import Callable

from onedraw.errors import WrongCall
from onedraw.models import Model
from onedraw.privacy import Promise

from .plan import Mechanism, Plan, Request

SMALLEST = 2.0**-60
"""Below this weight the records would not matter in floating-point arithmetic."""

PRECISION = 2.0**-40
"""How close, relatively, the search comes to the largest value the budget allows."""

MARGIN = 2.0**-38
"""Taken off the value found, so that another machine, with other last digits, accepts it too."""


def calibrate(
    mechanism: Mechanism,
    model: Model,
    budget: Promise,
    *,
    n: int,
    draws: int = 1,
    gamma: float | None = None,
    records_per_person: int = 1,
) -> Plan:
    """The plan that gives the records the most weight under ``budget``. There is no data argument.

    **Guarantee.** ``plan.guarantee.promise`` holds for all ``draws`` together, for a person with up to
    ``records_per_person`` records, and implies ``budget`` with the reserve ``gamma`` taken off its δ.

    | argument | meaning |
    | --- | --- |
    | budget | a promise; which kinds are possible depends on mechanism and model |
    | n | the public number of records, at least 1 |
    | gamma | total variation kept back for a sampler that is not exact; None: what the mechanism needs for its own |
    """
    if not isinstance(mechanism, Mechanism):
        raise WrongCall(
            f"calibrate needs a mechanism such as Diffused(), but {_named(mechanism)} came. The mechanism is "
            "the theorem that makes the draw private."
        )
    request = Request(
        model,
        budget,
        n=n,
        draws=draws,
        gamma=mechanism.default_gamma(model, budget) if gamma is None else gamma,
        records_per_person=records_per_person,
    )
    return mechanism.calibrate(request)


def largest(keeps: Callable[[float], bool]) -> float | None:
    """The largest value in (0, 1] that ``keeps`` the budget, rounded down; None if not even a tiny one does.

    ``keeps`` must be true up to some value and false beyond it.
    """
    if keeps(1.0):
        return 1.0
    low, high = 0.5, 1.0
    while not keeps(low):
        low, high = low / 2, low
        if low < SMALLEST:
            return None
    while high - low > PRECISION * low:
        middle = low + (high - low) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low * (1.0 - MARGIN)


def _named(value: object) -> str:
    return f"the class {value.__name__} (without brackets)" if isinstance(value, type) else f"a {type(value).__name__}"
