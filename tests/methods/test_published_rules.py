"""The literature's own rules: printed numbers, where they are false, and that ours allow no less."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.errors import PromiseRefused
from onedraw.methods import convex_bounds
from onedraw.methods import published_rules as literature
from onedraw.methods.beta_divergence import mechanism as beta_divergence
from onedraw.methods.convex_bounds import Curvature
from onedraw.models.likelihood import Bernoulli, GaussianNoise
from onedraw.privacy import ApproxDP
from tests.methods.cases import constants, gibbs_pair, hinge, linear

UNIT = Curvature(2.0, 1.0)


def gaussian_mean(norm: float, *, precision: float, n: int) -> Curvature:
    """ℓ = ½‖θ − x‖², ‖x‖ ≤ r, prior N(0, I/λ): G = 2r, m_ℓ = 1, so μ = 2wr/√(nw + λ), and that is exact (Theorem 15)."""
    return Curvature(2.0 * norm, precision, strong_convexity=1.0, n=n)


def bisect(holds, low, high):
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


# ── golden: methods/gibbs/proof.md and errata 14, 16, 17, 24 ────────────────────────────────────────────────


def test_the_three_reference_weights():
    assert f"{literature.corollary8_weight(1.0, 1e-5, UNIT):.6f}" == "0.102007"
    assert f"{literature.theorem7_weight(1.0, 1e-5, UNIT):.6f}" == "0.102029"
    assert f"{convex_bounds.gdp_weight(ApproxDP(1.0, 1e-5), UNIT):.6f}" == "0.134026"


def test_the_gaussian_mean_of_theorem_15_and_its_exact_value():
    n = 10_000
    mean = gaussian_mean(1.0, precision=0.0, n=n)
    tail, exact = literature.theorem7_weight(0.1, 1e-3, mean), convex_bounds.gdp_weight(ApproxDP(0.1, 1e-3), mean)
    assert f"{tail / n:.8e}".startswith("1.796")
    assert f"{exact / n:.8e}".startswith("8.253")
    k = math.log(1e3)
    printed = n / 2 * (0.1 + 2 * k - 2 * math.sqrt(k * (0.1 + k)))  # (B.8), (B.9)
    assert tail == pytest.approx(printed, rel=1e-9)
    assert f"{0.1**2 / (8 * math.log(2 / 1e-3)):.3e}" == "1.645e-04"  # (B.7) as its formula has it, not 1.26e-4


def test_theorem_15_beats_the_bounded_loss_from_70_records_on_not_15():
    wins = [
        n
        for n in range(1, 200)
        if literature.theorem7_weight(0.1, 1e-3, gaussian_mean(1.0, precision=0.0, n=n)) >= 0.1 / 8
    ]
    assert wins[0] == 70


def test_the_gaussian_mean_is_a_gaussian_shift_exactly():
    n, weight, norm, precision = 50, 0.3, 1.5, 2.0
    mean = gaussian_mean(norm, precision=precision, n=n)
    shift, variance = 2 * weight * norm / (n * weight + precision), 1 / (n * weight + precision)
    assert convex_bounds.gdp_promise(weight, mean).mu == pytest.approx(shift / math.sqrt(variance), rel=1e-14)


@pytest.mark.parametrize(("delta", "limit"), [(1e-5, "8.99"), (1e-3, "8.08"), (1e-8, "9.92")])
def test_corollary_8_is_true_up_to_its_printed_limit_and_not_beyond(delta, limit):
    found = bisect(lambda epsilon: literature.corollary8_holds(epsilon, delta), 1.0, 50.0)
    assert f"{found:.2f}" == limit
    assert all(literature.corollary8_holds(epsilon, delta) for epsilon in np.linspace(0.01, found, 200))
    assert not any(literature.corollary8_holds(epsilon, delta) for epsilon in np.linspace(found + 1e-6, 60, 200))


def test_corollary_8_follows_from_theorem_7_only_up_to_about_one():
    follows = bisect(
        lambda e: literature.theorem7_weight(e, 1e-5, UNIT) >= literature.corollary8_weight(e, 1e-5, UNIT), 0.5, 5.0
    )
    assert f"{follows:.2f}" == "1.01"


def test_the_hinge_of_errata_16_breaks_corollary_8_at_epsilon_20():
    """r = 0.1, m = 1, n = 1: the loss is non-negative, as the paper asks, and the label flips."""
    curvature = Curvature(2 * 0.1, 1.0)
    z = np.array([0.1])
    pair = gibbs_pair(
        hinge,
        [(z, 1)],
        [(z, -1)],
        weight=literature.corollary8_weight(20.0, 1e-5, curvature),
        precision=1.0,
        width=14.0,
    )
    assert f"{pair.delta(20.0):.2e}" == "1.17e-03"
    assert pair.delta(20.0) > 100 * 1e-5
    kept = convex_bounds.gdp_weight(ApproxDP(20.0, 1e-5), curvature)
    pair = gibbs_pair(hinge, [(z, 1)], [(z, -1)], weight=kept, precision=1.0, width=14.0, points=400_001)
    assert 0.99e-5 < pair.delta(20.0) <= 1e-5 * (1 + 1e-6), "the GDP rule is true there, and tight"


def test_the_first_part_of_the_first_version_of_corollary_8_is_false_from_3_11_on():
    """Errata 17: w ≤ √(mε/2L²) was said to give δ = e^{−(1+ε)/4}; the linear loss attains GaussianDP(√(2ε))."""

    def true_delta(epsilon):
        z, weight = np.array([1.0]), math.sqrt(epsilon / 2)
        return gibbs_pair(linear, [(z, 1)], [(z, -1)], weight=weight, precision=1.0, width=14.0).delta(epsilon)

    assert f"{true_delta(5.0):.3f}" == "0.384"
    assert f"{math.exp(-6 / 4):.3f}" == "0.223"
    assert f"{bisect(lambda e: true_delta(e) <= math.exp(-(1 + e) / 4), 1.0, 6.0):.2f}" == "3.11"


def test_the_gdp_rule_never_allows_less_than_theorem_7_or_a_valid_corollary_8():
    generator = np.random.default_rng(2203)
    valid = 0
    for _ in range(10_000):
        epsilon, delta = 10 ** generator.uniform(-2, 1.5), 10 ** generator.uniform(-12, -1.5)
        curvature = Curvature(2 * 10 ** generator.uniform(-2, 2), 10 ** generator.uniform(-3, 3))
        ours = convex_bounds.gdp_weight(ApproxDP(epsilon, delta), curvature)
        assert ours >= literature.theorem7_weight(epsilon, delta, curvature)
        if literature.corollary8_holds(epsilon, delta):
            valid += 1
            assert ours >= literature.corollary8_weight(epsilon, delta, curvature)
        else:
            assert ours < literature.corollary8_weight(epsilon, delta, curvature)
    assert 5000 < valid < 10_000, "both sides of the corollary's range were visited"


@settings(max_examples=80, deadline=None)
@given(constants, st.floats(0.01, 30.0), st.floats(1e-12, 0.1))
def test_theorem_7_and_corollary_8_invert_their_own_promises(curvature, epsilon, delta):
    weight = literature.theorem7_weight(epsilon, delta, curvature)
    assert literature.theorem7_promise(weight, epsilon, curvature).implies(ApproxDP(epsilon, delta))
    assert literature.theorem7_delta(weight * 1.001, epsilon, curvature) > delta
    weight = literature.corollary8_weight(epsilon, delta, curvature)
    claimed = literature.corollary8_promise(weight, delta, curvature)
    assert epsilon * (1 - 1e-9) <= claimed.stated_epsilon <= epsilon * (1 + 1e-12)


# ── w = 1, and β as the budget asks for it ───────────────────────────────────────────────────────────────────

FLOOR = 0.01
DISCRETE = Bernoulli()


def discrete(beta):
    return DISCRETE.sensitivity(beta).value


def floored(beta):
    return GaussianNoise(variance_floor=FLOOR).sensitivity(beta).value


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 1.0, 2.0, 7.0, 10.0, 20.0])
def test_for_discrete_models_the_papers_beta_is_one_plus_two_over_epsilon(epsilon):
    beta = literature.jewson_beta(discrete, epsilon)
    assert beta == pytest.approx(1 + 2 / epsilon, rel=1e-14)
    assert beta_divergence.draw_range(1.0, discrete(beta)) <= epsilon


@pytest.mark.parametrize(("variance", "true"), [(9.0, 7.65), (1.0, 7.69)])
def test_the_published_gaussian_calibration_spends_what_errata_3_says(variance, true):
    beta = literature.jewson_beta(literature.normal_sensitivity(variance), 1.0)
    assert beta_divergence.draw_range(1.0, floored(beta)) == pytest.approx(true, abs=0.005)


def test_with_weight_one_and_a_floor_of_a_hundredth_no_epsilon_below_7_52_exists():
    peak = 1 / math.sqrt(2 * math.pi * FLOOR)
    least = 2 * math.e * math.log(peak)
    assert least == pytest.approx(7.52, abs=0.005)
    with pytest.raises(PromiseRefused, match="no β at all"):
        literature.jewson_beta(floored, least * 0.999)
    beta = literature.jewson_beta(floored, least * 1.001)
    assert beta == pytest.approx(1 + 1 / math.log(peak), rel=0.05)
    assert beta_divergence.draw_range(1.0, floored(beta)) <= least * 1.001


@settings(max_examples=60, deadline=None)
@given(st.floats(7.6, 300.0))
def test_of_two_betas_with_the_same_range_the_smaller_is_taken(epsilon):
    beta = literature.jewson_beta(floored, epsilon)
    assert beta < 1 + 1 / math.log(1 / math.sqrt(2 * math.pi * FLOOR))
    assert beta_divergence.draw_range(1.0, floored(beta)) <= epsilon
    assert beta_divergence.draw_range(1.0, floored(1 + (beta - 1) * (1 - 1e-6))) > epsilon


def test_a_beta_at_which_the_loss_sees_nothing_is_refused():
    with pytest.raises(PromiseRefused, match="no longer"):
        literature.jewson_beta(discrete, 1e-7)


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-4, 1e4), st.floats(1.01, 8.0))
def test_the_normal_sensitivity_is_that_of_the_likelihood(variance, beta):
    ours = literature.normal_sensitivity(variance)(beta)
    assert ours == pytest.approx(GaussianNoise(variance=variance).sensitivity(beta).value, rel=1e-11)
    assert ours >= (2 * math.pi * variance) ** (-(beta - 1) / 2) / (beta - 1) * (1 - 1e-15)
