"""A conjugate family answers for itself: posterior, promise, simulation, interval, worst neighbours, meaning.

A likelihood with a conjugate prior has one closed-form law as its posterior, with parameters η₀/m + r·Σ η(x_i): r turns the
records down (Diffused), m the prior up (Concentrated), r = m = 1 is Bayes' rule. A family says what η₀ and η are, which law
has such parameters, and what is known about it; whoever draws, promises, plans, audits or reports asks it and knows no names.
A new family is one file of this package, its public name in `onedraw.models`, and its ``kind`` among the words of ``--model``
(`planning.options`).

**The interval.** A draw depends on the records through one sum T whose law at a given truth is known under the model, so
F(draw; truth) = E_T P(a draw ≤ this one | T) is a closed form up to one sum, and the truths with α/2 ≤ F ≤ 1 − α/2 are an
interval of level 1 − α: no replicates, no regime. It covers sampling and privacy noise together.

| family | law of the sum T |
| --- | --- |
| Beta–Bernoulli, each level of a Dirichlet | binomial (of statistics in [0, 1] the most variable there is with its mean) |
| Gamma–Poisson | Poisson, clamped records by their first two moments |
| Gamma–Exponential | normal with the first two moments of clamped durations |
| Gaussian mean | normal; the records' standard deviation as declared, or the largest their range and the mean allow |
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.models.model import ColumnModel, count
from onedraw.models.sums.clamped_sums import Summary
from onedraw.privacy import Curve, GaussianDP, Promise, RenyiDP, RepeatedCurve
from onedraw.privacy.numbers import crossing

from .distributions import Law

MAX_SHAPE = 2.0**44
"""Largest shape parameter, or sum of a Dirichlet law's, whose draw keeps more digits than its deviation needs (samplers/lattice.md)."""

DEVIATIONS = 8.0
MOST_NODES = 4001

_NODES, _MASSES = np.polynomial.hermite_e.hermegauss(41)
_MASSES = _MASSES / _MASSES.sum()


class Simulated(NamedTuple):
    """A truth the prior believes in, the sum of n clamped records at that truth, and the plain estimate from it."""

    truth: Array
    total: Array
    estimate: Array


class Interval(NamedTuple):
    """Per coordinate: the ends, and the standard errors from the sample and from the draw."""

    low: Array
    high: Array
    sampling: Array
    privacy: Array


class Move(NamedTuple):
    """Neighbours: all other records are alike, and one changes from ``before`` to ``after``."""

    others: Any
    before: Any
    after: Any


