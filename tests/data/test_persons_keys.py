"""Nobody can take another person's place by choosing an identifier: keys of different persons agree by chance alone."""

import struct

import pyarrow as pa
import pytest

from onedraw.data import Schema, read

SCHEMA = Schema.from_dict(
    {
        "person": "who",
        "max_records": 2,
        "columns": {"v": {"kind": "number", "lower": 0, "upper": 9, "missing": 9}},
    }
)


def counted(tmp_path, who):
    """Which records count, from a CSV file and from an Arrow table of text."""
    path = tmp_path / "d.csv"
    path.write_text("\n".join(["who,v", *(f"{name},1" for name in who)]) + "\n")
    table = pa.table({"who": [str(name) for name in who], "v": [1.0] * len(who)})
    one, other = (
        [value == 1 for batch in read(source, SCHEMA).values("v") for value in batch] for source in (path, table)
    )
    assert one == other
    return one


def bits(number):
    return int.from_bytes(struct.pack("<d", number), "little")


VICTIM = 10**20
TAKEN = {
    "2^64 more": (VICTIM, VICTIM + 2**64),
    "2^64 less": (VICTIM, VICTIM - 2**64),
    "minus": (-(2**60), 2**64 - 2**60),
    "the bits of a float": (5, bits(5.0) ^ 0x9E3779B97F4A7C15),
}


@pytest.mark.finding("F6a")
@pytest.mark.parametrize("pair", TAKEN)
def test_no_identifier_can_be_chosen_that_pushes_somebody_elses_records_out(tmp_path, pair):
    """The newcomer's records come first in the file; the victim's two records must count all the same."""
    victim, chosen = TAKEN[pair]
    assert counted(tmp_path, [victim, 7, victim]) == [True] * 3
    assert counted(tmp_path, [chosen, chosen, chosen, victim, 7, victim]) == [True, True, False, True, True, True]


def test_integers_of_any_length_are_told_apart_digit_by_digit(tmp_path):
    whole = [sign * (2**power + step) for sign in (1, -1) for power in range(53, 400, 11) for step in (0, 1)]
    assert all(counted(tmp_path, whole))
    assert counted(tmp_path, [*whole, *whole, *whole]) == [True] * 2 * len(whole) + [False] * len(whole)
