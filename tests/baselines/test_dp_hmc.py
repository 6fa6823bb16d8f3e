"""DP-HMC: its promise to every digit of the reference, trajectories beside a plain leapfrog, noise that is fresh at every position."""

import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import onedraw as od
from onedraw import baselines
from onedraw.baselines.dp_hmc import ClippedChanges, GradientRecords, PublicMomenta, kinetic_cost, step_mu
from onedraw.methods.private_chain.kernel import PublicStep
from onedraw.methods.private_chain.mechanism import repeated
from onedraw.methods.private_chain.run import Secret
from onedraw.models.sums.gradient_sums import row_lattice, steps_of
from onedraw.models.sums.loss_changes import BITS, LossChanges
from onedraw.samplers.randomness import seeded_generator
from tests.baselines.cases import ODD
from tests.baselines.chain_cases import MODEL, logistic_records

BUDGET = od.ApproxDP(1.0, 1e-5)
WIDE = od.models.Logistic(3, bounds=(-1, 1), prior=od.Gaussian(scale=1.0))


class Recorded(Secret):
    """A secret that remembers its noise; ``given`` is used instead, from the front, where there is any."""

    def __init__(self, generator, given=(), silent=False):
        object.__setattr__(self, "generator", generator)
        object.__setattr__(self, "given", list(given))
        object.__setattr__(self, "drawn", [])
        object.__setattr__(self, "silent", silent)

    def noise(self, deviations):
        found = self.given.pop(0) if self.given else super().noise(deviations) * (not self.silent)
        self.drawn.append(found)
        return found


def parts(mechanism, model=WIDE, n=200, weight=0.05, data=None):
    """(kernel, its numbers, records, public), as a target has them."""
    kernel, lattice = mechanism.kernel, row_lattice(model, n)
    numbers = kernel.numbers(model, weight, n)
    encoded = model.summarise(data or logistic_records(n, model.features.count))
    public = PublicStep(model, numbers, n, PublicMomenta(bytes(32), model.dimension))
    return kernel, numbers, GradientRecords(encoded, model.kernel, lattice), public


def test_the_promise_has_the_values_of_the_reference():
    """L = 10, μ_g = 0.01, μ_test = 0.02, T = 100."""
    one = step_mu(10, 0.01, 0.02)
    assert one == pytest.approx(0.03872983, abs=5e-9)
    together = repeated(od.GaussianDP(one), 100)
    assert together.mu == pytest.approx(0.38729833, abs=5e-9)
    assert together.epsilon(1e-5) == pytest.approx(1.50037, abs=5e-6)


@pytest.mark.parametrize("records", [1, 3])
def test_a_step_promises_its_gradients_and_its_test(records):
    for mechanism in (baselines.DPHMC(), baselines.DPHMC(test="barker", leapfrogs=4)):
        kernel = mechanism.kernel
        numbers = kernel.numbers(WIDE, 0.05, 400)
        gradient = records * 0.05 * (numbers["gradient_difference"] + numbers["rounding"]) / numbers["gradient_noise"]
        positions, moved = kernel.leapfrogs + 1, records * numbers["reach"]
        promise = kernel.promise(WIDE, numbers, 400, records_per_person=records)
        if mechanism.test == "penalty":
            expected = math.sqrt(positions * gradient**2 + (moved / numbers["test_noise"]) ** 2)
            assert promise.mu == pytest.approx(expected, rel=1e-7)
            assert promise.mu >= expected
        else:
            expected = positions * gradient**2 / 2 + moved**2 / 8
            assert promise.rho == pytest.approx(expected, rel=1e-7)
            assert promise.rho >= expected


@pytest.mark.parametrize("test", ["penalty", "barker"])
def test_the_budget_is_kept_and_nearly_spent(test):
    plan = od.calibrate(baselines.DPHMC(test=test), WIDE, BUDGET, n=1000)
    assert plan.guarantee.promise.implies(BUDGET)
    assert plan.guarantee.promise.epsilon(1e-5) > 0.97
    assert plan.parameters["relaxations"] >= 3.0


