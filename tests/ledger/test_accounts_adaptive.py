"""An analyst who looks at a draw before deciding what to spend next: the budget holds all the same.

The attack is computed, not simulated. After a Gaussian first release the analyst knows its privacy loss L, and takes whichever of
the promises that the ledger accepts makes the rest worst: δ = E_P[max over accepted M of δ_M(ε − L)], by quadrature.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from onedraw.errors import BudgetSpent, InvalidBudget
from onedraw.ledger import Kind, Ledger
from onedraw.ledger.accounts import Account
from onedraw.ledger.events import START, Position, new_event
from onedraw.ledger.storage import storage_at
from onedraw.privacy import ZCDP, ApproxDP, Composed, GaussianDP, LinearCurve, Promise, PureDP, RenyiDP, Unit, compose
from onedraw.privacy.filters import filters_of

Array = NDArray[np.float64]
BUDGET = ApproxDP(3.0, 1e-5)
FIRST = GaussianDP(0.6 * ApproxDP(3.0, 1e-5).allows(GaussianDP))
CANDIDATES: tuple[Promise, ...] = (
    *(PureDP(epsilon) for epsilon in np.linspace(1.33, 0.1, 8).tolist()),
    *(GaussianDP(mu) for mu in np.linspace(0.575, 0.1, 8).tolist()),
    *(ApproxDP(1e-6, delta) for delta in (9.9e-6, 9.3e-6, *np.geomspace(5e-6, 1e-7, 6).tolist())),
)


# ── the attack ──


def profile(promise: Promise, epsilon: Array) -> Array:
    """δ of the worst mechanism that keeps the promise, at any ε, also a negative one."""
    if isinstance(promise, GaussianDP):
        shift, centre = epsilon / promise.mu, promise.mu / 2
        return np.asarray(special.ndtr(centre - shift) - np.exp(epsilon) * special.ndtr(-centre - shift))
    assert isinstance(promise, PureDP | ApproxDP)
    size, leak = promise.stated_epsilon, getattr(promise, "stated_delta", 0.0)
    distance = np.abs(epsilon)
    above = np.maximum(0.0, (np.exp(size) - np.exp(distance)) / (1 + np.exp(size)))
    response = np.where(epsilon >= 0, above, 1 - np.exp(-distance) * (1 - above))
    return np.asarray(leak + (1 - leak) * response)


def adaptive_delta(accepts: Callable[[Promise], bool]) -> float:
    """The δ at the budget's ε that the analyst reaches by choosing, at each loss, the worst promise that is accepted."""
    outcome = np.linspace(-12, 12, 40_001)
    loss = FIRST.mu * outcome + FIRST.mu**2 / 2
    weight = np.exp(-(outcome**2) / 2) / np.sqrt(2 * np.pi) * (outcome[1] - outcome[0])
    left = BUDGET.stated_epsilon - loss
    branches = [profile(promise, left) for promise in CANDIDATES if accepts(promise)]
    return float(weight @ np.max([np.maximum(0.0, 1 - np.exp(left)), *branches], axis=0))


@pytest.mark.finding("10.11")
def test_an_analyst_who_chooses_in_view_of_a_draw_stays_within_the_budget() -> None:
    account = Account("patients", BUDGET, Unit()).charged(FIRST, gamma=0.0, part=None)
    assert any(account.has_room_for(promise) for promise in CANDIDATES)
    assert adaptive_delta(account.has_room_for) <= BUDGET.stated_delta


def test_the_attack_exceeds_an_accountant_of_fixed_lists() -> None:
    """The planted fault: the tight total of what stands in the ledger, asked after each draw."""
    accepted = {promise: compose(FIRST, promise).implies(BUDGET) for promise in CANDIDATES}
    assert adaptive_delta(accepted.__getitem__) > 2.5 * BUDGET.stated_delta


