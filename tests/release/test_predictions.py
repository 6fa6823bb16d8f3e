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
