"""`onedraw plan`: expected errors, smallest n and ε, a figure; from the schema alone, before any record is read."""

import json
import math
import re

import pytest

LOGISTIC = ("plan", "--schema=ill.yaml", "--target=ill", "--model=logistic", "--epsilon=2", "--rows=2000")
LINEAR = ("plan", "--schema=cost.yaml", "--target=cost", "--model=linear", "--epsilon=2", "--rows=2000")
ONE = ("--mechanism=least-squares", "--draws=1")


@pytest.fixture
def no_records(hospital):
    """There is nothing to read: only the schemas are left."""
    (hospital / "patients.csv").unlink()
    return hospital


def test_fit_is_planned_for_a_typical_and_a_worst_design(run, no_records):
    code, out, err = run(*LOGISTIC, "--json")
    assert code == 0, err
    document = json.loads(out)
    (row,) = document["eligible"]
    assert row["mechanism"] == "fit"
    typical, worst = row["designs"]
    assert (typical["design"], worst["design"]) == ("typical", "worst")
    assert row["expected_rmse"] == typical["expected_rmse"]
    assert all(design["rmse_without_privacy"] < design["expected_rmse"] for design in row["designs"])
    assert (
        worst["expected_rmse"] > 3 * typical["expected_rmse"]
    )  # columns that hardly vary and go together are far worse
    columns = [column["column"] for column in typical["columns"]]
    assert columns == ["age", "ward=b", "ward=c", "smoker=yes"]
    assert document["estimand"] == "maximum-likelihood coefficients of ill"
    code, out, _ = run(*LOGISTIC)
    assert code == 0
    assert "Estimates maximum-likelihood coefficients of ill." in out
    assert f"{typical['expected_rmse']:.4g} typical, {worst['expected_rmse']:.4g} worst" in out
    words = " ".join(out.split())
    for design in (typical, worst):
        assert design["words"] in words
        for column in design["columns"]:
            assert re.search(rf"{column['column']} .*{column['expected_error']:.3g}", out)
    assert row["intervals"] in words
    assert "classes that the columns can nearly tell apart, are beyond the worst design" in words
    assert "once a release is made its own standard errors count" in out
    assert "No record was read" in out


def test_without_a_fit_every_mechanism_is_listed_best_first_with_the_reasons_of_the_others(run, no_records):
    code, out, err = run(*LOGISTIC, "--draws=4", "--json")
    assert code == 0, err
    document = json.loads(out)
    errors = [row["expected_rmse"] for row in document["eligible"]]
    assert errors == sorted(errors)
    assert {"noisy-gradient", "gdp"} <= {row["mechanism"] for row in document["eligible"]}
    assert "accept" in document["refused"]["beta-divergence"]
    assert all(row["rmse_without_privacy"] < row["expected_rmse"] for row in document["eligible"])
    code, out, _ = run(*LOGISTIC, "--draws=4")
    assert code == 0
    assert "Not used: beta-divergence." in out
    assert "No record was read" in out
    assert document["eligible"][0]["mechanism"] in out.partition("Method:")[2][:60]


def test_a_path_of_private_decisions_is_planned_by_name_alone(run, no_records):
    code, out, err = run(*LOGISTIC, "--mechanism=barker-path", "--json")
    assert code == 0, err
    document = json.loads(out)
    (row,) = document["eligible"]
    assert row["mechanism"] == "barker-path"
    assert row["rmse_without_privacy"] < row["expected_rmse"] < 1.0
    assert "not claimed to have converged" in document["why_no_interval"]
    assert row["parameters"]["steps"] > 100
    code, out, _ = run(*LOGISTIC, "--draws=4", "--json")
    ranked = json.loads(out)
    assert "barker-path" not in {one["mechanism"] for one in ranked["eligible"]} | set(ranked["refused"])


def test_whether_there_will_be_an_interval_is_said_beforehand(run, no_records):
    least, few, many = (json.loads(run(*LINEAR, "--json", f"--rows={n}", "--epsilon=1")[1]) for n in (60, 450, 20000))
    assert least["eligible"][0]["mechanism"] == "clipped-gradients"
    assert "for prediction" in least["why_no_interval"]
    assert {few["eligible"][0]["mechanism"], many["eligible"][0]["mechanism"]} == {"fit"}
    assert "would drown in the noise" in few["why_no_interval"]
    assert not many["why_no_interval"]
    _, draws, _ = run(*LINEAR, "--mechanism=least-squares", "--draws=8", "--json")
    assert "needs 25 times" in json.loads(draws)["why_no_interval"]


