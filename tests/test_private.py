"""What is as private as the records prints no field, in every room."""

import importlib
from dataclasses import dataclass
from pathlib import Path

from onedraw.private import Private

SOURCE = Path(__file__).resolve().parent.parent / "src"


def descendants(cls: type) -> set[type]:
    return {cls}.union(*map(descendants, cls.__subclasses__()))


def test_a_private_value_tells_how_many_records_there_are_and_nothing_else():
    for path in SOURCE.rglob("*.py"):
        if "import Private" in path.read_text():
            importlib.import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts))
    private = {cls for cls in descendants(Private) if cls.__module__.startswith("onedraw.")}
    assert len(private) > 25
    assert [cls.__name__ for cls in private if cls.__repr__ is not Private.__repr__] == []


def test_private_values_are_shown_by_their_number_of_records():
    @dataclass(repr=False)
    class Sums(Private):
        n: int
        total: float

    assert repr(Sums(3, 2.5)).endswith("Sums(n=3, <private>)")


def test_a_dataclass_that_would_print_its_fields_is_caught():
    @dataclass
    class Leaking(Private):
        total: float

    assert Leaking in descendants(Private)
    assert Leaking.__repr__ is not Private.__repr__
