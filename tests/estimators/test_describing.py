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


# ── missing cells that are skipped ───────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def skipped():
    generator, n = np.random.default_rng(1), 6000
    sex, yes = generator.choice(["F", "M"], n).astype(object), generator.choice(["no", "yes"], n).astype(object)
    age = generator.normal(30, 5, n).clip(0, 100) + 10.0 * (sex == "M")
    age[:900], sex[600:1200], yes[:300] = np.nan, None, None
    schema = od.Schema.from_dict({"dataset": "table", "columns": {
        "sex": {"kind": "category", "levels": ["F", "M"]}, "age": {"kind": "number", "lower": 0, "upper": 100},
        "yes": {"kind": "binary"}}})  # fmt: skip
    return {"sex": sex, "age": age, "yes": yes}, schema


def test_missing_cells_are_counted_and_left_out_of_everything_else(skipped, tmp_path):
    frame, schema = skipped
    found = od.describe(frame, schema, epsilon=3.0, by="sex", random_state=1)
    known = ~np.isnan(frame["age"]) & np.array([sex is not None for sex in frame["sex"]])
    for k, group in enumerate(("F", "M")):
        own = frame["age"][known & (frame["sex"] == group)]
        assert abs(line(found, "age", "known").cells[k].value - len(own)) < 60
        for statistic, truth in (("mean", own.mean()), ("median", np.median(own)), ("standard deviation", own.std())):
            cell = line(found, "age", statistic).cells[k]
            assert cell.low <= truth <= cell.high
        assert abs(line(found, "records", "records").cells[k].value - np.sum(frame["sex"] == group)) < 60
    assert [one.name for one in found.table.lines if one.column == "age"][:2] == ["known", "missing in all groups"]
    for column, missing in (("sex", 600), ("age", 1200), ("yes", 900)):
        statistic = next(one for one in found.table.lines if (one.column, one.statistic) == (column, "missing"))
        (cell,) = statistic.cells
        assert cell.low <= missing <= cell.high
    assert line(found, "age", "mean").difference.low <= -10.0 <= line(found, "age", "mean").difference.high
    rows = [row for row in csv.DictReader(io.StringIO(found.to_csv())) if row["statistic"] == "missing"]
    assert [row["column"] for row in rows] == ["sex", "age", "yes"]
    assert "missing in all groups" in found.to_latex()
    found.report(tmp_path / "table.html")
    assert "missing in all groups" in (tmp_path / "table.html").read_text()
    found.save(tmp_path / "table.json")
    assert od.load(tmp_path / "table.json").table_one() == found.table


def test_without_groups_a_column_has_its_missing_cells(skipped):
    frame, schema = skipped
    found = od.describe(frame, schema, epsilon=3.0, random_state=1)
    (cell,) = next(one for one in found.table.lines if (one.column, one.statistic) == ("age", "missing")).cells
    assert cell.low <= 900 <= cell.high
    assert abs(line(found, "age", "median").cells[0].value - np.nanmedian(frame["age"])) < 2.0


def test_records_of_two_groupings_are_counts_also_where_the_last_is_binary(skipped):
    frame, schema = skipped
    found = od.describe(frame, schema, epsilon=3.0, by=["sex", "yes"], random_state=1)
    wanted = [np.sum((frame["sex"] == sex) & (frame["yes"] == yes)) for sex in ("F", "M") for yes in ("no", "yes")]
    assert np.abs([cell.value for cell in line(found, "records", "records").cells] - np.array(wanted)).max() < 60


def test_groups_without_known_cells_have_no_estimates(skipped):
    frame, schema = skipped
    frame = frame | {"age": np.where(frame["sex"] == "M", np.nan, frame["age"])}
    found = od.describe(frame, schema, epsilon=1.0, by="sex", random_state=1)
    for statistic in ("mean", "standard deviation", "median"):
        first, second = line(found, "age", statistic).cells
        assert first.value > 0.0
        assert np.isnan(second.value)
    assert np.isnan(line(found, "age", "mean").p_value)


def test_quartiles_whose_intervals_have_no_ends_are_left_out():
    schema = od.Schema.from_dict({"dataset": "t", "columns": {"age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50}}})  # fmt: skip
    found = od.describe({"age": np.linspace(20, 60, 30)}, schema, epsilon=10.0, random_state=1)
    assert [one.statistic for one in found.table.lines] == ["mean", "standard deviation"]
