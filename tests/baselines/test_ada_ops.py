"""AdaOPS: what its stages promise together, that its bounds hold on every pair, and that its draw has the law they
name."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

import onedraw as od
from onedraw import models
from onedraw.audit.cases import examine
from onedraw.baselines import AdaOPS
from onedraw.baselines.ada_ops import AdaptiveDraw, raised
from onedraw.baselines.regression_sums import RegressionSums
from onedraw.methods import plan_from_dict
from onedraw.methods.catalog import cases
from tests.baselines.cases import ODD, linear_records

PRIOR = od.Gaussian(scale=1.0, radius=5.0)
BOX = models.LeastSquares(features=3, bounds=(-1, 1), response_bound=2.0, prior=PRIOR)
BALL = models.LeastSquares(features=2, data_norm=0.3, response_bound=10.0, prior=od.Gaussian(scale=1.0, radius=1e6))
BUDGET, N = od.ApproxDP(1.0, 1e-6), 60


def public(plan, eigenvalue, length):
    """(λ + λ̃, λ, γ, radius) that follow from what was published."""
    mechanism = plan.mechanism
    least = mechanism.least_eigenvalue(plan, eigenvalue)
    ridge = mechanism.ridge(plan, least)
    radius, precision = mechanism.ball(plan, ridge + least, length)
    return ridge + least, ridge, precision, radius


# ── the bounds that its proof rests on ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.oracle
@pytest.mark.parametrize("model", [BOX, BALL])
@pytest.mark.parametrize("k", [1, 3])
def test_no_random_pair_moves_the_length_or_the_gradient_beyond_what_is_stated(model, k):
    """Whatever lower bound of both tables' λ₁ is taken for λ̃; the gradients anywhere in the ball."""
    generator, shares = np.random.default_rng(1), []
    plan = od.calibrate(AdaOPS(), model, BUDGET, n=8, records_per_person=k)
    sums = RegressionSums.of(plan.request, "AdaOPS")
    for _ in range(40):
        first = linear_records(model, 8, generator, wild=generator.uniform() < 0.5)
        other = linear_records(model, 8, generator, wild=True)
        second = [np.concatenate([b[:k], a[k:]]) for a, b in zip(first, other, strict=True)]
        (A, b), (C, d) = (sums.matrices(*sums.whole(model.summarise(tuple(one)))) for one in (first, second))
        least = min(np.linalg.eigvalsh(A)[0], np.linalg.eigvalsh(C)[0])
        ridge = generator.choice([0.0, 0.3, 3.0]) * sums.reach**2 + 1e-3 * sums.reach**2
        sizes = [np.linalg.norm(np.linalg.solve(M + ridge * np.eye(len(M)), v)) for M, v in ((A, b), (C, d))]
        moved = abs(np.diff([math.log(2.0 * sums.bound + sums.reach * size) for size in sizes])[0])
        shares.append(moved / math.log1p(k * sums.reach**2 / (ridge + least)))
        theta = generator.normal(size=len(b))
        theta *= generator.uniform(0.0, 5.0) / np.linalg.norm(theta)
        pull = k * sums.reach * (2.0 * sums.bound + sums.reach * np.linalg.norm(theta))
        shares.append(np.linalg.norm((A - C) @ theta - (b - d)) / pull)
        assert abs(np.linalg.eigvalsh(A)[0] - np.linalg.eigvalsh(C)[0]) <= sums.eigenvalue_reach(k)
    assert 0.3 < max(shares) <= 1.0 + 1e-9


