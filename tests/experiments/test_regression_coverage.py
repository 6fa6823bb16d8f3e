"""The coverage study runs the mechanism's own stages and compares in the units of the result."""

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onedraw as od
from onedraw.samplers import seeded_generator

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def study() -> Any:
    spec = importlib.util.spec_from_file_location("regression_coverage", FOLDER / "regression_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["regression_coverage"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two small populations in the format of benchmarks/populations."""
    path, generator, n = tmp_path_factory.mktemp("populations"), np.random.default_rng(0), 4000
    X = np.c_[generator.uniform(20.0, 80.0, n), generator.integers(0, 2, n)]
    wage = 3.0 + 0.05 * X[:, 0] - 1.0 * X[:, 1] + generator.normal(0.0, 1.0, n)
    label = (generator.random(n) < 1.0 / (1.0 + np.exp(1.0 - 0.03 * X[:, 0]))).astype(int)
    index = {}
    for name, kind, y, model in (("wages", "number", wage, "linear"), ("labels", "label", label, "logistic")):
        rows = np.c_[X, np.ones(n)]
        truth = np.linalg.lstsq(rows, y, rcond=None)[0] if model == "linear" else np.array([0.03, 0.0, -1.0])
        np.savez(
            path / f"{name}.npz", X=X, y=y, group="simulated", columns=["age", "female"], lower=[20.0, 0.0], upper=[80.0, 1.0],
            categories=np.array([[1, 2]]), kind=kind, y_lower=0.0, y_upper=12.0, models=[model], **{f"truth_{model}": truth},
        )  # fmt: skip
        index[name] = {"group": "simulated", "kind": kind, "models": [model], "n": n, "d": 2}
    (path / "index.json").write_text(json.dumps(index), encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "model"), [("wages", "linear"), ("labels", "logistic")])
def test_run_once_is_the_release_of_the_same_seed(study, folder, name: str, model: str) -> None:
    table = study.read_table(str(folder), name, model)
    plan = study.calibrate(table, 1000, 2.0)
    for seed in (1, 2):
        rows, y = table.natural[:1000], table.y[:1000]
        alone = study.run_once(plan, rows, y, seeded_generator(seed))
        release = od.release(plan, (rows, y), random_state=seed)
        released = plan.mechanism.result(plan, release.certificate.draw.stages)
        # sums are equal but for the last digits of the scores that are added up, by NumPy in one and by JAX in the other
        for name, values in released.published.to_dict().items():
            assert alone.published.to_dict()[name] == pytest.approx(values, rel=1e-9, abs=1e-12)
        assert alone.estimate == pytest.approx(released.estimate, rel=1e-9)


def test_truth_is_in_the_units_of_the_result(study, folder) -> None:
    """The whole table's least squares in encoded units is the converted truth."""
    table = study.read_table(str(folder), "wages", "linear")
    estimate, errors = study.fit_plain(table.X, table.y, "linear")
    assert estimate == pytest.approx(table.truth, rel=1e-6, abs=1e-9)
    plan = study.calibrate(table, 4000, 100.0)
    result = study.run_once(plan, table.natural, table.y, np.random.default_rng(3))
    assert np.abs(result.estimate - estimate).max() < 3.0 * np.sqrt(np.diag(result.covariance)).max()
    assert (errors > 0.0).all()


def test_study_resumes_and_summarizes(study, folder, tmp_path, monkeypatch, capsys) -> None:
    out, page = tmp_path / "cells.jsonl", tmp_path / "page.md"
    arguments = ["regression_coverage.py", "--populations", str(folder), "--out", str(out), "--samples", "3"]
    arguments += ["--n", "2000", "--epsilon", "2"]
    for ran in ("2 cells to run", "0 cells to run"):
        monkeypatch.setattr(sys, "argv", arguments)
        study.main()
        assert ran in capsys.readouterr().out
    assert len(study.read_cells(out)) == 2
    monkeypatch.setattr(sys, "argv", [*arguments, "--summary", str(out), "--page", str(page)])
    study.main()
    assert "| logistic | 2,000 | 2 | 1 (0) | 2 |" in page.read_text(encoding="utf-8")


def test_figures_count_samples_that_are_given_and_reached(study) -> None:
    truth, estimate = np.zeros(1), np.array([[0.0], [3.0], [0.0], [5.0]])
    given, reached = np.array([[True], [True], [False], [True]]), np.array([True, True, True, False])
    ones = np.ones((4, 1))
    figures = study.summarize_samples(
        truth, estimate, ones, ones, ones, given, reached, np.zeros((4, 1)), ones, np.ones(4), np.zeros(4), np.zeros(4)
    )
    assert figures["used"].tolist() == [2]
    assert figures["coverage"].tolist() == [0.5]
    assert figures["coverage_given"] == pytest.approx([1.0 / 3.0])
    assert figures["distance"] == pytest.approx([np.sqrt(34.0 / 4.0)])


@pytest.mark.parametrize("processes", [1, 2])
def test_study_stops_when_its_time_is_over_and_goes_on_later(study, folder, tmp_path, monkeypatch, processes) -> None:
    out = tmp_path / "cells.jsonl"
    arguments = [
        "regression_coverage.py",
        "--populations",
        str(folder),
        "--out",
        str(out),
        "--samples",
        "2",
        "--n",
        "2000",
    ]
    monkeypatch.setattr(sys, "argv", [*arguments, "--processes", str(processes), "--minutes", "-1"])
    study.main()
    assert study.read_cells(out) == []
    monkeypatch.setattr(sys, "argv", arguments)
    study.main()
    assert len(study.read_cells(out)) == 2


def test_the_main_cells_run_first_and_large_ones_before_small_ones(study, folder) -> None:
    options = argparse.Namespace(
        groups=["simulated"], only=[], models=list(study.MODELS), n=[2_000, 10_000], epsilon=[0.5, 1.0]
    )
    cells = study.list_cells(folder, options)
    assert [cell[2:] for cell in cells[:2]] == [(10_000, 1.0)] * 2
    assert [cell.n for cell in cells[2:]] == [10_000] * 2 + [2_000] * 4
