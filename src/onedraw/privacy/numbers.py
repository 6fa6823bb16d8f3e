"""The numbers of a promise: rounded against ourselves, kept in their ranges, and searched for.

**Rounding.** Reported ε, δ, μ, ρ go up, calibrated numbers go down. Sums, products and square roots of given numbers are
carried out in exact rational arithmetic and rounded once, in the direction asked for. Everything that passes through a
transcendental function is moved outward by a stated bound on the error of that function: ``SLACK`` relative, far above
what NumPy and SciPy actually lose (a few units of 2⁻⁵³; the tests compare with 60-digit arithmetic) and far below what
matters.

**Searching.** A condition holds up to some number (`largest`) or from some number on (`smallest`). What is returned
always *holds*: a weight is never a little too large, an ε never a little too small. ``precision`` is how far beyond it,
relatively, the condition is known to fail; at 0 the two are neighbours in floating point.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import Any

from onedraw.errors import InvalidBudget, WrongCall

Condition = Callable[[float], bool]
Middle = Callable[[float, float], float]

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


def at_most_stated(value: float) -> float:
    """Return the largest float that is not above the decimal by which people write this one: 0.2 is a little more than 1/5.

    What is calibrated to it adds up as decimals do: five times 0.2 is no more than 1.
    """
    return value if not math.isfinite(value) else min(value, fraction_down(Fraction(repr(value))))


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


def root_down(square: Fraction) -> float:
    """The square root of an exact non-negative rational number, rounded down."""
    if 0 < square < _UNDERFLOWS:
        return fraction_down(Fraction(root_down(square * 4**500)) / 2**500)
    try:
        root = math.sqrt(float(square))
    except OverflowError:
        return fraction_down(Fraction(root_down(square / 4**500)) * 2**500)
    while Fraction(root) ** 2 > square:
        root = math.nextafter(root, 0.0)
    return root


def text_up(value: float) -> str:
    """Return a promised number as `text`, or the short decimal that it was calibrated to, which is the next float above."""
    above = math.nextafter(value, math.inf)
    shorter = len(text(above)) + 3 < len(text(value))
    return text(above if shorter and at_most_stated(above) == value else value)


def text(value: float) -> str:
    """A number as people write it, with every digit it has: printing must not round a promise down."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


# ── ranges, each refused with the same words ──


def real(
    name: str, value: Any, *, least: float = -math.inf, above: float | None = None, below: float | None = None,
    otherwise: str = "",
) -> float:  # fmt: skip
    """Any real number that is not a truth value, as a float: at least or above one end, below the other; refused in the words of
    ``otherwise``, which may quote the name and the number."""
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidBudget(f"{name} must be a real number, not a {type(value).__name__}: pass a float.") from None
    inside = (number >= least if above is None else number > above) and (below is None or number < below)
    if otherwise and not inside:  # not a number is inside nothing
        raise InvalidBudget(otherwise.format(name=name, number=number))
    return number + 0.0  # −0.0 becomes 0.0: equal promises look equal


positive = partial(
    real, above=0.0, below=math.inf,
    otherwise="{name} must be a finite number above 0, not {number!r}: at 0 the release would not depend on the data, at infinity "
    "nothing is promised. Choose {name} > 0.",
)  # fmt: skip
"""A finite number above zero."""

not_negative = partial(
    real, least=0.0, below=math.inf, otherwise="{name} must be a finite number of at least 0, not {number!r}"
)
"""A finite number of at least zero."""

probability = partial(
    real, least=0.0, below=1.0,
    otherwise="{name} must lie in [0, 1), not {number!r}: it is a probability of failure. Choose a small number, such as 1e-6.",
)  # fmt: skip
"""A number in [0, 1)."""


def confidence_level(level: Any) -> float:
    """That of an interval, as in 95 %."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
        raise WrongCall(f"level is a probability such as 0.95, got {level!r}.")
    return float(level)


epsilon_argument = partial(
    real, "ε", least=0.0, otherwise="a profile δ(ε) is asked for at ε ≥ 0, not {number!r}. Ask at ε ≥ 0."
)
"""An ε at which a profile is asked for: zero and ∞ are meaningful there."""

strictly_above_one = partial(
    real, above=1.0, below=math.inf,
    otherwise="{name} must be a finite number above 1, not {number!r}: only such orders are promises here.",
)  # fmt: skip
"""A finite Rényi order."""


def positive_integer(name: str, value: Any, *, most: int | None = None) -> int:
    """A whole number of at least one, and of ``most`` at most."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InvalidBudget(f"{name} must be a whole number, not a {type(value).__name__}") from None
    if number < 1:
        raise InvalidBudget(f"{name} must be at least 1, not {number}")
    if most is not None and number > most:
        raise InvalidBudget(f"{name} must be at most {most:,}, not a number of {number.bit_length()} bits.")
    return number


