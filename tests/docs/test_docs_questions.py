"""The page "From a question to a command": every row is run, top to bottom, in one folder, and answers in plain words."""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from onedraw import cli
from tests.docs.test_docs_words import jargon_in, plain

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "questions.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| `onedraw (.+?)` \|$", PAGE, flags=re.MULTILINE)
SET = dict(re.findall(r"(ONEDRAW_\w+)=([\w.]+)", PAGE))
MEANING = r"If two values of a record are equally likely beforehand, .* guesses right at most \d\d times in 100 \(a coin: 50\)\.$"


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """Where the page's own preparations leave the reader."""
    place = tmp_path_factory.mktemp("hospital")
    *written, last = re.search(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1].strip().splitlines()
    script = "\n".join(["set -eu", f'python() {{ {shlex.quote(sys.executable)} "$@"; }}', *written])
    subprocess.run(["bash", "-c", script], cwd=place, check=True)
    with contextlib.chdir(place), pytest.MonkeyPatch.context() as patch:
        for name, value in SET.items():
            patch.setenv(name, value)
        assert typed(last.removeprefix("onedraw "))[0] == 0
        yield place


@pytest.fixture(scope="module")
def answers(hospital):
    """Command → (exit code, what it printed), for every row."""
    with contextlib.chdir(hospital):
        return {words: typed(words) for _, words in ROWS}


def typed(words):
    """What `onedraw words` answers, in this process: (exit code, all that it prints)."""
    given, out = sys.argv, io.StringIO()
    sys.argv = ["onedraw", *shlex.split(words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = cli.main()
    except SystemExit as done:
        code = done.code
    finally:
        sys.argv = given
    return code or 0, out.getvalue()


def test_every_row_of_the_page_is_a_command_that_works(answers):
    assert {words: said for words, (code, said) in answers.items() if code or not said.strip()} == {}
    assert "Authentic" in answers["verify healed.json --ledger ledger.db"][1]


@pytest.mark.finding("newcomer S16", commit="8a7c0fb")
def test_first_release_row_runs_as_pasted_into_a_shell(tmp_path):
    """With the page's own preparations and nothing else."""
    prepare = re.search(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    row = next(words for _, words in ROWS if words.startswith("release"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{prepare}\nonedraw {row}\n"], cwd=tmp_path, env=os.environ | {"PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "smokers.json").exists()


def test_no_row_leaves_out_anything(answers):
    assert not [words for words in answers if "…" in words]


def test_the_page_answers_twenty_questions():
    assert len(ROWS) >= 20
    assert len(set(ROWS)) == len(ROWS)


def test_no_answer_and_no_report_is_in_house_jargon(answers, hospital):
    said = {words: answer for words, (_, answer) in answers.items()}
    said |= {path.name: plain(path.read_text(encoding="utf-8")) for path in hospital.glob("*.html")}
    assert {name: jargon_in(text) for name, text in said.items() if jargon_in(text)} == {}
    assert "healed.html" in said


def test_every_release_says_what_it_means_for_a_person_and_what_may_be_published(answers, hospital):
    for words in (words for words in answers if words.startswith(("release", "evaluate"))):
        out = Path(re.search(r"--out (\S+)", words)[1])
        sentence = json.loads((hospital / out).read_text(encoding="utf-8"))["sentence"]
        assert re.search(MEANING, sentence), sentence
        assert sentence in " ".join(answers[words][1].split())
        last = answers[words][1].strip().splitlines()[-1]
        assert last.startswith(f"The guarantee covers {out}"), last
        assert "is acceptable is for the data owner to decide. Do not publish the records, the ledger" in last
    report = plain((hospital / "healed.html").read_text(encoding="utf-8"))
    assert "The guarantee covers this report and release.json. Whether ε = " in report


def test_a_fit_is_not_called_a_draw(answers, hospital):
    sentence = json.loads((hospital / "healed.json").read_text(encoding="utf-8"))["sentence"]
    assert sentence.startswith("Proven: this fit is (ε = ")
    assert "draw" not in sentence


def test_what_comes_from_a_seed_may_not_be_published(hospital):
    with contextlib.chdir(hospital):
        assert typed("ledger init trials.db --dataset hospital-2026 --epsilon 1 --delta 1e-6")[0] == 0
        _, out = typed("release patients.csv --target smoker --model proportion --epsilon 0.5 --seed 1 --out seeded.json "
                       "--schema schema.yaml --ledger trials.db")  # fmt: skip
    assert "Not private: this release comes from a fixed seed" in out
    assert "equally likely" not in out
