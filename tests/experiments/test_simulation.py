"""Simulation at speed: chains against quadrature with a planted fault, and one law whatever the chunks and the blocks."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.grids import exact_posterior
from experiments.potentials import height_of, log_density, stacked
from experiments.simulation import Effort, draws
from scipy import stats

import onedraw as od
from experiments import potentials, simulation
from onedraw.models.compute import jnp

MODEL = od.models.Logistic(1, bounds=(0.0, 1.0), prior=od.Gaussian(scale=3.0))
BOX, CENTRED = ((-20.0, 20.0), (-18.0, 18.0)), ((0.0, 1.0), (1.0, -0.5))
SHORT = Effort(descent=120, warmup=25, steps=25, leapfrog=5)


def records(seed, n=120):
    generator = np.random.default_rng(seed)
    X = generator.uniform(size=(n, 1))
    return X, np.where(generator.uniform(size=n) < 1 / (1 + np.exp(3 - 6 * X[:, 0])), 1.0, -1.0)


def targets(*, epsilons, seeds, rule="jewson"):
    """Every ε on every data set; the records of a data set are shared."""
    plans = [od.calibrate(od.BetaDivergence(rule=rule), MODEL, od.PureDP(epsilon), n=120) for epsilon in epsilons]
    encoded = [MODEL.summarise(records(seed)) for seed in seeds]
    return [plan.target(one) for one in encoded for plan in plans]


def ranks(thetas, target):
    """The share of the posterior below each draw, for the slope: uniform if the draws are from it."""
    points, masses = exact_posterior(target, BOX, coordinates=CENTRED)
    order = np.argsort(points[:, 0])
    return np.interp(thetas[:, 0], points[order, 0], np.cumsum(masses[order]))


@pytest.mark.statistical
@pytest.mark.parametrize("single", [pytest.param(False, marks=pytest.mark.slow), True])
def test_chains_draw_from_the_posterior_and_another_epsilon_is_rejected(single):
    """Kolmogorov–Smirnov at α = 1e-6, 400 chains; the posterior of a third of ε is told from it."""
    right, wrong = targets(epsilons=(3.0, 1.0), seeds=(5,))
    found = draws([right] * 400, range(400), SHORT, single=single)
    assert stats.kstest(ranks(found.thetas, right), "uniform").pvalue > 1e-6
    assert stats.kstest(ranks(found.thetas, wrong), "uniform").pvalue < 1e-6
    assert found.acceptance.min() > 0.5


def test_records_of_one_data_set_are_held_once():
    many = targets(epsilons=(0.5, 5.0), seeds=(1, 2, 3))
    rows, which, numbers = stacked(many)
    assert rows.X.shape == (3, 1, potentials.SMALL, 2)
    assert rows.n == 120
    assert which.tolist() == [0, 0, 1, 1, 2, 2]
    assert numbers[1] == pytest.approx([5.0, 1.4] * 3), "β of each"


@pytest.mark.parametrize("n", [60, 700, 1100])
@pytest.mark.parametrize("mechanism", [od.BetaDivergence(), od.Gibbs()])
def test_blocks_change_neither_the_potential_nor_its_gradient(mechanism, n):
    """Against the library's own, whatever stands in the rows that fill the last block."""
    budget = od.PureDP(2.0) if isinstance(mechanism, od.BetaDivergence) else od.GaussianDP(1.0)
    target = od.calibrate(mechanism, MODEL, budget, n=n, gamma=0.0).target(MODEL.summarise(records(3, n)))
    rows, _, numbers = stacked([target])
    filling = np.arange(rows.y[0].size).reshape(rows.y.shape[1:]) >= n
    assert filling.any()
    rows.X[0][filling], rows.y[0][filling] = 1e6, -1.0
    theta, rows = np.array([1.5, -0.5]), rows._replace(X=jnp.asarray(rows.X), y=jnp.asarray(rows.y))
    value, slope = height_of(target.kernel, rows, 0, [one[0] for one in numbers])(theta)
    ahead, behind = (
        [float(target.potential(theta + step * unit)) for unit in 1e-5 * np.eye(2)] for step in (1.0, -1.0)
    )
    assert slope == pytest.approx((np.array(ahead) - np.array(behind)) / 2e-5, rel=1e-5)
    assert value == pytest.approx(-log_density(target, theta[None])[0], rel=1e-12)


def test_one_program_serves_many_sizes_and_numbers_of_chains():
    before = simulation._chains._cache_size()
    for n, count in ((520, 3), (700, 4), (1000, 3)):
        plan = od.calibrate(od.BetaDivergence(), MODEL, od.PureDP(1.0), n=n)
        target = plan.target(MODEL.summarise(records(1, n)))
        draws([target] * count, range(count), Effort(2, 2, 2, 2), single=True)
    assert simulation._chains._cache_size() - before == 1


@pytest.mark.slow
def test_each_chain_has_its_own_posterior_whatever_the_chunks(monkeypatch):
    """Chunks round differently, which a chain magnifies; not by as much as posteriors differ."""
    many = targets(epsilons=(0.5, 5.0), seeds=(1, 2, 3))
    alone = np.concatenate([draws([one], [seed], SHORT).thetas for seed, one in enumerate(many)])
    for room in (1, 2**30):
        monkeypatch.setattr(potentials, "CACHE", room)
        assert draws(many, range(6), SHORT).thetas == pytest.approx(alone, abs=0.1)
    assert np.abs(alone[:-1] - alone[1:]).max(axis=1).min() > 0.2


def network(task, n=60):
    floor = {"variance_floor": 0.01} if task == "regression" else {}
    model = od.models.Network(features=2, hidden=3, task=task, bounds=(0.0, 1.0), **floor)
    X = np.random.default_rng(0).uniform(size=(n, 2))
    plan = od.calibrate(od.BetaDivergence(), model, od.PureDP(20.0), n=n)
    return plan.target(model.summarise((X, np.where(X[:, 0] > 0.5, 1.0, -1.0))))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_potential_is_the_librarys_own(task):
    target = network(task)
    thetas = target.model.draw_prior(np.random.default_rng(1), 5)
    own = [-float(target.potential(theta)) for theta in thetas]
    assert log_density(target, thetas) == pytest.approx(own, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_networks_are_drawn(task):
    target = network(task)
    thetas = target.model.draw_prior(np.random.default_rng(1), 5)
    found = draws([target] * 4, range(4), Effort(50, 20, 20, 5), single=True)
    assert np.isfinite(found.thetas).all()
    assert found.acceptance.min() > 0.3
    assert (log_density(target, found.thetas) > log_density(target, thetas).max()).any()


def test_targets_of_different_sizes_are_refused():
    other = od.calibrate(od.BetaDivergence(), MODEL, od.PureDP(1.0), n=60).target(MODEL.summarise(records(0, 60)))
    with pytest.raises(ValueError, match="one model and one n"):
        draws([*targets(epsilons=(1.0,), seeds=(1,)), other], [0, 1])
