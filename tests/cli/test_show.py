"""What others wrote is shown and does nothing: in the terminal, in JSON and in a spreadsheet."""

import csv
import io
import json

import pytest
from rich.console import Console

from onedraw.cli import show
from onedraw.errors import OnedrawError

PROSE = (
    "Proven: this fit is (ε = 1, δ = 1e-06)-differentially private when one record among n = 10,000 is replaced. " * 3
)
COMMAND = "onedraw verify a-long-name-of-a-release-that-somebody-chose.json --ledger /home/somebody/ledgers/hospital.db"
ROWS = [
    ["averaged-steps, logistic", "Gaussian DP with μ = 0.2367", "0.9999"],
    ["perturbed-mode, svc", "pure ε = 1", "1"],
]


@pytest.fixture
def terminal(monkeypatch):
    """Return a function that shows something on a terminal of this width and gives the lines that stand there."""

    def shown(width, show_it, *arguments):
        written = io.StringIO()
        monkeypatch.setattr(
            show,
            "console",
            lambda **_: Console(file=written, force_terminal=True, width=width, soft_wrap=True, color_system=None),
        )
        show_it(*arguments)
        return written.getvalue().splitlines()

    return shown


@pytest.mark.parametrize("width", [40, 80, 200])
def test_prose_is_broken_between_words_at_the_width_of_a_terminal(terminal, width):
    for show_it, words in (
        (show.show_lines, PROSE),
        (show.show_remark, f"onedraw: {PROSE}"),
        (lambda text: show.show_error(OnedrawError(text)), f"onedraw: {PROSE}"),
    ):
        lines = terminal(width, show_it, PROSE)
        assert max(map(len, lines)) <= width
        assert " ".join(lines).split() == words.split()


def test_a_command_stays_on_one_line(terminal):
    for text in (show.COMMAND + COMMAND, f"{PROSE}Check it with `{COMMAND}` and `onedraw ledger show`."):
        assert any(COMMAND in line for line in terminal(60, show.show_lines, text))


def test_piped_output_has_one_line_for_a_paragraph_and_a_row(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    show.show_lines(PROSE)
    show.show_table("title", ["mechanism", "promise " * 10, "ε"], ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == PROSE.strip()
    assert len(lines) == 1 + 1 + 2 + len(ROWS)


@pytest.mark.parametrize("width", [44, 60, 80])
def test_no_word_of_a_table_is_broken(terminal, width):
    lines = terminal(
        width,
        show.show_table,
        "A title that is longer than the terminal is wide. " * 2,
        ["mechanism", "promise", "ε"],
        ROWS,
    )
    assert max(map(len, lines)) <= width
    for word in {word for row in ROWS for cell in row for word in cell.split()}:
        assert any(word in line for line in lines), word


def test_a_table_too_wide_for_its_words_is_shown_row_by_row(terminal):
    lines = terminal(20, show.show_table, "title", ["mechanism", "promise", "ε"], ROWS)
    assert "mechanism:" in lines[2]
    assert "ε: 0.9999" in lines


def test_the_widest_column_gives_way_first():
    rows = [["a b c d e f g h", "xyz", "long-word short"]]
    assert show.column_widths(rows, None) == [15, 3, 15]
    assert show.column_widths(rows, 24) == [10, 3, 11]
    assert show.column_widths(rows, 13) == [1, 3, 9]
    assert show.column_widths(rows, 12) is None


@pytest.mark.parametrize("command", ["release", "plan", "audit", "ledger init"])
def test_help_fits_eighty_columns_and_lists_every_panel(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(*command.split(), "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert len(out.splitlines()) < 120
    assert ("Regressions:" in out) == (command in ("release", "plan"))


LEVELS = ["=cmd|' /C calc'!A0", "+ve"]
FORGED = "fine.\n  ✓ the ledger's chain verifies\nAuthentic: consistent.\x1b[8m\x1b]0;title\x07\u202e"


@pytest.mark.finding("C8")
def test_a_class_that_a_spreadsheet_would_compute_gets_an_apostrophe(run, hospital, release):
    declared = f"{{kind: binary, levels: {json.dumps(LEVELS)}, missing: +ve}}"
    text = (hospital / "ill.yaml").read_text()
    (hospital / "ill.yaml").write_text(text.replace("{kind: binary, levels: [no, yes], missing: no}", declared, 1))
    assert release("ill", "logistic", mechanism="candidates", draws=1)[0] == 0
    code, scores, message = run("predict", "release.json", "new.csv")
    assert code == 0, message
    rows = list(csv.reader(io.StringIO(scores)))
    assert {row[0] for row in rows[1:]} <= {f"'{level}" for level in LEVELS}
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)
    as_declared = json.loads(run("predict", "release.json", "new.csv", "--json")[1])
    assert as_declared["classes"] == LEVELS


@pytest.mark.finding("B3")
def test_what_is_shown_cannot_forge_a_line_or_act_on_the_terminal(capsys):
    show.show_lines(FORGED)
    show.show_remark(FORGED)
    show.show_table(FORGED, ["what"], [[FORGED]])
    show.show_json({"text": FORGED})
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert not set("\x1b\x07\u202e") & set(text)
        assert not any(line.startswith("Authentic") for line in text.splitlines())
    assert json.loads(captured.out[captured.out.index("{") :]) == {"text": FORGED}


@pytest.mark.finding("B3")
def test_verify_does_not_repeat_a_forged_answer(run, hospital, release):
    release("ill", "proportion")
    document = json.loads((hospital / "release.json").read_text())
    document["data"]["notes"] = [{"statement": FORGED, "provenance": "assumed"}]
    document["assumptions"].append(document["data"]["notes"][0])
    document["sentence"] += f" {FORGED[:1].upper()}{FORGED[1:]}."
    (hospital / "forged.json").write_text(json.dumps(document))
    for command in (
        ["verify", "forged.json"],
        ["verify", "forged.json", "--json"],
        ["predict", "forged.json", "new.csv"],
    ):
        code, out, err = run(*command)
        assert code == 3
        assert "Authentic" not in out + err
        assert "\x1b" not in out + err
