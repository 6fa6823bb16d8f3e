"""Replay: the same randomness on two neighbouring data sets; everything public must come out the same.

A density says what a draw gives away. A program gives away more: its plan, every word of the certificate, what it prints
and warns, the error it stops with and the exit code, how many events it writes into the ledger and what they say. None of
it is part of any theorem, so all of it has to be equal whatever the records are, for very few records and for records
that are NaN, infinite, enormous or no numbers at all. Only the draw may differ, and what names it (the certificate's digest
in the settlement); a clock and the random ids of the ledger are left out, since both are fixed before a record is read.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onedraw.ledger import Ledger
from onedraw.plans import Plan
from onedraw.privacy import ApproxDP
from onedraw.release import Certificate, Release, release

Program = Callable[[Any, Ledger], Any]
"""Runs once on a data set, charging this ledger; returns a `Release`, a `Certificate`, or anything JSON can hold."""

DATASET = "replayed"
SIZES = (1, 2, 3, 10)
SEED = 20176

AWKWARD: tuple[Any, ...] = (
    float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, -0.0, 10**400, -(10**400), None, "no number", b"", True, (), [1.0, 2.0, 3.0],
)  # fmt: skip
"""Records nobody expects: a program must treat each like any other."""


@dataclass(frozen=True)
class Public:
    """Everything the outside sees of one run, apart from the draw."""

    outcome: str
    certificate: Any
    events: tuple[Any, ...]
    printed: str
    warned: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("outcome", "certificate", "events", "printed", "warned")}


@dataclass(frozen=True)
class Difference:
    """A place where two neighbours look different from outside. It names the place, never a value."""

    where: str
    pair: str

    def __str__(self) -> str:
        return f"{self.where} depends on the records ({self.pair})"


def releasing(plan: Plan, *, seed: int = SEED) -> Program:
    """The library's own `release`, with fixed randomness."""
    return lambda data, ledger: release(plan, data, ledger=ledger, dataset=DATASET, random_state=seed)


def observe(program: Program, data: Any) -> Public:
    """Run once, with a fresh ledger, and write down all that can be seen from outside."""
    printed, outcome, result = io.StringIO(), "finished", None
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ledger = Ledger.open(Path(folder) / "ledger.db", create=True)
        ledger.init(DATASET, ApproxDP(1e6, 0.5))
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                result = program(data, ledger)
            except SystemExit as stop:
                outcome = f"exit code {stop.code}"
            except Exception as error:  # an error is a release too: its kind and its words are compared
                outcome = f"{type(error).__name__}: {error}"
        events = tuple(_event(event) for event in ledger.events())
    return Public(outcome, _without_draw(result), events, printed.getvalue(), tuple(str(one.message) for one in warned))


def replay(program: Program, pairs: Sequence[tuple[str, Any, Any]]) -> list[Difference]:
    """Where the public side of the runs on each pair (name, data set, neighbour) differs; empty if nowhere."""
    found: list[Difference] = []
    known: tuple[Any, dict[str, Any]] = (None, {})
    for name, first, second in pairs:
        if first is not known[0]:  # pairs that share their first data set share its run
            known = first, observe(program, first).document()
        found += [Difference(where, name) for where in differing(known[1], observe(program, second).document())]
    return found


def awkward_pairs(
    ordinary: Any, *, sizes: Sequence[int] = SIZES, awkward: Sequence[Any] = AWKWARD
) -> list[tuple[str, Any, Any]]:
    """Plain records against the same with the last one replaced by an awkward one, for each size."""
    found = []
    for n in sizes:
        plain = [ordinary] * n
        found += [
            (f"n = {n}, awkward record {index}", plain, [*plain[:-1], record]) for index, record in enumerate(awkward)
        ]
    return found


def awkward_rows(row: Sequence[float], response: Any, *, sizes: Sequence[int] = SIZES) -> list[tuple[str, Any, Any]]:
    """The same for data of rows and responses: each awkward value as a feature, as the whole row, and as a response."""
    found = []
    for n in sizes:
        rows, responses = [list(row)] * n, [response] * n
        plain = (rows, responses)
        for index, value in enumerate(AWKWARD):
            odd = [[*rows[:-1], [value] * len(row)], [*rows[:-1], value]]
            found += [(f"n = {n}, awkward row {index}", plain, (changed, responses)) for changed in odd]
            found.append((f"n = {n}, awkward response {index}", plain, (rows, [*responses[:-1], value])))
    return found


def audit_freshness(program: Program, data: Any, *, runs: int = 3) -> list[str]:
    """Run the program several times on one data set: equal draws show that a seed or a draw is used again."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.open(Path(folder) / "ledger.db", create=True)
        ledger.init(DATASET, ApproxDP(1e6, 0.5))
        draws = [np.array(_certificate(program(data, ledger)).draw.values).tobytes() for _ in range(runs)]
    if len(set(draws)) == runs:
        return []
    return [f"{runs} runs gave {len(set(draws))} different draw(s): the same randomness was used again"]


def differing(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """The paths at which two documents differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            path = f"{where}.{name}" if where else str(name)
            if name not in one or name not in other:
                yield path
            else:
                yield from differing(one[name], other[name], path)
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            yield f"{where} (how many)"
        for index, (left, right) in enumerate(zip(one, other, strict=False)):
            yield from differing(left, right, f"{where}.{index}")
    elif one != other or type(one) is not type(other):
        yield where


def _certificate(result: Any) -> Certificate:
    return result.certificate if isinstance(result, Release) else result


def _without_draw(result: Any) -> Any:
    """The certificate as a document, less the draw's values, the clock and the random ids of the ledger."""
    result = result.certificate if isinstance(result, Release) else result
    if not isinstance(result, Certificate):
        return json.loads(json.dumps(result, default=str))
    document = result.model_dump(mode="json")
    draw = document["draw"]
    draw["values"] = [len(row) for row in draw["values"]]
    if "stages" in draw:
        draw["stages"] = {name: len(values) for name, values in draw["stages"].items()}
    document.pop("prepared_at")
    if document["ledger"] is not None:
        document["ledger"] = {"dataset": document["ledger"]["dataset"]}
    return document


def _event(event: Any) -> dict[str, Any]:
    payload = event.payload
    payload.pop("time", None)
    if event.kind == "settled":
        payload.pop("certificate")  # the digest of the released document, which holds the draw
    return {"kind": event.kind, "dataset": event.dataset, "payload": payload}
