"""Sums over records in whole numbers, in compiled code, and the law of the noise on them: JAX for the joint of `onedraw.data.sums`.

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
checked by `methods.stages`; what it costs the numbers is a rounding of 2^−(m/2) of a row's bound, 2⁻¹⁵ at
n = 10⁹, where the sampling error of a mean is 2⁻¹⁵ of its deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.data.sums import Block, Blocks, Reading, Statistic, Summation, block_rows, blocked
from onedraw.models.compute import accelerated, adds_in_numpy, check_arithmetic, jax, jit, jnp
from onedraw.private import Private

# ── how fine the lattice is ──────────────────────────────────────────────────────────────────────────────────────────


BLOCK_BITS, SUM_BITS = 36, 61
"""What a block leaves a record, and all n of them together."""

LEAST_SQUARE = 2.0**-40
"""Squared norms below this have no finer lattice."""

MEAN_BITS = 30
"""A sum of columns in [−1, 1] counts in steps of 2^−30."""

MOST_RECORDS = 2**31
"""Beyond, sums of gradients in steps of 2^−50 do not fit into 64 bits."""


def share_bits(n: int) -> int:
    """m: a record's products take at most 2^m steps, and the largest ones more than 2^(m − 2)."""
    return min(BLOCK_BITS, SUM_BITS - (n - 1).bit_length())


