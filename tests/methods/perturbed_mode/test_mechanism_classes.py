"""Fits of several classes: what the losses promise of themselves, exact sums, coefficients with standard errors, odd tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw.methods import PerturbedMode, calibrate, plan_from_dict
from onedraw.methods.perturbed_mode.run import Stages
from onedraw.models import Encoded, Gaussian, Softmax
from onedraw.models.fit.losses import ClassLoss
from onedraw.models.fit.sums import FitRows, NewtonSums, Outer
from onedraw.models.moments.measured import Layout
from onedraw.models.sums.exact_sums import held, symmetric
from onedraw.release import release, verify
from onedraw.samplers.noise import Noise

LOSSES = [ClassLoss(2), ClassLoss(3), ClassLoss(6)]
ROWS = {"features": 3, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
MODEL = Softmax(**ROWS, classes=["a", "b", "c"])
TRUTH = np.array([[1.0, -1.0, 0.5, 0.2], [-0.5, 1.0, 0.0, 0.1], [-0.5, 0.0, -0.5, -0.3]])


def drawn(n: int, seed: int, truth: np.ndarray = TRUTH) -> Encoded:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, (n, truth.shape[1] - 1)), np.ones(n)])
    chances = special.softmax(X @ truth.T, axis=1)
    return Encoded(n, X, (chances.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1).astype(float))


def value(loss: ClassLoss, contrasts: np.ndarray, label: int) -> float:
    """φ from its definition."""
    scores = loss.contrasts @ contrasts
    return float(special.logsumexp(scores) - scores[label])


def squared(factors: np.ndarray) -> np.ndarray:
    """Σ ffᵀ of every record."""
    return np.einsum("nca,ncb->nab", factors, factors)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_slopes_and_factors_are_the_derivatives_of_the_loss(loss: ClassLoss) -> None:
    rng, h = np.random.default_rng(0), 1e-5
    for contrasts in rng.standard_normal((10, loss.blocks)):
        for label in range(loss.classes):
            y, steps = np.array([float(label)]), h * np.eye(loss.blocks)
            slope = [(value(loss, contrasts + s, label) - value(loss, contrasts - s, label)) / (2 * h) for s in steps]
            assert loss.slopes(contrasts[None], y)[0] == pytest.approx(slope, abs=1e-7)
            bent = [(loss.slopes((contrasts + s)[None], y) - loss.slopes((contrasts - s)[None], y))[0] / (2 * h) for s in steps]  # fmt: skip
            factors = loss.factors(contrasts[None], y, "curvature")[0]
            assert factors.T @ factors == pytest.approx(np.array(bent), abs=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_under_the_softmax_model_pulls_cancel_and_the_information_is_the_expected_hessian(
    loss: ClassLoss,
) -> None:
    contrasts = 2.0 * np.random.default_rng(1).standard_normal((50, loss.blocks))
    chances = special.softmax(contrasts @ loss.contrasts.T, axis=1)
    labels = [np.full(50, float(label)) for label in range(loss.classes)]
    pulls = sum(chances[:, k, None] * loss.slopes(contrasts, y) for k, y in enumerate(labels))
    assert np.abs(pulls).max() < 1e-12

    bends = [squared(loss.factors(contrasts, y, "curvature")) for y in labels]
    expected = sum(chances[:, k, None, None] * bend for k, bend in enumerate(bends))
    assert squared(loss.factors(contrasts, labels[0], "information")) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_record_exceeds_the_bounds_of_its_loss_and_some_come_close(loss: ClassLoss) -> None:
    rng = np.random.default_rng(2)
    contrasts = np.concatenate([scale * rng.standard_normal((4000, loss.blocks)) for scale in (0.01, 1.0, 20.0)])
    y = rng.integers(0, loss.classes, len(contrasts)).astype(float)
    sizes = {
        "variability": (loss.slopes(contrasts, y) ** 2).sum(axis=1),
        **{
            of: np.trace(squared(loss.factors(contrasts, y, of)), axis1=1, axis2=2)  # type: ignore[arg-type]
            for of in ("information", "curvature")
        },
    }
    for of, size in sizes.items():
        largest = loss.largest(of)  # type: ignore[arg-type]
        assert 0.8 * largest <= size.max() <= largest * (1.0 + 1e-12)
    eigenvalues = np.linalg.eigvalsh(squared(loss.factors(contrasts, y, "curvature")))
    assert eigenvalues.max() <= loss.curvature_bound * (1.0 + 1e-12)
    assert loss.slope_bound**2 == pytest.approx(loss.largest("variability"))


@pytest.mark.parametrize("loss", LOSSES[1:], ids=str)
@pytest.mark.parametrize("of", ["information", "curvature", "squares"])
def test_replacing_a_record_moves_no_matrix_beyond_its_sensitivity(loss: ClassLoss, of: str) -> None:
    rng, layout, row, steps = np.random.default_rng(5), Layout(3), 2.1, 2.0**12
    root = rng.standard_normal((3, 3))
    statistic = Outer(loss, of)  # type: ignore[arg-type]
    sensitivity, largest = statistic.largest * (row * steps) ** 2, 0.0
    size = loss.blocks * layout.width
    for _ in range(30):
        X = np.column_stack([rng.choice([-1.0, 1.0, 0.2], (2, 3)), np.ones(2)])
        y, theta = rng.integers(0, loss.classes, 2).astype(float), rng.choice([1e-3, 1.0]) * rng.standard_normal(size)
        where = (rng.uniform(-1, 1, 3), root, 1.3, row, np.array([0.0, 1.0]))
        records = [held(X[i : i + 1], y[i : i + 1]).read_as(FitRows(layout), *where) for i in (0, 1)]
        shares = [one.sum(statistic, steps, row, theta).astype(float) for one in records]
        values = np.linalg.eigvalsh(symmetric(shares[0] - shares[1], size))
        gained, lost = values[values > 0.0].sum(), -values[values < 0.0].sum()
        largest = max(largest, gained, lost)
    assert 0.1 * sensitivity < largest <= sensitivity


@pytest.mark.parametrize("loss", LOSSES[1:], ids=str)
def test_newtons_sums_are_the_gradient_and_hessian_in_any_order(loss: ClassLoss) -> None:
    rng, layout, row, coarse = np.random.default_rng(6), Layout(3), 1.5, 2.0**15
    X = np.column_stack([rng.uniform(-1, 1, (200, 3)), np.ones(200)])
    y, theta = rng.integers(0, loss.classes, 200).astype(float), rng.standard_normal(loss.blocks * 4)
    statistic, where = NewtonSums(loss), (np.zeros(3), np.eye(3), 1.0, row, np.array([0.0, 1.0]))
    total, again = (
        held(X[order], y[order]).read_as(FitRows(layout), *where).sum(statistic, coarse, row, theta)
        for order in (slice(None), slice(None, None, -1))
    )
    assert (total == again).all()
    gradient, hessian = statistic.split(total, coarse, len(theta))
    a = np.minimum(1.0, row**2 / (X**2).sum(axis=1))
    contrasts = X @ theta.reshape(loss.blocks, 4).T
    factors = loss.factors(contrasts, y, "curvature")
    assert gradient == pytest.approx(np.einsum("n,nb,ni->bi", a, loss.slopes(contrasts, y), X).ravel(), abs=1e-10)
    plain = np.einsum("n,nca,ncb,ni,nj->aibj", a, factors, factors, X, X).reshape(hessian.shape)
    assert hessian == pytest.approx(plain, abs=1e-2)


def test_two_classes_are_a_logistic_regression_whatever_they_are_called() -> None:
    asked = [od.planning.Regression(kind, 3, bounds=(-1, 1), classes=["a", "b"]) for kind in ("softmax", "logistic")]
    assert asked[0] == asked[1]
    plan = calibrate(PerturbedMode(), Softmax(**ROWS, classes=["a", "b"]), od.PureDP(1.0), n=2000)
    assert plan.guarantee.promise.implies(od.PureDP(1.0)), "by name the model is fitted all the same"


@pytest.mark.parametrize("classes", [3, 6])
@pytest.mark.parametrize("records", [1, 3])
def test_a_plan_of_several_classes_keeps_its_budget_and_less_noise_is_refused(classes: int, records: int) -> None:
    model, budget = Softmax(**ROWS, classes=list(range(classes))), od.PureDP(1.0)
    plan = calibrate(PerturbedMode(), model, budget, n=8000, records_per_person=records)
    assert plan.guarantee.promise.implies(budget)
    assert plan_from_dict(plan.to_dict()) == plan
    assert plan.parameters["kappa"] < 1.0
    for number in ("mode_noise", "ridge", "moments_noise"):
        stated = plan.to_dict()
        stated["parameters"] = {**stated["parameters"], number: 0.9 * stated["parameters"][number]}
        with pytest.raises((od.errors.PromiseRefused, od.errors.CertificateRejected)):
            plan_from_dict(stated)


def test_coefficients_of_several_classes_come_with_honest_standard_errors() -> None:
    """Twelve fits; the average error in standard errors, squared, is 1 for honest ones. Coefficients add up to 0 over classes."""
    plan = calibrate(PerturbedMode(), MODEL, od.PureDP(6.0), n=12_000)
    truth, scores = TRUTH - TRUTH.mean(axis=0), []
    for seed in range(12):
        published = Stages(plan.target(drawn(12_000, seed)), Noise(np.random.default_rng(seed), pure=True)).run()
        result = plan.mechanism.result(plan, published.to_dict())  # type: ignore[attr-defined]
        assert result.given.all()
        assert np.abs(result.estimate.reshape(3, 4).sum(axis=0)).max() < 1e-10
        scores.append(((result.estimate - truth.ravel()) / result.standard_errors) ** 2)
    assert 0.4 < np.mean(scores) < 1.7


def test_a_released_fit_of_several_classes_verifies_and_is_read_with_its_intervals(tmp_path: object) -> None:
    data = drawn(12_000, 1)
    model = od.DPLogisticRegression(6.0, bounds=([-1] * 3, [1] * 3), classes=[0, 1, 2], random_state=1)
    model.fit(data.X[:, :3], data.y.astype(int))
    assert model.coef_.shape == (3, 3)
    assert np.isfinite(model.bse_).all()
    assert np.isfinite(model.conf_int(0.9)).all()
    assert model.posterior(10).shape == (10, 12)
    path = tmp_path / "classes.json"  # type: ignore[operator]
    model.release_.save(path)
    assert verify(path).answer == "consistent"


TABLES = {
    "one record": (np.array([[0.3, -0.2, 0.9]]), ["b"]),
    "fewer records than parameters": (np.random.default_rng(0).uniform(-1, 1, (4, 3)), ["a", "b", "c", "a"]),
    "a column twice": (np.tile(np.random.default_rng(2).uniform(-1, 1, (200, 1)), (1, 3)), ["a", "b"] * 100),
    "one class only": (np.random.default_rng(3).uniform(-1, 1, (200, 3)), ["c"] * 200),
    "separable": (np.column_stack([np.repeat([-1.0, 0.0, 1.0], 60)] * 3), list(np.repeat(["a", "b", "c"], 60))),
    "cells that are no numbers": (np.array([[math.nan, math.inf, -1e300]] * 50), ["a", "b", "odd", "c", "a"] * 10),
}


@pytest.mark.parametrize(("table", "classes"), [*((table, 3) for table in TABLES), ("separable", 5)])
def test_no_table_makes_a_fit_of_several_classes_fail(table: str, classes: int) -> None:
    X, y = TABLES[table]
    model = Softmax(**ROWS, classes=list("abcde"[:classes]))
    plan = calibrate(PerturbedMode(intervals=True), model, od.PureDP(5.0), n=len(y))
    found = release(plan, (X, y), random_state=1)
    result = plan.mechanism.result(plan, found.certificate.draw.stages)  # type: ignore[attr-defined]
    assert np.isfinite(found.draws).all()
    assert np.isfinite(result.standard_errors[result.given]).all()


def test_a_direction_along_which_the_ridge_pulled_hard_is_refused_an_interval() -> None:
    """There the information was measured too far from the estimate."""
    plan = calibrate(PerturbedMode(measured=False, intervals=True), MODEL, od.PureDP(2.0), n=6000)
    size, numbers = plan.mechanism.stage_sizes(plan)["mode"], plan.parameters
    steep = 300.0 * numbers["information_noise"]
    matrix = (steep * np.eye(size))[np.tril_indices(size)]

    def given(pull: float) -> np.ndarray:
        mode = np.full(size, 0.0)
        mode[0] = pull * steep / numbers["ridge"]
        stages = {"mode": mode, "information": matrix, "variability": matrix}
        return np.asarray(plan.mechanism.result(plan, stages).given)  # type: ignore[attr-defined]

    assert given(0.05).all()
    assert not given(0.2).all()
    assert given(0.2).any()  # coefficients that do not depend on it
