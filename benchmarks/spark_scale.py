"""Spark against one process on the same machine, in alternation: a table streamed once, and a Newton pass over rows that are held.

Contract: streamed (check, read, encode, sum of the moments) at most 1.3 times, a held pass at most 1.4 times where it takes
two seconds or more; the integers equal throughout. Ratios are of the fastest of alternating rounds. Spark runs as two executors of
one core (`local-cluster[2,1,2048]`), one process with two threads.

    python benchmarks/spark_scale.py [--rows 1000000] [--columns 50] [--rounds 4]
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
from onedraw.models import Gaussian, Logistic, schema_features
from onedraw.models.exact_sums import Scaled
from onedraw.models.fit_statistics import Measured, NewtonSums
from onedraw.models.measured import Layout
from onedraw.models.row_model import Rows

STREAMED, HELD = 1.3, 1.4
FILES = 8
HERE = Path(__file__).resolve()


@dataclass(frozen=True)
class Sums:
    """Σ of every column, in steps of 2⁻²⁰: one pass, nothing held."""

    columns: tuple[str, ...]

    def bound(self) -> float:
        return 2.0**21

    def of_block(self, *columns_and_weight: Any) -> Any:
        *columns, weight = columns_and_weight
        return np.array([np.rint(column * 2.0**20) @ weight for column in columns])


def write(folder: Path, rows: int, columns: int) -> Schema:
    """A folder of files, and the same rows as one."""
    rng = np.random.default_rng(0)
    (folder / "parts").mkdir()
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


def duel(rounds: int, *actions: Any) -> list[float]:
    """The fastest of each, in turn; what they return must be the same integers."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        found = []
        for place, action in enumerate(actions):
            seconds, result = timed(action)
            times[place].append(seconds)
            found.append(result)
        assert all(np.array_equal(found[0], other) for other in found), "other integers"
    return [min(each) for each in times]


def streamed(session: Any, folder: Path, schema: Schema, rounds: int) -> list[float]:
    statistic = Sums(tuple(schema.columns))

    def once(source: Any) -> Any:
        records = read(source, schema)
        records.check_whole()
        return records.sum(statistic)

    return duel(rounds, lambda: once(folder / "one.parquet"), lambda: once(session.read.parquet(str(folder / "parts"))))


def held(session: Any, folder: Path, schema: Schema, rounds: int) -> list[float]:
    model = Logistic(**schema_features(schema, "ill"), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
    width = model.features.width
    reading = Rows(model.features, model.response, schema, "ill", tuple(schema.columns))
    public = np.zeros(width - 1), np.eye(width - 1), 1.3, 2.0, np.array([0.0, 1.0])
    asked = NewtonSums(model.fit_loss), 2.0**14, 2.0, np.linspace(-1, 1, width)

    def rows(source: Any) -> Any:
        records = replace(read(source, schema, target="ill"), memory=2**34)
        return records.read_as(reading).read_as(Scaled()).read_as(Measured(Layout(width - 1)), *public)

    local, spark = rows(folder / "one.parquet"), rows(session.read.parquet(str(folder / "parts")))
    spark.sum(*asked)  # workers read and rewrite
    return duel(rounds, lambda: local.sum(*asked), lambda: spark.sum(*asked))


def empty(session: Any, rounds: int) -> float:
    schema = Schema.from_dict({"columns": {"id": {"kind": "number", "lower": 0, "upper": 9, "missing": 0}}})
    records = read(session.range(140_000).selectExpr("id % 10 AS id"), schema)
    records.check_whole()
    return min(timed(lambda: records.sum(Sums(("id",))))[0] for _ in range(rounds + 2))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        schema = write(folder, asked.rows, asked.columns)
        seconds, session = timed(lambda: started(folder))
        print(
            f"{asked.rows:,} rows, {asked.columns} columns, load {os.getloadavg()[0]:.1f}; Spark started in {seconds:.1f} s",
            flush=True,
        )
        print(f"a pass with next to no work: {empty(session, asked.rounds):.2f} s", flush=True)
        missed = 0
        for name, limit, found in (
            ("streamed: check, read, encode, sum", STREAMED, streamed),
            ("held: a Newton pass", HELD, held),
        ):
            one, spark = found(session, folder, schema, asked.rounds)
            missed += spark > limit * one
            print(
                f"{name}: one process {one:.2f} s, Spark {spark:.2f} s, ratio {spark / one:.2f} (at most {limit})",
                flush=True,
            )
        session.stop()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
