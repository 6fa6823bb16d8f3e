"""What double precision leaves of a certified gradient, for modes however far away (privacy/perturbed_mode.md §3)."""

from dataclasses import replace

import numpy as np
import pytest

import onedraw as od
from onedraw.errors import PromiseRefused
from onedraw.methods import PerturbedMode
from onedraw.methods.perturbed_mode.run import Stages
from onedraw.models import Logistic
from onedraw.models.fit.problem import Published, coordinates
from onedraw.models.fit.sums import NewtonSums
from onedraw.samplers.noise import Noise
from onedraw.samplers.randomness import seeded_generator

N, MODEL = 400, Logistic(6, bounds=(-1, 1), scaled=True, prior=od.Gaussian(scale=1.0))


def planned(n=N):
    return od.calibrate(PerturbedMode(), MODEL, od.PureDP(1.0), n=n)


def target_of(plan, seed=1):
    source = np.random.default_rng(seed)
    rows = source.uniform(-1.0, 1.0, (plan.n, 6))
    summary = MODEL.summarise((rows, (rows[:, 0] > 0).astype(int)))
    return plan.mechanism.target(plan, summary)


@pytest.mark.finding("mathematics M9", commit="8a7c0fb")
def test_mode_beyond_what_can_be_certified_is_cut_to_a_public_ball():
    """At norm 10⁹ rounding is more than the whole tolerance, so the closing noise would not cover it."""
    plan = planned()
    stages = Stages(target_of(plan), Noise(seeded_generator(1), pure=True))
    stages.minimum = lambda records, loss, objective: (np.full(len(objective.q), 1e9), 1)
    numbers, problem = plan.parameters, plan.mechanism.problem(plan)
    curvature = plan.n * problem.loss.curvature_bound * numbers["row_bound"] ** 2
    largest = numbers["tolerance"] / (5.0 * 12.0 * 2.0**-53 * curvature)
    assert np.linalg.norm(stages.run().mode) < largest + 1e3 * numbers["closing_noise"]


def test_gradient_within_reach_is_off_by_less_than_its_share_of_the_tolerance():
    """Against 64 bits of precision, at random modes of norm R: what is found is far below t/4 + t/5."""
    plan = planned()
    target, numbers = target_of(plan), plan.parameters
    stages = Stages(target, Noise(seeded_generator(1), pure=True))
    where = coordinates(target.problem, Published(np.zeros(0), None, None))
    records, objective = target.measured(where), stages._objective(where, np.zeros(target.problem.size))
    z, a, y = (np.concatenate(parts, axis=-1) for parts in zip(*(block.arrays for block in records), strict=True))
    z, a, y = z[:, : plan.n], a[: plan.n], y[: plan.n]
    for seed in range(5):
        direction = np.random.default_rng(seed).standard_normal(len(objective.q))
        theta = direction * (min(objective.reach, 1e6) / np.linalg.norm(direction))
        summed = records.sum(NewtonSums(target.problem.loss), objective.coarse, objective.row_bound, theta)
        gradient = summed[: len(theta)] / 2.0**20 + summed[len(theta) : 2 * len(theta)] / 2.0**50
        u = (theta.astype(np.longdouble)[:, None] * z.astype(np.longdouble)).sum(axis=0)
        slopes = np.asarray(target.problem.loss.kernel.slope(u.astype(np.float64), y), dtype=np.longdouble)
        exact = (z.astype(np.longdouble) * (a * slopes)).sum(axis=1)
        assert np.linalg.norm((gradient - exact).astype(np.float64)) < 0.45 * numbers["tolerance"]


def test_ordinary_modes_are_well_within_reach():
    for n in (200, 10**5, 10**9):
        plan = planned(n)
        problem = plan.mechanism.problem(plan)
        curvature = n * problem.loss.curvature_bound * plan.parameters["row_bound"] ** 2
        assert plan.parameters["tolerance"] / (5.0 * 12.0 * 2.0**-53 * curvature) > 15.0


def test_search_far_beyond_reach_still_ends():
    """Rounding there is more than the tolerance; a search that insisted on it would never end."""
    plan = planned()
    target = target_of(plan)
    stages = Stages(target, Noise(seeded_generator(1), pure=True))
    where = coordinates(target.problem, Published(np.zeros(0), None, None))
    far = 1e12 * stages._objective(where, np.zeros(target.problem.size)).least
    objective = stages._objective(where, np.full(target.problem.size, far))
    found, passes = stages.minimum(target.measured(where), target.problem.loss, objective)
    assert np.linalg.norm(found) > objective.reach
    assert passes < 1000


@pytest.mark.parametrize("name", ["tolerance", "ridge"])
def test_stated_numbers_that_cannot_be_certified_are_refused(name):
    plan = planned(10**6)
    numbers = dict(plan.parameters) | {name: plan.parameters[name] * 1e-12}
    with pytest.raises(PromiseRefused, match="certified"):
        plan.mechanism.plan(plan.request, numbers)
    assert replace(plan.mechanism).plan(plan.request, dict(plan.parameters)).parameters == plan.parameters
