"""DP-SGD as Jewson et al. train it, thousands of trainings side by side: Poisson batches of about 100, clip 1, Adam at rate 0.01.

    sum ← Σ_{i in the batch} clip(∇ℓ(θ, x_i), 1) + σξ,        θ ← θ − Adam(sum/B)   or   θ − 0.01·sum/B

The text says a learning rate of 10⁻²; the published code gives it to Adam (Kingma and Ba 2015), which is much the stronger: what a
step does with a noisy sum costs no privacy. Plain steps stand beside it. Objective, clip, coins and noise are those of the library's
`baselines.DPSGD` (`sgd_steps`); every training of a seed sees the same batches, noise and starting weights, whatever its ε.

σ comes from noise.json, which `noise.py` writes with the accountant: for one record replaced, as everything here counts, and for one
left out, as the paper counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.beta_bayes_networks.tables import HIDDEN, Array, Split

import onedraw as od
from onedraw.baselines.sgd_steps import Objective, clipped, drawn_steps, objective_of
from onedraw.models.compute import jax, jnp

BATCH, RATE, CLIP, DELTA = 100, 0.01, 1.0, 1e-5
NOISE = Path(__file__).with_name("noise.json")
RELATIONS = ("replace-one", "add/remove")


def epochs(epsilon: float) -> int:
    """14 + ⌊ε⌋, as the text has it; the code says 15 + ⌊ε⌋ (errata 8)."""
    return 14 + math.floor(epsilon)


def batch_size(n: int) -> int:
    return min(BATCH, n)


def steps(n: int, epsilon: float) -> int:
    return math.ceil(epochs(epsilon) * n / batch_size(n))


class Noise(NamedTuple):
    """σ of a training, and the ε that it promises when one record is replaced."""

    multiplier: float
    epsilon: float


@cache
def noise(n: int, epsilon: float, relation: str) -> Noise:
    stored = json.loads(NOISE.read_text(encoding="utf-8"))
    return Noise(*stored[relation][f"{n} {epsilon:g}"])


class Setting(NamedTuple):
    """A training: for how long, with how much noise (0: the twin, which does not clip either), and by Adam or not."""

    steps: int
    multiplier: float
    adam: bool


def model_of(task: str, features: int) -> Any:
    """What is trained: a squared error (u − y)², or the logistic loss."""
    known: dict[str, Any] = {"variance": 0.5} if task == "regression" else {}
    return od.models.Network(features=features, hidden=HIDDEN, task=task, activation="relu", bounds=(0.0, 1.0), **known)


def trained(task: str, splits: Sequence[Split], seeds: Sequence[int], settings: Sequence[Setting]) -> Array:
    """θ (seed, setting, d). Starting weights are uniform in ±1/√inputs, as those of PyTorch's layers."""
    n, width = splits[0].X.shape
    model = model_of(task, width)
    objective, longest = objective_of(model), max(one.steps for one in settings)
    encoded = [model.summarise((one.X, one.y)) for one in splits]
    generators = [np.random.default_rng([seed, n]) for seed in seeds]
    starts = np.stack([_start(objective, generator) for generator in generators])
    drawn = [
        drawn_steps(generator, n=n, batch_size=batch_size(n), steps=longest, size=objective.size)
        for generator in generators
    ]
    X, y = (np.stack([getattr(one, name) for one in encoded]) for name in ("X", "y"))
    rows, present, normal = (np.stack([getattr(one, name) for one in drawn]) for name in ("rows", "present", "noise"))
    numbers = [np.array(column) for column in zip(*map(_numbers, settings), strict=True)]
    return np.asarray(_trainings(objective, batch_size(n), X, y, starts, rows, present, normal, *numbers))


def _start(objective: Objective, generator: np.random.Generator) -> Array:
    net: Any = objective.predictor
    first = net.hidden * net.width
    reach = np.r_[np.full(first, net.width**-0.5), np.full(objective.size - first, net.hidden**-0.5)]
    return np.asarray(reach * generator.uniform(-1.0, 1.0, objective.size))


def _numbers(setting: Setting) -> tuple[float, float, int, bool]:
    """(clip, deviation of the noise, steps, Adam)."""
    private = setting.multiplier > 0.0
    return CLIP if private else math.inf, setting.multiplier * CLIP, setting.steps, setting.adam


@partial(jax.jit, static_argnums=(0, 1))
def _trainings(
    objective: Objective, batch: int, X: Any, y: Any, starts: Any, rows: Any, present: Any, normal: Any, *numbers: Any
) -> Any:
    gradients = jax.vmap(jax.grad(objective.of_record), in_axes=(None, 0, 0))

    def training(X: Any, y: Any, start: Any, rows: Any, present: Any, normal: Any, numbers: Any) -> Any:
        clip, deviation, length, adam = numbers

        def step(state: Any, drawn: Any) -> Any:
            (theta, mean, square), (number, chosen, there, noise) = state, drawn
            summed = (clipped(gradients(theta, X[chosen], y[chosen]), clip) * there[:, None]).sum(axis=0)
            average = (summed + deviation * noise) / batch
            mean, square = 0.9 * mean + 0.1 * average, 0.999 * square + 0.001 * average**2
            corrected = mean / (1.0 - 0.9 ** (number + 1.0)), square / (1.0 - 0.999 ** (number + 1.0))
            move = jnp.where(adam, corrected[0] / (jnp.sqrt(corrected[1]) + 1e-8), average)
            return (jnp.where(number < length, theta - RATE * move, theta), mean, square), None

        zero = jnp.zeros_like(start)
        return jax.lax.scan(step, (start, zero, zero), (jnp.arange(len(rows)), rows, present, normal))[0][0]

    of_settings = jax.vmap(training, in_axes=(None, None, None, None, None, None, 0))
    return jax.vmap(of_settings, in_axes=(0, 0, 0, 0, 0, 0, None))(X, y, starts, rows, present, normal, numbers)
