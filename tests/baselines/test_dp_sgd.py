"""DP-SGD: plans, refusals, releases and certificates, where torch is not installed; training with Opacus: test_opacus_training."""

import numpy as np
import pytest
from experiments.trainings import sgd, train_many

import onedraw as od
from onedraw.baselines import DPSGD, Training, dp_sgd
from onedraw.errors import CertificateRejected, InvalidModel, MissingExtra, PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods import plan_from_dict
from onedraw.privacy.sampled_gaussian import sampled_gaussian_epsilon
from tests.baselines.cases import two_class_records as records

BUDGET = od.ApproxDP(1.0, 1e-5)
MODEL = od.models.Logistic(2, bounds=(-1, 1), prior=od.Gaussian(scale=3.0))
SMALL = DPSGD(epochs=2, batch_size=20, learning_rate=1.0)


@pytest.fixture(scope="module")
def plan():
    return od.calibrate(SMALL, MODEL, BUDGET, n=100)


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_noise_is_found_from_the_budget_and_the_promise_from_the_noise(plan):
    numbers = plan.parameters
    assert (numbers["steps"], numbers["rate"]) == (10.0, 0.2)
    again = sampled_gaussian_epsilon(numbers["noise_multiplier"], rate=0.2, steps=10, delta=1e-5)
    assert plan.guarantee.promise == od.ApproxDP(numbers["epsilon"], 1e-5)
    assert 0.999 < again < numbers["epsilon"] <= 1.0  # a millionth for another machine's last digits
    assert plan_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    "change", [{"noise_multiplier": 0.9}, {"epsilon": 0.99}, {"epsilon": 1.01}, {"steps": 0.5}, {"rate": 0.5}]
)
def test_numbers_that_were_changed_are_not_accepted(plan, change):
    stored = plan.to_dict()
    stored["parameters"] |= {name: stored["parameters"][name] * factor for name, factor in change.items()}
    with pytest.raises((CertificateRejected, PromiseRefused)):
        plan_from_dict(stored)


def test_more_steps_more_draws_and_more_records_of_a_person_need_more_noise(plan):
    least = plan.parameters["noise_multiplier"]
    others = [
        od.calibrate(DPSGD(epochs=4, batch_size=20), MODEL, BUDGET, n=100),
        od.calibrate(SMALL, MODEL, BUDGET, n=100, draws=3),
        od.calibrate(SMALL, MODEL, BUDGET, n=100, records_per_person=2),
        od.calibrate(SMALL, MODEL, od.ApproxDP(0.5, 1e-5), n=100),
    ]
    assert min(one.parameters["noise_multiplier"] for one in others) > 1.2 * least
    assert all(one.guarantee.promise.implies(one.budget) for one in others)


def test_a_part_of_a_batch_is_a_step(plan):
    assert DPSGD(epochs=1, batch_size=30).steps(100) == 4
    assert DPSGD(epochs=3, batch_size=30).steps(100) == 10


@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.GaussianDP(1.0), od.ZCDP(0.1), od.ApproxDP(1.0, 0.0)])
def test_budgets_without_a_delta_are_refused(budget):
    with pytest.raises(UnsupportedBudget, match="ApproxDP"):
        od.calibrate(SMALL, MODEL, budget, n=100)


def test_options_that_mean_nothing_are_refused():
    for wrong in (
        {"epochs": 0}, {"batch_size": 2.5}, {"clip": 0.0}, {"clip": 1e9}, {"learning_rate": np.nan}, {"start": 1.5},
    ):  # fmt: skip
        with pytest.raises(WrongCall):
            DPSGD(**wrong)
    with pytest.raises(WrongCall, match="smaller"):
        od.calibrate(DPSGD(batch_size=101), MODEL, BUDGET, n=100)
    with pytest.raises(WrongCall, match="fewer epochs"):
        od.calibrate(DPSGD(epochs=10**6, batch_size=1), MODEL, BUDGET, n=100)
    with pytest.raises(InvalidModel, match="variance="):
        od.calibrate(SMALL, od.models.GaussianRegression(2, variance_floor=0.1), BUDGET, n=100)
    with pytest.raises(WrongCall, match="jax"):
        Training("numpy")


def test_a_delta_that_normal_variates_cannot_carry_is_refused_before_anything_is_spent():
    tiny = od.calibrate(SMALL, MODEL, od.ApproxDP(40.0, 1e-9), n=100)
    with pytest.raises(od.errors.ExactnessRefused, match="double precision"):
        od.release(tiny, records(), sampler=Training("jax"))


# ── releases ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.finding("mission 2.7", commit="8a7c0fb")
def test_without_torch_it_trains_by_jax_and_says_so(plan, monkeypatch, tmp_path):
    monkeypatch.setattr("onedraw.baselines.opacus_training.find_spec", lambda name: None)
    release = od.release(plan, records(), out=tmp_path / "one.json", random_state=5)
    assert "gradients by JAX, because Opacus is not installed" in release.certificate.sampler_choice
    assert np.array_equal(release.draw, od.release(plan, records(), sampler=Training("jax"), random_state=5).draw)
    assert od.verify(tmp_path / "one.json").answer == "consistent"


