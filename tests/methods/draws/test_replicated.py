"""Intervals from replicated draws, and the closed forms of conjugate families: they cover, or they are refused."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw import errors
from onedraw.methods import calibrate
from onedraw.methods.draws import replicated as module
from onedraw.methods.draws.law import design_of
from onedraw.methods.draws.path_start import left_of_start
from onedraw.methods.draws.replicated import (
    interval,
    interval_multiplier,
    largest_ratio,
    student,
    why_no_interval,
)
from onedraw.models import GammaPoisson, GaussianMean
from onedraw.planning import Regression, choices, rank_plans
from tests.methods.draws.cases import OfRecords

BUDGET = od.ApproxDP(1.0, 1e-6)
LINEAR = Regression("linear", 3, bounds=((0, 10, -1), (1, 30, 1)), response_bound=4.0)
SIZES = {"effect": 1.0, "noise": 1.0}


@pytest.fixture(scope="module")
def replicated():
    """Least squares: eight draws by a closed form, and the plan for them."""
    question = dataclasses.replace(LINEAR, radius=3.0)
    variant = question.variant("least-squares gdp")
    return calibrate(variant.mechanism, variant.model, od.ApproxDP(5.0, 1e-6), n=200_000, draws=8)


# ── the interval ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_interval_is_the_formula(replicated):
    draws = np.random.default_rng(1).normal([1.0, -1.0, 0.0, 0.5], 0.1, (8, 4))
    found = interval(draws, replicated, 0.9, **SIZES)
    share = replicated.parameters["weight"] * largest_ratio(replicated, design_of(replicated, **SIZES))
    half = interval_multiplier(replicated, 0.9, **SIZES) * draws.std(axis=0, ddof=1) * math.sqrt(share + 1 / 8)
    assert np.allclose(found.centre, draws.mean(axis=0))
    assert np.all(found.high - found.centre <= half * (1 + 1e-9))
    assert np.allclose(found.privacy, draws.std(axis=0, ddof=1) / math.sqrt(8))
    assert np.all(found.start == 0.0), "an exact draw has no start"


def test_a_functional_is_treated_as_a_parameter(replicated):
    """Column units: the interval of a rescaled coefficient is the rescaled interval."""
    draws = np.random.default_rng(2).normal(0.0, 0.1, (8, 4))
    plain = interval(draws, replicated, **SIZES)
    columns = replicated.model.in_column_units(np.eye(4)).T
    found = interval(draws, replicated, functional=columns, **SIZES)
    assert np.allclose(found.centre, replicated.model.in_column_units(plain.centre))
    assert np.allclose((found.high - found.low)[:3], (plain.high - plain.low)[:3] / np.array([0.5, 10.0, 1.0]))


def test_the_sample_adds_at_most_its_ratio():
    """s: 1 for logistic losses, 0.368 at β = 1 + 1/ln 2 and 0.5 at β = 2 (methods/draws/proof.md), σ² for squared residuals."""
    logistic = Regression("logistic", 2, bounds=(0, 1))
    for name, beta, ratio in (("noisy-gradient", None, 1.0), ("candidates", 2.442695, 0.368), ("candidates", 2.0, 0.5)):
        variant = logistic.variant(name)
        mechanism = variant.mechanism if beta is None else od.Candidates(of=od.BetaDivergence(beta=beta))
        plan = calibrate(mechanism, variant.model, BUDGET, n=500, draws=2)
        assert largest_ratio(plan, design_of(plan)) == pytest.approx(ratio, abs=2e-4)
    variant = LINEAR.variant("least-squares")
    plan = calibrate(variant.mechanism, variant.model, BUDGET, n=500, draws=2)
    assert largest_ratio(plan, design_of(plan, noise=2.0)) == pytest.approx(4.0, rel=1e-3)


def test_the_multiplier_covers_a_bias_that_is_there(replicated):
    """Without bias it is Student's t; a stronger pull of the prior stretches it."""
    assert interval_multiplier(replicated, **SIZES) == pytest.approx(student(0.95, 8), rel=0.1)
    tight = dataclasses.replace(LINEAR, prior_scale=0.3, radius=3.0).variant("least-squares gdp")
    pulled = calibrate(tight.mechanism, tight.model, od.ApproxDP(5.0, 1e-6), n=2000, draws=8)
    assert interval_multiplier(pulled, **SIZES) > 1.5 * student(0.95, 8)


