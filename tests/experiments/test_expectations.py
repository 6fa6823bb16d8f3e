"""What must come out: each kind of expectation passes and fails, and NaN never passes."""

from __future__ import annotations

import math

import pytest
from experiments.expectations import Expectation, check


def verdict(stated, found, *, seeds=40, reduced=False):
    quantities = {} if found is None else {"q": found}
    (one,) = check([Expectation.read("q", {"source": "paper", **stated})], quantities, seeds=seeds, reduced=reduced)
    return one.verdict


@pytest.mark.parametrize(
    ("stated", "right", "wrong"),
    [
        ({"value": 1.0, "within": 0.1}, 1.09, 1.11),
        ({"at_most": 1.0}, 1.0, 1.001),
        ({"at_most": 1.0, "within": 0.1}, 1.05, 1.11),
        ({"at_least": 1.0}, 1.0, 0.999),
    ],
)
def test_each_kind_passes_and_fails(stated, right, wrong):
    assert verdict(stated, right) == "passed"
    assert verdict(stated, (wrong, 0.5)) == "failed"
    assert verdict(stated, math.nan) == "failed"
    assert verdict(stated, None) == "failed", "a whole run computes everything"
    assert verdict(stated, wrong, reduced=True) == "not checked"
    assert verdict(stated | {"quick": True}, wrong, reduced=True) == "failed"
    assert verdict(stated | {"quick": True}, None, reduced=True) == "not checked"


def test_tolerances_grow_with_fewer_seeds_only_where_stated():
    near = {"value": 1.0, "within": 0.1, "quick": True}
    assert verdict(near, 1.15, seeds=10, reduced=True) == "failed"
    assert verdict(near | {"at_seeds": 40}, 1.15, seeds=10, reduced=True) == "passed"
    assert verdict(near | {"at_seeds": 40}, 1.25, seeds=10, reduced=True) == "failed"
    assert verdict(near | {"at_seeds": 40}, 1.15, seeds=160) == "failed", "nor do they shrink"


@pytest.mark.parametrize(
    "stated",
    [
        {"value": 1.0},
        {"value": 1.0, "within": 0.1, "at_most": 2.0},
        {"within": 0.1},
        {"at_most": 1.0, "source": "a guess"},
        {"at_most": 1.0, "tolerance": 0.1},
    ],
)
def test_what_is_not_stated_properly_is_refused(stated):
    with pytest.raises(ValueError, match="exactly one of value, at_most, at_least"):
        Expectation.read("q", {"source": "paper", **stated})


def test_standard_errors_of_what_was_found_widen_an_expectation_that_says_so():
    plain, wide = (
        Expectation.read("gain", {"at_least": 0.0, "source": "ours", **more}) for more in ({}, {"errors": 3})
    )
    verdicts = [check([one], {"gain": (-0.2, 0.1)}, seeds=10, reduced=False)[0].verdict for one in (plain, wide)]
    assert verdicts == ["failed", "passed"]
    assert check([wide], {"gain": (-0.4, 0.1)}, seeds=10, reduced=False)[0].verdict == "failed"
