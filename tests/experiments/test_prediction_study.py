"""The prediction study scores all methods alike, and its own methods keep the promise that they state."""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import prediction
import prediction_methods
import prediction_page


@dataclass(frozen=True)
class Zeros:
    """A generator whose noise is 0, and which keeps the deviations that it was asked for."""

    asked: list[float]

    def normal(self, mean: float, deviation: float, size: Any = None) -> Any:
        self.asked.append(deviation)
        return np.zeros(size) if size is not None else 0.0


def table(kind: str, y: list[float], classes: int = 0, upper: float = 1.0) -> prediction.Table:
    X = np.linspace(-1.0, 1.0, 2 * len(y)).reshape(-1, 2)
    bounds = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    return prediction.Table("t", "derive", kind, classes, X, np.array(y), *bounds, 0.0, upper)


def test_score_clamps_probabilities_and_normalizes():
    found = prediction.score(table("label", [0.0, 1.0], 2), np.array([0, 1]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    assert found["accuracy"] == 0.5
    assert found["log_loss"] == pytest.approx(0.5 * (math.log(1.0001) - math.log(1e-4 / 1.0001)))


def test_score_takes_predictions_that_are_no_numbers_as_the_middle():
    found = prediction.score(table("class", [0.0, 2.0], 3), np.array([0, 1]), np.full((2, 3), np.nan))
    assert found["log_loss"] == pytest.approx(math.log(3.0))
    assert prediction.score(table("number", [0.0, 1.0]), np.array([0, 1]), np.array([np.inf, np.nan]))["rmse"] == 0.5


def test_deviance_is_zero_for_exact_rates_only():
    counts = table("count", [1.0, 4.0, 2.0], upper=4.0)
    places = np.arange(3)
    assert prediction.score(counts, places, counts.y)["deviance"] == pytest.approx(0.0)
    assert prediction.score(counts, places, counts.y + 1.0)["deviance"] > 0.0


def test_splits_are_disjoint_and_cover_the_table():
    train, test = prediction.split(table("number", [float(k) for k in range(100)]), 3)
    assert len(test) == 20
    assert sorted([*train, *test]) == list(range(100))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_gaussian_parameter_is_the_tight_conversion(epsilon: float):
    from onedraw.privacy import GaussianDP

    mu = prediction_methods.gaussian_parameter(epsilon)
    assert GaussianDP(mu).delta(epsilon) == pytest.approx(prediction_methods.DELTA, rel=1e-3)


@pytest.mark.parametrize(("kind", "classes", "sensitivity"), [("label", 2, 1.0), ("class", 3, math.sqrt(2.0)), ("count", 0, 9.0)])  # fmt: skip
def test_noise_of_the_level_is_its_sensitivity_over_mu(kind: str, classes: int, sensitivity: float):
    asked: list[float] = []
    prediction_methods.noisy_level(table(kind, [0.0, 1.0], classes, 9.0), np.array([0.0, 1.0]), 0.5, Zeros(asked))
    assert asked == [pytest.approx(sensitivity / 0.5 / (2.0 if kind == "count" else 1.0))]


def test_holm_counts_sure_losses_and_few_of_chance():
    """Forty tables: one is surely behind, the others are even and two of them beyond two standard errors by construction."""
    rng, tables = np.random.default_rng(0), [{"name": f"t{place}"} for place in range(40)]
    noise = rng.standard_normal((40, 10))
    noise -= noise.mean(axis=1, keepdims=True)
    noise /= noise.std(axis=1, ddof=1, keepdims=True)
    shifts = np.zeros(40)
    shifts[:3] = -9.0, -2.2 / math.sqrt(10.0), -2.2 / math.sqrt(10.0)
    ours = {(f"t{k}", 1.0, s): {"accuracy": shifts[k] + noise[k, s]} for k in range(40) for s in range(10)}
    others = {key: {"accuracy": 0.0} for key in ours}
    assert prediction_page.verdicts(tables, ours, others, 1.0)[2] == 3
    assert prediction_page.surely_behind(tables, ours, others) == 1
    assert prediction_page.surely_behind(tables, others, others) == 0


def test_lists_of_tables_do_not_overlap():
    listed = prediction.listed()
    assert len({one["name"] for one in listed}) == len(listed)
    assert len({one["sha256"] for one in listed}) == len(listed)
    fresh = [one for one in listed if one["group"] == "fresh"]
    assert len(fresh) >= 16
    assert {one["kind"] for one in fresh} == {"label", "class", "count", "number"}
    assert all(250 <= one["n"] <= 50_000 for one in fresh)


def test_cells_are_the_same_with_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And a second run finds nothing to do."""
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    (name,) = [one["name"] for one in prediction.listed() if one["name"] == "digits"]
    np.savez(tmp_path / f"{name}.npz", X=X, y=(X[:, 0] > 0).astype(float), lower=[-1, -1], upper=[1, 1], group="derive", kind="label", classes=2, y_lower=0.0, y_upper=1.0)  # fmt: skip
    monkeypatch.setenv("ONEDRAW_PREDICTION", str(tmp_path))
    found = []
    for processes in (1, 2):
        out = tmp_path / str(processes)
        given = {
            "methods": ["level"],
            "out": out,
            "group": None,
            "tables": [name],
            "splits": 3,
            "epsilons": [1.0],
            "seconds": np.inf,
        }
        for _ in range(2):
            prediction.run(argparse.Namespace(**given, processes=processes))
        cells = [json.loads(line) for line in (out / "level.jsonl").read_text().splitlines()]
        found.append(sorted((one["split"], one["accuracy"], one["log_loss"]) for one in cells))
    assert len(found[0]) == 3
    assert found[0] == found[1]


def test_page_counts_a_loss_beyond_two_errors_and_nothing_else():
    tables = [{"name": "t"}]
    ours = {("t", 1.0, k): {"log_loss": 1.0 + 0.01 * k} for k in range(10)}
    worse = {key: {"log_loss": one["log_loss"] - 0.1 + 0.001 * key[2]} for key, one in ours.items()}
    assert prediction_page.verdicts(tables, ours, worse, 1.0)[:3] == (0, 0, 1)
    assert prediction_page.verdicts(tables, worse, ours, 1.0)[:3] == (1, 0, 0)
    assert prediction_page.verdicts(tables, ours, ours, 1.0)[:3] == (0, 1, 0)


def test_listed_tables_have_half_of_them_held_out():
    listed = json.loads(prediction.LISTS[0].read_text())["tables"]
    held_out = [one for one in listed if one["group"] == "hold-out"]
    assert len(listed) >= 20
    assert 2 * len(held_out) == len(listed)
    assert not any(one["known"] for one in held_out)
    assert all(250 <= one["n"] <= 50_000 for one in listed)


def test_clipped_descent_moves_little_for_one_record():
    """A planted record that is not clipped would move the gradient by far more than 2C/n."""
    one = table("label", [0.0, 1.0] * 50, 2)
    other = replace(one, X=np.vstack([1e9 * np.ones((1, 2)), one.X[1:]]))
    everybody = np.arange(100)
    found = [prediction_methods.predict("clipped-gd", each, everybody, everybody[1:], 5.0, 1) for each in (one, other)]
    assert np.max(np.abs(found[0] - found[1])) < 0.2


def test_a_missing_module_is_no_refusal(monkeypatch: pytest.MonkeyPatch):
    """It would be counted as a cell without a prediction, and the page would say nothing."""

    def fail(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'pydantic'")

    monkeypatch.setattr(prediction, "latest", lambda name: table("label", [0.0, 1.0] * 10, 2))
    monkeypatch.setattr(prediction_methods, "predict", fail)
    with pytest.raises(ModuleNotFoundError):
        prediction.cell_of(("t", "auto", 0, 1.0))
