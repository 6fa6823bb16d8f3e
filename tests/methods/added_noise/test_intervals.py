"""Plain noise planned and read: errors, intervals that cover, tables whose totals are public, and what is loaded for it."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

import onedraw as od
from onedraw.methods import AddedNoise
from onedraw.methods.added_noise import intervals as tables
from onedraw.methods.added_noise.intervals import NoisyCount, _share, table_interval
from onedraw.methods.added_noise.mechanism import expected_noise
from onedraw.methods.added_noise.run import NoisySums
from onedraw.methods.noise_law import law_of
from onedraw.models import CategoryTable, Grouped, NumberTable
from onedraw.models.conjugate.family import binomial
from onedraw.samplers import seeded_generator

SHARE = CategoryTable(("no", "yes"), show="shares", only="yes")


@pytest.mark.parametrize(
    "table", [SHARE, CategoryTable(("a", "b", "c")), NumberTable(0, 1), NumberTable(0, 1, show="sum")]
)
def test_doubling_epsilon_halves_the_privacy_error(table):
    noise = [expected_noise(od.calibrate(AddedNoise(), table, od.PureDP(e), n=4177)) for e in (0.1, 0.2, 0.4)]
    assert noise[0] / noise[1] == pytest.approx(2.0, rel=0.02)
    assert noise[1] / noise[2] == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_the_error_is_that_of_the_textbook_laws(epsilon):
    """Geometric for counts, 1/nε·√2 for means; a histogram's cells have twice the noise of a count."""
    q = math.exp(-epsilon)
    geometric = math.sqrt(2 * q) / (1 - q)
    count = od.calibrate(AddedNoise(), CategoryTable(("no", "yes"), only="yes"), od.ApproxDP(epsilon, 1e-6), n=500)
    assert expected_noise(count) <= geometric * (1 + 1e-9)
    mean = od.calibrate(AddedNoise(), NumberTable(0, 1), od.ApproxDP(epsilon, 1e-6), n=500)
    assert expected_noise(mean) <= math.sqrt(2) / (500 * epsilon) * (1 + 1e-6)


