"""What the β-divergence and its candidates refuse: a clear message, before anything is spent or as soon as it is asked (methods/candidates/mechanism.py)."""

import math

import numpy as np
import pytest

import onedraw as od
from onedraw import errors, models, samplers
from onedraw.methods import calibrate
from onedraw.methods.beta_divergence.mechanism import BetaDivergence
from onedraw.methods.candidates.mechanism import Candidates
from onedraw.methods.candidates.run import Selection
from onedraw.models import candidates as candidate_costs_module
from onedraw.models.candidates import BernoulliBeta, candidate_costs
from onedraw.models.likelihood import GaussianNoise, StudentT
from onedraw.models.row_model import Encoded
from onedraw.privacy import ApproxDP, PureDP
from onedraw.samplers.selection import select

N = 30


def logistic(**options):
    return models.Logistic(2, data_norm=1.0, intercept=False, prior=models.Gaussian(scale=1.0), **options)


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    return generator.normal(size=(N, 2)), generator.integers(0, 2, N)


@pytest.fixture
def ledger(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("people", ApproxDP(5.0, 1e-5))
    return ledger


def nothing_spent(ledger):
    return len(ledger.events("people")) == 1 and ledger.spent("people").epsilon(1e-5) == 0.0


# ── a density without a bound ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "make",
    [
        lambda: models.GaussianRegression(2),
        lambda: models.StudentTRegression(2),
        lambda: models.Network(2, task="regression"),
        lambda: GaussianNoise(),
        lambda: StudentT(4.0),
    ],
)
def test_without_a_floor_on_the_variance_there_is_no_model(make):
    with pytest.raises(errors.InvalidModel, match=r"no floor on its variance.*Pass variance_floor"):
        make()


@pytest.mark.parametrize("floor", [0.0, -1.0, math.nan, math.inf, 1e-40, "small"])
def test_a_floor_that_is_none_is_refused(floor):
    with pytest.raises(errors.InvalidModel):
        models.GaussianRegression(2, variance_floor=floor)


# ── β and its weight ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("beta", [1.0, 0.5, 0.0, -2.0, 1.0 + 1e-9, math.nan, math.inf, 1e9, True, "2"])
def test_a_beta_of_one_or_less_is_refused(beta):
    with pytest.raises(errors.OnedrawError, match="beta") as caught:
        BetaDivergence(beta=beta)
    assert isinstance(caught.value, errors.WrongCall)


def test_at_beta_one_the_message_says_why():
    with pytest.raises(errors.InvalidModel, match="one record can move without bound"):
        BetaDivergence(beta=1.0)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-40, 1e-19])
@pytest.mark.parametrize(
    "model", [logistic(), models.GaussianRegression(1, variance_floor=0.01)], ids=["logistic", "Gaussian"]
)
@pytest.mark.parametrize("mechanism", [BetaDivergence(), Candidates()], ids=["draw", "candidates"])
def test_an_epsilon_that_makes_the_weight_underflow_is_refused(mechanism, model, epsilon):
    with pytest.raises(errors.PromiseRefused, match=r"[Uu]se a larger budget"):
        calibrate(mechanism, model, PureDP(epsilon), n=N)


def test_a_floor_so_low_that_the_sensitivity_overflows_is_refused():
    with pytest.raises(errors.InvalidModel, match=r"smaller beta or a larger floor"):
        calibrate(BetaDivergence(beta=60.0), models.GaussianRegression(1, variance_floor=1e-29), PureDP(1.0), n=N)


# ── candidates ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [0, -3, 1.5, True, 2**25])
def test_no_candidates_is_nothing_to_pick_from(count):
    with pytest.raises(errors.WrongCall, match=r"count must be a whole number.*nothing to pick from"):
        Candidates(count=count)


def test_too_few_candidates_are_refused_by_the_plan():
    with pytest.raises(errors.PromiseRefused, match="least bad"):
        calibrate(Candidates(count=1, rounds=1), logistic(), PureDP(1.0), n=N)


def test_a_selection_from_nothing_is_refused():
    with pytest.raises(errors.WrongCall, match="at least one candidate"):
        select(np.zeros(0, dtype=np.int64), np.random.default_rng(0), bits=3)


