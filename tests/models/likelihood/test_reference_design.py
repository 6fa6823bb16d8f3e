"""The information of a record under a β-divergence, against differentiation, and the best β."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from onedraw.methods import published_rules as literature
from onedraw.models.likelihood import (
    Bernoulli,
    Categorical,
    Gamma,
    GaussianNoise,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from onedraw.models.likelihood import reference_design as beta_design
from onedraw.models.likelihood.reference_design import mean_information

# ── information ────────────────────────────────────────────────────────────────────────────────────────────


def differentiated(likelihood, u, beta, responses, spacing, variance=None):
    """E ℓ'' and Var ℓ' under f, by differences of the loss itself: what H and K mean."""
    h = 1e-3
    low, middle, high = (
        likelihood.beta_loss(beta, np.full(len(responses), u + shift), responses, variance) for shift in (-h, 0.0, h)
    )
    mass = np.exp(likelihood.log_density(np.full(len(responses), u), responses, variance)) * spacing
    slope = (high - low) / (2 * h)
    return mass @ ((high - 2 * middle + low) / h**2), mass @ slope**2 - (mass @ slope) ** 2


LOG_GRID = np.exp(np.linspace(-20, 8, 6000))
CASES = {
    "bernoulli": (Bernoulli(), np.array([-1.0, 1.0]), 1.0, None),
    "poisson": (Poisson(), np.arange(80.0), 1.0, None),
    "negative binomial": (NegativeBinomial(2.0), np.arange(400.0), 1.0, None),
    "gaussian": (GaussianNoise(variance=2.0), np.linspace(-20, 20, 8001), 0.005, None),
    "student": (StudentT(4.0, variance_floor=0.01), np.linspace(-60, 60, 12001), 0.01, 1.0),
    "gamma": (Gamma(2.0, 1.5), LOG_GRID, LOG_GRID * 28 / 5999, None),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("beta", [1.3, 2.43])
def test_information_is_the_curvature_and_the_variance_of_the_slope_of_the_loss(name, beta):
    """A design concentrated on u = 0, against differences of the loss itself."""
    likelihood, responses, spacing, variance = CASES[name]
    curvature, spread = differentiated(likelihood, 0.0, beta, responses, spacing, variance)
    information, variability = mean_information(likelihood, np.array([1e-8]), beta, None)
    assert information[0] == pytest.approx(curvature, rel=2e-4)
    assert variability[0] == pytest.approx(spread, rel=2e-4)


@pytest.mark.parametrize("u", [-3.0, 0.0, 0.7])
def test_the_binary_formulas_agree_with_differentiation_away_from_a_half(u):
    information, variability = beta_design.binary_information(np.array([u]), 1.8)
    found = differentiated(Bernoulli(), u, 1.8, np.array([-1.0, 1.0]), 1.0)
    assert (information[0], variability[0]) == pytest.approx(found, rel=1e-5)


def test_two_classes_of_a_softmax_carry_the_binary_information():
    u = np.array([-2.0, 0.3, 1.0])
    binary = beta_design.binary_information(u, 2.2)
    softmax = beta_design.categorical_information(np.column_stack([0 * u, u]), 2.2)
    assert softmax == pytest.approx((2 * binary[0].mean(), 2 * binary[1].mean()), rel=1e-12)


def test_classes_are_exchangeable_so_the_softmax_average_is_a_multiple_of_the_centring_matrix():
    scores = np.random.default_rng(3).standard_normal((200_000, 3))
    p = special.softmax(scores, axis=1)
    matrix = np.einsum("ny,nyi,nyj->ij", p**2.2, np.eye(3) - p[:, None, :], np.eye(3) - p[:, None, :]) / len(p)
    level = beta_design.categorical_information(scores, 2.2)[0]
    np.testing.assert_allclose(matrix, level * (np.eye(3) - 1 / 3), atol=3e-4)
    averaged = mean_information(Categorical(3), np.ones(1), 2.2, None)[0][0]
    assert averaged == pytest.approx(level, rel=0.02)


def test_nothing_is_lost_where_an_outcome_is_all_but_certain():
    information, variability = beta_design.binary_information(np.array([-700.0, 40.0, 700.0]), 2.43)
    assert np.isfinite(information).all()
    assert np.isfinite(variability).all()
    assert information[1] == pytest.approx(math.exp(-80.0), rel=1e-6), "q²p^β to first order"


# ── the Gaussian optimum ───────────────────────────────────────────────────────────────────────────────────


def normal_optimum(ratio):
    """β with the smallest private term H⁻¹/w of a normal model, σ/s = ``ratio`` ≥ 1: ln(σ/s) + 3/(2β) = 1/(β−1)."""
    logarithm = math.log(ratio)
    return optimize.brentq(lambda beta: logarithm + 1.5 / beta - 1.0 / (beta - 1.0), 1.0 + 1e-9, 3.0 + 1e-9)


@pytest.mark.parametrize(("ratio", "beta"), [(1.0, 3.0), (10.0, 1.29)])
def test_the_gaussian_optimum_is_that_of_the_text(ratio, beta):
    assert normal_optimum(ratio) == pytest.approx(beta, abs=0.005)


@settings(max_examples=30, deadline=None)
@given(st.floats(1.0, 1000.0))
def test_the_gaussian_optimum_minimises_the_private_term(ratio):
    floor = literature.normal_sensitivity(1.0)

    def private(beta):
        return math.log(floor(beta) / beta_design.normal_information(ratio, beta)[0])

    found = optimize.minimize_scalar(private, bounds=(1.01, 5.0), method="bounded", options={"xatol": 1e-10})
    assert normal_optimum(ratio) == pytest.approx(found.x, abs=1e-4)
