"""The error to expect of draws from a posterior, from public numbers.

| draws | the error follows from |
| --- | --- |
| of a regression | the moments of a draw under the public reference design (`law`) |
| of a conjugate family | a simulation: a truth from the prior, n records at it, clamped as the real ones will be, one private draw |

Of a conjugate family only the sums of the records are simulated, so n costs nothing; the plain estimate from them says how much of
the error is the price of the promise.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from onedraw import samplers  # whose parts load when they are needed: a question about one column needs no JAX
from onedraw.arrays import Array
from onedraw.errors import WrongCall
from onedraw.methods.draws.law import design_of, moments_of
from onedraw.methods.expectation import UNKNOWN, Expectation
from onedraw.models import ConjugateModel, Summary
from onedraw.models.row_model import RowModel
from onedraw.plans import Plan

SIMULATIONS = 400
PUBLIC_SEED = 20170704  # a simulation of public numbers: the seed protects nothing and makes plans reproducible


def expected_error_of_draws(plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
    """Return what to expect of the mean of the plan's draws; unknown where nothing says how they spread."""
    if not isinstance(plan.model, RowModel):
        return error_by_prior_predictive(plan, SIMULATIONS, np.random.default_rng(PUBLIC_SEED))
    if plan.mechanism.no_interval:
        return UNKNOWN
    found = moments_of(plan, design_of(plan, effect=effect, noise=noise))
    return UNKNOWN if found is None else Expectation(*found.errors(plan.draws))


def error_by_prior_predictive(plan: Plan, data_sets: int, generator: np.random.Generator) -> Expectation:
    """Simulate the release on data the prior predicts."""
    if not isinstance(plan.model, ConjugateModel):
        raise WrongCall(f"No simulation is known for {type(plan.model).__name__}, so its error cannot be predicted.")
    exact, private, plain = samplers.Exact(), [], []
    for _ in range(data_sets):
        truth, total, estimate = plan.model.simulate(plan.n, generator)
        summary = Summary(plan.n, tuple(Fraction(float(value)) for value in total))
        draws = exact.draw(plan.target(summary), generator, size=plan.draws).reshape(plan.draws, -1)
        private.append(draws.mean(axis=0) - truth)
        plain.append(estimate - truth)
    return Expectation(private=root_mean_square(private), sampling=root_mean_square(plain))


def root_mean_square(errors: list[Array]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))
