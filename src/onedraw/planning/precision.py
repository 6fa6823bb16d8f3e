"""How many records, or how much budget, for a wanted precision? The smallest for which the best mechanism is expected to
reach it, by bisection over plans: from public numbers, before any record is read."""

from __future__ import annotations

import math
from collections.abc import Callable

from onedraw.errors import PromiseRefused, WrongCall
from onedraw.privacy import ApproxDP, Promise, PureDP

from .choice import choose
from .regression import Regression

FEWEST, MOST = 10, 10**9
"""Records."""

LEAST_EPSILON, LARGEST_EPSILON = 0.01, 50.0
PRECISION = 0.05
"""The answer is at most this much, relatively, above the smallest one."""


def smallest_n(question: Regression, budget: Promise, error: float, *, mechanism: str = "auto") -> int:
    """The fewest records for which the expected error per coefficient is at most ``error``; rounded up to two digits."""
    _check_error(error)

    def reached(size: float) -> bool:
        return _expected(question, budget, math.ceil(size), mechanism) <= error

    found = _smallest(reached, FEWEST, MOST, start=1000.0)
    if found is None:
        raise PromiseRefused(
            f"Even {MOST:,} records are not expected to bring the error of a {question.kind} regression down to {error:g} "
            f"under {budget}. Ask for less precision, or for a larger budget."
        )
    digits = 10 ** max(0, math.floor(math.log10(found)) - 1)
    return int(math.ceil(found / digits) * digits)


def smallest_epsilon(
    question: Regression, error: float, *, n: int, delta: float = 1e-6, mechanism: str = "auto"
) -> float:
    """The smallest ε (with this δ; 0 is pure) for which the expected error per coefficient is at most ``error``."""
    _check_error(error)

    def reached(epsilon: float) -> bool:
        budget = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
        return _expected(question, budget, n, mechanism) <= error

    found = _smallest(reached, LEAST_EPSILON, LARGEST_EPSILON, start=1.0)
    if found is None:
        raise PromiseRefused(
            f"No ε up to {LARGEST_EPSILON:g} is expected to bring the error down to {error:g} with n = {n:,}: the sample itself "
            "is too small. Ask for less precision, or collect more records."
        )
    return float(f"{found:.3g}")


def _expected(question: Regression, budget: Promise, n: int, mechanism: str) -> float:
    try:
        found = choose(question, budget, n=n, mechanism=mechanism).eligible[0].expected.private
    except PromiseRefused:
        return math.inf
    return math.inf if math.isnan(found) else found


def _smallest(reached: Callable[[float], bool], least: float, most: float, *, start: float) -> float | None:
    """The smallest value that is good enough; a bracket around ``start`` first, since cheap plans are near it."""
    if reached(start):
        high, low = start, start / 4.0
        while low > least and reached(low):
            high, low = low, low / 4.0
        low = max(low, least)
    else:
        low, high = start, start * 4.0
        while high < most and not reached(high):
            low, high = high, high * 4.0
        high = min(high, most)
        if not reached(high):
            return None
    while high / low > 1.0 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _check_error(error: float) -> None:
    if isinstance(error, bool) or not isinstance(error, int | float) or not 0.0 < error < math.inf:
        raise WrongCall(
            f"error must be the wanted root mean squared error per coefficient, above 0, but {error!r} came."
        )
