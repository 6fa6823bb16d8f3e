"""One column at a time: a proportion, a count, a histogram, a mean, a sum, a variance, a rate; as a whole or within groups.

Each is released with plain noise on exact sums, or as one draw from a conjugate posterior, whichever is expected to be off by
less (`planning.column_choice`); both have a known law, so one release gives an interval. These estimators take one column,
(n,) or (n, 1), like scikit-learn's LabelEncoder; with ``by`` a table of the column and its groups.

| a record that is | counts as |
| --- | --- |
| outside the declared bounds | the nearest bound |
| no finite number, where those ``between`` two are counted | one outside |
| an undeclared class, level or group | the first one declared |
| NaN, ±inf or not a number | the first class; for a mean, sum or variance the middle of the range; for a rate 0 |
"""

from __future__ import annotations

import abc
import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from onedraw.data.curator import Declared
from onedraw.defaults import DELTA
from onedraw.errors import InvalidModel, PromiseRefused, WrongCall
from onedraw.mechanisms import AddedNoise, Plan
from onedraw.models import (
    BetaBernoulli,
    CategoryTable,
    DirichletCategorical,
    GammaPoisson,
    Grouped,
    NumberTable,
    Table,
)
from onedraw.models.batches import column_chunks
from onedraw.models.tables.category_table import condition
from onedraw.planning import Choices, column_choices
from onedraw.planning.questions import mean_model, pair
from onedraw.privacy import Promise
from onedraw.release.intervals.released import release_interval
from onedraw.release.intervals.replicated import Interval, interval
from onedraw.release.intervals.tables import table_interval
from onedraw.release.summary import Estimate

from .base import PrivateEstimator, all_or_nothing, cached
from .classification import declared_classes
from .validation import LabelCodes, as_it_came, grouped_columns, one_column

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Known:
    """A model that is already made, where a maker of one is asked for; equal models are one."""

    model: Any

    def __call__(self) -> Any:
        return self.model


