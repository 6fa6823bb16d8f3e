"""YAML read plainly: what is written is what is meant.

YAML 1.1, which PyYAML follows, reads `no` as false, `012` as ten, `12:30` as 750, `2026-01-01` as a date and
`1e5` as a text. A list of levels must not change so. This loader keeps the safe one's plain values only and
knows the scalars of JSON (null, true, false, decimal numbers); everything else is text. Keys are always text,
and a key given twice is refused.
"""

from __future__ import annotations

import re
from typing import Any

import yaml


class RepeatedKey(yaml.YAMLError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class PlainLoader(yaml.SafeLoader):
    """A safe loader with the scalars of JSON and no others."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own class attribute)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain text", key_node.start_mark)
            key = str(key_node.value)
            if key in mapping:
                raise RepeatedKey(key)
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
