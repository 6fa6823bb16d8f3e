"""The first table of a paper in one release: numbers of records, means, deviations, quartiles and shares of all columns, by group."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from onedraw.data import Schema, read
from onedraw.defaults import DELTA
from onedraw.errors import WrongCall
from onedraw.ledger import Ledger
from onedraw.planning.description import description_plan
from onedraw.privacy import Promise
from onedraw.release import Certificate, Release, release
from onedraw.release.description import TableOne
from onedraw.release.files import check_writable, write_whole

from .base import FileName, budget_of, opened


@dataclass(frozen=True, repr=False)
class Description:
    """A released description of a data set: its table 1, and the certificate it came with."""

    release: Release

    @cached_property
    def table(self) -> TableOne:
        """Lines and cells, with intervals and differences."""
        return self.release.table_one()

    @property
    def certificate(self) -> Certificate:
        return self.release.certificate

    @property
    def noisy_share(self) -> float:
        """The share of cells whose interval exceeds half of the declared range."""
        return self.table.noisy_share

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary for each cell; ``pandas.DataFrame(list(found.rows()))`` takes them."""
        return self.table.rows()

    def to_csv(self, path: FileName | None = None, *, overwrite: bool = False) -> str | Path:
        """Return the table as CSV, one row for each cell, or write it to ``path``."""
        return _written(self.table.to_csv(), path, overwrite=overwrite)

    def to_latex(self, path: FileName | None = None, *, overwrite: bool = False) -> str | Path:
        """Return the table as a LaTeX ``tabular`` (package booktabs), or write it to ``path``."""
        return _written(self.table.to_latex(), path, overwrite=overwrite)

    def report(self, path: FileName, *, ledger: Any = None, overwrite: bool = False) -> Path:
        """Write the table as one HTML page for people, with its promise; two printed pages at most for some 20 columns."""
        return self.release.report(path, ledger=opened(ledger), overwrite=overwrite)

    def save(self, path: FileName, *, overwrite: bool = False) -> None:
        """Write the certificate with the released numbers as JSON."""
        self.release.save(path, overwrite=overwrite)

    def __str__(self) -> str:
        return str(self.table)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def describe(
    source: Any, schema: Schema | str | os.PathLike[str] | Mapping[str, Any], *, epsilon: float | None = None, delta: float = DELTA,
    budget: Promise | None = None, by: str | Sequence[str] = (), columns: Sequence[str] | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None, dataset: str | None = None, table: str | None = None,
    out: str | os.PathLike[str] | None = None, random_state: int | None = None, requested_by: str | None = None, **how: Any,
) -> Description:  # fmt: skip
    """Describe the columns of a table under differential privacy: the first table of a paper, in one spend.

    Parameters
    ----------
    source : frame, path, or what `onedraw.read` takes
    schema : Schema, path or mapping
        What is public about the columns.
    epsilon, delta : float
        The budget of everything together; or any promise as ``budget``. With a δ above 0 the noise of many columns is Gaussian.
    by : str or list of str
        One to three categories. Who belongs to which group is private.
    columns : list of str, optional
        Which columns; by default all but those of ``by``.
    ledger, dataset, out, random_state
        As in `onedraw.release`.
    requested_by : str, optional
        Who asks for it; the ledger keeps it.

    The budget is split by a public rule: see ``docs/table-one.md``. Cells whose interval exceeds half of the declared range are
    marked "too noisy".
    """
    if budget is not None and epsilon is not None:
        raise WrongCall("A description has one budget: epsilon= with delta=, or budget=, a promise.")
    spend = budget_of(epsilon, delta, of="describe") if budget is None else budget
    declared = (
        schema if isinstance(schema, Schema)
        else Schema.from_dict(schema) if isinstance(schema, Mapping) else Schema.load(schema)
    )  # fmt: skip
    records = read(source, declared, table=table)
    plan = description_plan(
        declared, spend, n=records.n, by=(by,) if isinstance(by, str) else tuple(by), columns=columns
    )
    found = release(
        plan, records, ledger=opened(ledger), dataset=dataset, out=out, random_state=random_state, by=requested_by,
        **{"label": f"description of {len(declared.columns)} columns", **how},
    )  # fmt: skip
    return Description(found)


def _written(text: str, path: FileName | None, *, overwrite: bool) -> str | Path:
    if path is None:
        return text
    target = Path(path)
    check_writable(target, overwrite=overwrite)
    write_whole(target, text, "table", overwrite=overwrite)
    return target
