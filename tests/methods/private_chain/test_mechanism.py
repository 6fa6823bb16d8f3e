"""What all private chains share: composition, calibration, words, and paths that are recomputed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import onedraw as od
from onedraw.errors import CertificateRejected, InvalidBudget, PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods import BarkerPath, plan_from_dict
from onedraw.methods.private_chain.mechanism import LARGEST_WEIGHT, MOST_STEPS, repeated
from onedraw.methods.private_chain.published_path import packed, seed_of, seed_words, unpacked
from onedraw.models import Hinge, Logistic
from onedraw.privacy import AveragedDirectionsCurve, RepeatedCurve

BUDGET = od.ApproxDP(1.0, 1e-5)
SPHERE = Logistic(6, data_norm=math.sqrt(6.0), intercept=False, loss="exp-linear", prior=od.Gaussian(scale=1.0))
SMALL = Hinge(2, data_norm=1.0, intercept=False, prior=od.Gaussian(scale=1.0))


def test_steps_add_up_in_their_own_currency() -> None:
    curve = AveragedDirectionsCurve(6, 0.1)
    assert repeated(od.GaussianDP(0.125), 256) == od.GaussianDP(2.0)
    assert repeated(od.ZCDP(0.25), 8) == od.ZCDP(2.0)
    assert repeated(od.PureDP(0.25), 8) == od.PureDP(2.0)
    assert repeated(od.RenyiDP(curve), 8) == od.RenyiDP(RepeatedCurve(curve, 8))
    with pytest.raises(WrongCall):
        repeated(BUDGET, 2)


@pytest.mark.parametrize("outcomes", [2, 3, 51])
def test_decisions_and_seeds_survive_a_certificate(outcomes: int) -> None:
    decisions = np.random.default_rng(1).integers(outcomes, size=103).tolist()
    words = packed(decisions, outcomes)
    assert all(0 <= word < 2**32 and word == int(word) for word in words)
    assert list(unpacked(np.array(words), 103, outcomes)) == decisions
    assert seed_of(np.array(seed_words(bytes(range(32))))) == bytes(range(32))


@pytest.mark.parametrize(("outcomes", "word"), [(2, 0b1000), (6, 0b111), (6, 1 << 30), (3, 1 << 6)])
def test_a_word_with_more_in_it_than_decisions_is_refused(outcomes: int, word: int) -> None:
    """Bits beyond the last decision, between words, or a decision that there is none of: a place to hide things in."""
    with pytest.raises(CertificateRejected):
        list(unpacked(np.array([float(word)]), 3, outcomes))


def test_the_weight_is_the_largest_for_so_many_relaxation_times() -> None:
    plan = od.calibrate(BarkerPath(), SPHERE, BUDGET, n=1000)
    numbers = plan.parameters
    assert numbers["relaxations"] == pytest.approx(3.0)
    assert plan.guarantee.promise.epsilon(1e-5) <= 1.0
    longer = {**numbers, "steps": numbers["steps"] + 1}
    with pytest.raises(PromiseRefused, match="not proven to imply"):
        plan.mechanism.plan(plan.request, longer)


def test_beyond_the_largest_useful_weight_the_path_lasts_longer() -> None:
    plan = od.calibrate(BarkerPath(length=4.0), SPHERE, BUDGET, n=20_000)
    assert plan.parameters["weight"] == LARGEST_WEIGHT
    assert plan.parameters["relaxations"] > 3.0


def test_several_draws_and_records_cost_more() -> None:
    one = od.calibrate(BarkerPath(), SPHERE, BUDGET, n=1000).parameters["weight"]
    several = od.calibrate(BarkerPath(), SPHERE, BUDGET, n=1000, draws=2).parameters["weight"]
    person = od.calibrate(BarkerPath(), SPHERE, BUDGET, n=1000, records_per_person=2).parameters["weight"]
    assert several == pytest.approx(one / 2, rel=0.01)
    assert person == pytest.approx(one / 4, rel=0.02)


def test_a_plan_is_derived_again_from_its_numbers_and_an_edit_is_refused() -> None:
    plan = od.calibrate(BarkerPath(publish="mean"), SPHERE, BUDGET, n=1000)
    stored = plan.to_dict()
    assert plan_from_dict(stored) == plan
    for name in ("weight", "step_length", "reach", "steps", "curvature"):
        edited = {**stored, "parameters": {**stored["parameters"], name: stored["parameters"][name] * 1.2}}
        with pytest.raises(od.errors.OnedrawError):
            plan_from_dict(edited)


def test_the_words_of_a_certificate() -> None:
    plan = od.calibrate(BarkerPath(), SPHERE, BUDGET, n=1000)
    steps = int(plan.parameters["steps"])
    assert f"path of {steps:,} private decisions, 3 relaxation times, not a posterior draw" in plan.heading
    assert plan.requires == "private-chain"


def test_a_weight_whose_rounded_losses_would_not_add_up_is_refused() -> None:
    with pytest.raises(WrongCall, match="weight is at most 65536"):
        BarkerPath(weight=1e15)


def test_what_is_refused_says_what_is_too_large_and_what_to_do() -> None:
    with pytest.raises(PromiseRefused, match=f"steps, more than {MOST_STEPS:,}") as refused:
        od.calibrate(BarkerPath(length=0.05), SPHERE, BUDGET, n=1000)
    assert "weight=" in str(refused.value)
    with pytest.raises(UnsupportedBudget, match="gamma"):
        od.calibrate(BarkerPath(), SPHERE, BUDGET, n=1000, gamma=1e-8)
    with pytest.raises(PromiseRefused, match="No path"):
        od.calibrate(BarkerPath(length=2.0), SPHERE, od.ApproxDP(1e-3, 1e-9), n=10)
    with pytest.raises(PromiseRefused, match=r"steps, more than.*Use a larger budget or n"):
        od.calibrate(BarkerPath(), SPHERE, od.ApproxDP(1e-3, 1e-9), n=10)
    for wrong in ({"publish": "all"}, {"relaxations": 30.0}, {"weight": 1.0, "relaxations": 3.0}):
        with pytest.raises(WrongCall):
            BarkerPath(**wrong)
    with pytest.raises(InvalidBudget):
        BarkerPath(weight=-1.0)


CHAINS = {
    "barker": BarkerPath,
    "penalty": od.baselines.Penalty,
    "multi-proposal": od.baselines.MultiProposal,
    "dp-hmc": od.baselines.DPHMC,
}
PRIORS = {
    "usual": od.Gaussian(scale=1.0),
    "wide": od.Gaussian(scale=10.0),
    "of two widths": od.Gaussian(scales=(10.0, 10.0, 0.3)),
    "ball": od.Gaussian(scale=3.0, radius=0.5),
}


def logistic(prior=PRIORS["usual"]) -> Logistic:
    return Logistic(3, bounds=(-1, 1), intercept=False, prior=prior)


def widths(plan) -> float:
    """How far a step, or a trajectory's time, reaches, in widths of the posterior: of public numbers."""
    numbers, prior = plan.parameters, plan.model.prior
    precision = plan.n * numbers["weight"] * numbers["curvature"] + prior.precision(3)
    if "leapfrogs" in numbers:
        return numbers["step_size"] * numbers["leapfrogs"] * math.sqrt(precision.max()) / (math.pi / 2.0)
    ball = math.inf if prior.radius is None else prior.radius / math.sqrt(5.0)
    return numbers["step_length"] / min(1.0 / math.sqrt(precision.mean()), ball)


