"""Calibration: the printed numbers, the safe side of the budget, and faults that quadrature must catch."""

from __future__ import annotations

import inspect
import math
import time
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from onedraw.errors import (
    InvalidBudget,
    InvalidModel,
    OrderTooHigh,
    PromiseRefused,
    UnsupportedBudget,
    WrongCall,
)
from onedraw.methods import Concentrated, Diffused, Direct, Scaling, calibrate, posterior_promise
from onedraw.models import BetaBernoulli, DirichletCategorical, GammaExponential, GammaPoisson, GaussianMean
from onedraw.privacy import ZCDP, ApproxDP, BoundedRange, GaussianDP, PureDP, RenyiDP, compose

CONJUGATE = [
    BetaBernoulli((1, 1)),
    BetaBernoulli((6, 12)),
    DirichletCategorical([1, 2, 3, 4]),
    GammaPoisson((3.0, 1.0), cap=5),
    GammaExponential((2.0, 4.0), cap=2.0),
    GaussianMean(bound=1.0, variance=2.0, prior_count=3.0),
]
SEARCHING = [Diffused(), Concentrated()]


def by_name(value):
    return type(value).__name__


def free_number(plan):
    return plan.parameters["r"] if isinstance(plan.mechanism, Diffused) else plan.parameters["prior_factor"]


# ── golden: other implementations ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mechanism", "prior", "digits"),
    [
        (Diffused(), (6, 12), "0.227873"),
        (Concentrated(), (6, 12), "0.0578274"),
        (Diffused(), (1, 1), "0.0603290"),
        (Concentrated(), (1, 1), "0.00845978"),
    ],
    ids=str,
)
def test_the_reference_weights(mechanism, prior, digits):
    plan = calibrate(mechanism, BetaBernoulli(prior), RenyiDP.at(15, 0.1), n=100)
    assert f"{free_number(plan):.12f}".startswith(digits)


def test_the_uniform_prior_has_its_limit_at_order_two():
    assert calibrate(Direct(), BetaBernoulli((1, 1)), RenyiDP.at(1.5, 5.0), n=100).parameters["order_limit"] == 2.0
    assert BetaBernoulli((1, 1)).bounds["order_limit"].value == 2.0


def test_the_reference_divergence_of_direct_sampling():
    promise = Direct().promise(DirichletCategorical([1, 2, 3, 4]), n=50)
    assert f"{promise.at_order(1.5):.9f}".startswith("1.46723")
    plan = calibrate(Direct(), DirichletCategorical([1, 2, 3, 4]), RenyiDP.at(1.5, 1.46724), n=50)
    assert plan.guarantee.promise == promise
    with pytest.raises(PromiseRefused, match=r"1\.46724"):
        calibrate(Direct(), DirichletCategorical([1, 2, 3, 4]), RenyiDP.at(1.5, 1.4672), n=50)


@pytest.mark.parametrize("n", [1, 100, 10**9])
@pytest.mark.parametrize("mechanism", [Direct(), Diffused(), Concentrated()], ids=by_name)
def test_the_gaussian_mean_has_its_closed_form(mechanism, n):
    model = GaussianMean(bound=1.5, variance=4.0, prior_count=3.0)
    value = 1.0 if isinstance(mechanism, Direct) else 0.37
    weight, factor = (value, 1.0) if isinstance(mechanism, Diffused) else (1.0, value)
    mu = 2 * weight * 1.5 / (2.0 * math.sqrt(3.0 / factor + weight * n))
    found = mechanism.promise(model, value, n=n).mu
    assert found == pytest.approx(mu, rel=1e-15)
    exact = (2 * Fraction(weight) * Fraction(3, 2)) ** 2 / (4 * (Fraction(3) / Fraction(factor) + Fraction(weight) * n))
    assert Fraction(math.nextafter(found, 0.0)) ** 2 < exact <= Fraction(found) ** 2, "rounded up, once"


# ── the safe side ──────────────────────────────────────────────────────────────────────────────────────────

