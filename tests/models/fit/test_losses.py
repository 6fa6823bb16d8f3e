"""Losses of a fit: what the theorem of the mode is told of them holds for every predictor and response."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from onedraw import models
from onedraw.models.convex import losses as margins
from onedraw.models.convex import number_losses as numbers
from onedraw.models.fit.losses import FitLoss

GIVEN = {"data_norm": 1.0, "prior": models.Gaussian(scale=1.0)}
LOSSES = [
    models.Logistic(2, **GIVEN).fit_loss,
    models.Logistic(2, **GIVEN, loss="exp-linear", exponent=0.2).fit_loss,
    models.Logistic(2, **GIVEN, loss="logistic", exponent=1.0).fit_loss,
    models.HuberisedHinge(2, **GIVEN).fit_loss,
    models.LogCoshRegression.fit_loss,
    models.HuberRegression.measured_loss,
    models.Quantile(2, **GIVEN, level=0.3, response_bound=1.0).fit_loss,
    models.CountRegression(2, **GIVEN, largest=7).fit_loss,
    FitLoss(margins.LogisticLoss(), "one-sided", 1.0, 0.25, "labels"),
    FitLoss(numbers.LogCoshLoss(0.3), "two-sided", 0.3, 1.0, "labels"),
    FitLoss(numbers.HuberLoss(0.3), "two-sided", 0.3, 1.0, "labels"),
    FitLoss(numbers.SmoothedPinballLoss(0.5, 0.2), "two-sided", 0.5, 5.0, "labels"),
]
PREDICTORS = np.concatenate(
    [np.linspace(-12.0, 12.0, 4801), np.geomspace(12.0, 700.0, 200) * np.array([[1.0], [-1.0]])], None
)


def excess(loss, relief):
    """The largest φ'' over what the relief allows, m(1 − ρ)(s + ρ), over predictors and responses."""
    m, least, _ = relief
    responses = {"labels": (-1.0, 1.0), "measured": (-3.0, 0.0, 0.4), "counts": (0.0, 3.0, 7.0)}[loss.unit]
    worst = -np.inf
    for response in responses:
        answers = np.full(len(PREDICTORS), response)
        share = np.abs(loss.kernel.slope(PREDICTORS, answers)) / loss.slope_bound
        allowed = m * (1.0 - share) * (least + share)
        worst = max(worst, float((loss.curvature(PREDICTORS, answers) - allowed).max()))
    return worst


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss.kernel).__name__)
def test_relief_bounds_the_curvature_of_every_loss_that_takes_it(loss):
    if loss.relief is not None:
        assert excess(loss, loss.relief) < 1e-9


@pytest.mark.finding("mathematics M8", commit="8a7c0fb")
def test_relief_is_taken_by_two_kernels_and_false_for_huber():
    """The check above can fail: Huber's curvature is 1 where its slope is all but steepest."""
    takers = {type(loss.kernel).__name__ for loss in LOSSES if loss.relief is not None}
    assert takers == {"LogisticLoss", "LogCoshLoss"}
    assert excess(models.HuberRegression.measured_loss, (1.0, 1.0, 1.0)) > 0.9


def test_losses_above_are_of_every_kernel_that_a_fit_can_have():
    """A new convex kernel with bounded slope and curvature has to be added above."""
    kernels = {type(loss.kernel) for loss in LOSSES}
    unbounded = {"SquaredLoss", "HingeLoss", "PinballLoss", "BernoulliLoss", "PoissonLoss", "GaussianLoss"}
    for module in (margins, numbers):
        for kernel in vars(module).values():
            if isinstance(kernel, type) and dataclasses.is_dataclass(kernel) and kernel.__module__ == module.__name__:
                assert kernel in kernels or kernel.__name__ in unbounded, kernel
