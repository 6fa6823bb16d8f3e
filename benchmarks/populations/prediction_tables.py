"""Choose and build the tables of the prediction study by a fixed rule (prediction_rule.md).

    python benchmarks/populations/prediction_tables.py --to FOLDER --packages FOLDER          # one .npz per table
    python benchmarks/populations/prediction_tables.py --to FOLDER --packages FOLDER --list   # writes the list too

ONEDRAW_PREDICTION names the folder of the tables, ONEDRAW_PACKAGES that of the wheels. The rule reads no private result.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import rule
from given import VISITS, declare, read
from rule import Dropped, Population
from sources import read_tables
from splits import drop_duplicates, families

TABLES = Path(__file__).parent / "prediction_tables.json"
MIN_RECORDS, MAX_RECORDS = 250, 50_000
MAX_TABLE_COLUMNS = 200
MAX_CLASSES, MIN_CLASS_SHARE = 10, 0.02
MIN_GAIN = 0.02
"""A table is left out if a fit without privacy gains less over the level alone (share of its deviance, in sample)."""
DETERMINED = 0.99
SIZES = (250, 1_000, 5_000, MAX_RECORDS + 1)
HALF_OF_STRATUM = {"label": 2, "class": 3, "count": 2, "number": 1}
"""Tables of a kind and a size in each half."""
PACKAGES = (
    "AER", "COUNT", "DAAG", "Ecdat", "ISLR", "MASS", "Stat2Data", "carData", "dslabs", "medicaldata", "mlmRev", "modeldata",
    "multgee", "openintro", "ordinal", "palmerpenguins", "pscl", "rpart", "stevedata", "survival", "vcdExtra",
)  # fmt: skip
CLASS_WORDS = (
    "species", "choice", "ketchupchoice", "tunachoice", "mode", "depvar", "answer", "answers", "vote", "euvote", "obs",
    "class", "outcome", "survived", "attrition", "churn", "spam", "area", "restaurant", "job", "occupation", "mathlevel",
    "joblost", "reason", "dvcat", "health", "hlth", "result", "event", "employment", "party", "partyid", "stance", "quality",
    "rating", "sureness", "grade", "attain", "stage", "pitchtype", "recommends", "type", "ideology", "attitude",
)  # fmt: skip
"""Words for what a table sorts its records into. They come before the words of rule.py."""


@dataclass
class Table:
    """A table of the study; `classes` is the number of classes of a "class" response."""

    population: Population
    kind: str
    classes: int
    known: bool
    """Whether earlier work on these methods used it."""


KNOWN = (
    "AER_CPS1988", "AER_HealthInsurance", "AER_NMES1988", "ggplot2_diamonds", "ISLR_Default", "ISLR_Caravan", "COUNT_rwm5yr",
    "survival_flchain", "medicaldata_covid_testing",
)  # fmt: skip


def class_codes(series: pd.Series) -> np.ndarray | None:
    """Return the classes as 0, 1, …, rare ones merged into the commonest; None if the column has no two to ten levels."""
    if pd.api.types.is_datetime64_any_dtype(series) or series.nunique() > MAX_CLASSES:
        return None
    _, codes, counts = np.unique(series.astype(str).to_numpy(), return_inverse=True, return_counts=True)
    common = counts >= MIN_CLASS_SHARE * len(codes)
    if common.sum() < 2:
        return None
    merged = np.where(common[codes], codes, np.argmax(counts))
    return np.unique(merged, return_inverse=True)[1].astype(float)


def choose_response(table: pd.DataFrame) -> tuple[str, np.ndarray, str]:
    """Return the response, its values and its kind: the first listed word that is the stem of a usable column."""
    stems: dict[str, str] = {}
    for name in table:
        stems.setdefault(rule.stem(name), name)
    for word in CLASS_WORDS:
        codes = class_codes(table[stems[word]]) if word in stems else None
        if codes is not None:
            return stems[word], codes, "label" if codes.max() == 1 else "class"
    for word in rule.OUTCOMES:
        values = rule.response_values(table[stems[word]]) if word in stems else None
        if values is not None:
            return stems[word], values, rule.kind_of(values)
    raise Dropped("no listed word is the stem of a response")


def is_determined(column: rule.Column, y: np.ndarray) -> bool:
    """Return whether the response determines a column of few values: it would be another name of it."""
    values = np.unique(column.values, axis=0, return_inverse=True)[1].ravel()
    if values.max() >= rule.MAX_LEVELS + 2 or len(np.unique(y)) > MAX_CLASSES:
        return False
    counts = np.zeros((int(y.max()) + 1, values.max() + 1))
    np.add.at(counts, (y.astype(int), values), 1)
    return bool(counts.max(axis=1).sum() >= DETERMINED * len(y))


def gain_of(X: np.ndarray, y: np.ndarray, kind: str) -> float:
    """Return the share of the deviance of the level that a slightly penalized fit without privacy explains, in sample."""
    from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    if kind == "number":
        return float(Ridge(alpha=1.0).fit(Z, y).score(Z, y))
    if kind == "count":
        return float(PoissonRegressor(alpha=1e-3, max_iter=2000).fit(Z, y).score(Z, y))
    fitted = LogisticRegression(C=1.0, max_iter=2000).fit(Z, y)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    loss = -fitted.predict_log_proba(Z)[np.arange(len(y)), np.searchsorted(fitted.classes_, y)].mean()
    return float(1.0 + loss / (shares * np.log(shares)).sum())


def chosen_population(name: str, source: str, table: pd.DataFrame) -> tuple[Population, str]:
    """Return the population of a table and its kind, or raise `Dropped`."""
    if len(table) > MAX_RECORDS:
        rng = np.random.default_rng([rule.SEED, zlib.crc32(name.encode())])
        table = table.iloc[np.sort(rng.choice(len(table), MAX_RECORDS, replace=False))]
    response, y, kind = choose_response(table)
    columns = [column for column in rule.predictors(table, response, y) if not is_determined(column, y)]
    columns = rule.take_columns(columns, rule.MAX_WIDE_COLUMNS)
    if sum(len(column.names) for column in columns) < rule.MIN_COLUMNS:
        raise Dropped("fewer than two usable columns")
    X = np.column_stack([column.values for column in columns])
    bounds = np.array([rule.round_outward(values) for values in X.T])
    categories, start = [], 0
    for column in columns:
        stop = start + len(column.names)
        categories += [(start, stop)] if column.is_category else []
        start = stop
    gain = gain_of(X, y, kind)
    if not MIN_GAIN <= gain <= rule.MAX_R_SQUARED:
        raise Dropped(f"a fit without privacy explains {gain:.3f} of the deviance")
    y_lower, y_upper = (0.0, y.max()) if kind in ("label", "class") else rule.round_outward(y)
    return Population(
        name=name, group="", source=source, X=X, y=y, columns=[label for column in columns for label in column.names],
        lower=bounds[:, 0], upper=bounds[:, 1], categories=categories, response=response, kind=kind,
        y_lower=0.0 if kind == "count" else y_lower, y_upper=y_upper, models=[], table=name,
    ), kind  # fmt: skip


def bundled_tables() -> Iterator[Table]:
    """Yield the tables of scikit-learn and of the data folder: all were used before, their bounds are from their meaning."""
    from sklearn.datasets import load_breast_cancer, load_digits

    digits, cancer = load_digits(), load_breast_cancer()
    bounds = {f"pixel{j}": (0.0, 16.0) for j in range(64)}
    yield _declared("digits", "scikit-learn", pd.DataFrame(digits.data, columns=list(bounds)), bounds, digits.target)
    upper = [rule.round_outward(values) for values in cancer.data.T]
    names = [str(name) for name in cancer.feature_names]
    frame = pd.DataFrame(cancer.data, columns=names)
    yield _declared("breast_cancer", "scikit-learn", frame, dict(zip(names, upper, strict=True)), cancer.target)
    visits = read("doctor_visits.csv.gz")
    yield _declared("doctor_visits", "doctor_visits.csv.gz", visits, VISITS, visits["visits"], "count", (0.0, 9.0))


def _declared(
    name: str, source: str, frame: pd.DataFrame, bounds: dict[str, tuple[float, float]], y: Any, kind: str = "",
    y_bounds: tuple[float, float] | None = None,
) -> Table:  # fmt: skip
    y = np.asarray(y, dtype=float)
    kind = kind or ("label" if y.max() == 1 else "class")
    y_bounds = y_bounds or (0.0, y.max())
    population = declare(name, source, frame, bounds, (), "y", y, "number", y_bounds)
    population.kind, population.table = kind, name
    return Table(population, kind, int(y.max()) + 1 if kind in ("label", "class") else 0, True)


def candidates(packages: Path) -> tuple[list[Table], dict[str, str], dict[str, pd.DataFrame]]:
    """Return every table that the rule admits, why others are left out, and the complete rows."""
    dropped: dict[str, str] = {}
    raw: dict[str, pd.DataFrame] = {}
    complete: dict[str, pd.DataFrame] = {}
    for name, _, table in read_tables(packages, PACKAGES):
        rows = table.loc[:, [column for column in table if table[column].isna().mean() <= rule.MAX_MISSING]].dropna()
        if len(rows) >= MIN_RECORDS and table.shape[1] <= MAX_TABLE_COLUMNS:
            raw[name], complete[name] = table, rows
    given = {table.population.name: pd.DataFrame(table.population.X) for table in bundled_tables()}
    dropped |= drop_duplicates(raw, given)
    tables = []
    for name, rows in complete.items():
        if name not in dropped:
            try:
                population, kind = chosen_population(name, name.partition("_")[0], rows)
            except Dropped as clause:
                dropped[name] = str(clause)
                continue
            classes = int(population.y.max()) + 1 if kind in ("label", "class") else 0
            tables.append(Table(population, kind, classes, name in KNOWN))
    return tables, dropped, complete


def order_of(name: str) -> str:
    """Return the key that orders the tables: the SHA-256 of seed and name."""
    return hashlib.sha256(f"{rule.SEED} {name}".encode()).hexdigest()


def select(tables: list[Table], complete: dict[str, pd.DataFrame]) -> list[Table]:
    """Return the tables of the study: known ones to derive, then alternately one to hold out and one to derive."""
    members = {name: number for number, group in enumerate(families(complete)) for name in group}
    taken: set[int] = set()
    chosen: list[Table] = []
    for kind, most in HALF_OF_STRATUM.items():
        for low, high in itertools.pairwise(SIZES):
            stratum = [one for one in tables if one.kind == kind and low <= len(one.population.y) < high]
            halves = {"derive": 0, "hold-out": 0}
            for one in sorted(stratum, key=lambda one: (not one.known, order_of(one.population.name))):
                family = members.get(one.population.name, -1)
                half = "derive" if one.known or halves["derive"] < halves["hold-out"] else "hold-out"
                if halves[half] < most and family not in taken:
                    halves[half] += 1
                    one.population.group = half
                    chosen.append(one)
                    taken |= {family} - {-1}
    return chosen


def write(table: Table, folder: Path) -> None:
    """Write a table as a compressed .npz file."""
    population = table.population
    np.savez_compressed(
        folder / f"{population.name}.npz", X=population.X, y=population.y, lower=population.lower, upper=population.upper,
        columns=np.array(population.columns), kind=table.kind, classes=table.classes, group=population.group,
        y_lower=population.y_lower, y_upper=population.y_upper,
        categories=np.array(population.categories, dtype=int).reshape(-1, 2),
    )  # fmt: skip


def describe(table: Table) -> dict[str, object]:
    """Return what is public of a table."""
    population = table.population
    digest = hashlib.sha256()
    for values in (population.X, population.y):
        digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return {
        "name": population.name, "source": population.source, "group": population.group, "kind": table.kind,
        "classes": table.classes, "n": len(population.y), "d": population.X.shape[1], "known": table.known,
        "response": population.response, "columns": population.columns, "lower": population.lower.tolist(),
        "upper": population.upper.tolist(), "y_lower": float(population.y_lower), "y_upper": float(population.y_upper),
        "sha256": digest.hexdigest(),
    }  # fmt: skip


def main() -> None:
    """Build the tables."""
    parser = argparse.ArgumentParser(description="Build the tables of the prediction study.")
    parser.add_argument("--to", type=Path, default=os.environ.get("ONEDRAW_PREDICTION"))
    parser.add_argument("--packages", type=Path, default=os.environ.get("ONEDRAW_PACKAGES"))
    parser.add_argument("--list", action="store_true", help="write prediction_tables.json")
    options = parser.parse_args()
    if options.to is None or options.packages is None:
        parser.error("name the folders: --to and --packages")
    options.to.mkdir(parents=True, exist_ok=True)
    tables, dropped, complete = candidates(options.packages)
    chosen = select([*bundled_tables(), *tables], complete)
    for table in chosen:
        write(table, options.to)
        population = table.population
        print(population.group, table.kind, table.classes, len(population.y), population.X.shape[1], population.name, population.response)  # fmt: skip
    if options.list:
        entries = ",\n".join(f"  {json.dumps(describe(table))}" for table in chosen)
        left_out = ",\n".join(f"  {json.dumps(name)}: {json.dumps(clause)}" for name, clause in sorted(dropped.items()))
        others = ",\n".join(f"  {json.dumps(t.population.name)}" for t in tables if t not in chosen)
        TABLES.write_text(
            f'{{"tables": [\n{entries}\n],\n"not_taken": [\n{others}\n],\n"left_out": {{\n{left_out}\n}}}}\n'
        )


if __name__ == "__main__":
    main()
