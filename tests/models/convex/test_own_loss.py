"""A user's own convex loss: declared constants, probed at public points."""

from __future__ import annotations

import json

import numpy as np
import pytest

from onedraw.errors import InvalidModel
from onedraw.models import (
    ConvexLoss,
    Gaussian,
    Model,
    register_loss,
)
from onedraw.models.compute import jnp
from onedraw.privacy import Provenance

PRIOR = Gaussian(scale=1.0)
BALL = Gaussian(scale=1.0, radius=2.0)


def cosh_loss(theta, x, y):
    """log cosh(u − y): slope tanh, so 1-Lipschitz in u, curvature at most 1."""
    residual = jnp.dot(x, theta) - y
    return jnp.logaddexp(residual, -residual)


def bumpy(theta, x, y):
    residual = jnp.dot(x, theta) - y
    return residual**2 / (1.0 + residual**2)


def scaled(theta, x, y):
    return 1.5 * cosh_loss(theta, x, y)


def bowl(theta, x, y):
    return 0.5 * jnp.sum((theta - x) ** 2)


OPTIONS = {"features": 2, "data_norm": 1.0, "response": (-1.0, 1.0), "prior": PRIOR}


def test_a_users_loss_carries_declared_bounds():
    model = ConvexLoss(cosh_loss, 2, **OPTIONS, lipschitz=1.0, smoothness=1.0)
    assert model.bounds["lipschitz"].provenance is Provenance.DECLARED
    assert model.bounds["gradient_difference"].value == 2.0
    assert model.bounds["feature_norm"].provenance is Provenance.ENFORCED
    assert "range" not in model.bounds
    ball = ConvexLoss(
        cosh_loss, 2, **OPTIONS | {"prior": BALL}, lipschitz=1.0, gradient_difference=1.5, sensitivity=9.0
    )
    assert ball.bounds["range"].value == 2 * 2.0 * 1.5
    assert "smoothness" not in ball.bounds
    hash(model)
    encoded = model.summarise((np.array([[3.0, 4.0], [0.0, np.nan]]), [5.0, np.nan]))
    np.testing.assert_allclose(encoded.X, [[0.6, 0.8], [0.0, 0.0]], rtol=1e-11)
    assert encoded.y.tolist() == [1.0, 0.0]
    theta = np.array([0.3, -0.2])
    residual = encoded.X @ theta - encoded.y
    np.testing.assert_allclose(
        model.kernel.losses(theta, encoded.X, encoded.y), np.log(2 * np.cosh(residual)), rtol=1e-13
    )
    np.testing.assert_allclose(
        model.kernel.gradient_total(theta, encoded.X, encoded.y), np.tanh(residual) @ encoded.X, rtol=1e-12
    )


def test_a_users_loss_may_do_without_a_response():
    model = ConvexLoss(bowl, 2, features=2, data_norm=1.0, gradient_difference=2.0, strong_convexity=1.0, prior=PRIOR)
    encoded = model.summarise(np.array([[0.5, 0.0], [3.0, 0.0]]))
    np.testing.assert_allclose(encoded.X, [[0.5, 0.0], [1.0, 0.0]], rtol=1e-11)
    assert model.count(np.zeros((7, 2))) == 7
    assert "lipschitz" not in model.bounds
    assert model.bounds["strong_convexity"].value == 1.0


def test_a_non_convex_loss_is_refused_with_the_point():
    with pytest.raises(InvalidModel, match=r"bumpy is not convex.*theta = \(.*x = \(.*y = "):
        ConvexLoss(bumpy, 2, **OPTIONS, lipschitz=1.0)


def test_a_gradient_above_the_declared_constant_is_refused_with_the_point():
    with pytest.raises(
        InvalidModel, match=r"declared 1-Lipschitz, but its gradient has norm 1\..*theta = \(.*x = \(.*y = "
    ):
        ConvexLoss(scaled, 2, **OPTIONS, lipschitz=1.0)
    ConvexLoss(scaled, 2, **OPTIONS, lipschitz=1.5)


def test_a_point_of_ones_own_is_probed_too():
    def spike(theta, x, y):
        return cosh_loss(theta, x, y) + 100.0 * jnp.maximum(jnp.sum(theta) - 500.0, 0.0)

    ConvexLoss(spike, 2, **OPTIONS, lipschitz=1.0)
    with pytest.raises(InvalidModel, match=r"theta = \(300, 300\)"):
        ConvexLoss(spike, 2, **OPTIONS, lipschitz=1.0, probes=[((300.0, 300.0), (0.5, 0.5), 0.0)])


@pytest.mark.parametrize(
    ("fn", "options", "words"),
    [
        (cosh_loss, {}, "needs lipschitz=L, or gradient_difference=G"),
        (cosh_loss, {"lipschitz": 1.0, "smoothness": 0.5}, "declared 0.5-smooth"),
        (cosh_loss, {"lipschitz": 1.0, "strong_convexity": -1.0}, "at least 0"),
        (cosh_loss, {"lipschitz": 1.0, "strong_convexity": 0.5}, "no Lipschitz constant on all of R"),
        (cosh_loss, {"lipschitz": 1.0, "strong_convexity": 0.5, "prior": BALL}, "not 0.5-strongly convex"),
        (cosh_loss, {"lipschitz": 1.0, "data_norm": None}, "neither was given"),
        (cosh_loss, {"lipschitz": 1.0, "response": 3.0}, "pair"),
        (lambda theta, x, y: theta * y, {"lipschitz": 1.0}, "one real number"),
        (lambda theta: theta, {"lipschitz": 1.0}, "cannot be called as fn"),
        (lambda theta, x, y: jnp.log(theta[0]) * y, {"lipschitz": 1.0}, "not finite at the public probe point"),
        (5, {"lipschitz": 1.0}, "JAX function"),
    ],
)
def test_a_wrong_declaration_is_refused(fn, options, words):
    with pytest.raises(InvalidModel, match=words):
        ConvexLoss(fn, 2, **OPTIONS | options)


def test_a_users_loss_is_stored_by_name_and_read_back_only_where_it_is_registered():
    def secret(theta, x, y):
        return cosh_loss(theta, x, y)

    model = ConvexLoss(secret, 2, **OPTIONS, lipschitz=1.0)
    stored = json.loads(json.dumps(model.to_dict()))
    assert stored["fn"] == {"own function": "secret"}
    assert stored["lipschitz"] == 1.0
    with pytest.raises(InvalidModel, match=r"user's own function.*register_loss"):
        Model.from_dict(stored)
    register_loss("secret", secret)
    assert Model.from_dict(stored) == model
    with pytest.raises(InvalidModel, match="Another loss"):
        register_loss("secret", cosh_loss)
