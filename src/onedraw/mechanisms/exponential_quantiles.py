"""Quantiles by the exponential mechanism on whole numbers (A. Smith, STOC 2011; McSherry and Talwar, FOCS 2007).

A place v of the lattice is selected with probability ∝ exp(−η·d(v)), d(v) the distance of the wanted rank from the ranks
that v has among the records, [#{x < v}, #{x ≤ v}]: 0 for every place that is a quantile of that level, ties or not.
Replacing a record moves d by at most 1, so the log-ratio has range 2η. Several quantiles share log-many levels
(quantile_tree.py); the width of every interval is one more selection, from a public ladder (quantile_widths.py). Statement and
proof: exponential_quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from onedraw.errors import InvalidModel, PromiseRefused, UnsupportedBudget
from onedraw.models import ColumnQuantiles
from onedraw.plans import Mechanism, Plan, Request, fixed_in_advance
from onedraw.privacy import (
    ZCDP,
    ApproxDP,
    Assumption,
    BoundedRange,
    BoundedRangeCurve,
    Guarantee,
    Neighbours,
    Promise,
    Provenance,
    PureDP,
    RenyiDP,
    compose,
)
from onedraw.privacy.curves import add_curves
from onedraw.privacy.rounding import fraction_up, text

from .quantile_target import BITS, QuantileTarget
from .quantile_tree import UNITS, Node, depth_of, quantile_tree, rank_variances
from .quantile_widths import NO_END, end_ranks, misses
from .stored_plans import register_mechanism

LARGEST_WIDTH = 2**40
LARGEST, SMALLEST = 2.0**10, 2.0**-60
PRECISION = 2.0**-24
MARGIN = 2.0**-23
"""Taken off what a search finds, so that the last digits of another machine do not matter."""

MOST_FLIPPED = 2**25
"""Places up to which permute and flip is used: it takes a random bit for each place that is near enough to count."""

FORGONE = 1.15
"""How many times more might be spent under a weaker promise before permute and flip is given up for it."""

SHARE_OF_INTERVALS = 1.0 / 14.0
"""Of the budget: the error of a quantile's rank grows by 8 % to pay for its interval."""

THEOREM = (
    "the exponential mechanism on ranks (McSherry and Talwar, FOCS 2007; Smith, STOC 2011), for a pure ε by permute and flip "
    "(McKenna and Sheldon, NeurIPS 2020): replacing a record moves every rank distance by at most 1; levels of halving (Kaplan, Schnapp and Stemmer, ICML 2022) and interval widths add up"
)


