"""A step of Barker's test along a random direction of the plane, by quadrature over directions; a whole path, by
summation.

At the start θ₀ a step proposes θ₀ + Re and takes it with probability σ(λ_e), λ_e = log π(θ₀ + Re)/π(θ₀) + wΣ[φ(θ₀ᵀx, y)
− φ((θ₀ + Re)ᵀx, y)]. What is published is (e, bit): its law on a fine grid of directions is a finite one, and a mean
over directions is exact to all digits, since λ_e is smooth along the circle but for a kink. Half of the other records
on each side, λ_e is ±s_e/2 on the two data sets, and the bound for a uniform direction is attained to first order in s.

`path_law` is the law of all 2^T bit strings of T steps along given directions, for the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.mechanisms import BarkerPath, Plan
from onedraw.models import Gaussian, Hinge, Logistic
from onedraw.privacy import Promise, RenyiDP

from .case import Case, FiniteCase, eligible, no_formula
from .losses import flips, loss_of, of_classes, records_of

DIRECTIONS = 720
ORDERS_BELOW = 1024.0
"""The step is held against its Rényi curve; its pure ε, that of the worst direction, is not what a path is certified
with."""

BALANCED = "others that balance each other: along every direction the log-odds are the two sides of 0, and the curve is attained"
BENT = "the loss bends around the start, so that one side of a step is less steep than its Lipschitz constant"

Test = Callable[[Array], Array]


def barker(log_ratio: Array) -> Array:
    """P(accept)."""
    return np.asarray(special.expit(log_ratio))


def circle(count: int = DIRECTIONS) -> Array:
    """(count, 2): directions, each the middle of an equal arc."""
    angles = (np.arange(count) + 0.5) * 2.0 * np.pi / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@dataclass(frozen=True)
class BarkerStepCase(FiniteCase):
    """The first step of a path: a direction, and a bit."""

    without_draws = "a path is thousands of such steps; its decisions are summed over, all outcomes and directions"

    @property
    def promise(self) -> Promise:
        """That of one step."""
        mechanism: Any = self.plan.mechanism
        one = mechanism.kernel.promise(self.plan.model, self.plan.parameters, self.plan.n)
        return RenyiDP(one.curve, below=ORDERS_BELOW)

    def law(self, records: Any, factor: float = 1.0) -> Array:
        return step_law(self.plan.model, self.numbers(factor), records)


def step_law(
    model: Any, numbers: Any, records: Any, *, test: Test = barker, directions: Array | None = None
) -> Array:  # fmt: skip
    """The probabilities of (direction, accepted) and then of (direction, rejected), from the prior's mean."""
    around = circle() if directions is None else directions
    start = model.prior.location(model.dimension)
    chance = test(log_ratios(model, numbers, records, start[None, :], around))
    return np.concatenate([chance, 1.0 - chance]) / len(around)


def log_ratios(model: Any, numbers: Any, records: Any, states: Array, directions: Array) -> Array:
    """λ from each state along each direction, or along the one that goes with it."""
    X, y = records_of(model, records)
    phi, centre, precision = (
        loss_of(model),
        model.prior.location(model.dimension),
        model.prior.precision(model.dimension),
    )

    def potential(places: Array) -> Array:
        losses = phi(places @ X.T, y[None, :] if of_classes(model) else y)  # type: ignore[arg-type]
        return np.asarray(
            numbers["weight"] * losses.sum(axis=1) + 0.5 * ((places - centre) ** 2 * precision).sum(axis=1)
        )

    return potential(states) - potential(states + numbers["step_length"] * directions)


def path_law(model: Any, numbers: Any, records: Any, directions: Sequence[Array], *, test: Test = barker) -> Array:
    """The probabilities of all 2^T bit strings along T given directions, the last bit changing fastest."""
    states, chances = model.prior.location(model.dimension)[None, :], np.ones(1)
    for direction in directions:
        taken = test(log_ratios(model, numbers, records, states, direction[None, :]))
        moved = states + numbers["step_length"] * direction
        states = np.stack([states, moved], axis=1).reshape(-1, model.dimension)
        chances = np.stack([chances * (1.0 - taken), chances * taken], axis=1).reshape(-1)
    return chances


def step_case(plan: Plan, *, label: str = "") -> Case:
    """The case of any path in the plane, of two classes and without an intercept."""
    model = plan.model
    if not of_classes(model) or model.row_blocks > 1 or model.dimension != 2 or plan.parameters.get("beta"):
        raise no_formula("paths of private decisions in two coefficients of a margin loss, not of", model)
    loss_of(model)
    straight = isinstance(model, Hinge)
    return BarkerStepCase(plan, flips(model, plan.n), BALANCED if straight else BENT, straight, label)


def hinge_paths(budget: Promise) -> list[Case]:
    """Linear around the start, so attained."""
    return _paths(Hinge(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0)), budget)


def logistic_paths(budget: Promise) -> list[Case]:
    return _paths(Logistic(2, data_norm=1.0, intercept=False, loss="exp-linear", prior=Gaussian(scale=1.0)), budget)


def _paths(model: Any, budget: Promise) -> list[Case]:
    if budget.is_pure:
        return []
    return [step_case(plan) for plan in eligible(BarkerPath(), model, budget, n=301)]
