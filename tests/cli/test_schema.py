"""`onedraw schema new`: from the header alone, and with private bounds through an interruption."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import yaml

import onedraw as od

SECRET = "s3cr3t"


@pytest.fixture
def visits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    with open("visits.csv", "w", encoding="utf-8") as file:
        print("age,cost,admitted", file=file)
        for row in range(3000):
            age = "" if row % 5 == 0 else random.integers(18, 95)
            print(f"{age},{random.lognormal(7, 1):.2f},{random.integers(1, 29):02d}.03.2025", file=file)
    od.Ledger.open("ledger.db", create=True).init("visits", od.PureDP(2.0))
    return tmp_path


DATES = "--date=admitted=2025-03-01:2025-03-31:%d.%m.%Y"
ASKED = (
    "schema", "new", "visits.csv", "--header", "--number=age=0:120", "--number=cost", DATES, "--dataset=visits", "--private-bounds=0.8",
    "--ledger=ledger.db", "--release=bounds.json",
)  # fmt: skip


def test_the_first_line_of_a_csv_file_is_not_taken_for_names(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text(f"{SECRET},7\n{SECRET},8\n", encoding="utf-8")
    code, out, err = run("schema", "new", "d.csv", "--number", "age")
    assert code == 2
    assert "Pass --header" in err
    assert "--names" in err
    assert SECRET not in out + err
    code, out, err = run("schema", "new", "d.csv", "--names", "name,age", "--number", "age=0:120")
    assert code == 0
    assert SECRET not in out + err
    assert yaml.safe_load(out)["columns"]["age"]["upper"] == 120
    assert "write these names there" in " ".join(err.split())


def test_no_value_decides_what_is_written(run, visits):
    code, first, _ = run("schema", "new", "visits.csv", "--header", "--number=age", DATES)
    lines = (visits / "visits.csv").read_text(encoding="utf-8").splitlines()
    (visits / "visits.csv").write_text("\n".join([lines[0], "x,y,z", *lines[1:]]) + "\n", encoding="utf-8")
    assert run("schema", "new", "visits.csv", "--header", "--number=age", DATES)[:2] == (code, first)
    assert code == 0


def test_private_bounds_are_charged_stated_and_usable(run, visits):
    code, out, err = run(*ASKED, "--out=schema.yaml")
    assert code == 0, err
    assert "cost: " in err
    assert "expected to clip" in err
    written = yaml.safe_load((visits / "schema.yaml").read_text(encoding="utf-8"))
    entry = json.loads((visits / "bounds.json").read_text(encoding="utf-8"))["ledger"]["entry"]
    assert written["private_bounds"]["entry"] == entry
    assert written["private_bounds"]["columns"] == ["cost"]
    assert written["columns"]["age"]["upper"] == 120
    for column, value in (("age", 50), ("cost", 1000), ("admitted", "2025-03-15")):
        written["columns"][column]["missing"] = value
    (visits / "done.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    code, out, err = run("release", "visits.csv", "--schema=done.yaml", "--target=admitted", "--model=mean", "--epsilon=0.5",
                         "--ledger=ledger.db", "--out=mean.json", "--report=mean.html")  # fmt: skip
    assert code == 0, err
    assert "2025-03-1" in out
    report = (visits / "mean.html").read_text(encoding="utf-8")
    assert entry in report
    assert "2025-03-01 to 2025-03-31, are read by the format" in report
    assert run("verify", "mean.json", "--ledger=ledger.db")[0] == 0
    assert len([event for event in od.Ledger.open("ledger.db").events() if event.kind == "reserved"]) == 2


def test_a_killed_release_of_bounds_is_resumed_without_a_second_charge(run, visits):
    """Killed after the charge, before a record is counted; the command that is printed finishes it."""
    program = (
        "import os, signal; from onedraw.models import MagnitudeTable; from onedraw.cli import main\n"
        "MagnitudeTable.summarise = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nmain()"
    )
    died = subprocess.run(
        [sys.executable, "-c", program, *ASKED, "--out=schema.yaml"], cwd=visits, capture_output=True, check=False
    )
    assert died.returncode == -signal.SIGKILL
    assert not os.path.exists("schema.yaml")
    unfinished = (visits / "bounds.json.unfinished").read_text(encoding="utf-8")
    entry = next(event.entry for event in od.Ledger.open("ledger.db").events() if event.kind == "reserved")
    assert entry in unfinished
    assert "schema new" in unfinished
    code, _, err = run(*ASKED, "--out=schema.yaml")
    assert code != 0
    assert "--resume" in err
    code, _, err = run(*ASKED, "--out=schema.yaml", "--resume", entry)
    assert code == 0, err
    assert yaml.safe_load((visits / "schema.yaml").read_text(encoding="utf-8"))["private_bounds"]["entry"] == entry
    assert len([event for event in od.Ledger.open("ledger.db").events() if event.kind == "reserved"]) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--ledger=ledger.db": ""}, "is a release. Pass --ledger"),
        ({"--release=bounds.json": ""}, "--release FILE for its certificate"),
        ({"--private-bounds=0.8": ""}, "belong to --private-bounds"),
        ({"--number=cost": "--number=cost=0:9"}, "Every number column has bounds already"),
        ({"--header": "--names=age,cost,admitted"}, "does not open the file"),
        ({"--number=age=0:120": "--number=cost"}, "declared twice"),
        ({"--private-bounds=0.8": "--private-bounds=0.001"}, "Nothing was charged"),
    ],
)
def test_what_does_not_go_together_is_refused_before_the_charge(run, visits, changes, words):
    asked = [word for word in (changes.get(one, one) for one in ASKED) if word]
    code, _, err = run(*asked)
    assert code == 2
    assert words in " ".join(err.split())
    assert not [event for event in od.Ledger.open("ledger.db").events() if event.kind == "reserved"]
