"""`describe`: table 1 in one spend, with intervals, differences, marks of noise, CSV, LaTeX and two printed pages."""

from __future__ import annotations

import csv
import io
import time

import numpy as np
import pytest

import onedraw as od
from onedraw.errors import InvalidSchema, WrongCall
from onedraw.release.description import Cell


def columns_of(numbers, categories):
    columns = {"sex": {"kind": "category", "levels": ["F", "M"], "missing": "F"}}
    columns |= {f"number{k}": {"kind": "number", "lower": 0, "upper": 100, "missing": 50} for k in range(numbers)}
    columns |= {
        f"category{k}": {"kind": "category", "levels": ["x", "y", "z"], "missing": "x"} for k in range(categories)
    }
    return od.Schema.from_dict({"dataset": "table", "columns": columns})


def frame_of(n, numbers, categories, seed=0):
    generator = np.random.default_rng(seed)
    sex = generator.choice(["F", "M"], n)
    frame = {"sex": sex}
    frame |= {f"number{k}": (generator.normal(45, 12, n) + 6 * (sex == "M")).clip(0, 100) for k in range(numbers)}
    frame |= {f"category{k}": generator.choice(["x", "y", "z"], n, p=[0.5, 0.3, 0.2]) for k in range(categories)}
    return frame


@pytest.fixture(scope="module")
def found():
    return od.describe(frame_of(6000, 2, 2), columns_of(2, 2), epsilon=1.0, by="sex", random_state=1)


def line(found, column, statistic, level=""):
    return next(
        one for one in found.table.lines if (one.column, one.statistic, one.level) == (column, statistic, level)
    )


def test_numbers_are_near_the_truth_with_intervals_that_hold_it(found):
    frame = frame_of(6000, 2, 2)
    for k, group in enumerate(("F", "M")):
        own = frame["number0"][frame["sex"] == group]
        for statistic, truth in (
            ("mean", own.mean()),
            ("median", np.median(own)),
            ("lower quartile", np.quantile(own, 0.25)),
        ):
            cell = line(found, "number0", statistic).cells[k]
            assert cell.low <= truth <= cell.high
            assert abs(cell.value - truth) < 2.5
        assert (
            line(found, "number0", "standard deviation").cells[k].low
            <= own.std()
            <= line(found, "number0", "standard deviation").cells[k].high
        )
        share = np.mean(frame["category0"][frame["sex"] == group] == "y")
        assert line(found, "category0", "share", "y").cells[k].value == pytest.approx(share, abs=0.04)
        assert line(found, "records", "records").cells[k].value == pytest.approx(len(own), abs=60)


def test_differences_and_tests_stand_beside(found):
    mean = line(found, "number0", "mean")
    assert mean.difference.low <= -6.0 <= mean.difference.high
    assert mean.p_value < 0.01
    assert line(found, "category0", "share", "x").p_value > 0.001
    assert line(found, "number0", "standard deviation").difference is None


