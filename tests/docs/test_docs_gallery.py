"""The gallery is what its stored results say, and those are of whole runs of studies that there are."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from experiments.study import studies

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def gallery():
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "figures" / "gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_stored_results_say(gallery):
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.render(gallery.stored()), (
        "out of date: python docs/figures/gallery.py --render"
    )
    changed = [dict(gallery.stored()[0], claim="Another"), *gallery.stored()[1:]]
    assert gallery.PAGE.read_text(encoding="utf-8") != gallery.render(changed)


def test_every_figure_is_stored_and_none_besides(gallery):
    shown = set(re.findall(r"assets/gallery/([^)]+)\)", gallery.PAGE.read_text(encoding="utf-8")))
    assert shown == {file.name for file in gallery.STORED.glob("*.svg")}


def test_what_is_shown_is_of_whole_runs_of_studies_that_there_are(gallery):
    known, shown = studies(), gallery.stored()
    assert [one["study"] for one in shown if one["study"] not in known] == []
    assert not any(one["quick"] for one in shown)
    assert {row["verdict"] for one in shown for row in one["expectations"]} <= {"passed", "failed"}


def test_results_are_taken_over_without_their_place(gallery, tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "STORED", tmp_path / "stored")
    for kind in ("full", "quick"):
        folder = tmp_path / "results" / kind / kind
        folder.mkdir(parents=True)
        result = {"study": kind, "folder": str(tmp_path), "figures": ["shape"]}
        (folder / "summary.json").write_text(json.dumps(result))
        (folder / "shape.svg").write_text("<svg/>")
    gallery.take_over(tmp_path / "results")
    assert {file.name for file in (tmp_path / "stored").iterdir()} == {"full.json", "full.shape.svg"}
    assert str(tmp_path) not in (tmp_path / "stored" / "full.json").read_text()
