"""Records as batches of plain floats or integers, whatever they came in.

No record can make this fail. A numeric array or a schema-clamped column is taken as it is; in anything else
each record is converted on its own, and one that is not a number becomes NaN, which the sums map to the
model's public ``missing`` value. What one record becomes never depends on another one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import InvalidModel

Batch = NDArray[Any]

NUMERIC = "buif"
"""The kinds of array whose records are numbers as they stand."""

BATCH_ROWS = 1 << 16
"""Small enough for the working arrays of a sum to stay in the processor's cache."""


def is_records(data: Any) -> bool:
    """Whether ``data`` was read with a schema.

    Records cannot exist before their module is loaded, so plain arrays load neither it nor what it needs: models and
    samplers run where only JAX, NumPy and SciPy are installed.
    """
    module = sys.modules.get("onedraw.data.records")
    return module is not None and isinstance(data, module.Records)


def schema_columns(data: Any) -> tuple[Any, ...] | None:
    """What the schema declares about the target, or else about all columns; None for plain data."""
    if not is_records(data):
        return None
    names = data.columns if data.target is None else (data.target,)
    return tuple(data.schema.columns[name] for name in names)


def check_shape(data: Any, columns: tuple[Any, ...] | None, *, dim: int) -> None:
    """One number per record, or ``dim`` of them: a property of the container, not of a record."""
    if columns is not None:
        if len(columns) != dim:
            raise InvalidModel(
                f"The model takes {dim} column(s), but the records offer {len(columns)}. Name a target for a "
                "model of one column; leave it out, and declare dim, for a model of all columns."
            )
        return
    if not isinstance(data, Sized):
        raise InvalidModel(
            f"The data must have a length, because n is public and part of the promise, but a "
            f"{type(data).__name__} came. Pass an array, a list or Records."
        )
    shape = getattr(data, "shape", None)
    if isinstance(shape, tuple) and shape[1:] != (() if dim == 1 else (dim,)):
        expected = "(n,)" if dim == 1 else f"(n, {dim})"
        raise InvalidModel(f"The data must be an array of shape {expected}, but one of shape {shape} came.")


def batches(data: Any) -> Iterator[Batch]:
    """One-dimensional numeric batches: of the target column, of an array, or of a sequence."""
    if is_records(data):
        for column in data.values(data.target or data.columns[0]):
            yield from _slices(column)
        return
    yield from _slices(_numeric(data))


def row_batches(data: Any, *, dim: int) -> Iterator[Batch]:
    """Batches of shape (rows, dim)."""
    if is_records(data):
        for batch in data.batches():
            yield from _slices(np.column_stack([np.asarray(column, dtype=np.float64) for column in batch.values()]))
        return
    found = array_of(data)
    if found is None or found.dtype.kind not in NUMERIC:
        records = data if found is None else found.tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = np.array([_row(record, dim) for record in records], dtype=np.float64).reshape(-1, dim)
    yield from _slices(found)


def _slices(values: Batch) -> Iterator[Batch]:
    for start in range(0, len(values), BATCH_ROWS):
        yield values[start : start + BATCH_ROWS]


def _numeric(data: Any) -> Batch:
    found = array_of(data)
    if found is not None and found.dtype.kind in NUMERIC:
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a record that converts with a warning is not a number
        records = data if found is None else found.tolist()
        return np.fromiter((_number(record) for record in records), dtype=np.float64, count=len(records))


def array_of(data: Any) -> Batch | None:
    """The data as an array if they are one already (a frame's column, say); masked values become None."""
    if isinstance(data, np.ma.MaskedArray):
        return np.array(data.tolist(None), dtype=object).reshape(data.shape)
    return np.asarray(data) if hasattr(data, "__array__") else None


def _number(record: Any) -> float:
    try:
        return float(record)
    except Exception:  # whatever a record is, it must not make the program fail
        return np.nan


def _row(record: Any, dim: int) -> list[float]:
    try:
        row = [_number(value) for value in record]
    except Exception:  # not even a sequence
        row = []
    return row if len(row) == dim else [np.nan] * dim
