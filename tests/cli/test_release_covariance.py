"""`onedraw plan` and `release --model covariance`: which columns go together, end to end, and what is refused."""

import json

import pytest

from tests.cli.cases import write_patients

SCHEMA = ("--schema", "cost.yaml", "--model", "covariance", "--epsilon", 2)
LEDGER = ("--ledger", "ledger.db", "--out", "release.json")


def test_a_covariance_is_planned_released_reported_verified_and_audited(run, hospital):
    write_patients(hospital / "patients.csv", 4000)
    code, out, err = run("plan", *SCHEMA, "--rows", 4000)
    assert code == 0, err
    assert "covariance of cost, age" in out
    assert "of a correlation" in out
    code, out, err = run(
        "release", "patients.csv", *SCHEMA, *LEDGER, "--columns", "cost,age,ward", "--report", "r.html"
    )
    assert code == 0, err
    assert "correlation of age and cost" in out
    assert "std err" in out
    page = (hospital / "r.html").read_text()
    assert "Means and correlations" in page
    assert "deviation of cost" in page
    assert "The correlation matrix that was released" in page
    assert "heat map" in page
    assert run("verify", "release.json", "--ledger", "ledger.db")[0] == 0
    code, out, err = run("audit", "release.json")
    assert code == 0, err
    assert "every stage" in out
    assert "4 columns" not in run("ledger", "show", "ledger.db")[1]
    assert "covariance of 3 columns" in run("ledger", "show", "ledger.db")[1]


def test_all_numbers_and_counts_are_taken_and_everything_is_in_the_json(run, hospital):
    code, out, err = run("release", "patients.csv", *SCHEMA, *LEDGER, "--json", "--delta", 0)
    assert code == 0, err
    document = json.loads(out)
    assert [row["name"] for row in document["estimates"]] == [
        "mean of cost", "mean of age", "deviation of cost", "deviation of age", "correlation of age and cost",
    ]  # fmt: skip
    assert document["promise"]["delta"] == 0.0
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in document["estimates"][:4])
    assert set(document["draw"]["stages"]) == {"mean", "squares", "moments", "fourth"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "age"), "several columns"),
        (("--columns", "age,age"), "twice"),
        (("--columns", "size"), "size"),
        (("--columns", "ward,"), "''"),
        (("--prior", "1,1"), "--prior does not belong to a covariance"),
        (("--radius", "3"), "--radius does not belong to a covariance"),
        (("--draws", "4"), "published once"),
        (("--mechanism", "gibbs"), "one mechanism"),
    ],
)
def test_what_does_nothing_is_refused_before_anything_is_spent(run, hospital, options, words):
    code, _out, err = run("release", "patients.csv", *SCHEMA, *LEDGER, *options)
    assert code == 2
    assert words in err
    assert not (hospital / "release.json").exists()


def test_other_models_need_a_target_and_statistics_take_no_columns(run, hospital):
    schema = ("--schema", "cost.yaml", "--epsilon", 2, "--rows", 300)
    assert "Pass --target" in run("plan", *schema, "--model", "linear")[2]
    refused = run("plan", *schema, "--model", "mean", "--target", "cost", "--columns", "age")[2]
    assert "--columns does not belong to a mean" in refused


def test_a_person_with_several_records_costs_so_many_times_the_noise(run, hospital):
    (hospital / "persons.yaml").write_text(
        "dataset: q\nperson: id\nmax_records: 3\ncolumns:\n  age: {kind: number, lower: 0, upper: 100, missing: 50}\n"
    )
    lines = (hospital / "patients.csv").read_text().splitlines()
    rows = [f"{line},{index // 3}" for index, line in enumerate(lines[1:])]
    (hospital / "persons.csv").write_text("\n".join([f"{lines[0]},id", *rows]) + "\n")
    run("ledger", "init", "ledger.db", "--dataset", "q", "--epsilon", 10, "--max-records", 3)
    code, out, err = run(
        "release", "persons.csv", "--schema", "persons.yaml", "--model", "covariance", "--epsilon", 2, *LEDGER, "--json"
    )
    assert code == 0, err
    document = json.loads(out)
    assert "up to 3 records" in document["sentence"]
    assert document["mechanism"]["parameters"]["sums_noise"] == pytest.approx(3 * 2 / (2 * 0.75), rel=1e-6)
