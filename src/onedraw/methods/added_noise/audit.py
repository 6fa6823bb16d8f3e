"""Plain noise on tables, written down again: the laws of noisy whole sums on two tables that differ in one record.

Only the coordinates that the record moves matter, by h. For Laplace noise each of them is a law of its own, and beyond
the two sums its log-ratio no longer changes, so a few outcomes say everything; for Gaussian noise the log-ratio is a
function of ⟨h, y⟩ alone. Where h is many steps long, outcomes are merged into cells, which can only hide information.

The worst record goes from one level (or one group) to another, from one end of the range to the other; for a variance
from an end to where (2 − s)(1 + ws) is largest. The fault divides the noise: half of it is a sensitivity of 1 in place
of 2.

Noise on squares about a released mean is a law in two stages. All other records are at the low end, and one goes to the
high end. Where the noisy sum is no larger than that of the low end alone, the center is the low end itself and the
squares are farthest apart; all other outcomes of the first stage are kept without their squares, which hides information.

Magnitudes of several columns are one such table: the worst record has another magnitude in every column.

Evaluations are such tables too: counts of class by score, where the worst record leaves one cell for another; or sums
of responses and squared errors, where it moves the response from an end of its range to where 2|Δv| + 3|Δv²| is largest
(Laplace), or to the other end (Gaussian), and its error from none to the largest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from onedraw import audit
from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, Pair
from onedraw.audit.cases.laws import normal_cells
from onedraw.methods.added_noise import AddedNoise, CenteredNoise
from onedraw.methods.base import calibrate
from onedraw.methods.catalog import cases_of
from onedraw.models import CategoryTable, Grouped, MagnitudeTable, NumberTable
from onedraw.models.tables.category_table import LARGEST
from onedraw.models.tables.scores import ClassifierScores, Judged, RegressorScores
from onedraw.plans import Plan
from onedraw.privacy import Promise

RANGE = 2**30
"""Steps of a number's place, as number_table.py has them."""

MOST_OUTCOMES = 2000
REACH = 14.0
"""Deviations that a Gaussian is followed."""

ATTAINED = "the record goes from one cell, or one end of its range, to another: as far as the sums can move"


class NoiseCase(Case):
    """The profile of a pair: a finite one, of the coordinates that the replaced record moves."""

    noises: ClassVar[tuple[str, ...]] = ("scale",)

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        scale, law = self.numbers(factor)["scale"], law_of(self.plan)
        moved = self.moved(pair) * self.plan.parameters["refinement"]
        return audit.finite_profile(*(laplace if law == "laplace" else gaussian)(moved[moved != 0.0], scale))

    def moved(self, pair: Pair) -> Array:
        """The weighted sums' difference, from the two records that differ."""
        return np.asarray(self.share(pair.first) - self.share(pair.second), dtype=np.float64)

    def share(self, data: Any) -> Array:
        """What the last record adds: (groups, block) flattened."""
        table = self.plan.model
        groups = tuple(int(codes[-1]) for codes in data.codes) if isinstance(data, Grouped) else ()
        value = (data.values if isinstance(data, Grouped) else data)[-1]
        if table.skips:
            return self._where_cells_may_be_missing(value, groups)
        cell = int(np.ravel_multi_index(groups, [len(levels) for levels in table.groups])) if groups else 0
        private = len(table.by) > 0 and table.sizes is None and table.cells > 1
        block = (self._of_level if isinstance(table, CategoryTable) else self._of_number)(value, private)
        share = np.zeros((table.cells, len(block)))
        share[cell] = block
        return share.reshape(-1)

    def _where_cells_may_be_missing(self, value: Any, groups: tuple[int, ...]) -> Array:
        """What the record adds where a missing cell is one more cell, or contributes to no sum: groups of private members put it last."""
        table = self.plan.model
        private, missing = len(table.by) > 0 and table.sizes is None, isinstance(value, float) and math.isnan(value)
        counted = isinstance(table, CategoryTable)
        if counted:
            block = [
                *([0.0] * self._kept if missing else self._of_level(value, True)),
                *([] if private else [float(missing)]),
            ]
        elif private:
            block = [0.0] * 3 if missing else self._of_number(value, True)
        else:
            first, second, third = (
                (4.0, 6.0, 3.0)
                if law_of(self.plan) == "gaussian"
                else (5.0, 6.0, 1.0)
                if table.is_spread
                else (2.0, 1.0, 1.0)
            )
            v = 2.0 * (0.0 if missing else (value - table.lower) / (table.upper - table.lower)) - 1.0
            block = [0.0] * 3 if missing else [first * RANGE * v, second * RANGE * v * v, third * RANGE]
        share = np.zeros((table.cells, len(block)))
        share[int(np.ravel_multi_index(groups, [len(levels) for levels in table.groups])) if groups else 0] = block
        apart = [float(missing) * (1.0 if counted else RANGE)] if private else []
        return np.concatenate([share.reshape(-1), apart])

    @property
    def _kept(self) -> int:
        return len(self.plan.model.levels) if self.plan.model.only is None else 2

    def _of_level(self, value: Any, private: bool) -> list[float]:
        """One unit in the record's level; of two levels in a group of known size the second alone is kept."""
        table = self.plan.model
        kept = [float(value == place) for place in range(len(table.levels))]
        if table.only is not None:
            between = table.between
            level = int(value) if between is None else int(between[0] <= value <= between[1])
            chosen = float(table.levels[level] == table.only)
            kept = [1.0 - chosen, chosen]
        return kept if private or len(kept) > 2 else kept[1:]

    def _of_number(self, value: float, private: bool) -> list[float]:
        table = self.plan.model
        t = (value - table.lower) / (table.upper - table.lower)
        if private:
            return [RANGE * (1.0 - t) ** 2, RANGE * 2.0 * t * (1.0 - t), RANGE * t**2]
        first, second = (5.0, 6.0) if table.is_spread else (2.0, 1.0)
        if law_of(self.plan) == "gaussian":
            first, second = 2.0, 3.0
        v = 2.0 * t - 1.0
        return [first * RANGE * v, second * RANGE * v * v]


