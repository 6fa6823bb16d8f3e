"""Two papers' own weights of a Gibbs posterior (minami.py, wang_ops.py): what they promise, where they are false, and how far they fall behind
ours."""

import math

import numpy as np
import pytest

import onedraw as od
from onedraw import models
from onedraw.audit.cases import examine
from onedraw.baselines import Minami, OnePosteriorSample
from onedraw.baselines.wang_ops import likelihood_bound
from onedraw.methods import plan_from_dict
from onedraw.methods.catalog import case_for, cases

BUDGET = od.ApproxDP(1.0, 1e-5)
UNIT = models.Logistic(features=3, bounds=(0, 1), prior=od.Gaussian(scale=3.0))
SQUARES = models.LeastSquares(features=1, bounds=(-1, 1), response_bound=1.0, prior=od.Gaussian(scale=1.0, radius=2.0))


# ── Minami et al. ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_weight_is_that_of_corollary_8_with_the_constant_column_in_l():
    """w = (ε/2L)√(m/(1 + 2 log 1/δ)), L = √4 for three features in [0, 1] and the constant one."""
    plan = od.calibrate(Minami(), UNIT, BUDGET, n=50, gamma=0.0)
    printed = 1.0 / (2.0 * 2.0) * math.sqrt((1.0 / 9.0) / (1.0 + 2.0 * math.log(1e5)))
    assert plan.parameters["weight"] == pytest.approx(printed, rel=1e-6)
    assert (
        plan.parameters["weight"]
        == od.calibrate(od.Gibbs("corollary8"), UNIT, BUDGET, n=50, gamma=0.0).parameters["weight"]
    )
    doubled = od.calibrate(Minami(doubled=True), UNIT, BUDGET, n=50, gamma=0.0)
    assert doubled.parameters["weight"] == plan.parameters["weight"] / 2.0


@pytest.mark.parametrize("mechanism", [Minami(), Minami(doubled=True), Minami(as_published=True)])
def test_within_its_range_it_is_proven_released_and_verified(mechanism):
    plan = od.calibrate(mechanism, UNIT, BUDGET, n=40)
    assert plan.mechanism.proven
    assert plan_from_dict(plan.to_dict()) == plan
    generator = np.random.default_rng(1)
    release = od.release(plan, (generator.uniform(0, 1, (40, 3)), generator.integers(0, 2, 40)))
    assert release.certificate.sentence.startswith("Proven")
    assert od.verify(release)


def test_beyond_it_is_refused_or_marked_as_not_proven_and_no_ledger_takes_it(tmp_path):
    beyond, records = od.ApproxDP(20.0, 1e-5), (np.zeros((40, 3)), np.arange(40) % 2)
    with pytest.raises(od.errors.PromiseRefused, match="errata 16"):
        od.calibrate(Minami(), UNIT, beyond, n=40)
    plan = od.calibrate(Minami(as_published=True), UNIT, beyond, n=40)
    assert not plan.mechanism.proven
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    with pytest.raises(od.errors.PromiseRefused, match="not proven"):
        od.release(plan, records, ledger=ledger, dataset="d")
    assert od.calibrate(Minami(doubled=True, as_published=True), UNIT, od.ApproxDP(15.0, 1e-5), n=40).mechanism.proven


@pytest.mark.slow
def test_a_release_as_published_says_first_that_it_is_not_proven():
    plan = od.calibrate(Minami(as_published=True), UNIT, od.ApproxDP(20.0, 1e-5), n=40)
    release = od.release(plan, (np.zeros((40, 3)), np.arange(40) % 2))
    assert release.certificate.sentence.startswith("NOT PROVEN")
    assert od.verify(release)


def test_the_audit_keeps_what_is_true_and_breaks_what_is_published():
    (case,) = cases("baselines", BUDGET, mechanism="minami")
    found = examine(case)
    assert found.passed
    assert 1.3 < found.gap < 1.4
    assert case.profile(found.pair, 1.4).breaks(case.promise) is not None
    hinge = models.Hinge(features=1, intercept=False, data_norm=0.1, prior=od.Gaussian(scale=1.0))  # errata 16
    broken = case_for(od.calibrate(Minami(as_published=True), hinge, od.ApproxDP(20.0, 1e-5), n=1))
    assert not examine(broken).passed
    assert broken.profile(broken.pairs[0]).delta(20.0) == pytest.approx(1.16e-3, rel=0.01)


