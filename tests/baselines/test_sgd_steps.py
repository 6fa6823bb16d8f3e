"""Steps of DP-SGD: what one record can do to them, coins and noise, and compiled steps beside a naive version."""

import math

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw import audit
from onedraw.baselines.audits.training import step_law
from onedraw.baselines.sgd_steps import (
    Numbers,
    Steps,
    by_jax,
    capacity,
    clipped,
    drawn_steps,
    moved,
    objective_of,
    one_by_one,
    placed,
)
from onedraw.errors import InvalidModel
from onedraw.models.compute import jnp

MODELS = {
    "logistic": od.models.Logistic(2, bounds=(-1, 1), prior=od.Gaussian(scale=3.0)),
    "binary": od.models.BinaryRegression(2),
    "linear": od.models.GaussianRegression(2, variance=0.5),
    "least squares": od.models.LeastSquares(
        2, bounds=(-1, 1), response_bound=2.0, prior=od.Gaussian(scale=1.0, radius=5.0)
    ),
    "network": od.models.Network(2, hidden=3),
    "network of classes": od.models.Network(2, hidden=3, classes=["a", "b", "c"], activation="relu"),
    "network of numbers": od.models.Network(2, hidden=3, task="regression", variance=2.0),
}


def records(name, n=40, seed=1):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1.0, 1.0, (n, 2))
    if name == "network of classes":
        return X, generator.choice(["a", "b", "c"], n)
    return X, generator.integers(0, 2, n) if "number" not in name and name != "linear" else generator.normal(size=n)


# ── one record ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("clip", [1e-6, 0.3, 1.0, 1e6])
def test_no_gradient_is_longer_than_the_clip(clip):
    generator = np.random.default_rng(2)
    sizes = 10.0 ** generator.uniform(-320, 307, (2000, 1))
    rows = np.concatenate([sizes * generator.uniform(-1.0, 1.0, (2000, 7)), np.zeros((1, 7))])
    for version in (clipped(rows, clip), np.asarray(by_device(rows, clip))):
        assert np.isfinite(version).all()
        exact = [math.fsum(float(entry) ** 2 for entry in row) for row in version / clip]
        assert max(exact) <= 1.0
        short = np.abs(rows).max(axis=1) < clip / 10.0
        assert np.allclose(version[short], rows[short], rtol=1e-12, atol=1e-300)


def by_device(rows, clip):
    return clipped(jnp.asarray(rows), clip)


