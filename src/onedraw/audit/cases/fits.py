"""Fits in stages, attacked: each stage on the pair that is worst for it, and all of them together.

The promise covers stages that are chosen in view of those before, whatever pair each of them meets; so the audit gives every
stage its own worst pair: rows at opposite ends of the box for the mean, orthogonal ones for the moments, the information and
the variability, opposite ones for the mode, whose other records add a constant pull. No single pair of tables does all this
at once. What is shown is how much of the *theorem* is attained: above the promise, theorem or numbers are wrong.

``running`` gives the same promise to a program with other numbers: the planted faults.
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from onedraw.mechanisms import PerturbedMode, Plan
from onedraw.models import CountRegression, Gaussian, HuberisedHinge, LogCoshRegression, Logistic, Quantile, Softmax
from onedraw.privacy import Promise

from .case import Case, Pair
from .convex import eligible
from .fit_laws import Law, Noise, Own, Slope, fit_of, mode, moved, shifted, slope_of
from .fit_replay import replay_fit

NOISES = ("mean_noise", "moments_noise", "mode_noise", "information_noise", "variability_noise", "closing_noise")
STAGES = ("mean", "moments", "mode", "information", "variability", "closing")

LONGEST = "rows of opposite direction, both far out where slopes are steepest: the longest corner, and nothing else, is left of the promise"
HELD = "the theorem pays for the volume of all classes; the law is that of one direction, the others being held fast"
BENT = "volume costs κ at every corner in the theorem, in the law only where a record bends"
STEEP = "a record of this loss bends where it is steepest: volume and longest corner meet in one place"


@dataclass(frozen=True)
class FitCase(Case):
    """A plan in stages; ``ran`` are the numbers of the program, those of the plan unless a fault is planted."""

    ran: tuple[tuple[str, float], ...] = ()
    stages: tuple[str, ...] = STAGES
    """Those looked at; the promise is always that of all."""

    weights: ClassVar[tuple[str, ...]] = NOISES
    without_draws: ClassVar[str] = "its program is replayed instead, stage by stage, from --budget quick on"

    @property
    def delta(self) -> float:
        """The δ that was asked for, if one was: the corners' promise is about all of them."""
        asked = getattr(self.plan.request.budget, "stated_delta", None)
        return 0.0 if self.promise.pure_epsilon < math.inf else 1e-5 if asked is None else float(asked)

    @property
    def numbers(self) -> dict[str, float]:
        return {**self.plan.parameters, **dict(self.ran)}

    @property
    def loss(self) -> Slope:
        return slope_of(self.plan.model)

    def running(self, **times: float) -> FitCase:
        """The same promise of a program whose numbers are these multiples of the plan's."""
        return replace(self, ran=tuple((name, factor * self.numbers[name]) for name, factor in times.items()))

    def only(self, *stages: str) -> FitCase:
        return replace(self, stages=stages)

    def faulty(self, factor: float) -> Plan:
        """Records ``factor`` times as heavy are noises so many times as small."""
        numbers = self.plan.parameters
        return replace(
            self.plan, numbers=tuple({**numbers, **{name: numbers[name] / factor for name in NOISES}}.items())
        )

    def replayed(self) -> tuple[str, ...]:
        return tuple(replay_fit(self.plan))

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        return self.law(pair, factor).profile()

    def law(self, pair: Pair, factor: float = 1.0) -> Law:
        """All stages that are looked at, with noise of their own."""
        laws = self._sums(factor) + ([self._mode(pair, factor)] if "mode" in self.stages else [])
        return functools.reduce(operator.mul, laws)

    def _mode(self, pair: Pair, factor: float) -> Law:
        numbers = self.numbers
        noise = Noise(numbers["mode_noise"] / factor, self._mode_size, bool(numbers["pure"]))
        return mode(self.loss, pair.first, pair.second, row=numbers["row_bound"], ridge=numbers["ridge"], noise=noise)

    def _sums(self, factor: float) -> list[Law]:
        """The other stages; Gaussian ones are one Gaussian together."""
        found = []
        for name, (distance, entries, size) in self._distances().items():
            scale = self.numbers[f"{name}_noise"] / factor
            if scale and name in self.stages:
                found.append((distance / scale, entries, size))
        if self._pure:
            return [moved(*one) for one in found]
        total = math.sqrt(sum(ratio**2 for ratio, *_ in found))
        return [shifted(total, Noise(1.0, 1, False))] if total else []

    @property
    def _pure(self) -> bool:
        return bool(self.plan.parameters["pure"])

    def _distances(self) -> dict[str, tuple[float, int, int | None]]:
        """How far the worst pair moves each sum, how many numbers it has, and of a matrix how many rows."""
        numbers, loss = self.numbers, self.loss
        columns, size, row = self._columns, self._mode_size, numbers["row_bound"]
        robust = fit_of(self.plan).robust
        curvature = loss.most if robust else loss.information
        square = loss.steepest**2 if robust or loss.variability is None else loss.variability
        if self._pure and self.plan.model.row_blocks > 1:
            curvature = 1.0 - 1.0 / self.plan.model.row_blocks  # the trace of diag p − ppᵀ

        def matrix(largest: float, rows: int) -> tuple[float, int, int]:
            return apart(rows, pure=self._pure) * largest, rows * (rows + 1) // 2, rows

        return {
            "mean": (self._box, columns, None),
            "moments": matrix(numbers["moment_radius"] ** 2, columns),
            "information": matrix(curvature * row**2, size),
            "variability": matrix(square * row**2, size),
            "closing": (2.0 * numbers["tolerance"] / numbers["ridge"], size, None),
        }

    @property
    def _measures_response(self) -> bool:
        return isinstance(self.plan.model, LogCoshRegression | Quantile)

    @property
    def _columns(self) -> int:
        return int(self.plan.model.features.count) + self._measures_response

    @property
    def _mode_size(self) -> int:
        """Numbers in the mode: a vector of coefficients, or K − 1 of them for K classes."""
        features, classes = self.plan.model.features, int(self.plan.model.row_blocks)
        return max(1, classes - 1) * (int(features.count) + bool(features.intercept))

    @property
    def _box(self) -> float:
        """The longest distance of two rows: 2 for each number, √2 for each category, 2 for a ball."""
        features, categories = self.plan.model.features, fit_of(self.plan).categories
        coded = sum(stop - start for start, stop in categories)
        squared = 4.0 if features.data_norm is not None else 4.0 * (features.count - coded) + 2.0 * len(categories)
        return math.sqrt(squared + 4.0 * self._measures_response)


