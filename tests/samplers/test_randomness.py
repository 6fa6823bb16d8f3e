"""The source of randomness: RFC 8439's cipher, the operating system's key, and no stream that repeats."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.random import Generator
from scipy.stats import kstest

from onedraw import errors
from onedraw.samplers import Randomness, randomness, secure_generator, seeded_generator
from onedraw.samplers.numpy_chacha import SeededChaCha

ALPHA = 1e-6

KEY = bytes(range(32))
# RFC 8439 §2.3.2: the block of this key, nonce 00:00:00:09:00:00:00:4a:00:00:00:00 and block number 1.
BLOCK = bytes.fromhex(
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)
# RFC 8439 §2.4.2: the same key, nonce 00:00:00:00:00:00:00:4a:00:00:00:00, block numbers from 1.
PLAINTEXT = (
    b"Ladies and Gentlemen of the class of '99: If I could offer you "
    b"only one tip for the future, sunscreen would be it."
)
CIPHERTEXT = bytes.fromhex(
    "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0bf91b65c5524733ab8f593dabcd62b357"
    "1639d624e65152ab8f530c359f0861d807ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab77937365"
    "af90bbf74a35be6b40b8eedf2785e42874d"
)
# RFC 8439 Appendix A.1, vector 1: key and nonce of zeros, block number 0.
ZERO_BLOCK = bytes.fromhex(
    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
)


def keystream(generator: SeededChaCha, count: int) -> bytes:
    return generator.random_raw(-(-count // 8)).astype("<u8").tobytes()[:count]


def positioned(key: bytes, nonce: bytes, block: int) -> SeededChaCha:
    """randomgen's counter counts words: 16 to each step of the cipher's 128-bit block number and nonce."""
    generator = SeededChaCha()
    counter = 16 * int.from_bytes(block.to_bytes(4, "little") + nonce, "little")
    generator.seed(key=int.from_bytes(key, "little"), counter=counter)
    return generator


def exclusive_or(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def test_the_block_is_that_of_rfc_8439() -> None:
    generator = positioned(KEY, bytes.fromhex("000000090000004a00000000"), 1)
    assert keystream(generator, 64) == BLOCK
    assert keystream(positioned(bytes(32), bytes(12), 0), 64) == ZERO_BLOCK


def test_the_encryption_example_of_rfc_8439_comes_out() -> None:
    generator = positioned(KEY, bytes.fromhex("000000000000004a00000000"), 1)
    assert exclusive_or(PLAINTEXT, keystream(generator, len(PLAINTEXT))) == CIPHERTEXT


def test_eight_rounds_instead_of_twenty_would_be_caught() -> None:
    from randomgen import ChaCha

    assert keystream(ChaCha(key=0, rounds=20), 64) == ZERO_BLOCK
    assert keystream(ChaCha(key=0, rounds=8), 64) != ZERO_BLOCK


def test_the_key_is_the_operating_systems_32_bytes_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def urandom(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    monkeypatch.setattr(randomness.os, "urandom", urandom)
    assert keystream(secure_generator().bit_generator, 64) == ZERO_BLOCK
    assert asked == [32]


def test_two_secure_generators_do_not_share_a_stream() -> None:
    first, second = (secure_generator().bit_generator.random_raw(64) for _ in range(2))
    assert not np.isin(first, second).any()


@pytest.mark.statistical
def test_secure_numbers_are_uniform() -> None:
    numbers = secure_generator().random(400_000)
    assert kstest(numbers, "uniform").pvalue >= ALPHA
    assert kstest(numbers**1.02, "uniform").pvalue < ALPHA


# ------------------------------------------------------------------------------------------- forks and copies

FORK = """
import os, sys
from numpy.random import Generator
from onedraw.samplers import secure_generator, seeded_generator

generator = {maker}
generator.random()                      # part of a block is buffered when the process forks
generators = [generator, {maker}]
for child in range(2):
    if os.fork() == 0:
        print(*(one.bytes(16).hex() for one in generators), flush=True)
        os._exit(0)
    os.wait()
