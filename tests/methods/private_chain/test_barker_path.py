"""Barker's test along public directions: its plans, what one record can move, odd cells, and paths that anyone
recomputes.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw.errors import CertificateRejected, InvalidModel, PromiseRefused, UnsupportedBudget
from onedraw.methods import BarkerPath
from onedraw.methods.private_chain import barker_path
from onedraw.methods.private_chain import run as private_path
from onedraw.methods.private_chain.barker_path import Barker, lattice_unit
from onedraw.methods.private_chain.kernel import PublicStep
from onedraw.methods.private_chain.path_loss import bernoulli_slope, path_loss
from onedraw.methods.private_chain.run import Secret, walk
from onedraw.models import (
    BinaryRegression,
    Gaussian,
    GaussianMean,
    Hinge,
    HuberRegression,
    Logistic,
    Quantile,
    Softmax,
)
from onedraw.models.sums.loss_changes import BITS
from onedraw.planning.expected_errors import expected_error
from onedraw.privacy import AveragedDirectionsCurve
from onedraw.release import Certificate
from onedraw.samplers.randomness import seed_digest, seeded_generator

BUDGET = od.ApproxDP(1.0, 1e-5)
PRIOR = Gaussian(scale=1.0)
ROWS = {"features": 2, "data_norm": 1.0, "intercept": False, "prior": PRIOR}
MODELS = {
    "hinge": Hinge(**ROWS),
    "pinball": Quantile(**ROWS, level=0.3, response_bound=2.0),
    "exp-linear": Logistic(**ROWS, loss="exp-linear"),
    "logistic": Logistic(**ROWS),
    "huber": HuberRegression(**ROWS, threshold=1.0, response_bound=2.0),
    "softmax": Softmax(**ROWS, classes=("a", "b", "c")),
}


def sphere(dimension: int) -> Logistic:
    return Logistic(dimension, data_norm=math.sqrt(dimension), intercept=False, loss="exp-linear", prior=PRIOR)


def data_for(model, n: int, seed: int = 0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, 2))
    if isinstance(model, Softmax):
        return X, generator.choice(np.array(["a", "b", "c"]), n)
    return X, generator.integers(2, size=n) if model.predicts != "number" else generator.standard_normal(n)


# ── plans ──


@pytest.mark.parametrize(
    ("dimension", "n", "length", "shown"),
    [
        (6, 1000, 2.0, ("0.5514656", 1618, "0.03005509", "0.02224969")),
        (6, 1000, 4.0, ("0.5453306", 400, "0.06011018", "0.04500000")),
        (30, 5000, 4.0, ("0.5529107", 10139, "0.02688209", "0.00887662")),
    ],
)
def test_plans_have_the_reference_values(monkeypatch, dimension, n, length, shown) -> None:
    """λ = 0.163, G = √d, D = 1. Of d = 30 the reference says T = 10,140, by a rounding of T = 4dc·nwλD²/k² =
    10139.000…"""
    known = barker_path._known_loss
    monkeypatch.setattr(barker_path, "_known_loss", lambda *asked: dataclasses.replace(known(*asked), curvature=0.163))
    numbers = od.calibrate(BarkerPath(length=length), sphere(dimension), BUDGET, n=n).parameters
    found = (numbers["weight"], int(numbers["steps"]), numbers["reach"], numbers["step_length"])
    assert (f"{found[0]:.7f}", found[1], f"{found[2]:.8f}", f"{found[3]:.8f}") == shown


def test_the_weight_beyond_its_cap_is_the_reference_but_for_one_step_in_forty_thousand(monkeypatch) -> None:
    """n = 10⁴, k = 4: 5.5331970, by orders on a grid; the best order allows one step more."""
    known = barker_path._known_loss
    monkeypatch.setattr(barker_path, "_known_loss", lambda *asked: dataclasses.replace(known(*asked), curvature=0.163))
    plan = od.calibrate(BarkerPath(length=4.0), sphere(6), BUDGET, n=10_000)
    curve = plan.mechanism.kernel.promise(plan.model, plan.parameters, plan.n).curve
    assert f"{curve.reach:.8f}" == "0.00601102"
    for steps, kept in ((40_586, True), (40_587, True), (40_588, False)):
        assert od.RenyiDP(od.privacy.RepeatedCurve(curve, steps)).implies(BUDGET) is kept
    assert f"{40_586 * 16 / (72 * 1630):.7f}" == "5.5331970"
    assert (plan.parameters["weight"], plan.parameters["relaxations"] > 3.0) == (4.0, True)


@pytest.mark.parametrize("name", MODELS)
def test_kinked_and_smooth_losses_are_accepted(name: str) -> None:
    plan = od.calibrate(BarkerPath(), MODELS[name], BUDGET, n=2000)
    loss = path_loss(MODELS[name])
    curve = plan.guarantee.promise.curve.curve
    assert isinstance(curve, AveragedDirectionsCurve)
    assert (curve.dimension, curve.rows) == (2, 3 if name == "softmax" else 1)
    assert curve.reach == pytest.approx(
        2.0 * plan.parameters["weight"] * loss.lipschitz * plan.parameters["step_length"]
    )
    assert 0.0 < curve.rounding < 1e-6 * curve.reach + 4.0 * 2.0**-BITS


def test_the_divergence_of_two_classes_has_its_slope() -> None:
    """sup|dℓ_β/du| by a fine grid; 8/27 at β = 2."""
    u = np.linspace(-30.0, 30.0, 60_001)
    p = 1.0 / (1.0 + np.exp(-u))
    for beta in (1.1, 2.0, 20.0):
        steepest = ((1 - p) * (p ** (beta - 1) * (1 - p) + p * (1 - p) ** (beta - 1))).max()
        assert steepest <= bernoulli_slope(beta) <= 1.35 * steepest
        slopes = np.abs(
            np.diff(path_loss(MODELS["logistic"], beta=beta).loss.likelihood.beta_loss(beta, u, np.ones_like(u)))
        )
        assert slopes.max() / (u[1] - u[0]) == pytest.approx(steepest, rel=1e-3)
    assert bernoulli_slope(2.0) == pytest.approx(8.0 / 27.0)
    plan = od.calibrate(BarkerPath(beta=1.5), MODELS["logistic"], BUDGET, n=2000)
    assert plan.guarantee.promise.implies(BUDGET)


def test_what_cannot_be_kept_is_refused_with_what_to_use_instead() -> None:
    for budget in (od.PureDP(1.0), od.BoundedRange(1.0)):
        with pytest.raises(UnsupportedBudget, match=r"Use ApproxDP.*1e-10"):
            od.calibrate(BarkerPath(), MODELS["hinge"], budget, n=1000)
    with pytest.raises(UnsupportedBudget, match=r"no μ follows. Use ApproxDP\(epsilon, delta\)\."):
        od.calibrate(BarkerPath(), MODELS["hinge"], od.GaussianDP(0.3), n=1000)
    for other in (BinaryRegression(2, prior=PRIOR), GaussianMean(bound=1.0, variance=1.0, prior_count=1.0)):
        with pytest.raises(UnsupportedBudget, match="linear predictors with bounded rows"):
            od.calibrate(BarkerPath(), other, BUDGET, n=1000)
    with pytest.raises(UnsupportedBudget, match="β-divergence"):
        od.calibrate(BarkerPath(beta=1.5), MODELS["hinge"], BUDGET, n=1000)


def test_a_zcdp_budget_pays_for_the_worst_direction() -> None:
    plan = od.calibrate(BarkerPath(), sphere(6), od.ZCDP(0.03), n=5000)
    assert plan.guarantee.promise.zcdp_rho == pytest.approx(0.03, rel=0.02)
    averaged = od.calibrate(BarkerPath(), sphere(6), od.ApproxDP(1.0, 1e-5), n=5000)
    assert plan.parameters["weight"] < averaged.parameters["weight"] / 5.0


def test_sums_that_could_overflow_are_refused_before_anything_is_spent() -> None:
    kernel, loss = Barker(), path_loss(MODELS["hinge"])
    numbers = {"weight": 1.0, "step_length": 1.0, "reach": 2.0}
    kernel.check_room(MODELS["hinge"], numbers, 10_000)
    with pytest.raises(InvalidModel, match="64-bit"):
        kernel.check_room(MODELS["hinge"], numbers, 10**10)
    with pytest.raises(InvalidModel, match="hold at most 16"):
        kernel.check_room(MODELS["hinge"], numbers | {"weight": 20.0}, 100)
    assert loss.slope == 1.0
    far = Hinge(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0, mean=1e9))
    with pytest.raises(PromiseRefused, match=r"more than the 2\^52"):
        kernel.check_room(far, numbers | {"step_length": 1e-3}, 100)


def test_the_error_to_expect_is_that_of_the_benchmark() -> None:
    """0.303 over 60 data sets on the sphere (benchmarks/results/barker_path.md); of a kink nothing is predicted."""
    plan = od.calibrate(BarkerPath(), sphere(6), BUDGET, n=1000)
    assert math.sqrt(6.0) * expected_error(plan).private == pytest.approx(0.303, rel=0.05)
    assert math.isnan(expected_error(od.calibrate(BarkerPath(), MODELS["hinge"], BUDGET, n=1000)).private)


# ── what one record can move ──


@pytest.fixture(scope="module", params=["hinge", "softmax"])
def target(request):
    model = MODELS[request.param]
    return od.calibrate(BarkerPath(), model, BUDGET, n=300), model


def costs(plan, model, data, places):
    chain = plan.target(model.summarise(data))
    return [chain.kernel.cost(*pair, chain.records, chain.public(bytes(32))) for pair in places]


ODD = (math.nan, math.inf, -math.inf, 1e300, -1e300)


def test_one_record_moves_a_decision_by_no_more_than_its_direction_allows(target) -> None:
    """Random replacements and odd cells: |C − C'| ≤ ⌈2ᵇwc|x·Δ|⌉ + ⌈2ᵇwc|x'·Δ|⌉ + 2, in whole numbers, of either row as
    encoded."""
    plan, model = target
    X, y = data_for(model, 300)
    generator = np.random.default_rng(5)
    public = plan.target(model.summarise((X, y))).public(bytes(32))
    places = []
    for _ in range(20):
        state = np.rint(generator.standard_normal(model.dimension) / (u := lattice_unit(public.numbers))) * u
        places.append((state, plan.mechanism.kernel.proposal(state, public)))
    before, rows = np.array(costs(plan, model, (X, y), places)), model.summarise((X, y)).X
    slope = plan.parameters["weight"] * 2.0**BITS * path_loss(model).slope
    blocks = path_loss(model).rows
    for cell in (*ODD, 0.3, -0.7):
        changed, labels = X.copy(), y.copy()
        changed[17], labels[17] = (cell, generator.standard_normal()), y[3]
        after = np.array(costs(plan, model, (changed, labels), places))
        new = model.summarise((changed, labels)).X
        for (state, proposal), one, other in zip(places, before, after, strict=True):
            moved = (proposal - state).reshape(blocks, -1)
            reach = sum(
                math.ceil(slope * float(np.linalg.norm(moved @ x)) * (1 + 1e-12)) + 1 for x in (rows[17], new[17])
            )
            assert abs(one - other) <= reach


@dataclass(frozen=True)
class Lying:
    """A loss five times as steep as it says, and no number at all far out."""

    def losses(self, theta, X, y):
        import jax.numpy as jnp

        u = X @ theta
        return jnp.where(jnp.abs(u) > 2.0, jnp.nan, 5.0 * jnp.abs(u))


def test_a_loss_that_is_steeper_than_declared_is_cut_not_trusted(monkeypatch) -> None:
    known = barker_path._known_loss
    monkeypatch.setattr(barker_path, "_known_loss", lambda *asked: dataclasses.replace(known(*asked), loss=Lying()))
    model = MODELS["hinge"]
    plan = od.calibrate(BarkerPath(), model, BUDGET, n=300)
    X, y = data_for(model, 300)
    far = np.array([2.0, 2.0]), np.array([9.0, 9.0])
    near = np.zeros(2), np.array([plan.parameters["step_length"], 0.0])
    slope = plan.parameters["weight"] * 2.0**BITS
    found = costs(plan, model, (X, y), [near, far])
    x = model.summarise((X, y)).X
    allowed = np.ceil(slope * np.abs(x @ near[1])).sum() + 300
    assert 0 < found[0] <= allowed + 2.0**BITS
    assert abs(found[1]) < 2**60


@pytest.mark.parametrize("name", ["hinge", "logistic"])
def test_changes_add_up_around_a_triangle(name: str) -> None:
    """C is a difference of one function of θ, in whole numbers: there and back is nothing, and a detour changes
    nothing."""
    model = MODELS[name]
    plan = od.calibrate(BarkerPath(), model, BUDGET, n=300)
    target = plan.target(model.summarise(data_for(model, 300)))
    public, kernel = target.public(bytes(32)), target.kernel
    first = kernel.start(public)
    for _ in range(60):
        second = kernel.proposal(first, public)
        third = kernel.proposal(second, public)
        around = [(first, second), (second, third), (third, first), (second, first)]
        there, on, back, again = (kernel.cost(*pair, target.records, public) for pair in around)
        assert there + again == 0
        assert there + on + back == 0
        first = second


def test_one_bit_has_the_reference_values() -> None:
    """s = 0.5, along the worst direction."""
    curve = od.privacy.BoundedRangeCurve(0.5)
    assert [curve(2.0), curve(8.0)] == pytest.approx([0.06185960, 0.21219232], abs=1.1e-8)
    assert AveragedDirectionsCurve(1, 0.5).slope == pytest.approx(0.03125, abs=1e-15)
    assert f"{2.0 * special.ndtri(special.expit(0.25)):.8f}" == "0.31297950"
    ratio = special.log_expit(-6.0 + 0.5) - special.log_expit(-6.0)
    assert f"{ratio:.8f}" == "0.49839724"
    assert f"{special.log_expit(0.5) - special.log_expit(0.0):.8f}" == "0.21907020"
    grid = np.linspace(1e-6, 20.0, 20_001)
    assert np.all(2.0 * special.ndtri(special.expit(grid / 2.0))[grid < 12] <= 0.62666 * grid[grid < 12])


@pytest.mark.parametrize("name", ["hinge", "softmax"])
def test_a_step_is_as_long_as_the_promise_counts(name: str) -> None:
    """The curve's reach is 2wLR, R the length of a proposal: of a hundred none is longer or shorter."""
    model = MODELS[name]
    plan = od.calibrate(BarkerPath(), model, BUDGET, n=300)
    kernel, public = plan.mechanism.kernel, plan.mechanism.public(plan, bytes(32))
    start = kernel.start(public)
    lengths = np.array([np.linalg.norm(kernel.proposal(start, public) - start) for _ in range(100)])
    curve = kernel.promise(model, plan.parameters, 300).curve
    reaches = 2.0 * plan.parameters["weight"] * path_loss(model).lipschitz * lengths
    assert np.abs(reaches - curve.reach).max() <= curve.rounding


