"""The literature's chains against their promises: exact laws of what whole paths show, and planted faults."""

import numpy as np
import pytest

import onedraw as od
from onedraw.audit.cases import examine
from onedraw.audit.cases.noisy_chains import chain_cases, squared_cosines

BUDGET = od.ApproxDP(1.0, 1e-5)


@pytest.fixture(scope="module")
def found():
    return {case.name: examine(case) for case in chain_cases(BUDGET)}


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
