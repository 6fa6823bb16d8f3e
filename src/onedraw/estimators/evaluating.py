"""How good is a fitted model, on held-out records, under differential privacy: `evaluate`.

What the model says of a record and what the record was are counted in public cells (`models.scores`), noise is added to the
counts, and accuracy, ROC curve, calibration, R² follow from them (`release.intervals.evaluations`). One spend, one certificate, one entry in
the books, however many figures.

**A prediction must depend on its own row alone**, or replacing a record would change what is counted of others. Releases and
estimators of this library predict so, and no row makes them fail. Any other model is asked one row at a time, and a row it
fails on counts as stated; ``batch=True`` asks it once for all rows, which is quicker, and then the caller answers for it.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from onedraw.data import Schema, read
from onedraw.data.sums import Reading
from onedraw.errors import InvalidModel, WrongCall
from onedraw.ledger import Ledger
from onedraw.mechanisms import AddedNoise, calibrate
from onedraw.models.features import schema_rows
from onedraw.models.responses import Codes
from onedraw.models.tables.scores import ClassifierScores, Judged, RegressorScores
from onedraw.privacy import Assumption, Promise, Provenance
from onedraw.release import Certificate, Release, release
from onedraw.release.intervals.evaluations import Curve, Figure, Scores, scores_of
from onedraw.release.predictions import check_predicts, class_names, responses
from onedraw.release.predictions import scores_of as linear_scores
from onedraw.release.verification import verify

from .base import budget_of, opened

Array = NDArray[np.float64]

REACH = 4.0
"""Log-odds up to which scores are told apart: 2 % to 98 %."""

RECORDS_A_BIN = 160.0
"""Of n·ε: with 5,000 records and ε = 0.5 there are 16 bins."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """A released evaluation: figures with intervals, and the certificate they came with."""

    release: Release
    scores: Scores

    @property
    def certificate(self) -> Certificate:
        return self.release.certificate

    @property
    def accuracy(self) -> Figure:
        return self._figure("accuracy")

    @property
    def auc(self) -> Figure:
        """Of two classes: the chance that a record of the second has a higher score than one of the first."""
        return self._figure("AUC")

    @property
    def rmse(self) -> Figure:
        return self._figure("RMSE")

    @property
    def r2(self) -> Figure:
        return self._figure("R²")

    @property
    def confusion(self) -> Array:
        """(true, predicted), in records."""
        found: Array = self._there(self.scores.confusion, "a confusion matrix")
        return found

    @property
    def roc(self) -> Curve:
        found: Curve = self._there(self.scores.roc, "a ROC curve")
        return found

    @property
    def calibration(self) -> Curve:
        found: Curve = self._there(self.scores.calibration, "a calibration curve")
        return found

    def at(self, level: float) -> Evaluation:
        """The same release read at another level of confidence."""
        return Evaluation(self.release, scores_of(self.release.certificate, self.release.plan, level))

    def save(self, path: str | os.PathLike[str]) -> None:
        self.release.save(path)

    def _figure(self, name: str) -> Figure:
        found: Figure = self._there(self.scores.figures.get(name), f"the {name}")
        return found

    def _there(self, value: Any, what: str) -> Any:
        if value is None:
            raise WrongCall(f"This evaluation has no {what}. It has: {', '.join(self.scores.figures)}.")
        return value

    def __repr__(self) -> str:
        figures = "; ".join(f"{name} {figure}" for name, figure in self.scores.figures.items())
        return f"<Evaluation: {figures}; {100 * self.scores.level:g} % intervals. {self.certificate.sentence}>"


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    classes: Any = None,
    bounds: Any = None,
    largest_error: float | None = None,
    bins: int | None = None,
    batch: bool = False,
    level: float = 0.95,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    random_state: int | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: str | None = None,
    how_to_resume: str = "",
) -> Evaluation:
    """Accuracy, confusion matrix, ROC, AUC and calibration of a classifier, or RMSE and R² of a regressor, released once.

    ``model`` is a release of this library (then ``X`` is a frame or file with the target in it, read by the release's schema), an
    estimator of it, or anything with scikit-learn's ``predict``. ``classes`` of a foreign classifier, in order, and ``bounds`` = (low,
    high) of a regressor's responses are declared, never read from the records; ``largest_error`` may be declared to be smaller than
    their width. ``bins`` of the score are planned from n and ε where None.

    | a record whose | counts as |
    | --- | --- |
    | class is not declared | the first class |
    | prediction fails or is not a number | a score of 0, the first class, or the middle of the range |
    | response lies outside the bounds | the nearest bound |

    Held-out means: not used for fitting. On records that were, the figures are private all the same, but flatter the model.
    """
    budget = budget_of(epsilon, delta, of="evaluate")
    judged, notes, kind = _judged(model, X, y, classes, bounds, batch)
    table = _table(kind, len(judged.data), budget, bins, largest_error)
    plan = calibrate(AddedNoise(), table, budget, n=len(judged.data), records_per_person=judged.records_per_person)
    found = release(
        plan, judged.data, ledger=opened(ledger), dataset=dataset or judged.dataset, random_state=random_state, label="evaluation",
        notes=notes, out=out, resume=resume, how_to_resume=how_to_resume,
    )  # fmt: skip
    kept = replace(found, diagnostics={})
    return Evaluation(kept, scores_of(kept.certificate, kept.plan, level))


@dataclass(frozen=True)
class _Held:
    """Held-out records, and what is public about them."""

    data: Judged
    records_per_person: int = 1
    dataset: str | None = None


Kind = tuple[str, ...] | tuple[float, float]
"""Classes, or the range of a response."""


def _table(kind: Kind, n: int, budget: Promise, bins: Any, largest_error: Any) -> ClassifierScores | RegressorScores:
    if isinstance(kind[0], float):
        if bins is not None:
            raise WrongCall("bins belong to the scores of two classes; a regressor has none. Leave them out.")
        return RegressorScores(kind[0], float(kind[1]), largest_error)
    if largest_error is not None:
        raise WrongCall("largest_error belongs to a regressor. Leave it out.")
    if len(kind) > 2:
        if bins is not None:
            raise WrongCall(
                "bins belong to the scores of two classes; of more, predicted classes are counted. Leave them out."
            )
        return ClassifierScores(tuple(map(str, kind)))
    return ClassifierScores(tuple(map(str, kind)), score_edges(_bins(n, budget) if bins is None else bins))


def _bins(n: int, budget: Promise) -> int:
    """More bins follow the ROC curve closer and add up more noise: even, from 8 to 40."""
    epsilon = getattr(budget, "stated_epsilon", 1.0)
    return 2 * round(min(max(n * epsilon / RECORDS_A_BIN, 8.0), 40.0) / 2.0)


def score_edges(bins: Any) -> tuple[float, ...]:
    """Even in the log-odds, one of them at a half."""
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= 200 or bins % 2:
        raise WrongCall(f"bins is an even number from 2 to 200, so that a half is an edge, got {bins!r}.")
    odds = np.linspace(-REACH, REACH, int(bins) - 1) if bins > 2 else np.zeros(1)
    return tuple(float(edge) for edge in special.expit(odds))


# ── what a model says of records ─────────────────────────────────────────────────────────────────────────────


def _judged(
    model: Any, X: Any, y: Any, classes: Any, bounds: Any, batch: bool
) -> tuple[_Held, tuple[Assumption, ...], Kind]:
    if isinstance(model, Release | Certificate):
        return _by_release(Release(model) if isinstance(model, Certificate) else model, X, y, classes, bounds)
    if y is None:
        raise WrongCall("evaluate needs the true responses: evaluate(model, X, y, epsilon=…).")
    if len(X) != len(y):
        raise InvalidModel(f"X has {len(X):,} records and y {len(y):,}. Pass one response for each record.")
    ours = hasattr(model, "certificate_")
    kind = _kind(model, classes, bounds, ours=ours)
    said = _said_of_classes(model, kind) if isinstance(kind[0], str) or not bounds else _said_of_numbers(model)
    rows = _rows(X)
    _try_out(said, rows)
    labels = Codes(tuple(classes if classes is not None else model.classes_)) if not bounds else None

    def judged() -> Array:
        truth = labels.from_values(y) if labels is not None else _numbers(y)
        return np.column_stack([truth, _finite(said(X) if ours or batch else _one_by_one(said, rows), len(X))])

    held = _Held(Judged(len(X), judged))
    return held, _notes(type(model).__name__, ours=ours, batch=batch), kind


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


def _said_of_classes(model: Any, kind: Kind) -> Callable[[Any], Array]:
    """The second class's probability, or, of more classes, the code of the predicted one."""
    own = [str(label) for label in model.classes_] if hasattr(model, "classes_") else list(map(str, kind))
    places = [own.index(str(label)) if str(label) in own else None for label in kind]

    def columns(X: Any) -> Array:
        if hasattr(model, "predict_proba"):
            given = np.asarray(model.predict_proba(X), dtype=np.float64)
        else:
            given = np.asarray(model.decision_function(X), dtype=np.float64)
            if given.ndim == 1:
                given = np.column_stack([1.0 - special.expit(given), special.expit(given)])
        return np.column_stack([np.zeros(len(given)) if place is None else given[:, place] for place in places])

    if len(kind) == 2:
        return lambda X: np.asarray(columns(X)[:, 1])
    return lambda X: np.asarray(columns(X).argmax(axis=1), dtype=np.float64)


