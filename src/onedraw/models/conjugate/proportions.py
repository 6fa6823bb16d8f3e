"""Proportions: a Beta prior on one, a Dirichlet prior on those of declared categories (Geumlek et al., A.1, A.3, A.6.1).

Records of a Beta–Bernoulli model may be any numbers in [lower, upper]: their place in the range is a statistic in [0, 1],
which is all the theorem needs (A.3, the Beta-sampled statistical query).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.models.model import Bound, check_covers, count, declared_missing, declared_range, prior_numbers
from onedraw.models.sums.clamped_sums import STEPS, LatticeSum, Summary, Tally, summed
from onedraw.plain_text import shown
from onedraw.privacy import Promise, Provenance
from onedraw.privacy.posterior_curves import DirichletPosterior

from .distributions import Beta, Dirichlet
from .family import ConjugateModel, Interval, Move, Simulated, binomial, inverted, pair


class _Shares(ConjugateModel):
    """What a Beta and a Dirichlet prior have in common: a record adds r in all to the parameters."""

    support = (0.0, 1.0)

    prior: tuple[float, ...]

    def _float_error(self, n: int, weight: float, prior_factor: float) -> float:
        """A share is at most 1 and made of logarithms of at most 40 that matter."""
        return 2.0**-47

    def _largest_shape(self, n: int, weight: float, prior_factor: float) -> float:
        return sum(self.prior) / prior_factor + weight * n

    def curve(self, n: int, weight: float, prior_factor: float) -> DirichletPosterior:
        return DirichletPosterior(self.prior, n, weight, prior_factor)

    def interval(
        self, draw: Array, level: float, *, n: int, weight: float, prior_factor: float, noise: float | None = None
    ) -> Interval:
        from scipy.special import betainc

        total = float(sum(self.prior))

        def ends(value: float, strength: float) -> tuple[float, ...]:
            a, b = strength / prior_factor, (total - strength) / prior_factor

            def covered(truth: float) -> float:
                counts, masses = binomial(n, truth)
                return float(masses @ betainc(a + weight * counts, b + weight * (n - counts), value))

            variance = value * (1.0 - value)
            errors = math.sqrt(variance / n), math.sqrt(variance / (weight * n + a + b + 1.0))
            return *inverted(covered, level, (0.0, 1.0)), *errors

        return Interval(*map(np.array, zip(*map(ends, draw.tolist(), self.prior[: len(draw)]), strict=True)))

    def _moves(self, levels: Sequence[Any], strengths: Sequence[float]) -> tuple[Move, ...]:
        """All other records at one extreme, the last from any extreme to any other; of pairs alike under the prior one."""
        found: dict[Any, Move] = {}
        places = range(len(levels))
        for crowd, a, b in ((crowd, a, b) for crowd in places for a in places for b in places if a < b):
            ends = frozenset([(strengths[a], crowd == a), (strengths[b], crowd == b)])
            found.setdefault((strengths[crowd], ends), Move(levels[crowd], levels[a], levels[b]))
        return tuple(found.values())


@dataclass(frozen=True)
class BetaBernoulli(_Shares):
    """Beta(a, b) prior on a proportion.

    | record | counts as |
    | --- | --- |
    | below lower, above upper | lower, upper |
    | NaN, ±inf, None, not a number | ``missing`` (lower, unless declared) |
    """

    kind, quantity = "proportion", "proportion"
    asked_of, kinds = ("binary",), ("binary", "number")
    parameter_names = ("proportion",)

    prior: tuple[float, float] = (1.0, 1.0)
    lower: float = 0.0
    upper: float = 1.0
    missing: float | None = None
    public_records: int = 0

    def __post_init__(self) -> None:
        lower, upper = declared_range(self.lower, self.upper)
        missing = declared_missing(self.missing, lower, upper, default=lower)
        self._set(prior=prior_numbers("Beta", self.prior, length=2), lower=lower, upper=upper, missing=missing)
        super().__post_init__()

    @classmethod
    def for_column(cls, column: Any, *, n: int, budget: Promise, prior: Sequence[float] | None = None) -> Self:
        """Beta(1, 1) by default: uniform."""
        return cls(prior=pair(prior, (1.0, 1.0)))

    @classmethod
    def example(cls, strength: float = 1.0) -> Self:
        return cls(prior=(strength, strength))

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {
            "statistic": Bound((0.0, 1.0), Provenance.ENFORCED, "records are clamped and rounded to a public lattice"),
            "sensitivity": Bound(1.0, Provenance.PROVED, "replacing a record moves the exact sum by at most 1"),
            "order_limit": Bound(1.0 + min(self.prior), Provenance.PROVED, "λ* = 1 + min(a, b) of the plain posterior"),
        }

    def _check_column(self, column: Any) -> None:
        if column.role == "number":
            check_covers(self, column)

    def _summarise(self, data: Any) -> Summary:
        assert self.missing is not None
        rows, total = summed(data, LatticeSum(self.lower, self.upper, self.missing))
        return Summary(rows, (Fraction(int(total[0]), STEPS),))

    def added(self, summary: Summary) -> tuple[Fraction, ...]:
        (successes,) = summary.total
        return successes, summary.n - successes

    def share(self, record: float) -> tuple[float, ...]:
        place = (record - self.lower) / (self.upper - self.lower)
        return place, 1.0 - place

    def law(self, parameters: Sequence[Fraction]) -> Beta:
        return Beta(*parameters)

    @property
    def worst_moves(self) -> tuple[Move, ...]:
        return self._moves((self.lower, self.upper), self.prior[::-1])

    def simulate(self, n: int, generator: np.random.Generator) -> Simulated:
        truth = np.atleast_1d(generator.beta(*self.prior))
        total = generator.binomial(n, truth).astype(float)
        return Simulated(truth, total, total / n)

    @property
    def title(self) -> str:
        return "Proportion" if (self.lower, self.upper) == (0.0, 1.0) else "Average"

    @property
    def meaning(self) -> str:
        if self.title == "Proportion":
            return "The share of records with the positive value."
        return f"The average of the column, declared to lie between {shown(self.lower)} and {shown(self.upper)}."

    def unit(self, name: str) -> str:
        return "share" if self.title == "Proportion" else ""

    @property
    def public_range(self) -> tuple[float, float]:
        return self.lower, self.upper

    def column_units(self, centre: float = 0.0, scale: float = 1.0) -> tuple[Array, Array, Array]:
        """A share of the range lower … upper."""
        change, ones, zeros = super().column_units()
        return change, ones * (self.upper - self.lower), zeros + self.lower


@dataclass(frozen=True)
class DirichletCategorical(_Shares):
    """Dirichlet(α) prior on the probabilities of len(prior) categories; ``levels`` are their names, if they
    have any.

    | record | counts as |
    | --- | --- |
    | a code 0, …, len(prior) − 1 (2.0 is 2) | itself |
    | any other number, NaN, None, not a number | category ``missing`` (0, unless declared) |
    """

    kind: ClassVar[str] = "histogram"
    title: ClassVar[str] = "Histogram"
    form: ClassVar[str] = "shares"
    meaning: ClassVar[str] = "The share of each level; together they make up the whole."
    quantity: ClassVar[str] = "category probabilities"
    asked_of, kinds = ("category", "binary"), ("category", "binary")

    prior: tuple[float, ...]
    levels: tuple[str, ...] | None = None
    missing: int = 0
    public_records: int = 0

    def __post_init__(self) -> None:
        prior = prior_numbers("Dirichlet", self.prior)
        if len(prior) < 2:
            raise InvalidModel(
                f"A Dirichlet prior needs one parameter for each of at least two categories, got {len(prior)}. With one "
                "category there is nothing to estimate."
            )
        levels = None if self.levels is None else tuple(str(level) for level in self.levels)
        if levels is not None and len(set(levels)) != len(prior):
            raise InvalidModel(
                f"levels must name the {len(prior)} categories of the prior, each once; got {len(levels)}."
            )
        missing = count("missing", self.missing)
        if missing >= len(prior):
            raise InvalidModel(f"missing must be one of the codes 0 to {len(prior) - 1}, got {missing}.")
        self._set(prior=prior, levels=levels, missing=missing)
        super().__post_init__()

    @classmethod
    def for_column(cls, column: Any, *, n: int, budget: Promise, prior: Sequence[float] | None = None) -> Self:
        """One pseudo-record per level by default."""
        return cls(prior=(1.0,) * len(column.labels) if prior is None else tuple(prior), levels=column.labels)

    @classmethod
    def example(cls, strength: float = 1.0) -> Self:
        return cls(prior=(strength,) * 3)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.levels or tuple(f"category {code}" for code in range(len(self.prior)))

    @property
    def _bounds(self) -> dict[str, Bound]:
        moved = "replacing a record moves one count down and one up, by 1 each"
        return {
            "categories": Bound(float(len(self.prior)), Provenance.ENFORCED, "undeclared codes become `missing`"),
            "sensitivity": Bound(1.0, Provenance.PROVED, moved),
            "order_limit": Bound(1.0 + min(self.prior), Provenance.PROVED, "λ* = 1 + min α of the plain posterior"),
        }

    def _check_column(self, column: Any) -> None:
        declared = 2 if column.levels is None else len(column.levels)
        if declared != len(self.prior):
            raise InvalidModel(
                f"The target is declared with {declared} levels, the prior has {len(self.prior)} parameters. Each level needs "
                f"its own. Pass a prior of length {declared}."
            )

    def _summarise(self, data: Any) -> Summary:
        rows, counts = summed(data, Tally(len(self.prior), self.missing))
        return Summary(rows, tuple(Fraction(int(value)) for value in counts))

    def added(self, summary: Summary) -> tuple[Fraction, ...]:
        return summary.total

    def share(self, record: int) -> tuple[float, ...]:
        return tuple(float(code == record) for code in range(len(self.prior)))

    def law(self, parameters: Sequence[Fraction]) -> Dirichlet:
        return Dirichlet(tuple(parameters))

    @property
    def worst_moves(self) -> tuple[Move, ...]:
        return self._moves(range(len(self.prior)), self.prior)

    def simulate(self, n: int, generator: np.random.Generator) -> Simulated:
        truth = generator.dirichlet(self.prior)
        total = generator.multinomial(n, truth).astype(float)
        return Simulated(truth, total, total / n)

    def unit(self, name: str) -> str:
        return "share"
