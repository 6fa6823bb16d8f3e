"""Quantiles by rank: the law is the one written down, the promise holds on every small pair, planted faults are caught."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw.audit.cases.investigation import examine
from onedraw.errors import CertificateRejected, InvalidModel, PromiseRefused, UnsupportedBudget
from onedraw.methods import ExponentialQuantiles, plan_from_dict
from onedraw.methods.quantiles import audit as audited
from onedraw.methods.quantiles.mechanism import share_of_intervals
from onedraw.methods.quantiles.run import RankSelection
from onedraw.methods.quantiles.selection import QuantileTarget, depth_of, end_ranks, ladder, misses, quantile_tree
from onedraw.models import ColumnQuantiles
from onedraw.planning.expected_errors import expected_error
from onedraw.samplers import seeded_generator
from onedraw.samplers.selection import _thinned, select_run

ALPHA = 1e-6
BUDGETS = [
    od.PureDP(1.0),
    od.ApproxDP(1.0, 1e-6),
    od.ApproxDP(1.0, 0.0),
    od.ZCDP(0.1),
    od.RenyiDP.at(8.0, 0.5),
    od.BoundedRange(1.0),
]


def planned(levels, upper, budget, n, *, step=1.0, interval=None):
    model = ColumnQuantiles(levels, 0.0, upper, step=step, interval=interval)
    return od.calibrate(ExponentialQuantiles(), model, budget, n=n)


def drawn(plan, records, size, seed=0):
    target = plan.target(plan.model.summarise(records))
    return RankSelection().run(target, seeded_generator(seed), size=size).draws


def largest_log_ratio(case, first, second):
    one, other = case.law(first), case.law(second)
    assert one.keys() == other.keys()
    return max(abs(math.log(one[outcome] / other[outcome])) for outcome in one)


# ── the law ──────────────────────────────────────────────────────────────────────────────────────────────────


def goodness(plan, records, size=1500):
    """The p-value of the program's draws against the law written down in the audited."""
    law = audited.WholeRelease(plan, (), "").law(records)
    outcomes = sorted(law)
    found = [tuple(row) for row in drawn(plan, records, size).astype(int).tolist()]
    counts = np.array([found.count(outcome) for outcome in outcomes])
    expected = np.array([law[outcome] for outcome in outcomes]) * size
    rare = expected < 5
    pooled = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    return stats.chisquare(pooled[0][pooled[1] > 0], pooled[1][pooled[1] > 0]).pvalue


@pytest.mark.parametrize(
    ("levels", "records"), [((0.5,), [0, 0, 1, 4, 5, 5]), ((0.25, 0.5, 0.75), [0, 2, 5]), ((0.3,), [5, 5, 5])]
)
def test_the_program_draws_from_the_law_that_is_written_down(levels, records):
    assert goodness(planned(levels, 5.0, od.PureDP(2.0), len(records)), records) > ALPHA


def test_a_law_that_forgets_how_many_places_a_run_has_is_told_apart_and_breaks_the_promise(monkeypatch):
    plan, records = planned((0.5,), 40.0, od.PureDP(1.0), 4), [0, 1, 39, 40]
    honest = QuantileTarget.values

    def forgetful(self, *arguments):
        runs = honest(self, *arguments)
        return runs._replace(lengths=np.ones_like(runs.lengths))

    assert goodness(plan, records) > ALPHA
    monkeypatch.setattr(QuantileTarget, "values", forgetful)
    assert goodness(plan, records) < ALPHA
    # a run that shrinks to one place when a record moves next to it gives that record away
    chances = [
        np.bincount(drawn(plan, data, 1000).astype(int).ravel(), minlength=41) for data in (records, [0, 1, 2, 40])
    ]
    assert chances[0][3] == 0 < chances[1][3]


def test_a_choice_among_runs_is_a_choice_among_their_places():
    costs, lengths = np.array([3, 0, 2], dtype=np.int64), np.array([5, 1, 4], dtype=np.int64)
    generator = seeded_generator(1)
    found = [select_run(costs, lengths, generator, bits=1) for _ in range(2000)]
    assert all(0 <= offset < lengths[run] for run, offset in found)
    expected = lengths * np.exp(-costs / 2.0)
    runs, firsts = (
        np.bincount([run for run, _ in found], minlength=3),
        np.bincount([o for r, o in found if r == 0], minlength=5),
    )
    assert stats.chisquare(runs, 2000 * expected / expected.sum()).pvalue > ALPHA
    assert stats.chisquare(firsts).pvalue > ALPHA


