"""Many simulated fits at once are the fits that single releases would make, number for number."""

from __future__ import annotations

import numpy as np
import pytest

import onedraw as od
from onedraw.errors import WrongCall
from onedraw.mechanisms import NoisyGradient, PerturbedMode, calibrate
from onedraw.models import Gaussian, Logistic, Softmax
from onedraw.samplers import fit_many
from onedraw.samplers.fit import Stages
from onedraw.samplers.fit_noise import Noise

ROWS = {"features": 2, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
MODELS = {"two classes": Logistic(**ROWS, loss="exp-linear"), "three": Softmax(**ROWS, classes=[0, 1, 2])}


def simulated(sets: int, n: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.uniform(-1, 1, (sets, n, 2)), rng.integers(0, classes, (sets, n))


@pytest.mark.parametrize("pure", [False, True], ids=["Gaussian", "pure"])
@pytest.mark.parametrize("name", MODELS)
def test_many_fits_publish_what_single_ones_would(name: str, pure: bool) -> None:
    model = MODELS[name]
    plan = calibrate(PerturbedMode(intervals=True, pure=pure), model, od.ApproxDP(2.0, 1e-6), n=500)
    X, y = simulated(5, 500, 2 + (name == "three"))
    found = fit_many(plan, X, y, [11, 12, 13, 14, 15])
    for index, seed in enumerate([11, 12, 13, 14, 15]):
        target = plan.target(model.summarise((X[index], y[index])))
        single = Stages(target, Noise(np.random.default_rng(seed), pure=pure)).run()
        for part, values in single.to_dict().items():
            assert getattr(found, part)[index] == pytest.approx(values, rel=0, abs=0)
    assert found.mode.shape == (5, plan.stage_sizes["mode"])


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
    with pytest.raises(WrongCall, match="Use samplers"):
        fit_many(plan, *simulated(2, 50, 2), [1, 2])
