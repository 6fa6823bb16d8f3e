"""The finite mechanism: its privacy by enumeration, its law against quadrature, and what it refuses."""

import itertools
import math

import numpy as np
import pytest

from onedraw import errors, models, samplers
from onedraw.methods import Gibbs, calibrate, plan_from_dict
from onedraw.methods.beta_divergence.mechanism import BetaDivergence
from onedraw.methods.candidates.mechanism import Candidates
from onedraw.methods.candidates.run import Selection
from onedraw.models import candidates as candidate_scores
from onedraw.models.candidates import BernoulliBeta, LikelihoodBeta, candidate_costs
from onedraw.models.likelihood import Bernoulli
from onedraw.models.likelihood.likelihood_model import BetaKernel, Linear
from onedraw.models.row_model import Encoded
from onedraw.privacy import ApproxDP, GaussianDP, PureDP
from onedraw.samplers import seeded_generator
from tests.methods.cases import largest_loss, log_laws

EPSILON = 1.5
KERNEL = BetaKernel(Bernoulli(), Linear(), None)


def logistic(features=1, *, scale=1.5, radius=None, intercept=False, data_norm=1.0):
    prior = models.Gaussian(scale=scale, radius=radius)
    return models.Logistic(features, data_norm=data_norm, intercept=intercept, prior=prior)


def simulated(n, d, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d))
    X *= math.sqrt(d) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, (generator.random(n) < 1.0 / (1.0 + np.exp(-X[:, 0]))).astype(float)


# ── privacy, by enumeration ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "mechanism",
    [
        Candidates(count=60, rounds=1),
        Candidates(of=BetaDivergence(beta=1.2), count=60, rounds=1),
        Candidates(of=Gibbs("bounded"), count=60, rounds=1),
        Candidates(count=8, rounds=2),
    ],
    ids=["optimal", "beta 1.2", "convex", "two rounds"],
)
def test_the_loss_of_every_adjacent_pair_is_within_epsilon(mechanism):
    model = logistic(radius=4.0 if isinstance(mechanism.of, Gibbs) else None)
    plan = calibrate(mechanism, model, PureDP(EPSILON), n=2)
    found = largest_loss(log_laws(plan, seed=1))
    assert found <= EPSILON + 1e-9
    assert found > 0.3 * EPSILON, "the universe is rich enough to show a fault"


def test_the_enumeration_catches_a_weight_that_is_too_large(monkeypatch):
    plan = calibrate(Candidates(count=60, rounds=1), logistic(scale=6.0), PureDP(EPSILON), n=2)
    honest = largest_loss(log_laws(plan, seed=1))
    original = candidate_scores.candidate_costs
    monkeypatch.setattr("onedraw.methods.candidates.layout.candidate_costs", lambda *a, **k: 2 * original(*a, **k))
    assert honest <= EPSILON < largest_loss(log_laws(plan, seed=1))


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("loss", [BernoulliBeta(2.4), BernoulliBeta(1.01), LikelihoodBeta(KERNEL, 2.4)])
def test_no_record_whatever_costs_more_than_the_width(loss):
    extreme = [0.0, -0.0, 1.0, -1e-300, 1e30, -1e300, math.inf, -math.inf, math.nan]
    records = np.array(list(itertools.product(extreme, repeat=2)))
    thetas = np.array([[0.0, 0.0], [1.0, -1.0], [1e30, 1e30], [-1e300, 2.0]])
    for x in records:
        for y in (-1.0, 1.0, math.nan):
            costs = candidate_costs(loss, thetas, Encoded(1, x[None, :], np.array([y])), width=1000)
            assert costs.dtype == np.int64
            assert ((costs >= 0) & (costs <= 1000)).all()


