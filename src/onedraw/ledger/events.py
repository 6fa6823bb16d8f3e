"""What happened, one event after another, in a form whose meaning never changes.

A ledger keeps what was promised, not totals (dp_accounting's ``dp_event.py`` keeps the same rule): an
accountant written later can read them again and arrive at a smaller total. Every event holds the hash of the
one before, so the last hash, the *head*, stands for the whole history: no byte of it can change and leave the
head as it was.

Stored per event: ``sequence`` (1, 2, 3, …), ``entry`` (a random id; a settlement has its reservation's),
``kind``, ``dataset``, ``payload`` (canonical JSON), ``previous`` (the hash before), ``hash`` (SHA-256 of the
canonical JSON list of the six others). Payloads, format 4:

| kind | payload, besides ``library`` (the version that wrote it) |
| --- | --- |
| book-opened | ``time``, ``format`` |
| marked | ``time``: from here on a mark is kept (mark.py); in SQLite ledgers that were begun before format 4 |
| restored | ``time``, ``mark`` (``sequence`` and ``head`` of the mark that was found, or null), ``heads`` (confirmed by hand) |
| dataset-opened | ``time``, ``budget`` (a promise), ``unit``, ``note``, ``order`` (of its Rényi filter) or null |
| top-up | ``time``, ``budget``, ``order``, ``by``, ``note``: replaces the budget, never by a stronger one |
| closed | ``time``: nothing may be reserved any more |
| parts-declared | ``time``, ``partition``, ``sizes`` (part → number of records) |
| declared | ``time``, ``items`` (each ``promise`` and ``gamma``), ``delta`` or null, ``part`` or null, ``label`` |
| reserved | ``time``, ``promise``, ``gamma``, ``timing`` or null, ``delta`` or null, ``part`` or null, ``seeded``, ``label``, ``fingerprint`` (of the question), ``request`` (a digest), ``by``, ``note``, ``purpose`` |
| attempted | ``time``, ``of`` (the entry of a padded reservation whose draw begins), ``timing`` (0 for its first draw, which it has paid) |
| settled | ``certificate`` (a digest) |

``timing`` is γ₂ of a draw whose work is padded (samplers/padding.md), 0 where work is constant, null where running time is not covered.
``delta`` is the δ a release is stated with, at which the sum of (ε, δ) reads it; null for a promise with an ε of its own.
``request``, ``by``, ``note`` and ``purpose`` are null where nothing was said. Format 1 had no ``order`` and no declarations, format 2
no ``timing`` and no attempts; until format 3 a reservation held the digest of its ``plan`` instead of a fingerprint, and its first
draw was not noted, no mark was kept and no ``delta`` of a reservation. What they wrote is read for ever.

A settlement has no time: what lies between reserving and settling is how long the sampler ran, and that
depends on the records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from onedraw import __version__
from onedraw.errors import LedgerError

FORMAT = 4
FORMAT_WITH_MARK = 4
"""A SQLite ledger that was begun in this format or a later one has a mark (mark.py)."""
GENESIS = "0" * 64

Row = tuple[Any, ...]


class Kind(StrEnum):
    """What a line of a ledger records."""

    BOOK_OPENED = "book-opened"
    MARKED = "marked"
    RESTORED = "restored"
    DATASET_OPENED = "dataset-opened"
    TOP_UP = "top-up"
    CLOSED = "closed"
    PARTS_DECLARED = "parts-declared"
    DECLARED = "declared"
    RESERVED = "reserved"
    ATTEMPTED = "attempted"
    SETTLED = "settled"


FIELDS: Mapping[str, frozenset[str]] = {
    Kind.BOOK_OPENED: frozenset({"library", "time", "format"}),
    Kind.MARKED: frozenset({"library", "time"}),
    Kind.RESTORED: frozenset({"library", "time", "mark", "heads"}),
    Kind.DATASET_OPENED: frozenset({"library", "time", "budget", "unit", "note", "order"}),
    Kind.TOP_UP: frozenset({"library", "time", "budget", "order", "by", "note"}),
    Kind.CLOSED: frozenset({"library", "time"}),
    Kind.PARTS_DECLARED: frozenset({"library", "time", "partition", "sizes"}),
    Kind.DECLARED: frozenset({"library", "time", "items", "delta", "part", "label"}),
    Kind.RESERVED: frozenset(
        {
            "library",
            "time",
            "promise",
            "gamma",
            "timing",
            "delta",
            "part",
            "seeded",
            "label",
            "fingerprint",
            "request",
            "by",
            "note",
            "purpose",
        }
    ),
    Kind.ATTEMPTED: frozenset({"library", "time", "of", "timing"}),
    Kind.SETTLED: frozenset({"library", "certificate"}),
}
_RESERVED = frozenset({"library", "time", "promise", "gamma", "timing", "part", "seeded", "label", "plan"})
EARLIER_FIELDS: Mapping[str, tuple[frozenset[str], ...]] = {
    Kind.DATASET_OPENED: (FIELDS[Kind.DATASET_OPENED] - {"order"},),
    Kind.TOP_UP: (FIELDS[Kind.TOP_UP] - {"by", "note"}, FIELDS[Kind.TOP_UP] - {"by", "note", "order"}),
    Kind.RESERVED: (_RESERVED, _RESERVED - {"timing"}),
}
"""Forms of a payload that earlier formats wrote."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a ledger, as stored. ``text`` is the canonical JSON, ``payload`` what it says."""

    sequence: int
    entry: str
    kind: str
    dataset: str
    text: str
    previous: str
    hash: str

    @property
    def payload(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.text)
        return content

    @property
    def is_about_ledger(self) -> bool:
        """Whether the event belongs to no dataset."""
        return self.kind in (Kind.BOOK_OPENED, Kind.MARKED, Kind.RESTORED)

    @property
    def begins_mark(self) -> bool:
        """Whether a mark is kept from this event on (in SQLite: mark.py)."""
        if self.kind == Kind.BOOK_OPENED:
            return bool(self.payload["format"] >= FORMAT_WITH_MARK)
        return self.kind in (Kind.MARKED, Kind.RESTORED)


