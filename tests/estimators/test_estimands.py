"""Estimators take what they are to estimate by name, and say what they estimated (planning/estimands.py)."""

import numpy as np
import pytest

import onedraw as od
from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.methods.fit import AveragedSteps

N, BOUNDS = 12_000, (0, 1)
NUMBERS = {"bounds": BOUNDS, "response_bound": (0, 10)}
ESTIMATORS = {
    "least-squares": (od.DPLinearRegression, NUMBERS),
    "quantile": (od.DPQuantileRegressor, NUMBERS),
    "maximum-likelihood": (od.DPLogisticRegression, {"bounds": BOUNDS, "classes": [0, 1]}),
    "maximum-likelihood of counts": (od.DPPoissonRegressor, {"bounds": BOUNDS, "largest": 10}),
}


@pytest.fixture(scope="module")
def table():
    """A bent line and skewed residuals: least squares and a robust line are far apart."""
    generator = np.random.default_rng(4)
    X = generator.uniform(0, 1, (N, 2))
    return X, np.clip(1 + 5 * X[:, 0] ** 3 + generator.lognormal(0.0, 1.0, N), 0, 10)


def response(name, y):
    return (y > 3).astype(int) if name == "maximum-likelihood" else np.round(y) if "counts" in name else y


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimand_is_taken_by_name_and_named_in_the_summary(table, name):
    (estimator, options), usual = ESTIMATORS[name], name.partition(" of ")[0]
    X, y = table
    y = response(name, y)
    plain, robust = (
        estimator(3.0, **options, random_state=1, estimand=estimand).fit(X, y) for estimand in (usual, "robust")
    )
    assert isinstance(plain.release_.plan.mechanism, AveragedSteps)
    assert isinstance(robust.release_.plan.mechanism, AveragedSteps)
    assert robust.release_.plan.mechanism.robust
    assert "robust line" not in plain.summary().estimand
    assert "robust line" in robust.summary().estimand
    assert "far out count less" in str(robust.summary())
    with pytest.raises(PromiseRefused, match='estimand="robust"'):
        estimator(3.0, delta=0, **options, missing="middle", estimand=usual).fit(X, y)
    with pytest.raises(InvalidModel, match=f"Choose '{usual}' or 'robust'"):
        estimator(3.0, **options, estimand="usual").fit(X, y)


def test_least_squares_at_two_budgets_is_one_number_and_the_robust_line_another(table):
    """Six standard errors: about 1e-8 for each coefficient under the law of the noise; the seeds are fixed besides."""
    X, y = table
    truth = np.linalg.lstsq(np.column_stack([X, np.ones(N)]), y, rcond=None)[0]
    asked = {**NUMBERS, "random_state": 1}
    found = [od.DPLinearRegression(eps, **asked, estimand="least-squares").fit(X, y) for eps in (1.0, 10.0)]
    for model in found:
        assert (np.abs(np.append(model.coef_, model.intercept_) - truth) < 6 * model.bse_).all()
    lines = [od.DPLinearRegression(eps, **asked, estimand="robust").fit(X, y) for eps in (1.0, 10.0)]
    first, robust = (np.append(line.coef_, line.intercept_) for line in lines)
    assert (np.abs(robust - truth) > 4 * lines[1].bse_).any(), (
        "its intervals are about something else, which its summary names"
    )
    assert (np.abs(first - robust) < 6 * np.hypot(lines[0].bse_, lines[1].bse_)).all(), "and that is one line too"


def test_a_schema_leaves_the_estimand_to_the_estimator(table):
    pd = pytest.importorskip("pandas")
    X, y = table
    number = {"kind": "number", "lower": 0, "upper": 1, "missing": 0.5}
    schema = {"columns": {"a": number, "b": number, "y": {"kind": "number", "lower": 0, "upper": 10, "missing": 3}}}
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    model = od.DPLinearRegression(3.0, schema=schema, target="y", estimand="robust", random_state=1).fit(frame)
    assert model.summary().estimand == "coefficients of a robust line for y"


def test_a_support_vector_machine_has_no_estimand():
    with pytest.raises(TypeError, match="estimand"):
        od.DPLinearSVC(1.0, estimand="robust")
