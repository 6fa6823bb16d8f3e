"""Which loss the candidates are selected by, its public interval, and what the reference design says of it.

For `BetaDivergence`: the β-loss of any likelihood of a linear predictor whose parameters all have the Gaussian prior,
with β chosen as for a single draw. For ``Gibbs(rule="bounded")``: a convex margin loss on the prior's ball.
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
from onedraw.models import ConvexModel, Gaussian
from onedraw.models.candidate_scores import BernoulliBeta, CandidateLoss, LikelihoodBeta, MarginOnBall
from onedraw.models.features import Features
from onedraw.models.likelihoods import Bernoulli, Categorical
from onedraw.models.losses import MarginLoss
from onedraw.models.predictors import Linear
from onedraw.privacy import PureDP
from onedraw.privacy.rounding import fraction_down, fraction_up

from .beta_design import ReferenceDesign
from .beta_divergence import BetaDivergence
from .plan import Request
from .reference_design import EFFECT, mean_curvature, second_moments

Array = NDArray[np.float64]

CALIBRATED = Fraction(1, 10**9)
"""A weight this close to the largest one spends the whole budget: only its last digits were rounded."""


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

    def predictor_deviation(self, scales: Array) -> float:
        """The largest standard deviation of θᵀx without the intercept, under the prior and the reference design."""
        moments = _row_moments(self.features)
        count, width = self.features.count, self.features.width
        return max(
            math.sqrt(float((scales[start : start + count] ** 2) @ np.diag(moments)[:count]))
            for start in range(0, len(scales), width)
        )


def scoring(of: Any, request: Request, largest: Fraction, *, stated: Mapping[str, float] | None = None) -> Scoring:
    """The loss at the largest weight with 2wΔ ≤ ``largest`` (or as ``stated`` in a plan), and its reference design."""
    model = request.model
    if not isinstance(getattr(model, "prior", None), Gaussian) or not isinstance(model.features, Features):  # type: ignore[attr-defined]
        raise UnsupportedBudget(
            f"Candidates are laid out by a Gaussian prior on the coefficients of a linear predictor, and "
            f"{type(model).__name__} has another parameter. Use BetaDivergence() with a chain."
        )
    if isinstance(of, BetaDivergence):
        return _beta(of, request, largest, stated)
    return _margin(of, request, largest, stated)


def _beta(of: BetaDivergence, request: Request, largest: Fraction, stated: Mapping[str, float] | None) -> Scoring:
    model: Any = request.model
    likelihood = getattr(model, "likelihood", None)
    if likelihood is None or likelihood.samples_variance or not isinstance(model.predictor_function, Linear):
        raise UnsupportedBudget(
            f"Candidates score a likelihood of a linear predictor, all of whose parameters are coefficients; that of "
            f"{type(model).__name__} is not one. Use Logistic, Softmax, PoissonRegression or a known variance, or "
            "BetaDivergence() with a chain."
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
            "can be planned for it. Use BetaDivergence() with a chain."
        )
    information, variability = (_across(likelihood, part, model) for part in moments)
    numbers = {"weight": weight, "beta": beta}
    return _scoring(loss, weight, largest, numbers, information, variability, model.features)


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
    return _scoring(loss, weight, largest, {"weight": weight}, information, information, model.features)


def _scoring(
    loss: CandidateLoss, weight: float, largest: Fraction, numbers: dict[str, float], information: Array,
    variability: Array, features: Features,
) -> Scoring:  # fmt: skip
    low, high = loss.interval
    spread = Fraction(high) - Fraction(low)
    half_range = Fraction(weight) * spread
    if half_range > largest / 2 * (1 - CALIBRATED):
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


def _row_moments(features: Features) -> Array:
    """E[xxᵀ] under the design; standardised features where no bounds are declared."""
    if features.box is None and not features.data_norm:
        return np.eye(features.width)
    moments = second_moments(features, lambda squares: np.ones(len(squares)))
    assert moments is not None
    return moments
