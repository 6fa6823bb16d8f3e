"""What one machine takes for many records: passes, seconds and memory, from a Parquet file and from records made on the way.

    python benchmarks/scale.py [everything | lattice | statistics | fit | growth] [--rows 1e7] [--most 1e8]

`lattice`: a Newton pass in whole numbers beside the same pass in floating point. `statistics`: a mean, a proportion and a median of
10⁷ records in a Parquet file beside pyarrow's own read and sum of the column. `fit`: a logistic fit of 10⁷ × 10 from Parquet, end to
end, in a process of its own. `growth`: a mean, and a fit of two columns, of n = 10⁴ … 10⁸ records that are made while they are read.
Ratios are taken in alternation, least of several; memory is the process's largest resident size. Files are made in a temporary
folder and removed.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import onedraw as od
from onedraw.data import Records, Schema, read
from onedraw.data.columns import Numbers, Wanted
from onedraw.data.tables import Part, Table
from onedraw.methods import PerturbedMode, calibrate
from onedraw.models import ColumnQuantiles, Gaussian, Logistic, schema_features

COLUMNS, FEW = 10, 2
CHUNK = 1 << 20


def names(columns: int) -> list[str]:
    return [f"x{place}" for place in range(columns)]


def schema_of(columns: int) -> Schema:
    numbers = {name: {"kind": "number", "lower": -1, "upper": 1, "missing": 0} for name in names(columns)}
    return Schema.from_dict({"dataset": "scale", "columns": {**numbers, "y": {"kind": "binary", "missing": "no"}}})


SCHEMA = schema_of(COLUMNS)


def made(start: int, rows: int, columns: int = COLUMNS) -> dict[str, Any]:
    """Records ``start`` … ``start + rows`` of an endless table."""
    rng = np.random.default_rng(start)
    X = rng.uniform(-1.0, 1.0, (columns, rows))
    y = (rng.uniform(size=rows) < 1.0 / (1.0 + np.exp(-np.linspace(-1.0, 1.0, columns) @ X))).astype(np.int64)
    return {**dict(zip(names(columns), X, strict=True)), "y": y}


class Made(Table):
    """Records that are made while they are read."""

    ahead = True

    def __init__(self, n: int, columns: int) -> None:
        self.names, self.n, self.what, self.columns = (*names(columns), "y"), n, "the made table", columns

    def parts(self, wanted: Mapping[str, Wanted], rows: int) -> Sequence[Part]:
        return [partial(self._part, start, tuple(wanted), rows) for start in range(0, self.n, CHUNK)]

    def _part(self, start: int, wanted: tuple[str, ...], rows: int) -> Iterator[dict[str, Any]]:
        size = min(CHUNK, self.n - start)
        if wanted == ("x0",):  # one column costs no more than itself
            found: dict[str, Any] = {"x0": np.random.default_rng(start).uniform(-1.0, 1.0, size)}
        else:
            found = made(start, size, self.columns)
        for first in range(0, size, rows):
            yield {name: Numbers(found[name][first : first + rows]) for name in wanted}


def write_parquet(path: Path, n: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for start in range(0, n, CHUNK):
        table = pa.table(made(start, min(CHUNK, n - start)))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def spent() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def timed(task: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = spent()
    task()
    return tuple(after - before for after, before in zip(spent(), (wall, cpu), strict=True))  # type: ignore[return-value]


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def lattice(n: int = 1_000_000, rounds: int = 9) -> None:
    """A pass in whole numbers beside one in floating point, over the same blocks."""
    import jax
    import jax.numpy as jnp

    from onedraw.models.fit.sums import FitRows, NewtonSums
    from onedraw.models.moments.measured import Layout
    from onedraw.models.sums.exact_sums import Scaled, held

    found = made(0, n)
    X = np.column_stack([*(found[name] for name in names(COLUMNS)), np.ones(n)])
    loss = Logistic(COLUMNS, bounds=(-1, 1), scaled=True, prior=Gaussian(scale=1.0)).fit_loss
    where = np.zeros(COLUMNS), np.eye(COLUMNS), 0.5, 2.0, np.array([0.0, 1.0])
    records = held(X, 2.0 * found["y"] - 1.0).read_as(Scaled()).read_as(FitRows(Layout(COLUMNS)), *where)
    theta = np.ones(COLUMNS + 1)

    @jax.jit
    def plain(z: Any, a: Any, y: Any, weight: Any) -> Any:
        u = theta @ z
        curved = z * jnp.sqrt(a * loss.curvature(u, y) * weight)
        return jnp.concatenate([(z * (a * loss.kernel.slope(u, y))) @ weight, (curved @ curved.T).reshape(-1)])

    def floating() -> Any:
        return sum(np.asarray(plain(*block.arrays, block.weight)) for block in records)

    def whole() -> Any:
        return records.sum(NewtonSums(loss), 2.0**14, 2.0, theta)

    floating(), whole()
    pairs = [(timed(whole), timed(floating)) for _ in range(rounds)]
    print(f"lattice pass of {n:,} × {COLUMNS} / float pass: {ratio(pairs)}", flush=True)


def ratio(pairs: Sequence[tuple[tuple[float, float], tuple[float, float]]]) -> str:
    """Least CPU time over least CPU time, and the same of wall time."""
    ours, theirs = (np.min([pair[place] for pair in pairs], axis=0) for place in (0, 1))
    return f"{ours[1] / theirs[1]:.2f} in CPU seconds ({ours[1]:.2f} / {theirs[1]:.2f}), {ours[0] / theirs[0]:.2f} in wall ({ours[0]:.2f} / {theirs[0]:.2f})"


def statistics(path: Path, rounds: int = 5) -> None:
    """Releases beside pyarrow's read and sum; the first of each, which loads libraries, does not count."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from onedraw.methods import AddedNoise, ExponentialQuantiles
    from onedraw.models.tables.category_table import CategoryTable
    from onedraw.models.tables.number_table import NumberTable

    def arrow(column: str) -> Any:
        return pc.sum(pq.read_table(path, columns=[column]).column(column))

    asked = {
        "mean": ("x0", AddedNoise(), NumberTable(lower=-1.0, upper=1.0)),
        "proportion": ("y", AddedNoise(), CategoryTable(levels=("no", "yes"), show="shares", only="yes")),
        "median": ("x0", ExponentialQuantiles(), ColumnQuantiles(levels=(0.5,), lower=-1.0, upper=1.0)),
    }
    for name, (column, mechanism, model) in asked.items():
        records = read(path, SCHEMA, target=column)
        plan = calibrate(mechanism, model, od.PureDP(1.0), n=records.n)
        task = partial(od.release, plan, records, random_state=1)
        task(), arrow(column)
        pairs = [(timed(task), timed(partial(arrow, column))) for _ in range(rounds)]
        print(f"{name} of {records.n:,} / pyarrow's read and sum: {ratio(pairs)}", flush=True)


