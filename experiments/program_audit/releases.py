"""Auditing what has been released: do certificates and ledger tell the same story?

One spend, one draw. A draw published twice for one spend, two certificates that share an entry, a certificate changed after
it was settled, equal draws under different entries (one seed used twice), a seeded run published as if it were private:
each is visible from the certificates and the ledger alone, without the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onedraw.errors import LedgerError
from onedraw.ledger import Ledger
from onedraw.release import Certificate
from onedraw.samplers import SEEDED


@dataclass(frozen=True)
class Finding:
    """Something that does not fit, and which certificates (by their place in the list) it concerns."""

    what: str
    certificates: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.what} (certificates {', '.join(map(str, self.certificates))})"


def audit_releases(certificates: Sequence[Certificate], ledger: Ledger | None) -> list[Finding]:
    """Everything that does not fit between these certificates and the ledger; empty if all does."""
    found = [
        *_same_draws(certificates),
        *(
            Finding("it was seeded and is not private", (index,))
            for index, one in enumerate(certificates)
            if one.randomness == SEEDED
        ),
    ]
    return found if ledger is None else [*_against_ledger(certificates, ledger), *found]


def _same_draws(certificates: Sequence[Certificate]) -> list[Finding]:
    """Draws are continuous: two that agree in every coordinate were made with the same randomness, or are one draw."""
    places: dict[bytes, list[int]] = {}
    for index, one in enumerate(certificates):
        if one.mechanism.name == "AddedNoise":  # whole numbers: two noisy counts may well be equal
            continue
        for row in {np.asarray(row).tobytes() for row in one.draw.values}:
            places.setdefault(row, []).append(index)
        if len({tuple(row) for row in one.draw.values}) < len(one.draw.values):
            places.setdefault(b"within" + str(index).encode(), [index, index])
    return [
        Finding("the same draw stands in more than one place", tuple(where))
        for where in places.values()
        if len(where) > 1
    ]


def _against_ledger(certificates: Sequence[Certificate], ledger: Ledger) -> list[Finding]:
    found = []
    try:
        ledger.verify()
    except LedgerError as error:
        return [Finding(str(error), tuple(range(len(certificates))))]
    spends = {event.entry: event for event in ledger.events() if event.kind == "reserved"}
    used = Counter(one.ledger.entry for one in certificates if one.ledger is not None)
    for index, one in enumerate(certificates):
        if one.ledger is None:
            found.append(Finding("it was never charged", (index,)))
        elif one.ledger.entry not in spends:
            found.append(Finding("its entry is not in this ledger", (index,)))
        elif spends[one.ledger.entry].payload.get("fingerprint") != one.fingerprint:
            found.append(Finding("another question was charged than the one it states", (index,)))
        elif ledger.certificate_digest(one.ledger.entry) != one.digest:
            found.append(Finding("it is not the certificate that was settled", (index,)))
    for entry, times in used.items():
        if times > 1:
            where = tuple(
                i for i, one in enumerate(certificates) if one.ledger is not None and one.ledger.entry == entry
            )
            found.append(Finding(f"one spend paid for {times} certificates", where))
    return found
