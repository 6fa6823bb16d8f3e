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
    """Records in blocks of one size, each a tuple of arrays, last the weight: 1, or 0 where a block was filled up."""

    n: int
    blocks: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, X: Any, y: Any) -> Blocks:
        """Rows and responses; blocks of one size, so that one compilation serves all."""
        n = len(X)
        size = math.ceil(n / max(1, math.ceil(n / BLOCK)))
        starts = range(0, max(n, 1), max(size, 1))
        return cls(n, tuple(_padded(X[start : start + size], y[start : start + size], size) for start in starts))

    def sum(self, statistic: Any, *public: Any) -> NDArray[np.int64]:
        """Σ over all records; refused where a sum could leave int64, which public numbers decide."""
        if not self.n * statistic.bound(*public) < 2.0**62:
            raise InvalidModel(
                f"The sums of {self.n:,} records could exceed 64-bit whole numbers on this lattice. Use fewer records or columns."
            )
        parts = [_summed(statistic, block, *public) for block in self.blocks]
        return np.asarray(sum(parts[1:], parts[0]))

    def read_as(self, reading: Any, *public: Any) -> Blocks:
        """The same records, rewritten."""
        return Blocks(self.n, tuple(_read(reading, block, *public) for block in self.blocks))


def _padded(X: Any, y: Any, size: int) -> tuple[Any, Any, Any]:
    """A block of exactly ``size`` records, those added having weight 0."""
    missing = size - len(X)
    weight = jnp.concatenate([jnp.ones(len(X)), jnp.zeros(missing)])
    return jnp.pad(jnp.asarray(X), ((0, missing), (0, 0))), jnp.pad(jnp.asarray(y), (0, missing)), weight


def sum_of_block(statistic: Any, block: tuple[Any, ...], *public: Any) -> Any:
    return statistic.block(*block, *public).astype(jnp.int64)


def block_read(reading: Any, block: tuple[Any, ...], *public: Any) -> tuple[Any, ...]:
    return (*reading.block(*block, *public), block[-1])


_summed = partial(jax.jit, static_argnums=0)(sum_of_block)
_read = partial(jax.jit, static_argnums=0)(block_read)