BUDGETS = [
    RenyiDP.at(1.5, 0.3),
    RenyiDP.at(15, 0.1),
    ApproxDP(1.0, 1e-6),
    ApproxDP(0.1, 1e-9),
    ApproxDP(8.0, 1e-5),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("model", CONJUGATE, ids=by_name)
@pytest.mark.parametrize("mechanism", SEARCHING, ids=by_name)
def test_the_calibrated_number_keeps_the_budget_and_a_thousandth_more_breaks_it(mechanism, model, budget):
    plan = calibrate(mechanism, model, budget, n=200)
    assert plan.guarantee.promise.implies(budget)
    value = free_number(plan)
    assert mechanism.promise(model, value, n=200) == plan.guarantee.promise
    assert value == 1.0 or not mechanism.promise(model, min(1.0, value * 1.001), n=200).implies(budget)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.3, 10.0), min_size=2, max_size=5), st.integers(1, 10**6), st.floats(0.01, 3.0),
    st.floats(1.05, 60.0), st.sampled_from(SEARCHING),
)  # fmt: skip
def test_random_pairs_are_kept_and_a_thousandth_more_breaks_them(prior, n, epsilon, order, mechanism):
    model, budget = DirichletCategorical(prior), RenyiDP.at(order, epsilon)
    plan = calibrate(mechanism, model, budget, n=n)
    value = free_number(plan)
    assert plan.guarantee.promise.at_order(order) <= epsilon
    assert value == 1.0 or mechanism.promise(model, min(1.0, value * 1.001), n=n).at_order(order) > epsilon


@pytest.mark.parametrize("model", CONJUGATE, ids=by_name)
@pytest.mark.parametrize("mechanism", SEARCHING, ids=by_name)
def test_the_calibrated_number_rises_with_epsilon_and_falls_with_the_order(mechanism, model):
    def calibrated(order, epsilon):
        return free_number(calibrate(mechanism, model, RenyiDP.at(order, epsilon), n=50))

    by_epsilon = [calibrated(8.0, epsilon) for epsilon in (0.001, 0.01, 0.05, 0.2)]
    by_order = [calibrated(order, 0.02) for order in (1.1, 2.0, 8.0, 64.0)]
    assert all(low < high for low, high in pairwise(by_epsilon))
    assert all(high > low for high, low in pairwise(by_order))
    by_delta = [free_number(calibrate(mechanism, model, ApproxDP(0.05, delta), n=50)) for delta in (1e-9, 1e-3)]
    assert by_delta == sorted(by_delta)


def test_a_generous_budget_needs_no_turning_down():
    for mechanism in SEARCHING:
        plan = calibrate(mechanism, BetaBernoulli((20, 20)), RenyiDP.at(2.0, 5.0), n=10)
        assert free_number(plan) == 1.0
        assert plan.guarantee.promise == Direct().promise(BetaBernoulli((20, 20)), n=10)


@pytest.mark.parametrize("mechanism", SEARCHING, ids=by_name)
def test_fifty_categories_and_a_million_records_calibrate_in_well_under_two_seconds(mechanism):
    start = time.perf_counter()
    plan = calibrate(mechanism, DirichletCategorical([1.0] * 50), ApproxDP(1.0, 1e-6), n=10**6)
    assert time.perf_counter() - start < 2.0
    assert plan.guarantee.promise.epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)


# ── planted faults, by quadrature ──────────────────────────────────────────────────────────────────────────


def divergence_by_quadrature(order, log_p, log_q):
    """log ∫ p^λ q^(1−λ) / (λ−1) on the real line by the trapezoidal rule, which converges exponentially there."""
    nodes = np.arange(-(1 << 18), 1 << 18) * 0.005
    return float(special.logsumexp(order * log_p(nodes) + (1 - order) * log_q(nodes)) + math.log(0.005)) / (order - 1)


