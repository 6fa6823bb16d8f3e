"""Small plans shared by the tests of releases."""

import numpy as np
import pytest

import onedraw as od


@pytest.fixture(scope="session")
def plan():
    return od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=200)


@pytest.fixture(scope="session")
def mean_plan():
    model = od.models.GaussianMean(bound=1.0, variance=4.0, prior_count=1.0)
    return od.calibrate(od.Diffused(), model, od.GaussianDP(0.5), n=100)


@pytest.fixture(scope="session")
def records():
    return np.arange(200) % 2


@pytest.fixture
def ledger(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(3.0, 1e-5))
    return ledger
