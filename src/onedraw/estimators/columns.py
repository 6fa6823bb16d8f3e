"""One column at a time: a proportion, a histogram, a mean, a rate, released as one posterior draw of a conjugate model.

The draw's law is known exactly, so one draw gives an interval (`planning.conjugate_intervals`), with no replicates and no
regime. These estimators take one column, (n,) or (n, 1), like scikit-learn's LabelEncoder.

| a record that is | counts as |
| --- | --- |
| outside the declared bounds | the nearest bound |
| an undeclared class or level | the first one declared |
| NaN, ±inf or not a number | the first class; for a mean the middle of the range; for a rate 0 |
"""

from __future__ import annotations

import abc
import math
import numbers
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from onedraw.data.curator import Declared
from onedraw.errors import InvalidModel, PromiseRefused, WrongCall
from onedraw.mechanisms import Concentrated, Diffused, Direct, Plan
from onedraw.models import BetaBernoulli, DirichletCategorical, GammaPoisson
from onedraw.models.reading import column_chunks
from onedraw.planning import Choices, Interval, choices, interval
from onedraw.planning.questions import mean_model, pair
from onedraw.privacy import Promise
from onedraw.release.summary import Estimate

from .classification import declared_classes
from .fitting import PrivateEstimator, all_or_nothing, cached
from .incoming import LabelCodes, as_it_came, one_column

Array = NDArray[np.float64]

MECHANISMS = {"direct": Direct(), "diffused": Diffused(), "concentrated": Concentrated()}


class ColumnEstimator(PrivateEstimator):
    """A draw from the posterior of one column's parameter."""

    prior: Any
    n_draws: Any
    n_features_in_: int

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Any:
        """Charge the ledger, read the column once, and keep what was released; ``y`` is not used."""
        column, n = one_column(self, X)
        budget = self._budget()
        model = self._model(n, budget)
        choice = self._planned(model, budget, n)
        self.draws_ = self._leave(choice, self._records(column))
        self._keep(self.draws_.mean(axis=0))
        return self

    @abc.abstractmethod
    def _model(self, n: int, budget: Promise) -> Any:
        """The conjugate model, from public parameters."""

    @abc.abstractmethod
    def _keep(self, centre: Array) -> None:
        """Name the published numbers."""

    def _records(self, column: Any) -> Any:
        return column

    def _compared(self, plan: Plan, data: Any) -> dict[str, tuple[Declared, Iterable[Any]]]:
        if isinstance(data, LabelCodes):
            declared = Declared.levels(data.labels)
        else:
            declared = Declared(*declared_range(self))
        return {"column": (declared, column_chunks(as_it_came(data), dim=1)[0])}

    def _planned(self, model: Any, budget: Promise, n: int) -> Choices:
        if self.mechanism != "auto" and self.mechanism not in MECHANISMS:
            raise InvalidModel(
                f"No mechanism for one column is called {self.mechanism!r}. Choose 'auto' or one of: {', '.join(MECHANISMS)}."
            )
        if isinstance(self.n_draws, bool) or not isinstance(self.n_draws, numbers.Integral) or self.n_draws < 1:
            raise WrongCall(f"n_draws must be a whole number of at least 1, but {self.n_draws!r} came.")
        self._accepted()
        chosen = tuple(MECHANISMS.values()) if self.mechanism == "auto" else (MECHANISMS[self.mechanism],)
        found: Choices = cached(choices, model, budget, n=n, draws=int(self.n_draws), mechanisms=chosen)
        return found if found.why else replace(found, why=_why(found, self.mechanism, budget, n))

    # ── intervals ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def interval_reason_(self) -> str:
        """Why there is no interval; empty if there is one."""
        check_is_fitted(self)
        return "" if self.choice_.best.draws == 1 else "the closed form is about one draw. Fit with n_draws=1."

    def conf_int(self, level: float = 0.95) -> Array:
        """(terms, 2): the interval of each published number, for sampling and privacy noise together."""
        if self.interval_reason_:
            raise PromiseRefused(f"This release gives no interval: {self.interval_reason_}")
        found = self._interval(level)
        return np.column_stack([found.low, found.high])

    def _interval(self, level: float) -> Interval:
        return interval(self.release_.draws, self.choice_.best, level)

    def _estimates(self, level: float) -> tuple[list[Estimate], str]:
        names, values = self.certificate_.draw.names, self.draws_.mean(axis=0)
        unknown = np.full(len(names), np.nan)
        low, high, sampling, privacy = (unknown,) * 4
        if not self.interval_reason_:
            found = self._interval(level)
            low, high, sampling, privacy = found.low, found.high, found.parts.sampling, found.parts.privacy
        term, labels = self._labelled(names)
        rows = [
            Estimate(term, label, *(float(column[index]) for column in (values, low, high, sampling, privacy)))
            for index, label in enumerate(labels)
        ]
        return rows, self.interval_reason_

    def _labelled(self, names: list[str]) -> tuple[str, list[str]]:
        return names[0], [""]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.allow_nan = True
        return tags


