"""The unit: of each person's records only the first k, in file order, count.

A promise for persons with at most k records (mathematics: group privacy) needs that limit to hold. It is
enforced rather than believed: a record beyond the k-th of its person becomes the declared missing record, so
that n stays what it is. A record that does not say whose it is becomes the missing record too: were such
records pooled, one of them could push another out.

What stays declared: that the person column names persons. Two data sets are neighbours when one person's
records are replaced by those of somebody who is not yet in the file; then at most k encoded records differ.

Identifiers are kept as 64-bit keys in sorted runs merged like a log-structured tree: about 12 bytes a person,
one pass. Two persons share a key with probability below 1e-5 for ten million persons; they are then counted
as one, which can only drop records, never admit more than k of anybody's. The keys depend on secrets drawn when the
program starts, so that nobody can choose an identifier that is taken for another person's.
"""

from __future__ import annotations

import hashlib
import math
import re
import secrets
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from onedraw.arrays import Integers, Mask
from onedraw.data.cells import EXACT_INTEGERS, bytes_of, integer_of, number_in, number_of, text_of
from onedraw.data.columns import Chunk, Numbers, Times, missing_cells

Keys = npt.NDArray[np.uint64]

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")  # Python converts no longer ones


@dataclass(frozen=True)
class Secrets:
    """What keys depend on; workers that share the records of one person must share it."""

    texts: bytes = field(default_factory=partial(secrets.token_bytes, 32), repr=False)
    large: int = field(default_factory=partial(secrets.randbits, 64), repr=False)
    negative: int = field(default_factory=partial(secrets.randbits, 64), repr=False)
    """These two keep long integers apart from the bits of floats."""


SECRETS = Secrets()


def person_keys(chunk: Chunk, *, exact: bool, secret: Secrets = SECRETS) -> tuple[Keys, Mask]:
    """A key for each record's identifier, and which records have none.

    1, 1.0 and "1" name the same person. Integers of 2**53 and more are told apart digit by digit where
    `exact`; a source whose column types are inferred from the records is not exact, since one missing
    identifier turns a frame's integers into floats that no longer differ.
    """
    if isinstance(chunk, Numbers):
        floats = chunk.floats()
        keys = _scramble((floats + 0.0).view(np.uint64))  # + 0.0: minus zero is zero
        if exact and chunk.values.dtype.kind in "iu":
            large = np.abs(floats) >= EXACT_INTEGERS
            masks = np.where(floats[large] < 0, np.uint64(secret.negative), np.uint64(secret.large))
            keys[large] = _scramble(chunk.values[large].astype(np.uint64) ^ masks)
        return keys, ~np.isfinite(floats)
    if isinstance(chunk, Times):  # of a column of dates, which names nobody
        chunk = missing_cells(len(chunk))
    bits = np.zeros(len(chunk.values) + 1, dtype=np.uint64)
    named = np.zeros(len(chunk.values) + 1, dtype=bool)  # the last one stands for code −1
    for place, value in enumerate(chunk.values):
        found = _bits_of_cell(value, secret, exact=exact)
        bits[place], named[place] = found or 0, found is not None
    return _scramble(bits)[chunk.codes], ~named[chunk.codes]


def _bits_of_cell(cell: Any, secret: Secrets, *, exact: bool) -> int | None:
    """64 bits that tell one identifier from another, or None where the cell names nobody."""
    if issubclass(type(cell), (str, bytes)):
        text = text_of(cell)
        if text is None:  # an identifier need not be text, only comparable
            raw = bytes_of(cell)
            return _digest(b"bytes:" + raw, secret) if raw and raw.strip() else None
        number = number_in(text)
        if number is None:
            return _digest(text.encode("utf-8", "surrogatepass"), secret)
        whole = int(text) if exact and _INTEGER.fullmatch(text) else None
    else:
        number = number_of(cell)
        whole = integer_of(cell) if exact else None
    if whole is not None and abs(whole) >= EXACT_INTEGERS:
        if not -(2**63) <= whole < 2**64:
            return _digest(b"%d" % whole, secret)
        # its bits, behind a secret mask for each sign
        return whole % 2**64 ^ (secret.negative if whole < 0 else secret.large)
    return int.from_bytes(struct.pack("<d", number + 0.0), "little") if math.isfinite(number) else None