def log_density(law):
    """Of the logit or the logarithm, which are unbounded."""
    law = type(law)(*law.parameters)  # floats, for SciPy
    if hasattr(law, "b"):
        return lambda t: -law.a * np.logaddexp(0, -t) - law.b * np.logaddexp(0, t) - special.betaln(law.a, law.b)
    return lambda t: (
        law.shape * (t + math.log(law.rate)) - np.exp(np.minimum(t, 300)) * law.rate - special.gammaln(law.shape)
    )


WORST_PAIRS = [
    (BetaBernoulli((6, 12)), [0.0] * 100, [1.0] + [0.0] * 99),
    (GammaPoisson((3.0, 1.0), cap=5), [0] * 100, [5] + [0] * 99),
    (GammaExponential((2.0, 4.0), cap=2.0), [0.0] * 100, [2.0] + [0.0] * 99),
]


@pytest.mark.parametrize(("model", "data", "neighbour"), WORST_PAIRS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("mechanism", SEARCHING, ids=by_name)
def test_a_weight_ten_percent_too_large_is_caught(mechanism, model, data, neighbour):
    """The exact divergence of the worst pair: within the promise as calibrated, beyond it when the fault is planted."""
    budget = RenyiDP.at(6.0, 0.2)
    plan = calibrate(mechanism, model, budget, n=100)
    assert free_number(plan) < 0.9

    def divergence(value):
        scaling = mechanism.scaling(value)
        laws = [
            model.posterior(model.summarise(records), weight=scaling.weight, prior_factor=scaling.prior_factor)
            for records in (data, neighbour)
        ]
        return divergence_by_quadrature(6.0, *map(log_density, laws))

    honest, faulty = divergence(free_number(plan)), divergence(1.1 * free_number(plan))
    assert honest <= 0.2 * (1 + 1e-9)
    assert honest == pytest.approx(0.2, rel=1e-6), "the worst pair attains the promise"
    assert faulty > 0.2 * 1.05


def test_a_gaussian_weight_ten_percent_too_large_is_caught():
    model = GaussianMean(bound=1.0, variance=2.0, prior_count=3.0)
    plan = calibrate(Diffused(), model, GaussianDP(0.05), n=100)

    def mu(weight):
        ends = [model.posterior(model.summarise([x] + [0.0] * 99), weight=weight) for x in (-1.0, 1.0)]
        return (ends[1].mean[0] - ends[0].mean[0]) / math.sqrt(ends[0].variance)

    assert mu(plan.parameters["r"]) == pytest.approx(0.05, rel=1e-9)
    assert plan.guarantee.promise.mu <= 0.05
    assert mu(1.1 * plan.parameters["r"]) > 0.05 * 1.01


@settings(max_examples=30, deadline=None)
@given(
    st.floats(0.1, 5.0), st.floats(0.1, 5.0), st.floats(0.5, 20.0), st.integers(1, 200), st.floats(0.1, 1.0),
    st.floats(0.1, 1.0), st.floats(1.05, 30.0),
)  # fmt: skip
def test_the_gaussian_divergence_agrees_with_integration(bound, variance, count, n, weight, factor, order):
    """The worst pair has one record at each end; D_λ of two Gaussians is λμ²/2."""
    model = GaussianMean(bound=bound, variance=variance, prior_count=count)
    p, q = (
        model.posterior(model.summarise([end] + [0.3 * bound] * (n - 1)), weight=weight, prior_factor=factor)
        for end in (-bound, bound)
    )
    distance = (q.mean[0] - p.mean[0]) / math.sqrt(p.variance)
    centre = -(order - 1) * distance  # where p^λ q^(1−λ) is largest, in standard deviations from the mean of p

    def log_normal(mean):
        return lambda t: -((t + centre - mean) ** 2) / 2 - math.log(2 * math.pi) / 2

    found = divergence_by_quadrature(order, log_normal(0.0), log_normal(distance))
    promise = posterior_promise(model, Scaling(weight, factor), n=n)
    assert promise.renyi.at_order(order) == pytest.approx(found, rel=1e-8)
    assert distance <= promise.mu * (1 + 1e-9)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 30), st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_no_vectors_in_or_out_of_the_ball_beat_the_gaussian_promise(seed, dim, n, weight, factor):
    generator = np.random.default_rng(seed)
    model = GaussianMean(bound=0.7, variance=2.0, prior_count=1.5, dim=dim)
    data = generator.normal(0.0, 2.0, (n, dim))
    neighbour = data.copy()
    neighbour[0] = -5.0 * data[0]  # the opposite point of the sphere, or near it
    p, q = (model.posterior(model.summarise(x), weight=weight, prior_factor=factor) for x in (data, neighbour))
    distance = math.dist(p.mean, q.mean) / math.sqrt(p.variance)
    assert distance <= posterior_promise(model, Scaling(weight, factor), n=n).mu * (1 + 1e-12)


