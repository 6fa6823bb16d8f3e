"""Fits in stages, attacked (see `staged`): the mode's worst pair are opposite rows, other records add a constant pull."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from onedraw.mechanisms import PerturbedMode, Plan
from onedraw.models import CountRegression, Gaussian, HuberisedHinge, LogCoshRegression, Logistic, Quantile, Softmax
from onedraw.privacy import Promise

from .case import Case, Pair, eligible
from .fit_replay import fit_of, measures_response, replay_fit
from .laws import Law, Noise, Own, mode
from .losses import slope_of
from .staged import Moves, StagedCase, matrix, opposite_ends, with_either_noise

STAGES = ("mean", "moments", "mode", "information", "variability", "closing")

LONGEST = "opposite rows, both where slopes are steepest: the longest corner, and nothing else, is left of the promise"
HELD = "the theorem pays for the volume of all classes; the law is that of one direction, the others being held fast"
BENT = "volume costs κ at every corner in the theorem, in the law only where a record bends"
STEEP = "a record of this loss bends where it is steepest: volume and longest corner meet in one place"


@dataclass(frozen=True)
class FitCase(StagedCase):
    """A perturbed mode with its sums before and after."""

    stages: tuple[str, ...] = STAGES
    """Those looked at; the promise is always that of all."""

    noises: ClassVar[tuple[str, ...]] = tuple(f"{stage}_noise" for stage in STAGES)

    def replayed(self) -> tuple[str, ...]:
        return tuple(replay_fit(self.plan))

    def others(self, pair: Pair, numbers: Mapping[str, float]) -> list[Law]:
        if "mode" not in self.stages:
            return []
        noise, loss = Noise(numbers["mode_noise"], self._mode_size, self.pure), slope_of(self.plan.model)
        return [mode(loss, pair.first, pair.second, row=numbers["row_bound"], ridge=numbers["ridge"], noise=noise)]

    def moves(self, numbers: Mapping[str, float]) -> Moves:
        loss, model, robust = slope_of(self.plan.model), self.plan.model, fit_of(self.plan).robust
        mean = opposite_ends(self.plan, responses=measures_response(model))
        size, row = self._mode_size, numbers["row_bound"]
        curvature = loss.most if robust else loss.information
        square = loss.steepest**2 if robust or loss.variability is None else loss.variability
        if self.pure and model.row_blocks > 1:
            curvature = 1.0 - 1.0 / model.row_blocks  # the trace of diag p − ppᵀ
        found: Moves = {
            "mean": mean,
            "moments": matrix(numbers["moment_radius"] ** 2, mean[1], pure=self.pure),
            "information": matrix(curvature * row**2, size, pure=self.pure),
            "variability": matrix(square * row**2, size, pure=self.pure),
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
    # deviations of the noise from the middle
    places = (10.0,) if plan.parameters["pure"] else (1.0, 2.0, 3.0, 4.0, 5.0)
    bent = [Pair(f"opposite rows, one bends at {place:g} deviations", Own(1, place), Own(-1)) for place in places]
    return FitCase(plan, (Pair("opposite rows, both steep", Own(1), Own(-1)), *bent), reason, attained, label)


def strong_ridge(plan: Plan, times: float = 1e4) -> Plan:
    """The same plan with so strong a ridge that volume costs nothing."""
    return plan.mechanism.plan(plan.request, {**plan.parameters, "ridge": times * plan.parameters["ridge"]})


def fit_cases(model: Any, budget: Promise, *, label: str = "") -> list[Case]:
    """The fit with all its stages, with Gaussian and with pure noise."""
    found: list[Case] = []
    for plan in with_either_noise(partial(PerturbedMode, measured=True, intervals=True), model, budget, n=10_000):
        pure = bool(plan.parameters["pure"])
        steep = pure and bool(slope_of(model).kinks)
        reason = STEEP if steep else BENT if model.row_blocks == 1 else HELD
        found.append(fit_case(plan, label=f"{label}all stages{', pure' * pure}", attained=steep, reason=reason))
    return found


def bare_modes(model: Any, budget: Promise, *, label: str = "") -> list[Case]:
    """The mode alone, with a ridge that makes volume free: the longest corner is all of its promise."""
    plans = eligible(PerturbedMode(measured=False, intervals=False, pure=False), model, budget, n=10_000)
    strong = [strong_ridge(plan) for plan in plans if not plan.parameters["pure"]]
    return [fit_case(plan, label=f"{label}mode, strong ridge", attained=True, reason=LONGEST) for plan in strong]


_ROWS: dict[str, Any] = {"features": 3, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}

MODELS: dict[str, tuple[tuple[str, Any], ...]] = {
    "logistic": (("exp-linear loss, ", Logistic(**_ROWS, loss="exp-linear")), ("", Logistic(**_ROWS))),
    "hinge": (("", HuberisedHinge(**_ROWS, width=0.5)),),
    "log-cosh": (("", LogCoshRegression(**_ROWS, response_bound=2.0)),),
    "quantile": (("", Quantile(**_ROWS, level=0.8, response_bound=2.0)),),
    "counts": (("", CountRegression(**_ROWS, largest=5)),),
    "classes": (("3 classes, ", Softmax(**_ROWS, classes=tuple("abc"))),),
}
"""Model → (label, model) of its fits."""


def fits_of(name: str, budget: Promise) -> list[Case]:
    labelled = MODELS[name]
    bare = bare_modes(labelled[0][1], budget, label=labelled[0][0]) if name == "logistic" else []
    return [*bare, *(case for label, model in labelled for case in fit_cases(model, budget, label=label))]
