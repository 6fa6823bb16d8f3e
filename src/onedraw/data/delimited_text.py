"""Comma-separated text, read so that no line can change how another is read.

A CSV parser that lets a quoted cell run over several lines lets one unclosed quote swallow the rest of the
file: one record would change all others and n. Here one physical line is one record, always:

- The header decides, for the whole file: its line end (\\n, \\r\\n or a lone \\r) is the file's. In a file of
  \\n the \\r before it belongs to the line end; otherwise the other character is an ordinary one in a line.
- n is the number of lines after the header. A blank line is a record with every cell missing; only the
  nothing after the last line end is no record.
- Cells are separated by commas. A cell that starts with a double quote ends with the next single double
  quote, which must be followed by a comma or the end of the line ("" inside stands for one). Line ends
  inside quotes are not supported: such a cell is read as two records.
- A line that is ragged (more or fewer cells than the header), whose quote never closes or is followed by
  text, or that is longer than a mebibyte, is a record with every cell missing.
- A cell that is not UTF-8, holds NUL bytes, or makes no sense is missing by itself (cells.py).

Lines with the right number of commas and no quotes but around whole cells are split by pyarrow, the others
one by one; a test holds the two ways together on random bytes.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from onedraw.arrays import Mask
from onedraw.data.columns import Wanted
from onedraw.data.tables import Batch, Table, file_version
from onedraw.errors import FileMismatch

LONGEST_LINE = 2**20
BLOCK = 2**22
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COMMA, _QUOTE, _NEWLINE, _RETURN = 44, 34, 10, 13

Characters = npt.NDArray[np.uint8]
Places = npt.NDArray[np.intp]


class DelimitedText(Table):
    """A CSV file, plain or gzip-compressed."""

    ahead = True
    even = False

    def __init__(self, path: Path) -> None:
        self._path, self.what = path, path.name
        with self._open() as stream:
            self._read_header(stream)
            stream.seek(self._first)
            lines, last = 0, self._end
            while piece := stream.read(BLOCK):
                lines += piece.count(self._end)
                last = piece[-1:]
        self.n = lines + (last != self._end)
        if len(self.names) == 1:
            self.count_note = (
                f"{self.what} has one column, where an empty last record without a line end after it is no line and does not "
                'count. Write it as "", or end the file with a line end.'
            )

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        try:
            opener = gzip.open if self._path.suffix.lower() == ".gz" else open
            with cast("IO[bytes]", opener(self._path, "rb")) as stream:
                yield stream
        except (OSError, EOFError, zlib.error):
            raise FileMismatch(
                f"{self._path.name} cannot be read: it is missing, may not be opened, or is not the plain or "
                "gzip file its name says. Check the path and that the file is whole."
            ) from None

    # The header: the only line that may be wrong

    def _read_header(self, stream: IO[bytes]) -> None:
        start = stream.read(LONGEST_LINE + 2)
        ends = [place for place in (start.find(b"\n"), start.find(b"\r")) if place >= 0]
        length = min(ends, default=len(start))
        if start[length : length + 2] == b"\r\n":
            self._end, self._first = b"\n", length + 2
        else:
            self._end, self._first = start[length : length + 1] or b"\n", min(length + 1, len(start))
        header = start[:length].removeprefix(BYTE_ORDER_MARK)
        if length > LONGEST_LINE or not header.strip():
            raise FileMismatch(
                f"{self._path.name} has no header: expected a first line of column names, got "
                f"{'a line of more than a mebibyte' if header else 'nothing'}. Add the header line."
            )
        try:
            self.names = tuple(name.decode("utf-8").strip() for name in split_line(header) or ())
        except UnicodeDecodeError:
            self.names = ()
        if not self.names:
            raise FileMismatch(
                f"The header of {self._path.name} cannot be read: expected UTF-8 text, names separated by commas, every quote "
                "closed. Save the file as UTF-8 (not UTF-16 or Latin-1) and correct its first line."
            ) from None

    # The records

    def version(self) -> Any:
        return file_version(self._path)

    def batches(self, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Batch]:
        from onedraw.data.arrow_tables import chunk_of_text

        first = {name: place for place, name in reversed(list(enumerate(self.names)))}  # tens of thousands of columns
        places = [first[name] for name in wanted]
        for block in self._blocks():
            columns = columns_of(block, self._end, len(self.names), places)
            yield {name: chunk_of_text(column, wanted[name]) for name, column in zip(wanted, columns, strict=True)}

    def _blocks(self) -> Iterator[bytes]:
        """Whole lines, each with its line end; a line too long to hold is handed over as a blank one."""
        held, too_long = b"", False
        with self._open() as stream:
            stream.seek(self._first)
            while piece := stream.read(BLOCK):
                if cut := piece.rfind(self._end) + 1:
                    block = held + piece[:cut]
                    yield block[block.index(self._end) :] if too_long else block
                    held, too_long = b"", False
                held += piece[cut:] if not too_long else b""
                if len(held) > LONGEST_LINE:
                    held, too_long = b"", True
        if held or too_long:
            yield held + self._end


def columns_of(block: bytes, end: bytes, columns: int, wanted: Sequence[int]) -> list[Any]:
    """The wanted columns of a block of whole lines, as Arrow arrays of bytes."""
    from onedraw.data.arrow_tables import split_lines, weave

    characters = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(characters == end[0])
    odd, quotes = odd_lines(block, characters, ends, columns)
    plain = block
    if odd.any() or len(quotes):
        keep = np.repeat(~odd, np.diff(ends, prepend=-1))
        keep[quotes] = False
        plain = characters[keep].tobytes()
    arrays = split_lines(plain, int((~odd).sum()), columns, wanted) if plain else None
    if arrays is None:  # also if Arrow should disagree with us about what a plain line is
        odd[:] = True
    elif not odd.any():
        return arrays
    starts = np.append(0, ends[:-1] + 1)
    records = [split_line(block[starts[line] : ends[line]], columns) for line in np.flatnonzero(odd)]
    cells = [[record[place] if record is not None else None for record in records] for place in wanted]
    plains = arrays or [None] * len(cells)
    return [weave(array, column, odd) for array, column in zip(plains, cells, strict=True)]


def odd_lines(block: bytes, characters: Characters, ends: Places, columns: int) -> tuple[Mask, Places]:
    """The lines that need a careful look, and the quotes that may simply be left out of the others."""
    commas = np.flatnonzero(characters == _COMMA)
    odd: Mask = np.diff(np.searchsorted(commas, ends), prepend=0) != columns - 1
    odd |= np.diff(ends, prepend=-1) - 1 > LONGEST_LINE

    def mark(places: Places) -> None:
        odd[np.searchsorted(ends, places)] = True

    if BYTE_ORDER_MARK in block:  # Arrow drops one at the start of what it is given
        mark(np.flatnonzero(characters == BYTE_ORDER_MARK[0]))
    if block[-1] == _RETURN:
        mark(np.flatnonzero(characters == _NEWLINE))
    elif b"\r" in block:
        returns = np.flatnonzero(characters == _RETURN)
        mark(returns[characters[returns + 1] != _NEWLINE])
    if b'"' not in block:
        return odd, np.empty(0, dtype=np.intp)
    quotes = np.flatnonzero(characters == _QUOTE)
    odd |= _needs_unquoting(characters, ends, commas, quotes)
    return odd, quotes[~odd[np.searchsorted(ends, quotes)]]


def _needs_unquoting(characters: Characters, ends: Places, commas: Places, quotes: Places) -> Mask:
    """Lines where a quote is anything but the first or last character of a cell without commas and quotes."""
    line = np.searchsorted(ends, quotes)
    odd: Mask = np.bincount(line, minlength=len(ends)) % 2 == 1
    paired = ~odd[line]
    first, last = quotes[paired].reshape(-1, 2).T
    line = line[paired][::2]
    opens = (first == 0) | np.isin(characters[first - 1], (_COMMA, characters[-1]))
    after = characters[last + 1]  # the block ends with a line end, so there is one
    closes = (after == _COMMA) | (last + 1 == ends[line])
    if characters[-1] == _NEWLINE:
        closes |= (after == _RETURN) & (last + 2 == ends[line])
    whole = np.searchsorted(commas, first) == np.searchsorted(commas, last)
    odd[line[~(opens & closes & whole)]] = True
    return odd


def split_line(line: bytes, columns: int | None = None) -> list[bytes] | None:
    """The cells of one line, without its end; None if it is malformed or has not `columns` cells."""
    if len(line) > LONGEST_LINE:
        return None
    line = line.removesuffix(b"\r")
    cells = _split_quoted(line) if b'"' in line else line.split(b",")
    return cells if cells is not None and columns in (None, len(cells)) else None


def _split_quoted(line: bytes) -> list[bytes] | None:
    cells, place = [], 0
    while True:
        if line[place : place + 1] == b'"':
            close = line.find(b'"', place + 1)
            while close >= 0 and line[close + 1 : close + 2] == b'"':
                close = line.find(b'"', close + 2)
            if close < 0:
                return None  # never closed
            cells.append(line[place + 1 : close].replace(b'""', b'"'))
            place = close + 1
        else:
            comma = line.find(b",", place)
            cells.append(line[place : comma if comma >= 0 else len(line)])
            place += len(cells[-1])
        if place == len(line):
            return cells
        if line[place : place + 1] != b",":
            return None  # text after a closing quote
        place += 1
