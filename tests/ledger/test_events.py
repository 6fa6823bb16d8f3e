"""The chain by itself: every byte counts, and an event that cannot follow is refused whatever its hash."""

from __future__ import annotations

import json
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onedraw.errors import LedgerError
from onedraw.ledger import Event, Kind
from onedraw.ledger.accounts import Accounts
from onedraw.ledger.events import FIELDS, FORMAT, START, Position, canonical, event_hash, new_event, read_chain
from onedraw.privacy import PureDP, Unit

RESERVATION = {
    "promise": PureDP(0.25).to_dict(), "gamma": 0.0, "timing": None, "part": None, "seeded": False, "label": "", "plan": "",
}  # fmt: skip
TODAYS = {name: value for name, value in RESERVATION.items() if name != "plan"} | {
    "delta": None, "fingerprint": "", "request": None, "by": None, "note": None, "purpose": None,
}  # fmt: skip
OPENING = {"budget": PureDP(1.0).to_dict(), "unit": Unit().to_dict(), "note": ""}


Step = tuple[Kind, str, str, dict[str, Any]]


def chain(*steps: Step) -> list[Event]:
    """Well-linked events from (kind, entry, dataset, content), whatever they say."""
    events: list[Event] = []
    position = START
    for kind, entry, dataset, content in steps:
        event = new_event(position, kind, entry=entry, dataset=dataset, content=content)
        events.append(event)
        position = Position(event.sequence, event.hash)
    return events


BOOK = (Kind.BOOK_OPENED, "e1", "", {"format": 1})
OPENED = (Kind.DATASET_OPENED, "e2", "patients", OPENING)
RESERVED = (Kind.RESERVED, "e3", "patients", RESERVATION)
ATTEMPTED = (Kind.ATTEMPTED, "e8", "patients", {"of": "e3", "timing": 2.0**-40})
SETTLED = (Kind.SETTLED, "e3", "patients", {"certificate": "ab"})
TOPPED_UP = (Kind.TOP_UP, "e4", "patients", {"budget": PureDP(2.0).to_dict()})
CUT = (Kind.PARTS_DECLARED, "e5", "patients", {"partition": "region", "sizes": {"north": 3, "süd": 4}})
DECLARATION = {"items": [{"promise": PureDP(0.25).to_dict(), "gamma": 0.0}], "delta": None, "part": None, "label": ""}
DECLARED = (Kind.DECLARED, "e7", "patients", DECLARATION)
CLOSED: Step = (Kind.CLOSED, "e6", "patients", {})


def read(events: list[Event]) -> Accounts:
    return Accounts().after(read_chain([astuple(event) for event in events]))


def test_every_byte_of_every_event_is_covered_by_the_chain() -> None:
    events = chain(BOOK, OPENED, RESERVED, ATTEMPTED, SETTLED, TOPPED_UP, CUT, DECLARED, CLOSED)
    rows = [astuple(event) for event in events]
    assert read(events).position == Position(9, events[-1].hash)
    for index, row in enumerate(rows):
        for column in range(1, 7):
            for position in range(len(row[column])):
                changed = list(row)
                letter = "x" if row[column][position] != "x" else "y"
                changed[column] = row[column][:position] + letter + row[column][position + 1 :]
                with pytest.raises(LedgerError) as caught:
                    list(read_chain([*rows[:index], tuple(changed), *rows[index + 1 :]]))
                assert caught.value.fields["sequence"] == index + 1


def test_an_event_rewritten_with_its_own_hash_breaks_the_next_link() -> None:
    events = chain(BOOK, OPENED, RESERVED, SETTLED)
    cheaper = new_event(
        Position(2, events[1].hash), Kind.RESERVED, entry="e3", dataset="patients",
        content={**RESERVATION, "promise": PureDP(0.125).to_dict()},
    )  # fmt: skip
    with pytest.raises(LedgerError, match="broken at event 4: it does not follow"):
        read([*events[:2], cheaper, events[3]])


@pytest.mark.parametrize(
    "row", [(1, "e"), (1.0, *"abcdef"), (True, *"abcdef"), (1, None, *"bcdef"), (1, b"a", *"bcdef")]
)
def test_rows_of_other_types_are_not_events(row: tuple[Any, ...]) -> None:
    with pytest.raises(LedgerError, match="columns and types"):
        list(read_chain([row]))


