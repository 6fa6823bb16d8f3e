"""The prior as candidates need it: drawn from, weighed, and described by the normal law that plans are made with.

Candidates are laid out in a model's unconstrained coordinates. A `Gaussian` prior is its own description. Where the
variance is a parameter (`NormalInverseGamma`; η the last coordinate, σ² = floor + e^η) the description is normal about
the prior's median, with the spread of its quantiles; it decides where candidates lie, while their weight uses the prior
itself, Jacobian included. So the pick tends to a draw from the posterior whatever the description is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from onedraw.models import Gaussian, NormalInverseGamma

Array = NDArray[np.float64]

LOWEST = 7.0
"""log floor − 7 is the lowest coordinate of a mean: σ² is then within a thousandth of the floor, and flat below."""

_BEHIND = special.ndtr(-1.0), 0.5, special.ndtr(1.0)


class CandidatePrior(Protocol):
    """What a selection asks of a prior; every coordinate unconstrained."""

    @property
    def location(self) -> Array: ...

    @property
    def scales(self) -> Array: ...

    def noise(self, reference: float) -> float:
        """The standard deviation of a real response about its mean that goes with `scales`."""
        ...

    def draw(self, generator: Generator, size: int) -> Array:
        """Candidates as wide as the prior, one per row."""
        ...

    def log_drawn(self, thetas: Array) -> Array:
        """The log-density of what `draw` draws."""
        ...

    def log_density(self, thetas: Array) -> Array: ...

    def contains(self, thetas: Array) -> NDArray[np.bool_]: ...

    def average(self, picks: Array, weights: Array) -> Array:
        """The picks' mean, a parameter itself."""
        ...

    def nearest(self, theta: Array) -> Array:
        """The nearest point that the prior allows."""
        ...

    def published(self, theta: Array) -> Array:
        """As people want it: a variance in place of its coordinate."""
        ...


@dataclass(frozen=True, eq=False)
class NormalCandidates:
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

    def noise(self, reference: float) -> float:
        return reference

    def draw(self, generator: Generator, size: int) -> Array:
        return self.location + self.scales * generator.standard_normal((size, self.dimension))

    def log_drawn(self, thetas: Array) -> Array:
        return log_normal(thetas, self.location, self.scales)

    def log_density(self, thetas: Array) -> Array:
        return log_normal(thetas, self.location, self.prior.precision(self.dimension) ** -0.5)

    def contains(self, thetas: Array) -> NDArray[np.bool_]:
        if self.prior.radius is None:
            return np.ones(len(thetas), dtype=np.bool_)
        inside: NDArray[np.bool_] = np.linalg.norm(thetas, axis=1) <= self.prior.radius
        return inside

    def average(self, picks: Array, weights: Array) -> Array:
        return np.average(picks, axis=0, weights=weights)

    def nearest(self, theta: Array) -> Array:
        length, radius = float(np.linalg.norm(theta)), self.prior.radius
        return theta if radius is None or length <= radius else theta * (radius / length)

    def published(self, theta: Array) -> Array:
        return theta


@dataclass(frozen=True, eq=False)
class VarianceCandidates:
    """Coefficients and the variance's coordinate η, with the prior as the model has it."""

    model: Any

    @property
    def _prior(self) -> NormalInverseGamma:
        prior: NormalInverseGamma = self.model.prior
        return prior

    @property
    def _floor(self) -> float:
        return float(self.model.likelihood.floor)

    @property
    def _quantiles(self) -> Array:
        """σ² a standard deviation below, at and above the median, as a normal law would have them."""
        prior = self._prior
        inside = special.gammainc(prior.shape, prior.rate / self._floor)
        precision = special.gammaincinv(prior.shape, inside * (1.0 - np.array(_BEHIND))) / prior.rate
        found: Array = np.maximum(1.0 / precision, self._floor)
        return found

    @property
    def location(self) -> Array:
        found = np.zeros(self.model.dimension)
        found[-1] = self._coordinates[1]
        return found

    @property
    def scales(self) -> Array:
        prior, coordinates = self._prior, self._coordinates
        width = prior.scale * (math.sqrt(self._quantiles[1]) if prior.conjugate else 1.0)
        return np.append(np.full(self.model.dimension - 1, width), 0.5 * (coordinates[2] - coordinates[0]))

    @property
    def _coordinates(self) -> Array:
        """η at those quantiles; where the prior is nearly all at its floor, a little above it."""
        excess = np.maximum(self._quantiles - self._floor, self._floor * np.exp([-LOWEST, 1.0 - LOWEST, 2.0 - LOWEST]))
        return np.log(excess)

    def noise(self, reference: float) -> float:
        """A conjugate prior is as wide as its own variance says, so that is what its width is measured by."""
        return math.sqrt(self._quantiles[1]) if self._prior.conjugate else reference

    def draw(self, generator: Generator, size: int) -> Array:
        drawn: Array = self.model.draw_prior(generator, size)
        return drawn

    def log_drawn(self, thetas: Array) -> Array:
        return self.log_density(thetas)

    def log_density(self, thetas: Array) -> Array:
        found: Array = np.asarray(self.model.log_prior(thetas))
        return found

    def contains(self, thetas: Array) -> NDArray[np.bool_]:
        return np.ones(len(thetas), dtype=np.bool_)

    def average(self, picks: Array, weights: Array) -> Array:
        """Coefficients by their mean and σ² by its geometric mean, which is never below the floor; the mean of η
        itself would be ruled by picks at the floor, whose η may be anything."""
        found = np.average(picks, axis=0, weights=weights)
        log_variance = float(np.average(self.model.beta_kernel.log_variance(picks), weights=weights))
        excess = max(math.expm1(log_variance - math.log(self._floor)), math.exp(-LOWEST))
        found[-1] = math.log(self._floor) + math.log(excess)
        return found

    def nearest(self, theta: Array) -> Array:
        return theta

    def published(self, theta: Array) -> Array:
        published: Array = self.model.constrain(theta)
        return published


def candidate_prior(model: Any) -> CandidatePrior:
    """The prior of a model whose parameters are coefficients, with or without a variance."""
    if isinstance(model.prior, NormalInverseGamma):
        return VarianceCandidates(model)
    return NormalCandidates(model.prior, model.dimension)


def log_normal(thetas: Array, location: Array, scales: Array) -> Array:
    """Normal with independent coordinates."""
    squares = ((thetas - location) / scales) ** 2
    found: Array = -0.5 * squares.sum(axis=1) - float(
        np.log(scales).sum() + 0.5 * len(scales) * math.log(2.0 * math.pi)
    )
    return found
