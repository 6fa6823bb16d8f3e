"""The container attack: the type of one record decides how a container holds all the others.

Two CSV files that differ in one cell, "1" or "unknown", become a column of integers and one of texts. A program that takes
"1" and 1 for different cells then reads every record differently, and no theorem about one replaced record speaks of it.
Here neighbouring columns are put into the containers people use and encoded by the program under audit: at most the record
that was replaced may come out differently, nothing may be raised, nothing warned.
"""

from __future__ import annotations

import datetime
import io
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from experiments.program_audit.replays import Difference

Encode = Callable[[Any], Any]
"""The program's reading of a column or table: one row for each record."""

ODD_CELLS: tuple[Any, ...] = (
    None, float("nan"), float("inf"), "unknown", "", "1", "True", True, 2.5, 2j, 1 + 0j, 10**30, 10**400, b"1", (), [1], frozenset(),
    datetime.timedelta(1), datetime.date(2026, 1, 1), object(),
)  # fmt: skip
"""Cells that make containers hold their neighbours as floats, texts, objects, complex or very long numbers."""


def container_makers() -> dict[str, Callable[[list[Any]], Any]]:
    """How a column is put into each container that is installed here."""
    makers: dict[str, Callable[[list[Any]], Any]] = {
        "list": list,
        "NumPy array": np.array,
        "NumPy array of texts": lambda cells: np.array([*cells, "a word"])[:-1],
    }
    if find_spec("pandas"):
        pd = import_module("pandas")

        makers["pandas column"] = pd.Series
        makers["pandas category"] = lambda cells: pd.Series(cells).astype("category")
        makers["pandas.read_csv"] = lambda cells: pd.read_csv(_written(cells))["v"]
    if find_spec("polars"):
        pl = import_module("polars")

        makers["Polars column"] = lambda cells: pl.Series(cells, strict=False)
    if find_spec("pyarrow"):
        pa = import_module("pyarrow")

        makers["Arrow array"] = pa.array
    return makers


def container_pairs(plain: Sequence[Any], *, odd: Sequence[Any] = ODD_CELLS) -> list[tuple[str, Any, Any]]:
    """(name, container, neighbour): plain cells, and the same with the last replaced, wherever a container can be built."""
    found = []
    for kind, make in container_makers().items():
        for place, cell in enumerate(odd):
            columns = [_built(make, [*plain[:-1], last]) for last in (plain[-1], cell)]
            if all(column is not None and len(column) == len(plain) for column in columns):
                found.append((f"{kind}, odd cell {place}", *columns))
    return found


def audit_reading(encode: Encode, pairs: Sequence[tuple[str, Any, Any]]) -> list[Difference]:
    """Where more than the last record changes between neighbours; empty if nowhere."""
    found = []
    for name, first, second in pairs:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                one, other = (np.asarray(encode(data), dtype=np.float64) for data in (first, second))
            except KeyboardInterrupt:
                raise
            except BaseException:  # an exit or a panic too: a record decided that there is one
                found.append(Difference("outcome", name))
                continue
        if warned:
            found.append(Difference("warned", name))
        if one.shape != other.shape or not np.array_equal(one[:-1], other[:-1], equal_nan=True):
            found.append(Difference("another record's encoding", name))
    return found


def _built(make: Callable[[list[Any]], Any], cells: list[Any]) -> Any:
    """The container, or None if it refuses these cells: what it does then is not the program's doing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return make(cells)
        except Exception:
            return None


def _written(cells: list[Any]) -> io.StringIO:
    if not all(isinstance(cell, int | float | str) for cell in cells):
        raise TypeError("only texts and numbers stand in a file")
    return io.StringIO("\n".join(["v", *(f'"{cell}"' for cell in cells)]))
