"""A record's share of every sum: an integer vector or a square of one, within the norm that the promise rests on (sums.py, scores.py)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

from onedraw.data.sums import Blocks, block_rows, blocked
from onedraw.methods.fit import sums
from onedraw.methods.fit.run import vector_steps
from onedraw.methods.fit.scores import score_of
from onedraw.methods.fit.sums import (  # fmt: skip
    ClassInformation,
    ClassShares,
    ClippedScores,
    DesignMoments,
    Information,
    LongScores,
    Responses,
    ResponseSum,
    ScoreCovariance,
    StepRows,
)
from onedraw.models.compute import arithmetic
from onedraw.models.moments.measured import ColumnSums, Layout, MomentColumns, SecondMoments, cut
from onedraw.models.sums.exact_sums import MEAN_BITS, gram_steps, held

from .cases import KINDS, MORE, model_of

LAYOUTS = [Layout(2), Layout(4, ((1, 4),)), Layout(2, intercept=False), Layout(2, ball=2.0)]
ROUNDING = 1 + Fraction(64, 2**53)
"""Squared norms of vectors that are not cut may be longer by this (discrete_noise.md, the rounding margin)."""

ODD = [1e-320, 1e-160, 1e-3, 1.0, 1e12, 1e160, 1e308, math.inf, math.nan, 0.0]
"""Factors of public numbers: no published coordinates may make a record's share longer."""

PUBLIC = ("mean", "root", "centre", "unit", "factor")
"""Coordinates of the steps, the factor of rows that are stretched along effects last."""

EXTREMES = {"bound": 1e-12, "largest": 10_000, "level": 0.999}


class Share(NamedTuple):
    """A statistic, how it is asked for, the largest norm in lattice steps, and whether it is a sum of squares."""

    statistic: Any
    records: Any
    public: tuple[Any, ...]
    largest: Fraction
    squares: bool


def row(rng: np.random.Generator, layout: Layout) -> np.ndarray:
    """Return an encoded record: inside its box, at a corner, or outside."""
    X = rng.uniform(-1, 1, (1, layout.columns))
    X = (np.sign(X) if rng.random() < 0.7 else X) * (layout.ball or 1.0) * rng.choice([1.0, 1.0, 5.0, 1e300])
    return np.column_stack([X, np.ones(1)]) if layout.intercept else X


def response(rng: np.random.Generator, score: Any) -> np.ndarray:
    """Return a response as the model encodes it, mostly at an end."""
    if score.kind == "classes":
        return rng.integers(0, score.classes, 1).astype(float)
    numbers = score.kind in ("number", "quantile")
    share = rng.choice([-1.0, 1.0, 1.0, *([0.3, 1e300, -math.inf] if numbers else [1.0])], 1)
    return np.abs(share) * 2.0 * score.scale if score.kind == "count" else share * score.scale


def published(rng: np.random.Generator, layout: Layout, odd: bool, blocks: int = 1) -> dict[str, Any]:
    """Return public numbers of any size."""

    def factor() -> Any:
        return ODD[rng.integers(len(ODD))] if odd else 10.0 ** rng.uniform(-2, 3)

    d = layout.columns
    with np.errstate(over="ignore", invalid="ignore"):
        return {
            "mean": rng.uniform(-1, 1, d), "root": rng.standard_normal((d, d)) * factor(), "centre": rng.uniform(-1, 1),
            "slopes": rng.standard_normal(d) * factor(), "unit": abs(factor()), "scale": abs(factor()),
            "theta": rng.standard_normal(blocks * layout.width) * factor(), "factor": abs(factor()),
            "stretch": rng.standard_normal((layout.width, layout.width)) * factor(),
        }  # fmt: skip


def shares(
    rng: np.random.Generator, layout: Layout, score: Any, at: dict[str, Any], radius: float, n: int
) -> list[Share]:
    """Return one random record's share of every statistic."""
    record = held(row(rng, layout), response(rng, score)).read_as(Responses(score.scale, score.shift))
    rows = record.read_as(StepRows(layout, score), *(at[name] for name in PUBLIC))
    fine, squared = vector_steps(radius, n), gram_steps(radius**2, n)
    vector, square = Fraction(radius) * Fraction(fine), (Fraction(radius) * Fraction(squared)) ** 2
    design = (squared, at["mean"], at["root"], at["slopes"], at["centre"], at["unit"], radius)
    step = (radius, at["theta"], at["scale"])
    centre = np.append(at["mean"], at["centre"])
    level: Any = ClassShares(score.classes) if score.of_classes else ResponseSum()
    information = ClassInformation(score) if score.of_classes else Information(score)
    return [
        Share(SecondMoments(layout, True), record, (squared, centre, radius), square, True),
        Share(DesignMoments(layout, score.in_moments), record, design, square, True),
        Share(ClippedScores(score), rows, (fine, *step), vector, False),
        Share(LongScores(score), rows, (vector_steps(1.0, n), *step), Fraction(vector_steps(1.0, n)), False),
        Share(information, rows, (squared, *step, radius, at["stretch"]), square, True),
        Share(ScoreCovariance(score), rows, (squared, *step, radius, at["stretch"]), square, True),
        Share(level, record, (2.0**MEAN_BITS,), Fraction(2) ** MEAN_BITS, False),
    ]


