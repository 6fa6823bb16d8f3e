"""Certificates, plans and reports of every kind of release are what they were (`golden_cases` says how, and how to write them anew)."""

import copy
import json
import sys

import pytest

from onedraw.methods import Mechanism
from onedraw.planning import KINDS, QUESTIONS
from tests.golden.golden_cases import CASES, HELD_OUT, differences, made, without_draw, write_clinic

pytestmark = pytest.mark.golden


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden-")
    write_clinic(folder)
    return folder


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=() if case.quick else pytest.mark.slow) for case in CASES]
)
def test_what_leaves_is_what_left_before(case, clinic, monkeypatch):
    monkeypatch.chdir(clinic)
    monkeypatch.setattr(sys, "argv", [])
    documents = kept(case.name), made(case)
    if case.name.startswith("network-"):
        documents = tuple(map(without_draw, documents))
    found = differences(*documents)
    assert not found, "\n".join([f"{case.name} is not what was kept; `make golden` if that is meant:", *found])


def kept(name):
    (path,) = [case.path for case in CASES if case.name == name]
    return json.loads(path.read_text())


def test_every_mechanism_and_every_question_of_the_command_line_is_kept():
    documents = [json.loads(case.path.read_text()) for case in CASES]
    mechanisms = [document["certificate"]["plan"]["mechanism"] for document in documents if "certificate" in document]
    inner = [one.get(part) or {} for one in mechanisms for part in ("of", "within", "inner")]
    inner = [each for one in inner for each in (one if isinstance(one, list) else [one])]  # several in one release
    ours = {tag for tag, kind in Mechanism.members().items() if kind.__module__.startswith("onedraw.")}
    assert {one.get("name") for one in [*mechanisms, *inner]} >= ours
    asked = {document["command"].partition("--model ")[2].partition(" ")[0] for document in documents}
    assert asked >= {*QUESTIONS, *KINDS, "covariance"}
    assert len(HELD_OUT) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one["certificate"]["draw"]["values"][0].__setitem__(0, 1.00001 * one["certificate"]["draw"]["values"][0][0]),
        lambda one: one["certificate"]["promise"].pop("delta"),
        lambda one: one["certificate"].update(sentence=one["certificate"]["sentence"].replace("Exact", "Proven")),
        lambda one: one["certificate"].update(sentence=one["certificate"]["sentence"].replace("n = 400", "n = 402")),
        lambda one: one["report"].pop(3),
        lambda one: one["certificate"]["plan"].update(n=401),
        lambda one: one["shown"]["estimates"][0].update(low=None),
    ],
)  # fmt: skip
def test_a_change_of_a_number_a_word_or_a_field_is_seen(change):
    before, after = kept("mean"), kept("mean")
    change(after)
    assert differences(before, after)


def test_time_version_entry_and_the_last_digits_are_not():
    before, after = kept("mean"), kept("mean")
    certificate = after["certificate"]
    certificate.update(prepared_at="2031-01-01T00:00:00+00:00", software={"onedraw": "9"}, fingerprint="", ledger=None)
    certificate["draw"]["values"][0][0] *= 1 + 1e-9
    after["report"] = [line.replace(before["certificate"]["ledger"]["entry"], "0" * 32) for line in after["report"]]
    assert before != after
    assert differences(before, after) == []
    assert differences(before, copy.deepcopy(before)) == []
