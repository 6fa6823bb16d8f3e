"""A record's share of every sum: integers within the distance that the promise rests on, for any record and coordinates (sums.py, coordinates.py)."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from onedraw.data.sums import Blocks, blocked, check_room
from onedraw.methods.clipped_gradients import sums
from onedraw.methods.clipped_gradients.coordinates import Coordinates, Problem, code_table, coordinates_of, gradient_of
from onedraw.methods.clipped_gradients.responses import Response
from onedraw.methods.clipped_gradients.run import vector_steps
from onedraw.methods.clipped_gradients.sizes import ClippedNumbers, temperature_sensitivity
from onedraw.methods.clipped_gradients.sums import (
    CodedRows,
    Columns,
    Derivatives,
    Deviations,
    Gradients,
    Levels,
    Scores,
    Squares,
    StepRows,
)
from onedraw.methods.noisy_moments import MEAN_STEPS
from onedraw.models.moments.measured import Layout

RESPONSES = [Response("label"), Response("classes", 3), Response("count", 1, 8.0), Response("number", 1, 4.0)]
LAYOUTS = [Layout(4, ((1, 4),)), Layout(3), Layout(3, ball=2.0), Layout(5, ((0, 1), (1, 4)))]

ODD = [1e-320, 1e-160, 1e-3, 1.0, 1e12, 1e160, 1e308, math.inf, math.nan, 0.0]
"""Factors of coefficients: no published numbers may make a record's share longer."""


def problem_of(layout: Layout, response: Response, bound: float, n: int) -> Problem:
    sizes = ClippedNumbers(
        level_noise=1.0, mean_noise=n / 50.0, spread_noise=n / 50.0, steps=25.0, slope_bound=bound, slope_noise=1.0,
        intercept_bound=1.0, intercept_noise=1.0, temperature_bound=1.5, temperature_noise=1.0, time=1.0,
    )  # fmt: skip
    return Problem(layout, response, n, sizes)


def record(rng: np.random.Generator, layout: Layout, response: Response) -> tuple[np.ndarray, np.ndarray]:
    """Return an encoded record: inside its box, at a corner, outside, or with two levels of one category."""
    X = rng.uniform(-1, 1, (1, layout.columns))
    X = (np.sign(X) if rng.random() < 0.7 else X) * (layout.ball or 1.0) * rng.choice([1.0, 1.0, 5.0, 1e300])
    if response.kind == "classes":
        y = rng.integers(0, response.outputs, 1).astype(float)
    else:
        ends = {"label": [-1.0, 1.0], "count": [0.0, response.scale], "number": [-response.scale, response.scale]}
        y = rng.choice(ends[response.kind], 1)
    return np.column_stack([X, np.ones(1)]), y


def coded(problem: Problem, X: np.ndarray, y: np.ndarray) -> Blocks:
    """Return one record behind the sums, in a block of a public size."""
    records = Blocks.holding(1, blocked([(X, y)], 64))
    places = tuple(problem.places.tolist())
    return records.read_as(CodedRows(problem.layout, places, problem.offsets, problem.response))


def whole(records: Any, statistic: Any, *public: Any) -> list[int]:
    return [int(value) for value in records.sum(statistic, *public)]


def distance(first: list[int], second: list[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True))


def spread(rng: np.random.Generator, problem: Problem) -> Coordinates:
    """Return coordinates from published numbers of any plausible size."""
    d = problem.layout.columns
    return coordinates_of(problem, rng.uniform(-1.2, 1.2, d), rng.uniform(-0.1, 0.7, len(problem.places)))


