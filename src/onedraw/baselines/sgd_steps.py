"""Stochastic gradient descent with clipped, noisy gradients: the algorithm, apart from who computes the gradients.

    θ ← θ − (η/B) ( Σ_{i in the batch} clip(∇ℓ(θ, x_i), C) + σC ξ ),        T steps from a public start

Abadi et al. (arXiv:1607.00133). A record is in a batch by its own coin of probability B/n, and the sum is divided by the public
B, never by how many are in it: the size of a batch is secret. So is what it would show in memory and time: every step has the same
public number of places (`capacity`), and one that more records come up for takes none of them, which keeps the promise (dp_sgd.md). An
empty batch is a step of noise alone. Coins and noise are drawn beforehand, from whatever generator is handed in (`drawn_steps`), so
that two engines can be given the same ones: compiled JAX (`by_jax`, many trainings side by side) and Opacus (`opacus_training`, one
after the other).

**What a record can do.** Rows and responses are as the model encodes them; a gradient that is no finite number counts as 0, any
other is scaled to a norm of at most C, both by that record and the published θ alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from onedraw.arrays import Array, Integers, Mask
from onedraw.errors import InvalidModel
from onedraw.models.compute import jax, jit, jnp
from onedraw.models.convex.classification import Logistic
from onedraw.models.convex.losses import array_module
from onedraw.models.convex.regression import LeastSquares
from onedraw.models.likelihood.likelihood_model import Linear, OneLayer
from onedraw.models.likelihood.regression import BinaryRegression, GaussianRegression, Network
from onedraw.samplers.randomness import seeded_generator

Gradients = Callable[[Array, Array, Array], Array]

SLIGHTLY_MORE = 1.0 + 1e-9
"""What a computed norm is multiplied by before a gradient is scaled: far above its rounding, so that no norm exceeds C."""

AT_ONCE = 2**24
"""Numbers that one call holds: of coins, of gradients in a step."""

SELDOM = 40.0 * math.log(2.0)
"""−log of how often a step may have too few places: accuracy depends on it, the promise does not."""


# ── what is minimised ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Objective:
    """ℓ(θ, x, y) = φ(m(x, θ), y)·``scale``: logistic for y = ±1, squares ½(u − y)², or the cross-entropy of class codes."""

    predictor: Linear | OneLayer
    loss: str
    size: int
    scale: float = 1.0

    def of_record(self, theta: Any, x: Any, y: Any) -> Any:
        u = self.predictor(theta, x[None])[0]
        if self.loss == "logistic":
            return self.scale * jnp.logaddexp(0.0, -y * u)
        if self.loss == "squares":
            return self.scale * 0.5 * (u - y) ** 2
        return self.scale * (jax.scipy.special.logsumexp(u) - u[y.astype(int)])

    def start(self, seed: int) -> Array:
        """Public: zeros for a linear predictor, uniform in ±1/√inputs from a public seed for a network, whose units must differ."""
        if isinstance(self.predictor, Linear):
            return np.zeros(self.size)
        net, first = self.predictor, self.predictor.hidden * self.predictor.width
        reach = np.r_[np.full(first, net.width**-0.5), np.full(self.size - first, net.hidden**-0.5)]
        return np.asarray(reach * seeded_generator(seed).uniform(-1.0, 1.0, self.size))


def objective_of(model: Any) -> Objective:
    """The negative log-likelihood of a model with a linear predictor or one hidden layer; others are refused."""
    if isinstance(model, Logistic | BinaryRegression) and getattr(model, "loss", "logistic") == "logistic":
        return Objective(Linear(), "logistic", model.dimension)
    if isinstance(model, LeastSquares):
        return Objective(Linear(), "squares", model.dimension)
    if not isinstance(model, GaussianRegression | Network):
        raise InvalidModel(
            f"DP-SGD here trains logistic and linear predictors and networks with one hidden layer, not {type(model).__name__}. "
            "Use Logistic, BinaryRegression, LeastSquares, GaussianRegression or Network."
        )
    if model.likelihood.samples_variance:
        raise InvalidModel(
            f"DP-SGD trains a predictor, and a {type(model).__name__} with variance_floor has a variance besides. Pass "
            "variance=…, a public number: it scales the loss."
        )
    predictor = model.predictor_function
    assert isinstance(predictor, Linear | OneLayer)
    if model.predicts == "number":
        assert model.variance is not None
        return Objective(predictor, "squares", model.dimension, 1.0 / model.variance)
    return Objective(predictor, "logistic" if model.likelihood.outputs == 1 else "classes", model.dimension)


# ── a step ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def clipped(gradients: Any, clip: Any) -> Any:
    """Each row scaled to a norm of at most ``clip``; a row with an entry that is no finite number is 0."""
    xp = array_module(gradients)
    known = xp.where(xp.isfinite(gradients).all(axis=1, keepdims=True), gradients, 0.0)
    largest = xp.maximum(xp.abs(known).max(axis=1, keepdims=True), 1e-300)
    direction = known / largest  # so that no square over- or underflows
    length = xp.maximum(xp.sqrt((direction**2).sum(axis=1, keepdims=True)), 1.0) * SLIGHTLY_MORE
    return direction * xp.minimum(largest, clip / length)


@dataclass(frozen=True)
class Numbers:
    """The public numbers of a step. Without noise ``deviation`` is 0, and without clipping ``clip`` is +∞."""

    clip: float
    deviation: float
    step_size: float

    @property
    def arguments(self) -> tuple[float, float, float]:
        return self.clip, self.deviation, self.step_size


def moved(theta: Any, gradients: Any, present: Any, noise: Any, numbers: Any) -> Any:
    """θ after a step; ``numbers`` are (C, σC, η/B)."""
    clip, deviation, step_size = numbers
    return theta - step_size * ((clipped(gradients, clip) * present[:, None]).sum(axis=0) + deviation * noise)


# ── coins and noise ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Steps:
    """Of T steps: ``rows`` (T, capacity) of records, those that are ``present``, and ``noise`` (T, d)."""

    rows: Integers
    present: Mask
    noise: Array

    def split(self, parts: int) -> tuple[Any, Any, Any]:
        """(parts, T/parts, …) of each."""
        return tuple(array.reshape(parts, -1, *array.shape[1:]) for array in (self.rows, self.present, self.noise))  # type: ignore[return-value]


def capacity(n: int, batch_size: int) -> int:
    """Places of a step: more than these of n coins come up with a probability below 2^−40 (Bernstein's inequality, variance ≤ B)."""
    return min(n, batch_size + math.ceil(SELDOM / 3.0 + math.sqrt((SELDOM / 3.0) ** 2 + 2.0 * SELDOM * batch_size)))


def drawn_steps(generator: Generator, *, n: int, batch_size: int, steps: int, size: int) -> Steps:
    """Coins and noise of ``steps`` steps. A coin is a whole number below n that is below B: its probability is B/n exactly."""
    at_once = max(1, AT_ONCE // n)
    found = [
        np.nonzero(generator.integers(n, size=(min(at_once, steps - first), n)) < batch_size)
        for first in range(0, steps, at_once)
    ]
    step = np.concatenate([part[0] + first * at_once for first, part in enumerate(found)])
    row = np.concatenate([part[1] for part in found])
    rows, present = placed(step, row, steps, capacity(n, batch_size))
    return Steps(rows, present, generator.standard_normal((steps, size)))


def placed(step: Integers, row: Integers, steps: int, places: int) -> tuple[Integers, Mask]:
    """Records in the places of their steps. Of a step with too few nobody is taken: were only some, a record's coin would decide
    about another's, and the promise would be broken."""
    counts = np.bincount(step, minlength=steps)
    taken = np.where(counts <= places, counts, 0)
    place = np.arange(len(step)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows, kept = np.zeros((steps, places), dtype=np.int64), place < taken[step]
    rows[step[kept], place[kept]] = row[kept]
    return rows, np.arange(places) < taken[:, None]


# ── engines ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def one_by_one(gradients: Gradients, X: Array, y: Array, start: Array, steps: Steps, numbers: Numbers) -> Array:
    """A training whose gradients come from outside, those of absent records too, θ (d,)."""
    theta = start
    for rows, present, noise in zip(steps.rows, steps.present, steps.noise, strict=True):
        theta = moved(theta, gradients(theta, X[rows], y[rows]), present, noise, numbers.arguments)
    return theta


def by_jax(objective: Objective, X: Any, y: Any, start: Array, steps: tuple[Any, Any, Any], numbers: Numbers) -> Array:
    """m trainings side by side, θ (m, d); ``steps`` are (m, T, …), X is (m, n, p), or (n, p) where all have the same records."""
    own = np.ndim(X) == 3
    return np.asarray(_trainings(objective, own, jnp.asarray(X), jnp.asarray(y), start, *steps, numbers.arguments))


@jit(0, 1)
def _trainings(
    objective: Objective, own: bool, X: Any, y: Any, start: Any, rows: Any, present: Any, noise: Any, numbers: Any
) -> Any:
    gradients = jax.vmap(jax.grad(objective.of_record), in_axes=(None, 0, 0))

    def training(X: Any, y: Any, rows: Any, present: Any, noise: Any) -> Any:
        def step(theta: Any, drawn: Any) -> Any:
            chosen, there, normal = drawn
            return moved(theta, gradients(theta, X[chosen], y[chosen]), there, normal, numbers), None

        return jax.lax.scan(step, start, (rows, present, noise))[0]

    records = 0 if own else None
    return jax.vmap(training, in_axes=(records, records, 0, 0, 0))(X, y, rows, present, noise)
