"""One column at a time: a proportion, count, histogram, mean, sum, variance or rate; as a whole or within groups.

Each is released with plain noise on exact sums, or as one draw from a conjugate posterior, whichever is expected to be
off by less (`planning.ColumnQuestion`); both have a known law, so one release gives an interval. These estimators take
one column, (n,) or (n, 1), like scikit-learn's LabelEncoder; with ``by`` a table of the column and its groups.

| a record that is | counts as |
| --- | --- |
| outside the declared bounds | the nearest bound |
| an undeclared class, level or group; NaN, ±inf or not a number | a missing cell |

A missing cell contributes nothing, and how many there are is released with noise (``n_missing_``). With ``missing=`` it becomes what is
declared there: a number in the bounds, or one of the levels. A missing group then is the first one.
"""

from __future__ import annotations

import abc
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from onedraw.arrays import Array
from onedraw.data.cells import label_of
from onedraw.data.curator import Declared
from onedraw.defaults import LEVEL
from onedraw.errors import InvalidModel, PromiseRefused, WrongCall
from onedraw.models import ConjugateModel, Grouped, Table
from onedraw.models.batches import column_chunks
from onedraw.models.model import CANNOT_SKIP
from onedraw.models.sums.clamped_sums import SKIP, is_skip
from onedraw.models.tables.table import MOST_GROUPINGS
from onedraw.planning import Choices, ColumnQuestion
from onedraw.planning.column_questions import POSTERIORS
from onedraw.plans import Plan
from onedraw.privacy import Promise
from onedraw.release.estimates import Estimates, estimates_of, interval_of

from .base import Labels, PrivateEstimator, cached, is_integer, is_number
from .classification import declared_classes
from .validation import LabelCodes, as_given, grouped_columns, one_column