@pytest.mark.parametrize("over", ["rows", "epsilon"])
def test_the_figure_of_a_fit_shows_its_range_over_designs(run, no_records, over):
    code, out, err = run(*LINEAR, "--figure=plan.svg", f"--over={over}", "--json")
    assert code == 0, err
    points = json.loads(out)["figure"]["points"]
    assert len(points) == 9
    lows, highs = (
        [point["expected_rmse"][f"fit, {which} design"] for point in points] for which in ("typical", "worst")
    )
    assert all(low < high for low, high in zip(lows, highs, strict=True))
    assert lows[-1] < lows[0]
    assert highs[-1] < highs[0]
    assert (no_records / "plan.svg").read_text().startswith("<?xml")


def test_the_smallest_n_of_a_fit_reaches_the_wanted_error(run, no_records):
    code, out, err = run(*LINEAR, "--for-error=200", "--json")
    assert code == 0, err
    found = json.loads(out)["for_error"]
    _, again, _ = run(*LINEAR, f"--rows={found['smallest_rows']}", "--json")
    assert 150 < json.loads(again)["eligible"][0]["expected_rmse"] <= 200


def test_the_prediction_is_checked_by_simulation(run, no_records):
    code, out, err = run(*LINEAR, *ONE, "--simulate=60", "--json")
    assert code == 0, err
    (row,) = json.loads(out)["eligible"]
    assert row["simulated_rmse"] == pytest.approx(row["expected_rmse"], rel=0.25)
    code, out, _ = run(*LINEAR, *ONE, "--simulate=3")
    assert code == 0
    assert "simulated" in out


def test_fit_is_checked_by_simulation_where_there_are_no_categories(run, no_records):
    (row,) = json.loads(run(*LINEAR, "--simulate=3", "--json")[1])["eligible"]
    assert row["simulated_rmse"] is None
    text = (no_records / "cost.yaml").read_text()
    (no_records / "cost.yaml").write_text("\n".join(line for line in text.splitlines() if "ward" not in line))
    code, out, err = run(*LINEAR, "--simulate=40", "--json")
    assert code == 0, err
    (row,) = json.loads(out)["eligible"]
    assert row["simulated_rmse"] == pytest.approx(row["predicted_for_simulation"], rel=0.25)


def test_errors_come_in_the_unit_of_the_target(run, no_records):
    """Counted in cents, everything is a hundred times as large, and nothing else changes."""
    text = (no_records / "cost.yaml").read_text()
    found = []
    for schema in (text, text.replace("upper: 20000, missing: 5000", "upper: 2000000, missing: 500000")):
        (no_records / "cost.yaml").write_text(schema)
        _, out, _ = run(*LINEAR, *ONE, "--json")
        found.append(json.loads(out)["eligible"][0])
    assert found[1]["expected_rmse"] == pytest.approx(100 * found[0]["expected_rmse"])
    assert found[1]["parameters"] == found[0]["parameters"]
    assert found[1]["fingerprint"] != found[0]["fingerprint"]


def test_the_smallest_n_and_epsilon_reach_the_wanted_error(run, no_records):
    code, out, err = run(*LINEAR, *ONE, "--for-error=500", "--json")
    assert code == 0, err
    found = json.loads(out)["for_error"]
    _, again, _ = run(*LINEAR, *ONE, f"--rows={found['smallest_rows']}", "--json")
    assert 400 < json.loads(again)["eligible"][0]["expected_rmse"] <= 500
    _, again, _ = run(*LINEAR, *ONE, f"--epsilon={found['smallest_epsilon']}", "--json")
    assert 400 < json.loads(again)["eligible"][0]["expected_rmse"] <= 505
    _, words, _ = run(*LINEAR, *ONE, "--for-error=500")
    assert f"n = {found['smallest_rows']:,} records" in words


def test_what_cannot_be_reached_is_said_in_words(run, no_records):
    code, out, _ = run(*LINEAR, *ONE, "--for-error=20")
    assert code == 0
    assert "the sample itself is too small" in " ".join(out.split())


def test_a_network_is_planned_where_its_assumption_is_named(run, no_records):
    code, out, err = run(*LOGISTIC, "--model=network-classifier", "--hidden=3", "--accept=assumed", "--json")
    assert code == 0, err
    (row,) = json.loads(out)["eligible"]
    assert row["mechanism"] == "beta-divergence"
    assert row["expected_rmse"] is None
    assert "unknown" in run(*LOGISTIC, "--model=network-classifier", "--hidden=3", "--accept=assumed")[1]


