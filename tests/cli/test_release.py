"""The commands of the README, their exit codes and what is (not) written when they fail."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

SCHEMA = """\
dataset: patients-2026
columns:
  outcome: {kind: binary, levels: [no, yes], missing: no}
  ward: {kind: category, levels: [a, b, c], missing: a}
  age: {kind: number, lower: 0, upper: 120, missing: 50}
  visits: {kind: count, cap: 20, missing: 0}
"""


@pytest.fixture
def place(tmp_path):
    """A schema, a file of 120 patients, and a ledger with room for a few releases."""
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    rows = [f"{'yes' if i % 3 else 'no'},{'abc'[i % 3]},{i % 100},{i % 7}" for i in range(120)]
    (tmp_path / "patients.csv").write_text("\n".join(["outcome,ward,age,visits", *rows]) + "\n")
    return tmp_path


def release_arguments(**changes):
    options = {"schema": "schema.yaml", "target": "outcome", "model": "proportion", "epsilon": "1",
               "ledger": "ledger.db", "dataset": "patients-2026", "out": "release.json"} | changes  # fmt: skip
    return [
        "release",
        "patients.csv",
        *(f"--{name}={value}" for name, value in options.items() if value is not None),
    ]


def test_the_readme_walk_through(run, place):
    assert run("schema", "check", "schema.yaml", "patients.csv")[0] == 0
    assert run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)[0] == 0
    code, out, _ = run(
        "plan", "--schema=schema.yaml", "--target=outcome", "--model=proportion", "--epsilon=1", "--rows=120"
    )
    assert code == 0
    assert "diffused" in out
    code, out, err = run(*release_arguments())
    assert code == 0, err
    assert "differentially private" in out
    code, out, _ = run("verify", "release.json", "--ledger", "ledger.db")
    assert "Running time is not covered, as it says." in out
    assert code == 0
    assert "Authentic" in out
    code, out, _ = run("ledger", "show", "ledger.db")
    assert code == 0
    assert "proportion of outcome" in out
    assert run("ledger", "verify", "ledger.db")[0] == 0


@pytest.mark.parametrize(
    ("question", "target", "parameters"),
    [("proportion", "outcome", 1), ("histogram", "ward", 3), ("mean", "age", 1), ("sum", "age", 1), ("variance", "age", 1), ("count", "ward", 3),
     ("rate", "visits", 1), ("duration", "age", 1)],
)  # fmt: skip
def test_every_question_is_released_from_csv_and_parquet(run, place, question, target, parameters):
    table = pa.csv.read_csv(place / "patients.csv")
    pyarrow.parquet.write_table(table, place / "patients.parquet")
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 9, "--delta", 1e-4)
    for source in ("patients.csv", "patients.parquet"):
        arguments = release_arguments(model=question, target=target, out=f"{source}.json")
        arguments[1] = source
        code, out, err = run(*arguments, "--json")
        assert code == 0, err
        document = json.loads(out)
        assert np.shape(document["draw"]["values"]) == (1, parameters)
        assert run("verify", f"{source}.json")[0] == 0


@pytest.mark.parametrize("command", [
    ("schema", "check", "schema.yaml"),
    ("plan", "--schema=schema.yaml", "--target=ward", "--model=histogram", "--epsilon=1", "--rows=120"),
    ("ledger", "init", "new.db", "--dataset=d", "--epsilon=1"),
    ("ledger", "show", "ledger.db"),
    ("ledger", "verify", "ledger.db"),
    ("ledger", "top-up", "ledger.db", "--dataset=patients-2026", "--epsilon=4", "--delta=1e-5"),
    ("ledger", "close", "ledger.db", "--dataset=patients-2026"),
    ("verify", "release.json"),
    ("schema", "infer", "patients.csv"),
])  # fmt: skip
def test_every_command_answers_json(run, place, command):
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)
    run(*release_arguments())
    code, out, err = run(*command, "--json")
    assert code == 0, err
    assert isinstance(json.loads(out), dict)


def test_a_spent_budget_exits_4_and_writes_nothing(run, place):
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 0.5, "--delta", 1e-5)
    code, _, err = run(*release_arguments())
    assert code == 4
    assert "does not cover this release" in err
    assert not (place / "release.json").exists()


def test_a_refused_promise_exits_3(run, place):
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)
    code, _, err = run(*release_arguments(mechanism="direct", order="15"))
    assert code == 3
    assert "λ* = 2" in err
    assert "Diffused" in err
    assert not (place / "release.json").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": "0"}, "ε"),
        ({"epsilon": "-1"}, "ε"),
        ({"epsilon": "nan"}, "ε"),
        ({"delta": "1"}, "δ"),
        ({"delta": "-0.1"}, "δ"),
        ({"target": "height"}, "The column 'height' is not declared"),
        ({"model": "mode"}, "Choose one of"),
        ({"model": "histogram", "target": "age"}, "declared as number"),
        ({"mechanism": "magic"}, "No mechanism"),
        ({"prior": "1,x"}, "--prior takes numbers"),
        ({"prior": "0,1"}, "not normalizable"),
        ({"rows": "7"}, "n = 7 records, the data have 120"),
        ({"dataset": "unknown"}, "unknown"),
        ({"ledger": "missing.db"}, "missing.db"),
        ({"ledger": "schema.yaml"}, "schema.yaml"),
        ({"schema": "missing.yaml"}, "missing.yaml"),
        ({"out": "nowhere/release.json"}, "does not exist"),
        ({"out": "/proc/release.json"}, "cannot be written"),
        ({"rows": "0"}, "n must be at least 1"),
    ],
)
def test_a_wrong_call_exits_2_with_a_paragraph_and_spends_nothing(run, place, changes, words):
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)
    code, out, err = run(*release_arguments(**changes))
    assert code == 2, (out, err)
    assert words in re.sub(r"\s+", " ", err)
    assert not (place / "release.json").exists()
    _, shown, _ = run("ledger", "show", "ledger.db", "--json")
    assert json.loads(shown)["datasets"]["patients-2026"]["releases"] == 0


def test_an_existing_output_is_refused_before_anything_is_spent(run, place):
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)
    (place / "release.json").write_text("precious")
    code, _, err = run(*release_arguments())
    assert code == 2
    assert "exists already" in err
    assert (place / "release.json").read_text() == "precious"
    assert json.loads(run("ledger", "show", "ledger.db", "--json")[1])["datasets"]["patients-2026"]["releases"] == 0


def test_release_requires_a_ledger(run, place):
    code, _, err = run(*release_arguments(ledger=None))
    assert code == 2
    assert "--ledger" in err


def test_a_schema_without_bounds_says_what_to_add(run, place):
    (place / "schema.yaml").write_text("columns:\n  age: {kind: number, missing: 50}\n")
    code, _, err = run("schema", "check", "schema.yaml")
    assert code == 2
    assert "lower" in err


def test_a_file_without_the_columns_is_refused_before_any_record(run, place):
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)
    (place / "patients.csv").write_text("other\n1\n")
    code, _, err = run(*release_arguments())
    assert code == 2
    assert "outcome" in err


def test_an_edited_certificate_exits_3(run, place):
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)
    run(*release_arguments())
    document = json.loads((place / "release.json").read_text())
    document["promise"]["epsilon"] = 0.1
    (place / "release.json").write_text(json.dumps(document))
    code, _, err = run("verify", "release.json")
    assert code == 3
    assert "does not hold" in err


def test_an_inferred_schema_says_so_on_the_certificate(run, place):
    _, inferred, _ = run("schema", "infer", "patients.csv")
    (place / "schema.yaml").write_text(inferred)
    assert "inferred_from" in inferred
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)
    code, _, err = run(*release_arguments())
    assert code == 0, err
    document = json.loads((place / "release.json").read_text())
    assert any("must be public" in assumption["statement"] for assumption in document["assumptions"])


@pytest.mark.parametrize(
    "command", [["--help"], ["release", "--help"], ["ledger", "show", "ledger.db"], ["verify", "release.json"]]
)
def test_help_verify_and_ledger_load_no_jax(run, place, command):
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)
    run(*release_arguments())
    code = (
        f"import sys; sys.argv = ['onedraw', *{command!r}]\n"
        "from onedraw.cli import main\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code, done.code\n"
        "heavy = [m for m in ('jax', 'sklearn', 'dp_accounting', 'scipy.stats') if m in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=place, timeout=60)
    assert result.returncode == 0, result.stderr


def test_the_readme_names_only_commands_that_exist(run):
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for line in re.findall(r"^onedraw (.+?)(?:\s*#.*)?$", readme, flags=re.MULTILINE):
        words = [word for word in line.split() if re.fullmatch(r"[a-z-]+", word)][:2]
        command = words[:1] if words[0] in ("plan", "release", "verify", "predict", "audit", "demo") else words
        assert run(*command, "--help")[0] == 0, line


def test_a_person_with_several_records_is_protected_as_a_whole(run, place):
    """The schema limits a person's records, the plan pays for all of them, the ledger is kept for the same unit."""
    (place / "schema.yaml").write_text(SCHEMA.replace("columns:", "person: who\nmax_records: 3\ncolumns:"))
    rows = [f"{'yes' if i % 3 else 'no'},a,{i % 100},1,p{i // 4}" for i in range(120)]
    (place / "patients.csv").write_text("\n".join(["outcome,ward,age,visits,who", *rows]) + "\n")
    run("ledger", "init", "single.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)
    code, _, err = run(*release_arguments(ledger="single.db"))
    assert code == 2
    assert "up to 1 record(s), in the plan one with up to 3" in re.sub(r"\s+", " ", err)
    run(
        "ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5, "--max-records", 3
    )
    code, out, err = run(*release_arguments())
    assert code == 0, err
    assert "one person's up to 3 records" in out
    assert run("verify", "release.json", "--ledger", "ledger.db")[0] == 0


@pytest.mark.finding("S9")
def test_a_curator_s_check_needs_a_terminal_and_shows_on_it_alone(run, hospital):
    """In a process of its own: a real pseudo-terminal for standard error, a pipe for standard output."""
    words = ["release", "patients.csv", "--schema=ill.yaml", "--target=ill", "--model=logistic", "--epsilon=5", "--draws=1",
             "--mechanism=noisy-gradient", "--ledger=ledger.db", "--out=release.json", "--check"]  # fmt: skip
    code, _, err = run(*words)
    assert code == 2
    assert "written to a terminal or shown in a notebook only" in err
    text = (hospital / "patients.csv").read_text(encoding="utf-8").replace(",a,", ",unknown ward,")
    (hospital / "patients.csv").write_text(text, encoding="utf-8")
    master, slave = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", "from onedraw.cli import main; main()", *words], cwd=hospital, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=slave, text=True, check=False,
    )  # fmt: skip
    os.close(slave)
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert done.returncode == 0, shown
    (line,) = [line for line in shown.splitlines() if line.split()[:1] == ["ward"]]
    assert re.search(r"\d\d\.\d %", line)
    assert "not as declared" not in done.stdout
    assert "%" not in (hospital / "release.json").read_text(encoding="utf-8")


@pytest.mark.finding("newcomer S20", commit="8a7c0fb")
@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"by": "ward"}, "proportion of outcome: the share of records with the level “yes” within each group"),
        ({"target": "ward", "model": "histogram"}, "of ward: the share of records with each level"),
    ],
)
def test_release_names_the_level_its_numbers_are_of(run, place, changes, title):
    run("ledger", "init", "ledger.db", "--dataset", "patients-2026", "--epsilon", 3, "--delta", 1e-5)
    code, out, err = run(*release_arguments(**changes))
    assert code == 0, err
    assert title in " ".join(out.split())
