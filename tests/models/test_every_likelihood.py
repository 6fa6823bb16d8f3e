"""Every likelihood and its models: density and loss against a numerical supremum over responses and parameters (likelihood/likelihood_model.py)."""

from __future__ import annotations

import numpy as np
import pytest

from onedraw.models import LikelihoodModel, Predictor
from onedraw.models.likelihood import (
    Categorical,
    Gamma,
    GaussianNoise,
    Likelihood,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from onedraw.models.likelihood.density import OwnDensity
from tests.models.convex.cases import SEED
from tests.models.members import examples, model_classes, name_of

pytestmark = pytest.mark.contract

ROUNDING = 1.0 + 1e-9

EXAMPLES = [
    *{repr(model.likelihood): model.likelihood for model in examples(LikelihoodModel)}.values(),
    Categorical(3),
    GaussianNoise(variance=0.3),
    StudentT(0.7, variance=0.3),
    Gamma(4.0, 1.0),
    NegativeBinomial(0.05),
]


@pytest.fixture
def generator(request):
    print(f"to repeat this run: ONEDRAW_TEST_SEED={SEED}")
    return np.random.default_rng([SEED, *request.node.name.encode()])


def test_examples_of_the_models_have_every_likelihood():
    ours = {kind for kind in Likelihood.members().values() if kind.__module__.startswith("onedraw.")}
    assert {type(likelihood) for likelihood in EXAMPLES} == ours


def points(likelihood, generator, size=20_000):
    """Predictors, responses as they are encoded, and variances: at random, and near where a density has its peak."""
    shape = (size,) if likelihood.outputs == 1 else (size, likelihood.outputs)
    u = 10.0 ** generator.uniform(-3, 3, (size,) + (1,) * (len(shape) - 1)) * generator.standard_normal(shape)
    y = 10.0 ** generator.uniform(-4, 3, size) * generator.choice([-1.0, 1.0], size)
    y[::2] = u[::2] if u.ndim == 1 else y[::2]
    if isinstance(likelihood, Poisson | NegativeBinomial | Categorical):
        y = np.floor(np.abs(y)) % (likelihood.outputs if isinstance(likelihood, Categorical) else 1e6)
        y[1::4] = 0.0
    if isinstance(likelihood, Gamma):
        y = np.abs(y) + 1e-9
    y = likelihood.response.from_values(y) if not isinstance(likelihood, Categorical) else y
    variance = None
    if likelihood.samples_variance:  # also below the floor, which the formula itself has to enforce
        variance = likelihood.floor * 10.0 ** generator.uniform(-6, 4, size)
        variance[::3] = likelihood.floor
    return u, y, variance


def check_density(likelihood, generator):
    """Raise unless no density exceeds the stated bound, and some density comes near it."""
    bound = likelihood.density_bound.value
    largest = float(np.exp(np.asarray(likelihood.log_density(*points(likelihood, generator))).max()))
    assert largest <= bound * ROUNDING, f"density {largest} found, {bound} stated"
    assert largest >= 0.95 * bound, f"density: only {largest} found, {bound} stated"


def check_sensitivity(likelihood, generator, beta=2.2):
    """Raise unless two records' losses differ by at most the stated sensitivity, and by nearly as much."""
    bound = likelihood.sensitivity(beta).value
    losses = np.asarray(likelihood.beta_loss(beta, *points(likelihood, generator)))
    found = float(losses.max() - losses.min())
    assert found <= bound * ROUNDING, f"sensitivity {found} found, {bound} stated"
    sharp = (
        0.5 if isinstance(likelihood, OwnDensity) else 0.6
    )  # nothing is known of ∫f^β but that it is at most M^{β−1}
    assert found >= sharp * bound, f"sensitivity: only {found} found, {bound} stated"


@pytest.mark.parametrize("likelihood", EXAMPLES, ids=repr)
def test_density_of_every_likelihood_stays_below_its_bound(likelihood, generator):
    check_density(likelihood, generator)


@pytest.mark.parametrize("likelihood", EXAMPLES, ids=repr)
@pytest.mark.parametrize("beta", [1.3, 2.2, 5.0])
def test_losses_of_two_records_differ_by_the_sensitivity(likelihood, beta, generator):
    check_sensitivity(likelihood, generator, beta)


@pytest.mark.parametrize("kind", model_classes(LikelihoodModel), ids=name_of)
def test_every_model_states_the_bound_of_its_likelihood(kind):
    model = kind.example()
    assert model.bounds["density"].value == model.likelihood.density_bound.value
    if model.likelihood.samples_variance:
        assert model.bounds["variance_floor"].value == model.likelihood.floor


@pytest.mark.parametrize("beta", [1.3, 2.2, 5.0])
@pytest.mark.parametrize("likelihood", EXAMPLES, ids=repr)
def test_smallest_and_largest_loss_lie_in_the_stated_range(likelihood, beta, generator):
    lower, upper = likelihood.loss_range(beta)
    losses = np.asarray(likelihood.beta_loss(beta, *points(likelihood, generator)))
    slack = 1e-9 * max(abs(lower), abs(upper))
    assert lower - slack <= losses.min()
    assert losses.max() <= upper + slack


def test_density_of_a_user_is_cut_at_the_bound_declared():
    """A bound that is too small costs accuracy, never privacy."""
    name = Predictor.example().likelihood.name
    cut = OwnDensity(name, bound=0.2)  # the true peak is 0.5
    assert float(np.exp(np.asarray(cut.log_density(0.0, 0.0)))) == pytest.approx(0.2)
    losses = np.asarray(cut.beta_loss(2.0, np.zeros(3), np.array([0.0, 1.0, 100.0])))
    assert np.ptp(losses) <= cut.sensitivity(2.0).value


@pytest.mark.finding("house 2", commit="8a7c0fb")
@pytest.mark.parametrize("factor", [0.5, 2.1])
@pytest.mark.parametrize("likelihood", EXAMPLES, ids=repr)
def test_sensitivity_halved_or_doubled_is_noticed(likelihood, factor, generator, monkeypatch):
    assert model_classes(LikelihoodModel)[0].example().likelihood  # without examples nothing is enumerated
    true = type(likelihood).sensitivity

    def planted(self, beta):
        bound = true(self, beta)
        return type(bound)(factor * bound.value, bound.provenance, bound.why)

    monkeypatch.setattr(type(likelihood), "sensitivity", planted)
    with pytest.raises(AssertionError, match="sensitivity"):
        check_sensitivity(likelihood, generator)