def test_a_step_back_is_exactly_a_step_forth() -> None:
    plan = od.calibrate(BarkerPath(), MODELS["hinge"], BUDGET, n=300)
    public = plan.mechanism.public(plan, bytes(32))
    kernel, state = plan.mechanism.kernel, plan.mechanism.kernel.start(public)
    unit = lattice_unit(plan.parameters)
    for _ in range(200):
        proposal = kernel.proposal(state, public)
        assert np.array_equal(proposal - (proposal - state), state)
        assert np.array_equal(np.rint(proposal / unit) * unit, proposal)
        state = proposal


def test_a_ball_is_never_left() -> None:
    model = Hinge(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0, radius=0.05))
    plan = od.calibrate(BarkerPath(), model, BUDGET, n=300)
    states, _ = walk(plan.target(model.summarise(data_for(model, 300))), bytes(32), Secret(seeded_generator(1)))
    assert (states**2).sum(axis=1).max() <= 0.05**2


# ── releases ──


@pytest.fixture(scope="module")
def release():
    model = MODELS["hinge"]
    plan = od.calibrate(BarkerPath(), model, BUDGET, n=300, draws=2)
    return od.release(plan, data_for(model, 300), random_state=7)


def test_the_path_is_recomputed_bit_for_bit_from_the_certificate(release) -> None:
    stored = json.loads(release.certificate.to_json())
    again = Certificate.model_validate(stored)
    plan = release.plan
    for number in range(2):
        path = plan.mechanism.path(plan, again.draw.stages, number)
        assert path.shape == (plan.parameters["steps"] + 1, 2)
        assert np.array_equal(
            np.rint(plan.mechanism.published(path) / again.lattice) * again.lattice, np.array(again.draw.values[number])
        )
    assert od.verify(again).answer == "consistent"


