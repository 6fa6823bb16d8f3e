"""Features of bounded size: the one fact about a row on which every Lipschitz constant rests.

Either a norm or a box is declared. Rows are brought into it here, each on its own and by public numbers only, so
‖x‖ ≤ r is *enforced*, not hoped for. With an intercept a column of ones is appended, and the vector that
multiplies θ has norm up to r̃ = √(r² + 1), not r: Minami et al. §3.3 forget the 1.

| a row … | `bounds=(lo, hi)` | `data_norm=r` |
| --- | --- | --- |
| outside | each entry moved to the nearest bound | scaled onto the sphere of radius r |
| with NaN, ±inf, None or a non-number in an entry | the value of [lo, hi] nearest to 0 there | 0 there |
| of the wrong length, or not a row | as if every entry were NaN | as if every entry were NaN |

With ``missing="skip"`` such a record has weight 0 in every sum, whatever its row is made into.

A model whose promise needs no bound (`likelihood_model`) may declare none: its rows are treated as in a box of ±1e60.

``scaled=True`` maps a box to [−1, 1] by its own public ends, so that columns in different units weigh alike: the
clamped x becomes (x − middle)/half-width, and x/max(|lo|, |hi|) without an intercept, which could not take up a shift.
A column whose ends are equal becomes 0, a NaN the middle. Coefficients then belong to the scaled columns;
`in_column_units` gives those of the original ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.arrays import Array, Mask
from onedraw.data.terms import Coded, Term
from onedraw.errors import InvalidModel
from onedraw.privacy.numbers import root_up

from .batches import batches, is_row, is_rows, refuse_sparse, row_batches
from .model import MOST_PARTS, count, number, positive_number
from .sums.clamped_sums import SKIP, is_skip

Ends = float | tuple[float, ...]

LARGEST = 1e60
"""Bounds above this would leave no room for the squares that smoothness is made of."""


@dataclass(frozen=True)
class Features:
    """How many features, how large a row may be, and whether a column of ones follows them."""

    count: int
    data_norm: float | None = None
    box: tuple[Ends, Ends] | None = None
    intercept: bool = True
    names: tuple[str, ...] | None = None
    scaled: bool = False
    skips: bool = False
    """Whether a record with a missing cell, in its row or its response, contributes nothing."""

    width: int = field(init=False, repr=False, compare=False)
    """Entries of an encoded row, the intercept's 1 included."""
    bounded: bool = field(init=False, repr=False, compare=False)
    """Whether a norm or a box was declared. Without one entries are cut at ±1e60, so that products stay finite."""
    column_names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    ends: tuple[tuple[float, ...], tuple[float, ...]] = field(init=False, repr=False, compare=False)
    """The ends of the box, one for each feature."""
    scale: tuple[Array, Array] = field(init=False, repr=False, compare=False)
    """Shift and divisor of each column, (0, 1) of one that is not scaled; a divisor of 0 marks one whose ends are equal."""
    encoded_ends: tuple[tuple[float, ...], ...] = field(init=False, repr=False, compare=False)
    """The ends of a box as encoded rows have them: between −1 and 1 where they are scaled."""
    column_bounds: tuple[float, ...] = field(init=False, repr=False, compare=False)
    """The largest size of each entry of an encoded row, the intercept's 1 included."""
    squared_norm: Fraction = field(init=False, repr=False, compare=False)
    """r², exact: of a box, Σ max(lo², hi²)."""
    squared_reach: Fraction = field(init=False, repr=False, compare=False)
    """r̃², exact: r² + 1 with an intercept."""
    norm: float = field(init=False, repr=False, compare=False)
    """r: the largest norm of a row without its intercept, rounded up."""
    reach: float = field(init=False, repr=False, compare=False)
    """r̃: the largest norm of an encoded row, √(r² + 1) with an intercept, rounded up."""

    def __post_init__(self) -> None:
        named = self.names or tuple(f"feature {index}" for index in range(self.count))
        box = (-LARGEST, LARGEST) if self.box is None else self.box
        lower, upper = (end if isinstance(end, tuple) else (end,) * self.count for end in box)
        object.__setattr__(self, "width", self.count + self.intercept)
        object.__setattr__(self, "bounded", self.data_norm is not None or self.box is not None)
        object.__setattr__(self, "column_names", (*named, "intercept") if self.intercept else named)
        object.__setattr__(self, "ends", (lower, upper))
        shift, divisor, low, high = np.zeros(self.count), np.ones(self.count), np.array(lower), np.array(upper)
        if self.scaled and self.intercept:
            shift, divisor = low + (high - low) / 2, (high - low) / 2
        elif self.scaled:
            divisor = np.where(low < high, np.maximum(np.abs(low), np.abs(high)), 0.0)
        object.__setattr__(self, "scale", (shift, divisor))
        if self.scaled:
            lower, upper = (tuple(self._on_scale(end).tolist()) for end in (low, high))
        object.__setattr__(self, "encoded_ends", (lower, upper))
        largest = tuple(max(-low, high) for low, high in zip(lower, upper, strict=True))
        if self.data_norm is not None:
            largest = (self.data_norm,) * self.count
        object.__setattr__(self, "column_bounds", (*largest, *[1.0] * self.intercept))
        sizes = largest if self.data_norm is None else (self.data_norm,)
        squared = sum((Fraction(size) ** 2 for size in sizes), Fraction(0))
        object.__setattr__(self, "squared_norm", squared)
        object.__setattr__(self, "squared_reach", squared + self.intercept)
        object.__setattr__(self, "norm", root_up(squared))
        object.__setattr__(self, "reach", root_up(squared + self.intercept))

    @property
    def enforced_by(self) -> str:
        """How rows are brought into their bounds, in words."""
        if self.box is None:
            return "scaled onto the ball"
        return "clamped to the box and scaled to [-1, 1]" if self.scaled else "clamped to the box"

    @property
    def reads_missing(self) -> str:
        """What a missing cell is read as, in words; empty where its record contributes nothing."""
        if self.skips or not self.count:
            return ""
        if self.data_norm is not None or self.box is None:
            return "a missing cell is read as 0"
        if self.scaled and self.intercept:
            return "a missing cell is read as the middle of its column's bounds"
        return "a missing cell is read as the number within its column's bounds that is nearest to 0"

    def _on_scale(self, values: Array) -> Array:
        shift, divisor = self.scale
        moved: Array = values - shift
        with np.errstate(divide="ignore", invalid="ignore"):
            moved /= divisor
        if not (divisor > 0.0).all():
            moved = np.where(divisor > 0.0, moved, 0.0)
        # rounding may have carried an end beyond 1, which the norm of a row is computed from
        np.clip(moved, -1.0, 1.0, out=moved)
        moved += 0.0
        return moved

    def in_column_units(self, thetas: Any) -> Array:
        """Coefficients of encoded rows, one set a row, as those of the original columns: linear, and public.

        For scaled features c/half-width, and the intercept less Σ c·middle/half-width; 0 for a column whose ends are
        equal. The identity for all others.
        """
        result = np.array(thetas, dtype=np.float64)
        if not self.scaled:
            return result
        shift, divisor = self.scale
        coefficients = np.where(divisor > 0.0, result[..., : self.count] / np.where(divisor > 0.0, divisor, 1.0), 0.0)
        result[..., : self.count] = coefficients
        if self.intercept:
            result[..., self.count] -= coefficients @ shift
        return result

    def enforce(self, rows: Array) -> Array:
        """Encoded rows: inside the declared bounds whatever came in, with the column of ones."""
        if self.data_norm is not None:
            bounded = self._on_ball(rows)
        else:
            lower, upper = (np.array(end) for end in self.ends)
            substitute = self.scale[0] if self.scaled and self.intercept else np.clip(0.0, lower, upper)
            lost = np.isnan(rows)
            bounded = np.where(lost, substitute, rows) if lost.any() else np.array(rows, dtype=np.float64)
            np.clip(bounded, lower, upper, out=bounded)
            bounded += 0.0
            bounded = self._on_scale(bounded) if self.scaled else bounded
        return np.concatenate([bounded, np.ones((len(bounded), 1))], axis=1) if self.intercept else bounded

    def _on_ball(self, rows: Array) -> Array:
        """Scaled onto the ball if outside it. The margin exceeds the rounding of the norm, so that the row as
        stored has a norm of at most r in exact arithmetic."""
        if self.count == 0:
            return rows
        assert self.data_norm is not None
        margin = 1.0 - max(2.0**-40, (self.count + 8) * 2.0**-52)
        with np.errstate(over="ignore"):  # what overflows is brought to a finite size next
            points = np.clip(np.where(np.isnan(rows), 0.0, rows) / self.data_norm, -(2.0**400), 2.0**400)
        norms = np.sqrt(np.einsum("ij,ij->i", points, points))
        return np.asarray(points * (self.data_norm * margin / np.maximum(norms, margin))[:, np.newaxis])

    def to_dict(self) -> dict[str, Any]:
        box = None if self.box is None else [list(end) if isinstance(end, tuple) else end for end in self.box]
        return (
            {
                "features": self.count,
                "data_norm": self.data_norm,
                "bounds": box,
                "intercept": self.intercept,
                "feature_names": None if self.names is None else list(self.names),
            }
            | ({"scaled": True} if self.scaled else {})
            | ({"missing": SKIP} if self.skips else {})
        )  # absent in older certificates, whose digests must not change


