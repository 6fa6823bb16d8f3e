"""Quantiles of one column, selected by rank: no prior, no draw of a posterior, ties and spikes as they are."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from onedraw.errors import InvalidModel, WrongCall
from onedraw.models import ColumnQuantiles
from onedraw.planning import Choices, QuantileQuestion
from onedraw.privacy import Promise
from onedraw.release.estimates import Estimates
from onedraw.release.intervals.quantiles import inter_quartile_range, why_no_ends

from .base import cached
from .one_column import ColumnEstimator, declared_range

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class DPQuantile(ColumnEstimator):
    """Quantiles of numbers in declared ``bounds`` = (low, high), under differential privacy.

    ``DPQuantile(epsilon=1.0, quantiles=[0.25, 0.5, 0.75], bounds=(0, 100)).fit(column).quantiles_``

    Parameters: ``epsilon``, ``delta``, ``accept``, ``check``, ``ledger``, ``dataset``, ``random_state`` as in
    `DPLogisticRegression`; ``quantiles``, one level or several, each between 0 and 1; ``step``, what the column is
    rounded to (1 for whole numbers), by default a round number of about a ten-millionth of the range; ``interval``, the
    level of intervals that are released within the same spend, or None: then all of it goes to the quantiles.

    Attributes: ``quantiles_`` (in the order of ``levels_``), ``levels_``, ``iqr_`` (NaN unless both quartiles were
    asked for) and ``iqr_interval_`` (low, high, level: 0.9 where ``interval`` is 0.95, because both quartiles have to
    be covered), ``rank_error_`` (expected, from public numbers, as a share of the records), and those of `DPProportion`.
    """

    term: ClassVar[str] = "quantile"

    quantiles: Any = (0.5,)
    bounds: Any = None
    step: Any = None
    interval: Any = 0.95

    def _model(self, n: int, budget: Promise) -> ColumnQuantiles:
        low, high = declared_range(self)
        levels: Any = [self.quantiles] if isinstance(self.quantiles, numbers.Real) else self.quantiles
        if isinstance(levels, str) or not hasattr(levels, "__iter__"):
            raise InvalidModel(f"quantiles takes levels such as [0.25, 0.5, 0.75], got {self.quantiles!r}.")
        return ColumnQuantiles(tuple(levels), low, high, step=self.step, interval=self.interval)

    def _planned(self, budget: Promise, n: int) -> Choices:
        self._accepted()
        found: Choices = cached(QuantileQuestion.choices, QuantileQuestion(self._model(n, budget)), budget, n=n)
        return found

    def _keep(self, centre: Array) -> None:
        plan = self.choice_.best
        self.levels_, self.quantiles_ = np.array(plan.model.levels), centre
        self.rank_error_ = np.array(plan.mechanism.rank_errors(plan))  # type: ignore[attr-defined]
        spread = inter_quartile_range(self.certificate_, plan)
        self.iqr_ = np.nan if spread is None else spread.value
        self.iqr_interval_ = None if spread is None or spread.level is None else spread[1:]

    @property
    def interval_reason_(self) -> str:
        """Why there is no interval; empty if there is one."""
        check_is_fitted(self)
        return "" if self.certificate_.draw.stages is not None else why_no_ends(self.choice_.best)

    def conf_int(self, level: Any = 0.95) -> Array:
        """(quantiles, 2): as they were released, for every level up to the one that was asked for."""
        return super().conf_int(_probability(level))

    def summary(self, level: Any = 0.95) -> Estimates:
        """The quantiles with the intervals that were released with them; ``pandas.DataFrame`` takes it."""
        return super().summary(_probability(level))


def _probability(level: Any) -> float:
    if isinstance(level, bool) or not isinstance(level, numbers.Real) or not 0.0 < float(level) < 1.0:
        raise WrongCall(f"level is a probability such as 0.95, got {level!r}.")
    return float(level)
