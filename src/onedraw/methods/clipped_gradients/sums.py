"""What clipped gradients ask of the records, each a sum of integers (`exact_sums`).

| statistic | a record's share | bound |
| --- | --- | --- |
| Levels | its response, or a 1 for its class | 1 |
| Columns | v of columns that are numbers, a 1 for each code it has | the box, or the ball |
| Deviations | min(|v - m|, 1) of each column that is a number | 1 each |
| Gradients | kqᵀ, k its row and q its shortened residual, both integers | ‖k‖·‖q‖ <= C·steps |
| (the same pass) | its raw residual, shortened to C₀ | C₀ |
| Squares | the square of a count in [0, 1] | 1 |
| Scores | its score beyond the level's, cut to [-B, B] | B |
| Derivatives | the derivative of its loss in the temperature, and its increases | proof.md |

Residuals are shortened first and cut towards zero onto their lattice afterwards, which never lengthens them. Rows are cut towards
zero before their length is computed. So the bounds hold exactly, for any coordinates and coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.data.sums import Reading
from onedraw.models.compute import jax, jnp
from onedraw.models.moments.measured import INSIDE, Layout
from onedraw.models.sums.exact_sums import Compiled

from .responses import Response


@dataclass(frozen=True)
class CodedRows(Reading):
    """(X, y) → (numbers, codes, response): columns that are numbers, one code for each category, as JAX arrays.

    A record has the level whose column is largest, and none if no column is above the middle of its range. NumPy reads rows, so that no
    second array of all columns is made.
    """

    layout: Layout
    places: tuple[int, ...]
    offsets: tuple[int, ...]
    response: Response

    columns = ()

    def of_block(self, X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
        if self.layout.ball is not None:
            # a row with an entry that is no number has no length to be cut by
            numbers = np.asarray(self.layout.rows(jnp.asarray(np.where(np.isfinite(X), X, 0.0))))
        else:
            numbers = np.clip(X[:, list(self.places)], -1.0, 1.0)
        codes = np.zeros((len(self.offsets), len(X)), dtype=np.int32)
        for place, ((start, stop), offset) in enumerate(zip(self.layout.categories, self.offsets, strict=True)):
            level = X[:, start:stop].argmax(axis=1)
            has_level = X[np.arange(len(X)), start + level] > 0.0
            codes[place] = offset + np.where(has_level, level + 1, 0)
        whole = np.where(np.isfinite(numbers), numbers, 0.0)
        return jax.device_put(np.ascontiguousarray(whole.T)), jax.device_put(codes), finite(self.response.read(y))

    def placed(self, weight: Any) -> Any:
        return jnp.asarray(weight)


@dataclass(frozen=True)
class Levels(Compiled):
    """Σ responses, or the number of records of each class, in steps of 1/steps."""

    response: Response

    def bound(self, steps: Any) -> float:
        return float(steps)

    def block(self, numbers: Any, codes: Any, y: Any, weight: Any, steps: Any) -> Any:
        return weight @ jnp.trunc(self.response.shares(y) * steps)


@dataclass(frozen=True)
class Squares(Levels):
    """Σ squares of responses in [0, 1], in steps of 1/steps."""

    def block(self, numbers: Any, codes: Any, y: Any, weight: Any, steps: Any) -> Any:
        return weight @ jnp.trunc(self.response.shares(y) ** 2 * steps)


@dataclass(frozen=True)
class Columns(Compiled):
    """Σ numbers and the number of records of each code, in steps of 1/steps."""

    size: int
    """Codes."""

    def bound(self, steps: Any) -> float:
        return float(steps)

    def block(self, numbers: Any, codes: Any, y: Any, weight: Any, steps: Any) -> Any:
        by_code = jnp.zeros(self.size)
        for code in codes:
            by_code = by_code.at[code].add(weight * steps)
        return jnp.concatenate([jnp.trunc(numbers * steps) @ weight, by_code])


@dataclass(frozen=True)
class Deviations(Compiled):
    """Σ min(|v - m|, 1) of columns that are numbers; v and m are cut onto the lattice before."""

    def bound(self, steps: Any, mean: Any) -> float:
        return float(steps)

    def block(self, numbers: Any, codes: Any, y: Any, weight: Any, steps: Any, mean: Any) -> Any:
        deviations = jnp.abs(jnp.trunc(numbers * steps) - jnp.rint(mean * steps)[:, None])
        return jnp.minimum(deviations, steps) @ weight


@dataclass(frozen=True)
class StepRows(Compiled):
    """(numbers, codes, response) → (k, length, codes, response): rows of integers, and their length."""

    def block(
        self, numbers: Any, codes: Any, y: Any, weight: Any, center: Any, scale: Any, steps: Any, squares: Any
    ) -> Any:
        k = jnp.trunc(finite((numbers - center[:, None]) / scale[:, None]) * steps)
        length = (k * k).sum(axis=0)
        for code in codes:
            length = length + squares[code]
        return k, jnp.sqrt(length), codes, y


@dataclass(frozen=True)
class _AtSlopes(Compiled):
    """A sum at slopes: ``weights`` (numbers, outputs) of integers, and ``table`` (codes, outputs) with what each code adds."""

    response: Response

    def _scores(self, k: Any, codes: Any, weights: Any, table: Any) -> Any:
        found = k.T @ weights
        for code in codes:
            found = found + table[code]
        return finite(found)


@dataclass(frozen=True)
class Gradients(_AtSlopes):
    """Σ kqᵀ by column and by code, Σ q, and Σ raw residuals shortened to C₀.

    Parameters of `block` after the records: the bound in steps of rows, the residual's steps and unit, C₀ and its steps, then
    slopes and intercepts.
    """

    def bound(self, longest: Any, steps: Any, unit: Any, residual: Any, fine: Any, *slopes: Any) -> float:
        return float(max(longest * steps, residual * fine))

    def block(
        self, k: Any, length: Any, codes: Any, y: Any, weight: Any, longest: Any, steps: Any, unit: Any, residual: Any,
        fine: Any, weights: Any, table: Any, intercepts: Any,
    ) -> Any:  # fmt: skip
        raw = finite(self.response.residuals(self._scores(k, codes, weights, table) + intercepts, y))
        size = jnp.sqrt((raw * raw).sum(axis=1))
        factor = jnp.minimum(1.0, INSIDE * longest / jnp.maximum(jnp.maximum(length, 1.0) * size / unit, 1e-300))
        of_level = jnp.minimum(1.0, INSIDE * residual / jnp.maximum(size, 1e-300))
        q = jnp.trunc(raw * (weight * factor / unit * steps)[:, None])
        own = jnp.trunc(raw * (of_level * fine)[:, None])
        by_code = jnp.zeros(table.shape)
        for code in codes:
            by_code = by_code.at[code].add(q)
        parts = (k @ q, by_code, weight @ q, weight @ own)
        return jnp.concatenate([part.reshape(-1) for part in parts])


@dataclass(frozen=True)
class Scores(_AtSlopes):
    """Σ scores beyond the level's, cut to [-B, B], in units of `unit`."""

    def bound(self, largest: Any, fine: Any, *public: Any) -> float:
        return float(largest * fine)

    def block(
        self, k: Any, length: Any, codes: Any, y: Any, weight: Any, largest: Any, fine: Any, unit: Any, weights: Any, table: Any,
        moved: Any,
    ) -> Any:  # fmt: skip
        scores = finite((self._scores(k, codes, weights, table) + moved) / unit)
        return weight @ jnp.trunc(jnp.clip(scores, -largest, largest) * fine)