def law_of(plan: Plan) -> str:
    return str(plan.mechanism.law)


def laplace(moved: Array, scale: float) -> tuple[Array, Array]:
    """(P, Q) over merged outcomes: at most one sum, between the two, at least the other; all coordinates together."""
    each = MOST_OUTCOMES if len(moved) == 1 else 60 if len(moved) == 2 else 12
    first, second = np.ones(1), np.ones(1)
    for distance in np.abs(moved):
        steps = np.unique(np.rint(np.linspace(0.0, distance - 1.0, min(each, max(int(distance), 1)))))
        edges = np.concatenate([[-np.inf], steps, [np.inf]])
        first = np.outer(first, _laplace_masses(edges, scale)).reshape(-1)
        second = np.outer(second, _laplace_masses(edges - distance, scale)).reshape(-1)
    return first, second


def _laplace_masses(edges: Array, scale: float) -> Array:
    """Of a discrete Laplace law between edges, each from its own tail: at ε = 20 a difference from 1 has no digits."""
    q = math.exp(-1.0 / scale)
    with np.errstate(over="ignore", invalid="ignore"):
        low = np.exp(np.minimum(edges, 0.0) / scale) / (1.0 + q)
        high = q * np.exp(-np.maximum(edges, 0.0) / scale) / (1.0 + q)
    below = np.where(edges < 0, low, 1.0 - high)
    return np.where(edges[:-1] >= 0.0, high[:-1] - high[1:], np.diff(below))


def gaussian(moved: Array, scale: float) -> tuple[Array, Array]:
    """(P, Q) of ⟨h, y⟩: summed up where the noise is a few steps wide, else of a rounded continuous law, in cells."""
    if scale < 2.0**12:
        return _gaussian_exactly(moved, scale)
    return normal_cells(float(np.linalg.norm(moved)) / scale, reach=REACH, cells=2 * MOST_OUTCOMES)


def _gaussian_exactly(moved: Array, scale: float) -> tuple[Array, Array]:
    """The convolution of the coordinates' laws, each moved by its whole step."""
    reach = math.ceil(REACH * scale) + int(np.abs(moved).max())
    places = np.arange(-reach, reach + 1)
    first, second = np.ones(1), np.ones(1)
    for step in np.abs(moved):
        laws = np.exp(-0.5 * ((places - np.array([[0.0], [float(step)]])) / scale) ** 2)
        spaced = np.zeros((2, (len(places) - 1) * int(step) + 1))
        spaced[:, :: int(step)] = laws / laws.sum(axis=1, keepdims=True)  # the laws of step·y
        first, second = np.convolve(first, spaced[0]), np.convolve(second, spaced[1])
    return np.maximum(first, 0.0), np.maximum(second, 0.0)


