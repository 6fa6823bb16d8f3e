"""Why a coefficient of averaged steps has no interval, and which columns cause it. All of it follows from what was published.

A coefficient is refused where directions of the measured columns carry too much of it about which the release says too little
(`StepsResult.given`). Here the direction that carries most is read as columns: those that a step along it moves most, each in
its own deviations. A single rare level can so refuse other coefficients too; its name is then the remedy.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.models.normal_estimates import Reason, Refusal

from .coordinates import LARGEST_PRIOR, First, least_told

if TYPE_CHECKING:
    from .result import StepsResult

MOST_CAUSES = 3
"""Columns that are named for one direction, at most."""

NAMED_SHARE = 0.7
"""Share of a direction that the named columns carry together."""

RARE = 0.05
"""A level that at most this share of the records has is called rare."""

NARROW = 0.25
"""A column whose deviation is at most this share of half its declared range is said to vary little over it."""

ALIKE = 0.8
"""Correlation from which on a column is said to repeat another one."""

EPSILON_FACTORS = (1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)
"""Multiples of ε that are tried as a remedy."""

SHORT_BOUND = 0.75
"""Length of early scores, over √p, below which ordinary records are shortened too."""

ORDINARY = " At this n and ε half the influence limits ordinary records too, so it need not be far-out ones."
HIDDEN = " Columns whose variation the noise hides can cause this too."

VISIBLE = 0.01
"""Probability of a specification test beyond the value from which on dependence is called visible."""


def dependence_words(
    specification: float, size: int, *, hidden: bool = False, short: bool = False, chosen: bool = False
) -> str:
    """Return the specification test as a sentence.

    Without misfit `size` times it is about chi-squared with `size` degrees of freedom, since it is a mean of squares of
    what lies between two averages over its noise. ``hidden`` says that the noise hides other directions: steps do not settle
    along them, which this test may see as well. ``short`` says that ordinary scores are shortened too. ``chosen`` says that
    counts chose how much influence a record has, so that half of it is often too little and the full one is not.
    """
    if math.isnan(specification):
        return ""
    usual = float(special.chdtri(size, VISIBLE)) / size
    figures = f"{specification:.1f}; about 1 if there is none, above {usual:.1f} in 1 of 100 such releases"
    if specification <= usual:
        return f"Dependence on far-out records: none visible ({figures})."
    if chosen:
        return (
            f"Dependence on far-out records: the estimate changes if the influence of single records is halved ({figures}). Few "
            "records exceed the limit that noisy counts chose, so the standard errors allow for at most twice the noise."
            f"{HIDDEN if hidden else ''}"
        )
    return (
        f"Dependence on far-out records: visible ({figures}). The estimate changes if the influence of single records is "
        "halved. The standard errors allow for a difference of this size. Narrower bounds, the logarithm of the response, or more "
        f"records may help.{ORDINARY if short else ''}{HIDDEN if hidden else ''}"
    )


def refusals_of(result: StepsResult) -> tuple[Refusal | None, ...]:
    """Return why each coefficient has no interval, None for those that have one."""
    if result.given.all():
        return (None,) * len(result.change)
    first = result.first
    parts, factors = parts_of(result), factors_of(result)
    width = result.problem.layout.width
    found = {int(k): explained(result, first, int(k) % width) for k in set(parts[~result.given].argmax(axis=1))}
    unsettled = unsettled_of(result, first)
    told = zip(result.given, result.privacy_is_known, parts, factors, strict=True)
    merged = np.append(result.where.merged, np.zeros(int(result.problem.layout.intercept), dtype=bool))
    return tuple(
        None
        if given
        else unsettled[place]
        if place in unsettled
        else replace(found[int(along.argmax())], factor=float(factor))
        if varies
        else Refusal(Reason.MERGED if merged[place % len(merged)] else Reason.CONSTANT)
        for place, (given, varies, along, factor) in enumerate(told)
    )


def unsettled_of(result: StepsResult, first: First) -> dict[int, Refusal]:
    """Return the reason for each coefficient that is refused for the way that steps have left alone."""
    if result.problem.score.continuous or not result.informed:
        return {}
    alone = result.privacy_is_known & ~result.settled & (parts_of(result).sum(axis=1) <= LARGEST_PRIOR)
    left, width = np.abs(result.change * result.way_left), result.problem.layout.width
    return {
        int(place): Refusal(Reason.UNSETTLED, causes_of(result, first, int(left[place].argmax()) % width))
        for place in np.flatnonzero(alone)
    }


def parts_of(result: StepsResult, quieter: float = 1.0) -> Array:
    """Return (coefficients, directions): the share of each coefficient that a direction carries and says too little about.

    With noise that is this many times smaller directions stand out of it that do not now.
    """
    if not result.problem.score.continuous:
        return result.prior_parts(quieter)
    where = result.where
    weak = where.spread < least_told(where.spread_noise / quieter, len(where.spread))
    squares = result.change**2
    carried = squares * np.append(weak, np.zeros(squares.shape[1] - len(weak)))  # of one block: responses are numbers
    return np.asarray(carried / np.maximum(squares.sum(axis=1), 1e-300)[:, None])


def factors_of(result: StepsResult) -> Array:
    """Return about how many times ε would give each coefficient an interval; infinity where none of `EPSILON_FACTORS` does."""
    from .result import WEAK_SHARE

    largest = WEAK_SHARE if result.problem.score.continuous else LARGEST_PRIOR
    factors = np.full(len(result.change), math.inf)
    for factor in reversed(EPSILON_FACTORS):
        if factor >= result.problem.shortage:
            factors[parts_of(result, factor).sum(axis=1) <= largest] = factor
    return factors


def causes_of(result: StepsResult, first: First, direction: int) -> tuple[int, ...]:
    """Return the columns that make up a direction, the largest first; none if it takes too many or is the intercept's."""
    if direction >= len(result.where.spread):
        return ()
    loads = (result.where.root[:, direction] * deviations(first)) ** 2
    order = np.argsort(-loads)
    carried = np.cumsum(loads[order]) / max(float(loads.sum()), 1e-300)
    count = int(np.searchsorted(carried, NAMED_SHARE)) + 1
    return tuple(int(place) for place in order[:count]) if count <= MOST_CAUSES else ()


