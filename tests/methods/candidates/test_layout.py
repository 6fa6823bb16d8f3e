"""Rounds and candidates from public numbers: the rules of the plan, and the settings known to fail."""

import math
from fractions import Fraction

import numpy as np
import pytest

from onedraw import errors, models
from onedraw.methods import calibrate
from onedraw.methods.candidates.layout import FIRST_ROUND, Geometry, lay_out, shares
from onedraw.methods.candidates.mechanism import Candidates
from onedraw.privacy import PureDP

CURVATURE = 0.066


def geometry(dimension, *, scale=None, curvature=CURVATURE):
    """Features on the sphere of radius √d: every coordinate has the same curvature."""
    scale = 2.0 / math.sqrt(dimension) if scale is None else scale
    information = curvature * np.eye(dimension)
    return Geometry(
        np.zeros(dimension), np.full(dimension, scale), information, information, scale * math.sqrt(dimension)
    )


def sphere(dimension):
    root = math.sqrt(dimension)
    return models.Logistic(dimension, data_norm=root, intercept=False, prior=models.Gaussian(scale=2.0 / root))


def test_each_round_weighs_half_of_all_before_it():
    assert shares(1) == (1,)
    assert shares(4) == (Fraction(8, 27), Fraction(4, 27), Fraction(6, 27), Fraction(9, 27))
    assert sum(shares(17)) == 1


@pytest.mark.parametrize("dimension", [1, 2, 3, 5, 6])
def test_few_dimensions_are_covered_in_one_round(dimension):
    assert calibrate(Candidates(), sphere(dimension), PureDP(1.0), n=2000).parameters["rounds"] == 1.0


@pytest.mark.parametrize(("dimension", "n"), [(12, 2000), (30, 5000)])
def test_many_dimensions_take_rounds_whose_first_is_hardly_informed(dimension, n):
    plan = calibrate(Candidates(), sphere(dimension), PureDP(1.0), n=n)
    assert plan.parameters["rounds"] == 9.0
    assert plan.parameters["candidates"] <= 80_000
    assert plan.heading.endswith(": the weighted mean of the picks")
    weight = plan.parameters["weight"] * float(shares(9)[0])
    assert n * weight * plan.parameters["scaled_curvature"] <= FIRST_ROUND  # of λs₀²
    assert sum(plan.parameters[f"epsilon_{number}"] for number in range(1, 10)) == pytest.approx(1.0, rel=1e-4)


def test_the_plan_depends_on_no_record_and_is_always_the_same():
    one, other = (calibrate(Candidates(), sphere(12), PureDP(1.0), n=2000) for _ in range(2))
    assert one == other
    assert one.digest == other.digest


def test_the_expected_error_is_that_of_a_draw():
    found = np.linalg.norm(geometry(3, scale=1e6).expected_errors(2000, 0.7))
    assert found == pytest.approx(math.sqrt(3 * (1 + 1 / 0.7) / (CURVATURE * 2000)), rel=1e-6)


def test_candidates_are_widest_in_the_first_round_and_never_wider_than_the_prior_allows():
    flat = geometry(4)
    widths = [flat.variances(500.0, before).max() for before in (0.0, 100.0, 1e4)]
    assert widths == sorted(widths, reverse=True)
    assert flat.variances(0.0, 0.0).max() == pytest.approx(1.5**2)


@pytest.mark.parametrize(
    ("dimension", "options", "words"),
    [
        (6, {"rounds": 3}, "first pick"),  # 0.55 where one round has 0.44
        (12, {"scale": 3.0}, "standard deviation"),  # RMSE 4.4
        (60, {}, "60 dimensions"),
        (12, {"rounds": 1}, "least bad"),
        (5, {"rounds": 1, "candidates": 10}, "least bad"),
        (30, {"candidates": 100}, "30 dimensions"),
    ],
)
def test_settings_known_to_fail_are_refused(dimension, options, words):
    scale = options.pop("scale", None)
    with pytest.raises(errors.PromiseRefused, match=words):
        lay_out(geometry(dimension, scale=scale), n=2000, weight=0.7, **options)


def test_the_prior_s_refusal_names_a_scale_that_works():
    with pytest.raises(errors.PromiseRefused, match=r"by 0\.192 or less"):
        lay_out(geometry(12, scale=3.0), n=2000, weight=0.7)
    assert lay_out(geometry(12, scale=3.0 * 0.192), n=2000, weight=0.7).rounds > 1


def test_enough_candidates_make_one_round_of_a_wide_prior():
    assert lay_out(geometry(2, scale=9.0), n=2000, weight=0.7).rounds == 1
