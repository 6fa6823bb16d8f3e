"""DP-SGLD: plans, refusals, one step against its formula, releases and certificates."""

import math
from dataclasses import replace

import numpy as np
import pytest

import onedraw as od
from onedraw.baselines import (
    DPHMC,
    DPSGD,
    DPSGLD,
    KNG,
    MultiProposal,
    Penalty,
    SubsampledLangevin,
    dp_sgld,
    kng,
    poisson_steps,
)
from onedraw.errors import CertificateRejected, PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods import plan_from_dict
from onedraw.methods.gibbs import noisy_gradient
from onedraw.methods.private_chain import path_loss
from onedraw.privacy.sampled_gaussian import sampled_gaussian_epsilon
from tests.baselines.cases import two_class_records as records

BUDGET = od.ApproxDP(1.0, 1e-5)
MODEL = od.models.Logistic(2, bounds=(-1, 1), loss="exp-linear", prior=od.Gaussian(scale=3.0))
MODEL_OF_BOTH = od.models.Logistic(2, bounds=(-1, 1), prior=od.Gaussian(scale=3.0))
SMALL = DPSGLD(batch_size=20, relaxations=1.0, steps=40)


@pytest.fixture(scope="module")
def plan():
    return od.calibrate(SMALL, MODEL, BUDGET, n=100)


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_weight_is_the_largest_for_its_rate_steps_and_relaxations(plan):
    numbers = plan.parameters
    assert (numbers["steps"], numbers["rate"]) == (40.0, 0.2)
    assert numbers["relaxations"] == pytest.approx(1.0)
    scale = math.sqrt(2.0 / numbers["step_size"]) / (numbers["record_weight"] * numbers["lipschitz"])
    assert numbers["noise_multiplier"] == pytest.approx(0.2 * scale, rel=1e-12)
    again = sampled_gaussian_epsilon(numbers["noise_multiplier"], rate=0.2, steps=40, delta=1e-5)
    assert 0.999 < again < numbers["epsilon"] <= 1.0
    assert sampled_gaussian_epsilon(numbers["noise_multiplier"] / 1.001, rate=0.2, steps=40, delta=1e-5) > 1.0
    assert plan.guarantee.promise == od.ApproxDP(numbers["epsilon"], 1e-5)
    assert plan_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize("name", ["record_weight", "step_size", "steps", "rate", "lipschitz", "noise_multiplier", "epsilon", "curvature", "relaxations"])  # fmt: skip
@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_numbers_that_were_changed_are_not_accepted(plan, name, factor):
    stored = plan.to_dict()
    stored["parameters"][name] *= factor
    with pytest.raises((CertificateRejected, PromiseRefused)):
        plan_from_dict(stored)


@pytest.mark.parametrize("batch_size", [200, 1000])
def test_subsampling_saves_passes_never_privacy(batch_size):
    """q cancels: the weight of a path on samples is that of full batches, and of `NoisyGradient`, which needs no accountant."""
    sampled = od.calibrate(DPSGLD(batch_size=batch_size, relaxations=3.0), MODEL, BUDGET, n=1000)
    full = od.calibrate(od.NoisyGradient(relaxations=3.0), MODEL, BUDGET, n=1000)
    assert full.parameters["weight"] < 4.0
    assert sampled.parameters["record_weight"] == pytest.approx(full.parameters["weight"], rel=2e-3)
    assert SubsampledLangevin().passes(sampled) == math.ceil(sampled.parameters["steps"] * batch_size / 1000)


@pytest.mark.finding("mission 2.7", commit="8a7c0fb")
def test_the_usual_batch_is_no_larger_than_the_records():
    for n in (100, 400, 3000):
        plan = od.calibrate(DPSGLD(relaxations=1.0), MODEL, BUDGET, n=n)
        assert plan.parameters["rate"] == pytest.approx(min(1.0, 1000 / n))
        assert plan_from_dict(plan.to_dict()) == plan


def test_more_draws_and_more_records_of_a_person_leave_less_weight(plan):
    others = [
        od.calibrate(SMALL, MODEL, BUDGET, n=100, draws=3),
        od.calibrate(SMALL, MODEL, BUDGET, n=100, records_per_person=2),
        od.calibrate(SMALL, MODEL, od.ApproxDP(0.5, 1e-5), n=100),
    ]
    assert max(one.parameters["record_weight"] for one in others) < 0.7 * plan.parameters["record_weight"]
    assert all(one.guarantee.promise.implies(one.budget) for one in others)


def test_a_weight_beyond_the_largest_useful_one_goes_to_time():
    plan = od.calibrate(DPSGLD(batch_size=20_000), MODEL, od.ApproxDP(2.0, 1e-5), n=20_000)
    assert plan.parameters["record_weight"] <= 4.0
    assert plan.parameters["relaxations"] > 5.0