class DPProportion(ColumnEstimator):
    """The share of records in the second of two ``classes``, under differential privacy.

    ``DPProportion(epsilon=1.0, classes=["no", "yes"]).fit(column).proportion_``

    Parameters: ``epsilon``, ``delta``, ``mechanism`` ("auto", "direct", "diffused", "concentrated"), ``n_draws``, ``accept``, ``check``,
    ``ledger``, ``dataset``, ``random_state`` as in `DPLogisticRegression`; ``classes``, the second of which is counted;
    ``prior`` = (a, b) of the Beta prior, (1, 1) by default.

    Attributes: ``proportion_``, ``draws_``, ``n_features_in_``, ``feature_names_in_`` (of a frame of one column),
    ``certificate_``, ``guarantee_``, ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = 1e-6,
        classes: Any = None,
        prior: Any = None,
        mechanism: Any = "auto",
        n_draws: Any = 1,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.prior = prior
        self.mechanism = mechanism
        self.n_draws = n_draws
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _labels(self) -> tuple[Any, ...]:
        labels = tuple(declared_classes(self).tolist())
        if len(labels) != 2:
            raise InvalidModel(f"A proportion is of two classes, but {len(labels)} came. Use DPHistogram for more.")
        return labels

    def _model(self, n: int, budget: Promise) -> BetaBernoulli:
        self._labels()
        return BetaBernoulli(prior=pair(self.prior, (1.0, 1.0)))

    def _records(self, column: Any) -> LabelCodes:
        return LabelCodes(column, self._labels())

    def _keep(self, centre: Array) -> None:
        self.proportion_ = float(centre[0])

    def _labelled(self, names: list[str]) -> tuple[str, list[str]]:
        return names[0], [str(self._labels()[1])]


class DPHistogram(ColumnEstimator):
    """The shares of declared ``levels``, under differential privacy.

    ``DPHistogram(epsilon=1.0, levels=["a", "b", "c"]).fit(column).shares_``

    Parameters as in `DPProportion`; ``levels`` instead of classes, and ``prior``, one positive number for each level.

    Attributes: ``shares_`` (in the order of ``levels_``), ``levels_``, ``draws_``, ``n_features_in_``,
    ``feature_names_in_``, ``certificate_``, ``guarantee_``, ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = 1e-6,
        levels: Any = None,
        prior: Any = None,
        mechanism: Any = "auto",
        n_draws: Any = 1,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.levels = levels
        self.prior = prior
        self.mechanism = mechanism
        self.n_draws = n_draws
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _declared(self) -> NDArray[Any]:
        if self.levels is None:
            raise InvalidModel(
                "DPHistogram needs levels=[…], all values there can be. They are never read from the records: a value that "
                "only one person has would give that person away."
            )
        return declared_classes(SimpleNamespace(classes=self.levels), "levels")

    def _model(self, n: int, budget: Promise) -> DirichletCategorical:
        levels = self._declared().tolist()
        prior = (1.0,) * len(levels) if self.prior is None else tuple(self.prior)
        return DirichletCategorical(prior=prior, levels=tuple(map(str, levels)))

    def _records(self, column: Any) -> LabelCodes:
        return LabelCodes(column, tuple(self._declared().tolist()))

    def _keep(self, centre: Array) -> None:
        self.levels_, self.shares_ = self._declared(), centre

    def _labelled(self, names: list[str]) -> tuple[str, list[str]]:
        return "share", names


