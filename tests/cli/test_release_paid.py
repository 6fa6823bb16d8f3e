"""Nothing paid for is lost: `onedraw release` killed at any moment, on a full disk, twice to one file."""

import errno
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import onedraw as od
from onedraw.data import arrow_tables
from onedraw.release import files

WORKER = Path(__file__).with_name("release_worker.py")

SCHEMA = """\
dataset: patients-2026
columns:
  outcome: {kind: binary, levels: [no, yes], missing: no}
  age: {kind: number, lower: 0, upper: 90, missing: 40}
"""


@pytest.fixture
def place(run, tmp_path):
    """A schema, 60 patients, and a ledger with room for many releases; ``fresh.db`` is a copy of it."""
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    (tmp_path / "patients.csv").write_text("outcome,age\n" + "yes,70\nno,30\nno,45\n" * 20)
    assert run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 50, "--delta", 1e-3)[0] == 0
    shutil.copy(tmp_path / "ledger.db", tmp_path / "fresh.db")
    return tmp_path


@pytest.fixture
def run_worker(place):
    """Runs the worker in memory where there is a folder for it: a kill is the same there, and syncing takes no time."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.TemporaryDirectory(dir=memory)
    for path in place.iterdir():
        if path.is_file() and path.suffix != ".mark":
            shutil.copy(path, folder.name)
    od.Ledger.restore(Path(folder.name) / "ledger.db", accept_lost_spends=True)

    def run(*arguments):
        completed = subprocess.run(
            [sys.executable, str(WORKER), *map(str, arguments)], cwd=folder.name, capture_output=True, text=True, check=False,
            timeout=500,
        )  # fmt: skip
        assert completed.returncode == 0, completed.stderr
        return json.loads(completed.stdout)

    yield run
    folder.cleanup()


@pytest.fixture
def small_disk(place):
    """A file system of 64 kB, where one may be mounted."""
    folder = place / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(command, capture_output=True, check=False).returncode == 0
    yield str(folder) if mounted else "-"
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


def check_finished(rounds):
    """Each was finished by the way that was printed, under one charge, and left nothing but its file."""
    for one in rounds:
        assert one["again"]["code"] == 0, one
        assert one["charges"] == 1, one
        assert one["certified"], one
        assert one["left"] == [], one
        assert one["all_settled"], one


def check_kills(run_worker, rounds):
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed of the moments: {seed}")
    found = run_worker("kill", rounds, seed)
    check_finished(found)
    # The moments do fall between the charge and the end: otherwise nothing would have been shown.
    assert any(one["seen"].startswith("charged") for one in found if one["code"] < 0)
    assert sum(one["code"] < 0 for one in found) > rounds / 3


@pytest.mark.finding("A4")
def test_a_release_killed_at_a_random_moment_is_finished_under_the_same_charge(run_worker):
    check_kills(run_worker, 20)


@pytest.mark.slow
@pytest.mark.finding("A4")
@pytest.mark.parametrize("batch", range(20))
def test_a_thousand_kills_lose_neither_a_spend_nor_a_draw(run_worker, batch):
    check_kills(run_worker, 50)


@pytest.mark.slow
@pytest.mark.finding("A4")
def test_finishing_may_be_killed_at_any_step_too(run_worker):
    found = run_worker("stages_of_finishing")
    check_finished(found)
    assert {"charged", "charged settled"} <= {one["seen"] for one in found}


@pytest.mark.finding("A4")
def test_a_release_killed_at_any_step_is_finished_under_the_same_charge(run_worker):
    found = run_worker("stages")
    check_finished(found)
    assert {"claimed", "charged", "charged settled", "charged settled named"} <= {one["seen"] for one in found}


@pytest.mark.finding("A4")
def test_a_median_an_evaluation_and_a_choice_that_were_paid_for_are_never_lost(run, place, request):
    words = ("--schema=schema.yaml", "--target=outcome", "--model=logistic", "--epsilon=5", "--ledger=ledger.db")
    assert run("release", "patients.csv", *words, "--out=model.json")[0] == 0
    shutil.copy(place / "model.json", place / "other.json")
    for name, found in request.getfixturevalue("run_worker")("questions").items():
        assert [one["code"] for one in found] == [-9, -9], name
        assert [one["seen"] for one in found] == ["charged", "charged"], name
        check_finished(found)


@pytest.mark.finding("A4")
def test_of_two_releases_to_one_file_the_second_is_refused_before_its_charge(run_worker):
    for one in run_worker("race", 3):
        assert one["codes"] == [0, 2], one
        assert one["charges"] == 1, one
        assert one["authentic"], one
        assert one["left"] == [], one
        assert any("being written" in said or "exists already" in said for said in one["err"]), one


@pytest.mark.finding("A4")
def test_a_full_disk_is_noticed_before_the_charge_or_loses_nothing(run_worker, small_disk):
    found = run_worker("disk", small_disk)
    refused = [found.pop("limit at the claim")]
    printed = found.pop("limit while writing")
    assert printed["code"] == 5, printed
    assert printed["charges"] == 1, printed
    assert printed["printed_is_authentic"], printed
    assert printed["left"] == [], printed
    if small_disk != "-":
        refused += [found.pop("full at the claim"), found.pop("full ledger at the charge")]
        drawn = found.pop("full in the draw")
        assert (drawn["code"], drawn["charges"], drawn["authentic"]) == (0, 1, True), drawn
        unsettled = found.pop("full ledger at settling")
        assert unsettled["code"] == 5, unsettled
        assert unsettled["again"]["code"] == 0, unsettled
        assert (unsettled["charges"], unsettled["authentic"], unsettled["left"]) == (1, True, []), unsettled
    for one in refused:
        assert (one["code"], one["charges"], one["left"]) == (2, 0, []), one
    assert found == {}


@pytest.mark.finding("A4")
def test_a_damaged_page_is_noticed_before_the_charge(run, place):
    spoil(place / "patients.parquet", column=0)
    code, _, err = run(*arguments("patients.parquet"))
    assert code == 2, err
    assert "damaged" in err
    assert charges(run) == 0
    assert list(place.glob("release.json*")) == []


def test_a_damaged_page_of_a_long_file_keeps_the_spend_and_the_mended_file_finishes(run, place, monkeypatch):
    """It is decoded once, by the pass that is paid for."""
    spoil(place / "patients.parquet", column=1)
    whole = (place / "patients.parquet").read_bytes()
    spoil(place / "patients.parquet", column=0)
    monkeypatch.setattr(arrow_tables, "FIRST_CHECKED", 0)
    code, _, err = run(*arguments("patients.parquet"))
    assert code == 5, err
    assert "damaged" in err
    assert not (place / "release.json").exists()
    entry = re.search(r"--resume (\w+)", err)[1]
    assert run(*arguments("patients.parquet"), "--resume", entry)[0] == 5
    (place / "patients.parquet").write_bytes(whole)
    assert run(*arguments("patients.parquet"), "--resume", entry)[0] == 0
    assert (place / "release.json").exists()
    assert charges(run) == 1


def test_a_damaged_page_of_another_column_does_not_matter(run, place):
    spoil(place / "patients.parquet", column=1)
    assert run(*arguments("patients.parquet"))[0] == 0
    assert charges(run) == 1


def test_the_ledger_shows_what_was_paid_for_and_not_finished(run, place):
    assert "not finished" not in run("ledger", "show", "ledger.db")[1]
    assert run(*arguments("patients.csv"))[0] == 0
    assert "not finished" not in run("ledger", "show", "ledger.db")[1]
    ledger = od.Ledger.open(place / "ledger.db")
    entry = ledger.reserve("patients-2026", od.PureDP(0.01), label="proportion of outcome").entry
    assert f"--resume {entry}, which charges nothing more." in run("ledger", "show", "ledger.db")[1]
    padded = ledger.reserve("patients-2026", od.PureDP(0.01), timing=1e-12)
    assert f"--resume {padded.entry}, which charges nothing more." in run("ledger", "show", "ledger.db")[1]
    ledger.begin(padded)
    ledger.begin(padded)
    shown = run("ledger", "show", "ledger.db")[1]
    assert f"--resume {padded.entry}, which charges nothing more but γ₂, for the work of another attempt." in shown
    assert "with padded work (γ₂ = 1e-12)" in shown
    assert "another attempt at entry" in shown
    assert f"first draw of entry {padded.entry} begins, paid by its reservation" in shown


def spoil(path, *, column):
    """Write a Parquet file and overwrite bytes of one column's page."""
    table = pa.table({"outcome": ["yes", "no", "no", ""] * 5000, "age": 90.0 * np.random.default_rng(1).random(20_000)})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(column)
    middle = chunk.data_page_offset + chunk.total_compressed_size // 2
    content = bytearray(path.read_bytes())
    content[middle : middle + 40] = bytes(40)
    path.write_bytes(content)


