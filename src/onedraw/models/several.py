"""Several questions about the columns of one schema, to be answered together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from onedraw.errors import InvalidModel
from onedraw.models.batches import is_records
from onedraw.models.model import Bound, Model
from onedraw.models.tables.category_table import CategoryTable
from onedraw.models.tables.column_quantiles import ColumnQuantiles
from onedraw.models.tables.number_table import NumberTable
from onedraw.models.tables.table import Table
from onedraw.private import Private

MOST_PARTS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class SummaryOfSeveral(Private):
    """n, and what each part has asked of the records. As private as the records."""

    n: int
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Several(Model):
    """Tables and quantiles of the columns of one data set: ``parts[k]`` is about the column ``columns[k]``."""

    quantity: ClassVar[str] = "statistics"
    title, form = "Description", "folded"

    columns: tuple[str, ...]
    parts: tuple[Model, ...]

    @classmethod
    def example(cls) -> Self:
        return cls(("a", "b"), (NumberTable(0.0, 10.0), CategoryTable(("x", "y", "z"))))

    def __post_init__(self) -> None:
        columns, parts = tuple(map(str, self.columns)), tuple(self.parts)
        if not 1 <= len(parts) <= MOST_PARTS or len(columns) != len(parts):
            raise InvalidModel(
                f"Several questions are 1 to {MOST_PARTS:,} models, and the column of each; {len(parts)} and {len(columns)} were given."
            )
        for part in parts:
            if not isinstance(part, Table | ColumnQuantiles):
                raise InvalidModel(
                    f"Several questions are tables and quantiles of columns, not a {type(part).__name__}."
                )
        self._set(columns=columns, parts=parts)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(
            f"{column}, {part.quantity}: {name}"
            for column, part in zip(self.columns, self.parts, strict=True)
            for name in part.parameter_names
        )

    @property
    def meaning(self) -> str:
        return "Statistics of several columns, released together."

    def unit(self, name: str) -> str:
        return "records" if name.endswith(": records") else ""

    @property
    def prior_scale(self) -> float:
        """There is no prior: each number is published on the finest lattice that a part has."""
        return min(part.prior_scale for part in self.parts)

    @property
    def _bounds(self) -> dict[str, Bound]:
        found = zip(self.columns, self.parts, strict=True)
        return {
            f"{k} {column} {name}": bound
            for k, (column, part) in enumerate(found)
            for name, bound in part._bounds.items()
        }

    def check(self, data: Any) -> None:
        if not is_records(data):
            raise InvalidModel(
                f"Several columns are described from Records, which name them; a {type(data).__name__} was given. Use onedraw.read."
            )
        for part, records in self._each(data):
            part.check(records)

    def summarise(self, data: Any) -> SummaryOfSeveral:
        self.check(data)
        return SummaryOfSeveral(len(data), tuple(part.summarise(records) for part, records in self._each(data)))

    def _each(self, data: Any) -> Iterator[tuple[Any, Any]]:
        """Each part with the records, its column as the target."""
        for column, part in zip(self.columns, self.parts, strict=True):
            data.schema.column(column)
            yield part, replace(data, target=column)