class ColumnEstimator(PrivateEstimator):
    """What is released about one column."""

    by: Mapping[str, Labels] | None = None
    group_sizes: Labels | None = None
    prior: Sequence[float] | None = None
    between: Sequence[float | None] | None = None
    noise: float | None = None
    mechanism: str = "auto"
    n_draws: int = 1
    missing: Any = SKIP
    """Parameters where a subclass makes fields of them; otherwise as here."""

    term: ClassVar[str] = ""
    """What is published, if it is one for each label."""

    _family: ClassVar[type[ConjugateModel] | None] = None
    """Whose posterior answers the question too, if there is one."""

    def _fit(self, X: Any, y: Any) -> None:
        by = declared_by(self)
        skips = is_skip(self.missing)
        absent = math.nan if skips else None
        column, codes = grouped_columns(self, X, by, absent) if by else (one_column(self, X)[0], ())
        choice = self._planned(self._budget(), len(column))
        labels = () if self.between is not None else self._labels()
        records = LabelCodes(column, labels, absent if skips else self.missing) if labels else column
        self.draws_: Array = self._release(choice, Grouped(records, codes) if codes else records)
        self.groups_: list[str] = list(choice.best.model.group_names) if codes else []
        centre = self.draws_.mean(axis=0)
        plan, stages = choice.best, self.certificate_.draw.stages or {}
        if (without := plan.mechanism.without_estimate(plan, stages)) is not None:
            centre = np.where(without, np.nan, centre)
        if (missing := plan.mechanism.missing_of(plan, stages)) is not None:
            self.n_missing_: int = missing.shown
            self.n_missing_interval_: tuple[int, int] = missing.interval(LEVEL)
        self._keep(centre)

    def _missing_number(self, low: float, high: float) -> Any:
        """What a missing cell becomes, of a column of numbers: "skip", or a number in the declared range."""
        if is_skip(self.missing):
            return SKIP
        if not is_number(self.missing) or not low <= float(self.missing) <= high:
            raise InvalidModel(
                f"missing is 'skip', or the number between {low:g} and {high:g} that a missing cell becomes, got {self.missing!r}. Leave "
                "it out to take the known cells alone."
            )
        return float(self.missing)

    def _missing_level(self) -> Any:
        """The same of a column of levels: "skip", or the code of a level."""
        if is_skip(self.missing):
            return SKIP
        labels = self._labels()
        if label_of(self.missing) not in [label_of(label) for label in labels]:
            raise InvalidModel(
                f"missing is 'skip', or the level that a missing cell becomes, one of {', '.join(map(str, labels))}, got "
                f"{self.missing!r}. Leave it out to take the known cells alone."
            )
        return [label_of(label) for label in labels].index(label_of(self.missing))

    def _table(self, groups: dict[str, Any]) -> Table:
        """What plain noise is put on, from public parameters."""
        raise NotImplementedError

    def _declared(self) -> Any:
        """What a schema would declare of the column."""
        return SimpleNamespace(labels=tuple(map(str, self._labels())))

    def _labels(self) -> tuple[Any, ...]:
        """All values there can be; none of a column of numbers."""
        return ()

    @abc.abstractmethod
    def _keep(self, centre: Array) -> None:
        """Name the published numbers."""

    def _compared(self, plan: Plan, data: Any) -> dict[str, tuple[Declared, Iterable[Any]]]:
        columns = {"column": data}
        if isinstance(data, Grouped):
            columns = {"column": data.values, **dict(zip(plan.model.by, data.codes, strict=True))}

        def declared(column: Any) -> Declared:
            if isinstance(column, LabelCodes):
                return Declared.levels(column.labels)
            return Declared() if self.between is not None else Declared(*declared_range(self))

        return {name: (declared(one), column_chunks(as_given(one), dim=1)[0]) for name, one in columns.items()}

    def _planned(self, budget: Promise, n: int) -> Choices:
        if not is_integer(self.n_draws) or self.n_draws < 1:
            raise WrongCall(f"n_draws must be a whole number of at least 1, got {self.n_draws!r}.")
        self._accepted()
        table = None if self.prior is not None else self._table(declared_groups_of(self))
        question = ColumnQuestion(table, self._posterior(budget, n))
        found: Choices = cached(
            ColumnQuestion.choices, question, budget, n=n, draws=int(self.n_draws), mechanism=self.mechanism
        )
        return found

    def _posterior(self, budget: Promise, n: int) -> ConjugateModel | None:
        """None where there is no posterior for the question, the groups or this budget."""
        if self._family is None or self.by is not None or self.between is not None:
            if self.prior is not None:
                raise InvalidModel("A prior is for draws from a posterior, and there is none here. Leave out prior.")
            return None
        if is_skip(self.missing):
            if self.prior is not None or self.mechanism in POSTERIORS or self.n_draws > 1:
                raise InvalidModel(CANNOT_SKIP.format("A draw from a posterior").replace("`missing: 55`", "missing=55"))
            return None
        try:
            return self._family.for_column(self._declared(), n=n, budget=budget, prior=self.prior)
        except InvalidModel:
            if self.prior is not None or self.mechanism not in ("auto", "laplace", "gaussian"):
                raise
            return None

    @property
    def interval_reason_(self) -> str:
        """Why there is no interval; empty if there is one."""
        check_is_fitted(self)
        return "" if self.choice_.best.draws == 1 else "the closed form is about one draw. Fit with n_draws=1."

    def conf_int(self, level: float = 0.95) -> Array:
        """(terms, 2): the interval of each published number, for sampling and privacy noise together; of counts and
        sums, which are about these records, for the noise; of quantiles, for every level up to the one asked for."""
        if self.interval_reason_:
            raise PromiseRefused(f"This release gives no interval: {self.interval_reason_}")
        found = interval_of(self.certificate_, self.release_.plan, level, noise=self.noise)
        return np.column_stack([found.low, found.high])

    def summary(self, level: float = 0.95) -> Estimates:
        """The published numbers with their intervals, labelled; ``pandas.DataFrame`` takes it."""
        check_is_fitted(self)
        names, term = self.certificate_.draw.names, self.term or self.certificate_.draw.quantity
        terms = [(term, label) for label in names] if self.term or self.groups_ else [(names[0], "")]
        return estimates_of(
            self.certificate_, self.release_.plan, level, terms=terms, reason=self.interval_reason_, noise=self.noise
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.allow_nan = True
        return tags

    def _of_groups(self, centre: Array) -> Any:
        """One number, or one for each group; the numbers of records of private groups are kept beside."""
        if not self.groups_:
            return float(centre[0])
        if len(centre) > len(self.groups_):
            self.records_ = centre[len(self.groups_) :]
        return centre[: len(self.groups_)]


@dataclass(eq=False, repr=False, kw_only=True)
class TableEstimator(ColumnEstimator):
    """Answered by plain noise, as a whole or within groups."""

    mechanism: str = "auto"
    by: Mapping[str, Labels] | None = None
    group_sizes: Labels | None = None
    missing: Any = SKIP


@dataclass(eq=False, repr=False, kw_only=True)
class PosteriorEstimator(TableEstimator):
    """Answered by plain noise, or by a draw from a conjugate posterior."""

    prior: Sequence[float] | None = None
    n_draws: int = 1


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
        raise InvalidModel(f"bounds must be two finite numbers (low, high), low below high, got {bounds!r}.")
    return low, high


def declared_by(estimator: Any) -> dict[str, tuple[Any, ...]]:
    """Column → its declared groups; empty where the column is taken as a whole."""
    by = estimator.by
    if by is None:
        if estimator.group_sizes is not None:
            raise InvalidModel("group_sizes is about groups, but by names none. Pass by={column: [group, …]}.")
        return {}
    if not isinstance(by, Mapping) or not 1 <= len(by) <= MOST_GROUPINGS:
        raise InvalidModel(
            "by names one to three columns with all groups there can be, by={'sex': ['F', 'M']}; groups are never read from the "
            f"records. Got a {type(by).__name__}."
        )
    return {str(name): tuple(declared_classes(groups, "by").tolist()) for name, groups in by.items()}


def declared_groups_of(estimator: Any) -> dict[str, Any]:
    """The same as a table has it."""
    if not (by := declared_by(estimator)):
        return {}
    groups, sizes = tuple(tuple(map(str, labels)) for labels in by.values()), estimator.group_sizes
    known = None if sizes is None else tuple(np.asarray(sizes).ravel().tolist())
    return {"by": tuple(by), "groups": groups, "sizes": known}
