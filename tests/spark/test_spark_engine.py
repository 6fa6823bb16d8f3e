"""Spark for real: the same integers, draw and certificate as one process, whatever happens to a task; refused where one was lost."""

from __future__ import annotations

import pickle
import stat
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import onedraw as od
from onedraw.data import Schema, read
from onedraw.data.persons import NOBODY_KEY, OWNER
from onedraw.data.shards import File, Pass, RowGroups
from onedraw.data.spark_tables import Encoding
from onedraw.data.sums import Summation
from onedraw.errors import FileMismatch, InvalidSchema, WrongCall
from onedraw.ledger import Ledger
from onedraw.methods import PerturbedMode, calibrate
from onedraw.methods.fit import AveragedSteps
from onedraw.models import Gaussian, Logistic, schema_features
from tests.spark.spark_statistics import KillsItsExecutor, OtherArithmetic, RunsTwice, Totals

N = 70_000  # two blocks, so two parts
ODD_CELL = "Zzyzx-4711-ß"
DECLARED = {
    "dataset": "people",
    "columns": {
        "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 40},
        "visits": {"kind": "count", "cap": 9, "missing": 0},
        "region": {"kind": "category", "levels": ["north", "south", "west"], "missing": "north"},
        "ill": {"kind": "binary", "missing": "no"},
    },
}
SCHEMA = Schema.from_dict(DECLARED)
PERSONS = Schema.from_dict(DECLARED | {"person": "who", "max_records": 2})
MODEL = Logistic(**schema_features(SCHEMA, "ill"), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))


