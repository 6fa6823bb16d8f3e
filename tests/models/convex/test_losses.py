"""The scalar losses: formulas against each other, against JAX's derivatives and against quadrature."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special

from onedraw.models import BoundedResidualGLM, Gaussian, GibbsTarget, LeastSquares, Logistic, Softmax
from onedraw.models.compute import jax, jnp
from onedraw.models.convex import losses, number_losses
from onedraw.models.convex.gibbs_target import gradient, hessian, potential
from onedraw.models.moments.measured_model import WeightedLoss
from onedraw.models.responses import Codes, Signs
from tests.models.convex.cases import MODELS, SEED, by_name
from tests.models.members import loss_classes

EVERY = [kind.example() for kind in loss_classes() if kind is not WeightedLoss]  # a weight times one of the others
KINKED = [loss for loss in EVERY if math.isinf(loss.curvatures(math.inf, (-1.0, 1.0))[1])]
SMOOTH = [*(loss for loss in EVERY if loss not in KINKED), losses.ExpLinearLoss(0.8), losses.ExpLinearLoss(0.05)]
LOSSES = SMOOTH + KINKED
TIGHT = [loss for loss in LOSSES if not isinstance(loss, number_losses.CappedPoissonLoss)]
"""Those whose spread is attained: that of capped counts rests on |φ'| ≤ Y alone."""


def grid(loss):
    """Predictors and responses, away from the places where a second derivative jumps."""
    u = np.linspace(-6.05, 6.03, 173)
    y = np.array([-1.0, 1.0]) if isinstance(loss, losses.MarginLoss) else np.array([0.0, 0.37, 1.0])
    return tuple(part.ravel() for part in np.meshgrid(u, y))


@pytest.fixture
def generator(request):
    print(f"to repeat this run: ONEDRAW_TEST_SEED={SEED}")
    return np.random.default_rng([SEED, *request.node.name.encode()])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slope_and_curvature_are_the_derivatives_of_the_value(loss):
    u, y = grid(loss)
    slopes = jax.vmap(jax.grad(loss.value))(u, y)
    np.testing.assert_allclose(loss.slope(u, y), slopes, atol=1e-13)
    curvatures = jax.vmap(jax.grad(loss.slope))(u, y)
    np.testing.assert_allclose(loss.curvature(u, y), curvatures, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_numpy_and_jax_evaluate_one_formula(loss):
    u, y = grid(loss)
    for formula in (loss.value, loss.slope, loss.curvature):
        assert isinstance(formula(u, y), np.ndarray)
        np.testing.assert_allclose(formula(jnp.asarray(u), jnp.asarray(y)), formula(u, y), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_value_is_convex_and_its_slopes_and_curvatures_stay_in_their_intervals(loss):
    u, y = grid(loss)
    responses = (float(y.min()), float(y.max()))
    reach = float(np.abs(u).max())
    a, b = u, u[::-1]
    middle = loss.value((a + b) / 2, y)
    assert np.all(middle <= (loss.value(a, y) + loss.value(b, y)) / 2 + 1e-12 * (1 + np.abs(middle)))
    lower, upper = loss.slopes(reach, responses)
    assert np.all((lower <= loss.slope(u, y)) & (loss.slope(u, y) <= upper))
    least, largest = loss.curvatures(reach, responses)
    assert np.all((least <= loss.curvature(u, y)) & (loss.curvature(u, y) <= largest))


@pytest.mark.parametrize("loss", TIGHT, ids=repr)
def test_spread_and_oscillation_are_those_of_a_fine_grid(loss):
    for reach in (0.3, 1.7, 4.0):
        responses = (-1.0, 1.0) if isinstance(loss, losses.MarginLoss) else (0.0, 1.25)
        ys = np.array(responses) if isinstance(loss, losses.MarginLoss) else np.linspace(*responses, 41)
        values = loss.value(np.linspace(-reach, reach, 4001)[:, None], ys[None, :])
        spread, oscillation = np.ptp(values), np.ptp(values, axis=0).max()
        assert spread <= loss.spread(reach, responses) * (1 + 1e-14) <= spread * (1 + 1e-3)
        assert oscillation <= loss.oscillation(reach, responses) * (1 + 1e-14) <= oscillation * (1 + 1e-3)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if isinstance(loss, losses.MarginLoss)], ids=repr)
