"""ChaCha20 for NumPy: the one file that meets randomgen.

randomgen's `ChaCha` is used with ``key=`` only: ``seed=`` goes through a 128-bit SeedSequence, and ``spawn``
makes children from a SeedSequence that knows nothing of the key. Its counter counts 32-bit words, 16 to a
block, so the stream of counter 0 is the keystream of RFC 8439 with a nonce of zeros and the first block
numbered 0.
"""

from __future__ import annotations

import os
import weakref
from typing import NoReturn

from randomgen import ChaCha

from onedraw import errors
from onedraw.samplers.randomness import KEY_BYTES

ROUNDS = 20


class SeededChaCha(ChaCha):  # type: ignore[misc]
    """ChaCha20 under a given key."""

    def __init__(self, *, key: int = 0) -> None:
        super().__init__(key=key, rounds=ROUNDS)

    def spawn(self, n_children: int) -> NoReturn:
        raise errors.WrongCall(
            f"spawn({n_children}) would make children from a SeedSequence that ignores this generator's key. "
            "Make another generator with secure_generator() or seeded_generator(seed) instead."
        )


class SecureChaCha(SeededChaCha):
    """ChaCha20 under a key from the operating system, taken anew in every forked child."""

    secure = True

    def __init__(self) -> None:
        super().__init__(key=int.from_bytes(os.urandom(KEY_BYTES), "little"))
        _living.add(self)

    def __reduce__(self) -> NoReturn:
        raise errors.WrongCall(
            "A secure generator cannot be copied or pickled: the copy would repeat its stream, and two "
            "releases with the same noise are not private. Call secure_generator() where it is needed."
        )


def _take_fresh_keys_in_child() -> None:
    """Start over under new keys; buffered blocks go too, since counters return to 0."""
    for generator in list(_living):
        generator.seed(key=int.from_bytes(os.urandom(KEY_BYTES), "little"))


_living: weakref.WeakSet[SecureChaCha] = weakref.WeakSet()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_take_fresh_keys_in_child)
