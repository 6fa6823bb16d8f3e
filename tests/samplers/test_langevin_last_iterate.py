"""The promise of the last Langevin iterate: attained by an autoregression, never beaten by a concrete pair.

Oracles: the AR(1) process in 40-digit arithmetic; and, in one dimension, the law of the chain itself, carried step by
step on a quadrature grid for two adjacent data sets, whose exact δ(ε) is compared with that of GaussianDP(μ).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr

from onedraw import errors
from onedraw.privacy.conversions import gaussian_delta
from onedraw.privacy.last_iterate import last_iterate_mu, path_mu

Array = NDArray[np.float64]


def largest_step_size(strong_convexity: float, smoothness: float) -> float:
    """2/(M + m), rounded down: up to here the last iterate promises at least what an exact draw does."""
    return 2.0 / (smoothness + strong_convexity) * (1.0 - 2.0**-51)


@dataclass(frozen=True)
class Path:
    step_size: float
    steps: int
    strong_convexity: float
    smoothness: float
    weight: float = 0.3
    gradient_difference: float = 1.7

    def mu(self) -> float:
        return last_iterate_mu(**vars(self))

    def along_curvature(self, curvature: float) -> mpmath.mpf:
        """μ of the exact autoregression on quadratics of this curvature whose gradients differ by wG."""
        with mpmath.workdps(60):
            h, a = mpmath.mpf(self.step_size), 1 - mpmath.mpf(self.step_size) * mpmath.mpf(curvature)
            mean = (1 - a**self.steps) / (1 - a)
            variance = (1 - a ** (2 * self.steps)) / (1 - a**2) if a != 0 else mpmath.mpf(1)
            shift = h * mpmath.mpf(self.weight) * mpmath.mpf(self.gradient_difference) * mean
            return shift / mpmath.sqrt(2 * h * variance)


@st.composite
def paths(draw: st.DrawFn, *, up_to: float = 1.0) -> Path:
    """h up to ``up_to``·2/M, or 2/(M+m) where that is 0."""
    strong = 10.0 ** draw(st.floats(-4, 3))
    smoothness = strong * 10.0 ** draw(st.floats(0, 6))
    limit = 2.0 / smoothness * up_to if up_to else largest_step_size(strong, smoothness)
    step_size = limit * 10.0 ** draw(st.floats(-9, 0)) * (1.0 - 1e-9)
    return Path(step_size, int(10.0 ** draw(st.floats(0, 9))), strong, smoothness)


@given(paths(up_to=0.0))
def test_it_is_that_of_the_autoregression_on_the_flattest_quadratic(path: Path) -> None:
    assert path.mu() == pytest.approx(float(path.along_curvature(path.strong_convexity)), rel=1e-10)


@given(paths(), st.floats(0, 1))
def test_it_is_never_below_that_of_an_autoregression_of_any_curvature(path: Path, share: float) -> None:
    curvature = path.strong_convexity * (path.smoothness / path.strong_convexity) ** share
    curvature = min(max(curvature, path.strong_convexity), path.smoothness)
    assert mpmath.mpf(path.mu()) >= path.along_curvature(curvature)


@given(paths(up_to=0.0))
def test_up_to_two_over_m_plus_m_it_never_exceeds_that_of_an_exact_draw(path: Path) -> None:
    exact = path.weight * path.gradient_difference / np.sqrt(path.strong_convexity)
    assert path.mu() <= exact * (1 + 1e-12)


@given(paths())
def test_it_never_exceeds_that_of_the_whole_path(path: Path) -> None:
    whole = path_mu(
        step_size=path.step_size, steps=path.steps, weight=path.weight, gradient_difference=path.gradient_difference
    )
    assert path.mu() <= whole
    assert whole == pytest.approx(0.3 * 1.7 * np.sqrt(path.step_size * path.steps / 2), rel=1e-14)


def test_beyond_two_over_m_plus_m_it_may_exceed_that_of_an_exact_draw() -> None:
    assert Path(1.999, 10**6, 1.0, 1.0).mu() > 0.3 * 1.7


def test_without_strong_convexity_it_is_that_of_the_path() -> None:
    numbers = {"step_size": 0.01, "steps": 50, "weight": 0.3, "gradient_difference": 1.7}
    assert last_iterate_mu(**numbers, strong_convexity=0.0, smoothness=3.0) == path_mu(**numbers)


@pytest.mark.parametrize("step_size", [1e-280, 1e-18, 1e-9])
def test_tiny_steps_and_underflowing_powers_lose_no_digits(step_size: float) -> None:
    """For hm → 0, μ² = (w²G²/m)·tanh(mτ/2)."""
    steps = int(2.5 / step_size)
    expected = 0.3 * 1.7 / np.sqrt(0.8) * np.sqrt(np.tanh(0.8 * 2.5 / 2))
    assert Path(step_size, steps, 0.8, 40.0).mu() == pytest.approx(expected, rel=2e-9)
    assert Path(step_size, 10**400, 0.8, 40.0).mu() == pytest.approx(0.3 * 1.7 / np.sqrt(0.8), rel=2e-9)


@pytest.mark.parametrize("step_size", [0.0, -0.1, 0.5, 0.51, np.nan, np.inf])
def test_a_step_size_outside_its_range_is_refused(step_size: float) -> None:
    with pytest.raises(errors.WrongCall, match="step size"):
        Path(step_size, 10, 1.0, 4.0).mu()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("steps", 0),
        ("steps", -3),
        ("steps", 2.5),
        ("strong_convexity", -1.0),
        ("strong_convexity", 5.0),
        ("strong_convexity", np.nan),
        ("smoothness", np.inf),
        ("weight", 0.0),
        ("gradient_difference", np.nan),
    ],
)
def test_numbers_that_mean_nothing_are_refused(field: str, value: float) -> None:
    with pytest.raises(errors.WrongCall):
        Path(**{**vars(Path(0.1, 10, 1.0, 4.0)), field: value}).mu()


# ── the exact law of the chain, for two adjacent data sets ───────────────────────────────────────────────────

STRONG, WEIGHT = 1.0, 0.7
QUADRATURE = 1e-5
"""The integral of a positive part has a kink, which costs the quadrature this much at the most."""


@dataclass(frozen=True)
class Pair:
    """U'(θ) for each of two data sets that differ in one record, and the constants a promise would use."""

    first: Callable[[Array], Array]
    second: Callable[[Array], Array]
    gradient_difference: float
    smoothness: float