def _digest(name: bytes, secret: Secrets) -> int:
    return int.from_bytes(hashlib.blake2b(name, digest_size=8, key=secret.texts).digest(), "little")


def _scramble(bits: Keys) -> Keys:
    """The finaliser of splitmix64: a bijection, so different numbers keep different keys."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


class PersonLimit:
    """Counts the records of each person in file order and marks those beyond the limit."""

    def __init__(self, max_records: int) -> None:
        self.max_records = max_records
        self._ceiling = min(max_records, 2**31 - 1)  # counts beyond the limit need not be told apart
        self._runs: list[tuple[Keys, npt.NDArray[np.int32]]] = []

    def surplus(self, keys: Keys, absent: Mask) -> Mask:
        """Which records of the next batch become the missing record: unnamed ones, and those in surplus."""
        marked = absent.copy()
        named = np.flatnonzero(~absent)
        different, inverse, counts = np.unique(keys[named], return_inverse=True, return_counts=True)
        order = np.argsort(inverse, kind="stable")
        rank = np.empty(len(named), dtype=np.int64)
        rank[order] = np.arange(len(named)) - np.repeat(np.cumsum(counts) - counts, counts)
        seen = np.zeros(len(different), dtype=np.int64)
        for run, held in self._runs:
            place = np.minimum(np.searchsorted(run, different), len(run) - 1)
            seen += np.where(run[place] == different, held[place], 0)
        marked[named] = seen[inverse] + rank >= self.max_records
        self._add(different, counts)
        return marked

    def _add(self, different: Keys, counts: npt.NDArray[Any]) -> None:
        if not len(different):
            return
        self._runs.append((different, np.minimum(counts, self._ceiling).astype(np.int32)))
        while len(self._runs) > 1 and len(self._runs[-1][0]) * 2 > len(self._runs[-2][0]):
            keys, held = map(np.concatenate, zip(*self._runs[-2:], strict=True))
            order = np.argsort(keys, kind="stable")
            keys, held = keys[order], held[order]
            first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
            total = np.add.reduceat(held, first, dtype=np.int64)
            self._runs[-2:] = [(keys[first], np.minimum(total, self._ceiling).astype(np.int32))]


NOBODY = -1
"""The owner of a record that names nobody or is beyond its person's limit: it is the missing record, and nobody's."""


OWNER = "\x1fowner"
"""Column of keys in files of encoded records: no column of a schema has such a name."""

NOBODY_KEY = np.uint64(0x9E3779B97F4A7C15)
"""Stands for the key of such a record where keys are written. No person has it but with probability 2⁻⁶⁴, and theirs would be left out."""


def owners_of(batches: Iterable[tuple[Keys, Mask]], max_records: int) -> Integers:
    """Return each record's owner: the place of its person's first record, or `NOBODY`.

    An owner has at most ``max_records`` records. Replacing all records of one person by those of somebody new changes the
    owners in that person's places only, and there one owner, with one set of places, takes the place of another.
    """
    limit, keys, nobody = PersonLimit(max_records), [np.empty(0, np.uint64)], [np.empty(0, bool)]
    for found, absent in batches:
        keys.append(found)
        nobody.append(limit.surplus(found, absent))
    return owners_by_key(np.concatenate(keys), np.concatenate(nobody))


def owners_by_key(keys: Keys, nobody: Mask) -> Integers:
    """Return each record's owner, of records that all count but those of nobody."""
    places = np.flatnonzero(~nobody)
    _, first, person = np.unique(keys[places], return_index=True, return_inverse=True)
    owners = np.full(len(keys), NOBODY, dtype=np.int64)
    owners[places] = places[first][person]
    return owners
