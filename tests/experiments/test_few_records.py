"""Few records: the theorem against the best interval rules, and influence against fits without the rows."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def few() -> Any:
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("few_records")
    finally:
        sys.path.remove(str(FOLDER))


def least_of_all_rules(here: np.ndarray, there: np.ndarray, miss: float, given: float) -> float:
    """Return the least share of given intervals that hold both coefficients, over every rule of what to give at each output.

    A rule gives at each output, with some probability, {T}, {T′}, both, or none; ``here`` and ``there`` are the outputs' probabilities.
    """
    size = len(here)
    zero = np.zeros(size)
    first, second, both = np.r_[here, zero, zero], np.r_[zero, here, zero], np.r_[zero, zero, here]
    any_here, any_there = np.tile(here, 3), np.tile(there, 3)
    upper = [
        second - miss * any_here,  # misses T where it is here
        np.r_[there, zero, zero] - miss * any_there,
        -any_there,
    ]
    at_most_one = np.tile(np.eye(size), 3)
    found = optimize.linprog(
        both, A_ub=np.vstack([*upper, at_most_one]), b_ub=np.r_[0.0, 0.0, -given + 1e-7, np.ones(size)], A_eq=[first + second + both],
        b_eq=[given - 1e-8], bounds=(0.0, None), method="highs",
    )  # fmt: skip
    assert found.status == 0
    return float(found.fun) / given


def bins(edges: np.ndarray, mean: float) -> np.ndarray:
    return np.diff(stats.norm.cdf(edges, loc=mean))


@pytest.mark.parametrize("given", [1.0, 0.4])
@pytest.mark.parametrize("apart", [0.3, 1.0, 2.0])
def test_no_rule_of_intervals_beats_the_theorem_and_one_meets_it(few, apart: float, given: float) -> None:
    edges = np.r_[-np.inf, np.linspace(-4.0, 4.0 + apart, 300), np.inf]
    best = least_of_all_rules(bins(edges, 0.0), bins(edges, apart), 0.05, given)
    bound = few.least_wide(1.0, apart, 0.05, given=given)
    assert best >= bound - 1e-6
    if given == 1.0:
        assert best <= bound + 0.02


@pytest.mark.parametrize(("left_out", "mu"), [(0.002, 0.3), (0.01, 0.1), (0.0005, 1.0)])
def test_no_rule_beats_it_on_samples_of_two_tables(few, left_out: float, mu: float) -> None:
    """The release counts, with noise, the records that one table lacks: nothing tells the tables apart better."""
    n, counts = 1000, np.arange(60)
    edges = np.r_[-np.inf, np.linspace(-4.0, 4.0 + 60.0 * mu, 400), np.inf]
    weights = stats.binom.pmf(counts, n, left_out)
    here = sum(weight * bins(edges, k * mu) for k, weight in zip(counts, weights, strict=True))
    best = least_of_all_rules(np.asarray(here), bins(edges, 0.0), 0.05, 1.0)
    assert best >= few.least_wide_of_samples(left_out, n, mu, 0.05) - 1e-6
    assert few.least_wide_of_samples(left_out, n, mu, 0.05) > 0.1


def test_rows_left_out_move_least_squares_by_what_is_said(few) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 2))
    X[:3, 0] += 8.0
    y = X @ [1.0, -1.0] + generator.normal(size=400)
    y[:3] += 6.0
    rows = np.c_[X, np.ones(400)]
    truth = np.linalg.lstsq(rows, y, rcond=None)[0]
    found = few.deciding_rows(X, y, truth, "linear")
    place = found["grid"].index(3)
    without = np.linalg.lstsq(rows[3:], y[3:], rcond=None)[0]
    assert found["down"][0][place] == pytest.approx(without[0] - truth[0], rel=1e-9)
    assert few.rows_needed(found, 0, "down", 0.999 * abs(without[0] - truth[0])) == 3
    assert few.rows_needed(found, 0, "down", 100.0) == np.inf
    assert all(move < 0.0 for move in found["down"][0])
    assert all(move > 0.0 for move in found["up"][0])


@pytest.mark.parametrize("model", ["logistic", "poisson", "median"])
def test_influence_is_near_a_fit_without_the_rows(few, model: str) -> None:
    generator = np.random.default_rng(1)
    X = generator.normal(size=(4000, 2))
    u = X @ [0.4, -0.3]
    y = {
        "logistic": (generator.random(4000) < 1.0 / (1.0 + np.exp(-u))).astype(float),
        "poisson": generator.poisson(np.exp(u)).astype(float),
        "median": u + generator.normal(size=4000),
    }[model]

    def fit(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        rows = np.c_[X, np.ones(len(X))]
        losses = {
            "logistic": lambda t: np.sum(np.logaddexp(0.0, rows @ t) - y * (rows @ t)),
            "poisson": lambda t: np.sum(np.exp(rows @ t) - y * (rows @ t)),
            "median": lambda t: np.sum(np.abs(y - rows @ t)),
        }
        start = np.zeros(3) if model != "median" else np.linalg.lstsq(rows, y, rcond=None)[0]
        options = {"xatol": 1e-7, "fatol": 1e-7, "maxiter": 4000}
        return optimize.minimize(losses[model], start, method="Nelder-Mead", options=options).x

    truth = fit(X, y)
    found = few.deciding_rows(X, y, truth, model)
    place = found["grid"].index(64)
    # the rows are found again as those of the largest scores along the coefficient
    weight, residual = few._scores(np.c_[X, np.ones(4000)], y, truth, model)
    rows = np.c_[X, np.ones(4000)]
    influence = np.linalg.solve((rows * weight[:, None]).T @ rows, rows.T)[0] * residual
    left = np.argsort(-influence)[64:]
    moved = fit(X[left], y[left])[0] - truth[0]
    assert found["down"][0][place] == pytest.approx(moved, rel=0.2 if model == "median" else 0.05)


def test_a_failing_slope_has_the_cause_that_the_table_shows(few, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    page = importlib.import_module("regression_coverage_page")
    cell = {
        "population": "p", "group": "derive", "model": "linear", "n": 1000, "epsilon": 1.0, "d": 1, "samples": 100, "used": [100],
        "coverage": [0.2], "coverage_plain": [0.95], "bias": [3.0], "spread_over_plain": [1.0], "plain_error": [0.1],
        "printed": [0.1], "median_error": [0.1],
    }  # fmt: skip
    few_rows = {"p linear": {"rows": 1000, "grid": [1, 8, 64], "down": [[-0.1, -0.2, -0.3]], "up": [[0.1, 0.35, 0.5]]}}
    many_rows = {"p linear": {"rows": 1000, "grid": [1, 8, 64], "down": [[-0.1, -0.2, -0.3]], "up": [[0.1, 0.2, 0.5]]}}

    def cause(deciding: dict[str, Any], **changed: Any) -> str:
        slope = page.Figure(cell | changed, 0)
        return page.cause_of(slope, page.decided_by(slope, deciding))

    assert page.Figure(cell, 0).fails
    assert cause(few_rows) == "few records"
    assert cause(many_rows) == "other"
    assert cause(few_rows, bias=[0.5]) == "other"  # scatter, not bias
    assert cause(few_rows, coverage_plain=[0.6]) == "without privacy too"
    assert cause({}) == "not looked for"
    near = page.decided_by(page.Figure(cell | {"printed": [0.01], "epsilon": 0.05}, 0), few_rows)
    assert near.least > 0.5
    assert page.decided_by(page.Figure(cell, 0), few_rows).least < 0.5


@pytest.mark.parametrize("wrongly", [0.02, 0.16])
@pytest.mark.parametrize("apart", [0.5, 1.5, 4.0])
def test_no_rule_of_naming_beats_the_theorem_and_one_meets_it(few, apart: float, wrongly: float) -> None:
    """The best test by Neyman and Pearson, over outputs in bins, is the bound."""
    edges = np.r_[-np.inf, np.linspace(-5.0, 5.0 + apart, 2000), np.inf]
    there, here = bins(edges, 0.0), bins(edges, apart)
    order = np.argsort(-here / np.maximum(there, 1e-300), kind="stable")
    best = np.interp(wrongly, np.r_[0.0, there[order].cumsum()], np.r_[0.0, here[order].cumsum()])
    assert best == pytest.approx(few.most_named(1.0, apart, wrongly), abs=2e-3)


def test_share_to_name_is_that_of_the_best_test_with_less_of_the_budget(few) -> None:
    share = few.share_to_name(6.0, 0.65)
    assert few.most_named(6.0, 0.65 * share**0.5, 0.16) == pytest.approx(0.8)
    assert few.share_to_name(6.0, 0.24) > 1.0
    assert few.most_named(6.0, 0.24, 0.16) < 0.8
