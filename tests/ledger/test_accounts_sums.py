"""The total that a ledger shows: never above the sum of the stated ε while half of the budget's δ covers the stated δ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import onedraw as od
from onedraw.ledger import Ledger
from onedraw.ledger.accounts import Account
from onedraw.privacy import ZCDP, ApproxDP, Corner, CornerDP, GaussianDP, Promise, PureDP, Unit
from onedraw.privacy.filters import filters_of

from .test_accounts_adaptive import BUDGET, CANDIDATES, FIRST, profile

BUDGETS = st.sampled_from([ApproxDP(200.0, 1e-5), ApproxDP(200.0, 1e-4), ApproxDP(200.0, 2e-6)])
SIZES = st.floats(1e-3, 3.0)
KINDS: tuple[Callable[[float], Promise], ...] = (
    PureDP,
    GaussianDP,
    ZCDP,
    lambda size: ApproxDP(size, 1e-6),
    lambda size: ApproxDP(size, 3e-8),
    lambda size: CornerDP((Corner(16, size / 9, size / 5),)),
)
PROMISES = st.builds(lambda kind, size: kind(size), st.sampled_from(KINDS), SIZES)


def spent(account: Account) -> float:
    return account.total().epsilon()


@pytest.mark.finding("newcomer S5", commit="8a7c0fb")
@settings(max_examples=60, deadline=None)
@given(BUDGETS, st.lists(PROMISES, min_size=2, max_size=12))
@example(ApproxDP(200.0, 1e-5), [PureDP(1.5), GaussianDP(0.1)])  # 1.02 times the sum before
def test_total_never_exceeds_the_stated_epsilons(budget: ApproxDP, promises: list[Promise]) -> None:
    """Promises are taken while their stated δ fit what the sum filter may use."""
    account, stated, used = Account("patients", budget, Unit()), 0.0, 0.0
    for promise in promises:
        delta = 0.0 if promise.is_pure else promise.quoted_delta
        if used + delta > float(next(filters_of(budget)).allowance.delta):
            continue
        used, stated = used + delta, stated + promise.epsilon(delta)
        account = account.charged(promise, gamma=0.0, part=None)
        assert spent(account) <= stated * (1.0 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([GaussianDP, ZCDP]), SIZES, st.floats(1e-9, 1e-6)), min_size=1, max_size=5))
def test_total_reads_a_release_at_its_own_delta(releases: list[tuple[type, float, float]]) -> None:
    account, stated = Account("patients", ApproxDP(200.0, 1e-5), Unit()), 0.0
    for kind, size, delta in releases:
        promise = kind(size)
        stated += promise.epsilon(delta)
        account = account.charged(promise, gamma=0.0, part=None, delta=delta)
        assert spent(account) <= stated * (1.0 + 1e-12)


@pytest.mark.finding("newcomer S5", commit="8a7c0fb")
def test_total_of_two_releases_is_what_they_state(tmp_path: Path) -> None:
    """A pure share and correlations, whose loss is Gaussian, with a δ that is not the default one."""
    ledger = Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", ApproxDP(4.0, 1e-5))
    asked = {"delta": 2e-6, "ledger": ledger, "dataset": "patients"}
    rows = np.random.default_rng(5).uniform(-1, 1, (200, 2))
    od.DPMean(epsilon=0.5, bounds=(-1, 1), **asked).fit(rows[:, 0])
    od.DPCovariance(epsilon=0.5, bounds=([-1, -1], [1, 1]), **asked).fit(rows)
    assert ledger.remaining("patients").spent_epsilon <= 1.0
    reserved = [event.payload for event in ledger.events("patients") if event.kind == "reserved"]
    assert [payload["delta"] for payload in reserved] == [None, 2e-6]
    assert ledger.verify().ok


@pytest.mark.parametrize("first", [1e-9, 1e-6, 4e-6])
def test_an_analyst_who_chooses_deltas_stays_within_the_budget(first: float) -> None:
    """The analyst of test_accounts_adaptive also says at which δ each release is read, after seeing the first."""
    account = Account("patients", BUDGET, Unit()).charged(FIRST, gamma=0.0, part=None, delta=first)
    outcome = np.linspace(-12, 12, 20_001)
    loss = FIRST.mu * outcome + FIRST.mu**2 / 2
    weight = np.exp(-(outcome**2) / 2) / np.sqrt(2 * np.pi) * (outcome[1] - outcome[0])
    left = BUDGET.stated_epsilon - loss
    # Half of the budget's δ is what the first release leaves room in: promises that just fit are the worst.
    close = [ApproxDP(1e-6, 5e-6 - first), ApproxDP(1e-6, 4.9e-6 - 0.9 * first)]
    sharp = [PureDP(BUDGET.stated_epsilon - FIRST.epsilon(first) - 1e-9)]
    options = [(promise, None) for promise in (*CANDIDATES, *close, *sharp)]
    options += [(GaussianDP(mu), delta) for mu in (0.575, 0.3) for delta in (1e-9, 9e-7)]
    taken = [promise for promise, delta in options if account.has_room_for(promise, delta=delta)]
    assert len(taken) > 5
    branches = [profile(promise, left) for promise in taken]
    assert weight @ np.max([np.maximum(0.0, 1 - np.exp(left)), *branches], axis=0) <= BUDGET.stated_delta


@pytest.mark.parametrize("places", range(4, 13))
def test_five_promises_at_a_tenth_of_delta_fit_however_it_rounds(places: int) -> None:
    """Five times the float 1e-9 is more than half of the float 1e-8."""
    budget, promise = ApproxDP(5.0, float(f"1e-{places}")), ApproxDP(1.0, float(f"1e-{places + 1}"))
    account = Account("patients", budget, Unit())
    for _ in range(5):
        assert account.has_room_for(promise, delta=promise.stated_delta)
        account = account.charged(promise, gamma=0.0, part=None, delta=promise.stated_delta)
    assert account.total().epsilon() == 5.0