def entries(share: Share) -> list[int]:
    return [int(value) for value in share.records.sum(share.statistic, *share.public)]


def squared_norm(values: list[int], squares: bool) -> int:
    """Return the squared norm of a vector, or of a symmetric matrix given by its lower triangle."""
    if not squares:
        return sum(value**2 for value in values)
    size = (math.isqrt(8 * len(values) + 1) - 1) // 2
    return sum(value**2 * (1 if i == j else 2) for value, (i, j) in zip(values, lower(size), strict=True))


def lower(size: int) -> list[tuple[int, int]]:
    return list(zip(*np.tril_indices(size), strict=True))


def is_square(values: list[int]) -> bool:
    """Return whether a lower triangle is that of kkᵀ for one vector k, in whole numbers."""
    size = (math.isqrt(8 * len(values) + 1) - 1) // 2
    trace = sum(value for value, (i, j) in zip(values, lower(size), strict=True) if i == j)
    return squared_norm(values, True) == trace**2


def departures(
    rng: np.random.Generator, kind: str, rounds: int, *, odd: bool, layouts: Any = LAYOUTS, fault: float = 0.0
) -> list[str]:  # fmt: skip
    """Return what exceeds its norm, or what two records differ by beyond the sensitivity of the promise.

    ``fault`` only makes a score another one to the compiler: a planted fault is not in what was compiled before.
    """
    found: list[str] = []
    robust = kind.startswith("robust")
    scores = [score_of(model_of(kind), robust=robust), score_of(model_of(kind, **EXTREMES), robust=robust)]
    scores = [replace(score, information=score.information + fault) for score in scores]
    for number in range(rounds):
        score, layout = scores[number % 2], layouts[number % len(layouts)]
        at, radius = published(rng, layout, odd, score.blocks), float(10.0 ** rng.uniform(-2, 3))
        n = int(rng.choice([1, 10**6, 2**31 - 1]))
        pair = [shares(rng, layout, score, at, radius, n) for _ in range(2)]
        for first, second in zip(*pair, strict=True):
            name, seen = type(first.statistic).__name__, [entries(first), entries(second)]
            for values in seen:
                if squared_norm(values, first.squares) > first.largest**2 * ROUNDING:
                    found.append(f"{name} is too long")
                if first.squares and name != "ClassInformation" and not is_square(values):
                    found.append(f"{name} is no square")
                if name == "LongScores" and values[0] not in (0, int(first.public[0])):
                    found.append("LongScores counts no whole records")
            moved = squared_norm([a - b for a, b in zip(*seen, strict=True)], first.squares)
            apart = {"LongScores": 1, "ClassShares": 2}.get(name, 2 if first.squares else 4)
            if moved > apart * first.largest**2 * ROUNDING:
                found.append(f"{name} moves too far")
    return found


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_shares_keep_their_norms_at_usual_coordinates(kind: str) -> None:
    layouts = (
        LAYOUTS if kind in KINDS and kind != "count" else LAYOUTS[:2]
    )  # its incomplete gamma function takes long to compile
    assert departures(np.random.default_rng(5), kind, 16, odd=False, layouts=layouts) == []


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_shares_keep_their_norms_at_absurd_coordinates(kind: str) -> None:
    layouts = LAYOUTS if kind in KINDS and kind != "count" else LAYOUTS[:2]
    assert departures(np.random.default_rng(6), kind, 24, odd=True, layouts=layouts) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_shares_keep_their_norms_in_numpy_without_a_warning(kind: str, odd: bool) -> None:
    with arithmetic(in_numpy=True):
        assert departures(np.random.default_rng(7), kind, 48, odd=odd) == []


def test_share_of_twice_the_norm_is_found_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "cut", lambda rows, radius, axis=1: 2.0 * cut(rows, radius, axis))
    with arithmetic(in_numpy=True):
        assert "ClippedScores is too long" in departures(np.random.default_rng(7), "number", 16, odd=False)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_mean_moves_by_the_diameter_of_its_box(layout: Layout) -> None:
    rng, steps = np.random.default_rng(7), 2.0**MEAN_BITS
    diameter = Fraction(MomentColumns(layout, True).spread * steps)
    seen = [held(row(rng, layout), rng.choice([-1.0, 1.0], 1)).sum(ColumnSums(layout, True), steps) for _ in range(60)]
    moved = [squared_norm([int(a) - int(b) for a, b in zip(*pair, strict=True)], False) for pair in pairwise(seen)]
    assert max(moved) <= diameter**2 * ROUNDING
    assert max(moved) >= Fraction(1, 3) * diameter**2


