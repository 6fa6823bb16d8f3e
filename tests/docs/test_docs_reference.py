"""The reference pages say what the code says."""

from __future__ import annotations

import importlib.util
import json
import pkgutil
import re
from pathlib import Path

import pytest

import onedraw as od

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_spec = importlib.util.spec_from_file_location("write_reference", ROOT / "tools" / "write_reference.py")
write_reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(write_reference)


@pytest.mark.parametrize("page", write_reference.PAGES)
def test_the_page_is_what_the_code_says_now(page):
    written = (DOCS / page).read_text(encoding="utf-8")
    assert written == write_reference.PAGES[page](), "out of date: run `make reference`"


def test_every_public_name_is_on_the_page():
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^### (\w+)$", page, re.MULTILINE))
    assert {name for names in od._NAMES.values() for name in names} - headings == set()


def test_every_name_is_reached_as_it_is_spelled():
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    paths = re.findall(r"^```text\n([\w.]+)", page, re.MULTILINE)
    assert len(paths) > 50
    for path in paths:
        room, _, name = re.sub(r"^od\b", "onedraw", path).rpartition(".")
        assert callable(pkgutil.resolve_name(f"{room}:{name}")), path


def test_every_command_is_on_the_page():
    from onedraw.cli import application

    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    names = [command.name for command in application.registered_commands]
    assert len(names) > 4
    assert [name for name in names if f"## onedraw {name}\n" not in page] == []


def test_every_field_of_the_certificate_is_explained():
    schema = json.loads((ROOT / "src/onedraw/release/certificate.schema.json").read_text(encoding="utf-8"))
    fields = set(schema["properties"]) | set(schema["$defs"]["DataStatement"]["properties"])
    page = (DOCS / "certificate.md").read_text(encoding="utf-8")
    assert [field for field in sorted(fields) if f"`{field}`" not in page] == []
