"""Every constant a promise is made of, against a search that tries to exceed it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from convex_cases import (
    BALL,
    LINEAR,
    MODELS,
    OBJECTIVES,
    SEED,
    SOFTMAX,
    admissible,
    by_name,
    largest,
    least_curvature,
    responses_of,
    start,
)

from onedraw.models import (
    BoundedResidualGLM,
    Gaussian,
    GaussianMean,
    Hinge,
    HuberRegression,
    LeastSquares,
    Logistic,
    LogitNormalBernoulli,
    Quantile,
    Softmax,
)
from onedraw.privacy import Provenance

ROUNDING = 1.0 + 1e-9
"""The search's own arithmetic."""

NEVER_LOOSE = {"lipschitz", "smoothness", "predictor_bound", "sensitivity", "range", "gradient_difference"}


def tight(model) -> set[str]:
    """The constants the proofs say are attained (or approached) by this model, not only bounds."""
    keys = set(NEVER_LOOSE)
    on_a_ball = model.radius is not None
    if model.features.box is not None:  # the worst row of a box is a corner; with a ball θ must point there as well
        keys -= {"gradient_difference"}
    if on_a_ball and not isinstance(model, LeastSquares | HuberRegression | Quantile | BoundedResidualGLM):
        keys -= {"lipschitz", "gradient_difference"}  # the slope's limit lies at an infinite margin
    if isinstance(model, Hinge) and on_a_ball:
        keys |= {"lipschitz"}
    if isinstance(model, LeastSquares | BoundedResidualGLM) or (on_a_ball and model.features.intercept):
        keys -= {"gradient_difference"}
    if on_a_ball and model.features.intercept:
        keys -= {"range"}  # two rows with a common 1 cannot be turned against each other freely
    if isinstance(model, LogitNormalBernoulli):
        keys |= {"gradient_difference", "range"}
    if isinstance(model, HuberRegression) and model.threshold > 4.0:
        keys -= {"range"}
    return keys


@pytest.fixture
def generator(request):
    print(f"to repeat this run: ONEDRAW_TEST_SEED={SEED}")
    return np.random.default_rng([SEED, *request.node.name.encode()])


@pytest.mark.parametrize("key", OBJECTIVES)
@pytest.mark.parametrize("model", LINEAR, ids=by_name)
def test_a_search_never_exceeds_a_constant_and_reaches_the_tight_ones(model, key, generator):
    if key not in model.bounds:
        assert key == "smoothness" or model.radius is None
        return
    bound = model.bounds[key].value
    found = largest(model, OBJECTIVES[key](model), generator)
    assert found <= bound * ROUNDING, f"{key} of {by_name(model)}: {found} found, {bound} stated"
    if key in tight(model):
        assert found >= 0.99 * bound, f"{key} of {by_name(model)}: only {found} found, {bound} stated"


def test_print():
    pass
