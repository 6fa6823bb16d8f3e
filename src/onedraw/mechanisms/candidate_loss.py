"""Which loss the candidates are selected by, its public interval, and what the reference design says of it.

For `BetaDivergence`: the β-loss of any likelihood of a linear predictor, its variance known or a parameter, with β
chosen as for a single draw. For ``Gibbs(rule="bounded")``: a convex margin loss on the prior's ball.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import PromiseRefused, UnsupportedBudget
from onedraw.models import ConvexModel, Gaussian, NormalInverseGamma
from onedraw.models.candidates.scores import BernoulliBeta, CandidateLoss, LikelihoodBeta, MarginOnBall
from onedraw.models.convex.losses import MarginLoss
from onedraw.models.features import Features
from onedraw.models.likelihood.densities import Bernoulli, Categorical, GaussianNoise, StudentT
from onedraw.models.likelihood.predictors import Linear
from onedraw.plans import Request
from onedraw.privacy import PureDP
from onedraw.privacy.rounding import fraction_down, fraction_up

from .beta_design import ReferenceDesign, reference_scale, variance_information
from .beta_divergence import BetaDivergence
from .candidate_plan import CHAINS
from .candidate_promise import counts_epsilons
from .reference_design import EFFECT, mean_curvature, second_moments

Array = NDArray[np.float64]

CALIBRATED = Fraction(1, 10**9)
"""A weight this close to the largest one spends the whole budget: only its last digits were rounded. Of budgets that
are sums of ε; the largest range of another one comes from a search, whose last digits are a machine's own."""


@dataclass(frozen=True, eq=False)
class Scoring:
    """A loss with its weight: ``half_range`` is wΔ, what one record can move one candidate by."""

    loss: CandidateLoss
    weight: float
    half_range: Fraction
    numbers: dict[str, float]
    information: Array
    variability: Array
    features: Features
    residual: float = 1.0
    """The standard deviation of a real response about its mean, in the reference design; 1 for all others."""

    def predictor_deviation(self, scales: Array) -> float:
        """The largest standard deviation of θᵀx without the intercept, under the prior and the reference design."""
        moments = _row_moments(self.features)
        count, width = self.features.count, self.features.width
        ends = range(width, len(scales) + 1, width)  # a variance, which comes last, is no coefficient
        spread = [(scales[end - width : end - width + count] ** 2) @ np.diag(moments)[:count] for end in ends]
        return math.sqrt(float(max(spread)))


def scoring(of: Any, request: Request, largest: Fraction, *, stated: Mapping[str, float] | None = None) -> Scoring:
    """The loss at the largest weight with 2wΔ ≤ ``largest`` (or as ``stated`` in a plan), and its reference design."""
    model: Any = request.model
    prior, features = getattr(model, "prior", None), getattr(model, "features", None)
    if not isinstance(prior, Gaussian | NormalInverseGamma) or not isinstance(features, Features):
        raise UnsupportedBudget(
            f"Candidates are laid out by a prior on the coefficients of a linear predictor, and {type(model).__name__} has "
            f"other parameters. What is left is to {CHAINS}"
        )
    if isinstance(of, BetaDivergence):
        return _beta(of, request, largest, stated)
    return _margin(of, request, largest, stated)


def _beta(of: BetaDivergence, request: Request, largest: Fraction, stated: Mapping[str, float] | None) -> Scoring:
    model: Any = request.model
    likelihood = getattr(model, "likelihood", None)
    if likelihood is None:
        raise UnsupportedBudget(
            f"{type(model).__name__} has no likelihood, so it has no β-divergence loss to select by. Use Logistic, Softmax or "
            "a regression with a likelihood, or Candidates(of=Gibbs('bounded')) for a convex margin loss on a ball."
        )
    if not isinstance(model.predictor_function, Linear):
        raise UnsupportedBudget(
            f"Candidates score a likelihood of a linear predictor, which {type(model).__name__} does not have: a network has "
            "too many weights, and too many equally good ones, for any number of candidates to cover. Use Logistic, "
            f"Softmax, GaussianRegression or another linear model. Or {CHAINS}"
        )
    one = replace(request, draws=1, gamma=0.0, records_per_person=1)
    if stated is None:
        inner = of.calibrate(replace(one, budget=PureDP(fraction_down(largest))))
        beta, weight = inner.parameters["beta"], inner.parameters["weight"]
    else:
        beta, weight = stated.get("beta", math.nan), stated.get("weight", math.nan)
        if not (1.0 < beta < 2**40 and 0.0 < weight < math.inf) or of.beta not in (None, beta):
            raise PromiseRefused("The β and weight stated are not those the mechanism was made with.")
    loss: CandidateLoss = (
        BernoulliBeta(beta) if isinstance(likelihood, Bernoulli) else LikelihoodBeta(model.beta_kernel, beta)
    )
    moments = ReferenceDesign(model, of.effect or EFFECT, of.noise).moments(beta)
    if moments is None:
        raise UnsupportedBudget(
            f"How informative a record of {type(model).__name__} is under the reference design is not known, so no rounds "
            f"can be planned for it. What is left is to {CHAINS}"
        )
    information, variability = (_across(likelihood, part, model) for part in moments)
    if likelihood.samples_variance:
        information, variability = _with_variance(model, beta, of.noise, information, variability)
    located = isinstance(likelihood, GaussianNoise | StudentT)
    residual = reference_scale(likelihood, of.noise) if located else 1.0
    exact = largest if counts_epsilons(request.budget) else None
    found = _scoring(loss, weight, exact, {"weight": weight, "beta": beta}, information, variability, model.features)
    return replace(found, residual=residual)


