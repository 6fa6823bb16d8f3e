"""Noisy sums of Poisson samples: the accountant's figures, and the lemma that the antipodal pair is the worst."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as foreign
from dp_accounting.rdp import RdpAccountant
from scipy import special

from onedraw.errors import WrongCall
from onedraw.privacy import pld
from onedraw.privacy.sampled_gaussian import (
    SampledGaussianPair,
    least_multiplier,
    sampled_gaussian_epsilon,
)

REFERENCE = [(0.01, 2.0, 1000, 1.20521), (0.1, 10.0, 300, 1.32566), (0.001, 1.0, 3000, 0.41242), (1.0, 2.0, 1, 4.37718)]
"""(q, σ, T) → ε at δ = 1e-5 for replace-one."""


@pytest.mark.oracle
@pytest.mark.parametrize(("rate", "multiplier", "steps", "epsilon"), REFERENCE)
def test_epsilon_is_that_of_the_reference_and_above_its_own_lower_bound(rate, multiplier, steps, epsilon):
    found = sampled_gaussian_epsilon(multiplier, rate=rate, steps=steps, delta=1e-5)
    assert found == pytest.approx(epsilon, abs=1e-4)
    if steps < 1000:  # a fine grid takes seconds
        lower = pld.lower_profile(((SampledGaussianPair(multiplier, rate), steps),)).epsilon(
            1e-5, largest=pld.LARGEST_LOSS
        )
        assert 0.995 * found < lower < found


def test_the_default_relation_would_give_half():
    """The trap of dp_accounting: a record left out is not a record replaced."""
    left_out = foreign.from_gaussian_mechanism(2.0, sampling_prob=0.01).self_compose(1000)
    assert left_out.get_epsilon_for_delta(1e-5) == pytest.approx(0.622, abs=2e-3)
    assert sampled_gaussian_epsilon(2.0, rate=0.01, steps=1000, delta=1e-5) > 1.2


@pytest.mark.statistical
@pytest.mark.parametrize(("case", "paths"), [(0, 12_000), (1, 40_000), (2, 2_000)])
def test_simulated_paths_never_show_more_than_epsilon_and_the_default_relation_is_caught(case, paths):
    """δ at an ε by Monte Carlo: E(1 − e^{ε−L})₊ over paths of the antipodal pair, less a Hoeffding margin (α = 1e-6)."""
    rate, sigma, steps, epsilon = REFERENCE[case]
    generator, loss = np.random.default_rng(20261116), np.zeros(paths)
    for _ in range(steps):
        x = sigma * generator.standard_normal(paths) + (generator.random(paths) < rate)
        shift = rate / (1.0 - rate) * math.exp(-0.5 / sigma**2)
        loss += np.log1p(shift * np.exp(x / sigma**2)) - np.log1p(shift * np.exp(-x / sigma**2))

    def shown(at):
        return float(np.maximum(1.0 - np.exp(at - loss), 0.0).mean()) - math.sqrt(math.log(1e6) / (2.0 * paths))

    assert shown(epsilon) <= 1e-5
    exchanged, left_out = (
        foreign.from_gaussian_mechanism(sigma, sampling_prob=rate, **relation).self_compose(steps)
        for relation in ({"neighboring_relation": foreign.NeighborRel.REPLACE_ONE}, {})
    )
    wrong = left_out.get_epsilon_for_delta(0.02)  # a δ that so few paths can show
    for at in (0.0, wrong):
        assert shown(at) <= exchanged.get_delta_for_epsilon(at)
    if paths > 2_000:  # the last case has too few for that
        assert shown(wrong) > 0.02


@pytest.mark.oracle
def test_batches_without_replacement_cost_three_times_as_much():
    """Theorem 27 of arXiv:1808.00087 (dp_sgld.md); its noise is by the full difference of two records, and n matters through q alone."""
    for n in (10_000, 1_000_000):
        accountant = RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
        step = dp_accounting.SampledWithoutReplacementDpEvent(n, n // 100, dp_accounting.GaussianDpEvent(2.0 / 2.0))
        found = accountant.compose(step, 1000).get_epsilon(1e-5)
        assert found == pytest.approx(3.576, abs=5e-4)
        assert found > 2.9 * sampled_gaussian_epsilon(2.0, rate=0.01, steps=1000, delta=1e-5)


def test_the_multiplier_found_is_enough_and_a_little_less_is_not():
    found = least_multiplier(1.0, 1e-5, rate=0.2, steps=20)
    assert 0.999 < sampled_gaussian_epsilon(found, rate=0.2, steps=20, delta=1e-5) <= 1.0
    assert sampled_gaussian_epsilon(found * 0.999, rate=0.2, steps=20, delta=1e-5) > 1.0


def test_nothing_is_promised_without_a_delta_or_with_numbers_that_mean_nothing():
    assert sampled_gaussian_epsilon(2.0, rate=0.1, steps=3, delta=0.0) == math.inf
    for numbers in ((0.1, 0.5), (math.nan, 0.5), (2.0, 0.0), (2.0, 1.5)):
        with pytest.raises(WrongCall):
            sampled_gaussian_epsilon(numbers[0], rate=numbers[1], steps=3, delta=1e-5)


# ── the antipodal pair is the worst ──────────────────────────────────────────────────────────────────────────


def hockey_stick(rate, sigma, alpha, first, second):
    """H_α of (1−q)N(0) + qN(g) against (1−q)N(0) + qN(g') in the plane, g along the first axis and g·g' ≤ ‖g‖².

    On a line along g the difference of the densities is positive beyond one place t, found by halving; beyond it
    normal tails are known. What is left is a smooth integral over the other axis.
    """
    v = np.linspace(-12.0 * sigma - 1.0, 12.0 * sigma + 1.0, 301)
    variance, (length, _), (along, across) = sigma**2, first, second

    def log_excess(t):
        """log of (α−1)(1−q)φ_0 + αqφ_g' over qφ_g."""
        to_zero = (length**2 / 2 - t * length) / variance
        to_second = ((length**2 - along**2 - across**2) / 2 + t * (along - length) + v * across) / variance
        with np.errstate(divide="ignore"):
            kept = np.log((alpha - 1.0) * (1.0 - rate) / rate)
        return np.logaddexp(kept + to_zero, math.log(alpha) + to_second)

    low, high = np.full_like(v, -80.0 * sigma), np.full_like(v, 80.0 * sigma + 2.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = log_excess(middle) > 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)

    def beyond(place, height):
        return np.exp(-((v - height) ** 2) / (2 * variance)) * special.ndtr((place - high) / sigma)

    mass = rate * beyond(length, 0.0) - (alpha - 1.0) * (1.0 - rate) * beyond(0.0, 0.0)
    mass = mass - alpha * rate * beyond(along, across)
    return float(np.maximum(mass, 0.0).sum() * (v[1] - v[0]) / math.sqrt(2 * math.pi * variance))


@pytest.mark.oracle
@pytest.mark.parametrize("pairs", [150, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_two_gradients_of_bounded_norm_are_easier_to_tell_apart_than_opposite_ones(pairs):
    generator, ratios = np.random.default_rng(20261116), []
    for _ in range(pairs):
        rate, sigma = generator.choice([0.01, 0.1, 0.5, 1.0]), math.exp(generator.uniform(-1.0, 1.5))
        alpha = math.exp(generator.choice([0.0, 0.01, 0.1, 0.5, 1.5]))
        worst = hockey_stick(rate, sigma, alpha, (1.0, 0.0), (-1.0, 0.0))
        length = generator.choice([1.0, generator.uniform(0.0, 1.0)])
        angle, other = generator.choice([generator.uniform(0, math.pi), math.pi]), generator.choice([1.0, 0.5])
        second = (other * math.cos(angle), other * math.sin(angle))
        if worst > 1e-10 and second[0] <= length:
            ratios.append(hockey_stick(rate, sigma, alpha, (length, 0.0), second) / worst)
    assert max(ratios) <= 1.0 + 1e-9
    assert np.quantile(ratios, 0.5) < 0.95 < max(ratios)
    assert len(ratios) > 0.6 * pairs


def test_the_quadrature_of_the_plane_is_that_of_the_line():
    for rate, sigma, alpha in ((0.1, 1.0, 1.1), (1.0, 2.0, 1.5), (0.01, 0.5, 2.0)):
        x = np.linspace(-14 * sigma - 1, 14 * sigma + 1, 400_001)
        p, q = (
            (1 - rate) * np.exp(-(x**2) / (2 * sigma**2)) + rate * np.exp(-((x - sign) ** 2) / (2 * sigma**2))
            for sign in (1.0, -1.0)
        )
        line = np.maximum(p - alpha * q, 0.0).sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi) / sigma
        assert hockey_stick(rate, sigma, alpha, (1.0, 0.0), (-1.0, 0.0)) == pytest.approx(line, rel=1e-5)
