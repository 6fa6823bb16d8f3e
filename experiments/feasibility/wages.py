"""Wages of the Current Population Survey 2024, the regressions that are run on them, and least squares without privacy.

The columns are within bounds that a data holder would declare from what they are, and powers of experience are of the
bounded experience. So the regression without privacy and the private one are about the same rows.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from experiments.data import data_file
from numpy.typing import NDArray

Array = NDArray[np.float64]

FILE = "cps_wages.csv.gz"
RESPONSE = "log_wage"
INTERCEPT = "(intercept)"

BOUNDS: dict[str, tuple[float, float]] = {
    "educ_years": (0.0, 22.0), "experience": (0.0, 50.0), "experience_sq": (0.0, 50.0**2),
    "experience_cu": (0.0, 50.0**3), "female": (0.0, 1.0), RESPONSE: (0.0, 15.0),
}  # fmt: skip
"""Lower and upper end of each column."""

BINARY = "female"
"""The only 0/1 column."""

WHOLE = "whole"
"""Size of a sample that is the table itself."""

NORMAL = 1.959963984540054
"""How many standard errors a 95 % interval reaches."""


class Regression(NamedTuple):
    """A group of people (0 men, 1 women, None everyone) and the columns beside the intercept."""

    female: int | None
    columns: tuple[str, ...]

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the coefficients, the intercept last."""
        return (*self.columns, INTERCEPT)


QUADRATIC = ("educ_years", "experience", "experience_sq")
CUBIC = (*QUADRATIC, "experience_cu")
REGRESSIONS = {
    "women cubic": Regression(1, CUBIC),
    "men cubic": Regression(0, CUBIC),
    "women quadratic": Regression(1, QUADRATIC),
    "men quadratic": Regression(0, QUADRATIC),
    "everyone": Regression(None, (*QUADRATIC, BINARY)),
}
"""The cubic ones are the paper's regression without its race column, which the table does not have."""


class Rows(NamedTuple):
    """Columns and responses of a sample, in their own units."""

    X: Array
    y: Array


class LeastSquares(NamedTuple):
    """Least squares without privacy: coefficients, sandwich standard errors (HC0), root mean squared residual."""

    estimate: Array
    errors: Array
    residual: float


@cache
def read(regression: str) -> Rows:
    """Return the rows of a regression's whole group."""
    import pandas as pd

    asked, table = REGRESSIONS[regression], pd.read_csv(data_file(FILE))
    if asked.female is not None:
        table = table[table[BINARY] == asked.female]
    years = table["experience"].clip(*BOUNDS["experience"])
    table = table.assign(experience=years, experience_sq=years**2, experience_cu=years**3)
    rows = np.column_stack([table[name].clip(*BOUNDS[name]) for name in (*asked.columns, RESPONSE)]).astype(np.float64)
    return Rows(rows[:, :-1], rows[:, -1])


def count(regression: str, size: str) -> int:
    """Return the number of records of a sample."""
    return len(read(regression).y) if size == WHOLE else int(size)


def draw(regression: str, size: str, seed: int) -> Rows:
    """Return a sample with replacement, the same for each method and ε, or the whole group itself."""
    rows = read(regression)
    if size == WHOLE:
        return rows
    generator = np.random.default_rng([seed, zlib.crc32(regression.encode()), int(size)])
    chosen = generator.integers(0, len(rows.y), int(size))
    return Rows(rows.X[chosen], rows.y[chosen])


def fit(rows: Rows) -> LeastSquares:
    """Return least squares, computed in columns divided by their largest size."""
    design = np.column_stack([rows.X, np.ones(len(rows.y))])
    unit = np.abs(design).max(axis=0)
    scaled = design / unit
    estimate = np.linalg.solve(scaled.T @ scaled, scaled.T @ rows.y)
    residual = rows.y - scaled @ estimate
    influence = np.linalg.solve(scaled.T @ scaled, (scaled * residual[:, None]).T)
    errors = np.sqrt(np.einsum("ij,ij->i", influence, influence))
    return LeastSquares(estimate / unit, errors / unit, float(np.sqrt(np.mean(residual**2))))


@cache
def fit_whole(regression: str) -> LeastSquares:
    """Return least squares of the whole group, which samples are drawn from."""
    return fit(read(regression))


def residual_of(rows: Rows, estimate: Array) -> float:
    """Return the root mean squared residual of coefficients, the intercept last."""
    return float(np.sqrt(np.mean((rows.y - rows.X @ estimate[:-1] - estimate[-1]) ** 2)))


def schema_of(regression: str) -> dict[str, Any]:
    """Return the schema that a data holder would write."""
    columns: dict[str, Any] = {}
    for name in (*REGRESSIONS[regression].columns, RESPONSE):
        low, high = BOUNDS[name]
        columns[name] = {"kind": "number", "lower": low, "upper": high, "missing": low}
        if name == BINARY:
            columns[name] = {"kind": "binary", "levels": ["0", "1"], "missing": "0"}
    return {"dataset": "cps-wages", "columns": columns}
