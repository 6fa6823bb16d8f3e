"""What calibrations share: searches for the most that a budget allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.plans import Request
from onedraw.privacy import ZCDP, Promise, numbers
from onedraw.privacy.numbers import text

SMALLEST = 2.0**-60
"""Below this weight the records would not matter in floating-point arithmetic."""

PRECISION = 2.0**-40
"""How close, relatively, the search comes to the largest value the budget allows."""

MARGIN = 2.0**-38
"""Taken off the value found, so that another machine, with other last digits, accepts it too."""

RANGE_PRECISION, RANGE_MARGIN = 2.0**-24, 2.0**-23
"""The same for the range of a selection, whose costs lie on a coarser lattice."""

LARGEST_EFFECT = 100.0
"""A predictor of this standard deviation leaves no doubt about nearly any response, so no curvature to plan with."""


def largest(keeps: Callable[[float], bool]) -> float | None:
    """The largest value in (0, 1] that ``keeps`` the budget, rounded down; None if not even a tiny one does.

    ``keeps`` must be true up to some value and false beyond it.
    """
    found = numbers.largest(keeps, least=SMALLEST, most=1.0, precision=PRECISION)
    return found if found is None or found == 1.0 else found * (1.0 - MARGIN)


def check_selects(request: Request) -> None:
    """Refuse what selections cannot keep: they promise ranges, whose ε and whose Rényi curves add up, and are exact."""
    budget = request.budget
    if not (budget.is_pure or ZCDP(1e-290).implies(budget)):
        raise UnsupportedBudget(
            "Selections keep PureDP, BoundedRange, ZCDP, RenyiDP or ApproxDP, and nothing they promise is proven to "
            f"imply {budget}. Use PureDP(epsilon), ZCDP(rho) or ApproxDP(epsilon, delta)."
        )
    if request.gamma:
        raise UnsupportedBudget("Selections are exact and need no reserve; leave out gamma.")


def known_curvature(model: Any, found: float | None) -> float:
    """λ of the public design, by which weights, times, steps and candidates are planned; refused where nothing is known of it."""
    if found is None:
        raise UnsupportedBudget(
            f"Nothing public is known about how much curvature a record of {type(model).__name__} has, so that nothing can be planned by "
            "it. Declare data_norm=… or bounds=… of features that vary, or use a smooth loss."
        )
    return found


def check_effect(effect: float | None, instead: str) -> None:
    """Refuse a declared standard deviation of the predictor that nothing can be planned with."""
    if effect is not None and effect > LARGEST_EFFECT:
        raise WrongCall(
            f"effect is the standard deviation of the linear predictor and at most {LARGEST_EFFECT:g}, but {effect:.6g} "
            "was given: with nearly every response certain there is no curvature to plan with. Declare 1 to 3, which "
            f"covers most studies, or pass {instead} yourself."
        )


def whole_number(parameters: Mapping[str, float], name: str, least: int, most: int) -> int:
    """A plan's number of this name, refused unless it is whole and in its range."""
    value = parameters.get(name, math.nan)
    if not (least <= value <= most and value == int(value)):
        raise PromiseRefused(
            f"The plan's {name} is not a whole number from {least} to {most:,}: it is not stated, or the budget is too "
            "small or too large for this mechanism's lattice."
        )
    return int(value)


def largest_range(keeps: Callable[[float], bool], budget: Promise, what: str, least: float = SMALLEST) -> float:
    """The largest range of log-ratios with which selections keep the budget; refused if not even a tiny one does."""
    if not keeps(least):
        raise PromiseRefused(
            f"{budget} leaves {what} a range below {text(least)}: the records would not matter. Use a larger budget."
        )
    # Budgets span many orders of magnitude: the exponent is halved first.
    low, high = numbers.narrowed(keeps, true=least, false=2.0**10, precision=0.5, middle=numbers.geometric)
    return numbers.narrowed(keeps, true=low, false=high, precision=RANGE_PRECISION)[0]


def largest_number(kind: Callable[[float], Promise], budget: Promise) -> float:
    """The largest number with ``kind(number)`` ⇒ budget, rounded down; refused if there is none."""
    found = budget.allows(kind)
    if found:
        return found
    raise PromiseRefused(
        f"No {getattr(kind, '__name__', 'promise')} is proven to imply {budget}, however small its number. Choose "
        "another kind of budget, or one with a δ above 0."
    )
