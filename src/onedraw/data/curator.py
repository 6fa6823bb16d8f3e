"""A curator's look at the private columns before anything is charged: only where it is asked for, and where a person looks.

A release says nothing of how its records looked, so a column of words that was declared as numbers, or labels that nobody
declared, show only in a draw that was paid for. Whoever may see the records can have them compared with the declarations
first. What is shown depends on the records, so

- it goes to a terminal, or to a notebook whose reader confirms first and clears it afterwards, and nowhere else: not into a
  warning, a log or a pipe;
- nothing that happens afterwards depends on it: no error, no value, no question that is not always asked.

**Notebooks.** A notebook is a file, and its outputs are written to it. So a person is asked before a record is read, by
`input()`, which a program that executes notebooks (nbconvert, papermill, nbclient) cannot answer: there the check is refused. The
table stands in the output until the person acknowledges it, and the cell's output is then cleared, also if the kernel is
interrupted. A notebook that is saved while the table stands holds it until it is saved again; the first question says so.

To act on it, by correcting the schema say, is a look at the data that no promise covers.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from onedraw.data.cells import BINARY_WORDS, label_of, number_of
from onedraw.data.columns import Cells, Chunk, Wanted
from onedraw.data.dates import DateEncoder
from onedraw.data.declarations import Magnitude
from onedraw.data.records import Records
from onedraw.data.schema import Binary, Category, Column, Count, Date, Number
from onedraw.errors import WrongCall

CURATOR = "curator"
KINDS = ("missing", "unreadable", "outside the bounds", "undeclared")
ROWS = 1 << 16


@dataclass(frozen=True)
class Declared:
    """What is public about a column: bounds of numbers, or all its labels."""

    lower: float = -np.inf
    upper: float = np.inf
    labels: frozenset[str | None] | None = None
    any_case: bool = False
    dates: DateEncoder | None = None

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
            case Date():
                return cls(dates=column.encoder())
            case Magnitude():
                return cls()

    def fault(self, cell: Any) -> int | None:
        """The place among `KINDS` of what is wrong with a cell, if anything is."""
        label = label_of(cell)
        if self.dates is not None and (inside := self.dates.covers(cell)) is not None:
            return None if inside else 2
        if label is None:
            return 0
        if self.dates is not None:
            return 1
        if self.labels is not None:
            return None if (label.lower() if self.any_case else label) in self.labels else 3
        value = number_of(cell)
        if np.isnan(value):
            return 1
        return None if self.lower <= value <= self.upper else 2


class Screen(ABC):
    """Where a person looks at the table."""

    @abstractmethod
    def show(self, text: str) -> None:
        """Show a text that depends on the records, and wait until it was read."""


@dataclass(frozen=True)
class Terminal(Screen):
    """A terminal, which keeps nothing in a file."""

    stream: TextIO

    def show(self, text: str) -> None:
        self.stream.write(f"{text}\n")
        if sys.stdin is not None and sys.stdin.isatty():
            self.stream.write("Nothing is charged yet. Enter: go on and release. Ctrl-C: stop. ")
            self.stream.flush()
            sys.stdin.readline()
        self.stream.flush()


CONFIRM = (
    "onedraw: the check shows shares of the private cells in this notebook until you acknowledge them, and then clears this cell's "
    "output. Do not save the notebook meanwhile. Type show to see them: "
)
ACKNOWLEDGE = "Nothing is charged yet. Enter: clear this output and release. Interrupt the kernel: clear it and stop. "


class Notebook(Screen):
    """The output of a notebook's cell, from which the table is removed when it was read."""

    def show(self, text: str) -> None:
        from IPython.display import clear_output

        try:
            print(text, flush=True)
            input(ACKNOWLEDGE)
        finally:
            clear_output(wait=False)  # type: ignore[no-untyped-call]


def find_screen(stream: TextIO | None = None) -> Screen:
    """Return where the check may be shown, before any record is read; `WrongCall`, whatever the records are, where there is no place."""
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        return Terminal(stream)
    if not _in_notebook():
        raise WrongCall(
            "A curator's check shows what the private columns look like, so it is written to a terminal or shown in a notebook only, "
            "and standard error is none here. Nothing was read or charged. Run it in a terminal, or leave the check out."
        )
    try:
        confirmed = input(CONFIRM).strip().lower() == "show"
    except (NotImplementedError, EOFError):  # IPython's error where no one can answer is a NotImplementedError
        raise WrongCall(
            "A curator's check needs a person who confirms it, and this notebook is executed by a program that cannot answer. "
            "Nothing was read or charged. Run the cell by hand, or leave the check out."
        ) from None
    if not confirmed:
        raise WrongCall(
            "The curator's check was not confirmed. Nothing was read, shown or charged. Run it again and type show, or leave the check out."
        )
    return Notebook()


def _in_notebook() -> bool:
    """Whether a kernel of IPython's runs this code; IPython in a terminal has none."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def look(columns: Mapping[str, tuple[Declared, Iterable[Chunk]]], screen: Screen) -> None:
    """Show which shares of the cells are not as declared, and wait until somebody has read it."""
    lines = [["column", *KINDS], *([name, *_shares(declared, chunks)] for name, (declared, chunks) in columns.items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = "\n".join("  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    head = "onedraw: shares of cells that are not as declared, for the curator's eyes. No promise covers what you do about them."
    screen.show(f"{head}\n{table}")


def columns_of(records: Records) -> dict[str, tuple[Declared, Iterable[Chunk]]]:
    """The declared columns of records under a schema, read one at a time."""

    def chunks(name: str) -> Iterator[Chunk]:
        wanted = Wanted.DATES if isinstance(records.schema.columns[name], Date) else Wanted.LABELS
        for part in records._table.parts({name: wanted}, ROWS):
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
