"""Releases that are killed, run into a full disk, or meet at one --out. Run as a script by the tests, in a folder with a
schema, a file of records and a ledger.

Imports once and forks, so that `onedraw release` costs milliseconds; faults are put into the forked child alone.

    release_worker.py kill ROUNDS SEED     `onedraw release` killed at random moments, then finished as it says itself
    release_worker.py stages               the same, killed before and after every step that touches a disk
    release_worker.py stages_of_finishing  the finishing of an interrupted release, killed likewise
    release_worker.py race ROUNDS          two releases to one --out, at once
    release_worker.py questions            a median, an evaluation and a choice, killed between charge and draw, and between draw and settlement
    release_worker.py disk SMALL           a full disk at every stage; SMALL is a tiny file system, or "-" where none can be had
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from onedraw import cli
from onedraw.errors import OnedrawError
from onedraw.ledger import Ledger
from onedraw.methods.added_noise.run import NoisySums
from onedraw.methods.model_choice.run import LossSelection
from onedraw.methods.quantiles.run import RankSelection
from onedraw.planning import Asked
from onedraw.release import verify
from onedraw.release.certificate import read_certificate
from onedraw.samplers import Exact

LEDGER = "ledger.db"
DATASET = "patients-2026"
LONGEST = 60.0


def release_words(out: str, *, ledger: str = LEDGER) -> list[str]:
    return ["release", "patients.csv", "--schema", "schema.yaml", "--target", "outcome", "--model", "proportion",
            "--epsilon", "0.001", "--mechanism", "concentrated", "--ledger", ledger, "--out", out]  # fmt: skip


# ── one command in a process of its own ──


def start(words: list[str], fault: Callable[[], None] = lambda: None) -> tuple[int, Path]:
    """Fork `onedraw` with a fault put in; its output goes to files."""
    folder = Path(f"run-{time.monotonic_ns()}")
    folder.mkdir()
    for name in ("out", "err"):
        (folder / name).touch()  # it may be killed before it has said anything
    child = os.fork()
    if child:
        return child, folder
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_CREAT | os.O_WRONLY), number)
    sys.argv = ["onedraw", *words]
    code = 70
    try:
        fault()
        cli.main()
        code = 0
    except SystemExit as done:
        code = int(done.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


def end(started: tuple[int, Path]) -> dict[str, Any]:
    """Wait; exit code (negative: the signal that killed it) and what it printed."""
    child, folder = started
    deadline = time.monotonic() + LONGEST
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = {"code": code, "out": (folder / "out").read_text(), "err": (folder / "err").read_text()}
    shutil.rmtree(folder)
    return said


def onedraw(words: list[str], fault: Callable[[], None] = lambda: None) -> dict[str, Any]:
    return end(start(words, fault))


# ── what stands afterwards ──


def charges(ledger: str = LEDGER) -> dict[str, str | None]:
    """The ledger: for each entry that was reserved the digest it was settled with, in its order."""
    found: dict[str, str | None] = {}
    for event in Ledger.open(ledger).events(DATASET):
        if event.kind in ("reserved", "settled"):
            found[event.entry] = event.payload.get("certificate")
    return found


def authentic(out: Path, ledger: str = LEDGER) -> bool:
    try:
        return verify(out, ledger=Ledger.open(ledger)).answer == "authentic"
    except Exception:
        return False


def leftovers(out: Path) -> list[str]:
    return sorted(path.name for path in out.parent.iterdir() if out.name in path.name and path != out)


def claim_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.unfinished")


def way_out(words: list[str], out: Path) -> list[str]:
    """The command somebody would give now: the one beside the unfinished release, else the first one again."""
    try:
        return shlex.split(json.loads(claim_of(out).read_text())["finish"])[1:]
    except (OSError, ValueError):
        return words


def certified(out: Path) -> bool:
    """Whether the file is the certificate that the ledger was settled with: quicker than `authentic`."""
    try:
        certificate = read_certificate(out)
    except OnedrawError:
        return False
    return certificate.ledger is not None and charges().get(certificate.ledger.entry) == certificate.digest


def finished(words: list[str], out: Path, before: int) -> dict[str, Any]:
    """After an interruption: what was there, then what is there once the printed way was gone."""
    under_way = dict(list(charges().items())[before:])
    steps = ["charged"] * len(under_way) + ["settled"] * sum(map(bool, under_way.values())) + ["named"] * out.exists()
    seen = " ".join(steps) or ("claimed" if leftovers(out) else "nothing")
    again = {"code": 0} if out.exists() and not leftovers(out) else onedraw(way_out(words, out))
    found = charges()
    return {"seen": seen, "again": again, "charges": len(found) - before, "certified": certified(out),
            "left": leftovers(out), "all_settled": all(found.values())}  # fmt: skip


# ── killed at random moments ──


def kill(rounds: str, seed: str) -> list[dict[str, Any]]:
    moments = random.Random(int(seed))
    scales = typical_seconds()
    return [killed(Path(f"release-{number}.json"), number, moments, scales) for number in range(2, int(rounds) + 2)]


def typical_seconds() -> tuple[float, float, float]:
    """Of one release, from its beginning, from the claim and from the charge on: moments are drawn on these scales."""
    out, begun, before = Path("typical.json"), time.monotonic(), len(charges())
    started = start(release_words(str(out)))
    until(started[0], lambda: claim_of(out).exists())
    claimed = time.monotonic()
    until(started[0], lambda: len(charges()) > before)
    charged = time.monotonic()
    assert end(started)["code"] == 0
    done = time.monotonic()
    return done - begun, done - claimed, done - charged


def until(child: int, reached: Callable[[], bool]) -> None:
    while not reached() and os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        time.sleep(0.001)


def killed(out: Path, before: int, moments: random.Random, scales: tuple[float, float, float]) -> dict[str, Any]:
    """Early on, after the claim, or after the charge, which is a small part of the time and what it is about."""
    words = release_words(str(out))
    child, folder = start(words)
    since = moments.choice((0, 1, 2, 2))
    if since == 1:
        until(child, lambda: claim_of(out).exists())
    elif since == 2:
        until(child, lambda: len(charges()) > before)
    time.sleep(moments.uniform(0.0, (1.1, 1.1, 0.5)[since] * scales[since]))  # what follows a charge is soon done
    os.kill(child, signal.SIGKILL)
    code = end((child, folder))["code"]
    return {"code": code, **finished(words, out, before)}


# ── killed at every step ──

STEPS = ("fsync", "posix_fallocate", "pwrite", "ftruncate", "link", "unlink")


def stages() -> list[dict[str, Any]]:
    """Kill before and after each call that changes a disk, in turn, until a release runs through."""
    found: list[dict[str, Any]] = []
    for number in range(1000):
        out = Path(f"stage-{number}.json")
        words = release_words(str(out))
        said = onedraw(words, lambda number=number: stop_at(number))
        if said["code"] != -signal.SIGKILL:
            return found
        found.append({"step": number, **finished(words, out, number + 1)})
    raise AssertionError("a release has fewer steps")


def stages_of_finishing() -> list[dict[str, Any]]:
    """A release killed before it drew, and one before it was settled; then its finishing killed at every step."""
    found: list[dict[str, Any]] = []
    for owner, name in ((Exact, "run"), (Ledger, "settle")):
        for number in range(1000):
            out, before = Path(f"{name}-{number}.json"), len(charges())
            words = release_words(str(out))
            onedraw(words, lambda owner=owner, name=name: setattr(owner, name, die))
            said = onedraw(way_out(words, out), lambda number=number: stop_at(number))
            if said["code"] != -signal.SIGKILL:
                break
            found.append({"step": number, **finished(words, out, before)})
    return found


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop_at(number: int) -> None:
    """Let this process die at its ``number``-th step."""
    passed = iter(range(10**9))

    def step() -> None:
        if next(passed) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(owner: Any, name: str) -> None:
        inner = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            step()
            result = inner(*arguments, **options)
            step()
            return result

        setattr(owner, name, call)

    for name in STEPS:
        around(os, name)
    for owner, name in ((Ledger, "reserve"), (Ledger, "settle"), (Exact, "run")):
        around(owner, name)


# ── other questions ──


def questions() -> dict[str, list[dict[str, Any]]]:
    """Killed after the charge and before the draw, and after the draw and before the ledger knows."""
    from onedraw.estimators import choose, evaluate  # noqa: F401  # loaded once, not in every child

    paid = ["--epsilon", "0.5", "--ledger", LEDGER]
    asked = {
        "median": (RankSelection, lambda out: ["release", "patients.csv", "--schema", "schema.yaml", "--target", "age", "--model", "median", *paid, "--out", out]),
        "evaluation": (NoisySums, lambda out: ["evaluate", "model.json", "patients.csv", *paid, "--out", out]),
        "choice": (LossSelection, lambda out: ["choose", "model.json", "other.json", "patients.csv", *paid, "--out", out]),
    }  # fmt: skip
    return {name: [killed_in(owner, step, name, words) for owner, step in ((sampler, "run"), (Ledger, "settle"))]
            for name, (sampler, words) in asked.items()}  # fmt: skip


def killed_in(owner: Any, step: str, name: str, words: Callable[[str], list[str]]) -> dict[str, Any]:
    out, before = Path(f"{name}-{step}.json"), len(charges())
    code = onedraw(words(str(out)), lambda: setattr(owner, step, die))["code"]
    return {"code": code, **finished(words(str(out)), out, before)}


# ── two at once ──


def race(rounds: str) -> list[dict[str, Any]]:
    return [raced(Path(f"race-{number}.json")) for number in range(int(rounds))]


def raced(out: Path) -> dict[str, Any]:
    """Both draw for a while, so that the second always comes while the first is under way."""
    before = len(charges())
    both = [start(release_words(str(out)), slow_draw) for _ in range(2)]
    said = [end(started) for started in both]
    return {"codes": sorted(one["code"] for one in said), "err": [one["err"] for one in said],
            "charges": len(charges()) - before, "authentic": authentic(out), "left": leftovers(out)}  # fmt: skip


def slow_draw() -> None:
    during_the_draw(lambda: time.sleep(0.1))


def during_the_draw(what: Callable[[], None]) -> None:
    inner = Exact.run

    def run(*arguments: Any, **options: Any) -> Any:
        what()
        return inner(*arguments, **options)

    Exact.run = run  # type: ignore[method-assign]


# ── a full disk ──


def disk(small: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "limit while writing": limited_while_writing(),
        "limit at the claim": limited_at_the_claim(),
    }
    if small != "-":
        place = Path(small)
        for stage in (full_at_the_claim, full_in_the_draw, full_ledger_at_the_charge, full_ledger_at_settling):
            found[stage.__name__.replace("_", " ")] = stage(place)
            for path in place.iterdir():
                path.unlink()
    return found


def shown(said: dict[str, Any], out: Path, before: int, ledger: str = LEDGER) -> dict[str, Any]:
    return said | {
        "charges": len(charges(ledger)) - before,
        "authentic": authentic(out, ledger),
        "left": leftovers(out),
    }


def fill(place: Path) -> None:
    """Not a byte more fits onto this file system."""
    with open(place / "filler", "ab", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue


def limited_at_the_claim() -> dict[str, Any]:
    """No file may grow beyond a kilobyte, as under a quota. The ledger is not written to: it comes later."""
    before, out = len(charges()), Path("limited.json")
    said = onedraw(release_words(str(out)), lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
    return shown(said, out, before)


def limited_while_writing() -> dict[str, Any]:
    """The room is there and cannot be used all the same: the system refuses the certificate's bytes themselves."""
    before, out = len(charges()), Path("unwritable.json")

    def limit() -> None:
        inner = os.pwrite

        def pwrite(handle: int, data: bytes, place: int) -> int:
            if b"onedraw certificate" not in data:
                return inner(handle, data, place)
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
            try:
                return inner(handle, data[1024:], 1024)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

        os.pwrite = pwrite

    said = onedraw(release_words(str(out)), limit)
    caught = Path("caught.json")
    caught.write_text(said["out"])
    return shown(said, out, before) | {"printed_is_authentic": authentic(caught)}