def declared_features(
    model: str, features: Any, *, data_norm: Any, bounds: Any, intercept: Any, feature_names: Any, scaled: Any = False,
    missing: Any = None, needed: bool = True,
) -> Features:  # fmt: skip
    """Check what a model's constructor was given; ``needed`` says whether its promise rests on a bound."""
    how_many = count("features", features, least=1, most=MOST_PARTS)
    if (data_norm is None) == (bounds is None) and (needed or bounds is not None):
        got = "neither was given" if bounds is None else "both were given"
        raise InvalidModel(
            f"{model} needs one public bound on its features, data_norm=r or bounds=(lo, hi), but {got}. Without a bound one record "
            "could have any gradient, and no promise exists; it is never computed from the records. Pass data_norm=r to scale "
            f"rows onto the ball ‖x‖ ≤ r, or bounds=(lo, hi), numbers or lists of {how_many}, to clamp each feature."
        )
    for name, value in (("intercept", intercept), ("scaled", scaled)):
        if not isinstance(value, bool | np.bool_):
            raise InvalidModel(f"{name} must be True or False, got a {type(value).__name__}.")
    if feature_names is not None:
        if isinstance(feature_names, str) or len(feature_names) != how_many or len(set(feature_names)) != how_many:
            raise InvalidModel(f"feature_names must be {how_many} different names, one for each feature.")
        feature_names = tuple(map(str, feature_names))
    norm = None if data_norm is None else positive_number("data_norm", data_norm)
    box = None if bounds is None else _box(bounds, how_many)
    if scaled and box is None:
        raise InvalidModel(
            "scaled=True maps each feature from its declared range to [-1, 1], and no range was declared; it is never computed from "
            "the records. Pass bounds=(lo, hi), numbers or one for each feature, or leave out scaled."
        )
    if scaled and any(np.max(np.abs(end)) >= LARGEST for end in box or ()):
        raise InvalidModel(f"Bounds of scaled features must lie between -{LARGEST:g} and {LARGEST:g}.")
    if not (missing is None or is_skip(missing)):
        raise InvalidModel(
            f"missing is 'skip', and records with a missing cell contribute nothing, or None, and the cell is what the table of features "
            f"says; got {missing!r}. Fill cells in before, each record by itself and by public numbers."
        )
    result = Features(how_many, norm, box, bool(intercept), feature_names, bool(scaled), is_skip(missing))
    if result.bounded and not 0 < result.squared_norm < Fraction(LARGEST) ** 2:
        raise InvalidModel(
            f"The features' bound gives rows of norm up to {result.norm:g}; it must lie above 0 and below {LARGEST:g}. "
            "Rescale the features."
        )
    return result


