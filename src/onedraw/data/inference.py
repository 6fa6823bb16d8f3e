"""A first schema from a PUBLIC file, to be read and corrected by a person.

Everything written here comes from the file's records, so it is public only if the file is. The schema is
marked with the file's name; the mark is repeated on every certificate ("inferred from …: must be public").

| the cells of a column (blanks, ?, NA … apart) | become                                            |
| --------------------------------------------- | ------------------------------------------------- |
| two different values                          | binary, the smaller (or no, false) coded 0        |
| whole numbers from 0 to a billion             | count, the cap being the largest                  |
| numbers                                       | number, the bounds being the smallest and largest |
| dates typed as such, or written as ISO text   | date, the first and last being those of the file  |
| up to `max_levels` different texts            | category, levels in order                         |
| one value, none, or more texts than that      | nothing: the column is left out, with the reason  |

Missing cells contribute nothing (`missing: skip`): what they could become is for whoever declares it.
"""

from __future__ import annotations

import datetime
import math
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onedraw.data.cells import BINARY_WORDS, label_of, number_of, text_of
from onedraw.data.columns import Cells, Chunk, Wanted
from onedraw.data.dates import DAY, EARLIEST, LATEST, compiled
from onedraw.data.declarations import LARGEST_CAP, Binary, Category, Column, Count, Date, Number
from onedraw.data.records import open_table
from onedraw.data.schema import Schema
from onedraw.errors import InvalidSchema
from onedraw.plain_text import acting

_ROWS = 65536
EPOCH_DAY = datetime.date(1970, 1, 1)
_MISSING = ("?", "-", ".", "na", "n/a", "null", "none")  # how public files often write a missing cell
UNSHOWABLE = "control characters stand in its name or values, which no terminal or report can show"
_NO_YES = {"no": "yes", "false": "true", "n": "y", "f": "t", "absent": "present", "negative": "positive"}


@dataclass(frozen=True)
class Inference:
    """An inferred schema, and the columns that were left out, with the reason."""

    schema: Schema
    left_out: dict[str, str]


def infer_schema(public_source: Any, *, max_levels: int = 50, name: str | None = None) -> Schema:
    """The inferred schema alone; see `infer`."""
    return infer(public_source, max_levels=max_levels, name=name).schema


def infer(public_source: Any, *, max_levels: int = 50, name: str | None = None) -> Inference:
    """Read a PUBLIC file or frame and propose a schema for files like it; `name` says where it comes from."""
    table = open_table(public_source)
    if name is None:
        name = Path(public_source).name if isinstance(public_source, (str, os.PathLike)) else table.what
    left_out = {column: "its name occurs twice" for column, times in Counter(table.names).items() if times > 1}
    left_out |= {
        column: f"its type {kind} holds neither numbers nor text nor dates"
        for column, kind in table.unsuitable(dict.fromkeys(table.names, Wanted.DATES)).items()
    }
    left_out |= {column: UNSHOWABLE for column in table.names if acting(str(column))}
    seen = {column: _Seen(max_levels) for column in table.names if column and column not in left_out}
    for part in table.parts(dict.fromkeys(seen, Wanted.DATES), _ROWS) if seen else []:
        for batch in part():
            for column, chunk in batch.items():
                seen[column].add(chunk)
    declared = {column: summary.column() for column, summary in seen.items()}
    left_out |= {column: reason for column, reason in declared.items() if isinstance(reason, str)}
    columns = {column: found for column, found in declared.items() if not isinstance(found, str)}
    if not columns:
        raise InvalidSchema(
            f"No column of {table.what} could be described: expected at least one with two different values. "
            "Write the schema by hand."
        )
    return Inference(Schema(inferred_from=name, columns=columns), left_out)


@dataclass
class _Seen:
    """What a column of the public file holds, in one pass."""

    max_levels: int
    labels: Counter[str] = field(default_factory=Counter)
    spelt: dict[str, str] = field(default_factory=dict)
    many: bool = False
    words: bool = False
    whole: bool = True
    count: int = 0
    total: float = 0.0
    smallest: float = math.inf
    largest: float = -math.inf
    dates: bool = True
    """Whether all cells so far are dates as ISO text."""
    times: bool = False
    earliest: int = LATEST
    latest: int = EARLIEST

    def add(self, chunk: Chunk) -> None:
        cells = chunk if isinstance(chunk, Cells) else chunk.as_cells()
        repeats = np.bincount(cells.codes[cells.codes >= 0], minlength=len(cells.values))
        for cell, times in zip(cells.values, repeats.tolist(), strict=True):
            label = label_of(cell)
            if label is not None and label.lower() not in _MISSING and times:
                self._add(label, cell, times)

    def _add(self, label: str, cell: Any, times: int) -> None:
        if not self.many:
            self.labels[label] += times
            self.many = len(self.labels) > self.max_levels
        number = number_of(cell)
        text = text_of(cell) if isinstance(cell, (str, bytes)) else None
        self.dates = self.dates and self._is_date(label)
        if math.isnan(number) or str(text).lower() in ("true", "false"):  # compared as 1 and 0, but words
            self.words = True
            self.spelt.setdefault(label, {"0": "false", "1": "true"}.get(label, label))
            return
        self.count += times
        self.total += number * times
        self.smallest, self.largest = min(self.smallest, number), max(self.largest, number)
        self.whole = self.whole and number.is_integer()

    def _is_date(self, label: str) -> bool:
        said = compiled("%F").read(label)
        if said is None:
            return False
        self.earliest, self.latest = min(self.earliest, said[0]), max(self.latest, said[0])
        self.times = self.times or said[0] % DAY != 0
        return True

    def column(self) -> Column | str:
        """The declaration, or why there is none."""
        if not self.labels:
            return "it has no values"
        if len(self.labels) == 1:
            return "all its values are the same"
        if self.dates:
            ends = [EPOCH_DAY + datetime.timedelta(days=moment // DAY) for moment in (self.earliest, self.latest)]
            middle, form = ends[0] + (ends[1] - ends[0]) / 2, "%Y-%m-%d %H:%M:%S" if self.times else "%Y-%m-%d"
            first, last = (end.isoformat() for end in ends)
            return Date(first=first, last=last, format=form, missing=middle.isoformat())
        if not self.many and any(map(acting, self.labels)):
            return UNSHOWABLE
        labels = Counter({self.spelt.get(label, label): times for label, times in self.labels.items()})
        if len(labels) == 2:
            levels = _zero_first(labels)
            plain = tuple(level.lower() for level in levels) == BINARY_WORDS
            return Binary(levels=None if plain else levels)
        if self.words:
            if self.many:
                return f"it holds text with more than {self.max_levels} different values"
            return Category(levels=tuple(sorted(labels)))
        mean = min(max(self.total / self.count, self.smallest), self.largest)
        if self.whole and self.smallest >= 0 and self.largest <= LARGEST_CAP:
            return Count(cap=int(self.largest))
        if not math.isfinite(self.largest - self.smallest) or not math.isfinite(mean):
            return "its numbers are too large for bounds to mean anything"
        return Number(lower=self.smallest, upper=self.largest)


def _zero_first(labels: Counter[str]) -> tuple[str, ...]:
    """Two labels in order: no before yes, false before true, numbers by size, texts by alphabet."""
    lowered = {label.lower() for label in labels}
    zeros = {zero for zero, one in _NO_YES.items() if {zero, one} == lowered}

    def key(label: str) -> tuple[bool, float, str]:
        number = number_of(label)
        return label.lower() not in zeros, number if math.isfinite(number) else math.inf, label

    return tuple(sorted(labels, key=key))
