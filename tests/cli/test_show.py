"""What others wrote is shown and does nothing: in the terminal, in JSON and in a spreadsheet."""

import csv
import io
import json

import pytest

from onedraw.cli import show

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
