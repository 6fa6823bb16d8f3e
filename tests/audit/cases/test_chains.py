"""Barker's test against Lemma 1 and its planted faults; whole paths, all bit strings, by summation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import onedraw as od
from onedraw import audit
from onedraw.audit.cases import chains, examine
from onedraw.audit.cases.chains import circle, path_law, step_law
from onedraw.errors import WrongCall
from onedraw.mechanisms import BarkerPath
from onedraw.models import Gaussian, Hinge, Logistic
from onedraw.models.public_directions import directions
from onedraw.privacy import AveragedDirectionsCurve, RenyiDP

BUDGET = od.ApproxDP(1.0, 1e-5)
ORDERS = (1.1, 2.0, 8.0, 32.0)


@pytest.fixture(scope="module")
def case():
    return chains.hinge_paths(BUDGET)[0]


def profile(case, **how):
    pair = case.pairs[0]
    model, numbers = case.plan.model, how.pop("numbers", case.plan.parameters)
    return audit.finite_profile(*(step_law(model, numbers, records, **how) for records in (pair.first, pair.second)))


def test_a_step_attains_the_curve_and_does_not_exceed_it(case) -> None:
    found = examine(case)
    assert found.passed
    assert 1.0 <= found.gap < 1.001


def test_metropolis_for_barker_is_caught_and_its_loss_is_infinite(case) -> None:
    planted = profile(case, test=lambda log_ratio: np.exp(np.minimum(log_ratio, 0.0)))
    assert planted.largest_log_ratio == math.inf
    assert planted.breaks(case.promise) is not None


def test_a_direction_along_the_gradient_is_caught_and_costs_d_times_as_much(case) -> None:
    planted = profile(case, directions=np.full((720, 2), math.sqrt(0.5)))
    assert planted.breaks(case.promise) is not None
    assert planted.renyi_bracket(1.1)[0] / case.promise.curve(1.1) == pytest.approx(2.0, rel=0.01)
    assert profile(case).breaks(case.promise) is None


def test_a_step_a_fifth_longer_than_accounted_is_caught(case) -> None:
    numbers = dict(case.plan.parameters)
    numbers["step_length"] *= 1.2
    assert profile(case, numbers=numbers).breaks(case.promise) is not None


def test_the_slope_of_one_record_in_place_of_two_is_caught(case) -> None:
    """s with L for G = 2L."""
    curve = case.promise.curve
    halved = RenyiDP(AveragedDirectionsCurve(curve.dimension, curve.reach / 2.0), below=1024.0)
    assert profile(case).breaks(halved) is not None


def test_the_case_of_any_plan_in_the_plane_and_of_no_other() -> None:
    model = Logistic(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0))
    plan = od.calibrate(BarkerPath(), model, BUDGET, n=300)
    assert examine(audit.cases.case_for(plan)).passed
    wide = Hinge(3, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0))
    with pytest.raises(WrongCall, match="two coefficients"):
        audit.cases.case_for(od.calibrate(BarkerPath(), wide, BUDGET, n=300))


# ── whole paths ──

NUMBERS = {"weight": 1.0, "step_length": 0.4}
MODEL = Logistic(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0))
HINGE = Hinge(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0))


def neighbours(generator: np.random.Generator, n: int = 9):
    """Two data sets that differ in one record, rows of norm 1, and those two rows."""
    X = generator.standard_normal((n + 1, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = generator.integers(2, size=n + 1).tolist()
    first = (np.delete(X, n, axis=0), y[:n])
    second = (np.delete(X, 0, axis=0), y[1:])
    return first, second, X[0], X[n]


@pytest.mark.oracle
@pytest.mark.parametrize("model", [MODEL, HINGE], ids=["logistic", "hinge"])
def test_no_whole_path_of_twelve_bits_exceeds_the_sum_of_its_directions(model) -> None:
    """All 2^12 bit strings, against Σ_t α·s_e²/8, s_e of the two records that differ."""
    generator, closest = np.random.default_rng(12), 0.0
    for number in range(6):
        first, second, mine, theirs = neighbours(generator)
        along = directions(bytes([number]) * 32, 2, 0, 12)
        both = [path_law(model, NUMBERS, records, along) for records in (first, second)]
        assert all(law.sum() == pytest.approx(1.0) for law in both)
        found = audit.finite_profile(*both)
        reach = NUMBERS["weight"] * NUMBERS["step_length"] * (np.abs(along @ mine) + np.abs(along @ theirs))
        for order in ORDERS:
            bound = order * float((reach**2).sum()) / 8.0
            closest = max(closest, found.renyi_bracket(order)[1] / bound)
    assert 0.05 < closest <= 1.0


@pytest.mark.oracle
def test_two_steps_over_all_pairs_of_directions_keep_twice_the_curve() -> None:
    """The adaptive composition itself, by quadrature over both directions."""
    first, second, *_ = neighbours(np.random.default_rng(3))
    around = circle(24)
    laws = [
        np.concatenate([path_law(HINGE, NUMBERS, records, pair) for pair in itertools.product(around, around)]) / 24**2
        for records in (first, second)
    ]
    found = audit.finite_profile(*laws)
    curve = AveragedDirectionsCurve(2, 2.0 * NUMBERS["weight"] * NUMBERS["step_length"])
    for order in ORDERS:
        assert found.renyi_bracket(order)[1] <= 2.0 * curve(order)


def test_the_program_decides_with_the_chances_of_the_formula() -> None:
    """λ as a path's kernel has it, in whole numbers, beside the audit's own formula."""
    model = Hinge(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0))
    plan = od.calibrate(BarkerPath(), model, BUDGET, n=301)
    data = chains.hinge_paths(BUDGET)[0].pairs[0].first
    target = plan.target(model.summarise(data))
    public = target.public(bytes(32))
    start = target.kernel.start(public)
    for _ in range(20):
        proposal = target.kernel.proposal(start, public)
        along = (proposal - start) / plan.parameters["step_length"]
        cost = target.kernel.cost(start, proposal, target.records, public)
        expected = chains.log_ratios(model, plan.parameters, data, start[None, :], along[None, :])[0]
        assert -cost * 2.0**-32 == pytest.approx(expected, abs=301 * 2.0**-31)
