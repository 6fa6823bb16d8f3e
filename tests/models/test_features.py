"""Public scaling of a box to [−1, 1]: bounded whatever comes in, undone exactly for those who read coefficients."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onedraw as od
from onedraw.errors import InvalidModel
from onedraw.models import (
    BinaryRegression,
    BoundedResidualGLM,
    GammaRegression,
    Gaussian,
    GaussianRegression,
    Hinge,
    HuberisedHinge,
    HuberRegression,
    LeastSquares,
    Logistic,
    Model,
    NegativeBinomialRegression,
    Network,
    PoissonRegression,
    Quantile,
    Softmax,
    StudentTRegression,
)
from onedraw.models.design import Design, smallest_curvature

PRIOR, BALL = Gaussian(scale=1.0), Gaussian(scale=1.0, radius=1.0)
BOUNDS = ((0.0, -40.0, 7.0), (120.0, 10.0, 7.0))
"""Years, degrees, and a column whose ends are equal."""

MODELS = [
    Logistic(3, bounds=BOUNDS, scaled=True, prior=PRIOR),
    Hinge(3, bounds=BOUNDS, scaled=True, prior=PRIOR),
    HuberisedHinge(3, bounds=BOUNDS, scaled=True, prior=PRIOR),
    Softmax(3, bounds=BOUNDS, scaled=True, classes=["a", "b", "c"], prior=PRIOR),
    LeastSquares(3, bounds=BOUNDS, scaled=True, response_bound=2.0, prior=BALL),
    HuberRegression(3, bounds=BOUNDS, scaled=True, threshold=1.0, prior=PRIOR),
    Quantile(3, bounds=BOUNDS, scaled=True, smoothing=0.1, prior=PRIOR),
    BoundedResidualGLM("bernoulli", 3, bounds=BOUNDS, scaled=True, residual_bound=1.0, prior=PRIOR),
    BinaryRegression(3, bounds=BOUNDS, scaled=True),
    GaussianRegression(3, bounds=BOUNDS, scaled=True, variance_floor=0.1),
    StudentTRegression(3, bounds=BOUNDS, scaled=True, variance_floor=0.1),
    PoissonRegression(3, bounds=BOUNDS, scaled=True),
    NegativeBinomialRegression(3, bounds=BOUNDS, scaled=True, dispersion=2.0),
    GammaRegression(3, bounds=BOUNDS, scaled=True, rate_cap=2.0),
    Network(3, bounds=BOUNDS, scaled=True, hidden=2),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_scaled_models_are_stored_and_have_rows_of_norm_root_d(model):
    assert Model.from_dict(json.loads(json.dumps(model.to_dict()))) == model
    assert model.to_dict()["scaled"] is True
    assert model.features.squared_norm == 2, "two columns vary"
    rows = np.array([[500.0, -500.0, 7.0], [60.0, -15.0, 9.0], [np.nan, np.inf, -np.inf]])
    assert np.array_equal(model.features.enforce(rows), [[1, -1, 0, 1], [0, 0, 0, 1], [0, 1, 0, 1]])


def test_unscaled_models_are_stored_as_before():
    model = Logistic(3, bounds=BOUNDS, prior=PRIOR)
    assert "scaled" not in model.to_dict()
    assert model != MODELS[0]
    assert np.array_equal(model.in_column_units(np.ones((2, 4))), np.ones((2, 4)))


ends = st.floats(-1e50, 1e50)


@given(ends, ends, st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=5), st.booleans())
def test_a_scaled_row_never_leaves_the_cube(first, second, values, intercept):
    low, high = min(first, second), max(first, second)
    features = od.models.features.Features(1, box=(low, high), intercept=intercept, scaled=True)
    encoded = features.enforce(np.array(values).reshape(-1, 1))[:, 0]
    assert np.isfinite(encoded).all()
    assert all(Fraction(value) ** 2 <= features.squared_norm <= 1 for value in encoded.tolist())


@pytest.mark.parametrize("intercept", [True, False])
def test_predictions_do_not_depend_on_the_units(intercept):
    """θᵀ(scaled x) is the same number as (θ in column units)ᵀ(clamped x)."""
    generator = np.random.default_rng(5)
    scaled = Logistic(3, bounds=BOUNDS, scaled=True, intercept=intercept, prior=PRIOR)
    plain = Logistic(3, bounds=BOUNDS, intercept=intercept, prior=PRIOR)
    rows = generator.uniform((-10, -60, 7), (150, 30, 7), (50, 3))
    thetas = generator.standard_normal((4, scaled.dimension))
    here = scaled.features.enforce(rows) @ thetas.T
    there = plain.features.enforce(rows) @ scaled.in_column_units(thetas).T
    assert np.allclose(here, there, rtol=1e-12, atol=1e-12)
    assert np.all(scaled.in_column_units(thetas)[:, 2] == 0.0), "a column whose ends are equal says nothing"


def test_every_class_and_every_hidden_unit_is_converted():
    generator = np.random.default_rng(6)
    rows = generator.uniform((0, -40, 7), (120, 10, 7), (20, 3))
    for scaled, plain in (
        (MODELS[3], Softmax(3, bounds=BOUNDS, classes=["a", "b", "c"], prior=PRIOR)),
        (MODELS[-1], Network(3, bounds=BOUNDS, hidden=2)),
    ):
        theta = generator.standard_normal(scaled.dimension)
        here = scaled.predictor(theta, scaled.features.enforce(rows))
        there = plain.predictor(scaled.in_column_units(theta), plain.features.enforce(rows))
        assert np.allclose(here, there, rtol=1e-11, atol=1e-11)


def test_the_variance_is_left_alone():
    model = MODELS[9]
    assert model.in_column_units(np.arange(5.0))[-1] == 4.0


def test_the_reference_design_is_that_of_the_cube():
    unit = Logistic(2, bounds=(-1.0, 1.0), prior=PRIOR)
    years = Logistic(2, bounds=((0.0, -40.0), (120.0, 10.0)), scaled=True, prior=PRIOR)
    ones = lambda shares: np.ones(len(shares))  # noqa: E731
    assert np.array_equal(Design(unit.features).second_moments(ones), Design(years.features).second_moments(ones))
    assert smallest_curvature(years) == smallest_curvature(unit)
    assert smallest_curvature(MODELS[0]) == pytest.approx(smallest_curvature(unit), rel=0.05)


def test_neighbours_of_a_scaled_model_keep_their_bounds():
    """L of the scaled model bounds the gradient of every encoded record."""
    model, generator = MODELS[0], np.random.default_rng(7)
    X = model.features.enforce(generator.uniform((-10, -60, 7), (150, 30, 7), (200, 3)))
    theta = 3.0 * generator.standard_normal(4)
    y = np.where(generator.random(200) < 0.5, 1.0, -1.0)
    slopes = model.kernel.slope(X @ theta, y)
    assert np.linalg.norm(slopes[:, None] * X, axis=1).max() <= model.bounds["lipschitz"].value


def test_scaling_needs_a_box():
    for options in ({"data_norm": 1.0}, {"bounds": (0.0, 1e70)}):
        with pytest.raises(InvalidModel):
            Logistic(3, scaled=True, prior=PRIOR, **options)
    with pytest.raises(InvalidModel, match="never computed from the records"):
        BinaryRegression(3, scaled=True)
    with pytest.raises(InvalidModel, match="True or False"):
        Logistic(3, bounds=(0, 1), scaled="yes", prior=PRIOR)
    with pytest.raises(InvalidModel, match="above 0"):
        Logistic(1, bounds=(2, 2), scaled=True, prior=PRIOR)


def test_a_release_of_a_scaled_model_is_verified():
    generator = np.random.default_rng(8)
    X = generator.uniform((0, -40, 7), (120, 10, 7), (300, 3))
    y = (generator.random(300) < 0.5).astype(int)
    plan = od.calibrate(od.NoisyGradient(), MODELS[0], od.ApproxDP(1.0, 1e-5), n=300)
    released = od.release(plan, (X, y))
    assert od.verify(released.certificate)
    assert released.certificate.plan["model"]["scaled"] is True
