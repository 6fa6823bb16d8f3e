"""Averaged steps audited: the promise is attained, and a fault in any part is caught by its law or by the replay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import onedraw as od
from onedraw import models
from onedraw.audit.cases import examine, smallest_caught_factor
from onedraw.methods import calibrate
from onedraw.methods.catalog import case_for, cases
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit import run as running
from onedraw.methods.fit import steps as recursion
from onedraw.methods.fit.audit import ATTAINED, BY_PERSON, MODELS, steps_case
from onedraw.methods.fit.replay import replay_steps
from onedraw.methods.fit.run import Stages
from onedraw.methods.fit.sizes import StepNumbers
from onedraw.methods.fit.sums import ClippedScores, PersonCovariance
from onedraw.privacy import GaussianDP

BUDGET = od.ApproxDP(1.0, 1e-5)
PARTS = ("mean", "moments", "design", "tail", "early", "step", "count", "information", "covariance")


LINES = ["by person", "an effect of interest", "a robust line", "a declared prior"]


def planned(name: str = "logistic", budget: Any = BUDGET, **options: Any) -> Any:
    return calibrate(AveragedSteps(**options), MODELS[name], budget, n=10_000)


# Laws


@pytest.mark.parametrize("name", MODELS)
def test_promise_is_attained_and_the_program_replayed(name: str) -> None:
    found = cases(name, BUDGET, mechanism="averaged-steps")
    assert [case.label for case in found] == ["", *LINES * (name == BY_PERSON)]
    for case in found:
        one = examine(case, thorough=True)
        assert one.passed
        assert 1.0 - 1e-6 <= one.gap < 1.002
        assert case.reason == ATTAINED
        assert case.replayed() == ()


@pytest.mark.parametrize(
    "budget", [od.ApproxDP(0.1, 1e-8), od.ApproxDP(20.0, 1e-6), od.GaussianDP(0.4), od.ZCDP(0.5)], ids=str
)
def test_promise_is_attained_at_other_budgets(budget: Any) -> None:
    plan = calibrate(AveragedSteps(), MODELS["counts"], budget, n=100_000)
    found = examine(case_for(plan), thorough=False)
    assert found.passed
    assert found.gap < 1.01


@pytest.mark.parametrize("part", PARTS)
def test_part_with_nine_tenths_of_its_noise_breaks_the_promise(part: str) -> None:
    measured = part not in (
        "tail",
        "count",
    )  # many records, and scores without a bound of their own, have long ones counted
    plan = planned() if measured else calibrate(AveragedSteps(), MODELS["counts"], od.ApproxDP(1.0, 1e-6), n=100_000)
    case = steps_case(plan)
    assert case.profile(case.pairs[0]).breaks(case.promise) is None
    faulty = case.running(**{f"{part}_noise": 0.9})
    assert faulty.profile(case.pairs[0]).breaks(case.promise) is not None


@pytest.mark.parametrize(
    "bound", ["moment_radius", "design_radius", "early_bound", "step_bound", "information_radius", "covariance_radius"]
)
def test_part_with_longer_rows_or_scores_breaks_the_promise(bound: str) -> None:
    case = steps_case(planned())
    assert case.running(**{bound: 1.1}).profile(case.pairs[0]).breaks(case.promise) is not None


def test_promise_that_forgets_a_step_is_broken() -> None:
    case = steps_case(planned())
    step = 2.0 * case.planned["step_bound"] / case.planned["step_noise"]
    forgotten = GaussianDP((case.promise.gaussian_mu**2 - step**2) ** 0.5)
    stated = replace(case.plan, guarantee=replace(case.plan.guarantee, promise=forgotten))
    assert not examine(replace(case, plan=stated), thorough=False).passed


def test_smallest_fault_that_is_caught_is_small() -> None:
    case = steps_case(planned())
    assert 1.0 < smallest_caught_factor(case, case.pairs[0], gap=examine(case).gap) < 1.01


def test_records_of_one_person_are_audited_as_one_record() -> None:
    plan = calibrate(AveragedSteps(), MODELS["least-squares"], BUDGET, n=10_000, records_per_person=3)
    assert examine(case_for(plan), thorough=False).passed


@pytest.fixture(scope="module")
def scarce() -> Any:
    """Return a plan whose columns' mean would drown, so that the response's is measured alone."""
    plan = calibrate(AveragedSteps(), MODELS["least-squares"], BUDGET, n=400)
    assert plan.parameters["level_noise"] > 0.0 == plan.parameters["mean_noise"]
    return plan


def test_mean_of_the_response_alone_is_audited_with_the_rest(scarce: Any) -> None:
    case = steps_case(scarce)
    found = examine(case, thorough=True)
    assert found.passed
    assert 1.0 - 1e-6 <= found.gap < 1.002
    assert case.replayed() == ()


def test_half_the_sensitivity_of_the_response_is_caught(scarce: Any) -> None:
    """The planted fault: noise for half of what a response moves."""
    case = steps_case(scarce)
    assert case.running(level_noise=0.5).profile(case.pairs[0]).breaks(case.promise) is not None
    found = replay_steps(scarce, program=changed(level_noise=0.5))
    assert "the level got noise of another size than the plan's" in found


# Scores added up by person


@pytest.fixture(scope="module")
def by_person() -> Any:
    return calibrate(AveragedSteps(persons=True), MODELS["least-squares"], BUDGET, n=10_000, records_per_person=3)


def test_sums_by_person_are_audited_as_those_of_one_person(by_person: Any) -> None:
    """One record's own parts have room to a third; the covariance, which is a person's already, has none to spare."""
    case = case_for(by_person)
    found = examine(case, thorough=True)
    assert found.passed
    assert 1.0 - 1e-6 <= found.gap < 1.002
    assert case.replayed() == ()


def test_half_the_sensitivity_of_a_person_is_caught(by_person: Any) -> None:
    """The planted fault: noise for half of what a person moves."""
    case = case_for(by_person)
    assert case.profile(case.pairs[0]).breaks(case.promise) is None
    faulty = case.running(covariance_noise=0.5)
    assert faulty.profile(case.pairs[0]).breaks(case.promise) is not None
    assert "the covariance got noise of another size than the plan's" in replay_steps(
        by_person, program=changed(covariance_noise=0.5)
    )


def program_with(owners: Any) -> Any:
    """Return the program with other owners than the records'."""
    return lambda target, noise: Stages(replace(target, whose=owners(target.whose)), noise)


