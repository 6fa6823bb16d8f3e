"""Fitted models on held-out records, under differential privacy: how good is one, and which of several to use?

**`evaluate`**: what the model says of a record and what the record was are counted in public cells (`models.tables.scores`), noise is added to
the counts, and accuracy, ROC curve, calibration, R² follow from them (`release.evaluations`). One spend, one
certificate, one entry in the ledger, however many figures.

**`choose`**: a comparison of noisy scores pays for every score. A choice pays once: the exponential mechanism tells the winner and
nothing else. Each candidate's loss of a record lies in [0, 1] and depends on that record alone, as in `evaluate`:

| model | loss |
| --- | --- |
| classifier of two classes | (P(true class) − 1)², so half a probability costs a quarter |
| classifier of more classes | 1 if the predicted class is wrong |
| regressor | (error / largest error)², errors beyond it as it |
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy import special

from onedraw.arrays import Array, Integers
from onedraw.data.sums import Statistic
from onedraw.errors import WrongCall
from onedraw.ledger import Ledger
from onedraw.methods import AddedNoise, ExponentialChoice, calibrate
from onedraw.models.sums.clamped_sums import SKIP
from onedraw.models.tables.scores import LOSS_STEPS, ClassifierScores, Losses, ModelChoice, RegressorScores, in_steps
from onedraw.privacy import Assumption, Promise, Provenance
from onedraw.release import Certificate, Release, release
from onedraw.release.evaluations import Curve, Figure, Scores, scores_of

from .base import Labels, Range, budget_of, opened
from .judging import Kind, judged_by

Found = TypeVar("Found")

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
        return self._there(self.scores.figures.get("accuracy"), "accuracy")

    @property
    def auc(self) -> Figure:
        """Of two classes: the chance that a record of the second has a higher score than one of the first."""
        return self._there(self.scores.figures.get("AUC"), "AUC")

    @property
    def rmse(self) -> Figure:
        return self._there(self.scores.figures.get("RMSE"), "RMSE")

    @property
    def r2(self) -> Figure:
        return self._there(self.scores.figures.get("R²"), "R²")

    @property
    def confusion(self) -> Array:
        """(true, predicted), in records."""
        return self._there(self.scores.confusion, "confusion matrix")

    @property
    def roc(self) -> Curve:
        return self._there(self.scores.roc, "ROC curve")

    @property
    def calibration(self) -> Curve:
        return self._there(self.scores.calibration, "calibration curve")

    def at(self, level: float) -> Evaluation:
        """The same release read at another level of confidence."""
        return Evaluation(self.release, scores_of(self.release.certificate, self.release.plan, level))

    def save(self, path: str | os.PathLike[str]) -> None:
        self.release.save(path)

    def _there(self, value: Found | None, what: str) -> Found:
        if value is None:
            raise WrongCall(f"This evaluation has no {what}. It has: {', '.join(self.scores.figures)}.")
        return value

    def __repr__(self) -> str:
        figures = "; ".join(f"{name} {figure}" for name, figure in self.scores.figures.items())
        return f"<Evaluation: {figures}; {100 * self.scores.level:g} % intervals. {self.certificate.sentence}>"


def evaluate(
    model: Any, X: Any, y: Any = None, *, epsilon: float | None = None, delta: float = 0.0,
    classes: Labels | None = None, bounds: Range | None = None, largest_error: float | None = None,
    bins: int | None = None, batch: bool = False, level: float = 0.95,
    ledger: Ledger | str | os.PathLike[str] | None = None, dataset: str | None = None,
    random_state: int | None = None, out: str | os.PathLike[str] | None = None, resume: str | None = None,
    how_to_resume: str = "", by: str | None = None, purpose: str | None = None,
) -> Evaluation:  # fmt: skip
    """Accuracy, confusion matrix, ROC, AUC, calibration of a classifier, or RMSE and R² of a regressor, released once.

    ``model`` is a release of this library (then ``X`` is a frame or file with the target in it, read by the release's
    schema), an estimator of it, or anything with scikit-learn's ``predict``. ``classes`` of a foreign classifier, in
    order, and ``bounds`` = (low, high) of a regressor's responses are declared, never read from the records;
    ``largest_error`` may be declared to be smaller than their width. ``bins`` of the score are planned from n and ε
    where None.

    | a record whose | counts as |
    | --- | --- |
    | class or response is missing, or not declared | nothing: how many there are is released beside (a schema may declare a value) |
    | cell is missing that a model of this library needs, which skipped such records | nothing, likewise |
    | prediction fails or is not a number | a score of 0, the first class, or the middle of the range |
    | response lies outside the bounds | the nearest bound |

    Held-out means: not used for fitting. On records that were, the figures are private all the same, but flatter the
    model.
    """
    budget = budget_of(epsilon, delta, of="evaluate")
    judged, notes, kind = judged_by(model, X, y, classes, bounds, batch)
    table = _table(kind, len(judged), budget, bins, largest_error)
    if judged.skips:
        table = replace(table, missing=SKIP, nobody=judged.nobody)
    plan = calibrate(AddedNoise(), table, budget, n=len(judged), records_per_person=judged.records_per_person)
    found = release(
        plan, judged, ledger=opened(ledger), dataset=dataset or judged.dataset, random_state=random_state,
        label="evaluation", notes=notes, out=out, resume=resume, how_to_resume=how_to_resume, by=by, purpose=purpose,
    )  # fmt: skip
    kept = replace(found, diagnostics={})
    return Evaluation(kept, scores_of(kept.certificate, kept.plan, level))


def _table(
    kind: Kind, n: int, budget: Promise, bins: int | None, largest_error: float | None
) -> ClassifierScores | RegressorScores:
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
    if bins is None:  # more follow the ROC curve closer and add up more noise: even, from 8 to 40
        epsilon = getattr(budget, "stated_epsilon", 1.0)
        bins = 2 * round(min(max(n * epsilon / RECORDS_A_BIN, 8.0), 40.0) / 2.0)
    return ClassifierScores(tuple(map(str, kind)), score_edges(bins))


def score_edges(bins: int) -> tuple[float, ...]:
    """Even in the log-odds, one of them at a half."""
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= 200 or bins % 2:
        raise WrongCall(f"bins is an even number from 2 to 200, so that a half is an edge, got {bins!r}.")
    odds = np.linspace(-REACH, REACH, int(bins) - 1) if bins > 2 else np.zeros(1)
    return tuple(float(edge) for edge in special.expit(odds))


# ── which of several ──

FITTED_BEFORE = "the settings were fitted to other records, or to none, and each has paid for itself"


@dataclass(frozen=True, repr=False)
class Chosen:
    """The winner, by name and as it came, and the certificate of the choice."""

    name: str
    model: Any
    release: Release

    @property
    def certificate(self) -> Certificate:
        return self.release.certificate

    def __repr__(self) -> str:
        return f"<Chosen {self.name!r}. {self.certificate.sentence}>"


def choose(
    models: Mapping[str, Any] | Sequence[Any], X: Any, y: Any = None, *, epsilon: float | None = None, delta: float = 0.0,
    classes: Labels | None = None, bounds: Range | None = None, largest_error: float | None = None, batch: bool = False,
    ledger: Ledger | str | os.PathLike[str] | None = None, dataset: str | None = None, random_state: int | None = None,
    out: str | os.PathLike[str] | None = None, resume: str | None = None, how_to_resume: str = "",
    by: str | None = None, purpose: str | None = None,
) -> Chosen:  # fmt: skip
    """The one of ``models`` (by name, or in order) that does best on held-out records, chosen for one charge.

    The models are fitted already, each released from other records or made without private ones; every fit has paid for
    itself. Nothing but the winner's name leaves: no score, and not by how much it won. Other arguments as in
    `evaluate`.
    """
    named = dict(models if isinstance(models, Mapping) else ((f"setting {at}", one) for at, one in enumerate(models)))
    table, budget = ModelChoice(tuple(map(str, named))), budget_of(epsilon, delta, of="choose")
    parts = [judged_by(model, X, y, classes, bounds, batch) for model in named.values()]
    first, _, kind = parts[0]
    if any(other != kind for _, _, other in parts):
        raise WrongCall(
            "The models differ in their classes or bounds, so their losses do not compare. Choose among models of one "
            "question."
        )
    largest = None
    if isinstance(kind[0], float):
        largest = RegressorScores(kind[0], float(kind[1]), largest_error).largest_error

    def losses() -> Integers:
        return np.concatenate([held.sum(LossSum(kind, largest)) for held, _, _ in parts])

    most = max(held.records_per_person for held, _, _ in parts)  # schemas may differ in what they declare
    plan = calibrate(ExponentialChoice(), table, budget, n=len(first), records_per_person=most)
    found = release(
        plan, Losses(len(first), losses), ledger=opened(ledger), dataset=dataset or first.dataset, out=out,
        random_state=random_state, label="choice", resume=resume, how_to_resume=how_to_resume, by=by, purpose=purpose,
        notes=(Assumption(FITTED_BEFORE, Provenance.DECLARED), *dict.fromkeys(one for _, notes, _ in parts for one in notes)),
    )  # fmt: skip
    place = int(found.draws[0, 0])
    return Chosen(list(named)[place], list(named.values())[place], Release(found.certificate))


@dataclass(frozen=True)
class LossSum(Statistic):
    """Σ of the losses of pairs (what a record was, what the model said), in whole steps."""

    kind: Kind
    largest: float | None
    columns: tuple[str, ...] = ()

    def bound(self) -> float:
        return float(LOSS_STEPS)

    def of_block(self, pairs: Array, weight: Array) -> Integers:
        return np.array([in_steps(_loss(pairs[weight > 0.0], self.kind, self.largest)).sum()])


def _loss(judged: Array, kind: Kind, largest: float | None) -> Array:
    """Of each record, by what it was and what the model said; NaN where it said nothing."""
    true, said = judged[:, 0], judged[:, 1]
    if largest is not None:
        low, high = float(kind[0]), float(kind[1])
        true = np.clip(np.where(np.isnan(true), (low + high) / 2.0, true), low, high)
        return np.asarray((np.clip(said, low, high) - true) ** 2 / largest**2)
    if len(kind) == 2:
        return np.asarray((np.where(true == 1.0, 1.0, 0.0) - np.clip(said, 0.0, 1.0)) ** 2)
    return np.where(np.isnan(said), 1.0, (true != said).astype(np.float64))
