"""The public lattice: what is too fine is refused, and draws are rounded to it as if in exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onedraw as od
from onedraw import errors
from onedraw.methods.added_noise.run import NoisySums
from onedraw.models import BetaBernoulli, GammaExponential, GammaPoisson, GaussianMean, Logistic, Summary
from onedraw.samplers import Exact
from onedraw.samplers import lattice as module

MEAN = GaussianMean(bound=1.0, variance=1.0, prior_count=1.0)


def planned(model=MEAN, n=100):
    return od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=n)


def test_lattice_named_by_the_refusal_is_accepted():
    plan = planned()
    least = module.least_spacing(plan, Exact())
    assert module.spacing_for(plan, Exact(), least) == least
    with pytest.raises(errors.WrongCall, match=f"2\\*\\*{np.log2(least):.0f} "):
        module.spacing_for(plan, Exact(), least / 2)


@pytest.mark.parametrize(
    "model", [MEAN, BetaBernoulli((1.0, 1.0)), GammaPoisson((1.0, 1.0), cap=2), GammaExponential((2.0, 2.0), cap=2.0)]
)
@pytest.mark.parametrize("n", [100, 2**31])
def test_default_lattice_obeys_the_rule_at_any_n(model, n):
    plan = planned(model, n)
    assert module.least_spacing(plan, Exact()) <= module.spacing_for(plan, Exact(), None)


def test_default_lattice_is_finer_than_the_draw_of_most_records():
    """At n = 2³¹ the posterior of a mean is 46,000 times narrower than its prior."""
    plan = planned(MEAN, 2**31)
    law = plan.target(Summary(2**31, (Fraction(0),)))
    assert module.spacing_for(plan, Exact(), None) <= law.deviation[0] / 16


def test_prior_mean_far_from_zero_for_its_scale_is_refused():
    model = Logistic(2, data_norm=1.0, prior=od.Gaussian(scale=1e-6, mean=1e9))
    plan = od.calibrate(od.Gibbs(), model, od.ApproxDP(1.0, 1e-3), n=100)
    with pytest.raises(errors.WrongCall, match="nearer"):
        module.spacing_for(plan, Exact(), None)


def test_published_stages_may_have_any_lattice():
    """Noisy whole sums are what is published; the estimate follows from them, whatever its digits."""
    plan = od.calibrate(od.AddedNoise(), od.models.NumberTable(lower=0.0, upper=1.0), od.PureDP(1.0), n=100)
    assert module.least_spacing(plan, NoisySums()) == 0.0


@given(
    st.fractions(-(2**60), 2**60, max_denominator=10**9),
    st.floats(-1e6, 1e6),
    st.sampled_from([2.0**-30, 2.0**-3, 1.0, 1024.0, 2.0**40]),
)
def test_rounding_from_an_origin_is_exact(origin, offset, spacing):
    exact = round((origin + Fraction(offset)) / Fraction(spacing)) * Fraction(spacing)
    assert module.snap_from((origin,), np.array([[offset]]), spacing)[0, 0] == float(exact)


@pytest.mark.parametrize("offset", [0.5, np.nextafter(0.5, 1.0), np.nextafter(0.5, 0.0)])
def test_rounding_at_a_tie_is_exact_whatever_the_origin(offset):
    origin = 10**15 + Fraction(1, 2**70)
    expected = round(origin + Fraction(float(offset)))
    assert module.snap_from((origin,), np.array([[offset]]), 1.0)[0, 0] == float(expected)


def test_gamma_draw_keeps_the_digits_it_answers_for():
    values = np.array([1.0 / 3.0, 1e9 / 3.0])
    kept = module.snap(values, 2.0**-40, bits=24)
    assert np.all(np.abs(kept / values - 1.0) < 2.0**-24)
    assert np.all(np.frexp(kept)[0] * 2.0**24 % 1.0 == 0.0)


def test_the_default_lattice_is_a_millionth_of_the_prior_scale():
    assert module.default_spacing(1.0) == 2.0**-20
    assert module.default_spacing(1.99) == 2.0**-20
    assert module.default_spacing(2.0) == 2.0**-19


@pytest.mark.parametrize("spacing", [0.0, -1.0, 0.3, math.inf, math.nan])
def test_a_lattice_must_be_a_power_of_two(spacing):
    with pytest.raises(errors.WrongCall, match="power of two"):
        module.spacing_for(planned(), Exact(), spacing)


def test_snapping_never_leaves_a_negative_zero():
    assert math.copysign(1, module.snap(np.array([-1e-9]), 0.5)[0]) == 1.0
