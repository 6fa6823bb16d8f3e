"""Draws in measured coordinates, attacked: see `staged`.

For a draw by a convex loss the worst pair are two rows of norm r in opposite directions, both where their slopes are
steepest, with a pull of the other records that keeps them there: then gradients differ by 2L·r, and the iterates of
noisy gradients are AR(1) processes of one variance. `replay_measured` computes a second time what was handed to the
noise and what the inner sampler was given: rows in published coordinates with their weights, and the plan's numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from onedraw.audit.cases.case import Case, words
from onedraw.audit.cases.declared import ROWS, measures_response
from onedraw.audit.cases.losses import slope_of
from onedraw.audit.cases.staged import EACH_STAGE, Moves, StagedCase, matrix, opposite_ends
from onedraw.methods.catalog import cases_of
from onedraw.methods.gibbs import NoisyGradient
from onedraw.methods.measured import Measured
from onedraw.models import LogCoshRegression, Logistic
from onedraw.plans import Plan
from onedraw.privacy import Promise

from .replay import replay_measured

AR1 = "an AR(1) process's last iterate shows what its path may, where records outweigh the prior; sums are shifted"


class MeasuredCase(StagedCase):
    """Sums that say where the records are, then a draw in these coordinates."""

    noises = ("mean_noise", "moments_noise")

    @property
    def mechanism(self) -> str:
        return f"measured {words(type(self.plan.mechanism.of).__name__)}"

    @property
    def pure(self) -> bool:
        return False

    def numbers(self, factor: float = 1.0) -> dict[str, float]:
        return {**super().numbers(factor), "draw_noise": 1.0}

    def replayed(self) -> tuple[str, ...]:
        return tuple(replay_measured(self.plan))

    def moves(self, numbers: Mapping[str, float]) -> Moves:
        mean = opposite_ends(self.plan, responses=measures_response(self.plan.model))
        moments = matrix(numbers["moment_radius"] ** 2, mean[1], pure=False)
        return {"mean": mean, "moments": moments, "draw": (self._shift(numbers), 1, None)}

    def _shift(self, numbers: Mapping[str, float]) -> float:
        """The distance of the two draws in their common deviation: opposite rows, both where slopes are steepest."""
        precision = numbers["prior_deviation"] ** -2.0
        pull = numbers["weight"] * 2.0 * slope_of(self.plan.model).steepest * numbers["row_bound"]
        step, steps = numbers["step_size"], int(numbers["steps"])
        kept = 1.0 - step * precision
        distance = step * pull * (1.0 - kept**steps) / (1.0 - kept)
        return float(distance) / math.sqrt(2.0 * step * (1.0 - kept ** (2 * steps)) / (1.0 - kept**2))


def measured_case(plan: Plan, *, label: str = "") -> MeasuredCase:
    """The case of any plan in measured coordinates."""
    slope_of(plan.model)
    return MeasuredCase(plan, EACH_STAGE, AR1, True, label)


DRAWS: dict[str, tuple[tuple[Any, tuple[Any, ...], str], ...]] = {
    "logistic": ((Logistic(**ROWS, loss="exp-linear"), (NoisyGradient(),), "exp-linear loss"),),
    "log-cosh": ((LogCoshRegression(**ROWS, response_bound=2.0), (NoisyGradient(),), ""),),
}
"""Model → models, what is drawn from in their measured coordinates, and labels."""


def measured_cases(name: str, budget: Promise) -> list[Case]:
    asked = [(label, Measured(of), model) for model, inner, label in DRAWS[name] for of in inner]
    return cases_of(measured_case, asked, budget, n=3000)


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {name: partial(measured_cases, name) for name in DRAWS}
