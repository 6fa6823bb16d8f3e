"""Convex models and Gaussian priors as values: storage, hashing, refusals; a user's own loss and its probe."""

from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from onedraw.errors import InvalidModel
from onedraw.models import (
    BetaBernoulli,
    BoundedResidualGLM,
    ConjugateModel,
    ConvexLoss,
    ConvexModel,
    Gaussian,
    Hinge,
    HuberisedHinge,
    HuberRegression,
    LeastSquares,
    Logistic,
    LogitNormalBernoulli,
    Model,
    Quantile,
    Softmax,
    model_from_dict,
    register_loss,
)
from onedraw.models.compute import jnp
from onedraw.privacy import Provenance
from tests.models.convex_cases import MODELS, by_name

PRIOR = Gaussian(scale=1.0)
BALL = Gaussian(scale=1.0, radius=2.0)


# Values


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_a_model_survives_json_pickle_and_hashing(model):
    again = model_from_dict(json.loads(json.dumps(model.to_dict(), allow_nan=False)))
    assert again == model
    assert hash(again) == hash(model)
    assert again.bounds == model.bounds
    assert pickle.loads(pickle.dumps(model)) == model
    assert type(model).__name__ in repr(model)


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_a_stored_model_is_read_strictly(model):
    stored = model.to_dict()
    for change in ({"colour": 1}, {"model": "Cauchy"}):
        with pytest.raises(InvalidModel):
            model_from_dict(stored | change)
    for field in stored:
        with pytest.raises(InvalidModel):
            model_from_dict({name: value for name, value in stored.items() if name != field})


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_what_the_door_needs_is_there(model):
    assert isinstance(model, Model)
    assert isinstance(model, ConvexModel)
    assert not isinstance(model, ConjugateModel)
    assert len(model.parameter_names) == model.dimension == len(set(model.parameter_names))
    assert model.prior_scale > 0
    assert model.quantity


def test_models_of_different_priors_differ():
    assert Logistic(2, data_norm=1.0, prior=PRIOR) != Logistic(2, data_norm=1.0, prior=BALL)
    assert Logistic(2, data_norm=1.0, prior=PRIOR) != Hinge(2, data_norm=1.0, prior=PRIOR)


def test_a_conjugate_model_counts_its_records_too():
    assert BetaBernoulli().count([0, 1, 1]) == 3


def test_the_room_is_imported_without_loading_jax():
    program = "import sys, onedraw.models, onedraw.models.convex.gibbs_target as t; t.GibbsTarget; print('jax' in sys.modules)"
    program += (
        "; onedraw.models.Logistic(2, data_norm=1.0, prior=onedraw.models.Gaussian(scale=1.0, radius=2.0)).bounds"
    )
    program += "; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("folder", ["cache", "missing/deep", "file/below"])
def test_compiled_programs_are_kept_where_they_can_be(folder, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    program = "from onedraw.models.compute import jax, jnp; print(jax.jit(lambda v: v * 1.5 + 0.25)(jnp.ones(3)).dtype)"
    environment = {**os.environ, "ONEDRAW_CACHE": str(tmp_path / folder)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "float64"
    assert (tmp_path / folder).is_dir() == (not folder.startswith("file"))
    if (tmp_path / folder).is_dir():
        assert any((tmp_path / folder).iterdir())


# Priors


def test_a_prior_knows_its_precision():
    prior = Gaussian(scales=[1.0, 2.0, 0.5], mean=[0.0, 1.0, -1.0])
    assert prior.precision(3).tolist() == [1.0, 0.25, 4.0]
    assert (prior.strong_convexity, prior.smoothness) == (0.25, 4.0)
    assert prior.location(3).tolist() == [0.0, 1.0, -1.0]
    assert Gaussian(scale=2.0, mean=0.5).location(2).tolist() == [0.5, 0.5]
    assert Gaussian(scale=2.0).precision(2).tolist() == [0.25, 0.25]
    for each in (prior, BALL):
        assert Gaussian.from_dict(json.loads(json.dumps(each.to_dict()))) == each
        assert hash(Gaussian.from_dict(each.to_dict())) == hash(each)


@pytest.mark.parametrize("scale", [0.1, 0.3, 3.0, 1.7e5])
def test_the_strong_convexity_is_the_smallest_entry_of_the_precision_itself(scale):
    prior = Gaussian(scales=(scale, scale / 7))
    assert prior.strong_convexity == prior.precision(2).min()
    assert prior.smoothness == prior.precision(2).max()


def test_the_lattice_scale_respects_a_small_ball():
    assert Logistic(2, data_norm=1.0, prior=Gaussian(scale=3.0)).prior_scale == 3.0
    small = Logistic(2, data_norm=1.0, prior=Gaussian(scale=3.0, radius=0.5))
    assert small.prior_scale == pytest.approx(0.5 / math.sqrt(5))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "exactly one"),
        ({"scale": 1.0, "scales": [1.0]}, "exactly one"),
        ({"scale": math.inf}, "m_π = 0: no promise"),
        ({"scale": 0.0}, "improper"),
        ({"scale": -1.0}, "improper"),
        ({"scale": math.nan}, "improper"),
        ({"scale": 1e200}, "between"),
        ({"scale": "wide"}, "real number"),
        ({"scales": [1.0, math.inf]}, "m_π = 0: no promise"),
        ({"scales": 1.0}, "list of numbers"),
        ({"scales": []}, "list of numbers"),
        ({"scale": 1.0, "mean": math.inf}, "finite"),
        ({"scale": 1.0, "radius": 0.0}, "positive"),
        ({"scale": 1.0, "radius": math.inf}, "finite"),
    ],
)
def test_an_improper_prior_is_refused(options, words):
    with pytest.raises(InvalidModel, match=words):
        Gaussian(**options)