def deviations(first: First) -> Array:
    """Return the columns' standard deviations by the published moments, at least those of the noise."""
    second = (first.axes * first.values) @ first.axes.T
    return np.asarray(np.sqrt(np.maximum(np.diag(second), first.noise)))


def twin_of(first: First, column: int, numbers: set[int]) -> int | None:
    """Return the number that this column nearly repeats by the published moments, if there is one."""
    second, spread = (first.axes * first.values) @ first.axes.T, deviations(first)
    alike = np.abs(second[column]) / (spread * spread[column])
    others = [place for place in numbers if place != column and alike[place] >= ALIKE]
    return max(others, key=lambda place: float(alike[place])) if others else None


def rare_base(result: StepsResult, first: First, direction: int) -> Refusal | None:
    """Return the reason if a direction moves all levels of a category alike, whose first level few records have."""
    if not result.problem.sizes.mean_noise or direction >= len(result.where.spread):
        return None
    along = result.where.root[:, direction]
    loads = (along * deviations(first)) ** 2
    for start, stop in result.problem.layout.categories:
        shares, moved = np.clip(first.mean[start:stop], 0.0, 1.0), along[start:stop]
        share = 1.0 - float(shares.sum())
        alike = float(shares @ moved) ** 2 / max(float(shares @ moved**2), 1e-300)
        if (
            share <= RARE
            and min(alike, float(loads[start:stop].sum()) / max(float(loads.sum()), 1e-300)) >= NAMED_SHARE
        ):
            return Refusal(Reason.BASE, tuple(range(start, stop)), share=max(share, 0.0))
    return None


def explained(result: StepsResult, first: First, direction: int) -> Refusal:
    """Return what is wrong with the columns along a direction."""
    if (base := rare_base(result, first, direction)) is not None:
        return base
    causes = causes_of(result, first, direction)
    layout, sizes = result.problem.layout, result.problem.sizes
    numbers = set(layout.number_places.tolist())
    levels = [place for place in causes if place not in numbers]
    share, reason = math.nan, Reason.NOISE
    if levels and sizes.mean_noise:
        share = max(0.0, min(float(first.mean[place]) for place in levels))
    if len(causes) == 1 and not levels and (twin := twin_of(first, causes[0], numbers)) is not None:
        causes = (*causes, twin)
    if causes and len(levels) == len(causes) and share <= RARE:
        reason = Reason.RARE
    elif len(causes) > 1 and not levels:
        reason = Reason.ALIKE
    elif len(causes) > 1 and any(set(causes) <= set(range(*ends)) for ends in layout.categories):
        reason = Reason.LEVELS
    elif len(causes) == 1 and not levels and deviations(first)[causes[0]] <= NARROW and layout.ball is None:
        reason = Reason.NARROW
    return Refusal(reason, causes, share=share)
