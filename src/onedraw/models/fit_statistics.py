"""What a fit asks of the records after their moments (`moment_sums`), each a sum of whole numbers, cut in the same way.

| statistic | a record's share | its norm, in steps |
| --- | --- | --- |
| NewtonSums | a·φ'·z finely, a·φ''·zzᵀ coarsely | L·r, M·r² |
| Outer("information") | a·ψ·zzᵀ | ψ_max·r² |
| Outer("variability") | a²·φ'²·zzᵀ | L²·r² |

Matrices come as their lower triangles. Of several classes z is f ⊗ z, f a pull or a factor of the Hessian in contrasts of
the classes (`fit_classes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .compute import jnp
from .fit_classes import ClassLoss
from .fit_losses import FitLoss
from .fit_published import symmetric
from .measured import INSIDE, Layout, cut, mallows
from .moment_sums import gram

LIMB, LIMB_BELOW = 2.0**20, 2.0**50
"""Steps to one of the two limbs of a gradient: within a block both add up exactly in float64, and n of them in int64."""


@dataclass(frozen=True)
class NewtonSums:
    """Σ a·φ'·z in two limbs, steps of 2⁻²⁰ and of 2⁻⁵⁰ for what those leave, then Σ a·φ''·zzᵀ in steps of 1/coarse²."""

    layout: Layout
    loss: FitLoss | ClassLoss

    def bound(self, coarse: Any, mean: Any, root: Any, stretch: Any, row_bound: Any, frame: Any, theta: Any) -> float:
        slopes = max(LIMB * self.loss.slope_bound * row_bound, 2.0 * LIMB_BELOW / LIMB)
        return float(max(slopes, coarse**2 * self.loss.curvature_bound * row_bound**2))

    def block(
        self, X: Any, y: Any, weight: Any, coarse: Any, mean: Any, root: Any, stretch: Any, row_bound: Any, frame: Any, theta: Any,
    ) -> Any:  # fmt: skip
        z = self.layout.measured(X, mean, root, stretch)
        a = mallows(z, row_bound)
        if isinstance(self.loss, ClassLoss):
            contrasts = z @ theta.reshape(self.loss.blocks, -1).T
            pulls = _times(a[:, None] * self.loss.slopes(contrasts, y), z) * weight[:, None]
            factors = self.loss.factors(contrasts, y, "curvature")
            curved = _blocks_gram(z * (jnp.sqrt(a) * weight)[:, None], factors, coarse)
        else:
            u, response = z @ theta, responses(y, frame)
            pulls = z * (a * self.loss.slope(u, response) * weight)[:, None]
            curved = gram(z * jnp.sqrt(a * self.loss.curvature(u, response))[:, None], weight, coarse)
        high = jnp.rint(pulls * LIMB)
        low = jnp.rint((pulls - high / LIMB) * LIMB_BELOW)
        return jnp.concatenate([high.sum(axis=0), low.sum(axis=0), curved])

    def split(self, total: Any, coarse: float) -> tuple[Any, Any]:
        """Gradient and Hessian of the sum, as floating-point numbers rounded once."""
        p = self.loss.blocks * self.layout.width
        gradient = total[:p] / LIMB + total[p : 2 * p] / LIMB_BELOW
        return gradient, symmetric(total[2 * p :] / coarse**2, p)


@dataclass(frozen=True)
class Outer:
    """Σ a·ψ·zzᵀ ("information": the expected curvature; "curvature": the curvature itself) or Σ a²·φ'²·zzᵀ."""

    layout: Layout
    loss: FitLoss | ClassLoss
    of: Literal["information", "curvature", "variability"]

    @property
    def largest(self) -> float:
        """The largest norm of a record's share for r = 1."""
        return self.loss.largest(self.of)

    def bound(self, steps: Any, mean: Any, root: Any, stretch: Any, row_bound: Any, frame: Any, theta: Any) -> float:
        return float(steps**2 * self.largest * row_bound**2)

    def block(
        self, X: Any, y: Any, weight: Any, steps: Any, mean: Any, root: Any, stretch: Any, row_bound: Any, frame: Any, theta: Any,
    ) -> Any:  # fmt: skip
        z = self.layout.measured(X, mean, root, stretch)
        a, radius = mallows(z, row_bound), jnp.sqrt(self.largest) * row_bound
        if isinstance(self.loss, ClassLoss):
            return self._of_classes(z, a, y, weight, steps, radius, theta.reshape(self.loss.blocks, -1))
        u, response = z @ theta, responses(y, frame)
        if self.of == "variability":
            size = a * self.loss.slope(u, response)
        else:
            of_record = self.loss.information if self.of == "information" else self.loss.curvature
            size = jnp.sqrt(a * of_record(u, response))
        # rounding in a, ψ and z may exceed the bound by its last digits; the cut is what enforces it
        return gram(cut(z * size[:, None], radius), weight, steps)

    def _of_classes(self, z: Any, a: Any, y: Any, weight: Any, steps: Any, radius: Any, theta: Any) -> Any:
        """Several factors a record. Cut onto the lattice they are KKᵀ with ‖KKᵀ‖ ≤ (√‖FFᵀ‖ + e)², e the norm of what the cut
        takes from F: so √‖FFᵀ‖ is kept below the radius less e, and two shares differ by at most √2 times radius²."""
        assert isinstance(self.loss, ClassLoss)
        contrasts = z @ theta.T
        if self.of == "variability":
            return gram(cut(_times(a[:, None] * self.loss.slopes(contrasts, y), z), radius), weight, steps)
        factors = self.loss.factors(contrasts, y, self.of)
        parts = factors.shape[1]
        inner = jnp.einsum("nab,ncb->nac", factors, factors)
        size = jnp.sqrt(jnp.sqrt((inner**2).sum(axis=(1, 2))) * a * (z * z).sum(axis=1))
        room = INSIDE * radius - np.sqrt(parts * theta.size) / steps
        row = z * (jnp.sqrt(a) * jnp.minimum(1.0, room / jnp.maximum(size, 1e-300)))[:, None]
        return sum(gram(_times(factors[:, part], row), weight, steps) for part in range(parts))


def _times(factor: Any, z: Any) -> Any:
    """f ⊗ z for every record."""
    return (factor[:, :, None] * z[:, None, :]).reshape(len(z), -1)


def _blocks_gram(rows: Any, factors: Any, steps: Any) -> Any:
    """The lower triangle of Σ (ffᵀ) ⊗ rrᵀ, exactly added: S_ab·r and r are rounded, for every two blocks a ≥ b."""
    blocks, width = factors.shape[2], rows.shape[1]
    bends = jnp.einsum("nca,ncb->nab", factors, factors)
    whole = jnp.rint(rows * steps)
    total = jnp.zeros((blocks, width, blocks, width))
    for a in range(blocks):
        for b in range(a + 1):
            total = total.at[a, :, b, :].set(jnp.rint(rows * (bends[:, a, b] * steps)[:, None]).T @ whole)
    down, across = np.tril_indices(blocks * width)
    return total.reshape(blocks * width, -1)[down, across]


def responses(y: Any, frame: Any) -> Any:
    """Responses as the loss sees them; ``frame`` is (centre, unit)."""
    return (y - frame[0]) / frame[1]


def with_response(rows: Any, y: Any, response: bool) -> Any:
    return jnp.concatenate([rows, jnp.clip(y, -1.0, 1.0)[:, None]], axis=1) if response else rows