@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.PureDP(0.1), od.ZCDP(0.5), od.GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize(("n", "share"), [(50, 0.001), (50, 0.5), (500, 0.01), (4177, 0.1)])
def test_the_interval_of_a_share_covers_exactly_at_least_what_it_says(n, share, budget):
    """By summation over all outcomes, not by simulation; half the interval's width does not."""
    law = law_of(od.calibrate(AddedNoise(), SHARE, budget, n=n))
    counts, masses = binomial(n, share)
    far = math.ceil(law.quantile(1 - 1e-4, [1.0], 0.0))
    step = max(1, (len(counts) + 2 * far) // 300)
    values = np.arange(counts[0] - far, counts[-1] + far, step)
    weight = np.array(
        [float(masses @ (law.at_most(v - counts + step - 1) - law.at_most(v - counts - 1))) for v in values]
    )
    covered = narrow = 0.0
    for value, mass in zip(values, weight, strict=True):
        low, high, *_ = _share(NoisyCount(float(value), [1.0], True), n, law, 0.9)
        quarter = (high - low) / 4
        covered += mass * (low <= share <= high)
        narrow += mass * (low + quarter <= share <= high - quarter)
    assert covered > 0.9 - 0.01
    assert narrow < 0.9


def test_a_cross_table_covers_every_cell_and_its_totals_are_public():
    """Two by six cells of unequal size, ε = 1, 500 runs: at least 94 % in every cell."""
    generator, noise = np.random.default_rng(5), seeded_generator(6)
    school = generator.choice(6, 8000, p=[0.12, 0.33, 0.22, 0.07, 0.17, 0.09])
    sex = generator.choice(2, 8000, p=[0.33, 0.67])
    table = CategoryTable(tuple("abcdef"), by=("sex",), groups=(("F", "M"),))
    plan = od.calibrate(AddedNoise(), table, od.PureDP(1.0), n=8000)
    totals = table.summarise(Grouped(school, (sex,)))
    truth, hits = np.array(totals.total), np.zeros(12)
    for _ in range(500):
        drawn = NoisySums().run(plan.target(totals), noise)
        low, high, *_ = table_interval(plan, drawn.stages, 0.95)
        hits += (low <= truth) & (truth <= high)
        cells = drawn.draws[0].reshape(2, 6)
        assert cells.sum() == 8000
        assert (cells >= 0).all()
    assert hits.min() / 500 >= 0.94


SPARSE = np.array([400, 90, 8, 2, 0, 0])


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize(
    "table",
    [
        CategoryTable(("x", "y"), by=("g",), groups=(tuple("abcdef"),)),
        CategoryTable(("x", "y"), show="shares", by=("g",), groups=(tuple("abcdef"),)),
        CategoryTable(tuple("abcdef"), show="shares"),
        NumberTable(0, 1, by=("g",), groups=(tuple("abcdef"),)),
        NumberTable(-1, 1, show="sum", by=("g",), groups=(tuple("abcdef"),)),
        NumberTable(0, 1, show="variance"),
    ],
    ids=lambda table: f"{table.quantity} of {table.cells}",
)
def test_the_shown_number_lies_in_its_interval_however_the_noise_fell(table, level):
    """Empty cells and ε = 0.1: noisy counts below zero, and shown ones that are not."""
    noise, n = seeded_generator(6), int(SPARSE.sum())
    codes, values = np.repeat(np.arange(6), SPARSE), np.arange(n) % 2
    data = Grouped(values, (codes,)) if table.by else codes if isinstance(table, CategoryTable) else values
    plan = od.calibrate(AddedNoise(), table, od.PureDP(0.1), n=n)
    totals = table.summarise(data)
    for _ in range(20):
        drawn = NoisySums().run(plan.target(totals), noise)
        low, high, *_ = table_interval(plan, drawn.stages, level)
        assert (low <= drawn.draws[0]).all()
        assert (drawn.draws[0] <= high).all()
        assert (low < high).all()


def test_where_no_cell_is_cut_off_the_interval_of_a_count_is_centred_on_it():
    table = CategoryTable(tuple("abc"), by=("g",), groups=(("u", "v"),))
    plan = od.calibrate(AddedNoise(), table, od.PureDP(1.0), n=6000)
    totals = table.summarise(Grouped(np.arange(6000) % 3, (np.arange(6000) % 2,)))
    drawn = NoisySums().run(plan.target(totals), seeded_generator(1))
    low, high, *_ = table_interval(plan, drawn.stages, 0.95)
    assert np.abs((low + high) / 2 - drawn.draws[0]).max() <= 1.0  # it is whole


def test_the_sizes_of_groups_are_covered_by_intervals_about_what_is_shown():
    """400 releases of six groups, two of them empty: 0.94 less three standard errors."""
    table = NumberTable(0, 1, show="sum", by=("g",), groups=(tuple("abcdef"),))
    n = int(SPARSE.sum())
    plan = od.calibrate(AddedNoise(), table, od.PureDP(0.5), n=n)
    totals = table.summarise(Grouped(np.linspace(0, 1, n), (np.repeat(np.arange(6), SPARSE),)))
    noise, hits = seeded_generator(6), np.zeros(6)
    for _ in range(400):
        low, high, *_ = table_interval(plan, NoisySums().run(plan.target(totals), noise).stages, 0.95)
        hits += (low[6:] <= SPARSE) & (high[6:] >= SPARSE)
    assert hits.min() / 400 > 0.94 - 3 * math.sqrt(0.95 * 0.05 / 400)


@pytest.mark.slow
def test_the_cross_table_of_a_census_covers_and_adds_up():
    """The benchmark's own study on invented records of the census's proportions, 200 runs: 0.95 less three standard errors."""
    path = Path(__file__).parents[3] / "benchmarks" / "cross_table.py"
    spec = importlib.util.spec_from_file_location("cross_table", path)
    study = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    study.RUNS = 200
    truth = np.array([[132, 339, 281, 92, 162, 71], [293, 711, 449, 153, 374, 200]])
    rows = [
        (school, sex)
        for i, sex in enumerate(study.SEXES)
        for j, school in enumerate(study.SCHOOLS)
        for _ in range(truth[i, j])
    ]
    hits, half, wrong = study.study(np.array(rows, dtype=object), truth, 1e-6)
    assert wrong == 0
    assert hits.min() > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 200)
    assert half.max() < 8


@pytest.mark.parametrize("draw", ["uniform", "log-normal", "spike"])
@pytest.mark.parametrize("n", [50, 2000])
def test_the_interval_of_a_mean_covers_whatever_the_column_is_like(draw, n):
    """300 data sets; 0.89 less three standard errors, α about 1e-3."""
    generator, noise = np.random.default_rng(9), seeded_generator(2)
    make = {
        "uniform": lambda: generator.random(n),
        "log-normal": lambda: np.minimum(generator.lognormal(-3.0, 1.0, n), 1.0),
        "spike": lambda: (generator.random(n) < 0.03).astype(float),
    }[draw]
    truth = {"uniform": 0.5, "spike": 0.03}.get(draw)
    if truth is None:
        truth = float(np.minimum(np.random.default_rng(1).lognormal(-3.0, 1.0, 4_000_000), 1.0).mean())
    plan = od.calibrate(AddedNoise(), NumberTable(0, 1), od.PureDP(1.0), n=n)
    hits = 0
    for _ in range(300):
        stages = NoisySums().run(plan.target(plan.model.summarise(make())), noise).stages
        low, high, *_ = table_interval(plan, stages, 0.9)
        hits += low[0] <= truth <= high[0]
    assert hits / 300 > 0.89 - 3 * math.sqrt(0.9 * 0.1 / 300)


# Against closed forms, with plain normal noise


