"""Posteriors that know of the noise, against naive versions: sums over all true counts, quadrature, and truths that
are known."""

import math

import numpy as np
import pytest
from scipy import special, stats

import onedraw as od
from onedraw import models
from onedraw.audit.cases import examine
from onedraw.baselines import NoiseAware
from onedraw.baselines.audits.family_sums import family_sums_cases, product_sums_cases
from onedraw.baselines.noisy_counts import CountPosterior
from onedraw.baselines.noisy_totals import SumNoise, TabulatedLaw
from onedraw.baselines.sufficient_statistics import naive_posterior, sums_of
from onedraw.methods import plan_from_dict
from onedraw.methods.catalog import case_for
from tests.baselines.cases import FAMILIES, N

BUDGETS = [od.PureDP(0.3), od.ApproxDP(1.0, 1e-6), od.ZCDP(0.02), od.GaussianDP(0.5)]


def plan_of(name, budget=od.PureDP(1.0), n=N):  # noqa: B008  # a frozen value
    return od.calibrate(NoiseAware(), FAMILIES[name][0], budget, n=n)


def posterior_of(plan, *sums):
    """Of sums in the model's own unit."""
    unit = float(sums_of(plan.model).unit)
    return plan.mechanism.posterior(plan, {"noisy sums": [round(value / unit) for value in sums]})


# ── against naive versions ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.oracle
@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.PureDP(0.05), od.GaussianDP(0.3)], ids=str)
@pytest.mark.parametrize("z", [-30.0, 2.0, 41.5, 130.0])
def test_a_proportion_is_the_sum_over_all_true_counts(z, budget):
    plan = plan_of("proportion", budget)
    (a, b), noise = plan.model.prior, SumNoise.of(plan, 2.0**-32)
    k = np.arange(N + 1)
    weights = stats.betabinom.pmf(k, N, a, b) * np.exp(noise.log_mass(z - k) - noise.log_mass(z - k).max())
    weights /= weights.sum()
    found = posterior_of(plan, z)
    below = [float(weights @ stats.beta.cdf(end, a + k, b + N - k)) for end in found.interval(0.9)[0]]
    assert below == pytest.approx([0.05, 0.95], abs=1e-9)
    assert found.mean[0] == pytest.approx(float(weights @ (a + k)) / (a + b + N), rel=1e-9)


