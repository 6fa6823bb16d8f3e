"""The public reference design: how much curvature one record is expected to have, before any record is read.

Some choices (how long to run a noisy gradient path, how to trade weight against time) depend on how informative a
record is. That is never computed from the records; it is the smallest eigenvalue λ of E[h(u) x xᵀ] under a design
that follows from the model's declared bounds alone (mathematics.md §5, "Choosing β"):

- features independent and uniform on the declared box, or uniform on the sphere of radius ``data_norm``;
- the intercept's coefficient 0, the others isotropic and normal, scaled so that u = θᵀx has standard deviation 1, or
  the ``effect`` that the caller declares;
- h(u) the average of the loss's second derivative over the response: logistic probabilities for classes, normal
  noise for residuals, of standard deviation 1 or the ``noise`` that the caller declares.

λ tunes, it promises nothing: a wrong λ costs accuracy, never privacy. It is stored in the plan. Given x, u is normal
with variance v = effect²·‖x‖²/E‖x‖², so h averages to g(v), a one-dimensional integral. On the sphere v = effect² and
λ is exact; on a box the average over x is a Monte Carlo sum with a fixed public seed around an exact first term.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from onedraw.models.convex.classification import SoftmaxLoss
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.models.convex.losses import LinearLoss, MarginLoss
from onedraw.models.convex.number_losses import CanonicalLoss, CappedPoissonLoss, ResidualLoss
from onedraw.models.features import Features
from onedraw.models.fit import constants as constant
from onedraw.models.moments.measured_model import WeightedLoss

Array = NDArray[np.float64]

EFFECT = 1.0
"""The standard deviation of the linear predictor, where the caller declares none."""

NOISE = 1.0
"""The standard deviation of a residual, where the caller declares none."""

POINTS = 4096
PUBLIC_SEED = 20_240_229  # averages over a public design: the seed protects nothing and makes plans reproducible

_Z = np.linspace(-8.0, 8.0, 800)  # an even number: none at 0, where second derivatives may jump
_MASS = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()


def smallest_curvature(model: Any, effect: float = EFFECT, noise: float = NOISE) -> float | None:
    """λ of the model under the reference design, at least its loss's strong convexity; None if nothing is known.

    ``effect`` is the standard deviation of the linear predictor without the intercept, ``noise`` that of a residual.
    """
    bound = model.bounds.get("strong_convexity")
    strong = 0.0 if bound is None else float(bound.value)
    features = getattr(model, "features", None)
    found = strong
    if isinstance(model, ConvexModel) and isinstance(features, Features):
        matrix = second_moments(features, lambda shares: mean_curvature(model.kernel, effect**2 * shares, noise))
        found = max(strong, 0.0 if matrix is None else _smallest_eigenvalue(matrix))
    return found if found > 0.0 else None


def usual_length(model: Any, effect: float | None, noise: float | None) -> float | None:
    """The norm of the coefficients that paths are planned for, as ridges of fits are; None if nothing is known of the rows.

    Numbers are predicted as well as their coefficients are known, whose norm is larger the less columns vary; classes are
    ordered by a shrunk score as well (`models.fit.constants`).
    """
    features = getattr(model, "features", None)
    if not (isinstance(model, ConvexModel) and isinstance(features, Features)):
        return None
    kernel = model.kernel.of if isinstance(model.kernel, WeightedLoss) else model.kernel
    if not isinstance(kernel, ResidualLoss):
        return constant.EFFECT * (effect or EFFECT)
    _, length = _row_moments(features)
    return constant.EFFECT * (effect or noise or NOISE) * math.sqrt(max(features.count, 1) / length)


def _smallest_eigenvalue(matrix: Array) -> float:
    """Columns that are always 0 (scaled, with equal ends) are left out: no record says anything about them."""
    varying = np.diag(matrix) > 0.0
    return float(np.linalg.eigvalsh(matrix[np.ix_(varying, varying)])[0]) if varying.any() else 0.0


@singledispatch
def mean_curvature(loss: Any, variances: Array, noise: float = NOISE) -> Array | None:
    """g(v) = E h(u), u ~ N(0, v), for each v; None for a loss the design does not know."""
    return None


@mean_curvature.register
def _(loss: LinearLoss, variances: Array, noise: float = NOISE) -> Array:
    return np.array([_MASS @ curvature_at(loss, scale * _Z, noise) for scale in np.sqrt(variances)])


@mean_curvature.register
def _(loss: SoftmaxLoss, variances: Array, noise: float = NOISE) -> Array:
    """E[diag p − ppᵀ] = a·(I − 11ᵀ/K) by symmetry, a = K·E[p₁p₂]: the redundant direction is left out."""
    scores = np.random.default_rng(PUBLIC_SEED).standard_normal((POINTS, loss.classes))
    values = []
    for variance in variances:
        p = special.softmax(np.sqrt(variance) * scores, axis=1)
        values.append((1.0 - (p * p).sum(axis=1).mean()) / (loss.classes - 1))
    return np.array(values)


@singledispatch
def curvature_at(loss: Any, predictor: Array, noise: float = NOISE) -> Array:
    """h(u): φ''(u, y) averaged over the response that the design expects at u."""
    raise TypeError(f"no response is known for {type(loss).__name__}")


@curvature_at.register
def _(loss: MarginLoss, predictor: Array, noise: float = NOISE) -> Array:
    p = special.expit(predictor)
    return np.asarray(p * loss.curvature(predictor, 1.0) + (1.0 - p) * loss.curvature(predictor, -1.0))


@curvature_at.register
def _(loss: ResidualLoss, predictor: Array, noise: float = NOISE) -> Array:
    """The residual's law is the same at every u."""
    return np.full_like(predictor, _MASS @ loss.curvature(noise * _Z, 0.0))