def _box(bounds: Any, how_many: int) -> tuple[Ends, Ends]:
    if not isinstance(bounds, list | tuple) or len(bounds) != 2:
        raise InvalidModel("bounds must be a pair (lo, hi), each a number or one number per feature.")
    several = [isinstance(end, list | tuple | np.ndarray) for end in bounds]
    for end, each in zip(bounds, several, strict=True):
        if each and len(end) != how_many:
            raise InvalidModel(f"bounds must have one entry for each of the {how_many} features, got {len(end)}.")
    lower, upper = (
        tuple(number("bounds", value) for value in end) if each else number("bounds", end)
        for end, each in zip(bounds, several, strict=True)
    )
    if not np.all(np.asarray(lower) <= np.asarray(upper)):
        raise InvalidModel(
            "bounds=(lo, hi) needs lo ≤ hi for every feature: some lower bound is above its upper bound."
        )
    return lower, upper


def read_rows(X: Any, features: Features) -> Iterator[Array]:
    """Encoded batches of a matrix, a data frame or a sequence of rows; of one feature a column will do."""
    for batch in _raw_rows(X, features):
        yield features.enforce(batch)


def whole_rows(X: Any, features: Features) -> Mask:
    """Say of each row whether all of its cells are numbers."""
    return np.concatenate(
        [np.zeros(0, dtype=bool), *(np.isfinite(batch).all(axis=1) for batch in _raw_rows(X, features))]
    )


def _raw_rows(X: Any, features: Features) -> Iterator[Array]:
    """Batches of rows as they were given, NaN in a cell that is no number."""
    if features.count == 1 and is_rows(X):
        X = [row if is_row(row) else [row] for row in X]
    one_column = features.count == 1 and len(getattr(X, "shape", (0, 0))) == 1
    found = (batch[:, np.newaxis] for batch in batches(X)) if one_column else row_batches(X, dim=features.count)
    return (np.asarray(batch, dtype=np.float64) for batch in found)


def check_rows(X: Any, features: Features) -> None:
    """The container's shape, which is public; what its records hold is not looked at."""
    refuse_sparse(X, "X")
    if is_rows(X):
        return
    shape = getattr(X, "shape", (len(X),))
    if shape[1:] != (features.count,) and not (features.count == 1 and len(shape) == 1):
        raise InvalidModel(
            f"X must be an array of shape (n, {features.count}), as features={features.count} says, but one of shape "
            f"{shape} was given."
        )


