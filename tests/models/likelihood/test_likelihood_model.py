"""Models with a likelihood: what they read, store, refuse, and how their priors are distributed."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import special, stats

from onedraw.errors import InvalidModel
from onedraw.models import (
    BetaTarget,
    BinaryRegression,
    Gaussian,
    GaussianRegression,
    Logistic,
    Model,
    Network,
    NormalInverseGamma,
    OwnDensity,
    PoissonRegression,
    Predictor,
    Softmax,
    StudentTRegression,
    likelihoods,
    register_density,
    register_predictor,
)
from onedraw.models.convex.linear_model import ConvexModel
from tests.models.likelihood.cases import CASES, SEED, WIDE, responses, title, wave

ALPHA = 1e-6


@pytest.fixture(autouse=True)
def _seed_is_printed():
    print(f"ONEDRAW_TEST_SEED={SEED}")


@pytest.mark.parametrize("model", [case[0] for case in CASES], ids=title)
def test_a_stored_model_is_read_back_from_json(model):
    assert Model.from_dict(json.loads(json.dumps(model.to_dict()))) == model


@pytest.mark.parametrize("model", [case[0] for case in CASES], ids=title)
def test_every_parameter_has_a_name_and_the_prior_a_scale(model):
    assert len(set(model.parameter_names)) == len(model.parameter_names) == model.dimension
    assert 0.0 < model.prior_scale < math.inf
    assert model.draw_prior(np.random.default_rng(SEED), 3).shape == (3, model.dimension)


# ── records ──────────────────────────────────────────────────────────────────────────────────────────────────

GARBAGE = [
    None,
    "?",
    [1.0],
    [1.0, 2.0, 3.0],
    [None, "x"],
    [math.nan, math.inf],
    [-math.inf, 10**400],
    [1e300, -1e300],
    {},
]


@pytest.mark.parametrize(("model", "kind"), CASES, ids=title)
def test_no_record_can_make_a_model_fail(model, kind):
    answers = [None, "?", math.nan, math.inf, -math.inf, 10**400, -3.5, [1], 1e300]
    encoded = model.summarise((GARBAGE, answers))
    assert encoded.n == len(GARBAGE)
    assert np.isfinite(encoded.X).all()
    assert np.isfinite(encoded.y).all()
    lower, upper = model.likelihood.loss_range(1.8)
    thetas = 30.0 * model.draw_prior(np.random.default_rng(SEED), 20)
    losses = BetaTarget(model, encoded, 1.0, 1.8).losses(thetas)
    assert np.all((losses >= lower * (1.0 + 1e-12)) & (losses <= upper * (1.0 + 1e-12)))


def _jax(theta):
    from onedraw.models.compute import jnp

    return jnp.asarray(theta)


@pytest.mark.parametrize(("model", "kind"), CASES, ids=title)
def test_what_a_record_becomes_does_not_depend_on_the_others(model, kind):
    generator = np.random.default_rng(SEED)
    X, y = 9.0 * generator.standard_normal((40, 2)), responses(kind, generator, (40,))
    whole = model.summarise((X, y))
    for index in (0, 17, 39):
        alone = model.summarise((X[index : index + 1], y[index : index + 1]))
        np.testing.assert_array_equal(alone.X[0], whole.X[index])
        assert alone.y[0] == whole.y[index]


def test_features_without_bounds_keep_their_values_and_declared_bounds_are_enforced():
    X = np.array([[1e7, -3.0], [0.0, 2.0]])
    np.testing.assert_array_equal(BinaryRegression(2, intercept=False).summarise((X, [0, 1])).X, X)
    assert "feature_norm" not in BinaryRegression(2).bounds
    ball = BinaryRegression(2, data_norm=1.0, intercept=False)
    assert np.linalg.norm(ball.summarise((X, [0, 1])).X, axis=1).max() <= 1.0
    assert ball.bounds["feature_norm"].value == 1.0
    with pytest.raises(InvalidModel, match="both were given"):
        BinaryRegression(2, data_norm=1.0, bounds=(0, 1))


def test_counts_are_whole_numbers_and_never_negative():
    encoded = PoissonRegression(1).summarise((np.zeros(5), [2.7, -4.0, math.nan, 1e30, 3]))
    np.testing.assert_array_equal(encoded.y, [2.0, 0.0, 0.0, 1e15, 3.0])


def test_records_of_a_schema_are_read():
    from onedraw.data import Schema, read

    schema = Schema.from_dict(
        {
            "dataset": "visits",
            "columns": {
                "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
                "visits": {"kind": "count", "cap": 20, "missing": 0},
            },
        }
    )
    records = read({"age": [30.0, 200.0], "visits": [3, 99]}, schema, target="visits")
    encoded = PoissonRegression(1).summarise(records)
    np.testing.assert_array_equal(encoded.X, [[30.0, 1.0], [100.0, 1.0]])
    np.testing.assert_array_equal(encoded.y, [3.0, 20.0])
    with pytest.raises(InvalidModel, match="declared as"):
        Network(1, task="classification").summarise(records)


# ── the variance as a parameter ──────────────────────────────────────────────────────────────────────────────


def test_whatever_the_coordinate_the_variance_stays_above_its_floor():
    model = GaussianRegression(1, variance_floor=0.01)
    theta = np.column_stack([np.zeros((5, 2)), [-800.0, -20.0, 0.0, 5.0, 900.0]])
    published = model.constrain(theta)
    assert np.all(published[:, -1] >= 0.01 * (1.0 - 1e-15))
    assert np.isfinite(published).all()
    np.testing.assert_allclose(model.constrain(model.unconstrain(published)), published, rtol=1e-12)
    assert model.parameter_names[-1] == "variance"
    assert model.constrain(theta[0, :2]).shape == (2,)


@pytest.mark.parametrize("conjugate", [True, False])
def test_the_prior_with_a_variance_integrates_to_one_in_its_own_coordinates(conjugate):
    model = GaussianRegression(
        1,
        variance_floor=0.2,
        intercept=False,
        prior=NormalInverseGamma(scale=1.5, shape=2.0, rate=0.7, conjugate=conjugate),
    )

    eta, z = np.arange(-40.0, 25.0, 0.05), np.arange(-10.0, 10.0, 0.05)
    spread = 1.5 * np.sqrt(0.2 + np.exp(eta)) if conjugate else np.full(len(eta), 1.5)
    coefficients = spread[:, None] * z
    points = np.stack([coefficients, np.broadcast_to(eta[:, None], coefficients.shape)], axis=-1)
    mass = np.exp(np.asarray(model.log_prior(points))) * spread[:, None]
    assert mass.sum() * 0.05**2 == pytest.approx(1.0, abs=1e-9)


@pytest.mark.statistical
def test_prior_variances_follow_the_inverse_gamma_law_above_the_floor():
    model = GaussianRegression(2, variance_floor=1.0)
    draws = model.constrain(model.draw_prior(np.random.default_rng(SEED), 4000))

    def law(variance, floor=1.0):  # P(σ² ≤ v | σ² ≥ floor), InvGamma(1, 1)
        below, inside = special.gammaincc(1.0, 1.0 / floor), special.gammainc(1.0, 1.0 / floor)
        return np.clip((special.gammaincc(1.0, 1.0 / variance) - below) / inside, 0.0, 1.0)

    assert stats.kstest(draws[:, -1], law).pvalue > ALPHA
    assert stats.kstest(draws[:, 0] / np.sqrt(draws[:, -1]), stats.norm(scale=3.0).cdf).pvalue > ALPHA
    # a floor off by a fifth is noticed
    assert stats.kstest(draws[:, -1], law, args=(0.8,)).pvalue < ALPHA


def test_the_gaussian_prior_is_normalised_and_stops_at_its_ball():
    model = BinaryRegression(2, prior=Gaussian(scales=[1.0, 2.0, 0.5], mean=0.1))
    points = np.array([[0.3, -1.0, 0.2], [0.0, 0.0, 0.0]])
    expected = stats.norm.logpdf(points, 0.1, [1.0, 2.0, 0.5]).sum(axis=1)
    np.testing.assert_allclose(model.log_prior(points), expected, rtol=1e-12)
    ball = BinaryRegression(2, prior=Gaussian(scale=3.0, radius=2.0))
    assert model.log_prior(points[0]) == pytest.approx(expected[0])
    assert ball.log_prior(np.array([2.0, 1.0, 0.0])) == -math.inf
    draws = ball.draw_prior(np.random.default_rng(SEED), 500)
    assert draws.shape == (500, 3)
    assert np.linalg.norm(draws, axis=1).max() <= 2.0


def test_priors_left_out_are_those_of_the_paper():
    assert GaussianRegression(2, variance_floor=0.01).prior == NormalInverseGamma(3.0, 1.0, 1.0, True)
    assert BinaryRegression(2).prior == Gaussian(scale=3.0)
    assert Network(2).prior == Gaussian(scale=1.0)
    assert Network(2, task="regression", variance_floor=0.01).prior == NormalInverseGamma(1.0, 1.0, 1.0, False)


# ── predictors ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_a_network_is_what_its_formula_says(activation):
    model = Network(2, hidden=3, classes=["a", "b", "c"], activation=activation)
    generator = np.random.default_rng(SEED)
    theta, X = generator.standard_normal(model.dimension), generator.standard_normal((4, 2))
    first, second = theta[:9].reshape(3, 3), theta[9:].reshape(3, 4)
    inner = X @ first[:, :2].T + first[:, 2]
    inner = np.tanh(inner) if activation == "tanh" else np.maximum(inner, 0.0)
    encoded = model.summarise((X, ["a", "c", "b", "?"]))
    np.testing.assert_array_equal(encoded.y, [0, 2, 1, 0])
    expected = inner @ second[:, :3].T + second[:, 3]
    terms = np.abs(inner) @ np.abs(second[:, :3]).T + np.abs(second[:, 3])  # a sum near 0 is as exact as its terms are
    assert (np.abs(np.asarray(model.predictor(_jax(theta), _jax(encoded.X))) - expected) <= 1e-14 * terms).all()
    assert model.parameter_names[8] == "unit 2: intercept"
    assert model.parameter_names[-1] == "c: intercept"


def test_a_users_function_that_is_not_a_number_on_some_record_counts_as_zero():
    def broken(theta, x):
        from onedraw.models.compute import jnp

        return jnp.log(x[0]) * theta[0]

    model = Predictor(broken, 1, likelihood=likelihoods.Bernoulli(), features=1)
    encoded = model.summarise((np.array([[-1.0], [1.0]]), [1, 0]))
    np.testing.assert_allclose(model.predictor(_jax(np.ones(1)), _jax(encoded.X)), [0.0, 0.0])


def test_a_stored_users_function_must_be_known_by_name():
    model = Predictor(lambda theta, x: theta[0] * x[0], 1, likelihood=likelihoods.Poisson(), features=1, name="unknown")
    with pytest.raises(InvalidModel, match="register_predictor"):
        Model.from_dict(model.to_dict())
    with pytest.raises(InvalidModel, match="Another predictor"):
        register_predictor("wave", lambda theta, x: theta[0])
    with pytest.raises(InvalidModel, match="Another density"):
        register_density("laplace", wave, wave)


def test_convex_models_have_a_likelihood_and_stay_convex():
    for model, law in (
        (Logistic(2, data_norm=1.0, prior=WIDE), likelihoods.Bernoulli()),
        (Logistic(2, data_norm=1.0, loss="exp-linear", prior=WIDE), likelihoods.Bernoulli()),
        (Softmax(2, classes=[0, 1, 2], data_norm=1.0, prior=WIDE), likelihoods.Categorical(3)),
    ):
        assert isinstance(model, ConvexModel)
        assert model.likelihood == law
        assert "lipschitz" in model.bounds
    assert not isinstance(BinaryRegression(2), ConvexModel)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianRegression(2), "has no floor on its variance"),
        (lambda: StudentTRegression(2), "has no floor"),
        (lambda: Network(2, task="regression"), "has no floor"),
        (lambda: GaussianRegression(2, variance_floor=0.1, prior=WIDE), "needs a NormalInverseGamma prior"),
        (lambda: GaussianRegression(2, variance=0.1, prior=NormalInverseGamma()), "needs a Gaussian prior"),
        (lambda: PoissonRegression(2, prior=3.0), "needs a Gaussian prior"),
        (lambda: PoissonRegression(2, prior=Gaussian(scales=[1.0, 1.0])), "3 parameters"),
        (lambda: Network(2, task="ranking"), "task"),
        (lambda: Network(2, activation="sine"), "activation"),
        (lambda: Network(2, hidden=0), "hidden"),
        (lambda: Network(2, variance_floor=0.1), "regression"),
        (lambda: Network(2, task="regression", variance_floor=0.1, classes=[0, 1]), "classification"),
        (lambda: NormalInverseGamma(scale=0.0), "scale"),
        (lambda: NormalInverseGamma(conjugate=1), "conjugate"),
        (lambda: Predictor(wave, 3, likelihood="Poisson", features=2), "OwnDensity"),
        (lambda: Predictor(wave, 3, likelihood=likelihoods.Categorical(3), features=2), "must return 3"),
        (lambda: Predictor(lambda x: x, 3, likelihood=likelihoods.Poisson(), features=2), "cannot be called"),
        (lambda: Predictor(3, 3, likelihood=likelihoods.Poisson(), features=2), "JAX function"),
        (lambda: OwnDensity("laplace", bound=-1.0), "bound"),
        (lambda: NormalInverseGamma.from_dict({"prior": "NormalInverseGamma"}), "exactly"),
    ],
)
def test_a_model_that_cannot_be_private_or_proper_is_refused_with_the_reason(make, message):
    with pytest.raises(InvalidModel, match=message):
        make()


def test_bounds_say_where_they_come_from():
    bounds = GaussianRegression(2, variance_floor=0.01).bounds
    assert bounds["density"].value == pytest.approx(3.98942, abs=1e-5)
    assert str(bounds["density"].provenance.value) == "proved"
    assert str(bounds["variance_floor"].provenance.value) == "enforced"