def _margin(of: Any, request: Request, largest: Fraction, stated: Mapping[str, float] | None) -> Scoring:
    model: Any = request.model
    kernel = model.kernel if isinstance(model, ConvexModel) else None
    if not isinstance(kernel, MarginLoss) or model.radius is None:
        raise UnsupportedBudget(
            "Of the convex losses Candidates select by those of a margin (Logistic, Hinge, HuberisedHinge) on a ball. Pass "
            "prior=Gaussian(scale=…, radius=…), or use BetaDivergence(), which needs no ball."
        )
    loss = MarginOnBall(kernel, model.predictor_bound)
    low, high = loss.interval
    if stated is None:
        allowed = largest / (2 * (Fraction(high) - Fraction(low)))
        if of.weight is not None and Fraction(of.weight) > allowed:
            raise PromiseRefused(
                f"The weight {of.weight!r} spends more than the budget on this loss; at most {float(allowed):.6g} is possible. "
                "Leave it out to have it calibrated."
            )
        weight = fraction_down(allowed) if of.weight is None else of.weight
    else:
        weight = stated.get("weight", math.nan)
        if not 0.0 < weight < math.inf or of.weight not in (None, weight):
            raise PromiseRefused("The weight stated is not the one the mechanism was made with.")
    information = second_moments(model.features, lambda shares: mean_curvature(kernel, EFFECT**2 * shares))
    assert information is not None
    # K = H for the logistic loss; for the others of the same order, and used for the expected error alone.
    exact = largest if counts_epsilons(request.budget) else None
    return _scoring(loss, weight, exact, {"weight": weight}, information, information, model.features)


def _scoring(
    loss: CandidateLoss, weight: float, largest: Fraction | None, numbers: dict[str, float], information: Array,
    variability: Array, features: Features,
) -> Scoring:  # fmt: skip
    low, high = loss.interval
    spread = Fraction(high) - Fraction(low)
    half_range = Fraction(weight) * spread
    if largest is not None and half_range > largest / 2 * (1 - CALIBRATED):
        half_range = largest / 2
    return Scoring(
        loss, weight, half_range, {**numbers, "sensitivity": fraction_up(spread)}, information, variability, features
    )


def _across(likelihood: Any, part: Array, model: Any) -> Array:
    """H or K for all coefficients: for K classes, times I − 11ᵀ/K; without bounds on the features, times I."""
    width = model.features.width
    matrix = part if part.shape == (width, width) else float(part[0, 0]) * np.eye(width)
    if not isinstance(likelihood, Categorical):
        return matrix
    classes = likelihood.classes
    return np.kron(np.eye(classes) - np.full((classes, classes), 1.0 / classes), matrix)


def _with_variance(
    model: Any, beta: float, noise: float | None, information: Array, variability: Array
) -> tuple[Array, Array]:
    """H and K with the variance's coordinate η as the last: those of log σ² times (dlog σ²/dη)², and nothing between."""
    likelihood = model.likelihood
    found = variance_information(likelihood, beta, noise)
    if found is None:
        raise UnsupportedBudget(
            f"How informative a record of {type(model).__name__} is about its variance is not known, so no rounds can be "
            f"planned. What is left is to {CHAINS}"
        )
    slope = 1.0 - likelihood.floor / reference_scale(likelihood, noise) ** 2
    last = np.diag([0.0] * len(information) + [slope**2])
    return np.pad(information, (0, 1)) + found[0] * last, np.pad(variability, (0, 1)) + found[1] * last


def _row_moments(features: Features) -> Array:
    """E[xxᵀ] under the design; standardised features where no bounds are declared."""
    if features.box is None and not features.data_norm:
        return np.eye(features.width)
    moments = second_moments(features, lambda squares: np.ones(len(squares)))
    assert moments is not None
    return moments
