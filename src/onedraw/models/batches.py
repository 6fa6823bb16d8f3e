"""Records as batches of plain floats or integers, whatever they came in.

No record can make this fail, and what one record becomes never depends on another one: every cell is read by the rule
of `onedraw.data.cells`, whatever the type of its container. A cell that is no finite number becomes NaN, which the sums
map to the model's public ``missing`` value. Numeric arrays are read in bulk, to the same effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from onedraw.data.columns import (
    Cells,
    Chunk,
    NumberEncoder,
    ReadWithSchema,
    Wanted,
    chunk_in,
    chunks_in,
    columns_in,
    plain_array,
)
from onedraw.errors import InvalidModel

Batch = NDArray[Any]

BATCH_ROWS = 1 << 16
"""Small enough for the working arrays of a sum to stay in the processor's cache."""


def is_records(data: Any) -> TypeGuard[Any]:
    """Whether ``data`` was read with a schema."""
    return isinstance(data, ReadWithSchema)


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
            f"{type(data).__name__} was given. Pass an array, a list or Records."
        )
    refuse_sparse(data, "the data")
    shape = getattr(data, "shape", None)
    if isinstance(shape, tuple) and shape[1:] != (() if dim == 1 else (dim,)) and not is_rows(data):
        expected = "(n,)" if dim == 1 else f"(n, {dim})"
        raise InvalidModel(f"The data must be an array of shape {expected}, got one of shape {shape}.")


def refuse_sparse(data: Any, name: str) -> None:
    """Sparse matrices are refused by their type, whatever they hold."""
    if hasattr(data, "toarray") or hasattr(data, "todense"):
        raise InvalidModel(f"Sparse data was passed for {name}, but dense data is required. Pass {name}.toarray().")


def is_rows(data: Any) -> bool:
    """Whether this is a sequence of rows, each of a length of its own: a list, or NumPy's array of such objects."""
    return isinstance(data, list | tuple) or (
        isinstance(data, np.ndarray) and data.dtype.kind == "O" and data.ndim == 1
    )


def batches(data: Any) -> Iterator[Batch]:
    """One-dimensional numeric batches: of the target column, of an array, or of a sequence."""
    if is_records(data):
        for column in data.values(data.target or data.columns[0]):
            yield from _slices(column)
        return
    yield from map(_numbers, chunks_in(data, Wanted.NUMBERS, BATCH_ROWS))


def row_batches(data: Any, *, dim: int) -> Iterator[Batch]:
    """Batches of shape (rows, dim)."""
    if is_records(data):
        for batch in data.batches():
            yield from _slices(np.column_stack([np.asarray(column, dtype=np.float64) for column in batch.values()]))
        return
    columns = columns_in(data)
    if columns is not None:
        parts = zip(*(chunks_in(column, Wanted.NUMBERS, BATCH_ROWS) for column in columns), strict=True)
        yield from (np.column_stack([_numbers(chunk) for chunk in chunks]) for chunks in parts)
        return
    table = data if is_rows(data) or not hasattr(data, "__array__") else plain_array(data)
    for start in range(0, len(table), BATCH_ROWS):
        yield _rows(table[start : start + BATCH_ROWS], dim)


def column_chunks(data: Any, *, dim: int) -> list[Iterator[Chunk]]:
    """Each column of plain data on its own, cell by cell: for a comparison with what is declared, not for a model."""
    columns = [data] if len(getattr(data, "shape", ())) == 1 or (dim == 1 and is_rows(data)) else columns_in(data)
    if columns is None and is_rows(data):
        rows = [cells_of_row(row, dim) for row in data]
        columns = [[row[place] for row in rows] for place in range(dim)]
    if columns is None:
        columns = [np.asanyarray(data)[:, place] for place in range(dim)]
    return [chunks_in(column, Wanted.LABELS, BATCH_ROWS) for column in columns]


def _slices(values: Batch) -> Iterator[Batch]:
    for start in range(0, len(values), BATCH_ROWS):
        yield values[start : start + BATCH_ROWS]


_ENCODER = NumberEncoder(-np.inf, np.inf, np.nan)


def _numbers(chunk: Chunk) -> Batch:
    """Finite numbers, NaN where there is none; integers stay what they are, and finite floats are not copied."""
    if not isinstance(chunk, Cells) and chunk.absent is None:
        kind = chunk.values.dtype
        if kind.kind != "f" or (kind == np.float64 and bool(np.isfinite(chunk.values).all())):
            return chunk.values
    return _ENCODER.encode(chunk)


def _rows(rows: Any, dim: int) -> Batch:
    """Rows of cells; one of another length, or that is no list, tuple or array, is a record of missing cells."""
    if isinstance(rows, np.ndarray) and not is_rows(rows):
        flat = chunk_in(rows.reshape(-1), Wanted.NUMBERS)
    else:
        flat = chunk_in([cell for row in rows for cell in cells_of_row(row, dim)], Wanted.NUMBERS)
    return _numbers(flat).reshape(-1, dim)


def is_row(cell: Any) -> bool:
    """Say whether an entry of a list is a row of its own: a list, a tuple or an array, but not one of no dimension."""
    kind = type(cell)
    return issubclass(kind, list | tuple) or (issubclass(kind, np.ndarray) and np.ndarray.ndim.__get__(cell) > 0)


def cells_of_row(row: Any, dim: int) -> list[Any]:
    """Return the cells of a list, tuple or array; for a row of another length, or anything else, as many missing ones.

    A row is a record, so derived classes are read by the methods of the class they derive from, as cells are.
    """
    kind = type(row)
    if issubclass(kind, np.ndarray):
        found = _cells_of_array(row)
    elif issubclass(kind, list | tuple):
        found = list(list.__iter__(row) if issubclass(kind, list) else tuple.__iter__(row))
    else:
        found = []
    return found if len(found) == dim else [None] * dim


def _cells_of_array(row: Any) -> list[Any]:
    """Return the cells of an array of one dimension, None where a masked one hides them; of any other array none."""
    kind, dtype = type(row), np.ndarray.dtype.__get__(row)
    if np.ndarray.ndim.__get__(row) != 1 or dtype.kind in "mMV":
        return []
    if not issubclass(kind, np.ma.MaskedArray):
        return list(np.ndarray.astype(row, object, subok=False).tolist())
    try:  # a derived class could say itself what it hides, and a mask set by hand need not fit
        return list(np.ma.filled(row.astype(object), None).tolist()) if kind is np.ma.MaskedArray else []
    except Exception:
        return []