def test_without_noise_a_trajectory_is_a_leapfrog_of_the_exact_potential():
    kernel, numbers, records, public = parts(baselines.DPHMC(leapfrogs=5))
    state, momentum = np.array([0.3, -0.2, 0.1, 0.4]), np.array([0.5, 1.0, -0.7, 0.2])
    found = kernel.trajectory(state, momentum, records, public, Recorded(seeded_generator(1), silent=True))
    X, y = logistic_records(200, 3)
    X, signs, size = np.c_[X, np.ones(200)], 2.0 * y - 1.0, numbers["step_size"]

    def gradient(theta):
        return numbers["weight"] * (-signs / (1.0 + np.exp(signs * (X @ theta)))) @ X + theta

    for _ in range(5):
        momentum = momentum - size / 2 * gradient(state)
        state = state + size * momentum
        momentum = momentum - size / 2 * gradient(state)
    assert found[0] == pytest.approx(state, abs=1e-5)
    assert found[1] == pytest.approx(momentum, abs=1e-5)


def test_with_its_noise_reversed_a_trajectory_comes_back():
    kernel, _, records, public = parts(baselines.DPHMC(leapfrogs=4))
    forth = Recorded(seeded_generator(2))
    state, momentum = np.array([0.1, 0.2, -0.3, 0.0]), public.direction()
    end, last = kernel.trajectory(state, momentum, records, public, forth)
    assert not np.allclose(end, state, atol=1e-3)
    back = Recorded(seeded_generator(3), given=forth.drawn[::-1])
    again, turned = kernel.trajectory(end, -last, records, public, back)
    assert again == pytest.approx(state, abs=1e-9)
    assert -turned == pytest.approx(momentum, abs=1e-9)


def test_every_step_draws_fresh_noise_at_each_of_its_positions_after_a_rejection_too():
    """Planted and caught: a gradient that is kept after a rejection, as k·L + 1 of them would be paid for."""
    kernel, _, records, public = parts(baselines.DPHMC(leapfrogs=3, test="barker"))
    secret, state, rejected = Recorded(seeded_generator(4)), kernel.start(public), 0
    for step in range(12):
        state, taken = kernel.step(state, records, public, secret)
        rejected += 1 - taken
        assert len(secret.drawn) == 4 * (step + 1)
    assert rejected
    assert len({noise.tobytes() for noise in secret.drawn}) == len(secret.drawn)


def test_a_certificate_cannot_state_gradients_nearer_than_the_model_has_them():
    """Numbers of a plan may differ in their last digits; what is promised comes from the model."""
    kernel = baselines.DPHMC().kernel
    numbers = kernel.numbers(WIDE, 0.05, 400)
    for name in ("gradient_difference", "rounding", "reach", "lipschitz"):
        nearer = {**numbers, name: numbers[name] * (1.0 - 9e-7)}
        assert kernel.promise(WIDE, nearer, 400) == kernel.promise(WIDE, numbers, 400)


def test_noise_has_the_deviation_that_the_promise_counts():
    """α ≈ 1e-6: 3,000 numbers show a deviation that is 0.9 times as large (z ≈ −7)."""
    kernel, numbers, _, _ = parts(baselines.DPHMC())
    deviations, secret = kernel.deviations(WIDE, numbers, 200), Secret(seeded_generator(5))
    units = steps_of(row_lattice(WIDE, 200)) * numbers["weight"]
    noise = np.array([secret.noise(deviations) * units for _ in range(750)]).reshape(-1)

    def z(values):
        return (np.mean(np.square(values / numbers["gradient_noise"])) - 1.0) / math.sqrt(2.0 / len(values))

    assert abs(z(noise)) < 5
    assert z(0.9 * noise) < -5


def test_a_move_longer_than_what_is_counted_is_rejected():
    kernel, numbers, records, public = parts(baselines.DPHMC(leapfrogs=2))
    short = replace(public, numbers={**numbers, "longest": 1e-9})
    state, secret = kernel.start(public), Secret(seeded_generator(6))
    assert all(kernel.step(state, records, short, secret)[1] == 0 for _ in range(20))
    assert any(kernel.step(state, records, public, secret)[1] for _ in range(60))


def test_clipped_ratios_are_refused_unless_asked_for_as_published():
    with pytest.raises(od.errors.PromiseRefused, match="as_published"):
        baselines.DPHMC(clip_ratios=0.1)
    with pytest.raises(od.errors.WrongCall, match="clip_ratios"):
        baselines.DPHMC(as_published=True)
    mechanism = baselines.DPHMC(clip_ratios=0.1, as_published=True, leapfrogs=2)
    assert mechanism.kernel.invariant == "unknown"
    plan = od.calibrate(mechanism, MODEL, BUDGET, n=400)
    release = od.release(plan, logistic_records(400), random_state=1)
    assert "NOT PROVEN, as published: Claimed: this estimate" in release.certificate.sentence
    assert "Proven:" not in release.certificate.sentence
    assert "stationary law unknown" in release.certificate.sentence


