"""Spark against one process on the same machine, in alternation: a table streamed once, and passes over rows that are held.

Contract: streamed (count, check, read, encode, sums of the columns) at most 1.3 times, a held pass at most 1.4 times where it
takes two seconds or more; the integers equal throughout. Ratios are of the fastest of alternating rounds, and beside the seconds stands
the processor time of all processes, which other work on the machine does not stretch. Spark runs as two executors of one core
(`local-cluster[2,1,2048]`), one process with two threads. A held pass is made two seconds long by asking for gradient and
Hessian at several points at once. A query over the same files, whose rows Spark hands over, has no contract: it shows what that costs.

    python benchmarks/spark_scale.py [--rows 10000000] [--columns 10] [--held-rows 400000] [--held-columns 50] [--rounds 4]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from onedraw.data import Schema, read
from onedraw.data.sums import Statistic
from onedraw.models import Gaussian, Logistic, schema_features
from onedraw.models.fit.sums import FitRows, NewtonSums
from onedraw.models.moments.measured import Layout
from onedraw.models.row_model import Rows
from onedraw.models.sums.exact_sums import Scaled

STREAMED, HELD = 1.3, 1.4
FILES = 8
HERE = Path(__file__).resolve()


@dataclass(frozen=True)
class Sums(Statistic):
    """Σ of every column, in steps of 2⁻²⁰: one pass, nothing held."""

    columns: tuple[str, ...]

    def bound(self) -> float:
        return 2.0**21

    def of_block(self, *columns_and_weight: Any) -> Any:
        *columns, weight = columns_and_weight
        return np.array([(np.rint(column * 2.0**20) * weight).sum() for column in columns])  # no threads: one a core


@dataclass(frozen=True)
class Several(Statistic):
    """Gradient and Hessian at several points, in one pass."""

    newton: NewtonSums
    columns: tuple[str, ...] = ()

    def bound(self, coarse: Any, row_bound: Any, points: Any) -> float:
        return self.newton.bound(coarse, row_bound, None)

    def of_block(self, *block_and_public: Any) -> Any:
        *block, points = block_and_public
        return np.concatenate([np.asarray(self.newton.of_block(*block, point)) for point in points])


def write(folder: Path, rows: int, columns: int) -> Schema:
    """A folder of files, and the same rows as one."""
    rng = np.random.default_rng(0)
    (folder / "parts").mkdir(parents=True)
    writer = None
    for part in range(FILES):
        n = rows // FILES
        values = {f"x{place}": rng.uniform(-1, 1, n) for place in range(columns)}
        ill = (rng.uniform(size=n) < 1 / (1 + np.exp(-values["x0"]))).astype(np.int64)
        table = pa.table(values | {"ill": ill})
        pq.write_table(table, folder / "parts" / f"{part}.parquet")
        writer = writer or pq.ParquetWriter(folder / "one.parquet", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    numbers = {f"x{place}": {"kind": "number", "lower": -1, "upper": 1, "missing": 0} for place in range(columns)}
    return Schema.from_dict({"columns": numbers | {"ill": {"kind": "binary", "missing": "no"}}})


def started(folder: Path) -> Any:
    import pyspark

    (folder / "home").mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (folder / "home" / entry.name).symlink_to(entry)
    os.environ |= {"SPARK_HOME": str(folder / "home"), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    from pyspark.sql import SparkSession

    paths = os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE.parent)])
    options = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.executorEnv.PYTHONPATH": paths,
        "spark.executorEnv.XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    }  # fmt: skip
    builder = SparkSession.builder.master("local-cluster[2,1,2048]").appName("benchmark")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def timed(action: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = action()
    return time.perf_counter() - start, found


def duel(rounds: int, *actions: Any) -> list[tuple[float, float]]:
    """(seconds, processor seconds), the least of each, in turn; what they return must be the same integers."""
    times: list[list[tuple[float, float]]] = [[] for _ in actions]
    for _ in range(rounds):
        found = []
        for place, action in enumerate(actions):
            before = processor_seconds()
            seconds, result = timed(action)
            times[place].append((seconds, processor_seconds() - before))
            found.append(result)
        assert all(np.array_equal(found[0], other) for other in found), "other integers"
    return [(min(seconds for seconds, _ in each), min(used for _, used in each)) for each in times]


def processor_seconds() -> float:
    """Of this process and all it has started."""
    parents, used = {}, {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
        parents[int(place.parent.name)] = int(fields[1])
        used[int(place.parent.name)] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def ours(process: int) -> bool:
        return process == os.getpid() or (process in parents and ours(parents[process]))

    return sum(seconds for process, seconds in used.items() if ours(process))


def streamed(session: Any, folder: Path, schema: Schema, rounds: int) -> list[tuple[float, float]]:
    """One process, Spark where the files are, Spark answering a query."""
    statistic = Sums(tuple(schema.columns))

    def once(source: Any) -> Any:
        records = read(source, schema)
        records.check_whole()
        return records.sum(statistic)

    files = str(folder / "parts")
    return duel(
        rounds,
        lambda: once(folder / "one.parquet"),
        lambda: once(session.read.parquet(files)),
        lambda: once(session.read.parquet(files).where("true")),
    )


def held(session: Any, folder: Path, schema: Schema, rounds: int, seconds: float = 0.0) -> list[tuple[float, float]]:
    model = Logistic(**schema_features(schema, "ill"), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
    width = model.features.width
    reading = Rows(model.features, model.response, schema, "ill", tuple(schema.columns))
    public = np.zeros(width - 1), np.eye(width - 1), 1.3, 2.0, np.array([0.0, 1.0])
    points = np.linspace(-1, 1, width)[np.newaxis]

    def rows(source: Any) -> Any:
        records = replace(read(source, schema, target="ill"), memory=2**34)
        return records.read_as(reading).read_as(Scaled()).read_as(FitRows(Layout(width - 1)), *public)

    local, spark = rows(folder / "one.parquet"), rows(session.read.parquet(str(folder / "parts")))
    asked = Several(NewtonSums(model.fit_loss)), 2.0**14, 2.0
    spark.sum(*asked, points)  # workers read, rewrite and compile
    local.sum(*asked, points)
    alone = min(timed(lambda: local.sum(*asked, points))[0] for _ in range(rounds))
    points = np.repeat(points, max(1, int(np.ceil(seconds / alone))), axis=0)
    return duel(rounds, lambda: local.sum(*asked, points), lambda: spark.sum(*asked, points))


def empty(session: Any, rounds: int) -> float:
    schema = Schema.from_dict({"columns": {"id": {"kind": "number", "lower": 0, "upper": 9, "missing": 0}}})
    records = read(session.range(140_000).selectExpr("id % 10 AS id"), schema)
    records.check_whole()
    return min(timed(lambda: records.sum(Sums(("id",))))[0] for _ in range(rounds + 2))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, value in (
        ("rows", 10_000_000),
        ("columns", 10),
        ("held-rows", 400_000),
        ("held-columns", 50),
        ("rounds", 4),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        seconds, session = timed(lambda: started(folder))
        print(f"Spark started in {seconds:.1f} s, load {os.getloadavg()[0]:.1f}", flush=True)
        print(f"a pass with next to no work: {empty(session, asked.rounds):.2f} s", flush=True)
        wide, long = (folder / name for name in ("wide", "long"))
        schema = write(wide, asked.held_rows, asked.held_columns)
        size = f"{asked.held_rows:,} rows, {asked.held_columns} columns"
        shown(f"held, a Newton pass over {size}", held(session, wide, schema, asked.rounds), None)
        missed = shown(f"held, two seconds and more over {size}", held(session, wide, schema, asked.rounds, 2.5), HELD)
        schema = write(long, asked.rows, asked.columns)
        size = f"{asked.rows:,} rows, {asked.columns} columns"
        one, in_place, query = streamed(session, long, schema, asked.rounds)
        missed += shown(f"streamed, {size}", [one, in_place], STREAMED)
        shown(f"streamed by a query, {size}", [one, query], None)
        session.stop()
    return 1 if missed else 0


def shown(name: str, times: list[tuple[float, float]], limit: float | None) -> int:
    (one, one_used), (spark, spark_used) = times
    contract = "" if limit is None else f" (at most {limit})"
    print(
        f"{name}: one process {one:.2f} s, Spark {spark:.2f} s, ratio {spark / one:.2f}{contract}; of processors {one_used:.2f} s "
        f"and {spark_used:.2f} s, ratio {spark_used / one_used:.2f}; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return int(limit is not None and spark > limit * one)


if __name__ == "__main__":
    sys.exit(main())
