"""Statistics of one column: counts and shares of declared classes, levels, or numbers between public ends; means, sums,
variances and rates of numbers in declared bounds; quantiles, selected by rank: no prior, no draw of a posterior, ties
and spikes as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from onedraw import models
from onedraw.arrays import Array
from onedraw.errors import InvalidModel, WrongCall
from onedraw.models.sums.clamped_sums import SKIP, is_skip
from onedraw.models.tables.category_table import condition
from onedraw.planning import Choices, QuantileQuestion
from onedraw.privacy import Promise

from .base import Labels, Numbers, Range, cached, is_number
from .classification import declared_classes
from .one_column import ColumnEstimator, PosteriorEstimator, TableEstimator, declared_groups_of, declared_range


@dataclass(eq=False, repr=False, kw_only=True)
class DPProportion(PosteriorEstimator):
    """The share of records in the second of two ``classes``, under differential privacy.

    ``DPProportion(epsilon=1.0, classes=["no", "yes"]).fit(column).proportion_``; of numbers, the share of those within
    public ends: ``DPProportion(epsilon=1.0, between=(18, 30)).fit(ages)``.

    Parameters: ``epsilon``, ``delta``, ``accept``, ``check``, ``ledger``, ``dataset``, ``random_state`` as in
    `DPLogisticRegression`; ``classes``, the second of which is counted, or of more than two the one named by ``level``; or
    ``between`` = (low, high) with both ends included and None for an open one; ``mechanism``: "auto" takes plain noise ("laplace", "gaussian") or a draw from a
    posterior ("direct", "diffused", "concentrated"), whichever is expected to be off by less; ``prior`` = (a, b) of a
    Beta prior, which asks for a draw from the posterior; ``n_draws`` of it. ``missing``: by default "skip", missing cells contribute
    nothing; a declared class makes them that one, which draws from a posterior ask for.

    ``by`` = {"sex": ["F", "M"]} gives one number for each group, of one to three columns with declared levels; then `fit`
    takes a frame with these columns and one more, or rows (value, group, …). Who belongs to which group is private, and
    the groups' numbers of records are released too, unless ``group_sizes`` declares them (in the order of ``groups_``)
    as public.

    Attributes: ``proportion_`` (with ``by`` an array, in the order of ``groups_``; NaN where too few cells are known),
    ``n_missing_`` and ``n_missing_interval_`` (the noisy number of missing cells, unless they became a class), ``draws_``, ``n_features_in_``,
    ``feature_names_in_`` (of a frame), ``certificate_``, ``guarantee_``, ``release_``, ``choice_``,
    ``interval_reason_``, ``notes_``.
    """

    term: ClassVar[str] = "proportion"
    _family: ClassVar[type[models.ConjugateModel] | None] = models.BetaBernoulli

    classes: Labels | None = None
    level: Any = None
    between: Sequence[float | None] | None = None

    def _labels(self) -> tuple[Any, ...]:
        labels = tuple(declared_classes(self.classes, of=type(self).__name__).tolist())
        if len(labels) != 2 and self.level is None:
            raise InvalidModel(
                f"A proportion is of two classes, got {len(labels)}. Name the one that is counted, level=…, or use DPHistogram for all."
            )
        return labels

    def _posterior(self, budget: Promise, n: int) -> models.ConjugateModel | None:
        if self.level is None:
            return super()._posterior(budget, n)
        if self.prior is not None:
            raise InvalidModel("A prior is for a draw of the second of two classes. Leave out level or prior.")
        return None

    def _table(self, groups: dict[str, Any]) -> models.CategoryTable:
        if self.between is not None:
            if self.level is not None:
                raise InvalidModel("level names one of the classes, and between has none. Leave it out.")
            missing = condition_missing(self)
            return models.CategoryTable(**declared_condition(self, "classes"), show="shares", missing=missing, **groups)
        labels = self._declared().labels
        counted = labels[1] if self.level is None else str(self.level)
        return models.CategoryTable(labels, show="shares", only=counted, missing=self._missing_level(), **groups)

    def _keep(self, centre: Array) -> None:
        self.proportion_ = self._of_groups(centre)


@dataclass(eq=False, repr=False, kw_only=True)
class LevelEstimator(TableEstimator):
    """What counts and shares of declared levels have in common."""

    levels: Labels | None = None

    def _levels(self) -> NDArray[Any]:
        if self.levels is None:
            raise InvalidModel(
                f"{type(self).__name__} needs levels=[…], all values there can be. They are never read from the records: a value that "
                "only one person has would give that person away."
            )
        return declared_classes(self.levels, "levels")

    def _labels(self) -> tuple[Any, ...]:
        return tuple(self._levels().tolist())

    def _by_level(self, centre: Array) -> Array:
        """(levels,), or with groups (groups, levels)."""
        return centre.reshape(len(self.groups_), -1) if self.groups_ else centre


@dataclass(eq=False, repr=False, kw_only=True)
class DPHistogram(LevelEstimator, PosteriorEstimator):
    """The shares of declared ``levels``, under differential privacy; they lie in [0, 1] and sum to 1.

    ``DPHistogram(epsilon=1.0, levels=["a", "b", "c"]).fit(column).shares_``

    Parameters as in `DPProportion`; ``levels`` instead of classes, and ``prior``, one positive number for each level.

    Attributes: ``shares_`` (in the order of ``levels_``; with ``by`` one row for each of ``groups_``, within which they
    sum to 1), ``levels_``, and those of `DPProportion`.
    """

    term: ClassVar[str] = "share"
    _family: ClassVar[type[models.ConjugateModel] | None] = models.DirichletCategorical

    def _table(self, groups: dict[str, Any]) -> models.CategoryTable:
        return models.CategoryTable(self._declared().labels, show="shares", missing=self._missing_level(), **groups)

    def _keep(self, centre: Array) -> None:
        self.levels_, self.shares_ = self._levels(), self._by_level(centre)


@dataclass(eq=False, repr=False, kw_only=True)
class DPCount(LevelEstimator):
    """How many of these records have each of declared ``levels``, or one ``level`` of them, under differential privacy.

    ``DPCount(epsilon=1.0, levels=["no", "yes"], level="yes").fit(column).count_``; of numbers, those within public
    ends: ``DPCount(epsilon=1.0, between=(18, 30)).fit(ages).count_`` (both ends included, None for an open one).

    The number of all records is public: it is n. Parameters as in `DPProportion`, without a prior. With ``by`` this is
    a cross table: its cells are whole numbers that sum to n with the missing cells.

    Attributes: ``counts_`` (in the order of ``levels_``; with ``by`` one row for each of ``groups_``), or with
    ``level`` or ``between`` ``count_``; ``levels_``, and those of `DPProportion`.
    """

    term: ClassVar[str] = "count"

    level: Any = None
    between: Sequence[float | None] | None = None

    def _table(self, groups: dict[str, Any]) -> models.CategoryTable:
        if self.between is not None:
            if self.level is not None:
                raise InvalidModel("level names one of the levels, and between has none. Leave it out.")
            return models.CategoryTable(**declared_condition(self, "levels"), missing=condition_missing(self), **groups)
        only = None if self.level is None else str(self.level)
        return models.CategoryTable(self._declared().labels, only=only, missing=self._missing_level(), **groups)

    def conf_int(self, level: float = 0.95, *, of: str = "records") -> Array:
        """(terms, 2): about these records, or ``of="population"`` about n times the share they are a sample of."""
        if of not in ("records", "population"):
            raise WrongCall(f"of is 'records' or 'population', got {of!r}.")
        check_is_fitted(self)
        plan, stages = self.choice_.best, self.certificate_.draw.stages or {}
        return np.column_stack(plan.mechanism.interval_about(plan, stages, level, of=of))

    def _keep(self, centre: Array) -> None:
        self.levels_ = np.array(self.choice_.best.model.levels) if self.between is not None else self._levels()
        if self.level is None and self.between is None:
            self.counts_ = self._by_level(centre)
        else:
            self.count_ = self._of_groups(centre)


def condition_missing(estimator: Any) -> Any:
    """What a missing cell becomes where those between two ends are counted: "skip", or one that is outside."""
    if is_skip(estimator.missing):
        return SKIP
    if estimator.missing == "other":
        return 0
    raise InvalidModel(
        f"missing is 'skip', or 'other' to count missing cells with those outside, got {estimator.missing!r}. Leave it out to take "
        "the known cells alone."
    )


def declared_condition(estimator: Any, other: str) -> dict[str, Any]:
    """The levels that a public condition on a number makes; ``other`` is what it stands in place of."""
    if getattr(estimator, other) is not None:
        raise InvalidModel(f"between and {other} say in two ways what is counted. Leave one of them out.")
    return condition(estimator.between)


@dataclass(eq=False, repr=False, kw_only=True)
class NumberColumn(TableEstimator):
    """What statistics of numbers in declared bounds have in common."""

    bounds: Range | None = None

    show: ClassVar[str]

    def _table(self, groups: dict[str, Any]) -> models.NumberTable:
        ends = declared_range(self)
        return models.NumberTable(*ends, show=self.show, missing=self._missing_number(*ends), **groups)


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
    _family: ClassVar[type[models.ConjugateModel] | None] = models.GaussianMean

    noise: float | None = None

    def _declared(self) -> Any:
        low, high = declared_range(self)
        return SimpleNamespace(lower=low, upper=high)

    def _planned(self, budget: Promise, n: int) -> Choices:
        if self.noise is not None and not (is_number(self.noise) and 0 < float(self.noise) < math.inf):
            raise InvalidModel(
                f"noise is the records' standard deviation, a positive number, or None, got {self.noise!r}."
            )
        return super()._planned(budget, n)

    def _keep(self, centre: Array) -> None:
        self.mean_ = self._of_groups(centre)


@dataclass(eq=False, repr=False, kw_only=True)
class DPSum(NumberColumn):
    """The sum of these records' numbers, each in declared ``bounds`` = (low, high), under differential privacy.

    ``DPSum(epsilon=1.0, bounds=(0, 100)).fit(column).sum_``

    Parameters as in `DPProportion`, without a prior.

    Attributes: ``sum_``, and those of `DPMean`.
    """

    show: ClassVar[str] = "sum"

    def _keep(self, centre: Array) -> None:
        self.sum_ = self._of_groups(centre)


@dataclass(eq=False, repr=False, kw_only=True)
class DPVariance(NumberColumn):
    """The variance of numbers in declared ``bounds`` = (low, high), under differential privacy.

    ``DPVariance(epsilon=1.0, bounds=(0, 100)).fit(column).variance_``

    Parameters as in `DPProportion`, without a prior. ``mechanism`` may be "centered" too: the mean is released first, then
    squares about it, within the same budget. "auto" takes it where intervals are narrower: n·ε of at least 300, groups of public size.

    Attributes: ``variance_``, and those of `DPMean`.
    """

    show: ClassVar[str] = "variance"

    def _keep(self, centre: Array) -> None:
        self.variance_ = self._of_groups(centre)


@dataclass(eq=False, repr=False, kw_only=True)
class DPRate(NumberColumn, PosteriorEstimator):
    """The rate of counts, each at most the cap of ``bounds`` = (0, cap), under differential privacy.

    ``DPRate(epsilon=1.0, bounds=(0, 20)).fit(column).rate_``

    With plain noise it is the mean of the counts as they are. Parameters as in `DPProportion`; ``prior`` = (events,
    records) of a Gamma prior.

    Attributes: ``rate_``, and those of `DPMean`.
    """

    show: ClassVar[str] = "rate"
    _family: ClassVar[type[models.ConjugateModel] | None] = models.GammaPoisson

    def _declared(self) -> Any:
        low, cap = declared_range(self)
        if low != 0 or cap != int(cap):
            raise InvalidModel(
                f"Counts start at 0 and are whole, got bounds ({low:g}, {cap:g}). Pass bounds=(0, 20), say."
            )
        return SimpleNamespace(cap=int(cap))

    def _table(self, groups: dict[str, Any]) -> models.NumberTable:
        self._declared()
        return super()._table(groups)

    def _keep(self, centre: Array) -> None:
        self.rate_ = self._of_groups(centre)


@dataclass(eq=False, repr=False, kw_only=True)
class DPQuantile(ColumnEstimator):
    """Quantiles of numbers in declared ``bounds`` = (low, high), under differential privacy.

    ``DPQuantile(epsilon=1.0, quantiles=[0.25, 0.5, 0.75], bounds=(0, 100)).fit(column).quantiles_``

    Parameters: ``epsilon``, ``delta``, ``accept``, ``check``, ``ledger``, ``dataset``, ``random_state`` as in
    `DPLogisticRegression`; ``by`` as in `DPProportion`: the quantiles of each group, whose sizes are released too;
    ``quantiles``, one level or several, each between 0 and 1; ``step``, what the column is
    rounded to (1 for whole numbers), by default a round number of about a ten-millionth of the range; ``interval``, the
    level of intervals that are released within the same spend, or None: then all of it goes to the quantiles.

    Attributes: ``quantiles_`` (in the order of ``levels_``; with ``by`` one row for each of ``groups_``, and ``records_``,
    the groups' released sizes), ``levels_``, ``iqr_`` (NaN unless both quartiles were
    asked for) and ``iqr_interval_`` (low, high, level: 0.9 where ``interval`` is 0.95, because both quartiles have to
    be covered), ``rank_error_`` (expected, from public numbers, as a share of the records), and those of `DPProportion`.
    """

    term: ClassVar[str] = "quantile"

    quantiles: Numbers = (0.5,)
    bounds: Range | None = None
    step: float | None = None
    interval: float | None = 0.95
    by: Mapping[str, Labels] | None = None
    missing: Any = SKIP

    def _model(self, n: int, budget: Promise) -> models.ColumnQuantiles:
        low, high = declared_range(self)
        groups = {name: part for name, part in declared_groups_of(self).items() if name != "sizes"}
        levels: Any = [self.quantiles] if is_number(self.quantiles) else self.quantiles
        if isinstance(levels, str) or not hasattr(levels, "__iter__"):
            raise InvalidModel(f"quantiles takes levels such as [0.25, 0.5, 0.75], got {self.quantiles!r}.")
        missing = self._missing_number(low, high)
        return models.ColumnQuantiles(
            tuple(levels), low, high, step=self.step, interval=self.interval, missing=missing, **groups
        )

    def _planned(self, budget: Promise, n: int) -> Choices:
        self._accepted()
        found: Choices = cached(QuantileQuestion.choices, QuantileQuestion(self._model(n, budget)), budget, n=n)
        return found

    def _keep(self, centre: Array) -> None:
        plan = self.choice_.best
        self.levels_ = np.array(plan.model.levels)
        self.rank_error_ = np.array(plan.mechanism.rank_errors(plan))
        if self.groups_:
            size = len(self.groups_) * len(self.levels_)
            self.quantiles_, self.records_ = centre[:size].reshape(len(self.groups_), -1), centre[size:]
            return
        self.quantiles_ = centre
        draw = self.certificate_.draw
        spread = plan.mechanism.inter_quartile_range(plan, draw.values[0], draw.stages)
        self.iqr_ = np.nan if spread is None else spread.value
        self.iqr_interval_ = None if spread is None or spread.level is None else spread[1:]

    @property
    def interval_reason_(self) -> str:
        """Why there is no interval; empty if there is one."""
        check_is_fitted(self)
        plan = self.choice_.best
        given = not self.groups_ and "lower" in (self.certificate_.draw.stages or {})
        return "" if given else str(plan.mechanism.why_no_ends(plan))
