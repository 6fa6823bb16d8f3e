"""DP-SGD and DP-SGLD under attack: T noisy sums of Poisson samples on the pair where one record's gradient is C and its opposite −C.

Written down again, without the accountant: a step's outcomes are put into cells, whose masses under both records are normal
tails; outcomes of several steps are products of cells. Cells of nearly the same likelihood ratio are merged, which hides a little and
never adds anything: what is found is a lower bound of the path's own privacy loss. The fault divides the noise.

The draws are last iterates. Where every record but one has no features, and the gradient of that one is always clipped, θ_T is
η/B·C times ±K + σ√T·ξ with K ~ Binomial(T, B/n): the attacker's formula. DP-SGLD forgets a little in every step, by the prior: there
the formula is a mixture over all 2^T outcomes of the coins of the one record.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from scipy import special, stats

from onedraw import audit
from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, LogDensity, Pair, no_formula
from onedraw.audit.cases.laws import normal_masses
from onedraw.baselines import DPSGD, DPSGLD, Training
from onedraw.methods.catalog import eligible
from onedraw.models import Gaussian, HuberisedHinge, Logistic
from onedraw.models.convex.losses import MarginLoss
from onedraw.plans import Plan
from onedraw.privacy import Promise

CELLS = 1500
"""Of one step, and of steps together; a merge costs the square of a cell's width in the loss's variance."""

REACH = 9.0
"""Deviations that a step's noise is followed; what lies beyond is one cell."""

MOST_COINS = 12
"""Of one record, whose outcomes are all followed."""

OPPOSITE = Pair("a gradient and its opposite", 1, -1)

ATTAINED = "one record's clipped gradient becomes its opposite: the pair that dominates every other"


class TrainingCase(Case):
    """The path of a plan on the pair of opposite gradients."""

    noises: ClassVar[tuple[str, ...]] = ("noise_multiplier",)

    def sampler(self, plan: Plan) -> Any:
        """Compiled, since draws are needed by the thousand; the steps are those of a release."""
        return Training("jax")

    @property
    def rate(self) -> float:
        return float(self.plan.mechanism.batch_size / self.plan.n)

    @property
    def steps(self) -> int:
        mechanism = self.plan.mechanism
        return math.ceil(float(mechanism.epochs * self.plan.n / mechanism.batch_size))

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        sigma = self.numbers(factor)["noise_multiplier"]
        return audit.finite_profile(*path_law(sigma, self.rate, self.steps))

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity | None:
        """Of the last iterate, for the records of `training_cases`."""
        if not isinstance(records, tuple):
            return None
        options, steps, sign = self.plan.mechanism, self.steps, 1.0 if records[1][-1] == 1 else -1.0
        unit = options.learning_rate * options.clip / options.batch_size
        deviation = self.numbers(factor)["noise_multiplier"] * math.sqrt(steps)
        count = np.arange(steps + 1.0)
        log_weights = stats.binom.logpmf(count, steps, self.rate)
        return mixture(log_weights, unit * sign * count, unit * deviation)


class SubsampledCase(TrainingCase):
    """The path of a DP-SGLD plan on the same pair: records that weigh more than was accounted have less noise beside them."""

    weights = ("record_weight",)
    noises = ()

    def sampler(self, plan: Plan) -> Any:
        return Case.sampler(self, plan)

    @property
    def rate(self) -> float:
        return float(self.plan.mechanism.expected_batch(self.plan.n) / self.plan.n)

    @property
    def steps(self) -> int:
        return int(self.plan.parameters["steps"])

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        """By σ = q√2/(wL√h), written down again."""
        numbers, model = self.numbers(factor), self.plan.model
        reach = model.kernel.steepest * math.sqrt(float(model.features.squared_reach))
        sigma = self.rate * math.sqrt(2.0 / numbers["step_size"]) / (numbers["record_weight"] * reach)
        return audit.finite_profile(*path_law(sigma, self.rate, self.steps))

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity | None:
        """Of the last iterate, for the records of `subsampled_cases`, whose one gradient is ±1 wherever the path may be."""
        if not isinstance(records, tuple) or self.steps > MOST_COINS:
            return None
        numbers, sign, coins = self.numbers(factor), 1.0 if records[1][-1] == 1 else -1.0, 1 << self.steps
        step, weight = numbers["step_size"], numbers["record_weight"]
        left = (1.0 - step * float(self.plan.model.prior.precision(1)[0])) ** np.arange(self.steps)
        tossed = (np.arange(coins)[:, None] >> np.arange(self.steps)) & 1
        means = sign * step * weight / self.rate * (tossed @ left)
        heads = tossed.sum(axis=1)
        log_weights = special.xlogy(heads, self.rate) + special.xlog1py(self.steps - heads, -self.rate)
        return mixture(log_weights, means, math.sqrt(2.0 * step * float(left @ left)))


