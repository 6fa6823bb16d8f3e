"""Running a study: cells in processes of their own, kept as they are finished; then rows, figures and a summary.

    result = reproduce(study, Options(quick=True, jobs=2), out)      # a document; result["passed"]

A piece of work that has its file is not computed again, so an interrupted run goes on where it was. Under ``out``:
<study>/cells/*.parquet, and <study>/full or <study>/quick with results.parquet, summary.md, summary.json and the figures.
"""

from __future__ import annotations

import inspect
import json
import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from experiments import cells, expectations
from experiments.data import check_data
from experiments.figures import check_figures, save
from experiments.study import Study, Table, studies
from onedraw.errors import OnedrawError, WrongCall

ONE_THREAD = {
    "NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}  # fmt: skip
"""The environment of processes that share the cores, and perhaps one accelerator."""


@dataclass(frozen=True)
class Options:
    """What the command line says: the quick cells only, how many seeds, how many processes, and whether kept cells count."""

    quick: bool = False
    seeds: int | None = None
    jobs: int = 1
    fresh: bool = False

    def __post_init__(self) -> None:
        for name, value in (("seeds", self.seeds), ("jobs", self.jobs)):
            if value is not None and value < 1:
                raise WrongCall(
                    f"--{name} takes a whole number of at least 1, but {value} was given. Leave it out for the default."
                )


class Interrupted(OnedrawError):
    """Ctrl-C; what is finished is kept."""

    exit_code = 130


def find(name: str) -> Study:
    known = studies()
    if name not in known:
        raise WrongCall(f"There is no study called {name!r}. The studies are: {', '.join(known)}; or all of them: all.")
    return known[name]


def reproduce(study: Study, options: Options, out: Path, *, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Compute what is missing, gather it, and check it; the result as a document, which summary.json keeps too."""
    check_figures()
    check_data(study.data)
    home = Path(inspect.getfile(study.run)).parent
    stated = expectations.expectations(study, home)
    start = time.perf_counter()
    pieces = cells.pieces(study, out / study.name / "cells", quick=options.quick, seeds=options.seeds)
    done = _kept(pieces, options, say)
    _compute(study.name, [piece for piece in pieces if piece.file not in done], options, len(pieces))
    kept = [done.get(piece.file) or cells.read(piece.file) for piece in pieces]
    table = gathered(kept)
    seeds = options.seeds or (study.quick_seeds if options.quick else study.seeds)
    reduced = options.quick or seeds < study.seeds
    checked = expectations.check(stated, study.quantities(table), seeds=seeds, reduced=reduced)
    document = _document(
        study, options, checked, kept, computed=len(pieces) - len(done), seconds=time.perf_counter() - start
    )
    return _written(study, table, kept, document, out / study.name / ("quick" if options.quick else "full"))


# ── computing ────────────────────────────────────────────────────────────────────────────────────────────────────


def _kept(pieces: Sequence[cells.Piece], options: Options, say: Callable[[str], None]) -> dict[Path, cells.Kept]:
    """What earlier runs finished."""
    found: dict[Path, cells.Kept] = {}
    for piece in () if options.fresh else pieces:
        try:
            one = cells.read(piece.file)
        except cells.Damaged:
            say(f"The file of one cell ({piece.words}) is damaged. It is computed again.")
            continue
        if one is not None:
            found[piece.file] = one
    return found


def _compute(name: str, missing: Sequence[cells.Piece], options: Options, total: int) -> None:
    done = total - len(missing)
    try:
        with progress(name, total, done) as advance:
            for _ in _finished(missing, options.jobs):
                done += 1
                advance()
    except KeyboardInterrupt:
        raise Interrupted(
            f"Interrupted: {done} of the {total} cells of {name} are finished and kept. The same command goes on from there."
        ) from None
    except BrokenProcessPool:
        raise OnedrawError(
            f"A process of {name} was ended from outside, perhaps for lack of memory; {done} of its {total} cells are finished and "
            "kept. Give the command again with fewer --jobs."
        ) from None


def _finished(missing: Sequence[cells.Piece], jobs: int) -> Iterator[None]:
    """One step for each piece that has its file. One job is this very process, with all its threads."""
    if jobs == 1 or len(missing) <= 1:
        for piece in missing:
            cells.compute(piece)
            yield
        return
    with _environment(ONE_THREAD):
        pool = ProcessPoolExecutor(min(jobs, len(missing)), multiprocessing.get_context("spawn"), _begin)
        try:
            waiting: set[Future[None]] = {pool.submit(cells.compute, piece) for piece in missing}
            while waiting:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for one in ready:
                    one.result()
                    yield
        except BaseException:
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin() -> None:
    """In a new process: end when the one that started it does, and leave Ctrl-C to it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables for processes that are started meanwhile; what somebody has set stays."""
    ours = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


@contextmanager
def progress(name: str, total: int, done: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr, in a terminal only."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=total, completed=done)
        yield lambda: bar.advance(task)


# ── gathering ────────────────────────────────────────────────────────────────────────────────────────────────────


def gathered(kept: Sequence[Any]) -> Table:
    """All rows of all cells; what a cell does not have is NaN, or None for text."""
    rows = _concatenated(kept)
    return Table({name: rows.column(name).to_numpy() for name in rows.column_names})


def _concatenated(kept: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_tables([one.rows.replace_schema_metadata(None) for one in kept], promote_options="permissive")


def _document(
    study: Study, options: Options, checked: Sequence[expectations.Checked], kept: Sequence[Any], *, computed: int, seconds: float
) -> dict[str, Any]:  # fmt: skip
    processor = sum(one.cpu_seconds for one in kept)
    stale = sum(one.library != cells.library() for one in kept)
    times = (
        f"{len(kept)} cells, {computed} of them computed now: {clock(seconds)} for this run, {clock(processor)} of processor "
        "time for all cells."
    )
    times += _elsewhere(kept)
    if stale:
        times += f" {stale} kept cells are of other code of the library: --fresh computes them again."
    return {
        "study": study.name, "claim": study.claim, "paper": study.paper, "quick": options.quick, "cells": len(kept),
        "computed": computed, "seconds": round(seconds, 3), "cpu_seconds": round(processor, 3), "times": times,
        "passed": all(one.verdict != "failed" for one in checked), "expectations": [one.document() for one in checked],
    }  # fmt: skip


def _elsewhere(kept: Sequence[Any]) -> str:
    """Whose seconds they are, where not all are of this machine."""
    machines = Counter(
        one.machine or "a machine that they do not name" for one in kept if one.machine != cells.machine()
    )
    return "".join(f" {count} of them were computed on another machine: {name}." for name, count in machines.items())


def clock(seconds: float) -> str:
    """1.2 s, or hours, minutes and seconds."""
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))


def _written(study: Study, table: Table, kept: Sequence[Any], document: dict[str, Any], folder: Path) -> dict[str, Any]:
    from pyarrow import parquet

    try:
        folder.mkdir(parents=True, exist_ok=True)
        parquet.write_table(_concatenated(kept), folder / "results.parquet")
        document |= {
            "findings": list(study.findings(table)),
            "figures": save(study.figures(table), folder),
            "folder": str(folder),
        }
        (folder / "summary.md").write_text(expectations.summary(document), encoding="utf-8")
        (folder / "summary.json").write_text(
            json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    except OSError as error:
        raise cells.refused(error, folder.parent / "cells") from error
    return document
