"""Means, deviations, covariances and correlations of several columns at once, with errors, like `sklearn.covariance`.

One release by `methods.Moments`: noise on exact sums, and everything else follows from it (`models.moments.result`).
What is estimated are the moments of the records clamped to their declared bounds, with divisor n as in scikit-learn.

| a record that is | counts as |
| --- | --- |
| outside the declared bounds | the nearest bound |
| NaN, ±inf or not a number | nothing, with all its cells (``missing="skip"``); or the middle of the range ("middle"), or what a schema declares |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from onedraw.arrays import Array
from onedraw.data import Schema, read
from onedraw.data.curator import Declared
from onedraw.defaults import LEVEL
from onedraw.errors import InvalidModel, WrongCall
from onedraw.methods import Moments, Plan
from onedraw.models import Columns
from onedraw.models.sums.clamped_sums import SKIP
from onedraw.planning import CovarianceQuestion, chosen_columns

from .base import Bounds, FileName, PrivateEstimator, cached, compared_features
from .validation import check_rows


@dataclass(eq=False, repr=False, kw_only=True)
class DPCovariance(PrivateEstimator):
    """Means, covariances and correlations of columns in declared ``bounds``, under differential privacy, with errors.

    ``DPCovariance(epsilon=1.0, bounds=([0, 0], [100, 50])).fit(X).correlation_``

    Parameters: ``epsilon``, ``delta``, ``accept``, ``check``, ``ledger``, ``dataset``, ``random_state`` as in
    `DPLogisticRegression`; ``bounds`` = (low, high), numbers or one for each column; or ``schema``, a `Schema` or the
    path of one, by which a data frame or a file is read, and ``columns``, which of its columns (all numbers and counts
    by default; categories are coded as 0 and 1, one for each level but the first); ``missing``, with ``bounds``: "skip", the default,
    leaves out records with a missing cell, "middle" reads the cell as the middle of its range.

    Attributes: ``location_``, ``covariance_``, ``correlation_`` (positive, 1 on its diagonal; 0 where nothing is
    known), ``precision_`` (the pseudo-inverse of the covariance), ``location_errors_``, ``covariance_errors_``,
    ``correlation_errors_`` (standard errors, sampling and privacy together; NaN where a correlation is not given),
    ``n_complete_`` and ``n_complete_interval_`` (the noisy number of records with all cells), ``column_names_``, ``interval_reason_`` (what is not given, and why), ``n_features_in_``, ``feature_names_in_``,
    ``certificate_``, ``guarantee_``, ``release_``, ``choice_``, ``notes_``.
    """

    bounds: Bounds | None = None
    schema: Schema | FileName | None = None
    columns: Sequence[str] | None = None
    missing: str = SKIP

    def _fit(self, X: Any, y: Any) -> None:
        question, data, n, people = self._by_bounds(X) if self.schema is None else self._by_schema(X, self.schema)
        choice = cached(CovarianceQuestion.choices, question, self._budget(), n=n, records_per_person=people)
        self._release(choice, data, "" if self.schema is not None else choice.best.model.features.reads_missing)
        self._keep_known(choice)
        model, found = question.model, self.release_.moments
        self.column_names_ = np.array(model.names, dtype=object)
        self.location_, self.covariance_, self.correlation_ = found.location, found.covariance, found.correlation
        self.precision_ = linalg.pinvh(found.covariance, check_finite=False)
        self.location_errors_ = np.hypot(*found.location_errors)
        self.covariance_errors_ = np.hypot(*found.covariance_errors)
        self.correlation_errors_ = np.hypot(*found.correlation_errors)
        self.interval_reason_ = found.refused(model.names)
        without = choice.best.mechanism.without_estimate(choice.best, self.certificate_.draw.stages or {})
        if without is not None and without.any():
            self.interval_reason_ = "too few records have all their cells, as far as the noise tells"
            for name in ("location_", "covariance_", "correlation_", "precision_", "location_errors_", "covariance_errors_", "correlation_errors_"):  # fmt: skip
                setattr(self, name, np.full_like(getattr(self, name), np.nan))

    def _keep_known(self, choice: Any) -> None:
        """The noisy number of records with all cells, where the others contribute nothing."""
        known = choice.best.mechanism.missing_of(choice.best, self.certificate_.draw.stages or {})
        if known is not None:
            self.n_complete_: int = known.shown
            self.n_complete_interval_: tuple[int, int] = known.interval(LEVEL)

    def _by_bounds(self, X: Any) -> tuple[CovarianceQuestion, Any, int, int]:
        if self.columns is not None:
            raise WrongCall(
                "columns chooses among those of a schema. Pass schema=…, or X with the columns that are meant."
            )
        if self.bounds is None:
            raise InvalidModel(
                "DPCovariance needs bounds=(low, high), the public range of each column, or a schema; values outside are "
                "clamped. It is never read from the records, whose extremes belong to single persons."
            )
        rows = check_rows(self, X, reset=True)
        if self.missing not in (SKIP, "middle"):
            raise InvalidModel(f"missing is 'skip' or 'middle', the middle of a column's range, got {self.missing!r}.")
        skipped = SKIP if self.missing == SKIP else None
        columns = Columns(rows.features, bounds=self.bounds, feature_names=rows.names, missing=skipped)
        return CovarianceQuestion(Moments(), columns), rows.X, rows.n, 1

    def _by_schema(self, X: Any, schema: Schema | FileName) -> tuple[CovarianceQuestion, Any, int, int]:
        if self.bounds is not None:
            raise WrongCall("bounds and schema both say what is public about the columns. Pass one of them.")
        declared = schema if isinstance(schema, Schema) else Schema.load(schema)
        if isinstance(self.columns, str):
            raise WrongCall(f"columns is a list of names, got the text {self.columns!r}. Pass [{self.columns!r}].")
        declared = chosen_columns(declared, None if self.columns is None else list(self.columns))
        records = read(X, declared)
        self.n_features_in_ = len(declared.columns)
        self.feature_names_in_ = np.array(list(declared.columns), dtype=object)
        return CovarianceQuestion.of_schema(declared), records, records.n, declared.records_per_person

    def _compared(self, plan: Plan, data: Any) -> dict[str, tuple[Declared, Iterable[Any]]]:
        return compared_features(plan.model.features, data)

    def conf_int(self, level: float = 0.95) -> Array:
        """(numbers, 2): of the means, the standard deviations and the correlations below the diagonal, row by row, for
        sampling and privacy noise together; NaN where a correlation is not given."""
        check_is_fitted(self)
        return self.release_.conf_int(level)

    def correlation_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """(low, high), matrices like ``correlation_``; NaN where a correlation is not given."""
        check_is_fitted(self)
        return self.release_.moments.correlation_interval(level)

    def get_precision(self) -> Array:
        """As in scikit-learn: the covariance's pseudo-inverse, without errors: small eigenvalues are mostly noise."""
        check_is_fitted(self)
        return np.asarray(self.precision_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
