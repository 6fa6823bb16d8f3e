"""Of released quantiles: the interval that was released with them, and the inter-quartile range.

How wide the interval of a quantile is, is released within the same spend or not at all: nothing about the column's density
follows from one number. What is known beforehand is the error of the *rank*, as a share of the records: 0.01 means
that the 0.49- or 0.51-quantile is released instead of the median.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onedraw.errors import PromiseRefused
from onedraw.methods.intervals import Interval, Published, Spread
from onedraw.plans import Plan


def quantile_interval(plan: Plan, published: Published, level: float) -> Interval:
    """The ends that were released; they hold for every level up to the one they were planned for."""
    centre, stages, planned = published.draws[0], published.stages, plan.model.interval
    if stages is None or "lower" not in stages:
        raise PromiseRefused(why_no_ends(plan))
    if level > planned:
        raise PromiseRefused(
            f"This release has intervals of {100 * planned:g} %, planned before the records were read. For {100 * level:g} % "
            f"ask for interval={level:g} next time."
        )
    low, high = (np.array(stages[side], dtype=np.float64) for side in ("lower", "upper"))
    unknown = np.full(centre.shape, np.nan)
    return Interval(centre, low, high, unknown, unknown)


def inter_quartile_range(plan: Plan, values: Sequence[float], stages: Mapping[str, Any] | None) -> Spread | None:
    """From the released quartiles, where both were asked for.

    It lies between the nearest and the furthest ends of their intervals unless one of them misses: twice what one leaves.
    """
    levels = list(plan.model.levels)
    if not {0.25, 0.75} <= set(levels):
        return None
    first, last = levels.index(0.25), levels.index(0.75)
    value = float(values[last]) - float(values[first])
    if stages is None or "lower" not in stages:
        return Spread(value)
    (low_1, low_3), (high_1, high_3) = (
        [float(stages[side][at]) for at in (first, last)] for side in ("lower", "upper")
    )
    return Spread(value, max(low_3 - high_1, 0.0), high_3 - low_1, round(1.0 - 2.0 * (1.0 - plan.model.interval), 12))


def why_no_ends(plan: Plan) -> str:
    """From public numbers alone."""
    if plan.model.interval is None:
        return "no interval was asked for, and all of the budget went to the quantiles. Ask for interval=0.95."
    return (
        f"with n = {plan.n:,} and this budget no end of an interval could be told from the declared bounds, so all of the budget "
        "went to the quantiles. Ask for fewer quantiles, or spend more."
    )
