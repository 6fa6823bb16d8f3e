"""What is public: packages with the names in their `__all__`, all of them in the reference, and nothing else in the documentation."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "onedraw"
PAGE = ROOT / "docs" / "reference.md"

_spec = importlib.util.spec_from_file_location("write_reference", ROOT / "tools" / "write_reference.py")
write_reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(write_reference)
DOCUMENTED = write_reference.PACKAGES
"""The public packages and modules, by their sections of the reference."""

PROGRAMS = {"cli"}
"""Packages whose public face is no Python."""


def packages() -> list[str]:
    """Name the packages that say in `__all__` what is public."""
    found = (path for path in SOURCE.rglob("__init__.py") if "__all__ = [" in path.read_text(encoding="utf-8"))
    return sorted(".".join(path.parent.relative_to(SOURCE).parts) for path in found if path.parent != SOURCE)


def documented(page: str) -> dict[str, set[str]]:
    """Return the names of each section, those with an entry and those in its table."""
    sections = re.split(r"^## (.*)$", page, flags=re.MULTILINE)
    by_title = dict(zip(sections[1::2], sections[2::2], strict=True))
    return {name: names_in(by_title[title]) for name, (title, *_) in DOCUMENTED.items()}


def names_in(section: str) -> set[str]:
    entries = set(re.findall(r"^### (\w+)$", section, re.MULTILINE))
    table = re.search(
        r"^\| (?:Also in|In) `onedraw[\w.]*` \|[^\n]*\n\|[^\n]*\n((?:\|[^\n]*\n)*)", section, re.MULTILINE
    )
    return entries | set(re.findall(r"^\| `(\w+)` \|", table[1], re.MULTILINE) if table else ())


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_reference_documents_what_a_package_says_is_public(name):
    module = import_module(f"onedraw.{name}")
    assert documented(PAGE.read_text(encoding="utf-8"))[name] == set(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)
    assert not [public for public in module.__all__ if public.startswith("_")]


def test_a_name_that_is_not_documented_is_noticed():
    page = PAGE.read_text(encoding="utf-8")
    shorter = re.sub(r"^\| `Domain` \|[^\n]*\n", "", page, flags=re.MULTILINE)
    assert documented(page)["audit"] - documented(shorter)["audit"] == {"Domain"}


def test_every_package_is_documented_or_offers_its_names_in_the_one_above():
    for name in set(packages()) - DOCUMENTED.keys() - PROGRAMS:
        above = name.rpartition(".")[0]
        assert above, name
        missing = set(import_module(f"onedraw.{name}").__all__) - set(import_module(f"onedraw.{above}").__all__)
        assert missing == set(), name


def python_in(path: Path) -> Iterator[str]:
    """Give the Python of a page or a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        yield from ("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
    else:
        yield from re.findall(r"^```python[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def private_imports(code: str) -> list[str]:
    """Return the imports that reach into a package, or take what it does not offer."""
    public = {f"onedraw.{name}" for name in [*packages(), *DOCUMENTED]} | {"onedraw"}
    found = []
    for node in ast.walk(ast.parse(re.sub(r"^\s*[%!].*$", "", code, flags=re.MULTILINE))):
        if isinstance(node, ast.Import):
            found += [
                alias.name for alias in node.names if alias.name.split(".")[0] == "onedraw" and alias.name not in public
            ]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "onedraw":
            offered = set(import_module(node.module).__all__) if node.module in public else set()
            found += [f"{node.module}.{alias.name}" for alias in node.names if alias.name not in offered]
    return found


def test_documentation_imports_only_what_packages_offer():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*.ipynb"))]
    found = [f"{path.name}: {name}" for path in pages for code in python_in(path) for name in private_imports(code)]
    assert found == []


@pytest.mark.parametrize(
    ("line", "private"),
    [
        ("import onedraw as od", []),
        ("from onedraw.models import Logistic", []),
        ("from onedraw.models.convex import array_module", []),
        ("from onedraw.models.convex.losses import array_module", ["onedraw.models.convex.losses.array_module"]),
        ("import onedraw.samplers.variates", ["onedraw.samplers.variates"]),
        ("from onedraw.samplers import variates", ["onedraw.samplers.variates"]),
    ],
)
def test_an_import_of_a_private_module_is_noticed(line, private):
    assert private_imports(line) == private


INTERNAL = {"arrays", "on_demand", "plain_text", "private"}
"""Modules beside the packages that serve all of them and offer nothing to users."""


def test_modules_beside_the_packages_are_documented_or_internal():
    beside = {path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("_")}
    assert beside - INTERNAL == {name for name in DOCUMENTED if (SOURCE / f"{name}.py").exists()}
