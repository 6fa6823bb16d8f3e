"""Which libraries usual commands may load, since start-up is most of their time (cli/release.py, models/compute.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cases import FEATURES, TARGETS, write_patients

NEVER = {
    "IPython", "arviz", "blackjax", "dp_accounting", "jax", "jaxlib", "matplotlib", "narwhals", "numpyro", "pandas", "psycopg",
    "pyspark", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.stats", "sklearn", "sqlalchemy",
}  # fmt: skip
"""Libraries that take a tenth of a second or more, which none of the commands below needs."""

ONLY_REPORTS = {"jinja2", "markupsafe"}
"""Libraries that a report needs."""

COUNTED = """
import json, sys
from onedraw.cli import main
try:
    main()
finally:
    print("LOADED", json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with 3,000 patients, a schema for each target and a ledger."""
    folder = tmp_path_factory.mktemp("startup-")
    write_patients(folder / "patients.csv", 3000)
    for target, declared in TARGETS.items():
        (folder / f"{target}.yaml").write_text(f"dataset: p\ncolumns:\n  {target}: {declared}\n{FEATURES}")
    loaded(folder, "ledger", "init", "ledger.db", "--dataset", "p", "--epsilon", "1000", "--delta", "1e-3")
    return folder


def loaded(folder: Path, *arguments: str) -> set[str]:
    """Run a command in a process of its own and return the names of all modules that it loaded."""
    command = [sys.executable, "-c", COUNTED, *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | {"COLUMNS": "100"})
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stderr.rpartition("LOADED ")[2].splitlines()[0]))


def release(folder: Path, target: str, model: str, *more: str) -> set[str]:
    out = f"{target}-{model}.json"
    return loaded(
        folder, "release", "patients.csv", "--schema", f"{target}.yaml", "--target", target, "--model", model, "--epsilon", "2",
        "--ledger", "ledger.db", "--out", out, *more,
    )  # fmt: skip


NUMBER, SHARE = [next(name for name, declared in TARGETS.items() if kind in declared) for kind in ("number", "binary")]


@pytest.mark.parametrize(("target", "model"), [(SHARE, "proportion"), (NUMBER, "mean")])
def test_charged_release_of_one_column_loads_no_slow_library(clinic: Path, target: str, model: str) -> None:
    modules = release(clinic, target, model)
    assert modules & (NEVER | ONLY_REPORTS) == set()
    assert {"onedraw.ledger.storage", "pyarrow", "opendp"} <= modules


@pytest.mark.parametrize(("target", "model"), [(SHARE, "logistic"), (NUMBER, "linear")])
def test_charged_fit_with_report_loads_no_slow_library(clinic: Path, target: str, model: str) -> None:
    modules = release(clinic, target, model, "--report", f"{model}.html")
    assert modules & NEVER == set()
    assert "onedraw.methods.fit.run" in modules


def test_verification_loads_no_slow_library(clinic: Path) -> None:
    release(clinic, SHARE, "count")
    assert loaded(clinic, "verify", f"{SHARE}-count.json", "--ledger", "ledger.db") & NEVER == set()
