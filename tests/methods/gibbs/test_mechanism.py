"""Gibbs plans: every rule keeps its budget, says what it rests on, and refuses what it cannot prove."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onedraw.errors import (
    CertificateRejected,
    CountMismatch,
    InvalidBudget,
    PromiseRefused,
    UnsupportedBudget,
    WrongCall,
)
from onedraw.methods import Concentrated, Diffused, Direct, Gibbs, NoisyGradient, calibrate, plan_from_dict
from onedraw.models import (
    BetaBernoulli,
    Gaussian,
    GaussianMean,
    Hinge,
    HuberRegression,
    LeastSquares,
    Logistic,
    LogitNormalBernoulli,
    Quantile,
    Softmax,
)
from onedraw.models.conjugate.distributions import BallGaussian
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRange,
    GaussianDP,
    Provenance,
    PureDP,
    RenyiDP,
    compose,
    with_total_variation,
)
from tests.methods.cases import gibbs_pair, logistic

WIDE, BALL = Gaussian(scale=2.0), Gaussian(scale=1.0, radius=2.0)
BUDGET = ApproxDP(1.0, 1e-5)
MODELS = [
    Logistic(3, data_norm=1.0, prior=WIDE),
    Logistic(2, bounds=(-1, 1), intercept=False, loss="exp-linear", prior=WIDE),
    Softmax(2, bounds=(0, 1), classes=["a", "b", "c"], prior=WIDE),
    Hinge(2, data_norm=1.0, prior=WIDE),
    HuberRegression(2, data_norm=1.0, threshold=0.7, prior=WIDE),
    Quantile(1, bounds=(-1, 1), level=0.9, prior=WIDE),
    LogitNormalBernoulli(variance=1.0),
    LeastSquares(2, bounds=(-1, 1), response_bound=1.0, prior=BALL),
    GaussianMean(bound=1.0, variance=2.0, prior_count=3.0),
]
ON_A_BALL = [
    Logistic(3, data_norm=1.0, prior=BALL),
    Softmax(2, bounds=(0, 1), classes=["a", "b", "c"], prior=BALL),
    Hinge(2, data_norm=1.0, prior=BALL),
    LeastSquares(2, bounds=(-1, 1), response_bound=1.0, prior=BALL),
]


def by_name(value):
    return type(value).__name__


def rules_for(model):
    found = ["gdp", "theorem7", "rdp"]
    return found if isinstance(model, GaussianMean) else [*found, "corollary8"]


# ── every rule, every model ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_each_rule_keeps_its_budget_and_a_thousandth_more_weight_breaks_it(model):
    for rule in rules_for(model):
        plan = calibrate(Gibbs(rule), model, BUDGET, n=500)
        weight = plan.parameters["weight"]
        assert plan.guarantee.promise.implies(plan.request.exact_budget)
        with pytest.raises(PromiseRefused):
            calibrate(Gibbs(rule, weight=weight * 1.001), model, BUDGET, n=500)
        checked = calibrate(Gibbs(rule, weight=weight), model, BUDGET, n=500)
        assert checked.guarantee.promise == plan.guarantee.promise
        assert checked.mechanism.weight == weight


@pytest.mark.parametrize("model", ON_A_BALL, ids=by_name)
def test_the_ball_rules_keep_their_budgets_too(model):
    for rule, budget in (("theorem10", BUDGET), ("bounded", ApproxDP(1.0, 1e-10))):
        plan = calibrate(Gibbs(rule), model, budget, n=500)
        assert plan.guarantee.promise.implies(budget)
        with pytest.raises(PromiseRefused):
            calibrate(Gibbs(rule, weight=plan.parameters["weight"] * 1.001), model, budget, n=500)
    assert plan.guarantee.promise.stated_epsilon == pytest.approx(1.0, rel=1e-15)
    assert plan.parameters["weight"] == pytest.approx(1.0 / plan.parameters["range"], rel=1e-15)


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_a_plan_written_out_is_derived_again_and_an_edited_one_is_refused(model):
    for rule in rules_for(model):
        plan = calibrate(Gibbs(rule), model, BUDGET, n=500, draws=2, records_per_person=2)
        stored = json.loads(json.dumps(plan.to_dict()))
        assert plan_from_dict(stored) == plan
        assert plan_from_dict(stored).digest == plan.digest
        for name in plan.parameters:
            edited = json.loads(json.dumps(stored))
            edited["parameters"][name] *= 1.001
            with pytest.raises(PromiseRefused):
                plan_from_dict(edited)
        worded = {**stored, "guarantee": {**stored["guarantee"], "theorem": "trust me"}}
        assert plan_from_dict(worded).guarantee.theorem == plan.guarantee.theorem  # sentences are derived, never read
        stored["guarantee"]["neighbours"] = "add-or-remove-one"
        with pytest.raises(CertificateRejected):
            plan_from_dict(stored)


def test_the_parameters_are_those_of_section_4():
    n, scales = 800, (1.0, 2.0, 0.5)
    model = Logistic(2, data_norm=3.0, prior=Gaussian(scales=scales))
    plan = calibrate(Gibbs(), model, BUDGET, n=n, gamma=0.0)
    p, reach = plan.parameters, math.sqrt(10.0)
    assert p["lipschitz"] == pytest.approx(reach)
    assert p["gradient_difference"] == pytest.approx(2 * reach)
    assert p["prior_strong_convexity"] == p["strong_convexity"] == 0.25
    assert p["prior_smoothness"] == 4.0
    assert p["smoothness"] == pytest.approx(4.0 + n * p["weight"] * reach**2 / 4)
    assert p["weight"] == pytest.approx(0.2680511 * 0.5 / (2 * reach), rel=1e-6)
    assert p["mu"] == pytest.approx(0.2680511, rel=1e-6)
    assert "radius" not in p


def test_a_loss_with_a_smaller_gradient_difference_gets_the_weight_it_deserves():
    """Example 17: G = 1, not 2L = 2, so the weight is twice what the Lipschitz constant alone would give."""
    plan = calibrate(Gibbs("gdp"), LogitNormalBernoulli(variance=1.0), ApproxDP(0.1, 1e-3), n=100, gamma=0.0)
    assert f"{plan.parameters['weight']:.6f}" == "0.057457"
    printed = calibrate(Gibbs("corollary8"), LogitNormalBernoulli(variance=1.0), ApproxDP(0.1, 1e-3), n=100, gamma=0.0)
    assert f"{printed.parameters['weight']:.4f}" == "0.0130", "at least the 0.012 of the paper"


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 6.0), st.floats(1e-9, 1e-3), st.integers(1, 10**6), st.integers(1, 6), st.integers(1, 4))
def test_draws_and_records_stretch_the_promise_by_their_root_and_their_number(epsilon, delta, n, draws, records):
    model, budget = MODELS[0], ApproxDP(epsilon, delta)
    plan = calibrate(Gibbs(), model, budget, n=n, draws=draws, records_per_person=records)
    assert plan.guarantee.promise.mu == pytest.approx(plan.parameters["mu"] * records * math.sqrt(draws), rel=1e-12)
    assert plan.guarantee.promise.implies(budget)
    single = calibrate(Gibbs(), model, budget, n=n)
    assert plan.parameters["weight"] == pytest.approx(
        single.parameters["weight"] / (records * math.sqrt(draws)), rel=1e-9
    )


@pytest.mark.parametrize("rule", ["gdp", "theorem7", "corollary8", "rdp"])
def test_several_draws_are_never_worth_less_than_composing_them_one_by_one(rule):
    one = calibrate(Gibbs(rule), MODELS[0], ApproxDP(0.5, 2.5e-6), n=500, gamma=0.0)
    four = calibrate(Gibbs(rule), MODELS[0], ApproxDP(2.0, 1e-5), n=500, gamma=0.0, draws=4)
    assert compose(*[one.guarantee.promise] * 4).implies(ApproxDP(2.0, 1e-5))
    assert four.parameters["weight"] >= one.parameters["weight"]


# ── budgets ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget", [GaussianDP(0.4), ZCDP(0.08), RenyiDP.at(5.0, 0.4)], ids=str)
def test_the_gdp_rule_takes_every_budget_that_tails_allow(budget):
    plan = calibrate(Gibbs(), MODELS[0], budget, n=100)
    assert plan.guarantee.promise.implies(budget)
    assert plan.parameters["mu"] == pytest.approx(0.4, rel=1e-9)
    assert plan.gamma == 0.0


@pytest.mark.parametrize("budget", [PureDP(1.0), BoundedRange(1.0), ApproxDP(1.0, 0.0)], ids=repr)
@pytest.mark.parametrize("rule", ["gdp", "theorem7", "corollary8", "rdp"])
def test_a_delta_of_zero_is_refused_with_the_ways_out(rule, budget):
    with pytest.raises(UnsupportedBudget, match=r"ball rule='bounded' draws exactly.*\(1, 1e-10\)"):
        calibrate(Gibbs(rule), MODELS[0], budget, n=100)


@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 0.0), ZCDP(0.1)], ids=repr)
@pytest.mark.parametrize("model", ON_A_BALL[1:3], ids=by_name)
def test_a_loss_without_curvature_has_no_exact_draw_and_so_no_pure_promise(model, budget):
    with pytest.raises(UnsupportedBudget, match=r"least curvature of 0.*κ = ∞.*1e-10"):
        calibrate(Gibbs("bounded"), model, budget, n=100)


@pytest.mark.parametrize(
    "budget", [PureDP(1.0), BoundedRange(1.0), ApproxDP(1.0, 0.0), ZCDP(0.1), GaussianDP(0.5)], ids=repr
)
def test_a_logistic_loss_on_a_ball_keeps_every_budget_by_an_exact_draw(budget):
    plan = calibrate(Gibbs("bounded"), ON_A_BALL[0], budget, n=100)
    assert plan.guarantee.promise.implies(budget)
    assert plan.gamma == 0.0
    assert isinstance(plan.guarantee.promise, BoundedRange)
    if budget.is_pure:
        assert plan.guarantee.promise == BoundedRange(1.0)
        assert plan.parameters["weight"] == pytest.approx(1 / (2 * plan.parameters["predictor_bound"]), rel=1e-12)


def test_too_many_tries_are_refused_with_their_number_while_a_tiny_delta_is_taken():
    """κ^{d/2} at B = 2.83: 107 in six dimensions, 2421 in ten, 1.19e5 in fifteen; four times the iterations are allowed."""
    prior = Gaussian(scale=1.0, radius=2.83)
    for columns, most in ((6, None), (10, None), (15, "119,1")):
        model = Logistic(columns, data_norm=1.0, intercept=False, prior=prior)
        if most is None:
            assert calibrate(Gibbs("bounded"), model, PureDP(1.0), n=10_000).guarantee.promise == BoundedRange(1.0)
            continue
        with pytest.raises(UnsupportedBudget, match=rf"up to {most}\d\d tries.*κ = 4\.751.*d = 15.*1e-10"):
            calibrate(Gibbs("bounded"), model, PureDP(1.0), n=10_000)
        calibrate(Gibbs("bounded"), model, ApproxDP(1.0, 1e-10), n=10_000)


def test_without_a_ball_or_with_unbounded_curvature_the_bounded_rule_says_what_is_missing():
    with pytest.raises(UnsupportedBudget, match=r"unbounded.*without a ball.*radius"):
        calibrate(Gibbs("bounded"), Logistic(3, data_norm=1.0, prior=Gaussian(scale=1.0)), PureDP(1.0), n=100)
    exp_linear = Logistic(3, data_norm=1.0, loss="exp-linear", prior=BALL)
    with pytest.raises(UnsupportedBudget, match="least curvature of 0"):
        calibrate(Gibbs("bounded"), exp_linear, PureDP(1.0), n=100)


@pytest.mark.parametrize(
    "budget",
    [PureDP(1.0), BoundedRange(1.0), ApproxDP(1.0, 0.0), ApproxDP(1.0, 1e-6), ZCDP(0.1), GaussianDP(0.5)],
    ids=repr,
)
def test_least_squares_on_a_ball_is_pure_because_its_draw_is_exact(budget):
    plan = calibrate(Gibbs("bounded"), ON_A_BALL[3], budget, n=100)
    assert plan.guarantee.promise.implies(budget)
    assert isinstance(plan.guarantee.promise, BoundedRange)
    assert plan.gamma == 0.0
    if isinstance(budget, PureDP):
        assert plan.guarantee.promise == BoundedRange(1.0)
        y, b = 1.0, 2.0 * math.sqrt(3.0)
        assert plan.parameters["weight"] == pytest.approx(1.0 / (y + b) ** 2, rel=1e-9)


@pytest.mark.parametrize(
    ("rule", "budget"), [("theorem7", GaussianDP(1.0)), ("corollary8", ZCDP(1.0)), ("rdp", GaussianDP(1.0))], ids=str
)
def test_a_rule_names_the_budgets_it_can_keep(rule, budget):
    with pytest.raises(UnsupportedBudget, match="keeps budgets of kind ApproxDP"):
        calibrate(Gibbs(rule), MODELS[0], budget, n=100)


# ── the reserve ────────────────────────────────────────────────────────────────────────────────────────────


def test_one_percent_of_delta_is_kept_back_for_a_chain_and_nothing_for_an_exact_draw():
    for rule in ("gdp", "theorem7", "rdp"):
        plan = calibrate(Gibbs(rule), MODELS[0], BUDGET, n=100)
        assert plan.gamma * (1 + math.e) == pytest.approx(1e-7, rel=1e-9)
        assert with_total_variation(plan.guarantee.promise, plan.gamma, epsilon=1.0).implies(BUDGET)
        assert calibrate(Gibbs(rule), GaussianMean(1.0, 1.0, 1.0), BUDGET, n=100).gamma == 0.0
    assert calibrate(Gibbs(), MODELS[0], BUDGET, n=100, gamma=0.0).parameters["weight"] > plan.parameters["weight"]
    assert calibrate(Diffused(), MODELS[0], BUDGET, n=100).gamma == pytest.approx(1e-7 / (1 + math.e))
    assert calibrate(Diffused(), BetaBernoulli((1, 1)), BUDGET, n=100).gamma == 0.0


def test_a_bounded_loss_leaves_nearly_all_of_delta_to_the_sampler():
    plan = calibrate(Gibbs("bounded"), ON_A_BALL[0], ApproxDP(1.0, 1e-10), n=100)
    kept = with_total_variation(plan.guarantee.promise, plan.gamma, epsilon=1.0)
    assert 0.9e-10 < kept.stated_delta <= 1e-10
    assert kept.implies(plan.budget)


def test_a_reserve_larger_than_delta_is_refused():
    with pytest.raises(InvalidBudget, match="leaves nothing"):
        calibrate(Gibbs(), MODELS[0], BUDGET, n=100, gamma=1e-5)


# ── Corollary 8 ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("epsilon", [9.5, 20.0])
def test_corollary_8_is_refused_outside_its_range_with_the_true_delta(epsilon):
    with pytest.raises(PromiseRefused, match=r"that is false.*errata 16.*rule='gdp'.*as_published=True") as refused:
        calibrate(Gibbs("corollary8"), MODELS[0], ApproxDP(epsilon, 1e-5), n=100, gamma=0.0)
    if epsilon == 20.0:
        assert "δ = 0.00117" in str(refused.value)


def test_as_published_gives_the_papers_weight_and_says_that_it_is_not_proven():
    plan = calibrate(Gibbs("corollary8", as_published=True), MODELS[0], ApproxDP(20.0, 1e-5), n=100, gamma=0.0)
    reach = math.sqrt(2.0)
    assert plan.parameters["weight"] == pytest.approx(
        20 / (2 * reach) * 0.5 / math.sqrt(1 + 2 * math.log(1e5)), rel=1e-9
    )
    assert not plan.mechanism.proven
    assert "as published; NOT PROVEN (errata 16)" in plan.guarantee.theorem
    assert plan.guarantee.assumptions[0].provenance is Provenance.ASSUMED
    assert plan.guarantee.promise == ApproxDP(20.0, 1e-5)
    again = plan_from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again == plan
    assert not again.mechanism.proven
    lied = plan.to_dict()
    lied["mechanism"]["as_published"] = False
    with pytest.raises(PromiseRefused, match="errata 16"):
        plan_from_dict(lied)


def test_inside_its_range_corollary_8_is_proven_whether_or_not_it_was_asked_for_as_published():
    plan = calibrate(Gibbs("corollary8", as_published=True), MODELS[0], ApproxDP(5.0, 1e-5), n=100)
    assert plan == calibrate(Gibbs("corollary8"), MODELS[0], ApproxDP(5.0, 1e-5), n=100)
    assert plan.mechanism.proven
    assert "NOT PROVEN" not in plan.guarantee.theorem
    assert Gibbs().proven
    assert Direct().proven


# ── refusals ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mechanism", "model", "words"),
    [
        (Gibbs("theorem10"), MODELS[0], r"on a ball.*radius"),
        (Gibbs("bounded"), MODELS[0], r"unbounded.*radius=2"),
        (Gibbs("corollary8"), MODELS[8], r"needs a Lipschitz loss.*Theorem 15"),
        (Gibbs(), BetaBernoulli((1, 1)), r"no convex loss.*such as Logistic"),
    ],
)
def test_a_rule_without_its_bound_is_refused_with_a_remedy(mechanism, model, words):
    with pytest.raises(UnsupportedBudget, match=words):
        calibrate(mechanism, model, BUDGET, n=10)


@pytest.mark.parametrize(
    "options", [{"rule": "theorem8"}, {"as_published": True}, {"rule": "rdp", "as_published": True}]
)
def test_options_that_mean_nothing_are_refused(options):
    with pytest.raises(WrongCall):
        Gibbs(**options)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan, "1"])
def test_a_weight_is_a_positive_number(weight):
    with pytest.raises(InvalidBudget):
        Gibbs(weight=weight)


def test_a_budget_too_small_for_any_weight_is_refused():
    with pytest.raises(PromiseRefused):
        calibrate(Gibbs(), Logistic(2, data_norm=1e55, prior=WIDE), GaussianDP(1e-300), n=10)


# ── the promise of a given weight ──────────────────────────────────────────────────────────────────────────


def test_the_promise_of_a_weight_can_be_asked_without_a_budget():
    model = MODELS[0]
    assert Gibbs().promise(model, 0.1, n=100).mu == pytest.approx(0.1 * 2 * math.sqrt(2) / 0.5)
    assert Gibbs("rdp").promise(model, 0.1, n=100).rho == pytest.approx((0.1 * 2 * math.sqrt(2) / 0.5) ** 2 / 2)
    assert isinstance(Gibbs("bounded").promise(ON_A_BALL[0], 0.1, n=100), BoundedRange)
    asked = ApproxDP(1.0, 1e-5)
    assert Gibbs("theorem7").promise(model, 0.03, n=100, budget=asked).stated_epsilon == 1.0
    assert Gibbs("corollary8").promise(model, 0.03, n=100, budget=asked).implies(asked)
    with pytest.raises(WrongCall, match="pass budget"):
        Gibbs("theorem7").promise(model, 0.03, n=100)


# ── Direct, Diffused and Concentrated on convex models (Geumlek et al., Lemma 1) ───────────────────────────


def test_diffused_is_the_gdp_rule_and_its_divergence_is_lemma_1():
    model = MODELS[0]
    plan = calibrate(Diffused(), model, RenyiDP.at(10.0, 0.3), n=500)
    r, lipschitz, strong = plan.parameters["r"], math.sqrt(2.0), 0.25
    assert 2 * r**2 * lipschitz**2 / strong * 10.0 == pytest.approx(0.3, rel=1e-9)
    assert plan.parameters["weight"] == r
    assert r == pytest.approx(
        calibrate(Gibbs("rdp"), model, RenyiDP.at(10.0, 0.3), n=500).parameters["weight"], rel=1e-9
    )


def test_concentrated_raises_the_prior_at_weight_one():
    model = MODELS[0]
    plan = calibrate(Concentrated(), model, RenyiDP.at(10.0, 0.3), n=500)
    factor = plan.parameters["prior_factor"]
    assert 2 * 2.0 / (0.25 / factor) * 10.0 == pytest.approx(0.3, rel=1e-9)
    assert plan.parameters["weight"] == 1.0
    assert plan.parameters["strong_convexity"] == pytest.approx(0.25 / factor)
    target = plan.target(model.summarise((np.zeros((500, 3)), np.ones(500))))
    assert target.precision == pytest.approx(np.full(4, 0.25 / factor))
    assert target.precision.min() >= plan.parameters["strong_convexity"]


def test_direct_on_a_convex_model_is_only_checked():
    strong = Logistic(2, data_norm=1.0, prior=Gaussian(scale=0.01))
    assert calibrate(Direct(), strong, BUDGET, n=10).parameters["weight"] == 1.0
    with pytest.raises(PromiseRefused, match="not private enough"):
        calibrate(Direct(), MODELS[0], BUDGET, n=10)
    with pytest.raises(UnsupportedBudget, match="unbounded"):
        calibrate(Diffused(), MODELS[0], PureDP(1.0), n=10)


@pytest.mark.parametrize("mechanism", [Diffused(), Concentrated()], ids=by_name)
def test_plans_of_the_three_algorithms_round_trip_for_convex_models(mechanism):
    plan = calibrate(mechanism, ON_A_BALL[0], BUDGET, n=50, draws=3, records_per_person=2)
    assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


# ── the target ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_target_carries_the_plans_weight_and_public_constants():
    model = Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0, radius=3.0, mean=0.5))
    plan = calibrate(Gibbs("theorem10"), model, BUDGET, n=4)
    target = plan.target(model.summarise((np.eye(4)[:, :2], [0, 1, 1, 0])))
    assert isinstance(target, GibbsTarget)
    assert target.weight == plan.parameters["weight"]
    assert target.radius == 3.0
    assert target.strong_convexity == plan.parameters["strong_convexity"]
    assert target.smoothness == plan.parameters["smoothness"]
    assert target.location == pytest.approx([0.5] * 3)
    with pytest.raises(CountMismatch):
        plan.target(model.summarise((np.zeros((5, 2)), np.zeros(5))))


def test_a_loss_with_a_kink_has_a_target_without_smoothness():
    model = Hinge(1, data_norm=1.0, prior=WIDE)
    plan = calibrate(Gibbs(), model, BUDGET, n=2)
    assert "smoothness" not in plan.parameters
    assert plan.target(model.summarise(([[1.0], [0.0]], [0, 1]))).smoothness == math.inf


def test_the_target_of_a_gaussian_mean_is_its_closed_form_posterior():
    model = GaussianMean(bound=1.0, variance=2.0, prior_count=3.0)
    plan = calibrate(Gibbs(), model, BUDGET, n=4)
    summary = model.summarise([0.5, -0.2, 0.1, 1.5])
    assert plan.target(summary) == model.posterior(summary, weight=plan.parameters["weight"])
    exact = calibrate(Diffused(), model, BUDGET, n=4).parameters["r"]
    assert plan.parameters["weight"] == pytest.approx(exact, rel=1e-9)
    assert "Theorem 15" in calibrate(Gibbs("theorem7"), model, BUDGET, n=4).guarantee.theorem


@pytest.mark.parametrize("mechanism", [Gibbs("bounded"), Gibbs("theorem10"), Diffused()], ids=by_name)
def test_the_target_of_least_squares_is_a_gaussian_cut_to_the_ball(mechanism):
    model = LeastSquares(2, bounds=(-1, 1), response_bound=1.0, prior=Gaussian(scale=2.0, mean=0.3, radius=2.0))
    plan = calibrate(mechanism, model, BUDGET, n=3)
    encoded = model.summarise(([[0.5, -0.2], [1.5, 0.0], [0.1, 0.1]], [0.3, -2.0, 0.9]))
    law = plan.target(encoded)
    assert isinstance(law, BallGaussian)
    assert law.radius == 2.0
    weight, thetas = plan.parameters["weight"], np.random.default_rng(3).normal(size=(5, 3))
    potential = [weight * model.kernel.total(t, encoded.X, encoded.y) + 0.125 * ((t - 0.3) ** 2).sum() for t in thetas]
    quadratic = [0.5 * t @ law.precision @ t - law.linear @ t for t in thetas]
    assert np.ptp(np.array(potential) - np.array(quadratic)) < 1e-5
    assert plan.closed_form
    assert not calibrate(mechanism if isinstance(mechanism, Diffused) else Gibbs(), MODELS[0], BUDGET, n=3).closed_form
    assert not calibrate(NoisyGradient(), model, BUDGET, n=3).closed_form
    assert isinstance(calibrate(NoisyGradient(), model, BUDGET, n=3).target(encoded), GibbsTarget)


def test_what_the_promise_rests_on_is_listed_with_who_answers_for_it():
    plan = calibrate(Gibbs(), MODELS[0], BUDGET, n=10)
    found = {a.provenance for a in plan.guarantee.assumptions}
    assert {Provenance.DECLARED, Provenance.ENFORCED, Provenance.PROVED} == found
    assert plan.heading == "Gibbs posterior sampling, rule gdp"
    assert calibrate(Diffused(), BetaBernoulli((1, 1)), BUDGET, n=10).heading == "Diffused sampling"


# ── the whole way, by quadrature ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rule", ["gdp", "theorem7", "corollary8", "rdp", "theorem10"])
def test_a_planned_pair_in_one_dimension_has_no_more_delta_than_its_budget(rule):
    """A flipped label under a logistic loss: half of what 2L allows, so far below; at four times the weight, above."""
    model = Logistic(1, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0, radius=8.0))
    plan = calibrate(Gibbs(rule), model, ApproxDP(1.0, 1e-3), n=1, gamma=0.0)
    z = np.array([1.0])

    def delta(factor):
        weight = factor * plan.parameters["weight"]
        return gibbs_pair(logistic, [(z, 1)], [(z, -1)], weight=weight, precision=1.0, radius=8.0).delta(1.0)

    assert delta(1.0) < 1e-3 < delta(4.0)


def test_replacing_the_weight_in_a_plan_by_hand_is_refused():
    plan = calibrate(Gibbs(), MODELS[0], BUDGET, n=10)
    numbers = dict(plan.parameters) | {"weight": 2 * plan.parameters["weight"]}
    with pytest.raises(PromiseRefused):
        Gibbs().plan(plan.request, numbers)
    with pytest.raises(PromiseRefused):
        Gibbs(weight=0.01).plan(plan.request, plan.parameters)
    with pytest.raises(PromiseRefused):
        replace(plan, guarantee=replace(plan.guarantee, promise=GaussianDP(2.0)))


TINY_MODEL = Logistic(3, data_norm=1.0, prior=Gaussian(scale=1.0))


@pytest.mark.finding("F6c")
def test_what_is_kept_back_is_never_below_nothing():
    plan = calibrate(Gibbs(), TINY_MODEL, ApproxDP(300.0, 1e-300), n=100)
    assert plan.gamma == 0.0


@pytest.mark.finding("F6c")
@pytest.mark.parametrize("budget", [ApproxDP(1e-8, 1e-12), ApproxDP(1e-10, 1e-12)], ids=str)
def test_a_calibrated_weight_is_not_refused_by_its_own_plan(budget):
    plan = calibrate(Gibbs(), TINY_MODEL, budget, n=100)
    assert plan.guarantee.promise.implies(plan.request.exact_budget)
    assert plan_from_dict(plan.to_dict()) == plan
