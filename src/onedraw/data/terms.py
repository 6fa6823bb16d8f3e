"""Which columns of a design belong together: the columns of a term, and those that code categories."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A term: the columns that it became."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True)
class Coded:
    """Columns of 0 and 1 of which at most one is 1 on a record.

    ``levels`` are those of a category that no other term names, the one that others are compared with first; empty if its levels
    cannot be compared with another one.
    """

    name: str
    start: int
    stop: int
    levels: tuple[str, ...] = ()
