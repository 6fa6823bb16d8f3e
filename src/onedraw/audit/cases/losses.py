"""Losses, written down again from their definitions, and how a record of a linear predictor enters them.

`loss_of` is φ(u, y) as the papers have it; `bernoulli_loss` and `gaussian_loss` are β-losses. `slope_of` is φ' and φ'' of one record, turned so that its slope is steepest
at −∞: a margin loss as it stands, a loss of errors in units of its threshold, a count at its largest value. Rows are
encoded here a second time, and the pairs that pull furthest apart along one row are made of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from onedraw import models
from onedraw.arrays import Array
from onedraw.errors import WrongCall
from onedraw.models.convex.regression import QUANTILE_WIDTH

from .case import Pair, no_formula

Loss = Callable[[Array, float], Array]


def loss_of(model: Any) -> Loss:
    """φ(u, y)."""
    match model:
        case models.Logistic(loss="logistic"):
            return lambda u, y: np.logaddexp(0.0, -y * u)
        case models.Logistic(loss="exp-linear", exponent=1.0):
            return lambda u, y: np.where(y * u >= 0, 0.5 * np.exp(-np.maximum(y * u, 0.0)), 0.5 - 0.5 * y * u)
        case models.Hinge():
            return lambda u, y: np.maximum(0.0, 1.0 - y * u)
        case models.HuberisedHinge(width=h):
            return lambda u, y: np.where(y * u > 1 - h, np.maximum(1 - y * u, 0) ** 2 / (2 * h), 1 - y * u - h / 2)
        case models.HuberRegression(threshold=tau):
            return lambda u, y: np.where(np.abs(y - u) <= tau, (y - u) ** 2 / 2, tau * np.abs(y - u) - tau**2 / 2)
        case models.Quantile(level=q, smoothing=None):
            return lambda u, y: np.where(y >= u, q * (y - u), (1.0 - q) * (u - y))
        case models.LeastSquares():
            return lambda u, y: (y - u) ** 2 / 2
        case models.ConvexLoss(name="linear"):
            return lambda u, y: u
    raise no_formula(
        "the losses of Logistic, Hinge, HuberisedHinge, HuberRegression, Quantile and LeastSquares, not of", model
    )


def bernoulli_loss(margin: Array, beta: float) -> Array:
    """ℓ_β of a label with log-odds ``margin`` in its favour."""
    log_p, log_q = -np.logaddexp(0.0, -margin), -np.logaddexp(0.0, margin)
    power = np.exp((beta - 1.0) * log_p)
    return -power / (beta - 1.0) + (np.exp(beta * log_p) + np.exp(beta * log_q)) / beta


def gaussian_loss(residual: Array, variance: Array, beta: float) -> Array:
    """ℓ_β of a normal response: f^{β−1} = (2πσ²)^{−(β−1)/2} e^{−(β−1)r²/2σ²}, ∫f^β = (2πσ²)^{−(β−1)/2} β^{−1/2}."""
    height = (2.0 * math.pi * variance) ** (-(beta - 1.0) / 2.0)
    bell = np.exp(-(beta - 1.0) * residual**2 / (2.0 * variance))
    return np.asarray(height * (beta**-1.5 - bell / (beta - 1.0)))


@dataclass(frozen=True)
class Slope:
    """A loss of one record, turned so that its steepest slope, −``steepest``, is at u = −∞."""

    slope: Callable[[Array], Array]
    curvature: Callable[[Array], Array]
    steepest: float
    most: float
    """The largest curvature."""
    information: float
    """The largest curvature expected under the model; of several classes the largest Frobenius norm of its matrix."""
    kinks: tuple[float, ...] = ()
    """Where the curvature jumps; it is largest there, and the slope steepest."""
    variability: float | None = None
    """The largest square of a slope expected under the model; None where no model is assumed."""


def slope_of(model: Any) -> Slope:
    """φ' and φ'' from the definition of the loss."""
    match model:
        case models.Logistic(loss="logistic"):
            return Slope(
                lambda u: -special.expit(-u), lambda u: special.expit(u) * special.expit(-u), 1.0, 0.25, 0.25, variability=0.25
            )  # fmt: skip
        case models.Logistic(loss="exp-linear", exponent=power):
            return _exp_linear(power)
        case models.Softmax():  # the own class leads one other, the rest far behind: a logistic loss of √2·u
            root = math.sqrt(2.0)
            return Slope(
                lambda u: -root * special.expit(-root * u),
                lambda u: 2.0 * special.expit(root * u) * special.expit(-root * u), root, 0.5, 0.5,
            )  # fmt: skip
        case models.HuberisedHinge(width=h):
            return _straight(lambda u: -np.clip((1.0 - u) / h, 0.0, 1.0), 1.0, (1.0 - h, 1.0))
        case models.HuberRegression():  # in measured coordinates, in units of its threshold
            return _straight(lambda u: np.clip(u, -1.0, 1.0), 1.0, (-1.0, 1.0), rise=2.0)
        case models.LogCoshRegression():
            return Slope(np.tanh, lambda u: 1.0 - np.tanh(u) ** 2, 1.0, 1.0, 1.0)
        case models.Quantile(level=level) if model.fit_loss is not None:
            h, steep = QUANTILE_WIDTH, max(level, 1.0 - level)
            return _straight(lambda u: np.clip((u + h) / (2 * h), 0.0, 1.0) - steep, steep, (-h, h))
        case models.CountRegression(largest=largest):
            return _counts(largest)
    raise no_formula(
        "the fits of Logistic, Softmax, HuberisedHinge, LogCoshRegression, Quantile, CountRegression, not of", model
    )


