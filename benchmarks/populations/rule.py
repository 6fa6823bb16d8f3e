"""Turn a table into populations by a fixed rule: columns, response, kind, bounds and checks (see rule.md)."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from fits import NoConvergence, condition_number, fit_logistic, fit_poisson, r_squared
from scipy import stats

MIN_RECORDS, MAX_RECORDS = 2_000, 60_000
MAX_MISSING = 0.2
MAX_LEVELS = 8
MIN_SHARE = 0.01
"""A level, or a value of a 0/1 column, that fewer records have is merged into the commonest one."""
MAX_COLUMNS, MAX_WIDE_COLUMNS, MIN_COLUMNS = 8, 30, 2
MAX_R_SQUARED = 0.99
MAX_RANK_CORRELATION = 0.99
MAX_CONDITION = 50.0
MAX_COUNT_VALUES, MAX_COUNT_MEAN = 40, 10.0
MAX_MEDIAN_TIES = 0.1
"""Median regression is left out if more records share one value of the response."""
MAX_CODES = 100
"""Columns whose name ends in "id" are codes if they have more values."""
SEED = 20261119

OUTCOMES = (
    "deny", "denied", "approve", "approved", "default", "reject", "released", "respond", "response", "call",
    "vote", "switch", "purchase", "churn", "smoker", "smoke", "abuse", "relapse", "death", "dead", "died",
    "status", "result", "fail", "failure", "participation", "lfp", "citationissued", "headache", "visits",
    "docvis", "numvisit", "doctorvisits", "ofp", "los", "children", "kids", "patents", "arrests", "narr",
    "claims", "accidents", "murders", "insurance", "employed", "employ", "worked", "wage", "wages", "weekinc",
    "earnings", "earns", "ahe", "salary", "income", "realinc", "price", "fare", "rent", "expenditure",
    "expenditures", "expend", "medexp", "cost", "costs", "sales", "score", "colgpa", "gpa", "math", "read",
    "test", "vocab", "vocabulary", "rating", "grade", "durat", "duration", "spell", "hours", "work", "nettfa",
    "re", "inc",
)  # fmt: skip
"""Words for what tables of this kind are collected to explain: events, counts, money, scores, times. The first one that
is the stem of a column's name decides."""


class Dropped(Exception):
    """A table that the rule leaves out; the message names the clause."""


@dataclass
class Column:
    """Encoded columns of one column of a table."""

    name: str
    names: list[str]
    values: np.ndarray
    is_category: bool


@dataclass
class Population:
    """Rows, responses and what is declared of them."""

    name: str
    group: str
    source: str
    X: np.ndarray
    y: np.ndarray
    columns: list[str]
    lower: np.ndarray
    upper: np.ndarray
    categories: list[tuple[int, int]]
    response: str
    kind: str
    y_lower: float
    y_upper: float
    models: list[str]
    table: str = ""
    truth: dict[str, np.ndarray] = field(default_factory=dict)


def stem(name: Any) -> str:
    """Return the letters of a column's name in lower case, without a leading log, ln or l if a listed word remains."""
    letters = re.sub("[^a-z]", "", str(name).lower())
    for prefix in ("log", "ln", "l"):
        if letters not in OUTCOMES and letters.removeprefix(prefix) in OUTCOMES:
            return letters.removeprefix(prefix)
    return letters


