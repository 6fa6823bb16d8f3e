"""Load a population that build.py wrote: rows in natural units, responses, and what a data holder would declare."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Loaded(NamedTuple):
    """A population: rows and responses of its full table, declared bounds, and the fits of the full table."""

    name: str
    group: str
    X: np.ndarray
    """Columns in natural units, without a column of ones."""
    y: np.ndarray
    """Numbers, counts, or labels 0 and 1."""
    columns: list[str]
    lower: np.ndarray
    upper: np.ndarray
    categories: list[tuple[int, int]]
    """(start, stop) of the 0/1 columns that code one category against its commonest level."""
    kind: str
    """"number", "count" or "label"."""
    y_lower: float
    y_upper: float
    truth: dict[str, np.ndarray]
    """Model ("linear", "median", "logistic", "poisson") to coefficients in natural units, the intercept last."""


def load(name: str, folder: str | Path | None = None) -> Loaded:
    """Return a population from `folder`, by default the one that ONEDRAW_POPULATIONS names."""
    place = folder if folder is not None else os.environ.get("ONEDRAW_POPULATIONS")
    if place is None:
        raise SystemExit("No folder of populations is named.\nSet ONEDRAW_POPULATIONS or pass `folder`.")
    path = Path(place) / f"{name}.npz"
    if not path.is_file():
        raise SystemExit(f"The population {name} is not in the folder.\nBuild it with benchmarks/populations/build.py.")
    with np.load(path) as stored:
        return Loaded(
            name=name,
            group=str(stored["group"]),
            X=stored["X"],
            y=stored["y"],
            columns=[str(column) for column in stored["columns"]],
            lower=stored["lower"],
            upper=stored["upper"],
            categories=[(int(start), int(stop)) for start, stop in stored["categories"]],
            kind=str(stored["kind"]),
            y_lower=float(stored["y_lower"]),
            y_upper=float(stored["y_upper"]),
            truth={str(model): stored[f"truth_{model}"] for model in stored["models"]},
        )