def apart(dimension: int, *, pure: bool) -> float:
    """‖xxᵀ − yyᵀ‖ for unit vectors: √2 if they are orthogonal, which takes two dimensions; under a pure promise the trace of what is
    added and taken away counts, which is 1."""
    return math.sqrt(2.0) if dimension > 1 and not pure else 1.0


# ── pairs and cases ────────────────────────────────────────────────────────────────────────────────────────


def pairs_of(plan: Plan) -> tuple[Pair, ...]:
    """Two opposite rows; the first record bends nowhere, or so many deviations of the noise from the middle."""
    steep = Pair("opposite rows, both steep", Own(1), Own(-1))
    places = (10.0,) if plan.parameters["pure"] else (1.0, 2.0, 3.0, 4.0, 5.0)
    return (
        steep,
        *(Pair(f"opposite rows, one bends at {place:g} deviations", Own(1, place), Own(-1)) for place in places),
    )


def fit_case(plan: Plan, *, label: str = "", attained: bool = False, reason: str = BENT) -> FitCase:
    """The case of any plan in stages."""
    slope_of(plan.model)
    return FitCase(plan, pairs_of(plan), reason, attained, label)


def strong_ridge(plan: Plan, times: float = 1e4) -> Plan:
    """The same plan with so strong a ridge that volume costs nothing."""
    return plan.mechanism.plan(plan.request, {**plan.parameters, "ridge": times * plan.parameters["ridge"]})


def fit_cases(model: Any, budget: Promise, *, n: int = 10_000, label: str = "") -> list[Case]:
    """The fit with all its stages, with Gaussian and with pure noise."""
    found: list[Case] = []
    for pure in (False, True):
        plan = eligible(PerturbedMode(measured=True, intervals=True, pure=pure), model, budget, n=n)
        if plan is None or bool(plan.parameters["pure"]) is not pure:
            continue
        steep = pure and bends_steeply(model)
        words = f"{label}all stages" + (", pure" if pure else "")
        reason = STEEP if steep else BENT if model.row_blocks == 1 else HELD
        found.append(fit_case(plan, label=words, attained=steep, reason=reason))
    return found


def bare_modes(model: Any, budget: Promise, *, n: int = 10_000, label: str = "") -> list[Case]:
    """The mode alone, with a ridge that makes volume free: the longest corner is all of its promise."""
    plan = eligible(PerturbedMode(measured=False, intervals=False, pure=False), model, budget, n=n)
    if plan is None or plan.parameters["pure"]:
        return []
    return [fit_case(strong_ridge(plan), label=f"{label}mode, strong ridge", attained=True, reason=LONGEST)]


def bends_steeply(model: Any) -> bool:
    """Whether the largest curvature is where the slope is steepest."""
    return isinstance(model, HuberisedHinge | Quantile) or getattr(model, "loss", "") == "exp-linear"


def _rows(features: int = 3) -> dict[str, Any]:
    return {"features": features, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}


def logistic_fits(budget: Promise) -> list[Case]:
    model, label = Logistic(**_rows(), loss="exp-linear"), "exp-linear loss, "
    return [
        *bare_modes(model, budget, label=label), *fit_cases(model, budget, label=label), *fit_cases(Logistic(**_rows()), budget),
    ]  # fmt: skip


def hinge_fits(budget: Promise) -> list[Case]:
    return fit_cases(HuberisedHinge(**_rows(), width=0.5), budget)


def log_cosh_fits(budget: Promise) -> list[Case]:
    return fit_cases(LogCoshRegression(**_rows(), response_bound=2.0), budget)


def quantile_fits(budget: Promise) -> list[Case]:
    return fit_cases(Quantile(**_rows(), level=0.8, response_bound=2.0), budget)


def count_fits(budget: Promise) -> list[Case]:
    return fit_cases(CountRegression(**_rows(), largest=5), budget)


def class_fits(budget: Promise) -> list[Case]:
    """Three classes, by softmax."""
    return fit_cases(Softmax(**_rows(), classes=tuple("abc")), budget, label="3 classes, ")
