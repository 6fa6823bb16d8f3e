"""Padded fits: accelerated steps arrive within their proven number, and every data set takes the same passes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw import errors
from onedraw.methods import PerturbedMode
from onedraw.methods.perturbed_mode import run as fit
from onedraw.methods.perturbed_mode.run import MOST_PASSES, Fit, Stages, most_search
from onedraw.models import Gaussian, Logistic
from onedraw.models.fit.problem import Published, coordinates
from onedraw.models.fit.sums import NewtonSums, minimum, most_descent
from onedraw.samplers import seeded_generator
from onedraw.samplers.noise import Noise
from onedraw.samplers.padding import MOST_IDLE, PASSES
from tests.samplers.test_proximal_padding import data_sets

N = 30


@cache
def planned(n: int = N, *, epsilon: float = 4.0, delta: float = 0.0, **options: Any) -> od.Plan:
    budget = od.PureDP(epsilon) if not delta else od.ApproxDP(epsilon, delta)
    model = Logistic(2, bounds=(-np.ones(2), np.ones(2)), scaled=True, prior=Gaussian(scale=1.0))
    return od.calibrate(PerturbedMode(**options), model, budget, n=n)


def test_every_data_set_takes_the_same_passes_and_the_fit_is_what_it_was() -> None:
    plan, sampler = planned(), Fit()
    padding = sampler.padding(plan)
    early = set()
    for seed, data in enumerate(data_sets(10)):
        target = plan.target(plan.model.summarise(data))
        plain = sampler.run(target, seeded_generator(seed))
        padded = sampler.run_padded(target, seeded_generator(seed), padding)
        assert padded.diagnostics["work"] == padding.work
        assert padded.stages == plain.stages
        assert np.array_equal(padded.draws, plain.draws)
        early.add(plain.diagnostics["passes"])
    assert len(early) > 1  # without padding it tells data sets apart
    assert max(early) < padding.passes


def test_idle_passes_are_made_and_not_only_counted(monkeypatch) -> None:
    """Sums in measured coordinates, as they are asked for: of the search, then of the information."""
    plan, asked = planned(), []
    target = plan.target(plan.model.summarise(data_sets(1)[0]))
    kind = type(target.measured(coordinates(target.problem, Published(np.zeros(0), None, None))))
    add_up = kind.sum
    monkeypatch.setattr(kind, "sum", lambda self, of, *public: asked.append(type(of)) or add_up(self, of, *public))
    for seed, data in enumerate(data_sets(4)):
        asked.clear()
        Fit().run_padded(plan.target(plan.model.summarise(data)), seeded_generator(seed), Fit().padding(plan))
        assert asked.count(NewtonSums) == most_search(target.problem)


@pytest.mark.parametrize(("n", "epsilon"), [(N, 4.0), (4000, 0.5)])
def test_the_search_has_room_for_all_tilts_but_one_in_a_million_millions(n: int, epsilon: float) -> None:
    plan = planned(n, epsilon=epsilon)
    problem: Any = plan.mechanism.problem(plan)  # type: ignore[attr-defined]
    numbers, loss, size = problem.numbers, problem.loss, problem.size
    longest = numbers["mode_noise"] * stats.gamma.isf(1e-12, size)
    gradient = n * loss.slope_bound * numbers["row_bound"] + longest
    most = n * loss.curvature_bound * numbers["row_bound"] ** 2 + numbers["ridge"]
    assert most_search(problem) - MOST_PASSES == most_descent(
        numbers["ridge"], most, gradient, numbers["tolerance"] / 2
    )
    tilts = np.linalg.norm([Noise(seeded_generator(s), pure=True).real(size, 1.0) for s in range(400)], axis=1)
    assert stats.kstest(tilts, stats.gamma(size).cdf).pvalue > 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (4.0, 1e-6)])
def test_accelerated_steps_alone_arrive_within_what_is_proven(monkeypatch, epsilon: float, delta: float) -> None:
    """Newton's steps are forbidden, so that all the way is made by those whose number is proven."""
    plan = planned(epsilon=epsilon, delta=delta)
    monkeypatch.setattr(fit, "MOST_PASSES", 1)
    for seed, data in enumerate(data_sets(9)):
        target = plan.target(plan.model.summarise(data))
        stages = Stages(target, Noise(seeded_generator(seed), pure=True))
        seen: list[int] = []

        def counted(records: Any, loss: Any, objective: Any, seen: list[int] = seen) -> Any:
            found, passes = minimum(records, loss, objective)
            seen.append(passes)
            return found, passes

        stages.minimum = counted
        stages.run()
        assert 8 < seen[0] <= most_search(target.problem)


def test_the_number_of_steps_is_that_of_the_proof() -> None:
    assert most_descent(1.0, 1.0 + 1e-9, 1.0, 10.0) == 1
    found = most_descent(1.0, 100.0, 1e4, 1e-4)
    left = 3.0 * 2.0**0.5 * 100.0 * 1e4
    assert left * 0.9 ** ((found - 1) / 2.0) <= 1e-4 < left * 0.9 ** ((found - 2) / 2.0)


def test_more_is_needed_where_the_ridge_is_weak_and_a_prior_is_refused() -> None:
    few, many = (Fit().padding(planned(n)) for n in (N, 4000))
    assert few.gamma == many.gamma == 1e-12
    assert MOST_PASSES < few.passes < many.passes
    assert set(few.work) == {PASSES}
    with pytest.raises(errors.ExactnessRefused, match=r"Fit\(\) cannot pad .*prior"):
        Fit().padding(planned(prior=True))


def test_a_search_of_more_passes_than_anybody_waits_for_is_refused_with_their_number() -> None:
    """Planned numbers with a ridge that hardly bends the sum: nothing is read for them."""
    problem = planned().mechanism.problem(planned())  # type: ignore[attr-defined]
    weak = replace(problem, numbers={**problem.numbers, "ridge": 1e-9 * problem.numbers["ridge"]})
    with pytest.raises(errors.ExactnessRefused, match=r"search for the mode would take [\d,]+ passes .*1,000,000"):
        most_search(weak)
    assert most_search(problem) < MOST_IDLE


def test_a_padded_release_says_so_on_its_second_line() -> None:
    plan = planned()
    release = od.release(plan, data_sets(6)[5], timing="padded")
    timing = release.certificate.timing
    assert timing is not None
    assert timing.work == {PASSES: Fit().padding(plan).passes} == release.diagnostics["work"]
    assert timing.delta == pytest.approx((1.0 + np.exp(4.0)) * 1e-12, rel=1e-9)
    assert "γ₂ = 1e-12" in timing.sentence
    assert od.verify(release).answer == "consistent"
    assert release.certificate.promise.delta == 0.0