def test_nothing_overflows_far_out(loss):
    u = np.array([-1e8, -800.0, 800.0, 1e8])
    for formula in (loss.value, loss.slope, loss.curvature):
        assert np.all(np.isfinite(formula(u, np.ones(4))))
        assert np.all(np.isfinite(np.asarray(formula(jnp.asarray(u), jnp.ones(4)))))
    assert loss.slope(-1e8, 1.0) == pytest.approx(-loss.steepest, rel=1e-12)


# Consistency for the logit (the three columns of the table of losses)


@pytest.mark.parametrize("exponent", [1.0, 0.8, 0.3])
def test_the_exp_linear_losses_are_consistent_for_the_logit(exponent):
    """At the true parameter the expected slope vanishes: p·ψ'(u) = q·ψ'(−u), since −ψ'/q is even and positive."""
    loss, u = losses.ExpLinearLoss(exponent), np.linspace(-8, 8, 101)
    p, q = special.expit(u), special.expit(-u)
    np.testing.assert_allclose(p * loss.slope(u, 1.0) + q * loss.slope(u, -1.0), 0.0, atol=1e-15)
    shape = -loss.slope(u, 1.0) / q
    np.testing.assert_allclose(shape, ((1 + np.exp(-np.abs(u))) / 2) ** exponent, rtol=1e-12)
    assert np.all(shape > 0)


def test_the_exp_linear_loss_is_its_closed_form():
    loss, u = losses.ExpLinearLoss(1.0), np.linspace(-5, 5, 101)
    expected = np.where(u >= 0, 0.5 * np.exp(-np.maximum(u, 0)), 0.5 - u / 2)
    np.testing.assert_allclose(loss.value(u, 1.0), expected, rtol=1e-14)
    assert loss.steepest == 0.5
    for reach in (0.5, 2.0, 5.0):
        assert loss.spread(reach, (-1.0, 1.0)) == pytest.approx((reach + 1 - math.exp(-reach)) / 2, rel=1e-12)
    pq = 0.25
    assert pq * -loss.slope(0.0, 1.0) / 0.5 == 0.25  # curvature ¼ on average at 0
    assert loss.curvatures(math.inf, (-1.0, 1.0)) == (0.0, 0.5)


@pytest.mark.parametrize("exponent", [0.05, 0.8, 0.99])
def test_the_bent_loss_is_the_integral_of_its_slope(exponent):
    loss = losses.ExpLinearLoss(exponent)
    for left, right in ((-30.0, -5.0), (-5.0, -0.1), (-0.1, 0.0), (0.0, 2.0), (2.0, 40.0)):
        area, _error = integrate.quad(lambda u: float(loss.slope(u, 1.0)), left, right, epsabs=1e-13, epsrel=1e-13)
        assert loss.value(right, 1.0) - loss.value(left, 1.0) == pytest.approx(area, rel=1e-12, abs=1e-14)
    assert 0.0 <= loss.value(800.0, 1.0) < 1e-300


def test_an_uneven_shape_would_be_caught_as_inconsistent():
    """The planted fault: the hinge is not consistent for the logit, and the same check shows it."""
    u = np.linspace(-3, 3, 31)
    p, q, hinge = special.expit(u), special.expit(-u), losses.HingeLoss()
    assert np.abs(p * hinge.slope(u, 1.0) + q * hinge.slope(u, -1.0)).max() > 0.2


def test_smoothing_changes_the_pinball_loss_by_at_most_half_its_width():
    sharp, smooth = number_losses.PinballLoss(0.8), number_losses.SmoothedPinballLoss(0.8, 0.3)
    t = np.linspace(-2, 2, 401)
    change = smooth.of_residual(t) - sharp.of_residual(t)
    assert np.all(change >= -1e-15)
    assert change.max() == pytest.approx(0.3 / 4)
    assert smooth.of_residual(smooth.bottom) == pytest.approx(smooth.of_residual(t).min(), abs=1e-5)


# Whole data sets


def data_for(model, generator, n=9):
    X = model.features.enforce(generator.standard_normal((n, model.features.count)))
    if isinstance(model, Softmax):
        return X, generator.integers(0, len(model.classes), n).astype(float)
    lower, upper = model.response.interval
    signs = isinstance(model.response, Codes | Signs)
    return X, generator.choice([-1.0, 1.0], n) if signs else generator.uniform(max(lower, -3.0), min(upper, 3.0), n)


