"""From the cells of a batch to the numbers a model sees, by the declared column alone.

A source hands over each column of a batch in one of two shapes: `Numbers` (an array the source already holds
as numbers) or `Cells` (anything else, each different value once where the source knows that). An encoder
projects every cell onto what the column declares, and what it cannot read (missing, unparseable, undeclared,
NaN, ±inf) onto the declared `missing`:

| kind     | encoded as                | a readable cell                                                |
| -------- | ------------------------- | -------------------------------------------------------------- |
| number   | float64 in [lower, upper] | moved to the nearest bound                                     |
| count    | int64 in 0 … cap          | moved to the nearest bound, then rounded (halves to even)      |
| category | int64 code 0 … K−1        | the code of the declared level it is                           |
| binary   | int64 0 or 1              | the code of the declared level it is                           |

Both shapes of the same column give the same codes (tests: a frame's inferred type never matters).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from onedraw.data.cells import BINARY_WORDS, label_of, number_of
from onedraw.data.columns import Chunk, Numbers, Wanted

Encoded = npt.NDArray[Any]


class Encoder(ABC):
    """Encodes chunks of one declared column; `missing` is the code of a missing cell."""

    missing: float | int
    wanted: Wanted  # as what a source that holds text should try to hand it over

    @final
    def encode(self, chunk: Chunk) -> Encoded:
        if isinstance(chunk, Numbers):
            return self._encode_numbers(chunk)
        different = self._encode_cells(chunk.values)
        with_missing = np.append(different, different.dtype.type(self.missing))
        encoded: Encoded = with_missing[chunk.codes]  # code −1 is the appended one
        return encoded

    @abstractmethod
    def _encode_numbers(self, chunk: Numbers) -> Encoded: ...

    @abstractmethod
    def _encode_cells(self, values: Sequence[Any]) -> Encoded: ...


@final
class NumberEncoder(Encoder):
    wanted = Wanted.NUMBERS

    def __init__(self, lower: float, upper: float, missing: float) -> None:
        self.lower, self.upper, self.missing = lower, upper, float(missing)

    def _encode_numbers(self, chunk: Numbers) -> Encoded:
        encoded = chunk.floats()
        readable = np.isfinite(encoded)
        if chunk.absent is not None:
            readable &= ~chunk.absent
        np.clip(encoded, self.lower, self.upper, out=encoded)
        if not readable.all():
            encoded[~readable] = self.missing
        return encoded

    def _encode_cells(self, values: Sequence[Any]) -> Encoded:
        numbers = (value if type(value) is float else number_of(value) for value in values)
        return self._encode_numbers(Numbers(np.fromiter(numbers, np.float64, len(values))))


@final
class CountEncoder(Encoder):
    wanted = Wanted.NUMBERS

    def __init__(self, cap: int, missing: int) -> None:
        self.missing = missing
        self._clamp = NumberEncoder(0, cap, missing)

    def _encode_numbers(self, chunk: Numbers) -> Encoded:
        if chunk.values.dtype.kind in "iub" and chunk.absent is None:  # whole already: no detour through floats
            cap = np.asarray(min(int(self._clamp.upper), _largest(chunk.values.dtype)), chunk.values.dtype)
            clipped: Encoded = np.clip(chunk.values, chunk.values.dtype.type(0), cap).astype(np.int64)
            return clipped
        return np.rint(self._clamp._encode_numbers(chunk)).astype(np.int64)

    def _encode_cells(self, values: Sequence[Any]) -> Encoded:
        return np.rint(self._clamp._encode_cells(values)).astype(np.int64)


@final
class LevelEncoder(Encoder):
    """Codes levels by their labels; `plain_binary` also knows the words no and yes, in any case."""

    wanted = Wanted.LABELS

    def __init__(self, labels: Sequence[str | float], missing: str | float, *, plain_binary: bool = False) -> None:
        if plain_binary:
            self._codes: dict[str | None, int] = {"0": 0, "1": 1, BINARY_WORDS[0]: 0, BINARY_WORDS[1]: 1}
        else:
            self._codes = {label_of(label): code for code, label in enumerate(labels)}
        self._any_case = plain_binary
        self.missing = self._codes[self._label(missing)]
        numeric = {number_of(label): code for label, code in self._codes.items() if np.isfinite(number_of(label))}
        self._in_order = [numeric.get(float(code)) for code in range(len(numeric))] == list(range(len(numeric)))
        self._numbers = np.array(sorted(numeric), dtype=np.float64)
        self._number_codes = np.array([numeric[value] for value in sorted(numeric)], dtype=np.int64)

    def _label(self, cell: Any) -> str | None:
        label = label_of(cell)
        return label.lower() if self._any_case and label is not None else label

    def _encode_numbers(self, chunk: Numbers) -> Encoded:
        if self._in_order and chunk.absent is None and _all_below(chunk.values, len(self._numbers)):
            return chunk.values.astype(np.int64)  # every value is its own code
        values = chunk.floats()
        if not len(self._numbers):
            return np.full(len(values), self.missing, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._numbers, values), len(self._numbers) - 1)
        declared = self._numbers[place] == values  # False for NaN
        if chunk.absent is not None:
            declared &= ~chunk.absent
        return np.where(declared, self._number_codes[place], self.missing)

    def _encode_cells(self, values: Sequence[Any]) -> Encoded:
        codes = (self._codes.get(self._label(value), self.missing) for value in values)
        return np.fromiter(codes, np.int64, len(values))


def _largest(kind: np.dtype[Any]) -> int:
    return 1 if kind.kind == "b" else int(np.iinfo(kind).max)


def _all_below(values: npt.NDArray[Any], limit: int) -> bool:
    """Whether these are whole numbers 0 … limit−1, seen in one pass each over least and largest."""
    return bool(values.dtype.kind in "iub" and len(values) and int(values.min()) >= 0 and int(values.max()) < limit)
