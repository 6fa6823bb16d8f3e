"""What `fit` or `predict` was given: its shape is public and checked, its records are not looked at.

scikit-learn's own checks convert the records and raise on one that is not a number: that would tell whether there is
such a record. Here only the container is examined, and of it only what no record decides: the type of a column is never
a reason to refuse, and a list of rows has the declared number of columns, whatever the lengths of its rows. Records are
read later, by the model, after the ledger was charged; `MeasuredResponse` and `LabelCodes` put off what has to be done to
responses until then.

**With a schema**: categories, missing values and units as declared, columns by their names.
A schema says what `bounds`, `classes`, `response_bound` and `largest` say, and more, so these are left out beside it.
The records are released like a file's: a category has a coefficient for each level but the first, an unreadable cell
becomes the declared ``missing``, the certificate carries the schema, and whoever holds the release can predict for
frames and files.

``target`` names the column of the schema that is explained, ``y`` holds its records; or X does, and y is left out.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from onedraw.arrays import Array
from onedraw.data import DatabaseTable, Measure, Records, Schema, read
from onedraw.data.cells import label_of
from onedraw.data.columns import columns_in, library_of, plain_array
from onedraw.data.records import open_table
from onedraw.errors import InvalidModel, InvalidSchema, WrongCall
from onedraw.models.batches import batches, cells_of_row, is_rows, refuse_sparse
from onedraw.models.responses import Codes
from onedraw.private import Private

LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True, repr=False)
class Rows:
    """Rows as they were given, and what is public about them."""

    X: Any
    y: Any
    n: int
    features: int
    names: tuple[str, ...] | None


def check_rows(estimator: Any, X: Any, y: Any = None, *, reset: bool) -> Rows:
    """Check shapes, names and the number of columns; ``reset`` (in fit) remembers them on the estimator."""
    X = _container(X, "X")
    declared = getattr(estimator, "n_features_in_", None)
    if reset:  # how many columns the bounds speak of; None if they are the same numbers for all
        ends = estimator.bounds if isinstance(estimator.bounds, list | tuple) else ()
        declared = next((len(end) for end in ends if isinstance(end, list | tuple | np.ndarray)), None)
    n, features = _shape(X, declared)
    checked = np.empty((0, features)) if is_rows(X) else X  # a row is a record: its length is not looked at
    if reset:
        validate_data(estimator, checked, y, skip_check_array=True)
        y = None if y is None else _responses(y, n)
    else:
        validate_data(estimator, checked, reset=False, skip_check_array=True)
    names = getattr(estimator, "feature_names_in_", None)
    return Rows(X, y, n, features, None if names is None else tuple(map(str, names)))


def one_column(estimator: Any, X: Any) -> tuple[Any, int]:
    """A column of records, (n,) or (n, 1), and n."""
    X = _container(X, "X")
    shape = _shape_of(X)
    if len(shape) == 2 and shape[1] == 1:
        validate_data(estimator, X, skip_check_array=True)  # remembers a frame's column name
        X = _only_column(X)
    elif len(shape) != 1:
        raise InvalidModel(
            f"{type(estimator).__name__} takes one column of records, shape (n,) or (n, 1), got one of shape {shape}. "
            "Pass one column at a time: each is a release of its own."
        )
    estimator.n_features_in_ = 1
    if not shape[0]:
        raise InvalidModel(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    return X, shape[0]


def grouped_columns(
    estimator: Any, X: Any, by: dict[str, tuple[Any, ...]], missing: Any = None
) -> tuple[Any, tuple[Any, ...]]:
    """A column of records and the codes of its groups: of a frame by name, of rows (value, group, …) in that order."""
    X = _container(X, "X")
    width = _shape(X, 1 + len(by))[1]
    if width != 1 + len(by):
        raise InvalidModel(
            f"By {' and '.join(by)}, {type(estimator).__name__} takes {1 + len(by)} columns, the one it is about and its "
            f"groups, got {width}. Pass these alone."
        )
    validate_data(estimator, np.empty((0, width)) if is_rows(X) else X, skip_check_array=True)
    columns = columns_in(X)
    if columns is None:
        rows = [cells_of_row(row, width) for row in X] if is_rows(X) else None
        columns = [X[:, place] if rows is None else [row[place] for row in rows] for place in range(width)]
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    order = list(range(width))
    if names:
        if absent := [name for name in by if name not in names]:
            raise InvalidModel(
                f"The frame lacks {', '.join(map(repr, absent))}, named in by. Pass the columns it names."
            )
        order = [next(place for place, name in enumerate(names) if name not in by), *(names.index(name) for name in by)]
    value, *groups = (columns[place] for place in order)
    return value, tuple(LabelCodes(column, labels, missing) for column, labels in zip(groups, by.values(), strict=True))


def _container(data: Any, name: str) -> Any:
    refuse_sparse(data, name)
    if isinstance(data, np.ndarray):
        return plain_array(data)
    known = hasattr(data, "shape") or isinstance(data, list | tuple) or library_of(data) is not None
    return data if known or not hasattr(data, "__array__") else np.asarray(data)


def _shape_of(data: Any) -> tuple[int, ...]:
    shape = getattr(data, "shape", None)
    if isinstance(shape, tuple):
        return shape
    if isinstance(data, list | tuple) or library_of(data) is not None:
        return (len(data),)
    raise InvalidModel(
        f"Expected an array, a data frame or a list, got a {type(data).__name__}. The number of records is public "
        "and must be known before they are read."
    )


def _shape(X: Any, declared: int | None) -> tuple[int, int]:
    shape = _shape_of(X)
    if is_rows(X):
        if declared is None:
            raise InvalidModel(
                "The number of columns of a list of rows is not public: each row has a length of its own. Declare it, with "
                "bounds=([low, …], [high, …]), one each per column; or pass an array of numbers or a data frame."
            )
        shape = (len(X), declared)
    if len(shape) != 2:
        raise InvalidModel(
            f"Expected 2D array, got {len(shape)}D array instead: shape {shape}. Reshape your data, one row per record, "
            "with X.reshape(-1, 1) for one feature or X.reshape(1, -1) for one record."
        )
    for size, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if not size:
            raise InvalidModel(f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required.")
    return shape[0], shape[1]


def _only_column(table: Any) -> Any:
    columns = columns_in(table)
    return table[:, 0] if columns is None else columns[0]


def _responses(y: Any, n: int) -> Any:
    """One response per record; a single column is flattened, with scikit-learn's own warning."""
    y = _container(y, "y")
    shape = _shape_of(y)
    if len(shape) == 2 and shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for "
            "example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        y = _only_column(y)
    elif len(shape) != 1:
        raise InvalidModel(f"y must have one number or label per record, shape (n,), but it has shape {shape}.")
    if shape[0] != n:
        raise InvalidModel(f"X has {n} rows and y {shape[0]} entries; each record needs both.")
    return y


