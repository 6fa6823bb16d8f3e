"""What a fit asks of the records in measured coordinates, each a sum of whole numbers (`exact_sums`).

| statistic | a record's share | its norm, in steps |
| --- | --- | --- |
| NewtonSums | a·φ'·z finely, a·φ''·zzᵀ coarsely | L·r, M·r² |
| Outer("information", …) | a·ψ·zzᵀ | ψ_max·r² |
| Outer("variability", …) | a²·E[φ'² | x]·zzᵀ | at most ψ_max·r² for labels and counts, L²·r² otherwise |
| Outer("curvature", …), Outer("squares", …) | a·φ''·zzᵀ, a²·φ'²·zzᵀ | M·r², L²·r² |

a‖z‖² and a²‖z‖² are at most r², so the norms follow from the largest ψ, E[φ'² | x], φ'' and φ'² (`FitLoss.largest`).

`FitRows` rewrites a record once as z, its weight a(z) and its response, one record a column: sums over records then run along
memory. Matrices come as their lower triangles. Of several classes z is f ⊗ z, f a pull or a factor of the Hessian in
contrasts of the classes (`ClassLoss`).

**The minimum** of a tilted convex loss over records in measured coordinates, to a certified gradient (`minimum`).

Newton steps, shortened where the curvature at hand says too little of the way ahead (Levenberg 1944, Marquardt 1963): losses
with straight parts have none there, and a plain Newton step would leap by n times too far. Some twelve passes, whatever n is. Where
those have not arrived after 100 passes, accelerated gradient steps with public constants, which arrive for every data set
(Nesterov 2004, §2.2) after as many as `most_descent` says: no failure depends on the records.
Gradients are exact sums (`exact_sums`), so what is certified holds in any order of the records, and the search takes the
same steps on every engine: its own arithmetic is done here, on d numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onedraw.arrays import Array
from onedraw.models.compute import jnp
from onedraw.models.moments.measured import INSIDE, Layout, cut, gram, mallows
from onedraw.models.sums.exact_sums import Compiled, symmetric

from .losses import ClassLoss, FitLoss, Of

LIMB, LIMB_BELOW = 2.0**20, 2.0**50
"""Steps to one of the two limbs of a gradient: within a block both add up exactly in float64, and n of them in int64."""


@dataclass(frozen=True)
class FitRows(Compiled):
    """(z, a, response) of encoded records: z (width, n), the Mallows weights, and responses as the loss sees them; ``unit`` is
    (centre, unit)."""

    layout: Layout

    def block(self, X: Any, y: Any, weight: Any, mean: Any, root: Any, stretch: Any, row_bound: Any, unit: Any) -> Any:
        z = self.layout.measured(X, mean, root, stretch)
        return z.T, mallows(z, row_bound), (y - unit[0]) / unit[1]


@dataclass(frozen=True)
class MeasuredRows(Compiled):
    """(z, (response, a)) of encoded records, as a noisy gradient in measured coordinates has them."""

    layout: Layout

    def block(
        self, X: Any, y: Any, weight: Any, mean: Any, root: Any, stretch: Any, row_bound: Any, scale: Any,
        centre: Any, unit: Any,
    ) -> Any:  # fmt: skip
        z = self.layout.measured(X, mean, root, stretch)
        return z, jnp.stack([(y / scale - centre) / unit, mallows(z, row_bound)], axis=1)


@dataclass(frozen=True)
class NewtonSums(Compiled):
    """Σ a·φ'·z in two limbs, steps of 2⁻²⁰ and of 2⁻⁵⁰ for what those leave, then Σ a·φ''·zzᵀ in steps of 1/coarse²."""

    loss: FitLoss | ClassLoss

    def bound(self, coarse: Any, row_bound: Any, theta: Any) -> float:
        slopes = max(LIMB * self.loss.slope_bound * row_bound, 2.0 * LIMB_BELOW / LIMB)
        return float(max(slopes, coarse**2 * self.loss.curvature_bound * row_bound**2))

    def block(self, z: Any, a: Any, y: Any, weight: Any, coarse: Any, row_bound: Any, theta: Any) -> Any:
        if isinstance(self.loss, ClassLoss):
            contrasts = (theta.reshape(self.loss.blocks, -1) @ z).T
            pulls = _times((a[:, None] * self.loss.slopes(contrasts, y)).T, z)
            factors = self.loss.factors(contrasts, y, "curvature")
            curved = _blocks_gram(z * (jnp.sqrt(a) * weight), factors, coarse)
        else:
            u = theta @ z
            pulls = z * (a * self.loss.kernel.slope(u, y))
            curved = gram(z * (jnp.sqrt(a * self.loss.kernel.curvature(u, y)) * weight), coarse)
        high = jnp.trunc(pulls * LIMB)
        low = jnp.trunc((pulls - high / LIMB) * LIMB_BELOW)
        return jnp.concatenate([high @ weight, low @ weight, curved])

    def split(self, total: Any, coarse: Any, size: int) -> tuple[Any, Any]:
        """Gradient and Hessian of the sum, or of many, as floating-point numbers rounded once."""
        gradient = total[..., :size] / LIMB + total[..., size : 2 * size] / LIMB_BELOW
        return gradient, symmetric(total[..., 2 * size :] / coarse**2, size)