@pytest.mark.statistical
def test_the_lower_bound_of_the_eigenvalue_is_missed_as_rarely_as_stated():
    """For a neighbour whose λ₁ is smaller by all that one record can take away; a bound without the shift is missed too
    often."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    plan = od.calibrate(AdaOPS(), BOX, od.ApproxDP(1.0, 0.4), n=N)  # a δ so large that misses are seen
    numbers, sums = plan.parameters, RegressionSums.of(plan.request, "AdaOPS")
    missed, own = numbers["missed"], 1e6
    published = own + numbers["eigenvalue_noise"] * np.random.default_rng(seed).standard_normal(20_000)
    bounds = np.array([plan.mechanism.least_eigenvalue(plan, value) for value in published])
    neighbour = own - sums.reach**2
    assert stats.binomtest(int((bounds > neighbour).sum()), 20_000, missed, alternative="greater").pvalue > 1e-6
    without = int((bounds + sums.eigenvalue_reach(1) > neighbour).sum())
    assert stats.binomtest(without, 20_000, missed, alternative="greater").pvalue < 1e-6


def test_the_temperature_is_what_the_theorem_gives_for_the_ball():
    """√γ·G/√(λ + λ̃) = μ, G = B(2Y + B·radius)."""
    plan = od.calibrate(AdaOPS(), BOX, BUDGET, n=5000)
    for eigenvalue, length in ((-1e4, 3.0), (300.0, 0.1), (1500.0, -50.0), (1500.0, 1e5)):
        together, ridge, precision, radius = public(plan, eigenvalue, length)
        pull = 2.0 * (4.0 + 2.0 * radius)
        assert math.sqrt(precision / together) * pull == pytest.approx(plan.parameters["draw_mu"], rel=1e-8)
        assert together >= 4.0
        assert 4.0 / 2.0 <= radius <= 5.0
        assert ridge >= 0.0


def spent(plan, together, epsilon):
    """δ at ε of the draw of one coefficient, as it runs, between tables of which one response is flipped: by quadrature."""
    ball = plan.mechanism.ball(plan, together, 0.0)
    spread = 1.0 / math.sqrt(ball.precision * together)
    theta = np.linspace(-min(ball.radius, 12.0 * spread), min(ball.radius, 12.0 * spread), 200_001)
    logs = [
        ball.precision * (sign * theta - 0.5 * together * theta**2) for sign in (-1.0, 1.0)
    ]  # Xᵀy = ∓1 of n that balance
    one, other = (special.softmax(each) for each in logs)
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())


def test_a_temperature_a_fifth_too_high_is_caught(monkeypatch):
    """γ is as large as its stage's μ allows: 1.2 times as much breaks it at every ε."""
    model = models.LeastSquares(
        features=1, bounds=(-1, 1), intercept=False, response_bound=1.0, prior=od.Gaussian(scale=1.0, radius=0.01)
    )
    plan = od.calibrate(AdaOPS(), model, BUDGET, n=100_000)
    promised = od.GaussianDP(plan.parameters["draw_mu"])
    epsilons = (0.1, 0.3, 0.6)
    assert all(0.9 * promised.delta(one) < spent(plan, 1e5, one) <= promised.delta(one) for one in epsilons)
    ball = AdaOPS.ball
    monkeypatch.setattr(
        AdaOPS, "ball", lambda self, *given: (kept := ball(self, *given))._replace(precision=1.2 * kept.precision)
    )
    assert all(spent(plan, 1e5, one) > promised.delta(one) for one in epsilons)


# ── promise and release ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget", [BUDGET, od.ApproxDP(0.1, 1e-6), od.ApproxDP(8.0, 1e-3)])
@pytest.mark.parametrize("model", [BOX, BALL])
def test_a_release_keeps_its_budget_and_verifies(model, budget):
    plan = od.calibrate(AdaOPS(), model, budget, n=N)
    assert plan.guarantee.promise.implies(budget)
    release = od.release(plan, linear_records(model, N, np.random.default_rng(1)))
    assert release.certificate.sentence.startswith("Exact")
    assert od.verify(release)
    assert plan_from_dict(plan.to_dict()) == plan


def test_the_promise_counts_three_stages_and_the_missed_bound():
    plan = od.calibrate(AdaOPS(), BOX, BUDGET, n=N)
    numbers = plan.parameters
    mu = math.hypot(4.0 / numbers["eigenvalue_noise"], numbers["length_mu"], numbers["draw_mu"])
    delta = od.GaussianDP(mu).delta(1.0) + numbers["missed"]
    assert delta == pytest.approx(plan.guarantee.promise.stated_delta, rel=1e-5)
    assert 0.99e-6 < delta <= 1e-6


