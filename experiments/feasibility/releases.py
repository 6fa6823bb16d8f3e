"""What a cell computes: each method on each sample, one row for each coefficient. Not private: seeds are fixed.

| method | what it is |
| --- | --- |
| onedraw | what `onedraw plan --model linear` chooses under (ε, δ): averaged steps |
| pure | the same question under δ = 0: a perturbed mode |
| ada-ssp | `baselines.AdaSSP`, which gives no intervals |
| noisy sums | the analytic Gaussian mechanism of Barrientos et al., asymptotic intervals |
| noisy sums, counted | the same estimate, with intervals that count the noise |
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from experiments.feasibility import wages
from experiments.feasibility.noisy_sums import Estimate, NoisySums
from experiments.feasibility.wages import BOUNDS, NORMAL, REGRESSIONS, RESPONSE, Array, Rows
from numpy.random import Generator

import onedraw as od
from onedraw import baselines, models
from onedraw.errors import OnedrawError
from onedraw.samplers.choice import own_sampler

DELTA = 1e-6
METHODS = ("onedraw", "pure", "ada-ssp", "noisy sums", "noisy sums, counted")
ADA_RADIUS = 1e3
"""Of the ball that `LeastSquares` asks for; AdaSSP does not use it."""

Release = Callable[[Rows, Generator], tuple[Estimate, bool]]
"""A private release: coefficients with intervals, and whether it says that it estimates least squares itself."""


def run(
    *, seeds: Sequence[int], method: str, regression: str, size: str, epsilon: float
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yield a row for each coefficient and seed. A refused plan gives rows without estimates."""
    terms, whole = REGRESSIONS[regression].terms, wages.fit_whole(regression)
    n = wages.count(regression, size)
    try:
        release = prepare(method, regression, n, epsilon)
    except OnedrawError:
        release = None
    tag = zlib.crc32(f"{method} {regression} {size} {epsilon:g}".encode())
    for seed in seeds:
        rows = wages.draw(regression, size, seed)
        plain = whole if size == wages.WHOLE else wages.fit(rows)
        missing = np.full(len(terms), np.nan)
        found, reached = Estimate(missing, missing, missing), False
        if release is not None:
            found, reached = release(rows, np.random.default_rng([seed, tag]))
        ratio = wages.residual_of(rows, found.value) / plain.residual
        for place, term in enumerate(terms):
            yield {
                "seed": seed, "n": n, "term": term, "estimate": found.value[place], "low": found.low[place],
                "high": found.high[place], "reached": reached, "plain": plain.estimate[place],
                "plain_low": plain.estimate[place] - NORMAL * plain.errors[place],
                "plain_high": plain.estimate[place] + NORMAL * plain.errors[place],
                "whole": whole.estimate[place], "residual": ratio,
            }  # fmt: skip


def prepare(method: str, regression: str, n: int, epsilon: float) -> Release:
    """Return what releases a sample of n records, with everything public computed before."""
    if method in ("onedraw", "pure"):
        return prepare_fit(regression, n, epsilon, DELTA if method == "onedraw" else 0.0)
    if method == "ada-ssp":
        return prepare_ada_ssp(regression, n, epsilon)
    sums = NoisySums(REGRESSIONS[regression].columns, od.ApproxDP(epsilon, DELTA))

    def release(rows: Rows, generator: Generator) -> tuple[Estimate, bool]:
        noisy = sums.release(rows, generator)
        return sums.estimate(noisy, n, None if method == "noisy sums" else generator), False

    return release


def prepare_fit(regression: str, n: int, epsilon: float, delta: float) -> Release:
    """Return the default fit of the budget, run through its own stages with the noise of a generator."""
    planned = od.plan(wages.schema_of(regression), RESPONSE, "linear", n=n, epsilon=epsilon, delta=delta)
    plan, measure = planned.plan, planned.asked.measure
    assert measure is not None
    units = plan.model.column_units(measure.centre, measure.unit)

    def release(rows: Rows, generator: Generator) -> tuple[Estimate, bool]:
        target = plan.target(plan.model.summarise((rows.X, (rows.y - measure.centre) / measure.unit)))
        result = plan.mechanism.result(plan, own_sampler(plan)().run(target, generator).stages).in_units(*units)  # type: ignore[misc]
        if result.informed:
            low, high = result.conf_int(0.95).T
        else:
            low = high = np.full(len(result.estimate), np.nan)
        return Estimate(result.estimate, low, high), bool(getattr(result, "reached", False))

    return release


def prepare_ada_ssp(regression: str, n: int, epsilon: float) -> Release:
    """Return AdaSSP, which publishes an estimate alone; responses are measured from the middle of their range."""
    columns = REGRESSIONS[regression].columns
    lower, upper = (list(ends) for ends in zip(*(BOUNDS[name] for name in columns), strict=True))
    middle, half = sum(BOUNDS[RESPONSE]) / 2.0, (BOUNDS[RESPONSE][1] - BOUNDS[RESPONSE][0]) / 2.0
    prior = od.Gaussian(scale=1.0, radius=ADA_RADIUS)
    model = models.LeastSquares(
        features=len(columns), bounds=(lower, upper), scaled=True, response_bound=half, prior=prior
    )
    plan = od.calibrate(baselines.AdaSSP(), model, od.ApproxDP(epsilon, DELTA), n=n)
    change, scale, shift = model.column_units(middle, 1.0)
    missing: Array = np.full(len(columns) + 1, np.nan)

    def release(rows: Rows, generator: Generator) -> tuple[Estimate, bool]:
        target = plan.target(plan.model.summarise((rows.X, rows.y - middle)))
        draw = own_sampler(plan)().run(target, generator).draws[0]  # type: ignore[misc]
        return Estimate(scale * (change @ draw) + shift, missing, missing), False

    return release
