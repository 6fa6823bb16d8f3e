"""One budget, one name: what could be taken for a name that stands in the ledger is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from onedraw.errors import BudgetSpent, LedgerError
from onedraw.ledger import Ledger
from onedraw.privacy import PureDP


@pytest.fixture
def place(tmp_path: Path) -> str:
    """In SQLite alone: names are looked at before a database is."""
    return str(tmp_path / "ledger.db")


LOOK_LIKE_D = {
    "variation selector": "d\ufe0f",
    "Hangul filler": "d\u3164",
    "grapheme joiner": "d\u034f",
    "Braille blank": "d\u2800d",
    "Cyrillic": "\u0501",
    "full-width": "\uff44",
    "capital": "D",
    "mathematical": "\U0001d41d",
}
LOOK_LIKE_OTHERS = {
    "a whole word in Cyrillic": ("cap", "\u0441\u0430\u0440"),
    "Greek omicron": ("o", "\u03bf"),
    "one Cyrillic letter": ("patients", "p\u0430tients"),
    "en dash": ("patients-2026", "patients\u20132026"),
    "two spaces": ("a b", "a  b"),
    "zero and O": ("study O", "study 0"),
    "one and l": ("trial", "tria1"),
    "capital I and l": ("Illness", "lllness"),
    "ligature": ("file", "\ufb01le"),
}


@pytest.mark.finding("B7")
@pytest.mark.parametrize("other", LOOK_LIKE_D.values(), ids=LOOK_LIKE_D)
def test_a_name_that_looks_like_d_has_no_budget_of_its_own(ledger: Ledger, other: str) -> None:
    ledger.init("d", PureDP(1.0))
    with pytest.raises(LedgerError, match=r"name|look like"):
        ledger.init(other, PureDP(1.0))
    assert ledger.datasets() == ("d",)


@pytest.mark.finding("B7")
@pytest.mark.parametrize(("first", "second"), LOOK_LIKE_OTHERS.values(), ids=LOOK_LIKE_OTHERS)
def test_names_that_look_alike_are_refused_beside_each_other(ledger: Ledger, first: str, second: str) -> None:
    ledger.init(first, PureDP(1.0))
    with pytest.raises(LedgerError, match=r"name|look like"):
        ledger.init(second, PureDP(1.0))


@pytest.mark.finding("B7")
def test_parts_that_look_alike_are_refused(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    with pytest.raises(LedgerError, match="look like"):
        ledger.declare_parts("patients", "region", {"north": 3, "North": 4})


def test_names_in_any_one_script_are_welcome(ledger: Ledger) -> None:
    names = (
        "patients-2026",
        "patients-2027",
        "patients_2026",
        "пациенты",
        "ασθενείς",
        "données santé",
        "患者",
        "환자",
        "مرضى",
        "m",
        "rn",
        "β-study",
    )
    for name in names:
        ledger.init(name, PureDP(1.0))
    assert ledger.datasets() == names


def test_message_of_a_spent_budget_says_that_nothing_is_left(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.reserve("patients", PureDP(1.0))
    with pytest.raises(BudgetSpent, match=r"At most ε = 0 is left") as refused:
        ledger.reserve("patients", PureDP(0.1))
    assert refused.value.remaining == 0.0


def test_message_of_a_refusal_rounds_what_is_left_down(ledger: Ledger) -> None:
    ledger.init("patients", PureDP(1.0))
    ledger.reserve("patients", PureDP(0.87654321))
    with pytest.raises(BudgetSpent, match=r"At most ε = 0\.1234 is left"):  # of 0.12345679
        ledger.reserve("patients", PureDP(0.2))


def test_second_partition_of_a_dataset_is_refused_and_the_first_is_not(place: str) -> None:
    ledger = Ledger.open(place, create=True)
    ledger.init("d", PureDP(1.0))
    ledger.declare_parts("d", "hospital", {"north": 20, "south": 20})
    with pytest.raises(LedgerError, match="already cut by 'hospital'"):
        ledger.declare_parts("d", "sex", {"F": 20, "M": 20})
    assert ledger.account("d").partition == "hospital"
