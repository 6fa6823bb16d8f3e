"""Estimators among scikit-learn's tools, under a ledger: every fit is charged before it reads a row."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import onedraw as od
from onedraw.errors import BudgetSpent, OnedrawError, WrongCall
from onedraw.estimators import NotCovered
from onedraw.estimators.base import CHOSEN, SCORED
from onedraw.ledger import Kind

FIT = {"bounds": (0, 1), "response_bound": (0, 10), "mechanism": "least-squares", "missing": "middle", "n_draws": 1}


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    X = generator.random((120, 2))
    return X, 5 + 4 * (X[:, 0] - 0.5) + generator.standard_normal(120)


@pytest.fixture
def ledger(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(3.0, 1e-4))
    return ledger


def fits(ledger) -> int:
    return sum(event.kind == Kind.RESERVED for event in ledger.events("patients"))


class Watched:
    """A table whose shape may be seen, and which notes when its records are read."""

    def __init__(self, rows, seen):
        self.rows, self.seen, self.shape = rows, seen, rows.shape

    def __len__(self):
        return len(self.rows)

    def __array__(self, dtype=None, copy=None):
        self.seen.append("read")
        return self.rows


# ── the ledger ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fit_is_charged_before_it_reads_a_row(data, ledger):
    X, y = data
    seen = []
    rows = Watched(X, seen)

    class Noting(list):
        def append(self, what):
            super().append((what, fits(ledger)))

    rows.seen = Noting()
    od.DPLinearRegression(1.0, **FIT, ledger=ledger, dataset="patients").fit(rows, y)
    assert rows.seen[0] == ("read", 1)


def test_a_spent_budget_raises_and_nothing_is_read(data, ledger, tmp_path):
    X, y = data
    model = od.DPLinearRegression(2.0, **FIT, ledger=str(tmp_path / "ledger.db"), dataset="patients").fit(X, y)
    assert model.certificate_.ledger.dataset == "patients"
    seen = []
    with pytest.raises(BudgetSpent):
        clone(model).fit(Watched(X, seen), y)
    assert seen == []
    assert fits(ledger) == 1
    with pytest.raises(WrongCall, match="no dataset name"):
        od.DPLinearRegression(0.1, **FIT, ledger=ledger).fit(X, y)
    assert od.verify(model.certificate_, ledger=ledger).answer == "authentic"


def test_columns_are_charged_too(ledger):
    od.DPMean(1.0, bounds=(0, 1), ledger=ledger, dataset="patients").fit(np.zeros(50))
    assert fits(ledger) == 1
    seen = []
    with pytest.raises(BudgetSpent):
        od.DPProportion(5.0, classes=[0, 1], ledger=ledger, dataset="patients").fit(Watched(np.zeros(50), seen))
    assert seen == []


def test_copies_share_the_ledger(data, ledger):
    model = od.DPLinearRegression(1.0, **FIT, ledger=ledger, dataset="patients")
    assert clone(model).ledger is ledger
    assert copy.deepcopy(model).ledger is ledger
    assert pickle.loads(pickle.dumps(model)).fit(*data).ledger is not ledger
    assert fits(ledger) == 1


@pytest.mark.finding("C9")
def test_a_fitted_estimator_holds_no_diagnostics(data):
    X, y = data
    model = od.DPLinearRegression(1.0, **FIT | {"mechanism": "noisy-gradient huber", "missing": "middle"}).fit(X, y)
    assert model.release_.diagnostics == {}
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.certificate_ == model.certificate_


@pytest.mark.finding("C5")
@pytest.mark.parametrize("unfitted", [True, False])
def test_a_refused_fit_leaves_an_estimator_as_it_was(data, unfitted):
    X, y = data
    model = od.DPLinearRegression(1.0, **FIT)
    if not unfitted:
        model.fit(pd.DataFrame(X).add_prefix("column "), y)
    before = dict(vars(model))
    with pytest.raises(OnedrawError):
        model.set_params(mechanism="magic").fit(X[:, :1], y)
    after = vars(model.set_params(mechanism=before["mechanism"]))
    assert list(after) == list(before)
    assert all(after[name] is value for name, value in before.items())


def test_where_warnings_are_errors_a_fit_that_warns_spends_nothing(data, ledger):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), od.DPLinearRegression(1.0, **FIT, ledger=ledger, dataset="patients"))
    with pytest.raises(NotCovered):
        pipeline.fit(X, y)
    assert fits(ledger) == 0


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_parallel_fits_are_all_charged(data, ledger, backend):
    X, y = data
    models = [od.DPLinearRegression(0.5, **FIT, ledger=ledger, dataset="patients") for _ in range(4)]
    fitted = Parallel(n_jobs=2, backend=backend)(delayed(model.fit)(X, y) for model in models)
    assert fits(ledger) == 4
    assert len({model.intercept_ for model in fitted}) == 4


# ── searches and scores ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.filterwarnings("ignore::onedraw.estimators.NotCovered")
def test_a_cross_validation_is_charged_fold_by_fold_and_stops_where_the_budget_ends(data, ledger):
    model = od.DPLinearRegression(1.0, **FIT, ledger=ledger, dataset="patients")
    assert np.isfinite(cross_val_score(model, *data, cv=2)).all()
    assert fits(ledger) == 2
    with pytest.raises(BudgetSpent):
        cross_val_score(model, *data, cv=3, error_score="raise")
    spent = fits(ledger)
    with pytest.raises(ValueError, match="fits failed"):
        cross_val_score(model, *data, cv=2)
    assert fits(ledger) == spent


@pytest.mark.filterwarnings("ignore::onedraw.estimators.NotCovered")
def test_a_search_scores_what_the_budget_cannot_bear_as_nan(data, ledger):
    model = od.DPLinearRegression(1.0, **FIT, ledger=ledger, dataset="patients")
    search = GridSearchCV(model, {"prior_scale": [1.0, 2.0, 4.0]}, cv=2, refit=False)
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        search.fit(*data)
    scores = np.array([search.cv_results_[f"split{fold}_test_score"] for fold in range(2)])
    assert np.isnan(scores).any()
    assert np.isfinite(scores).sum() == fits(ledger)
    with pytest.raises(BudgetSpent):
        GridSearchCV(model, {"prior_scale": [1.0, 2.0]}, cv=2, error_score="raise").fit(*data)


@pytest.mark.filterwarnings("ignore:fitted inside:onedraw.estimators.NotCovered")
def test_a_refit_after_a_search_says_what_is_not_covered(data):
    model = od.DPLinearRegression(1.0, **FIT)
    search = GridSearchCV(model, {"prior_scale": [1.0, 2.0]}, cv=2)
    with pytest.warns(NotCovered, match="hyper-parameters chosen on the private data: not covered"):
        search.fit(*data)
    best = search.best_estimator_
    assert best.notes_ == (CHOSEN,)
    assert "Hyper-parameters chosen on the private data: not covered." in best.certificate_.sentence
    assert (CHOSEN, "assumed") in [(each.statement, each.provenance) for each in best.certificate_.assumptions]
    assert od.verify(best.certificate_)
    assert "not covered" in str(best.summary())


def test_a_scored_fit_says_that_its_score_is_for_the_curator(data):
    with pytest.warns(NotCovered, match="curator alone"):
        cross_val_score(od.DPLinearRegression(1.0, **FIT), *data, cv=2)
    assert SCORED.endswith("not covered")


def test_a_plain_fit_says_nothing_of_the_kind(data):
    model = od.DPLinearRegression(1.0, **FIT).fit(*data)
    assert model.notes_ == ()
    assert not any(note in model.certificate_.to_json() for note in (CHOSEN, SCORED))


# ── what stands before the estimator ─────────────────────────────────────────────────────────────────────────


def test_a_pipeline_works_and_names_the_steps_that_learned_from_the_private_data(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), od.DPLinearRegression(1.0, **(FIT | {"bounds": (-3, 3)})))
    with pytest.warns(NotCovered, match="StandardScaler was fitted on the private data"):
        pipeline.fit(X, y)
    assert pipeline.predict(X).shape == (120,)
    assert "StandardScaler was fitted on the private data" in pipeline[-1].certificate_.sentence
    public = make_pipeline(FunctionTransformer(np.sqrt), od.DPLinearRegression(1.0, **FIT)).fit(X, y)
    assert public[-1].notes_ == ()


def test_an_ensemble_on_resamples_is_not_covered(data):
    with pytest.warns(NotCovered, match="stand more than once"):
        BaggingRegressor(od.DPLinearRegression(1.0, **FIT), n_estimators=1).fit(*data)


# ── randomness ───────────────────────────────────────────────────────────────────────────────────────────────


def test_fresh_entropy_by_default_and_a_seed_is_not_private(data):
    first, second = (od.DPLinearRegression(1.0, **FIT).fit(*data) for _ in range(2))
    assert not np.array_equal(first.draws_, second.draws_)
    third, fourth = (od.DPLinearRegression(1.0, **FIT, random_state=1).fit(*data) for _ in range(2))
    assert np.array_equal(third.draws_, fourth.draws_)
    assert third.certificate_.sentence.startswith("SEEDED: REPRODUCIBLE, NOT PRIVATE")
