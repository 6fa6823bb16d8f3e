"""Averaged steps, attacked (see `audit.cases.staged`): every part on its own worst pair.

Two opposite vectors of norm B differ by 2B, two orthogonal rows of norm R by √2·R² in their squares: each part attains
its share of the promise, so all of it is attained. Where scores are added up by person, two orthogonal sums do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from onedraw import models
from onedraw.audit.cases import staged
from onedraw.audit.cases.case import Case
from onedraw.audit.cases.declared import ROWS
from onedraw.audit.cases.staged import EACH_STAGE, Moves
from onedraw.methods.catalog import cases_of
from onedraw.methods.fit import AveragedSteps
from onedraw.plans import Plan
from onedraw.privacy import Promise

from .replay import COUNTS, EARLY, FULL, replay_steps

ATTAINED = "every part is moved as far as its table says: opposite ends of the box, opposite scores, orthogonal rows"


@dataclass(frozen=True)
class StepsCase(staged.StagedCase):
    """Averaged steps with the moments before and what standard errors are made of after them."""

    noises: ClassVar[tuple[str, ...]] = tuple(
        f"{part}_noise"
        for part in (
            "level",
            "mean",
            "moments",
            "design",
            "tail",
            "early",
            "step",
            "count",
            "information",
            "covariance",
        )
    )

    @property
    def pure(self) -> bool:
        return False

    @property
    def planned(self) -> dict[str, float]:
        return {**self.plan.mechanism.problem(self.plan).numbers, **dict(self.ran)}

    def replayed(self) -> tuple[str, ...]:
        return tuple(replay_steps(self.plan))

    def moves(self, numbers: Mapping[str, float]) -> Moves:
        model = self.plan.model
        classes = len(model.classes) if isinstance(model, models.Softmax) else 0
        mean = staged.opposite_ends(self.plan, responses=not classes)
        size = (int(model.features.count) + bool(model.features.intercept)) * max(1, classes - 1)

        def squares(radius: str, rows: int) -> tuple[float, int, int | None]:
            return staged.matrix(numbers[radius] ** 2, rows, pure=False)

        return {
            "level": (math.sqrt(2.0), classes, None) if classes else (2.0, 1, None),
            "mean": mean,
            "moments": squares("moment_radius", mean[1]),
            "design": squares("design_radius", mean[1]),
            # counts and steps have noises of their own: together they move as far as √times one of them
            "tail": (math.sqrt(COUNTS), 1, None),
            "early": (math.sqrt(EARLY) * 2.0 * numbers["early_bound"], size, None),
            "step": (math.sqrt(FULL) * 2.0 * numbers["step_bound"], size, None),
            "count": (1.0, 1, None),
            "information": squares("information_radius", size),
            "covariance": squares("covariance_radius", size),
        }


def steps_case(plan: Plan, *, label: str = "") -> StepsCase:
    """Return the case of any plan of averaged steps."""
    return StepsCase(plan, EACH_STAGE, ATTAINED, True, label)


MODELS: dict[str, Any] = {
    "logistic": models.Logistic(**ROWS),
    "least-squares": models.OrdinaryLeastSquares(**ROWS, response_bound=2.0),
    "quantile": models.Quantile(**ROWS, level=0.8, response_bound=2.0),
    "counts": models.CountRegression(**ROWS, largest=5),
    "hinge": models.HuberisedHinge(**ROWS, width=0.5),
    "classes": models.Softmax(**ROWS, classes=("a", "b", "c")),
}


BY_PERSON = "least-squares"
"""The model that is also attacked with scores added up by person: sums of vectors are alike in all."""


def steps_of(name: str, budget: Promise) -> list[Case]:
    """Return the cases of a model under a budget that has a δ or is Gaussian."""
    found = [(AveragedSteps(), "")]
    if name == BY_PERSON:
        found += [(AveragedSteps(persons=True), "by person"), (AveragedSteps(effects=(0,)), "an effect of interest")]
        found += [(AveragedSteps(robust=True), "a robust line"), (AveragedSteps(prior=True), "a declared prior")]
    return cases_of(steps_case, [(label, mechanism, MODELS[name]) for mechanism, label in found], budget, n=10_000)


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {name: partial(steps_of, name) for name in MODELS}