@register_mechanism
@dataclass(frozen=True)
class ExponentialQuantiles(Mechanism):
    """Exact selection of lattice places by rank; nothing converges, nothing is assumed."""

    title: ClassVar[str] = "exponential mechanism on ranks"
    noun: ClassVar[str] = "estimate"
    requires: ClassVar[str] = "ranks"
    """The plan *is* an algorithm: its only sampler is `RankSelection`."""

    def closed_form(self, model: Any) -> bool:
        return False

    def heading(self, plan: Plan) -> str:
        levels, intervals = len(_widths(plan.parameters)), "width_ends" in plan.parameters
        steps = "one selection" if levels == 1 else f"{len(plan.model.levels)} quantiles in {levels} levels"
        flip = " by permute and flip" if "flip" in plan.parameters else ""
        return f"{self.title}{flip}, {steps}{', and the widths of intervals' if intervals else ''}"

    # ── calibration ────────────────────────────────────────────────────────────────────────────────────────

    def calibrate(self, request: Request) -> Plan:
        _check(request)
        model: Any = request.model
        levels, flip = depth_of(quantile_tree(model.levels)), _flips(request)
        numbers = _level_widths(largest_weights(request, levels, 0, flip=flip))
        if model.interval is not None:
            *shared, end = largest_weights(request, levels, len(model.levels), flip=flip)
            ranks = end_ranks(model, request.n, _weight(_width(end)), flip=flip)
            if any(rank != NO_END for rank in ranks):  # otherwise all of it to the quantiles
                numbers = _level_widths(shared) | {"width_ends": float(_width(end))} | _named(ranks)
        return self._plan(request, numbers | ({"flip": 1.0} if flip else {}))

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        _check(request)
        levels = depth_of(quantile_tree(request.model.levels))  # type: ignore[attr-defined]
        wanted = [f"width_{depth}" for depth in range(1, levels + 1)]
        if "width_ends" in parameters:
            wanted += ["width_ends", *_named([0] * 2 * len(request.model.levels))]  # type: ignore[attr-defined]
        if not set(wanted) <= set(parameters) or parameters.get("flip", 1.0) != 1.0:
            raise PromiseRefused("The plan does not state the numbers its levels need.")
        wanted += ["flip"] if "flip" in parameters else []
        return self._plan(request, {name: parameters[name] for name in wanted})

    def target(self, plan: Plan, summary: Any) -> QuantileTarget:
        numbers, model = plan.parameters, plan.model
        ends = [int(numbers[name]) for name in _named([0] * 2 * len(model.levels))] if "width_ends" in numbers else []
        return QuantileTarget(
            model, summary, quantile_tree(model.levels), widths=tuple(_widths(numbers)),
            width_ends=int(numbers.get("width_ends", 0)), ends=tuple(ends), flip="flip" in numbers,
        )  # fmt: skip

    # ── what is published, and what follows ────────────────────────────────────────────────────────────────

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        size = len(plan.model.levels)
        return {"quantiles": size, "lower": size, "upper": size} if "width_ends" in plan.parameters else {}

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        return np.array(stages["quantiles"], dtype=np.float64)

    def rank_errors(self, plan: Plan) -> list[float]:
        """Of each quantile, the expected error of its rank as a share of the records, where they lie evenly about it."""
        return _rank_errors(
            quantile_tree(plan.model.levels), [float(_weight(width)) for width in _widths(plan.parameters)], plan
        )

    # ── the plan ───────────────────────────────────────────────────────────────────────────────────────────

    def _plan(self, request: Request, stated: Mapping[str, float]) -> Plan:
        widths = {name: _whole(name, value) for name, value in stated.items() if name.startswith("width")}
        model: Any = request.model
        if "width_ends" in widths:
            ranks = [
                _whole(name, stated[name], least=NO_END, most=request.n) for name in _named([0] * 2 * len(model.levels))
            ]
            missed = misses(model, request.n, _weight(widths["width_ends"]), ranks, flip="flip" in stated)
            if missed > (1.0 - model.interval) * (1.0 + 1e-6):
                raise PromiseRefused("The ranks stated for the ends of intervals do not give the level stated.")
        ranges = ranges_of(_widths(widths), widths.get("width_ends", 0), _selected_widths(stated))
        promise = promise_of_ranges(ranges, request.budget, request.records_per_person, flip="flip" in stated)
        spent = {f"epsilon_{depth}": fraction_up(part) for depth, part in enumerate(ranges[: len(_widths(widths))], 1)}
        if "width_ends" in widths:
            spent["epsilon_end"] = fraction_up(ranges[-1])
        guarantee = Guarantee(promise, Neighbours.REPLACE_ONE, request.unit, THEOREM, _assumptions(request))
        return Plan(self, request, tuple({**stated, **spent}.items()), guarantee)


# ── the promise ──────────────────────────────────────────────────────────────────────────────────────────────


def ranges_of(widths: Sequence[int], width_ends: int, intervals: int) -> list[Fraction]:
    """The range of the log-ratios of every level, then of every interval's width, for one replaced record."""
    return [2 * _weight(width) for width in widths] + [2 * _weight(width_ends)] * (intervals if width_ends else 0)


def promise_of_ranges(ranges: Sequence[Fraction], budget: Promise, records_per_person: int, *, flip: bool) -> Promise:
    """One selection keeps its range; several add up, as a pure ε or, where that is not asked for, as Rényi curves.
    Permute and flip keeps a pure ε and nothing more."""
    parts = [part * records_per_person for part in ranges]
    if len(parts) == 1 and not flip:
        return BoundedRange(fraction_up(parts[0]))
    if flip or _pure(budget):
        return PureDP(fraction_up(sum(parts, Fraction(0))))
    return compose(*(RenyiDP(BoundedRangeCurve(fraction_up(part))) for part in parts))


def largest_weights(request: Request, levels: int, intervals: int, *, flip: bool) -> list[float]:
    """η of every level, and last of an interval where there are any: the largest that the budget allows."""
    parts = _parts(levels, intervals)
    total = _largest_total(request.budget, parts, request.records_per_person, flip)
    return [total * part / 2.0 for part in parts[: levels + min(intervals, 1)]]


def _parts(levels: int, intervals: int) -> tuple[float, ...]:
    """Of the sum of all ranges, what every level has, and every interval."""
    share = SHARE_OF_INTERVALS if intervals else 0.0
    return ((1.0 - share) / levels,) * levels + (share / max(intervals, 1),) * intervals


@lru_cache(maxsize=256)
def _largest_total(budget: Promise, parts: tuple[float, ...], records_per_person: int, flip: bool) -> float:
    """Σ of the ranges, for one record, with which the budget is kept."""
    if len(parts) == 1 and isinstance(budget, BoundedRange | PureDP):
        return budget.stated_epsilon / records_per_person
    if flip or _pure(budget):
        stated = budget.stated_epsilon / (2.0 if isinstance(budget, BoundedRange) else 1.0)  # type: ignore[attr-defined]
        return float(stated / records_per_person * (1.0 - MARGIN))

    def keeps(total: float) -> bool:
        ranges = [total * part * records_per_person for part in parts]
        if len(ranges) == 1:
            return BoundedRange(ranges[0]).implies(budget)
        return RenyiDP(add_curves((BoundedRangeCurve(part), 1) for part in ranges)).implies(budget)

    low, high = SMALLEST, LARGEST
    if not keeps(low):
        raise PromiseRefused(
            f"{budget} leaves a selection a range below {text(low)}: the records would not matter. Use a larger budget."
        )
    while high - low > PRECISION * low:
        middle = (low * high) ** 0.5 if high > 2.0 * low else low + (high - low) / 2.0
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low * (1.0 - MARGIN)


