"""`onedraw predict`: the published model on new records, read as the private ones were; nothing private is touched."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import onedraw as od
from onedraw.data import Measure
from tests.cli.cases import write_patients

ROWS = np.array([[20, 0, 0, 0], [80, 1, 0, 1], [50, 0, 0, 0]], dtype=float)
"""age, ward=b, ward=c, smoker of new.csv: the third has no age and an undeclared ward."""


def estimates(release_output):
    return np.array([row["estimate"] for row in json.loads(release_output)["estimates"]])


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_probabilities_are_those_of_the_published_coefficients(run, release):
    _, out, _ = release("ill", "logistic", mechanism="candidates", draws=1, json=True)
    coefficients = estimates(out)
    code, scores, err = run("predict", "release.json", "new.csv")
    assert code == 0, err
    found = table(scores)
    expected = expit(ROWS @ coefficients[:4] + coefficients[4])
    assert [float(row["P(yes)"]) for row in found] == pytest.approx(expected, rel=1e-4)
    assert [row["class"] for row in found] == ["yes" if value > 0.5 else "no" for value in expected]


def test_values_come_in_the_units_of_the_target(run, release):
    _, out, _ = release("cost", "linear", mechanism="least-squares", draws=4, json=True)
    coefficients = estimates(out)
    code, scores, _ = run("predict", "release.json", "new.csv", "--json")
    assert code == 0
    document = json.loads(scores)
    assert document["columns"] == ["cost"]
    assert np.ravel(document["values"]) == pytest.approx(ROWS @ coefficients[:4] + coefficients[4], rel=1e-9)


def test_a_score_for_each_class(run, release):
    release("grade", "softmax", mechanism="gdp", draws=1)
    code, scores, _ = run("predict", "release.json", "new.csv", "--json")
    assert code == 0
    document = json.loads(scores)
    assert document["classes"] == ["low", "mid", "high"]
    values = np.array(document["values"])
    assert values.sum(axis=1) == pytest.approx(np.ones(3))
    assert document["labels"] == [document["classes"][code] for code in values.argmax(axis=1)]


def test_intervals_stand_beside_the_predictions_and_are_empty_where_refused(run, release, hospital):
    write_patients(hospital / "patients.csv", 4000, rare=0.0)
    code, _, err = release("cost", "linear", epsilon=20, seed=1)
    assert code == 0, err
    (hospital / "rare.csv").write_text("smoker,age,ward\nno,20,a\nyes,80,b\nno,50,c\n")
    code, out, err = run("predict", "release.json", "rare.csv", "--interval", "0.9")
    assert code == 0, err
    head, *lines = [line.split(",") for line in out.splitlines()]
    assert head == ["cost", "cost low", "cost high"]
    for mean, low, high in lines[:2]:
        assert float(low) < float(mean) < float(high) < float(low) + 500
    assert lines[2][1:] == ["", ""]
    assert "No interval for 1 of 3 rows" in err
    assert "'ward=c'" in err
    document = json.loads(run("predict", "release.json", "rare.csv", "--interval", "0.9", "--json")[1])
    assert document["low"][2] == [None]
    assert document["level"] == 0.9
    release("ill", "logistic", mechanism="gdp", draws=1, out="draw.json")
    code, _, err = run("predict", "draw.json", "rare.csv", "--interval", "0.9")
    assert code == 3
    assert "gives no interval of a prediction" in err


def test_new_records_outside_the_declared_range_are_clamped_like_the_private_ones(run, release, hospital):
    release("cost", "linear", mechanism="least-squares", draws=1)
    (hospital / "far.csv").write_text("age,ward,smoker\n1e9,a,no\n100,a,no\n-5,a,no\n0,a,no\n")
    code, scores, _ = run("predict", "release.json", "far.csv")
    assert code == 0
    first, second, third, fourth = scores.splitlines()[1:]
    assert (first, third) == (second, fourth)


def test_scores_are_written_whole_and_never_over_a_file(run, release, hospital):
    release("cost", "linear", mechanism="least-squares", draws=1)
    code, out, _ = run("predict", "release.json", "new.csv", "--out", "scores.csv")
    assert code == 0
    assert "3 records scored" in out
    written = (hospital / "scores.csv").read_text()
    assert written == run("predict", "release.json", "new.csv")[1]
    code, _, err = run("predict", "release.json", "new.csv", "--out", "scores.csv")
    assert code == 2
    assert "exists already" in err
    assert (hospital / "scores.csv").read_text() == written
    assert run("predict", "release.json", "new.csv", "--out", "nowhere/scores.csv")[0] == 2


def test_a_file_with_a_header_alone_has_no_scores(run, release, hospital):
    release("ill", "svc", mechanism="candidates", draws=1)
    (hospital / "new.csv").write_text("age,ward,smoker\n")
    code, out, _ = run("predict", "release.json", "new.csv")
    assert (code, out) == (0, "class,margin\n")


def test_ledger_and_private_file_are_not_needed(run, release, hospital):
    release("cost", "linear", mechanism="least-squares", draws=1)
    before = run("predict", "release.json", "new.csv")[1]
    for name in ("patients.csv", "ledger.db", "cost.yaml"):
        (hospital / name).unlink()
    assert run("predict", "release.json", "new.csv")[1] == before


def test_a_release_of_one_column_predicts_nothing(run, release):
    release("ill", "proportion")
    code, _, err = run("predict", "release.json", "new.csv")
    assert code == 2
    assert "predicts nothing about a new record" in " ".join(err.split())


def test_the_schema_is_checked_against_the_certificate(run, release):
    release("cost", "linear", mechanism="least-squares", draws=1)
    plain = run("predict", "release.json", "new.csv")[1]
    assert run("predict", "release.json", "new.csv", "--schema", "cost.yaml")[1] == plain
    code, _, err = run("predict", "release.json", "new.csv", "--schema", "ill.yaml")
    assert code == 2
    assert "not the schema of the release" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere.json", "new.csv"], 2, "could not be read"),
        (["release.json", "nowhere.csv"], 2, "expected a file, found none"),
        (["release.json", "other.csv"], 2, "lacks 'ward'"),
        (["new.csv", "new.csv"], 3, "not a certificate"),
        (["release.json", "new.csv", "--schema", "nowhere.yaml"], 2, "nowhere.yaml"),
    ],
)
def test_a_wrong_call_is_one_paragraph(run, release, hospital, arguments, code, words):
    release("cost", "linear", mechanism="least-squares", draws=1)
    (hospital / "other.csv").write_text("age,smoker\n1,no\n")
    found, out, err = run("predict", *arguments)
    assert found == code
    assert not out
    assert words in " ".join(err.split())


def test_an_edited_draw_is_refused(run, release, hospital):
    release("cost", "linear", mechanism="least-squares", draws=1)
    document = json.loads(Path("release.json").read_text())
    document["draw"]["values"][0][0] += 1e-13
    (hospital / "release.json").write_text(json.dumps(document))
    code, _, err = run("predict", "release.json", "new.csv")
    assert code == 3
    assert "lattice" in err


def array_release(path, **features):
    """From Python, without a schema: columns are known by name only."""
    model = od.models.LeastSquares(2, response_bound=1.0, prior=od.models.Gaussian(scale=1.0, radius=3.0), **features)
    plan = od.calibrate(od.methods.Gibbs("bounded"), model, od.privacy.PureDP(5.0), n=50)
    result = od.release(plan, (np.linspace(-1, 1, 100).reshape(50, 2), np.linspace(-1, 1, 50)))
    result.save(path)
    return result.draws[0]


def test_a_release_from_python_reads_numbers_by_their_names(run, hospital):
    draw = array_release(hospital / "release.json", bounds=(0, 10), scaled=True, feature_names=("height", "weight"))
    (hospital / "new.csv").write_text("weight,height\n10,0\n,5\n")
    code, scores, err = run("predict", "release.json", "new.csv", "--json")
    assert code == 0, err
    rows = np.array([[-1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    assert np.ravel(json.loads(scores)["values"]) == pytest.approx(rows @ draw)


def test_a_release_from_python_without_names_says_which_columns_it_wants(run, hospital):
    array_release(hospital / "release.json", data_norm=1.0)
    code, _, err = run("predict", "release.json", "new.csv")
    assert code == 2
    assert "'feature 0'" in err
    code, _, err = run("predict", "release.json", "new.csv", "--schema", "cost.yaml")
    assert code == 2
    assert "without a schema" in " ".join(err.split())


def test_a_centre_that_the_certificate_gives_only_in_words_is_not_forgotten(run, hospital):
    model = od.models.LeastSquares(1, response_bound=1.0, bounds=(0, 1), feature_names=("age",), prior=od.models.Gaussian(scale=1.0, radius=3.0))  # fmt: skip
    plan = od.calibrate(od.methods.Gibbs("bounded"), model, od.privacy.PureDP(5.0), n=9)
    note = od.privacy.Assumption("responses are measured from 50.0, a public number", od.privacy.Provenance.DECLARED)
    od.release(plan, (np.zeros((9, 1)), np.zeros(9)), notes=(note,)).save(hospital / "release.json")
    code, _, err = run("predict", "release.json", "new.csv")
    assert code == 2
    assert "off by it" in " ".join(err.split())


class Measured(list):
    """Responses that say what they are measured in."""

    measure = Measure(50.0, 2.0)


def test_responses_from_python_may_say_what_they_are_measured_in(run, hospital):
    model = od.models.LeastSquares(1, response_bound=1.0, bounds=(0, 1), feature_names=("age",), prior=od.models.Gaussian(scale=1.0, radius=3.0))  # fmt: skip
    plan = od.calibrate(od.methods.Gibbs("bounded"), model, od.privacy.PureDP(5.0), n=9)
    result = od.release(plan, (np.zeros((9, 1)), Measured([0.5] * 9)))
    result.save(hospital / "release.json")
    (hospital / "new.csv").write_text("age\n0.25\n")
    code, scores, err = run("predict", "release.json", "new.csv", "--json")
    assert code == 0, err
    assert json.loads(scores)["values"] == [[pytest.approx(50 + 2 * (0.25 * result.draws[0, 0] + result.draws[0, 1]))]]
    assert run("verify", "release.json")[0] == 0
