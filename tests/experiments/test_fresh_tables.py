"""The rule that chooses fresh tables leaves out what an earlier study used, under whatever name."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

POPULATIONS = Path(__file__).parents[2] / "benchmarks" / "populations"


@pytest.fixture(scope="module")
def fresh() -> Any:
    sys.path.insert(0, str(POPULATIONS))
    try:
        return importlib.import_module("fresh")
    finally:
        sys.path.remove(str(POPULATIONS))


def table(seed: int, names: tuple[str, ...], rows: int = 2000) -> pd.DataFrame:
    """Return columns of unlike distributions."""
    generator = np.random.default_rng(seed)
    shapes = np.linspace(0.3, 4.0, len(names)) * (1 + seed)
    return pd.DataFrame({name: generator.gamma(shape, 1.0, rows) for name, shape in zip(names, shapes, strict=True)})


def test_each_clause_leaves_a_table_out(fresh) -> None:
    used = {"old": table(1, ("wage", "age", "educ", "hours"))}
    renamed = (3.0 + 2.0 * used["old"]).set_axis(["w", "x", "y", "z"], axis=1)
    tables = {
        "old": used["old"],
        "repeated": renamed,
        "relative": table(2, ("WAGE1", "age_2", "educ", "union")),
        "two_names": table(3, ("wage", "age", "rain", "snow")),
        "larger": table(4, ("price", "rooms", "area"), 3000),
        "smaller": table(5, ("price", "rooms", "area", "garden")),
        next(iter(fresh.KIN)): table(6, ("a", "b", "c")),
    }
    found = fresh.leave_out(tables, used)
    assert set(found) == {"old", "repeated", "relative", "smaller", next(iter(fresh.KIN))}
    assert found["repeated"] == "repeats old"
    assert found["relative"] == "shares its column names with old"
    assert found["smaller"] == "shares its column names with larger"


def test_no_listed_table_is_one_that_an_earlier_study_lists() -> None:
    lists = {
        name: json.loads((POPULATIONS / name).read_text(encoding="utf-8"))
        for name in ("fresh.json", "tables.json", "prediction_tables.json")
    }
    chosen = lists["fresh.json"]["populations"]
    assert len({one["table"] for one in chosen if one["group"] == "fresh"}) >= 25
    assert {one["kind"] for one in chosen if one["group"] == "fresh"} == {"number", "label", "count"}
    earlier = {one["table"] for one in lists["tables.json"]["populations"]}
    earlier |= {one["name"] for one in lists["prediction_tables.json"]["tables"]}
    assert not {one["table"] for one in chosen} & earlier
    digests = {one["sha256"] for name in ("tables.json",) for one in lists[name]["populations"]}
    assert not {one["sha256"] for one in chosen} & digests


def test_families_join_tables_that_share_column_names(fresh) -> None:
    columns = {"first": "abcd", "second": "abce", "third": "bcex", "other": "uvwx"}
    tables = {name: pd.DataFrame({letter: [0] for letter in letters}) for name, letters in columns.items()}
    splits = sys.modules[fresh.related.__module__]
    assert splits.families(tables) == [["first", "second", "third"], ["other"]]
