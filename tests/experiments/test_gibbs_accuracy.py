"""PAC-Bayes for the hinge loss, with its two corrections, the predicted covariance of a draw, and the studies of the paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from experiments.gibbs_accuracy.asymptotics import draw_covariance, draw_deviation
from experiments.gibbs_accuracy.pac_bayes import HingePacBayes
from experiments.gibbs_accuracy.run import STUDIES

from onedraw.errors import InvalidBudget, InvalidModel
from onedraw.privacy import ApproxDP
from tests.experiments.cases import quickly_checked

SMALL = HingePacBayes(n=20, features=1, data_norm=1.0, regularisation=0.05)


def log_moment(bound, beta, *, positive):
    """log E_π E exp(β(R − R_n)) for z = r and labels +1 with this probability, by quadrature over the prior."""
    n, r = bound.n, bound.data_norm
    deviation = 1 / math.sqrt(n * bound.regularisation)
    theta = np.linspace(-40, 40, 200_001)
    losses = np.maximum(0, 1 - r * theta), np.maximum(0, 1 + r * theta)
    risk = positive * losses[0] + (1 - positive) * losses[1]
    terms = [math.log(p) + beta / n * (risk - loss) for p, loss in zip((positive, 1 - positive), losses, strict=True)]
    values = n * np.logaddexp(*terms) - theta**2 / (2 * deviation**2) - math.log(deviation * math.sqrt(2 * math.pi))
    top = values.max()
    return top + math.log(np.exp(values - top).sum() * (theta[1] - theta[0]))


def published(bound, beta):
    """Example 19's f."""
    n, r, strength = bound.n, bound.data_norm, bound.regularisation
    return beta**2 / (4 * n) - 0.5 * math.log(1 - r**2 * beta**2 / (4 * strength * n**2))


def test_the_published_f_is_false_in_one_dimension_and_the_corrected_one_is_not():
    """Errata 22, at β² = 28.8: log-moment 0.696 against the published 0.583."""
    beta = math.sqrt(28.8)
    true = log_moment(SMALL, beta, positive=0.5)
    assert f"{true:.6f}".startswith("0.696")
    assert f"{published(SMALL, beta):.3f}" == "0.583"
    assert true <= SMALL.hoeffding(beta / SMALL.n)


@pytest.mark.parametrize("positive", [0.5, 0.3, 0.9])
@pytest.mark.parametrize("bound", [SMALL, HingePacBayes(n=100, features=1, data_norm=0.5, regularisation=0.01)])
def test_the_corrected_f_bounds_both_log_moments_up_to_the_largest_weight(bound, positive):
    for share in (0.1, 0.5, 0.9):
        weight = share * bound.weight_limit
        for sign in (1.0, -1.0):
            assert log_moment(bound, sign * bound.n * weight, positive=positive) <= bound.hoeffding(weight)


def test_f_is_the_formula_of_mathematics_section_4():
    bound = HingePacBayes(n=500, features=7, data_norm=2.0, regularisation=0.3)
    b = bound.n * (weight := 0.1)
    printed = b**2 / (4 * 500) - 3.5 * math.log(1 - 4 * b**2 / (2 * 0.3 * 500**2))
    assert bound.hoeffding(weight) == pytest.approx(printed, rel=1e-11)
    assert bound.hoeffding(weight) >= printed
    assert bound.weight_limit == pytest.approx(math.sqrt(0.6) / 2)
    assert bound.public_part(weight, alpha=0.05) == pytest.approx((printed + math.log(20)) / b)


def test_the_bound_adds_up_and_loosens_with_confidence():
    weight = 0.1
    loose, tight = (SMALL.risk_bound(weight, empirical_risk=0.4, divergence=1.5, alpha=alpha) for alpha in (0.01, 0.1))
    assert loose - tight == pytest.approx(math.log(10) / (20 * weight))
    assert tight == pytest.approx(0.4 + 1.5 / 2 + SMALL.public_part(weight, alpha=0.1))
    oracle = SMALL.oracle_bound(weight, risk=0.4, divergence=1.5, alpha=0.1)
    assert oracle - 0.4 == pytest.approx(2 * (tight - 0.4))


