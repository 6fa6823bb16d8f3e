"""Posteriors of conjugate families, written down again: Geumlek, Song, Chaudhuri (NIPS 2017), Algorithms 1 to 3.

The posterior parameter is η₀/m + r·Σ(S(x_i), 1). The worst neighbours have n − 1 records at one extreme of S and move
the last one from an extreme to another (mathematics.md §3); on them the promised Rényi curve is attained order by order,
and Gaussian DP exactly. Quadrature runs in a coordinate v with z = centre + scale·sinh(v), z the log-odds or the logarithm
of the draw: near λ* a Rényi integral has tails that reach to z = −500, and there they fit between −10 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw import audit
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.mechanisms import Concentrated, Diffused, Direct, Gibbs, Plan, calibrate
from onedraw.models import BetaBernoulli, DirichletCategorical, GammaExponential, GammaPoisson, GaussianMean
from onedraw.privacy import Promise

from .case import TOLERANCE, Array, DensityCase, LogDensity, NormalCase, Pair

REACH = 600.0
"""How far the logarithm of a draw is followed: further out a posterior weighs less than e^−600 of its centre."""

ATTAINED = "the worst neighbours of the theorem: its bound is their divergence"


@dataclass(frozen=True)
class ConjugateCase(DensityCase):
    """What the families share: r and 1/m, the sums, and which of the two the fault multiplies."""

    def numbers(self, factor: float = 1.0) -> dict[str, float]:
        if not isinstance(self.plan.mechanism, Concentrated):
            return super().numbers(factor)
        return {**self.plan.parameters, "prior_factor": self.plan.parameters["prior_factor"] * factor}

    def scaling(self, factor: float) -> tuple[float, float]:
        """(r, 1/m) with the fault in it; `Gibbs` calls r its weight."""
        numbers = self.numbers(factor)
        return numbers["r"] if "r" in numbers else numbers["weight"], 1.0 / numbers.get("prior_factor", 1.0)


@dataclass(frozen=True)
class BetaCase(ConjugateCase):
    """Beta(a/m + rΣx, b/m + r(n − Σx)); in the log-odds z its density is σ(z)^a σ(−z)^b."""

    def parameters(self, records: Any, factor: float) -> tuple[float, float]:
        model, (r, prior) = self.plan.model, self.scaling(factor)
        total = math.fsum((record - model.lower) / (model.upper - model.lower) for record in records)
        return prior * model.prior[0] + r * total, prior * model.prior[1] + r * (len(records) - total)

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        a, b = self.parameters(records, factor)
        return lambda draws: (a - 1) * np.log(draws.reshape(-1)) + (b - 1) * np.log1p(-draws.reshape(-1))

    def integrand(self, records: Any, factor: float) -> LogDensity:
        a, b = self.parameters(records, factor)

        def density(odds: Array) -> Array:
            return -a * np.logaddexp(0.0, -odds) - b * np.logaddexp(0.0, odds)

        return in_far_coordinate(density, *self._frame(factor))

    def domain(self, pair: Pair, factor: float) -> Any:
        return far_domain(self._frame(factor)[1])

    def _frame(self, factor: float) -> tuple[float, float]:
        a, b = self.parameters(self.pairs[0].first, factor)
        return math.log(a / b), math.sqrt(1.0 / a + 1.0 / b)


@dataclass(frozen=True)
class DirichletCase(ConjugateCase):
    """Dirichlet(α/m + r·counts). For two neighbours, who differ in categories a and b, the draw's log-ratio is a function
    of p_a/(p_a + p_b) alone, and that share is Beta(α_a', α_b'): nothing is lost by looking at it only."""

    def counts(self, records: Any, factor: float) -> Array:
        (r, prior), levels = self.scaling(factor), len(self.plan.model.prior)
        return prior * np.array(self.plan.model.prior) + r * np.bincount(np.asarray(records), minlength=levels)

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        alpha = self.counts(records, factor)
        return lambda draws: np.log(draws) @ (alpha - 1.0)

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        a, b = pair.first[-1], pair.second[-1]
        (first_a, first_b), (second_a, second_b) = (
            self.counts(records, factor)[[a, b]] for records in (pair.first, pair.second)
        )
        frame = math.log(first_a / first_b), math.sqrt(1.0 / first_a + 1.0 / first_b)

        def density(a: float, b: float) -> LogDensity:
            return in_far_coordinate(lambda z: -a * np.logaddexp(0.0, -z) - b * np.logaddexp(0.0, z), *frame)

        laws = density(first_a, first_b), density(second_a, second_b)
        return audit.exact_profile(*laws, far_domain(frame[1]), tolerance=TOLERANCE)

    def integrand(self, records: Any, factor: float) -> LogDensity:
        """In (s, t) with p = (s·t, s·(1−t), 1−s), three categories: the whole law, for checking the reduction."""
        alpha = self.counts(records, factor)

        def density(points: Array) -> Array:
            s, t = points[:, 0], points[:, 1]
            shares = np.stack([s * t, s * (1 - t), 1 - s], axis=1)
            return np.log(shares) @ (alpha - 1.0) + np.log(s)

        return density

    def domain(self, pair: Pair, factor: float) -> Any:
        return ((0.0, 1.0), (0.0, 1.0))


@dataclass(frozen=True)
class GaussianMeanCase(NormalCase, ConjugateCase):
    """N((n₀/m·μ₀ + rΣx)/(n₀/m + rn), σ²/(n₀/m + rn)). Also for `Gibbs`, whose weight is r. In several dimensions the
    records move along the first axis, and the other coordinates say nothing."""

    def moments(self, records: Any, factor: float) -> tuple[float, float]:
        model, (r, prior) = self.plan.model, self.scaling(factor)
        centre, prior_mean = (float(np.atleast_1d(value)[0]) for value in (model.centre, model.prior_mean))
        worth = prior * model.prior_count + r * len(records)
        total = math.fsum(np.asarray(records, dtype=np.float64).reshape(len(records), -1)[:, 0] - centre)
        return centre + (prior * model.prior_count * prior_mean + r * total) / worth, model.variance / worth


@dataclass(frozen=True)
class GammaCase(ConjugateCase):
    """Gamma(a/m + rΣx, b/m + rn) for counts, Gamma(a/m + rn, b/m + rΣx) for durations."""

    def parameters(self, records: Any, factor: float) -> tuple[float, float]:
        (a, b), (r, prior) = self.plan.model.prior, self.scaling(factor)
        total, n = math.fsum(records), len(records)
        if isinstance(self.plan.model, GammaExponential):
            total, n = n, total
        return prior * a + r * total, prior * b + r * n

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        shape, rate = self.parameters(records, factor)
        return lambda draws: (shape - 1) * np.log(draws.reshape(-1)) - rate * draws.reshape(-1)

    def integrand(self, records: Any, factor: float) -> LogDensity:
        shape, rate = self.parameters(records, factor)

        def density(logarithm: Array) -> Array:
            return shape * logarithm - rate * np.exp(np.minimum(logarithm, REACH))

        return in_far_coordinate(density, *self._frame(factor))

    def domain(self, pair: Pair, factor: float) -> Any:
        return far_domain(self._frame(factor)[1])

    def _frame(self, factor: float) -> tuple[float, float]:
        shape, rate = self.parameters(self.pairs[0].first, factor)
        return math.log(shape / rate), 1.0 / math.sqrt(shape)


def in_far_coordinate(density: LogDensity, centre: float, scale: float) -> LogDensity:
    """A density of z as one of v, z = centre + scale·sinh(v)."""

    def changed(points: Array) -> Array:
        v = np.asarray(points, dtype=np.float64).reshape(-1)
        return density(centre + scale * np.sinh(v)) + np.log(np.cosh(v))

    return changed


def far_domain(scale: float) -> tuple[tuple[float, float]]:
    end = math.asinh(REACH / scale)
    return ((-end, end),)


# ── the cases ──────────────────────────────────────────────────────────────────────────────────────────────


def conjugate_case(plan: Plan, *, label: str = "") -> DensityCase:
    """The case of any plan for a conjugate family, on the worst neighbours of its theorem."""
    model, n = plan.model, plan.n
    match model:
        case BetaBernoulli(lower=lower, upper=upper):
            return BetaCase(plan, worst_neighbours((lower, upper), n, model.prior[::-1]), ATTAINED, True, label)
        case DirichletCategorical(prior=prior):
            return DirichletCase(plan, worst_neighbours(range(len(prior)), n, prior), ATTAINED, True, label)
        case GaussianMean():
            low, high = _ends(model)
            pair = Pair("one record from one end to the other", [low] * n, [low] * (n - 1) + [high])
            exact = "neighbouring posteriors are two Gaussians at the promised distance"
            tail = "the two Gaussians are as far apart as the rule allows, but its (ε, δ) comes from a tail bound"
            loose = getattr(plan.mechanism, "rule", "gdp") in ("theorem7", "corollary8")
            return GaussianMeanCase(plan, (pair,), tail if loose else exact, not loose, label)
        case GammaPoisson(cap=cap) | GammaExponential(cap=cap):
            pair = Pair("all at 0, one moved to the cap", [0] * n, [0] * (n - 1) + [cap])
            return GammaCase(plan, (pair,), ATTAINED, True, label)
    raise WrongCall(f"{type(model).__name__} is not a conjugate family the audit knows.")


def _ends(model: GaussianMean) -> tuple[Any, Any]:
    """The two ends of the range, or of the ball along its first axis."""
    if model.dim == 1:
        (centre,) = np.atleast_1d(model.centre).tolist()
        return centre - model.bound, centre + model.bound
    axis = np.zeros(model.dim)
    axis[0] = model.bound
    centre = np.asarray(model.centre)
    return (centre - axis).tolist(), (centre + axis).tolist()


def worst_neighbours(levels: Sequence[Any], n: int, prior: Sequence[float]) -> tuple[Pair, ...]:
    """n − 1 records at one extreme, the last one moved from any extreme to any other; of pairs alike under the prior one."""
    found: dict[Any, Pair] = {}
    places = range(len(levels))
    for crowd, a, b in (
        (crowd, a, b) for crowd in places[: len(places) if n > 1 else 1] for a in places for b in places if a < b
    ):
        alike = prior[crowd], frozenset([(prior[a], crowd == a), (prior[b], crowd == b)])
        others = [levels[crowd]] * (n - 1)
        name = f"{n - 1} at {levels[crowd]:g}, one from {levels[a]:g} to {levels[b]:g}"
        found.setdefault(alike, Pair(name, [*others, levels[a]], [*others, levels[b]]))
    return tuple(found.values())


ALGORITHMS = (Diffused(), Concentrated())


def proportion_cases(budget: Promise, *, n: int = 10) -> list[DensityCase]:
    plans = [strong_enough(lambda k: BetaBernoulli(prior=(k, k)), budget, n=n)]
    return _cases([*plans, *(calibrate(one, BetaBernoulli(prior=(1, 1)), budget, n=n) for one in ALGORITHMS)])


def histogram_cases(budget: Promise, *, n: int = 10) -> list[DensityCase]:
    plans = [strong_enough(lambda k: DirichletCategorical(prior=(k, k, k)), budget, n=n)]
    model = DirichletCategorical(prior=(1, 1, 1))
    return _cases([*plans, *(calibrate(one, model, budget, n=n) for one in ALGORITHMS)])


def mean_cases(budget: Promise, *, n: int = 10) -> list[DensityCase]:
    """Direct, Diffused, Concentrated, and as Gibbs posteriors under the rules that need no Lipschitz loss."""
    plans = [strong_enough(lambda k: GaussianMean(bound=1.0, variance=1.0, prior_count=k), budget, n=n)]
    model = GaussianMean(bound=1.0, variance=1.0, prior_count=1.0)
    rules = [Gibbs(rule) for rule in ("gdp", "theorem7", "rdp")]
    return _cases([*plans, *(calibrate(one, model, budget, n=n) for one in (*ALGORITHMS, *rules))])


def rate_cases(budget: Promise, *, n: int = 10) -> list[DensityCase]:
    plans = [strong_enough(lambda k: GammaPoisson(prior=(k, 1.0), cap=2), budget, n=n)]
    model = GammaPoisson(prior=(1.0, 1.0), cap=2)
    return _cases([*plans, *(calibrate(one, model, budget, n=n) for one in ALGORITHMS)])


def duration_cases(budget: Promise, *, n: int = 10) -> list[DensityCase]:
    model = GammaExponential(prior=(2.0, 2.0), cap=2.0)
    return _cases([calibrate(one, model, budget, n=n) for one in ALGORITHMS])


def _cases(plans: Sequence[Plan]) -> list[DensityCase]:
    return [conjugate_case(plan) for plan in plans]


def strong_enough(model_of: Any, budget: Promise, *, n: int) -> Plan:
    """Direct sampling, whose only freedom is the prior: the first power of 1.5 as its strength that keeps the budget."""
    for step in range(60):
        try:
            return calibrate(Direct(), model_of(1.5**step), budget, n=n)
        except PromiseRefused:
            continue
    raise PromiseRefused(f"No prior up to {1.5**59:.3g} records lets Direct sampling keep {budget}.")