class DPMean(ColumnEstimator):
    """The mean of numbers in declared ``bounds`` = (low, high), under differential privacy.

    ``DPMean(epsilon=1.0, bounds=(0, 100)).fit(column).mean_``

    Parameters as in `DPProportion`; ``prior`` = (mean, worth in records), mid-range and one record by default; ``noise``,
    the records' standard deviation if it is known: it narrows the interval, and bears on nothing else.

    Attributes: ``mean_``, ``draws_``, ``n_features_in_``, ``feature_names_in_``, ``certificate_``, ``guarantee_``,
    ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = 1e-6,
        bounds: Any = None,
        prior: Any = None,
        noise: Any = None,
        mechanism: Any = "auto",
        n_draws: Any = 1,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.prior = prior
        self.noise = noise
        self.mechanism = mechanism
        self.n_draws = n_draws
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _model(self, n: int, budget: Promise) -> Any:
        low, high = declared_range(self)
        if self.noise is not None and not (isinstance(self.noise, numbers.Real) and float(self.noise) > 0):
            raise InvalidModel(f"noise must be a positive number or None, but {self.noise!r} came.")
        return mean_model(SimpleNamespace(lower=low, upper=high), n=n, budget=budget, prior=self.prior)

    def _interval(self, level: float) -> Interval:
        return interval(self.release_.draws, self.choice_.best, level, noise=self.noise)

    def _keep(self, centre: Array) -> None:
        self.mean_ = float(centre[0])


class DPRate(ColumnEstimator):
    """The rate of counts, each at most the cap of ``bounds`` = (0, cap), under differential privacy.

    ``DPRate(epsilon=1.0, bounds=(0, 20)).fit(column).rate_``

    Parameters as in `DPProportion`; ``prior`` = (events, records) of the Gamma prior, one event in 2/cap records by
    default.

    Attributes: ``rate_``, ``draws_``, ``n_features_in_``, ``feature_names_in_``, ``certificate_``, ``guarantee_``,
    ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = 1e-6,
        bounds: Any = None,
        prior: Any = None,
        mechanism: Any = "auto",
        n_draws: Any = 1,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.prior = prior
        self.mechanism = mechanism
        self.n_draws = n_draws
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _model(self, n: int, budget: Promise) -> GammaPoisson:
        low, cap = declared_range(self)
        if low != 0 or cap != int(cap):
            raise InvalidModel(
                f"Counts start at 0 and are whole, but bounds ({low:g}, {cap:g}) came. Pass bounds=(0, 20), say."
            )
        return GammaPoisson(prior=pair(self.prior, (1.0, 2.0 / cap)), cap=int(cap))

    def _keep(self, centre: Array) -> None:
        self.rate_ = float(centre[0])


def declared_range(estimator: Any) -> tuple[float, float]:
    """(low, high) as declared; never those of the records."""
    bounds = estimator.bounds
    name = type(estimator).__name__
    if bounds is None:
        raise InvalidModel(
            f"{name} needs bounds=(low, high), the public range of the records; values outside are clamped. It is never read "
            "from the records, whose extremes belong to single persons."
        )
    pair_of_numbers = (
        isinstance(bounds, list | tuple | np.ndarray)
        and len(bounds) == 2
        and all(isinstance(end, numbers.Real) and math.isfinite(end) for end in bounds)
    )
    low, high = (float(bounds[0]), float(bounds[1])) if pair_of_numbers else (0.0, 0.0)
    if not low < high:
        raise InvalidModel(f"bounds must be two finite numbers (low, high), low below high, but {bounds!r} came.")
    return low, high


def _why(found: Choices, mechanism: str, budget: Promise, n: int) -> str:
    names = [type(choice.plan.mechanism).__name__.lower() for choice in found.eligible]
    best = found.eligible[0].expected
    error = f"expected error {best.private:.3g} ({best.sampling:.3g} without privacy)"
    if mechanism != "auto":
        return f"{names[0]}: named by the caller; {error}."
    return (
        f"{names[0]}: {error}, the smallest of {len(names)} mechanism(s) proven for {budget} with n = {n:,}. Decided from "
        "public numbers, before any record was read."
    )