def _flips(request: Request) -> bool:
    """Whether permute and flip is used: where a pure ε is asked for, or hardly more could be spent on something weaker.

    It is up to twice as near where places are few, and the same on a fine lattice; but it keeps a pure ε only.
    """
    model: Any = request.model
    if model.steps >= MOST_FLIPPED or not isinstance(request.budget, PureDP | ApproxDP):
        return False
    parts = _parts(depth_of(quantile_tree(model.levels)), len(model.levels) if model.interval else 0)
    weaker = _largest_total(request.budget, parts, request.records_per_person, False)
    return bool(weaker <= FORGONE * _largest_total(request.budget, parts, request.records_per_person, True))


def _level_widths(weights: Sequence[float]) -> dict[str, float]:
    return {f"width_{depth}": float(_width(weight)) for depth, weight in enumerate(weights, 1)}


def _width(weight: float) -> int:
    return int(Fraction(weight) * 2**BITS / UNITS)


def _pure(budget: Promise) -> bool:
    return isinstance(budget, PureDP | BoundedRange) or (isinstance(budget, ApproxDP) and budget.stated_delta == 0.0)


def _rank_errors(root: Node, weights: Sequence[float], plan: Plan) -> list[float]:
    variances = rank_variances(root, tuple(float(weight) for weight in weights), len(plan.model.levels))
    return [math.sqrt(variance) / plan.n for variance in variances]


# ── small questions ──────────────────────────────────────────────────────────────────────────────────────────


def _weight(width: int) -> Fraction:
    """η: what one record is worth, of a width of so many lattice steps for one unit of rank."""
    return Fraction(width * UNITS, 2**BITS)


def _widths(numbers: Mapping[str, float]) -> list[int]:
    return [int(value) for name, value in numbers.items() if name.startswith("width_") and name != "width_ends"]


def _named(ranks: Sequence[int]) -> dict[str, float]:
    half = len(ranks) // 2
    names = [f"{side}_rank_{index}" for side in ("lower", "upper") for index in range(1, half + 1)]
    return dict(zip(names, map(float, ranks), strict=True))


def _selected_widths(numbers: Mapping[str, float]) -> int:
    """Of how many quantiles an end lies among the records, so that a width is selected."""
    ranks = [value for name, value in numbers.items() if "_rank_" in name]
    half = len(ranks) // 2
    return sum((low, high) != (NO_END, NO_END) for low, high in zip(ranks[:half], ranks[half:], strict=True))


def _whole(name: str, value: float, least: int = 1, most: int = LARGEST_WIDTH) -> int:
    if not (least <= value <= most and value == int(value)):
        raise PromiseRefused(
            f"The plan's {name} is not a whole number from {least} to {most:,}. The budget is too small or too large for this "
            "mechanism's lattice; use another."
        )
    return int(value)


def _check(request: Request) -> None:
    if not isinstance(request.model, ColumnQuantiles):
        raise InvalidModel(
            f"ExponentialQuantiles selects quantiles of one column, but a {type(request.model).__name__} came. Use "
            "models.ColumnQuantiles(levels, lower, upper)."
        )
    if not isinstance(request.budget, PureDP | BoundedRange | ZCDP | RenyiDP | ApproxDP):
        raise UnsupportedBudget(
            f"The exponential mechanism is calibrated to PureDP, BoundedRange, ZCDP, RenyiDP or ApproxDP, but {request.budget} "
            "came. Use PureDP(epsilon), ZCDP(rho) or ApproxDP(epsilon, delta)."
        )
    if request.gamma:
        raise UnsupportedBudget("Quantiles are selected exactly and need no reserve; leave out gamma.")
    if request.draws != 1:
        raise PromiseRefused(
            "Quantiles are released once: further draws of the same ranks would only share the budget. Use draws=1."
        )
    if (request.model.steps + 1) * request.n >= 2**61:
        raise PromiseRefused(
            f"{request.n:,} records on {request.model.steps:,} lattice steps are more than whole numbers of 64 bits hold. "
            "Declare a coarser step."
        )


def _assumptions(request: Request) -> tuple[Assumption, ...]:
    return (
        *fixed_in_advance(request, "levels, bounds, step"),
        Assumption("every record is clamped to the range and rounded to the lattice by itself", Provenance.ENFORCED),
        Assumption("selections are exact, on whole numbers; ties are spread in a fixed order", Provenance.ENFORCED),
    )  # fmt: skip
