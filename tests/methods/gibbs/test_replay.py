"""The audit of exact draws by rejection: the right program passes, and both faults planted in it are caught."""

import pytest

import onedraw as od
from onedraw.audit.cases import examine
from onedraw.methods.gibbs.replay import rejection_cases
from onedraw.models.convex.losses import LogisticLoss


@pytest.fixture(scope="module")
def case():
    (found,) = rejection_cases(od.ApproxDP(1.0, 1e-5))
    return found


def test_its_promise_is_pure_and_attained(case):
    found = examine(case)
    assert case.promise == od.privacy.BoundedRange(1.0)
    assert found.passed
    assert 1.0 - 1e-6 <= found.gap < 1.01
    assert case.profile(found.pair, 1.3).breaks(case.promise) is not None


def test_replayed_it_follows_the_formula(case):
    assert case.replayed() == ()


def test_a_weight_five_percent_too_large_is_caught(case):
    assert case.departures(case.faulty(1.05)) == ("the draws do not follow the posterior's formula",) * 2


def test_an_envelope_with_a_fifth_too_much_curvature_is_caught(case, monkeypatch):
    right = LogisticLoss.curvatures
    monkeypatch.setattr(LogisticLoss, "curvatures", lambda *a: (1.2 * right(*a)[0], right(*a)[1]))
    assert set(case.replayed()) == {"a try would be accepted with a probability above 1"}
