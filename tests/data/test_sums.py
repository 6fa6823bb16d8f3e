"""`Records.sum`, the one joint: the same integers in any order, partition and container, and refused where one was lost."""

import gc
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onedraw as od
from onedraw.data import Schema, read, sums
from onedraw.data.shards import test_block
from onedraw.data.sums import BLOCK, USUAL, Blocks, Statistic, Summation, block_rows, blocked
from onedraw.errors import FileMismatch, InvalidModel, WrongCall
from onedraw.methods import PerturbedMode, calibrate
from onedraw.models import Gaussian, Logistic, schema_features
from onedraw.models.fit.sums import FitRows, NewtonSums
from onedraw.models.moments.measured import Layout, SecondMoments
from onedraw.models.row_model import Rows
from onedraw.models.sums import exact_sums
from onedraw.models.sums.exact_sums import Scaled
from tests.data.cases import Parted

SCHEMA = Schema.from_dict(
    {
        "dataset": "people",
        "columns": {
            "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 40},
            "visits": {"kind": "count", "cap": 9, "missing": 0},
            "school": {"kind": "category", "levels": ["low", "middle", "high"], "missing": "low"},
            "ill": {"kind": "binary", "missing": "no"},
        },
    }
)
N = 600


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    age, visits = rng.uniform(-5, 105, n), rng.poisson(3, n)
    ill = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(2.0 - age / 40.0 - 0.1 * visits))
    return {
        "age": age,
        "visits": visits,
        "school": rng.choice(["low", "middle", "high", "?"], n),
        "ill": ill.astype(int),
    }


@dataclass(frozen=True)
class AgesAndIll(Statistic):
    """Σ age in steps of 2⁻²⁰, how many are ill, and how many there are."""

    columns: tuple[str, ...] = ("age", "ill")

    def bound(self, steps):
        return 100.0 * steps

    def of_block(self, age, ill, weight, steps):
        return np.array([(np.rint(age * steps) * weight).sum(), (ill * weight).sum(), weight.sum()])