# ── the law ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_costs_are_the_rounded_losses_on_the_lattice():
    X, y = simulated(300, 4)
    thetas = np.random.default_rng(1).normal(size=(50, 4))
    beta, width = 2.3, 2**16
    p = 1.0 / (1.0 + np.exp(-(X @ thetas.T) * (2 * y - 1)[:, None]))
    losses = (p**beta + (1 - p) ** beta) / beta - p ** (beta - 1) / (beta - 1)
    expected = np.rint((losses - (1 / beta - 1 / (beta - 1))) * (beta - 1) * width).sum(axis=0)
    for loss in (BernoulliBeta(beta), LikelihoodBeta(KERNEL, beta)):
        costs = candidate_costs(loss, thetas, Encoded(300, X, 2 * y - 1), width=width)
        np.testing.assert_allclose(costs, expected, atol=20)  # of 300 records, in units of 2^−16 of a loss


def test_picks_follow_the_posterior():
    """d = 1, against quadrature; a posterior of twice the weight is told apart."""
    model, n = logistic(scale=1.0), 150
    X, y = simulated(n, 1)
    plan = calibrate(Candidates(count=1500, rounds=1), model, PureDP(1.0), n=n, draws=1)
    picks = Selection().run(plan.target(model.summarise((X, y))), seeded_generator(3), size=400).draws[:, 0]

    def quantiles(weight):
        grid, beta = np.linspace(-5, 5, 4001), plan.parameters["beta"]
        p = 1.0 / (1.0 + np.exp(-np.outer(grid, X[:, 0] * (2 * y - 1))))
        losses = ((p**beta + (1 - p) ** beta) / beta - p ** (beta - 1) / (beta - 1)).sum(axis=1)
        density = np.exp(-weight * (losses - losses.min()) - 0.5 * grid**2)
        return np.interp(np.sort(picks), grid, np.cumsum(density) / density.sum())

    def distance(weight):
        return np.abs(quantiles(weight) - (np.arange(400) + 0.5) / 400).max()

    weight = plan.parameters["weight"]
    critical = 2.2 / math.sqrt(400)  # Kolmogorov: exceeded once in 10^4 runs; the seed is fixed
    assert distance(weight) < critical < distance(3.0 * weight)


def test_rounds_and_all_picks(monkeypatch):
    X, y = simulated(400, 7)
    model = logistic(7, scale=2 / math.sqrt(7), data_norm=math.sqrt(7))
    plan = calibrate(Candidates(publish="picks", count=600), model, PureDP(1.0), n=400, draws=6)
    target = plan.target(model.summarise((X, y)))
    picks = Selection().run(target, seeded_generator(1), size=6).draws
    assert picks.shape == (6, 7)
    mean = Candidates(count=600, rounds=6)
    one = calibrate(mean, model, PureDP(1.0), n=400)
    assert one.parameters["width_6"] == plan.parameters["width_6"], "publishing the picks costs nothing more"
    draw = Selection().run(one.target(model.summarise((X, y))), seeded_generator(1)).draws[0]
    widths = [plan.parameters[f"width_{number}"] for number in range(1, 7)]
    np.testing.assert_allclose(draw, np.average(picks, axis=0, weights=widths))


def test_the_correction_is_public_and_undoes_the_repeated_pull_of_the_prior():
    X, y = simulated(2000, 12)
    model = logistic(12, scale=2 / math.sqrt(12), data_norm=math.sqrt(12))
    plan = calibrate(Candidates(publish="corrected"), model, PureDP(1.0), n=2000)
    target = plan.target(model.summarise((X, y)))
    picks = list(np.random.default_rng(0).normal(size=(target.rounds, 12)))
    factor = target.publish(picks)[0] / target.mean(picks)
    np.testing.assert_allclose(factor, factor[0])  # all curvatures are the same on the sphere
    a = (
        plan.n
        * plan.parameters["scaled_curvature"]
        * np.array([target.count_weight(w) / plan.n for w in target.widths])
    )
    assert factor[0] == pytest.approx(a.sum() / (1 + (a**2 / (a + 1)).sum()))
    pulled = (a**2 / (a + 1)).sum() / a.sum()
    assert abs(factor[0] * pulled - a.sum() / (a.sum() + 1)) < 0.02 < 0.1 < a.sum() / (a.sum() + 1) - pulled


