"""The house in figures: how far one release walks through it, and how its files and functions are cut.

    python tools/house.py            # both tables
    python tools/house.py counts     # the files alone, in a second
    python tools/house.py models     # what a release enters in one room, function by function
    python tools/house.py report --report   # ... and with its report
    PYTHONPATH=/older/src python tools/house.py   # of another tree, by the same measure

One `onedraw release` of a logistic fit is run under a profiler, and once more with its report, which is an option of the command;
each in a process of its own, so that neither finds what the other has computed. *Entered* is a file or function of the package of which
a call was seen. What happens while a module is imported is no call (class bodies, registrations), and a lambda or a comprehension
belongs to the function that holds it, as it does for Python from 3.12 on. A *crossing* is a pair of functions, one calling the other,
in different rooms; *upward* those into a room that lies above by the layers of pyproject.toml, which an import could not do. Of those, a
method *answers for a base below* where a class of the caller's room or lower declares it: that is how a model, a statistic or a stored
value answers for itself. Any other function was handed down. The same inside `release()` alone. A review counted 126 files and 1,243
functions, with the report, at commit da2a7c6, imports and comprehensions included.
"""

from __future__ import annotations

import ast
import os
import statistics
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from wheel_test import RECORDS, SCHEMA

import onedraw

PACKAGE = Path(onedraw.__file__).resolve().parent
LONG_FILE, LONG_FUNCTION = 400, 40

INIT = "ledger init ledger.db --dataset clinic-2026 --epsilon 9 --delta 1e-5"
RELEASE = "release patients.csv --schema schema.yaml --target stroke --model logistic --epsilon 1 --ledger ledger.db --out release.json"
REPORTED = f"{RELEASE} --report report.html"


# ── one release, walked ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Walk:
    """What was entered, and by whom."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    edges: Counter[tuple[tuple[str, str], tuple[str, str]]] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    """Pairs of rooms, upward, each with its pairs of functions: answers for a base below."""
    handed: Counter[str] = field(default_factory=Counter)
    """The other pairs of functions upward, by their names."""

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.calls}

    @property
    def crossings(self) -> list[tuple[str, str, int]]:
        """(from room, to room, calls) of every pair of functions in different rooms."""
        rooms = [(room(caller[0]), room(callee[0]), count) for (caller, callee), count in self.edges.items()]
        return [one for one in rooms if one[0] != one[1]]


def room(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


def layers() -> dict[str, int]:
    """The height of each room by the contract of import-linter; `__init__` is above all."""
    text = (PACKAGE.parents[1] / "pyproject.toml").read_text()
    lines = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]["layers"]
    return {name.strip(): -place for place, line in enumerate(lines) for name in line.split("|")} | {"__init__": 99}


def owner(code: CodeType, known: dict[CodeType, tuple[str, str] | None]) -> tuple[str, str] | None:
    """(file, function) of the package that a code object belongs to, or None; a module's body is the function "<module>"."""
    if code not in known:
        path, name = code.co_filename, code.co_qualname
        while name.endswith(">") and name != "<module>":  # a lambda or comprehension: whoever holds it
            name = name.rpartition(".")[0].removesuffix(".<locals>") or "<module>"
        inside = path.startswith(f"{PACKAGE}{os.sep}") and path.endswith(".py")
        known[code] = (path.removeprefix(f"{PACKAGE}{os.sep}"), name) if inside else None
    return known[code]


def importing(frame: FrameType | None, known: dict[CodeType, tuple[str, str] | None]) -> bool:
    """Whether a module of the package is being imported: what runs for that is no step of a release."""
    while frame is not None:
        # a lambda of a module's table belongs to the module, and is called long after the import
        if frame.f_code.co_name == "<module>" and owner(frame.f_code, known) is not None:
            return True
        frame = frame.f_back
    return False


def walked(command: str) -> tuple[Walk, Walk]:
    """(all, inside `release()` alone) of one command."""
    from onedraw.cli import application

    whole, inner, depth = Walk(), Walk(), Counter[str]()
    known: dict[CodeType, tuple[str, str] | None] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        here = owner(frame.f_code, known)
        if here is None or here[1] == "<module>" or importing(frame, known):
            return
        if frame.f_code.co_qualname == "release" and here[0].startswith("release"):
            depth["inside"] += 1 if event == "call" else -1
        if event == "return":
            return
        above = frame.f_back
        while above is not None and (owner(above.f_code, known) or ("", "<module>"))[1] == "<module>":
            above = above.f_back
        caller = None if above is None else owner(above.f_code, known)
        for walk in (whole, inner) if depth["inside"] else (whole,):
            walk.calls[here] += 1
            if caller is not None and caller != here:
                walk.edges[caller, here] += 1

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("schema.yaml").write_text(SCHEMA)
        exec(RECORDS, {})
        with redirect_stdout(StringIO()):
            application(INIT.split(), standalone_mode=False)
        sys.argv = ["onedraw", *command.split()]
        threading.setprofile(watch)
        sys.setprofile(watch)
        try:
            with redirect_stdout(StringIO()):
                application(command.split(), standalone_mode=False)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            os.chdir(PACKAGE)
    for walk in (whole, inner):
        tell_upward(walk, layers())
    return whole, inner


