"""Held-out records as sums: how a fitted model does (tables of class by score, or squared errors), and which of several does best.

A record is what the model said of it and what it was; both are brought into public cells or ranges before anything is added up.

**Classes** (`ClassifierScores`). With two classes a record adds 1 to one cell: its class, and the bin its score falls into. From
such a table follow accuracy, confusion matrix, ROC curve, AUC and calibration. With more classes the cells are true by
predicted class. Replacing a record moves two cells by 1.

**Numbers** (`RegressorScores`). With v ∈ [−1, 1] the place of the response in its range and u ∈ [0, 1] the squared error over the
largest one, a record adds v, v² and u. As in `number_table`, |Δv| ≤ 2 − s for s = |v + v'|, so

    2|ΔΣv| + 3|ΔΣv²| + 5|ΔΣu|            ≤ (2 − s)(2 + 3s) + 5 ≤ 16/3 + 5        (L1)
    (2ΔΣv)² + (3ΔΣv²)² + (4ΔΣu)²         ≤ 16 + 16                               (L2, squared)

**Which of several** (`ModelChoice`). A record adds a loss in [0, 1] to every candidate's sum, on a public lattice; replacing it moves
each of them by at most 1. What the losses are (squared distance of a probability, squared error over the largest one) is decided by
`onedraw.choose`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.data.sums import Blocks, block_rows, blocked
from onedraw.errors import InvalidModel
from onedraw.models.batches import Batch
from onedraw.models.model import Bound, Model, declared_range, different_names, number
from onedraw.models.sums.clamped_sums import Summary, is_skip, known_codes, marks, unknown_codes
from onedraw.plain_text import shown
from onedraw.privacy import Provenance
from onedraw.private import Private

from .table import STEPS, Table, TableSums, proportional, whole

MOST_CLASSES = 50


@dataclass(frozen=True, eq=False, repr=False)
class HeldOut(Private):
    """Records that were kept from a fit, as private as all others: ``size`` is the public n, ``read`` is asked once, after the charge."""

    size: int
    read: Callable[[], Any]

    def __len__(self) -> int:
        return self.size


@dataclass(frozen=True, eq=False, repr=False)
class Judged(HeldOut):
    """What each of them was, and what the model said: (n, 2) numbers or records rewritten as such (`onedraw.data.sums`); and what a
    schema says of the records."""

    records_per_person: int = 1
    dataset: str | None = None
    skips: bool = True
    """Whether a record without a response contributes nothing; if not, a schema declares what a missing one is."""
    nobody: bool = False
    """Whether records may count for nobody."""

    def sum(self, statistic: Any) -> Integers:
        """Σ over the records, in whole numbers."""
        found = self.read()
        if isinstance(found, np.ndarray):
            pairs = np.asarray(found, dtype=np.float64).reshape(self.size, 2)
            found = Blocks.holding(self.size, blocked([(pairs,)], block_rows(self.size)))
        return np.asarray(found.sum(statistic))


class _Scores(Table):
    """What the two share: records are `Judged`, there are no groups."""

    kinds: ClassVar[tuple[str, ...]] = ()
    by: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc]  # no groups: what a release compares is the model
    groups: ClassVar[tuple[tuple[str, ...], ...]] = ()  # type: ignore[misc]
    sizes: ClassVar[tuple[int, ...] | None] = None  # type: ignore[misc]
    later = frozenset({"missing", "nobody"})
    skips_by_itself = True
    about_records = False
    divides = False

    form = "folded"
    about_records = False

    def check(self, data: Any) -> None:
        if not isinstance(data, Judged):
            raise InvalidModel(
                f"{type(self).__name__} is about what a model said of held-out records, but a {type(data).__name__} was given. Use "
                "onedraw.evaluate(model, X, y, epsilon=…)."
            )

    def summarise(self, data: Any) -> Summary:
        self.check(data)
        return Summary(len(data), tuple(int(value) for value in data.sum(TableSums(self))))


def _check_missing(missing: Any) -> None:
    if not (missing is None or is_skip(missing)):
        raise InvalidModel(f"missing is 'skip' or None, got {missing!r}.")


@dataclass(frozen=True)
class ClassifierScores(_Scores):
    """Counts of ``classes`` by score: in the bins between ``edges`` of the last class's probability, or by predicted class.

    | record | counts as |
    | --- | --- |
    | a class that is not declared | the first class, or with ``missing="skip"`` one without a class |
    | a score that is not a number, a prediction that failed | the lowest bin, or the first class |
    """

    quantity: ClassVar[str] = "records by class and score"
    title = "Evaluation of a classifier"
    meaning = "How a fitted model does on held-out records: they were counted by class and score, and noise was added to the counts."
    largest, prior_scale = 1, 2.0**20  # there is no prior: counts are whole

    classes: tuple[str, ...]
    edges: tuple[float, ...] = ()
    missing: str | None = None
    """"skip": records whose class is not known, or not declared, are counted apart."""
    nobody: bool = False

    @classmethod
    def example(cls) -> Self:
        return cls(("no", "yes"), edges=(0.5,))

    def __post_init__(self) -> None:
        classes = different_names("classes", self.classes, most=MOST_CLASSES)
        edges = tuple(number("an edge", edge) for edge in self.edges)
        rising = all(low < high for low, high in pairwise(edges))
        if edges and (len(classes) > 2 or not rising or not all(0.0 < edge < 1.0 for edge in edges)):
            raise InvalidModel("edges rise between 0 and 1, and belong to two classes.")
        _check_missing(self.missing)
        self._set(classes=classes, edges=edges)

    @property
    def columns(self) -> int:
        """Bins, or predicted classes."""
        return len(self.edges) + 1 if self.edges else len(self.classes)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        if not self.edges:
            return tuple(f"{true}, predicted {said}" for true in self.classes for said in self.classes)
        ends = ["0", *(f"{edge:.4g}" for edge in self.edges), "1"]
        bins = [f"{low} to {high}" for low, high in pairwise(ends)]
        return tuple(f"{true}, score {one}" for true in self.classes for one in bins)

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {"l1": Bound(2.0, Provenance.PROVED, "a replaced record leaves one cell for another")}

    @property
    def block(self) -> int:
        """Cells; and the number of records without a class, where these are counted apart."""
        return len(self.classes) * self.columns + self.skips

    def missing_of(self, noisy: Array, n: int, apart: float, law: str) -> tuple[float, list[float]]:
        return float(noisy[0, -1]), [1.0]

    def reach(self, law: str) -> int:
        return 2

    def add(self, sums: Integers, group: Integers | None, values: Batch) -> None:
        """Columns: the class's code, and the score or the predicted class's code."""
        truth = unknown_codes(values[:, 0], len(self.classes)) if self.skips else values[:, 0]
        true = known_codes(truth, len(self.classes), missing=0)
        if self.edges:
            scores = np.where(np.isnan(values[:, 1]), 0.0, values[:, 1])
            said = np.searchsorted(np.array(self.edges), scores, side="right")
        else:
            said = known_codes(values[:, 1], len(self.classes), missing=0)
        place = true * self.columns + said
        if self.skips:
            known, missing = marks([truth])
            place = np.where(known, place, np.where(missing, self.block - 1, self.block))
        sums[0] += np.bincount(place, minlength=self.block + 1)[: self.block]

    def estimate(self, noisy: Array, n: int, apart: float = 0.0) -> Array:
        """The nearest counts that are whole, not negative and sum to n; with the records without a class, where these are counted."""
        if not self.total_is_public:
            return np.rint(np.maximum(noisy.reshape(-1)[:-1], 0.0))
        if self.skips:
            return whole(proportional(noisy.reshape(-1), float(n)), n)[:-1]
        return whole(proportional(noisy.reshape(-1), float(n)), n)

    def noise_error(self, spread: Array, n: int) -> float:
        return float(spread[0])

    def sampling_error(self, n: int) -> float:
        return 0.0


@dataclass(frozen=True)
class RegressorScores(_Scores):
    """Mean, spread and squared error of responses in [``lower``, ``upper``]; errors beyond ``largest_error`` count as it.

    | record | counts as |
    | --- | --- |
    | a response or prediction outside the range | the nearest end |
    | a response that is not a number | the middle of the range, or with ``missing="skip"`` nothing |
    | a prediction that is not a number, or failed | the middle of the range |
    """

    quantity: ClassVar[str] = "error of predictions"
    title = "Evaluation of a regressor"
    parameter_names = ("root mean squared error", "R²", "mean of the responses", "variance of the responses")
    largest = 15 * STEPS

    lower: float
    upper: float
    largest_error: float | None = None
    missing: str | None = None
    """"skip": records without a response contribute nothing and are counted."""
    nobody: bool = False

    @classmethod
    def example(cls) -> Self:
        return cls(-1.0, 1.0)

    def __post_init__(self) -> None:
        lower, upper = declared_range(self.lower, self.upper)
        error = upper - lower if self.largest_error is None else number("largest_error", self.largest_error)
        _check_missing(self.missing)
        if not 0.0 < error <= upper - lower:
            raise InvalidModel(f"largest_error lies between 0 and the width of the range, but {error!r} was given.")
        self._set(lower=lower, upper=upper, largest_error=error)

    @property
    def meaning(self) -> str:
        between = f"{shown(self.lower)} and {shown(self.upper)}"
        return f"How far predictions are off on held-out records; responses were declared to lie between {between}."

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def prior_scale(self) -> float:
        return max(min(self.width, 1.0, self.width**2), 1e-250) * 2.0**-10

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {
            "range": Bound(
                (self.lower, self.upper), Provenance.ENFORCED, "responses and predictions are clamped to it"
            ),
            "l1": Bound(self.reach("laplace") / STEPS, Provenance.PROVED, "one replaced record, in lattice ranges"),
        }

    @property
    def block(self) -> int:
        """Three sums; known responses where others are skipped, and missing ones where both do not add up to n."""
        return 3 + self.skips + (not self.total_is_public)

    def weights(self, law: str) -> tuple[int, ...]:
        if self.skips:
            return (6, 9, 15, *(4,) * (self.block - 3)) if law == "laplace" else (4, 6, 8, *(3,) * (self.block - 3))
        return (2, 3, 5) if law == "laplace" else (2, 3, 4)

    def reach(self, law: str) -> int:
        """In steps; rounding moves a square or an error by at most one step (and a hair) between two records.

        A response that becomes missing moves its own sums, at most from 1 to 0 each, and the counts.
        """
        counts = self.block - 3
        if self.skips and law == "gaussian":
            return max(128 * STEPS**2 + 240 * STEPS + 160, (116 + 9 * counts) * STEPS**2)
        if self.skips:
            return max(31 * STEPS + 24, (30 + 4 * counts) * STEPS)
        if law == "gaussian":
            return 32 * STEPS**2 + 60 * STEPS + 40
        return -(-31 * STEPS // 3) + 8

    def add(self, sums: Integers, group: Integers | None, values: Batch) -> None:
        """Columns: response, prediction."""
        middle = self.lower + self.width / 2.0
        whole = np.ones(len(values), dtype=bool)
        known, missing = marks([values[:, 0]]) if self.skips else (whole, ~whole)
        true, said = (
            np.clip(np.where(np.isnan(column), middle, column), self.lower, self.upper) for column in values.T
        )
        place = np.rint(np.clip(2.0 * (true - self.lower) / self.width - 1.0, -1.0, 1.0) * STEPS)
        error = np.minimum(np.abs(true - said) / float(self.largest_error or 1.0), 1.0)
        for column, part in enumerate((place, np.rint(place * (place / STEPS)), np.rint(error**2 * STEPS))):
            sums[0, column] += (part * known).astype(np.int64).sum()
        for column, counted in zip(range(3, self.block), (known, missing), strict=False):
            sums[0, column] += np.count_nonzero(counted) * STEPS

    def missing_of(self, noisy: Array, n: int, apart: float, law: str) -> tuple[float, list[float]]:
        factors = [1.0 / (self.weights(law)[3] * STEPS)]
        return (n - float(noisy[0, 3]) / STEPS if self.total_is_public else float(noisy[0, 4]) / STEPS), factors

    def records(self, noisy: Array, n: int) -> float:
        """How many responses there are: n, or what was released."""
        return min(max(float(noisy[0, 3]) / STEPS, 1.0), float(n)) if self.skips else float(n)

    def estimate(self, noisy: Array, n: int, apart: float = 0.0) -> Array:
        """Figures inside what they can be."""
        mean, square, error = np.clip(noisy[0, :3] / (self.records(noisy, n) * STEPS), [-1.0, 0.0, 0.0], 1.0)
        spread = max(square - mean**2, 0.0) * self.width**2 / 4.0
        squared = error * float(self.largest_error or 1.0) ** 2
        fit = float(np.clip(1.0 - squared / spread, -1.0, 1.0)) if spread > 0 else -1.0
        return np.array([np.sqrt(squared), fit, self.lower + self.width * (1.0 + mean) / 2.0, spread])

    def noise_error(self, spread: Array, n: int) -> float:
        """Of the mean squared error's root where it is a tenth of the range."""
        return float(self.largest_error or 1.0) * float(spread[2]) / (n * STEPS) / 0.2

    def sampling_error(self, n: int) -> float:
        return 0.1 * self.width / float(np.sqrt(2.0 * n))


