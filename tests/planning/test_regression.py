"""A person's question about a regression: public defaults, and what is missing refused with a remedy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onedraw import errors
from onedraw.planning import Regression
from tests.planning.cases import LINEAR, LOGISTIC, QUESTIONS


def test_the_defaults_are_those_of_the_contract():
    """prior_scale = 2/r̃ and radius = prior_scale·(√d + 2), in units of the response."""
    assert LOGISTIC.rows.scaled
    assert LOGISTIC.rows.reach == pytest.approx(2.0), "three scaled features and the intercept's 1"
    assert LOGISTIC.scale == pytest.approx(1.0)
    assert LOGISTIC.ball == pytest.approx(4.0)
    assert LINEAR.unit == 2.0, "a quarter of the response's bound"
    assert LINEAR.scale == pytest.approx(2.0 * 2.0 / math.sqrt(3.0))
    assert Regression("logistic", 3, data_norm=2.0, prior_scale=0.5, radius=1.5).ball == 1.5


def test_a_question_is_a_value():
    lists = Regression("logistic", 2, bounds=([0, 0], np.array([1.0, 2.0])), classes=[0, 1], feature_names=["a", "b"])
    tuples = Regression("logistic", 2, bounds=((0, 0), (1.0, 2.0)), classes=(0, 1), feature_names=("a", "b"))
    assert lists == tuples
    assert hash(lists) == hash(tuples)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "cox"}, "kind must be one of"),
        ({"kind": "logistic"}, "needs one public bound"),
        ({"kind": "logistic", "bounds": (0, 1), "data_norm": 1.0}, "both were given"),
        ({"kind": "softmax", "bounds": (0, 1)}, "never read from the records"),
        ({"kind": "linear", "bounds": (0, 1)}, "response_bound=Y"),
        ({"kind": "linear", "bounds": (0, 1), "response_bound": -1.0}, "positive finite"),
        ({"kind": "linear", "bounds": (0, 1), "response_bound": 1.0, "classes": [0, 1]}, "classes belong"),
        ({"kind": "logistic", "bounds": (0, 1), "effect": math.nan}, "positive finite"),
    ],
)
def test_what_is_missing_or_wrong_is_refused_with_a_remedy(options, message):
    with pytest.raises(errors.InvalidModel, match=message):
        Regression(options.pop("kind"), 2, **options)


def test_a_question_without_a_range_of_responses_has_no_fit():
    assert QUESTIONS["huber"].fit is None
    assert Regression("linear", 2, bounds=(0, 1), threshold=1.0).fit is None
