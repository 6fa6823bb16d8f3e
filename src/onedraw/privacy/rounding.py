"""Rounding against ourselves: reported ε, δ, μ, ρ go up, calibrated numbers go down.

Two tools. Sums, products and square roots of given numbers are carried out in exact rational arithmetic and
rounded once, in the direction asked for. Everything that passes through a transcendental function is moved
outward by a stated bound on the error of that function: ``SLACK`` relative, far above what NumPy and SciPy
actually lose (a few units of 2⁻⁵³; the tests compare with 60-digit arithmetic) and far below what matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

SLACK = 2.0**-44
"""Relative error granted to a short chain of elementary or special functions."""

TINY = 2.0**-1000
"""Added where a true value is positive but may underflow: never report exactly zero for it."""

_UNDERFLOWS = Fraction(1, 2**900)
"""Below this a rational number loses digits, or all of them, when it becomes a float."""


def up(value: float, *, relative: float = SLACK, absolute: float = 0.0) -> float:
    """The value moved towards +∞ by its error bound."""
    if value == math.inf:
        return value
    return math.nextafter(value + abs(value) * relative + absolute, math.inf)


def down(value: float, *, relative: float = SLACK, absolute: float = 0.0) -> float:
    """The value moved towards −∞ by its error bound."""
    if value == math.inf:
        return value
    return math.nextafter(value - abs(value) * relative - absolute, -math.inf)


def fraction_up(value: Fraction) -> float:
    """The smallest float that is not below an exact rational number (+∞ if there is none)."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def fraction_down(value: Fraction) -> float:
    """The largest float that is not above an exact rational number."""
    return -fraction_up(-value)


def sum_up(values: Iterable[float]) -> float:
    """Σ values, exact, then rounded up once."""
    return weighted_sum_up((value, 1) for value in values)


def weighted_sum_up(values: Iterable[tuple[float, int]]) -> float:
    """Σ value·times, exact, then rounded up once: 400 × 2⁻⁷ is 3.125 and nothing else."""
    total = Fraction(0)
    for value, times in values:
        if value == math.inf:
            return math.inf
        total += Fraction(value) * times
    return fraction_up(total)


def root_up(square: Fraction) -> float:
    """The square root of an exact non-negative rational number, rounded up."""
    if 0 < square < _UNDERFLOWS:
        return fraction_up(Fraction(root_up(square * 4**500)) / 2**500)
    try:
        root = math.sqrt(float(square))
    except OverflowError:
        return math.inf
    while root < math.inf and Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def text(value: float) -> str:
    """A number as people write it, with every digit it has: printing must not round a promise down."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
