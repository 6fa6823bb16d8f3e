"""`onedraw release` for regressions: every model, units of the columns, and what is refused before anything is spent."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import onedraw as od
from onedraw.methods.interval_refusals import listed
from onedraw.release.certificate import read_certificate, rebuild_plan
from onedraw.report.results import rows_of
from tests.cli.cases import TRUTH, write_patients

QUICK = [  # (target, model, mechanism): one exact or quickly compiled mechanism for each model
    ("ill", "logistic", "candidates"),
    ("grade", "softmax", "gdp"),
    ("grade", "logistic", "gdp"),  # more than two levels: a score for each
    ("ill", "svc", "candidates"),
    ("cost", "linear", "least-squares"),
    ("cost", "huber", "gdp"),
    ("cost", "quantile", "gdp"),
    ("ill", "logistic", "noisy-gradient measured"),
    ("cost", "linear", "noisy-gradient measured"),
]


@pytest.mark.parametrize(("target", "model", "mechanism"), QUICK)
def test_every_model_is_released_reported_verified_and_predicts(run, release, hospital, target, model, mechanism):
    code, out, err = release(target, model, mechanism=mechanism, draws=1, report="report.html", json=True)
    assert code == 0, err
    document = json.loads(out)
    levels = 3 if target == "grade" else 1
    assert len(document["estimates"]) == 5 * levels
    assert "one draw" in document["why_no_interval"]
    assert mechanism in document["why"]
    page = (hospital / "report.html").read_text()
    assert "<html" in page
    assert "smoker" in page
    assert run("verify", "release.json", "--ledger", "ledger.db")[0] == 0
    code, scores, err = run("predict", "release.json", "new.csv")
    assert code == 0, err
    assert len(scores.splitlines()) == 4
    if "measured" in mechanism:
        assert run("audit", "release.json", "--effort", "quick")[0] == 0


def test_counts_are_released_reported_audited_and_predicted(run, release, hospital):
    write_patients(hospital / "patients.csv", 4000)
    code, out, err = release("visits", "poisson", epsilon=20, report="report.html")
    assert code == 0, err
    assert "std err" in out
    page = (hospital / "report.html").read_text()
    assert "Regression of counts" in page
    assert ">Rate</th>" in page
    assert run("verify", "release.json", "--ledger", "ledger.db")[0] == 0
    code, scores, err = run("predict", "release.json", "new.csv")
    assert code == 0, err
    name, *rates = scores.split()
    assert name == "visits"
    assert np.allclose(np.array(rates, dtype=float)[:2], [0.88, 3.76], rtol=0.4)
    code, out, err = run("audit", "release.json")
    assert code == 0, err
    assert "is what its plan declares" in out


def test_counts_without_what_they_need_are_refused_before_anything_is_spent(release, releases_charged):
    for target, model, words in (("visits", "negative-binomial", "dispersion=r"), ("cost", "poisson", "kind: count")):
        code, _, err = release(target, model)
        assert code == 2
        assert words in err
    assert releases_charged() == 0


@pytest.mark.slow
def test_scattered_counts_are_a_negative_binomial_s(run, release):
    code, out, err = release("visits", "negative-binomial", dispersion=2, report="report.html")
    assert code == 0, err
    assert "candidates" in out
    code, scores, _ = run("predict", "release.json", "new.csv")
    assert code == 0
    assert all(float(rate) > 0 for rate in scores.split()[1:])


@pytest.mark.slow
@pytest.mark.parametrize(("target", "model"), [("ill", "network-classifier"), ("cost", "network-regressor")])
def test_a_network_is_released_where_its_assumption_is_named(run, release, target, model):
    code, out, err = release(target, model, hidden=2, accept="assumed")
    assert code == 0, err
    assert "ASSUMED, NOT PROVEN" in out
    assert "predict" in out
    code, scores, _ = run("predict", "release.json", "new.csv", "--json")
    assert code == 0
    values = np.array(json.loads(scores)["values"])
    assert ((values >= 0) & (values <= (1 if target == "ill" else 20000))).all()


def test_a_network_without_a_named_assumption_exits_3(release, releases_charged, hospital):
    code, _, err = release("ill", "network-classifier")
    assert code == 3
    assert "accept" in err
    assert not (hospital / "release.json").exists()
    assert releases_charged() == 0


def test_coefficients_and_intercept_come_in_the_units_of_the_columns(run, release, hospital):
    """With much budget the published line is the true one: range 0 … 20000, so a forgotten centre is off by 10000."""
    write_patients(hospital / "patients.csv", 4000)
    code, out, err = release("cost", "linear", mechanism="least-squares", draws=8, epsilon=300, json=True)
    assert code == 0, err
    document = json.loads(out)
    assert document["data"]["measure"] == {"centre": 10000.0, "unit": 2500.0}
    assert not document["why_no_interval"]
    for row in document["estimates"]:
        truth, sd = TRUTH[row["name"]], np.hypot(row["sampling_error"], row["privacy_error"])
        assert abs(row["estimate"] - truth) < 6 * sd, row
        assert row["low"] < row["estimate"] < row["high"]
        assert sd < (5 if row["name"] == "age" else 300), row
    intercept = document["estimates"][-1]["estimate"]
    assert intercept != pytest.approx(document["draw"]["values"][0][-1], rel=0.5)
    certificate = read_certificate("release.json")
    rows = rows_of(certificate, rebuild_plan(certificate), None)  # as the report shows them
    assert [row.value for row in rows] == pytest.approx([row["estimate"] for row in document["estimates"]])
    _, scores, _ = run("predict", "release.json", "new.csv", "--json")
    assert np.allclose(json.loads(scores)["values"], [[2200.0], [9400.0], [4000.0]], atol=500)


def test_a_fit_is_the_default_and_shows_standard_errors_and_tests(run, release, hospital):
    write_patients(hospital / "patients.csv", 4000)
    code, out, err = release("cost", "linear", epsilon=3, json=True)
    assert code == 0, err
    document = json.loads(out)
    assert document["mechanism"]["name"] == "AveragedSteps"
    assert not document["why_no_interval"]
    for row in document["estimates"]:
        assert abs(row["estimate"] - TRUTH[row["name"]]) < 6 * row["std_err"], row
        assert row["std_err"] == pytest.approx(np.hypot(row["sampling_error"], row["privacy_error"]))
        assert row["low"] <= row["estimate"] - 1.95 * row["std_err"]
        assert row["p_value"] < 0.05, row  # every effect is far from 0
    _, scores, _ = run("predict", "release.json", "new.csv", "--json")
    assert np.allclose(json.loads(scores)["values"], [[2200.0], [9400.0], [4000.0]], atol=500)
    code, out, err = release("cost", "linear", epsilon=3, out="again.json", report="again.html")
    assert code == 0, err
    assert re.search(r"parameter.*released.*95 % interval.*std err.*p", out)
    assert "< 0.001" in out
    assert "xpected error" not in out  # the plan's figure describes no release that was made
    assert "xpected error" not in (hospital / "again.html").read_text()


def test_a_category_is_tested_as_a_whole_in_output_report_and_summary(release, hospital):
    write_patients(hospital / "patients.csv", 4000)
    code, out, err = release("cost", "linear", epsilon=5, report="report.html")
    assert code == 0, err
    assert "ward, all 3 levels together: χ² = " in out
    assert "on 2 degrees of freedom, p < 0.001" in out
    page = (hospital / "report.html").read_text()
    assert "Categories as a whole" in page
    found = od.Release.load(hospital / "release.json")
    summary = found.summary()
    assert [(row.term, row.degrees) for row in summary.joint] == [("ward", 2)]
    assert summary.joint[0].statistic == pytest.approx(found.fit.wald([1, 2])[0])
    assert [row.term for row in summary] == [*list(TRUTH)]
    assert str(summary.joint[0]) in str(summary)
    assert np.allclose([[row.low, row.high] for row in summary], found.conf_int())
    code, _, err = release("cost", "linear", mechanism="gdp huber", robust=True, out="other.json")
    assert code == 2
    assert "robust=True is about the standard errors of a fit" in err


def test_a_category_with_a_refused_level_has_no_test(release, hospital):
    write_patients(hospital / "patients.csv", 4000, rare=0.0)
    code, out, err = release("cost", "linear", epsilon=20, json=True, seed=1)
    assert code == 0, err
    assert json.loads(out)["categories"] == [
        {"term": "ward", "label": "", "statistic": None, "degrees": 2, "p_value": None}
    ]


def test_a_fit_without_standard_errors_says_so_and_what_was_expected(release):
    code, out, err = release("cost", "linear", epsilon=1, mechanism="perturbed-mode")
    assert code == 0, err
    assert "No interval: standard errors would drown in the noise at this n and ε" in out
    assert re.search(r"from about [\d,]+ records on at this ε, or at about [\d.]+ times this ε", " ".join(out.split()))
    assert "std err" not in out
    assert "Predicted before any record was read" in out


def test_refused_coefficients_are_named_in_a_plain_sentence(release, hospital):
    """One in three thousand is on ward c: too few to say much about it."""
    write_patients(hospital / "patients.csv", 12000)
    lines = (hospital / "patients.csv").read_text().splitlines()
    rare = [line if index % 1000 == 0 else line.replace(",c,", ",a,") for index, line in enumerate(lines)]
    (hospital / "patients.csv").write_text("\n".join(rare) + "\n")
    code, out, err = release("ill", "logistic", epsilon=1, report="report.html", seed=1)
    assert code == 0, err
    refused = [name for name in TRUTH if re.search(rf"{name} +│[^│]+│ – ", out)]
    assert "ward=c" in refused, out
    assert "smoker=yes" not in refused
    sentence = f"No interval: {listed(refused)}: "
    for page in (out, (hospital / "report.html").read_text()):
        assert sentence in page
        assert (
            "hardly any records have such a level by the published noisy moments, so it is counted with the base"
            in page
        )
        assert "Merge rare levels with those that they are most like, or use " in page
    assert re.search(r"ward=c +│ +0 +│ – +│ – +│ –", out), "it is counted with the first level"
    assert "rare levels counted with the base level" in out


def test_several_draws_of_a_named_mechanism_give_intervals_from_their_spread(release):
    code, out, err = release("cost", "linear", mechanism="least-squares", draws=4, epsilon=200)
    assert code == 0, err
    assert "95 % interval" in out
    assert " to " in out
    assert "std err" not in out


def test_the_reason_is_printed_where_they_do_not(release):
    code, out, _ = release("cost", "linear", mechanism="least-squares", draws=8, epsilon=1)
    assert code == 0
    assert "No interval: the records weigh only" in out


def test_csv_and_parquet_give_the_same_release(release, hospital):
    pyarrow.parquet.write_table(pa.csv.read_csv(hospital / "patients.csv"), hospital / "patients.parquet")
    draws = []
    for source in ("patients.csv", "patients.parquet"):
        code, out, err = release("cost", "linear", mechanism="least-squares", seed=7, source=source, out=f"{source}.json", json=True)  # fmt: skip
        assert code == 0, err
        draws.append(json.loads(out)["draw"]["values"])
    assert draws[0] == draws[1]


def test_an_unreadable_record_counts_as_the_declared_missing_one(release, hospital):
    """An undeclared class, NaN and inf are mapped by the declared rule: the same draw as if it had been written so."""
    lines = (hospital / "patients.csv").read_text().splitlines()
    draws = []
    for changed in ("purple,high,nan,inf,z,?", "no,high,5000,50,a,no"):
        (hospital / "patients.csv").write_text("\n".join([*lines[:-1], changed]) + "\n")
        for target, model, mechanism in (("cost", "linear", "least-squares"), ("ill", "logistic", "candidates")):
            code, out, err = release(target, model, mechanism=mechanism, seed=3, draws=1, out=f"{len(draws)}.json", json=True)  # fmt: skip
            assert code == 0, err
            draws.append(json.loads(out)["draw"]["values"])
    assert draws[:2] == draws[2:]


def test_a_constant_feature_changes_nothing_visible(release, hospital):
    lines = (hospital / "patients.csv").read_text().splitlines()
    constant = [re.sub(r",[abc],", ",a,", line) for line in lines[1:]]
    (hospital / "patients.csv").write_text("\n".join([lines[0], *constant]) + "\n")
    code, out, err = release("cost", "linear", mechanism="least-squares", json=True)
    assert code == 0, err
    assert [row["name"] for row in json.loads(out)["estimates"]] == list(TRUTH)


def test_fewer_records_than_parameters_work_with_a_warning(release, hospital):
    lines = (hospital / "patients.csv").read_text().splitlines()
    (hospital / "patients.csv").write_text("\n".join(lines[:4]) + "\n")
    code, _, err = release("cost", "linear", mechanism="least-squares")
    assert code == 0
    assert "n = 3 records for 5 parameters" in err


def test_pure_budgets_are_kept_too(release):
    code, out, err = release("cost", "linear", delta=0, mechanism="least-squares")
    assert code == 0, err
    assert "δ" not in out.split(")-differentially")[0]


@pytest.mark.parametrize(
    ("target", "model", "options", "words"),
    [
        ("cost", "logistic", {}, "classes"),
        ("cost", "svc", {}, "classes"),
        ("grade", "svc", {}, "two classes"),
        ("ill", "linear", {}, "explains a number"),
        ("ill", "cubic", {}, "Choose one of"),
        ("ill", "logistic", {"mechanism": "magic"}, "No mechanism for a logistic regression is called 'magic'"),
        ("ill", "logistic", {"prior": "1,1"}, "--prior-scale"),
        ("ill", "logistic", {"threshold": "1"}, "--threshold does not belong"),
        ("ill", "proportion", {"radius": "1"}, "--radius"),
        ("ill", "logistic", {"draws": "0"}, "--draws takes auto"),
        ("ill", "logistic", {"draws": "many"}, "--draws takes auto"),
        ("ill", "logistic", {"accept": "anything"}, "accept takes"),
        ("ill", "logistic", {"epsilon": "0"}, "ε"),
        ("ill", "logistic", {"epsilon": "nan"}, "ε"),
        ("ill", "logistic", {"delta": "1"}, "δ"),
        ("ill", "logistic", {"prior_scale": "-1"}, "prior_scale"),
        ("ill", "logistic", {"prior_scale": "inf"}, "prior_scale"),
        ("ill", "logistic", {"rows": "7", "mechanism": "gdp", "draws": "1"}, "n = 7 records, the data have 300"),
        ("ill", "logistic", {"rows": "0"}, "at least 1"),
        ("ill", "logistic", {"dataset": "unknown", "mechanism": "gdp", "draws": "1"}, "unknown"),
        ("ill", "logistic", {"ledger": "missing.db"}, "missing.db"),
        ("ill", "logistic", {"source": "nowhere.csv"}, "expected a file, found none"),
        ("ill", "logistic", {"source": "ill.yaml"}, "expected a name ending in"),
        ("ill", "logistic", {"schema": "nowhere.yaml"}, "nowhere.yaml"),
        ("ill", "logistic", {"schema": "cost.yaml"}, "not declared in the schema"),
        ("ill", "logistic", {"report": "nowhere/report.html"}, "does not exist"),
        ("ill", "logistic", {"report": "/proc/report.html"}, "cannot be written"),
        ("ill", "logistic", {"report": "new.csv"}, "exists already"),
        ("ill", "logistic", {"report": "release.json"}, "--out and --report"),
        ("ill", "logistic", {"out": "new.csv"}, "exists already"),
        ("cost", "linear", {"response_bound": "9,1"}, "the lower first"),
        ("cost", "linear", {"response_bound": "a"}, "--response-bound takes numbers"),
        ("cost", "linear", {"response_bound": "1,2,3"}, "LOW,HIGH"),
        ("cost", "linear", {"variance_floor": "0"}, "variance_floor"),
        ("cost", "quantile", {"quantile": "1.5"}, "level"),
    ],
)  # fmt: skip
def test_a_wrong_call_exits_2_writes_nothing_and_spends_nothing(release, releases_charged, hospital, target, model, options, words):  # fmt: skip
    before = {path.name: path.read_bytes() for path in hospital.iterdir() if path.is_file()}
    code, out, err = release(target, model, **options)
    assert code == 2, (out, err)
    assert words in re.sub(r"\s+", " ", err)
    assert "Traceback" not in err
    assert {path.name: path.read_bytes() for path in hospital.iterdir() if path.is_file()} == before
    assert releases_charged() == 0


def test_undeclared_classes_are_noticed_before_the_file_is_opened(release):
    """The file does not even exist: the schema alone is enough to refuse."""
    code, _, err = release("cost", "logistic", source="nowhere.csv")
    assert code == 2
    assert "never read from the records" in re.sub(r"\s+", " ", err)


def test_a_spent_budget_exits_4_and_writes_neither_release_nor_report(run, release, hospital):
    run("ledger", "init", "small.db", "--dataset", "p", "--epsilon", 0.5, "--delta", 1e-5)
    code, _, err = release("cost", "linear", mechanism="least-squares", ledger="small.db", report="report.html")
    assert code == 4
    assert "does not cover this release" in err
    assert not (hospital / "release.json").exists()
    assert not (hospital / "report.html").exists()


def test_a_schema_of_the_target_alone_has_nothing_to_explain_it_by(release, hospital):
    (hospital / "ill.yaml").write_text("columns:\n  ill: {kind: binary, missing: no}\n")
    code, _, err = release("ill", "logistic")
    assert code == 2
    assert "nothing to explain it by" in re.sub(r"\s+", " ", err)


def test_the_certificate_carries_the_schema_and_an_edit_of_it_is_caught(run, release, hospital):
    assert release("cost", "linear", mechanism="least-squares")[0] == 0
    path = Path("release.json")
    original = json.loads(path.read_text())
    assert list(original["data"]["declared"]["columns"]) == ["cost", "age", "ward", "smoker"]
    for edit in (
        lambda data: data["declared"]["columns"]["age"].update(upper=50),
        lambda data: data["declared"].update(columns={}),
        lambda data: data["measure"].update(centre=0.0),
        lambda data: data.pop("measure"),
    ):
        changed = json.loads(json.dumps(original))
        edit(changed["data"])
        path.write_text(json.dumps(changed))
        for command in (["verify", "release.json"], ["predict", "release.json", "new.csv"]):
            code, out, err = run(*command)
            assert code == 3, (command, out)
            assert "does not hold" in err


def test_an_estimand_is_asked_for_by_name_and_named_in_output_and_report(run, release, hospital, releases_charged):
    write_patients(hospital / "patients.csv", 4000)
    asked = ("--schema=cost.yaml", "--target=cost", "--model=linear", "--epsilon=5", "--estimand=robust")
    code, out, err = run("plan", *asked, "--rows=4000", "--json")
    assert code == 0, err
    planned = json.loads(out)
    assert planned["estimand"] == "coefficients of a robust line for cost"
    code, out, err = run("plan", *asked, "--rows=4000")
    words = " ".join(out.split())
    assert f"Estimates {planned['estimand']}. {planned['estimand_note']}" in words
    code, out, err = release("cost", "linear", estimand="robust", report="report.html")
    assert code == 0, err
    assert "oefficients of a robust line for cost, in the units of the columns" in out
    assert "Rows and residuals far out count less" in " ".join(out.split())
    assert "oefficients of a robust line for cost." in (hospital / "report.html").read_text()
    assert json.loads((hospital / "release.json").read_text())["fingerprint"] == planned["fingerprint"]
    code, out, err = release("cost", "linear", estimand="least-squares", out="least.json", json=True)
    assert code == 0, err
    assert json.loads(out)["estimand"].startswith("least-squares coefficients of cost")
    charged = releases_charged()
    code, _, err = release("cost", "linear", estimand="least-squares", delta=0, out="pure.json")
    assert code == 3
    assert 'Pass a δ above 0, or estimand="robust"' in " ".join(err.split())
    code, _, err = release("ill", "logistic", estimand="least-squares", out="ill.json")
    assert code == 2
    assert "Choose 'maximum-likelihood' or 'robust'" in " ".join(err.split())
    code, _, err = release("ill", "svc", estimand="robust", out="svc.json")
    assert code == 2
    assert "--estimand does not belong to a svc regression" in " ".join(err.split())
    assert releases_charged() == charged
