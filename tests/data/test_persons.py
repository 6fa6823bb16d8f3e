"""The unit: at most k records of a person count, in file order, in one pass, n unchanged."""

from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.data import Schema, read
from onedraw.data.columns import Cells, Numbers, cells
from onedraw.data.persons import PersonLimit, person_keys
from onedraw.errors import FileMismatch
from tests.odd_objects import Pretender, dead_reference

patient = settings(deadline=None, print_blob=True)  # timing is not what is tested here

BIG = 2**53


def schema(max_records=1):
    column = {"kind": "number", "lower": 0, "upper": 1000, "missing": 999}
    other = {"kind": "category", "levels": ["a", "b"], "missing": "b"}
    return Schema.from_dict({"person": "who", "max_records": max_records, "columns": {"v": column, "c": other}})


def kept(source, max_records=1, **options):
    """Which records still count (their v is not the missing value); the other column must agree."""
    records = read(source, schema(max_records), **options)
    batches = list(records.batches())
    v = np.concatenate([batch["v"] for batch in batches]) if batches else np.array([])
    c = np.concatenate([batch["c"] for batch in batches]) if batches else np.array([])
    assert len(v) == records.n
    assert ((c == 1) == (v == 999)).all()
    return (v != 999).tolist()


def table_of(who):
    return {"who": who, "v": list(range(len(who))), "c": ["a"] * len(who)}


def naive(who, k):
    seen = Counter()
    result = []
    for name in who:
        seen[name] += 1
        result.append(name is not None and seen[name] <= k)
    return result


@patient
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 5).map(str)), max_size=60),
    st.integers(1, 4),
    st.integers(1, 9),
)
def test_the_first_k_records_of_each_person_count(who, k, rows):
    assert kept(table_of(who), k, batch_rows=rows) == naive(who, k)


@patient
@given(st.lists(st.lists(st.integers(0, 30), max_size=40), max_size=30), st.integers(1, 3))
def test_counting_in_batches_is_counting_at_once(batches, k):
    limit = PersonLimit(k)
    marked = []
    for batch in batches:
        keys, absent = person_keys(Numbers(np.array(batch, dtype=np.int64)), exact=True)
        marked += limit.surplus(keys, absent).tolist()
    assert [not mark for mark in marked] == naive([name for batch in batches for name in batch], k)


def test_a_record_that_names_nobody_becomes_the_missing_record_and_pushes_nobody_out():
    assert kept(table_of(["p", None, "q", "", None, "nan", "p"]), 2) == [
        True,
        False,
        True,
        False,
        False,
        False,
        True,
    ]


@patient
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.integers(1, 3), st.data())
def test_replacing_a_person_changes_at_most_k_records(who, k, data):
    person = data.draw(st.sampled_from(who))
    rows = [row for row, name in enumerate(who) if name == person]
    newcomer = data.draw(st.sampled_from(["z", None]))
    changed = table_of([newcomer if name == person else name for name in who])
    changed["v"] = [value + 500 if row in rows else value for row, value in enumerate(changed["v"])]

    def values(source):
        return np.concatenate(list(read(source, schema(k)).values("v")))

    differ = np.flatnonzero(values(table_of(who)) != values(changed))
    assert len(differ) <= k
    assert set(differ) <= set(rows)


def test_forgetting_the_limit_is_caught_by_that_property():
    who = ["a"] * 5
    before = np.concatenate(list(read(table_of(who), schema(10)).values("v")))
    after = np.concatenate(list(read({**table_of(who), "v": [7] * 5}, schema(10)).values("v")))
    assert (before != after).sum() > 2


def as_csv(tmp_path, who):
    pd.DataFrame(table_of(who)).to_csv(tmp_path / "d.csv", index=False)
    return tmp_path / "d.csv"


def as_parquet(tmp_path, who):
    pq.write_table(pa.table(table_of(who)), tmp_path / "d.parquet", row_group_size=2)
    return tmp_path / "d.parquet"


@pytest.mark.parametrize("make", [as_csv, as_parquet, lambda _, who: pd.DataFrame(table_of(who))])
@pytest.mark.parametrize(
    "who", [["p1", "p2", "p1", "p1"], [7, 8, 7, 7], [1.5, 2.5, 1.5, 1.5], [7, None, 7, 8]], ids=repr
)
def test_every_source_counts_alike(tmp_path, make, who):
    assert kept(make(tmp_path, who), 2) == naive(who, 2)