@pytest.mark.parametrize("over", ["rows", "epsilon"])
def test_a_figure_is_drawn(run, no_records, over):
    code, out, err = run(*LINEAR, *ONE, "--figure=plan.png", f"--over={over}", "--json")
    assert code == 0, err
    points = json.loads(out)["figure"]["points"]
    assert len(points) == 9
    errors = [point["expected_rmse"]["least-squares"] for point in points]
    assert errors == sorted(errors, reverse=True)
    assert math.isclose(points[4]["at"], 2000 if over == "rows" else 2.0)
    picture = (no_records / "plan.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def test_a_question_about_one_column_has_a_figure_and_a_simulation_too(run, no_records):
    code, out, err = run(
        "plan", "--schema=ill.yaml", "--target=ill", "--model=proportion", "--epsilon=1", "--rows=200", "--simulate=50", "--mechanism=diffused",
        "--figure=plan.svg", "--json",
    )  # fmt: skip
    assert code == 0, err
    assert all(row["simulated_rmse"] > 0 for row in json.loads(out)["eligible"])
    assert (no_records / "plan.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        (["--figure=ill.yaml"], 2, ".png, .svg or .pdf"),
        (["--figure=nowhere/plan.png"], 2, "does not exist"),
        (["--figure=old.png"], 2, "exists already"),
        (["--over=columns"], 2, "rows or epsilon"),
        (["--for-error=0"], 2, "between 1e-60 and 1e60"),
        (["--for-error=nan"], 2, "between 1e-60 and 1e60"),
        (["--model=proportion", "--for-error=1"], 2, "answered for regressions"),
        (["--rows=0"], 2, "at least 1"),
        (["--rows=-3"], 2, "at least 1"),
        (["--epsilon=-1"], 2, "ε"),
        (["--effect=0"], 2, "effect must be a positive"),
        (["--noise=1"], 2, "--noise does not belong"),
        (["--mechanism=magic"], 2, "is called 'magic'"),
        (["--target=height"], 2, "not declared"),
        (["--schema=cost.yaml", "--target=cost"], 2, "classes"),
        (["--model=network-classifier"], 3, "accept"),
        (["--model=network-classifier", "--accept=assumed", "--figure=plan.png"], 2, "cannot be predicted"),
        (["--epsilon=2", "--delta=0", "--mechanism=noisy-gradient"], 3, "noisy-gradient"),
    ],
)
def test_a_wrong_call_is_one_paragraph_and_writes_nothing(run, no_records, changes, code, words):
    (no_records / "old.png").write_text("precious")
    before = sorted(path.name for path in no_records.iterdir())
    found, out, err = run(*LOGISTIC, *changes)
    assert found == code, (out, err)
    assert words in " ".join(err.split())
    assert not out
    assert sorted(path.name for path in no_records.iterdir()) == before
    assert (no_records / "old.png").read_text() == "precious"


def test_a_plan_is_written_for_an_officer_to_sign_and_never_over_a_file(run, hospital):
    ask = ("plan", "--schema", "ill.yaml", "--target", "ill", "--model", "logistic", "--epsilon", 1, "--rows", 300)
    code, out, err = run(*ask, "--report", "plan.html")
    assert code == 0, err
    assert "Plan written to plan.html." in out
    assert "To be signed" in (hospital / "plan.html").read_text()
    code, _, err = run(*ask, "--report", "plan.html")
    assert code == 2
    assert "exists already" in err


def test_an_error_out_of_reach_is_quoted_as_it_was_asked_for(run, no_records):
    code, out, err = run(*LINEAR, "--for-error=0.001")
    assert code == 0, err
    assert "down to 0.001" in out


def test_a_pure_draw_on_a_ball_is_planned_and_one_of_too_many_tries_is_refused_with_their_number(run, no_records):
    pure = (*LOGISTIC, "--mechanism=bounded", "--delta=0")
    code, out, err = run(*pure, "--radius=0.8", "--json")
    assert code == 0, err
    assert [row["mechanism"] for row in json.loads(out)["eligible"]] == ["bounded"]
    code, out, err = run(*pure, "--radius=3")
    assert code == 3
    assert re.search(r"up to [\d,]+ tries .*1e-10", " ".join(err.split()))
