"""Run one command in a fork of this process while a chosen system call of it fails (tools/faults.c)."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
SHIM = "ONEDRAW_FAULTS"
FAULTS = {"io-error": 2, "disk-gone": 3, "disk-full": 4, "kill": 5, "torn": 6}
"""The numbers of `enum mode` in faults.c."""
COUNT = 1
NO_ROOM, ROOM, BYTES = 0, 1, 2
"""The numbers of `enum need`: a call that takes no room on the disk, one that does, one that writes bytes."""
CHANGES = ("fsync", "fdatasync", "ftruncate", "unlink", "chmod", "flock")
"""Calls that take no room and do more than look."""
LONGEST_SECONDS = 60.0


def compile_shim(folder: Path) -> Path:
    """Compile faults.c into a library that can be preloaded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux") or compiler is None:
        raise SystemExit("Needs Linux and a C compiler: apt-get install gcc libc6-dev (tools/install_compiler.sh).")
    library = folder / "faults.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(TOOLS / "faults.c"), "-ldl"], check=True
    )
    return library


@dataclass(frozen=True)
class Call:
    """A system call as an undisturbed run makes it."""

    need: int
    name: str
    file: str

    def may(self, fault: str) -> bool:
        """Whether this fault differs here from the same fault at a later call: a killed read leaves what the next one does."""
        if fault in ("disk-full", "torn"):
            return self.need == BYTES or (fault == "disk-full" and self.need == ROOM)
        return fault == "io-error" or self.need != NO_ROOM or self.name in CHANGES


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code (negative: the signal that killed it), what it printed, which calls it made."""

    code: int
    out: str
    err: str
    fired: bool = False
    calls: tuple[Call, ...] = ()


class Shim:
    """The preloaded library, in this process and its forks."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ[SHIM])
        self._library.faults_record.restype = ctypes.c_char_p
        self._library.faults_arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long]

    def arm(self, folder: Path, mode: int, at: int) -> None:
        self._library.faults_arm(os.fsencode(folder), mode, at)

    def disarm(self) -> tuple[bool, list[str]]:
        return bool(self._library.faults_disarm()), self._library.faults_record().decode().splitlines()


def run(words: list[str], fault: Callable[[], None], shim: Shim) -> Ended:
    """Run `onedraw` in a fork, with a fault put in."""
    folder = Path(tempfile.mkdtemp(prefix="ended-", dir="."))
    child = os.fork()
    if not child:
        _in_child(words, fault, shim, folder)
    deadline = time.monotonic() + LONGEST_SECONDS
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGALRM)
        time.sleep(0.002)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    printed = {name: _text(folder / name) for name in ("out", "err", "calls")}
    shutil.rmtree(folder)
    state = json.loads(printed["calls"] or '{"fired": false, "record": []}')
    calls = tuple(Call(int(need), name, file) for need, name, file in (line.split(" ", 2) for line in state["record"]))
    return Ended(code, printed["out"], printed["err"], state["fired"] or code == -signal.SIGKILL, calls)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _in_child(words: list[str], fault: Callable[[], None], shim: Shim, folder: Path) -> None:
    from onedraw import cli

    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_CREAT | os.O_WRONLY), number)
    state = os.open(folder / "calls", os.O_CREAT | os.O_WRONLY)
    sys.argv = ["onedraw", *words]
    code = 70  # a fault that is not one of this library's errors
    try:
        fault()
        cli.main()
        code = 0
    except SystemExit as done:
        code = int(done.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        fired, record = shim.disarm()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(state, json.dumps({"fired": fired, "record": record}).encode())
        os._exit(code)
