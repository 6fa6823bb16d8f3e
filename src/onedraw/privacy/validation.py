"""The ranges of the numbers a promise is made of, each refused with the same four-part message."""

from __future__ import annotations

import math
import operator
from typing import Any

from onedraw.errors import InvalidBudget


def real(name: str, value: Any) -> float:
    """Any real number that is not a truth value, as a float."""
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidBudget(f"{name} must be a real number, not a {type(value).__name__}: pass a float.") from None


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    number = real(name, value)
    if not (math.isfinite(number) and number > 0.0):
        raise InvalidBudget(
            f"{name} must be a finite number above 0, not {number!r}: at 0 the release would not depend on the data, at "
            f"infinity nothing is promised. Choose {name} > 0."
        )
    return number


def not_negative(name: str, value: Any) -> float:
    """A finite number of at least zero."""
    number = real(name, value)
    if not 0.0 <= number < math.inf:
        raise InvalidBudget(f"{name} must be a finite number of at least 0, not {number!r}")
    return number + 0.0  # −0.0 becomes 0.0: equal promises look equal


def probability(name: str, value: Any) -> float:
    """A number in [0, 1)."""
    number = real(name, value)
    if not 0.0 <= number < 1.0:
        raise InvalidBudget(
            f"{name} must lie in [0, 1), not {number!r}: it is a probability of failure. Choose a small number, such as 1e-6."
        )
    return number


def epsilon_argument(value: Any) -> float:
    """An ε at which a profile is asked for: zero and ∞ are meaningful there."""
    number = real("ε", value)
    if not number >= 0.0:
        raise InvalidBudget(f"a profile δ(ε) is asked for at ε ≥ 0, not {number!r}. Ask at ε ≥ 0.")
    return number


def strictly_above_one(name: str, value: Any) -> float:
    """A finite Rényi order."""
    number = real(name, value)
    if not 1.0 < number < math.inf:
        raise InvalidBudget(
            f"{name} must be a finite number above 1, not {number!r}: only such orders are promises here."
        )
    return number


def positive_integer(name: str, value: Any) -> int:
    """A whole number of at least one."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InvalidBudget(f"{name} must be a whole number, not a {type(value).__name__}") from None
    if number < 1:
        raise InvalidBudget(f"{name} must be at least 1, not {number}")
    return number
