"""Quantiles within private groups: the program's law, the promise on every small pair, planted faults, intervals, and accuracy."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw.audit.cases.investigation import examine
from onedraw.errors import CertificateRejected, InvalidModel, PromiseRefused
from onedraw.methods import ExponentialQuantiles, GroupQuantiles, plan_from_dict
from onedraw.methods.quantiles import audit as audited
from onedraw.methods.quantiles.groups import GroupNumbers, GroupTarget, count_law, margins, size_slack
from onedraw.methods.quantiles.run import GroupRanks
from onedraw.models import ColumnQuantiles, Grouped
from onedraw.models.tables.column_quantiles import PlaceOf
from onedraw.samplers import seeded_generator

BUDGETS = [od.PureDP(1.0), od.ApproxDP(1.0, 1e-6), od.ZCDP(0.1)]


def planned(levels, upper, budget, n, *, step=1.0, interval=None, groups=("a", "b")):
    model = ColumnQuantiles(levels, 0.0, upper, step=step, interval=interval, by=("g",), groups=(groups,))
    return od.calibrate(GroupQuantiles(), model, budget, n=n)


def stages_of(plan, data, seed):
    return GroupRanks().run(plan.target(plan.model.summarise(data)), seeded_generator(seed)).stages


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("level", [0.5, 0.2, 0.9])
def test_no_record_that_changes_its_group_moves_a_level_by_more_than_one_that_stays(level, flip):
    """Every pair of groups of up to three records: the log-ratios of both groups together have at most the range 2η."""
    eta, values, sizes = 0.7, range(4), (2, 3)
    parts = [list(p) for k in range(3) for p in itertools.combinations_with_replacement(values, k)]

    def logs(part, size):
        wanted = len(part) / 2.0 + size * (level - 0.5)
        return np.log(audited.rank_law(part, values, wanted, eta, flip=flip))

    def apart(part, extra, size):
        return logs([*part, extra], size) - logs(part, size)

    # the two groups are independent given what was published, so ranges, and largest ratios, add
    worst = [
        max((np.abs(apart(part, extra, size)).max() if flip else np.ptp(apart(part, extra, size)))
            for part in parts for extra in values)
        for size in sizes
    ]  # fmt: skip
    assert sum(worst) <= 2.0 * eta * (1 + 1e-9)
    assert sum(worst) > 1.5 * eta


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_planted_faults_are_caught_and_the_promise_holds(budget):
    selection, sizes = audited.group_cases(budget)
    for case in (selection, sizes):
        assert examine(case).passed
    if "sizes_epsilon" in sizes.plan.parameters:  # of zCDP a Gaussian attains ρ, and only nearly the (ε, δ) it implies
        assert examine(sizes).gap == pytest.approx(1.0, abs=1e-5)
    assert any(selection.profile(pair, 2.0).breaks(selection.promise) is not None for pair in selection.pairs)
    assert sizes.profile(sizes.pairs[0], 2.0).breaks(sizes.promise) is not None


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(("levels", "interval"), [((0.5,), None), ((0.5,), 0.95), ((0.1, 0.5, 0.9), 0.8)])
def test_plans_keep_their_budget_and_are_derived_again(budget, levels, interval):
    plan = planned(levels, 1000.0, budget, 5000, interval=interval)
    assert plan.guarantee.promise.implies(budget)
    assert plan_from_dict(plan.to_dict()) == plan
    for name, factor in (("width_1", 2.0), ("sizes_scale", 0.5)):
        stored = plan.to_dict()
        stored["parameters"] = {**stored["parameters"], name: stored["parameters"][name] * factor}
        with pytest.raises((CertificateRejected, PromiseRefused)):
            plan_from_dict(stored)


def test_each_stage_is_charged():
    """Forgetting the noise on sizes, the signs or the ends would leave less than the promise states."""
    plan = planned((0.25, 0.5, 0.75), 1000.0, od.PureDP(1.0), 5000, interval=0.95)
    numbers = plan.parameters
    parts = [
        numbers["epsilon_1"],
        numbers["epsilon_2"],
        3 * numbers["epsilon_end"],
        numbers["sizes_epsilon"],
        numbers["signs_epsilon"],
    ]
    assert plan.guarantee.promise.pure_epsilon == pytest.approx(sum(parts), rel=1e-9)
    assert sum(parts) == pytest.approx(1.0, rel=1e-3)


def test_the_program_draws_places_of_each_group_by_the_law_written_down():
    plan = planned((0.5,), 5.0, od.PureDP(4.0), 7)
    values, codes = [0.0, 1.0, 1.0, 5.0, 4.0, 4.0, 2.0], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    found = np.array([stages_of(plan, Grouped(values, (codes,)), seed)["quantiles"] for seed in range(1200)]).astype(
        int
    )
    eta = plan.parameters["width_1"] * 2.0**20 / 2.0**40
    for group, own in ((0, [0, 1, 1, 5]), (1, [4, 4, 2])):
        law = audited.rank_law(own, range(6), len(own) / 2.0, eta, flip=bool(plan.parameters["flip"]))
        assert stats.chisquare(np.bincount(found[:, group], minlength=6), 1200 * law).pvalue > 1e-6


def test_widths_count_ranks_from_the_middle_of_the_group():
    """A record that comes moves every shortfall by a half of a rank, one that is replaced by at most one."""
    plan = planned((0.3,), 20.0, od.PureDP(6.0), 60, interval=0.5)
    generator = np.random.default_rng(4)
    values, codes = generator.integers(0, 21, 60).astype(float), generator.integers(0, 2, 60).astype(float)

    def shortfalls(values, codes):
        part = GroupTarget(plan, plan.model.summarise(Grouped(values, (codes,)))).group(0, 30)
        runs = replace(part, slack=0.0).rungs(0, 6)
        steps = runs.costs - np.arange(len(runs.costs)) * audited_penalty()
        return steps / part.width_ends / 2.0**20

    before = shortfalls(values, codes)
    for row in range(60):
        for value, code in ((0.0, 0.0), (20.0, 1.0), (7.0, 0.0)):
            moved_values, moved_codes = values.copy(), codes.copy()
            moved_values[row], moved_codes[row] = value, code
            change = np.abs(shortfalls(moved_values, moved_codes) - before).max()
            assert change <= (0.5 if code != codes[row] else 1.0) + 1e-9


def audited_penalty():
    return math.ceil(math.log(5.0 / 3.0) * 2**40)


def test_margins_serve_every_smaller_group():
    for flip in (True, False):
        for level in (0.5, 0.25):
            below, above = margins(level, 10**4, 400, 0.0, 0.3, 0.05, flip)
            for size in range(40, 401):
                side = [level * size - below, (1 - level) * size - above]
                if min(side) >= 0:
                    missed = audited_miss(size, level, 0.3, side, flip)
                    assert missed <= 0.05


def audited_miss(size, level, eta, ends, flip):
    counts = np.arange(size + 1)
    room = np.minimum(size - ends[1] - counts, counts - ends[0])
    missed = np.where(room <= 0, 1.0, np.minimum(1.0, (0.75 if flip else 1.5) * np.exp(-eta * np.maximum(room, 0))))
    return float(stats.binom.pmf(counts, size, level) @ missed)


def test_noisy_sizes_are_as_far_off_as_stated():
    plan = planned((0.5,), 100.0, od.PureDP(1.0), 500, interval=0.95)
    slack = size_slack(plan.model, count_law(plan, "sizes"))
    q = math.exp(-1.0 / plan.parameters["sizes_scale"])
    assert 2.0 * q ** (math.floor(slack) + 1) / (1.0 + q) <= 0.05 * 0.05


def test_intervals_cover_the_medians_of_groups_of_unknown_size():
    generator, runs, level = np.random.default_rng(6), 120, 0.8
    plan = planned((0.5,), 1000.0, od.PureDP(3.0), 900, step=0.25, interval=level)
    covered = np.zeros(2)
    for run in range(runs):
        codes = (generator.random(900) < 0.4).astype(float)
        values = np.minimum(generator.lognormal(3.0 + codes, 1.0), 1000.0)
        stages = stages_of(plan, Grouped(values, (codes,)), run)
        for group in (0, 1):
            truth = math.exp(3.0 + group)
            covered[group] += stages["lower"][group] <= truth + 0.2 and truth - 0.2 <= stages["upper"][group]
    assert (stats.binom.cdf(covered, runs, level) > 1e-6).all()


def test_a_median_by_group_is_as_near_as_that_of_the_group_alone():
    """At most 1.1 times the weight of a rank: what the noise on sizes and signs takes of the budget."""
    for budget, interval in itertools.product((od.ApproxDP(1.0, 1e-6), od.ZCDP(0.05)), (None, 0.95)):
        together = planned((0.5,), 1000.0, budget, 3000, interval=interval, groups=("a", "b", "c"))
        alone = od.calibrate(ExponentialQuantiles(), ColumnQuantiles((0.5,), 0.0, 1000.0, step=1.0, interval=interval),
                             budget, n=1000)  # fmt: skip
        assert alone.parameters["width_1"] / together.parameters["width_1"] <= 1.1


def test_a_group_of_nobody_gets_a_place_in_the_range_and_no_false_end():
    plan = planned((0.5,), 100.0, od.PureDP(1.0), 2000, interval=0.95, groups=("a", "b", "none"))
    generator = np.random.default_rng(1)
    data = Grouped(generator.uniform(40, 60, 2000), (generator.integers(0, 2, 2000).astype(float),))
    for seed in range(5):
        stages = stages_of(plan, data, seed)
        assert 0.0 <= stages["quantiles"][2] <= 100.0
        assert (stages["lower"][2], stages["upper"][2]) == (0.0, 100.0)


def skipping(n, budget, *, nobody=False, groups=(("a", "b"), ("c", "d", "e")), levels=(0.25, 0.5), interval=0.95):
    names = tuple("gh"[: len(groups)])
    model = ColumnQuantiles(levels, 0.0, 100.0, step=1.0, interval=interval, missing="skip", by=names, groups=groups, nobody=nobody)  # fmt: skip
    return od.calibrate(GroupQuantiles(), model, budget, n=n)


def test_a_record_without_a_value_or_a_group_is_in_no_group():
    generator = np.random.default_rng(0)
    values, first, second = generator.uniform(20, 60, 5000), *(generator.integers(0, k, 5000) * 1.0 for k in (2, 3))
    values[:300], first[200:500], second[450:700], second[700:720], first[720:750] = np.nan, np.nan, -3.0, 0.5, 7.0
    plan = skipping(5000, od.PureDP(1.0))
    target = plan.target(plan.model.summarise(Grouped(values, (first, second))))
    known = slice(750, None)
    cells = np.bincount((first[known] * 3 + second[known]).astype(int), minlength=6).tolist()
    assert target.sizes.tolist() == [*cells, 750]
    signs = target.signs(40).reshape(6, 3)
    assert signs.sum(axis=1).tolist() == cells
    assert signs[:, 0].sum() == np.count_nonzero(np.rint(values[known]) < 40)
    stages = GroupRanks().run(target, seeded_generator(3)).stages
    assert len(stages["sizes"]) == 7
    found = plan.mechanism.estimate(plan, stages)
    assert len(found) == 18
    assert 0 <= 5000 - found[12:].sum() <= 1500
    assert plan.mechanism.missing_of(plan, stages).value == stages["sizes"][-1]


def test_a_record_that_counts_for_nobody_is_in_no_group_and_not_missing():
    place = PlaceOf(0.0, 1.0, 100, math.nan, (), (("a", "b"),))
    values = np.array([1.0, -np.inf, np.nan, 5.0, 6.0, 100.0, -np.inf, np.nan])
    codes = np.array([0.0, 0.0, 0.0, -np.inf, np.nan, 1.0, np.nan, -np.inf])
    (places,) = place.of_block(values, codes, np.ones(8))
    assert places.tolist() == [1, 203, 202, 203, 202, 201, 203, 203]


@pytest.mark.parametrize("change", ["to missing", "from missing", "to no group"])
def test_a_cell_that_goes_missing_moves_one_group_by_half_a_rank(change):
    plan = skipping(60, od.PureDP(6.0), groups=(("a", "b"),), levels=(0.3,), interval=0.5)
    generator = np.random.default_rng(4)
    values, codes = generator.integers(0, 101, 60).astype(float), generator.integers(0, 2, 60).astype(float)
    if change == "from missing":
        values[7] = np.nan
    after_values, after_codes = values.copy(), codes.copy()
    {"to missing": after_values, "from missing": after_values, "to no group": after_codes}[change][7] = (
        40.0 if change == "from missing" else np.nan
    )
    before, after = (
        plan.target(plan.model.summarise(Grouped(*pair)))
        for pair in ((values, (codes,)), (after_values, (after_codes,)))
    )
    moved = np.abs(before.sizes - after.sizes)
    assert sorted(moved.tolist()) == [0, 1, 1]  # 2 in L1, √2 in L2, as stated
    assert moved[-1] == 1
    for group in (0, 1):
        parts = [replace(target.group(group, 30), slack=0.0) for target in (before, after)]
        costs = [part.rungs(0, 30 + part.first_place).costs / part.width_ends / 2.0**20 for part in parts]
        assert np.abs(costs[0] - costs[1]).max() <= (0.5 if moved[group] else 0.0) + 1e-9


def test_groups_with_too_few_known_cells_have_no_estimate():
    plan = skipping(3000, od.PureDP(1.0), groups=(("a", "b"),), levels=(0.5,))
    values = np.full(3000, 30.0)
    codes = (np.arange(3000) % 2).astype(float)
    values[codes == 1.0] = np.nan
    without = plan.mechanism.without_estimate(plan, stages_of(plan, Grouped(values, (codes,)), 2))
    assert without.tolist() == [False, True, False, False]


def test_odd_cells_and_groups_never_fail():
    odd = [None, "x", float("nan"), float("inf"), -float("inf"), 10**400, -5.0, 1e300, True, b"3", [1], "7"]
    codes = [None, "x", float("nan"), 7.0, -1.0, 0.5, 0.0, 1.0, 1, 0, "b", [0]]
    plan = planned((0.1, 0.5), 9.0, od.PureDP(0.5), 12, interval=0.95)
    stages = stages_of(plan, Grouped(odd, (codes,)), 1)
    assert all(0.0 <= value <= 9.0 for value in stages["quantiles"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: od.calibrate(GroupQuantiles(), ColumnQuantiles((0.5,), 0, 1), od.PureDP(1.0), n=9), "within groups"),
        (lambda: od.calibrate(ExponentialQuantiles(), ColumnQuantiles((0.5,), 0, 1, by=("g",), groups=(("a", "b"),)), od.PureDP(1.0), n=9), "GroupQuantiles"),
        (lambda: planned((0.5,), 1.0, od.GaussianDP(1.0), 9), "ZCDP"),
        (lambda: planned((0.5,), 1.0, od.PureDP(1e-12), 9), "too small"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_in_words(call, words):
    with pytest.raises((InvalidModel, PromiseRefused, od.errors.UnsupportedBudget), match=words):
        call()


def test_the_estimator_gives_medians_by_group_with_differences(tmp_path):
    generator = np.random.default_rng(2)
    groups = generator.choice(["F", "M"], 8000)
    values = np.where(groups == "F", 30.0, 40.0) + generator.normal(0, 10, 8000)
    model = od.DPQuantile(epsilon=1.0, bounds=(0, 100), by={"sex": ["F", "M"]}, random_state=1)
    model.fit(np.column_stack([values.astype(object), groups]))
    assert model.quantiles_.shape == (2, 1)
    assert np.abs(model.quantiles_[:, 0] - [30.0, 40.0]).max() < 1.5
    assert 7500 < model.records_.sum() <= 8000  # no cell is missing, but nobody said so
    assert model.n_missing_interval_[0] <= 0 <= model.n_missing_interval_[1]
    (difference,) = model.compare().differences
    assert difference.low <= -10.0 <= difference.high < 0.0
    assert difference.p_value < 0.001
    model.release_.save(tmp_path / "r.json")
    assert od.load(tmp_path / "r.json").compare().differences == (difference,)
    numbers = GroupNumbers.of(model.release_.plan)
    assert numbers.sizes_scale == pytest.approx(50.0, rel=1e-3)