def whole_pairs(values: Iterable[Iterable[int]]) -> tuple[tuple[int, int], ...]:
    """Pairs of whole numbers, such as where columns start and stop, as a value."""
    return tuple((int(first), int(second)) for first, second in values)


# ── searching ──


def geometric(low: float, high: float) -> float:
    """The geometric mean, for ends that are orders of magnitude apart."""
    return math.sqrt(low * high)


def largest(
    holds: Condition, *, start: float = 1.0, least: float = 2.0**-1000, most: float = 2.0**1000, precision: float = 0.0,
    factor: float = 2.0, middle: Middle | None = None,
) -> float | None:  # fmt: skip
    """The largest number from ``least`` to ``most`` at which the condition holds; None if not even at ``least``.

    Ends are found by multiplying or dividing ``start`` by ``factor``: cheap where an answer near ``start`` is likely. A factor
    below 1 goes the other way, from ``least`` as the larger of the two ends.
    """
    onward, back = (min, max) if factor > 1.0 else (max, min)
    true = false = start
    if holds(start):  # on towards ``most`` while the condition holds
        while true != most and holds(onward(true * factor, most)):
            true = onward(true * factor, most)
        if true == most:
            return most
        false = onward(true * factor, most)
    else:  # back towards ``least`` until it does
        while false != least and not holds(back(false / factor, least)):
            false = back(false / factor, least)
        if false == least:
            return None
        true = back(false / factor, least)
    return narrowed(holds, true=true, false=false, precision=precision, middle=middle)[0]


def smallest(
    holds: Condition, *, start: float = 1.0, least: float = 2.0**-1000, most: float = 2.0**1000, precision: float = 0.0,
    factor: float = 2.0, middle: Middle | None = None,
) -> float | None:  # fmt: skip
    """The smallest number from ``least`` to ``most`` at which the condition holds; None if not even at ``most``."""
    return largest(holds, start=start, least=most, most=least, precision=precision, factor=1.0 / factor, middle=middle)


def narrowed(
    holds: Condition, *, true: float, false: float, precision: float = 0.0, middle: Middle | None = None, steps: int = 3000
) -> tuple[float, float]:  # fmt: skip
    """Two numbers closer together: the condition holds at the first, as it does at ``true``, and fails at the second.

    ``middle`` says where between two numbers it is asked: at their mean, unless another is given. ``steps`` is how often it
    may be asked, where asking is dear.
    """
    for _ in range(steps):
        low, high = min(true, false), max(true, false)
        between = low + (high - low) / 2.0 if middle is None else middle(low, high)
        if high - low <= precision * high or between in (true, false):
            break
        true, false = (between, false) if holds(between) else (true, between)
    return true, false


def crossing(function: Callable[[float], float], low: float, high: float, *, precision: float) -> float:
    """Return where in [low, high] a function changes its sign, by Chandrupatla's method.

    Each step takes the inverse quadratic interpolation of the last three points where these are monotone enough for it
    to converge, and the middle elsewhere. `scipy.optimize` has the like, but takes a tenth of a second to load, which
    every interval of a mean or share would wait for.

    Parameters
    ----------
    function : callable
        Of opposite signs at the two ends, or 0 at one of them.
    low, high : float
        The ends.
    precision : float
        How far the result may be from the crossing, beyond the rounding of floats.
    """
    last, other = (high, function(high)), (low, function(low))
    if 0.0 in (last[1], other[1]):
        return last[0] if last[1] == 0.0 else other[0]
    if (last[1] > 0.0) == (other[1] > 0.0):
        raise WrongCall(
            f"The function has the same sign at {low!r} and {high!r}, so that no crossing lies between them."
        )
    share = 0.5
    while True:
        middle = last[0] + share * (other[0] - last[0])
        value = function(middle)
        if (value > 0.0) == (last[1] > 0.0):
            former, last = last, (middle, value)
        else:
            former, other, last = other, last, (middle, value)
        nearest = min(last, other, key=lambda point: abs(point[1]))
        width = abs(other[0] - last[0])
        least = (precision + 4.0 * 2.0**-52 * abs(nearest[0])) / 2.0
        if nearest[1] == 0.0 or width <= 2.0 * least:
            return nearest[0]
        share = 0.5
        if former[1] not in (last[1], other[1]):
            position = (last[0] - other[0]) / (former[0] - other[0])
            height = (last[1] - other[1]) / (former[1] - other[1])
            if height**2 < position and (1.0 - height) ** 2 < 1.0 - position:
                share = last[1] / (other[1] - last[1]) * former[1] / (other[1] - former[1])
                share += (
                    (former[0] - last[0])
                    / (other[0] - last[0])
                    * last[1]
                    / (former[1] - last[1])
                    * other[1]
                    / (former[1] - other[1])
                )
        share = min(max(share, least / width), 1.0 - least / width)
