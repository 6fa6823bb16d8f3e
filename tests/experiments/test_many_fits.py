"""Many simulated fits at once are the fits that single releases would make, number for number."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.many_fits import fit_many
from experiments.many_minima import minima

import onedraw as od
from experiments import many_fits as module
from onedraw.data.sums import Block, Blocks
from onedraw.errors import WrongCall
from onedraw.methods import NoisyGradient, PerturbedMode, calibrate
from onedraw.methods.perturbed_mode.run import Stages
from onedraw.models import Gaussian, Logistic, Softmax
from onedraw.models.fit.sums import Objective, minimum
from onedraw.samplers.noise import Noise

ROWS = {"features": 2, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
MODELS = {"two classes": Logistic(**ROWS, loss="exp-linear"), "three": Softmax(**ROWS, classes=[0, 1, 2])}


def simulated(sets: int, n: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.uniform(-1, 1, (sets, n, 2)), rng.integers(0, classes, (sets, n))


@pytest.mark.parametrize("name", MODELS)
def test_many_fits_publish_what_single_ones_would(name: str) -> None:
    model = MODELS[name]
    plan = calibrate(PerturbedMode(intervals=True), model, od.ApproxDP(2.0, 1e-6), n=500)
    X, y = simulated(5, 500, 2 + (name == "three"))
    found = fit_many(plan, X, y, [11, 12, 13, 14, 15])
    for index, seed in enumerate([11, 12, 13, 14, 15]):
        target = plan.target(model.summarise((X[index], y[index])))
        single = Stages(target, Noise(np.random.default_rng(seed), pure=True)).run()
        for part, values in single.to_dict().items():
            assert getattr(found, part)[index] == pytest.approx(values, rel=0, abs=0)
    assert found.mode.shape == (5, plan.mechanism.stage_sizes(plan)["mode"])


@pytest.mark.parametrize("name", ["two classes", "three"])
def test_fits_that_wait_for_each_other_publish_what_single_ones_would(name: str, monkeypatch) -> None:
    """In gangs of three, of which the last is filled up: every number, to its last bit."""
    model = MODELS[name]
    plan = calibrate(PerturbedMode(intervals=True), model, od.ApproxDP(2.0, 1e-6), n=500)
    data = *simulated(5, 500, 2 + (name == "three")), [11, 12, 13, 14, 15]
    monkeypatch.setattr(module, "GANG", 3)
    together, alone = module._in_gangs(plan, *data), fit_many(plan, *data)
    for index, one in enumerate(together):
        for part, values in one.to_dict().items():
            assert values == getattr(alone, part)[index].tolist()


def test_fits_side_by_side_on_an_accelerator_publish_what_single_ones_would(monkeypatch) -> None:
    """Their products are made together and may differ in a sum's last lattice step."""
    plan = calibrate(PerturbedMode(intervals=True), MODELS["two classes"], od.ApproxDP(2.0, 1e-6), n=500)
    data = *simulated(5, 500, 2), [11, 12, 13, 14, 15]
    alone = fit_many(plan, *data)
    monkeypatch.setattr(module, "accelerated", lambda: True)
    together = fit_many(plan, *data)
    for part in ("moments", "mode", "information"):
        assert getattr(together, part) == pytest.approx(getattr(alone, part), rel=1e-5, abs=1e-5)
    assert not np.allclose(together.mode[0], together.mode[1])


@pytest.mark.parametrize("most_passes", [100, 3], ids=["Newton", "descent"])
def test_minima_side_by_side_are_those_found_alone_and_take_as_many_passes(most_passes: int) -> None:
    """Easy and hard ones together, which end at different steps; after three passes the gradient method takes over."""
    rng = np.random.default_rng(8)
    z, y = rng.normal(size=(6, 3, 64)), rng.choice([-1.0, 1.0], (6, 64))
    records = [Blocks.holding(64, [Block((one, np.ones(64), side), np.ones(64), 64)]) for one, side in zip(z, y, strict=True)]  # fmt: skip
    loss = calibrate(PerturbedMode(), MODELS["two classes"], od.PureDP(1.0), n=64)
    loss = loss.mechanism.problem(loss).loss
    objectives = [
        Objective(
            np.eye(3) * ridge, rng.normal(size=3) * 5.0, 2.0**10, 8.0, 1e-3, ridge, 64 * 16.0 + ridge, most_passes
        )
        for ridge in (0.5, 50.0, 2.0, 5.0, 500.0, 1.0)
    ]

    def sums(which, statistic, coarse, row_bound, thetas):
        return np.stack([records[index].sum(statistic, coarse, row_bound, theta) for index, theta in zip(which, thetas, strict=True)])  # fmt: skip

    together, passes = minima(sums, loss, objectives)
    alone = [minimum(one, loss, objective) for one, objective in zip(records, objectives, strict=True)]
    assert together.tolist() == [theta.tolist() for theta, _ in alone]
    assert passes.tolist() == [count for _, count in alone]
    assert len(set(passes.tolist())) > 1


def test_a_fit_that_fails_in_a_gang_is_reported_and_holds_up_no_other(monkeypatch) -> None:
    plan = calibrate(PerturbedMode(), MODELS["two classes"], od.PureDP(1.0), n=50)
    finished, sound = [], module._stages

    def stages(target, seed):
        if seed == 1:
            raise KeyError("a planted fault")
        finished.append(seed)
        return sound(target, seed)

    monkeypatch.setattr(module, "accelerated", lambda: True)
    monkeypatch.setattr(module, "_stages", stages)
    with pytest.raises(KeyError, match="planted"):
        fit_many(plan, *simulated(3, 50, 2), [1, 2, 3])
    assert sorted(finished) == [2, 3]
    monkeypatch.setattr(module, "_mapped", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit_many(plan, *simulated(3, 50, 2), [2, 3, 4])


def test_a_part_that_does_not_run_is_absent() -> None:
    plan = calibrate(PerturbedMode(intervals=False, measured=False), MODELS["two classes"], od.PureDP(1.0), n=50)
    found = fit_many(plan, *simulated(2, 50, 2), [1, 2])
    assert found.information is None
    assert found.moments is None


@pytest.mark.parametrize("shape", [(3, 50), (2, 49), (2,)])
def test_shapes_that_do_not_fit_together_are_refused_in_words(shape: tuple[int, ...]) -> None:
    plan = calibrate(PerturbedMode(), MODELS["two classes"], od.PureDP(1.0), n=50)
    with pytest.raises(WrongCall, match="as planned"):
        fit_many(plan, simulated(2, 50, 2)[0], np.zeros(shape), [1, 2])


def test_plans_that_are_no_fits_are_refused() -> None:
    plan = calibrate(NoisyGradient(), MODELS["two classes"], od.ZCDP(0.5), n=50)
    with pytest.raises(WrongCall, match="Use fits"):
        fit_many(plan, *simulated(2, 50, 2), [1, 2])