def test_candidates_stay_inside_the_prior_s_ball():
    model = logistic(2, scale=1.0, radius=1.2)
    plan = calibrate(Candidates(of=Gibbs("bounded"), count=500, rounds=1), model, PureDP(1.0), n=50)
    thetas, _ = plan.target(model.summarise(simulated(50, 2))).propose(0, [], np.random.default_rng(0))
    assert len(thetas) == 500
    assert np.linalg.norm(thetas, axis=1).max() <= 1.2


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (models.Softmax(2, data_norm=1.5, classes=["a", "b", "c"], prior=models.Gaussian(scale=1.0)), ["a", "b", "c"]),
        (logistic(2, data_norm=1.5, intercept=True), [0, 1, 1]),
        (models.BinaryRegression(2, prior=models.Gaussian(scale=1.0)), [0, 1, 1]),
        (models.PoissonRegression(2, bounds=(-1, 1), prior=models.Gaussian(scale=1.0)), [0, 7, 123456]),
        (models.GaussianRegression(2, variance=0.5, prior=models.Gaussian(scale=1.0)), [0.1, -7.0, math.inf]),
    ],
    ids=["softmax", "logistic with intercept", "unbounded features", "counts", "known variance"],
)
def test_other_models_are_released_too(model, y):
    X = np.array([[0.1, 1.0], [-1.0, 0.3], [0.4, 0.2]])
    plan = calibrate(Candidates(count=2000), model, PureDP(2.0), n=3)
    draw = Selection().run(plan.target(model.summarise((X, y))), seeded_generator(0)).draws
    assert draw.shape == (1, len(model.parameter_names))
    assert np.isfinite(draw).all()


def test_blocks_shrink_where_memory_is_short(monkeypatch):
    X, y = simulated(100, 3)
    thetas, encoded = np.random.default_rng(0).normal(size=(70, 3)), Encoded(100, X, 2 * y - 1)
    expected = candidate_costs(BernoulliBeta(2.0), thetas, encoded, width=500)
    original, asked = candidate_scores._in_one_pass, []

    def short(records, statistic, *others):
        asked.append(statistic.together)
        if statistic.together > 4:
            raise MemoryError
        return original(records, statistic, *others)

    monkeypatch.setattr(candidate_scores, "_in_one_pass", short)
    np.testing.assert_allclose(candidate_costs(BernoulliBeta(2.0), thetas, encoded, width=500), expected, atol=2)
    assert asked[0] == 70
    assert 1 < asked[-1] <= 4


def test_an_error_that_is_not_about_memory_is_not_swallowed(monkeypatch):
    def broken(*arguments):
        raise RuntimeError("something else")

    monkeypatch.setattr(candidate_scores, "_in_one_pass", broken)
    with pytest.raises(RuntimeError, match="something else"):
        candidate_costs(BernoulliBeta(2.0), np.zeros((1, 1)), Encoded(1, np.zeros((1, 1)), np.ones(1)), width=1)


# ── plans ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget", [PureDP(1.0), PureDP(1e-3), PureDP(30.0), ApproxDP(0.7, 1e-6), ApproxDP(0.3, 0.0)])
def test_the_whole_budget_is_spent_and_never_more(budget):
    plan = calibrate(Candidates(), logistic(2, scale=1.0), budget, n=1000)
    epsilon = plan.guarantee.promise.epsilon(getattr(budget, "stated_delta", 0.0))
    assert 0.9999 * budget.stated_epsilon <= epsilon <= budget.stated_epsilon
    assert plan_from_dict(plan.to_dict()) == plan