class ConjugateModel(ColumnModel):
    """A likelihood with a conjugate prior: the posterior is a closed-form law of the records' exact sum.

    **Guarantee.** `summarise` never fails on the value of a record, and the sum of n records differs from
    that of a neighbour by at most one record's range, exactly: statistics are integers on a public lattice.
    """

    kind: ClassVar[str]
    """The word of ``--model``."""

    asked_of: ClassVar[tuple[str, ...]]
    """The kinds of schema column that ``--model`` is asked about."""

    plain_draw_is_useless: ClassVar[bool] = False
    """Whether the divergence of plain posteriors of neighbours grows with n."""

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """Where a drawn number lies."""

    error_is_telling: ClassVar[bool] = True
    """Whether an error averaged over the prior says something: of rates, truths beyond the declared cap would outweigh all."""

    prior: Any
    public_records: int

    def __post_init__(self) -> None:
        self._set(public_records=count("public_records", self.public_records))

    # ── posterior ──

    @property
    def prior_parameters(self) -> tuple[Fraction, ...]:
        """η₀, exactly."""
        return tuple(map(Fraction, self.prior))

    @abc.abstractmethod
    def added(self, summary: Summary) -> tuple[Fraction, ...]:
        """Σ η(x_i), from the exact sum."""

    @abc.abstractmethod
    def share(self, record: Any) -> tuple[float, ...]:
        """η(x) of one record within the range, in plain numbers: what audits add up, apart from the exact sums."""

    @abc.abstractmethod
    def law(self, parameters: Sequence[Fraction]) -> Law:
        """Return the law with these exact parameters."""

    @property
    def prior_law(self) -> Law:
        """The prior of the released quantity."""
        return self.law(self.prior_parameters)

    def posterior(self, summary: Summary, *, weight: float = 1.0, prior_factor: float = 1.0) -> Law:
        """Return the law η₀/m + r·Σ η(x_i), the plain posterior at r = m = 1; its parameters are exact."""
        r, m = Fraction(weight), Fraction(prior_factor)
        pairs = zip(self.prior_parameters, self.added(summary), strict=True)
        return self.law([prior / m + r * added for prior, added in pairs])

    @property
    def prior_scale(self) -> float:
        return min(self.prior_law.deviation)

    def float_error(self, n: int, parameters: Mapping[str, float]) -> float:
        """Bound the error of double precision in one drawn number; refuse a posterior that it cannot draw (samplers/lattice.md)."""
        weight = parameters.get("r", parameters.get("weight", 1.0))
        factor = parameters.get("prior_factor", 1.0)
        if not self._largest_shape(n, weight, factor) <= MAX_SHAPE:
            raise PromiseRefused(
                f"This posterior may have parameters above 2^{math.log2(MAX_SHAPE):.0f}, and double precision cannot draw from it without "
                "showing a record in the last digits. Nothing was charged. Use a weaker prior, or a larger budget."
            )
        return self._float_error(n, weight, factor)

    @abc.abstractmethod
    def _float_error(self, n: int, weight: float, prior_factor: float) -> float: ...

    def _largest_shape(self, n: int, weight: float, prior_factor: float) -> float:
        """The largest shape parameter of a posterior of n records; 0 for a law that has none."""
        return 0.0

    def with_public(self, data: Any) -> Self:
        """The same model with public records in its prior (Geumlek et al., A.2); they cost no budget."""
        summary = self.summarise(data)
        public = self.public_records + summary.n
        return dataclasses.replace(self, **self._prior_with(summary), public_records=public)  # type: ignore[type-var]  # a dataclass

    def _prior_with(self, summary: Summary) -> dict[str, Any]:
        """The arguments of the prior that has seen public records."""
        return {"prior": self.posterior(summary).parameters}

    # ── records ──

    @abc.abstractmethod
    def _summarise(self, data: Any) -> Summary: ...

    def summarise(self, data: Any) -> Summary:
        """n and the exact sum of the statistics, in one pass, for a `Records`, an array or a sequence."""
        self.check(data)
        return self._summarise(data)

    # ── what is known of a draw ──

    def curve(self, n: int, weight: float, prior_factor: float) -> Curve:
        """The Rényi divergences between posteriors of neighbours; of families whose `promise` is such a curve."""
        raise NotImplementedError

    def promise(
        self, *, n: int, weight: float = 1.0, prior_factor: float = 1.0, draws: int = 1
    ) -> RenyiDP | GaussianDP:
        """The promise, for one record, of ``draws`` draws together."""
        curve = self.curve(n, weight, prior_factor)
        return RenyiDP(curve if draws == 1 else RepeatedCurve(curve, draws))

    @property
    @abc.abstractmethod
    def worst_moves(self) -> tuple[Move, ...]:
        """Neighbours among which the promise is attained."""

    @abc.abstractmethod
    def simulate(self, n: int, generator: np.random.Generator) -> Simulated:
        """Records that the model expects, before any is read; only their sum is drawn, so n costs nothing."""

    @abc.abstractmethod
    def interval(
        self, draw: Array, level: float, *, n: int, weight: float, prior_factor: float, noise: float | None = None
    ) -> Interval:
        """The interval of one draw; ``noise`` is the records' standard deviation where it is publicly known."""

    # ── for people ──

    @classmethod
    @abc.abstractmethod
    def for_column(cls, column: Any, *, n: int, budget: Promise, prior: Sequence[float] | None = None) -> Self:
        """The model of a declared column, with a weak public prior unless one is given."""

    @classmethod
    @abc.abstractmethod
    def example(cls, strength: float = 1.0) -> Self:
        """A small one whose prior is worth about so many records, which the audit attacks."""


def pair(prior: Sequence[float] | None, default: tuple[float, float]) -> tuple[float, float]:
    """The two numbers of a prior, as given or by default."""
    if prior is None:
        return default
    if len(prior) != 2:
        raise InvalidModel(f"This prior has two numbers, got {len(prior)}. Pass them as --prior A,B.")
    return float(prior[0]), float(prior[1])


# ── intervals by inversion ───────────────────────────────────────────────────────────────────────────────────────────


def inverted(covered: Callable[[float], float], level: float, ends: tuple[float, float]) -> tuple[float, float]:
    """The truths at which F(draw; truth) is (1 + level)/2 and (1 − level)/2; F decreases in the truth."""

    def truth_at(wanted: float) -> float:
        if covered(ends[0]) <= wanted:
            return ends[0]
        if covered(ends[1]) >= wanted:
            return ends[1]
        return crossing(lambda truth: covered(truth) - wanted, *ends, precision=1e-12)

    return truth_at((1.0 + level) / 2.0), truth_at((1.0 - level) / 2.0)


def binomial(n: int, p: float) -> tuple[Array, Array]:
    """Counts and their probabilities, those of less than 1e-15 in all left out; of very many every few only."""
    from scipy import special

    spread = DEVIATIONS * math.sqrt(n * p * (1.0 - p)) + 20.0
    first, last = max(0, math.floor(n * p - spread)), min(n, math.ceil(n * p + spread))
    counts = np.arange(first, last + 1, max(1, (last - first) // MOST_NODES), dtype=np.float64)
    logs = (
        special.gammaln(n + 1.0) - special.gammaln(counts + 1.0) - special.gammaln(n - counts + 1.0)
        + special.xlogy(counts, p) + special.xlog1py(n - counts, -p)
    )  # fmt: skip
    masses = np.exp(logs)
    return counts, masses / masses.sum()


def normal_sums(n: int, mean: float, variance: float, largest: float) -> tuple[Array, Array]:
    """Sums of n records in [0, largest] with these moments, and their probabilities, by quadrature of a normal law."""
    return np.clip(n * mean + math.sqrt(n * variance) * _NODES, 0.0, n * largest), _MASSES
