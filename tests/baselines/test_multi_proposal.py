"""Multi-proposal chains: layouts whose points are all alike, the range of one record, the promise, and the path from its decisions."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import onedraw as od
from onedraw import baselines
from onedraw.methods.private_chain import barker_path
from onedraw.methods.private_chain.barker_path import lattice_unit
from onedraw.methods.private_chain.kernel import ChainRecords, PublicStep
from onedraw.methods.private_chain.run import Secret
from onedraw.models.public_directions import PublicDirections
from onedraw.models.sums.loss_changes import BITS
from onedraw.privacy import BoundedRangeCurve
from onedraw.samplers.randomness import seeded_generator
from tests.baselines.cases import ODD
from tests.baselines.chain_cases import MODEL, logistic_records

BUDGET = od.ApproxDP(1.0, 1e-5)
WIDE = od.models.Logistic(2, data_norm=1.0, intercept=False, prior=od.Gaussian(scale=1.0))


def plan_of(mechanism=None, model=WIDE, n=1000):
    return od.calibrate(mechanism or baselines.MultiProposal(proposals=4), model, BUDGET, n=n)


def parts(model=WIDE, weight=0.1, n=20, proposals=4, length=None):
    """(kernel, its numbers, public), as a target has them."""
    kernel = baselines.MultiProposal(proposals=proposals, length=length).kernel
    numbers = kernel.numbers(model, weight, n)
    return kernel, numbers, PublicStep(model, numbers, n, PublicDirections(bytes(32), model.dimension + 2))


@pytest.mark.parametrize("chain", [baselines.MultiProposal(), baselines.DPHMC(), baselines.Penalty(), od.BarkerPath()], ids=lambda chain: chain.title)  # fmt: skip
def test_every_chain_says_when_its_public_seed_is_drawn(chain):
    assert any(
        "public seed, drawn at the release when the records are fixed" in claim for claim in chain.kernel.enforced
    )


def test_costs_at_the_ends_of_their_room_are_selected_among():
    """Records and a steep prior that pull as far as they can, both ways."""
    model = od.models.Logistic(2, data_norm=1.0, intercept=False, prior=od.Gaussian(scale=1e-9))
    kernel, _, public = parts(model, n=10**9, proposals=2)
    points, most = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]), 2**60 + 2 * 10**9

    class Extreme:
        def sum(self, *_):
            return np.array([0, most, -most])

    costs = kernel.costs(points[0], points, Extreme(), public)
    assert costs[2] < -(2**60) < 2**60 < costs[1]
    assert Secret(seeded_generator(1)).select(costs, BITS) == 2


def test_the_promise_is_a_bounded_range_at_every_step():
    plan = plan_of()
    numbers = plan.parameters
    assert numbers["reach"] == pytest.approx(2 * numbers["weight"] * 2.0 * numbers["ball"], rel=1e-12)  # 2wGr, G = 2
    one = BoundedRangeCurve(numbers["reach"])
    for order in (2.0, 16.0):
        expected = numbers["steps"] * float(one.values(np.array([order]))[0])
        assert plan.guarantee.promise.divergence(order) == pytest.approx(expected, rel=1e-5)
        assert plan.guarantee.promise.divergence(order) >= expected
    assert plan.guarantee.promise.implies(BUDGET)
    assert plan.guarantee.promise.pure_epsilon == pytest.approx(numbers["steps"] * numbers["reach"], rel=1e-5)


def test_more_proposals_save_steps_and_no_privacy():
    one, many = (plan_of(baselines.MultiProposal(proposals=count)).parameters for count in (1, 60))
    assert many["weight"] / one["weight"] == pytest.approx(2.0 * 60 / 61, rel=0.02)  # (K + 1)/K
    barker = od.calibrate(od.methods.BarkerPath(), WIDE, BUDGET, n=1000).parameters
    assert barker["weight"] / many["weight"] == pytest.approx(4.0, rel=0.05)  # (d + 2) of 0.5(d + 2) against 0.5


def test_points_of_a_layout_are_in_one_ball_and_on_the_lattice():
    kernel, numbers, public = parts()
    state, distances = kernel.start(public), []
    for _ in range(400):
        middle, points = kernel.layout(state, public)
        assert np.array_equal(points[0], state)
        assert np.all(points / lattice_unit(numbers) % 1.0 == 0.0)
        distances.append(np.linalg.norm(points - middle, axis=1))
    distances = np.array(distances) / numbers["ball"]
    assert distances.max() <= 1.0 + 1e-7
    # uniform in a disc: the squared distance is uniform, for the state as for the others
    for column in np.square(distances).T:
        assert abs(column.mean() - 0.5) < 5.0 / math.sqrt(12 * len(column))


def test_one_record_moves_differences_of_costs_by_the_range_at_most():
    """Replaced by any other of random ones: never by more, and by a good part of it."""
    kernel, numbers, public = parts()
    generator, largest, state = np.random.default_rng(1), 0.0, kernel.start(public)
    for _ in range(60):
        middle, points = kernel.layout(state, public)
        found = []
        for _ in range(2):
            row, label = generator.standard_normal(2), generator.integers(2)
            data = np.r_[np.zeros((19, 2)), [row / np.linalg.norm(row)]], np.r_[np.zeros(19, int), label]
            found.append(kernel.costs(middle, points, ChainRecords(WIDE.summarise(data)), public))
        largest = max(largest, float(np.ptp(found[0] - found[1])))
    counted = numbers["reach"] * 2**BITS
    assert 0.3 * counted < largest <= counted + 8


@dataclass(frozen=True)
class Steep:
    """A loss ten times as steep as it says."""

    def losses(self, theta, X, y):
        return 10.0 * y * (X @ theta)


def test_a_loss_that_is_steeper_than_declared_is_cut_at_every_point(monkeypatch):
    known = barker_path._known_loss
    monkeypatch.setattr(barker_path, "_known_loss", lambda *asked: replace(known(*asked), loss=Steep()))
    kernel, numbers, public = parts(n=20)
    for _ in range(5):
        middle, points = kernel.layout(kernel.start(public), public)
        row = points[1] - middle
        rows = np.r_[np.zeros((19, 2)), [row / np.linalg.norm(row)]]
        both = [
            kernel.costs(middle, points, ChainRecords(WIDE.summarise((X, np.ones(20, int)))), public)
            for X in (rows, -rows)
        ]
        assert np.ptp(both[0] - both[1]) <= numbers["reach"] * 2**BITS * (1 + 1e-6) + 8


@pytest.mark.parametrize("cell", ODD, ids=repr)
def test_an_odd_record_neither_fails_nor_moves_costs_further_than_counted(cell):
    kernel, numbers, public = parts(MODEL, n=30)
    X, y = logistic_records(30)
    middle, points = kernel.layout(np.array([0.5]), public)
    both = ((X, y), ([[cell], *X[1:].tolist()], y))
    costs = [kernel.costs(middle, points, ChainRecords(MODEL.summarise(data)), public) for data in both]
    assert np.ptp(costs[0] - costs[1]) <= numbers["reach"] * 2**BITS * (1 + 1e-6) + 8


def test_points_outside_the_priors_ball_are_never_chosen():
    model = od.models.Logistic(2, data_norm=1.0, intercept=False, prior=od.Gaussian(scale=1.0, radius=0.5))
    kernel, numbers, public = parts(model, weight=0.04, n=200, proposals=6)
    records, secret = ChainRecords(model.summarise(logistic_records(200, 2))), Secret(seeded_generator(1))
    assert numbers["ball"] > 0.1
    state, left = kernel.start(public), 0
    for _ in range(60):
        state, chosen = kernel.step(state, records, public, secret)
        left += chosen > 0
        assert np.linalg.norm(state) <= 0.5
    assert left > 5


def test_a_prior_far_narrower_than_a_step_keeps_the_state_and_does_not_fail():
    model = od.models.Logistic(1, bounds=(-1, 1), intercept=False, prior=od.Gaussian(scale=1e-9))
    kernel, numbers, public = parts(model, n=20, length=2.0)
    records = ChainRecords(model.summarise(logistic_records(20)))
    assert numbers["ball"] > 1e7 * 1e-9
    assert kernel.step(np.array([0.0]), records, public, Secret(seeded_generator(2))) == (np.array([0.0]), 0)


def test_a_release_says_what_it_is_and_its_path_follows_from_seed_and_decisions():
    plan = plan_of(model=MODEL)
    release = od.release(plan, logistic_records(1000), random_state=3)
    assert "multi-proposal chain, path of" in release.certificate.sentence
    assert "not a posterior draw" in release.certificate.sentence
    path = plan.mechanism.path(plan, release.certificate.draw.stages)
    assert np.allclose(path[-1], release.draw, atol=1e-6)
    od.verify(release.certificate)


def test_what_it_cannot_keep_is_refused():
    with pytest.raises(od.errors.UnsupportedBudget):
        od.calibrate(baselines.MultiProposal(), WIDE, od.PureDP(1.0), n=200)
    with pytest.raises(od.errors.WrongCall, match="proposals"):
        baselines.MultiProposal(proposals=1000)