MODEL = Logistic(**schema_features(SCHEMA, "ill"), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
ROWS = Rows(MODEL.features, MODEL.response, SCHEMA, "ill", tuple(SCHEMA.columns))
WIDTH = MODEL.features.width
NEWTON = NewtonSums(MODEL.fit_loss)


@pytest.fixture(scope="module")
def plan():
    return calibrate(PerturbedMode(), MODEL, od.ApproxDP(2.0, 1e-5), n=N)


@pytest.fixture(scope="module")
def records():
    return read(people(), SCHEMA, target="ill")


def test_a_block_is_as_long_as_n_says_and_never_longer_than_2_to_the_16():
    for n in (0, 1, 63, 64, 1000, USUAL - 1, USUAL, USUAL + 1, 10**7):
        rows = block_rows(n)
        assert rows % 64 == 0
        assert 0 < rows <= BLOCK
        assert rows * -(-n // rows) - n < 64 * (n // USUAL + 1)


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(1, 40))
def test_blocks_have_one_size_and_lose_no_record(lengths, size):
    values = np.arange(sum(lengths), dtype=float)
    pieces = np.split(values, np.cumsum(lengths)[:-1]) if lengths else []
    blocks = list(blocked([(piece, piece.astype(int)) for piece in pieces], size))
    assert all(len(array) == size for block in blocks for array in (*block.arrays, block.weight))
    assert [block.rows for block in blocks] == [int(block.weight.sum()) for block in blocks]
    kept = [np.compress(block.weight > 0, block.arrays[0]) for block in blocks]
    assert np.array_equal(np.concatenate([np.zeros(0), *kept]), values)


def test_a_sum_is_the_same_integers_whatever_holds_the_records(tmp_path, records):
    table = pa.table(people())
    pq.write_table(table, tmp_path / "people.parquet", row_group_size=70)
    sources = [people(), table, table.to_pandas(), tmp_path / "people.parquet"]
    expected = records.sum(AgesAndIll(), 2.0**20)
    assert expected[2] == N
    for source in sources:
        for batch_rows in (7, 131072):
            found = read(source, SCHEMA, target="ill", batch_rows=batch_rows).sum(AgesAndIll(), 2.0**20)
            assert np.array_equal(found, expected)


@settings(deadline=None, max_examples=12)
@given(st.lists(st.integers(0, N), max_size=5), st.randoms(use_true_random=False))
def test_any_partition_and_order_gives_the_same_integers(cuts, random):
    order = np.array(random.sample(range(N), N))
    records = read(people(), SCHEMA, target="ill")
    parted = replace(records, engine=Parted(tuple(sorted(cuts)), order))
    assert np.array_equal(parted.sum(AgesAndIll(), 2.0**20), records.sum(AgesAndIll(), 2.0**20))
    rows, same = (source.read_as(ROWS).read_as(*measured()) for source in (records, parted))
    asked = NEWTON, 2.0**14, 2.0, np.linspace(-1, 1, WIDTH)
    assert np.array_equal(rows.sum(*asked), same.sum(*asked))


def measured():
    """A reading in measured coordinates, and its public numbers."""
    root = np.eye(WIDTH - 1) + 0.1 * np.random.default_rng(3).standard_normal((WIDTH - 1, WIDTH - 1))
    return FitRows(Layout(WIDTH - 1)), np.zeros(WIDTH - 1), root, 1.3, 2.0, np.array([0.0, 1.0])


def test_a_fit_is_the_same_draw_on_parts_in_memory_and_streamed(tmp_path, plan):
    pq.write_table(pa.table(people()), tmp_path / "people.parquet", row_group_size=100)
    source = read(tmp_path / "people.parquet", SCHEMA, target="ill")
    order = np.random.default_rng(5).permutation(N)
    ways = [
        read(people(), SCHEMA, target="ill"),
        source,
        replace(source, memory=0),
        replace(source, engine=Parted((10, 10, 431), order)),
    ]
    draws = [od.release(plan, records, random_state=4) for records in ways]
    for release in draws[1:]:
        assert release.certificate.draw == draws[0].certificate.draw


def test_a_pick_from_candidates_is_the_same_on_parts_in_memory_and_streamed(records):
    plan = calibrate(od.Candidates(count=3000), MODEL, od.PureDP(1.0), n=N)
    order = np.random.default_rng(5).permutation(N)
    ways = [replace(records, memory=0), replace(records, engine=Parted((10, 10, 431), order))]
    here = od.release(plan, records, random_state=4).certificate
    for source in ways:
        assert od.release(plan, source, random_state=4).certificate.draw == here.draw


def test_an_evaluation_and_a_choice_are_the_same_on_parts(records, plan, monkeypatch):
    fits = [od.release(plan, records, random_state=seed) for seed in (4, 5)]
    order = np.random.default_rng(5).permutation(N)

    def answers():
        found = od.evaluate(fits[0], people(seed=1), epsilon=1.0, random_state=6)
        return found.release.certificate.draw, od.choose(fits, people(seed=1), epsilon=1.0, random_state=6).name

    here = answers()
    parted = lambda *args, **names: replace(read(*args, **names), engine=Parted((10, 431), order))  # noqa: E731
    monkeypatch.setattr("onedraw.estimators.judging.read", parted)
    assert answers() == here


PATHS = {
    "noisy gradients": od.NoisyGradient(weight=0.1, time=0.008),
    "in measured coordinates": od.Measured(of=od.NoisyGradient(weight=0.1, time=0.008), share=0.3),
}


@pytest.mark.parametrize("mechanism", PATHS.values(), ids=PATHS)
def test_a_path_of_noisy_gradients_is_the_same_draw_as_one_loop_and_pass_by_pass(tmp_path, records, mechanism):
    plan = calibrate(mechanism, MODEL, od.ApproxDP(2.0, 1e-5), n=N)
    assert 10 < plan.parameters["steps"] < 200
    order = np.random.default_rng(5).permutation(N)
    ways = [replace(records, memory=0), replace(records, engine=Parted((10, 10, 431), order))]
    one_loop = od.release(plan, records, random_state=4).certificate
    assert "summed exactly" in one_loop.numeric_model
    for source in ways:
        assert od.release(plan, source, random_state=4).certificate.draw == one_loop.draw


@pytest.mark.parametrize(
    ("mishap", "reason"),
    [
        (lambda parts: parts[:-1], "lost or counted twice"),
        (lambda parts: [*parts, parts[0]], "lost or counted twice"),
        (lambda parts: [parts[0], parts[0], *parts[2:]], "lost or counted twice"),
        (lambda parts: [parts[0]._replace(rows=parts[0].rows - 1), *parts[1:]], "changed while it was read"),
        (lambda parts: [parts[0]._replace(digest=b"other"), *parts[1:]], "other numbers than this machine"),
    ],
    ids=["lost", "doubled", "one for another", "fewer records", "other arithmetic"],
)
def test_a_part_that_is_lost_doubled_or_computed_otherwise_is_refused_and_the_spend_is_kept(
    tmp_path, plan, records, mishap, reason
):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("people", od.ApproxDP(4.0, 1e-4))
    parted = replace(records, engine=Parted((200, 400), mishap=mishap))
    with pytest.raises(FileMismatch, match=reason):
        od.release(plan, parted, ledger=ledger, dataset="people")
    assert [event.kind for event in ledger.events("people")][-1] == "reserved"


@pytest.mark.parametrize("others", [people(N + 1), people(N, seed=1)], ids=["one more", "as many"])
def test_a_table_that_changes_between_passes_is_refused(tmp_path, monkeypatch, others):
    """Where there is no room to keep the encoded records; otherwise all passes see those that were read first."""
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(people()), path)
    records = replace(read(path, SCHEMA, target="ill"), memory=0)
    asked = NEWTON, 2.0**14, 2.0, np.ones(WIDTH)
    kept = records.read_as(ROWS).read_as(*measured())
    monkeypatch.setenv("ONEDRAW_SCRATCH", str(tmp_path / "nowhere"))
    rows = records.read_as(ROWS).read_as(*measured())
    first = rows.sum(*asked)
    pq.write_table(pa.table(others), path)
    with pytest.raises(FileMismatch, match="changed while it was read"):
        rows.sum(*asked)
    assert np.array_equal(kept.sum(*asked), first)


