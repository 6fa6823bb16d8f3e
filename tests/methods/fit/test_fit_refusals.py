"""Why a coefficient has no interval, and how far the estimate depends on far-out records, from what was published (refusals.py, methods/interval_refusals.py)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw.methods import calibrate
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit.coordinates import first_of, where_of
from onedraw.methods.fit.refusals import dependence_words
from onedraw.methods.interval_refusals import refusal_line, refusal_lines, why_refused
from onedraw.models import Gaussian, Logistic, OrdinaryLeastSquares
from onedraw.models.normal_estimates import Reason, Refusal

from .cases import BUDGET, plan_of, run, table_of

N = 4000
ROWS: dict[str, Any] = {"bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}


def numbers(X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return X, X.sum(axis=1) + 0.5 * np.random.default_rng(seed).standard_normal(len(X))


def test_columns_that_repeat_each_other_are_named_with_the_remedy() -> None:
    rng = np.random.default_rng(1)
    first, other = rng.uniform(-1, 1, (2, N))
    X = np.column_stack([first, other, np.clip(first + 0.01 * rng.standard_normal(N), -1, 1)])
    plan = calibrate(AveragedSteps(), OrdinaryLeastSquares(3, **ROWS, response_bound=6.0), BUDGET, n=N)
    result = run(plan, numbers(X, 2))
    assert result.given.tolist() == [False, True, False, True]
    refusal = result.refusals[0]
    assert refusal is not None
    assert refusal.reason == Reason.ALIKE
    assert set(refusal.causes) == {0, 2}
    assert result.refusals[1] is None
    (line,) = refusal_lines(result, ["age", "weight", "years", "intercept"])
    assert line.startswith(
        "age and years: the noise cannot tell age and years apart. Leave one of them out, combine them"
    )
    assert all(result.privacy_is_least == ~result.given)


def test_rare_level_is_named_also_for_the_coefficients_that_depend_on_it() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack(
        [rng.uniform(-1, 1, N), 2.0 * (np.arange(N) < 4) - 1.0, 2.0 * (rng.uniform(size=N) < 0.4) - 1.0]
    )
    y = (rng.uniform(size=N) < 0.5).astype(int)
    model = Logistic(3, **ROWS)
    plan = calibrate(AveragedSteps(categories=((1, 3),)), model, BUDGET, n=N)
    rare = [result for seed in range(12) if not (result := run(plan, (X, y), seed)).given[1]]
    assert rare, "four records in 4,000 should not give an interval each time"
    assert any(result.refusals[1].reason == Reason.MERGED for result in rare), "noise often shows that it is rare"
    for result in rare:
        refusal = result.refusals[1]
        assert refusal is not None
        if refusal.reason == Reason.MERGED:
            assert result.where.merged[1]
            continue
        assert 1 in refusal.causes
        if refusal.causes == (1,):
            assert refusal.reason == Reason.RARE
            assert refusal.share < 0.05


def test_privacy_part_is_stated_for_every_coefficient() -> None:
    rng = np.random.default_rng(1)
    first = rng.uniform(-1, 1, N)
    X = np.column_stack([first, np.clip(first + 0.01 * rng.standard_normal(N), -1, 1)])
    plan = calibrate(AveragedSteps(), OrdinaryLeastSquares(2, **ROWS, response_bound=6.0), BUDGET, n=N)
    result = run(plan, numbers(X, 2))
    sampling, privacy = result.errors
    assert np.isnan(sampling[:2]).all()
    assert np.isfinite(privacy).all()
    assert np.isnan(result.standard_errors[:2]).all()
    scaled = result.in_units(np.eye(3), np.full(3, 10.0), np.zeros(3))
    assert scaled.errors[1] == pytest.approx(10.0 * privacy), "it is in the units of the column"


def test_column_with_one_possible_value_has_no_privacy_part() -> None:
    model = OrdinaryLeastSquares(2, **(ROWS | {"bounds": ((-1, 5), (1, 5))}), response_bound=6.0)
    plan = calibrate(AveragedSteps(), model, BUDGET, n=N)
    X = np.column_stack([np.random.default_rng(1).uniform(-1, 1, N), np.full(N, 5.0)])
    result = run(plan, numbers(X, 2)).in_units(*model.column_units())
    assert result.privacy_is_known.tolist() == [True, False, True]
    assert np.isnan(result.errors[1][1])
    (line,) = [line for line in refusal_lines(result, ["age", "site", "intercept"]) if not line.startswith("intercept")]
    assert line.startswith("site: the declared range has one value, so that nothing is estimated. Leave the column out")


# The specification test


def test_dependence_is_called_visible_beyond_its_rarest_hundredth() -> None:
    usual = special.chdtri(4, 0.01) / 4
    assert "none visible" in dependence_words(0.999 * usual, 4)
    assert "above 3.3 in 1 of 100" in dependence_words(1.1, 4)
    assert dependence_words(1.1, 4).startswith(
        "Dependence on far-out records: none visible (1.1; about 1 if there is none"
    )
    large = dependence_words(1.001 * usual, 4)
    assert "Dependence on far-out records: visible" in large
    assert "logarithm of the response" in large


def test_dependence_says_what_else_may_cause_it() -> None:
    assert "ordinary records too" in dependence_words(9.0, 4, short=True)
    assert "Columns whose variation the noise hides" in dependence_words(9.0, 4, hidden=True)
    assert dependence_words(float("nan"), 0) == "", "no direction is known"
    assert "at most twice the noise" in dependence_words(9.0, 4, chosen=True)
    assert "none visible" in dependence_words(1.0, 4, chosen=True)
    few = run(plan_of("label", 2000), table_of("label", 2000))
    assert few.problem.sizes.early_bound < 0.75 * few.problem.size**0.5
    assert ("ordinary records too" in few.dependence) == ("none visible" not in few.dependence)


def test_specification_of_a_model_without_tails_is_about_one() -> None:
    """Forty fits from fixed seeds: the mean of a chi-squared over its degrees of freedom, and few beyond the hundredth."""
    found = [run(plan_of("number"), table_of("number", 8000, seed), seed=seed) for seed in range(40)]
    values = np.array([result.specification for result in found])
    assert 0.5 < values.mean() < 1.4
    assert sum("none visible" in result.dependence for result in found) >= 37


def test_specification_sees_skewed_tails() -> None:
    rng, n = np.random.default_rng(2), 30_000
    X = rng.uniform(-1, 1, (n, 2))
    y = np.exp(0.7 * X[:, 0] + 1.2 * rng.standard_normal(n))
    plan = calibrate(
        AveragedSteps(), OrdinaryLeastSquares(2, **ROWS, response_bound=100.0), od.ApproxDP(2.0, 1e-6), n=n
    )
    found = [run(plan, (X, y), seed).dependence for seed in range(4)]
    assert sum("records: visible (" in words for words in found) >= 2


# Words


NAMES = ["age", "weight", "ward=b", "ward=c", "intercept"]


@pytest.mark.parametrize(
    ("refused", "refusal", "said"),
    [
        (["ward=c"], Refusal(Reason.RARE, (3,), 3.0, 0.004),
         "ward=c: few records (about 0.4 %) have the level ward=c. Merge it with a common level, or use about 3 times this ε."),
        (["age", "ward=c"], Refusal(Reason.RARE, (3,), float("inf"), 0.0),
         "age and ward=c: hardly any records have the level ward=c, on which the others depend. Merge it with a common level, or "
         "use more records."),
        (["intercept"], Refusal(Reason.RARE, (2, 3), 2.0, 0.01),
         "intercept: few records (about 1 %) have the levels ward=b and ward=c, on which it depends. Merge them with a common "
         "level, or use about 2 times this ε."),
        (["age"], Refusal(Reason.NARROW, (0,), 3.0),
         "age: age varies too little over its declared range. Narrow its declared bounds, or use about 3 times this ε."),
        (["age", "weight"], Refusal(Reason.ALIKE, (1, 0), 1.5),
         "age and weight: the noise cannot tell age and weight apart. Leave one of them out, combine them into one column, or use "
         "about 1.5 times this ε."),
        (["ward=b"], Refusal(Reason.LEVELS, (2, 3), 1.5),
         "ward=b: the noise cannot tell ward=b and ward=c apart. Merge them, or use about 1.5 times this ε."),
        (["ward=b", "ward=c", "intercept"], Refusal(Reason.BASE, (2, 3), 1.5, 0.004),
         "ward=b, ward=c and intercept: few records (about 0.4 %) have the base level, which ward=b and ward=c are "
         "compared with. Compare with a common level: declare one first, name it in the formula, or read "
         "summary(base='commonest')."),
        (["age", "intercept"], Refusal(Reason.UNSETTLED, (0,)),
         "age and intercept: the steps did not converge along age, on which the others depend. Narrow its declared bounds, or take "
         "its logarithm."),
        (["age"], Refusal(), "age: the noise at this n and ε hides how the records vary along the columns. Use a larger ε, "
         "more records or fewer columns."),
    ],
)  # fmt: skip
def test_refusal_names_the_columns_and_the_remedy(refused: list[str], refusal: Refusal, said: str) -> None:
    assert refusal_line(refused, [refusal] * len(refused), NAMES) == said


def test_coefficients_with_one_cause_share_a_sentence() -> None:
    rare, alike = Refusal(Reason.RARE, (3,), 3.0, 0.004), Refusal(Reason.ALIKE, (0, 1), 2.0)
    fit: Any = SimpleNamespace(refusals=(alike, Refusal(Reason.ALIKE, (1, 0), 3.0), None, rare, rare))
    lines = refusal_lines(fit, NAMES)
    assert len(lines) == 2
    assert lines[0].startswith("age and weight: ")
    assert "about 3 times this ε" in lines[0], "what helps both"
    assert lines[1].startswith("ward=c and intercept: ")
    assert why_refused(fit, NAMES) == " ".join(lines)
    assert why_refused(SimpleNamespace(refusals=(None,) * 5), NAMES) == ""  # type: ignore[arg-type]


def test_long_lists_say_how_many_more() -> None:
    names = [f"c{index}" for index in range(9)]
    line = refusal_line(names, [Refusal()] * 9, names)
    assert line.startswith("c0, c1, c2, c3, c4 and 4 more: ")


@pytest.mark.parametrize(("columns", "deviations"), [(1, 2.0), (3, 2.0), (24, 3.5)])
def test_direction_within_its_noise_is_told_from_none(columns: int, deviations: float) -> None:
    """Two deviations at least, 0.7 of the spectral edge where columns are many: noise alone seldom looks like a direction."""
    plan = plan_of("number", 100_000, columns=columns)
    problem, size = plan.mechanism.problem(plan), columns + 1
    noise = problem.sizes.design_noise / problem.n
    first = first_of(problem, np.zeros(size), np.eye(size)[np.tril_indices(size)] * problem.n / 3.0)
    for times, weak in ((0.97, True), (1.03, False)):
        second = np.eye(size)
        second[0, 0] = times * deviations * noise
        where = where_of(problem, first, second[np.tril_indices(size)] * problem.n)
        assert where.weak.sum() == weak
