"""Candidates where the variance is a parameter: its information, the prior's weight, the law of a pick, privacy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, special, stats

import onedraw as od
from onedraw import models
from onedraw.methods import calibrate, plan_from_dict
from onedraw.methods.candidates.mechanism import Candidates
from onedraw.methods.candidates.run import Selection
from onedraw.models import candidates as candidate_scores
from onedraw.models.likelihood import GaussianNoise, StudentT
from onedraw.models.likelihood import reference_design as beta_design
from onedraw.models.likelihood.reference_design import variance_information
from onedraw.privacy import PureDP
from onedraw.samplers import seeded_generator
from tests.methods.cases import largest_loss, log_laws

FLOOR = 0.2


def regression(features=1, *, scale=1.0, floor=FLOOR, conjugate=True):
    prior = models.NormalInverseGamma(scale=scale, conjugate=conjugate)
    return models.GaussianRegression(features, variance_floor=floor, intercept=False, prior=prior)


def simulated(n, d, *, sigma=1.0, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d))
    return X, X.sum(axis=1) / math.sqrt(d) + sigma * generator.standard_normal(n)


# ── information ────────────────────────────────────────────────────────────────────────────────────────────────


def information_by_quadrature(standard, log_variance, beta):
    """H and K of log σ² from their definitions: ∫f^β s² and ∫f^{2β−1}s² − (∫f^β s)²."""

    def log_density(y, at):
        return standard(y / math.exp(at / 2)) - at / 2

    def score(y):
        return (log_density(y, log_variance + 1e-5) - log_density(y, log_variance - 1e-5)) / 2e-5

    def integral(power, of_score):
        def inside(y):
            return math.exp(power * log_density(y, log_variance)) * score(y) ** of_score

        return 2.0 * integrate.quad(inside, 0.0, np.inf, limit=200)[0]

    return integral(beta, 2), integral(2 * beta - 1, 2) - integral(beta, 1) ** 2


@pytest.mark.parametrize(("sigma", "beta"), [(1.0, 1.0001), (1.0, 1.5), (0.3, 2.2), (3.0, 1.1)])
def test_the_information_on_a_normal_variance(sigma, beta):
    found = beta_design.normal_variance_information(sigma, beta)
    assert found == pytest.approx(information_by_quadrature(stats.norm.logpdf, 2 * math.log(sigma), beta), rel=1e-5)
    assert variance_information(GaussianNoise(0.01), beta, sigma) == found


def test_at_beta_one_it_is_fisher_s_half():
    assert beta_design.normal_variance_information(1.7, 1.0) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize(("sigma", "beta"), [(1.0, 1.4), (0.5, 2.0)])
def test_the_information_on_student_s_scale(sigma, beta):
    found = variance_information(StudentT(4.0, 0.01), beta, sigma)
    assert found == pytest.approx(information_by_quadrature(stats.t(4.0).logpdf, 2 * math.log(sigma), beta), rel=1e-4)


def test_the_planned_curvature_is_that_of_the_expected_loss():
    """Second differences of E ℓ_β in the model's own coordinates, η with σ² = floor + e^η included."""
    model = regression()
    plan = calibrate(Candidates(count=50_000, rounds=1), model, PureDP(1.0), n=500)
    target = plan.target(model.summarise(simulated(500, 1)))
    z = np.linspace(-9, 9, 20_001)
    mass = stats.norm.pdf(z) * (z[1] - z[0])
    truth, step = np.array([0.0, math.log(1.0 - FLOOR)]), 1e-3

    def expected(theta):
        losses = model.beta_kernel.losses(theta, np.ones((len(z), 1)), z, plan.parameters["beta"])
        return float(mass @ losses)

    def second(direction):
        ends = expected(truth + step * direction) + expected(truth - step * direction)
        return (ends - 2 * expected(truth)) / step**2

    found = np.array([second(axis) for axis in np.eye(2)])
    assert np.diag(target.geometry.information) == pytest.approx(found, rel=1e-3)
    assert target.geometry.information[0, 1] == 0.0


