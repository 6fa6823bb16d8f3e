"""The network figures of Jewson et al.: data as they are told, methods with their true ε, DP-SGD against the library's, names that exist."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from experiments.beta_bayes_networks import networks, noise, run, tables, training
from experiments.expectations import expectations
from experiments.study import Table
from sklearn.metrics import roc_auc_score

from onedraw.baselines.sgd_steps import Numbers, by_jax, drawn_steps, objective_of

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "beta_bayes_networks"


def test_more_rows_of_a_simulated_set_change_none():
    few, many = (tables.simulated("regression", 3, n=n, features=4, spread=1.0) for n in (120, 1000))
    assert np.array_equal(few.X, many.X[:120])
    assert np.array_equal(few.y, many.y[:120])
    assert np.array_equal(few.y_test, many.y_test)
    assert few.X.min() >= 0.0
    assert few.X.max() <= 1.0


def test_a_simulated_response_is_the_models_own():
    """Of one seed both tasks have the same network and test rows, so that the numbers of one rank the labels of the other."""
    regression, labels = (tables.simulated(task, 0, n=50, features=32, spread=1.0) for task in run.SCORES)
    assert np.array_equal(regression.X_test, labels.X_test)
    assert set(labels.y_test) == {-1.0, 1.0}
    assert roc_auc_score(labels.y_test, regression.y_test) > 0.65
    assert roc_auc_score(labels.y_test, regression.y_test[::-1]) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("data", ["boston", "vertebral"])
def test_tables_are_split_and_scaled(data, tmp_path, monkeypatch):
    """A table of the same form: an indicator for each category, responses in [0, 1] or ±1, every tenth row held out."""
    response = {"boston": ["5", "50", "20", "10"], "vertebral": ["AB", "NO", "AB", "AB"]}[data] * 10
    lines = [f"a,kind,constant,{tables.RESPONSES[data]}", *(f"{k},{'xy'[k % 2]},1,{y}" for k, y in enumerate(response))]
    (tmp_path / tables.FILES[data]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setenv("ONEDRAW_DATA", str(tmp_path))
    tables.table.cache_clear()
    found = tables.split(data, "", 0, n=30, features=0, spread=1.0)
    tables.table.cache_clear()
    assert found.X.shape == (30, 3), "a, and one indicator of each kind"
    assert len(found.y_test) == 4
    assert set(np.unique(np.concatenate([found.y, found.y_test]))) == ({-1.0, 1.0} if data == "vertebral" else {0.0, 1.0, 1 / 3, 1 / 9})  # fmt: skip


def test_each_method_says_what_epsilon_is_true_of_it():
    drawn = {(one.name, one.epsilon): one for one in networks.draw_methods("regression", tables.SIMULATED, 1000, 2)}
    assert drawn["published", 1.0].true_epsilon == pytest.approx(7.69, abs=0.01), "errata 3"
    assert drawn["optimal", 1.0].true_epsilon == 1.0
    assert ("jewson", 5.0) not in drawn, "no β below 7.52"
    assert ("jewson", 10.0) in drawn
    classes = {(one.name, one.epsilon): one for one in networks.draw_methods("classification", "abalone", 1000, 10)}
    assert classes["jewson", 0.5].plan.parameters["beta"] == pytest.approx(5.0)
    assert not any(name == "published" for name, _ in classes), "the published one is right there"
    fitted = {(one.name, one.epsilon): one for one in networks.training_methods("regression", tables.SIMULATED, 1000)}
    assert fitted["dp-sgd add/remove", 1.0].true_epsilon > 1.9
    assert math.isinf(fitted["sgd", 1.0].true_epsilon)
    assert fitted["dp-sgd", 5.0].setting.steps == 190


def test_the_stored_noise_is_the_accountants():
    assert noise.replaced(1000, 1.0) == pytest.approx(training.noise(1000, 1.0, "replace-one").multiplier, rel=1e-3)
    left_out = training.noise(1000, 1.0, "add/remove").multiplier
    assert noise.left_out_epsilon(1000, 1.0, left_out) == pytest.approx(1.0, rel=1e-3)
    for n, epsilon in run.settings():
        assert (
            training.noise(n, epsilon, "replace-one").epsilon
            <= epsilon
            < training.noise(n, epsilon, "add/remove").epsilon
        )


def test_plain_steps_are_the_librarys():
    """The same batches, noise and start: the same θ as the library's own engine; and a twin without noise learns."""
    split = tables.simulated("regression", 1, n=50, features=2, spread=1.0)
    private, twin = training.trained("regression", [split], [1], [training.Setting(30, 2.0, adam=False), training.Setting(30, 0.0, adam=True)])[0]  # fmt: skip
    model = training.model_of("regression", 2)
    objective, generator = objective_of(model), np.random.default_rng([1, 50])
    start = training._start(objective, generator)
    drawn = drawn_steps(generator, n=50, batch_size=50, steps=30, size=objective.size)
    encoded = model.summarise((split.X, split.y))
    (own,) = by_jax(objective, encoded.X, encoded.y, start, drawn.split(1), Numbers(1.0, 2.0, 0.01 / 50))
    assert private == pytest.approx(own, abs=1e-9)
    errors = [
        networks.score("regression", networks.predicted(model, theta, encoded.X), split.y) for theta in (start, twin)
    ]
    assert errors[1] < errors[0]


