"""What a rerun of the benchmarks changed: every number of benchmarks/results beside what stood there at another commit.

    python tools/results_changed.py REVISION [file …]     # e.g. before and after a rearrangement

Rows keep their order, or where some came or went are found again by their first cells. For each file: how many numbers stand in rows
that both have, how many of them are printed alike, of the others the median and the largest
relative change; and where a number carries its standard error (0.93 ± 0.01), how many of them moved by more than two and three
standard errors of the difference: of numbers that are equal but for noise 5 % and 0.3 % do. Numbers under a heading that says seconds, ms or µs are
timings of one machine and are left out.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

RESULTS = Path("benchmarks/results")
NUMBER = re.compile(r"[-+−]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
WITH_ERROR = re.compile(rf"({NUMBER.pattern}) ± ({NUMBER.pattern})")
TIMES = re.compile(r"seconds|\bs\b|\bms\b|µs|time", re.IGNORECASE)


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def tables(text: str) -> list[list[str]]:
    """The rows of a page's tables, timings blotted out; of kept JSON a row for every number, named by its path."""
    if text.startswith(("{", "[")):
        return [[path, repr(value)] for path, value in leaves(json.loads(text))]
    rows, heading = [], [""]
    for line in text.splitlines():
        if not line.startswith("|"):
            heading = [""]
            continue
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if heading == [""]:
            heading = cells
        elif not set(line) <= set("|-: "):
            rows.append(
                ["" if TIMES.search(name) else cell for name, cell in zip_longest(heading, cells, fillvalue="")]
            )
    return rows


def leaves(value: Any, path: str = "") -> list[tuple[str, float]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, f"{path}/{key}")]
    if isinstance(value, list):
        return [leaf for place, inner in enumerate(value) for leaf in leaves(inner, f"{path}/{place}")]
    return [(path, value)] if isinstance(value, (int, float)) and not TIMES.search(path) else []


def found_again(old: list[list[str]], new: list[list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Rows came or went: those of both, by their first cells."""

    def name(row: list[str]) -> tuple[str, ...]:
        return tuple(row[: max(1, len(row) // 2)])

    named = {name(row): row for row in old}
    return ((named[name(row)], row) for row in new if name(row) in named)


def compare(before: str, after: str) -> str:
    old, new = tables(before), tables(after)
    alike, moved, errors = 0, [], []
    for first, second in zip(old, new, strict=True) if len(old) == len(new) else found_again(old, new):
        for was, now in zip(first, second, strict=False):
            for (a, s), (b, t) in zip(WITH_ERROR.findall(was), WITH_ERROR.findall(now), strict=False):
                if spread := (number(s) ** 2 + number(t) ** 2) ** 0.5:
                    errors.append(abs(number(a) - number(b)) / spread)
            for a, b in zip(NUMBER.findall(was), NUMBER.findall(now), strict=False):
                alike += a == b
                if a != b:
                    moved.append(abs(number(a) - number(b)) / max(abs(number(a)), abs(number(b))))
    cells = [str(alike + len(moved)), str(alike), "–", "–", "–", "–"]
    if moved:
        cells[2:4] = f"{statistics.median(moved):.1%}", f"{max(moved):.0%}"
    if errors:
        cells[4:] = (f"{sum(z > limit for z in errors)} of {len(errors)}" for limit in (2, 3))
    return " | ".join(cells)


def main() -> None:
    revision, *wanted = sys.argv[1:]
    print("| results | numbers | alike | median change of the others | largest | beyond 2 standard errors | beyond 3 |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for file in sorted(RESULTS.iterdir()):
        if wanted and file.name not in wanted:
            continue
        shown = subprocess.run(["git", "show", f"{revision}:{file.as_posix()}"], capture_output=True, text=True)
        if shown.returncode == 0:
            print(f"| {file.name} | {compare(shown.stdout, file.read_text(encoding='utf-8'))} |")


if __name__ == "__main__":
    main()
