"""Seeds and decisions of a private chain as numbers of a certificate: words of 32 bits, which a float holds exactly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import CertificateRejected

WORD_BITS = 32


def seed_words(seed: bytes) -> list[float]:
    return [float(word) for word in np.frombuffer(seed, dtype="<u4")]


def seed_of(words: Array) -> bytes:
    return whole(words).astype("<u4").tobytes()


def whole(words: Array) -> Array:
    """Refuse what no seed and no decisions were written as."""
    values = np.asarray(words, dtype=np.float64)
    if not np.all((values >= 0.0) & (values < 2.0**WORD_BITS) & (values == np.rint(values))):
        raise CertificateRejected(
            f"Seeds and decisions are whole numbers of {WORD_BITS} bits, and one of these is not."
        )
    return values


def decisions_in_word(outcomes: int) -> int:
    """How many decisions a word of 32 bits holds."""
    return WORD_BITS // max(1, (outcomes - 1).bit_length())


def packed(decisions: list[int], outcomes: int) -> list[float]:
    """The first decision in the lowest bits of the first word."""
    width, each = max(1, (outcomes - 1).bit_length()), decisions_in_word(outcomes)
    groups = (decisions[start : start + each] for start in range(0, len(decisions), each))
    return [float(sum(decision << (width * place) for place, decision in enumerate(group))) for group in groups]


def unpacked(words: Array, count: int, outcomes: int) -> Iterator[int]:
    """What was packed; a word with anything else in it is refused, so that a certificate has room for nothing else."""
    width, each = max(1, (outcomes - 1).bit_length()), decisions_in_word(outcomes)
    for place, word in enumerate(whole(words)):
        left = int(word)
        for _ in range(min(each, count - each * place)):
            if (decision := left & ((1 << width) - 1)) >= outcomes:
                raise CertificateRejected(
                    f"A decision among {outcomes} is a number below that, and one of these is not."
                )
            yield decision
            left >>= width
        if left:
            raise CertificateRejected("A word of decisions holds more than the steps of the plan decided.")
