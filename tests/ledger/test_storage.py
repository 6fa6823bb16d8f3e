"""Places that are not ledgers, are not writable, or are busy: each with its own message, nothing changed."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from onedraw.errors import CannotWrite, LedgerError, MissingExtra
from onedraw.ledger import Ledger, Reservation
from onedraw.ledger.events import FORMAT, START, Kind, new_event
from onedraw.ledger.storage import SQLiteConnection, SQLiteStorage, storage_at
from onedraw.privacy import PureDP


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    """A small ledger on disk."""
    path = tmp_path / "ledger.db"
    Ledger.open(path, create=True).init("patients", PureDP(1.0))
    return path


# ── not a ledger ──


@pytest.mark.parametrize("create", [False, True])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, create: bool) -> None:
    path = tmp_path / "patients.csv"
    path.write_text("age,smoker\n" + "41,yes\n" * 200)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is not a onedraw ledger"):
        Ledger.open(path, create=create)
    assert path.read_bytes() == before


@pytest.mark.parametrize("create", [False, True])
def test_another_sqlite_database_is_refused_and_left_alone(tmp_path: Path, create: bool) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE visits (day TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="another SQLite database"):
        Ledger.open(path, create=create)
    assert path.read_bytes() == before


def test_a_table_of_the_same_name_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE onedraw_events (sequence INTEGER)")
    connection.close()
    with pytest.raises(LedgerError, match="no such column"):
        Ledger.open(path)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="not a regular file"):
        Ledger.open(tmp_path)


def test_an_empty_file_becomes_a_ledger_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch()
    with pytest.raises(LedgerError, match="the file is empty"):
        Ledger.open(path)
    assert path.read_bytes() == b""
    Ledger.open(path, create=True).init("patients", PureDP(1.0))
    assert Ledger.open(path).datasets() == ("patients",)


def test_a_ledger_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(path)
    place = storage_at(path)
    assert not place.check(create=True)
    place.create(new_event(START, Kind.BOOK_OPENED, entry="e", dataset="", content={"format": FORMAT + 1, "more": 1}))
    with pytest.raises(LedgerError, match=rf"format {FORMAT + 1}, this version .* up to {FORMAT}.*Upgrade"):
        Ledger.open(path)


def test_a_damaged_file_is_refused(ledger_file: Path) -> None:
    content = bytearray(ledger_file.read_bytes())
    content[4096:8192] = bytes(4096)
    ledger_file.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger.open(ledger_file).verify()


def test_a_ledger_that_disappears_is_not_made_anew(ledger_file: Path) -> None:
    ledger = Ledger.open(ledger_file)
    ledger_file.unlink()
    with pytest.raises(LedgerError, match="no ledger at"):
        ledger.reserve("patients", PureDP(0.5))
    assert not ledger_file.exists()


@pytest.mark.parametrize("place", [":memory:", "", "sqlite://", "sqlite:///:memory:"])
def test_a_ledger_in_memory_is_refused(place: str) -> None:
    with pytest.raises(LedgerError, match="in memory"):
        Ledger.open(place, create=True)


@pytest.mark.parametrize(("place", "reason"), [("mysql://host/ledger", "not in 'mysql'"), ("://", "cannot be read")])
def test_other_databases_are_refused(place: str, reason: str) -> None:
    with pytest.raises(LedgerError, match=reason):
        Ledger.open(place)


# ── not writable ──


def test_a_new_ledger_in_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    for path in (Path("/proc/ledger.db"), tmp_path / "no such folder" / "ledger.db"):
        with pytest.raises(CannotWrite, match="cannot be written"):
            Ledger.open(path, create=True)


def test_a_read_only_ledger_can_be_read_but_nothing_is_reserved(ledger_file: Path) -> None:
    """SQLite itself refuses the write, as on a read-only disk; file modes do not bind root."""
    ledger = Ledger.open(f"sqlite:///{ledger_file}?mode=ro")
    assert ledger.remaining("patients").epsilon == 1.0
    assert ledger.verify().ok
    with pytest.raises(CannotWrite, match=r"cannot be written \(attempt to write a readonly database\)"):
        ledger.reserve("patients", PureDP(0.5))


WITHOUT_RIGHTS = """
import os, sys
from onedraw.errors import CannotWrite
from onedraw.ledger import Ledger
from onedraw.privacy import PureDP

Ledger.open(sys.argv[1]).verify()  # everything is imported before the rights are given up
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
ledger = Ledger.open(sys.argv[1])
print(ledger.remaining("patients").epsilon)
try:
    ledger.reserve("patients", PureDP(0.5))
except CannotWrite:
    print("no-reservation")
try:
    Ledger.open(sys.argv[2], create=True)
except CannotWrite:
    print("no-new-ledger")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its rights")
