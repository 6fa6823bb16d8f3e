"""The ChaCha20 key type for JAX: the RFC's numbers, JAX's transformations, children that share nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import define_prng_impl
from scipy.stats import kstest

from onedraw import errors
from onedraw.samplers import chacha, seeded_generator
from onedraw.samplers.chacha import CHACHA20, chacha20_blocks, chacha_key, secure_key, seeded_key
from onedraw.samplers.randomness import seed_digest

jax.config.update("jax_enable_x64", True)

ALPHA = 1e-6
CHILDREN = 20_000
CORRELATION_BOUND = 4.9 / np.sqrt(CHILDREN)  # two-sided α = 1e-6

KEY = bytes(range(32))


def words(key: jax.Array) -> list[int]:
    return np.asarray(jax.random.key_data(key)).ravel().tolist()


def bits(key: jax.Array, count: int) -> list[int]:
    return np.asarray(jax.random.bits(key, (count,), dtype="uint32")).tolist()


# ------------------------------------------------------------------------------------------ the RFC's numbers


def block(key: bytes, nonce: str, number: int, count: int = 1) -> bytes:
    inputs = [np.full(count, word, dtype=np.uint32) for word in np.frombuffer(bytes.fromhex(nonce), dtype="<u4")]
    numbers = np.arange(number, number + count, dtype=np.uint32)
    key_words = jnp.asarray(np.frombuffer(key, dtype="<u4"))
    stream = chacha20_blocks(key_words, tuple(jnp.asarray(word) for word in (numbers, *inputs)))
    return np.asarray(stream).astype("<u4").tobytes()


def test_the_block_function_gives_the_vector_of_rfc_8439_section_2_3_2() -> None:
    expected = (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    assert block(KEY, "000000090000004a00000000", 1).hex() == expected


def test_the_keystream_gives_the_encryption_of_rfc_8439_section_2_4_2() -> None:
    plaintext = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you "
        b"only one tip for the future, sunscreen would be it."
    )
    expected = (
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0bf91b65c5524733ab8f593dabcd62b357"
        "1639d624e65152ab8f530c359f0861d807ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab77937365"
        "af90bbf74a35be6b40b8eedf2785e42874d"
    )
    stream = block(KEY, "000000000000004a00000000", 1, count=2)[: len(plaintext)]
    assert bytes(a ^ b for a, b in zip(plaintext, stream, strict=True)).hex() == expected


def test_one_double_round_too_few_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = block(KEY, "000000090000004a00000000", 1)
    monkeypatch.setattr(chacha, "DOUBLE_ROUNDS", 9)
    assert block(KEY, "000000090000004a00000000", 1) != right


def test_random_bits_are_the_keystream_of_rfc_8439_appendix_a_1() -> None:
    """Vectors 1 and 2, through `jax.random`."""
    zeros = np.asarray(bits(chacha_key(bytes(32)), 32), dtype="<u4").tobytes()
    assert zeros[:16].hex() == "76b8e0ada0f13d90405d6ae55386bd28"
    assert zeros[64:80].hex() == "9f07e7be5551387a98ba977c732d080d"


def test_random_bits_agree_with_the_other_implementation() -> None:
    numpy_stream = seeded_generator(7).bit_generator.random_raw(500)
    same_key = chacha_key(seed_digest(7, purpose="numpy"))
    assert np.array_equal(np.asarray(jax.random.bits(same_key, (500,), dtype="uint64")), numpy_stream)
    assert np.array_equal(np.asarray(jax.random.bits(same_key, (3, 5), dtype="uint64")).ravel(), numpy_stream[:15])


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_every_width_of_bits_comes_whole(width: int) -> None:
    drawn = np.asarray(jax.random.bits(seeded_key(1), (513,), dtype=f"uint{width}"))
    assert drawn.dtype == np.dtype(f"uint{width}")
    assert np.bitwise_or.reduce(drawn) == np.iinfo(drawn.dtype).max
    assert np.bitwise_and.reduce(drawn) == 0


# ------------------------------------------------------------------------------------------------------- keys


def test_the_secure_key_is_the_operating_systems_32_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert words(secure_key()) != words(secure_key())
    monkeypatch.setattr("os.urandom", lambda count: KEY[:count])
    assert words(secure_key()) == np.frombuffer(KEY, dtype="<u4").tolist()


def test_a_seeded_key_repeats_and_differs_from_the_numpy_key_of_the_same_seed() -> None:
    assert words(seeded_key(7)) == words(seeded_key(7))
    assert words(seeded_key(7)) != words(seeded_key(8))
    assert words(seeded_key(7)) != words(chacha_key(seed_digest(7, purpose="numpy")))


@pytest.mark.parametrize("count", [0, 16, 31, 33])
def test_a_key_of_another_length_is_refused(count: int) -> None:
    with pytest.raises(errors.WrongCall, match="32 bytes"):
        chacha_key(bytes(count))


def test_integer_seeds_do_not_depend_on_the_integers_width() -> None:
    for seed in (7, -7):
        narrow, wide = (jax.random.key(np.array(seed, dtype=kind), impl=CHACHA20) for kind in ("int32", "int64"))
        assert words(narrow) == words(wide)
    distinct = {tuple(words(jax.random.key(seed, impl=CHACHA20))) for seed in (0, 1, -1, 2**32, 2**32 + 1, 2**62)}
    assert len(distinct) == 6


def test_bits_splits_and_folds_of_one_key_share_no_word() -> None:
    key = seeded_key(3)
    uses = [bits(key, 1024), words(jax.random.split(key, 128)), words(key)]
    uses += [words(jax.random.fold_in(key, number)) for number in range(64)]
    everything = [word for use in uses for word in use]
    # 2560 words of 2^32: a chance repeat has probability 8e-4, so one is allowed; a shared input would repeat
    # eight.
    assert len(everything) - len(set(everything)) <= 1


def test_more_words_than_the_block_number_can_count_are_refused() -> None:
    with pytest.raises(errors.WrongCall, match="Split the key"):
        jax.eval_shape(lambda key: chacha._random_bits(key, 32, (2**36 + 1,)), jnp.zeros(8, dtype="uint32"))


# -------------------------------------------------------------------------------------------- transformations


def test_keys_work_under_jit_vmap_and_scan() -> None:
    key = seeded_key(5)
    keys = jax.random.split(key, 4)

    def step(carry: jax.Array, number: jax.Array) -> tuple[jax.Array, jax.Array]:
        carry, used = jax.random.split(carry)
        return carry, jax.random.normal(jax.random.fold_in(used, number), (2,))

    _, scanned = jax.jit(lambda start: jax.lax.scan(step, start, jnp.arange(4)))(key)
    by_hand = []
    for number in range(4):
        key, drawn = step(key, jnp.asarray(number))
        by_hand.append(drawn)
    assert np.array_equal(scanned, np.stack(by_hand))

    def uniform(one: jax.Array) -> jax.Array:
        return jax.random.uniform(one, (3,))

    one_by_one = np.stack([np.asarray(uniform(one)) for one in keys])
    assert np.array_equal(jax.jit(jax.vmap(uniform))(keys), one_by_one)
    assert one_by_one.dtype == np.float64
    assert jax.random.split(key, (2, 3)).shape == (2, 3)


def test_noise_can_be_differentiated_through() -> None:
    gradient = jax.grad(lambda scale: (scale * jax.random.normal(seeded_key(1), (4,))).sum())(2.0)
    assert np.isclose(gradient, jax.random.normal(seeded_key(1), (4,)).sum(), rtol=1e-12)


def test_single_precision_works_too() -> None:
    with jax.enable_x64(False):
        drawn = jax.random.normal(seeded_key(1), (8,))
        assert drawn.dtype == np.float32
        assert np.isfinite(drawn).all()


def test_jax_and_numpy_alone_are_enough() -> None:
    absent = [
        "randomgen",
        "pydantic",
        "sqlalchemy",
        "pyarrow",
        "narwhals",
        "sklearn",
        "dp_accounting",
        "typer",
    ]
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({absent}));"
        "import jax; from onedraw.samplers import secure_key;"
        "print(jax.random.normal(secure_key(), (2,)).shape)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert (result.returncode, result.stdout) == (0, "(2,)\n"), result.stderr


# ------------------------------------------------------------------------------------------------- statistics


@pytest.mark.statistical
def test_uniform_and_normal_numbers_follow_their_laws(test_seed: int) -> None:
    first, second = jax.random.split(seeded_key(test_seed))
    uniform = np.asarray(jax.random.uniform(first, (400_000,)))
    normal = np.asarray(jax.random.normal(second, (400_000,)))
    assert kstest(uniform, "uniform").pvalue >= ALPHA
    assert kstest(normal, "norm").pvalue >= ALPHA
    assert kstest(uniform**1.1, "uniform").pvalue < ALPHA
    assert kstest(normal * 1.1, "norm").pvalue < ALPHA
    assert abs(np.corrcoef(uniform[:-1], uniform[1:])[0, 1]) < 4.9 / np.sqrt(400_000)


def independent(first_numbers: np.ndarray) -> bool:
    """Whether the first numbers of many children look like one independent uniform sample, at α = 1e-6."""
    uniform = kstest(first_numbers, "uniform").pvalue >= ALPHA
    spread = np.ptp(first_numbers[1:]) > 0.0 and np.ptp(first_numbers[:-1]) > 0.0
    return bool(
        uniform
        and spread
        and abs(np.corrcoef(first_numbers[:-1], first_numbers[1:])[0, 1]) < CORRELATION_BOUND
        and np.unique(first_numbers).size == first_numbers.size
    )


def first_numbers(keys: jax.Array) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(jax.random.uniform))(keys))


def folded(key: jax.Array) -> jax.Array:
    return jax.jit(jax.vmap(lambda number: jax.random.fold_in(key, number)))(jnp.arange(CHILDREN))


@pytest.mark.statistical
def test_children_of_a_split_and_of_fold_in_are_independent(test_seed: int) -> None:
    key = seeded_key(test_seed)
    split, fold = first_numbers(jax.random.split(key, CHILDREN)), first_numbers(folded(key))
    parent = np.asarray(jax.random.uniform(key, (CHILDREN,)))
    assert independent(split)
    assert independent(fold)
    for one, other in ((split, fold), (split, parent), (fold, parent)):
        assert abs(np.corrcoef(one, other)[0, 1]) < CORRELATION_BOUND


@pytest.mark.statistical
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda key, data: chacha._fold_in(key, data * 0), id="the number is ignored"),
        pytest.param(lambda key, data: chacha._fold_in(key, data // 2), id="two numbers share a child"),
    ],
)
def test_a_faulty_fold_in_is_rejected(fault: Callable[..., jax.Array], test_seed: int) -> None:
    faulty = define_prng_impl(
        key_shape=(8,),
        seed=chacha._seed,
        split=chacha._split,
        random_bits=chacha._random_bits,
        fold_in=fault,
        name="faulty",
        tag="bad",
    )
    key = jax.random.wrap_key_data(jax.random.key_data(seeded_key(test_seed)), impl=faulty)
    assert independent(first_numbers(jax.random.split(key, CHILDREN)))
    assert not independent(first_numbers(folded(key)))


# ------------------------------------------------------------------------------------------------------ speed


def seconds(work: Callable[[jax.Array], jax.Array], key: jax.Array) -> float:
    compiled = jax.jit(work)
    compiled(key).block_until_ready()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        compiled(key).block_until_ready()
        times.append(time.perf_counter() - start)
    return min(times)


def test_the_price_of_the_cipher_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed, never asserted: speed is a fact about the machine."""

    def chain(key: jax.Array) -> jax.Array:
        def step(carry: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], None]:
            key, position = carry
            key, used = jax.random.split(key)
            return (key, 0.9 * position + jax.random.normal(used, (10,))), None

        return jax.lax.scan(step, (key, jnp.zeros(10)), length=5000)[0][1]

    works = {"10⁶ normals": lambda key: jax.random.normal(key, (1_000_000,)), "a chain of 5000 steps": chain}
    for name, work in works.items():
        threefry, cipher = seconds(work, jax.random.key(0)), seconds(work, seeded_key(0))
        assert min(threefry, cipher) > 0.0
        with capsys.disabled():
            print(f"\n{name}: ChaCha20 {1e3 * cipher:.1f} ms, {cipher / threefry:.1f} × threefry", flush=True)
