"""Predictions of a released model for new records, with intervals where a fit gives them. They cost nothing.

New records are read as the private ones were, by the schema that the certificate carries. An interval is of what the model
expects at a row: the probability of a class, the mean of a number, the rate of a count. It covers sampling and privacy noise of
the coefficients together, not the scatter of single responses; and it is refused, row by row, by the rule that refuses
coefficients theirs: where directions about which the records say too little carry more than 5 % of its variance.

Where records with a missing cell contributed nothing, a new record with one has no prediction: NaN, and no class. Elsewhere the cell is
read as it was for the release.

A fit's predictions may be drawn back to the level (`NormalEstimates.predicting`). Intervals are about the estimate, and so are the
predictions beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.data import Column, Number, Schema, read
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.methods import Plan
from onedraw.models import Network
from onedraw.models.features import LARGEST, Features, schema_rows
from onedraw.models.normal_estimates import NormalEstimates
from onedraw.models.sums.clamped_sums import marks

from .certificate import Certificate

LARGEST_LOG = 700.0
"""Of a predicted count: beyond, e^u is no number any more."""

MOST_NAMED = 6
"""Coefficients named in a sentence, at most."""


@dataclass(frozen=True)
class Predictions:
    """One row for each new record: ``values`` by column, and for a classification the likeliest of ``classes``.

    ``low`` and ``high`` are the ends of intervals at ``level``, where they were asked for: NaN for rows that are refused one,
    and ``remark`` says why. ``note`` says how far predictions without intervals are drawn back to the level, and how many rows have
    none, NaN, because a cell is missing. ``numpy.asarray`` takes the values.
    """

    columns: tuple[str, ...]
    values: Array
    classes: tuple[str, ...] = ()
    low: Array | None = None
    high: Array | None = None
    level: float | None = None
    remark: str = ""
    note: str = ""

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype)

    @property
    def labels(self) -> list[str]:
        """The class of each record, "" of one without a prediction; empty where a number was predicted."""
        if not self.classes:
            return []
        codes = self.values.argmax(axis=1) if self.values.shape[1] > 1 else (self.values[:, 0] > 0.0).astype(int)
        lost: list[Any] = np.atleast_1d(np.isnan(self.values).any(axis=1)).tolist()
        return ["" if gone else self.classes[code] for code, gone in zip(codes, lost, strict=True)]


@dataclass(frozen=True)
class Predictor:
    """A released model reading encoded rows: what it expects at each, and intervals of that where a fit gives them.

    It predicts by the mean of its draws, a fit by the coefficients that it has for predictions; a network by each draw, and the
    predictions are averaged.
    """

    certificate: Certificate
    plan: Plan

    def check(self, *, interval: bool = False) -> None:
        """Refuse a release that says nothing about new records, or gives no intervals, before anything is opened or computed."""
        model, data = self.plan.model, self.certificate.data
        if not model.predicts:
            raise WrongCall(
                f"This release is of {type(model).__name__} ({model.quantity}), which predicts nothing about a new "
                "record. Predictions need a regression or a classification, released with --model logistic, linear or svc, say."
            )
        in_words = any(note.statement.startswith("responses are measured from") for note in data.notes)
        if data.measure is None and in_words:
            raise WrongCall(
                "The certificate says that responses were measured from a public number, but only in words: predictions would "
                "be off by it. Use the fitted estimator's own predict."
            )
        if interval and not self._is_fit:
            raise PromiseRefused(
                f"This release is by {self.certificate.mechanism.name}: it predicts, but gives no interval of a prediction. "
                "Leave out the interval, or release a fit: name mechanism='fit'."
            )
        if interval and not self._fit.informed:
            raise PromiseRefused(
                "This fit has no standard errors, so its predictions have no intervals: at its n and ε they would drown in the "
                "noise. Leave out the interval."
            )

    def scores(self, rows: Array, *, as_estimated: bool = False) -> Array:
        """(draws, n, outputs): the linear predictors of the mean draw (one), or each draw's output of a network.

        ``as_estimated`` takes a fit's estimate, which its intervals are about, also where predictions are drawn back.
        """
        model, draws = self.plan.model, np.array(self.certificate.draw.values, dtype=np.float64)
        if isinstance(model, Network):
            outputs = np.stack([np.asarray(model.predictor(draw, rows)) for draw in draws])
            return outputs.reshape(len(draws), len(rows), -1)
        width = model.features.width
        mean = np.average(draws, axis=0, weights=self.plan.mechanism.draw_shares(self.plan))
        if self._is_fit and self._fit.kept < 1.0 and not as_estimated:
            mean = self._fit.predicting
        blocks = mean[: model.row_blocks * width].reshape(model.row_blocks, width)
        return np.asarray((rows @ blocks.T)[np.newaxis])

    def expected(self, scores: Array) -> Array:
        """(n, outputs): probabilities, margins, means or rates at scores (draws, n, outputs), draws averaged."""
        model = self.plan.model
        if model.predicts == "margin":
            return np.asarray(scores[0])
        if model.predicts == "count":
            return np.asarray(np.exp(np.minimum(scores[0], LARGEST_LOG)))
        if model.predicts == "number":
            data = self.certificate.data  # centre and unit of the response are given back
            values = scores if data.measure is None else data.measure.centre + data.measure.unit * scores
            if isinstance(model, Network) and self._target is not None:  # stays in its range
                values = np.clip(values, *self._target.ends)
            return np.asarray(values.mean(axis=0))
        if scores.shape[2] == 1:
            positive = special.expit(scores[:, :, 0]).mean(axis=0)
            return np.column_stack([1.0 - positive, positive])
        return np.asarray(special.softmax(scores, axis=2).mean(axis=0))

    def at(self, rows: Array, *, as_estimated: bool = False) -> Array:
        """(n, outputs): what is expected at encoded rows."""
        return self.expected(self.scores(rows, as_estimated=as_estimated))

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels of a classification, as declared; empty where a number is predicted."""
        if self.plan.model.predicts not in ("probabilities", "margin"):
            return ()
        classes = self.plan.model.classes
        if classes is None and self._target is not None and self._target.role in ("category", "binary"):
            classes = self._target.labels
        return ("0", "1") if classes is None else tuple(map(str, classes))

    @property
    def columns(self) -> tuple[str, ...]:
        """What the predicted numbers are called."""
        kind = self.plan.model.predicts
        if kind == "probabilities":
            return tuple(f"P({label})" for label in self.classes)
        unnamed = "count" if kind == "count" else "value"
        return ("margin" if kind == "margin" else self.certificate.data.target or unnamed,)

    def between(self, rows: Array, level: float) -> tuple[Array, Array]:
        """(low, high) of what is expected at encoded rows; NaN where refused. The link is monotone, so ends stay ends."""
        fit, scores = self._fit, self.scores(rows, as_estimated=True)
        if self.plan.model.row_blocks > 1:
            return classes_between(fit, rows, scores[0], level)
        reach = fit.reach(rows, level)[np.newaxis, :, np.newaxis]
        ends = [self.expected(end) for end in (scores - reach, scores + reach)]
        return np.minimum(*ends), np.maximum(*ends)

    def why_not(self, low: Array, rows: Array) -> str:
        """Which of the predicted rows have no interval, and what they rest on; empty if all have one."""
        without = int((np.isnan(low).any(axis=1) & ~np.isnan(rows).any(axis=1)).sum())
        if not without:
            return ""
        names = zip(self.certificate.draw.names, self._fit.given, strict=True)
        doubtful = [repr(name) for name, known in names if not known]
        some = ", ".join(doubtful[:MOST_NAMED]) + (", …" if len(doubtful) > MOST_NAMED else "")
        about = f" ({some})" if doubtful else ""
        return (
            f"No interval for {without:,} of {len(low):,} rows: they rest on coefficients about which the records say too "
            f"little{about}."
        )

    @property
    def _target(self) -> Column | None:
        """What the certificate's schema, if it carries one, declares of the column that is explained."""
        data = self.certificate.data
        if data.declared is None or data.target is None:
            return None
        return Schema.from_dict(data.declared).column(data.target)

    @property
    def _is_fit(self) -> bool:
        return self.certificate.draw.stages is not None and self.plan.mechanism.publishes_fit

    @cached_property
    def _fit(self) -> NormalEstimates:
        found: NormalEstimates = self.plan.mechanism.result(self.plan, self.certificate.draw.stages or {})
        return found

    def predict(self, source: Any, *, schema: Schema | None = None, level: float | None = None) -> Predictions:
        """For new records: ``source`` is what `onedraw.data.read` takes; the target need not be in it.

        ``schema`` is needed only for a certificate that carries none but names one by its digest. ``level`` asks for
        intervals, which only a fit gives.
        """
        self.check(interval=level is not None)
        rows = self.rows(source, schema)
        lost = without_prediction(rows)
        if level is None:
            note = " ".join(filter(None, (self._fit.about_predictions if self._is_fit else "", lost)))
            return Predictions(self.columns, self.at(rows), self.classes, note=note)
        low, high = self.between(rows, level)
        found = self.at(rows, as_estimated=True)
        return Predictions(self.columns, found, self.classes, low, high, level, self.why_not(low, rows), lost)

    def rows(self, source: Any, schema: Schema | None = None, *, filled: bool = False) -> Array:
        """New records as the model reads rows: encoded by the schema, inside the declared bounds, the intercept's 1 last. NaN for one
        with a missing cell, where such records contributed nothing; ``filled`` reads that cell as the model would, by public numbers."""
        records = read(source, self._feature_schema(schema))
        encoded = (self.row_batch(batch, records.schema, None, filled=filled) for batch in records.batches())
        return np.concatenate([np.zeros((0, self.plan.model.features.width)), *encoded])

    def row_batch(
        self, batch: dict[str, NDArray[Any]], schema: Schema, target: str | None, *, filled: bool = False
    ) -> Array:
        """A batch of encoded columns as the model reads rows."""
        features: Features = self.plan.model.features
        rows = features.enforce(schema_rows(batch, schema, target))
        cells = [values for name, values in batch.items() if name != target]
        return without_incomplete(rows, marks(cells)[0]) if features.skips and cells and not filled else rows

    def _feature_schema(self, schema: Schema | None) -> Schema:
        """The declared columns without the target: of the certificate, of a schema that it names, or of its numbers."""
        data = self.certificate.data
        if schema is not None:
            if data.schema_digest is None:
                raise WrongCall(
                    "This release was made without a schema, so none can be checked against it. Leave out --schema; the columns "
                    "are read as numbers, by the names in the certificate."
                )
            if schema.digest != data.schema_digest:
                raise WrongCall(
                    "This is not the schema of the release, whose digest is another one: read by other bounds or levels, the "
                    "coefficients would mean something else. Pass the schema the release was made with."
                )
        elif data.declared is not None:
            schema = Schema.from_dict(data.declared)
        elif data.schema_digest is not None:
            raise WrongCall(
                "The certificate names the schema its records were read by, but does not carry it: how new records are read is "
                "not known. Pass that schema with --schema."
            )
        else:
            return numeric_schema(self.plan.model.features)
        return schema.of_predictors(data.target)


