"""Unit: what stands beside a promise on a certificate, and how exact a draw says it is."""

import json

import pytest

from onedraw.errors import InvalidBudget
from onedraw.privacy import (
    ApproxDP,
    Assumed,
    Assumption,
    Estimated,
    Exact,
    Exactness,
    GaussianDP,
    Guarantee,
    LastIterate,
    Neighbours,
    Provenance,
    PureDP,
    Unit,
    WithinTV,
)

GUARANTEE = Guarantee(
    ApproxDP(1.0, 1e-5),
    Neighbours.REPLACE_ONE,
    Unit(3),
    "Geumlek et al. 2017, Algorithm 2",
    (Assumption("records are clamped to [0, 1]", Provenance.ENFORCED),),
)


def test_a_guarantee_survives_json():
    assert Guarantee.from_dict(json.loads(json.dumps(GUARANTEE.to_dict()))) == GUARANTEE
    assert hash(GUARANTEE) == hash(Guarantee.from_dict(GUARANTEE.to_dict()))


def test_a_guarantee_reads_as_words():
    assert str(GUARANTEE) == (
        "(ε = 1, δ = 1e-05); neighbours: replace-one, n public; unit: one person, who contributes at most 3 "
        "records; by Geumlek et al. 2017, Algorithm 2"
    )
    assert str(GUARANTEE.assumptions[0]) == "records are clamped to [0, 1] (enforced)"
    assert Unit().sentence == "one record"
    assert Unit().words(person=True) == "one person, who contributes one record"


def test_words_from_a_file_become_members():
    guarantee = Guarantee(PureDP(1.0), "replace-one, n public", Unit(), "a theorem", [])
    assert guarantee.neighbours is Neighbours.REPLACE_ONE
    assert guarantee.assumptions == ()
    assert Assumption("x", "declared").provenance is Provenance.DECLARED


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Guarantee(1.0, Neighbours.REPLACE_ONE, Unit(), "a theorem"),
        lambda: Guarantee(PureDP(1.0), "add-remove", Unit(), "a theorem"),
        lambda: Guarantee(PureDP(1.0), Neighbours.REPLACE_ONE, 1, "a theorem"),
        lambda: Guarantee(PureDP(1.0), Neighbours.REPLACE_ONE, Unit(), " "),
        lambda: Guarantee(PureDP(1.0), Neighbours.REPLACE_ONE, Unit(), "a theorem", ("hope",)),
        lambda: Assumption("", Provenance.PROVED),
        lambda: Assumption("x", "hoped"),
        lambda: Unit(0),
        lambda: Unit(1.5),
        lambda: Guarantee.from_dict(GUARANTEE.to_dict() | {"extra": 1}),
        lambda: Guarantee.from_dict({"promise": PureDP(1.0).to_dict()}),
        lambda: Unit.from_dict({}),
    ],
)
def test_a_guarantee_with_a_hole_in_it_is_refused(wrong):
    with pytest.raises(InvalidBudget):
        wrong()


@pytest.mark.parametrize(
    ("exactness", "words"),
    [
        (Exact(), "exact draw"),
        (Exact("real-number sampler"), "exact draw (real-number sampler)"),
        (WithinTV(1e-11), "proven to be within total variation 1e-11 of an exact draw"),
        (LastIterate(GaussianDP(0.5)), "last iterate, itself proven to keep Gaussian DP with μ = 0.5"),
        (
            Estimated(1e-3, "couplings"),
            "estimated, not proven, to be within total variation 0.001 of an exact draw (couplings)",
        ),
        (Assumed("NUTS has converged"), "assumed, not proven: NUTS has converged"),
    ],
)
def test_exactness_reads_as_words_and_survives_json(exactness, words):
    assert exactness.sentence == words
    stored = json.loads(json.dumps(exactness.to_dict()))
    assert Exactness.from_dict(stored) == exactness
    assert stored["kind"] == exactness.tag
    with pytest.raises(InvalidBudget):
        Exactness.from_dict(stored | {"extra": 1})


@pytest.mark.parametrize("stored", [{}, {"kind": "perfect"}, {"kind": "within-tv", "gamma": 1.5}, None])
def test_an_unknown_exactness_is_refused(stored):
    with pytest.raises(InvalidBudget):
        Exactness.from_dict(stored)
