"""Which loss the candidates of a `Candidates` plan are selected by, and which prior they are laid out by.

For `BetaDivergence`: the β-loss of any likelihood of a linear predictor, its variance known or a parameter, with β
chosen as for a single draw. For ``Gibbs(rule="bounded")``: a convex margin loss on the prior's ball. Either has a
public interval, and the reference design says how informative it is.

Candidates are laid out in a model's unconstrained coordinates. A `Gaussian` prior is its own description. Where the
variance is a parameter (`NormalInverseGamma`; η the last coordinate, σ² = floor + e^η) the description is normal about
the prior's median, with the spread of its quantiles; it decides where candidates lie, while their weight uses the prior
itself, Jacobian included. So the pick tends to a draw from the posterior whatever the description is.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.errors import PromiseRefused, UnsupportedBudget
from onedraw.methods.beta_divergence.mechanism import BetaDivergence
from onedraw.models import ConvexModel, Gaussian, NormalInverseGamma
from onedraw.models.candidates import BernoulliBeta, CandidateLoss, LikelihoodBeta, MarginOnBall
from onedraw.models.convex.losses import MarginLoss
from onedraw.models.design import EFFECT, Design, mean_curvature
from onedraw.models.features import Features
from onedraw.models.likelihood import Bernoulli, Categorical, GaussianNoise, StudentT
from onedraw.models.likelihood.likelihood_model import Linear, WithLikelihood
from onedraw.models.likelihood.reference_design import ReferenceDesign, variance_information
from onedraw.models.row_model import RowModel
from onedraw.plans import Request
from onedraw.privacy import PureDP
from onedraw.privacy.numbers import fraction_down, fraction_up

CHAINS = (
    'take the risk of a chain by name: release a BetaDivergence() plan with accept="estimated" (HMC, its convergence '
    'estimated on simulated data) or accept="assumed" (NUTS).'
)
"""What is left where candidates cannot cover a posterior."""

LOWEST = 7.0
"""log floor − 7 is the lowest coordinate of a mean: σ² is then within a thousandth of the floor, and flat below."""

_BEHIND = special.ndtr(-1.0), 0.5, special.ndtr(1.0)

CALIBRATED = Fraction(1, 10**9)
"""A weight this close to the largest one spends the whole budget: only its last digits were rounded. Of budgets that
are sums of ε; for others the largest range is searched for, and its last digits may differ between machines."""


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
        moments = Design(self.features).row_moments
        count, width = self.features.count, self.features.width
        ends = range(width, len(scales) + 1, width)  # a variance, which comes last, is no coefficient
        spread = [(scales[end - width : end - width + count] ** 2) @ np.diag(moments)[:count] for end in ends]
        return math.sqrt(float(max(spread)))


def scoring(of: Any, request: Request, largest: Fraction, *, stated: Mapping[str, float] | None = None) -> Scoring:
    """The loss at the largest weight with 2wΔ ≤ ``largest`` (or as ``stated`` in a plan), and its reference design."""
    model: Any = request.model
    if not isinstance(model, RowModel) or not isinstance(model.prior, Gaussian | NormalInverseGamma):
        raise UnsupportedBudget(
            f"Candidates are laid out by a prior on the coefficients of a linear predictor, and {type(model).__name__} "
            f"has other parameters.{f' What is left is to {CHAINS}' if isinstance(model, WithLikelihood) else ''}"
        )
    if isinstance(of, BetaDivergence):
        return _beta(of, request, largest, stated)
    return _margin(of, request, largest, stated)


def _beta(of: BetaDivergence, request: Request, largest: Fraction, stated: Mapping[str, float] | None) -> Scoring:
    model: Any = request.model
    likelihood: Any = model.likelihood if isinstance(model, WithLikelihood) else None
    if likelihood is None:
        raise UnsupportedBudget(
            f"{type(model).__name__} has no likelihood, so it has no β-divergence loss to select by. Use Logistic, "
            "Softmax or a regression with one; of=… selects by a convex margin loss on a ball."
        )
    if not isinstance(model.predictor_function, Linear):
        raise UnsupportedBudget(
            f"Candidates score a likelihood of a linear predictor, which {type(model).__name__} does not have: a "
            "network has too many weights, and too many equally good ones, for any number of candidates to cover. Use "
            f"Logistic, Softmax, GaussianRegression or another linear model. Or {CHAINS}"
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
            f"How informative a record of {type(model).__name__} is under the reference design is not known, so no "
            f"rounds can be planned for it. What is left is to {CHAINS}"
        )
    information, variability = (_across(likelihood, part, model) for part in moments)
    if likelihood.samples_variance:
        information, variability = _with_variance(model, beta, of.noise, information, variability)
    residual = likelihood.scale(of.noise) if isinstance(likelihood, GaussianNoise | StudentT) else 1.0
    half_range, sensitivity = _half_range(loss, weight, request, largest)
    numbers = {"weight": weight, "beta": beta, "sensitivity": sensitivity}
    return Scoring(loss, weight, half_range, numbers, information, variability, model.features, residual)


def _margin(of: Any, request: Request, largest: Fraction, stated: Mapping[str, float] | None) -> Scoring:
    model: Any = request.model
    kernel = model.kernel if isinstance(model, ConvexModel) else None
    if not isinstance(kernel, MarginLoss) or model.radius is None:
        raise UnsupportedBudget(
            "Of the convex losses Candidates select by those of a margin (Logistic, Hinge, HuberisedHinge) on a ball. "
            "Pass prior=Gaussian(scale=…, radius=…), or leave out of=, which needs no ball."
        )
    loss = MarginOnBall(kernel, model.predictor_bound)
    low, high = loss.interval
    if stated is None:
        allowed = largest / (2 * (Fraction(high) - Fraction(low)))
        if of.weight is not None and Fraction(of.weight) > allowed:
            raise PromiseRefused(
                f"The weight {of.weight!r} spends more than the budget on this loss; at most {float(allowed):.6g} is "
                "possible. Leave it out to have it calibrated."
            )
        weight = fraction_down(allowed) if of.weight is None else of.weight
    else:
        weight = stated.get("weight", math.nan)
        if not 0.0 < weight < math.inf or of.weight not in (None, weight):
            raise PromiseRefused("The weight stated is not the one the mechanism was made with.")
    information = Design(model.features).second_moments(lambda shares: mean_curvature(kernel, EFFECT**2 * shares))
    assert information is not None
    half_range, sensitivity = _half_range(loss, weight, request, largest)
    numbers = {"weight": weight, "sensitivity": sensitivity}
    # K = H for the logistic loss; for the others of the same order, and used for the expected error alone.
    return Scoring(loss, weight, half_range, numbers, information, information, model.features)


def _half_range(loss: CandidateLoss, weight: float, request: Request, largest: Fraction) -> tuple[Fraction, float]:
    """(wΔ, Δ rounded up)."""
    low, high = map(Fraction, loss.interval)
    found = Fraction(weight) * (high - low)
    if request.budget.is_pure and found > largest / 2 * (1 - CALIBRATED):
        found = largest / 2
    return found, fraction_up(high - low)


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
    """H and K with the variance's coordinate η last: those of log σ² times (dlog σ²/dη)², and nothing between."""
    likelihood = model.likelihood
    found = variance_information(likelihood, beta, noise)
    if found is None:
        raise UnsupportedBudget(
            f"How informative a record of {type(model).__name__} is about its variance is not known, so no rounds can "
            f"be planned. What is left is to {CHAINS}"
        )
    slope = 1.0 - likelihood.floor / likelihood.scale(noise) ** 2
    last = np.diag([0.0] * len(information) + [slope**2])
    return np.pad(information, (0, 1)) + found[0] * last, np.pad(variability, (0, 1)) + found[1] * last


