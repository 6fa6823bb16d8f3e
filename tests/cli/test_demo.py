"""`onedraw demo`, end to end; and what makes the command line pleasant: quick help, completion."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).parent / "onedraw"


def test_the_demonstration_plans_releases_verifies_audits_and_reports(run, tmp_path):
    code, out, err = run("demo", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert [path.name for path in tmp_path.iterdir()] == ["onedraw-demo"]
    assert document["verified"] == "authentic"
    assert document["audit"]["passed"] is True
    assert document["audit"]["exact_epsilon"] <= document["audit"]["promised_epsilon"]
    assert "(ε = 1, δ = 1e-06)" in document["sentence"] or "ε = 0.9" in document["sentence"]
    assert [row["name"] for row in document["estimates"]] == ["radius", "texture", "concave_points", "intercept"]
    assert len(document["predictions"]) == 2
    means = {row["name"]: row for row in document["means"]}
    for name, mean in (("benign", 12.15), ("malignant", 17.46)):  # of the whole file, in public
        row = means[f"diagnosis={name}: mean"]
        assert row["low"] < row["estimate"] < row["high"] < row["low"] + 6
        assert abs(row["estimate"] - mean) < 2 * (row["high"] - row["low"])
    assert run("verify", document["means_release"])[0] == 0
    assert 0 < document["epsilon_left"] < 3
    page = Path(document["report"]).read_text()
    assert "An attack on the mechanism" in page or "attack" in page
    assert run("verify", document["release"])[0] == 0


def test_its_bounds_are_declared_in_the_code_not_computed(run):
    from onedraw.cli import demo

    assert "upper: 25" in demo.SCHEMA
    source = Path(demo.__file__).read_text()
    assert ".max(" not in source
    assert ".min(" not in source


def test_a_place_that_cannot_be_written_is_one_paragraph(run):
    code, out, err = run("demo", "--folder", "/proc/nowhere")
    assert code == 2
    assert not out
    assert "--folder" in err


@pytest.mark.slow
def test_it_takes_under_a_minute_the_first_time_and_a_quarter_afterwards(tmp_path):
    """Processor time: what a stopwatch shows on a machine that does nothing else."""
    environment = os.environ | {"ONEDRAW_CACHE": str(tmp_path / "cache")}
    for limit in (60.0, 15.0):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run(
            [COMMAND, "demo"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert result.returncode == 0, result.stderr
        assert "Reports: " in result.stdout
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < limit


def test_help_is_there_at_once():
    """Half a second of processor time at the most, imports included."""
    code = (
        "import sys, time; sys.argv = ['onedraw', '--help']\n"
        "from onedraw.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(time.process_time())"
    )
    taken = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()[-1]) for _ in range(2)]  # fmt: skip
    assert min(taken) < 0.5


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_for_every_common_shell(shell):
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    result = subprocess.run(
        [COMMAND, "--show-completion", shell], env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert "onedraw" in result.stdout


@pytest.mark.parametrize(("typed", "offered"), [("onedraw rel", "release"), ("onedraw plan --for", "--for-error")])
def test_completion_offers_commands_and_options(typed, offered):
    words = typed.split()
    environment = os.environ | {
        "_ONEDRAW_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)
    }  # fmt: skip
    result = subprocess.run([COMMAND], env=environment, capture_output=True, text=True, timeout=60)
    assert offered in result.stdout.split()


def test_completion_can_be_installed(tmp_path):
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", "HOME": str(tmp_path)}
    result = subprocess.run(
        [COMMAND, "--install-completion", "bash"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / ".bash_completions" / "onedraw.sh").exists()


@pytest.mark.parametrize(
    "command", ["demo", "plan", "release", "predict", "verify", "audit", "ledger show", "schema check"]
)
def test_every_command_offers_json(run, command):
    code, out, _ = run(*command.split(), "--help")
    assert code == 0
    assert "--json" in out