def test_a_certificate_with_other_numbers_is_rejected():
    plan = od.calibrate(AdaOPS(), BOX, BUDGET, n=N)
    release = od.release(plan, linear_records(BOX, N, np.random.default_rng(1)))
    written = release.certificate.model_dump(mode="json")
    for name, factor in (("eigenvalue_noise", 0.99), ("missed", 1.1), ("length_mu", 1.01), ("draw_mu", 1.01)):
        edited = {**written, "plan": {**written["plan"], "parameters": dict(written["plan"]["parameters"])}}
        edited["plan"]["parameters"][name] *= factor
        with pytest.raises(od.errors.CertificateRejected):
            od.verify(type(release.certificate).model_validate(edited))


@pytest.mark.statistical
def test_given_its_stages_a_draw_has_the_normal_law_cut_to_the_interval():
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    model = models.LeastSquares(
        features=1, bounds=(-1, 1), intercept=False, response_bound=1.0, prior=od.Gaussian(scale=1.0, radius=5.0)
    )
    plan = od.calibrate(AdaOPS(), model, od.ApproxDP(4.0, 1e-5), n=300)
    records = linear_records(model, 300, np.random.default_rng(3))
    target, generator = plan.target(model.summarise(records)), np.random.default_rng(seed)
    square, product = target.sums.matrices(*target.sums.whole(target.summary))
    found = [AdaptiveDraw().stages(target, square, product, generator) for _ in range(1500)]
    follows = np.array([public(plan, one["eigenvalue"][0], one["length"][0]) for one in found])
    _, ridge, gamma, radius = follows.T
    draws, curved, places = np.array([one["draw"][0] for one in found]), square[0, 0] + ridge, []
    centre = product[0] / curved
    for spread in (1.0, 1.4):
        deviation = spread / np.sqrt(gamma * curved)
        low, at, high = ((point - centre) / deviation for point in (-radius, draws, radius))
        below, chance, above = (stats.norm.cdf(one) for one in (low, at, high))
        places.append((chance - below) / (above - below))
    places, wrong = places
    assert stats.kstest(places, "uniform").pvalue > 1e-6
    assert stats.kstest(wrong, "uniform").pvalue < 1e-6


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_cell_does_not_make_it_fail(odd):
    plan = od.calibrate(AdaOPS(), BOX, BUDGET, n=12)
    X, y = (part.astype(object) for part in linear_records(BOX, 12, np.random.default_rng(5)))
    X[3, 1] = y[4] = X[5, 0] = y[5] = odd
    assert np.isfinite(od.release(plan, (X.tolist(), y.tolist()), random_state=1).draw).all()


def test_records_without_information_and_a_missed_bound_do_not_make_it_fail():
    plan = od.calibrate(AdaOPS(), BOX, BUDGET, n=N)
    for seed in range(20):
        assert np.isfinite(od.release(plan, (np.zeros((N, 3)), np.zeros(N)), random_state=seed).draw).all()
    assert np.linalg.eigvalsh(raised(np.diag([0.0, 0.0, 9.0]), 4.0)) == pytest.approx([4.0, 4.0, 9.0])


def test_what_it_cannot_promise_is_refused_with_a_remedy():
    for budget in (od.PureDP(1.0), od.GaussianDP(1.0), od.ZCDP(0.1)):
        with pytest.raises(od.errors.UnsupportedBudget, match=r"use (Diffused|Gibbs)"):
            od.calibrate(AdaOPS(), BOX, budget, n=N)
    with pytest.raises(od.errors.PromiseRefused, match="larger budget"):
        od.calibrate(AdaOPS(), BOX, od.ApproxDP(1e-4, 1e-9), n=N)


# ── the audit ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_audit_finds_the_promise_kept_and_a_fault_of_five_percent():
    (case,) = cases("baselines", od.ApproxDP(1.0, 1e-5), mechanism="ada-ops")
    found = examine(case)
    assert found.passed
    assert found.gap < 1.05
    assert case.profile(found.pair, 1.05).breaks(case.promise) is not None


def test_a_ball_whose_growth_of_slopes_is_forgotten_is_caught():
    """γ for G = BY, one record's own pull, in place of two records' difference."""
    (case,) = cases("baselines", od.ApproxDP(1.0, 1e-5), mechanism="ada-ops")
    numbers = {**case.plan.parameters, "draw_mu": 2.0 * case.plan.parameters["draw_mu"]}
    faulty = type(case)(replace(case.plan, numbers=tuple(numbers.items())), case.pairs, "", False)
    assert faulty.profile(case.pairs[0]).breaks(case.promise) is not None