def arguments(source="patients.csv", **changes):
    options = {"schema": "schema.yaml", "target": "outcome", "model": "proportion", "epsilon": 0.01, "mechanism": "concentrated",
               "ledger": "ledger.db", "out": "release.json"} | changes  # fmt: skip
    return ["release", source, *(f"--{name}={value}" for name, value in options.items())]


def charges(run):
    return json.loads(run("ledger", "show", "ledger.db", "--json")[1])["datasets"]["patients-2026"]["releases"]


@pytest.mark.finding("C1")
def test_scores_that_do_not_fit_leave_no_file_behind(run, place, small_disk):
    assert run(*arguments(model="logistic", epsilon=5, mechanism="gdp"))[0] == 0
    (place / "new.csv").write_text("age\n" + "40\n" * 20_000)
    folder, limits = Path(small_disk), resource.getrlimit(resource.RLIMIT_FSIZE)
    if small_disk == "-":  # no file system of its own: a limit on the size of any file, as under a quota
        folder = place / "small"
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, limits[1]))
    try:
        code, _, err = run("predict", "release.json", "new.csv", "--out", folder / "scores.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2, err
    assert "could not be written" in err
    assert list(folder.iterdir()) == []


def test_release_on_failing_disk_says_so_in_a_paragraph(place, run, monkeypatch):
    """A disk can fail where no command expects it (tools/exhaustive_faults.py found this)."""

    def fails(target):
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(target))

    monkeypatch.setattr(files, "check_unclaimed", fails)
    code, printed, said = run(
        "release", "patients.csv", "--schema", "schema.yaml", "--target", "age", "--model", "mean", "--epsilon", "0.5",
        "--ledger", "ledger.db", "--out", "release.json",
    )  # fmt: skip
    assert (code, printed) == (2, "")
    assert said.startswith("onedraw: Input/output error (release.json).")
    assert "onedraw ledger show" in said
