"""The curator's check: shown in a terminal, or in a notebook that a person confirms, and found in no file afterwards."""

import builtins
import datetime
import importlib.util
import io
import json
import queue
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest

import onedraw as od
from onedraw.data.curator import ACKNOWLEDGE, CONFIRM, Declared, Notebook, columns_of, find_screen, look
from onedraw.data.declarations import Date
from onedraw.errors import WrongCall

ROOT = Path(__file__).resolve().parents[2]

CODE = """\
import onedraw as od
od.DPMean(epsilon=5.0, bounds=(0, 100), check="curator").fit([50.0] * 30 + [None] * 7 + [1000.0] * 3).mean_
"""
SHARES = ("17.5 %", "7.5 %")
"""What only the check knows of these forty records: 7 are missing, 3 lie outside."""


def notebook():
    cell = {"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": [], "source": CODE}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_dates_are_compared_with_the_declared_range():
    schema = od.Schema.from_dict(
        {"columns": {"v": {"kind": "date", "first": "2026-01-01", "last": "2026-12-31", "format": "%d.%m.%Y", "missing": "2026-06-01"}}}
    )  # fmt: skip
    frame = {"v": ["01.02.2026", None, "31.02.2026", datetime.date(2030, 1, 1), pd.NaT]}
    screen = Terminal()
    look(columns_of(od.read(frame, schema)), find_screen(screen))
    (line,) = [line.split() for line in screen.getvalue().splitlines() if line.split()[:1] == ["v"]]
    assert line == ["v", "40.0", "%", "20.0", "%", "20.0", "%", "–"]
    typed = {"v": pd.Series(pd.to_datetime(["2026-02-01", None, "2030-01-01", "2026-03-01"]))}
    screen = Terminal()
    look(columns_of(od.read(typed, schema)), find_screen(screen))
    (line,) = [line.split() for line in screen.getvalue().splitlines() if line.split()[:1] == ["v"]]
    assert line == ["v", "25.0", "%", "–", "25.0", "%", "–"]
    assert isinstance(schema.column("v"), Date)
    assert Declared.by_schema(schema.column("v")).fault("2026-02-01") is None


# A notebook without Jupyter: what the check asks, in which order


@pytest.fixture
def kernel(monkeypatch):
    """IPython's kernel as far as the check sees it; a list of what happened."""
    happened = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    display.clear_output = lambda wait: happened.append("cleared")
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(builtins, "print", lambda *words, **_: happened.append(" ".join(words)))
    return happened


def answering(monkeypatch, happened, *answers):
    said = iter(answers)

    def reply(prompt=""):
        happened.append(prompt)
        answer = next(said)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(builtins, "input", reply)


def test_a_person_confirms_reads_and_the_output_is_cleared(monkeypatch, kernel):
    answering(monkeypatch, kernel, " Show ", "")
    screen = find_screen(io.StringIO())
    assert isinstance(screen, Notebook)
    screen.show("a table")
    assert kernel == [CONFIRM, "a table", ACKNOWLEDGE, "cleared"]


def test_the_output_is_cleared_when_the_kernel_is_interrupted(monkeypatch, kernel):
    answering(monkeypatch, kernel, "show", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        find_screen(io.StringIO()).show("a table")
    assert kernel[-1] == "cleared"


@pytest.mark.parametrize("answer", [NotImplementedError(), EOFError(), "", "yes"], ids=repr)
def test_without_a_confirmation_nothing_is_read(monkeypatch, kernel, answer):
    answering(monkeypatch, kernel, answer)
    with pytest.raises(WrongCall, match=r"Nothing was read.*leave the check out"):
        find_screen(io.StringIO())
    assert kernel == [CONFIRM]


def test_a_notebook_run_by_the_tool_of_the_documentation_is_refused_and_its_file_has_no_count(tmp_path):
    spec = importlib.util.spec_from_file_location("run_notebook", ROOT / "tools" / "run_notebook.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    with pytest.raises(WrongCall, match="standard error is none here"):
        tool.run(notebook())


# A notebook in Jupyter


def without_a_person(path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.from_dict(notebook())
    nbclient.NotebookClient(book, timeout=120, allow_errors=True).execute()
    nbformat.write(book, path)


def with_a_person(path, answers):
    """Execute the cell as a front end does: what is asked stands among the outputs with its answer, and clearing empties them."""
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    kernel, client = manager.start_new_kernel(kernel_name="python3")
    book, seen, left = notebook(), [], list(answers)
    outputs = book["cells"][0]["outputs"]

    def write(text):
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})

    def receive(message):
        content = message["content"]
        match message["msg_type"]:
            case "clear_output":
                outputs.clear()
            case "stream":
                write(content["text"])
            case "execute_result":
                outputs.append(
                    {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": content["data"]}
                )
            case "error":
                outputs.append(
                    {"output_type": "error", **{name: content[name] for name in ("ename", "evalue", "traceback")}}
                )

    def ask(message):
        with suppress(queue.Empty):  # what was printed before the question comes over another channel
            while True:
                receive(client.get_iopub_msg(timeout=1))
        seen.append("".join(output.get("text", "") for output in outputs))
        answer = left.pop(0)
        write(f"{message['content']['prompt']} {answer}\n")
        client.input(answer)

    try:
        client.execute_interactive(CODE, allow_stdin=True, stdin_hook=ask, output_hook=receive, timeout=120)
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    path.write_text(json.dumps(book), encoding="utf-8")
    return seen


def test_a_program_that_executes_a_notebook_is_refused_and_its_file_has_no_count(tmp_path):
    without_a_person(tmp_path / "n.ipynb")
    saved = (tmp_path / "n.ipynb").read_text(encoding="utf-8")
    assert "needs a person who confirms it" in saved
    assert not [share for share in SHARES if share in saved]


def test_a_notebook_shows_the_check_to_a_person_and_its_file_has_no_count(tmp_path):
    seen = with_a_person(tmp_path / "n.ipynb", ["show", ""])
    saved = (tmp_path / "n.ipynb").read_text(encoding="utf-8")
    assert not [share for share in SHARES if share in saved + seen[0]]
    assert "execute_result" in saved  # it was released afterwards
    assert all(share in seen[1] for share in SHARES)  # and the person has seen it
