"""Reading a certificate's draws: in the units of the columns, and as predictions for new records.

Both are post-processing of what was published, by public numbers alone: they cost nothing and touch no private record.
The certificate keeps the draw as drawn; what people read has the coefficients of the original columns and the response's
own centre and unit. New records are read as the private ones were, by the schema that the certificate carries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from onedraw.data import Number, Schema, read
from onedraw.errors import WrongCall
from onedraw.mechanisms import PerturbedMode, Plan
from onedraw.mechanisms.candidate_plan import shares
from onedraw.models.features import LARGEST, Features, column_range, schema_rows
from onedraw.models.fit_result import FitResult
from onedraw.models.row_model import RowModel

from .certificate import Certificate

Array = NDArray[np.float64]

PROBABILITIES = ("Logistic", "Softmax", "BinaryRegression")
MARGINS = ("Hinge", "HuberisedHinge")
NUMBERS = (
    "LogCoshRegression",
    "LeastSquares",
    "HuberRegression",
    "Quantile",
    "GaussianRegression",
    "StudentTRegression",
)

LARGEST_LOG = 700.0
"""Of a predicted count: beyond, e^u is no number any more."""

COUNTS = ("CountRegression", "PoissonRegression", "NegativeBinomialRegression")


# ── draws in column units ────────────────────────────────────────────────────────────────────────────────────


def column_units(certificate: Certificate, model: Any) -> tuple[Array, Array, Array]:
    """(change, scale, shift) with ``scale·(change @ draw) + shift`` the draw as people read it."""
    size = len(certificate.draw.names)
    change, scale, shift = np.eye(size), np.ones(size), np.zeros(size)
    if type(model).__name__ == "BetaBernoulli":  # a share of the range lower … upper
        return change, scale * (model.upper - model.lower), shift + model.lower
    if not isinstance(model, RowModel):
        return change, scale, shift
    change = model.in_column_units(change).T
    measure = certificate.data.measure
    if measure is not None and model.quantity == "coefficients":  # a network's weights are not in anybody's units
        names = certificate.draw.names
        scale = np.array([measure.unit**2 if name == "variance" else measure.unit for name in names])
        shift = np.array([measure.centre if name == "intercept" else 0.0 for name in names])
    return change, scale, shift


def readable_draws(certificate: Certificate, model: Any) -> Array:
    """All draws, one row each, in the units of the columns."""
    change, scale, shift = column_units(certificate, model)
    return scale * (np.array(certificate.draw.values, dtype=np.float64) @ change.T) + shift


def fit_of(certificate: Certificate, plan: Plan) -> FitResult:
    """A release in stages as people read it: estimate, errors and tests in the units of the columns. Free post-processing."""
    if certificate.draw.stages is None or not isinstance(plan.mechanism, PerturbedMode):
        raise WrongCall(
            f"This release is a draw by {certificate.mechanism.name}, not a fit: it has no information to build on. Use "
            "its draws, or release with mechanism='fit'."
        )
    return plan.mechanism.result(plan, certificate.draw.stages).in_units(*column_units(certificate, plan.model))


def average(draws: Array, plan: Plan) -> Array:
    """The mean of the draws; of a selection's picks the one weighted like their rounds, which are public."""
    picks = getattr(plan.mechanism, "publish", None) == "picks" and plan.draws > 1
    weights = [float(share) for share in shares(len(draws))] if picks else None
    values: Array = np.average(draws, axis=0, weights=weights)
    return values


# ── predictions ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Predictions:
    """One row for each new record: ``values`` by column, and for a classification the likeliest of ``classes``."""

    columns: tuple[str, ...]
    values: Array
    classes: tuple[str, ...] = ()

    @property
    def labels(self) -> list[str]:
        """The class of each record; empty where a number was predicted."""
        if not self.classes:
            return []
        codes = self.values.argmax(axis=1) if self.values.shape[1] > 1 else (self.values[:, 0] > 0.0).astype(int)
        return [self.classes[code] for code in codes]


def predict(certificate: Certificate, plan: Plan, source: Any, *, schema: Schema | None = None) -> Predictions:
    """Predictions of the released model for new records: of the mean of its draws, for a network of each draw, averaged.

    ``source`` is what `onedraw.data.read` takes; the target need not be in it. ``schema`` is needed only for a
    certificate that carries none but names one by its digest.
    """
    model = plan.model
    check_predicts(certificate, model)
    rows = new_rows(certificate, model.features, source, schema)
    scores = scores_of(certificate, plan, rows)
    name = type(model).__name__
    if name in NUMBERS or getattr(model, "task", "") == "regression":
        return Predictions((certificate.data.target or "value",), response_values(certificate, model, scores))
    if name in COUNTS:
        return Predictions((certificate.data.target or "count",), expected_counts(scores[0]))
    classes = class_names(certificate, model)
    if name in MARGINS:
        return Predictions(("margin",), scores[0], classes)
    if scores.shape[2] == 1:
        positive = special.expit(scores[:, :, 0]).mean(axis=0)
        values = np.column_stack([1.0 - positive, positive])
    else:
        values = special.softmax(scores, axis=2).mean(axis=0)
    return Predictions(tuple(f"P({label})" for label in classes), values, classes)


