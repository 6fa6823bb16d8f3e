"""Releases whose stated ε add up to the budget as decimals fit into it, and their certified ε never exceed the sum."""

from fractions import Fraction

import numpy as np
import pytest

import onedraw as od
from onedraw.errors import BudgetSpent
from onedraw.ledger import Kind
from onedraw.privacy.numbers import at_most_stated

LISTS = {
    "5 times 0.2": ([0.2] * 5, 1.0),
    "10 times 0.1": ([0.1] * 10, 1.0),
    "3 times 0.1 and 0.7": ([0.1] * 3 + [0.7], 1.0),
    "1.5 and 0.5": ([1.5, 0.5], 2.0),
    "20 times 0.05": ([0.05] * 20, 1.0),
    "1.1 and 2.2": ([1.1, 2.2], 3.3),
}
VALUES = np.arange(40) % 10
COUNT = {"levels": [str(level) for level in range(10)]}


@pytest.fixture
def ledger(tmp_path):
    return od.Ledger.open(tmp_path / "ledger.db", create=True)


def release(ledger, epsilon, kind):
    paid = {"epsilon": epsilon, "delta": 0, "ledger": ledger, "dataset": "d"}
    if kind == "count":
        return od.DPCount(**COUNT, **paid).fit(VALUES.astype(str))
    return od.DPVariance(bounds=(0, 9), mechanism="centered", **paid).fit(VALUES)


@pytest.mark.parametrize("kind", ["count", "variance"])
@pytest.mark.parametrize("name", LISTS)
def test_releases_that_add_up_to_the_budget_fit_and_no_more(name, kind, ledger):
    stated, budget = LISTS[name]
    ledger.init("d", od.PureDP(budget))
    certified = Fraction(0)
    for epsilon in stated:
        released = release(ledger, epsilon, kind)
        assert od.verify(released.release_, ledger=ledger).answer == "authentic"
        promise = released.certificate_.plan["guarantee"]["promise"]["epsilon"]
        assert Fraction(promise) <= Fraction(str(epsilon))
        certified += Fraction(promise)
    assert certified <= Fraction(str(budget))
    with pytest.raises(BudgetSpent):
        release(ledger, 1e-6, kind)


def test_certificate_and_ledger_show_the_stated_decimal(ledger):
    ledger.init("d", od.PureDP(1.0))
    released = release(ledger, 0.2, "count")
    (event,) = [event for event in ledger.events("d") if event.kind == Kind.RESERVED]
    assert event.payload["promise"]["epsilon"] == 0.19999999999999998
    assert str(od.PureDP(0.19999999999999998)) == "ε = 0.2"
    assert "(ε = 0.2)" in released.certificate_.sentence
    assert "0.19999" not in str(released.release_) + released.certificate_.sentence


def test_one_float_more_than_the_decimals_is_refused(ledger):
    """What is booked directly is what it says: five floats 0.2 are more than 1."""
    ledger.init("d", od.PureDP(1.0))
    for _ in range(4):
        ledger.reserve("d", od.PureDP(0.2))
    with pytest.raises(BudgetSpent):
        ledger.reserve("d", od.PureDP(0.2))


def test_declared_decimal_pays_for_the_release_that_is_calibrated_to_it(ledger):
    ledger.init("d", od.PureDP(2.0))
    ledger.declare("d", [od.PureDP(0.1)] * 3)
    spent = ledger.account("d").total().epsilon()
    for _ in range(3):
        release(ledger, 0.1, "count")
    assert ledger.account("d").total().epsilon() == spent
    release(ledger, 0.1, "count")
    assert ledger.account("d").total().epsilon() > spent


def test_declared_decimal_does_not_pay_for_a_smaller_promise(ledger):
    ledger.init("d", od.PureDP(2.0))
    ledger.declare("d", [od.PureDP(0.1)])
    spent = ledger.account("d").total().epsilon()
    ledger.reserve("d", od.PureDP(0.09))
    assert ledger.account("d").total().epsilon() > spent


@pytest.mark.parametrize(
    ("promise", "gamma"),
    [
        (od.PureDP(np.nextafter(0.1, 1.0)), 0.0),
        (od.PureDP(0.5), 0.0),
        (od.PureDP(np.nextafter(np.nextafter(0.1, 0.0), 0.0)), 0.0),
        (od.PureDP(at_most_stated(0.1)), 1e-9),
        (od.ApproxDP(at_most_stated(0.1), 1e-9), 0.0),
    ],
    ids=["one float more", "larger", "two floats less", "inexact", "with a δ"],
)
def test_declared_decimal_pays_for_nothing_but_its_own_float_below(promise, gamma, ledger):
    ledger.init("d", od.ApproxDP(4.0, 1e-5))
    ledger.declare("d", [od.PureDP(0.1)])
    before = ledger.account("d")
    ledger.reserve("d", promise, gamma=gamma)
    assert ledger.account("d").whole is not before.whole
    assert ledger.account("d").declared == before.declared
    ledger.reserve("d", od.PureDP(at_most_stated(0.1)))
    assert all(not one.open for one in ledger.account("d").declared.values())


def test_decimal_declared_for_one_part_does_not_pay_in_another(ledger):
    ledger.init("d", od.PureDP(2.0))
    ledger.declare_parts("d", "hospital", {"north": 20, "south": 20})
    ledger.declare("d", [od.PureDP(0.1)], part="north")
    ledger.reserve("d", od.PureDP(at_most_stated(0.1)), part="south")
    assert ledger.account("d").total("south").epsilon() == pytest.approx(0.1)
    assert ledger.account("d").total("north").epsilon() == 0.1
    ledger.reserve("d", od.PureDP(at_most_stated(0.1)), part="north")
    assert ledger.account("d").total("north").epsilon() == 0.1
