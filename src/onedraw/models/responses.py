"""The response of a record as a number: a sign, a class code, or a value in a public interval.

Whatever a record holds becomes one of these, each record on its own by the rule of `onedraw.data.cells`: an unknown
label is the first class, and what is no finite number the point of the interval nearest to 0.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sized
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onedraw.arrays import Array, Mask
from onedraw.data.cells import label_of
from onedraw.data.columns import LevelEncoder, Wanted, chunks_in
from onedraw.errors import InvalidModel

from .batches import BATCH_ROWS, batches, refuse_sparse
from .convex.losses import SIGNS, Interval
from .model import number

Label = str | int | float


class Response(abc.ABC):
    """How responses are read, from a schema's column or from plain values."""

    kinds: ClassVar[tuple[str, ...]]
    two_levels: ClassVar[bool] = False
    """Whether its column must have two levels."""
    classes: tuple[Label, ...] | None = None
    """The declared labels in the order of their codes, where a response is one of several."""

    @property
    @abc.abstractmethod
    def interval(self) -> Interval:
        """The ends of what can come out."""

    def check_column(self, column: Any) -> None:
        """Refuse a column that is declared as something else, or with other classes; public."""
        if column.role not in self.kinds:
            raise InvalidModel(
                f"The response must be a column declared as {' or '.join(self.kinds)}, but the target is declared as "
                f"{column.kind}. Its values would mean something else. Choose another model or target."
            )
        if self.classes is not None and tuple(map(label_of, self.classes)) != tuple(map(label_of, column.labels)):
            raise InvalidModel(
                f"The model's classes are {', '.join(map(str, self.classes))}, the target's levels in the schema are "
                f"{', '.join(column.labels)}. Declare the same ones in the same order."
            )
        if self.two_levels and len(column.labels) != 2:
            raise InvalidModel(
                f"A model of two classes needs a target of two levels, but {len(column.labels)} are declared."
            )

    @property
    def of_missing(self) -> str:
        """What a missing response is read as where it is not skipped, in words."""
        return "the first class"

    @abc.abstractmethod
    def from_column(self, values: NDArray[Any]) -> Array:
        """From the codes or numbers of a schema's column."""

    def known(self, values: Any) -> Mask:
        """Say of each entry of an array or a sequence whether it is a response, and not a missing cell."""
        return np.concatenate([np.zeros(0, dtype=bool), *(np.isfinite(batch) for batch in batches(values))])

    def from_values(self, values: Any) -> Array:
        """From an array or a sequence."""
        return np.concatenate([np.zeros(0), *map(self.from_column, batches(values))])


@dataclass(frozen=True)
class Codes(Response):
    """0, …, K − 1 for the declared classes, in their order."""

    kinds: ClassVar[tuple[str, ...]] = ("binary", "category")

    classes: tuple[Label, ...] = field()

    @property
    def interval(self) -> Interval:
        return (0.0, float(len(self.classes) - 1))

    def from_column(self, values: NDArray[Any]) -> Array:
        return np.where(values >= 0, values, 0).astype(np.float64)  # skipped ones have no weight, and are any class

    def known(self, values: Any) -> Mask:
        return np.isfinite(self.from_values(values, np.nan))

    def from_values(self, values: Any, missing: Any = None) -> Array:
        """From labels; ``missing`` is the class of those that are not declared, NaN for none, by default the first one."""
        encoder = LevelEncoder(self.classes, missing=self.classes[0] if missing is None else missing)
        parts = [encoder.encode(chunk) for chunk in chunks_in(values, Wanted.LABELS, BATCH_ROWS)]
        return np.concatenate([np.zeros(0), *parts])


