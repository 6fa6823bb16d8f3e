"""Every mechanism of the project against its promise, on exact profiles; and the faults planted in each are caught."""

from dataclasses import dataclass

import numpy as np
import pytest

import onedraw as od
from onedraw import audit
from onedraw.audit.cases import examine, smallest_caught_factor
from onedraw.audit.cases.case import DensityCase, Pair, words
from onedraw.audit.cases.losses import flips, loss_of, records_of
from onedraw.audit.cases.predictor import PredictorCase, near_a_top
from onedraw.audit.comparison import gaussian_mu, share
from onedraw.methods.catalog import case_for, cases, every_case

BUDGET = od.ApproxDP(1.0, 1e-5)

ATTAINED = {
    "randomised response",
    "diffused, beta-bernoulli",
    "concentrated, beta-bernoulli",
    "direct, beta-bernoulli",
    "gibbs gdp, gaussian-mean",
    "diffused, gaussian-mean",
    "gibbs gdp, linear-loss",
    "noisy-gradient, linear-loss",
    "candidates, binary-regression, two candidates",
}
"""Where the issue asks for faults of 30 % to be caught: the bound is attained."""


def test_no_promise_is_broken(examined):
    assert {name: str(one.report.violation) for name, one in examined.items() if not one.passed} == {}


def test_every_mechanism_and_rule_has_a_case(examined):
    from onedraw.methods import Mechanism
    from onedraw.methods.beta_divergence.mechanism import RULES
    from onedraw.methods.gibbs.mechanism import RULES as GIBBS_RULES

    known = {one.case.mechanism for one in examined.values()}
    # of the package: a page of the documentation that ran in this process has one of its own
    ours = [name for name, one in Mechanism.members().items() if one.__module__.startswith("onedraw.methods")]
    assert len(ours) >= 12
    for name in ours:
        assert any(mechanism.startswith(words(name)) for mechanism in known), name
    assert {f"gibbs {rule}" for rule in GIBBS_RULES} <= known
    assert {f"beta-divergence {rule}" for rule in RULES} <= known


def test_every_baseline_has_a_case_of_its_own_and_one_for_any_plan():
    """Of all names of the room, whether something loaded them or not."""

    from onedraw import baselines
    from onedraw.methods import Mechanism

    found = (getattr(baselines, name) for name in baselines.__all__)
    room = {one for one in found if isinstance(one, type) and issubclass(one, Mechanism)}
    assert len(room) >= 5
    budgets = (od.PureDP(1.0), od.ApproxDP(1.0, 1e-5))
    built = [one for budget in budgets for one in cases("baselines", budget)]
    assert {type(one.plan.mechanism) for one in built} == room
    assert [one.name for one in built if type(case_for(one.plan)) is not type(one)] == []


def test_bounds_that_are_said_to_be_attained_are(examined):
    gaps = {name: one.gap for name, one in examined.items() if one.case.attained}
    assert {name: gap for name, gap in gaps.items() if not 1.0 - 1e-6 <= gap < 1.01} == {}
    assert set(gaps) >= ATTAINED


@pytest.mark.parametrize("name", sorted(ATTAINED))
def test_a_fault_of_one_percent_is_caught_where_the_bound_is_attained(examined, name):
    one = examined[name]
    factor = smallest_caught_factor(one.case, one.pair, gap=one.gap)
    assert 1.0 < factor < 1.01
    assert one.case.profile(one.pair, 1.0).breaks(one.case.promise) is None
    assert one.case.profile(one.pair, 1.3).breaks(one.case.promise) is not None


def test_where_a_bound_is_not_attained_a_larger_fault_is_needed_and_caught(examined):
    one = examined["gibbs theorem7, linear-loss"]
    factor = smallest_caught_factor(one.case, one.pair, gap=one.gap)
    # the weights of methods/gibbs/proof.md: 0.134026 by the exact profile, 0.102029 by Theorem 7 (both less the reserve γ)
    assert factor == pytest.approx(0.134026 / 0.102029, rel=5e-3)
    assert one.case.profile(one.pair, 0.99 * factor).breaks(one.case.promise) is None


