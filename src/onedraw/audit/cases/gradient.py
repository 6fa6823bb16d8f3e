"""The law of a noisy-gradient draw: θ ← θ − h(wΣφ'(θx_i, y_i)x_i + Λθ) + √(2h)ξ, T times from a public start.

For a linear loss every iterate is Gaussian and its moments follow a recursion (an AR(1) process: the case that attains
the last iterate's bound of arXiv:2403.00278). For any other loss of one parameter the density is carried from step to
step on a grid, and the two laws are compared cell by cell, which can only hide differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from onedraw.errors import WrongCall
from onedraw.mechanisms import NoisyGradient, Plan
from onedraw.models import ConvexLoss, Gaussian, Logistic
from onedraw.privacy import Promise

from .case import Array, Case, FiniteCase, NormalCase, eligible, no_formula
from .convex import HALF, linear_model
from .losses import centred, flips, of_classes, records_of, slope_of

MOST_CELLS = 3001
MOST_STEPS = 5000


@dataclass(frozen=True)
class LinearPathCase(NormalCase):
    """The last iterate for the linear loss: N(m_T, v_T)."""

    def moments(self, records: Any, factor: float) -> tuple[float, float]:
        numbers = self.numbers(factor)
        step, pull = numbers["step_size"], numbers["weight"] * float(np.sum(records))
        precision = float(self.plan.model.prior.precision(1)[0])
        mean, variance = 0.0, 0.0
        for _ in range(int(numbers["steps"])):
            mean = mean - step * (precision * mean + pull)
            variance = (1.0 - step * precision) ** 2 * variance + 2.0 * step
        return mean, variance


@dataclass(frozen=True)
class GridPathCase(FiniteCase):
    """The last iterate of a margin loss along one row: if the prior has one scale, t = θᵀx/‖x‖ moves by itself."""

    @property
    def spread(self) -> float:
        return 1.0 / math.sqrt(self.plan.model.prior.precision(1)[0])

    @property
    def cells(self) -> int:
        """A third of a step's noise wide, or less: sums of Gaussians over such cells are exact to all digits."""
        noise = math.sqrt(2.0 * self.plan.parameters["step_size"])
        return int(max(801, 2 * math.ceil(36.0 * self.spread / noise) + 1))

    def law(self, records: Any, factor: float = 1.0) -> Array:
        numbers, model = self.numbers(factor), self.plan.model
        step, weight = numbers["step_size"], numbers["weight"]
        pull = weight * self.plan.n * numbers["lipschitz"] * self.spread**2
        grid = np.linspace(-1.0, 1.0, self.cells) * min(9.0 * self.spread + pull, 12.0 * self.spread)
        rows, responses = records_of(model, records)
        margins, counts = np.unique(np.linalg.norm(rows, axis=1) * responses, return_counts=True)
        slope = slope_of(model).slope

        def moved(place: Array) -> Array:
            gradient = place / self.spread**2
            for margin, count in zip(margins, counts, strict=True):
                gradient = gradient + weight * count * margin * slope(margin * place)
            return place - step * gradient

        edges = np.append(grid, 2.0 * grid[-1] - grid[-2]) - (grid[1] - grid[0]) / 2
        law = np.diff(special.ndtr((edges - moved(np.zeros(1))) / math.sqrt(2.0 * step)))  # from the public start, 0
        kernel = np.exp(-((grid[None, :] - moved(grid)[:, None]) ** 2) / (4.0 * step))
        kernel /= kernel.sum(axis=1, keepdims=True)
        for _ in range(int(numbers["steps"]) - 1):
            law = law @ kernel
        return np.asarray(law / law.sum())


def path_case(plan: Plan, *, label: str = "") -> Case:
    """The case of any noisy-gradient plan along one row."""
    model = plan.model
    if isinstance(model, ConvexLoss) and model.name == "linear" and model.dimension == 1:
        reason = "the iterates of a linear loss are an AR(1) process, for which the bound on the last one is attained"
        return LinearPathCase(plan, flips(model, plan.n), reason, True, label)
    if not of_classes(model) or model.row_blocks > 1:
        raise no_formula("noisy gradients of margin losses and of the linear loss, not of", model)
    slope_of(model)
    steps = plan.parameters["steps"]
    if model.prior.radius is not None or not centred(model.prior, model.dimension):
        raise no_formula("noisy gradients under a prior around 0 with one scale on all of R^d, not this one of", model)
    case = GridPathCase(plan, flips(model, plan.n), HALF, False, label)
    if steps > MOST_STEPS or case.cells > MOST_CELLS:
        raise WrongCall(
            f"This path takes {steps:,.0f} steps of a size that needs {case.cells:,} cells, more than the audit follows "
            f"({MOST_STEPS:,} steps, {MOST_CELLS:,} cells). Attack its draws with onedraw.audit.blackbox_lower_bound."
        )
    return case


def linear_path_cases(budget: Promise) -> list[Case]:
    return [path_case(plan) for plan in eligible(NoisyGradient(time=1.0), linear_model(), budget, n=4)]


def logistic_path_cases(budget: Promise) -> list[Case]:
    model = Logistic(1, bounds=(-1, 1), intercept=False, prior=Gaussian(scale=1.0))
    return [path_case(plan) for plan in eligible(NoisyGradient(), model, budget, n=50)]
