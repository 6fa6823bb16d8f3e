"""The largest, or smallest, number at which a condition holds: what every calibration and every accountant asks for.

A condition holds up to some number (`largest`) or from some number on (`smallest`). What is returned always *holds*: a
weight is never a little too large, an ε never a little too small. ``precision`` is how far beyond it, relatively, the
condition is known to fail; at 0 the two are neighbours in floating point.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Condition = Callable[[float], bool]
Middle = Callable[[float, float], float]


def halfway(low: float, high: float) -> float:
    """The arithmetic mean."""
    return low + (high - low) / 2.0


def geometric(low: float, high: float) -> float:
    """The geometric mean, for ends that are orders of magnitude apart."""
    return math.sqrt(low * high)


def largest(
    holds: Condition,
    *,
    start: float = 1.0,
    least: float = 2.0**-1000,
    most: float = 2.0**1000,
    precision: float = 0.0,
    factor: float = 2.0,
    middle: Middle = halfway,
) -> float | None:
    """The largest number from ``least`` to ``most`` at which the condition holds; None if not even at ``least``.

    Ends are found by multiplying or dividing ``start`` by ``factor``: cheap where an answer near ``start`` is likely.
    """
    return _farthest(holds, start, factor, end=most, other=least, precision=precision, middle=middle)


def smallest(
    holds: Condition,
    *,
    start: float = 1.0,
    least: float = 2.0**-1000,
    most: float = 2.0**1000,
    precision: float = 0.0,
    factor: float = 2.0,
    middle: Middle = halfway,
) -> float | None:
    """The smallest number from ``least`` to ``most`` at which the condition holds; None if not even at ``most``."""
    return _farthest(holds, start, 1.0 / factor, end=least, other=most, precision=precision, middle=middle)


def narrowed(
    holds: Condition,
    *,
    true: float,
    false: float,
    precision: float = 0.0,
    middle: Middle = halfway,
    steps: int = 3000,
) -> tuple[float, float]:
    """Two numbers closer together: the condition holds at the first, as it does at ``true``, and fails at the second.

    ``steps`` is how often the condition may be asked, where asking is dear.
    """
    for _ in range(steps):
        between = middle(min(true, false), max(true, false))
        if abs(true - false) <= precision * max(true, false) or between in (true, false):
            break
        true, false = (between, false) if holds(between) else (true, between)
    return true, false


def _farthest(
    holds: Condition, start: float, factor: float, *, end: float, other: float, precision: float, middle: Middle
) -> float | None:
    """From ``start`` by ``factor`` towards ``end`` while the condition holds, else back towards ``other`` until it does."""
    onward, back = (min, max) if factor > 1.0 else (max, min)
    true = false = start
    if holds(start):
        while true != end and holds(onward(true * factor, end)):
            true = onward(true * factor, end)
        if true == end:
            return end
        false = onward(true * factor, end)
    else:
        while false != other and not holds(back(false / factor, other)):
            false = back(false / factor, other)
        if false == other:
            return None
        true = back(false / factor, other)
    return narrowed(holds, true=true, false=false, precision=precision, middle=middle)[0]
