"""Values that write themselves as ``{key: tag, field: value, …}``, ready for JSON, and are read back strictly.

A *family* derives from `Stored` directly, says under which key its tag stands, what a member is called and which
error refuses one; its members derive from it and are known by their tag, the class's name unless they say another:

    class Curve(Stored, key="family", noun="curve", refuses=InvalidBudget): ...

    @dataclass(frozen=True)
    class LinearCurve(Curve, tag="linear"):
        rho: float                            # LinearCurve(0.1).to_dict() == {"family": "linear", "rho": 0.1}

``Curve.from_dict(stored)`` gives the member, ``LinearCurve.from_dict`` one of that class or an error. A family without a
key has one member, itself (`Guarantee`, `Unit`).

| field | written | read back |
| --- | --- | --- |
| a `Stored` | its ``to_dict()`` | by ``from_dict`` of the class that the constructor's annotation names, also ``A | None`` and ``A | B`` |
| tuple or list, also nested | list | a tuple where the annotation is one |
| enumeration | its value | as it is: the constructor checks it |
| +∞ | null, since JSON has no infinity | +∞ where the annotation is ``float`` |
| named tuple | ``{name: value}`` | as it is: the constructor checks it |
| anything else | as it is | as it is: the constructor checks it |

A field ``rho: Annotated[float, partial(positive, "ρ")]`` is what ``positive("ρ", given)`` makes of what is given; where None is
the default, as of ``Annotated[float | None, …] = None``, it stays None.

The keys are the constructor's parameters, all of them and no others: nothing is guessed about a promise. An option that came
later is named in ``later``: it is written only where it is not its default, so older documents keep their digests.
A value whose constructor takes other names than its fields overrides `_values`; one with a form of its own
overrides `to_dict` and `_from_values`. Annotations of fields are evaluated, so import what they name. A class that is
abstract, or no dataclass, is no member.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from onedraw.errors import OnedrawError, WrongCall


class Stored(abc.ABC):
    """A frozen value that can be written down and read back; see the module for how to make one."""

    tag: ClassVar[str]
    later: ClassVar[frozenset[str]] = frozenset()
    _key: ClassVar[str]
    _noun: ClassVar[str]
    _refuses: ClassVar[type[OnedrawError]]
    _members: ClassVar[dict[str, type[Stored]]]

    def __init_subclass__(
        cls, *, key: str = "", noun: str = "", refuses: type[OnedrawError] = WrongCall, tag: str = "", **rest: Any
    ) -> None:
        super().__init_subclass__(**rest)
        cls.tag = tag or cls.__name__
        if Stored in cls.__bases__:
            cls._key, cls._noun, cls._refuses, cls._members = key, noun or cls.__name__, refuses, {}
        known = cls._members.setdefault(cls.tag, cls)
        # The same class made twice (a module loaded again, a decorator that copies) is no other one.
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise cls._refuses(f"Two kinds of {cls._noun} are called {cls.tag!r}; rename one of them.")
        cls._members[cls.tag] = cls

    def to_dict(self) -> dict[str, Any]:
        """``{key: tag, name: value, …}``, ready for JSON; ``from_dict`` reads it back."""
        defaults = inspect.signature(type(self)).parameters if self.later else {}
        shown = {
            name: _plain(value)
            for name, value in self._values().items()
            if name not in self.later or value != defaults[name].default
        }
        return {self._key: self.tag, **shown} if self._key else shown

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of ``to_dict``; an unknown tag, a missing name and one too many are errors."""
        values = dict(stored) if isinstance(stored, Mapping) else {}
        tag = values.pop(cls._key, None) if cls._key else cls.tag
        member = cls._members.get(tag) if isinstance(tag, str) else None
        if member is None or not cls._reads(member):
            known = ", ".join(sorted(cls.members()))
            raise cls._refuses(f"No {cls._noun} is called {tag!r}; the known ones are {known}.")
        try:
            return cast(Self, member._from_values(values))
        except TypeError as error:
            raise cls._refuses(f"The {cls._noun} {tag} cannot be made of the values given: {error}.") from error

    @classmethod
    def members(cls) -> dict[str, type[Self]]:
        """The classes that can be read back, by tag: finished dataclasses among this one and those that derive from it."""
        return {tag: cast(type[Self], member) for tag, member in cls._members.items() if cls._reads(member)}

    @classmethod
    def _reads(cls, member: type[Stored]) -> bool:
        """Asked of the one that is read, not of all: a ledger reads a hundred thousand promises."""
        return issubclass(member, cls) and hasattr(member, "__dataclass_fields__") and not inspect.isabstract(member)

    def _values(self) -> dict[str, Any]:
        """What the constructor was given, by its names."""
        fields = dataclasses.fields(cast(Any, self))
        return {field.metadata.get("stored", field.name): getattr(self, field.name) for field in fields}

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        hints, of = _constructor(cls), f"{cls._noun} {cls.tag}"
        check_names(values, hints, later=cls.later, of=of, refuses=cls._refuses)
        return cls(**{name: _read(hints[name], value) for name, value in values.items()})

    def __post_init__(self) -> None:
        """Every field as the check beside its type gives it back; None stays where it is the default."""
        for name, check in _checks(type(self)).items():
            if getattr(self, name) is not None or getattr(type(self), name, "none") is not None:
                self._set(**{name: check(getattr(self, name))})

    def _set(self, **values: object) -> None:
        """Store validated values on a frozen value, from its ``__post_init__``."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """As it is made; for dataclasses with ``repr=False``."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._values().items())})"


