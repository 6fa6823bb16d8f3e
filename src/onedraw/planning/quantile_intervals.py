"""Of released quantiles: the interval that was released with them, and the error to expect.

An interval of a quantile needs numbers on both sides of it, which are released within the same spend or not at all: nothing
about the column's density follows from one number. What is known beforehand is the error of the *rank*, as a share of the records: 0.01 means
that the 0.49- or 0.51-quantile is released instead of the median.
"""

from __future__ import annotations

import numpy as np

from onedraw.errors import PromiseRefused
from onedraw.mechanisms import Plan
from onedraw.release import Certificate

from .expectation import Expectation
from .intervals import Interval, Parts


def quantile_interval(certificate: Certificate, plan: Plan, level: float) -> Interval:
    """The ends that were released; they hold for every level up to the one they were planned for."""
    centre = np.array(certificate.draw.values[0], dtype=np.float64)
    stages, planned = certificate.draw.stages, plan.model.interval
    if stages is None:
        raise PromiseRefused(why_no_ends(plan))
    if level > planned:
        raise PromiseRefused(
            f"This release has intervals of {100 * planned:g} %, planned before the records were read. For {100 * level:g} % "
            f"ask for interval={level:g} next time."
        )
    low, high = (np.array(stages[side], dtype=np.float64) for side in ("lower", "upper"))
    # the ends are selections of their own: where they crossed, the released number is inside all the same
    low, high = np.minimum(low, centre), np.maximum(high, centre)
    unknown = np.full(centre.shape, np.nan)
    return Interval(centre, low, high, Parts(unknown, unknown, np.zeros_like(centre)))


def why_no_ends(plan: Plan) -> str:
    """From public numbers alone."""
    if plan.model.interval is None:
        return "no interval was asked for, and all of the budget went to the quantiles. Ask for interval=0.95."
    return (
        f"with n = {plan.n:,} and this budget the ends of an interval would lie outside the records, so all of the budget went "
        "to the quantiles. Ask for fewer quantiles, or spend more."
    )


def why_selected(plan: Plan) -> str:
    """What to expect, in a sentence, from public numbers."""
    levels, selecting = plan.model.levels, plan.mechanism.rank_errors(plan)  # type: ignore[attr-defined]
    level, error = max(zip(levels, selecting, strict=True), key=lambda pair: pair[1])
    sampling = (level * (1.0 - level) / plan.n) ** 0.5
    return (
        f"selection by rank. Expected error of the rank of the {level:g}-quantile: {100 * error:.2g} % of the records from the "
        f"selection, {100 * sampling:.2g} % from sampling. Decided from public numbers, before any record was read."
    )


def expected_quantile_error(plan: Plan) -> Expectation:
    """Root mean squared error of the released ranks, as a share of the records: sampling and selection together, and the
    first alone."""
    selecting = np.array(plan.mechanism.rank_errors(plan))  # type: ignore[attr-defined]
    levels = np.array(plan.model.levels)
    sampling = levels * (1.0 - levels) / plan.n
    return Expectation(float(np.sqrt(np.mean(selecting**2 + sampling))), float(np.sqrt(np.mean(sampling))), 0.0)
