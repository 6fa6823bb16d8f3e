"""The page on baselines is what its stored results say, and no baseline is missing from its table."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from onedraw import baselines
from onedraw.methods.base import Mechanism

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("baselines_benchmark", ROOT / "benchmarks" / "baselines.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results(study):
    return json.loads(study.RESULT.read_text(encoding="utf-8"))


def test_the_page_is_what_the_stored_results_say(study, results):
    page = study.PAGE.read_text(encoding="utf-8")
    assert page == study.render(results), "out of date: python benchmarks/baselines.py --render"
    first = dict(results["side_by_side"][1], error=0.123)
    assert page != study.render({**results, "side_by_side": [first, *results["side_by_side"][1:]]})


def test_the_table_holds_every_method_that_was_run_and_every_baseline(study, results):
    shown = [(one["question"], one["name"]) for one in results["side_by_side"] if one["promise"] != "ε = ∞"]
    assert shown == [(one.question, one.name) for one in study.METHODS]
    known = {
        name
        for name in dir(baselines)
        if isinstance(found := getattr(baselines, name), type) and issubclass(found, Mechanism)
    }
    assert known - {type(one.mechanism).__name__ for one in study.METHODS} == set()


def test_every_question_has_a_line_without_privacy_which_no_promise_beats_by_much(study, results):
    for question in study.QUESTIONS:
        lines = [one for one in results["side_by_side"] if one["question"] == question]
        (bare,) = [one["error"] for one in lines if one["promise"] == "ε = ∞"]
        assert min(one["error"] for one in lines) > 0.5 * bare


def test_the_verdict_counts_the_lines(study, results):
    lines = results["ada_ssp"]
    won = sum(one["ada_ssp"] <= one["fit"] for one in lines)
    assert f"in {won} of {len(lines)} lines, the fit in {len(lines) - won}." in study.verdict(lines)
