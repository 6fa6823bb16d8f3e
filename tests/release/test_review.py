"""What is said of a release beside its promise: how strong it is, what was checked, and never that it may be published."""

from __future__ import annotations

import numpy as np
import pytest

import onedraw as od
from onedraw.ledger import Ledger
from onedraw.privacy import Assumption, Provenance
from onedraw.release.review import Tone, cautions, coverage, flags_of, strength_flags


def released(**options):
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=100)
    return od.release(plan, np.arange(100) % 2, **options)


def tones(flags):
    return {flag.words: flag.tone for flag in flags}


@pytest.mark.parametrize(
    ("epsilon", "tone"),
    [
        (1.0, Tone.PLAIN),
        (1.0986, Tone.PLAIN),
        (1.2, Tone.AMBER),
        (2.1972, Tone.AMBER),
        (2.25, Tone.RED),
        (100.0, Tone.RED),
    ],
)
def test_strength_follows_the_guesses_of_the_attacker(epsilon, tone):
    """A pure ε allows e^ε/(1+e^ε) right guesses: 75 of 100 at log 3, 90 at log 9."""
    (flag,) = strength_flags(od.PureDP(epsilon), 0.0, 10**9)
    assert flag.tone == tone


@pytest.mark.parametrize(
    ("n", "found"), [(99, None), (100, Tone.AMBER), (999, Tone.AMBER), (1000, Tone.RED), (10**6, Tone.RED)]
)
def test_delta_is_flagged_by_its_size_beside_n(n, found):
    flags = strength_flags(od.ApproxDP(1.0, 1e-3), 1e-3, n)[1:]
    assert [flag.tone for flag in flags] == ([] if found is None else [found])
    assert all("δ × n" in flag.words for flag in flags)


def test_only_what_was_checked_is_green():
    certificate = released().certificate
    unchecked = flags_of(certificate, verified=None, intervals=[True])
    assert Tone.CHECKED not in tones(unchecked).values()
    assert tones(unchecked)["Not verified"] == Tone.RED
    checked = tones(flags_of(certificate, verified="consistent", intervals=[True, False]))
    assert checked["Numbers derived again"] == checked["Exact"] == Tone.CHECKED
    assert checked["Not in a ledger"] == checked["Some numbers without an interval"] == Tone.AMBER
    assert tones(flags_of(certificate, verified="consistent", intervals=[False]))["No interval"] == Tone.AMBER


def test_ledger_is_green_only_if_it_was_asked(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(3.0, 1e-5))
    certificate = released(ledger=ledger, dataset="patients").certificate
    for answer, tone in (("authentic", Tone.CHECKED), ("consistent", Tone.PLAIN)):
        assert tones(flags_of(certificate, verified=answer, intervals=[True]))["In the ledger of patients"] == tone


def test_coverage_names_the_files_and_who_decides():
    assert coverage(released().certificate, "a.json") == (
        "The guarantee covers a.json. Whether ε = 1 with δ = 10⁻⁶ (54 of 100 guesses) is acceptable is for the data owner to "
        "decide. Do not publish the records, the ledger or the output of --check."
    )
    assert cautions(released().certificate) == []
    promise = released().certificate.promise.model_copy(update={"native": od.PureDP(3.0).to_dict()})
    weak = released().certificate.model_copy(update={"promise": promise})
    assert cautions(weak) == ["Caution: Weak protection: at most 96 of 100 guesses right."]


def test_coverage_of_a_seeded_release_is_nothing():
    certificate = released(random_state=1).certificate
    assert certificate.coverage().startswith("Not private: this release comes from a fixed seed")
    flags = tones(flags_of(certificate, verified="consistent", intervals=[True]))
    assert flags["Not private: seeded"] == Tone.RED
    assert not any("guesses" in words for words in flags)


def test_coverage_names_what_is_assumed():
    note = Assumption("the bounds were chosen by looking at the records", Provenance.ASSUMED)
    assert "but not how the records were used before" in released(notes=(note,)).certificate.coverage()


def test_flags_ignore_the_prose_of_the_certificate():
    """A title or note that repeats a warning's words turns nothing red, and a reworded sentence nothing green."""
    certificate = released(random_state=1).certificate
    reworded = certificate.model_copy(update={"sentence": "A sentence without any warning."})
    assert coverage(reworded, "a.json") == coverage(certificate, "a.json")
    plain = released().certificate
    shouting = plain.model_copy(update={"sentence": "SEEDED: REPRODUCIBLE, NOT PRIVATE. NOT PROVEN, as published: "})
    assert coverage(shouting, "a.json") == coverage(plain, "a.json")