def test_the_smallest_caught_factor_is_none_where_nothing_is_caught():
    class Blind:
        delta, orders = 0.0, ()
        promise = od.PureDP(1.0)

        def profile(self, pair, factor=1.0):
            return audit.finite_profile([0.5, 0.5], [0.5, 0.5])

    assert smallest_caught_factor(Blind(), Pair("same", [0], [1])) is None


# ── formulas against each other ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class PlaneCase(DensityCase):
    """Two parameters and any rows: a law on the plane."""

    def logdensity(self, records, factor=1.0):
        model = self.plan.model
        unique, counts = np.unique(np.column_stack(records_of(model, records)), axis=0, return_counts=True)
        weight, phi = self.numbers(factor)["weight"], loss_of(model)
        precision, mean = model.prior.precision(2), model.prior.location(2)

        def density(thetas):
            total = -0.5 * ((thetas - mean) ** 2) @ precision
            for record, count in zip(unique, counts, strict=True):
                total = total - weight * count * phi(thetas @ record[:2], record[2])
            return total

        return density

    def domain(self, pair, factor):
        half = 12.0 * float(self.plan.model.prior.precision(2).min()) ** -0.5
        low, high = np.array([-half, -half]), np.array([half, half])
        for _ in range(3):  # narrow the box to where there is something to see
            axes = [np.linspace(low[k], high[k], 161) for k in range(2)]
            points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
            near = near_a_top(self.logdensity(records, factor)(points) for records in (pair.first, pair.second))
            step = np.array([axis[1] - axis[0] for axis in axes])
            low, high = points[near].min(axis=0) - step, points[near].max(axis=0) + step
        return tuple((float(a), float(b)) for a, b in zip(low, high, strict=True))


def test_a_direction_of_the_plane_says_all_that_the_plane_says():
    """Two coefficients, one row: the law of u = θᵀx has the profile of the law of θ (a wrong one has not)."""
    model = od.models.Logistic(1, bounds=(-1, 1), prior=od.Gaussian(scales=(2.0, 0.5), mean=(0.3, -0.2)))
    plan = od.calibrate(od.Gibbs("gdp"), model, od.ApproxDP(4.0, 1e-5), n=3)
    pairs = flips(model, 3)
    line, plane = PredictorCase(plan, pairs, ""), PlaneCase(plan, pairs, "")
    for pair in pairs:
        one, other = line.profile(pair), plane.profile(pair)
        for epsilon in (0.0, 0.3, 1.0):
            assert one.delta(epsilon) == pytest.approx(other.delta(epsilon), abs=2e-6)
        assert abs(line.profile(pair, 1.1).delta(0.3) - other.delta(0.3)) > 1e-3


def test_the_share_of_two_categories_says_all_that_the_histogram_says():
    model = od.models.DirichletCategorical(prior=(3.0, 4.0, 5.0))
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(3.0, 1e-4), n=4)
    case = case_for(plan)
    pair = Pair("", [2, 2, 2, 0], [2, 2, 2, 1])

    def whole_law(records):
        """In (s, t) with p = (s·t, s·(1−t), 1−s)."""
        alpha = case.parameters(records, 1.0)

        def density(points):
            s, t = points[:, 0], points[:, 1]
            return np.log(np.stack([s * t, s * (1 - t), 1 - s], axis=1)) @ (alpha - 1.0) + np.log(s)

        return density

    whole = audit.exact_profile(whole_law(pair.first), whole_law(pair.second), ((0.0, 1.0), (0.0, 1.0)))
    for epsilon in (0.0, 0.3, 1.0):
        assert case.profile(pair).delta(epsilon) == pytest.approx(whole.delta(epsilon), abs=1e-6)


