"""How results and errors look in a terminal: a table for people, or one JSON document with --json.

Whatever is shown is escaped on the way: a text that somebody else wrote must not act on the reader's terminal.
"""

from __future__ import annotations

import json
import re
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


def console(*, stderr: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def show_error(error: OnedrawError) -> None:
    """One paragraph: what was expected, what was given, why it matters, what to do."""
    from rich.text import Text

    notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
    console(stderr=True).print(Text("onedraw: ", style="bold red") + Text(f"{error}{notes}"))


def show_lines(*lines: str, style: str = "", cut: bool = False) -> None:
    """Long ones are broken by the terminal, so that they can be copied; or cut at its width."""
    from rich.text import Text

    layout: dict[str, Any] = {"soft_wrap": False, "no_wrap": True, "overflow": "ellipsis"} if cut else {}
    for line in lines:
        console().print(Text(escaped(line), style=style), **layout)


def show_remark(line: str) -> None:
    """Beside the result, on stderr: what should be known and is no error."""
    from rich.text import Text

    console(stderr=True).print(Text("onedraw: ", style="bold yellow") + Text(escaped(line)))


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
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(escaped(title)), title_justify="left", title_style="bold", header_style="bold", show_edge=False,
        pad_edge=False,
    )  # fmt: skip
    for index, column in enumerate(columns):
        figures = index > 0 and all(FIGURE.fullmatch(row[index]) for row in rows)
        table.add_column(column, justify="right" if figures else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    console().print(table)


def number(value: float) -> str:
    """A figure for people; exact figures are in --json."""
    return f"{value:.4g}"
