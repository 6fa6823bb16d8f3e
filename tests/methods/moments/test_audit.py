"""Released moments: their promise is attained and no more, every planted fault is caught, the program is what its plan says."""

from __future__ import annotations

import math

import numpy as np
import pytest

import onedraw as od
from onedraw.audit.cases import examine, smallest_caught_factor
from onedraw.methods import Moments
from onedraw.methods.catalog import case_for
from onedraw.methods.moments import run as program
from onedraw.methods.moments.audit import covariance_cases, moments_case
from onedraw.methods.moments.replay import provoke_moments, replay_moments
from onedraw.models import Columns
from onedraw.models.moments import measured as moment_sums

BUDGET = od.ApproxDP(1.0, 1e-5)


def planned(columns: int = 3, *, pure: bool = False, categories=(), n: int = 2000):
    return od.calibrate(Moments(pure=pure, categories=categories), Columns(columns, bounds=(0, 1)), BUDGET, n=n)


@pytest.mark.parametrize("case", covariance_cases(BUDGET), ids=lambda case: case.name)
def test_the_promise_is_attained_and_not_exceeded(case) -> None:
    found = examine(case, thorough=True)
    assert found.passed
    assert found.gap == pytest.approx(1.0, abs=0.01)
    assert smallest_caught_factor(case, found.pair, gap=found.gap) <= 1.01


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("stage", ["sums_noise", "moments_noise", "fourth_noise"])
def test_nine_tenths_of_a_stages_noise_are_caught(stage: str, pure: bool) -> None:
    assert not examine(moments_case(planned(pure=pure)).running(**{stage: 0.9})).passed


def test_a_sensitivity_of_one_instead_of_the_root_of_two_is_caught() -> None:
    case = moments_case(planned())
    for stage in ("moments_noise", "fourth_noise"):
        assert not examine(case.running(**{stage: 1.0 / math.sqrt(2.0)})).passed


def test_a_radius_larger_than_planned_is_caught() -> None:
    case = moments_case(planned())
    assert not examine(case.running(moments_radius=1.1)).passed
    assert not examine(case.running(fourth_radius=1.1)).passed


@pytest.mark.parametrize(("categories", "pure"), [((), False), (((1, 2), (2, 4)), False), (((0, 2),), True)])
def test_the_program_does_what_its_plan_declares(categories, pure: bool) -> None:
    plan = planned(4, pure=pure, categories=categories)
    assert replay_moments(plan) == []
    assert provoke_moments(plan) == []


def test_one_column_is_audited_too() -> None:
    case = case_for(od.calibrate(Moments(), Columns(1, bounds=(0, 9)), BUDGET, n=500))
    assert examine(case).passed
    assert case.replayed() == ()


# ── planted faults of the program ────────────────────────────────────────────────────────────────────────────────


def test_noise_of_another_size_is_caught() -> None:
    def less(total, problem, noise):
        class Less:
            def vector(self, sums, steps, size, each=None):
                return noise.vector(sums, steps, 0.9 * size, each)

            def triangle(self, sums, steps, size):
                return noise.triangle(sums, steps, 0.9 * size)

        return program.measure_all(total, problem, Less())

    found = replay_moments(planned(), program=less)
    assert [
        f"the {stage} got noise of another size than the plan's" for stage in ("sums", "moments", "fourth")
    ] == found


def test_squares_with_too_little_of_the_noise_are_caught(monkeypatch) -> None:
    monkeypatch.setattr(program, "SQUARE", 2.0)
    assert replay_moments(planned()) == ["squares got another share of the noise than the lemma allows"]


def altered(monkeypatch, name: str, block) -> None:
    """The program with a statistic of another kind: a class of its own, for compiled sums are kept by class."""
    fault = type("Altered", (getattr(moment_sums, name),), {"block": block})
    monkeypatch.setattr(program, name, fault)


def test_a_forgotten_centre_is_caught(monkeypatch) -> None:
    def block(self, X, y, weight, steps, mean, scale, radius):
        rows = (self.layout.rows(X) * scale) ** self.power
        return moment_sums.gram(moment_sums.cut(rows, radius).T * weight, steps)

    altered(monkeypatch, "StandardMoments", block)
    assert "the moments is not the sum that the plan declares" in replay_moments(planned())


def test_a_radius_that_is_not_enforced_is_caught_by_provoking_the_program(monkeypatch) -> None:
    def block(self, X, y, weight, steps, mean, scale, radius):
        rows = ((self.layout.rows(X) - mean) * scale) ** self.power
        return moment_sums.gram(rows.T * weight, steps)

    altered(monkeypatch, "StandardMoments", block)
    found = provoke_moments(planned())
    assert "a record moves the moments further than their noise hides" in found
    assert "a record moves the fourth further than their noise hides" in found


def test_rows_outside_their_box_are_caught(monkeypatch) -> None:
    honest = moment_sums.PowerSums.block
    altered(monkeypatch, "PowerSums", lambda self, *given: 2 * honest(self, *given))
    assert "a record moves the sums further than their noise hides" in provoke_moments(planned())


def test_a_stage_left_out_is_caught() -> None:
    def without(total, problem, noise):
        numbers = {**problem.numbers, "fourth_noise": 0.0}
        return program.measure_all(total, type(problem)(problem.n, problem.columns, numbers, problem.pure), noise)

    assert replay_moments(planned(), program=without) == ["other stages ran than the plan's"]


@pytest.mark.slow
def test_draws_of_the_library_do_not_tell_neighbours_apart_better_than_promised() -> None:
    """A black-box attack on what leaves: the best linear statistic of the sums on opposite records."""
    plan = od.calibrate(Moments(pure=False), Columns(2, bounds=(-1, 1)), od.GaussianDP(2.0), n=20)
    generator = np.random.default_rng(4)
    others = generator.uniform(-1, 1, (19, 2))
    problem = plan.mechanism.problem(plan)

    def means(record, rounds=2000):
        target = plan.target(plan.model.summarise(np.vstack([others, record])))
        noise = program.Noise(generator, pure=False)
        return np.array([program.measure_all(target.records.sum, problem, noise)["mean"].sum() for _ in range(rounds)])

    one, two = means([1.0, 1.0]), means([-1.0, -1.0])
    shift = (one.mean() - two.mean()) / np.sqrt((one.var() + two.var()) / 2.0)
    spent = math.sqrt(0.45) * 2.0  # the share of means and squares
    assert shift == pytest.approx(spent, abs=0.12)