class ColumnEstimator(PrivateEstimator):
    """What is released about one column."""

    by: Any = None
    group_sizes: Any = None
    prior: Any = None
    between: Any = None
    mechanism: Any = "auto"
    n_draws: Any = 1
    n_features_in_: int
    groups_: list[str]

    posterior: ClassVar[bool] = True
    """Whether a conjugate posterior answers the question too."""

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Any:
        """Charge the ledger, read the column once, and keep what was released; ``y`` is not used."""
        column, codes = self._incoming(X)
        n, budget = len(column), self._budget()
        choice = self._planned(budget, n)
        records = self._records(column)
        self.draws_ = self._leave(choice, Grouped(records, codes) if codes else records)
        self.groups_ = list(getattr(choice.best.model, "group_names", ())) if codes else []
        self._keep(self.draws_.mean(axis=0))
        return self

    def _incoming(self, X: Any) -> tuple[Any, tuple[Any, ...]]:
        """The column, and the codes of its groups."""
        by = declared_by(self)
        return grouped_columns(self, X, by) if by else (one_column(self, X)[0], ())

    def _table(self, groups: dict[str, Any]) -> Table:
        """What plain noise is put on, from public parameters."""
        raise NotImplementedError

    def _model(self, n: int, budget: Promise) -> Any:
        """The conjugate model, from public parameters."""
        raise NotImplementedError

    @abc.abstractmethod
    def _keep(self, centre: Array) -> None:
        """Name the published numbers."""

    def _records(self, column: Any) -> Any:
        return column

    def _compared(self, plan: Plan, data: Any) -> dict[str, tuple[Declared, Iterable[Any]]]:
        columns = {"column": data}
        if isinstance(data, Grouped):
            columns = {"column": data.values, **dict(zip(plan.model.by, data.codes, strict=True))}
        return {
            name: (self._declared_of(one), column_chunks(as_it_came(one), dim=1)[0]) for name, one in columns.items()
        }

    def _declared_of(self, column: Any) -> Declared:
        if isinstance(column, LabelCodes):
            return Declared.levels(column.labels)
        return Declared() if self.between is not None else Declared(*declared_range(self))

    def _condition(self, other: str) -> dict[str, Any]:
        """The levels that a public condition on a number makes; ``other`` is what it stands in place of."""
        ends = self.between
        if getattr(self, other) is not None:
            raise InvalidModel(f"between and {other} say in two ways what is counted. Leave one of them out.")
        if not isinstance(ends, list | tuple | np.ndarray) or len(ends) != 2:
            raise InvalidModel(
                f"between is (low, high), the public ends of what is counted, None for an open one, but {ends!r} came."
            )
        return condition(*ends)

    def _planned(self, budget: Promise, n: int) -> Choices:
        if isinstance(self.n_draws, bool) or not isinstance(self.n_draws, numbers.Integral) or self.n_draws < 1:
            raise WrongCall(f"n_draws must be a whole number of at least 1, but {self.n_draws!r} came.")
        self._accepted()
        table = None if self.prior is not None else self._table(declared_groups_of(self))
        found: Choices = cached(
            column_choices, table, self._posterior(budget, n), budget, n=n, draws=int(self.n_draws), mechanism=self.mechanism
        )  # fmt: skip
        return found

    def _posterior(self, budget: Promise, n: int) -> Known | None:
        """None where there is no posterior for the question, the groups or this budget."""
        if not self.posterior or self.by is not None or self.between is not None:
            if self.prior is not None:
                raise InvalidModel("A prior is for draws from a posterior, and there is none here. Leave out prior.")
            return None
        try:
            return Known(self._model(n, budget))
        except InvalidModel:
            if self.prior is not None or self.mechanism not in ("auto", "laplace", "gaussian"):
                raise
            return None

    # ── intervals ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def interval_reason_(self) -> str:
        """Why there is no interval; empty if there is one."""
        check_is_fitted(self)
        return "" if self.choice_.best.draws == 1 else "the closed form is about one draw. Fit with n_draws=1."

    def conf_int(self, level: float = 0.95) -> Array:
        """(terms, 2): the interval of each published number, for sampling and privacy noise together; of counts and sums,
        which are about these records, for the noise."""
        if self.interval_reason_:
            raise PromiseRefused(f"This release gives no interval: {self.interval_reason_}")
        found = self._interval(level)
        return np.column_stack([found.low, found.high])

    def _interval(self, level: float) -> Interval:
        if isinstance(self.choice_.best.mechanism, AddedNoise):
            return release_interval(self.certificate_, level)
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
        return (names[0], [""]) if not self.groups_ else (self.certificate_.draw.quantity, names)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.allow_nan = True
        return tags

    # ── published numbers of groups ────────────────────────────────────────────────────────────────────────

    def _of_groups(self, centre: Array) -> Any:
        """One number, or one for each group; the numbers of records of private groups are kept beside."""
        if not self.groups_:
            return float(centre[0])
        if len(centre) > len(self.groups_):
            self.records_ = centre[len(self.groups_) :]
        return centre[: len(self.groups_)]