@pytest.mark.parametrize(("count", "halvings"), [(5, 1), (5, 3), (40, 4), (3, 2), (1, 1), (8, 3)])
def test_how_many_pass_so_many_fair_coins_is_a_binomial(count, halvings):
    generator, size = seeded_generator(2), 3000
    found = np.bincount([_thinned(count, halvings, generator) for _ in range(size)], minlength=count + 1)
    expected = size * stats.binom.pmf(np.arange(count + 1), count, 2.0**-halvings)
    rare = expected < 5
    pooled = [np.append(part[~rare], part[rare].sum()) for part in (found, expected)]
    kept = pooled[1] > 0
    assert stats.chisquare(pooled[0][kept], pooled[1][kept]).pvalue > ALPHA


def test_as_many_candidates_as_coins_allow_do_not_make_it_go_round_for_ever():
    generator = seeded_generator(4)
    found = [_thinned(2**20, 20, generator) for _ in range(50)]
    assert stats.poisson.cdf(sum(found), 50) > ALPHA
    assert stats.poisson.sf(sum(found) - 1, 50) > ALPHA


# ── the promise ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("levels", [(0.5,), (0.2,), (0.25, 0.5, 0.75), (0.6, 0.9)])
def test_no_pair_of_small_tables_breaks_the_promise(levels):
    n, upper = (3, 4) if len(levels) == 1 else (3, 2)
    plan = planned(levels, float(upper), od.PureDP(3.0), n)
    case, places = audited.WholeRelease(plan, (), ""), range(upper + 1)
    worst = max(
        largest_log_ratio(case, [*crowd, a], [*crowd, b])
        for crowd in itertools.combinations_with_replacement(places, n - 1) for a in places for b in places if a < b
    )  # fmt: skip
    assert 0.3 * 3.0 < worst <= plan.guarantee.promise.pure_epsilon


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_one_selection_attains_its_promise_and_half_the_sensitivity_is_caught(budget):
    case = audited.selection_case(planned((0.5,), 1.0, budget, 20, step=None))
    found = examine(case)
    assert found.passed
    assert found.gap == pytest.approx(1.0, abs=1e-5)
    assert case.profile(found.pair, 2.0).breaks(case.promise) is not None


@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.ApproxDP(1.0, 1e-5)], ids=str)
def test_charging_several_levels_as_one_is_caught(budget):
    whole = audited.quantile_cases(budget)[1]
    assert examine(whole).passed
    levels = depth_of(quantile_tree(whole.plan.model.levels))
    assert examine(whole).gap < levels
    assert any(whole.profile(pair, levels).breaks(whole.promise) is not None for pair in whole.pairs)


@pytest.mark.parametrize("levels", [(0.5,), (0.3, 0.6)])
def test_no_pair_of_small_tables_breaks_the_promise_of_quantiles_and_widths(levels):
    n, upper = (5, 3) if len(levels) == 1 else (4, 2)
    plan = planned(levels, float(upper), od.PureDP(30.0), n, interval=0.5)
    assert "width_ends" in plan.parameters
    case, places = audited.WholeRelease(plan, (), ""), range(upper + 1)
    for crowd in itertools.combinations_with_replacement(places, n - 1):
        for a, b in itertools.combinations(places, 2):
            assert largest_log_ratio(case, [*crowd, a], [*crowd, b]) <= plan.guarantee.promise.pure_epsilon


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize(("place", "attained"), [(0, 0.96), (2, 0.7)])
def test_a_width_attains_its_charge_and_half_the_sensitivity_is_caught(flip, place, attained):
    eta, atoms, size = 0.3, (0, 1, 3, 4, 5, 8), 4
    laws = {
        records: np.log(audited.width_law(list(records), place, 2, 2, eta, 8, flip=flip))
        for records in itertools.combinations_with_replacement(atoms, size + 1)
    }
    worst = max(
        np.abs(laws[tuple(sorted([*crowd, a]))] - laws[tuple(sorted([*crowd, b]))]).max()
        for crowd in itertools.combinations_with_replacement(atoms, size) for a, b in itertools.combinations(atoms, 2)
    )  # fmt: skip
    assert attained * 2 * eta < worst <= 2 * eta
    assert worst > 2 * (eta / 2)  # what a sensitivity of a half would charge


