"""Clipped gradients, attacked (see `audit.cases.staged`): every part on its own worst pair.

Two opposite gradients of the largest length differ by twice it. Derivatives in the temperature that jump at different temperatures
differ by √8 times their bound. So each part attains its share of the promise, and all of it is attained.
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
from onedraw.audit.cases.staged import EACH_STAGE, Moves, coded_columns
from onedraw.methods.catalog import cases_of
from onedraw.methods.clipped_gradients import ClippedGradients
from onedraw.plans import Plan
from onedraw.privacy import Promise

from .replay import replay_clipped

ATTAINED = (
    "every part is moved as far as its table says: opposite ends, opposite gradients, derivatives that jump apart"
)

LEVELS = {"Logistic": 1.0, "Softmax": math.sqrt(2.0), "CountRegression": 1.0, "OrdinaryLeastSquares": 2.0}
"""How far replacing a record moves the sum of responses, by model."""


@dataclass(frozen=True)
class ClippedCase(staged.StagedCase):
    """Clipped gradients with the level and scales before and the temperature after them."""

    noises: ClassVar[tuple[str, ...]] = tuple(
        f"{part}_noise" for part in ("level", "square", "mean", "spread", "slope", "intercept", "center", "temperature")
    )

    @property
    def pure(self) -> bool:
        return False

    def replayed(self) -> tuple[str, ...]:
        return tuple(replay_clipped(self.plan))

    def moves(self, numbers: Mapping[str, float]) -> Moves:
        sizes, mean = self.plan.mechanism.stage_sizes(self.plan), staged.opposite_ends(self.plan)
        free = int((~coded_columns(self.plan)).sum())
        spread = 2.0 if self.plan.model.features.data_norm is not None else math.sqrt(free)
        level, several = LEVELS[type(self.plan.model).__name__], math.sqrt(numbers["steps"])
        return {
            "level": (level, sizes["level"], None),
            "square": (1.0, 1, None),
            "mean": mean,
            "spread": (spread, free, None),
            # steps have noises of their own: together they move as far as √times one of them
            "slope": (several * 2.0 * numbers["slope_bound"], sizes["slopes"], None),
            "intercept": (several * 2.0 * numbers["intercept_bound"], sizes["intercepts"], None),
            "center": (2.0 * numbers.get("center_bound", 0.0), 1, None),
            "temperature": (math.sqrt(8.0) * numbers["temperature_bound"], sizes["temperature"], None),
        }


def clipped_case(plan: Plan, *, label: str = "") -> ClippedCase:
    """Return the case of any plan of clipped gradients."""
    return ClippedCase(plan, EACH_STAGE, ATTAINED, True, label)


ROWS: dict[str, Any] = {"features": 4, "bounds": (-1, 1), "scaled": True, "prior": models.Gaussian(scale=1.0)}

MODELS: dict[str, Any] = {
    "logistic": models.Logistic(**ROWS),
    "classes": models.Softmax(**ROWS, classes=("a", "b", "c")),
    "counts": models.CountRegression(**ROWS, largest=5),
    "least-squares": models.OrdinaryLeastSquares(**ROWS, response_bound=2.0),
}


def clipped_of(name: str, budget: Promise) -> list[Case]:
    """Return the cases of a model under a budget that has a δ or is Gaussian: numbers alone, and with a category."""
    asked = [
        ("", ClippedGradients(), MODELS[name]),
        ("a category", ClippedGradients(categories=((1, 4),)), MODELS[name]),
    ]
    return cases_of(clipped_case, asked[: 1 + (name == "classes")], budget, n=10_000)


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {name: partial(clipped_of, name) for name in MODELS}
