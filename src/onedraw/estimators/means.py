"""Means, sums, variances and rates of numbers in declared bounds."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

from onedraw.errors import InvalidModel
from onedraw.models import GammaPoisson, GaussianMean, NumberTable
from onedraw.planning import Choices
from onedraw.privacy import Promise

from .one_column import Array, ColumnEstimator, PosteriorEstimator, TableEstimator, declared_range


class NumberColumn(ColumnEstimator):
    """What statistics of numbers in declared bounds have in common."""

    bounds: Any
    show: ClassVar[str]
    missing: ClassVar[float | None] = None

    def _table(self, groups: dict[str, Any]) -> NumberTable:
        return NumberTable(*declared_range(self), show=self.show, missing=self.missing, **groups)

    def _keep(self, centre: Array) -> None:
        setattr(self, f"{self.show}_", self._of_groups(centre))


@dataclass(eq=False, repr=False, kw_only=True)
class DPMean(NumberColumn, PosteriorEstimator):
    """The mean of numbers in declared ``bounds`` = (low, high), under differential privacy.

    ``DPMean(epsilon=1.0, bounds=(0, 100)).fit(column).mean_``

    With plain noise a second moment is released for the same spend, and the interval uses it. Parameters as in
    `DPProportion`; ``prior`` = (mean, worth in records); ``noise``, the records' standard deviation (in every group) if
    it is publicly known: the interval is then built with it, and it bears on nothing else.

    Attributes: ``mean_`` (with ``by`` an array, in the order of ``groups_``, and ``records_``, the released sizes of
    private groups), and those of `DPProportion`.
    """

    show: ClassVar[str] = "mean"

    bounds: Any = None
    noise: Any = None

    def _model(self, n: int, budget: Promise) -> Any:
        low, high = declared_range(self)
        return GaussianMean.for_column(SimpleNamespace(lower=low, upper=high), n=n, budget=budget, prior=self.prior)

    def _planned(self, budget: Promise, n: int) -> Choices:
        if self.noise is not None and not (isinstance(self.noise, numbers.Real) and 0 < float(self.noise) < math.inf):
            raise InvalidModel(
                f"noise is the records' standard deviation, a positive number, or None, got {self.noise!r}."
            )
        return super()._planned(budget, n)


@dataclass(eq=False, repr=False, kw_only=True)
class DPSum(NumberColumn, TableEstimator):
    """The sum of these records' numbers, each in declared ``bounds`` = (low, high), under differential privacy.

    ``DPSum(epsilon=1.0, bounds=(0, 100)).fit(column).sum_``

    Parameters as in `DPProportion`, without a prior.

    Attributes: ``sum_``, and those of `DPMean`.
    """

    show: ClassVar[str] = "sum"

    bounds: Any = None


@dataclass(eq=False, repr=False, kw_only=True)
class DPVariance(NumberColumn, TableEstimator):
    """The variance of numbers in declared ``bounds`` = (low, high), under differential privacy.

    ``DPVariance(epsilon=1.0, bounds=(0, 100)).fit(column).variance_``

    Parameters as in `DPProportion`, without a prior.

    Attributes: ``variance_``, and those of `DPMean`.
    """

    show: ClassVar[str] = "variance"

    bounds: Any = None


@dataclass(eq=False, repr=False, kw_only=True)
class DPRate(NumberColumn, PosteriorEstimator):
    """The rate of counts, each at most the cap of ``bounds`` = (0, cap), under differential privacy.

    ``DPRate(epsilon=1.0, bounds=(0, 20)).fit(column).rate_``

    With plain noise it is the mean of the counts as they are. Parameters as in `DPProportion`; ``prior`` = (events,
    records) of a Gamma prior.

    Attributes: ``rate_``, and those of `DPMean`.
    """

    show: ClassVar[str] = "rate"
    missing: ClassVar[float | None] = 0.0

    bounds: Any = None

    def _cap(self) -> int:
        low, cap = declared_range(self)
        if low != 0 or cap != int(cap):
            raise InvalidModel(
                f"Counts start at 0 and are whole, got bounds ({low:g}, {cap:g}). Pass bounds=(0, 20), say."
            )
        return int(cap)

    def _table(self, groups: dict[str, Any]) -> NumberTable:
        self._cap()
        return super()._table(groups)

    def _model(self, n: int, budget: Promise) -> GammaPoisson:
        return GammaPoisson.for_column(SimpleNamespace(cap=self._cap()), n=n, budget=budget, prior=self.prior)
