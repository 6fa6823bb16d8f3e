"""Estimators that are given a schema: categories, missing values and units as declared, columns by their names.

A schema says what `bounds`, `classes`, `response_bound` and `largest` say, and more, so these are left out beside it.
The records are released like a file's: a category has a coefficient for each level but the first, an unreadable cell
becomes the declared ``missing``, the certificate carries the schema, and whoever holds the release can predict for
frames and files.

``target`` names the column of the schema that is explained, ``y`` holds its records; or X does, and y is left out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.data import DatabaseTable, Records, Schema, read
from onedraw.data.cells import label_of
from onedraw.data.records import open_table
from onedraw.errors import InvalidModel, InvalidSchema, WrongCall

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
    columns = by_name(X, [name for name in schema.columns if name != target])
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
    levels = schema.column(target).labels  # type: ignore[union-attr]  # a classification: the question was accepted
    if estimator.classes is None:
        return np.asarray(levels)
    given = list(estimator.classes)
    plain = getattr(schema.column(target), "levels", None) is None and len(given) == 2
    if not plain and [label_of(label) for label in given] != [label_of(level) for level in levels]:
        raise InvalidModel(
            f"classes are the levels of {target!r} in the schema, {', '.join(levels)}, in this order. Leave out classes."
        )
    return np.asarray(given)