@pytest.mark.finding("mission 2.7", commit="8a7c0fb")
def test_opacus_asked_for_and_missing_is_refused_and_uncharged(plan, monkeypatch, tmp_path):
    monkeypatch.setattr("onedraw.baselines.opacus_training.find_spec", lambda name: None)
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("people", BUDGET)
    asked = {"sampler": Training("opacus"), "ledger": ledger, "dataset": "people", "out": tmp_path / "never.json"}
    with pytest.raises(MissingExtra, match=r"Training\('jax'\)") as refusal:
        od.release(plan, records(), **asked)
    assert "pip install torch==2.13.0, and then pip install opacus==1.6.0" in str(refusal.value)
    assert refusal.value.exit_code == 2
    assert not (tmp_path / "never.json").exists()
    assert not ledger.spent("people").parts


def test_a_release_says_accounted_and_verifies_from_its_numbers_alone(plan, tmp_path, monkeypatch):
    release = od.release(plan, records(), sampler=Training("jax"), out=tmp_path / "one.json")
    certificate = release.certificate
    assert certificate.sentence.startswith("Accounted: this estimate is (ε = ")
    assert "by DP-SGD, 10 steps" in certificate.sentence
    assert certificate.randomness == "operating system entropy, ChaCha20"
    monkeypatch.setattr("onedraw.baselines.opacus_training.find_spec", lambda name: None)
    assert od.verify(tmp_path / "one.json").answer == "consistent"
    assert "by its own coin of probability 20/100" in str(certificate.assumptions)


def test_a_seeded_release_is_reproducible_and_says_first_that_it_is_not_private(plan):
    one, two = (od.release(plan, records(), sampler=Training("jax"), random_state=5) for _ in range(2))
    assert np.array_equal(one.draw, two.draw)
    assert one.certificate.sentence.startswith("SEEDED: REPRODUCIBLE, NOT PRIVATE")
    other = od.release(plan, records(), sampler=Training("jax"))
    assert not np.array_equal(one.draw, other.draw)


def test_several_trainings_are_several_estimates_and_give_no_interval():
    several = od.calibrate(SMALL, MODEL, BUDGET, n=100, draws=3)
    release = od.release(several, records(), sampler=Training("jax"))
    assert len({tuple(draw) for draw in release.draws}) == 3
    with pytest.raises(PromiseRefused, match="DP-SGD"):
        release.conf_int(0.9)


def test_other_samplers_are_refused_and_this_one_for_other_plans(plan):
    with pytest.raises(od.errors.ExactnessRefused, match="Leave out sampler"):
        od.release(plan, records(), sampler=od.samplers.NUTS())
    gibbs = od.calibrate(od.Gibbs(), MODEL, BUDGET, n=100)
    with pytest.raises(od.errors.ExactnessRefused, match="carries out DPSGD"):
        od.release(gibbs, records(), sampler=Training("jax"))


@pytest.mark.parametrize("cell", [np.nan, np.inf, -1e300, 1e300])
def test_no_cell_makes_it_fail(cell):
    model = od.models.Network(2, hidden=3, task="regression", variance=1.0)
    plan = od.calibrate(DPSGD(epochs=1, batch_size=50), model, BUDGET, n=100)
    X, y = records()
    X[3], odd = cell, y.astype(float)
    odd[3] = cell
    release = od.release(plan, (X, odd), sampler=Training("jax"), random_state=1)
    assert np.isfinite(release.draw).all()


# ── studies ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_many_trainings_side_by_side_are_those_made_one_by_one(plan, monkeypatch):
    data = [records(seed=seed) for seed in range(5)]
    X, y = (np.stack(part) for part in zip(*data, strict=True))
    many = train_many(plan, X, y, range(5))
    alone = np.concatenate([train_many(plan, X[k : k + 1], y[k : k + 1], [k]) for k in range(5)])
    assert np.allclose(many, alone, atol=1e-12)
    monkeypatch.setattr(dp_sgd, "AT_ONCE", 1)
    assert np.allclose(train_many(plan, X, y, range(5)), alone, atol=1e-12)
    twins = train_many(plan, X, y, range(5), private=False)
    assert np.allclose(twins[3], sgd(SMALL, MODEL, data[3], seed=3).coefficients, atol=1e-12)
    with pytest.raises(WrongCall, match="a seed for each"):
        train_many(plan, X, y, [1])


@pytest.mark.statistical
def test_the_noise_of_a_step_is_what_the_plan_says():
    """One step on records without features: θ is noise of deviation σC·η/B (α ≈ 1e-6); 10 % less is rejected."""
    model = od.models.Logistic(1, bounds=(-1, 1), intercept=False, prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(DPSGD(epochs=1, batch_size=10, clip=0.5, learning_rate=2.0), model, BUDGET, n=10)
    target = plan.target(model.summarise((np.zeros((10, 1)), np.zeros(10, dtype=int))))
    draws = Training("jax").run(target, np.random.default_rng(12), size=20_000).draws[:, 0]
    deviation = plan.parameters["noise_multiplier"] * 0.5 * 2.0 / 10.0
    z = (np.mean((draws / deviation) ** 2) - 1.0) / np.sqrt(2.0 / len(draws))
    assert abs(z) < 5.0
    assert (np.mean((draws / (0.9 * deviation)) ** 2) - 1.0) / np.sqrt(2.0 / len(draws)) > 5.0


def test_the_twin_without_privacy_says_so_and_estimates_well():
    X, y = records(2000)
    twin = sgd(DPSGD(epochs=15, batch_size=100, learning_rate=2.0), MODEL, (X, y), seed=1)
    assert str(twin).startswith("NOT PRIVATE, ε = ∞: SGD, 300 steps")
    assert np.allclose(twin.coefficients[:2], [3.0, -2.0], atol=0.5)