def test_the_rank_is_that_of_clopper_and_pearson():
    rank = module._rank(1000, 0.95)
    assert stats.beta.ppf(0.01, rank, 1001 - rank) >= 0.95 > stats.beta.ppf(0.01, rank - 1, 1002 - rank)


def test_simulated_releases_are_covered(replicated):
    """500 data sets from the law itself: at least 95 %, at α ≈ 1e-6; intervals of half the width would be found out."""
    design, generator = design_of(replicated, **SIZES), np.random.default_rng(3)
    design = dataclasses.replace(design, limit=math.inf)
    law = module.moments_of(replicated, design)
    covered = {1.0: 0, 0.5: 0}
    for _ in range(500):
        index = generator.integers(len(law.truth))
        centre = generator.multivariate_normal(law.mean[index], law.sampling[index])
        found = interval(generator.multivariate_normal(centre, law.drawing[index], size=8), replicated, **SIZES)
        for factor in covered:
            half = factor * (found.high - found.centre)
            covered[factor] += int((np.abs(found.centre - law.truth[index]) <= half).sum())
    assert covered[1.0] / 2000 > 0.95 - 4.75 * math.sqrt(0.95 * 0.05 / 500)
    assert covered[0.5] / 2000 < 0.95 - 4.75 * math.sqrt(0.95 * 0.05 / 500)


def test_a_path_that_was_slower_than_planned_widens_the_interval():
    variant = LINEAR.variant("noisy-gradient huber")
    mechanism = dataclasses.replace(variant.mechanism, relaxations=9.0)
    plan = calibrate(mechanism, variant.model, od.ApproxDP(5.0, 1e-6), n=4000, draws=8)
    generator, limit = np.random.default_rng(4), math.sqrt(2.0 * plan.parameters["time"])
    arrived = left_of_start(1.0 + 0.2 * limit * generator.standard_normal((8, 4)), plan)
    underway = left_of_start(1.0 + 0.7 * limit * generator.standard_normal((8, 4)), plan)
    assert arrived.max() < 0.01
    assert underway.min() > 0.1