# ── several draws, several records, a reserve ──────────────────────────────────────────────────────────────


def test_several_draws_share_the_budget():
    model, budget = BetaBernoulli((6, 12)), RenyiDP.at(4.0, 0.4)
    plan = calibrate(Diffused(), model, budget, n=100, draws=5)
    assert plan.guarantee.promise.at_order(4.0) == pytest.approx(0.4, rel=1e-9)
    single = calibrate(Diffused(), model, RenyiDP.at(4.0, 0.08), n=100)
    assert plan.parameters["r"] == pytest.approx(single.parameters["r"], rel=1e-9)
    gaussian = calibrate(Diffused(), GaussianMean(1.0, 1.0, 1.0), GaussianDP(0.2), n=100, draws=4)
    assert gaussian.guarantee.promise.mu == pytest.approx(0.2, rel=1e-9)
    assert gaussian.parameters["mu"] == pytest.approx(0.1, rel=1e-9)


def test_a_person_with_several_records_is_paid_for():
    budget = ApproxDP(1.0, 1e-6)
    for model in CONJUGATE[:5]:
        one, three = (calibrate(Diffused(), model, budget, n=100, records_per_person=k) for k in (1, 3))
        assert three.parameters["r"] < one.parameters["r"]
        assert three.guarantee.unit.records_per_person == 3
        assert isinstance(three.guarantee.promise, ApproxDP)
        assert three.guarantee.promise.implies(budget)
        assert not one.guarantee.promise.implies(ApproxDP(1.0 / 3, 1e-7))
    mean = calibrate(Diffused(), GaussianMean(1.0, 1.0, 1.0), GaussianDP(0.3), n=100, records_per_person=3)
    assert mean.parameters["mu"] == pytest.approx(0.1, rel=1e-9)
    assert mean.guarantee.promise.mu <= 0.3


def test_group_privacy_of_three_records_holds_on_a_real_triple():
    """Exact profile of data sets that differ in three records against the person's (ε, δ)."""
    model, epsilon, delta = BetaBernoulli((2, 2)), 1.0, 1e-4
    plan = calibrate(Diffused(), model, ApproxDP(epsilon, delta), n=30, records_per_person=3)
    laws = [plan.target(model.summarise([x] * 3 + [0.0] * 27)) for x in (0.0, 1.0)]
    nodes = np.arange(-40, 40, 0.001)
    log_p, log_q = (log_density(law)(nodes) for law in laws)
    for first, second in ((log_p, log_q), (log_q, log_p)):
        excess = np.exp(first) - np.exp(epsilon + second)
        assert excess[excess > 0].sum() * 0.001 <= delta


def test_a_reserve_is_taken_off_delta():
    model, budget, gamma = BetaBernoulli((6, 12)), ApproxDP(1.0, 1e-6), 1e-7
    plan = calibrate(Diffused(), model, budget, n=100, gamma=gamma)
    assert plan.gamma == gamma
    left = 1e-6 - (1 + math.e) * gamma
    assert plan.guarantee.promise.delta(1.0) == pytest.approx(left, rel=1e-6)
    assert plan.guarantee.promise.delta(1.0) <= left
    assert plan.parameters["r"] < calibrate(Diffused(), model, budget, n=100).parameters["r"]
    assert calibrate(Diffused(), model, budget, n=100, gamma=None).gamma == 0.0


