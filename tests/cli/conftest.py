"""Commands run in this process, in a folder of their own, and a hospital to run them on."""

import json
import sys

import pytest

from onedraw import cli
from tests.cli.cases import FEATURES, TARGETS, write_patients


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the console script in this process: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "220")

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["onedraw", *map(str, arguments)])
        try:
            code = cli.main()
        except SystemExit as done:
            code = done.code
        captured = capsys.readouterr()
        return code or 0, captured.out, captured.err

    return command


@pytest.fixture
def hospital(tmp_path, run):
    """300 patients, a schema for each target, two new patients and one of whom little is known, and a ledger."""
    write_patients(tmp_path / "patients.csv", 300)
    for target, declared in TARGETS.items():
        (tmp_path / f"{target}.yaml").write_text(f"dataset: p\ncolumns:\n  {target}: {declared}\n{FEATURES}")
    (tmp_path / "new.csv").write_text("smoker,age,ward\nno,20,a\nyes,80,b\nno,,zzz\n")
    run("ledger", "init", "ledger.db", "--dataset", "p", "--epsilon", 1000, "--delta", 1e-3)
    return tmp_path


@pytest.fixture
def release(run, hospital):
    """`onedraw release` with options by name; True is a flag."""

    def command(target, model, **options):
        given = {"epsilon": 5, "ledger": "ledger.db", "out": "release.json", "schema": f"{target}.yaml"} | options
        source = given.pop("source", "patients.csv")
        written = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in given.items() if value is not None]  # fmt: skip
        return run("release", source, f"--target={target}", f"--model={model}", *written)

    return command


@pytest.fixture
def releases_charged(run):
    """How many releases the ledger was charged for."""
    return lambda: json.loads(run("ledger", "show", "ledger.db", "--json")[1])["datasets"]["p"]["releases"]