@dataclass(frozen=True)
class Derivatives(_AtSlopes):
    """Σ of a record's derivative in the temperature at the first temperature, then of its increases from each to the next.

    The derivative of a convex loss increases, so increases are at least 0. That is enforced, since floats could break it.
    """

    def bound(self, largest: Any, fine: Any, *public: Any) -> float:
        return float(2.0 * largest * fine)

    def block(
        self, k: Any, length: Any, codes: Any, y: Any, weight: Any, largest: Any, fine: Any, unit: Any, temperatures: Any,
        weights: Any, table: Any, intercepts: Any, shift: Any,
    ) -> Any:  # fmt: skip
        slopes = finite(self._scores(k, codes, weights, table) + shift)
        found, last = [], None
        for place in range(temperatures.shape[0]):
            raw = self.response.residuals(intercepts + temperatures[place] * slopes, y)
            derivative = finite((raw * slopes).sum(axis=1) / unit)
            current = jnp.trunc(jnp.clip(derivative, -largest, largest) * fine)
            current = current if last is None else jnp.maximum(current, last)
            found.append((current if last is None else current - last) @ weight)
            last = current
        return jnp.stack(found)


def finite(values: Any) -> Any:
    """Return the values with 0 for what is no number: no record may turn a sum into something else."""
    return jnp.where(jnp.isfinite(values), values, 0.0)