def noise_case(plan: Plan, *, label: str = "") -> NoiseCase:
    """The case of any plan of added noise, on the records that move its sums farthest."""
    table = plan.model
    if isinstance(plan.mechanism, CenteredNoise):
        return _centered_case(plan, label=label)
    if isinstance(table, ClassifierScores | RegressorScores):
        return _score_case(plan, label=label)
    if isinstance(table, MagnitudeTable):
        return _magnitude_case(plan, label=label)
    told = label or (f"{table.show} by {' and '.join(table.by)}" if table.by else table.show)
    start, end = _worst_records(plan)
    # the others take turns, so that no count is at its end
    levels = isinstance(table, CategoryTable)
    turns = [_with_level(table, level) for level in (0, 1)] if levels else [table.lower, table.upper]
    values = list(itertools.islice(itertools.cycle(turns), plan.n - 1))
    # the cell of each record: as declared, or in turns
    codes = [place % table.cells for place in range(plan.n)]
    if table.sizes is not None:
        codes = [cell for cell, size in enumerate(table.sizes) for _ in range(size)]
    moved = [*codes[:-1], 1 if codes[-1] == 0 else 0]

    def data(last: Any, cells: list[int]) -> Any:
        if not table.by:
            return [*values, last]
        places = np.unravel_index(np.array(cells), [len(levels) for levels in table.groups])
        return Grouped([*values, last], tuple(place.tolist() for place in places))

    if table.skips and (levels or (law_of(plan) == "laplace" and not table.is_spread)):
        here = data(start, codes)
        pair = Pair("one record loses its cell", here, data(math.nan, codes))
    elif table.sizes is not None or table.cells == 1:
        pair = Pair("one record from one end to the other", data(start, codes), data(end, codes))
    else:
        pair = Pair("one record into another group", data(start, codes), data(start, moved))
    return NoiseCase(plan, (pair,), ATTAINED, True, told)


def _worst_records(plan: Plan) -> tuple[Any, Any]:
    table = plan.model
    if isinstance(table, CategoryTable):
        chosen = 1 if table.only is None else table.levels.index(table.only)
        return _with_level(table, chosen), _with_level(table, 0 if chosen else 1)
    if table.is_spread and law_of(plan) == "laplace" and not (table.cells > 1 and table.sizes is None):
        return table.upper, table.lower + (table.upper - table.lower) * (1.0 - 5.0 / 12.0) / 2.0
    return table.upper, table.lower


def _with_level(table: CategoryTable, level: int) -> Any:
    """A record of this level: its code, or a number that meets a condition or does not."""
    if table.between is None:
        return level
    low, high = table.between
    return low if level else math.nextafter(low, -math.inf) if low > -LARGEST else math.nextafter(high, math.inf)


class CenteredCase(NoiseCase):
    """Two stages: the second about the low end, where the first leads to it."""

    noises = ("mean_scale", "squares_scale")

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        numbers, moved = self.numbers(factor), self.moved(pair)
        means = laplace(np.abs(moved[:1]), numbers["mean_scale"])
        squares = laplace(moved[1:][moved[1:] != 0.0], numbers["squares_scale"])
        return audit.finite_profile(
            *(np.concatenate([mean[0] * square, mean[1:]]) for mean, square in zip(means, squares, strict=True))
        )

    def share(self, data: Any) -> Array:
        """The last record's place, and its three sums of squares about the low end."""
        value = (data.values if isinstance(data, Grouped) else data)[-1]
        t = (value - self.plan.model.lower) / (self.plan.model.upper - self.plan.model.lower)
        near, far = min(8.0 * t * t, 1.0), max(8.0 * t * t - 1.0, 0.0) / 7.0
        return np.asarray(np.rint(RANGE * np.array([2.0 * t - 1.0, near + 4.0 * far, near - far, near**2 / 3.0])))


def _centered_case(plan: Plan, *, label: str) -> CenteredCase:
    """The case of any plan of noise on squares about a released mean."""
    table = plan.model
    values, ends = [table.lower] * (plan.n - 1), (table.lower, table.upper)
    codes = [cell for cell, size in enumerate(table.sizes or ()) for _ in range(size)]
    places = np.unravel_index(np.array(codes, dtype=np.int64), [len(levels) for levels in table.groups] or [1])
    columns = tuple(place.tolist() for place in places) if table.by else ()
    first, second = (Grouped([*values, end], columns) if columns else [*values, end] for end in ends)
    pair = Pair("one record from the end where all others are to the other end", first, second)
    return CenteredCase(plan, (pair,), ATTAINED, True, label or "variance")


class ScoreCase(NoiseCase):
    """Records are rows: what was, and what the model said."""

    def share(self, data: Any) -> Array:
        true, said = np.asarray(data.read())[-1]
        table = self.plan.model
        if isinstance(table, RegressorScores):
            v = 2.0 * (true - table.lower) / (table.upper - table.lower) - 1.0
            error = min(abs(true - said) / float(table.largest_error or 1.0), 1.0)
            weights = (2.0, 3.0, 5.0) if law_of(self.plan) == "laplace" else (2.0, 3.0, 4.0)
            return np.array([weight * RANGE * part for weight, part in zip(weights, (v, v * v, error**2), strict=True)])
        column = sum(said >= edge for edge in table.edges) if table.edges else int(said)
        cells = np.zeros((len(table.classes), len(table.edges) + 1 if table.edges else len(table.classes)))
        cells[int(true), column] = 1.0
        return cells.reshape(-1)


