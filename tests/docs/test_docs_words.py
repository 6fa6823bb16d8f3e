"""Plain words: no house jargon on the first screens, in a report or in any message.

What the commands of everyday questions print is scanned where they are run, in test_docs_questions.py.
"""

import ast
import html
import re
from pathlib import Path

import pytest

import onedraw
from onedraw import cli

SOURCE = Path(onedraw.__file__).parent
JARGON = {
    r"n·w|λ·s|s₀": "symbols of a theorem",
    r"\bslack\b": "say what δ is",
    r"prior still pulls|stand out of its noise|not eligible|no number to turn": "say what is wrong and what helps",
    r"\bbooks\b": "the ledger",
    r"\brooms?\b": "names of our own folders",
}
"""What no newcomer can know, and what to write instead."""
FIRST_HOUR = JARGON | {
    r"measured coordinates|not a posterior draw|\btime 0\.": "the certificate's numbers have it",
    r"row_bound|mode_noise|information_noise": "--json has them",
}
"""And what has its place, but not on the first screen."""


def jargon_in(text, words=FIRST_HOUR):
    """(word, what to write instead) for everything in the text that only we understand."""
    return [(found[0], instead) for word, instead in words.items() for found in re.finditer(word, text, re.IGNORECASE)]


def plain(page):
    """What a report says before anything is unfolded."""
    text = re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<style.*?</style>|<details.*?</details>", " ", page))
    return " ".join(html.unescape(text).split())


def sentences_of(path):
    """(line, text) of every sentence that the program could print: strings with spaces that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documented
            and " " in node.value
        ):
            yield node.lineno, node.value


def test_the_list_finds_what_was_once_printed():
    for once in (
        "n·w·λ·s₀² is 1.45 for one of 8 draws, below 25: the prior still pulls too hard (candidates)",
        "direct: not eligible. Direct sampling has no number to turn down",
        "Slack δ",
        "by noisy-gradient draw, time 0.032787; not a posterior draw",
        "In the books of patients",
        "The room follows noisy gradients",
    ):
        assert jargon_in(once), once
    assert not jargon_in("onedraw verify release.json --ledger ledger.db; from onedraw.audit.cases import cases")


def test_no_message_of_the_program_is_in_house_jargon():
    found = [
        (f"{path.relative_to(SOURCE)}:{line}", jargon_in(text, JARGON))
        for path in SOURCE.rglob("*.py")
        for line, text in sentences_of(path)
    ]
    assert len(found) > 1000
    assert not [one for one in found if one[1]]


def test_the_demonstration_is_in_plain_words(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "220")
    monkeypatch.setattr("sys.argv", ["onedraw", "demo"])
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert not done.value.code
    out, err = capsys.readouterr()
    report = plain(Path(re.search(r"Reports?: (\S+)", out)[1]).read_text(encoding="utf-8"))
    assert not jargon_in(out + err + report)
    assert "The guarantee covers model.json and model.html. Whether ε = 1 with δ = 10⁻⁶" in out
