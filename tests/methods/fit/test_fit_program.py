"""The program of averaged steps on neighboring tables, on odd records, and beside an oracle in plain NumPy (run.py)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import onedraw as od
from onedraw.data import sums as data_sums
from onedraw.methods import calibrate
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit import run as running
from onedraw.methods.fit.coordinates import centre_of
from onedraw.methods.fit.replay import replay_steps
from onedraw.methods.fit.run import FitBySteps, Stages
from onedraw.methods.fit.sizes import stages_of
from onedraw.plans import Plan
from onedraw.samplers import seeded_generator

from .cases import CLASSES, KINDS, LABELS, MORE, model_of, plan_of, run, table_of
from .plain import Deviates, Plain

N = 8000

SCARCE = od.ApproxDP(2.0, 1e-6)
"""Under which 400 records have the response's mean measured alone."""


@dataclass
class Answers:
    """A noise that records whole sums, and answers what it answered before, so that two tables share all public numbers."""

    source: Any
    given: list[np.ndarray] = field(default_factory=list)
    sums: list[list[int]] = field(default_factory=list)

    def _answer(self, sums: Any, make: Any) -> np.ndarray:
        self.sums.append([int(value) for value in sums])
        if len(self.given) < len(self.sums):
            self.given.append(np.asarray(make()))
        return self.given[len(self.sums) - 1]

    def vector(self, sums: Any, steps: float, noise: float, each: Any = None) -> np.ndarray:
        return self._answer(sums, lambda: self.source.vector(sums, steps, noise))

    def triangle(self, sums: Any, steps: float, noise: float) -> np.ndarray:
        return self._answer(sums, lambda: self.source.triangle(sums, steps, noise))


def sums_of(plan: Plan, tables: Any, seed: int = 4) -> tuple[list[list[list[int]]], list[np.ndarray]]:
    """Return every whole sum of each table, all of them at the coordinates and coefficients of the first, and the answers."""
    answers = Answers(Deviates(seed))
    found = []
    for table in tables:
        answers.sums = []
        Stages(plan.target(plan.model.summarise(table)), answers).run()
        found.append(answers.sums)
    return found, answers.given


def distance(first: list[int], second: list[int], squares: bool) -> float:
    """Return how far two whole sums are apart."""
    moved = [a - b for a, b in zip(first, second, strict=True)]
    size = (math.isqrt(8 * len(moved) + 1) - 1) // 2
    double = [1 if not squares or i == j else 2 for i, j in zip(*np.tril_indices(size), strict=True)] if squares else [1] * len(moved)  # fmt: skip
    return math.sqrt(sum(times * value**2 for times, value in zip(double, moved, strict=True)))


def departures(plan: Plan, tables: Any) -> list[float]:
    """Return each sum's change between two tables as a share of what the promise allows a person's records."""
    setting, problem = plan.mechanism.setting(plan.request), plan.mechanism.problem(plan)  # type: ignore[attr-defined]
    names = names_of(plan)
    (first, second), answers = sums_of(plan, tables)
    counts = [float(answer[0]) for name, answer in zip(names, answers, strict=True) if name == "tail"]
    numbers = problem.with_bound(np.array(counts) if counts else None).sizes
    one = running.vector_steps(1.0, problem.n)
    lattice = {
        "level": 2.0**30, "mean": 2.0**30, "tail": one, "count": one,
        "early": running.vector_steps(numbers.early_bound, problem.n),
        "step": running.vector_steps(numbers.step_bound, problem.n),
    }  # fmt: skip
    radii = {"moments": "moment_radius", **{name: f"{name}_radius" for name in ("design", "information", "covariance")}}
    lattice |= {
        name: running.gram_steps(getattr(numbers, radius) ** 2, problem.n) ** 2 for name, radius in radii.items()
    }
    found = []
    for name, stage, one, other in zip(names, stages_of(setting, numbers), first, second, strict=True):
        allowed = Fraction(setting.records) * Fraction(stage.reach) * Fraction(lattice[name])
        found.append(distance(one, other, name in radii) / float(allowed))
    return found


def parts_of(plan: Plan) -> list[tuple[str, int]]:
    times = {"tail": 3, "early": 12, "step": 30}
    order = ("level", "mean", "moments", "design", "tail", "early", "step", "count", "information", "covariance")
    return [(name, times.get(name, 1)) for name in order if plan.parameters[f"{name}_noise"]]


