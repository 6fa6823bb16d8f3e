"""A curator's look at the private columns before anything is charged: only where it is asked for, only on a terminal.

A release says nothing of how its records looked, so a column of words that was declared as numbers, or labels that nobody
declared, show only in a draw that was paid for. Whoever may see the records can have them compared with the declarations
first. What is shown depends on the records, so

- it goes to a terminal and nowhere else: not into a warning, a log, a pipe or a notebook, which is a file;
- nothing that happens afterwards depends on it: no error, no value, no question that is not always asked.

To act on it, by correcting the schema say, is a look at the data that no promise covers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from onedraw.data.cells import BINARY_WORDS, label_of, number_of
from onedraw.data.columns import Cells, Chunk, Wanted
from onedraw.data.records import Records
from onedraw.data.schema import Binary, Category, Column, Count, Number
from onedraw.errors import WrongCall

CURATOR = "curator"
KINDS = ("missing", "not a number", "outside the bounds", "undeclared")
ROWS = 1 << 16


@dataclass(frozen=True)
class Declared:
    """What is public about a column: bounds of numbers, or all its labels."""

    lower: float = -np.inf
    upper: float = np.inf
    labels: frozenset[str | None] | None = None
    any_case: bool = False

    @classmethod
    def levels(cls, levels: Iterable[Any], *, any_case: bool = False) -> Declared:
        return cls(labels=frozenset(map(label_of, levels)), any_case=any_case)

    @classmethod
    def by_schema(cls, column: Column) -> Declared:
        match column:
            case Number() | Count():
                return cls(*column.ends)
            case Binary() if column.levels is None:
                return cls.levels(("0", "1", *BINARY_WORDS), any_case=True)
            case Binary() | Category():
                return cls.levels(column.labels)

    def fault(self, cell: Any) -> int | None:
        """The place among `KINDS` of what is wrong with a cell, if anything is."""
        label = label_of(cell)
        if label is None:
            return 0
        if self.labels is not None:
            return None if (label.lower() if self.any_case else label) in self.labels else 3
        value = number_of(cell)
        if np.isnan(value):
            return 1
        return None if self.lower <= value <= self.upper else 2


def check_terminal(stream: TextIO | None = None) -> TextIO:
    """The terminal to show it on; `WrongCall`, whatever the records are, where there is none."""
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        raise WrongCall(
            "A curator's check shows what the private columns look like, so it is written to a terminal only, and standard error "
            "is none here. Nothing was read or charged. Run it in a terminal, or leave the check out."
        )
    return stream


def look(columns: Mapping[str, tuple[Declared, Iterable[Chunk]]], *, stream: TextIO | None = None) -> None:
    """Show which shares of the cells are not as declared, then wait for Enter where somebody can press it."""
    terminal = check_terminal(stream)
    lines = [["column", *KINDS], *([name, *_shares(declared, chunks)] for name, (declared, chunks) in columns.items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = "\n".join("  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    head = "onedraw: shares of cells that are not as declared, for the curator's eyes. No promise covers what you do about them."
    terminal.write(f"{head}\n{table}\n")
    if sys.stdin is not None and sys.stdin.isatty():
        terminal.write("Nothing is charged yet. Enter: go on and release. Ctrl-C: stop. ")
        terminal.flush()
        sys.stdin.readline()
    terminal.flush()


def columns_of(records: Records) -> dict[str, tuple[Declared, Iterable[Chunk]]]:
    """The declared columns of records under a schema, read one at a time."""

    def chunks(name: str) -> Iterator[Chunk]:
        for part in records._table.parts({name: Wanted.LABELS}, ROWS):
            yield from (batch[name] for batch in part())

    return {name: (Declared.by_schema(column), chunks(name)) for name, column in records.schema.columns.items()}


def _shares(declared: Declared, chunks: Iterable[Chunk]) -> list[str]:
    """One figure for each of `KINDS`; question marks where reading failed, which must not stop anything."""
    counts, rows = np.zeros(len(KINDS)), 0
    try:
        for chunk in chunks:
            cells = chunk if isinstance(chunk, Cells) else chunk.as_cells()
            faults = [declared.fault(cell) for cell in cells.values]
            places = np.array([len(KINDS) if fault is None else fault for fault in faults] + [0])  # code −1: missing
            counts += np.bincount(places[cells.codes], minlength=len(KINDS) + 1)[: len(KINDS)]
            rows += len(cells)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a library may panic over a record; the release will read it by its own rules
        return ["?"] * len(KINDS)
    return [f"{100 * count / rows:.1f} %" if count else "–" for count in counts]
