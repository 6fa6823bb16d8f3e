"""The first hour in plain words: no house jargon on the screen, in the report or in a message, and the questions people have
answered: what does the promise mean for a person, and may I publish this?"""

import ast
import html
import json
import re
from pathlib import Path

import pytest

import onedraw

SOURCE = Path(onedraw.__file__).parent
JARGON = {
    r"n·w|λ·s|s₀": "symbols of a theorem",
    r"\bslack\b": "say what δ is",
    r"prior still pulls|stand out of its noise|not eligible|no number to turn": "say what is wrong and what helps",
    r"\bbooks\b(?!\.db)": "the ledger",
    r"(?<!\.)\bcasebook\b|\brooms?\b": "names of our own folders",
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


def test_the_list_finds_what_was_once_printed():
    for once in (
        "n·w·λ·s₀² is 1.45 for one of 8 draws, below 25: the prior still pulls too hard (candidates)",
        "direct: not eligible. Direct sampling has no number to turn down",
        "Slack δ",
        "by noisy-gradient draw, time 0.032787; not a posterior draw",
        "In the books of patients",
        "The casebook follows noisy gradients",
    ):
        assert jargon_in(once), once
    assert not jargon_in("onedraw verify release.json --ledger books.db; from onedraw.casebook import cases")


RELEASES = {
    "proportion": ("ill", "proportion"),
    "logistic": ("ill", "logistic"),
    "softmax": ("grade", "softmax"),
}


@pytest.fixture
def first_hour(run, release, hospital):
    """Everything a newcomer reads, by command; reports as text without marks."""
    heard = {"init": run("ledger", "init", "new.db", "--dataset=d", "--epsilon=3", "--delta=1e-5")}
    heard["check"] = run("schema", "check", "ill.yaml", "patients.csv")
    for name, (target, model) in RELEASES.items():
        asked = (f"--schema={target}.yaml", f"--target={target}", f"--model={model}", "--epsilon=1", "--rows=300")
        heard[f"plan {name}"] = run("plan", *asked)
        heard[f"release {name}"] = release(target, model, epsilon=1, out=f"{name}.json", report=f"{name}.html")
    heard["verify"] = run("verify", "logistic.json", "--ledger", "books.db")
    heard["predict"] = run("predict", "logistic.json", "new.csv")
    heard["show"] = run("ledger", "show", "books.db")
    heard["spent"] = release("ill", "proportion", epsilon=5000, out="more.json")
    assert [name for name, (code, *_) in heard.items() if code] == ["spent"], heard
    reports = {path.name: plain(path.read_text(encoding="utf-8")) for path in hospital.glob("*.html")}
    return {name: out + err for name, (_, out, err) in heard.items()} | reports


def plain(page):
    text = re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<style.*?</style>|<details.*?</details>", " ", page))
    return " ".join(html.unescape(text).split())


def test_the_first_hour_is_in_plain_words_and_says_what_may_be_published(first_hour, hospital):
    found = {name: jargon_in(text) for name, text in first_hour.items()}
    assert not {name: words for name, words in found.items() if words}
    for name in RELEASES:
        sentence = json.loads((hospital / f"{name}.json").read_text())["sentence"]
        assert re.search(r"For a person: .* guesses right at most \d\d times in 100 .* \(a coin: 50\)\.$", sentence), (
            sentence
        )
        assert sentence in " ".join(first_hour[f"release {name}"].split())
        last = first_hour[f"release {name}"].strip().splitlines()[-1]
        assert last.startswith(f"May I publish this? Yes: {name}.json and {name}.html. No: the records, the ledger, ")
        assert "May I publish this? Yes: this report and release.json. No: the records," in first_hour[f"{name}.html"]
    fit = json.loads((hospital / "logistic.json").read_text())["sentence"]
    assert fit.startswith("Proven: this fit is (ε = ")
    assert "draw" not in fit


def test_the_demonstration_is_in_plain_words(run):
    code, out, err = run("demo")
    assert code == 0, err
    report = plain(Path(re.search(r"Report: (\S+)", out)[1]).read_text(encoding="utf-8"))
    assert not jargon_in(out + err + report)
    assert "May I publish this? Yes: release.json and report.html." in out


def test_what_comes_from_a_seed_may_not_be_published(release):
    _, out, _ = release("ill", "proportion", seed=1, epsilon=1, report="seeded.html")
    assert "May I publish this? No: it comes from a fixed seed" in out
    assert "For a person" not in out


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


def test_no_message_of_the_program_is_in_house_jargon():
    found = [
        (f"{path.relative_to(SOURCE)}:{line}", jargon_in(text, JARGON))
        for path in SOURCE.rglob("*.py")
        for line, text in sentences_of(path)
    ]
    assert not [one for one in found if one[1]]
