"""What calibrations share: searches for the most that a budget allows, and which budgets count in ε alone."""

from __future__ import annotations

import math
from collections.abc import Callable

from onedraw.errors import PromiseRefused
from onedraw.privacy import ApproxDP, BoundedRange, Promise, PureDP
from onedraw.privacy.rounding import text

SMALLEST = 2.0**-60
"""Below this weight the records would not matter in floating-point arithmetic."""

PRECISION = 2.0**-40
"""How close, relatively, the search comes to the largest value the budget allows."""

MARGIN = 2.0**-38
"""Taken off the value found, so that another machine, with other last digits, accepts it too."""

RANGE_PRECISION, RANGE_MARGIN = 2.0**-24, 2.0**-23
"""The same for the range of a selection, whose costs lie on a coarser lattice."""


def counts_epsilons(budget: Promise) -> bool:
    """Whether the budget has no use for anything but a sum of pure ε."""
    return isinstance(budget, PureDP | BoundedRange) or (isinstance(budget, ApproxDP) and budget.stated_delta == 0.0)


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


def largest_range(keeps: Callable[[float], bool], budget: Promise, what: str, least: float = SMALLEST) -> float:
    """The largest range of log-ratios with which selections keep the budget; refused if not even a tiny one does."""
    low, high = least, 2.0**10
    if not keeps(low):
        raise PromiseRefused(
            f"{budget} leaves {what} a range below {text(low)}: the records would not matter. Use a larger budget."
        )
    while high - low > RANGE_PRECISION * low:
        # Halving the exponent first: budgets span many orders of magnitude.
        middle = (low * high) ** 0.5 if high > 2.0 * low else low + (high - low) / 2.0
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def largest_total(keeps: Callable[[float], bool], *, digits: float = 1e-9) -> float | None:
    """The largest μ or ε that keeps a budget, to nine digits or as many as are asked for; None if not even a tiny one does."""
    low, high = 1e-6, 100.0
    if not keeps(low):
        return None
    while high / low > 1.0 + digits:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low * (1.0 - MARGIN)
