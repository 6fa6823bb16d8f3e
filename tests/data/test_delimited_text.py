"""CSV: one physical line is one record, and no line can touch another, n, or whether the program fails."""

import csv
import gzip
import io
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onedraw.data import Schema, delimited_text, read
from onedraw.data.cells import label_of, number_of
from onedraw.data.delimited_text import split_line
from onedraw.errors import FileMismatch

patient = settings(deadline=None, print_blob=True)  # timing is not what is tested here

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "x": {"kind": "number", "lower": -10, "upper": 10, "missing": 0.25},
            "c": {"kind": "category", "levels": ["a", "b", "1", "é", 'q"', "d,e"], "missing": "b"},
            "k": {"kind": "count", "cap": 5, "missing": 2},
            "y": {"kind": "binary", "missing": "no"},
        }
    }
)
HEADER = b"x,extra,c,k,y"
MISSING = (0.25, 1, 2, 0)


def contents(path, schema=SCHEMA, **options):
    """All encoded records of a file, as a list of tuples in the schema's order."""
    records = read(path, schema, **options)
    batches = list(records.batches())
    rows = [row for batch in batches for row in zip(*(batch[name].tolist() for name in records.columns), strict=True)]
    assert len(rows) == records.n == len(records)
    return rows


def written(path, lines, header=HEADER, end=b"\n", last=True):
    path.write_bytes(end.join([header, *lines]) + (end if last else b""))
    return path


def one(tmp_path, *lines, **options):
    return contents(written(tmp_path / "d.csv", lines, **options))


# A slow and obvious reader, to hold the fast one to


def naive_record(line):
    cells = split_line(line, 5)
    if cells is None:
        return MISSING
    x, _, c, k, y = cells
    number, count = number_of(x), number_of(k)
    levels = {"a": 0, "b": 1, "1": 2, "é": 3, 'q"': 4, "d,e": 5}
    yes_no = {"no": 0, "yes": 1, "0": 0, "1": 1}
    return (
        0.25 if math.isnan(number) else min(10.0, max(-10.0, number)),
        levels.get(label_of(c), 1),
        2 if math.isnan(count) else round(min(5, max(0, count))),
        yes_no.get((label_of(y) or "").lower(), 0),
    )


good_cells = st.sampled_from(
    [
        b"1",
        b"-3.5",
        b"11",
        b" 2 ",
        b"",
        b"nan",
        b"-inf",
        b"a",
        b"b",
        b"yes",
        b"No",
        b"TRUE",
        b"\xc3\xa9",
        b"1e400",
    ]
)
good_lines = st.lists(good_cells, min_size=5, max_size=5).map(b",".join)
quoted_lines = st.lists(
    st.one_of(good_cells, good_cells.map(lambda cell: b'"' + cell + b'"'), st.just(b'"q"""'), st.just(b'"d,e"')),
    min_size=5,
    max_size=5,
).map(b",".join)
tricky_bytes = st.lists(
    st.sampled_from(
        [bytes([byte]) for byte in b'",,,\x00 1.5e-+ab\xef\xbb\xbf\xff\r\x1a\t;'] + [b'""', b"\xef\xbb\xbf"]
    )
).map(b"".join)
any_lines = st.one_of(good_lines, quoted_lines, tricky_bytes, st.binary().map(lambda line: line.replace(b"\n", b"")))


@settings(patient, max_examples=300)
@given(st.lists(any_lines, max_size=12), st.sampled_from([b"\n", b"\r\n"]), st.sampled_from([7, 64, 2**22]))
@example([b"1,,a,1,yes", b'"', b"1,,a,1,yes"], b"\n", 2**22)
@example([b"\xef\xbb\xbf1,,a,1,yes", b"\xef\xbb\xbf1,,a,1,yes"], b"\n", 2**22)
def test_blocks_and_single_lines_read_the_same(lines, end, block):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited_text, "BLOCK", block)
        path = written(Path(folder) / "d.csv", lines, end=end)
        assert contents(path) == [naive_record(line) for line in lines]


