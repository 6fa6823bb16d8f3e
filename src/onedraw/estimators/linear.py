"""Estimators that ask a `planning.Regression`: how many draws, which mechanism, and the release of a row model.

A fit publishes an estimate with its information, and its intervals follow from that. Mechanisms that are named publish
one draw of full weight, or ``n_draws`` that share the budget so that their spread gives an interval.

**Linear predictors**: coefficients in the columns' own units, and their intervals. Features with bounds are
scaled to [−1, 1] by their declared ranges before the draw, so the certificate's numbers are those of scaled columns. Coefficients, intercepts, draws and intervals here are of the original columns: a public,
linear change of units.

A record with a missing cell, in its row or its response, contributes nothing (``missing="skip"``, the default), and ``n_complete_`` is the
noisy number of the others. A mechanism that has to know how many records contribute refuses that before anything is charged; with
``missing="middle"`` such a cell is read as the middle of its range, and a note of the certificate says so.

New rows are brought into the declared bounds. One with a missing cell is predicted NaN, or where it has to be a label by the middle of
the cell's range, which a warning says; with ``missing="middle"`` all are predicted so. Within the bounds the predictor is ``X @ coef_.T + intercept_``; a fit's may be drawn back to the level, and
`summary` says by how much.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from onedraw.arrays import Array, Mask
from onedraw.data import DatabaseTable, Measure, Schema
from onedraw.data.curator import Declared
from onedraw.defaults import LEVEL
from onedraw.errors import InvalidModel, PromiseRefused, WrongCall
from onedraw.methods.draws.path_start import remembers_start
from onedraw.methods.fits import why_fit_refused
from onedraw.models import Gaussian
from onedraw.models.batches import column_chunks
from onedraw.models.features import read_rows, whole_rows
from onedraw.models.sums.clamped_sums import SKIP
from onedraw.planning import Choices, Options, Regression
from onedraw.planning.formulas import choose_columns
from onedraw.planning.question import in_python
from onedraw.planning.regression import regression_for
from onedraw.plans import Plan
from onedraw.release.estimates import (
    Estimates,
    estimates_of,
    interval_of,
    readable_draws,
    values_of,
    why_refused,
)
from onedraw.release.predictions import without_incomplete

from .base import Bounds, FileName, NoInterval, PrivateEstimator, cached, compared_features, is_integer
from .validation import (
    SAID_BY_IT,
    MeasuredResponse,
    Rows,
    as_given,
    by_name,
    check_rows,
    declared_schema,
    records_of,
    target_of,
)

MISSING = (SKIP, "middle")
"""What may become of a record with a missing cell, where no schema says it."""


@dataclass(eq=False, repr=False, kw_only=True)
class RegressionEstimator(PrivateEstimator):
    """fit(X, y) for features with public bounds."""

    mechanism: str = "auto"
    bounds: Bounds | None = None
    data_norm: float | None = None
    prior_scale: float | None = None
    effect: float | None = None
    n_draws: int | Literal["auto"] = "auto"
    missing: str = SKIP

    kind: ClassVar[str]
    """What `planning` calls the question."""

    def _options(self) -> dict[str, Any]:
        """Parameters that `planning.Regression` has too, by name; ``features`` are names here, and a number there."""
        known = {
            name: value for name, value in self.get_params(deep=False).items() if name not in ("features", "missing")
        }
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

    def _answered(self, question: Regression, data: Any, n: int, *, people: int = 1) -> Array:
        """Plan from public numbers, then release; the draws as drawn, one row each."""
        budget, accepted = self._budget(), self._accepted()
        if not isinstance(self.mechanism, str):
            raise InvalidModel(f"mechanism must be 'auto' or a mechanism's name, got {self.mechanism!r}.")
        options = {"n": n, "mechanism": self.mechanism, "accept": accepted, "records_per_person": people}
        if not self.schema_given:
            question = replace(question, missing=self._skips())
        choice = cached(Regression.choices, question, budget, draws=self._draws(), **options)
        draws = self._release(choice, data, "" if self.schema_given else choice.best.model.reads_missing)
        self._keep_known(choice)
        self._public_question: Regression = question
        self.interval_reason_: str = question.why_no_interval(choice.best)
        return draws

    def _skips(self) -> str | None:
        """What the question says of missing cells: "skip", or None where they are read as the middle of their range."""
        if self.missing not in MISSING:
            raise InvalidModel(
                f"missing is one of {', '.join(map(repr, MISSING))}, got {self.missing!r}. Fill cells in before, each record by itself and by "
                "public numbers, for another value."
            )
        return SKIP if self.missing == SKIP else None

    @property
    def schema_given(self) -> bool:
        """Whether a schema says what becomes of a missing cell."""
        return getattr(self, "schema", None) is not None

    def _keep_known(self, choice: Choices) -> None:
        """The noisy number of records with all cells, where the others contribute nothing."""
        stages = self.certificate_.draw.stages or {}
        if (known := choice.best.mechanism.missing_of(choice.best, stages)) is not None:
            self.n_complete_: int = known.shown
            self.n_complete_interval_: tuple[int, int] = known.interval(LEVEL)

    def _compared(self, plan: Plan, data: Any) -> dict[str, tuple[Declared, Iterable[Any]]]:
        X, y = data
        response = self._declared_response(plan, y), column_chunks(as_given(y), dim=1)[0]
        return {**compared_features(plan.model.features, X), "(response)": response}

    def _declared_response(self, plan: Plan, y: Any) -> Declared:
        measure = y.measure if isinstance(y, MeasuredResponse) else Measure(0.0)
        lower, upper = (measure.centre + measure.unit * end for end in plan.model.response.interval)
        return Declared(lower, upper)

    def _draws(self) -> int:
        if isinstance(self.n_draws, str) and self.n_draws == "auto":
            return 1
        if not is_integer(self.n_draws) or self.n_draws < 1:
            raise WrongCall(
                f"n_draws must be 'auto' or a whole number of at least 1, got {self.n_draws!r}. 'auto' is one fit or one "
                "draw; 4 or 8 draws of a named mechanism share its budget, so that their spread gives an interval."
            )
        return int(self.n_draws)


# ── linear predictors ──


class Expected(NamedTuple):
    """What a model expects of new rows, and the ends of an interval of it; NaN where a row is refused one."""

    estimate: Array
    low: Array
    high: Array


@dataclass(eq=False, repr=False, kw_only=True)
class LinearEstimator(RegressionEstimator):
    """A linear predictor for each class, or for the one response."""

    schema: Schema | FileName | Mapping[str, Any] | None = None
    target: str | None = None
    formula: str | None = None
    features: Sequence[str] | None = None
    fit_intercept: bool = True
    robust: bool = False

    def _fit(self, X: Any, y: Any) -> None:
        if self.schema is None:
            for name in ("formula", "features"):
                if getattr(self, name) is not None:
                    raise WrongCall(
                        f"{name}= names columns of a schema, and none was given. Pass schema=, or leave {name}= out."
                    )
            rows = check_rows(self, X, y, reset=True)
            draws = self._answered(self._question(rows), (rows.X, self._responses(rows.y)), rows.n)
        else:
            draws = self._fitted_by_schema(X, y)
        model, features = self.choice_.best.model, self.choice_.best.model.features
        self.draws_: Array = readable_draws(self.certificate_, model)
        values = values_of(self.certificate_, self.choice_.best)[: model.row_blocks * features.width]
        plan, stages = self.choice_.best, self.certificate_.draw.stages or {}
        if (few := plan.mechanism.without_estimate(plan, stages)) is not None and few.any():
            values = np.full(len(values), np.nan)
        blocks = values.reshape(model.row_blocks, -1)  # a variance at the end is left out
        self.coef_: Array = blocks[:, : features.count]
        self.intercept_: Any = blocks[:, features.count] if features.intercept else np.zeros(len(blocks))
        self._given: Mask = np.full(blocks.size, not self.interval_reason_)
        if not self.interval_reason_:
            refused = self._refused(draws)
            self._given = ~refused
            names = model.parameter_names[: blocks.size]
            plan = self.choice_.best
            why = why_fit_refused(self.release_.fit, plan, names) if self._is_fit else why_refused(refused, names)
            self.interval_reason_ = why

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"intercept": self.fit_intercept}

    def _fitted_by_schema(self, X: Any, y: Any) -> Array:
        schema = declared_schema(self)
        options = Options.named(self._besides_schema() | {"formula": self.formula, "columns": self.features})
        named = self.target if self.formula is not None or schema.formula is not None else target_of(self, schema, y)
        try:
            schema, target, options = choose_columns(schema, named, options)
        except WrongCall as error:
            raise type(error)(*map(in_python, error.args), **error.fields) from None
        question = regression_for(schema, target, model=self.kind, options=options)
        records = replace(records_of(schema, target, X, y), measure=question.measure)
        draws = self._answered(question, records, records.n, people=schema.records_per_person)
        names = list(schema.predictors(target))
        self.n_features_in_: int = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        return draws

    def _besides_schema(self) -> dict[str, Any]:
        """What the question is given besides what the schema says."""
        return {name: value for name, value in super()._options().items() if name not in ("classes", *SAID_BY_IT)}

    @property
    def _is_fit(self) -> bool:
        return bool(self.choice_.best.mechanism.publishes_fit)

    def _refused(self, draws: Array) -> Mask:
        """Coefficients about which a fit knows too little, or whose path may remember its start."""
        if self._is_fit:
            return ~self.release_.fit.given
        model = self.choice_.best.model
        in_columns: Array = model.in_column_units(np.eye(len(model.parameter_names))).T
        return remembers_start(draws, self.choice_.best, in_columns[: model.row_blocks * model.features.width])

    def _scores(self, X: Any, *, filled: bool = False) -> Array:
        """(n, blocks): the linear predictors of new rows, read like those of the fit; NaN for one with a missing cell where such
        contributed nothing, unless ``filled``."""
        check_is_fitted(self)
        return np.asarray(self.release_.predictor.scores(encoded(self, X, filled=filled))[0])

    def _expected(self, X: Any, level: float | None) -> Array | Expected:
        """(n, outputs): what the model expects of new rows, in the response's own units; with a level also the ends of
        its intervals, NaN where refused."""
        check_is_fitted(self)
        predictor = self.release_.predictor
        predictor.check(interval=level is not None)
        rows = encoded(self, X)
        if level is None:
            return predictor.at(rows)
        low, high = predictor.between(rows, level)
        if remark := predictor.why_not(low, rows):
            warnings.warn(remark, NoInterval, stacklevel=3)
        return Expected(predictor.at(rows, as_estimated=True), low, high)

    def conf_int(self, level: float = 0.95) -> Array:
        """(terms, 2): the interval of each coefficient and intercept, in the order and units of `summary`.

        They cover sampling and privacy noise together, under the model: of a fit by the information it published, of
        several draws by their spread, calibrated on the declared design. NaN for a coefficient that is refused one,
        `PromiseRefused` where there is none at all; `interval_reason_` says why.
        """
        check_is_fitted(self)
        if not self._given.any():
            raise PromiseRefused(f"This release gives no interval: {self.interval_reason_}")
        found = interval_of(self.certificate_, self.release_.plan, level, **self._sizes())
        return np.column_stack([found.low, found.high])[: len(self._given)]

    @property
    def bse_(self) -> Array:
        """Standard errors, in the order and units of `summary`; NaN where none can be given."""
        return self._of_fit("standard_errors")

    @property
    def pvalues_(self) -> Array:
        """Two-sided p-values of "this coefficient is 0"; NaN where none can be given."""
        return self._of_fit("p_values")

    def _of_fit(self, name: str) -> Array:
        """An attribute must not raise for a release without standard errors: scikit-learn looks at all to show one."""
        check_is_fitted(self)
        if self._is_fit and self.release_.fit.informed:
            return np.asarray(getattr(self.release_.fit, name))
        return np.full(self._given.shape, np.nan)

    def posterior(self, size: int, random_state: int | None = None, *, prior: Gaussian | None = None) -> Array:
        """(size, terms): draws from the normal posterior that was published, for nothing.

        ``prior``, if any, is chosen now: an `onedraw.Gaussian` on the terms in the order and units of `summary`.
        """
        self._check_fit()
        return self.release_.fit.posterior(size, np.random.default_rng(random_state), prior=prior)

    def to_arviz(self, size: int = 4000, random_state: int | None = None, *, prior: Gaussian | None = None) -> Any:
        """The `posterior` as ArviZ has it; needs ArviZ to be installed."""
        self._check_fit()
        return self.release_.to_arviz(size, prior=prior, random_state=random_state)

    def _check_fit(self) -> None:
        check_is_fitted(self)
        if not (self._is_fit and self.release_.fit.informed):
            reason = self.interval_reason_ or "its draws give intervals, but no standard errors"
            raise PromiseRefused(f"This release has no standard errors: {reason}")

    def _sizes(self) -> dict[str, Any]:
        """What the question expects of predictor and noise, by which intervals of several draws are calibrated."""
        return self._public_question.sizes

    def summary(self, level: float = 0.95, *, base: str = "declared") -> Estimates:
        """The coefficients with their intervals, labelled, in the columns' own units; ``pandas.DataFrame`` takes it.

        ``base="commonest"`` compares the levels of a category with the commonest one, by the published noisy shares, instead of
        the first one declared.
        """
        check_is_fitted(self)
        reason = "" if self._given.any() else self.interval_reason_
        plan = self.release_.plan
        found = estimates_of(self.certificate_, plan, level, reason=reason, base=base, **self._sizes())
        return found.first(len(self._given))


def encoded(estimator: Any, X: Any, *, filled: bool = False) -> Array:
    """New rows as the model reads rows: inside the declared bounds, the intercept's 1 last; ``filled`` as in `Predictor.rows`."""
    if estimator.certificate_.data.declared is not None:
        named = isinstance(X, str | os.PathLike | DatabaseTable)
        source = X if named else by_name(X, list(estimator.feature_names_in_))
        rows: Array = estimator.release_.predictor.rows(source, filled=filled)
        return rows
    features = estimator.choice_.best.model.features
    given = check_rows(estimator, X, reset=False).X
    found = np.concatenate(list(read_rows(given, features)))
    return without_incomplete(found, whole_rows(given, features)) if features.skips and not filled else found
