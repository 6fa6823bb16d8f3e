"""What events add up to, against a naive account: exact fractions of ε, and the worst part taken by hand."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.ledger.accounts import Account
from onedraw.privacy import ZCDP, ApproxDP, GaussianDP, Promise, PureDP, RenyiDP, Unit, compose

PARTS = ("north", "south", "west")
SPENDS = st.lists(st.tuples(st.floats(1e-6, 0.5), st.sampled_from([None, *PARTS])), min_size=1, max_size=25)


def new_account(budget: Promise) -> Account:
    return Account("patients", budget, Unit(), partition="region", sizes=dict.fromkeys(PARTS, 10))


def naive_total(spends: list[tuple[float, str | None]], part: str) -> Fraction:
    return sum((Fraction(epsilon) for epsilon, where in spends if where in (None, part)), Fraction(0))


@given(SPENDS)
def test_pure_spends_fit_exactly_when_the_worst_part_fits(wanted: list[tuple[float, str | None]]) -> None:
    account = new_account(PureDP(1.0))
    kept: list[tuple[float, str | None]] = []
    for epsilon, part in wanted:
        trial = [*kept, (epsilon, part)]
        fits = max(naive_total(trial, name) for name in PARTS) <= 1
        assert account.has_room_for(PureDP(epsilon), part=part) is fits
        if fits:
            account, kept = account.charged(PureDP(epsilon), gamma=0.0, part=part), trial
    assert account.within_budget()
    worst = max(naive_total(kept, name) for name in PARTS)
    assert worst <= Fraction(account.spent().epsilon(0.0)) <= worst * (1 + Fraction(1, 2**50))


@given(SPENDS, st.sampled_from([None, *PARTS]))
def test_a_part_never_has_less_room_than_the_whole(wanted: list[tuple[float, str | None]], part: str | None) -> None:
    account = new_account(PureDP(2.0))
    for epsilon, where in wanted:
        if account.has_room_for(PureDP(epsilon), part=where):
            account = account.charged(PureDP(epsilon), gamma=0.0, part=where)
    assert account.room(part) >= account.room()


BUDGETS = st.one_of(
    st.builds(PureDP, st.floats(0.1, 5)),
    st.builds(ApproxDP, st.floats(0.1, 5), st.floats(1e-9, 1e-3)),
    st.builds(GaussianDP, st.floats(0.1, 3)),
    st.builds(ZCDP, st.floats(0.01, 3)),
    st.builds(RenyiDP.at, st.floats(1.5, 64), st.floats(0.1, 5)),
)
PROMISES = st.one_of(
    st.builds(PureDP, st.floats(0.001, 0.5)),
    st.builds(GaussianDP, st.floats(0.001, 0.3)),
    st.builds(ZCDP, st.floats(1e-6, 0.05)),
)


@settings(max_examples=60, deadline=None)
@given(BUDGETS, st.lists(PROMISES, max_size=4))
def test_the_room_that_is_stated_is_there(budget: Promise, promises: list[Promise]) -> None:
    account = Account("patients", budget, Unit())
    for promise in promises:
        if account.has_room_for(promise):
            account = account.charged(promise, gamma=0.0, part=None)
    left = account.room()
    assert left >= 0
    if left > 0:
        assert account.charged(PureDP(left), gamma=0.0, part=None).within_budget()


def test_a_fresh_account_has_its_whole_budget() -> None:
    assert Account("patients", PureDP(1 / 3), Unit()).room() == 1 / 3
    assert Account("patients", ApproxDP(1 / 3, 1e-6), Unit()).room() == 1 / 3


def test_room_under_a_budget_that_is_no_epsilon_is_the_largest_that_fits() -> None:
    account = Account("patients", ZCDP(0.5), Unit())
    left = account.room()
    assert account.has_room_for(PureDP(left))
    assert not account.has_room_for(PureDP(left * (1 + 1e-8)))


def test_four_hundred_equal_promises_add_up_exactly() -> None:
    account = Account("patients", PureDP(400 * 2.0**-7), Unit())
    for _ in range(400):
        account = account.charged(PureDP(2.0**-7), gamma=0.0, part=None)
    assert account.spent() == compose(*[PureDP(2.0**-7)] * 400)
    assert account.spent().epsilon(0.0) == 3.125
    assert account.within_budget()
    assert account.room() == 0.0