@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.GaussianDP(1.0), od.ZCDP(0.1), od.ApproxDP(1.0, 0.0)])
def test_budgets_without_a_delta_are_refused(budget):
    with pytest.raises(UnsupportedBudget, match="ApproxDP"):
        od.calibrate(SMALL, MODEL, budget, n=100)


def test_models_and_options_that_no_path_follows_are_refused():
    prior = od.Gaussian(scale=1.0)
    for model, refusal, remedy in (
        (od.models.Hinge(2, bounds=(-1, 1), prior=prior), UnsupportedBudget, "kink"),
        (od.models.BinaryRegression(2), UnsupportedBudget, "convex"),
        (od.models.GaussianMean(1.0, 1.0, prior_count=1.0), UnsupportedBudget, "exactly"),
    ):
        with pytest.raises(refusal, match=remedy):
            od.calibrate(SMALL, model, BUDGET, n=100)
    for wrong in ({"batch_size": 0}, {"steps": 2.5}, {"relaxations": 50.0}, {"effect": 1e3}, {"noise": -1.0}):
        with pytest.raises(WrongCall):
            DPSGLD(**wrong)
    with pytest.raises(WrongCall, match="smaller"):
        od.calibrate(DPSGLD(batch_size=101), MODEL, BUDGET, n=100)
    with pytest.raises(PromiseRefused, match=r"h·M is \d"):
        od.calibrate(DPSGLD(batch_size=20, relaxations=5.0, steps=3), MODEL, BUDGET, n=100)


def test_where_no_curvature_is_known_all_paths_are_refused_in_the_same_words(monkeypatch):
    for module in (dp_sgld, kng, noisy_gradient, path_loss):
        monkeypatch.setattr(module, "smallest_curvature", lambda *_, **__: None)
    model = od.models.Logistic(
        2, bounds=(-1.25, 1), prior=od.Gaussian(scale=3.0)
    )  # one that no other test has asked about
    said = set()
    for mechanism in (SMALL, KNG(), od.NoisyGradient(), od.BarkerPath(), Penalty(), MultiProposal(), DPHMC()):
        with pytest.raises(UnsupportedBudget, match=r"Nothing public is known.* Declare data_norm") as refused:
            od.calibrate(mechanism, model, BUDGET, n=100)
        said.add(str(refused.value))
    assert len(said) == 1


def test_noise_that_does_not_keep_the_budget_is_refused_and_not_stated_as_if_it_did(monkeypatch):
    least = poisson_steps.least_multiplier
    monkeypatch.setattr(poisson_steps, "least_multiplier", lambda *args, **kwargs: 0.99 * least(*args, **kwargs))
    for mechanism in (SMALL, DPSGD(epochs=8, batch_size=20)):
        with pytest.raises(PromiseRefused, match="larger ε than the one stated"):
            od.calibrate(mechanism, MODEL_OF_BOTH, BUDGET, n=100)


# ── the steps ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.oracle
def test_a_path_is_the_formula_step_by_step(plan, monkeypatch):
    """With coins and noise known, in NumPy; then in pieces, which draw the same stream."""
    X, y = records()
    target, drawn = plan.target(MODEL.summarise((X, y))), []
    original = dp_sgld.drawn_steps
    monkeypatch.setattr(
        dp_sgld, "drawn_steps", lambda *args, **kwargs: drawn.append(original(*args, **kwargs)) or drawn[-1]
    )
    found = SubsampledLangevin().run(target, np.random.default_rng(4)).draws[0]
    numbers, signs, theta = plan.parameters, np.where(y == 1, 1.0, -1.0), np.zeros(3)
    rows = np.c_[X, np.ones(100)]
    for chosen, there, noise in zip(drawn[0].rows, drawn[0].present, drawn[0].noise, strict=True):
        batch = chosen[there]
        margin = signs[batch] * (rows[batch] @ theta)
        slope = -signs[batch] * np.where(margin >= 0.0, 0.5 * np.exp(-np.maximum(margin, 0.0)), 0.5)
        gradient = numbers["record_weight"] / 0.2 * (slope @ rows[batch]) + theta / 9.0
        theta = theta - numbers["step_size"] * gradient - math.sqrt(2.0 * numbers["step_size"]) * noise
    assert len({int(there.sum()) for there in drawn[0].present}) > 3  # batches differ in size, the divisor does not
    assert np.allclose(found, theta, atol=1e-12)
    monkeypatch.setattr(dp_sgld, "AT_ONCE", 6300)  # at most 24 steps at a time
    assert np.isfinite(SubsampledLangevin().run(target, np.random.default_rng(4), size=2).draws).all()
    assert [len(one.rows) for one in drawn[1:]] == [24, 16, 24, 16]


