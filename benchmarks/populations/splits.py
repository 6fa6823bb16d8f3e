"""Keep each table once, and split the tables into a half to derive constants from and a half held out."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
from rule import SEED

SEEN = (
    "AER_CPS1988", "AER_HealthInsurance", "AER_NMES1988", "AER_DoctorVisits", "ggplot2_diamonds", "ISLR_Default",
    "ISLR_Caravan", "COUNT_rwm5yr", "survival_flchain", "medicaldata_covid_testing",
)  # fmt: skip
"""Tables that earlier work on these intervals used: they and their relatives never belong to the half held out."""

MAX_SIZE_DIFFERENCE = 0.01
MIN_VALUES = 10
QUANTILES = np.linspace(0.01, 0.99, 99)
QUANTILE_TOLERANCE = 0.02
MIN_SHARED_COLUMNS = 0.5
MIN_SHARED_NAMES, MIN_SHARED_NAME_COUNT = 0.75, 3


def profiles(table: pd.DataFrame) -> list[np.ndarray]:
    """Return the quantiles of the standardized number columns with at least ten values."""
    quantiles: list[np.ndarray] = []
    for name in table:
        if pd.api.types.is_numeric_dtype(table[name]) and not pd.api.types.is_bool_dtype(table[name]):
            values = table[name].dropna().to_numpy(dtype=float)
            distinct = len(np.unique(values))
            if distinct >= MIN_VALUES and not np.array_equal(np.sort(values), np.arange(1, len(values) + 1)):
                quantiles.append(np.quantile((values - values.mean()) / values.std(), QUANTILES))
    return quantiles


def are_duplicates(first_size: int, first: list[np.ndarray], second_size: int, second: list[np.ndarray]) -> bool:
    """Return whether two tables have nearly as many rows and the same distributions in half of their number columns."""
    if not first or not second or abs(first_size - second_size) > MAX_SIZE_DIFFERENCE * max(first_size, second_size):
        return False
    equal = sum(any(np.max(np.abs(a - b)) <= QUANTILE_TOLERANCE for b in second) for a in first)
    return equal >= max(1, MIN_SHARED_COLUMNS * min(len(first), len(second)))


def names_of(table: pd.DataFrame) -> frozenset[str]:
    """Return the letters of the column names in lower case."""
    return frozenset(re.sub("[^a-z]", "", str(name).lower()) for name in table)


def drop_duplicates(tables: Mapping[str, pd.DataFrame], given: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Return the tables that repeat a given one, an earlier one, or a larger one of their package, with the reason."""
    dropped: dict[str, str] = {}
    distinct = {name: (len(table), profiles(table)) for name, table in given.items()}
    for name, table in tables.items():
        profile = (len(table), profiles(table))
        package = name.partition("_")[0]
        rivals = [other for other in tables if other != name and other.partition("_")[0] == package]
        same = [other for other in rivals if set(tables[other].columns) == set(table.columns)]
        larger = [other for other in same if (-len(tables[other]), other) < (-len(table), name)]
        repeated = [other for other, rival in distinct.items() if are_duplicates(*profile, *rival)]
        if larger or repeated:
            dropped[name] = f"repeats {(repeated or larger)[0]}"
        else:
            distinct[name] = profile
    return dropped


def families(tables: Mapping[str, pd.DataFrame]) -> list[list[str]]:
    """Return groups of tables that share at least three quarters, and three, of the smaller one's column names."""
    groups: list[list[str]] = []
    names = {name: names_of(table) for name, table in tables.items()}
    for name in sorted(tables):
        near = [group for group in groups if any(related(names[name], names[other]) for other in group)]
        merged = sorted([name, *(other for group in near for other in group)])
        groups = [*(group for group in groups if group not in near), merged]
    return sorted(groups)


def related(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether two tables share at least three, and three quarters, of the smaller one's column names."""
    shared = len(first & second)
    return shared >= MIN_SHARED_NAME_COUNT and shared >= MIN_SHARED_NAMES * min(len(first), len(second))


def split(tables: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Return the half of each table: families in a random order are held out until they have half of all tables."""
    groups = families(tables)
    fresh = [group for group in groups if not set(group) & set(SEEN)]
    halves = dict.fromkeys(tables, "derive")
    held_out = 0
    for position in np.random.default_rng(SEED).permutation(len(fresh)):
        group = fresh[position]
        if held_out + len(group) <= (len(tables) + 1) // 2:
            held_out += len(group)
            halves |= dict.fromkeys(group, "hold-out")
    return halves
