"""Linear regression from noisy sums by the analytic Gaussian mechanism, as Barrientos et al. do it.

    S = AᵀA with A = (1, x, y);    S̃_jk = S_jk + w_jk·√q·N(0, 1)/μ;    β̃ = (X̃ᵀX)⁻¹ X̃ᵀy

w_jk is the width of the range of a record's product x_j·x_k, q the number of sums, and μ what (ε, δ) allows (Balle and Wang
2018): divided by w, one replaced record moves each sum by at most 1, so all of them by at most √q. If S̃ is not positive definite,
a diagonal is added, in proportion to the widths, as large as the 1 % quantile of the noise's least eigenvalue; if that does
not do, three times the least eigenvalue of S̃. Written from the paper and from its published code. Different here: n is public
and has no noise, and the ranges are declared, not read from the table.

Intervals are asymptotic, which takes the noisy sums for true ones, or counted (the paper's parametric bootstrap), which adds the
noise of the sums to the sampling error. The noise is of NumPy's generator: for studies only, never private.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from experiments.feasibility.wages import BINARY, BOUNDS, NORMAL, RESPONSE, Array, Rows
from numpy.random import Generator

import onedraw as od

BOOTSTRAP_DRAWS = 1000
EIGENVALUE_DRAWS = 1000
EIGENVALUE_SEED = 20231027
EIGENVALUE_LEVEL = 0.01


class Estimate(NamedTuple):
    """Coefficients, the intercept last, and the ends of their intervals; NaN where there is none."""

    value: Array
    low: Array
    high: Array


class NoisySums:
    """The mechanism for the columns of a regression: public numbers only."""

    def __init__(self, columns: Sequence[str], budget: od.ApproxDP) -> None:
        bounds = [(1.0, 1.0), *(BOUNDS[name] for name in columns), BOUNDS[RESPONSE]]
        self.low, self.high = (np.array(ends) for ends in zip(*bounds, strict=True))
        self.size = len(bounds)
        self.binary = [1 + place for place, name in enumerate(columns) if name == BINARY]
        self.noise = np.sqrt(self.queries) / budget.allows(od.GaussianDP)

    @cached_property
    def widths(self) -> Array:
        """Width of the range of each product, for columns that are never negative."""
        return np.outer(self.high, self.high) - np.outer(self.low, self.low)

    @cached_property
    def queries(self) -> int:
        """Number of sums: all products but the count; the square of a 0/1 column is the column itself."""
        return self.size * (self.size + 1) // 2 - 1 - len(self.binary)

    def draw_noise(self, generator: Generator, draws: int) -> Array:
        """Return (draws, size, size): symmetric noise of the sums."""
        lower = np.tril(generator.standard_normal((draws, self.size, self.size)))
        noise = lower + np.tril(lower, -1).transpose(0, 2, 1)
        for place in self.binary:
            noise[:, place, place] = noise[:, place, 0]
        noise[:, 0, 0] = 0.0
        return np.asarray(self.noise * self.widths * noise)

    @cached_property
    def ridge(self) -> Array:
        """The diagonal that is added first where noisy sums are not positive definite."""
        noise = self.draw_noise(np.random.default_rng(EIGENVALUE_SEED), EIGENVALUE_DRAWS)
        least = abs(float(np.quantile(np.linalg.eigvalsh(noise)[:, 0], EIGENVALUE_LEVEL)))
        widths = np.where(np.diag(self.widths) > 0.0, np.diag(self.widths), 1.0)
        return np.diag(widths * least / widths.sum())

    def release(self, rows: Rows, generator: Generator) -> Array:
        """Return the noisy sums, made positive definite."""
        records = np.column_stack([np.ones(len(rows.y)), rows.X, rows.y])
        noisy = records.T @ records + self.draw_noise(generator, 1)[0]
        if self._is_definite(noisy):
            return np.asarray(noisy)
        if self._is_definite(noisy + self.ridge):
            return np.asarray(noisy + self.ridge)
        return np.asarray(noisy + 3.0 * abs(float(np.linalg.eigvalsh(noisy)[0])) * np.eye(self.size))

    def _is_definite(self, sums: Array) -> bool:
        """Return whether a matrix is positive definite, judged in units in which all columns reach 1."""
        return bool(np.linalg.eigvalsh(sums / np.outer(self.high, self.high))[0] > 0.0)

    def estimate(self, sums: Array, n: int, generator: Generator | None = None) -> Estimate:
        """Return coefficients with asymptotic intervals, or with counted ones if there is a generator."""
        unit = self.high[:-1]
        square, product = sums[:-1, :-1] / np.outer(unit, unit), sums[:-1, -1] / unit
        value = np.linalg.solve(square, product)
        variance = float(sums[-1, -1] - product @ value) / (n - self.size - 1)
        if variance <= 0.0:
            low = high = np.full(len(value), np.nan)
        elif generator is None:
            reach = NORMAL * np.sqrt(variance * np.diag(np.linalg.inv(square)))
            low, high = value - reach, value + reach
        else:
            low, high = self._count_noise(square, value, variance, generator)
        return Estimate(*(np.roll(one / unit, -1) for one in (value, low, high)))

    def _count_noise(self, square: Array, value: Array, variance: float, generator: Generator) -> tuple[Array, Array]:
        """Return percentiles of estimates drawn again, sampling error and noise of the sums included."""
        unit = self.high[:-1]
        noise = self.draw_noise(generator, BOOTSTRAP_DRAWS)
        squares, products = noise[:, :-1, :-1] / np.outer(unit, unit), noise[:, :-1, -1] / unit
        root = np.linalg.cholesky(variance * square)
        scores = generator.standard_normal((BOOTSTRAP_DRAWS, len(value))) @ root.T
        moved = np.linalg.solve(square, (scores + products - squares @ value).T).T
        low, high = np.quantile(value + moved, (0.025, 0.975), axis=0)
        return np.asarray(low), np.asarray(high)
