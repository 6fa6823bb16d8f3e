"""What averaged steps promise: the composition of every noised sum, worked out again; less noise is refused or caught (mechanism.py, sizes.py)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import onedraw as od
from onedraw.errors import CertificateRejected, InvalidModel, OnedrawError, PromiseRefused, UnsupportedBudget
from onedraw.methods import calibrate, plan_from_dict
from onedraw.methods.fit import AveragedSteps, mechanism, sizes
from onedraw.methods.fit.mechanism import promise_of
from onedraw.methods.fit.run import FitBySteps
from onedraw.methods.fit.sizes import Setting, StepNumbers, stages_of
from onedraw.models import HuberRegression, Logistic, Softmax
from onedraw.plans import Plan

from .cases import BUDGET, KINDS, MORE, model_of, plan_of

EARLY, FULL, COUNTS = 12, 30, 3


def ratios(plan: Plan) -> dict[str, tuple[float, int]]:
    """Work out sensitivity over noise of each part, and how often it is published, from the table of proof.md."""
    numbers, features = plan.parameters, plan.model.features
    k = plan.request.records_per_person
    categories = plan.mechanism.categories  # type: ignore[attr-defined]
    coded = sum(stop - start for start, stop in categories)
    classes = isinstance(plan.model, Softmax)
    box = 4.0 if features.data_norm is not None else 4.0 * (features.count - coded) + 2.0 * len(categories)
    moved = {
        "level": (math.sqrt(2.0) if classes else 2.0, 1),
        "mean": (math.sqrt(box if classes else box + 4.0), 1),
        "moments": (math.sqrt(2.0) * numbers["moment_radius"] ** 2, 1),
        "design": (math.sqrt(2.0) * numbers["design_radius"] ** 2, 1),
        "tail": (1.0, COUNTS),
        "early": (2.0 * numbers["early_bound"], EARLY),
        "step": (2.0 * numbers["step_bound"], FULL),
        "count": (1.0, 1),
        "information": (math.sqrt(2.0) * numbers["information_radius"] ** 2, 1),
        "covariance": (math.sqrt(2.0) * numbers["covariance_radius"] ** 2, 1),
    }
    return {
        name: (k * sensitivity / numbers[f"{name}_noise"], times)
        for name, (sensitivity, times) in moved.items()
        if numbers[f"{name}_noise"]
    }


def composed(plan: Plan) -> float:
    """Return μ of all parts, in plain arithmetic."""
    return math.sqrt(sum(times * ratio**2 for ratio, times in ratios(plan).values()))


def is_right(plan: Plan) -> bool:
    """Return whether the stated μ is that of the parts, never below it, each with 2⁻⁴⁰ for discrete noise."""
    mu, margin = plan.guarantee.promise.gaussian_mu, 2.0**-40 * (EARLY + FULL + COUNTS + 7)
    return composed(plan) <= mu <= composed(plan) * (1.0 + 1e-9) + margin


PLANS: dict[str, dict[str, Any]] = {
    **{kind: {"kind": kind} for kind in (*KINDS, *MORE)},
    "a prior": {"kind": "label", "prior": True},
    "classes without matrices": {"kind": "classes", "columns": 80, "n": 10**6},
    "no intercept": {"kind": "label", "intercept": False},
    "rows with a norm": {"kind": "number", "norm": 3.0},
    "level alone": {"kind": "number", "n": 400, "budget": od.ApproxDP(2.0, 1e-6)},
    "level alone of four records": {"kind": "quantile", "n": 1600, "budget": od.ApproxDP(2.0, 1e-6), "records": 4},
    "four records": {"kind": "count", "records": 4, "n": 20_000},
    "one column": {"kind": "quantile", "columns": 1, "level": 0.001},
    "many columns": {"kind": "number", "columns": 60, "n": 10**6},
    "nearly 2^31 records": {"kind": "label", "n": 2**31 - 1},
    "a tiny budget": {"kind": "number", "budget": od.ApproxDP(1e-3, 1e-9), "n": 10**7},
    "a huge budget": {"kind": "number", "budget": od.ApproxDP(1e6, 1e-6), "n": 400},
}


@pytest.mark.parametrize("name", PLANS)
def test_promise_is_the_composition_of_its_parts(name: str) -> None:
    plan = plan_of(**PLANS[name])
    assert is_right(plan)
    assert plan.guarantee.promise.implies(plan.budget)
    assert plan_from_dict(plan.to_dict()) == plan
    assert (plan.parameters["level_noise"] > 0.0) == name.startswith(("level alone", "classes"))
    assert (plan.parameters["covariance_noise"] == 0.0) == (name == "classes without matrices")
    level, times = ratios(plan).get("level", (0.0, 0))
    assert times * level**2 <= 0.2 * (1.0 + 1e-9) * composed(plan) ** 2, "no more than its largest share"


def test_plans_of_categories_count_their_diameter() -> None:
    plan = calibrate(AveragedSteps(categories=((1, 4),)), model_of("label", columns=4), BUDGET, n=5000)
    assert is_right(plan)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
def test_promise_agrees_with_dp_accounting(kind: str) -> None:
    """Rényi: exactly μ²/2 a unit of order. Privacy-loss distributions: ε to a thousandth."""
    plan = plan_of(kind)
    event = ComposedDpEvent(
        [SelfComposedDpEvent(GaussianDpEvent(1.0 / ratio), times) for ratio, times in ratios(plan).values()]
    )
    promise = plan.guarantee.promise
    rdp = RdpAccountant([2.0, 8.0]).compose(event)
    for order, divergence in zip((2.0, 8.0), rdp._rdp, strict=True):
        assert divergence == pytest.approx(order * promise.gaussian_mu**2 / 2.0, rel=1e-9)
    pld = PLDAccountant(value_discretization_interval=1e-3).compose(event)
    assert pld.get_epsilon(1e-6) == pytest.approx(promise.epsilon(1e-6), rel=2e-3)


@pytest.mark.parametrize(
    "budget", [BUDGET, od.GaussianDP(0.5), od.ZCDP(0.1), od.RenyiDP.at(8.0, 1.0), od.ApproxDP(0.2, 1e-9)], ids=str
)
def test_budgets_are_kept_and_nearly_used_up(budget: Any) -> None:
    plan = plan_of("number", 5000, budget)
    stronger = StepNumbers(**{name: value / (1.01 if name.endswith("noise") else 1.0) for name, value in plan.parameters.items()})  # fmt: skip
    setting = plan.mechanism.setting(plan.request)  # type: ignore[attr-defined]
    assert plan.guarantee.promise.implies(budget)
    assert not promise_of(setting, stronger).implies(budget)


def test_a_person_with_several_records_is_paid_for() -> None:
    alone, several = (plan_of("label", 5000, records=k) for k in (1, 3))
    assert several.guarantee.unit.records_per_person == 3
    scores = [plan.parameters["step_noise"] / plan.parameters["step_bound"] for plan in (alone, several)]
    assert scores[1] == pytest.approx(3.0 * scores[0])


# Refusals


@pytest.mark.parametrize(
    ("request_", "error", "remedy"),
    [
        ({"budget": od.PureDP(1.0)}, UnsupportedBudget, "perturbed mode"),
        ({"draws": 2}, UnsupportedBudget, r"release\.posterior\(size\)"),
        ({"n": 3}, PromiseRefused, r"more records or a larger ε"),
        ({"n": 2**31}, PromiseRefused, r"fewer than 2,147,483,648"),
        ({"budget": od.GaussianDP(1e-9)}, PromiseRefused, "larger budget"),
        ({"budget": od.ApproxDP(1e6, 1e-6), "n": 10**9}, PromiseRefused, "nearer to ε = 1"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_kept_is_refused_with_a_remedy(request_: dict, error: type, remedy: str) -> None:
    asked = {"budget": BUDGET, "n": 8000, **request_}
    with pytest.raises(error, match=remedy):
        calibrate(AveragedSteps(), model_of("number"), asked.pop("budget"), **asked)


ROWS: dict[str, Any] = {"features": 2, "bounds": (-1, 1), "prior": od.Gaussian(scale=1.0)}


@pytest.mark.parametrize(
    "model",
    [
        Logistic(**ROWS), Logistic(**ROWS, scaled=True, loss="exp-linear"), HuberRegression(**ROWS, scaled=True, threshold=1.0),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_models_without_a_score_or_scale_are_refused(model: Any) -> None:
    with pytest.raises((UnsupportedBudget, InvalidModel), match=r"Use|scaled=True"):
        calibrate(AveragedSteps(), model, BUDGET, n=8000)


def test_more_records_than_the_sums_have_room_for_are_refused() -> None:
    assert FitBySteps().exactness(plan_of("count", 10**9)).promise == plan_of("count", 10**9).guarantee.promise


# Stated numbers


def test_less_noise_or_longer_scores_than_stated_are_refused() -> None:
    plan, refused = plan_of("label"), 0
    for name, value in plan.parameters.items():
        if not value:
            continue
        times = (0.999, 0.0, -1.0, math.nan) if name.endswith("noise") else (1.001, 0.0, math.nan)
        times = (0.0, -1.0, math.nan) if name == "tail_target" else times  # no promise rests on what it is
        for factor in times:
            stated = plan.to_dict()
            stated["parameters"] = {**stated["parameters"], name: factor * value}
            with pytest.raises((PromiseRefused, CertificateRejected)):
                plan_from_dict(stated)
            refused += 1
    assert refused >= 40


@pytest.mark.parametrize("part", ["moment", "design", "information", "covariance"])
def test_rows_shorter_than_the_lattice_goes_are_refused(part: str) -> None:
    """A sum of squares has no finer steps below a norm of 2⁻⁴⁰, so noise of the right ratio would be too narrow for it."""
    plan = plan_of("label")
    noise = "moments_noise" if part == "moment" else f"{part}_noise"
    times = 1e-9 / plan.parameters[f"{part}_radius"]
    stated = plan.to_dict()
    stated["parameters"] = {
        **stated["parameters"], f"{part}_radius": 1e-9, noise: times**2 * plan.parameters[noise],
    }  # fmt: skip
    with pytest.raises((PromiseRefused, CertificateRejected), match="too small"):
        plan_from_dict(stated)


# Planted faults: each makes the stated promise another one than that of the parts


def fault_in_stages(change: Any) -> Any:
    """Return a replacement of `stages_of` that changes what it says."""

    def faulty(setting: Setting, numbers: StepNumbers) -> Any:
        return change(stages_of(setting, numbers))

    return faulty


FAULTS = {
    "half a sensitivity": lambda stages: [*stages[:-1], stages[-1]._replace(reach=stages[-1].reach / 2.0)],
    "half the steps' sensitivity": lambda stages: [
        one._replace(reach=one.reach / 2.0) if one.reach == 2.0 * one.unit else one for one in stages
    ],
    "a forgotten step": lambda stages: [*stages[:5], *stages[6:]],
    "each step counted once": lambda stages: list(dict.fromkeys(stages)),
    "a forgotten mean": lambda stages: stages[1:],
    "a forgotten covariance": lambda stages: stages[:-1],
    "noise of the wrong part": lambda stages: [*stages[:-1], stages[-1]._replace(noise=2.0 * stages[-1].noise)],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_composition_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = plan_of("label").request
    monkeypatch.setattr(mechanism, "stages_of", fault_in_stages(FAULTS[fault]))
    assert not is_right(AveragedSteps().calibrate(request))


def test_records_of_a_person_that_are_forgotten_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    request = plan_of("label", 8000, records=2).request
    true = mechanism.stage_ratios
    monkeypatch.setattr(mechanism, "stage_ratios", lambda stages, records, *, pure: true(stages, 1, pure=pure))
    assert not is_right(AveragedSteps().calibrate(request))


def test_steps_that_run_and_are_counted_are_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampler's passes and the promise's stages are the same number, and the proof's."""
    plan = plan_of("quantile")
    setting = plan.mechanism.setting(plan.request)  # type: ignore[attr-defined]
    stages = stages_of(setting, StepNumbers.from_dict(plan.parameters, "it"))
    assert len(stages) == FitBySteps().passes(plan) == sum(times for _, times in ratios(plan).values())
    assert (sizes.EARLY_STEPS, sizes.STEPS) == (EARLY, FULL)


