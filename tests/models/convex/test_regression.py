"""Convex models and Gaussian priors as values: storage, hashing, refusals; a user's own loss and its probe."""

from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys

import pytest

from onedraw.errors import InvalidModel
from onedraw.models import (
    BetaBernoulli,
    BoundedResidualGLM,
    ConjugateModel,
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
)
from tests.models.convex.cases import MODELS, by_name

PRIOR = Gaussian(scale=1.0)
BALL = Gaussian(scale=1.0, radius=2.0)


# Values


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_a_model_survives_json_pickle_and_hashing(model):
    again = Model.from_dict(json.loads(json.dumps(model.to_dict(), allow_nan=False)))
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
            Model.from_dict(stored | change)
    for field in stored:
        with pytest.raises(InvalidModel):
            Model.from_dict({name: value for name, value in stored.items() if name != field})


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_what_a_release_needs_is_there(model):
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
