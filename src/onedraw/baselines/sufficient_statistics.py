"""Noise on the sums of a conjugate family, and then Bayes' rule as if they were the true ones.

Foulds, Geumlek, Welling, Chaudhuri, "On the Theory and Practice of Privacy-Preserving Bayesian Data Analysis" (UAI
2016, arXiv:1603.07294): the posterior of a conjugate family knows the records through one sum, so noise on that sum
makes the whole posterior private, and any number of draws costs nothing. Theorem and proof, and when anybody should
still use it: sufficient_statistics.md.

| family | whole sums | one replaced record moves them by |
| --- | --- | --- |
| Beta–Bernoulli, Gamma–Exponential | places in the range, 2³² steps | all of the range |
| Dirichlet–categorical | counts | 1 down and 1 up: 2 in L1, √2 in L2 |
| Gamma–Poisson | counts up to the cap | the cap |
| Gaussian mean | (x − centre), 2³¹ steps to the bound | 2·bound in L2, √dim times that in L1 |

The noise is larger than the posterior's own spread where n is small, and the posterior does not know of it: its
intervals cover too rarely. `NoiseAware` publishes the same sums and says what they are worth.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.errors import UnsupportedBudget
from onedraw.methods.added_noise.mechanism import Moving, NoiseOnSums, NoiseTarget, whole_numbers
from onedraw.methods.base import Posterior
from onedraw.models import ConjugateModel, DirichletCategorical, GammaExponential, GammaPoisson, GaussianMean
from onedraw.models.conjugate.distributions import Gamma, Law, Normal
from onedraw.models.sums.clamped_sums import RADIUS_STEPS, STEPS, Summary
from onedraw.models.tables.table import proportional
from onedraw.plans import Plan, Request
from onedraw.privacy.numbers import confidence_level, root_up

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases


@dataclass(frozen=True)
class FamilySums:
    """The exact sums of a family in whole steps of ``unit``, and how far one replaced record moves them."""

    entries: int
    unit: Fraction
    """One step, in the unit of the model's own sum."""
    largest: int
    apart: int
    """The L1 distance of the sums of neighbours, in steps."""
    squared: int
    """The square of their L2 distance."""
    most_moved: int

    def reach(self, law: str) -> int:
        return self.apart if law == "laplace" else self.squared

    def whole(self, summary: Summary) -> tuple[int, ...]:
        """The exact sums, in steps."""
        steps = [total / self.unit for total in summary.total]
        assert all(step.denominator == 1 for step in steps)
        return tuple(int(step) for step in steps)


def sums_of(model: ConjugateModel) -> FamilySums:
    """What is summed for this family; proofs in sufficient_statistics.md."""
    if isinstance(model, DirichletCategorical):
        return FamilySums(len(model.prior), Fraction(1), 1, 2, 2, 2)
    if isinstance(model, GammaPoisson):
        return FamilySums(1, Fraction(1), model.cap, model.cap, model.cap**2, 1)
    if isinstance(model, GaussianMean):
        across = 2 * RADIUS_STEPS
        in_l1 = math.ceil(Fraction(root_up(Fraction(model.dim * across**2)))) if model.dim > 1 else across
        unit = Fraction(model.bound) / RADIUS_STEPS
        return FamilySums(model.dim, unit, RADIUS_STEPS, in_l1, across**2, model.dim)
    width = Fraction(model.cap) if isinstance(model, GammaExponential) else Fraction(1)
    return FamilySums(1, width / STEPS, STEPS, STEPS, STEPS**2, 1)


def feasible(model: ConjugateModel, n: int, noisy: Array) -> Array:
    """The nearest sums that n records can have: noise carries sums out of their range, and no posterior has a negative
    count."""
    if isinstance(model, DirichletCategorical):
        return proportional(noisy - noisy.max(), float(n))  # a shift of all changes nothing, and keeps the digits
    if isinstance(model, GaussianMean):
        length = float(np.linalg.norm(noisy))
        return noisy * min(1.0, n * model.bound / length) if length > 0.0 else noisy
    largest = float(model.cap) if isinstance(model, GammaPoisson | GammaExponential) else 1.0
    return np.clip(noisy, 0.0, n * largest)


class WholeSums(Moving, Protocol):
    """Sums of whole numbers that are published with noise."""

    @property
    def entries(self) -> int: ...

    @property
    def unit(self) -> Fraction: ...

    def whole(self, summary: Any) -> tuple[int, ...]:
        """The exact sums, in steps of the unit."""