def complete_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the complete rows once the columns with too many missing values are dropped."""
    table = table.loc[:, [column for column in table if table[column].isna().mean() <= MAX_MISSING]]
    table = table.dropna()
    if len(table) < MIN_RECORDS:
        raise Dropped("fewer than 2,000 complete rows")
    return table


def is_code(name: Any, values: np.ndarray) -> bool:
    """Return whether a number column identifies records or groups of them."""
    if not np.array_equal(values, np.round(values)):
        return False
    count = len(np.unique(values))
    letters = re.sub("[^a-z]", "", str(name).lower())
    return count == len(values) or (
        count > MAX_CODES and (letters.endswith("id") or letters in ("nr", "idcode", "puma"))
    )


def are_years(values: np.ndarray) -> bool:
    """Return whether all values are calendar years."""
    return bool(values.min() >= 1800 and values.max() <= 2100 and np.array_equal(values, np.round(values)))


def encode(name: Any, series: pd.Series) -> Column | None:
    """Return a column as numbers: itself, 0/1, or 0/1 columns against the commonest level; None if it is not usable."""
    if pd.api.types.is_bool_dtype(series):
        series = series.astype(int)
    if pd.api.types.is_datetime64_any_dtype(series) or pd.api.types.is_timedelta64_dtype(series):
        return None
    if pd.api.types.is_numeric_dtype(series):
        values = series.to_numpy(dtype=float)
        if not np.isfinite(values).all() or is_code(name, values):
            return None
        levels, counts = np.unique(values, return_counts=True)
        if counts.max() > (1.0 - MIN_SHARE) * len(values):
            return None
        if len(levels) == 2:
            return Column(str(name), [f"{name}={levels[1]:g}"], (values == levels[1]).astype(float)[:, None], False)
        return Column(str(name), [str(name)], values[:, None], False)
    texts = series.astype(str).to_numpy()
    levels, counts = np.unique(texts, return_counts=True)
    if not 2 <= len(levels) <= MAX_LEVELS:
        return None
    base = levels[np.argmax(counts)]
    common = [
        level for level, count in zip(levels, counts, strict=True) if count >= MIN_SHARE * len(texts) and level != base
    ]
    if len(levels) == 2 and common:
        common = [levels[1]]
    if not common:
        return None
    values = np.column_stack([texts == level for level in common]).astype(float)
    return Column(str(name), [f"{name}={level}" for level in common], values, len(common) > 1)


def response_values(series: pd.Series) -> np.ndarray | None:
    """Return the response as numbers (two levels: the later one is 1); None if the column cannot be a response."""
    if pd.api.types.is_datetime64_any_dtype(series) or pd.api.types.is_timedelta64_dtype(series):
        return None
    levels = np.unique(series.astype(str)) if not pd.api.types.is_numeric_dtype(series) else np.unique(series)
    if len(levels) < 2:
        return None
    if len(levels) == 2:
        texts = series.astype(str) if not pd.api.types.is_numeric_dtype(series) else series
        return (texts == levels[1]).to_numpy(dtype=float)
    if not pd.api.types.is_numeric_dtype(series):
        return None
    values = series.to_numpy(dtype=float)
    unusable = not np.isfinite(values).all() or is_code(series.name, values) or are_years(values)
    return None if unusable else values


def choose_response(table: pd.DataFrame) -> str:
    """Return the name of the response: the first listed word among the stems, or the first column that can be one."""
    usable = [name for name in table if response_values(table[name]) is not None]
    if not usable:
        raise Dropped("no column can be a response")
    stems = [stem(name) for name in usable]
    for word in OUTCOMES:
        if word in stems:
            return usable[stems.index(word)]
    return usable[0]


def kind_of(y: np.ndarray) -> str:
    """Return "label", "count" or "number" for the values of a response."""
    levels = np.unique(y)
    if len(levels) == 2:
        return "label"
    whole = levels.min() >= 0 and np.array_equal(levels, np.round(levels))
    return "count" if whole and len(levels) <= MAX_COUNT_VALUES and y.mean() < MAX_COUNT_MEAN else "number"


def models_of(kind: str, y: np.ndarray) -> list[str]:
    """Return the models that are fitted to a response of this kind."""
    if kind != "number":
        return ["logistic" if kind == "label" else "poisson"]
    ties = np.unique(y, return_counts=True)[1].max() / len(y)
    return ["linear", "median"] if ties <= MAX_MEDIAN_TIES else ["linear"]


def round_outward(values: np.ndarray) -> tuple[float, float]:
    """Return the minimum and maximum, rounding outward to two significant digits; calendar years as they are."""
    low, high = float(values.min()), float(values.max())
    if are_years(values):
        return low, high
    return _two_digits(low, math.floor), _two_digits(high, math.ceil)


def _two_digits(value, rounding):
    if value == 0.0:
        return 0.0
    digits = 1 - math.floor(math.log10(abs(value)))
    return float(f"{rounding(round(value * 10.0**digits, 9)) * 10.0**-digits:.12g}")


def predictors(table: pd.DataFrame, response: str, y: np.ndarray) -> list[Column]:
    """Return the encoded columns that may explain the response, in table order, without repetitions."""
    columns, basis = [], [np.ones(len(y)) / math.sqrt(len(y))]
    for name in table:
        if name == response or stem(name) == stem(response):
            continue
        column = encode(name, table[name])
        if column is None:
            continue
        if len(np.unique(y)) > 2 and len(column.names) == 1:
            rank = stats.spearmanr(column.values[:, 0], y).statistic
            if abs(rank) > MAX_RANK_CORRELATION:
                continue
        elif len(column.names) == 1 and abs(np.corrcoef(column.values[:, 0], y)[0, 1]) > MAX_RANK_CORRELATION:
            continue
        independent = []
        for values, label in zip(column.values.T, column.names, strict=True):
            centered = values - values.mean()
            rest = centered.copy()
            for _ in range(2):
                for direction in basis:
                    rest -= direction * (direction @ rest)
            if rest @ rest > (1.0 - MAX_R_SQUARED) * (centered @ centered):
                basis.append(rest / math.sqrt(rest @ rest))
                independent.append((values, label))
        if independent:
            matrix = np.column_stack([values for values, _ in independent])
            columns.append(
                Column(
                    column.name,
                    [label for _, label in independent],
                    matrix,
                    column.is_category and len(independent) > 1,
                )
            )
    return columns


def take_columns(columns: list[Column], most: int) -> list[Column]:
    """Return the columns, in order, whose encoding together has at most `most` columns; one that does not fit is skipped."""
    selection: list[Column] = []
    for column in columns:
        if sum(len(other.names) for other in selection) + len(column.names) <= most:
            selection.append(column)
    return selection


def make_population(name: str, source: str, y: np.ndarray, response: str, columns: list[Column]) -> Population:
    """Return the population of these columns, or raise `Dropped` if the table fails a check."""
    X = np.column_stack([column.values for column in columns])
    kind = kind_of(y)
    categories, start = [], 0
    for column in columns:
        stop = start + len(column.names)
        if column.is_category:
            categories.append((start, stop))
        start = stop
    check(X, y, kind)
    bounds = [round_outward(values) for values in X.T]
    y_lower, y_upper = (0.0, 1.0) if kind == "label" else round_outward(y)
    return Population(
        name=name, group="", source=source, X=X, y=y, columns=[label for column in columns for label in column.names],
        lower=np.array([low for low, _ in bounds]), upper=np.array([high for _, high in bounds]), categories=categories,
        response=response, kind=kind, y_lower=0.0 if kind == "count" else y_lower, y_upper=y_upper, models=models_of(kind, y),
    )  # fmt: skip


def check(X: np.ndarray, y: np.ndarray, kind: str) -> None:
    """Raise `Dropped` if the design is singular, the response repeats it, or the maximum likelihood fit does not exist."""
    if condition_number(X) > MAX_CONDITION:
        raise Dropped("condition number above 50")
    if kind == "number" and r_squared(X, y) > MAX_R_SQUARED:
        raise Dropped("the response is a linear function of the columns")
    try:
        if kind == "label":
            fit_logistic(X, y)
        elif kind == "count":
            fit_poisson(X, y)
    except NoConvergence:
        raise Dropped("the maximum likelihood fit does not converge") from None


def populations_of(name: str, source: str, table: pd.DataFrame) -> tuple[list[Population], list[str]]:
    """Return the narrow and, if there is one, the wide population of a table, and the clauses that dropped one."""
    table = complete_rows(table)
    if len(table) > MAX_RECORDS:
        rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
        table = table.iloc[np.sort(rng.choice(len(table), MAX_RECORDS, replace=False))]
    response = choose_response(table)
    y = response_values(table[response])
    columns = predictors(table, response, y)
    narrow, wide = take_columns(columns, MAX_COLUMNS), take_columns(columns, MAX_WIDE_COLUMNS)
    if sum(len(column.names) for column in narrow) < MIN_COLUMNS:
        raise Dropped("fewer than two usable columns")
    populations, clauses = [], []
    for label, chosen in ((name, narrow), (f"{name}_wide", wide)):
        if chosen is narrow or sum(len(column.names) for column in chosen) > MAX_COLUMNS:
            try:
                populations.append(make_population(label, source, y, response, chosen))
            except Dropped as clause:
                clauses.append(f"{label}: {clause}")
    return populations, clauses


def choose_populations(
    tables: Mapping[str, pd.DataFrame], sources: Mapping[str, str], dropped: dict[str, str]
) -> list[Population]:
    """Return the populations of the tables that are not dropped; the clauses that drop others are added to ``dropped``."""
    chosen: list[Population] = []
    for name, table in tables.items():
        if name in dropped:
            continue
        try:
            populations, clauses = populations_of(name, sources[name], table)
        except Dropped as clause:
            dropped[name] = str(clause)
            continue
        dropped |= dict(clause.split(": ", 1) for clause in clauses)
        for population in populations:
            population.table = name
        chosen += populations
    return chosen
