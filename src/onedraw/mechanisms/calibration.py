"""The search all mechanisms share: the most weight on the records that a budget allows."""

from __future__ import annotations

from collections.abc import Callable

SMALLEST = 2.0**-60
"""Below this weight the records would not matter in floating-point arithmetic."""

PRECISION = 2.0**-40
"""How close, relatively, the search comes to the largest value the budget allows."""

MARGIN = 2.0**-38
"""Taken off the value found, so that another machine, with other last digits, accepts it too."""


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
