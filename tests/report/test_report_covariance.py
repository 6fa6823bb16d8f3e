"""The report of a covariance: means and deviations as a table, correlations as a heat map with intervals."""

from __future__ import annotations

import numpy as np
import pytest

import onedraw as od
from onedraw.mechanisms import Moments, calibrate
from onedraw.models import Columns
from onedraw.report import report_html
from onedraw.report.tables import correlation_words, correlations


@pytest.fixture(scope="module")
def release():
    """Two columns that go together, one of which is almost constant, and one that is."""
    generator = np.random.default_rng(1)
    common = generator.normal(0, 0.3, 3000)
    X = np.column_stack([common, 0.5 * common + generator.normal(0, 0.2, 3000), np.full(3000, 0.2)])
    model = Columns(3, bounds=(-1, 1), feature_names=("height", "weight", "constant"))
    return od.release(calibrate(Moments(), model, od.ApproxDP(5.0, 1e-6), n=3000), X, random_state=2)


def test_the_page_has_a_table_a_heat_map_and_what_is_not_given(release) -> None:
    page = report_html(release, interval=release.summary())
    assert "Means and correlations" in page
    assert "deviation of weight" in page
    assert "The correlation matrix that was released" in page
    assert "95 % intervals" in page
    assert "correlation of weight and height" not in page.split("Which columns go together")[0].split("<main>")[1]
    assert "too little of the variance of &#39;constant&#39;" in page


def test_a_cell_of_the_heat_map_has_its_interval_and_unknown_ones_say_so(release) -> None:
    found = correlations(release.certificate, release.plan)
    lines = correlation_words(found)["lines"]
    value, (low, high) = found.values[1][0], found.intervals[1][0]
    assert low < value < high
    assert f"{low:+.2f}" in lines[1]["values"][0]
    assert lines[2]["values"] == ["unknown", "unknown"]
    assert (
        "height and weight" in correlation_words(found)["strongest"]
        or "weight and height" in correlation_words(found)["strongest"]
    )


def test_one_column_has_no_heat_map() -> None:
    plan = calibrate(Moments(), Columns(1, bounds=(0, 1)), od.ApproxDP(1.0, 1e-6), n=50)
    one = od.release(plan, np.full((50, 1), 0.3), random_state=1)
    assert correlations(one.certificate, one.plan) is None
    page = report_html(one, interval=one.summary())
    assert "deviation of feature 0" in page
    assert "Which columns go together" not in page


def test_it_predicts_nothing_and_says_so(release) -> None:
    with pytest.raises(od.errors.WrongCall, match="predicts nothing"):
        release.predict(np.zeros((2, 3)))
    with pytest.raises(od.errors.WrongCall, match="not a fit"):
        _ = release.fit