Member = TypeVar("Member", bound=type)


def frozen_value(member: Member) -> Member:
    """Make a frozen dataclass of a class with a constructor of its own.

    Editors then show that constructor. Of `dataclass(init=False)` Jedi shows no parameters.
    """
    return cast(Member, dataclasses.dataclass(frozen=True, init=False, repr=False)(member))


def stored_as(name: str) -> Any:
    """A dataclass field that is written, and given to the constructor, under another name than the attribute's."""
    return dataclasses.field(metadata={"stored": name})


def check_names(
    values: Mapping[str, Any], expected: Mapping[str, Any] | tuple[str, ...], *, of: str, refuses: type[OnedrawError],
    later: frozenset[str] = frozenset(),
) -> None:  # fmt: skip
    """Refuse values whose names are not exactly the expected ones; those in ``later`` may be missing."""
    if not isinstance(values, Mapping) or not set(expected) - later <= set(values) <= set(expected):
        raise refuses(
            f"The {of} is made of {', '.join(expected)}, but {', '.join(map(str, values)) or 'nothing'} was given. "
            "Nothing is guessed about a promise: give exactly these."
        )


@cache
def _constructor(member: type[Stored]) -> dict[str, Any]:
    """The parameters of the constructor, each with its annotation."""
    generated = member.__dataclass_params__.init  # type: ignore[attr-defined]  # every member is a dataclass
    hints = get_type_hints(member if generated else member.__init__)
    return {name: hints.get(name) for name in inspect.signature(member).parameters}


@cache
def _checks(member: type[Stored]) -> dict[str, Callable[[Any], Any]]:
    """Of the fields written ``Annotated[type, check]``: the check, which refuses a value or says as what it is kept."""
    hints = get_type_hints(member, include_extras=True)
    return {name: check for name, hint in hints.items() for check in getattr(hint, "__metadata__", ())}


def _plain(value: Any) -> Any:
    if isinstance(value, Stored):
        return value.to_dict()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and value == math.inf else value


def _read(hint: Any, value: Any) -> Any:
    """A stored value as the annotation says; what an annotation does not say, the constructor checks."""
    if get_origin(hint) in (Union, UnionType) and value is not None:
        hint = next((option for option in get_args(hint) if _fits(option, value)), None)
    if get_origin(hint) is tuple and isinstance(value, list | tuple):
        items = get_args(hint)
        each = items[:1] * len(value) if items[-1] is ... else items
        return tuple(map(_read, each, value)) if len(each) == len(value) else tuple(value)
    if isinstance(hint, type) and issubclass(hint, Stored) and not isinstance(value, hint):
        return hint.from_dict(value)
    return math.inf if hint is float and value is None else value


def _fits(option: Any, value: Any) -> bool:
    """Whether a value is written as this one of several annotations would be."""
    if isinstance(option, type) and issubclass(option, Stored):
        return isinstance(value, Mapping) and option._key in value
    return get_origin(option) is tuple and isinstance(value, list)