# ── the prior ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.statistical
@pytest.mark.parametrize("conjugate", [True, False])
@pytest.mark.parametrize("number", [0, 1])
def test_weighted_candidates_have_the_prior_s_own_law(number, conjugate):
    """With costs of 0 a pick is a draw from the prior; a Jacobian forgotten is noticed. α ≈ 1e-6."""
    model = regression(2, conjugate=conjugate)
    plan = calibrate(Candidates(count=150_000, rounds=2 if number else 1), model, PureDP(0.01), n=20)
    target = plan.target(model.summarise(simulated(20, 2)))
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    picks = [np.array([0.5, -0.2, 0.3])] if number else []
    thetas, public = target.propose(number, picks, np.random.default_rng(seed))
    log_weights = -public / 2.0**target.bits
    variance = model.constrain(thetas)[:, -1]
    inside = 1.0 - special.gammainc(1.0, 1.0) / special.gammainc(1.0, 1.0 / FLOOR)  # 1/σ² ~ Exp(1), cut at 1/floor

    def distance(log_weights):
        """Of P(σ² < 1), in standard errors of a self-normalised average."""
        weights = special.softmax(log_weights)
        found = weights @ (variance < 1.0)
        return abs(found - inside) / math.sqrt(np.sum(weights**2 * ((variance < 1.0) - found) ** 2))

    assert distance(log_weights) < 5.0
    assert distance(log_weights - thetas[:, -1]) > 10.0


@pytest.mark.parametrize("floor", [1e-6, 0.2, 50.0])
def test_the_normal_description_has_the_prior_s_median_and_spread(floor):
    model = regression(floor=floor)
    prior = (
        calibrate(Candidates(count=300_000, rounds=1), model, PureDP(1.0), n=20)
        .target(model.summarise(simulated(20, 1)))
        .prior
    )
    drawn = model.draw_prior(np.random.default_rng(0), 40_000)[:, -1]
    low, middle, high = np.quantile(drawn, special.ndtr([-1.0, 0.0, 1.0]))
    assert prior.location[-1] == pytest.approx(middle, abs=0.05)
    assert prior.scales[-1] == pytest.approx((high - low) / 2, rel=0.05)
    assert np.isfinite(prior.scales).all()


# ── the law of a pick ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.statistical
def test_picks_follow_the_posterior():
    """Slope and variance, each against quadrature in two dimensions; a posterior of three times the weight is told
    apart."""
    model, n, size = regression(), 120, 400
    data = simulated(n, 1)
    plan = calibrate(Candidates(count=4000, rounds=1), model, PureDP(1.0), n=n)
    encoded = model.summarise(data)
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    picks = Selection().run(plan.target(encoded), seeded_generator(seed), size=size).draws
    slopes, etas = np.linspace(-2.5, 4.5, 141), np.linspace(-9.0, 9.0, 241)
    grid = np.array(np.meshgrid(slopes, etas, indexing="ij")).reshape(2, -1).T
    losses = np.array([
        model.beta_kernel.losses_of_many(part, encoded.X, encoded.y, plan.parameters["beta"]).sum(axis=1)
        for part in np.array_split(grid, 20)
    ], dtype=object)  # fmt: skip
    losses = np.concatenate(list(losses))

    def distances(weight):
        density = np.exp(model.log_prior(grid) - weight * (losses - losses.min())).reshape(len(slopes), len(etas))
        density /= density.sum()
        found = []
        for axis, points, values in ((1, slopes, picks[:, 0]), (0, etas, model.unconstrain(picks)[:, -1])):
            law = np.cumsum(density.sum(axis=axis))
            expected = np.interp(np.sort(values), points + (points[1] - points[0]) / 2, law)
            found.append(np.abs(expected - (np.arange(size) + 0.5) / size).max())
        return found

    weight = plan.parameters["weight"]
    critical = 2.8 / math.sqrt(size)  # Kolmogorov: exceeded three times in 10^7 runs
    assert max(distances(weight)) < critical < max(distances(3.0 * weight))


