"""The glossary explains every word of the report, in the same sentence, with an example."""

import re
from pathlib import Path

from onedraw.report.content import WORDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"


def entries():
    """Word → (what it means, example), line breaks aside."""
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {}
    for part in parts:
        word, means, example = (" ".join(piece.split()) for piece in part.split("\n\n", 2))
        found[word] = means, example
    return found


def test_the_glossary_explains_every_word_of_the_report_in_the_same_sentence():
    explained = entries()
    for _, word, means in WORDS:
        assert explained[word][0] == means


def test_every_word_has_an_example_and_the_page_all_words_that_are_asked_for():
    explained = entries()
    for word, (_, example) in explained.items():
        assert example.startswith("*Example.* "), word
    asked = [
        "ε",
        "δ",
        "Neighbours",
        "Unit",
        "Ledger",
        "Certificate",
        "proven",
        "Fit",
        "Standard",
        "Refused",
        "Draw",
        "Budget",
        "Schema",
    ]
    assert all(any(one in word for word in explained) for one in asked)