def test_the_path_that_was_walked_is_the_path_recomputed() -> None:
    model = MODELS["pinball"]
    plan = od.calibrate(BarkerPath(publish="mean"), model, BUDGET, n=300)
    target = plan.target(model.summarise(data_for(model, 300)))
    seed = bytes(range(32))
    states, decisions = walk(target, seed, Secret(seeded_generator(3)))
    stages = json.loads(json.dumps(target.stages([seed], [decisions])))
    assert np.array_equal(plan.mechanism.path(plan, stages), states)
    assert np.array_equal(plan.mechanism.estimate(plan, stages)[0], target.published(states))
    assert 0 < sum(decisions) < len(decisions)


def test_an_edited_decision_seed_or_number_of_words_is_rejected(release) -> None:
    document = release.certificate.model_dump(mode="json")
    for stage, change in (
        ("decisions", lambda word: float(int(word) ^ 6)),
        ("seed", lambda word: float(int(word) ^ 1)),
    ):
        edited = json.loads(json.dumps(document))
        edited["draw"]["stages"][stage][0] = change(edited["draw"]["stages"][stage][0])
        with pytest.raises(CertificateRejected, match="stages"):
            od.verify(Certificate.model_validate(edited))
    for wrong in (-1.0, 0.5, 2.0**32, math.pi):
        edited = json.loads(json.dumps(document))
        edited["draw"]["stages"]["decisions"][0] = wrong
        with pytest.raises(CertificateRejected):
            od.verify(Certificate.model_validate(edited))


