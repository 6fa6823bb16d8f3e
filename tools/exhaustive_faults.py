"""Fail every system call of a release in turn, and check that nothing that was paid for is lost.

    python tools/exhaustive_faults.py                      # every call, every fault: about 25 processor minutes
    python tools/exhaustive_faults.py --every 9            # a sample
    python tools/exhaustive_faults.py --only top-up kill   # one command, one fault
    python tools/exhaustive_faults.py --only release disk-gone --at 273    # one run; prints all that it said

Commands: a release with a report, two ways to finish an interrupted release with --resume, and `ledger top-up`. Each runs
once to count its calls on the ledger's and the output's folders. Then it runs anew for each call and each fault. A clean
process checks the ledger and the files, and finishes the release as the program itself says.

| fault | what happens at the k-th call |
| --- | --- |
| io-error | it fails with EIO; all later calls work |
| disk-gone | it and all later calls fail with EIO |
| disk-full | it and all later calls that need room fail with ENOSPC |
| kill | the process is killed before it |
| torn | the process is killed when half of a write is done |

An I/O error hits every call. The other faults hit those that change or sync something: before a call that only looks
they leave the same as before the next one.

The calls fail in the C library (tools/faults.c, preloaded), so those of SQLite fail too. Imports and a warm-up come first:
one process imports everything, and each run is a fork of it. Needs Linux, glibc and a C compiler.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from failing_calls import COUNT, FAULTS, SHIM, Call, Ended, Shim, compile_shim, run
from release_place import DATASET, Place

SCHEMA = "dataset: patients\ncolumns:\n  age: {kind: number, lower: 0, upper: 100, missing: 50}\n"


# The commands, and what must hold after each.


@dataclass(frozen=True)
class Before:
    """What stood before the command: the entries that were charged, and the draw that was whole on disk."""

    entries: frozenset[str] = frozenset()
    paid: str | None = None


@dataclass
class Verdict:
    """What one run came to, and what was wrong."""

    outcome: str
    problems: list[str] = field(default_factory=list)

    def require(self, holds: object, otherwise: str) -> None:
        if not holds:
            self.problems.append(otherwise)


def check_release(place: Place, ended: Ended, before: Before, shim: Shim) -> Verdict:
    """One charge at most, no output without one, and whatever was paid for can be had without another charge."""
    verdict = Verdict("", place.ledger_faults())
    if verdict.problems:
        return verdict
    _check_exit(ended, verdict)
    charges = place.charges()
    verdict.require(len(charges) <= 1, f"charged {len(charges)} times")
    settled = next(iter(charges.values()), None)
    handed_over = _handed_over(place, ended)
    if place.out.exists():
        verdict.require(settled is not None, "the output stands before it was settled")
        verdict.require(place.digest_of(place.out) == settled, "the output is not the certificate of the ledger")
    verdict.require(handed_over is None or handed_over == settled, "what was printed is not what was settled")
    verdict.require(
        None in (before.paid, settled) or before.paid == settled,
        "another draw than the one that was paid for was settled",
    )
    verdict.outcome = _outcome(place, charges, handed_over)
    if ended.code == 0:
        verdict.require(verdict.outcome == "complete", f"exit code 0, but it is {verdict.outcome}")
    if ended.code == 5:
        verdict.require(charges, "exit code 5, but nothing was charged")
    if ended.code == 2 and settled is None and set(charges) - before.entries:
        verdict.require(next(iter(charges)) in ended.err, "exit code 2, charged, and the message does not say so")
    if handed_over is None:
        _finish(place, settled or before.paid or place.paid_draw(), shim, verdict)
    return verdict


def _outcome(place: Place, charges: dict[str, str | None], handed_over: str | None) -> str:
    if not charges:
        return "not charged"
    if place.out.exists():
        return "complete" if place.report.exists() else "complete but for the report"
    return "handed over" if handed_over is not None else "charged, unfinished"


def _handed_over(place: Place, ended: Ended) -> str | None:
    """The digest of a certificate that the command printed, or None."""
    caught = Path("caught.json")
    for text in (ended.out, ended.err):
        begin, end = text.find("{\n"), text.rfind("\n}\n")
        if begin >= 0 and end > begin:
            caught.write_text(text[begin : end + 3], encoding="utf-8")
            if (digest := place.digest_of(caught)) is not None:
                return digest
    return None


def _check_exit(ended: Ended, verdict: Verdict) -> None:
    verdict.require(ended.code in (0, 2, 5, -signal.SIGKILL), f"exit code {ended.code}")
    verdict.require("Traceback" not in ended.err, f"a traceback: {ended.err.strip().splitlines()[-1:]}")
    verdict.require(ended.code in (0, -signal.SIGKILL) or ended.err.strip(), "it failed and said nothing")


def _finish(place: Place, paid: str | None, shim: Shim, verdict: Verdict) -> None:
    """Give the command that the program names, on a disk that works; afterwards one charge has paid for one release."""
    if place.out.exists() and place.report.exists() and not _left(place):
        return
    words = place.way_out()
    if place.report.exists():  # it is not replaced: another name, as the message says
        words = [word.replace("report.html", "again.html") for word in words]
    if place.out.exists() and "--resume" not in words:  # the release is there; its report was not written
        place.report.unlink(missing_ok=True)
        return
    ended = run(words, lambda: None, shim)
    verdict.require(ended.code == 0, f"finishing it ended with exit code {ended.code}: {ended.err.strip()[:300]}")
    charges, digest = place.charges(), place.digest_of(place.out)
    verdict.require(len(charges) == 1, f"charged {len(charges)} times once it was finished")
    verdict.require(digest is not None and list(charges.values()) == [digest], "finished, but not authentic")
    verdict.require(paid in (None, digest), "another draw than the one that was paid for")
    verdict.require(not _left(place), f"finished, and {_left(place)} are left")


def _left(place: Place) -> list[str]:
    """What a release leaves beside its files while it is unfinished."""
    return sorted(path.name for path in place.out.parent.iterdir() if path.name.startswith((".", "release.json.")))


def check_top_up(place: Place, ended: Ended, before: Before, shim: Shim) -> Verdict:
    """The budget is the old one or the new one, and the command says which; given again it works."""
    verdict = Verdict("", place.ledger_faults())
    if verdict.problems:
        return verdict
    _check_exit(ended, verdict)
    raised = place.budget() == 3.0
    verdict.outcome = "raised" if raised else "not raised"
    verdict.require(ended.code != 0 or raised, "exit code 0, but the budget is the old one")
    if ended.code == 2 and raised:
        verdict.require(
            "stands in the ledger" in ended.err or "may stand" in ended.err, "raised, but the message says otherwise"
        )
    again = run(place.top_up_words(), lambda: None, shim)
    verdict.require(again.code == 0 and place.budget() == 3.0, f"given again it fails: {again.err.strip()[:300]}")
    return verdict


@dataclass(frozen=True)
class Command:
    """A command under test: how its folders are laid out, and what must hold after it."""

    name: str
    prepare: Callable[[Place, Shim], list[str]]
    check: Callable[[Place, Ended, Before, Shim], Verdict]


def _with_ledger(place: Place) -> None:
    from onedraw.ledger import Ledger
    from onedraw.privacy import PureDP

    for folder in (place.ledger.parent, place.out.parent):
        folder.mkdir(parents=True)
    Ledger.open(place.ledger, create=True).init(DATASET, PureDP(2.0))


def prepare_release(place: Place, shim: Shim) -> list[str]:
    _with_ledger(place)
    return place.release_words()


def prepare_top_up(place: Place, shim: Shim) -> list[str]:
    _with_ledger(place)
    return place.top_up_words()


def prepare_resume(owner: str, name: str) -> Callable[[Place, Shim], list[str]]:
    """Interrupt a release where it calls this method, and return the command that finishes it."""

    def prepare(place: Place, shim: Shim) -> list[str]:
        from onedraw.ledger import Ledger
        from onedraw.methods.added_noise.run import NoisySums

        def die(*_: Any, **__: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        _with_ledger(place)
        where = {"Ledger": Ledger, "NoisySums": NoisySums}[owner]
        run(place.release_words(), lambda: setattr(where, name, die), shim)
        return place.way_out()

    return prepare


COMMANDS = (
    Command("release", prepare_release, check_release),
    Command("resume-draw", prepare_resume("NoisySums", "run"), check_release),
    Command("resume-settle", prepare_resume("Ledger", "settle"), check_release),
    Command("top-up", prepare_top_up, check_top_up),
)


# All of it.


def places() -> Iterator[Place]:
    """Return folders that are used once each."""
    number = 0
    while True:
        number += 1
        yield Place(Path.cwd() / f"place-{number}")


def calls_of(command: Command, new: Iterator[Place], shim: Shim) -> tuple[Call, ...]:
    """Return the calls that the command makes where nothing fails."""
    place = next(new)
    words = command.prepare(place, shim)
    ended = run(words, lambda: shim.arm(place.root, COUNT, 0), shim)
    verdict = command.check(place, ended, Before(), shim)
    if ended.code != 0 or verdict.problems or not ended.calls:
        raise SystemExit(f"{command.name} fails without any fault: {ended.err}{verdict.problems}")
    shutil.rmtree(place.root)
    return ended.calls


def fail_each(
    command: Command, fault: str, selected: list[tuple[int, Call]], new: Iterator[Place], shim: Shim
) -> tuple[Counter[str], list[str]]:
    """Run the command once for each call that this fault can hit, and judge every run."""
    outcomes: Counter[str] = Counter()
    problems: list[str] = []
    for at, call in selected:
        place = next(new)
        words = command.prepare(place, shim)
        before = Before(frozenset(place.charges()), place.paid_draw())
        ended = run(words, lambda at=at, place=place: shim.arm(place.root, FAULTS[fault], at), shim)  # type: ignore[misc]
        verdict = command.check(place, ended, before, shim)
        verdict.require(ended.fired, "the fault did not happen: the run made other calls")
        outcomes[verdict.outcome] += 1
        said = ended.err if len(selected) == 1 else " ".join(ended.err.split())[-400:]
        where = f"{command.name}, {fault} at call {at} ({call.name} {call.file}), exit code {ended.code}"
        problems += [f"{where}: {problem}\n    it said: {said}" for problem in verdict.problems]
        shutil.rmtree(place.root)
    return outcomes, problems


def warm_up(new: Iterator[Place], shim: Shim) -> None:
    """Import everything that the commands need, so that no run imports while its calls are counted."""
    from onedraw import cli
    from onedraw.release import load, verify  # noqa: F401

    place = next(new)
    _with_ledger(place)
    for words in (place.release_words(), place.top_up_words()):
        sys.argv = ["onedraw", *words]
        with redirect_stdout(io.StringIO()):
            cli.application(words, standalone_mode=False)
    place.digest_of(place.out)
    shutil.rmtree(place.root)


def plant_second_draw() -> None:
    """Let finishing overlook the draw that was paid for, so that it draws again: the check must notice."""
    from onedraw.release import payment

    payment.written = lambda claim: (None, False)


def drive(every: int, only: list[str], at: int | None, plant: bool) -> int:
    """Test what was asked for, print a line for each command and fault, and return the number of problems."""
    shim, new = Shim(), places()
    Path("schema.yaml").write_text(SCHEMA, encoding="utf-8")
    Path("patients.csv").write_text(
        "age\n" + "".join(f"{20 + number % 60}\n" for number in range(50)), encoding="utf-8"
    )
    warm_up(new, shim)
    if plant:
        plant_second_draw()
    runs = 0
    problems: list[str] = []
    for command in (one for one in COMMANDS if one.name in only or not {each.name for each in COMMANDS} & set(only)):
        calls = calls_of(command, new, shim)
        names = Counter(call.name for call in calls)
        print(
            f"{command.name}: {len(calls)} calls ({', '.join(f'{count} {name}' for name, count in names.most_common())})"
        )
        for fault in (one for one in FAULTS if one in only or not set(FAULTS) & set(only)):
            hit = [(number, call) for number, call in enumerate(calls, start=1) if call.may(fault)]
            sample = hit[every // 2 :: every] or hit[len(hit) // 2 :][:1]
            selected = sample if at is None else [one for one in hit if one[0] == at]
            outcomes, found = fail_each(command, fault, selected, new, shim)
            runs += outcomes.total()
            problems += found
            shown = ", ".join(f"{count} {outcome or 'ledger refused'}" for outcome, count in outcomes.most_common())
            print(f"  {fault:<10} {outcomes.total():>4} runs: {shown}; {len(found)} problems", flush=True)
    for problem in problems:
        print(f"PROBLEM {problem}")
    print(f"{runs} runs, {len(problems)} problems")
    return len(problems)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="only every k-th of the calls (default: all)")
    parser.add_argument(
        "--only", nargs="+", default=[], help=f"of {', '.join([*(one.name for one in COMMANDS), *FAULTS])}"
    )
    parser.add_argument("--at", type=int, help="only the call of this number")
    parser.add_argument("--plant", action="store_true", help="finish by drawing again, which must be found")
    options = parser.parse_args()
    if SHIM in os.environ:
        return 1 if drive(options.every, options.only, options.at, options.plant) else 0
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="onedraw-faults-", dir=memory) as folder,
        tempfile.TemporaryDirectory() as own,
    ):
        library = compile_shim(Path(own))
        environment = {**os.environ, "LD_PRELOAD": str(library), SHIM: str(library)}
        command = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:]]
        return subprocess.run(command, cwd=folder, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