# ── features of a schema ─────────────────────────────────────────────────────────────────────────────────────


def schema_features(schema: Any, target: str | None) -> dict[str, Any]:
    """What a schema says about the features: ``Logistic(**schema_features(schema, "ill"), prior=…)``.

    All declared columns but the target, in order: a number or count as it is, a category or a binary column as one column of 0
    and 1 for each level but the first, called ``sex=male``: who is compared with the first. The box is the schema's own.

    With a formula, its columns, by its names and bounds; ``intercept`` is named where the formula leaves it out.
    """
    if schema.design is not None:
        return _formula_features(schema)
    found = [(name, *column.ends) for _, column, names in _named_features(schema, target) for name in names]
    names, lower, upper = zip(*found, strict=True) if found else ((), (), ())
    return {"features": len(names), "bounds": (lower, upper), "feature_names": names, **_skipped(schema)}


def _skipped(schema: Any) -> dict[str, Any]:
    """What a schema says of missing cells, where records that have one are to contribute nothing."""
    return {"missing": SKIP} if any(column.skips for column in schema.columns.values()) else {}


def _formula_features(schema: Any) -> dict[str, Any]:
    design = schema.design
    found = {"features": len(design.names), "bounds": design.ends, "feature_names": design.names, **_skipped(schema)}
    return found if schema.formula.intercept else found | {"intercept": False}


def category_columns(schema: Any, target: str | None) -> tuple[tuple[int, int], ...]:
    """(start, stop) of the 0/1 columns of each category, and of each binary column, among `schema_features`."""
    return tuple((one.start, one.stop) for one in coded_columns(schema, target))


def coded_columns(schema: Any, target: str | None) -> tuple[Coded, ...]:
    """Return the 0/1 columns of which at most one is 1 on a record: categories, and the formula's products of them."""
    if schema.design is not None:
        return tuple(schema.design.coded)
    found, start = [], 0
    for name, column, names in _named_features(schema, target):
        if column.role in ("category", "binary") and names:
            found.append(Coded(name, start, start + len(names), tuple(map(str, column.labels))))
        start += len(names)
    return tuple(found)


def schema_terms(schema: Any, target: str | None) -> tuple[Term, ...]:
    """Return the columns of each term of the formula, and without one of each category."""
    if schema.design is not None:
        return tuple(schema.design.terms)
    return tuple(Term(one.name, one.start, one.stop) for one in coded_columns(schema, target))


def _named_features(schema: Any, target: str | None) -> Iterator[tuple[str, Any, list[str]]]:
    """Each declared column but the target, with the names of what it becomes."""
    for name, column in schema.columns.items():
        if name != target:
            named = column.role in ("category", "binary")
            yield name, column, [f"{name}={label}" for label in column.labels[1:]] if named else [name]


def schema_rows(batch: dict[str, NDArray[Any]], schema: Any, target: str | None) -> Array:
    """The features of a batch of schema-encoded columns, not yet brought into the model's own bounds."""
    if schema.design is not None:
        return np.asarray(schema.design.rows(batch))
    columns = []
    for name, values in batch.items():
        if name == target:
            continue
        declared = schema.columns[name]
        if declared.role == "category":
            columns += [values == code for code in range(1, len(declared.labels))]
        else:
            columns.append(values)
    rows = len(next(iter(batch.values())))
    if not columns:
        return np.zeros((rows, 0))
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns]).T  # what follows runs along columns


def check_schema(schema: Any, target: str | None, features: Features) -> None:
    """The schema's features must be those the model was declared for."""
    declared = schema_features(schema, target)
    found = declared["feature_names"]
    shown = ", ".join(found[:12]) + (", …" if len(found) > 12 else "")
    if len(found) != features.count:
        raise InvalidModel(
            f"The model has {features.count} features, the schema gives {len(found)} besides the target: {shown}. (A "
            "category counts one for each level but the first.) Pass **schema_features(schema, target) to the model, "
            "or leave columns out of the schema."
        )
    if schema.design is not None and (features.names is None or features.intercept != declared.get("intercept", True)):
        raise InvalidModel(
            "The model's intercept or names are not those of the schema's formula. Pass **schema_features(schema, target) to the model."
        )
    if features.names is not None and features.names != found:
        raise InvalidModel(
            f"The model's feature_names are not the schema's features: {shown}. The coefficients would bear the wrong "
            "names. Use the same names in the same order."
        )
    if features.box is not None and features.ends != declared["bounds"]:
        raise InvalidModel(
            "The model's bounds are not the schema's ranges of the same columns, so two things are said about one column. "
            "Pass **schema_features(schema, target) to the model, or declare in the schema what is meant."
        )