class CandidatePrior(abc.ABC):
    """What a selection asks of a prior; every coordinate unconstrained."""

    @property
    @abc.abstractmethod
    def location(self) -> Array: ...

    @property
    @abc.abstractmethod
    def scales(self) -> Array: ...

    @abc.abstractmethod
    def draw(self, generator: Generator, size: int) -> Array:
        """Candidates as wide as the prior, one per row."""

    @abc.abstractmethod
    def log_density(self, thetas: Array) -> Array: ...

    def log_drawn(self, thetas: Array) -> Array:
        """The log-density of what `draw` draws."""
        return self.log_density(thetas)

    def noise(self, reference: float) -> float:
        """The standard deviation of a real response about its mean that goes with `scales`."""
        return reference

    def contains(self, thetas: Array) -> Mask:
        return np.ones(len(thetas), dtype=np.bool_)

    def average(self, picks: Array, weights: Array) -> Array:
        """The picks' mean, a parameter itself."""
        return np.average(picks, axis=0, weights=weights)

    def nearest(self, theta: Array) -> Array:
        """The nearest point that the prior allows."""
        return theta

    def published(self, theta: Array) -> Array:
        """As people want it: a variance in place of its coordinate."""
        return theta


@dataclass(frozen=True, eq=False)
class NormalCandidates(CandidatePrior):
    """A Gaussian prior, on a ball if it has one; no coordinate is taken to be wider than the ball's uniform law."""

    prior: Gaussian
    dimension: int

    @property
    def location(self) -> Array:
        return self.prior.location(self.dimension)

    @property
    def scales(self) -> Array:
        scales = self.prior.precision(self.dimension) ** -0.5
        if self.prior.radius is None:
            return scales
        return np.minimum(scales, self.prior.radius / math.sqrt(self.dimension + 2))

    def draw(self, generator: Generator, size: int) -> Array:
        return self.location + self.scales * generator.standard_normal((size, self.dimension))

    def log_drawn(self, thetas: Array) -> Array:
        return log_normal(thetas, self.location, self.scales)

    def log_density(self, thetas: Array) -> Array:
        return log_normal(thetas, self.location, self.prior.precision(self.dimension) ** -0.5)

    def contains(self, thetas: Array) -> Mask:
        radius = math.inf if self.prior.radius is None else self.prior.radius
        return np.asarray(np.linalg.norm(thetas, axis=1) <= radius)

    def nearest(self, theta: Array) -> Array:
        length, radius = float(np.linalg.norm(theta)), self.prior.radius
        return theta if radius is None or length <= radius else theta * (radius / length)


