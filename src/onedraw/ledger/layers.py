"""Dictionaries that share what they have in common, so that a snapshot of a long history costs little.

A ledger takes several snapshots for each event. Copying a dictionary of 100,000 entries each time would make every
reservation slower as the history grows. `Layers` shares the older entries and writes new ones on top. A layer is merged
into the one below as soon as it is at least half as long: there are at most log2(n) layers, and an entry is copied at
most log2(n) times in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")


class Layers(Mapping[str, Value]):
    """Mapping with cheap snapshots. `branch` shares everything; writing to one branch does not change another."""

    __slots__ = ("_shared", "_top")

    def __init__(self, shared: tuple[dict[str, Value], ...] = ()) -> None:
        self._shared = shared
        self._top: dict[str, Value] = {}

    def branch(self) -> Layers[Value]:
        """Return a mapping with the same entries that can be written to by itself."""
        if self._top:
            # In this order a thread that reads meanwhile sees every entry.
            self._shared = _merged((*self._shared, self._top))
            self._top = {}
        return Layers(self._shared)

    def __setitem__(self, key: str, value: Value) -> None:
        self._top[key] = value

    def __getitem__(self, key: str) -> Value:
        if key in self._top:
            return self._top[key]
        for layer in reversed(self._shared):
            if key in layer:
                return layer[key]
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys, in the order in which they were first written."""
        return iter(dict.fromkeys(key for layer in (*self._shared, self._top) for key in layer))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _merged(layers: tuple[dict[str, Value], ...]) -> tuple[dict[str, Value], ...]:
    """Merge newer layers into older ones until each is less than half as long as the one below."""
    *below, last = layers
    while below and 2 * len(last) >= len(below[-1]):
        last = {**below.pop(), **last}
    return (*below, last)
