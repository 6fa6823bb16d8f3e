"""Choose the fresh tables: those of the collections that neither the coverage study nor the prediction study used before."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from given import FOLDER as GIVEN_FOLDER
from rule import OUTCOMES, Dropped, Population, choose_populations, complete_rows, stem
from sources import read_rest, read_tables
from splits import are_duplicates, names_of, profiles, related

PREDICTION_TABLES = Path(__file__).parent / "prediction_tables.json"
Profile = tuple[int, list[np.ndarray]]

KIN = {
    "Ecdat_RetSchool": "wooldridge_card", "Ecdat_CPSch3": "AER_CPSSW3", "stevedata_gss_abortion": "carData_GSSvocab",
    "stevedata_gss_wages": "carData_GSSvocab", "Ecdat_MedExp": "sampleSelection_RandHIE", "Ecdat_Star": "mlmRev_star",
    "gapminder_gapminder_unfiltered": "dslabs_gapminder", "mosaicData_Births": "mosaicData_Birthdays",
    "mosaicData_BirthsCDC": "mosaicData_Birthdays", "mosaicData_BirthsSSA": "mosaicData_Birthdays",
}  # fmt: skip
"""Tables of the same people, places or days as another one, with other column names and other rows. Named by their documentation,
before the first private run."""


def used_tables(packages: Path, rest: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return every table that an earlier study used or could have used, by name.

    These are all tables of the collections of `sources.py`, those of the prediction study in either half, and the given ones.
    """
    used = {name: table for name, _, table in read_tables(packages)}
    chosen = json.loads(PREDICTION_TABLES.read_text(encoding="utf-8"))["tables"]
    used |= {entry["name"]: rest[entry["name"]] for entry in chosen if entry["name"] in rest}
    return used | {
        path.name: pd.read_csv(path) for path in sorted(GIVEN_FOLDER.glob("*.csv*")) if "mnist" not in path.name
    }


def leave_out(tables: Mapping[str, pd.DataFrame], used: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Return the tables that repeat, or are family of, a used one or a larger fresh one, with the reason."""
    dropped: dict[str, str] = {}
    known = {name: (profile_of(table), names_of(table)) for name, table in used.items()}
    for name in sorted(tables, key=lambda name: (-len(tables[name]), name)):
        profile, names = profile_of(tables[name]), names_of(tables[name])
        if name in used:
            dropped[name] = "an earlier study used it"
        elif name in KIN:
            dropped[name] = f"is of the same people, places or days as {KIN[name]}"
        elif repeated := _first(other for other, (rival, _) in known.items() if are_duplicates(*profile, *rival)):
            dropped[name] = f"repeats {repeated}"
        elif relative := _first(other for other, (_, others) in known.items() if related(names, others)):
            dropped[name] = f"shares its column names with {relative}"
        else:
            known[name] = profile, names
    return dropped


def profile_of(table: pd.DataFrame) -> Profile:
    """Return the number of records, and the quantiles of the number columns."""
    return len(table), profiles(table)


def _first(names: Iterable[str]) -> str:
    return next(iter(names), "")


def fresh_populations(packages: Path) -> tuple[list[Population], dict[str, str]]:
    """Return the fresh populations and, for each table of 2,000 complete rows that is left out, the clause that drops it."""
    rest, complete, sources = {}, {}, {}
    for name, collection, table in read_rest(packages):
        rest[name], sources[name] = table, f"{collection.name} {collection.version}"
        with contextlib.suppress(Dropped):
            complete[name] = complete_rows(table)
    dropped = leave_out({name: rest[name] for name in complete}, used_tables(packages, rest))
    chosen = choose_populations(complete, sources, dropped)
    for population in chosen:
        population.group = "fresh" if stem(population.response) in OUTCOMES else "fresh-other"
    return chosen, dropped
