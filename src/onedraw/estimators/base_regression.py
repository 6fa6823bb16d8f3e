"""Estimators that ask a `planning.Regression`: how many draws, which mechanism, and the release of a row model.

A fit publishes an estimate with its information, and its intervals follow from that. Mechanisms that are named publish one
draw of full weight, or ``n_draws`` that share the budget so that their spread gives an interval.
"""

from __future__ import annotations

import abc
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.data import Measure, Records
from onedraw.data.curator import Declared, columns_of
from onedraw.errors import InvalidModel, WrongCall
from onedraw.models.batches import column_chunks
from onedraw.planning import Choices, Regression, choose
from onedraw.plans import Plan
from onedraw.release.intervals.replicated import why_no_interval

from .base import PrivateEstimator, cached
from .validation import Incoming, Measured, as_it_came, incoming

LEVEL = 0.95


class RegressionEstimator(PrivateEstimator):
    """fit(X, y) for features with public bounds."""

    bounds: Any
    data_norm: Any
    prior_scale: Any
    effect: Any
    n_draws: Any

    n_features_in_: int
    interval_reason_: str

    @abc.abstractmethod
    def _question(self, came: Incoming) -> Regression:
        """The question, with everything public about it."""

    def _common(self, came: Incoming) -> dict[str, Any]:
        return {
            "bounds": self.bounds, "data_norm": self.data_norm, "prior_scale": self.prior_scale, "effect": self.effect,
            "feature_names": came.names,
        }  # fmt: skip

    def _release_regression(self, came: Incoming, question: Regression, y: Any) -> NDArray[np.float64]:
        """Plan from public numbers, then release; the draws as drawn, one row each."""
        return self._answered(question, (came.X, y), came.n)

    def _answered(self, question: Regression, data: Any, n: int, *, people: int = 1) -> NDArray[np.float64]:
        choice, reason = self._planned(question, n, people)
        draws = self._leave(choice, data)
        self._public_question, self.interval_reason_ = question, reason
        return draws

    def _planned(self, question: Regression, n: int, people: int) -> tuple[Choices, str]:
        """The choice, and why it gives no interval (empty if it does)."""
        budget, accepted = self._budget(), self._accepted()
        if not isinstance(self.mechanism, str):
            raise InvalidModel(f"mechanism must be 'auto' or a mechanism's name, but {self.mechanism!r} came.")
        options = {"n": n, "mechanism": self.mechanism, "accept": accepted, "records_per_person": people}
        choice = cached(choose, question, budget, draws=self._draws(), **options)
        reason = why_no_interval(choice.best, LEVEL, effect=question.expected_effect, noise=question.unit)
        return choice, reason or ""

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
        compared["(response)"] = self._declared_response(plan, y), column_chunks(as_it_came(y), dim=1)[0]
        return compared

    def _declared_response(self, plan: Plan, y: Any) -> Declared:
        classes = getattr(self, "classes", None)
        if classes is not None:
            return Declared.levels(classes)
        measure = y.measure if isinstance(y, Measured) else Measure(0.0)
        lower, upper = (measure.centre + measure.unit * end for end in plan.model.response.interval)
        return Declared(lower, upper)

    def _draws(self) -> int:
        if isinstance(self.n_draws, str) and self.n_draws == "auto":
            return 1
        if isinstance(self.n_draws, bool) or not isinstance(self.n_draws, numbers.Integral) or self.n_draws < 1:
            raise WrongCall(
                f"n_draws must be 'auto' or a whole number of at least 1, but {self.n_draws!r} came. 'auto' is one fit or one "
                "draw; 4 or 8 draws of a named mechanism share its budget, so that their spread gives an interval."
            )
        return int(self.n_draws)

    def _incoming(self, X: Any, y: Any) -> Incoming:
        return incoming(self, X, y, reset=True)


def regression(kind: str, features: int, **options: Any) -> Regression:
    """A question; an unhashable bound or label is a wrong call, not a crash."""
    question = Regression(kind, features, **options)
    try:
        hash(question)
    except TypeError as error:
        raise InvalidModel(
            "bounds, classes and the other public parameters must be numbers, text, or lists of them."
        ) from error
    return question