print(*(one.bytes(16).hex() for one in generators))
"""


def streams_after_a_fork(maker: str) -> list[list[str]]:
    # In a process of its own: the test process may hold JAX's threads, which do not survive a fork.
    script = [sys.executable, "-c", FORK.format(maker=maker)]
    result = subprocess.run(script, capture_output=True, text=True, check=True, timeout=60)
    return [line.split() for line in result.stdout.splitlines()]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_parent_and_its_forked_children_have_different_streams() -> None:
    processes = streams_after_a_fork("secure_generator()")
    assert len(processes) == 3
    assert len({stream for process in processes for stream in process}) == 6


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_generator_that_keeps_its_key_across_a_fork_is_caught() -> None:
    """The planted fault: a generator without the fork hook, here a seeded one, repeats in every process."""
    processes = streams_after_a_fork("seeded_generator(7)")
    assert processes[0] == processes[1] == processes[2]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_secure_stream_cannot_be_copied(duplicate: object) -> None:
    with pytest.raises(errors.WrongCall, match="repeat its stream"):
        duplicate(secure_generator().bit_generator)  # type: ignore[operator]


def test_a_secure_generator_cannot_be_copied_with_its_stream() -> None:
    generator = secure_generator()
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(errors.WrongCall, match="repeat its stream"):
            duplicate(generator)  # type: ignore[operator]
    shallow = copy.copy(generator)  # NumPy's shallow copy reads on in the same stream, which repeats nothing
    assert shallow.bit_generator is generator.bit_generator


@pytest.mark.parametrize("make", [secure_generator, lambda: seeded_generator(7)])
def test_spawning_is_refused(make: object) -> None:
    with pytest.raises(errors.WrongCall, match="ignores this generator's key"):
        make().spawn(2)  # type: ignore[operator]


# ------------------------------------------------------------------------------------------------------ seeds


def test_a_seed_is_hashed_into_the_whole_key() -> None:
    import hashlib

    key = hashlib.sha256(b"onedraw seed for numpy: ff").digest()
    assert keystream(seeded_generator(255).bit_generator, 128) == keystream(positioned(key, bytes(12), 0), 128)


def test_seeds_repeat_their_stream_and_no_two_share_one() -> None:
    seeds = [0, 1, -1, 2**32, 2**64, 2**300, 10**5000]
    streams = [seeded_generator(seed).bytes(16) for seed in seeds]
    assert len(set(streams)) == len(seeds)
    assert streams == [seeded_generator(seed).bytes(16) for seed in seeds]
    assert seeded_generator(np.int64(7)).bytes(16) == seeded_generator(7).bytes(16)


@pytest.mark.parametrize("seed", [True, 1.0, "7", None, np.random.default_rng(0)])
def test_what_is_not_a_whole_number_is_not_a_seed(seed: object) -> None:
    with pytest.raises(errors.WrongCall, match="whole number"):
        seeded_generator(seed)  # type: ignore[arg-type]


def test_randomness_says_whether_it_is_private() -> None:
    private, seeded = Randomness(), Randomness(seed=7)
    assert (private.kind, private.private) == ("operating system entropy, ChaCha20", True)
    assert (seeded.kind, seeded.private) == ("seeded: reproducible, not private", False)
    assert isinstance(private.generator(), Generator)
    assert private.generator().bytes(16) != private.generator().bytes(16)
    assert seeded.generator().bytes(16) == seeded.generator().bytes(16)
    with pytest.raises(errors.WrongCall, match="whole number"):
        Randomness(seed=True)


def test_importing_the_room_loads_neither_jax_nor_randomgen() -> None:
    script = (
        "import sys, onedraw.samplers as s; s.seeded_generator; "
        "sys.exit(', '.join({'jax', 'randomgen', 'scipy.stats'} & set(sys.modules)) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
