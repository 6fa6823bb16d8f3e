"""U(θ) and its gradient for the targets of one call, as arrays that few programs are compiled for. For studies.

    rows, which, numbers = stacked(targets)           # records of the different data sets; which target has which
    height = height_of(kernel, rows, place, numbers)  # θ → (U, ∇U), inside compiled code
    logs = log_density(target, thetas)                # −U at each of the points

A target is what a plan makes of records, `plan.target(model.summarise((X, y)))`: the very posterior that a release
draws from. Those of one call share model and n; records that several targets share (many ε on one data set) are held
once.

Records stand in blocks of a public size, filled up with rows that count nothing, and how many blocks there are is no
part of a program: one program serves many n. A block's work stays in the cache. Of a network a block holds a feature's
values side by side, which is several times as fast. On an accelerator all rows are one block, and where a linear
predictor has so many features that cutting a block out would be most of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onedraw.models.compute import accelerated, jax, jnp

Array = NDArray[np.float64]

CACHE = 2**18
"""Bytes of a chunk's rows on a processor."""

SMALL, BLOCK = 128, 512
"""Rows of a block: where there are no more than that, and otherwise."""

WIDE = 16
"""Features from which on a linear predictor's rows are one block."""


class Rows(NamedTuple):
    """X (data sets, blocks, rows of a block, p), of a network (…, p, rows of a block); y (data sets, blocks, rows); n."""

    X: Any
    y: Any
    n: Any

    @property
    def size(self) -> int:
        return int(self.y.shape[-1])


def stacked(targets: Sequence[Any]) -> tuple[Rows, Any, list[Any]]:
    """Records of the different data sets; which target has which; (m, …) arrays of all other numbers."""
    kinds = {(target.kernel, target.encoded.n, target.dimension, getattr(target, "radius", None)) for target in targets}
    if len(kinds) != 1 or next(iter(kinds))[-1] is not None:
        raise ValueError(f"targets of one model and one n without a ball are needed; {len(kinds)} kinds were given.")
    different = {id(target.encoded): target.encoded for target in targets}
    places = {identity: place for place, identity in enumerate(different)}
    which = np.array([places[id(target.encoded)] for target in targets])
    X, y = (np.stack([np.asarray(getattr(one, name)) for one in different.values()]) for name in ("X", "y"))
    each = zip(*(target.arguments[2:] for target in targets), strict=True)
    return (
        in_blocks(X, y, targets[0].kernel),
        which,
        [np.stack([np.asarray(one, dtype=np.float64) for one in all_]) for all_ in each],
    )


def in_blocks(X: Array, y: Array, kernel: Any) -> Rows:
    """X (data sets, n, p) and y (data sets, n) in blocks, with room for 2, 8, 32, … of them."""
    sets, n, p = X.shape
    whole = accelerated() or (p > WIDE and not has_layers(kernel))
    size = n if whole else SMALL if n <= SMALL else BLOCK
    room = 1 if whole or n <= SMALL else 2
    while room * size < n:
        room *= 4
    missing = room * size - n
    X, y = np.pad(X, ((0, 0), (0, missing), (0, 0))), np.pad(y, ((0, 0), (0, missing)))
    X, y = X.reshape(sets, room, size, p), y.reshape(sets, room, size)
    return Rows(X.swapaxes(2, 3) if has_layers(kernel) else X, y, n)


def has_layers(kernel: Any) -> bool:
    return hasattr(getattr(kernel, "function", None), "hidden")


