"""Steps of Barker's test along random directions of the plane, by running the step that is shipped.

What a step publishes is (e, bit). Its program is run along every direction of a fine grid and for every answer of its
secret (`replay`), which says with what chance it would have given that one: a finite law, without a draw. A mean over
directions is exact to all digits, since chances are smooth along the circle but for a kink. Half of the other records
on each side, λ_e is ±s_e/2 on the two data sets, and the bound for a uniform direction is attained to first order in s.

Replayed, every chance is held against the formula of the paper: at the start θ₀ a step proposes θ₀ + Re and takes it with
probability σ(λ_e), λ_e = log π(θ₀ + Re)/π(θ₀) + wΣ[φ(θ₀ᵀx, y) − φ((θ₀ + Re)ᵀx, y)]. A step that is wrong and no less private
shows there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, FiniteCase, no_formula
from onedraw.audit.cases.losses import flips, loss_of, of_classes, records_of
from onedraw.methods.catalog import cases_of
from onedraw.methods.private_chain import BarkerPath
from onedraw.models import Gaussian, Hinge, Logistic
from onedraw.plans import Plan
from onedraw.privacy import Promise, RenyiDP

from .replay import Program

DIRECTIONS = 96
ORDERS_BELOW = 1024.0
"""The step is held against its Rényi curve; its pure ε, that of the worst direction, is not what a path is certified
with."""

ROUNDING = 2.0**-28
"""By which a chance may differ from its formula, for each record: losses are rounded to 2^−32, moves to 2^−30 of their length."""

BALANCED = "others that balance each other: along every direction the log-odds are the two sides of 0, and the curve is attained"
BENT = "the loss bends around the start, so that one side of a step is less steep than its Lipschitz constant"
LONG = "the prior alone decides about so long a step, whatever the records are"

SHORT = 0.25
"""A step, in deviations of the prior, up to which the prior's part of the log-odds leaves them near 0, where the curve is attained."""


def circle(count: int = DIRECTIONS) -> Array:
    """(count, 2): directions, each the middle of an equal arc."""
    angles = (np.arange(count) + 0.5) * 2.0 * np.pi / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


# ── the program ──


def step_law(program: Program, directions: Array) -> Array:
    """The probabilities of (direction, accepted) and then of (direction, rejected), from the start."""
    found = [program.chances(program.start, program.along(direction)) for direction in directions]
    return np.stack(found, axis=1)[::-1].reshape(-1) / len(directions)


# ── the formula ──


def potentials(model: Any, numbers: Any, records: Any, places: Array) -> Array:
    """wΣφ(θᵀx, y) − log π(θ) at each place, without the prior's constant."""
    X, y = records_of(model, records)
    phi, away = loss_of(model), places - model.prior.location(model.dimension)
    losses = phi(places @ X.T, y[None, :] if of_classes(model) else y)  # type: ignore[arg-type]
    prior = 0.5 * (away**2 * model.prior.precision(model.dimension)).sum(axis=1)
    return np.asarray(numbers["weight"] * losses.sum(axis=1) + prior)


def log_ratios(model: Any, numbers: Any, records: Any, state: Array, directions: Array) -> Array:
    """λ from a state along each direction."""
    places = np.concatenate([state[None], state + numbers["step_length"] * directions])
    found = potentials(model, numbers, records, places)
    return np.asarray(found[0] - found[1:])


# ── cases ──


class BarkerStepCase(FiniteCase):
    """The first step of a path: a direction, and a bit."""

    without_draws = "a path is thousands of such steps; its decisions are summed over, all outcomes and directions"

    @property
    def promise(self) -> Promise:
        """That of one step."""
        one = self.kernel.promise(self.plan.model, self.plan.parameters, self.plan.n)
        assert isinstance(one, RenyiDP)
        return RenyiDP(one.curve, below=ORDERS_BELOW)

    @property
    def kernel(self) -> Any:
        return self.plan.mechanism.kernel

    def law(self, records: Any, factor: float = 1.0) -> Array:
        return step_law(Program.of(self.kernel, self.plan.model, self.numbers(factor), records), circle())

    def replayed(self) -> tuple[str, ...]:
        model, numbers, around = self.plan.model, self.plan.parameters, circle()
        start, far = model.prior.location(model.dimension), 0.0
        for records in (self.pairs[0].first, self.pairs[0].second):
            chances = special.expit(log_ratios(model, numbers, records, start, around))
            law = step_law(Program.of(self.kernel, model, numbers, records), around)
            far = max(far, float(np.abs(law[: len(around)] * len(around) - chances).max()))
        return () if far <= ROUNDING * self.plan.n else ("a step is not taken with the chance of its formula",)


def step_case(plan: Plan, *, label: str = "") -> Case:
    """The case of any path in the plane, of two classes and without an intercept."""
    model = plan.model
    if not of_classes(model) or model.row_blocks > 1 or model.dimension != 2 or plan.parameters.get("beta"):
        raise no_formula("paths of private decisions in two coefficients of a margin loss, not of", model)
    loss_of(model)
    straight = isinstance(model, Hinge)
    short = plan.parameters["step_length"] ** 2 * model.prior.precision(2).max() <= SHORT**2
    why = LONG if not short else BALANCED if straight else BENT
    return BarkerStepCase(plan, flips(model, plan.n), why, straight and bool(short), label)


def hinge_paths(budget: Promise) -> list[Case]:
    """Linear around the start, so attained by steps that are short for the prior."""
    return _paths(Hinge(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0)), budget)


def logistic_paths(budget: Promise) -> list[Case]:
    return _paths(Logistic(2, data_norm=1.0, intercept=False, loss="exp-linear", prior=Gaussian(scale=1.0)), budget)


def _paths(model: Any, budget: Promise) -> list[Case]:
    if budget.is_pure:
        return []
    return cases_of(step_case, [("", BarkerPath(), model)], budget, n=301)


def audit_cases() -> Mapping[str, Callable[[Promise], list[Case]]]:
    """Return the functions that make cases, by the word for a model."""
    return {"hinge": hinge_paths, "logistic": logistic_paths}