# ── memory ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_candidate_at_a_time_is_enough_memory():
    generator = np.random.default_rng(0)
    thetas, encoded = generator.normal(size=(7, 3)), Encoded(5, generator.normal(size=(5, 3)), np.ones(5))
    whole = candidate_costs(BernoulliBeta(2.0), thetas, encoded, width=500)
    np.testing.assert_allclose(candidate_costs(BernoulliBeta(2.0), thetas, encoded, width=500, block=1), whole, atol=1)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: out of memory")])
def test_a_release_survives_an_allocation_that_fails_once(monkeypatch, ledger, data, error):
    plan = calibrate(Candidates(count=3000), logistic(), PureDP(1.0), n=N)
    original, calls = candidate_costs_module.Costs.of_block, []

    def fails_once(self, *block_and_candidates):
        calls.append(self.together)
        if len(calls) == 1:
            raise error
        return original(self, *block_and_candidates)

    monkeypatch.setattr(candidate_costs_module.Costs, "of_block", fails_once)
    release = od.release(plan, data, ledger=ledger, dataset="people")
    assert np.isfinite(release.draws).all()
    assert len(calls) > 1
    assert ledger.spent("people").epsilon(0.0) == pytest.approx(1.0, rel=1e-4), "charged once"


def test_blocks_shrink_until_they_fit(monkeypatch, ledger, data):
    """A machine that has room for 64 candidates: the release is made all the same."""
    plan = calibrate(Candidates(count=1500), logistic(), PureDP(1.0), n=N)
    original, sizes = candidate_costs_module.Costs.of_block, []

    def small_machine(self, *block_and_candidates):
        if self.together > 64:
            raise MemoryError
        sizes.append(self.together)
        return original(self, *block_and_candidates)

    monkeypatch.setattr(candidate_costs_module.Costs, "of_block", small_machine)
    assert np.isfinite(od.release(plan, data, ledger=ledger, dataset="people").draws).all()
    assert max(sizes) > 16, "groups shrink as far as they must"


def test_memory_that_is_never_to_be_had_is_an_error_after_the_charge(monkeypatch, ledger, data):
    plan = calibrate(Candidates(count=1500), logistic(), PureDP(1.0), n=N)

    def none_left(self, *block_and_candidates):
        raise MemoryError

    monkeypatch.setattr(candidate_costs_module.Costs, "of_block", none_left)
    with pytest.raises(MemoryError):
        od.release(plan, data, ledger=ledger, dataset="people")
    assert ledger.spent("people").epsilon(0.0) > 0.9, "records were read, so the spend stands"


# ── samplers ───────────────────────────────────────────────────────────────────────────────────────────────────

SAMPLERS = [
    samplers.Exact(),
    samplers.Proximal(gamma=1e-9),
    samplers.Langevin(gamma=1e-3),
    samplers.NUTS(),
    samplers.HMC(10),
]


def _noisy():
    return calibrate(od.NoisyGradient(), logistic(), ApproxDP(1.0, 1e-6), n=N)


def _candidates():
    return calibrate(Candidates(count=3000), logistic(), PureDP(1.0), n=N)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
@pytest.mark.parametrize(
    ("make", "own"),
    [(_candidates, "Selection"), (_noisy, "LastIterateLangevin")],
    ids=["Candidates", "NoisyGradient"],
)
def test_a_sampler_for_a_plan_that_is_an_algorithm_is_refused_and_nothing_is_spent(ledger, data, make, own, sampler):
    with pytest.raises(errors.ExactnessRefused, match=f"{own}.*Leave out sampler="):
        od.release(make(), data, ledger=ledger, dataset="people", sampler=sampler, accept=("assumed", "estimated"))
    assert nothing_spent(ledger)


@pytest.mark.parametrize("make", [_candidates, _noisy], ids=["Candidates", "NoisyGradient"])
def test_the_own_algorithm_of_another_plan_is_refused_too(ledger, data, make):
    other = samplers.LastIterateLangevin(5, 0.1) if make is _candidates else Selection()
    with pytest.raises(errors.ExactnessRefused, match="Leave out sampler="):
        od.release(make(), data, ledger=ledger, dataset="people", sampler=other)
    assert nothing_spent(ledger)


def test_an_unproven_chain_is_refused_unless_it_is_named(ledger, data):
    plan = calibrate(BetaDivergence(), logistic(), PureDP(1.0), n=N)
    for sampler in (None, samplers.NUTS(), samplers.HMC(10)):
        with pytest.raises(errors.ExactnessRefused, match='accept="assumed"'):
            od.release(plan, data, ledger=ledger, dataset="people", sampler=sampler)
    assert nothing_spent(ledger)
