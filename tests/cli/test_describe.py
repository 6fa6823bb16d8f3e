"""`onedraw describe`: one command, one charge, a table in all its forms; places are checked before anything is spent."""

import json

import numpy as np
import pytest

import onedraw as od


@pytest.fixture
def table(tmp_path):
    generator = np.random.default_rng(1)
    rows = zip(generator.normal(50, 10, 4000), generator.choice(["F", "M"], 4000), strict=True)
    (tmp_path / "t.csv").write_text("age,sex\n" + "".join(f"{age:.1f},{sex}\n" for age, sex in rows))
    (tmp_path / "s.yaml").write_text(
        "dataset: d\ncolumns:\n  age: {kind: number, lower: 0, upper: 100, missing: 50}\n  sex: {kind: category, levels: [F, M], missing: F}\n"
    )
    ledger = od.Ledger.open(tmp_path / "l.db", create=True)
    ledger.init("d", od.ApproxDP(3.0, 1e-5))
    return tmp_path


def command(folder, *more):
    from typer.testing import CliRunner

    from onedraw.cli import application

    words = [
        "describe",
        f"{folder}/t.csv",
        "--schema",
        f"{folder}/s.yaml",
        "--ledger",
        f"{folder}/l.db",
        "--epsilon",
        "1",
    ]
    return CliRunner().invoke(application, [*words, *more])


def test_it_writes_certificate_report_csv_and_latex(table):
    done = command(
        table,
        "--by",
        "sex",
        "--out",
        f"{table}/r.json",
        "--report",
        f"{table}/r.html",
        "--csv",
        f"{table}/o.csv",
        "--latex",
        f"{table}/o.tex",
    )
    assert done.exit_code == 0, done.output
    assert "median" in done.output
    assert "marked too noisy" in " ".join(done.output.split())
    assert (table / "o.csv").read_text(encoding="utf-8").startswith("column,statistic")
    assert "tabular" in (table / "o.tex").read_text(encoding="utf-8")
    assert "Table 1 by sex" in (table / "r.html").read_text(encoding="utf-8")
    assert od.verify(table / "r.json", ledger=od.Ledger.open(table / "l.db")).answer == "authentic"


def test_json_has_the_rows_and_a_taken_place_costs_nothing(table):
    done = command(table, "--out", f"{table}/r.json", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.output)
    assert {row["statistic"] for row in document["table"]} >= {"mean", "share"}
    assert 0.0 <= document["noisy_share"] <= 1.0
    (table / "o.csv").write_text("mine")
    refused = command(table, "--out", f"{table}/r2.json", "--csv", f"{table}/o.csv")
    assert refused.exit_code != 0
    assert (table / "o.csv").read_text() == "mine"
    assert od.Ledger.open(table / "l.db").account("d").reservations == 1