IMPOSSIBLE: dict[str, list[Step]] = {
    "settles what was never reserved": [BOOK, OPENED, SETTLED],
    "a second time": [BOOK, OPENED, OPENED],
    "settles an entry a second time": [BOOK, OPENED, RESERVED, SETTLED, SETTLED],
    "was never opened": [BOOK, RESERVED],
    "was closed before": [BOOK, OPENED, CLOSED, RESERVED],
    "was reserved before": [BOOK, OPENED, RESERVED, RESERVED],
    "opened by its first event": [OPENED],
    "and only by it": [BOOK, BOOK],
    "part 'north' was never declared": [BOOK, OPENED, (*RESERVED[:3], {**RESERVATION, "part": "north"})],
    "parts declared before": [BOOK, OPENED, CUT, CUT],
    "sizes of parts": [BOOK, OPENED, (*CUT[:3], {"partition": "region", "sizes": {"north": 0}})],
    "γ must be": [BOOK, OPENED, (*RESERVED[:3], {**RESERVATION, "gamma": 1.0})],
    r"γ must be a number in \[0": [BOOK, OPENED, (*RESERVED[:3], {**RESERVATION, "timing": "padded"})],
    "attempt at what was never reserved": [BOOK, OPENED, ATTEMPTED],
    "never reserved, or has left": [BOOK, OPENED, RESERVED, SETTLED, ATTEMPTED],
    "form of 'attempted'": [BOOK, OPENED, RESERVED, (*ATTEMPTED[:3], {"of": "e3"})],
    "γ must be a number": [BOOK, OPENED, RESERVED, (*ATTEMPTED[:3], {"of": "e3", "timing": 0})],
    "order of a budget": [BOOK, (*OPENED[:3], {**OPENING, "order": 1.0})],
    "a declared list must hold promises": [BOOK, OPENED, (*DECLARED[:3], {**DECLARATION, "items": []})],
    "δ of a declared list": [BOOK, OPENED, (*DECLARED[:3], {**DECLARATION, "delta": 1.0})],
    "cannot be read as 'reserved'": [
        BOOK,
        OPENED,
        (*RESERVED[:3], {**RESERVATION, "promise": {"kind": "X"}}),
    ],
    "cannot be read as 'top-up'": [BOOK, OPENED, (*TOPPED_UP[:3], {"budget": 3})],
    "does not have the form of 'closed'": [BOOK, OPENED, (*CLOSED[:3], {"reason": "none"})],
    "a text was expected": [BOOK, OPENED, RESERVED, (*SETTLED[:3], {"certificate": 7})],
    "the δ must be null": [BOOK, OPENED, (*RESERVED[:3], {**TODAYS, "delta": 1})],
    f"reads up to {FORMAT}": [(*BOOK[:3], {"format": FORMAT + 1})],
    "about the ledger but names a dataset": [BOOK, OPENED, (Kind.MARKED, "e9", "patients", {})],
}


@pytest.mark.parametrize("reason", IMPOSSIBLE)
def test_an_event_that_cannot_follow_is_refused(reason: str) -> None:
    events = chain(*IMPOSSIBLE[reason])
    with pytest.raises(LedgerError, match=reason) as caught:
        read(events)
    assert caught.value.fields["sequence"] == len(events)


def test_an_unknown_kind_is_refused() -> None:
    text = canonical({"library": "9.9"})
    opened = chain(BOOK)[0]
    digest = event_hash(2, "e", "refunded", "patients", text, opened.hash)
    with pytest.raises(LedgerError, match="kind 'refunded' is unknown"):
        read([opened, Event(2, "e", "refunded", "patients", text, opened.hash, digest)])


def test_a_payload_that_is_not_canonical_is_refused() -> None:
    opened = chain(BOOK)[0]
    text = json.dumps({"library": "0", "time": "t", **OPENING})
    digest = event_hash(2, "e", "dataset-opened", "patients", text, opened.hash)
    with pytest.raises(LedgerError, match="does not have the form"):
        read([opened, Event(2, "e", "dataset-opened", "patients", text, opened.hash, digest)])


def test_format_1_hashes_to_what_it_always_has() -> None:
    """Golden: ledgers written by any version must verify for ever, so this number never changes."""
    text = '{"format":1,"library":"0.1.0","time":"2026-01-01T00:00:00Z"}'
    assert event_hash(1, "e1", "book-opened", "", text, "0" * 64) == GOLDEN


GOLDEN = "f7c5908f5265d165303c6ea5a9f48f6db65b73cd99cfbd4e10cd94a5ce493b86"


def test_every_kind_has_its_fields_written_down() -> None:
    assert set(FIELDS) == set(Kind)


@given(
    st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
)
def test_canonical_json_reads_back_to_the_same_value(content: dict[str, Any]) -> None:
    text = canonical(content)
    assert json.loads(text) == content
    assert canonical(json.loads(text)) == text
    assert text.isascii()
