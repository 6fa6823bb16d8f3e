"""The comparison of two source trees uses the same splits, resumes, and judges by paired differences."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def study(load_module) -> Any:
    return load_module("regression_accuracy")


@pytest.fixture(scope="module")
def page(study, load_module) -> Any:
    return load_module("regression_accuracy_page")


@pytest.fixture(scope="module")
def load_module() -> Any:
    def load(name: str) -> Any:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def table(study) -> Any:
    generator = np.random.default_rng(0)
    X = generator.uniform(0.0, 1.0, (500, 2))
    y = (generator.random(500) < X[:, 0]).astype(float)
    return study.Table("labels", "derive", "label", X, y, np.zeros(2), np.ones(2), 0.0, 1.0)


def cell(side: str, split: int, score: float, *, source: str = "a", epsilon: float | None = 1.0) -> dict[str, Any]:
    about = {"table": "labels", "group": "derive", "kind": "label", "n": 500, "d": 2}
    return {
        "side": side, "source": source, **about, "epsilon": epsilon, "split": split, "score": score, "constant": 0.5,
        "mechanism": "AveragedSteps",
    }  # fmt: skip


def test_splits_are_disjoint_and_repeat(study, table) -> None:
    train, test = study.split_rows(table, 3)
    assert len(train) == 400
    assert sorted([*train, *test]) == list(range(500))
    again, _ = study.split_rows(table, 3)
    other, _ = study.split_rows(table, 4)
    assert np.array_equal(train, again)
    assert not np.array_equal(train, other)


def test_measures_are_those_of_their_definitions(study, table) -> None:
    assert study.measure(table, np.array([0, 0, 1, 1]), np.array([1.0, 3.0, 3.0, 4.0])) == pytest.approx(3.5 / 4.0)
    number = table._replace(kind="number", y_upper=10.0)
    assert study.measure(number, np.array([1.0, 10.0]), np.array([4.0, 99.0])) == pytest.approx(np.sqrt(4.5))
    count = table._replace(kind="count", y_upper=10.0)
    deviance = 2.0 * np.mean([2.0, 3.0 * np.log(1.5) - 1.0])
    assert study.measure(count, np.array([0.0, 3.0]), np.array([2.0, 2.0])) == pytest.approx(deviance)


def test_verdict_is_by_the_paired_difference(page) -> None:
    old = [0.60, 0.70, 0.80]
    lines = [cell("old", split, score) for split, score in enumerate(old)]
    lines += [cell("plain", split, score, source="", epsilon=None) for split, score in enumerate(old)]
    for change, verdict in ((0.01, "better"), (-0.01, "worse")):
        new = [cell("new", split, score + change + 0.001 * split) for split, score in enumerate(old)]
        (comparison,), refusals = page.compare([*lines, *new])
        assert comparison.verdict == verdict
        assert comparison.gain == pytest.approx(100.0 * (change + 0.001))
        assert comparison.error == pytest.approx(0.1 / np.sqrt(3.0))
        assert comparison.is_plain == (verdict == "better")
        assert not refusals
    new = [
        cell("new", split, score + change)
        for split, (score, change) in enumerate(zip(old, (0.02, -0.02, 0.001), strict=True))
    ]
    assert page.compare([*lines, *new])[0][0].verdict == "equal"


def test_cells_of_an_earlier_source_are_left_out(page) -> None:
    lines = [cell("old", split, 0.7) for split in range(3)] + [
        cell("plain", split, 0.7, source="", epsilon=None) for split in range(3)
    ]
    lines += [cell("new", split, 0.1, source="before") for split in range(3)]
    lines += [cell("new", split, 0.8, source="after") for split in range(2)]
    (comparison,), _ = page.compare(lines)
    assert comparison.new.tolist() == [0.8, 0.8]


def test_one_tree_beside_itself_is_equal_and_runs_once(study, table, tmp_path, monkeypatch, capsys) -> None:
    np.savez(
        tmp_path / "labels.npz", X=table.X, y=table.y, group="derive", columns=["a", "b"], lower=table.lower, upper=table.upper,
        categories=np.zeros((0, 2), dtype=int), kind="label", y_lower=0.0, y_upper=1.0, models=np.array([], dtype=str),
    )  # fmt: skip
    index = {"labels": {"group": "derive"}, "kept": {"group": "hold-out"}}
    (tmp_path / "index.json").write_text(json.dumps(index), encoding="utf-8")
    out, page = tmp_path / "cells.jsonl", tmp_path / "page.md"
    arguments = ["regression_accuracy.py", "--old", str(ROOT), "--populations", str(tmp_path), "--out", str(out)]
    arguments += ["--groups", "derive", "--splits", "2", "--epsilon", "2"]
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", arguments)
        study.main()
        records = study.read_cells(out)
        assert len(records) == 6
    scores = {
        side: [record["score"] for record in records if record["side"] == side] for side in ("old", "new", "plain")
    }
    assert scores["old"] == scores["new"]
    assert scores["plain"] != scores["new"]
    assert {record["table"] for record in records} == {"labels"}
    monkeypatch.setattr(sys, "argv", [*arguments, "--summary", str(out), "--page", str(page)])
    study.main()
    assert "| labels | derive | 500 | 2 | 2 |" in page.read_text(encoding="utf-8")
    capsys.readouterr()