def test_widths_are_charged_once_for_both_ends():
    plan = planned((0.5,), 2.0**12, od.PureDP(6.0), 400, interval=0.95)
    numbers = plan.parameters
    assert plan.guarantee.promise.pure_epsilon == pytest.approx(numbers["epsilon_1"] + numbers["epsilon_end"])
    share = share_of_intervals(od.PureDP(6.0), plan.model, 0.95, 400, 1, flip="flip" in numbers)
    assert numbers["epsilon_end"] == pytest.approx(6.0 * share, rel=1e-5)
    uncharged = dict(plan.numbers)
    uncharged["width_ends"] *= 1.01
    with pytest.raises(PromiseRefused):
        plan.mechanism.plan(plan.request, uncharged)


def test_a_part_is_asked_for_the_middle_of_its_own_records_and_a_public_shift():
    root = quantile_tree((0.05, 0.5, 0.95))
    assert [node.wanted(100, 200) / 2**20 for node in root.nodes] == pytest.approx([50.0, 10.0, 90.0], abs=1e-3)
    assert [node.wanted(101, 200) - node.wanted(100, 200) for node in root.nodes] == [2**19] * 3


@pytest.mark.parametrize(("moves_by", "kept"), [(0.5, True), (0.9, False)])
def test_a_record_more_in_a_part_costs_half_of_one_that_is_replaced_and_a_fraction_of_the_part_would_cost_more(
    moves_by, kept
):
    eta, values = 0.4, range(5)
    parts = [list(part) for size in (1, 2, 3) for part in itertools.combinations_with_replacement(values, size)]
    worst = max(
        np.ptp(np.log(audited.rank_law([*part, one], values, shift + moves_by * (len(part) + 1), eta))
               - np.log(audited.rank_law(part, values, shift + moves_by * len(part), eta)))
        for part in parts for one in values for shift in (-1.0, 0.3)
    )  # fmt: skip
    assert (worst <= eta * (1 + 1e-9)) == kept


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(("levels", "interval"), [((0.5,), None), ((0.5,), 0.95), ((0.1, 0.5, 0.9), 0.8)])
def test_plans_keep_their_budget_and_are_derived_again(budget, levels, interval):
    plan = planned(levels, 1000.0, budget, 5000, interval=interval)
    assert plan.guarantee.promise.implies(budget)
    assert plan_from_dict(plan.to_dict()) == plan
    stored = plan.to_dict()
    stored["parameters"] = {**stored["parameters"], "width_1": stored["parameters"]["width_1"] * 2}
    with pytest.raises((CertificateRejected, PromiseRefused)):
        plan_from_dict(stored)