def test_a_stored_prior_is_read_strictly():
    stored = PRIOR.to_dict()
    for wrong in (stored | {"tail": 1}, {**stored, "prior": "Cauchy"}, {"scale": 1.0}, [1.0], None):
        with pytest.raises(InvalidModel):
            Gaussian.from_dict(wrong)


# Refusals

BAD = [
    (lambda: Logistic(2, prior=PRIOR), "needs one public bound on its features.*neither was given.*data_norm=r"),
    (lambda: Logistic(2, data_norm=1.0, bounds=(0, 1), prior=PRIOR), "both were given"),
    (lambda: Logistic(2, data_norm=math.inf, prior=PRIOR), "finite"),
    (lambda: Logistic(2, data_norm=0.0, prior=PRIOR), "positive"),
    (lambda: Logistic(2, data_norm=1e80, prior=PRIOR), "Rescale"),
    (lambda: Logistic(2, bounds=(-math.inf, math.inf), prior=PRIOR), "finite"),
    (lambda: Logistic(2, bounds=(1, 0), prior=PRIOR), "lo ≤ hi"),
    (lambda: Logistic(2, bounds=((0, 0, 0), 1), prior=PRIOR), "each of the 2 features"),
    (lambda: Logistic(2, bounds=3.0, prior=PRIOR), "pair"),
    (lambda: Logistic(2, bounds=(0, 0), prior=PRIOR), "above 0"),
    (lambda: Logistic(0, data_norm=1.0, prior=PRIOR), "at least 1"),
    (lambda: Logistic(2, data_norm=1.0), "needs a Gaussian prior, but none was given.*m_π = 0"),
    (lambda: Logistic(2, data_norm=1.0, prior=1.0), "needs a Gaussian prior, but a float was given"),
    (lambda: Logistic(2, data_norm=1.0, prior=Gaussian(scales=[1.0, 1.0])), "3 parameters"),
    (lambda: Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0, mean=[1.0, 0.0])), "3 parameters"),
    (
        lambda: Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0, mean=2.0, radius=3.0)),
        "does not contain the prior's mean.*3.46",
    ),
    (lambda: Logistic(2, data_norm=1.0, loss="cauchy", prior=PRIOR), "'logistic' or 'exp-linear'"),
    (lambda: Logistic(2, data_norm=1.0, exponent=0.5, prior=PRIOR), "belongs to the exp-linear"),
    (lambda: Logistic(2, data_norm=1.0, classes=["a", "b", "c"], prior=PRIOR), "Use Softmax"),
    (lambda: Logistic(2, data_norm=1.0, classes=["a", "a"], prior=PRIOR), "different labels"),
    (lambda: Logistic(2, data_norm=1.0, intercept="yes", prior=PRIOR), "True or False"),
    (lambda: Logistic(2, data_norm=1.0, feature_names=["a"], prior=PRIOR), "2 different names"),
    (lambda: Softmax(2, data_norm=1.0, classes=5, prior=PRIOR), "list of class labels"),
    (lambda: Softmax(2, data_norm=1.0, classes=["a"], prior=PRIOR), "at least two"),
    (lambda: HuberisedHinge(2, data_norm=1.0, width=0.0, prior=PRIOR), "width"),
    (lambda: LeastSquares(2, data_norm=1.0, response_bound=1.0, prior=PRIOR), "needs a prior restricted to a ball"),
    (lambda: HuberRegression(2, data_norm=1.0, threshold=-1.0, prior=PRIOR), "threshold"),
    (lambda: Quantile(2, data_norm=1.0, level=1.0, prior=PRIOR), "strictly between 0 and 1"),
    (lambda: LogitNormalBernoulli(variance=0.0), "variance"),
    (lambda: LogitNormalBernoulli(variance=1.0, mean=3.0, radius=2.0), "does not contain"),
    (
        lambda: BoundedResidualGLM("cox", 2, data_norm=1.0, residual_bound=1.0, prior=BALL),
        "bernoulli, poisson, gaussian",
    ),
    (lambda: BoundedResidualGLM("poisson", 2, data_norm=1.0, residual_bound=9.0, prior=PRIOR), "bounded only if"),
    (
        lambda: BoundedResidualGLM("poisson", 2, data_norm=1.0, residual_bound=2.0, prior=BALL),
        "residual_bound above 8.42",
    ),
]


@pytest.mark.parametrize(("make", "words"), BAD, ids=[words[:40] for _make, words in BAD])
def test_what_cannot_be_private_is_refused_with_the_remedy(make, words):
    with pytest.raises(InvalidModel, match=words):
        make()


# A user's own loss


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
        model_from_dict(stored)
    register_loss("secret", secret)
    assert model_from_dict(stored) == model
    with pytest.raises(InvalidModel, match="Another loss"):
        register_loss("secret", cosh_loss)
