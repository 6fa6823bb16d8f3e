"""Models of other libraries, asked about private rows so that nothing of one row reaches the prediction for another.

A model may remember: a flag set by one value, a running mean, batch normalization left in training mode. One record would
then move the scores of all that follow, and the noise covers one. What is done about it:

- **Inside the model**: each row is predicted by a fresh copy of the model, so what a row leaves in it is thrown away. Rows
  asked for together (``batch=True``) go to a copy too: the caller's model remembers no record afterwards. Only copies made from
  a pickle share nothing but modules. Deep copies share functions, and so what a closure holds; there the certificate declares it.
- **Outside it** (a file, a module, the state of a random generator) nothing can be enforced, so the certificate declares it. As a
  check, public rows are predicted before and after other public rows, before the charge; a changed answer is refused.
- There is no such check *after* the private rows. Its outcome would depend on them, so refusing for it would tell of a record, and
  a warning that nobody may act on helps nobody.

A row on which the model raises anything, ``SystemExit`` and ``KeyboardInterrupt`` included, counts as a failed row: ending the
program would tell that there is such a record. An interrupt from the keyboard still ends the evaluation. Both raise
``KeyboardInterrupt``; they are told apart by whether the process received the signal.
"""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.data.columns import library_of
from onedraw.errors import WrongCall
from onedraw.private import Private

Prediction = Callable[[Any, Any], Array]
"""One number for each row, from a model and rows."""

PUBLIC_ROWS = 8
TOLERANCE = 1e-6
"""Relative: single precision on several threads repeats an answer to about 1e-7, and a mean over 8 rows moves by an eighth."""

CHANGED = (
    "The model's answer to a public row changed after it was asked about other public rows, so one record could move the scores of "
    "others. Make a prediction depend on its row alone: fix running statistics and random seeds (in PyTorch: model.eval()). "
    "Nothing was spent."
)


@dataclass(frozen=True, eq=False, repr=False)
class ForeignModel(Private):
    """A model that is asked about private rows through `predict`."""

    model: Any
    predict: Prediction
    pickled: bytes | None = field(init=False)
    deep_copied: bool = field(init=False)

    def __post_init__(self) -> None:
        pickled, deep_copied = _pickled(self.model), False
        if pickled is None:
            try:
                deep_copied = copy.deepcopy(self.model) is not self.model
            except Exception:  # it holds a lock, a session, a device
                deep_copied = False
        object.__setattr__(self, "pickled", pickled)
        object.__setattr__(self, "deep_copied", deep_copied)

    @property
    def has_own_copies(self) -> bool:
        """Whether copies share nothing inside the model. Deep copies share functions and what these refer to."""
        return self.pickled is not None

    def ask(self, rows: Any) -> Array:
        """Predict these rows with a fresh copy of the model, or with the model itself where it cannot be copied."""
        if self.pickled is not None:
            return self.predict(pickle.loads(self.pickled), rows)
        return self.predict(copy.deepcopy(self.model) if self.deep_copied else self.model, rows)

    def one_by_one(self, rows: Any) -> Array:
        """Predict each row by itself; NaN where the model fails, whatever it raises."""
        with keyboard() as pressed:
            each = (self._answers(row_of(rows, index), pressed) for index in range(_size(rows)))
            return np.array([float(answer[0]) if len(answer) else math.nan for answer in each])

    def together(self, X: Any, rows: Any) -> Array:
        """Predict all rows at once; row by row if the model fails on that, so that a failing row fails alone."""
        with keyboard() as pressed:
            predicted = self._answers(X, pressed)
        return predicted if len(predicted) == _size(rows) else self.one_by_one(rows)

    def check(self, rows: Any, *, batch: bool) -> None:
        """Refuse a model whose answer to a public row depends on other public rows. No private row is looked at."""
        public = public_rows(rows)
        if public is None:
            return
        every, middle = list(range(PUBLIC_ROWS)), PUBLIC_ROWS // 2
        with keyboard() as pressed:

            def answers(places: list[int]) -> Array:
                return self._answers(_taken(public, places), pressed)

            if batch:
                replaced = [0 if place == middle else place for place in every]
                first, other, turned = (answers(order) for order in (every, replaced, every[::-1]))
                pairs = [(first, turned[::-1]), (_without(first, middle), _without(other, middle))]
            else:
                before, after = [answers([place]) for place in every], [answers([place]) for place in reversed(every)]
                pairs = list(zip(before, reversed(after), strict=True))
        if not all(_equal(one, other) for one, other in pairs):
            raise WrongCall(CHANGED)

    def _answers(self, rows: Any, pressed: Pressed) -> Array:
        """Predict these rows; nothing if the model raises anything, because an error would tell that there is such a record."""
        try:
            with warnings.catch_warnings(), np.errstate():  # what a row sets in either ends with the row
                warnings.simplefilter("ignore")
                answers = np.asarray(self.ask(rows), dtype=np.float64).reshape(-1)
        except BaseException:
            answers = np.zeros(0)
        pressed.check()
        return answers


