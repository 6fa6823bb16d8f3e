"""Rates, with a Gamma prior: of counts (Geumlek et al., A.6.2) and of durations; records are clipped to [0, cap].

A count moves the *shape* of the posterior and n its rate. A duration moves the *rate* and n the shape, so the divergence
between neighbours of a plain posterior of durations grows like n: only Diffused and Concentrated sampling make a useful
promise (see mechanisms).
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel, InvalidSchema, PromiseRefused
from onedraw.models.model import Bound, count, declared_missing, number, positive_number, prior_numbers
from onedraw.models.sums.clamped_sums import STEPS, CountSum, LatticeSum, Summary, summed
from onedraw.plain_text import shown
from onedraw.privacy import Promise, Provenance
from onedraw.privacy.posterior_curves import GammaExponentialPosterior, GammaPoissonPosterior

from .distributions import GAMMA_BITS, Gamma
from .family import ConjugateModel, Interval, Move, Simulated, inverted, normal_sums, pair

RELATIVE_ERROR = 2.0**-44
"""Of a Gamma draw in double precision: 3·2⁻⁵³ of the logarithms it is made of, 64 and that of the rate."""

MAX_LOGARITHM = 100.0
"""Of the rate, for that error."""


class _Rate(ConjugateModel):
    """What the two have in common: one sum of records in [0, cap], of which the first two moments are known."""

    error_is_telling = False
    support = (0.0, math.inf)
    parameter_names = ("rate",)
    significant_bits = GAMMA_BITS

    _adds_to: ClassVar[int]
    """What a record's value adds to, and n to the other: 0 is the posterior's shape, 1 its rate."""
    _clipped: ClassVar[str]

    prior: tuple[float, float]
    cap: float
    missing: float

    def __post_init__(self) -> None:
        declared_missing(self.missing, 0.0, self.cap, default=0.0)
        self._set(prior=prior_numbers("Gamma", self.prior, length=2))
        super().__post_init__()

    @property
    def _bounds(self) -> dict[str, Bound]:
        cap, moved = float(self.cap), "replacing a record moves the exact sum by at most the cap"
        limit = f"λ* = 1 + {('shape', 'rate')[self._adds_to]}/cap of the plain posterior"
        return {
            "cap": Bound(cap, Provenance.ENFORCED, self._clipped),
            "sensitivity": Bound(cap, Provenance.PROVED, moved),
            "order_limit": Bound(1.0 + self.prior[self._adds_to] / cap, Provenance.PROVED, limit),
        }

    def _float_error(self, n: int, weight: float, prior_factor: float) -> float:
        """Relative to the draw, which keeps `GAMMA_BITS` significant bits; here about the prior's mean."""
        rates = [
            (self.prior[1] + added * prior_factor * weight) / prior_factor for added in (0.0, self._most_added(1) * n)
        ]
        logarithm = max(abs(math.log(rate)) for rate in rates)
        if logarithm > MAX_LOGARITHM:
            raise PromiseRefused(
                f"The posterior's rate may be as extreme as e^±{logarithm:.0f}, and its draw would lose digits that keep "
                "records apart. Nothing was charged. Use other units."
            )
        return RELATIVE_ERROR * self.prior_law.mean[0]

    def _largest_shape(self, n: int, weight: float, prior_factor: float) -> float:
        return self.prior[0] / prior_factor + weight * n * self._most_added(0)

    def _most_added(self, parameter: int) -> float:
        """The most that one record adds to the shape (0) or the rate (1)."""
        return float(self.cap) if parameter == self._adds_to else 1.0

    @property
    def worst_moves(self) -> tuple[Move, ...]:
        return (Move(0, 0, self.cap),)

    def law(self, parameters: Sequence[Fraction]) -> Gamma:
        return Gamma(*parameters)

    @abc.abstractmethod
    def clamped_moments(self, rate: Any) -> tuple[Any, Any]:
        """Mean and variance of one clamped record; of one rate, or of each of an array."""

    def simulate(self, n: int, generator: np.random.Generator) -> Simulated:
        truth = generator.gamma(self.prior[0], 1 / self.prior[1])
        mean, variance = self.clamped_moments(truth)
        total = n * mean + math.sqrt(n * variance) * generator.standard_normal(1)
        total = np.clip(total, self._least * self.cap, n * self.cap)
        events, time = self._placed(total, n)
        return Simulated(np.atleast_1d(truth), total, events / time)

    _least: ClassVar[float] = 0.0
    """Of a simulated sum, as a share of the cap."""

    def interval(
        self, draw: Array, level: float, *, n: int, weight: float, prior_factor: float, noise: float | None = None
    ) -> Interval:
        from scipy.special import gammainc

        value, prior = float(draw[0]), [part / prior_factor for part in self.prior]

        def covered(truth: float) -> float:
            sums, masses = normal_sums(n, *self.clamped_moments(truth), self.cap)
            shape, rate = (a + weight * added for a, added in zip(prior, self._placed(sums, n), strict=True))
            return float(masses @ gammainc(shape, rate * value))

        largest = self.largest_rate
        low, high = inverted(covered, level, (1e-9 * largest, largest))
        low = 0.0 if low == 1e-9 * largest else low
        shape = prior[0] + weight * self._placed(n * min(value, self.cap), n)[0]
        found = low, high, self.sampling_error(value, n), value / math.sqrt(shape)
        return Interval(*(np.array([part]) for part in found))

    @property
    @abc.abstractmethod
    def largest_rate(self) -> float:
        """Beyond it no interval reaches."""

    @abc.abstractmethod
    def sampling_error(self, rate: float, n: int) -> float:
        """The standard error of the rate in n records."""

    def _placed(self, total: Any, n: Any) -> tuple[Any, Any]:
        """What records of this sum add to shape and rate."""
        return (n, total) if self._adds_to else (total, n)

    def added(self, summary: Summary) -> tuple[Fraction, ...]:
        return self._placed(summary.total[0], Fraction(summary.n))

    def share(self, record: float) -> tuple[float, ...]:
        return self._placed(float(record), 1.0)