def test_a_malformed_line_names_nobody(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(b'who,v,c\n7,1,a\n"7,1,a\n\n7,2,a\n8,3,a\n7.0,4,a\n')
    assert kept(path, 2) == [True, False, False, True, True, False]


SAME = [
    [1, 1.0, True, "1", " 01", b"1", "1.0"],
    ["ann", " ann ", b"ann"],
    [0, -0.0, "-0"],
    [str(BIG + 1), BIG + 1],
]


@pytest.mark.parametrize("same", SAME, ids=repr)
def test_one_person_is_one_person_however_written(same):
    keys, absent = person_keys(cells(same), exact=True)
    assert not absent.any()
    assert len(set(keys.tolist())) == 1


@pytest.mark.parametrize("exact", [True, False])
def test_minus_zero_and_zero_are_one_person_in_numbers_and_in_cells(exact):
    zeros = [
        Numbers(np.array([0.0, -0.0])),
        Numbers(np.array([0, 0], dtype=np.int64)),
        cells([0.0, -0.0, Decimal("-0.0"), "-0.0"]),
    ]
    keys = [person_keys(chunk, exact=exact)[0].tolist() for chunk in zeros]
    assert len(set().union(*keys)) == 1
    assert kept(pd.DataFrame(table_of([0.0, -0.0, 1.0])), 1) == kept(table_of(["0", "-0", 1]), 1) == [True, False, True]


class Raw(bytes):
    """An identifier whose own methods end the program."""

    def strip(self, *_):
        raise RuntimeError

    __radd__ = __len__ = __getitem__ = __iter__ = __eq__ = __hash__ = strip


class Whole(int):
    def __int__(self):
        raise RuntimeError

    __index__ = __abs__ = __ge__ = __mod__ = __eq__ = __hash__ = __int__


class Name(str):
    @property
    def __class__(self):
        raise RuntimeError

    strip = encode = __eq__ = __hash__ = __class__


ODD_IDENTIFIERS = [
    (Raw(b"\xff\xfe"), b"\xff\xfe"),
    (Raw(b" ann"), "ann"),
    (Whole(BIG + 1), BIG + 1),
    (Name(" ann"), "ann"),
    (Pretender(), None),
    (dead_reference(), None),
    (np.timedelta64(2**60, "ns"), None),
]


READ_BEFORE = 1
"""Bytes that are text were read by the methods of bytes already."""
OWN_CLASS = pytest.mark.finding("reliability N7a", commit="8a7c0fb")


@pytest.mark.parametrize(
    "place", [pytest.param(at, marks=[] if at == READ_BEFORE else [OWN_CLASS]) for at in range(len(ODD_IDENTIFIERS))]
)
def test_no_code_of_an_identifiers_own_class_is_run(place):
    odd, plain = ODD_IDENTIFIERS[place]
    keys, absent = person_keys(cells([odd, "bob"]), exact=True)
    expected, missing = person_keys(cells([plain, "bob"]), exact=True)
    assert absent.tolist() == missing.tolist()
    assert keys[~absent].tolist() == expected[~missing].tolist()


def test_long_numbers_are_told_apart_where_types_are_fixed(tmp_path):
    who = [BIG + 1, BIG, BIG + 1, -BIG - 1, 2**63 - 1, 2**63 - 2]
    expected = naive(who, 1)
    assert kept(as_csv(tmp_path, who)) == kept(as_parquet(tmp_path, who)) == expected
    numbers, _ = person_keys(Numbers(np.array(who)), exact=True)
    texts, _ = person_keys(cells([str(name) for name in who]), exact=True)
    assert numbers.tolist() == texts.tolist()


def test_a_null_does_not_blur_the_long_numbers_beside_it():
    who = pa.array([BIG + 1, None, BIG, BIG + 1])
    table = pa.table({"who": who, "v": [1.0] * 4, "c": ["a"] * 4})
    assert kept(table) == [True, False, True, False]


def test_a_missing_identifier_does_not_change_who_others_are_in_a_frame():
    whole = kept(pd.DataFrame(table_of([BIG + 1, BIG, 5, 5])))
    holed = kept(pd.DataFrame(table_of([BIG + 1, BIG, 5, 5, None])))
    mixed = kept(pd.DataFrame(table_of([BIG + 1, BIG, 5, 5, "x"])))
    assert whole == holed[:4] == mixed[:4]


def test_identifiers_need_not_be_text():
    raw = [bytes([200 + row % 3, 255]) for row in range(6)]
    table = pa.table({"who": pa.array(raw, pa.binary(2)), "v": [1.0] * 6, "c": ["a"] * 6})
    assert kept(table) == [True] * 3 + [False] * 3


def test_different_people_have_different_keys():
    names = [f"p{number}" for number in range(2000)] + list(range(2000)) + [BIG + number for number in range(2000)]
    keys, absent = person_keys(cells(names), exact=True)
    assert not absent.any()
    assert len(set(keys.tolist())) == 6000


def test_no_cells_are_no_people():
    keys, absent = person_keys(Cells([], np.array([-1, -1])), exact=True)
    assert absent.tolist() == [True, True]
    assert len(keys) == 2


def test_a_file_without_the_person_column_is_refused(tmp_path):
    with pytest.raises(FileMismatch, match=r"lacks 'who' \(the person column\)"):
        read({"v": [1], "c": ["a"]}, schema())
    with pytest.raises(FileMismatch, match="cannot hold an identifier"):
        read(as_parquet(tmp_path, [[1]]), schema())


def test_a_million_people_are_counted_in_one_pass():
    limit = PersonLimit(1)
    rng = np.random.default_rng(3)
    who = rng.permutation(np.repeat(np.arange(500_000), 2))
    surplus = 0
    for start in range(0, len(who), 65536):
        keys, absent = person_keys(Numbers(who[start : start + 65536]), exact=True)
        surplus += int(limit.surplus(keys, absent).sum())
    assert surplus == 500_000
