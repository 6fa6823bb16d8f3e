"""Read the given populations from the folder that ONEDRAW_DATA names: bounds and columns written down, not computed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from rule import MIN_SHARE, Population, models_of

FOLDER = Path(os.environ.get("ONEDRAW_DATA", Path(__file__).parents[3] / "shared" / "data"))

Bounds = dict[str, tuple[float, float]]

CPS: Bounds = {"educ_years": (0, 22), "experience": (0, 50), "female": (0, 1)}
CPS_SQUARE: Bounds = {**CPS, "experience_sq": (0, 2500)}
ADULT: Bounds = {
    "age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99), "capital_gain": (0, 100_000),
    "capital_loss": (0, 4_500),
}  # fmt: skip
ADULT_12 = ("sex", "race", "married", "workclass")
"""Columns beside the five numbers; `married` is "Married-civ-spouse" or not, `workclass` has four groups."""
ADULT_ALL = ("workclass", "marital_status", "occupation", "relationship", "race", "sex", "native_country")
"""All categories but education, which education_num repeats."""
SECTORS = {
    "Private": "private", "Federal-gov": "government", "Local-gov": "government", "State-gov": "government",
    "Self-emp-inc": "self-employed", "Self-emp-not-inc": "self-employed",
}  # fmt: skip
ABALONE: Bounds = {
    "length": (0, 1), "diameter": (0, 1), "height": (0, 1.2), "whole_weight": (0, 3),
    "shucked_weight": (0, 1.5), "viscera_weight": (0, 1), "shell_weight": (0, 1.2),
}  # fmt: skip
WINE: Bounds = {
    "fixed_acidity": (4, 16), "volatile_acidity": (0, 2), "citric_acid": (0, 1), "residual_sugar": (0, 16),
    "chlorides": (0, 0.65), "free_sulfur_dioxide": (0, 80), "total_sulfur_dioxide": (0, 300),
    "density": (0.985, 1.005), "pH": (2.5, 4.5), "sulphates": (0, 2), "alcohol": (8, 15),
}  # fmt: skip
VISITS: Bounds = {
    "gender": (0, 1), "age": (0, 1), "income": (0, 1.5), "illness": (0, 5), "reduced": (0, 14), "health": (0, 12),
    "private": (0, 1), "freepoor": (0, 1), "freerepat": (0, 1), "nchronic": (0, 1), "lchronic": (0, 1),
}  # fmt: skip
FLCHAIN: Bounds = {
    "age": (50, 105), "sex": (0, 1), "sample.yr": (1995, 2003), "kappa": (0, 25), "lambda": (0, 30), "mgus": (0, 1),
}  # fmt: skip


def read(file: str) -> pd.DataFrame:
    """Return a table of the data folder."""
    return pd.read_csv(FOLDER / file)


def declare(
    name: str, source: str, table: pd.DataFrame, bounds: Bounds, categories: tuple[str, ...],
    response: str, y: np.ndarray, kind: str, y_bounds: tuple[float, float] = (0.0, 1.0),
) -> Population:  # fmt: skip
    """Return the population with these columns, clamped to their bounds, and categories against the commonest level."""
    blocks, columns, spans = [], [], []
    lower, upper = [], []
    for column, (low, high) in bounds.items():
        values = table[column]
        if not pd.api.types.is_numeric_dtype(values):
            levels = sorted(values.unique())
            if len(levels) > 2:
                raise ValueError(f"{column} has more than two levels. List it as a category.")
            values = values == levels[1]
        blocks.append(np.clip(values.to_numpy(dtype=float), low, high))
        columns.append(column)
        lower.append(low)
        upper.append(high)
    for column in categories:
        shares = table[column].value_counts(normalize=True)
        levels = sorted(level for level in shares.index[1:] if shares[level] >= MIN_SHARE)
        if len(levels) > 1:
            spans.append((len(blocks), len(blocks) + len(levels)))
        for level in levels:
            blocks.append((table[column] == level).to_numpy(dtype=float))
            columns.append(f"{column}={level}")
            lower.append(0.0)
            upper.append(1.0)
    y = np.clip(np.asarray(y, dtype=float), *y_bounds)
    return Population(
        name=name, group="given", source=source, X=np.column_stack(blocks), y=y, columns=columns,
        lower=np.array(lower, dtype=float), upper=np.array(upper, dtype=float), categories=spans, response=response,
        kind=kind, y_lower=y_bounds[0], y_upper=y_bounds[1], models=models_of(kind, y), table=source,
    )  # fmt: skip


def given_populations() -> Iterator[Population]:
    """Yield the given populations."""
    file = "cps_wages.csv.gz"
    cps = read(file)
    for label, bounds in (("3", CPS), ("4", CPS_SQUARE)):
        wage = cps["log_wage"]
        yield declare(f"cps_log_wage_{label}", file, cps, bounds, (), "log_wage", wage, "number", (0, 15))
        above = cps["WSAL_VAL"] > 50_000
        yield declare(f"cps_above_50000_{label}", file, cps, bounds, (), "wage > 50,000", above, "label")

    file = "adult_train.csv.gz"
    adult = read(file)
    rich = adult["income"] == ">50K"
    grouped = adult.assign(
        married=np.where(adult["marital_status"] == "Married-civ-spouse", "yes", "no"),
        workclass=adult["workclass"].map(SECTORS).fillna("other"),
    )
    # Occupation has the unknown ones too; a second column for them would leave a handful of records of one outcome apart.
    paid = adult.replace({"workclass": {"?": "Private", "Never-worked": "Private", "Without-pay": "Private"}})
    yield declare("adult_5", file, adult, ADULT, (), "income > 50K", rich, "label")
    yield declare("adult_12", file, grouped, ADULT, ADULT_12, "income > 50K", rich, "label")
    yield declare("adult_all", file, paid, ADULT, ADULT_ALL, "income > 50K", rich, "label")

    file = "abalone.csv"
    abalone = read(file)
    rings = abalone["rings"]
    yield declare("abalone_rings", file, abalone, ABALONE, ("sex",), "rings", rings, "number", (0, 30))
    yield declare("abalone_old", file, abalone, ABALONE, ("sex",), "rings > 10", rings > 10, "label")

    file = "kin8nm.csv"
    kin = read(file)
    angles = {f"theta{joint}": (-math.pi / 2, math.pi / 2) for joint in range(1, 9)}
    yield declare("kin8nm", file, kin, angles, (), "y", kin["y"], "number", (0, 1.5))

    file = "wine_quality_red.csv"
    wine = read(file)
    yield declare("wine_red", file, wine, WINE, (), "quality", wine["quality"], "number", (0, 10))

    file = "doctor_visits.csv.gz"
    visits = read(file)
    yield declare("doctor_visits", file, visits, VISITS, (), "visits", visits["visits"], "count", (0, 9))

    file = "flchain.csv.gz"
    chains = read(file)
    yield declare("flchain", file, chains, FLCHAIN, (), "death", chains["death"] == 1, "label")
