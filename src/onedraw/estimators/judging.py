"""What a fitted model says of held-out records, beside what each of them was: for `evaluate` and `choose`.

**A prediction must depend on its own row alone**, or replacing a record would change what is counted of others.
Releases and estimators of this library predict so, and no row makes them fail. Any other model is asked one row at a
time, each time a fresh copy of it, and a row it fails on counts as stated; ``batch=True`` asks it once for all rows, which is
quicker, and then the caller answers for it (`foreign_models`).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.data import Schema, read
from onedraw.data.sums import Reading
from onedraw.errors import InvalidModel, WrongCall
from onedraw.models.batches import batches
from onedraw.models.responses import Codes
from onedraw.models.tables.scores import Judged
from onedraw.privacy import Assumption, Provenance
from onedraw.release import Certificate, Release
from onedraw.release.certificate import certificate_from
from onedraw.release.predictions import Predictor
from onedraw.release.verification import verify

from .foreign_models import ForeignModel, Prediction

Kind = tuple[str, ...] | tuple[float, float]
"""Classes, or the range of a response."""


def judged_by(
    model: Any, X: Any, y: Any, classes: Any, bounds: Any, batch: bool
) -> tuple[Judged, tuple[Assumption, ...], Kind]:
    if isinstance(model, Release | Certificate):
        return _by_release(Release(model) if isinstance(model, Certificate) else model, X, y, classes, bounds)
    if y is None:
        raise WrongCall("evaluate needs the true responses: evaluate(model, X, y, epsilon=…).")
    if len(X) != len(y):
        raise InvalidModel(f"X has {len(X):,} records and y {len(y):,}. Pass one response for each record.")
    ours = is_ours(model)
    kind = _kind(model, classes, bounds, ours=ours)
    predict, rows = _prediction(model, kind), _rows(X)
    foreign = None if ours else ForeignModel(model, predict)
    ask = partial(predict, model) if foreign is None else foreign.ask
    _try_out(ask, rows)
    if foreign is not None:
        foreign.check(rows, batch=batch)
    labels = Codes(tuple(classes if classes is not None else model.classes_)) if not bounds else None

    def judged() -> Array:
        if labels is not None:
            truth = labels.from_values(y, np.nan)
        else:
            truth = np.concatenate([np.zeros(0), *(np.asarray(part, dtype=np.float64) for part in batches(y))])
        if foreign is None:
            found = np.asarray(ask(X), dtype=np.float64).reshape(-1)
        else:
            found = foreign.together(X, rows) if batch else foreign.one_by_one(rows)
        if foreign is None and len(found) == len(truth):  # a row that lacks a cell is not predicted, and not judged
            truth = np.where(np.isnan(found), np.nan, truth)
        finite = np.where(np.isfinite(found), found, np.nan) if len(found) == len(X) else np.full(len(X), np.nan)
        return np.column_stack([truth, finite])

    return Judged(len(X), judged), _notes(type(model).__name__, foreign, batch=batch), kind


def is_ours(model: Any) -> bool:
    """Say whether a fitted model predicts by this library's own methods. A class derived from ours may not, nor may an
    object that was given a method of its own."""
    replaced = {"predict", "predict_proba", "decision_function"} & getattr(model, "__dict__", {}).keys()
    return type(model).__module__.startswith("onedraw.") and hasattr(model, "certificate_") and not replaced


def _kind(model: Any, classes: Any, bounds: Any, *, ours: bool) -> Kind:
    if bounds is not None:
        if classes is not None:
            raise WrongCall("classes are for a classifier and bounds for a regressor. Pass one of them.")
        low, high = (float(end) for end in bounds)
        return low, high
    if classes is None and not (ours and hasattr(model, "classes_")):
        raise InvalidModel(
            "evaluate needs classes=[…] of a classifier, in order, or bounds=(low, high) of a regressor's responses. They are never read "
            "from the records: a label, or an extreme, may be one person's."
        )
    return tuple(str(label) for label in (classes if classes is not None else model.classes_))


def _prediction(model: Any, kind: Kind) -> Prediction:
    """Return how rows are predicted: a number, of two classes the second's probability, of more the predicted one's code."""
    if isinstance(kind[0], float):
        return lambda model, X: np.asarray(model.predict(X), dtype=np.float64).reshape(-1)
    own = [str(label) for label in model.classes_] if hasattr(model, "classes_") else list(map(str, kind))
    places = [own.index(str(label)) if str(label) in own else None for label in kind]

    def columns(model: Any, X: Any) -> Array:
        if hasattr(model, "predict_proba"):
            given = np.asarray(model.predict_proba(X), dtype=np.float64)
        else:
            given = np.asarray(model.decision_function(X), dtype=np.float64)
            if given.ndim == 1:
                given = np.column_stack([1.0 - special.expit(given), special.expit(given)])
        return np.column_stack([np.zeros(len(given)) if place is None else given[:, place] for place in places])

    if len(kind) == 2:
        return lambda model, X: np.asarray(columns(model, X)[:, 1])

    def code(model: Any, X: Any) -> Array:
        given = columns(model, X)
        return np.where(np.isnan(given).any(axis=1), np.nan, given.argmax(axis=1))

    return code


def _rows(X: Any) -> Any:
    """Something whose ``rows[i : i + 1]`` is one record. A single complex cell makes its whole column complex, and no
    model takes that: the others are real numbers all the same."""
    if hasattr(X, "iloc"):
        odd = [place for place, kind in enumerate(X.dtypes) if getattr(kind, "kind", "O") == "c"]
        frame = X.copy(deep=False) if odd else X
        for place in odd:
            frame.isetitem(place, _real(X.iloc[:, place]))
        return frame.iloc
    cells = X if hasattr(X, "__getitem__") else np.asarray(X)
    return _real(cells) if getattr(getattr(cells, "dtype", None), "kind", "") == "c" else cells


def _real(cells: Any) -> Array:
    values = np.asarray(cells)
    return np.where(values.imag == 0.0, values.real, np.nan)


def _try_out(ask: Callable[[Any], Array], rows: Any) -> None:
    """Predict a row of zeros, which is nobody's: what fails on it fails before the charge, and in the model's own words."""
    row = rows[:1]
    if not (isinstance(row, np.ndarray) and row.ndim == 2 and row.dtype.kind in "fiub"):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ask(np.zeros((1, row.shape[1])))
    except (Exception, SystemExit) as error:
        raise WrongCall(f"The model cannot predict a row of zeros: {error}. Nothing was spent.") from error


# ── releases ─────────────────────────────────────────────────────────────────────────────────────────────────


def _by_release(
    release: Release, source: Any, y: Any, classes: Any, bounds: Any
) -> tuple[Judged, tuple[Assumption, ...], Kind]:
    """A released model on records of its own schema, the target among them."""
    verify(release)
    data = release.certificate.data
    release.predictor.check()
    if y is not None or classes is not None or bounds is not None:
        raise WrongCall(
            "A release knows its target, classes and bounds: pass the records with the target in them, and nothing else."
        )
    if data.declared is None or data.target is None:
        raise WrongCall(
            "This release does not carry a schema, so it is not known how new records are read. Evaluate the fitted estimator: "
            "evaluate(estimator, X, y, epsilon=…)."
        )
    schema, target = Schema.from_dict(data.declared), data.target
    records, column = read(source, schema, target=target), schema.column(target)
    kind: Kind = release.predictor.classes if column.role in ("category", "binary") else column.ends
    said = Said(release.certificate.to_json(), schema.read_for(target))
    skips = column.skips or release.plan.model.skips
    held = Judged(
        records.n, lambda: records.read_as(said), schema.records_per_person, schema.dataset,
        skips=skips, nobody=skips and schema.person is not None,
    )  # fmt: skip
    named = f"the release whose certificate has the digest {release.certificate.digest[:16]}…"
    return held, _notes(named, None, batch=False), kind


@dataclass(frozen=True)
class Said(Reading):
    """What each record was, and what a released model says of it: a reading of `onedraw.data.sums`."""

    certificate: str
    columns: tuple[str, ...]
    width: int = 2

    def of_block(self, *columns_and_weight: Any) -> tuple[Array]:
        """By workers too, which are sent the certificate's text."""
        *columns, _ = columns_and_weight
        predictor, schema = _known(self.certificate)
        batch, target = dict(zip(self.columns, columns, strict=True)), str(predictor.certificate.data.target)
        rows = predictor.row_batch(batch, schema, target)
        values = predictor.at(rows)
        if values.shape[1] > 1:
            said = values[:, 1] if values.shape[1] == 2 else values.argmax(axis=1).astype(np.float64)
        else:
            said = special.expit(values[:, 0]) if predictor.plan.model.predicts == "margin" else values[:, 0]
        truth = np.where(np.isnan(rows).any(axis=1), np.nan, np.asarray(batch[target], dtype=np.float64))
        for cells in batch.values():  # a record beyond a person's limit counts for nobody
            truth = np.where(cells == -np.inf, -np.inf, truth)
        return (np.column_stack([truth, said]),)


