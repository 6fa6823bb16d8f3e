"""The six data sets of the estimator table, with public bounds and the same splits for every library.

Bounds are round numbers from what the columns mean, written down here, never computed from the rows: angles in degrees
or radians, shares in percent, sizes in the units of the study. Plain NumPy, so that every environment can import it.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(os.environ.get("ONEDRAW_DATA", Path(__file__).parents[3] / "shared" / "data"))
EPSILONS = (0.5, 1.0, 5.0)
DELTA = 1e-5
SPLITS = 10


class Table(NamedTuple):
    """Rows, responses (0 and 1, or numbers), and what is declared of them."""

    name: str
    X: np.ndarray
    y: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    response: tuple[float, float] | None
    """The declared range of a number; None for two classes."""


# column → (low, high), in the order the features are used
BANKNOTE = {"variance": (-10, 10), "skewness": (-20, 20), "curtosis": (-10, 20), "entropy": (-10, 5)}
ABALONE = {
    "length": (0, 1), "diameter": (0, 1), "height": (0, 0.5), "whole_weight": (0, 3), "shucked_weight": (0, 1.5),
    "viscera_weight": (0, 1), "shell_weight": (0, 1.2),
}  # fmt: skip
VERTEBRAL = {
    "pelvic_incidence": (0, 130), "pelvic_tilt": (-10, 50), "lumbar_lordosis_angle": (0, 130),
    "sacral_slope": (0, 130), "pelvic_radius": (60, 170), "grade_of_spondylolisthesis": (-20, 150),
}  # fmt: skip
BOSTON = {
    "CRIM": (0, 100), "ZN": (0, 100), "INDUS": (0, 30), "CHAS": (0, 1), "NOX": (0.3, 0.9), "RM": (3, 9),
    "AGE": (0, 100), "DIS": (0, 13), "RAD": (1, 24), "TAX": (150, 750), "PTRATIO": (12, 22), "B": (0, 400),
    "LSTAT": (0, 40),
}  # fmt: skip
WINE = {
    "fixed_acidity": (4, 16), "volatile_acidity": (0, 2), "citric_acid": (0, 1), "residual_sugar": (0, 16),
    "chlorides": (0, 0.65), "free_sulfur_dioxide": (0, 80), "total_sulfur_dioxide": (0, 300),
    "density": (0.985, 1.005), "pH": (2.5, 4.5), "sulphates": (0, 2), "alcohol": (8, 15),
}  # fmt: skip
KIN8NM = {f"theta{joint}": (-np.pi / 2, np.pi / 2) for joint in range(1, 9)}


def tables() -> list[Table]:
    """All six, classification first."""
    return [
        _table("banknote", "banknote_authentication.csv", BANKNOTE, lambda row: row["class"] == "1"),
        _table("abalone", "abalone.csv", ABALONE, lambda row: int(row["rings"]) > 10),
        _table("vertebral", "vertebral_column_2C.csv", VERTEBRAL, lambda row: row["class"] == "AB"),
        _table("boston", "boston_housing.csv", BOSTON, lambda row: float(row["MEDV"]), (0, 50)),
        _table("wine", "wine_quality_red.csv", WINE, lambda row: float(row["quality"]), (0, 10)),
        _table("kin8nm", "kin8nm.csv", KIN8NM, lambda row: float(row["y"]), (0, 1.5)),
    ]


def _table(name, file, bounds, response, interval=None) -> Table:
    with open(FOLDER / file, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    X = np.array([[float(row[column]) for column in bounds] for row in rows])
    y = np.array([float(response(row)) for row in rows])
    lower, upper = (np.array(ends, dtype=float) for ends in zip(*bounds.values(), strict=True))
    return Table(name, X, y, lower, upper, interval)


def splits(table: Table, count: int = SPLITS):
    """Random cuts into four fifths and one fifth, the same in every environment; the peers have the first ten."""
    for seed in range(count):
        order = np.random.RandomState(seed).permutation(len(table.y))
        cut = len(order) * 4 // 5
        yield seed, order[:cut], order[cut:]


def scaled(table: Table) -> np.ndarray:
    """Features clamped and scaled to [−1, 1] by their declared ranges: for the libraries that do not do it themselves."""
    middle, half = (table.upper + table.lower) / 2, (table.upper - table.lower) / 2
    return (np.clip(table.X, table.lower, table.upper) - middle) / half


def area_under_curve(y: np.ndarray, scores: np.ndarray) -> float:
    """P(score of a positive > score of a negative), ties counted half."""
    positive, negative = scores[y == 1], scores[y == 0]
    above = (positive[:, None] > negative).mean() + 0.5 * (positive[:, None] == negative).mean()
    return float(above)


def root_mean_square(y: np.ndarray, predicted: np.ndarray) -> float:
    return float(np.sqrt(np.mean((y - predicted) ** 2)))


def quality(table: Table, test: np.ndarray, predicted: np.ndarray) -> float:
    """AUC for classes, RMSE (responses clamped to their range by the library or not) for numbers."""
    measure = area_under_curve if table.response is None else root_mean_square
    return measure(table.y[test], predicted)
