"""Clipped gradients audited: the promise is attained, and a fault in any part is caught by its law or by the replay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import pytest

import onedraw as od
from onedraw import models
from onedraw.audit.cases import examine
from onedraw.methods import calibrate
from onedraw.methods.catalog import case_for, cases
from onedraw.methods.clipped_gradients import ClippedGradients, sizes
from onedraw.methods.clipped_gradients import run as running
from onedraw.methods.clipped_gradients.audit import ATTAINED, MODELS, clipped_case
from onedraw.methods.clipped_gradients.replay import replay_clipped
from onedraw.methods.clipped_gradients.run import Stages
from onedraw.methods.clipped_gradients.sizes import ClippedNumbers
from onedraw.methods.clipped_gradients.sums import Derivatives, Gradients, Levels, Scores, Squares
from onedraw.privacy import GaussianDP

BUDGET = od.ApproxDP(1.0, 1e-5)
PARTS = ("level", "mean", "spread", "slope", "intercept", "temperature")


def planned(name: str = "logistic", budget: Any = BUDGET, **options: Any) -> Any:
    return calibrate(ClippedGradients(**options), MODELS[name], budget, n=10_000)


@pytest.mark.parametrize("name", MODELS)
def test_promise_is_attained_and_the_program_replayed(name: str) -> None:
    found = cases(name, BUDGET, mechanism="clipped-gradients")
    assert [case.label for case in found] == ["", *["a category"] * (name == "classes")]
    for case in found:
        one = examine(case, thorough=False)
        assert one.passed
        assert 1.0 - 1e-6 <= one.gap < 1.002
        assert case.reason == ATTAINED
        assert case.replayed() == ()


@pytest.mark.parametrize("part", PARTS)
def test_part_with_nine_tenths_of_its_noise_breaks_the_promise(part: str) -> None:
    case = clipped_case(planned())
    assert case.profile(case.pairs[0]).breaks(case.promise) is None
    faulty = case.running(**{f"{part}_noise": 0.9})
    assert faulty.profile(case.pairs[0]).breaks(case.promise) is not None


ADDED = {"square": ("counts", BUDGET), "center": ("logistic", od.ApproxDP(0.005, 1e-5))}
"""Parts that some plans have: squares of counts, and the mean score of two classes where scales are left out."""


@pytest.mark.parametrize("part", ADDED)
def test_part_of_some_plans_is_audited_like_the_others(part: str) -> None:
    plan = planned(*ADDED[part])
    case = clipped_case(plan)
    assert plan.parameters[f"{part}_noise"] > 0.0
    one = examine(case, thorough=False)
    assert one.passed
    assert 1.0 - 1e-6 <= one.gap < 1.002
    assert case.running(**{f"{part}_noise": 0.9}).profile(case.pairs[0]).breaks(case.promise) is not None
    assert replay_clipped(plan) == []
    found = replay_clipped(plan, program=changed(**{f"{part}_noise": 0.9}))
    assert f"the {part} got noise of another size than the plan's" in found


class WholeScores(Scores):
    """The planted fault: scores are cut at four times their bound."""

    def block(self, *given: Any) -> Any:
        return super().block(*given[:5], 4.0 * given[5], *given[6:])


class Plain(Squares):
    """The planted fault: counts that are not squared."""

    def block(self, numbers: Any, codes: Any, y: Any, weight: Any, steps: Any) -> Any:
        return Levels(self.response).block(numbers, codes, y, weight, steps)


@pytest.mark.parametrize(("part", "name", "fault"), [("center", "Scores", WholeScores), ("square", "Squares", Plain)])
def test_program_with_other_sums_of_such_a_part_is_caught(
    part: str, name: str, fault: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(*ADDED[part])
    if part == "center":
        plan = plan.mechanism.plan(plan.request, {**plan.parameters, "center_bound": 0.2, "center_noise": 1e4})
    assert replay_clipped(plan) == []
    monkeypatch.setattr(running, name, fault)
    assert f"the {part} is not the sum that the plan declares" in replay_clipped(plan)


def test_first_plans_are_audited_as_they_were() -> None:
    plan = planned()
    stated = {name: value for name, value in plan.parameters.items() if name not in sizes.ADDED}
    first = plan.mechanism.plan(plan.request, stated)
    assert examine(clipped_case(first), thorough=False).passed
    assert replay_clipped(first) == []


@pytest.mark.parametrize("bound", ["slope_bound", "intercept_bound", "temperature_bound"])
def test_part_with_longer_shares_breaks_the_promise(bound: str) -> None:
    case = clipped_case(planned())
    assert case.running(**{bound: 1.1}).profile(case.pairs[0]).breaks(case.promise) is not None


def test_promise_that_forgets_a_share_is_broken() -> None:
    case = clipped_case(planned())
    level = 1.0 / case.planned["level_noise"]
    forgotten = GaussianDP((case.promise.gaussian_mu**2 - level**2) ** 0.5)
    stated = replace(case.plan, guarantee=replace(case.plan.guarantee, promise=forgotten))
    assert not examine(replace(case, plan=stated), thorough=False).passed


def test_records_of_one_person_are_audited_as_one_record() -> None:
    plan = calibrate(ClippedGradients(), MODELS["counts"], BUDGET, n=10_000, records_per_person=3)
    assert examine(case_for(plan), thorough=False).passed


# The replay


@pytest.fixture(scope="module")
def small() -> Any:
    """Few steps and short bounds, so that shares reach them."""
    plan = planned("classes", categories=((1, 4),))
    numbers = {
        **plan.parameters,
        "steps": 4.0,
        "slope_bound": 0.3,
        "temperature_bound": 0.2,
        "slope_noise": 1e3,
        "time": 4.0,
    }
    return plan.mechanism.plan(plan.request, numbers)


def changed(**times: float) -> Any:
    """Return the program with other numbers than its plan's."""

    def program(target: Any, noise: Any) -> Stages:
        sizes = target.problem.sizes.to_dict()
        faulty = ClippedNumbers(**{name: times.get(name, 1.0) * value for name, value in sizes.items()})
        return Stages(replace(target, problem=replace(target.problem, sizes=faulty)), noise)

    return program


