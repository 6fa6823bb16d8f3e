"""What clipped gradients promise: the composition of every noised sum, worked out again; less noise is refused or caught."""

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
from onedraw.mechanisms import calibrate, plan_from_dict
from onedraw.methods.clipped_gradients import ClippedGradients, mechanism
from onedraw.methods.clipped_gradients.mechanism import promise_of
from onedraw.methods.clipped_gradients.run import ClippedSteps
from onedraw.methods.clipped_gradients.sizes import ClippedNumbers, stages_of
from onedraw.models import HuberRegression, Logistic
from onedraw.plans import Plan

from .cases import BUDGET, KINDS, model_of, plan_of

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


def test_scales_are_left_out_where_they_would_drown() -> None:
    numbers = plan_of("label", 60).parameters
    assert numbers["mean_noise"] == numbers["spread_noise"] == 0.0
    assert set(plan_of("label", 60).mechanism.stage_sizes(plan_of("label", 60))) == {
        "level", "slopes", "intercepts", "temperature",
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
        if name == "time":
            factors = (0.0, -1.0, math.nan)  # no promise rests on what it is
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
        one._replace(reach=one.reach / 2.0) if one.reach == 2.0 * one.unit and one.entries > 1 else one for one in stages
    ],
    "half the level's sensitivity": lambda stages: [stages[0]._replace(reach=stages[0].reach / 2.0), *stages[1:]],
    "half the temperature's sensitivity": lambda stages: [*stages[:-1], stages[-1]._replace(reach=stages[-1].reach / 2.0)],
    "a forgotten step": lambda stages: [*stages[:5], *stages[7:]],
    "each step counted once": lambda stages: list(dict.fromkeys(stages)),
    "a forgotten level": lambda stages: stages[1:],
    "a forgotten temperature": lambda stages: stages[:-1],
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_composition_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = plan_of("label").request
    monkeypatch.setattr(mechanism, "stages_of", lambda setting, numbers: FAULTS[fault](stages_of(setting, numbers)))
    assert not is_right(ClippedGradients(categories=((2, 5),)).calibrate(request), "label")


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
