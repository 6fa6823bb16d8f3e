"""The posterior of one number given a noisy sum: rates and means, whose records were clamped (Bernstein, Sheldon,
NeurIPS 2018).

The posterior is about the rate λ or the mean θ of the records *before* they were clamped: the model's own parameter. A
clamped record has another law than the model's, with mean m(θ) and variance v(θ) that are known in closed form
(`clamped_moments` of the families), and the sum of n of them is taken for normal with n·m(θ) and n·v(θ). That is the
paper's approximation; its moments are exact here, clamping included, where the paper leaves it out. Together with the
noise's own law the likelihood of what was published has a closed form,

    p(z | θ) = ∫ N(s; n·m(θ), n·v(θ)) · noise(z − s) ds,

and the posterior ∝ p(θ)·p(z | θ) is tabulated: its logarithm is taken for straight between 2,049 nodes that are placed
where it has mass. Where a sum is far from normal (few records) it is also far smaller than its noise; what is left was
measured (noise_aware.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.models import GammaPoisson, GaussianMean
from onedraw.plans import Plan

from .sufficient_statistics import NaivePosterior, sums_of, tails

Logarithm = Callable[[Array], Array]

NODES, LOOKED_AT, ROUNDS = 2049, 257, 40
"""Nodes of the table; those that look for where it has mass, and how often they may."""

NEGLIGIBLE = 45.0
"""e^−45 of the largest density is left out at either side."""


@dataclass(frozen=True)
class SumNoise:
    """The law of the noise on a published sum, in the sum's own unit."""

    law: str
    scale: float
    """Of discrete Laplace noise, or the deviation of a Gaussian."""
    step: float
    """What published sums are multiples of."""
    rounded: bool
    """Whether it is a Gaussian of a finer lattice, rounded to these steps, or a discrete Gaussian on them."""

    @classmethod
    def of(cls, plan: Plan, unit: float) -> SumNoise:
        numbers, mechanism = plan.parameters, plan.mechanism
        scale, refinement = numbers["scale"], numbers["refinement"]
        return cls(mechanism.law, scale / refinement * unit, unit, refinement > 1.0)

    @property
    def deviation(self) -> float:
        if self.law == "gaussian":
            return self.scale
        gap = -math.expm1(-self.step / self.scale)  # 1 − q of a discrete Laplace law
        return self.step * math.sqrt(2.0 * (1.0 - gap)) / gap

    def log_mass(self, distance: Array) -> Array:
        """log P(noise = distance), up to a constant, for multiples of the step."""
        if self.law == "laplace":
            return np.asarray(-np.abs(distance) / self.scale)
        if not self.rounded or self.scale > 64.0 * self.step:
            return np.asarray(-0.5 * (distance / self.scale) ** 2)
        ends = ((np.abs(distance) + side * self.step / 2.0) / self.scale for side in (-1.0, 1.0))
        near, far = (special.log_ndtr(-end) for end in ends)
        return np.asarray(near + np.log1p(-np.exp(far - near)))

    def log_density_with_normal(self, distance: Array, spread: Array) -> Array:
        """log density of noise + N(0, spread²) at this distance, up to a constant."""
        if self.law == "gaussian":
            variance = spread**2 + self.scale**2
            return np.asarray(-0.5 * distance**2 / variance - 0.5 * np.log(variance))
        ratio, z = spread / self.scale, distance / np.maximum(spread, 1e-12 * self.scale)
        right = -distance / self.scale + special.log_ndtr(z - ratio)
        left = distance / self.scale + special.log_ndtr(-z - ratio)
        return np.asarray(ratio**2 / 2.0 + np.logaddexp(right, left))


