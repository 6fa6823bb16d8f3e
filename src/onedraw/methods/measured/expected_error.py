"""The error to expect of a draw in measured coordinates, from public numbers."""

from __future__ import annotations

import math

import numpy as np

from onedraw.methods.draws.law import moments_of
from onedraw.methods.expectation import UNKNOWN, Expectation
from onedraw.methods.measured_directions import Directions
from onedraw.models.design import Design
from onedraw.models.features import Features
from onedraw.plans import Plan


def error_in_measured_coordinates(plan: Plan, design: Design) -> Expectation:
    """The inner draw's errors where columns fill their ranges evenly and do not go together: a column's coefficient is as much
    larger than its direction's as the direction is expected to be stretched."""
    within, problem = plan.mechanism.inner(plan), plan.mechanism.problem(plan)
    along = Directions.expected(problem, effect=design.effect, noise=design.noise)
    stretched, columns, one = float(along.stretched[1]), problem.layout.columns, problem.layout.intercept
    features = Features(columns, math.sqrt(float(along.variance[1]) * stretched * columns), intercept=one)
    larger, squares = np.sqrt([stretched] * columns + [1.0] * one), np.zeros(3)
    for mass, unit in along.units:
        found = moments_of(within, Design(features, design.effect / unit, design.noise / unit, numeric=design.numeric))
        if found is None:
            return UNKNOWN
        squares += mass * np.square(found.errors(plan.draws, unit * larger))
    return Expectation(*np.sqrt(squares).tolist())