def _straight(slope: Callable[[Array], Array], steepest: float, kinks: tuple[float, float], rise: float = 1.0) -> Slope:
    """A slope that rises evenly between two kinks, by 1 or by ``rise``, and nowhere else."""
    bend = rise / (kinks[1] - kinks[0])
    return Slope(slope, lambda u: np.where((u > kinks[0]) & (u < kinks[1]), bend, 0.0), steepest, bend, bend, kinks)


def _exp_linear(power: float) -> Slope:
    """−q·s, s = ((1 + e^{−|u|})/2)^power; s'/s = −power·sign(u)·expit(−|u|)."""

    def even(u: Array) -> Array:
        return np.asarray((0.5 * (1.0 + np.exp(-np.abs(u)))) ** power)

    def curvature(u: Array) -> Array:
        falling = special.expit(u) + power * np.where(u > 0.0, 1.0, -1.0) * special.expit(-np.abs(u))
        return np.asarray(special.expit(-u) * even(u) * falling)

    return Slope(lambda u: -special.expit(-u) * even(u), curvature, 0.5**power, (1.0 + power) / 4.0, 0.25, (0.0,), 0.25)


def _counts(largest: int) -> Slope:
    """E min(Poisson(e^u), Y) − Y for a record at the largest count: −Σ_{k<Y} (Y − k)·P(k)."""
    below = np.arange(largest)

    def chances(u: Array) -> tuple[Array, Array]:
        rate = np.exp(np.clip(u, -700.0, 30.0))
        logs = below * np.log(rate)[..., None] - rate[..., None] - special.gammaln(below + 1.0)
        return rate, np.exp(logs)

    def slope(u: Array) -> Array:
        return np.asarray(-(chances(u)[1] * (largest - below)).sum(axis=-1))

    def curvature(u: Array) -> Array:
        rate, chance = chances(u)
        return np.asarray(rate * chance.sum(axis=-1))

    most = float(curvature(np.log(np.linspace(1e-3, 2.0 * largest + 2.0, 20_001))).max())
    return Slope(slope, curvature, float(largest), most, most, variability=most)


def of_classes(model: Any) -> bool:
    """Whether responses are classes: ±1 for two of them."""
    return model.predicts in ("probabilities", "margin")


