"""Where the time of the tests goes: processor seconds by file and by test, commands that a test starts included.

    PYTHONPATH=tools .venv/bin/python -m pytest -n 2 -m "not slow and not spark" -p test_seconds [--write-quick]

Processor seconds are the same on a busy machine and on a quiet one, nearly; the wall clock is not. What a fixture costs is
counted with the first test that asks for it. With --write-quick the files that check most for their time are written to
tests/quick.txt, which `make quick` runs.
"""

from __future__ import annotations

import resource
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

QUICK = Path(__file__).resolve().parents[1] / "tests" / "quick.txt"
BUDGET = 80.0
"""Processor seconds of all that `make quick` runs: on two cores, beside collecting, mypy and ruff, well under 90 s."""
ALWAYS = "tests/test_layers.py"
"""Who may import whom is checked in every round, whatever it costs."""

seconds: dict[str, float] = defaultdict(float)


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--write-quick", action="store_true", help="choose the files that `make quick` runs anew")


def spent() -> float:
    """Processor seconds of this process, its threads and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: Any) -> Generator[None, Any, Any]:
    item.began = spent()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, Any, Any]:
    """Each report carries the seconds since the one before, from a worker to the process that prints."""
    report = yield
    now = spent()
    report.processor_seconds, item.began = now - item.began, now
    return report


def pytest_runtest_logreport(report: Any) -> None:
    seconds[report.nodeid] += getattr(report, "processor_seconds", 0.0)


def by_file() -> dict[str, tuple[float, int]]:
    """Seconds and number of tests of every file."""
    total: dict[str, float] = defaultdict(float)
    count = Counter(name.partition("::")[0] for name in seconds)
    for name, used in seconds.items():
        total[name.partition("::")[0]] += used
    return {file: (used, count[file]) for file, used in longest(total)}


def longest(used: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(used.items(), key=lambda one: -one[1])


def quick(files: dict[str, tuple[float, int]]) -> list[str]:
    """The files with the fewest seconds per test, as long as they stay within the budget together."""
    chosen, left = [], BUDGET
    for file in sorted(files, key=lambda file: files[file][0] / files[file][1]):
        left -= files[file][0]
        if left < 0.0:
            break
        chosen.append(file)
    return sorted({*chosen, ALWAYS})


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    write, files = terminalreporter.write_line, by_file()
    if not files:
        return
    terminalreporter.section("processor seconds")
    write(f"{sum(seconds.values()):9.1f}  in all, {len(seconds)} tests")
    for file, (used, count) in files.items():
        write(f"{used:9.1f}  {file}, {count} tests")
    terminalreporter.section("processor seconds, the 40 longest tests")
    for name, used in longest(seconds)[:40]:
        write(f"{used:9.1f}  {name}")
    if config.getoption("--write-quick"):
        QUICK.write_text("\n".join(quick(files)) + "\n", encoding="utf-8")
