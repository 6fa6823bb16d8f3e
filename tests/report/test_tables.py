"""The report of plain-noise releases: titles, bars, intervals and what they are about."""

import re

import numpy as np
import pytest

import onedraw as od
from onedraw.methods import Moments, calibrate
from onedraw.models import CategoryTable, Columns
from onedraw.report import report_html
from onedraw.report.pictures import Row, share_plot
from onedraw.report.tables import correlation_words, correlations, cross_of
from tests.report.cases import Page

COLUMN = np.array([0, 1, 2, 1] * 100)
TWO = {"by": {"sex": ["F", "M"]}}
ROWS = [[value, "FM"[place % 2]] for place, value in enumerate(COLUMN.tolist())]


@pytest.mark.parametrize(
    ("model", "data", "words"),
    [
        (od.DPProportion(1.0, classes=[0, 1], missing=0), COLUMN, ["Proportion", "exact inversion"]),
        (od.DPHistogram(1.0, levels=[0, 1, 2]), COLUMN, ["Histogram", "The share of records with each level"]),
        (
            od.DPCount(1.0, levels=[0, 1, 2]),
            COLUMN,
            ["Counts", "the number in these records", "public number of records"],
        ),
        (od.DPMean(1.0, bounds=(0, 2)), COLUMN, ["Mean", "released within the same spend"]),
        (od.DPSum(1.0, bounds=(0, 2)), COLUMN, ["Sum", "the number in these records"]),
        (od.DPVariance(1.0, bounds=(0, 2)), COLUMN, ["Variance"]),
        (
            od.DPMean(1.0, bounds=(0, 2), **TWO),
            ROWS,
            ["Mean by sex", "sex=F: records", "Who belongs to which group is private"],
        ),
        (od.DPCount(1.0, levels=[0, 1, 2], **TWO), ROWS, ["Counts by sex", "sex=M: 2"]),
        (od.DPProportion(1.0, classes=[0, 1], **TWO), ROWS, ["Proportion by sex", "quotient of two noisy counts"]),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
def test_a_page_says_what_was_released_and_what_its_interval_is_about(model, data, words):
    release = model.fit(data).release_
    text = Page(report_html(release, interval=release.summary(0.95))).text
    for expected in words:
        assert expected in text
    for name in release.certificate.draw.names:
        assert name in text


def cross_page(model, data):
    release = model.fit(data).release_
    return report_html(release, interval=release.summary(0.95)), release


def test_a_cross_table_shows_every_cell_in_full_and_totals_that_add_up():
    codes = np.repeat([0, 1, 2, 1], 1000).tolist()
    rows = [[value, "FM"[place % 7 > 2]] for place, value in enumerate(codes)]
    html, release = cross_page(od.DPCount(1.0, levels=[0, 1, 2], random_state=4, **TWO), rows)
    text = Page(html).text
    cells = np.array(release.draws[0]).reshape(2, 3)
    for number in [*cells.ravel(), *cells.sum(axis=0), *cells.sum(axis=1), 4000]:
        assert f"{number:,.0f}" in text
    assert "Totals are sums of the cells shown" in text
    assert html.count('class="number tone-') == 6
    assert html.index("tone-5") > 0  # the largest


@pytest.mark.parametrize(
    ("model", "cells"),
    [
        (od.DPHistogram(1.0, levels=[0, 1, 2], **TWO), 6),
        (od.DPProportion(1.0, classes=[0, 1], by={"sex": ["F", "M"], "site": ["a", "b", "c"]}), 6),
        (od.DPMean(1.0, bounds=(0, 2), by={"sex": ["F", "M"], "site": ["a", "b", "c"]}), 6),
        (od.DPCount(1.0, between=(1, 2), by={"sex": ["F", "M"], "site": ["a", "b", "c"]}), 6),
        (od.DPMean(1.0, bounds=(0, 2), **TWO), 0),
        (od.DPProportion(1.0, classes=[0, 1], **TWO), 0),
        (od.DPCount(1.0, levels=[0, 1, 2]), 0),
    ],
)
def test_two_sides_make_a_heat_map_and_one_category_stays_bars(model, cells):
    data = (
        COLUMN
        if model.by is None
        else ROWS
        if len(model.by) == 1
        else [[*row, "abc"[k % 3]] for k, row in enumerate(ROWS)]
    )
    html, _ = cross_page(model, data)
    assert html.count('class="number tone-') == cells
    assert ('class="strip"' in html) == (cells == 0)


def test_the_longer_side_of_a_cross_table_runs_down_the_page():
    table = CategoryTable(tuple("abcdef"), by=("sex",), groups=(("F", "M"),))
    words = [{"value": str(place), "interval": None} for place in range(12)]
    found = cross_of(table, "school", list(range(12)), words)
    assert (found["down"], found["across"]) == ("school", "sex")
    assert [row["name"] for row in found["rows"]] == list("abcdef")
    assert [cell["value"] for cell in found["rows"][1]["cells"]] == ["1", "7"]
    assert (found["totals"], found["all"]) == (["15", "51"], "66")


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


def test_bars_of_counts_are_as_long_as_the_counts():
    rows = [Row(str(count), float(count)) for count in (10, 100, 400)]
    lengths = [
        float(re.search(r'<rect class="share"[^>]* width="([\d.]+)%"', picture)[1])
        for picture in share_plot(rows, percent=False).pictures
    ]
    assert lengths == pytest.approx([2.4, 24.0, 96.0])
