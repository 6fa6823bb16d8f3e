"""The law a plan for a convex model is about, once the records are there: what the sampler is handed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onedraw.models import GaussianMean
from onedraw.models.conjugate.distributions import BallGaussian
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.models.sums.row_lattice import square_units
from onedraw.plans import Plan

from .convex_bounds import has_closed_form


def gibbs_law(plan: Plan, summary: Any, *, weight: float, prior_factor: float = 1.0) -> Any:
    """∝ exp(−w Σ ℓ(θ, x_i)) π(θ)^{1/m}: a Gaussian, or one cut to a ball, where the loss is quadratic."""
    model = plan.model
    if isinstance(model, GaussianMean):
        return model.posterior(summary, weight=weight, prior_factor=prior_factor)
    target = gibbs_target(plan, summary, weight=weight, prior_factor=prior_factor)
    if not has_closed_form(model):
        return target
    from onedraw.models.sums.gradient_sums import squares  # which loads JAX

    sums = squares(summary, square_units(model, summary.n))
    precision = weight * sums[:-1, :-1] + np.diag(target.precision)
    return BallGaussian(precision, weight * sums[:-1, -1] + target.precision * target.location, model.prior.radius)


def gibbs_target(
    plan: Plan, summary: Any, *, weight: float, prior_factor: float = 1.0, kind: type[GibbsTarget] = GibbsTarget
) -> GibbsTarget:
    """The same law as a potential, with the plan's public constants of it."""
    model, numbers = plan.model, plan.parameters
    return kind(
        model,
        summary,
        weight,
        model.prior.precision(model.dimension) / prior_factor,
        model.prior.location(model.dimension),
        numbers.get("radius"),
        numbers["strong_convexity"],
        numbers.get("smoothness", math.inf),
    )