def test_the_attack_exceeds_filters_that_each_have_the_whole_delta() -> None:
    """The planted fault: which filter keeps the history depends on the draw, so the δ of the filters add up."""
    from onedraw.privacy.filters import CURVE_SHARE, MANY_SUMS_SHARE, NOTHING, SUMS_SHARE, Spend, add

    # Each filter taken from the budget of which its share is δ itself.
    filters = [
        next(islice(filters_of(ApproxDP(3.0, float(1e-5 / share))), place, None))
        for place, share in enumerate((SUMS_SHARE, MANY_SUMS_SHARE, CURVE_SHARE, CURVE_SHARE))
    ]

    def accepts(promise: Promise) -> bool:
        totals = [add(add(NOTHING, one.charge(Spend(FIRST))), one.charge(Spend(promise))) for one in filters]
        return any(one.keeps(total) for one, total in zip(filters, totals, strict=True))

    assert adaptive_delta(accepts) > 1.7 * BUDGET.stated_delta


@pytest.mark.finding("10.11")
def test_no_total_of_a_list_decides_about_promises_chosen_one_after_another(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onedraw.privacy import pld

    implies = Composed.implies

    def only_one(self: Composed, other: Promise) -> bool:
        assert len(self.parts) <= 1, "a list of several promises was composed as if it had been fixed"
        return implies(self, other)

    def never(*_: object) -> None:
        raise AssertionError("a privacy-loss distribution was asked")

    monkeypatch.setattr(Composed, "implies", only_one)
    monkeypatch.setattr(pld, "upper_profile", never)
    ledger.init("patients", BUDGET)
    for promise in (GaussianDP(0.2), PureDP(0.1), ZCDP(0.001), ApproxDP(0.1, 1e-9), RenyiDP.at(16.0, 0.01)) * 3:
        ledger.reserve("patients", promise, gamma=1e-12)
    assert ledger.remaining("patients").epsilon > 0


# ── the filters ──


def spend_until_refused(ledger: Ledger, promise: Promise, most: int = 400) -> int:
    for number in range(most):
        try:
            ledger.reserve("patients", promise)
        except BudgetSpent:
            return number
    return most


@pytest.mark.parametrize(
    ("promise", "filter_name", "at_least"),
    [(PureDP(1.0), "sum of ε", 3), (GaussianDP(0.1), "sum of μ²", 43), (PureDP(0.08), "Rényi order", 60)],
    ids=["few large ones", "Gaussian ones", "many small ones"],
)
def test_each_filter_keeps_what_it_is_for(tmp_path: Path, promise: Promise, filter_name: str, at_least: int) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", BUDGET)
    accepted = spend_until_refused(ledger, promise)
    left = ledger.remaining("patients")
    assert accepted >= at_least
    assert filter_name in left.kept_by
    assert left.spent_epsilon <= 3.0
    assert compose(*[promise] * accepted).implies(BUDGET)
    assert ledger.verify().ok


def test_the_shares_of_delta_add_up_to_one() -> None:
    """Of the filters themselves: the curves pay for both sides of their allowance."""
    from onedraw.privacy.filters import Sums

    for delta in (1e-9, 2.0**-20, 1e-2):
        filters = list(filters_of(ApproxDP(3.0, delta)))
        paid = [one.allowance.delta if isinstance(one, Sums) else
                Fraction(one.allowance.curve) + 2 * one.allowance.delta for one in filters]  # fmt: skip
        assert len(filters) == 4
        assert float(sum(paid) / Fraction(delta)) == pytest.approx(1.0, rel=1e-15)


def test_a_capacity_read_as_epsilon_is_the_budget() -> None:
    """Each filter, filled to the brim, is (ε, its δ): what the proofs need, with room for rounding only."""
    from onedraw.privacy.filters import CURVE_SHARE, Order, Squares

    for epsilon, delta in [(0.1, 1e-9), (1.0, 1e-6), (3.0, 1e-5), (30.0, 1e-2)]:
        share = delta * float(CURVE_SHARE)
        for one in filters_of(ApproxDP(epsilon, delta)):
            assert one.epsilon((one.limit, 0), delta) <= epsilon * (1 + 1e-12)
            if isinstance(one, Squares):
                assert GaussianDP(float(one.limit) ** 0.5 * (1 - 1e-12)).implies(ApproxDP(epsilon, share))
            if isinstance(one, Order):
                assert RenyiDP.at(one.order, float(one.limit) * (1 - 1e-12)).implies(ApproxDP(epsilon, share))


def test_one_order_is_fixed_with_the_budget_and_kept(ledger: Ledger) -> None:
    ledger.init("patients", BUDGET)
    order = ledger.events("patients")[0].payload["order"]
    assert order == ledger.account("patients").order == 8.65
    ledger.top_up("patients", ApproxDP(6.0, 1e-5))
    assert ledger.account("patients").order == ledger.events("patients")[-1].payload["order"] < order
    ledger.init("others", PureDP(1.0))
    assert ledger.account("others").order is None


def test_the_chosen_order_is_best_for_a_concentrated_promise_that_uses_up_the_budget() -> None:
    from onedraw.privacy.filters import Order

    def rho(order: float) -> float:
        *_, found = filters_of(BUDGET, order)
        assert isinstance(found, Order)
        return float(found.limit) / order

    assert rho(8.65) >= max(rho(8.65 * factor) for factor in (0.8, 0.95, 1.05, 1.25))


def test_a_promise_without_a_curve_at_the_order_is_read_by_sums() -> None:
    account = Account("patients", BUDGET, Unit()).charged(PureDP(0.1), gamma=0.0, part=None)
    promise = RenyiDP(LinearCurve(0.01), below=4.0)
    *_, squares, order = filters_of(account.budget, account.order)
    assert order.charge(_spend(promise))[0] == float("inf")
    assert squares.charge(_spend(promise))[0] == float("inf")
    assert account.has_room_for(RenyiDP(LinearCurve(1e-4), below=64.0))


def _spend(promise: Promise) -> object:
    from onedraw.privacy.filters import Spend

    return Spend(promise)


def test_distances_inside_a_composition_are_charged_like_those_beside_it() -> None:
    account = Account("patients", BUDGET, Unit()).charged(GaussianDP(0.1), gamma=0.0, part=None)
    inside = account.charged(compose(GaussianDP(0.1), gammas=(1e-9,)), gamma=0.0, part=None)
    beside = account.charged(GaussianDP(0.1), gamma=1e-9, part=None)
    for one in filters_of(account.budget, account.order):
        assert inside.total().charge(one) == beside.total().charge(one)
        assert beside.total().charge(one)[1] > account.total().charge(one)[1]


def test_a_rényi_curve_without_one_order_is_no_budget(ledger: Ledger) -> None:
    with pytest.raises(InvalidBudget, match="name one order"):
        ledger.init("patients", RenyiDP(LinearCurve(0.1)))


def test_one_release_may_use_the_whole_budget(ledger: Ledger) -> None:
    """Chosen before any draw, so it is a list; no filter keeps it, so nothing comes after it."""
    for name, promise in {
        "gaussian": GaussianDP(ApproxDP(3.0, 1e-5).allows(GaussianDP)),
        "approximate": BUDGET,
    }.items():
        ledger.init(name, BUDGET)
        ledger.reserve(name, promise)
        assert ledger.remaining(name).kept_by.startswith("pre-declared: one list")
        with pytest.raises(BudgetSpent):
            ledger.reserve(name, PureDP(1e-9))
    assert ledger.verify().ok


# ── declarations ──

LIST = [PureDP(0.05)] * 90


def test_a_declared_list_is_composed_more_tightly_than_promises_one_after_another(ledger: Ledger) -> None:
    budget = ApproxDP(2.0, 1e-5)
    assert compose(*LIST).implies(budget)
    ledger.init("patients", budget)
    ledger.declare("patients", LIST, label="ninety days")
    assert ledger.remaining("patients").kept_by.startswith("pre-declared: one list")
    for _ in range(3):
        ledger.settle(ledger.reserve("patients", PureDP(0.05)), "digest")
    assert sum(len(one.open) for one in ledger.account("patients").declared.values()) == 87
    assert ledger.account("patients").reservations == 3
    with pytest.raises(BudgetSpent):
        ledger.reserve("patients", PureDP(0.04))  # not on the list
    assert ledger.verify().ok
    assert [event.kind for event in ledger.events("patients")][:3] == ["dataset-opened", "declared", "reserved"]


def test_a_list_is_drawn_once(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.declare("patients", [PureDP(0.5), PureDP(0.5)])
    for _ in range(2):
        ledger.reserve("patients", PureDP(0.5))
    with pytest.raises(BudgetSpent):
        ledger.reserve("patients", PureDP(0.5))
    assert ledger.spent("patients") == compose(PureDP(0.5), PureDP(0.5))


def test_what_is_declared_and_never_drawn_stays_spent(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.declare("patients", [PureDP(0.75)])
    assert ledger.remaining("patients").epsilon == 0.25
    with pytest.raises(BudgetSpent):
        ledger.declare("patients", [PureDP(0.25), PureDP(0.25)])


def test_a_list_beside_other_spends_is_read_at_its_delta(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", BUDGET)
    ledger.reserve("patients", PureDP(0.5))
    ledger.declare("patients", LIST, delta=1e-6)
    assert ledger.remaining("patients").kept_by == "adaptive: proven filter, sum of ε and δ"
    expected = 0.5 + compose(*LIST).epsilon(1e-6)
    assert ledger.remaining("patients").spent_epsilon == pytest.approx(expected, rel=1e-12)
    with pytest.raises(BudgetSpent):
        ledger.declare("patients", [ApproxDP(0.01, 1e-6)], delta=4.1e-6)  # sums have half of δ


def test_a_promise_of_a_part_is_not_taken_from_the_list_of_the_whole(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.declare_parts("patients", "region", {"north": 3, "south": 4})
    ledger.declare("patients", [PureDP(0.5)], part="north")
    ledger.reserve("patients", PureDP(0.5), part="south")
    assert ledger.remaining("patients", part="north").epsilon == 0.5
    ledger.reserve("patients", PureDP(0.5), part="north")
    assert ledger.remaining("patients", part="north").epsilon == 0.5
    assert ledger.remaining("patients", part="south").epsilon == 0.5


def test_a_list_that_is_none_is_refused(ledger: Ledger) -> None:
    ledger.init("patients", BUDGET)
    for promises, gammas, delta in (([], (), None), ([PureDP(1.0)], (0.1, 0.1), None), ([PureDP(1.0)], (), 1.0)):
        with pytest.raises(InvalidBudget):
            ledger.declare("patients", promises, gammas=gammas, delta=delta)
    with pytest.raises(InvalidBudget, match="list of promises"):
        ledger.declare("patients", PureDP(1.0))  # type: ignore[arg-type]


# ── ledgers written before there were filters ──


def old_ledger(path: Path, promises: list[Promise]) -> Ledger:
    """Format 1: a budget without an order, and promises that only their tight total kept."""
    content = {"budget": BUDGET.to_dict(), "unit": Unit().to_dict(), "note": ""}
    reserved = {"gamma": 0.0, "part": None, "seeded": False, "label": "", "plan": ""}
    steps = [
        (Kind.DATASET_OPENED, content),
        *((Kind.RESERVED, {**reserved, "promise": promise.to_dict()}) for promise in promises),
    ]
    place = storage_at(path)
    place.check(create=True)
    first = new_event(START, Kind.BOOK_OPENED, entry="e0", dataset="", content={"format": 1})
    place.create(first)
    position = Position(first.sequence, first.hash)
    with place.writing() as writer:
        for number, (kind, said) in enumerate(steps, start=1):
            event = new_event(position, kind, entry=f"e{number}", dataset="patients", content=said)
            writer.append(event)
            position = Position(event.sequence, event.hash)
    return Ledger.open(path)


@pytest.mark.finding("10.11")
def test_a_ledger_that_only_the_total_of_a_list_kept_is_read_and_takes_no_new_spend(tmp_path: Path) -> None:
    ledger = old_ledger(tmp_path / "ledger.db", [FIRST, PureDP(1.33)])
    with pytest.raises(BudgetSpent, match="fixed before the first draw"):
        ledger.reserve("patients", PureDP(1e-6))
    left = ledger.remaining("patients")
    assert left.epsilon == 0.0
    assert left.kept_by.startswith("not adaptive")
    assert left.listed_epsilon is not None
    assert left.listed_epsilon <= 3.0 < left.spent_epsilon
    verified = ledger.verify()
    assert verified.ok
    assert "only if every promise was fixed before the first draw" in verified.remarks[0]
    ledger.top_up("patients", ApproxDP(6.0, 1e-5))
    ledger.reserve("patients", PureDP(0.1))


def test_an_older_ledger_that_a_filter_keeps_goes_on(tmp_path: Path) -> None:
    ledger = old_ledger(tmp_path / "ledger.db", [GaussianDP(0.1), PureDP(0.1)])
    assert ledger.account("patients").order == 8.65
    ledger.reserve("patients", GaussianDP(0.1))
    assert ledger.verify().remarks == ()
