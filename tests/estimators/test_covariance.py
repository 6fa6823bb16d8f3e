"""DPCovariance: what scikit-learn's covariances have, with errors, by `release` like any other."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import onedraw as od
from onedraw.errors import InvalidBudget, InvalidModel, InvalidSchema, WrongCall

SCHEMA = od.Schema.from_dict(
    {
        "dataset": "patients",
        "columns": {
            "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
            "visits": {"kind": "count", "cap": 20, "missing": 0},
            "sex": {"kind": "binary", "levels": ["f", "m"], "missing": "f"},
            "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
        },
    }
)


def patients(n: int = 3000) -> pd.DataFrame:
    generator = np.random.default_rng(8)
    age = generator.normal(55, 15, n)
    return pd.DataFrame(
        {
            "age": age,
            "visits": generator.poisson(np.clip(age / 12, 0, None)),
            "sex": generator.choice(["f", "m"], n),
            "ward": np.where(age > 60, "b", generator.choice(["a", "c"], n)),
        }
    )


@pytest.fixture(scope="module")
def fitted():
    return od.DPCovariance(epsilon=3.0, schema=SCHEMA, columns=["age", "visits", "ward"]).fit(patients())


def test_a_schema_says_everything_public_and_categories_are_coded(fitted) -> None:
    assert fitted.column_names_.tolist() == ["age", "visits", "ward=b", "ward=c"]
    table = patients()
    assert fitted.location_[0] == pytest.approx(table["age"].mean(), abs=4 * fitted.location_errors_[0])
    assert fitted.location_[2] == pytest.approx((table["ward"] == "b").mean(), abs=4 * fitted.location_errors_[2])
    assert fitted.correlation_[2, 0] > 0.5
    assert np.linalg.eigvalsh(fitted.correlation_)[0] >= -1e-9
    assert np.diag(fitted.correlation_).tolist() == [1.0] * 4
    assert np.sqrt(np.diag(fitted.covariance_)) == pytest.approx(fitted.release_.moments.deviation)
    assert fitted.covariance_errors_.shape == fitted.precision_.shape == (4, 4)
    assert fitted.certificate_.sentence.startswith("Proven")


def test_intervals_hold_the_estimates_and_the_summary_prints_them(fitted) -> None:
    ends, values = fitted.conf_int(), fitted.release_.moments.values
    assert ends.shape == (4 + 4 + 6, 2)
    assert np.all((ends[:, 0] <= values) & (values <= ends[:, 1]))
    low, high = fitted.correlation_interval(0.9)
    assert np.all(high - low <= np.subtract(*fitted.correlation_interval(0.99)[::-1]))
    text = str(fitted.summary())
    assert "correlation of visits and age" in text
    assert "< 0.001" in text
    assert fitted.summary()[0].term == "mean of age"


def test_all_numbers_and_counts_are_taken_unless_columns_are_named() -> None:
    found = od.DPCovariance(epsilon=1.0, schema=SCHEMA, random_state=3).fit(patients(200))
    assert found.feature_names_in_.tolist() == ["age", "visits"]


def test_arrays_with_bounds_lists_and_odd_cells_are_read_by_rule() -> None:
    X = patients(200)[["age", "visits"]]
    bounds = ([0, 0], [100, 20])
    plain = od.DPCovariance(epsilon=1.0, bounds=bounds, random_state=1).fit(X)
    assert plain.feature_names_in_.tolist() == ["age", "visits"]
    rows = od.DPCovariance(epsilon=1.0, bounds=bounds, random_state=1).fit(X.to_numpy().tolist())
    assert rows.location_ == pytest.approx(plain.location_)
    odd = X.to_numpy().astype(object)
    odd[3, 0], odd[4, 1], odd[5, 0], odd[6, 1] = "?", None, math.inf, math.nan
    assert np.isfinite(od.DPCovariance(epsilon=1.0, bounds=bounds, random_state=1).fit(odd).location_).all()


def test_a_spend_is_charged_and_the_release_verifies(tmp_path) -> None:
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(2.0, 1e-5))
    found = od.DPCovariance(epsilon=1.0, schema=SCHEMA, ledger=ledger).fit(patients(500))
    assert od.verify(found.certificate_, ledger=ledger).answer == "authentic"
    assert ledger.remaining("patients").spent_epsilon == pytest.approx(1.0, rel=0.05)
    found.release_.save(tmp_path / "release.json")
    again = od.Release.load(tmp_path / "release.json")
    assert np.array_equal(again.moments.correlation, found.correlation_)


def test_what_noise_drowns_is_said_and_not_given() -> None:
    found = od.DPCovariance(epsilon=0.2, schema=SCHEMA).fit(patients(100))
    assert "too little of the variance of any column" in found.interval_reason_
    assert np.isnan(found.correlation_errors_[1, 0])
    assert "No interval: the noise leaves too little" in str(found.summary())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, InvalidModel, "needs bounds"),
        ({"bounds": (0, 1), "schema": SCHEMA}, WrongCall, "Pass one of them"),
        ({"bounds": (0, 1), "columns": ["age"]}, WrongCall, "among those of a schema"),
        ({"schema": SCHEMA, "columns": "age"}, WrongCall, "list of names"),
        ({"schema": SCHEMA, "columns": ["age", "age"]}, WrongCall, "twice"),
        ({"schema": SCHEMA, "columns": ["size"]}, InvalidSchema, "size"),
        ({"bounds": (0, 1), "epsilon": None}, InvalidBudget, "needs epsilon"),
    ],
)
def test_what_is_asked_wrongly_is_refused_before_anything_is_read(options, error, words: str) -> None:
    estimator = od.DPCovariance(**{"epsilon": 1.0, **options})
    with pytest.raises(error, match=words):
        estimator.fit(patients(20))
    assert not hasattr(estimator, "location_")
    assert clone(estimator) is not None


READ_BY_RULE = (
    "an entry that is not a number is read by the declared rule: an error would tell that there is such a record"
)


@parametrize_with_checks(
    [od.DPCovariance(epsilon=0.5, bounds=(-10, 10))],
    expected_failed_checks=lambda _: {"check_dtype_object": READ_BY_RULE, "check_complex_data": READ_BY_RULE},
)
def test_scikit_learns_own_checks_hold(estimator, check) -> None:
    check(estimator)