def names_of(plan: Plan) -> list[str]:
    return [name for name, times in parts_of(plan) for _ in range(times)]


def ends(kind: str, side: int) -> Any:
    """Return a response at one end of what is declared."""
    if kind == "classes":
        return CLASSES[0 if side > 0 else -1]
    if kind.endswith("count"):
        return 8.0 * (side > 0)
    return int(side > 0) if kind in LABELS else 4.0 * side


# Neighbors


@pytest.mark.parametrize(
    ("kind", "records"), [*((kind, records) for kind in KINDS for records in (1, 2, 4)), *((kind, 2) for kind in MORE)]
)
def test_neighbors_move_every_sum_within_its_sensitivity(kind: str, records: int) -> None:
    plan = plan_of(kind, N, od.ApproxDP(2.0, 1e-5), records=records)
    X, y = table_of(kind, N)
    tables = []
    for side in (1, -1):
        rows, responses = X.copy(), y.copy()
        rows[:records], responses[:records] = side, ends(kind, side)
        tables.append((rows, responses))
    found = departures(plan, tables)
    assert max(found) <= 1.0 + 1e-12
    assert found[0] > 0.9  # opposite corners are as far apart as the mean allows
    rows = "moments", "design", "early", "step"
    assert kind != "classes" or found[0] == pytest.approx(1.0, abs=1e-6), "the class shares move by √2"
    assert min(moved for moved, name in zip(found, names_of(plan), strict=True) if name in rows) > 0.0


ODD = [
    ([math.nan, 0.2], math.nan), ([math.inf, -math.inf], math.inf), ([1e308, -1e308], -1e308), ([None, "abc"], None),
    ([10**400, 5e-324], 10**400), (["", "1e999"], "x"),
]  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_odd_records_change_nobody_else_s_share(kind: str) -> None:
    plan = plan_of(kind, N, od.ApproxDP(2.0, 1e-5))
    X, y = table_of(kind, N)
    for row, response in ODD:
        rows, responses = X.astype(object), y.astype(object)
        rows[7] = row
        responses[7] = response if kind not in LABELS else y[7]
        assert max(departures(plan, [(X, y), (rows, responses)])) <= 1.0 + 1e-12


@pytest.mark.parametrize("bounds", [(1e15 - 1.0, 1e15 + 1.0), (0.0, 1e-12), (-1e12, 1e12)])
def test_neighbors_at_absurd_bounds_move_within_sensitivity(bounds: tuple[float, float]) -> None:
    plan = plan_of("number", N, od.ApproxDP(2.0, 1e-5), bounds=bounds, bound=1e-12)
    (X, y), (low, high) = table_of("number", N), bounds
    X, y = low + (X + 1.0) / 2.0 * (high - low), 1e-13 * y
    tables = [(np.vstack([[end, end], X[1:]]), np.append(side, y[1:])) for end, side in ((low, 1.0), (high, -1e300))]
    assert max(departures(plan, tables)) <= 1.0 + 1e-12


