"""Predictors u = m(x, θ): linear, one hidden layer, or a user's own function.

Frozen, hashable values: compiled functions take them as static arguments. The β-divergence's sensitivity holds for any
of them that sees one row at a time; that a user's function does is seen to in `one_row`.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onedraw.models.compute import jax, jnp

if TYPE_CHECKING:
    from onedraw.models.one_row import OneRow


class PredictorFunction(abc.ABC):
    """One θ, or many, for encoded rows X of shape (n, p)."""

    @abc.abstractmethod
    def __call__(self, theta: Any, X: Any) -> Any:
        """(n,), or (n, K) for K outputs."""

    def many(self, thetas: Any, X: Any) -> Any:
        """(m, n) or (m, n, K) for m parameters, the rows of ``thetas``."""
        return jax.vmap(self, in_axes=(0, None))(thetas, X)


@dataclass(frozen=True)
class Linear(PredictorFunction):
    """θᵀx, or Wx with W the parameter as a K × p matrix, row after row: one matrix product for many θ."""

    outputs: int = 1

    def __call__(self, theta: Any, X: Any) -> Any:
        return X @ theta if self.outputs == 1 else X @ theta.reshape(self.outputs, -1).T

    def many(self, thetas: Any, X: Any) -> Any:
        if self.outputs == 1:
            return thetas @ X.T
        scores = thetas.reshape(len(thetas) * self.outputs, -1) @ X.T
        return scores.reshape(len(thetas), self.outputs, -1).swapaxes(1, 2)


@dataclass(frozen=True)
class OneLayer(PredictorFunction):
    """W₂ a(W₁x) + b₂ with ``hidden`` units; the row's last entry is the 1 that carries the first layer's biases.

    The parameter is W₁ (hidden × p) row after row, then for each output its weights and its bias.
    """

    width: int
    hidden: int
    outputs: int = 1
    activation: str = "tanh"

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return self.hidden * self.width + self.outputs * (self.hidden + 1)

    def __call__(self, theta: Any, X: Any) -> Any:
        first = theta[: self.hidden * self.width].reshape(self.hidden, self.width)
        second = theta[self.hidden * self.width :].reshape(self.outputs, self.hidden + 1)
        inner = X @ first.T
        inner = jnp.tanh(inner) if self.activation == "tanh" else jnp.maximum(inner, 0.0)
        result = inner @ second[:, :-1].T + second[:, -1]
        return result[:, 0] if self.outputs == 1 else result


@dataclass(frozen=True)
class OwnFunction(PredictorFunction):
    """``fn(theta, x)`` of the user's, for one row at a time, as it was examined (`one_row`)."""

    row: OneRow

    def __call__(self, theta: Any, X: Any) -> Any:
        return jax.vmap(self.row, in_axes=(None, 0))(theta, X)