def fit(records: Records) -> str:
    model = Logistic(**schema_features(records.schema, "y"), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
    plan = calibrate(PerturbedMode(intervals=True), model, od.ApproxDP(1.0, 1e-6), n=records.n)
    found: list[Any] = []
    wall, cpu = timed(lambda: found.append(od.release(plan, records, random_state=1)))
    return f"{found[0].diagnostics['passes']} passes, {wall:.1f} s wall, {cpu:.1f} s CPU, {memory():,} MB"


def mean(n: int) -> str:
    from onedraw.models.sums.clamped_sums import LatticeSum

    records = Records(SCHEMA, "x0", n, Made(n, COLUMNS))
    wall, cpu = timed(lambda: records.sum(LatticeSum(-1.0, 1.0, 0.0, ("x0",))))
    return f"{wall:.2f} s wall, {cpu:.2f} s CPU, {memory():,} MB"


def alone(*words: str) -> str:
    """In a process of its own, whose memory is its own."""
    found = subprocess.run([sys.executable, __file__, *words], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def growth(most: int) -> None:
    for power in range(4, int(np.log10(most)) + 1):
        print(f"mean of 10^{power} made records: {alone('one-mean', '--rows', str(10**power))}", flush=True)
    for power in range(4, int(np.log10(most)) + 1):
        print(f"fit of 10^{power} made records × {FEW}: {alone('one-fit', '--rows', str(10**power))}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="everything")
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--most", type=float, default=1e8)
    parser.add_argument("--file", type=Path)
    asked = parser.parse_args()
    what, n = asked.what, int(asked.rows)
    if what == "one-mean":
        print(mean(n))
    elif what == "one-fit":
        table = (
            Records(schema_of(FEW), "y", n, Made(n, FEW))
            if asked.file is None
            else read(asked.file, SCHEMA, target="y")
        )
        print(fit(table))
    else:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} at the start")
        if what in ("everything", "lattice"):
            lattice()
        if what in ("everything", "statistics", "fit"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "made.parquet"
                write_parquet(path, n)
                if what != "fit":
                    statistics(path)
                if what != "statistics":
                    print(f"fit of {n:,} × {COLUMNS} from Parquet: {alone('one-fit', '--file', str(path))}", flush=True)
        if what in ("everything", "growth"):
            growth(int(asked.most))


if __name__ == "__main__":
    main()