def test_a_clipped_ratio_is_no_difference_of_potentials_and_the_proven_one_is():
    """From a to c is not from a to b and from b to c: that is why no law is known."""
    kernel, numbers, records, _ = parts(baselines.DPHMC(clip_ratios=0.3, as_published=True), model=MODEL)
    places = [np.array([-8.0]), np.array([0.0]), np.array([3.0])]
    scale, loss = numbers["weight"] * 2.0**BITS, kernel.walk.loss(MODEL)

    def apart(statistic, slope):
        steps = [(places[0], places[1]), (places[1], places[2]), (places[0], places[2])]
        sums = [int(records.sum(statistic, *ends, scale, scale * slope, loss.row_bound)[0]) for ends in steps]
        return abs(sums[0] + sums[1] - sums[2])

    assert apart(LossChanges(loss.loss), loss.slope) == 0
    assert apart(ClippedChanges(loss.loss), 0.3) > scale


def test_room_is_that_of_the_published_cut_and_not_of_the_loss():
    for cut, refused in ((0.3, False), (1e6, True)):
        kernel, numbers, *_ = parts(baselines.DPHMC(clip_ratios=cut, as_published=True), model=MODEL)
        with pytest.raises(od.errors.InvalidModel, match="hold at most") if refused else nullcontext():
            kernel.check_room(MODEL, numbers, 200)


def test_options_that_mean_nothing_are_refused():
    for wrong in (
        {"test": "metropolis"},
        {"test": "barker", "test_noise": 1.0},
        {"leapfrogs": 0},
        {"leapfrogs": 10_000},
    ):
        with pytest.raises(od.errors.OnedrawError):
            baselines.DPHMC(**wrong)
    with pytest.raises(od.errors.UnsupportedBudget, match="some δ"):
        od.calibrate(baselines.DPHMC(), WIDE, od.PureDP(1.0), n=500)


def test_a_release_says_what_it_is():
    plan = od.calibrate(baselines.DPHMC(leapfrogs=3), MODEL, BUDGET, n=400)
    release = od.release(plan, logistic_records(400), random_state=3)
    assert "DP-HMC, path of" in release.certificate.sentence
    assert "not a posterior draw" in release.certificate.sentence
    od.verify(release.certificate)


@pytest.mark.parametrize("cell", ODD, ids=repr)
def test_an_odd_record_neither_fails_nor_moves_a_gradient_further_than_counted(cell):
    X, y = logistic_records(50)
    _, numbers, records, _ = parts(baselines.DPHMC(), model=MODEL, n=50)
    other = parts(baselines.DPHMC(), model=MODEL, n=50, data=([[cell], *X[1:].tolist()], y))[2]
    units = steps_of(row_lattice(MODEL, 50))
    for theta in (np.array([0.0]), np.array([40.0]), np.array([-1e6])):
        moved = np.linalg.norm((records.gradient(theta) - other.gradient(theta)) * units)
        assert moved <= numbers["gradient_difference"] + numbers["rounding"]


def test_no_pair_of_records_has_gradients_further_apart_than_counted():
    """Single records against one another, at random places: at most G + ρ, and nearly as far for some."""
    _, numbers, _, _ = parts(baselines.DPHMC(), n=2)
    generator, units, largest = np.random.default_rng(6), steps_of(row_lattice(WIDE, 2)), 0.0
    for _ in range(60):
        X, theta = generator.choice([-1.0, 1.0], (2, 3)), generator.normal(size=4) * generator.choice([0.1, 3.0, 30.0])
        pair = [
            parts(
                baselines.DPHMC(), n=2, data=(np.r_[X[:1], X[1:]][[one, one]], generator.integers(2, size=2)[[0, 0]])
            )[2]
            for one in (0, 1)
        ]
        apart = (pair[0].gradient(theta) - pair[1].gradient(theta)) / 2.0  # two copies of each
        largest = max(largest, float(np.linalg.norm(apart * units)))
    assert 0.4 * numbers["gradient_difference"] < largest <= numbers["gradient_difference"] + numbers["rounding"]


def test_kinetic_energy_is_a_whole_number():
    assert kinetic_cost(np.array([1.0, 1.0])) == 2**BITS
    assert kinetic_cost(np.zeros(3)) == 0