@dataclass(frozen=True)
class Outer(Compiled):
    """H or K: Σ a·ψ·zzᵀ ("information": the expected curvature; "curvature": the curvature itself), or Σ a²·E[φ'² | x]·zzᵀ
    ("variability": the expected square of the slope; "squares": the square itself)."""

    loss: FitLoss | ClassLoss
    of: Of

    @property
    def largest(self) -> float:
        """The largest trace of a record's share for r = 1: what the pure law of matrices hides."""
        return self.loss.largest(self.of)

    def bound(self, steps: Any, row_bound: Any, theta: Any) -> float:
        return float(steps**2 * self.largest * row_bound**2)

    def block(self, z: Any, a: Any, y: Any, weight: Any, steps: Any, row_bound: Any, theta: Any) -> Any:
        # what rows are cut to: rounding in a, ψ and z may exceed it by its last digits
        radius = jnp.sqrt(self.largest) * row_bound
        if isinstance(self.loss, ClassLoss):
            return self._of_classes(z, a, y, weight, steps, radius, theta.reshape(self.loss.blocks, -1))
        weights = a if self.of in ("information", "curvature") else a * a
        size = jnp.sqrt(weights * getattr(self.loss, self.of)(theta @ z, y))
        return gram(cut(z * size, radius, axis=0) * weight, steps)

    def _of_classes(self, z: Any, a: Any, y: Any, weight: Any, steps: Any, radius: Any, theta: Any) -> Any:
        """Several factors a record. The trace is the sum of all squares, which a cut towards zero never raises: it is kept below radius²."""
        assert isinstance(self.loss, ClassLoss)
        contrasts = (theta @ z).T
        if self.of not in ("information", "curvature"):
            pulls = _times((a[:, None] * self.loss.slopes(contrasts, y)).T, z)
            return gram(cut(pulls, radius, axis=0) * weight, steps)
        factors = self.loss.factors(contrasts, y, self.of)
        parts = factors.shape[1]
        size = jnp.sqrt((factors**2).sum(axis=(1, 2)) * a * (z * z).sum(axis=0))
        rows = z * (jnp.sqrt(a) * jnp.minimum(1.0, INSIDE * radius / jnp.maximum(size, 1e-300)) * weight)
        return sum(gram(_times(factors[:, part].T, rows), steps) for part in range(parts))


def _times(factor: Any, z: Any) -> Any:
    """f ⊗ z for every record, one a column."""
    return (factor[:, None, :] * z[None, :, :]).reshape(-1, z.shape[1])


def _blocks_gram(rows: Any, factors: Any, steps: Any) -> Any:
    """The lower triangle of Σ (ffᵀ) ⊗ rrᵀ, exactly added: S_ab·r and r are cut onto the lattice, for every two blocks a ≥ b."""
    blocks, width = factors.shape[2], rows.shape[0]
    bends = jnp.einsum("nca,ncb->abn", factors, factors)
    whole = jnp.trunc(rows * steps)
    total = jnp.zeros((blocks, width, blocks, width))
    for a in range(blocks):
        for b in range(a + 1):
            total = total.at[a, :, b, :].set(jnp.trunc(rows * (bends[a, b] * steps)) @ whole.T)
    down, across = np.tril_indices(blocks * width)
    return total.reshape(blocks * width, -1)[down, across]


