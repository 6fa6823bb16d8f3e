"""What clipped gradients promise: the composition of every noised sum, worked out again; less noise is refused or caught (mechanism.py, sizes.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import onedraw as od
from onedraw.errors import CertificateRejected, InvalidModel, OnedrawError, PromiseRefused, UnsupportedBudget
from onedraw.methods import calibrate, plan_from_dict
from onedraw.methods.clipped_gradients import ClippedGradients, mechanism
from onedraw.methods.clipped_gradients.mechanism import promise_of
from onedraw.methods.clipped_gradients.run import ClippedSteps
from onedraw.methods.clipped_gradients.sizes import (
    ADDED,
    MIN_LEVEL_SHARE,
    ClippedNumbers,
    Setting,
    level_share,
    stages_of,
    temperature_share,
)
from onedraw.models import HuberRegression, Logistic
from onedraw.models.moments.measured import Layout
from onedraw.plans import Plan

from .cases import BUDGET, KINDS, model_of, plan_of, run, table_of

LEVEL = {"label": 1.0, "classes": math.sqrt(2.0), "count": 1.0, "number": 2.0}


def ratios(plan: Plan, kind: str) -> dict[str, tuple[float, int]]:
    """Work out sensitivity over noise of each part, and how often it is published, from the table of proof.md."""
    numbers, features = plan.parameters, plan.model.features
    k = plan.request.records_per_person
    categories = plan.mechanism.categories  # type: ignore[attr-defined]
    free = features.count - sum(stop - start for start, stop in categories)
    ball = features.data_norm is not None
    steps = int(numbers["steps"])
    moved = {
        "level": (LEVEL[kind], 1),
        "square": (1.0, 1),
        "center": (2.0 * numbers["center_bound"], 1),
        "mean": (2.0 if ball else math.sqrt(4.0 * free + 2.0 * len(categories)), 1),
        "spread": (2.0 if ball else math.sqrt(free), 1),
        "slope": (2.0 * numbers["slope_bound"], steps),
        "intercept": (2.0 * numbers["intercept_bound"], steps),
        "temperature": (math.sqrt(8.0) * numbers["temperature_bound"], 1),
    }
    return {
        name: (k * sensitivity / numbers[f"{name}_noise"], times)
        for name, (sensitivity, times) in moved.items()
        if numbers[f"{name}_noise"]
    }


def composed(plan: Plan, kind: str) -> float:
    """Return μ of all parts, in plain arithmetic."""
    return math.sqrt(sum(times * ratio**2 for ratio, times in ratios(plan, kind).values()))


def is_right(plan: Plan, kind: str) -> bool:
    """Return whether the stated μ is that of the parts, never below it, each with 2⁻⁴⁰ for discrete noise."""
    mu, margin = plan.guarantee.promise.gaussian_mu, 2.0**-40 * (2 * plan.parameters["steps"] + 6)
    return composed(plan, kind) <= mu * (1.0 + 1e-14) and mu <= composed(plan, kind) * (1.0 + 1e-9) + margin


PLANS: dict[str, dict[str, Any]] = {
    **{kind: {"kind": kind} for kind in KINDS},
    "rows with a norm": {"kind": "classes", "norm": 3.0, "categories": ()},
    "no category": {"kind": "number", "categories": ()},
    "categories alone": {"kind": "label", "categories": ((0, 2), (2, 5))},
    "no scales": {"kind": "label", "n": 60},
    "four records": {"kind": "count", "records": 4, "n": 20_000},
    "many classes": {"kind": "classes", "classes": 60, "n": 10**5},
    "nearly 2^31 records": {"kind": "label", "n": 2**31 - 1},
    "a tiny budget": {"kind": "number", "budget": od.ApproxDP(1e-3, 1e-9)},
    "a huge budget": {"kind": "label", "budget": od.ApproxDP(1e6, 1e-6), "n": 400},
}


@pytest.mark.parametrize("name", PLANS)
def test_promise_is_the_composition_of_its_parts(name: str) -> None:
    plan = plan_of(**PLANS[name])
    assert is_right(plan, PLANS[name]["kind"])
    assert plan.guarantee.promise.implies(plan.budget)
    assert plan_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize("kind", KINDS)
def test_first_plans_keep_their_digests_and_their_rule(kind: str) -> None:
    """They state none of the numbers that were added: intercepts are those of the steps at every temperature."""
    stated = plan_of(kind).to_dict()
    stated["parameters"] = {name: value for name, value in stated["parameters"].items() if name not in ADDED}
    numbers = ClippedNumbers.from_dict(stated["parameters"], "it")
    assert all(getattr(numbers, name) == 0.0 for name in ADDED)
    first = ClippedGradients(categories=((2, 5),)).plan(plan_of(kind).request, stated["parameters"])
    assert set(first.parameters) == set(stated["parameters"])
    assert plan_from_dict(first.to_dict()) == first
    result = run(first, table_of(kind))
    assert set(result.published.to_dict()) == set(first.mechanism.stage_sizes(first))
    assert result.line.level == pytest.approx(result.published.intercepts)
    assert not result.line.shift.any()


@pytest.mark.parametrize(("n", "share"), [(200, 0.1), (10**5, 0.05)])
def test_level_and_temperature_are_paid_as_slopes_are_many(n: int, share: float) -> None:
    few, many = (Setting(Layout(d), "classes", 3, math.sqrt(2.0), n, 1) for d in (4, 64))
    assert level_share(few, 0.2) >= level_share(many, 0.2) >= MIN_LEVEL_SHARE
    assert level_share(many, 0.2) == pytest.approx(1.0 / 9.0 if n == 200 else 0.05)
    assert temperature_share(few) > temperature_share(many) >= 0.05
    assert level_share(few, 0.2) >= share


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["square", "center"])
def test_parts_of_one_number_are_refused_where_there_would_be_several(kind: str, part: str) -> None:
    """A stated square of classes would move by √2 and not by 1, and K scores farther than one."""
    plan = plan_of(kind)
    stated = {**plan.parameters, f"{part}_noise": 1e6} | ({"center_bound": 2.0} if part == "center" else {})
    if (kind, part) in (("count", "square"), ("label", "center")):
        assert plan.mechanism.plan(plan.request, stated).guarantee.promise.gaussian_mu > 0.0
    else:
        with pytest.raises(PromiseRefused, match="nothing else"):
            plan.mechanism.plan(plan.request, stated)


def test_scales_are_left_out_where_they_would_drown() -> None:
    numbers = plan_of("label", 60).parameters
    assert numbers["mean_noise"] == numbers["spread_noise"] == 0.0
    assert set(plan_of("label", 60).mechanism.stage_sizes(plan_of("label", 60))) == {
        "level", "slopes", "intercepts", "center", "temperature",
    }  # fmt: skip
    assert plan_of("label").parameters["spread_noise"] > 0.0


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
def test_promise_agrees_with_dp_accounting(kind: str) -> None:
    """Rényi: exactly μ²/2 a unit of order. Privacy-loss distributions: ε to a thousandth."""
    plan = plan_of(kind)
    event = ComposedDpEvent(
        [SelfComposedDpEvent(GaussianDpEvent(1.0 / ratio), times) for ratio, times in ratios(plan, kind).values()]
    )
    promise = plan.guarantee.promise
    rdp = RdpAccountant([2.0, 8.0]).compose(event)
    for order, divergence in zip((2.0, 8.0), rdp._rdp, strict=True):
        assert divergence == pytest.approx(order * promise.gaussian_mu**2 / 2.0, rel=1e-9)
    if kind == "label":
        pld = PLDAccountant(value_discretization_interval=1e-3).compose(event)
        assert pld.get_epsilon(1e-6) == pytest.approx(promise.epsilon(1e-6), rel=2e-3)


@pytest.mark.parametrize("budget", [BUDGET, od.GaussianDP(0.5), od.ZCDP(0.1), od.RenyiDP.at(8.0, 1.0)], ids=str)
def test_budgets_are_kept_and_nearly_used_up(budget: Any) -> None:
    plan = plan_of("classes", 5000, budget)
    stronger = ClippedNumbers(
        **{name: value / (1.01 if name.endswith("noise") else 1.0) for name, value in plan.parameters.items()}
    )
    setting = plan.mechanism.problem_setting(plan.request)  # type: ignore[attr-defined]
    assert plan.guarantee.promise.implies(budget)
    assert not promise_of(setting, stronger).implies(budget)


def test_records_of_a_person_are_paid_for() -> None:
    several = plan_of("label", 5000, records=3)
    assert several.guarantee.unit.records_per_person == 3
    assert is_right(several, "label")


def test_passes_and_stages_are_as_many() -> None:
    """Sums with noise are those of the promise, the codes are read in one pass more, and a step's two sums in one."""
    plan = plan_of("classes")
    setting = plan.mechanism.problem_setting(plan.request)  # type: ignore[attr-defined]
    numbers = ClippedNumbers.from_dict(plan.parameters, "it")
    assert len(stages_of(setting, numbers)) == ClippedSteps().passes(plan) - 1 + numbers.count
    assert ClippedSteps().padding(plan).passes == ClippedSteps().passes(plan)


