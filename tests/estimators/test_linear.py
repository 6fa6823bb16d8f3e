"""What follows from a published fit for nothing: intervals of predictions, other priors, draws for ArviZ."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw.errors import InvalidModel, PromiseRefused, WrongCall
from onedraw.estimators import NoInterval

BOUNDS = ([18, 0, 0], [98, 1, 1])
TRUTH, BASE = np.array([0.04, 1.0, 0.5]), -2.0


@pytest.fixture(scope="module")
def people():
    """Age, smoker (two of five), and something that one in two thousand have."""
    generator = np.random.default_rng(8)
    n = 8000
    X = np.column_stack([generator.uniform(18, 98, n), generator.random(n) < 0.4, generator.random(n) < 0.0005]).astype(
        float
    )
    return X, X @ TRUTH + BASE, generator


@pytest.fixture(scope="module")
def classifier(people):
    X, score, generator = people
    y = (generator.random(len(X)) < special.expit(score)).astype(int)
    return od.DPLogisticRegression(8.0, bounds=BOUNDS, classes=[0, 1], random_state=3).fit(X, y)


@pytest.fixture(scope="module")
def doubtful(people):
    """With so small an ε that noise hides what few records have, whatever the seed."""
    X, score, _ = people
    y = (np.random.default_rng(9).random(len(X)) < special.expit(score)).astype(int)
    return od.DPLogisticRegression(0.3, bounds=BOUNDS, classes=[0, 1], random_state=3).fit(X, y)


NEW = np.array([[30.0, 0, 0], [60, 1, 0], [90, 0, 0]])
RARE = np.array([[60.0, 1, 1]])


def test_probabilities_have_intervals_that_hold_them_and_the_truth(classifier):
    found = classifier.predict_proba(NEW, interval=0.95)
    own = special.expit(NEW @ classifier.coef_[0] + classifier.intercept_[0])
    assert found.estimate[:, 1] == pytest.approx(own, abs=1e-6)  # the coefficients', which the interval is about
    assert classifier.predict_proba(NEW) == pytest.approx(found.estimate, abs=0.02)  # drawn back a little
    assert (found.low < found.estimate).all()
    assert (found.estimate < found.high).all()
    assert found.low[:, 0] == pytest.approx(1.0 - found.high[:, 1])  # of the other class, the other end
    assert (found.high - found.low < 0.2).all()
    wider, truth = classifier.predict_proba(NEW, interval=0.9999), special.expit(NEW @ TRUTH + BASE)
    assert (wider.low < found.low).all()
    assert ((wider.low[:, 1] < truth) & (truth < wider.high[:, 1])).all()


def test_a_row_that_rests_on_a_refused_coefficient_says_so(doubtful):
    assert np.isnan(doubtful.bse_[2])
    with pytest.warns(NoInterval, match="No interval for 1 of 4 rows.*'feature 2'"):
        found = doubtful.predict_proba(np.concatenate([NEW, RARE]), interval=0.95)
    assert np.isnan(found.low[3]).all()
    assert np.isfinite(found.low[:3]).all()
    assert found.estimate[3] == pytest.approx(doubtful.predict_proba(RARE)[0], abs=1e-6)


def test_means_come_in_the_response_s_units_with_their_intervals(people):
    X, score, generator = people
    y = 50 + 5 * score + generator.standard_normal(len(X))
    model = od.DPLinearRegression(8.0, bounds=BOUNDS, response_bound=(20, 80), random_state=0).fit(X, y)
    found = model.predict(NEW, interval=0.9999)
    assert found.estimate == pytest.approx(NEW @ model.coef_ + model.intercept_, abs=1e-4)
    assert model.predict(NEW) == pytest.approx(found.estimate, abs=0.05)  # drawn back a little
    assert ((found.low < 50 + 5 * (NEW @ TRUTH + BASE)) & (found.high > 50 + 5 * (NEW @ TRUTH + BASE))).all()
    assert (found.high - found.low < 2).all()


def test_what_is_not_a_fit_with_standard_errors_has_no_interval(people):
    X, score, _ = people
    y = score > 0
    few = od.DPLogisticRegression(0.1, bounds=BOUNDS, classes=[0, 1], prior_scale=1.0).fit(X[:200], y[:200])
    with pytest.raises(PromiseRefused, match="no standard errors, so its predictions have no intervals"):
        few.predict_proba(NEW, interval=0.95)
    predictor = od.DPLogisticRegression(0.1, bounds=BOUNDS, classes=[0, 1]).fit(X[:200], y[:200])
    with pytest.raises(PromiseRefused, match="mechanism='fit'"):
        predictor.predict_proba(NEW, interval=0.95)
    draw = od.DPLogisticRegression(1.0, bounds=BOUNDS, classes=[0, 1], mechanism="gdp", missing="middle").fit(
        X[:200], y[:200]
    )
    with pytest.raises(PromiseRefused, match="gives no interval of a prediction"):
        draw.predict_proba(NEW, interval=0.95)
    with pytest.raises(WrongCall, match="level is a probability"):
        od.DPLogisticRegression(2.0, bounds=BOUNDS, classes=[0, 1]).fit(X, y).predict_proba(NEW, interval=95)


def test_probabilities_of_several_classes_have_intervals(people):
    X, score, generator = people
    scores = np.column_stack([0.0 * score, score, 0.02 * (X[:, 0] - 50)])
    y = np.argmax(scores + generator.gumbel(size=scores.shape), axis=1)
    model = od.DPLogisticRegression(8.0, bounds=([18, 0], [98, 1]), classes=[0, 1, 2], random_state=0).fit(X[:, :2], y)
    found = model.predict_proba(NEW[:, :2], interval=0.9999)
    truth = special.softmax(np.column_stack([0 * NEW[:, 0], NEW @ TRUTH + BASE, 0.02 * (NEW[:, 0] - 50)]), axis=1)
    assert ((found.low < truth) & (truth < found.high)).all()
    assert (found.high - found.low < 0.3).all()
    assert found.estimate.sum(axis=1) == pytest.approx(1.0)


def test_robust_standard_errors_hold_where_counts_scatter_more_than_the_model_says():
    generator = np.random.default_rng(2)
    X = generator.uniform(0, 1, (20_000, 2))
    y = generator.negative_binomial(0.5, 0.5 / (0.5 + np.exp(X[:, 0] - 0.5)))
    fit = {"bounds": (0, 1), "largest": 5, "random_state": 0}
    mode = {**fit, "mechanism": "perturbed-mode", "missing": "middle"}
    plain, robust = (od.DPPoissonRegressor(8.0, **mode, robust=robust).fit(X, y) for robust in (False, True))
    assert robust.certificate_.plan["mechanism"]["robust"] is True
    assert "variability" in robust.certificate_.draw.stages
    assert (robust.bse_ > 1.1 * plain.bse_).all()
    steps = od.DPPoissonRegressor(8.0, **fit).fit(X, y)
    assert (steps.bse_ > 1.1 * plain.bse_).all(), "steps measure the scatter as it is"
    with pytest.raises(InvalidModel, match="robust must be True or False"):
        od.DPPoissonRegressor(8.0, **fit, robust="yes").fit(X, y)


def test_a_prior_is_added_afterwards_as_bayes_says(classifier):
    fit = classifier.release_.fit
    prior = od.Gaussian(scales=[0.01, 0.2, 0.5, 3.0], mean=0.1)
    precision = np.linalg.inv(fit.covariance) + np.diag(prior.precision(4))
    centre = np.linalg.solve(
        precision, np.linalg.solve(fit.covariance, fit.estimate) + prior.precision(4) * prior.location(4)
    )
    draws = classifier.posterior(40_000, random_state=1, prior=prior)
    deviation = np.sqrt(np.diag(np.linalg.inv(precision)))
    assert np.abs((draws.mean(axis=0) - centre) / deviation).max() < 0.03
    assert draws.std(axis=0) == pytest.approx(deviation, rel=0.03)
    flat = classifier.posterior(40_000, random_state=1)
    assert flat.mean(axis=0) == pytest.approx(fit.estimate, abs=0.03 * np.sqrt(np.diag(fit.covariance)).max())
    with pytest.raises(WrongCall, match="without a radius"):
        classifier.posterior(10, prior=od.Gaussian(scale=1.0, radius=2.0))


@pytest.mark.parametrize("version", ["0.20", "1.0"])
def test_arviz_gets_one_variable_for_each_coefficient(classifier, monkeypatch, version):
    old = SimpleNamespace(from_dict=lambda posterior=None: {"posterior": posterior})
    new = SimpleNamespace(from_dict=lambda data: data)
    monkeypatch.setitem(sys.modules, "arviz", old if version == "0.20" else new)
    found = classifier.to_arviz(50, random_state=2)["posterior"]
    assert list(found) == ["feature 0", "feature 1", "feature 2", "intercept"]
    assert found["feature 0"][0] == pytest.approx(classifier.posterior(50, random_state=2)[:, 0])


def test_without_arviz_the_remedy_is_named(classifier, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(WrongCall, match="pip install arviz"):
        classifier.to_arviz()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["logistic", "linear", "counts"])
def test_intervals_of_predictions_cover_what_is_expected(kind):
    """60 data sets, 200 rows each: rows of one set go together, so the bound is that of 60 hits or misses on average."""
    covered = []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        X = np.column_stack([generator.uniform(18, 98, 8000), generator.exponential(1, 8000).clip(0, 8)])
        score = X @ [0.03, -0.4] - 1.0
        bounds = ([18, 0], [98, 8])
        if kind == "logistic":
            y = (generator.random(8000) < special.expit(score)).astype(int)
            found = od.DPLogisticRegression(1.0, bounds=bounds, classes=[0, 1]).fit(X, y)
            low, high, truth = (
                *(end[:, 1] for end in found.predict_proba(X[:200], 0.95)[1:]),
                special.expit(score[:200]),
            )
        elif kind == "linear":
            found = od.DPLinearRegression(1.0, bounds=bounds, response_bound=8.0)
            low, high = found.fit(X, score + generator.standard_normal(8000)).predict(X[:200], 0.95)[1:]
            truth = score[:200]
        else:
            found = od.DPPoissonRegressor(4.0, bounds=bounds, largest=20).fit(X, generator.poisson(np.exp(score)))
            low, high, truth = *found.predict(X[:200], 0.95)[1:], np.exp(score[:200])
        covered.append(((low < truth) & (truth < high)).mean())
    print(f"{kind}: {100 * np.mean(covered):.1f} % covered of 95 %")
    assert np.mean(covered) > 0.90
