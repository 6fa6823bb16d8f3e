"""A fingerprint names its question: on the plan page, in the ledger and on the certificate."""

import re
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw import errors
from onedraw.ledger import Reservation
from onedraw.release.certificate import Certificate
from tests.release.cases import edited

COLUMNS = {
    "smoker": {"kind": "binary", "levels": ["no", "yes"], "missing": "no"},
    "hiv": {"kind": "binary", "levels": ["no", "yes"], "missing": "no"},
    "age": {"kind": "number", "lower": 0.0, "upper": 100.0, "missing": 50.0},
    "weight": {"kind": "number", "lower": 0.0, "upper": 100.0, "missing": 50.0},
    "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
    "clinic": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
}
SCHEMA = {"dataset": "p", "columns": COLUMNS}
N = 60


def frame():
    half, third = ["no", "yes"] * (N // 2), ["a", "b", "c"] * (N // 3)
    numbers = np.arange(float(N))
    return pd.DataFrame(
        {"smoker": half, "hiv": ["no"] * N, "age": numbers, "weight": numbers, "ward": third, "clinic": third}
    )


def planned(target, model, schema=SCHEMA, **options):
    return od.plan(od.Schema.from_dict(schema), target, model, epsilon=1.0, n=N, **options)


@pytest.fixture
def ledger(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    for name in ("p", "q"):
        ledger.init(name, od.ApproxDP(5.0, 1e-4))
    return ledger


@pytest.fixture
def page_digest(tmp_path):
    """The fingerprint that stands on the page to be signed."""

    def read(plan):
        text = plan.report(tmp_path / "plan.html", overwrite=True).read_text()
        return re.search(r"<code[^>]*>([0-9a-f]{64})</code>", text)[1]

    return read


OTHER_BOUNDS = {"dataset": "p", "columns": COLUMNS | {"age": COLUMNS["age"] | {"upper": 90.0}}}
PAIRS = {
    "column of a proportion": (("smoker", "proportion", {}), ("hiv", "proportion", {})),
    "column of a count": (("smoker", "count", {}), ("hiv", "count", {})),
    "column of a mean": (("age", "mean", {}), ("weight", "mean", {})),
    "column of a median": (("age", "median", {}), ("weight", "median", {})),
    "groups": (("age", "mean", {"by": ("ward",)}), ("age", "mean", {"by": ("clinic",)})),
    "level": (("ward", "count", {"level": "a"}), ("ward", "count", {"level": "b"})),
    "condition": (("age", "count", {"between": (1, 3)}), ("age", "count", {"between": (1, 4)})),
    "another column's range": (("smoker", "count", {}), ("smoker", "count", {"schema": OTHER_BOUNDS})),
    "data set": (("smoker", "count", {}), ("smoker", "count", {"schema": SCHEMA | {"dataset": "q"}})),
}


NEW = pytest.mark.finding("server A", commit="8a7c0fb")
IN_THE_MODEL = ("groups", "level", "condition")
"""Told apart by the plan alone, then as now."""


@pytest.mark.parametrize("pair", [pytest.param(name, marks=() if name in IN_THE_MODEL else NEW) for name in PAIRS])
def test_fingerprint_on_the_plan_page_differs_for_another_question(page_digest, pair):
    one, other = (planned(target, model, **options) for target, model, options in PAIRS[pair])
    assert page_digest(one) != page_digest(other)


def test_fingerprint_differs_for_other_columns_of_a_covariance():
    three = SCHEMA | {"columns": COLUMNS | {"height": COLUMNS["age"]}}
    prints = {
        planned(None, "covariance", schema=three, columns=columns).fingerprint
        for columns in (("age", "weight"), ("age", "height"), ("weight", "height"))
    }
    assert len(prints) == 3


def test_fingerprint_differs_for_another_name_in_the_ledger():
    one, other = planned("smoker", "count"), planned("smoker", "count", dataset="q")
    assert one.fingerprint != other.fingerprint


def test_fingerprint_covers_the_units_of_a_response():
    plans = [planned("age", "linear", options={"response_bound": bound}) for bound in ((0, 50), (50, 100))]
    assert plans[0].fingerprint != plans[1].fingerprint


def test_fingerprint_is_that_of_plan_page_reservation_and_certificate(ledger, page_digest):
    plan = planned("age", "mean", by=("ward",))
    certificate = plan.release(frame(), ledger=ledger).certificate
    reserved = ledger.events("p")[1].payload
    assert page_digest(plan) == plan.fingerprint == reserved["fingerprint"] == certificate.fingerprint
    assert plan.to_dict()["fingerprint"] == plan.to_dict()["eligible"][0]["fingerprint"] == plan.fingerprint


def test_fingerprint_of_arrays_covers_plan_and_dataset_alone(ledger):
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(0.5, 1e-6), n=N)
    made = [od.release(plan, records, ledger=ledger, dataset="p") for records in (np.zeros(N), np.ones(N))]
    assert len({one.certificate.fingerprint for one in made}) == 1
    assert made[0].certificate.fingerprint != od.release(plan, np.zeros(N), dataset="q").certificate.fingerprint


def interrupted(ledger, plan, **options):
    """The entry of a release that was charged, and whose machine failed when the draw was to be made."""
    stopped = pytest.raises((RuntimeError, errors.Unfinished))
    with patch.object(od.Plan, "target", side_effect=RuntimeError), stopped:
        plan.release(frame(), ledger=ledger, **options)
    return next(event for event in reversed(ledger.events()) if event.kind == "reserved")


@pytest.mark.finding("server A", commit="8a7c0fb")
def test_resume_of_another_column_under_the_same_label_is_refused(ledger):
    plan = planned("smoker", "count")
    entry = interrupted(ledger, plan).entry
    records = od.read(frame(), od.Schema.from_dict(SCHEMA), target="hiv")
    with pytest.raises(errors.LedgerError, match="paid for another release"):
        od.release(plan.plan, records, ledger=ledger, label="count of smoker", resume=entry)
    assert [event.kind for event in ledger.events("p")][1:] == ["reserved"]
    records = od.read(frame(), od.Schema.from_dict(SCHEMA), target="smoker")
    od.release(plan.plan, records, ledger=ledger, label="count of smoker", resume=entry)


@pytest.mark.finding("server A", commit="8a7c0fb")
@pytest.mark.parametrize("change", ["target", "schema"])
def test_verify_rejects_a_question_the_ledger_was_not_charged_for(ledger, change):
    """An insider settles the reservation of one question with the certificate of another."""
    event = interrupted(ledger, planned("smoker", "count"))
    other = {"target": ("hiv", SCHEMA), "schema": ("smoker", OTHER_BOUNDS)}[change]
    honest = planned(other[0], "count", schema=other[1]).release(frame()).certificate
    document = honest.model_dump(mode="json")
    document["ledger"] = {"dataset": "p", "entry": event.entry, "head": event.hash}
    document["sentence"] = document["sentence"].replace(" Not recorded in any ledger.", "")
    forged = Certificate.model_validate(document)
    ledger.settle(Reservation(event.entry, "p", event.hash), forged.digest)
    assert od.verify(forged).answer == "consistent"
    with pytest.raises(errors.CertificateRejected, match="reserved with another"):
        od.verify(forged, ledger=ledger)


@pytest.mark.finding("server A", commit="8a7c0fb")
@pytest.mark.parametrize("where", [("data", "target"), ("data", "schema_digest")], ids=lambda where: where[-1])
def test_verify_rejects_another_target_or_schema_by_itself(where):
    document = planned("smoker", "count").release(frame()).certificate.model_dump(mode="json")
    value = {"target": "hiv", "schema_digest": od.Schema.from_dict(OTHER_BOUNDS).digest}[where[-1]]
    with pytest.raises(errors.CertificateRejected):
        od.verify(Certificate.model_validate(edited(document, where, value)))


@pytest.mark.finding("server B", commit="8a7c0fb")
def test_resume_of_a_foreign_reservation_pays_padded_work_once(ledger):
    """An approver reserves, a worker resumes: the reservation has paid for the first draw."""
    plan = planned("smoker", "logistic", mechanism="perturbed-mode")
    spent = interrupted(ledger, plan, timing="padded").payload
    names = {"gamma", "timing", "part", "seeded", "label"}
    named = {"plan_digest": spent["plan"]} if "plan" in spent else {"fingerprint": spent["fingerprint"]}
    promise = od.privacy.Promise.from_dict(spent["promise"])
    approved = ledger.reserve("p", promise, **{name: spent[name] for name in names}, **named)
    before = ledger.spent("p").gamma
    records = od.read(frame(), plan.asked.schema, target="smoker")
    released = {"ledger": ledger, "label": plan.asked.label, "timing": "padded", "resume": approved.entry}
    certificate = od.release(plan.plan, records, **released).certificate
    assert spent["timing"] > 0.0
    assert ledger.spent("p").gamma == before
    assert od.verify(certificate, ledger=ledger).answer == "authentic"
