"""Training and test sets of the network figures: simulated by the assumed model, or a random split of a UCI table.

Simulated, as the published code of Jewson et al. does it: features N(0, I) clipped to ±4 and mapped to [0, 1]; a network of ten ReLU
units with N(0, s²) weights and biases, s = 1 in the code and 3 in the text; a response N(u, σ²) with log σ² ~ N(0, 1), or a label of
log-odds u; 5,000 further rows to test. Smaller n are the first rows of larger ones.

UCI: a tenth of the rows is held out; every column, and a response that is a number, is brought to [0, 1] by the range of the whole
table, which stands for a public one (the published code takes that of the training rows, and leaves responses as they are). Constant
columns are left out. Read with the standard library alone.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from experiments.data import data_file
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

HIDDEN = 10
TEST_ROWS = 5000
SIMULATED = "simulated"

FILES = {
    "boston": "boston_housing.csv", "kin8nm": "kin8nm.csv", "naval": "naval_propulsion.csv.gz", "wine": "wine_quality_red.csv",
    "abalone": "abalone.csv", "adult": "adult_train.csv.gz", "banknote": "banknote_authentication.csv",
    "vertebral": "vertebral_column_2C.csv",
}  # fmt: skip
RESPONSES = {
    "boston": "MEDV", "kin8nm": "y", "naval": "gt_turbine_decay_state_coefficient", "wine": "quality", "abalone": "rings",
    "adult": "income", "banknote": "class", "vertebral": "class",
}  # fmt: skip
POSITIVE: dict[str, Callable[[str], bool]] = {
    "abalone": lambda rings: float(rings) > 10, "adult": lambda income: ">50K" in income, "banknote": lambda label: label == "1",
    "vertebral": lambda label: label == "AB",
}  # fmt: skip
"""Of a classification: the responses that count as +1."""

LEFT_OUT = {"naval": {"gt_compressor_decay_state_coefficient"}}
"""The other response of the naval table."""

NUMBERS_OF_ADULT = {"age", "education_num", "hours_per_week", "capital_gain", "capital_loss"}
"""Those that the published code uses (errata 8)."""


class Split(NamedTuple):
    """Rows in [0, 1] and responses (numbers, or ±1) to train with and to test with."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def split(data: str, task: str, seed: int, *, n: int, features: int, spread: float) -> Split:
    """A seed's split with n rows to train with; ``features`` and ``spread`` are of simulated ones alone."""
    if data == SIMULATED:
        return simulated(task, seed, n=n, features=features, spread=spread)
    X, y = table(data)
    shuffled = np.random.default_rng(seed).permutation(len(y))
    held, kept = np.split(shuffled, [len(y) // 10])
    return Split(X[kept[:n]], y[kept[:n]], X[held], y[held])


def training_rows(data: str) -> int:
    """All that a split leaves to train with."""
    count = len(table(data)[1])
    return count - count // 10


# ── simulated ────────────────────────────────────────────────────────────────────────────────────────────────────


def simulated(task: str, seed: int, *, n: int, features: int, spread: float) -> Split:
    """Parameters, test rows and training rows, in this order, so that a larger n adds rows and changes none."""
    generator = np.random.default_rng([seed, features])
    first, biases = spread * generator.standard_normal((features, HIDDEN)), spread * generator.standard_normal(HIDDEN)
    second, bias = spread * generator.standard_normal(HIDDEN), spread * generator.standard_normal()
    deviation = np.exp(0.5 * generator.standard_normal())

    def rows(count: int) -> tuple[Array, Array]:
        X = (np.clip(generator.standard_normal((count, features)), -4.0, 4.0) + 4.0) / 8.0
        u = np.maximum(X @ first + biases, 0.0) @ second + bias
        if task == "regression":
            return X, u + deviation * generator.standard_normal(count)
        return X, np.where(generator.random(count) < special.expit(u), 1.0, -1.0)

    test = rows(TEST_ROWS)
    blocks = [rows(50) for _ in range(-(-n // 50))]
    X, y = (np.concatenate(parts)[:n] for parts in zip(*blocks, strict=True))
    return Split(X, y, *test)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def table(data: str) -> tuple[Array, Array]:
    """(rows in [0, 1], responses in [0, 1] or ±1) of a UCI table."""
    columns = _columns(data)
    response = columns.pop(RESPONSES[data])
    chosen = [name for name in columns if _used(data, name)]
    X = np.column_stack([_numbers(columns[name]) for name in chosen])
    X = X[:, np.ptp(X, axis=0) > 0.0]
    if data in POSITIVE:
        return _scaled(X), np.array([1.0 if POSITIVE[data](value) else -1.0 for value in response])
    return _scaled(X), _scaled(np.array(response, dtype=np.float64))


def _columns(data: str) -> dict[str, list[str]]:
    file = data_file(FILES[data])
    opened: Any = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    return {
        name.strip(): [value.strip() for value in column]
        for name, column in zip(head, zip(*rows, strict=True), strict=True)
    }


def _used(data: str, name: str) -> bool:
    return name in NUMBERS_OF_ADULT if data == "adult" else name not in LEFT_OUT.get(data, ())


def _numbers(values: list[str]) -> Array:
    """One column of numbers, or an indicator of each category."""
    try:
        return np.array(values, dtype=np.float64)[:, None]
    except ValueError:
        return np.array([[value == one for one in sorted(set(values))] for value in values], dtype=np.float64)


def _scaled(values: Array) -> Array:
    low, high = values.min(axis=0), values.max(axis=0)
    return np.asarray((values - low) / (high - low))
