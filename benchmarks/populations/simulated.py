"""Simulate misspecified populations: 60,000 rows each, public bounds, a model that does not hold."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import numpy as np
from rule import SEED, Population, models_of
from scipy import special

RECORDS = 60_000

Draw = tuple[np.ndarray, np.ndarray, list[tuple[float, float]], str, tuple[float, float]]
"""Rows, responses, bounds of the columns, kind and bounds of the response."""

UNIT = [(-1.0, 1.0)] * 4
SLOPES = np.array([1.0, -0.5, 0.5, 0.25])


def rows(rng: np.random.Generator) -> np.ndarray:
    """Return four columns in [-1, 1]: uniform, truncated normal, skewed and a 0/1 column, the first two correlated."""
    first = rng.uniform(-1.0, 1.0, RECORDS)
    second = np.clip(0.3 * first + 0.35 * rng.standard_normal(RECORDS), -1.0, 1.0)
    third = np.clip(2.0 * rng.exponential(0.2, RECORDS) - 1.0, -1.0, 1.0)
    return np.column_stack([first, second, third, rng.uniform(size=RECORDS) < 0.3])


def labels(rng: np.random.Generator, probability: np.ndarray) -> np.ndarray:
    """Return 0/1 outcomes with these probabilities."""
    return (rng.uniform(size=len(probability)) < probability).astype(float)


def square(rng: np.random.Generator) -> Draw:
    """A least squares fit omits a square."""
    X = rows(rng)
    y = X @ SLOPES + 0.8 * X[:, 0] ** 2 + 0.6 * X[:, 2] ** 2 + 0.5 * rng.standard_normal(RECORDS)
    return X, np.clip(y, -5.0, 5.0), UNIT, "number", (-5.0, 5.0)


def square_label(rng: np.random.Generator) -> Draw:
    """A logistic fit omits a square."""
    X = rows(rng)
    y = labels(rng, special.expit(2.0 * X @ SLOPES + 2.0 * X[:, 0] ** 2 - 1.0))
    return X, y, UNIT, "label", (0.0, 1.0)


def interaction(rng: np.random.Generator) -> Draw:
    """A least squares fit omits interactions."""
    X = rows(rng)
    y = X @ SLOPES + X[:, 0] * X[:, 1] + 0.8 * X[:, 2] * X[:, 3] + 0.5 * rng.standard_normal(RECORDS)
    return X, np.clip(y, -5.0, 5.0), UNIT, "number", (-5.0, 5.0)


def interaction_label(rng: np.random.Generator) -> Draw:
    """A logistic fit omits an interaction."""
    X = rows(rng)
    y = labels(rng, special.expit(2.0 * X @ SLOPES + 3.0 * X[:, 0] * X[:, 3] - 0.5))
    return X, y, UNIT, "label", (0.0, 1.0)


def probit(rng: np.random.Generator) -> Draw:
    """The outcome has a probit link."""
    X = rows(rng)
    return X, labels(rng, special.ndtr(1.5 * X @ SLOPES)), UNIT, "label", (0.0, 1.0)


def complementary_log_log(rng: np.random.Generator) -> Draw:
    """The outcome has a complementary log-log link."""
    X = rows(rng)
    y = labels(rng, -np.expm1(-np.exp(1.5 * X @ SLOPES - 0.5)))
    return X, y, UNIT, "label", (0.0, 1.0)


def heteroscedastic(rng: np.random.Generator) -> Draw:
    """The variance of the residuals grows with two columns."""
    X = rows(rng)
    y = X @ SLOPES + (0.2 + 0.8 * np.abs(X[:, 0]) + 0.5 * X[:, 3]) * rng.standard_normal(RECORDS)
    return X, np.clip(y, -8.0, 8.0), UNIT, "number", (-8.0, 8.0)


def log_normal_wages(rng: np.random.Generator) -> Draw:
    """Yearly wages in natural units: multiplicative effects, skewed residuals, bounds far out."""
    education = np.clip(np.round(13.0 + 3.0 * rng.standard_normal(RECORDS)), 0, 22)
    experience = rng.uniform(0.0, 45.0, RECORDS)
    female = labels(rng, np.full(RECORDS, 0.48))
    level = 9.3 + 0.08 * education + 0.012 * experience - 0.25 * female
    y = np.exp(level + 0.7 * rng.standard_normal(RECORDS))
    X = np.column_stack([education, experience, female])
    return X, np.clip(y, 0.0, 500_000.0), [(0.0, 22.0), (0.0, 50.0), (0.0, 1.0)], "number", (0.0, 500_000.0)


def label_noise(rng: np.random.Generator) -> Draw:
    """One outcome in ten is recorded wrongly."""
    X = rows(rng)
    y = labels(rng, special.expit(3.0 * X @ SLOPES))
    wrong = rng.uniform(size=RECORDS) < 0.1
    return X, np.where(wrong, 1.0 - y, y), UNIT, "label", (0.0, 1.0)


def overdispersed(rng: np.random.Generator) -> Draw:
    """Negative binomial counts: the variance is the mean plus 0.8 of its square; the cap is 20."""
    X = rows(rng)
    mean = np.exp(0.8 * X @ SLOPES + 0.4) * rng.gamma(1.25, 0.8, RECORDS)
    return X, np.minimum(rng.poisson(mean), 20).astype(float), UNIT, "count", (0.0, 20.0)


def strong(rng: np.random.Generator) -> Draw:
    """Effects of 7, -5 and 3 on the log odds."""
    X = rows(rng)[:, [0, 1, 3]]
    y = labels(rng, special.expit(X @ np.array([7.0, -5.0, 3.0]) - 1.0))
    return X, y, UNIT[:3], "label", (0.0, 1.0)


def rare(rng: np.random.Generator) -> Draw:
    """An outcome of about 2%."""
    X = rows(rng)
    y = labels(rng, special.expit(1.2 * X @ SLOPES + 0.8 * X[:, 0] * X[:, 1] - 4.1))
    return X, y, UNIT, "label", (0.0, 1.0)


DRAWS: dict[str, Callable[[np.random.Generator], Draw]] = {
    "sim_square": square,
    "sim_square_label": square_label,
    "sim_interaction": interaction,
    "sim_interaction_label": interaction_label,
    "sim_probit": probit,
    "sim_cloglog": complementary_log_log,
    "sim_heteroscedastic": heteroscedastic,
    "sim_log_normal": log_normal_wages,
    "sim_label_noise": label_noise,
    "sim_overdispersed": overdispersed,
    "sim_strong": strong,
    "sim_rare": rare,
}


def simulated_populations() -> Iterator[Population]:
    """Yield the simulated populations; each has its own seed."""
    for name, draw in DRAWS.items():
        X, y, bounds, kind, (y_lower, y_upper) = draw(np.random.default_rng([SEED, zlib.crc32(name.encode())]))
        X = X.astype(float)
        lower, upper = np.array(bounds).T
        yield Population(
            name=name, group="simulated", source="simulated", X=X, y=y, columns=[f"x{j + 1}" for j in range(X.shape[1])],
            lower=lower, upper=upper, categories=[], response="y", kind=kind, y_lower=y_lower, y_upper=y_upper,
            models=models_of(kind, y), table=name,
        )  # fmt: skip
