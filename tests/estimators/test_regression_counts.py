"""Regressions of counts: rates, ratios, and what is refused."""

import numpy as np
import pytest

import onedraw as od
from onedraw.errors import InvalidModel
from onedraw.report import report_html
from onedraw.report.results import usual_step

TRUTH = np.array([0.02, 0.5, -0.9])
FIT = {"bounds": ([18, 0], [98, 1]), "largest": 8}


@pytest.fixture(scope="module")
def visits():
    generator = np.random.default_rng(5)
    X = np.column_stack([generator.uniform(18, 98, 8000), generator.integers(0, 2, 8000)])
    return X, generator.poisson(np.exp(X @ TRUTH[:2] + TRUTH[2]))


@pytest.fixture(scope="module")
def model(visits):
    return od.DPPoissonRegressor(3.0, **FIT, random_state=0).fit(*visits)


def test_rates_are_those_of_the_uncut_counts_with_standard_errors(model, visits):
    found = np.append(model.coef_, model.intercept_)
    assert np.all(np.abs(found - TRUTH) < 4 * model.bse_)
    assert (model.pvalues_ < 0.001).all()
    rates = np.exp(visits[0] @ TRUTH[:2] + TRUTH[2])
    assert rates.max() > 3
    assert np.allclose(model.predict(visits[0]), rates, rtol=0.25)
    fitted = visits[0] @ model.coef_ + model.intercept_
    assert model.predict(visits[0], interval=0.95).estimate == pytest.approx(np.exp(fitted))
    drawn, kept = np.log(model.predict(visits[0])), model.release_.fit.kept
    assert 0.9 < kept < 1.0
    assert np.ptp(drawn - kept * fitted) < 1e-5  # the same slopes, multiplied, and one intercept
    assert "this fit is" in model.certificate_.sentence
    assert od.verify(model.certificate_).answer == "consistent"


def test_the_report_gives_ratios_of_rates_for_a_sensible_step(model):
    page = report_html(model.release_, interval=model.release_.summary())
    low, high = np.exp(10 * model.conf_int()[0])
    assert f"{low:.3g} to {high:.3g}, per 10" in page
    assert "by how much the expected count is multiplied" in page
    assert "Counts above 8 were read as 8" in page


def test_a_step_is_a_round_tenth_of_the_range():
    assert [usual_step(*ends) for ends in ((0, 1), (18, 98), (0, 0.2), (-1, 1), (0, 99_999))] == [1, 10, 0.02, 0.2, 1e4]
    assert usual_step(3.0, 3.0) == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"largest": None}, "largest=Y, the public count"),
        ({"largest": 0}, "largest"),
        ({"largest": 2.5}, "largest"),
        ({"largest": "many"}, "largest"),
        ({"bounds": None}, "bounds"),
    ],
)
def test_what_is_missing_or_wrong_is_refused_before_a_record_is_read(options, words, visits):
    with pytest.raises(InvalidModel, match=words):
        od.DPPoissonRegressor(1.0, **FIT | options).fit(*visits)


def test_no_response_can_make_the_fit_fail(visits):
    odd = [None, "x", float("nan"), float("inf"), -float("inf"), -3, 1e300, 2.5]
    fitted = od.DPPoissonRegressor(3.0, **FIT).fit(visits[0], [*odd, *visits[1][len(odd) :].tolist()])
    assert np.isfinite(fitted.coef_).all()
