"""Encoded records in a private folder: removed at the end, after a kill at the next start, and refused once they changed."""

import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onedraw.data import Schema, read
from onedraw.data import shards as held_parts
from onedraw.data.shards import (
    CountedFile,
    Files,
    Pass,
    ShardedRecords,
    combine,
    remove_orphans,
    row_groups,
    write_part,
)
from onedraw.data.sums import Reading, Statistic, Summation
from onedraw.errors import CannotWrite, FileMismatch

SCHEMA = Schema.from_dict({"columns": {"x": {"kind": "number", "lower": 0, "upper": 9, "missing": 0}}})


@dataclass(frozen=True)
class Total(Statistic):
    columns: tuple[str, ...] = ("x",)

    def bound(self):
        return 9.0

    def of_block(self, x, weight):
        return np.array([x @ weight, weight.sum()])


@dataclass(frozen=True)
class Doubled(Reading):
    columns: tuple[str, ...] = ("x",)

    def of_block(self, x, weight):
        return (2 * x,)


def program(place, body):
    """A program that makes a private folder in ``place`` and puts a part there."""
    code = f"""
import numpy as np, os, signal
from onedraw.data.shards import scratch
from onedraw.data.shards import write_part
print(write_part(str(scratch()), [{{"x": np.ones(3)}}]).path, flush=True)
{body}
"""
    environment = os.environ | {"ONEDRAW_SCRATCH": str(place), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()), done


