"""A room's names, looked up on first use: a question loads only what its answer needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_on_demand(room: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a room; ``homes`` says in which of its files a name lives."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(f"{room}.{homes[name]}"), name)
        setattr(sys.modules[room], name, value)
        return value

    return find
