"""The data sets that experiments read: found under $ONEDRAW_DATA, or in ../shared/data beside the clone; never copied."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from onedraw.errors import WrongCall

UCI = "https://archive.ics.uci.edu/dataset"
SOURCES = {
    "abalone.csv": f"{UCI}/1/abalone",
    "adult_train.csv.gz": f"{UCI}/2/adult (adult.data)",
    "banknote_authentication.csv": f"{UCI}/267/banknote+authentication",
    "vertebral_column_2C.csv": f"{UCI}/212/vertebral+column (column_2C)",
    "boston_housing.csv": "https://www.openml.org/d/531 (boston)",
    "kin8nm.csv": "https://www.openml.org/d/189 (kin8nm)",
    "naval_propulsion.csv.gz": f"{UCI}/316/condition+based+maintenance+of+naval+propulsion+plants",
    "wine_quality_red.csv": f"{UCI}/186/wine+quality (winequality-red.csv)",
    "mnist_3v8_train.csv.gz": "https://www.openml.org/d/554 (mnist_784: the training digits 3 and 8)",
    "cps_wages.csv.gz": "https://www.census.gov/data/datasets/time-series/demo/cps/cps-asec.2024.html (experiments/feasibility/README.md: the columns)",
}
"""File → where it is from. Plain CSV with a header row, original values, original order."""


def folder() -> Path:
    """$ONEDRAW_DATA, or ../shared/data beside the clone."""
    declared = os.environ.get("ONEDRAW_DATA")
    return Path(declared) if declared else Path(__file__).resolve().parents[2] / "shared" / "data"


def data_file(name: str) -> Path:
    """Where the file is; refused, with its source, where it is not."""
    place = folder() / name
    if not place.is_file():
        raise WrongCall(
            f"The data file {name} is not in {place.parent}. Get it from {SOURCES.get(name, 'its source')} as CSV with a "
            "header row, and put it there or into the folder that ONEDRAW_DATA names."
        )
    return place


def check_data(names: Iterable[str]) -> None:
    for name in names:
        data_file(name)
