"""Private evaluation: the figures are near, the intervals cover, one row never bears on another, and nothing fails on a record."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import confusion_matrix, r2_score, roc_auc_score

import onedraw as od
from onedraw.errors import BudgetSpent, InvalidBudget, InvalidModel, WrongCall
from onedraw.estimators.evaluating import score_edges
from onedraw.methods import AddedNoise, plan_from_dict
from onedraw.models.tables.scores import ClassifierScores, Judged, RegressorScores
from onedraw.release.evaluations import _area, _slack, scores_of
from onedraw.report import report_html

N = 2000


def classified(generator, n=N):
    X = generator.normal(size=(n, 3))
    chance = special.expit(X @ np.array([1.4, -0.9, 0.0]) - 0.8)
    return X, (generator.random(n) < chance).astype(int)


@pytest.fixture(scope="module")
def held_out():
    return classified(np.random.default_rng(1))


@pytest.fixture(scope="module")
def fitted():
    return LogisticRegression().fit(*classified(np.random.default_rng(2)))


@pytest.fixture(scope="module")
def evaluation(fitted, held_out):
    return od.evaluate(fitted, *held_out, epsilon=50.0, classes=[0, 1], random_state=1)


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_with_little_noise_the_figures_are_those_of_scikit_learn(evaluation, fitted, held_out):
    X, y = held_out
    assert evaluation.auc.value == pytest.approx(roc_auc_score(y, fitted.predict_proba(X)[:, 1]), abs=0.01)
    assert evaluation.accuracy.value == pytest.approx(fitted.score(X, y), abs=0.002)
    assert evaluation.confusion == pytest.approx(confusion_matrix(y, fitted.predict(X)), abs=5)
    assert evaluation.roc.x[0] == evaluation.roc.y[0] == 0.0
    assert (np.diff(evaluation.roc.x) >= 0).all()
    known = np.isfinite(evaluation.calibration.y)
    assert known.sum() > 5
    assert evaluation.calibration.y[known] == pytest.approx(evaluation.calibration.x[known], abs=0.15)


@pytest.mark.parametrize("confidence", [0.3, 1.0, 3.0])
def test_scores_too_timid_or_too_sure_do_not_lower_the_auc(confidence):
    """Noise-free tables of 16 bins: what ties inside a bin hide is put back by the slope of the likelihood ratios."""
    generator = np.random.default_rng(8)
    X, y = classified(generator, 40_000)
    score = special.expit(confidence * (X @ np.array([1.4, -0.9, 0.0]) - 0.8))
    edges = np.array(score_edges(16))
    counts = np.bincount(y * 16 + np.searchsorted(edges, score, side="right"), minlength=32).reshape(1, 2, 16)
    truth, found = roc_auc_score(y, score), float(_area(counts.astype(float))[0])
    low, high = _slack(counts[0].astype(float))
    assert abs(found - truth) < 0.012
    assert found - low <= truth <= found + high


def test_scores_that_say_nothing_have_an_auc_of_a_half():
    counts = np.outer([3000.0, 1000.0], np.full(16, 1 / 16))[None]
    assert float(_area(counts)[0]) == pytest.approx(0.5, abs=1e-9)


def test_three_classes_have_a_confusion_matrix_and_no_curve():
    generator = np.random.default_rng(4)
    X = generator.normal(size=(900, 2))
    y = np.array(["a", "b", "c"])[
        (X @ np.array([[1, 0, -1], [0, 1, 0]]) + generator.gumbel(size=(900, 3))).argmax(axis=1)
    ]
    model = LogisticRegression().fit(X, y)
    found = od.evaluate(model, X, y, epsilon=30.0, classes=["a", "b", "c"], batch=True, random_state=0)
    assert found.confusion == pytest.approx(confusion_matrix(y, model.predict(X)), abs=4)
    with pytest.raises(WrongCall, match="AUC"):
        _ = found.auc


def test_a_regressor_has_rmse_and_r2():
    generator = np.random.default_rng(5)
    X = generator.normal(size=(4000, 2))
    y = X @ np.array([1.0, 2.0]) + generator.normal(size=4000)
    model = LinearRegression().fit(X, y)
    found = od.evaluate(model, X, y, epsilon=5.0, bounds=(-12, 12), largest_error=6.0, batch=True, random_state=0)
    assert found.rmse.value == pytest.approx(1.0, abs=0.05)
    assert found.r2.value == pytest.approx(r2_score(y, model.predict(X)), abs=0.05)
    assert found.rmse.low < 1.0 < found.rmse.high


def test_auc_at_half_an_epsilon_is_near_and_its_interval_covers():
    """Of 5,000 held-out records: within 0.02 of the truth in nine of ten; sampling and noise in the interval."""
    generator = np.random.default_rng(7)
    weights, shift = np.array([1.4, -0.9, 0.0]), -0.8
    X, y = classified(generator, 100_000)
    score = special.expit(0.9 * (X @ weights) + shift + 0.1 * X[:, 2])
    truth, table = roc_auc_score(y, score), ClassifierScores(("0", "1"), score_edges(24))
    plan = od.calibrate(AddedNoise(), table, od.PureDP(0.5), n=5000)
    near, covered, runs = 0, 0, 60
    for run in range(runs):
        chosen = generator.choice(len(y), 5000, replace=False)
        data = Judged(5000, lambda chosen=chosen: np.column_stack([y[chosen], score[chosen]]))
        auc = scores_of(od.release(plan, data, random_state=run).certificate, plan).figures["AUC"]
        near += abs(auc.value - truth) <= 0.02
        covered += auc.low <= truth <= auc.high
    assert near >= 0.85 * runs
    assert covered >= 0.88 * runs


def test_the_nearest_possible_tables_are_those_of_one_at_a_time():
    from onedraw.models.tables.table import proportional

    noisy = np.random.default_rng(3).normal(5, 8, size=(20, 12))
    assert proportional(noisy, 60.0) == pytest.approx(np.array([proportional(row, 60.0) for row in noisy]))


# ── privacy ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_no_replaced_record_moves_the_sums_of_an_evaluation_further_than_is_charged(law):
    generator = np.random.default_rng(8)
    for table, rows in (
        (ClassifierScores(("a", "b"), (0.2, 0.5, 0.9)), np.column_stack([generator.integers(-1, 3, 40), generator.uniform(-1, 2, 40)])),
        (RegressorScores(-2.0, 3.0, 1.5), generator.choice([-9.0, -2.0, -0.3, 0.5, 1.7, 3.0, 9.0, np.nan], size=(40, 2))),
        (RegressorScores(0.0, 1.0), generator.uniform(-0.2, 1.2, size=(40, 2))),
    ):  # fmt: skip
        weights = np.array(table.weights(law))
        sums = [np.array(table.summarise(Judged(1, lambda row=row: row[None])).total) * weights for row in rows]
        moved = [a - b for a in sums for b in sums]
        worst = max(int(np.abs(d).sum()) if law == "laplace" else int((d.astype(object) ** 2).sum()) for d in moved)
        assert 0 < worst <= table.reach(law)


def test_half_the_sensitivity_would_be_caught():
    """Two classes, one record from one cell to another: noise for 1 instead of 2 doubles the loss."""
    table = ClassifierScores(("a", "b"), (0.5,))
    plan = od.calibrate(AddedNoise("laplace"), table, od.PureDP(1.0), n=3)
    first, second = (
        [*table.summarise(Judged(3, lambda rows=rows: np.array(rows))).total]
        for rows in ([[0, 0.1]] * 3, [[0, 0.1]] * 2 + [[1, 0.9]])
    )
    distance = sum(abs(a - b) for a, b in zip(first, second, strict=True))
    assert distance / plan.parameters["scale"] == pytest.approx(1.0)
    assert distance / (plan.parameters["scale"] / 2) > 1.5


def test_a_prediction_never_depends_on_other_rows():
    class Centring:
        """Subtracts the mean of whatever it is given: private only one row at a time."""

        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            centred = special.expit(X[:, 0] - X[:, 0].mean())
            return np.column_stack([1 - centred, centred])

    X, y = np.array([[9.0]] + [[0.0]] * 99), np.zeros(100, dtype=int)
    alone = od.evaluate(Centring(), X, y, epsilon=1e3, classes=[0, 1], bins=8, random_state=0)
    assert np.ptp(alone.release.draws[0]) == 100  # every row is its own mean: all in one bin
    assert not any("own row alone" in note.statement for note in alone.certificate.data.notes)
    with pytest.raises(WrongCall, match="public row changed"):
        od.evaluate(Centring(), X, y, epsilon=1e3, classes=[0, 1], bins=8, random_state=0, batch=True)


def test_a_batch_declares_that_a_row_is_predicted_by_itself(fitted, held_out):
    together = od.evaluate(fitted, *held_out, epsilon=1.0, classes=[0, 1], batch=True)
    assert any("own row alone" in note.statement for note in together.certificate.data.notes)


def test_a_row_that_makes_the_model_fail_counts_and_nobody_hears_of_it(recwarn):
    class Brittle:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            if (X > 5).any():
                raise ValueError("a record with a 9")
            return np.tile([[0.1, 0.9]], (len(X), 1)) if not np.isnan(X).any() else np.full((len(X), 2), np.nan)

    X = np.zeros((50, 2))
    X[3], X[4] = 9.0, np.nan
    found = od.evaluate(Brittle(), X, np.ones(50), epsilon=1e3, classes=[0, 1], random_state=0)
    assert found.accuracy.value == pytest.approx(48 / 50)
    assert len(recwarn) == 0


@pytest.mark.parametrize(
    "y", [[None, "x", float("nan"), 10**400, [1], "1", 1, True], np.array([0, 1, 2, 3, np.nan, np.inf, -1, 1])]
)
def test_no_response_can_make_it_fail(fitted, y):
    X = np.zeros((8, 3))
    for options in ({"classes": [0, 1]}, {"bounds": (0, 1)}):
        model = fitted if "classes" in options else LinearRegression().fit(X, np.zeros(8))
        assert od.evaluate(model, X, y, epsilon=1.0, **options).certificate.n == 8


# ── ledger, certificate, report ──────────────────────────────────────────────────────────────────────────────


def test_it_is_charged_once_and_verified_and_refused_when_nothing_is_left(tmp_path, fitted, held_out):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("held-out", od.PureDP(1.0))
    found = od.evaluate(
        fitted,
        *held_out,
        epsilon=0.7,
        classes=[0, 1],
        batch=True,
        ledger=ledger,
        dataset="held-out",
        out=tmp_path / "e.json",
    )
    assert od.verify(tmp_path / "e.json", ledger=ledger).answer == "authentic"
    assert ledger.remaining("held-out").spent_epsilon == pytest.approx(0.7)
    with pytest.raises(BudgetSpent):
        od.evaluate(fitted, *held_out, epsilon=0.7, classes=[0, 1], batch=True, ledger=ledger, dataset="held-out")
    assert found.at(0.8).auc.high - found.at(0.8).auc.low < found.auc.high - found.auc.low


def test_nothing_is_read_before_the_charge(tmp_path, held_out):
    class Spy:
        classes_ = np.array([0, 1])
        seen = 0

        def predict_proba(self, X):
            type(self).seen += int(np.isin(X, held_out[0]).any())  # public rows may be
            return np.tile([[0.5, 0.5]], (len(X), 1))

    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("held-out", od.PureDP(0.1))
    with pytest.raises(BudgetSpent):
        od.evaluate(Spy(), *held_out, epsilon=0.7, classes=[0, 1], ledger=ledger, dataset="held-out")
    assert Spy.seen == 0


def test_the_report_draws_roc_and_calibration_and_the_matrix(evaluation):
    page = report_html(evaluation.release)
    assert 'id="roc-title"' in page
    assert 'id="calibration-title"' in page
    assert "predicted 1" in page
    assert "AUC" in page


@pytest.mark.parametrize(
    "table", [ClassifierScores(("a", "b"), (0.3, 0.5)), ClassifierScores(("a", "b", "c")), RegressorScores(0, 9)]
)
@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.ApproxDP(1.0, 1e-6), od.ZCDP(0.1)], ids=str)
def test_plans_of_evaluations_are_derived_again(table, budget):
    plan = od.calibrate(AddedNoise(), table, budget, n=100)
    assert plan_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, InvalidBudget, "needs epsilon"),
        ({"epsilon": "1"}, InvalidBudget, "a number"),
        ({"epsilon": 1.0}, InvalidModel, r"classes=\[…\]"),
        ({"epsilon": 1.0, "classes": [0, 1], "bounds": (0, 1)}, WrongCall, "one of them"),
        ({"epsilon": 1.0, "classes": [0]}, InvalidModel, "2 to"),
        ({"epsilon": 1.0, "classes": [0, 1], "bins": 7}, WrongCall, "even number"),
        ({"epsilon": 1.0, "bounds": (1, 0)}, InvalidModel, "below upper"),
        ({"epsilon": 1.0, "bounds": (0, 1), "largest_error": 3.0}, InvalidModel, "largest_error"),
        ({"epsilon": 1.0, "classes": [0, 1], "largest_error": 3.0}, WrongCall, "regressor"),
        ({"epsilon": 1.0, "bounds": (0, 1), "bins": 8}, WrongCall, "Leave them out"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_words(fitted, held_out, options, error, words):
    with pytest.raises(error, match=words):
        od.evaluate(fitted, *held_out, **options)


def test_a_model_that_cannot_predict_at_all_is_noticed_before_the_charge(fitted):
    with pytest.raises(WrongCall, match="Nothing was spent"):
        od.evaluate(fitted, np.zeros((20, 7)), np.zeros(20), epsilon=1.0, classes=[0, 1])
    with pytest.raises(InvalidModel, match="one response"):
        od.evaluate(fitted, np.zeros((20, 3)), np.zeros(19), epsilon=1.0, classes=[0, 1])
