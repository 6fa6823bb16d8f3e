"""Perturbed modes, attacked (see `audit.cases.staged`): the worst pair are opposite rows, other records add a constant pull."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from onedraw import models
from onedraw.audit.cases import staged
from onedraw.audit.cases.case import Case, Pair
from onedraw.audit.cases.declared import ROWS, measures_response
from onedraw.audit.cases.laws import Law, Noise, Own, mode
from onedraw.audit.cases.losses import slope_of
from onedraw.audit.cases.staged import Moves
from onedraw.methods.catalog import eligible
from onedraw.methods.perturbed_mode import PerturbedMode
from onedraw.plans import Plan
from onedraw.privacy import Promise

from .replay import replay_fit

STAGES = ("mean", "moments", "mode", "information", "variability", "closing")

LONGEST = "opposite rows, both where slopes are steepest: their pull, and nothing else, is left of the promise"
HELD = "the theorem pays for the volume of all classes; the law is that of one direction, the others being held fast"
BENT = "volume costs κ everywhere in the theorem, in the law only where a record bends"
STEEP = "a record of this loss bends where it is steepest: volume and the longest pull meet in one place"


@dataclass(frozen=True)
class FitCase(staged.StagedCase):
    """A perturbed mode with its sums before and after."""

    stages: tuple[str, ...] = STAGES
    """Those looked at; the promise is always that of all."""

    noises: ClassVar[tuple[str, ...]] = tuple(f"{stage}_noise" for stage in STAGES)

    @property
    def pure(self) -> bool:
        return True

    def replayed(self) -> tuple[str, ...]:
        return tuple(replay_fit(self.plan))

    def others(self, pair: Pair, numbers: Mapping[str, float]) -> list[Law]:
        if "mode" not in self.stages:
            return []
        noise, loss = Noise(numbers["mode_noise"], self._mode_size, True), slope_of(self.plan.model)
        return [mode(loss, pair.first, pair.second, row=numbers["row_bound"], ridge=numbers["ridge"], noise=noise)]

    def moves(self, numbers: Mapping[str, float]) -> Moves:
        loss, model, robust = slope_of(self.plan.model), self.plan.model, self.plan.mechanism.robust
        mean = staged.opposite_ends(self.plan, responses=measures_response(model))
        size, row = self._mode_size, numbers["row_bound"]
        curvature = loss.most if robust else loss.information
        square = loss.steepest**2 if robust or loss.variability is None else loss.variability
        if model.row_blocks > 1:
            curvature = 1.0 - 1.0 / model.row_blocks  # the trace of diag p − ppᵀ
        found: Moves = {
            "mean": mean,
            "moments": staged.matrix(numbers["moment_radius"] ** 2, mean[1], pure=True),
            "information": staged.matrix(curvature * row**2, size, pure=True),
            "variability": staged.matrix(square * row**2, size, pure=True),
            "closing": (2.0 * numbers["tolerance"] / numbers["ridge"], size, None),
        }
        return {stage: found[stage] for stage in found if stage in self.stages}

    @property
    def _mode_size(self) -> int:
        """Numbers in the mode: a vector of coefficients, or K − 1 of them for K classes."""
        features, classes = self.plan.model.features, int(self.plan.model.row_blocks)
        return max(1, classes - 1) * (int(features.count) + bool(features.intercept))


def fit_case(plan: Plan, *, label: str = "", attained: bool = False, reason: str = BENT) -> FitCase:
    """The case of any plan in stages."""
    slope_of(plan.model)
    bent = Pair("opposite rows, one bends at 10 deviations of the noise", Own(1, 10.0), Own(-1))
    return FitCase(plan, (Pair("opposite rows, both steep", Own(1), Own(-1)), bent), reason, attained, label)


def strong_ridge(plan: Plan, times: float = 1e4) -> Plan:
    """The same plan with so strong a ridge that volume costs nothing, and a gradient as much larger: a mode found as precisely."""
    larger = {name: times * plan.parameters[name] for name in ("ridge", "tolerance")}
    stronger: Plan = plan.mechanism.plan(plan.request, {**plan.parameters, **larger})
    return stronger


def fit_cases(model: Any, budget: Promise, *, label: str = "") -> list[Case]:
    """The fit with all its stages."""
    mechanism, steep = PerturbedMode(measured=True, intervals=True), bool(slope_of(model).kinks)
    reason = STEEP if steep else BENT if model.row_blocks == 1 else HELD
    return [
        fit_case(plan, label=f"{label}all stages", attained=steep, reason=reason)
        for plan in eligible(mechanism, model, budget, n=10_000)
    ]


def bare_modes(model: Any, budget: Promise, *, label: str = "") -> list[Case]:
    """The mode alone, with a ridge that makes volume free: the longest pull is all of its promise."""
    plans = eligible(PerturbedMode(measured=False, intervals=False), model, budget, n=10_000)
    strong = [strong_ridge(plan) for plan in plans]
    return [fit_case(plan, label=f"{label}mode, strong ridge", attained=True, reason=LONGEST) for plan in strong]


MODELS: dict[str, tuple[tuple[str, Any], ...]] = {
    "logistic": (("exp-linear loss, ", models.Logistic(**ROWS, loss="exp-linear")), ("", models.Logistic(**ROWS))),
    "hinge": (("", models.HuberisedHinge(**ROWS, width=0.5)),),
    "log-cosh": (("", models.LogCoshRegression(**ROWS, response_bound=2.0)),),
    "quantile": (("", models.Quantile(**ROWS, level=0.8, response_bound=2.0)),),
    "counts": (("", models.CountRegression(**ROWS, largest=5)),),
    "classes": (("3 classes, ", models.Softmax(**ROWS, classes=tuple("abc"))),),
}
"""Model → (label, model) of its fits."""


def fits_of(name: str, budget: Promise) -> list[Case]:
    labelled = MODELS[name]
    bare = bare_modes(labelled[0][1], budget, label=labelled[0][0]) if name == "logistic" else []
    return [*bare, *(case for label, model in labelled for case in fit_cases(model, budget, label=label))]


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {name: partial(fits_of, name) for name in MODELS}
