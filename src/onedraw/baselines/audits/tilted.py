"""Objective perturbation along one row, written down again: θ is where g(θ) = Σ x_i·φ'(x_iᵀθ, y_i) + Λθ equals −b.

Where all rows are multiples of one, x̂ its direction and t = x̂ᵀθ, the records speak of t alone, by g(t) = Σ
s_i·φ'(s_i·t, y_i) + Λt, which grows. So t ∈ [a, b] means that −x̂ᵀb lies in [g(a), g(b)]: a cell of t has the mass of
an interval of the noise, exactly, and no density, volume or minimum has to be found. What two real tables give away is
a sum over cells; cells end where a loss bends. Across x̂ the tables agree. Gaussian noise there says nothing; of
density ∝ e^{−‖b‖/s} it says how steep the noise is along x̂, steepest where it is 0: that x̂ᵀb is then a Laplace number
is counted with the chance of being so near. Sources: Chaudhuri, Monteleoni, Sarwate (JMLR 12, 2011), Algorithm 2;
Kifer, Smith, Thakurta (COLT 2012), Algorithm 1.

The worst pair has two labels of one row: between the two bends of the huberised hinge both pull with all their
strength, and at a bend one of them changes the volume as well. Other records on the far side push that place as far out
into the noise as wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from onedraw import models
from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, LogDensity, Pair, no_formula, pure
from onedraw.audit.cases.laws import Law, LawCase, Noise, shifted
from onedraw.audit.cases.losses import along, centred, encoded_rows, flips, longest_row, of_classes, slope_of
from onedraw.baselines import ObjectivePerturbation
from onedraw.methods.catalog import eligible
from onedraw.models import Gaussian, HuberisedHinge, Logistic
from onedraw.plans import Plan
from onedraw.privacy import Promise

from .regularised import slopes_of

CELLS, BESIDE = 3000, 80
"""Cells over all of the noise, and beside each bend."""


class ObjectiveCase(LawCase):
    """A tilted minimum of one coefficient, with the noise that closes it."""

    noises = ("tilt_noise", "closing_noise")

    @cached_property
    def axis(self) -> Array:
        """x̂."""
        row = encoded_rows(self.plan.model, longest_row(self.plan.model)[None, :])[0]
        return np.asarray(row / np.linalg.norm(row))

    def equations(self, records: Any, t: Array) -> Array:
        """g(t), growing in t."""
        slopes, found = slopes_of(self.plan.model), along(self.plan.model, records, self.axis)
        pull = np.sum([count * s * slopes(s * t, y) for s, y, count in found], axis=0)
        return np.asarray(pull + self.plan.parameters["strong_convexity"] * t)

    def law(self, pair: Pair, factor: float = 1.0) -> Law:
        numbers = self.numbers(factor)
        edges = self._edges(pair, numbers["tilt_noise"])
        ends = [self.equations(records, edges) / numbers["tilt_noise"] for records in pair]
        tilted = Law(*(log_masses(np.append(-np.inf, one), np.append(one, np.inf), pure=self.pure) for one in ends))
        if self.pure and len(self.axis) > 1:
            seen = log_chance_near(len(self.axis))
            tilted = Law(*(np.append(seen + one, np.log1p(-np.exp(seen))) for one in (tilted.first, tilted.second)))
        if not numbers["closing_noise"]:
            return tilted
        apart = 2.0 * numbers["tolerance"] / numbers["strong_convexity"]
        return tilted.merged(500) * shifted(apart, Noise(numbers["closing_noise"], len(self.axis), self.pure))

    def _edges(self, pair: Pair, scale: float) -> Array:
        """Ends of the cells: where either data set's equations have the values of an even grid of the noise, and close
        to bends."""
        far, m = (60.0 if self.pure else 12.0) * scale, self.plan.parameters["strong_convexity"]
        rough = np.linspace(-1.0, 1.0, 20_001) * (far + self.plan.n * self.plan.parameters["lipschitz"]) / m
        values = np.linspace(-far, far, CELLS)
        bends = [bend for bend in bends_of(self.plan.model) if abs(bend) < rough[-1]]
        even = [np.interp(values, self.equations(records, rough), rough) for records in pair]
        thin = 1e-8 * rough[-1]  # in thinner cells rounding would be seen
        beside = np.geomspace(10.0 * thin, 1.0, BESIDE)
        near = [bend + side * beside for bend in bends for side in (-1.0, 1.0)]
        edges = np.unique(np.concatenate([bends, *even, *near]))
        return np.asarray(edges[np.append(True, np.diff(edges) > thin)])

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        scale, step, m = self.numbers(factor)["tilt_noise"], 1e-5, self.plan.parameters["strong_convexity"]

        def density(draws: Array) -> Array:
            theta = np.asarray(draws).reshape(len(draws), -1)
            t = theta @ self.axis
            across = m * np.linalg.norm(theta - np.outer(t, self.axis), axis=1)
            length = np.hypot(self.equations(records, t), across) / scale
            rise = self.equations(records, t + step) - self.equations(records, t - step)
            return np.asarray((-length if self.pure else -0.5 * length**2) + np.log(rise))

        return density


NEAR = 0.01
"""Scales of the noise: so near to x̂ it is a Laplace number along it."""


def log_chance_near(size: int) -> float:
    """log P(the part of b across x̂ is shorter than `NEAR`): |S^{p−2}|·∫₀ 2ρ^{p−1}K₁(ρ)dρ over |S^{p−1}|Γ(p), ρK₁(ρ) ≥
    0.99 there."""
    spheres = [math.log(2.0) + 0.5 * k * math.log(math.pi) - math.lgamma(0.5 * k) for k in (size - 1, size)]
    inside = math.log(1.98 / (size - 1)) + (size - 1) * math.log(NEAR)
    return spheres[0] - spheres[1] + inside - math.lgamma(size)


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


def bends_of(model: Any) -> list[float]:
    """t at which a record of the longest row bends, by either of the pair's labels."""
    length = float(np.linalg.norm(encoded_rows(model, longest_row(model)[None, :])[0]))
    if of_classes(model):
        places = [side * kink for kink in slope_of(model).kinks or (0.0,) for side in (-1.0, 1.0)]
    else:
        reach = getattr(model, "threshold", 0.0)
        places = [float(y) + side * reach for y in two_labels(model) for side in (-1.0, 1.0)]
    return [place / length for place in places]