def records_of(model: Any, records: Any) -> tuple[Array, Array]:
    """Encoded rows, and responses: ±1 for classes, numbers otherwise, 0 where there are none."""
    rows, responses = records if isinstance(records, tuple) else (records, None)
    encoded = encoded_rows(model, rows)
    if responses is None:
        return encoded, np.zeros(len(encoded))
    if of_classes(model):
        positive = 1 if model.classes is None else model.classes[1]
        return encoded, np.array([1.0 if label == positive else -1.0 for label in responses])
    return encoded, np.asarray(responses, dtype=np.float64)


def along(model: Any, records: Any, row: Array) -> list[tuple[float, float, float]]:
    """Each different record once: its multiple of the row, its response, how often it stands there."""
    rows, responses = records_of(model, records)
    scales = rows @ row / float(row @ row)
    if not np.allclose(rows, np.outer(scales, row), atol=1e-12):
        raise WrongCall("The rows of a pair must be multiples of one row, or their law is not one of a single number.")
    unique, counts = np.unique(np.stack([scales, responses], axis=1), axis=0, return_counts=True)
    return [(*record, float(count)) for record, count in zip(unique.tolist(), counts, strict=True)]


def encoded_rows(model: Any, rows: Any) -> Array:
    """Rows with the intercept's 1; on [−1, 1] where the model scales them. They lie within the bounds already."""
    features, rows = model.features, np.asarray(rows, dtype=np.float64)
    if features.scaled:
        lower, upper = (np.array(end) for end in features.ends)
        middle = (lower + upper) / 2 if features.intercept else 0.0
        half = (upper - lower) / 2 if features.intercept else np.maximum(np.abs(lower), np.abs(upper))
        rows = (rows - middle) / half
    return np.column_stack([rows, np.ones(len(rows))]) if features.intercept else np.asarray(rows)


def centred(prior: Any, dimension: int) -> bool:
    """Whether a prior lies around 0 with one scale for all coordinates."""
    return len(set(prior.precision(dimension))) == 1 and not np.any(prior.location(dimension) != 0.0)


def longest_row(model: Any, *, unbounded: float = 40.0) -> Array:
    """An admissible row of the largest norm the model declares; of norm ``unbounded`` where it declares none."""
    features = model.features
    if features.data_norm is not None:
        return np.full(features.count, features.data_norm / math.sqrt(features.count)) * (1.0 - 1e-12)
    if features.box is None:
        return np.full(features.count, unbounded / math.sqrt(features.count))
    lower, upper = (np.array(end) for end in features.ends)
    return np.where(np.abs(upper) >= np.abs(lower), upper, lower)


def flips(model: Any, n: int, *, unbounded: float = 40.0, both_sides: bool = False) -> tuple[Pair, ...]:
    """One record's response flipped, all rows the longest one; the others half and half, or agreeing with one side.

    Where all others agree, the posterior lies where their losses are flat and adds no curvature to the prior's.
    """
    row = longest_row(model, unbounded=unbounded)
    if isinstance(model, models.ConvexLoss):
        others = np.array([row if index % 2 else -row for index in range(n - 1)]).reshape(n - 1, len(row))
        return (Pair("one row turned round", np.vstack([others, row]), np.vstack([others, -row])),)
    if of_classes(model):
        no, yes = (0, 1) if model.classes is None else model.classes[:2]
    else:  # whose losses pull furthest apart
        yes = 1.0 if model.response is None else model.response.interval[1]
        no = -yes
    X = np.tile(row, (n, 1))
    crowds = {"balanced": [no if index % 2 else yes for index in range(n - 1)], "agreeing": [yes] * (n - 1)}
    if both_sides:
        crowds["against"] = [no] * (n - 1)
    chosen = crowds.items() if n > 1 else [("none", [])]
    return tuple(
        Pair(f"one response flipped, others {name}", (X, [*others, yes]), (X, [*others, no])) for name, others in chosen
    )
