"""HMC and NUTS draw from the β-posterior: against quadrature, against long runs, and a β off by 10 % is noticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from experiments.many_fits import fits
from scipy.stats import ks_2samp

from onedraw.models.compute import jax
from onedraw.samplers import HMC, NUTS, seeded_key
from onedraw.samplers.laplace import arguments_of, hessian, laplace_approximation
from tests.samplers.cases import (
    ALPHA,
    BETA,
    cdf_of_coordinate,
    cdf_of_norm,
    follows,
    logistic,
    logistic_potential,
    logistic_target,
    network_target,
    predictions,
)

pytestmark = pytest.mark.statistical

REACH = 12.0
DRAWS = 800


@pytest.fixture(scope="module")
def oracles():
    return [cdf_of_coordinate(logistic_potential, axis, REACH, ball=False) for axis in (0, 1)]


def _accepted(draws, oracles):
    return all(follows(draws[:, axis], oracle) for axis, oracle in enumerate(oracles))


@pytest.mark.parametrize("sampler", [HMC(25), HMC(25, walk=0.3), NUTS(10)], ids=["hmc", "hmc with walk", "nuts"])
def test_draws_follow_the_posterior(sampler, oracles, test_seed):
    draws = sampler.run(logistic_target(), seeded_key(test_seed), size=DRAWS).draws
    assert draws.shape == (DRAWS, 2)
    assert _accepted(draws, oracles)


def test_a_beta_off_by_ten_per_cent_is_caught(oracles, test_seed):
    for sampler in (HMC(25), NUTS(10)):
        draws = sampler.run(logistic_target(beta=1.1 * BETA), seeded_key(test_seed), size=DRAWS).draws
        assert not _accepted(draws, oracles)


def test_one_step_from_the_laplace_approximation_is_too_few_and_is_caught(oracles, test_seed):
    """What the test can see: the approximation alone is not the posterior."""
    start = HMC(1, leapfrog=1, step_size=1e-6).run(logistic_target(), seeded_key(test_seed), size=DRAWS).draws
    assert not _accepted(start, oracles)


def test_on_a_ball_no_draw_is_outside(test_seed):
    draws = HMC(25).run(logistic_target(radius=0.8), seeded_key(test_seed), size=DRAWS).draws
    norms = np.linalg.norm(draws, axis=1)
    assert norms.max() <= 0.8
    assert follows(norms, cdf_of_norm(logistic_potential, 0.8))


def test_gibbs_posteriors_are_followed_too(test_seed):
    case = logistic(2, weight=1.0, radius=1.5)
    norms = np.linalg.norm(HMC(25).run(case.target, seeded_key(test_seed), size=DRAWS).draws, axis=1)
    assert norms.max() <= 1.5
    assert follows(norms, cdf_of_norm(case.potential, 1.5))


def test_fits_of_many_data_sets_draw_like_runs_of_each(oracles, test_seed):
    draws = fits([logistic_target()] * 256, HMC(25), key=seeded_key(test_seed))
    assert _accepted(draws, oracles)


@pytest.mark.slow
def test_on_a_network_short_runs_of_many_chains_predict_like_long_ones(test_seed):
    """Class probabilities at six places; weights themselves are not identifiable."""
    key, size, long = jax.random.split(seeded_key(test_seed), 3), 200, HMC(600, step_size=0.15, leapfrog=10)
    target, rows = network_target()
    heavier = replace(target, weight=4.0 * target.weight)
    short = predictions(target, NUTS(60, warmup=60, doublings=6).run(target, key[0], size=size).draws, rows)
    lasting = predictions(target, long.run(target, key[1], size=size).draws, rows)
    faulty = predictions(heavier, long.run(heavier, key[2], size=size).draws, rows)
    places = range(len(rows))
    assert min(ks_2samp(short[:, place], lasting[:, place]).pvalue for place in places) >= ALPHA
    assert min(ks_2samp(faulty[:, place], lasting[:, place]).pvalue for place in places) < ALPHA


def test_the_mode_is_one_and_the_root_whitens_it():
    target = logistic_target()
    laplace = laplace_approximation(target)
    assert float(np.abs(target.gradient(laplace.mode)).max()) < 1e-5
    curved = np.asarray(laplace.root).T @ np.asarray(target.hessian(laplace.mode)) @ np.asarray(laplace.root)
    np.testing.assert_allclose(curved, np.eye(2), atol=1e-3)
    again = jax.jit(hessian, static_argnums=0)(target.kernel, laplace.mode, arguments_of(target))
    np.testing.assert_allclose(again, target.hessian(laplace.mode), rtol=1e-9)


def test_steps_are_accepted_nine_times_in_ten_without_warm_up(test_seed):
    run = HMC(25).run(logistic_target(), seeded_key(test_seed), size=DRAWS)
    assert run.diagnostics["acceptance"] > 0.9
