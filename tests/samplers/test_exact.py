"""The exact sampler: each law accepted at α = 1e-6, one off by 10 % rejected; never NaN for any parameter.

Each law's distribution function comes from scipy.special, an oracle that shares no code with the sampler.
Sample sizes are chosen for power: the least separation tested is 10 % of a variance, a Kolmogorov distance of
0.0115, which at 200 000 draws lies more than 6 standard deviations beyond the critical value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import betainc, gammainc, gammaln, ndtr
from scipy.stats import kstest

import onedraw as od
from onedraw import errors, privacy
from onedraw.models.conjugate.distributions import Beta, Dirichlet, Gamma, Law, Normal
from onedraw.samplers import Exact, seeded_generator

ALPHA = 1e-6
DRAWS = 200_000
OFF = 1.1

Array = NDArray[np.float64]


def drawn(law: Law, seed: int) -> Array:
    return Exact().draw(law, seeded_generator(seed), size=DRAWS)


def follows(draws: Array, cdf: Callable[[Array], Array], *, seed: int, within: tuple[float, float]) -> bool:
    """Kolmogorov–Smirnov at α = 1e-6; what lies outside ``within`` counts only as lying there.

    Below the smallest float, and close to 1, draws of extreme laws pile up on a few floats: the part of the
    law beyond each end is spread evenly over its probability, so that the mass there is tested and its shape
    is not.
    """
    lower, upper = (float(cdf(np.array([end]))[0]) for end in within)
    below, above = draws < within[0], draws > within[1]
    inside = np.sort(draws[~below & ~above])
    # Every twentieth value is looked up and the rest interpolated: at most 5e-5 off, since a cdf is monotone.
    knots = np.unique(np.append(inside[::20], inside[-1]))
    spread = np.random.default_rng(seed).random(draws.size)
    ranks = np.concatenate(
        [spread[below] * lower, np.interp(inside, knots, cdf(knots)), upper + spread[above] * (1.0 - upper)]
    )
    return bool(kstest(ranks, "uniform").pvalue >= ALPHA)


def is_beta(draws: Array, a: float, b: float, *, seed: int) -> bool:
    return follows(draws, lambda x: betainc(a, b, x), seed=seed, within=(1e-300, 1.0 - 1e-10))


def is_gamma(draws: Array, shape: float, rate: float, *, seed: int) -> bool:
    def cdf(x: Array) -> Array:
        logarithm = np.log(x) + np.log(rate)
        near_zero = np.exp(shape * np.minimum(logarithm, -650.0) - gammaln(shape + 1.0))
        return np.where(logarithm < -650.0, near_zero, gammainc(shape, np.exp(np.clip(logarithm, -650.0, 650.0))))

    return follows(draws, cdf, seed=seed, within=(1e-300, 1.7e308))


def is_normal(draws: Array, mean: float, variance: float, *, seed: int) -> bool:
    deviation = np.sqrt(variance)
    within = (mean - 40.0 * deviation, mean + 40.0 * deviation)
    return follows(draws, lambda x: ndtr((x - mean) / deviation), seed=seed, within=within)


# --------------------------------------------------------------------------------------------------- the laws

BETAS = [
    (0.001, 0.001),
    (0.001, 5.0),
    (0.5, 0.5),
    (1.0, 1.0),
    (3.5, 8.25),
    (0.5, 1e6),
    (1e6, 0.5),
    (1e9, 3.0),
    (1e9, 1e9),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("a", "b"), BETAS)
def test_beta_draws_follow_their_law(a: float, b: float, test_seed: int) -> None:
    assert is_beta(drawn(Beta(a, b), test_seed), a, b, seed=test_seed)


@pytest.mark.statistical
@pytest.mark.parametrize(("a", "b"), BETAS)
@pytest.mark.parametrize("fault", ["mean", "concentration"])
def test_a_beta_off_by_ten_percent_is_rejected(a: float, b: float, fault: str, test_seed: int) -> None:
    moved = Beta(a * OFF, b) if a <= b else Beta(a, b * OFF)
    wrong = moved if fault == "mean" else Beta(a * OFF, b * OFF)
    assert not is_beta(drawn(wrong, test_seed), a, b, seed=test_seed)


GAMMAS = [
    (0.001, 1.0),
    (0.001, 1e-300),
    (0.3, 2.0),
    (1.0, 1.0),
    (7.5, 0.2),
    (2.0, 1e-200),
    (2.0, 1e200),
    (1e9, 1e3),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("shape", "rate"), GAMMAS)
def test_gamma_draws_follow_their_law(shape: float, rate: float, test_seed: int) -> None:
    assert is_gamma(drawn(Gamma(shape, rate), test_seed), shape, rate, seed=test_seed)


@pytest.mark.statistical
@pytest.mark.parametrize(("shape", "rate"), GAMMAS)
@pytest.mark.parametrize("fault", ["shape", "rate", "both"])
def test_a_gamma_off_by_ten_percent_is_rejected(shape: float, rate: float, fault: str, test_seed: int) -> None:
    if fault == "rate" and shape < 0.1:
        shape = 0.3  # a rate moves a law of shape 0.001 by one part in 10 000, which no test of this size can see
    factors = {"shape": (OFF, 1.0), "rate": (1.0, OFF), "both": (OFF, OFF)}[fault]
    wrong = Gamma(shape * factors[0], rate * factors[1])
    assert not is_gamma(drawn(wrong, test_seed), shape, rate, seed=test_seed)


NORMALS = [(0.0, 1.0), (-3e-14, 1e-30), (1e12, 1e30), (0.25, 1e-6)]


@pytest.mark.statistical
@pytest.mark.parametrize(("mean", "variance"), NORMALS)
def test_normal_draws_follow_their_law(mean: float, variance: float, test_seed: int) -> None:
    draws = drawn(Normal((mean, 0.0), variance), test_seed)
    assert is_normal(draws[:, 0], mean, variance, seed=test_seed)
    assert is_normal(draws[:, 1], 0.0, variance, seed=test_seed)


@pytest.mark.statistical
@pytest.mark.parametrize("fault", ["variance", "mean"])
def test_a_normal_off_by_ten_percent_is_rejected(fault: str, test_seed: int) -> None:
    wrong = Normal((0.0,), OFF) if fault == "variance" else Normal((0.1,), 1.0)
    assert not is_normal(drawn(wrong, test_seed)[:, 0], 0.0, 1.0, seed=test_seed)


@pytest.mark.statistical
def test_coordinates_of_a_normal_are_independent(test_seed: int) -> None:
    draws = drawn(Normal((1.0, -1.0, 4.0), 2.0), test_seed)
    assert is_normal(draws.sum(axis=1), 4.0, 6.0, seed=test_seed)
    repeated = draws[:, :1] + np.array([0.0, -2.0, 3.0])  # planted fault: all coordinates share one noise
    assert not is_normal(repeated.sum(axis=1), 4.0, 6.0, seed=test_seed)


DIRICHLETS = {
    "tiny": (0.001, 0.001, 0.001),
    "moderate": (0.5, 1.0, 2.5),
    "huge": (1e9, 2e9, 3e9),
    "tiny beside huge": (0.001, 1.0, 1e6),
    "twelve": (0.02,) * 12,
}
dirichlets = pytest.mark.parametrize("alpha", DIRICHLETS.values(), ids=DIRICHLETS)


@pytest.mark.statistical
@dirichlets
def test_dirichlet_marginals_follow_their_law(alpha: tuple[float, ...], test_seed: int) -> None:
    draws = drawn(Dirichlet(alpha), test_seed)
    for coordinate, own in enumerate(alpha[:3]):
        assert is_beta(draws[:, coordinate], own, sum(alpha) - own, seed=test_seed), coordinate


@pytest.mark.statistical
@dirichlets
def test_a_dirichlet_off_by_ten_percent_is_rejected(alpha: tuple[float, ...], test_seed: int) -> None:
    draws = drawn(Dirichlet(tuple(OFF * own for own in alpha)), test_seed)
    rejected = [
        not is_beta(draws[:, coordinate], own, sum(alpha) - own, seed=test_seed)
        for coordinate, own in enumerate(alpha[:3])
    ]
    assert all(rejected)


@pytest.mark.statistical
@dirichlets
def test_dirichlet_coordinates_add_up_to_their_joint_law(alpha: tuple[float, ...], test_seed: int) -> None:
    """Merging categories adds their parameters; shuffled coordinates keep every marginal but not this."""
    merged = max(2, len(alpha) // 2)
    together, rest = sum(alpha[:merged]), sum(alpha[merged:])
    draws = drawn(Dirichlet(alpha), test_seed)[:, :merged]
    assert is_beta(draws.sum(axis=1), together, rest, seed=test_seed)
    shuffled = np.random.default_rng(test_seed).permuted(draws, axis=0)
    if alpha[0] > 0.01 * alpha[1]:  # otherwise the sum is the second coordinate alone, and shuffling changes nothing
        assert not is_beta(shuffled.sum(axis=1), together, rest, seed=test_seed)


@pytest.mark.statistical
def test_successive_draws_are_uncorrelated(test_seed: int) -> None:
    ranks = betainc(2.0, 3.0, drawn(Beta(2.0, 3.0), test_seed)) - 0.5
    bound = 4.9 / np.sqrt(DRAWS)  # two-sided α = 1e-6
    assert abs(np.corrcoef(ranks[:-1], ranks[1:])[0, 1]) < bound
    sticky = np.where(np.arange(DRAWS) % 10 == 0, np.roll(ranks, 1), ranks)  # planted fault: one draw in ten repeats
    assert abs(np.corrcoef(sticky[:-1], sticky[1:])[0, 1]) > bound


# ---------------------------------------------------------------------------------- no parameter can break it

positive = st.floats(min_value=5e-324, max_value=1.7e308, allow_subnormal=True)
extreme = st.sampled_from([5e-324, 1e-310, 1e-300, 1e-16, 0.001, 1.0, 1e9, 1e300, 1.7e308])
parameter = positive | extreme


@given(alpha=st.lists(parameter, min_size=1, max_size=6), seed=st.integers(0, 2**64))
@settings(max_examples=300, deadline=None)
def test_no_dirichlet_parameter_gives_anything_but_a_point_of_the_simplex(alpha: list[float], seed: int) -> None:
    draw = Exact().draw(Dirichlet(tuple(alpha)), seeded_generator(seed), size=8)
    assert np.all((draw >= 0.0) & (draw <= 1.0))
    assert np.allclose(draw.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)


@given(a=parameter, b=parameter, seed=st.integers(0, 2**64))
@settings(max_examples=300, deadline=None)
def test_no_beta_or_gamma_parameter_gives_nan_or_infinity(a: float, b: float, seed: int) -> None:
    generator = seeded_generator(seed)
    beta = Exact().draw(Beta(a, b), generator, size=8)
    assert np.all((beta >= 0.0) & (beta <= 1.0))
    gamma = Exact().draw(Gamma(a, b), generator, size=8)
    assert np.all((gamma >= 0.0) & np.isfinite(gamma))


def test_the_usual_recipe_would_have_been_caught() -> None:
    """Planted fault: gamma variates divided by their sum do turn into 0/0 at a parameter of 0.001."""
    variates = np.random.default_rng(0).standard_gamma(0.001, (1000, 3))
    with np.errstate(invalid="ignore"):
        assert np.isnan(variates / variates.sum(axis=1, keepdims=True)).any()
    assert np.isfinite(Exact().draw(Dirichlet((0.001,) * 3), seeded_generator(0), size=100_000)).all()


@pytest.mark.parametrize("word", [0, 2**32 - 1])
@pytest.mark.parametrize(
    "law",
    [Beta(5e-324, 1e-310), Beta(1.0, 1.0), Dirichlet((1e-17, 0.001)), Gamma(1e-17, 2.0), Normal((0.0,), 1.0)],
)
def test_a_generator_stuck_at_zeros_or_ones_still_gives_a_number(law: Law, word: int) -> None:
    """Zero variates come once in 2^60 draws or so, too rare to wait for: the buffer is overwritten."""
    generator = seeded_generator(0)
    state = generator.bit_generator.state
    state["state"]["block"][:] = word
    state["state"]["ctr"][:] = (1, 0)
    generator.bit_generator.state = state
    if word == 0:
        assert generator.bit_generator.random_raw() == 0
    assert np.isfinite(Exact().draw(law, generator)).all()


# ----------------------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize(
    ("law", "shape"),
    [
        (Beta(1.0, 2.0), ()),
        (Gamma(1.0, 2.0), ()),
        (Dirichlet((1.0, 2.0, 3.0)), (3,)),
        (Normal((0.0, 1.0), 1.0), (2,)),
    ],
)
def test_draws_have_the_shape_of_the_law(law: Law, shape: tuple[int, ...]) -> None:
    generator = seeded_generator(1)
    for size, expected in ((None, shape), (1, (1, *shape)), (5, (5, *shape))):
        draw = Exact().draw(law, generator, size=size)
        assert isinstance(draw, np.ndarray)
        assert draw.shape == expected
        assert draw.dtype == np.float64


def test_a_seed_repeats_the_draw_and_another_seed_does_not() -> None:
    first, again, other = (Exact().draw(Beta(2.0, 3.0), seeded_generator(seed), size=4) for seed in (7, 7, 8))
    assert np.array_equal(first, again)
    assert not np.isin(first, other).any()


def test_the_exactness_is_stated_before_any_draw_and_does_not_depend_on_the_law() -> None:
    models = (
        od.models.BetaBernoulli(prior=(1, 1)),
        od.models.BetaBernoulli(prior=(0.001, 1e9)),
        od.models.GammaPoisson(prior=(1, 1), cap=3),
    )
    plans = [od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=20) for model in models]
    statements = {Exact().exactness(plan) for plan in plans}
    assert statements == {privacy.Exact(numeric="real-number sampler in double precision")}


def test_a_law_without_a_closed_form_is_refused() -> None:
    with pytest.raises(errors.WrongCall, match="closed form"):
        Exact().draw("cauchy", seeded_generator(0))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "law",
    [
        Beta(0.0, 1.0),
        Beta(1.0, float("nan")),
        Dirichlet((1.0, -1.0)),
        Dirichlet(()),
        Gamma(1.0, float("inf")),
        Gamma(1.0, 0.0),
        Normal((float("nan"),), 1.0),
        Normal((0.0,), 0.0),
    ],
)
def test_a_law_that_is_none_fails_closed_without_saying_its_numbers(law: Law) -> None:
    with pytest.raises(errors.InvalidModel, match="positive finite parameters") as raised:
        Exact().draw(law, seeded_generator(0))
    assert not any(character.isdigit() for character in str(raised.value))
    assert raised.value.fields == {}
