"""What came into `fit` or `predict`: its shape is public and checked, its records are not looked at.

scikit-learn's own checks convert the records and raise on one that is not a number: that would tell whether there is
such a record. Here only the container is examined. Records are read later, by the model, after the ledger was charged;
`Measured` and `LabelCodes` put off what has to be done to responses until then.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from onedraw.data import Measure
from onedraw.errors import InvalidModel
from onedraw.models.reading import batches
from onedraw.models.responses import Codes


@dataclass(frozen=True, repr=False)
class Incoming:
    """Rows as they came, and what is public about them."""

    X: Any
    y: Any
    n: int
    features: int
    names: tuple[str, ...] | None


def incoming(estimator: Any, X: Any, y: Any = None, *, reset: bool) -> Incoming:
    """Check shapes, names and the number of columns; ``reset`` (in fit) remembers them on the estimator."""
    X = _container(X, "X")
    n, features = _shape(estimator, X)
    if isinstance(X, list | tuple):  # scikit-learn would take the length of the first row, which is a record
        checked = np.empty((0, features))
    else:
        checked = X
    if reset:
        validate_data(estimator, checked, y, skip_check_array=True)
        y = _responses(y, n)
    else:
        validate_data(estimator, checked, reset=False, skip_check_array=True)
    names = getattr(estimator, "feature_names_in_", None)
    return Incoming(X, y, n, features, None if names is None else tuple(map(str, names)))


def one_column(estimator: Any, X: Any) -> tuple[Any, int]:
    """A column of records, (n,) or (n, 1), and n."""
    X = _container(X, "X")
    shape = _shape_of(X)
    if len(shape) == 2 and shape[1] == 1:
        validate_data(estimator, X, skip_check_array=True)  # remembers a frame's column name
        X = X.iloc[:, 0] if hasattr(X, "iloc") else np.asarray(X)[:, 0]
    elif len(shape) != 1:
        raise InvalidModel(
            f"{type(estimator).__name__} takes one column of records, shape (n,) or (n, 1), but one of shape {shape} came. "
            "Pass one column at a time: each is a release of its own."
        )
    estimator.n_features_in_ = 1
    if not shape[0]:
        raise InvalidModel(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    return X, shape[0]


def _container(data: Any, name: str) -> Any:
    if type(data).__module__.partition(".")[0] == "scipy" and hasattr(data, "toarray"):
        raise InvalidModel(f"Sparse data was passed for {name}, but dense data is required. Pass {name}.toarray().")
    if not hasattr(data, "shape") and not isinstance(data, list | tuple) and hasattr(data, "__array__"):
        data = np.asarray(data)
    if getattr(getattr(data, "dtype", None), "kind", "") == "c":
        raise InvalidModel(f"Complex data not supported: {name} is an array of complex numbers. Pass real ones.")
    return data


def _shape_of(data: Any) -> tuple[int, ...]:
    shape = getattr(data, "shape", None)
    if isinstance(shape, tuple):
        return shape
    if isinstance(data, list | tuple):
        return (len(data),)
    raise InvalidModel(
        f"Expected an array, a data frame or a list, but a {type(data).__name__} came. The number of records is public "
        "and must be known before they are read."
    )


def _shape(estimator: Any, X: Any) -> tuple[int, int]:
    shape = _shape_of(X)
    if isinstance(X, list | tuple):
        shape = (len(X), *_row_length(X))
    if len(shape) != 2:
        raise InvalidModel(
            f"Expected 2D array, got {len(shape)}D array instead: shape {shape}. Reshape your data, one row per record, "
            "with X.reshape(-1, 1) for one feature or X.reshape(1, -1) for one record."
        )
    for size, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if not size:
            raise InvalidModel(f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required.")
    return shape[0], shape[1]


def _row_length(rows: list[Any] | tuple[Any, ...]) -> tuple[int, ...]:
    """A list has no shape of its own: the length most of its rows have. One odd row changes nothing."""
    lengths = Counter(len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in rows)
    length = lengths.most_common(1)[0][0] if lengths else 0
    return () if length < 0 else (length,)


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
        y = y.iloc[:, 0] if hasattr(y, "iloc") else np.asarray(y)[:, 0]
    elif len(shape) != 1:
        raise InvalidModel(f"y must have one number or label per record, shape (n,), but it has shape {shape}.")
    if shape[0] != n:
        raise InvalidModel(f"X has {n} rows and y {shape[0]} entries; each record needs both.")
    return y


class _Late:
    """A column that becomes numbers when it is read, not before."""

    def __init__(self, values: Any) -> None:
        self.values = values

    @property
    def shape(self) -> tuple[int]:
        return (len(self.values),)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<{len(self)} private records>)"

    def _read(self) -> NDArray[np.float64]:
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self._read() if dtype is None else self._read().astype(dtype)


class Measured(_Late):
    """(response − centre)/unit, each record on its own; what is not a number stays NaN. The certificate says the measure."""

    def __init__(self, values: Any, measure: Measure) -> None:
        super().__init__(values)
        self.measure = measure

    def _read(self) -> NDArray[np.float64]:
        numbers = np.concatenate([np.asarray(batch, dtype=np.float64) for batch in batches(self.values)])
        with np.errstate(over="ignore"):
            return (numbers - self.measure.centre) / self.measure.unit


class LabelCodes(_Late):
    """The place of each label among the declared ones; an undeclared label is the first."""

    def __init__(self, values: Any, labels: tuple[Any, ...]) -> None:
        super().__init__(values)
        self.labels = labels

    def _read(self) -> NDArray[np.float64]:
        return Codes(self.labels).from_values(self.values)