def test_no_public_option_breaks_a_plan() -> None:
    """Every combination is planned, derived again, or refused by an error of the package."""
    seen = set()
    for kind in (*KINDS, *MORE):
        for n in (1, 50, 10**4, 2**31 - 1):
            for budget in (od.ApproxDP(1e-3, 1e-12), od.ApproxDP(1e6, 0.4), od.ZCDP(1e-4)):
                for options in (
                    {"columns": 1, "intercept": False, "bound": 1e-12, "largest": 1},
                    {"columns": 60, "norm": 1e9},
                ):
                    model = model_of(kind, level=0.999, **options)
                    try:
                        plan = calibrate(AveragedSteps(), model, budget, n=n)
                    except OnedrawError as error:
                        seen.add(type(error))
                        continue
                    assert is_right(plan)
                    assert replace(plan) == plan
                    seen.add(Plan)
    assert seen == {Plan, PromiseRefused}


# Bounds that counts choose


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("records", [1, 3])
def test_no_shorter_bound_has_less_noise_for_what_it_moves(kind: str, records: int) -> None:
    """Exactly, as fractions: sensitivity over noise of every part at every bound, against that at the longest."""
    plan = plan_of(kind, 40_000, records=records)
    setting = plan.mechanism.setting(plan.request)  # type: ignore[attr-defined]
    longest = StepNumbers.from_dict(plan.parameters, "it")
    assert longest.tail_noise > 0.0
    for factor in sizes.FACTORS:
        for least, most in zip(stages_of(setting, longest.at(factor)), stages_of(setting, longest), strict=True):
            # the reach is rounded in the last bit, which the margin of discrete noise has room for
            assert Fraction(least.reach) / Fraction(least.noise) <= Fraction(most.reach) / Fraction(most.noise)
        assert promise_of(setting, longest.at(factor)).gaussian_mu <= plan.guarantee.promise.gaussian_mu


