"""Estimators that ask a `planning.Regression`: how many draws, which mechanism, and the release of a row model.

A fit publishes an estimate with its information, and its intervals follow from that. Mechanisms that are named publish
one draw of full weight, or ``n_draws`` that share the budget so that their spread gives an interval.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onedraw.data import Measure, Records
from onedraw.data.curator import Declared, columns_of
from onedraw.errors import InvalidModel, WrongCall
from onedraw.models.batches import column_chunks
from onedraw.planning import Regression
from onedraw.plans import Plan

from .base import PrivateEstimator, cached
from .validation import Measured, Rows, as_given


@dataclass(eq=False, repr=False, kw_only=True)
class RegressionEstimator(PrivateEstimator):
    """fit(X, y) for features with public bounds."""

    mechanism: Any = "auto"
    bounds: Any = None
    data_norm: Any = None
    prior_scale: Any = None
    effect: Any = None
    n_draws: Any = "auto"

    kind: ClassVar[str]
    """What `planning` calls the question."""

    def _options(self) -> dict[str, Any]:
        """Parameters that `planning.Regression` has too, by name."""
        known = self.get_params(deep=False)
        return {field.name: known[field.name] for field in fields(Regression) if field.name in known}

    def _question(self, rows: Rows) -> Regression:
        """The question, with everything public about it; an unhashable bound or label is a wrong call, not a crash."""
        question = Regression(**{"kind": self.kind} | self._options(), features=rows.features, feature_names=rows.names)
        try:
            hash(question)
        except TypeError as error:
            raise InvalidModel(
                "bounds, classes and the other public parameters must be numbers, text, or lists of them."
            ) from error
        return question

    def _responses(self, y: Any) -> Any:
        """Responses as the question measures them."""
        return y

    def _answered(self, question: Regression, data: Any, n: int, *, people: int = 1) -> NDArray[np.float64]:
        """Plan from public numbers, then release; the draws as drawn, one row each."""
        budget, accepted = self._budget(), self._accepted()
        if not isinstance(self.mechanism, str):
            raise InvalidModel(f"mechanism must be 'auto' or a mechanism's name, got {self.mechanism!r}.")
        options = {"n": n, "mechanism": self.mechanism, "accept": accepted, "records_per_person": people}
        choice = cached(Regression.choices, question, budget, draws=self._draws(), **options)
        draws = self._release(choice, data)
        self._public_question: Regression = question
        self.interval_reason_: str = question.why_no_interval(choice.best)
        return draws

    def _compared(self, plan: Plan, data: Any) -> dict[str, tuple[Declared, Iterable[Any]]]:
        if isinstance(data, Records):
            return columns_of(data)
        X, y = data
        features: Any = plan.model.features
        lower, upper = np.broadcast_arrays(*(features.box or (-np.inf, np.inf)), np.zeros(features.count))[:2]
        names, columns = features.column_names[: features.count], column_chunks(X, dim=features.count)
        compared: dict[str, tuple[Declared, Iterable[Any]]] = {
            name: (Declared(float(low), float(high)), chunks)
            for name, low, high, chunks in zip(names, lower, upper, columns, strict=True)
        }
        compared["(response)"] = self._declared_response(plan, y), column_chunks(as_given(y), dim=1)[0]
        return compared

    def _declared_response(self, plan: Plan, y: Any) -> Declared:
        measure = y.measure if isinstance(y, Measured) else Measure(0.0)
        lower, upper = (measure.centre + measure.unit * end for end in plan.model.response.interval)
        return Declared(lower, upper)

    def _draws(self) -> int:
        if isinstance(self.n_draws, str) and self.n_draws == "auto":
            return 1
        if isinstance(self.n_draws, bool) or not isinstance(self.n_draws, numbers.Integral) or self.n_draws < 1:
            raise WrongCall(
                f"n_draws must be 'auto' or a whole number of at least 1, got {self.n_draws!r}. 'auto' is one fit or one "
                "draw; 4 or 8 draws of a named mechanism share its budget, so that their spread gives an interval."
            )
        return int(self.n_draws)