class MagnitudeCase(NoiseCase):
    """Records are rows of numbers: one unit for the power of two that each is next below."""

    def share(self, data: Any) -> Array:
        units = np.zeros((len(self.plan.model.names), 104))
        for column, value in enumerate(np.asarray(data)[-1]):
            power = min(max(math.ceil(math.log2(abs(value))), -10), 40) if value else 0
            units[column, 51 if not value else 62 + power if value > 0 else 40 - power] = 1.0
        return units.reshape(-1)


def _magnitude_case(plan: Plan, *, label: str) -> MagnitudeCase:
    """The case of any plan of magnitudes: a record that is small in every column, and one that is large and negative."""
    columns = len(plan.model.names)
    first, second = (np.array([[0.0] * columns] * (plan.n - 1) + [[value] * columns]) for value in (0.3, -1e6))
    return MagnitudeCase(plan, (Pair("one record with another magnitude in every column", first, second),), ATTAINED, True, label or "magnitudes")  # fmt: skip


def _score_case(plan: Plan, *, label: str) -> ScoreCase:
    """The case of any plan of an evaluation."""
    table = plan.model
    if isinstance(table, ClassifierScores):
        rows, label = ((0.0, 0.0), (1.0, 0.999 if table.edges else 1.0)), label or "counts"
    else:
        middle = table.lower + (table.upper - table.lower) * (1.0 / 3.0 if law_of(plan) == "laplace" else 0.0)
        # a prediction that is off by as much as there is room for, towards the farther end
        far = table.upper if table.upper - middle >= middle - table.lower else table.lower
        rows, label = ((table.upper, table.upper), (middle, far)), label or "errors"
    sure = isinstance(table, ClassifierScores) or abs(rows[1][1] - rows[1][0]) >= float(table.largest_error or 0.0)
    reason = ATTAINED if sure else "no record has the largest error and the response that moves its sums most"
    tables = [np.array([rows[0]] * (plan.n - 1) + [last], dtype=np.float64) for last in rows]
    first, second = (Judged(plan.n, partial(np.asarray, one)) for one in tables)
    return ScoreCase(plan, (Pair("one record from one cell, or end, to another", first, second),), reason, sure, label)


TABLES = {
    "proportion": CategoryTable(("no", "yes"), show="shares", only="yes"),
    "histogram": CategoryTable(("a", "b", "c"), show="shares"),
    "count": CategoryTable(("a", "b", "c")),
    "cross-table": CategoryTable(("no", "yes"), by=("group",), groups=(("x", "y", "z"),)),
    **{show: NumberTable(0.0, 1.0 if show != "rate" else 2.0, show=show) for show in NumberTable.shown},
    "magnitudes": MagnitudeTable(("a", "b")),
    "mean-skip": NumberTable(0.0, 1.0, missing="skip"),
    "histogram-skip": CategoryTable(("a", "b", "c"), show="shares", missing="skip"),
    "mean-by-group-skip": NumberTable(0.0, 1.0, missing="skip", by=("group",), groups=(("x", "y"),)),
    "mean-by-group": NumberTable(0.0, 1.0, by=("group",), groups=(("x", "y"),)),
}


def noise_cases(name: str, budget: Promise, *, n: int = 10) -> list[Case]:
    """Laplace noise, and Gaussian noise where the budget admits it."""
    asked = [(f"{law}, {name}", AddedNoise(law), TABLES[name]) for law in ("laplace", "gaussian")]
    return cases_of(noise_case, asked, budget, n=n)


def centered_cases(budget: Promise, *, n: int = 10) -> list[Case]:
    """Squares about a released mean."""
    return cases_of(noise_case, [("in two stages, variance", CenteredNoise(), TABLES["variance"])], budget, n=n)


def score_cases(budget: Promise) -> list[Case]:
    tables = ClassifierScores(("no", "yes"), (0.3, 0.5, 0.7)), RegressorScores(0.0, 1.0, 0.5)
    return [noise_case(calibrate(AddedNoise("laplace"), table, budget, n=10)) for table in tables]


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases of `AddedNoise`, by the word for a model."""
    return {**{name: partial(noise_cases, name) for name in TABLES}, "evaluation": score_cases}


def centered_audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases of `CenteredNoise`, by the word for a model."""
    return {"variance": centered_cases}