def test_the_folder_is_private_and_gone_when_the_program_ends_even_by_an_error(tmp_path):
    shown = "print(oct(os.stat(scratch()).st_mode), [oct(os.stat(e).st_mode) for e in os.scandir(scratch())])\nraise SystemExit(1)"
    _, done = program(tmp_path, shown)
    modes = done.stdout.split("\n")[1]
    assert "0o40700" in modes
    assert modes.count("0o100600") == 2
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_program_left_is_removed_by_the_next_and_what_a_live_one_has_is_not(tmp_path):
    left, done = program(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL
    assert left.exists()
    _, done = program(tmp_path, f"assert not os.path.exists({str(left.parent)!r})\nfrom onedraw.data.shards import *\n"
                      "from pathlib import Path\nremove_orphans(scratch().parent)\nassert scratch().exists()")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_somebody_elses_is_left_alone(tmp_path):
    (tmp_path / "onedraw-scratch-x").mkdir()
    remove_orphans(tmp_path)
    assert (tmp_path / "onedraw-scratch-x").exists()


def test_a_place_that_cannot_be_used_is_refused(tmp_path):
    _, done = program(tmp_path / "nowhere", "")
    assert CannotWrite.__name__ in done.stderr
    assert "ONEDRAW_SCRATCH" in done.stderr


@pytest.fixture
def parts(tmp_path):
    x = np.random.default_rng(0).integers(0, 10, 100).astype(float)
    files = tuple(write_part(str(tmp_path), [{"x": piece}]) for piece in np.split(x, [20, 70]))
    source = read({"x": x}, SCHEMA)
    records = ShardedRecords(SCHEMA, None, 100, Files(files))
    return records, files, source


def task(records, files, token=None, memory=2**20, readings=()):
    return Pass(records.in_files(()), files, Summation(readings, Total()), token, memory)


def test_parts_are_read_as_they_were_written_and_add_up(parts):
    records, files, source = parts
    asked = task(records, files)
    assert np.array_equal(
        combine([asked.part(k) for k in (2, 0, 1)], 3, 100, asked.summation.digest(asked.test)), source.sum(Total())
    )
    assert {stat.S_IMODE(os.stat(file.path).st_mode) for file in files} == {0o600}
    assert np.array_equal(np.concatenate(list(records.values("x"))), np.concatenate(list(source.values("x"))))


def test_a_part_without_records_adds_zeros(parts, tmp_path):
    records, files, source = parts
    more = (*files, write_part(str(tmp_path), []))
    asked = task(records, more)
    assert np.array_equal(
        combine([asked.part(k) for k in range(4)], 4, 100, asked.summation.digest(asked.test)), source.sum(Total())
    )


def test_a_worker_holds_the_parts_it_was_asked_for_last(parts, monkeypatch):
    records, files, _ = parts
    monkeypatch.setattr(held_parts, "HELD", type(held_parts.HELD)())
    one = 2 * 8 * 128  # a block of 128 places: values and weights
    asked = task(records, files, "token", memory=2 * one, readings=((Doubled(), ()),))
    for number in (0, 1, 0, 2):
        asked.part(number)
    assert list(held_parts.HELD.blocks) == [("token", 0), ("token", 2)]
    assert asked.part(1).sum[0] == 2 * sum(
        np.concatenate([batch["x"] for batch in files[1].batches(None, dict.fromkeys(["x"]))])
    )


def test_a_worker_lets_go_of_what_it_holds_after_the_last_pass_and_not_during_one(parts, monkeypatch):
    records, files, source = parts
    monkeypatch.setattr(held_parts, "HELD", type(held_parts.HELD)())
    monkeypatch.setattr(held_parts, "HELD_SECONDS", 0.05)
    asked = task(records, files, "token", readings=((Doubled(), ()),))
    asked.part(0)
    with held_parts.HELD.in_use():  # a pass that takes longer than that
        held_parts.HELD.get(("token", 1), asked._blocks(1), asked.memory)
        time.sleep(0.2)
        assert ("token", 1) in held_parts.HELD.blocks
    deadline = time.monotonic() + 30
    while held_parts.HELD.blocks and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not held_parts.HELD.blocks
    assert np.array_equal(
        combine([asked.part(k) for k in range(3)], 3, 100, asked.summation.digest(asked.test)),
        [2, 1] * source.sum(Total()),
    )


@pytest.fixture
def parquet(tmp_path):
    """Files of several row groups, one of none, and the same records in one process."""
    x = np.random.default_rng(1).integers(-3, 15, 1000).astype(float)
    for place, piece in enumerate(np.split(x, [150, 150, 900])):
        pq.write_table(pa.table({"x": piece}), tmp_path / f"{place}.parquet", row_group_size=100)
    return [CountedFile.at(str(path)) for path in sorted(tmp_path.iterdir())], read({"x": x}, SCHEMA)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
def test_row_groups_in_parts_are_every_record_once(parquet, count):
    files, source = parquet
    parts = row_groups(files, count)
    records = ShardedRecords(SCHEMA, None, 1000, Files(parts))
    asked = task(records, parts)
    assert np.array_equal(
        combine([asked.part(k) for k in range(count)], count, 1000, asked.summation.digest(asked.test)),
        source.sum(Total()),
    )
    assert max(part.rows for part in parts) <= 1000 / count + 100
    assert np.array_equal(np.concatenate(list(records.values("x"))), np.concatenate(list(source.values("x"))))


@pytest.mark.parametrize("harm", ["changed", "fewer groups", "removed"])
def test_a_parquet_file_that_is_not_what_was_counted_is_refused(parquet, harm):
    files, _ = parquet
    (part,) = row_groups(files, 1)
    assert part.whole(["x"])
    if harm == "removed":
        Path(files[3].path).unlink()
    else:
        pq.write_table(pa.table({"x": np.ones(100)}), files[3].path, row_group_size=10 if harm == "changed" else 100)
    assert not part.whole(["x"])
    with pytest.raises(FileMismatch, match="changed while it was read"):
        list(part.batches(SCHEMA, {"x": None}))


@pytest.mark.parametrize("harm", ["changed", "removed"])
def test_a_file_that_is_not_what_was_written_is_refused(parts, harm):
    records, files, _ = parts
    path = Path(files[1].path)
    if harm == "removed":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with pytest.raises(FileMismatch, match="encoded records"):
        task(records, files).part(1)
