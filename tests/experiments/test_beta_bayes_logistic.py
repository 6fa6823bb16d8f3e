"""Logistic regression of Jewson et al.: each piece against another way to compute it, and the names that are expected."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from experiments.beta_bayes_logistic import attack, data_sets, logistic, methods, shapes
from experiments.beta_bayes_logistic.run import STUDIES
from experiments.expectations import expectations
from experiments.study import Table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

CLONE = Path(__file__).resolve().parents[2]
HOME = CLONE / "experiments" / "beta_bayes_logistic"
NAMED = {study.name: study for study in STUDIES}


def made_up(study, generator, *, quick):
    """A table with every cell's parameters, and numbers that mean nothing."""
    rows = []
    for cell, seeds in study.pieces(quick=quick, seeds=None):
        numbers = dict.fromkeys(("log_rmse", "auc", "signs", "per_class", "published", "limit"), 0.0)
        shown = {"epsilon": math.inf, "records": 0, "accuracy": 0.6} | numbers
        rows += [
            shown | cell | {name: generator.uniform(0.5, 0.9) for name in numbers} | {"seed": seed} for seed in seeds
        ]
    return Table({name: [row[name] for row in rows] for name in rows[0]})


@pytest.mark.parametrize(
    "name", ["beta-bayes-logistic", "beta-bayes-tables", "beta-bayes-features", "beta-bayes-attack"]
)
def test_every_expectation_names_a_quantity(name):
    study = NAMED[name]
    generator = np.random.default_rng(0)
    quick, full = (study.quantities(made_up(study, generator, quick=one)) for one in (True, False))
    stated = {one.quantity for one in expectations(study, HOME)}
    assert stated <= set(full)
    assert stated & set(quick)


@pytest.mark.parametrize(("name", "run", "cells"), [
    ("beta-bayes-losses", shapes.curves, [{"kind": "classification"}, {"kind": "regression"}]),
    ("beta-bayes-influence", shapes.influence, [{"beta": 1.0}, {"beta": 1.25}]),
])  # fmt: skip
def test_losses_and_influence_meet_what_is_expected(name, run, cells):
    rows = [cell | row for cell in cells for row in run(seeds=(0,), **cell)]
    found = NAMED[name].quantities(Table({key: [row[key] for row in rows] for key in rows[0]}))
    met = {one.quantity: one.holds(found[one.quantity], 1) for one in expectations(NAMED[name], HOME) if one.quick}
    assert met
    assert all(met.values()), met


def test_the_influence_under_kld_is_half_the_deviation_of_the_log_likelihood_at_small_distances():
    """½√((y⁴ + 1)/2n): the posterior of (μ, log σ) is nearly normal with variances 1/n and 1/2n."""
    found = {row["distance"]: row["influence"] for row in shapes.influence(seeds=(0,), beta=1.0)}
    for y in (0.0, 1.0, 2.0):
        assert found[y] == pytest.approx(0.5 * math.sqrt((y**4 + 1) / 2000), rel=0.05)


def test_the_area_under_the_curve_is_that_of_another_library_also_with_ties():
    generator = np.random.default_rng(1)
    scores, positive = generator.integers(0, 9, size=(3, 200)).astype(float), generator.uniform(size=200) < 0.3
    assert logistic.auc(scores, positive) == pytest.approx([roc_auc_score(positive, one) for one in scores], abs=1e-12)


@pytest.mark.parametrize(
    ("method", "ridge"), [("output shrinking published", 1 / 9), ("output fixed published", 100 / 9)]
)
def test_output_perturbation_is_the_published_fit_and_noise(method, ridge):
    split = data_sets.simulated(1, 100, 3)
    plan = methods.plan_of(method, 2, 100, 2.0)
    assert plan.parameters["noise"] == pytest.approx(2 / (ridge * 2.0), rel=1e-6)
    (fit,) = methods.estimates(method.replace("output", "minimum").removesuffix(" published"), [split], [0])[0]
    rows = np.column_stack([split.X, np.ones(100)])
    other = LogisticRegression(C=1 / ridge, fit_intercept=False, tol=1e-10, max_iter=1000).fit(rows, split.y)
    assert fit == pytest.approx(other.coef_[0], abs=1e-4)