@dataclass(frozen=True)
class Signs(Response):
    """−1 and +1 for (negative, positive) classes; without them 1 is +1, and 0, −1 and all else are −1."""

    kinds: ClassVar[tuple[str, ...]] = ("binary", "category")
    two_levels: ClassVar[bool] = True
    interval = SIGNS

    classes: tuple[Label, ...] | None = None

    def from_column(self, values: NDArray[Any]) -> Array:
        return np.where(values == 1, 1.0, -1.0)

    def known(self, values: Any) -> Mask:
        return super().known(values) if self.classes is None else Codes(self.classes).known(values)

    def from_values(self, values: Any) -> Array:
        if self.classes is None:
            return super().from_values(values)
        return 2.0 * Codes(self.classes).from_values(values) - 1.0


@dataclass(frozen=True)
class Clamped(Response):
    """A number, moved to the nearest end of [lower, upper] if outside."""

    kinds: ClassVar[tuple[str, ...]] = ("number", "count", "binary")

    lower: float
    upper: float

    @property
    def interval(self) -> Interval:
        return (self.lower, self.upper)

    @property
    def of_missing(self) -> str:
        return f"{min(max(0.0, self.lower), self.upper):g}"

    def from_column(self, values: NDArray[Any]) -> Array:
        numbers = np.asarray(values, dtype=np.float64)
        substitute = min(max(0.0, self.lower), self.upper)
        return np.clip(np.where(np.isnan(numbers), substitute, numbers), self.lower, self.upper) + 0.0


@dataclass(frozen=True)
class Counts(Response):
    """0, 1, 2, …: fractions are rounded down, negative numbers and what is not a number become 0, and counts above
    1e15, where floating-point numbers stop counting, become 1e15."""

    kinds: ClassVar[tuple[str, ...]] = ("count", "binary")
    interval = (0.0, 1e15)

    @property
    def of_missing(self) -> str:
        return "0"

    def from_column(self, values: NDArray[Any]) -> Array:
        return np.floor(Clamped(*self.interval).from_column(values))


def check_values(values: Any, *, n: int) -> None:
    """One response per record: a property of the containers, not of a record."""
    if not isinstance(values, Sized):
        raise InvalidModel(f"y must be an array or a list, got a {type(values).__name__}.")
    refuse_sparse(values, "y")
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        raise InvalidModel(f"y must have one number or label per record, shape (n,), but it has shape {shape}.")
    if len(values) != n:
        raise InvalidModel(f"X has {n} rows and y {len(values)} entries; each record needs both.")


def class_labels(name: str, classes: Any, *, most: float = math.inf) -> tuple[Label, ...]:
    """Declared classes: at least two different labels, which records can have and which are not read as one cell. Classes found in
    the records would tell who is there."""
    if not isinstance(classes, list | tuple | np.ndarray):
        raise InvalidModel(
            f"{name} must be the list of class labels, got a {type(classes).__name__}. Labels found in the records would tell which "
            "of them occur, so they are declared."
        )
    labels = tuple(_label(label) for label in classes)
    read = [label_of(label) for label in labels]
    if None in read:
        raise InvalidModel(
            f"{name} must not contain {labels[read.index(None)]!r}, because a record that says so is read as missing. "
            "Remove it, or declare a word for it."
        )
    if len(set(read)) != len(read) or len(read) < 2:
        same = next((label for place, label in enumerate(labels) if read[place] in read[:place]), None)
        found = "" if same is None else f" ({labels[read.index(label_of(same))]!r} and {same!r} are read as one cell)"
        raise InvalidModel(
            f"{name} must be at least two different labels, got {len(set(read))}{found}. Numbers are compared as numbers, true as 1 "
            "and false as 0, since a container may hold them so. Keep one of each, or make them words."
        )
    if len(labels) > most:
        raise InvalidModel(
            f"{name} must be two labels, the negative one first, but {len(labels)} were given. Use Softmax for more."
        )
    return labels


two_classes = partial(class_labels, most=2)
"""(negative, positive)."""

TWO_CLASSES = {"check": two_classes}
"""Metadata of a field of two labels, or None for the usual numbers; see `check_fields`."""


def _label(label: Any) -> Label:
    if isinstance(label, bool | np.bool_):
        return int(label)
    if isinstance(label, str):
        return str(label)
    value = number("a class label that is not text", label)
    return int(value) if value == int(value) else value
