"""A ChaCha20 key type for JAX: `jax.random` on a cryptographic generator.

JAX's own keys are 64 bits of threefry, made for speed and reproducibility; a private draw needs a stream that
cannot be told from noise by anyone who sees outputs. This is the block function of RFC 8439 §2.3 as a JAX
random-number implementation, so that `jax.random.normal`, `split`, `fold_in` and every sampler written on
them work unchanged, under `jit`, `vmap`, `scan` and on accelerators. It needs JAX and NumPy only.

A key is the cipher's 256-bit key, as 8 words. Everything is one keyed function of 16 input bytes (words 12 to
15 of the state), and no two uses share an input:

| use | words 12, 13 | word 14 | word 15 | output |
| --- | --- | --- | --- | --- |
| random bits | block number | 0 | 0 | the RFC's keystream with a nonce of zeros |
| split | block number | 0 | 1 | two child keys from each block |
| fold_in | the folded number | 0 | 2 | the first 8 words are the child key |
| `jax.random.key(seed, impl=CHACHA20)` | the seed | 0 | 3 | the same, under a public key: *not private* |

So children are keystream bytes of their parent under an input used for nothing else: whoever sees any number
of children and random bits learns neither the parent nor a sibling, unless ChaCha20 falls. As with any JAX
key, using one key twice repeats the numbers: split first.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl

from onedraw import errors
from onedraw.samplers.randomness import KEY_BYTES, seed_digest

Words = tuple[jax.Array, ...]

DOUBLE_ROUNDS = 10
BLOCK_WORDS = 16
KEY_WORDS = 8

_CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u4")
_SEEDING_KEY = np.frombuffer(b"onedraw: seeded, so not private.", dtype="<u4")
_BITS, _SPLIT, _FOLD_IN, _SEED = (np.uint32(purpose) for purpose in range(4))


def secure_key() -> jax.Array:
    """A key of 32 bytes from the operating system. It is a value: copied to another process, it repeats."""
    return chacha_key(os.urandom(KEY_BYTES))


def seeded_key(seed: int) -> jax.Array:
    """A key made from the SHA-256 of ``seed``: reproducible, not private."""
    return chacha_key(seed_digest(seed, purpose="jax"))


def chacha_key(seed_bytes: bytes) -> jax.Array:
    """The key whose cipher key is exactly these 32 bytes (little-endian words, as in RFC 8439)."""
    if len(seed_bytes) != KEY_BYTES:
        raise errors.WrongCall(
            f"A ChaCha20 key has {KEY_BYTES} bytes; {len(seed_bytes)} were given. A shorter key can be "
            "guessed and a longer one would be cut. Use secure_key(), or seeded_key(seed) to reproduce a run."
        )
    words = np.frombuffer(seed_bytes, dtype="<u4").astype(np.uint32)
    key: jax.Array = jax.random.wrap_key_data(jnp.asarray(words), impl=CHACHA20)
    return key


def chacha20_blocks(key: jax.Array, inputs: Words) -> jax.Array:
    """The block function of RFC 8439 §2.3: (n, 16) words from a key (8,) and words 12 to 15, each (n,)."""
    shape = (4, inputs[0].size)
    constants = jnp.asarray(_CONSTANTS.astype(np.uint32))
    rows = [jnp.broadcast_to(row[:, None], shape) for row in (constants, key[:4], key[4:])]
    start = (*rows, jnp.stack(inputs))
    # The rounds stay a loop: unrolled, XLA takes seconds to compile them wherever a number is drawn.
    mixed = lax.fori_loop(0, DOUBLE_ROUNDS, lambda _, state: _double_round(state), start)
    return jnp.concatenate([a + b for a, b in zip(mixed, start, strict=True)]).T


def _double_round(state: Words) -> Words:
    """Four column rounds at once, then four diagonal rounds: columns too, once rows b, c, d are turned."""
    a, b, c, d = _quarter_round(*state)
    b, c, d = (jnp.roll(row, -turn, axis=0) for turn, row in ((1, b), (2, c), (3, d)))
    a, b, c, d = _quarter_round(a, b, c, d)
    b, c, d = (jnp.roll(row, turn, axis=0) for turn, row in ((1, b), (2, c), (3, d)))
    return a, b, c, d


def _quarter_round(a: jax.Array, b: jax.Array, c: jax.Array, d: jax.Array) -> Words:
    a = a + b
    d = _rotate_left(d ^ a, 16)
    c = c + d
    b = _rotate_left(b ^ c, 12)
    a = a + b
    d = _rotate_left(d ^ a, 8)
    c = c + d
    b = _rotate_left(b ^ c, 7)
    return a, b, c, d


def _rotate_left(word: jax.Array, bits: int) -> jax.Array:
    return (word << np.uint32(bits)) | (word >> np.uint32(32 - bits))


def _keystream(key: jax.Array, words: int, *, purpose: np.uint32) -> jax.Array:
    blocks = -(-words // BLOCK_WORDS)
    if blocks > 2**32:
        raise errors.WrongCall(
            f"One key gives at most 2^36 random words; {words} were asked for. Beyond that the block number, "
            "and so the stream, would repeat. Split the key and draw in parts."
        )
    number = lax.iota(np.uint32, blocks)
    zero = jnp.zeros_like(number)
    stream = chacha20_blocks(key, (number, zero, zero, jnp.full_like(number, purpose)))
    return stream.reshape(-1)[:words]


@partial(jax.jit, static_argnums=(1, 2))
def _random_bits(key: jax.Array, bit_width: int, shape: Sequence[int]) -> jax.Array:
    size = math.prod(shape)
    if bit_width == 64:
        pairs = _keystream(key, 2 * size, purpose=_BITS).reshape(size, 2).astype(jnp.uint64)
        return (pairs[:, 0] | (pairs[:, 1] << np.uint64(32))).reshape(shape)
    words = _keystream(key, size, purpose=_BITS)
    return words.astype({8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32}[bit_width]).reshape(shape)


@partial(jax.jit, static_argnums=(1,))
def _split(key: jax.Array, shape: Sequence[int]) -> jax.Array:
    return _keystream(key, KEY_WORDS * math.prod(shape), purpose=_SPLIT).reshape(*shape, KEY_WORDS)


@jax.jit
def _fold_in(key: jax.Array, data: jax.Array) -> jax.Array:
    return _derived_key(key, data, purpose=_FOLD_IN)


@jax.jit
def _seed(seed: jax.Array) -> jax.Array:
    return _derived_key(jnp.asarray(_SEEDING_KEY.astype(np.uint32)), seed, purpose=_SEED)


def _derived_key(key: jax.Array, number: jax.Array, *, purpose: np.uint32) -> jax.Array:
    """The key of an integer of up to 64 bits; the same for 7 as int32 and as int64."""
    low = number.astype(jnp.uint32)
    if number.dtype.itemsize > 4:
        high = (number >> 32).astype(jnp.uint32)
    else:
        high = jnp.where(number < 0, np.uint32(2**32 - 1), np.uint32(0))  # the sign, carried on
    inputs = (low, high, jnp.zeros_like(low), jnp.full_like(low, purpose))
    return chacha20_blocks(key, tuple(jnp.reshape(word, (1,)) for word in inputs))[0, :KEY_WORDS]


CHACHA20 = define_prng_impl(
    key_shape=(KEY_WORDS,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="chacha20",
    tag="cc20",
)
