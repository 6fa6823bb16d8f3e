"""Medians, quantiles and evaluations on the command line: plan, release, verify, audit, report."""

import json
import subprocess
import sys

import pytest


def test_a_median_is_planned_released_verified_audited_and_reported(run, release, hospital):
    code, out, _ = run("plan", "--schema=cost.yaml", "--target=cost", "--model=median", "--epsilon=5", "--rows=300")
    assert code == 0
    assert "shares of the records" in out
    code, out, _ = release("cost", "median", report="report.html")
    assert code == 0
    assert "95 % interval" in out
    assert run("verify", "release.json", "--ledger=ledger.db")[0] == 0
    assert "median" in (hospital / "report.html").read_text()
    code, out, _ = run("audit", "release.json", "--effort=demo")
    assert code == 0


def test_quartiles_make_a_box_plot(release, hospital):
    code, out, _ = release(
        "cost", "quantile", quantiles="0.1,0.25,0.5,0.75,0.9", no_interval=True, report="report.html"
    )
    assert code == 0
    assert "No interval" in out
    page = (hospital / "report.html").read_text()
    assert "box plot" in page
    assert "Inter-quartile range" in page
    assert "Inter-quartile range" in out
    values = json.loads((hospital / "release.json").read_text())["draw"]["values"][0]
    assert values == sorted(values)


def test_counts_have_whole_quantiles_and_an_inter_quartile_range(release, hospital):
    code, out, _ = release("visits", "quantiles", report="report.html")
    assert code == 0
    assert "an interval of 90 %" in " ".join(out.split())
    assert "an interval of 90 %" in (hospital / "report.html").read_text()
    values = json.loads((hospital / "release.json").read_text())["draw"]["values"][0]
    assert all(value == int(value) for value in values)


@pytest.mark.parametrize(
    ("target", "model", "options", "words"),
    [
        ("ill", "median", {}, "needs a number or count column"),
        ("cost", "mean", {"quantiles": "0.5"}, "does not belong to a mean"),
        ("cost", "quantiles", {"quantiles": "0.5,x"}, "numbers separated by commas"),
        ("cost", "quantiles", {"quantiles": "0,1"}, "strictly between"),
        ("cost", "median", {"quantiles": "0.9"}, "ask for quantiles"),
        ("cost", "median", {"mechanism": "direct"}, "No mechanism is called"),
    ],
)
def test_what_is_no_quantile_is_refused_and_costs_nothing(release, releases_charged, target, model, options, words):
    code, _, err = release(target, model, **options)
    assert code == 2
    assert words in " ".join(err.split())
    assert releases_charged() == 0


def test_a_released_model_is_evaluated_on_held_out_records(run, release, hospital):
    assert release("ill", "logistic")[0] == 0
    code, out, _ = run(
        "evaluate",
        "release.json",
        "patients.csv",
        "--epsilon=2",
        "--ledger=ledger.db",
        "--out=evaluation.json",
        "--report=evaluation.html",
    )
    assert code == 0
    assert "AUC" in out
    assert "predicted yes" in out
    assert run("verify", "evaluation.json", "--ledger=ledger.db")[0] == 0
    assert "roc-title" in (hospital / "evaluation.html").read_text()
    assert run("audit", "evaluation.json", "--effort=demo")[0] == 0
    code, out, _ = run(
        "evaluate", "release.json", "patients.csv", "--epsilon=2", "--ledger=ledger.db", "--out=second.json", "--json"
    )
    assert json.loads(out)["scores"]["figures"]["AUC"]["low"] < 1.0


def test_what_cannot_be_evaluated_is_refused_and_costs_nothing(run, release, releases_charged):
    assert release("cost", "median")[0] == 0
    code, _, err = run(
        "evaluate", "release.json", "patients.csv", "--epsilon=2", "--ledger=ledger.db", "--out=evaluation.json"
    )
    assert code == 2
    assert "predicts nothing" in err
    assert releases_charged() == 1


def test_a_median_needs_no_jax(hospital):
    program = (
        "import sys; from onedraw.cli import main\n"
        "sys.argv = 'onedraw release patients.csv --schema cost.yaml --target cost --model median --epsilon 1 --ledger ledger.db --out m.json'.split()\n"
        "main(); assert not {'jax', 'sklearn', 'matplotlib'} & set(sys.modules), 'loaded'"
    )
    subprocess.run([sys.executable, "-c", program], cwd=hospital, check=True, capture_output=True)
