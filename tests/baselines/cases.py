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