def test_a_private_file_that_cannot_be_read_back_whole_is_refused():
    rows = replace(read(people(), SCHEMA, target="ill"), memory=0).read_as(ROWS)
    file = rows.source._file
    os.ftruncate(file.fileno(), os.fstat(file.fileno()).st_size - 8)
    with pytest.raises(FileMismatch, match="read back whole"):
        list(rows)


def test_blocks_of_a_private_file_can_be_kept_and_passes_do_not_disturb_each_other(monkeypatch):
    """A pass reads into places that are used again; more blocks than places."""
    monkeypatch.setattr(sums, "USUAL", 64)
    source = read(people(3000), SCHEMA, target="ill")
    rows, held = replace(source, memory=0).read_as(ROWS), source.read_as(ROWS)
    for _ in range(2):
        kept = list(rows)
        first, second = zip(*zip(rows, rows, strict=True), strict=True)
        assert len(kept) > 40
        for blocks in (kept, first, second):
            for one, other in zip(blocks, held, strict=True):
                assert all(np.array_equal(*pair) for pair in zip(one.arrays, other.arrays, strict=True))
    asked = NEWTON, 2.0**14, 2.0, np.ones(WIDTH)
    expected = held.read_as(Scaled()).read_as(*measured()).sum(*asked)
    for _ in range(5):
        assert np.array_equal(rows.read_as(Scaled()).read_as(*measured()).sum(*asked), expected)