# ── Wang, Fienberg, Smola ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_weight_is_the_published_one_and_the_promise_the_true_one():
    plan = od.calibrate(OnePosteriorSample(), SQUARES, od.PureDP(1.0), n=50)
    u, bound = 2.0 * math.sqrt(2.0), (1.0 + 2.0 * math.sqrt(2.0)) ** 2 / 2.0
    assert plan.parameters["likelihood_bound"] == pytest.approx(bound)
    assert plan.parameters["weight"] == pytest.approx(1.0 / (4.0 * bound))
    assert plan.parameters["range"] == pytest.approx((1.0 + u) ** 2)
    assert plan.guarantee.promise.pure_epsilon == pytest.approx(0.5)
    ours = od.calibrate(od.Gibbs("bounded"), SQUARES, od.PureDP(1.0), n=50)
    assert ours.parameters["weight"] == pytest.approx(2.0 * plan.parameters["weight"])
    release = od.release(plan, (np.linspace(-1, 1, 50)[:, None], np.linspace(-2, 2, 50)))
    assert od.verify(release)
    assert plan_from_dict(plan.to_dict()) == plan


@pytest.mark.oracle
def test_no_loss_on_the_ball_is_above_the_stated_bound():
    generator = np.random.default_rng(2)
    for model in (
        SQUARES,
        models.Logistic(features=2, data_norm=2.0, prior=od.Gaussian(scale=1.0, radius=1.5)),
        models.HuberRegression(features=2, data_norm=2.0, threshold=0.5, response_bound=3.0, prior=od.Gaussian(scale=1.0, radius=1.5)),
    ):  # fmt: skip
        u = generator.uniform(-model.predictor_bound, model.predictor_bound, 20_000)
        y = generator.uniform(*model.responses, 20_000)
        y = np.sign(y) if isinstance(model, models.Logistic) else y
        found = np.abs(model.kernel.value(u, y)).max()
        assert 0.8 * likelihood_bound(model) < found <= likelihood_bound(model)


def test_several_draws_and_records_share_the_budget():
    one, six = (
        od.calibrate(OnePosteriorSample(), SQUARES, od.PureDP(1.0), n=50, draws=d, records_per_person=k).parameters[
            "weight"
        ]
        for d, k in ((1, 1), (2, 3))
    )
    assert six == pytest.approx(one / 6.0)


def test_where_only_a_chain_draws_a_pure_budget_is_refused_and_a_delta_is_the_remedy():
    prior = od.Gaussian(scale=1.0, radius=2.0)
    model = models.Logistic(features=1, data_norm=1.0, prior=prior)
    refused = od.errors.UnsupportedBudget
    flat = models.Logistic(features=1, data_norm=1.0, loss="exp-linear", prior=prior)
    with pytest.raises(refused, match="tiny δ"):
        od.calibrate(OnePosteriorSample(), flat, od.PureDP(1.0), n=50)
    assert od.calibrate(OnePosteriorSample(), model, od.PureDP(1.0), n=50).guarantee.promise.implies(od.PureDP(1.0))
    plan = od.calibrate(OnePosteriorSample(), model, od.ApproxDP(1.0, 1e-8), n=50)
    assert plan.parameters["weight"] == pytest.approx(1.0 / (4.0 * math.log1p(math.exp(2.0 * math.sqrt(2.0)))))
    with pytest.raises(refused, match="pure ε"):
        od.calibrate(OnePosteriorSample(), SQUARES, od.ZCDP(0.1), n=50)
    with pytest.raises(refused, match="radius"):
        od.calibrate(
            OnePosteriorSample(), models.Logistic(features=1, data_norm=1.0, prior=od.Gaussian(scale=1.0)), BUDGET, n=50
        )


def test_the_audit_finds_the_promise_kept_and_attained():
    (case,) = cases("baselines", BUDGET, mechanism="one-posterior-sample")
    found = examine(case)
    assert found.passed
    assert 1.0 - 1e-9 <= found.gap < 1.0001
    assert case.profile(found.pair, 1.05).breaks(case.promise) is not None


@pytest.mark.parametrize("odd", [np.nan, np.inf, -1e308, None, "seven"])
def test_one_odd_cell_does_not_make_it_fail(odd):
    plan = od.calibrate(OnePosteriorSample(), SQUARES, od.PureDP(1.0), n=5)
    assert np.isfinite(od.release(plan, ([[0.1], [odd], [0.3], [1.0], [0.0]], [0.0, 0.5, odd, 1.0, 1.0])).draw).all()