def test_the_grid_of_a_path_agrees_with_its_closed_form_for_a_nearly_linear_loss():
    """The Huberised hinge far from its kink is linear, so the last iterate is Gaussian with known moments."""
    model = od.models.HuberisedHinge(1, width=0.5, bounds=(-0.01, 0.01), intercept=False, prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(od.NoisyGradient(time=1.0), model, BUDGET, n=2)
    case = case_for(plan)
    numbers = plan.parameters
    c = 1.0 - numbers["step_size"]
    steps = int(numbers["steps"])
    distance = 2 * numbers["weight"] * 0.01 * numbers["step_size"] * (1 - c**steps) / (1 - c)
    deviation = np.sqrt(2 * numbers["step_size"] * (1 - c ** (2 * steps)) / (1 - c**2))
    found = gaussian_mu(case.profile(case.pairs[0]).delta(0.0), 0.0)
    assert found == pytest.approx(distance / deviation, rel=1e-3)


@pytest.mark.parametrize("radius", [None, 2.0])
def test_the_slice_of_a_ball_is_that_of_many_draws(radius):
    """In three dimensions the density of u = θᵀx under the prior, against draws of the prior itself (α ≈ 1e-6)."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    generator = np.random.default_rng(seed)
    model = od.models.Logistic(3, data_norm=1.0, intercept=False, prior=od.Gaussian(scale=1.5, radius=radius))
    plan = od.calibrate(od.Gibbs("gdp"), model, BUDGET, n=1)
    case = case_for(plan)
    thetas = 1.5 * generator.standard_normal((200_000, 3))
    if radius is not None:
        thetas = thetas[np.linalg.norm(thetas, axis=1) <= radius]
    u = thetas @ case.row
    grid = np.linspace(*(case.domain(case.pairs[0], 1.0)[0]), 4001)
    mean, variance = case._prior
    density = np.exp(case._log_slice(grid) - (grid - mean) ** 2 / (2 * variance))
    distribution = np.cumsum(density) / density.sum()
    distance = np.abs(np.interp(np.sort(u), grid, distribution) - np.arange(1, len(u) + 1) / len(u)).max()
    assert distance < 2.7 / np.sqrt(len(u)) + 5e-4
    narrower = np.abs(np.interp(np.sort(1.1 * u), grid, distribution) - np.arange(1, len(u) + 1) / len(u)).max()
    assert narrower > 2.7 / np.sqrt(len(u)) + 5e-4


# ── the measures themselves ────────────────────────────────────────────────────────────────────────────────


def test_the_gaussian_measure_gives_back_mu():
    pair = audit.exact_profile(lambda x: -0.5 * x[:, 0] ** 2, lambda x: -0.5 * (x[:, 0] - 0.7) ** 2, [(-15, 15)])
    for epsilon in (0.0, 0.5, 1.5):
        assert gaussian_mu(pair.delta_bracket(epsilon)[0], epsilon) == pytest.approx(0.7, rel=1e-5)


def test_epsilon_from_below_stays_below_and_comes_close():
    pair = audit.exact_profile(lambda x: -0.5 * x[:, 0] ** 2, lambda x: -0.5 * (x[:, 0] - 0.7) ** 2, [(-15, 15)])
    truth = od.GaussianDP(0.7).epsilon(1e-4)
    assert truth * 0.999 < pair.epsilon_bracket(1e-4)[0] <= truth


def test_share_is_what_the_profile_calls_gap(examined):
    for name in ("diffused, gaussian-mean", "gibbs bounded, logistic", "gibbs theorem7, gaussian-mean"):
        one = examined[name]
        assert 1.0 / share(
            one.profile, one.case.promise, delta=one.case.delta, orders=one.case.orders
        ) == pytest.approx(one.profile.gap(one.case.promise), rel=2e-3)


# ── the catalogue ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_model_or_mechanism_is_refused_with_the_known_ones():
    with pytest.raises(od.errors.WrongCall, match="choice, classes, count"):
        cases("cubic", BUDGET)
    with pytest.raises(od.errors.WrongCall, match="diffused"):
        cases("proportion", BUDGET, mechanism="gibbs")


def test_a_budget_no_mechanism_keeps_is_refused():
    with pytest.raises(od.errors.PromiseRefused):
        cases("duration", od.PureDP(1.0))


def test_a_mechanism_that_cannot_keep_the_budget_is_left_out():
    names = {case.mechanism for case in cases("linear", od.ApproxDP(20.0, 1e-5))}
    assert "gibbs gdp" in names
    assert "gibbs corollary8" not in names  # errata 16: false from ε ≈ 9 on


def test_the_case_of_several_draws_is_that_of_one():
    model = od.models.GaussianMean(bound=2.0, variance=1.0, prior_count=1.0, dim=3)
    plan = od.calibrate(od.Diffused(), model, BUDGET, n=5, draws=4)
    case = case_for(plan)
    assert case.promise.mu < plan.guarantee.promise.mu
    assert examine(case, thorough=False).gap == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    ("mechanism", "model", "budget", "n"),
    [
        (od.Gibbs("gdp"), od.models.Logistic(6, bounds=(-1, 1), prior=od.Gaussian(scale=1.0)), BUDGET, 1000),
        (od.Gibbs("bounded"), od.models.Logistic(4, bounds=(0, 1), prior=od.Gaussian(scale=1.0, radius=2.0)), BUDGET, 200),
        (od.NoisyGradient(), od.models.Logistic(3, bounds=(-1, 1), loss="exp-linear", prior=od.Gaussian(scale=1.0)), BUDGET, 30),
        (od.Candidates(), od.models.BinaryRegression(2, prior=od.Gaussian(scale=1.0)), od.PureDP(1.0), 50),
        (od.BetaDivergence(), od.models.Logistic(2, bounds=(-1, 1), prior=od.Gaussian(scale=3.0)), od.PureDP(1.0), 50),
        (od.Diffused(), od.models.BetaBernoulli(prior=(2, 3), lower=-4.0, upper=4.0), BUDGET, 25),
        (od.Gibbs("bounded"), od.models.LeastSquares(2, response_bound=2.0, bounds=(-1, 1), prior=od.Gaussian(scale=1.0, radius=1.0)), od.PureDP(1.0), 20),
    ],
)  # fmt: skip
def test_any_plan_can_be_turned_into_a_case(mechanism, model, budget, n):
    plan = od.calibrate(mechanism, model, budget, n=n)
    one = examine(case_for(plan), thorough=False)
    assert one.passed
    assert 1.0 - 1e-6 <= one.gap < 12.0


def test_a_plan_without_a_formula_is_refused_in_words():
    model = od.models.Softmax(2, classes=("a", "b", "c"), bounds=(-1, 1), prior=od.Gaussian(scale=1.0))
    with pytest.raises(od.errors.WrongCall, match="Softmax"):
        case_for(od.calibrate(od.Gibbs("gdp"), model, BUDGET, n=10))


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (5.0, 1e-3), (20.0, 1e-5)])
def test_no_promise_is_broken_at_other_budgets(epsilon, delta):
    found = [examine(case, thorough=False) for case in every_case(od.ApproxDP(epsilon, delta))]
    assert [one.case.name for one in found if not one.passed] == []
    assert {one.case.name: one.gap for one in found if one.case.attained and not 1.0 - 1e-6 <= one.gap < 1.02} == {}


@pytest.mark.slow
def test_a_search_over_all_records_finds_nothing_worse_than_half_for_logistic_regression():
    """Three rows in [−1, 1] with labels, intercept and slope: the worst pair found attains less than the promise, and
    hardly more than the flip of one label."""
    model = od.models.Logistic(1, bounds=(-1, 1), prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(od.Gibbs("gdp"), model, BUDGET, n=3)
    flip = flips(model, 3)[1]
    case = PlaneCase(plan, (flip,), "")

    def records(rows):
        return rows[:, :1], rows[:, 1].astype(int).tolist()

    def score(first, second):
        return share(case.profile(Pair("", records(first), records(second))), case.promise)

    start = tuple(np.column_stack([data[0], data[1]]) for data in (flip.first, flip.second))
    domain = audit.Product(audit.Box([-1.0], [1.0]), audit.Finite([[0.0], [1.0]]))
    found = audit.worst_pair(score, domain, 3, generator=np.random.default_rng(5), evaluations=60, start=start)
    assert score(*start) <= found.value < 0.6
