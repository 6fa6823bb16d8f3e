"""Learned scores: which data set does a draw look like? The one file of this room that meets scikit-learn.

Two learners, both of scikit-learn: logistic regression on the draws and their squares (shifts and scales, in any
dimension) and gradient-boosted trees (anything else). How well they learn bears on power only, never on validity: the
event is fixed before the counted draws are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Scorer = Callable[[Array], Array]

_LARGEST_TRAINING_SET = 20_000
_CLIP = 50.0


def learned_scorers(draws0: Array, draws1: Array) -> list[Scorer]:
    """One score per learner, fitted on these draws; large where a draw looks like the second data set's."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    half = _LARGEST_TRAINING_SET // 2
    draws0, draws1 = draws0[:half], draws1[:half]
    prepare = _scaling(np.concatenate([draws0, draws1]))
    features = prepare(np.concatenate([draws0, draws1]))
    labels = np.repeat([0, 1], [len(draws0), len(draws1)])
    linear = LogisticRegression(C=10.0, max_iter=500).fit(_with_squares(features), labels)
    trees = HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=15, min_samples_leaf=max(5, min(50, len(labels) // 40)), early_stopping=False,
        random_state=0,
    )  # fmt: skip
    with _one_thread():
        trees.fit(features, labels)

    def by_trees(draws: Array) -> Array:
        with _one_thread():
            return np.asarray(trees.decision_function(prepare(draws)), dtype=float)

    return [lambda draws: np.asarray(linear.decision_function(_with_squares(prepare(draws))), dtype=float), by_trees]


def _one_thread() -> Any:
    """Threads that wait for each other on a busy machine cost more than these small fits."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1)


def _scaling(draws: Array) -> Callable[[Array], Array]:
    """Draws to features of about unit size; what is not finite becomes an indicator of its own."""
    finite = np.where(np.isfinite(draws), draws, np.nan)
    known = ~np.all(np.isnan(finite), axis=0)
    centre, scale = np.zeros(draws.shape[1]), np.ones(draws.shape[1])
    if np.any(known):
        low, middle, high = np.nanquantile(finite[:, known], [0.25, 0.5, 0.75], axis=0)
        centre[known] = middle
        scale[known] = np.where(high > low, high - low, 1.0)

    def prepare(values: Array) -> Array:
        usual = np.isfinite(values)
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.clip((np.where(usual, values, centre) - centre) / scale, -_CLIP, _CLIP)
        odd = [np.isnan(values), values == np.inf, values == -np.inf]
        return np.concatenate([scaled, *(kind.astype(float) for kind in odd)], axis=1)

    return prepare


def _with_squares(features: Array) -> Array:
    return np.concatenate([features, np.sign(features) * np.sqrt(np.abs(features)), features**2 / _CLIP], axis=1)
