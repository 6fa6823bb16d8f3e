"""The curator's check: what it shows goes to a terminal and nowhere else, and nothing that follows depends on it."""

from __future__ import annotations

import os
import pty
import re
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw import errors
from onedraw.ledger import Kind


class Spiteful:
    """A cell that fails at whatever is asked of it."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    __float__ = __str__ = __hash__ = __eq__ = __getattr__


@contextmanager
def terminal(monkeypatch, *, typed: str | None = None):
    """Standard error on a pseudo-terminal, and standard input if something is typed; yields a function that reads it."""
    master, slave = pty.openpty()
    shown = []

    def screen() -> str:
        sys.stderr.flush()
        os.set_blocking(master, False)
        try:
            while data := os.read(master, 65536):
                shown.append(data.decode())
        except BlockingIOError:
            pass
        return "".join(shown)

    with (
        open(slave, "w", closefd=False) as errors_,
        open(slave, closefd=False) as inputs,
        monkeypatch.context() as patched,
    ):
        patched.setattr(sys, "stderr", errors_)
        if typed is not None:
            os.write(master, typed.encode())
            patched.setattr(sys, "stdin", inputs)
        yield screen
    os.close(master)
    os.close(slave)


def frame(rows: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    """A quarter of the ages are missing, half of the doses beyond their bound, all wards are words."""
    generator = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "age": np.where(np.arange(rows) % 4 == 0, np.nan, 50.0),
            "dose": np.where(np.arange(rows) % 2 == 0, 99.0, 1.0),
            "ward": "surgery",
        }
    )
    return X, generator.integers(0, 2, rows)


PUBLIC = {
    "bounds": ([0, 0, 0], [100, 10, 1]),
    "classes": ["no", "yes"],
    "random_state": 7,
    "n_draws": 1,
    "missing": "middle",
}


def row(screen: str, name: str) -> list[str]:
    *_, line = [line for line in screen.splitlines() if line.split()[:1] == [name]]
    return re.findall(r"[\d.]+ %|–|\?", line)


@pytest.mark.finding("S9")
def test_what_is_not_as_declared_is_shown_on_the_terminal_and_the_release_is_the_same(monkeypatch, capfd):
    X, y = frame()
    plain = od.DPLogisticRegression(1.0, **PUBLIC).fit(X, y)
    with terminal(monkeypatch) as screen:
        checked = od.DPLogisticRegression(1.0, **PUBLIC, check="curator").fit(X, y)
        seen = screen()
    assert row(seen, "age") == ["25.0 %", "–", "–", "–"]
    assert row(seen, "dose") == ["–", "–", "50.0 %", "–"]
    assert row(seen, "ward") == ["–", "100.0 %", "–", "–"]
    assert row(seen, "(response)") == ["–", "–", "–", "100.0 %"]
    assert "Enter" not in seen
    assert np.array_equal(checked.draws_, plain.draws_)
    assert capfd.readouterr() == ("", "")


@pytest.mark.finding("S9")
@pytest.mark.parametrize("bad", [False, True])
def test_without_a_terminal_it_is_refused_whatever_the_records_are(bad, tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(3.0, 1e-5))
    column = ["?"] * 50 if bad else ["no"] * 50
    model = od.DPProportion(1.0, classes=["no", "yes"], check="curator", ledger=ledger, dataset="patients")
    with pytest.raises(errors.WrongCall, match="written to a terminal or shown in a notebook only") as refused:
        model.fit(column)
    assert "Nothing was read or charged" in str(refused.value)
    assert all(event.kind != Kind.RESERVED for event in ledger.events("patients"))


def test_the_question_is_always_asked_where_somebody_can_answer(monkeypatch):
    for cell in ("yes", "?"):
        with terminal(monkeypatch, typed="\n") as screen:
            od.DPProportion(1.0, classes=["no", "yes"], check="curator").fit([cell] * 50)
            assert "Nothing is charged yet. Enter: go on" in screen()


@pytest.mark.parametrize(
    ("model", "column", "expected"),
    [
        (
            od.DPProportion(1.0, classes=[0, 1]),
            [0, 1, "1", True, None, 2, "x", Spiteful()],
            ["25.0 %", "–", "–", "25.0 %"],
        ),
        (od.DPHistogram(1.0, levels=["a", "b"]), np.array(["a", "b", "B", "a"]), ["–", "–", "–", "25.0 %"]),
        (od.DPMean(1.0, bounds=(0, 10)), np.array([1.0, np.nan, 11.0, -1.0]), ["25.0 %", "–", "50.0 %", "–"]),
        (od.DPRate(1.0, bounds=(0, 10)), pd.Series(["3", "", "many", "12"]), ["25.0 %", "25.0 %", "25.0 %", "–"]),
    ],
)
def test_every_kind_of_column_is_compared_with_its_declaration(model, column, expected, monkeypatch):
    with terminal(monkeypatch) as screen:
        model.set_params(check="curator").fit(column)
        assert row(screen(), "column") == expected


@pytest.mark.parametrize("rows", [[[1, 2], [3], "x", [Spiteful(), None]], np.full((4, 2), np.nan)])
def test_rows_of_any_kind_are_compared_and_none_can_stop_it(rows, monkeypatch):
    model = od.DPLinearRegression(
        5.0, bounds=([0, 0], [1, 1]), response_bound=(0, 10), check="curator", n_draws=1, missing="middle"
    )
    with terminal(monkeypatch) as screen:
        model.fit(rows, list(range(len(rows))))
        assert len(row(screen(), "(response)")) == 4


def test_another_word_is_refused(monkeypatch):
    with pytest.raises(errors.WrongCall, match="check takes 'curator'"):
        od.DPMean(1.0, bounds=(0, 1), check=True).fit(np.zeros(20))
