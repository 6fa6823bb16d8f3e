"""How many records, or how much budget, for a wanted precision? The smallest for which the best mechanism is expected to
reach it, by bisection over plans: from public numbers, before any record is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from onedraw.defaults import DELTA
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.privacy import ApproxDP, Promise, PureDP
from onedraw.privacy.search import geometric, smallest

from .choice import choose
from .expected_errors import Expectation
from .regression import Regression

FEWEST, START, MOST = 10, 1000.0, 10**9
"""Records; the search begins where plans are cheap."""

OUT_OF_REACH = 10.0
"""An error this many times below that of the sample alone, at the most records there may be, is not searched for."""

LEAST_EPSILON, LARGEST_EPSILON = 0.01, 50.0
PRECISION = 0.05
"""The answer is at most this much, relatively, above the smallest one."""


def smallest_n(question: Regression, budget: Promise, error: float, *, mechanism: str = "auto") -> int:
    """The fewest records for which the expected error per coefficient is at most ``error``; rounded up to two digits."""
    _check_error(error)

    @cache
    def expected(size: float) -> Expectation:
        return _expected(question, budget, math.ceil(size), mechanism)

    hopeless = OUT_OF_REACH * error < expected(START).sampling * math.sqrt(START / MOST)
    found = None if hopeless else _smallest(lambda size: expected(size).private <= error, FEWEST, MOST, start=START)
    if found is None:
        raise PromiseRefused(
            f"Even {MOST:,} records are not expected to bring the error of a {question.kind} regression down to {error:g} "
            f"under {budget}. Ask for less precision, or for a larger budget."
        )
    digits = 10 ** max(0, math.floor(math.log10(found)) - 1)
    return int(math.ceil(found / digits) * digits)


def smallest_epsilon(
    question: Regression, error: float, *, n: int, delta: float = DELTA, mechanism: str = "auto"
) -> float:
    """The smallest ε (with this δ; 0 is pure) for which the expected error per coefficient is at most ``error``."""
    _check_error(error)

    @cache
    def expected(epsilon: float) -> Expectation:
        return _expected(question, ApproxDP(epsilon, delta) if delta else PureDP(epsilon), n, mechanism)

    hopeless = OUT_OF_REACH * error < expected(1.0).sampling
    found = (
        None if hopeless
        else _smallest(lambda epsilon: expected(epsilon).private <= error, LEAST_EPSILON, LARGEST_EPSILON, start=1.0)
    )  # fmt: skip
    if found is None:
        raise PromiseRefused(
            f"No ε up to {LARGEST_EPSILON:g} is expected to bring the error down to {error:g} with n = {n:,}: the sample itself "
            "is too small. Ask for less precision, or collect more records."
        )
    return float(f"{found:.3g}")


def _expected(question: Regression, budget: Promise, n: int, mechanism: str) -> Expectation:
    """Of the best plan; where there is none, or its error is not known, a private error of ∞ and no sampling error."""
    try:
        found = choose(question, budget, n=n, mechanism=mechanism).eligible[0].expected
    except PromiseRefused:
        return Expectation(math.inf, 0.0)
    return Expectation(math.inf, 0.0) if math.isnan(found.private) else found


def _smallest(reached: Callable[[float], bool], least: float, most: float, *, start: float) -> float | None:
    """The smallest value that is good enough; the search begins at ``start``, since cheap plans are near it."""
    return smallest(reached, start=start, least=least, most=most, precision=PRECISION, factor=4.0, middle=geometric)


def _check_error(error: float) -> None:
    if isinstance(error, bool) or not isinstance(error, int | float) or not 0.0 < error < math.inf:
        raise WrongCall(
            f"error must be the wanted root mean squared error per coefficient, above 0, but {error!r} came."
        )
