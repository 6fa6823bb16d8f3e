"""Models that remember: what one row leaves in them, or beside them, reaches no other row; nor can a row end the program."""

from __future__ import annotations

import os
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import onedraw as od
from onedraw.errors import WrongCall
from onedraw.estimators import judging

ODD = 77.0
"""What a model is waiting for; public rows are no larger than 3."""


class Half:
    """Says a half of everything, and is asked row by row."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        second = np.array([self.score(row) for row in np.asarray(X, dtype=float)])
        return np.column_stack([1 - second, second])

    def score(self, row):
        return 0.5


class Remembers(Half):
    """Is right until it has seen one value, and wrong from then on."""

    seen = False

    def score(self, row):
        self.seen = self.seen or row[0] == ODD
        return 0.1 if self.seen else 0.9


class Running(Half):
    """Standardizes by a running mean."""

    total, count = 0.0, 0

    def score(self, row):
        self.total, self.count = self.total + row[0], self.count + 1
        return 0.9 if row[0] - self.total / self.count >= 0 else 0.1


class RunningBeside(Half):
    """Keeps its running mean in its class, which every copy shares."""

    held = (0.0, 0)

    def score(self, row):
        total, count = type(self).held = (type(self).held[0] + row[0], type(self).held[1] + 1)
        return special.expit(row[0] - total / count)


class Random(Half):
    def score(self, row):
        return np.random.random()  # noqa: NPY002 — the global generator is what is meant


class Strict(Half):
    """Makes NumPy raise errors from one value on, which a later row meets."""

    def score(self, row):
        if row[0] == ODD:
            np.seterr(all="raise")
        return 0.9 + float(np.float64(1e-300) * np.float64(1e-300))


def behind_a_function(model):
    """A model that any copy but a pickle shares."""
    return SimpleNamespace(classes_=[0, 1], predict_proba=lambda X: model.predict_proba(X))


class Locked(Remembers):
    """Cannot be copied."""

    def __init__(self):
        self.lock = threading.Lock()


class Ends(Half):
    """Ends the program at one value."""

    def __init__(self, error):
        self.error = error

    def score(self, row):
        if row[0] == ODD:
            raise self.error
        return 0.9


def accuracies(model, **options):
    """On n records all of the second class, and with the first record replaced."""
    found = []
    for first in (0.0, ODD):
        X = np.zeros((60, 2))
        X[0, 0] = first
        score = od.evaluate(model, X, np.ones(60, dtype=int), epsilon=1e3, classes=[0, 1], random_state=0, **options)
        found.append(score.accuracy.value)
    return found


@pytest.mark.finding("reliability N4", commit="8a7c0fb")
@pytest.mark.parametrize("kind", [Remembers, Running, Strict])
def test_a_record_that_a_model_remembers_moves_only_its_own_score(kind):
    one, other = accuracies(kind())
    assert abs(one - other) <= 1 / 60 + 1e-6
    assert other > 0.9


@pytest.mark.finding("reliability N4", commit="8a7c0fb")
@pytest.mark.parametrize("batch", [False, True])
def test_the_model_that_was_given_remembers_no_record(batch):
    model = Remembers()
    accuracies(model, batch=batch)
    assert not model.seen


@pytest.mark.finding("reliability N4", commit="8a7c0fb")
@pytest.mark.parametrize(
    ("kind", "batch"), [(RunningBeside, False), (Random, False), (Running, True), (RunningBeside, True), (Random, True)]
)
def test_an_answer_that_changes_on_public_rows_is_refused(kind, batch, tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("d", od.PureDP(1.0))
    X, y = np.zeros((60, 2)), np.ones(60, dtype=int)
    options = {"epsilon": 0.5, "classes": [0, 1], "batch": batch, "ledger": ledger, "dataset": "d"}
    with pytest.raises(WrongCall, match=r"public row changed.*Nothing was spent"):
        od.evaluate(kind(), X, y, **options)
    with pytest.raises(WrongCall, match="public row changed"):
        od.choose({"a": kind(), "b": Half()}, pd.DataFrame(X), y, **options)
    assert ledger.remaining("d").spent_epsilon == 0.0


@pytest.mark.finding("reliability N4", commit="8a7c0fb")
def test_the_certificate_says_what_is_enforced_and_what_is_declared():
    X, y = np.zeros((60, 2)), np.ones(60, dtype=int)

    def notes(model):
        found = od.evaluate(model, X, y, epsilon=1.0, classes=[0, 1])
        return {note.statement: str(note.provenance) for note in found.certificate.data.notes}

    copied, same = notes(Half()), notes(Locked())
    shared = notes(behind_a_function(Half()))
    assert not any("fresh copy" in text for text in shared)
    assert any(
        kind == "declared" for text, kind in shared.items() if "keeps nothing between rows: it cannot be" in text
    )
    assert {"enforced"} == {kind for text, kind in copied.items() if "fresh copy" in text}
    assert {"declared"} == {
        kind for text, kind in copied.items() if "keeps nothing between rows outside itself" in text
    }
    assert {"declared"} == {
        kind for text, kind in same.items() if "keeps nothing between rows: it cannot be pickled" in text
    }
    assert not any("fresh copy" in text for text in same)


@pytest.mark.finding("reliability N4", commit="8a7c0fb")
@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit()], ids=repr)
@pytest.mark.parametrize("batch", [False, True])
def test_a_row_that_ends_the_program_is_a_row_that_failed(error, batch):
    assert accuracies(Ends(error), batch=batch) == pytest.approx([1.0, 59 / 60], abs=1e-3)


@pytest.mark.parametrize("batch", [False, True])
def test_an_interrupt_that_a_model_raises_is_a_row_that_failed(batch):
    assert accuracies(Ends(KeyboardInterrupt()), batch=batch) == pytest.approx([1.0, 59 / 60], abs=1e-3)


class Pressing(Half):
    """The keyboard is pressed while it works; it may swallow what follows."""

    swallows = False

    def score(self, row):
        if row[0] == ODD:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                threading.Event().wait(1.0)  # the signal is delivered here
            except KeyboardInterrupt:
                if not self.swallows:
                    raise
        return 0.9


@pytest.mark.parametrize("swallows", [False, True])
@pytest.mark.parametrize("batch", [False, True])
def test_an_interrupt_from_the_keyboard_ends_the_evaluation(swallows, batch):
    model, outside = Pressing(), signal.getsignal(signal.SIGINT)
    model.swallows = swallows
    before = signal.default_int_handler
    signal.signal(signal.SIGINT, before)  # a process started in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            accuracies(model, batch=batch)
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, outside)


def test_a_model_is_evaluated_in_a_thread_of_its_own():
    found = []
    thread = threading.Thread(target=lambda: found.extend(accuracies(Ends(KeyboardInterrupt()))))
    thread.start()
    thread.join()
    assert found == pytest.approx([1.0, 59 / 60], abs=1e-3)


class Posing(Half):
    """Carries a certificate, as our estimators do, and is none of them."""

    certificate_ = None


class Ours(od.DPLogisticRegression):
    """Derives from an estimator of the library and predicts as it likes."""

    def predict_proba(self, X):
        return Half().predict_proba(X)


@pytest.mark.finding("reliability N4", commit="8a7c0fb")
def test_a_model_that_carries_a_certificate_is_not_taken_for_ours():
    found = od.evaluate(Posing(), np.zeros((60, 2)), np.arange(60) % 2, epsilon=1.0, classes=[0, 1])
    assert not any(str(note.provenance) == "proved" for note in found.certificate.data.notes)


@pytest.mark.parametrize(
    ("kind", "ours"),
    [(od.DPLogisticRegression, True), (od.DPLinearRegression, True), (od.DPLinearSVC, True), (Ours, False)],
)
def test_estimators_are_ours_while_they_predict_by_our_methods(kind, ours):
    model = kind(epsilon=1.0)
    assert not judging.is_ours(model)  # not fitted
    model.certificate_ = None
    assert judging.is_ours(model) is ours
    model.predict = Half().predict_proba  # of this object alone
    assert not judging.is_ours(model)


def test_ordinary_models_of_frames_pass_the_check_on_public_rows():
    X = pd.DataFrame({"ward": ["a", "b"] * 30, "age": np.arange(60), "ratio": np.linspace(0, 1, 60)})
    y = np.arange(60) % 2
    pipeline = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(X, y)
    for batch in (False, True):
        found = od.evaluate(pipeline, X, y, epsilon=1e3, classes=[0, 1], batch=batch, random_state=0)
        assert found.accuracy.value > 0.9
