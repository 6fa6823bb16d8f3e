"""KNG against its promise: the law of the pick by summation, and planted faults that are caught."""

import numpy as np
import pytest

import onedraw as od
from onedraw.audit.cases import examine
from onedraw.baselines import KNG
from onedraw.methods.catalog import case_for, cases


@pytest.fixture(scope="module")
def case():
    (found,) = cases("baselines", od.PureDP(1.0), mechanism="kng")
    return found


def test_the_promise_is_kept_and_attained(case):
    found = examine(case)
    assert found.passed
    assert 1.0 <= found.gap < 1.003


def test_a_weight_of_epsilon_over_the_difference_is_caught_and_one_percent_too(case):
    """ε/Δ in the place of ε/(2Δ): twice the range. The likelier reading of "sensitivity Δ" is off by that much."""
    for factor in (1.01, 2.0):
        assert case.profile(case.pairs[0], factor).breaks(case.promise) is not None
    assert case.profile(case.pairs[0], 2.0).epsilon_bracket(0.0)[0] > 1.99


@pytest.mark.oracle
def test_the_formula_is_the_program(case):
    """Up to the last units of single precision."""
    target = case.plan.target(case.plan.model.summarise(case.pairs[0].first))
    thetas = target.propose(0, [], np.random.default_rng(case.layout_seed))[0]
    assert np.abs(target.probabilities(thetas) - case.law(case.pairs[0].first)).max() < 1e-3


def test_any_plan_for_two_classes_can_be_attacked():
    model = od.models.Logistic(1, bounds=(-2, 3), prior=od.Gaussian(scale=1.0))
    assert examine(case_for(od.calibrate(KNG(), model, od.PureDP(2.0), n=100))).passed
