"""A private choice among settings (evaluating.py): the best is taken, one charge, and bad settings lose."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import onedraw as od
from onedraw.errors import InvalidBudget, InvalidModel, WrongCall
from onedraw.models.tables.scores import LOSS_STEPS, Losses, ModelChoice


@pytest.fixture(scope="module")
def held_out():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(600, 2))
    return X, (generator.random(600) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)


@pytest.fixture(scope="module")
def settings(held_out):
    X, y = held_out
    return {
        "majority": DummyClassifier().fit(X, y),
        "logistic": LogisticRegression().fit(X, y),
        "stiff": LogisticRegression(C=1e-5).fit(X, y),
    }


def test_the_best_setting_wins_and_the_ledger_is_charged_once(tmp_path, settings, held_out):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("held-out", od.PureDP(1.0))
    found = od.choose(
        settings,
        *held_out,
        epsilon=1.0,
        classes=[0, 1],
        batch=True,
        ledger=ledger,
        dataset="held-out",
        out=tmp_path / "c.json",
    )
    assert found.name == "logistic"
    assert found.model is settings["logistic"]
    assert ledger.remaining("held-out").spent_epsilon == pytest.approx(1.0, rel=1e-4)
    assert od.verify(tmp_path / "c.json", ledger=ledger).answer == "authentic"
    assert any("paid for itself" in note.statement for note in found.certificate.data.notes)


def test_regressors_compare_by_their_squared_errors():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(800, 1))
    y = 2 * X[:, 0] + generator.normal(size=800)
    good, bad = LinearRegression().fit(X, y), LinearRegression().fit(X, -y)
    assert od.choose([bad, good], X, y, epsilon=2.0, bounds=(-9, 9), largest_error=5.0, batch=True).name == "setting 1"


def test_losses_are_cut_and_a_failing_model_loses(held_out):
    X, y = held_out

    class Broken:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            if X.any():
                raise RuntimeError("never")
            return np.array([[0.5, 0.5]])

    sums = ModelChoice(("a", "b")).summarise(Losses(2, lambda: np.array([[-5.0, np.nan], [0.25, 7.0]]))).total
    assert sums == (LOSS_STEPS // 4, 2 * LOSS_STEPS)
    good = LogisticRegression().fit(X, y)
    assert od.choose({"broken": Broken(), "good": good}, X, y, epsilon=1.0, classes=[0, 1]).name == "good"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m, d: od.choose(m, *d, classes=[0, 1]), InvalidBudget, "needs epsilon"),
        (lambda m, d: od.choose([m["stiff"]], *d, epsilon=1.0, classes=[0, 1]), InvalidModel, "2 to"),
        (lambda m, d: od.choose(m, *d, epsilon=1.0), InvalidModel, "classes"),
        (lambda m, d: od.choose(m, d[0], epsilon=1.0, classes=[0, 1]), WrongCall, "true responses"),
    ],
)
def test_what_cannot_be_chosen_is_refused_in_words(settings, held_out, call, error, words):
    with pytest.raises(error, match=words):
        call(settings, held_out)
