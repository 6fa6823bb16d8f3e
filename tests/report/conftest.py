"""One release of every kind, made once."""

from __future__ import annotations

import numpy as np
import pytest

import onedraw as od
from onedraw import samplers
from onedraw.privacy import Assumed
from onedraw.release import Estimate, Estimates
from onedraw.samplers import Sample

N = 600
BUDGET = od.ApproxDP(1.0, 1e-6)
NASTY = """<script>alert("x")</script> & 'age'"""
COLUMNS = ("age", "smoker", NASTY)


class Unproven(samplers.Sampler):
    """Somebody's own sampler, which says itself that nothing about it is proven."""

    randomness = "numpy"

    def exactness(self, plan):
        return Assumed("the chain converged")

    def to_dict(self):
        return {"name": "MyOwnChain"}

    def run(self, target, generator, *, size):
        count = len(self.plan.model.parameter_names)
        return Sample(generator.normal(size=(size, count)), {"acceptance": 0.123456789})

    def __init__(self, plan):
        self.plan = plan


def rows(features):
    generator = np.random.default_rng(1)
    return generator.uniform(size=(N, features)) * 2 - 1, generator.integers(0, 2, size=N)


def made(mechanism, model, data, *, budget=BUDGET, draws=1, **options):
    return od.release(od.calibrate(mechanism, model, budget, n=N, draws=draws), data, **options)


def logistic_model():
    bounds = ((0.0, 0.0, -1000.0), (100.0, 1.0, 1000.0))
    return od.models.Logistic(
        features=3,
        bounds=bounds,
        scaled=True,
        feature_names=COLUMNS,
        classes=["well", "ill"],
        prior=od.Gaussian(scale=0.8),
    )


def network():
    model = od.models.Network(features=3, bounds=(-1, 1), hidden=4, task="classification", prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(od.BetaDivergence(), model, od.PureDP(1.0), n=N)
    return od.release(plan, rows(3), sampler=Unproven(plan), accept="assumed")


@pytest.fixture
def unproven():
    return Unproven


@pytest.fixture(scope="session")
def ledger(tmp_path_factory):
    ledger = od.Ledger.open(tmp_path_factory.mktemp("ledger") / "ledger.db", create=True)
    ledger.init("patients <2026>", od.ApproxDP(3.0, 1e-5), note="a note for the curator")
    return ledger


@pytest.fixture(scope="session")
def releases(ledger):
    models, charged = od.models, {"ledger": ledger, "dataset": "patients <2026>", "label": "a private label"}
    X, y = rows(3)
    ball = od.Gaussian(scale=1.0, radius=4.0)
    return {
        "proportion": made(od.Diffused(), models.BetaBernoulli(prior=(1, 1)), np.arange(N) % 3 == 0, **charged),
        "average": made(od.Diffused(), models.BetaBernoulli(prior=(1, 1), lower=10.0, upper=20.0), np.full(N, 14.0)),
        "histogram": made(od.Diffused(), models.DirichletCategorical(prior=(1, 1, 1), levels=("low", "<mid>", "high")), np.arange(N) % 3),
        "mean": made(od.Diffused(), models.GaussianMean(bound=5.0, variance=60.0, prior_count=1.0, centre=20.0), np.full(N, 21.0)),
        "rate": made(od.Diffused(), models.GammaPoisson(prior=(1.0, 0.2), cap=10), np.full(N, 3)),
        "logistic": made(od.NoisyGradient(), logistic_model(), (X, np.array(["well", "ill"])[y]), draws=8, **charged),
        "one logistic": made(od.NoisyGradient(), logistic_model(), (X, y)),
        "linear": made(od.Gibbs("bounded"), models.LeastSquares(features=3, bounds=(-1, 1), response_bound=1.0, prior=ball), (X, X[:, 0]), budget=od.PureDP(1.0)),
        "softmax": made(od.NoisyGradient(), models.Softmax(features=3, bounds=(-1, 1), classes=["a", "b", "c"], prior=od.Gaussian(scale=1.0)), (X, y)),
        "many": made(od.NoisyGradient(), models.Logistic(features=40, data_norm=1.0, prior=od.Gaussian(scale=1.0)), rows(40)),
        "network": network(),
        "seeded": made(od.Diffused(), models.BetaBernoulli(prior=(1, 1)), np.arange(N) % 2, random_state=7),
    }  # fmt: skip


def fitted(kind):
    """A fit of 4000 patients whose age and dose go together (0.6), with standard errors."""
    from onedraw.methods import PerturbedMode

    generator, n = np.random.default_rng(5), 4000
    age = generator.normal(size=n)
    dose = 0.6 * age + 0.8 * generator.normal(size=n)
    X = np.clip(np.column_stack([50 + 12 * age, 20 + 5 * dose, generator.random(n) < 0.3]), [0, 0, 0], [100, 50, 1])
    options = {
        "bounds": ((0.0, 0.0, 0.0), (100.0, 50.0, 1.0)), "scaled": True, "feature_names": ("age", "dose", NASTY),
        "prior": od.Gaussian(scale=1.0),
    }  # fmt: skip
    if kind == "logistic":
        model = od.models.Logistic(features=3, classes=["well", "ill"], **options)
        y = np.array(["well", "ill"])[(generator.random(n) < 1 / (1 + np.exp(-0.8 * age - X[:, 2]))).astype(int)]
    else:
        model = od.models.LogCoshRegression(features=3, response_bound=10.0, **options)
        y = np.clip(3 * age + X[:, 2] + generator.normal(size=n), -10, 10)
    plan = od.calibrate(PerturbedMode(intervals=True), model, od.ApproxDP(3.0, 1e-6), n=n)
    return od.release(plan, (X, y), random_state=11)


@pytest.fixture(scope="session")
def fits():
    return {kind: fitted(kind) for kind in ("logistic", "linear")}


def estimates(names, centre, low, high, level, sampling, privacy):
    numbers = zip(names, centre, low, high, sampling, privacy, strict=True)
    return Estimates((Estimate(name, "", *map(float, row)) for name, *row in numbers), level=level)


@pytest.fixture(scope="session")
def table(releases):
    """An interval for the eight logistic draws, three parts sampling to four parts privacy."""
    draws = logistic_model().in_column_units(releases["logistic"].draws)
    centre, spread = draws.mean(axis=0), draws.std(axis=0, ddof=1)
    return estimates(
        (*COLUMNS, "intercept"), centre, centre - spread, centre + spread, 0.95, 0.3 * spread, 0.4 * spread
    )


@pytest.fixture(scope="session")
def planned():
    columns = {
        "age": {"kind": "number", "lower": 18, "upper": 98, "missing": 50},
        "ward": {"kind": "category", "levels": ["<a>", "b"], "missing": "b"},
        "cost": {"kind": "number", "lower": 0, "upper": 9000, "missing": 4000},
    }
    return od.plan({"dataset": "p", "columns": columns}, "cost", "linear", epsilon=2.0, n=3000)