def _pickled(model: Any) -> bytes | None:
    """Return the bytes to make copies from; None where a model cannot be pickled, or its copies would be the model itself."""
    try:
        pickled = pickle.dumps(model, protocol=pickle.HIGHEST_PROTOCOL)
        return None if pickle.loads(pickled) is model else pickled
    except Exception:
        return None


def _size(rows: Any) -> int:
    return len(rows.obj) if hasattr(rows, "obj") else len(rows)


def row_of(rows: Any, index: int) -> Any:
    """Return one record as a table of one row; of an array a copy, so that a model that works in place keeps to it."""
    row = rows[index : index + 1]
    return row.copy() if isinstance(row, np.ndarray) else row


# ── the keyboard ──


class Pressed:
    """Whether somebody asked the process to stop."""

    def __init__(self) -> None:
        self.value = False

    def check(self) -> None:
        """Stop where somebody asked for it, also if the model caught the interrupt."""
        if self.value:
            raise KeyboardInterrupt


@contextlib.contextmanager
def keyboard() -> Iterator[Pressed]:
    """Note the interrupts that the process receives, and pass them on. Signals reach the main thread alone."""
    pressed = Pressed()
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def note(number: int, frame: Any) -> None:
        pressed.value = True
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


# ── public rows ──


def public_rows(rows: Any) -> Any | None:
    """Return rows of public numbers in a container like the records'; None for a container whose width is not public."""
    if hasattr(rows, "obj"):
        return _public_frame(rows.obj)
    if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "fiubO":
        return public_numbers(rows.shape[1]).astype(rows.dtype)
    return None


def public_numbers(columns: int) -> Array:
    """Return quarters from 0 to 2½: first a row of zeros, and no two rows alike."""
    place = np.arange(PUBLIC_ROWS)[:, np.newaxis] * (1.0 + np.arange(columns))
    return np.asarray((place % 11.0) / 4.0)


def _public_frame(frame: Any) -> Any | None:
    """Return a pandas frame of the same columns and types: public numbers, or missing cells where a type holds none."""
    if library_of(frame) != "pandas":
        return None
    numbers = public_numbers(frame.shape[1])
    public = frame.iloc[:0].reindex(range(PUBLIC_ROWS))
    for place, kind in enumerate(frame.dtypes):
        if isinstance(kind, np.dtype) and kind.kind in "fiubO":
            public.isetitem(place, numbers[:, place].astype(kind))
    return public


def _taken(public: Any, places: Any) -> Any:
    return public.iloc[places].reset_index(drop=True) if hasattr(public, "iloc") else public[places]


def _without(answers: Array, place: int) -> Array:
    return np.delete(answers, place) if len(answers) == PUBLIC_ROWS else answers


def _equal(one: Array, other: Array) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))