@lru_cache(maxsize=8)
def _known(text: str) -> tuple[Predictor, Schema]:
    release = Release(certificate_from(json.loads(text)))
    return release.predictor, Schema.from_dict(release.certificate.data.declared or {})


def _notes(name: str, foreign: ForeignModel | None, *, batch: bool) -> tuple[Assumption, ...]:
    claims = [(f"what is evaluated is {name}, fixed before the held-out records were read", Provenance.DECLARED)]
    if foreign is None:
        claims += [("each record is predicted from its own row, and no row makes it fail", Provenance.PROVED)]
        return tuple(Assumption(*claim) for claim in claims)
    claims += [
        ("columns have the types they were declared with: no record decided how others are held", Provenance.DECLARED)
    ]
    if batch:
        claims += [("a prediction depends on its own row alone: rows were predicted together", Provenance.DECLARED)]
    elif foreign.has_own_copies:
        claims += [
            (
                "each row is predicted by a fresh copy of the model; one that fails counts as a score of 0",
                Provenance.ENFORCED,
            ),
            (
                "the model keeps nothing between rows outside itself, as in a file, a module or a random generator",
                Provenance.DECLARED,
            ),
        ]
    else:
        claims += [
            ("rows are predicted one at a time; one that fails counts as a score of 0", Provenance.ENFORCED),
            (
                "the model keeps nothing between rows: it cannot be pickled, so rows may share parts of it",
                Provenance.DECLARED,
            ),
        ]
    return tuple(Assumption(*claim) for claim in claims)
