"""Effects of interest are named by column, become part of the plan, and are refused where nothing would use them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.methods.fit import AveragedSteps
from onedraw.planning import Regression, rank_plans

from .cases import BUDGET

SCHEMA: dict[str, Any] = {
    "dataset": "patients",
    "columns": {
        "treated": {"kind": "binary", "levels": ["no", "yes"], "missing": "no"},
        "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
        **{f"x{place}": {"kind": "number", "lower": 0, "upper": 10, "missing": 5} for place in range(12)},
        "visits": {"kind": "count", "cap": 8, "missing": 0},
        "ill": {"kind": "binary", "levels": ["no", "yes"], "missing": "no"},
        "cost": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
    },
}


def planned(effects: Any, target: str = "cost", model: str = "linear", n: int = 20_000, **options: Any) -> Any:
    return od.plan(SCHEMA, target, model, n=n, epsilon=1.0, effects=effects, **options)


@pytest.mark.parametrize(
    ("effects", "places"),
    [(["treated"], (0,)), (["ward"], (1, 2)), (["ward=c"], (2,)), (["x0", "treated"], (0, 3)), ("x1", (4,))],
    ids=str,
)
def test_effects_become_columns_of_the_plan(effects: Any, places: tuple[int, ...]) -> None:
    plan = planned(effects).plan
    assert isinstance(plan.mechanism, AveragedSteps)
    assert plan.mechanism.effects == places
    assert plan.mechanism.categories[:2] == ((0, 1), (1, 3))


@pytest.mark.parametrize(
    ("target", "model"), [("ill", "logistic"), ("visits", "poisson"), ("cost", "quantile"), ("cost", "linear")]
)
def test_every_kind_of_fit_takes_effects(target: str, model: str) -> None:
    assert planned(["treated", "ward"], target, model, n=100_000).plan.mechanism.effects == (0, 1, 2)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"effects": ["treatd"]}, InvalidModel, r"names 'treatd', which is no column.*Perhaps treated\?"),
        ({"effects": ["cost"]}, InvalidModel, "no column besides the target"),
        ({"effects": []}, InvalidModel, "names no column"),
        ({"effects": ["treated"], "delta": 0}, PromiseRefused, "Pass a δ above 0, or leave out effects"),
        ({"effects": ["treated"], "n": 60}, PromiseRefused, "Use more records or a larger ε, or leave out effects"),
        ({"effects": ["treated"], "draws": 4}, PromiseRefused, "Leave out draws"),
        ({"effects": ["treated"], "mechanism": "perturbed-mode"}, InvalidModel, "would not use it"),
        ({"effects": ["treated"], "mechanism": "noisy-gradient"}, InvalidModel, "would not use it"),
        ({"effects": ["treated"], "estimand": "robust"}, InvalidModel, "Leave one of them out"),
        ({"effects": ["treated"], "target": "ward", "model": "softmax"}, InvalidModel, "does not belong to a softmax"),
        ({"effects": ["treated"], "target": "cost", "model": "mean"}, InvalidModel, "does not belong to a mean"),
    ],
    ids=lambda value: ",".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_effects_that_nothing_would_use_are_refused(options: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        planned(**options)


def test_effects_go_with_a_declared_prior() -> None:
    mechanism = planned(["treated"], options={"prior_scale": 1.0}).plan.mechanism
    assert mechanism.prior
    assert mechanism.effects


def test_columns_without_names_are_named_by_their_place() -> None:
    question = Regression("linear", 12, bounds=(0, 1), response_bound=1.0, effects=[3, 0])
    assert rank_plans(question, BUDGET, n=20_000).best.mechanism.effects == (0, 3)
    assert dataclasses.replace(question, effects=np.array([3, 0])).effect_places == (0, 3)
    assert dataclasses.replace(question, effects=np.int64(2)).effect_places == (2,)
    for places in ([12], [-1], [True], [1.5]):
        with pytest.raises(InvalidModel, match="which is no column"):
            dataclasses.replace(question, effects=places)
    with pytest.raises(InvalidModel, match="is a list of columns"):
        dataclasses.replace(question, effects=1.5)


def test_place_beside_a_category_is_refused() -> None:
    """Encoded columns are counted differently from those of a table: place 3 would be x0, not the fourth column."""
    with pytest.raises(InvalidModel, match=r"not those of your columns\. Give the column's name, such as 'x0'"):
        planned([3])


@pytest.mark.parametrize("names", [np.array(["x1", "x0"]), pd.Index(["x1", "x0"]), {"x0", "x1"}])
def test_names_may_be_listed_in_any_way(names: Any) -> None:
    assert planned(names).plan.mechanism.effects == (3, 4)


@pytest.mark.parametrize(("level", "column"), [("ward=a", "ward"), ("treated=no", "treated"), ("ward=z", "ward")])
def test_level_without_a_coefficient_is_told_from_a_column(level: str, column: str) -> None:
    with pytest.raises(
        InvalidModel, match=f"names '{level}', which has no coefficient.*Name '{column}' for all levels"
    ):
        planned([level])


def test_plan_predicts_the_gain_of_effects_and_the_loss_of_others() -> None:
    plain, named = planned(None), planned(["treated", "x3"])

    def errors(plan: Any, design: int) -> dict[str, float]:
        return {one.name: one.private for one in plan.choices.eligible[0].designs[design].columns}

    def privacy(plan: Any, name: str) -> float:
        one = next(one for one in plan.choices.eligible[0].designs[0].columns if one.name == name)
        return float(np.sqrt(one.private**2 - one.sampling**2))

    before, after = errors(plain, 0), errors(named, 0)
    assert {name for name in before if after[name] < before[name]} == {"treated=yes", "x3"}
    assert privacy(named, "x3") < 0.65 * privacy(plain, "x3")
    assert 1.0 < privacy(named, "x4") / privacy(plain, "x4") < 1.5
    worst = errors(named, 1)["treated=yes"] / errors(plain, 1)["treated=yes"]
    assert worst > after["treated=yes"] / before["treated=yes"], "a level of 1 % of the records is stretched less"
    assert "Effects of interest: treated=yes, x3." in named.estimand_note
    assert "Effects of interest" not in plain.estimand_note
    assert named.fingerprint != plain.fingerprint


def test_release_and_summary_name_the_effects(tmp_path: Any) -> None:
    rng = np.random.default_rng(1)
    n = 4000
    frame = pd.DataFrame({f"x{place}": rng.uniform(0, 10, n) for place in range(6)})
    y = pd.Series(5 * frame["x1"] + rng.standard_normal(n), name="cost")
    model = od.DPLinearRegression(
        epsilon=2.0, bounds=(0, 10), response_bound=(0, 60), effects=["x1"], random_state=1
    ).fit(frame, y)
    assert model.release_.plan.mechanism.effects == (1,)
    assert "Effects of interest: x1." in str(model.summary())
    assert "with less noise along x1" in str(model.certificate_)
