"""Certificates and a ledger that onedraw wrote before certificate format 2 and ledger format 4 (kept/format-1.json)."""

import json
import sqlite3
import sys
from pathlib import Path

import pandas as pd
import pytest

import onedraw as od
from onedraw import errors
from onedraw.ledger.events import SQLITE
from onedraw.release.certificate import Certificate, certificate_from
from onedraw.release.timing import SILENT
from tests.release.cases import edited

KEPT = json.loads((Path(__file__).parent / "kept" / "format-1.json").read_text())
NAMES = ("released", "seeded", "alone")


@pytest.fixture
def ledger(tmp_path):
    """The stored ledger of format 3, with its hashes: two releases that were settled, one that was interrupted."""
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as connection:
        for statement in SQLITE:
            connection.execute(statement)
        connection.executemany("INSERT INTO onedraw_events VALUES (?, ?, ?, ?, ?, ?, ?)", KEPT["events"])
    connection.close()
    return od.Ledger.open(path)


@pytest.fixture
def kept(tmp_path):
    """A stored certificate as a file, with changes."""

    def write(name, **changes):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(json.loads(KEPT[name]) | changes))
        return path

    return write


@pytest.mark.parametrize("name", NAMES)
def test_certificate_of_format_1_is_read_and_written_as_it_was(kept, name):
    certificate = od.Release.load(kept(name)).certificate
    assert json.loads(certificate.to_json()) == json.loads(KEPT[name])
    assert certificate.seeded == (name == "seeded")
    assert od.verify(certificate).answer == "consistent"


@pytest.mark.parametrize("name", ["released", "seeded"])
def test_certificate_of_format_1_is_authentic_in_its_ledger_of_format_3(ledger, kept, name):
    assert ledger.verify().ok
    assert od.verify(kept(name), ledger=ledger).answer == "authentic"
    with pytest.raises(errors.CertificateRejected, match="digest"):
        od.verify(kept(name, prepared_at="2031-01-01T00:00:00+00:00"), ledger=ledger)


def test_prose_of_format_1_is_not_compared_and_never_repeated(kept):
    found = od.verify(kept("released", sentence="Exact: audited by NIST.", randomness="dice"))
    assert "NIST" not in found.sentence
    assert found.sentence.startswith("Exact: ")
    assert {"sentence", "randomness", "exactness_cost"} <= found.unchecked.keys()
    assert "Rely on the sentence printed here" in found.remarks[0]


@pytest.mark.parametrize("change", [{"n": 41}, {"plan_digest": "0" * 64}, {"neighbours": "none"}, {"lattice": 0.3}])
def test_edited_number_of_format_1_is_rejected(kept, change):
    with pytest.raises(errors.CertificateRejected):
        od.verify(kept("released", **change))


def test_removed_mark_of_format_1_does_not_make_a_seeded_draw_private(kept):
    """The seed is named in two places; with one of them taken out it still counts."""
    document = json.loads(KEPT["seeded"])
    for changes in ({"randomness": "dice"}, {"sentence": "Exact."}):
        certificate = certificate_from(document | changes)
        assert certificate.coverage().startswith("Not private")


def test_certificate_of_format_1_may_say_nothing_of_time():
    document = {name: value for name, value in json.loads(KEPT["alone"]).items() if name != "timing"}
    assert od.verify(certificate_from(document)).timing == SILENT


def test_certificate_of_format_1_with_fields_of_format_2_is_refused():
    for more in ({"wording": 1}, {"seeded": False}, {"neighbors": "replace-one, n public"}):
        with pytest.raises(ValueError, match=r"Extra inputs|Field required"):
            certificate_from(json.loads(KEPT["alone"]) | more)
    with pytest.raises(ValueError, match="format"):
        Certificate.model_validate(json.loads(KEPT["alone"]))


def test_certificate_of_format_1_is_not_authentic_under_a_reservation_of_format_4(tmp_path):
    """It names no question, and a reservation made by hand may name none either."""
    document = json.loads(KEPT["alone"])
    promise = od.privacy.Promise.from_dict(document["promise"]["native"])
    ledger = od.Ledger.open(tmp_path / "new.db", create=True)
    ledger.init("p", od.ApproxDP(5.0, 1e-5))
    spend = ledger.reserve("p", promise)
    document |= {"ledger": {"dataset": "p", "entry": spend.entry, "head": spend.head}}
    certificate = certificate_from(document)
    ledger.settle(spend, certificate.digest)
    with pytest.raises(errors.CertificateRejected, match="is of format 1"):
        od.verify(certificate, ledger=ledger)


