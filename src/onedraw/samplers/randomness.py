"""Where the randomness of a draw comes from: the operating system's entropy, or a seed.

The theorems speak of an adversary without limits; what runs is a stream cipher, so every release rests on
ChaCha20 (D. J. Bernstein, 2008; RFC 8439) under a 256-bit key that nobody knows. The key is fresh from the
operating system for every generator and never leaves the process.

**Guarantee.** Two secure generators never share a key, and neither do a process and its forked children.

| what happens | what the stream does |
| --- | --- |
| `os.fork` (also `multiprocessing` by fork) | every living secure generator takes a fresh key in the child; what needs JAX is refused there (`jax_is_lost`) |
| copying or pickling a secure generator | refused: the copy would repeat the stream |
| `spawn` | refused: randomgen's children ignore the key |
| a fork in C without Python's hooks, a machine resumed twice | *not detected*: make the generator after it |
| a seeded generator, forked or copied | repeats, as reproducing requires; it is not private anyway |
"""

from __future__ import annotations

import hashlib
import operator
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onedraw import errors

if TYPE_CHECKING:
    from numpy.random import Generator

OPERATING_SYSTEM = "operating system entropy, ChaCha20"
OPENDP = "operating system entropy, as OpenDP draws it"
BOTH = "operating system entropy: noise on sums as OpenDP draws it, all else by ChaCha20"
SEEDED = "seeded: reproducible, not private"

KEY_BYTES = 32
"""… which nobody knows: `os.urandom` of as many."""

jax_is_lost = False
"""Whether this process was forked after JAX had begun to compute: no thread of JAX's survives a fork, and whoever needs one
would wait for ever. A fork in C without Python's hooks is not noticed."""


def secure_generator() -> Generator:
    """A NumPy generator on ChaCha20 with a fresh 256-bit key from the operating system; safe across forks."""
    from numpy.random import Generator

    from onedraw.samplers.numpy_chacha import SecureChaCha

    return Generator(SecureChaCha())


def seeded_generator(seed: int) -> Generator:
    """The same ChaCha20 keyed by the SHA-256 of ``seed``: reproducible by all who know the seed."""
    from numpy.random import Generator

    from onedraw.samplers.numpy_chacha import SeededChaCha

    return Generator(SeededChaCha(key=int.from_bytes(seed_digest(seed, purpose="numpy"), "little")))


def is_secure(generator: Generator) -> bool:
    """Whether its key is the operating system's, and nobody's seed."""
    return getattr(generator.bit_generator, "secure", False) is True


def seed_digest(seed: int, *, purpose: str) -> bytes:
    """The 32-byte key of a seed; ``purpose`` keeps the NumPy and the JAX stream of one seed apart."""
    return hashlib.sha256(f"onedraw seed for {purpose}: {_checked(seed):x}".encode()).digest()


@dataclass(frozen=True)
class Randomness:
    """The source of a release: ``Randomness()`` is private, ``Randomness(seed=7)`` only reproducible."""

    seed: int | None = None

    def __post_init__(self) -> None:
        if self.seed is not None:
            object.__setattr__(self, "seed", _checked(self.seed))

    @property
    def private(self) -> bool:
        return self.seed is None

    @property
    def kind(self) -> str:
        """The words a certificate uses."""
        return OPERATING_SYSTEM if self.private else SEEDED

    def generator(self) -> Generator:
        """A fresh generator: a new key each time when private, the same stream each time when seeded."""
        return secure_generator() if self.seed is None else seeded_generator(self.seed)


def _checked(seed: int) -> int:
    # A bool is an int to Python, and random_state=True is a slip that must not silently lose privacy.
    if not isinstance(seed, bool) and hasattr(type(seed), "__index__"):
        return operator.index(seed)
    raise errors.WrongCall(
        f"A seed is a whole number; {type(seed).__name__} was given. A seeded run is not private, so it must "
        "be asked for plainly. Pass an integer to reproduce a run, or no seed at all for a private draw."
    )


# ── forks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _look_for_jax() -> None:
    """In a forked child; if it cannot be told, JAX had begun."""
    global jax_is_lost
    bridge = sys.modules.get("jax._src.xla_bridge")
    jax_is_lost = jax_is_lost or (bridge is not None and bool(getattr(bridge, "_backends", True)))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_look_for_jax)