@dataclass(frozen=True, eq=False)
class TabulatedLaw:
    """A law on the line with a density whose logarithm is straight between nodes."""

    nodes: Array
    logs: Array

    @classmethod
    def found(cls, log_density: Logarithm, low: float, high: float) -> TabulatedLaw:
        """Tabulated where it has mass, within [low, high]; of a density with one top."""
        for _ in range(ROUNDS):
            nodes = np.linspace(low, high, LOOKED_AT)
            logs = log_density(nodes)
            seen = np.flatnonzero(logs > logs.max() - NEGLIGIBLE)
            first, last = max(seen[0] - 1, 0), min(seen[-1] + 1, LOOKED_AT - 1)
            low, high = float(nodes[first]), float(nodes[last])
            if last - first > 0.8 * LOOKED_AT:
                break
        nodes = np.linspace(low, high, NODES)
        logs = log_density(nodes)
        return cls(nodes, np.maximum(logs - logs.max(), -700.0))

    @property
    def masses(self) -> Array:
        """Of the pieces between nodes, in all 1: ∫ of an exponential function."""
        rise = np.diff(self.logs)
        small = np.abs(rise) < 1e-6
        steep = np.where(small, 1.0, rise)
        mean = np.where(small, 1.0 + rise / 2.0, np.expm1(steep) / steep)
        areas = np.exp(self.logs[:-1]) * mean * np.diff(self.nodes)
        return np.asarray(areas / areas.sum())

    def quantile(self, probability: Any) -> Array:
        """Where so much lies below."""
        below = np.append(0.0, np.cumsum(self.masses))
        wanted = np.asarray(probability, dtype=np.float64) * below[-1]
        piece = np.clip(np.searchsorted(below, wanted, side="right") - 1, 0, len(self.nodes) - 2)
        share = (wanted - below[piece]) / np.maximum(below[piece + 1] - below[piece], 1e-300)
        rise = (self.logs[1:] - self.logs[:-1])[piece]
        small = np.abs(rise) < 1e-6
        steep = np.where(small, 1.0, rise)
        place = np.where(small, share, np.log1p(np.clip(share, 0.0, 1.0) * np.expm1(steep)) / steep)
        return np.asarray(self.nodes[piece] + np.clip(place, 0.0, 1.0) * (self.nodes[1:] - self.nodes[:-1])[piece])

    def average(self, values: Array) -> float:
        """Of a function, by its values at the nodes."""
        return float(self.masses @ ((values[1:] + values[:-1]) / 2.0))


@dataclass(frozen=True, eq=False)
class TotalPosterior:
    """Of a rate, tabulated in its logarithm, or of a mean."""

    law: TabulatedLaw
    logarithmic: bool
    naive_deviation: float

    too_narrow: ClassVar[str] = ""

    @classmethod
    def of(cls, plan: Plan, noisy: Array) -> TotalPosterior:
        model, unit = plan.model, float(sums_of(plan.model).unit)
        noise, z = SumNoise.of(plan, unit), float(noisy[0]) * unit
        logarithmic = not isinstance(model, GaussianMean)
        prior, low, high = _prior_of_mean(model) if isinstance(model, GaussianMean) else _prior_of_rate(model)

        def log_density(place: Array) -> Array:
            mean, variance = model.clamped_moments(np.exp(place) if logarithmic else place)
            return prior(place) + noise.log_density_with_normal(z - plan.n * mean, np.sqrt(plan.n * variance))

        naive = float(NaivePosterior.of(plan, noisy).errors[0][0])
        return cls(TabulatedLaw.found(log_density, low, high), logarithmic, naive)

    @property
    def _values(self) -> Array:
        return np.exp(self.law.nodes) if self.logarithmic else self.law.nodes

    @property
    def mean(self) -> Array:
        return np.array([self.law.average(self._values)])

    @property
    def errors(self) -> tuple[Array, Array]:
        whole = self.law.average((self._values - self.mean) ** 2)
        return np.array([self.naive_deviation]), np.array([math.sqrt(max(whole - self.naive_deviation**2, 0.0))])

    def draw(self, size: int, generator: Any) -> Array:
        return self._at(generator.uniform(size=size)).reshape(size, 1)

    def interval(self, level: float, change: Any = None) -> Array:
        return self._at(np.array(tails(level))).reshape(1, 2)

    def _at(self, probability: Array) -> Array:
        found = self.law.quantile(probability)
        return np.exp(found) if self.logarithmic else found


def _prior_of_rate(model: Any) -> tuple[Logarithm, float, float]:
    """log density of log λ under Gamma(shape, rate), and how far it is followed: to its own ends, and to rates at
    which every record is at the cap, or at 0."""
    shape, rate = model.prior
    ends = special.gammaincinv(shape, 1e-14) / rate, special.gammainccinv(shape, 1e-14) / rate
    far = 1e3 * model.cap if isinstance(model, GammaPoisson) else 1e9 / model.cap
    low, high = math.log(max(min(ends[0], 1e-9 / model.cap), 1e-290)), math.log(max(ends[1], far))
    return lambda place: shape * place - rate * np.exp(place), low, high


def _prior_of_mean(model: GaussianMean) -> tuple[Logarithm, float, float]:
    (mean,), (spread,) = model.prior_law.mean, model.prior_law.deviation
    (centre,) = np.atleast_1d(model.centre)
    away = model.bound + 10.0 * math.sqrt(model.variance)
    low, high = min(mean - 10.0 * spread, centre - away), max(mean + 10.0 * spread, centre + away)
    return lambda place: -0.5 * ((place - mean) / spread) ** 2, float(low), float(high)
