"""KNG: whole norms that one record moves by at most 2V, the law of the pick, coverage, refusals and certificates."""

import math

import numpy as np
import pytest
from scipy import special, stats

import onedraw as od
from onedraw.baselines import KNG
from onedraw.baselines.gradient_norms import GradientNorms, GradientSteps, whole_norms
from onedraw.baselines.kng import Coverage, NormTarget, private_error
from onedraw.errors import CertificateRejected, InvalidModel, PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods import plan_from_dict
from onedraw.methods.perturbed_mode.mechanism import PerturbedMode
from onedraw.models.compute import jax
from onedraw.samplers.selection import select
from tests.baselines.cases import ODD

PRIOR = od.Gaussian(scale=1.0)
LINE = od.models.Logistic(1, bounds=(-1, 1), intercept=False, loss="exp-linear", prior=PRIOR)
SPACE = od.models.Logistic(3, data_norm=math.sqrt(3.0), intercept=False, loss="exp-linear", prior=PRIOR)


@pytest.fixture(scope="module")
def plan():
    return od.calibrate(KNG(), LINE, od.PureDP(1.0), n=200)


def records(n=200, seed=1):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1.0, 1.0, (n, 1))
    return X, (generator.random(n) < special.expit(X[:, 0])).astype(int)


# ── one record ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.oracle
def test_no_replacement_moves_a_score_by_more_than_2v_and_some_move_it_by_nearly_all():
    """10⁵ of them in three dimensions, from sums as a data set has them; whole numbers throughout."""
    count, largest = 100_000, 4096
    generator = np.random.default_rng(20261116)
    theta = generator.standard_normal(3)

    def steps(directions, labels):
        """v of each record, by the statistic that a release adds up."""
        X = np.float32(math.sqrt(3.0) * directions / np.linalg.norm(directions, axis=1, keepdims=True))
        statistic = GradientSteps(SPACE.kernel, SPACE.bounds["lipschitz"].value, 1)
        one = jax.vmap(
            lambda x, y: statistic.block(
                x[None], y[None], np.ones(1), np.float32(theta[None]), jax.numpy.asarray(largest)
            )
        )
        return np.asarray(one(X, np.float32(labels)))[:, 0].astype(np.int64)

    directions, labels = generator.standard_normal((count, 3)), generator.choice([-1.0, 1.0], count)
    others = generator.integers(-30 * largest, 30 * largest, (count, 3))
    others[: count // 2] = np.rint(8 * largest * theta / np.linalg.norm(theta))  # where the norm's gradient is known
    directions[: count // 4], labels[: count // 4] = theta + 0.01 * directions[: count // 4], -1.0
    first, second = steps(directions, labels), steps(-directions, labels)
    assert (first**2).sum(axis=1).max() <= largest**2
    moved = np.abs(whole_norms(others + first) - whole_norms(others + second))
    assert moved.max() <= 2 * largest
    assert moved.max() > 0.9 * 2 * largest


def test_a_gradient_longer_than_declared_counts_as_none():
    """Of a loss steeper than its bound: no record's steps are longer than V, whatever the loss says."""
    X, y = (np.float32(part) for part in records())
    steep = GradientSteps(LINE.kernel, LINE.bounds["lipschitz"].value / 4.0, 1)
    one = jax.vmap(
        lambda x, label: steep.block(
            x[None], label[None], np.ones(1), np.zeros((1, 1), np.float32), jax.numpy.asarray(512)
        )
    )
    steps = np.abs(np.asarray(one(X, 2 * y - 1)))
    assert 0.0 < steps.max() <= 512
    assert np.any(steps[np.abs(X[:, 0]) > 0.6] == 0.0)


@pytest.mark.parametrize("cell", [*ODD, [1.0, 2.0], b"\x00"])
def test_an_odd_cell_neither_fails_nor_moves_a_score_by_more_than_2v(plan, cell):
    X, y = records()
    rows, labels = [list(row) for row in X], list(y)
    thetas = np.random.default_rng(3).standard_normal((200, 1))
    before = plan.target(LINE.summarise((X, y))).costs(0, thetas)
    for place in ("row", "label"):
        if place == "row":
            rows[5][0] = cell
        else:
            labels[5] = cell
        after = plan.target(LINE.summarise((rows, labels))).costs(0, thetas)
        assert np.abs(after - before).max() <= 2 * int(plan.parameters["width"])


def test_norms_are_whole_parts_beyond_64_bits():
    sums = np.array([[3, 4, 0], [2**40 + 1, 2**41, -(2**41)], [0, 0, 0], [-(2**61), 1, 1]])
    assert whole_norms(sums).tolist() == [5, math.isqrt((2**40 + 1) ** 2 + 2**83), 0, 2**61]


# ── the law ──────────────────────────────────────────────────────────────────────────────────────────────────


def quadratic(dimension, n=600, bits=14, largest=4096):
    """Squares on rows along the axes, all responses 0: the gradient is n·θ/d, next to no prior."""
    model = od.models.LeastSquares(
        dimension, data_norm=1.0, intercept=False, response_bound=1.0, prior=od.Gaussian(scale=1e6, radius=4.0)
    )
    X = np.tile(np.eye(dimension), (n // dimension, 1))
    norms = GradientNorms(model, model.bounds["lipschitz"].value, largest)
    return norms, NormTarget(norms, model.summarise((X, np.zeros(n))), bits, 1)


@pytest.mark.statistical
def test_on_a_line_with_a_linear_gradient_the_pick_is_two_sided_geometric():
    """Candidates so many steps apart that scores are whole multiples: the law by its closed form, then picks (z < 5); a weight
    twice as large, ε/Δ, is rejected (z > 5)."""
    norms, target = quadratic(1)
    place, gap = np.arange(-40, 41), 3
    ratio = math.exp(-math.ldexp(600 * gap, -14))
    law = (1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(place)
    thetas = (place * gap / norms.scale)[:, None]
    costs = target.costs(0, thetas)
    assert np.array_equal(costs, 600 * gap * np.abs(place))
    assert np.allclose(target.probabilities(thetas), law / law.sum(), rtol=1e-12)
    generator = np.random.default_rng(5)
    wide, far = costs * 4, np.abs(place)  # four times as steep: picks within the candidates
    picks = far[[select(wide, generator, bits=14) for _ in range(2000)]]
    for factor, caught in ((1, False), (2, True)):
        chances = special.softmax(-np.ldexp(wide * float(factor), -14))
        mean, square = chances @ far, chances @ far**2
        z = (picks.mean() - mean) / math.sqrt((square - mean**2) / len(picks))
        assert (abs(z) > 5.0) == caught, z


@pytest.mark.oracle
@pytest.mark.parametrize(("dimension", "median"), [(1, 0.693147), (2, 1.678347), (3, 2.674060)])
def test_the_gradient_at_the_pick_has_a_gamma_norm(dimension, median):
    """On a quadratic loss, uniform candidates in a ball of 14 scales: ‖ζ‖/(2Δ/ε) is Gamma(d)."""
    norms, target = quadratic(dimension)
    scale = math.ldexp(1.0, 14) / norms.scale  # of the gradient: 2Δ/ε with 4V·2^−b = ε
    generator = np.random.default_rng(8)
    directions = generator.standard_normal((50_000, dimension))
    radii = 14.0 * generator.random(50_000) ** (1.0 / dimension)
    thetas = directions / np.linalg.norm(directions, axis=1, keepdims=True) * radii[:, None] * scale * dimension / 600
    law = target.probabilities(thetas)
    assert law @ (radii <= median) == pytest.approx(0.5, abs=0.03)
    assert law @ radii == pytest.approx(dimension, rel=0.03)
    assert math.sqrt(law @ radii**2) == pytest.approx(math.sqrt(dimension * (dimension + 1)), rel=0.03)


def test_reference_values_of_the_law():
    assert private_error(6, 1.0, 1.0) == pytest.approx(6.480741, abs=1e-6)
    assert stats.gamma(6).ppf([0.5, 0.95]) == pytest.approx([5.670161, 10.513035], abs=1e-6)
    scale = 2.0 * math.sqrt(6.0)  # 2Δ/ε, Δ = r: the exp-linear loss on rows of norm √6
    found = [private_error(6, scale, n * 0.163) for n in (1000, 4000)]
    assert found == pytest.approx([0.19478, 0.04869], abs=1e-5)


def test_the_noise_is_that_of_the_pure_perturbed_mode_times_what_the_statement_says():
    """The scales of both plans at d = 3, n = 4000, ε = 1: 2·0.99·(1 − κ/ε). Deviations of draws: benchmarks/kng.py."""
    mode = od.calibrate(PerturbedMode(intervals=False, measured=False), SPACE, od.PureDP(1.0), n=4000).parameters
    knorm = od.calibrate(KNG(count=500_000), SPACE, od.PureDP(1.0), n=4000).parameters
    scale = math.ldexp(knorm["lipschitz"] / knorm["width"], int(knorm["bits"])) / math.sqrt(
        3.0
    )  # rows of norm 1, as the fit has them
    assert scale / mode["mode_noise"] == pytest.approx(2.0 * 0.99 * (1.0 - mode["kappa"]), rel=5e-3)


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.PureDP(0.01), od.PureDP(20.0), od.ApproxDP(1.0, 1e-6), od.ZCDP(0.1), od.BoundedRange(1.0)])  # fmt: skip
def test_all_of_a_budget_is_spent_and_plans_are_read_back(budget):
    plan = od.calibrate(KNG(), LINE, budget, n=1000)
    assert plan.guarantee.promise.implies(budget)
    if budget == od.PureDP(1.0):
        assert plan.parameters["width"] * 4 / 2 ** plan.parameters["bits"] == 1.0
        assert plan.guarantee.promise == od.PureDP(1.0)
    assert plan_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    "change", [{"width": 2}, {"bits": 1.2}, {"candidates": 2}, {"lipschitz": 0.5}, {"epsilon_1": 0.5}, {"curvature": 1.1}, {"rounds": 2}, {"coverage_radius": 0.9}, {"private_error": 0.9}]
)  # fmt: skip
def test_numbers_that_were_changed_are_not_accepted(plan, change):
    stored = plan.to_dict()
    stored["parameters"] |= {name: stored["parameters"][name] * factor for name, factor in change.items()}
    with pytest.raises((CertificateRejected, PromiseRefused)):
        plan_from_dict(stored)


def test_a_plan_of_another_machine_whose_logarithms_round_otherwise_is_accepted(plan):
    stored = plan.to_dict()
    stored["parameters"] |= {
        name: stored["parameters"][name] * (1.0 + 1e-12) for name in ("coverage_radius", "private_error", "curvature")
    }
    assert plan_from_dict(stored).parameters == stored["parameters"]


def test_several_draws_and_records_of_a_person_share_the_budget(plan):
    for shared in ({"draws": 4}, {"records_per_person": 4}):
        other = od.calibrate(KNG(), LINE, od.PureDP(1.0), n=200, **shared).parameters
        assert other["epsilon_1"] == pytest.approx(plan.parameters["epsilon_1"] / 4.0)
        assert other["private_error"] == pytest.approx(4.0 * plan.parameters["private_error"], rel=1e-3)


def test_coverage_is_planned_and_too_little_is_refused_with_the_number():
    coverage = Coverage(SPACE, 4000, math.sqrt(3.0) / 2, 0.1626, 131072, 19)
    assert coverage.radius(1_000_000) == pytest.approx(
        (4.0 / (1e6 * (2 * math.pi) ** -1.5 * 4 * math.pi / 3)) ** (1 / 3)
    )
    assert coverage.planned(None) == 1_000_000  # as many as can be scored with 4,000 records
    with pytest.raises(PromiseRefused, match=r"10,000 candidates lie 0\.115 apart.*0\.07.*count=\d{3},\d{3} or more"):
        od.calibrate(KNG(count=10_000), SPACE, od.PureDP(1.0), n=4000)
    with pytest.raises(PromiseRefused, match="narrower prior"):
        od.calibrate(KNG(), SPACE, od.PureDP(1.0), n=10**6)


def test_what_cannot_be_selected_by_gradients_is_refused():
    with pytest.raises(UnsupportedBudget, match="redescends"):
        od.calibrate(KNG(), od.models.BinaryRegression(2), od.PureDP(1.0), n=200)
    with pytest.raises(UnsupportedBudget, match=r"4 coefficients to cover.*at most 3"):
        od.calibrate(KNG(), od.models.Logistic(3, bounds=(-1, 1), prior=PRIOR), od.PureDP(1.0), n=200)
    with pytest.raises(InvalidModel, match="bounds"):
        od.calibrate(KNG(), od.models.Logistic(2, prior=PRIOR), od.PureDP(1.0), n=200)
    with pytest.raises(UnsupportedBudget):
        od.calibrate(KNG(), LINE, od.GaussianDP(1.0), n=200)
    for wrong in ({"count": 0}, {"count": 2.5}, {"effect": 1e3}, {"noise": 0.0}):
        with pytest.raises(WrongCall):
            KNG(**wrong)


# ── releases ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_release_says_what_it_is_and_verifies_from_its_numbers_alone(plan, tmp_path):
    release = od.release(plan, records(), out=tmp_path / "one.json")
    sentence = release.certificate.sentence
    assert sentence.startswith("Exact: this estimate is (ε = 1)-differentially private")
    assert "gradient-norm selection, not a posterior draw" in sentence
    assert od.verify(tmp_path / "one.json").answer == "consistent"
    assert not any("arithmetic is real" in str(one) for one in release.certificate.assumptions)


def test_a_ball_is_never_left():
    model = od.models.Logistic(1, bounds=(-1, 1), intercept=False, prior=od.Gaussian(scale=1.0, radius=0.5))
    plan = od.calibrate(KNG(), model, od.PureDP(5.0), n=200)
    thetas, public = plan.target(model.summarise(records())).propose(0, [], np.random.default_rng(1))
    assert len(thetas) == plan.parameters["candidates"]
    assert np.abs(thetas).max() <= 0.5
    assert not public.any()


def test_it_estimates():
    X, y = records(4000)
    plan = od.calibrate(KNG(), LINE, od.PureDP(2.0), n=4000)
    assert od.release(plan, (X, y), random_state=2).draw == pytest.approx(1.0, abs=0.3)
