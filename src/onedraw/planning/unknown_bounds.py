"""Private bounds of number columns: one charged release of noisy counts of magnitudes, and what follows from it.

    found = od.private_bounds("visits.csv", ["age", "cost"], epsilon=0.1, ledger="ledger.db", dataset="visits-2026")
    found.bounds["cost"]        # lower, upper, and the share of records they are expected to clip

The ledger is charged before a record is read; a release that was interrupted is finished with ``resume=``, like any other. Bounds
follow from the certificate by a public rule (`onedraw.release.private_bounds`), so they cost nothing more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onedraw.data import Schema, read
from onedraw.data.declarations import Magnitude
from onedraw.errors import WrongCall
from onedraw.ledger import Ledger
from onedraw.methods import AddedNoise
from onedraw.methods.base import calibrate
from onedraw.models import MagnitudeTable
from onedraw.privacy import epsilon_delta
from onedraw.release import Release, bounds_of
from onedraw.release import release as release_by
from onedraw.release.private_bounds import PrivateBounds, check_worthwhile


@dataclass(frozen=True)
class FoundBounds:
    """Bounds by column, and the release they follow from."""

    bounds: dict[str, PrivateBounds]
    release: Release

    @property
    def source(self) -> dict[str, Any]:
        """What a schema says of where the bounds come from: its key ``private_bounds``."""
        certificate = self.release.certificate
        assert certificate.ledger is not None
        promise = certificate.promise
        return {
            "entry": certificate.ledger.entry, "columns": list(self.bounds), "epsilon": promise.epsilon, "delta": promise.delta
        }  # fmt: skip

    def declarations(self) -> dict[str, dict[str, Any]]:
        """Return what a schema declares of each column."""
        return {
            name: {"kind": "number", "lower": found.lower, "upper": found.upper} for name, found in self.bounds.items()
        }


def private_bounds(
    source: Any, columns: Sequence[str], *, epsilon: float, delta: float = 0.0, ledger: Ledger | str | os.PathLike[str],
    dataset: str, person: str | None = None, max_records: int | None = None, table: str | None = None,
    out: str | os.PathLike[str] | None = None, resume: str | None = None, how_to_resume: str = "",
    random_state: int | None = None, by: str | None = None, purpose: str | None = None,
) -> FoundBounds:  # fmt: skip
    """Estimate the bounds of number columns with one charged release.

    Parameters
    ----------
    source : path, frame, table or mapping
        The private records, as `onedraw.read` takes them; with ``table`` a database.
    columns : sequence of str
        The columns whose bounds are wanted. All of them share ``epsilon``: fewer columns have less noise.
    epsilon, delta : float
        What the ledger is charged for the bounds of all columns together.
    ledger, dataset : path, URL or Ledger; str
        The ledger, which is charged before a record is read, and the data set's name in it.
    person, max_records : str; int
        As in a schema: the column that says whose a record is, and how many records of one person count.
    out, resume, how_to_resume, random_state, by, purpose
        As for `onedraw.release`.

    Returns
    -------
    FoundBounds
        Zero or plus or minus powers of two for every column, whatever the records are.
    """
    if isinstance(columns, str) or not columns:
        raise WrongCall(
            f"columns is a list of the columns whose bounds are wanted, got {columns!r}. Pass columns=['age'], say."
        )
    declared = {name: Magnitude() for name in columns}
    schema = Schema(dataset=dataset, person=person, max_records=max_records, columns=declared)
    records = read(source, schema, table=table)
    plan = calibrate(
        AddedNoise(), MagnitudeTable(tuple(columns)), epsilon_delta(epsilon, delta), n=records.n,
        records_per_person=schema.records_per_person,
    )  # fmt: skip
    check_worthwhile(plan)
    opened = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    made = release_by(
        plan, records, ledger=opened, label=f"bounds of {len(declared)} columns", out=out, resume=resume,
        how_to_resume=how_to_resume, random_state=random_state, by=by, purpose=purpose,
    )  # fmt: skip
    return FoundBounds(bounds_of(made.certificate, plan), made)
