"""Objective perturbation of one coefficient, written down again: θ is where g(θ) = Σ x_i·φ'(x_iθ, y_i) + Λθ equals −b.

g grows, so that θ ∈ [s, t] means −b ∈ [g(s), g(t)]: a cell of θ has the mass of an interval of the noise, exactly, and no density,
volume or minimum has to be found. What a pair of real tables gives away is then a sum over cells; cells end where a loss bends.
Sources: Chaudhuri, Monteleoni, Sarwate (JMLR 12, 2011), Algorithm 2; Kifer, Smith, Thakurta (COLT 2012), Algorithm 1.

The worst pair has two labels of one row: between the two bends of the huberised hinge both pull with all their strength, and at a
bend one of them changes the volume as well. Other records on the far side push that place as far out into the noise as wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from onedraw.baselines.objective_perturbation import ObjectivePerturbation
from onedraw.mechanisms import Plan
from onedraw.models import Gaussian, HuberisedHinge, Logistic
from onedraw.privacy import Promise

from .case import Array, Case, LogDensity, Pair, eligible, no_formula, pure
from .laws import Law, Noise, shifted
from .losses import centred, of_classes, records_of
from .regularised import slopes_of

CELLS, BESIDE = 3000, 80
"""Cells over all of the noise, and beside each bend."""


@dataclass(frozen=True)
class ObjectiveCase(Case):
    """A tilted minimum of one coefficient, with the noise that closes it."""

    noises: ClassVar[tuple[str, ...]] = ("tilt_noise", "closing_noise")

    @property
    def pure(self) -> bool:
        return bool(self.plan.parameters["pure"])

    def equations(self, records: Any, theta: Array) -> Array:
        """g(θ), growing in θ."""
        (rows, responses), slopes = records_of(self.plan.model, records), slopes_of(self.plan.model)
        unique, counts = np.unique(np.column_stack([rows[:, 0], responses]), axis=0, return_counts=True)
        total = self.plan.parameters["strong_convexity"] * theta
        for (x, y), count in zip(unique, counts, strict=True):
            total = total + count * x * slopes(x * theta, y)
        return np.asarray(total)

    def law(self, pair: Pair, factor: float = 1.0) -> Law:
        numbers = self.numbers(factor)
        edges = self._edges(pair, numbers["tilt_noise"])
        tilted = Law(*(self._masses(records, edges, numbers["tilt_noise"]) for records in (pair.first, pair.second)))
        if not numbers["closing_noise"]:
            return tilted
        apart = 2.0 * numbers["tolerance"] / numbers["strong_convexity"]
        return tilted.merged(500) * shifted(apart, Noise(numbers["closing_noise"], 1, self.pure))

    def _masses(self, records: Any, edges: Array, scale: float) -> Array:
        ends = self.equations(records, edges) / scale
        return log_masses(np.append(-np.inf, ends), np.append(ends, np.inf), pure=self.pure)

    def _edges(self, pair: Pair, scale: float) -> Array:
        """Ends of the cells: where either data set's equations have the values of an even grid of the noise, and close to bends."""
        far, m = (60.0 if self.pure else 12.0) * scale, self.plan.parameters["strong_convexity"]
        rough = np.linspace(-1.0, 1.0, 20_001) * (far + self.plan.n * self.plan.parameters["lipschitz"]) / m
        values, bends = np.linspace(-far, far, CELLS), bends_of(self.plan.model)
        even = [np.interp(values, self.equations(records, rough), rough) for records in (pair.first, pair.second)]
        thin = 1e-8 * rough[-1]  # in thinner cells rounding would be seen
        beside = np.geomspace(10.0 * thin, 1.0, BESIDE)
        near = [bend + side * beside for bend in bends for side in (-1.0, 1.0)]
        edges = np.unique(np.concatenate([bends, *even, *near]))
        return np.asarray(edges[np.append(True, np.diff(edges) > thin)])

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        return self.law(pair, factor).profile()

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        scale, step = self.numbers(factor)["tilt_noise"], 1e-5

        def density(draws: Array) -> Array:
            theta = np.asarray(draws).reshape(len(draws))
            g = self.equations(records, theta) / scale
            rise = self.equations(records, theta + step) - self.equations(records, theta - step)
            return np.asarray((-np.abs(g) if self.pure else -0.5 * g**2) + np.log(rise))

        return density


