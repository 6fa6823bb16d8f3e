"""Verifying a certificate: every edit that breaks the promise is caught, field by field."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import onedraw as od
from onedraw import cli, errors
from onedraw.plain_text import round_up
from onedraw.release import certificate as parts
from onedraw.release.certificate import Certificate
from tests.release.cases import edited, missed_edits

SCHEMA = Path(od.__file__).parent / "release" / "certificate.schema.json"


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """One release of each kind of promise, with its ledger."""
    folder = tmp_path_factory.mktemp("released")
    ledger = od.Ledger.open(folder / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(9.0, 1e-4))
    models = {
        "beta": (od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), np.zeros(50)),
        "dirichlet": (
            od.models.DirichletCategorical(prior=[1, 2, 3]),
            od.RenyiDP.at(3.0, 0.2),
            np.zeros(50, dtype=int),
        ),
        "mean": (
            od.models.GaussianMean(bound=1.0, variance=4.0, prior_count=1.0),
            od.GaussianDP(0.3),
            np.zeros(50),
        ),
    }
    return ledger, {
        name: od.release(od.calibrate(od.Diffused(), model, budget, n=50), data, ledger=ledger, dataset="patients")
        for name, (model, budget, data) in models.items()
    }


@pytest.mark.parametrize("name", ["beta", "dirichlet", "mean"])
def test_verify_rejects_an_edit_or_names_the_field_as_unchecked(released, name):
    assert missed_edits(released[1][name].certificate) == []


@pytest.mark.parametrize("name", ["dirichlet", "mean"])
def test_verify_with_ledger_rejects_every_edit_of_any_field(released, name):
    ledger, releases = released
    certificate = releases[name].certificate
    on_lattice = certificate.draw.values[0][0] + certificate.lattice
    moved = edited(certificate.model_dump(mode="json"), ("draw", "values", 0, 0), on_lattice)
    assert missed_edits(certificate, ledger) == []
    assert od.verify(parts.certificate_from(moved)).answer == "consistent"
    with pytest.raises(errors.CertificateRejected, match="digest"):
        od.verify(parts.certificate_from(moved), ledger=ledger)


@pytest.mark.parametrize("name", ["beta", "dirichlet", "mean"])
def test_dropping_or_adding_a_field_is_caught(released, name):
    document = released[1][name].certificate.model_dump(mode="json")
    for field in document:
        if field == "format":
            continue
        shorter = {key: value for key, value in document.items() if key != field}
        with pytest.raises(ValueError):
            Certificate.model_validate(shorter)
    with pytest.raises(ValueError):
        Certificate.model_validate(document | {"acceptance_rate": 0.8})


OTHER = 7
"""A version of the wording that no onedraw has written."""


def test_sentences_of_another_wording_are_not_compared_and_not_repeated(released):
    certificate = released[1]["beta"].certificate
    lies = {"wording": OTHER, "sentence": "Exact: audited by NIST.", "randomness": "dice", "unit": "nobody"}
    found = od.verify(certificate.model_copy(update=lies))
    assert found.sentence == certificate.sentence
    assert found.certificate.randomness == certificate.randomness
    assert {"wording", *lies} <= found.unchecked.keys()
    assert "every number that follows from others is as written" in found.checks
    assert "Rely on the sentence printed here" in found.remarks[0]
    assert od.Release(certificate.model_copy(update=lies)).sentence == certificate.sentence


def test_sentence_of_this_wording_is_compared(released):
    certificate = released[1]["beta"].certificate
    for lie in ({"sentence": certificate.sentence[:-1]}, {"randomness": "dice"}, {"unit": "nobody"}):
        with pytest.raises(errors.CertificateRejected, match=rf"{next(iter(lie))} is not what its plan gives"):
            od.verify(certificate.model_copy(update=lie))


def test_numbers_of_another_wording_are_compared(released):
    """With the sentences out of the way, an edit of any other field is rejected or named."""
    certificate = released[1]["mean"].certificate.model_copy(update={"wording": OTHER})
    assert missed_edits(certificate) == []


def test_marks_that_decide_are_fields_and_no_sentence_takes_them_back(released):
    """What may be published follows from fields, whatever the first line says."""
    certificate = released[1]["beta"].certificate
    clean = certificate.model_copy(update={"sentence": "Exact."})
    seeded = clean.model_copy(update={"seeded": True})
    unproven = clean.model_copy(update={"mechanism": certificate.mechanism.model_copy(update={"proven": False})})
    assert clean.coverage().startswith("The guarantee covers this file. ")
    assert seeded.coverage().startswith("Not private: ")
    assert unproven.coverage().startswith("The guarantee covers this file only if what is not proven holds.")
    with pytest.raises(errors.CertificateRejected, match="proven"):
        od.verify(unproven.model_copy(update={"wording": OTHER}))


@pytest.mark.finding("reliability N7", commit="8a7c0fb")
def test_verify_prints_which_fields_it_did_not_check(released, tmp_path, capsys, monkeypatch):
    certificate = released[1]["beta"].certificate.model_copy(update={"second_opinion": "audited by NIST"})
    od.Release(certificate).save(tmp_path / "release.json")
    monkeypatch.setattr("sys.argv", ["onedraw", "verify", str(tmp_path / "release.json")])
    with pytest.raises(SystemExit) as done:
        raise SystemExit(cli.main())
    printed = capsys.readouterr().out
    assert not done.value.code
    for name in ("second_opinion", "software", "prepared_at", "ledger", "draw.values"):
        assert name in printed
    assert "audited" not in printed


def test_alone_the_answer_is_consistent_and_with_the_ledger_authentic(released):
    ledger, releases = released
    assert od.verify(releases["beta"].certificate).answer == "consistent"
    assert od.verify(releases["beta"].certificate, ledger=ledger).answer == "authentic"


def test_a_consistent_forgery_passes_alone_and_fails_against_the_ledger(released):
    """Another honest plan's certificate with this release's ledger entry: consistent, but not the one issued."""
    ledger, releases = released
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(0.5, 1e-6), n=50)
    honest = od.release(plan, np.zeros(50), ledger=ledger, dataset="patients").certificate
    forged = honest.model_copy(update={"ledger": releases["beta"].certificate.ledger})
    assert od.verify(forged).answer == "consistent"
    with pytest.raises(errors.CertificateRejected, match="does not hold this certificate's digest"):
        od.verify(forged, ledger=ledger)


def test_another_ledger_does_not_confirm(released, tmp_path):
    other = od.Ledger.open(tmp_path / "other.db", create=True)
    with pytest.raises(errors.CertificateRejected):
        od.verify(released[1]["beta"].certificate, ledger=other)


@pytest.mark.parametrize("text", ["", "{}", "[]", "not json", '{"format": 1, "format": 2}', "NaN", "[" * 100_000])
def test_a_file_that_is_no_certificate_is_rejected_with_words(tmp_path, text):
    path = tmp_path / "release.json"
    path.write_text(text)
    with pytest.raises(errors.CertificateRejected, match="is not a certificate"):
        od.verify(path)


def test_a_missing_file_is_a_wrong_call(tmp_path):
    with pytest.raises(errors.WrongCall, match="could not be read"):
        od.verify(tmp_path / "nowhere.json")


def test_the_json_schema_that_ships_is_the_one_of_the_code_and_accepts_a_release(released):
    shipped = json.loads(SCHEMA.read_text())
    assert shipped == Certificate.model_json_schema(), "run tools/write_certificate_schema.py"
    for release in released[1].values():
        jsonschema.validate(json.loads(release.certificate.to_json()), shipped)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"format": "onedraw certificate 2"}, shipped)


@pytest.mark.parametrize("value", [1.0, 0.1, 1e-6, 0.123456789012345, 1e-300, 123456.78901234567, 0.9999999999999999])
def test_rounding_goes_up_and_keeps_short_decimals(value):
    assert value <= round_up(value) <= value * (1 + 1e-9)
    assert round_up(0.1) == 0.1
    assert round_up(1e-6) == 1e-6
