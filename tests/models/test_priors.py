"""Gaussian priors: what they know of themselves, and which are refused."""

from __future__ import annotations

import json
import math

import pytest

from onedraw.errors import InvalidModel
from onedraw.models import (
    Gaussian,
    Logistic,
)

PRIOR = Gaussian(scale=1.0)
BALL = Gaussian(scale=1.0, radius=2.0)


def test_a_prior_knows_its_precision():
    prior = Gaussian(scales=[1.0, 2.0, 0.5], mean=[0.0, 1.0, -1.0])
    assert prior.precision(3).tolist() == [1.0, 0.25, 4.0]
    assert (prior.strong_convexity, prior.smoothness) == (0.25, 4.0)
    assert prior.location(3).tolist() == [0.0, 1.0, -1.0]
    assert Gaussian(scale=2.0, mean=0.5).location(2).tolist() == [0.5, 0.5]
    assert Gaussian(scale=2.0).precision(2).tolist() == [0.25, 0.25]
    for each in (prior, BALL):
        assert Gaussian.from_dict(json.loads(json.dumps(each.to_dict()))) == each
        assert hash(Gaussian.from_dict(each.to_dict())) == hash(each)


@pytest.mark.parametrize("scale", [0.1, 0.3, 3.0, 1.7e5])
def test_the_strong_convexity_is_the_smallest_entry_of_the_precision_itself(scale):
    prior = Gaussian(scales=(scale, scale / 7))
    assert prior.strong_convexity == prior.precision(2).min()
    assert prior.smoothness == prior.precision(2).max()


def test_the_lattice_scale_respects_a_small_ball():
    assert Logistic(2, data_norm=1.0, prior=Gaussian(scale=3.0)).prior_scale == 3.0
    small = Logistic(2, data_norm=1.0, prior=Gaussian(scale=3.0, radius=0.5))
    assert small.prior_scale == pytest.approx(0.5 / math.sqrt(5))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "exactly one"),
        ({"scale": 1.0, "scales": [1.0]}, "exactly one"),
        ({"scale": math.inf}, "m_π = 0: no promise"),
        ({"scale": 0.0}, "improper"),
        ({"scale": -1.0}, "improper"),
        ({"scale": math.nan}, "improper"),
        ({"scale": 1e200}, "between"),
        ({"scale": "wide"}, "real number"),
        ({"scales": [1.0, math.inf]}, "m_π = 0: no promise"),
        ({"scales": 1.0}, "list of numbers"),
        ({"scales": []}, "list of numbers"),
        ({"scale": 1.0, "mean": math.inf}, "finite"),
        ({"scale": 1.0, "radius": 0.0}, "positive"),
        ({"scale": 1.0, "radius": math.inf}, "finite"),
    ],
)
def test_an_improper_prior_is_refused(options, words):
    with pytest.raises(InvalidModel, match=words):
        Gaussian(**options)


def test_a_stored_prior_is_read_strictly():
    stored = PRIOR.to_dict()
    for wrong in (stored | {"tail": 1}, {**stored, "prior": "Cauchy"}, {"scale": 1.0}, [1.0], None):
        with pytest.raises(InvalidModel):
            Gaussian.from_dict(wrong)


# Refusals
