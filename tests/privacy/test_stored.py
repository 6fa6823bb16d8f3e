"""Values that write themselves down: one base, strict on the way back."""

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, NamedTuple

import pytest

from onedraw.errors import InvalidModel
from onedraw.privacy.stored import Stored, stored_as


class Shape(Stored, key="shape", noun="shape", refuses=InvalidModel):
    """A family for these tests."""


class Colour(StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: float
    y: float


ORIGIN = Point(0.0, 0.0)


@dataclass(frozen=True)
class Dot(Shape):
    size: float = 1.0


def positive(value):
    if not value > 0:
        raise InvalidModel("A size is above 0.")
    return float(value)


@dataclass(frozen=True)
class Box(Shape):
    width: Annotated[float, positive]
    height: Annotated[float | None, positive] = None


@dataclass(frozen=True)
class Group(Shape, tag="group-of"):
    first: Shape
    others: tuple[Shape, ...] = ()
    best: Dot | None = None
    ends: tuple[float, float] | None = None
    limit: float = math.inf
    colour: Colour = Colour.RED
    corner: Point = ORIGIN
    scaled: bool = False
    later = frozenset({"scaled"})


@dataclass(frozen=True, init=False, repr=False)
class Renamed(Shape):
    stated_size: float = stored_as("size")

    def __init__(self, size: float) -> None:
        self._set(stated_size=float(size))


@dataclass(frozen=True)
class Alone(Stored, noun="lonely value", refuses=InvalidModel):
    of: Shape


VALUES = [
    Dot(2.0),
    Renamed(3.0),
    Group(Dot()),
    Group(Renamed(1.0), (Dot(), Group(Dot())), best=Dot(5.0), ends=(0.0, 1.0), limit=3.0, scaled=True),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_survives_json_and_is_found_by_its_tag(value):
    stored = json.loads(json.dumps(value.to_dict(), allow_nan=False))
    read = Shape.from_dict(stored)
    assert read == value or isinstance(value, Group)
    assert read.to_dict() == value.to_dict()
    assert type(value).from_dict(stored) == read
    assert Alone.from_dict(Alone(value).to_dict()).of == read


def test_fields_are_written_as_the_table_says():
    assert Group(Dot(), (Dot(2.0),)).to_dict() == {
        "shape": "group-of",
        "first": {"shape": "Dot", "size": 1.0},
        "others": [{"shape": "Dot", "size": 2.0}],
        "best": None,
        "ends": None,
        "limit": None,
        "colour": "red",
        "corner": {"x": 0.0, "y": 0.0},
    }
    assert Group(Dot(), scaled=True).to_dict()["scaled"] is True
    assert Renamed(2.0).to_dict() == {"shape": "Renamed", "size": 2.0}
    assert repr(Renamed(2.0)) == "Renamed(size=2.0)"
    assert Shape.from_dict(Group(Dot(), ends=(1.0, 2.0)).to_dict()).ends == (1.0, 2.0)


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        {"shape": "Square"},
        {"shape": ["Dot"]},
        {"shape": "Shape"},
        {"shape": "Dot"},
        {"shape": "Dot", "size": 1.0, "more": 2},
        Group(Dot()).to_dict() | {"first": 7},
        Group(Dot()).to_dict() | {"others": [{"shape": "Dot"}]},
        Group(Dot()).to_dict() | {"best": {"shape": "group-of"}},
        {"shape": "Renamed", "size": [1.0]},
    ],
    ids=str,
)
def test_what_is_not_exactly_a_value_is_refused(stored):
    with pytest.raises(InvalidModel):
        Shape.from_dict(stored)


def test_a_member_reads_only_its_own_kind():
    with pytest.raises(InvalidModel, match="the known ones are Dot"):
        Dot.from_dict(Renamed(1.0).to_dict())


def test_two_members_cannot_share_a_tag():
    with pytest.raises(InvalidModel, match="rename"):

        class Another(Shape, tag="Dot"):
            pass


def test_a_check_beside_a_type_is_made_unless_the_default_is_none_and_stays():
    assert (Box(2).width, Box(2).height, Box(2, 3).height) == (2.0, None, 3.0)
    assert Shape.from_dict(Box(2, 3).to_dict()) == Box(2, 3)
    assert Shape.from_dict(Box(2).to_dict()) == Box(2)
    for wrong in ((0.0,), (1.0, 0.0)):
        with pytest.raises(InvalidModel):
            Box(*wrong)
    with pytest.raises(TypeError):  # None is no default of the width: the check is asked
        Box(None)
