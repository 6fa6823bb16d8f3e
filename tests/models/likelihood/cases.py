"""Models with a likelihood, and a search for the pair of records and the parameter at which their β-losses differ most.

The search knows nothing of the proofs: a population of parameters and pairs of raw records is moved at random, at many
scales at once, and kept where the difference grew. Everything passes through the model's own encoding and its own
coordinates, so a bound that is not enforced there would be exceeded.
"""

from __future__ import annotations

import os
import secrets
from typing import Any

import numpy as np

from onedraw.models import (
    BinaryRegression,
    GammaRegression,
    Gaussian,
    GaussianRegression,
    Logistic,
    NegativeBinomialRegression,
    Network,
    OwnDensity,
    PoissonRegression,
    Predictor,
    Softmax,
    StudentTRegression,
    register_density,
    register_predictor,
)

SEED = int(os.environ.get("ONEDRAW_TEST_SEED") or secrets.randbits(63))

WIDE = Gaussian(scale=3.0)


def wave(theta: Any, x: Any) -> Any:
    """A user's own predictor."""
    from onedraw.models.compute import jnp

    return theta[0] * jnp.sin(theta[1] * x[0]) + theta[2] * x[1]


def log_laplace(predictor: Any, response: Any) -> Any:
    return -abs(response - predictor) - np.log(2.0)


def log_laplace_power(beta: Any, predictor: Any) -> Any:
    """∫f^β = 2^{1−β}/β."""
    from onedraw.models.compute import jnp

    return (1.0 - beta) * np.log(2.0) - jnp.log(beta) + 0.0 * predictor


register_predictor("wave", wave)
register_density("laplace", log_laplace, log_laplace_power)

# Each model with the responses to search among: labels, or the scale of numbers.
ATTAINED = [
    (BinaryRegression(2), "signs"),
    (Logistic(2, data_norm=1.5, prior=WIDE), "signs"),
    (Softmax(2, classes=[0, 1, 2], data_norm=1.5, prior=WIDE), "codes"),
    (PoissonRegression(2), "counts"),
    (NegativeBinomialRegression(2, dispersion=1.5), "counts"),
    (GaussianRegression(2, variance_floor=0.01), "numbers"),
    (GaussianRegression(2, variance=0.25), "numbers"),
    (StudentTRegression(2, df=3.0, variance_floor=0.04), "numbers"),
    (GammaRegression(2, rate_cap=4.0), "durations"),
]
OTHERS = [
    (GammaRegression(2, rate_cap=4.0, shape=2.5), "durations"),
    (Network(2, hidden=3), "signs"),
    (Network(2, hidden=3, task="regression", variance_floor=0.01), "numbers"),
    (Predictor(wave, 3, likelihood=OwnDensity("laplace", bound=0.5), features=2, name="wave"), "numbers"),
]
CASES = ATTAINED + OTHERS


def title(case: Any) -> str:
    model = case[0] if isinstance(case, tuple) else case
    return type(model).__name__ if hasattr(model, "likelihood") else str(case)


def responses(kind: str, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    match kind:
        case "signs":
            return generator.integers(0, 2, shape).astype(float)
        case "codes":
            return generator.integers(0, 3, shape).astype(float)
        case "counts":
            return generator.integers(0, 12, shape).astype(float)
        case "durations":
            return generator.exponential(2.0, shape)
        case _:
            return 3.0 * generator.standard_normal(shape)


def largest_difference(model: Any, kind: str, beta: float, *, rounds: int = 600, population: int = 192) -> float:
    """The largest ℓ_β(θ, z) − ℓ_β(θ, z') the search finds."""
    from onedraw.models.compute import jax

    kernel, generator = model.beta_kernel, np.random.default_rng(SEED)
    one = jax.vmap(lambda theta, X, y: kernel.losses(theta, X, y, beta))
    losses = jax.jit(one)

    def difference(theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        encoded = model.summarise((X.reshape(-1, 2), y.reshape(-1)))
        found = np.asarray(losses(theta, encoded.X.reshape(len(theta), 2, -1), encoded.y.reshape(-1, 2)))
        return found[:, 0] - found[:, 1]

    theta = 3.0 * model.draw_prior(generator, population)
    X, y = 2.0 * generator.standard_normal((population, 2, 2)), responses(kind, generator, (population, 2))
    best = difference(theta, X, y)
    for turn in range(rounds):
        share = 0.5 if turn < rounds // 4 else 0.2  # first all together, then one or two numbers at a time
        moved = theta + _moves(generator, theta.shape, share)
        rows = X + _moves(generator, X.shape, share)
        values = _moved_responses(kind, generator, y, share)
        now = difference(moved, rows, values)
        better = now > best
        theta[better], X[better], y[better], best[better] = moved[better], rows[better], values[better], now[better]
    assert np.isfinite(best).all()
    return float(best.max())


def _moves(generator: np.random.Generator, shape: tuple[int, ...], share: float) -> np.ndarray:
    """Steps of all sizes, one for each number, most of them none."""
    size = 10.0 ** generator.uniform(-3.5, 1.0, shape)
    return size * generator.standard_normal(shape) * (generator.random(shape) < share)


def _moved_responses(kind: str, generator: np.random.Generator, y: np.ndarray, share: float) -> np.ndarray:
    if kind in ("numbers", "durations"):
        moved = y + _moves(generator, y.shape, share)
        return np.abs(moved) if kind == "durations" else moved
    fresh = responses(kind, generator, y.shape)
    return np.where(generator.random(y.shape) < share, fresh, y)
