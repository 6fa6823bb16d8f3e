"""δ and γ below what double precision carries are refused; what it does carry is drawn to the ends of its tails."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, kstest, norm

import onedraw as od
from onedraw.errors import ExactnessRefused, PromiseRefused
from onedraw.models.compute import jax
from onedraw.samplers import LastIterateLangevin, Proximal, seeded_key
from onedraw.samplers import langevin as chain
from tests.samplers.cases import ALPHA

LOGISTIC = od.models.Logistic(1, data_norm=1.0, intercept=False, prior=od.Gaussian(scale=1.0))


def of_gradients(budget):
    return od.calibrate(od.NoisyGradient(), LOGISTIC, budget, n=1)


@pytest.mark.finding("F5")
@pytest.mark.parametrize("delta", [1e-20, 1e-30, 1e-300])
def test_a_delta_below_the_tails_of_its_variates_is_refused(delta):
    with pytest.raises(PromiseRefused, match=r"double precision can carry.*Candidates"):
        od.release(of_gradients(od.ApproxDP(1.0, delta)), ([[0.5]], [1]))


@pytest.mark.finding("F5")
def test_a_gamma_below_the_tails_of_its_variates_is_refused():
    model = od.models.Logistic(2, data_norm=1.0, prior=od.Gaussian(scale=1.0, radius=2.0))
    for budget, gamma in ((od.ApproxDP(1.0, 1e-299), 1e-301), (od.ApproxDP(50.0, 1e-6), 1.9e-28)):
        plan = od.calibrate(od.Gibbs(), model, budget, n=100, gamma=gamma)
        with pytest.raises(ExactnessRefused, match=r"gamma.*double precision can carry"):
            Proximal(gamma=gamma).exactness(plan)


@pytest.mark.finding("F5")
def test_a_closed_form_too_is_drawn_with_variates_that_end_somewhere():
    model = od.models.BetaBernoulli(prior=(1, 1))
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-30), n=50)
    with pytest.raises(ExactnessRefused, match="double precision can carry"):
        od.release(plan, [0, 1] * 25)


@pytest.mark.finding("F5")
def test_the_factor_of_e_to_the_epsilon_counts():
    """At ε = 50 a variate that ends at z shows what moves it by μ with the probability of a tail beyond z − μ."""
    with pytest.raises(ExactnessRefused, match="smaller ε"):
        LastIterateLangevin(*_path(of_gradients(od.ApproxDP(50.0, 1e-6)))).exactness(
            of_gradients(od.ApproxDP(50.0, 1e-6))
        )


def _path(plan):
    return int(plan.parameters["steps"]), plan.parameters["step_size"]


@pytest.mark.parametrize("budget", [od.ApproxDP(1.0, 1e-6), od.ApproxDP(10.0, 1e-9), od.ApproxDP(0.1, 1e-13)], ids=str)
def test_what_people_ask_for_is_carried(budget):
    model = od.models.Logistic(10, data_norm=1.0, prior=od.Gaussian(scale=1.0, radius=2.0))
    for mechanism in (od.Gibbs(), od.NoisyGradient()):
        plan = od.calibrate(mechanism, model, budget, n=10_000)
        sampler, _ = od.samplers.default_sampler(plan)
        sampler.exactness(plan)


@pytest.mark.finding("F5")
def test_a_pure_promise_of_floating_variates_says_so_and_one_of_whole_numbers_does_not():
    ball = od.models.LeastSquares(1, data_norm=1.0, response_bound=1.0, prior=od.Gaussian(scale=1.0, radius=1.0))
    records = (np.linspace(-1, 1, 20)[:, None], np.linspace(-1, 1, 20))
    pure = od.release(od.calibrate(od.Gibbs("bounded"), ball, od.PureDP(1.0), n=20), records)
    whole = od.release(
        od.calibrate(od.Candidates(), od.models.BinaryRegression(1), od.PureDP(1.0), n=20),
        (records[0], np.sign(records[1])),
    )
    said = [
        [a for a in release.certificate.assumptions if "variates are real" in a.statement] for release in (pure, whole)
    ]
    assert [note.provenance for note in said[0]] == ["assumed"]
    assert said[1] == []
    assert all(release.certificate.sentence.startswith("Exact: this draw is (ε = 1)-") for release in (pure, whole))


@pytest.mark.finding("F5")
def test_a_chains_normal_variates_reach_where_a_real_one_would():
    """The least uniform number a chain can meet, by hand: words of all zeros, where JAX's own end at ±8.3."""
    ends = _noise(lambda key, shape, dtype: jax.numpy.zeros(shape, dtype))
    assert abs(ends) > 9.5


def _noise(bits):
    """One Langevin step of size 1/2 on a flat potential, with the generator's words given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.random, "bits", bits)
        patch.setattr(chain, "gradient", lambda *_: 0.0)
        kernel = object()
        return float(
            chain._chains.__wrapped__(kernel, 1, seeded_key(1)[None], np.zeros((1, 1)), 1, 0.5, np.inf, ())[0, 0]
        )


@pytest.mark.statistical
def test_variates_follow_their_laws_also_in_the_tails():
    from onedraw.samplers.variates import variates

    many = 2_000_000
    key = seeded_key(int(np.random.default_rng().integers(2**62)))
    uniform, normal = map(np.asarray, jax.jit(lambda key: variates(key, (many,)))(key))
    assert kstest(uniform, "uniform").pvalue > ALPHA
    assert kstest(normal, "norm").pvalue > ALPHA
    assert kstest(normal * 1.01, "norm").pvalue < ALPHA  # what the test can see
    for z in (3.0, 4.0):
        for late in ((normal > z).sum(), (normal < -z).sum()):
            assert binom.ppf(ALPHA / 2, many, norm.sf(z)) <= late <= binom.ppf(1 - ALPHA / 2, many, norm.sf(z))


def test_every_leading_bit_of_a_uniform_number_has_its_own_chance():
    from onedraw.samplers.variates import variates

    def words(leading):
        return lambda key, shape, dtype: jax.numpy.array([2**64 - 1, leading], dtype="uint64").reshape(shape)

    with pytest.MonkeyPatch.context() as patch:
        for zeros in (0, 1, 20, 63):
            patch.setattr(jax.random, "bits", words(2**64 - 1 >> zeros))
            uniform, normal = variates(None, ())
            assert 2.0 ** -(zeros + 1) <= uniform < 2.0**-zeros
            assert normal == pytest.approx(norm.isf(float(uniform) / 2), rel=1e-13)
            assert math.isfinite(normal)
