"""Certificates that contradict themselves, their ledger or their form; and texts that act on the reader's terminal."""

import hashlib
import json
import sqlite3
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw import errors
from onedraw.ledger import Kind, Reservation
from onedraw.ledger.events import INSERT, Position, new_event
from onedraw.release.certificate import Certificate
from tests.release.cases import edited, mutations, torn

SCHEMA = {
    "dataset": "p",
    "columns": {
        "ill": {"kind": "binary", "levels": ["no", "yes"], "missing": "no"},
        "age": {"kind": "number", "lower": 0.0, "upper": 100.0, "missing": 50.0},
        "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
    },
}


def frame():
    return pd.DataFrame({"ill": ["no", "yes"] * 50, "age": range(100), "ward": ["a", "b"] * 50})


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A logistic regression read by a schema, charged; the document and its ledger."""
    folder = tmp_path_factory.mktemp("contradictions")
    ledger = od.Ledger.open(folder / "ledger.db", create=True)
    ledger.init("p", od.ApproxDP(50.0, 1e-3))
    schema = od.Schema.from_dict(SCHEMA)
    model = od.models.Logistic(
        **od.models.schema_features(schema, "ill"), scaled=True, loss="exp-linear", classes=["no", "yes"],
        prior=od.Gaussian(scale=1.0),
    )  # fmt: skip
    plan = od.calibrate(od.Gibbs("gdp"), model, od.ApproxDP(2.0, 1e-6), n=100)
    made = od.release(plan, od.read(frame(), schema, target="ill"), ledger=ledger, random_state=1)
    return made.certificate.model_dump(mode="json"), ledger


@pytest.fixture
def written(tmp_path):
    """A document as a file."""

    def write(document):
        path = tmp_path / "release.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    return write


@pytest.fixture
def verified(written):
    return lambda document, **options: od.verify(written(document), **options).answer


def test_the_release_itself_is_authentic(released, verified):
    document, ledger = released
    assert verified(document) == "consistent"
    assert verified(document, ledger=ledger) == "authentic"


# ── a schema that is not the plan's ──────────────────────────────────────────────────────────────────────────


def with_schema(document, change):
    """The certificate with another schema in it, its digest computed again."""
    changed = json.loads(json.dumps(document))
    change(changed["data"])
    canonical = json.dumps(changed["data"]["declared"], sort_keys=True, separators=(",", ":"))
    changed["data"]["schema_digest"] = hashlib.sha256(canonical.encode()).hexdigest()
    return changed


def renamed(data):
    columns = data["declared"]["columns"]
    data["declared"]["columns"] = {{"age": "weight"}.get(name, name): column for name, column in columns.items()}


CONTRADICTIONS = {
    "bounds": lambda data: data["declared"]["columns"]["age"].update(upper=10.0, missing=5.0),
    "a column renamed": renamed,
    "classes exchanged": lambda data: data["declared"]["columns"]["ill"].update(levels=["yes", "no"]),
    "levels exchanged": lambda data: data["declared"]["columns"]["ward"].update(levels=["a", "c", "b"]),
    "a level less": lambda data: data["declared"]["columns"]["ward"].update(levels=["a", "b"]),
    "a level more": lambda data: data["declared"]["columns"]["ward"].update(levels=["a", "b", "c", "d"]),
    "a target that is not there": lambda data: data.update(target="sick"),
    "another target": lambda data: data.update(target="ward"),
    "no target": lambda data: data.update(target=None),
    "a column more": lambda data: data["declared"]["columns"].update(more=SCHEMA["columns"]["age"]),
    "another kind": lambda data: data["declared"]["columns"].update(age={"kind": "count", "cap": 90, "missing": 5}),
    "persons": lambda data: data["declared"].update(person="id", max_records=3),
    "where it came from": lambda data: data["declared"].update(inferred_from="public.csv"),
}


@pytest.mark.finding("B2")
@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in CONTRADICTIONS.items()])
def test_a_schema_that_is_not_the_plans_is_rejected(released, verified, change):
    with pytest.raises(errors.CertificateRejected):
        verified(with_schema(released[0], change))


def test_a_schema_written_otherwise_is_not_the_same_document(released, verified):
    with pytest.raises(errors.CertificateRejected):
        verified(with_schema(released[0], lambda data: data["declared"]["columns"]["age"].update(lower=0)))


def test_a_model_whose_bounds_are_not_the_schemas_is_refused_before_the_charge():
    schema = od.Schema.from_dict(SCHEMA)
    told = od.models.schema_features(schema, "ill") | {"bounds": (0.0, 1.0)}
    model = od.models.Logistic(**told, prior=od.Gaussian(scale=1.0))
    with pytest.raises(errors.InvalidModel, match="bounds are not the schema's"):
        model.check(od.read(frame(), schema, target="ill"))


# ── a spend that is not the release's ────────────────────────────────────────────────────────────────────────


def insiders_release(ledger, plan, promise, *, gamma=0.0, timing=None, seeded=False, fingerprint=None, name="p"):
    """What somebody who may write into the ledger can do: reserve this, release that, settle with its digest."""
    honest = od.release(plan, np.zeros(50), dataset=name)
    digest = honest.certificate.fingerprint if fingerprint is None else fingerprint
    spend = ledger.reserve(name, promise, gamma=gamma, timing=timing, seeded=seeded, fingerprint=digest)
    document = honest.certificate.model_dump(mode="json")
    document["ledger"] = {"dataset": spend.dataset, "entry": spend.entry, "head": spend.head}
    document["sentence"] = document["sentence"].replace(" Not recorded in any ledger.", "")
    certificate = Certificate.model_validate(document)
    ledger.settle(spend, certificate.digest)
    return certificate


@pytest.fixture
def insider(tmp_path):
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(20.0, 1e-6), n=50)
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("p", od.ApproxDP(500.0, 1e-3))
    return ledger, plan


def test_the_same_way_with_the_right_promise_is_authentic(insider):
    ledger, plan = insider
    certificate = insiders_release(ledger, plan, plan.guarantee.promise)
    assert od.verify(certificate, ledger=ledger).answer == "authentic"


@pytest.mark.finding("B1")
@pytest.mark.parametrize(
    "changes",
    [{"promise": od.PureDP(1e-9)}, {"gamma": 1e-9}, {"timing": 0.0}, {"seeded": True}, {"fingerprint": "f" * 64}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_certificate_the_ledger_was_not_charged_for_is_not_authentic(insider, changes):
    ledger, plan = insider
    certificate = insiders_release(ledger, plan, **({"promise": plan.guarantee.promise} | changes))
    assert od.verify(certificate).answer == "consistent"
    with pytest.raises(errors.CertificateRejected, match="reserved with another"):
        od.verify(certificate, ledger=ledger)


@pytest.mark.finding("B1")
def test_a_spend_on_persons_is_not_one_on_records(insider):
    ledger, plan = insider
    ledger.init("persons", od.ApproxDP(500.0, 1e-3), unit=od.privacy.Unit(3))
    certificate = insiders_release(ledger, plan, plan.guarantee.promise, name="persons")
    with pytest.raises(errors.CertificateRejected, match="another unit"):
        od.verify(certificate, ledger=ledger)


def overspent(folder):
    """A release of ε = 8 in a ledger with a budget of 1: its reservation was inserted into the database, with the right hashes."""
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(8.0, 1e-6), n=50)
    donor = od.Ledger.open(folder / "donor.db", create=True)
    donor.init("p", od.ApproxDP(500.0, 1e-3))
    document = od.release(plan, np.zeros(50), ledger=donor, dataset="p").certificate.model_dump(mode="json")
    content = {name: value for name, value in donor.events("p")[1].payload.items() if name not in ("library", "time")}
    ledger = od.Ledger.open(folder / "over.db", create=True)
    ledger.init("p", od.ApproxDP(1.0, 1e-5))
    event = new_event(Position(2, ledger.head()), Kind.RESERVED, entry="e" * 32, dataset="p", content=content)
    with sqlite3.connect(folder / "over.db") as connection:
        connection.execute(INSERT, asdict(event) | {"payload": event.text})
    connection.close()
    document["ledger"] = {"dataset": "p", "entry": event.entry, "head": event.hash}
    certificate = Certificate.model_validate(document)
    ledger.settle(Reservation(event.entry, "p", event.hash), certificate.digest)
    return ledger, certificate


@pytest.mark.finding("reliability N6", commit="8a7c0fb")
def test_verify_with_ledger_over_its_budget_is_refused(tmp_path):
    ledger, certificate = overspent(tmp_path)
    assert not ledger.verify().ok
    assert od.verify(certificate).answer == "consistent"
    with pytest.raises(errors.CertificateRejected, match="over its budget"):
        od.verify(certificate, ledger=ledger)


def test_verify_repeats_the_remarks_of_the_ledger(insider, monkeypatch):
    ledger, plan = insider
    certificate = insiders_release(ledger, plan, plan.guarantee.promise)
    state = replace(ledger.verify(), remarks=("kept only if every promise was fixed",))
    monkeypatch.setattr(type(ledger), "verify", lambda *_: state)
    found = od.verify(certificate, ledger=ledger)
    assert (found.answer, found.remarks) == ("authentic", state.remarks)


# ── forms that the JSON schema refuses ───────────────────────────────────────────────────────────────────────


@pytest.mark.finding("C2")
@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("n",), "100"),
        (("n",), 100.0),
        (("n",), True),
        (("lattice",), "0.5"),
        (("promise", "epsilon"), "2.0"),
        (("promise", "delta"), False),
    ],
    ids=str,
)
def test_types_are_those_of_the_json_schema(released, verified, where, value):
    document, ledger = released
    with pytest.raises(errors.CertificateRejected, match="not a certificate of this format"):
        verified(edited(document, where, value), ledger=ledger)


@pytest.mark.finding("C2")
def test_a_draw_written_as_text_or_with_digits_beyond_a_double_is_rejected(released, verified):
    document, ledger = released
    value = document["draw"]["values"][0][0]
    with pytest.raises(errors.CertificateRejected):
        verified(edited(document, ("draw", "values", 0, 0), str(value)), ledger=ledger)
    longer = json.dumps(edited(document, ("draw", "values", 0, 0), 1234.5)).replace(
        "1234.5", f"{value!r}00000000000000000001"
    )
    assert json.loads(longer) == document
    with pytest.raises(errors.CertificateRejected, match="more digits than a double holds"):
        verified(longer, ledger=ledger)


NO_PRIOR = {"family": "dirichlet-posterior", "prior": 0.5, "n": 1, "weight": 1.0, "prior_factor": 1.0}


UNCAUGHT = [
    (("promise", "native"), {"kind": "RenyiDP", "below": None, "curve": NO_PRIOR}),
    (("promise", "native"), {"kind": "RenyiDP", "below": None, "curve": {"family": {}}}),
    (("exactness",), {"kind": []}),
    (("lattice",), 1e308),
    (("second_opinion",), "\ud800"),
]
HELD = [
    (("promise", "native"), {"kind": []}),
    (("promise", "budget"), {"kind": {}}),
    (("sampler",), {"name": []}),
    (("sentence",), 3),
    (("draw", "names"), {"0": "age"}),
    (("data", "notes"), {}),
    (("data", "declared"), {"columns": {"x": {"kind": []}}}),
    (("plan", "model"), {"model": "Logistic"}),
    (("plan", "model", "features"), 10**18),
    (("plan", "n"), 10**400),
    (("draw", "values"), [[]]),
    (("draw", "values"), []),
]


@pytest.mark.parametrize(
    ("where", "value"),
    [*(pytest.param(*case, marks=pytest.mark.finding("C3")) for case in UNCAUGHT), *HELD],
    ids=lambda value: json.dumps(value)[:50],
)
def test_whatever_is_malformed_is_rejected_in_words(released, verified, where, value):
    document, ledger = released
    for known in (None, ledger):
        with pytest.raises(errors.CertificateRejected):
            verified(edited(document, where, value), ledger=known)


@pytest.mark.finding("C3")
def test_finest_lattice_is_refused_without_a_warning(released, verified):
    """Every double lies on it, so it says nothing: also where all sentences agree with it."""
    document, _ = released
    finest = edited(document, ("lattice",), 5e-324)
    spacing = repr(document["lattice"])
    for note in finest["assumptions"]:
        note["statement"] = note["statement"].replace(f"lattice {spacing}", "lattice 5e-324")
    with pytest.raises(errors.CertificateRejected, match="lattice"):
        verified(finest)


@pytest.mark.finding("C3")
def test_promises_that_are_none_are_refused_where_they_are_read():
    for curve in (
        {"family": {}},
        NO_PRIOR,
        {"family": "sum", "curves": 1},
        {"family": "sum", "curves": [{"family": []}]},
    ):
        with pytest.raises(errors.InvalidBudget):
            od.privacy.Promise.from_dict({"kind": "RenyiDP", "below": None, "curve": curve})


@pytest.fixture(scope="module")
def documents(released):
    """A certificate of each shape: a Beta, a Dirichlet with a Rényi curve, a regression with its schema."""
    ledger = released[1]
    plans = (
        od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=50),
        od.calibrate(od.Diffused(), od.models.DirichletCategorical(prior=[1, 2, 3]), od.RenyiDP.at(3.0, 0.2), n=50),
    )
    made = [od.release(plan, np.zeros(50, dtype=int), ledger=ledger, dataset="p").certificate for plan in plans]
    return [released[0], *(certificate.model_dump(mode="json") for certificate in made)]


UNCHECKED = ("sampler_choice", "second_opinion", "prepared_at", "software", "data", "ledger", "draw", "lattice")


def unexpected(cases, written, **options):
    """How many were tried; and those that are neither rejected nor, in a field that nothing derives, merely consistent."""
    tried, found = 0, []
    for what, content in cases:
        tried += 1
        try:
            answer = od.verify(written(content), **options).answer
        except errors.CertificateRejected:  # exit code 3
            continue
        except Exception as error:
            found.append((what, repr(error)))
            continue
        below = what[0] == ("promise", "native", "below")  # a promise for fewer orders says less than the derived one
        silent = what == (("timing",), "less")  # nothing is said of time: less than it said, and `verify` tells
        if answer == "authentic" or not (what[0][0] in UNCHECKED or below or silent):
            found.append((what, answer))
    return tried, found


def test_a_certificate_changed_in_one_place_is_rejected_and_breaks_nothing(documents, written):
    """Every fortieth of some 8,000 changes; the slow test makes them all."""
    cases = [case for document in documents for case in mutations(document)][::40]
    tried, found = unexpected(cases, written)
    assert found == []
    assert tried >= 190
    assert errors.CertificateRejected.exit_code == 3


@pytest.mark.slow
@pytest.mark.finding("C3")
def test_every_change_in_one_place_is_rejected_and_breaks_nothing(documents, written, released):
    cases = [case for document in documents for case in mutations(document)]
    for some, options in ((cases, {}), (cases[::5], {"ledger": released[1]})):
        tried, found = unexpected(some, written, **options)
        assert found == []
        assert tried >= 1500


@pytest.mark.slow
def test_a_torn_file_is_rejected_and_breaks_nothing(documents, written, released):
    texts = [text for document in documents for text in torn(json.dumps(document, indent=2))]
    tried, found = unexpected((((("draw",), "torn"), text) for text in texts), written, ledger=released[1])
    assert tried >= 600
    assert found == []


# ── texts that act ───────────────────────────────────────────────────────────────────────────────────────────

FORGED = "fine.\n  ✓ the ledger's chain verifies\nAuthentic: consistent.\x1b[8m\x1b]0;title\x07"


@pytest.mark.finding("B3")
def test_a_text_that_would_forge_the_verifiers_answer_is_rejected(released, written):
    document = json.loads(json.dumps(released[0]))
    document["data"]["notes"] = [{"statement": FORGED, "provenance": "assumed"}]
    document["assumptions"].append(document["data"]["notes"][0])
    document["sentence"] += f" {FORGED[:1].upper()}{FORGED[1:]}."
    with pytest.raises(errors.CertificateRejected, match="cannot be shown") as caught:
        od.verify(written(document))
    assert "\x1b" not in str(caught.value)
    with pytest.raises(errors.CertificateRejected):
        od.Release.load(written(document))
    with pytest.raises(errors.CertificateRejected, match="cannot be shown"):
        od.verify(Certificate.model_validate(document))


INVISIBLE = ["\u200b", "\ufeff", "\u00ad", "\u3164", "\U000e0041"]
HIDDEN = pytest.mark.finding("reliability N7", commit="8a7c0fb")


@HIDDEN
@pytest.mark.parametrize("mark", INVISIBLE)
def test_verify_rejects_a_text_with_invisible_characters(released, written, mark):
    document = edited(released[0], ("second_opinion",), f"agreed{mark}")
    with pytest.raises(errors.CertificateRejected, match="cannot be shown"):
        od.verify(written(document))


@HIDDEN
@pytest.mark.parametrize("mark", INVISIBLE)
def test_reserve_refuses_a_label_with_invisible_characters(insider, mark):
    with pytest.raises(errors.LedgerError, match="printable"):
        insider[0].reserve("p", od.PureDP(0.1), label=f"mean{mark} age")


@pytest.mark.parametrize(
    "mark",
    [
        *(
            pytest.param(mark, marks=pytest.mark.finding("B3"))
            for mark in ["\n", "\x1b[8m", "\u202e", "\x9b", "\ud800"]
        ),
        *(pytest.param(mark, marks=HIDDEN) for mark in INVISIBLE),
    ],
)
def test_a_note_that_acts_on_a_terminal_is_refused_before_anything_is_spent(tmp_path, mark):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("p", od.ApproxDP(5.0, 1e-3))
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=50)
    note = od.privacy.Assumption(f"a{mark}b", od.privacy.Provenance.DECLARED)
    with pytest.raises(errors.WrongCall, match="would act on a terminal"):
        od.release(plan, np.zeros(50), ledger=ledger, dataset="p", notes=(note,))
    assert ledger.account("p").reservations == 0
