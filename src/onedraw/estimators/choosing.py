"""Which of several fitted models to use, decided by held-out records under differential privacy: `choose`.

A comparison of noisy scores pays for every score. A choice pays once: the exponential mechanism tells the winner and
nothing else. Each candidate's loss of a record lies in [0, 1] and depends on that record alone, as in `evaluating`:

| model | loss |
| --- | --- |
| classifier of two classes | (P(true class) − 1)², so half a probability costs a quarter |
| classifier of more classes | 1 if the predicted class is wrong |
| regressor | (error / largest error)², errors beyond it as it |
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.data.sums import Statistic
from onedraw.errors import WrongCall
from onedraw.ledger import Ledger
from onedraw.mechanisms import ExponentialChoice, calibrate
from onedraw.models.tables.scores import LOSS_STEPS, Losses, ModelChoice, RegressorScores, in_steps
from onedraw.privacy import Assumption, Provenance
from onedraw.release import Certificate, Release, release

from .base import budget_of, opened
from .judging import Kind, judged_by

Array = NDArray[np.float64]


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
    classes: Any = None, bounds: Any = None, largest_error: float | None = None, batch: bool = False,
    ledger: Ledger | str | os.PathLike[str] | None = None, dataset: str | None = None, random_state: int | None = None,
    out: str | os.PathLike[str] | None = None, resume: str | None = None, how_to_resume: str = "",
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

    def losses() -> NDArray[np.int64]:
        return np.concatenate([held.data.sum(LossSum(kind, largest)) for held, _, _ in parts])

    most = max(held.records_per_person for held, _, _ in parts)  # schemas may differ in what they declare
    plan = calibrate(ExponentialChoice(), table, budget, n=len(first.data), records_per_person=most)
    found = release(
        plan, Losses(len(first.data), losses), ledger=opened(ledger), dataset=dataset or first.dataset, out=out,
        random_state=random_state, label="choice", resume=resume, how_to_resume=how_to_resume,
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

    def of_block(self, pairs: Array, weight: Array) -> NDArray[np.int64]:
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
