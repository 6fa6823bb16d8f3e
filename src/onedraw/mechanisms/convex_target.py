"""The law a plan for a convex model is about, once the records are there: what the sampler is handed."""

from __future__ import annotations

import math
from typing import Any

from onedraw.models import GaussianMean

from .plan import Plan


def gibbs_target(plan: Plan, summary: Any, *, weight: float, prior_factor: float = 1.0) -> Any:
    """∝ exp(−w Σ ℓ(θ, x_i)) π(θ)^{1/m}: the closed-form posterior of a mean, otherwise a `GibbsTarget`."""
    model, numbers = plan.model, plan.parameters
    if isinstance(model, GaussianMean):
        return model.posterior(summary, weight=weight, prior_factor=prior_factor)
    from onedraw.models.target import GibbsTarget

    return GibbsTarget(
        model,
        summary,
        weight,
        model.prior.precision(model.dimension) / prior_factor,
        model.prior.location(model.dimension),
        numbers.get("radius"),
        numbers["strong_convexity"],
        numbers.get("smoothness", math.inf),
    )