def _logistic_slope(x: float, y: float) -> Callable[[Array], Array]:
    return lambda theta: -y * x * sigmoid(-y * x * theta)


def sigmoid(u: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-u))


def _huber_slope(x: float, y: float, threshold: float) -> Callable[[Array], Array]:
    return lambda theta: x * np.clip(theta * x - y, -threshold, threshold)


def _pair(common: list[Callable[[Array], Array]], first: Callable[[Array], Array], second: Callable[[Array], Array],
          gradient_difference: float, curvature: float) -> Pair:  # fmt: skip
    def slope(records: list[Callable[[Array], Array]]) -> Callable[[Array], Array]:
        return lambda theta: STRONG * theta + WEIGHT * sum(record(theta) for record in records)

    smoothness = STRONG + WEIGHT * (len(common) + 1) * curvature
    return Pair(slope([*common, first]), slope([*common, second]), gradient_difference, smoothness)


PAIRS = {
    "logistic, flipped label": _pair(
        [_logistic_slope(0.5, 1.0)], _logistic_slope(1.0, 1.0), _logistic_slope(1.0, -1.0), 2.0, 0.25
    ),
    "logistic, opposite corner": _pair(
        [_logistic_slope(1.0, -1.0)] * 2, _logistic_slope(1.0, 1.0), _logistic_slope(-1.0, 1.0), 2.0, 0.25
    ),
    "Huber, residuals beyond the threshold": _pair([], _huber_slope(1.0, 60.0, 1.0), _huber_slope(1.0, -60.0, 1.0), 2.0, 1.0),
    "Huber, residuals around the threshold": _pair(
        [_huber_slope(1.0, 0.0, 1.0)], _huber_slope(1.0, 1.5, 1.0), _huber_slope(1.0, -1.5, 1.0), 2.0, 1.0
    ),
}  # fmt: skip


FINE = 2000


