"""A study: one claim of a paper as small pieces of work, tidy rows, figures, and values that must come out.

    # experiments/<paper>/run.py: STUDIES is what `onedraw reproduce` finds
    from experiments.study import Study, Table, grid, means

    def run(*, seeds, rule, n):                      # one cell: its parameters, and all its seeds at once (vmap them)
        return [{"seed": seed, "error": error_of(rule, n, seed)} for seed in seeds]      # rows of plain values

    def quantities(table):                           # what expected.json names: a number, or (number, standard error)
        return means(table, "error", by=("rule", "n")) | {"gain at n=1000": …}

    def figures(table):                              # {file name: matplotlib Figure}; see experiments/figures.py
        return {"error": lines(table, x="n", y="error", by="rule")}

    STUDIES = (
        Study(
            name="logistic-rmse",                    # `onedraw reproduce logistic-rmse`
            claim="βD-Bayes has the smallest error as n grows", paper="Jewson et al. (NeurIPS 2023), Figure 2",
            run=run, cells=grid(rule=["jewson", "optimal"], n=[100, 1000]), quick=grid(rule=["jewson"], n=[100]),
            seeds=40, quick_seeds=5, quantities=quantities, figures=figures, findings=findings, data=("abalone.csv",),
        ),
    )

A cell is a dictionary of plain values (text, numbers, truth); the runner adds them to every row as columns. Cells run in
processes of their own and are kept as soon as they are finished, under a key of parameters, seeds and the *code of `run`*: the
file that defines it and the files of `experiments` that this one imports. So figures and quantities in another file (`run.py`
importing `simulate.py`, say) may change without computing anything again. ``batch`` cuts the seeds of a cell into pieces of at
most so many; more seeds then add pieces.

`expected.json` beside run.py, written before the run: {study: {quantity: {"value": 1.4, "within": 0.33, "source": "paper"}}};
also "at_most" or "at_least" in place of "value"; "source" is paper, reference or ours; "quick": true is checked in quick runs
too; "at_seeds": 40 says that "within" is meant for so many seeds and grows by √(40/seeds) with fewer. See `expectations.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Cell = Mapping[str, Any]
Row = Mapping[str, Any]
Quantity = float | tuple[float, float]

FOLDER = Path(__file__).resolve().parent


def _no_figures(table: Table) -> dict[str, Any]:
    return {}


def _no_findings(table: Table) -> list[str]:
    return []


@dataclass(frozen=True)
class Study:
    """A claim, how it is computed, and how it is shown.

    ``run`` is a plain function of a module, since other processes import it. ``findings`` are sentences, computed from the table.
    """

    name: str
    claim: str
    paper: str
    run: Callable[..., Iterable[Row]]
    cells: Sequence[Cell]
    quick: Sequence[Cell]
    quantities: Callable[[Table], Mapping[str, Quantity]]
    seeds: int = 1
    quick_seeds: int = 1
    batch: int | None = None
    figures: Callable[[Table], Mapping[str, Any]] = _no_figures
    findings: Callable[[Table], Sequence[str]] = _no_findings
    data: tuple[str, ...] = ()

    def pieces(self, *, quick: bool, seeds: int | None) -> list[tuple[dict[str, Any], tuple[int, ...]]]:
        """(parameters, seeds) of every piece of work."""
        count = seeds or (self.quick_seeds if quick else self.seeds)
        size = self.batch or count
        batches = [tuple(range(first, min(first + size, count))) for first in range(0, count, size)]
        return [(dict(cell), batch) for cell in (self.quick if quick else self.cells) for batch in batches]


def grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination, the last name running fastest."""
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


class Table(Mapping[str, Any]):
    """Tidy rows by column: ``table.where(rule="jewson", n=100)["error"]`` is an array."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {name: np.asarray(values) for name, values in columns.items()}

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """The number of columns; `rows` counts the rows."""
        return len(self._columns)

    @property
    def rows(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def where(self, **values: Any) -> Table:
        """The rows that have these values; none where a column is missing."""
        chosen = np.ones(self.rows, dtype=bool)
        for name, value in values.items():
            chosen &= self._columns[name] == value if name in self else False
        return Table({name: column[chosen] for name, column in self._columns.items()})

    def values(self, name: str | None = None) -> Any:
        """The different values of a column, in the order in which they come; without a name, the columns."""
        return self._columns.values() if name is None else list(dict.fromkeys(self._columns[name].tolist()))

    def groups(self, *names: str) -> Iterator[tuple[dict[str, Any], Table]]:
        """The rows for each combination of values that occurs."""
        for values in dict.fromkeys(zip(*(self._columns[name].tolist() for name in names), strict=True)):
            chosen = dict(zip(names, values, strict=True))
            yield chosen, self.where(**chosen)


def mean(values: Any) -> tuple[float, float]:
    """Mean and standard error of what is not NaN."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not known.size:
        return math.nan, math.nan
    spread = float(known.std(ddof=1)) if known.size > 1 else 0.0
    return float(known.mean()), spread / math.sqrt(known.size)


def named(what: str, **values: Any) -> str:
    """What a quantity is called: "error rule=jewson n=100"."""
    return " ".join([what, *(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items())])  # fmt: skip


def means(table: Table, column: str, *, by: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The column's mean and standard error in each group, named by `named`."""
    return {named(column, **values): mean(group[column]) for values, group in table.groups(*by)}


def studies() -> dict[str, Study]:
    """Every study of `experiments/<paper>/run.py`, by name, in the order of the folders."""
    found: dict[str, Study] = {}
    for file in sorted(FOLDER.glob("*/run.py")):
        for study in import_module(f"experiments.{file.parent.name}.run").STUDIES:
            if study.name in found:
                raise ValueError(f"two studies are called {study.name}: the second is in {file}")
            found[study.name] = study
    return found
