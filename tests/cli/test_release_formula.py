"""`--formula` and `--columns` on the command line: plan, release, verify and predict by one formula."""

import json

import pytest

from tests.cli.cases import write_patients

FORMULA = "log(1 + cost) ~ age*smoker + C(ward, Treatment('b'))"


def test_a_formula_is_planned_released_verified_and_predicts(run, hospital):
    write_patients(hospital / "patients.csv", 4000)
    asked = ("--schema=cost.yaml", "--model=linear", f"--formula={FORMULA}", "--epsilon=4")
    code, out, err = run("plan", *asked, "--rows=4000", "--json", "--report=plan.html")
    assert code == 0, err
    planned = json.loads(out)
    assert planned["target"] == "log(1 + cost)"
    assert planned["formula"] == "log(1 + cost) ~ 1 + age + smoker + C(ward, Treatment('b')) + age:smoker"
    assert "age:smoker" in (hospital / "plan.html").read_text()
    code, out, err = run(
        "release", "patients.csv", *asked, "--ledger=ledger.db", "--out=release.json", "--report=report.html"
    )
    assert code == 0, err
    for words in ("C(ward, Treatment('b'))[T.a]", "age:smoker[T.yes]", "Formula: log(1 + cost) ~ 1 + age"):
        assert words in out
    certificate = json.loads((hospital / "release.json").read_text())
    assert certificate["fingerprint"] == planned["fingerprint"]
    assert "age:smoker[T.yes]" in (hospital / "report.html").read_text()
    assert run("verify", "release.json", "--ledger", "ledger.db")[0] == 0
    code, scores, err = run("predict", "release.json", "new.csv")  # which has no cost
    assert code == 0, err
    assert scores.splitlines()[0].startswith("log(1 + cost)")
    assert len(scores.splitlines()) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--formula=cost ~ scale(age)"], "learns from the records"),
        (["--formula=cost ~ __import__('os').getcwd()"], "cannot be read"),
        (["--formula=log(cost) ~ age"], "Write log(1 + cost)"),
        (["--formula=cost ~ age", "--target=age"], "Leave --target out"),
        (["--formula=cost ~ age", "--columns=age"], "Leave one of them out"),
        (["--columns=agee", "--target=cost"], "perhaps 'age'"),
    ],
)
def test_what_is_refused_charges_nothing(run, hospital, releases_charged, options, words):
    (hospital / "patients.csv").unlink()  # no record can have been read
    code, _, err = run(
        "release", "patients.csv", "--schema=cost.yaml", "--model=linear", *options, "--epsilon=1", "--ledger=ledger.db", "--out=release.json"
    )  # fmt: skip
    assert code == 2
    assert words in " ".join(err.split())
    assert releases_charged() == 0


def test_columns_are_chosen(release):
    code, out, err = release("cost", "linear", columns="ward,age", json=True)
    assert code == 0, err
    assert [row["term"] if "term" in row else row["name"] for row in json.loads(out)["estimates"]] == [
        "ward=b",
        "ward=c",
        "age",
        "intercept",
    ]
