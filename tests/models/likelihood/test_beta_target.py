"""The law of a β-divergence posterior: potential, derivatives, and the losses of many parameters at once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from onedraw.errors import InvalidModel
from onedraw.models import BetaTarget, BinaryRegression, Encoded, Gaussian, GaussianRegression, Hinge
from onedraw.models.likelihood.beta_target import compiled as compiled_of
from tests.models.likelihood.cases import CASES, SEED, responses, title


@pytest.fixture(autouse=True)
def _seed_is_printed():
    print(f"ONEDRAW_TEST_SEED={SEED}")


def _target(model, kind, *, n=30, weight=0.7, beta=1.9):
    generator = np.random.default_rng(SEED)
    data = (generator.standard_normal((n, 2)), responses(kind, generator, (n,)))
    return BetaTarget(model, model.summarise(data), weight, beta), model.draw_prior(generator, 6)


@pytest.mark.parametrize(("model", "kind"), CASES, ids=title)
def test_the_potential_is_the_weighted_loss_less_the_log_prior(model, kind):
    target, thetas = _target(model, kind)
    expected = 0.7 * target.losses(thetas).sum(axis=1) - np.asarray(model.log_prior(thetas))
    np.testing.assert_allclose([float(target.potential(theta)) for theta in thetas], expected, rtol=1e-11)


@pytest.mark.parametrize(("model", "kind"), CASES, ids=title)
def test_the_gradient_is_that_of_finite_differences(model, kind):
    target, thetas = _target(model, kind)
    theta, step = thetas[0], 1e-6
    gradient = np.asarray(target.gradient(theta))
    for index in range(min(target.dimension, 7)):
        move = step * (np.arange(target.dimension) == index)
        slope = (float(target.potential(theta + move)) - float(target.potential(theta - move))) / (2.0 * step)
        assert gradient[index] == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_the_hessian_is_the_derivative_of_the_gradient():
    target, thetas = _target(BinaryRegression(2), "signs")
    step = 1e-5 * np.eye(3)
    columns = [(target.gradient(thetas[0] + move) - target.gradient(thetas[0] - move)) / 2e-5 for move in step]
    np.testing.assert_allclose(target.hessian(thetas[0]), np.array(columns), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("model", "kind"), CASES, ids=title)
def test_many_parameters_and_records_at_once_are_scored_like_a_few_of_them(model, kind):
    target, thetas = _target(model, kind)
    some = replace(target, encoded=Encoded(4, target.encoded.X[5:9], target.encoded.y[5:9]))
    whole = target.losses(thetas)
    np.testing.assert_allclose(whole[:, 5:9], some.losses(thetas), rtol=1e-12, atol=1e-14)
    assert target.losses(thetas[0]).shape == (1, 30)
    np.testing.assert_allclose([target.losses(theta)[0] for theta in thetas], whole, rtol=1e-12, atol=1e-14)


def test_the_logistic_loss_is_the_one_of_the_paper():
    model = BinaryRegression(1, intercept=False)
    target = BetaTarget(model, model.summarise((np.array([[1.0], [-1.0]]), [1, 1])), 1.0, 3.0)
    p = 1.0 / (1.0 + math.exp(-0.8))
    q, integral = 1.0 - p, (p**3 + (1.0 - p) ** 3) / 3.0
    np.testing.assert_allclose(target.losses([0.8])[0], [integral - p**2 / 2.0, integral - q**2 / 2.0], rtol=1e-12)


def test_the_published_pair_of_data_sets_loses_half_the_budget():
    """D = {(1, 1), (0, 0)}, D' = {(−1, 1), (0, 0)}, θ ~ N(0, 9), w = 1, β = 1 + 2/ε: largest |log ratio| by quadrature."""
    grid = np.linspace(-40.0, 40.0, 8001)[:, None]
    model = BinaryRegression(1, intercept=False, prior=Gaussian(scale=3.0))
    for epsilon, published in ((0.2, 0.100), (1.0, 0.500), (2.0, 1.000), (7.0, 3.500), (10.0, 4.998), (20.0, 9.817)):
        logs = []
        for x in (1.0, -1.0):
            target = BetaTarget(model, model.summarise((np.array([[x], [0.0]]), [1, 0])), 1.0, 1.0 + 2.0 / epsilon)
            log_density = np.asarray(model.log_prior(grid)) - target.losses(grid).sum(axis=1)
            logs.append(log_density - np.log(np.exp(log_density).sum()))
        largest = np.abs(logs[0] - logs[1]).max()
        assert largest == pytest.approx(published, abs=6e-3)
        assert largest <= epsilon / 2.0 + 1e-9


def test_outside_the_ball_of_a_prior_the_potential_is_infinite():
    model = BinaryRegression(2, prior=Gaussian(scale=3.0, radius=1.0))
    target = BetaTarget(model, model.summarise((np.zeros((2, 2)), [0, 1])), 1.0, 2.0)
    assert float(target.potential(np.array([1.0, 1.0, 0.0]))) == math.inf
    assert math.isfinite(float(target.potential(np.array([0.5, 0.5, 0.0]))))


def test_models_that_differ_in_prior_weight_beta_and_data_share_a_compilation():
    target, thetas = _target(BinaryRegression(2), "signs")
    other, _ = _target(BinaryRegression(2, prior=Gaussian(scale=0.5)), "signs", weight=0.1, beta=2.4)
    assert target.kernel == other.kernel
    compiled = compiled_of(target.kernel, "potential")
    first = float(target.potential(thetas[0]))
    known = compiled._cache_size()
    assert float(other.potential(thetas[0])) != first
    assert compiled._cache_size() == known


def test_what_cannot_be_a_target_is_refused():
    model = GaussianRegression(2, variance_floor=0.01)
    encoded = model.summarise((np.zeros((2, 2)), np.zeros(2)))
    with pytest.raises(InvalidModel, match="beta must be above 1"):
        BetaTarget(model, encoded, 1.0, 1.0)
    with pytest.raises(InvalidModel, match="weight"):
        BetaTarget(model, encoded, 0.0, 2.0)
    hinge = Hinge(2, data_norm=1.0, prior=Gaussian(scale=1.0))
    with pytest.raises(InvalidModel, match="likelihood of bounded density"):
        BetaTarget(hinge, encoded, 1.0, 2.0)
    assert "private" in repr(BetaTarget(model, encoded, 1.0, 2.0))
