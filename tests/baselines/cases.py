"""What tests of several baselines share: a model of each conjugate family, with records for it, odd ones among them."""

from __future__ import annotations

import numpy as np

from onedraw import models

N = 100

ODD = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, None, "", "seven", True]
"""Cells that no declaration foresees."""

FAMILIES = {
    "proportion": (models.BetaBernoulli(prior=(2.0, 3.0)), [0, 1, 1, 0] * 25),
    "average": (models.BetaBernoulli(lower=-1.0, upper=3.0), np.linspace(-1.0, 3.0, N).tolist()),
    "categories": (models.DirichletCategorical((1.0, 2.0, 3.0)), [0, 1, 2, 1] * 25),
    "mean": (models.GaussianMean(2.0, 1.0, prior_count=1.0, centre=1.0), np.linspace(-1.0, 3.0, N).tolist()),
    "counts": (models.GammaPoisson(prior=(1.0, 0.5), cap=8), [0, 1, 2, 5] * 25),
    "durations": (models.GammaExponential(prior=(2.0, 2.0), cap=4.0), np.linspace(0.0, 4.0, N).tolist()),
}

VECTORS = (models.GaussianMean(2.0, 1.0, prior_count=1.0, dim=3), np.random.default_rng(1).normal(size=(N, 3)).tolist())

ODD_VECTORS = [
    [np.nan] * 3,
    [1e308, -1e308, 0.0],
    [np.inf, 0.0, 0.0],
    [2.0, 2.0, 2.0],
    [None, 1.0, 1.0],
    [1.0],
    "seven",
]


def two_class_records(n=N, seed=1):
    """Two columns in [−1, 1] and classes of strong effects."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1.0, 1.0, (n, 2))
    return X, (generator.random(n) < 1.0 / (1.0 + np.exp(-X @ [3.0, -2.0]))).astype(int)


def linear_records(model, n, generator, *, wild=False):
    """Rows inside the model's bounds and responses of a line with noise; ``wild``: far outside, where they are clamped."""
    features = model.features
    if features.data_norm is not None:
        X = features.data_norm * generator.uniform(-1.0, 1.0, (n, features.count)) / np.sqrt(features.count)
    else:
        X = generator.uniform(*(np.array(end) for end in features.ends), (n, features.count))
    centred = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-300)
    y = model.response_bound * (0.1 + centred @ np.linspace(0.15, -0.1, features.count))
    y = y + 0.1 * model.response_bound * generator.standard_normal(n)
    return (20.0 * X, 20.0 * y) if wild else (X, y)