def test_one_charge_one_certificate_and_the_ledger_confirms_it(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("table", od.ApproxDP(2.0, 1e-5))
    found = od.describe(
        frame_of(2000, 1, 1), columns_of(1, 1), epsilon=1.0, by=["sex"], ledger=ledger, out=tmp_path / "r.json"
    )
    assert od.verify(tmp_path / "r.json", ledger=ledger).answer == "authentic"
    account = ledger.account("table")
    assert account.reservations == 1
    assert ledger.remaining("table").spent_epsilon <= 1.0 + 1e-9
    assert od.load(tmp_path / "r.json").table_one().lines == found.table.lines


def test_csv_and_latex_have_every_cell(found, tmp_path):
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert sum(row["group"] != "sex=F − sex=M" for row in rows) == len(found.table.cells)
    assert {row["too_noisy"] for row in rows} <= {"True", "False", ""}
    text = found.to_latex()
    assert text.count(r"\\") == len(list(found.table.words())) + 2
    assert text.startswith(r"\begin{tabular}{lrrrr}")
    assert r"\%" in text
    assert found.to_csv(tmp_path / "t.csv").read_text(encoding="utf-8") == found.to_csv()
    with pytest.raises(od.errors.CannotWrite):
        found.to_csv(tmp_path / "t.csv")
    assert "<table>" in found._repr_html_()


def test_a_name_is_escaped_wherever_it_is_shown():
    schema = od.Schema.from_dict(
        {"columns": {"=a<b&c_d%": {"kind": "binary", "missing": "no"}, "x": {"kind": "binary", "missing": "no"}}}
    )
    generator = np.random.default_rng(1)
    data = {name: generator.choice(["no", "yes"], 500) for name in schema.columns}
    found = od.describe(data, schema, epsilon=1.0, random_state=1)
    assert "<b&c" not in found._repr_html_()
    assert r"=a$<$b\&c\_d\%" in found.to_latex()
    assert "'=a<b&c_d%" in found.to_csv()


def test_cells_are_marked_by_half_of_the_declared_range():
    assert not Cell(1.0, 0.0, 5.0, 10.0).too_noisy
    assert Cell(1.0, 0.0, 5.1, 10.0).too_noisy
    assert Cell(1.0, float("nan"), float("nan"), 10.0).too_noisy
    found = od.describe(frame_of(60, 1, 1), columns_of(1, 1), epsilon=0.2, by="sex", random_state=1)
    assert found.noisy_share > 0.3
    assert "too noisy" in str(found)
    assert f"{100 * found.noisy_share:.1f} %" in found.table.note
    assert not any(one.statistic == "median" for one in found.table.lines)  # quartiles would be noise: a public rule


def test_three_groups_have_one_test_and_no_group_has_none():
    schema = od.Schema.from_dict({"columns": {
        "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
        "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
    }})  # fmt: skip
    generator = np.random.default_rng(4)
    data = {"ward": generator.choice(["a", "b", "c"], 5000), "age": generator.normal(50, 10, 5000)}
    three = od.describe(data, schema, epsilon=1.0, by="ward", random_state=1)
    assert three.table.head == ["", "ward=a", "ward=b", "ward=c", "p"]
    assert 0.0 < line(three, "age", "mean").p_value <= 1.0
    counts = od.Schema.from_dict({"columns": {"visits": {"kind": "count", "cap": 20, "missing": 0}}})
    visits = od.describe({"visits": generator.poisson(4, 5000)}, counts, epsilon=1.0, random_state=1)
    assert line(visits, "visits", "mean").cells[0].value == pytest.approx(4.0, abs=0.1)
    whole = od.describe(data, schema, epsilon=1.0, random_state=1)
    assert whole.table.head == ["", "all records"]
    assert line(whole, "age", "median").cells[0].value == pytest.approx(50, abs=1)


def test_what_cannot_be_described_is_refused_before_anything_is_spent():
    data, schema = frame_of(50, 1, 0), columns_of(1, 0)
    for options, words in (
        ({"by": "number0"}, "category"),
        ({"columns": ["sex"], "by": "sex"}, "twice"),
        ({"columns": []}, "No column"),
    ):
        with pytest.raises((WrongCall, InvalidSchema), match=words):
            od.describe(data, schema, epsilon=1.0, **options)
    with pytest.raises(WrongCall, match="one budget"):
        od.describe(data, schema, epsilon=1.0, budget=od.PureDP(1.0))
    with pytest.raises(od.errors.InvalidBudget, match="no default"):
        od.describe(data, schema)


def test_twenty_columns_take_seconds(tmp_path):
    data, schema = frame_of(10_000, 10, 10), columns_of(10, 10)
    start = time.process_time()
    found = od.describe(data, schema, epsilon=1.0, by="sex")
    found.report(tmp_path / "table.html")
    assert time.process_time() - start < 5.0
    assert found.noisy_share < 0.1
    page = (tmp_path / "table.html").read_text(encoding="utf-8")
    assert "number9" in page
    assert "Each of 21 tables has 2.4 % of ρ" in page