# ── which of several ─────────────────────────────────────────────────────────────────────────────────────────────────


LOSS_STEPS = 2**20
"""Lattice steps of a loss of 1."""

MOST_CANDIDATES = 1000


class Losses(HeldOut):
    """Losses of every candidate: (n, candidates) numbers, or the sum of every candidate's in whole steps."""


@dataclass(frozen=True)
class ModelChoice(Model):
    """The candidate of ``names`` with the smallest loss, by its place 0, 1, …

    | a record's loss that is | counts as |
    | --- | --- |
    | below 0, above 1 | 0, 1 |
    | NaN, or of a prediction that failed | 1 |
    """

    quantity: ClassVar[str] = "choice among settings"
    parameter_names = ("place of the chosen setting",)
    prior_scale = 2.0**20  # there is no prior: a place is a whole number

    names: Annotated[tuple[str, ...], partial(different_names, "the settings of a choice", most=MOST_CANDIDATES)]

    @classmethod
    def example(cls) -> Self:
        return cls(("first", "second"))

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {"loss": Bound(1.0, Provenance.ENFORCED, "a record's loss is cut to [0, 1]")}

    def check(self, data: Any) -> None:
        if not isinstance(data, Losses):
            raise InvalidModel(
                f"ModelChoice is about the losses of held-out records, but a {type(data).__name__} was given. Use onedraw.choose(models, X, "
                "y, epsilon=…)."
            )

    def summarise(self, data: Any) -> Summary:
        self.check(data)
        found = data.read()
        if found.ndim == 2:
            found = in_steps(found.reshape(data.size, len(self.names))).sum(axis=0)
        return Summary(data.size, tuple(found.tolist()))


def in_steps(losses: Any) -> Integers:
    """Cut to [0, 1] and rounded to the lattice; what is no number counts as 1."""
    losses = np.asarray(losses, dtype=np.float64)
    steps = np.rint(np.clip(np.where(np.isnan(losses), 1.0, losses), 0.0, 1.0) * LOSS_STEPS)
    return np.asarray(steps, dtype=np.int64)