def predictor_rounding(width: int) -> float:
    """Bound the error of zᵀθ in double precision, in units of ‖z‖‖θ‖, with that of what is added to a gradient."""
    return (width + 5.0) * 2.0**-53


# ── the minimum ──────────────────────────────────────────────────────────────────────────────────────────────────────


FIRST = 0.01
"""Added to the curvature at the start, as a share of its public bound: a hundred steps of the gradient method in one."""

TRUSTED, DOUBTED = 16.0, 8.0
"""By how much less, or more, is added after a step that did, or did not, lead downwards."""

OVERSHOT = 0.5
"""A step is taken unless it climbs again, at its end, at this share of the slope it began with."""


class Objective(NamedTuple):
    """What is public of it: ½θᵀQθ + qᵀθ beside the loss (the tilt is in q), the lattice, and when to stop."""

    Q: Any
    q: Any
    coarse: Any
    row_bound: Any
    certified: Any
    """The norm of the gradient to reach."""
    least: Any
    most: Any
    """Between which all eigenvalues of the Hessian lie, whatever the records."""
    most_passes: Any
    reach: Any = math.inf
    """The norm of θ up to which rounding leaves room for ``certified``; beyond, both grow with the norm (privacy/perturbed_mode.md §3)."""


def minimum(records: Any, loss: Any, objective: Objective) -> tuple[Array, int]:
    """(θ̂, passes over the records), from the public start 0."""
    search = _Search(records, NewtonSums(loss), objective)
    return search.descent(*search.newton()), search.passes


def most_descent(least: float, most: float, gradient: float, certified: float) -> int:
    """Accelerated steps that suffice from a gradient of this norm, whatever the records are; eigenvalues of the Hessian lie between
    ``least`` and ``most`` (samplers/padding.md)."""
    needed = math.log(3.0 * math.sqrt(2.0) * (most / least) * (gradient / certified))
    return 1 + max(0, math.ceil(2.0 * needed / -math.log1p(-math.sqrt(least / most)) * (1.0 + 1e-12)))


@dataclass
class _Search:
    records: Any
    statistic: NewtonSums
    public: Objective
    passes: int = 0

    def newton(self) -> tuple[Array, Array]:
        """(θ, its gradient) as far as Newton steps lead."""
        theta, most = np.zeros_like(self.public.q), self.public.most
        added, (gradient, hessian) = FIRST * most, self._derivatives(theta)
        first = gradient
        while not self._arrived(theta, gradient) and self.passes < self.public.most_passes:
            step = np.linalg.solve(hessian + added * np.eye(len(theta)), gradient)
            ahead, bent = self._derivatives(theta - step)
            before, after = gradient @ step, ahead @ step
            if after < -OVERSHOT * before:
                added = max(DOUBTED * added, 1e-6 * most)
                continue
            theta, gradient, hessian = theta - step, ahead, bent
            if after >= -OVERSHOT / 2.0 * before:
                added = added / TRUSTED if added > 1e-9 * most else 0.0
        led_away = gradient @ gradient > first @ first  # then the way back is shorter from the start
        return (np.zeros_like(theta), first) if led_away else (theta, gradient)

    def descent(self, theta: Array, gradient: Array) -> Array:
        """Accelerated gradient steps from where Newton's ended, none if that was small enough."""
        low, high = math.sqrt(self.public.least), math.sqrt(self.public.most)
        momentum, ahead = (high - low) / (high + low), theta
        while not self._arrived(ahead, gradient):
            moved = ahead - gradient / self.public.most
            ahead, theta = moved + momentum * (moved - theta), moved
            gradient, _ = self._derivatives(ahead)
        return ahead

    def _arrived(self, theta: Array, gradient: Array) -> bool:
        beyond = max(1.0, float(np.sqrt(theta @ theta)) / self.public.reach)
        return bool(np.sqrt(gradient @ gradient) <= self.public.certified * beyond)

    def _derivatives(self, theta: Array) -> tuple[Array, Array]:
        """Gradient and Hessian of the objective."""
        self.passes += 1
        summed = self.records.sum(self.statistic, self.public.coarse, self.public.row_bound, theta)
        gradient, hessian = self.statistic.split(summed, self.public.coarse, len(theta))
        return gradient + self.public.Q @ theta + self.public.q, hessian + self.public.Q
