"""Words of the default fit (results.py, page.py): what is estimated, how sure it is, and why an interval is missing."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.methods.fit import AveragedSteps
from onedraw.report import report_html
from onedraw.report.page import plan_html

from .cases import Page, outside_loads

SCHEMA = {
    "columns": {
        "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
        "years": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
        "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
        "cost": {"kind": "number", "lower": 0, "upper": 1000, "missing": 300},
    }
}
N = 6000


def frame(tails: bool = False) -> pd.DataFrame:
    """Patients whose age and years nearly repeat each other; with tails, a few costs are far out."""
    rng = np.random.default_rng(5)
    age = rng.uniform(10, 90, N)
    found = pd.DataFrame({"age": age, "years": age + 0.3 * rng.standard_normal(N), "ward": rng.choice(list("abc"), N)})
    noise = rng.standard_t(1.2, N) if tails else rng.standard_normal(N)
    found["cost"] = np.clip(200 + 2 * age + 50 * (found.ward == "b") + 40 * noise, 0, 1000)
    return found


@pytest.fixture(scope="module")
def planned():
    return od.plan(SCHEMA, "cost", "linear", n=N, epsilon=1.0)


@pytest.fixture(scope="module")
def released(planned):
    return planned.release(frame(), random_state=1)


@pytest.fixture(scope="module")
def page(released) -> Page:
    html = report_html(released, interval=released.summary())
    assert outside_loads(html) == []
    return Page(html)


def test_report_names_the_estimand_and_the_specification_test(released, page):
    summary = released.summary()
    assert summary.estimand == "least-squares coefficients of cost"
    assert "Least-squares coefficients of cost." in page.text
    assert re.search(r"Dependence on far-out records: [^(]+\([\d.]+; about 1 if there is none", page.text)
    assert summary.dependence in page.text
    assert "about the coefficients named above, whether or not the model holds" in page.text


def test_summary_prints_estimand_test_and_privacy_part(released):
    text = str(released.summary())
    assert "Estimated: least-squares coefficients of cost." in text
    assert "Dependence on far-out records: " in text
    assert re.search(r"std err +privacy part +p", text)
    assert re.search(r"age +[-\d.]+ +– +– +≥ [\d.]+ +–", text)


def test_certificate_says_what_is_estimated(released):
    assert "by averaged noisy Newton steps towards the least-squares coefficients." in released.certificate.sentence
    assert od.verify(released).answer == "consistent"


def test_columns_without_an_interval_are_named_with_the_remedy(released, page):
    summary = released.summary()
    without = [name for name, row in zip(summary.names, summary, strict=True) if not row.given]
    assert set(without) >= {"age", "years"}
    assert "the noise cannot tell age and years apart" in summary.reason
    assert "Leave one of them out, combine them into one column, or use" in summary.reason
    assert f"No interval: {summary.reason}" in page.text
    assert f"No interval: {summary.reason}" in str(summary)


def test_privacy_part_stands_beside_every_coefficient(released, page):
    summary = released.summary()
    assert all(np.isfinite(row.privacy_error) for row in summary)
    assert [part["privacy_error_is_least"] for part in summary.to_dicts()] == [not row.given for row in summary]
    assert page.text.count("≥ ") > sum(not row.given for row in summary), "in the table, and in the note below it"
    assert "After ≥ it may be larger" in page.text
    first = summary.first(2)
    assert first.least == summary.least[:2]
    assert first.estimand == summary.estimand


def test_limited_influence_is_named_where_the_estimand_is_not_reached():
    schema = {"columns": SCHEMA["columns"] | {"cost": {"kind": "number", "lower": 0, "upper": 10_000, "missing": 300}}}
    data = frame(tails=True)
    rng = np.random.default_rng(6)
    data["cost"] = np.clip(data.cost + 60 * np.abs(rng.standard_t(1.0, N)), 0, 10_000)
    released = od.plan(schema, "cost", "linear", n=N, epsilon=1.0).release(data, random_state=2)
    summary = released.summary()
    assert not released.fit.reached
    assert summary.estimand == "least-squares coefficients of cost, with the influence of single records limited"
    page = Page(report_html(released, interval=summary))
    assert "with the influence of single records limited." in page.text
    assert summary.note in page.text
    assert "so far out that their influence is limited" in page.text


def test_fit_without_any_interval_still_states_the_noise_for_privacy():
    few = od.plan(SCHEMA, "cost", "linear", n=500, epsilon=0.5)
    assert isinstance(few.plan.mechanism, AveragedSteps)
    released = few.release(frame().iloc[:500], random_state=1)
    summary = released.summary()
    assert summary.reason.startswith("standard errors would drown in the noise at this n and ε")
    with pytest.raises(PromiseRefused, match="No interval: standard errors would drown in the noise at this n and ε"):
        released.conf_int()
    assert not summary.given
    assert all(np.isfinite(row.privacy_error) for row in summary)
    page = Page(report_html(released, interval=summary))
    assert "Privacy sd" in page.text
    assert "Sampling sd" not in page.text
    assert "No interval: " in page.text


def test_plan_page_says_what_is_estimated_and_how_well_by_column(planned):
    page = Page(plan_html(planned))
    assert "Estimated: least-squares coefficients of cost. The release says whether they were reached" in page.text
    assert "Column Typical design Worst design Typical, without privacy" in page.text
    typical, worst = planned.choices.eligible[0].designs
    for design in (typical, worst):
        assert design.words in page.text
        assert all(f"{column.private:.4g}" in page.text for column in design.columns)
    assert planned.choices.intervals in page.text


def test_estimator_gives_the_same_reasons():
    model = od.DPLinearRegression(1.0, schema=SCHEMA, target="cost", random_state=1).fit(frame())
    assert "the noise cannot tell age and years apart" in model.interval_reason_
    assert model.interval_reason_ == model.summary().reason


# Levels compared with the commonest one


def with_rare_base(n: int = 12_000) -> pd.DataFrame:
    """One record in 400 is on the first ward declared; most are on the last."""
    rng = np.random.default_rng(9)
    found = pd.DataFrame({"age": rng.uniform(0, 100, n), "ward": rng.choice(list("abc"), n, p=[0.0025, 0.2975, 0.7])})
    found["cost"] = np.clip(200 + 2 * found.age + 50 * (found.ward == "b") + 60 * rng.standard_normal(n), 0, 1000)
    return found


@pytest.fixture(scope="module")
def rare_base():
    columns = {name: SCHEMA["columns"][name] for name in ("age", "ward", "cost")}
    return od.plan({"columns": columns}, "cost", "linear", n=12_000, epsilon=1.0).release(
        with_rare_base(), random_state=4
    )


def test_levels_compared_with_the_commonest_are_differences_of_coefficients(rare_base):
    declared, common = rare_base.summary(), rare_base.summary(base="commonest")
    assert declared.names == ("age", "ward=b", "ward=c", "intercept")
    assert common.names == ("age", "ward=b vs c", "ward=a vs c", "intercept")
    assert [row.term for row in common] == list(common.names)
    age, b, c, intercept = (row.estimate for row in declared)
    assert [row.estimate for row in common] == pytest.approx([age, b - c, -c, intercept + c])
    assert common.joint == declared.joint, "the test of the whole category does not depend on it"
    assert "Levels are compared with the commonest one, by the published noisy shares: ward with c." in str(common)


def test_commonest_base_gives_more_intervals_where_the_declared_one_is_rare(rare_base):
    declared, common = rare_base.summary(), rare_base.summary(base="commonest")
    assert [row.given for row in declared] == [True, False, False, False]
    assert [row.given for row in common][:3] == [True, True, False]
    assert "have the base level, which ward=b and ward=c are compared with" in declared.reason
    assert "read summary(base='commonest')" in declared.reason
    assert declared.dependence.endswith("Columns whose variation the noise hides can cause this too.")
    assert common[1].low < 50.0 < common[1].high
    assert common[1].std_err < 5.0
    page = Page(report_html(rare_base, interval=declared))
    assert page.titled("Compared with the commonest level")
    assert "ward=b vs c" in page.text
    assert not Page(report_html(rare_base, interval=common)).titled("Compared with the commonest level")


def test_commonest_base_leaves_a_category_alone_whose_first_level_is_commonest(released):
    names = released.summary(base="commonest").names
    assert names[0] == "age"
    assert all(name.startswith("ward=") for name in names[2:4])
    wards = [name for name in names if " vs " in name]
    assert len(wards) in (0, 2), "all levels of a category or none"


def test_estimator_compares_with_the_commonest_level_too(rare_base):
    columns = {name: SCHEMA["columns"][name] for name in ("age", "ward", "cost")}
    model = od.DPLinearRegression(1.0, schema={"columns": columns}, target="cost", random_state=4).fit(with_rare_base())
    assert model.summary(base="commonest").names == ("age", "ward=b vs c", "ward=a vs c", "intercept")


def test_another_base_is_refused(released):
    with pytest.raises(WrongCall, match="'declared' or 'commonest'; got 'rarest'"):
        released.summary(base="rarest")


def test_a_robust_line_is_named_in_plan_page_summary_and_report():
    planned = od.plan(SCHEMA, "cost", "linear", n=N, epsilon=1.0, estimand="robust")
    released = planned.release(frame(), random_state=2)
    summary = released.summary()
    assert summary.estimand == planned.estimand == "coefficients of a robust line for cost"
    assert summary.note == planned.estimand_note
    assert f"Estimated: {summary.estimand}." in str(summary)
    for text in (str(summary), Page(plan_html(planned)).text, Page(report_html(released, interval=summary)).text):
        assert "oefficients of a robust line for cost." in text
        assert "Rows and residuals far out count less" in text
        assert "differ from those of least squares" in text
    assert od.verify(released.certificate).answer == "consistent"
