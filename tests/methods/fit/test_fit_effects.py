"""Effects of interest: less noise along them, more along others, the same promise (effects.py)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import onedraw as od
from onedraw.errors import OnedrawError, WrongCall
from onedraw.methods import calibrate, plan_from_dict
from onedraw.methods.fit import AveragedSteps
from onedraw.methods.fit import run as running
from onedraw.methods.fit.audit import MODELS
from onedraw.methods.fit.effects import Stretch, shares_of, stretch_of
from onedraw.methods.fit.replay import replay_steps
from onedraw.methods.fit.run import Stages
from onedraw.methods.fit.sizes import LARGEST_LOSS, stretch_for
from onedraw.samplers.noise import Noise

from .cases import BUDGET, KINDS, model_of, run
from .plain import Deviates
from .test_fit_program import Answers

COLUMNS, N = 20, 20_000


def planned(kind: str = "number", effects: Any = (3,), *, columns: int = COLUMNS, n: int = N, **options: Any) -> Any:
    mechanism = AveragedSteps(effects=effects, **options)
    return calibrate(mechanism, model_of(kind, columns=columns), BUDGET, n=n)


def table(kind: str = "number", *, columns: int = COLUMNS, n: int = N, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Simulate records of which four columns matter."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, columns))
    u = X[:, :4] @ np.array([0.6, -0.4, 0.2, 0.5])
    if kind == "label":
        return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-u))).astype(int)
    return X, rng.poisson(np.exp(u)).astype(float) if kind == "count" else u + 0.5 * rng.standard_normal(n)


def privacy(result: Any) -> np.ndarray:
    return np.sqrt(np.diag(result.parts[1]))


# What it is for


@pytest.mark.parametrize("kind", KINDS)
def test_named_effect_has_half_the_noise_and_others_little_more(kind: str) -> None:
    data = table(kind)
    plain, named = (run(planned(kind, effects), data) for effects in ((), (3,)))
    ratio = privacy(named) / privacy(plain)
    assert ratio[3] < 0.6
    assert 0.95 < np.median(np.delete(ratio, 3)) < 1.4
    assert np.abs(named.estimate[3] - 0.5) < 5.0 * named.standard_errors[3]
    assert named.given[3]


def test_stated_noise_is_the_noise_of_the_program() -> None:
    """The same records each time, so that noise alone moves the estimate."""
    data, plan = table(columns=8), planned(columns=8)
    results = [run(plan, data, seed) for seed in range(25)]
    found = np.std([result.estimate for result in results], axis=0)
    stated = np.median([privacy(result) for result in results], axis=0)
    assert 0.65 < found[3] / stated[3] < 1.4
    assert 0.85 < np.median(np.delete(found / stated, 3)) < 1.15


def test_stretch_that_is_not_divided_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault, seen by the replay of the audit."""
    assert replay_steps(calibrate(AveragedSteps(effects=(0,)), MODELS["logistic"], BUDGET, n=10_000)) == []

    def forgetful(*given: Any) -> Stretch | None:
        stretch = stretch_of(*given)
        return None if stretch is None else Forgetful(stretch.matrix, stretch.inverse)

    class Forgetful(Stretch):
        def back(self, sums: np.ndarray) -> np.ndarray:
            return sums

    monkeypatch.setattr(running, "stretch_of", forgetful)
    plan = calibrate(AveragedSteps(effects=(0,)), MODELS["logistic"], BUDGET, n=10_000)
    assert any("not the sum" in departure for departure in replay_steps(plan))


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("hinge", "classes")])
@pytest.mark.parametrize("persons", [False, True])
def test_program_reads_what_the_proof_says(name: str, persons: bool) -> None:
    mechanism = AveragedSteps(effects=(1,), persons=persons)
    budget = od.ApproxDP(8.0, 1e-6)  # where counts choose the bound
    plan = calibrate(mechanism, MODELS[name], budget, n=20_000, records_per_person=2 if persons else 1)
    assert replay_steps(plan) == []


def test_stretch_is_made_of_published_numbers_alone() -> None:
    """Two tables with the same answers have the same stretch, though the second's own mean would allow hardly any."""
    plan, answers, seen = planned("label", (0,), columns=4, n=4000), Answers(Deviates(4)), []
    X, y = table("label", columns=4, n=4000)
    for column in (X[:, 0], np.full(len(X), 0.999)):
        answers.sums = []
        stages = Stages(plan.target(plan.model.summarise((np.column_stack([column, X[:, 1:]]), y))), answers)
        stages.run()
        seen.append(stages)
    first, second = (stages._stretch.matrix for stages in seen)
    assert (first == second).all()
    own = replace(seen[1]._where, mean=np.array([0.999, 0.0, 0.0, 0.0]))
    other = stretch_of(plan.mechanism.problem(plan), own)
    assert np.abs(other.matrix - second).max() > 0.1, "its own mean would be seen"


@pytest.mark.parametrize("persons", [False, True])
def test_classes_count_in_errors_as_they_count_in_steps(monkeypatch: pytest.MonkeyPatch, persons: bool) -> None:
    """The planted fault: information and covariance whose weights know nothing of the stretch."""
    mechanism = AveragedSteps(effects=(0,), persons=persons)
    plan = calibrate(mechanism, MODELS["logistic"], BUDGET, n=10_000, records_per_person=2 if persons else 1)
    rng = np.random.default_rng(6)
    X = np.clip(np.exp(1.5 * rng.standard_normal((400, 3))) / 10.0, 0.0, 2.0) - 1.0
    data = X, (rng.uniform(size=400) < 1.0 / (1.0 + np.exp(-X[:, 0]))).astype(int)
    assert replay_steps(plan, [data]) == []
    monkeypatch.setattr(Stages, "_matrix_of_stretch", None)
    found = replay_steps(plan, [data])
    assert "the information is not the sum that the plan declares" in found
    assert "the covariance is not the sum that the plan declares" in found


