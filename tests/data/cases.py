"""An engine that cuts the records into parts, in this process: every way in which many workers can go wrong, on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onedraw.data.shards import Part, combine, test_block
from onedraw.data.sums import Block, Summation, block_rows, blocked, check_room


@dataclass(frozen=True)
class Parted:
    """Parts end at ``cuts`` of the records in ``order``; ``mishap`` is what becomes of the workers' answers."""

    cuts: tuple[int, ...] = ()
    order: Any = None
    mishap: Callable[[list[Part]], list[Part]] = list
    name: str = "parts"
    most_passes: int | None = None

    def described(self, records: Any) -> None:
        return None

    def sum(self, records: Any, statistic: Any, *public: Any) -> Any:
        return PartedRows(self, records).sum(statistic, *public)

    def read_as(self, records: Any, reading: Any, *public: Any) -> PartedRows:
        return PartedRows(self, records).read_as(reading, *public)


@dataclass(frozen=True)
class PartedRows:
    engine: Parted
    records: Any
    readings: tuple[Any, ...] = field(default=())

    @property
    def n(self) -> int:
        return self.records.n

    def read_as(self, reading: Any, *public: Any) -> PartedRows:
        return replace(self, readings=(*self.readings, (reading, public)))

    def sum(self, statistic: Any, *public: Any) -> Any:
        check_room(self.n, statistic, *public)
        summation = Summation(self.readings, statistic, public)
        test = test_block(self.records.schema, summation.columns, block_rows(self.n))
        sums = map(summation.of_all, self.parts(summation.columns))
        parts = [Part(number, rows, summation.digest(test), total) for number, (rows, total) in enumerate(sums)]
        return combine(self.engine.mishap(parts), len(self.engine.cuts) + 1, self.n, summation.digest(test))

    def parts(self, columns: tuple[str, ...]) -> list[list[Block]]:
        batches = list(self.records.batches(columns))
        whole = [np.concatenate([batch[name] for batch in batches]) for name in columns]
        order = np.arange(len(whole[0])) if self.engine.order is None else self.engine.order
        pieces = np.split(order, self.engine.cuts)
        return [list(blocked([[column[piece] for column in whole]], block_rows(self.n))) for piece in pieces]