def test_a_process_without_the_right_to_write_can_only_read() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        Ledger.open(path, create=True).init("patients", PureDP(1.0))
        path.chmod(0o444)
        Path(f"{path}.mark").chmod(0o444)
        Path(folder).chmod(0o755)
        completed = subprocess.run(
            [sys.executable, "-c", WITHOUT_RIGHTS, str(path), str(path.with_name("new.db"))],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert completed.stdout.split() == ["1.0", "no-reservation", "no-new-ledger"], completed.stderr
        assert Ledger.open(path).account("patients").reservations == 0
        assert sorted(found.name for found in Path(folder).iterdir()) == ["ledger.db", "ledger.db.mark"]


def test_a_full_disk_is_said_and_nothing_is_lost(ledger_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = SQLiteStorage.connect

    def on_a_full_disk(self: SQLiteStorage, mode: str = "rw") -> sqlite3.Connection:
        connection = connect(self, mode)
        connection.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size: not a page more
        return connection

    accepted: list[Reservation] = []

    def spend_until_it_fails(ledger: Ledger) -> None:
        while len(accepted) < 100:
            accepted.append(ledger.reserve("patients", PureDP(2.0**-12), label="x" * 400))

    with monkeypatch.context() as full:
        full.setattr(SQLiteStorage, "connect", on_a_full_disk)
        with pytest.raises(CannotWrite, match="full"):
            spend_until_it_fails(Ledger.open(ledger_file))
    ledger = Ledger.open(ledger_file)
    assert ledger.account("patients").reservations == len(accepted)
    assert ledger.verify().ok


@pytest.mark.postgresql
def test_a_read_only_postgresql_server_is_said(postgresql: Any) -> None:
    place = postgresql.new_place()
    Ledger.open(place, create=True).init("patients", PureDP(1.0))
    ledger = Ledger.open(f"{place}%20-cdefault_transaction_read_only%3Don")
    assert ledger.remaining("patients").epsilon == 1.0
    with pytest.raises(CannotWrite, match="read-only transaction"):
        ledger.reserve("patients", PureDP(0.5))


@pytest.mark.postgresql
def test_a_role_that_may_only_select_and_insert_is_enough(postgresql: Any) -> None:
    place = postgresql.new_place()
    schema = place.rpartition("%3D")[2]
    Ledger.open(place, create=True).init("patients", PureDP(1.0))
    postgresql.execute(f"CREATE ROLE clerk_{schema} LOGIN; GRANT USAGE ON SCHEMA {schema} TO clerk_{schema}")
    postgresql.execute(f"GRANT SELECT, INSERT ON {schema}.onedraw_events TO clerk_{schema}")
    clerk = Ledger.open(place.replace("postgres@", f"clerk_{schema}@"))
    clerk.settle(clerk.reserve("patients", PureDP(0.5)), "digest")
    postgresql.execute(f"REVOKE INSERT ON {schema}.onedraw_events FROM clerk_{schema}")
    with pytest.raises(CannotWrite, match="permission denied"):
        clerk.reserve("patients", PureDP(0.25))


@pytest.mark.postgresql
def test_a_server_that_does_not_answer_is_said_without_its_password(postgresql: Any) -> None:
    with pytest.raises(LedgerError, match="could not be used") as caught:
        Ledger.open("postgresql://user:secret@/ledger?host=/nowhere")
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(Ledger(storage_at("postgresql://user:secret@/ledger?host=/nowhere")))


def test_a_missing_driver_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"onedraw\[postgresql\]"):
        Ledger.open("postgresql://user@/ledger?host=/nowhere")


# ── busy, copied, crashed ──


def test_a_lock_that_is_never_given_back_is_said(ledger_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onedraw.ledger.database.WAIT_SECONDS", 0.2)
    ledger = Ledger.open(ledger_file)
    holder = sqlite3.connect(ledger_file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(LedgerError, match="locked by another process"):
            ledger.reserve("patients", PureDP(0.5))
        assert ledger.remaining("patients").epsilon == 1.0  # reading goes on
    finally:
        holder.close()
    ledger.reserve("patients", PureDP(0.5))


@pytest.mark.postgresql
def test_a_lock_in_postgresql_that_is_never_given_back_is_said(
    postgresql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setattr("onedraw.ledger.database.WAIT_SECONDS", 1)
    ledger = Ledger.open(postgresql.new_place(), create=True)
    with psycopg.connect(f"host={postgresql.home} user=postgres dbname=postgres") as holder:
        holder.execute(f"SELECT pg_advisory_xact_lock({int.from_bytes(b'onedraw')})")
        with pytest.raises(LedgerError, match="locked by another process"):
            ledger.init("patients", PureDP(1.0))
    ledger.init("patients", PureDP(1.0))


def test_a_plain_copy_of_the_file_is_the_whole_history(ledger_file: Path, tmp_path: Path) -> None:
    """The reason against WAL: no event lives in a second file once a call has returned."""
    ledger = Ledger.open(ledger_file)
    ledger.reserve("patients", PureDP(0.5))
    assert sorted(path.name for path in ledger_file.parent.iterdir()) == ["ledger.db", "ledger.db.mark"]
    copied = tmp_path / "copy.db"
    copied.write_bytes(ledger_file.read_bytes())
    assert Ledger.open(f"sqlite:///{copied}?mode=ro").events() == ledger.events()


def test_two_processes_that_begin_the_same_ledger_make_one(place: str) -> None:
    heads: list[str] = []
    gate = threading.Barrier(4)

    def begin() -> None:
        gate.wait()
        heads.append(Ledger.open(place, create=True).head())

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(heads) == 4
    assert len(set(heads)) == 1


def test_paths_with_odd_characters_name_one_file(tmp_path: Path) -> None:
    path = tmp_path / "bü %20?#&.db"
    Ledger.open(path, create=True)
    assert sorted(found.name for found in tmp_path.iterdir()) == [path.name, f"{path.name}.mark"]


def test_a_relative_path_stays_the_same_ledger_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.open("ledger.db", create=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.init("patients", PureDP(1.0))
    assert Ledger.open(tmp_path / "ledger.db").datasets() == ("patients",)


# ── durable ──


def test_sqlite_syncs_the_file_and_its_directory_before_a_reservation_counts(ledger_file: Path) -> None:
    connection = SQLiteStorage(str(ledger_file)).connect()
    settings = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")}
    connection.close()
    assert settings == {"synchronous": 3, "journal_mode": "delete"}  # 3 is EXTRA


@pytest.mark.postgresql
def test_postgresql_waits_for_the_disk_even_where_the_server_would_not(postgresql: Any) -> None:
    place = postgresql.new_place()
    Ledger.open(place, create=True)
    hasty = storage_at(f"{place}%20-csynchronous_commit%3Doff")
    with hasty.writing() as writer:
        assert writer.connection.execute("SHOW synchronous_commit") == [("on",)]


# ── what a visitor may have done to the file ──


def in_wal_mode(ledger_file: Path) -> sqlite3.Connection:
    """A visitor who switched the file to WAL, which stays in the file, and has it open."""
    visitor = sqlite3.connect(ledger_file, isolation_level=None)
    assert visitor.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    visitor.execute("SELECT count(*) FROM onedraw_events").fetchall()
    return visitor


@pytest.mark.finding("B6")
def test_a_ledger_switched_to_wal_and_held_open_takes_no_spend(ledger_file: Path, tmp_path: Path) -> None:
    visitor = in_wal_mode(ledger_file)
    try:
        with pytest.raises(LedgerError, match=r"WAL mode.*journal_mode = DELETE"):
            Ledger.open(ledger_file).reserve("patients", PureDP(0.5))
    finally:
        visitor.close()
    ledger = Ledger.open(ledger_file)
    ledger.reserve("patients", PureDP(0.5))
    (tmp_path / "copy.db").write_bytes(ledger_file.read_bytes())
    assert Ledger.open(f"sqlite:///{tmp_path}/copy.db?mode=ro").remaining("patients").epsilon == 0.5


@pytest.mark.finding("B6")
def test_a_ledger_left_in_wal_mode_is_switched_back(ledger_file: Path) -> None:
    in_wal_mode(ledger_file).close()
    Ledger.open(ledger_file)
    connection = sqlite3.connect(ledger_file)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


@pytest.mark.finding("B6")
def test_a_ledger_switched_to_wal_while_it_is_open_takes_no_spend(ledger_file: Path) -> None:
    ledger = Ledger.open(ledger_file)
    visitor = in_wal_mode(ledger_file)
    try:
        with pytest.raises(LedgerError, match="WAL mode"):
            ledger.reserve("patients", PureDP(0.5))
    finally:
        visitor.close()
    assert ledger.remaining("patients").epsilon == 1.0


@pytest.mark.finding("C9")
def test_a_new_ledger_has_the_mode_of_a_release(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger.open(path, create=True).init("patients", PureDP(1.0))
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)  # whoever shares the ledger says so
    Ledger.open(path, create=True).reserve("patients", PureDP(0.5))
    assert path.stat().st_mode & 0o777 == 0o640


# A disk that fails (tools/exhaustive_faults.py found these).


@pytest.mark.parametrize("stands", [True, False])
def test_failed_commit_says_whether_the_event_may_stand(
    ledger_file: Path, stands: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite can fail after the journal is gone, and then the event counts."""
    commit, ledger = SQLiteConnection.commit, Ledger.open(ledger_file)

    def fails(connection: SQLiteConnection) -> None:
        if stands:
            commit(connection)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteConnection, "commit", fails)
        with pytest.raises(CannotWrite) as failed:
            ledger.top_up("patients", PureDP(2.0))
    assert ("stands in the ledger" in str(failed.value)) == stands
    assert (Ledger.open(ledger_file).account("patients").budget == PureDP(2.0)) == stands


def test_ledger_with_unknown_state_is_an_error_of_the_ledger(
    ledger_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, stat = Ledger.open(ledger_file), os.stat

    def fails(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if os.fspath(path) == str(ledger_file):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return stat(path, *arguments, **options)

    monkeypatch.setattr(os.path, "exists", lambda path: True)
    monkeypatch.setattr(os, "stat", fails)
    with pytest.raises(LedgerError, match="Input/output error"):
        ledger.head()
