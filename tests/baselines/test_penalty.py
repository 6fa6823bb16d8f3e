"""The penalty algorithm: its acceptance, its promise to every digit of the reference, and faults that its decisions show."""

import math

import numpy as np
import pytest
from scipy import optimize, special

import onedraw as od
from onedraw import baselines
from onedraw.baselines.penalty import BEST, acceptance, accepts_with_penalty, on_lattice
from onedraw.methods.private_chain.kernel import ChainRecords, PublicStep
from onedraw.methods.private_chain.mechanism import repeated
from onedraw.methods.private_chain.run import Secret
from onedraw.models.public_directions import PublicDirections
from onedraw.models.sums.loss_changes import BITS
from onedraw.privacy import AveragedDirectionsCurve
from onedraw.samplers.randomness import secure_generator, seeded_generator
from tests.baselines.cases import ODD
from tests.baselines.chain_cases import MODEL, logistic_records

BUDGET = od.ApproxDP(1.0, 1e-5)


@pytest.mark.parametrize(
    ("noise", "values"), [(1.0, (0.32118203, 0.61707508, 0.87306326)), (2.0, (0.18031182, 0.31731051, 0.49013834))]
)
def test_the_acceptance_has_the_values_of_the_reference(noise, values):
    assert acceptance(np.array([-1.0, 0.0, 1.0]), noise) == pytest.approx(values, abs=5e-9)


@pytest.mark.oracle
def test_the_acceptance_is_its_integral_and_in_detailed_balance():
    points = np.linspace(-12.0, 12.0, 200_001)
    for log_ratio, noise in ((-2.0, 0.5), (0.3, 2.4), (1.5, 1.0)):
        taken = np.minimum(1.0, np.exp(log_ratio + noise * points - noise**2 / 2))
        integral = np.sum(taken * np.exp(-(points**2) / 2)) * (points[1] - points[0]) / math.sqrt(2 * math.pi)
        assert acceptance(log_ratio, noise) == pytest.approx(integral, abs=1e-8)
        assert acceptance(log_ratio, noise) == pytest.approx(
            math.exp(log_ratio) * acceptance(-log_ratio, noise), rel=1e-12
        )