@dataclass(frozen=True)
class GammaPoisson(_Rate):
    """Poisson counts whose rate has a Gamma(shape, rate) prior: ``shape`` events seen in ``rate`` records.

    | record | counts as |
    | --- | --- |
    | below 0, above cap | 0, cap |
    | not whole | the nearest whole number |
    | NaN, ±inf, None, not a number | ``missing`` (0, unless declared) |
    """

    kind, title, quantity = "rate", "Rate of counts", "rate of counts"
    asked_of, kinds = ("count",), ("count", "binary")
    _adds_to, _clipped = 0, "counts are clipped to [0, cap]"

    prior: tuple[float, float]
    cap: int
    missing: int = 0
    public_records: int = 0

    def __post_init__(self) -> None:
        cap, missing = count("cap", self.cap, least=1), count("missing", self.missing)
        if cap > STEPS:
            raise InvalidModel(f"cap must be at most {STEPS} for exact sums, got {cap}. Count in larger units.")
        self._set(cap=cap, missing=missing)
        super().__post_init__()

    @classmethod
    def for_column(cls, column: Any, *, n: int, budget: Promise, prior: Sequence[float] | None = None) -> Self:
        """Worth one record at half the cap by default."""
        return cls(prior=pair(prior, (1.0, 2.0 / column.cap)), cap=column.cap)

    @classmethod
    def example(cls, strength: float = 1.0) -> Self:
        return cls(prior=(strength, 1.0), cap=2)

    def _summarise(self, data: Any) -> Summary:
        rows, total = summed(data, CountSum(self.cap, self.missing))
        return Summary(rows, (Fraction(int(total[0])),))

    def curve(self, n: int, weight: float, prior_factor: float) -> GammaPoissonPosterior:
        return GammaPoissonPosterior(self.prior[0], float(self.cap), weight, prior_factor)

    def clamped_moments(self, rate: Any) -> tuple[Any, Any]:
        """P(X ≥ c) = P(c, rate), and E[X; X < c] = rate·P(X ≤ c − 2): no sum over counts up to a billion."""
        from scipy.special import gammainc, gammaincc

        cap = self.cap
        below, at_cap = rate * gammaincc(cap - 1, rate), gammainc(cap, rate)
        mean = below + cap * at_cap
        square = rate**2 * gammaincc(max(cap - 2, 0), rate) + below + cap**2 * at_cap
        return mean, np.maximum(square - mean**2, 0.0)

    def sampling_error(self, rate: float, n: int) -> float:
        return math.sqrt(rate / n)

    @property
    def largest_rate(self) -> float:
        return float(self.cap)

    @property
    def meaning(self) -> str:
        return f"The expected count of a record; counts above {shown(self.cap)} were read as {shown(self.cap)}."

    @property
    def public_range(self) -> tuple[float, float]:
        return 0.0, float(self.cap)


