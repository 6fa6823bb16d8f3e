"""Rows of records stored by column: the layout in which XLA's matrix–vector products are fastest on a CPU.

A loss of a linear predictor uses its rows as ``X @ theta`` and ``slopes @ X`` only. With each column contiguous both
products run over long vectors, about a third faster than over short rows (measured at n = 10⁵, d = 20), and the loss
need not know.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onedraw.models.compute import jax, jnp
from onedraw.models.convex.losses import LinearLoss


@jax.tree_util.register_pytree_node_class
class Columns:
    """An (n, d) matrix that keeps its transpose."""

    __array_priority__ = 1000  # NumPy leaves the product to this class

    def __init__(self, transposed: Any) -> None:
        self.transposed = transposed

    def __matmul__(self, theta: Any) -> Any:
        return theta @ self.transposed

    def __rmatmul__(self, slopes: Any) -> Any:
        return self.transposed @ slopes

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self.transposed,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Any]) -> Columns:
        return cls(*children)


def arguments_for(target: Any) -> tuple[Any, ...]:
    """``target.arguments`` for potentials and gradients inside a chain; not for Hessians."""
    if not isinstance(target.kernel, LinearLoss):
        return tuple(target.arguments)
    rows = Columns(jnp.asarray(np.ascontiguousarray(target.encoded.X.T)))
    return (
        rows,
        *(jnp.asarray(value) for value in (target.encoded.y, target.weight, target.precision, target.location)),
    )