def test_the_order_in_the_plan_is_the_best_one():
    plan = calibrate(Diffused(), DirichletCategorical([2, 2, 2]), ApproxDP(0.5, 1e-6), n=500)
    curve, order = plan.guarantee.promise.curve, plan.parameters["order"]

    def converted(order):
        return curve(order) + np.log((order - 1) / order) - (np.log(1e-6) + np.log(order)) / (order - 1)

    assert converted(order) == pytest.approx(0.5, rel=1e-6)
    orders = 1 + np.geomspace(1e-3, plan.parameters["order_limit"] - 1.001, 2000)
    assert converted(orders).min() >= converted(order) - 1e-9


def test_the_whole_curve_is_the_promise_of_an_epsilon_delta_plan():
    plan = calibrate(Concentrated(), BetaBernoulli((1, 1)), ApproxDP(1.0, 1e-6), n=100)
    assert isinstance(plan.guarantee.promise, RenyiDP)
    assert plan.guarantee.promise.at_order(2.0) < plan.guarantee.promise.at_order(10.0) < math.inf


# ── what is refused, and how ───────────────────────────────────────────────────────────────────────────────


def test_calibrate_has_no_way_to_see_data():
    names = list(inspect.signature(calibrate).parameters)
    assert names == ["mechanism", "model", "budget", "n", "draws", "gamma", "records_per_person"]
    kinds = [parameter.kind for parameter in inspect.signature(calibrate).parameters.values()]
    assert kinds[3:] == [inspect.Parameter.KEYWORD_ONLY] * 4


def test_direct_sampling_at_the_limit_says_what_the_limit_is_and_offers_diffused():
    with pytest.raises(OrderTooHigh, match=r"λ\* = 7.*Diffused") as caught:
        calibrate(Direct(), BetaBernoulli((6, 12)), RenyiDP.at(7.0, 100.0), n=100)
    assert caught.value.limit == 7.0
    assert caught.value.exit_code == 3
    calibrate(Direct(), BetaBernoulli((6, 12)), RenyiDP.at(6.999, 1e6), n=100)


def test_direct_sampling_of_durations_is_refused():
    with pytest.raises(PromiseRefused, match=r"proportion to n.*Diffused"):
        calibrate(Direct(), GammaExponential((1, 1), cap=1.0), RenyiDP.at(1.5, 1e9), n=1000)


@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), GaussianDP(1e-9), RenyiDP.at(1.5, 1e-9)], ids=str)
def test_direct_sampling_that_does_not_keep_a_budget_says_what_it_does_keep(budget):
    model = GaussianMean(1.0, 1.0, 1.0) if isinstance(budget, GaussianDP) else BetaBernoulli((1, 1))
    with pytest.raises(PromiseRefused, match=r"for one record .* Use Diffused"):
        calibrate(Direct(), model, budget, n=100)


