"""Predictions from a release without a schema: what is no number is read as the model reads it."""

import numpy as np
import pytest

import onedraw as od
from onedraw.models import Logistic
from onedraw.release.predictions import numeric_schema

BOUNDS = ((-1.0, 2.0, 10.0), (3.0, 2.5, 40.0))


def missing_of(**options):
    features = Logistic(3, bounds=BOUNDS, prior=od.Gaussian(scale=1.0), **options).features
    columns = numeric_schema(features).columns
    assert list(columns) == list(features.column_names[:3])
    return features, np.array([column.missing for column in columns.values()])


def test_missing_number_of_scaled_columns_is_the_middle_of_the_range():
    _, missing = missing_of(scaled=True)
    assert missing == pytest.approx([1.0, 2.25, 25.0])


def test_missing_number_without_an_intercept_is_the_nearest_to_zero():
    _, missing = missing_of(scaled=True, intercept=False)
    assert missing == pytest.approx([0.0, 2.0, 10.0])


@pytest.mark.parametrize("options", [{}, {"scaled": True}, {"scaled": True, "intercept": False}, {"intercept": False}])
def test_missing_number_is_encoded_as_the_model_encodes_nan(options):
    features, missing = missing_of(**options)
    rows = features.enforce(np.stack([missing, np.full(3, np.nan)]))
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-12)


@pytest.fixture(scope="module")
def few():
    """A fit of few records, whose predictions are drawn back by a share between 0 and 1."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (4000, 2))
    y = (rng.uniform(size=4000) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    model = od.DPLogisticRegression(
        epsilon=0.8, delta=1e-6, bounds=(-1, 1), classes=[0, 1], mechanism="fit", random_state=3
    )
    return model.fit(X, y), X


def named(model, X):
    """Rows as a release reads them, by the names in its certificate."""
    return dict(zip(model.release_.certificate.draw.names, X.T, strict=False))


def test_predictions_multiply_slopes_and_the_summary_says_so(few):
    model, X = few
    share = model.release_.fit.kept
    assert 0.2 < share < 0.99
    level = model.decision_function(X) - share * (X @ model.coef_[0])
    np.testing.assert_allclose(level, level[0], atol=2e-6)  # one intercept for all records
    assert level[0] != pytest.approx(model.intercept_[0], abs=1e-6)
    words = f"slopes are multiplied by {share:.3g}"
    assert words in str(model.summary())
    assert words in model.release_.predict(named(model, X[:3])).note
    np.testing.assert_allclose(
        np.asarray(model.release_.predict(named(model, X[:3]))), model.predict_proba(X[:3]), atol=1e-12
    )


def test_predictions_with_intervals_are_those_of_the_estimate(few):
    model, X = few
    scores = X[:5] @ model.coef_[0] + model.intercept_[0]
    expected = model.predict_proba(X[:5], interval=0.9)
    np.testing.assert_allclose(expected.estimate[:, 1], 1 / (1 + np.exp(-scores)), atol=1e-6)
    found = model.release_.predict(named(model, X[:5]), interval=0.9)
    np.testing.assert_allclose(found.values, expected.estimate, atol=1e-12)
    assert found.note == ""


def test_a_release_without_a_fit_predicts_by_what_was_drawn():
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-1, 1, (2000, 2)), rng.integers(0, 2, 2000)
    options = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1], "random_state": 3}
    model = od.DPLogisticRegression(mechanism="gdp", missing="middle", **options).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], atol=1e-9)
    assert model.release_.predict(named(model, X[:2])).note == ""