def test_both_promises_hold_for_one_weight():
    budget = ApproxDP(1.0, 1e-5)
    bound = HingePacBayes(n=50, features=5, data_norm=1.0, regularisation=0.01)
    weight = bound.largest_weight(budget)
    assert bound.promise(weight).implies(budget)
    assert weight < bound.weight_limit
    assert not bound.promise(1.001 * weight).implies(budget)
    narrow = HingePacBayes(n=10**9, features=5, data_norm=1.0, regularisation=0.01)
    assert narrow.largest_weight(budget) == pytest.approx(narrow.weight_limit), "here the risk bound is the tighter one"
    assert narrow.hoeffding(narrow.largest_weight(budget)) > 0
    words = bound.both(weight, delta=1e-5, alpha=0.05)
    assert "(ε = 1, δ = 1e-05)" in words
    assert "0.95" in words


@pytest.mark.parametrize(
    "options",
    [{"n": 0}, {"features": 0}, {"data_norm": math.inf}, {"regularisation": 0.0}, {"regularisation": math.nan}],
)
def test_a_bound_without_its_assumptions_is_refused(options):
    with pytest.raises((InvalidModel, InvalidBudget)):
        HingePacBayes(**({"n": 10, "features": 1, "data_norm": 1.0, "regularisation": 0.1} | options))


def test_a_weight_beyond_the_limit_and_a_certain_bound_are_refused():
    with pytest.raises(InvalidBudget, match="below"):
        SMALL.hoeffding(SMALL.weight_limit * 1.0001)
    for call in ({"alpha": 0.0}, {"alpha": 1.0}):
        with pytest.raises(InvalidBudget):
            SMALL.public_part(0.1, **call)
    with pytest.raises(InvalidBudget):
        SMALL.risk_bound(0.1, empirical_risk=-1.0, divergence=0.0, alpha=0.1)


# ── asymptotics ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_well_specified_draw_has_the_variance_of_the_estimate_and_its_own():
    fisher = np.array([[2.0, 0.3], [0.3, 1.0]])
    found = draw_covariance(fisher, weight=0.25, n=100)
    assert found == pytest.approx(np.linalg.inv(fisher) * (1 + 4) / 100)
    assert draw_deviation(fisher, weight=0.25, n=100) == pytest.approx(np.sqrt(np.diag(found)))


def test_averaging_draws_removes_their_own_spread_only():
    fisher = np.eye(1)
    assert draw_covariance(fisher, weight=0.5, n=10, draws=4)[0, 0] == pytest.approx((1 + 1 / 2) / 10)


@pytest.mark.statistical
def test_the_predicted_covariance_is_that_of_gaussian_mean_draws():
    """Records of another variance than the model believes: H = 1/v, K = s²/v², and the draw is exact."""
    generator = np.random.default_rng(16)
    n, believed, true, weight, rounds = 400, 2.0, 0.5, 0.3, 40_000
    means = generator.normal(0.0, true, (rounds, 1)) / math.sqrt(n)
    draws = means[:, 0] + generator.standard_normal(rounds) * math.sqrt(believed / (weight * n))
    predicted = draw_covariance([[1 / believed]], variability=[[true**2 / believed**2]], weight=weight, n=n)[0, 0]
    spread = 5 * math.sqrt(2 / rounds)  # α ≈ 1e-6
    assert draws.var() == pytest.approx(predicted, rel=spread)
    fault = draw_covariance([[1 / believed]], weight=weight, n=n)[0, 0]
    assert draws.var() != pytest.approx(fault, rel=spread), "taking the model for true is caught"


@pytest.mark.parametrize("hessian", [[[1.0, 0.5], [0.2, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[math.nan]], [[1.0, 2.0]]])
def test_a_hessian_that_is_none_is_refused(hessian):
    with pytest.raises(InvalidModel):
        draw_covariance(hessian, weight=1.0, n=10)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_quick_study_meets_what_the_paper_and_the_errata_say(study):
    checked = quickly_checked(study)
    assert {one.verdict for one in checked} == {"passed"}, checked