def test_a_gradient_that_is_no_number_counts_as_nothing_and_leaves_the_others_alone():
    rows = np.array([[1.0, 2.0], [np.nan, 1.0], [np.inf, 0.0], [-np.inf, np.nan], [0.1, 0.0]])
    expected = np.array([[1.0, 2.0] / np.sqrt(5.0), [0, 0], [0, 0], [0, 0], [0.1, 0.0]])
    assert np.allclose(clipped(rows, 1.0), expected, rtol=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_one_odd_record_moves_a_step_by_no_more_than_the_bound(name):
    """Same coins, same noise: a replaced record moves θ by at most 2C·η/B, whatever is in its cells."""
    model, n, clip, step = MODELS[name], 40, 0.5, 0.01
    objective, numbers = objective_of(model), Numbers(clip, 3.0 * clip, step)
    theta = 0.3 + objective.start(5)
    drawn = drawn_steps(np.random.default_rng(3), n=n, batch_size=n, steps=1, size=objective.size).split(1)
    X, y = records(name, n)
    usual = model.summarise((X, y))
    before = by_jax(objective, usual.X, usual.y, theta, drawn, numbers)[0]
    for cell in (np.nan, np.inf, -np.inf, 1e300, -1e150, 1e-300, 0.0):
        odd, response = X.copy(), list(y)
        odd[7] = cell
        response[7] = "z" if name == "network of classes" else cell
        encoded = model.summarise((odd, response))
        after = by_jax(objective, encoded.X, encoded.y, theta, drawn, numbers)[0]
        assert np.isfinite(after).all()
        assert np.linalg.norm(after - before) <= 2.0 * clip * step * (1.0 + 1e-12)


# ── coins and noise ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.statistical
def test_each_record_comes_up_by_a_coin_of_its_own_at_the_public_rate():
    """α ≈ 1e-6 each; a rate 5 % too large is rejected."""
    n, batch, steps = 30, 7, 20_000
    drawn = drawn_steps(np.random.default_rng(11), n=n, batch_size=batch, steps=steps, size=1)
    counts = drawn.present.sum(axis=1)
    each = np.bincount(drawn.rows[drawn.present], minlength=n)
    assert all(stats.binomtest(int(one), steps, batch / n).pvalue > 1e-7 for one in each)
    total = int(counts.sum())
    assert stats.binomtest(total, steps * n, batch / n).pvalue > 1e-6
    assert stats.binomtest(total, steps * n, 1.05 * batch / n).pvalue < 1e-6
    # sizes of batches vary as independent coins do: a fixed size, or one coin for all, would not
    assert np.var(counts) == pytest.approx(n * (batch / n) * (1 - batch / n), rel=0.06)


def test_no_record_is_in_a_batch_twice_and_the_places_that_are_left_are_absent():
    drawn = drawn_steps(np.random.default_rng(4), n=9, batch_size=3, steps=200, size=2)
    for rows, present in zip(drawn.rows, drawn.present, strict=True):
        assert len(set(rows[present])) == present.sum()
        assert (rows[~present] == 0).all()
    assert drawn.noise.shape == (200, 2)
    assert drawn_steps(np.random.default_rng(4), n=9, batch_size=9, steps=2, size=2).present.all()


def test_many_steps_are_drawn_as_one_call_would(monkeypatch):
    from onedraw.baselines import sgd_steps

    numbers = {"n": 10, "batch_size": 4, "steps": 23, "size": 3}
    whole = drawn_steps(np.random.default_rng(8), **numbers)
    monkeypatch.setattr(sgd_steps, "AT_ONCE", 50)
    parts = drawn_steps(np.random.default_rng(8), **numbers)
    assert np.array_equal(whole.rows, parts.rows)
    assert np.array_equal(whole.noise, parts.noise)


# ── places ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("n", "batch"), [(30, 7), (1000, 1), (1000, 100), (10**5, 1000), (10**6, 10**6)])
def test_more_records_than_places_hardly_ever_come_up(n, batch):
    places = capacity(n, batch)
    assert stats.binom.sf(places, n, batch / n) <= 2.0**-40
    assert batch <= places <= min(n, 2 * batch + 40)


def test_shapes_and_work_are_public_whatever_the_coins_show():
    """The largest batch of few steps is another than that of many; before, arrays had its size."""
    X, y = np.ones((400, 3)), np.ones(400)
    objective, start, asked = objective_of(MODELS["logistic"]), np.zeros(3), []
    for seed in range(20):
        drawn = drawn_steps(np.random.default_rng(seed), n=400, batch_size=10, steps=3, size=3)
        assert drawn.rows.shape == drawn.present.shape == (3, capacity(400, 10))

        def gradients(theta, X, y):
            asked.append(len(X))
            return np.zeros((len(X), 3))

        one_by_one(gradients, X, y, start, drawn, Numbers(1.0, 2.0, 0.1))
    assert set(asked) == {capacity(400, 10)}
    assert by_jax(objective, X, y, start, drawn.split(1), Numbers(1.0, 2.0, 0.1)).shape == (1, 3)


def test_a_step_with_too_few_places_takes_nobody_and_leaves_the_others_alone():
    step, row = np.array([0, 0, 1, 1, 1, 3]), np.array([4, 7, 0, 1, 2, 9])
    rows, present = placed(step, row, 4, 2)
    assert rows.tolist() == [[4, 7], [0, 0], [0, 0], [9, 0]]
    assert present.tolist() == [[True, True], [False, False], [False, False], [True, False]]


def cut(step, row, steps, places):
    """The planted fault: the first records are kept."""
    counts = np.minimum(np.bincount(step, minlength=steps), places)
    first = [np.flatnonzero(step == number)[:count] for number, count in enumerate(counts)]
    rows = np.array([np.pad(row[kept], (0, places - len(kept))) for kept in first])
    return rows, np.arange(places) < counts[:, None]


def law_of_a_step(rule, gradients, rate, places, sigma):
    """Over cells of the noisy sum, all 2^n outcomes of the coins added up."""
    n = len(gradients)
    coins = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    rows, present = rule(*np.nonzero(coins), 2**n, places)
    means = (gradients[rows] * present).sum(axis=1)
    chances = rate ** coins.sum(axis=1) * (1.0 - rate) ** (n - coins.sum(axis=1))
    edges = np.r_[-np.inf, np.linspace(-12.0, 12.0, 2001), np.inf]
    values, weights = np.unique(means), np.bincount(np.unique(means, return_inverse=True)[1], chances)
    return weights @ np.diff(stats.norm.cdf((edges - values[:, None]) / sigma), axis=1)


def opposites(rule, places, *, rate=0.3, sigma=1.0):
    """Of ten records the first is replaced by its opposite; the others pull alike."""
    laws = (law_of_a_step(rule, np.r_[own, np.ones(9)], rate, places, sigma) for own in (1.0, -1.0))
    return audit.finite_profile(*laws), audit.finite_profile(*step_law(sigma, rate))


@pytest.mark.oracle
@pytest.mark.parametrize("places", [1, 2, 3, 5, 10])
def test_a_public_number_of_places_keeps_the_promise(places):
    found, promised = opposites(placed, places)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 1.5):
        assert found.delta(epsilon) <= promised.delta(epsilon) * (1.0 + 1e-4) + 1e-12


