"""Minima of regularised losses with noise on them or in them, written down again from the papers.

Output perturbation: where all rows are multiples of one row x and the penalty is the same in all directions, the
minimum is t·x/‖x‖ with

    Σ s_i·φ'(s_i·t, y_i) + m·t = 0,        s_i the length of row i along x, m = nλ,

one number, found by bracketing. A pair moves it by a distance, which the noise hides or does not: in the norm and for
Gaussian noise along the one direction, for Laplace noise in each coordinate, whose losses add up. Sources: Chaudhuri,
Monteleoni, Sarwate (JMLR 12, 2011), Algorithm 1; Jewson, Ghalebikesabi, Holmes (NeurIPS 2023), Theorem 4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize

from onedraw import models
from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, LogDensity, Pair, no_formula, pure
from onedraw.audit.cases.laws import Law, LawCase, Noise, shifted
from onedraw.audit.cases.losses import centred, flips, records_of, slope_of
from onedraw.baselines import OutputPerturbation
from onedraw.methods.catalog import cases_of
from onedraw.models import Gaussian, HuberisedHinge, HuberRegression, LeastSquares, Logistic
from onedraw.plans import Plan
from onedraw.privacy import Promise, PureDP

Slopes = Callable[[Array, Any], Array]


def slopes_of(model: Any) -> Slopes:
    """φ'(u, y) in u, from the definition of the loss."""
    match model:
        case models.Logistic(loss="logistic") | models.HuberisedHinge():
            turned = slope_of(model).slope
            return lambda u, y: y * turned(y * u)
        case models.HuberRegression(threshold=tau):
            return lambda u, y: np.clip(u - y, -tau, tau)
        case models.LogCoshRegression(response_bound=bound):
            return lambda u, y: bound / 4.0 * np.tanh((u - y) / (bound / 4.0))
        case models.LeastSquares():
            return lambda u, y: u - y
    raise no_formula(
        "the minima of Logistic, HuberisedHinge, HuberRegression, LogCoshRegression, LeastSquares, not of", model
    )


class OutputCase(LawCase):
    """A minimum with noise on it."""

    noises = ("noise",)

    @property
    def law_name(self) -> str:
        usual = "norm" if isinstance(self.plan.budget, PureDP) else "gaussian"
        return str(self.plan.mechanism.noise or usual)

    def minimum(self, records: Any) -> Array:
        """θ̂, for rows that are multiples of one."""
        rows, responses = records_of(self.plan.model, records)
        axis = rows[int(np.argmax(np.linalg.norm(rows, axis=1)))]
        axis, slopes = axis / np.linalg.norm(axis), slopes_of(self.plan.model)
        lengths, m = rows @ axis, self.plan.parameters["strong_convexity"]

        def gradient(t: float) -> float:
            return float(lengths @ slopes(lengths * t, responses) + m * t)

        far = float(np.abs(lengths).sum()) * float(np.abs(slopes(0.0 * lengths, responses)).max() + 1.0) / m
        return np.asarray(optimize.brentq(gradient, -far - 1.0, far + 1.0, xtol=1e-15, rtol=1e-14) * axis)

    def law(self, pair: Pair, factor: float = 1.0) -> Law:
        moved = np.abs(self.minimum(pair.first) - self.minimum(pair.second))
        scale, size = self.numbers(factor)["noise"], len(moved)
        if self.law_name == "laplace":
            return Law.together(shifted(float(one), Noise(scale, 1, True)) for one in moved)
        return shifted(float(np.linalg.norm(moved)), Noise(scale, size, self.law_name == "norm"))

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        centre, scale, law = self.minimum(records), self.numbers(factor)["noise"], self.law_name

        def density(draws: Array) -> Array:
            away = draws.reshape(len(draws), -1) - centre
            if law == "laplace":
                return np.asarray(-np.abs(away).sum(axis=1) / scale)
            length = np.linalg.norm(away, axis=1)
            return np.asarray(-length / scale if law == "norm" else -0.5 * (length / scale) ** 2)

        return density


# ── the cases ────────────────────────────────────────────────────────────────────────────────────────────────────────

STEEP = "both records pull with their full slope at the minimum: it moves by all of G/(nλ), in all coordinates alike"
BENT = "the losses bend where the minimum is, and it moves by less than a loss without curvature would let it"
FALSE = "the published scale is too small by a factor p: nothing keeps it"


def output_case(plan: Plan, *, label: str = "", attained: bool = False, reason: str = BENT) -> OutputCase:
    """The case of any plan: one response flipped, the others balanced, or agreeing."""
    model: Any = plan.model
    slopes_of(model)
    if not centred(model.prior, model.dimension):
        raise no_formula("priors around 0 with one scale, not for this prior of", model)
    return OutputCase(plan, flips(model, plan.n), FALSE if plan.mechanism.as_published else reason, attained, label)


_ONE: dict[str, Any] = {"features": 1, "intercept": False, "bounds": (-1, 1)}
_PRIOR = Gaussian(scale=0.5)

SETTINGS: tuple[tuple[Any, bool], ...] = (
    (HuberisedHinge(**_ONE, width=0.5, prior=_PRIOR), True),
    (HuberisedHinge(features=3, bounds=(-1, 1), intercept=False, width=0.5, prior=Gaussian(scale=0.25)), True),
    (HuberRegression(**_ONE, threshold=1.0, response_bound=20.0, prior=_PRIOR), True),
    (Logistic(features=3, bounds=(-1, 1), prior=_PRIOR), False),
    (LeastSquares(**_ONE, response_bound=1.0, prior=Gaussian(scale=0.5, radius=2.0)), False),
)
"""Model, and whether one record's flip moves the minimum as far as theory allows: the losses are straight where it
is."""


def output_cases(budget: Promise) -> list[Case]:
    """Noise in the norm and, where the budget has a δ, Gaussian noise; Laplace noise for three coordinates."""
    found: list[Case] = []
    for model, straight in SETTINGS:
        build = partial(output_case, attained=straight, reason=STEEP if straight else BENT)
        for noise, kept in (("norm", pure(budget)), ("gaussian", budget), ("laplace", pure(budget))):
            label = f"{noise} noise, {model.dimension} coefficients"
            found += cases_of(build, [(label, OutputPerturbation(noise), model)], kept, n=1 if straight else 4)
    return found
