"""What "auto" takes, one function for each rule. All of them read public numbers alone.

| decision | rule |
| --- | --- |
| noise on a table, without looking at posterior draws | `noise_is_surely_better` |
| the order of mechanisms for a regression | `ranking_error` |
| draws that take too long | `is_quick_enough` |
| how long paths are whose spread is to give an interval | `choose_path` |
| how wide the prior of such paths is | `prior_of_replicates` |
| a fit, or clipped gradients in its place | `predictors.predictor_of` |
"""

from __future__ import annotations

import math
from collections.abc import Sequence

MAX_SECONDS = 60.0
"""Seconds that draws may take if nobody named the mechanism."""

MEASURED_BONUS = 1.15
"""Factor by which a mechanism that measures the columns may err more in the reference design."""

MAX_WIDTH_RATIO = 1.15
"""Largest ratio of a path's interval to the narrowest one."""

REPLICATED_RELAXATIONS = (12.0, 16.0, 20.0)
"""Lengths, in relaxation times, of paths whose spread is to give an interval."""

REPLICATED_PRIOR_FACTOR = 4.0
"""Factor on the usual scale of the prior of such paths."""


def noise_is_surely_better(*, noise: float, sampling: float, n: int) -> bool:
    """Return whether noise on a table is taken without calibrating a draw from a posterior.

    A draw from a posterior errs by at least √2 times the sampling error, since it is one draw. Noise on exact sums errs by the
    sampling error and the noise together. So noise below 0.9 of the sampling error is better, from 20 records on: with fewer the
    sampling error is not yet that of many records.

    Parameters
    ----------
    noise, sampling : float
        Standard errors of a typical published number, by the noise and by the sample.
    n : int
        Number of records.
    """
    return n >= 20 and noise < 0.9 * sampling


def ranking_error(*, expected: float, measures_columns: bool) -> tuple[bool, float]:
    """Return what mechanisms are sorted by, smallest first.

    The mechanism with the smallest expected error is taken. One that measures the columns may err 1.15 times as much in the
    reference design: columns fill their ranges and do not go together there, which suits mechanisms that rely on it.
    Mechanisms whose error nobody can predict come last.

    Parameters
    ----------
    expected : float
        Expected root mean square error in the reference design; NaN if unknown.
    measures_columns : bool
        Whether the plan measures how the columns spread.
    """
    return math.isnan(expected), expected / (MEASURED_BONUS if measures_columns else 1.0)


def is_quick_enough(*, seconds: float) -> bool:
    """Return whether draws that take this long, by public numbers, may be taken without being named.

    They may take a minute. A time that nobody knows is no reason to refuse.

    Parameters
    ----------
    seconds : float
        Estimated time of all draws; NaN if unknown.
    """
    return not seconds > MAX_SECONDS


def choose_path(*, informed: Sequence[float], half_widths: Sequence[float], least_informed: float) -> int | None:
    """Return which of several paths is taken if the spread of draws is to give an interval; None if none can.

    Paths are sorted from short to long. A path must be informed enough for its interval to be calibrated. Of those whose interval
    is at most 1.15 times the narrowest, the longest is taken, because it remembers least of its start, which must not shift
    the interval.

    Parameters
    ----------
    informed : sequence of float
        Information of one draw of each path, beside its prior's.
    half_widths : sequence of float
        Expected half width of each path's interval.
    least_informed : float
        Information from which an interval is calibrated.
    """
    possible = [index for index, known in enumerate(informed) if known >= least_informed]
    if not possible:
        return None
    narrowest = min(half_widths[index] for index in possible)
    return max(index for index in possible if half_widths[index] <= MAX_WIDTH_RATIO * narrowest)


def prior_of_replicates(*, usual: float, declared: float | None) -> float:
    """Return the prior's scale for draws whose spread is to give an interval.

    A declared scale stays. Otherwise the prior is four times as wide as usual, since it shifts such an interval and no promise
    of a path rests on it.

    Parameters
    ----------
    usual : float
        The scale for a single draw.
    declared : float or None
        The scale that was declared, if any.
    """
    return REPLICATED_PRIOR_FACTOR * usual if declared is None else declared
