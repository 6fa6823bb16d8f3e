"""Levels that few records have: counted with the first one, so that they do not blur the other columns (coordinates.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onedraw as od
from onedraw.methods import calibrate
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit.coordinates import rare_levels
from onedraw.models import CountRegression, Gaussian, Logistic, OrdinaryLeastSquares, Quantile
from onedraw.models.normal_estimates import Reason

from .cases import run

N, LEVELS = 20_000, 24
RARE = np.arange(4, LEVELS)
"""Levels of a category with 0.15 % of the records each; the others have a fifth or so."""

BUDGET = od.ApproxDP(1.0, 1e-6)
CATEGORIES = ((1, LEVELS),)
ROWS: dict[str, Any] = {"features": LEVELS, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}


def table(kind: str, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Simulate a number and a category coded as -1 and 1; the number matters, and one common level."""
    rng = np.random.default_rng(seed)
    shares = np.append(np.full(4, (1.0 - 0.0015 * len(RARE)) / 4.0), np.full(len(RARE), 0.0015))
    level = rng.choice(LEVELS, N, p=shares)
    coded = 2.0 * (level[:, None] == np.arange(1, LEVELS)) - 1.0
    number = rng.uniform(-1, 1, N)
    u = 0.8 * number + 0.5 * (level == 2)
    if kind == "label":
        return np.column_stack([number, coded]), (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-u))).astype(int)
    return np.column_stack([number, coded]), u + 0.5 * rng.standard_normal(N)


def planned(kind: str, categories: Any = CATEGORIES) -> Any:
    model = Logistic(**ROWS) if kind == "label" else OrdinaryLeastSquares(**ROWS, response_bound=4.0)
    return calibrate(AveragedSteps(categories=categories), model, BUDGET, n=N)


@pytest.mark.parametrize("kind", ["number", "label"])
def test_common_columns_have_intervals_beside_many_rare_levels(kind: str) -> None:
    result = run(planned(kind), table(kind))
    merged = result.where.merged
    assert set(RARE) <= set(np.flatnonzero(merged))
    assert not merged[:4].any()
    assert result.given[:4].all()
    assert not result.given[:-1][merged].any()
    assert (result.estimate[:-1][merged] == 0.0).all(), "they are counted with the first level"
    # a level's column is coded by -1 and 1, so that its coefficient is half of what the level adds
    truth = np.array([0.8, 0.0, 0.25, 0.0])
    assert (np.abs(result.estimate[:4] - truth) <= 5.0 * result.standard_errors[:4]).all()
    assert (result.standard_errors[:4] < 0.25).all()
    assert "rare levels counted with the base level" in result.estimand_of("y")


def test_merged_levels_are_named_as_such() -> None:
    result = run(planned("label"), table("label"))
    reasons = {
        refusal.reason
        for refusal, merged in zip(result.refusals, result.where.merged, strict=False)
        if merged and refusal
    }
    assert reasons == {Reason.MERGED}


@pytest.mark.parametrize("kind", ["number", "label"])
def test_unmerged_rare_levels_refuse_intervals(kind: str) -> None:
    """The planted fault, columns that are no category: they are kept, and blur the others or have no interval themselves."""
    result = run(planned(kind, ()), table(kind))
    assert not result.where.merged.any()
    assert not result.given[:-1][RARE].any()


def test_rule_merges_rare_levels_below_the_noise_alone() -> None:
    problem = planned("label").mechanism.problem(planned("label"))
    moments = np.full(LEVELS, 0.2)
    moments[[0, 3, 5]] = 0.001, 0.001, 0.03
    assert np.flatnonzero(rare_levels(problem, moments, 0.05)).tolist() == [3], "0 is a number, 5 is no rare level"
    assert not rare_levels(problem, moments, 0.0005).any(), "it stands out of the noise"


def test_directions_without_records_move_nothing_that_is_reported() -> None:
    """Iterates wander along them; coefficients, errors and the specification test do not follow."""
    from dataclasses import replace

    result = run(planned("label"), table("label"))
    far = result.published.step + 1e3 * result.where.absent
    moved = replace(result, published=replace(result.published, step=far))
    assert moved.estimate == pytest.approx(result.estimate)
    assert moved.specification == pytest.approx(result.specification, rel=1e-6)
    assert moved.standard_errors == pytest.approx(result.standard_errors, rel=1e-6, nan_ok=True)


def test_a_row_with_a_merged_level_has_no_interval() -> None:
    result = run(planned("number"), table("number"))
    rows = np.append(np.full(LEVELS, -1.0), 1.0) * np.ones((3, 1))
    rows[1, 2], rows[2, RARE[0]] = 1.0, 1.0
    assert np.isnan(result.reach(rows, 0.95)).tolist() == [False, False, True]


@pytest.mark.parametrize("kind", ["number", "label", "count", "quantile"])
def test_a_table_of_which_no_level_is_left_makes_nothing_fail(kind: str) -> None:
    rows: dict[str, Any] = {**ROWS, "features": 3}
    model: Any = {
        "number": lambda: OrdinaryLeastSquares(**rows, response_bound=4.0), "label": lambda: Logistic(**rows),
        "count": lambda: CountRegression(**rows, largest=8), "quantile": lambda: Quantile(**rows, level=0.5, response_bound=4.0),
    }[kind]()  # fmt: skip
    plan = calibrate(AveragedSteps(categories=((0, 3),)), model, BUDGET, n=N)
    y = np.arange(N) % 2
    result = run(plan, (-np.ones((N, 3)), y if kind == "label" else y.astype(float)))
    assert result.where.merged.all()
    assert result.given.tolist() == [False, False, False, True]
    assert np.isfinite(result.estimate).all()
    assert {refusal.reason for refusal in result.refusals if refusal} == {Reason.MERGED}
    assert result.dependence