# Refusals


@pytest.mark.parametrize(
    ("request_", "error", "remedy"),
    [
        ({"budget": od.PureDP(1.0)}, UnsupportedBudget, "budget with a δ"),
        ({"draws": 2}, UnsupportedBudget, "Leave out draws"),
        ({"n": 2**31}, PromiseRefused, r"fewer than 2,147,483,648"),
        ({"budget": od.GaussianDP(1e-9)}, PromiseRefused, "larger budget"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_kept_is_refused_with_a_remedy(request_: dict, error: type, remedy: str) -> None:
    asked = {"budget": BUDGET, "n": 4000, **request_}
    with pytest.raises(error, match=remedy):
        calibrate(ClippedGradients(), model_of("number"), asked.pop("budget"), **asked)


ROWS: dict[str, Any] = {"features": 2, "bounds": (-1, 1), "prior": od.Gaussian(scale=1.0)}


@pytest.mark.parametrize(
    "model",
    [
        Logistic(**ROWS), Logistic(**ROWS, scaled=True, loss="exp-linear"), Logistic(**ROWS, scaled=True, intercept=False),
        HuberRegression(**ROWS, scaled=True, threshold=1.0),
    ],
    ids=["no scale", "another loss", "no intercept", "another model"],
)  # fmt: skip
def test_models_without_a_residual_level_or_scale_are_refused(model: Any) -> None:
    with pytest.raises((UnsupportedBudget, InvalidModel), match=r"Use|scaled=True|intercept=True"):
        calibrate(ClippedGradients(), model, BUDGET, n=4000)


def test_less_noise_or_longer_gradients_than_stated_are_refused() -> None:
    plan, refused = plan_of("label"), 0
    for name, value in plan.parameters.items():
        factors: tuple[float, ...] = (1.001, 0.0, -1.0, math.nan)
        if name.endswith("noise"):
            factors = (0.999, -1.0, math.nan, *((0.0,) if name not in ("mean_noise", "spread_noise") else ()))
        if not value:
            continue
        if name in ("time", "caution"):
            factors = (*((0.0,) if name == "time" else ()), -1.0, math.nan)  # no promise rests on what it is
        for factor in factors:
            stated = plan.to_dict()
            stated["parameters"] = {**stated["parameters"], name: factor * value}
            with pytest.raises((PromiseRefused, CertificateRejected)):
                plan_from_dict(stated)
            refused += 1
    assert refused >= 40


@pytest.mark.parametrize("steps", [0.5, 1.5, 1e9])
def test_steps_that_are_no_count_are_refused(steps: float) -> None:
    stated = plan_of("label").to_dict()
    stated["parameters"] = {**stated["parameters"], "steps": steps}
    with pytest.raises((PromiseRefused, CertificateRejected)):
        plan_from_dict(stated)


# Planted faults: each makes the stated promise another one than that of the parts


FAULTS = {
    "half the slopes' sensitivity": lambda stages: [
        one._replace(reach=one.reach / 2.0) if one.reach == 2.0 * one.unit and one.entries > 1 else one
        for one in stages
    ],
    "half the level's sensitivity": lambda stages: [stages[0]._replace(reach=stages[0].reach / 2.0), *stages[1:]],
    "half the temperature's sensitivity": lambda stages: [
        *stages[:-1],
        stages[-1]._replace(reach=stages[-1].reach / 2.0),
    ],
    "a forgotten step": lambda stages: [*stages[:5], *stages[7:]],
    "each step counted once": lambda stages: list(dict.fromkeys(stages)),
    "a forgotten level": lambda stages: stages[1:],
    "a forgotten temperature": lambda stages: stages[:-1],
}

ADDED_FAULTS = {
    "a forgotten square": ("count", 4000, lambda stages: [stages[0], *stages[2:]]),
    "half the square's sensitivity": ("count", 4000, lambda stages: [stages[0], stages[1]._replace(reach=0.5), *stages[2:]]),
    "a forgotten mean score": ("label", 60, lambda stages: [*stages[:-2], stages[-1]]),
    "half the mean score's sensitivity": (
        "label", 60, lambda stages: [*stages[:-2], stages[-2]._replace(reach=stages[-2].reach / 2.0), stages[-1]]
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_composition_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = plan_of("label").request
    monkeypatch.setattr(mechanism, "stages_of", lambda setting, numbers: FAULTS[fault](stages_of(setting, numbers)))
    assert not is_right(ClippedGradients(categories=((2, 5),)).calibrate(request), "label")


@pytest.mark.parametrize("fault", ADDED_FAULTS)
def test_a_wrong_composition_of_what_some_plans_measure_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, n, change = ADDED_FAULTS[fault]
    request = plan_of(kind, n).request
    monkeypatch.setattr(mechanism, "stages_of", lambda setting, numbers: change(stages_of(setting, numbers)))
    assert not is_right(ClippedGradients(categories=((2, 5),)).calibrate(request), kind)


def test_records_of_a_person_that_are_forgotten_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    request = plan_of("label", 8000, records=2).request
    true = mechanism.stage_ratios
    monkeypatch.setattr(mechanism, "stage_ratios", lambda stages, records, *, pure: true(stages, 1, pure=pure))
    assert not is_right(ClippedGradients(categories=((2, 5),)).calibrate(request), "label")


def test_no_public_option_breaks_a_plan() -> None:
    """Every combination is planned, derived again, or refused by an error of the package."""
    seen = set()
    for kind in KINDS:
        for n in (1, 50, 2**31 - 1):
            for budget in (od.ApproxDP(1e-3, 1e-12), od.ApproxDP(1e6, 0.4), od.ZCDP(1e-4)):
                for options in (
                    {"columns": 1, "categories": ((0, 1),)},
                    {"columns": 40, "norm": 1e9, "categories": ()},
                ):
                    try:
                        plan = plan_of(kind, n, budget, **options)
                    except OnedrawError as error:
                        seen.add(type(error))
                        continue
                    assert is_right(plan, kind)
                    assert np.isfinite(list(plan.parameters.values())).all()
    assert seen <= {PromiseRefused}