class NormalNoise:
    """Noise with a normal tail, in place of the discrete laws."""

    def __init__(self):
        self.asked = []

    def deviation(self, factors):
        return float(np.linalg.norm(factors))

    def beyond(self, x, factors, sampling):
        return special.ndtr(-np.asarray(x) / math.hypot(sampling, self.deviation(factors)))

    def quantile(self, level, factors, sampling):
        self.asked.append((level, factors))
        return float(special.ndtri(0.5 + level / 2.0)) * math.hypot(sampling, self.deviation(factors))


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_inverted_ends_leave_half_of_alpha_on_each_side(level):
    half = special.ndtri(0.5 + level / 2.0) * 5.0 / 100.0
    low, high, *_ = tables._inverted(
        lambda p: 100.0 * (0.4 - p), lambda p: (3.0, [4.0]), lambda p: (0.0, 0.0), NormalNoise(), level, 0.4, 100.0
    )
    assert (low, high) == pytest.approx((0.4 - half, 0.4 + half), abs=1e-8)


def test_interval_of_a_sum_in_a_private_group_weighs_its_three_cells():
    """Cells at 2, 4 and 6 with 3, 2 and 1 records: Σx = 20, and its noise is that of 2Z₀ + 4Z₁ + 6Z₂."""
    table = NumberTable(2.0, 6.0, show="sum", by=("sex",), groups=(("f", "m"),))
    law = NormalNoise()
    cells = np.array([3.0, 2.0, 1.0]) * tables.STEPS
    low, high, sampling, privacy = tables._of_private_group(table, cells, 6.0, 0.3, 0.1, law, 0.9, None)
    (level, factors), deviation = law.asked[0], math.sqrt(4.0 + 16.0 + 36.0) / tables.STEPS
    assert level == 0.9
    assert factors == pytest.approx([2.0 / tables.STEPS, 4.0 / tables.STEPS, 6.0 / tables.STEPS])
    assert (low + high) / 2 == pytest.approx(20.0)
    assert (high - low) / 2 == pytest.approx(special.ndtri(0.95) * deviation)
    assert (sampling, privacy) == (0.0, pytest.approx(deviation))


# ── variances ────────────────────────────────────────────────────────────────────────────────────────────────


def variance_intervals(lower, upper, draw, n, runs):
    """(data sets, 4): the ends, the estimate without noise, and the plain interval's width."""
    plan = od.calibrate(AddedNoise(), NumberTable(lower, upper, show="variance"), od.PureDP(1.0), n=n)
    generator, found = np.random.default_rng(3), []
    for run in range(runs):
        values = np.clip(draw(generator, n), lower, upper)
        stages = NoisySums().run(plan.target(plan.model.summarise(values)), seeded_generator(run)).stages
        low, high, *_ = table_interval(plan, stages, 0.95)
        fourth, spread = ((values - values.mean()) ** 4).mean(), values.var()
        found.append((low[0], high[0], spread, 2 * 1.96 * math.sqrt((fourth - spread**2) / n)))
    return np.array(found)


@pytest.mark.finding("mathematics M9", commit="8a7c0fb")
@pytest.mark.parametrize(
    ("upper", "draw", "most"),
    [
        (10.0, lambda g, n: g.exponential(1.0, n), 4.5),
        (20.0, lambda g, n: g.lognormal(0.0, 1.0, n), 2.7),
        (10.0, lambda g, n: g.normal(5.0, 1.5, n), 2.6),
    ],
    ids=["exponential", "log-normal", "normal"],
)
def test_variance_interval_is_narrower_than_one_for_both_tails(upper, draw, most):
    """Widths over the plain interval's were 4.7, 3.0 and 2.7."""
    low, high, _, plain = variance_intervals(0.0, upper, draw, 1000, 40).T
    assert (high - low).mean() / plain.mean() < most


@pytest.mark.finding("mathematics M9", commit="8a7c0fb")
def test_variance_interval_of_the_worst_law_covers_but_not_always():
    """All records at the ends, a few of them at the far one: the law that the interval is made for."""
    runs = 300
    low, high, *_ = variance_intervals(0.0, 1.0, lambda g, n: g.random(n) < 0.01, 200, runs).T
    covered = int(((low <= 0.0099) & (high >= 0.0099)).sum())
    assert stats.binom.cdf(covered, runs, 0.95) > 1e-3
    assert covered < runs


@pytest.mark.parametrize(
    "draw", [lambda g, n: np.zeros(n), lambda g, n: np.arange(n) % 2, lambda g, n: np.full(n, 0.3)]
)
def test_variance_interval_of_a_constant_stays_in_its_range(draw):
    low, high, spread, _ = variance_intervals(0.0, 1.0, draw, 100, 10).T
    assert (low >= 0.0).all()
    assert (high <= 0.25 * 100 / 99 + 1e-12).all()
    assert ((low <= spread) & (spread * 100 / 99 <= high)).sum() >= 8