def log_masses(low: Array, high: Array, *, pure: bool) -> Array:
    """log P(low < Z < high), Z Laplace or normal of scale 1; far out too, where it is of one side."""
    mirrored = low + high < 0.0
    start, stop = np.where(mirrored, -high, low), np.where(mirrored, -low, high)

    def above(x: Array) -> Array:
        """log P(Z > x)."""
        if not pure:
            return np.asarray(special.log_ndtr(-x))
        with np.errstate(over="ignore"):
            return np.where(x >= 0.0, math.log(0.5) - np.maximum(x, 0.0), np.log1p(-0.5 * np.exp(np.minimum(x, 0.0))))

    first, rest = above(start), above(stop)
    with np.errstate(divide="ignore"):
        return np.asarray(first + np.log(-np.expm1(np.minimum(rest - first, -1e-300))))


def bends_of(model: Any) -> tuple[float, ...]:
    """θ at which a record of row ±1 bends."""
    if isinstance(model, HuberisedHinge):
        return tuple(side * place for side in (-1.0, 1.0) for place in (1.0 - model.width, 1.0))
    return (0.0,)


# ── the cases ────────────────────────────────────────────────────────────────────────────────────────────────────────────

BOTH = "both labels pull with all their strength where one of them bends: tilt and volume are used up in one place"
TWICE = "the theorem counts the volume of both records, which cannot both add to the log-ratio"
BENT = "a record is not steep where it bends, and Gaussian corners are far apart"
FALSE = "the published calibration is for a record more or less, or leaves out volume: a replaced record breaks it"

PLACES = (0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0)
"""Deviations of the noise at which a record bends."""


def objective_case(plan: Plan, *, label: str = "", attained: bool = False, reason: str = BENT) -> ObjectiveCase:
    """The case of any plan with one coefficient, rows up to length 1 and two classes."""
    model: Any = plan.model
    slopes_of(model)
    if model.dimension != 1 or not of_classes(model) or not centred(model.prior, 1) or model.features.reach != 1.0:
        raise no_formula(
            "tilted minima of one coefficient of two classes, rows within [−1, 1] and a prior around 0, not of", model
        )
    mechanism: Any = plan.mechanism
    return ObjectiveCase(plan, pairs(plan, PLACES), FALSE if mechanism.as_published else reason, attained, label)


def pairs(plan: Plan, places: Sequence[float]) -> tuple[Pair, ...]:
    """One label flipped, or its row moved to 0, where it counts for nothing: a record removed. Of the others as many are on the far
    side as push its bend out to a place, the rest at 0."""
    no, yes = (0, 1) if plan.model.classes is None else plan.model.classes[:2]
    noise, most = plan.parameters["tilt_noise"], plan.n - 1
    pushes = sorted({min(most, round(place * noise)) for place in places})

    def table(pushing: int, row: float, label: Any) -> Any:
        rows = np.concatenate([[row], np.ones(pushing), np.zeros(most - pushing)])
        return rows[:, None], [label, *([no] * most)]

    flipped = (Pair(f"one label flipped, {j} others against", table(j, 1.0, yes), table(j, 1.0, no)) for j in pushes)
    removed = (Pair(f"one record removed, {j} others against", table(j, 1.0, yes), table(j, 0.0, yes)) for j in pushes)
    return (*flipped, *removed)


_ONE: dict[str, Any] = {"features": 1, "intercept": False, "bounds": (-1, 1), "prior": Gaussian(scale=1.0)}

MODELS = (HuberisedHinge(**_ONE, width=0.5), Logistic(**_ONE))


def objective_cases(budget: Promise, *, n: int = 200) -> list[Case]:
    """Both papers, pure and, where the budget has a δ, with Gaussian noise."""
    found: list[Case] = []
    for model in MODELS:
        hinge = isinstance(model, HuberisedHinge)
        for version, kept in (("chaudhuri", pure(budget)), ("kifer", pure(budget)), ("kifer", budget)):
            for plan in eligible(ObjectivePerturbation(version), model, kept, n=n):
                attained = version == "kifer" and hinge and bool(plan.parameters["pure"])
                reason = BOTH if attained else TWICE if version == "chaudhuri" else BENT
                label = f"{version}, {'pure' if plan.parameters['pure'] else 'Gaussian'}"
                if label not in {case.label for case in found if case.plan.model is model}:
                    found.append(objective_case(plan, label=label, attained=attained, reason=reason))
    return found


def published_case(version: str, budget: Promise, *, n: int = 200, model: Any = MODELS[0]) -> ObjectiveCase:
    """The papers' own numbers, on the same pairs."""
    (plan,) = eligible(ObjectivePerturbation(version, as_published=True), model, budget, n=n)
    return objective_case(plan, label=f"{version}, as published")