def test_the_best_noise_costs_least_for_a_relaxation_time():
    def cost(noise):
        return 1.0 / (noise**2 * 2.0 * special.ndtr(-noise / 2.0))

    found = optimize.minimize_scalar(cost, bounds=(1.0, 4.0), method="bounded", options={"xatol": 1e-8})
    assert found.x == pytest.approx(2.3812, abs=5e-5)
    assert pytest.approx(2.3812, abs=5e-5) == BEST
    assert acceptance(0.0, BEST) == pytest.approx(0.2338, abs=5e-5)
    assert cost(BEST) == pytest.approx(0.7543, abs=5e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("bits", [3, 5])
def test_on_a_lattice_detailed_balance_is_exact_where_half_the_variance_lies_on_it_and_else_is_not(bits):
    """By summation over the discrete Gaussian: σ = 2^−1.5·k steps of a coarse lattice."""

    def taken(cost, deviation):
        places = np.arange(-4000, 4001)
        mass = np.exp(-0.5 * (places / deviation) ** 2)
        behind = np.maximum(cost + places + round(deviation**2 / 2**bits / 2), 0)
        return float(np.sum(mass * np.exp(-behind / 2.0**bits)) / mass.sum())

    for cost in (1, 2 ** (bits - 1), 2**bits + 3):
        on = math.sqrt(2.0 * 2**bits * 2**bits)  # σ² = 2: σ²/2 is 2^bits steps
        assert taken(-cost, on) == pytest.approx(math.exp(cost / 2**bits) * taken(cost, on), rel=1e-12)
        off = math.sqrt(2.0 * 2**bits * (2**bits + 0.5))
        assert taken(-cost, off) != pytest.approx(math.exp(cost / 2**bits) * taken(cost, off), rel=1e-4)


def test_noise_is_rounded_so_that_half_its_variance_lies_on_the_lattice():
    for noise in (0.1, 1.0, 2.3812, 77.7):
        found = on_lattice(noise)
        assert found == pytest.approx(noise, abs=2e-5)
        assert (found**2 * 2.0 ** (BITS - 1)).is_integer()
    with pytest.raises(od.errors.WrongCall, match="test_noise"):
        baselines.Penalty(test_noise=1e-9)


# ── decisions, with power ──


class Faulty(Secret):
    """A secret whose noise is scaled, shifted or of another law."""

    scale, shift, uniform_law = 1.0, 0.0, False

    def noise(self, deviations):
        if self.uniform_law:
            return np.asarray(deviations * self.generator.random(len(deviations))).astype(np.int64)
        return (self.scale * super().noise(deviations) + self.shift * 2.0**BITS).astype(np.int64)


def decisions_z(secret, count, *, noise=2.0, cost=0):
    taken = sum(accepts_with_penalty(cost, noise, secret) for _ in range(count))
    expected = float(acceptance(-cost / 2**BITS, noise))
    return (taken - count * expected) / math.sqrt(count * expected * (1 - expected))


@pytest.mark.statistical
def test_decisions_have_the_acceptance_and_planted_faults_are_seen():
    """α ≈ 1e-6 at |z| < 5; the numbers of decisions are those with which each fault is seen."""
    faults = {
        "correction × 1.1": (11_082, {"shift": 0.2}), "σ × 0.9": (4_415, {"scale": 0.9, "shift": -0.38}),
        "no correction": (1_000, {"shift": -2.0}), "uniform noise": (1_000, {"uniform_law": True}),
    }  # fmt: skip
    assert abs(decisions_z(Secret(seeded_generator(1)), 11_082)) < 5
    for name, (count, planted) in faults.items():
        faulty = type("Planted", (Faulty,), planted)(seeded_generator(2))
        assert abs(decisions_z(faulty, count)) > 5, name


class Told(Secret):
    """A secret that adds no noise and remembers what it was asked for."""

    def __init__(self):
        super().__init__(seeded_generator(1))
        object.__setattr__(self, "asked", [])

    def noise(self, deviations):
        self.asked.append(list(deviations))
        return np.zeros(len(deviations), dtype=np.int64)

    def coin(self, cost, bits):
        self.asked.append((cost, bits))
        return False


@pytest.mark.parametrize("noise", [2.0, BEST])
def test_a_decision_asks_for_the_noise_of_the_promise_and_takes_half_its_variance_off(noise):
    secret = Told()
    accepts_with_penalty(12_345, noise, secret)
    assert secret.asked == [[noise * 2.0**BITS], (12_345 + noise**2 * 2.0 ** (BITS - 1), BITS)]


@pytest.mark.statistical
def test_noise_has_its_deviation_and_nine_tenths_of_it_are_seen():
    """By the variance of 2,715 numbers."""
    noise = Secret(seeded_generator(3)).noise(np.full(2_715, BEST * 2.0**BITS)) / 2.0**BITS

    def z(values):
        return (np.mean(np.square(values / BEST)) - 1.0) / math.sqrt(2.0 / len(values))

    assert abs(z(noise)) < 5
    assert z(0.9 * noise) < -5


@pytest.mark.statistical
def test_fresh_noise_is_opendps_and_decisions_away_from_zero_are_right():
    assert abs(decisions_z(Secret(secure_generator()), 1_500, noise=BEST, cost=2**BITS)) < 5
    assert abs(decisions_z(Secret(secure_generator()), 1_500, noise=1.0, cost=-(2**BITS))) < 5


# ── promise and plan ──


def test_along_the_worst_direction_the_promise_is_gaussian():
    plan = od.calibrate(baselines.Penalty(directions="worst"), MODEL, od.GaussianDP(0.5), n=500)
    numbers = plan.parameters
    expected = numbers["reach"] / numbers["noise"] * math.sqrt(numbers["steps"])
    assert plan.guarantee.promise.mu == pytest.approx(expected, rel=1e-7)
    assert expected <= plan.guarantee.promise.mu <= 0.5


def test_averaged_over_directions_it_is_lemma_1_with_the_noise_in_it():
    model = od.models.Logistic(5, data_norm=1.0, intercept=False, prior=od.Gaussian(scale=1.0))
    mechanism = baselines.Penalty()
    plan = od.calibrate(mechanism, model, BUDGET, n=1000)
    numbers = plan.parameters
    one = AveragedDirectionsCurve(5, numbers["reach"], noise=numbers["noise"])
    for order in (2.0, 8.0, 32.0):
        expected = numbers["steps"] * one.values(np.array([order]))[0]
        assert plan.guarantee.promise.divergence(order) == pytest.approx(expected, rel=1e-5)
    assert plan.guarantee.promise.implies(BUDGET)
    worst = od.calibrate(baselines.Penalty(directions="worst"), model, BUDGET, n=1000)
    assert numbers["weight"] > 3.5 * worst.parameters["weight"]  # d = 5, and 2.35/2 for the conversion
    assert plan.parameters["relaxations"] == pytest.approx(3.0, rel=1e-2)


@pytest.mark.oracle
def test_no_pair_of_records_in_the_plane_exceeds_the_averaged_curve():
    """D_α of (e, λ + σξ) over uniform directions, by quadrature: random pairs, and one that attains it."""
    generator, noise, reach = np.random.default_rng(4), 1.3, 0.9
    angles = (np.arange(720) + 0.5) * 2.0 * np.pi / 720
    around = np.stack([np.cos(angles), np.sin(angles)])
    rows = generator.standard_normal((2, 1000, 2))
    rows /= np.maximum(np.linalg.norm(rows, axis=2, keepdims=True), generator.uniform(0.3, 1.0, (2, 1000, 1)) ** -1)
    rows[:, 0] = (1.0, 0.0), (-1.0, 0.0)
    shifts = reach / 2.0 * np.abs(rows @ around).sum(axis=0)
    curve = AveragedDirectionsCurve(2, reach, noise=noise)
    for order in (1.5, 2.0, 8.0):
        found = np.log(np.exp(order * (order - 1) * shifts**2 / (2 * noise**2)).mean(axis=1)) / (order - 1)
        bound = float(curve.values(np.array([order]))[0])
        assert found.max() <= bound * (1 + 1e-9)
        assert found[0] >= 0.999 * bound


def test_a_person_with_two_records_moves_twice_as_far():
    kernel = baselines.Penalty(directions="worst").kernel
    numbers = kernel.numbers(MODEL, 0.1, 500)
    one, two = (kernel.promise(MODEL, numbers, 500, records_per_person=count).mu for count in (1, 2))
    assert two == pytest.approx(2 * one, rel=1e-9)
    assert repeated(kernel.promise(MODEL, numbers, 500), 4).mu == pytest.approx(2 * one, rel=1e-9)


def test_what_it_cannot_keep_is_refused():
    with pytest.raises(od.errors.UnsupportedBudget, match="ApproxDP"):
        od.calibrate(baselines.Penalty(), MODEL, od.PureDP(1.0), n=500)
    with pytest.raises(od.errors.UnsupportedBudget, match="some δ"):
        od.calibrate(baselines.Penalty(directions="worst"), MODEL, od.PureDP(1.0), n=500)
    with pytest.raises(od.errors.UnsupportedBudget):
        od.calibrate(baselines.Penalty(), MODEL, od.GaussianDP(1.0), n=500)
    with pytest.raises(od.errors.WrongCall, match="averaged"):
        baselines.Penalty(directions="best")


# ── a release ──


def test_a_release_says_what_it_is_and_its_path_follows_from_seed_and_decisions():
    plan = od.calibrate(baselines.Penalty(), MODEL, BUDGET, n=400)
    release = od.release(plan, logistic_records(400), random_state=3)
    assert "path of" in release.certificate.sentence
    assert "private decisions" in release.certificate.sentence
    assert "not a posterior draw" in release.certificate.sentence
    path = plan.mechanism.path(plan, release.certificate.draw.stages)
    assert len(path) == plan.parameters["steps"] + 1
    assert np.allclose(path[-1], release.draw, atol=1e-6)
    od.verify(release.certificate)


@pytest.mark.parametrize("cell", ODD, ids=repr)
def test_an_odd_record_neither_fails_nor_moves_a_decision_further_than_counted(cell):
    kernel, (X, y) = baselines.Penalty().kernel, logistic_records(50)
    numbers = kernel.numbers(MODEL, 0.1, 50)
    public = PublicStep(MODEL, numbers, 50, PublicDirections(bytes(32), 1))
    state = kernel.start(public)
    proposal = kernel.walk.proposal(state, public)
    odd = [[cell], *X[1:].tolist()]
    costs = [
        kernel.walk.cost(state, proposal, ChainRecords(MODEL.summarise(data)), public) for data in ((X, y), (odd, y))
    ]
    assert abs(costs[0] - costs[1]) <= numbers["reach"] * 2**BITS * (1 + 1e-7) + 4
