"""A PostgreSQL server that lives as long as the test session, for the ledger's contract and for tables of records.

The server is Debian's package, initialised in a short temporary directory, reached by a unix socket only,
without fsync; when the tests run as root it runs as the user ``postgres``.
"""

from __future__ import annotations

import getpass
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest


class PostgreSQLServer:
    """One server: start, stop, and a fresh place for a ledger on request."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.home = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(self.home, self.user, self.user)
        self._numbers = itertools.count(1)

    def start(self) -> None:
        options = ["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C"]
        self._run([self.programs / "initdb", "-D", self.home / "data", *options])
        settings = {"listen_addresses": "", "unix_socket_directories": str(self.home), "fsync": "off"}
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        self.process = subprocess.Popen(
            [self.programs / "postgres", "-D", self.home / "data", *arguments],
            user=self.user, cwd=self.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the PostgreSQL server did not come up")
            time.sleep(0.05)

    def _run(self, command: list[object]) -> None:
        completed = subprocess.run(
            list(map(str, command)),
            user=self.user,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )
        if completed.returncode:
            raise RuntimeError(completed.stderr)

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except Exception:
            return False
        return True

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(f"host={self.home} user=postgres dbname=postgres", autocommit=True) as connection:
            connection.execute(statement)

    def new_place(self) -> str:
        """The URL of an empty schema."""
        schema = f"ledger_{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {schema}")
        return self.url(f"-csearch_path={schema}")

    def url(self, options: str) -> str:
        return f"postgresql://postgres@/postgres?host={quote(str(self.home), safe='')}&options={quote(options)}"

    def stop(self) -> None:
        if hasattr(self, "process"):
            self.process.send_signal(signal.SIGINT)  # at once, whoever is connected
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def postgresql_programs() -> Path | None:
    """The newest installed server's programs; Debian keeps them out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    program = shutil.which("postgres")
    return Path(program).resolve().parent if program else None


def cannot_have_postgresql(why: str) -> None:
    message = f"no PostgreSQL server ({why}); `apt-get install postgresql` provides it"
    if os.environ.get("CI"):
        pytest.fail(f"{message}. On CI this suite must run.")
    pytest.skip(message)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQLServer]:
    programs = postgresql_programs()
    if programs is None:
        cannot_have_postgresql("none is installed")
    assert programs is not None
    server = None
    try:
        server = PostgreSQLServer(programs)
        server.start()
    except (RuntimeError, OSError, LookupError) as error:
        if server is not None:
            server.stop()
        cannot_have_postgresql(f"{getpass.getuser()} could not start it: {error}")
    assert server is not None
    yield server
    server.stop()
