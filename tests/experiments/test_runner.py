"""The runner of studies: what is finished is kept, whatever happens then; and each thing that can go wrong says what to do."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.runner import Options
from experiments.study import Table, grid
from pyarrow import parquet

from experiments import cells, data, runner
from onedraw import errors
from onedraw.errors import CannotWrite, MissingExtra, OnedrawError, WrongCall
from tests.experiments.toy.run import STUDIES, figures, study

ROOT = Path(__file__).resolve().parents[2]
(TOY,) = STUDIES
PLAIN = replace(TOY, figures=lambda table: {})


def stored(out):
    return sorted((out / "toy" / "cells").glob("*.parquet"))


def test_a_run_leaves_rows_figures_and_a_summary(tmp_path):
    result = runner.reproduce(TOY, Options(), tmp_path)
    assert result["passed"]
    assert (result["cells"], result["computed"]) == (3, 3)
    folder = Path(result["folder"])
    assert {file.name for file in folder.iterdir()} == {
        "results.parquet", "summary.json", "summary.md", "value.png", "value.svg"
    }  # fmt: skip
    rows = parquet.read_table(folder / "results.parquet").to_pydict()
    assert rows["cell"] == [1] * 3 + [2] * 3 + [3] * 3
    assert rows["words"][-1] == "cell 3"
    summary = (folder / "summary.md").read_text()
    assert "| value cell=2 | ≤ 2.02 | 2.01 (0.0058) | paper | passed |" in summary
    assert "3 cells, 3 of them computed now" in summary
    assert "processor time for all cells" in summary
    assert json.loads((folder / "summary.json").read_text()) == result
    drawn = (folder / "value.svg").read_bytes()
    assert runner.reproduce(TOY, Options(), tmp_path)["computed"] == 0
    assert (folder / "value.svg").read_bytes() == drawn, "the same rows, the same figure"


def test_processes_give_the_rows_of_one(tmp_path):
    alone, together = (runner.reproduce(PLAIN, Options(jobs=jobs), tmp_path / str(jobs)) for jobs in (1, 2))
    read = [parquet.read_table(Path(one["folder"]) / "results.parquet") for one in (alone, together)]
    assert read[0].equals(read[1])


def test_a_quick_run_checks_less_with_wider_tolerances(tmp_path):
    result = runner.reproduce(PLAIN, Options(quick=True), tmp_path)
    assert [one["verdict"] for one in result["expectations"]] == ["passed", "not checked", "not checked"]
    fewer = runner.reproduce(PLAIN, Options(seeds=2), tmp_path)
    assert [one["verdict"] for one in fewer["expectations"]] == ["passed", "not checked", "not checked"]


def test_more_seeds_in_batches_compute_only_what_is_new(tmp_path):
    cut = replace(PLAIN, batch=2)
    assert runner.reproduce(cut, Options(seeds=4), tmp_path)["computed"] == 6
    assert runner.reproduce(cut, Options(seeds=6), tmp_path)["computed"] == 3
    assert runner.reproduce(cut, Options(seeds=6, fresh=True), tmp_path)["computed"] == 9


def test_a_killed_run_loses_only_the_cell_in_progress(tmp_path):
    """Seven cells of 0.15 s; killed as soon as three are there."""
    code = (
        "from pathlib import Path\nfrom dataclasses import replace\nfrom experiments.runner import Options, reproduce\n"
        "from tests.experiments.toy.run import grid, study\n"
        f"toy = study(grid(cell=[1, 2, 3, 4, 5, 6, 7], seconds=[0.15]), figures=lambda table: {{}})\n"
        f"print(reproduce(toy, Options(), Path({str(tmp_path)!r}))['computed'])\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as first:
        while len(stored(tmp_path)) < 3:
            assert first.poll() is None
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
    kept = len(stored(tmp_path))
    assert 3 <= kept < 7
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(second.stdout) == 7 - kept


def test_ctrl_c_says_what_is_done_and_that_the_same_command_resumes(tmp_path):
    stopped = study([*grid(cell=[1, 2]), {"cell": 3, "fate": "interrupted"}])
    with pytest.raises(
        runner.Interrupted, match=r"2 of the 3 cells of toy are finished and kept. The same command"
    ) as caught:
        runner.reproduce(stopped, Options(), tmp_path)
    assert caught.value.exit_code == 130
    assert len(stored(tmp_path)) == 2


def test_a_process_that_dies_keeps_what_the_others_finished(tmp_path):
    ill = study([{"cell": 1}, {"cell": 2, "seconds": 1.0, "fate": "killed"}])
    with pytest.raises(OnedrawError, match=r"ended from outside.*fewer --jobs"):
        runner.reproduce(ill, Options(jobs=2), tmp_path)
    assert len(stored(tmp_path)) == 1


def test_a_full_disk_keeps_what_is_finished(tmp_path, monkeypatch):
    written = []

    def write(table, place, **options):
        if len(written) == 2:
            Path(place).write_bytes(b"PAR1 and then no room")
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(place)
        honest(table, place, **options)

    honest = parquet.write_table
    monkeypatch.setattr(parquet, "write_table", write)
    with pytest.raises(CannotWrite, match=r"The disk is full.*keeps the 2 cells.*same command again"):
        runner.reproduce(PLAIN, Options(), tmp_path)
    monkeypatch.undo()
    assert len([*(tmp_path / "toy" / "cells").iterdir()]) == 2, "nothing half written is left"
    assert runner.reproduce(PLAIN, Options(), tmp_path)["computed"] == 1


@pytest.mark.parametrize(
    "harm",
    [
        lambda whole: whole[:-40],
        lambda whole: b"",
        lambda whole: b"PAR1 of somebody else",
    ],
    ids=["cut", "empty", "no cell"],
)
def test_a_damaged_cell_is_computed_again(tmp_path, harm):
    runner.reproduce(PLAIN, Options(), tmp_path)
    file, said = stored(tmp_path)[0], []
    file.write_bytes(harm(file.read_bytes()))
    result = runner.reproduce(PLAIN, Options(), tmp_path, say=said.append)
    assert result["computed"] == 1
    assert "damaged" in said[0]
    assert runner.reproduce(PLAIN, Options(), tmp_path)["computed"] == 0


def test_no_bit_changes_rows_unseen(tmp_path):
    runner.reproduce(PLAIN, Options(), tmp_path)
    file, damaged = stored(tmp_path)[0], 0
    whole, right = file.read_bytes(), cells.read(file).rows
    for place in range(0, len(whole), 5):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            assert cells.read(file).rows.equals(right)
        except cells.Damaged:
            damaged += 1
    assert damaged > 50


def test_seconds_of_another_machine_are_told_apart(tmp_path, monkeypatch):
    assert "another machine" not in runner.reproduce(PLAIN, Options(), tmp_path)["times"]
    monkeypatch.setattr(cells, "machine", lambda: "a slower one, 1 cores")
    told = runner.reproduce(PLAIN, Options(), tmp_path)["times"]
    monkeypatch.undo()
    assert f"3 of them were computed on another machine: {cells.machine()}." in told


def test_other_code_of_run_is_another_cell_and_other_code_of_the_library_is_told(tmp_path, monkeypatch):
    runner.reproduce(PLAIN, Options(), tmp_path)
    monkeypatch.setattr(cells, "library", lambda: "another")
    assert (
        "3 kept cells are of other code of the library: --fresh"
        in runner.reproduce(PLAIN, Options(), tmp_path)["times"]
    )
    monkeypatch.setattr(cells, "code_of", lambda module: "another")
    assert runner.reproduce(PLAIN, Options(), tmp_path)["computed"] == 3


def test_the_code_of_a_cell_is_its_file_and_what_that_imports(monkeypatch):
    before = cells.code_of.__wrapped__("experiments.beta_bayes_simulation.attack")
    names = set()
    honest = cells._source
    monkeypatch.setattr(cells, "_source", lambda name: names.add(name) or honest(name))
    assert cells.code_of.__wrapped__("experiments.beta_bayes_simulation.attack") == before
    cells.code_of.__wrapped__("tests.experiments.test_runner")
    assert "experiments.beta_bayes_simulation.attack" in names
    assert not {"experiments.runner", "experiments.study", "experiments.figures"} & names


def test_a_missing_data_file_is_named_with_its_place_and_source(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEDRAW_DATA", str(tmp_path))
    with pytest.raises(WrongCall, match=r"abalone.csv is not in .*archive.ics.uci.edu/dataset/1/abalone"):
        runner.reproduce(replace(TOY, data=("abalone.csv",)), Options(), tmp_path)
    monkeypatch.delenv("ONEDRAW_DATA")
    assert data.folder() == ROOT.parent / "shared" / "data"


def test_figures_without_matplotlib_are_refused_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'onedraw\[figures\]'"):
        runner.reproduce(TOY, Options(), tmp_path)
    assert not stored(tmp_path)


def test_wrong_numbers_are_refused():
    for wrong in ({"jobs": 0}, {"seeds": 0}):
        with pytest.raises(WrongCall, match="at least 1"):
            Options(**wrong)


def test_the_environment_of_processes_is_taken_back_and_what_is_set_stays():
    before = dict(os.environ)
    with runner._environment({"ONEDRAW_TOY": "1", "PATH": "nowhere"}):
        assert os.environ["ONEDRAW_TOY"] == "1"
        assert os.environ["PATH"] == before["PATH"]
    assert dict(os.environ) == before


def test_a_panel_for_each_value_and_a_line_for_each_group():
    table = Table({"seed": [0, 1, 0, 1], "cell": [1, 1, 2, 2], "value": [1.0, 2.0, 3.0, float("nan")]})
    (figure,) = figures(table).values()
    assert len(figure.axes[0].get_legend_handles_labels()[1]) == 2
    assert table.where(cell=2, none=3).rows == 0