def _said_of_numbers(model: Any) -> Callable[[Any], Array]:
    return lambda X: np.asarray(model.predict(X), dtype=np.float64).reshape(-1)


def _rows(X: Any) -> Any:
    """Something whose ``rows[i : i + 1]`` is one record. A single complex cell makes its whole column complex, and no model takes
    that: the others are real numbers all the same."""
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


def _try_out(said: Callable[[Any], Array], rows: Any) -> None:
    """A row of zeros, which is nobody's: what fails on it fails before the charge, and in the model's own words."""
    row = rows[:1]
    blank = (
        np.zeros((1, row.shape[1]))
        if isinstance(row, np.ndarray) and row.ndim == 2 and row.dtype.kind in "fiub"
        else None
    )
    if blank is None:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said(blank)
    except Exception as error:
        raise WrongCall(f"The model cannot predict a row of zeros: {error}. Nothing was spent.") from error


def _one_by_one(said: Callable[[Any], Array], rows: Any) -> Array:
    """Each record by itself; NaN where the model fails, whatever it fails with."""

    def one(index: int) -> float:
        try:
            return float(said(rows[index : index + 1])[0])
        except Exception:  # an error would tell that there is such a record
            return math.nan

    size = len(rows.obj) if hasattr(rows, "obj") else len(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([one(index) for index in range(size)])


def _finite(values: Any, size: int) -> Array:
    found = np.asarray(values, dtype=np.float64).reshape(-1)
    return np.where(np.isfinite(found), found, np.nan) if len(found) == size else np.full(size, np.nan)


def _numbers(y: Any) -> Array:
    from onedraw.models.batches import batches

    return np.concatenate([np.zeros(0), *(np.asarray(part, dtype=np.float64) for part in batches(y))])


# ── releases ─────────────────────────────────────────────────────────────────────────────────────────────────


def _by_release(
    release: Release, source: Any, y: Any, classes: Any, bounds: Any
) -> tuple[_Held, tuple[Assumption, ...], Kind]:
    """A released model on records of its own schema, the target among them."""
    verify(release)
    certificate, plan, data = release.certificate, release.plan, release.certificate.data
    check_predicts(certificate, plan.model)
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
    kind: Kind
    if hasattr(column, "labels"):
        kind = tuple(map(str, class_names(certificate, plan.model)))
    else:
        kind = (0.0, float(column.cap)) if column.kind == "count" else (float(column.lower), float(column.upper))

    said = Said(certificate.to_json(), tuple(schema.columns))
    held = _Held(Judged(records.n, lambda: records.read_as(said)), schema.records_per_person, schema.dataset)
    named = f"the release of plan {certificate.plan_digest[:16]}…"
    return held, _notes(named, ours=True, batch=False), kind


@dataclass(frozen=True)
class Said(Reading):
    """What each record was, and what a released model says of it: a reading of `onedraw.data.sums`."""

    certificate: str
    columns: tuple[str, ...]
    width: int = 2

    def of_block(self, *columns_and_weight: Any) -> tuple[Array]:
        *columns, _ = columns_and_weight
        return (_said(*_known(self.certificate), dict(zip(self.columns, columns, strict=True))),)


@lru_cache(maxsize=8)
def _known(text: str) -> tuple[Certificate, Any, Schema]:
    certificate = Certificate.model_validate_json(text)
    return certificate, Release(certificate).plan, Schema.from_dict(certificate.data.declared or {})


def _said(certificate: Certificate, plan: Any, schema: Schema, batch: Any) -> Array:
    target, features = certificate.data.target, plan.model.features
    rows = features.enforce(schema_rows(batch, schema, target))
    values = responses(certificate, plan.model, linear_scores(certificate, plan, rows))
    if values.shape[1] == 2:
        said = values[:, 1]
    elif values.shape[1] > 2:
        said = values.argmax(axis=1).astype(np.float64)
    else:
        margin = type(plan.model).__name__ in ("Hinge", "HuberisedHinge")
        said = special.expit(values[:, 0]) if margin else values[:, 0]
    return np.column_stack([np.asarray(batch[target], dtype=np.float64), said])


def _notes(model: str, *, ours: bool, batch: bool) -> tuple[Assumption, ...]:
    fixed = Assumption(
        f"what is evaluated is {model}, fixed before the held-out records were read", Provenance.DECLARED
    )
    if ours:
        return (
            fixed,
            Assumption("each record is predicted from its own row, and no row makes it fail", Provenance.PROVED),
        )
    typed = Assumption("columns have the types they were declared with: no record decided how others are held", Provenance.DECLARED)  # fmt: skip
    if batch:
        return (
            fixed,
            typed,
            Assumption("a prediction depends on its own row alone: rows were predicted together", Provenance.DECLARED),
        )
    return (
        fixed,
        typed,
        Assumption("rows are predicted one at a time; one that fails counts as a score of 0", Provenance.ENFORCED),
    )
