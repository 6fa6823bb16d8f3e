"""Every loss of a fit: the constants of its theorem against a numerical supremum over scores and responses (fit/losses.py)."""

from __future__ import annotations

import numpy as np
import pytest

from onedraw.models import ConvexModel, CountRegression, Gaussian, Logistic, Quantile
from onedraw.models.convex.losses import MarginLoss
from onedraw.models.fit.losses import ClassLoss, FitLoss
from tests.models.members import examples, model_classes

pytestmark = pytest.mark.contract

ROUNDING = 1.0 + 1e-9
SHARP = 0.95

SMALL = {"data_norm": 1.5, "prior": Gaussian(scale=1.0)}

EXAMPLES = [
    *examples(ConvexModel),
    Logistic(2, **SMALL, loss="exp-linear"),
    Logistic(2, **SMALL, loss="exp-linear", exponent=0.5),
    Quantile(2, **SMALL, level=0.2, response_bound=2.0),
    CountRegression(2, **SMALL, largest=1),
]
LOSSES = {
    repr(loss): loss
    for model in EXAMPLES
    for loss in (model.fit_loss, model.measured_loss)
    if isinstance(loss, FitLoss)
}
FITTED = {repr(model.fit_loss): model.fit_loss for model in EXAMPLES if isinstance(model.fit_loss, FitLoss)}


def grid(loss):
    """Scores, and responses in the fit's own unit."""
    u = np.concatenate([np.linspace(-35.0, 35.0, 4001), np.geomspace(1e-9, 1.0, 200), -np.geomspace(1e-9, 1.0, 200)])
    match loss.unit:
        case "labels" if isinstance(loss.kernel, MarginLoss):
            y = np.array([-1.0, 1.0])
        case "counts":
            y = np.arange(loss.kernel.largest + 1.0)
        case _:
            y = np.linspace(-3.0, 3.0, 7)
    return tuple(part.ravel() for part in np.meshgrid(u, y))


def check(name, found, bound, sharp=SHARP):
    """Raise unless `bound` holds for the largest value found, and is near it."""
    assert found <= bound * ROUNDING, f"{name}: {found} found, {bound} stated"
    assert found >= sharp * bound, f"{name}: only {found} found, {bound} stated"


def check_loss(loss):
    """Raise unless slope and curvature bounds are the suprema."""
    u, y = grid(loss)
    slopes, curvatures = loss.kernel.slope(u, y), loss.curvature(u, y)
    check("slope", np.abs(slopes).max(), loss.slope_bound)
    check("curvature", curvatures.max(), loss.curvature_bound)
    assert curvatures.min() >= 0.0
    for of in ("information", "curvature", "variability", "squares"):
        # of counts the expected square of the slope is bounded by M alone
        sharp = 0.5 if loss.unit == "counts" and of == "variability" else SHARP
        check(of, getattr(loss, of)(u, y).max(), loss.largest(of), sharp)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_constants_of_every_fit_loss_are_suprema(loss):
    check_loss(loss)


@pytest.mark.parametrize("loss", FITTED.values(), ids=FITTED)
def test_expected_curvature_and_square_are_those_of_the_model(loss):
    """Classes and counts: the sums over the responses that the model gives with their probabilities."""
    u = np.linspace(-4.03, 3.0, 29)
    if loss.unit == "labels" and loss.spends != "hinge":
        masses = np.stack([1.0 / (1.0 + np.exp(u)), 1.0 / (1.0 + np.exp(-u))])
        responses = np.array([-1.0, 1.0])
    elif loss.unit == "counts":
        counts = np.arange(400.0)
        logs = counts[:, None] * u - np.exp(u) - np.cumsum(np.log(np.maximum(counts, 1.0)))[:, None]
        masses, responses = np.exp(logs), np.minimum(counts, loss.slope_bound)
    else:
        pytest.skip("nothing is assumed of the responses")
    squares = sum(mass * loss.squares(u, np.full_like(u, y)) for mass, y in zip(masses, responses, strict=True))
    bends = sum(mass * loss.curvature(u, np.full_like(u, y)) for mass, y in zip(masses, responses, strict=True))
    np.testing.assert_allclose(loss.variability(u, np.zeros_like(u)), squares, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(loss.information(u, np.zeros_like(u)), bends, rtol=1e-8, atol=1e-12)


@pytest.mark.finding("house 2", commit="8a7c0fb")
@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("field", ["slope_bound", "curvature_bound"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_constant_halved_or_doubled_is_noticed(loss, field, factor):
    assert model_classes(ConvexModel)[0].example()  # without examples nothing is enumerated
    wrong = FitLoss(loss.kernel, loss.slope_bound, loss.curvature_bound, loss.unit, loss.level)
    object.__setattr__(wrong, field, factor * getattr(loss, field))
    with pytest.raises(AssertionError, match=r"slope|curvature|information|squares|variability"):
        check_loss(wrong)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_constants_of_several_classes_are_suprema(classes):
    loss, generator = ClassLoss(classes), np.random.default_rng(classes)
    scores = 10.0 ** generator.uniform(-2, 1.5, (4000, 1)) * generator.standard_normal((4000, classes))
    scores[::2, 2:] = -50.0  # two classes alone, where the curvature is largest
    scores[::4, 1] = scores[::4, 0]
    scores[1] = 0.0  # all alike, where the trace is
    contrasts = scores @ loss.contrasts
    y = generator.integers(0, classes, len(scores)).astype(float)
    factors = loss.factors(contrasts, y, "curvature")
    hessians = np.einsum("npi,npj->nij", factors, factors)
    check("slope", np.linalg.norm(loss.slopes(contrasts, y), axis=1).max(), loss.slope_bound)
    check("curvature", np.linalg.eigvalsh(hessians)[:, -1].max(), loss.curvature_bound)
    check("trace", np.trace(hessians, axis1=1, axis2=2).max(), loss.largest("information"))
    squares = np.linalg.norm(loss.slopes(contrasts, y), axis=1) ** 2
    check("squares", squares.max(), loss.largest("squares"))