@curvature_at.register(CanonicalLoss)
@curvature_at.register(CappedPoissonLoss)
def _(loss: Any, predictor: Array, noise: float = NOISE) -> Array:
    """A''(u) does not depend on the response."""
    return np.asarray(loss.curvature(predictor, 0.0))


@curvature_at.register
def _(loss: WeightedLoss, predictor: Array, noise: float = NOISE) -> Array:
    """Of a usual row, whose weight is nearly 1."""
    return curvature_at(loss.of, predictor, noise)


def residual_information(loss: ResidualLoss, noise: float) -> tuple[float, float]:
    """E φ'' and Var φ' for residuals of this standard deviation: H and K of one record, per xxᵀ."""
    slopes = loss.slope(noise * _Z, 0.0)
    return float(_MASS @ loss.curvature(noise * _Z, 0.0)), float(_MASS @ slopes**2 - (_MASS @ slopes) ** 2)


def second_moments(features: Features, average: Any) -> Array | None:
    """E[g(‖x‖²/E‖x‖²) x xᵀ] for the design's rows, the column of ones included if there is an intercept."""
    first, scale = _row_moments(features)
    if features.box is None:
        level = average(np.ones(1))
        return None if level is None else float(level[0]) * first
    rows = _box_rows(features)
    squares = (rows[:, : features.count] ** 2).sum(axis=1) / scale
    grid = np.linspace(0.0, squares.max(), 33)
    levels = average(grid)
    if levels is None:
        return None
    # g(v) varies little around its mean, so only the deviation is left to Monte Carlo: with many features the
    # smallest eigenvalue of a plain sample matrix would be far too small.
    weights = np.interp(squares, grid, levels)
    deviation = (rows * (weights - weights.mean())[:, None]).T @ rows / len(rows)
    moments: Array = weights.mean() * first + deviation
    return moments


def _row_moments(features: Features) -> tuple[Array, float]:
    """E[x xᵀ] exactly, and E‖x‖² of the features without the intercept."""
    if features.box is None:
        norm = features.data_norm or 0.0
        diagonal = np.full(features.count, norm**2 / max(features.count, 1))
        mean = np.zeros(features.count)
    else:
        lower, upper = _ends(features)
        mean, diagonal = (lower + upper) / 2, (upper - lower) ** 2 / 12
    moments = np.diag(diagonal) + np.outer(mean, mean)
    scale = float(np.trace(moments)) or 1.0
    if features.intercept:
        moments = np.block([[moments, mean[:, None]], [mean[None, :], np.ones((1, 1))]])
    return moments, scale


def _box_rows(features: Features) -> Array:
    """Uniform rows of the box and their mirror images about its centre."""
    lower, upper = _ends(features)
    half = lower + (upper - lower) * np.random.default_rng(PUBLIC_SEED).random((POINTS // 2, features.count))
    rows = np.concatenate([half, lower + upper - half])
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1) if features.intercept else rows


def _ends(features: Features) -> tuple[Array, Array]:
    lower, upper = (np.array(end, dtype=np.float64) for end in features.encoded_ends)
    return lower, upper
