"""Each test file stands where its module is, or names the module in its first line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src" / "onedraw"

OTHERS = {"docs", "experiments", "golden", "spark", "tools"}
"""Folders of tests that are about pages, studies, stored files, a cluster and tools, and not about one module."""


def files_below(root: Path) -> list[Path]:
    return sorted(path.relative_to(root) for path in root.glob("*/**/test_*.py"))


def is_found(test: Path, first_line: str, source: Path) -> bool:
    """Return whether the file's place or its first line says which module it tests.

    ``test_run_padding.py`` is about ``run.py`` of the same folder. A file that the first line names is looked for in that folder,
    in the folders above it, and in the package.
    """
    if test.parts[0] in OTHERS:
        return True
    words = test.stem.removeprefix("test_").split("_")
    if any((source / test.parent / f"{'_'.join(words[:end])}.py").exists() for end in range(1, len(words) + 1)):
        return True
    named = re.findall(r"[\w/]+\.(?:py|css|md)\b", first_line)
    return any((source / folder / name).exists() for name in named for folder in [test.parent, *test.parent.parents])


def test_each_test_file_stands_beside_its_module_or_names_it():
    lost = [
        str(path)
        for path in files_below(TESTS)
        if not is_found(path, (TESTS / path).read_text(encoding="utf-8").partition("\n")[0], SOURCE)
    ]
    assert lost == []


@pytest.mark.parametrize(
    ("path", "first_line", "found"),
    [
        ("ledger/test_ledger.py", "", True),
        ("methods/quantiles/test_mechanism.py", "", True),
        ("methods/gibbs/test_mechanism_numbers.py", "", True),
        ("methods/gibbs/test_numbers.py", "", False),
        ("ledger/test_numbers.py", "", False),
        ("ledger/test_numbers.py", "Numbers in the ledger (events.py).", True),
        ("ledger/test_numbers.py", "Numbers in the ledger (gone.py).", False),
        ("methods/gibbs/test_numbers.py", "Numbers of plans (plans.py).", True),
        ("docs/test_numbers.py", "", True),
    ],
)
def test_a_file_whose_module_is_gone_is_noticed(path, first_line, found):
    assert is_found(Path(path), first_line, SOURCE) is found
