"""What is installed: every library is declared, few are needed by everybody, and a missing one is said with its remedy."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import onedraw
from onedraw.errors import MissingExtra, check_extra

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

INSTALLED_AS = {
    "sklearn": "scikit-learn", "yaml": "pyyaml", "py4j": "pyspark", "adbc_driver_manager": "adbc-driver-postgresql",
}  # fmt: skip


PEERS = {"torch", "opacus"}
"""Compared with, never needed: an extra would bring their CUDA builds, so their one file says the two steps to install them."""


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", one)[0].lower() for one in requirements}


@cache
def imported() -> dict[str, set[str]]:
    """Every library that the package imports, anywhere, with the files that do."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module]
            for module in modules:
                found.setdefault(module.partition(".")[0], set()).add(path.stem)
    return {name: files for name, files in found.items() if name not in {*sys.stdlib_module_names, "onedraw"}}


def test_every_library_that_is_imported_is_declared_and_every_declared_one_is_imported():
    met = {INSTALLED_AS.get(library, library.replace("_", "-")) for library in imported()} - PEERS
    met |= {"psycopg"}  # by SQLAlchemy, for its ledger in PostgreSQL
    met |= {"pandas"}  # by PySpark, around its Arrow batches
    optional = set().union(*(names(EXTRAS[extra]) for extra in EXTRAS if extra != "dev"))
    met -= {"IPython"}  # met where its kernel runs the program, so it is there
    assert met == names(PROJECT["dependencies"]) | optional


def test_a_library_that_only_some_need_is_met_in_the_files_that_say_how_to_get_it():
    files = imported()
    optional = {"numpyro", "blackjax", "matplotlib", "adbc_driver_postgresql", "pyspark"}
    for path in (ROOT / "src").rglob("*.py"):
        asked_before = ("spark_session",)  # by spark_tables
        if any(path.stem in files[library] for library in optional) and path.stem not in asked_before:
            assert "check_extra(" in path.read_text(), f"{path.name} imports what may not be installed"


def test_peers_are_met_in_one_file_which_says_how_to_install_them(monkeypatch):
    from onedraw.baselines import opacus_training

    assert {file for peer in PEERS for file in imported()[peer]} == {"opacus_training"}
    monkeypatch.setattr(opacus_training, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="torch and opacus are not installed") as refused:
        opacus_training.check_opacus()
    assert str(refused.value).index("pip install torch") < str(refused.value).index("pip install opacus")


def test_every_extra_is_part_of_what_developers_install():
    assert EXTRAS["dev"][0] == f"onedraw[{','.join(extra for extra in EXTRAS if extra != 'dev')}]"


def test_the_version_is_written_once_and_cited():
    assert "version" in PROJECT["dynamic"]
    assert f"\nversion: {onedraw.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_a_missing_extra_is_said_in_two_lines_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra) as refused:
        check_extra("figures", "matplotlib", "A plot")
    assert str(refused.value) == (
        "A plot needs matplotlib, which is not installed here. Install it: pip install 'onedraw[figures]'."
    )
    assert refused.value.fields == {"extra": "figures"}


WITHOUT = """
import sys
for name in ("blackjax", "numpyro", "matplotlib", "pyspark", "psycopg", "adbc_driver_postgresql", "pandas", "polars"):
    sys.modules[name] = None
import numpy as np
import onedraw as od
from onedraw.cli import application
from onedraw.errors import MissingExtra
from onedraw.models import BinaryRegression, Gaussian

def said(ask):
    try:
        ask()
    except MissingExtra as error:
        print(error.extra)

ledger = od.Ledger.open("ledger.db", create=True)
ledger.init("d", od.ApproxDP(3, 1e-5))
model = BinaryRegression(1, prior=Gaussian(scale=1.0), data_norm=1.0)
plan = od.calibrate(od.BetaDivergence(), model, od.ApproxDP(1.0, 1e-6), n=20)
rows = (np.zeros((20, 1)), np.zeros(20, dtype=int))
said(lambda: od.release(plan, rows, ledger=ledger, dataset="d", accept="assumed"))
print(len(ledger.events("d")))
said(lambda: od.models.from_numpyro(lambda X, y=None: None, features=1))
plan = "plan --model mean --target v --schema s.yaml --epsilon 1 --rows 100 --figure f.png"
said(lambda: application(plan.split()))
said(lambda: application("audit --model mean --epsilon 1 --figure f.png".split()))
said(lambda: od.read("spark:t", od.Schema.from_dict({"columns": {"v": {"kind": "number", "lower": 0, "upper": 1, "missing": 0}}})))
said(lambda: od.Ledger.open("postgresql://nobody@/ledger?host=/nowhere"))
"""


def test_without_any_extra_each_thing_that_needs_one_is_refused_before_anything_is_spent(tmp_path):
    (tmp_path / "s.yaml").write_text("dataset: d\ncolumns:\n  v: {kind: number, lower: 0, upper: 1, missing: 0}\n")
    result = subprocess.run([sys.executable, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    expected = "chains\n1\nnumpyro\nfigures\nfigures\nspark\npostgresql\n"
    assert result.stdout == expected, result.stdout + result.stderr