def test_scratch_files_have_no_name_and_close_with_their_records(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEDRAW_SCRATCH", str(tmp_path))
    rows = replace(read(people(), SCHEMA, target="ill"), memory=0).read_as(ROWS)
    file = rows.source._file
    assert list(tmp_path.iterdir()) == []
    assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
    del rows
    gc.collect()
    assert file.closed


def test_a_sum_that_could_leave_64_bits_is_refused_before_any_record_is_read(records):
    with pytest.raises(InvalidModel, match="64-bit"):
        records.sum(AgesAndIll(), 2.0**60)


@pytest.mark.parametrize("n", [1, 640, 1000])
def test_blocks_added_up_several_to_a_call_give_the_same_integers(n, monkeypatch):
    """As on an accelerator; the last call has fewer blocks, or there is only one."""
    rng = np.random.default_rng(9)
    X, y = np.column_stack([rng.uniform(-1, 1, (n, 2)), np.ones(n)]), rng.choice([-1.0, 1.0], n)
    kept = Blocks.holding(n, blocked([(X, y)], 64)).read_as(Scaled())
    question = SecondMoments(Layout(2), False), 2.0**12, np.array([0.1, -0.2]), 1.0
    alone = kept.sum(*question)
    monkeypatch.setattr(exact_sums, "accelerated", lambda: True)
    monkeypatch.setattr(exact_sums, "TOGETHER", 3)
    calls, sound = [], exact_sums._added
    monkeypatch.setattr(exact_sums, "_added", lambda what, blocks, *rest: calls.append(len(blocks)) or sound(what, blocks, *rest))  # fmt: skip
    assert kept.sum(*question).tolist() == alone.tolist()
    assert calls == {1: [], 640: [3, 3, 3], 1000: [3] * 5}[n]
    calls.clear()
    assert replace(kept, held=False).sum(*question).tolist() == alone.tolist()
    assert not calls  # blocks that are read anew may share their places in memory
    monkeypatch.setattr(exact_sums, "MOST_VALUES", 2 * 64 * 4)
    assert kept.sum(*question).tolist() == alone.tolist()
    assert set(calls) <= {2}


def test_what_travels_to_a_worker_can_be_pickled_and_gives_the_same_digest():
    reading, *public = measured()
    readings = (ROWS, ()), (Scaled(1.0), ()), (reading, tuple(public))
    summation = Summation(readings, NEWTON, (2.0**14, 2.0, np.ones(WIDTH)))
    test = test_block(SCHEMA, summation.columns, block_rows(N))
    assert pickle.loads(pickle.dumps(summation)).digest(test) == summation.digest(test)
    moved = replace(summation, public=(2.0**14, 2.0, np.ones(WIDTH) * (1 + 1e-9)))
    assert moved.digest(test) != summation.digest(test)


@pytest.mark.parametrize(
    ("said", "found"), [(0, 0), ("500 MB", 500_000_000), ("2GB", 2 * 10**9), (12.0, 12), (" 1.5 kb ", 1500)]
)
def test_memory_is_given_in_bytes_or_in_words(said, found):
    assert read(people(), SCHEMA, memory=said).memory == found


@pytest.mark.parametrize("said", ["much", "-1", "1 GiB", True, float("nan"), float("inf"), "1e9", [2]])
def test_memory_that_cannot_be_read_is_refused_in_words(said):
    with pytest.raises(WrongCall, match="such as '500 MB'"):
        read(people(), SCHEMA, memory=said)


HELD = """
import re, sys
import numpy as np, pyarrow as pa
from pyarrow import parquet as pq
import onedraw as od
from onedraw.data import Schema, read
from onedraw.models import Gaussian, Logistic, schema_features
from onedraw.models.row_model import Rows
from onedraw.models.sums.exact_sums import Scaled
from onedraw.models.fit.sums import FitRows, NewtonSums
from onedraw.models.moments.measured import Layout

path, memory = sys.argv[1:]
d = 20
schema = Schema.from_dict({"columns": {**{f"x{k}": {"kind": "number", "lower": -1, "upper": 1, "missing": 0} for k in range(d)},
                                       "y": {"kind": "binary", "missing": "no"}}})
model = Logistic(**schema_features(schema, "y"), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))

def total(records):
    rows = model.summarise(records).records.read_as(Scaled()).read_as(FitRows(Layout(d)), np.zeros(d), np.eye(d), 0.5, 2.0, np.array([0.0, 1.0]))
    return [int(rows.sum(NewtonSums(model.fit_loss), 2.0**14, 2.0, np.ones(d + 1))[0]) for _ in range(3)]

few = {name: np.tile(np.array([0.5, -0.25] if name != "y" else [1, 0]), 40_000) for name in schema.columns}
total(read(few, schema, target="y"))  # libraries are loaded, programs compiled

def peak():  # not ru_maxrss, which remembers the process that started this one
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

before = peak()
sums = total(read(path, schema, target="y", memory=memory))
print(peak() - before, len(set(sums)))
"""


@pytest.fixture(scope="module")
def long_file(tmp_path_factory):
    """4 million records of 20 columns: 672 MB encoded."""
    path, rng = tmp_path_factory.mktemp("long") / "long.parquet", np.random.default_rng(0)
    part = {**{f"x{k}": rng.uniform(-1.0, 1.0, 200_000) for k in range(20)}, "y": rng.integers(0, 2, 200_000)}
    with pq.ParquetWriter(path, pa.table(part).schema) as writer:
        for _ in range(20):
            writer.write_table(pa.table(part))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "least", "most"), [("20 MB", 0, 400), ("2 GB", 672, 4000)])
def test_a_file_much_larger_than_memory_is_summed_in_bounded_memory(long_file, memory, least, most):
    """Beyond what a small table takes; held in memory it would be the encoded records at least. What decoding keeps to itself is
    up to Arrow: 200 to 310 MB were seen."""
    found = subprocess.run(
        [sys.executable, "-c", HELD, str(long_file), memory], capture_output=True, text=True, check=True
    )
    grown, sums = map(int, found.stdout.split())
    assert least <= grown / 1024 < most
    assert sums == 1
