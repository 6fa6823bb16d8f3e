"""Sums over records in whole numbers, in compiled code: JAX for the joint of `onedraw.data.sums`.

A statistic or reading that inherits `Compiled` writes `block`, a pure function of a block's arrays, their weight and public
numbers; it is compiled once for a shape, and the same program runs on every block of every engine, so that what a
record adds depends on nothing but the record.

    records = held(X, y)                           # arrays that are in memory already
    total = records.sum(statistic, *public)

**How fine the lattice of a sum is**: by public numbers alone, the largest share of a record and n.

A record's share of a sum of products kkᵀ, k a vector of whole numbers, counts in steps of 1/steps². Its largest entry takes at most
2^m steps,

    m = min(36, 61 − ⌈log₂ n⌉),

so that a block of 2¹⁶ records adds up exactly in float64 (below 2⁵³) and n of them in int64, with room for the noise. Up to
33 million records the first decides; then the lattice grows coarser with n, 30 bits at 2·10⁹. What that costs a promise is
checked by `mechanisms.stages`; what it costs the numbers is a rounding of 2^−(m/2) of a row's bound, 2⁻¹⁵ at
n = 10⁹, where the sampling error of a mean is 2⁻¹⁵ of its deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onedraw.data.sums import Blocks, Integers, Reading, Statistic, Work, block_rows, blocked
from onedraw.models.compute import accelerated, check_arithmetic, jax, jit, jnp

# ── how fine the lattice is ──────────────────────────────────────────────────────────────────────────────────────────


BLOCK_BITS, SUM_BITS = 36, 61
"""What a block leaves a record, and all n of them together."""

MEAN_BITS = 30
"""A sum of columns in [−1, 1] counts in steps of 2^−30."""

MOST_RECORDS = 2**31
"""Beyond, sums of gradients in steps of 2^−50 do not fit into 64 bits."""


def share_bits(n: int) -> int:
    """m: a record's products take at most 2^m steps, and the largest ones more than 2^(m − 2)."""
    return min(BLOCK_BITS, SUM_BITS - (n - 1).bit_length())


def gram_steps(squared_norm: float, n: int) -> float:
    """Steps to a unit of the lattice of vectors of this norm, for the products of n of them to add up exactly: a power of two."""
    return float(2.0 ** ((share_bits(n) - math.ceil(math.log2(max(squared_norm, 2.0**-40)))) // 2))


def in_words(n: int) -> str:
    """For a certificate."""
    return f"sums over records are whole numbers on a public lattice: a record's products count in up to 2^{share_bits(n)} steps"


# ── compiled sums ────────────────────────────────────────────────────────────────────────────────────────────────────


TOGETHER, MOST_VALUES = 32, 2**26
"""Blocks to a call on an accelerator, and numbers in them: half a gigabyte, of which a few copies are made."""


class Compiled(Statistic, Reading):
    """A frozen, hashable value with a `block` in JAX."""

    def block(self, *records_weight_and_public: Any) -> Any:
        raise NotImplementedError

    def at_hand(self, *public: Any) -> tuple[Any, ...]:
        """Public numbers where the blocks are: sent to an accelerator once a pass and not with every block."""
        return tuple(jax.tree.map(jnp.asarray, public)) if accelerated() else public

    def of_block(self, *records_weight_and_public: Any) -> Any:
        check_arithmetic()
        return _compiled(self, *records_weight_and_public)

    def blocks_a_call(self, values: int) -> int:
        """How many blocks of so many numbers one call adds up: calling an accelerator takes longer than a block."""
        return max(1, min(TOGETHER, MOST_VALUES // max(1, values))) if accelerated() else 1

    def of_blocks(self, blocks: Sequence[tuple[Any, ...]], *public: Any) -> Any:
        """Σ over several blocks, each exact by itself and added as int64."""
        check_arithmetic()
        return _added(self, tuple(blocks), *public)


@jit(0)
def _compiled(what: Any, *records_weight_and_public: Any) -> Any:
    return what.block(*records_weight_and_public)


@jit(0)
def _added(what: Any, blocks: Any, *public: Any) -> Any:
    stacked = jax.tree.map(lambda *arrays: jnp.stack(arrays), *blocks)
    return jax.vmap(lambda block: what.block(*block, *public))(stacked).astype(jnp.int64).sum(axis=0)


@dataclass(frozen=True)
class Scaled(Reading):
    """(X, y) → (X, y/scale) as JAX arrays, held where compiled code finds them: an array of NumPy's may be copied at every pass. Here
    one that is aligned is taken as it is."""

    scale: float = 1.0
    columns: tuple[str, ...] = ()

    def of_block(self, X: Any, y: Any, weight: Any) -> tuple[Any, Any]:
        return jax.device_put(X), jax.device_put(y if self.scale == 1.0 else np.asarray(y) / self.scale)

    def placed(self, weight: Any) -> Any:
        return jnp.asarray(weight)


@dataclass(frozen=True, eq=False, repr=False)
class SummedTarget:
    """A problem with its encoded records, which are read by exact sums alone. As private as they are: never printed or written."""

    problem: Any
    encoded: Any

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.encoded.n}, records=<private>)"

    @cached_property
    def records(self) -> Any:
        return self.encoded.records.read_as(Scaled(self.problem.response_scale))

    def sum(self, statistic: Any, *public: Any) -> Integers:
        """Σ over the records, in whole numbers: the only way they are read."""
        return np.asarray(self.records.sum(statistic, *public))


def held(X: Any, y: Any) -> Blocks:
    """Rows and responses that are in memory, in blocks of one size."""
    X, y = np.asarray(X), np.asarray(y)
    return Blocks.holding(len(X), blocked([(X, y)], block_rows(len(X))))


def arithmetic_digest() -> str:
    """Of public numbers through the functions that losses are made of: equal where compiled code computes alike."""
    return Work((), _Elementary()).digest(next(blocked([[np.linspace(-8.0, 8.0, 1024)]], 1024))).hex()


@dataclass(frozen=True)
class _Elementary(Compiled):
    def block(self, points: Any, weight: Any) -> Any:
        functions = (jnp.exp, jnp.tanh, jax.nn.sigmoid, lambda x: jnp.log1p(jnp.exp(x)), lambda x: jnp.sqrt(jnp.abs(x)))
        return jnp.rint(jnp.concatenate([function(points) for function in functions]) * 2.0**50 / 4096.0)