@patient
@given(st.lists(any_lines, max_size=12), st.sampled_from([b"\n", b"\r\n", b"\r"]))
@example([b"1\r2", b"3"], b"\n")
@example([b"1\n2", b"3"], b"\r")
@example([b'"1"', b'"', b'"",', b'""', b'"2"'], b"\n")
def test_a_file_of_one_column_reads_the_same_line_by_line(lines, end):
    schema = Schema.from_dict({"columns": {"x": {"kind": "number", "lower": -10, "upper": 10, "missing": 0.25}}})
    lines = [line.replace(b"\r", b"") for line in lines] if end == b"\r" else lines
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "d.csv", lines, header=b"x", end=end)
        found = [value for (value,) in contents(path, schema)]
    cells = [split_line(line, 1) for line in lines]
    numbers = [number_of(cell[0]) if cell else math.nan for cell in cells]
    assert found == [0.25 if math.isnan(number) else min(10.0, max(-10.0, number)) for number in numbers]


@settings(patient, max_examples=300)
@given(st.lists(any_lines, min_size=1, max_size=8), st.integers(0, 7), any_lines, st.sampled_from([b"\n", b"\r"]))
@example([b"1,,a,1,yes"] * 3, 1, b'1,,"a,1,yes', b"\n")
@example([b"1,,a,1,yes"] * 3, 1, b"", b"\n")
@example([b"1,,a,1,yes"] * 3, 1, b"1" * 2**20 + b"1", b"\n")
def test_replacing_a_line_changes_that_record_and_nothing_else(lines, place, other, end):
    place %= len(lines)
    if end == b"\r":
        lines, other = [line.replace(b"\r", b"") for line in lines], other.replace(b"\r", b"")
    changed = [*lines[:place], other, *lines[place + 1 :]]
    with tempfile.TemporaryDirectory() as folder:
        before = contents(written(Path(folder) / "one.csv", lines, end=end))
        after = contents(written(Path(folder) / "two.csv", changed, end=end))
    assert len(before) == len(after) == len(lines)
    assert before[:place] + before[place + 1 :] == after[:place] + after[place + 1 :]


def test_a_parser_that_lets_quotes_run_on_is_caught_by_that_property():
    lines = [b"1,,a,1,yes"] * 3
    changed = [lines[0], b'1,,"a,1,yes', lines[2]]

    def joined(some):
        return list(csv.reader(io.StringIO(b"\n".join(some).decode())))

    assert len(joined(changed)) != len(joined(lines))


def test_only_odd_lines_are_read_one_by_one(tmp_path, monkeypatch):
    looked_at = []

    def spy(line, columns=None):
        looked_at.append(line)
        return split_line(line, columns)

    monkeypatch.setattr(delimited_text, "split_line", spy)
    plain = [b"1,,a,1,yes", b'"1","z","a",1,"yes"', b'"",,"\xff",,', b",,,,"]
    odd = [
        b'1"2",,a,1,yes',
        b'1,"z,z",a,1,yes',
        b'1,5",a,1,yes',
        b'1,"""",a,1,yes',
        b"1",
        b'"1,,a,1,yes',
        b'"1"x,,a,1,yes',
    ]
    rows = one(tmp_path, *plain, *odd, *plain, end=b"\r\n")
    assert looked_at == [HEADER, *[line + b"\r" for line in odd]]
    assert rows == [naive_record(line) for line in (*plain, *odd, *plain)]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"1,,a,1",
        b"1,,a,1,yes,",
        b'1,,"a,1,yes',
        b'1,,"a"b,1,yes',
        b'"1,,a,1,yes"',
        b"\xff" * 10,
        b"\x00" * 10,
        b"," * 1000,
        b'"' * 999,
        b"1," + b"z" * 2**20 + b",a,1,yes",
    ],
    ids=lambda line: repr(line[:12]),
)
def test_a_malformed_line_is_the_missing_record(tmp_path, line):
    good = (1.0, 0, 1, 1)
    assert one(tmp_path, b"1,,a,1,yes", line, b"1,,a,1,yes") == [good, MISSING, good]


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (b"\xff,,a,1,yes", (0.25, 0, 1, 1)),
        (b"1,\xff\x00\xff,a,1,yes", (1.0, 0, 1, 1)),
        (b"1,,\xff,1,yes", (1.0, 1, 1, 1)),
        (b"1\x00,,a\x00,1,yes", (0.25, 1, 1, 1)),
        (b"1e9,,z,99,maybe", (10.0, 1, 5, 0)),
        (b"-1e9,,a,-99,YES", (-10.0, 0, 0, 1)),
        (b"inf,,1.0,2.6,true", (0.25, 2, 3, 1)),
        (b"NaN,,true,2.5,1", (0.25, 2, 2, 1)),
        (b'"1",,"q""","1","yes"', (1.0, 4, 1, 1)),
        (b'1,"a,b","d,e",1,yes', (1.0, 5, 1, 1)),
        (b'1,5" pipe,a,1,yes', (1.0, 0, 1, 1)),
        (b'1"2",,a,1,yes', (0.25, 0, 1, 1)),
        (b' 1 ,, a ,"  1",\tyes', (1.0, 0, 1, 1)),
        (b"1,,\xc3\xa9,1,yes", (1.0, 3, 1, 1)),
        (b"1\r,,a,1,yes\r", (1.0, 0, 1, 1)),
    ],
)
def test_a_cell_that_makes_no_sense_is_missing_by_itself(tmp_path, line, record):
    assert one(tmp_path, line) == [record]