@pytest.mark.parametrize(
    "budget",
    [
        PureDP(1.0),
        BoundedRange(1.0),
        ZCDP(0.1),
        GaussianDP(0.1),
        ApproxDP(1.0, 0.0),
        RenyiDP(GaussianDP(1.0).renyi.curve),
        RenyiDP(RenyiDP.at(5.0, 1.0).curve, below=3.0),
        compose(RenyiDP.at(5.0, 1.0), RenyiDP.at(5.0, 1.0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("mechanism", [Direct(), *SEARCHING], ids=by_name)
def test_other_budgets_are_refused_with_the_limit_and_the_remedy(mechanism, budget):
    with pytest.raises(UnsupportedBudget, match=r"infinite from λ\* = 7.*RenyiDP.*ApproxDP"):
        calibrate(mechanism, BetaBernoulli((6, 12)), budget, n=100)


@pytest.mark.parametrize("budget", [PureDP(1.0), BoundedRange(1.0), ApproxDP(1.0, 0.0)], ids=str)
def test_a_gaussian_mean_is_never_pure(budget):
    with pytest.raises(UnsupportedBudget, match="unbounded"):
        calibrate(Diffused(), GaussianMean(1.0, 1.0, 1.0), budget, n=100)


@pytest.mark.parametrize("budget", [ZCDP(0.01), GaussianDP(0.1), RenyiDP.at(3.0, 0.02), ApproxDP(0.3, 1e-6)], ids=str)
@pytest.mark.parametrize("mechanism", SEARCHING, ids=by_name)
def test_a_gaussian_mean_takes_gaussian_and_concentrated_budgets_too(mechanism, budget):
    model = GaussianMean(bound=1.0, variance=0.01, prior_count=1.0)
    plan = calibrate(mechanism, model, budget, n=100)
    assert isinstance(plan.guarantee.promise, GaussianDP)
    assert plan.guarantee.promise.implies(budget)
    assert not mechanism.promise(model, free_number(plan) * 1.001, n=100).implies(budget)


def test_a_renyi_budget_for_several_records_is_refused_except_for_the_gaussian_mean():
    with pytest.raises(UnsupportedBudget, match="2 records"):
        calibrate(Diffused(), BetaBernoulli((1, 1)), RenyiDP.at(2.0, 1.0), n=100, records_per_person=2)
    budget = RenyiDP.at(2.0, 0.01)
    plan = calibrate(Diffused(), GaussianMean(1.0, 1.0, 1.0), budget, n=100, records_per_person=2)
    assert plan.guarantee.promise.implies(budget)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"n": 0}, InvalidBudget, "n must be at least 1"),
        ({"n": -5}, InvalidBudget, "n must be at least 1"),
        ({"n": 10.5}, InvalidBudget, "n must be a whole number"),
        ({"n": True}, InvalidBudget, "n must"),
        ({"draws": 0}, InvalidBudget, "draws"),
        ({"records_per_person": 0}, InvalidBudget, "records_per_person"),
        ({"gamma": 1e-6}, InvalidBudget, "has none"),
        ({"gamma": 1e-6, "budget": ApproxDP(1.0, 1e-6)}, InvalidBudget, "leaves nothing"),
        ({"gamma": math.nan, "budget": ApproxDP(1.0, 1e-6)}, InvalidBudget, "gamma"),
        ({"budget": 1.0}, InvalidBudget, "promise such as"),
        ({"model": "beta"}, InvalidModel, "needs a model"),
        ({"mechanism": Diffused}, WrongCall, "brackets included, not the class"),
        ({"mechanism": "diffused"}, WrongCall, "needs a mechanism"),
    ],
)
def test_wrong_calls_are_explained(change, error, words):
    call = {
        "mechanism": Diffused(),
        "model": BetaBernoulli(),
        "budget": RenyiDP.at(2.0, 1.0),
        "n": 100,
    } | change
    with pytest.raises(error, match=words):
        calibrate(call.pop("mechanism"), call.pop("model"), call.pop("budget"), **call)


def test_a_budget_too_small_for_any_weight_is_refused():
    with pytest.raises(PromiseRefused, match="No r above"):
        calibrate(Diffused(), BetaBernoulli(), RenyiDP.at(2.0, 1e-200), n=100)


def test_models_without_a_known_divergence_are_refused():
    with pytest.raises(UnsupportedBudget, match="conjugate"):
        posterior_promise(object(), Scaling(), n=3)


def test_plan_is_made_again_from_its_numbers_and_no_other_order():
    """What `verify` does: the same numbers give the same plan, another order is refused."""
    for mechanism, budget in ((Diffused(), ApproxDP(0.5, 1e-6)), (Diffused(), RenyiDP.at(4.0, 0.2))):
        plan = calibrate(mechanism, BetaBernoulli((2, 3)), budget, n=100)
        assert mechanism.plan(plan.request, plan.parameters) == plan
        for order in (None, 1.0, 1.0001, 3.0 * plan.parameters["order"], math.nan):
            with pytest.raises(PromiseRefused, match="order"):
                mechanism.plan(plan.request, {**plan.parameters, "order": order})
