"""Records simulated from the public reference design: what couplings are run on before any record is read.

As in mathematics.md §5, "Choosing β": features independent and uniform on the declared box, uniform on the sphere of
radius ``data_norm``, or standard normal where no bound is declared; the intercept's coefficient 0 and the others
isotropic, so that θᵀx has the standard deviation ``effect`` of the plan's mechanism (by default 1); parameters of any
other predictor from the prior; responses from the likelihood at that θ, residuals with the standard deviation ``noise``.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from onedraw.errors import ExactnessRefused
from onedraw.models import Encoded
from onedraw.models.features import Features
from onedraw.models.likelihood.densities import (
    Bernoulli,
    Categorical,
    Gamma,
    GaussianNoise,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from onedraw.models.likelihood.predictors import Linear

Array = NDArray[np.float64]

ROWS = 4096
"""Rows from which E‖x‖² of the design is computed."""


def simulated_records(plan: Any, generator: Generator) -> Encoded:
    """n encoded records of the plan's model, with a θ of their own."""
    features, likelihood = getattr(plan.model, "features", None), getattr(plan.model, "likelihood", None)
    if not isinstance(features, Features) or likelihood is None:
        raise _unknown(plan.model)
    rows = _rows(features, plan.n, generator)
    effect = getattr(plan.mechanism, "effect", None) or 1.0
    noise = getattr(plan.mechanism, "noise", None) or 1.0
    predictor = _predictor(plan.model, features, rows, effect, generator)
    responses = draw_responses(likelihood, predictor, noise, generator)
    if responses is None:
        raise _unknown(plan.model)
    return Encoded(plan.n, rows, responses)


def _unknown(model: Any) -> ExactnessRefused:
    return ExactnessRefused(
        f"No data can be simulated for {type(model).__name__} from the public design: its features or its likelihood are "
        "not among those the design knows, so nothing can be estimated before the release. Use a sampler that is taken "
        'by assumption, NUTS() with accept="assumed", or a model with a likelihood of onedraw.models.likelihood.densities.'
    )


def _rows(features: Features, n: int, generator: Generator) -> Array:
    shape = (n, features.count)
    if features.box is not None:
        lower, upper = (np.broadcast_to(np.asarray(end, dtype=np.float64), shape[1:]) for end in features.box)
        raw = lower + (upper - lower) * generator.random(shape)
    else:
        raw = generator.standard_normal(shape)
        if features.data_norm is not None:
            raw *= features.data_norm / np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-300)
    return features.enforce(raw)


def _predictor(model: Any, features: Features, rows: Array, effect: float, generator: Generator) -> Array:
    function = model.predictor_function
    if not isinstance(function, Linear):
        return np.asarray(model.predictor(model.draw_prior(generator, 1)[0], rows))
    wide = _rows(features, ROWS, np.random.default_rng(0))[:, : features.count]
    spread = effect / math.sqrt(float((wide**2).sum(axis=1).mean()) or 1.0)
    theta = np.zeros((function.outputs, features.width))
    theta[:, : features.count] = spread * generator.standard_normal((function.outputs, features.count))
    return np.asarray(function(theta.ravel(), rows))


@singledispatch
def draw_responses(likelihood: Any, predictor: Array, noise: float, generator: Generator) -> Array | None:
    """One response for each predictor, encoded; None for a likelihood that cannot be drawn from here."""
    return None


@draw_responses.register
def _(likelihood: Bernoulli, predictor: Array, noise: float, generator: Generator) -> Array:
    return np.where(generator.random(predictor.shape) < special.expit(predictor), 1.0, -1.0)


@draw_responses.register
def _(likelihood: Categorical, predictor: Array, noise: float, generator: Generator) -> Array:
    return np.asarray(np.argmax(predictor + generator.gumbel(size=predictor.shape), axis=-1), dtype=np.float64)


@draw_responses.register
def _(likelihood: GaussianNoise, predictor: Array, noise: float, generator: Generator) -> Array:
    return np.asarray(predictor + _scale(likelihood, noise) * generator.standard_normal(predictor.shape))


@draw_responses.register
def _(likelihood: StudentT, predictor: Array, noise: float, generator: Generator) -> Array:
    return np.asarray(predictor + _scale(likelihood, noise) * generator.standard_t(likelihood.df, predictor.shape))


@draw_responses.register
def _(likelihood: Poisson, predictor: Array, noise: float, generator: Generator) -> Array:
    return generator.poisson(np.exp(np.clip(predictor, -50.0, 20.0))).astype(np.float64)


@draw_responses.register
def _(likelihood: NegativeBinomial, predictor: Array, noise: float, generator: Generator) -> Array:
    """A Poisson law whose mean is gamma."""
    mean = np.exp(np.clip(predictor, -50.0, 14.0))
    heavier = generator.standard_gamma(likelihood.dispersion, predictor.shape) / likelihood.dispersion
    return generator.poisson(np.minimum(mean * heavier, 1e9)).astype(np.float64)


@draw_responses.register
def _(likelihood: Gamma, predictor: Array, noise: float, generator: Generator) -> Array:
    scale = 1.0 / likelihood.rate_cap + np.exp(np.clip(predictor, -50.0, 50.0)) / likelihood.shape
    return np.maximum(scale * generator.standard_gamma(likelihood.shape, predictor.shape), 1e-60)


def _scale(likelihood: GaussianNoise | StudentT, noise: float) -> float:
    known = likelihood.variance
    return math.sqrt(known) if known is not None else max(noise, math.sqrt(likelihood.floor))
