"""The public numbers a sampler's exactness may rest on, read off a plan before the records, or off a target.

Both readings agree, because a target's numbers come from its plan; nothing in them depends on a record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from onedraw.errors import ExactnessRefused, WrongCall


@dataclass(frozen=True)
class PublicNumbers:
    """Of the potential U = w Σ ℓ(θ, x_i) − log π(θ); None: not known, or not finite."""

    dimension: int
    strong_convexity: float
    smoothness: float | None
    radius: float | None = None
    curvature_ratio: float | None = None


def numbers_of_plan(plan: Any, *, sampler: str) -> PublicNumbers:
    """Refused where the plan has no convex potential, or is an algorithm of its own."""
    numbers = getattr(plan, "parameters", {})
    if getattr(plan, "closed_form", False) or "strong_convexity" not in numbers:
        raise closed_form(sampler)
    if getattr(plan, "requires", "exact") == "noisy-gradient":
        raise ExactnessRefused(
            f"The plan is for a noisy-gradient draw, an algorithm with fixed steps and not a posterior, so {sampler} "
            "would draw something else. Use LastIterateLangevin(steps, step_size) with the plan's numbers, or leave "
            "the sampler out."
        )
    return PublicNumbers(
        dimension=len(plan.model.parameter_names),
        strong_convexity=numbers["strong_convexity"],
        smoothness=numbers.get("smoothness"),
        radius=numbers.get("radius"),
        curvature_ratio=numbers.get("curvature_ratio"),
    )


def numbers_of_target(target: Any) -> PublicNumbers:
    ratio = target.model.bounds.get("curvature_ratio")
    return PublicNumbers(
        dimension=target.dimension,
        strong_convexity=target.strong_convexity,
        smoothness=target.smoothness if math.isfinite(target.smoothness) else None,
        radius=target.radius,
        curvature_ratio=None if ratio is None else float(ratio.value),
    )


def closed_form(sampler: str) -> ExactnessRefused:
    return ExactnessRefused(
        f"{sampler} follows the potential of a convex loss, and this plan's law has a closed form or no known convexity. "
        "Use Exact(), which draws from it as it is."
    )


def smooth(numbers: PublicNumbers, *, sampler: str) -> float:
    """M, or a refusal that names the way out."""
    if numbers.smoothness is None:
        raise ExactnessRefused(
            f"{sampler} needs a smooth loss, and this one has a kink: no step size is known to be small enough. Use the "
            "smoothed version, HuberisedHinge(width=…) or Quantile(smoothing=…); its bounds, and so its weight, are the "
            "same."
        )
    return numbers.smoothness


def checked_gamma(gamma: Any) -> float:
    """A total variation a sampler may be asked to come within."""
    if isinstance(gamma, bool) or not isinstance(gamma, float | int) or not 0.0 < gamma < 0.5:
        raise WrongCall(
            f"gamma must be a number in (0, 0.5), but {gamma!r} came. It is the total variation the draw may be off by and "
            "costs (1 + e^ε)·gamma of δ; 0 would take infinitely long. Use 1e-9, say."
        )
    return float(gamma)