def full_at_the_claim(place: Path) -> dict[str, Any]:
    before, out = len(charges()), place / "out.json"
    fill(place)
    return shown(onedraw(release_words(str(out))), out, before)


def full_in_the_draw(place: Path) -> dict[str, Any]:
    before, out = len(charges()), place / "out.json"
    return shown(onedraw(release_words(str(out)), lambda: during_the_draw(lambda: fill(place))), out, before)


def full_ledger_at_the_charge(place: Path) -> dict[str, Any]:
    ledger, out = small_ledger(place), Path("uncharged.json")
    fill(place)
    return shown(onedraw(release_words(str(out), ledger=ledger)), out, 0, ledger)


def full_ledger_at_settling(place: Path) -> dict[str, Any]:
    ledger, out = small_ledger(place), Path("unsettled.json")
    words = release_words(str(out), ledger=ledger)
    said = onedraw(words, lambda: during_the_draw(lambda: fill(place)))
    (place / "filler").unlink()
    printed = [line.partition("with: ")[2] for line in said["err"].splitlines() if "with: onedraw" in line]
    again = onedraw(shlex.split(printed[-1])[1:]) if printed else {"code": None}
    return shown(said, out, 0, ledger) | {"again": again}


def small_ledger(place: Path) -> str:
    shutil.copy("fresh.db", place / "small.db")
    Ledger.restore(place / "small.db", accept_lost_spends=True)
    return str(place / "small.db")


def warm_up() -> None:
    """Load and plan in this process what every child would otherwise load and plan for itself."""
    Asked.planned = cached_method(Asked.planned)  # type: ignore[method-assign]
    sys.argv = ["onedraw", *release_words("warm.json")]
    with redirect_stdout(StringIO()):
        cli.application(standalone_mode=False)


def cached_method(plan: Any) -> Any:
    """The plan of each question: it follows from public numbers and is always the same.

    By its words alone: a question also holds functions, whose addresses differ from one command to the next.
    """
    known: dict[str, Any] = {}

    def planned(asked: Asked, *arguments: Any, **options: Any) -> Any:
        question = repr((asked.schema, asked.target, asked.model, asked.by, asked.where, arguments, options))
        if question not in known:
            known[question] = plan(asked, *arguments, **options)
        return known[question]

    return planned


if __name__ == "__main__":
    experiment, *settings = sys.argv[1:]
    warm_up()
    gc.freeze()  # forked children then share more of this process's memory
    print(json.dumps(globals()[experiment](*settings)))