def test_the_secret_key_stands_nowhere(release) -> None:
    """Not in the certificate, as bytes, words or digits, and not in the release's or the secret's own words."""
    key = seed_digest(7, purpose="numpy")
    written = release.certificate.to_json() + repr(release) + repr(Secret(seeded_generator(7)))
    assert key.hex() not in written
    assert str(int.from_bytes(key, "little")) not in written
    words = {int(word) for word in np.frombuffer(key, dtype="<u4")}
    assert not words & {int(word) for word in release.certificate.draw.stages["seed"]}


@pytest.fixture(scope="module")
def short():
    return od.calibrate(BarkerPath(length=4.0, relaxations=1.0), MODELS["hinge"], BUDGET, n=300)


def test_public_seeds_of_private_releases_are_fresh(short) -> None:
    seeds = {tuple(od.release(short, data_for(short.model, 300)).certificate.draw.stages["seed"]) for _ in range(2)}
    assert len(seeds) == 2


def test_every_draw_walks_along_directions_of_its_own(release) -> None:
    seeds = np.array(release.certificate.draw.stages["seed"]).reshape(2, -1)
    assert not np.any(seeds[0] == seeds[1])


def test_decisions_do_not_follow_from_the_public_seed(short, monkeypatch) -> None:
    """Two releases along the same directions decide otherwise: the uniform numbers of a decision are nobody's."""
    monkeypatch.setattr(private_path, "public_seed", lambda generator: bytes(32))
    target = short.target(short.model.summarise(data_for(short.model, 300)))
    stages = [private_path.PrivatePath().run(target, seeded_generator(seed)).stages for seed in (1, 2)]
    assert stages[0]["seed"] == stages[1]["seed"]
    assert stages[0]["decisions"] != stages[1]["decisions"]


