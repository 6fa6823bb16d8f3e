"""Linear regression from noisy sums of products: how far a row moves them, and what the chain draws from."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

import onedraw as od
from onedraw import models
from onedraw.baselines import NoiseAware
from onedraw.baselines import noisy_regression as chain
from onedraw.baselines.noisy_products import ProductSums
from onedraw.methods import plan_from_dict
from tests.baselines.cases import ODD

N = 200
PRIOR = od.NormalInverseGamma(scale=2.0, shape=20.0, rate=0.5)
LINE = models.GaussianRegression(1, bounds=(-1, 1), variance_floor=1e-4, prior=PRIOR)


def plan_of(model=LINE, budget=od.PureDP(1.0), n=N, **besides):  # noqa: B008  # a frozen value
    return od.calibrate(NoiseAware(response_bound=1.5, **besides), model, budget, n=n)


def rows_of(generator, n=N, slope=0.3, intercept=0.1, noise=0.15):
    x = generator.normal(0.0, 0.35, n)
    return x[:, None], intercept + slope * x + noise * generator.standard_normal(n)


# ── how far a row moves the sums ─────────────────────────────────────────────────────────────────────────────────────


def products(w, intercept):
    w = np.append(w, 1.0) if intercept else w
    t = np.outer(w, w)[np.tril_indices(len(w))]
    return t[:-1] if intercept else t


@pytest.mark.oracle
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_no_pair_of_rows_is_further_apart_than_the_lemmas_say(columns, intercept):
    """Random pairs, corners, and a search from the best of them."""
    model = models.GaussianRegression(columns, bounds=(-1, 1), variance_floor=1e-3, intercept=intercept)
    sums, generator, q = ProductSums.of(model, 1.0, N), np.random.default_rng(columns), columns + 1
    pairs = np.concatenate([generator.uniform(-1, 1, (4000, 2, q)), generator.choice([-1.0, 0.0, 1.0], (4000, 2, q))])
    for law, size in (("laplace", lambda h: np.abs(h).sum()), ("gaussian", lambda h: h @ h)):
        bound = sums.reach(law) / sums.largest ** (1 if law == "laplace" else 2)

        def apart(pair, size=size):
            u, v = pair.reshape(2, q)
            return size(products(u, intercept) - products(v, intercept))

        found = np.array([apart(pair) for pair in pairs])
        starts = pairs[np.argsort(found)[-4:]]
        best = [
            optimize.minimize(lambda pair: -apart(pair), one.ravel(), bounds=[(-1, 1)] * (2 * q)).fun for one in starts
        ]
        furthest = max(found.max(), -min(best))
        assert furthest <= bound * (1.0 + 1e-9)
        even = (q + intercept) % 2 == 0
        assert furthest >= bound * (0.999 if law == "laplace" or even else 0.75)


@pytest.mark.parametrize("odd", [*ODD, 1e-320, -3.0])
def test_one_odd_cell_moves_the_sums_within_the_bound_and_never_fails(odd):
    x, y = (list(part) for part in rows_of(np.random.default_rng(1)))
    plan = plan_of()
    sums = plan.mechanism.sums(plan.request)

    def whole(cell, response):
        table = [[float(value[0])] for value in x[:-1]] + [[cell]], [*map(float, y[:-1]), response]
        od.release(plan, table, random_state=1)
        return np.array(sums.whole(plan.model.summarise(table)), dtype=object)

    usual, changed = whole(0.1, 0.2), [whole(odd, 0.2), whole(0.1, odd), whole(odd, odd)]
    for one in changed:
        assert sum(abs(one - usual)) <= sums.reach("laplace")
        assert sum((one - usual) ** 2) <= sums.reach("gaussian")


def test_sums_are_those_of_the_clamped_rows():
    x, y = rows_of(np.random.default_rng(2))
    x[3], y[5] = 7.0, -9.0
    plan = plan_of()
    sums = plan.mechanism.sums(plan.request)
    found = np.array(sums.whole(plan.model.summarise((x, y))), dtype=float) * float(sums.unit)
    u, v = x[:, 0].clip(-1, 1), y.clip(-1.5, 1.5) / 1.5
    assert found == pytest.approx([u @ u, u.sum(), u @ v, v.sum(), v @ v], abs=N * 2.0**-17)
    assert sums.entries_of(sums.matrices(found, N)) == pytest.approx(found)
    assert sums.matrices(found, N)[0, 0] == N


# ── what the chain draws from ────────────────────────────────────────────────────────────────────────────────────────


def test_where_noise_says_nothing_the_chain_returns_the_prior(monkeypatch):
    monkeypatch.setattr(chain, "WARM_UP", 50)
    regression = (plan := plan_of(budget=od.PureDP(1e-4))).mechanism.regression(plan)
    draws = chain.simulated(regression, np.zeros((2000, 5)), np.random.default_rng(1), kept=3)
    variance = draws[..., 2].ravel()
    assert variance.mean() == pytest.approx(0.5 / 19.0, rel=0.02)
    assert variance.std() == pytest.approx(0.5 / 19.0 / math.sqrt(18.0), rel=0.06)
    for scaled in (draws[..., 0].ravel() / np.sqrt(variance), draws[..., 1].ravel() / np.sqrt(variance)):
        assert (scaled.mean(), scaled.std()) == pytest.approx((0.0, 2.0), abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "intercept"), [(3, True), (1, False), (3, False)])
def test_so_it_does_for_several_columns_and_without_an_intercept(columns, intercept):
    model = models.GaussianRegression(columns, bounds=(-1, 1), variance_floor=1e-4, intercept=intercept, prior=PRIOR)
    regression = (plan := plan_of(model, od.PureDP(1e-3), n=1000)).mechanism.regression(plan)
    noisy = np.zeros((600, regression.sums.entries))
    draws = chain.simulated(regression, noisy, np.random.default_rng(1), kept=10)
    variance = draws[..., -1]
    assert variance.mean() == pytest.approx(0.5 / 19.0, rel=0.03)
    assert (draws[..., :-1] / np.sqrt(variance)[..., None]).std(axis=(0, 1)) == pytest.approx(2.0, abs=0.2)


@pytest.mark.oracle
@pytest.mark.parametrize("law", [pytest.param("laplace", marks=pytest.mark.slow), "gaussian"])
def test_with_hardly_any_noise_it_is_the_conjugate_posterior(law, monkeypatch):
    monkeypatch.setattr(chain, "WARM_UP", 50)
    x, y = rows_of(np.random.default_rng(3))
    plan = od.calibrate(NoiseAware(law, response_bound=1.5), LINE, od.GaussianDP(3000.0), n=N)
    found = od.release(plan, (x, y), random_state=1)
    design = np.column_stack([x[:, 0].clip(-1, 1), np.ones(N)])
    precision = design.T @ design + np.eye(2) / PRIOR.scale**2
    centre = np.linalg.solve(precision, design.T @ y)
    rate = PRIOR.rate + 0.5 * (y @ y - centre @ precision @ centre)
    spread = np.sqrt(np.diag(np.linalg.inv(precision)) * rate / (PRIOR.shape + N / 2))
    exact = centre[:, None] + spread[:, None] * stats.t(2 * PRIOR.shape + N).ppf([0.05, 0.95])
    assert found.conf_int(0.9)[:2] == pytest.approx(exact, abs=0.12 * float(spread.max()))
    assert list(found.named().values())[:2] == pytest.approx(centre, abs=0.01)


@pytest.mark.oracle
def test_the_law_of_the_true_sums_is_that_of_simulated_ones():
    """p(G) against G of data sets drawn from the prior: log-ratios of densities integrate to 1 against any other law
    of sums."""
    regression = (plan := plan_of(n=12)).mechanism.regression(plan)
    generator, rounds = np.random.default_rng(4), 40_000

    def simulated(spread):
        variance = spread / generator.gamma(20.0, size=rounds)
        theta = 2.0 * np.sqrt(variance) * generator.standard_normal((2, rounds))
        of_rows = 0.08 / generator.gamma(1.5, size=rounds)
        x = np.sqrt(of_rows) * (generator.standard_normal(rounds) + generator.standard_normal((12, rounds)))
        y = theta[0] * x + theta[1] + np.sqrt(variance) * generator.standard_normal((12, rounds))
        v = y / 1.5
        return np.stack([(x * x).sum(0), x.sum(0), (x * v).sum(0), v.sum(0), (v * v).sum(0)], axis=1)

    own, other = simulated(0.5), chain.Regression(**{**vars(regression), "rate": 0.6 / 1.5**2})
    ratio = np.exp(other.log_law(own) - regression.log_law(own)) * (0.6 / 0.5) ** 20
    assert ratio.mean() == pytest.approx(1.0, abs=5.0 * ratio.std() / math.sqrt(rounds))


def test_factors_and_sums_are_one_to_one_and_their_room_is_the_jacobian():
    regression = (plan := plan_of()).mechanism.regression(plan)
    sums = np.array([24.0, 3.0, 4.0, 20.0, 8.0])
    factors = regression.to_factors(sums)
    back, room = regression.from_factors(factors)
    assert back == pytest.approx(sums)
    step = 1e-6
    slopes = np.array([(regression.from_factors(factors + step * one)[0] - sums) / step for one in np.eye(5)])
    constant = room - math.log(abs(np.linalg.det(slopes)))
    again, moved = regression.from_factors(factors + 0.3)
    slopes = np.array([(regression.from_factors(factors + 0.3 + step * one)[0] - again) / step for one in np.eye(5)])
    assert moved - math.log(abs(np.linalg.det(slopes))) == pytest.approx(constant, abs=1e-4)


def ranks(regression, noise, generator, sets, kept, n):
    """Where the truth lies among draws of its posterior, over data sets drawn from the prior."""
    variance = PRIOR.rate / generator.gamma(PRIOR.shape, size=sets)
    theta = PRIOR.scale * np.sqrt(variance) * generator.standard_normal((2, sets))
    x = generator.normal(0.0, 0.35, (n, sets))
    v = (theta[0] * x + theta[1] + np.sqrt(variance) * generator.standard_normal((n, sets))) / 1.5
    sums = np.stack([(x * x).sum(0), x.sum(0), (x * v).sum(0), v.sum(0), (v * v).sum(0)], axis=1)
    draws = chain.simulated(regression, sums + generator.laplace(scale=noise, size=sums.shape), generator, kept=kept)
    return (draws < np.stack([*theta, variance], axis=1)[:, None, :]).mean(axis=1)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_truth_has_a_uniform_rank_and_a_quarter_of_the_noise_shows(epsilon):
    """α ≈ 1e-6: means of 600 ranks within 4.9·0.289/√600; the planted fault is noise four times as large as
    the chain believes."""
    regression = (plan := plan_of(budget=od.PureDP(epsilon), n=500)).mechanism.regression(plan)
    generator, limit = np.random.default_rng(6), 4.9 * 0.289 / math.sqrt(600.0)
    honest = ranks(regression, regression.noise.scale, generator, 600, 60, 500)
    assert np.abs(honest.mean(axis=0) - 0.5).max() < limit
    spread = honest.std(axis=0)
    assert spread == pytest.approx(0.289, abs=0.03)
    faulty = ranks(regression, 4.0 * regression.noise.scale, generator, 600, 60, 500)
    assert faulty.std(axis=0).max() > 0.33


# ── plans and files ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget", [od.PureDP(1.0), pytest.param(od.GaussianDP(1.0), marks=pytest.mark.slow)], ids=str)
def test_a_release_is_read_back_from_its_file_with_all_its_posterior(budget, tmp_path, monkeypatch):
    monkeypatch.setattr(chain, "KEPT", 1500)
    monkeypatch.setattr(chain, "WARM_UP", 50)
    plan = plan_of(models.GaussianRegression(1, bounds=(10, 50), scaled=True, variance_floor=1e-4, prior=PRIOR), budget)
    assert plan_from_dict(plan.to_dict()) == plan
    x, y = rows_of(np.random.default_rng(1))
    od.release(plan, (30.0 + 20.0 * x, y), random_state=2).save(tmp_path / "line.json")
    read = od.load(tmp_path / "line.json")
    draws, ends = read.posterior(1500, random_state=1), read.conf_int(0.9)
    assert ((draws >= ends[:, 0]) & (draws <= ends[:, 1])).mean(axis=0) == pytest.approx(0.9, abs=0.05)
    assert (draws[:, 2] >= 1e-4).all()
    assert [low for low, _ in ends] < [high for _, high in ends]


def test_records_of_a_schema_give_the_same_sums_as_arrays(tmp_path):
    columns = {"y": "lower: -1.5, upper: 1.5", "x": "lower: -1, upper: 1"}
    declared = [f"  {name}: {{kind: number, {ends}, missing: 0}}\n" for name, ends in columns.items()]
    (tmp_path / "schema.yaml").write_text("dataset: d\ncolumns:\n" + "".join(declared))
    x, y = rows_of(np.random.default_rng(1))
    (tmp_path / "d.csv").write_text(
        "x,y\n" + "".join(f"{a!r},{b!r}\n" for a, b in zip(x[:, 0].tolist(), y.tolist(), strict=True))
    )
    records = od.read(tmp_path / "d.csv", od.Schema.load(tmp_path / "schema.yaml"), target="y")
    model = models.GaussianRegression(**models.schema_features(records.schema, "y"), variance_floor=1e-4, prior=PRIOR)
    plan = plan_of(model)
    stages = [od.release(plan, data, random_state=1).certificate.draw.stages for data in (records, (x, y))]
    assert stages[0] == stages[1]


def test_what_it_cannot_do_is_refused_with_a_remedy():
    known = models.GaussianRegression(1, bounds=(-1, 1), variance=0.1)
    unbounded = models.GaussianRegression(1, variance_floor=0.1)
    with pytest.raises(od.errors.UnsupportedBudget, match="variance_floor"):
        plan_of(known)
    with pytest.raises(od.errors.UnsupportedBudget, match="bounds="):
        plan_of(unbounded)
    with pytest.raises(od.errors.UnsupportedBudget, match="response_bound=Y"):
        od.calibrate(NoiseAware(), LINE, od.PureDP(1.0), n=N)
    with pytest.raises(od.errors.UnsupportedBudget, match="too few"):
        plan_of(n=5)
    with pytest.raises(od.errors.InvalidModel):
        NoiseAware(response_bound=-1.0)