@dataclass(frozen=True, eq=False, repr=False)
class _Late(Private):
    """A column that becomes numbers when it is read, not before."""

    values: Any

    @property
    def shape(self) -> tuple[int]:
        return (len(self.values),)

    def __len__(self) -> int:
        return len(self.values)

    def _read(self) -> Array:
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self._read() if dtype is None else self._read().astype(dtype)


def as_given(column: Any) -> Any:
    """The records themselves, for a comparison with what is declared."""
    return column.values if isinstance(column, _Late) else column


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredResponse(_Late):
    """(response − centre)/unit, each record on its own; what is not a number stays NaN. The certificate says it."""

    measure: Measure

    def _read(self) -> Array:
        numbers = np.concatenate([np.asarray(batch, dtype=np.float64) for batch in batches(self.values)])
        with np.errstate(over="ignore"):
            measured = (numbers - self.measure.centre) / self.measure.unit
        return np.clip(measured, -LARGEST, LARGEST)  # a finite record stays one: clamped, not missing


@dataclass(frozen=True, eq=False, repr=False)
class LabelCodes(_Late):
    """The place of each label among the declared ones; one that is not declared is ``missing``, NaN for none, or else the first."""

    labels: tuple[Any, ...]
    missing: Any = None

    def _read(self) -> Array:
        return Codes(self.labels).from_values(self.values, self.missing)