def test_draws_and_records_per_person_share_the_budget():
    model = logistic(2, scale=1.0)
    one = calibrate(Candidates(count=2000), model, PureDP(0.1), n=500)
    shared = calibrate(Candidates(count=2000), model, PureDP(0.6), n=500, draws=2, records_per_person=3)
    assert shared.parameters["epsilon_1"] == pytest.approx(one.parameters["epsilon_1"], rel=1e-4)
    assert shared.guarantee.promise.implies(PureDP(0.6))


@pytest.mark.parametrize(
    "name", ["width_1", "bits", "candidates", "weight", "beta", "expected_error", "scaled_curvature", "rounds"]
)
def test_an_edited_plan_is_refused(name):
    stored = calibrate(Candidates(), logistic(2, scale=1.0), PureDP(1.0), n=400).to_dict()
    stored["parameters"][name] *= 2.0
    with pytest.raises(errors.PromiseRefused):
        plan_from_dict(stored)


def test_a_release_is_exact_and_verifies():
    import onedraw as od

    model = logistic(2, scale=1.0, intercept=True)
    plan = calibrate(Candidates(), model, PureDP(1.0), n=80)
    release = od.release(plan, simulated(80, 2))
    assert release.certificate.sentence.startswith("Exact: this draw is (ε = 1)-differentially private")
    assert od.verify(release.certificate).answer == "consistent"
    assert not any("arithmetic is real" in assumption.statement for assumption in release.certificate.assumptions)


# ── what is refused ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", [{"count": 0}, {"rounds": 0}, {"count": 2.5}, {"publish": "all"}, {"of": Gibbs()}])
def test_options_that_mean_nothing_are_refused(options):
    with pytest.raises(errors.WrongCall):
        Candidates(**options)


def test_a_published_calibration_is_refused():
    with pytest.raises(errors.WrongCall, match="not proven"):
        Candidates(of=BetaDivergence("jewson", as_published=True))


def test_budgets_it_cannot_keep_are_refused():
    with pytest.raises(errors.UnsupportedBudget, match="PureDP"):
        calibrate(Candidates(), logistic(), GaussianDP(0.1), n=10)
    with pytest.raises(errors.PromiseRefused, match="larger budget"):
        calibrate(Candidates(), logistic(), PureDP(1e-12), n=10)
    with pytest.raises(errors.PromiseRefused):
        calibrate(Candidates(of=BetaDivergence(beta=2.0, weight=3.0)), logistic(), PureDP(1.0), n=10)


def test_models_it_cannot_lay_out_are_refused():
    gaussian = models.Gaussian(scale=1.0)
    for model in (
        models.BetaBernoulli(prior=(1, 1)),
        models.Hinge(1, data_norm=1.0, prior=gaussian),
    ):
        with pytest.raises(errors.UnsupportedBudget):
            calibrate(Candidates(), model, PureDP(1.0), n=10)
    for task in ({"task": "classification"}, {"task": "regression", "variance_floor": 0.1}):
        with pytest.raises(errors.UnsupportedBudget, match=r'network.*accept="estimated".*accept="assumed"'):
            calibrate(Candidates(), models.Network(1, hidden=2, **task), PureDP(1.0), n=10)
    with pytest.raises(errors.UnsupportedBudget, match="ball"):
        calibrate(Candidates(of=Gibbs("bounded")), logistic(), PureDP(1.0), n=10)


@pytest.mark.parametrize("sampler", [samplers.Exact(), samplers.Proximal(gamma=1e-9)])
def test_another_sampler_is_refused_before_anything_is_spent(sampler):
    import onedraw as od

    plan = calibrate(Candidates(), logistic(), PureDP(1.0), n=5)
    with pytest.raises(errors.ExactnessRefused, match="Leave out sampler"):
        od.release(plan, simulated(5, 1), sampler=sampler)


def test_picks_need_as_many_draws_as_rounds():
    with pytest.raises(errors.WrongCall, match="draws"):
        calibrate(Candidates(publish="picks", rounds=9), logistic(), PureDP(1.0), n=10, draws=2)
