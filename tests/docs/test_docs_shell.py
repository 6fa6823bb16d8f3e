"""A newcomer's path: the shell blocks of a page, copied and pasted in order into one shell, with nothing adjusted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import onedraw as od
from tests.docs.test_docs_code import run_page

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(page: str) -> list[str]:
    return BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


def paste(blocks: list[str], folder: Path, **environment: str) -> str:
    """What the shell prints; any command that fails is a failure."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)], cwd=folder, env=os.environ | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.finding("S7")
def test_the_quickstart_after_its_first_block(tmp_path, monkeypatch):
    """The first block, `make demo`, is run by the longer test below, and its command by those of the command line.

    Then the page's Python, pasted where the shell is left.
    """
    (tmp_path / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    first, *others = blocks_of("quickstart.md")
    assert first == "make demo\n"
    printed = paste(others, tmp_path)
    assert "(ε = 1, δ = 1e-06)-differentially private" in printed
    assert "Authentic" in printed
    assert "class,P(no),P(yes)" in printed
    assert printed.count("95 % interval") == 3, printed  # of the shares, of the missing cells and of the regression
    assert "No interval" not in printed
    report = (tmp_path / "my-first-release" / "report.html").read_text(encoding="utf-8")
    assert "stroke" in report
    monkeypatch.chdir(tmp_path / "my-first-release")
    assert run_page(ROOT / "docs" / "quickstart.md") == 1
    assert len(od.Ledger.open("ledger.db").events("clinic-2026")) == 7  # opened; three times reserved and settled


@pytest.mark.slow
@pytest.mark.finding("newcomer S5", commit="8a7c0fb")
def test_the_page_on_csv_files(tmp_path):
    printed = paste(blocks_of("from-csv.md"), tmp_path, PATH=f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}")
    assert "one person's up to 2 records" in printed
    assert "ward=intensive" in printed  # the table has standard errors, so the name is broken after it
    assert (tmp_path / "nights.html").exists()
    assert od.Ledger.open(tmp_path / "ledger.db").remaining("visits-2026").spent_epsilon <= 1.5


def test_the_page_on_formulas(tmp_path):
    printed = paste(blocks_of("formulas.md"), tmp_path, PATH=f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}")
    assert "Formula: log(wage) ~ 1 + poly(age, 2, raw=True) + C(region, Treatment('south')) + I(hours > 35)" in printed
    assert "No interval" not in printed
    assert "Authentic" in printed


@pytest.mark.slow
def test_a_newcomer_with_a_clean_copy(tmp_path):
    """Everything git would give a newcomer, an empty environment, `make demo`, and the page to its end."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, target)
    printed = paste(blocks_of("quickstart.md"), tmp_path, ONEDRAW_CACHE=str(tmp_path / "cache"))
    assert "Authentic" in printed
    assert list(tmp_path.glob("onedraw-demo/*/*.html"))


def test_a_failing_command_is_noticed(tmp_path):
    with pytest.raises(AssertionError, match="No such file"):
        paste(["cat absent\n", "echo done\n"], tmp_path)