@pytest.mark.oracle
def test_a_batch_that_is_cut_to_its_places_breaks_the_promise():
    found, promised = opposites(cut, 1)
    assert found.delta(1.0) > 3.0 * promised.delta(1.0)


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_batch_is_a_step_of_noise():
    objective, start = objective_of(MODELS["logistic"]), np.zeros(3)
    nothing = Steps(np.zeros((1, 4), dtype=np.int64), np.zeros((1, 4), dtype=bool), np.ones((1, 3)))
    X, y = np.full((5, 3), np.inf), np.ones(5)
    numbers = Numbers(1.0, 2.0, 0.1)
    for theta in (
        by_jax(objective, X, y, start, nothing.split(1), numbers)[0],
        one_by_one(lambda theta, X, y: X * np.nan, X, y, start, nothing, numbers),
    ):
        assert np.allclose(theta, -0.2)


@pytest.mark.oracle
def test_compiled_steps_are_those_of_a_loop_over_records():
    """Logistic: the gradient is −y·σ(−yu)·x, clipped record by record in plain Python."""
    model, (X, y) = MODELS["logistic"], records("logistic")
    encoded, objective = model.summarise((X, y)), objective_of(model)
    drawn = drawn_steps(np.random.default_rng(3), n=40, batch_size=10, steps=12, size=3)
    numbers = Numbers(0.4, 1.2, 0.05)
    theta = np.zeros(3)
    for rows, present, noise in zip(drawn.rows, drawn.present, drawn.noise, strict=True):
        total = np.zeros(3)
        for row in rows[present]:
            x, sign = encoded.X[row], encoded.y[row]
            gradient = -sign * x / (1.0 + math.exp(sign * float(theta @ x)))
            total += gradient * min(1.0, 0.4 / np.linalg.norm(gradient))
        theta = theta - 0.05 * (total + 1.2 * noise)
    found = by_jax(objective, encoded.X, encoded.y, np.zeros(3), drawn.split(1), numbers)[0]
    assert np.allclose(found, theta, atol=1e-7)


def test_the_sum_is_divided_by_the_public_batch_size_and_not_by_how_many_are_in_it():
    """Twice as many records that pull alike pull twice as far."""
    gradients = np.tile([[0.3, 0.0]], (8, 1))
    few, many = (moved(np.zeros(2), gradients, np.arange(8) < count, np.zeros(2), (1.0, 0.0, 0.1)) for count in (2, 4))
    assert np.allclose(many, 2.0 * few, rtol=1e-8)


def test_a_start_is_public_and_its_units_differ():
    network = objective_of(MODELS["network"])
    assert np.array_equal(network.start(1), network.start(1))
    assert not np.array_equal(network.start(1), network.start(2))
    assert len(set(network.start(1))) == network.size
    assert not objective_of(MODELS["linear"]).start(3).any()


def test_models_that_cannot_be_trained_so_are_refused_with_what_to_do():
    for model, remedy in (
        (od.models.GaussianRegression(2, variance_floor=0.1), "Pass variance="),
        (od.models.Network(2, task="regression", variance_floor=0.1), "Pass variance="),
        (od.models.Logistic(2, bounds=(-1, 1), loss="exp-linear", prior=od.Gaussian(scale=1.0)), "Use Logistic"),
        (od.models.PoissonRegression(2), "Use Logistic"),
        (od.models.BetaBernoulli(prior=(1, 1)), "Use Logistic"),
    ):
        with pytest.raises(InvalidModel, match=remedy):
            objective_of(model)
