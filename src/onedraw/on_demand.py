"""A room's names, looked up on first use: a question loads only what its answer needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def names_on_demand(
    room: str, *files: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a room; ``files`` say which names live in which of its files, and under "" which are files."""
    homes = {name: file for part in files for file, names in part.items() for name in names}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        home = import_module(f"{room}.{homes[name] or name}")
        value = getattr(home, name) if homes[name] else home
        setattr(sys.modules[room], name, value)
        return value

    return find, lambda: sorted(homes)
