"""Sums over records in whole numbers: the same integers in any order, any partition, on any engine.

A `Statistic` says what one record adds, as an integer vector of which every entry is at most ``bound`` in size. Blocks of
at most 2¹⁶ records are added inside compiled code, where every partial sum stays below 2⁵³ and float64 is exact, and the blocks
as int64 (scale.md). `Blocks` is the engine of one machine; what a release is made of never sees another sum.

    records = Blocks.of(X, y)
    total = records.sum(statistic, *public)        # int64
    measured = records.read_as(reading, *public)   # each record rewritten once, for many sums

Everything in ``public`` is known before the pass or was published: the records enter through the blocks alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import InvalidModel

from .compute import jax, jnp

BLOCK = 1 << 16
"""Most records in a block."""


class Statistic(Protocol):
    """What a record adds to: a frozen, hashable value."""

    def bound(self, *public: Any) -> float:
        """The largest size of one entry of one record's share, in lattice steps."""

    def block(self, *records_weight_and_public: Any) -> Any:
        """Σ over a block's records, as float64 or int64 whole numbers; records of weight 0 are padding."""


class Reading(Protocol):
    """How a record is rewritten, by itself and public numbers: a frozen, hashable value."""

    def block(self, *records_weight_and_public: Any) -> tuple[Any, ...]:
        """The arrays of the records rewritten, without their weight."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Records in blocks of one size: arrays whose first axis counts the blocks, last the weight, 1, or 0 where a block was
    filled up."""

    n: int
    arrays: tuple[Any, ...]

    @classmethod
    def of(cls, X: Any, y: Any) -> Blocks:
        """Rows and responses; blocks of one size, so that one compilation serves all."""
        n = len(X)
        count = max(1, math.ceil(n / BLOCK))
        size = math.ceil(n / count)
        return cls(n, (_split(X, count, size), _split(y, count, size), _split(np.ones(n), count, size)))

    def sum(self, statistic: Any, *public: Any) -> NDArray[np.int64]:
        """Σ over all records, which public numbers must have shown to stay within int64."""
        check_room(self.n, statistic, *public)
        return np.asarray(_total(statistic, self.arrays, *public))

    def read_as(self, reading: Any, *public: Any) -> Blocks:
        """The same records, rewritten."""
        return Blocks(self.n, _read(reading, self.arrays, *public))


def check_room(n: int, statistic: Any, *public: Any) -> None:
    """Refused where a sum could leave int64."""
    if not n * statistic.bound(*public) < 2.0**62:
        raise InvalidModel(
            f"The sums of {n:,} records could exceed 64-bit whole numbers on this lattice. Use fewer records or columns."
        )


def _split(values: Any, count: int, size: int) -> Any:
    """(blocks, records, …); those added at the end are zeros."""
    values = np.asarray(values)
    missing = [(0, count * size - len(values))] + [(0, 0)] * (values.ndim - 1)
    return jnp.asarray(np.pad(values, missing).reshape(count, size, *values.shape[1:]))


def total(statistic: Any, arrays: tuple[Any, ...], *public: Any) -> Any:
    """Σ over blocks, block by block: to be compiled."""
    return jax.lax.map(lambda block: statistic.block(*block, *public).astype(jnp.int64), arrays).sum(axis=0)


def rewritten(reading: Any, arrays: tuple[Any, ...], *public: Any) -> tuple[Any, ...]:
    """All blocks read in another way: to be compiled."""
    return (*jax.lax.map(lambda block: reading.block(*block, *public), arrays), arrays[-1])


_total = partial(jax.jit, static_argnums=0)(total)
_read = partial(jax.jit, static_argnums=0)(rewritten)