def test_the_certificate_says_path_and_never_draw_of_a_posterior(release) -> None:
    certificate = release.certificate
    steps = int(release.plan.parameters["steps"])
    assert f"path of {steps:,} private decisions, 3 relaxation times, not a posterior draw" in certificate.sentence
    assert "Proven: these 2 estimates together" in certificate.sentence
    assert not any(
        "real number" in one.statement or "arithmetic is real" in one.statement for one in certificate.assumptions
    )
    assert any("from a public seed" in one.statement for one in certificate.assumptions)
    assert "acceptance" not in certificate.to_json()


def test_odd_cells_neither_fail_nor_escape(short) -> None:
    X, y = data_for(short.model, 300)
    for cell in (math.nan, -math.inf, 1e300, None):
        rows = X.astype(object)
        rows[3, 1] = cell
        labels = y.astype(object)
        labels[4] = "?"
        release = od.release(short, (rows, labels), random_state=1)
        assert np.isfinite(release.draw).all()


def test_path_starts_at_the_prior_s_mean_on_the_lattice():
    model = Logistic(**{**ROWS, "prior": Gaussian(scale=1.0, mean=0.3)})
    plan = od.calibrate(BarkerPath(), model, BUDGET, n=300)
    start = Barker().start(PublicStep(model, plan.parameters, plan.n, source=None))
    assert np.abs(start - 0.3).max() <= lattice_unit(plan.parameters) / 2.0
