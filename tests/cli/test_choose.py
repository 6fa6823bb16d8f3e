"""`onedraw choose`: the winner's name for one charge, and what is no choice costs nothing."""

import json

import pytest


@pytest.fixture
def settings(release):
    """Two fits of one question, released: one at a large ε, one so private that it is noise."""
    assert release("ill", "logistic", epsilon=20, out="good.json", seed=1)[0] == 0
    assert release("ill", "logistic", epsilon=0.05, out="poor.json", seed=1)[0] == 0
    return "good.json", "poor.json"


def test_the_better_of_two_releases_is_chosen_for_one_charge_and_can_be_verified(run, settings, releases_charged):
    code, out, _ = run("choose", *settings, "patients.csv", "--epsilon=4", "--ledger=ledger.db", "--out=choice.json")
    assert code == 0
    assert "Chosen among 2: good.json" in " ".join(out.split())
    assert releases_charged() == 3
    assert run("verify", "choice.json", "--ledger=ledger.db")[0] == 0
    assert run("audit", "choice.json", "--effort=demo")[0] == 0
    code, out, _ = run(
        "choose", *settings, "patients.csv", "--epsilon=4", "--ledger=ledger.db", "--out=again.json", "--json"
    )
    assert json.loads(out)["chosen"] in settings


@pytest.mark.parametrize(
    ("files", "words"),
    [(("good.json", "good.json"), "two or more different"), (("good.json",), "two or more different"), (("good.json", "cost.json"), "different questions")],
)  # fmt: skip
def test_what_is_no_choice_is_refused_and_costs_nothing(run, release, releases_charged, settings, files, words):
    assert release("cost", "mean", out="cost.json")[0] == 0
    before = releases_charged()
    code, _, err = run("choose", *files, "patients.csv", "--epsilon=1", "--ledger=ledger.db", "--out=choice.json")
    assert code == 2
    assert words in " ".join(err.split())
    assert releases_charged() == before