def without_incomplete(rows: Array, known: Mask) -> Array:
    """Rows with NaN in place of those that lack a cell."""
    return np.where(known[:, np.newaxis], rows, np.nan)


def without_prediction(rows: Array) -> str:
    """How many rows have no prediction, and why; empty if all have one."""
    lost = int(np.isnan(rows).any(axis=1).sum())
    return f"No prediction for {lost:,} of {len(rows):,} rows: a cell of theirs is missing." if lost else ""


def classes_between(fit: NormalEstimates, rows: Array, scores: Array, level: float) -> tuple[Array, Array]:
    """(low, high) of each class's probability, by the slope of its log-odds: ∂ log(p_k/(1−p_k))/∂ score_j = (δ_jk − p_j)/(1−p_k)."""
    shares = np.clip(special.softmax(scores, axis=1), 1e-12, 1.0 - 1e-12)
    low, high = np.empty_like(shares), np.empty_like(shares)
    for k in range(shares.shape[1]):
        slopes = (np.eye(shares.shape[1])[k] - shares) / (1.0 - shares[:, [k]])
        reach = fit.reach((slopes[:, :, np.newaxis] * rows[:, np.newaxis, :]).reshape(len(rows), -1), level)
        odds = special.logit(shares[:, k])
        low[:, k], high[:, k] = special.expit(odds - reach), special.expit(odds + reach)
    return low, high


def numeric_schema(features: Features) -> Schema:
    """For a release made from arrays or frames: numbers by name, what is not one read as the model reads NaN, or missing where it skips."""
    names = features.column_names[: features.count]
    if features.skips:
        return Schema(columns={name: Number(lower=-LARGEST, upper=LARGEST) for name in names})
    middle = features.enforce(np.full((1, features.count), np.nan))[0, : features.count]
    if features.scaled:  # what is encoded as 0 (or the nearest to it) is the middle of the range
        lower, upper = (np.array(end, dtype=np.float64) * np.ones(features.count) for end in features.box or (0.0, 0.0))
        middle = lower + (upper - lower) / 2 if features.intercept else np.clip(0.0, lower, upper)
    return Schema(
        columns={
            name: Number(lower=-LARGEST, upper=LARGEST, missing=float(value))
            for name, value in zip(names, middle, strict=True)
        }
    )
