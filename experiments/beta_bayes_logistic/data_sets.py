"""Records for logistic regression: simulated as Jewson et al. published it, and four tables of the UCI repository.

A split holds rows in [0, 1] without the constant column, labels ±1, and further rows to predict. For simulated records the true
parameter is known; for a table the reference is the ridge fit of scikit-learn's default strength to all its training rows, with whose
signs estimates are compared. A table's ranges are read from the table, as the paper does: in a release they have to be declared.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from experiments.beta_bayes_simulation.simulate import simulate, subset
from experiments.data import data_file
from experiments.simulated_fits import simulated_minima
from numpy.typing import NDArray
from scipy import special

import onedraw as od

Array = NDArray[np.float64]

UNSEEN = 2000
"""Simulated rows to predict."""

FILES = {
    "abalone": "abalone.csv",
    "adult": "adult_train.csv.gz",
    "banknote": "banknote_authentication.csv",
    "vertebral": "vertebral_column_2C.csv",
}
ADULT = ["age", "education_num", "hours_per_week", "capital_gain", "capital_loss"]
"""The features that the published code keeps; its text says all (errata 8)."""


class Split(NamedTuple):
    """θ of ``truth`` has the slopes first and the intercept last, as onedraw's models."""

    X: Array
    y: Array
    unseen_X: Array
    unseen_y: Array
    truth: Array


def simulated(seed: int, n: int, d: int) -> Split:
    """n of the 10,000 rows that the seed makes, and rows that none of them is."""
    X, labels, theta = simulate(seed, spread=9.0, d=d)
    rows, taken = subset(X, labels, n)
    generator = np.random.default_rng([seed, d])
    unseen = (np.clip(generator.standard_normal((UNSEEN, d - 1)), -4.0, 4.0) + 4.0) / 8.0
    chances = special.expit(theta[0] + unseen @ theta[1:])
    classes = np.where(generator.uniform(size=UNSEEN) < chances, 1.0, -1.0)
    return Split(rows[:, 1:], taken, unseen, classes, np.append(theta[1:], theta[0]))


def of_table(seed: int, name: str, n: int | None) -> Split:
    """Nine tenths of the table, n of them (all: None), and the tenth to predict; features scaled to [0, 1] by the nine tenths."""
    X, labels = read(name)
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(labels))
    unseen, known = np.split(order, [len(labels) // 10])
    low, high = X[known].min(axis=0), X[known].max(axis=0)
    scaled = np.clip((X - low) / (high - low), 0.0, 1.0)
    truth = _ridge(scaled[known], labels[known])
    chosen = known if n is None else _both_classes(generator, known, labels, n)
    return Split(scaled[chosen], labels[chosen], scaled[unseen], labels[unseen], truth)


def _both_classes(generator: np.random.Generator, known: Any, labels: Array, n: int) -> Any:
    while True:
        chosen = generator.choice(known, n, replace=False)
        if len(np.unique(labels[chosen])) == 2:
            return chosen


def _ridge(X: Array, y: Array) -> Array:
    """The minimum of Σ loss + ½‖θ‖²."""
    model = od.models.Logistic(X.shape[1], bounds=(0.0, 1.0), prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(od.baselines.OutputPerturbation(), model, od.PureDP(1.0), n=len(y))  # for its minimum alone
    return np.asarray(simulated_minima(plan, X[None], y[None])[0])


@cache
def read(name: str) -> tuple[Array, Array]:
    """Features as numbers and labels ±1 of a table."""
    import pandas as pd

    table = pd.read_csv(data_file(FILES[name]))
    if name == "abalone":
        return _numbers(pd.get_dummies(table.drop(columns="rings"), drop_first=True)), _signs(table["rings"] > 10)
    if name == "adult":
        return _numbers(table[ADULT]), _signs(table["income"].str.strip() == ">50K")
    positive = "AB" if name == "vertebral" else 1
    return _numbers(table.drop(columns="class")), _signs(table["class"] == positive)


def _numbers(table: Any) -> Array:
    return np.asarray(table.to_numpy(dtype=np.float64))


def _signs(positive: Any) -> Array:
    return np.where(positive.to_numpy(), 1.0, -1.0)
