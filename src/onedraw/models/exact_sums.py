"""Sums over records in whole numbers: the same integers in any order, any partition, on any engine.

A `Statistic` says what one record adds, as an integer vector of which every entry is at most ``bound`` in size. Blocks of
2¹⁶ records are added inside compiled code, where every partial sum stays below 2⁵³ and float64 is exact, and the blocks
as int64 (scale.md). `Encoded.sum` is the engine of one machine; what a release is made of never sees another sum.

    total = encoded.sum(statistic, *public)        # int64

Everything in ``public`` is known before the pass or was published: the records enter through the blocks alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import InvalidModel

from .compute import jax, jnp

BLOCK = 1 << 16
"""Records in a block: fixed, so that one compilation serves every data set of a shape."""


class Statistic(Protocol):
    """What a record adds to: a frozen, hashable value."""

    def bound(self, *public: Any) -> float:
        """The largest size of one entry of one record's share, in lattice steps."""

    def block(self, X: Any, y: Any, weight: Any, *public: Any) -> Any:
        """Σ over a block's records, as float64 or int64 whole numbers; records of weight 0 are padding."""


def exact_sum(statistic: Any, X: Any, y: Any, *public: Any) -> NDArray[np.int64]:
    """Σ over all records; refused where a sum could leave int64, which public numbers decide."""
    n = len(X)
    if not n * statistic.bound(*public) < 2.0**62:
        raise InvalidModel(
            f"The sums of {n:,} records could exceed 64-bit whole numbers on this lattice. Use fewer records or columns."
        )
    total: Any = None
    for start in range(0, max(n, 1), BLOCK):
        part = _block(statistic, *_padded(X[start : start + BLOCK], y[start : start + BLOCK], min(BLOCK, n)), *public)
        total = part if total is None else total + part
    return np.asarray(total)


def _padded(X: Any, y: Any, size: int) -> tuple[Any, Any, Any]:
    """A block of exactly ``size`` records, those added having weight 0."""
    missing = size - len(X)
    if not missing:
        return X, y, jnp.ones(size)
    weight = jnp.concatenate([jnp.ones(len(X)), jnp.zeros(missing)])
    return jnp.pad(jnp.asarray(X), ((0, missing), (0, 0))), jnp.pad(jnp.asarray(y), (0, missing)), weight


@partial(jax.jit, static_argnums=0)
def _block(statistic: Any, X: Any, y: Any, weight: Any, *public: Any) -> Any:
    return statistic.block(X, y, weight, *public).astype(jnp.int64)
