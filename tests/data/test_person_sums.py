"""Whose a record is, and sums by person: against a naive version, in any room, and on every small table of persons."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onedraw.data import Schema, read
from onedraw.data.person_sums import ByPerson, passes_by_person, places_together, sum_by_person
from onedraw.data.persons import NOBODY
from onedraw.data.sums import Blocks, Reading, Statistic, blocked
from onedraw.errors import FileMismatch

K = 2


def schema_of(max_records: int = K) -> Schema:
    column = {"kind": "number", "lower": 0, "upper": 1000, "missing": 999}
    return Schema.from_dict({"person": "who", "max_records": max_records, "columns": {"v": column}})


def owners_in(who: list[Any], max_records: int = K, **options: Any) -> list[int]:
    records = read({"who": who, "v": list(range(len(who)))}, schema_of(max_records), **options)
    found = records.owners(["v"])
    assert found is not None
    return found.tolist()


def naive_owners(who: list[Any], k: int) -> list[int]:
    places: dict[Any, list[int]] = defaultdict(list)
    for place, name in enumerate(who):
        places[name].append(place)
    owners = [NOBODY] * len(who)
    for name, held in places.items():
        for place in held[:k] if name is not None else ():
            owners[place] = held[0]
    return owners


@dataclass(frozen=True)
class Whole(Reading):
    """Each record's numbers, a record a column."""

    def of_block(self, values: Any, weight: Any) -> tuple[Any, ...]:
        return (np.asarray(values).T,)


@dataclass(frozen=True)
class Squares(Statistic):
    """Σ of every product of two entries of a person's sum."""

    def bound(self) -> float:
        return 2.0**40

    def of_block(self, sums: Any, weight: Any) -> Any:
        return (sums @ (sums * weight).T).ravel()


def naive_squares(values: np.ndarray, owners: list[int]) -> np.ndarray:
    sums: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(values.shape[1]))
    for row, owner in zip(values, owners, strict=True):
        sums[owner] = sums[owner] + row
    return sum((np.outer(u, u) for owner, u in sums.items() if owner != NOBODY), np.zeros((values.shape[1],) * 2))


def squares(values: np.ndarray, owners: list[int]) -> np.ndarray:
    rows = Blocks.holding(len(values), blocked([(values,)], 64))
    by = ByPerson(Whole(), (), values.shape[1])
    return sum_by_person(rows, np.array(owners), by, Squares()).reshape((values.shape[1],) * 2)


# Owners


@pytest.mark.parametrize("k", [1, 2, 3])
def test_owner_is_the_place_of_a_persons_first_record(k: int) -> None:
    rng = np.random.default_rng(3)
    for length in (0, 1, 7, 200):
        who = [None if name == 0 else f"p{name}" for name in rng.integers(0, 30, length)]
        assert owners_in(who, k) == naive_owners(who, k)
        assert owners_in(who, k, batch_rows=3) == naive_owners(who, k)


def test_owners_are_the_same_from_every_source(tmp_path: Any) -> None:
    who = [1, 2, None, 1, 3, 1, 2, 2, 4]
    frame = pd.DataFrame({"who": pd.array(who, dtype="Int64"), "v": range(len(who))})
    table = pa.Table.from_pandas(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    expected = naive_owners(who, K)
    for source in (frame, table, tmp_path / "t.csv", tmp_path / "t.parquet"):
        assert read(source, schema_of()).owners(["v"]).tolist() == expected


def test_owners_of_another_number_of_records_are_refused(tmp_path: Any) -> None:
    path = tmp_path / "t.csv"
    path.write_text("who,v\n1,2\n2,3\n")
    records = read(path, schema_of())
    path.write_text("who,v\n1,2\n")
    with pytest.raises(FileMismatch, match="changed while it was read"):
        records.owners(["v"])


NAMES = ("A", "B", None)


def test_new_person_takes_one_owners_places_and_no_other_owner_changes() -> None:
    """On every table of five records: all of A's become a new person's, some of them perhaps naming nobody."""
    seen = 0
    for who in product(NAMES, repeat=5):
        places = [place for place, name in enumerate(who) if name == "A"]
        before = owners_in(list(who))
        for names in product(("N", None), repeat=len(places)):
            changed = list(who)
            for place, name in zip(places, names, strict=True):
                changed[place] = name
            after = owners_in(changed)
            assert all(before[i] == after[i] for i in range(5) if i not in places)
            for owners in (before, after):
                held = [place for place in places if owners[place] != NOBODY]
                assert len({owners[place] for place in held}) <= 1
                assert len(held) <= K
                assert {owners[place] for place in held} <= set(places)
            seen += 1
    assert seen > 300


# Sums


def test_sums_by_person_are_those_of_a_naive_program() -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(-9, 10, (500, 3)).astype(float)
    owners = naive_owners([None if name == 0 else int(name) for name in rng.integers(0, 120, 500)], 4)
    assert np.array_equal(squares(values, owners), naive_squares(values, owners))


@pytest.mark.parametrize("places", [1, 7, 64, 499, 500])
def test_sums_are_the_same_in_any_room(places: int) -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(-9, 10, (500, 3)).astype(float)
    owners = np.array(naive_owners(rng.integers(0, 120, 500).tolist(), 4))
    rows = Blocks.holding(500, blocked([(values,)], 64))
    found = ByPerson(Whole(), (), 3).blocks(rows, owners, 64, room=8 * 3 * places).sum(Squares())
    assert np.array_equal(found.reshape(3, 3), naive_squares(values, owners.tolist()))


def test_records_of_nobody_add_nothing_and_are_not_pooled() -> None:
    values = np.array([[3.0], [5.0], [7.0], [1.0]])
    assert squares(values, [NOBODY, 1, NOBODY, 1]).item() == 36.0


def test_passes_follow_from_public_numbers() -> None:
    assert passes_by_person(1000, 5) == 2
    assert passes_by_person(10 * places_together(5), 5) == 11
    assert passes_by_person(10 * places_together(5) + 1, 5) == 12
