"""At which δ the ledger reads a release: it counts no more than the ε that the certificate states (statement.py)."""

from pathlib import Path

import numpy as np
import pytest

import onedraw as od
from onedraw.ledger import Ledger
from onedraw.methods import AddedNoise, BarkerPath, BetaDivergence
from onedraw.privacy import ZCDP, ApproxDP, Promise, PureDP
from onedraw.release import statement

PRIOR = od.models.Gaussian(scale=1.0)
CASES = {
    "pure ε many times as large": (BarkerPath(), od.models.Logistic(features=2, data_norm=1.0, prior=PRIOR), 300),
    "pure ε a little larger": (BetaDivergence(), od.models.BinaryRegression(features=1, prior=PRIOR), 10),
}


@pytest.mark.finding("newcomer S5", commit="7756ca89")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("budget", [ApproxDP(0.2, 1e-6), ZCDP(0.001)], ids=str)
def test_pure_epsilon_above_the_stated_one_is_not_what_a_release_is_charged(
    name: str, budget: Promise, tmp_path: Path
) -> None:
    mechanism, model, n = CASES[name]
    plan = od.calibrate(mechanism, model, budget, n=n)
    promise = plan.guarantee.promise
    stated = promise.epsilon(budget.quoted_delta)
    assert stated < promise.pure_epsilon < np.inf
    ledger = Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", ApproxDP(8.0, 1e-5))
    for releases in (1, 2, 3):
        ledger.reserve("patients", promise, delta=statement.stated_delta(plan, promise, 0.0))
        assert ledger.remaining("patients").spent_epsilon <= releases * stated * (1.0 + 1e-12)
    assert ledger.verify().ok


@pytest.mark.parametrize("budget", [PureDP(0.2), ApproxDP(0.2, 1e-6), ZCDP(0.02)], ids=str)
def test_release_that_states_its_pure_epsilon_takes_no_delta(budget: Promise) -> None:
    plan = od.calibrate(AddedNoise("laplace"), od.models.CategoryTable(("a", "b")), budget, n=100)
    assert statement.stated_delta(plan, plan.guarantee.promise, 0.0) is None


def test_release_without_a_pure_epsilon_is_read_at_the_delta_of_its_budget() -> None:
    plan = od.calibrate(AddedNoise("gaussian"), od.models.CategoryTable(("a", "b")), ApproxDP(0.2, 3e-7), n=100)
    assert statement.stated_delta(plan, plan.guarantee.promise, 0.0) == 3e-7
    assert statement.stated_delta(plan, plan.guarantee.promise, 1e-8) == pytest.approx(
        3e-7 - (1.0 + np.exp(0.2)) * 1e-8
    )


@pytest.mark.parametrize("name", CASES)
def test_budget_without_delta_takes_the_pure_epsilon_of_the_same_release(name: str, tmp_path: Path) -> None:
    mechanism, model, n = CASES[name]
    plan = od.calibrate(mechanism, model, ApproxDP(0.2, 1e-6), n=n)
    promise = plan.guarantee.promise
    ledger = Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", PureDP(50.0))
    ledger.reserve("patients", promise, delta=statement.stated_delta(plan, promise, 0.0))
    assert ledger.remaining("patients").spent_epsilon == promise.pure_epsilon
