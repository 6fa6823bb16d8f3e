"""The public reference design: the rows, parameters and responses that are expected before any record is read.

It is what β is chosen for ("Which β" in methods/beta_divergence/proof.md). It follows from a model's declared bounds alone:

- features independent and uniform on the declared box, uniform on the sphere of radius ``data_norm``, or standard normal
  where no bound is declared;
- the intercept's coefficient 0, the others isotropic, of the length that gives the linear predictor u = θᵀx the standard
  deviation ``effect``;
- responses from the model at θ: of classes by their log-odds, numbers about u with the standard deviation ``noise`` and
  clamped as the model clamps them.

It tunes and predicts, it promises nothing: a wrong design costs accuracy, never privacy. What mechanisms choose by it is
stored in the plan. The rows' second moments are exact; averages of other functions of a row are Monte Carlo sums with
fixed public seeds. Given x, u is normal with variance v = effect²·‖x‖²/E‖x‖² (taking θ as normal), so a function h of u
averages to g(v), a one-dimensional integral; on the sphere v = effect².
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array, Mask

from .convex.classification import SoftmaxLoss
from .convex.linear_model import ConvexModel
from .convex.losses import LinearLoss, MarginLoss
from .convex.number_losses import CanonicalLoss, CappedPoissonLoss, ResidualLoss
from .features import Features
from .likelihood import LocationNoise
from .likelihood.likelihood_model import Linear
from .moments.measured_model import WeightedLoss
from .row_model import Encoded

EFFECT = NOISE = 1.0
"""The standard deviations of the linear predictor and of a residual, where the caller declares none."""

UNITS_IN_BOUND = 4.0
"""A declared bound on the response is taken to be four standard deviations of its noise."""

PREDICTOR_DEVIATION = 2.0
"""Under the usual prior a linear predictor at the farthest row has this standard deviation, in units of the response."""

AVERAGED = 4096
"""Rows, or scores of classes, that a function is averaged over."""

PUBLIC_SEED, POINTS_SEED = 20_240_229, 20_161_205
"""Of averages over a public design: they protect nothing and make plans reproducible."""

Z = np.linspace(-8.0, 8.0, 800)  # an even number: none at 0, where second derivatives may jump
MASS = np.exp(-0.5 * Z**2) / np.exp(-0.5 * Z**2).sum()


@dataclass(frozen=True)
class Design:
    """Rows, parameters and responses that are expected of a model's records; ``classes`` above 1: one score each."""

    features: Features
    effect: float = EFFECT
    noise: float = NOISE
    classes: int = 1
    limit: float = math.inf
    """Responses are clamped to ± this."""
    numeric: bool = False
    """Whether responses are numbers; if not, they are −1 and +1, or class codes."""
    narrowness: float = 1.0
    """Features fill only this share of their declared range, around its middle."""

    @classmethod
    def of(cls, model: Any, *, effect: float | None = None, noise: float | None = None) -> Design:
        """The design of a model's records, at the sizes given or the usual ones."""
        numeric = model.predicts == "number" or isinstance(getattr(model, "likelihood", None), LocationNoise)
        classes = getattr(model, "classes", None) or ()
        bound = getattr(model, "response_bound", None) if numeric else None
        spread = noise or (NOISE if bound is None else bound / UNITS_IN_BOUND)
        return cls(
            model.features,
            effect=effect or (spread if numeric else EFFECT),
            noise=spread,
            classes=len(classes) if len(classes) > 2 else 1,
            limit=float(getattr(model.response, "interval", (0.0, math.inf))[1]) if numeric else math.inf,
            numeric=numeric,
        )

    # ── rows ──

    @property
    def ends(self) -> tuple[Array, Array]:
        """The box that the features fill, as encoded."""
        lower, upper = (np.array(end, dtype=np.float64) for end in self.features.encoded_ends)
        middle, half = (lower + upper) / 2, self.narrowness * (upper - lower) / 2
        return middle - half, middle + half

    @cached_property
    def spread(self) -> tuple[Array, Array]:
        """Mean and variance of each feature."""
        count = self.features.count
        if self.features.box is not None:
            lower, upper = self.ends
            return (lower + upper) / 2, (upper - lower) ** 2 / 12
        norm = self.narrowness * (self.features.data_norm or math.sqrt(count))
        return np.zeros(count), np.full(count, norm**2 / max(count, 1))

    @cached_property
    def squared_length(self) -> float:
        """E‖x‖² without the intercept."""
        mean, variance = self.spread
        return float((mean**2 + variance).sum()) or 1.0

    @cached_property
    def row_moments(self) -> Array:
        """E[x xᵀ] exactly, the column of ones included if there is an intercept."""
        mean, variance = self.spread
        moments = np.diag(variance) + np.outer(mean, mean)
        if self.features.intercept:
            moments = np.block([[moments, mean[:, None]], [mean[None, :], np.ones((1, 1))]])
        return moments

    @property
    def varying(self) -> Mask:
        """For each entry of a row whether it can vary, or is the intercept: about the others nothing is to be learnt."""
        features = self.features
        found = np.ones(features.width, dtype=bool)
        if features.box is not None and features.scaled:
            lower, upper = self.ends
            found[: features.count] = lower < upper
        return found

    def rows(self, generator: np.random.Generator, count: int) -> Array:
        """Encoded rows, the column of ones last if there is an intercept."""
        return self._with_intercept(self._features(generator, count))

    def _features(self, generator: np.random.Generator, count: int) -> Array:
        shape = count, self.features.count
        if self.features.box is not None:
            lower, upper = self.ends
            return np.asarray(lower + (upper - lower) * generator.random(shape))
        rows = generator.standard_normal(shape)
        if self.features.data_norm is None:
            return self.narrowness * rows
        return np.asarray(rows * (math.sqrt(self.squared_length) / np.linalg.norm(rows, axis=1, keepdims=True)))

    def _with_intercept(self, rows: Array) -> Array:
        return np.concatenate([rows, np.ones((len(rows), 1))], axis=1) if self.features.intercept else rows

    def second_moments(self, average: Callable[[Array], Array | None]) -> Array | None:
        """E[g(‖x‖²/E‖x‖²) x xᵀ], g by ``average``; None where it knows nothing."""
        if self.features.box is None:
            level = average(np.ones(1))
            return None if level is None else float(level[0]) * self.row_moments
        lower, upper = self.ends
        half = self._features(np.random.default_rng(PUBLIC_SEED), AVERAGED // 2)
        rows = np.concatenate([half, lower + upper - half])  # with their mirror images about the centre
        squares = (rows**2).sum(axis=1) / self.squared_length
        grid = np.linspace(0.0, squares.max(), 33)
        levels = average(grid)
        if levels is None:
            return None
        # g(v) varies little around its mean, so only the deviation is left to Monte Carlo: with many features the
        # smallest eigenvalue of a plain sample matrix would be far too small.
        weights, rows = np.interp(squares, grid, levels), self._with_intercept(rows)
        deviation = (rows * (weights - weights.mean())[:, None]).T @ rows / len(rows)
        return np.asarray(weights.mean() * self.row_moments + deviation)

    # ── parameters and responses ──

    def parameters(self, generator: np.random.Generator, count: int) -> Array:
        """Coefficients in random directions, the intercept 0; with classes one row after the other, their mean 0."""
        varying = self.varying[: self.features.count]
        directions = generator.standard_normal((count * self.classes, self.features.count)) * varying
        length = self.effect * math.sqrt(varying.sum() / self.squared_length)
        found = directions * (length / np.linalg.norm(directions, axis=1, keepdims=True))
        if self.features.intercept:
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


@lru_cache(maxsize=32)
def public_points(design: Design, count: int, truths: int) -> tuple[Array, Array]:
    """Public rows in mirrored pairs, brought to the exact second moments, and public parameters."""
    generator = np.random.default_rng(POINTS_SEED)
    rows = design._features(generator, count // 2)
    centre, variance = design.spread
    around = np.concatenate([rows - centre, centre - rows])
    found = np.linalg.cholesky(around.T @ around / len(around) + 1e-12 * np.eye(design.features.count))
    rows = centre + np.linalg.solve(found, around.T).T * np.sqrt(variance)
    return design._with_intercept(rows), design.parameters(generator, truths)


def simulated_records(
    model: Any, n: int, generator: np.random.Generator, *, effect: float | None = None, noise: float | None = None
) -> Encoded | None:
    """n encoded records of a model with a likelihood, at a θ of their own: in a random direction of a linear predictor, of
    any other predictor from the prior. None where nothing can be drawn from the likelihood."""
    features, likelihood = getattr(model, "features", None), getattr(model, "likelihood", None)
    if not isinstance(features, Features) or likelihood is None:
        return None
    function = model.predictor_function
    linear = isinstance(function, Linear)
    design = Design(features, effect or EFFECT, classes=function.outputs if linear else 1)
    rows = design.rows(generator, n)
    if linear:
        predictor = function(design.parameters(generator, 1)[0], rows)
    else:
        predictor = model.predictor(model.draw_prior(generator, 1)[0], rows)
    responses = likelihood.draw(np.asarray(predictor), noise or NOISE, generator)
    return None if responses is None else Encoded(n, rows, responses)


# ── how informative a record is, of convex losses ────────────────────────────────────────────────────────────


def smallest_curvature(model: Any, effect: float = EFFECT, noise: float = NOISE, *, kernel: Any = None) -> float | None:
    """The smallest eigenvalue λ of E[h(u) x xᵀ], h(u) the average of the loss's second derivative over the response; at
    least the loss's strong convexity; None if nothing is known. ``kernel`` stands in for a loss with a kink."""
    bound = model.bounds.get("strong_convexity")
    found = 0.0 if bound is None else float(bound.value)
    features = getattr(model, "features", None)
    if isinstance(model, ConvexModel) and isinstance(features, Features):
        design = Design(features)
        matrix = design.second_moments(lambda shares: mean_curvature(kernel or model.kernel, effect**2 * shares, noise))
        if matrix is not None and (varying := np.diag(matrix) > 0.0).any():  # no record says anything about the others
            found = max(found, float(np.linalg.eigvalsh(matrix[np.ix_(varying, varying)])[0]))
    return found if found > 0.0 else None


LONGER = 1.5
"""Coefficients that paths are planned for, over those of the usual design: a longer way."""


def usual_length(model: Any, effect: float | None, noise: float | None) -> float | None:
    """The norm of the coefficients that paths are planned for, as ridges of fits are; None if nothing is known of the rows.

    Numbers are predicted as well as their coefficients are known, whose norm is larger the less columns vary; classes are
    ordered by a shrunk score as well.
    """
    features = getattr(model, "features", None)
    if not (isinstance(model, ConvexModel) and isinstance(features, Features)):
        return None
    kernel = model.kernel.of if isinstance(model.kernel, WeightedLoss) else model.kernel
    if not isinstance(kernel, ResidualLoss):
        return LONGER * (effect or EFFECT)
    spread = math.sqrt(max(features.count, 1) / Design(features).squared_length)
    return LONGER * (effect or noise or NOISE) * spread


def mean_curvature(loss: Any, variances: Array, noise: float = NOISE) -> Array | None:
    """g(v) = E h(u), u ~ N(0, v), for each v; None for a loss the design does not know."""
    if isinstance(loss, LinearLoss):
        return np.array([MASS @ curvature_at(loss, scale * Z, noise) for scale in np.sqrt(variances)])
    if not isinstance(loss, SoftmaxLoss):
        return None
    # E[diag p − ppᵀ] = a·(I − 11ᵀ/K) by symmetry, a = K·E[p₁p₂]: the redundant direction is left out
    scores = public_scores(loss.classes)
    squares = [(special.softmax(np.sqrt(variance) * scores, axis=1) ** 2).sum(axis=1).mean() for variance in variances]
    return (1.0 - np.array(squares)) / (loss.classes - 1)


def public_scores(classes: int) -> Array:
    """Standard normal scores of so many classes."""
    return np.random.default_rng(PUBLIC_SEED).standard_normal((AVERAGED, classes))


def curvature_at(loss: LinearLoss, predictor: Array, noise: float = NOISE) -> Array:
    """h(u): φ''(u, y) averaged over the response that the design expects at u."""
    match loss:
        case MarginLoss():
            p = special.expit(predictor)
            return np.asarray(p * loss.curvature(predictor, 1.0) + (1.0 - p) * loss.curvature(predictor, -1.0))
        case ResidualLoss():  # the residual's law is the same at every u
            return np.full_like(predictor, residual_information(loss, noise)[0])
        case CanonicalLoss() | CappedPoissonLoss():  # A''(u) does not depend on the response
            return np.asarray(loss.curvature(predictor, 0.0))
        case WeightedLoss():  # of a usual row, whose weight is nearly 1
            return curvature_at(loss.of, predictor, noise)
    raise TypeError(f"no response is known for {type(loss).__name__}")


def residual_information(loss: ResidualLoss, noise: float) -> tuple[float, float]:
    """E φ'' and Var φ' for residuals of this standard deviation: H and K of one record, per xxᵀ."""
    slopes = loss.slope(noise * Z, 0.0)
    return float(MASS @ loss.curvature(noise * Z, 0.0)), float(MASS @ slopes**2 - (MASS @ slopes) ** 2)