def test_what_is_false_as_published_is_not_proven_and_what_stands_beside_it_is():
    proven = {method: methods.plan_of(method, 1, 1000, 20.0).mechanism.proven for method in methods.PRIVATE}
    assert [method for method, one in proven.items() if not one] == ["corollary8", "output shrinking published", "output fixed published"]  # fmt: skip


def test_noise_in_the_norm_has_the_length_that_is_proven(monkeypatch):
    """E‖b‖ = p·s; that of Laplace noise of scale s in each coordinate is another."""
    monkeypatch.setattr(methods, "NOISES", 20_000)
    plan = methods.plan_of("output fixed", 3, 200, 1.0)
    lengths = np.linalg.norm(methods._noise(plan, 0, 4), axis=1)
    assert lengths.mean() == pytest.approx(4 * plan.parameters["noise"], rel=0.03)
    assert lengths.std() == pytest.approx(2 * plan.parameters["noise"], rel=0.05)


def test_true_signs_and_the_error_are_those_of_the_true_parameter(monkeypatch):
    split = data_sets.simulated(0, 100, 4)
    monkeypatch.setattr(logistic, "estimates", lambda *_: np.stack([[split.truth + 2.0, split.truth + 2.0]]))
    (row,) = logistic.run(seeds=(0,), method="jewson", n=100, d=4, epsilon=1.0)
    assert row["log_rmse"] == pytest.approx(math.log(2.0))
    assert row["auc"] > 0.5
    assert row["signs"] == pytest.approx(((split.truth + 2.0 > 0) == (split.truth > 0)).mean())


def test_a_table_is_scaled_by_its_training_rows_and_a_tenth_is_kept_to_predict(monkeypatch, tmp_path):
    lines = [f"{number},{number % 7},{'AB' if number % 3 else 'NO'}" for number in range(50)]
    (tmp_path / "vertebral_column_2C.csv").write_text("\n".join(["first,second,class", *lines]))
    monkeypatch.setenv("ONEDRAW_DATA", str(tmp_path))
    data_sets.read.cache_clear()
    split, part = data_sets.of_table(0, "vertebral", None), data_sets.of_table(0, "vertebral", 20)
    data_sets.read.cache_clear()
    assert split.X.shape == (45, 2)
    assert len(split.unseen_y) == 5
    assert (split.X.min(axis=0) == 0).all()
    assert (split.X.max(axis=0) == 1).all()
    assert part.X.shape == (20, 2)
    assert (part.truth == split.truth).all()


@pytest.mark.parametrize("method", ["jewson", "gdp", "output fixed"])
def test_rounds_of_the_attack_agree_with_its_exact_accuracy(method):
    found = attack.attacked(method, 7.0)
    accuracy, draw = attack.law(method, 7.0)
    assert (draw(np.random.default_rng(0), 40_000) > 0).mean() == pytest.approx(accuracy, abs=0.015)
    assert found["per_class"] < found["limit"] < found["published"], "errata 6c"


def test_a_coin_flip_proves_nothing_per_class_and_log_3_as_published():
    found = attack.attacked(attack.COIN, 1.0)
    assert found["per_class"] < 0.05
    assert found["published"] == pytest.approx(math.log(3), abs=0.1)


@pytest.mark.slow
def test_cells_are_computed_with_jax_numpy_and_scipy_alone():
    """Every method, where the others cannot be imported."""
    code = (
        "import sys\n"
        "for name in ('pandas', 'matplotlib', 'sklearn', 'pyarrow', 'opendp', 'dp_accounting'): sys.modules[name] = None\n"
        "from experiments.beta_bayes_logistic import attack, logistic, methods\n"
        "for method in methods.PRIVATE: list(logistic.run(seeds=(0,), method=method, n=50, d=2, epsilon=1.0))\n"
        "for method in methods.TWINS: list(logistic.run(seeds=(0,), method=method, n=50, d=2))\n"
        "list(attack.run(seeds=(0,), method='jewson', epsilon=1.0))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CLONE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_grids_are_those_of_the_paper():
    cells = NAMED["beta-bayes-logistic"].cells
    private = {(cell["method"], cell["n"], cell["epsilon"]) for cell in cells if "epsilon" in cell}
    assert private == set(product(methods.PRIVATE, (100, 300, 1000, 3000, 10_000), (0.2, 1.0, 2.0, 7.0, 10.0, 20.0)))
    assert {cell["method"] for cell in cells if "epsilon" not in cell} == set(methods.TWINS)
