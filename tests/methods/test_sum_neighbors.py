"""What a sampler of sums is given on two neighbors differs by at most the stated sensitivity, at extreme public numbers too (moments/run.py, fit/run.py)."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import onedraw as od
from onedraw import models
from onedraw.audit.cases.staged import Recorded
from onedraw.errors import InvalidModel, WrongCall
from onedraw.methods import Moments, PerturbedMode
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit.run import Stages as AveragedStages
from onedraw.methods.fit.sizes import StepNumbers
from onedraw.methods.fit.sizes import stages_of as averaged_stages
from onedraw.methods.moments.replay import provoke_moments
from onedraw.methods.perturbed_mode.mechanism import FitNumbers, stages_of
from onedraw.methods.perturbed_mode.run import Stages
from onedraw.samplers.noise import Noise

RANGES = [
    (0.0, 1.0), (-1e12, 1e12), (-1e-12, 1e-12), (1e12 - 1.0, 1e12 + 1.0), (1e15 - 1.0, 1e15 + 1.0), (-1e15, -1e15 + 0.5),
    (0.0, 1e280), (1e300, 1.1e300), (2.0**53, 2.0**53 + 3.0),
]  # fmt: skip
BUDGET = od.ApproxDP(1.0, 1e-6)


def records(lower, upper):
    """Records at the ends, beside them, between, far outside, and none at all."""
    middle = lower + (upper - lower) * np.array([0.1, 1 / 3, 0.5, 0.999])
    beside = [np.nextafter(end, away) for end in (lower, upper) for away in (-math.inf, math.inf)]
    return [lower, upper, *middle, *beside, -math.inf, math.inf, math.nan, 0.0, -1e308, 1e308, 5e-324]


def made(build):
    """The model, or None where its public numbers are refused."""
    try:
        return build()
    except (InvalidModel, WrongCall):
        return None


@pytest.mark.parametrize("show", ["mean", "sum", "variance"])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_number_table_sums_move_as_far_as_stated(show, law):
    kept = 0
    for lower, upper in RANGES:
        table = made(lambda ends=(lower, upper): models.NumberTable(*ends, show=show))
        if table is None:
            continue
        plan = od.calibrate(od.AddedNoise(law), table, od.PureDP(1.0) if law == "laplace" else BUDGET, n=1)
        sums = {plan.target(table.summarise([record])).sums for record in records(lower, upper)}
        for one, other in product(sums, sums):
            moved = [abs(a - b) for a, b in zip(one, other, strict=True)]
            assert _is_covered(moved, law, plan)
        kept += 1
    assert kept >= 7


def _is_covered(moved, law, plan):
    """Whether the noise gives these whole numbers the promise, in exact arithmetic."""
    numbers = plan.parameters
    finer, scale = Fraction(numbers["refinement"]), Fraction(numbers["scale"])
    if law == "laplace":
        return sum(moved) * finer / scale <= Fraction(numbers["epsilon"])
    return sum(step**2 for step in moved) * finer**2 / scale**2 <= Fraction(numbers["mu"]) ** 2


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("levels", [2, 1000])
def test_category_table_sums_move_as_far_as_stated(law, levels):
    table = models.CategoryTable(tuple(map(str, range(levels))))
    plan = od.calibrate(od.AddedNoise(law), table, od.PureDP(1.0) if law == "laplace" else BUDGET, n=1)
    codes = [0, levels - 1, levels, -1, 0.5, math.nan, math.inf, 2.0**53, 1e300]
    sums = {plan.target(table.summarise([code])).sums for code in codes}
    for one, other in product(sums, sums):
        assert _is_covered([abs(a - b) for a, b in zip(one, other, strict=True)], law, plan)


def test_quantile_places_stay_whole_and_within_the_range():
    """A rank moves by one at most if every record is one whole place; so does the count below any place."""
    kept = 0
    for lower, upper in RANGES:
        model = made(lambda ends=(lower, upper): models.ColumnQuantiles((0.5,), *ends))
        if model is None:
            continue
        steps = model.summarise([lower]).steps
        for record in records(lower, upper):
            below = model.summarise([record] * 3).below(np.array([0, steps // 2, steps, steps + 1]))
            assert set(below.tolist()) <= {0, 3}
            assert below[0] == 0
            assert below[-1] == 3
        kept += 1
    assert kept >= 5


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (1e15 - 1.0, 1e15 + 1.0), (-1e12, 1e12), (0.0, 1e-12)])
@pytest.mark.parametrize("pure", [True, False])
def test_moments_move_as_far_as_their_noise_hides(ends, pure):
    columns = models.Columns(2, bounds=ends)
    plan = od.calibrate(Moments(pure=pure), columns, BUDGET, n=50)
    assert provoke_moments(plan) == []


@pytest.mark.parametrize("ends", [(1e15 - 1.0, 1e15 + 1.0), (0.0, 1e-12)])
def test_fit_sums_move_as_far_as_their_stages_state(ends):
    """The mean of the columns, before anything was published: its distance is the stage's reach, to the last steps."""
    model = models.Logistic(2, bounds=ends, scaled=True, prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(PerturbedMode(), model, od.ApproxDP(4.0, 1e-6), n=3000)
    mechanism, problem = plan.mechanism, plan.mechanism.problem(plan)
    stages = stages_of(mechanism.setting(plan.request), FitNumbers.from_dict(plan.parameters, "it"))
    tables = ([[end, end]] for end in (*ends, math.nan, 1e308, -1e308))
    summaries = [model.summarise((rows * 3000, [0] * 3000)) for rows in tables]
    seen = []
    for summary in summaries:
        recorded = Recorded(Noise(od.samplers.seeded_generator(1), pure=False))
        Stages(mechanism.target(plan, summary), recorded).run()
        seen.append(recorded.sums[0][0] / problem.n)
    assert max(np.linalg.norm(one - other) for one, other in product(seen, seen)) <= stages[0].reach * (1 + 2.0**-40)


@pytest.mark.parametrize("ends", RANGES[:5])
@pytest.mark.parametrize("kind", [models.OrdinaryLeastSquares, models.Quantile])
def test_averaged_steps_move_their_mean_as_far_as_stated(kind, ends):
    """The columns and the response, before anything was published, with responses as far out as floats go."""
    rows = {"bounds": ends, "scaled": True, "prior": od.Gaussian(scale=1.0)}
    model = made(lambda: kind(2, **rows, response_bound=1e-12))
    assert model is not None
    plan = od.calibrate(AveragedSteps(), model, od.ApproxDP(4.0, 1e-6), n=3000)
    mechanism, problem = plan.mechanism, plan.mechanism.problem(plan)
    reach = averaged_stages(mechanism.setting(plan.request), StepNumbers.from_dict(plan.parameters, "it"))[0].reach
    seen = []
    for end, response in product((*ends, math.nan, 1e308, -1e308), (-1e-12, 1e308, math.nan)):
        recorded = Recorded(Noise(od.samplers.seeded_generator(1), pure=False))
        summary = model.summarise(([[end, end]] * 3000, [response] * 3000))
        AveragedStages(mechanism.target(plan, summary), recorded).run()
        seen.append(recorded.sums[0][0] / problem.n)
    assert max(np.linalg.norm(one - other) for one, other in product(seen, seen)) <= reach * (1 + 2.0**-40)
