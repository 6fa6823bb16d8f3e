"""Langevin chains: the law of the last iterate against its closed form, what they promise, what they refuse; the default."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from onedraw import errors, privacy
from onedraw.models.compute import jax
from onedraw.privacy.last_iterate import last_iterate_mu, path_mu
from onedraw.samplers import (
    Exact,
    Langevin,
    LastIterateLangevin,
    Proximal,
    Sampler,
    default_sampler,
    seeded_key,
)
from onedraw.samplers.langevin import proposition_13
from tests.samplers.cases import Array, follows, huber, logistic

DRAWS = 20_000
QUADRATIC = huber(2, weight=0.4, threshold=1e6)


def autoregression(steps: int, step_size: float) -> tuple[Array, Array]:
    """Mean and covariance of the last iterate from 0 on the quadratic U."""
    X, y, weight = QUADRATIC.target.encoded.X, QUADRATIC.target.encoded.y, QUADRATIC.target.weight
    precision = weight * X.T @ X + np.eye(2)
    move = np.eye(2) - step_size * precision
    mean, covariance = np.zeros(2), np.zeros((2, 2))
    for _ in range(steps):
        mean = move @ mean + step_size * weight * X.T @ y
        covariance = move @ covariance @ move.T + 2 * step_size * np.eye(2)
    return mean, covariance


def is_last_iterate(draws: Array, steps: int, step_size: float) -> bool:
    mean, covariance = autoregression(steps, step_size)
    standard = np.linalg.solve(np.linalg.cholesky(covariance), (draws - mean).T)
    return all(follows(row, norm.cdf) for row in standard)


@pytest.mark.statistical
@pytest.mark.parametrize(("steps", "size"), [(1, DRAWS), (3, 5 * DRAWS), (60, DRAWS)])
def test_the_last_iterate_follows_the_autoregression(steps: int, size: int, test_seed: int) -> None:
    """A fourth step moves the distribution function by 0.0217: beyond the 0.0085 allowed to 100,000 draws by 4.1/√n,
    which a fault passes with probability e^{−2·4.1²} < 1e-14. The other faults are further off."""
    sampler = LastIterateLangevin(steps, 0.2)
    draws = sampler.run(QUADRATIC.target, jax.random.key(test_seed % 2**63), size=size).draws
    assert is_last_iterate(draws, steps, 0.2)
    assert not is_last_iterate(draws, steps, 0.4)
    if steps < 60:  # after 60 steps one more changes nothing
        assert not is_last_iterate(draws, steps + 1, 0.2)


def test_a_projected_chain_stays_in_its_ball_and_repeats_with_its_key() -> None:
    target = logistic(2, weight=5.0, radius=0.5, pull=True).target
    sampler = LastIterateLangevin(30, 0.05)
    draws = sampler.run(target, seeded_key(3), size=300).draws
    norms = np.linalg.norm(draws, axis=1)
    assert (norms <= 0.5 * (1 + 1e-15)).all()
    assert (norms > 0.5 * (1 - 1e-12)).mean() > 0.2
    assert (draws == sampler.run(target, seeded_key(3), size=300).draws).all()
    assert sampler.draw(target, seeded_key(3), size=300).shape == (300, 2)


def test_proposition_13_has_the_steps_of_the_corrected_formula() -> None:
    gamma, d, m, M = 1e-6, 2, 1.0, 26.0
    logarithms = 4 * math.log(1 / gamma) + d * math.log(M / m)
    step_size, steps = proposition_13(gamma, dimension=d, strong_convexity=m, smoothness=M)
    assert step_size == pytest.approx(2 * m * gamma**2 / (d * M**2 * logarithms), rel=1e-12)
    assert steps == pytest.approx(d * M**2 * logarithms**2 / (4 * m**2 * gamma**2), rel=1e-9)
    assert steps > 1e18
    # S = hT is the time horizon of Dalalyan's corollary, (4 log 1/γ + d log M/m)/(2m).
    assert step_size * steps == pytest.approx(logarithms / (2 * m), rel=1e-9)
    assert proposition_13(gamma, dimension=1, strong_convexity=m, smoothness=M) == (step_size, steps)


@pytest.mark.statistical
def test_proposition_13_comes_as_near_as_it_says(test_seed: int) -> None:
    """With γ = 0.1 hardly a thousand steps; in truth it is far nearer than that. A law that is as far off as it may be lies 3.5
    standard deviations (0.5/√2048) beyond the critical 0.0595."""
    case = huber(2, weight=0.01, threshold=1e6)
    sample = Langevin(gamma=0.1).run(case.target, jax.random.key(test_seed % 2**63), size=2048)
    assert 100 < sample.diagnostics["steps"] < 10**5
    precision = 0.01 * case.target.encoded.X.T @ case.target.encoded.X + np.eye(2)
    mean = np.linalg.solve(precision, 0.01 * case.target.encoded.X.T @ case.target.encoded.y)
    standard = (sample.draws - mean) @ np.linalg.cholesky(precision)
    assert all(follows(column, norm.cdf) for column in standard.T)


# ── what they say before they run ────────────────────────────────────────────────────────────────────────────

NUMBERS = {"weight": 0.09, "gradient_difference": 2.8, "strong_convexity": 1.0, "smoothness": 48.0}


def plan(
    *, draws: int = 1, records: int = 1, requires: str = "exact", closed_form: bool = False, **numbers: Any
) -> Any:
    """The public face of a plan; None takes a number away."""
    return SimpleNamespace(
        parameters={name: value for name, value in {**NUMBERS, **numbers}.items() if value is not None},
        mechanism=SimpleNamespace(own_sampler=lambda: LastIterateLangevin if requires == "noisy-gradient" else None), model=SimpleNamespace(parameter_names=tuple("abcdef")), draws=draws, requires=requires, closed_form=closed_form,
        guarantee=SimpleNamespace(unit=privacy.Unit(records), promise=privacy.GaussianDP(1.0)), budget=privacy.GaussianDP(1.0),
    )  # fmt: skip


def mu_of(sampler: LastIterateLangevin, plan: Any) -> float:
    exactness = sampler.exactness(plan)
    assert isinstance(exactness, privacy.LastIterate)
    assert isinstance(exactness.promise, privacy.GaussianDP)
    return exactness.promise.mu


def test_it_promises_the_smaller_of_last_iterate_and_path() -> None:
    step = {"step_size": 0.01, "weight": 0.09, "gradient_difference": 2.8}
    convex = {"strong_convexity": 1.0, "smoothness": 48.0}
    for steps in (1, 10, 10_000):
        found = mu_of(LastIterateLangevin(steps, 0.01), plan())
        assert found == min(path_mu(steps=steps, **step), last_iterate_mu(steps=steps, **step, **convex))
    assert mu_of(LastIterateLangevin(10_000, 0.01), plan()) <= 0.09 * 2.8
    assert mu_of(LastIterateLangevin(10_000, 0.01), plan(smoothness=None)) == path_mu(steps=10_000, **step)


def test_several_draws_and_several_records_per_person_are_paid_for() -> None:
    sampler = LastIterateLangevin(500, 0.01)
    one = mu_of(sampler, plan())
    assert mu_of(sampler, plan(draws=4)) == pytest.approx(2 * one, rel=1e-12)
    assert mu_of(sampler, plan(draws=4)) >= 2 * one
    assert mu_of(sampler, plan(records=3)) == pytest.approx(3 * one, rel=1e-12)


def test_a_noisy_gradient_plan_takes_its_own_steps_alone() -> None:
    noisy = plan(requires="noisy-gradient", steps=500.0, step_size=0.01)
    assert mu_of(LastIterateLangevin(500, 0.01), noisy) > 0
    for other in (LastIterateLangevin(501, 0.01), LastIterateLangevin(500, 0.011)):
        with pytest.raises(errors.ExactnessRefused, match=re.escape("500 steps of 0.01")):
            other.exactness(noisy)
    with pytest.raises(errors.ExactnessRefused, match="noisy-gradient"):
        Langevin(0.1).exactness(noisy)
    assert default_sampler(noisy)[0] == LastIterateLangevin(500, 0.01)


@pytest.mark.parametrize(
    ("steps", "step_size"),
    [
        *((steps, 0.1) for steps in (0, -1, 2.0, True)),
        *((5, step_size) for step_size in (0.0, -1.0, math.nan, math.inf, "0.1", True)),
    ],
)
def test_steps_that_mean_nothing_are_refused(steps: Any, step_size: Any) -> None:
    with pytest.raises(errors.WrongCall, match="step"):
        LastIterateLangevin(steps, step_size)


def test_a_step_of_two_over_m_is_refused_with_the_limit() -> None:
    with pytest.raises(errors.WrongCall, match=re.escape("(0, 2/M) = (0, 0.0416")):
        LastIterateLangevin(10, 0.0417).exactness(plan())


@pytest.mark.parametrize("sampler", [LastIterateLangevin(5, 0.01), Langevin(0.1), Proximal(gamma=0.1)])
def test_a_closed_form_is_left_to_the_exact_sampler(sampler: Any) -> None:
    with pytest.raises(errors.ExactnessRefused, match="Exact"):
        sampler.exactness(plan(closed_form=True))
    with pytest.raises(errors.ExactnessRefused, match="Exact"):
        sampler.exactness(plan(weight=None, strong_convexity=None))


def test_the_exact_sampler_refuses_a_posterior_without_closed_form() -> None:
    with pytest.raises(errors.ExactnessRefused, match="Proximal"):
        Exact().exactness(plan())
    assert isinstance(Exact().exactness(plan(closed_form=True)), privacy.Exact)


def test_proposition_13_is_refused_with_its_number_of_steps() -> None:
    with pytest.raises(errors.ExactnessRefused, match=r"needs .*e\+\d\d steps") as caught:
        Langevin(gamma=1e-6).exactness(plan())
    assert caught.value.steps > 1e19
    assert Langevin(gamma=1e-3, most_steps=10**30).exactness(plan()) == privacy.WithinTV(1e-3)
    with pytest.raises(errors.ExactnessRefused, match="double precision"):
        Langevin(gamma=1e-6, most_steps=10**30).exactness(plan())
    with pytest.raises(errors.ExactnessRefused, match="ball"):
        Langevin(gamma=0.4).exactness(plan(radius=2.0))
    with pytest.raises(errors.ExactnessRefused, match="kink"):
        Langevin(gamma=0.4).exactness(plan(smoothness=None))


@pytest.mark.parametrize("gamma", [0.0, 0.5, -1.0, math.nan, "0.1", True])
def test_a_gamma_that_means_nothing_is_refused(gamma: Any) -> None:
    with pytest.raises(errors.WrongCall, match="gamma"):
        Langevin(gamma)


@pytest.mark.parametrize(
    "sampler", [LastIterateLangevin(50, 0.01), Langevin(0.1), Langevin(0.1, most_steps=7), Exact()]
)
def test_they_are_read_back_from_a_certificate(sampler: Any) -> None:
    assert Sampler.from_dict(json.loads(json.dumps(sampler.to_dict()))) == sampler


def test_each_says_which_randomness_it_runs_on() -> None:
    assert Exact.randomness == "numpy"
    assert {LastIterateLangevin.randomness, Langevin.randomness, Proximal.randomness} == {"jax"}


# ── the default ──────────────────────────────────────────────────────────────────────────────────────────────


def budgeted(*, budget: privacy.Promise, gamma: float = 0.0, n: int = 1000, **numbers: Any) -> Any:
    return SimpleNamespace(**{**vars(plan(**numbers)), "budget": budget, "gamma": gamma, "n": n})


def test_the_default_is_exact_where_there_is_a_closed_form() -> None:
    assert default_sampler(plan(closed_form=True))[0] == Exact()


def test_the_default_is_the_last_iterate_where_its_promise_is_enough() -> None:
    found, why = default_sampler(budgeted(budget=privacy.ApproxDP(1.0, 1e-5)))
    assert isinstance(found, LastIterateLangevin)
    assert "whether or not it has converged" in why
    assert found.exactness(plan()).promise.implies(privacy.ApproxDP(1.0, 1e-5))


def test_the_default_stops_at_a_public_amount_of_work() -> None:
    found, why = default_sampler(budgeted(budget=privacy.ApproxDP(1.0, 1e-5), n=10**6, smoothness=1e9))
    assert found.steps < 2e5
    assert "at most 1 of the starting point" in why


def test_the_default_is_the_proximal_sampler_where_only_nearness_helps() -> None:
    numbers = {
        "radius": 2.0,
        "curvature_ratio": 40.0,
        "weight": 0.5,
        "smoothness": 890.0,
    }  # 64,000 tries for an exact draw
    found, why = default_sampler(budgeted(budget=privacy.ApproxDP(1.0, 1e-10), gamma=2e-11, draws=2, **numbers))
    assert isinstance(found, Proximal)
    assert 0.99e-11 < found.gamma <= 1e-11
    assert "the same for any number of records" in why
    again = default_sampler(budgeted(budget=privacy.ApproxDP(1.0, 1e-10), gamma=2e-11, draws=2, n=10**6, **numbers))
    assert again == (found, why)


def test_the_default_refuses_with_the_way_out() -> None:
    with pytest.raises(errors.ExactnessRefused, match="HuberisedHinge"):
        default_sampler(budgeted(budget=privacy.ApproxDP(1.0, 1e-5), smoothness=None))
    with pytest.raises(errors.ExactnessRefused, match="gamma above 0"):
        default_sampler(budgeted(budget=privacy.ApproxDP(1.0, 1e-10), weight=2.0))
