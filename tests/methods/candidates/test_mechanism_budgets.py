"""Candidates under every budget: bounded ranges that hold given the candidates, and what is left of them without."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import onedraw as od
from onedraw import errors, models
from onedraw.methods import Gibbs, calibrate, plan_from_dict
from onedraw.methods.candidates import mechanism as candidates
from onedraw.methods.candidates.layout import shares
from onedraw.methods.candidates.mechanism import Candidates, largest_range, promise_of_rounds
from onedraw.models import candidates as candidate_scores
from onedraw.privacy import ZCDP, ApproxDP, BoundedRange, GaussianDP, PureDP, RenyiDP
from tests.methods.cases import adjacent, hockey_stick, log_laws, renyi_divergence

ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0, 200.0)


def logistic(features=1, *, scale=1.5):
    prior = models.Gaussian(scale=scale)
    return models.Logistic(features, data_norm=math.sqrt(features), intercept=False, prior=prior)


def epsilons(plan):
    return [plan.parameters[f"epsilon_{number}"] for number in range(1, int(plan.parameters["rounds"]) + 1)]


# ── enumerated, given the candidates ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rounds", [1, 2])
def test_every_adjacent_pair_is_below_the_promised_curve(rounds):
    plan = calibrate(Candidates(count=60 if rounds == 1 else 8, rounds=rounds), logistic(), ZCDP(0.25), n=2)
    promise = plan.guarantee.promise
    pairs = adjacent(log_laws(plan, seed=1))
    for order in ORDERS:
        found = max(renyi_divergence(one, other, order) for one, other in pairs)
        assert found <= promise.renyi.at_order(order) + 1e-9
        assert found <= 0.25 * order + 1e-9
        assert found > 0.05 * promise.renyi.at_order(order), "the universe is rich enough to show a fault"


def test_the_enumeration_catches_costs_that_are_too_large(monkeypatch):
    plan = calibrate(Candidates(count=60, rounds=1), logistic(scale=6.0), ZCDP(0.25), n=2)
    original = candidate_scores.candidate_costs
    monkeypatch.setattr("onedraw.methods.candidates.layout.candidate_costs", lambda *a, **k: 3 * original(*a, **k))
    pairs = adjacent(log_laws(plan, seed=1))
    assert max(renyi_divergence(one, other, 2.0) for one, other in pairs) > plan.guarantee.promise.renyi.at_order(2.0)


def test_two_draws_together_keep_epsilon_and_delta():
    """Two layouts side by side: the law of both picks is the product, and δ(ε) is computed on it."""
    budget = ApproxDP(1.0, 0.02)
    plan = calibrate(Candidates(count=24, rounds=1), logistic(), budget, n=1, draws=2)
    assert epsilons(plan)[0] > 0.51, "more than half of ε: a δ pays when draws are composed"
    first, second = log_laws(plan, seed=1), log_laws(plan, seed=2)
    both = {records: np.add.outer(first[records], second[records]).ravel() for records in first}
    found = max(hockey_stick(one, other, 1.0) for one, other in adjacent(both))
    assert found <= 0.02
    wrong = {records: np.add.outer(5 * first[records], 5 * second[records]).ravel() for records in first}
    wrong = {records: law - np.logaddexp.reduce(law) for records, law in wrong.items()}
    assert max(hockey_stick(one, other, 1.0) for one, other in adjacent(wrong)) > 0.02


def test_without_the_candidates_the_range_is_longer_than_with_them():
    """Why a bounded range is not what a draw promises: the interval of log-ratios moves with the layout."""
    plan = calibrate(Candidates(count=20, rounds=1), logistic(scale=60.0), PureDP(2.0), n=1)
    by_layout = [adjacent(log_laws(plan, seed=seed)) for seed in range(40)]
    ratios = [[one - other for one, other in pairs] for pairs in by_layout]
    ranges = [max(ratio.max() - ratio.min() for ratio in layout) for layout in ratios]
    assert max(ranges) <= 2.0 + 1e-9
    over_layouts = max(
        max(layout[pair].max() for layout in ratios) - min(layout[pair].min() for layout in ratios)
        for pair in range(len(ratios[0]))
    )
    assert 2.0 + 0.3 < over_layouts <= 4.0


# ── what is promised ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_single_round_is_zcdp_of_an_eighth_of_the_square():
    promise = promise_of_rounds([Fraction(1)], ZCDP(1.0))
    assert promise.zcdp_rho == pytest.approx(1.0 / 8.0, rel=1e-9)
    assert promise.implies(PureDP(1.0 + 1e-12))
    assert not promise.implies(BoundedRange(1.5))
    assert promise.implies(BoundedRange(2.0 + 1e-9))


def test_rounds_add_their_rho_and_a_person_s_records_their_ranges():
    parts = [Fraction(1, 2), Fraction(1, 4)]
    promise = promise_of_rounds(parts, ZCDP(1.0), records_per_person=3, repetitions=2)
    assert promise.zcdp_rho == pytest.approx(2 * 9 * (0.25 + 0.0625) / 8, rel=1e-9)
    pure = promise_of_rounds(parts, PureDP(5.0), records_per_person=3, repetitions=2)
    assert pure.stated_epsilon == pytest.approx(4.5)


BUDGETS = [
    (ZCDP(0.125), 1, 1),
    (ZCDP(0.5), 4, 2),
    (BoundedRange(1.0), 1, 1),
    (BoundedRange(2.0), 2, 1),
    (ApproxDP(1.0, 1e-5), 1, 1),
    (ApproxDP(1.0, 1e-5), 8, 2),
    (RenyiDP.at(8.0, 0.5), 2, 1),
]


@pytest.mark.parametrize(("budget", "draws", "people"), BUDGETS, ids=str)
@pytest.mark.parametrize("dimension", [2, 12])
def test_the_whole_budget_is_spent_and_a_plan_is_derived_again(budget, draws, people, dimension):
    model = logistic(dimension, scale=2.0 / math.sqrt(dimension))
    plan = calibrate(Candidates(), model, budget, n=2000, draws=draws, records_per_person=people)
    assert plan.guarantee.promise.implies(budget)
    assert plan_from_dict(plan.to_dict()) == plan
    more = [Fraction(part) * Fraction(1001, 1000) for part in epsilons(plan)]
    assert not promise_of_rounds(more, budget, records_per_person=people, repetitions=draws).implies(budget)


def test_a_convex_loss_is_selected_by_under_zcdp_too():
    model = models.Logistic(2, data_norm=1.0, intercept=False, prior=models.Gaussian(scale=1.0, radius=2.0))
    plan = calibrate(Candidates(of=Gibbs("bounded")), model, ZCDP(0.02), n=500)
    assert epsilons(plan)[0] == pytest.approx(math.sqrt(8 * 0.02), rel=1e-4)
    assert plan_from_dict(plan.to_dict()) == plan


def test_a_bounded_range_budget_is_half_a_pure_one():
    model = logistic(2, scale=1.0)
    ranged, pure = (calibrate(Candidates(), model, budget, n=500) for budget in (BoundedRange(1.0), PureDP(0.5)))
    assert epsilons(ranged) == epsilons(pure)
    assert ranged.guarantee.promise == PureDP(0.5)


def test_budgets_with_a_delta_give_the_records_more_weight():
    model = logistic(12, scale=2.0 / math.sqrt(12))
    pure, approximate = (calibrate(Candidates(), model, b, n=2000) for b in (PureDP(1.0), ApproxDP(1.0, 1e-5)))
    assert pure.parameters["rounds"] > 1
    assert sum(epsilons(approximate)) > 1.15 * sum(epsilons(pure))
    picks = Candidates(publish="picks", rounds=int(pure.parameters["rounds"]))
    all_of_them = calibrate(picks, model, PureDP(1.0), n=2000, draws=picks.rounds)
    assert epsilons(all_of_them) == epsilons(pure), "publishing the picks costs nothing more"


def test_a_search_that_finds_nothing_says_so():
    with pytest.raises(errors.PromiseRefused, match="larger budget"):
        largest_range(ZCDP(1e-40), 3)


def test_a_budget_of_another_kind_is_refused():
    with pytest.raises(errors.UnsupportedBudget, match="Gaussian DP"):
        calibrate(Candidates(), logistic(), GaussianDP(0.5), n=10)


def test_a_zcdp_release_is_charged_and_verifies(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("people", ZCDP(0.3))
    plan = calibrate(Candidates(count=4000), logistic(2, scale=1.0), ZCDP(0.125), n=40, draws=2)
    generator = np.random.default_rng(0)
    data = generator.normal(size=(40, 2)), generator.integers(0, 2, 40)
    release = od.release(plan, data, ledger=ledger, dataset="people")
    assert np.asarray(release.draws).shape == (2, 2)
    assert od.verify(release.certificate).answer == "consistent"
    assert release.certificate.sentence.startswith("Exact")
    assert release.certificate.second_opinion.startswith("confirmed")


@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_widths_of_a_pure_budget_leave_less_than_two_steps_of_it(rounds):
    """Rounding each round down loses steps; the last round gets them back, so that their sum is the budget's."""
    for half_range in np.linspace(0.1, 3.0, 25):
        widths, bits = candidates._widths(
            SimpleNamespace(half_range=Fraction(half_range)), SimpleNamespace(rounds=rounds), PureDP(1.0)
        )
        wanted = sum(Fraction(half_range) * share for share in shares(rounds)) * 2**bits
        assert wanted - 2 < sum(widths) <= wanted
        other, _ = candidates._widths(
            SimpleNamespace(half_range=Fraction(half_range)), SimpleNamespace(rounds=rounds), ZCDP(1.0)
        )
        assert widths[:-1] == other[:-1]
        assert widths[-1] >= other[-1]