def test_a_person_with_three_records_gets_a_third_of_the_weight():
    model = ColumnQuantiles((0.5,), 0.0, 100.0, interval=None)
    alone, three = (
        od.calibrate(ExponentialQuantiles(), model, od.PureDP(1.0), n=99, records_per_person=k) for k in (1, 3)
    )
    assert three.parameters["epsilon_1"] == pytest.approx(alone.parameters["epsilon_1"] / 3, rel=1e-4)
    assert three.guarantee.promise.implies(od.PureDP(1.0))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: planned((0.5,), 1.0, od.GaussianDP(1.0), 9), "ZCDP"),
        (lambda: od.calibrate(ExponentialQuantiles(), ColumnQuantiles((0.5,), 0, 1), od.PureDP(1.0), n=9, draws=2), "draws=1"),
        (lambda: od.calibrate(ExponentialQuantiles(), od.models.BetaBernoulli(prior=(1, 1)), od.PureDP(1.0), n=9), "ColumnQuantiles"),
        (lambda: planned((0.0, 0.5), 1.0, od.PureDP(1.0), 9), "strictly between"),
        (lambda: planned((0.5, 0.5), 1.0, od.PureDP(1.0), 9), "each once"),
        (lambda: planned((), 1.0, od.PureDP(1.0), 9), "at least 1"),
        (lambda: planned(0.5, 1.0, od.PureDP(1.0), 9), "a list"),
        (lambda: planned((0.5,), -1.0, od.PureDP(1.0), 9), "lower below upper"),
        (lambda: planned((0.5,), 1.0, od.PureDP(1.0), 9, step=0.0), "step"),
        (lambda: planned((0.5,), 1.0, od.PureDP(1.0), 9, step=1e-12), "step"),
        (lambda: planned((0.5,), 1.0, od.PureDP(1.0), 9, interval=1.0), "interval"),
        (lambda: planned((0.5,), 1.0, od.PureDP(1e-12), 9), "too small"),
        (lambda: planned((0.5,), 1.0, od.PureDP(1.0), 10**15, step=1e-6), "coarser step"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_in_words(call, words):
    with pytest.raises((InvalidModel, PromiseRefused, UnsupportedBudget), match=words):
        call()


# ── records ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("levels", [(0.5,), (0.1, 0.5, 0.9)])
def test_no_record_can_make_it_fail_and_every_pick_lies_in_the_range(levels):
    odd = [None, "x", float("nan"), float("inf"), -float("inf"), 10**400, -5.0, 1e300, True, b"3", [1], "7"]
    for records in (odd, [2.0] * 12, [0.0] * 12, [9.0] * 12, [9.0] + [0.0] * 11):
        values = drawn(planned(levels, 9.0, od.PureDP(0.01), 12), records, 30)
        assert ((values >= 0) & (values <= 9)).all()
        assert (np.diff(values, axis=1) >= 0).all()


def test_a_record_is_clamped_and_rounded_by_itself():
    model = ColumnQuantiles((0.5,), 0.0, 10.0, step=1.0)
    places, below, up_to = model.summarise([-3.0, 2.4, 2.6, 99.0, None, 4.6]).atoms(0, 6)
    assert (places.tolist(), below.tolist(), up_to.tolist()) == ([0, 2, 3, 5, 10], [0, 1, 2, 3, 5], [1, 2, 3, 5, 6])
    assert "private" in repr(model.summarise([1.0])) + repr(
        planned((0.5,), 9.0, od.PureDP(1.0), 1).target(model.summarise([1.0]))
    )


def test_ties_do_not_shift_the_quantiles_beyond_them():
    """Six of ten records are 0: the median is 0, and the upper quartile still that of all records."""
    records = [0.0] * 600 + list(np.linspace(500, 999, 400))
    median, quartile = drawn(planned((0.5, 0.75), 1000.0, od.PureDP(20.0), 1000), records, 20).mean(axis=0)
    assert median == 0.0
    assert abs(quartile - np.quantile(records, 0.75)) < 20.0


# ── intervals and accuracy ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("law", ["skewed", "spike", "whole numbers"])
def test_intervals_cover_the_population_quantile(law):
    generator, runs, n, level = np.random.default_rng(5), 200, 400, 0.8
    draws = {
        "skewed": (lambda: np.minimum(generator.lognormal(3.0, 1.0, n), 1000.0), math.exp(3.0)),
        "spike": (lambda: np.where(generator.random(n) < 0.45, 0.0, generator.uniform(0, 1000, n)), 1000 * 0.05 / 0.55),
        "whole numbers": (lambda: generator.poisson(2.7, n).astype(float), 3.0),
    }
    sample, truth = draws[law]
    step = 1.0 if law == "whole numbers" else 0.25
    plan = planned((0.5,), 1000.0, od.PureDP(3.0), n, step=step, interval=level)
    covered = 0
    for run in range(runs):
        stages = RankSelection().run(plan.target(plan.model.summarise(sample())), seeded_generator(run)).stages
        covered += stages["lower"][0] <= truth + step / 2 and truth - step / 2 <= stages["upper"][0]
    assert stats.binom.cdf(covered, runs, level) > ALPHA


@pytest.mark.parametrize("flip", [True, False])
def test_ranks_of_ends_use_up_the_level_and_one_rank_more_would_not_do(flip):
    model = ColumnQuantiles((0.3,), 0.0, 100.0, step=0.01, interval=0.95)
    low, high = end_ranks(model, 2000, 0.05, flip=flip)
    assert misses(model, 2000, 0.05, [low, high], flip=flip) <= 0.05
    assert misses(model, 2000, 0.05, [low + 1, high + 1], flip=flip) > 0.05
    assert end_ranks(model, 20, 0.05, flip=flip) == [-1, -1]


def test_the_ladder_goes_from_the_whole_range_to_nothing_by_factors_of_the_root_of_two():
    rungs = ladder(10**7)
    assert (rungs[0], rungs[-2], rungs[-1], len(rungs)) == (10**7, 1, 0, len(set(rungs.tolist())))
    assert (rungs[:-2] / rungs[1:-1] <= 2.0).all()
    assert len(rungs) < 60
    assert ladder(1).tolist() == [1, 0]


@pytest.mark.parametrize("level", [0.5, 0.7])
def test_intervals_miss_no_more_than_proven_on_the_worst_column(level):
    """All records on one side of the released number but for a wall of rungs: as many narrow ones as there are."""
    n, eta, steps = 300, 0.2, 2**16
    model = ColumnQuantiles((level,), 0.0, float(steps), step=1.0, interval=0.8)
    low, high = end_ranks(model, n, eta, flip=True)
    missed = 0.0
    for below in range(n + 1):  # two atoms, the quantile the upper one, the released number at the lower
        chance = float(stats.binom.pmf(below, n, level))
        if chance > 1e-5:
            places = [0] * below + [steps] * (n - below)
            missed += chance * (1.0 - audited.width_law(places, 0, low, high, eta, steps, flip=True)[0])
    assert 0.2 * 0.3 < missed <= 0.2


def test_a_default_median_is_within_a_tenth_of_one_without_an_interval():
    """Its error about the population: of the rank released, and of sampling."""
    plans = [planned((0.5,), 1e6, od.PureDP(1.0), 1000, step=None, interval=interval) for interval in (0.95, None)]
    ratio = np.divide(*(expected_error(plan).private for plan in plans))
    assert 1.0 < ratio < 1.1


def test_five_quantiles_for_one_spend_are_nearer_than_five_at_a_fifth_each():
    generator, n, levels = np.random.default_rng(11), 1000, (0.1, 0.25, 0.5, 0.75, 0.9)
    records = np.minimum(generator.lognormal(10.6, 0.8, n), 1e6)

    def rank_error(values):
        return np.abs(np.searchsorted(np.sort(records), values) / n - levels).mean()

    together = planned(levels, 1e6, od.PureDP(1.0), n)
    single = [planned((level,), 1e6, od.PureDP(0.2), n) for level in levels]
    ours = np.mean([rank_error(row) for row in drawn(together, records, 80)])
    each = np.column_stack([drawn(plan, records, 80)[:, 0] for plan in single])
    assert ours <= 0.8 * np.mean([rank_error(row) for row in each])


def test_the_expected_rank_error_is_what_the_draws_show():
    generator, n = np.random.default_rng(3), 2000
    records = generator.uniform(0, 1000, n)
    plan = planned((0.25, 0.5, 0.75), 1000.0, od.PureDP(1.0), n, step=0.01)
    values = drawn(plan, records, 200)
    ranks = np.searchsorted(np.sort(records), values) / n - np.array([0.25, 0.5, 0.75])
    found = np.sqrt((ranks**2).mean(axis=0)) / plan.mechanism.rank_errors(plan)
    assert (found > 0.6).all()
    assert (found < 1.2).all()


def test_permute_and_flip_is_used_for_a_pure_budget_and_comes_nearer_where_places_are_few():
    generator, n = np.random.default_rng(8), 2000
    records = generator.uniform(0, 1000, n)
    near, far = (planned((0.5,), 1000.0, budget, n, step=2.0) for budget in (od.PureDP(0.5), od.BoundedRange(0.5)))
    assert near.parameters["flip"] == 1.0
    assert "flip" not in far.parameters
    assert near.parameters["width_1"] == far.parameters["width_1"]
    errors = [
        np.abs(np.searchsorted(np.sort(records), drawn(plan, records, 600)) - n / 2).mean() for plan in (near, far)
    ]
    assert errors[0] < 0.95 * errors[1]


def test_ranks_of_an_end_are_the_first_whose_miss_is_at_most_alpha(monkeypatch):
    """A miss of exactly α is kept: three ranks out here, on both sides of 50."""
    from onedraw.methods.quantiles import selection as quantile_selection

    misses_by_rank = {47: 0.05, 46: 0.03}

    def miss(n, level, weight, low, high, flip):
        return misses_by_rank.get(low, 1.0 if low > 47 else 0.0)

    monkeypatch.setattr(quantile_selection, "_miss", miss)
    assert quantile_selection._ranks(100, 0.5, 1.0, 0.05, False, 0.0) == (47, 47)
    assert quantile_selection._ranks(100, 0.5, 1.0, 0.0499, False, 0.0) == (46, 46)
