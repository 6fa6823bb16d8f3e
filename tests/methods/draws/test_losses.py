"""Which loss an interval's simulation is given for a plan."""

from types import SimpleNamespace

import numpy as np
import pytest

import onedraw as od
from onedraw.methods.draws.losses import BinaryBeta, NormalBeta, loss_of
from onedraw.models import BinaryRegression, GaussianRegression, Logistic, Network, Softmax, StudentTRegression


def loss_for(model, **numbers):
    return loss_of(SimpleNamespace(model=model, parameters=numbers), SimpleNamespace())


def test_normal_beta_loss_has_the_known_deviation():
    assert loss_for(GaussianRegression(2, variance=0.25), beta=1.5) == NormalBeta(1.5, 0.5)


def test_binary_beta_loss_is_that_of_two_classes():
    assert loss_for(BinaryRegression(2), beta=2.5) == BinaryBeta(2.5)


@pytest.mark.parametrize(
    "model", [GaussianRegression(2, variance_floor=0.25), StudentTRegression(2, variance=0.25), Network(2, hidden=2)]
)
def test_beta_loss_without_a_formula_is_none(model):
    assert loss_for(model, beta=1.5) is None


def test_convex_loss_of_one_predictor_is_the_model_s_own():
    model = Logistic(2, data_norm=1.0, prior=od.Gaussian(scale=1.0))
    assert loss_for(model) == model.kernel
    assert loss_for(Softmax.example()) is None


@pytest.mark.parametrize("loss", [NormalBeta(1.5, 0.5), BinaryBeta(2.5)], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("response", [-1.0, 1.0])
def test_curvature_is_the_derivative_of_the_slope(loss, response):
    predictor, step = np.linspace(-3.0, 3.0, 25), 1e-6
    difference = (loss.slope(predictor + step, response) - loss.slope(predictor - step, response)) / (2.0 * step)
    assert loss.curvature(predictor, response) == pytest.approx(difference, rel=1e-5, abs=1e-7)
