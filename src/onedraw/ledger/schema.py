"""The one table of a ledger, and the triggers that keep it append-only: no UPDATE, DELETE or TRUNCATE, and no INSERT that
does not follow the last event. Who removes the triggers first is caught by the hash chain instead."""

from __future__ import annotations

from .events import GENESIS

NAMES = ("sequence", "entry", "kind", "dataset", "payload", "previous", "hash")
_COLUMNS = ", ".join(NAMES)
SELECT = f"SELECT {_COLUMNS} FROM onedraw_events WHERE sequence >= :start ORDER BY sequence LIMIT :count"
INSERT = f"INSERT INTO onedraw_events ({_COLUMNS}) VALUES ({', '.join(f':{name}' for name in NAMES)})"
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