class DPProportion(ColumnEstimator):
    """The share of records in the second of two ``classes``, under differential privacy.

    ``DPProportion(epsilon=1.0, classes=["no", "yes"]).fit(column).proportion_``; of numbers, the share of those within public ends:
    ``DPProportion(epsilon=1.0, between=(18, 30)).fit(ages)``.

    Parameters: ``epsilon``, ``delta``, ``accept``, ``check``, ``ledger``, ``dataset``, ``random_state`` as in
    `DPLogisticRegression`; ``classes``, the second of which is counted, or ``between`` = (low, high) with both ends included and None for
    an open one; ``mechanism``: "auto" takes plain noise ("laplace",
    "gaussian") or a draw from a posterior ("direct", "diffused", "concentrated"), whichever is expected to be off by less;
    ``prior`` = (a, b) of a Beta prior, which asks for a draw from the posterior; ``n_draws`` of it.

    ``by`` = {"sex": ["F", "M"]} gives one number for each group, of one or two columns with declared levels; then `fit` takes a
    frame with these columns and one more, or rows (value, group, …). Who belongs to which group is private, and the groups'
    numbers of records are released too, unless ``group_sizes`` declares them (in the order of ``groups_``) as public.

    Attributes: ``proportion_`` (with ``by`` an array, in the order of ``groups_``), ``draws_``, ``n_features_in_``,
    ``feature_names_in_`` (of a frame), ``certificate_``, ``guarantee_``, ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = DELTA,
        classes: Any = None,
        between: Any = None,
        prior: Any = None,
        mechanism: Any = "auto",
        n_draws: Any = 1,
        by: Any = None,
        group_sizes: Any = None,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.between = between
        self.prior = prior
        self.mechanism = mechanism
        self.n_draws = n_draws
        self.by = by
        self.group_sizes = group_sizes
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

    def _table(self, groups: dict[str, Any]) -> CategoryTable:
        if self.between is not None:
            return CategoryTable(**self._condition("classes"), show="shares", **groups)
        labels = tuple(map(str, self._labels()))
        return CategoryTable(labels, show="shares", only=labels[1], **groups)

    def _model(self, n: int, budget: Promise) -> BetaBernoulli:
        self._labels()
        return BetaBernoulli(prior=pair(self.prior, (1.0, 1.0)))

    def _records(self, column: Any) -> Any:
        return column if self.between is not None else LabelCodes(column, self._labels())

    def _keep(self, centre: Array) -> None:
        self.proportion_ = self._of_groups(centre)

    def _labelled(self, names: list[str]) -> tuple[str, list[str]]:
        return "proportion", names


class _OfLevels(ColumnEstimator):
    """What counts and shares of declared levels have in common."""

    levels: Any

    def _declared(self) -> NDArray[Any]:
        if self.levels is None:
            raise InvalidModel(
                f"{type(self).__name__} needs levels=[…], all values there can be. They are never read from the records: a value that "
                "only one person has would give that person away."
            )
        return declared_classes(SimpleNamespace(classes=self.levels), "levels")

    def _records(self, column: Any) -> Any:
        return column if self.between is not None else LabelCodes(column, tuple(self._declared().tolist()))

    def _by_level(self, centre: Array) -> Array:
        """(levels,), or with groups (groups, levels)."""
        return centre.reshape(len(self.groups_), -1) if self.groups_ else centre


class DPHistogram(_OfLevels):
    """The shares of declared ``levels``, under differential privacy; they lie in [0, 1] and sum to 1.

    ``DPHistogram(epsilon=1.0, levels=["a", "b", "c"]).fit(column).shares_``

    Parameters as in `DPProportion`; ``levels`` instead of classes, and ``prior``, one positive number for each level.

    Attributes: ``shares_`` (in the order of ``levels_``; with ``by`` one row for each of ``groups_``, within which they sum to 1),
    ``levels_``, ``draws_``, ``n_features_in_``, ``feature_names_in_``, ``certificate_``, ``guarantee_``, ``release_``, ``choice_``,
    ``interval_reason_``, ``notes_``.
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = DELTA,
        levels: Any = None,
        prior: Any = None,
        mechanism: Any = "auto",
        n_draws: Any = 1,
        by: Any = None,
        group_sizes: Any = None,
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
        self.by = by
        self.group_sizes = group_sizes
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _table(self, groups: dict[str, Any]) -> CategoryTable:
        return CategoryTable(tuple(map(str, self._declared().tolist())), show="shares", **groups)

    def _model(self, n: int, budget: Promise) -> DirichletCategorical:
        levels = self._declared().tolist()
        prior = (1.0,) * len(levels) if self.prior is None else tuple(self.prior)
        return DirichletCategorical(prior=prior, levels=tuple(map(str, levels)))

    def _keep(self, centre: Array) -> None:
        self.levels_, self.shares_ = self._declared(), self._by_level(centre)

    def _labelled(self, names: list[str]) -> tuple[str, list[str]]:
        return "share", names


