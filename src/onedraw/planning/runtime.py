"""About how long will a draw take? From public numbers only, so that a choice by it tells nothing about the records.

Rates were measured on two cores; they decide what ``mechanism="auto"`` leaves out, nothing else.
"""

from __future__ import annotations

from typing import Any

from onedraw.models.likelihood.densities import CountLikelihood
from onedraw.plans import Plan
from onedraw.samplers.proximal import geometry_of, iterations_of
from onedraw.samplers.public_numbers import numbers_of_plan

NUMBERS_A_SECOND = 2e9
"""Entries of the records read by a compiled chain."""

PAIRS_A_SECOND = 8e7
"""Records times candidates."""

COUNTS_A_SECOND = 1e6
"""… of a likelihood of counts, whose loss is a sum over a hundred of them."""

STEP_SECONDS, PROXIMAL_SECONDS = 1e-5, 1e-4
"""Of one step of a chain, however few records there are."""


def estimated_seconds(plan: Plan, sampler: Any) -> float:
    """For all of the plan's draws, apart from compiling (a second or two for a chain, the first time)."""
    numbers, size = plan.parameters, plan.n * len(plan.model.parameter_names)
    match type(sampler).__name__:
        case "LastIterateLangevin":
            return float(plan.draws * sampler.steps * (STEP_SECONDS + 2.0 * size / NUMBERS_A_SECOND))
        case "Proximal":
            steps = iterations_of(sampler.gamma, geometry_of(numbers_of_plan(plan, sampler="Proximal")))
            return float(plan.draws * steps * (PROXIMAL_SECONDS + 4.0 * size / NUMBERS_A_SECOND))
        case "MeasuredFirst":
            return estimated_seconds(plan.mechanism.inner(plan), sampler.of)  # type: ignore[attr-defined]
        case "Selection":
            return float(plan.draws * plan.n * numbers["rounds"] * numbers["candidates"] / _pairs_a_second(plan.model))
        case _:
            return size / NUMBERS_A_SECOND


def _pairs_a_second(model: Any) -> float:
    counts = isinstance(getattr(model, "likelihood", None), CountLikelihood)
    return COUNTS_A_SECOND if counts else PAIRS_A_SECOND
