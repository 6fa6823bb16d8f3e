"""The public reference design as something to simulate from: rows, parameters and responses, before any record is read.

mathematics.md §5: features independent and uniform on the declared box, or uniform on the sphere of radius
``data_norm``; the intercept 0 and the other coefficients isotropic, of the length that gives the linear predictor the
standard deviation ``effect``; responses from the logistic model, or normal about the predictor with standard deviation
``noise`` and clamped as the model clamps them. It says how good a release will be, never how private it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from onedraw.mechanisms.reference_design import EFFECT, NOISE
from onedraw.models import Encoded
from onedraw.models.convex.number_losses import ResidualLoss
from onedraw.models.features import Features
from onedraw.models.likelihood.densities import GaussianNoise, StudentT
from onedraw.plans import Plan

Array = NDArray[np.float64]

PREDICTOR_DEVIATION = 2.0
"""Under the usual prior a linear predictor at the farthest row has this standard deviation, in units of the response."""

UNITS_IN_BOUND = 4.0
"""A declared bound on the response is taken to be four standard deviations of its noise."""


@dataclass(frozen=True)
class Design:
    """Rows, parameters and responses that are expected of a model's records; ``classes`` above 1: one score each."""

    features: Features
    effect: float
    noise: float
    classes: int = 1
    limit: float = math.inf
    """Responses are clamped to ± this."""
    numeric: bool = False
    """Whether responses are numbers; if not, they are −1 and +1, or class codes."""
    narrowness: float = 1.0
    """Features fill only this share of their declared range, around its middle."""

    @cached_property
    def squared_length(self) -> float:
        """E‖x‖² without the intercept."""
        if self.features.box is None:
            return (self.narrowness * (self.features.data_norm or math.sqrt(self.features.count))) ** 2
        lower, upper = self.ends
        return float(((lower + upper) ** 2 / 4 + (upper - lower) ** 2 / 12).sum()) or 1.0

    @property
    def ends(self) -> tuple[Array, Array]:
        """The box that the features fill, as encoded."""
        lower, upper = (np.array(end) for end in self.features.encoded_ends)
        middle, half = (lower + upper) / 2, self.narrowness * (upper - lower) / 2
        return middle - half, middle + half

    @property
    def varying(self) -> NDArray[np.bool_]:
        """For each entry of a row whether it can vary, or is the intercept: about the others nothing is to be learnt."""
        features = self.features
        found = np.ones(features.width, dtype=bool)
        if features.box is not None and features.scaled:
            lower, upper = self.ends
            found[: features.count] = lower < upper
        return found

    def rows(self, generator: np.random.Generator, count: int) -> Array:
        """Encoded rows, the column of ones last if there is an intercept."""
        features = self.features
        if features.box is None:
            noise = generator.standard_normal((count, features.count))
            rows = noise * (math.sqrt(self.squared_length) / np.linalg.norm(noise, axis=1, keepdims=True))
        else:
            lower, upper = self.ends
            rows = lower + (upper - lower) * generator.random((count, features.count))
        return np.concatenate([rows, np.ones((count, 1))], axis=1) if features.intercept else rows

    def parameters(self, generator: np.random.Generator, count: int) -> Array:
        """Coefficients in random directions, the intercept 0; with classes one row after the other, their mean 0."""
        features = self.features
        varying = self.varying[: features.count]
        directions = generator.standard_normal((count * self.classes, features.count)) * varying
        length = self.effect * math.sqrt(varying.sum() / self.squared_length)
        found = directions * (length / np.linalg.norm(directions, axis=1, keepdims=True))
        if features.intercept:
            found = np.concatenate([found, np.zeros((len(found), 1))], axis=1)
        return self.identified(found.reshape(count, -1))

    def identified(self, thetas: Array) -> Array:
        """What the responses depend on: with several classes a score common to all of them changes no probability."""
        if self.classes == 1:
            return thetas
        several = thetas.reshape(len(thetas), self.classes, -1)
        return np.asarray((several - several.mean(axis=1, keepdims=True)).reshape(thetas.shape))

    def responses(self, theta: Array, rows: Array, generator: np.random.Generator) -> Array:
        """As the model encodes them: −1 and +1, class codes, or clamped numbers."""
        scores = rows @ theta.reshape(self.classes, -1).T
        if self.numeric:
            noisy = scores[:, 0] + self.noise * generator.standard_normal(len(rows))
            return np.asarray(np.clip(noisy, -self.limit, self.limit))
        if self.classes == 1:
            return np.where(generator.random(len(rows)) < special.expit(scores[:, 0]), 1.0, -1.0)
        return np.asarray(np.argmax(scores + generator.gumbel(size=scores.shape), axis=1), dtype=np.float64)

    def data_set(self, theta: Array, n: int, generator: np.random.Generator) -> Encoded:
        """n simulated records, encoded."""
        rows = self.rows(generator, n)
        return Encoded(n, rows, self.responses(theta, rows, generator))


def design_of(plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Design:
    """The design of a plan's model, at the sizes given, or those its mechanism declares, or the usual ones."""
    model, mechanism = plan.model, getattr(plan.mechanism, "of", plan.mechanism)
    numeric = _numeric(model)
    bound = getattr(model, "response_bound", None)
    usual = NOISE if bound is None or not numeric else bound / UNITS_IN_BOUND
    spread = noise or getattr(mechanism, "noise", None) or usual
    response = model.response.interval if numeric and hasattr(model.response, "interval") else (-math.inf, math.inf)
    return Design(
        model.features,
        effect=effect or getattr(mechanism, "effect", None) or (spread if numeric else EFFECT),
        noise=spread,
        classes=_classes(model),
        limit=float(response[1]),
        numeric=numeric,
    )


def _numeric(model: Any) -> bool:
    likelihood = getattr(model, "likelihood", None)
    return isinstance(getattr(model, "kernel", None), ResidualLoss) or isinstance(likelihood, GaussianNoise | StudentT)


def _classes(model: Any) -> int:
    classes = getattr(model, "classes", None)
    return len(classes) if classes is not None and len(classes) > 2 else 1