def test_less_noise_at_shorter_bounds_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: noise one part in a million too small at a shorter bound."""
    monkeypatch.setattr(sizes, "UP", 1.0 - 1e-6)
    plan = plan_of("label", 40_000)
    setting = plan.mechanism.setting(plan.request)  # type: ignore[attr-defined]
    longest = StepNumbers.from_dict(plan.parameters, "it")
    assert promise_of(setting, longest.at(0.25)).gaussian_mu > plan.guarantee.promise.gaussian_mu


def test_bisection_finds_the_shortest_bound_that_few_scores_exceed() -> None:
    lengths = np.random.default_rng(1).exponential(0.2, 5000)
    for target in (0.5, 10.0, 100.0, 1000.0, 6000.0):
        asked: list[float] = []

        def count(factor: float, asked: list[float] = asked) -> float:
            asked.append(factor)
            return float((lengths > factor).sum())

        few = [factor for factor in sizes.FACTORS if (lengths > factor).sum() <= target]
        assert sizes.choose_factor(count, target) == (few[0] if few else 1.0)
        assert len(asked) == sizes.TAIL_COUNTS


def test_public_numbers_decide_whether_a_bound_is_looked_for() -> None:
    few, many = plan_of("number", 1000), plan_of("number", 40_000)
    assert few.parameters["tail_noise"] == few.parameters["tail_target"] == 0.0
    mu, p = many.guarantee.promise.gaussian_mu, 3
    assert many.parameters["tail_target"] == pytest.approx(8.0 * math.sqrt(p) / mu, rel=1e-6)
