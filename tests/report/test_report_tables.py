"""The report of plain-noise releases: titles, bars, intervals and what they are about."""

import numpy as np
import pytest
from report_pages import Page

import onedraw as od
from onedraw.report import coefficient_table, report_html

COLUMN = np.array([0, 1, 2, 1] * 100)
TWO = {"by": {"sex": ["F", "M"]}}
ROWS = [[value, "FM"[place % 2]] for place, value in enumerate(COLUMN.tolist())]


@pytest.mark.parametrize(
    ("model", "data", "words"),
    [
        (od.DPProportion(1.0, classes=[0, 1]), COLUMN, ["Proportion", "exact inversion"]),
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
    text = Page(report_html(release, interval=coefficient_table(release, 0.95))).text
    for expected in words:
        assert expected in text
    for name in release.certificate.draw.names:
        assert name in text