@dataclass(frozen=True, eq=False)
class VarianceCandidates(CandidatePrior):
    """Coefficients and the variance's coordinate η, with the prior as the model has it."""

    model: Any

    @property
    def _floor(self) -> float:
        return float(self.model.likelihood.floor)

    @property
    def _quantiles(self) -> Array:
        """σ² a standard deviation below, at and above the median, as a normal law would have them."""
        prior = self.model.prior
        inside = special.gammainc(prior.shape, prior.rate / self._floor)
        precision = special.gammaincinv(prior.shape, inside * (1.0 - np.array(_BEHIND))) / prior.rate
        return np.asarray(np.maximum(1.0 / precision, self._floor))

    @property
    def location(self) -> Array:
        found = np.zeros(self.model.dimension)
        found[-1] = self._coordinates[1]
        return found

    @property
    def scales(self) -> Array:
        prior, coordinates = self.model.prior, self._coordinates
        width = prior.scale * (math.sqrt(self._quantiles[1]) if prior.conjugate else 1.0)
        return np.append(np.full(self.model.dimension - 1, width), 0.5 * (coordinates[2] - coordinates[0]))

    @property
    def _coordinates(self) -> Array:
        """η at those quantiles; where the prior is nearly all at its floor, a little above it."""
        excess = np.maximum(self._quantiles - self._floor, self._floor * np.exp([-LOWEST, 1.0 - LOWEST, 2.0 - LOWEST]))
        return np.log(excess)

    def noise(self, reference: float) -> float:
        """A conjugate prior is as wide as its own variance says, so that is what its width is measured by."""
        return math.sqrt(self._quantiles[1]) if self.model.prior.conjugate else reference

    def draw(self, generator: Generator, size: int) -> Array:
        return np.asarray(self.model.draw_prior(generator, size))

    def log_density(self, thetas: Array) -> Array:
        return np.asarray(self.model.log_prior(thetas))

    def average(self, picks: Array, weights: Array) -> Array:
        """Coefficients by their mean and σ² by its geometric mean, which is never below the floor; the mean of η
        itself would be ruled by picks at the floor, whose η may be anything."""
        found = np.average(picks, axis=0, weights=weights)
        log_variance = float(np.average(self.model.beta_kernel.log_variance(picks), weights=weights))
        excess = max(math.expm1(log_variance - math.log(self._floor)), math.exp(-LOWEST))
        found[-1] = math.log(self._floor) + math.log(excess)
        return found

    def published(self, theta: Array) -> Array:
        return np.asarray(self.model.constrain(theta))


def candidate_prior(model: Any) -> CandidatePrior:
    """The prior of a model whose parameters are coefficients, with or without a variance."""
    if isinstance(model.prior, NormalInverseGamma):
        return VarianceCandidates(model)
    return NormalCandidates(model.prior, model.dimension)


def log_normal(thetas: Array, location: Array, scales: Array) -> Array:
    """Normal with independent coordinates."""
    squares = ((thetas - location) / scales) ** 2
    constant = float(np.log(scales).sum() + 0.5 * len(scales) * math.log(2.0 * math.pi))
    return np.asarray(-0.5 * squares.sum(axis=1) - constant)
