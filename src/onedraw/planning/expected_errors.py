"""How good will a release be? Predicted from public numbers, before any record is read.

Each method says what error to expect (`Mechanism.expected_error`). `simulated_error` checks it by running the mechanism itself on data
simulated from the public design.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onedraw import samplers  # whose parts load when they are needed: a question about one column needs no JAX
from onedraw.errors import WrongCall
from onedraw.methods.draws.expected import error_by_prior_predictive, root_mean_square
from onedraw.methods.draws.law import design_of, estimands
from onedraw.methods.expectation import Expectation
from onedraw.models.row_model import RowModel
from onedraw.plans import Plan


def expected_error(plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
    """Return what to expect of the mean of the plan's draws.

    Parameters
    ----------
    effect, noise : float, optional
        Standard deviations of a regression's linear predictor and of a response about it; by default those that the mechanism
        declares, or the usual ones.
    """
    found: Expectation = plan.mechanism.expected_error(plan, effect=effect, noise=noise)
    return found


def why_selected(plan: Plan) -> str:
    """What to expect, in a sentence, from public numbers."""
    levels, selecting = plan.model.levels, plan.mechanism.rank_errors(plan)
    level, error = max(zip(levels, selecting, strict=True), key=lambda pair: pair[1])
    sampling = (level * (1.0 - level) * plan.model.cells / plan.n) ** 0.5
    records = f"records of one of {plan.model.cells} groups of equal size" if plan.model.by else "records"
    return (
        f"selection by rank. Expected error of the rank of the {level:g}-quantile: {100 * error:.2g} % of the {records} from the "
        f"selection, {100 * sampling:.2g} % from sampling. Decided from public numbers, before any record was read."
    )


def fit_error(plan: Plan, **design: float) -> Expectation:
    """Return the error to expect per coefficient of a fit, the intercept included, for columns scaled to [-1, 1].

    Parameters
    ----------
    design : float
        ``filled``, ``correlation``, ``effect`` and ``noise`` of the design.
    """
    return Expectation(*plan.mechanism.expected_errors(plan, **design))


def fit_column_error(
    plan: Plan, *, named: bool = False, share: float | None = None, **design: float
) -> tuple[float, float, float]:
    """Return what to expect of a column's coefficient: (error, error without privacy, how many times ε an interval needs).

    ``named`` says whether it is an effect of interest, and ``share`` how many of the records have its level.
    """
    found: tuple[float, float, float] = plan.mechanism.expected_column_error(plan, named=named, share=share, **design)
    return found


def simulated_error(
    plan: Plan, *, data_sets: int, generator: np.random.Generator, effect: float | None = None, noise: float | None = None,
    sampler: Any = None,
) -> Expectation:  # fmt: skip
    """Run the real mechanism on simulated data sets: a check of `expected_error`. Seeded by ``generator``: not private."""
    if not isinstance(plan.model, RowModel):
        return error_by_prior_predictive(plan, data_sets, generator)
    if any(stop - start > 1 for start, stop in getattr(plan.mechanism, "categories", ())):
        raise WrongCall("No design with categories is simulated: their levels exclude each other. Look at the plan's range.")  # fmt: skip
    design, sampler = design_of(plan, effect=effect, noise=noise), sampler or samplers.default_sampler(plan)[0]
    expected = expected_error(plan, effect=effect, noise=noise)
    if math.isnan(expected.sampling):
        raise WrongCall(f"What {type(plan.model).__name__} would estimate is not known, so no error can be simulated.")
    private, varying = [], np.tile(design.varying, design.classes)
    truths = design.parameters(generator, data_sets)
    for theta, wanted in zip(truths, estimands(plan, design, truths), strict=True):
        target, seed = plan.target(design.data_set(theta, plan.n, generator)), int(generator.integers(2**62))
        source = samplers.seeded_key(seed) if sampler.randomness == "jax" else samplers.seeded_generator(seed)
        found = np.asarray(sampler.run(target, source, size=plan.draws).values)
        draws = found.reshape(plan.draws, -1)[:, : len(theta)]
        private.append((design.identified(draws).mean(axis=0) - wanted)[varying])
    return Expectation(private=root_mean_square(private), sampling=expected.sampling)
