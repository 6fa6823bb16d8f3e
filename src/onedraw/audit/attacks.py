"""Attacks: which of two neighbouring data sets made a draw? By their densities, or by nothing but draws.

**The Bayes-optimal membership attack** (003, Remark 1 and A.5).
M = 1/(1 + p(θ|D)/p(θ|D')) is the probability of the neighbour D' after seeing θ (errata 20: the remark prints the ratio
itself). The log densities may be unnormalised: the ratio of their normalisers is E_D[p̃_{D'}/p̃_D], estimated from
draws under D that are not counted in the rounds. An error in it moves the threshold and costs power; it never makes the
lower bound invalid, because the rule is fixed before the counted rounds begin.

**Black boxes**: choose an event on some draws, count it on the others.
An event E with P(E) > e^ε P'(E) + δ breaks (ε, δ). The event is *chosen* on one half of the draws (a score learned on a
quarter, its threshold on another quarter) and *counted* on the other half, so the Clopper–Pearson limits hold whatever
was chosen (sample splitting; the same care as DP-Sniper, Bichsel et al. 2021). Counting on the draws that chose it
would prove anything. Draws that are not finite are an outcome like any other: a mechanism that gives NaN for one data set only is caught.

**Learned scores**: which data set does a draw look like? The one file of this package that meets scikit-learn.
Two learners, both of scikit-learn: logistic regression on the draws and their squares (shifts and scales, in any
dimension) and gradient-boosted trees (anything else). How well they learn bears on power only, never on validity: the
event is fixed before the counted draws are looked at.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from onedraw.arrays import Array, Integers
from onedraw.audit import bounds
from onedraw.audit.results import AttackResult
from onedraw.errors import WrongCall
from onedraw.privacy.numbers import positive_integer, probability

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
    points = np.atleast_1d(np.asarray(draws, dtype=float))
    return points.reshape(len(points), -1)


# ── black boxes ──

Scorer = Callable[[Array], Array]
Method = Literal["histogram", "classifier"]

_DISTINCT = 64
"""Up to so many distinct draws each is a cell of its own; beyond, cells are quantile intervals."""


def blackbox_lower_bound(
    mechanism: Callable[..., Any], dataset: Any, neighbour: Any, *, rounds: int, delta: float = 0.0,
    confidence: float = 0.95, method: Method = "histogram", generator: np.random.Generator,
) -> AttackResult:  # fmt: skip
    """A lower bound on ε at δ from ``rounds`` draws in all, half from each data set, half of those counted.

    ``mechanism(dataset, generator)`` gives one draw, a number or an array; a mechanism with a parameter called ``size``
    is asked for many at once, along the first axis. What it raises is not caught.
    """
    half = positive_integer("rounds", rounds) // 2
    bounds.check_rounds(max(half // 2, 1), 0.0, probability("δ", delta), confidence)
    draws0 = many_draws(mechanism, dataset, half, generator)
    draws1 = many_draws(mechanism, neighbour, rounds - half, generator)
    return attack_draws(draws0, draws1, delta=delta, confidence=confidence, method=method)


def attack_draws(
    draws0: ArrayLike, draws1: ArrayLike, *, delta: float = 0.0, confidence: float = 0.95, method: Method = "histogram"
) -> AttackResult:
    """The same from independent draws already made, of each data set: the first half chooses, the rest is counted."""
    first, second = as_points(draws0), as_points(draws1)
    if first.shape[1] != second.shape[1]:
        raise WrongCall(
            f"draws of one mechanism have one size, here {first.shape[1]} and {second.shape[1]} numbers: the size of a draw "
            "is public, so it must not depend on the records"
        )
    (learn0, choose0, count0), (learn1, choose1, count1) = _split(first), _split(second)
    if min(len(learn0), len(learn1)) == 0:
        raise WrongCall("an attack needs at least 4 draws of each data set: two choose the event, the rest is counted")
    delta = probability("δ", delta)
    if method not in SCORERS:
        raise WrongCall(f"the methods are {' and '.join(map(repr, SCORERS))}, not {method!r}")
    chosen: list[tuple[float, Scorer, float]] = []
    for scorer in SCORERS[method](learn0, learn1):
        scores = scorer(choose0), scorer(choose1)
        threshold = bounds.best_threshold(*scores, delta=delta, confidence=confidence)
        shown = bounds.sweep_lower_bound(*scores, [threshold], delta, confidence).epsilon_lower_bound
        chosen.append((shown, scorer, threshold))
    _, scorer, threshold = max(chosen, key=lambda one: one[0])
    scores = scorer(count0), scorer(count1)
    return AttackResult.of(
        bounds.sweep_lower_bound(*scores, [threshold], delta, confidence), scores, method=method,
        calibration_rounds=len(learn0) + len(learn1) + len(choose0) + len(choose1),
        non_finite=sum(int(np.sum(~np.isfinite(count).all(axis=1))) for count in (count0, count1)),
    )  # fmt: skip


def many_draws(mechanism: Callable[..., Any], dataset: Any, size: int, generator: np.random.Generator) -> Array:
    """``size`` draws as (size, d), asked for at once where the mechanism can."""
    try:
        at_once = "size" in inspect.signature(mechanism).parameters
    except (TypeError, ValueError):
        at_once = False
    if at_once:
        points = as_points(mechanism(dataset, generator, size=size))
        if len(points) != size:
            raise WrongCall(f"{size} draws were asked of the mechanism at once, but {len(points)} were given")
        return points
    return as_points(np.array([np.ravel(mechanism(dataset, generator)) for _ in range(size)], dtype=float))


def _split(draws: Array) -> tuple[Array, Array, Array]:
    """A quarter to learn a score, a quarter to choose its threshold, half to count."""
    quarter = len(draws) // 4
    return draws[:quarter], draws[quarter : 2 * quarter], draws[2 * quarter :]


def histogram_scorer(draws0: Array, draws1: Array) -> Scorer:
    """The log ratio of smoothed cell frequencies, with cells learned from these draws."""
    cells = _cells(np.concatenate([draws0, draws1]))
    count0 = np.bincount(cells(draws0), minlength=cells.number)
    count1 = np.bincount(cells(draws1), minlength=cells.number)
    # Half a count more in each cell: an empty cell is weak evidence, not infinite evidence.
    scores = np.log((count1 + 0.5) / (len(draws1) + 0.5)) - np.log((count0 + 0.5) / (len(draws0) + 0.5))
    return lambda draws: np.asarray(scores[cells(draws)])


class _Cells:
    """A partition of the outcomes: three cells for what is not finite, then cells of the coordinates given."""

    def __init__(self, coordinates: Callable[[Array], Array], edges: list[Array]) -> None:
        self._coordinates, self._edges = coordinates, edges
        self.number = 3 + int(np.prod([len(edge) + 1 for edge in edges]))

    def __call__(self, draws: Array) -> Integers:
        kinds = [np.isnan(draws).any(axis=1), (draws == np.inf).any(axis=1), (draws == -np.inf).any(axis=1)]
        place = np.select(kinds, [0, 1, 2], default=-1).astype(np.int64)
        usual = place < 0
        values = self._coordinates(draws[usual])
        inside = np.zeros(len(values), dtype=np.int64)
        for column, edge in enumerate(self._edges):
            inside = inside * (len(edge) + 1) + np.searchsorted(edge, values[:, column], side="right")
        place[usual] = 3 + inside
        return place


def _cells(pooled: Array) -> _Cells:
    finite = pooled[np.isfinite(pooled).all(axis=1)]
    if len(finite) == 0:
        return _Cells(lambda draws: draws[:, :1], [np.array([])])
    number = int(np.clip(np.sqrt(len(finite)) / 2.0, 8, 64))
    coordinates, columns = _coordinates(finite)
    each = number if columns == 1 else max(4, int(np.sqrt(2 * number)))
    values = coordinates(finite)
    return _Cells(coordinates, [_edges(values[:, column], each) for column in range(columns)])


def _coordinates(finite: Array) -> tuple[Callable[[Array], Array], int]:
    """The draw itself in d ≤ 2; in more dimensions the sum of scaled coordinates and the distance from the middle."""
    if finite.shape[1] <= 2:
        return lambda draws: draws, finite.shape[1]
    centre = np.median(finite, axis=0)
    scale = np.maximum(np.subtract(*np.quantile(finite, [0.75, 0.25], axis=0)), 1e-300)

    def project(draws: Array) -> Array:
        scaled = np.clip((draws - centre) / scale, -1e6, 1e6)
        return np.stack([scaled.sum(axis=1), np.linalg.norm(scaled, axis=1)], axis=1)

    return project, 2


def _edges(values: Array, number: int) -> Array:
    """Between distinct values where there are few, else quantiles, finer towards the tails."""
    distinct = np.unique(values)
    if len(distinct) <= _DISTINCT:
        return np.asarray(distinct[1:])
    levels = np.linspace(0.0, 1.0, number + 1)[1:-1]
    tails = np.array([0.25, 0.5]) / number
    return np.unique(np.quantile(values, np.concatenate([tails, levels, 1.0 - tails])))


# ── learned scores ──

_LARGEST_TRAINING_SET = 20_000
_CLIP = 50.0


def learned_scorers(draws0: Array, draws1: Array) -> list[Scorer]:
    """One score per learner, fitted on these draws; large where a draw looks like the second data set's."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    half = _LARGEST_TRAINING_SET // 2
    draws0, draws1 = draws0[:half], draws1[:half]
    prepare = _scaling(np.concatenate([draws0, draws1]))
    features = prepare(np.concatenate([draws0, draws1]))
    labels = np.repeat([0, 1], [len(draws0), len(draws1)])
    linear = LogisticRegression(C=10.0, max_iter=500).fit(_with_squares(features), labels)
    trees = HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=15, min_samples_leaf=max(5, min(50, len(labels) // 40)), early_stopping=False,
        random_state=0,
    )  # fmt: skip
    with _one_thread():
        trees.fit(features, labels)

    def by_trees(draws: Array) -> Array:
        with _one_thread():
            return np.asarray(trees.decision_function(prepare(draws)), dtype=float)

    return [lambda draws: np.asarray(linear.decision_function(_with_squares(prepare(draws))), dtype=float), by_trees]


def _one_thread() -> Any:
    """Threads that wait for each other on a busy machine cost more than these small fits."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1)


def _scaling(draws: Array) -> Callable[[Array], Array]:
    """Draws to features of about unit size; what is not finite becomes an indicator of its own."""
    finite = np.where(np.isfinite(draws), draws, np.nan)
    known = ~np.all(np.isnan(finite), axis=0)
    centre, scale = np.zeros(draws.shape[1]), np.ones(draws.shape[1])
    if np.any(known):
        low, middle, high = np.nanquantile(finite[:, known], [0.25, 0.5, 0.75], axis=0)
        centre[known] = middle
        scale[known] = np.where(high > low, high - low, 1.0)

    def prepare(values: Array) -> Array:
        usual = np.isfinite(values)
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.clip((np.where(usual, values, centre) - centre) / scale, -_CLIP, _CLIP)
        odd = [np.isnan(values), values == np.inf, values == -np.inf]
        return np.concatenate([scaled, *(kind.astype(float) for kind in odd)], axis=1)

    return prepare


def _with_squares(features: Array) -> Array:
    return np.concatenate([features, np.sign(features) * np.sqrt(np.abs(features)), features**2 / _CLIP], axis=1)


SCORERS: dict[str, Callable[[Array, Array], list[Scorer]]] = {
    "histogram": lambda draws0, draws1: [histogram_scorer(draws0, draws1)],
    "classifier": learned_scorers,
}
