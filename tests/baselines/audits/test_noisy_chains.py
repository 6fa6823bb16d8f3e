"""The literature's chains against their promises: exact laws of what whole paths show, and planted faults."""

import numpy as np
import pytest

import onedraw as od
from onedraw.audit.cases import examine
from onedraw.baselines import penalty
from onedraw.baselines.audits.noisy_chains import (
    CHANCE,
    FAR,
    FEWER,
    layout_cases,
    leapfrog_cases,
    penalty_cases,
    squared_cosines,
)
from onedraw.baselines.dp_hmc import NoisyLeapfrog
from onedraw.baselines.multi_proposal import OneOfMany
from onedraw.models.sums.loss_changes import BITS

BUDGET = od.ApproxDP(1.0, 1e-5)


def chain_cases():
    return [*penalty_cases(BUDGET), *leapfrog_cases(BUDGET), *layout_cases(BUDGET)]


@pytest.fixture(scope="module")
def found():
    return {case.name: examine(case) for case in chain_cases()}


def test_every_promise_is_kept_and_the_penalty_algorithms_is_attained(found):
    assert len(found) == 5
    assert all(one.passed for one in found.values())
    gaps = {name: one.gap for name, one in found.items()}
    assert gaps["penalty, logistic, worst direction"] == pytest.approx(1.0, abs=2e-3)
    assert 1.0 <= gaps["penalty, logistic"] < 1.02
    assert 1.0 <= gaps["multi-proposal, logistic"] < 1.01
    assert all(1.0 <= gap < 3.0 for gap in gaps.values()), gaps


@pytest.mark.parametrize(
    ("name", "factor"),
    [("penalty, logistic, worst direction", 1.01), ("penalty, logistic", 1.05), ("multi-proposal, logistic", 1.02)],
)
def test_a_small_fault_in_the_weight_is_caught(found, name, factor):
    one = found[name]
    assert one.case.profile(one.pair, factor).breaks(one.case.promise) is not None


@pytest.mark.parametrize("name", ["dphmc, logistic, penalty test", "dphmc, logistic, barker test"])
def test_gradients_with_half_their_noise_are_caught(found, name):
    one = found[name]
    assert one.case.profile(one.pair, 2.0).breaks(one.case.promise) is not None


def test_directions_that_all_point_along_the_record_exceed_the_averaged_promise(found):
    """The planted fault: proposals that a gradient chose. Along the worst direction of two it is twice the squared shift."""
    case = found["penalty, logistic"].case
    numbers = case.numbers()
    reach = 2.0 * numbers["weight"] * numbers["lipschitz"] * numbers["step_length"] / numbers["noise"]
    worst = numbers["steps"] * reach**2  # D_2 of T normal numbers shifted by s/σ
    assert worst > 1.9 * case.promise.divergence(2.0)


@pytest.mark.oracle
@pytest.mark.parametrize(("size", "steps"), [(2, 5), (3, 40), (7, 100)])
def test_sums_of_squared_cosines_have_their_mean_and_variance(size, steps):
    values, masses = squared_cosines(size, steps)
    mean = values @ masses
    variance = masses @ (values - mean) ** 2
    assert steps / size * 0.96 < mean <= steps / size
    assert variance == pytest.approx(steps * 2 * (size - 1) / (size**2 * (size + 2)), rel=0.06)
    draws = np.random.default_rng(1).standard_normal((2000, steps, size))
    cosines = (draws[..., 0] ** 2 / (draws**2).sum(axis=2)).sum(axis=1)
    assert np.quantile(cosines, 0.9) == pytest.approx(values[np.searchsorted(np.cumsum(masses), 0.9)], rel=0.05)


# ── faults in the programs themselves ──


def case_of(name):
    return next(case for case in chain_cases() if case.name == name)


def test_the_steps_that_are_shipped_are_those_that_were_counted():
    assert {case.replayed() for case in chain_cases()} == {()}


def test_a_penalty_that_is_left_out_and_noise_that_is_too_small_are_seen(monkeypatch):
    case = case_of("penalty, logistic, worst direction")
    shipped = penalty.accepts_with_penalty
    monkeypatch.setattr(penalty, "accepts_with_penalty", lambda cost, noise, secret: shipped(cost, 0.9 * noise, secret))
    assert set(case.replayed()) == {FEWER, CHANCE}
    correction = int(case.plan.parameters["noise"] ** 2 * 2.0 ** (BITS - 1))
    monkeypatch.setattr(
        penalty, "accepts_with_penalty", lambda cost, noise, secret: shipped(cost - correction, noise, secret)
    )
    assert case.replayed() == (CHANCE,)


def test_gradients_with_less_noise_or_with_the_noise_of_another_position_are_seen(monkeypatch):
    case, shipped = case_of("dphmc, logistic, barker test"), NoisyLeapfrog.deviations
    monkeypatch.setattr(NoisyLeapfrog, "deviations", lambda *asked: 0.9 * shipped(*asked))
    assert case.replayed() == (FEWER,)
    monkeypatch.setattr(NoisyLeapfrog, "deviations", shipped)
    monkeypatch.setattr(NoisyLeapfrog, "trajectory", one_gradient_for_all)
    assert case.replayed() == (FEWER,)


def one_gradient_for_all(kernel, state, momentum, records, public, secret):
    kick, size = kernel.gradient(state, records, public, secret), public.numbers["step_size"]
    for _ in range(kernel.leapfrogs):
        momentum = momentum - size * kick
        state = state + size * momentum
    return state, momentum


@pytest.mark.parametrize(("part", "fault", "seen"), [
    ("costs", lambda shipped: lambda *asked: shipped(*asked) * 2, CHANCE),
    ("layout", lambda shipped: lambda kernel, state, public: [state + 1.2 * (one - state) for one in shipped(kernel, state, public)], FAR),
], ids=["costs", "layout"])  # fmt: skip
def test_costs_and_layouts_that_are_larger_than_counted_are_seen(monkeypatch, part, fault, seen):
    case = case_of("multi-proposal, logistic")
    monkeypatch.setattr(OneOfMany, part, fault(getattr(OneOfMany, part)))
    assert seen in case.replayed()
