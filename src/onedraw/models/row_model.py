"""Models of rows and responses: what is declared of them, and how records become arrays by it, each on its own.

Everything that reads a record is here; what is then computed from a row differs by kind: `convex` for Gibbs posteriors,
`likelihood` for β-divergence posteriors. A model is a dataclass: its own options are its fields, each with its check, and
what all of them declare of features and prior is inherited.
"""

from __future__ import annotations

import abc
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from onedraw.arrays import Array, Mask
from onedraw.data.columns import ReadWithSchema
from onedraw.data.sums import Reading
from onedraw.errors import InvalidModel
from onedraw.private import Private

from .features import Features, check_rows, check_schema, declared_features, read_rows, schema_rows, whole_rows
from .model import Model, check_fields
from .responses import Response, Signs, check_values
from .sums.clamped_sums import marks


@dataclass(frozen=True, eq=False, repr=False)
class Encoded(Private):
    """Records as the loss sees them: rows X of shape (n, p) inside the declared bounds, the column of ones last
    if there is an intercept, and responses y. As private as they are: never printed or written."""

    n: int
    X: Array
    y: Array
    known: Mask | None = None
    """Which records have all their cells, where the others contribute nothing; None: all count."""

    @cached_property
    def records(self) -> Any:
        """The same for sums of whole numbers (`onedraw.data.sums`)."""
        from .sums.exact_sums import held

        return held(self.X, self.y, self.known)


@dataclass(frozen=True)
class Rows(Reading):
    """How a record of a schema becomes (x, y): a reading of `onedraw.data.sums`."""

    features: Features
    response: Response | None
    schema: Any
    target: str | None
    columns: tuple[str, ...]

    @property
    def width(self) -> int:
        return self.features.width + 1

    def kept(self, *columns_and_weight: Any) -> Any:
        """1 for records with all their cells, where those with a missing one contribute nothing."""
        *columns, weight = columns_and_weight
        return weight * marks(columns)[0] if self.features.skips else weight

    def of_block(self, *columns_and_weight: Any) -> tuple[Array, Array]:
        *columns, weight = columns_and_weight
        batch = dict(zip(self.columns, columns, strict=True))
        X = self.features.enforce(schema_rows(batch, self.schema, self.target))
        if self.response is None or self.target is None:
            return X, np.zeros(len(weight))
        return X, self.response.from_column(batch[self.target])


@dataclass(frozen=True, eq=False, repr=False)
class EncodedRecords(Private):
    """`Encoded` of records behind the joint, rewritten by a reading: through ``records`` by sums, which may stream them, or as arrays
    for a chain."""

    source: Any
    rows: Any
    public: tuple[Any, ...] = ()

    @property
    def n(self) -> int:
        return int(self.source.n)

    @cached_property
    def records(self) -> Any:
        return self.source.read_as(self.rows, *self.public)

    @property
    def X(self) -> Array:
        return self._arrays[0]

    @property
    def y(self) -> Array:
        return self._arrays[1]

    @cached_property
    def _arrays(self) -> tuple[Array, Array]:
        """All rows and responses at once, each block copied where it belongs."""
        X, y, start = np.empty(0), np.empty(0), 0
        for block in self.records:
            if not start:
                X, y = (np.empty((self.n, *array.shape[1:])) for array in block.arrays)
            stop = start + block.rows
            X[start:stop], y[start:stop] = (array[: block.rows] for array in block.arrays)
            start = stop
        for array in (X, y):
            array.setflags(write=False)
        return X, y


