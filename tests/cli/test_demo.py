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
    place = Path(document["folder"])
    assert [path.name for path in tmp_path.iterdir()] == ["onedraw-demo"]
    assert document["plan"]["eligible"]
    assert document["verified"]["answer"] == "authentic"
    assert document["audit"]["passed"] is True
    (case,) = document["audit"]["cases"]
    assert case["exact_epsilon"] <= case["promised_epsilon"]
    assert [row["name"] for row in document["model"]["estimates"]] == [
        "radius",
        "texture",
        "concave_points",
        "intercept",
    ]
    given = [row["std_err"] is not None for row in document["model"]["estimates"]]
    assert all(given) or document["model"]["why_no_interval"]
    assert "(ε = 1, δ = 1e-06)" in document["verified"]["sentence"]
    assert len(document["predictions"]["labels"]) == 2
    means = {row["name"]: row for row in document["means"]["estimates"]}
    for name, mean in (("benign", 12.15), ("malignant", 17.46)):  # of the whole file, in public
        row = means[f"diagnosis={name}: mean"]
        assert row["low"] < row["estimate"] < row["high"] < row["low"] + 6
        assert abs(row["estimate"] - mean) < 2 * (row["high"] - row["low"])
    assert document["left"]["datasets"]["breast-cancer-demo"]["remaining_epsilon"] == pytest.approx(1.5)
    for name in ("means", "model"):
        assert run("verify", place / f"{name}.json")[0] == 0
        assert "What the best possible attacker could do" in (place / f"{name}.html").read_text()


def test_it_shows_what_a_user_would_type_and_what_follows_works(run, monkeypatch):
    from onedraw.cli import demo

    code, out, err = run("demo")
    assert code == 0, err
    typed = [line for line in out.splitlines() if line.startswith("$ ")]
    assert len(typed) == 1 + len(demo.STEPS) + len(demo.NEXT)
    for _, command in demo.STEPS.values():
        assert "\n".join(demo.typed(command)) in out
    assert "For this no record is read." in out
    assert "Reports: " in out
    monkeypatch.chdir(typed[0].removeprefix("$ cd "))
    for command in demo.NEXT.values():
        assert run(*command.split())[0] == 0


def test_what_a_command_prints_is_cut_to_the_terminal(run, monkeypatch):
    from onedraw.cli import demo

    monkeypatch.setattr(demo, "STEPS", {"budget": demo.STEPS["budget"]})
    monkeypatch.setenv("COLUMNS", "60")
    (line,) = [line for line in run("demo")[1].splitlines() if line.startswith("Opened")]
    assert len(line) == 60
    assert line.endswith("…")


@pytest.mark.parametrize("written", [[], ["--json"]])
def test_a_broken_audit_is_shown_and_is_the_exit_code(run, monkeypatch, written):
    from onedraw.audit import cases
    from onedraw.audit.cases.literature import Fault
    from onedraw.cli import demo

    kept = Fault("1", "a paper", "a claim", "nothing", "a pair", "ε", claimed=1.0, value=0.5)
    monkeypatch.setattr(cases, "faults", lambda: (kept,))
    monkeypatch.setattr(demo, "STEPS", {"audit": ("Audit.", "audit literature"), "budget": demo.STEPS["budget"]})
    code, out, _ = run("demo", *written)
    assert code == 3
    assert "a paper" in out
    assert "breast-cancer-demo" in out  # it goes on


def test_an_interrupted_release_says_how_its_own_command_is_resumed(run, monkeypatch):
    from onedraw import release
    from onedraw.cli import demo

    said = []

    def stopped(*_, how_to_resume, **__):
        said.append(how_to_resume)
        raise KeyboardInterrupt

    monkeypatch.setattr(release, "release", stopped)
    monkeypatch.setattr(demo, "STEPS", {name: demo.STEPS[name] for name in ("budget", "means")})
    assert run("demo")[0] != 0
    (command,) = said
    assert command.startswith("onedraw release patients.csv --schema schema.yaml --target radius")


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
