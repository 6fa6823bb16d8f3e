"""How results and errors look in a terminal: a table for people, or one JSON document with --json.

Whatever is shown is escaped on the way: a text that somebody else wrote must not act on the reader's terminal. In a terminal
prose is broken between words at its width, commands stay on one line, and a table that is too wide becomes one paragraph
for each row. Piped output has one line for each paragraph and row.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from onedraw.errors import OnedrawError
from onedraw.plain_text import acting, escaped

FIGURE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|-?inf")
"""A number as Python writes one; a column of nothing else stands to the right."""


def show_json(document: Mapping[str, Any]) -> None:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    print(text.translate({ord(mark): f"\\u{ord(mark):04x}" for mark in acting(text) if mark != "\n"}))


def answer(as_json: bool, document: Mapping[str, Any], *lines: str) -> None:
    """The document, or the lines."""
    if as_json:
        show_json(document)
    else:
        show_lines(*lines)


COMMAND = "    "
"""A line that begins so is a command to copy, which is never broken."""

SEPARATOR = 3
"""Columns of the terminal between two cells of a table."""


def console(*, stderr: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def wrapped(text: str, shown_on: Any) -> str:
    """Return the text broken between words at the width of a terminal; anywhere else as it is.

    Commands in backticks stay whole, so that they can be copied.
    """
    if not shown_on.is_terminal:
        return text
    whole = re.sub("`[^`\n]*`", lambda quoted: quoted[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    lines = (
        [line]
        if line.startswith(COMMAND)
        else textwrap.wrap(line, shown_on.width, break_long_words=False, break_on_hyphens=False)
        for line in whole.split("\n")
    )
    return "\n".join("\n".join(broken) for broken in lines).replace("\N{NO-BREAK SPACE}", " ")


def message(label: str, text: str, *, style: str) -> None:
    """Print a paragraph on stderr after a label in color."""
    from rich.text import Text

    errors = console(stderr=True)
    shown = Text(wrapped(f"{label}{text}", errors))
    shown.stylize(style, 0, len(label))
    errors.print(shown)


def show_error(error: OnedrawError) -> None:
    """One paragraph: what was expected, what was given, why it matters, what to do."""
    notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
    message("onedraw: ", f"{error}{notes}", style="bold red")


def show_lines(*lines: str, style: str = "", cut: bool = False) -> None:
    """Print paragraphs, broken at the terminal's width; or cut there, if ``cut``."""
    from rich.text import Text

    layout: dict[str, Any] = {"soft_wrap": False, "no_wrap": True, "overflow": "ellipsis"} if cut else {}
    for line in lines:
        output = console()
        output.print(Text(escaped(line) if cut else wrapped(escaped(line), output), style=style), **layout)


def show_remark(line: str) -> None:
    """Beside the result, on stderr: what should be known and is no error."""
    message("onedraw: ", escaped(line), style="bold yellow")


@contextmanager
def progress(what: str, *, total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr, in a terminal only, that moves by a public count of steps; call what it yields before each."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    errors = console(stderr=True)
    words, counted = TextColumn("{task.description}"), TextColumn("{task.completed}/{task.total}")
    columns = (words, BarColumn(), counted, TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        begun = False

        def step(name: str) -> None:
            nonlocal begun
            if begun:
                bar.advance(task)
            begun = True
            bar.update(task, description=f"{what}: {name}" if name else what)

        yield step


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A turning sign on stderr, in a terminal only, beside words that are fixed before any record is read; Ctrl-C prints what is
    to be done about a charge that stands."""
    errors = console(stderr=True)
    try:
        with errors.status(what) if errors.is_terminal else nullcontext():
            yield
    except KeyboardInterrupt as stopped:
        for note in getattr(stopped, "__notes__", ()):
            show_remark(note)
        raise


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, no word of which is broken; where a terminal is too narrow for that, a paragraph for each row."""
    from rich.table import Table
    from rich.text import Text

    output, written = console(), [[escaped(cell) for cell in row] for row in rows]
    room = output.width - SEPARATOR * (len(columns) - 1) if output.is_terminal else None
    widths = column_widths([columns, *written], room)
    if title:
        show_lines(title, style="bold" if output.is_terminal else "")
    if widths is None:
        for row in written:
            show_lines("", *(f"{name}: {cell}" for name, cell in zip(columns, row, strict=True)))
        return
    table = Table(header_style="bold", show_edge=False, pad_edge=False)
    for index, column in enumerate(columns):
        figures = index > 0 and all(FIGURE.fullmatch(row[index]) for row in rows)
        table.add_column(column, justify="right" if figures else "left", overflow="fold", width=widths[index])
    for row in written:
        table.add_row(*map(Text, row))
    output.width = max(output.width, sum(widths) + SEPARATOR * len(widths))  # a pipe has no width
    output.print(table)


def column_widths(rows: Sequence[Sequence[str]], room: int | None) -> list[int] | None:
    """Return the widths of a table's columns, header included, within ``room`` if there is a limit.

    The widest column gives way first, and none becomes narrower than its longest word. None if the words do not fit.
    """
    from rich.cells import cell_len

    cells = list(zip(*rows, strict=True))
    widths = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in cells]
    if room is None or sum(widths) <= room:
        return widths
    least = [max((cell_len(word) for cell in column for word in cell.split()), default=0) for column in cells]
    if sum(least) > room:
        return None
    while sum(widths) > room:
        widest = max((index for index in range(len(widths)) if widths[index] > least[index]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def number(value: float) -> str:
    """A figure for people; exact figures are in --json."""
    return f"{value:.4g}"
