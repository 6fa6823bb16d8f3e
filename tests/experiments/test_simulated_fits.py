"""Simulated fits are those of releases with the same seeds, to the certified distance; and there are many of them."""

import numpy as np
import pytest
from experiments.simulated_fits import simulated_fits, simulated_minima
from sklearn.linear_model import LogisticRegression

import onedraw as od
from experiments import simulated_fits as simulation
from onedraw import models
from onedraw.baselines.objective_perturbation import ObjectivePerturbation
from onedraw.baselines.output_perturbation import OutputPerturbation
from onedraw.samplers.choice import own_sampler

BOX = {"features": 2, "bounds": (-1, 2), "prior": od.Gaussian(scale=1.0)}
LOGISTIC = models.Logistic(**BOX)
LEAST_SQUARES = models.LeastSquares(**BOX | {"prior": od.Gaussian(scale=1.0, radius=99.0)}, response_bound=2.0)


def tables(m, n, generator):
    X = generator.uniform(-1, 2, (m, n, 2))
    return X, (generator.uniform(size=(m, n)) < 1.0 / (1.0 + np.exp(-X[..., 0]))).astype(float)


@pytest.mark.parametrize(
    ("mechanism", "model"),
    [
        (OutputPerturbation("norm"), LOGISTIC),
        (OutputPerturbation("laplace"), models.HuberisedHinge(**BOX, width=0.02)),
        (ObjectivePerturbation("kifer"), models.HuberRegression(**BOX, threshold=0.01)),
        (ObjectivePerturbation("chaudhuri"), LOGISTIC),
    ],
    ids=["norm", "laplace", "kifer", "chaudhuri"],
)
def test_simulated_fits_are_those_of_releases_with_the_same_seeds(mechanism, model):
    plan = od.calibrate(mechanism, model, od.PureDP(2.0), n=30)
    X, y = tables(3, 30, np.random.default_rng(1))
    found = simulated_fits(plan, X, y, [5, 6, 7])
    apart = 5.0 * plan.parameters["tolerance"] / plan.parameters["strong_convexity"]
    for rows, responses, seed, one in zip(X, y, (5, 6, 7), found, strict=True):
        target = plan.target(model.summarise((rows, responses)))
        released = own_sampler(plan)().run(target, np.random.default_rng(seed)).draws[0]
        assert np.linalg.norm(one - released) <= apart + 2e-3 * plan.parameters.get("closing_noise", 0.0) + 1e-9


def test_a_thousand_minima_are_those_of_ridge_regression():
    plan = od.calibrate(OutputPerturbation(regularisation=0.1), LEAST_SQUARES, od.PureDP(1.0), n=20)
    X, y = tables(1000, 20, np.random.default_rng(2))
    rows = np.concatenate([X, np.ones((1000, 20, 1))], axis=2)
    ridge = np.linalg.solve(
        np.einsum("mni,mnj->mij", rows, rows) + 2.0 * np.eye(3), np.einsum("mni,mn->mi", rows, y)[..., None]
    )
    assert np.abs(simulated_minima(plan, X, y) - ridge[..., 0]).max() < 1e-5


def test_minima_are_those_of_another_library():
    model = models.Logistic(features=2, bounds=(-1, 2), prior=od.Gaussian(scale=3.0))
    plan = od.calibrate(OutputPerturbation(), model, od.PureDP(1.0), n=120)
    X, y = tables(4, 120, np.random.default_rng(3))
    signs = 2.0 * y - 1.0
    for rows, labels, theta in zip(X, signs, simulated_minima(plan, X, signs), strict=True):
        rows = np.column_stack([rows, np.ones(120)])
        fit = LogisticRegression(C=9.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(rows, labels)
        assert theta == pytest.approx(fit.coef_[0], abs=1e-5)


def test_fits_that_share_every_step_find_the_same_minima(monkeypatch):
    """As on an accelerator, where all fits of a chunk are one program."""
    plan = od.calibrate(OutputPerturbation(), LOGISTIC, od.PureDP(1.0), n=30)
    X, y = tables(5, 30, np.random.default_rng(4))
    alone = simulated_minima(plan, X, y)
    monkeypatch.setattr(simulation, "accelerated", lambda: True)
    monkeypatch.setattr(simulation, "LARGEST_CHUNK", 3 * 30 * 3)
    assert np.abs(simulated_minima(plan, X, y) - alone).max() < 1e-6


def test_odd_cells_fail_no_simulation():
    plan = od.calibrate(OutputPerturbation(), LOGISTIC, od.PureDP(1.0), n=30)
    X, y = tables(2, 30, np.random.default_rng(3))
    X[0, 0, 0], X[1, 1, 1], y[0, 3] = np.nan, 1e308, np.inf
    assert np.isfinite(simulated_fits(plan, X, y, [1, 2])).all()


def test_other_plans_and_shapes_are_refused():
    plan = od.calibrate(OutputPerturbation(), LOGISTIC, od.PureDP(1.0), n=10)
    X, y = tables(2, 11, np.random.default_rng(3))
    with pytest.raises(od.errors.WrongCall, match="n = 10"):
        simulated_fits(plan, X, y, [1, 2])
    gibbs = od.calibrate(od.Gibbs(), LOGISTIC, od.ApproxDP(1.0, 1e-5), n=11)
    with pytest.raises(od.errors.WrongCall, match="Gibbs"):
        simulated_fits(gibbs, X, y, [1, 2])
