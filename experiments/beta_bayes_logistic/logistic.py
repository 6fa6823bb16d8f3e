"""Errors of logistic regression: of the parameter, of predictions (ROC-AUC), and of signs; one cell for each method, n and ε.

Log RMSE is ½ log(‖θ̃ − θ₀‖²/d). The sign accuracy is the share of coefficients, the intercept among them, with the sign of the true
one (simulated) or of the ridge fit to all training rows (tables). Each is a mean over the draws or noises of one data set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from experiments.beta_bayes_logistic.data_sets import Array, Split, of_table, simulated
from experiments.beta_bayes_logistic.methods import estimates
from scipy import stats


def run(
    *, seeds: tuple[int, ...], method: str, n: int, d: int, epsilon: float | None = None
) -> Iterator[dict[str, Any]]:
    """Simulated records: a row for each seed. Without an ε the method has no promise."""
    splits = [simulated(seed, n, d) for seed in seeds]
    yield from _rows(method, splits, seeds, epsilon)


def run_table(
    *, seeds: tuple[int, ...], table: str, method: str, n: int, epsilon: float | None = None
) -> Iterator[dict[str, Any]]:
    """A UCI table: n = 0 takes all training rows; ``records`` says how many there were."""
    splits = [of_table(seed, table, n or None) for seed in seeds]
    yield from _rows(method, splits, seeds, epsilon)


def _rows(
    method: str, splits: Sequence[Split], seeds: Sequence[int], epsilon: float | None
) -> Iterator[dict[str, Any]]:
    promised = math.inf if epsilon is None else epsilon
    for seed, split, thetas in zip(seeds, splits, estimates(method, splits, seeds, promised), strict=True):
        square = ((thetas - split.truth) ** 2).mean(axis=1)
        scores = thetas[:, :-1] @ split.unseen_X.T
        yield {
            "seed": seed, "epsilon": promised, "records": len(split.y),
            "log_rmse": 0.5 * np.log(np.maximum(square, 1e-12)).mean(),
            "auc": auc(scores, split.unseen_y > 0).mean(), "signs": ((thetas > 0) == (split.truth > 0)).mean(),
        }  # fmt: skip


def auc(scores: Array, positive: Any) -> Array:
    """The area under each row's ROC curve, which the intercept does not change: Mann and Whitney's statistic."""
    ranks = stats.rankdata(scores, axis=1)
    count = int(positive.sum())
    others = len(positive) - count
    return np.asarray((ranks[:, positive].sum(axis=1) - count * (count + 1) / 2) / (count * others))
