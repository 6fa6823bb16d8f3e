"""Attacks that see nothing but draws: choose an event on some of them, count it on the others.

An event E with P(E) > e^ε P'(E) + δ breaks (ε, δ). The event is *chosen* on one half of the draws (a score learned on a
quarter, its threshold on another quarter) and *counted* on the other half, so the Clopper–Pearson limits hold whatever
was chosen (sample splitting; the same care as DP-Sniper, Bichsel et al. 2021). Counting on the draws that chose it
would prove anything.

Draws that are not finite are an outcome like any other: a mechanism that gives NaN for one data set only is caught.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onedraw.audit import bounds
from onedraw.audit.classifier import learned_scorers
from onedraw.audit.membership import as_points
from onedraw.audit.results import AttackResult
from onedraw.errors import WrongCall
from onedraw.privacy.numbers import positive_integer, probability

Array = NDArray[np.float64]
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

    def __call__(self, draws: Array) -> NDArray[np.int64]:
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


SCORERS: dict[str, Callable[[Array, Array], list[Scorer]]] = {
    "histogram": lambda draws0, draws1: [histogram_scorer(draws0, draws1)],
    "classifier": learned_scorers,
}
