"""What a refusal proposes is not refused in its turn, for any mechanism, model and budget."""

from __future__ import annotations

import inspect
import re
from functools import cache

import pytest

import onedraw as od
from onedraw import baselines, methods, models
from onedraw.errors import OnedrawError, UnsupportedBudget
from onedraw.methods import Mechanism
from onedraw.models.model import Model

N = 2000
WIDE, BALL = od.Gaussian(scale=1.0), od.Gaussian(scale=1.0, radius=2.0)
BOX = {"bounds": (-1.0, 1.0)}
BUDGETS = {"pure": od.PureDP(1.0), "delta": od.ApproxDP(1.0, 1e-5), "gdp": od.GaussianDP(0.5), "zcdp": od.ZCDP(0.1)}
MODELS = {
    "mean": models.GaussianMean(bound=1, variance=1, prior_count=1),
    "bernoulli": models.BetaBernoulli(),
    "counts": models.GammaPoisson(prior=(2.0, 1.0), cap=8),
    "logistic": models.Logistic(2, prior=WIDE, **BOX),
    "logistic on a ball": models.Logistic(2, prior=BALL, **BOX),
    "hinge": models.Hinge(2, prior=WIDE, **BOX),
    "quantile": models.Quantile(2, response_bound=1.0, level=0.5, prior=WIDE, **BOX),
    "squares": models.LeastSquares(2, response_bound=1.0, prior=BALL, **BOX),
    "huber": models.HuberRegression(2, threshold=1.0, prior=WIDE, **BOX),
    "log-cosh": models.LogCoshRegression(2, response_bound=2.0, prior=WIDE, **BOX),
    "binary": models.BinaryRegression(2, prior=WIDE, **BOX),
    "poisson": models.PoissonRegression(2, prior=WIDE, **BOX),
    "network": models.Network(2, hidden=2, prior=WIDE, **BOX),
}
if hasattr(od, "AveragedSteps"):  # findings also run on the commit that was reviewed, which has neither
    MODELS["ordinary"] = models.OrdinaryLeastSquares(2, response_bound=2.0, prior=WIDE, **BOX)
QUICK = ("mean", "bernoulli", "logistic", "hinge", "binary")
"""Of each kind one: a mean, a table, a smooth loss, one with a kink, a likelihood."""


def kinds_of(kind: type) -> list[type]:
    return [kind, *(deeper for direct in kind.__subclasses__() for deeper in kinds_of(direct))]


def every_mechanism() -> dict[str, Mechanism]:
    """Those of the library that need no option, as they are made without one."""
    made = {}
    assert baselines.Penalty  # all of them are loaded
    for kind in dict.fromkeys(kinds_of(Mechanism)):
        if inspect.isabstract(kind) or kind.__name__.startswith("_") or not kind.__module__.startswith("onedraw."):
            continue
        if all(field.default is not inspect.Parameter.empty for field in inspect.signature(kind).parameters.values()):
            made[kind.__name__] = kind()
    return made


KNOWN = {name: getattr(room, name) for room in (methods, baselines) for name in dir(room) if name[0].isupper()}
MECHANISMS = every_mechanism()
KNOWN |= {name: type(made) for name, made in MECHANISMS.items()}
CALL = re.compile(r"\b([A-Z]\w+)\(((?:[^()]|\([^()]*\))*)\)")


@cache
def refusal(call: str, model: str, budget: str) -> str | None:
    """The message with which it is refused, or None."""
    try:
        od.calibrate(eval(call, KNOWN), MODELS[model], BUDGETS[budget], n=N)
    except OnedrawError as error:
        return str(error)
    return None


def proposed(message: str) -> list[str]:
    """The calls of mechanisms in a message; an option that is left to the reader is left out."""
    calls = [(name, "" if "…" in options else options) for name, options in CALL.findall(message) if name in MECHANISMS]
    return [f"{name}({options})" for name, options in calls]


def broken(names, budgets) -> list[str]:
    asked = [(name, model, budget) for name in MECHANISMS for model in names for budget in budgets]
    calls = [(one, call) for one in asked for call in proposed(refusal(f"{one[0]}()", *one[1:]) or "")]
    refused = [(one, call, refusal(call, *one[1:])) for one, call in calls]
    return [f"{one} proposes {call}, which says: {why}" for one, call, why in refused if why is not None]


def test_all_mechanisms_and_all_models_are_asked():
    assert len(MECHANISMS) > 20
    assert {"Gibbs", "BarkerPath", "Penalty", "DPSGLD", "Candidates"} <= set(MECHANISMS)
    assert all(isinstance(model, Model) for model in MODELS.values())


@pytest.mark.finding("mission 2.7", commit="8a7c0fb")
def test_no_mechanism_that_a_refusal_proposes_is_refused():
    assert broken(QUICK, ("pure", "gdp")) == []


@pytest.mark.slow
@pytest.mark.finding("mission 2.7", commit="8a7c0fb")
def test_no_mechanism_that_any_refusal_proposes_is_refused():
    assert broken(MODELS, BUDGETS) == []


@pytest.mark.finding("mission 2.7", commit="8a7c0fb")
def test_a_refusal_names_what_keeps_this_budget_for_this_model():
    """DPSGLD of a likelihood model used to propose Diffused(), which refuses it too."""
    with pytest.raises(UnsupportedBudget) as refused:
        od.calibrate(baselines.DPSGLD(), MODELS["binary"], BUDGETS["delta"], n=N)
    assert "Diffused()" not in str(refused.value)
    with pytest.raises(UnsupportedBudget, match=r"use Diffused\(\)"):
        od.calibrate(od.Gibbs(), MODELS["bernoulli"], BUDGETS["delta"], n=N)
    with pytest.raises(UnsupportedBudget, match=r"use Candidates\(\)"):
        od.calibrate(od.Gibbs(), MODELS["binary"], BUDGETS["pure"], n=N)


def test_a_call_by_keywords_is_refused_in_the_same_words():
    asked = {"model": MODELS["bernoulli"], "budget": BUDGETS["delta"], "n": N}
    with pytest.raises(UnsupportedBudget, match=r"use Diffused\(\)"):
        od.calibrate(mechanism=od.Gibbs(), **asked)


def test_a_planted_wrong_proposal_is_found(monkeypatch):
    monkeypatch.setattr("onedraw.planning.remedies.offer", lambda *_, **__: "For this model use Gibbs().")
    refusal.cache_clear()
    assert any("proposes Gibbs()" in found for found in broken(("bernoulli",), ("delta",)))
    refusal.cache_clear()