def test_open_reservation_of_format_3_is_resumed_by_its_plan_and_label(ledger, monkeypatch):
    """As long as the sentences of its plan are those of today, which its digest covers: here they are taken to be."""
    (event,) = [event for event in ledger.events() if event.kind == "reserved"][2:]
    entry = event.entry
    schema = od.Schema.from_dict(KEPT["schema"])
    frame = pd.DataFrame({"smoker": ["no", "yes"] * 20, "hiv": ["no"] * 40})
    planned = od.plan(schema, "smoker", "proportion", epsilon=1.0, n=40)
    for module in ("release", "verification"):
        digests = {1.0: event.payload["plan"], 0.5: "0" * 64}
        monkeypatch.setattr(
            sys.modules[f"onedraw.release.{module}"],
            "digest_of",
            lambda plan, of=digests: of[plan["budget"]["epsilon"]],
        )
    asked = {"ledger": ledger, "resume": entry}
    records = od.read(frame, schema, target="smoker")
    with pytest.raises(errors.LedgerError, match="label differ"):
        od.release(planned.plan, records, label="proportion of hiv", **asked)
    smaller = od.plan(schema, "smoker", "proportion", epsilon=0.5, n=40)
    with pytest.raises(errors.LedgerError, match="question, promise differ"):
        od.release(smaller.plan, records, label="proportion of smoker", **asked)
    certificate = od.release(planned.plan, records, label="proportion of smoker", **asked).certificate
    assert od.verify(certificate, ledger=ledger).answer == "authentic"
    assert [event.kind for event in ledger.events()].count("reserved") == 3


def test_report_of_format_1_shows_todays_sentences(kept, tmp_path):
    path = kept("released", sentence="Exact: audited by NIST.", numeric_model="by hand", unit="nobody")
    od.Release.load(path).report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text().partition("{&#34;")[0]
    shown = page.partition("<pre")[0]
    assert not [words for words in ("NIST", "by hand", "nobody,") if words in shown]
    with pytest.raises(errors.CertificateRejected):
        od.verify(certificate_from(edited(json.loads(path.read_text()), ("promise", "epsilon"), 0.5)))


# ── fits of before, by perturbed modes with corners ──────────────────────────────────────────────────────────────────

FITS = json.loads((Path(__file__).parent / "kept" / "perturbed-mode.json").read_text())
"""Written by an earlier version: a fit with Gaussian noise, one with pure noise, and the ledger that both were charged to."""


@pytest.mark.parametrize("name", ["gaussian", "pure"])
def test_fit_that_can_no_longer_be_planned_is_refused_with_the_remedy(tmp_path, name):
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(FITS[name]))
    with pytest.raises(errors.CertificateRejected, match=r"earlier version .* Verify it with the version that made it"):
        od.verify(path)
    assert od.Release.load(path).certificate.sentence.startswith("Proven: ")


def test_ledger_goes_on_counting_fits_of_before(tmp_path):
    """The Gaussian one at least at the ε it was booked at; both together at least at the larger, and not much more than their sum."""
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as connection:
        for statement in SQLITE:
            connection.execute(statement)
        connection.executemany("INSERT INTO onedraw_events VALUES (?, ?, ?, ?, ?, ?, ?)", FITS["events"])
    connection.close()
    od.Ledger.restore(path, accept_lost_spends=True)  # it comes without its mark
    ledger = od.Ledger.open(path)
    assert ledger.verify().ok
    native = [od.privacy.Promise.from_dict(FITS[name]["promise"]["native"]) for name in ("gaussian", "pure")]
    assert isinstance(native[0], od.privacy.CornerDP)
    booked = FITS["gaussian"]["promise"]["epsilon"]
    assert native[0].epsilon(1e-6) == pytest.approx(booked, rel=1e-6)
    for promise in native:
        assert od.privacy.compose(*native).delta(1.5) >= promise.delta(1.5)
    spent = ledger.spent("d").epsilon(1e-6)
    assert booked + 0.5 < spent <= 2.1
