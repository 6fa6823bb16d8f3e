"""Plant faults in the code, one at a time, and run the tests of the module that holds each.

Sixty places are drawn with a fixed seed from the code of one commit, as many from each of six packages, and uniformly over
the places of a package. Each fault is planted in a copy of the working tree, where the module's own tests run. Those are:
tests of the package that carry the module's name, name it in their first line or import it, and those called test_every_*,
which enumerate the members of the package. Where there are none, the tests of the module's folder run.

    python tools/mutants.py                        # the faults still without a result
    python tools/mutants.py --only models/convex   # those of a part; a number takes one fault
    python tools/mutants.py --list                 # the draw alone
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

import mutant_sites
import mutant_tests

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "mutants.json"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.toml")
COMMIT, SEED, COUNT = "8a7c0fb", 20261118, 60
"""The draw: the commit whose code is read, the seed, and the number of faults."""


def main() -> int:
    wanted = arguments()
    drawn = mutant_sites.draw(sources_at(wanted.commit), wanted.seed, wanted.count)
    drawn = {number: site for number, site in drawn.items() if is_wanted(wanted.only, number, site)}
    if wanted.list:
        for number, site in drawn.items():
            print(f"{number:3} {site.path}:{site.function}: {site.kind}: {site.original} -> {site.mutant}")
        return 0
    results = Results(wanted.results, wanted)
    moved = moved_since(wanted.commit)
    left = [number for number in drawn if wanted.again or str(number) not in results.outcomes]
    with tempfile.TemporaryDirectory() as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for worker in range(wanted.jobs):
            trees.put(copied_tree(Path(folder) / str(worker)))

        def examine(number: int) -> None:
            tree = trees.get()
            try:
                results.add(number, drawn[number], outcome(tree, drawn[number], moved, wanted.limit))
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(wanted.jobs) as pool:
            list(pool.map(examine, left))
    print(results.summary())
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT, help="faults in all")
    parser.add_argument("--from", dest="commit", default=COMMIT, help="commit from whose code the faults are drawn")
    parser.add_argument("--only", action="append", help="part of a path, or the number of a fault")
    parser.add_argument("--jobs", type=int, default=2, help="faults examined at once")
    parser.add_argument("--limit", type=int, default=300, help="seconds for the tests of one fault")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="examine faults that have a result already")
    parser.add_argument("--list", action="store_true", help="print the draw and stop")
    return parser.parse_args()


def is_wanted(only: list[str] | None, number: int, site: mutant_sites.Site) -> bool:
    return only is None or any(word == str(number) or (word in site.path and not word.isdigit()) for word in only)


def sources_at(commit: str) -> dict[str, str]:
    """Read the Python files of the six packages as they were at `commit`."""
    folders = [f"src/onedraw/{name}" for package in mutant_sites.PACKAGES for name in mutant_sites.names_of(package)]
    names = git("ls-tree", "-r", "--name-only", commit, *folders).splitlines()
    return {name: git("show", f"{commit}:{name}") for name in names if name.endswith(".py")}


def moved_since(commit: str) -> dict[str, str]:
    """Map files as they were called at `commit` to what git finds them called now."""
    rows = git("diff", "-M40%", "--diff-filter=R", "--name-status", commit, "--", "src/onedraw").splitlines()
    return dict(row.split("\t")[1:] for row in rows)


def copied_tree(target: Path) -> Path:
    """Copy the working tree as git sees it, with a cache of compiled programs of its own."""
    for name in git("ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    cache = target / "build" / "cache" / "tests"
    cache.mkdir(parents=True)
    for file in (ROOT / "build" / "cache" / "tests").glob("*"):
        if file.is_file():
            shutil.copy2(file, cache)
    return target


def outcome(tree: Path, site: mutant_sites.Site, moved: dict[str, str], limit: int) -> dict[str, object]:
    """Plant one fault in `tree`, run its tests and put the file back."""
    path = moved.get(site.path, site.path)
    file = tree / path
    before = file.read_text("utf-8") if file.exists() else ""
    mutated = mutant_sites.planted(before, site)
    if mutated is None:
        return {"outcome": "gone"}
    tests = mutant_tests.own_tests(tree, path)
    start = time.monotonic()
    try:
        replace(file, mutated)
        found = run_tests(tree, tests, limit)
    finally:
        replace(file, before)
        shutil.rmtree(tree / "build" / "cache" / "tests" / "intervals", ignore_errors=True)  # holds the fault's numbers
    return {**found, "seconds": round(time.monotonic() - start), "tests": tests}


def replace(file: Path, text: str) -> None:
    """Write the file and drop its bytecode, which is told apart by the second of writing and the length alone."""
    file.write_text(text, "utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def run_tests(tree: Path, tests: list[str], limit: int) -> dict[str, object]:
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--no-header"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": ""}
    try:
        ran = subprocess.run(
            command, cwd=tree, env=environment, timeout=limit, capture_output=True, text=True, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return {"outcome": "time ran out"}
    if ran.returncode == 0:
        return {"outcome": "survived"}
    lines = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if ran.returncode == 5:
        return {"outcome": "no tests"}
    return {"outcome": "caught", "by": lines[0][:160] if lines else f"pytest ended with {ran.returncode}"}


class Results:
    """Outcomes by number, written to a JSON file and a page beside it whenever one is added."""

    def __init__(self, file: Path, wanted: argparse.Namespace) -> None:
        self.file, self.lock = file, Lock()
        self.draw = {"commit": wanted.commit, "seed": wanted.seed, "count": wanted.count}
        kept = json.loads(file.read_text("utf-8")) if file.exists() else {"draw": self.draw, "outcomes": {}}
        if kept["draw"] != self.draw:
            raise SystemExit(f"{file} holds the results of another draw, {kept['draw']}. Pass another --results.")
        self.outcomes: dict[str, dict[str, object]] = kept["outcomes"]
        self.reasons = reasons()

    def add(self, number: int, site: mutant_sites.Site, found: dict[str, object]) -> None:
        with self.lock:
            earlier = self.outcomes.get(str(number), {})
            first = earlier.get("first", found["outcome"])
            self.outcomes[str(number)] = {**asdict(site), **found, "first": first}
            self.file.parent.mkdir(parents=True, exist_ok=True)
            ordered = dict(sorted(self.outcomes.items(), key=lambda item: int(item[0])))
            self.file.write_text(
                json.dumps({"draw": self.draw, "outcomes": ordered}, indent=1, ensure_ascii=False) + "\n"
            )
            self.file.with_suffix(".md").write_text(self.page(ordered), "utf-8")
            print(f"{number:3} {found['outcome']:13} {site.path}: {site.original} -> {site.mutant}", flush=True)

    def state(self, row: dict[str, object], which: str) -> str:
        key = (row["path"], row["function"], row["original"], row["mutant"])
        return "equivalent" if row[which] != "caught" and key in self.reasons else str(row[which])

    def summary(self) -> str:
        """Count the faults caught, on the first run and now, among those not shown equivalent."""
        parts = []
        for which in ("first", "outcome"):
            states = [self.state(row, which) for row in self.outcomes.values()]
            real = len(states) - states.count("equivalent") - states.count("gone")
            parts.append(f"{states.count('caught')} of {real}")
        equivalent = [self.state(row, "outcome") for row in self.outcomes.values()].count("equivalent")
        return f"caught at first {parts[0]}, now {parts[1]}; {equivalent} shown equivalent"

    def page(self, ordered: dict[str, dict[str, object]]) -> str:
        draw = self.draw
        lines = [
            "# Planted faults",
            "",
            f"Written by tools/mutants.py. Drawn from commit {draw['commit']} with seed {draw['seed']}: {self.summary()}.",
            "",
            "| # | where | kind | planted | at first | now | seconds |",
            "| ---: | --- | --- | --- | --- | --- | ---: |",
        ]
        for number, row in ordered.items():
            planted = f"`{row['original']}` → `{row['mutant']}`".replace("|", "\\|").replace("\n", " ")
            where = f"{str(row['path']).removeprefix('src/onedraw/')} {row['function']}"
            states = f"{self.state(row, 'first')} | {self.state(row, 'outcome')}"
            lines.append(f"| {number} | {where} | {row['kind']} | {planted} | {states} | {row.get('seconds', '')} |")
        return "\n".join(lines) + "\n"


def reasons() -> dict[tuple[str, str, str, str], str]:
    """Read the faults that change no behavior, each with the reason."""
    if not EQUIVALENT.exists():
        return {}
    rows = tomllib.loads(EQUIVALENT.read_text("utf-8")).get("equivalent", [])
    return {(row["path"], row["function"], row["original"], row["mutant"]): row["reason"] for row in rows}


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