def test_a_single_column_file_has_blank_records(tmp_path):
    schema = Schema.from_dict({"columns": {"x": {"kind": "number", "lower": 0, "upper": 9, "missing": 5}}})
    path = written(tmp_path / "d.csv", [b"1", b"", b"2", b"", b""], header=b"x")
    assert contents(path, schema) == [(1.0,), (5.0,), (2.0,), (5.0,), (5.0,)]


@pytest.mark.parametrize(
    ("last", "end"), [(True, b"\n"), (False, b"\n"), (True, b"\r\n"), (False, b"\r"), (True, b"\r")]
)
def test_every_line_end_is_understood(tmp_path, last, end):
    lines = [b"1,,a,1,yes", b"2,,b,2,no"]
    assert one(tmp_path, *lines, last=last, end=end) == [(1.0, 0, 1, 1), (2.0, 1, 2, 0)]


def test_the_header_decides_the_line_end_for_the_file(tmp_path):
    good = (1.0, 0, 1, 1)
    path = tmp_path / "d.csv"
    path.write_bytes(HEADER + b"\r\n1,,a,1,yes\n1,,a,1,yes\r\n1,,a\r,1,yes\r\n")
    assert contents(path) == [good] * 3
    path.write_bytes(HEADER + b"\r1,,a,1,yes\r\n1,,a,1,yes\r1,,a,1,yes")
    assert contents(path) == [good] * 3


@pytest.mark.parametrize("block", [5, 100, 2**22])
@pytest.mark.parametrize("length", [99, 100, 101, 500])
@pytest.mark.parametrize("last", [True, False])
def test_a_line_is_too_long_by_its_length_alone(tmp_path, monkeypatch, block, length, last):
    monkeypatch.setattr(delimited_text, "BLOCK", block)
    monkeypatch.setattr(delimited_text, "LONGEST_LINE", 100)
    good = b"1,,a,1,yes"
    long = b"1," + b"z" * (length - len(good)) + b",a,1,yes"
    assert len(long) == length
    record = (1.0, 0, 1, 1) if length <= 100 else MISSING
    assert one(tmp_path, good, long, good, long, last=last) == [(1.0, 0, 1, 1), record] * 2


def test_an_enormous_line_is_never_held_in_memory(tmp_path):
    import tracemalloc

    path = tmp_path / "d.csv"
    with path.open("wb") as file:
        file.write(HEADER + b"\n1,,a,1,yes\n")
        for _ in range(64):
            file.write(b"1" * 2**20)
        file.write(b"\n1,,a,1,yes\n")
    tracemalloc.start()
    try:
        assert contents(path) == [(1.0, 0, 1, 1), MISSING, (1.0, 0, 1, 1)]
        assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
    finally:
        tracemalloc.stop()


