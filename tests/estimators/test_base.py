"""What a fitted estimator shows of itself: numbers in the columns' own units, one line in a terminal, one screen in a notebook."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pandas as pd
import pytest

import onedraw as od

NASTY = "<b>age</b>"


@pytest.fixture(scope="module")
def fitted():
    generator = np.random.default_rng(1)
    X = pd.DataFrame({NASTY: generator.uniform(20, 90, 400), "dose": generator.uniform(0, 1, 400)})
    y = 40 + 0.5 * X[NASTY] + generator.normal(0, 5, 400)
    return od.DPLinearRegression(
        20.0,
        bounds=([20, 0], [90, 1]),
        response_bound=(0, 100),
        n_draws=3,
        mechanism="noisy-gradient huber",
        missing="middle",
    ).fit(X, y)


@pytest.mark.finding("S8")
def test_a_release_by_name_is_what_the_estimator_says(fitted):
    named = fitted.release_.named()
    assert list(named) == [NASTY, "dose", "intercept"]
    assert np.allclose(list(named.values()), [*fitted.coef_, fitted.intercept_])
    assert fitted.coef_[0] == pytest.approx(0.5, abs=0.3)


@pytest.mark.finding("S14")
@pytest.mark.parametrize("name", ["certificate_", "release_", "choice_"])
def test_a_value_is_one_line_in_a_terminal_and_one_screen_in_a_notebook(fitted, name):
    value = getattr(fitted, name)
    assert len(repr(value)) < 600
    assert len(str(value)) < 600
    shown = value._repr_html_()
    assert len(shown) < 4000
    assert "<table>" in shown
    assert "<b>" not in shown
    sentence = fitted.choice_.why if name == "choice_" else fitted.certificate_.sentence
    assert sentence in repr(value)


def test_an_estimator_is_a_line_and_a_diagram(fitted):
    assert len(repr(fitted)) < 600
    assert "DPLinearRegression" in fitted._repr_html_()


def test_a_release_of_many_numbers_shows_some_of_them():
    plan = od.calibrate(
        od.NoisyGradient(),
        od.models.Logistic(80, data_norm=1.0, prior=od.Gaussian(scale=1.0)),
        od.ApproxDP(1.0, 1e-6),
        n=50,
    )
    shown = od.release(plan, (np.zeros((50, 80)), np.zeros(50)))._repr_html_()
    assert shown.count("<tr>") == 61
    assert "and 21 more" in shown


@pytest.mark.finding("newcomer S20", commit="8a7c0fb")
@pytest.mark.parametrize(
    ("estimator", "parameter", "remedy"),
    [
        (od.DPLogisticRegression, "C", "prior_scale="),
        (od.DPLogisticRegression, "class_weight", "Leave it out"),
        (od.DPLinearRegression, "max_iter", "no such setting"),
        (od.DPMean, "bound", "Perhaps bounds?"),
        (od.DPMean, "zzz", "It takes"),
    ],
)
def test_unknown_parameter_names_estimator_and_remedy(estimator, parameter, remedy):
    with pytest.raises(TypeError, match=f"{estimator.__name__} has no parameter '{parameter}'.*{re.escape(remedy)}"):
        estimator(epsilon=1.0, **{parameter: 1})


def test_signature_of_an_estimator_names_its_parameters():
    names = list(inspect.signature(od.DPLogisticRegression).parameters)
    assert names[0] == "epsilon"
    assert {"bounds", "classes", "ledger"} <= set(names)
    assert "arguments" not in names