@pytest.mark.parametrize("model", {model.kernel: model for model in MODELS}.values(), ids=by_name)
def test_hand_written_gradients_agree_with_automatic_ones(model, generator):
    X, y = data_for(model, generator)
    theta = 0.4 * generator.standard_normal(model.dimension)
    kernel = model.kernel

    @jax.jit
    def derivatives(theta, X, y):
        automatic = jax.grad(kernel.total)(theta, X, y), jax.jacfwd(kernel.gradient_total)(theta, X, y)
        return (
            automatic,
            (kernel.gradient_total(theta, X, y), kernel.hessian_total(theta, X, y)),
            kernel.losses(theta, X, y),
        )

    (gradient, second), (by_hand, second_by_hand), each = derivatives(theta, X, y)
    np.testing.assert_allclose(by_hand, gradient, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.kernel.gradient_total(theta, X, y), gradient, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(each.sum(), model.kernel.total(theta, X, y), rtol=1e-13)
    if "smoothness" in model.bounds:
        np.testing.assert_allclose(second_by_hand, second, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_every_total_is_convex_on_random_segments(model, generator):
    X, y = data_for(model, generator)
    for _segment in range(20):
        a, b = 2.0 * generator.standard_normal((2, model.dimension))
        mixed = generator.random()
        middle = model.kernel.total(mixed * a + (1 - mixed) * b, X, y)
        chord = mixed * model.kernel.total(a, X, y) + (1 - mixed) * model.kernel.total(b, X, y)
        assert middle <= chord + 1e-9 * (1 + abs(chord))


def test_the_potential_is_the_weighted_loss_and_the_prior(generator):
    model = Logistic(3, data_norm=2.0, prior=Gaussian(scales=(1.0, 2.0, 0.5, 3.0), mean=0.25))
    X, y = data_for(model, generator, n=30)
    data = model.summarise((X[:, :-1], y))
    precision, location = model.prior.precision(4), model.prior.location(4)
    target = GibbsTarget(model, data, 0.3, precision, location, None, 1.0, 10.0)
    theta = generator.standard_normal(4)
    expected = 0.3 * np.log1p(np.exp(-y * (data.X @ theta))).sum() + 0.5 * np.sum(precision * (theta - 0.25) ** 2)
    assert target.potential(theta) == pytest.approx(expected, rel=1e-13)
    arguments = (data.X, data.y, 0.3, precision, location)
    assert potential(model.kernel, theta, *arguments) == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(target.gradient(theta), jax.grad(target.potential)(theta), rtol=1e-12)
    np.testing.assert_allclose(gradient(model.kernel, theta, *arguments), target.gradient(theta), rtol=1e-14)
    np.testing.assert_allclose(target.hessian(theta), jax.jacfwd(target.gradient)(theta), rtol=1e-11)
    np.testing.assert_allclose(hessian(model.kernel, theta, *arguments), target.hessian(theta), rtol=1e-14)
    assert target.dimension == 4
    assert "private" in repr(target)
    assert repr(data) == "Encoded(n=30, <private>)"


def test_models_that_differ_in_prior_and_bounds_share_a_compilation():
    X, y = np.ones((5, 2)), np.ones(5)
    first = Logistic(1, data_norm=2.0, prior=Gaussian(scale=1.0)).kernel
    second = Logistic(1, bounds=(0, 1), prior=Gaussian(scale=3.0)).kernel
    compiled = jax.jit(potential.__wrapped__, static_argnums=0)
    compiled(first, np.zeros(2), X, y, 0.1, np.ones(2), np.zeros(2))
    before = compiled._cache_size()
    compiled(second, np.zeros(2), X, y, 0.7, np.ones(2), np.zeros(2))
    assert compiled._cache_size() == before


def test_double_precision_is_the_default_once_the_adapter_is_loaded():
    assert jnp.zeros(1).dtype == np.float64
    model = LeastSquares(1, data_norm=1.0, response_bound=1.0, prior=Gaussian(scale=1.0, radius=1.0))
    assert model.kernel.gradient_total(jnp.zeros(2), jnp.ones((3, 2)), jnp.zeros(3)).dtype == np.float64


def test_a_bounded_residual_is_what_the_glm_enforces(generator):
    """Geumlek et al. assume |y − g⁻¹(θᵀx)| ≤ B; clamping the response makes it true."""
    model = BoundedResidualGLM("poisson", 2, data_norm=0.5, residual_bound=4.0, prior=Gaussian(scale=1, radius=1.5))
    X = model.features.enforce(generator.standard_normal((500, 2)))
    y = model.response.from_values(10.0 ** generator.uniform(-2, 6, 500))
    thetas = generator.standard_normal((500, 3))
    thetas *= 1.5 / np.linalg.norm(thetas, axis=1, keepdims=True)
    residuals = np.abs(np.exp(np.sum(thetas * X, axis=1)) - y)
    assert residuals.max() <= 4.0
    assert model.bounds["lipschitz"].value == pytest.approx(4.0 * math.sqrt(1.25), rel=1e-12)


# ── counts cut at a largest one: an integral without a formula ──────────────────────────────────────────────────────────

COUNTS = (1, 2, 5, 20, 60, 1000)
PREDICTORS = np.unique(
    np.concatenate([np.linspace(-45.0, 45.0, 61), np.linspace(-1.0, 8.0, 37), [39.5, 29.999, 30.001]])
)


def expected_count(u, most):
    """E min(Poisson(e^u), Y) = λP(N ≤ Y−2) + Y·P(N ≥ Y), without a difference of nearly equal numbers."""
    rate = np.exp(u)
    return rate * special.pdtr(most - 2, rate) + most * special.gammainc(most, rate) if most > 1 else -np.expm1(-rate)


def integrated(u, most):
    """∫₀^u by scipy, in short pieces: adaptive, and cut where the mean turns from e^v to Y."""
    ends = np.unique(
        np.clip(np.concatenate([np.linspace(0.0, u, 1 + int(np.ceil(abs(u)))), [np.log(most)]]), min(0, u), max(0, u))
    )
    pieces = [
        integrate.quad(expected_count, a, b, args=(most,), epsabs=0.0, epsrel=1e-13, limit=200)[0]
        for a, b in itertools.pairwise(ends)
    ]
    return math.copysign(1.0, u) * math.fsum(pieces)


def apart(loss):
    """By how much value, slope and curvature of a loss are off, over all of the line: relative to 1 + their size."""
    exact = np.array([integrated(u, loss.largest) for u in PREDICTORS])
    found = np.asarray(loss.value(PREDICTORS, 0.0))
    slopes = np.asarray(jax.vmap(jax.grad(loss.value))(jnp.asarray(PREDICTORS), jnp.zeros(len(PREDICTORS))))
    means = expected_count(np.minimum(PREDICTORS, 40.0), loss.largest)
    return max(np.max(abs(found - exact) / (1.0 + abs(exact))), np.max(abs(slopes - means) / (1.0 + means)))


@pytest.mark.oracle
@pytest.mark.parametrize("most", COUNTS)
def test_the_loss_of_counts_is_its_integral_over_the_whole_line(most):
    """Its value, and the slope that the value has, which is what a sampler sees."""
    loss = number_losses.CappedPoissonLoss(most)
    assert apart(loss) < 1e-9
    np.testing.assert_allclose(
        loss.slope(PREDICTORS, 2.0) + 2.0, expected_count(np.minimum(PREDICTORS, 40.0), most), rtol=1e-11, atol=1e-12
    )
    np.testing.assert_allclose(loss.value(PREDICTORS, 3.0), loss.value(PREDICTORS, 0.0) - 3.0 * PREDICTORS, rtol=1e-12)
    slopes = np.diff(np.asarray(loss.value(PREDICTORS, 0.0))) / np.diff(PREDICTORS)
    assert (np.diff(slopes) >= -1e-9 * most).all()  # convex, also where a formula meets the next


@pytest.mark.oracle
def test_places_over_the_whole_way_step_over_the_turn_and_are_caught(monkeypatch):
    """What was there before: Gauss and Legendre on [0, u]."""
    monkeypatch.setattr(number_losses.CappedPoissonLoss, "_turn", (-45.0, 45.0))
    assert all(apart(number_losses.CappedPoissonLoss(most)) > 1e-6 for most in COUNTS)
