"""Many fits of one plan on simulated data sets: for studies of coverage and accuracy, not for releases.

Every data set runs the very program of a release (`fit.Stages`), compiled once for all; as many run at a time as there are
cores, because compiled code lets go of Python's lock. Mapping them inside one compiled call (`jax.vmap`, `jax.lax.map`)
was tried: a fit's passes are bound by arithmetic, not by calls, and vmap's batched products were nine times slower at 8,000 records.
Not private: seeds are given, nothing is accounted for or certified, and records leave through `release` alone.

    published = fit_many(plan, X, y, seeds)        # X (m, n, columns), y (m, n): parts (m, …)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from onedraw.errors import WrongCall
from onedraw.models.fit_published import PARTS, Published
from onedraw.samplers.fit import Stages
from onedraw.samplers.fit_noise import Noise


def fit_many(plan: Any, X: Any, y: Any, seeds: Sequence[int]) -> Published:
    """What m fits would publish, a seed each: simulation only, never private. Parts have a first axis of length m."""
    rows, responses = np.asarray(X), np.asarray(y)
    if plan.mechanism.requires != "perturbed-mode":
        raise WrongCall(
            f"fit_many repeats the fits of a PerturbedMode; a {type(plan.mechanism).__name__} came. Use samplers.fits."
        )
    fits = len(seeds)
    if not fits or rows.ndim != 3 or rows.shape[:2] != (fits, plan.n) or responses.shape != (fits, plan.n):
        raise WrongCall(
            f"fit_many needs m seeds, X of shape (m, n, columns) and y of shape (m, n), n = {plan.n:,} as planned; "
            f"{fits} seeds, X {rows.shape} and y {responses.shape} came."
        )

    def fit(index: int) -> Published:
        target = plan.target(plan.model.summarise((rows[index], responses[index])))
        return Stages(target, Noise(np.random.default_rng(seeds[index]), pure=target.problem.pure)).run()

    first = fit(0)  # compiles
    with ThreadPoolExecutor(os.cpu_count()) as cores:
        found = [first, *cores.map(fit, range(1, fits))]
    parts = {name: [getattr(one, name) for one in found] for name in PARTS}
    return Published(**{name: np.stack(values) for name, values in parts.items() if values[0] is not None})