@dataclass(frozen=True)
class Reservation:
    """A spend that stands in the ledger. ``head`` is the chain's hash with it, for the certificate."""

    entry: str
    dataset: str
    head: str
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """How far a reader has come: the last event's sequence number and its hash."""

    sequence: int
    hash: str


START = Position(0, GENESIS)


def canonical(content: Any) -> str:
    """The one way to write a value as JSON: sorted keys, no spaces, ASCII, no NaN, every digit of a float."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def event_hash(sequence: int, entry: str, kind: str, dataset: str, text: str, previous: str) -> str:
    # A JSON list, not a concatenation: no two different events have the same bytes.
    return hashlib.sha256(canonical([sequence, entry, kind, dataset, text, previous]).encode("ascii")).hexdigest()


def new_event(after: Position, kind: Kind, *, entry: str, dataset: str, content: Mapping[str, Any]) -> Event:
    """The event after position ``after``, stamped with the version and (but for a settlement) the time."""
    stamped: dict[str, Any] = {"library": __version__, **content}
    if kind is not Kind.SETTLED:
        stamped["time"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text, sequence = canonical(stamped), after.sequence + 1
    digest = event_hash(sequence, entry, kind.value, dataset, text, after.hash)
    return Event(sequence, entry, kind.value, dataset, text, after.hash, digest)


def read_chain(rows: Iterable[Row], after: Position = START) -> Iterator[Event]:
    """The events after ``after`` that these rows hold; `LedgerError` names the first that does not link."""
    for row in rows:
        expected = after.sequence + 1
        if len(row) != 7 or type(row[0]) is not int or any(type(value) is not str for value in row[1:]):
            raise broken(expected, "it does not have the columns and types of an event")
        event = Event(*row)
        if event.sequence != expected:
            raise broken(expected, f"number {event.sequence} stands in its place")
        if event.previous != after.hash:
            raise broken(expected, "it does not follow the event before it")
        if event.hash != event_hash(*row[:6]):
            raise broken(expected, "its content is not what its hash was made from")
        after = Position(event.sequence, event.hash)
        yield event


def check_format(found: Any) -> None:
    """Refuse a ledger that a newer version of the library has laid out."""
    if type(found) is not int or found < 1:
        raise LedgerError(f"the ledger states the format {found!r}, which no version has written")
    if found > FORMAT:
        raise LedgerError(
            f"The ledger has format {found}, this version of onedraw reads up to {FORMAT}. Reading it in "
            "part could overlook spends, so it is not opened. Upgrade onedraw."
        )


def broken(sequence: int, what: str) -> LedgerError:
    return LedgerError(
        f"The ledger's chain is broken at event {sequence}: {what}. Someone or something changed the ledger, "
        "so what was spent is no longer known. Release nothing more under this ledger. Restore it from a backup whose head is "
        "that of the latest certificate, and find out what happened.",
        sequence=sequence,
    )


# ── the one table of a ledger ──

NAMES = ("sequence", "entry", "kind", "dataset", "payload", "previous", "hash")
_COLUMNS = ", ".join(NAMES)
SELECT = f"SELECT {_COLUMNS} FROM onedraw_events WHERE sequence >= :start ORDER BY sequence LIMIT :count"
INSERT = f"INSERT INTO onedraw_events ({_COLUMNS}) VALUES ({', '.join(f':{name}' for name in NAMES)})"
LAST = "SELECT sequence, hash FROM onedraw_events ORDER BY sequence DESC LIMIT 1"
MARKED_EVENTS = f"SELECT count(*) FROM onedraw_events WHERE kind IN ('{Kind.MARKED}', '{Kind.RESTORED}')"
_TABLE = """
CREATE TABLE onedraw_events (
    sequence BIGINT PRIMARY KEY CHECK (sequence > 0),
    entry TEXT NOT NULL,
    kind TEXT NOT NULL,
    dataset TEXT NOT NULL,
    payload TEXT NOT NULL,
    previous TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL UNIQUE,
    UNIQUE (entry, kind)
)"""

# Triggers keep it append-only: no UPDATE, DELETE or TRUNCATE, and no INSERT that does not follow the last event.
# INSERT OR REPLACE deletes without firing a DELETE trigger; the trigger on INSERT stops it.
SQLITE = (
    _TABLE.replace("BIGINT", "INTEGER"),
    *(
        f"CREATE TRIGGER onedraw_events_no_{verb.lower()} BEFORE {verb} ON onedraw_events "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("UPDATE", "DELETE")
    ),
    f"""
    CREATE TRIGGER onedraw_events_follow BEFORE INSERT ON onedraw_events
    WHEN NEW.sequence IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM onedraw_events)
      OR NEW.previous IS NOT coalesce(
          (SELECT hash FROM onedraw_events ORDER BY sequence DESC LIMIT 1), '{GENESIS}')
    BEGIN SELECT RAISE(ABORT, 'an event must follow the last one'); END""",
)

POSTGRESQL = (
    _TABLE,
    f"""
    CREATE FUNCTION onedraw_events_guard() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        last_sequence bigint;
        last_hash text;
    BEGIN
        IF TG_OP <> 'INSERT' THEN
            RAISE EXCEPTION 'the ledger is append-only';
        END IF;
        EXECUTE 'SELECT sequence, hash FROM ' || TG_RELID::regclass || ' ORDER BY sequence DESC LIMIT 1'
            INTO last_sequence, last_hash;
        IF NEW.sequence <> coalesce(last_sequence, 0) + 1
           OR NEW.previous <> coalesce(last_hash, '{GENESIS}') THEN
            RAISE EXCEPTION 'an event must follow the last one';
        END IF;
        RETURN NEW;
    END $$""",
    "CREATE TRIGGER onedraw_events_append_only BEFORE INSERT OR UPDATE OR DELETE ON onedraw_events "
    "FOR EACH ROW EXECUTE FUNCTION onedraw_events_guard()",
    "CREATE TRIGGER onedraw_events_no_truncate BEFORE TRUNCATE ON onedraw_events "
    "FOR EACH STATEMENT EXECUTE FUNCTION onedraw_events_guard()",
)
