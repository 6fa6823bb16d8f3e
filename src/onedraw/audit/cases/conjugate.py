"""Posteriors of conjugate families, written down again: Geumlek, Song, Chaudhuri (NIPS 2017), Algorithms 1 to 3.

The posterior parameter is η₀/m + r·Σ(S(x_i), 1). The worst neighbours have n − 1 records at one extreme of S and move
the last one from an extreme to another (methods/exponential_family/proof.md); on them the promised Rényi curve is attained order by
order, and Gaussian DP exactly. Quadrature runs in a coordinate v with z = centre + scale·sinh(v), z the log-odds or the
logarithm of the draw: near λ* a Rényi integral has tails that reach to z = −500, and there they fit between −10 and 10.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from onedraw import audit
from onedraw.arrays import Array
from onedraw.errors import WrongCall
from onedraw.models import Law, distributions
from onedraw.models.conjugate.family import Move
from onedraw.plans import Plan

from .case import TOLERANCE, Case, LogDensity, NormalCase, Pair

REACH = 600.0
"""How far the logarithm of a draw is followed: further out a posterior weighs less than e^−600 of its centre."""

ATTAINED = "the worst neighbours of the theorem: its bound is their divergence"
TAIL = "the two Gaussians are as far apart as the rule allows, but its (ε, δ) comes from a tail bound"


@dataclass(frozen=True)
class ConjugateCase(Case):
    """What the laws share: r and 1/m, the sums, and which of the two the fault multiplies."""

    concentrated: bool = False
    """Whether the fault multiplies the prior's share 1/m in place of a record's weight."""

    def numbers(self, factor: float = 1.0) -> dict[str, float]:
        if not self.concentrated:
            return super().numbers(factor)
        return {**self.plan.parameters, "prior_factor": self.plan.parameters["prior_factor"] * factor}

    def scaling(self, factor: float) -> tuple[float, float]:
        """(r, 1/m) with the fault in it; `Gibbs` calls r its weight."""
        return self.weight(factor), 1.0 / self.numbers(factor).get("prior_factor", 1.0)

    def parameters(self, records: Any, factor: float) -> Array:
        """η₀/m + r·Σ η(x_i), added up record by record."""
        model, (r, prior) = self.plan.model, self.scaling(factor)
        shares = zip(*(model.share(record) for record in records), strict=True)
        added = np.array([math.fsum(column) for column in shares])
        return prior * np.array(model.prior_parameters, dtype=np.float64) + r * added


class FarCase(ConjugateCase):
    """A law in one dimension with long tails in a coordinate z, its logarithm or log-odds."""

    @abc.abstractmethod
    def density(self, parameters: Array) -> LogDensity:
        """Of z."""

    @abc.abstractmethod
    def moments(self, parameters: Array) -> tuple[float, float]:
        """About where z lies, and how widely."""

    def seen(self, pair: Pair, parameters: Array) -> Array:
        """The parameters that the pair's log-ratio depends on."""
        return parameters

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        first, second = (self.seen(pair, self.parameters(records, factor)) for records in pair)
        centre, scale = self.moments(first)
        end = math.asinh(REACH / scale)
        law, neighbour = (in_far_coordinate(self.density(parameters), centre, scale) for parameters in (first, second))
        return audit.exact_profile(law, neighbour, ((-end, end),), tolerance=TOLERANCE)


class BetaCase(FarCase):
    """Beta(a, b); in the log-odds z its density is σ(z)^a σ(−z)^b."""

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        a, b = self.parameters(records, factor)
        return lambda draws: (a - 1) * np.log(draws.reshape(-1)) + (b - 1) * np.log1p(-draws.reshape(-1))

    def density(self, parameters: Array) -> LogDensity:
        a, b = parameters
        return lambda odds: -a * np.logaddexp(0.0, -odds) - b * np.logaddexp(0.0, odds)

    def moments(self, parameters: Array) -> tuple[float, float]:
        a, b = parameters
        return math.log(a / b), math.sqrt(1.0 / a + 1.0 / b)


class DirichletCase(BetaCase):
    """Dirichlet(α). For two neighbours, who differ in categories a and b, the draw's log-ratio is a function of
    p_a/(p_a + p_b) alone, and that share is Beta(α_a, α_b): nothing is lost by looking at it only."""

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        alpha = self.parameters(records, factor)
        return lambda draws: np.log(draws) @ (alpha - 1.0)

    def seen(self, pair: Pair, parameters: Array) -> Array:
        return np.asarray(parameters[[pair.first[-1], pair.second[-1]]])


class NormalLawCase(NormalCase, ConjugateCase):
    """A mean, also as a `Gibbs` posterior. In several dimensions the records move along the first axis, and the other
    coordinates say nothing."""

    def moments(self, records: Any, factor: float) -> tuple[float, float]:
        law = self.plan.model.law([Fraction(value) for value in self.parameters(records, factor)])
        return law.mean[0], law.variance


class GammaCase(FarCase):
    """Gamma(shape, rate), in the logarithm of the draw."""

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        shape, rate = self.parameters(records, factor)
        return lambda draws: (shape - 1) * np.log(draws.reshape(-1)) - rate * draws.reshape(-1)

    def density(self, parameters: Array) -> LogDensity:
        shape, rate = parameters
        return lambda logarithm: shape * logarithm - rate * np.exp(np.minimum(logarithm, REACH))

    def moments(self, parameters: Array) -> tuple[float, float]:
        shape, rate = parameters
        return math.log(shape / rate), 1.0 / math.sqrt(shape)


CASES: dict[type[Law], type[ConjugateCase]] = {
    distributions.Beta: BetaCase,
    distributions.Dirichlet: DirichletCase,
    distributions.Gamma: GammaCase,
    distributions.Normal: NormalLawCase,
}
"""By the law of a posterior."""


def in_far_coordinate(density: LogDensity, centre: float, scale: float) -> LogDensity:
    """A density of z as one of v, z = centre + scale·sinh(v)."""

    def changed(points: Array) -> Array:
        v = np.asarray(points, dtype=np.float64).reshape(-1)
        return density(centre + scale * np.sinh(v)) + np.log(np.cosh(v))

    return changed


def conjugate_case(
    plan: Plan, *, concentrated: bool = False, reason: str | None = None, label: str = ""
) -> ConjugateCase:
    """Return the case of any plan for a conjugate family, on the worst neighbours of its theorem.

    Parameters
    ----------
    concentrated : bool
        Whether the plan calibrates the prior's share in place of a record's weight.
    reason : str, optional
        Why the promise is not attained; None: it is.
    """
    law = type(plan.model.prior_law)
    if law not in CASES:
        raise WrongCall(f"{law.__name__} is not a law the audit knows.")
    pairs = worst_pairs(plan.model.worst_moves, plan.n)
    return CASES[law](plan, pairs, reason or ATTAINED, reason is None, label, concentrated)


def worst_pairs(moves: Iterable[Move], n: int) -> tuple[Pair, ...]:
    """n − 1 records alike, the last one moved from an extreme to another."""
    found: dict[str, Pair] = {}
    for others, before, after in moves:
        crowd, name = [others] * (n - 1), f"{n - 1} at {others}, one from {before} to {after}"
        found.setdefault(f"{crowd}, {before}, {after}", Pair(name, [*crowd, before], [*crowd, after]))
    return tuple(found.values())