# The promise


@pytest.mark.parametrize("kind", KINDS)
def test_promise_and_numbers_are_those_without_effects(kind: str) -> None:
    plain, named = planned(kind, ()), planned(kind, (3, 0))
    assert named.parameters == plain.parameters
    assert named.guarantee.promise == plain.guarantee.promise
    assert "effects" not in plain.to_dict()["mechanism"], "older plans keep their digests"
    assert named.to_dict()["mechanism"]["effects"] == [0, 3]
    assert plan_from_dict(named.to_dict()) == named
    claims = [str(one) for one in named.guarantee.assumptions]
    assert any("stretched along the effects of interest" in claim for claim in claims)
    assert "the effects of interest" in claims[0], "they are fixed before the records are seen"


@pytest.mark.parametrize("effects", [(20,), (-1,), ("age",), "age", (1.5,), 3])
def test_places_that_are_no_columns_are_refused(effects: Any) -> None:
    with pytest.raises((WrongCall, OnedrawError), match="effects are places"):
        planned(effects=effects)


# How far rows are stretched


@pytest.mark.parametrize(("m", "p"), [(1, 2), (1, 20), (3, 20), (10, 20), (19, 20), (5, 300)])
def test_stretch_keeps_the_length_of_scores_and_bounds_the_loss(m: int, p: int) -> None:
    goal, loss = stretch_for(m / p)
    shares = shares_of(np.append(np.zeros(p - m), np.ones(m)), goal, loss)
    assert shares.sum() == pytest.approx(p)
    assert 1.0 / shares.min() <= LARGEST_LOSS + 1e-9
    if loss < LARGEST_LOSS:
        assert shares[-m:] == pytest.approx(np.full(m, (p / m) ** 0.6))
        assert shares[: p - m] == pytest.approx(np.full(p - m, 1.0 / loss))


def test_no_other_shares_give_effects_less_noise() -> None:
    """Σ λ/share is least among random shares with the same sum and the same bound."""
    rng = np.random.default_rng(1)
    values = np.array([0.0, 0.0, 0.1, 0.5, 1.4, 0.0, 0.0, 0.0])
    best = shares_of(values, 1e9, 1.6)
    for _ in range(2000):
        extra = rng.dirichlet(np.full(8, 0.3)) * 0.6 * 8
        other = (1.0 + extra) / 1.6
        assert (values / best).sum() <= (values / other).sum() + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_naming_all_columns_changes_nothing(kind: str) -> None:
    data = table(kind, columns=4, n=5000)
    plain, named = (run(planned(kind, effects, columns=4, n=5000), data) for effects in ((), range(4)))
    assert named.stretch is None
    assert (named.estimate == plain.estimate).all()
    assert (named.standard_errors == plain.standard_errors).all()


def test_effects_of_rare_values_are_stretched_less() -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (N, COLUMNS))
    for column, share in ((0, 0.5), (1, 0.05)):
        X[:, column] = np.where(rng.uniform(size=N) < share, 1.0, -1.0)
    y = (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-X[:, 0] - 0.4 * X[:, 1]))).astype(int)
    categories = ((0, 1), (1, 2))
    far = []
    for effect in (0, 1):
        plan = planned("label", (effect,), categories=categories)
        far.append(float(np.linalg.eigvalsh(run(plan, (X, y)).stretch.matrix).max()))
    assert far[1] < 0.8 * far[0]


def test_an_effect_whose_level_was_merged_stretches_nothing() -> None:
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.uniform(-1, 1, N), -np.ones(N), np.where(rng.uniform(size=N) < 0.5, 1.0, -1.0)])
    y = X[:, 0] + 0.5 * rng.standard_normal(N)
    plan = planned(effects=(1,), columns=3, categories=((1, 3),))
    result = run(plan, (X, y))
    assert result.where.merged[1]
    assert result.stretch is None
    both = run(planned(effects=(0, 1), columns=3, categories=((1, 3),)), (X, y))
    assert both.stretch is not None
    assert np.isfinite(both.estimate).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_odd_records_make_nothing_fail(kind: str, intercept: bool) -> None:
    n = 3000
    for X in (np.ones((n, 4)), np.zeros((n, 4)), np.tile([[1e300], [-1e300]], (n // 2, 4))):
        model = model_of(kind, columns=4, intercept=intercept)
        plan = calibrate(AveragedSteps(effects=(0, 2)), model, od.ApproxDP(2.0, 1e-6), n=n)
        y = np.arange(n) % 2
        published = Stages(
            plan.target(model.summarise((X, y if kind == "label" else y.astype(float)))),
            Noise(np.random.default_rng(1), pure=False),
        ).run()
        assert np.isfinite(plan.mechanism.result(plan, published.to_dict()).estimate).all()


def test_words_name_the_effects_and_the_price() -> None:
    plan = planned()
    note, name = plan.mechanism.effects_note(plan), plan.model.features.column_names[3]
    goal, loss = stretch_for(1 / 21)
    assert f"Effects of interest: {name}." in note
    assert f"{math.sqrt(loss / goal):.2g} times" in note
    assert f"{math.sqrt(loss):.3g} times" in note
    assert note in plan.mechanism.estimand_note(plan)
    assert plan.heading.endswith(f"with less noise along {name}")
    assert planned(effects=()).mechanism.effects_note(planned(effects=())) == ""
    every = planned(effects=range(3), columns=3)
    assert "as without naming them" in every.mechanism.effects_note(every)
