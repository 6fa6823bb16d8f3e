"""The text of a schema, read plainly: what is written is what is meant.

YAML 1.1, which PyYAML follows, reads `no` as false, `012` as ten, `12:30` as 750, `2026-01-01` as a date and
`1e5` as a text. A list of levels must not change so. This loader keeps the safe one's plain values only and
knows the scalars of JSON (null, true, false, decimal numbers); everything else is text. Keys are always text,
and a key given twice is refused. So are aliases (nine lines of them can stand for a billion values) and tags,
which say that a text is something else than it looks.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from onedraw.errors import InvalidSchema


class NotPlain(yaml.MarkedYAMLError):
    """YAML that means something else than it says; ``remedy`` is what to write instead."""

    def __init__(self, remedy: str, mark: Any) -> None:
        super().__init__(problem_mark=mark)
        self.remedy = remedy


class PlainLoader(yaml.SafeLoader):
    """A safe loader with the scalars of JSON and no others."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own class attribute)

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise NotPlain("Aliases (*name) are not read: write the declaration out there", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise NotPlain("Tags (!name) are not read: write the value plainly there", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain text", key_node.start_mark)
            key = str(key_node.value)
            if key in mapping:
                raise repeated(key)
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping


for tag, pattern, first in (
    ("null", r"(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
        r"|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$",
        list("-+.0123456789"),
    ),
):
    PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)


def parsed_yaml(text: str) -> Any:
    """The plain values of a schema's text."""
    try:
        return yaml.load(text, Loader=PlainLoader)  # a SafeLoader
    except InvalidSchema:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        remedy = error.remedy if isinstance(error, NotPlain) else "Correct the indentation or the quotes there"
        raise InvalidSchema(f"The schema is not valid YAML{where}. {remedy}.") from None


def parsed_json(text: str) -> Any:
    """The same of JSON."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise repeated(key)
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except InvalidSchema:
        raise
    except (ValueError, RecursionError) as error:  # JSONDecodeError is a ValueError
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidSchema(f"The schema is not valid JSON{where}. Correct the file, or write it as YAML.") from None


def repeated(key: str) -> InvalidSchema:
    return InvalidSchema(
        f"The key {key!r} is given twice in one place of the schema, so it is not clear which of the two is meant. Remove one."
    )
