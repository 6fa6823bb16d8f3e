"""The Bayes-optimal membership attack: which of two neighbouring data sets made this draw? (003, Remark 1 and A.5.)

M = 1/(1 + p(θ|D)/p(θ|D')) is the probability of the neighbour D' after seeing θ (errata 20: the remark prints the ratio
itself). The log densities may be unnormalised: the ratio of their normalisers is E_D[p̃_{D'}/p̃_D], estimated from
draws under D that are not counted in the rounds. An error in it moves the threshold and costs power; it never makes the
lower bound invalid, because the rule is fixed before the counted rounds begin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from onedraw.audit import bounds
from onedraw.audit.results import AttackResult
from onedraw.errors import WrongCall
from onedraw.privacy.numbers import positive_integer, probability

Array = NDArray[np.float64]
LogDensity = Callable[[Array], ArrayLike]
Draw = Callable[[int, np.random.Generator, int], ArrayLike]

RESOLUTION = 2.0**-30
"""Log-ratios closer than this are one and the same: the last bits of a sum are no property of a mechanism."""

SWEEP = 16
"""How many thresholds a sweep pays for when the caller names none."""


class NormaliserRatio(NamedTuple):
    """log(Z_{D'}/Z_D) and its standard error; ``effective`` is the number of draws that carried the estimate."""

    value: float
    error: float
    effective: float


def log_normaliser_ratio(logdensity: LogDensity, logdensity_neighbour: LogDensity, draws: ArrayLike) -> NormaliserRatio:
    """log(Z_{D'}/Z_D) = log E_D[p̃_{D'}/p̃_D] from draws under D (003 A.5), with its Monte Carlo error."""
    difference = _difference(logdensity, logdensity_neighbour, as_points(draws))
    finite = difference[~np.isnan(difference)]
    top = float(finite.max(initial=-math.inf))
    if not math.isfinite(top):
        return NormaliserRatio(max(top, 0.0), math.inf, 0.0)
    weights = np.exp(finite - top)
    mean = float(weights.mean())
    spread = float(weights.std(ddof=1)) if len(weights) > 1 else math.inf
    error, effective = spread / (mean * math.sqrt(len(weights))), float(weights.sum() ** 2 / (weights**2).sum())
    return NormaliserRatio(top + math.log(mean), error, effective)


def membership_score(
    logdensity: LogDensity, logdensity_neighbour: LogDensity, draws: ArrayLike, *, log_ratio: float = 0.0
) -> Array:
    """M of each draw, ``log_ratio`` being log(Z_{D'}/Z_D); NaN where a density is undefined."""
    return np.asarray(special.expit(_difference(logdensity, logdensity_neighbour, as_points(draws)) - log_ratio))


def membership_attack(
    draw: Draw, logdensity: LogDensity, logdensity_neighbour: LogDensity, *, rounds: int, calibration_rounds: int,
    threshold: float | Literal["held-out", "sweep"] | ArrayLike = 0.5, delta: float = 0.0, confidence: float = 0.95,
    resolution: float = RESOLUTION, generator: np.random.Generator,
) -> AttackResult:  # fmt: skip
    """Play ``rounds`` rounds, half with each data set, and bound ε from below by the errors made.

    ``draw(which, generator, size)`` gives ``size`` draws, (size,) or (size, d), with which = 0 for D and 1 for D'; the
    log densities take (N, d) to (N,).

    | threshold | what is done |
    | --- | --- |
    | a number | fixed beforehand; 0.5 is the Bayes rule |
    | "held-out" | chosen on ``calibration_rounds`` further draws of each data set, not counted |
    | "sweep", or several numbers | all of them tried, each paid for: limits at α/(2T) |

    Log-ratios are compared to within ``resolution``. With 0 every bit counts, and noise added in floating point betrays
    itself by its last bits (Mironov 2012): a true leak, but of the arithmetic and not of the mechanism.
    """
    half = positive_integer("rounds", rounds) // 2
    positive_integer("calibration_rounds", calibration_rounds)
    bounds.check_rounds(max(half, 1), 0.0, probability("δ", delta), confidence)
    calibrating = as_points(draw(0, generator, calibration_rounds))
    ratio = log_normaliser_ratio(logdensity, logdensity_neighbour, calibrating)
    if not 0.0 <= resolution < math.inf:
        raise WrongCall("resolution is a difference of log-ratios that is ignored: a number of at least 0")
    # A draw outside the domain of the densities is an outcome of its own: whose it is said to be is fixed here.
    seen = bool(np.any(~np.isfinite(calibrating)))

    def play(which: int, size: int) -> tuple[Array, int]:
        points = as_points(draw(which, generator, size))
        difference = _difference(logdensity, logdensity_neighbour, points)
        if resolution > 0.0:
            difference = np.round(difference / resolution) * resolution
        scores = special.expit(difference - ratio.value)
        undefined = np.isnan(scores) | ~np.all(np.isfinite(points), axis=1)
        return np.where(undefined, 0.0 if seen else 1.0, scores), int(undefined.sum())

    kind = threshold if isinstance(threshold, str) else None
    held_out = (play(0, calibration_rounds)[0], play(1, calibration_rounds)[0]) if kind is not None else None
    levels = _levels(threshold, held_out, delta=delta, confidence=confidence)
    (scores0, odd0), (scores1, odd1) = play(0, half), play(1, rounds - half)
    return AttackResult.of(
        bounds.sweep_lower_bound(scores0, scores1, levels, delta, confidence), (scores0, scores1),
        method="membership attack, " + ("fixed threshold" if kind is None and len(levels) == 1 else kind or "sweep"),
        calibration_rounds=calibration_rounds * (1 if held_out is None else 3), non_finite=odd0 + odd1,
        log_normaliser_ratio=ratio.value, log_normaliser_error=ratio.error,
    )  # fmt: skip


def _levels(threshold: Any, held_out: tuple[Array, Array] | None, *, delta: float, confidence: float) -> Array:
    """The thresholds of the counted rounds, fixed without them."""
    if held_out is not None:
        if threshold == "held-out":
            return np.array([bounds.best_threshold(*held_out, delta=delta, confidence=confidence)])
        if threshold == "sweep":
            return np.unique(np.quantile(np.concatenate(held_out), np.linspace(0.0, 1.0, SWEEP + 2)[1:-1]))
        raise WrongCall(f"threshold must be a number, several, 'held-out' or 'sweep', not {threshold!r}")
    levels = np.atleast_1d(np.asarray(threshold, dtype=float))
    if levels.size == 0 or not np.all((levels > 0.0) & (levels < 1.0)):
        raise WrongCall(
            "a threshold on M is a probability strictly between 0 and 1: at 0 or 1 the attack would ignore the draw. "
            "Pass 0.5 for the Bayes rule."
        )
    return levels


def _difference(logdensity: LogDensity, logdensity_neighbour: LogDensity, points: Array) -> Array:
    """log p̃_{D'} − log p̃_D at each draw."""
    with np.errstate(all="ignore"):
        first = np.asarray(logdensity(points), dtype=float).reshape(-1)
        second = np.asarray(logdensity_neighbour(points), dtype=float).reshape(-1)
        if first.shape != second.shape or len(first) != len(points):
            raise WrongCall(
                f"a log density must give one number per draw: {len(points)} draws came back as {len(first)} and "
                f"{len(second)} numbers. It takes an array (N, d) and returns an array (N,)."
            )
        return np.asarray(second - first)


def as_points(draws: ArrayLike) -> Array:
    """Draws as (N, d)."""
    points = np.asarray(draws, dtype=float)
    if points.ndim == 0:
        points = points.reshape(1, 1)
    return points.reshape(len(points), -1)
