"""What every ledger must do, in whichever database it is kept. Run on SQLite and on PostgreSQL."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import astuple
from itertools import pairwise

import pytest

from onedraw.errors import BudgetSpent, InvalidBudget, LedgerError
from onedraw.ledger import Event, Kind, Ledger, Reservation
from onedraw.privacy import ZCDP, ApproxDP, BoundedRange, GaussianDP, Promise, PureDP, RenyiDP, Unit, compose

pytestmark = pytest.mark.contract


BUDGETS = [PureDP(1.0), ApproxDP(1.0, 1e-5), GaussianDP(0.5), ZCDP(0.5), RenyiDP.at(8.0, 1.0)]
PAYLOAD_OF_A_RESERVATION = {
    "library", "time", "promise", "gamma", "timing", "delta", "part", "seeded", "label", "fingerprint", "request", "by", "note", "purpose",
}  # fmt: skip


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [event.kind for event in events]


# ── reserve and settle ──


def test_a_release_is_reserved_then_settled(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0), note="agreed by the board")
    reservation = ledger.reserve("patients", PureDP(0.25), label="mean age", fingerprint="ab" * 32)
    assert ledger.head() == reservation.head
    assert ledger.certificate_digest(reservation.entry) is None
    settled = ledger.settle(reservation, "cd" * 32)
    assert ledger.certificate_digest(reservation.entry) == "cd" * 32
    assert ledger.head() == settled.hash
    assert kinds(ledger.events()) == ["book-opened", "dataset-opened", "reserved", "settled"]
    assert ledger.verify().ok


def test_an_event_tells_what_was_promised_and_nothing_else(ledger: Ledger) -> None:
    ledger.init("patients", ApproxDP(1.0, 1e-5))
    promise = RenyiDP.at(64.0, 0.125)
    ledger.reserve("patients", promise, gamma=1e-9, timing=1e-12, seeded=True, label="try", fingerprint="ab")
    payload = ledger.events("patients")[-1].payload
    assert payload.keys() == PAYLOAD_OF_A_RESERVATION
    assert Promise.from_dict(payload["promise"]) == promise
    assert (payload["gamma"], payload["timing"], payload["seeded"], payload["part"]) == (1e-9, 1e-12, True, None)
    assert payload["time"].endswith("Z")


def test_a_settlement_has_no_time_because_running_time_depends_on_the_records(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    event = ledger.settle(ledger.reserve("patients", PureDP(0.5)), "digest")
    assert event.payload.keys() == {"library", "certificate"}


def test_every_event_links_to_the_one_before(ledger: Ledger) -> None:
    ledger.init("a", PureDP(1.0))
    ledger.init("b", PureDP(1.0))
    ledger.reserve("a", PureDP(0.5))
    events = ledger.events()
    assert [event.sequence for event in events] == [1, 2, 3, 4]
    assert all(later.previous == earlier.hash for earlier, later in pairwise(events))


def test_a_reservation_that_is_never_settled_is_spent(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.reserve("patients", PureDP(0.75))
    with pytest.raises(BudgetSpent):
        ledger.reserve("patients", PureDP(0.5))


def test_a_seeded_run_is_charged_like_any_other(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.reserve("patients", PureDP(1.0), seeded=True)
    assert ledger.remaining("patients").epsilon == 0.0


def test_double_settlement_is_refused(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    reservation = ledger.reserve("patients", PureDP(0.5))
    ledger.settle(reservation, "first")
    with pytest.raises(LedgerError, match="settled already"):
        ledger.settle(reservation, "second")
    assert ledger.certificate_digest(reservation.entry) == "first"


def test_settling_what_was_never_reserved_is_refused(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    reservation = ledger.reserve("patients", PureDP(0.5))
    for forged in (
        Reservation("0" * 32, "patients", reservation.head),
        Reservation(reservation.entry, "others", reservation.head),
        Reservation(reservation.entry, "patients", "0" * 64),
    ):
        with pytest.raises(LedgerError, match="does not stand in this ledger"):
            ledger.settle(forged, "digest")
    with pytest.raises(LedgerError, match="is empty"):
        ledger.settle(reservation, "")
    assert ledger.certificate_digest("0" * 32) is None


# ── budgets ──


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_everything_accepted_implies_the_budget_and_the_rest_is_refused(ledger: Ledger, budget: Promise) -> None:
    ledger.init("patients", budget)
    accepted: list[Promise] = []
    while len(accepted) < 50:
        promise = PureDP(0.25)
        try:
            ledger.reserve("patients", promise)
        except BudgetSpent:
            break
        accepted.append(promise)
    assert 0 < len(accepted) < 50
    assert compose(*accepted).implies(budget)
    assert not compose(*accepted, PureDP(0.25)).implies(budget)
    assert ledger.spent("patients") == compose(*accepted)
    assert ledger.verify().ok


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_what_remains_can_be_spent(ledger: Ledger, budget: Promise) -> None:
    ledger.init("patients", budget)
    for promise in (PureDP(0.1), BoundedRange(0.07), PureDP(1 / 3)):
        ledger.reserve("patients", promise)
        left = ledger.remaining("patients")
        assert left.epsilon > 0
        assert left.budget == budget
        assert left.spent_epsilon >= ledger.spent("patients").epsilon(left.delta)  # the list's total, were it fixed
        assert left.kept_by.startswith("adaptive: proven filter")
    ledger.reserve("patients", PureDP(left.epsilon))
    assert ledger.verify().ok


def test_remaining_of_an_epsilon_budget_is_the_difference_rounded_down(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    assert ledger.remaining("patients").epsilon == 1.0
    ledger.reserve("patients", PureDP(0.1))
    left = ledger.remaining("patients").epsilon
    assert left <= 0.9
    assert math.isclose(left, 0.9, rel_tol=1e-15)
    ledger.reserve("patients", PureDP(left))
    assert ledger.remaining("patients").epsilon < 1e-15


def test_a_spent_budget_says_what_was_spent_asked_and_left(ledger: Ledger) -> None:
    ledger.init("patients", ApproxDP(1.0, 1e-6))
    ledger.reserve("patients", PureDP(0.75))
    before = ledger.events()
    with pytest.raises(BudgetSpent, match=r"spent is ε = 0\.7.*asked is ε = 0\.5.*top-up") as caught:
        ledger.reserve("patients", PureDP(0.5))
    fields = caught.value.fields
    assert (fields["dataset"], fields["budget"], fields["delta"]) == ("patients", ApproxDP(1.0, 1e-6), 1e-6)
    assert 0.7 < fields["spent"] <= 0.75
    assert 0.4 < fields["asked"] <= 0.5
    assert 0.25 <= fields["remaining"] < 0.3
    assert caught.value.exit_code == 4
    assert ledger.events() == before


def test_begin_charges_padded_work_from_the_second_draw_on(ledger: Ledger) -> None:
    ledger.init("patients", ApproxDP(1.0, 1e-6))
    ledger.declare_parts("patients", "region", {"north": 3, "south": 4})
    reservation = ledger.reserve("patients", PureDP(0.5), gamma=2.0**-30, timing=2.0**-26, part="north")
    ledger.begin(reservation)
    assert ledger.spent("patients", part="north").gamma == 2.0**-30 + 2.0**-26
    ledger.begin(reservation)
    assert ledger.spent("patients", part="north").gamma == 2.0**-30 + 2.0**-25
    assert ledger.spent("patients", part="south").gamma == 0.0
    assert ledger.account("patients").reservations == 1
    before = ledger.account("patients")
    with pytest.raises(BudgetSpent, match=r"padded work"):
        begin_often(ledger, reservation)
    assert ledger.account("patients").reservations == before.reservations
    ledger.settle(reservation, "digest")
    with pytest.raises(LedgerError, match="settled already"):
        ledger.begin(reservation)
    with pytest.raises(LedgerError, match="does not stand in this ledger"):
        ledger.begin(Reservation("unknown", "patients", reservation.head))
    assert kinds(ledger.events("patients"))[2:5] == ["reserved", "attempted", "attempted"]
    assert ledger.verify().ok


def begin_often(ledger: Ledger, reservation: Reservation) -> None:
    for _ in range(30):
        ledger.begin(reservation)


def test_begin_of_constant_work_notes_nothing(ledger: Ledger) -> None:
    ledger.init("patients", ApproxDP(1.0, 1e-6))
    for timing in (None, 0.0):
        assert ledger.begin(ledger.reserve("patients", PureDP(0.25), timing=timing)) is None
    assert kinds(ledger.events("patients"))[1:] == ["reserved", "reserved"]


def test_begin_in_a_closed_dataset_allows_the_first_draw_alone(ledger: Ledger) -> None:
    ledger.init("patients", ApproxDP(1.0, 1e-6))
    reservation = ledger.reserve("patients", PureDP(0.25), timing=1e-12)
    ledger.close_dataset("patients")
    ledger.begin(reservation)
    with pytest.raises(LedgerError, match="is closed"):
        ledger.begin(reservation)
    assert ledger.verify().ok


def test_a_release_that_takes_the_whole_budget_may_be_attempted_again_and_nothing_else_fits(ledger: Ledger) -> None:
    """No filter keeps it: it is accepted as one list, and its attempts belong to that."""
    ledger.init("patients", ApproxDP(1.0, 1e-6))
    with pytest.raises(BudgetSpent, match="Plan for a smaller δ"):
        ledger.reserve("patients", ApproxDP(1.0, 1e-6), timing=1e-12)
    reservation = ledger.reserve("patients", ApproxDP(1.0, 0.9e-6), timing=2e-9)
    for _ in range(3):
        ledger.begin(reservation)
    assert ledger.remaining("patients").kept_by.startswith("pre-declared")
    with pytest.raises(BudgetSpent):
        begin_often(ledger, reservation)
    with pytest.raises(BudgetSpent):
        ledger.reserve("patients", PureDP(1e-6))
    assert ledger.verify().ok


def test_a_declared_release_with_padded_work_is_declared_with_its_gamma(ledger: Ledger) -> None:
    ledger.init("patients", ApproxDP(1.0, 1e-6))
    ledger.declare("patients", [PureDP(0.5)], gammas=[1e-12])
    before = ledger.spent("patients")
    ledger.reserve("patients", PureDP(0.5), timing=1e-12)
    assert ledger.spent("patients") == before


def test_gamma_is_charged_on_top_and_never_to_a_pure_budget(ledger: Ledger) -> None:
    ledger.init("pure", PureDP(10.0))
    with pytest.raises(BudgetSpent, match="γ = 1e-09"):
        ledger.reserve("pure", PureDP(0.5), gamma=1e-9)
    ledger.init("approximate", ApproxDP(1.0, 1e-6))
    ledger.reserve("approximate", PureDP(0.5), gamma=1e-7)
    assert ledger.spent("approximate").gamma == 1e-7
    with pytest.raises(BudgetSpent):
        ledger.reserve("approximate", PureDP(0.5), gamma=3e-7)  # (1 + e)·4e-7 > 1e-6
    with pytest.raises(BudgetSpent):
        ledger.reserve("approximate", PureDP(0.01), gamma=0.9999999999)


def test_a_top_up_makes_room_and_can_only_raise(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.reserve("patients", PureDP(1.0))
    with pytest.raises(BudgetSpent):
        ledger.reserve("patients", PureDP(0.5))
    ledger.top_up("patients", PureDP(2.0))
    ledger.reserve("patients", PureDP(0.5))
    for lower in (PureDP(1.5), GaussianDP(0.1)):
        with pytest.raises(LedgerError, match="can only grow"):
            ledger.top_up("patients", lower)
    ledger.top_up("patients", ApproxDP(2.0, 1e-6))
    assert ledger.remaining("patients").budget == ApproxDP(2.0, 1e-6)
    assert ledger.verify().ok


def test_a_closed_dataset_takes_no_reservation_but_lets_one_under_way_settle(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    reservation = ledger.reserve("patients", PureDP(0.5))
    ledger.close_dataset("patients")
    attempts: list[Callable[[], object]] = [
        lambda: ledger.reserve("patients", PureDP(0.1)),
        lambda: ledger.top_up("patients", PureDP(2.0)),
        lambda: ledger.close_dataset("patients"),
        lambda: ledger.declare_parts("patients", "region", {"north": 1}),
    ]
    for attempt in attempts:
        with pytest.raises(LedgerError, match="is closed"):
            attempt()
    ledger.settle(reservation, "digest")
    assert ledger.remaining("patients").epsilon == 0.0
    assert ledger.verify().ok


def test_datasets_have_budgets_of_their_own(ledger: Ledger) -> None:
    ledger.init("a", PureDP(1.0))
    ledger.init("b", PureDP(1.0))
    ledger.reserve("a", PureDP(1.0))
    ledger.reserve("b", PureDP(1.0))
    assert ledger.datasets() == ("a", "b")
    assert kinds(ledger.events("b")) == ["dataset-opened", "reserved"]


def test_an_unknown_dataset_is_refused_with_the_known_names(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    calls: list[Callable[[str], object]] = [
        ledger.spent, ledger.remaining, ledger.account, ledger.events, ledger.close_dataset,
        lambda name: ledger.reserve(name, PureDP(0.5)),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(LedgerError, match=r"no dataset called 'patient'.*'patients'"):
            call("patient")


def test_a_dataset_is_opened_once(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    with pytest.raises(LedgerError, match="has a budget in this ledger already"):
        ledger.init("patients", PureDP(5.0))


def test_two_spellings_of_one_name_share_one_budget(ledger: Ledger) -> None:
    composed, decomposed = "donn\u00e9es", "donne\u0301es"
    ledger.init(composed, PureDP(1.0))
    ledger.reserve(decomposed, PureDP(1.0))
    assert ledger.remaining(composed).epsilon == 0.0


@pytest.mark.parametrize("name", ["", " patients", "a\nb", "a\u0000", "x" * 501, 7])
def test_a_name_that_could_be_mistaken_is_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(LedgerError, match="name"):
        ledger.init(name, PureDP(1.0))


def test_only_promises_can_be_budgets_or_spends(ledger: Ledger) -> None:
    for budget in (BoundedRange(1.0), compose(PureDP(1.0)), 1.0, None):
        with pytest.raises(InvalidBudget, match="budget is one"):
            ledger.init("patients", budget)  # type: ignore[arg-type]
    ledger.init("patients", PureDP(1.0))
    with pytest.raises(InvalidBudget, match="What is spent is a promise"):
        ledger.reserve("patients", 0.5)  # type: ignore[arg-type]
    for gamma in (-1e-9, 1.0, math.nan, True, "0"):
        with pytest.raises(InvalidBudget, match="total variation"):
            ledger.reserve("patients", PureDP(0.5), gamma=gamma)  # type: ignore[arg-type]
        with pytest.raises(InvalidBudget, match="total variation"):
            ledger.reserve("patients", PureDP(0.5), timing=gamma)  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match="label"):
        ledger.reserve("patients", PureDP(0.5), label="a\nb")
    assert kinds(ledger.events("patients")) == ["dataset-opened"]


def test_the_unit_is_kept_with_the_budget(ledger: Ledger) -> None:
    ledger.init("visits", PureDP(1.0), unit=Unit(3), note="three visits at most")
    account = ledger.account("visits")
    assert (account.unit, account.note) == (Unit(3), "three visits at most")


# ── parts ──


def test_parts_spend_in_parallel(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.declare_parts("patients", "region", {"north": 1200, "south": 800})
    ledger.reserve("patients", PureDP(0.25))
    ledger.reserve("patients", PureDP(0.75), part="north")
    ledger.reserve("patients", PureDP(0.5), part="south")
    assert ledger.spent("patients", part="south").epsilon(0.0) == 0.75
    assert ledger.spent("patients") == ledger.spent("patients", part="north") == compose(PureDP(0.25), PureDP(0.75))
    assert ledger.remaining("patients", part="south").epsilon == 0.25
    assert ledger.remaining("patients").epsilon == 0.0
    assert ledger.verify().ok


def test_a_part_cannot_spend_more_than_the_dataset(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.declare_parts("patients", "region", {"north": 1200, "south": 800})
    ledger.reserve("patients", PureDP(0.75), part="north")
    with pytest.raises(BudgetSpent, match="part 'north'"):
        ledger.reserve("patients", PureDP(0.5), part="north")
    with pytest.raises(BudgetSpent):
        ledger.reserve("patients", PureDP(0.5))  # the north would pay 1.25
    ledger.reserve("patients", PureDP(0.25))
    ledger.reserve("patients", PureDP(0.75), part="south")


def test_parts_cut_by_a_private_column_are_refused_with_the_reason(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    with pytest.raises(LedgerError, match=r"move it from one part to another.*add up"):
        ledger.declare_parts("patients", "diagnosis", {"a": 10, "b": 20}, public_membership=False)
    assert kinds(ledger.events("patients")) == ["dataset-opened"]


def test_a_second_partition_is_refused_because_parts_overlap(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.declare_parts("patients", "region", {"north": 1200, "south": 800})
    with pytest.raises(LedgerError, match="overlap"):
        ledger.declare_parts("patients", "year", {"2024": 1000, "2025": 1000})


def test_parts_are_refused_where_a_person_may_be_in_several(ledger: Ledger) -> None:
    ledger.init("visits", PureDP(1.0), unit=Unit(3))
    with pytest.raises(LedgerError, match="several parts"):
        ledger.declare_parts("visits", "region", {"north": 1200, "south": 800})


def test_an_undeclared_part_is_refused(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    with pytest.raises(LedgerError, match=r"no part called 'north'.*none declared"):
        ledger.reserve("patients", PureDP(0.5), part="north")
    with pytest.raises(LedgerError, match="no part called 'north'"):
        ledger.remaining("patients", part="north")


@pytest.mark.parametrize("sizes", [{}, {"north": 0}, {"north": 1.5}, {"north": True}])
def test_parts_need_public_sizes(ledger: Ledger, sizes: dict[str, int]) -> None:
    ledger.init("patients", PureDP(1.0))
    with pytest.raises(LedgerError, match="public sizes"):
        ledger.declare_parts("patients", "region", sizes)


# ── opening, copying, keeping up ──


def test_a_ledger_is_found_again(ledger: Ledger, place: str) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.reserve("patients", PureDP(0.5))
    again = Ledger.open(place)
    assert again.events() == ledger.events()
    assert again.remaining("patients") == ledger.remaining("patients")
    assert Ledger.open(place, create=True).head() == ledger.head()


def test_a_ledger_is_never_made_by_accident(place: str) -> None:
    with pytest.raises(LedgerError, match=r"no ledger at.*create=True"):
        Ledger.open(place)
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger.open(place)  # the first attempt left nothing behind


def test_one_object_sees_what_another_writes(ledger: Ledger, place: str) -> None:
    other = Ledger.open(place)
    ledger.init("patients", PureDP(1.0))
    other.reserve("patients", PureDP(0.75))
    with pytest.raises(BudgetSpent):
        ledger.reserve("patients", PureDP(0.5))


def test_a_copy_is_the_same_ledger(ledger: Ledger) -> None:
    from sklearn.base import clone

    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"ledger": [ledger]})["ledger"][0] is ledger
    assert clone(ledger) is ledger


def test_a_pickled_ledger_opens_the_same_file(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    worker = pickle.loads(pickle.dumps(ledger))
    worker.reserve("patients", PureDP(0.75))
    assert ledger.remaining("patients").epsilon == 0.25


def test_the_three_hundredth_reservation_is_still_quick(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    for number in range(300):
        ledger.reserve("patients", PureDP(2.0**-12 * (1 + number / 1000)))
    ledger.top_up("patients", ApproxDP(1.0, 1e-5))
    fresh = pickle.loads(pickle.dumps(ledger))  # has read nothing yet
    start = time.perf_counter()
    fresh.reserve("patients", PureDP(2.0**-12))
    assert time.perf_counter() - start < 2.0


def test_importing_the_ledger_loads_no_database_library() -> None:
    heavy = "{'sqlalchemy', 'psycopg', 'dp_accounting', 'jax', 'sklearn', 'pyarrow'}"
    program = f"import sys, onedraw.ledger; print(sorted({heavy} & set(sys.modules)))"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[]"


# ── the chain, attacked through the database ──


def a_small_ledger(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0), note="note")
    ledger.declare_parts("patients", "region", {"north": 1200, "south": 800})
    ledger.settle(ledger.reserve("patients", PureDP(0.25), part="north", label="one"), "ab" * 32)
    ledger.top_up("patients", PureDP(2.0))
    ledger.close_dataset("patients")


def test_the_database_refuses_changes(ledger: Ledger, direct_sql: Callable[..., object], place: str) -> None:
    from sqlalchemy.exc import DBAPIError

    a_small_ledger(ledger)
    attempts = {
        "UPDATE onedraw_events SET dataset = 'others' WHERE sequence = 4": "append-only",
        "DELETE FROM onedraw_events WHERE sequence = 4": "append-only",
        "INSERT INTO onedraw_events SELECT 99, 'e', kind, dataset, payload, hash, 'h' FROM onedraw_events "
        "WHERE sequence = 7": "must follow",
        "INSERT INTO onedraw_events SELECT 8, 'e', kind, dataset, payload, 'p', 'h' FROM onedraw_events "
        "WHERE sequence = 7": "must follow",
    }
    if "://" in place:
        attempts["TRUNCATE onedraw_events"] = "append-only"
    else:
        replace = "INSERT OR REPLACE INTO onedraw_events SELECT 4, 'e', kind, dataset, payload, previous, 'h'"
        attempts[f"{replace} FROM onedraw_events WHERE sequence = 4"] = "must follow"
    for statement, reason in attempts.items():
        with pytest.raises(DBAPIError, match=reason):
            direct_sql(statement)
    assert ledger.verify().events == 7


@pytest.mark.parametrize("column", ["entry", "kind", "dataset", "payload", "previous", "hash"])
def test_a_changed_byte_in_the_database_is_caught(
    ledger: Ledger, unguarded: Callable[..., object], column: str
) -> None:
    a_small_ledger(ledger)
    assert ledger.verify().ok
    for event in ledger.events():
        old = dict(zip(("entry", "kind", "dataset", "payload", "previous", "hash"), astuple(event)[1:], strict=True))[
            column
        ]
        for position in {0, len(old) // 2, len(old) - 1} if old else {0}:
            new = old[:position] + ("~" if old[position : position + 1] != "~" else "!") + old[position + 1 :]
            change = "UPDATE onedraw_events SET {} = '{}' WHERE sequence = {}"
            unguarded(change.format(column, new.replace("'", "''"), event.sequence))
            with pytest.raises(LedgerError, match=f"broken at event {event.sequence}:") as caught:
                ledger.verify()
            assert caught.value.fields["sequence"] == event.sequence
            unguarded(change.format(column, old.replace("'", "''"), event.sequence))
    assert ledger.verify().ok


def test_a_moved_or_missing_event_is_caught(ledger: Ledger, unguarded: Callable[..., object]) -> None:
    a_small_ledger(ledger)
    unguarded("UPDATE onedraw_events SET sequence = 70 WHERE sequence = 7")
    with pytest.raises(LedgerError, match="broken at event 7"):
        ledger.verify()
    unguarded("UPDATE onedraw_events SET sequence = 7 WHERE sequence = 70")
    assert ledger.verify().ok
    unguarded("DELETE FROM onedraw_events WHERE sequence = 3")
    with pytest.raises(LedgerError, match="broken at event 3"):
        ledger.verify()
    unguarded("DELETE FROM onedraw_events")
    with pytest.raises(LedgerError, match="broken at event 1: it is missing"):
        ledger.verify()


def test_nothing_is_reserved_from_a_broken_history(
    ledger: Ledger, place: str, unguarded: Callable[..., object]
) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.reserve("patients", PureDP(0.9), label="one")
    unguarded("UPDATE onedraw_events SET payload = replace(payload, '0.9', '0.1') WHERE sequence = 3")
    with pytest.raises(LedgerError, match="broken at event 3"):
        Ledger.open(place).reserve("patients", PureDP(0.5))
    with pytest.raises(LedgerError, match="broken at event 3"):
        Ledger.open(place).remaining("patients")


def test_a_shortened_history_is_caught_by_the_head_on_a_certificate(
    ledger: Ledger, place: str, unguarded: Callable[..., object]
) -> None:
    ledger.init("patients", PureDP(1.0))
    head = ledger.reserve("patients", PureDP(0.9)).head
    assert ledger.verify(head=head).ok
    assert ledger.remaining("patients").epsilon < 0.2
    unguarded("DELETE FROM onedraw_events WHERE sequence = 3")
    if "://" not in place:  # a mark stands beside a file: it needs no certificate
        with pytest.raises(LedgerError, match="ends at event 2, but its mark has seen event 3: 1 event is lost"):
            Ledger.open(place)
        place = f"sqlite:///{place}?mode=ro"  # and no mark belongs to a copy
    assert Ledger.open(place).verify().ok  # what is left is a chain …
    with pytest.raises(LedgerError, match="does not contain the head"):
        Ledger.open(place).verify(head=head)  # … but not the one that was certified
    with pytest.raises(LedgerError, match=r"broken at event 3|ends at event 2"):
        ledger.reserve("patients", PureDP(0.5))  # and a process that saw more does not go on


def test_verify_reports_a_budget_that_todays_accountant_finds_exceeded(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onedraw.ledger.accounts import Account

    ledger.init("patients", PureDP(1.0))
    with monkeypatch.context() as optimist:
        optimist.setattr(Account, "has_room_for", lambda *_, **__: True)
        ledger.reserve("patients", PureDP(1.5))
    verification = ledger.verify()
    assert not verification
    assert "over its budget today" in verification.findings[0]
    ledger.top_up("patients", PureDP(2.0))
    assert "before the top-up in event 4" in ledger.verify().findings[0]


def test_kinds_are_spelled_as_the_format_says() -> None:
    assert [kind.value for kind in Kind] == [
        "book-opened", "marked", "restored", "dataset-opened", "top-up", "closed", "parts-declared", "declared", "reserved",
        "attempted", "settled",
    ]  # fmt: skip