@dataclass(frozen=True)
class FamilyNoise(NoiseOnSums):
    """What the naive and the noise-aware posterior share: the same sums, the same noise, the same promise."""

    def sums(self, request: Request) -> WholeSums:
        if not isinstance(request.model, ConjugateModel):
            raise UnsupportedBudget(
                f"{self.title} is about the sum that a conjugate family knows its records by, and "
                f"{type(request.model).__name__} has none. Use BetaBernoulli, DirichletCategorical, GaussianMean, GammaPoisson or GammaExponential."
            )
        check_one_draw(self.title, request)
        return sums_of(request.model)

    def target(self, plan: Plan, summary: Summary) -> NoiseTarget:
        return NoiseTarget(self.sums(plan.request).whole(summary), plan)

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        return {"noisy sums": self.sums(plan.request).entries}

    @abc.abstractmethod
    def posterior(self, plan: Plan, stages: Mapping[str, Any]) -> Posterior: ...

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array:
        return np.asarray(self.posterior(plan, stages).mean)


def check_one_draw(title: str, request: Request) -> None:
    if request.draws != 1:
        raise UnsupportedBudget(
            f"{title} publishes noisy sums once, and draws from their posterior cost nothing afterwards. Leave out "
            "draws, and make as many as you like by release.posterior(size)."
        )


@dataclass(frozen=True)
class SufficientStatistics(FamilyNoise):
    """The posterior of a conjugate family from noisy sums, as if they were the true ones (Foulds et al. 2016).

    **Guarantee.** The noisy sums keep the plan's promise; everything else is post-processing of them. ``law`` is
    "laplace", "gaussian", or None for the one with less noise under the budget.

    | what follows | how |
    | --- | --- |
    | the released estimate | the posterior's mean |
    | `Release.posterior(size)` | independent draws, as many as one likes |
    | `Release.conf_int` | refused: the interval would leave out the noise. `naive_posterior` gives it by that name |
    """

    title: ClassVar[str] = "Perturbed sufficient statistics"

    def heading(self, plan: Plan) -> str:
        return f"a posterior from sums with discrete {str(self.law).capitalize()} noise, taken for the true ones"

    def posterior(self, plan: Plan, stages: Mapping[str, Any]) -> NaivePosterior:
        return NaivePosterior.of(plan, whole_numbers(stages))

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.family_sums import family_sums_case

        return family_sums_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.family_sums import sufficient_statistics_cases

        return {"baselines": sufficient_statistics_cases}


@dataclass(frozen=True)
class NaivePosterior:
    """The family's own posterior of a noisy sum, brought into the range of true ones."""

    law: Law

    too_narrow: ClassVar[str] = (
        "this posterior takes the noisy sums for the true ones, so that its intervals leave out the noise and cover "
        "too rarely. Release with baselines.NoiseAware() instead, which publishes the same sums at the same price"
    )

    @classmethod
    def of(cls, plan: Plan, noisy: Array) -> NaivePosterior:
        model = plan.model
        total = feasible(model, plan.n, noisy * float(sums_of(model).unit))
        return cls(model.posterior(Summary(plan.n, tuple(map(Fraction, total.tolist())))))

    @property
    def mean(self) -> Array:
        return np.array(self.law.mean)

    @property
    def errors(self) -> tuple[Array, Array]:
        return np.array(self.law.deviation), np.zeros(len(self.law.mean))

    def draw(self, size: int, generator: Any) -> Array:
        return self.law.draws(generator, size).reshape(size, -1)

    def interval(self, level: float, change: Any = None) -> Array:
        return np.stack([quantiles(self.law, part) for part in tails(level)], axis=1)


def tails(level: float) -> tuple[float, float]:
    """The two probabilities that a central interval lies between."""
    level = confidence_level(level)
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0


def quantiles(law: Law, probability: float) -> Array:
    """Of each coordinate by itself."""
    if isinstance(law, Normal):
        return np.array(law.mean) + math.sqrt(law.variance) * float(special.ndtri(probability))
    if isinstance(law, Gamma):
        shape, rate = law.parameters
        return np.array([special.gammaincinv(shape, probability) / rate])
    shares = np.array(law.parameters)  # of a Beta or Dirichlet law
    found = special.betaincinv(shares, shares.sum() - shares, probability)
    return np.asarray(found[: len(law.mean)])


def naive_posterior(plan: Plan, noisy: Sequence[float]) -> NaivePosterior:
    """The posterior of given noisy sums, in whole steps, under a plan of either mechanism: what Foulds et al. would
    have said."""
    return NaivePosterior.of(plan, np.asarray(noisy, dtype=np.float64))
