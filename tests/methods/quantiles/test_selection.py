"""Intervals of quantiles: their share of a budget, which ends they keep, and how wide they come out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw.audit.cases.investigation import examine
from onedraw.methods import ExponentialQuantiles
from onedraw.methods.quantiles import mechanism as quantiles
from onedraw.methods.quantiles import selection
from onedraw.methods.quantiles.audit import quantile_cases
from onedraw.methods.quantiles.run import RankSelection
from onedraw.models import ColumnQuantiles
from onedraw.samplers import seeded_generator

QUARTILES = (0.25, 0.5, 0.75)


def planned(levels, n, epsilon, *, budget=od.PureDP, interval=0.95):
    model = ColumnQuantiles(levels, 0.0, 1000.0, interval=interval)
    return od.calibrate(ExponentialQuantiles(), model, budget(epsilon), n=n)


def widths(plan, runs):
    """(coverage, mean width over the plain interval's) for log-normal records, one entry for each quantile."""
    generator, levels, n = np.random.default_rng(5), np.array(plan.model.levels), plan.n
    truth, tails = np.exp(2.0 + stats.norm.ppf(levels)), [stats.binom.ppf(p, n, levels) for p in (0.025, 0.975)]
    found = []
    for run in range(runs):
        records = np.sort(np.clip(generator.lognormal(2.0, 1.0, n), 0.0, 1000.0))
        target = plan.target(plan.model.summarise(records))
        stages = RankSelection().run(target, seeded_generator(run)).stages
        low, high = (np.array(stages[side]) for side in ("lower", "upper"))
        plain = records[tails[1].astype(int)] - records[tails[0].astype(int) - 1]
        found.append(((low <= truth) & (truth <= high), high - low, plain))
    covered, width, plain = (np.mean(part, axis=0) for part in zip(*found, strict=True))
    return covered, width / plain


@pytest.mark.finding("mathematics M2", commit="8a7c0fb")
@pytest.mark.parametrize(("n", "most"), [(200, 4.0), (500, 3.0), (1000, 2.5)])
def test_median_of_few_incomes_has_a_narrow_interval(n, most):
    """Widths over the plain interval's were 265, 339 and 5.1."""
    covered, ratio = widths(planned((0.5,), n, 1.0), 40)
    assert ratio[0] < most
    assert stats.binom.cdf(covered[0] * 40, 40, 0.95) > 1e-4


@pytest.mark.finding("mathematics M2", commit="8a7c0fb")
def test_near_end_at_the_bound_leaves_the_other_end_narrow():
    """With one width for both ends, the first decile's interval was as wide as the range."""
    _, ratio = widths(planned((0.1, 0.5, 0.9), 1000, 1.0), 20)
    assert ratio[0] < 20.0
    assert ratio[1] < 5.0


@pytest.mark.finding("newcomer S13", commit="8a7c0fb")
def test_interval_of_a_smaller_median_gets_a_larger_share():
    shares = [planned((0.5,), n, 1.0).parameters["epsilon_end"] for n in (150, 500, 3000, 100_000)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.3
    assert shares[-1] < 0.1


@pytest.mark.parametrize("budget", [od.PureDP, od.ZCDP])
@pytest.mark.parametrize(("levels", "n"), [((0.5,), 300), ((0.5,), 30_000), ((0.1, 0.5, 0.9), 5000)])
def test_share_is_the_smallest_near_the_narrowest_width(levels, n, budget):
    """Recomputed from the plan's own exact ranks: no smaller share is as narrow, and none at all much narrower."""
    plan = planned(levels, n, 1.0, budget=budget)
    flip, size = "flip" in plan.parameters, len(levels)
    chosen = quantiles.share_of_intervals(budget(1.0), plan.model, 0.95, n, 1, flip=flip)

    def width(share):
        scale = plan.parameters["epsilon_end"] * size / chosen
        weight, levels_left = scale * share / size / 2.0, scale * (1.0 - share)
        _, margins = selection.expected_margins(levels, n, weight, 0.05, 0.0, flip=flip)
        depth = len([name for name in plan.parameters if name.startswith("epsilon_")]) - 1
        own = np.array(plan.mechanism.rank_errors(plan)) * n
        now = plan.parameters["epsilon_1"] * depth
        return float(np.mean(margins + own * now / levels_left / np.sqrt(2.0)))

    narrowest = min(width(share) for share in quantiles.SHARES)
    assert width(chosen) <= quantiles.WIDER * narrowest * 1.02
    assert chosen == quantiles.SHARES[0] or width(chosen - 1.0 / 40.0) > quantiles.WIDER * narrowest * 0.98


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize(("level", "n", "weight"), [(0.5, 200, 0.2), (0.5, 10_000, 0.1), (0.2, 5000, 0.5)])
def test_expected_margin_is_that_of_the_exact_ranks(level, n, weight, flip):
    low, high = selection.end_ranks(ColumnQuantiles((level,), 0.0, 1000.0, interval=0.95), n, weight, flip=flip)
    _, margins = selection.expected_margins((level,), n, weight, 0.05, 0.0, flip=flip)
    assert n * level - low == pytest.approx(margins[0], abs=2.0)
    assert n * (1.0 - level) - high == pytest.approx(margins[0], abs=2.0)


def test_quantiles_keep_all_where_no_end_has_room():
    assert (
        quantiles.share_of_intervals(
            od.PureDP(1.0), ColumnQuantiles(QUARTILES, 0.0, 1000.0, interval=0.95), 0.95, 200, 1, flip=True
        )
        == 0.0
    )
    plan, alone = (planned(QUARTILES, 200, 1.0, interval=interval) for interval in (0.95, None))
    assert "width_ends" not in plan.parameters
    assert plan.parameters == alone.parameters


@pytest.mark.finding("mathematics M2", commit="8a7c0fb")
@pytest.mark.parametrize(("n", "epsilon"), [(400, 1.0), (2000, 0.2)])
def test_quartiles_of_few_records_have_intervals(n, epsilon):
    plan = planned(QUARTILES, n, epsilon)
    assert plan.parameters["lower_rank_2"] > 0.0
    assert plan.parameters["upper_rank_1"] > 0.0


def test_end_is_dropped_only_where_the_other_gains_twice_the_room():
    assert selection.is_dropped(10.0, 20.0, 11.0)
    assert not selection.is_dropped(10.0, 19.0, 11.0)
    assert not selection.is_dropped(11.0, 100.0, 11.0)


def test_room_outweighs_the_penalties_of_half_a_ladder():
    """The widest rung is then less likely than the right one, at the middle of the ladder."""
    steps, weight = 10**7, 0.25
    room = selection.least_room(steps, weight)
    assert np.exp(-weight * room) == pytest.approx(0.6 ** (len(selection.ladder(steps)) / 2.0), rel=1e-3)


def test_plan_with_another_share_is_still_read():
    """A certificate states its widths and ranks: those of the share of 1/14 hold as they are."""
    old = planned((0.5,), 2000, 1.0)
    stated = {"width_1": 486838.0, "width_ends": 37449.0, "flip": 1.0, "lower_rank_1": 902.0, "upper_rank_1": 902.0}
    plan = ExponentialQuantiles().plan(old.request, stated)
    assert plan.parameters["epsilon_end"] == pytest.approx(1.0 / 14.0, rel=1e-3)
    assert plan.guarantee.promise.pure_epsilon <= 1.0


@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.ApproxDP(1.0, 1e-5), od.ZCDP(0.05)], ids=str)
def test_audited_plan_with_a_width_has_one(budget):
    """It had none: 12 records were too few for an interval, and the audit attacked the quantile alone."""
    case = quantile_cases(budget)[2]
    assert case.plan.parameters["width_ends"] > 0
    assert examine(case).passed
