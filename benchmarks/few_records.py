"""How few rows of a table decide a coefficient, and which interval no private release can do without.

Without privacy: for every slope the rows are sorted by their influence on it, and the m that move it most are left out (Broderick,
Giordano, Meager, arXiv:2011.14999), for a grid of m and to both sides. The fit without them follows from one Newton step with the
information of the rows that are left, which is exact for least squares. `least_wide` and `most_named` are the theorems of few_records.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import special, stats

GRID = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 90, 128, 181, 256, 362, 512, 724, 1024, 1448, 2048)
"""Rows that are left out."""

LARGEST_SHARE = 0.1
"""Of the table, that is left out at most."""

MOST_LEVERAGE = 0.999
LARGEST_CONDITION = 1e12

COUNTS = 60
"""Numbers of records that are tried for the best bound."""


def least_wide(k: float, mu: float, miss: float, *, given: float = 1.0, share: float = 1.0) -> float:
    """Return which share of the given intervals is at least as long as what k records move the coefficient by.

    Parameters
    ----------
    k, mu : float
        Records in which the two samples differ at most, and the Gaussian-DP parameter of the release.
    miss : float
        The share of given intervals that miss the coefficient, on either sample at most.
    given : float
        The share of the releases that give an interval, on either sample.
    share : float
        Probability that samples of two tables, drawn together, differ in at most k records.
    """
    covering = (1.0 - miss) * given - (1.0 - share)
    if covering <= 0.0:
        return 0.0
    return max(0.0, share * float(special.ndtr(special.ndtri(covering / share) - k * mu)) / given - miss)


def least_wide_of_samples(left_out: float, n: int, mu: float, miss: float, *, given: float = 1.0) -> float:
    """Return the same for samples of n records of two tables, one of which lacks this share of the other's rows."""
    counts = np.unique(np.round(np.linspace(0.0, stats.binom.ppf(1.0 - 1e-6, n, left_out), COUNTS)))
    shares = stats.binom.cdf(counts, n, left_out)
    return max(
        least_wide(float(k), mu, miss, given=given, share=float(share)) for k, share in zip(counts, shares, strict=True)
    )


def most_named(k: float, mu: float, wrongly: float) -> float:
    """Return the largest probability with which a release names a table that differs in k records from one it names wrongly.

    Parameters
    ----------
    mu : float
        The Gaussian-DP parameter of all that the name depends on.
    wrongly : float
        The probability that the release names the other table.
    """
    return float(special.ndtr(special.ndtri(wrongly) + k * mu))


def share_to_name(k: float, mu: float, *, named: float = 0.8, wrongly: float = 0.16) -> float:
    """Return which share of μ² a noisy count of the k records needs, to name a table so often and one without them so rarely.

    A share above 1 cannot be had by any release of this promise.
    """
    return float((special.ndtri(named) - special.ndtri(wrongly)) / (k * mu)) ** 2


def deciding_rows(X: np.ndarray, y: np.ndarray, truth: np.ndarray, model: str) -> dict[str, Any]:
    """Return for each slope how far leaving out the most influential rows moves it, down and up, for each m of the grid."""
    rows = np.c_[X, np.ones(len(X))]
    weight, residual = _scores(rows, y, truth, model)
    information = (rows * weight[:, None]).T @ rows
    answer = np.linalg.solve(information, rows.T).T
    leverage = np.clip(weight * np.einsum("ij,ij->i", answer, rows), 0.0, MOST_LEVERAGE)
    grid = [m for m in GRID if m <= LARGEST_SHARE * len(rows)]
    moves: dict[str, list[list[float]]] = {"down": [], "up": []}
    for slope in range(len(truth) - 1):
        influence = answer[:, slope] * residual / (1.0 - leverage)
        for side, sign in (("down", 1.0), ("up", -1.0)):
            order = np.argsort(-sign * influence)
            moved = [_without(rows[order[:m]], weight[order[:m]], residual[order[:m]], information) for m in grid]
            moves[side].append([float(move[slope]) for move in moved])
    return {"rows": len(rows), "grid": grid, **moves}


def _scores(rows: np.ndarray, y: np.ndarray, truth: np.ndarray, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's weight in the information, and its residual."""
    predictor = rows @ truth
    if model == "linear":
        return np.ones(len(rows)), y - predictor
    if model == "median":
        return density_at_zero(y - predictor), 0.5 * np.sign(y - predictor)
    mean = special.expit(predictor) if model == "logistic" else np.exp(np.minimum(predictor, 50.0))
    return mean * (1.0 - mean) if model == "logistic" else mean, y - mean


def density_at_zero(residual: np.ndarray) -> np.ndarray:
    """Return what each residual adds to the estimated density at zero."""
    spread = min(residual.std(), np.subtract(*np.quantile(residual, (0.75, 0.25))) / 1.34)
    width = max(1.06 * spread * len(residual) ** -0.2, 1e-9)
    return np.asarray(np.exp(-0.5 * (residual / width) ** 2) / (width * math.sqrt(2.0 * math.pi)))


def _without(rows: np.ndarray, weight: np.ndarray, residual: np.ndarray, information: np.ndarray) -> np.ndarray:
    """Return how coefficients move once these rows are left out; infinitely far where the rest cannot tell them apart."""
    left = information - (rows * weight[:, None]).T @ rows
    if np.linalg.cond(left) > LARGEST_CONDITION:
        return np.full(rows.shape[1], np.inf)
    return np.asarray(-np.linalg.solve(left, rows.T @ residual))


def rows_needed(entry: Mapping[str, Any], slope: int, side: str, distance: float) -> float:
    """Return how few rows, left out, move a slope by this distance to this side; infinity if none of the grid do."""
    for m, move in zip(entry["grid"], entry[side][slope], strict=True):
        if move is None or abs(move) >= distance:
            return float(m)
    return math.inf