def chunk(bytes_each: int) -> int:
    """How many go side by side."""
    room = CACHE
    if accelerated():
        stated = jax.devices()[0].memory_stats() or {}
        room = stated.get("bytes_limit", 2**33) // 4
    return int(max(1, room // max(1, bytes_each)))


# ── inside compiled code ─────────────────────────────────────────────────────────────────────────────────────────


def potential_of(kernel: Any, rows: Rows, place: Any, numbers: Sequence[Any]) -> Callable[[Any], Any]:
    """θ → U of a β-divergence or of a Gibbs posterior."""
    return _summed(*_parts(kernel, rows, place, numbers), rows)


def height_of(kernel: Any, rows: Rows, place: Any, numbers: Sequence[Any]) -> Callable[[Any], tuple[Any, Any]]:
    """θ → (U, ∇U)."""
    of_prior, of_block = _parts(kernel, rows, place, numbers)
    return _summed(jax.value_and_grad(of_prior), jax.value_and_grad(of_block), rows)


def _summed(of_prior: Any, of_block: Any, rows: Rows) -> Callable[[Any], Any]:
    """A derivative is that of each block, so that what a block needs for it is never kept."""

    def total(theta: Any) -> Any:
        def add(block: Any, sums: Any) -> Any:
            return jax.tree.map(jnp.add, sums, of_block(theta, block))

        blocks = (rows.n + rows.size - 1) // rows.size
        return jax.lax.fori_loop(0, blocks, add, of_prior(theta))

    return total


def _parts(kernel: Any, rows: Rows, place: Any, numbers: Sequence[Any]) -> tuple[Any, Any]:
    """−log prior but for a constant, as a function of θ, and the loss of a block's records, of θ and the block."""
    weight, *rest = numbers
    gibbs = not hasattr(kernel, "negative_log_prior")

    def of_prior(theta: Any) -> Any:
        if not gibbs:
            return kernel.negative_log_prior(theta, *rest[1:])
        precision, location = rest
        return 0.5 * (precision * (theta - location)) @ (theta - location)

    def of_block(theta: Any, block: Any) -> Any:
        there = block * rows.size + jnp.arange(rows.size) < rows.n
        X = rows.X[place, block].T if has_layers(kernel) else rows.X[place, block]
        losses = kernel.losses(theta, X, rows.y[place, block], *(() if gibbs else rest[:1]))
        return weight * jnp.where(there, losses, 0.0).sum()

    return of_prior, of_block


def mapped(function: Any, arguments: Any, at_once: int, count: Any) -> Any:
    """``function`` of the first ``count`` of the arguments, ``at_once`` side by side, one chunk after the other."""
    length = len(jax.tree.leaves(arguments)[0])
    size = min(at_once, length)
    places = jnp.arange(-(-length // size) * size) % length
    filled = jax.tree.map(lambda one: one[places].reshape(-1, size, *one.shape[1:]), arguments)

    def of_chunk(number: Any) -> Any:
        return jax.vmap(function)(jax.tree.map(lambda one: one[number], filled))

    def add(number: Any, found: Any) -> Any:
        return jax.tree.map(lambda old, new: old.at[number].set(new), found, of_chunk(number))

    shapes = jax.eval_shape(of_chunk, 0)
    empty = jax.tree.map(lambda one: jnp.zeros((len(places) // size, *one.shape), one.dtype), shapes)
    found = jax.lax.fori_loop(0, (count + size - 1) // size, add, empty)
    return jax.tree.map(lambda one: one.reshape(-1, *one.shape[2:])[:length], found)


# ── one target at many points ────────────────────────────────────────────────────────────────────────────────────


def log_density(target: Any, thetas: Array) -> Array:
    """−U at each of the points, in chunks."""
    rows, _, (weight, *numbers) = stacked([target])
    at_once = chunk(rows.size * rows.X.itemsize)
    found = _heights(target.kernel, at_once, rows, jnp.asarray(thetas), [weight[0], *(one[0] for one in numbers)])
    return -np.asarray(found)


@partial(jax.jit, static_argnums=(0, 1))
def _heights(kernel: Any, at_once: int, rows: Rows, thetas: Any, numbers: Any) -> Any:
    potential = potential_of(kernel, rows, 0, numbers)
    return mapped(lambda given: potential(given[0]), (thetas,), at_once, len(thetas))
