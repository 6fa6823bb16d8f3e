"""Estimators with a formula: what is fitted, how new records are read, what a certificate says of it."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import onedraw as od
from onedraw.data import Schema, read
from onedraw.errors import CertificateRejected, WrongCall
from onedraw.release import verify
from onedraw.release.certificate import certificate_from
from tests.data.cases import Parted

N = 6000
SCHEMA = {
    "columns": {
        "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
        "income": {"kind": "number", "lower": 0, "upper": 1000, "missing": 100},
        "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
        "treated": {"kind": "binary", "missing": "no"},
        "wage": {"kind": "number", "lower": 1, "upper": 100, "missing": 5},
        "note": {"kind": "category", "levels": ["x", "y"], "missing": "x"},
    }
}
FORMULA = "log(wage) ~ age + C(ward, Treatment('b'))*treated + log(1 + income)"


def records(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({
        "age": rng.uniform(0, 100, n), "income": rng.uniform(0, 1000, n), "ward": rng.choice(["a", "b", "c"], n),
        "treated": rng.choice(["no", "yes"], n), "note": "x",
    })  # fmt: skip
    mean = (
        1 + 0.01 * frame.age - 0.5 * (frame.ward != "b") + 0.4 * (frame.treated == "yes") + 0.1 * np.log1p(frame.income)
    )
    return frame.assign(wage=np.exp(mean + rng.normal(0, 0.3, n)))


@pytest.fixture(scope="module")
def fitted():
    return od.DPLinearRegression(epsilon=4.0, schema=SCHEMA, formula=FORMULA, random_state=1).fit(records())


def test_coefficients_bear_the_names_of_terms_and_are_about_right(fitted):
    names = list(fitted.summary().names)
    ward = "C(ward, Treatment('b'))"
    assert names == [
        "age", f"{ward}[T.a]", f"{ward}[T.c]", "treated", "log(1 + income)", f"{ward}[T.a]:treated", f"{ward}[T.c]:treated", "intercept",
    ]  # fmt: skip
    truth = np.array([0.01, -0.5, -0.5, 0.4, 0.1, 0.0, 0.0, 1.0])
    found = np.append(fitted.coef_, fitted.intercept_)
    assert np.abs((found - truth) / fitted.bse_).max() < 5.0
    assert list(fitted.feature_names_in_) == ["age", "income", "ward", "treated"]
    assert f"{ward}:treated, all 2 columns together" in str(fitted.summary())


def test_new_records_are_read_without_the_response_and_missing_and_unseen_cells_as_declared(fitted):
    new = pd.DataFrame({
        "age": [30.0, None, 30.0], "income": [99.0, 99.0, "lots"], "ward": ["b", "zzz", "c"], "treated": ["yes", "yes", None],
    })  # fmt: skip
    ward = "C(ward, Treatment('b'))"
    value = dict(zip(list(fitted.summary().names), np.append(fitted.coef_, fitted.intercept_), strict=True))
    fixed = value["intercept"] + value["log(1 + income)"] * np.log(100.0)
    expected = [
        fixed + 30 * value["age"] + value["treated"],
        fixed + 50 * value["age"] + value["treated"] + value[f"{ward}[T.a]"] + value[f"{ward}[T.a]:treated"],
        value["intercept"] + value["log(1 + income)"] * np.log(101.0) + 30 * value["age"] + value[f"{ward}[T.c]"],
    ]
    estimate, low, high = fitted.predict(new, interval=0.9)  # without intervals slopes are drawn back a little
    np.testing.assert_allclose(estimate, expected, rtol=1e-9)
    np.testing.assert_allclose(fitted.release_.predict(new, interval=0.9).values[:, 0], expected, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict(new), expected, rtol=1e-2)
    assert np.all((low < expected) & (expected < high))


def test_the_certificate_carries_the_formula_and_verifies_without_data(fitted):
    certificate = fitted.certificate_
    assert certificate.data.target == "log(wage)"
    assert certificate.data.formula == FORMULA.replace("age + ", "1 + age + ").replace("*treated + log(1 + income)", " + treated + log(1 + income) + C(ward, Treatment('b')):treated")  # fmt: skip
    assert set(certificate.data.declared["columns"]) == {"age", "income", "ward", "treated", "wage"}
    planned = od.plan(SCHEMA, None, "linear", formula=FORMULA, n=N, epsilon=4.0)
    assert planned.fingerprint == certificate.fingerprint
    again = certificate_from(json.loads(certificate.to_json()))
    assert verify(again).answer == "consistent"


@pytest.mark.parametrize(
    "change",
    [
        lambda declared: declared["formula"]["terms"].reverse(),
        lambda declared: declared["formula"].update(intercept=False),
        lambda declared: declared["formula"].update(response="wage"),
        lambda declared: declared.pop("formula"),
        lambda declared: declared["formula"]["terms"].append(["__import__('os')"]),
    ],
)
def test_a_certificate_with_another_formula_is_refused(fitted, change):
    """Also where the digest of its schema is made to fit."""
    document = json.loads(fitted.certificate_.to_json())
    change(document["data"]["declared"])
    with contextlib.suppress(WrongCall):
        document["data"]["schema_digest"] = Schema.from_dict(document["data"]["declared"]).digest
    with pytest.raises(CertificateRejected):
        verify(certificate_from(document))


def test_a_release_with_a_formula_is_evaluated_on_its_response(fitted):
    frame = records(4000)
    found = od.evaluate(fitted.release_, frame, epsilon=5.0, random_state=2)
    errors = np.log(frame["wage"]) - fitted.predict(frame)
    assert found.rmse.low < np.sqrt(np.mean(errors**2)) < found.rmse.high


def test_columns_that_lie_in_many_parts_give_the_same_sums():
    """Workers compute terms and response of their own records; the response as one of the columns that are summed."""
    schema = Schema.from_dict(SCHEMA).with_formula(FORMULA)
    planned = od.plan(SCHEMA, None, "linear", formula=FORMULA, n=3000, epsilon=2.0)
    source = read(records(3000), schema, target="log(wage)", measure=planned.asked.measure)
    ways = [source, replace(source, memory=0), replace(source, engine=Parted((10, 700, 2431)))]
    found = [od.release(planned.plan, way, random_state=3).draws for way in ways]
    assert found[0].tobytes() == found[1].tobytes()
    assert found[0].tobytes() == found[2].tobytes()


def test_features_are_chosen_by_name():
    fitted = od.DPLinearRegression(
        epsilon=4.0, schema=SCHEMA, target="wage", features=["ward", "age"], random_state=1
    ).fit(records(2000))
    assert list(fitted.summary().names) == ["ward=b", "ward=c", "age", "intercept"]
    assert list(fitted.feature_names_in_) == ["ward", "age"]
    frame = records(5)
    assert fitted.predict(frame[["age", "ward"]]).tobytes() == fitted.predict(frame).tobytes()


def test_classes_of_a_comparison_and_levels_without_an_intercept():
    fitted = od.DPLogisticRegression(
        epsilon=4.0, schema=SCHEMA, formula="I(wage > 5) ~ 0 + ward + age", random_state=1
    ).fit(records())
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.intercept_.tolist() == [0.0]
    assert list(fitted.summary().names) == ["ward[a]", "ward[b]", "ward[c]", "age"]
    frame = records(500)
    assert np.mean((fitted.predict(frame) == "yes") == (frame.wage > 5)) > 0.6
    assert "The formula says what levels" in str(fitted.summary(base="commonest"))


def test_a_category_of_one_term_is_compared_with_its_commonest_level():
    frame = records(4000)
    frame["ward"] = np.where(np.arange(4000) % 10 < 8, "c", frame["ward"])
    fitted = od.DPLinearRegression(
        epsilon=4.0, schema=SCHEMA, formula="log(wage) ~ age + C(ward, Treatment('b'))", random_state=1
    ).fit(frame)
    ward = "C(ward, Treatment('b'))"
    plain, based = fitted.summary(), fitted.summary(base="commonest")
    assert set(based.names) >= {f"{ward}=a vs c", f"{ward}=b vs c"}
    estimate, rebased = (dict(zip(one.names, (row.estimate for row in one), strict=True)) for one in (plain, based))
    assert rebased[f"{ward}=b vs c"] == pytest.approx(-estimate[f"{ward}[T.c]"], abs=1e-6)


def test_what_does_not_go_with_a_formula_is_refused_before_the_records():
    frame = records(50)
    for given, words in (
        ({"schema": None, "bounds": (0, 1), "response_bound": 1.0}, "Pass schema="),
        ({"target": "wage"}, "Leave target out"),
        ({"features": ["age"]}, "Leave one of them out"),
    ):
        with pytest.raises(WrongCall, match=words):
            od.DPLinearRegression(**{"epsilon": 1.0, "schema": SCHEMA, "formula": FORMULA} | given).fit(frame)
    with pytest.raises(WrongCall, match="Leave y out"):
        od.DPLinearRegression(epsilon=1.0, schema=SCHEMA, formula=FORMULA).fit(frame, frame["wage"])


def test_an_estimator_with_a_formula_is_cloned():
    estimator = od.DPPoissonRegressor(epsilon=1.0, schema=SCHEMA, formula="visits ~ age", features=None)
    assert clone(estimator).get_params()["formula"] == "visits ~ age"


def test_persons_with_several_records_are_protected_as_without_a_formula():
    frame = records(3000).assign(patient=[f"p{place // 3}" for place in range(3000)])
    schema = {**SCHEMA, "person": "patient", "max_records": 2}
    fitted = od.DPLinearRegression(epsilon=6.0, schema=schema, formula="log(wage) ~ age*treated", random_state=1).fit(
        frame
    )
    assert fitted.certificate_.data.person == "patient"
    assert verify(fitted.certificate_).answer == "consistent"


def test_a_response_that_is_a_column_may_stand_beside_the_others():
    frame = records(2000)
    given = {"epsilon": 4.0, "schema": SCHEMA, "formula": "wage ~ age*treated", "random_state": 1}
    together = od.DPLinearRegression(**given).fit(frame)
    beside = od.DPLinearRegression(**given).fit(frame[["treated", "age"]], frame["wage"])
    assert together.coef_.tobytes() == beside.coef_.tobytes()