def expected_counts(predictors: Array) -> Array:
    """e^u, and a very large number where it would be none any more."""
    return np.asarray(np.exp(np.minimum(predictors, LARGEST_LOG)))


def check_predicts(certificate: Certificate, model: Any) -> None:
    """Refuse a release that says nothing about new records, before any file is opened."""
    name = type(model).__name__
    if name not in (*PROBABILITIES, *MARGINS, *NUMBERS, *COUNTS, "Network"):
        raise WrongCall(
            f"This release is of {name} ({certificate.draw.quantity}), which predicts nothing about a new record. "
            "Predictions need a regression or a classification, released with --model logistic, linear or svc, say."
        )
    data = certificate.data
    if data.measure is None and any(note.statement.startswith("responses are measured from") for note in data.notes):
        raise WrongCall(
            "The certificate says that responses were measured from a public number, but only in words: predictions would be "
            "off by it. Use the fitted estimator's own predict."
        )


def scores_of(certificate: Certificate, plan: Plan, rows: Array) -> Array:
    """(draws, n, outputs): the linear predictors of the mean draw (one), or each draw's output of a network."""
    model, draws = plan.model, np.array(certificate.draw.values, dtype=np.float64)
    if type(model).__name__ == "Network":
        outputs = np.stack([np.asarray(model.predictor(draw, rows)) for draw in draws])
        return outputs.reshape(len(draws), len(rows), -1)
    width = model.features.width
    blocks = average(draws, plan)[: model.row_blocks * width].reshape(model.row_blocks, width)
    scores: Array = (rows @ blocks.T)[np.newaxis]
    return scores


def response_values(certificate: Certificate, model: Any, scores: Array) -> Array:
    """Predictors as responses, centre and unit given back; a network's stay in the declared range of the target."""
    data = certificate.data
    values = scores if data.measure is None else data.measure.centre + data.measure.unit * scores
    if type(model).__name__ == "Network" and data.declared is not None and data.target is not None:
        values = np.clip(values, *column_range(Schema.from_dict(data.declared).column(data.target)))
    means: Array = values.mean(axis=0)
    return means


def class_names(certificate: Certificate, model: Any) -> tuple[str, ...]:
    if model.classes is not None:
        return tuple(map(str, model.classes))
    data = certificate.data
    if data.declared is not None and data.target is not None:
        return tuple(getattr(Schema.from_dict(data.declared).column(data.target), "labels", ("0", "1")))
    return ("0", "1")


# ── new records ──────────────────────────────────────────────────────────────────────────────────────────────


def new_rows(certificate: Certificate, features: Features, source: Any, schema: Schema | None) -> Array:
    """New records as the model reads rows: encoded by the schema, inside the declared bounds, the intercept's 1 last."""
    records = read(source, feature_schema(certificate, features, schema))
    encoded = (features.enforce(schema_rows(batch, records.schema, None)) for batch in records.batches())
    return np.concatenate([np.zeros((0, features.width)), *encoded])


def feature_schema(certificate: Certificate, features: Features, schema: Schema | None) -> Schema:
    """The declared columns without the target: of the certificate, of a schema that it names, or of its numbers."""
    data = certificate.data
    if schema is not None:
        check_same_schema(certificate, schema)
    elif data.declared is not None:
        schema = Schema.from_dict(data.declared)
    elif data.schema_digest is not None:
        raise WrongCall(
            "The certificate names the schema its records were read by, but does not carry it: how new records are read is "
            "not known. Pass that schema with --schema."
        )
    else:
        return numeric_schema(features)
    return Schema(columns={name: column for name, column in schema.columns.items() if name != data.target})


def check_same_schema(certificate: Certificate, schema: Schema) -> None:
    stated = certificate.data.schema_digest
    if stated is None:
        raise WrongCall(
            "This release was made without a schema, so none can be checked against it. Leave out --schema; the columns are "
            "read as numbers, by the names in the certificate."
        )
    if schema.digest != stated:
        raise WrongCall(
            "This is not the schema of the release: the digest in the certificate is another one. Read by other bounds or "
            "levels, the coefficients would mean something else. Pass the schema the release was made with."
        )


def numeric_schema(features: Features) -> Schema:
    """For a release made from arrays or frames: numbers by name, what is not one read as the model reads NaN."""
    names = features.column_names[: features.count]
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
