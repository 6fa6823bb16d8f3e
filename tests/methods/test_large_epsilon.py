"""Budgets of ε up to 10⁶: what people try first, to see what the noise costs. A plan or a refusal in words (calibration.py)."""

import contextlib
import time

import numpy as np
import pytest

import onedraw as od
from onedraw import errors, models
from onedraw.methods import ExponentialChoice, ExponentialQuantiles, Moments, PerturbedMode
from onedraw.privacy import certify

SIZES = (100.0, 715.0, 1e4, 1e6)
BUDGETS = {
    "pure": od.PureDP,
    "approx": lambda size: od.ApproxDP(size, 1e-6),
    "gaussian": od.GaussianDP,
    "zcdp": od.ZCDP,
    "renyi": lambda size: od.RenyiDP.at(64.0, size),
}
ROWS = {"data_norm": 1.5, "prior": od.Gaussian(scale=1.0, radius=3.0)}
COLUMN = models.GaussianMean(1.0, 1.0, 1.0)
ASKED = {
    "perturbed mode": (PerturbedMode(), models.Logistic(2, **ROWS)),
    "perturbed mode of numbers": (PerturbedMode(), models.LogCoshRegression(2, response_bound=1.0, **ROWS)),
    "gibbs": (od.Gibbs(), models.LeastSquares(2, response_bound=1.0, **ROWS)),
    "noisy gradient": (od.NoisyGradient(), models.Logistic(2, **ROWS)),
    "beta divergence": (od.BetaDivergence(), models.BinaryRegression(2)),
    "candidates": (od.Candidates(), models.BinaryRegression(2)),
    "added noise": (od.AddedNoise(), models.NumberTable(lower=0.0, upper=1.0)),
    "quantiles": (ExponentialQuantiles(), models.ColumnQuantiles((0.5,), lower=0.0, upper=1.0)),
    "choice": (ExponentialChoice(), models.ModelChoice(("a", "b"))),
    "moments": (Moments(), models.Columns(2, bounds=(-1, 1))),
    "direct": (od.Direct(), COLUMN),
    "diffused": (od.Diffused(), models.BetaBernoulli()),
    "concentrated": (od.Concentrated(), models.GammaPoisson((1.0, 1.0), cap=2)),
}
if hasattr(od, "AveragedSteps"):  # findings also run on the commit that was reviewed, which has not all mechanisms
    VARIANCE = models.NumberTable(lower=0.0, upper=1.0, show="variance")
    ASKED |= {
        "averaged steps": (od.AveragedSteps(), models.Logistic(2, **ROWS)),
        "averaged steps of numbers": (
            od.AveragedSteps(),
            models.OrdinaryLeastSquares(2, response_bound=1.0, **ROWS),
        ),
        "centered noise": (od.methods.CenteredNoise(), VARIANCE),
    }
if hasattr(od, "ClippedGradients"):
    ASKED |= {
        "clipped gradients": (od.ClippedGradients(), models.Logistic(2, **ROWS)),
        "clipped gradients of counts": (od.ClippedGradients(), models.CountRegression(2, largest=5, **ROWS)),
    }


@pytest.mark.finding("field F2", commit="8a7c0fb")
@pytest.mark.parametrize("name", ["perturbed mode", "perturbed mode of numbers"])
@pytest.mark.parametrize("size", SIZES[1:])
def test_fit_at_large_epsilon_has_a_plan(name, size):
    mechanism, model = ASKED[name]
    for kind in ("pure", "approx", "renyi"):
        plan = od.calibrate(mechanism, model, BUDGETS[kind](size), n=200)
        assert plan.guarantee.promise.implies(plan.budget)
        assert np.isfinite(list(plan.parameters.values())).all()


@pytest.mark.parametrize("name", sorted(ASKED))
@pytest.mark.parametrize("kind", sorted(BUDGETS))
def test_large_budget_gives_a_plan_or_a_refusal(name, kind):
    mechanism, model = ASKED[name]
    for size in (715.0, 1e6):
        plan = None
        with contextlib.suppress(errors.OnedrawError):  # a refusal in words; an OverflowError is none
            plan = od.calibrate(mechanism, model, BUDGETS[kind](size), n=200)
        if plan is None:
            continue
        assert 0.0 <= plan.guarantee.promise.epsilon(1e-6) < np.inf
        assert 0.0 <= plan.guarantee.promise.delta(1.0) <= 1.0


@pytest.mark.finding("field F2", commit="8a7c0fb")
def test_large_epsilon_is_fitted_and_verified():
    rows = np.linspace(-1.0, 1.0, 60).reshape(-1, 1)
    fitted = od.DPLogisticRegression(epsilon=1e6, bounds=(-1, 1), classes=[0, 1]).fit(rows, rows[:, 0] > 0)
    assert od.verify(fitted.release_).answer == "consistent"


@pytest.mark.parametrize("size", SIZES)
def test_ledger_books_a_large_epsilon(size, tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("d", od.ApproxDP(2.0 * size, 1e-6))
    mean = od.DPMean(epsilon=size, bounds=(0, 1), ledger=ledger, dataset="d").fit(np.linspace(0.0, 1.0, 50))
    assert mean.mean_ == pytest.approx(0.5, abs=0.05)
    assert ledger.verify().ok


def test_second_opinion_on_a_huge_loss_is_skipped_in_time():
    """A grid of all its losses would take minutes; μ = 10⁶ has a loss of 5·10¹¹."""
    before = time.process_time()
    promise = od.GaussianDP(1e6)
    assert certify(promise, epsilon=promise.epsilon(1e-6), delta=1e-6).startswith("skipped: a privacy-loss")
    assert time.process_time() - before < 5.0