def test_a_byte_order_mark_before_the_header_is_ignored(tmp_path):
    assert one(tmp_path, b"1,,a,1,yes", header=b"\xef\xbb\xbf" + HEADER) == [(1.0, 0, 1, 1)]


def test_quoted_and_padded_names_are_understood(tmp_path):
    assert one(tmp_path, b"1,,a,1,yes", header=b'"x", extra,c , k,"y"') == [(1.0, 0, 1, 1)]


def test_extra_columns_and_another_order_are_fine(tmp_path):
    assert one(tmp_path, b"z,1,yes,a,z,1", header=b"z,k,y,c,z,x") == [(1.0, 0, 1, 1)]


@pytest.mark.parametrize("last", [True, False])
def test_a_header_alone_is_a_file_of_no_records(tmp_path, last):
    assert one(tmp_path, last=last) == []


def test_compressed_files_read_the_same(tmp_path):
    lines = [b"1,,a,1,yes", b'"', b"-2,,b,3,no"] * 1000
    plain = contents(written(tmp_path / "d.csv", lines))
    with gzip.open(tmp_path / "d.csv.gz", "wb") as file:
        file.write((tmp_path / "d.csv").read_bytes())
    assert contents(tmp_path / "d.csv.gz") == plain


# What is wrong with a file is found before any record


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "no header"),
        (b"\n1,2\n", "no header"),
        (b"   \n1,2\n", "no header"),
        (b"\xef\xbb\xbf", "no header"),
        (b"x" * (2**20 + 1), "no header"),
        (b"x,\xff\n", "UTF-8"),
        ("x,c,k,y\n".encode("utf-16"), "UTF-8"),
        (b'x,"c,k,y\n', "every quote closed"),
        (b"x,c,k\n1,2,3\n", "lacks 'y'"),
        (b"x;c;k;y\n", "separated by commas"),
        (b"X,c,k,y\n", "lacks 'x'"),
        (b"x,c,k,y,x\n", "'x' more than once"),
    ],
    ids=repr,
)
def test_a_file_that_does_not_match_is_refused_before_any_record(tmp_path, raw, words):
    (tmp_path / "d.csv").write_bytes(raw)
    with pytest.raises(FileMismatch, match=words):
        read(tmp_path / "d.csv", SCHEMA)


def test_a_broken_compressed_file_is_refused_before_any_record(tmp_path):
    whole = gzip.compress(HEADER + b"\n" + b"1,,a,1,yes\n" * 1000)
    for name, raw in (
        ("cut", whole[:-20]),
        ("none", b"x,c,k,y\n"),
        ("flipped", whole[:30] + b"\0\0" + whole[32:]),
    ):
        (tmp_path / f"{name}.csv.gz").write_bytes(raw)
        with pytest.raises(FileMismatch, match="cannot be read"):
            read(tmp_path / f"{name}.csv.gz", SCHEMA)


@pytest.mark.parametrize("more", [b"", b"1,,a,1,yes\n" * 3])
def test_a_file_that_changes_after_the_count_is_noticed(tmp_path, more):
    path = written(tmp_path / "d.csv", [b"1,,a,1,yes"] * 2)
    records = read(path, SCHEMA)
    path.write_bytes(HEADER + b"\n" + more)
    with pytest.raises(FileMismatch, match="changed while it was read"):
        list(records.batches())


def test_batches_have_the_size_asked_for_whatever_the_lines_are(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited_text, "BLOCK", 50)
    rows = [b"1,,a,1,yes", b"1," + b"z" * 300 + b",a,1,yes", b""] * 40
    records = read(written(tmp_path / "d.csv", rows), SCHEMA, batch_rows=7)
    assert [len(batch["x"]) for batch in records.batches()] == [7] * 17 + [1]


def test_numbers_are_the_nearest_floats(tmp_path):
    rng = np.random.default_rng(1)
    values = rng.uniform(-10, 10, size=2000)
    lines = [repr(value).encode() + b",,a,1,yes" for value in values.tolist()]
    assert [row[0] for row in one(tmp_path, *lines)] == values.tolist()
