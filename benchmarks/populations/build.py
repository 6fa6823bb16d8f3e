"""Build the populations of the coverage study: real tables chosen by a rule, given tables, and simulated ones.

    python benchmarks/populations/build.py --to FOLDER --packages FOLDER      # one .npz per population, and index.json
    python benchmarks/populations/build.py --to FOLDER --packages FOLDER --list      # writes tables.json and fresh.json too
    python benchmarks/populations/build.py --to FOLDER --packages FOLDER --only fresh --list      # fresh.json alone

The folders can be named by ONEDRAW_POPULATIONS and ONEDRAW_PACKAGES instead; ONEDRAW_DATA names the folder of the given
tables. Nothing of a table is kept in the repository. The rule is in rule.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from fits import fit_linear, fit_logistic, fit_median, fit_poisson
from fresh import fresh_populations
from given import FOLDER as GIVEN_FOLDER
from given import given_populations
from rule import Dropped, Population, choose_populations, complete_rows
from simulated import simulated_populations
from sources import read_tables
from splits import drop_duplicates, split

TABLES = Path(__file__).parent / "tables.json"
FRESH_TABLES = Path(__file__).parent / "fresh.json"
FITS = {"linear": fit_linear, "median": fit_median, "logistic": fit_logistic, "poisson": fit_poisson}


def rule_populations(packages: Path) -> tuple[list[Population], dict[str, str]]:
    """Return the populations of the collections and, for each table that is left out, the clause that drops it."""
    dropped: dict[str, str] = {}
    raw: dict[str, pd.DataFrame] = {}
    tables: dict[str, pd.DataFrame] = {}
    sources: dict[str, str] = {}
    for name, collection, table in read_tables(packages):
        sources[name] = f"{collection.name} {collection.version}"
        try:
            tables[name] = complete_rows(table)
            raw[name] = table
        except Dropped as clause:
            dropped[name] = str(clause)
    given = {path.name: pd.read_csv(path) for path in sorted(GIVEN_FOLDER.glob("*.csv*")) if "mnist" not in path.name}
    dropped |= drop_duplicates(raw, given)
    chosen = choose_populations(tables, sources, dropped)
    groups = split({population.table: tables[population.table] for population in chosen})
    for population in chosen:
        population.group = groups[population.table]
    return chosen, dropped


def fit_truth(population: Population) -> None:
    """Fit the models of a population to all its rows."""
    population.truth = {model: FITS[model](population.X, population.y) for model in population.models}


def checksum(population: Population) -> str:
    """Return the SHA-256 of the rows and responses as little-endian doubles."""
    digest = hashlib.sha256()
    for values in (population.X, population.y):
        digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return digest.hexdigest()


def write(population: Population, folder: Path) -> None:
    """Write a population as a compressed .npz file."""
    np.savez_compressed(
        folder / f"{population.name}.npz",
        X=population.X, y=population.y, lower=population.lower, upper=population.upper,
        categories=np.array(population.categories, dtype=int).reshape(-1, 2), kind=population.kind,
        y_lower=population.y_lower, y_upper=population.y_upper, columns=np.array(population.columns),
        models=np.array(population.models), group=population.group,
        **{f"truth_{model}": theta for model, theta in population.truth.items()},
    )  # fmt: skip


def describe(population: Population) -> dict[str, object]:
    """Return what is public of a population: the entry of tables.json."""
    return {
        "name": population.name, "table": population.table, "source": population.source, "group": population.group,
        "n": len(population.y), "response": population.response, "kind": population.kind, "models": population.models,
        "columns": population.columns, "lower": population.lower.tolist(), "upper": population.upper.tolist(),
        "categories": population.categories, "y_lower": population.y_lower, "y_upper": population.y_upper,
        "sha256": checksum(population),
    }  # fmt: skip


def index(populations: Iterable[Population]) -> dict[str, dict[str, object]]:
    """Return name, group, kind, models and size of each population."""
    return {
        population.name: {
            "group": population.group, "kind": population.kind, "models": population.models,
            "n": len(population.y), "d": population.X.shape[1], "table": population.table,
        }
        for population in populations
    }  # fmt: skip


def write_list(path: Path, populations: list[Population], dropped: dict[str, str]) -> None:
    """Write a list: one line for each population and each table left out."""
    entries = ",\n".join(f"  {json.dumps(describe(population))}" for population in populations)
    left_out = ",\n".join(f"  {json.dumps(name)}: {json.dumps(clause)}" for name, clause in sorted(dropped.items()))
    path.write_text(f'{{"populations": [\n{entries}\n],\n"left_out": {{\n{left_out}\n}}}}\n', encoding="utf-8")


def main() -> None:
    """Build all populations."""
    parser = argparse.ArgumentParser(description="Build the populations of the coverage study.")
    parser.add_argument(
        "--to", type=Path, default=os.environ.get("ONEDRAW_POPULATIONS"), help="folder of the .npz files"
    )
    parser.add_argument(
        "--packages", type=Path, default=os.environ.get("ONEDRAW_PACKAGES"), help="folder of the wheels"
    )
    parser.add_argument("--list", action="store_true", help="write tables.json and fresh.json")
    parser.add_argument("--only", choices=["given", "simulated", "rule", "fresh"], help="build one part")
    options = parser.parse_args()
    if options.to is None or options.packages is None:
        parser.error("name the folders: --to and --packages")
    if options.list and options.only not in (None, "fresh"):
        parser.error("--list needs all parts: leave out --only, or name fresh")
    options.to.mkdir(parents=True, exist_ok=True)
    populations: list[Population] = []
    dropped: dict[str, str] = {}
    if options.only in (None, "given"):
        populations += given_populations()
    if options.only in (None, "simulated"):
        populations += simulated_populations()
    if options.only in (None, "rule"):
        chosen, dropped = rule_populations(options.packages)
        populations += chosen
    fresh: list[Population] = []
    if options.only in (None, "fresh"):
        fresh, fresh_dropped = fresh_populations(options.packages)
    for population in (*populations, *fresh):
        fit_truth(population)
        write(population, options.to)
        print(population.group, population.name, population.X.shape, population.models, flush=True)
    path = options.to / "index.json"
    known = json.loads(path.read_text(encoding="utf-8")) if options.only and path.is_file() else {}
    path.write_text(json.dumps(known | index((*populations, *fresh)), indent=1) + "\n", encoding="utf-8")
    if options.list and options.only is None:
        write_list(TABLES, populations, dropped)
    if options.list:
        write_list(FRESH_TABLES, fresh, fresh_dropped)


if __name__ == "__main__":
    main()