def two_labels(model: Any) -> tuple[Any, Any]:
    """The responses that pull furthest apart."""
    if of_classes(model):
        return (0, 1) if model.classes is None else tuple(model.classes[:2])
    low, high = model.response.interval
    if isinstance(model, models.HuberRegression):  # whose responses may be anywhere: near enough to bend
        low, high = max(low, -4.0 * model.threshold), min(high, 4.0 * model.threshold)
    return low, high


# ── the cases ────────────────────────────────────────────────────────────────────────────────────────────────────────

BOTH = "both labels pull with all their strength where one of them bends: tilt and volume are used up in one place"
TWICE = "the theorem counts the volume of both records, which cannot both add to the log-ratio"
BENT = "a record is not steep where it bends, and Gaussian corners are far apart"
FALSE = "the published calibration is for a record more or less, or leaves out volume: a replaced record breaks it"

PLACES = (0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0)
"""Deviations of the noise at which a record bends."""


def objective_case(plan: Plan, *, label: str = "", attained: bool = False, reason: str = BENT) -> ObjectiveCase:
    """The case of any plan: one response flipped, or its record removed, the others pushing or balanced."""
    model: Any = plan.model
    slopes_of(model)
    if not centred(model.prior, model.dimension):
        raise no_formula("priors around 0 with one scale, not for this prior of", model)
    neutral = not np.any(encoded_rows(model, np.zeros((1, model.features.count))))
    found = pushed(plan, PLACES) if neutral else flips(model, plan.n, both_sides=True)
    return ObjectiveCase(plan, found, FALSE if plan.mechanism.as_published else reason, attained, label)


def pushed(plan: Plan, places: Sequence[float]) -> tuple[Pair, ...]:
    """One label flipped, or its row moved to 0, where it counts for nothing: a record removed. Of the others as many
    are on the far side as push its bend out to a place, the rest at 0."""
    (no, yes), row, most = two_labels(plan.model), longest_row(plan.model), plan.n - 1
    steps = plan.parameters["tilt_noise"] / plan.parameters["lipschitz"]
    pushes = sorted({min(most, round(place * steps)) for place in places})

    def table(pushing: int, own: float, label: Any) -> Any:
        sizes = np.concatenate([[own], np.ones(pushing), np.zeros(most - pushing)])
        return np.outer(sizes, row), [label, *([no] * most)]

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