def one_fit(rare: float | None, *, seed: int):
    """n = 3000, ε = 5, the noise that the plan assumes; the first column holds a 1 in few records, or is uniform."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(size=(3000, 3))
    if rare is not None:
        X[:, 0] = generator.uniform(size=3000) < rare
    y = X @ np.array([5.0, 1.0, -1.0]) + generator.normal(0.0, 2.5, 3000)
    options = {"mechanism": "noisy-gradient huber", "missing": "middle", "n_draws": 8}
    return od.DPLinearRegression(5.0, bounds=(0, 1), response_bound=10.0, random_state=seed, **options).fit(X, y)


@pytest.mark.finding("F2")
def test_a_rare_column_is_refused_an_interval_and_columns_that_fill_their_range_are_not():
    uniform, rare = one_fit(None, seed=1), one_fit(0.002, seed=1)
    assert np.isfinite(uniform.conf_int()).all()
    assert uniform.interval_reason_ == ""
    assert math.isnan(rare.summary()[0].low)
    assert "may not have got far from where they started" in rare.interval_reason_
    assert "No interval" in str(rare.summary())


@pytest.mark.finding("F2")
def test_only_the_coefficient_whose_draws_are_too_wide_is_refused():
    plan = rank_plans(LINEAR, BUDGET, n=20_000, draws=8, mechanism="noisy-gradient huber").best
    share = np.array([0.1, 0.01, 0.01, 0.01])  # of the variance without any curvature; 0.17 at three relaxation times
    scaled = stats.norm.ppf((np.arange(8) + 0.5) / 8)
    shape = np.stack([np.roll(scaled / scaled.std(ddof=1), 3 * k) for k in range(4)], axis=1)
    draws = 1.0 + np.sqrt(2.0 * plan.parameters["time"] * share) * shape
    part = interval(draws, plan, **SIZES)
    assert np.isnan(part.low).tolist() == [True, False, False, False]
    assert np.isnan(part.sampling).tolist() == [True, False, False, False]
    stuck = 1.0 + np.sqrt(2.0 * plan.parameters["time"] * (share + np.array([0.4, 0.0, 0.0, 0.0]))) * shape
    with pytest.raises(errors.PromiseRefused, match="may not have got far from where they started"):
        interval(stuck, plan, **SIZES)


def test_four_draws_of_a_path_could_not_show_what_they_would_have_to():
    variant = LINEAR.variant("noisy-gradient huber")
    mechanism = dataclasses.replace(variant.mechanism, relaxations=12.0)
    plans = [calibrate(mechanism, variant.model, BUDGET, n=20_000, draws=draws) for draws in (4, 8)]
    assert "could not show that they have left their common starting point behind" in why_no_interval(
        plans[0], 0.95, **SIZES
    )
    assert why_no_interval(plans[1], 0.95, **SIZES) is None


# ── the regime ───────────────────────────────────────────────────────────────────────────────────────────────


def test_outside_the_regime_an_interval_is_refused_with_the_reason():
    variant = LINEAR.variant("least-squares")
    plan = calibrate(variant.mechanism, variant.model, BUDGET, n=500, draws=8)
    with pytest.raises(errors.PromiseRefused, match=r"records weigh only .* an interval needs 25 times"):
        interval(np.zeros((8, 4)), plan, **SIZES)
    single = calibrate(variant.mechanism, variant.model, BUDGET, n=500)
    assert why_no_interval(single, 0.95) == "one draw does not show how noisy it is; ask for several (8, say)"
    with pytest.raises(errors.WrongCall, match="level"):
        interval(np.zeros((8, 4)), plan, 95)


def test_calibrated_multipliers_are_kept_on_disk_and_odd_files_ignored(replicated, tmp_path, monkeypatch):
    monkeypatch.setenv("ONEDRAW_CACHE", str(tmp_path))
    monkeypatch.setattr(module, "_KNOWN", {})
    first = interval_multiplier(replicated, 0.8, **SIZES)
    (stored,) = (tmp_path / "intervals").iterdir()
    monkeypatch.setattr(module, "_calibrated", None)
    module._KNOWN.clear()
    assert interval_multiplier(replicated, 0.8, **SIZES) == first
    monkeypatch.undo()
    monkeypatch.setenv("ONEDRAW_CACHE", str(tmp_path))
    monkeypatch.setattr(module, "_KNOWN", {})
    stored.write_text("[1, 2")
    assert interval_multiplier(replicated, 0.8, **SIZES) == first


# ── conjugate families ───────────────────────────────────────────────────────────────────────────────────────


FAMILIES = {
    "proportion": (
        od.models.BetaBernoulli(),
        lambda plan, truth, generator, size: _beta(plan, generator.binomial(plan.n, truth, size), generator),
    ),
    "rate": (
        od.models.GammaPoisson(prior=(1.0, 0.5), cap=6.0),
        lambda plan, truth, generator, size: _rate(plan, generator.poisson(plan.n * truth, size), generator),
    ),
    "duration": (
        od.models.GammaExponential(prior=(2.0, 4.0), cap=20.0),
        lambda plan, truth, generator, size: _duration(plan, generator.gamma(plan.n, 1 / truth, size), generator),
    ),
    "mean": (
        od.models.GaussianMean(bound=1.0, variance=0.02, prior_count=1.0, prior_mean=0.3),
        lambda plan, truth, generator, size: _mean(plan, generator.binomial(plan.n, (1 + truth) / 2, size), generator),
    ),
}


def _beta(plan, counts, generator):
    (a, b), r, m = plan.model.prior, plan.parameters["r"], plan.parameters["prior_factor"]
    return generator.beta(a / m + r * counts, b / m + r * (plan.n - counts))


def _rate(plan, sums, generator):
    (a, b), r, m = plan.model.prior, plan.parameters["r"], plan.parameters["prior_factor"]
    return generator.gamma(a / m + r * sums) / (b / m + r * plan.n)


def _duration(plan, sums, generator):
    (a, b), r, m = plan.model.prior, plan.parameters["r"], plan.parameters["prior_factor"]
    return generator.gamma(a / m + r * plan.n, size=len(sums)) / (b / m + r * sums)


def _mean(plan, ones, generator):
    """Records of ±1, which have the largest variance there is."""
    model, r, m = plan.model, plan.parameters["r"], plan.parameters["prior_factor"]
    records = model.prior_count / m + r * plan.n
    centre = (model.prior_count / m * model.prior_mean + r * (2 * ones - plan.n)) / records
    return generator.normal(centre, math.sqrt(model.variance / records))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_ends_are_truths_at_which_the_draw_is_just_plausible(name):
    """At either end a draw as far away has probability 2.5 %: 40,000 simulated draws at α ≈ 1e-6."""
    model, simulate = FAMILIES[name]
    plan, generator = choices(model, BUDGET, n=10_000).best, np.random.default_rng(5)
    draw = 0.4
    found = interval(np.array([[draw]]), plan)
    allowed = 40_000 * 0.025, 5.0 * math.sqrt(40_000 * 0.025) + 60.0  # the closed form of a sum is nearly exact
    above = (simulate(plan, float(found.low[0]), generator, 40_000) >= draw).sum()
    below = (simulate(plan, float(found.high[0]), generator, 40_000) <= draw).sum()
    assert abs(above - allowed[0]) < allowed[1]
    assert abs(below - allowed[0]) < allowed[1]
    inside = float(0.7 * found.low[0] + 0.3 * draw)
    assert abs((simulate(plan, inside, generator, 40_000) >= draw).sum() - allowed[0]) > allowed[1]


def test_every_level_of_a_histogram_has_its_own_interval():
    plan = choices(od.models.DirichletCategorical(prior=(1.0, 1.0, 1.0)), BUDGET, n=2000).best
    found = interval(np.array([[0.2, 0.3, 0.5]]), plan)
    assert np.all(found.low < found.centre)
    assert np.all(found.centre < found.high)
    narrow = interval(np.array([[0.2, 0.3, 0.5]]), plan, 0.8)
    assert np.all(narrow.high - narrow.low < found.high - found.low)


def test_a_declared_spread_of_the_records_narrows_the_interval_of_a_mean():
    plan = choices(FAMILIES["mean"][0], BUDGET, n=2000).best
    widest, declared = (interval(np.array([[0.2]]), plan, noise=noise) for noise in (None, 0.1))
    assert declared.high - declared.low < 0.6 * (widest.high - widest.low)
    several = choices(FAMILIES["mean"][0], BUDGET, n=2000, draws=2).best
    with pytest.raises(errors.PromiseRefused, match="one draw"):
        interval(np.zeros((2, 1)), several)


# ── coverage ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False], ids=["own chains", "law of the records"])
def test_intervals_cover_in_simulated_studies(own):
    """100 data sets, 4 coefficients, most of them given: at least 88 % of 95 % intervals."""
    question, n = Regression("logistic", 3, bounds=(0, 1)), 1500
    plan = rank_plans(question, od.ApproxDP(5.0, 1e-6), n=n, draws=8, mechanism="noisy-gradient exp-linear").best
    generator, covered, given = np.random.default_rng(6), 0, 0
    design, sampler = design_of(plan, **SIZES), od.samplers.default_sampler(plan)[0]
    for number in range(100):
        theta = design.parameters(generator, 1)[0]
        data = design.data_set(theta, n, generator)
        if own:
            draws = sampler.run(plan.target(data), od.samplers.seeded_key(number), size=8).draws
        else:
            draws = generator.multivariate_normal(*OfRecords(plan, design, data).law(), size=8)
        part = interval(draws, plan, **SIZES)
        given += int(np.isfinite(part.low).sum())
        covered += int(((part.low <= theta) & (theta <= part.high)).sum())
    assert given >= 0.6 * 400
    assert covered >= 0.88 * given


@pytest.mark.slow
def test_the_interval_of_a_proportion_covers_in_real_releases():
    plan = choices(od.models.BetaBernoulli(), BUDGET, n=500).best
    generator, covered = np.random.default_rng(7), 0
    for _ in range(300):
        released = od.release(plan, generator.random(500) < 0.1)
        part = interval(released.draws, plan, 0.9)
        covered += int(part.low[0] <= 0.1 <= part.high[0])
    assert stats.binom.cdf(covered, 300, 0.9) > 1e-6
    assert stats.binom.sf(covered - 1, 300, 0.9) > 1e-6, "not wider than needed"


WEAK = {
    "mean": (GaussianMean(bound=1.0, variance=0.25, prior_count=1e-12), lambda rng, n: rng.uniform(-0.3, 0.7, n), 0.2),
    "rate": (GammaPoisson((1e-3, 1e-3), cap=3), lambda rng, n: rng.poisson(0.05, n), 0.05),
}


@pytest.mark.parametrize("weak", WEAK)
def test_interval_of_a_draw_on_a_coarse_lattice_holds_the_truth(weak):
    """The step follows from the prior: with a weak one, means are rounded by a quarter and rates to 0."""
    model, records, truth = WEAK[weak]
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=20_000)
    held = 0
    for seed in range(12):
        data = records(np.random.default_rng(seed), plan.n)
        ((low, high),) = od.release(plan, data, random_state=seed).conf_int()
        held += low <= truth <= high
    assert held >= 11