def weights_of(problem: Problem, where: Coordinates, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(over="ignore", invalid="ignore"):
        return slopes[problem.places] / problem.lattice.row, code_table(problem, where, slopes)


def gradient_shares(
    problem: Problem, where: Coordinates, rows: Any, slopes: np.ndarray, intercepts: np.ndarray, of: Any = Gradients
) -> tuple[list[int], list[int]]:
    """Return a record's integer gradients of slopes and of intercepts, as the program puts them together."""
    lattice, sizes, outputs = problem.lattice, problem.sizes, problem.response.outputs
    fine = vector_steps(sizes.intercept_bound, problem.n)
    public = (sizes.slope_bound * lattice.row, lattice.residual, 0.37, sizes.intercept_bound, fine)
    weights = weights_of(problem, where, slopes)
    check_room(problem.n, of(problem.response), *public, *weights, intercepts)
    summed = rows.sum(of(problem.response), *public, *weights, intercepts).reshape(-1, outputs)
    numbers, codes, total, own = np.split(summed, np.cumsum([len(problem.places), problem.codes, 1]))
    found = gradient_of(problem, where, numbers, codes, total[0])
    return [int(value) for value in found.ravel()], [int(value) for value in own.ravel()]


def departures(
    rng: np.random.Generator, response: Response, rounds: int, *, odd: bool, layouts: Any = LAYOUTS[:3], of: Any = Gradients,
    derivatives: Any = Derivatives,
) -> set[str]:  # fmt: skip
    """Return which shares exceed their norm, or move farther than the promise's sensitivity."""
    found: set[str] = set()
    for number in range(rounds):
        layout, n = layouts[number % len(layouts)], int(rng.choice([10, 10**6, 2**31 - 1]))
        problem = problem_of(layout, response, float(10.0 ** rng.uniform(-2, 3)), n)
        where, lattice = spread(rng, problem), problem.lattice
        factor = ODD[rng.integers(len(ODD))] if odd else 10.0 ** rng.uniform(-2, 3)
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = rng.standard_normal((layout.columns, response.outputs)) * factor
            intercepts = rng.standard_normal(response.outputs) * factor
        public = where.center[problem.places], where.scale[problem.places], lattice.row, where.squares
        pair = [coded(problem, *record(rng, layout, response)).read_as(StepRows(), *public) for _ in range(2)]
        seen = [gradient_shares(problem, where, rows, slopes, intercepts, of) for rows in pair]
        longest = Fraction(problem.sizes.slope_bound) * Fraction(lattice.row) * Fraction(lattice.residual)
        level = Fraction(problem.sizes.intercept_bound) * Fraction(vector_steps(problem.sizes.intercept_bound, n))
        for name, place, most in (("slopes", 0, longest), ("intercepts", 1, level)):
            if any(sum(value**2 for value in one[place]) > most**2 for one in seen):
                found.add(f"{name} are too long")
            if distance(seen[0][place], seen[1][place]) > 4 * most**2:
                found.add(f"{name} move too far")
        found |= temperature_departures(problem, where, pair, slopes, intercepts, derivatives)
    return found


def temperature_departures(
    problem: Problem, where: Coordinates, pair: Any, slopes: np.ndarray, intercepts: np.ndarray, of: Any
) -> set[str]:
    bound = problem.sizes.temperature_bound
    fine = vector_steps(bound, problem.n)
    weights, temperatures = weights_of(problem, where, slopes), np.array([0.0, 0.1, 0.4, 0.9, 1.5])
    public = bound, fine, 0.8, temperatures, *weights, intercepts, -0.3 * intercepts
    seen = [whole(rows, of(problem.response), *public) for rows in pair]
    moved = distance(*seen) > Fraction(temperature_sensitivity(bound)) ** 2 * Fraction(fine) ** 2
    ends = [np.cumsum(np.array(one, dtype=object)) for one in seen]
    outside = any(max(abs(value) for value in one) > Fraction(bound) * Fraction(fine) for one in ends)
    falls = any(min(one[1:]) < 0 for one in seen)
    return {name for name, wrong in (("temperature moves too far", moved), ("derivatives leave their bound", outside), ("derivatives decrease", falls)) if wrong}  # fmt: skip


@pytest.mark.parametrize("response", RESPONSES, ids=lambda one: one.kind)
def test_shares_keep_their_norms_at_usual_coefficients(response: Response) -> None:
    assert departures(np.random.default_rng(5), response, 12, odd=False) == set()


@pytest.mark.parametrize("response", RESPONSES, ids=lambda one: one.kind)
def test_shares_keep_their_norms_at_absurd_coefficients(response: Response) -> None:
    assert departures(np.random.default_rng(6), response, 20, odd=True) == set()


def test_a_record_reaches_the_bounds_that_are_paid_for() -> None:
    """Opposite gradients of the full length exist, so the sensitivities are not larger than needed."""
    problem = problem_of(Layout(3), Response("label"), 0.5, 100)
    where, lattice = coordinates_of(problem, np.zeros(3), np.full(3, 0.4)), problem.lattice
    public = where.center, where.scale, lattice.row, where.squares
    ends = [(np.ones((1, 4)), np.array([side])) for side in (1.0, -1.0)]
    rows = [coded(problem, *end).read_as(StepRows(), *public) for end in ends]
    seen = [gradient_shares(problem, where, one, np.zeros((3, 1)), np.zeros(1))[0] for one in rows]
    assert distance(*seen) > (1.999 * 0.5 * lattice.row * lattice.residual) ** 2


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_scales_move_by_the_distances_of_the_proof(layout: Layout) -> None:
    """All corners of the box against each other, and rows outside it; the mean's and the deviations' sums."""
    problem = problem_of(layout, RESPONSES[0], 1.0, 10)
    rng, center = np.random.default_rng(3), np.random.default_rng(4).uniform(-1, 1, len(problem.places))
    corners = [
        np.array([*signs, 1.0])[None] * (layout.ball or 1.0) for signs in product((-1.0, 1.0), repeat=layout.columns)
    ]
    corners += [record(rng, layout, RESPONSES[0])[0] for _ in range(8)]
    rows = [coded(problem, X, np.ones(1)) for X in corners]
    assert problem.setting.sensitivity.mean >= problem.setting.sensitivity.spread
    for statistic, public, allowed in (
        (Columns(problem.codes), (), problem.setting.sensitivity.mean),
        (Deviations(), (center,), problem.setting.sensitivity.spread),
    ):
        seen = [whole(one, statistic, MEAN_STEPS, *public) for one in rows]
        if isinstance(statistic, Columns):  # a record without a level adds to a code that is not published
            hidden = {len(problem.places) + offset for offset in problem.offsets}
            seen = [[value for place, value in enumerate(one) if place not in hidden] for one in seen]
        farthest = max(distance(first, second) for first, second in product(seen, seen))
        assert farthest <= (Fraction(allowed) * Fraction(MEAN_STEPS)) ** 2 * (1 + Fraction(1, 2**40))


def test_residual_of_a_row_without_length_is_bounded_too() -> None:
    """Sums of residuals by code and over all records are exact only if each entry has at most 2^m steps."""
    problem = problem_of(Layout(3), RESPONSES[3], 0.5, 100)
    public = np.zeros(3), np.ones(3), problem.lattice.row, np.zeros(0)
    rows = coded(problem, np.array([[0.0, 0.0, 0.0, 1.0]]), np.ones(1)).read_as(StepRows(), *public)
    bounds = 0.5 * problem.lattice.row, problem.lattice.residual, 0.3, 1.0, vector_steps(1.0, 100)
    statistic, weights = Gradients(problem.response), (np.zeros((3, 1)), np.zeros((0, 1)))
    seen = whole(rows, statistic, *bounds, *weights, np.array([1e12]))
    assert max(map(abs, seen)) <= statistic.bound(*bounds)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_row_with_an_entry_that_is_no_number_stays_in_its_ball(odd: float) -> None:
    """A length that is no number would leave the other entries as long as they are."""
    problem = problem_of(Layout(3, ball=2.0), RESPONSES[0], 1.0, 10)
    seen = whole(coded(problem, np.array([[odd, 1e10, 1e10, 1.0]]), np.ones(1)), Columns(problem.codes), MEAN_STEPS)
    assert 0.99 * MEAN_STEPS**2 < sum(value**2 for value in seen) <= MEAN_STEPS**2


def test_entries_and_responses_that_are_no_number_are_read_as_zero() -> None:
    """Not by the encoding before, which replaces them too."""
    problem = problem_of(Layout(4, ((1, 4),)), RESPONSES[3], 1.0, 10)
    records = coded(problem, np.array([[math.nan, math.nan, 1.0, 1.0, 1.0]]), np.array([math.nan]))
    assert whole(records, Columns(problem.codes), MEAN_STEPS) == [0, MEAN_STEPS, 0, 0, 0]
    assert whole(records, Levels(problem.response), MEAN_STEPS) == [0]


@pytest.mark.parametrize("response", RESPONSES, ids=lambda one: one.kind)
def test_level_moves_by_its_sensitivity_and_no_farther(response: Response) -> None:
    problem, rng = problem_of(Layout(3), response, 1.0, 10), np.random.default_rng(9)
    values = [*(record(rng, Layout(3), response)[1] for _ in range(12)), *np.array([[1e308], [-1e308], [np.nan]])]
    seen = [whole(coded(problem, np.ones((1, 4)), y), Levels(response), MEAN_STEPS) for y in values]
    farthest = max(distance(first, second) for first, second in product(seen, seen))
    assert farthest <= (Fraction(response.sensitivity) * Fraction(MEAN_STEPS)) ** 2
    assert farthest > 0.99 * (response.sensitivity * MEAN_STEPS) ** 2


def test_sums_by_code_are_those_of_the_matrix_product() -> None:
    """The short way over codes gives the same integers as kqᵀ written out, also where products leave 64 bits on the way."""
    rng, layout, response = np.random.default_rng(10), LAYOUTS[3], Response("classes", 3)
    problem = problem_of(layout, response, 1e3, 64)
    where = spread(rng, problem)
    slopes, intercepts = rng.standard_normal((5, 3)), rng.standard_normal(3)
    total, rows_ = np.zeros(15, dtype=object), []
    for _ in range(6):
        X, y = record(rng, layout, response)
        rows_.append((X, y))
        public = where.center[problem.places], where.scale[problem.places], problem.lattice.row, where.squares
        one = coded(problem, X, y).read_as(StepRows(), *public)
        total = total + np.array(gradient_shares(problem, where, one, slopes, intercepts)[0], dtype=object)
    X, y = np.concatenate([X for X, _ in rows_]), np.concatenate([y for _, y in rows_])
    together = Blocks.holding(6, blocked([(X, y)], 64)).read_as(
        CodedRows(layout, tuple(problem.places.tolist()), problem.offsets, response)
    )
    rows = together.read_as(StepRows(), where.center[problem.places], where.scale[problem.places], problem.lattice.row, where.squares)  # fmt: skip
    assert gradient_shares(problem, where, rows, slopes, intercepts)[0] == total.tolist()


def test_squares_of_counts_move_by_one_and_no_farther() -> None:
    response, rng = Response("count", 1, 8.0), np.random.default_rng(15)
    problem = problem_of(Layout(3), response, 1.0, 10)
    values = [*(record(rng, Layout(3), response)[1] for _ in range(8)), *np.array([[1e308], [-1e308], [np.nan], [2.0]])]
    seen = [whole(coded(problem, np.ones((1, 4)), y), Squares(response), MEAN_STEPS) for y in values]
    assert min(seen) == [0]
    assert max(seen) == [MEAN_STEPS]
    assert [MEAN_STEPS // 16] in seen


def score_departures(rng: np.random.Generator, rounds: int, of: Any = Scores) -> set[str]:
    """Return whether a score leaves its bound, at usual and at absurd slopes."""
    found: set[str] = set()
    for number in range(rounds):
        layout, n = LAYOUTS[number % len(LAYOUTS)], int(rng.choice([10, 10**6, 2**31 - 1]))
        problem = problem_of(layout, RESPONSES[0], 1.0, n)
        where = spread(rng, problem)
        public = where.center[problem.places], where.scale[problem.places], problem.lattice.row, where.squares
        rows = coded(problem, *record(rng, layout, RESPONSES[0])).read_as(StepRows(), *public)
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = rng.standard_normal((layout.columns, 1)) * ODD[rng.integers(len(ODD))]
        fine = vector_steps(2.0, n)
        check_room(n, of(RESPONSES[0]), 2.0, fine)
        seen = whole(rows, of(RESPONSES[0]), 2.0, fine, 0.37, *weights_of(problem, where, slopes), slopes[:1, 0])
        found |= {"a score leaves its bound"} if abs(seen[0]) > 2.0 * fine else set()
    return found


def test_scores_stay_in_their_bound() -> None:
    assert score_departures(np.random.default_rng(16), 40) == set()


# Planted faults


class ScoresUncut(Scores):
    """The planted fault: scores are cut at four times their bound."""

    def block(self, *given: Any) -> Any:
        return super().block(*given[:5], 4.0 * given[5], *given[6:])


def test_scores_that_are_not_cut_are_caught() -> None:
    assert score_departures(np.random.default_rng(16), 40, ScoresUncut) == {"a score leaves its bound"}


class Unclipped(Gradients):
    """The planted fault: gradients are shortened to eight times their bound."""

    def block(self, *given: Any) -> Any:
        return super().block(*given[:5], 8.0 * given[5], *given[6:])


class IgnoresRows(Gradients):
    """The planted fault: residuals are shortened as if every row had length one."""

    def block(self, k: Any, length: Any, *rest: Any) -> Any:
        return super().block(k, jnp.ones_like(length), *rest)


class LevelUnclipped(Gradients):
    """The planted fault: residuals of intercepts are shortened to twice their bound."""

    def block(self, *given: Any) -> Any:
        return super().block(*given[:8], 2.0 * given[8], *given[9:])


class DerivativesUncut(Derivatives):
    """The planted fault: derivatives are cut at four times their bound."""

    def block(self, *given: Any) -> Any:
        return super().block(*given[:5], 4.0 * given[5], *given[6:])


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        (Unclipped, {"slopes are too long", "slopes move too far"}),
        (IgnoresRows, {"slopes are too long", "slopes move too far"}),
        (LevelUnclipped, {"intercepts are too long"}),
    ],
)
def test_gradients_that_are_not_shortened_are_caught(fault: Any, seen: set[str]) -> None:
    found = departures(np.random.default_rng(11), RESPONSES[1], 12, odd=False, layouts=LAYOUTS[:1], of=fault)
    assert seen <= found


def test_derivatives_that_are_not_cut_are_caught() -> None:
    found = departures(np.random.default_rng(12), RESPONSES[0], 12, odd=False, layouts=LAYOUTS[:1], derivatives=DerivativesUncut)  # fmt: skip
    assert {"temperature moves too far", "derivatives leave their bound"} <= found


def test_shares_that_keep_what_is_no_number_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "finite", lambda values: values)

    class Plain(Gradients):
        """The statistic compiled without its guard."""

    with pytest.raises(RuntimeWarning, match="invalid value"):
        departures(np.random.default_rng(13), RESPONSES[3], 20, odd=True, layouts=LAYOUTS[1:2], of=Plain)