# ── with a schema ──

SAID_BY_IT = ("bounds", "data_norm", "largest")
"""Parameters that a schema makes superfluous: two declarations of one thing could contradict each other."""


def declared_schema(estimator: Any) -> Schema:
    """The estimator's schema: one, or a file or a dictionary that says one."""
    given = estimator.schema
    for name in SAID_BY_IT:
        if getattr(estimator, name, None) is not None:
            raise WrongCall(f"The schema says what {name}= would say. Leave out {name}=, or the schema.")
    if not getattr(estimator, "fit_intercept", True):
        raise WrongCall(
            "With a schema there is always an intercept. Leave fit_intercept=True, or pass bounds= instead."
        )
    if isinstance(given, Schema):
        return given
    if isinstance(given, str | os.PathLike):
        return Schema.load(given)
    if isinstance(given, Mapping):
        return Schema.from_dict(given)
    raise InvalidSchema(
        f"schema must be an onedraw.Schema, the name of a schema file or a dictionary, not a {type(given).__name__}."
    )


def target_of(estimator: Any, schema: Schema, y: Any) -> str:
    """The column that is explained: as named, or what a series y is called."""
    name = estimator.target if estimator.target is not None else getattr(y, "name", None)
    if not isinstance(name, str):
        raise WrongCall(
            "Which column of the schema is explained? Pass target='…', a declared column, or a series y of that name."
        )
    schema.column(name)
    return name


def records_of(schema: Schema, target: str, X: Any, y: Any) -> Records:
    """The records under the schema: X with the target in it, or X and y beside each other."""
    if y is None:
        return read(X, schema, target=target)
    if schema.derived is not None:
        raise WrongCall(
            f"The formula explains {target!r}, which is computed from columns. Leave y out, and pass them in X."
        )
    columns = by_name(X, list(schema.predictors(target)))
    if target in columns:
        raise WrongCall(f"X has the target {target!r} as a column, and y was given as well. Leave out one of them.")
    return read({**columns, target: y}, schema, target=target)


def by_name(X: Any, names: list[str]) -> dict[str, Any]:
    """The columns of a frame or mapping; of an array, which has no names, those of the schema in their order."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.shape[1] != len(names):
            raise InvalidModel(
                f"Expected an array of {len(names)} columns, in the order of the schema ({', '.join(names[:6])}"
                f"{', …' if len(names) > 6 else ''}), not one of shape {X.shape}. Pass a data frame, which is read by names."
            )
        return {name: X[:, place] for place, name in enumerate(names)}
    if isinstance(X, str | os.PathLike | DatabaseTable):
        raise WrongCall("A file holds the target as well. Leave out y, and name it with target='…'.")
    return {name: X[name] for name in open_table(X).names}


def schema_classes(estimator: Any, schema: Schema, target: str) -> NDArray[Any]:
    """The labels as predictions give them: the target's levels, or ``classes``, the same ones in other types."""
    levels = schema.column(target).labels
    if estimator.classes is None:
        return np.asarray(levels)
    given = list(estimator.classes)
    plain = getattr(schema.column(target), "levels", None) is None and len(given) == 2
    if not plain and [label_of(label) for label in given] != [label_of(level) for level in levels]:
        raise InvalidModel(
            f"classes are the levels of {target!r} in the schema, {', '.join(levels)}, in this order. Leave out classes."
        )
    return np.asarray(given)