@pytest.mark.parametrize("part", PARTS)
def test_program_with_less_noise_in_a_part_is_caught(small: Any, part: str) -> None:
    assert replay_clipped(small) == []
    found = replay_clipped(small, program=changed(**{f"{part}_noise": 0.9}))
    assert f"the {part} got noise of another size than the plan's" in found


@pytest.mark.parametrize("part", ["slope", "temperature"])
def test_program_with_other_bounds_is_caught(small: Any, part: str) -> None:
    found = replay_clipped(small, program=changed(**{f"{part}_bound": 4.0}))
    assert f"the {part} is not the sum that the plan declares" in found


def test_program_that_makes_a_step_too_many_is_caught(small: Any) -> None:
    assert "other parts ran than the plan's" in replay_clipped(small, program=changed(steps=1.25))


class Unclipped(Gradients):
    """The planted fault: gradients are shortened to eight times their bound."""

    def block(self, *given: Any) -> Any:
        return super().block(*given[:5], 8.0 * given[5], *given[6:])


class HalfTwice(Gradients):
    """The planted fault: every second record counts twice, the others not at all."""

    def block(self, *given: Any) -> Any:
        heavy = given[4] * jnp.where(jnp.arange(given[4].shape[0]) % 2 == 1, 2.0, 0.0)
        return super().block(*given[:4], heavy, *given[5:])


class Uncut(Derivatives):
    """The planted fault: derivatives are cut at four times their bound."""

    def block(self, *given: Any) -> Any:
        return super().block(*given[:5], 4.0 * given[5], *given[6:])


@pytest.mark.parametrize(
    ("name", "fault", "part"),
    [("Gradients", Unclipped, "slope"), ("Gradients", HalfTwice, "slope"), ("Derivatives", Uncut, "temperature")],
)
def test_program_with_other_sums_is_caught(
    small: Any, name: str, fault: type, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, name, fault)
    assert f"the {part} is not the sum that the plan declares" in replay_clipped(small)


def test_program_that_reads_other_coefficients_is_caught(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    true = Stages._gradient
    monkeypatch.setattr(
        Stages,
        "_gradient",
        lambda self, rows, where, start, slopes, level: true(
            self, rows, where, start, slopes + 3.0 * jnp.arange(3.0), level
        ),
    )
    assert "the slope is not the sum that the plan declares" in replay_clipped(small)


def test_replay_covers_rows_in_a_ball() -> None:
    ball = models.OrdinaryLeastSquares(3, data_norm=2.0, response_bound=2.0, prior=od.Gaussian(scale=1.0))
    assert replay_clipped(calibrate(ClippedGradients(), ball, BUDGET, n=10_000)) == []
