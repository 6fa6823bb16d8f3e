"""Gibbs posteriors under each rule of Minami et al. (`audit.cases.predictor`), and noisy gradients, attacked.

**A noisy-gradient draw**: θ ← θ − h(wΣφ'(θx_i, y_i)x_i + Λθ) + √(2h)ξ, T times from a public start.
For a linear loss every iterate is Gaussian and its moments follow a recursion (an AR(1) process: the case that attains
the last iterate's bound of arXiv:2403.00278). For any other loss of one parameter the density is carried from step to
step on a grid, and the two laws are compared cell by cell, which can only hide differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, FiniteCase, NormalCase, no_formula
from onedraw.audit.cases.conjugate import TAIL, conjugate_case
from onedraw.audit.cases.losses import centred, flips, of_classes, records_of, slope_of
from onedraw.audit.cases.predictor import HALF, linear_model, predictor_case
from onedraw.errors import WrongCall
from onedraw.methods.base import calibrate
from onedraw.methods.catalog import cases_of
from onedraw.methods.gibbs import Gibbs, NoisyGradient
from onedraw.models import (
    FAMILIES,
    ConjugateModel,
    ConvexLoss,
    Gaussian,
    Hinge,
    HuberRegression,
    LeastSquares,
    Logistic,
)
from onedraw.plans import Plan
from onedraw.privacy import Promise

from .replay import rejection_cases

RULES = ("gdp", "theorem7", "corollary8", "rdp")
ON_A_BALL = ("theorem10", "bounded")

LOOSE = ("theorem7", "corollary8")
"""Rules whose promise is that of a tail bound, which gives some away."""


def gibbs_case(plan: Plan, *, linear: bool = False, label: str = "") -> Case:
    """Return the case of any plan of `Gibbs`: a posterior of a conjugate family, or one of a linear predictor."""
    rule = plan.mechanism.rule
    if isinstance(plan.model, ConjugateModel):
        return conjugate_case(plan, reason=TAIL if rule in LOOSE else None, label=label)
    return predictor_case(plan, rule=rule, linear=linear, label=label)


def family_cases(family: type[ConjugateModel], budget: Promise) -> list[Case]:
    """Return the cases of a conjugate family that has the bounds, under the rules that need no Lipschitz loss."""
    model = family.example()
    if "gradient_difference" not in model.bounds:
        return []
    return [gibbs_case(calibrate(Gibbs(rule), model, budget, n=10)) for rule in ("gdp", "theorem7", "rdp")]


def _of_one_feature(model: Any, **options: Any) -> Callable[[float | None], Any]:
    return lambda radius: model(features=1, intercept=False, prior=Gaussian(scale=1.0, radius=radius), **options)


SETTINGS: dict[str, tuple[Callable[[float | None], Any], float, int, bool]] = {
    "linear": (linear_model, 3.0, 4, True),
    "logistic": (_of_one_feature(Logistic, bounds=(-1, 1)), 2.0, 4, False),
    # rows of norm 0.1: the posterior hardly sees the kink, and the loss is as good as linear
    "hinge": (_of_one_feature(Hinge, data_norm=0.1), 5.0, 1, True),
    # responses at ±20, far beyond the threshold: every residual is on the linear part
    "huber": (_of_one_feature(HuberRegression, threshold=1.0, response_bound=20.0, data_norm=1.0), 5.0, 3, True),
    "least-squares": (_of_one_feature(LeastSquares, response_bound=1.0, data_norm=1.0), 1.0, 4, False),
}
"""Model → how it is made with a radius, the radius of rules on a ball, n, and whether it is as good as linear: then the
Lipschitz rules are attained."""


def rule_cases(name: str, budget: Promise) -> list[Case]:
    """One case for each rule that keeps the budget."""
    model_of, radius, n, linear = SETTINGS[name]
    always = name == "least-squares"  # whose slope is bounded on a ball alone
    rules = ("gdp", "bounded") if always else (*RULES, *ON_A_BALL)
    asked = [("", Gibbs(rule), model_of(radius if always or rule in ON_A_BALL else None)) for rule in rules]
    return cases_of(partial(gibbs_case, linear=linear), asked, budget, n=n)


# ── noisy gradients ──

MOST_CELLS = 3001
MOST_STEPS = 5000


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
    return cases_of(path_case, [("", NoisyGradient(time=1.0), linear_model())], budget, n=4)


def logistic_path_cases(budget: Promise) -> list[Case]:
    model = Logistic(1, bounds=(-1, 1), intercept=False, prior=Gaussian(scale=1.0))
    return cases_of(path_case, [("", NoisyGradient(), model)], budget, n=50)


def gibbs_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases of `Gibbs`, by the word for a model."""

    def logistic(budget: Promise) -> list[Case]:
        return [*rule_cases("logistic", budget), *rejection_cases(budget)]

    return {
        **{family.kind: partial(family_cases, family) for family in FAMILIES},
        **{name: partial(rule_cases, name) for name in SETTINGS},
        "logistic": logistic,
    }


def path_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases of `NoisyGradient`, by the word for a model."""
    return {"linear": linear_path_cases, "logistic": logistic_path_cases}