class DPCount(_OfLevels):
    """How many of these records have each of declared ``levels``, or one ``level`` of them, under differential privacy.

    ``DPCount(epsilon=1.0, levels=["no", "yes"], level="yes").fit(column).count_``; of numbers, those within public ends:
    ``DPCount(epsilon=1.0, between=(18, 30)).fit(ages).count_`` (both ends included, None for an open one).

    The number of all records is public: it is n. Parameters as in `DPProportion`, without a prior. With ``by`` this is a cross
    table: its cells are whole numbers that sum to n.

    Attributes: ``counts_`` (in the order of ``levels_``; with ``by`` one row for each of ``groups_``), or with ``level`` or ``between`` ``count_``;
    ``levels_``, ``draws_``, ``n_features_in_``, ``feature_names_in_``, ``certificate_``, ``guarantee_``, ``release_``, ``choice_``,
    ``interval_reason_``, ``notes_``.
    """

    posterior: ClassVar[bool] = False

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = DELTA,
        levels: Any = None,
        level: Any = None,
        between: Any = None,
        mechanism: Any = "auto",
        by: Any = None,
        group_sizes: Any = None,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.levels = levels
        self.level = level
        self.between = between
        self.mechanism = mechanism
        self.by = by
        self.group_sizes = group_sizes
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _table(self, groups: dict[str, Any]) -> CategoryTable:
        if self.between is not None:
            if self.level is not None:
                raise InvalidModel("level names one of the levels, and between has none. Leave it out.")
            return CategoryTable(**self._condition("levels"), **groups)
        levels = tuple(map(str, self._declared().tolist()))
        return CategoryTable(levels, only=None if self.level is None else str(self.level), **groups)

    def conf_int(self, level: float = 0.95, *, of: str = "records") -> Array:
        """(terms, 2): about these records, or ``of="population"`` about n times the share they are a sample of."""
        if of not in ("records", "population"):
            raise WrongCall(f"of is 'records' or 'population', but {of!r} came.")
        check_is_fitted(self)
        low, high, *_ = table_interval(self.choice_.best, self.certificate_.draw.stages or {}, level, of=of)
        return np.column_stack([low, high])

    def _keep(self, centre: Array) -> None:
        self.levels_ = np.array(self.choice_.best.model.levels) if self.between is not None else self._declared()
        if self.level is None and self.between is None:
            self.counts_ = self._by_level(centre)
        else:
            self.count_ = self._of_groups(centre)

    def _labelled(self, names: list[str]) -> tuple[str, list[str]]:
        return "count", names


class _OfNumbers(ColumnEstimator):
    """What statistics of numbers in declared bounds have in common."""

    bounds: Any
    show: ClassVar[str]
    missing: ClassVar[float | None] = None

    def _table(self, groups: dict[str, Any]) -> NumberTable:
        return NumberTable(*declared_range(self), show=self.show, missing=self.missing, **groups)


class DPMean(_OfNumbers):
    """The mean of numbers in declared ``bounds`` = (low, high), under differential privacy.

    ``DPMean(epsilon=1.0, bounds=(0, 100)).fit(column).mean_``

    With plain noise a second moment is released for the same spend, and the interval uses it. Parameters as in
    `DPProportion`; ``prior`` = (mean, worth in records); ``noise``, the records' standard deviation (in every group) if it is publicly
    known: the interval is then built with it, and it bears on nothing else.

    Attributes: ``mean_`` (with ``by`` an array, in the order of ``groups_``, and ``records_``, the released sizes of private groups),
    ``draws_``, ``n_features_in_``, ``feature_names_in_``, ``certificate_``, ``guarantee_``, ``release_``, ``choice_``,
    ``interval_reason_``, ``notes_``.
    """

    show: ClassVar[str] = "mean"

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = DELTA,
        bounds: Any = None,
        noise: Any = None,
        prior: Any = None,
        mechanism: Any = "auto",
        n_draws: Any = 1,
        by: Any = None,
        group_sizes: Any = None,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.noise = noise
        self.prior = prior
        self.mechanism = mechanism
        self.n_draws = n_draws
        self.by = by
        self.group_sizes = group_sizes
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _model(self, n: int, budget: Promise) -> Any:
        low, high = declared_range(self)
        return mean_model(SimpleNamespace(lower=low, upper=high), n=n, budget=budget, prior=self.prior)

    def _planned(self, budget: Promise, n: int) -> Choices:
        if self.noise is not None and not (isinstance(self.noise, numbers.Real) and 0 < float(self.noise) < math.inf):
            raise InvalidModel(
                f"noise is the records' standard deviation, a positive number, or None, but {self.noise!r} came."
            )
        return super()._planned(budget, n)

    def _interval(self, level: float) -> Interval:
        if isinstance(self.choice_.best.mechanism, AddedNoise):
            return release_interval(self.certificate_, level, noise=self.noise)
        return interval(self.release_.draws, self.choice_.best, level, noise=self.noise)

    def _keep(self, centre: Array) -> None:
        self.mean_ = self._of_groups(centre)