@pytest.mark.oracle
def test_categories_are_the_sum_over_all_true_counts_together():
    model, n, z = models.DirichletCategorical((0.5, 2.0, 1.0)), 12, (7.0, 9.0, -4.0)
    plan = od.calibrate(NoiseAware(), model, od.PureDP(0.7), n=n)
    found, noise = posterior_of(plan, *z), SumNoise.of(plan, 1.0)
    tables = [(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]
    shapes = np.array(tables) + np.array(model.prior)
    logs = special.gammaln(shapes) - special.gammaln(np.array(tables) + 1) + noise.log_mass(np.array(z) - tables)
    weights = np.exp(logs.sum(axis=1) - logs.sum(axis=1).max())
    weights /= weights.sum()
    assert found.mean == pytest.approx(weights @ shapes / shapes[0].sum(), rel=1e-10)
    for j, (low, high) in enumerate(found.interval(0.9)):
        mixed = [
            float(weights @ stats.beta.cdf(end, shapes[:, j], shapes[0].sum() - shapes[:, j])) for end in (low, high)
        ]
        assert mixed == pytest.approx([0.05, 0.95], abs=1e-9)
    counts = found.draw_counts(20_000, np.random.default_rng(1))
    assert (counts.sum(axis=1) == n).all()
    seen = {table: float((counts == table).all(axis=1).mean()) for table in tables}
    assert 0.5 * sum(abs(seen[table] - weight) for table, weight in zip(tables, weights, strict=True)) < 0.03
    draws = found.draw(20_000, np.random.default_rng(2))
    assert draws.mean(axis=0) == pytest.approx(found.mean, abs=0.006)
    assert np.hypot(*found.errors) == pytest.approx(draws.std(axis=0), rel=0.03)


def far_apart(plan, z, value, exact):
    """The total variation between a posterior and one given by its density on a grid."""
    found = posterior_of(plan, z)
    exact = exact / np.trapezoid(exact, value)
    below = np.array([np.interp(value, found._at(np.linspace(0.0, 1.0, 4001)), np.linspace(0.0, 1.0, 4001))])[0]
    return 0.5 * np.abs(np.diff(below) - (exact[1:] + exact[:-1]) / 2.0 * np.diff(value)).sum()


@pytest.mark.oracle
@pytest.mark.parametrize("alpha", [(1e4, 1e4, 1e4), (2e6, 1e6, 3.0), (1e-3, 5.0, 1e4)])
def test_strong_priors_of_categories_do_not_underflow(alpha):
    """Factors of single counts grow like N^α, and only their product with Σ N = n is a law: it is here by Beta-binomial laws."""
    n, z = 400, (150.0, 90.0, 180.0)
    plan = od.calibrate(NoiseAware("laplace"), models.DirichletCategorical(alpha), od.PureDP(0.05), n=n)
    found, noise, k = posterior_of(plan, *z), SumNoise.of(plan, 1.0), np.arange(n + 1)

    def of_two(total):
        """log Σ over N_2 + N_3 = total."""
        j = np.arange(total + 1)
        return special.logsumexp(sum(
            special.gammaln(a + i) - special.gammaln(i + 1) + noise.log_mass(y - i)
            for a, i, y in zip(alpha[1:], (j, total - j), z[1:], strict=True)
        ))  # fmt: skip

    logs = special.gammaln(alpha[0] + k) - special.gammaln(k + 1) + noise.log_mass(z[0] - k)
    weights = special.softmax(logs + np.array([of_two(total) for total in n - k]))
    assert found.mean[0] == pytest.approx(float(weights @ (alpha[0] + k)) / (sum(alpha) + n), rel=1e-8)
    assert found.counted[0].weights @ found.counted[0].counts == pytest.approx(float(weights @ k), rel=1e-6)
    assert found.mean.sum() == pytest.approx(1.0)
    assert np.isfinite(found.draw(5, np.random.default_rng(1))).all()


@pytest.mark.oracle
@pytest.mark.parametrize("n", [20, 300])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_normal_sum_stands_for_poisson_counts_and_gamma_sums(epsilon, n):
    """Without clamping both have exact posteriors, by sums and by quadrature; the paper's approximation stays near
    them."""
    counts = od.calibrate(NoiseAware(), models.GammaPoisson(prior=(4.0, 2.0), cap=25), od.PureDP(epsilon), n=n)
    rate = np.linspace(1e-4, 14.0, 3000)
    k = np.arange(0.0, 14.0 * n + 1.0)
    sums = np.exp(k * np.log(n * rate[:, None]) - n * rate[:, None] - special.gammaln(k + 1.0))
    z = 2.3 * n
    assert (
        far_apart(
            counts, z, rate, stats.gamma.pdf(rate, 4.0, scale=0.5) * (sums @ np.exp(-np.abs(z - k) * epsilon / 25))
        )
        < 0.006
    )
    durations = od.calibrate(NoiseAware(), models.GammaExponential(prior=(4.0, 4.0), cap=20.0), od.PureDP(epsilon), n=n)
    rate, s = np.linspace(0.02, 5.0, 1500), np.linspace(1e-3, 12.0 * n, 4000)
    sums = stats.gamma.pdf(s, n, scale=1.0 / rate[:, None])
    z = 0.9 * n
    exact = stats.gamma.pdf(rate, 4.0, scale=0.25) * (sums @ np.exp(-np.abs(z - s) * epsilon / 20.0))
    assert far_apart(durations, z, rate, exact) < 0.006


@pytest.mark.oracle
@pytest.mark.parametrize("parameter", [0.02, 0.9, 3.0, 40.0])
def test_moments_of_clamped_records(parameter):
    generator, many = np.random.default_rng(1), 10**6
    clamped = [
        (models.GammaPoisson(prior=(1.0, 1.0), cap=3), generator.poisson(parameter, many).clip(0, 3)),
        (models.GammaExponential(prior=(1.0, 1.0), cap=2.0), generator.exponential(1 / parameter, many).clip(0, 2)),
        (
            models.GaussianMean(2.0, 2.25, prior_count=1.0, centre=1.0),
            generator.normal(parameter - 1, 1.5, many).clip(-2, 2),
        ),
    ]
    for model, drawn in clamped:
        mean, variance = model.clamped_moments(np.array([parameter]))
        assert mean[0] == pytest.approx(drawn.mean(), abs=6e-3 * max(drawn.std(), 1e-3))
        assert variance[0] == pytest.approx(drawn.var(), rel=0.02, abs=1e-5)


def test_the_moments_of_a_duration_do_not_lose_their_digits():
    model = models.GammaExponential(prior=(1.0, 1.0), cap=2.0)
    rates = np.geomspace(1e-8, 0.5, 200)
    variance = model.clamped_moments(rates)[1]
    assert variance[rates < 1e-4] == pytest.approx(4.0 * 2.0 * rates[rates < 1e-4] / 3.0, rel=2e-3)
    assert (np.diff(variance) > 0.0).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_with_hardly_any_noise_it_is_the_familys_own_posterior(name):
    model, records = FAMILIES[name]
    wide = {
        "mean": models.GaussianMean(50.0, 1.0, prior_count=1.0, centre=1.0),
        "counts": models.GammaPoisson(prior=(1.0, 0.5), cap=80),
        "durations": models.GammaExponential(prior=(2.0, 2.0), cap=400.0),
    }
    model = wide.get(name, model)
    plan = od.calibrate(NoiseAware(), model, od.PureDP(1e4), n=N)
    whole = sums_of(model).whole(model.summarise(records))
    if name == "average":  # fractions of a trial
        whole = (round(whole[0] / 2**32) * 2**32,)
    found, own = plan.mechanism.posterior(plan, {"noisy sums": whole}), naive_posterior(plan, whole)
    assert found.interval(0.9) == pytest.approx(own.interval(0.9), rel=0.04 if name in wide else 1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_where_noise_says_nothing_it_is_the_prior(name):
    plan = plan_of(name, od.PureDP(1e-3 if name == "categories" else 1e-5))
    found = posterior_of(plan, *[float(N) / 3.0] * sums_of(plan.model).entries)
    prior = plan.model.prior_law
    draws = prior.draws(np.random.default_rng(1), 200_000).reshape(200_000, -1)
    assert found.interval(0.9) == pytest.approx(np.quantile(draws, [0.05, 0.95], axis=0).T, rel=0.02, abs=0.01)


def test_a_tabulated_law_is_the_law():
    law = TabulatedLaw.found(lambda x: -0.5 * (x - 3.0) ** 2 / 0.01**2, -1e4, 1e4)
    assert law.quantile([0.05, 0.5, 0.975]) == pytest.approx(3.0 + 0.01 * stats.norm.ppf([0.05, 0.5, 0.975]), abs=1e-6)
    assert law.average((law.nodes - 3.0) ** 2) == pytest.approx(1e-4, rel=1e-4)
    tail = TabulatedLaw.found(lambda x: 0.1 * x - np.exp(x), -690.0, 10.0)
    assert special.gammainc(0.1, np.exp(tail.quantile([0.05, 0.5, 0.95]))) == pytest.approx([0.05, 0.5, 0.95], abs=1e-3)


@pytest.mark.oracle
def test_gaussian_noise_that_was_rounded_is_counted_as_such():
    """zCDP is discrete noise on counts, Gaussian DP is finer noise rounded to them: two laws, where they are a step
    wide."""
    discrete, rounded = (
        SumNoise.of(plan_of("categories", budget), 1.0) for budget in (od.ZCDP(2.0), od.GaussianDP(2.0))
    )
    assert (discrete.rounded, rounded.rounded) == (False, True)
    steps = np.arange(-9.0, 10.0)
    assert np.diff(discrete.log_mass(steps)) == pytest.approx(np.diff(-0.5 * (steps / discrete.scale) ** 2))
    assert np.exp(rounded.log_mass(steps)) == pytest.approx(
        np.diff(stats.norm.cdf((np.append(steps, 10.0) - 0.5) / rounded.scale)), rel=1e-9
    )


# ── plans, files, refusals ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_release_is_read_back_from_its_file_with_all_its_posterior(name, budget, tmp_path):
    plan = plan_of(name, budget)
    assert plan_from_dict(plan.to_dict()) == plan
    od.release(plan, FAMILIES[name][1]).save(tmp_path / "one.json")
    read = od.load(tmp_path / "one.json")
    draws, ends = read.posterior(4000, random_state=1), read.conf_int(0.9)
    assert draws.mean(axis=0) == pytest.approx(list(read.named().values()), abs=0.1 * float(np.ptp(ends)))
    inside = ((draws >= ends[:, 0]) & (draws <= ends[:, 1])).mean(axis=0)
    assert inside == pytest.approx(0.9, abs=0.03)


def test_its_report_shows_the_interval(tmp_path):
    release = od.release(plan_of("proportion"), FAMILIES["proportion"][1], random_state=1)
    assert release.summary(0.9).given
    assert "leave out the noise" not in release.report(tmp_path / "page.html").read_text()


def test_what_it_cannot_do_is_refused_with_a_remedy():
    vectors = models.GaussianMean(1.0, 1.0, prior_count=1.0, dim=2)
    with pytest.raises(od.errors.UnsupportedBudget, match="dim=1"):
        od.calibrate(NoiseAware(), vectors, od.PureDP(1.0), n=N)
    with pytest.raises(od.errors.PromiseRefused, match="fewer categories"):
        od.calibrate(NoiseAware(), models.DirichletCategorical((1.0,) * 200), od.PureDP(1e-4), n=10**6)
    with pytest.raises(od.errors.UnsupportedBudget, match="response_bound"):
        od.calibrate(NoiseAware(response_bound=1.0), FAMILIES["counts"][0], od.PureDP(1.0), n=N)


def test_sums_that_no_noise_explains_are_refused():
    plan = od.calibrate(NoiseAware(), FAMILIES["categories"][0], od.PureDP(30.0), n=N)
    with pytest.raises(od.errors.PromiseRefused, match="edited or damaged"):
        _ = CountPosterior.of(plan, np.array([90.0, 90.0, 90.0])).mean


# ── attacks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.ZCDP(0.5), od.GaussianDP(0.8)], ids=str)
def test_every_promise_is_attained_and_a_tenth_less_noise_is_caught(budget):
    for case in [*family_sums_cases(NoiseAware, budget)[:3], *product_sums_cases(budget)]:
        one = examine(case)
        assert one.passed
        assert one.gap == pytest.approx(1.0, abs=1e-4)
        assert case.profile(one.pair, 1.1).breaks(case.promise) is not None


def test_a_file_is_attacked_by_its_own_plan():
    assert case_for(plan_of("counts")).mechanism == "noise-aware"


# ── coverage ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_intervals_cover_as_often_as_they_say_and_naive_ones_do_not(epsilon):
    """α ≈ 1e-6 for 1,000 data sets: 90 % ± 4.7 %; the naive interval is the planted fault."""
    generator, covered = np.random.default_rng(5), []
    plan = od.calibrate(NoiseAware(), models.GammaPoisson(prior=(4.0, 2.0), cap=6), od.PureDP(epsilon), n=200)
    for _ in range(1000):
        rate = generator.gamma(4.0, 0.5)
        sums = generator.poisson(rate, 200).clip(0, 6).sum() + np.diff(
            generator.geometric(-math.expm1(-epsilon / 6), 2)
        )
        ends = [one.interval(0.9)[0] for one in (posterior_of(plan, *sums), naive_posterior(plan, sums))]
        covered.append([low <= rate <= high for low, high in ends])
    aware, naive = np.mean(covered, axis=0)
    assert abs(aware - 0.9) < 0.047
    assert naive < 0.9 - 0.047