@pytest.mark.statistical
def test_the_noise_is_that_of_langevin_steps_and_ten_percent_less_is_rejected():
    """Records without features: θ_T is a Gaussian sum of known variance (z < 5; with 0.9 of the noise z > 5)."""
    model = od.models.Logistic(1, bounds=(-1, 1), intercept=False, loss="exp-linear", prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(DPSGLD(batch_size=5, relaxations=0.1, steps=10), model, BUDGET, n=10)
    target = plan.target(model.summarise((np.zeros((10, 1)), np.zeros(10, dtype=int))))
    draws = SubsampledLangevin().run(target, np.random.default_rng(12), size=20_000).draws[:, 0]
    step = plan.parameters["step_size"]
    variance = 2.0 * step * ((1.0 - step) ** (2 * np.arange(10))).sum()
    z = (np.mean(draws**2) / variance - 1.0) * math.sqrt(len(draws) / 2.0)
    assert abs(z) < 5.0
    assert (np.mean(draws**2) / (0.81 * variance) - 1.0) * math.sqrt(len(draws) / 2.0) > 5.0


def test_a_ball_is_never_left():
    model = od.models.Logistic(2, bounds=(-1, 1), prior=od.Gaussian(scale=3.0, radius=0.1))
    plan = od.calibrate(SMALL, model, BUDGET, n=100)
    draws = SubsampledLangevin().run(plan.target(model.summarise(records())), np.random.default_rng(1), size=50).draws
    assert np.linalg.norm(draws, axis=1).max() <= 0.1 * (1.0 + 1e-12)


# ── releases ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_release_says_accounted_and_not_a_posterior_draw_and_verifies(plan, tmp_path):
    release = od.release(plan, records(), out=tmp_path / "one.json")
    certificate = release.certificate
    assert certificate.sentence.startswith("Accounted: this estimate is (ε = ")
    assert "neither the posterior nor a clipped posterior, not a posterior draw" in certificate.sentence
    assert certificate.randomness == "operating system entropy, ChaCha20"
    assert od.verify(tmp_path / "one.json").answer == "consistent"
    assert "by its own coin of probability 20/100; a step has 64 places, and takes nobody" in str(
        certificate.assumptions
    )


def test_neither_one_path_nor_several_give_an_interval():
    """Nothing is known of the law, so nothing can be read off its spread."""
    several = od.calibrate(SMALL, MODEL, BUDGET, n=100, draws=8)
    with pytest.raises(PromiseRefused, match="nothing is known about how far estimates by DP-SGLD"):
        od.release(several, records(), random_state=1).conf_int(0.9)


def test_a_seeded_release_is_reproducible_and_another_sampler_is_refused(plan):
    one, two = (od.release(plan, records(), random_state=5) for _ in range(2))
    assert np.array_equal(one.draw, two.draw)
    assert one.certificate.sentence.startswith("SEEDED: REPRODUCIBLE, NOT PRIVATE")
    with pytest.raises(od.errors.ExactnessRefused):
        od.release(plan, records(), sampler=od.samplers.LastIterateLangevin(40, 1e-3))
    gibbs = od.calibrate(od.Gibbs(), MODEL, BUDGET, n=100)
    with pytest.raises(od.errors.ExactnessRefused, match="DPSGLD"):
        od.release(gibbs, records(), sampler=SubsampledLangevin())


@pytest.mark.parametrize("cell", [np.nan, np.inf, -1e300, 1e300, None, "seven"])
def test_one_odd_cell_neither_fails_nor_moves_a_step_beyond_its_bound(plan, cell):
    """One step from one key on neighbours: the iterates are at most 2·hwL/q apart."""
    X, y = records()
    rows = [list(row) for row in X]
    rows[3][1] = cell
    one = replace(plan, numbers=tuple((plan.parameters | {"steps": 1.0}).items()))
    draws = [
        SubsampledLangevin().run(one.target(MODEL.summarise(data)), np.random.default_rng(7), size=200).draws
        for data in ((X, y), (rows, y))
    ]
    numbers = plan.parameters
    most = 2.0 * numbers["step_size"] * numbers["record_weight"] * numbers["lipschitz"] / 0.2
    apart = np.linalg.norm(draws[0] - draws[1], axis=1)
    assert np.isfinite(draws[1]).all()
    assert 0.0 < apart.max() <= most * (1.0 + 1e-9)


def test_a_gradient_longer_than_declared_is_cut(plan):
    """With a tenth of the loss's true bound declared, neighbours are still no further apart than that tenth allows."""
    X, y = records()
    numbers = plan.parameters | {"steps": 1.0, "lipschitz": plan.parameters["lipschitz"] / 10.0}
    one, other = replace(plan, numbers=tuple(numbers.items())), y.copy()
    other[3] = 1 - other[3]
    draws = [
        SubsampledLangevin().run(one.target(MODEL.summarise((X, labels))), np.random.default_rng(7), size=200).draws
        for labels in (y, other)
    ]
    most = 2.0 * numbers["step_size"] * numbers["record_weight"] * numbers["lipschitz"] / 0.2
    assert 0.0 < np.linalg.norm(draws[0] - draws[1], axis=1).max() <= most * (1.0 + 1e-9)
