"""Bounds of number columns from one charged release: post-processing of noisy counts of magnitudes.

A `MagnitudeTable` with noise says how many records have each magnitude, on one public grid for all columns. `bounds_of` reads bounds off
it by a public rule, which gives an answer for every data set and costs nothing. Proof and error probabilities: private_bounds.md.

1. A magnitude is *seen* if its noisy count reaches ``seen``: with probability 99% no magnitude without records does, of a column.
2. From the seen ones outwards, the next magnitude is taken too as long as its noisy count reaches ``beside``, which one without
   records does in 5 of 100 cases.
3. The bounds are the grid's numbers around all of these. If no magnitude is seen, the one with the largest noisy count stands for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onedraw.arrays import Array
from onedraw.data.magnitudes import LEVELS, MISSING, PLACES, ends_of
from onedraw.errors import WrongCall
from onedraw.models import MagnitudeTable
from onedraw.plans import Plan

from .certificate import Certificate

FALSE_ALARM = 0.01
"""Probability, for each column, that a magnitude without records is seen."""

FALSE_STEP = 0.05
"""Probability that the next magnitude, without records, is taken too."""

LEVEL = 0.95
"""Confidence of the largest share that the bounds are said to clip."""


@dataclass(frozen=True)
class PrivateBounds:
    """Bounds of one column: numbers of the grid, and what they are expected to cost.

    Parameters
    ----------
    lower, upper : float
        The bounds, 0 or plus or minus a power of two.
    clipped : float
        Estimated share of the known records that lie outside; about these records, from the noisy counts.
    clipped_at_most : float
        The same, with noise allowed for: the upper end of a one-sided 95% interval.
    missing : float
        Estimated share of records whose cell is missing.
    """

    lower: float
    upper: float
    clipped: float
    clipped_at_most: float
    missing: float


def thresholds(plan: Plan) -> tuple[float, float]:
    """Return (seen, beside): the noisy counts from which a magnitude is taken, by itself or beside one that is."""
    quantile = plan.mechanism.noise_quantile
    return quantile(plan, 1.0 - 2.0 * FALSE_ALARM / PLACES), quantile(plan, 1.0 - 2.0 * FALSE_STEP)


def bounds_of(certificate: Certificate, plan: Plan) -> dict[str, PrivateBounds]:
    """Return the bounds of each column of a release of magnitudes."""
    if not isinstance(plan.model, MagnitudeTable):
        raise WrongCall(
            "This release is no count of magnitudes, so no bounds follow from it. Make one with onedraw.private_bounds."
        )
    noisy = plan.mechanism.noisy_sums(plan, certificate.draw.stages or {})[0].reshape(-1, LEVELS)
    return {name: bounds_from(row, plan) for name, row in zip(plan.model.names, noisy, strict=True)}


def bounds_from(noisy: Array, plan: Plan) -> PrivateBounds:
    """Return the bounds of one column by its noisy counts."""
    seen, beside = thresholds(plan)
    counts = noisy[:PLACES]
    places = np.flatnonzero(counts >= seen)
    if not len(places):
        places = np.array([int(np.argmax(counts))])
    low, high = int(places[0]), int(places[-1])
    while low > 0 and counts[low - 1] >= beside:
        low -= 1
    while high + 1 < PLACES and counts[high + 1] >= beside:
        high += 1
    lower, upper = ends_of(low)[0], ends_of(high)[1]
    if lower == upper:  # nothing but zeros was seen
        upper = 1.0
    known = max(plan.n - float(noisy[MISSING]), 1.0)
    within, beyond = high + 1 - low, PLACES - (high + 1 - low)
    # n is public, so what lies outside is also what is neither inside nor missing: by whichever sum has fewer noisy terms
    inside = float(counts[low : high + 1].sum())
    outside = plan.n - float(noisy[MISSING]) - inside if within + 1 < beyond else float(counts.sum()) - inside
    error = plan.mechanism.noise_quantile(plan, 2.0 * LEVEL - 1.0, min(within + 1, beyond)) if beyond else 0.0
    clipped, most = (min(max(value / known, 0.0), 1.0) for value in (outside, outside + error))
    return PrivateBounds(lower, upper, clipped, most, min(max(float(noisy[MISSING]) / plan.n, 0.0), 1.0))


def check_worthwhile(plan: Plan) -> None:
    """Refuse, by public numbers, a budget under which a magnitude that a quarter of the records share may not be seen."""
    seen, _ = thresholds(plan)
    if seen > plan.n / 4.0:
        factor = seen / (plan.n / 4.0)
        raise WrongCall(
            f"With n = {plan.n:,} and {plan.budget} only magnitudes that about {math.ceil(seen):,} records share stand out of the noise, so "
            f"the bounds would be luck. Nothing was charged. Use about {math.ceil(10 * factor) / 10:g} times this ε, or fewer columns, or "
            "declare the bounds from what is public."
        )
