"""Laws every profile obeys, over random pairs of laws: monotone, convex, dual, and never larger after merging outcomes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onedraw as od
from onedraw.audit import clopper_pearson_upper, epsilon_lower_bound, finite_profile

masses = st.lists(st.floats(0.01, 1.0), min_size=3, max_size=8)


@st.composite
def pairs(draw):
    first = np.array(draw(masses))
    second = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=len(first), max_size=len(first))))
    return first / first.sum(), second / second.sum()


EPSILONS = np.linspace(0.0, 4.0, 9)


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_delta_falls_and_is_convex_in_the_exponential_of_epsilon(pair):
    profile = finite_profile(*pair)
    scale = np.exp(EPSILONS)
    deltas = np.array([profile.delta(epsilon) for epsilon in EPSILONS])
    assert np.all(np.diff(deltas) <= 1e-12)
    slopes = np.diff(deltas) / np.diff(scale)
    assert np.all(np.diff(slopes) >= -1e-9)
    assert deltas[0] == pytest.approx(np.abs(pair[0] - pair[1]).sum() / 2.0, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_delta_and_the_tradeoff_curve_are_dual(pair):
    """1 − δ(ε) − e^ε α ≤ f(α) for every ε and α, with equality somewhere."""
    profile = finite_profile(*pair)
    alphas = np.linspace(0.0, 1.0, 401)
    curve = profile.tradeoff(alphas)
    for epsilon in EPSILONS:
        line = 1.0 - profile.delta(epsilon) - math.exp(epsilon) * alphas
        assert np.all(line <= curve + 1e-9)
    corner = np.min(curve + math.exp(0.5) * alphas)
    assert corner == pytest.approx(1.0 - profile.delta(0.5), abs=0.02)


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_merging_outcomes_hides_information_and_never_reveals_any(pair):
    whole = finite_profile(*pair)
    merged = finite_profile(*(np.concatenate([[law[0] + law[1]], law[2:]]) for law in pair))
    assert merged.largest_log_ratio <= whole.largest_log_ratio + 1e-12
    assert merged.log_ratio_range <= whole.log_ratio_range + 1e-12
    for epsilon in EPSILONS:
        assert merged.delta(epsilon) <= whole.delta(epsilon) + 1e-12
    for order in (1.5, 2.0, 10.0):
        assert merged.renyi(order) <= whole.renyi(order) + 1e-9


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_a_pair_keeps_what_it_attains_and_breaks_anything_less(pair):
    profile = finite_profile(*pair)
    attained = profile.largest_log_ratio
    if attained < 1e-3:
        return
    assert profile.breaks(od.PureDP(attained)) is None
    assert profile.breaks(od.BoundedRange(profile.log_ratio_range)) is None
    assert profile.breaks(od.PureDP(attained * 0.999)) is not None
    assert profile.breaks(od.BoundedRange(profile.log_ratio_range * 0.999)) is not None
    delta = profile.delta(attained / 2.0)
    if delta > 1e-6:
        assert profile.epsilon(delta) == pytest.approx(attained / 2.0, abs=1e-6)
        assert profile.breaks(od.ApproxDP(attained / 2.0, delta * 0.999)) is not None


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 400), st.integers(1, 400), st.data())
def test_fewer_errors_more_rounds_and_less_confidence_never_show_less(rounds0, rounds1, data):
    fp, fn = data.draw(st.integers(0, rounds0)), data.draw(st.integers(0, rounds1))
    shown = epsilon_lower_bound(fp, fn, rounds0, rounds1, 0.01, 0.95)
    assert shown >= 0.0
    assert epsilon_lower_bound(fp, fn, rounds0, rounds1, 0.01, 0.99) <= shown
    assert epsilon_lower_bound(fp, fn, rounds0, rounds1, 0.02, 0.95) <= shown
    assert epsilon_lower_bound(fp, fn, rounds0 + 10, rounds1 + 10, 0.01, 0.95) >= shown
    if fp:
        assert clopper_pearson_upper(fp - 1, rounds0, 0.05) <= clopper_pearson_upper(fp, rounds0, 0.05)