@pytest.mark.parametrize(
    "owners",
    [
        lambda whose: np.where(whose < 0, np.flatnonzero(whose < 0)[0], whose),
        lambda whose: np.where(whose < 0, 0, whose),
        lambda whose: np.arange(len(whose)),
    ],
    ids=["records of nobody pooled", "records of nobody given to somebody", "every record a person"],
)
def test_program_that_takes_other_records_together_is_caught(by_person: Any, owners: Any) -> None:
    assert "the covariance is not the sum that the plan declares" in replay_steps(
        by_person, program=program_with(owners)
    )


class SumsUncut(PersonCovariance):
    """The planted fault: sums of scores are shortened to eight times their length."""

    def block(self, sums: Any, weight: Any, steps: Any, radius: Any, fine: Any) -> Any:
        return super().block(sums, weight, steps, 8.0 * radius, fine)


def test_program_that_does_not_shorten_sums_is_caught(by_person: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {**by_person.parameters, "covariance_radius": 1e-3, "covariance_noise": 1.0}
    plan = by_person.mechanism.plan(by_person.request, short)
    assert replay_steps(plan) == []
    monkeypatch.setattr(running, "PersonCovariance", SumsUncut)
    assert "the covariance is not the sum that the plan declares" in replay_steps(plan)


def test_pure_budgets_have_no_case() -> None:
    assert all(case.key != "averaged-steps" for case in cases("least-squares", od.PureDP(1.0)))


# The replay


@pytest.fixture(scope="module")
def small() -> Any:
    return planned("least-squares")


def changed(**times: float) -> Any:
    """Return the program with other numbers than its plan's."""

    def program(target: Any, noise: Any) -> Stages:
        sizes = target.problem.sizes.to_dict()
        faulty = StepNumbers(**{name: times.get(name, 1.0) * value for name, value in sizes.items()})
        return Stages(replace(target, problem=replace(target.problem, sizes=faulty)), noise)

    return program


@pytest.mark.parametrize("part", [part for part in PARTS if part != "information"])
def test_program_with_less_noise_in_a_part_is_caught(small: Any, part: str) -> None:
    found = replay_steps(small, program=changed(**{f"{part}_noise": 0.9}))
    assert f"the {part} got noise of another size than the plan's" in found


@pytest.mark.parametrize("part", ["moment_radius", "early_bound", "step_bound", "covariance_radius"])
def test_program_with_other_bounds_is_caught(small: Any, part: str) -> None:
    found = replay_steps(small, program=changed(**{part: 0.02 if part == "covariance_radius" else 1.5}))
    name = {"moment_radius": "moments", "covariance_radius": "covariance"}.get(part, part.removesuffix("_bound"))
    assert f"the {name} is not the sum that the plan declares" in found


def test_program_that_makes_a_step_too_many_or_too_few_is_caught(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    true = recursion.walk
    for early, steps in ((12, 31), (11, 30)):

        def walk(*given: Any, early: int = early, steps: int = steps) -> Any:
            with monkeypatch.context() as patched:
                patched.setattr(recursion, "EARLY_STEPS", early)
                patched.setattr(recursion, "STEPS", steps)
                return true(*given)

        with monkeypatch.context() as patched:
            patched.setattr(running, "walk", walk)
            found = replay_steps(small)
        assert any("other parts ran" in one or "another size" in one for one in found), (early, steps)


class HalfShares(ClippedScores):
    """The planted fault: the scores of half the block count twice."""

    def block(self, z: Any, y: Any, weight: Any, *public: Any) -> Any:
        heavy = weight * np.where(np.arange(z.shape[1]) % 2, 2.0, 0.0)
        return super().block(z, y, heavy, *public)


class Unshortened(ClippedScores):
    """The planted fault: scores are shortened to eight times their bound."""

    def block(self, z: Any, y: Any, weight: Any, steps: Any, radius: Any, *public: Any) -> Any:
        return super().block(z, y, weight, steps, 8.0 * radius, *public)


class Unweighted(ClippedScores):
    """The planted fault: classes are shortened whichever class a record has. It moves no promise, but the estimate."""

    def _weights(self, z: Any, longest: Any, bound: Any, stretch: Any = None) -> Any:
        return 1.0


def test_program_that_shortens_classes_without_weights_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("logistic")
    short = plan.mechanism.plan(plan.request, {**plan.parameters, "step_bound": 0.4, "covariance_radius": 0.4})
    assert replay_steps(short) == []
    monkeypatch.setattr(running, "ClippedScores", Unweighted)
    assert "the step is not the sum that the plan declares" in replay_steps(short)


@pytest.mark.parametrize("statistic", [HalfShares, Unshortened])
def test_program_with_other_sums_is_caught(small: Any, statistic: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ClippedScores", statistic)
    assert "the step is not the sum that the plan declares" in replay_steps(small)


def test_program_that_reads_other_coefficients_is_caught(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    true = Stages._gradient
    monkeypatch.setattr(Stages, "_gradient", lambda self, theta, *rest: true(self, theta + 3.0, *rest))
    assert "the step is not the sum that the plan declares" in replay_steps(small)


def test_replay_covers_categories_and_rows_in_a_ball() -> None:
    coded = calibrate(AveragedSteps(categories=((1, 3),)), MODELS["logistic"], BUDGET, n=10_000)
    ball = models.OrdinaryLeastSquares(3, data_norm=2.0, response_bound=2.0, prior=od.Gaussian(scale=1.0))
    assert replay_steps(coded) == []
    assert replay_steps(calibrate(AveragedSteps(), ball, BUDGET, n=10_000)) == []
