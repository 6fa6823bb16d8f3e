"""The page of every mechanism is what the stored audit says, and the stored audit is what an audit says today."""

import importlib.util
import json
from pathlib import Path

import pytest

from onedraw.audit.cases import faults

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def writer():
    spec = importlib.util.spec_from_file_location("audit_page", ROOT / "docs" / "figures" / "audit_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stored(writer):
    return json.loads(writer.RESULT.read_text(encoding="utf-8"))


def test_the_page_is_written_from_the_stored_result(writer, stored):
    assert writer.PAGE.read_text(encoding="utf-8") == writer.render(stored)


def test_another_result_would_be_another_page(writer, stored):
    changed = json.loads(json.dumps(stored))
    changed["cases"][3]["gap"] *= 1.5
    assert writer.render(changed) != writer.render(stored)


def test_the_stored_result_has_every_case_and_today_gives_the_same(stored, examined):
    rows = {row["name"]: row for row in stored["cases"]}
    assert set(rows) == set(examined)
    for name, one in examined.items():
        today = one.to_dict()
        for figure in ("promised_epsilon", "exact_epsilon", "gap"):
            assert today[figure] == pytest.approx(rows[name][figure], rel=1e-3), (name, figure)
        assert today["promise_text"] == rows[name]["promise_text"]


def test_the_stored_faults_are_those_of_today(stored):
    assert [fault.to_dict() for fault in faults()] == [
        {**row, "value": pytest.approx(row["value"], rel=1e-6)} for row in stored["faults"]
    ]


def test_nothing_on_the_page_is_broken_and_every_fault_is_found(stored):
    assert all(row["passed"] for row in stored["cases"])
    assert {row["name"] for row in stored["cases"] if row["smallest_caught_factor"] is None} == set()
    assert all(row["smallest_caught_factor"] <= 1.3 for row in stored["cases"] if row["attained"])


def test_draws_never_show_more_than_the_exact_audit(stored):
    shown = [
        (row["attacked_epsilon"], row["promised_epsilon"])
        for row in stored["cases"]
        if row["attacked_epsilon"] is not None
    ]
    assert len(shown) > 25
    assert all(by_draws <= promised for by_draws, promised in shown)
