"""Noisy-gradient draws: the path's own closed form, weight and time together, and what it buys."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from onedraw.errors import InvalidBudget, PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods import Gibbs, NoisyGradient, calibrate, plan_from_dict
from onedraw.methods.gibbs.noisy_gradient import LARGEST_WEIGHT, MOST_RELAXATIONS, STEP
from onedraw.models import (
    Gaussian,
    GaussianMean,
    Hinge,
    HuberisedHinge,
    HuberRegression,
    LeastSquares,
    Logistic,
    LogitNormalBernoulli,
    Quantile,
    Softmax,
)
from onedraw.models.convex.linear_model import LinearModel
from onedraw.models.convex.losses import ExpLinearLoss, LogisticLoss, MarginLoss
from onedraw.models.design import Design, curvature_at, smallest_curvature
from onedraw.models.features import Features
from onedraw.models.responses import Signs
from onedraw.privacy import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP
from onedraw.privacy.last_iterate import last_iterate_mu, path_mu

BUDGET = ApproxDP(1.0, 1e-5)
MU = 0.2680511
SPHERE = Logistic(6, data_norm=math.sqrt(6.0), intercept=False, loss="exp-linear", prior=Gaussian(scale=1.0))


@dataclass(frozen=True)
class Tilt(MarginLoss):
    """−yu: linear, so that every iterate is Gaussian and nothing is lost in a bound."""

    steepest = 1.0

    def value(self, predictor, response):
        return -response * predictor

    def slope(self, predictor, response):
        return -response + 0.0 * predictor

    def curvature(self, predictor, response):
        return 0.0 * predictor

    def curvatures(self, reach, responses):
        return (0.0, 0.0)


@dataclass(frozen=True, init=False, repr=False)
class Tilted(LinearModel):
    def __init__(self, norm, scale):
        self._set(features=Features(1, data_norm=norm, intercept=False), prior=Gaussian(scale=scale))

    @property
    def kernel(self):
        return Tilt()

    @property
    def response(self):
        return Signs()


def gaussian_distance(shift, covariance):
    return math.sqrt(shift @ np.linalg.solve(covariance, shift))


# ── the promise ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("norm", "scale", "weight", "time"), [(1.0, 1.0, 0.3, 0.5), (0.7, 2.0, 1.5, 3.0), (2.0, 0.5, 0.1, 0.2)]
)
def test_on_a_linear_loss_the_certified_mu_is_the_closed_form_of_the_gaussian_path(norm, scale, weight, time):
    """All iterates are jointly Gaussian with equal covariance: the path's and the last iterate's μ are distances."""
    plan = calibrate(NoisyGradient(weight=weight, time=time), Tilted(norm, scale), GaussianDP(50.0), n=3)
    numbers = plan.parameters
    steps, h = int(numbers["steps"]), numbers["step_size"]
    contraction = 1.0 - h / scale**2
    powers = contraction ** np.arange(steps)
    response = np.array([[contraction ** (t - s) if s <= t else 0.0 for s in range(steps)] for t in range(steps)])
    shift = response @ np.full(steps, h * weight * 2 * norm)  # one record from −1 to +1
    covariance = 2 * h * response @ response.T
    whole = gaussian_distance(shift, covariance)
    last = h * weight * 2 * norm * powers.sum() / math.sqrt(2 * h * (powers**2).sum())
    assert shift[-1] / math.sqrt(covariance[-1, -1]) == pytest.approx(last, rel=1e-10)
    composed = path_mu(step_size=h, steps=steps, weight=weight, gradient_difference=2 * norm)
    assert composed == pytest.approx(whole, rel=1e-9)
    assert composed == pytest.approx(weight * norm * math.sqrt(2 * numbers["time"]), rel=1e-12)
    assert numbers["mu"] == pytest.approx(whole, rel=1e-8), "but for the gradients' rounding"
    assert numbers["mu"] >= composed * (1 - 1e-15) >= last * (1 - 1e-14), "rounded up"


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 4.0), st.floats(1e-4, 2.0), st.integers(1, 2000), st.floats(0.2, 5.0))
def test_the_certified_mu_is_that_of_the_whole_path_with_the_rounding_counted(weight, time, n, scale):
    model = Logistic(2, data_norm=1.0, prior=Gaussian(scale=scale))
    p = calibrate(NoisyGradient(weight=weight, time=time), model, GaussianDP(1e6), n=n).parameters
    whole = weight * math.sqrt(2.0) * math.sqrt(2 * p["time"])
    rounded = p["rounding"] / p["gradient_difference"]
    assert 0.0 < rounded < 2.0**-21
    assert p["mu"] == pytest.approx(whole * (1 + rounded), rel=1e-12)


def test_a_loss_of_ones_own_is_not_rounded_and_has_the_smaller_of_both_bounds():
    from onedraw.audit.cases.predictor import linear_model

    plan = calibrate(NoisyGradient(weight=1.0, time=2.0), linear_model(), GaussianDP(1e6), n=4)
    p = plan.parameters
    path = {
        "step_size": p["step_size"],
        "steps": int(p["steps"]),
        "weight": 1.0,
        "gradient_difference": p["gradient_difference"],
    }
    curved = {name: p[name] for name in ("strong_convexity", "smoothness")}
    assert p["mu"] == last_iterate_mu(**path, **curved) < path_mu(**path)
    assert "rounding" not in p
    assert "2403.00278" in plan.guarantee.theorem
    assert not plan.mechanism.sums_exactly(plan)


def test_a_step_too_long_for_the_last_iterate_is_certified_by_composition():
    plan = calibrate(NoisyGradient(weight=1.0, time=0.5), SPHERE, GaussianDP(10.0), n=100)
    coarse = dict(plan.parameters) | {"steps": 1.0, "step_size": plan.parameters["time"]}
    again = NoisyGradient().plan(plan.request, coarse)
    assert again.parameters["mu"] == pytest.approx(SPHERE.bounds["lipschitz"].value * math.sqrt(2 * 0.5), rel=1e-7)
    assert "composition" in again.guarantee.theorem


# ── weight and time together ───────────────────────────────────────────────────────────────────────────────


def test_weight_and_time_follow_the_formulas_of_mathematics_2():
    n = 1000
    plan = calibrate(NoisyGradient(), SPHERE, BUDGET, n=n)
    p, rate = plan.parameters, smallest_curvature(SPHERE)
    assert p["curvature"] == rate
    assert p["time"] * n * p["weight"] * rate == pytest.approx(3.0, rel=1e-9)
    assert p["weight"] == pytest.approx(MU**2 * n * rate / (2 * 3 * p["lipschitz"] ** 2), rel=0.02)
    assert p["mu"] <= MU * (1 + 1e-6)
    assert p["mu"] == pytest.approx(MU, rel=1e-6)
    assert p["step_size"] * n * p["weight"] * SPHERE.bounds["smoothness"].value <= STEP
    assert p["steps"] * p["step_size"] == p["time"]
    assert plan.heading == "noisy gradient steps"
    assert plan.requires == "noisy-gradient"
    assert plan.gamma == 0.0, "the path is its own law: nothing is kept back"


def test_beyond_the_largest_useful_weight_the_surplus_goes_to_time_until_nothing_of_the_start_is_left():
    relaxations = []
    for n in (1_000, 10_000, 30_000, 10**6):
        p = calibrate(NoisyGradient(), SPHERE, BUDGET, n=n).parameters
        assert p["weight"] <= LARGEST_WEIGHT
        relaxations.append(p["time"] * n * p["weight"] * p["curvature"])
    assert relaxations[0] == pytest.approx(3.0)
    assert 3.0 < relaxations[1] < relaxations[2] <= relaxations[3] * (1.0 + 1e-12), "up to rounding"
    assert relaxations[3] == pytest.approx(MOST_RELAXATIONS)
    assert p["weight"] == LARGEST_WEIGHT
    assert p["mu"] < MU, "what is left over stays unspent"


def test_given_a_weight_the_time_is_the_longest_and_given_a_time_the_weight_the_largest():
    n = 2000
    by_weight = calibrate(NoisyGradient(weight=0.5), SPHERE, BUDGET, n=n).parameters
    assert by_weight["weight"] == 0.5
    assert by_weight["mu"] == pytest.approx(MU, rel=1e-6)
    by_time = calibrate(NoisyGradient(time=by_weight["time"]), SPHERE, BUDGET, n=n).parameters
    assert by_time["weight"] == pytest.approx(0.5, rel=1e-6)
    with pytest.raises(PromiseRefused, match="not proven to imply"):
        calibrate(NoisyGradient(weight=0.5, time=by_weight["time"] * 1.01), SPHERE, BUDGET, n=n)


def test_a_larger_declared_effect_plans_a_longer_path_of_less_weight_at_the_same_promise():
    plain, one, three = (calibrate(NoisyGradient(effect=effect), SPHERE, BUDGET, n=1000) for effect in (None, 1.0, 3.0))
    assert plain.numbers == one.numbers, "an effect of 1 is what the design expects without one"
    assert three.parameters["curvature"] == smallest_curvature(SPHERE, 3.0)
    share = three.parameters["curvature"] / one.parameters["curvature"]
    assert 0.4 < share < 0.6
    assert three.parameters["weight"] == pytest.approx(share * one.parameters["weight"], rel=0.05)
    assert three.parameters["time"] == pytest.approx(one.parameters["time"] / share**2, rel=0.05)
    assert three.parameters["mu"] == pytest.approx(one.parameters["mu"], rel=1e-6)


def test_a_declared_effect_is_stored_with_the_plan_and_its_curvature_derived_again():
    plan = calibrate(NoisyGradient(effect=2), SPHERE, BUDGET, n=1000)
    stored = json.loads(json.dumps(plan.to_dict()))
    assert stored["mechanism"]["effect"] == 2.0
    assert plan_from_dict(stored) == plan
    for effect in (None, 1.0, 2.1):
        with pytest.raises(PromiseRefused, match="reference design at its effect"):
            plan_from_dict(stored | {"mechanism": stored["mechanism"] | {"effect": effect}})


def test_where_the_curvature_does_not_depend_on_the_predictor_a_declared_effect_changes_nothing():
    model = HuberRegression(2, data_norm=1.0, threshold=1.0, prior=Gaussian(scale=1.0))
    plain, declared = (calibrate(NoisyGradient(effect=effect), model, BUDGET, n=800) for effect in (None, 3.0))
    assert declared.numbers == plain.numbers


def lasting(plan):
    numbers = plan.parameters
    return plan.n * numbers["weight"] * numbers["curvature"] * numbers["time"]


def test_with_few_records_a_path_is_shorter_and_has_a_smaller_expected_error():
    from onedraw.planning.expected_errors import expected_error

    usual = [calibrate(NoisyGradient(relaxations=3.0), SPHERE, BUDGET, n=n) for n in (100, 300, 5000)]
    planned = [calibrate(NoisyGradient(), SPHERE, BUDGET, n=n) for n in (100, 300, 5000)]
    assert lasting(planned[0]) < lasting(planned[1]) < 2.5
    assert planned[2].parameters == usual[2].parameters, "with many records three relaxation times, or more"
    assert expected_error(planned[0]).private < 0.9 * expected_error(usual[0]).private
    several = calibrate(NoisyGradient(), SPHERE, BUDGET, n=300, draws=4)
    assert lasting(several) == pytest.approx(lasting(planned[1]), rel=0.02), "the mean of several is as good as one"


@pytest.mark.parametrize(("draws", "records"), [(8, 1), (1, 2), (4, 3)])
def test_draws_and_records_share_the_budget(draws, records):
    path = NoisyGradient(relaxations=3.0)
    one = calibrate(path, SPHERE, BUDGET, n=1000)
    many = calibrate(path, SPHERE, BUDGET, n=1000, draws=draws, records_per_person=records)
    assert many.guarantee.promise.mu == pytest.approx(many.parameters["mu"] * records * math.sqrt(draws), rel=1e-12)
    assert many.guarantee.promise.implies(BUDGET)
    assert many.parameters["weight"] == pytest.approx(one.parameters["weight"] / (draws * records**2), rel=0.2)


@pytest.mark.parametrize("budget", [GaussianDP(0.3), ZCDP(0.045), RenyiDP.at(4.0, 0.18), ApproxDP(1.0, 1e-5)], ids=str)
@pytest.mark.parametrize(
    "model",
    [
        SPHERE,
        Logistic(3, bounds=([0, -1, 2], [1, 1, 3]), prior=Gaussian(scale=2.0)),
        Softmax(2, bounds=(-1, 1), classes=["a", "b", "c"], prior=Gaussian(scale=1.0)),
        HuberisedHinge(2, data_norm=1.0, prior=Gaussian(scale=1.0)),
        HuberRegression(2, data_norm=1.0, threshold=1.0, prior=Gaussian(scale=1.0)),
        Quantile(1, bounds=(-1, 1), level=0.5, smoothing=0.2, prior=Gaussian(scale=1.0)),
        LogitNormalBernoulli(variance=4.0),
        LeastSquares(2, data_norm=1.0, response_bound=1.0, prior=Gaussian(scale=1.0, radius=1.0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_smooth_model_and_budget_is_planned_and_derived_again(model, budget):
    plan = calibrate(NoisyGradient(), model, budget, n=800)
    assert plan.guarantee.promise.implies(budget)
    assert plan.parameters["step_size"] * plan.parameters["smoothness"] <= STEP * (1 + 1e-12)
    stored = json.loads(json.dumps(plan.to_dict()))
    assert plan_from_dict(stored) == plan
    for name in plan.parameters:
        edited = json.loads(json.dumps(stored))
        edited["parameters"][name] *= 1.01
        with pytest.raises(PromiseRefused):
            plan_from_dict(edited)


# ── refusals ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("model", "budget", "words"),
    [
        (Hinge(2, data_norm=1.0, prior=Gaussian(scale=1.0)), BUDGET, "kink.*HuberisedHinge"),
        (GaussianMean(1.0, 1.0, 1.0), BUDGET, "exactly.*Gibbs"),
        (SPHERE, PureDP(1.0), r"some δ.*1e-10"),
        (SPHERE, ApproxDP(1.0, 0.0), "some δ"),
        (Tilted(1.0, 1.0), BUDGET, "Nothing public is known.*smooth loss"),
    ],
)
def test_what_no_path_can_keep_is_refused_with_a_remedy(model, budget, words):
    with pytest.raises(UnsupportedBudget, match=words):
        calibrate(NoisyGradient(), model, budget, n=10)


def test_badly_scaled_features_are_refused_rather_than_run_for_millions_of_steps():
    model = Logistic(2, bounds=([0.0, 0.0], [1e-2, 1e3]), prior=Gaussian(scale=1.0))
    with pytest.raises(PromiseRefused, match="Rescale the features"):
        calibrate(NoisyGradient(), model, BUDGET, n=1000)


@pytest.mark.parametrize(
    "options",
    [{"time": 0.0}, {"time": math.inf}, {"weight": -1.0}, {"weight": math.nan}, {"effect": 0.0}, {"effect": "large"}],
)
def test_time_weight_and_effect_are_positive_numbers(options):
    with pytest.raises(InvalidBudget):
        NoisyGradient(**options)


def test_an_effect_that_leaves_no_doubt_about_any_response_is_refused():
    assert calibrate(NoisyGradient(effect=100), SPHERE, BUDGET, n=1000).guarantee.promise.implies(BUDGET)
    with pytest.raises(WrongCall, match=r"at most 100.*Declare 1 to 3"):
        NoisyGradient(effect=101)


@pytest.mark.parametrize(
    "edit", [{"steps": 0.0}, {"steps": 1.5}, {"step_size": 0.0}, {"weight": math.nan}, {"steps": 1e9}]
)
def test_a_path_without_steps_or_noise_is_refused(edit):
    plan = calibrate(NoisyGradient(), SPHERE, BUDGET, n=100)
    with pytest.raises(PromiseRefused):
        NoisyGradient().plan(plan.request, dict(plan.parameters) | edit)


# ── the reference design ───────────────────────────────────────────────────────────────────────────────────


def test_on_the_sphere_the_curvature_is_a_one_dimensional_integral():
    z = np.linspace(-10, 10, 200_001)
    mass = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    logistic = (mass * special.expit(z) * special.expit(-z)).sum()
    exp_linear = (mass * special.expit(-np.abs(z)) / 2).sum()  # pq·(1 + e^{−|u|})/2 = min(p, q)/2
    model = Logistic(6, data_norm=math.sqrt(6.0), intercept=False, prior=Gaussian(scale=1.0))
    assert smallest_curvature(model) == pytest.approx(logistic, rel=1e-6)
    assert smallest_curvature(SPHERE) == pytest.approx(exp_linear, rel=1e-4)
    small = Logistic(6, data_norm=1.0, prior=Gaussian(scale=1.0))
    assert smallest_curvature(small) == pytest.approx(logistic / 6, rel=1e-6)
    large = Logistic(2, data_norm=10.0, prior=Gaussian(scale=1.0))
    assert smallest_curvature(large) == pytest.approx(logistic, rel=1e-6), "the intercept's direction is the weakest"


@pytest.mark.parametrize("effect", [0.5, 2.0, 3.0, 100.0])
def test_the_curvature_falls_with_the_declared_effect_as_the_integral_does(effect):
    u = np.linspace(-40, 40, 800_001)
    density = np.exp(-((u / effect) ** 2) / 2) / (effect * math.sqrt(2 * math.pi)) * (u[1] - u[0])
    logistic = (density * special.expit(u) * special.expit(-u)).sum()
    exp_linear = (density * special.expit(-np.abs(u)) / 2).sum()
    model = Logistic(6, data_norm=math.sqrt(6.0), intercept=False, prior=Gaussian(scale=1.0))
    assert smallest_curvature(model, effect) == pytest.approx(logistic, rel=1e-2)
    assert smallest_curvature(SPHERE, effect) == pytest.approx(exp_linear, rel=1e-3 if effect < 10 else 0.1)
    assert (smallest_curvature(SPHERE, effect) < smallest_curvature(SPHERE)) == (effect > 1)
    softmax = Softmax(2, data_norm=1.0, classes=[0, 1, 2], prior=Gaussian(scale=1.0))
    assert (smallest_curvature(softmax, effect) < smallest_curvature(softmax)) == (effect > 1)


@pytest.mark.parametrize("box", [(-1.0, 1.0), (0.0, 1.0), ([0.0, -1.0, 2.0], [1.0, 1.0, 3.0])], ids=str)
def test_on_a_box_the_curvature_agrees_with_brute_force(box):
    model = Logistic(3, bounds=box, prior=Gaussian(scale=1.0))
    generator = np.random.default_rng(7)
    lower, upper = (np.broadcast_to(np.asarray(end, dtype=float), 3) for end in box)
    rows = lower + (upper - lower) * generator.random((400_000, 3))
    scale = math.sqrt(((lower + upper) ** 2 / 4 + (upper - lower) ** 2 / 12).sum())
    u = (rows * generator.standard_normal(rows.shape)).sum(axis=1) / scale
    extended = np.column_stack([rows, np.ones(len(rows))])
    expected = (extended * (special.expit(u) * special.expit(-u))[:, None]).T @ extended / len(rows)
    assert smallest_curvature(model) == pytest.approx(np.linalg.eigvalsh(expected)[0], rel=0.03)


def test_with_many_features_the_smallest_eigenvalue_is_not_drowned_in_simulation_noise():
    few, many = (
        smallest_curvature(Logistic(d, bounds=(-1, 1), intercept=False, prior=Gaussian(scale=1.0))) for d in (2, 200)
    )
    assert many == pytest.approx(few, rel=0.1)
    assert many == pytest.approx(0.2066 / 3, rel=0.05)


def test_the_average_curvature_of_each_loss_is_the_one_its_response_gives():
    u = np.linspace(-4, 4, 32)
    p = special.expit(u)
    assert curvature_at(LogisticLoss(), u) == pytest.approx(p * (1 - p))
    assert curvature_at(ExpLinearLoss(), u) == pytest.approx(p * (1 - p) * (1 + np.exp(-np.abs(u))) / 2)
    noise = special.erf(0.7 / math.sqrt(2))
    huber = HuberRegression(1, data_norm=1.0, threshold=0.7, prior=Gaussian(scale=1.0))
    assert curvature_at(huber.kernel, u) == pytest.approx(np.full(32, noise), rel=0.02)
    assert smallest_curvature(LogitNormalBernoulli(variance=9.0)) == pytest.approx(0.20662, rel=1e-4)
    three = Softmax(2, data_norm=math.sqrt(2), classes=[0, 1, 2], intercept=False, prior=Gaussian(scale=1.0))
    two = Softmax(2, data_norm=math.sqrt(2), classes=[0, 1], intercept=False, prior=Gaussian(scale=1.0))
    assert 0.2 < smallest_curvature(three) < 1 / 3
    assert 0.3 < smallest_curvature(two) < 0.5, "two rows of coefficients: twice pq in their difference"
    assert Design(SPHERE.features).second_moments(lambda variances: None) is None


# ── what it buys ───────────────────────────────────────────────────────────────────────────────────────────


def root_mean_squared_error(model, *, weight, step_size, steps, n, effect, repetitions, generator):
    """Langevin with the plan's numbers on isotropic rows of length √d, all repetitions side by side."""
    d = model.dimension
    X = generator.standard_normal((repetitions, n, d))
    X *= math.sqrt(d) / np.linalg.norm(X, axis=2, keepdims=True)
    truth = generator.standard_normal((repetitions, d))
    truth *= effect / np.linalg.norm(truth, axis=1, keepdims=True)
    y = np.where(generator.random((repetitions, n)) < special.expit(np.einsum("rnd,rd->rn", X, truth)), 1.0, -1.0)
    theta, precision = np.zeros((repetitions, d)), model.prior.precision(d)
    for _ in range(int(steps)):
        slopes = model.kernel.slope(np.matmul(X, theta[:, :, None])[:, :, 0], y)
        gradient = weight * np.matmul(slopes[:, None, :], X)[:, 0, :] + precision * theta
        theta = theta - step_size * gradient + math.sqrt(2 * step_size) * generator.standard_normal((repetitions, d))
    return math.sqrt(((theta - truth) ** 2).sum(axis=1).mean())


@pytest.mark.statistical
def test_at_one_thousand_records_it_beats_the_exact_draw_of_the_gdp_rule_by_half():
    """Mathematics-2 B reports 0.235 at (1, 1e-5), n = 1000, d = 6, exp-linear; we ask for 0.27 and a factor 1.5."""
    n, generator = 1000, np.random.default_rng(6)
    p = calibrate(NoisyGradient(), SPHERE, BUDGET, n=n).parameters
    common = {"n": n, "effect": 1.0, "repetitions": 40, "generator": generator}
    path = root_mean_squared_error(SPHERE, weight=p["weight"], step_size=p["step_size"], steps=p["steps"], **common)
    exact = calibrate(Gibbs(), SPHERE, BUDGET, n=n).parameters
    step = STEP / exact["smoothness"]
    relaxed = 8.0 / (n * exact["weight"] * p["curvature"] + 1.0)
    draw = root_mean_squared_error(
        SPHERE, weight=exact["weight"], step_size=step, steps=math.ceil(relaxed / step), **common
    )
    print(f"noisy gradient {path:.3f}, exact draw of the gdp rule {draw:.3f}")
    assert path <= 0.27
    assert draw >= 1.5 * path
