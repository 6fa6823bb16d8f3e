"""Responses: what a record's residual is, and the level that a model without slopes would have.

| kind | response y | score u | raw residual |
| --- | --- | --- | --- |
| label | 0 or 1 | log-odds | P(1) - y |
| classes | 0 ... K - 1 | a score for each class | P - (unit vector of y) |
| count | min(count, Y)/Y | log of the expected count | min(e^u, Y)/Y - y |
| number | number/Y, in [-1, 1] | the same | u - y |

`Response` has what steps need, with NumPy arrays for published numbers and JAX arrays for records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import UnsupportedBudget
from onedraw.methods.stages import ROOT_TWO
from onedraw.models import CountRegression, Logistic, OrdinaryLeastSquares, Softmax
from onedraw.models.compute import jax, jnp
from onedraw.models.convex.losses import LogisticLoss

from .sizes import LEVEL_PRIOR, NUMBER_UNIT, Kind


@dataclass(frozen=True)
class Response:
    """A kind of response.

    Parameters
    ----------
    kind : str
        "label", "classes", "count" or "number".
    outputs : int
        Scores of a record: the number of classes, otherwise 1.
    scale : float
        Largest count, or half the range of numbers.
    """

    kind: Kind
    outputs: int = 1
    scale: float = 1.0

    @property
    def sensitivity(self) -> float:
        """Return how far replacing one record moves the sum of responses that the level is made of."""
        return {"label": 1.0, "classes": ROOT_TWO, "count": 1.0, "number": 2.0}[self.kind]

    def read(self, y: Any) -> Any:
        """Return encoded responses as this class has them: 0 or 1, codes, or in [-1, 1]."""
        if self.kind == "label":
            return jnp.where(y > 0.0, 1.0, 0.0)
        if self.kind == "classes":
            return jnp.clip(jnp.rint(y), 0.0, self.outputs - 1.0)
        return jnp.clip(y / self.scale, 0.0 if self.kind == "count" else -1.0, 1.0)

    def shares(self, y: Any) -> Any:
        """Return what each record adds to the sums that the level is made of, (records, outputs)."""
        return self._units(y) if self.kind == "classes" else y[:, None]

    def residuals(self, u: Any, y: Any) -> Any:
        """Return raw residuals, (records, outputs), at scores of that shape."""
        if self.kind == "classes":
            return jax.nn.softmax(u, axis=1) - self._units(y)
        if self.kind == "label":
            return jax.nn.sigmoid(u) - y[:, None]
        if self.kind == "count":
            return jnp.exp(jnp.minimum(u - math.log(self.scale), 0.0)) - y[:, None]
        return u - y[:, None]

    def _units(self, y: Any) -> Any:
        return jnp.where(jnp.arange(float(self.outputs)) == y[:, None], 1.0, 0.0)

    def shrink(self, mean: Array, noise: float) -> Array:
        """Return the published mean response drawn towards equal shares by its noise, and inside what has a score.

        Parameters
        ----------
        mean : array
            Noisy mean response.
        noise : float
            Standard deviation of its noise.
        """
        if self.kind == "number":
            return np.clip(mean, -1.0, 1.0)
        if self.kind == "count":
            return np.clip(mean, max(noise / 2.0, 1e-6), 1.0)
        equal = 1.0 / max(self.outputs, 2)
        signal = LEVEL_PRIOR**2
        if self.kind == "classes":  # as far apart as the published shares are beyond their noise
            signal = max(0.0, float(np.mean((mean - equal) ** 2)) - noise**2)
        shares = equal + (mean - equal) * signal / (signal + noise**2)
        least = min(max(noise / 2.0, 1e-6), equal / 2.0)
        shares = np.clip(shares, least, 1.0 - least)
        return np.asarray(shares / shares.sum() if self.kind == "classes" else shares)

    def link(self, mean: Array) -> Array:
        """Return the scores of a mean response; those of classes add up to 0."""
        if self.kind == "label":
            return np.log(mean / (1.0 - mean))
        if self.kind == "classes":
            scores = np.log(mean)
            return np.asarray(scores - scores.mean())
        return np.log(mean * self.scale) if self.kind == "count" else mean

    def unit(self, mean: Array, square: Array | None = None, noise: float = 0.0) -> float:
        """Return the size of a usual raw residual that slopes are measured in.

        For counts it is the standard deviation of a geometric count of the published mean, or the published standard deviation
        if its square is larger by more than its noise: a few large counts would otherwise be cut from every sum, and the
        predictor would be that of the others.

        Parameters
        ----------
        mean : array
            Shrunk mean response.
        square : array, optional
            Noisy mean of squares.
        noise : float, default 0
            Standard deviation of its noise.
        """
        if self.kind == "count":
            rate = float(mean[0]) * self.scale
            variance = (rate + rate * rate) / self.scale**2
            if square is not None:
                variance = max(variance, min(float(square[0]), 1.0) - noise - float(mean[0]) ** 2)
            return math.sqrt(variance)
        return NUMBER_UNIT if self.kind == "number" else 1.0


def response_of(model: Any) -> Response:
    """Return the response of a model; refuse a model that has none here."""
    match model:
        case Logistic() if isinstance(model.kernel, LogisticLoss):
            return Response("label")
        case Softmax():
            return Response("classes", len(model.classes))
        case CountRegression():
            return Response("count", 1, float(model.largest))
        case OrdinaryLeastSquares():
            return Response("number", 1, float(model.response_bound))
    raise UnsupportedBudget(
        f"{type(model).__name__} has no residual that clipped gradients are made of. Use Logistic(loss='logistic'), Softmax, "
        "CountRegression or OrdinaryLeastSquares."
    )
