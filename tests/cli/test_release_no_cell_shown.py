"""No message shows a cell: secrets planted in malformed files and frames are looked for in everything that is said."""

import gzip
import json
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import onedraw as od
from tests.source_cases import MALFORMED_SCHEMA as SCHEMA
from tests.source_cases import RECORD, SECRET, malformed_parquet


@pytest.fixture
def place(tmp_path, run):
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    run("ledger", "init", "ledger.db", "--dataset=p", "--epsilon=9", "--delta=1e-3")
    return tmp_path


@pytest.mark.finding("A3")
@pytest.mark.parametrize("record", [RECORD, f"ill,{SECRET},{SECRET}", f"AGE,ill,{SECRET},ward ", f"63.696,{SECRET}"])
def test_a_file_without_a_header_shows_no_cell_of_its_first_record(run, place, record):
    """Even a first record that happens to hold a declared name: only declared names are quoted."""
    (place / "nohead.csv").write_text(f"{record}\n{RECORD}\n")
    for command in (["schema", "check", "schema.yaml", "nohead.csv"], released("nohead.csv")):
        code, out, err = run(*command)
        assert code == 2
        assert "lacks" in err
        assert f"of its {record.count(',') + 1} columns" in err
        assert SECRET not in out + err
        assert "63.696" not in out + err


def test_a_column_in_another_case_is_still_explained(run, place):
    (place / "case.csv").write_text("ILL,age,ward\nno,1,a\n")
    message = run("schema", "check", "schema.yaml", "case.csv")[2]
    assert "lacks 'ill'" in message
    assert "2 have a declared name; 'ill' would be there but for case or blanks" in message
    assert "ILL" not in message


def released(data, **changes):
    options = {"schema": "schema.yaml", "target": "age", "model": "mean", "epsilon": 1, "ledger": "ledger.db", "out": "r.json"}  # fmt: skip
    return ["release", data, *(f"--{name}={value}" for name, value in (options | changes).items())]


def malformed_files(place):
    """By name: what an export, a copy or a mistake may leave behind, with secrets in it."""
    whole = f"ill,age,ward\n{RECORD}\n".encode()
    table = {"ill": [f"{SECRET}-1"] * 50, "age": [f"{SECRET}-2"] * 50, "ward": [f"{SECRET}-3"] * 50}
    pa.feather.write_feather(pa.table(table), place / "sound.feather", compression="uncompressed")
    feather = (place / "sound.feather").read_bytes()
    return {
        "one_line.csv": RECORD.encode(),
        "semicolons.csv": RECORD.replace(",", ";").encode(),
        "tabs.csv": RECORD.replace(",", "\t").encode(),
        "two_headers.csv": b"ill,ill,age,ward\n" + RECORD.encode(),
        "unclosed.csv": f'ill,"{SECRET},ward\n{RECORD}'.encode(),
        "ragged.csv": f"ill,age,ward\n{RECORD},{SECRET},{SECRET}\n".encode(),
        "utf16.csv": whole.decode().encode("utf-16"),
        "latin.csv": f"ill,àge,{SECRET}\n".encode("latin-1"),
        "nul.csv": whole.replace(b"\n", b"\x00"),
        "blank_first.csv": b"\n" + whole,
        "garbage.csv.gz": whole,
        "cut.csv.gz": gzip.compress(whole * 50)[:-20],
        "broken.csv.gz": gzip.compress(whole)[:20] + b"\xff" * 9,
        **malformed_parquet(),
        "text.feather": whole,
        "cut.feather": feather[: len(feather) // 2],
        "cut_end.arrow": feather[:-30],
        "records.json": json.dumps([{SECRET: SECRET}]).encode(),
        "record.json": json.dumps({SECRET: SECRET, "format": SECRET}).encode(),
        "records.jsonl": json.dumps({SECRET: SECRET}).encode(),
        "records.txt": whole,
        "records.csv": whole,
        "records": whole,
    }


def test_no_command_shows_a_cell_of_a_malformed_file(run, place):
    """Also of files given in each other's place: records as a schema, as a certificate, as a ledger."""
    files = malformed_files(place)
    for name, content in files.items():
        (place / name).write_bytes(content)
    failures = 0
    for name in files:
        for command in (
            ["schema", "check", "schema.yaml", name],
            released(name, out=f"{name}.release"),
            released("records.csv", schema=name),
            released("records.csv", ledger=name),
            ["plan", f"--schema={name}", "--target=age", "--model=mean", "--epsilon=1", "--rows=9"],
            ["schema", "check", name],
            ["verify", name],
            ["predict", name, "records.csv"],
            ["ledger", "verify", name],
        ):
            code, out, err = run(*command)
            failures += code != 0
            assert SECRET not in out + err, (name, command)
    assert failures > 8 * len(files) - 30, "these files should not pass"


@pytest.mark.finding("A3")
def test_records_given_as_a_schema_are_not_quoted(run, place):
    (place / "records.csv").write_text(f"{SECRET}\n{RECORD}\n")
    (place / "records.yaml").write_text(f"{SECRET}\n{RECORD}\n")
    for name in ("records.csv", "records.yaml"):
        code, _, err = run("schema", "check", name)
        assert code == 2
        assert SECRET not in err


def frames():
    """By name: frames and mappings as a curator may have made them from such files."""
    cells = [f"{SECRET}-1", {SECRET: SECRET}, [SECRET], complex(1, 2), b"\xff" + SECRET.encode(), object(), 10**400]
    yield "no header", pd.DataFrame([[1, 2, 3]], columns=RECORD.split(","))
    yield "numbered", pd.DataFrame([RECORD.split(",")])
    yield "twice", pd.DataFrame([RECORD.split(",")], columns=["ill", "ill", "age"])
    yield "objects", pd.DataFrame({"ill": cells, "age": cells, "ward": cells})
    yield "categorical", pd.DataFrame({name: pd.Categorical([SECRET]) for name in ("ill", "age", "ward")})
    yield "polars without header", pl.DataFrame({f"{SECRET}-{i}": [1] for i in range(3)})
    yield "polars structs", pl.DataFrame({"ill": [{SECRET: 1}], "age": [{SECRET: 1}], "ward": ["a"]})
    yield "polars lists", pl.DataFrame({"ill": [[SECRET]], "age": [[SECRET]], "ward": ["a"]})
    yield "polars objects", pl.DataFrame({name: pl.Series(cells, dtype=pl.Object) for name in ("ill", "age", "ward")})
    yield "lengths", {"ill": [SECRET], "age": [SECRET] * 2, "ward": [SECRET]}
    yield "two dimensions", {"ill": np.full((2, 2), SECRET), "age": [1, 2], "ward": [1, 2]}
    yield "objects in lists", {"ill": cells, "age": cells, "ward": cells}
    yield "a list", [[SECRET]]
    yield "a series", pd.Series([SECRET])


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in frames()])
def test_no_exception_shows_a_cell_of_a_frame(tmp_path, source):
    """The whole traceback, causes included, as a log would hold it."""
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    try:
        records = od.read(source, od.Schema.load(tmp_path / "schema.yaml"), target="age")
        sum(len(batch["age"]) for batch in records.batches())
    except Exception as error:
        shown = "".join(line for line in traceback.format_exception(error) if "test_release_no_cell_shown" not in line)
        assert SECRET not in shown