def test_the_area_under_the_curve_is_scikit_learns():
    generator = np.random.default_rng(0)
    found, truth = np.round(generator.normal(size=200), 1), np.where(generator.random(200) < 0.3, 1.0, -1.0)
    assert networks.score("classification", found, truth) == pytest.approx(roc_auc_score(truth, found))
    assert math.isnan(networks.score("classification", found, np.ones(200)))


@cache
def methods_of(task, data):
    return (*networks.draw_methods(task, data, 1000, 2), *networks.training_methods(task, data, 1000))


def invented(study):
    """A table with every cell, method and ε of a study."""
    rows = []
    for cell in study.cells:
        for place, one in enumerate(methods_of(cell["task"], cell["data"])):
            for epsilon in networks.epsilons(cell["data"]) if math.isnan(one.epsilon) else (one.epsilon,):
                row = {"seed": 0, "method": one.name, "epsilon": epsilon, "true_epsilon": one.true_epsilon, "score": 0.01 * place}  # fmt: skip
                rows.append({**cell, **row})
    return Table({name: [row[name] for row in rows] for name in rows[0]})


@pytest.mark.parametrize("study", run.STUDIES[:3], ids=lambda study: study.name)
def test_whatever_is_expected_is_computed(study):
    table = invented(study)
    found = study.quantities(table)
    assert {one.quantity for one in expectations(study, FOLDER)} <= set(found)
    assert study.findings(table)
    assert study.figures(table.where(epsilon=5.0))


def test_a_gain_is_positive_for_the_better_one():
    rows = {"task": ["regression"] * 4, "method": ["a", "a", "b", "b"], "score": [0.0, 0.1, 0.5, 0.7]}
    assert run.gain(Table(rows), "a", "b") == pytest.approx((0.55, 0.05))
    assert run.gain(Table(rows | {"task": ["classification"] * 4}), "a", "b")[0] == pytest.approx(-0.55)


def test_what_a_figure_pairs_keeps_its_means():
    rows = {"n": [50] * 4, "epsilon": [1.0] * 4, "seed": [0, 1, 0, 1], "method": ["posterior"] * 2 + ["sgd"] * 2}
    assert run.paired(Table(rows | {"score": [1.0, 3.0, 2.0, 5.0]}), "n") == pytest.approx([2.0, 2.0, 3.0, 4.0])


@pytest.mark.slow
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_cell_runs(task, monkeypatch):
    monkeypatch.setattr(networks, "EFFORT", networks.EFFORT._replace(descent=100, warmup=10, steps=10, leapfrog=4))
    found = list(networks.run(seeds=(0, 1), task=task, data=tables.SIMULATED, n=50, features=2, spread=1.0))
    table = Table({name: [row[name] for row in found] for name in found[0]})
    assert np.isfinite(table["score"]).all()
    assert set(table.values("epsilon")) == set(networks.EPSILONS[tables.SIMULATED])
    again = list(networks.run(seeds=(1,), task=task, data=tables.SIMULATED, n=50, features=2, spread=1.0))
    ours = table.where(seed=1, method="sgd")["score"]
    assert ours == pytest.approx([row["score"] for row in again if row["method"] == "sgd"], abs=1e-9)