def test_a_mean_is_published_as_a_variance_above_its_floor():
    model = regression(2)
    plan = calibrate(Candidates(count=100_000), model, PureDP(1.0), n=300)
    target = plan.target(model.summarise(simulated(300, 2)))
    target = replace(target, widths=(100, 300))
    picks = [np.array([1.0, 0.0, -40.0]), np.array([0.0, 1.0, math.log(0.8)])]  # the first is at the floor
    (mean,) = target.publish(picks)
    assert mean[:2] == pytest.approx([0.25, 0.75])
    assert mean[2] == pytest.approx(FLOOR**0.25 * (0.8 + FLOOR) ** 0.75)
    both = replace(target, published="picks").publish(picks)
    assert [pick[2] for pick in both] == pytest.approx([FLOOR, 0.8 + FLOOR])
    floored = target.publish([np.array([0.0, 0.0, -500.0])] * 2)[0]
    assert FLOOR <= floored[2] <= 1.002 * FLOOR
    (corrected,) = replace(target, published="corrected").publish(picks)
    assert corrected[2] >= FLOOR


@pytest.mark.parametrize(
    "model",
    [
        regression(2),
        models.GaussianRegression(1, variance_floor=0.01),
        models.StudentTRegression(2, df=4.0, variance_floor=0.1, prior=models.NormalInverseGamma(scale=1.0)),
        models.GaussianRegression(
            2, variance_floor=0.1, bounds=(-1, 1), prior=models.NormalInverseGamma(conjugate=False)
        ),
    ],
    ids=["Gaussian", "the paper's prior", "Student", "bounded features"],
)
def test_a_release_is_exact_names_the_variance_and_verifies(model):
    plan = calibrate(Candidates(), model, PureDP(1.0), n=60)
    assert plan_from_dict(plan.to_dict()) == plan
    X, y = simulated(60, model.features.count)
    y[0], X[1, 0] = math.inf, math.nan
    release = od.release(plan, (X, y))
    assert release.certificate.sentence.startswith("Exact")
    assert od.verify(release.certificate).answer == "consistent"
    assert release.named()["variance"] >= (1 - 1e-6) * model.likelihood.floor


def test_a_design_that_puts_the_variance_at_its_floor_can_be_planned_with():
    plan = calibrate(Candidates(), regression(floor=1.0), PureDP(1.0), n=100)
    assert "expected_log_variance_error" not in plan.parameters
    assert plan.parameters["scaled_curvature"] == 0.0
    assert plan_from_dict(plan.to_dict()) == plan
    assert od.release(plan, simulated(100, 1)).named()["variance"] >= 1.0


# ── privacy ────────────────────────────────────────────────────────────────────────────────────────────────────

RECORDS = [(-1.0, 5.0), (1.0, 0.0), (1.0, 1.0), (0.0, -0.3)]


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_loss_of_every_adjacent_pair_is_within_epsilon(rounds):
    mechanism = Candidates(count=80 if rounds == 1 else 12, rounds=rounds)
    plan = calibrate(mechanism, regression(), PureDP(1.5), n=2)
    found = largest_loss(log_laws(plan, seed=1, universe=RECORDS))
    assert 0.2 * 1.5 < found <= 1.5 + 1e-9


def test_a_floor_that_is_not_enforced_is_caught(monkeypatch):
    """Costs of a density without its floor, not cut to their width: the enumeration sees them."""
    plan = calibrate(Candidates(count=80, rounds=1), regression(), PureDP(1.5), n=2)

    def unbounded(loss, thetas, encoded, *, width):
        low, high = loss.interval
        variance = np.exp(thetas[:, -1:])  # without the floor
        density = stats.norm.pdf(encoded.y, thetas[:, :1] * encoded.X[:, 0], np.sqrt(variance))
        losses = -(density ** (loss.beta - 1.0)) / (loss.beta - 1.0)
        return np.rint(width * (losses - low) / (high - low)).astype(np.int64).sum(axis=1)

    assert candidate_scores.candidate_costs is not unbounded
    monkeypatch.setattr("onedraw.methods.candidates.layout.candidate_costs", unbounded)
    assert largest_loss(log_laws(plan, seed=1, universe=RECORDS)) > 1.5


# ── accuracy ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.statistical
def test_a_pick_is_nearly_as_good_as_an_exact_draw():
    import importlib.util
    from pathlib import Path

    path = Path(__file__).parents[3] / "benchmarks" / "candidates_variance.py"
    specification = importlib.util.spec_from_file_location("candidates_variance", path)
    table = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(table)
    found = table.measure(3, 2000, seeds=12, draws=4)
    print(found)
    for name in ("coefficients", "log variance"):
        assert 0.7 * found[f"exact {name}"] <= found[name] <= 1.3 * found[f"exact {name}"]
