"""Barker's test against Lemma 1, faults planted in the step that is shipped; whole paths, all bit strings, by summation."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import onedraw as od
from onedraw import audit
from onedraw.audit.cases import examine
from onedraw.errors import WrongCall
from onedraw.methods import BarkerPath
from onedraw.methods.catalog import case_for
from onedraw.methods.private_chain import audit as chains
from onedraw.methods.private_chain.audit import circle
from onedraw.methods.private_chain.barker_path import Barker
from onedraw.methods.private_chain.replay import Along, Program
from onedraw.models import Gaussian, Hinge, Logistic
from onedraw.models.public_directions import directions
from onedraw.models.sums.loss_changes import BITS
from onedraw.privacy import AveragedDirectionsCurve, RenyiDP

BUDGET = od.ApproxDP(1.0, 1e-5)
ORDERS = (1.1, 2.0, 8.0, 32.0)


@pytest.fixture(scope="module")
def case():
    return chains.hinge_paths(BUDGET)[0]


@pytest.fixture
def fault(monkeypatch):
    """Replace a part of the step that is shipped."""
    return lambda name, part: monkeypatch.setattr(Barker, name, part)


def test_a_step_attains_the_curve_and_does_not_exceed_it(case) -> None:
    found = examine(case)
    assert found.passed
    assert 1.0 <= found.gap < 1.001
    assert case.replayed() == ()


def test_the_slope_of_one_record_in_place_of_two_is_caught(case) -> None:
    """s with L for G = 2L."""
    curve, pair = case.promise.curve, case.pairs[0]
    halved = RenyiDP(AveragedDirectionsCurve(curve.dimension, curve.reach / 2.0), below=1024.0)
    assert case.profile(pair).breaks(case.promise) is None
    assert case.profile(pair).breaks(halved) is not None


# ── faults in the program itself ──


def metropolis(kernel, state, records, public, secret):
    proposal = kernel.proposal(state, public)
    taken = secret.coin(max(0, kernel.cost(state, proposal, records, public)), BITS)
    return (proposal, 1) if taken else (state, 0)


def test_metropolis_for_barker_is_caught_and_its_loss_is_infinite(case, fault) -> None:
    fault("step", metropolis)
    planted = case.profile(case.pairs[0])
    assert planted.largest_log_ratio == math.inf
    assert planted.breaks(case.promise) is not None
    assert not examine(case).passed


def asked_twice(kernel, state, records, public, secret):
    """A move is taken if either of two answers is yes."""
    proposal = kernel.proposal(state, public)
    cost = kernel.cost(state, proposal, records, public)
    return (proposal, 1) if secret.accepts(cost, BITS) or secret.accepts(cost, BITS) else (state, 0)


def test_a_step_that_asks_twice_is_followed_through_all_its_answers(case, fault) -> None:
    fault("step", asked_twice)
    run = Program.of_plan(case.plan, case.pairs[0].first)
    found = run.outcomes(run.start, run.along(circle()[0]))
    assert len(found) == 3
    assert sum(one.chance for one in found) == pytest.approx(1.0)
    assert not examine(case).passed
    assert case.replayed()


def test_a_direction_along_the_gradient_is_caught_and_costs_d_times_as_much(case, fault) -> None:
    shipped = Barker.proposal
    along = np.full(2, math.sqrt(0.5))
    fault("proposal", lambda kernel, state, public: shipped(kernel, state, replace(public, source=Along(along))))
    planted = case.profile(case.pairs[0])
    assert planted.breaks(case.promise) is not None
    assert planted.renyi_bracket(1.1)[0] / case.promise.curve(1.1) == pytest.approx(2.0, rel=0.01)


def test_a_step_a_fifth_longer_than_accounted_is_caught(case, fault) -> None:
    shipped = Barker.proposal
    fault("proposal", lambda kernel, state, public: state + 1.2 * (shipped(kernel, state, public) - state))
    assert not examine(case).passed


@pytest.mark.parametrize("times", [1.05, 2.0])
def test_costs_that_are_larger_than_accounted_are_caught(case, fault, times) -> None:
    shipped = Barker.cost
    fault("cost", lambda *asked: round(times * shipped(*asked)))
    assert not examine(case).passed


def test_a_step_that_is_wrong_and_no_less_private_departs_from_its_formula(case, fault) -> None:
    shipped = Barker.cost
    fault("cost", lambda *asked: shipped(*asked) // 2)
    assert examine(case).passed
    assert case.replayed() == ("a step is not taken with the chance of its formula",)


def test_the_case_of_any_plan_in_the_plane_and_of_no_other() -> None:
    model = Logistic(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0))
    plan = od.calibrate(BarkerPath(), model, BUDGET, n=300)
    assert examine(case_for(plan)).passed
    wide = Hinge(3, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0))
    with pytest.raises(WrongCall, match="two coefficients"):
        case_for(od.calibrate(BarkerPath(), wide, BUDGET, n=300))


# ── whole paths ──

NUMBERS = {"weight": 1.0, "step_length": 0.4}
MODEL = Logistic(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0))
HINGE = Hinge(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0))


def program(model, records):
    return Program.of(Barker(), model, NUMBERS, records)


def path_law(program, directions):
    """The probabilities of all 2^T bit strings along T given directions, the last bit changing fastest."""
    paths = {(): (program.start, 1.0)}
    for direction in directions:
        longer = {}
        for bits, (state, so_far) in paths.items():
            for one in program.outcomes(state, program.along(direction)):
                _, before = longer.get((*bits, one.decision), (one.state, 0.0))
                longer[*bits, one.decision] = one.state, before + so_far * one.chance
        paths = longer
    return np.array([chance for _, (_, chance) in sorted(paths.items(), key=lambda one: one[0])])


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
@pytest.mark.parametrize(("steps", "pairs"), [(9, 3), pytest.param(12, 6, marks=pytest.mark.slow)])
def test_no_whole_path_of_up_to_twelve_bits_exceeds_the_sum_of_its_directions(model, steps, pairs) -> None:
    """All 2^T bit strings of the program that is shipped, against Σ_t α·s_e²/8, s_e of the two records that differ."""
    generator, closest = np.random.default_rng(12), 0.0
    for number in range(pairs):
        first, second, mine, theirs = neighbours(generator)
        along = directions(bytes([number]) * 32, 2, 0, steps)
        both = [path_law(program(model, records), along) for records in (first, second)]
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
    around = circle(16)
    laws = [
        np.concatenate([path_law(run, pair) for pair in itertools.product(around, around)]) / 16**2
        for run in (program(HINGE, first), program(HINGE, second))
    ]
    found = audit.finite_profile(*laws)
    curve = AveragedDirectionsCurve(2, 2.0 * NUMBERS["weight"] * NUMBERS["step_length"])
    for order in ORDERS:
        assert found.renyi_bracket(order)[1] <= 2.0 * curve(order)