def mixture(log_weights: Array, means: Array, deviation: float) -> LogDensity:
    """Of normal laws, in the first coordinate of a draw."""

    def density(draws: Array) -> Array:
        away = (np.asarray(draws).reshape(len(draws), -1)[:, :1] - means) / deviation
        return np.asarray(special.logsumexp(log_weights - 0.5 * away**2, axis=1))

    return density


# ── laws ───────────────────────────────────────────────────────────────────────────────────────────────────


def path_law(sigma: float, rate: float, steps: int) -> tuple[Array, Array]:
    """(P, Q) of all steps together, over merged cells, by halves."""
    if steps == 1:
        return step_law(sigma, rate)
    half = path_law(sigma, rate, steps // 2)
    even = both(half, half)
    return both(even, step_law(sigma, rate)) if steps % 2 else even


def step_law(sigma: float, rate: float) -> tuple[Array, Array]:
    """(P, Q) of one noisy sum over cells of its value: (1−q)N(0, σ²) + qN(±1, σ²)."""
    edges = np.concatenate([[-np.inf], np.linspace(-1.0 - REACH * sigma, 1.0 + REACH * sigma, CELLS - 1), [np.inf]])
    without, up, down = (normal_masses((edges - centre) / sigma) for centre in (0.0, 1.0, -1.0))
    return (1.0 - rate) * without + rate * up, (1.0 - rate) * without + rate * down


def both(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """Two independent outcomes as one, cells of about the same log-ratio merged."""
    first, second = (np.outer(a, b).reshape(-1) for a, b in zip(one, other, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.log(first) - np.log(second), nan=0.0, posinf=1e3, neginf=-1e3)
    deviation = math.sqrt(float(np.clip(ratio, -30.0, 30.0) ** 2 @ first) + 1e-300)
    # most cells where most of the loss is, a few for its tails
    places = np.searchsorted(_grid(deviation), ratio)
    size = len(_grid(deviation)) + 1
    merged = [np.asarray(np.bincount(places, masses, size), dtype=np.float64) for masses in (first, second)]
    return merged[0], merged[1]


def _grid(deviation: float) -> Array:
    near = deviation * np.linspace(-8.0, 8.0, CELLS - 200)
    far = deviation * np.geomspace(8.0, 80.0, 101)[1:]
    return np.concatenate([-far[::-1], near, far])


# ── cases ──────────────────────────────────────────────────────────────────────────────────────────────────


def training_case(plan: Plan, *, label: str = "") -> TrainingCase:
    """The case of any plan of DP-SGD: its path's law depends on noise, rate and steps alone. Its draws have no formula."""
    return TrainingCase(plan, (OPPOSITE,), ATTAINED, True, label)


def subsampled_case(plan: Plan, *, label: str = "") -> SubsampledCase:
    """The case of any plan of DP-SGLD on a margin loss: noise, rate and steps alone. Its draws have no formula."""
    if not isinstance(plan.model.kernel, MarginLoss):
        raise no_formula("paths on samples of margin losses, not for", plan.model)
    return SubsampledCase(plan, (OPPOSITE,), ATTAINED, True, label)


def training_cases(budget: Promise) -> list[Case]:
    """Few steps of logistic regression; the clip is below any gradient met."""
    options = DPSGD(epochs=2, batch_size=5, clip=0.01, learning_rate=0.1)
    return _on_one_feature(TrainingCase, options, Logistic, budget)


def subsampled_cases(budget: Promise) -> list[Case]:
    """Few steps on a hinge, whose slope is 1 as far as so short a path goes."""
    options = DPSGLD(batch_size=5, relaxations=0.02, steps=8)
    return _on_one_feature(SubsampledCase, options, HuberisedHinge, budget)


def _on_one_feature(kind: type[Case], options: Any, loss: Any, budget: Promise) -> list[Case]:
    """All records but one have no features."""
    model, rows = loss(1, bounds=(-1, 1), intercept=False, prior=Gaussian(scale=1.0)), np.zeros((20, 1))
    rows[-1] = 1.0
    tables = ((rows, np.r_[np.zeros(19, dtype=int), label]) for label in (1, 0))
    pair = Pair("the label of the one record with a feature", *tables)
    return [kind(plan, (pair,), ATTAINED, True) for plan in eligible(options, model, budget, n=20)]