@dataclass(frozen=True)
class GammaExponential(_Rate):
    """Exponential durations whose rate has a Gamma(shape, rate) prior: ``shape`` events in a total time
    ``rate``.

    | record | counts as |
    | --- | --- |
    | below 0, above cap | 0, cap |
    | NaN, ±inf, None, not a number | ``missing`` (0, unless declared) |
    """

    kind, title, quantity = "duration", "Rate of durations", "rate of durations"
    meaning = "Events per unit of time; its inverse is the mean duration."
    asked_of, kinds = ("number",), ("number", "count")
    _adds_to, _clipped = 1, "durations are clipped to [0, cap] and rounded to a public lattice"
    plain_draw_is_useless = True

    prior: tuple[float, float]
    cap: float
    missing: float = 0.0
    public_records: int = 0

    _least = 1e-12

    def __post_init__(self) -> None:
        self._set(cap=positive_number("cap", self.cap), missing=number("missing", self.missing))
        super().__post_init__()

    @classmethod
    def for_column(cls, column: Any, *, n: int, budget: Promise, prior: Sequence[float] | None = None) -> Self:
        """Worth two records at half the bound by default."""
        if column.lower < 0:
            raise InvalidSchema(
                f"The column is declared from {column.lower:g}, but durations start at 0. Declare lower: 0, or ask for its mean."
            )
        return cls(prior=pair(prior, (2.0, column.upper)), cap=column.upper)

    @classmethod
    def example(cls, strength: float = 1.0) -> Self:
        return cls(prior=(2.0 * strength, 2.0 * strength), cap=2.0)

    def _summarise(self, data: Any) -> Summary:
        rows, steps = summed(data, LatticeSum(0.0, self.cap, self.missing))
        return Summary(rows, (int(steps[0]) * Fraction(self.cap) / STEPS,))

    def curve(self, n: int, weight: float, prior_factor: float) -> GammaExponentialPosterior:
        return GammaExponentialPosterior(*self.prior, self.cap, n, weight, prior_factor)

    def clamped_moments(self, rate: Any) -> tuple[Any, Any]:
        """Of x = rate·cap: cap·(1 − e^{−x})/x and the second moment; below 1/1000, where digits cancel, by their series."""
        x = rate * self.cap
        mean = np.where(x < 1e-3, 1.0 - x / 2.0 + x**2 / 6.0 - x**3 / 24.0, -np.expm1(-x) / x)
        square = np.where(x < 1e-3, 1.0 - 2.0 * x / 3.0 + x**2 / 4.0 - x**3 / 15.0, 2.0 * (mean - np.exp(-x)) / x)
        return self.cap * mean, self.cap**2 * np.maximum(square - mean**2, 0.0)

    def sampling_error(self, rate: float, n: int) -> float:
        return rate / math.sqrt(n)

    @property
    def largest_rate(self) -> float:
        return 1e3 / self.cap