@pytest.mark.finding("mission 2.8", commit="8a7c0fb")
@pytest.mark.parametrize("chain", CHAINS)
def test_a_planned_step_is_no_longer_than_the_posterior_is_wide(chain: str) -> None:
    found = []
    for prior in PRIORS.values():
        for n, epsilon in ((100, 0.5), (400, 0.2)):
            found.append(widths(od.calibrate(CHAINS[chain](), logistic(prior), od.ApproxDP(epsilon, 1e-5), n=n)))
    assert max(found) <= 1.0 + 1e-6


@pytest.mark.finding("mission 2.8", commit="8a7c0fb")
@pytest.mark.parametrize("chain", ["barker", "penalty", "multi-proposal"])
def test_a_length_with_which_a_path_cannot_move_is_refused(chain: str) -> None:
    """n = 400, three columns, a prior of deviation 3: steps of 4 widths never moved, and the prior's mean was released."""
    model, length = logistic(od.Gaussian(scale=3.0)), {"barker": 6.0, "penalty": 4.0, "multi-proposal": 3.0}[chain]
    with pytest.raises(PromiseRefused, match=r"longer than the posterior is wide.*Leave out length="):
        od.calibrate(CHAINS[chain](length=length), model, BUDGET, n=400)
    planned = od.calibrate(CHAINS[chain](), model, BUDGET, n=400)
    assert widths(planned) <= 1.0 + 1e-6
    longer = {**planned.parameters, "step_length": 9.0 * planned.parameters["step_length"]}
    with pytest.raises(od.errors.OnedrawError):  # nor is a certificate that says so
        CHAINS[chain](length=9.0 * 2.0).plan(planned.request, longer)


@pytest.mark.finding("mission 2.8", commit="8a7c0fb")
def test_a_path_of_a_small_budget_moves() -> None:
    plan = od.calibrate(BarkerPath(), logistic(od.Gaussian(scale=10.0)), od.ApproxDP(0.1, 1e-5), n=400)
    rows = np.random.default_rng(1).uniform(-1, 1, size=(400, 3))
    release = od.release(plan, (rows, rows[:, 0] > 0), random_state=1)
    path = plan.mechanism.path(plan, release.certificate.draw.stages)
    moves = (np.diff(path, axis=0) != 0).any(axis=1)
    assert len(moves) > 50
    assert 0.3 < moves.mean() < 0.6  # near Barker's half


def test_a_stationary_path_accepts_what_the_longest_step_is_said_to() -> None:
    """The change of a Gaussian potential along a step of ℓ widths is N(ℓ²/2, ℓ²); by quadrature."""
    places, masses = np.polynomial.hermite_e.hermegauss(80)
    accepted = [float(masses @ (1 / (1 + np.exp(ell**2 / 2 + ell * places))) / masses.sum()) for ell in (1.0, 4.0)]
    assert 2.0 * accepted[0] == pytest.approx(0.8, abs=0.05)
    assert 2.0 * accepted[1] == pytest.approx(1 / 15, abs=0.005)