def test_records_that_enter_the_coordinates_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a scale of scores that follows from the records. Every sum then moves with one of them."""
    true = running.where_of
    plan = plan_of("number", N, od.ApproxDP(2.0, 1e-5))
    X, y = table_of("number", N)
    scales = iter([1.0, 0.5])

    def leaking(*public: Any) -> Any:
        return replace(true(*public), score_scale=next(scales))

    monkeypatch.setattr(running, "where_of", leaking)
    rows = X.copy()
    rows[0] = 1.0
    assert max(departures(plan, [(X, y), (rows, y)])) > 2.0


# What runs


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_program_does_what_its_plan_declares(kind: str, prior: bool) -> None:
    """On a table of its own size, beside sums in plain NumPy."""
    plan = plan_of(kind, N, od.ApproxDP(2.0, 1e-5), prior=prior)
    assert replay_steps(plan, [table_of(kind, N)]) == []


OPTIONS: dict[str, dict[str, Any]] = {
    "no intercept": {"intercept": False},
    "rows with a norm": {"norm": 2.0},
    "no intercept and a norm": {"intercept": False, "norm": 2.0},
    "four records a person": {"records": 4, "n": 12_000},
}


@pytest.mark.parametrize(
    ("kind", "option"),
    [*((kind, option) for kind in KINDS for option in OPTIONS), *((kind, "no intercept and a norm") for kind in MORE)],
)
def test_options_run_and_give_an_estimate(option: str, kind: str) -> None:
    options = {"n": N, "budget": od.ApproxDP(2.0, 1e-5), **OPTIONS[option]}
    plan = plan_of(kind, **options)
    result = run(plan, table_of(kind, plan.n))
    assert np.isfinite(result.estimate).all()
    outputs = len(CLASSES) if kind == "classes" else 1
    assert len(result.estimate) == outputs * (2 + plan.model.features.intercept)
    assert np.isfinite(result.standard_errors[result.given]).all()
    assert replay_steps(plan) == []


def test_categories_run_and_are_replayed() -> None:
    plan = calibrate(AveragedSteps(categories=((1, 3),)), model_of("number", columns=3), od.ApproxDP(2.0, 1e-5), n=N)
    rng = np.random.default_rng(2)
    level = rng.integers(0, 3, N)
    X = np.column_stack([rng.uniform(-1, 1, N), *(2.0 * (level == k) - 1.0 for k in (1, 2))])
    result = run(plan, (X, X[:, 0] + 0.5 * (level == 1) + 0.3 * rng.standard_normal(N)))
    assert replay_steps(plan) == []
    assert result.estimate[1] * 2.0 == pytest.approx(0.5, abs=5.0 * 2.0 * result.standard_errors[1])


TABLES = {
    "all rows equal": (np.full((N, 2), 0.5), np.tile([0.0, 1.0], N // 2)),
    "a column twice": (np.repeat(np.linspace(-1, 1, N)[:, None], 2, axis=1), np.tile([0.0, 1.0], N // 2)),
    "all responses equal": (np.random.default_rng(3).uniform(-1, 1, (N, 2)), np.ones(N)),
    "separable": (np.repeat(np.repeat([-1.0, 1.0], N // 2)[:, None], 2, axis=1), np.repeat([0.0, 1.0], N // 2)),
}


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_no_table_makes_a_fit_fail(kind: str) -> None:
    plan = plan_of(kind, N, od.ApproxDP(2.0, 1e-5))
    for X, y in TABLES.values():
        result = run(plan, (X, read_as(kind, y)))
        assert np.isfinite(result.estimate).all()
        assert np.isfinite(result.standard_errors[result.given]).all()
        assert result.limited >= 0.0


def read_as(kind: str, y: np.ndarray) -> np.ndarray:
    """Return responses 0 and 1 as a kind has them."""
    if kind == "classes":
        return np.array(CLASSES)[y.astype(int)]
    return y.astype(int) if kind in LABELS else y


# Passes


@pytest.mark.parametrize(("kind", "n"), [*((kind, N) for kind in (*KINDS, *MORE)), ("number", 400)])
def test_every_table_takes_the_same_passes(kind: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 400 records the response's mean is measured alone, for one more pass."""
    plan, passes = plan_of(kind, n, od.ApproxDP(2.0, 1e-5) if n == N else SCARCE), []
    assert (plan.parameters["level_noise"] > 0.0) == (n == 400 or kind == "classes")
    true = data_sums.Blocks.sum
    monkeypatch.setattr(data_sums.Blocks, "sum", lambda *asked: passes.append(1) or true(*asked))
    for table in (table_of(kind, N), TABLES["separable"], TABLES["all rows equal"]):
        passes.clear()
        X, y = (part[:n] for part in table)
        run(plan, (X, y if y.dtype.kind == "U" else read_as(kind, y)))
        assert len(passes) == FitBySteps().passes(plan)


def test_padded_timing_equals_unpadded() -> None:
    plan, sampler = plan_of("number", N, od.ApproxDP(2.0, 1e-5)), FitBySteps()
    target = plan.target(plan.model.summarise(table_of("number", N)))
    plain = sampler.run(target, seeded_generator(3))
    padded = sampler.run_padded(target, seeded_generator(3), sampler.padding(plan))
    assert np.array_equal(padded.draws, plain.draws)
    assert padded.stages == plain.stages
    assert sampler.padding(plan).passes == sampler.passes(plan)
    assert sampler.padding(plan).gamma == 0.0


# The oracle


def responses_of(kind: str, y: np.ndarray) -> np.ndarray:
    """Return responses in [−1, 1]."""
    if kind == "label":
        return 2.0 * y - 1.0
    return np.clip(y, 0, 8) / 4.0 - 1.0 if kind == "count" else np.clip(y, -4, 4) / 4.0