def laws(pair: Pair, step_size: float, steps: int, *, radius: float | None = None) -> tuple[Array, Array]:
    """The two laws of the last iterate, as probabilities of the same fine cells (and of an interval's two ends)."""
    reach = 12.0 if radius is None else radius
    return _law(pair.first, step_size, steps, reach, radius), _law(pair.second, step_size, steps, reach, radius)


def _law(slope: Callable[[Array], Array], step_size: float, steps: int, reach: float, radius: float | None) -> Array:
    """All steps but the last are integrals by Gauss and Legendre; the last one is evaluated on a fine grid, because
    the δ(ε) computed from it is the integral of a positive part, which has a kink.
    """
    deviation = np.sqrt(2.0 * step_size)
    nodes, weights = (reach * values for values in np.polynomial.legendre.leggauss(400))
    fine = reach * (2.0 * (np.arange(FINE) + 0.5) / FINE - 1.0)
    ends = np.array([] if radius is None else [-radius, radius])

    def one_step(origins: Array, points: Array, cells: Array | float) -> Array:
        """(origin, state): density times cell on the points, then the mass projected onto each end."""
        mean = (origins - step_size * slope(origins))[:, None]
        inside = np.exp(-0.5 * ((points - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi)) * cells
        if radius is None:
            return inside
        return np.hstack([inside, ndtr((-radius - mean) / deviation), ndtr((mean - radius) / deviation)])

    origins, law = np.zeros(1), np.ones(1)
    if steps > 1:
        states = np.concatenate([nodes, ends])
        law, transition = one_step(origins, nodes, weights)[0], one_step(states, nodes, weights)
        for _ in range(steps - 2):
            law = law @ transition
        origins = states
    law = law @ one_step(origins, fine, 2.0 * reach / FINE)
    assert law.sum() == pytest.approx(1.0, abs=1e-6)
    return law


EPSILONS = np.linspace(0.0, 6.0, 49)


def worst_excess(pair: Pair, path: Path, *, radius: float | None = None) -> float:
    """The largest exact δ(ε) minus that of GaussianDP(μ), both ways round."""
    first, second = laws(pair, path.step_size, path.steps, radius=radius)
    return max(
        float(np.maximum(left - np.exp(epsilon) * right, 0.0).sum()) - gaussian_delta(path.mu(), float(epsilon))
        for left, right in ((first, second), (second, first))
        for epsilon in EPSILONS
    )


STEPS = [1, 2, 5, 30]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_it_dominates_the_exact_trade_off_of_adjacent_data_sets(name: str, share: float) -> None:
    pair = PAIRS[name]
    step_size = share * largest_step_size(STRONG, pair.smoothness)
    for steps in STEPS:
        path = Path(step_size, steps, STRONG, pair.smoothness, WEIGHT, pair.gradient_difference)
        assert worst_excess(pair, path) < QUADRATURE, steps


@pytest.mark.parametrize("name", PAIRS)
def test_a_projection_after_the_noise_keeps_it(name: str) -> None:
    pair = PAIRS[name]
    step_size = largest_step_size(STRONG, pair.smoothness)
    for steps in STEPS:
        path = Path(step_size, steps, STRONG, pair.smoothness, WEIGHT, pair.gradient_difference)
        assert worst_excess(pair, path, radius=1.0) < QUADRATURE, steps


@pytest.mark.parametrize("steps", STEPS)
def test_the_same_check_catches_a_lipschitz_constant_that_was_halved(steps: int) -> None:
    pair = PAIRS["Huber, residuals beyond the threshold"]
    step_size = 0.5 * largest_step_size(STRONG, pair.smoothness)
    path = Path(step_size, steps, STRONG, pair.smoothness, WEIGHT, 0.5 * pair.gradient_difference)
    assert worst_excess(pair, path) > 0.05


@pytest.mark.parametrize("steps", STEPS)
def test_residuals_beyond_the_threshold_attain_it(steps: int) -> None:
    """There the gradients differ by a constant and U is a quadratic of curvature m: nothing is lost."""
    pair = PAIRS["Huber, residuals beyond the threshold"]
    path = Path(largest_step_size(STRONG, pair.smoothness), steps, STRONG, pair.smoothness, WEIGHT, 2.0)
    assert worst_excess(pair, path) > -QUADRATURE
