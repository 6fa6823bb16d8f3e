"""A Gaussian cut to a ball: the law against quadrature, and that no law makes the rejection hang."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from onedraw.models.conjugate.distributions import BallGaussian, Gaussian
from onedraw.samplers import Exact, seeded_generator
from onedraw.samplers import ball as gaussian_sampler
from onedraw.samplers.ball import multiplier_of_peak, peak_on_ball
from tests.samplers.cases import ALPHA, Array, cdf_of_coordinate, cdf_of_norm, cdf_on_line, follows

DRAWS = 40_000


def least_squares(dimension: int, *, slope: float, weight: float, radius: float, scale: float = 1.0) -> BallGaussian:
    """A = w XᵀX + Λ, b = w Xᵀy of 40 correlated records whose best coefficients are ``slope`` each."""
    generator = np.random.default_rng(5)
    rows = generator.standard_normal((40, dimension)) @ (np.eye(dimension) + 0.4)
    return BallGaussian(
        weight * rows.T @ rows + np.eye(dimension) / scale**2, weight * rows.T @ (rows.sum(axis=1) * slope), radius
    )


CASES = {
    "mostly inside": {"slope": 0.3, "weight": 0.2, "radius": 1.0},
    "centred on the sphere": {"slope": 0.7, "weight": 0.5, "radius": 1.0},
    "far outside": {"slope": 20.0, "weight": 0.15, "radius": 1.0},
    "a ball far smaller than the prior": {"slope": 0.0, "weight": 1e-6, "radius": 0.01},
    "a small ball, pulled": {"slope": 5.0, "weight": 3.0, "radius": 0.02},
}


def potential(law: BallGaussian):
    def value(theta: Array) -> Array:
        return 0.5 * np.einsum("...i,ij,...j", theta, law.precision, theta) - theta @ law.linear

    return value


def passes(draws: Array, law: BallGaussian) -> bool:
    if law.linear.size == 1:
        return follows(draws[:, 0], cdf_on_line(potential(law), -law.radius, law.radius))
    tests = [follows(draws[:, i], cdf_of_coordinate(potential(law), i, law.radius, ball=True)) for i in (0, 1)]
    return all(tests) and follows(np.linalg.norm(draws, axis=1), cdf_of_norm(potential(law), law.radius))


@pytest.mark.statistical
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_least_squares_on_a_ball_follows_its_law(case: str, dimension: int, test_seed: int) -> None:
    law = least_squares(dimension, **CASES[case])
    draws = Exact().draw(law, seeded_generator(test_seed), size=DRAWS)
    assert (np.linalg.norm(draws, axis=1) <= law.radius).all()
    assert passes(draws, law)


@pytest.mark.statistical
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_a_law_cut_at_a_radius_three_percent_off_is_rejected(case: str, dimension: int, test_seed: int) -> None:
    law = least_squares(dimension, **CASES[case])
    wrong = BallGaussian(law.precision, law.linear, 0.97 * law.radius)
    if case == "mostly inside":
        wrong = BallGaussian(law.precision, 0.7 * law.linear, law.radius)
    assert not passes(Exact().draw(wrong, seeded_generator(test_seed), size=DRAWS), law)


@pytest.mark.statistical
@pytest.mark.parametrize("case", ["far outside", "a ball far smaller than the prior", "a small ball, pulled"])
def test_a_tilt_that_is_not_taken_back_is_rejected(case: str, test_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = gaussian_sampler.log_acceptance
    monkeypatch.setattr(gaussian_sampler, "log_acceptance", lambda *a, **k: np.minimum(0.0, 0.5 * real(*a, **k)))
    law = least_squares(2, **CASES[case])
    assert not passes(Exact().draw(law, seeded_generator(test_seed), size=DRAWS), law)


@pytest.mark.statistical
def test_a_gaussian_with_full_precision_follows_its_law(test_seed: int) -> None:
    law = least_squares(5, slope=0.5, weight=2.0, radius=1.0)
    mean = np.linalg.solve(law.precision, law.linear)
    draws = Exact().draw(Gaussian(mean, law.precision), seeded_generator(test_seed), size=DRAWS)
    white = (draws - mean) @ np.linalg.cholesky(law.precision)
    assert all(norm.sf(abs(white.mean(axis=0)) * np.sqrt(DRAWS)) > ALPHA / 10)
    assert all(follows(column, norm.cdf) for column in white.T)
    assert not any(follows(1.1 * column, norm.cdf) for column in white.T)
    assert np.corrcoef(white.T) == pytest.approx(np.eye(5), abs=6 / np.sqrt(DRAWS))


@st.composite
def ball_laws(draw: st.DrawFn) -> BallGaussian:
    """Every shape a posterior can have: nearly flat to needle-sharp, centred inside or a hundred radii away."""
    dimension = draw(st.sampled_from([1, 2, 3, 6, 11]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.floats(0, 4)) * generator.standard_normal(dimension)
    precision = np.exp(draw(st.floats(-9, 16)) + spread)
    linear = precision * generator.standard_normal(dimension) * np.exp(draw(st.floats(-8, 4)))
    axes = np.linalg.qr(generator.standard_normal((dimension, dimension)))[0]
    radius = np.exp(draw(st.floats(-5, 5)))
    return BallGaussian((axes * precision) @ axes.T / radius**2, axes @ linear / radius, radius)


@settings(max_examples=150, deadline=None)
@given(ball_laws())
def test_no_law_takes_many_tries(law: BallGaussian) -> None:
    """The most expected is about e(d+1)/2; a batch is 2000 tries here."""
    sample = Exact().run(law, seeded_generator(3), size=1000)
    assert np.isfinite(sample.draws).all()
    assert (np.linalg.norm(sample.draws, axis=1) <= law.radius).all()
    assert sample.diagnostics["tries"] / 1000 <= 4 + 2 * np.e * (law.linear.size + 1)


@given(ball_laws())
def test_the_largest_density_is_found_on_the_ball(law: BallGaussian) -> None:
    precision = np.diag(law.precision) * law.radius**2
    linear = law.linear * law.radius
    multiplier, peak = multiplier_of_peak(precision, linear, xp=np), peak_on_ball(precision, linear, xp=np)
    assert np.linalg.norm(peak) <= 1.0 + 1e-12
    # Stationary on the ball: the slope is 0 inside, and points straight outward on the sphere.
    assert linear - precision * peak == pytest.approx(multiplier * peak, rel=1e-6, abs=1e-9 * np.abs(linear).max())


@pytest.mark.parametrize("radius", [1.0, 1e-3])
def test_a_hanging_case_of_plain_rejection_is_quick(radius: float) -> None:
    law = BallGaussian(1e6 * np.eye(6), 3e6 * np.ones(6), radius)
    assert Exact().run(law, seeded_generator(1), size=100).diagnostics["tries"] <= 10_000
