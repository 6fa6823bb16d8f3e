"""The proximal sampler: its law against quadrature, its bounds against the true divergence, its tries counted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, norm

from onedraw import errors, privacy
from onedraw.models.compute import jax
from onedraw.models.convex.draw_cost import Geometry, gamma_after, iterations_of
from onedraw.samplers import Proximal, Sampler, seeded_key
from onedraw.samplers.chains import PublicNumbers, numbers_of_target
from onedraw.samplers.langevin import proposition_13
from onedraw.samplers.proximal import geometry_of
from tests.samplers.cases import Array, Case, follows, huber, logistic, passes

DRAWS = {1: 24_576, 2: 12_288}
"""By dimension: the fault moves a distribution function by 0.038 on a line, 0.05 in the plane, five standard deviations and
more beyond the critical 0.017 and 0.024."""

ON_A_DISC = 4096
"""There by 0.11: ten standard deviations beyond the critical 0.042."""

GAMMA = 1e-4
"""A fiftieth of what the tests could see."""

SPACES = {"line": logistic(1, weight=2.0), "plane": logistic(2, weight=2.0)}
BALLS = {
    "interval": logistic(1, weight=2.0, radius=2.0),
    "interval, minimum at its end": logistic(1, weight=6.0, radius=0.8, pull=True),
    "interval, small": logistic(1, weight=2.0, radius=0.03),
    "disc": logistic(2, weight=2.0, radius=2.0),
    "disc, minimum on its edge": logistic(2, weight=40.0, radius=0.8, pull=True),
    "disc, small": logistic(2, weight=2.0, radius=0.03),
    "interval, not preconditioned": huber(1, weight=0.5, threshold=0.7, radius=0.6),
}


def sampled(case: Case, seed: int, *, forward: float = 1.0, size: int | None = None) -> tuple[Array, dict[str, float]]:
    """Draws and diagnostics; ``forward`` plants a fault, the variance of y in units of η.

    Keys are JAX's own here: the law does not depend on the cipher, and thousands of chains take a fifth of the time.
    """
    from onedraw.samplers import proximal as proximal_chain

    right, size = proximal_chain.ProximalSettings, size or DRAWS[case.target.dimension]
    at_once = min(size, ON_A_DISC)  # one program for all of them
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proximal_chain, "ProximalSettings", lambda step, *rest: right(forward * step, *rest))
        sampler, keys = Proximal(gamma=GAMMA), jax.random.split(jax.random.key(seed % 2**63), size // at_once)
        samples = [sampler.run(case.target, key, size=at_once) for key in keys]
    noticed = {name: np.mean([sample.diagnostics[name] for sample in samples]) for name in samples[0].diagnostics}
    return np.concatenate([sample.draws for sample in samples]), noticed


# ── the law ──────────────────────────────────────────────────────────────────────────────────────────────────


def longer(names: Iterable[str], *slow: str) -> list[Any]:
    """The names, those of programs whose property another one shows too for `make test-all` only."""
    return [pytest.param(name, marks=[pytest.mark.slow] if name in slow else []) for name in names]


@pytest.mark.statistical
@pytest.mark.parametrize("name", longer(SPACES, "plane"))
def test_on_all_of_space_it_follows_the_posterior_in_few_tries(name: str, test_seed: int) -> None:
    draws, noticed = sampled(SPACES[name], test_seed)
    assert passes(draws, SPACES[name])
    print(f"{name}: {noticed['tries_per_step']:.2f} tries per step")
    assert noticed["tries_per_step"] <= 1.8


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name", longer(BALLS, "interval", "interval, minimum at its end", "interval, small", "disc, small")
)
def test_on_a_ball_it_follows_the_posterior_in_few_tries(name: str, test_seed: int) -> None:
    case = BALLS[name]
    draws, noticed = sampled(case, test_seed, size=ON_A_DISC if name == "disc" else None)
    assert (np.linalg.norm(draws, axis=1) <= case.target.radius).all()
    assert passes(draws, case)
    print(
        f"{name}: {noticed['tries_per_step']:.2f} tries per step, {noticed['ball_tries_per_step']:.2f} to hit the ball"
    )
    assert noticed["tries_per_step"] <= noticed["ball_tries_per_step"] <= 8.0


@pytest.mark.statistical
@pytest.mark.parametrize(
    "case",
    [
        SPACES["line"], BALLS["disc"],
        *(pytest.param(case, marks=pytest.mark.slow) for case in (SPACES["plane"], BALLS["interval"])),
    ],
)  # fmt: skip
def test_noise_of_twice_the_variance_is_caught(case: Case, test_seed: int) -> None:
    draws, _ = sampled(case, test_seed, forward=2.0, size=ON_A_DISC if case is BALLS["disc"] else None)
    assert not passes(draws, case)


@pytest.mark.slow
@pytest.mark.statistical
def test_noise_of_twice_the_variance_is_caught_at_the_edge_too(test_seed: int) -> None:
    draws, _ = sampled(BALLS["disc, minimum on its edge"], test_seed, forward=2.0, size=32_768)
    assert not passes(draws, BALLS["disc, minimum on its edge"])


def white(case: Case, draws: Array) -> Array:
    """Draws of a quadratic U as standard normals."""
    X, y, weight = case.target.encoded.X, case.target.encoded.y, case.target.weight
    precision = weight * X.T @ X + np.diag(case.target.precision)
    return (draws - np.linalg.solve(precision, weight * X.T @ y)) @ np.linalg.cholesky(precision)


@pytest.mark.statistical
def test_in_ten_dimensions_it_follows_a_gaussian_posterior(test_seed: int) -> None:
    case = huber(10, weight=0.05, threshold=1e6, n=30)
    draws, noticed = sampled(case, test_seed, size=2048)
    standard = white(case, draws)
    assert all(follows(column, norm.cdf) for column in standard.T)
    assert follows((standard**2).sum(axis=1), chi2(10).cdf)
    assert noticed["tries_per_step"] <= 1.8
    faulty = white(case, sampled(case, test_seed, forward=2.0, size=2048)[0])
    assert not follows((faulty**2).sum(axis=1), chi2(10).cdf)


def test_the_cipher_drives_it_and_a_key_repeats_it() -> None:
    target, sampler = BALLS["disc"].target, Proximal(gamma=1e-3)
    first, again = (sampler.run(target, seeded_key(4), size=2).draws for _ in range(2))
    assert (first == again).all()
    assert len(np.unique(first)) == 4
    assert sampler.draw(target, seeded_key(4), size=2).shape == (2, 2)
    assert sampler.draw(target, seeded_key(4)).shape == (2,)


@pytest.mark.slow
@pytest.mark.parametrize("radius", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("weight", [0.01, 1.0, 100.0])
def test_tries_stay_few_in_eleven_dimensions(radius: float, weight: float) -> None:
    for pull in (False, True):
        case = logistic(11, weight=weight, radius=radius, pull=pull)
        noticed = Proximal(iterations=2000).run(case.target, jax.random.key(1)).diagnostics
        print(f"{radius=} {weight=} {pull=} {noticed}")
        assert noticed["tries_per_step"] <= 1.8
        assert noticed["ball_tries_per_step"] <= 20.0


# ── γ and iterations ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_reference_number_of_iterations() -> None:
    """d = 6, B = 2.83, γ = 1e-11, started at the minimum."""
    kappa = math.cosh(2.83 / 2) ** 2
    geometry = Geometry(6, 1 / kappa, 1.0, ball=True)
    assert iterations_of(1e-11, geometry, 0.0) == 790
    formula = 0.5 + (math.log(36 * kappa / 2) + math.log(1 / 2e-22)) / (2 * math.log1p(1 / (6 * kappa)))
    assert iterations_of(1e-11, geometry, 0.0) == math.ceil(formula)


@given(
    st.floats(-15, -0.5), st.integers(1, 60), st.floats(-3, 3), st.floats(0, 5), st.booleans(), st.floats(0, 3)
)  # fmt: skip
def test_gamma_and_iterations_are_each_others_inverse(exponent, dimension, curvature, ratio, ball, start) -> None:
    gamma, strong = 10.0**exponent, 10.0**curvature
    geometry = Geometry(dimension, strong, strong * 10.0**ratio, ball=ball)
    iterations = iterations_of(gamma, geometry, start)
    assert gamma_after(iterations, geometry, start) <= gamma
    if iterations > 1:
        assert gamma_after(iterations - 1, geometry, start) > gamma * (1 - 1e-6)


def test_iterations_for_a_billionth_beside_those_of_proposition_13() -> None:
    print("\n     n  d   proximal  preconditioned  Proposition 13")
    for n in (10**2, 10**3, 10**4, 10**5):
        for dimension in (2, 6, 11):
            numbers = {"dimension": dimension, "strong_convexity": 1.0, "smoothness": 1.0 + 0.05 * n * 0.5}
            plain = iterations_of(1e-9, Geometry(**numbers, ball=False), 0.0)
            bounded = iterations_of(1e-9, Geometry(dimension, 1 / math.cosh(1.415) ** 2, 1.0, ball=True), 0.0)
            steps = proposition_13(1e-9, **numbers)[1]
            print(f"{n:6d} {dimension:2d} {plain:10,d} {bounded:15,d} {steps:15.2e}")
            assert plain < 1e-10 * steps
            assert bounded < 2000


def test_the_metric_with_the_better_ratio_is_taken() -> None:
    few, many = (geometry_of(PublicNumbers(6, 1.0, 1.0 + records, 2.0, 4.8)) for records in (1.0, 1000.0))
    assert (few.preconditioned, few.smoothness) == (False, 2.0)
    assert (many.preconditioned, many.smoothness) == (True, 1.0)
    assert many == geometry_of(PublicNumbers(6, 1.0, 1e5, 2.0, 4.8))
    assert not geometry_of(PublicNumbers(6, 1.0, 1e5, None, 4.8)).preconditioned


# The chain's law in one dimension, by quadrature: KL(x_k ‖ posterior) for k = 1, 2, 3.

GRID = 801


def divergences(case: Case, start: Array, points: Array, eta: float, count: int) -> list[float]:
    """KL(law of x_k ‖ posterior), from probabilities ``start`` of the points."""
    density = np.exp(-case.potential(points[:, None]))
    posterior = density / density.sum()
    wide = np.linspace(points[0] - 8 * math.sqrt(eta), points[-1] + 8 * math.sqrt(eta), 2 * GRID)
    forward = np.exp(-((points[:, None] - wide) ** 2) / (2 * eta))
    backward = density * np.exp(-((wide[:, None] - points) ** 2) / (2 * eta))
    step = (forward / forward.sum(axis=1, keepdims=True)) @ (backward / backward.sum(axis=1, keepdims=True))
    found, law = [], start
    for _ in range(count):
        law = law @ step
        found.append(float((law * np.log(np.maximum(law, 1e-300) / posterior)).sum()))
    return found


@pytest.mark.parametrize("name", ["interval", "interval, minimum at its end", "interval, small"])
@pytest.mark.parametrize("where", [0.0, -1.0, 1.0])
def test_the_bound_from_a_point_dominates_the_true_divergence(name: str, where: float) -> None:
    """Also from the end that is farthest from the minimum."""
    case = BALLS[name]
    target = case.target
    points = np.linspace(-target.radius, target.radius, GRID)
    minimum = points[case.potential(points[:, None]).argmin()]
    index = round((where + 1) / 2 * (GRID - 1))
    eta = 1.0 / target.smoothness
    bound = Geometry(1, 1.0, target.smoothness, ball=True).divergence(abs(points[index] - minimum))
    for k, true in enumerate(divergences(case, np.eye(GRID)[index], points, eta, 3), start=1):
        assert true <= bound * (1 + eta) ** (1 - 2 * k), k


@pytest.mark.parametrize("shift", [0.0, 0.3, -1.0])
def test_the_bound_from_a_gaussian_dominates_the_true_divergence(shift: float) -> None:
    case, points = SPACES["line"], np.linspace(-7.0, 7.0, GRID)
    smoothness = case.target.smoothness
    values = case.potential(points[:, None])
    centre = points[values.argmin()] + shift
    slope = float(np.interp(centre, points, np.gradient(values, points)))
    start = np.exp(-0.5 * smoothness * (points - centre) ** 2)
    start /= start.sum()
    bound = Geometry(1, 1.0, smoothness, ball=False).divergence(abs(slope))
    posterior = np.exp(-values) / np.exp(-values).sum()
    trues = [float((start * np.log(np.maximum(start, 1e-300) / posterior)).sum())]
    trues += divergences(case, start, points, 1.0 / smoothness, 3)
    for k, true in enumerate(trues):
        assert true <= bound * (1 + 1.0 / smoothness) ** (-2 * k) + 1e-4, k


# ── what it says before it runs ──────────────────────────────────────────────────────────────────────────────


def plan(**numbers: float) -> SimpleNamespace:
    """The public face of a plan for a bounded predictor in six dimensions."""
    given = {"weight": 0.18, "strong_convexity": 1.0, "smoothness": 89.0, "radius": 2.0, "curvature_ratio": 4.8}
    return SimpleNamespace(
        model=SimpleNamespace(parameter_names=tuple("abcdef")), closed_form=False, requires="exact",
        parameters={name: value for name, value in {**given, **numbers}.items() if value is not None},
    )  # fmt: skip


def test_its_exactness_follows_from_public_numbers() -> None:
    assert Proximal(gamma=1e-11).exactness(plan()) == privacy.WithinTV(1e-11)
    found = Proximal(iterations=790).exactness(plan())
    assert isinstance(found, privacy.WithinTV)
    assert 1e-12 < found.gamma < 3e-11
    assert found == Proximal(iterations=790).exactness(plan(smoothness=1e6))
    assert Proximal(iterations=791).exactness(plan()).gamma < found.gamma


def test_a_plan_and_its_target_have_the_same_geometry() -> None:
    target = BALLS["disc"].target
    bounds = target.model.bounds
    numbers = {
        "strong_convexity": target.strong_convexity, "smoothness": target.smoothness, "radius": target.radius,
        "curvature_ratio": bounds["curvature_ratio"].value,
    }  # fmt: skip
    assert geometry_of(numbers_of_target(target)) == geometry_of(PublicNumbers(2, **numbers))


@pytest.mark.parametrize("sampler", [Proximal(gamma=1e-9), Proximal(iterations=100)])
def test_it_is_read_back_from_a_certificate(sampler: Proximal) -> None:
    assert Sampler.from_dict(json.loads(json.dumps(sampler.to_dict()))) == sampler


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gamma": 1e-9, "iterations": 5},
        *({"gamma": value} for value in (0.0, 0.5, math.nan, "1e-9", True)),
        *({"iterations": value} for value in (0, 2.5, True)),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict) -> None:
    with pytest.raises(errors.WrongCall, match=r"gamma|iterations"):
        Proximal(**options)


@pytest.mark.parametrize(
    ("faulty", "words"),
    [
        (plan(smoothness=None), "kink"),
        (plan(strong_convexity=0.0), "strong convexity 0"),
        (plan(strong_convexity=None), "Exact()"),
        (SimpleNamespace(**{**vars(plan()), "closed_form": True}), "Exact()"),
        (SimpleNamespace(**{**vars(plan()), "requires": "noisy-gradient"}), "noisy-gradient"),
    ],
)
def test_plans_it_cannot_serve_are_refused_with_the_way_out(faulty: SimpleNamespace, words: str) -> None:
    with pytest.raises(errors.ExactnessRefused, match=re.escape(words)):
        Proximal(gamma=1e-9).exactness(faulty)


def test_too_few_iterations_are_refused_with_the_number_that_would_do() -> None:
    with pytest.raises(errors.ExactnessRefused, match="takes 6"):
        Proximal(iterations=3).exactness(plan())