def gram_steps(squared_norm: float, n: int) -> float:
    """Steps to a unit of the lattice of vectors of this norm, for the products of n of them to add up exactly: a power of two."""
    return float(2.0 ** ((share_bits(n) - math.ceil(math.log2(max(squared_norm, LEAST_SQUARE)))) // 2))


def vector_steps(bound: float, n: int) -> float:
    """Return the steps to a unit of the lattice of vectors of this norm, for n of them to add up exactly: a power of two."""
    return float(2.0 ** (share_bits(n) - math.ceil(math.log2(bound))))


def in_words(n: int) -> str:
    """For a certificate."""
    return f"sums over records are whole numbers on a public lattice: a record's products count in up to 2^{share_bits(n)} steps"


# ── compiled sums ────────────────────────────────────────────────────────────────────────────────────────────────────


MOST_NUMPY_VALUES = 2**18
"""Numbers in encoded records up to which a fit adds up by NumPy. The fixed second of JAX is more than NumPy takes for fifty passes."""

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
        if adds_in_numpy():
            return self.block(*records_weight_and_public)
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


@dataclass(frozen=True)
class Counted(Compiled):
    """How many records contribute, in steps of 1/steps: those of weight 1."""

    def bound(self, steps: Any) -> float:
        return float(steps)

    def block(self, *arrays_weight_and_steps: Any) -> Any:
        *_, weight, steps = arrays_weight_and_steps
        return (weight.sum() * steps)[None]


@dataclass(frozen=True, eq=False, repr=False)
class SummedTarget(Private):
    """A problem with its encoded records, which are read by exact sums alone. As private as they are: never printed or written."""

    problem: Any
    encoded: Any

    @cached_property
    def records(self) -> Any:
        """Whose sums, in whole numbers, are the only way they are read."""
        return self.encoded.records.read_as(Scaled(self.problem.response_scale))


def held(X: Any, y: Any, known: Any = None) -> Blocks:
    """Rows and responses that are in memory, in blocks of one size; those that are not ``known`` have weight 0."""
    X, y = np.asarray(X), np.asarray(y)
    if known is None:
        return Blocks.holding(len(X), blocked([(X, y)], block_rows(len(X))))
    blocks = blocked([(X, y, np.asarray(known, dtype=np.float64))], block_rows(len(X)))
    return Blocks.holding(len(X), (Block(one.arrays[:2], one.weight * one.arrays[2], one.rows) for one in blocks))


def arithmetic_digest() -> str:
    """Of public numbers through the functions that losses are made of: equal where compiled code computes alike."""
    return Summation((), _Elementary()).digest(next(blocked([[np.linspace(-8.0, 8.0, 1024)]], 1024))).hex()


@dataclass(frozen=True)
class _Elementary(Compiled):
    def block(self, points: Any, weight: Any) -> Any:
        functions = (jnp.exp, jnp.tanh, jax.nn.sigmoid, lambda x: jnp.log1p(jnp.exp(x)), lambda x: jnp.sqrt(jnp.abs(x)))
        return jnp.rint(jnp.concatenate([function(points) for function in functions]) * 2.0**50 / 4096.0)


# ── the law of the noise on them ─────────────────────────────────────────────────────────────────────────────────────
#
# N(0, s²) for each number, or under a pure promise the density ∝ e^{−‖v‖/s} of all numbers together.
# The second is a uniform direction with a norm of Gamma(numbers, s). A symmetric matrix is noised as the vector of its
# diagonal and √2 times what is below it, whose length is the matrix's own; under a pure promise by c·(U − U'), c ~ Gamma(p(p+1) + 1, s) and
# U, U' uniform among positive p×p matrices of trace at most 1. That hides T/s of a sum of positive matrices of trace at most T
# (methods/moments/proof.md), with much less noise than its length would take: √p times less for many columns.


def deviation(noise: float, numbers: int, *, pure: bool) -> float:
    """The standard deviation of one of so many numbers: E‖v‖² = s²·numbers·(numbers + 1) is shared by them."""
    return noise * math.sqrt(numbers + 1.0) if pure else noise


def drawn(generator: Any, noise: float, shape: tuple[int, ...], *, pure: bool) -> Array:
    """Noise of this shape; the last axis is one vector."""
    direction = generator.standard_normal(shape)
    if not pure:
        return np.asarray(noise * direction)
    length = generator.gamma(shape[-1], noise, (*shape[:-1], 1))
    return np.asarray(direction * (length / np.linalg.norm(direction, axis=-1, keepdims=True)))


def mixed_variances(generator: Any, noise: float, numbers: int, rounds: int, *, pure: bool) -> Array:
    """Variances w such that N(0, wI), w drawn anew each time, is this noise: s² itself, or Gamma((numbers + 1)/2, 2s²). For
    ∫ w^{−d/2} e^{−‖v‖²/2w} · w^{(d−1)/2} e^{−w/2s²} dw ∝ e^{−‖v‖/s}."""
    if not pure:
        return np.full(rounds, noise**2)
    return np.asarray(generator.gamma((numbers + 1.0) / 2.0, 2.0 * noise**2, rounds))


def matrix_deviation(noise: float, size: int, *, pure: bool) -> float:
    """√2 times the standard deviation of an entry off the diagonal, and at least that of one on it (methods/moments/proof.md)."""
    if not pure:
        return noise
    numbers = size * (size + 1) // 2
    variance = 2.0 * (size + 1) * (2 * numbers + 1) / (numbers + 2) if size > 1 else 2.0
    return noise * math.sqrt(variance)


def drawn_matrices(generator: Any, noise: float, size: int, rounds: int, *, pure: bool) -> Array:
    """(rounds, size, size): symmetric matrices of noise."""
    if pure:
        width = generator.gamma(size * (size + 1) + 1, noise, (rounds, 1, 1))
        return np.asarray(width * (_of_small_trace(generator, size, rounds) - _of_small_trace(generator, size, rounds)))
    scale = triangle_scale(size)
    return symmetric(noise * scale * generator.standard_normal((rounds, len(scale))), size)


def _of_small_trace(generator: Any, size: int, rounds: int) -> Array:
    """Uniform among positive matrices of trace at most 1: ½GGᵀ of p×(p+1) normal numbers has density ∝ e^{−trace} among positive
    ones, and over its trace plus an exponential number it is uniform."""
    normal = generator.standard_normal((rounds, size, size + 1))
    products = 0.5 * normal @ np.swapaxes(normal, 1, 2)
    traces = np.trace(products, axis1=1, axis2=2) + generator.standard_exponential(rounds)
    return np.asarray(products / traces[:, None, None])


def symmetric(entries: Array, size: int) -> Array:
    """The matrix of a lower triangle, or the matrices of many."""
    matrix = np.zeros((*entries.shape[:-1], size, size))
    rows, columns = np.tril_indices(size)
    matrix[..., rows, columns] = matrix[..., columns, rows] = entries
    return matrix


@lru_cache(maxsize=32)
def triangle_scale(size: int) -> Array:
    """Noise of a lower triangle beside that of the vector: √½ off the diagonal, where an entry stands for two."""
    rows, columns = np.tril_indices(size)
    scale = np.where(rows == columns, 1.0, math.sqrt(0.5))
    scale.flags.writeable = False
    return scale
