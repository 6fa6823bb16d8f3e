"""Likelihoods: densities, power integrals, β-losses, and sensitivities that no search exceeds."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from onedraw.errors import InvalidModel
from onedraw.models import likelihoods
from onedraw.models.likelihood import (
    Bernoulli,
    Categorical,
    Exponential,
    Gamma,
    GaussianNoise,
    Likelihood,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from onedraw.models.likelihood.density import OwnDensity
from tests.models.likelihood.cases import ATTAINED, CASES, OTHERS, SEED, largest_difference, title

BETAS = (1.1, 1.5, 2.4427, 4.0, 11.0)


@pytest.fixture(autouse=True)
def _seed_is_printed():
    print(f"ONEDRAW_TEST_SEED={SEED}")


# ── sensitivities ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("model", "kind"), ATTAINED, ids=title)
def test_no_pair_of_records_exceeds_the_sensitivity_and_some_pair_nearly_attains_it(model, kind):
    beta = 2.2
    bound = model.likelihood.sensitivity(beta).value
    found = largest_difference(model, kind, beta)
    assert found <= bound * (1.0 + 1e-12)
    assert found >= 0.999 * bound


@pytest.mark.parametrize(("model", "kind"), OTHERS, ids=title)
def test_no_pair_of_records_exceeds_the_sensitivity_of_any_predictor(model, kind):
    beta = 1.7
    found = largest_difference(model, kind, beta, rounds=250)
    assert (
        0.7 * model.likelihood.sensitivity(beta).value
        < found
        <= model.likelihood.sensitivity(beta).value * (1.0 + 1e-12)
    )


def test_a_variance_floor_that_is_not_enforced_is_caught_by_the_same_search(monkeypatch):
    model, kind = ATTAINED[5]
    floor = model.likelihood.floor

    def unfloored(likelihood, given):
        from onedraw.models.compute import jnp

        return jnp.maximum(given - floor, 1e-9)

    monkeypatch.setattr(likelihoods.LocationNoise, "_enforced", unfloored)
    assert largest_difference(model, kind, 2.2) > 1.1 * model.likelihood.sensitivity(2.2).value


def test_a_sensitivity_ten_percent_too_small_would_be_caught():
    model, kind = ATTAINED[0]
    assert largest_difference(model, kind, 2.2, rounds=150) > model.likelihood.sensitivity(2.2).value / 1.1


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize(("model", "kind"), CASES, ids=title)
def test_every_loss_lies_in_the_stated_range_whose_width_is_the_sensitivity(model, kind, beta):
    likelihood = model.likelihood
    lower, upper = likelihood.loss_range(beta)
    width = likelihood.sensitivity(beta).value
    assert upper - lower == pytest.approx(width, rel=1e-9)
    generator = np.random.default_rng(SEED)
    shape = (400,) if likelihood.outputs == 1 else (400, likelihood.outputs)
    # up to 1e60: what the largest features give, where a difference of large numbers would leave any range
    exponents = np.where(np.arange(400) % 2, generator.uniform(-2, 3, 400), generator.uniform(3, 60, 400))
    predictor = generator.standard_normal(shape) * 10.0 ** exponents.reshape(400, *(1,) * (len(shape) - 1))
    predictor = np.clip(predictor, -likelihoods.LARGEST, likelihoods.LARGEST)
    values = np.abs(np.round(3.0 * generator.standard_normal(400))) % 3
    variance = likelihood.floor * (1.0 + 10.0 ** generator.uniform(-6, 4, 400)) if likelihood.samples_variance else None
    losses = np.asarray(likelihood.beta_loss(beta, predictor, np.maximum(values, 1e-6), variance))
    slack = 1e-12 * max(abs(lower), abs(upper))
    assert np.all((losses >= lower - slack) & (losses <= upper + slack))


def test_discrete_and_gaussian_sensitivities_are_those_of_the_table():
    assert Bernoulli().sensitivity(2.0).value == 1.0
    assert Categorical(5).sensitivity(3.0).value == Poisson().sensitivity(3.0).value == 0.5
    peak = 1.0 / math.sqrt(2.0 * math.pi * 0.01)
    assert GaussianNoise(0.01).sensitivity(1.5).value == pytest.approx(peak**0.5 / 0.5, rel=1e-9)
    assert GaussianNoise(0.01).sensitivity(1.5).value >= peak**0.5 / 0.5
    assert StudentT(4.0, 0.01).sensitivity(1.5).value <= GaussianNoise(0.01).sensitivity(1.5).value
    assert Exponential(3.0).sensitivity(2.0).value == pytest.approx(3.0, rel=1e-8)
    assert Gamma(3.0, 2.0).sensitivity(2.0).value == pytest.approx(3.0 / math.e, rel=1e-8)
    assert OwnDensity("laplace", bound=0.5).sensitivity(2.0).value == pytest.approx(0.5 * 1.5, rel=1e-9)


def test_with_weight_one_no_beta_certifies_a_small_epsilon_at_the_published_floor():
    noise = GaussianNoise(0.01)
    least = min(2.0 * noise.sensitivity(beta).value for beta in np.linspace(1.05, 4.0, 2000))
    assert least == pytest.approx(2.0 * math.e * math.log(noise.density_bound.value), rel=1e-5)
    assert least == pytest.approx(7.52, abs=0.005)


# ── gradients ────────────────────────────────────────────────────────────────────────────────────────────────


def largest_slope(beta: float) -> float:
    """sup|∂ℓ_β/∂u| of two classes, so that ‖∇ℓ_β‖ ≤ ‖x‖ times it (errata 18: the paper's max{G, GM} is false).

    ∂ℓ/∂u = −pq(qp^{β−2} + q^{β−1}) for a positive response: the maximum over p of p^{β−1}q² + pq^β, from above to 1e-9.
    Cells in which each factor is replaced by its largest value are halved as long as they could hold the maximum.
    """
    left, width = np.arange(64) / 64.0, 1.0 / 64.0
    while True:
        right = left + width
        above = right ** (beta - 1.0) * (1.0 - left) ** 2 + right * (1.0 - left) ** beta
        middle = left + 0.5 * width
        found = np.max(middle ** (beta - 1.0) * (1.0 - middle) ** 2 + middle * (1.0 - middle) ** beta)
        if above.max() <= found * (1.0 + 1e-9) or width < 2.0**-45:
            return float(above.max())
        kept = left[above >= found]
        left, width = np.concatenate([kept, kept + 0.5 * width]), 0.5 * width


@pytest.mark.parametrize("beta", [*BETAS, 2.0, 3.0])
def test_the_logistic_gradient_bound_is_attained_and_not_exceeded(beta):
    from onedraw.models.compute import jax

    u = np.linspace(-12.0, 12.0, 48_001)
    slope = jax.vmap(jax.grad(lambda u, y: Bernoulli().beta_loss(beta, u, y)), in_axes=(0, None))
    largest = max(float(np.abs(slope(u, y)).max()) for y in (-1.0, 1.0))
    bound = largest_slope(beta)
    assert largest <= bound <= largest * (1.0 + 1e-6)


def test_the_published_gradient_bound_is_false_and_ours_is_not():
    bound = largest_slope(2.0)
    assert bound == pytest.approx(8.0 / 27.0, rel=1e-8)  # 0.2963, where the paper's proof has 0.25
    assert largest_slope(1.0 + 1.0 / math.log(2.0)) == pytest.approx(0.21514, abs=5e-6)


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(0.7), GaussianNoise(variance=0.3), StudentT(3.0, variance=0.3), Gamma(5.0, 2.0), Bernoulli()], ids=repr)  # fmt: skip
def test_derivatives_in_the_predictor_are_those_of_finite_differences(likelihood):
    from onedraw.models.compute import jax

    slope = jax.jit(jax.grad(lambda u, beta: likelihood.beta_loss(beta, u, 2.0)))
    for beta in (1.3, 2.5):
        for u in (-3.0, 0.2, 1.7, 6.5):
            step = 1e-5
            ends = [float(likelihood.beta_loss(beta, np.float64(u + sign * step), 2.0)) for sign in (1, -1)]
            expected = (ends[0] - ends[1]) / (2.0 * step)
            assert float(slope(u, beta)) == pytest.approx(expected, rel=1e-5, abs=1e-8)


# ── densities and integrals ──────────────────────────────────────────────────────────────────────────────────


def test_log_densities_are_those_of_scipy():
    y, u = np.array([0.0, 1.0, 4.0]), np.array([-0.5, 0.7, 1.9])
    m = np.exp(u)
    pairs = [
        (Poisson().log_density(u, y), stats.poisson.logpmf(y, m)),
        (NegativeBinomial(1.5).log_density(u, y), stats.nbinom.logpmf(y, 1.5, 1.5 / (1.5 + m))),
        (GaussianNoise(0.01).log_density(u, y, 0.3), stats.norm.logpdf(y, u, math.sqrt(0.3))),
        (StudentT(3.0, 0.01).log_density(u, y, 0.3), stats.t.logpdf(y, 3.0, u, math.sqrt(0.3))),
        (Gamma(4.0, 2.5).log_density(u, y + 0.1), stats.gamma.logpdf(y + 0.1, 2.5, scale=1.0 / 4.0 + m / 2.5)),
        (Bernoulli().log_density(u, np.array([-1.0, 1.0, 0.0])), -np.logaddexp(0.0, [-0.5, -0.7, 1.9])),
    ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)


@pytest.mark.parametrize("beta", BETAS)
def test_closed_forms_of_the_power_integral_agree_with_quadrature(beta):
    variance = 0.3
    for likelihood, lower in (
        (GaussianNoise(0.01), -np.inf),
        (StudentT(3.0, 0.01), -np.inf),
        (Gamma(4.0, 1.0), 0.0),
        (Gamma(4.0, 2.5), 0.0),
        (OwnDensity("laplace", bound=0.5), -np.inf),
    ):

        def power(y, likelihood=likelihood):
            return float(np.exp(beta * np.asarray(likelihood.log_density(np.float64(0.4), np.float64(y), variance))))

        pieces = [(lower, 0.4), (0.4, 3.0), (3.0, np.inf)]
        by_hand = sum(integrate.quad(power, *ends, epsabs=1e-13, epsrel=1e-11)[0] for ends in pieces)
        ours = float(likelihood.power_integral(beta, np.float64(0.4), variance))
        assert ours == pytest.approx(by_hand, rel=1e-8)


@pytest.mark.parametrize("beta", [*BETAS, 21.0])
def test_sums_over_counts_have_the_stated_accuracy(beta):
    for u in (-9.0, -1.0, 0.5, 2.0, 3.0, 3.6, 4.1, 4.6, 6.0, 9.0):
        mean = math.exp(u)
        counts = np.arange(int(300 + mean + 60.0 * math.sqrt(mean)))
        exact = special.logsumexp(beta * stats.poisson.logpmf(counts, mean))
        assert float(Poisson().log_power_integral(beta, np.float64(u))) == pytest.approx(exact, abs=1e-9)
    for r in (0.05, 0.8, 4.0, 150.0):
        for u in (-4.0, 1.0, 3.9, 4.5, 7.0):
            mean = math.exp(u)
            counts = np.arange(int(400 + mean * (10.0 + 60.0 / r + 60.0 / math.sqrt(r))))
            exact = special.logsumexp(beta * stats.nbinom.logpmf(counts, r, r / (r + mean)))
            assert float(NegativeBinomial(r).log_power_integral(beta, np.float64(u))) == pytest.approx(exact, abs=1e-8)


def test_a_sum_with_too_few_points_would_be_noticed(monkeypatch):
    monkeypatch.setattr(Poisson, "POINTS", 12)
    mean = math.exp(4.0)
    exact = special.logsumexp(1.5 * stats.poisson.logpmf(np.arange(900), mean))
    assert abs(float(Poisson().log_power_integral(1.5, np.float64(4.0))) - exact) > 1e-8


@pytest.mark.parametrize("beta", BETAS)
def test_the_loss_is_smallest_on_average_at_the_truth(beta):
    """E_f[ℓ_β(y, ·)] has its minimum at f: what makes the β-divergence consistent."""
    counts, truth = np.arange(400.0), 0.8
    for likelihood in (Poisson(), NegativeBinomial(2.0)):
        mass = np.exp(likelihood.log_density(np.float64(truth), counts))

        def average(u, likelihood=likelihood, mass=mass):
            return float(mass @ likelihood.beta_loss(beta, np.full(400, u), counts))

        found = optimize.minimize_scalar(average, bounds=(0.0, 1.6), method="bounded", options={"xatol": 1e-9}).x
        assert found == pytest.approx(truth, abs=1e-4)


def test_extreme_predictors_and_responses_leave_the_loss_finite():
    from onedraw.models.compute import jax

    for likelihood in (Bernoulli(), Poisson(), NegativeBinomial(3.0), GaussianNoise(1e-3), StudentT(2.0, 1e-3), Gamma(9.0, 2.0)):  # fmt: skip
        lower, upper = likelihood.response.interval
        y = np.repeat([lower, upper, 0.5 * (lower + upper), max(lower, 1.0)], 5)
        u = np.tile([-1e60, -800.0, 0.0, 800.0, 1e60], 4)
        value_and_slope = jax.value_and_grad(partial(likelihood.beta_loss, 1.6))
        values, slopes = jax.jit(jax.vmap(value_and_slope, in_axes=(0, 0, None)))(u, y, 0.0)
        assert np.isfinite(values).all()
        assert np.isfinite(slopes).all()


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("model", [case[0] for case in CASES], ids=title)
def test_a_stored_likelihood_is_read_back(model):
    assert Likelihood.from_dict(model.likelihood.to_dict()) == model.likelihood


@pytest.mark.parametrize("beta", [1.0, 0.5, -2.0, math.nan, math.inf, "2", 1.0 + 1e-9, 1e9])
def test_beta_at_or_below_one_is_refused(beta):
    for ask in (Bernoulli().sensitivity, Bernoulli().loss_range, GaussianNoise(0.1).sensitivity):  # fmt: skip
        with pytest.raises(InvalidModel, match="beta"):
            ask(beta)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianNoise(), "no floor on its variance"),
        (lambda: StudentT(3.0), "no floor on its variance"),
        (lambda: GaussianNoise(0.5, 0.1), "below its floor"),
        (lambda: GaussianNoise(0.0), "variance_floor"),
        (lambda: GaussianNoise(1e-40), "Rescale"),
        (lambda: StudentT(0.1, 0.01), "df"),
        (lambda: Gamma(2.0, 0.5), "unbounded at 0"),
        (lambda: Gamma(1e40), "Rescale"),
        (lambda: NegativeBinomial(1e5), "PoissonRegression"),
        (lambda: Categorical(1), "classes"),
        (lambda: OwnDensity("nobody's", bound=1.0), "register_density"),
        (lambda: GaussianNoise(1e-30).sensitivity(100.0), "smaller beta or a larger floor"),
        (lambda: GaussianNoise(0.1).log_density(np.zeros(2), np.zeros(2)), "needs the variance"),
        (lambda: Likelihood.from_dict({"likelihood": "Cauchy"}), "No likelihood is called"),
        (lambda: Likelihood.from_dict({"likelihood": "StudentT", "df": 2.0}), "exactly"),
    ],
)
def test_what_has_no_bound_is_refused_with_the_reason(make, message):
    with pytest.raises(InvalidModel, match=message):
        make()


def test_a_density_above_its_declared_bound_is_cut_there():
    honest, wrong = OwnDensity("laplace", bound=0.5), OwnDensity("laplace", bound=0.05)
    y = np.linspace(-1.0, 1.0, 21)
    assert np.exp(honest.log_density(np.zeros(21), y)).max() == pytest.approx(0.5)
    losses = np.asarray(wrong.beta_loss(2.0, np.zeros(21), y))
    assert np.ptp(losses) <= wrong.sensitivity(2.0).value
    assert np.exp(wrong.log_density(np.zeros(21), y)).max() <= 0.05 * (1.0 + 1e-15)