class DPSum(_OfNumbers):
    """The sum of these records' numbers, each in declared ``bounds`` = (low, high), under differential privacy.

    ``DPSum(epsilon=1.0, bounds=(0, 100)).fit(column).sum_``

    Parameters as in `DPProportion`, without a prior.

    Attributes: ``sum_`` (with ``by`` an array, in the order of ``groups_``, and ``records_``), ``draws_``, ``n_features_in_``,
    ``feature_names_in_``, ``certificate_``, ``guarantee_``, ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    posterior: ClassVar[bool] = False
    show: ClassVar[str] = "sum"

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = DELTA,
        bounds: Any = None,
        mechanism: Any = "auto",
        by: Any = None,
        group_sizes: Any = None,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.mechanism = mechanism
        self.by = by
        self.group_sizes = group_sizes
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _keep(self, centre: Array) -> None:
        self.sum_ = self._of_groups(centre)


class DPVariance(_OfNumbers):
    """The variance of numbers in declared ``bounds`` = (low, high), under differential privacy.

    ``DPVariance(epsilon=1.0, bounds=(0, 100)).fit(column).variance_``

    Parameters as in `DPProportion`, without a prior.

    Attributes: ``variance_`` (with ``by`` an array, in the order of ``groups_``, and ``records_``), ``draws_``, ``n_features_in_``,
    ``feature_names_in_``, ``certificate_``, ``guarantee_``, ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    posterior: ClassVar[bool] = False
    show: ClassVar[str] = "variance"

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = DELTA,
        bounds: Any = None,
        mechanism: Any = "auto",
        by: Any = None,
        group_sizes: Any = None,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.mechanism = mechanism
        self.by = by
        self.group_sizes = group_sizes
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _keep(self, centre: Array) -> None:
        self.variance_ = self._of_groups(centre)


class DPRate(_OfNumbers):
    """The rate of counts, each at most the cap of ``bounds`` = (0, cap), under differential privacy.

    ``DPRate(epsilon=1.0, bounds=(0, 20)).fit(column).rate_``

    With plain noise it is the mean of the counts as they are. Parameters as in `DPProportion`; ``prior`` = (events, records) of a
    Gamma prior.

    Attributes: ``rate_`` (with ``by`` an array, in the order of ``groups_``, and ``records_``), ``draws_``, ``n_features_in_``,
    ``feature_names_in_``, ``certificate_``, ``guarantee_``, ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    show: ClassVar[str] = "rate"
    missing: ClassVar[float | None] = 0.0

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = DELTA,
        bounds: Any = None,
        prior: Any = None,
        mechanism: Any = "auto",
        n_draws: Any = 1,
        by: Any = None,
        group_sizes: Any = None,
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
        self.by = by
        self.group_sizes = group_sizes
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _cap(self) -> int:
        low, cap = declared_range(self)
        if low != 0 or cap != int(cap):
            raise InvalidModel(
                f"Counts start at 0 and are whole, but bounds ({low:g}, {cap:g}) came. Pass bounds=(0, 20), say."
            )
        return int(cap)

    def _table(self, groups: dict[str, Any]) -> NumberTable:
        self._cap()
        return super()._table(groups)

    def _model(self, n: int, budget: Promise) -> GammaPoisson:
        cap = self._cap()
        return GammaPoisson(prior=pair(self.prior, (1.0, 2.0 / cap)), cap=cap)

    def _keep(self, centre: Array) -> None:
        self.rate_ = self._of_groups(centre)


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


def declared_by(estimator: Any) -> dict[str, tuple[Any, ...]]:
    """Column → its declared groups; empty where the column is taken as a whole."""
    by = estimator.by
    if by is None:
        if estimator.group_sizes is not None:
            raise InvalidModel(
                "group_sizes declares the sizes of groups, but by names none. Pass by={column: [group, …]}."
            )
        return {}
    if not isinstance(by, dict) or not 1 <= len(by) <= 2:
        raise InvalidModel(
            "by names one or two columns with all groups there can be, by={'sex': ['F', 'M']}; groups are never read from the "
            f"records. A {type(by).__name__} came."
        )
    return {
        str(name): tuple(declared_classes(SimpleNamespace(classes=groups), "by").tolist())
        for name, groups in by.items()
    }


def declared_groups_of(estimator: Any) -> dict[str, Any]:
    """The same as a table has it."""
    by = declared_by(estimator)
    if not by:
        return {}
    groups = tuple(tuple(map(str, labels)) for labels in by.values())
    sizes = estimator.group_sizes
    return {
        "by": tuple(by),
        "groups": groups,
        "sizes": None if sizes is None else tuple(np.asarray(sizes).ravel().tolist()),
    }
