"""DP-SGD and DP-SGLD against their promise: the composed law of its steps, written down without the accountant; planted faults are caught."""

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as foreign

import onedraw as od
from onedraw import audit
from onedraw.audit.cases import attack_program, examine
from onedraw.baselines import DPSGD, DPSGLD
from onedraw.baselines.audits.training import both, path_law, step_law
from onedraw.methods.catalog import case_for, cases

BUDGET = od.ApproxDP(1.0, 1e-5)


@pytest.fixture(scope="module", params=["dpsgd", "dpsgld"])
def case(request):
    (found,) = cases("baselines", BUDGET, mechanism=request.param)
    return found


def test_the_promise_is_kept_and_attained(case):
    found = examine(case)
    assert found.passed
    assert 1.0 <= found.gap < 1.001


@pytest.mark.parametrize("share", [0.9, 0.995])
def test_noise_that_is_ten_percent_too_small_is_caught_and_half_a_percent_too(case, share):
    assert case.profile(case.pairs[0], 1.0 / share).breaks(case.promise) is not None


def test_noise_found_with_the_default_relation_is_caught(case):
    """Accounted as if a record were left out, a good deal less noise seems enough: about half, over many steps."""
    factor = 1.69
    step = foreign.from_gaussian_mechanism(case.plan.parameters["noise_multiplier"] / factor, sampling_prob=0.25)
    assert step.self_compose(8).get_epsilon_for_delta(1e-5) < 1.0
    broken = case.profile(case.pairs[0], factor)
    assert broken.breaks(case.promise) is not None
    assert broken.epsilon_bracket(1e-5)[0] > 1.7


@pytest.mark.oracle
def test_paths_are_those_of_a_grid_over_all_outcomes():
    """Two steps: P and Q on a square of outcomes, nothing merged."""
    sigma, rate = 1.3, 0.3
    x = np.linspace(-12.0, 12.0, 1601)
    density = [
        (1 - rate) * np.exp(-(x**2) / (2 * sigma**2)) + rate * np.exp(-((x - one) ** 2) / (2 * sigma**2))
        for one in (1.0, -1.0)
    ]
    p, q = (np.outer(one, one) / (2 * np.pi * sigma**2) * (x[1] - x[0]) ** 2 for one in density)
    merged = audit.finite_profile(*path_law(sigma, rate, 2))
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        assert merged.delta(epsilon) == pytest.approx(np.maximum(p - np.exp(epsilon) * q, 0.0).sum(), rel=2e-3)


def test_merging_never_adds_what_is_not_there():
    one = step_law(2.0, 0.2)
    first, second = both(one, one)
    assert first.sum() == pytest.approx(1.0, abs=1e-12)
    exact = [np.outer(law, law).reshape(-1) for law in one]
    for epsilon in (0.0, 0.1, 0.5):
        whole = np.maximum(exact[0] - np.exp(epsilon) * exact[1], 0.0).sum()
        merged = np.maximum(first - np.exp(epsilon) * second, 0.0).sum()
        assert 0.999 * whole < merged <= whole + 1e-15


@pytest.mark.statistical
def test_draws_of_the_program_keep_the_promise_and_a_third_of_the_noise_does_not(case):
    """The last iterate alone, by the attacker's formula: confidence 1 − 1e-6."""
    options = {"rounds": 20_000, "delta": 1e-5, "confidence": 1.0 - 1e-6}
    for factor, caught in ((1.0, False), (3.0, True)):
        (found,) = attack_program(case, case.pairs[0], factor=factor, generator=np.random.default_rng(9), **options)
        assert (found.breaks(case.promise) is not None) == caught, found


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "sigma", "steps", "epsilon"), [(0.01, 2.0, 1000, 1.20521), (0.1, 10.0, 300, 1.32566)])
def test_long_paths_have_the_epsilon_of_the_reference(rate, sigma, steps, epsilon):
    low, _ = audit.finite_profile(*path_law(sigma, rate, steps)).epsilon_bracket(1e-5)
    assert 0.9995 * epsilon < low < epsilon


def test_any_plan_of_it_can_be_attacked():
    logistic = od.models.Logistic(2, bounds=(-1, 1), loss="exp-linear", prior=od.Gaussian(scale=1.0))
    for mechanism, model in (
        (DPSGD(epochs=1, batch_size=10), od.models.Network(2, hidden=2)),
        (DPSGLD(batch_size=10, relaxations=0.1, steps=10), logistic),
    ):
        plan = od.calibrate(mechanism, model, BUDGET, n=30)
        assert examine(case_for(plan)).passed
        assert case_for(plan).profile(case_for(plan).pairs[0], 1.1).breaks(plan.guarantee.promise) is not None
