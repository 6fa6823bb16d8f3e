"""A cell of a study on disk: its key, its file, and computing it, in whatever process.

A cell is finished when its file has its name: rows are written beside it and renamed. The file's metadata say what it is, how
long it took and where, and with which code of the library; one that cannot be read counts as not computed.
"""

from __future__ import annotations

import ast
import errno
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onedraw
from experiments.study import FOLDER, Row, Study
from onedraw.errors import CannotWrite

MACHINERY = frozenset({"study", "cells", "runner", "expectations", "figures", "data"})
"""Files of this folder that decide how a cell is run and shown, not what it computes."""

FULL = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True)
class Piece:
    """Parameters and seeds of a study, and where its rows belong."""

    study: str
    run: Callable[..., Iterable[Row]]
    parameters: Mapping[str, Any]
    seeds: tuple[int, ...]
    file: Path

    @property
    def words(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items()) or "the only cell"


@dataclass(frozen=True)
class Kept:
    """What a file holds: rows, seconds on the clock and of the processor, the library's code, and the machine."""

    rows: Any
    seconds: float
    cpu_seconds: float
    library: str
    machine: str = ""


def pieces(study: Study, folder: Path, *, quick: bool, seeds: int | None) -> list[Piece]:
    """Every piece of a run, with its file."""
    code = code_of(study.run.__module__)
    return [
        Piece(study.name, study.run, parameters, batch, folder / f"{key(study.name, parameters, batch, code)}.parquet")
        for parameters, batch in study.pieces(quick=quick, seeds=seeds)
    ]


def key(study: str, parameters: Mapping[str, Any], seeds: tuple[int, ...], code: str) -> str:
    """What a cell's file is called: a digest of everything that its rows depend on but for the library."""
    text = json.dumps([study, parameters, seeds, code], sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@cache
def code_of(module: str) -> str:
    """The digest of a module's file and of those of `experiments` that it imports, however indirectly."""
    if _source(module) is None:
        raise ValueError(f"run must be a function of a file below {FOLDER.parent}; it is one of {module}.")
    waiting, found = [module], dict[str, bytes]()
    while waiting:
        name = waiting.pop()
        source = _source(name)
        if source is None or name in found:
            continue
        found[name] = source.read_bytes()
        waiting += [one for one in _imported(found[name], name) if one.partition(".")[2] not in MACHINERY]
    return hashlib.sha256(b"\0".join(found[name] for name in sorted(found))).hexdigest()


def _source(module: str) -> Path | None:
    place = FOLDER.parent.joinpath(*module.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def _imported(source: bytes, module: str) -> Iterable[str]:
    """Modules of `experiments` that a file imports; a name from a package may be a module or not."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(module.split(".")[: -node.level]) if node.level else ""
            home = ".".join(filter(None, (package, node.module)))
            names = [home, *(f"{home}.{one.name}" for one in node.names)]
        else:
            continue
        yield from (name for name in names if name.startswith("experiments."))


@cache
def library() -> str:
    """The digest of the library's own code, to say when a kept cell was computed with another."""
    package, digest = Path(onedraw.__file__).parent, hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]


@cache
def machine() -> str:
    """The processor and how many cores there are, since seconds mean nothing without."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        told = ""
    models = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    return f"{models[0] if models else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def compute(piece: Piece) -> None:
    """Run a piece and keep its rows."""
    clock, processor = time.perf_counter(), time.process_time()
    rows = [dict(row) for row in piece.run(seeds=piece.seeds, **piece.parameters)]
    write(piece, rows, time.perf_counter() - clock, time.process_time() - processor, machine())


def write(piece: Piece, rows: list[dict[str, Any]], seconds: float, cpu_seconds: float, where: str) -> None:
    """Rows with the cell's parameters as columns, under a name of their own first, then renamed."""
    import pyarrow as pa
    from pyarrow import parquet

    if not rows:
        raise ValueError(f"{piece.study} gave no rows for {piece.words}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [value] * len(rows) for name, value in piece.parameters.items()}
    columns |= {name: [plain(row.get(name)) for row in rows] for name in names}
    about = {"study": piece.study, "seconds": seconds, "cpu_seconds": cpu_seconds}
    about |= {"library": library(), "machine": where}
    table = pa.table(columns)
    table = table.replace_schema_metadata({"cell": json.dumps(about | {"digest": _digest(table)})})
    partial = piece.file.with_suffix(f".{os.getpid()}.partial")
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, partial)
        partial.replace(piece.file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise refused(error, piece.file.parent) from error


def refused(error: OSError, folder: Path) -> OSError | CannotWrite:
    """A full disk in words; any other error as it is."""
    if error.errno not in FULL:
        return error
    kept = len([*folder.glob("*.parquet")])
    return CannotWrite(
        f"The disk is full: {folder} could not take another file, and keeps the {kept} cells that are finished. Make room, "
        "and give the same command again: it goes on from there."
    )


def _digest(rows: Any) -> str:
    """Of the values, which Parquet itself does not check."""
    return hashlib.sha256(repr(rows.to_pydict()).encode()).hexdigest()


def plain(value: Any) -> Any:
    """A NumPy or JAX scalar as Python's own."""
    return value.item() if hasattr(value, "item") else value


def read(file: Path) -> Kept | None:
    """What a cell's file holds; None where there is none. A damaged file raises `Damaged`."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(file, partitioning=None)
        about = json.loads(table.schema.metadata[b"cell"])
        if about["digest"] != _digest(table):
            raise ValueError("other rows than were written")
        return Kept(table, about["seconds"], about["cpu_seconds"], about["library"], about.get("machine", ""))
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(str(file)) from error


class Damaged(Exception):
    """A cell's file that cannot be read."""