@pytest.fixture(scope="module")
def people() -> pa.Table:
    rng = np.random.default_rng(7)
    age, visits = rng.uniform(-5, 105, N), rng.poisson(3, N)
    ill = rng.uniform(size=N) < 1.0 / (1.0 + np.exp(2.0 - age / 40.0 - 0.1 * visits))
    region = rng.choice(["north", "south", "west", ODD_CELL], N)
    who = rng.integers(0, N // 2, N).astype(object)
    who[::1000] = None
    return pa.table({"age": age, "visits": visits, "region": region, "ill": ill.astype(int), "who": pa.array(who)})


@pytest.fixture(scope="module")
def places(people, tmp_path_factory) -> dict[str, Path]:
    """The same records as one file, and as a folder of four."""
    folder = tmp_path_factory.mktemp("people")
    (folder / "four").mkdir()
    pq.write_table(people, folder / "one.parquet")
    for place, start in enumerate(range(0, N, N // 4)):
        pq.write_table(people.slice(start, N // 4), folder / "four" / f"{place}.parquet")
    return {"one": folder / "one.parquet", "four": folder / "four"}


@pytest.fixture(scope="module")
def plain(cluster, places):
    """Nothing but Parquet files, which workers decode themselves."""
    return cluster.session.read.parquet(str(places["four"]))


@pytest.fixture(scope="module")
def frame(plain):
    """A query, which Spark answers once, into files of encoded records."""
    return plain.where("true")


@pytest.fixture(scope="module")
def records(frame):
    return read(frame, SCHEMA, target="ill")


@pytest.fixture(scope="module")
def local(places):
    return read(places["one"], SCHEMA, target="ill")


@pytest.fixture(scope="module")
def plan():
    return calibrate(PerturbedMode(), MODEL, od.ApproxDP(2.0, 1e-5), n=N)


@pytest.fixture(scope="module")
def fitted(local, plan):
    return od.release(plan, local, random_state=5)


@pytest.fixture(scope="module")
def mean():
    """A release of one pass."""
    return od.plan(SCHEMA, "age", model="mean", epsilon=1.0, n=N).plan


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True)
    ledger.init("people", od.ApproxDP(100.0, 1e-3))
    return ledger


def charged(ledger):
    return [str(event.kind) for event in ledger.events()].count("reserved")


@pytest.fixture
def befalls(monkeypatch, tmp_path):
    """In the pass of a given number, something befalls the first worker."""
    run, passes = Encoding.run, count()

    def set_up(fates):
        def unlucky(self, task):
            fate = fates.get(next(passes))
            if fate is not None:
                statistic = fate(task.summation.statistic, str(tmp_path / fate.__name__))
                task = replace(task, summation=replace(task.summation, statistic=statistic))
            return run(self, task)

        monkeypatch.setattr(Encoding, "run", unlucky)

    return set_up


def same_but_for_the_engine(here, there):
    """The whole certificate, the draw in it; returns what is said of the engine."""
    here, there = (release.certificate.model_dump() for release in (here, there))
    engine = there["data"].pop("engine")
    own = here["data"].pop("engine", {"name": "one process"})  # absent where nothing compiled ran
    assert own["name"] == "one process"
    assert own.get("device", engine["device"]) == engine["device"]
    assert here["draw"] == there["draw"]
    assert {name for name in here if here[name] != there[name]} <= {"prepared_at", "ledger"}
    assert (engine["name"], engine["version"][:2], len(engine["digest"])) == ("Spark", "4.", 64)
    return engine


# ── the same ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sums_are_the_same_integers_as_in_one_process(records, plain, local):
    expected = local.sum(Totals())
    assert np.array_equal(records.sum(Totals()), expected)
    assert np.array_equal(read(plain, SCHEMA).sum(Totals()), expected)


def test_a_fit_has_the_same_draw_and_certificate_as_in_one_process(plain, local, plan, fitted):
    there = read(plain, SCHEMA, target="ill")
    engine = same_but_for_the_engine(fitted, od.release(plan, there, random_state=5))
    assert engine["parts"] == 2
    assert all(isinstance(part, RowGroups) for part in there._table.files(["age"]))


REARRANGED = {
    "a query": lambda frame: frame,
    "permuted": lambda frame: frame.orderBy("visits", "age"),
    "partitioned otherwise": lambda frame: frame.repartition(5),
    "in one partition": lambda frame: frame.coalesce(1),
}


@pytest.mark.parametrize("arranged", REARRANGED)
def test_a_release_has_the_same_draw_and_certificate_in_any_order_and_partition(frame, local, mean, arranged):
    there = read(REARRANGED[arranged](frame), SCHEMA, target="age")
    same_but_for_the_engine(*(od.release(mean, data, random_state=5) for data in (replace(local, target="age"), there)))
    assert all(isinstance(part, File) for part in there._table.files(["age"]))


def test_files_in_another_order_and_other_parts_of_them_give_the_same(cluster, places, local, mean):
    files = sorted(map(str, places["four"].iterdir()), reverse=True)
    there = read(cluster.session.read.parquet(*files).select("ill", "age", "visits", "region"), SCHEMA, target="age")
    there._table.part_count = 3
    engine = same_but_for_the_engine(
        *(od.release(mean, data, random_state=5) for data in (replace(local, target="age"), there))
    )
    assert engine["parts"] == 3


def test_the_encoded_records_are_files_of_mode_0600_in_a_folder_of_mode_0700(records):
    files = [Path(file.path) for file in records._table.files(["age"])]
    assert len(files) == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert {stat.S_IMODE(file.parent.stat().st_mode) for file in files} == {0o700}


def test_of_a_person_the_same_records_count_as_in_one_process(frame, places):
    limited, local = read(frame, PERSONS), read(places["one"], PERSONS)
    assert np.array_equal(limited.sum(Totals()), local.sum(Totals()))
    assert not np.array_equal(limited.sum(Totals()), read(frame, SCHEMA).sum(Totals()))


def test_each_person_is_in_one_part(frame):
    records = read(frame, PERSONS, target="ill")
    files = records._table.files(records.columns)
    keys = [set(batch[OWNER].tolist()) for file in files for batch in [concatenated(file)]]
    nobody = int(NOBODY_KEY.view(np.int64))
    assert len(files) == 2
    assert keys[0] & keys[1] <= {nobody}
    assert min(map(len, keys)) > 1000
    for file in files:
        owners = file.owners()
        assert len(owners) == file.rows
        assert np.unique(owners[owners >= 0], return_counts=True)[1].max() == 2


def concatenated(file):
    batches = list(file.batches(None, {OWNER: None}))
    return {OWNER: np.concatenate([batch[OWNER] for batch in batches])}


def test_a_fit_by_person_is_the_same_as_in_one_process(frame, places):
    model = Logistic(**schema_features(SCHEMA, "ill"), scaled=True, prior=Gaussian(scale=1.0))
    plan = calibrate(AveragedSteps(persons=True), model, od.ApproxDP(2.0, 1e-5), n=N, records_per_person=2)
    here, there = (
        od.release(plan, read(source, PERSONS, target="ill"), random_state=5) for source in (places["one"], frame)
    )
    same_but_for_the_engine(here, there)


def test_a_formula_is_computed_by_workers_as_in_one_process(frame, plain, places):
    """Terms and a computed response, of encoded files and of Parquet files that workers decode themselves."""
    asked = od.plan(SCHEMA, None, "linear", formula="log(1 + age) ~ C(region)*visits + sqrt(visits)", n=N, epsilon=1.0)
    sources = [
        read(one, asked.asked.schema, target="log(1 + age)", measure=asked.asked.measure) for one in (frame, plain, places["one"])
    ]  # fmt: skip
    draws = [od.release(asked.plan, source, random_state=8).draws.tobytes() for source in sources]
    assert draws[0] == draws[1] == draws[2]


def test_a_frame_without_an_order_is_refused_where_persons_are_limited(cluster, people):
    frame = cluster.session.createDataFrame(people.slice(0, 100))
    with pytest.raises(InvalidSchema, match="no order that is the same"):
        read(frame, PERSONS).check_whole()


def test_passes_over_a_frame_that_comes_out_differently_every_time_see_the_same_records(cluster, frame):
    from pyspark.sql.functions import rand

    drawn = read(frame.withColumn("age", rand() * 100).repartition(3), SCHEMA)
    assert np.array_equal(drawn.sum(Totals()), drawn.sum(Totals()))


# ── what happens to a task ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "mishap", [lambda parts: parts[:-1], lambda parts: [*parts, parts[0]]], ids=["lost", "doubled"]
)
def test_a_part_lost_or_doubled_is_refused_and_the_spend_is_kept(records, plan, ledger, monkeypatch, mishap):
    run = Encoding.run
    monkeypatch.setattr(Encoding, "run", lambda self, task: mishap(run(self, task)))
    with pytest.raises(FileMismatch, match="lost or counted twice"):
        od.release(plan, records, ledger=ledger)
    assert charged(ledger) == 1


def test_a_worker_of_other_arithmetic_is_refused_and_the_spend_is_kept(records, plan, ledger, befalls):
    befalls({0: OtherArithmetic})
    with pytest.raises(FileMismatch, match="public test block"):
        od.release(plan, records, ledger=ledger)
    assert charged(ledger) == 1


def test_a_file_of_the_table_that_changes_after_the_charge_is_refused_and_the_spend_is_kept(
    cluster, people, mean, ledger, monkeypatch, tmp_path
):
    (tmp_path / "people").mkdir()
    pq.write_table(people, tmp_path / "people" / "0.parquet")
    changing = read(cluster.session.read.parquet(str(tmp_path / "people")), SCHEMA, target="age")
    run = Encoding.run

    def while_somebody_writes(self, task):
        pq.write_table(people.slice(1), tmp_path / "people" / "0.parquet")
        return run(self, task)

    monkeypatch.setattr(Encoding, "run", while_somebody_writes)
    with pytest.raises(FileMismatch, match="written to after its records were counted"):
        od.release(mean, changing, ledger=ledger)
    assert charged(ledger) == 1


def test_a_table_that_grows_after_it_was_counted_is_refused_before_anything_is_spent(
    cluster, people, plan, ledger, tmp_path
):
    (tmp_path / "people").mkdir()
    pq.write_table(people.slice(1), tmp_path / "people" / "0.parquet")
    pq.write_table(people.slice(0, 1), tmp_path / "people" / "1.parquet")
    grown = read(cluster.session.read.parquet(str(tmp_path / "people")), SCHEMA, target="ill")
    pq.write_table(people.slice(0, 2), tmp_path / "people" / "1.parquet")
    with pytest.raises(FileMismatch):
        od.release(plan, grown, ledger=ledger)
    assert charged(ledger) == 0


def test_encoded_records_that_changed_between_passes_are_refused_and_the_spend_is_kept(
    frame, plan, ledger, monkeypatch
):
    changed = read(frame, SCHEMA, target="ill")
    changed.check_whole()
    path = Path(changed._table.files(["age"])[0].path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileMismatch, match="encoded records"):
        od.release(plan, changed, ledger=ledger)
    assert charged(ledger) == 1


@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [(od.NoisyGradient(weight=0.1, time=1.5e-5), od.ApproxDP(2.0, 1e-5)), (od.Candidates(count=300), od.PureDP(0.003))],
    ids=["noisy gradients", "candidates"],
)
def test_a_path_and_a_pick_are_those_of_one_process(records, local, mechanism, budget):
    plan = calibrate(mechanism, MODEL, budget, n=N)
    here, there = (od.release(plan, source, random_state=4).certificate for source in (local, records))
    assert there.draw == here.draw
    assert there.numeric_model == here.numeric_model
    assert "summed exactly" in here.numeric_model


def test_a_median_and_its_interval_are_those_of_one_process(records, local):
    """Counted there, in a few passes; no record comes here."""
    plan = od.plan(SCHEMA, "age", model="median", epsilon=1.0, n=N).plan
    same_but_for_the_engine(
        *(od.release(plan, replace(source, target="age"), random_state=4) for source in (local, records))
    )


def test_a_sampler_of_many_passes_is_refused_before_the_charge_and_the_fit_is_named(records, ledger):
    from onedraw.methods import Gibbs

    slow = calibrate(Gibbs(), MODEL, od.ApproxDP(2.0, 1e-5), n=N)
    with pytest.raises(WrongCall, match="Ask for a fit"):
        od.release(slow, records, ledger=ledger)
    assert charged(ledger) == 0


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_cell_is_in_a_log_the_event_log_or_what_travels_to_a_worker(cluster, frame, records):
    read(frame, SCHEMA).sum(Totals())
    travels = Pass(records.in_files(()), records._table.files(["age"]), Summation((), Totals()), None, 0)
    written = cluster.logs()
    assert "SparkListenerJobEnd" in written  # the event log is among what was looked at
    assert "Executor: Running task" in written  # and the executors' logs
    assert ODD_CELL not in written
    assert ODD_CELL not in pickle.dumps(travels).decode("latin-1")


def test_a_failing_expression_of_the_callers_is_reported_without_the_cell_spark_quotes(cluster, frame, capfd):
    from pyspark.sql.functions import col

    failing = frame.withColumn("age", col("region").cast("double"))  # by the SQL standard a text is no number: an error
    with pytest.raises(FileMismatch, match="CAST_INVALID_INPUT") as error:
        read(failing, SCHEMA).check_whole()
    assert ODD_CELL not in str(error.value)
    shown = capfd.readouterr()
    assert "north" not in shown.out + shown.err


# the last, for Spark starts another executor meanwhile
def test_a_doubled_task_and_an_executor_killed_in_mid_pass_change_no_bit_of_a_fit(
    frame, fitted, plan, befalls, tmp_path
):
    """Of records in another order and partition."""
    befalls({0: RunsTwice, 2: KillsItsExecutor})
    there = read(frame.repartition(3).orderBy("age"), SCHEMA, target="ill")
    same_but_for_the_engine(fitted, od.release(plan, there, random_state=5))
    assert {path.name for path in tmp_path.iterdir()} >= {"RunsTwice-0", "RunsTwice-1", "KillsItsExecutor"}