@pytest.mark.oracle
@pytest.mark.parametrize("epsilon", [0.7, 4.0])
@pytest.mark.parametrize("kind", KINDS)
def test_fit_agrees_with_plain_numpy(kind: str, epsilon: float) -> None:
    """The same noises in the same order: estimates within a thousandth of a standard error.

    Of a quantile within five: the score of a record that rounding carries over the quantile is another one.
    """
    plan = plan_of(kind, N, od.ApproxDP(epsilon, 1e-6), level=0.3)
    X, y = table_of(kind, N)
    result = run(plan, (X, y), noise=Deviates(11))
    plain = Plain(kind, X, responses_of(kind, y), plan.parameters, level=0.3, largest=8, bound=4.0).fit(Deviates(11))
    sampling, privacy = (np.sqrt(np.diag(part)) for part in result.parts)
    error = np.sqrt(plain.sampling**2 + plain.privacy**2)
    assert np.abs(result.estimate - plain.estimate).max() <= (5e-3 if kind == "quantile" else 1e-3) * error.min()
    assert sampling == pytest.approx(plain.sampling, rel=1e-3)
    assert privacy == pytest.approx(plain.privacy, rel=1e-2 if kind == "quantile" else 1e-3)


# The response's mean alone


@pytest.mark.parametrize("kind", ["number", "label", "quantile"])
def test_level_is_measured_alone_where_the_mean_would_drown(kind: str) -> None:
    plan = plan_of(kind, 400, SCARCE)
    assert plan.parameters["level_noise"] > 0.0 == plan.parameters["mean_noise"]
    assert plan.parameters["level_noise"] / 400 <= 0.1 * (1.0 + 1e-9)
    assert replay_steps(plan, [table_of(kind, 400)]) == []
    X, y = table_of(kind, 400)
    ends_of = [(X, np.append(ends(kind, side), y[1:])) for side in (1, -1)]
    moved = departures(plan, ends_of)
    assert moved[0] == pytest.approx(1.0, abs=1e-6)
    assert max(moved) <= 1.0 + 1e-12
    plain = Plain(kind, X, responses_of(kind, y), plan.parameters, level=0.3, largest=8, bound=4.0)
    plan = plan_of(kind, 400, SCARCE, level=0.3)
    fitted = plain.fit(Deviates(11)).estimate
    found = run(plan, (X, y), noise=Deviates(11))
    assert np.abs(found.estimate - fitted).max() <= 0.02 * np.abs(fitted).max()


@pytest.mark.parametrize("kind", ["number", "quantile"])
def test_lines_about_the_middle_of_the_ranges_have_no_intervals(kind: str) -> None:
    """The plan says from how many records on they would: there the mean is measured."""
    plan = plan_of(kind, 400, SCARCE)
    shortage = plan.mechanism.problem(plan).shortage  # type: ignore[attr-defined]
    assert shortage > 1.0
    assert not run(plan, table_of(kind, 400)).given.any()
    enough = plan_of(kind, math.ceil(1.05 * shortage * 400), SCARCE)
    assert enough.parameters["mean_noise"] > 0.0
    assert plan_of(kind, math.floor(0.9 * shortage * 400), SCARCE).parameters["mean_noise"] == 0.0


def test_level_is_cut_to_where_means_can_be() -> None:
    problem = plan_of("number", 400, SCARCE).mechanism.problem(plan_of("number", 400, SCARCE))
    assert [centre_of(problem, None, np.array([level]))[-1] for level in (-1.7, 0.4, 1.7)] == [-1.0, 0.4, 1.0]


def test_response_far_from_the_middle_of_its_range_is_no_scatter() -> None:
    """Its unit stays near the residuals' deviation, 0.05 of a half-range, and the noise of the level, not near its distance, 0.8."""
    plan, (X, _) = plan_of("number", 400, SCARCE), table_of("number", 400)
    rng = np.random.default_rng(4)
    y = 3.2 + 0.2 * X[:, 0] + 0.2 * rng.standard_normal(400)
    units = [run(plan, (X, y), seed).where.unit for seed in range(5)]
    assert max(units) < 0.4
    without = {**plan.parameters, "level_noise": 0.0}
    blind = plan.mechanism.plan(plan.request, without)
    assert min(run(blind, (X, y), seed).where.unit for seed in range(5)) > 0.5
