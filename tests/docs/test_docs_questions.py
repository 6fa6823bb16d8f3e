"""The page "From a question to a command": every row is run, top to bottom, in one folder."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from onedraw import cli

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "questions.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| `onedraw (.+?)` \|$", PAGE, flags=re.MULTILINE)
COMMON = "--schema schema.yaml --ledger books.db"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the page's own preparations leave the reader."""
    place = tmp_path_factory.mktemp("hospital")
    block = re.search(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    *written, last = block.strip().splitlines()
    script = "\n".join(["set -eu", f'python() {{ {shlex.quote(sys.executable)} "$@"; }}', *written])
    subprocess.run(["bash", "-c", script], cwd=place, check=True)
    with contextlib.chdir(place):
        assert typed(last.removeprefix("onedraw "))[0] == 0
    return place


def typed(words):
    """What `onedraw words` answers, in this process: (exit code, stdout)."""
    given, out = sys.argv, io.StringIO()
    sys.argv = ["onedraw", *shlex.split(words.replace("…", COMMON))]
    try:
        with contextlib.redirect_stdout(out):
            code = cli.main()
    except SystemExit as done:
        code = done.code
    finally:
        sys.argv = given
    return code or 0, out.getvalue()


def test_every_row_of_the_page_is_a_command_that_works(folder, monkeypatch):
    monkeypatch.chdir(folder)
    answers = {}
    for question, words in ROWS:
        code, answers[question] = typed(words)
        assert code == 0, (question, answers[question])
        assert answers[question].strip(), question
        if words.startswith("release"):
            assert "May I publish this? Yes" in answers[question]
    assert "Authentic" in answers["Did somebody tamper with the release?"]
    assert "treated" in answers["Is the treatment associated with healing, adjusted for the other columns?"]


def test_the_page_answers_twenty_questions():
    assert len(ROWS) >= 20
    assert len(set(ROWS)) == len(ROWS)