class RowModel(Model):
    """A model of records (x, y), or of x alone.

    **Guarantee.** `summarise` never fails on the value of a record; row i of its result depends on record i alone.
    """

    later = frozenset({"scaled", "missing"})  # of features: absent in older certificates, whose digests must not change

    changes: ClassVar[str] = ""
    """What one unit more of a column changes by its coefficient, in words; empty where that is not known."""
    besides: ClassVar[str] = ""
    """What the sentence about a coefficient says besides."""
    row_blocks: ClassVar[int] = 1
    """How many times the parameter begins with coefficients for the entries of a row: classes, hidden units."""

    features: Features
    prior: Any

    @property
    @abc.abstractmethod
    def response(self) -> Response | None:
        """How a record's response is read; None for a model of features alone."""

    @property
    def skips(self) -> bool:
        return self.features.skips

    @property
    def reads_missing(self) -> str:
        """What a missing cell of an array or a frame is read as, in words; empty where its record contributes nothing."""
        return ", and ".join(filter(None, (self.features.reads_missing, self._missing_response)))

    @property
    def _missing_response(self) -> str:
        if self.response is None or self.skips:
            return ""
        return f"a missing response as {self.response.of_missing}"

    @property
    def meaning(self) -> str:
        if not self.changes:
            return super().meaning
        change = f"A coefficient is the change of {self.changes} for one unit more of the column{self.besides}."
        return f"{change} Figures are in the units of the columns."

    def column_units(self, centre: float = 0.0, scale: float = 1.0) -> tuple[Array, Array, Array]:
        return self.in_column_units(np.eye(len(self.parameter_names))).T, *self.response_units(centre, scale)

    def response_units(self, centre: float = 0.0, scale: float = 1.0) -> tuple[Array, Array]:
        """Return what draws in the units of columns are multiplied by, and what is added, for a response measured so."""
        names = self.parameter_names
        if self.quantity != "coefficients":  # a network's weights are not in anybody's units
            return np.ones(len(names)), np.zeros(len(names))
        scales = np.array([scale**2 if name == "variance" else scale for name in names])
        return scales, np.array([centre if name == "intercept" else 0.0 for name in names])

    def in_readable_units(self, draws: Array, centre: float = 0.0, scale: float = 1.0) -> Array:
        """Return draws in the units of the columns, without a matrix of all coefficients, which may not fit into memory."""
        scales, shift = self.response_units(centre, scale)
        return np.asarray(scales * self.in_column_units(draws) + shift)

    def in_column_units(self, draws: Any) -> Array:
        """Draws as people read them: coefficients of the original columns where the features were scaled."""
        result = np.array(draws, dtype=np.float64)
        for start in range(0, self.row_blocks * self.features.width, self.features.width):
            block = slice(start, start + self.features.width)
            result[..., block] = self.features.in_column_units(result[..., block])
        return result

    # Records

    def summarise(self, data: Any) -> Encoded | EncodedRecords:
        """The encoded records, of `Records` with a target or of a pair (X, y)."""
        self.check(data)
        if isinstance(data, ReadWithSchema):
            names: Any = data.schema.read_for(data.target) if self.features.count else (data.target,)
            return EncodedRecords(data, Rows(self.features, self.response, data.schema, data.target, names))
        X, y = self._from_arrays(data)
        for array in (X, y):
            array.setflags(write=False)
        return Encoded(len(X), X, y, self._known(data) if self.skips else None)

    def _known(self, data: Any) -> Mask:
        """Which plain records have all their cells."""
        rows, responses = self._parts(data)
        known = whole_rows(rows, self.features)
        return known if self.response is None else known & self.response.known(responses)

    def count(self, data: Any) -> int:
        return data.n if isinstance(data, ReadWithSchema) else len(self._parts(data)[0])

    def check(self, data: Any) -> None:
        """Refuse data whose *public* description does not fit the model; no record is looked at."""
        if isinstance(data, ReadWithSchema):
            self.check_schema(data.schema, data.target)
            return
        X, y = self._parts(data)
        if not hasattr(X, "__len__"):
            raise InvalidModel(
                f"X must have a length, because n is public and part of the promise, got a {type(X).__name__}. "
                "Pass an array, a data frame or a list of rows."
            )
        if self.features.count:
            check_rows(X, self.features)
        if self.response is not None:
            check_values(y, n=len(X))

    def check_schema(self, schema: Any, target: str | None) -> None:
        """Refuse a schema of other columns, bounds or classes than the model was declared for."""
        if (target is None) != (self.response is None):
            needed = "a target, the column to be explained" if self.response is not None else "no target"
            raise InvalidModel(
                f"{type(self).__name__} needs {needed}. Pass it (or leave it out) where the records are read."
            )
        self.check_skips(schema.columns.values())
        if self.features.count:
            check_schema(schema, target, self.features)
        if self.response is not None:
            self.response.check_column(schema.column(target))

    def _parts(self, data: Any) -> tuple[Any, Any]:
        """X and y of plain data."""
        if self.response is None:
            return data, None
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise InvalidModel(
                f"{type(self).__name__} takes its data as a pair (X, y), the rows and their responses, or as records "
                f"read with a target, got a {type(data).__name__}."
            )
        return data[0], data[1]

    def _from_arrays(self, data: Any) -> tuple[Array, Array]:
        rows, responses = self._parts(data)
        X = np.concatenate([np.zeros((0, self.features.width)), *read_rows(rows, self.features)])
        return X, np.zeros(len(X)) if self.response is None else self.response.from_values(responses)

    def _values(self) -> dict[str, Any]:
        own = {name: value for name, value in super()._values().items() if name not in ("features", "prior")}
        return {**self.features.to_dict(), **own, "prior": self.prior}


@dataclass(frozen=True, repr=False, kw_only=True)
class DeclaredModel(RowModel):
    """A row model as people write it down: ``features`` is how many there are, and what is declared of them with it is held
    as `Features`. Subclasses add their options as fields, each with its check."""

    needs_bounds: ClassVar[bool] = True
    """Whether its promise rests on a public bound of the features."""

    features: Any = field(kw_only=False)
    data_norm: InitVar[float | None] = None
    bounds: InitVar[Any] = None  # an argument only: see below the class
    scaled: InitVar[bool] = False
    missing: InitVar[Any] = None
    intercept: InitVar[bool] = True
    feature_names: InitVar[Any] = None
    prior: Any = None

    def __post_init__(
        self, data_norm: Any, bounds: Any, scaled: Any, missing: Any, intercept: Any, feature_names: Any
    ) -> None:
        check_fields(self)
        declared = declared_features(
            type(self).__name__, self.features, data_norm=data_norm, bounds=bounds, scaled=scaled, intercept=intercept,
            feature_names=feature_names, missing=missing, needed=self.needs_bounds,
        )  # fmt: skip
        self._set(features=declared)
        self._check()

    def _check(self) -> None:
        """Refuse, or complete, what fields have to do with one another and with the prior."""


for _name in ("data_norm", "bounds", "scaled", "missing", "intercept", "feature_names"):
    delattr(DeclaredModel, _name)  # the defaults of arguments, which `features` keeps: `bounds` is what any model knows


class TwoClasses(DeclaredModel):
    """``classes``, a field checked by `TWO_CLASSES`, are (negative, positive). Without them the label 1 is positive and every
    other negative."""

    classes: Any

    @property
    def response(self) -> Signs:
        return Signs(self.classes)

    @property
    def changes(self) -> str:  # type: ignore[override]  # an attribute of all others
        return f"the log-odds of {f'“{self.classes[1]}”' if self.classes else 'the positive class'}"