def test_response_that_is_no_number_adds_nothing_to_the_level() -> None:
    y = np.array([math.nan, 1.0, math.inf, -0.5])
    records = held(np.ones((4, 1)), y).read_as(Responses(1.0, 0.0))
    assert records.sum(ResponseSum(), 2.0**MEAN_BITS).tolist() == [int(1.5 * 2**MEAN_BITS)]


def test_neighbors_of_k_records_move_a_sum_k_times_as_far() -> None:
    rng, layout, score = np.random.default_rng(8), LAYOUTS[0], score_of(model_of("number"))
    at = {**published(rng, layout, False), "scale": 1.0, "unit": 0.1, "theta": np.zeros(3)}
    X, fine = rng.uniform(-1, 1, (50, 3)), vector_steps(2.0, 50)
    for k in (1, 2, 4):
        tables = []
        for end in (1.0, -1.0):
            y = np.linspace(-1, 1, 50)
            y[:k], X[:k] = end, 1.0
            rows = held(X.copy(), y).read_as(StepRows(layout, score), *(at[name] for name in PUBLIC))  # fmt: skip
            tables.append([int(value) for value in rows.sum(ClippedScores(score), fine, 2.0, at["theta"], 1.0)])
        moved = squared_norm([a - b for a, b in zip(*tables, strict=True)], False)
        assert moved <= (k * 2 * Fraction(2.0 * fine)) ** 2 * ROUNDING
        assert moved > (0.9 * k * 2 * 2.0 * fine) ** 2


@pytest.mark.parametrize("in_numpy", [False, True])
def test_sums_do_not_depend_on_order_or_partition(in_numpy: bool) -> None:
    with arithmetic(in_numpy=in_numpy):
        check_order_and_partition()


def check_order_and_partition() -> None:
    rng, layout, score = np.random.default_rng(9), LAYOUTS[0], score_of(model_of("count"))
    at, X, y = published(rng, layout, False), rng.uniform(-1, 1, (500, 3)), rng.integers(0, 9, 500).astype(float)

    def totals(*parts: Any) -> list[list[int]]:
        blocks = [block for part in parts for block in blocked([(X[part], y[part])], block_rows(500))]
        records = Blocks.holding(500, blocks).read_as(Responses(score.scale, score.shift))
        rows = records.read_as(StepRows(layout, score), at["mean"], at["root"], 0.0, 1.0)
        step = (2.0**20, 1.5, 1e-2 * at["theta"], 1.0)
        found = [rows.sum(of(score), *step) for of in (ClippedScores, LongScores)]
        found += [rows.sum(of(score), *step, 1.5) for of in (Information, ScoreCovariance)]
        return [one.tolist() for one in found]

    whole = totals(slice(None))
    assert totals(rng.permutation(500)) == whole == totals(slice(300, None), slice(0, 7), slice(7, 300))


@pytest.mark.parametrize("n", [1, 2**16, 2**25, 2**31 - 1])
@pytest.mark.parametrize("bound", [1e-9, 0.7, 1.0, 1e9])
def test_sums_of_all_records_fit_into_whole_numbers(n: int, bound: float) -> None:
    """Within a block exactly as floats, all together below 2⁶¹; and every share has as many steps as the lattice is checked for."""
    rows, fine, squared = block_rows(n), vector_steps(bound, n), gram_steps(bound**2, n)
    for share in (bound * fine, (bound * squared) ** 2):
        assert rows * share <= 2.0**53
        assert n * share <= 2.0**61
    assert bound * fine >= 2.0**28


# Planted faults


def uncut(rows: Any, radius: Any, axis: int = 1) -> Any:
    return rows


def rounded_up(rows: Any, radius: Any, axis: int = 1) -> Any:
    """Shorten vectors and move every entry away from zero by less than a thousandth of the bound."""
    return jnp.sign(rows) * (jnp.abs(cut(rows, radius, axis)) + 2.0**-11 * radius)


PLAIN = LAYOUTS[:1]


def test_shares_without_a_cut_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "cut", uncut)
    with np.errstate(invalid="ignore"):  # what is not cut may be longer than whole numbers go
        found = set(departures(np.random.default_rng(11), "number", 8, odd=False, layouts=PLAIN, fault=0.125))
    assert {"ClippedScores is too long", "ScoreCovariance is too long", "ClippedScores moves too far"} <= found


def test_shares_rounded_after_the_cut_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "cut", rounded_up)
    with np.errstate(invalid="ignore"):
        found = departures(np.random.default_rng(12), "quantile", 8, odd=False, layouts=PLAIN, fault=0.25)
    assert {"ClippedScores is too long", "ScoreCovariance is too long"} <= set(found)


def test_shares_that_keep_what_is_no_number_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "_finite", lambda values: values)
    with pytest.raises(RuntimeWarning, match="invalid value"):
        departures(np.random.default_rng(13), "number", 12, odd=True, layouts=PLAIN, fault=0.5)