def answers_below(caller: str, callee: tuple[str, str], heights: dict[str, int]) -> bool:
    """Whether the method called is declared by a base class that lies no higher than its caller."""
    file, function = callee
    owner_name, _, method = function.rpartition(".")
    module = sys.modules.get("onedraw." + file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
    kind = getattr(module, owner_name, None)
    made = method in ("__init__", "__post_init__")  # whoever knows a base may make one of its kind
    bases = [
        base
        for base in getattr(kind, "__mro__", ())
        if base.__module__.startswith("onedraw.")
        and (made or method in vars(base) or method in vars(base).get("__annotations__", ()))
    ]
    return any(heights.get(base.__module__.split(".")[1], 99) <= heights[caller] for base in bases)


def tell_upward(walk: Walk, heights: dict[str, int]) -> None:
    for caller, callee in walk.edges:
        low, high = room(caller[0]), room(callee[0])
        if heights[high] > heights[low]:
            if answers_below(low, callee, heights):
                walk.answers[f"{low} → {high}"] += 1
            else:
                walk.handed[f"{low}:{caller[1]} → {high}:{callee[1]}"] += 1


def show_walk() -> None:
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:
        (plain, inside), (reported, _) = fresh.map(walked, (RELEASE, REPORTED))
    walks = (plain, reported, inside)
    print(
        "\n| `onedraw release` of a logistic fit, n = 2,000 | the command | with `--report` | inside `release()` |"
        "\n| --- | ---: | ---: | ---: |"
    )

    def row(what: str, *values: int) -> None:
        print(f"| {what} | {' | '.join(f'{value:,}' for value in values)} |")

    row("files entered", *(len(walk.files) for walk in walks))
    row("functions entered", *(len(walk.calls) for walk in walks))
    row("calls in the package", *(walk.calls.total() for walk in walks))
    row("crossings: pairs of functions in different rooms", *(len(walk.crossings) for walk in walks))
    row("… of which upward: a method that a base below declares", *(walk.answers.total() for walk in walks))
    row("… of which upward otherwise", *(walk.handed.total() for walk in walks))
    row("pairs of rooms", *(len({one[:2] for one in walk.crossings}) for walk in walks))
    row("changes of room: calls from one into another", *(sum(one[2] for one in walk.crossings) for walk in walks))
    for name in ("rebuild_plan", "plan_from_dict"):
        row(
            f"`{name}`: plans made from JSON again",
            *(sum(n for (_, one), n in walk.calls.items() if one == name) for walk in walks),
        )
    print("\nWith the report:")
    for words, found in (("Upward by a base below", reported.answers), ("Upward otherwise", reported.handed)):
        print(f"{words}: " + (", ".join(f"{pair} {count}" for pair, count in found.most_common()) or "none"))
    entered = Counter(room(file) for file in reported.files)
    print("Files by room: " + ", ".join(f"{name} {count}" for name, count in entered.most_common()))
    entered = Counter(room(file) for file, _ in reported.calls)
    print("Functions by room: " + ", ".join(f"{name} {count}" for name, count in entered.most_common()))


def show_room(name: str, command: str) -> None:
    """What a release enters in one room: functions by file, with how often each was called."""
    entered = {key: count for key, count in walked(command)[0].calls.items() if room(key[0]) == name}
    for file in sorted({file for file, _ in entered}):
        functions = sorted((function, count) for (own, function), count in entered.items() if own == file)
        print(f"{file}: " + ", ".join(f"{function} {count}" for function, count in functions))
    print(f"{len({file for file, _ in entered})} files, {len(entered)} functions of {name}")


# ── files and functions, counted ─────────────────────────────────────────────────────────────────────────────────


def last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body, without its signature and its docstring."""
    first = function.body[0]
    told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    rest = function.body[1:] if told else function.body
    return last_line(function) - rest[0].lineno + 1 if rest else 0


def show_counts() -> None:
    lines: dict[str, int] = {}
    functions: dict[str, tuple[int, int]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name, text = str(path.relative_to(PACKAGE)), path.read_text()
        lines[name] = len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions[f"{name}:{node.lineno} {node.name}"] = (last_line(node) - node.lineno + 1, body(node))
    long_files = {name: count for name, count in lines.items() if count > LONG_FILE}
    long_functions = {name: sizes for name, sizes in functions.items() if sizes[1] > LONG_FUNCTION}
    others = sum(
        len(path.read_text().splitlines())
        for path in PACKAGE.rglob("*")
        if path.suffix in (".md", ".html", ".css", ".json")
    )
    bodies = [size for _, size in functions.values() if size]
    print("\n| src/onedraw | |\n| --- | ---: |")
    for what, value in (
        ("Python files", len(lines)),
        ("lines of Python", sum(lines.values())),
        ("lines beside it (proofs, pages, style, schema)", others),
        (f"files above {LONG_FILE} lines", len(long_files)),
        ("functions and methods", len(functions)),
        (f"… with a body above {LONG_FUNCTION} lines", len(long_functions)),
        ("median body, lines", statistics.median(bodies)),
        ("bodies of 6 to 15 lines, %", round(100 * sum(6 <= size <= 15 for size in bodies) / len(bodies))),
        ("bodies below 6 lines, %", round(100 * sum(size < 6 for size in bodies) / len(bodies))),
    ):
        print(f"| {what} | {value:,} |")
    by_room = Counter[str]()
    for name, count in lines.items():
        by_room[room(name)] += count
    print("\nLines by room: " + ", ".join(f"{name} {count:,}" for name, count in by_room.most_common()))
    print(
        f"\nFiles above {LONG_FILE} lines: "
        + ", ".join(f"{name} {count}" for name, count in sorted(long_files.items(), key=lambda one: -one[1]))
    )
    print(
        f"\nBodies above {LONG_FUNCTION} lines: "
        + ", ".join(
            f"{name.replace(' ', ' `')}` {size}"
            for name, (_, size) in sorted(long_functions.items(), key=lambda one: -one[1][1])
        )
    )


if __name__ == "__main__":
    wanted = sys.argv[1] if sys.argv[1:] else ""
    if wanted and wanted != "counts":
        show_room(wanted, REPORTED if "--report" in sys.argv[2:] else RELEASE)
    else:
        show_counts()
        if not wanted:
            show_walk()
