"""`onedraw reproduce`: in a clone and outside one, names, exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import study as studies
from onedraw.cli import reproduce
from onedraw.errors import WrongCall
from tests.experiments.toy.run import STUDIES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def toys(monkeypatch):
    """In place of the papers': one study that passes."""

    def chosen(*found):
        monkeypatch.setattr(studies, "studies", lambda: {one.name: one for one in found})
        monkeypatch.setattr("experiments.runner.studies", studies.studies)

    chosen(*STUDIES)
    return chosen


def test_every_study_is_listed_with_its_claim(run):
    code, out, _ = run("reproduce", "list", "--json")
    assert code == 0
    document = json.loads(out)
    assert "membership-attack" in document
    assert all(one["claim"] and one["paper"] for one in document.values())
    assert "membership-attack" in run("reproduce", "list")[1]


def test_a_study_is_run_and_told(run, toys, tmp_path):
    code, out, err = run("reproduce", "toy", "--out", tmp_path / "results")
    assert code == 0, err
    assert "value cell=3" in out
    assert "passed" in out
    assert "computed now" in out
    code, out, _ = run("reproduce", "all", "--out", tmp_path / "results", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["passed"]
    assert document["studies"][0]["computed"] == 0


def test_a_failed_expectation_is_exit_code_3(run, toys, tmp_path):
    toys(replace(STUDIES[0], quantities=lambda table: {}))
    code, out, _ = run("reproduce", "toy", "--out", tmp_path / "results")
    assert code == 3
    assert "failed" in out


def test_an_unknown_study_names_the_known(run, toys):
    code, out, err = run("reproduce", "toi")
    assert code == 2
    assert not out
    assert "There is no study called 'toi'. The studies are: toy; or all of them: all." in err


def test_of_all_studies_one_that_is_refused_keeps_none_from_running(run, toys, tmp_path, monkeypatch):
    monkeypatch.setenv("ONEDRAW_DATA", str(tmp_path))
    toys(replace(STUDIES[0], name="ill", data=("abalone.csv",)), *STUDIES)
    code, out, err = run("reproduce", "all", "--out", tmp_path / "results")
    assert code == 2
    assert "abalone.csv is not in" in err
    assert "value cell=3" in out


def test_outside_a_clone_it_says_how_to_get_one(tmp_path):
    installed = tmp_path / "lib" / "python" / "site-packages" / "onedraw" / "__init__.py"
    with pytest.raises(WrongCall, match="Clone it") as caught:
        reproduce.find_clone(tmp_path, installed)
    assert caught.value.exit_code == 2
    assert reproduce.find_clone(ROOT / "docs" / "assets", installed) == ROOT
    assert reproduce.find_clone(tmp_path, ROOT / "src" / "onedraw" / "__init__.py") == ROOT
