"""The fingerprint that `onedraw plan` prints is the one that `onedraw release` charges (release/fingerprint.py)."""

import json

import pytest

QUESTIONS = {
    "groups": ["--target=ill", "--model=count", "--by=ward"],
    "covariance": ["--model=covariance", "--columns=age,cost"],
    "median": ["--target=age", "--model=median"],
}


@pytest.fixture
def printed(run, hospital):
    """The fingerprint of a plan and that of its release, with options."""
    ill, cost = (hospital / f"{name}.yaml" for name in ("ill", "cost"))
    declared = next(line for line in cost.read_text().splitlines() if line.strip().startswith("cost"))
    ill.write_text(f"{ill.read_text()}{declared}\n")

    def fingerprints(*words, dataset=None):
        asked = [*words, "--schema=ill.yaml", "--epsilon=1", *([f"--dataset={dataset}"] if dataset else [])]
        plan = json.loads(run("plan", *asked, "--rows=300", "--json")[1])["fingerprint"]
        places = ["--ledger=ledger.db", "--out=release.json", "--purpose=annual report", "--requested-by=registry"]
        code, out, _ = run("release", "patients.csv", *asked, *places, "--json")
        assert code == 0
        (hospital / "release.json").unlink()
        return plan, json.loads(out)["fingerprint"]

    return fingerprints


@pytest.mark.parametrize("question", QUESTIONS)
def test_plan_and_release_print_the_same_fingerprint(run, printed, question):
    plan, release = printed(*QUESTIONS[question])
    assert plan == release
    events = json.loads(run("ledger", "show", "ledger.db", "--json")[1])["datasets"]["p"]["events"]
    reserved = next(event for event in events if event["kind"] == "reserved")
    assert reserved["payload"]["fingerprint"] == release
    assert "for annual report; by registry" in reserved["what"]


def test_plan_and_release_name_another_data_set_by_option(run, printed):
    run("ledger", "init", "ledger.db", "--dataset", "q", "--epsilon", 10, "--delta", 1e-3)
    plain, named = printed(*QUESTIONS["groups"]), printed(*QUESTIONS["groups"], dataset="q")
    assert plain[0] == plain[1] != named[0] == named[1]


def test_plan_without_a_data_set_says_what_its_fingerprint_lacks(run, hospital):
    schema = hospital / "ill.yaml"
    asked = ["plan", "--schema=ill.yaml", "--epsilon=1", "--rows=300", *QUESTIONS["groups"]]
    printed, plan = run(*asked)[1], json.loads(run(*asked, "--json")[1])
    assert plan["fingerprint"] in printed
    assert "It names no data set" not in printed
    schema.write_text(schema.read_text().replace("dataset: p\n", ""))
    assert "It names no data set: pass --dataset" in run(*asked)[1]


def test_top_up_keeps_who_decided_and_why(run, hospital):
    words = ["--dataset=p", "--epsilon=2000", "--delta=1e-3", "--by=privacy officer", "--note=agreed by the board"]
    assert run("ledger", "top-up", "ledger.db", *words)[0] == 0
    assert "by privacy officer; note: agreed by the board" in run("ledger", "show", "ledger.db")[1]
    code, _, err = run("ledger", "top-up", "ledger.db", *words[:3], "--note=agreed\u200b")
    assert (code, "printable" in err) == (2, True)
